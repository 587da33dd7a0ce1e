/* SPDX-License-Identifier: MIT */
/*
 * fuzz_codec.c: compressed data of every codec. The input begins with the codec, the sizes of the
 * pieces in which a stream is given and taken, and the size that a block without frames should
 * have; the data follow.
 *
 *   streams   Whatever the pieces are, a stream gives the same data, or an error.
 *   blocks    What a stream gives, decompressing at once gives too, and the start of it; other
 *             sizes are refused.
 *   parts     A file of parts gives the data of the stream, or both are damaged.
 *
 * Without a codec's library nothing is tested.
 */
#include "fuzz.h"

#include "io/codec.h"
#include "io/frames.h"

#include <sys/mman.h>
#include <unistd.h>

#define PLAIN_BYTES_MAX ((size_t)256 << 10) /* more is not looked at */
#define BYTES_MAX       8192u

typedef struct outcome {
    iron_status status;
    bool is_long; /* more than PLAIN_BYTES_MAX */
    size_t count;
    unsigned char *data;
} outcome;

static outcome run_stream(iron__codec codec, const uint8_t *data, size_t size, size_t in,
                          size_t out) {
    outcome o = {.data = malloc(PLAIN_BYTES_MAX)};
    iron__codec_buffers b = {NULL, 0, NULL, 0};
    iron__decompression *d;
    iron_error err;

    FUZZ_REQUIRE(o.data);
    FUZZ_REQUIRE(iron__decompression_create(codec, "f", &d, &err) == IRON_OK);
    for (;;) {
        size_t left = b.from_count, room = PLAIN_BYTES_MAX - o.count;

        room = room < out ? room : out;
        o.is_long = room == 0;
        if (o.is_long)
            break;
        b.to = o.data + o.count;
        b.room = room;
        o.status = iron__decompression_run(d, &b, &err);
        o.count += room - b.room;
        if (fuzz_refused(o.status, &err))
            break;
        if (b.room < room || b.from_count < left)
            continue;
        FUZZ_REQUIRE(b.from_count == 0);
        if (size == 0) {
            o.status = iron__decompression_finish(d, &err);
            (void)fuzz_refused(o.status, &err);
            break;
        }
        b.from = data;
        b.from_count = in < size ? in : size;
        data += b.from_count;
        size -= b.from_count;
    }
    iron__decompression_destroy(d);
    return o;
}

static void check_blocks(iron__codec codec, const uint8_t *data, size_t size, const outcome *o) {
    unsigned char *to = malloc(o->count + 1);
    size_t wanted = o->count / 3;
    iron_error err;

    FUZZ_REQUIRE(to);
    if (fuzz_refused(iron__codec_decompress(codec, "f", data, size, to, o->count, &err), &err)) {
        /* newer versions of libzstd refuse empty compressed blocks here, but not in a stream */
        FUZZ_REQUIRE(codec == IRON_CODEC_ZSTD);
        free(to);
        return;
    }
    FUZZ_REQUIRE(memcmp(to, o->data, o->count) == 0);
    FUZZ_REQUIRE(
        fuzz_refused(iron__codec_decompress(codec, "f", data, size, to, o->count + 1, &err), &err));
    if (o->count > 0)
        FUZZ_REQUIRE(fuzz_refused(
            iron__codec_decompress(codec, "f", data, size, to, o->count - 1, &err), &err));
    memset(to, 0, o->count);
    FUZZ_REQUIRE(iron__codec_decompress_start(codec, "f", data, size, to, o->count, wanted, &err) ==
                 IRON_OK);
    FUZZ_REQUIRE(memcmp(to, o->data, wanted) == 0);
    free(to);
}

/* Decompresses all parts; false: one is damaged. */
static bool read_parts(const iron__frames *frames, const iron__input *in, unsigned char *to) {
    iron__block block = {.data = NULL};
    bool is_good = true;
    iron_error err;

    for (uint64_t k = 0; k < iron__frames_block_count(frames) && is_good; k++) {
        block.bytes = 0;
        is_good = !fuzz_refused(iron__frames_decode(frames, in, k, &block, &err), &err);
        if (is_good) {
            FUZZ_REQUIRE(block.bytes == iron__frames_block_bytes(frames, k));
            memcpy(to, block.data, block.bytes);
            to += block.bytes;
        }
    }
    iron__block_clear(&block);
    return is_good;
}

