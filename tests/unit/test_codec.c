/* SPDX-License-Identifier: MIT */
/*
 * test_codec.c: decompression against the real libraries, which compress here: round trips of every
 * codec and size, sequences of frames, every truncation and every flipped bit of a small stream,
 * limits, missing libraries; and our declarations against the libraries' headers.
 */
#include "codec_support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <zstd_errors.h>

/* Libraries can be missing, or lack a function. */
static const char *absent_library, *absent_symbol;

static void *test_dlopen(const char *name, int flags) {
    return absent_library && strcmp(name, absent_library) == 0 ? NULL : dlopen(name, flags);
}

static void *test_dlsym(void *library, const char *name) {
    return absent_symbol && strcmp(name, absent_symbol) == 0 ? NULL : dlsym(library, name);
}

#define dlopen test_dlopen
#define dlsym  test_dlsym
#include "core/library.c"
#include "io/codec.c"

/* Our declarations. */

#define SAME_FIELD(ours, our_field, theirs, their_field)                                           \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&                   \
                       sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field),       \
                   #their_field)

_Static_assert(sizeof(zlib_stream) == sizeof(z_stream), "z_stream");
SAME_FIELD(zlib_stream, next_in, z_stream, next_in);
SAME_FIELD(zlib_stream, avail_in, z_stream, avail_in);
SAME_FIELD(zlib_stream, total_in, z_stream, total_in);
SAME_FIELD(zlib_stream, next_out, z_stream, next_out);
SAME_FIELD(zlib_stream, avail_out, z_stream, avail_out);
SAME_FIELD(zlib_stream, total_out, z_stream, total_out);
SAME_FIELD(zlib_stream, message, z_stream, msg);
SAME_FIELD(zlib_stream, state, z_stream, state);
SAME_FIELD(zlib_stream, alloc, z_stream, zalloc);
SAME_FIELD(zlib_stream, release, z_stream, zfree);
SAME_FIELD(zlib_stream, opaque, z_stream, opaque);
SAME_FIELD(zlib_stream, data_type, z_stream, data_type);
SAME_FIELD(zlib_stream, adler, z_stream, adler);
SAME_FIELD(zlib_stream, reserved, z_stream, reserved);

_Static_assert(sizeof(lzma_stream_abi) == sizeof(lzma_stream), "lzma_stream");
SAME_FIELD(lzma_stream_abi, next_in, lzma_stream, next_in);
SAME_FIELD(lzma_stream_abi, avail_in, lzma_stream, avail_in);
SAME_FIELD(lzma_stream_abi, total_in, lzma_stream, total_in);
SAME_FIELD(lzma_stream_abi, next_out, lzma_stream, next_out);
SAME_FIELD(lzma_stream_abi, avail_out, lzma_stream, avail_out);
SAME_FIELD(lzma_stream_abi, total_out, lzma_stream, total_out);
SAME_FIELD(lzma_stream_abi, allocator, lzma_stream, allocator);
SAME_FIELD(lzma_stream_abi, internal, lzma_stream, internal);
SAME_FIELD(lzma_stream_abi, seek_position, lzma_stream, seek_pos);
SAME_FIELD(lzma_stream_abi, reserved_enums[1], lzma_stream, reserved_enum2);

_Static_assert(sizeof(zstd_input) == sizeof(ZSTD_inBuffer), "ZSTD_inBuffer");
_Static_assert(sizeof(zstd_output) == sizeof(ZSTD_outBuffer), "ZSTD_outBuffer");
SAME_FIELD(zstd_input, data, ZSTD_inBuffer, src);
SAME_FIELD(zstd_input, bytes, ZSTD_inBuffer, size);
SAME_FIELD(zstd_input, at, ZSTD_inBuffer, pos);
SAME_FIELD(zstd_output, data, ZSTD_outBuffer, dst);
SAME_FIELD(zstd_output, bytes, ZSTD_outBuffer, size);
SAME_FIELD(zstd_output, at, ZSTD_outBuffer, pos);

