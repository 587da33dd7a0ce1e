/* SPDX-License-Identifier: MIT */
/*
 * push.c: iron_push: a file goes to an engine on a server, piece by piece, and whatever happens on
 * the way, every token goes in once.
 *
 * The engine's position is the one truth: it is asked at the beginning and whenever a piece's fate
 * is not known. push_steps.h decides; here it is done.
 */
#include "client/push_http.h"
#include "client/push_prefix.h"
#include "client/push_steps.h"
#include "core/clock.h"
#include "core/fail.h"
#include "core/memory.h"
#include "core/mix.h"

#include <iron/iron_server.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RETRIES        8u
#define PAUSE_SLICE_MS UINT64_C(100) /* a caller that has enough waits no longer than this */

typedef struct push {
    const iron_push_options *options;
    iron_source *source;
    iron__source_at *at;
    iron__push_http *http;
    iron__push_url url;
    iron__push_plan plan;
    iron__push_teller teller;
    iron__push_engine engine; /* as it was last seen */
    uint32_t retries, retried;
    bool is_unsure; /* the present piece may have been taken without an answer */
} push;

static void note(const push *p, const char *sentence) {
    if (p->options->note)
        p->options->note(p->teller.context, sentence);
}

static iron_status refuse(const push *p, const iron__push_answer *answer, iron_error *err) {
    IRON_FAIL(err, answer->status ? IRON_E_STATE : IRON_E_IO, "engine %s: %s%s", p->url.name,
              answer->words, answer->status == 413 ? "; --piece makes requests smaller" : "");
}

static iron_status refuse_foreign(const push *p, const iron__push_answer *answer,
                                  const iron__push_piece *piece, iron_error *err) {
    IRON_FAIL(err, IRON_E_STATE,
              "engine %s is at token %" PRIu64 " and not at %" PRIu64 " or %" PRIu64
              ": somebody else feeds this engine; let one feed it at a time, then push again",
              p->url.name, answer->engine.tokens, piece->at, piece->at + piece->tokens);
}

/* Waits before attempt 1, 2, ...; while it waits, the caller may call it off. */
static iron_status pause_before(const push *p, uint32_t attempt, const iron__push_answer *why,
                                uint64_t token, iron_error *err) {
    uint64_t pause = iron__push_pause_ms(attempt, iron__mix64(iron__clock_ns()),
                                         why->has_retry_after ? why->retry_after_s : 0);
    char sentence[320];

    snprintf(sentence, sizeof sentence, "%s; trying again in %.1f s (%u of %u)", why->words,
             (double)pause / 1000, attempt, p->retries);
    note(p, sentence);
    while (pause > 0) {
        uint64_t some = pause < PAUSE_SLICE_MS ? pause : PAUSE_SLICE_MS;
        struct timespec slice = {.tv_nsec = (long)some * 1000000};

        IRON_TRY(iron__push_tell(&p->teller, token, err));
        nanosleep(&slice, NULL);
        pause -= some;
    }
    return IRON_OK;
}

static iron_status refuse_tired(const push *p, const iron__push_answer *answer, iron_error *err) {
    IRON_FAIL(err, IRON_E_IO,
              "engine %s: %.140s; tried %u times: push again later, it goes on where it was",
              p->url.name, answer->words, p->retries);
}

/* A server that is not there at the beginning is a mistake in the address more often than a
 * restart: that is said at once. One that is busy is waited for. */
static iron_status ask_first(push *p, iron_error *err) {
    iron__push_answer answer;

    for (uint32_t attempt = 1;; attempt++) {
        iron__push_http_ask(p->http, &answer);
        if (answer.has_engine && answer.engine.batch > 0)
            break;
        IRON_FAIL_IF(answer.is_lost, err, IRON_E_IO, "%.100s: %s; is iron serve running there?",
                     p->url.engine, answer.words);
        if (!iron__push_is_passing(&answer))
            return refuse(p, &answer, err);
        if (attempt > p->retries)
            return refuse_tired(p, &answer, err);
        IRON_TRY(pause_before(p, attempt, &answer, p->teller.begin, err));
    }
    p->engine = answer.engine;
    return IRON_OK;
}

