/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu_digests.c: iron_digest_update_device: tokens of every width in memory that a caller
 * brings, on the caller's own queue, in pieces of odd lengths at odd positions and in any order,
 * some of them from the host; where addresses are plain numbers, also from the middle of an
 * allocation. The reference is a digest of the same pieces on the CPU. A token that is none must be
 * refused by the device in the CPU's words.
 *
 * Digests are reached as every caller reaches them, through <iron/iron.h>.
 */
#include "engine/selftest_gpu.h"

#include "core/fail.h"

#include <iron/iron.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define LEAD_MAX 4097u
#define VOCAB    50257u

/* Of the stream, in its order; their sum is PIECE_TOKENS. Edges of every remainder, pieces without
 * a whole quad, and some that take several groups. */
#define PIECE_TOKENS 60141u
static const size_t pieces[] = {1, 2, 3, 4, 5, 1, 7, 1001, 6, 40003, 15, 16, 18999, 2, 33, 43};

/* Taken in steps of this, modulo their number: each once, and none after its neighbour. */
#define PIECE_STEP 7u

/* What a caller has. */
typedef struct caller {
    iron__selftest_device *d;
    iron_dtype dtype;
    size_t lead; /* tokens in the memory before the stream's first */
    iron__gpu_buffer *buffer;
    iron__gpu_queue *queue;
    unsigned char *stored; /* the same on the host */
} caller;

static size_t memory_bytes(const caller *c) {
    return (LEAD_MAX + PIECE_TOKENS) * iron_dtype_bytes(c->dtype);
}

/* All values that the width holds, also those beyond the vocabulary. */
static void store(caller *c, const uint32_t *tokens) {
    for (size_t k = 0; k < LEAD_MAX + PIECE_TOKENS; k++) {
        uint64_t token = c->dtype == IRON_DTYPE_I32 ? tokens[k] >> 1 : tokens[k];
        size_t width = iron_dtype_bytes(c->dtype);

        memcpy(c->stored + k * width, &token, width); /* the lower bytes come first */
    }
}

/* Where the piece that begins at a position lies in the memory. */
static size_t place_of(const caller *c, size_t position) {
    return c->d->device->info.has_addresses ? c->lead + position : 0;
}

static iron_status take_piece(const caller *c, iron_digest *digest, bool is_there, size_t position,
                              size_t count, iron_error *err) {
    size_t place = place_of(c, position), width = iron_dtype_bytes(c->dtype);

    if (!is_there)
        return iron_digest_update(digest, position, c->dtype, c->stored + place * width, count,
                                  err);
    return iron_digest_update_device(digest, position, c->dtype,
                                     (const void *)(c->buffer->native + place * width), count,
                                     (void *)c->queue->native, err);
}

static iron_status take_pieces(const caller *c, iron_digest *digest, bool is_on_device,
                               iron_error *err) {
    for (size_t turn = 0; turn < COUNT(pieces); turn++) {
        size_t piece = turn * PIECE_STEP % COUNT(pieces), position = 0;

        for (size_t k = 0; k < piece; k++)
            position += pieces[k];
        IRON_TRY(
            take_piece(c, digest, is_on_device && turn % 5 != 4, position, pieces[piece], err));
    }
    return IRON_OK;
}

static iron_status make_digest(const caller *c, iron_digest *digest, iron_error *err) {
    iron_digest_options o = {.struct_size = sizeof o,
                             .threads = 1,
                             .vocab = VOCAB,
                             .device = (uint32_t)c->d->index,
                             .backend = iron__gpu_backend_name(c->d->backend)};

    return iron_digest_init(digest, &o, err);
}

static iron_status digest_pieces(const caller *c, bool is_on_device, iron_digest_result *result,
                                 iron_error *err) {
    iron_digest digest = {NULL};
    iron_status status;

    IRON_TRY(make_digest(c, &digest, err));
    status = take_pieces(c, &digest, is_on_device, err);
    if (status == IRON_OK)
        status = iron_digest_final(&digest, result, err);
    iron_digest_deinit(&digest);
    return status;
}

static void compare(const iron_digest_result *got, const iron_digest_result *want, char *text,
                    size_t size) {
    if (strcmp(got->seal, want->seal) != 0 || got->tokens != want->tokens)
        snprintf(text, size, "seal %s, expected %s", got->seal, want->seal);
    else if (got->min != want->min || got->max != want->max ||
             got->out_of_vocab != want->out_of_vocab ||
             got->first_out_position != want->first_out_position ||
             got->first_out_value != want->first_out_value)
        snprintf(text, size, "values %u to %u, %llu out of vocab; expected %u to %u, %llu",
                 got->min, got->max, (unsigned long long)got->out_of_vocab, want->min, want->max,
                 (unsigned long long)want->out_of_vocab);
}

static iron__selftest_name name_of(const caller *c, const char *what) {
    iron__selftest_name name;

    snprintf(name.text, sizeof name.text, "on the device: %s %s tokens, from %zu, %s device %zu",
             what, iron_dtype_name(c->dtype), c->lead, iron__gpu_backend_name(c->d->backend),
             c->d->index);
    return name;
}