#define SAME_VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_VALUE(ZSTD_PARAMETER_WINDOW_LOG_MAX, ZSTD_d_windowLogMax);
SAME_VALUE(ZSTD_CODE_WINDOW_TOO_LARGE, ZSTD_error_frameParameter_windowTooLarge);
SAME_VALUE(ZSTD_CODE_DICTIONARY_WRONG, ZSTD_error_dictionary_wrong);
SAME_VALUE(ZLIB_OK, Z_OK);
SAME_VALUE(ZLIB_STREAM_END, Z_STREAM_END);
SAME_VALUE(ZLIB_MEM_ERROR, Z_MEM_ERROR);
SAME_VALUE(ZLIB_BUF_ERROR, Z_BUF_ERROR);
SAME_VALUE(ZLIB_NO_FLUSH, Z_NO_FLUSH);
SAME_VALUE(ZLIB_GZIP_OR_ZLIB, MAX_WBITS + 32);
SAME_VALUE(XZ_OK, LZMA_OK);
SAME_VALUE(XZ_STREAM_END, LZMA_STREAM_END);
SAME_VALUE(XZ_UNSUPPORTED_CHECK, LZMA_UNSUPPORTED_CHECK);
SAME_VALUE(XZ_MEM_ERROR, LZMA_MEM_ERROR);
SAME_VALUE(XZ_MEMLIMIT_ERROR, LZMA_MEMLIMIT_ERROR);
SAME_VALUE(XZ_FORMAT_ERROR, LZMA_FORMAT_ERROR);
SAME_VALUE(XZ_OPTIONS_ERROR, LZMA_OPTIONS_ERROR);
SAME_VALUE(XZ_DATA_ERROR, LZMA_DATA_ERROR);
SAME_VALUE(XZ_BUF_ERROR, LZMA_BUF_ERROR);
SAME_VALUE(XZ_RUN, LZMA_RUN);
SAME_VALUE(XZ_TELL_UNSUPPORTED_CHECK, LZMA_TELL_UNSUPPORTED_CHECK);
SAME_VALUE(LZ4_FRAME_VERSION, LZ4F_VERSION);
SAME_VALUE(SNAPPY_OK_CODE, SNAPPY_OK);

/* Decompresses a stream in pieces of so many bytes, in and out. */
static iron_status stream_in_pieces(iron__codec codec, const void *data, size_t count, size_t in,
                                    size_t out, bytes *to, iron_error *err) {
    const unsigned char *from = data;
    iron__codec_buffers b = {NULL, 0, NULL, 0};
    iron__decompression *d;
    iron_status status;

    to->count = 0;
    IRON_TRY(iron__decompression_create(codec, "f", &d, err));
    for (;;) {
        size_t room, left = b.from_count;

        b.to = bytes_room(to, out);
        b.room = room = out;
        status = iron__decompression_run(d, &b, err);
        to->count += out - b.room;
        if (status != IRON_OK)
            break;
        if (b.room < room || b.from_count < left)
            continue;
        assert_int_equal(b.from_count, 0); /* room is left: the input must be consumed */
        if (count == 0) {
            status = iron__decompression_finish(d, err);
            break;
        }
        b.from = from;
        b.from_count = in < count ? in : count;
        from += b.from_count;
        count -= b.from_count;
    }
    iron__decompression_destroy(d);
    return status;
}

static void assert_stream(iron__codec codec, const bytes *packed, const bytes *plain, size_t in,
                          size_t out) {
    bytes got = {NULL, 0, 0};
    iron_error err;

    assert_ok(stream_in_pieces(codec, packed->data, packed->count, in, out, &got, &err), &err);
    assert_int_equal(got.count, plain->count);
    if (plain->count > 0)
        assert_memory_equal(got.data, plain->data, plain->count);
    bytes_clear(&got);
}

/* A whole block of any codec. */
static bytes pack(iron__codec codec, const bytes *plain) {
    bytes b = {NULL, 0, 0};
    size_t room;

    if (codec == IRON_CODEC_LZ4_RAW) {
        room = (size_t)LZ4_compressBound((int)plain->count);
        b.count = (size_t)LZ4_compress_default(
            (const char *)plain->data, (char *)bytes_room(&b, room), (int)plain->count, (int)room);
        assert_true(b.count > 0);
    } else if (codec == IRON_CODEC_SNAPPY) {
        room = snappy_max_compressed_length(plain->count);
        assert_int_equal(snappy_compress((const char *)plain->data, plain->count,
                                         (char *)bytes_room(&b, room), &room),
                         SNAPPY_OK);
        b.count = room;
    } else {
        add_frame(codec, &b, plain->data, plain->count);
    }
    return b;
}

