/* SPDX-License-Identifier: MIT */
/*
 * test_frames.c: files that consist of parts which are decompressed alone: what is found, what is
 * left to reading in order, reads at any position by several threads, and damage.
 */
#include "codec_support.h"

#include "io/frames.h"

#include <pthread.h>

typedef struct fixture {
    folder where;
    file_name file;
    iron__input in;
    iron__frames *frames;
    iron__blocks *cache;
    iron__blocks_owner owner;
} fixture;

static iron_status fill(void *context, uint64_t index, iron__block *block, const atomic_bool *stop,
                        iron_error *err) {
    const fixture *f = context;

    (void)stop;
    return iron__frames_decode(f->frames, &f->in, index, block, err);
}

static uint64_t size(void *context, uint64_t index) {
    return iron__frames_block_bytes(((const fixture *)context)->frames, index);
}

/* Opens a file with this content; f->frames is NULL if it can only be read in order. */
static void open_content(fixture *f, iron__codec codec, const bytes *content) {
    iron_error err;

    *f = (fixture){.frames = NULL};
    folder_make(&f->where);
    f->file = name_in(&f->where, "f");
    file_write(f->file.path, content->data, content->count);
    f->in = (iron__input){.path = f->file.path, .bytes = content->count, .fd = -1};
    assert_ok(iron__input_open(&f->in, &err), &err);
    assert_ok(iron__frames_open(&f->in, codec, &f->frames, &err), &err);
    assert_ok(iron__blocks_create(4, &f->cache, &err), &err);
    f->owner = (iron__blocks_owner){
        .count = f->frames ? iron__frames_block_count(f->frames) : 0,
        .fill = fill,
        .size = size,
        .context = f,
    };
}

static void close_content(fixture *f) {
    iron__blocks_destroy(f->cache);
    iron__frames_close(f->frames);
    iron__input_close(&f->in);
    folder_remove(&f->where);
}

static iron_status read_at(fixture *f, uint64_t at, void *to, size_t want, iron_error *err) {
    iron__blocks_range range = {f->cache, &f->owner, 0};

    return iron__frames_read(f->frames, &range, at, to, want, NULL, err);
}

static void assert_none(iron__codec codec, const bytes *content) {
    fixture f;

    open_content(&f, codec, content);
    assert_null(f.frames);
    close_content(&f);
}

/* Asserts that a file has so many blocks (0: any number) and reads as the plain data. */
static void assert_parts(iron__codec codec, const bytes *content, const bytes *plain,
                         uint64_t blocks) {
    unsigned char *to = grab(plain->count);
    uint64_t total = 0;
    iron_error err;
    fixture f;

    open_content(&f, codec, content);
    assert_non_null(f.frames);
    if (blocks)
        assert_int_equal(iron__frames_block_count(f.frames), blocks);
    for (uint64_t k = 0; k < f.owner.count; k++)
        total += iron__frames_block_bytes(f.frames, k);
    assert_int_equal(total, plain->count);
    assert_int_equal(iron__frames_bytes(f.frames), plain->count);
    assert_ok(read_at(&f, 0, to, plain->count, &err), &err);
    if (plain->count > 0)
        assert_memory_equal(to, plain->data, plain->count);
    assert_ok(read_at(&f, plain->count, to, 0, &err), &err);
    assert_refused(read_at(&f, plain->count, to, 1, &err), IRON_E_ARG, &err);
    assert_refused(read_at(&f, UINT64_MAX, to, 1, &err), IRON_E_ARG, &err);
    free(to);
    close_content(&f);
}

/* A member with the extra field of BGZF, of at most 64 KiB. */
static void add_bgzf(bytes *to, const void *plain, size_t count) {
    static const unsigned char head[18] = {0x1F, 0x8B, 8, 4, 0,   0,   0, 0, 0,
                                           0xFF, 6,    0, 0, 'B', 'C', 2, 0, 0};
    bytes raw = {NULL, 0, 0};
    unsigned char sizes[8];
    unsigned long crc = crc32(0, plain, (unsigned)count);
    size_t stored;

    add_deflate(&raw, plain, count, -15);
    stored = 18 + raw.count + 8 - 1;
    bytes_add(to, head, 12);
    bytes_add(to, "BC\2", 4);
    sizes[0] = (unsigned char)stored;
    sizes[1] = (unsigned char)(stored >> 8);
    bytes_add(to, sizes, 2);
    bytes_add(to, raw.data, raw.count);
    for (unsigned k = 0; k < 4; k++) {
        sizes[k] = (unsigned char)(crc >> 8 * k);
        sizes[4 + k] = (unsigned char)(count >> 8 * k);
    }
    bytes_add(to, sizes, 8);
    bytes_clear(&raw);
}

