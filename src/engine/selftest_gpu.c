/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu.c: every device of every GPU backend: golden cases in every mode, and every memory
 * strategy in every mode, through the whole engine. OpenCL devices that are CPUs are tested too;
 * they are slow where every node reads every token, so what such a mode may cost is limited.
 */
#include "engine/selftest_gpu.h"

#include "core/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pairs of node and token that a check may cost. An H200 takes 10^11 of them a second; PoCL about
 * 10^8 a unit, and half of that in atomic2d. */
#define PAIRS_GPU_QUICK   (UINT64_C(1) << 25) /* little: sanitizers slow it down a lot */
#define PAIRS_GPU         (UINT64_C(1) << 34)
#define PAIRS_OTHER_QUICK (UINT64_C(1) << 24) /* a unit */
#define PAIRS_OTHER       (UINT64_C(1) << 26) /* a unit */

/* A node costs the modes with a group a node this many threads, however few tokens there are. */
#define GROUP_THREADS 256u

/* Of the engines under test: two, so that slots are filled by more than one. */
#define THREADS 2u

iron__selftest_name iron__selftest_name_of(const iron__selftest_device *d,
                                           const iron__tokens_gpu_row *row, const char *what) {
    iron__selftest_name name;

    snprintf(name.text, sizeof name.text, "%s, %s, device %zu", what, row->names[d->backend],
             d->index);
    return name;
}

bool iron__selftest_affords(const iron__selftest_device *d, const iron__tokens_gpu_row *row,
                            uint64_t nodes, uint64_t tokens) {
    const iron__gpu_info *info = &d->device->info;
    uint64_t most = d->test->is_quick ? PAIRS_GPU_QUICK : PAIRS_GPU;

    if (!info->is_gpu)
        most = (d->test->is_quick ? PAIRS_OTHER_QUICK : PAIRS_OTHER) * info->units;
    return !row->per_node || (tokens > GROUP_THREADS ? tokens : GROUP_THREADS) <= most / nodes;
}

void iron__selftest_tell_gpu(iron__selftest_device *d, const char *what, iron_status status,
                             const char *difference, const iron_error *error) {
    if (status == IRON_OK) {
        iron__selftest_tell(d->test, what, "%s", difference);
        return;
    }
    d->is_lost = true;
    iron__selftest_tell(d->test, what, "%s; this device is not tested any further", error->text);
}

/* In two feeds, so that the open batch goes from call to call. */
static iron_status feed_all(iron_engine *e, const iron__selftest_stream *s, iron_error *err) {
    size_t width = iron_dtype_bytes(s->dtype), rest = s->count - s->first;
    const char *tokens = (const char *)s->tokens + s->first * width;
    void *own = NULL;
    iron_status status;

    IRON_TRY(iron_engine_feed_as(e, s->dtype, s->tokens, s->first, err));
    if (s->is_from_own) {
        IRON_TRY(iron_engine_tokens_alloc(e, rest * width, &own, err));
        memcpy(own, tokens, rest * width);
        tokens = own;
    }
    status = iron_engine_feed_as(e, s->dtype, tokens, rest, err);
    iron_engine_tokens_free(e, own);
    IRON_TRY(status);
    return iron_engine_end_batch(e, err);
}

iron_status iron__selftest_reference(const iron__selftest_stream *s, iron_engine **out,
                                     iron_error *err) {
    iron_config config = s->config;
    iron_status status;

    config.backend = "cpu";
    config.mode = "scalar";
    status = iron_engine_create(&config, out, err);
    if (status == IRON_OK)
        status = feed_all(*out, s, err);
    if (status != IRON_OK) {
        iron_engine_destroy(*out);
        *out = NULL;
    }
    return status;
}

static void compare_nodes(iron_engine *got, iron_engine *want, char *text, size_t size) {
    const uint32_t *xors = iron_engine_xor_accumulators(got);
    const float *potentials = iron_engine_potentials(got);
    const uint32_t *want_xors = iron_engine_xor_accumulators(want);
    const float *want_potentials = iron_engine_potentials(want);
    size_t count = (size_t)iron_engine_config(want)->nodes;

    for (size_t j = 0; j < count; j++) {
        if (xors[j] == want_xors[j] && potentials[j] == want_potentials[j])
            continue;
        snprintf(text, size, "node %zu: xor %u potential %.9g, expected %u %.9g", j, xors[j],
                 (double)potentials[j], want_xors[j], (double)want_potentials[j]);
        return;
    }
    if (memcmp(iron_engine_activations(got), iron_engine_activations(want),
               count * sizeof(float)) != 0)
        snprintf(text, size, "activations changed");
}

