/* SPDX-License-Identifier: MIT */
/*
 * store.h: engines that outlive the process. What is acknowledged can no longer be lost.
 *
 * A store is a data directory with one SQLite database (WAL, synchronous=FULL), the engines in it,
 * alive in memory, and one writer thread that commits for everybody: while one transaction is on
 * its way to the disk, requests collect and go together in the next (group commit). An engine
 * changes in this order and no other: rows written, COMMIT returned, the change published, the
 * caller answered. Whoever looks at an engine sees what was published: never what could still be
 * lost.
 *
 * A feed is all or nothing. A small body (IRON_SMALL_BODY) is kept until its turn with the writer
 * and reduced there, at whatever position the engine then has. A larger one is reduced while it
 * streams in, on a fork of the engine, from the position that the engine had at its beginning; if
 * somebody else was faster it is refused with the position. Its contributions go to the database in
 * blocks as they come, belonging to nothing until the one transaction that makes them a feed; so
 * memory is bounded, and what was abandoned is swept up.
 *
 * After a write has failed nothing is written any more: the store is read-only until the process
 * ends, and says so (iron__store_failure). A failed fsync is never retried.
 *
 * Threads: every function may be called from any thread; one iron__feed from one thread at a time.
 */
#ifndef IRON_STORE_STORE_H
#define IRON_STORE_STORE_H

#include "store/latency.h"

#include <iron/iron.h>

#include <stdbool.h>

typedef struct iron__store iron__store;

/* An engine in the store; held while a caller has it, also beyond its deletion. */
typedef struct iron__kept iron__kept;

#define IRON_ENGINE_NAME_MAX 64u  /* letters, digits, . _ -, beginning with a letter or digit */
#define IRON_FEED_KEY_MAX    255u /* visible ASCII, 1 ... 255 */
#define IRON_SMALL_BODY      ((size_t)64 << 10)
#define IRON_STORE_FORMAT    1u /* of the database: PRAGMA user_version */

/* How far opening a store has come. */
typedef struct iron__store_loading {
    const char *engine;     /* that is being replayed; NULL: the file is being inspected */
    size_t number, engines; /* which of how many, from 1 */
    uint64_t batches;       /* replayed, of all engines */
} iron__store_loading;

typedef struct iron__store_options {
    const char *directory;     /* created (0700) if it is not there */
    uint32_t engines_max;      /* 0: 256 */
    uint64_t nodes_max;        /* of all engines together; 0: 2^24 */
    uint32_t uploads_max;      /* large bodies at once; 0: 64 */
    uint64_t snapshot_batches; /* replayed at most after a snapshot; 0: 65536 */
    uint64_t inspected_bytes;  /* a larger file is inspected as a whole while it is used, not before
                                  that; 0: 2^28, two seconds */
    /* NULL, or called often while the store is opened and goes on with it, by the same thread. */
    void (*loading)(void *context, const iron__store_loading *loading);
    void *loading_context;
} iron__store_options;

/* Refuses, with a sentence: a directory that another process has open, a database that is damaged,
 * of another program or of a newer version. Loads every engine: its newest snapshot, verified, and
 * the feeds after it, whose state hash must come out as written. */
iron_status iron__store_open(const iron__store_options *options, iron__store **out,
                             iron_error *err);
/* From now on nothing new is begun (IRON_FEED_STOPPING); what was begun may end. */
void iron__store_stop(iron__store *store);
/* Feeds begun and neither ended nor abandoned. */
uint32_t iron__store_feeds_open(iron__store *store);
/* Commits what waits, takes a snapshot of every engine that moved, closes. All feeds have ended and
 * all held engines are released. */
void iron__store_close(iron__store *store);
/* How long the writer has been at its present piece of work; 0: it waits for some. */
uint64_t iron__store_busy_ns(iron__store *store);
/* IRON_OK, or what made it read-only. */
iron_status iron__store_failure(iron__store *store, iron_error *why);

