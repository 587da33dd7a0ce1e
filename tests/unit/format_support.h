/* SPDX-License-Identifier: MIT */
/*
 * format_support.h: token files of every format, built byte by byte. A file is a blob that grows at
 * its end; tests change bytes of it to make it invalid.
 */
#ifndef TESTS_UNIT_FORMAT_SUPPORT_H
#define TESTS_UNIT_FORMAT_SUPPORT_H

#include "source_support.h"

#define BLOB_MAX 8192u

typedef struct blob {
    unsigned char data[BLOB_MAX];
    size_t count;
} blob;

static inline void put(blob *b, const void *data, size_t bytes) {
    assert_true(b->count + bytes <= BLOB_MAX);
    memcpy(b->data + b->count, data, bytes);
    b->count += bytes;
}

/* A little-endian number of `bytes` bytes. */
static inline void put_number(blob *b, uint64_t value, unsigned bytes) {
    for (unsigned k = 0; k < bytes; k++) {
        unsigned char byte = (unsigned char)(value >> 8 * k);

        put(b, &byte, 1);
    }
}

static inline void poke(blob *b, size_t at, uint64_t value, unsigned bytes) {
    assert_true(at + bytes <= b->count);
    for (unsigned k = 0; k < bytes; k++)
        b->data[at + k] = (unsigned char)(value >> 8 * k);
}

/* Tokens 1, 2, 3, ... of a width. */
static inline void put_tokens(blob *b, size_t count, unsigned width) {
    for (size_t k = 1; k <= count; k++)
        put_number(b, k, width);
}

static inline blob raw_blob(size_t tokens, unsigned width) {
    blob b = {.count = 0};

    put_tokens(&b, tokens, width);
    return b;
}

static inline blob llmc_blob(uint32_t magic, uint32_t version, size_t tokens, unsigned width) {
    blob b = {.count = 0};

    put_number(&b, magic, 4);
    put_number(&b, version, 4);
    put_number(&b, tokens, 4);
    b.count = 1024;
    put_tokens(&b, tokens, width);
    return b;
}

static inline blob litpkds_blob(unsigned code, size_t tokens, unsigned width) {
    blob b = {.count = 0};

    put(&b, "LITPKDS", 7);
    put_number(&b, 1, 8);
    put_number(&b, code, 1);
    put_number(&b, tokens, 8);
    put_tokens(&b, tokens, width);
    return b;
}

/* A header of any text. */
static inline blob npy_blob(unsigned version, const char *header, size_t tokens, unsigned width) {
    blob b = {.count = 0};

    put(&b, "\x93NUMPY", 6);
    put_number(&b, version, 1);
    put_number(&b, 0, 1);
    put_number(&b, strlen(header), version == 1 ? 2 : 4);
    put(&b, header, strlen(header));
    put_tokens(&b, tokens, width);
    return b;
}

static inline blob npy_of(const char *descr, size_t tokens, unsigned width) {
    char header[120];

    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%zu,), }\n",
             descr, tokens);
    return npy_blob(1, header, tokens, width);
}

/* An index of sequences of these lengths, three to a document. */
static inline blob megatron_index(unsigned code, const size_t *lengths, size_t count,
                                  unsigned width) {
    size_t documents = (count + 2) / 3, offset = 0;
    blob b = {.count = 0};

    put(&b, "MMIDIDX\0", 9);
    put_number(&b, 1, 8);
    put_number(&b, code, 1);
    put_number(&b, count, 8);
    put_number(&b, documents + 1, 8);
    for (size_t k = 0; k < count; k++)
        put_number(&b, lengths[k], 4);
    for (size_t k = 0; k < count; k++) {
        put_number(&b, offset, 8);
        offset += lengths[k] * width;
    }
    for (size_t k = 0; k <= documents; k++)
        put_number(&b, 3 * k < count ? 3 * k : count, 8);
    return b;
}

static inline void save(const folder *in, const char *name, const blob *b) {
    file_write(name_in(in, name).path, b->data, b->count);
}

static inline void save_text(const folder *in, const char *name, const char *text) {
    file_write(name_in(in, name).path, text, strlen(text));
}

/* Opening the file fails with this message. */
static inline void assert_open_fails(const char *path, const char *format, iron_dtype dtype,
                                     iron_status expected, const char *word) {
    iron_source *s = (iron_source *)&s;
    iron_error err;

    assert_refused(try_open(dtype, format, &path, 1, &s, &err), expected, &err);
    assert_says(&err, word);
    assert_null(s);
    assert_int_equal(try_open(dtype, format, &path, 1, &s, NULL), expected);
}

/* The source's tokens are 1, 2, 3, ... `tokens` of them. */
static inline void assert_counting(iron_source *s, size_t tokens) {
    size_t width = iron_dtype_bytes(iron_source_dtype(s)), done = 0, count = 1;
    unsigned char piece[7 * 8];
    iron_error err;

    while (count > 0) {
        assert_ok(iron_source_read(s, piece, 7, &count, &err), &err);
        for (size_t k = 0; k < count; k++) {
            uint64_t value = 0;

            memcpy(&value, piece + k * width, width);
            assert_int_equal(value, ++done);
        }
    }
    assert_int_equal(done, tokens);
}

/* Opens the file, checks its format, and reads 1, 2, 3, ... */
static inline void assert_reads(const char *path, const char *format, iron_dtype given,
                                const char *found, iron_dtype dtype, size_t tokens) {
    iron_source *s = NULL;
    iron_error err;

    assert_ok(try_open(given, format, &path, 1, &s, &err), &err);
    assert_string_equal(iron_source_file_format(s, 0), found);
    assert_int_equal(iron_source_dtype(s), dtype);
    assert_int_equal(iron_source_tokens(s), tokens);
    assert_int_equal(iron_source_file_tokens(s, 0), tokens);
    assert_counting(s, tokens);
    iron_source_close(s);
}

#endif
