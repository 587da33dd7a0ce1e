/* SPDX-License-Identifier: MIT */
/*
 * replay.c: a decompression that can be asked for any block.
 *
 * Threads that read a file in order ask for its blocks almost in order: a block may be wanted
 * shortly after one that follows it. So the last blocks are kept. Tables are read in more than one
 * place at a time, where rows begin and where their values are: so there are several decompressions
 * of the same file, and the one that is nearest before a block goes on to it. Only a request for a
 * block that all of them have passed starts one again.
 */
#include "io/replay.h"

#include "core/cpu.h"
#include "core/fail.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Each may hold a dictionary of up to 128 MiB. */
#define CURSORS 3u

/* A decompression of the file, up to some block. */
typedef struct cursor {
    iron__input in; /* open, unless in.path is NULL */
    uint64_t next;  /* block that it comes to next */
    uint64_t last_use;
} cursor;

typedef struct kept_block {
    unsigned char *data; /* allocated when it is needed */
    uint64_t index;
    bool is_there;
} kept_block;

struct iron__replay {
    iron__codec codec;
    char *path;
    uint64_t stored, bytes; /* compressed and decompressed */

    pthread_mutex_t mutex;
    uint64_t clock;
    cursor cursors[CURSORS];
    size_t kept_count; /* block k is kept in kept[k % kept_count] */
    kept_block *kept;
};

static void stop_cursor(cursor *c) {
    if (c->in.path)
        iron__input_close(&c->in);
    c->in.path = NULL;
}

static iron_status start_cursor(const iron__replay *r, cursor *c, iron_error *err) {
    stop_cursor(c);
    c->in = (iron__input){.path = r->path, .bytes = r->stored, .fd = -1};
    c->next = 0;
    IRON_TRY(iron__input_open(&c->in, err));
    return iron__input_decompress(&c->in, r->codec, err);
}

static iron_status count_bytes(iron__replay *r, const atomic_bool *stop, iron_error *err) {
    unsigned char *buffer = malloc(IRON_REPLAY_BLOCK_BYTES);
    size_t got = IRON_REPLAY_BLOCK_BYTES;
    cursor all = {.next = 0};
    iron_status status;

    if (!buffer)
        return iron__no_memory(err, r->path);
    status = start_cursor(r, &all, err);
    while (status == IRON_OK && got == IRON_REPLAY_BLOCK_BYTES) {
        status = iron__input_read(&all.in, buffer, IRON_REPLAY_BLOCK_BYTES, &got, stop, err);
        r->bytes += got;
    }
    free(buffer);
    stop_cursor(&all);
    return status;
}

iron_status iron__replay_open(const iron__input *in, iron__codec codec, const atomic_bool *stop,
                              iron__replay **out, iron_error *err) {
    iron__replay *r = calloc(1, sizeof *r);
    iron_status status;

    *out = NULL;
    if (!r)
        return iron__no_memory(err, in->path);
    r->codec = codec;
    r->stored = in->bytes;
    r->kept_count = 4 * (size_t)iron__cpu_threads() + 4;
    r->path = strdup(in->path);
    r->kept = calloc(r->kept_count, sizeof *r->kept);
    pthread_mutex_init(&r->mutex, NULL);
    if (!r->path || !r->kept)
        status = iron__no_memory(err, in->path);
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
    for (size_t k = 0; k < CURSORS; k++)
        stop_cursor(&replay->cursors[k]);
    for (size_t k = 0; replay->kept && k < replay->kept_count; k++)
        free(replay->kept[k].data);
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

/* Decompresses the cursor's next block, which is then kept. */
static iron_status advance(iron__replay *r, cursor *c, const atomic_bool *stop, iron_error *err) {
    kept_block *kept = &r->kept[c->next % r->kept_count];
    size_t want = block_bytes(r, c->next), got;

    if (!kept->data)
        kept->data = malloc(IRON_REPLAY_BLOCK_BYTES);
    if (!kept->data)
        return iron__no_memory(err, r->path);
    kept->is_there = false;
    IRON_TRY(iron__input_read(&c->in, kept->data, want, &got, stop, err));
    IRON_FAIL_IF(got < want, err, IRON_E_IO, "%.120s changed while being read", r->path);
    kept->index = c->next++;
    kept->is_there = true;
    return IRON_OK;
}

/* The cursor to reach a block with: the nearest before it, or the one that was not used for
 * longest, from the beginning. */
static iron_status choose_cursor(iron__replay *r, uint64_t index, cursor **out, iron_error *err) {
    cursor *nearest = NULL, *oldest = &r->cursors[0];

    for (cursor *c = r->cursors; c < r->cursors + CURSORS; c++) {
        if (c->in.path && c->next <= index && (!nearest || c->next > nearest->next))
            nearest = c;
        if (!c->in.path || c->last_use < oldest->last_use)
            oldest = c;
    }
    *out = nearest ? nearest : oldest;
    return nearest ? IRON_OK : start_cursor(r, oldest, err);
}

/* With the mutex held: makes sure that the block is kept. */
static iron_status find(iron__replay *r, uint64_t index, const atomic_bool *stop, iron_error *err) {
    const kept_block *kept = &r->kept[index % r->kept_count];
    cursor *c;
    iron_status status;

    if (kept->is_there && kept->index == index)
        return IRON_OK;
    status = choose_cursor(r, index, &c, err);
    while (status == IRON_OK && c->next <= index)
        status = advance(r, c, stop, err);
    c->last_use = ++r->clock;
    if (status != IRON_OK) /* a failed decompression cannot go on */
        stop_cursor(c);
    return status;
}

iron_status iron__replay_decode(iron__replay *replay, uint64_t index, iron__block *out,
                                const atomic_bool *stop, iron_error *err) {
    size_t bytes = block_bytes(replay, index);
    iron_status status;

    IRON_TRY(iron__block_reserve(out, bytes, err));
    pthread_mutex_lock(&replay->mutex);
    status = find(replay, index, stop, err);
    if (status == IRON_OK) {
        memcpy(out->data, replay->kept[index % replay->kept_count].data, bytes);
        out->bytes = bytes;
    }
    pthread_mutex_unlock(&replay->mutex);
    return status;
}