static void check_parts(iron__codec codec, const uint8_t *data, size_t size, const outcome *o) {
    iron__input in = {.path = "f", .bytes = size, .fd = memfd_create("f", MFD_CLOEXEC)};
    iron__frames *frames;
    iron_error err;

    FUZZ_REQUIRE(in.fd >= 0 && write(in.fd, data, size) == (ssize_t)size);
    FUZZ_REQUIRE(iron__frames_open(&in, codec, &frames, &err) == IRON_OK);
    if (frames && iron__frames_bytes(frames) < PLAIN_BYTES_MAX) {
        unsigned char *to = malloc((size_t)iron__frames_bytes(frames) + 1);
        bool is_good;

        FUZZ_REQUIRE(to);
        is_good = read_parts(frames, &in, to);
        /* BGZF's size may be a lie; for zstd see above */
        if (o->status == IRON_OK && codec != IRON_CODEC_GZIP && codec != IRON_CODEC_ZSTD)
            FUZZ_REQUIRE(is_good);
        if (o->status == IRON_OK && is_good) {
            FUZZ_REQUIRE(iron__frames_bytes(frames) == o->count);
            FUZZ_REQUIRE(memcmp(to, o->data, o->count) == 0);
        }
        free(to);
    }
    iron__frames_close(frames);
    close(in.fd);
}

/* lz4 blocks and snappy: the size comes from elsewhere. */
static void check_bare_block(iron__codec codec, const uint8_t *data, size_t size, size_t room) {
    unsigned char *to = malloc(room + 1), *start = malloc(room + 1);
    size_t wanted = room / 3;
    iron_error err;

    FUZZ_REQUIRE(to && start);
    if (!fuzz_refused(iron__codec_decompress(codec, "f", data, size, to, room, &err), &err)) {
        FUZZ_REQUIRE(iron__codec_decompress_start(codec, "f", data, size, start, room, wanted,
                                                  &err) == IRON_OK);
        FUZZ_REQUIRE(memcmp(to, start, wanted) == 0);
    }
    free(to);
    free(start);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    fuzz_input in = {bytes, size < BYTES_MAX ? size : BYTES_MAX};
    iron__codec codec = (iron__codec)(1 + fuzz_byte(&in) % (IRON_CODEC_COUNT - 1));
    size_t piece_in = 1 + fuzz_byte(&in), piece_out = 1 + fuzz_byte(&in) * 16u;
    size_t room = fuzz_word(&in, 2);
    uint8_t *data = fuzz_copy(in.at, in.left); /* of exactly its size */

    if (!iron__codec_is_there(codec)) {
        free(data);
        return 0;
    }
    if (codec == IRON_CODEC_LZ4_RAW || codec == IRON_CODEC_SNAPPY) {
        check_bare_block(codec, data, in.left, room);
    } else {
        outcome whole = run_stream(codec, data, in.left, SIZE_MAX, SIZE_MAX);
        outcome parts = run_stream(codec, data, in.left, piece_in, piece_out);

        /* with all data at hand, libzstd refuses neither a large window, which it does not need,
         * nor a block that repeats a byte 0 times */
        if (codec != IRON_CODEC_ZSTD && !whole.is_long && !parts.is_long)
            FUZZ_REQUIRE(whole.status == parts.status);
        if (whole.status == IRON_OK && parts.status == IRON_OK)
            FUZZ_REQUIRE(whole.count == parts.count &&
                         memcmp(whole.data, parts.data, whole.count) == 0);
        if (!whole.is_long && whole.status == IRON_OK)
            check_blocks(codec, data, in.left, &whole);
        if (!whole.is_long)
            check_parts(codec, data, in.left, &whole);
        free(whole.data);
        free(parts.data);
    }
    free(data);
    return 0;
}