/* "" or how two engines differ. */
static iron_status compare_engines(iron_engine *got, iron_engine *want, char *text, size_t size,
                                   iron_error *err) {
    iron_report g = {.struct_size = sizeof g}, w = {.struct_size = sizeof w};

    text[0] = '\0';
    IRON_TRY(iron_engine_report(got, &g, err));
    IRON_TRY(iron_engine_report(want, &w, err));
    if (g.tokens != w.tokens || g.batches != w.batches || g.xor_total != w.xor_total ||
        g.sum != w.sum || g.open_tokens != w.open_tokens)
        snprintf(text, size,
                 "got %" PRIu64 " tokens %" PRIu64 " batches xor %08" PRIx32 " sum %" PRIu64
                 ", expected %" PRIu64 " %" PRIu64 " %08" PRIx32 " %" PRIu64,
                 g.tokens, g.batches, g.xor_total, g.sum, w.tokens, w.batches, w.xor_total, w.sum);
    else
        compare_nodes(got, want, text, size);
    if (!text[0] && g.state != w.state)
        snprintf(text, size, "state %016" PRIx64 ", expected %016" PRIx64, g.state, w.state);
    return IRON_OK;
}

void iron__selftest_compare(iron__selftest_device *d, const iron__tokens_gpu_row *row,
                            const char *memory, const char *what, const iron__selftest_stream *s,
                            iron_engine *want) {
    iron__selftest_name name = iron__selftest_name_of(d, row, what);
    iron_config config = s->config;
    iron_engine *e = NULL;
    char text[280] = "";
    iron_error err;
    iron_status status;

    if (d->is_lost || !iron__selftest_wants(d->test, name.text))
        return;
    if (!iron__selftest_affords(d, row, config.nodes, s->count)) {
        iron__selftest_skip(d->test, name.text, IRON_SELFTEST_TOO_SLOW);
        return;
    }
    config.backend = iron__gpu_backend_name(d->backend);
    config.device = (uint32_t)d->index;
    config.mode = row->mode;
    config.memory = memory;
    config.threads = THREADS;
    status = iron_engine_create(&config, &e, &err);
    if (status == IRON_OK)
        status = feed_all(e, s, &err);
    if (status == IRON_OK)
        status = compare_engines(e, want, text, sizeof text, &err);
    iron_engine_destroy(e);
    iron__selftest_tell_gpu(d, name.text, status, text, &err);
}

static void test_golden_case(iron__selftest_device *d, const iron__golden_case *c,
                             const iron__tokens_gpu_row *row, const uint32_t *tokens,
                             size_t count) {
    iron__selftest_place place = {.backend = iron__gpu_backend_name(d->backend),
                                  .mode = row->mode,
                                  .device = (uint32_t)d->index,
                                  .threads = THREADS};
    char what[120], text[280] = "";
    iron__selftest_name name;
    iron_error err;
    iron_status status;

    if (d->is_lost)
        return;
    snprintf(what, sizeof what, "golden %s", c->name);
    name = iron__selftest_name_of(d, row, what);
    if (!iron__selftest_wants(d->test, name.text))
        return;
    if (!iron__selftest_affords(d, row, c->nodes, count)) {
        iron__selftest_skip(d->test, name.text, IRON_SELFTEST_TOO_SLOW);
        return;
    }
    status = iron__selftest_case(c, &place, tokens, count, text, sizeof text, &err);
    iron__selftest_tell_gpu(d, name.text, status, text, &err);
}

static void test_golden(iron__selftest_device *d) {
    const iron__golden *g = iron__golden_vectors();

    for (size_t k = 0; k < g->case_count; k++) {
        const iron__golden_case *c = &g->cases[k];
        size_t count;
        uint32_t *tokens = iron__golden_tokens(c->tokens, c->tokens_count, c->gen_seed,
                                               c->gen_limit, c->gen_count, &count);

        if (!tokens)
            iron__selftest_fail(d->test, &iron__selftest_no_memory);
        for (size_t r = 0; tokens && iron__tokens_gpu_row_at(r); r++)
            test_golden_case(d, c, iron__tokens_gpu_row_at(r), tokens, count);
        free(tokens);
    }
}

/* One stream by one strategy in every mode. */
static void test_strategy(iron__selftest_device *d, iron__gpu_strategy strategy,
                          const iron__selftest_stream *s, iron_engine *want) {
    const char *memory = iron__gpu_strategy_name(strategy);
    char what[120];

    snprintf(what, sizeof what, "memory %s, %s tokens", memory, iron_dtype_name(s->dtype));
    for (size_t r = 0; iron__tokens_gpu_row_at(r); r++)
        iron__selftest_compare(d, iron__tokens_gpu_row_at(r), memory, what, s, want);
}

/* Several batches, odd lengths, and a second feed that is larger than a slot of 4 MiB and begins
 * inside one. */
