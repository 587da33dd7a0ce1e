/* SPDX-License-Identifier: MIT */
/*
 * notes.c: what there is to say of the ops: their texts, sizes, axes and contenders, for the
 * command, for pages, and for those who write documents from them.
 */
#include "arena/notes.h"

#include "arena/select.h"
#include "arena/select_params.h"

#include <stdio.h>
#include <string.h>

const char *iron_arena_op_at(size_t index) {
    return iron__op_at(index) ? iron__op_at(index)->name : NULL;
}

const char *iron_arena_note_title(iron_note note) {
    static const char *const titles[] = {
        "", "", "Bytes moved", "When it does not pay", "In iron's own kernels", "Measured"};

    return note < sizeof titles / sizeof titles[0] ? titles[note] : NULL;
}

const char *iron__op_note(const iron__op *op, iron_note note) {
    switch (note) {
    case IRON_NOTE_CONTRACT:
        return op->contract;
    case IRON_NOTE_WHY:
        return op->why;
    case IRON_NOTE_TRAFFIC:
        return op->traffic;
    case IRON_NOTE_UNLESS:
        return op->unless;
    case IRON_NOTE_USED:
        return op->used;
    case IRON_NOTE_MEASURED:
        return iron__op_measured(op->name);
    }
    return NULL;
}

const char *iron_arena_note(const char *op, iron_note note) {
    const iron__op *o = iron__op_find(op);

    return o ? iron__op_note(o, note) : NULL;
}

bool iron__op_axis_at(const iron__op *op, size_t index, iron_arena_axis *axis) {
    if (index >= op->axis_count || axis->struct_size != sizeof *axis)
        return false;
    axis->name = op->axes[index].name;
    axis->about = op->axes[index].about;
    iron__axis_list(&op->axes[index], axis->values, sizeof axis->values);
    iron__axis_takes(&op->axes[index], axis->takes, sizeof axis->takes);
    return true;
}

int iron_arena_axis_at(const char *op, size_t index, iron_arena_axis *axis) {
    const iron__op *o = iron__op_find(op);

    return o && iron__op_axis_at(o, index, axis);
}

bool iron__op_contender_at(const iron__op *op, size_t index, iron_arena_contender *contender) {
    static const struct {
        uint32_t bit;
        const char *name;
    } backends[] = {{IRON_ON_CPU, "cpu"}, {IRON_ON_CUDA, "cuda"}, {IRON_ON_OPENCL, "opencl"}};
    iron__contender row;
    size_t used = 0;

    if (contender->struct_size != sizeof *contender || !op->contender_at(index, &row))
        return false;
    contender->name = row.name;
    contender->idea = row.idea;
    contender->beats = row.beats ? row.beats : "";
    contender->backends[0] = '\0';
    for (size_t k = 0; k < sizeof backends / sizeof backends[0]; k++)
        if (row.backends & backends[k].bit)
            used += (size_t)snprintf(contender->backends + used, sizeof contender->backends - used,
                                     "%s%s", used > 0 ? ", " : "", backends[k].name);
    return true;
}

int iron_arena_contender_at(const char *op, size_t index, iron_arena_contender *contender) {
    const iron__op *o = iron__op_find(op);

    return o && iron__op_contender_at(o, index, contender);
}

void iron_arena_sizes(const char *op, char *text, size_t size) {
    const iron__op *o = iron__op_find(op);
    const char *set = "";
    size_t used = 0;
    char shape[40];

    text[0] = '\0';
    for (size_t k = 0; o && k < o->size_count; k++) {
        const iron__size *s = &o->sizes[k];

        if (strcmp(set, s->set) != 0)
            snprintf(text + used, size - used, "%s%s:", k > 0 ? "\n" : "", s->set);
        used = strlen(text);
        set = s->set;
        iron__size_text(o, s->rows, s->cols, shape, sizeof shape);
        snprintf(text + used, size - used, " %s (%s)", s->name, shape);
        used = strlen(text);
    }
}
