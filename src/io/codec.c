/* SPDX-License-Identifier: MIT */
/*
 * codec.c: decompression by libzstd, zlib, liblzma, liblz4 and libsnappy.
 *
 * A codec is a row of the table below. Its library is loaded when it is first needed, and stays
 * loaded; nothing of it is needed to build. So the few functions and structs that are used are
 * declared here, as the libraries' ABIs have them: tests/unit/test_codec.c compares them with the
 * real headers.
 *
 * A stream is a sequence of frames (gzip: members; xz: streams). The libraries decode one frame at
 * a time; what may stand between frames, and where a stream may end, is decided here for all codecs
 * alike. Memory is bounded: by a limit on the window of zstd, by one on all memory of xz, and by
 * the formats of the others.
 */
#include "io/codec.h"

#include "core/fail.h"
#include "core/library.h"
#include "core/memory.h"
#include "io/input.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* zstd -d also refuses larger windows unless it is told otherwise. */
#define ZSTD_WINDOW_LOG_MAX 27

/* xz -9 needs 65 MiB. */
#define XZ_MEMORY_BYTES_MAX ((uint64_t)1 << 30)

/* The longest header of a zstd frame. */
#define FRAME_HEAD_BYTES 18u

/* zlib counts with unsigned int. */
#define ZLIB_PIECE_BYTES ((size_t)1 << 30)

/* Declarations of zstd.h. */

typedef struct zstd_input {
    const void *data;
    size_t bytes, at;
} zstd_input;

typedef struct zstd_output {
    void *data;
    size_t bytes, at;
} zstd_output;

enum {
    ZSTD_PARAMETER_WINDOW_LOG_MAX = 100,
    ZSTD_CODE_WINDOW_TOO_LARGE = 16,
    ZSTD_CODE_DICTIONARY_WRONG = 32
};

/* Declarations of zlib.h. */

typedef struct zlib_stream {
    const unsigned char *next_in;
    unsigned avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*alloc)(void *opaque, unsigned items, unsigned size);
    void (*release)(void *opaque, void *address);
    void *opaque;
    int data_type;
    unsigned long adler, reserved;
} zlib_stream;

enum {
    ZLIB_OK = 0,
    ZLIB_STREAM_END = 1,
    ZLIB_MEM_ERROR = -4,
    ZLIB_BUF_ERROR = -5,
    ZLIB_NO_FLUSH = 0,
    ZLIB_GZIP_OR_ZLIB = 32 + 15 /* the header decides; windows of up to 2^15 bytes */
};

/* Declarations of lzma.h. */

typedef struct lzma_stream_abi {
    const unsigned char *next_in;
    size_t avail_in;
    uint64_t total_in;
    unsigned char *next_out;
    size_t avail_out;
    uint64_t total_out;
    const void *allocator;
    void *internal;
    void *reserved_pointers[4];
    uint64_t seek_position, reserved_int;
    size_t reserved_sizes[2];
    int reserved_enums[2];
} lzma_stream_abi;

enum {
    XZ_OK = 0,
    XZ_STREAM_END = 1,
    XZ_UNSUPPORTED_CHECK = 3,
    XZ_MEM_ERROR = 5,
    XZ_MEMLIMIT_ERROR = 6,
    XZ_FORMAT_ERROR = 7,
    XZ_OPTIONS_ERROR = 8,
    XZ_DATA_ERROR = 9,
    XZ_BUF_ERROR = 10,
    XZ_RUN = 0,
    XZ_TELL_UNSUPPORTED_CHECK = 2
};

/* Declarations of lz4frame.h, lz4.h and snappy-c.h. */

enum { LZ4_FRAME_VERSION = 100, SNAPPY_OK_CODE = 0 };

