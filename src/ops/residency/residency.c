/* SPDX-License-Identifier: MIT */
/*
 * residency.c: keeping a table in the L2 cache while a stream passes through it: sum and XOR of a
 * stream of records, each with a key that is looked up in a table. Only CUDA races: OpenCL has no
 * cache hints.
 *
 * Sums of integers are exact in any order, so there is one right answer.
 *
 * The part of the cache that is set aside is one state for all users of the device, and contenders
 * take turns. Another contender's set-aside would make the cache smaller, and lines that another
 * kernel marked would stay in it. So each run first brings the cache into the state that its
 * contender wants; in a race the untimed first run of a turn pays for the driver calls.
 */
#include "core/fail.h"
#include "core/number.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"
#include "ops/residency/kernel_params.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* The answer, over all words of the stream with keys replaced by key ^ table[...]. */
typedef struct answer {
    uint64_t sum;  /* modulo 2^64 */
    uint64_t xors; /* below 2^32 */
} answer;

#define TABLE_MIB_MAX 64.0

/* The axis "table" is in MiB. */
static uint64_t table_bytes_of(const iron__case *c) { return (uint64_t)c->at[0] << 20; }

/* The table word that a key refers to: uniform, without a division. */
static uint32_t place_of(uint32_t key, uint32_t words) {
    return (uint32_t)((uint64_t)key * words >> 32);
}

typedef struct adding {
    const uint32_t *stream, *table;
    uint32_t words;
    _Atomic uint64_t sum, xors;
} adding;

static void add_piece(void *context, size_t begin, size_t end) {
    adding *a = context;
    uint64_t sum = 0, xors = 0;

    for (size_t i = begin; i < end; i++) {
        uint32_t word = a->stream[i];

        if (i % RESIDENCY_RECORD == 0)
            word ^= a->table[place_of(word, a->words)];
        sum += word;
        xors ^= word;
    }
    atomic_fetch_add(&a->sum, sum);
    atomic_fetch_xor(&a->xors, xors);
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    adding a = {.words = (uint32_t)(table_bytes_of(&p->c) / sizeof(uint32_t))};

    p->output_bytes = sizeof(answer);
    IRON_TRY(iron__data_input(p, "stream", (size_t)p->c.rows, NULL, err));
    IRON_TRY(iron__data_input(p, "table", a.words, NULL, err));
    IRON_TRY(iron__data_take(&p->reference, "answer", sizeof(answer), err));
    a.stream = p->inputs[0].data;
    a.table = p->inputs[1].data;
    iron__data_pieces(p->pool, (size_t)p->c.rows, add_piece, &a);
    *(answer *)p->reference.data = (answer){a.sum, a.xors};
    return IRON_OK;
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    const answer *is = output, *right = problem->reference.data;

    if (is->sum != right->sum)
        snprintf(text, size, "the sum is %" PRIu64 ", should be %" PRIu64, is->sum, right->sum);
    else if (is->xors != right->xors)
        snprintf(text, size, "the XOR is %" PRIx64 ", should be %" PRIx64, is->xors, right->xors);
    else
        return true;
    return false;
}

IRON_KIT_IMAGE(residency)

/* How a contender uses the cache: a launcher's own. */
typedef struct cache_use {
    bool is_keeping; /* cache is set aside for the table */
    bool is_marking; /* the kernel marks cache lines itself */
} cache_use;

/* buffers[] of a work. */
enum { BUFFER_SHARES, BUFFER_COUNTER };

/* Sets `bytes` of the device's cache aside and clears marks of other kernels, unless this contender
 * marks lines itself. Calls the driver only if something changes. */
static iron_status prepare_cache(iron__gpu_device *device, uint64_t bytes, bool is_marking,
                                 iron_error *err) {
    bool is_foreign = device->has_persisting_lines && !is_marking;

    if (is_foreign || (device->persisting_bytes && device->persisting_bytes != bytes))
        IRON_TRY(iron__gpu_cache_reserve(device, 0, err));
    if (device->persisting_bytes != bytes)
        IRON_TRY(iron__gpu_cache_reserve(device, bytes, err));
    device->has_persisting_lines = device->has_persisting_lines || is_marking;
    return IRON_OK;
}

