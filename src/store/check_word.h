/* SPDX-License-Identifier: MIT */
/*
 * check_word.h: the word that guards a row. Every step is a bijection of the running value for a
 * given word, and of the word for a given value: one damaged word in a row always shows.
 */
#ifndef IRON_STORE_CHECK_WORD_H
#define IRON_STORE_CHECK_WORD_H

#include "core/mix.h"

#include <stddef.h>
#include <string.h>

static inline uint64_t iron__check_word(uint64_t check, uint64_t word) {
    return iron__mix64((check ^ word) + IRON_GOLDEN_GAMMA);
}

/* The length first, so that bytes cannot move from one field to the next. */
static inline uint64_t iron__check_bytes(uint64_t check, const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t word;

    check = iron__check_word(check, bytes);
    for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        check = iron__check_word(check, word);
    }
    word = 0;
    if (bytes > 0)
        memcpy(&word, at, bytes);
    return bytes > 0 ? iron__check_word(check, word) : check;
}

#endif