static void every_codec_gives_back_the_data(void **state) {
    static const size_t sizes[] = {0, 1, 2, 100, 65536, 65537, 10000000};

    (void)state;
    for (iron__codec c = IRON_CODEC_ZSTD; c < IRON_CODEC_COUNT; c++)
        for (size_t k = 0; k < COUNT(sizes); k++) {
            if (c == IRON_CODEC_XZ && k == COUNT(sizes) - 1 && !is_full_test())
                continue; /* seconds */
            bytes plain = make_plain(k + 1, sizes[k]), packed = pack(c, &plain);
            unsigned char *to = grab(sizes[k] + 1);
            size_t wanted[] = {0, sizes[k] / 1000, sizes[k] / 3, sizes[k]};
            iron_error err;

            to[sizes[k]] = 77;
            assert_ok(iron__codec_decompress(c, "f", packed.data, packed.count, to, sizes[k], &err),
                      &err);
            assert_memory_equal(to, plain.data, sizes[k]);
            for (size_t j = 0; j < COUNT(wanted); j++) {
                memset(to, 0, sizes[k]);
                assert_ok(iron__codec_decompress_start(c, "f", packed.data, packed.count, to,
                                                       sizes[k], wanted[j], &err),
                          &err);
                assert_memory_equal(to, plain.data, wanted[j]);
            }
            assert_int_equal(to[sizes[k]], 77);
            if (rows[c].run)
                assert_stream(c, &packed, &plain, 65536, 1 << 20);
            free(to);
            bytes_clear(&packed);
            bytes_clear(&plain);
        }
}

static void a_block_must_have_exactly_its_size(void **state) {
    (void)state;
    for (iron__codec c = IRON_CODEC_ZSTD; c < IRON_CODEC_COUNT; c++) {
        bytes plain = make_plain(5, 5000), packed = pack(c, &plain);
        unsigned char *to = grab(5001);
        iron_error err;

        for (size_t room = 0; room <= 5001; room += room == 1 ? 4998 : 1)
            if (room != 5000) {
                assert_refused(
                    iron__codec_decompress(c, "f", packed.data, packed.count, to, room, &err),
                    IRON_E_FORMAT, &err);
                assert_says(&err, "f");
            }
        bytes_add(&packed, "?", 1); /* something behind it */
        assert_refused(iron__codec_decompress(c, "f", packed.data, packed.count, to, 5000, &err),
                       IRON_E_FORMAT, &err);
        free(to);
        bytes_clear(&packed);
        bytes_clear(&plain);
    }
}

static void frames_follow_one_another(void **state) {
    static const size_t pieces[] = {1, 3, 7, 64, 100000};

    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++) {
        iron__codec codec = file_codecs[c];
        bytes plain = make_plain(3, 9000), packed = {NULL, 0, 0};
        unsigned char *to = grab(plain.count);
        iron_error err;

        add_frame(codec, &packed, plain.data, 4000);
        add_frame(codec, &packed, NULL, 0);
        if (codec == IRON_CODEC_ZSTD || codec == IRON_CODEC_LZ4)
            add_skipped(&packed, 100);
        if (codec == IRON_CODEC_XZ)
            bytes_add(&packed, "\0\0\0\0\0\0\0", 8);
        add_frame(codec, &packed, plain.data + 4000, 1);
        add_frame(codec, &packed, plain.data + 4001, 4999);
        if (codec == IRON_CODEC_GZIP)
            bytes_add(&packed, "\0\0\0\0", 5);
        if (codec == IRON_CODEC_XZ)
            bytes_add(&packed, "\0\0\0", 4);
        for (size_t k = 0; k < COUNT(pieces) * COUNT(pieces); k++)
            assert_stream(codec, &packed, &plain, pieces[k % COUNT(pieces)],
                          pieces[k / COUNT(pieces)]);
        assert_ok(
            iron__codec_decompress(codec, "f", packed.data, packed.count, to, plain.count, &err),
            &err);
        assert_memory_equal(to, plain.data, plain.count);
        free(to);
        bytes_clear(&packed);
        bytes_clear(&plain);
    }
}

static void assert_stream_refused(iron__codec codec, const bytes *packed, iron_status expected,
                                  const char *word) {
    bytes got = {NULL, 0, 0};
    iron_error err;

    for (size_t piece = 1; piece < 1000000; piece *= 999) {
        assert_refused(
            stream_in_pieces(codec, packed->data, packed->count, piece, 1000, &got, &err), expected,
            &err);
        assert_says(&err, "f");
        assert_says(&err, word);
    }
    bytes_clear(&got);
}

