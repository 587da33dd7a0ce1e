/* SPDX-License-Identifier: MIT */
/*
 * ops.c: the list of ops, the element types, and checks that ops share: is a case of a
 * one-dimensional op valid, and does a device meet the requirements of a contender? See op.h.
 */
#include "core/fail.h"
#include "core/number.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define IRON_OP(name) &iron__op_##name,
static const iron__op *const ops[] = {
#include "ops/ops.def"
    NULL};
#undef IRON_OP

static const struct {
    const char *name;
    size_t bytes;
} elements[IRON_ELEMENTS] = {{"f32", 4}, {"f64", 8}, {"u8", 1}, {"u16", 2}, {"u32", 4}};

const char *iron__element_name(iron__element element) { return elements[element].name; }

size_t iron__element_bytes(iron__element element) { return elements[element].bytes; }

const iron__op *iron__op_at(size_t index) {
    return index < sizeof ops / sizeof ops[0] ? ops[index] : NULL;
}

static const struct {
    const char *op, *text;
} measured[] = {
#define IRON_MEASURED(op, text) {#op, text},
#if __has_include("ops/measured.def")
#include "ops/measured.def"
#endif
#undef IRON_MEASURED
    {NULL, NULL}};

const char *iron__op_measured(const char *name) {
    for (size_t k = 0; measured[k].op; k++)
        if (strcmp(measured[k].op, name) == 0)
            return measured[k].text;
    return NULL;
}

#define TEXT 160

/* Appends a word to a list such as "u8, u16 and u32". */
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
    return iron__fail(err, IRON_E_ARG, 0, "%s supports %s, not %s", c->op->name, list,
                      c->element < IRON_ELEMENTS ? iron__element_name(c->element) : "this type");
}

/* Also catches values that the command cannot produce, such as an index past the last word. */
static iron_status accept_value(const iron__axis *axis, double at, iron_error *err) {
    double least = axis->words ? 0 : axis->least;
    double most = axis->words ? (double)axis->count - 1 : axis->most;
    bool is_whole = axis->words || axis->is_whole;
    char list[TEXT] = "";

    if (at >= least && at <= most && (!is_whole || at == (double)(int64_t)at))
        return IRON_OK;
    IRON_FAIL_IF(!axis->words, err, IRON_E_ARG, "%s is %g; it must be %s %g to %g", axis->name, at,
                 is_whole ? "a whole number from" : "a number from", least, most);
    for (size_t k = 0; k < axis->count; k++)
        append(list, axis->words[k], k == 0, k + 1 == axis->count);
    return iron__fail(err, IRON_E_ARG, 0, "%s has no value number %g; the values are %s",
                      axis->name, at, list);
}

iron_status iron__line_accept(const iron__case *c, uint64_t most, iron_error *err) {
    char text[32];

    IRON_TRY(accept_element(c, err));
    if (most & (most - 1))
        snprintf(text, sizeof text, "%" PRIu64, most);
    else
        snprintf(text, sizeof text, "2^%d", 63 - __builtin_clzll(most));
    IRON_FAIL_IF(c->rows > most, err, IRON_E_ARG,
                 "%" PRIu64 " elements are too many for %s; the limit is %s", c->rows, c->op->name,
                 text);
    IRON_FAIL_IF(c->rows < 1 || c->cols != 1, err, IRON_E_ARG,
                 "the size of %s is a count from 1 to %s, not %" PRIu64 "x%" PRIu64, c->op->name,
                 text, c->rows, c->cols);
    for (size_t k = 0; k < c->op->axis_count; k++)
        IRON_TRY(accept_value(&c->op->axes[k], c->at[k], err));
    return IRON_OK;
}

iron_status iron__line_accept_case(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, c->op->rows_max, err);
}

/* Kernels number rows and columns with 31 bits. */
#define SIDE_MAX  UINT64_C(0x7FFFFFFF)
#define BYTES_MAX (UINT64_C(1) << 40)