/* What an engine is, as it was asked for. */
typedef struct iron__plan {
    char name[IRON_ENGINE_NAME_MAX + 1];
    uint64_t nodes, vocab, batch;
    iron_positions positions;
    uint32_t lattice[64];
    uint32_t lattice_count; /* 0: the default points */
    char mode[48], backend[16];
    uint32_t device;
} iron__plan;

bool iron__engine_name_is_valid(const char *name);
void iron__plan_init(iron__plan *plan); /* the defaults of iron_config, mode and backend auto */

/* IRON_E_STATE: the name is taken. IRON_E_ARG: the configuration is none. IRON_E_NOMEM: a limit of
 * engines or nodes. IRON_E_UNSUPPORTED: the backend is not here. IRON_E_IO: the store is read-only
 * or stopping. On success the engine is durable and *out is held. */
iron_status iron__store_create(iron__store *store, const iron__plan *plan, iron__kept **out,
                               iron_error *err);
/* Held, or NULL. */
iron__kept *iron__store_find(iron__store *store, const char *name);
/* Up to `room` engines in the order of their names, held; returns how many there are in all. */
size_t iron__store_list(iron__store *store, iron__kept **out, size_t room);
/* Durable when it returns. IRON_E_STATE: it was deleted before. */
iron_status iron__store_delete(iron__store *store, iron__kept *kept, iron_error *err);
void iron__kept_release(iron__kept *kept); /* NULL is fine */

/* What was published last. */
typedef struct iron__kept_view {
    iron__plan plan;                 /* with lattice, backend and mode as they are in force */
    char device[96];                 /* of the backend */
    uint64_t version;                /* rises with every change */
    uint64_t created_ms, changed_ms; /* since 1970 */
    uint64_t feeds, tokens, batches, sum, state;
    uint32_t xors;
    char seal[33];
    uint64_t incoming; /* tokens of large bodies that have come and are not part of it yet */
    double rate;       /* tokens a second that came over about the last two seconds: of large bodies
                          as they come, of small ones when they are part of it */
    bool is_deleted;
} iron__kept_view;

void iron__kept_look(iron__kept *kept, iron__kept_view *view);
/* The view together with copies of the nodes that belong to it: view->plan.nodes entries each; the
 * pointers may be NULL. */
void iron__kept_nodes(iron__kept *kept, iron__kept_view *view, uint32_t *xor_accumulators,
                      float *potentials, float *activations);
/* The view as a saved state (state_file.h), malloc'ed, the caller's. */
iron_status iron__kept_state(iron__kept *kept, unsigned char **out, size_t *bytes, iron_error *err);
/* Waits until the version differs from `version`, the engine is deleted, the store stops, or the
 * time is over; true if the version differs. */
bool iron__kept_wait(iron__kept *kept, uint64_t version, uint32_t milliseconds);

/* Waits until there is news of any engine (one changed, came or went, or something is on its way to
 * one), the store stops, or the time is over. Returns the number of all news so far: `seen` of the
 * next wait. */
uint64_t iron__store_wait(iron__store *store, uint64_t seen, uint32_t milliseconds);

/* As much of an engine as tells whether it is worth a look: its id is never another's, and `news`
 * rises whenever a view of it may have become another (but not when a rate falls). */
typedef struct iron__glimpse {
    char name[IRON_ENGINE_NAME_MAX + 1];
    uint64_t id, news;
} iron__glimpse;

/* Up to `room` engines in the order of their names; returns how many there are in all. No engine is
 * held up, and the list only for as long as this takes. */
size_t iron__store_glance(iron__store *store, iron__glimpse *out, size_t room);

/* One batch of an engine's history. */
typedef struct iron__batch_row {
    uint64_t batch;    /* number, from 0 */
    uint64_t position; /* of its first token in the stream */
    uint64_t tokens, sum;
    uint32_t xors;
} iron__batch_row;

