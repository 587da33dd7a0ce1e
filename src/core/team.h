/* SPDX-License-Identifier: MIT */
/*
 * team.h: a fixed set of threads that work through numbered tasks together.
 *
 * iron__team_run hands out indices 0 ... count-1 one at a time, the caller works along, and it
 * returns when all are done. A team belongs to one caller at a time. Workers block all signals and
 * never allocate.
 */
#ifndef IRON_CORE_TEAM_H
#define IRON_CORE_TEAM_H

#include "core/memory.h"

#include <pthread.h>

#define IRON_THREADS_MAX 1024u

typedef struct iron__team iron__team;
typedef void (*iron__task)(void *context, size_t index);

/* threads counts the caller: 1 makes a team without workers. */
iron_status iron__team_create(uint32_t threads, const iron_allocator *allocator, iron__team **out,
                              iron_error *err);
void iron__team_destroy(iron__team *team);
uint32_t iron__team_threads(const iron__team *team);
void iron__team_run(iron__team *team, iron__task task, void *context, size_t count);

/* Starts a single thread of the same kind, for others: small stack, all signals blocked. Returns
 * pthread_create's code. */
int iron__thread_start(pthread_t *thread, void *(*entry)(void *), void *argument);

#endif