/* The functions that each codec needs: X(codec, result, name, parameters). */
/* clang-format would take the parameters for products. */
/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(ZSTD, size_t, ZSTD_decompressDCtx,                                                           \
      (void *context, void *to, size_t room, const void *from, size_t count))                      \
    X(ZSTD, void *, ZSTD_createDCtx, (void))                                                       \
    X(ZSTD, size_t, ZSTD_freeDCtx, (void *context))                                                \
    X(ZSTD, size_t, ZSTD_DCtx_setParameter, (void *context, int parameter, int value))             \
    X(ZSTD, size_t, ZSTD_decompressStream, (void *context, zstd_output *to, zstd_input *from))     \
    X(ZSTD, unsigned, ZSTD_isError, (size_t result))                                               \
    X(ZSTD, int, ZSTD_getErrorCode, (size_t result))                                               \
    X(ZSTD, const char *, ZSTD_getErrorName, (size_t result))                                      \
    X(GZIP, int, inflateInit2_,                                                                    \
      (zlib_stream *stream, int window_bits, const char *version, int stream_bytes))               \
    X(GZIP, int, inflateReset, (zlib_stream *stream))                                              \
    X(GZIP, int, inflate, (zlib_stream *stream, int flush))                                        \
    X(GZIP, int, inflateEnd, (zlib_stream *stream))                                                \
    X(XZ, int, lzma_stream_decoder,                                                                \
      (lzma_stream_abi *stream, uint64_t memory_max, uint32_t flags))                              \
    X(XZ, int, lzma_code, (lzma_stream_abi *stream, int action))                                   \
    X(XZ, void, lzma_end, (lzma_stream_abi *stream))                                               \
    X(XZ, uint64_t, lzma_memusage, (const lzma_stream_abi *stream))                                \
    X(LZ4, size_t, LZ4F_createDecompressionContext, (void **context, unsigned version))            \
    X(LZ4, size_t, LZ4F_freeDecompressionContext, (void *context))                                 \
    X(LZ4, size_t, LZ4F_decompress, (void *context, void *to, size_t *room, const void *from,      \
                                     size_t *count, const void *options))                          \
    X(LZ4, unsigned, LZ4F_isError, (size_t result))                                                \
    X(LZ4, const char *, LZ4F_getErrorName, (size_t result))                                       \
    X(LZ4_RAW, int, LZ4_decompress_safe, (const char *from, char *to, int count, int room))        \
    X(LZ4_RAW, int, LZ4_decompress_safe_partial,                                                   \
      (const char *from, char *to, int count, int wanted, int room))                               \
    X(SNAPPY, int, snappy_uncompressed_length, (const char *from, size_t count, size_t *length))   \
    X(SNAPPY, int, snappy_uncompress, (const char *from, size_t count, char *to, size_t *room))
/* clang-format on */

static struct functions {
/* A declarator takes no more parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FIELD(codec, result, name, parameters) result(*name) parameters;
    FUNCTIONS(FIELD)
#undef FIELD
} lib;

/* lz4: a match at distance 0 is against the format, but liblz4 takes it and copies what its buffer
 * happened to hold. So that damaged data is refused, the distances are read here as well. */
typedef struct lz4_walk {
    enum { LZ4_MAGIC, LZ4_FLAGS, LZ4_BLOCK, LZ4_DONE } part; /* of a frame, which comes next */
    uint32_t number;                                         /* as far as it is known */
    unsigned known;                                          /* its bytes */
    unsigned flags;
    uint64_t gap;  /* bytes without a meaning here, which come first */
    uint64_t left; /* of a compressed block */
    enum { LZ4_TOKEN, LZ4_LITERALS, LZ4_DISTANCE, LZ4_DISTANCE_HIGH, LZ4_MATCH } field;
    unsigned token, low;
    uint64_t literals; /* to be passed before the distance */
} lz4_walk;

struct iron__decompression {
    const struct codec_row *row;
    char name[124];   /* of the file, for messages */
    uint64_t at;      /* compressed bytes consumed */
    uint64_t frames;  /* begun */
    uint64_t padding; /* zeros since the last frame */
    bool is_inside;   /* a frame */
    bool is_full;     /* the output was full: there may be more without further input */
    unsigned char head[FRAME_HEAD_BYTES]; /* of the current frame, as far as it was given */
    uint64_t frame_at;                    /* where it begins */
    uint64_t frame_bytes;                 /* decompressed from it */
    void *context;                        /* zstd, lz4 */
    lz4_walk lz4;
    zlib_stream zlib;
    lzma_stream_abi lzma;
};

/* What a codec has to do. One without `run` has no frames: it decompresses whole blocks. */
typedef struct codec_row {
    const char *name, *library, *package;
    const char *unit;          /* "frame" */
    unsigned padding_multiple; /* zeros may follow a frame in this multiple; 0: they may not */
    bool is_last_if_padded;    /* no frame may follow the zeros */
    /* Both return false if memory is short; begin is called before every frame. */
    bool (*create)(iron__decompression *d);
    bool (*begin)(iron__decompression *d);
    void (*destroy)(iron__decompression *d);
    /* Decodes up to the end of the frame, of the input or of the output. */
    iron_status (*run)(iron__decompression *d, iron__codec_buffers *b, bool *has_ended,
                       iron_error *err);
} codec_row;

/* Errors. */

static iron_status damaged(const iron__decompression *d, const char *why, iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT,
              "%.100s cannot be decompressed: its %s data is damaged after byte %" PRIu64
              " (%.50s); copy it again",
              d->name, d->row->name, d->at, why);
}