static void a_stream_may_not_be_cut(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++) {
        bytes plain = make_plain(4, 300), packed = {NULL, 0, 0}, got = {NULL, 0, 0};
        size_t border;
        iron_error err;

        add_frame(file_codecs[c], &packed, plain.data, 100);
        border = packed.count;
        add_frame(file_codecs[c], &packed, plain.data + 100, 200);
        for (size_t cut = 0; cut < packed.count; cut++) {
            char place[40];
            iron_status status =
                stream_in_pieces(file_codecs[c], packed.data, cut, 50, 50, &got, &err);

            assert_int_equal(status, cut == border ? IRON_OK : IRON_E_FORMAT);
            assert_memory_equal(got.data, plain.data, got.count);
            if (cut == border)
                continue;
            snprintf(place, sizeof place, "ends at byte %zu,", cut);
            assert_says(&err, place);
        }
        bytes_clear(&got);
        bytes_clear(&packed);
        bytes_clear(&plain);
    }
}

/* The checksums detect every flipped bit of the data. Only a few bits of headers do not matter: for
 * those the data must still be right. */
static void flipped_bits_are_detected(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++) {
        bytes plain = make_plain(6, 200), packed = {NULL, 0, 0}, got = {NULL, 0, 0};
        size_t harmless = 0;
        iron_error err;

        add_frame(file_codecs[c], &packed, plain.data, plain.count);
        for (size_t bit = 0; bit < 8 * packed.count; bit++) {
            unsigned char *exact = grab(packed.count);
            iron_status status;

            memcpy(exact, packed.data, packed.count);
            exact[bit / 8] ^= (unsigned char)(1 << bit % 8);
            status = stream_in_pieces(file_codecs[c], exact, packed.count, 1 << 20, 70, &got, &err);
            if (status == IRON_OK) {
                harmless++;
                /* a frame of zstd or lz4 may turn into one that is skipped */
                assert_true(got.count == 0 || (got.count == plain.count &&
                                               memcmp(got.data, plain.data, got.count) == 0));
            }
            free(exact);
        }
        assert_true(harmless <= 8 * 9); /* gzip: time, flags and system */
        bytes_clear(&got);
        bytes_clear(&packed);
        bytes_clear(&plain);
    }
}

static void only_frames_may_follow(void **state) {
    bytes plain = make_plain(8, 100), b = {NULL, 0, 0};
    char place[40];

    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++) {
        b.count = 0;
        add_frame(file_codecs[c], &b, plain.data, 100);
        snprintf(place, sizeof place, "byte %zu (41)", b.count);
        bytes_add(&b, "A", 1);
        assert_stream_refused(file_codecs[c], &b, IRON_E_FORMAT, place);
    }
    b.count = 0; /* zeros are not for zstd */
    add_zstd(&b, plain.data, 100, true);
    bytes_add(&b, "\0\0\0", 4);
    assert_stream_refused(IRON_CODEC_ZSTD, &b, IRON_E_FORMAT, "(00)");
    b.count = 0; /* a member after zeros: gzip ignores it, which loses data */
    add_gzip(&b, plain.data, 100);
    bytes_add(&b, "", 1);
    add_gzip(&b, plain.data, 100);
    assert_stream_refused(IRON_CODEC_GZIP, &b, IRON_E_FORMAT, "(1f)");
    b.count = 0;
    add_xz(&b, plain.data, 100, 0, LZMA_CHECK_CRC32);
    bytes_add(&b, "\0\0", 3);
    assert_stream_refused(IRON_CODEC_XZ, &b, IRON_E_FORMAT, "3 zero bytes");
    add_xz(&b, plain.data, 100, 0, LZMA_CHECK_CRC32);
    assert_stream_refused(IRON_CODEC_XZ, &b, IRON_E_FORMAT, "(fd)");
    b.count = 0; /* a zlib stream in place of a second member */
    add_gzip(&b, plain.data, 100);
    add_deflate(&b, plain.data, 100, 15);
    assert_stream_refused(IRON_CODEC_GZIP, &b, IRON_E_FORMAT, "(78)");
    bytes_clear(&b);
    bytes_clear(&plain);
}