iron_status iron__matrix_accept(const iron__case *c, iron_error *err) {
    uint64_t bytes = 0;

    IRON_TRY(accept_element(c, err));
    IRON_FAIL_IF(c->rows < 1 || c->cols < 1, err, IRON_E_ARG,
                 "a matrix of %" PRIu64 "x%" PRIu64 " is empty; both sides must be at least 1",
                 c->rows, c->cols);
    IRON_FAIL_IF(c->rows > SIDE_MAX || c->cols > SIDE_MAX, err, IRON_E_ARG,
                 "a matrix of %" PRIu64 "x%" PRIu64 " is too long; the limit of a side is %" PRIu64,
                 c->rows, c->cols, SIDE_MAX);
    IRON_FAIL_IF(
        __builtin_mul_overflow(c->rows * c->cols, iron__element_bytes(c->element), &bytes) ||
            bytes > BYTES_MAX,
        err, IRON_E_ARG,
        "a matrix of %" PRIu64 "x%" PRIu64 " %s is too large; the limit is 2^40 bytes", c->rows,
        c->cols, iron__element_name(c->element));
    return IRON_OK;
}

uint64_t iron__matrix_usual(uint64_t side, uint64_t step, iron__element element,
                            uint64_t cache_bytes) {
    while (side * side * iron__element_bytes(element) / 4 < cache_bytes && side < SIDE_MAX / 2)
        side += step;
    return side;
}

#define USUAL_BYTES ((uint64_t)64 << 20)

/* For ops that say no more than the bytes of a case: doubles the size until they are enough. */
static void usual_by_bytes(const iron__op *op, uint64_t cache_bytes, iron__element element,
                           uint64_t *rows, uint64_t *cols) {
    uint64_t wanted = iron__max(4 * cache_bytes, USUAL_BYTES);
    uint64_t side = op->is_line ? 1024 : 32;
    iron__case c = {.op = op,
                    .rows = side,
                    .cols = op->is_line ? 1 : side,
                    .element = element,
                    .vocab = op->vocab_usual};
    iron__case next = c;

    for (size_t k = 0; k < op->axis_count; k++)
        next.at[k] = op->axes[k].words ? 0 : op->axes[k].numbers[0];
    for (; op->accept(&next, NULL) == IRON_OK && iron__op_useful_bytes(&c) < wanted;
         next.rows *= 2, next.cols *= op->is_line ? 1 : 2)
        c = next;
    *rows = c.rows;
    *cols = c.cols;
}

void iron__op_usual_size(const iron__op *op, uint64_t cache_bytes, bool has_gpu,
                         iron__element element, uint64_t *rows, uint64_t *cols) {
    uint64_t wanted = (op->usual_caches ? op->usual_caches : 4) * cache_bytes;

    if (op->usual_size) {
        op->usual_size(cache_bytes, has_gpu, element, rows, cols);
    } else if (op->usual_log2[has_gpu].most == 0) {
        usual_by_bytes(op, cache_bytes, element, rows, cols);
    } else {
        *rows = UINT64_C(1) << op->usual_log2[has_gpu].least;
        *cols = 1;
        while (*rows * op->bytes_each < wanted && *rows >> op->usual_log2[has_gpu].most == 0)
            *rows *= 2;
    }
}

iron_status iron__needs_threads(const iron__gpu_device *device, uint32_t threads, iron_error *err) {
    IRON_FAIL_IF(device->info.group_threads_max < threads, err, IRON_E_UNSUPPORTED,
                 "%s runs groups of at most %" PRIu32 " threads; this needs %" PRIu32,
                 device->info.name, device->info.group_threads_max, threads);
    return IRON_OK;
}

iron_status iron__needs_local(const iron__gpu_device *device, uint64_t bytes, iron_error *err) {
    IRON_FAIL_IF(device->info.local_bytes_max < bytes, err, IRON_E_UNSUPPORTED,
                 "%s has %" PRIu64 " bytes of local memory per group; this needs %" PRIu64,
                 device->info.name, device->info.local_bytes_max, bytes);
    return IRON_OK;
}

iron_status iron__needs_element(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err) {
    IRON_FAIL_IF(c->element == IRON_F64 && !device->info.has_f64, err, IRON_E_UNSUPPORTED,
                 "%s does not support f64", device->info.name);
    return IRON_OK;
}
