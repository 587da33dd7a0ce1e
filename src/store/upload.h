/* SPDX-License-Identifier: MIT */
/*
 * upload.h: a large body while it streams in: cut anywhere, reduced at once, in memory of a fixed
 * size. Its batches collect until there are IRON_BLOCK_BATCHES, and then go to the disk.
 *
 * A body whose key was seen before is reduced too, but only to be compared.
 */
#ifndef IRON_STORE_UPLOAD_H
#define IRON_STORE_UPLOAD_H

#include "store/lanes.h"
#include "store/repeats.h"

#define IRON_STAGE_BYTES ((size_t)1 << 20)

typedef struct iron__upload {
    iron__kept *kept;
    iron_dtype dtype;
    size_t width;
    iron_engine *fork; /* NULL: a repeat */
    iron__moment base;
    bool is_repeat;
    iron__repeat repeat;
    uint64_t tokens;      /* reduced so far */
    uint64_t incoming;    /* counted by the engine as on their way */
    unsigned char *stage; /* IRON_STAGE_BYTES; what came and is not reduced yet */
    size_t staged;
    unsigned char *batches; /* encoded, those that are in no block yet */
    size_t batch_count;
    iron__contribution fed;
    uint64_t id, blocks; /* blocks written as upload `id` */
} iron__upload;

typedef struct iron__upload_request {
    iron_dtype dtype;
    bool has_at;
    uint64_t at;
    const char *key; /* "": none */
    uint64_t tokens; /* expected; UINT64_MAX: not known */
} iron__upload_request;

/* `position` is set for POSITION. */
iron__feed_outcome iron__upload_begin(iron__kept *kept, const iron__upload_request *request,
                                      iron__upload **out, uint64_t *position, iron_error *err);
iron__feed_outcome iron__upload_take(iron__upload *upload, const unsigned char *bytes, size_t count,
                                     iron_error *err);
/* The key is the request's once more. Fills result; the upload is left to be freed. */
iron__feed_outcome iron__upload_end(iron__upload *upload, const char *key,
                                    iron__feed_result *result, iron_error *err);
void iron__upload_free(iron__upload *upload, bool is_feed);

#endif
