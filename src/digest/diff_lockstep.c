/* SPDX-License-Identifier: MIT */
/*
 * diff_lockstep.c: two texts in lockstep on all threads.
 *
 * A task takes a stretch of both and goes through it by windows, which are read into two buffers
 * that stay in the second-level cache, so comparing costs next to nothing beside reading. Windows
 * in chunks that are known to differ are not read at all, once a difference before them is known:
 * two unrelated streams are done after a window a chunk. (Not so for i32 and i64, where every value
 * must be looked at.)
 *
 * Tasks run in rounds, between which progress is told and a search for the first difference ends.
 * Traffic: both texts once; nothing written.
 */
#include "digest/diff_lockstep.h"

#include "core/fail.h"

#include <inttypes.h>
#include <pthread.h>

/* Two windows of 128 KiB leave room in a second-level cache of half a megabyte. */
#define WINDOW_BYTES ((size_t)128 * 1024)
#define TASK_WINDOWS 8u
#define ROUND_TASKS  512u

typedef struct buffers {
    void *window[2];
    atomic_bool is_taken;
} buffers;

typedef struct job {
    const iron__lockstep *what;
    buffers *slots; /* one a thread: there is always a free one */
    uint32_t slot_count;
    size_t window; /* tokens */
    uint64_t round_first;
    _Atomic uint64_t first; /* the first difference so far */
    bool must_read_all;
    atomic_bool has_failed;
    pthread_mutex_t failing;
    uint64_t failed_at; /* the error kept is that of the foremost failure seen */
    iron_error error;
} job;

static void lower(_Atomic uint64_t *value, uint64_t to) {
    uint64_t now = atomic_load_explicit(value, memory_order_relaxed);

    while (to < now && !atomic_compare_exchange_weak_explicit(value, &now, to, memory_order_relaxed,
                                                              memory_order_relaxed))
        ;
}

static void fail_at(job *j, uint64_t at, const iron_error *err) {
    pthread_mutex_lock(&j->failing);
    if (at < j->failed_at) {
        j->failed_at = at;
        j->error = *err;
    }
    pthread_mutex_unlock(&j->failing);
    atomic_store(&j->has_failed, true);
}

static buffers *take_buffers(job *j) {
    for (uint32_t k = 0;; k = (k + 1) % j->slot_count)
        if (!atomic_exchange(&j->slots[k].is_taken, true))
            return &j->slots[k];
}

/* Is nothing to be learned from these tokens? */
static bool is_settled(const job *j, uint64_t at, size_t count) {
    const iron__diff_bits *bits = j->what->bits;

    if (atomic_load_explicit(&j->first, memory_order_relaxed) > at)
        return false;
    if (bits)
        for (uint64_t k = at / bits->chunk_tokens; k <= (at + count - 1) / bits->chunk_tokens; k++)
            if (!iron__diff_bits_has(bits, k))
                return false;
    return true;
}

/* The part of a window that lies in one chunk. */
static void compare_piece(job *j, uint64_t at, iron__tokens_view a, iron__tokens_view b) {
    iron__diff_bits *bits = j->what->bits;
    size_t same;

    if (is_settled(j, at, a.count))
        return;
    same = iron__views_first_difference(&a, &b);
    if (same == a.count)
        return;
    if (bits)
        iron__diff_bits_set(bits, at / bits->chunk_tokens);
    lower(&j->first, at + same);
}

static void compare_window(job *j, uint64_t at, iron__tokens_view a, iron__tokens_view b) {
    const iron__diff_bits *bits = j->what->bits;

    while (a.count > 0) {
        uint64_t to_border = bits ? bits->chunk_tokens - at % bits->chunk_tokens : a.count;
        size_t some = to_border < a.count ? (size_t)to_border : a.count;

        compare_piece(j, at, (iron__tokens_view){a.dtype, a.data, some},
                      (iron__tokens_view){b.dtype, b.data, some});
        a = iron__view_rest(&a, some);
        b = iron__view_rest(&b, some);
        at += some;
    }
}

