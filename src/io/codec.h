/* SPDX-License-Identifier: MIT */
/*
 * codec.h: decompression by the libraries made for it, which are loaded when they are first needed.
 * All functions may be called from several threads at once. `name` is the file's, for messages.
 */
#ifndef IRON_IO_CODEC_H
#define IRON_IO_CODEC_H

#include <iron/iron.h>

#include <stdbool.h>

typedef enum iron__codec {
    IRON_CODEC_NONE = 0,
    IRON_CODEC_ZSTD,
    IRON_CODEC_GZIP,
    IRON_CODEC_XZ,
    IRON_CODEC_LZ4,     /* frames, as files have them */
    IRON_CODEC_LZ4_RAW, /* a block without a frame: columns only */
    IRON_CODEC_SNAPPY   /* without a frame: columns only */
} iron__codec;

#define IRON_CODEC_COUNT 7u

const char *iron__codec_name(iron__codec codec); /* "zstd" */

/* Loads the codec's library; IRON_E_UNSUPPORTED with the name of its package if it is missing. */
iron_status iron__codec_load(iron__codec codec, const char *name, iron_error *err);

/* Is its library installed? */
bool iron__codec_is_there(iron__codec codec);

/* Decompresses all of `from`, which must give exactly `room` bytes. */
iron_status iron__codec_decompress(iron__codec codec, const char *name, const void *from,
                                   size_t count, void *to, size_t room, iron_error *err);

/* Decompresses at least the first `wanted` bytes of what would give `room` bytes, as cheaply as the
 * codec allows; `to` has room for all of them. */
iron_status iron__codec_decompress_start(iron__codec codec, const char *name, const void *from,
                                         size_t count, void *to, size_t room, size_t wanted,
                                         iron_error *err);

/* The head of a zstd frame: how many bytes it has, by the flags in its fifth, and the size of the
 * frame's content in it (UINT64_MAX: none). */
size_t iron__zstd_head_bytes(unsigned flags);
uint64_t iron__zstd_content(const unsigned char *head);

/* A stream of frames, one after another (gzip: members; xz: streams), of any length. */
typedef struct iron__decompression iron__decompression;

iron_status iron__decompression_create(iron__codec codec, const char *name,
                                       iron__decompression **out, iron_error *err);
void iron__decompression_destroy(iron__decompression *d);

/* Where the next compressed bytes are, and where decompressed ones go; run advances all four. */
typedef struct iron__codec_buffers {
    const unsigned char *from;
    size_t from_count;
    unsigned char *to;
    size_t room;
} iron__codec_buffers;

/* Runs until the input is consumed or the output is full. */
iron_status iron__decompression_run(iron__decompression *d, iron__codec_buffers *buffers,
                                    iron_error *err);
/* The compressed bytes have ended: an error if that is inside a frame. */
iron_status iron__decompression_finish(const iron__decompression *d, iron_error *err);

#endif
