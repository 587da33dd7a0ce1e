/* SPDX-License-Identifier: MIT */
/* arena_show.c: see arena_show.h. Texts of the ops are wrapped to a width that any terminal has. */
#include "arena_show.h"

#include "command.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS 96

static bool row_at(const iron_arena *a, size_t index, iron_arena_row *row) {
    row->struct_size = sizeof *row;
    return iron_arena_at(a, index, row, NULL) == IRON_OK;
}

static void print_remarks(const iron_arena *a) {
    for (size_t k = 0; iron_arena_remark(a, k); k++)
        printf("%snot here: %s\n", k == 0 ? "\n" : "", iron_arena_remark(a, k));
}

/* Was a row of that name shown before? Memories, sizes and parameters repeat it. */
static bool is_shown(const iron_arena *a, const char *name, size_t before) {
    iron_arena_row row;

    for (size_t k = 0; k < before && row_at(a, k, &row); k++)
        if (strcmp(row.name, name) == 0)
            return true;
    return false;
}

static void print_sizes(void) {
    char sizes[1024];

    printf("\nsizes\n");
    for (size_t k = 0; iron_arena_op_at(k); k++) {
        iron_arena_sizes(iron_arena_op_at(k), sizes, sizeof sizes);
        for (char *line = strtok(sizes, "\n"); line; line = strtok(NULL, "\n"))
            printf("%-10s %s\n", iron_arena_op_at(k), line);
    }
}

static void print_params(void) {
    iron_arena_axis axis = {.struct_size = sizeof axis};
    bool is_first = true;

    for (size_t k = 0; iron_arena_op_at(k); k++)
        for (size_t n = 0; iron_arena_axis_at(iron_arena_op_at(k), n, &axis); n++) {
            if (is_first)
                printf("\nparameters\n");
            is_first = false;
            printf("%-10s %s: %s (%s)\n", iron_arena_op_at(k), axis.name, axis.values, axis.about);
        }
}

void arena_show_list(const iron_arena *a) {
    iron_arena_row row;

    for (size_t k = 0; k < iron_arena_count(a) && row_at(a, k, &row); k++)
        if (!is_shown(a, row.name, k))
            printf("%-34s %s%s%s\n", row.name, row.is_peer ? "peer: " : "", row.idea,
                   row.device[0] ? "" : " (not here)");
    print_sizes();
    print_params();
    print_remarks(a);
}

void arena_show_plan(const iron_arena *a) {
    iron_arena_row row;

    for (size_t k = 0; k < iron_arena_count(a) && row_at(a, k, &row); k++) {
        printf("%-34s %-12s %-12s %-4s %10.1f MB  %s%s", row.name, row.memory, row.size, row.dtype,
               (double)row.bytes * 1e-6, row.params, row.params[0] ? "; " : "");
        if (row.reason[0])
            printf("skipped: %s\n", row.reason);
        else
            printf("%s\n", row.device);
    }
    print_remarks(a);
}

/* Words from column `at` on, up to the width; what follows a break begins at `indent`. Line breaks
 * of the text are kept. */
static void print_wrapped(const char *text, int at, int indent) {
    bool is_start = true; /* of a line: no blank before the word */

    while (*text) {
        int length = (int)strcspn(text, " \n");

        if (!is_start && at + 1 + length > COLUMNS) {
            printf("\n%*s", indent, "");
            at = indent;
            is_start = true;
        }
        at += printf("%s%.*s", is_start ? "" : " ", length, text);
        is_start = false;
        text += length;
        if (*text == '\n') {
            printf("\n%*s", text[1] == '\n' ? 0 : indent, "");
            at = indent;
            is_start = true;
        }
        text += *text != '\0';
    }
    printf("\n");
}

static void explain_notes(const char *op) {
    for (iron_note note = IRON_NOTE_WHY; iron_arena_note_title(note); note++) {
        const char *title = iron_arena_note_title(note), *text = iron_arena_note(op, note);

        if (!text)
            continue;
        printf("\n");
        print_wrapped(text, title[0] ? printf("%s: ", title) : 0, 0);
    }
}

static void explain_axes(const char *op) {
    iron_arena_axis axis = {.struct_size = sizeof axis};

    for (size_t k = 0; iron_arena_axis_at(op, k, &axis); k++) {
        if (k == 0)
            printf("\nParameters (--param NAME=VALUE,...):\n");
        print_wrapped(axis.about, printf("  %-12s ", axis.name), 15);
        print_wrapped(axis.values, printf("%15s", ""), 15);
        if (strncmp(axis.takes, "numbers", 7) == 0 || strncmp(axis.takes, "whole", 5) == 0)
            print_wrapped(axis.takes, printf("%15sor other ", ""), 15);
    }
}

static void explain_contenders(const char *op) {
    iron_arena_contender row = {.struct_size = sizeof row};

    printf("\nContenders:\n");
    for (size_t k = 0; iron_arena_contender_at(op, k, &row); k++) {
        char text[400];

        snprintf(text, sizeof text, "%s%s%s%s", row.idea, row.beats[0] ? " (improves on " : "",
                 row.beats, row.beats[0] ? ")" : "");
        print_wrapped(text, printf("  %-24s %-13s ", row.name, row.backends), 41);
    }
}

static void explain_op(const char *op) {
    print_wrapped(iron_arena_note(op, IRON_NOTE_CONTRACT), printf("%s: ", op), 0);
    explain_notes(op);
    explain_axes(op);
    explain_contenders(op);
}

iron_status arena_explain(const char *glob, iron_error *err) {
    bool is_any = false;

    for (size_t k = 0; iron_arena_op_at(k); k++) {
        if (fnmatch(glob, iron_arena_op_at(k), 0) != 0)
            continue;
        if (is_any)
            printf("\n\n");
        explain_op(iron_arena_op_at(k));
        is_any = true;
    }
    if (!is_any)
        return usage(err, "op '%.40s' is unknown; iron arena --list shows them", glob);
    return IRON_OK;
}
