/* SPDX-License-Identifier: MIT */
/*
 * bench_gpu_rows.c: the groups of bench-gpu: what is timed, and how each result is checked.
 */
#include "arena/device_gpu.c"
#include "bench_gpu.h"
#include "core/clock.h"
#include "ops/kit.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_TOKENS UINT64_C(786432)
#define ROUNDS       15u
#define CHAIN        200u
#define SHAPES       8u

typedef int (*cub_reduce)(const uint32_t *tokens, uint64_t count, uint32_t vocab, void *workspace,
                          size_t *workspace_bytes, void *result, void *stream);

/* CUB's reduction, from the plug-in beside this program. */
typedef struct cub_peer {
    cub_reduce reduce;
    size_t workspace_bytes;
    iron__gpu_buffer *workspace, *result;
} cub_peer;

/* An engine and how much of the resident tokens it is fed. */
typedef struct feeding {
    bench_engine engine;
    uint64_t count;
    bench_row *row;
    uint64_t expected;
} feeding;

static void feed(bench *b, void *context) {
    feeding *f = context;
    iron_error err;

    bench_check(iron__tokens_gpu_feed(f->engine.tokens, b->queue, b->tokens, 0, f->count, &err),
                f->row->name, &err);
    bench_check(iron__tokens_gpu_apply_pending(f->engine.tokens, b->queue, &err), f->row->name,
                &err);
}

static feeding make_feeding(bench *b, const char *group, const char *name, const char *mode,
                            uint64_t count, uint64_t batch) {
    feeding f = {.engine = bench_engine_make(b, mode, batch, false), .count = count};

    f.row = bench_add(b, group, name, (double)count * sizeof(uint32_t));
    f.expected = bench_reference(b, count, batch, false);
    bench_verify(b, f.row, &f.engine, count, f.expected);
    bench_engine_reset(b, &f.engine);
    return f;
}

static void end_feeding(bench *b, feeding *f) {
    bench_verify(b, f->row, &f->engine, f->count, f->expected);
    bench_engine_free(&f->engine);
}

static void run_cub(bench *b, void *context) {
    cub_peer *p = context;

    if (p->reduce((const uint32_t *)b->tokens->native, b->count, BENCH_VOCAB,
                  (void *)p->workspace->native, &p->workspace_bytes, (void *)p->result->native,
                  (void *)b->queue->native) != 0)
        bench_die("CUB failed", NULL);
}

/* The plug-in works on CUDA's addresses and streams. */
static bool open_cub(bench *b, cub_peer *p) {
    void *library = NULL;
    iron_error err;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);

    if (strcmp(b->backend, "cuda") != 0 || length <= 0)
        return false;
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    strcat(path, "/libiron-peer-cub.so");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&p->reduce = dlsym(library, "iron_peer_tokens_cub");
    if (!p->reduce || p->reduce(NULL, b->count, BENCH_VOCAB, NULL, &p->workspace_bytes, NULL,
                                (void *)b->queue->native) != 0)
        return false;
    bench_check(iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, p->workspace_bytes + 256,
                                        &p->workspace, &err),
                "CUB's memory", &err);
    bench_check(iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, 256, &p->result, &err),
                "CUB's memory", &err);
    return true;
}

/* CUB's answer against champion's. */
static void verify_cub(bench *b, bench_row *r, cub_peer *p, feeding *champion) {
    struct {
        uint64_t sum;
        uint32_t xors, padding;
    } got = {0};
    iron__gpu_copy copy = {.from = p->result, .to_host = &got, .bytes = sizeof got};
    iron__contribution closed;
    iron_error err;

    bench_verify(b, champion->row, &champion->engine, champion->count, champion->expected);
    bench_check(iron__tokens_gpu_fetch(champion->engine.tokens, b->queue, &champion->engine.nodes,
                                       &closed, &err),
                "champion", &err);
    bench_check(iron__gpu_copy_bytes(b->queue, &copy, &err), "CUB", &err);
    bench_check(iron__gpu_queue_wait(b->queue, &err), "CUB", &err);
    r->is_right = got.sum == closed.sum && got.xors == closed.xors;
}

/* Reading alone, in one of the shapes that a ceiling is the best of. */
typedef struct reading {
    pass_kernels *passes;
    pass_shape shape;
    bench_row *row;
} reading;

static void read_all(bench *b, void *context) {
    const reading *r = context;
    iron_error err;

    bench_check(put_pass(r->passes, b->queue, PASS_READ, r->shape, b->tokens,
                         b->bytes / PASS_QUAD_BYTES, 0, &err),
                "the ceiling", &err);
}

