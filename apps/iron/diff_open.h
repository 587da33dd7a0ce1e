/* SPDX-License-Identifier: MIT */
/*
 * diff_open.h: a side of `iron diff`: token files, standard input, or a manifest and, where they
 * are still there, its files.
 */
#ifndef APPS_IRON_DIFF_OPEN_H
#define APPS_IRON_DIFF_OPEN_H

#include "reading.h"

#include <iron/iron_digest.h>

typedef struct diff_input {
    const char *path;
    iron_manifest *manifest; /* or NULL */
    iron_source *source;     /* or NULL */
} diff_input;

/* Fills *input, which must be closed, also after a failure. */
iron_status diff_input_open(const char *path, const reading *r, diff_input *input, iron_error *err);
void diff_input_close(diff_input *input);

/* The file that holds a position, and which token of it that is; NULL: not known. */
const char *diff_input_place(const diff_input *input, uint64_t position, uint64_t *token);

#endif
