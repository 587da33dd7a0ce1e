/* SPDX-License-Identifier: MIT */
/*
 * store.h: durable engines. An acknowledged feed survives a crash.
 *
 * A store is a data directory with one SQLite database (WAL, synchronous=FULL), the engines in it,
 * loaded in memory, and one writer thread that commits for all callers: while one transaction is
 * being synced, requests queue up and are committed together in the next (group commit). An engine
 * always changes in this order: write the rows, COMMIT, publish the change, answer the caller.
 * Readers see only published state, so they never see anything that could still be lost.
 *
 * A feed is all or nothing. A small body (IRON_SMALL_BODY) is buffered and reduced by the writer
 * when its turn comes, at the position that the engine has then. A larger body is reduced while it
 * streams in, on a private copy (fork) of the engine, from the position that the engine had when
 * the body began; if another feed commits first, it is refused with the current position. Its
 * contributions are written to the database in blocks as they come. The blocks belong to no feed
 * until one final transaction adds the feed's row, so memory is bounded, and blocks of abandoned
 * bodies are deleted later.
 *
 * On a full disk (ENOSPC, EDQUOT) feeds and new engines are refused until there is room; deletions
 * use the reserve (reserve.c). After any other failed write the store is read-only until the
 * process ends, and iron__store_failure says why. A failed fsync is never retried.
 *
 * Threads: every function may be called from any thread; one iron__feed from one thread at a time.
 */
#ifndef IRON_STORE_STORE_H
#define IRON_STORE_STORE_H

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>

typedef struct iron__store iron__store;

/* An engine in the store. Reference-counted: it stays valid after its deletion until the last
 * caller releases it. */
typedef struct iron__store_engine iron__store_engine;

#define IRON_ENGINE_NAME_MAX 64u  /* letters, digits, . _ -, beginning with a letter or digit */
#define IRON_FEED_KEY_MAX    255u /* 1 to 255 visible ASCII characters */
#define IRON_SMALL_BODY      ((size_t)64 << 10)
#define IRON_STORE_FORMAT    1u         /* of the database: PRAGMA user_version */
#define IRON_RESERVE_AUTO    UINT64_MAX /* 64 MiB; of a disk below 512 MiB an eighth */

/* Progress of iron__store_open. */
typedef struct iron__store_loading {
    const char *engine;     /* being replayed; NULL: the file is being inspected */
    size_t number, engines; /* which of how many, from 1 */
    uint64_t batches;       /* replayed so far, over all engines */
} iron__store_loading;

typedef struct iron__store_options {
    const char *directory;     /* created (0700) if missing */
    uint32_t engines_max;      /* 0: 256 */
    uint64_t nodes_max;        /* of all engines together; 0: 2^24 */
    uint32_t uploads_max;      /* concurrent large bodies; 0: 64 */
    uint64_t snapshot_batches; /* batches between two snapshots of an engine; 0: 65536 */
    uint64_t inspected_bytes;  /* a larger file is inspected in the background while in use, a
                                  smaller one before it is used; 0: 2^28, about two seconds */
    /* Progress callback, or NULL. Called often during iron__store_open, on the same thread. */
    void (*loading)(void *context, const iron__store_loading *loading);
    /* Feeds are removed when a snapshot and at least so many batches of their engine follow them,
     * and a key is forgotten, but not its feed removed, after so much time. 0: never. */
    uint64_t keep_batches, keep_keys_ms;
    bool accept_loss;       /* go on although acknowledged data is missing (marker.c) */
    uint64_t run_bytes_max; /* of the records of a run; 0: 256 MiB */
    uint64_t reserve_bytes; /* kept free for deletions on a full disk; 0: none */
    /* What an operator should know, a sentence; or NULL. Called from any thread. */
    void (*note)(void *context, const char *sentence);
    void *context; /* of both */
} iron__store_options;

/* Refuses a directory that another process has open, and a database that is damaged, of another
 * program or of a newer version, or that has lost acknowledged data. Loads every engine: its newest
 * snapshot and the feeds after it; the state hash of the result must match the last row. */
iron_status iron__store_open(const iron__store_options *options, iron__store **out,
                             iron_error *err);
/* Refuses new feeds and engines from now on (IRON_FEED_STOPPING); open feeds may finish. */
void iron__store_stop(iron__store *store);
/* Commits queued work, takes a snapshot of every changed engine, closes the database. All feeds
 * must have ended and all engines must have been released. */