static void test_strategies_of(iron__selftest_device *d, iron_dtype dtype) {
    bool is_quick = d->test->is_quick;
    size_t width = iron_dtype_bytes(dtype), slot = ((size_t)4 << 20) / width;
    iron__selftest_stream s = {.config = iron__selftest_config(&(iron__selftest_place){0}),
                               .dtype = dtype,
                               .first = is_quick ? 5003 : 300007,
                               .is_from_own = width == sizeof(uint32_t)};
    uint32_t *tokens; /* as many bytes as any width needs at most */
    iron_engine *want = NULL;
    iron_error err;

    s.count = s.first + (is_quick ? 7001 : slot + 70001);
    s.config.nodes = 3;
    s.config.batch = is_quick ? 999 : 99991;
    tokens = malloc((s.count + 1) * sizeof(uint32_t));
    s.tokens = tokens;
    if (!tokens) {
        iron__selftest_fail(d->test, &iron__selftest_no_memory);
        return;
    }
    iron_generate(width, UINT64_C(1) << 32, 0, tokens, s.count, NULL);
    if (iron__selftest_reference(&s, &want, &err) != IRON_OK)
        iron__selftest_fail(d->test, &err);
    for (iron__gpu_strategy k = 0; want && k < IRON_GPU_STRATEGIES; k++)
        if (!d->device->info.lacks[k][0])
            test_strategy(d, k, &s, want);
    iron_engine_destroy(want);
    free(tokens);
}

/* Many slots in a row while a slow kernel reads: buffers are used again as soon as they may be, and
 * not sooner. */
static void test_reuse(iron__selftest_device *d) {
    const iron__tokens_gpu_row *slow = iron__tokens_gpu_row_find("hybrid");
    iron__selftest_stream s = {.config = iron__selftest_config(&(iron__selftest_place){0}),
                               .dtype = IRON_DTYPE_U32,
                               .count = ((size_t)9 << 20) + 12345,
                               .first = 1000};
    uint32_t *tokens = malloc(s.count * sizeof *tokens);
    iron_engine *want = NULL;
    iron_error err = iron__selftest_no_memory;

    s.tokens = tokens;
    s.config.nodes = d->device->info.is_gpu ? 512 : 4;
    s.config.batch = 1000003;
    if (tokens) {
        iron_generate(7, UINT64_C(1) << 32, 0, tokens, s.count, NULL);
        (void)iron__selftest_reference(&s, &want, &err);
    }
    if (!want)
        iron__selftest_fail(d->test, &err);
    for (iron__gpu_strategy k = 0; want && k < IRON_GPU_STRATEGIES; k++) {
        const char *memory = iron__gpu_strategy_name(k);
        char what[80];

        snprintf(what, sizeof what, "memory %s, used again", memory);
        if (!d->device->info.lacks[k][0])
            iron__selftest_compare(d, slow, memory, what, &s, want);
    }
    iron_engine_destroy(want);
    free(tokens);
}

static void skip_strategies(iron__selftest_device *d) {
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++) {
        char what[120];

        if (!d->device->info.lacks[k][0])
            continue;
        snprintf(what, sizeof what, "memory %s, %s device %zu", iron__gpu_strategy_name(k),
                 iron__gpu_backend_name(d->backend), d->index);
        iron__selftest_skip(d->test, what, d->device->info.lacks[k]);
    }
}

static void test_device(iron__selftest *t, size_t backend, size_t index) {
    iron__selftest_device d = {.test = t, .backend = backend, .index = index};
    char what[80];
    iron_error err;

    if (iron__gpu_device_open(backend, index, &d.device, &err) != IRON_OK) {
        snprintf(what, sizeof what, "%s device %zu", iron__gpu_backend_name(backend), index);
        iron__selftest_tell(t, what, "%s", err.text);
        return;
    }
    test_golden(&d);
    skip_strategies(&d);
    test_strategies_of(&d, IRON_DTYPE_U32);
    test_strategies_of(&d, IRON_DTYPE_U16);
    if (!t->is_quick)
        test_reuse(&d);
    iron__selftest_gpu_shapes(&d);
    iron__selftest_gpu_resident(&d);
    iron__selftest_gpu_callers(&d);
    iron__selftest_gpu_kept(&d);
    iron__selftest_gpu_digests(&d);
    iron__selftest_gpu_ops(&d);
    iron__selftest_gpu_large(&d);
    iron__gpu_device_close(d.device);
}

void iron__selftest_gpus(iron__selftest *t) {
    for (size_t backend = 0; backend < iron__gpu_backend_count(); backend++) {
        char what[80];
        iron_error why;
        size_t devices;

        snprintf(what, sizeof what, "backend %s", iron__gpu_backend_name(backend));
        if (iron__gpu_probe(backend, &devices, &why) != IRON_OK)
            iron__selftest_skip(t, what, why.text);
        for (size_t index = 0; index < devices; index++)
            test_device(t, backend, index);
    }
}
