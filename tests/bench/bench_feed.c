/* SPDX-License-Identifier: MIT */
/*
 * bench_feed.c: feeds a file to a GPU in many shapes, next to the bus rate measured in the same
 * run.
 *
 *     bench-feed FILE [--dtype D] [--backend cuda|opencl] [--device K] [--turns N] [--cold]
 *                [--readers N,...] [--slots N,...] [--slot-kib N,...] [--piece-kib N,...]
 *                [--direct never,cold,always]
 *
 * Every shape of the lists is measured in every turn, so that drift affects all equally:
 *
 *   prepare   allocating the page-locked slots, which `iron feed` does not time
 *   read      the ring alone, into these slots: the rate of the readers
 *   feed      what `iron feed` times: reading, sending, reducing, and the report
 *
 * Figures are medians; the best feed is also shown. The first row is the engine fed from page-
 * locked memory: no reader can be faster. --cold drops the file from the page cache before each
 * run. Every result is compared with the CPU's: a wrong one ends the program with status 1.
 */
#include "core/clock.h"
#include "core/memory.h"
#include "engine/engine.h"
#include "feed/ring.h"
#include "formats/source.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUES       8u
#define SHAPES       256u
#define TURNS        32u
#define MEMORY_BYTES ((size_t)1 << 30)

typedef struct list {
    size_t count;
    size_t values[VALUES];
} list;

typedef struct row {
    iron__feed_shape shape;
    double prepare[TURNS], read[TURNS], feed[TURNS]; /* seconds */
} row;

typedef struct bench {
    const char *path;
    iron_dtype dtype;
    iron_config config;
    bool is_cold;
    size_t turns;
    list readers, slots, slot_kib, piece_kib, direct;
    iron_report expected;
    double bytes;
    row rows[SHAPES];
    size_t row_count;
} bench;

static const char *const direct_names[] = {"never", "cold", "always"};

static void die(const char *what, const iron_error *err) {
    fprintf(stderr, "bench-feed: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(2);
}

static void check(iron_status status, const char *what, const iron_error *err) {
    if (status != IRON_OK)
        die(what, err);
}

static double seconds(void) { return (double)iron__clock_ns() * 1e-9; }

static iron_source *open_source(const bench *b) {
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = b->dtype, .paths = &b->path, .path_count = 1};
    iron_source *s = NULL;
    iron_error err;

    check(iron_source_open(&o, &s, &err), "the file", &err);
    return s;
}

static iron_engine *make_engine(const iron_config *config) {
    iron_engine *e = NULL;
    iron_error err;

    check(iron_engine_create(config, &e, &err), "the engine", &err);
    return e;
}

/* Feeds the file and closes the batch: what `iron feed` does. */
static iron_report feed_file(iron_engine *e, iron_source *s) {
    iron_report r = {.struct_size = sizeof r};
    iron_error err;

    check(iron_engine_feed_source(e, s, NULL, NULL, &err), "feed", &err);
    check(iron_engine_end_batch(e, &err), "feed", &err);
    check(iron_engine_report(e, &r, &err), "report", &err);
    return r;
}