void iron__store_close(iron__store *store);
/* IRON_OK, or the error that made the store read-only. */
iron_status iron__store_failure(iron__store *store, iron_error *why);
/* IRON_OK, or IRON_E_IO while feeds and new engines are refused because the disk is full. */
iron_status iron__store_full(iron__store *store, iron_error *why);

/* The configuration of an engine. */
typedef struct iron__store_plan {
    char name[IRON_ENGINE_NAME_MAX + 1];
    uint64_t nodes, vocab, batch;
    iron_positions positions;
    uint32_t lattice[64];
    uint32_t lattice_count; /* 0: the default points */
    char mode[48], backend[16];
    uint32_t device;
} iron__store_plan;

bool iron__engine_name_is_valid(const char *name);

/* iron_config's defaults; mode, backend auto. */
static inline void iron__store_plan_init(iron__store_plan *plan) {
    iron_config defaults;

    iron_config_init(&defaults);
    *plan = (iron__store_plan){
        .nodes = defaults.nodes,
        .vocab = defaults.vocab,
        .batch = defaults.batch,
        .positions = defaults.positions,
        .mode = "auto",
        .backend = "auto",
    };
}

/* IRON_E_STATE: the name is taken. IRON_E_ARG: invalid configuration. IRON_E_NOMEM: the limit on
 * engines or nodes. IRON_E_UNSUPPORTED: the backend is not available. IRON_E_IO: the store is
 * read-only or stopping. On success the engine is durable; the caller releases *out. */
iron_status iron__store_create(iron__store *store, const iron__store_plan *plan,
                               iron__store_engine **out, iron_error *err);
/* Returns a reference to release, or NULL. */
iron__store_engine *iron__store_find(iron__store *store, const char *name);
/* Stores references to up to `room` engines, sorted by name; returns the number of all engines. */
size_t iron__store_list(iron__store *store, iron__store_engine **out, size_t room);
/* Durable when it returns. IRON_E_STATE: already deleted. */
iron_status iron__store_delete(iron__store *store, iron__store_engine *entry, iron_error *err);
void iron__store_engine_release(iron__store_engine *entry); /* NULL is fine */

/* The last published state of an engine. */
typedef struct iron__store_engine_view {
    iron__store_plan plan;           /* with the lattice, backend and mode that are in use */
    char device[96];                 /* of the backend */
    char device_failure[240];        /* why the engine was moved to the CPU, or "" */
    uint64_t version;                /* incremented by every change */
    uint64_t created_ms, changed_ms; /* since 1970 */
    uint64_t feeds, tokens, batches, sum, state;
    uint32_t xors;
    char seal[33];
    uint64_t incoming; /* tokens received of large bodies that are not committed yet */
    double rate;       /* tokens per second received over about the last two seconds: large bodies
                          count as they come, small ones when they are committed */
    bool is_deleted;
} iron__store_engine_view;

/* Arrays for the nodes of an engine, with an element for each of its plan's nodes. */
typedef struct iron__engine_nodes {
    uint32_t *xors;
    float *potentials, *activations;
} iron__engine_nodes;

/* Fills the view and copies the nodes that belong to it; nodes may be NULL. */
void iron__store_engine_get_view(iron__store_engine *entry, iron__store_engine_view *view,
                                 const iron__engine_nodes *nodes);
/* The published state as a saved state (state_file.h); the caller frees *out. */
iron_status iron__store_engine_serialize(iron__store_engine *entry, unsigned char **out,
                                         size_t *bytes, iron_error *err);
/* Waits until the version differs from `version`, the engine is deleted, the store stops, or the
 * time is over; true if the version differs. */
bool iron__store_engine_wait(iron__store_engine *engine, uint64_t version, uint32_t milliseconds);

/* Waits until there are more than `seen` changes (an engine changed, was created or deleted, or
 * receives a large body), the store stops, or the time is over. Returns the number of changes so
 * far: `seen` of the next wait. */
uint64_t iron__store_wait(iron__store *store, uint64_t seen, uint32_t milliseconds);

/* Tells cheaply whether an engine's view has changed. */
typedef struct iron__engine_stamp {
    char name[IRON_ENGINE_NAME_MAX + 1];
    uint64_t id;      /* never reused */
    uint64_t changes; /* incremented whenever the view may have changed, except by a falling rate */
} iron__engine_stamp;

