/* SPDX-License-Identifier: MIT */
/*
 * writer.h: the one thread that writes.
 *
 * Jobs queue up while a transaction is on its way to the disk; then all that wait, at most
 * IRON_GROUP_JOBS, are done in their order within the next one. After COMMIT what they changed is
 * published, and only then are they answered. If anything of it cannot be written, none of the
 * group is published, all are refused, and so is whatever comes later: the store has failed.
 *
 * When nobody waits the writer takes snapshots and sweeps up; and now and then, if somebody always
 * waits.
 */
#ifndef IRON_STORE_WRITER_H
#define IRON_STORE_WRITER_H

#include "store/inside.h"
#include "store/lanes.h"
#include "store/sweep.h"

struct iron__writer {
    iron__store *store;
    iron__database *db;
    iron__ledger ledger; /* as in this transaction */
    iron__lanes lanes;
    iron__sweep sweep;
    iron__kept **ahead; /* engines that this group has changed */
    size_t ahead_count; /* of IRON_GROUP_JOBS at most */
    bool wants_snapshots;
    uint32_t unswept;                  /* groups since it last swept up */
    uint64_t group_ms;                 /* when the group began */
    uint64_t commits, jobs, snapshots; /* counted under lock */
    iron__latency commit_latency;      /* the same */
    uint64_t last_commit_ms;           /* the same */

    pthread_t thread;
    pthread_mutex_t lock; /* of what follows, and of the counters */
    pthread_cond_t has_work;
    iron__job *first, **last;
    uint32_t queued;
    bool is_closing, wants_sweep;
    bool has_thread;
    atomic_uint_fast64_t busy_since_ns; /* 0: it waits for work */
};

/* Begins, on a connection that it borrows until it is stopped. */
iron_status iron__writer_start(iron__store *store, iron__database *db, const iron__ledger *ledger,
                               iron_error *err);
/* Does what waits, takes snapshots of what moved, brings the log into the file, ends. NULL is
 * fine. */
void iron__writer_stop(iron__writer *writer);

/* Queues the job and waits until it is durable and published, or refused. */
void iron__writer_do(iron__writer *writer, iron__job *job);

/* Within a group: this engine is changed, publish it. */
iron_status iron__writer_touch(iron__writer *writer, iron__kept *kept, iron_error *err);
/* There may be something to sweep up. */
void iron__writer_sweep(iron__writer *writer);

/* snapshots.c: those that are wanted, as part of the present transaction. */
bool iron__kept_needs_snapshot(const iron__kept *kept, bool is_closing);
iron_status iron__snapshots_write(iron__writer *writer, bool is_closing, iron_error *err);

#endif