/* The engine must hold the file's first tokens and nothing else. */
static iron_status check_prefix(const push *p, iron_error *err) {
    uint64_t held = p->engine.tokens;
    char seal[IRON_SEAL_TEXT];

    IRON_FAIL_IF(held > p->plan.tokens, err, IRON_E_STATE,
                 "engine %s holds %" PRIu64 " tokens, and the file has %" PRIu64
                 "; use --append to add it behind them, or another engine",
                 p->url.name, held, p->plan.tokens);
    if (held == 0)
        return IRON_OK;
    IRON_TRY(iron__push_prefix_seal(p->source, p->at, held, p->teller.progress, p->teller.context,
                                    seal, err));
    IRON_FAIL_IF(strcmp(seal, p->engine.seal) != 0, err, IRON_E_STATE,
                 "engine %s holds %" PRIu64 " tokens that are not the beginning of %.40s (seal %s "
                 "against %s); use --append to add it behind them, or another engine",
                 p->url.name, held, iron_source_file(p->source, 0), p->engine.seal, seal);
    return IRON_OK;
}

/* Where the file's first token belongs, and where to go on. */
static iron_status find_beginning(push *p, iron_error *err) {
    uint64_t position = p->engine.tokens;

    p->plan.tokens = iron_source_tokens(p->source);
    p->plan.piece = iron__push_piece_tokens(p->options->piece_tokens, p->engine.batch,
                                            iron_dtype_bytes(iron_source_dtype(p->source)));
    if (p->options->is_append)
        p->plan.base = position;
    else
        IRON_TRY(check_prefix(p, err));
    p->teller.begin = position - p->plan.base;
    p->teller.total = p->plan.tokens - p->teller.begin;
    if (p->teller.begin > 0 && p->teller.total > 0) {
        char sentence[80];

        snprintf(sentence, sizeof sentence, "resuming at token %" PRIu64 " of %" PRIu64,
                 p->teller.begin, p->plan.tokens);
        note(p, sentence);
    }
    return IRON_OK;
}

static iron_status send_piece(push *p, const iron__push_piece *piece, iron__push_answer *answer,
                              iron_error *err) {
    iron_dtype dtype = iron_source_dtype(p->source);
    iron__push_body body = {.at = p->at,
                            .width = iron_dtype_bytes(dtype),
                            .first = piece->first,
                            .tokens = piece->tokens,
                            .teller = &p->teller};

    iron__push_http_send(p->http, dtype, piece->at, &body, answer);
    if (body.status != IRON_OK && err)
        *err = body.error;
    return body.status;
}

/* One step: the piece is sent, or the engine asked, and what came of it decides the next. */
static iron_status take_step(push *p, const iron__push_piece *piece, iron__push_step *step,
                             uint32_t *attempt, iron__push_answer *answer, iron_error *err) {
    if (*step == IRON_PUSH_SEND) {
        p->retried += *attempt > 0;
        IRON_TRY(send_piece(p, piece, answer, err));
        p->is_unsure = p->is_unsure || iron__push_is_unsure(answer);
        *step = iron__push_after_feed(answer, piece);
        return IRON_OK;
    }
    if (*attempt == p->retries)
        return refuse_tired(p, answer, err);
    *attempt += 1;
    IRON_TRY(pause_before(p, *attempt, answer, piece->first, err));
    iron__push_http_ask(p->http, answer);
    *step = iron__push_after_asking(answer, piece);
    return IRON_OK;
}

/* The engine is where the piece ends, but no answer said that the piece was taken: somebody else
 * may have fed as many tokens. Behind --append no seal tells, but a request that was refused was
 * not taken. */