static void columns_may_have_zlib_headers(void **state) {
    bytes plain = make_plain(9, 3000), packed = {NULL, 0, 0};
    unsigned char *to = grab(plain.count);
    iron_error err;

    (void)state;
    add_deflate(&packed, plain.data, plain.count, 15);
    assert_ok(iron__codec_decompress(IRON_CODEC_GZIP, "f", packed.data, packed.count, to,
                                     plain.count, &err),
              &err);
    assert_memory_equal(to, plain.data, plain.count);
    free(to);
    bytes_clear(&packed);
    bytes_clear(&plain);
}

/* A header alone is enough: nothing is allocated for it. */
static void large_windows_are_refused(void **state) {
    /* no content size, window descriptor 0x98: 2^29 bytes; and one segment of 2^40 bytes */
    static const unsigned char window[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x98, 1, 0, 0};
    static const unsigned char single[] = {0x28, 0xB5, 0x2F, 0xFD, 0xE0, 0, 0, 0,
                                           0,    0,    1,    0,    0,    1, 0, 0};
    static const unsigned char dictionary[] = {0x28, 0xB5, 0x2F, 0xFD, 0x21, 7, 0, 1, 0, 0};
    bytes b = {NULL, 0, 0};
    lzma_options_lzma options;
    lzma_filter filters[2] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    lzma_block block = {.check = LZMA_CHECK_NONE,
                        .filters = filters,
                        .compressed_size = LZMA_VLI_UNKNOWN,
                        .uncompressed_size = LZMA_VLI_UNKNOWN};
    lzma_stream_flags flags = {.check = LZMA_CHECK_NONE};

    (void)state;
    bytes_add(&b, window, sizeof window);
    assert_stream_refused(IRON_CODEC_ZSTD, &b, IRON_E_UNSUPPORTED, "536870912 bytes");
    b.count = 0;
    bytes_add(&b, single, sizeof single);
    assert_stream_refused(IRON_CODEC_ZSTD, &b, IRON_E_UNSUPPORTED, "1099511627776 bytes");
    b.count = 0; /* and a dictionary of its own */
    bytes_add(&b, dictionary, sizeof dictionary);
    assert_stream_refused(IRON_CODEC_ZSTD, &b, IRON_E_UNSUPPORTED, "-D DICTIONARY");
    b.count = 0; /* an xz block header with a dictionary of 1.5 GiB */
    lzma_lzma_preset(&options, 0);
    options.dict_size = 3u << 29;
    assert_int_equal(lzma_block_header_size(&block), LZMA_OK);
    assert_int_equal(lzma_stream_header_encode(&flags, bytes_room(&b, 12)), LZMA_OK);
    b.count += 12;
    assert_int_equal(lzma_block_header_encode(&block, bytes_room(&b, block.header_size)), LZMA_OK);
    b.count += block.header_size;
    assert_stream_refused(IRON_CODEC_XZ, &b, IRON_E_UNSUPPORTED, "more than 1073741824");
    bytes_clear(&b);
}

/* libzstd does not compare the sizes if the last block is empty. */
static void a_frame_has_the_size_of_its_header(void **state) {
    static const unsigned char frames[][16] = {
        {0x28, 0xB5, 0x2F, 0xFD, 0x20, 0, 1, 0, 0},                     /* 0 */
        {0x28, 0xB5, 0x2F, 0xFD, 0x20, 2, 16, 0, 0, 'a', 'b', 1, 0, 0}, /* 2 */
        {0x28, 0xB5, 0x2F, 0xFD, 0x20, 3, 16, 0, 0, 'a', 'b', 1, 0, 0}, /* 3, but gives 2 */
        {0x28, 0xB5, 0x2F, 0xFD, 0x40, 0, 0, 0, 1, 0, 0},               /* 256, but gives 0 */
    };
    static const size_t sizes[] = {9, 14, 14, 11};

    (void)state;
    for (size_t k = 0; k < COUNT(frames); k++) {
        bytes b = {NULL, 0, 0}, plain = {(unsigned char *)(uintptr_t) "ab", k == 1 ? 2 : 0, 2};

        bytes_add(&b, frames[k], sizes[k]);
        if (k < 2)
            assert_stream(IRON_CODEC_ZSTD, &b, &plain, 1, 5);
        else
            assert_stream_refused(IRON_CODEC_ZSTD, &b, IRON_E_FORMAT, "damaged");
        bytes_clear(&b);
    }
}

