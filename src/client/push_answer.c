/* SPDX-License-Identifier: MIT */
/*
 * push_answer.c: see push_answer.h. The server is somebody else's until it has shown what it is:
 * every field is checked, and words that go to a terminal have no control characters.
 */
#include "client/push_answer.h"

#include "core/json_read.h"
#include "core/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MAX (UINT64_C(1) << 53) /* numbers in JSON are exact up to there */
#define READ_ONLY "urn:iron:problem:read-only"

/* Exactly so many digits 0-9a-f. */
static bool read_hex(const iron__json *value, size_t digits, uint64_t *out) {
    const char *text = iron__json_text(value);

    if (!text || strlen(text) != digits || strspn(text, "0123456789abcdef") != digits)
        return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

/* A decimal number below 2^64, as a string. */
static bool read_decimal(const iron__json *value, uint64_t *out) {
    const char *text = iron__json_text(value);

    if (!text || !text[0] || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

static bool read_seal(const iron__json *value, char seal[33]) {
    const char *text = iron__json_text(value);

    if (!text || strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
        return false;
    memcpy(seal, text, 33);
    return true;
}

/* A batch may be longer than any number that is exact: then it is longer than any file, too. */
static uint64_t read_batch(const iron__json *value) {
    uint64_t batch = 0;
    double number = 0;

    if (!iron__json_whole(value, WHOLE_MAX, &batch) && iron__json_number(value, &number) &&
        number > (double)WHOLE_MAX)
        batch = WHOLE_MAX;
    return batch;
}

static bool read_engine(const iron__json *root, iron__push_engine *e) {
    uint64_t xors = 0;
    bool is_there = iron__json_whole(iron__json_member(root, "tokens"), WHOLE_MAX, &e->tokens) &&
                    iron__json_whole(iron__json_member(root, "batches"), WHOLE_MAX, &e->batches) &&
                    read_hex(iron__json_member(root, "xor"), 8, &xors) &&
                    read_decimal(iron__json_member(root, "sum"), &e->sum) &&
                    read_hex(iron__json_member(root, "state"), 16, &e->state) &&
                    read_seal(iron__json_member(root, "seal"), e->seal);

    e->xors = (uint32_t)xors;
    e->batch = read_batch(iron__json_member(root, "batch"));
    return is_there;
}

static void make_plain(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            *text = ' ';
}

/* "There is no engine of this name (404): ...; ..." as far as a problem (RFC 9457) has it. */
static void read_problem(const iron__json *root, iron__push_answer *a) {
    const char *title = iron__json_text(iron__json_member(root, "title"));
    const char *detail = iron__json_text(iron__json_member(root, "detail"));
    const char *help = iron__json_text(iron__json_member(root, "help"));
    const char *type = iron__json_text(iron__json_member(root, "type"));

    a->is_read_only = type && strcmp(type, READ_ONLY) == 0;
    if (title)
        snprintf(a->words, sizeof a->words, "%.60s (%u)%s%.90s%s%.90s", title, a->status,
                 detail ? ": " : "", detail ? detail : "", help ? "; " : "", help ? help : "");
    make_plain(a->words);
}

void iron__push_answer_read(iron__push_answer *answer, unsigned status, const char *body,
                            size_t bytes) {
    const iron__json *root = NULL;

    *answer = (iron__push_answer){.status = status};
    snprintf(answer->words, sizeof answer->words,
             "it answered %u, and not as iron serve does; check the address", status);
    if (iron__json_parse(body, bytes, iron__allocator_default(), &root, NULL) != IRON_OK)
        return;
    if (status == 200)
        answer->has_engine = read_engine(root, &answer->engine);
    else
        read_problem(root, answer);
    iron__json_destroy(iron__allocator_default(), root);
}
