/* SPDX-License-Identifier: MIT */
/*
 * inside.h: the store's inside, shared by the files of this folder. In reading order:
 *
 *   rows.c, check_word.h            what is written of a feed, and what must hold of it
 *   database*.c, tables.c,
 *   table_feeds.c                   the file, its statements, rows in and out
 *   kept.c, kept_views.c, forks.c   an engine alive: what is published, what is ahead, forks
 *   meter.c, news.c                 how much comes in; word of changes to those who wait
 *   writer.c                        the one thread that writes: groups of jobs, a COMMIT for each
 *   lanes.c, small_feeds.c          feeds of small bodies: reduced at their turn, hashed by fours
 *   upload*.c, large_feeds.c        feeds of large bodies: reduced on a fork while they stream in
 *   repeats.c                       is this what the key's first feed was?
 *   feeding.c                       iron__feed_begin, _take, _end, _abandon
 *   engine_jobs.c                   engines made and deleted
 *   snapshots.c, sweep.c            what the writer does besides
 *   recovery.c, loading.c           engines made anew from what was written
 *   inspection.c                    a look at the whole file
 *   batches.c                       history read out
 *   list.c, store.c                 the engines by name, and the limits; opening and closing
 *   latency.c                       how long transactions took
 *
 * Who touches what: the writer's fields are its thread's alone; an engine's published ones lie
 * under the engine's lock; the list of engines under the store's. Locks are taken in the order
 * store, engine, and never held while something is written.
 */
#ifndef IRON_STORE_INSIDE_H
#define IRON_STORE_INSIDE_H

#include "store/meter.h"
#include "store/news.h"
#include "store/tables.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define IRON_GROUP_JOBS       256u /* at most, in one transaction */
#define IRON_IDLE_FORKS       4u   /* at most, an engine */
#define IRON_STORE_IDLE_FORKS 32u
#define IRON_SNAPSHOT_BATCHES 65536u /* between two, unless told */

/* The arrays of a set of nodes. */
typedef struct iron__node_arrays {
    uint32_t *xors;
    float *potentials;
} iron__node_arrays;

struct iron__kept {
    iron__store *store;
    iron__plan plan; /* as it was asked for */
    uint64_t id, created_ms;
    atomic_uint references;

    /* the writer's */
    iron_engine *engine; /* where the newest feed is applied; NULL: its device failed */
    iron_error broken;   /* why, and when it was tried last */
    uint64_t broken_ns;
    iron__moment ahead; /* with all feeds of the present group */
    iron__node_arrays ahead_nodes;
    bool is_ahead; /* since the group began: ahead and ahead_nodes are not published yet */
    bool is_leaving;
    uint64_t snapshot_batches, snapshot_feeds; /* what the newest snapshot has */
    uint64_t landing; /* tokens of large bodies that are part of the engine when it is published */
    bool wants_snapshot;

    /* anybody's */
    iron__meter meter;
    atomic_uint_fast64_t incoming; /* tokens of large bodies that are not part of it yet */
    atomic_uint_fast64_t news;     /* rises when a view may have become another */

    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t changed;
    iron__moment published;
    iron__node_arrays nodes;
    uint64_t version;
    bool is_deleted;
    iron__plan in_force;
    char device[96];
    iron_engine *idle[IRON_IDLE_FORKS];
    uint32_t idle_count;
};

typedef struct iron__writer iron__writer;
typedef struct iron__job iron__job;

/* Something for the writer to do. The caller owns it and waits for `done`. */
struct iron__job {
    iron__job *next;
    /* Its part of the transaction. A failure is the store's: the job's own refusals are in its
     * fields. */
    iron_status (*run)(iron__writer *writer, iron__job *job, iron_error *err);
    void (*publish)(iron__store *store, iron__job *job); /* after COMMIT; NULL: nothing */
    iron__kept *kept;
    bool is_refused;  /* the store has failed; error says how */
    iron_error error; /* of a refusal */
    sem_t done;
};

struct iron__store {
    iron__store_options options;
    char *directory;
    int directory_lock;
    iron__writer *writer;
    iron__database *written; /* the writer's */

    pthread_mutex_t read_lock;
    iron__database *reader;