static void legacy_lz4_is_refused_by_name(void **state) {
    bytes b = {NULL, 0, 0};

    (void)state;
    add_lz4(&b, "12345", 5, true);
    bytes_add(&b,
              "\x02\x21\x4C\x18\x08\0\0\0\x70"
              "abcdefg",
              16);
    assert_stream_refused(IRON_CODEC_LZ4, &b, IRON_E_UNSUPPORTED, "legacy lz4 frame");
    bytes_clear(&b);
}

/* A match that copies from where it writes: liblz4 would give what was in memory. */
static void lz4_matches_at_distance_0_are_refused(void **state) {
    static const unsigned char block[] = {0x1F, 'a', 0, 0, 9, 0x50, 'b', 'c', 'd', 'e', 'f'};
    static const unsigned char frame[] = {
        0x04, 0x22, 0x4D, 0x18, 0x60, 0x40, 0x82, 5, 0, 0, 0x80, 0x1F, 'a', 0, 0, 9, /* stored */
        4,    0,    0,    0,    0x30, 0,    0,    0,                                 /* no match */
        11,   0,    0,    0,
    };
    bytes b = {NULL, 0, 0}, plain = {NULL, 0, 0};
    unsigned char to[34];
    iron_error err;

    (void)state;
    bytes_add(&b, block, sizeof block);
    assert_refused(iron__codec_decompress(IRON_CODEC_LZ4_RAW, "f", b.data, b.count, to, 34, &err),
                   IRON_E_FORMAT, &err);
    b.data[2] = 1;
    assert_ok(iron__codec_decompress(IRON_CODEC_LZ4_RAW, "f", b.data, b.count, to, 34, &err), &err);
    assert_memory_equal(to + 25, "aaaabcdef", 9);
    bytes_clear(&b);

    bytes_add(&b, frame, sizeof frame);
    bytes_add(&b, block, sizeof block);
    bytes_add(&b, "\0\0\0", 4);
    assert_stream_refused(IRON_CODEC_LZ4, &b, IRON_E_FORMAT, "distance 0");
    b.data[sizeof frame + 2] = 1;
    bytes_add(&plain, frame + 11, 5);
    bytes_add(&plain, frame + 21, 3);
    bytes_add(&plain, to, sizeof to);
    assert_stream(IRON_CODEC_LZ4, &b, &plain, 1, 5);
    bytes_clear(&plain);
    bytes_clear(&b);
}