/* The data in parts of so many bytes. */
static bytes make_parts(iron__codec codec, const bytes *plain, size_t part) {
    bytes b = {NULL, 0, 0};

    if (codec == IRON_CODEC_XZ) { /* several streams of several blocks, with padding between */
        size_t half = plain->count / 2;

        add_xz(&b, plain->data, half, part, LZMA_CHECK_CRC32);
        bytes_add(&b, "\0\0\0", 4);
        add_xz(&b, plain->data + half, plain->count - half, part, LZMA_CHECK_SHA256);
        add_xz(&b, NULL, 0, 0, LZMA_CHECK_NONE);
        bytes_add(&b, "\0\0\0\0\0\0\0", 8);
        return b;
    }
    for (size_t at = 0; at < plain->count; at += part) {
        size_t some = part < plain->count - at ? part : plain->count - at;

        if (codec == IRON_CODEC_GZIP)
            add_bgzf(&b, plain->data + at, some);
        else
            add_frame(codec, &b, plain->data + at, some);
    }
    return b;
}

static void parts_of_every_codec_are_found(void **state) {
    static const size_t parts[] = {1, 100, 255, 256, 257, 65535, 65536, 70000};

    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++)
        for (size_t k = 0; k < COUNT(parts); k++) {
            bool is_bgzf = file_codecs[c] == IRON_CODEC_GZIP;
            size_t part = is_bgzf && parts[k] > 50000 ? 50000 : parts[k];
            bytes plain = make_plain(k + 1, part == 1 ? 50 : 3 * part + 7);
            bytes b = make_parts(file_codecs[c], &plain, part);

            assert_parts(file_codecs[c], &b, &plain, file_codecs[c] == IRON_CODEC_XZ ? 0 : 1);
            bytes_clear(&b);
            bytes_clear(&plain);
        }
}

static void small_parts_form_groups(void **state) {
    bytes plain = make_plain(2, 9 << 18), b = make_parts(IRON_CODEC_ZSTD, &plain, 1 << 18);

    (void)state;
    assert_parts(IRON_CODEC_ZSTD, &b, &plain, 3); /* 4 + 4 + 1 parts */
    bytes_clear(&b);
    b = make_parts(IRON_CODEC_LZ4, &plain, 5 << 18);
    assert_parts(IRON_CODEC_LZ4, &b, &plain, 2);
    bytes_clear(&b);
    bytes_clear(&plain);
}

static void skipped_frames_and_empty_ones_are_passed(void **state) {
    static const iron__codec codecs[] = {IRON_CODEC_ZSTD, IRON_CODEC_LZ4};

    (void)state;
    for (size_t c = 0; c < COUNT(codecs); c++) {
        bytes plain = make_plain(3, 1000), b = {NULL, 0, 0};

        add_skipped(&b, 0);
        if (codecs[c] == IRON_CODEC_ZSTD)
            add_zstd(&b, NULL, 0, true);
        add_frame(codecs[c], &b, plain.data, 600);
        add_skipped(&b, 5000);
        add_frame(codecs[c], &b, plain.data + 600, 400);
        add_skipped(&b, 3);
        assert_parts(codecs[c], &b, &plain, 2);
        bytes_clear(&b);
        bytes_clear(&plain);
    }
}

/* Runs of zeros become blocks of one repeated byte, random data become stored blocks. */
static void all_kinds_of_zstd_blocks_are_passed(void **state) {
    bytes plain = {NULL, 0, 0}, b = {NULL, 0, 0};
    rng r = {7};

    (void)state;
    memset(bytes_room(&plain, 900000), 0, 900000);
    for (size_t k = 300000; k < 600000; k++)
        plain.data[k] = (unsigned char)rng_next(&r);
    plain.count = 900000;
    for (size_t k = 0; k < 3; k++)
        add_zstd(&b, plain.data + k * 300000, 300000, true);
    assert_parts(IRON_CODEC_ZSTD, &b, &plain, 1);
    bytes_clear(&b);
    bytes_clear(&plain);
}

