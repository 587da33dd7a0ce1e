/* SPDX-License-Identifier: MIT */
/*
 * codec_support.h: compressed data for the tests, made by the real libraries, which the tests link
 * (the library itself loads them when they are needed).
 */
#ifndef TESTS_UNIT_CODEC_SUPPORT_H
#define TESTS_UNIT_CODEC_SUPPORT_H

#include "support.h"

#include "io/codec.h"

#include <lz4.h>
#include <lz4frame.h>
#include <lzma.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

/* Bytes that grow: small ones have no room to spare, so that a sanitizer notices what is read
 * behind them; large ones double, since a sanitizer copies the whole block each time. */
typedef struct bytes {
    unsigned char *data;
    size_t count, capacity;
} bytes;

static inline unsigned char *bytes_room(bytes *b, size_t more) {
    if (b->capacity - b->count < more || !b->data) {
        b->capacity = b->count + more;
        if (b->count >= (size_t)1 << 20)
            b->capacity += b->count;
        b->data = realloc(b->data, b->capacity ? b->capacity : 1);
        assert_non_null(b->data);
    }
    return b->data + b->count;
}

static inline void bytes_add(bytes *b, const void *data, size_t count) {
    unsigned char *to = bytes_room(b, count);

    if (count > 0)
        memcpy(to, data, count);
    b->count += count;
}

static inline void bytes_clear(bytes *b) {
    free(b->data);
    *b = (bytes){NULL, 0, 0};
}

/* Data that compress to about a half: small numbers, as token ids are. */
static inline bytes make_plain(uint64_t seed, size_t count) {
    rng r = {seed * 2 + 1};
    bytes b = {NULL, 0, 0};
    unsigned char *to = bytes_room(&b, count);

    for (size_t k = 0; k < count; k++)
        to[k] = (unsigned char)(k % 2 ? rng_below(&r, 4) : rng_below(&r, 200));
    b.count = count;
    return b;
}

/* Adds one frame of `count` bytes; has_size: its header says how many. */
static inline void add_zstd(bytes *to, const void *plain, size_t count, bool has_size) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t bound = ZSTD_compressBound(count), got;

    assert_non_null(context);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, has_size);
    got = ZSTD_compress2(context, bytes_room(to, bound), bound, plain, count);
    assert_false(ZSTD_isError(got));
    to->count += got;
    ZSTD_freeCCtx(context);
}

/* One member or, with window bits 15, one zlib stream. */
static inline void add_deflate(bytes *to, const void *plain, size_t count, int window_bits) {
    z_stream s = {.next_in = (unsigned char *)(uintptr_t)plain, .avail_in = (unsigned)count};
    size_t bound;

    assert_int_equal(deflateInit2(&s, 1, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    bound = deflateBound(&s, count) + 64;
    s.next_out = bytes_room(to, bound);
    s.avail_out = (unsigned)bound;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    to->count += s.total_out;
    deflateEnd(&s);
}

static inline void add_gzip(bytes *to, const void *plain, size_t count) {
    add_deflate(to, plain, count, 16 + 15);
}

/* One stream in blocks of that many bytes; 0: in one block. */
static inline void add_xz(bytes *to, const void *plain, size_t count, size_t block,
                          lzma_check check) {
    lzma_stream s = LZMA_STREAM_INIT;
    size_t done = 0;

    assert_int_equal(lzma_easy_encoder(&s, 0, check), LZMA_OK);
    while (true) {
        size_t some = block && block < count - done ? block : count - done;
        bool is_last = done + some == count;
        lzma_ret got;

        s.next_in = (const unsigned char *)plain + done;
        s.avail_in = some;
        do {
            s.next_out = bytes_room(to, 1 << 16);
            s.avail_out = 1 << 16;
            got = lzma_code(&s, is_last ? LZMA_FINISH : LZMA_FULL_FLUSH);
            to->count += (1 << 16) - s.avail_out;
        } while (got == LZMA_OK);
        assert_int_equal(got, LZMA_STREAM_END);
        done += some;
        if (is_last)
            break;
    }
    lzma_end(&s);
}

static inline void add_lz4(bytes *to, const void *plain, size_t count, bool has_size) {
    LZ4F_preferences_t p = {.frameInfo = {.contentChecksumFlag = LZ4F_contentChecksumEnabled,
                                          .blockSizeID = LZ4F_max64KB,
                                          .blockChecksumFlag = LZ4F_blockChecksumEnabled,
                                          .contentSize = has_size ? count : 0}};
    size_t bound = LZ4F_compressFrameBound(count, &p), got;

    if (has_size) {
        got = LZ4F_compressFrame(bytes_room(to, bound), bound, plain, count, &p);
    } else { /* compressFrame would write the size */
        LZ4F_cctx *context;
        unsigned char *at = bytes_room(to, bound + 64);

        assert_false(LZ4F_isError(LZ4F_createCompressionContext(&context, LZ4F_VERSION)));
        got = LZ4F_compressBegin(context, at, bound + 64, &p);
        got += LZ4F_compressUpdate(context, at + got, bound + 64 - got, plain, count, NULL);
        got += LZ4F_compressEnd(context, at + got, bound + 64 - got, NULL);
        LZ4F_freeCompressionContext(context);
    }
    assert_false(LZ4F_isError(got));
    to->count += got;
}

/* One frame, as a file has it. */
static inline void add_frame(iron__codec codec, bytes *to, const void *plain, size_t count) {
    switch (codec) {
    case IRON_CODEC_ZSTD:
        add_zstd(to, plain, count, true);
        break;
    case IRON_CODEC_GZIP:
        add_gzip(to, plain, count);
        break;
    case IRON_CODEC_XZ:
        add_xz(to, plain, count, 0, LZMA_CHECK_CRC64);
        break;
    case IRON_CODEC_LZ4:
        add_lz4(to, plain, count, true);
        break;
    default:
        fail();
    }
}

/* The codecs that files have. */
static const iron__codec file_codecs[] = {IRON_CODEC_ZSTD, IRON_CODEC_GZIP, IRON_CODEC_XZ,
                                          IRON_CODEC_LZ4};

/* A frame that zstd and lz4 skip. */
static inline void add_skipped(bytes *to, size_t count) {
    unsigned char *at = bytes_room(to, 8 + count);

    memset(at, 0x28, 8 + count);
    memcpy(at, "\x53\x2A\x4D\x18", 4);
    for (unsigned k = 0; k < 4; k++)
        at[4 + k] = (unsigned char)(count >> 8 * k);
    to->count += 8 + count;
}

#endif
