/* SPDX-License-Identifier: MIT */
/*
 * bench_tokens.c: the rates of the CPU variants, next to the memory bandwidth measured in the same
 * run.
 *
 * Every row uses the public engine, including lattice updates, over a buffer of at least four times
 * the last-level cache. Rows are timed round-robin, so that drift affects all equally; the figure
 * is the median. The ceiling is a row like the others. The modes of Part I read every token once
 * per node and get a small share of the buffer. The program only reports ratios; it has no pass or
 * fail.
 */
#include "arena/ceilings_cpu.c"
#include "core/cpu.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef HAVE_XXHASH
/* Compiled here, with this build's flags: half again as fast as Debian's shared library. */
#define XXH_INLINE_ALL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wshadow"
#include <xxhash.h>
#pragma GCC diagnostic pop
#endif

#define TOKENS_BYTES_MIN ((uint64_t)512 << 20)
#define TURN_SECONDS     0.05
#define ROUNDS           9
#define ROWS_MAX         64
#define PER_NODE_TOKENS  16384u

static const uint32_t vocabs[] = {65536, 50257, 128256};

/* An engine's row has an engine, a ceiling's a pool, XXH3's neither. */
typedef struct row {
    const char *name;
    uint32_t vocab; /* 0: does not depend on it */
    bool uses_all_threads;
    iron_engine *engine;
    iron__thread_pool *pool;
    size_t tokens;
    double seconds[ROUNDS];
    double gb_s;
} row;

typedef struct bench {
    uint32_t *tokens;
    size_t count;
    row rows[ROWS_MAX];
    size_t row_count;
    uint32_t threads;
    double read_gb_s[2]; /* one thread, all threads */
    double xxh3_gb_s;
} bench;

static double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *text) {
    fprintf(stderr, "bench-tokens: %s\n", text);
    exit(2);
}

static size_t buffer_bytes(void) {
    uint64_t bytes = 4 * iron__cpu_last_cache_bytes();

    if (bytes < TOKENS_BYTES_MIN)
        bytes = TOKENS_BYTES_MIN;
    return (size_t)(bytes >> 20 << 20);
}

static void make_tokens(bench *b) {
    size_t bytes = buffer_bytes();

    b->count = bytes / sizeof(uint32_t);
    b->tokens = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->tokens == MAP_FAILED)
        die("out of memory for the tokens");
    madvise(b->tokens, bytes, MADV_HUGEPAGE);
    iron_generate(1, 50257, 0, b->tokens, b->count, NULL);
}

/* The ceiling is read off the same buffer, in the same rounds. */
static void add_ceilings(bench *b) {
    static const char *const names[] = {"read ceiling, 1 thread", "read ceiling, all threads"};
    iron_error err;

    b->threads = iron__cpu_threads();
    for (int k = 0; k < 2; k++) {
        row *r = &b->rows[b->row_count++];

        *r = (row){.name = names[k], .tokens = b->count, .uses_all_threads = k == 1};
        if (iron__thread_pool_create(k ? b->threads : 1, iron__allocator_default(), &r->pool, &err))
            die(err.text);
    }
}

static void add_row(bench *b, const iron_mode_info *info, uint32_t vocab) {
    bool is_per_node = strcmp(info->name, "node") == 0 || strcmp(info->name, "hybrid") == 0;
    row *r = &b->rows[b->row_count++];
    iron_config config;
    iron_error err;

    iron_config_init(&config);
    config.backend = "cpu";
    config.vocab = vocab;
    config.mode = info->variant;
    if (iron_engine_create(&config, &r->engine, &err) != IRON_OK)
        die(err.text);
    config = *iron_engine_config(r->engine);
    r->name = info->variant;
    r->vocab = vocab;
    r->uses_all_threads = config.threads > 1;
    r->tokens = is_per_node ? PER_NODE_TOKENS : b->count;
}

static void add_rows(bench *b) {
    add_ceilings(b);
#ifdef HAVE_XXHASH
    b->rows[b->row_count++] = (row){.name = "tokens.cpu.xxh3", .tokens = b->count};
#endif
    for (size_t v = 0; v < sizeof vocabs / sizeof vocabs[0]; v++) {
        for (size_t k = 0; k < iron_variant_count("cpu"); k++) {
            iron_mode_info info = {.struct_size = sizeof info};

            if (iron_variant_at("cpu", k, &info, NULL) == IRON_OK && info.is_available &&
                b->row_count < ROWS_MAX)
                add_row(b, &info, vocabs[v]);
        }
    }
}

/* What a pass gives must be what the first gave: then it cannot have been left out. */
static void require_same(uint64_t *first, uint64_t result) {
    if (*first && *first != result)
        die("a pass over the same tokens gives another result");
    *first = result;
}

/* One pass of a row. */
static void run_row(const bench *b, row *r) {
    static uint64_t first_read;
    iron_error err;

    if (r->pool) {
        const way read = {.width = widest(), .level = INTO_L2, .ahead_bytes = IRON_PREFETCH_BYTES};
        char *from = (char *)b->tokens;
        work w = {&read, IRON_CPU_READ, (size_t)1 << 20, from, from, from, 0};

        iron__thread_pool_run(r->pool, run_piece, &w, b->count * sizeof(uint32_t) / w.piece);
        require_same(&first_read, w.result);
        return;
    }
    if (r->engine) {
        if (iron_engine_feed(r->engine, b->tokens, r->tokens, &err) != IRON_OK ||
            iron_engine_end_batch(r->engine, &err) != IRON_OK)
            die(err.text);
        return;
    }
#ifdef HAVE_XXHASH
    static uint64_t first_hash;

    require_same(&first_hash, XXH3_64bits(b->tokens, b->count * sizeof(uint32_t)));
#endif
}