static size_t make_readings(bench *b, pass_kernels *passes, reading *readings) {
    size_t count = 0;

    for (const pass_shape *s; (s = pass_shape_for(&b->device->info, count)) && count < SHAPES;
         count++) {
        char shape[40], name[48];

        pass_shape_name(*s, shape, sizeof shape);
        snprintf(name, sizeof name, "read: %s", shape);
        readings[count] = (reading){passes, *s, bench_add(b, "resident", name, (double)b->bytes)};
    }
    return count;
}

/* The ceiling is the best of the shapes. */
static void choose_ceiling(bench *b, const reading *readings, size_t count) {
    b->ceiling = readings[0].row;
    for (size_t k = 1; k < count; k++)
        if (bench_median(readings[k].row) < bench_median(b->ceiling))
            b->ceiling = readings[k].row;
}

void bench_resident(bench *b) {
    reading readings[SHAPES];
    feeding rows[] = {
        make_feeding(b, "resident", "champion, one batch", "champion", b->count, b->count),
        make_feeding(b, "resident", "champion, 3 MiB batches", "champion", b->count, BATCH_TOKENS),
        make_feeding(b, "resident", "reduce, one batch", "reduce", b->count, b->count),
    };
    pass_kernels passes = {0};
    cub_peer cub = {0};
    bench_row *cub_row = NULL;
    size_t shapes;
    iron_error err;

    bench_check(pass_kernels_init(&passes, b->device, &err), "the ceiling", &err);
    shapes = make_readings(b, &passes, readings);
    if (open_cub(b, &cub))
        cub_row = bench_add(b, "resident", "CUB, the same monoid", (double)b->bytes);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < shapes; k++)
            bench_time(b, readings[k].row, read_all, &readings[k]);
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
            bench_time(b, rows[k].row, feed, &rows[k]);
        if (cub_row)
            bench_time(b, cub_row, run_cub, &cub);
    }
    choose_ceiling(b, readings, shapes);
    if (cub_row)
        verify_cub(b, cub_row, &cub, &rows[0]);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        end_feeding(b, &rows[k]);
    pass_kernels_deinit(&passes);
    iron__gpu_buffer_destroy(cub.workspace);
    iron__gpu_buffer_destroy(cub.result);
}

/* One batch in every mode; the O(nodes x tokens) ones a few times only. */
void bench_batch(bench *b) {
    for (size_t k = 0; iron__tokens_gpu_row_at(k); k++) {
        const iron__tokens_gpu_row *row = iron__tokens_gpu_row_at(k);
        feeding f;

        if (row->per_node && !b->device->info.is_gpu)
            continue; /* minutes, on a CPU */
        f = make_feeding(b, "batch", row->mode, row->mode, BATCH_TOKENS, BATCH_TOKENS);
        for (uint32_t round = 0; round < (row->per_node ? 5 : ROUNDS); round++)
            bench_time(b, f.row, feed, &f);
        end_feeding(b, &f);
    }
}

/* Calls that are recorded once and replayed: call k takes the batch of `count` tokens that begins
 * at k * step, positions counted in each. */
typedef struct calls {
    bench_engine engine;
    bench_row *row;
    uint64_t count, step;
    uint32_t calls;
} calls;

static void put_calls(bench *b, void *context) {
    const calls *c = context;
    iron_error err;

    for (uint32_t k = 0; k < c->calls; k++) {
        bench_check(iron__tokens_gpu_feed(c->engine.tokens, b->queue, b->tokens, k * c->step,
                                          c->count, &err),
                    c->row->name, &err);
        bench_check(iron__tokens_gpu_apply_pending(c->engine.tokens, b->queue, &err), c->row->name,
                    &err);
    }
}

/* The CPU's state after one replay. */
static uint64_t reference_of_calls(const bench *b, const calls *c) {
    iron_report report = {.struct_size = sizeof report};
    iron_engine *cpu = NULL;
    iron_config config;
    iron_error err;

    iron_config_init(&config);
    config.backend = "cpu";
    config.batch = c->count;
    config.positions = IRON_POSITIONS_BATCH;
    bench_check(iron_engine_create(&config, &cpu, &err), "the CPU's engine", &err);
    for (uint32_t k = 0; k < c->calls; k++)
        for (uint64_t done = 0; done < c->count;) {
            uint64_t from = (k * c->step + done) % BENCH_CHUNK, left = c->count - done;
            uint64_t some = left < BENCH_CHUNK - from ? left : BENCH_CHUNK - from;

            bench_check(iron_engine_feed(cpu, b->chunk + from, (size_t)some, &err),
                        "the CPU's feed", &err);
            done += some;
        }
    bench_check(iron_engine_report(cpu, &report, &err), "the CPU's report", &err);
    iron_engine_destroy(cpu);
    return report.state;
}

