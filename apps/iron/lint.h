/* SPDX-License-Identifier: MIT */
/*
 * lint.h: what cmd_lint.c and lint_names.c share: files and findings.
 */
#ifndef APPS_IRON_LINT_H
#define APPS_IRON_LINT_H

#include "command.h"

typedef struct finding {
    const char *kind; /* a fixed word */
    char *file, *text;
    uint64_t position, count; /* IRON_COUNT_UNKNOWN: does not apply */
} finding;

typedef struct finding_list {
    finding *items;
    size_t count, capacity;
    bool is_incomplete; /* out of memory */
} finding_list;

#define NAME_CHARS 120 /* of another file's name in a sentence */

void lint_add(finding_list *list, const char *kind, const char *file, uint64_t position,
              uint64_t count, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* A file, and what reading it showed. */
typedef struct shard {
    char *path;
    bool is_named; /* by the user, not found in a directory */
    bool is_pipe;  /* or a device: it would be consumed, and might never end */
    bool is_read;  /* to its end; otherwise `problem` says why not */
    bool has_index, begins_with_eos;
    uint64_t bytes;
    iron_dtype dtype;
    char format[16];
    char *problem;            /* the message, or NULL */
    const char *problem_kind; /* NULL: the file could not be checked */
    iron_status status;
    iron_digest_result digest;
    uint32_t last; /* token */
    uint64_t empty_documents, first_empty;
    uint64_t documents, open_documents, first_open; /* open: without the EOS at the end */
} shard;

typedef struct shard_list {
    shard *items;
    size_t count, capacity;
} shard_list;

iron_status lint_no_memory(iron_error *err);

/* Looks at the names of all files (lint_names.c). */
iron_status lint_names(const shard_list *list, finding_list *found, iron_error *err);

#endif