/* Up to `room` stamps, sorted by name; returns the number of all engines. Locks no engine. */
size_t iron__store_stamps(iron__store *store, iron__engine_stamp *out, size_t room);

/* One batch of an engine's history. */
typedef struct iron__batch_row {
    uint64_t batch;    /* number, from 0 */
    uint64_t position; /* of its first token in the stream */
    uint64_t tokens, sum;
    uint32_t xors;
} iron__batch_row;

/* Batches since, since+1, ..., up to `room`. Earlier ones than *first (or NULL) were removed; then
 * it begins there. Reads them from the disk and verifies them; damage is IRON_E_FORMAT.
 * IRON_E_STATE: the engine was deleted. */
iron_status iron__store_engine_batches(iron__store_engine *entry, uint64_t since,
                                       iron__batch_row *rows, size_t room, size_t *count,
                                       uint64_t *first, iron_error *err);

/* Feeding. */

typedef struct iron__feed iron__feed;

typedef struct iron__feed_request {
    iron_dtype dtype;
    bool has_at;
    uint64_t at;
    const char *key;         /* or NULL */
    uint64_t expected_bytes; /* UINT64_MAX: unknown (chunked) */
} iron__feed_request;

typedef enum iron__feed_outcome {
    IRON_FEED_DONE,       /* durable, applied once */
    IRON_FEED_REPEATED,   /* the key was used with the same tokens: the first answer again */
    IRON_FEED_POSITION,   /* `at` is not the engine's position, or another feed committed first */
    IRON_FEED_KEY_REUSED, /* the key was used with other tokens */
    IRON_FEED_RAGGED,     /* the body ends within a token */
    IRON_FEED_BAD_TOKEN,  /* a value outside 0 ... 2^32-1 (i32, i64) */
    IRON_FEED_GONE,       /* the engine was deleted */
    IRON_FEED_BUSY,       /* too many large bodies at once; try again */
    IRON_FEED_STOPPING,   /* the store is closing */
    IRON_FEED_READ_ONLY,  /* a write has failed; the store accepts nothing more */
    IRON_FEED_FULL,       /* the disk is full; nothing was fed */
    IRON_FEED_FAILED      /* out of memory, a device; see the error */
} iron__feed_outcome;

/* The engine right after the feed (for a repeated key: after the first one). For POSITION only
 * `position` is set. */
typedef struct iron__feed_answer {
    uint64_t position; /* of the engine now */
    uint64_t tokens, batches, sum, state;
    uint32_t xors;
    char seal[33];
    uint64_t fed_tokens, fed_batches; /* of this feed alone */
} iron__feed_answer;

/* Begins a feed; refuses early what is already certain: STOPPING, READ_ONLY, GONE, BUSY, RAGGED (by
 * expected_bytes), POSITION for a body known to be large whose key is new. With any outcome but
 * DONE *out is NULL, and `answer` and err give the details. The feed holds its own reference to the
 * engine. */
iron__feed_outcome iron__feed_begin(iron__store_engine *entry, const iron__feed_request *request,
                                    iron__feed **out, iron__feed_answer *answer, iron_error *err);
/* The next bytes of the body, split anywhere. Any outcome but DONE is final: abandon the feed. */
iron__feed_outcome iron__feed_take(iron__feed *feed, const void *bytes, size_t count,
                                   iron__feed_answer *answer, iron_error *err);
/* The body is complete. Returns when the feed is durable or refused. Takes the feed. */
iron__feed_outcome iron__feed_end(iron__feed *feed, iron__feed_answer *answer, iron_error *err);
/* Drops a feed whose body will not be completed. NULL is fine. */
void iron__feed_abandon(iron__feed *feed);

/* Runs: the records of training jobs (runs.c). A record is bytes that the store does not read; one
 * that a rank of a run has already is not stored again, so sending it again is harmless. A rank's
 * records are in the order of their times, and those of one call in the order in which they are
 * given: a time that is not after that of the record before is moved behind it. */

#define IRON_RUNS_MAX      256u
#define IRON_RUN_RANKS_MAX 4096u

typedef struct iron__run_view {
    char name[IRON_ENGINE_NAME_MAX + 1]; /* valid like an engine's */
    uint64_t id;                         /* never reused */
    uint64_t created_ms, changed_ms;     /* since 1970 */
    uint64_t ranks, records, bytes;
} iron__run_view;

