/* SPDX-License-Identifier: MIT */
/*
 * source_support.h: helpers for the tests of sources: opening several paths, streams of 16-bit
 * tokens in one file or many, read to their end or to an error.
 */
#ifndef TESTS_UNIT_SOURCE_SUPPORT_H
#define TESTS_UNIT_SOURCE_SUPPORT_H

#include "support.h"

static inline iron_status try_open(iron_dtype dtype, const char *format, const char *const *paths,
                                   size_t count, iron_source **out, iron_error *err) {
    iron_source_options o = {.struct_size = sizeof o,
                             .dtype = dtype,
                             .format = format,
                             .paths = paths,
                             .path_count = count};

    return iron_source_open(&o, out, err);
}

static inline iron_source *open_all(iron_dtype dtype, const char *const *paths, size_t count) {
    iron_source *s = NULL;
    iron_error err;

    assert_ok(try_open(dtype, NULL, paths, count, &s, &err), &err);
    assert_int_equal(iron_source_dtype(s), dtype);
    return s;
}

/* Reads to the end in pieces of `capacity` and compares. */
static inline void assert_stream(iron_source *s, const uint16_t *want, size_t tokens,
                                 size_t capacity) {
    uint16_t *piece = grab((capacity + 1) * sizeof *piece);
    size_t done = 0, count = 1;
    iron_error err;

    piece[capacity] = 0xABCD;
    while (count > 0) {
        assert_ok(iron_source_read(s, piece, capacity, &count, &err), &err);
        assert_true(count <= capacity && count <= tokens - done);
        /* reads fill the buffer: short only at the end */
        assert_true(count == capacity || done + count == tokens);
        if (count)
            assert_memory_equal(piece, want + done, count * sizeof *piece);
        done += count;
    }
    assert_int_equal(piece[capacity], 0xABCD);
    assert_int_equal(done, tokens);
    assert_ok(iron_source_read(s, piece, capacity, &count, &err), &err);
    assert_int_equal(count, 0);
    free(piece);
}

static inline void fill_u16(uint16_t *tokens, size_t count) {
    rng r = {121};

    for (size_t k = 0; k < count; k++)
        tokens[k] = (uint16_t)rng_next(&r);
}

/* 16-bit tokens, cut into files f0, f1, ... of these many tokens. */
typedef struct shards {
    file_name *names;
    const char **paths;
    size_t count;
} shards;

static inline shards shards_write(const folder *in, const uint16_t *tokens, const size_t *sizes,
                                  size_t count) {
    shards s = {grab(count * sizeof *s.names), grab(count * sizeof *s.paths), count};

    for (size_t k = 0; k < count; k++) {
        char name[32];

        snprintf(name, sizeof name, "f%zu", k);
        s.names[k] = name_in(in, name);
        s.paths[k] = s.names[k].path;
        file_write(s.paths[k], tokens, sizes[k] * sizeof *tokens);
        tokens += sizes[k];
    }
    return s;
}

static inline iron_source *shards_open(const shards *s) {
    return open_all(IRON_DTYPE_U16, s->paths, s->count);
}

static inline void shards_free(shards *s) {
    free(s->names);
    free(s->paths);
}

/* The number of open descriptors of this process. */
static inline size_t descriptors(void) {
    const folder open_ones = {"/proc/self/fd"};

    return folder_entries(&open_ones);
}

/* Reads until an error, which must be this one. */
static inline void assert_read_fails(iron_source *s, iron_status expected, const char *word) {
    unsigned char piece[64];
    iron_status status = IRON_OK;
    iron_error err = {0};
    size_t count = 1;

    while (status == IRON_OK && count > 0)
        status = iron_source_read(s, piece, sizeof piece / 8, &count, &err);
    assert_int_equal(status, expected);
    assert_int_equal(err.status, expected);
    assert_says(&err, word);
}

#endif
