/* SPDX-License-Identifier: MIT */
/*
 * format.h: what a token file format is: a row in a table, and a file of its own.
 *
 * A format recognises its files by their first bytes or their neighbours, and examines one: every
 * check that can be made before the first token is read, with all that is in its header and its
 * neighbours. What comes out is a layout: from where to where the tokens lie, and how wide they
 * are; after that nobody needs to know the format any more. `iron sniff` tells what the same rows
 * found.
 *
 * To add a format, write one file with its row and name the row in format.c.
 */
#ifndef IRON_FORMATS_FORMAT_H
#define IRON_FORMATS_FORMAT_H

#include "formats/source_file.h"

typedef struct iron__format iron__format;

/* What there is to know of a file. */
typedef struct iron__layout {
    const iron__format *format; /* NULL: a pipe that nobody looked into yet */
    iron_dtype dtype;
    uint64_t bytes;       /* of the file; IRON_COUNT_UNKNOWN: a pipe */
    uint64_t data_offset; /* of the first token */
    uint64_t tokens;      /* of a pipe: what its header says, or IRON_COUNT_UNKNOWN */
    uint64_t documents;   /* IRON_COUNT_UNKNOWN: it does not say */
} iron__layout;

/* A file that is being looked at. */
typedef struct iron__candidate {
    iron__source_file *file; /* open, at its beginning */
    const char *name;        /* for messages */
    iron_dtype dtype;        /* what the user says; IRON_DTYPE_NONE: nothing */
    bool is_for_raw;         /* and says only of files that do not say it themselves */
    const atomic_bool *stop;
    iron_sniff_report *report; /* receives the reasons; NULL: nobody asks */
    unsigned char head[IRON_HEAD_BYTES];
    size_t head_count;
} iron__candidate;

struct iron__format {
    const char *name;
    /* Does it look like one? Reads nothing but c->head and neighbours. */
    bool (*recognise)(const iron__candidate *c);
    /* Fills dtype, data_offset, tokens and documents, which begin as NONE, 0, UNKNOWN, UNKNOWN.
     * tokens may stay UNKNOWN: then it is all that follows data_offset. */
    iron_status (*examine)(iron__candidate *c, iron__layout *layout, iron_error *err);
    /* (optional) The file that a path stands for when the user names the format: owned by the
     * caller; NULL: the path itself. */
    char *(*main_path)(const char *path);
};

extern const iron__format iron__format_npy, iron__format_litpkds, iron__format_llmc,
    iron__format_megatron, iron__format_ds, iron__format_raw;

/* NULL for NULL and "auto"; an unknown name is refused. */
iron_status iron__format_find(const char *name, const iron__format **out, iron_error *err);

/* The first row that recognises the candidate, whose head must be there; raw if none does. */
const iron__format *iron__format_recognise(const iron__candidate *c);

/* Everything about an open file. `forced`: NULL to recognise it. On failure layout->format says
 * what it looked like, if it came so far. */
iron_status iron__format_examine(const iron__format *forced, iron__candidate *c,
                                 iron__layout *layout, iron_error *err);

/* For the rows. */

/* A sentence for whoever asked why. */
void iron__because(const iron__candidate *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool iron__candidate_is_pipe(const iron__candidate *c);

/* The next `want` bytes of the header, all of them. */
iron_status iron__candidate_take(iron__candidate *c, void *to, size_t want, iron_error *err);

/* Stored numbers: nothing in these files is aligned. */
uint32_t iron__stored_u32(const unsigned char *at);
uint64_t iron__stored_u64(const unsigned char *at);

#endif