static bool is_wanted(const caller *c, const iron__selftest_name *name) {
    return !c->d->is_lost && iron__selftest_wants(c->d->test, name->text);
}

static void test_pieces(const caller *c) {
    iron_digest_result got = {.struct_size = sizeof got}, want = {.struct_size = sizeof want};
    char text[200] = "";
    iron__selftest_name name = name_of(c, "a digest of a caller's");
    iron_status status;
    iron_error err;

    if (!is_wanted(c, &name))
        return;
    status = digest_pieces(c, false, &want, &err);
    if (status == IRON_OK)
        status = digest_pieces(c, true, &got, &err);
    if (status == IRON_OK)
        compare(&got, &want, text, sizeof text);
    iron__selftest_tell_gpu(c->d, name.text, status, text, &err);
}

/* Both refuse the stream's first tokens, of which one is no token. */
static iron_status refuse(const caller *c, char *text, size_t size, iron_error *err) {
    iron_error there = {0}, here = {0};
    iron_digest digest = {NULL};
    iron_status status;

    IRON_TRY(make_digest(c, &digest, err));
    status = take_piece(c, &digest, true, 0, 1000, &there);
    (void)take_piece(c, &digest, false, 0, 1000, &here);
    iron_digest_deinit(&digest);
    if (status != IRON_OK && status != IRON_E_FORMAT) {
        *err = there;
        return status;
    }
    if (status == IRON_OK || strcmp(here.text, there.text) != 0)
        snprintf(text, size, "'%.80s', expected '%.80s'", there.text, here.text);
    return IRON_OK;
}

static iron_status send(const caller *c, iron_error *err) {
    iron__gpu_copy copy = {.from_host = c->stored, .to = c->buffer, .bytes = memory_bytes(c)};

    return iron__gpu_copy_bytes(c->queue, &copy, err); /* the digest must wait for it by itself */
}

static void test_refusal(caller *c, size_t at) {
    size_t width = iron_dtype_bytes(c->dtype), byte = (place_of(c, 0) + at + 1) * width - 1;
    unsigned char top = c->stored[byte];
    char text[200] = "";
    iron__selftest_name name = name_of(c, "one that is none among");
    iron_status status;
    iron_error err;

    if (!is_wanted(c, &name))
        return;
    c->stored[byte] = 0xFF; /* its sign */
    status = send(c, &err);
    if (status == IRON_OK)
        status = refuse(c, text, sizeof text, &err);
    (void)iron__gpu_queue_wait(c->queue, NULL); /* the copy reads what changes now */
    c->stored[byte] = top;
    iron__selftest_tell_gpu(c->d, name.text, status, text, &err);
}

static void test_width(caller *c) {
    static const size_t leads[] = {0, 1, 2, 3, 5, LEAD_MAX};
    size_t count = c->d->device->info.has_addresses ? COUNT(leads) : 1;

    for (size_t k = 0; k < count; k++) {
        c->lead = leads[k];
        test_pieces(c);
    }
    c->lead = 0;
    if (c->dtype == IRON_DTYPE_I32 || c->dtype == IRON_DTYPE_I64)
        test_refusal(c, 777);
}

static iron_status set_up(caller *c, const uint32_t *tokens, iron_error *err) {
    iron__gpu_device *device = c->d->device;

    c->stored = malloc(memory_bytes(c));
    if (!c->stored) {
        *err = iron__selftest_no_memory;
        return IRON_E_NOMEM;
    }
    store(c, tokens);
    IRON_TRY(iron__gpu_queue_create(device, &c->queue, err));
    IRON_TRY(
        iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, memory_bytes(c), &c->buffer, err));
    return send(c, err);
}

static void test_dtype(iron__selftest_device *d, iron_dtype dtype, const uint32_t *tokens) {
    caller c = {.d = d, .dtype = dtype};
    iron_error err;
    iron_status status = set_up(&c, tokens, &err);

    if (status == IRON_OK)
        test_width(&c);
    else
        iron__selftest_tell_gpu(d, "a digest of a caller's tokens", status, "", &err);
    if (c.queue)
        (void)iron__gpu_queue_wait(c.queue, NULL); /* the copy reads the host's tokens */
    iron__gpu_buffer_destroy(c.buffer);
    iron__gpu_queue_destroy(c.queue);
    free(c.stored);
}

void iron__selftest_gpu_digests(iron__selftest_device *d) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I32, IRON_DTYPE_I64};
    uint32_t *tokens = malloc((LEAD_MAX + PIECE_TOKENS) * sizeof *tokens);

    if (!tokens) {
        iron__selftest_fail(d->test, &iron__selftest_no_memory);
        return;
    }
    iron_generate(14, UINT64_C(1) << 32, 0, tokens, LEAD_MAX + PIECE_TOKENS, NULL);
    for (size_t k = 0; !d->is_lost && k < COUNT(dtypes); k++)
        test_dtype(d, dtypes[k], tokens);
    free(tokens);
}
