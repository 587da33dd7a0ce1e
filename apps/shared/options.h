/* SPDX-License-Identifier: MIT */
/*
 * options.h: the table that describes a command.
 *
 * Every command is one struct command: synopsis, description, options, exit status, examples. The
 * parser, --help, the manual pages and the shell completions all read it, so each option is
 * described in one place:
 *
 *     typedef struct gen_options { uint64_t count; const char *output; } gen_options;
 *     static const option gen_table[] = {
 *         OPTION("count", OPTION_NUMBER, "N", gen_options, count, "number of tokens"),
 *         OPTION("output", OPTION_TEXT, "FILE", gen_options, output, "output file",
 *                .letter = 'o'),
 *     };
 *
 * A command line may contain --name VALUE, --name=VALUE, -x VALUE, flags (--name) and positional
 * values in any order; "--" ends the options. "-" and negative numbers are values. If an option is
 * repeated, the last value counts, except for OPTION_LIST, which keeps all values. There are no
 * abbreviations: an unknown option is an error.
 */
#ifndef APPS_SHARED_OPTIONS_H
#define APPS_SHARED_OPTIONS_H

#include <iron/iron.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_NUMBER, /* uint32_t or uint64_t, as parse_number reads it */
    OPTION_REAL,   /* double */
    OPTION_TEXT,   /* const char *; `choices` are suggestions, the value is checked elsewhere */
    OPTION_CHOICE, /* const char *, one of `choices` */
    OPTION_LIST    /* text_list: the option may be repeated */
} option_kind;

#define LIST_ROOM 64u

typedef struct text_list {
    const char *texts[LIST_ROOM];
    size_t count;
} text_list;

typedef struct option {
    const char *name; /* without the dashes */
    char letter;      /* short form, 'o' for -o; 0: none */
    option_kind kind;
    const char *argument; /* name of the value in the help, "FILE"; NULL for flags */
    const char *choices;  /* separated by spaces, or NULL */
    const char *standard; /* the default as the help shows it, or NULL */
    const char *help;     /* what the option does; starts in lower case, no final period */
    uint64_t min, max;    /* of a number; max 0: as much as the field holds */
    size_t offset, bytes; /* of the value in the command's struct */
    size_t given;         /* GIVEN: offset + 1 of a bool that is set if the option is present */
} option;

/* One row: its value goes to `member` of the struct `type`; further members of the row follow. */
#define OPTION(name_, kind_, argument_, type, member, help_, ...)                                  \
    {                                                                                              \
        .name = name_, .kind = kind_, .argument = argument_, .help = help_,                        \
        .offset = offsetof(type, member), .bytes = sizeof(((type *)0)->member), __VA_ARGS__        \
    }
#define GIVEN(type, member) .given = (offsetof(type, member) + 1)

/* Options under one heading of the help. */
typedef struct option_group {
    const char *heading;   /* NULL: "Options" */
    const option *options; /* NULL ends a list of groups */
    size_t count;
    size_t offset; /* of the group's struct inside the command's struct */
} option_group;

#define GROUPS_MAX 4

/* What is left of a command line after its options. */
typedef struct args {
    char **values; /* positional values in order; points into argv, which is rearranged */
    size_t value_count;
    bool wants_help;
} args;

typedef struct command command;

struct command {
    const char *name;        /* "": the program itself */
    const char *summary;     /* one line for the list of commands */
    const char *synopsis;    /* usage line after the name */
    const char *description; /* paragraphs, separated by an empty line */
    option_group groups[GROUPS_MAX + 1];
    const char *arguments;   /* possible positional values, for completion; NULL: files */
    const char *exit_status; /* NULL: the usual one */
    const char *environment; /* names of the variables it reads, separated by spaces, or NULL */
    const char *examples;    /* one per line, or NULL */
    const command *const *commands; /* of a program: the commands that its help lists */
    size_t command_count;
    size_t options_bytes; /* of the struct that the fields of `groups` belong to */
    const void *defaults; /* such a struct; NULL: zeros */
    iron_status (*run)(void *options, args *a, iron_error *err); /* may change both */
};

/* Texts that several tables share. */
#define JSON_HELP        "print one JSON document"
#define LATTICE_HELP     "2 to 64 lattice points, strictly increasing, each 1 to 65535"
#define LATTICE_STANDARD "7,15,23,31,47,63,95,127,191,255,383,511"

/* Parses a command line into `into`, the struct that the fields of the table belong to. */
iron_status options_parse(const option_group *groups, void *into, args *a, int argc, char **argv,
                          iron_error *err);

/* The same into new memory with the command's defaults; free() *options, also after a failure. */
iron_status command_parse(const command *c, void **options, args *a, int argc, char **argv,
                          iron_error *err);

/* `program` is how the usage line calls the program. */
void command_help(FILE *to, const char *program, const command *c);
const command *command_find(const command *const *commands, size_t count, const char *name);

/* "-o, --output FILE", and the help text with choices, range and default in parentheses. */
void option_term(const option *o, char *text, size_t room);
void option_text(const option *o, char *text, size_t room);

/* Is `word` one of the words of `list`, which are separated by spaces? */
bool has_word(const char *list, const char *word);

/* Prints words, starting at `column`; lines longer than `width` continue at `indent`. Line breaks
 * in the text are kept. */
void print_wrapped(FILE *to, const char *text, size_t column, size_t indent, size_t width);

/* Finds the name that a misspelt word was probably meant to be; begins with .word alone. */
typedef struct suggestion {
    const char *word, *best; /* best: NULL if nothing is similar */
    size_t distance;         /* of that */
} suggestion;

void suggest(suggestion *s, const char *candidate);
/* Refuses an unknown name: "unknown WHAT 'TEXT'; did you mean ...? LIST". `prefix` comes before
 * the name that was found. */
iron_status suggest_end(const suggestion *s, const char *what, const char *text, const char *prefix,
                        const char *list, iron_error *err);

/* Makes room in a list on the heap for one more than `count` items: returns the list, perhaps at
 * another address, and sets its new capacity. Without memory both stay as they are. */
void *list_grow(void *items, size_t count, size_t *capacity, size_t item_bytes);

/* Returns what a call that failed has returned, as in the library. */
#define IRON_TRY(expression)                                                                       \
    do {                                                                                           \
        iron_status iron_try_status_ = (expression);                                               \
        if (iron_try_status_ != IRON_OK)                                                           \
            return iron_try_status_;                                                               \
    } while (0)

/* Fills an error and returns IRON_E_ARG: `return usage(err, "...", ...)`. */
iron_status usage(iron_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A whole number below 2^64: digits, also with decimals, an exponent and a unit, as in 50k, 1.5M,
 * 1e6, 2GiB. k, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024, each also with a B.
 * `what` names the value in the message. */
iron_status parse_number(const char *what, const char *text, uint64_t *value, iron_error *err);
/* A finite real number in decimal notation. */
iron_status parse_real(const char *what, const char *text, double *value, iron_error *err);

#define LATTICE_ROOM 65u /* one more than the maximum, so that too many points are noticed */

/* Numbers separated by commas. The library checks the points themselves. */
iron_status parse_lattice(const char *text, uint32_t points[LATTICE_ROOM], uint32_t *count,
                          iron_error *err);

#endif