static void unknown_sizes_are_left_to_reading_in_order(void **state) {
    bytes plain = make_plain(4, 1000), b = {NULL, 0, 0};

    (void)state;
    assert_none(IRON_CODEC_ZSTD, &b);
    add_zstd(&b, plain.data, 500, true);
    add_zstd(&b, plain.data + 500, 500, false);
    assert_none(IRON_CODEC_ZSTD, &b);
    b.count = 0;
    add_lz4(&b, plain.data, 500, true);
    add_lz4(&b, plain.data + 500, 500, false);
    assert_none(IRON_CODEC_LZ4, &b);
    b.count = 0;
    add_gzip(&b, plain.data, 1000);
    assert_none(IRON_CODEC_GZIP, &b);
    bytes_clear(&b);
    bytes_clear(&plain);
}

/* 80 MB of zeros are a few KB: the size in the header decides. */
static void large_parts_are_left_to_reading_in_order(void **state) {
    size_t count = 80000000;
    unsigned char *zeros = calloc(count, 1);
    bytes b = {NULL, 0, 0};

    (void)state;
    assert_non_null(zeros);
    add_zstd(&b, zeros, count, true);
    assert_none(IRON_CODEC_ZSTD, &b);
    b.count = 0;
    add_lz4(&b, zeros, count, true);
    assert_none(IRON_CODEC_LZ4, &b);
    free(zeros);
    bytes_clear(&b);
}

static void cut_files_have_no_table(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++) {
        bytes plain = make_plain(5, 300), b = make_parts(file_codecs[c], &plain, 150), cut;

        /* cuts between parts leave a shorter file, which is complete */
        for (size_t count = 1; count < b.count; count++) {
            iron_error err;
            fixture f;

            cut = (bytes){b.data, count, count};
            open_content(&f, file_codecs[c], &cut);
            if (f.frames) {
                unsigned char to[300];
                uint64_t total = iron__frames_bytes(f.frames);

                assert_true(total == 150 || total == 300);
                assert_ok(read_at(&f, 0, to, (size_t)total, &err), &err);
                assert_memory_equal(to, plain.data, (size_t)total);
            }
            close_content(&f);
        }
        bytes_clear(&b);
        bytes_clear(&plain);
    }
}

/* A changed byte gives no table, an error, or (in bytes that do not matter) the right data. */
static void damage_is_detected(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++) {
        bytes plain = make_plain(6, 200), b = make_parts(file_codecs[c], &plain, 100);
        size_t errors = 0;

        for (size_t k = 0; k < b.count; k++) {
            unsigned char to[200];
            iron_error err = {IRON_OK, 0, ""};
            fixture f;

            b.data[k] ^= 0x55;
            open_content(&f, file_codecs[c], &b);
            b.data[k] ^= 0x55;
            if (f.frames && iron__frames_bytes(f.frames) == 200) {
                if (read_at(&f, 0, to, 200, &err) == IRON_OK) {
                    assert_memory_equal(to, plain.data, 200);
                } else {
                    errors++;
                    assert_int_equal(err.status, IRON_E_FORMAT);
                    assert_says(&err, f.file.path);
                    assert_says(&err, ", bytes ");
                }
            }
            close_content(&f);
        }
        assert_true(errors > 20);
        bytes_clear(&b);
        bytes_clear(&plain);
    }
}

/* Sizes that the headers do not really have. */
static void sizes_must_be_those_of_the_headers(void **state) {
    bytes plain = make_plain(7, 1000), b = {NULL, 0, 0};
    unsigned char to[1256];
    iron_error err;
    fixture f;

    (void)state;
    add_bgzf(&b, plain.data, 1000);
    b.data[b.count - 4] ^= 1; /* 1001 bytes */
    open_content(&f, IRON_CODEC_GZIP, &b);
    assert_non_null(f.frames);
    assert_int_equal(iron__frames_bytes(f.frames), 1001);
    assert_refused(read_at(&f, 0, to, 1001, &err), IRON_E_FORMAT, &err);
    close_content(&f);
    b.count = 0;
    add_zstd(&b, plain.data, 1000, true);
    assert_int_equal(b.data[4] >> 5, 3); /* one segment, a size of two bytes, minus 256 */
    b.data[6]++;
    open_content(&f, IRON_CODEC_ZSTD, &b);
    assert_non_null(f.frames);
    assert_int_equal(iron__frames_bytes(f.frames), 1256);
    assert_refused(read_at(&f, 0, to, 1256, &err), IRON_E_FORMAT, &err);
    close_content(&f);
    bytes_clear(&b);
    bytes_clear(&plain);
}

typedef struct reader {
    fixture *f;
    const bytes *plain;
    uint64_t seed;
    iron_error err;
    bool is_wrong;
} reader;

