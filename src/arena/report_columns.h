/* SPDX-License-Identifier: MIT */
/*
 * report_columns.h: the columns of the terminal's table: which of them fit, and how a line of
 * figures looks in them.
 */
#ifndef IRON_ARENA_REPORT_COLUMNS_H
#define IRON_ARENA_REPORT_COLUMNS_H

#include "arena/report_words.h"

typedef enum iron__column {
    IRON_COLUMN_RANK,
    IRON_COLUMN_NAME,
    IRON_COLUMN_KERNEL,
    IRON_COLUMN_RATE,
    IRON_COLUMN_BAR,
    IRON_COLUMN_PERCENT,
    IRON_COLUMN_COLD,
    IRON_COLUMN_END_TO_END,
    IRON_COLUMN_TRANSFER,
    IRON_COLUMN_PREPARE,
    IRON_COLUMN_SPEEDUP,
    IRON_COLUMN_NOISE,
    IRON_COLUMN_SAMPLES,
    IRON_COLUMN_REGISTERS, /* these four: of the main kernel */
    IRON_COLUMN_LOCAL,
    IRON_COLUMN_SPILL,
    IRON_COLUMN_OCCUPANCY,
    IRON_COLUMNS
} iron__column;

typedef struct iron__layout {
    FILE *to;
    bool is_terminal;
    int width;
    int name_width;
    int widths[IRON_COLUMNS]; /* with the blank before each */
    bool is_shown[IRON_COLUMNS];
} iron__layout;

/* Leaves out what no row of the report has, then what matters least, until a line fits. */
iron__layout iron__layout_make(const iron__report *report, FILE *to, bool is_terminal, int width);

typedef enum iron__ink { IRON_INK_BOLD, IRON_INK_DIM, IRON_INK_RED, IRON_INK_YELLOW } iron__ink;

/* Switches colour on, or off again; nothing where there is none. */
void iron__ink_begin(const iron__layout *l, iron__ink ink);
void iron__ink_end(const iron__layout *l);

void iron__layout_titles(const iron__layout *l);
void iron__layout_row(const iron__layout *l, const iron__report_row *row);
void iron__layout_ceiling(const iron__layout *l, const iron__report_ceiling *ceiling);

/* Text from column *at on, with a blank before it unless that is 0, broken between words at the
 * width, with `indent` blanks before each further line. *at moves on. */
void iron__layout_text(const iron__layout *l, const char *text, int indent, int *at);

/* What a ceiling is called in a line of its own: "cuda ceiling: read". */
iron__words iron__ceiling_name(const iron__report_ceiling *ceiling);

#endif
