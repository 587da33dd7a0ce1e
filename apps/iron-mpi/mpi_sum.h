/* SPDX-License-Identifier: MIT */
/*
 * mpi_sum.h: the streams of `iron-mpi sum`: one of all files, or every file one.
 */
#ifndef APPS_IRON_MPI_MPI_SUM_H
#define APPS_IRON_MPI_MPI_SUM_H

#include "ranks.h"
#include "reading.h"

/* A stream, and what this rank found of it; after the reduction, what all did. */
typedef struct sum_stream {
    char *name; /* from malloc; of a file, its path */
    iron_dtype dtype;
    uint64_t tokens;
} sum_stream;

typedef struct sum_streams {
    iron_source *source; /* all files as one stream; NULL: every file is one */
    size_t count, room;
    sum_stream *list;
} sum_streams;

/* Finds the streams and shows them to `view`. Close them also when it fails. */
iron_status sum_streams_open(sum_streams *s, const reading *r, const args *a, bool as_one,
                             rank_view *view, iron_error *err);
void sum_streams_close(sum_streams *s);

#endif