static iron__gpu_graph *record(bench *b, bench_work work, void *context) {
    iron__gpu_graph *graph = NULL;
    iron_error err;

    bench_check(iron__gpu_graph_begin(b->queue, &err), "recording", &err);
    work(b, context);
    bench_check(iron__gpu_graph_end(b->queue, &graph, &err), "recording", &err);
    return graph;
}

static void replay(bench *b, void *context) {
    iron_error err;

    bench_check(iron__gpu_graph_replay(context, b->queue, &err), "replay", &err);
}

/* Memory whose reading empties the caches. */
typedef struct cache_flush {
    pass_kernels passes;
    iron__gpu_buffer *memory;
} cache_flush;

/* flush NULL: caches stay as they are. */
static void time_replays(bench *b, bench_row *r, iron__gpu_graph *graph, cache_flush *flush) {
    iron_error err;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (flush)
            bench_check(put_pass(&flush->passes, b->queue, PASS_READ,
                                 *pass_shape_for(&b->device->info, 0), flush->memory,
                                 flush->memory->bytes / PASS_QUAD_BYTES, 0, &err),
                        "flush", &err);
        bench_time(b, r, replay, graph);
    }
}

static void time_calls(bench *b, const char *group, const char *name, const char *mode, calls c,
                       cache_flush *flush) {
    iron__contribution closed;
    iron__gpu_graph *graph;
    iron_error err;

    c.engine = bench_engine_make(b, mode, c.count, true);
    c.row = bench_add(b, group, name, (double)c.count * sizeof(uint32_t));
    graph = record(b, put_calls, &c);
    time_replays(b, c.row, graph, flush);
    for (uint32_t k = 0; k < c.row->samples; k++)
        c.row->ms[k] /= c.calls;
    bench_engine_reset(b, &c.engine);
    replay(b, graph);
    bench_check(iron__tokens_gpu_fetch(c.engine.tokens, b->queue, &c.engine.nodes, &closed, &err),
                mode, &err);
    c.row->is_right = iron__nodes_hash(&c.engine.nodes) == reference_of_calls(b, &c);
    iron__gpu_graph_destroy(b->device, graph);
    bench_engine_free(&c.engine);
}

void bench_replay(bench *b) {
    static const char *const modes[] = {"reduce", "champion"};

    for (size_t k = 0; b->device->info.can_graph && k < COUNT(modes); k++) {
        char name[48];

        snprintf(name, sizeof name, "%s, chain of %u, each", modes[k], CHAIN);
        time_calls(b, "replay", name, modes[k], (calls){.count = BATCH_TOKENS, .calls = CHAIN},
                   NULL);
    }
}

/* A kernel that does nothing: it widens no tokens. */
static void put_empty(bench *b, void *context) {
    iron__gpu_kernel *kernel = NULL;
    uint64_t begin = 0, count = 0;
    iron_error err;

    (void)context;
    bench_check(iron__gpu_kernel_find(b->device, b->program, "tokens_widen_u8", &kernel, &err),
                "the empty kernel", &err);
    bench_check(IRON_KIT_LAUNCH(b->queue, &err, kernel, 1, TOKENS_WIDEN_THREADS,
                                IRON_GPU_BUFFER(b->tokens), IRON_GPU_BUFFER(b->tokens),
                                IRON_GPU_BUFFER(b->tokens), IRON_GPU_VALUE(begin),
                                IRON_GPU_VALUE(count)),
                "the empty kernel", &err);
}

#define CALLS_BYTES ((uint64_t)2 << 30) /* of a chain: far more than the caches hold */
#define FLUSH_BYTES ((size_t)256 << 20)

