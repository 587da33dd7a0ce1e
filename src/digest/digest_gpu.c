/* SPDX-License-Identifier: MIT */
/*
 * digest_gpu.c: tokens in a GPU's memory go into a digest.
 *
 * Whole quads are reduced where they are; the few tokens at the edges come to the host, as they are
 * stored. A device is opened when the first piece needs it. Signed tokens were looked at by nobody:
 * negative ones of 32 bits show as a largest token that is too large, those of more than 32 bits
 * leave a sign while they are narrowed; then the tokens come to the host in pieces until the first
 * bad one is found, for the message.
 */
#include "digest/digest_gpu.h"

#include "core/fail.h"
#include "digest/digest.h"

#include <unistd.h>

/* Tokens that are looked at on the host at a time, when one of them is bad. */
#define LOOK_TOKENS 65536u

/* The caller's tokens. */
typedef struct resident {
    uintptr_t tokens, stream;
    iron_dtype dtype;
} resident;

static iron_status open_device(iron__digest *d, iron_error *err) {
    iron__seal_device_config config = {
        .device = d->device, .vocab = d->vocab, .allocator = d->allocator};
    iron_status status;

    if (d->gpu && d->gpu_owner == getpid())
        return IRON_OK;
    IRON_TRY(iron__gpu_choose(d->backend, d->device, &config.backend, err));
    IRON_FAIL_IF(config.backend == iron__gpu_backend_count(), err, IRON_E_UNSUPPORTED,
                 "no CUDA or OpenCL GPU is here; copy the tokens to memory and use "
                 "iron_digest_update");
    d->gpu_owner = getpid();
    d->gpu = iron__allocate(d->allocator, 1, sizeof *d->gpu, "a GPU's digest", err);
    if (!d->gpu)
        return IRON_E_NOMEM;
    status = iron__seal_device_open(d->gpu, &config, err);
    if (status != IRON_OK)
        iron__digest_gpu_leave(d);
    return status;
}

void iron__digest_gpu_leave(iron__digest *d) {
    if (d->gpu && d->gpu_owner == getpid()) {
        iron__seal_device_close(d->gpu);
        iron__release(d->allocator, d->gpu);
    }
    d->gpu = NULL;
}

/* Up to three tokens at an edge. */
static iron_status bring_edge(iron__digest *d, const resident *r, uint64_t first, uint32_t count,
                              uint64_t position, uint32_t *edge, iron_error *err) {
    uint64_t stored[3];
    iron__tokens_view view = {r->dtype, stored, count};

    if (count == 0)
        return IRON_OK;
    IRON_TRY(iron__gpu_feed_peek(d->gpu->feed, r->tokens, r->dtype, first, count, r->stream, stored,
                                 err));
    IRON_TRY(iron__view_check(&view, position, err));
    for (uint32_t k = 0; k < count; k++)
        edge[k] = (uint32_t)iron__view_stored(&view, k);
    return IRON_OK;
}

/* One of them is no token: which? */
static iron_status name_bad(iron__digest *d, const resident *r, uint64_t count, uint64_t position,
                            iron_error *err) {
    iron_status status = IRON_OK;
    void *some = iron__allocate(d->allocator, LOOK_TOKENS, iron_dtype_bytes(r->dtype),
                                "tokens to look at", err);

    if (!some)
        return IRON_E_NOMEM;
    for (uint64_t done = 0; status == IRON_OK && done < count; done += LOOK_TOKENS) {
        iron__tokens_view view = {
            r->dtype, some, count - done < LOOK_TOKENS ? (size_t)(count - done) : LOOK_TOKENS};

        status = iron__gpu_feed_peek(d->gpu->feed, r->tokens, r->dtype, done, view.count, r->stream,
                                     some, err);
        if (status == IRON_OK)
            status = iron__view_check(&view, position + done, err);
    }
    iron__release(d->allocator, some);
    if (status == IRON_OK) /* whoever wrote there meanwhile */
        return iron__fail(err, IRON_E_FORMAT, 0,
                          "a token was no number from 0 to 4294967295, and has changed since");
    return status;
}

static iron_status seal_quads(iron__digest *d, const resident *r, const iron__digest_cuts *cuts,
                              iron__digest_piece *piece, bool *is_bad, iron_error *err) {
    iron__seal_device *gpu = d->gpu;

    *is_bad = false;
    if (cuts->quads == 0)
        return IRON_OK;
    IRON_TRY(iron__seal_device_begin(gpu, piece->position + cuts->head, err));
    IRON_TRY(iron__gpu_feed_resident(gpu->feed, r->tokens, r->dtype, cuts->head, 4 * cuts->quads,
                                     r->stream, err));
    IRON_TRY(iron__seal_device_fetch(gpu, &piece->words, &piece->stats, err));
    if (r->dtype == IRON_DTYPE_I32)
        *is_bad = piece->stats.max > (uint32_t)INT32_MAX;
    else if (r->dtype == IRON_DTYPE_I64)
        return iron__gpu_feed_is_beyond(gpu->feed, is_bad, err);
    return IRON_OK;
}

static iron_status take(iron__digest *d, const resident *r, iron__digest_piece *piece,
                        iron_error *err) {
    iron__digest_cuts cuts = iron__digest_cut(piece->position, piece->count);
    uint64_t behind = cuts.head + 4 * cuts.quads;
    bool is_bad;

    IRON_TRY(seal_quads(d, r, &cuts, piece, &is_bad, err));
    if (is_bad)
        return name_bad(d, r, piece->count, piece->position, err);
    IRON_TRY(bring_edge(d, r, 0, cuts.head, piece->position, piece->head, err));
    IRON_TRY(bring_edge(d, r, behind, cuts.tail, piece->position + behind, piece->tail, err));
    return iron__digest_take_range(d, piece, err);
}

iron_status iron_digest_update_device(iron_digest *digest, uint64_t position, iron_dtype dtype,
                                      const void *tokens, uint64_t count, void *stream,
                                      iron_error *err) {
    iron__digest *d = iron__digest_of(digest, err);
    iron__digest_piece piece = {
        .position = position, .count = count, .stats = iron__token_stats_neutral()};
    resident r = {(uintptr_t)tokens, (uintptr_t)stream, dtype};
    iron_status status;

    if (!d)
        return IRON_E_STATE;
    if (count == 0)
        return IRON_OK;
    IRON_FAIL_IF(iron_dtype_bytes(dtype) == 0, err, IRON_E_ARG,
                 "dtype %d is unknown; use an iron_dtype", (int)dtype);
    IRON_FAIL_IF(!tokens, err, IRON_E_ARG, "the tokens are at NULL; give their address");
    IRON_TRY(iron__digest_check_range(d, position, count, err));
    IRON_TRY(open_device(d, err));
    status = take(d, &r, &piece, err);
    if (status != IRON_OK && status != IRON_E_FORMAT)
        iron__digest_gpu_leave(d); /* a device that failed is not used again; the next may do */
    return status;
}

void *iron_digest_native_context(iron_digest *digest, iron_error *err) {
    iron__digest *d = iron__digest_of(digest, err);

    if (!d || open_device(d, err) != IRON_OK)
        return NULL;
    return (void *)iron__gpu_feed_context(d->gpu->feed);
}