static iron_status wrong_size(const char *name, const char *codec, const char *than, size_t room,
                              iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT,
              "%.120s: %s data decompresses to %s than %zu bytes; it is damaged", name, codec, than,
              room);
}

static void advance(iron__decompression *d, iron__codec_buffers *b, size_t consumed,
                    size_t produced) {
    d->at += consumed;
    d->frame_bytes += produced;
    b->from += consumed;
    b->from_count -= consumed;
    b->to += produced;
    b->room -= produced;
}

/* zstd */

static bool zstd_create(iron__decompression *d) {
    d->context = lib.ZSTD_createDCtx();
    return d->context && !lib.ZSTD_isError(lib.ZSTD_DCtx_setParameter(
                             d->context, ZSTD_PARAMETER_WINDOW_LOG_MAX, ZSTD_WINDOW_LOG_MAX));
}

static void zstd_destroy(iron__decompression *d) { lib.ZSTD_freeDCtx(d->context); }

/* The bytes of the size that a frame has at the end of its head; 0: it has none. */
static unsigned zstd_size_bytes(unsigned flags) {
    return flags >> 6 ? 1u << (flags >> 6) : flags >> 5 & 1;
}

size_t iron__zstd_head_bytes(unsigned flags) {
    static const unsigned char id_bytes[4] = {0, 1, 2, 4};

    return 5u + !(flags >> 5 & 1) + id_bytes[flags & 3] + zstd_size_bytes(flags);
}

uint64_t iron__zstd_content(const unsigned char *head) {
    unsigned bytes = zstd_size_bytes(head[4]);
    uint64_t size = iron__load(head + iron__zstd_head_bytes(head[4]) - bytes, bytes);

    return bytes == 0 ? UINT64_MAX : bytes == 2 ? size + 256 : size;
}

/* The window that it asks for: of a frame in one segment, the content. */
static uint64_t zstd_window(const unsigned char head[FRAME_HEAD_BYTES]) {
    uint64_t base = (uint64_t)1 << (10 + (head[5] >> 3));

    return head[4] & 0x20 ? iron__zstd_content(head) : base + base / 8 * (head[5] & 7);
}

static iron_status zstd_run(iron__decompression *d, iron__codec_buffers *b, bool *has_ended,
                            iron_error *err) {
    zstd_input input = {b->from, b->from_count, 0};
    zstd_output output = {b->to, b->room, 0};
    size_t result = lib.ZSTD_decompressStream(d->context, &output, &input);
    int code = lib.ZSTD_isError(result) ? lib.ZSTD_getErrorCode(result) : 0;

    IRON_FAIL_IF(code == ZSTD_CODE_DICTIONARY_WRONG, err, IRON_E_UNSUPPORTED,
                 "%.100s is compressed with a dictionary, which is not in it; decompress it first, "
                 "with zstd -d -D DICTIONARY",
                 d->name);
    IRON_FAIL_IF(code == ZSTD_CODE_WINDOW_TOO_LARGE, err, IRON_E_UNSUPPORTED,
                 "%.100s needs a zstd window of %" PRIu64 " bytes, more than %" PRIu64
                 "; decompress it first, with zstd -d --long=31",
                 d->name, zstd_window(d->head), (uint64_t)1 << ZSTD_WINDOW_LOG_MAX);
    if (lib.ZSTD_isError(result))
        return damaged(d, lib.ZSTD_getErrorName(result), err);
    advance(d, b, input.at, output.at);
    *has_ended = result == 0;
    /* libzstd does not compare if the last block is empty */
    if (*has_ended && d->head[0] == 0x28 && iron__zstd_content(d->head) != UINT64_MAX &&
        iron__zstd_content(d->head) != d->frame_bytes)
        return damaged(d, "the size in the header is another", err);
    return IRON_OK;
}

/* gzip */

static bool gzip_create(iron__decompression *d) {
    return lib.inflateInit2_(&d->zlib, ZLIB_GZIP_OR_ZLIB, "1", (int)sizeof d->zlib) == ZLIB_OK;
}

static bool gzip_begin(iron__decompression *d) { return lib.inflateReset(&d->zlib) == ZLIB_OK; }

static void gzip_destroy(iron__decompression *d) { lib.inflateEnd(&d->zlib); }