/* A driver that serves several processes may refuse what the device supports, so this tries it
 * before the race. */
static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const cache_use *w = work->spec->own;

    if (!w->is_keeping)
        return IRON_OK;
    IRON_TRY(prepare_cache(work->device, table_bytes_of(&work->c), false, err));
    return prepare_cache(work->device, 0, false, err);
}

/* Resets the cache for others. */
static void tear_down(iron__gpu_work *work) {
    if (work->device->persisting_bytes || work->device->has_persisting_lines)
        /* an error here has been reported before */
        (void)iron__gpu_cache_reserve(work->device, 0, NULL);
}

/* The counter is 0 between runs; the kernel resets it. It does not count as scratch, which is
 * cleared before a checked run: a kernel that leaves a wrong count must be detected. */
static iron_status derive(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err) {
    iron__gpu_buffer *counter = work->buffers[BUFFER_COUNTER];

    (void)data;
    return iron__gpu_clear(queue, counter, 0, counter->bytes, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const cache_use *w = work->spec->own;
    uint64_t table_bytes = table_bytes_of(&work->c);
    uint64_t turns =
        iron__kit_pieces(work->c.rows, (uint64_t)4 * RESIDENCY_THREADS * RESIDENCY_LOADS);
    uint32_t words = (uint32_t)(table_bytes / sizeof(uint32_t));
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {iron__kit_groups(work, iron__min(turns, RESIDENCY_GROUPS_MAX), RESIDENCY_DENSE)},
        .threads = {RESIDENCY_THREADS},
        IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_VALUE(work->c.rows),
                      IRON_GPU_BUFFER(data->inputs[1]), IRON_GPU_VALUE(words),
                      IRON_GPU_BUFFER(work->buffers[BUFFER_SHARES]),
                      IRON_GPU_BUFFER(work->buffers[BUFFER_COUNTER]),
                      IRON_GPU_BUFFER(data->output)),
        .persisting = w->is_keeping ? data->inputs[1] : NULL,
        .persisting_bytes = w->is_keeping ? (size_t)table_bytes : 0};

    IRON_TRY(prepare_cache(work->device, w->is_keeping ? table_bytes : 0, w->is_marking, err));
    return iron__gpu_run(queue, &l, err);
}

static uint64_t buffer_bytes(const iron__case *c, size_t index) {
    (void)c;
    return index == BUFFER_SHARES    ? RESIDENCY_GROUPS_MAX * sizeof(answer)
           : index == BUFFER_COUNTER ? sizeof(uint32_t)
                                     : 0;
}

static iron_status suits_keeping(const iron__gpu_device *device, const iron__case *c,
                                 iron_error *err) {
    uint64_t bytes = table_bytes_of(c), most = device->info.persisting_bytes_max;

    IRON_FAIL_IF(most == 0, err, IRON_E_UNSUPPORTED, "%s cannot set part of its cache aside",
                 device->info.name);
    IRON_FAIL_IF(bytes > most, err, IRON_E_UNSUPPORTED,
                 "%s can set %.1f MiB of its cache aside, but the table has %" PRIu64 " MiB",
                 device->info.name, (double)most / 0x1p20, bytes >> 20);
    return IRON_OK;
}

/* If nothing can be set aside, marks cannot be cleared either, and would affect other
 * contenders. */
static iron_status suits_marking(const iron__gpu_device *device, const iron__case *c,
                                 iron_error *err) {
    (void)c;
    IRON_FAIL_IF(device->info.version < 800, err, IRON_E_UNSUPPORTED,
                 "%s does not support cache policies of loads; they need compute capability 8.0",
                 device->info.name);
    IRON_FAIL_IF(device->info.persisting_bytes_max == 0, err, IRON_E_UNSUPPORTED,
                 "%s cannot clear marks in its cache", device->info.name);
    return IRON_OK;
}