void bench_calls(bench *b) {
    cache_flush flush = {.memory = NULL};
    iron__gpu_graph *empty;
    iron_error err;

    if (!b->device->info.can_graph || b->bytes < CALLS_BYTES)
        return;
    bench_check(pass_kernels_init(&flush.passes, b->device, &err), "flush", &err);
    bench_check(iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, FLUSH_BYTES,
                                        &flush.memory, &err),
                "flush", &err);
    empty = record(b, put_empty, NULL);
    time_replays(b, bench_add(b, "call", "empty kernel", 0), empty, &flush);
    iron__gpu_graph_destroy(b->device, empty);
    for (uint64_t mib = 16; mib <= 256; mib *= 2) {
        calls c = {.count = (mib << 20) / sizeof(uint32_t), .calls = 1};
        char name[48];

        snprintf(name, sizeof name, "champion, %" PRIu64 " MiB", mib);
        time_calls(b, "call", name, "champion", c, &flush);
        c.calls = (uint32_t)(CALLS_BYTES / (mib << 20));
        c.step = c.count;
        snprintf(name, sizeof name, "champion, %" PRIu64 " MiB, of a chain", mib);
        time_calls(b, "call", name, "champion", c, &flush);
    }
    iron__gpu_buffer_destroy(flush.memory);
    pass_kernels_deinit(&flush.passes);
}

#define FEED_BYTES ((size_t)1 << 30)
#define COPY_BYTES ((size_t)64 << 20)

/* Bare copies from page-locked memory, to the device's tokens. */
static void time_copies(bench *b, bench_row *r, const void *memory) {
    uint64_t start;
    iron_error err;

    bench_check(iron__gpu_queue_wait(b->queue, &err), "copies", &err);
    start = iron__clock_ns();
    for (size_t at = 0; at < FEED_BYTES; at += COPY_BYTES) {
        iron__gpu_copy copy = {.to = b->tokens,
                               .to_offset = at % b->bytes,
                               .from_host = (const char *)memory + at,
                               .bytes = COPY_BYTES};

        bench_check(iron__gpu_copy_bytes(b->queue, &copy, &err), "copies", &err);
    }
    bench_check(iron__gpu_queue_wait(b->queue, &err), "copies", &err);
    bench_sample(r, (double)(iron__clock_ns() - start) * 1e-6);
}

static void time_feed(bench_row *r, iron_engine *e, const uint32_t *memory) {
    iron_report report = {.struct_size = sizeof report};
    uint64_t start = iron__clock_ns();
    iron_error err;

    bench_check(iron_engine_feed(e, memory, FEED_BYTES / sizeof(uint32_t), &err), "feed", &err);
    bench_check(iron_engine_report(e, &report, &err), "report", &err);
    bench_sample(r, (double)(iron__clock_ns() - start) * 1e-6);
}

static iron_engine *make_engine(const char *backend, uint32_t device) {
    iron_engine *e = NULL;
    iron_config config;
    iron_error err;

    iron_config_init(&config);
    config.backend = backend;
    config.device = device;
    bench_check(iron_engine_create(&config, &e, &err), "the engine", &err);
    return e;
}

/* Does an engine that was fed `times` times what is in the memory agree with the CPU's? */
static bool agrees(iron_engine *e, const uint32_t *memory, uint32_t times) {
    iron_report got = {.struct_size = sizeof got}, want = {.struct_size = sizeof want};
    iron_engine *cpu = make_engine("cpu", 0);
    iron_error err;

    for (uint32_t k = 0; k < times; k++)
        bench_check(iron_engine_feed(cpu, memory, FEED_BYTES / sizeof(uint32_t), &err), "feed",
                    &err);
    bench_check(iron_engine_report(e, &got, &err), "report", &err);
    bench_check(iron_engine_report(cpu, &want, &err), "report", &err);
    iron_engine_destroy(cpu);
    return got.state == want.state && got.sum == want.sum && got.xor_total == want.xor_total;
}

void bench_feed(bench *b) {
    bench_row *copies, *feeds;
    iron_engine *e;
    iron_error err;
    void *memory;

    if (b->bytes < COPY_BYTES || !b->device->info.is_gpu)
        return;
    e = make_engine(b->backend, (uint32_t)b->index);
    bench_check(iron_engine_tokens_alloc(e, FEED_BYTES, &memory, &err), "memory", &err);
    bench_check(iron_generate(2, BENCH_VOCAB, 0, memory, FEED_BYTES / sizeof(uint32_t), &err),
                "tokens", &err);
    copies = bench_add(b, "feed", "bare copies, page-locked", (double)FEED_BYTES);
    feeds = bench_add(b, "feed", "engine, page-locked", (double)FEED_BYTES);
    for (uint32_t round = 0; round < 7; round++) {
        time_copies(b, copies, memory);
        time_feed(feeds, e, memory);
    }
    feeds->is_right = agrees(e, memory, 7);
    iron_engine_tokens_free(e, memory);
    iron_engine_destroy(e);
}
