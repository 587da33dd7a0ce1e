/* SPDX-License-Identifier: MIT */
/*
 * bench_gpu.c: the modes on a GPU, next to its memory bandwidth measured in the same run.
 *
 *   resident   8 GiB of tokens in device memory: the read ceiling, champion as one batch and as
 *              3 MiB batches with the lattice updated for each, reduce, and CUB where it was built
 *   batch      one 3 MiB batch, 4096 nodes: every mode, reduction and application
 *   replay     the same for reduce and champion, as a recorded chain of launches
 *   call       batches of 16 to 256 MiB, caches emptied before: one call replayed, next to an empty
 *              kernel, and a chain of calls with other tokens each
 *   feed       from page-locked host memory, next to the rate of plain copies
 *
 * Rows of a group are timed in turn, so that drift affects all equally; figures are medians of
 * event times. Every row's result is compared with the CPU's before and after: a wrong one is
 * reported as WRONG and the program ends with status 1. Timings do not affect the status.
 *
 *     bench-gpu [--backend cuda|opencl] [--device K] [--gib N] [--json FILE]
 */
#include "bench_gpu.h"

#include "core/clock.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void bench_die(const char *what, const iron_error *err) {
    fprintf(stderr, "bench-gpu: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(2);
}

void bench_check(iron_status status, const char *what, const iron_error *err) {
    if (status != IRON_OK)
        bench_die(what, err);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

bench_row *bench_add(bench *b, const char *group, const char *name, double bytes) {
    bench_row *r = &b->rows[b->row_count++];

    if (b->row_count > BENCH_ROWS)
        bench_die("too many rows", NULL);
    *r = (bench_row){.group = group, .bytes = bytes, .is_right = true};
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

void bench_sample(bench_row *r, double ms) {
    if (r->samples < BENCH_SAMPLES)
        r->ms[r->samples++] = ms;
}

double bench_median(const bench_row *r) {
    double sorted[BENCH_SAMPLES];

    memcpy(sorted, r->ms, sizeof sorted);
    qsort(sorted, r->samples, sizeof sorted[0], by_value);
    return r->samples ? sorted[r->samples / 2] : 0;
}

double bench_rate(const bench_row *r) {
    double ms = bench_median(r);

    return ms > 0 ? r->bytes / ms * 1e-6 : 0;
}

/* Times what `work` puts into the queue. */
void bench_time(bench *b, bench_row *r, bench_work work, void *context) {
    iron_error err;
    double ms;

    bench_check(iron__gpu_event_record(b->queue, b->from, &err), "event", &err);
    work(b, context);
    bench_check(iron__gpu_event_record(b->queue, b->to, &err), "event", &err);
    bench_check(iron__gpu_event_wait(b->device, b->to, &err), r->name, &err);
    bench_check(iron__gpu_event_elapsed(b->device, b->from, b->to, &ms, &err), "event", &err);
    bench_sample(r, ms);
}

/* An engine's inside with its own nodes, and what the CPU says it should come to. */
bench_engine bench_engine_make(bench *b, const char *mode, uint64_t batch, bool by_batch) {
    const iron_allocator *a = iron__allocator_default();
    iron__tokens_gpu_config config = {.row = iron__tokens_gpu_row_find(mode),
                                      .lattice = b->lattice,
                                      .allocator = a,
                                      .program = b->program,
                                      .batch = batch,
                                      .nodes = BENCH_NODES,
                                      .vocab = BENCH_VOCAB,
                                      .by_batch = by_batch,
                                      .is_chained = true};
    bench_engine e = {.batch = batch, .by_batch = by_batch};
    iron_error err;

    bench_check(iron__nodes_init(&e.nodes, BENCH_NODES, b->lattice, NULL, a, &err), "nodes", &err);
    bench_check(iron__tokens_gpu_create(b->device, &config, &e.tokens, &err), mode, &err);
    bench_engine_reset(b, &e);
    return e;
}

void bench_engine_reset(bench *b, bench_engine *e) {
    iron_error err;

    iron__nodes_deinit(&e->nodes);
    bench_check(
        iron__nodes_init(&e->nodes, BENCH_NODES, b->lattice, NULL, iron__allocator_default(), &err),
        "nodes", &err);
    bench_check(iron__tokens_gpu_begin(e->tokens, b->queue, &e->nodes, iron__contribution_neutral(),
                                       0, &err),
                "begin", &err);
}

void bench_engine_free(bench_engine *e) {
    iron__tokens_gpu_destroy(e->tokens);
    iron__nodes_deinit(&e->nodes);
}

/* The CPU's answer for `count` tokens: the chunk, again and again. */
static uint64_t state_on_cpu(const bench *b, uint64_t count, uint64_t batch, bool by_batch) {
    iron_report report = {.struct_size = sizeof report};
    iron_engine *cpu = NULL;
    iron_config config;
    iron_error err;

    iron_config_init(&config);
    config.backend = "cpu";
    config.batch = batch;
    config.vocab = BENCH_VOCAB;
    config.nodes = BENCH_NODES;
    config.positions = by_batch ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
    bench_check(iron_engine_create(&config, &cpu, &err), "the CPU's engine", &err);
    for (uint64_t done = 0; done < count;) {
        uint64_t some = count - done < BENCH_CHUNK ? count - done : BENCH_CHUNK;

        bench_check(iron_engine_feed(cpu, b->chunk, (size_t)some, &err), "the CPU's feed", &err);
        done += some;
    }
    bench_check(iron_engine_end_batch(cpu, &err), "the CPU's engine", &err);
    bench_check(iron_engine_report(cpu, &report, &err), "the CPU's report", &err);
    iron_engine_destroy(cpu);
    return report.state ^ report.sum ^ report.xor_total;
}

uint64_t bench_reference(const bench *b, uint64_t count, uint64_t batch, bool by_batch) {
    return state_on_cpu(b, count, batch, by_batch);
}

/* Feeds the first `count` resident tokens to a fresh engine: is it right? */
void bench_verify(bench *b, bench_row *r, bench_engine *e, uint64_t count, uint64_t expected) {
    iron__contribution closed;
    iron_error err;

    bench_engine_reset(b, e);
    bench_check(iron__tokens_gpu_feed(e->tokens, b->queue, b->tokens, 0, count, &err), r->name,
                &err);
    bench_check(iron__tokens_gpu_end_batch(e->tokens, b->queue, &err), r->name, &err);
    bench_check(iron__tokens_gpu_fetch(e->tokens, b->queue, &e->nodes, &closed, &err), r->name,
                &err);
    if ((iron__nodes_hash(&e->nodes) ^ closed.sum ^ closed.xors) != expected)
        r->is_right = false;
}

static void fill_resident(bench *b) {
    iron_error err;

    for (uint64_t done = 0; done < b->count; done += BENCH_CHUNK) {
        uint64_t some = b->count - done < BENCH_CHUNK ? b->count - done : BENCH_CHUNK;
        iron__gpu_copy copy = {.to = b->tokens,
                               .to_offset = (size_t)done * sizeof(uint32_t),
                               .from_host = b->chunk,
                               .bytes = (size_t)some * sizeof(uint32_t)};

        bench_check(iron__gpu_copy_bytes(b->queue, &copy, &err), "tokens", &err);
    }
    bench_check(iron__gpu_queue_wait(b->queue, &err), "tokens", &err);
}

static void set_up(bench *b) {
    size_t backend = iron__gpu_backend_find(b->backend);
    iron_error err;

    if (backend == iron__gpu_backend_count())
        bench_die("no such backend", NULL);
    bench_check(iron__gpu_device_open(backend, b->index, &b->device, &err), b->backend, &err);
    bench_check(iron__gpu_queue_create(b->device, &b->queue, &err), "queue", &err);
    bench_check(iron__gpu_event_create(b->device, &b->from, &err), "event", &err);
    bench_check(iron__gpu_event_create(b->device, &b->to, &err), "event", &err);
    bench_check(iron__gpu_program_load(b->device, &iron__tokens_image, &b->program, &err),
                "kernels", &err);
    bench_check(iron_lattice_create(NULL, 0, &b->lattice, &err), "lattice", &err);
    b->chunk = malloc(BENCH_CHUNK * sizeof *b->chunk);
    if (!b->chunk)
        bench_die("out of memory", NULL);
    bench_check(iron_generate(1, BENCH_VOCAB, 0, b->chunk, BENCH_CHUNK, &err), "tokens", &err);
    b->count = b->bytes / sizeof(uint32_t);
    bench_check(
        iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, b->bytes, &b->tokens, &err),
        "device memory", &err);
    fill_resident(b);
}

static void tear_down(bench *b) {
    free(b->chunk);
    iron__gpu_buffer_destroy(b->tokens);
    iron_lattice_destroy(b->lattice);
    iron__gpu_program_unload(b->device, b->program);
    iron__gpu_event_destroy(b->device, b->from);
    iron__gpu_event_destroy(b->device, b->to);
    iron__gpu_queue_destroy(b->queue);
    iron__gpu_device_close(b->device);
}

static void print_rows(const bench *b) {
    printf("%s, %s\n%-9s %-34s %12s %10s %9s\n", b->device->info.name, b->device->info.driver, "",
           "", "median", "GB/s", "of ceiling");
    for (size_t k = 0; k < b->row_count; k++) {
        const bench_row *r = &b->rows[k];
        double ms = bench_median(r),
               share = b->ceiling ? bench_rate(r) / bench_rate(b->ceiling) : 0;

        printf("%-9s %-34s %9.4f %s %10.1f", r->group, r->name, ms < 0.1 ? ms * 1e3 : ms,
               ms < 0.1 ? "us" : "ms", bench_rate(r));
        if (strcmp(r->group, "resident") == 0)
            printf(" %9.3f", share);
        printf("%s\n", r->is_right ? "" : "  WRONG");
    }
}

static void write_json(const bench *b, const char *path) {
    FILE *file = fopen(path, "w");

    if (!file)
        bench_die(path, NULL);
    fprintf(file, "{\n  \"device\": \"%s\",\n  \"driver\": \"%s\",\n  \"vocab\": %u,\n",
            b->device->info.name, b->device->info.driver, BENCH_VOCAB);
    fprintf(file, "  \"nodes\": %u,\n  \"resident_bytes\": %zu,\n", BENCH_NODES, b->bytes);
    fprintf(file, "  \"ceiling\": \"%s\",\n  \"ceiling_gb_s\": %.3f,\n  \"rows\": [",
            b->ceiling->name, bench_rate(b->ceiling));
    for (size_t k = 0; k < b->row_count; k++) {
        const bench_row *r = &b->rows[k];

        fprintf(file,
                "%s\n    {\"group\": \"%s\", \"name\": \"%s\", \"median_ms\": %.6f, "
                "\"gb_s\": %.3f, \"verified\": %s, \"samples_ms\": [",
                k ? "," : "", r->group, r->name, bench_median(r), bench_rate(r),
                r->is_right ? "true" : "false");
        for (uint32_t n = 0; n < r->samples; n++)
            fprintf(file, "%s%.6f", n ? ", " : "", r->ms[n]);
        fprintf(file, "]}");
    }
    fprintf(file, "\n  ]\n}\n");
    if (fclose(file) != 0)
        bench_die(path, NULL);
}

static const char *parse(bench *b, int argc, char **argv) {
    static const struct option options[] = {{"backend", required_argument, NULL, 'b'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"gib", required_argument, NULL, 'g'},
                                            {"json", required_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    const char *json = NULL;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'b')
            b->backend = optarg;
        else if (c == 'd')
            b->index = strtoul(optarg, NULL, 10);
        else if (c == 'g')
            b->bytes = (size_t)(strtod(optarg, NULL) * (double)((size_t)1 << 30)) / 64 * 64;
        else if (c == 'j')
            json = optarg;
        else
            exit(2);
    }
    return json;
}

int main(int argc, char **argv) {
    bench *b = calloc(1, sizeof *b);
    const char *json;
    int wrong = 0;

    if (!b)
        return 2;
    b->backend = "cuda";
    b->bytes = (size_t)8 << 30;
    json = parse(b, argc, argv);
    set_up(b);
    bench_resident(b);
    bench_batch(b);
    bench_replay(b);
    bench_calls(b);
    bench_feed(b);
    print_rows(b);
    if (json)
        write_json(b, json);
    for (size_t k = 0; k < b->row_count; k++)
        wrong |= !b->rows[k].is_right;
    tear_down(b);
    free(b);
    return wrong;
}