static iron_status gzip_run(iron__decompression *d, iron__codec_buffers *b, bool *has_ended,
                            iron_error *err) {
    zlib_stream *s = &d->zlib;
    size_t count = b->from_count < ZLIB_PIECE_BYTES ? b->from_count : ZLIB_PIECE_BYTES;
    size_t room = b->room < ZLIB_PIECE_BYTES ? b->room : ZLIB_PIECE_BYTES;
    int result;

    s->next_in = b->from;
    s->avail_in = (unsigned)count;
    s->next_out = b->to;
    s->avail_out = (unsigned)room;
    result = lib.inflate(s, ZLIB_NO_FLUSH);
    advance(d, b, count - s->avail_in, room - s->avail_out);
    *has_ended = result == ZLIB_STREAM_END;
    if (result == ZLIB_MEM_ERROR)
        return iron__no_memory(err, d->name);
    if (result != ZLIB_OK && result != ZLIB_STREAM_END && result != ZLIB_BUF_ERROR)
        return damaged(d, s->message ? s->message : "it needs a dictionary", err);
    return IRON_OK;
}

/* xz */

static bool xz_begin(iron__decompression *d) {
    return lib.lzma_stream_decoder(&d->lzma, XZ_MEMORY_BYTES_MAX, XZ_TELL_UNSUPPORTED_CHECK) ==
           XZ_OK;
}

static void xz_destroy(iron__decompression *d) { lib.lzma_end(&d->lzma); }

static iron_status xz_run(iron__decompression *d, iron__codec_buffers *b, bool *has_ended,
                          iron_error *err) {
    lzma_stream_abi *s = &d->lzma;
    int result;

    s->next_in = b->from;
    s->avail_in = b->from_count;
    s->next_out = b->to;
    s->avail_out = b->room;
    result = lib.lzma_code(s, XZ_RUN);
    advance(d, b, b->from_count - s->avail_in, b->room - s->avail_out);
    *has_ended = result == XZ_STREAM_END;
    if (result == XZ_OK || result == XZ_STREAM_END || result == XZ_BUF_ERROR)
        return IRON_OK;
    if (result == XZ_MEM_ERROR)
        return iron__no_memory(err, d->name);
    IRON_FAIL_IF(result == XZ_MEMLIMIT_ERROR, err, IRON_E_UNSUPPORTED,
                 "%.120s needs %" PRIu64 " bytes of memory to be decompressed, more than %" PRIu64
                 "; decompress it first, with xz -d",
                 d->name, lib.lzma_memusage(s), XZ_MEMORY_BYTES_MAX);
    IRON_FAIL_IF(result == XZ_UNSUPPORTED_CHECK || result == XZ_OPTIONS_ERROR, err,
                 IRON_E_UNSUPPORTED,
                 "%.120s uses %s that liblzma.so.5 does not know, after byte %" PRIu64
                 "; install a newer liblzma5, or decompress it first",
                 d->name, result == XZ_OPTIONS_ERROR ? "an option of xz" : "a check", d->at);
    return damaged(d, result == XZ_FORMAT_ERROR ? "not an xz stream" : "corrupt data", err);
}

/* lz4 */

/* Reads the next bytes of a block; false: a distance is 0. */
static bool lz4_walk_block(lz4_walk *w, const unsigned char *at, size_t count) {
    const unsigned char *end = at + count;

    while (at < end) {
        unsigned byte;

        if (w->field == LZ4_DISTANCE && w->literals > 0) {
            size_t some =
                w->literals < (size_t)(end - at) ? (size_t)w->literals : (size_t)(end - at);

            w->literals -= some;
            at += some;
            continue;
        }
        byte = *at++;
        switch (w->field) {
        case LZ4_TOKEN:
            w->token = byte;
            w->literals = byte >> 4;
            w->field = byte >> 4 == 15 ? LZ4_LITERALS : LZ4_DISTANCE;
            break;
        case LZ4_LITERALS:
            w->literals += byte;
            w->field = byte == 255 ? LZ4_LITERALS : LZ4_DISTANCE;
            break;
        case LZ4_DISTANCE:
            w->low = byte;
            w->field = LZ4_DISTANCE_HIGH;
            break;
        case LZ4_DISTANCE_HIGH:
            if (w->low == 0 && byte == 0)
                return false;
            w->field = (w->token & 15) == 15 ? LZ4_MATCH : LZ4_TOKEN;
            break;
        case LZ4_MATCH:
            w->field = byte == 255 ? LZ4_MATCH : LZ4_TOKEN;
            break;
        }
    }
    return true;
}

/* A number of the frame is known: what follows it. */
static void lz4_take_number(lz4_walk *w) {
    unsigned checksum = w->flags & 0x10 ? 4 : 0; /* after each block */

    if (w->part == LZ4_MAGIC) {
        w->part = w->number == 0x184D2204 ? LZ4_FLAGS : LZ4_DONE;
    } else if (w->part == LZ4_FLAGS) { /* sizes of blocks, of the content, dictionary, checksum */
        w->flags = w->number;
        w->gap = 1 + (w->flags & 8) + (w->flags & 1 ? 4 : 0) + 1;
        w->part = LZ4_BLOCK;
    } else if (w->number == 0) {
        w->part = LZ4_DONE;
    } else if (w->number >> 31) { /* not compressed */
        w->gap = (w->number & 0x7FFFFFFF) + (uint64_t)checksum;
    } else {
        w->left = w->number;
        w->field = LZ4_TOKEN;
    }
    w->number = w->known = 0;
}

