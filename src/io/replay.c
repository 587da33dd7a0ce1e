/* SPDX-License-Identifier: MIT */
/*
 * replay.c: a decompression that can be asked for any block.
 *
 * Threads that read a file in order ask for its blocks almost in order: a block may be wanted
 * shortly after one that follows it. So the last blocks are kept, and only a request for an older
 * one starts the decompression again.
 */
#include "io/replay.h"

#include "core/cpu.h"
#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct iron__replay {
    iron__codec codec;
    char *path;
    uint64_t stored, bytes; /* compressed and decompressed */

    pthread_mutex_t mutex;
    iron__input in;       /* open, unless in.path is NULL */
    uint64_t next;        /* block that the decompression comes to next */
    size_t kept_count;    /* block k is kept in kept[k % kept_count] */
    unsigned char **kept; /* allocated when they are needed */
};

static iron_status start(iron__replay *r, iron_error *err) {
    if (r->in.path)
        iron__input_close(&r->in);
    r->in = (iron__input){.path = r->path, .bytes = r->stored, .fd = -1};
    r->next = 0;
    IRON_TRY(iron__input_open(&r->in, err));
    return iron__input_decompress(&r->in, r->codec, err);
}

static iron_status count_bytes(iron__replay *r, const atomic_bool *stop, iron_error *err) {
    unsigned char *buffer = malloc(IRON_REPLAY_BLOCK_BYTES);
    size_t got = IRON_REPLAY_BLOCK_BYTES;
    iron_status status = IRON_OK;

    if (!buffer)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for decompressing %.100s",
                          r->path);
    status = start(r, err);
    while (status == IRON_OK && got == IRON_REPLAY_BLOCK_BYTES) {
        status = iron__input_read(&r->in, buffer, IRON_REPLAY_BLOCK_BYTES, &got, stop, err);
        r->bytes += got;
    }
    free(buffer);
    iron__input_close(&r->in);
    r->in.path = NULL;
    return status;
}

iron_status iron__replay_open(const iron__input *in, iron__codec codec, const atomic_bool *stop,
                              iron__replay **out, iron_error *err) {
    iron__replay *r = calloc(1, sizeof *r);
    iron_status status;

    *out = NULL;
    if (!r)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for decompressing %.100s",
                          in->path);
    r->codec = codec;
    r->stored = in->bytes;
    r->kept_count = 4 * (size_t)iron__cpu_threads() + 4;
    r->path = strdup(in->path);
    r->kept = calloc(r->kept_count, sizeof *r->kept);
    pthread_mutex_init(&r->mutex, NULL);
    if (!r->path || !r->kept)
        status = iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for decompressing %.100s",
                            in->path);
    else
        status = count_bytes(r, stop, err);
    if (status == IRON_OK)
        *out = r;
    else
        iron__replay_close(r);
    return status;
}

void iron__replay_close(iron__replay *replay) {
    if (!replay)
        return;
    if (replay->in.path)
        iron__input_close(&replay->in);
    for (size_t k = 0; replay->kept && k < replay->kept_count; k++)
        free(replay->kept[k]);
    pthread_mutex_destroy(&replay->mutex);
    free(replay->kept);
    free(replay->path);
    free(replay);
}

uint64_t iron__replay_bytes(const iron__replay *replay) { return replay->bytes; }

static size_t block_bytes(const iron__replay *r, uint64_t index) {
    uint64_t left = r->bytes - index * IRON_REPLAY_BLOCK_BYTES;

    return left < IRON_REPLAY_BLOCK_BYTES ? (size_t)left : IRON_REPLAY_BLOCK_BYTES;
}

/* Decompresses the next block, which is then kept. */
static iron_status advance(iron__replay *r, const atomic_bool *stop, iron_error *err) {
    unsigned char **kept = &r->kept[r->next % r->kept_count];
    size_t want = block_bytes(r, r->next), got;

    if (!*kept)
        *kept = malloc(IRON_REPLAY_BLOCK_BYTES);
    if (!*kept)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for decompressing %.100s",
                          r->path);
    IRON_TRY(iron__input_read(&r->in, *kept, want, &got, stop, err));
    IRON_FAIL_IF(got < want, err, IRON_E_IO, "%.120s changed while being read", r->path);
    r->next++;
    return IRON_OK;
}

/* With the mutex held: makes sure that the block is kept. */
static iron_status find(iron__replay *r, uint64_t index, const atomic_bool *stop, iron_error *err) {
    if (!r->in.path || (index < r->next && r->next - index > r->kept_count))
        IRON_TRY(start(r, err));
    while (r->next <= index)
        IRON_TRY(advance(r, stop, err));
    return IRON_OK;
}

iron_status iron__replay_decode(iron__replay *replay, uint64_t index, iron__block *out,
                                const atomic_bool *stop, iron_error *err) {
    size_t bytes = block_bytes(replay, index);
    iron_status status;

    IRON_TRY(iron__block_reserve(out, bytes, err));
    pthread_mutex_lock(&replay->mutex);
    status = find(replay, index, stop, err);
    if (status == IRON_OK) {
        memcpy(out->data, replay->kept[index % replay->kept_count], bytes);
        out->bytes = bytes;
    } else if (replay->in.path) { /* a failed decompression cannot go on */
        iron__input_close(&replay->in);
        replay->in.path = NULL;
    }
    pthread_mutex_unlock(&replay->mutex);
    return status;
}
