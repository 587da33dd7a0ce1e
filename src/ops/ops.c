/* SPDX-License-Identifier: MIT */
/*
 * ops.c: the ops of this build, by number and by name; and the names of element types.
 */
#include "ops/op.h"

#include <string.h>

#define IRON_OP(name) extern const iron__op iron__op_##name;
#include "ops/ops.def"
#undef IRON_OP

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

iron__element iron__element_find(const char *name) {
    size_t k = 0;

    while (k < IRON_ELEMENTS && strcmp(elements[k].name, name) != 0)
        k++;
    return (iron__element)k;
}

const iron__op *iron__op_at(size_t index) {
    return index < sizeof ops / sizeof ops[0] ? ops[index] : NULL;
}

const iron__op *iron__op_find(const char *name) {
    for (size_t k = 0; ops[k]; k++)
        if (strcmp(ops[k]->name, name) == 0)
            return ops[k];
    return NULL;
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