/* Out of the page cache with it; what is not on the disk yet would stay. */
static void drop(const bench *b) {
    int fd = b->is_cold ? open(b->path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static double read_alone(const bench *b, iron_engine *e, iron_source *s,
                         const iron__feed_shape *shape) {
    void *slots[IRON_FEED_SLOTS_MAX];
    iron__ring_options o = {.source = s, .slots = slots, .allocator = iron__allocator_default()};
    iron__ring *ring = NULL;
    size_t slot, count = 1;
    double started;
    iron_error err;

    check(e->backend->get_slots(e, slots, &err), "slots", &err);
    o.shape = *shape;
    o.shape.slot_bytes = iron__gpu_feed_slot_bytes(e->gpu, iron_source_dtype(s));
    drop(b);
    started = seconds();
    check(iron__ring_create(&o, &ring, &err), "the ring", &err);
    while (count > 0) {
        check(iron__ring_next(ring, &slot, &count, &err), "reading", &err);
        iron__ring_free(ring);
    }
    iron__ring_destroy(ring);
    started = seconds() - started;
    iron__source_seek(s, 0);
    return started;
}

static void measure(const bench *b, row *r, size_t turn) {
    iron_engine *e = make_engine(&b->config);
    iron_source *s = open_source(b);
    iron_report got;
    double started;
    iron_error err;

    if (!iron__gpu_feed_has_slots(e->gpu))
        die("this device has no page-locked slots", NULL);
    check(iron__gpu_feed_reshape(e->gpu, &r->shape, &err), "shape", &err);
    started = seconds();
    check(iron_engine_prepare(e, &err), "slots", &err);
    r->prepare[turn] = seconds() - started;
    r->read[turn] = read_alone(b, e, s, &r->shape);
    drop(b);
    started = seconds();
    got = feed_file(e, s);
    r->feed[turn] = seconds() - started;
    if (got.tokens != b->expected.tokens || got.state != b->expected.state ||
        got.sum != b->expected.sum || got.xor_total != b->expected.xor_total) {
        fprintf(stderr, "bench-feed: WRONG: the CPU's result is another\n");
        exit(1);
    }
    iron_source_close(s);
    iron_engine_destroy(e);
}

/* How often the memory is as long as the file. */
static size_t memory_times(const bench *b) { return (size_t)(b->bytes / (double)MEMORY_BYTES) + 1; }

/* As many bytes as the file has, out of memory that is page-locked. */
static double feed_memory(const bench *b) {
    iron_engine *e = make_engine(&b->config);
    size_t width = iron_dtype_bytes(b->dtype);
    iron_report r = {.struct_size = sizeof r};
    size_t times = memory_times(b);
    double started;
    iron_error err;
    void *memory;

    check(iron_engine_tokens_alloc(e, MEMORY_BYTES, &memory, &err), "page-locked memory", &err);
    memset(memory, 1, MEMORY_BYTES);
    check(iron_engine_feed_as(e, b->dtype, memory, MEMORY_BYTES / width, &err), "feed", &err);
    check(iron_engine_report(e, &r, &err), "report", &err);
    started = seconds();
    for (size_t k = 0; k < times; k++)
        check(iron_engine_feed_as(e, b->dtype, memory, MEMORY_BYTES / width, &err), "feed", &err);
    check(iron_engine_report(e, &r, &err), "report", &err);
    started = seconds() - started;
    iron_engine_tokens_free(e, memory);
    iron_engine_destroy(e);
    return started;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static void print_rows(bench *b, double memory) {
    double fed = (double)memory_times(b) * (double)MEMORY_BYTES;

    printf("from page-locked memory: %.3f GB/s\n", fed / memory * 1e-9);
    printf("%7s %5s %8s %9s %6s %10s %9s %9s %8s %9s\n", "readers", "slots", "slot_kib",
           "piece_kib", "direct", "prepare_ms", "read_gb_s", "seconds", "gb_per_s", "best_gb_s");
    for (size_t k = 0; k < b->row_count; k++) {
        row *r = &b->rows[k];
        double feed = median(r->feed, b->turns); /* sorted: the first is the best */

        printf("%7u %5zu %8zu %9zu %6s %10.1f %9.3f %9.6f %8.3f %9.3f\n", r->shape.readers,
               r->shape.slot_count, r->shape.slot_bytes >> 10, r->shape.piece_bytes >> 10,
               direct_names[r->shape.direct], median(r->prepare, b->turns) * 1e3,
               b->bytes / median(r->read, b->turns) * 1e-9, feed, b->bytes / feed * 1e-9,
               b->bytes / r->feed[0] * 1e-9);
    }
}

static void parse_list(list *l, const char *text) {
    l->count = 0;
    for (const char *at = text; *at && l->count < VALUES;) {
        char *end;
        size_t value = strtoul(at, &end, 10);

        for (size_t k = 0; end == at && k < sizeof direct_names / sizeof *direct_names; k++) {
            size_t length = strlen(direct_names[k]);

            if (strncmp(at, direct_names[k], length) == 0) {
                end += length;
                value = k;
            }
        }
        if (end == at || (*end && *end != ','))
            die(text, NULL);
        l->values[l->count++] = value;
        at = *end ? end + 1 : end;
    }
}

static void add_row(bench *b, iron__feed_shape shape) {
    if (b->row_count == SHAPES)
        die("too many shapes", NULL);
    b->rows[b->row_count++].shape = shape;
}

static void cross_lists(bench *b) {
    for (size_t d = 0; d < b->direct.count; d++)
        for (size_t s = 0; s < b->slot_kib.count; s++)
            for (size_t n = 0; n < b->slots.count; n++)
                for (size_t p = 0; p < b->piece_kib.count; p++)
                    for (size_t r = 0; r < b->readers.count; r++)
                        add_row(b, (iron__feed_shape){
                                       (uint32_t)b->readers.values[r], b->slots.values[n],
                                       b->slot_kib.values[s] << 10, b->piece_kib.values[p] << 10,
                                       (iron__direct_mode)b->direct.values[d]});
}

/* Lists that are not given have the default's value alone. */
static void begin(bench *b) {
    iron__feed_shape usual = iron__feed_shape_default(1);

    iron_config_init(&b->config);
    b->config.backend = "cuda";
    b->dtype = IRON_DTYPE_U32;
    b->turns = 5;
    b->readers = (list){1, {usual.readers}};
    b->slots = (list){1, {usual.slot_count}};
    b->slot_kib = (list){1, {usual.slot_bytes >> 10}};
    b->piece_kib = (list){1, {usual.piece_bytes >> 10}};
    b->direct = (list){1, {usual.direct}};
}

static void parse(bench *b, int argc, char **argv) {
    static const struct option options[] = {
        {"dtype", 1, NULL, 't'},
        {"backend", 1, NULL, 'b'},
        {"device", 1, NULL, 'k'},
        {"turns", 1, NULL, 'n'},
        {"cold", 0, NULL, 'c'},
        {"readers", 1, NULL, 'r'},
        {"slots", 1, NULL, 's'},
        {"slot-kib", 1, NULL, 'S'},
        {"piece-kib", 1, NULL, 'p'},
        {"direct", 1, NULL, 'd'},
        {0},
    };
    static const char lettered[] = "rsSpd";
    list *const lists[] = {&b->readers, &b->slots, &b->slot_kib, &b->piece_kib, &b->direct};
    iron_error err;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char *list_at = strchr(lettered, c);

        if (c == '?')
            exit(2);
        if (c == 't')
            check(iron_dtype_parse(optarg, &b->dtype, &err), "--dtype", &err);
        else if (c == 'b')
            b->config.backend = optarg;
        else if (c == 'k')
            b->config.device = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'n')
            b->turns = strtoul(optarg, NULL, 10);
        else if (c == 'c')
            b->is_cold = true;
        else if (list_at)
            parse_list(lists[list_at - lettered], optarg);
    }
    if (optind + 1 != argc || b->turns == 0 || b->turns > TURNS)
        die("usage: bench-feed FILE [OPTIONS], with 1 to 32 --turns", NULL);
    b->path = argv[optind];
}

static void expect(bench *b) {
    iron_config config = b->config;
    iron_source *s = open_source(b);
    iron_engine *cpu;

    config.backend = "cpu";
    cpu = make_engine(&config);
    b->bytes = (double)iron_source_tokens(s) * (double)iron_dtype_bytes(iron_source_dtype(s));
    b->expected = feed_file(cpu, s);
    iron_source_close(s);
    iron_engine_destroy(cpu);
}

int main(int argc, char **argv) {
    bench *b = calloc(1, sizeof *b);
    iron_engine *holder;
    double memory;

    if (!b)
        return 2;
    begin(b);
    parse(b, argc, argv);
    cross_lists(b);
    expect(b);
    holder = make_engine(&b->config); /* keeps the device's context while others come and go */
    memory = feed_memory(b);
    for (size_t turn = 0; turn < b->turns; turn++)
        for (size_t k = 0; k < b->row_count; k++)
            measure(b, &b->rows[k], turn);
    print_rows(b, memory);
    iron_engine_destroy(holder);
    free(b);
    return 0;
}
