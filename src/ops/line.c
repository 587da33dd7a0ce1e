/* SPDX-License-Identifier: MIT */
/*
 * line.c: is a case one of an op over a line, and what is its usual size? See line.h.
 */
#include "ops/line.h"

#include "core/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT 160

/* "u8, u16 and u32": appends a word of a list. */
static void append(char text[TEXT], const char *word, bool is_first, bool is_last) {
    size_t used = strlen(text);

    snprintf(text + used, TEXT - used, "%s%s", is_first ? "" : is_last ? " and " : ", ", word);
}

static iron_status accept_element(const iron__case *c, iron_error *err) {
    uint32_t known = c->op->elements;
    char list[TEXT] = "";

    if (c->element < IRON_ELEMENTS && known & IRON_BIT(c->element))
        return IRON_OK;
    for (uint32_t k = 0; k < IRON_ELEMENTS; k++)
        if (known & IRON_BIT(k))
            append(list, iron__element_name((iron__element)k), list[0] == '\0', known >> k == 1);
    return iron__fail(err, IRON_E_ARG, 0, "%s knows %s, not %s", c->op->name, list,
                      c->element < IRON_ELEMENTS ? iron__element_name(c->element) : "this type");
}

static iron_status accept_count(const iron__case *c, uint64_t most, iron_error *err) {
    char text[32];

    if (most & (most - 1))
        snprintf(text, sizeof text, "%" PRIu64, most);
    else
        snprintf(text, sizeof text, "2^%d", 63 - __builtin_clzll(most));
    IRON_FAIL_IF(c->rows > most, err, IRON_E_ARG,
                 "%" PRIu64 " elements are too many for %s; up to %s go", c->rows, c->op->name,
                 text);
    IRON_FAIL_IF(c->rows < 1 || c->cols != 1, err, IRON_E_ARG,
                 "%s is over a line of 1 to %s elements, not %" PRIu64 "x%" PRIu64, c->op->name,
                 text, c->rows, c->cols);
    return IRON_OK;
}

/* Also of what no command could have asked for: a word's number, say. */
static iron_status accept_value(const iron__axis *axis, double at, iron_error *err) {
    double least = axis->words ? 0 : axis->least;
    double most = axis->words ? (double)axis->count - 1 : axis->most;
    bool is_whole = axis->words || axis->is_whole;
    char list[TEXT] = "";

    if (at >= least && at <= most && (!is_whole || at == (double)(int64_t)at))
        return IRON_OK;
    if (!axis->words)
        return iron__fail(err, IRON_E_ARG, 0, "%s is %g; it must be %s %g to %g", axis->name, at,
                          is_whole ? "a whole number from" : "a number from", least, most);
    for (size_t k = 0; k < axis->count; k++)
        append(list, axis->words[k], k == 0, k + 1 == axis->count);
    return iron__fail(err, IRON_E_ARG, 0, "%s has no value number %g; there are %s", axis->name, at,
                      list);
}

iron_status iron__line_accept(const iron__case *c, uint64_t most, iron_error *err) {
    IRON_TRY(accept_element(c, err));
    IRON_TRY(accept_count(c, most, err));
    for (size_t k = 0; k < c->op->axis_count; k++)
        IRON_TRY(accept_value(&c->op->axes[k], c->at[k], err));
    return IRON_OK;
}

uint64_t iron__line_usual(uint64_t least, uint64_t most, size_t element_bytes,
                          uint64_t cache_bytes) {
    uint64_t count = least;

    while (count * element_bytes < 4 * cache_bytes && count < most)
        count *= 2;
    return count;
}
