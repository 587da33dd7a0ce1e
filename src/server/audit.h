/* SPDX-License-Identifier: MIT */
/*
 * audit.h: is this header one that every reader understands alike? Pure functions over bytes.
 *
 * Where two programs read one request differently, requests can be smuggled past the stricter one.
 * So what RFC 9112 leaves to a server's indulgence is refused here: bare CR or LF, folded lines,
 * blanks before a colon, two lengths, a length beside Transfer-Encoding, targets in other forms.
 *
 * There are two steps. iron__audit_split takes the bytes of a header apart; it is used where the
 * bytes are seen before the HTTP library reads them (gate.h). iron__audit_judge looks at what the
 * lines say; it is used for every request, also for those that only the library has read.
 */
#ifndef IRON_SERVER_AUDIT_H
#define IRON_SERVER_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IRON_HEADER_BYTES_MAX  ((size_t)16 << 10)
#define IRON_HEADER_FIELDS_MAX 100u
#define IRON_TARGET_BYTES_MAX  ((size_t)8 << 10)
#define IRON_LENGTH_UNKNOWN    UINT64_MAX /* of a chunked body */

/* Bytes that belong to somebody else; no zero at the end is meant. */
typedef struct iron__text {
    const char *at;
    size_t bytes;
} iron__text;

typedef struct iron__field {
    iron__text name, value;    /* without blanks around it */
    bool is_followed_by_blank; /* the HTTP library does not take them off */
} iron__field;

typedef struct iron__header {
    iron__text method, target, version;
    iron__field fields[IRON_HEADER_FIELDS_MAX];
    uint32_t count;
    uint64_t body_bytes; /* set by the judge: Content-Length, 0, or IRON_LENGTH_UNKNOWN */
} iron__header;

/* What is wrong, as a problem of problem.h; kind is NULL if nothing is. */
typedef struct iron__verdict {
    const char *kind, *help;
    char detail[200];
} iron__verdict;

iron__verdict iron__verdict_fine(void);
iron__verdict iron__verdict_make(const char *kind, const char *help, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

iron__text iron__text_of(const char *string);
bool iron__text_is(iron__text text, const char *word);          /* exactly */
bool iron__text_is_caseless(iron__text text, const char *word); /* ASCII's letters are alike */

/* A field of a name and what stands after its colon. */
iron__field iron__field_make(iron__text name, iron__text line);

/* Looks for the end of a header in what has arrived so far. *end is the number of bytes up to and
 * with the empty line, or 0 while more must come; a verdict is given as soon as it is certain. */
iron__verdict iron__audit_extent(const char *bytes, size_t count, size_t *end);
/* Takes a whole header apart; the texts point into it. */
iron__verdict iron__audit_split(const char *bytes, size_t count, iron__header *header);
/* Judges what the lines say, and finds the length of the body. */
iron__verdict iron__audit_judge(iron__header *header);
/* The value of a field, or a text whose `at` is NULL. */
iron__text iron__header_find(const iron__header *header, const char *name);

#endif