/* Reads the next bytes of a frame; false: a distance is 0. */
static bool lz4_walk_frame(lz4_walk *w, const unsigned char *at, size_t count) {
    while (count > 0 && w->part != LZ4_DONE) {
        uint64_t *ahead = w->gap > 0 ? &w->gap : &w->left;
        size_t some = *ahead < count ? (size_t)*ahead : count;

        if (some == 0) {
            some = 1;
            w->number |= (uint32_t)*at << 8 * w->known++;
            if (w->known == (w->part == LZ4_FLAGS ? 1 : 4))
                lz4_take_number(w);
        } else {
            if (ahead == &w->left && !lz4_walk_block(w, at, some))
                return false;
            *ahead -= some;
            if (ahead == &w->left && w->left == 0)
                w->gap = w->flags & 0x10 ? 4 : 0;
        }
        at += some;
        count -= some;
    }
    return true;
}

static bool lz4_begin(iron__decompression *d) {
    d->lz4 = (lz4_walk){.part = LZ4_MAGIC};
    return true;
}

static bool lz4_create(iron__decompression *d) {
    return !lib.LZ4F_isError(lib.LZ4F_createDecompressionContext(&d->context, LZ4_FRAME_VERSION));
}

static void lz4_destroy(iron__decompression *d) { lib.LZ4F_freeDecompressionContext(d->context); }

static iron_status lz4_run(iron__decompression *d, iron__codec_buffers *b, bool *has_ended,
                           iron_error *err) {
    static const unsigned char legacy[4] = {0x02, 0x21, 0x4C, 0x18};
    size_t count = b->from_count, room = b->room;
    size_t result = lib.LZ4F_decompress(d->context, b->to, &room, b->from, &count, NULL);

    IRON_FAIL_IF(lib.LZ4F_isError(result) && memcmp(d->head, legacy, sizeof legacy) == 0, err,
                 IRON_E_UNSUPPORTED,
                 "%.120s has a legacy lz4 frame at byte %" PRIu64
                 "; decompress it first, with lz4 -d",
                 d->name, d->frame_at);
    if (lib.LZ4F_isError(result))
        return damaged(d, lib.LZ4F_getErrorName(result), err);
    if (!lz4_walk_frame(&d->lz4, b->from, count))
        return damaged(d, "a match at distance 0", err);
    advance(d, b, count, room);
    *has_ended = result == 0;
    return IRON_OK;
}

static const codec_row rows[IRON_CODEC_COUNT] = {
    [IRON_CODEC_NONE] = {"none", "", "", .run = NULL},
    [IRON_CODEC_ZSTD] = {"zstd", "libzstd.so.1", "libzstd1", "frame", .create = zstd_create,
                         .destroy = zstd_destroy, .run = zstd_run},
    [IRON_CODEC_GZIP] = {"gzip", "libz.so.1", "zlib1g", "member", .padding_multiple = 1,
                         .is_last_if_padded = true, .create = gzip_create, .begin = gzip_begin,
                         .destroy = gzip_destroy, .run = gzip_run},
    [IRON_CODEC_XZ] = {"xz", "liblzma.so.5", "liblzma5", "stream", .padding_multiple = 4,
                       .begin = xz_begin, .destroy = xz_destroy, .run = xz_run},
    [IRON_CODEC_LZ4] = {"lz4", "liblz4.so.1", "liblz4-1", "frame", .create = lz4_create,
                        .begin = lz4_begin, .destroy = lz4_destroy, .run = lz4_run},
    [IRON_CODEC_LZ4_RAW] = {"lz4_raw", "liblz4.so.1", "liblz4-1", "block", .run = NULL},
    [IRON_CODEC_SNAPPY] = {"snappy", "libsnappy.so.1", "libsnappy1v5", "block", .run = NULL},
};

const char *iron__codec_name(iron__codec codec) { return rows[codec].name; }

/* Loading. A library that is missing is looked for again each time: that is rare, and it may have
 * been installed meanwhile. */

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_loaded[IRON_CODEC_COUNT];