static iron_status do_window(job *j, const buffers *own, uint64_t at, size_t count,
                             iron_error *err) {
    const iron__lockstep *w = j->what;
    iron__tokens_view views[2] = {{0}};

    if (!j->must_read_all && is_settled(j, at, count))
        return IRON_OK;
    for (int side = 0; side < 2; side++) {
        const iron__diff_text *text = w->text[side];

        if (!text)
            continue;
        IRON_TRY(iron__diff_text_read(text, w->from[side] + at, own->window[side], count, err));
        views[side] = (iron__tokens_view){text->dtype, own->window[side], count};
    }
    if (w->text[0] && w->text[1])
        compare_window(j, at, views[0], views[1]);
    return IRON_OK;
}

static void do_task(void *context, size_t index) {
    job *j = context;
    uint64_t at = j->round_first + (uint64_t)index * TASK_WINDOWS * j->window;
    buffers *own = take_buffers(j);

    for (uint32_t k = 0; k < TASK_WINDOWS && at < j->what->count; k++) {
        uint64_t left = j->what->count - at;
        size_t count = left < j->window ? (size_t)left : j->window;
        iron_error err;

        if (atomic_load_explicit(&j->has_failed, memory_order_relaxed))
            break;
        if (do_window(j, own, at, count, &err) != IRON_OK)
            fail_at(j, at, &err);
        at += count;
    }
    atomic_store(&own->is_taken, false);
}

iron_status iron__diff_tell(const iron__diff_crew *crew, uint64_t done, uint64_t total,
                            iron_error *err) {
    IRON_FAIL_IF(crew->progress && crew->progress(crew->context, done, total), err,
                 IRON_E_CANCELLED, "cancelled after %" PRIu64 " tokens", done);
    return IRON_OK;
}

static iron_status run_rounds(job *j, const iron__diff_crew *crew, iron_error *err) {
    uint64_t task_tokens = (uint64_t)TASK_WINDOWS * j->window, count = j->what->count;

    while (j->round_first < count) {
        uint64_t tasks = iron__chunks_of(count - j->round_first, task_tokens);

        tasks = tasks < ROUND_TASKS ? tasks : ROUND_TASKS;
        if (tasks == 1) /* not worth waking anybody */
            do_task(j, 0);
        else
            iron__team_run(crew->team, do_task, j, (size_t)tasks);
        if (atomic_load(&j->has_failed)) {
            if (err)
                *err = j->error;
            return j->error.status;
        }
        j->round_first += tasks * task_tokens;
        IRON_TRY(
            iron__diff_tell(crew, j->round_first < count ? j->round_first : count, count, err));
        if (!j->what->bits && !j->must_read_all && atomic_load(&j->first) < count)
            break;
    }
    return IRON_OK;
}

static size_t widest(const iron__lockstep *w) {
    size_t width = 1;

    for (int side = 0; side < 2; side++)
        if (w->text[side] && iron_dtype_bytes(w->text[side]->dtype) > width)
            width = iron_dtype_bytes(w->text[side]->dtype);
    return width;
}

static iron_status make_buffers(job *j, uint32_t threads, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();

    j->slots = iron__allocate(memory, threads, sizeof *j->slots, "buffers", err);
    if (!j->slots)
        return IRON_E_NOMEM;
    j->slot_count = threads;
    for (uint32_t k = 0; k < threads; k++)
        for (int side = 0; side < 2; side++) {
            void *window = iron__allocate(memory, 1, WINDOW_BYTES, "a window of tokens", err);

            j->slots[k].window[side] = window;
            if (!window)
                return IRON_E_NOMEM;
        }
    return IRON_OK;
}

static void free_buffers(job *j) {
    for (uint32_t k = 0; k < j->slot_count; k++)
        for (int side = 0; side < 2; side++)
            iron__release(iron__allocator_default(), j->slots[k].window[side]);
    iron__release(iron__allocator_default(), j->slots);
}

iron_status iron__lockstep_run(const iron__lockstep *what, const iron__diff_crew *crew,
                               uint64_t *first, iron_error *err) {
    job j = {.what = what, .failed_at = UINT64_MAX, .failing = PTHREAD_MUTEX_INITIALIZER};
    iron_status status;

    atomic_init(&j.first, what->count);
    for (int side = 0; side < 2 && what->bits; side++)
        j.must_read_all |= what->text[side] && iron__diff_text_can_be_bad(what->text[side]);
    j.window = WINDOW_BYTES / widest(what);
    status = make_buffers(&j, iron__team_threads(crew->team), err);
    if (status == IRON_OK)
        status = run_rounds(&j, crew, err);
    free_buffers(&j);
    *first = atomic_load(&j.first);
    return status;
}