static void *read_randomly(void *context) {
    reader *r = context;
    rng random = {r->seed};
    unsigned char *to = malloc(300000);

    for (int k = 0; k < 60 && to && !r->is_wrong; k++) {
        size_t at = (size_t)rng_below(&random, r->plain->count);
        size_t want = (size_t)rng_below(&random, 300000);

        want = want < r->plain->count - at ? want : r->plain->count - at;
        r->is_wrong = read_at(r->f, at, to, want, &r->err) != IRON_OK ||
                      memcmp(to, r->plain->data + at, want) != 0;
    }
    free(to);
    return NULL;
}

static void threads_read_anywhere(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT(file_codecs); c++) {
        iron__codec codec = file_codecs[c];
        bytes plain = make_plain(8, codec == IRON_CODEC_XZ ? 1 << 20 : 9 << 20);
        bytes b = make_parts(codec, &plain, codec == IRON_CODEC_GZIP ? 60000 : 200000);
        reader readers[4];
        pthread_t threads[COUNT(readers)];
        fixture f;

        open_content(&f, codec, &b);
        assert_non_null(f.frames);
        for (size_t k = 0; k < COUNT(readers); k++) {
            readers[k] = (reader){.f = &f, .plain = &plain, .seed = k + 1};
            assert_int_equal(pthread_create(&threads[k], NULL, read_randomly, &readers[k]), 0);
        }
        for (size_t k = 0; k < COUNT(readers); k++) {
            pthread_join(threads[k], NULL);
            assert_false(readers[k].is_wrong);
        }
        close_content(&f);
        bytes_clear(&b);
        bytes_clear(&plain);
    }
}

/* Frames without a checksum: what is not compressed ends where its frame does. */
static bytes make_bare_frames(const bytes *plain, size_t part) {
    bytes b = {NULL, 0, 0}, frame = {grab(ZSTD_compressBound(part)), 0, 0};

    for (size_t at = 0; at < plain->count; at += part) {
        size_t some = part < plain->count - at ? part : plain->count - at;

        frame.count =
            ZSTD_compress(frame.data, ZSTD_compressBound(part), plain->data + at, some, 1);
        assert_false(ZSTD_isError(frame.count));
        bytes_add(&b, frame.data, frame.count);
    }
    bytes_clear(&frame);
    return b;
}

/* A large file is looked at in sections, from the first place of each that looks like a part. Here
 * each part ends with what looks like several, of which the last may end where the part does. */
static void parts_inside_parts_are_not_taken_for_them(void **state) {
    const iron__codec codecs[] = {IRON_CODEC_ZSTD, IRON_CODEC_ZSTD, IRON_CODEC_LZ4,
                                  IRON_CODEC_GZIP};

    (void)state;
    for (size_t c = 0; c < COUNT(codecs); c++) {
        size_t part = codecs[c] == IRON_CODEC_GZIP ? 60000 : 900000;
        bytes inner = make_plain(9, 2000), inside = make_parts(codecs[c], &inner, 500);
        bytes plain = {NULL, 0, 0}, b;
        rng random = {c + 1};

        plain.count = ((size_t)20 << 20) / part * part;
        plain.data = grab(plain.count);
        for (size_t k = 0; k < plain.count / 8; k++) {
            uint64_t noise = rng_next(&random);

            memcpy(plain.data + 8 * k, &noise, sizeof noise);
        }
        for (size_t end = part; end <= plain.count; end += part)
            memcpy(plain.data + end - inside.count, inside.data, inside.count);
        b = c == 0 ? make_bare_frames(&plain, part) : make_parts(codecs[c], &plain, part);
        assert_parts(codecs[c], &b, &plain, 0);
        b.count -= 3; /* and with an end that is not there */
        assert_none(codecs[c], &b);
        bytes_clear(&b);
        bytes_clear(&plain);
        bytes_clear(&inside);
        bytes_clear(&inner);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_inside_parts_are_not_taken_for_them),
        cmocka_unit_test(parts_of_every_codec_are_found),
        cmocka_unit_test(small_parts_form_groups),
        cmocka_unit_test(skipped_frames_and_empty_ones_are_passed),
        cmocka_unit_test(all_kinds_of_zstd_blocks_are_passed),
        cmocka_unit_test(unknown_sizes_are_left_to_reading_in_order),
        cmocka_unit_test(large_parts_are_left_to_reading_in_order),
        cmocka_unit_test(cut_files_have_no_table),
        cmocka_unit_test(damage_is_detected),
        cmocka_unit_test(sizes_must_be_those_of_the_headers),
        cmocka_unit_test(threads_read_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
