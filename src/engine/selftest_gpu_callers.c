/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu_callers.c: iron_feed_device: tokens in memory that a caller brings, on a caller's
 * own queue, in every mode; where addresses are plain numbers, also from the middle of an
 * allocation, at every alignment. Feeds from the host come before and after, without waiting.
 */
#include "engine/selftest_gpu.h"

#include "core/fail.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define TOKENS 70001u
#define BATCH  20000u
#define NODES  33u
#define HOSTS  777u /* tokens from the host, before and after */

/* What a caller has. */
typedef struct caller {
    iron__selftest_device *d;
    iron__gpu_buffer *buffer;
    iron__gpu_queue *queue;
    uint32_t *tokens; /* the same on the host */
} caller;

static iron_config config_of(const caller *c, const char *backend, const char *mode) {
    iron_config config = iron__selftest_config(&(iron__selftest_place){
        .backend = backend, .mode = mode, .device = (uint32_t)c->d->index, .threads = 2});

    config.nodes = NODES;
    config.batch = BATCH;
    return config;
}

/* All on the host: the reference. */
static iron_status feed_host(const caller *c, size_t lead, iron_engine **out, iron_error *err) {
    iron_config config = config_of(c, "cpu", "scalar");

    config.device = 0;
    IRON_TRY(iron_engine_create(&config, out, err));
    IRON_TRY(iron_engine_feed(*out, c->tokens, HOSTS, err));
    IRON_TRY(iron_engine_feed(*out, c->tokens + lead, TOKENS - lead, err));
    IRON_TRY(iron_engine_feed(*out, c->tokens + 5, HOSTS, err));
    return iron_engine_end_batch(*out, err);
}

static iron_status feed_device(const caller *c, const char *mode, size_t lead, iron_engine **out,
                               iron_error *err) {
    iron_config config = config_of(c, iron__gpu_backend_name(c->d->backend), mode);
    const void *at = (const void *)(c->buffer->native + lead * sizeof(uint32_t));

    IRON_TRY(iron_engine_create(&config, out, err));
    IRON_TRY(iron_engine_feed(*out, c->tokens, HOSTS, err));
    IRON_TRY(iron_feed_device(*out, at, TOKENS - lead, (void *)c->queue->native, err));
    IRON_TRY(iron_engine_feed(*out, c->tokens + 5, HOSTS, err));
    return iron_engine_end_batch(*out, err);
}

static void test_mode(const caller *c, const iron__tokens_gpu_row *row, size_t lead) {
    iron_report got = {.struct_size = sizeof got}, want = {.struct_size = sizeof want};
    iron_engine *e = NULL, *reference = NULL;
    char what[80], text[160] = "";
    iron__selftest_name name;
    iron_status status;
    iron_error err;

    snprintf(what, sizeof what, "on the device: a caller's tokens, from %zu", lead);
    name = iron__selftest_name_of(c->d, row, what);
    if (c->d->is_lost || !iron__selftest_wants(c->d->test, name.text))
        return;
    status = feed_host(c, lead, &reference, &err);
    if (status == IRON_OK)
        status = iron_engine_report(reference, &want, &err);
    if (status == IRON_OK)
        status = feed_device(c, row->mode, lead, &e, &err);
    if (status == IRON_OK)
        status = iron_engine_report(e, &got, &err);
    if (got.state != want.state || got.sum != want.sum || got.xor_total != want.xor_total ||
        got.tokens != want.tokens || got.batches != want.batches)
        snprintf(text, sizeof text,
                 "state %016" PRIx64 " sum %" PRIu64 ", expected %016" PRIx64 " %" PRIu64,
                 got.state, got.sum, want.state, want.sum);
    iron_engine_destroy(e);
    iron_engine_destroy(reference);
    iron__selftest_tell_gpu(c->d, name.text, status, text, &err);
}

static iron_status set_up(caller *c, iron_error *err) {
    iron__gpu_device *device = c->d->device;
    iron__gpu_copy copy = {.from_host = c->tokens, .bytes = TOKENS * sizeof(uint32_t)};

    IRON_TRY(iron_generate(13, UINT64_C(1) << 32, 0, c->tokens, TOKENS, err));
    IRON_TRY(iron__gpu_queue_create(device, &c->queue, err));
    IRON_TRY(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, copy.bytes, &c->buffer, err));
    copy.to = c->buffer;
    return iron__gpu_copy_bytes(c->queue, &copy, err); /* the feed must wait for it by itself */
}

void iron__selftest_gpu_callers(iron__selftest_device *d) {
    static const size_t leads[] = {0, 1, 2, 3, 4097};
    caller c = {.d = d, .tokens = malloc(TOKENS * sizeof(uint32_t))};
    size_t count = d->device->info.has_addresses ? COUNT(leads) : 1;
    iron_status status;
    iron_error err;

    if (!c.tokens) {
        iron__selftest_fail(d->test, &iron__selftest_no_memory);
        return;
    }
    status = d->is_lost ? IRON_E_STATE : set_up(&c, &err);
    if (status != IRON_OK && !d->is_lost)
        iron__selftest_tell_gpu(d, "a caller's tokens", status, "", &err);
    for (size_t r = 0; status == IRON_OK && iron__tokens_gpu_row_at(r); r++)
        for (size_t k = 0; k < count; k++)
            test_mode(&c, iron__tokens_gpu_row_at(r), leads[k]);
    if (c.queue)
        (void)iron__gpu_queue_wait(c.queue, NULL); /* the copy reads the host's tokens */
    iron__gpu_buffer_destroy(c.buffer);
    iron__gpu_queue_destroy(c.queue);
    free(c.tokens);
}