    pthread_mutex_t lock; /* of what follows, up to the failure */
    iron__kept **engines; /* by name; room for engines_room */
    size_t engine_count, engines_room;
    uint64_t planned_engines, planned_nodes; /* with those that are being made */
    uint64_t replayed;                       /* batches, when the store was opened */
    iron__store_loading loading;             /* while it is opened */
    uint64_t fork_nodes;                     /* of all forks, idle ones too */
    uint64_t *open_uploads;                  /* with blocks, but no feed yet; 0: a free place */
    iron_error failure;

    iron__news news; /* of all engines, and of the list */

    bool is_inspected, has_inspector; /* inspection.h */
    pthread_t inspector;
    atomic_bool inspection_ends, inspection_is_over;

    atomic_bool has_failed, is_stopping;
    atomic_uint feeds_open, uploads, idle_forks;
    atomic_uint_fast64_t next_upload;
    atomic_uint_fast64_t outcomes[IRON_FEED_FAILED + 1];
    atomic_uint_fast64_t fed_feeds, fed_tokens, fed_bytes, fed_batches;
};

/* Sets the failure, for good, if it is the first. */
void iron__store_fail(iron__store *store, const iron_error *why);

/* kept.c */

/* A configuration for this plan. One thread: requests are many. */
void iron__plan_config(const iron__plan *plan, iron_config *config);
/* Where it runs does not change what comes out: on the CPU, for what only looks. */
void iron__plan_config_cpu(const iron__plan *plan, iron_config *config);
/* The points that an engine of this configuration has: of a plan that names none, the default. */
void iron__plan_take_lattice(iron__plan *plan, const iron_config *config);
/* Not in any list yet, held once. engine: the writer's, taken; NULL with `broken`: its backend is
 * not here now. The nodes are copied. */
iron_status iron__kept_create(iron__store *store, const iron__engine_row *row, iron_engine *engine,
                              const iron_error *broken, const iron__moment *moment,
                              const uint32_t *xors, const float *potentials, iron__kept **out,
                              iron_error *err);
iron__kept *iron__kept_hold(iron__kept *kept);
/* What is ahead becomes what is seen. The writer's. */
void iron__kept_publish(iron__kept *kept);
/* Tokens of a large body have come, and are on their way. */
void iron__kept_receive(iron__kept *kept, uint64_t tokens);
/* So many of them will not become part of the engine. */
void iron__kept_forgo(iron__kept *kept, uint64_t tokens);
/* The newest nodes, published or ahead. The writer's. */
const iron__node_arrays *iron__kept_newest(const iron__kept *kept);
/* The engine that feeds are applied to, made anew if its device had failed. The writer's. */
iron_status iron__kept_engine(iron__kept *kept, iron_engine **out, iron_error *err);
/* What belonged to it may be swept up: rows that are missing then are no damage. */
bool iron__kept_is_deleted(iron__kept *kept);
/* Its engine has failed in the middle of something: it is destroyed. */
void iron__kept_break(iron__kept *kept, const iron_error *why);

/* forks.c */

/* A private engine that stands where the engine is published to be. */
iron_status iron__fork_take(iron__kept *kept, iron_engine **out, iron__moment *base,
                            iron_error *err);
/* Any engine of the same configuration, brought there. */
iron_status iron__fork_stand(iron__kept *kept, iron_engine *fork, iron__moment *base,
                             iron_error *err);
/* whole: nothing failed on it, it may serve again. */
void iron__fork_give(iron__kept *kept, iron_engine *fork, bool is_whole);
void iron__forks_destroy(iron__kept *kept);

/* loading.c */

/* Opening goes on: whoever wants to know is told. */
void iron__store_tell_loading(iron__store *store);
iron_status iron__store_load(iron__store *store, iron__database *db, iron__ledger *ledger,
                             iron_error *err);

/* list.c: the engines by name, and the limits. */

/* Room for so many engines in all. */
iron_status iron__list_room(iron__store *store, size_t count, iron_error *err);
/* Takes the hold. There is room: it was reserved. */
void iron__list_add(iron__store *store, iron__kept *kept);
/* Releases the list's hold. */
void iron__list_remove(iron__store *store, iron__kept *kept);
/* Room in the list and in the limits for one more; given back by iron__plan_drop. */
iron_status iron__plan_reserve(iron__store *store, uint64_t nodes, iron_error *err);
void iron__plan_drop(iron__store *store, uint64_t nodes);

#endif
