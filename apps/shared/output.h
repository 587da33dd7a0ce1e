/* SPDX-License-Identifier: MIT */
/*
 * output.h: what commands write: errors and progress on standard error, seals on standard output.
 */
#ifndef APPS_SHARED_OUTPUT_H
#define APPS_SHARED_OUTPUT_H

#include "options.h"

#include <iron/iron_digest.h>
#include <iron/iron_json.h>

#include <stdbool.h>

/* Opens /dev/null for each of descriptors 0 to 2 that is closed. */
void open_standard_streams(void);

/* Prints "name: text" or "name: warning: text" on standard error, always as one line. */
void report_error(const char *name, const iron_error *err);
void report_warning(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "s", the plural of most nouns, unless there is one. */
const char *plural_s(uint64_t count);

/* Flushes standard output. If that fails and *status is IRON_OK, fills *status and err. Returns
 * false if the reader has closed the pipe, which needs no message. */
bool finish_output(iron_status *status, iron_error *err);

/* A progress line on standard error if that is a terminal: a bar, the rate and the time left. */
typedef struct progress {
    bool is_shown;
    uint64_t unit_bytes; /* bytes of one unit of work, for the rate; 0: no rate */
    double started, last;
} progress;

double seconds_now(void);
progress progress_start(uint64_t unit_bytes);
/* An iron_progress function; `context` is a progress. */
int progress_update(void *context, uint64_t done, uint64_t total);
void progress_clear(progress *p);

/* A JSON document on standard output, in one line: an object ('{') or an array ('['). */
iron_json_writer json_begin(char bracket);
void json_end(iron_json_writer *j, char bracket);

/* Writes a list of members into what is open: JSON_PUT(&j, TEXT("name", s), NUMBER("count", 3)).
 * Elements of an array have the name NULL. */
#define JSON_PUT(j, ...) json_put(j, MEMBERS(__VA_ARGS__))

typedef struct json_member {
    const char *name;
    char kind; /* of the value: as below, '{' or '['; '\0' ends a list */
    bool is_null;
    int digits;
    const char *text; /* NULL becomes null; of a real number, its printf format */
    uint64_t number;
    double real;
    const struct json_member *members; /* of an object or array; NULL becomes null */
} json_member;

void json_put(iron_json_writer *j, const json_member *members);

#define MEMBER(name_, kind_, ...)                                                                  \
    { .name = name_, .kind = kind_, __VA_ARGS__ }
#define MEMBERS(...)        ((const json_member[]){__VA_ARGS__, MEMBER(NULL, '\0', .text = NULL)})
#define TEXT(name, value)   MEMBER(name, 't', .text = (value))
#define BOOL(name, value)   MEMBER(name, 'b', .number = (value) ? 1 : 0)
#define NUMBER(name, value) MEMBER(name, 'n', .number = (value))
/* A 64-bit number as a string of decimal digits, which readers with doubles do not round. */
#define DECIMAL(name, value)      MEMBER(name, 'd', .number = (value))
#define HEX(name, value, digits_) MEMBER(name, 'x', .number = (value), .digits = (digits_))
#define REAL(name, format, value) MEMBER(name, 'r', .text = (format), .real = (value))
#define OBJECT(name, ...)         MEMBER(name, '{', .members = MEMBERS(__VA_ARGS__))
#define ARRAY(name, ...)          MEMBER(name, '[', .members = MEMBERS(__VA_ARGS__))
/* null if it is not known; a count that is IRON_COUNT_UNKNOWN. */
#define NUMBER_IF(known, name, value) MEMBER(name, 'n', .number = (value), .is_null = !(known))
#define OBJECT_IF(known, name, ...)                                                                \
    MEMBER(name, '{', .members = (known) ? MEMBERS(__VA_ARGS__) : NULL)
#define KNOWN(name, value) NUMBER_IF((value) != IRON_COUNT_UNKNOWN, name, value)

/* Members of an object: the totals of a report. */
void json_totals(iron_json_writer *j, const iron_report *r);
/* "files": the names of a stream's files. */
void json_files(iron_json_writer *j, const iron_source *source);

/*
 * Lists of seals (seal_list.c). A line is `<seal>  <name>`, as sha256sum writes it: two blanks, or
 * a blank and a star; or, with --tag, `IRON (<name>) = <seal>`. In a name that contains a
 * backslash, a newline or a carriage return, these are written as \\, \n and \r, and the line
 * starts with a backslash. A comment `# iron sum --dtype u16` holds the options that the lines
 * above it need. With --bag a line has a bag in place of the seal, and the comment says --bag and
 * how samples are cut.
 */
#define SEAL_DIGITS 32u
#define SEAL_ROOM   IRON_BAG_TEXT /* a seal, or a bag: `<32 digits>-<samples>` */

typedef enum seal_line_kind {
    SEAL_LINE_GOOD,
    SEAL_LINE_EMPTY,   /* an empty line, or a comment that starts with # */
    SEAL_LINE_OPTIONS, /* a comment with options */
    SEAL_LINE_BAD
} seal_line_kind;

typedef struct seal_line {
    char seal[SEAL_ROOM]; /* in lower case */
    const char *name;     /* points into the line */
    /* of a comment with options; they point into the line. NULL: not given */
    const char *dtype, *format, *column, *sample, *eos;
    text_list include, exclude;
    bool is_recursive;
} seal_line;

/* Reads a line of `length` bytes and modifies it; line[length] must be writable. */
seal_line_kind seal_line_read(char *line, size_t length, seal_line *out);
/* Prints a name as a line has it, with the leading backslash if it is escaped. */
void seal_name_print(const char *name);

/* One result of sum or merge. */
typedef struct sum_result {
    const char *name;              /* as it is printed */
    const iron_manifest *manifest; /* NULL: the next three members are used */
    const iron_digest_result *digest;
    iron_dtype dtype;
    const iron_source *source;  /* NULL unless all files are one stream */
    const iron_bag_result *bag; /* NULL: that of the manifest, if it has one */
    bool wants_bag;             /* lines show it instead of the seal */
    bool is_stream;             /* list the files in JSON */
    double seconds;             /* time spent reading; 0: nothing was read */
    uint64_t ranks;             /* 0: not an MPI job */
} sum_result;

/* Prints results as lines, or as one JSON array. */
typedef struct sum_printer {
    bool is_json, has_begun;
    bool is_tagged, ends_with_zero; /* --tag, -z */
    size_t line_count;
    iron_json_writer j;
} sum_printer;

/* Prints the comment that tells check which options the list needs; nothing if it needs none. `cut`
 * is that of bags, or NULL. */
void sum_print_options(const sum_printer *printer, const seal_line *options,
                       const iron_bag_cut *cut);

iron_status sum_print(sum_printer *printer, const sum_result *result, iron_error *err);
/* Ends the JSON array, if one was begun. */
void sum_print_end(sum_printer *printer);

/* The names joined by blanks; free() it. Out of memory: NULL, and err is filled. */
char *join_names(const char *const *names, size_t count, iron_error *err);

#endif
