/* SPDX-License-Identifier: MIT */
/*
 * sum_show.h: what sum and merge found, as lines or as JSON.
 */
#ifndef APPS_SHARED_SUM_SHOW_H
#define APPS_SHARED_SUM_SHOW_H

#include "args.h"
#include "json.h"

#include <iron/iron_digest.h>

typedef struct sum_result {
    const char *name;              /* as it is printed */
    const iron_manifest *manifest; /* NULL: the next three tell it */
    const iron_digest_result *digest;
    iron_dtype dtype;
    const iron_source *source; /* of a stream */
    bool is_stream;            /* its files are listed */
    double seconds;            /* of reading; 0: nothing was read */
    uint64_t ranks;            /* 0: one process, and nothing to say of it */
} sum_result;

/* What is printed goes through one of these; {.is_json = ...} is a good start. */
typedef struct sum_printer {
    bool is_json, has_begun;
    json j;
} sum_printer;

iron_status sum_show(sum_printer *printer, const sum_result *result, iron_error *err);
/* Ends the document, if there is one. */
void sum_show_end(sum_printer *printer);

/* All names with a blank between them; free() it. NULL with err filled: out of memory. */
char *sum_join_names(const char *const *names, size_t count, iron_error *err);

#endif
