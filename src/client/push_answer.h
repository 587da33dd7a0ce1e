/* SPDX-License-Identifier: MIT */
/*
 * push_answer.h: what came of a request: an engine's figures, a problem in words, or nothing.
 */
#ifndef IRON_CLIENT_PUSH_ANSWER_H
#define IRON_CLIENT_PUSH_ANSWER_H

#include <iron/iron.h>

#include <stdbool.h>

/* Of an answer no more is read than this: nothing that is asked for is longer. */
#define IRON_PUSH_ANSWER_MAX ((size_t)1 << 20)

typedef struct iron__push_engine {
    uint64_t tokens, batches, sum, state;
    uint64_t batch; /* tokens of a batch; 0: the answer does not say */
    uint32_t xors;
    char seal[33];
} iron__push_engine;

typedef struct iron__push_answer {
    unsigned status;   /* of HTTP; 0: no whole answer came */
    bool is_lost;      /* without a status: the connection failed or ended; it may come back */
    bool has_engine;   /* a 200 that says where the engine stands */
    bool is_read_only; /* a 503 that stays one */
    bool has_retry_after;
    uint64_t retry_after_s;
    iron__push_engine engine;
    char words[200]; /* of what is no engine: why, in one line */
} iron__push_answer;

/* Fills in what the body of an answer with this status says; whatever the bytes are. */
void iron__push_answer_read(iron__push_answer *answer, unsigned status, const char *body,
                            size_t bytes);

#endif
