/* SPDX-License-Identifier: MIT */
/*
 * diff_follow.c: a shift that marks suggest, verified where one side is a manifest and the other
 * has its tokens: the words of the manifest's chunks are made again from the tokens that stand
 * where the shift says. All threads, a chunk a task; the first that is wrong ends it.
 */
#include "digest/diff_follow.h"

#include "core/fail.h"
#include "digest/diff_words.h"

#include <pthread.h>

/* Chunks between two looks at progress: some hundred megabytes of the usual size. */
#define ROUND_CHUNKS 128u

typedef struct following {
    const iron_manifest *known;
    const iron__diff_text *text;
    uint64_t by, next, end; /* chunks next ... end-1 are to be looked at */
    atomic_bool is_wrong;
    pthread_mutex_t failing;
    iron_error error; /* of any task: the answer is lost anyway */
} following;

static void follow_chunk(void *context, size_t index) {
    following *f = context;
    uint64_t chunk = f->next + index;
    const iron__chunk *c = &f->known->chunks[chunk];
    iron__seal_words words;
    iron_error err;

    if (atomic_load_explicit(&f->is_wrong, memory_order_relaxed))
        return;
    if (iron__diff_words_at(f->text, chunk * f->known->chunk_tokens + f->by,
                            iron__manifest_chunk_tokens(f->known, (size_t)chunk), &words,
                            &err) != IRON_OK) {
        pthread_mutex_lock(&f->failing);
        f->error = err;
        pthread_mutex_unlock(&f->failing);
        atomic_store(&f->is_wrong, true);
    } else if (words.t != c->t || words.a != c->a || words.b != c->b) {
        atomic_store(&f->is_wrong, true);
    }
}

/* Has the text tokens for all chunks from this one on? Of one that reaches past its end nothing
 * could be said. */
static bool has_room(const following *f, uint64_t chunk) {
    uint64_t begin = chunk * f->known->chunk_tokens + f->by;

    return chunk < f->known->chunk_count && begin <= f->text->tokens &&
           f->known->tokens + f->by <= f->text->tokens;
}

iron_status iron__diff_follow(iron__diff_run *run, int known, uint64_t chunk, uint64_t by,
                              bool *all_found, iron_error *err) {
    following f = {.known = run->manifest[known],
                   .text = &run->text[!known],
                   .by = by,
                   .next = chunk,
                   .end = run->manifest[known]->chunk_count,
                   .failing = PTHREAD_MUTEX_INITIALIZER};

    *all_found = has_room(&f, chunk);
    while (f.next < f.end && *all_found) {
        uint64_t some = f.end - f.next < ROUND_CHUNKS ? f.end - f.next : ROUND_CHUNKS;

        iron__team_run(run->crew.team, follow_chunk, &f, (size_t)some);
        if (f.error.status != IRON_OK) {
            if (err)
                *err = f.error;
            return f.error.status;
        }
        *all_found = !atomic_load(&f.is_wrong);
        f.next += some;
        IRON_TRY(iron__diff_tell(&run->crew, f.next * f.known->chunk_tokens, f.known->tokens, err));
    }
    return IRON_OK;
}