/* Batches since, since+1, ... as far as `room` goes. Read from the disk and verified: damage is
 * IRON_E_FORMAT. IRON_E_STATE: the engine was deleted, and its history is being swept up. */
iron_status iron__kept_batches(iron__kept *kept, uint64_t since, iron__batch_row *rows, size_t room,
                               size_t *count, iron_error *err);

/* Feeding. */

typedef struct iron__feed iron__feed;

typedef struct iron__feed_request {
    iron_dtype dtype;
    bool has_at;
    uint64_t at;
    const char *key;         /* NULL: none */
    uint64_t expected_bytes; /* UINT64_MAX: not known (chunked) */
} iron__feed_request;

typedef enum iron__feed_outcome {
    IRON_FEED_DONE,       /* durable, applied once */
    IRON_FEED_REPEATED,   /* the key was seen with this content: the first answer again */
    IRON_FEED_POSITION,   /* `at` is not the engine's position, or a large body was overtaken */
    IRON_FEED_KEY_REUSED, /* the key was seen with other content */
    IRON_FEED_RAGGED,     /* no whole number of tokens */
    IRON_FEED_BAD_TOKEN,  /* a value that no token has (i32, i64) */
    IRON_FEED_GONE,       /* the engine was deleted meanwhile */
    IRON_FEED_BUSY,       /* too many large bodies at once; try again */
    IRON_FEED_STOPPING,   /* the server is being stopped */
    IRON_FEED_READ_ONLY,  /* a write has failed; nothing more is taken */
    IRON_FEED_FAILED      /* memory, a device; see the error */
} iron__feed_outcome;

/* The engine right after the feed (of a repeated key: after the first). For POSITION only
 * `position` is set. */
typedef struct iron__feed_answer {
    uint64_t position; /* where the engine stands now */
    uint64_t tokens, batches, sum, state;
    uint32_t xors;
    char seal[33];
    uint64_t fed_tokens, fed_batches; /* of this feed alone */
} iron__feed_answer;

/* Begins; refuses early what is certain: STOPPING, READ_ONLY, GONE, BUSY, RAGGED (by
 * expected_bytes), POSITION for a body known to be large whose key was not seen. With any outcome
 * but DONE *out is NULL, and `answer` and err say more. Holds the engine itself. */
iron__feed_outcome iron__feed_begin(iron__kept *kept, const iron__feed_request *request,
                                    iron__feed **out, iron__feed_answer *answer, iron_error *err);
/* The next bytes of the body, however it was cut. Any outcome but DONE is final: abandon it. */
iron__feed_outcome iron__feed_take(iron__feed *feed, const void *bytes, size_t count,
                                   iron__feed_answer *answer, iron_error *err);
/* The body is complete. Returns when the feed is durable, or refused. Takes the feed. */
iron__feed_outcome iron__feed_end(iron__feed *feed, iron__feed_answer *answer, iron_error *err);
/* The body will not come. NULL is fine. */
void iron__feed_abandon(iron__feed *feed);

/* Figures for /metrics; counted since the store was opened. */
typedef struct iron__store_counts {
    uint64_t feeds, tokens, bytes, batches;
    uint64_t commits, jobs; /* transactions, and requests that went with them */
    uint64_t refused[IRON_FEED_FAILED + 1];
    iron__latency_view commit_latency; /* as many as there are commits */
    uint64_t last_commit_ms;           /* since 1970; 0: none yet */
    uint64_t snapshots;
    uint32_t queued, uploads; /* now */
} iron__store_counts;

void iron__store_count(iron__store *store, iron__store_counts *counts);

/* Bytes on the disk now; 0 for what cannot be asked. */
typedef struct iron__store_disk {
    uint64_t database, log; /* iron.db and its log */
    uint64_t size, free;    /* of the file system; free for whoever runs this */
} iron__store_disk;

void iron__store_weigh(const iron__store *store, iron__store_disk *disk);

#endif