/* After the first, untimed pass: every row of a vocabulary against its first row, the reference. */
static void verify_rows(const bench *b) {
    iron_report want = {.struct_size = sizeof want}, got = want;
    const row *reference = NULL;

    for (size_t k = 0; k < b->row_count; k++) {
        const row *r = &b->rows[k];

        if (!r->engine)
            continue;
        if (iron_engine_report(r->engine, &got, NULL) != IRON_OK)
            die("no report");
        if (!reference || reference->vocab != r->vocab) {
            reference = r;
            want = got;
        }
        if (r->tokens == reference->tokens &&
            (got.xor_total != want.xor_total || got.sum != want.sum || got.state != want.state)) {
            fprintf(stderr, "bench-tokens: %s with vocab %" PRIu32 " is WRONG\n", r->name,
                    r->vocab);
            exit(1);
        }
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A row's turn: a pass to wake processor and memory from whatever rest the row before gave them,
 * then the mean of as many as the turn takes: batches are applied many at once, so not every pass
 * costs the same. */
static double time_turn(const bench *b, row *r) {
    double began = now(), started, ended;
    int passes = 0;

    run_row(b, r);
    started = now();
    if (started - began > TURN_SECONDS)
        return started - began;
    do {
        run_row(b, r);
        passes++;
        ended = now();
    } while (ended - started < TURN_SECONDS);
    return (ended - started) / passes;
}

static void time_rows(bench *b) {
    for (int round = -1; round < ROUNDS; round++) {
        for (size_t k = 0; k < b->row_count; k++) {
            if (round < 0)
                run_row(b, &b->rows[k]);
            else
                b->rows[k].seconds[round] = time_turn(b, &b->rows[k]);
        }
        if (round < 0)
            verify_rows(b);
    }
    for (size_t k = 0; k < b->row_count; k++) {
        row *r = &b->rows[k];

        qsort(r->seconds, ROUNDS, sizeof r->seconds[0], by_value);
        r->gb_s = (double)r->tokens * sizeof(uint32_t) / r->seconds[ROUNDS / 2] * 1e-9;
        if (r->pool)
            b->read_gb_s[r->uses_all_threads] = r->gb_s;
        else if (!r->engine)
            b->xxh3_gb_s = r->gb_s;
    }
}

static double ceiling_of(const bench *b, const row *r) { return b->read_gb_s[r->uses_all_threads]; }

static void print_table(const bench *b) {
    printf("\ntokens on the CPU: %zu MiB, %u threads, medians of %d interleaved passes, lattice of "
           "4096 nodes updated\n\n%-8s %-28s %9s %12s %8s\n",
           b->count * sizeof(uint32_t) >> 20, b->threads, ROUNDS, "vocab", "row", "GB/s",
           "of ceiling", "x XXH3");
    for (size_t k = 0; k < b->row_count; k++) {
        const row *r = &b->rows[k];
        char vocab[16] = "";

        if (r->vocab && (k == 0 || b->rows[k - 1].vocab != r->vocab))
            snprintf(vocab, sizeof vocab, "%" PRIu32, r->vocab);
        printf("%-8s %-28s %9.*f %10.1f %%", vocab, r->name, r->gb_s < 0.1 ? 4 : 2, r->gb_s,
               100 * r->gb_s / ceiling_of(b, r));
        if (b->xxh3_gb_s > 0)
            printf(" %8.2f", r->gb_s / b->xxh3_gb_s);
        putchar('\n');
    }
}

static void print_json(const bench *b, const char *path) {
    FILE *f = fopen(path, "w");

    if (!f)
        die("cannot write the JSON file");
    fprintf(
        f,
        "{\"schema\": \"iron.bench/1\", \"iron\": \"%s\", \"threads\": %u, \"buffer_bytes\": %zu,"
        "\n \"read_ceiling_gb_s\": {\"one_thread\": %.3f, \"all_threads\": %.3f},\n \"rows\": [",
        iron_version(), b->threads, b->count * sizeof(uint32_t), b->read_gb_s[0], b->read_gb_s[1]);
    for (size_t k = 0; k < b->row_count; k++) {
        const row *r = &b->rows[k];

        fprintf(f,
                "%s\n  {\"name\": \"%s\", \"vocab\": %" PRIu32 ", \"tokens\": %zu, \"median_s\": "
                "%.9f, \"gb_s\": %.4f, \"of_ceiling\": %.4f}",
                k ? "," : "", r->name, r->vocab, r->tokens, r->seconds[ROUNDS / 2], r->gb_s,
                r->gb_s / ceiling_of(b, r));
    }
    fprintf(f, "\n ]}\n");
    if (fclose(f) != 0)
        die("cannot write the JSON file");
}

int main(int argc, char **argv) {
    static bench b;

    if (argc != 1 && !(argc == 3 && strcmp(argv[1], "--json") == 0))
        die("usage: bench-tokens [--json FILE]");
    make_tokens(&b);
    add_rows(&b);
    time_rows(&b);
    print_table(&b);
    if (argc == 3)
        print_json(&b, argv[2]);
    for (size_t k = 0; k < b.row_count; k++) {
        iron_engine_destroy(b.rows[k].engine);
        iron__thread_pool_destroy(b.rows[k].pool);
    }
    munmap(b.tokens, b.count * sizeof(uint32_t));
    return 0;
}
