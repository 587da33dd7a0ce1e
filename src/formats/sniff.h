/* SPDX-License-Identifier: MIT */
/*
 * sniff.h: what a file without any sign may hold, judged from a sample of its values.
 */
#ifndef IRON_FORMATS_SNIFF_H
#define IRON_FORMATS_SNIFF_H

#include "formats/format.h"

#include <stddef.h>

/* Parts of a file, each a multiple of 8 bytes from a multiple of 8 on, but for the file's end. */
typedef struct iron__sample {
    const unsigned char *data;
    size_t count;
    uint64_t file_bytes; /* of which it is a part */
} iron__sample;

/* How wide tokens seem to be; tells the reasons to the candidate's report. IRON_DTYPE_NONE: nothing
 * points to any width. */
iron_dtype iron__sniff_guess(const iron__candidate *c, const iron__sample *sample);

#endif
