/* SPDX-License-Identifier: MIT */
/*
 * news.h: word of changes to whoever waits for one, and how long a wait may be. News are numbered
 * and have no content: who hears of one looks for itself, and of many that came at once it needs to
 * hear once. Telling costs an addition while nobody waits.
 */
#ifndef IRON_STORE_NEWS_H
#define IRON_STORE_NEWS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct iron__news {
    atomic_uint_fast64_t count;
    atomic_uint waiting;
    atomic_bool is_over; /* nobody waits any more */
    pthread_mutex_t lock;
    pthread_cond_t came;
} iron__news;

void iron__news_init(iron__news *news);
void iron__news_deinit(iron__news *news);
void iron__news_tell(iron__news *news);
/* Waits until there are more than `seen`, they are over, or the time is; returns how many there
 * are. */
uint64_t iron__news_wait(iron__news *news, uint64_t seen, uint32_t milliseconds);
/* From now on no wait is one. */
void iron__news_end(iron__news *news);

/* Waiting is by a clock that nobody sets. */
void iron__condition_init(pthread_cond_t *condition);
struct timespec iron__in_milliseconds(uint32_t milliseconds);

#endif
