/* SPDX-License-Identifier: MIT */
/*
 * report_words.h: what the printers of a report share: names, groups, figures as people read them,
 * text that cannot harm a terminal.
 */
#ifndef IRON_ARENA_REPORT_WORDS_H
#define IRON_ARENA_REPORT_WORDS_H

#include "arena/report.h"
#include "core/json_write.h"

/* A few words by value, so that they can be made in an argument list. As long as two reasons: a
 * reason still fits with every character escaped. */
typedef struct iron__words {
    char text[512];
} iron__words;

/* "atax.cuda.single-pass pinned"; no memory on the CPU. */
iron__words iron__row_name(const iron__report_row *row);

/* "host" on the CPU, where a row has none of its own. */
const char *iron__row_memory(const iron__report_row *row);

/* Same op, size, type and parameters: they race each other. */
bool iron__rows_are_grouped(const iron__report_row *a, const iron__report_row *b);

/* The row after the last of the group that begins at `first`. */
size_t iron__group_end(const iron__report *report, size_t first);

/* "histogram 4294967296 (size:LARGE) u8, data zipf" */
iron__words iron__group_title(const iron__report_row *row);
/* "4 GiB of useful bytes; bins 256" */
iron__words iron__group_facts(const iron__report_row *row);

/* Does the limit stand in the group's table? Those of the devices that race in it: their own
 * memory, and the fastest way to it. */
bool iron__group_has_ceiling(const iron__report *report, size_t first, size_t end,
                             const iron__report_ceiling *ceiling);

/* The scope, or NULL where it does not apply or the row's figures do not count. */
const iron__report_scope *iron__row_scope(const iron__report_row *row, iron__scope scope);

/* Of the ceiling, with empty caches: cold and warm share useful bytes and ceiling. 0: unknown. */
double iron__cold_percent(const iron__report_scope *scope);

/* Four significant digits, no exponent: "0.06104", "12.35", "4382". Zero and less: "". */
iron__words iron__figure(double value);
/* Likewise with a fixed number of digits and a unit after them. */
iron__words iron__figure_of(double value, int decimals, const char *unit);
/* "256 MiB", "1.5 GiB" */
iron__words iron__bytes_words(uint64_t bytes);

/* The text without control characters (blanks instead) and, where `escape` is not "", with a
 * backslash before each of its characters. */
iron__words iron__plain(const char *text, const char *escape);

/* Columns that the text takes: characters, not bytes. */
int iron__columns(const char *text);

/* The document of report_json.c, for a stream or a page. */
void iron__report_document(const iron__report *report, iron__json_writer *j);

#endif
