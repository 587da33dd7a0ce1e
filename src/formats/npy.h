/* SPDX-License-Identifier: MIT */
/*
 * npy.h: NumPy array files, as far as iron needs them: one-dimensional arrays are written, and the
 * headers of arrays of up to 64 dimensions, NumPy's maximum, are read.
 */
#ifndef IRON_FORMATS_NPY_H
#define IRON_FORMATS_NPY_H

#include <iron/iron.h>

/* Longest header that is accepted; NumPy itself warns from 10,000 bytes on. */
#define IRON_NPY_HEADER_MAX 65536u

typedef struct iron__npy_header {
    char descr[8]; /* "<f4" */
    int is_fortran;
    unsigned dimensions;
    uint64_t shape[64];
    size_t data_offset;
} iron__npy_header;

/* Parses the start of a file; `bytes` may be less than the whole file but must include the
 * header. */
iron_status iron__npy_parse(const unsigned char *data, size_t bytes, iron__npy_header *out,
                            iron_error *err);

/* Writes the header of a version 1.0 file of a one-dimensional array into `head` and returns its
 * length, a multiple of 64. `descr` is a Python expression of at most 128 characters: "'<f4'", or a
 * list of fields. */
#define IRON_NPY_HEAD_MAX ((size_t)256)
size_t iron__npy_head(char head[IRON_NPY_HEAD_MAX], const char *descr, size_t count);

/* Writes a version 1.0 file of `count` elements of `width` bytes without committing it, so that the
 * caller can commit several files together. */
iron_status iron__npy_write(const char *path, const char *descr, const void *data, size_t count,
                            size_t width, iron_output **out, iron_error *err);

#endif
