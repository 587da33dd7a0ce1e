/* SPDX-License-Identifier: MIT */
/*
 * args.h: a subcommand's arguments, from a table of its options.
 *
 * Options are --name VALUE or --name=VALUE, flags --name; -o stands for --output; -- ends them. Of
 * an option that is given again the last value counts, but for lists, which keep them all.
 * What looks like a negative number is a value, and - alone is one too. Every error is a sentence
 * in an iron_error.
 */
#ifndef APPS_SHARED_ARGS_H
#define APPS_SHARED_ARGS_H

#include <iron/iron.h>

#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef enum option_kind { OPTION_FLAG, OPTION_NUMBER, OPTION_TEXT, OPTION_LIST } option_kind;

#define LIST_ROOM 16u

/* The values of an option that may be given several times, in their order. */
typedef struct text_list {
    const char *texts[LIST_ROOM];
    size_t count;
} text_list;

typedef struct option {
    const char *name; /* without the dashes */
    option_kind kind;
    void *target; /* bool *, uint64_t *, const char ** or text_list * by kind */
    bool *given;  /* set when the option was there; may be NULL */
} option;

typedef struct args {
    const option *options;
    size_t option_count;
    char **values; /* positional ones, in order: the front of argv, which is rearranged */
    size_t value_count;
    bool wants_help;
} args;

iron_status args_parse(args *a, int argc, char **argv, iron_error *err);

/* Plain decimal digits, nothing else, below 2^64. */
iron_status parse_number(const char *what, const char *text, uint64_t *value, iron_error *err);

/* A finite real number in decimal notation. */
iron_status parse_real(const char *text, double *value, iron_error *err);

#define LATTICE_ROOM 65u /* one more than the most there may be, so that too many show as such */

/* Numbers with commas between them; the points themselves are checked by the library. */
iron_status parse_lattice(const char *text, uint32_t points[LATTICE_ROOM], uint32_t *count,
                          iron_error *err);

iron_status parse_positions(const char *text, iron_positions *positions, iron_error *err);

/* Fills an error with a sentence and returns IRON_E_ARG: `return usage(err, "...", ...)`. */
iron_status usage(iron_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
