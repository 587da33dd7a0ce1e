/* SPDX-License-Identifier: MIT */
/*
 * registry_json.c: the registry as a JSON document: every op with what its race shows, its axes and
 * sizes, and every contender with its idea. `iron arena --list --json` prints it, and
 * docs/techniques.md is made from it.
 */
#include "arena/arena.h"
#include "core/json_write.h"
#include "ops/op.h"

static void put_axis(iron__json_writer *j, const iron__axis *axis) {
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "name", axis->name);
    iron__json_write_text(j, "about", axis->about);
    iron__json_write_open(j, "values", '[');
    for (size_t k = 0; k < axis->count; k++) {
        if (axis->words)
            iron__json_write_text(j, NULL, axis->words[k]);
        else
            iron__json_write_real(j, NULL, axis->numbers[k]);
    }
    iron__json_write_close(j, ']');
    iron__json_write_close(j, '}');
}

static void put_backends(iron__json_writer *j, uint32_t on) {
    iron__json_write_open(j, "backends", '[');
    if (on & IRON_ON_CPU)
        iron__json_write_text(j, NULL, "cpu");
    if (on & IRON_ON_CUDA)
        iron__json_write_text(j, NULL, "cuda");
    if (on & IRON_ON_OPENCL)
        iron__json_write_text(j, NULL, "opencl");
    iron__json_write_close(j, ']');
}

static void put_elements(iron__json_writer *j, uint32_t elements) {
    iron__json_write_open(j, "dtypes", '[');
    for (uint32_t k = 0; k < IRON_ELEMENTS; k++)
        if (elements & IRON_BIT(k))
            iron__json_write_text(j, NULL, iron__element_name((iron__element)k));
    iron__json_write_close(j, ']');
}

static void put_contender(iron__json_writer *j, const iron__op *op, const iron__contender *row) {
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "name", row->name);
    iron__json_write_text(j, "idea", row->idea);
    iron__json_write_text(j, "beats", row->beats);
    put_backends(j, row->backends);
    put_elements(j, row->elements ? row->elements : op->elements);
    iron__json_write_close(j, '}');
}

static void put_op(iron__json_writer *j, const iron__op *op) {
    iron__contender row;

    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "name", op->name);
    iron__json_write_text(j, "contract", op->contract);
    iron__json_write_text(j, "why", op->why);
    iron__json_write_text(j, "traffic", op->traffic);
    iron__json_write_text(j, "unless", op->unless);
    iron__json_write_text(j, "used", op->used);
    iron__json_write_text(j, "measured", iron__op_measured(op->name));
    iron__json_write_text(j, "bound", op->bound == IRON_BOUND_READ ? "read" : "copy");
    iron__json_write_text(j, "usual_dtype", iron__element_name(op->usual));
    put_elements(j, op->elements);
    iron__json_write_open(j, "baselines", '{');
    iron__json_write_text(j, "cpu", op->baselines[0]);
    iron__json_write_text(j, "gpu", op->baselines[1]);
    iron__json_write_close(j, '}');
    iron__json_write_open(j, "axes", '[');
    for (size_t k = 0; k < op->axis_count; k++)
        put_axis(j, &op->axes[k]);
    iron__json_write_close(j, ']');
    iron__json_write_open(j, "contenders", '[');
    for (size_t k = 0; op->contender_at(k, &row); k++)
        put_contender(j, op, &row);
    iron__json_write_close(j, ']');
    iron__json_write_close(j, '}');
}

void iron__registry_json(FILE *to) {
    iron__json_writer j = {.to = to};

    iron__json_write_open(&j, NULL, '{');
    iron__json_write_text(&j, "schema", "iron.registry/1");
    iron__json_write_open(&j, "ops", '[');
    for (size_t k = 0; iron__op_at(k); k++)
        put_op(&j, iron__op_at(k));
    iron__json_write_close(&j, ']');
    iron__json_write_close(&j, '}');
    iron__json_write_end(&j);
}