typedef struct iron__run_rank {
    uint64_t rank, world, records, steps, bytes;
    uint64_t last_time, last_kind; /* of the newest record */
    uint64_t last_step;            /* of the newest one that has a step, if steps > 0 */
    uint64_t last_hi, last_lo;     /* of the newest record: its content */
    uint64_t records_check;        /* check words of all records, XORed */
} iron__run_rank;

typedef struct iron__run_record {
    uint64_t time, kind, step, world; /* step: UINT64_MAX: none; world: 0: as before */
    const unsigned char *bytes;       /* borrowed */
    uint32_t count;
    uint64_t hi, lo; /* of its content: iron__run_record_seal */
} iron__run_record;

void iron__run_record_seal(iron__run_record *record);
/* Adds the records of a rank; creates the run if there is none. *added: how many are new. Durable
 * when it returns. IRON_E_NOMEM: a limit is reached. Nothing is stored unless it is IRON_OK. */
iron_status iron__store_run_add(iron__store *store, const char *name, uint64_t rank,
                                const iron__run_record *records, size_t count, uint64_t *added,
                                iron__run_view *after, iron_error *err);
/* Durable when it returns. *found is false if there was none. */
iron_status iron__store_run_delete(iron__store *store, const char *name, bool *found,
                                   iron_error *err);
/* The run with this name; and up to IRON_RUNS_MAX runs, sorted by name. */
iron_status iron__store_run_find(iron__store *store, const char *name, iron__run_view *view,
                                 bool *found, iron_error *err);
iron_status iron__store_runs(iron__store *store, iron__run_view *out, size_t *count,
                             iron_error *err);
/* All ranks of a run, up to IRON_RUN_RANKS_MAX, sorted. */
iron_status iron__store_run_ranks(iron__store *store, uint64_t run, iron__run_rank *out,
                                  size_t *count, iron_error *err);

/* Where reading a run's records has got to. */
typedef struct iron__run_cursor {
    int64_t rank; /* -1: the beginning */
    uint64_t time, hi, lo;
} iron__run_cursor;

/* Gives the next records, in the order of ranks and times, to `take` until that returns false or a
 * portion is over, so that other readers wait only shortly. *is_over: there are no more. */
iron_status iron__store_run_records(iron__store *store, uint64_t run, iron__run_cursor *at,
                                    bool (*take)(void *context, uint64_t rank,
                                                 const unsigned char *bytes, size_t count),
                                    void *context, bool *is_over, iron_error *err);

/* A latency histogram. Counting takes two atomic additions, from any thread. */

#define IRON_LATENCY_BUCKETS 17u /* the last one has no upper bound */

typedef struct iron__latency {
    atomic_uint_fast64_t buckets[IRON_LATENCY_BUCKETS];
    atomic_uint_fast64_t ns; /* total */
} iron__latency;

typedef struct iron__latency_view {
    uint64_t buckets[IRON_LATENCY_BUCKETS];
    uint64_t ns;
} iron__latency_view;

/* Inclusive upper bounds in microseconds, from half a millisecond to a minute. */
extern const uint32_t iron__latency_edges_us[IRON_LATENCY_BUCKETS - 1];

void iron__latency_count(iron__latency *latency, uint64_t ns);
/* Adds the current counts to the view. */
void iron__latency_add(const iron__latency *latency, iron__latency_view *view);

/* Counters since the store was opened. */
typedef struct iron__store_counts {
    uint64_t feeds, tokens, bytes, batches;
    uint64_t commits, jobs; /* transactions, and the requests committed by them */
    uint64_t refused[IRON_FEED_FAILED + 1];
    iron__latency_view commit_latency;
    uint64_t last_commit_ms; /* since 1970; 0: none yet */
    uint64_t snapshots;
    uint32_t queued, uploads; /* now */
    uint64_t moved;           /* engines whose device failed, since the start */
    uint64_t busy_ns;         /* how long the writer has been busy with its current work; 0: idle */
    bool is_full;
} iron__store_counts;

/* Bytes on the disk now; 0 if unknown. */
typedef struct iron__store_disk {
    uint64_t database, log; /* iron.db and its write-ahead log */
    uint64_t size, free;    /* of the file system; free for unprivileged users */
    uint64_t reserve;       /* allocated now */
} iron__store_disk;

/* disk may be NULL; then the disk is not accessed. */
void iron__store_count(iron__store *store, iron__store_counts *counts, iron__store_disk *disk);

#endif