static const struct {
    iron__codec codec;
    iron__symbol symbol;
} symbols[] = {
#define SYMBOL(codec, result, name, parameters)                                                    \
    {IRON_CODEC_##codec, {#name, offsetof(struct functions, name), true}},
    FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static iron_status load_library(iron__codec codec, const char *name, iron_error *err) {
    const codec_row *row = &rows[codec];
    const char *const usual[] = {row->library, NULL};
    iron__symbol needed[sizeof symbols / sizeof symbols[0]];
    size_t count = 0;
    iron__library l;

    IRON_FAIL_IF(!IRON_LOADS_LIBRARIES, err, IRON_E_UNSUPPORTED,
                 "%.100s is compressed with %s, and this build of iron loads no libraries; "
                 "decompress it first, or build iron without IRON_STATIC_COMMAND",
                 name, row->name);
    for (size_t k = 0; k < sizeof symbols / sizeof symbols[0]; k++)
        if (symbols[k].codec == codec)
            needed[count++] = symbols[k].symbol;
    l = iron__library_open(NULL, usual, needed, count, &lib);
    IRON_FAIL_IF(!l.handle, err, IRON_E_UNSUPPORTED,
                 "%.120s is compressed with %s: install %s, or decompress it first", name,
                 row->name, row->package);
    if (l.missing)
        iron__library_close(&l);
    IRON_FAIL_IF(l.missing, err, IRON_E_UNSUPPORTED,
                 "%.100s is compressed with %s, and %s has no %s: install a newer %s, or "
                 "decompress it first",
                 name, row->name, row->library, l.missing, row->package);
    return IRON_OK;
}

iron_status iron__codec_load(iron__codec codec, const char *name, iron_error *err) {
    iron_status status = IRON_OK;

    if (codec == IRON_CODEC_NONE || atomic_load_explicit(&is_loaded[codec], memory_order_acquire))
        return IRON_OK;
    pthread_mutex_lock(&loading);
    if (!atomic_load(&is_loaded[codec]))
        status = load_library(codec, name, err);
    if (status == IRON_OK)
        atomic_store_explicit(&is_loaded[codec], true, memory_order_release);
    pthread_mutex_unlock(&loading);
    return status;
}

bool iron__codec_is_there(iron__codec codec) {
    return iron__codec_load(codec, "", NULL) == IRON_OK;
}

/* The public list, for iron info. */

/* lz4 blocks are in the same library as frames: they have no row. */
static const iron__codec listed[] = {IRON_CODEC_ZSTD, IRON_CODEC_GZIP, IRON_CODEC_XZ,
                                     IRON_CODEC_LZ4, IRON_CODEC_SNAPPY};

size_t iron_codec_count(void) { return sizeof listed / sizeof listed[0]; }

iron_status iron_codec_at(size_t index, iron_library_info *info, iron_error *err) {
    IRON_TRY(iron__struct_check(info, sizeof *info, "iron_library_info", err));
    IRON_FAIL_IF(index >= iron_codec_count(), err, IRON_E_ARG,
                 "codec %zu does not exist; there are %zu", index, iron_codec_count());
    *info = (iron_library_info){
        .struct_size = sizeof *info,
        .is_available = iron__codec_is_there(listed[index]),
        .name = rows[listed[index]].name,
        .library = rows[listed[index]].library,
        .package = rows[listed[index]].package,
    };
    return IRON_OK;
}

/* Streams. */

iron_status iron__decompression_create(iron__codec codec, const char *name,
                                       iron__decompression **out, iron_error *err) {
    const codec_row *row = &rows[codec];
    iron__decompression *d;

    *out = NULL;
    IRON_TRY(iron__codec_load(codec, name, err));
    IRON_FAIL_IF(!row->run, err, IRON_E_UNSUPPORTED,
                 "%.120s: %s data has no frames; only whole blocks can be decompressed", name,
                 row->name);
    IRON_TRY(IRON_NEW(&d, 1, name, err));
    d->row = row;
    strncpy(d->name, name, sizeof d->name - 1);
    if (row->create && !row->create(d)) {
        iron__decompression_destroy(d);
        return iron__no_memory(err, name);
    }
    *out = d;
    return IRON_OK;
}

void iron__decompression_destroy(iron__decompression *d) {
    if (d)
        d->row->destroy(d);
    free(d);
}

static bool is_padding_whole(const iron__decompression *d) {
    unsigned multiple = d->row->padding_multiple;

    return d->padding == 0 || (multiple > 0 && d->padding % multiple == 0);
}

/* Whether a frame can begin with this byte. */
static bool may_begin(const iron__decompression *d, unsigned char byte) {
    bool is_skipped = (byte & 0xF0) == 0x50; /* a frame without data */

    switch (d->row - rows) {
    case IRON_CODEC_ZSTD:
        return byte == 0x28 || is_skipped;
    case IRON_CODEC_GZIP: /* compressed columns may also have the header of zlib */
        return byte == 0x1F || (d->frames == 0 && (byte & 0x0F) == 8);
    case IRON_CODEC_XZ:
        return byte == 0xFD;
    default:
        return byte == 0x04 || byte == 0x02 || is_skipped;
    }
}

/* Skips padding, and begins a frame if one follows. */
static iron_status begin_frame(iron__decompression *d, iron__codec_buffers *b, iron_error *err) {
    const codec_row *row = d->row;
    bool is_allowed;

    while (b->from_count > 0 && *b->from == 0 && d->frames > 0 && row->padding_multiple > 0) {
        advance(d, b, 1, 0);
        d->padding++;
    }
    if (b->from_count == 0)
        return IRON_OK;
    is_allowed = d->padding == 0 || (!row->is_last_if_padded && is_padding_whole(d));
    IRON_FAIL_IF(!is_allowed || !may_begin(d, *b->from), err, IRON_E_FORMAT,
                 "%.120s: byte %" PRIu64
                 " (%02x) is not the start of another %s %s; remove what is not "
                 "%s",
                 d->name, d->at, *b->from, row->name, row->unit, row->name);
    if (row->begin && !row->begin(d))
        return iron__no_memory(err, d->name);
    d->is_inside = true;
    d->frames++;
    d->padding = 0;
    d->frame_at = d->at;
    d->frame_bytes = 0;
    memset(d->head, 0, sizeof d->head);
    return IRON_OK;
}

iron_status iron__decompression_run(iron__decompression *d, iron__codec_buffers *buffers,
                                    iron_error *err) {
    iron__codec_buffers *b = buffers;

    while (b->room > 0 && (b->from_count > 0 || d->is_full)) {
        size_t count, room;
        bool has_ended = false;

        if (!d->is_inside)
            IRON_TRY(begin_frame(d, b, err));
        if (!d->is_inside)
            break;
        /* the first bytes of a frame: a library need not consume them before it fails */
        for (size_t k = 0; k < b->from_count && d->at - d->frame_at + k < sizeof d->head; k++)
            d->head[d->at - d->frame_at + k] = b->from[k];
        count = b->from_count;
        room = b->room;
        IRON_TRY(d->row->run(d, b, &has_ended, err));
        d->is_inside = !has_ended;
        d->is_full = !has_ended && b->room == 0;
        if (has_ended || b->from_count < count || b->room < room)
            continue;
        if (b->from_count > 0)
            return damaged(d, "it gives neither data nor an end", err);
        break;
    }
    return IRON_OK;
}

iron_status iron__decompression_finish(const iron__decompression *d, iron_error *err) {
    const codec_row *row = d->row;

    IRON_FAIL_IF(d->is_inside || d->frames == 0, err, IRON_E_FORMAT,
                 "%.120s ends at byte %" PRIu64 ", inside a %s %s: it was cut off; copy it again",
                 d->name, d->at, row->name, row->unit);
    IRON_FAIL_IF(!is_padding_whole(d), err, IRON_E_FORMAT,
                 "%.120s ends with %" PRIu64 " zero bytes after its last %s %s, not a multiple of "
                 "%u; it is damaged",
                 d->name, d->padding, row->name, row->unit, row->padding_multiple);
    return IRON_OK;
}

/* Whole blocks. */

/* Decompresses exactly `room` bytes and requires the end; or at least their first `wanted`. */
static iron_status decompress_frames(iron__codec codec, const char *name, iron__codec_buffers b,
                                     bool is_start, iron_error *err) {
    unsigned char more;
    size_t room = b.room;
    iron__decompression *d;
    iron_status status;

    status = iron__decompression_create(codec, name, &d, err);
    if (!d)
        return status;
    status = iron__decompression_run(d, &b, err);
    if (status == IRON_OK && b.room == 0 && !is_start) { /* the end may need further bytes */
        b.to = &more;
        b.room = 1;
        status = iron__decompression_run(d, &b, err);
        if (status == IRON_OK && b.room == 0)
            status = wrong_size(name, d->row->name, "more", room, err);
        b.room = 0;
    }
    if (status == IRON_OK && (!is_start || b.room > 0))
        status = iron__decompression_finish(d, err);
    if (status == IRON_OK && b.room > 0)
        status = wrong_size(name, d->row->name, "less", room, err);
    iron__decompression_destroy(d);
    return status;
}

/* Each thread keeps its context: making one costs as much as decompressing some KiB. */

static pthread_key_t zstd_contexts;
static bool has_zstd_contexts;

static void destroy_zstd_context(void *context) { lib.ZSTD_freeDCtx(context); }

static void make_zstd_contexts(void) {
    has_zstd_contexts = pthread_key_create(&zstd_contexts, destroy_zstd_context) == 0;
}

static void *zstd_context(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *context;

    pthread_once(&once, make_zstd_contexts);
    context = has_zstd_contexts ? pthread_getspecific(zstd_contexts) : NULL;
    if (context || !has_zstd_contexts)
        return context;
    context = lib.ZSTD_createDCtx();
    if (context && pthread_setspecific(zstd_contexts, context) != 0) {
        lib.ZSTD_freeDCtx(context);
        context = NULL;
    }
    return context;
}

static iron_status decompress_zstd(const char *name, const void *from, size_t count, void *to,
                                   size_t room, iron_error *err) {
    void *context = zstd_context();
    unsigned char none;
    size_t result;

    if (!context)
        return iron__no_memory(err, name);
    result = lib.ZSTD_decompressDCtx(context, to ? to : &none, room, from, count);

    IRON_FAIL_IF(lib.ZSTD_isError(result), err, IRON_E_FORMAT,
                 "%.120s: %zu bytes of zstd data cannot be decompressed to %zu bytes (%.60s)", name,
                 count, room, lib.ZSTD_getErrorName(result));
    return result == room ? IRON_OK : wrong_size(name, "zstd", "less", room, err);
}

static iron_status decompress_lz4_block(const char *name, const void *from, size_t count, void *to,
                                        size_t room, size_t wanted, iron_error *err) {
    lz4_walk walk = {.field = LZ4_TOKEN};
    int result;

    IRON_FAIL_IF(count > INT_MAX || room > INT_MAX, err, IRON_E_FORMAT,
                 "%.120s: an lz4 block of %zu bytes that gives %zu; the format has less than 2^31",
                 name, count, room);
    if (!lz4_walk_block(&walk, from, count))
        result = -1;
    else if (wanted < room)
        result = lib.LZ4_decompress_safe_partial(from, to, (int)count, (int)wanted, (int)room);
    else
        result = lib.LZ4_decompress_safe(from, to, (int)count, (int)room);
    IRON_FAIL_IF(result < 0, err, IRON_E_FORMAT,
                 "%.120s: an lz4 block of %zu bytes cannot be decompressed to %zu bytes; it is "
                 "damaged",
                 name, count, room);
    return (size_t)result >= wanted ? IRON_OK : wrong_size(name, "lz4", "less", room, err);
}

static iron_status decompress_snappy(const char *name, const void *from, size_t count, void *to,
                                     size_t room, iron_error *err) {
    size_t length = 0;
    int result = lib.snappy_uncompressed_length(from, count, &length);

    IRON_FAIL_IF(result == SNAPPY_OK_CODE && length != room, err, IRON_E_FORMAT,
                 "%.120s: a snappy block of %zu bytes says that it gives %zu bytes, not %zu; it is "
                 "damaged",
                 name, count, length, room);
    if (result == SNAPPY_OK_CODE)
        result = lib.snappy_uncompress(from, count, to, &length);
    IRON_FAIL_IF(result != SNAPPY_OK_CODE || length != room, err, IRON_E_FORMAT,
                 "%.120s: a snappy block of %zu bytes cannot be decompressed to %zu bytes; it is "
                 "damaged",
                 name, count, room);
    return IRON_OK;
}

iron_status iron__codec_decompress(iron__codec codec, const char *name, const void *from,
                                   size_t count, void *to, size_t room, iron_error *err) {
    return iron__codec_decompress_start(codec, name, from, count, to, room, room, err);
}

iron_status iron__codec_decompress_start(iron__codec codec, const char *name, const void *from,
                                         size_t count, void *to, size_t room, size_t wanted,
                                         iron_error *err) {
    /* A stream costs a window and copies: most of a block is not worth one. */
    bool is_start = rows[codec].run && wanted < room && wanted <= room / 2;

    IRON_TRY(iron__codec_load(codec, name, err));
    if (codec == IRON_CODEC_ZSTD && !is_start)
        return decompress_zstd(name, from, count, to, room, err);
    if (codec == IRON_CODEC_LZ4_RAW)
        return decompress_lz4_block(name, from, count, to, room, wanted, err);
    if (codec == IRON_CODEC_SNAPPY)
        return decompress_snappy(name, from, count, to, room, err);
    if (codec != IRON_CODEC_NONE)
        return decompress_frames(codec, name,
                                 (iron__codec_buffers){from, count, to, is_start ? wanted : room},
                                 is_start, err);
    if (count != room)
        return wrong_size(name, "uncompressed", count < room ? "less" : "more", room, err);
    if (count > 0)
        memcpy(to, from, count);
    return IRON_OK;
}
