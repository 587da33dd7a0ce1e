/* SPDX-License-Identifier: MIT */
/*
 * news.c: see news.h. No news is missed: who waits is counted before it looks at the number, and
 * who tells looks whether anybody waits after it has changed the number; one of the two sees the
 * other.
 */
#include "store/news.h"

void iron__condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec iron__in_milliseconds(uint32_t milliseconds) {
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += milliseconds / 1000;
    at.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

void iron__news_init(iron__news *news) {
    pthread_mutex_init(&news->lock, NULL);
    iron__condition_init(&news->came);
}

void iron__news_deinit(iron__news *news) {
    pthread_cond_destroy(&news->came);
    pthread_mutex_destroy(&news->lock);
}

static void wake(iron__news *news) {
    pthread_mutex_lock(&news->lock);
    pthread_cond_broadcast(&news->came);
    pthread_mutex_unlock(&news->lock);
}

void iron__news_tell(iron__news *news) {
    atomic_fetch_add(&news->count, 1);
    if (atomic_load(&news->waiting) > 0)
        wake(news);
}

void iron__news_end(iron__news *news) {
    atomic_store(&news->is_over, true);
    wake(news);
}

uint64_t iron__news_wait(iron__news *news, uint64_t seen, uint32_t milliseconds) {
    struct timespec end = iron__in_milliseconds(milliseconds);
    bool is_late = false;

    pthread_mutex_lock(&news->lock);
    atomic_fetch_add(&news->waiting, 1);
    while (atomic_load(&news->count) == seen && !atomic_load(&news->is_over) && !is_late)
        is_late = pthread_cond_timedwait(&news->came, &news->lock, &end) != 0;
    atomic_fetch_sub(&news->waiting, 1);
    pthread_mutex_unlock(&news->lock);
    return atomic_load(&news->count);
}