static const cache_use nothing = {.is_keeping = false};
static const cache_use keeping = {.is_keeping = true};
static const cache_use marking = {.is_marking = true};

#define KERNEL(kernel, function, wanted)                                                           \
    IRON_ON_CUDA,                                                                                  \
        .gpu = IRON_KIT(.kernels = {kernel}, .suits = (function), .buffer_bytes = buffer_bytes,    \
                        .scratch = IRON_BIT(BUFFER_SHARES), .set_up = set_up,                      \
                        .tear_down = tear_down, .derive = derive, .run = run, .own = &(wanted))

static const iron__contender contenders[] = {
    {"plain", "ordinary loads; the cache decides what to keep", NULL,
     KERNEL("residency_plain", NULL, nothing)},
    {"persisting", "part of the L2 cache is set aside for the table", "plain",
     KERNEL("residency_plain", suits_keeping, keeping)},
    {"streaming-loads", "loads of the stream are marked evict-first", "plain",
     KERNEL("residency_streaming", NULL, nothing)},
    {"evict-policy", "loads have policies: the stream is evicted first, the table last",
     "streaming-loads", KERNEL("residency_policy", suits_marking, marking)},
    {"persisting-streaming", "the set-aside part, and evict-first loads of the stream",
     "persisting", KERNEL("residency_streaming", suits_keeping, keeping)},
};

_Static_assert(RESIDENCY_RECORD == 32, "as in the contract");

const iron__op iron__op_residency = {
    .name = "residency",
    .contract =
        "sum and XOR of a stream of 32-bit words; the first of each 32 is a key and is replaced "
        "by key ^ table[key * words / 2^32]",
    .why =
        "A stream passes through the L2 cache once and will not be read again, but the cache keeps "
        "what came last. A table that is read now and then at unpredictable places is evicted by "
        "the stream between two reads of the same line, although it would fit, and every lookup "
        "then goes to memory. Records of 128 bytes contain one key each, so several times the size "
        "of the table is streamed before each of its lines has been used once.\n"
        "\n"
        "There are three ways to tell the cache. Part of it can be set aside for data that a "
        "launch names. Loads of the stream can say that their lines may be evicted first. And each "
        "load can name a policy: the stream's first, the table's last.",
    .traffic =
        "The stream is read once; only that counts as useful. Each 128 bytes of it cause one "
        "lookup of 32 bytes, from memory if the table was evicted: up to a quarter more than the "
        "stream itself.",
    .unless =
        "A table that is small or read often stays in the cache by itself. A table larger than "
        "the part that can be set aside evicts itself. And the set-aside part is not available to "
        "other users of the device until it is given back.",
    .used =
        "The single pass in src/ops/atax/atax_real.k reads the matrix with k_load_once, loads "
        "that are evicted first, so that x stays in the cache. No kernel sets part of the cache "
        "aside: what iron's kernels read again fits registers or local memory "
        "(src/ops/tokens/champion.k, apply.k), and a library should not take cache away from its "
        "caller.",
    IRON_LINE_OP(IRON_U32, check),
    .bound = IRON_BOUND_READ,
    .is_never_cold = true,
    IRON_AXES({.name = "table",
               .about = "size in MiB of the table that should stay in the cache",
               IRON_NUMBERS(8, 16, 24, 32),
               .least = 1,
               .most = TABLE_MIB_MAX,
               .is_whole = true}),
    .baselines = {"plain", "plain"},
    IRON_LINE_SIZES(24, 28, 30),
    .usual_log2 = {{22, 22}, {28, 33}}, /* nothing races on a CPU, but tests make data */
    .usual_caches = 8,                  /* a stream that fits the cache would evict nothing */
    .bytes_each = sizeof(uint32_t),
    .operations_each = 2, /* an addition and an exclusive or */
    .rows_max = UINT64_C(1) << 33,
};
