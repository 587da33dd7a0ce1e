/* SPDX-License-Identifier: MIT */
/*
 * select.c: globs, sizes and strategies, as users write them, turned into what they mean. Words
 * that mean nothing are refused with a line that says what would do.
 */
#include "arena/select.h"

#include "core/fail.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_ROOM 64u

bool iron__select_matches(const char *glob, const char *name) {
    char front[128];

    if (fnmatch(glob, name, 0) == 0)
        return true;
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        snprintf(front, sizeof front, "%.*s", (int)(dot - name), name);
        if (fnmatch(glob, front, 0) == 0)
            return true;
    }
    return false;
}

bool iron__select_names(const char *glob, const char *backend) {
    return strstr(glob, backend) != NULL;
}

/* Takes the next word of a list, which is NULL after the last: what follows a comma is a word, also
 * an empty one. Too long a word is cut, and unknown then. */
static bool next_word(const char **list, char word[WORD_ROOM]) {
    const char *end;

    if (!*list)
        return false;
    end = strchr(*list, ',');
    if (!end)
        end = *list + strlen(*list);
    snprintf(word, WORD_ROOM, "%.*s", (int)(end - *list), *list);
    *list = *end ? end + 1 : NULL;
    return true;
}

/* A plain decimal number at *text, which is moved behind it; 0 is none. */
static uint64_t number_at(const char **text) {
    char *end = NULL;
    unsigned long long value;

    if (**text < '1' || **text > '9')
        return 0;
    errno = 0;
    value = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 ? value : 0;
}

/* "4096x8192" or "1000000": *cols is 0 for a plain count. */
static bool is_numbers(const char *word, uint64_t *rows, uint64_t *cols) {
    *rows = number_at(&word);
    *cols = 0;
    if (*rows > 0 && *word == 'x') {
        word++;
        *cols = number_at(&word);
        return *cols > 0 && *word == '\0';
    }
    return *rows > 0 && *word == '\0';
}

static bool is_size(const iron__size *s, const char *word) {
    const char *colon = strchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : 0;

    if (!colon)
        return strcmp(s->name, word) == 0;
    return strlen(s->set) == length && strncmp(s->set, word, length) == 0 &&
           (strcmp(colon + 1, "*") == 0 || strcmp(colon + 1, s->name) == 0);
}

static iron_status add_size(iron__chosen_size *out, size_t *count, iron__chosen_size size,
                            iron_error *err) {
    IRON_FAIL_IF(*count == IRON_SIZES_MAX, err, IRON_E_ARG, "more than %u sizes; use fewer",
                 IRON_SIZES_MAX);
    out[(*count)++] = size;
    return IRON_OK;
}

static iron_status add_named(const iron__op *op, const char *word, iron__chosen_size *out,
                             size_t *count, iron_error *err) {
    for (size_t k = 0; k < op->size_count; k++) {
        const iron__size *s = &op->sizes[k];
        iron__chosen_size size = {.rows = s->rows, .cols = s->cols, .dtype = s->dtype};

        if (!is_size(s, word))
            continue;
        snprintf(size.name, sizeof size.name, "%s:%s", s->set, s->name);
        IRON_TRY(add_size(out, count, size, err));
        if (!strchr(word, ':'))
            return IRON_OK; /* a bare name is the first set's */
    }
    return IRON_OK;
}

static bool is_known_to_any(const char *word) {
    for (size_t k = 0; iron__op_at(k); k++)
        for (size_t s = 0; s < iron__op_at(k)->size_count; s++)
            if (is_size(&iron__op_at(k)->sizes[s], word))
                return true;
    return false;
}

iron_status iron__select_sizes(const iron__op *op, const char *list, iron__chosen_size *out,
                               size_t *count, iron_error *err) {
    char word[WORD_ROOM];
    uint64_t rows, cols;

    *count = 0;
    IRON_FAIL_IF(!*list, err, IRON_E_ARG, "no size; use a name, ROWSxCOLS or a count");
    while (next_word(&list, word)) {
        if (is_numbers(word, &rows, &cols)) {
            if (op->is_line == (cols == 0))
                IRON_TRY(add_size(out, count,
                                  (iron__chosen_size){.rows = rows, .cols = op->is_line ? 1 : cols},
                                  err));
            continue;
        }
        IRON_FAIL_IF(!is_known_to_any(word), err, IRON_E_ARG,
                     "size '%s' is unknown; use a name that iron arena --list shows, ROWSxCOLS or "
                     "a count of elements",
                     word);
        IRON_TRY(add_named(op, word, out, count, err));
    }
    return IRON_OK;
}

void iron__size_text(const iron__op *op, uint64_t rows, uint64_t cols, char *text, size_t size) {
    if (op->is_line)
        snprintf(text, size, "%" PRIu64, rows);
    else
        snprintf(text, size, "%" PRIu64 "x%" PRIu64, rows, cols);
}

static iron__scope scope_named(const char *name) {
    uint32_t k = IRON_SCOPE_KERNEL; /* what is prepared is timed anyhow */

    while (k < IRON_SCOPES && strcmp(iron__scope_name((iron__scope)k), name) != 0)
        k++;
    return (iron__scope)k;
}

iron_status iron__select_scopes(const char *list, uint32_t *bits, iron_error *err) {
    char word[WORD_ROOM];

    *bits = IRON_BIT(IRON_SCOPES) - 1;
    if (!list)
        return IRON_OK;
    *bits = IRON_BIT(IRON_SCOPE_KERNEL);
    IRON_FAIL_IF(!*list, err, IRON_E_ARG, "no scope; use kernel, transfer or end_to_end");
    while (next_word(&list, word)) {
        iron__scope scope = scope_named(word);

        IRON_FAIL_IF(scope == IRON_SCOPES, err, IRON_E_ARG,
                     "scope '%s' is unknown; use kernel, transfer or end_to_end", word);
        *bits |= IRON_BIT(scope);
    }
    return IRON_OK;
}

iron_status iron__select_memory(const char *list, uint32_t *bits, iron_error *err) {
    char word[WORD_ROOM];

    *bits = IRON_BIT(IRON_GPU_STRATEGIES) - 1;
    if (!list || strcmp(list, "all") == 0)
        return IRON_OK;
    *bits = 0;
    IRON_FAIL_IF(!*list, err, IRON_E_ARG, "no memory strategy; use pageable, pinned ... or all");
    while (next_word(&list, word)) {
        iron__gpu_strategy strategy = iron__gpu_strategy_find(word);

        IRON_FAIL_IF(strategy == IRON_GPU_STRATEGIES, err, IRON_E_ARG,
                     "memory '%s' is unknown; use pageable, pinned, streams, uvm, uvm-prefetch, "
                     "zero-copy or all",
                     word);
        *bits |= IRON_BIT(strategy);
    }
    return IRON_OK;
}