static iron_status check_whose(const push *p, const iron__push_piece *piece, iron_error *err) {
    if (!p->options->is_append)
        return check_prefix(p, err);
    IRON_FAIL_IF(!p->is_unsure, err, IRON_E_STATE,
                 "engine %s: somebody else fed it from token %" PRIu64 " to %" PRIu64
                 ", where this file was to go on; let one feed it at a time",
                 p->url.name, piece->at, p->engine.tokens);
    return IRON_OK;
}

static iron_status push_piece(push *p, iron_error *err) {
    iron__push_piece piece = iron__push_piece_at(&p->plan, p->engine.tokens);
    iron__push_step step = IRON_PUSH_SEND;
    iron__push_answer answer = {0};
    uint32_t attempt = 0;
    bool was_sent = true;

    p->is_unsure = false;
    while (step == IRON_PUSH_SEND || step == IRON_PUSH_AGAIN) {
        was_sent = step == IRON_PUSH_SEND;
        IRON_TRY(take_step(p, &piece, &step, &attempt, &answer, err));
    }
    if (step == IRON_PUSH_REFUSED)
        return refuse(p, &answer, err);
    if (step == IRON_PUSH_FOREIGN)
        return refuse_foreign(p, &answer, &piece, err);
    p->engine = answer.engine;
    return was_sent ? IRON_OK : check_whose(p, &piece, err);
}

static iron_status run(push *p, iron_error *err) {
    IRON_TRY(ask_first(p, err));
    IRON_TRY(find_beginning(p, err));
    while (p->engine.tokens < p->plan.base + p->plan.tokens)
        IRON_TRY(push_piece(p, err));
    return iron__source_check_unchanged(p->source, err);
}

/* Also when it failed: what was acknowledged is in. */
static void tell_result(const push *p, iron_push_result *r) {
    const iron__push_engine *e = &p->engine;

    *r = (iron_push_result){.struct_size = sizeof *r,
                            .retried = p->retried,
                            .resumed_at = p->teller.begin,
                            .tokens = e->tokens,
                            .batches = e->batches,
                            .sum = e->sum,
                            .state = e->state,
                            .xor_total = e->xors};
    if (p->teller.total > 0)
        r->pushed = e->tokens - p->plan.base - p->teller.begin;
    memcpy(r->seal, e->seal, sizeof r->seal);
    memcpy(r->engine, p->url.name, sizeof r->engine);
}

static iron_status check(const iron_push_options *o, const iron_source *source,
                         const iron_push_result *result, iron_error *err) {
    IRON_FAIL_IF(!o || o->struct_size != sizeof *o || !o->url, err, IRON_E_ARG,
                 "iron_push_options.struct_size is not %zu, or there is no url", sizeof *o);
    IRON_FAIL_IF(!result || result->struct_size != sizeof *result, err, IRON_E_ARG,
                 "iron_push_result.struct_size is not %zu; set it to sizeof", sizeof *result);
    IRON_FAIL_IF(!iron__source_is_seekable(source), err, IRON_E_ARG,
                 "what is pushed must be regular files, which can be sent again; save it to a "
                 "file, or send it with curl");
    return IRON_OK;
}

iron_status iron_push(const iron_push_options *options, iron_source *source, iron_progress progress,
                      void *context, iron_push_result *result, iron_error *err) {
    push p = {.options = options, .source = source, .teller = {.progress = progress}};
    iron_status status;

    IRON_TRY(check(options, source, result, err));
    IRON_TRY(iron__push_url_parse(options->url, &p.url, err));
    p.teller.context = context;
    p.retries = options->retries ? options->retries : RETRIES;
    iron__source_seek(source, 0);
    status = iron__push_http_open(&p.url, options->token_file, options->ca_file, &p.http, err);
    if (status == IRON_OK)
        status = iron__source_at_open(source, iron__allocator_default(), &p.at, err);
    if (status == IRON_OK)
        status = run(&p, err);
    tell_result(&p, result);
    iron__source_at_close(p.at);
    iron__push_http_close(p.http);
    return status;
}