static void raw_codecs_have_no_streams(void **state) {
    iron__decompression *d;
    iron_error err;

    (void)state;
    assert_refused(iron__decompression_create(IRON_CODEC_SNAPPY, "f", &d, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_null(d);
    assert_refused(iron__decompression_create(IRON_CODEC_LZ4_RAW, "f", &d, &err),
                   IRON_E_UNSUPPORTED, &err);
    iron__decompression_destroy(NULL);
}

static void uncompressed_data_is_copied(void **state) {
    char to[4] = "";
    iron_error err;

    (void)state;
    assert_ok(iron__codec_decompress(IRON_CODEC_NONE, "f", "abc", 3, to, 3, &err), &err);
    assert_string_equal(to, "abc");
    assert_refused(iron__codec_decompress(IRON_CODEC_NONE, "f", "abc", 3, to, 4, &err),
                   IRON_E_FORMAT, &err);
}

static void unload_all(void) {
    for (size_t k = 0; k < IRON_CODEC_COUNT; k++)
        atomic_store(&is_loaded[k], false);
}

static void missing_libraries_are_named_with_their_packages(void **state) {
    static const char *const packages[] = {"libzstd1", "zlib1g",   "liblzma5",
                                           "liblz4-1", "liblz4-1", "libsnappy1v5"};
    iron__decompression *d;
    iron_error err;
    char line[120];

    (void)state;
    for (iron__codec c = IRON_CODEC_ZSTD; c < IRON_CODEC_COUNT; c++) {
        unload_all();
        absent_library = rows[c].library;
        assert_false(iron__codec_is_there(c));
        assert_refused(iron__codec_load(c, "a.bin", &err), IRON_E_UNSUPPORTED, &err);
        snprintf(line, sizeof line,
                 "a.bin is compressed with %s: install %s, or decompress it first",
                 iron__codec_name(c), packages[c - 1]);
        assert_string_equal(err.text, line);
        assert_string_equal(rows[c].package, packages[c - 1]);
        assert_refused(iron__decompression_create(c, "a.bin", &d, &err), IRON_E_UNSUPPORTED, &err);
        assert_refused(iron__codec_decompress(c, "a.bin", "", 0, NULL, 0, &err), IRON_E_UNSUPPORTED,
                       &err);
        /* each library is on its own */
        assert_true(iron__codec_is_there(c == IRON_CODEC_ZSTD ? IRON_CODEC_XZ : IRON_CODEC_ZSTD));
        absent_library = NULL;
        for (size_t k = 0; k < sizeof symbols / sizeof symbols[0]; k++)
            absent_symbol = symbols[k].codec == c ? symbols[k].symbol.name : absent_symbol;
        assert_refused(iron__codec_load(c, "a.bin", &err), IRON_E_UNSUPPORTED, &err);
        assert_says(&err, absent_symbol);
        absent_symbol = NULL;
        assert_true(iron__codec_is_there(c)); /* it was installed meanwhile */
    }
    assert_true(iron__codec_is_there(IRON_CODEC_NONE));
}

static void the_public_list_has_every_library(void **state) {
    iron_library_info info = {.struct_size = sizeof info};
    iron_error err;

    (void)state;
    unload_all();
    absent_library = "liblz4.so.1";
    assert_int_equal(iron_codec_count(), 5);
    for (size_t k = 0; k < iron_codec_count(); k++) {
        assert_ok(iron_codec_at(k, &info, &err), &err);
        assert_int_equal(info.is_available, strcmp(info.name, "lz4") != 0);
        assert_true(info.library[0] != '\0' && info.package[0] != '\0');
    }
    absent_library = NULL;
    assert_refused(iron_codec_at(5, &info, &err), IRON_E_ARG, &err);
    assert_ok(iron_remote_describe(&info, &err), &err);
    info.struct_size--;
    assert_refused(iron_codec_at(0, &info, &err), IRON_E_ARG, &err);
    assert_refused(iron_remote_describe(&info, &err), IRON_E_ARG, &err);
}

typedef struct worker {
    const bytes *plain, *packed;
    iron_status status;
} worker;

static void *load_and_decompress(void *context) {
    worker *w = context;

    for (size_t c = 0; c < COUNT(file_codecs) && w->status == IRON_OK; c++) {
        unsigned char to[2000];

        w->status = iron__codec_decompress(file_codecs[c], "f", w->packed[c].data,
                                           w->packed[c].count, to, sizeof to, NULL);
        if (w->status == IRON_OK && memcmp(to, w->plain->data, sizeof to) != 0)
            w->status = IRON_E_MISMATCH;
    }
    return NULL;
}

static void threads_load_at_once(void **state) {
    bytes plain = make_plain(10, 2000), packed[COUNT(file_codecs)];
    worker workers[8];
    pthread_t threads[COUNT(workers)];

    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++)
        packed[c] = pack(file_codecs[c], &plain);
    unload_all();
    for (size_t k = 0; k < COUNT(workers); k++) {
        workers[k] = (worker){&plain, packed, IRON_OK};
        assert_int_equal(pthread_create(&threads[k], NULL, load_and_decompress, &workers[k]), 0);
    }
    for (size_t k = 0; k < COUNT(workers); k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(workers[k].status, IRON_OK);
    }
    for (size_t c = 0; c < COUNT(file_codecs); c++)
        bytes_clear(&packed[c]);
    bytes_clear(&plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_gives_back_the_data),
        cmocka_unit_test(a_block_must_have_exactly_its_size),
        cmocka_unit_test(frames_follow_one_another),
        cmocka_unit_test(a_stream_may_not_be_cut),
        cmocka_unit_test(flipped_bits_are_detected),
        cmocka_unit_test(only_frames_may_follow),
        cmocka_unit_test(columns_may_have_zlib_headers),
        cmocka_unit_test(large_windows_are_refused),
        cmocka_unit_test(a_frame_has_the_size_of_its_header),
        cmocka_unit_test(legacy_lz4_is_refused_by_name),
        cmocka_unit_test(lz4_matches_at_distance_0_are_refused),
        cmocka_unit_test(raw_codecs_have_no_streams),
        cmocka_unit_test(uncompressed_data_is_copied),
        cmocka_unit_test(missing_libraries_are_named_with_their_packages),
        cmocka_unit_test(the_public_list_has_every_library),
        cmocka_unit_test(threads_load_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
