/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h: shared by the fuzz harnesses. A harness is one function, LLVMFuzzerTestOneInput, that
 * passes any bytes to a parser and checks properties of the result. It is linked twice: with
 * libFuzzer, which generates inputs (scripts/fuzz), and with replay.c, which runs the files of a
 * corpus as a test, with any compiler.
 *
 * FUZZ_REQUIRE is an assert that is enabled in every build.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <iron/iron.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(claim) ((claim) ? (void)0 : fuzz_fail(#claim, __FILE__, __LINE__))

_Noreturn static inline void fuzz_fail(const char *claim, const char *file, int line) {
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, claim);
    abort();
}

/* The rest of an input; past its end there are zeros. */
typedef struct fuzz_input {
    const uint8_t *at;
    size_t left;
} fuzz_input;

static inline uint8_t fuzz_byte(fuzz_input *in) {
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static inline uint64_t fuzz_word(fuzz_input *in, unsigned bytes) {
    uint64_t word = 0;

    for (unsigned k = 0; k < bytes; k++)
        word |= (uint64_t)fuzz_byte(in) << 8 * k;
    return word;
}

/* A copy in a block of exactly its size, so that a sanitizer detects reads beyond it. */
static inline void *fuzz_copy(const void *data, size_t bytes) {
    void *copy = malloc(bytes ? bytes : 1);

    FUZZ_REQUIRE(copy);
    if (bytes)
        memcpy(copy, data, bytes);
    return copy;
}

/* The input up to its first zero byte, as a string; free() it. */
static inline char *fuzz_text(fuzz_input *in) {
    size_t length = strnlen((const char *)in->at, in->left);
    char *text = malloc(length + 1);

    FUZZ_REQUIRE(text);
    if (length)
        memcpy(text, in->at, length);
    text[length] = '\0';
    in->at += length;
    in->left -= length;
    fuzz_byte(in);
    return text;
}

/* A failure has a message that is terminated within its buffer. */
static inline bool fuzz_refused(iron_status status, const iron_error *err) {
    if (status == IRON_OK)
        return false;
    FUZZ_REQUIRE(err->status == status && err->text[0] != '\0');
    FUZZ_REQUIRE(memchr(err->text, '\0', sizeof err->text));
    return true;
}

static inline iron_report fuzz_report(iron_engine *engine) {
    iron_report report = {.struct_size = sizeof report};
    iron_error err;

    FUZZ_REQUIRE(iron_engine_report(engine, &report, &err) == IRON_OK);
    return report;
}

static inline void fuzz_require_same(const iron_report *a, const iron_report *b) {
    FUZZ_REQUIRE(a->tokens == b->tokens && a->open_tokens == b->open_tokens);
    FUZZ_REQUIRE(a->batches == b->batches);
    FUZZ_REQUIRE(a->sum == b->sum && a->xor_total == b->xor_total);
    FUZZ_REQUIRE(a->state == b->state);
    FUZZ_REQUIRE(a->has_seal == b->has_seal);
    FUZZ_REQUIRE(memcmp(a->seal_words, b->seal_words, sizeof a->seal_words) == 0);
    FUZZ_REQUIRE(memcmp(a->seal, b->seal, sizeof a->seal) == 0);
}

#endif
