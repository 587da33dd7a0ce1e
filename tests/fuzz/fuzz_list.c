/* SPDX-License-Identifier: MIT */
/*
 * fuzz_list.c: any bytes as a list of seals. An accepted line has a seal of 32 digits, or a bag,
 * and a name that stays the same when it is written in the format of sha256sum and read again.
 */
#include "fuzz.h"

#include "output.h"

/* The line that would be printed for a name; the names of the input are short. */
static size_t write_line(char *to, const seal_line *line) {
    char *at = to;

    if (strpbrk(line->name, "\\\n\r"))
        *at++ = '\\';
    at += sprintf(at, "%s  ", line->seal);
    for (const char *from = line->name; *from; from++) {
        if (*from == '\\' || *from == '\n' || *from == '\r')
            *at++ = '\\';
        *at++ = *from == '\n' ? 'n' : *from == '\r' ? 'r' : *from;
    }
    *at = '\0';
    return (size_t)(at - to);
}

static void require_good(const seal_line *line, size_t size) {
    char *text = malloc(2 * size + 64);
    seal_line again;

    FUZZ_REQUIRE(text);
    FUZZ_REQUIRE(strspn(line->seal, "0123456789abcdef") == SEAL_DIGITS);
    if (line->seal[SEAL_DIGITS]) { /* a bag */
        FUZZ_REQUIRE(line->seal[SEAL_DIGITS] == '-' && strlen(line->seal) < SEAL_ROOM);
        FUZZ_REQUIRE(strspn(line->seal + SEAL_DIGITS + 1, "0123456789") ==
                     strlen(line->seal) - SEAL_DIGITS - 1);
    }
    FUZZ_REQUIRE(line->name[0]);
    FUZZ_REQUIRE(seal_line_read(text, write_line(text, line), &again) == SEAL_LINE_GOOD);
    FUZZ_REQUIRE(strcmp(line->name, again.name) == 0 && strcmp(line->seal, again.seal) == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t length = end ? (size_t)(end - data) + 1 : size;
        char *text = fuzz_copy(data, length);
        seal_line line;

        /* a byte behind the line is the reader's: not shown to it when it is a newline's */
        text = realloc(text, length + 1);
        FUZZ_REQUIRE(text);
        if (seal_line_read(text, length, &line) == SEAL_LINE_GOOD)
            require_good(&line, length);
        free(text);
        data += length;
        size -= length;
    }
    return 0;
}
