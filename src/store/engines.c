/* SPDX-License-Identifier: MIT */
/*
 * engines.c: the engines of a store: what readers see of them, creating, deleting and feeding them,
 * and the writer, the one thread that changes them.
 *
 * The writer. Jobs queue up while a transaction is being synced; then all that are waiting, at most
 * GROUP_JOBS, run in order within the next transaction. After COMMIT their changes are published,
 * and only then are the callers answered. If anything cannot be written, nothing of the group is
 * published, and all its jobs and all later ones are refused: the store has failed. Only a full
 * disk is not a failure: the group is rolled back in memory, too, and runs again without the jobs
 * that need room.
 *
 * An entry has two sets of nodes. One is published: readers copy it under the lock. The other
 * belongs to the writer: it takes the nodes after the newest feed, and the two are swapped when
 * that feed is durable. So readers see durable state only, and publishing costs nothing. The
 * iron_engine of an entry can be created again at any time from the summary and the nodes.
 *
 * That engine takes the small bodies, on the CPU whatever the plan says: on a device each would
 * cost a launch and the download of all nodes. The device of a plan is for large bodies, which are
 * reduced on forks. If it fails, the entry moves to the CPU for as long as the store is open; the
 * results are the same.
 */
#include "core/array.h"
#include "core/clock.h"
#include "core/fail.h"
#include "core/memory.h"
#include "engine/checkpoint.h"
#include "store/store_internal.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define GROUP_JOBS       256u /* at most in one transaction */
#define STORE_IDLE_FORKS 32u
#define SNAPSHOT_BATCHES 65536u /* default distance between two snapshots */

typedef struct writer_job writer_job;

/* Work for the writer. The caller owns it and waits for `done`. */
struct writer_job {
    writer_job *next;
    /* Its part of the transaction. Failing makes the store read-only; a refusal of this job alone
     * is returned in the job's own fields. */
    iron_status (*run)(iron__writer *writer, writer_job *job, iron_error *err);
    iron__store_engine *entry;
    iron__feed *feed; /* of run_small, run_block and run_large */
    iron_status (*write)(iron__database *db, void *context, iron_error *err); /* of run_write */
    void *context;
    bool is_growing;            /* refused while the disk is full */
    bool is_done;               /* create, delete: the name was free, the engine existed */
    iron__feed_outcome outcome; /* of the feed */
    iron__feed_outcome refused; /* READ_ONLY, FULL: see error; DONE: it was not */
    iron_error error;           /* of a refusal */
    sem_t done;
};

/* Feeds that were applied and wait for their state hash. One hash is a chain of dependent
 * multiplications and takes longer than the rest of a small feed; four side by side take hardly
 * longer than one. So the nodes after each feed are copied, and rows are written when four feeds
 * are waiting, or when a row is needed earlier. */
typedef struct pending_feed {
    iron__feed *feed;
    iron__feed_row row;
    iron__node_arrays nodes;
    unsigned char (*batches)[IRON_BATCH_BYTES]; /* encoded as they close */
    size_t batch_count, batch_room;
    bool is_out_of_memory; /* a batch was lost */
} pending_feed;

typedef struct pending_feeds {
    pending_feed feeds[IRON_NODES_HASH_MAX];
    size_t count;
    uint64_t nodes; /* of the engines of these feeds */
    uint64_t room;  /* nodes allocated for each */
} pending_feeds;

/* Where the cleanup of rows without an owner is. */
typedef struct writer_cleanup {
    bool is_wanted;
    int table;
    uint64_t done; /* engines or uploads up to this id */
} writer_cleanup;

struct iron__writer {
    iron__store *store;
    iron__database *db;
    iron__store_ledger ledger, committed; /* as of the current transaction; as of the last */
    pending_feeds pending;
    writer_cleanup cleanup;
    iron__store_engine *changed[GROUP_JOBS]; /* by the current transaction */
    size_t changed_count;
    bool wants_snapshots;
    uint32_t groups_since_cleanup;
    uint64_t group_ms;     /* when the current group began */
    uint64_t room_ns;      /* when room was last looked for */
    bool is_cleanup_stuck; /* for lack of room: until the next look */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards what follows, up to wants_cleanup */
    pthread_cond_t has_work;
    writer_job *first, **last;
    bool is_closing, wants_cleanup;
    atomic_uint queued;
    atomic_uint_fast64_t commits, jobs, snapshots, last_commit_ms;
    atomic_uint_fast64_t busy_since_ns; /* 0: idle */
    iron__latency commit_latency;
};

/* The rate counter. Tokens are counted per quarter of a second, in a ring of slots. A slot is one
 * word: the count in its lower 40 bits (a thousand times what memory can deliver in a quarter), and
 * in its upper 24 how often the quarters have gone round the ring, which repeats after two years.
 * So counting takes one atomic exchange, and old slots need not be cleared. */

#define RATE_INTERVAL_NS UINT64_C(250000000)
#define RATE_INTERVALS   8u /* that a rate is computed over */
#define COUNT_BITS       40u
#define COUNT_MAX        ((UINT64_C(1) << COUNT_BITS) - 1)

static uint64_t round_of(uint64_t interval) { return interval / IRON_RATE_SLOTS << COUNT_BITS; }

static uint64_t count_in(uint64_t word, uint64_t interval) {
    return (word & ~COUNT_MAX) == round_of(interval) ? word & COUNT_MAX : 0;
}

/* True for the first tokens of an interval: the rate may have been 0 before. */
static bool rate_counter_add(iron__rate_counter *counter, uint64_t now_ns, uint64_t tokens) {
    uint64_t interval = now_ns / RATE_INTERVAL_NS, before;
    atomic_uint_fast64_t *slot = &counter->slots[interval % IRON_RATE_SLOTS];
    uint_fast64_t word = atomic_load_explicit(slot, memory_order_relaxed), next;

    if (tokens == 0)
        return false;
    do {
        before = count_in(word, interval);
        next = round_of(interval) | (tokens < COUNT_MAX - before ? before + tokens : COUNT_MAX);
    } while (!atomic_compare_exchange_weak_explicit(slot, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return before == 0;
}

/* Tokens per second; 0 from two and a quarter seconds after the last ones. The oldest interval is
 * weighted with what remains of the current one, so that the rate has no steps. */
static double rate_counter_rate(const iron__rate_counter *counter, uint64_t now_ns) {
    uint64_t now = now_ns / RATE_INTERVAL_NS;
    double passed = (double)(now_ns % RATE_INTERVAL_NS) / (double)RATE_INTERVAL_NS;
    double tokens = 0;

    for (uint64_t k = 0; k <= RATE_INTERVALS && k <= now; k++) {
        const atomic_uint_fast64_t *slot = &counter->slots[(now - k) % IRON_RATE_SLOTS];
        uint64_t count = count_in(atomic_load_explicit(slot, memory_order_relaxed), now - k);

        tokens += k < RATE_INTERVALS ? (double)count : (1 - passed) * (double)count;
    }
    return tokens * 1e9 / (double)(RATE_INTERVALS * RATE_INTERVAL_NS);
}

/* The nodes of an engine, in one piece of memory: free() the first array. */
static bool nodes_create(iron__node_arrays *nodes, uint64_t count) {
    nodes->xors = calloc(2 * count, sizeof *nodes->xors);
    nodes->potentials = nodes->xors ? (float *)(void *)(nodes->xors + count) : NULL;
    return nodes->xors != NULL;
}

static void nodes_copy(const iron__node_arrays *to, const uint32_t *xors, const float *potentials,
                       uint64_t count) {
    memcpy(to->xors, xors, count * sizeof *xors);
    memcpy(to->potentials, potentials, count * sizeof *potentials);
}

/* The nodes of an engine in host memory; an error if its device has failed. */
static iron_status read_nodes(iron_engine *engine, iron__hashed_nodes *nodes, iron_error *err) {
    assert(engine);
    nodes->xor_accumulators = iron_engine_xor_accumulators(engine);
    nodes->potentials = iron_engine_potentials(engine);
    if (nodes->xor_accumulators && nodes->potentials)
        return IRON_OK;
    IRON_FAIL_IF(engine->failure.status == IRON_OK, err, IRON_E_IO,
                 "cannot read the nodes from the device");
    return iron__fail_again(err, &engine->failure);
}

/* Forks are private engines in the published state, for large bodies. Creating one takes memory and
 * a sort of the nodes, so a few stay with their entry when they are given back. All forks together
 * have no more nodes than all engines may have: memory is bounded for any number of uploads. Idle
 * forks are destroyed to make room, also for forks of other engines. */

static void destroy_fork(iron__store_engine *entry, iron_engine *fork) {
    iron_engine_destroy(fork);
    atomic_fetch_sub(&entry->store->fork_nodes, entry->plan.nodes);
}

static iron_engine *take_idle(iron__store_engine *entry) {
    iron_engine *fork = NULL;

    pthread_mutex_lock(&entry->lock);
    if (entry->idle_count > 0)
        fork = entry->idle[--entry->idle_count];
    pthread_mutex_unlock(&entry->lock);
    if (fork)
        atomic_fetch_sub(&entry->store->idle_forks, 1);
    return fork;
}

/* Destroys an idle fork of any engine. False: no fork is idle. */
static bool destroy_idle_fork(iron__store *store) {
    iron__store_engine *entry = NULL;
    iron_engine *fork = NULL;

    pthread_mutex_lock(&store->lock);
    for (size_t k = 0; k < store->engine_count && !fork; k++) {
        entry = store->engines[k];
        fork = take_idle(entry);
    }
    if (fork)
        iron__store_engine_retain(entry);
    pthread_mutex_unlock(&store->lock);
    if (!fork)
        return false;
    destroy_fork(entry, fork);
    iron__store_engine_release(entry);
    return true;
}

static bool reserve_fork_nodes(iron__store *store, uint64_t nodes) {
    uint_fast64_t used = atomic_load(&store->fork_nodes);

    do {
        if (used > 0 && used + nodes > store->options.nodes_max)
            return false;
    } while (!atomic_compare_exchange_weak(&store->fork_nodes, &used, used + nodes));
    return true;
}

static bool is_on_cpu(iron__store_engine *entry) {
    bool is_on_cpu;

    pthread_mutex_lock(&entry->lock);
    is_on_cpu = strcmp(entry->in_use.backend, "cpu") == 0;
    pthread_mutex_unlock(&entry->lock);
    return is_on_cpu;
}

/* Records the backend, mode and device that a new engine has chosen. */
static void record_choice(iron__store_engine *entry, const iron_engine *engine) {
    iron__store_plan *p = &entry->in_use;
    const iron_config *c = iron_engine_config(engine);

    snprintf(p->backend, sizeof p->backend, "%s", c->backend);
    snprintf(p->mode, sizeof p->mode, "%s", c->mode);
    p->device = c->device;
    snprintf(entry->device, sizeof entry->device, "%s", iron_engine_device(engine));
}

/* The entry's device has failed: its next forks are on the CPU. Several threads may find out. */
static void move_to_cpu(iron__store_engine *entry, const iron_error *why) {
    iron__store *store = entry->store;
    char text[400];
    iron_engine *fork;
    bool was_on_cpu;

    pthread_mutex_lock(&entry->lock);
    was_on_cpu = strcmp(entry->in_use.backend, "cpu") == 0;
    if (!was_on_cpu) {
        entry->in_use = entry->on_cpu;
        memcpy(entry->device, entry->cpu, sizeof entry->device);
        snprintf(entry->device_failure, sizeof entry->device_failure, "%s", why->text);
    }
    pthread_mutex_unlock(&entry->lock);
    if (was_on_cpu)
        return;
    while ((fork = take_idle(entry)))
        destroy_fork(entry, fork);
    atomic_fetch_add(&store->moved, 1);
    snprintf(text, sizeof text, "engine %s: its device failed, it continues on the CPU: %s",
             entry->plan.name, why->text);
    iron__store_note(store, text);
}

static iron_status create_fork(iron__store_engine *entry, iron_engine **out, iron_error *err) {
    iron_status status;

    while (!reserve_fork_nodes(entry->store, entry->plan.nodes))
        IRON_FAIL_IF(!destroy_idle_fork(entry->store), err, IRON_E_STATE,
                     "large bodies for engines of %" PRIu64
                     " nodes use all the memory reserved for them; try again",
                     entry->plan.nodes);
    status = iron__store_plan_engine(
        &entry->plan, is_on_cpu(entry) ? IRON_PLAN_SMALL : IRON_PLAN_LARGE, out, err);
    if (status != IRON_OK)
        atomic_fetch_sub(&entry->store->fork_nodes, entry->plan.nodes);
    return status;
}

/* Brings an engine of the same configuration to the published state. The nodes are copied twice, so
 * that the lock is not held while waiting for a device. */
static iron_status copy_published(iron__store_engine *entry, iron_engine *to, iron_error *err) {
    const uint64_t count = entry->plan.nodes;
    iron__checkpoint published;
    iron__node_arrays copy;
    iron_status status;

    IRON_FAIL_IF(!nodes_create(&copy, count), err, IRON_E_NOMEM,
                 "out of memory for a copy of %" PRIu64 " nodes", count);
    pthread_mutex_lock(&entry->lock);
    nodes_copy(&copy, entry->nodes.xors, entry->nodes.potentials, count);
    published = entry->published.checkpoint;
    pthread_mutex_unlock(&entry->lock);
    status = iron__engine_restore(to, &published, copy.xors, copy.potentials, err);
    free(copy.xors);
    return status;
}

/* A private engine in the published state of the entry. */
static iron_status fork_take(iron__store_engine *entry, iron_engine **out, iron_error *err) {
    for (bool is_second = false;; is_second = true) {
        iron_status status = IRON_OK;

        *out = take_idle(entry);
        if (!*out)
            status = create_fork(entry, out, err);
        if (status == IRON_OK)
            status = copy_published(entry, *out, err);
        if (status == IRON_OK)
            return IRON_OK;
        if (*out)
            destroy_fork(entry, *out);
        *out = NULL;
        if (status == IRON_E_STATE || is_second || is_on_cpu(entry))
            return status; /* IRON_E_STATE: no room for a fork */
        move_to_cpu(entry, err);
    }
}

/* Gives it back; one whose device failed is not used again. NULL is fine. */
static void fork_give(iron__store_engine *entry, iron_engine *fork) {
    iron__store *store = entry->store;

    if (!fork)
        return;
    iron__engine_on_batch(fork, NULL, NULL);
    if (fork->failure.status != IRON_OK) {
        move_to_cpu(entry, &fork->failure);
    } else if (is_on_cpu(entry) == (strcmp(iron_engine_config(fork)->backend, "cpu") == 0)) {
        if (atomic_fetch_add(&store->idle_forks, 1) < STORE_IDLE_FORKS) {
            pthread_mutex_lock(&entry->lock);
            if (entry->idle_count < IRON_IDLE_FORKS && !entry->is_deleted) {
                entry->idle[entry->idle_count++] = fork;
                fork = NULL;
            }
            pthread_mutex_unlock(&entry->lock);
        }
        if (fork)
            atomic_fetch_sub(&store->idle_forks, 1);
    }
    if (fork)
        destroy_fork(entry, fork);
}

/* Entries. */

static void entry_destroy(iron__store_engine *entry) {
    iron_engine_destroy(entry->engine);
    for (uint32_t k = 0; k < entry->idle_count; k++) {
        destroy_fork(entry, entry->idle[k]);
        atomic_fetch_sub(&entry->store->idle_forks, 1);
    }
    free(entry->latest_nodes.xors);
    free(entry->nodes.xors);
    pthread_cond_destroy(&entry->changed);
    pthread_mutex_destroy(&entry->lock);
    free(entry);
}

iron_status iron__store_engine_create(iron__store *store, const iron__engine_row *row,
                                      const iron__engine_summary *summary, iron_engine *state,
                                      iron_engine *engine, iron__store_engine **out,
                                      iron_error *err) {
    const iron_config *config = iron_engine_config(state);
    iron__store_engine *entry = calloc(1, sizeof *entry);
    iron__hashed_nodes nodes = {NULL, NULL, 0};
    iron_status status;

    *out = NULL;
    if (!entry)
        iron_engine_destroy(engine);
    IRON_FAIL_IF(!entry, err, IRON_E_NOMEM, "out of memory for an engine");
    entry->store = store;
    entry->plan = entry->in_use = row->plan;
    entry->id = row->id;
    entry->created_ms = row->created_ms;
    entry->engine = engine;
    entry->latest = entry->published = *summary;
    entry->version = 1;
    atomic_init(&entry->references, 1);
    pthread_mutex_init(&entry->lock, NULL);
    iron__condition_init(&entry->changed);
    entry->in_use.lattice_count = config->lattice_count;
    memcpy(entry->in_use.lattice, config->lattice,
           config->lattice_count * sizeof config->lattice[0]);
    if (engine)
        record_choice(entry, engine);
    entry->on_cpu = entry->in_use;
    memcpy(entry->cpu, entry->device, sizeof entry->cpu);
    if (!nodes_create(&entry->nodes, row->plan.nodes) ||
        !nodes_create(&entry->latest_nodes, row->plan.nodes))
        status = iron__fail(err, IRON_E_NOMEM, 0,
                            "out of memory for nodes of an engine; use fewer engines or nodes");
    else
        status = read_nodes(state, &nodes, err);
    if (status != IRON_OK) {
        entry_destroy(entry);
        return status;
    }
    nodes_copy(&entry->nodes, nodes.xor_accumulators, nodes.potentials, row->plan.nodes);
    *out = entry;
    return IRON_OK;
}

iron_status iron__store_engine_open_device(iron__store_engine *entry, bool is_needed,
                                           iron_error *err) {
    iron_engine *engine = NULL;
    iron_error why = {0};

    if (strcmp(entry->plan.backend, "cpu") == 0)
        return IRON_OK;
    if (iron__store_plan_engine(&entry->plan, IRON_PLAN_LARGE, &engine, &why) == IRON_OK) {
        record_choice(entry, engine);
        if (reserve_fork_nodes(entry->store, entry->plan.nodes))
            fork_give(entry, engine);
        else
            iron_engine_destroy(engine);
        return IRON_OK;
    }
    if (is_needed)
        return iron__fail_again(err, &why);
    snprintf(entry->in_use.backend, sizeof entry->in_use.backend, "%s", entry->plan.backend);
    move_to_cpu(entry, &why);
    return IRON_OK;
}

void iron__store_engine_release(iron__store_engine *entry) {
    if (entry && atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) == 1)
        entry_destroy(entry);
}

/* Publishing. */

/* Called after the change, so that those who are notified see it. */
static void notify(iron__store_engine *entry) {
    atomic_fetch_add(&entry->changes, 1);
    iron__store_notify(entry->store);
}

/* Writer only: makes `latest` visible. */
static void entry_publish(iron__store_engine *entry) {
    pthread_mutex_lock(&entry->lock);
    entry->is_deleted = entry->is_deleting;
    if (!entry->is_deleting) {
        iron__node_arrays nodes = entry->latest_nodes;
        /* the tokens of large bodies were counted when they came */
        uint64_t tokens = entry->latest.checkpoint.closed.count -
                          entry->published.checkpoint.closed.count - entry->incoming_committed;

        entry->latest_nodes = entry->nodes;
        entry->nodes = nodes;
        entry->published = entry->latest;
        (void)rate_counter_add(&entry->rate_counter, iron__clock_ns(), tokens);
    }
    atomic_fetch_sub(&entry->incoming, entry->incoming_committed);
    entry->version++;
    pthread_cond_broadcast(&entry->changed);
    pthread_mutex_unlock(&entry->lock);
    entry->incoming_committed = 0;
    entry->has_unpublished = false;
    notify(entry);
}

/* The engine that feeds are applied to. */

/* Writer only: destroys the engine after a failure within a feed. */
static void entry_drop_engine(iron__store_engine *entry) {
    iron_engine_destroy(entry->engine);
    entry->engine = NULL;
}

/* Writer only: there is an engine to feed; created again if it had failed. */
static iron_status entry_open(iron__store_engine *entry, iron_error *err) {
    /* only the writer changes what is published: it needs no lock to read it */
    const iron__node_arrays *nodes = entry->has_unpublished ? &entry->latest_nodes : &entry->nodes;
    iron_status status;

    if (entry->engine)
        return IRON_OK;
    IRON_TRY(iron__store_plan_engine(&entry->plan, IRON_PLAN_SMALL, &entry->engine, err));
    status = iron__engine_restore(entry->engine, &entry->latest.checkpoint, nodes->xors,
                                  nodes->potentials, err);
    if (status != IRON_OK)
        entry_drop_engine(entry);
    return status;
}

/* What readers see. */

void iron__store_engine_get_view(iron__store_engine *entry, iron__store_engine_view *view,
                                 const iron__engine_nodes *nodes) {
    const iron__engine_summary *summary = &entry->published;
    size_t bytes = entry->plan.nodes * sizeof(uint32_t);

    pthread_mutex_lock(&entry->lock);
    *view = (iron__store_engine_view){
        .plan = entry->in_use,
        .version = entry->version,
        .created_ms = entry->created_ms,
        .changed_ms = summary->changed_ms,
        .feeds = summary->feeds,
        .tokens = summary->checkpoint.closed.count,
        .batches = summary->checkpoint.batches,
        .sum = summary->checkpoint.closed.sum,
        .state = summary->state,
        .xors = summary->checkpoint.closed.xors,
        .incoming = atomic_load(&entry->incoming),
        .rate = rate_counter_rate(&entry->rate_counter, iron__clock_ns()),
        .is_deleted = entry->is_deleted,
    };
    memcpy(view->device, entry->device, sizeof view->device);
    memcpy(view->device_failure, entry->device_failure, sizeof view->device_failure);
    iron__seal_text(iron__seal_total(&summary->checkpoint.seal), view->seal);
    if (nodes) {
        memcpy(nodes->xors, entry->nodes.xors, bytes);
        memcpy(nodes->potentials, entry->nodes.potentials, bytes);
    }
    pthread_mutex_unlock(&entry->lock);
    for (uint64_t j = 0; nodes && j < entry->plan.nodes; j++)
        nodes->activations[j] =
            (float)(j + 1) / (float)entry->plan.nodes; /* the same in every plan */
}

/* Uses an engine of its own on the CPU, where the state is the same: this neither disturbs a device
 * nor needs a fork, which uploads may have used up. */
iron_status iron__store_engine_serialize(iron__store_engine *entry, unsigned char **out,
                                         size_t *bytes, iron_error *err) {
    iron_engine *engine = NULL;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__store_plan_engine(&entry->plan, IRON_PLAN_CPU, &engine, err));
    *bytes = iron__state_bytes(engine);
    status = copy_published(entry, engine, err);
    if (status == IRON_OK)
        status = IRON_NEW(out, *bytes, "a state", err);
    if (status == IRON_OK)
        status = iron__state_write(engine, *out, err);
    if (status != IRON_OK) {
        free(*out);
        *out = NULL;
    }
    iron_engine_destroy(engine);
    return status;
}

bool iron__store_engine_wait(iron__store_engine *entry, uint64_t version, uint32_t milliseconds) {
    struct timespec deadline = iron__deadline_after(milliseconds * UINT64_C(1000000));
    bool is_over = false, is_changed;

    pthread_mutex_lock(&entry->lock);
    while (entry->version == version && !entry->is_deleted &&
           !atomic_load(&entry->store->is_stopping) && !is_over)
        is_over = pthread_cond_timedwait(&entry->changed, &entry->lock, &deadline) != 0;
    is_changed = entry->version != version;
    pthread_mutex_unlock(&entry->lock);
    return is_changed;
}

iron_status iron__sql_finish(iron__database *db, sqlite3_stmt *statement, const char *doing,
                             iron_error *err) {
    bool has_row;

    do
        IRON_TRY(iron__sql_step(db, statement, &has_row, doing, err));
    while (has_row);
    return IRON_OK;
}

iron_status iron__sql_run(iron__database *db, iron__sql which, const uint64_t *words, int count,
                          const char *doing, iron_error *err) {
    return iron__sql_finish(db, iron__sql_ready(db, which, words, count, err), doing, err);
}

/* The queue of the writer. */

/* Queues the job and waits until it is durable and published, or refused. */
static void writer_run(iron__writer *w, writer_job *job) {
    sem_init(&job->done, 0, 0);
    job->next = NULL;
    pthread_mutex_lock(&w->lock);
    *w->last = job;
    w->last = &job->next;
    if (atomic_fetch_add(&w->queued, 1) == 0)
        pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
    while (sem_wait(&job->done) != 0)
        continue; /* interrupted by a signal */
    sem_destroy(&job->done);
}

/* There may be rows without an owner. */
static void writer_request_cleanup(iron__writer *w) {
    atomic_store(&w->store->is_cleaning, true);
    pthread_mutex_lock(&w->lock);
    w->wants_cleanup = true;
    pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
}

/* Within a job: the engine is published after COMMIT. A job changes one engine. */
static void writer_mark_changed(iron__writer *w, iron__store_engine *entry) {
    for (size_t k = 0; k < w->changed_count; k++)
        if (w->changed[k] == entry)
            return;
    assert(w->changed_count < GROUP_JOBS);
    w->changed[w->changed_count++] = iron__store_engine_retain(entry);
}

/* Creating and deleting engines. Creating one may take time (a device), so the caller's thread does
 * it; the engine enters the list when its row is durable. A deletion removes one row; the writer
 * removes the rest of the engine's data later. Limits apply to new engines only: those that were
 * stored before a limit was lowered are still loaded. */

/* An engine was added (count 1) or removed (-1). */
static iron_status write_ledger(iron__writer *w, const iron__engine_row *row, int count,
                                iron_error *err) {
    iron__store_ledger *ledger = &w->ledger;

    ledger->engines += (uint64_t)count;
    ledger->engines_check ^= iron__engine_row_check(row);
    return iron__sql_run(w->db, IRON_SQL_LEDGER_WRITE,
                         IRON_WORDS(ledger->engines, ledger->engines_check, ledger->next_engine,
                                    iron__ledger_check(ledger)),
                         "write the ledger", err);
}

static iron_status run_create(iron__writer *w, writer_job *job, iron_error *err) {
    iron__store_engine *entry = job->entry, *other = iron__store_find(w->store, entry->plan.name);
    bool is_taken = other && !other->is_deleting;
    const iron__store_plan *p = &entry->plan;
    iron__engine_row row;
    sqlite3_stmt *s;

    iron__store_engine_release(other);
    for (size_t k = 0; k < w->changed_count; k++) /* engines of this group are not listed yet */
        is_taken |= !w->changed[k]->is_deleting && strcmp(w->changed[k]->plan.name, p->name) == 0;
    if (is_taken)
        return IRON_OK;
    entry->id = w->ledger.next_engine++;
    row = (iron__engine_row){entry->id, entry->created_ms, entry->plan};
    s = iron__sql_ready(w->db, IRON_SQL_ENGINE_INSERT,
                        IRON_WORDS(row.id, p->nodes, p->vocab, p->batch, (uint64_t)p->positions,
                                   p->device, row.created_ms, iron__engine_row_check(&row)),
                        err);
    sqlite3_bind_text(s, 9, p->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 10, p->mode, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 11, p->backend, -1, SQLITE_STATIC);
    sqlite3_bind_blob(s, 12, p->lattice, (int)(p->lattice_count * sizeof p->lattice[0]),
                      SQLITE_STATIC);
    IRON_TRY(iron__sql_finish(w->db, s, "write an engine", err));
    IRON_TRY(write_ledger(w, &row, 1, err));
    writer_mark_changed(w, entry);
    nodes_copy(&entry->latest_nodes, entry->nodes.xors, entry->nodes.potentials, p->nodes);
    job->is_done = true;
    return IRON_OK;
}

static iron_status run_delete(iron__writer *w, writer_job *job, iron_error *err) {
    iron__store_engine *entry = job->entry;
    iron__engine_row row = {entry->id, entry->created_ms, entry->plan};

    if (entry->is_deleting)
        return IRON_OK;
    IRON_TRY(iron__sql_run(w->db, IRON_SQL_ENGINE_DELETE, IRON_WORDS(entry->id), "delete an engine",
                           err));
    IRON_FAIL_IF(sqlite3_changes(w->db->handle) != 1, err, IRON_E_FORMAT,
                 "engine %" PRIu64 " is not in %.120s any more; restore a backup", entry->id,
                 w->db->path);
    IRON_TRY(write_ledger(w, &row, -1, err));
    writer_mark_changed(w, entry);
    entry->is_deleting = true;
    job->is_done = true;
    return IRON_OK;
}

/* Reserves room for one more engine in the list and within the limits. */
static iron_status reserve_engine(iron__store *store, uint64_t nodes, iron_error *err) {
    const iron__store_options *o = &store->options;

    IRON_FAIL_IF(store->planned_engines >= o->engines_max, err, IRON_E_NOMEM,
                 "the limit of %" PRIu64 " engines is reached; delete one", store->planned_engines);
    IRON_FAIL_IF(nodes > o->nodes_max || store->planned_nodes > o->nodes_max - nodes, err,
                 IRON_E_NOMEM,
                 "the engines have %" PRIu64 " nodes in all, and %" PRIu64
                 " more would exceed %" PRIu64 "; use fewer, or delete an engine",
                 store->planned_nodes, nodes, o->nodes_max);
    /* two more: a deleted engine is still in the list when its successor is planned */
    IRON_TRY(
        iron__store_reserve_list(store, store->engine_count + store->planned_engines + 2, err));
    store->planned_engines++;
    store->planned_nodes += nodes;
    return IRON_OK;
}

static void unreserve_engine(iron__store *store, uint64_t nodes) {
    pthread_mutex_lock(&store->lock);
    store->planned_engines--;
    store->planned_nodes -= nodes;
    pthread_mutex_unlock(&store->lock);
}

/* The store has failed: its error, as IRON_E_IO. */
static iron_status refuse_write(iron_error why, iron_error *err) {
    why.status = IRON_E_IO;
    return iron__fail_again(err, &why);
}

static iron_status check_writable(iron__store *store, iron_error *err) {
    iron_error why = {0};

    if (iron__store_failure(store, &why) != IRON_OK)
        return refuse_write(why, err);
    IRON_FAIL_IF(atomic_load(&store->is_stopping), err, IRON_E_IO, "the store is being closed");
    return IRON_OK;
}

static iron_status run_job(iron__store *store, writer_job *job, iron_error *err) {
    writer_run(store->writer, job);
    return job->refused ? refuse_write(job->error, err) : IRON_OK;
}

static iron_status build_entry(iron__store *store, const iron__store_plan *plan,
                               iron__store_engine **out, iron_error *err) {
    const iron__engine_row row = {.created_ms = iron__now_ms(), .plan = *plan};
    iron__engine_summary summary = {.changed_ms = row.created_ms};
    iron_report report = {.struct_size = sizeof report};
    iron_engine *engine;
    iron_status status;

    IRON_TRY(iron__store_plan_engine(plan, IRON_PLAN_SMALL, &engine, err));
    status = iron_engine_report(engine, &report, err);
    if (status != IRON_OK) {
        iron_engine_destroy(engine);
        return status;
    }
    summary.state = report.state;
    IRON_TRY(iron__store_engine_create(store, &row, &summary, engine, engine, out, err));
    status = iron__store_engine_open_device(*out, true, err);
    if (status != IRON_OK) {
        iron__store_engine_release(*out);
        *out = NULL;
    }
    return status;
}

static iron_status refuse_name(const char *name, iron_error *err) {
    IRON_FAIL(err, IRON_E_STATE, "an engine named %s exists; choose another name, or delete it",
              name);
}

iron_status iron__store_create(iron__store *store, const iron__store_plan *plan,
                               iron__store_engine **out, iron_error *err) {
    writer_job job = {.run = run_create, .is_growing = true};
    iron__store_engine *other;
    iron_status status;

    *out = NULL;
    IRON_TRY(check_writable(store, err));
    IRON_FAIL_IF(!iron__engine_name_is_valid(plan->name), err, IRON_E_ARG,
                 "an engine's name has 1 to %u letters, digits, '.', '_' or '-', and begins with a "
                 "letter or digit",
                 IRON_ENGINE_NAME_MAX);
    other = iron__store_find(store, plan->name);
    iron__store_engine_release(other);
    if (other)
        return refuse_name(plan->name, err);
    pthread_mutex_lock(&store->lock);
    status = reserve_engine(store, plan->nodes, err);
    pthread_mutex_unlock(&store->lock);
    IRON_TRY(status);
    status = build_entry(store, plan, &job.entry, err);
    if (status == IRON_OK)
        status = run_job(store, &job, err);
    if (status == IRON_OK && !job.is_done)
        status = refuse_name(plan->name, err);
    if (status == IRON_OK) {
        *out = job.entry;
    } else {
        iron__store_engine_release(job.entry);
        unreserve_engine(store, plan->nodes);
    }
    return status;
}

iron_status iron__store_delete(iron__store *store, iron__store_engine *entry, iron_error *err) {
    writer_job job = {.run = run_delete, .entry = entry};

    IRON_TRY(check_writable(store, err));
    IRON_TRY(run_job(store, &job, err));
    IRON_FAIL_IF(!job.is_done, err, IRON_E_STATE, "engine %s was deleted before", entry->plan.name);
    writer_request_cleanup(store->writer);
    return IRON_OK;
}

static iron_status run_write(iron__writer *w, writer_job *job, iron_error *err) {
    return job->write(w->db, job->context, err);
}

iron_status iron__store_write(iron__store *store, bool is_growing,
                              iron_status (*write)(iron__database *db, void *context,
                                                   iron_error *err),
                              void *context, iron_error *err) {
    writer_job job = {
        .run = run_write, .write = write, .context = context, .is_growing = is_growing};

    IRON_TRY(check_writable(store, err));
    IRON_TRY(run_job(store, &job, err));
    if (!is_growing)
        writer_request_cleanup(store->writer);
    return IRON_OK;
}

/* Feeding.
 *
 * A body is small unless it is known to be large: its bytes are buffered, and the writer reduces
 * them when the feed's turn comes. When there are more than IRON_SMALL_BODY bytes, the feed becomes
 * an upload: it is reduced on a fork of the engine while it streams in, in memory of a fixed size.
 * Its batches collect until there are IRON_BLOCK_BATCHES and then go to the disk as a block. At the
 * end one row makes the blocks a feed, if the engine is still where the body began.
 *
 * A feed whose device fails gets IRON_FEED_FAILED; nothing of it is written, other feeds go on. */

#define BODY_BYTES 8192u /* first allocation for a small body of unknown length */

/* Compares a body with the first feed that had its key. */
typedef struct repeat {
    iron__feed_row first; /* without its batches */
    iron_engine *engine;  /* starts where that feed began; has one node, which is never read */
    iron__checkpoint begin;
} repeat;

/* A large body. */
typedef struct upload {
    iron__feed *feed;
    iron_engine *fork;        /* NULL: the key was used before, */
    repeat repeat;            /* by this feed */
    iron__feed_row row;       /* without its number and time */
    iron__hashed_nodes nodes; /* of the fork, after the body */
    uint64_t tokens;          /* reduced so far */
    uint64_t incoming;        /* reported to the engine as incoming */
    unsigned char *buffer;    /* IRON_UPLOAD_BUFFER_BYTES: received, not reduced yet */
    size_t buffered;
    unsigned char *batches; /* encoded, not in a block yet */
    size_t batch_count;
    uint64_t blocks; /* written, as those of upload row.upload */
} upload;

struct iron__feed {
    iron__store_engine *entry;
    iron__feed_request request;
    size_t width;                    /* of a token */
    char key[IRON_FEED_KEY_MAX + 1]; /* or "" */
    unsigned char *body;             /* of a small feed */
    size_t held, room;
    iron__tokens_view view;     /* of the body, when it is complete */
    uint64_t taken;             /* bytes received in all */
    upload *upload;             /* of a large feed */
    iron__feed_outcome refused; /* DONE: it was not */
    /* what the writer has made of it */
    iron__engine_summary after;
    uint64_t tokens, batches; /* of the feed alone */
    uint64_t position;        /* of the engine now */
};

/* Statements. */

static iron_status insert_feed(iron__database *db, const iron__feed_row *row, iron_error *err) {
    const iron__checkpoint *after = &row->after.checkpoint;
    const iron__seal *seal = &after->seal;
    sqlite3_stmt *s = iron__sql_ready(
        db, IRON_SQL_FEED_INSERT,
        IRON_WORDS(row->engine, row->number, row->position, row->fed.count, row->fed.xors,
                   row->fed.sum, row->first_batch, row->batches, after->closed.xors,
                   after->closed.sum, row->after.state, seal->words.t, seal->words.a, seal->words.b,
                   seal->carry[0], seal->carry[1], seal->carry[2]),
        err);

    if (row->key[0])
        sqlite3_bind_text(s, 18, row->key, -1, SQLITE_STATIC);
    iron__bind_word(s, 19, row->after.changed_ms);
    if (row->has_blocks)
        iron__bind_word(s, 20, row->upload);
    sqlite3_bind_blob64(s, 21, row->batch_bytes ? row->batch_bytes : (const void *)"",
                        row->batch_bytes_count, SQLITE_STATIC);
    iron__bind_word(s, 22, iron__feed_row_check(row));
    return iron__sql_finish(db, s, "write a feed", err);
}

/* The feed that has used the key. A key is forgotten when it is old, and when the feed before it,
 * which a comparison needs, is no longer kept: then it can be used again, and the writer
 * (may_write) takes it from the old feed. */
static iron_status find_key(const iron__store_engine *entry, iron__database *db, bool may_write,
                            const char *key, iron__feed_row *row, bool *found, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_FEED_BY_KEY, IRON_WORDS(entry->id), err);
    const uint64_t keep_ms = entry->store->options.keep_keys_ms;
    iron__feed_row without_key;
    uint64_t position;
    bool is_kept;

    sqlite3_bind_text(s, 2, key, -1, SQLITE_TRANSIENT);
    IRON_TRY(iron__feed_row_step(db, s, row, found, err));
    if (!*found)
        return IRON_OK;
    IRON_FAIL_IF(row->engine != entry->id || strcmp(row->key, key) != 0, err, IRON_E_FORMAT,
                 "the index of the feeds of engine %" PRIu64
                 " in %.100s is damaged; restore a backup",
                 entry->id, db->path);
    is_kept = !keep_ms || iron__now_ms() < row->after.changed_ms + keep_ms;
    if (is_kept && row->number > 1)
        IRON_TRY(iron__sql_number(db, IRON_SQL_FEED_END, IRON_WORDS(row->engine, row->number - 1),
                                  &is_kept, &position, "read a feed", err));
    if (is_kept)
        return IRON_OK;
    *found = false;
    without_key = *row;
    without_key.key[0] = '\0';
    return may_write ? iron__sql_run(
                           db, IRON_SQL_FEED_FORGET_KEY,
                           IRON_WORDS(row->engine, row->number, iron__feed_row_check(&without_key)),
                           "forget a key", err)
                     : IRON_OK;
}

/* Repeated keys. A repeated key with the same tokens gets the first answer again. No hash of the
 * content is stored for that: the body is reduced from the position of the first feed, with the
 * seal that the engine had before it, and must give the same count, xor, sum and seal. Tokens are
 * compared, not bytes, so the dtype may differ. The key is looked up before the position is
 * checked. */

/* Are these the same tokens? Both begin at the same position. */
static bool is_same_content(const iron__feed_row *first, const iron__contribution *fed,
                            const iron__seal *seal) {
    return iron__contributions_equal(fed, &first->fed) &&
           memcmp(seal, &first->after.checkpoint.seal, sizeof *seal) == 0;
}

/* `db` is a connection that the caller may use. IRON_E_FORMAT and IRON_E_IO are the database's. */
static iron_status repeat_begin(repeat *r, iron__store_engine *entry, iron__database *db,
                                const iron__feed_row *first, iron_error *err) {
    uint32_t xors; /* of the one node, which stays as it is */
    float potential;
    iron__store_plan plan = entry->plan;
    iron__feed_row before;
    bool found;

    *r = (repeat){.first = *first};
    r->first.batch_bytes = NULL;
    r->begin.closed.count = first->position;
    if (first->number > 1) { /* the seal before a feed is the one after the feed before it */
        IRON_TRY(iron__feed_by_number(db, entry->id, first->number - 1, &before, &found, err));
        IRON_FAIL_IF(!found || before.after.checkpoint.closed.count != first->position, err,
                     IRON_E_FORMAT,
                     "engine %s: the feed before number %" PRIu64 " is %s; restore a backup",
                     entry->plan.name, first->number, found ? "damaged" : "missing");
        r->begin.seal = before.after.checkpoint.seal;
    }
    plan.nodes = 1;
    IRON_TRY(iron__store_plan_engine(&plan, IRON_PLAN_CPU, &r->engine, err));
    xors = *iron_engine_xor_accumulators(r->engine);
    potential = *iron_engine_potentials(r->engine);
    return iron__engine_restore(r->engine, &r->begin, &xors, &potential, err);
}

static iron_status repeat_end(repeat *r, bool *is_same, iron_error *err) {
    iron__checkpoint end;

    *is_same = false;
    IRON_TRY(iron_engine_end_batch(r->engine, err));
    IRON_TRY(iron__engine_checkpoint(r->engine, &end, err));
    end.closed.count -= r->begin.closed.count; /* sum and xor began at 0 */
    *is_same = is_same_content(&r->first, &end.closed, &end.seal);
    return IRON_OK;
}

static void set_answer(iron__feed *feed, const iron__feed_row *row) {
    feed->after = row->after;
    feed->tokens = row->fed.count;
    feed->batches = row->batches;
}

/* Pending feeds: applied, but not hashed and written yet. */

/* Grows the arrays of all pending feeds, which are empty. */
static iron_status reserve_pending(pending_feeds *p, uint64_t nodes, iron_error *err) {
    if (nodes <= p->room)
        return IRON_OK;
    p->room = 0;
    for (size_t k = 0; k < IRON_NODES_HASH_MAX; k++) {
        free(p->feeds[k].nodes.xors);
        if (!nodes_create(&p->feeds[k].nodes, nodes))
            return iron__no_memory(err, "copies of an engine's nodes");
    }
    p->room = nodes;
    return IRON_OK;
}

/* Keeps a batch of the pending feed `context`, as it closes. */
static void record_pending_batch(void *context, iron__contribution batch) {
    pending_feed *p = context;

    if (IRON_ARRAY_GROW(&p->batches, p->batch_count, &p->batch_room))
        iron__batch_encode(p->batches[p->batch_count++], batch);
    else
        p->is_out_of_memory = true;
}

/* Hashes and writes the pending feeds. A failure is the store's. */
static iron_status pending_feeds_flush(iron__writer *w, iron_error *err) {
    pending_feeds *p = &w->pending;
    iron__hashed_nodes hashes[IRON_NODES_HASH_MAX];

    for (size_t k = 0; k < p->count; k++)
        hashes[k] = (iron__hashed_nodes){p->feeds[k].nodes.xors, p->feeds[k].nodes.potentials, 0};
    iron__nodes_hash_many(hashes, p->count, (uint32_t)p->nodes);
    for (size_t k = 0; k < p->count; k++) {
        p->feeds[k].row.after.state = hashes[k].hash;
        IRON_TRY(insert_feed(w->db, &p->feeds[k].row, err));
        set_answer(p->feeds[k].feed, &p->feeds[k].row);
    }
    /* the newest nodes of each engine are those to be published */
    for (size_t k = 0; k < p->count; k++) {
        iron__store_engine *entry = p->feeds[k].feed->entry;
        bool is_newest = true;

        for (size_t later = k + 1; later < p->count; later++)
            is_newest = is_newest && p->feeds[later].feed->entry != entry;
        if (!is_newest)
            continue;
        nodes_copy(&entry->latest_nodes, p->feeds[k].nodes.xors, p->feeds[k].nodes.potentials,
                   p->nodes);
        entry->latest.state = p->feeds[k].row.after.state;
        entry->has_unpublished = true;
    }
    p->count = 0;
    return IRON_OK;
}

/* Jobs of feeds. */

/* Queues a job, and waits until it is done or refused: then err is filled. */
static iron__feed_outcome
run_feed(iron__feed *feed, iron_status (*run)(iron__writer *w, writer_job *job, iron_error *err),
         iron_error *err) {
    writer_job job = {.run = run, .entry = feed->entry, .feed = feed, .is_growing = true};

    writer_run(feed->entry->store->writer, &job);
    if (job.error.status != IRON_OK && err)
        *err = job.error;
    return job.refused ? job.refused : job.outcome;
}

/* Ends the job with an outcome of its own; the store is fine. */
static iron_status end_job(writer_job *job, iron__feed_outcome outcome) {
    job->outcome = outcome;
    job->feed->position = job->entry->latest.checkpoint.closed.count;
    return IRON_OK;
}

/* The key was used before. */
static iron_status compare_small(iron__writer *w, writer_job *job, const iron__feed_row *first,
                                 iron_error *err) {
    const iron__tokens_view *view = &job->feed->view;
    bool is_same = false;
    repeat r;
    iron_status status = repeat_begin(&r, job->entry, w->db, first, &job->error);

    if (status == IRON_E_FORMAT || status == IRON_E_IO)
        return iron__fail_again(err, &job->error);
    if (status == IRON_OK)
        status = iron_engine_feed_as(r.engine, view->dtype, view->data, view->count, &job->error);
    if (status == IRON_OK)
        status = repeat_end(&r, &is_same, &job->error);
    if (is_same)
        set_answer(job->feed, &r.first);
    iron_engine_destroy(r.engine);
    return end_job(job, status != IRON_OK ? IRON_FEED_FAILED
                        : is_same         ? IRON_FEED_REPEATED
                                          : IRON_FEED_KEY_REUSED);
}

/* Feeds the body to the engine; the batches and the nodes after them go to the pending feed. */
static iron_status apply_small(iron__writer *w, writer_job *job, iron_error *err) {
    iron__store_engine *entry = job->entry;
    const iron__engine_summary before = entry->latest;
    const iron__tokens_view *view = &job->feed->view;
    pending_feeds *p = &w->pending;
    iron__hashed_nodes nodes;
    pending_feed *pending;
    iron__checkpoint after;
    iron_status status;

    /* an engine that is created again needs the feeds that are pending */
    if (!entry->engine || p->count == IRON_NODES_HASH_MAX ||
        (p->count > 0 && p->nodes != entry->plan.nodes))
        IRON_TRY(pending_feeds_flush(w, err));
    if (entry_open(entry, &job->error) != IRON_OK ||
        (p->count == 0 && reserve_pending(p, entry->plan.nodes, &job->error) != IRON_OK))
        return end_job(job, IRON_FEED_FAILED);
    p->nodes = entry->plan.nodes;
    pending = &p->feeds[p->count];
    pending->feed = job->feed;
    pending->batch_count = 0;
    pending->is_out_of_memory = false;
    iron__engine_on_batch(entry->engine, record_pending_batch, pending);
    status = iron_engine_feed_as(entry->engine, view->dtype, view->data, view->count, &job->error);
    if (status == IRON_OK)
        status = iron_engine_end_batch(entry->engine, &job->error);
    iron__engine_on_batch(entry->engine, NULL, NULL);
    if (status == IRON_OK)
        status = iron__engine_checkpoint(entry->engine, &after, &job->error);
    if (status == IRON_OK && pending->is_out_of_memory)
        status = iron__no_memory(&job->error, "the batches of a feed");
    if (status == IRON_OK)
        status = read_nodes(entry->engine, &nodes, &job->error);
    if (status != IRON_OK) {
        entry_drop_engine(entry); /* it may have taken part of the body */
        return end_job(job, IRON_FEED_FAILED);
    }
    nodes_copy(&pending->nodes, nodes.xor_accumulators, nodes.potentials, entry->plan.nodes);
    writer_mark_changed(w, entry);
    pending->row = (iron__feed_row){
        .engine = entry->id,
        .number = before.feeds + 1,
        .position = before.checkpoint.closed.count,
        .first_batch = before.checkpoint.batches,
        .batches = after.batches - before.checkpoint.batches,
        .fed = {view->count, after.closed.sum - before.checkpoint.closed.sum,
                after.closed.xors ^ before.checkpoint.closed.xors},
        .after = {.checkpoint = after, .feeds = before.feeds + 1, .changed_ms = w->group_ms},
        .batch_bytes = (const unsigned char *)pending->batches,
        .batch_bytes_count = pending->batch_count * IRON_BATCH_BYTES,
    };
    memcpy(pending->row.key, job->feed->key, sizeof pending->row.key);
    entry->latest = pending->row.after;
    p->count++;
    return end_job(job, IRON_FEED_DONE);
}

static iron_status run_small(iron__writer *w, writer_job *job, iron_error *err) {
    iron__feed *feed = job->feed;
    iron__store_engine *entry = job->entry;
    iron__feed_row first;
    bool is_known = false;

    if (entry->is_deleting)
        return end_job(job, IRON_FEED_GONE);
    if (feed->key[0]) {
        for (size_t k = 0; k < w->pending.count; k++) /* a pending key is written first */
            if (w->pending.feeds[k].feed->entry == entry &&
                strcmp(w->pending.feeds[k].row.key, feed->key) == 0) {
                IRON_TRY(pending_feeds_flush(w, err));
                break;
            }
        IRON_TRY(find_key(entry, w->db, true, feed->key, &first, &is_known, err));
    }
    if (is_known)
        return compare_small(w, job, &first, err);
    if (feed->request.has_at && feed->request.at != entry->latest.checkpoint.closed.count)
        return end_job(job, IRON_FEED_POSITION);
    if (feed->view.count > 0 || feed->key[0])
        return apply_small(w, job, err);
    IRON_TRY(pending_feeds_flush(w, err)); /* an empty body: the state with pending feeds */
    feed->after = entry->latest;
    return end_job(job, IRON_FEED_DONE);
}

static iron_status run_block(iron__writer *w, writer_job *job, iron_error *err) {
    const upload *u = job->feed->upload;
    uint64_t check = iron__block_check(u->row.upload, u->blocks, u->batches);
    sqlite3_stmt *s = iron__sql_ready(w->db, IRON_SQL_BLOCK_INSERT,
                                      IRON_WORDS(u->row.upload, u->blocks, check), err);

    sqlite3_bind_blob(s, 4, u->batches, (int)IRON_BLOCK_BYTES, SQLITE_STATIC);
    return iron__sql_finish(w->db, s, "write a block", err);
}

static iron_status run_large(iron__writer *w, writer_job *job, iron_error *err) {
    upload *u = job->feed->upload;
    iron__store_engine *entry = job->entry;
    iron__feed_row *row = &u->row, first;
    bool is_known = false;
    iron_error why = {0};

    if (entry->is_deleting)
        return end_job(job, IRON_FEED_GONE);
    IRON_TRY(pending_feeds_flush(w, err));
    if (row->key[0])
        IRON_TRY(find_key(entry, w->db, true, row->key, &first, &is_known, err));
    if (is_known) {
        /* The key was written since the body began. If that feed began where this one did, the two
         * can be compared as they are; else the client tries again, and the key is known. */
        if (first.position != row->position)
            return end_job(job, IRON_FEED_POSITION);
        if (!is_same_content(&first, &row->fed, &row->after.checkpoint.seal))
            return end_job(job, IRON_FEED_KEY_REUSED);
        set_answer(job->feed, &first);
        return end_job(job, IRON_FEED_REPEATED);
    }
    /* positions only grow: at the same position nothing has changed */
    if (entry->latest.checkpoint.closed.count != row->position)
        return end_job(job, IRON_FEED_POSITION);
    row->number = row->after.feeds = entry->latest.feeds + 1;
    row->after.changed_ms = w->group_ms;
    writer_mark_changed(w, entry);
    IRON_TRY(insert_feed(w->db, row, err));
    nodes_copy(&entry->latest_nodes, u->nodes.xor_accumulators, u->nodes.potentials,
               entry->plan.nodes);
    entry->latest = row->after;
    entry->has_unpublished = true;
    entry->incoming_committed += row->fed.count;
    /* the engine moves to where the fork is; if it cannot, it is created again when needed */
    if (entry->engine &&
        iron__engine_restore(entry->engine, &row->after.checkpoint, u->nodes.xor_accumulators,
                             u->nodes.potentials, &why) != IRON_OK)
        entry_drop_engine(entry);
    set_answer(job->feed, row);
    return end_job(job, IRON_FEED_DONE);
}

/* Large bodies. */

static iron__feed_outcome refuse_ragged(uint64_t bytes, const iron__feed *feed, iron_error *err) {
    iron__fail(err, IRON_E_FORMAT, 0,
               "%" PRIu64 " bytes are not a whole number of %s tokens of %zu bytes", bytes,
               iron_dtype_name(feed->request.dtype), feed->width);
    return IRON_FEED_RAGGED;
}

/* The ids of uploads whose blocks must stay, in uploads_max places; 0: a free one. */
static void replace_open_upload(iron__store *store, uint64_t from, uint64_t to) {
    uint32_t place = 0;

    pthread_mutex_lock(&store->lock);
    while (store->open_uploads[place] != from) /* it is there: each upload has one place */
        place++;
    store->open_uploads[place] = to;
    pthread_mutex_unlock(&store->lock);
}

static void upload_free(upload *u, bool is_feed) {
    iron__store_engine *entry;
    iron__store *store;

    if (!u)
        return;
    entry = u->feed->entry;
    store = entry->store;
    if (u->row.upload) {
        replace_open_upload(store, u->row.upload, 0);
        if (!is_feed)
            writer_request_cleanup(store->writer);
    }
    if (u->incoming) { /* they will not become part of the engine */
        atomic_fetch_sub(&entry->incoming, u->incoming);
        notify(entry);
    }
    atomic_fetch_sub(&store->uploads, 1);
    fork_give(entry, u->fork);
    iron_engine_destroy(u->repeat.engine);
    free(u->buffer);
    free(u->batches);
    free(u);
}

/* Writes the collected batches as a block, if there are enough. */
static iron__feed_outcome write_full_block(upload *u, iron_error *err) {
    iron__store *store = u->feed->entry->store;
    iron__feed_outcome outcome;

    if (u->batch_count < IRON_BLOCK_BATCHES)
        return IRON_FEED_DONE;
    if (!u->row.upload) {
        u->row.upload = atomic_fetch_add(&store->next_upload, 1);
        replace_open_upload(store, 0, u->row.upload);
    }
    outcome = run_feed(u->feed, run_block, err);
    if (outcome == IRON_FEED_DONE) {
        u->blocks++;
        u->batch_count = 0;
    }
    return outcome;
}

/* Keeps a batch of the upload `context`, as it closes. */
static void record_upload_batch(void *context, iron__contribution batch) {
    upload *u = context;

    iron__batch_encode(u->batches + u->batch_count++ * IRON_BATCH_BYTES, batch);
    u->row.fed = iron__contribution_merge(u->row.fed, batch);
}

/* The engine checks the values before it takes any of the tokens. A bad one is reported with its
 * position within the body. */
static iron__feed_outcome reduce(const upload *u, iron_engine *engine,
                                 const iron__tokens_view *view, size_t count, iron_error *err) {
    iron_status status = iron_engine_feed_as(engine, view->dtype, view->data, count, err);

    if (status == IRON_OK)
        return IRON_FEED_DONE;
    return status == IRON_E_FORMAT && iron__view_check(view, u->tokens, err) != IRON_OK
               ? IRON_FEED_BAD_TOKEN
               : IRON_FEED_FAILED;
}

/* At most as many tokens at once as close the batches that there is room for. */
static iron__feed_outcome reduce_on_fork(upload *u, iron__tokens_view view, iron_error *err) {
    uint64_t batch = u->feed->entry->plan.batch, fit;
    iron__feed_outcome outcome = IRON_FEED_DONE;

    while (view.count > 0 && outcome == IRON_FEED_DONE) {
        size_t count = view.count;

        if (!__builtin_mul_overflow(batch, IRON_BLOCK_BATCHES - u->batch_count, &fit)) {
            fit -= u->tokens % batch;
            count = fit < count ? (size_t)fit : count;
        }
        outcome = reduce(u, u->fork, &view, count, err);
        if (outcome != IRON_FEED_DONE)
            break;
        u->tokens += count;
        view = iron__view_rest(&view, count);
        outcome = write_full_block(u, err);
    }
    return outcome;
}

/* Reduces the whole tokens in the buffer. */
static iron__feed_outcome reduce_buffer(upload *u, iron_error *err) {
    size_t width = u->feed->width, whole = u->buffered - u->buffered % width;
    iron__tokens_view view = {u->feed->request.dtype, u->buffer, whole / width};
    iron__feed_outcome outcome = IRON_FEED_DONE;

    if (view.count > 0 && u->fork) {
        outcome = reduce_on_fork(u, view, err);
    } else if (view.count > 0) {
        outcome = reduce(u, u->repeat.engine, &view, view.count, err);
        if (outcome == IRON_FEED_DONE && view.count > u->repeat.first.fed.count - u->tokens)
            outcome = IRON_FEED_KEY_REUSED;
        u->tokens += view.count;
    }
    memmove(u->buffer, u->buffer + whole, u->buffered - whole);
    u->buffered -= whole;
    return outcome;
}

static iron__feed_outcome upload_take(upload *u, const unsigned char *bytes, size_t count,
                                      iron_error *err) {
    iron__feed_outcome outcome = IRON_FEED_DONE;

    while (count > 0 && outcome == IRON_FEED_DONE) {
        size_t fit = IRON_UPLOAD_BUFFER_BYTES - u->buffered;

        if (fit > count)
            fit = count;
        memcpy(u->buffer + u->buffered, bytes, fit);
        u->buffered += fit;
        bytes += fit;
        count -= fit;
        if (u->buffered == IRON_UPLOAD_BUFFER_BYTES)
            outcome = reduce_buffer(u, err);
    }
    if (outcome == IRON_FEED_DONE && u->fork) { /* a repeat is part of the engine already */
        iron__store_engine *entry = u->feed->entry;
        uint64_t received = u->tokens + u->buffered / u->feed->width, more = received - u->incoming;

        u->incoming = received;
        atomic_fetch_add_explicit(&entry->incoming, more, memory_order_relaxed);
        if (rate_counter_add(&entry->rate_counter, iron__clock_ns(), more))
            notify(entry);
    }
    return outcome;
}

static iron__feed_outcome upload_prepare(upload *u, iron_error *err) {
    const iron__feed_request *request = &u->feed->request;
    iron__store_engine *entry = u->feed->entry;
    iron__store *store = entry->store;
    iron_status status = IRON_OK;
    bool is_repeat = false;
    iron__feed_row first;

    if (posix_memalign((void **)&u->buffer, IRON_CACHE_LINE, IRON_UPLOAD_BUFFER_BYTES) != 0)
        u->buffer = NULL;
    u->batches = malloc(IRON_BLOCK_BYTES);
    if (!u->buffer || !u->batches) {
        iron__no_memory(err, "buffers for an upload");
        return IRON_FEED_FAILED;
    }
    if (u->feed->key[0]) {
        pthread_mutex_lock(&store->read_lock);
        status = find_key(entry, store->reader, false, u->feed->key, &first, &is_repeat, err);
        if (status == IRON_OK && is_repeat)
            status = repeat_begin(&u->repeat, entry, store->reader, &first, err);
        iron__database_reset(store->reader);
        pthread_mutex_unlock(&store->read_lock);
    }
    if (status != IRON_OK)
        return iron__store_engine_is_deleted(entry) ? IRON_FEED_GONE : IRON_FEED_FAILED;
    if (is_repeat)
        return request->expected_bytes != UINT64_MAX &&
                       request->expected_bytes / u->feed->width != u->repeat.first.fed.count
                   ? IRON_FEED_KEY_REUSED
                   : IRON_FEED_DONE;
    status = fork_take(entry, &u->fork, err);
    if (status != IRON_OK)
        return status == IRON_E_STATE ? IRON_FEED_BUSY : IRON_FEED_FAILED;
    u->row.engine = entry->id;
    u->row.position = u->fork->closed.count;
    u->row.first_batch = u->fork->batches;
    memcpy(u->row.key, u->feed->key, sizeof u->row.key);
    if (request->has_at && request->at != u->row.position)
        return IRON_FEED_POSITION;
    iron__engine_on_batch(u->fork, record_upload_batch, u);
    return IRON_FEED_DONE;
}

/* The body is complete. The upload still has to be freed. */
static iron__feed_outcome upload_end(upload *u, iron_error *err) {
    iron__store_engine *entry = u->feed->entry;
    iron__feed_row *row = &u->row;
    iron__feed_outcome outcome;
    bool is_same;

    if (u->buffered % u->feed->width != 0)
        return refuse_ragged(u->feed->taken, u->feed, err);
    outcome = reduce_buffer(u, err);
    if (outcome != IRON_FEED_DONE)
        return outcome;
    if (!u->fork) {
        if (repeat_end(&u->repeat, &is_same, err) != IRON_OK)
            return IRON_FEED_FAILED;
        if (!is_same)
            return IRON_FEED_KEY_REUSED;
        pthread_mutex_lock(&entry->lock);
        u->feed->position = entry->published.checkpoint.closed.count;
        pthread_mutex_unlock(&entry->lock);
        set_answer(u->feed, &u->repeat.first);
        return IRON_FEED_REPEATED;
    }
    if (iron_engine_end_batch(u->fork, err) != IRON_OK) /* the last, shorter batch */
        return IRON_FEED_FAILED;
    outcome = write_full_block(u, err);
    if (outcome != IRON_FEED_DONE)
        return outcome;
    if (iron__engine_checkpoint(u->fork, &row->after.checkpoint, err) != IRON_OK ||
        read_nodes(u->fork, &u->nodes, err) != IRON_OK)
        return IRON_FEED_FAILED;
    iron__nodes_hash_many(&u->nodes, 1, (uint32_t)entry->plan.nodes);
    row->after.state = u->nodes.hash;
    row->batches = row->after.checkpoint.batches - row->first_batch;
    row->has_blocks = u->blocks > 0;
    row->batch_bytes = u->batches;
    row->batch_bytes_count = u->batch_count * IRON_BATCH_BYTES;
    outcome = run_feed(u->feed, run_large, err);
    if (outcome == IRON_FEED_DONE)
        u->incoming = 0; /* now part of the engine */
    return outcome;
}

/* The calls of store.h. */

static iron__feed_outcome count_outcome(iron__store *store, iron__feed_outcome outcome) {
    atomic_fetch_add_explicit(&store->outcomes[outcome], 1, memory_order_relaxed);
    return outcome;
}

/* Fills err for outcomes that have no message yet. */
static void explain(const iron__feed *feed, iron__feed_outcome outcome, uint64_t position,
                    iron_error *err) {
    const char *name = feed->entry->plan.name;

    if (outcome == IRON_FEED_POSITION)
        iron__fail(err, IRON_E_STATE, 0, "engine %s is at position %" PRIu64, name, position);
    else if (outcome == IRON_FEED_KEY_REUSED)
        iron__fail(err, IRON_E_STATE, 0, "the key was used with other tokens for engine %s", name);
    else if (outcome == IRON_FEED_GONE)
        iron__fail(err, IRON_E_STATE, 0, "engine %s was deleted", name);
}

/* What is certain before the first byte. */
static iron__feed_outcome check_early(const iron__feed *feed, iron_error *err) {
    iron__store *store = feed->entry->store;
    uint64_t expected = feed->request.expected_bytes;

    if (atomic_load(&store->has_failed)) {
        iron__store_failure(store, err);
        return IRON_FEED_READ_ONLY;
    }
    if (atomic_load(&store->is_stopping)) {
        iron__fail(err, IRON_E_STATE, 0, "the store is being closed");
        return IRON_FEED_STOPPING;
    }
    if (iron__store_engine_is_deleted(feed->entry)) {
        explain(feed, IRON_FEED_GONE, 0, err);
        return IRON_FEED_GONE;
    }
    /* for a small body the writer looks for room again */
    if (expected != UINT64_MAX && expected > IRON_SMALL_BODY && !atomic_load(&store->is_cleaning) &&
        iron__store_full(store, err) != IRON_OK)
        return IRON_FEED_FULL;
    if (expected != UINT64_MAX && expected % feed->width != 0)
        return refuse_ragged(expected, feed, err);
    return IRON_FEED_DONE;
}

static iron__feed_outcome become_upload(iron__feed *feed, iron__feed_answer *answer,
                                        iron_error *err) {
    iron__store *store = feed->entry->store;
    iron__feed_outcome outcome;
    upload *u = calloc(1, sizeof *u);

    if (!u) {
        iron__no_memory(err, "an upload");
        return IRON_FEED_FAILED;
    }
    u->feed = feed;
    if (atomic_fetch_add(&store->uploads, 1) >= store->options.uploads_max) {
        iron__fail(err, IRON_E_STATE, 0,
                   "%u large bodies are being received, which is the limit; try again",
                   store->options.uploads_max);
        outcome = IRON_FEED_BUSY;
    } else {
        outcome = upload_prepare(u, err);
    }
    if (outcome == IRON_FEED_POSITION && answer)
        *answer = (iron__feed_answer){.position = u->row.position};
    explain(feed, outcome, u->row.position, err);
    if (outcome == IRON_FEED_DONE)
        feed->upload = u;
    else
        upload_free(u, false);
    if (outcome == IRON_FEED_DONE && feed->held > 0)
        outcome = upload_take(u, feed->body, feed->held, err);
    free(feed->body);
    feed->body = NULL;
    feed->held = feed->room = 0;
    return outcome;
}

iron__feed_outcome iron__feed_begin(iron__store_engine *entry, const iron__feed_request *request,
                                    iron__feed **out, iron__feed_answer *answer, iron_error *err) {
    const char *key = request->key;
    iron__feed_outcome outcome;
    iron__feed *feed = NULL;

    *out = NULL;
    if (iron_dtype_bytes(request->dtype) == 0 ||
        (key && (!key[0] || strlen(key) > IRON_FEED_KEY_MAX)))
        iron__fail(err, IRON_E_ARG, 0, "a feed needs a dtype, and a key has 1 to %u characters",
                   IRON_FEED_KEY_MAX);
    else
        (void)IRON_NEW(&feed, 1, "a feed", err);
    if (!feed)
        return count_outcome(entry->store, IRON_FEED_FAILED);
    feed->entry = iron__store_engine_retain(entry);
    feed->request = *request;
    feed->request.key = NULL; /* the caller's */
    feed->width = iron_dtype_bytes(request->dtype);
    snprintf(feed->key, sizeof feed->key, "%s", key ? key : "");
    atomic_fetch_add(&entry->store->feeds_open, 1);
    outcome = check_early(feed, err);
    if (outcome == IRON_FEED_DONE && request->expected_bytes != UINT64_MAX &&
        request->expected_bytes > IRON_SMALL_BODY)
        outcome = become_upload(feed, answer, err);
    if (outcome == IRON_FEED_DONE) {
        *out = feed;
        return outcome;
    }
    iron__feed_abandon(feed);
    return count_outcome(entry->store, outcome);
}

iron__feed_outcome iron__feed_take(iron__feed *feed, const void *bytes, size_t count,
                                   iron__feed_answer *answer, iron_error *err) {
    uint64_t expected = feed->request.expected_bytes;
    iron__feed_outcome outcome = feed->refused;

    if (outcome != IRON_FEED_DONE)
        return outcome;
    feed->taken += count;
    if (!feed->upload && count <= IRON_SMALL_BODY - feed->held) {
        size_t need = feed->held + count, room = feed->room ? feed->room : BODY_BYTES;
        unsigned char *body = feed->body;

        if (need > feed->room) { /* all at once if the length is known, else by doubling */
            while (room < need)
                room *= 2;
            if (expected <= IRON_SMALL_BODY && expected >= need)
                room = (size_t)expected;
            body = realloc(feed->body, room);
        }
        if (body) {
            feed->body = body;
            feed->room = room;
        }
        if (!body && need > 0) {
            iron__fail(err, IRON_E_NOMEM, 0, "out of memory for a body of %zu bytes", need);
            outcome = IRON_FEED_FAILED;
        } else if (body && count > 0) {
            memcpy(body + feed->held, bytes, count);
            feed->held = need;
        }
    } else {
        if (!feed->upload)
            outcome = become_upload(feed, answer, err);
        if (outcome == IRON_FEED_DONE)
            outcome = upload_take(feed->upload, bytes, count, err);
        if (outcome == IRON_FEED_KEY_REUSED)
            explain(feed, outcome, 0, err);
    }
    feed->refused = outcome;
    return outcome == IRON_FEED_DONE ? outcome : count_outcome(feed->entry->store, outcome);
}

static iron__feed_outcome end_small(iron__feed *feed, iron_error *err) {
    feed->view = (iron__tokens_view){feed->request.dtype, feed->body, feed->held / feed->width};
    if (feed->held % feed->width != 0)
        return refuse_ragged(feed->held, feed, err);
    /* Checked here although the engine checks, too: in the writer a bad token would be found only
     * after the key was looked up. A small body costs nothing. */
    if (iron__view_check(&feed->view, 0, err) != IRON_OK)
        return IRON_FEED_BAD_TOKEN;
    return run_feed(feed, run_small, err);
}

iron__feed_outcome iron__feed_end(iron__feed *feed, iron__feed_answer *answer, iron_error *err) {
    iron__store *store = feed->entry->store;
    const iron__checkpoint *after = &feed->after.checkpoint;
    iron__feed_outcome outcome = feed->refused;

    if (outcome == IRON_FEED_DONE)
        outcome = feed->upload ? upload_end(feed->upload, err) : end_small(feed, err);
    upload_free(feed->upload, outcome == IRON_FEED_DONE);
    feed->upload = NULL;
    *answer = (iron__feed_answer){.position = feed->position};
    if (outcome == IRON_FEED_DONE || outcome == IRON_FEED_REPEATED) {
        answer->tokens = after->closed.count;
        answer->batches = after->batches;
        answer->sum = after->closed.sum;
        answer->state = feed->after.state;
        answer->xors = after->closed.xors;
        answer->fed_tokens = feed->tokens;
        answer->fed_batches = feed->batches;
        iron__seal_text(iron__seal_total(&after->seal), answer->seal);
    } else {
        explain(feed, outcome, feed->position, err);
    }
    if (outcome == IRON_FEED_DONE) {
        atomic_fetch_add_explicit(&store->fed_feeds, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&store->fed_tokens, feed->tokens, memory_order_relaxed);
        atomic_fetch_add_explicit(&store->fed_batches, feed->batches, memory_order_relaxed);
        atomic_fetch_add_explicit(&store->fed_bytes, feed->taken, memory_order_relaxed);
    }
    count_outcome(store, outcome);
    iron__feed_abandon(feed);
    return outcome;
}

void iron__feed_abandon(iron__feed *feed) {
    if (!feed)
        return;
    upload_free(feed->upload, false);
    atomic_fetch_sub(&feed->entry->store->feeds_open, 1);
    iron__store_engine_release(feed->entry);
    free(feed->body);
    free(feed);
}

/* The writer's thread. While no job waits it takes snapshots and removes rows without an owner;
 * under constant load it does so now and then. */

/* The log is copied into the file when it has grown to 16 MiB: rarely enough to cost nothing, and
 * recovery after a crash still reads it in no time. With a small reserve earlier: on a full disk
 * the file grows into the reserve. */
#define FLUSH_FRAMES     4096u
#define FLUSH_FRAMES_MIN 64u

/* Groups between two portions of cleanup under constant load: a few per cent of the time, and
 * deleted data does not stay for as long as the load lasts. */
#define CLEANUP_GROUPS 32u

/* Snapshots are saved states of engines, so that a start replays little. They contain nothing that
 * is not in the feeds: one that cannot be made for lack of memory is made later. */

static bool needs_snapshot(const iron__store_engine *entry, bool is_closing) {
    uint64_t feeds = entry->latest.feeds - entry->snapshot_feeds;
    uint64_t batches = entry->latest.checkpoint.batches - entry->snapshot_batches;
    uint64_t distance = entry->store->options.snapshot_batches;

    if (entry->is_deleting || feeds == 0)
        return false;
    /* a snapshot of many nodes is worth more batches: not more bytes of nodes than of batches */
    if (!distance)
        distance = entry->plan.nodes > SNAPSHOT_BATCHES ? entry->plan.nodes : SNAPSHOT_BATCHES;
    /* feeds without tokens have no batches, but a row that is read at start */
    return is_closing || (feeds > batches ? feeds : batches) >= distance;
}

static iron_status write_snapshot(iron__writer *w, iron__store_engine *entry, iron_error *err) {
    iron__snapshot_row row = {
        .engine = entry->id, .number = entry->latest.feeds, .state = entry->latest.state};
    unsigned char *bytes = NULL;
    iron_status status;
    sqlite3_stmt *s;

    if (iron__store_engine_serialize(entry, &bytes, &row.count, NULL) != IRON_OK)
        return IRON_OK;
    row.bytes = bytes;
    s = iron__sql_ready(w->db, IRON_SQL_SNAPSHOT_INSERT,
                        IRON_WORDS(row.engine, row.number, row.state, iron__snapshot_check(&row)),
                        err);
    sqlite3_bind_blob(s, 5, bytes, (int)row.count, SQLITE_STATIC);
    status = iron__sql_finish(w->db, s, "write a snapshot", err);
    free(bytes);
    if (status == IRON_OK) /* keeps the newest two */
        status = iron__sql_run(w->db, IRON_SQL_SNAPSHOT_PRUNE, IRON_WORDS(row.engine),
                               "remove old snapshots", err);
    entry->snapshot_next = row.number;
    return status;
}

/* Between two groups, when the latest state is the published one; a transaction of its own. */
static iron_status write_snapshots(iron__writer *w, bool is_closing, iron_error *err) {
    size_t count = iron__store_list(w->store, NULL, 0);
    iron__store_engine **all = calloc(count + 1, sizeof(iron__store_engine *));
    iron_status status;

    if (!all)
        return IRON_OK;
    iron__store_list(w->store, all, count); /* only this thread changes the list */
    status = iron__sql_run(w->db, IRON_SQL_BEGIN, IRON_NO_WORDS, "begin a transaction", err);
    for (size_t k = 0; k < count && status == IRON_OK; k++)
        if (needs_snapshot(all[k], is_closing))
            status = write_snapshot(w, all[k], err);
    if (status == IRON_OK)
        status = iron__sql_run(w->db, IRON_SQL_COMMIT, IRON_NO_WORDS, "commit", err);
    for (size_t k = 0; k < count; k++) { /* they are durable, or were rolled back */
        if (status == IRON_OK && all[k]->snapshot_next) {
            all[k]->snapshot_feeds = all[k]->snapshot_next;
            all[k]->snapshot_batches = all[k]->latest.checkpoint.batches;
            atomic_fetch_add(&w->snapshots, 1);
        }
        all[k]->snapshot_next = 0;
        iron__store_engine_release(all[k]);
    }
    free(all);
    return status;
}

/* Cleanup. Rows without an owner are feeds and snapshots of deleted engines, records of deleted
 * runs, and blocks of uploads that never became a feed, or whose feed was removed. Feeds that are
 * no longer kept are removed, too: after the first snapshot that makes them unnecessary for a
 * start. All are removed in small portions, so that deleting an engine costs one row; what is left
 * when the process ends is found again at the next start. One table is cleaned after the other,
 * each by its engines, uploads or runs.
 */

/* Owners looked at in one transaction: others must not wait for long. */
#define CLEANUP_OWNERS 256

typedef struct cleanup_table {
    iron__sql next, owner, remove;
    uint64_t rows; /* in one portion: 50 MB for feeds with very many batches, little for others */
} cleanup_table;

static const cleanup_table cleanup_tables[] = {
    {IRON_SQL_FEEDS_NEXT_ENGINE, IRON_SQL_ENGINE_EXISTS, IRON_SQL_FEEDS_CLEAN, 64},
    {IRON_SQL_SNAPSHOTS_NEXT_ENGINE, IRON_SQL_ENGINE_EXISTS, IRON_SQL_SNAPSHOTS_CLEAN, 1},
    {IRON_SQL_BLOCKS_NEXT_UPLOAD, IRON_SQL_UPLOAD_EXISTS, IRON_SQL_BLOCKS_CLEAN, 8},
    {IRON_SQL_RECORDS_NEXT_RUN, IRON_SQL_RUN_EXISTS, IRON_SQL_RECORDS_CLEAN, 256},
    {IRON_SQL_RANKS_NEXT_RUN, IRON_SQL_RUN_EXISTS, IRON_SQL_RANKS_CLEAN, 1024},
};

#define CLEANUP_TABLES (int)(sizeof cleanup_tables / sizeof cleanup_tables[0])
#define ENGINE_TABLES  3 /* the first ones: the others are there when there was a run */

/* Of feeds that are no longer kept, which a loaded engine must lose as fast as it gets new ones. */
#define TRIMMED_ROWS 1024u

/* Looks at the next owner; is_removed: a portion of its rows was removed. */
static iron_status clean_next(iron__writer *w, bool *is_removed, iron_error *err) {
    writer_cleanup *cleanup = &w->cleanup;
    const iron__store_options *o = &w->store->options;
    const uint64_t until_ms = o->keep_keys_ms ? iron__now_ms() - o->keep_keys_ms : INT64_MAX;
    const cleanup_table *table = &cleanup_tables[cleanup->table];
    uint64_t id = 0, one = 0;
    bool found, is_owned, is_untouched = false;

    IRON_TRY(iron__sql_number(w->db, table->next, IRON_WORDS(cleanup->done), &found, &id,
                              "clean up", err));
    if (!found) {
        cleanup->table++;
        cleanup->done = 0;
        cleanup->is_wanted =
            cleanup->table < (atomic_load(&w->store->has_runs) ? CLEANUP_TABLES : ENGINE_TABLES);
        return IRON_OK;
    }
    IRON_TRY(
        iron__sql_number(w->db, table->owner, IRON_WORDS(id), &is_owned, &one, "clean up", err));
    pthread_mutex_lock(&w->store->lock); /* an open upload may still become a feed */
    for (uint32_t k = 0; table->owner == IRON_SQL_UPLOAD_EXISTS && k < o->uploads_max; k++)
        is_owned = is_owned || w->store->open_uploads[k] == id;
    pthread_mutex_unlock(&w->store->lock);
    if (!is_owned)
        IRON_TRY(iron__sql_run(w->db, table->remove, IRON_WORDS(id, table->rows), "clean up", err));
    else if (table->remove == IRON_SQL_FEEDS_CLEAN && o->keep_batches)
        IRON_TRY(iron__sql_run(w->db, IRON_SQL_FEEDS_TRIM,
                               IRON_WORDS(id, TRIMMED_ROWS, o->keep_batches, until_ms),
                               "remove old feeds", err));
    else
        is_untouched = true;
    *is_removed = !is_untouched && sqlite3_changes(w->db->handle) > 0;
    if (!*is_removed)
        cleanup->done = id;
    return IRON_OK;
}

static uint64_t file_bytes(const iron__store *store, const char *name) {
    struct stat info;

    return fstatat(store->directory_fd, name, &info, 0) == 0 ? (uint64_t)info.st_size : 0;
}

/* A full disk. Free pages inside the database are room, too: new rows use them first. So they stand
 * for up to half of the reserve, and that half is free on the disk then, for the log: what has to
 * be there is the rest of the reserve and some headroom. */

#define ROOM_TICK_NS    UINT64_C(1000000000) /* between two looks for room while nothing happens */
#define ROOM_ASKED_NS   UINT64_C(50000000)   /* and while feeds ask for it */
#define ROOM_PORTIONS   64u                  /* of cleanup that feeds wait for */
#define TRUNCATE_MS     100                  /* that readers may delay the emptying of the log */
#define BUSY_TIMEOUT_MS 10000

static iron_status flush_with_reserve(iron__writer *w, iron_error *err) {
    iron_status status;
    bool is_complete;

    IRON_TRY(iron__marker_release_log(&w->store->marker, err));
    sqlite3_busy_timeout(w->db->handle, TRUNCATE_MS);
    status = iron__database_empty_log(w->db, &w->store->reserve, &is_complete, err);
    if (is_complete)
        w->db->wal_frames = 0;
    sqlite3_busy_timeout(w->db->handle, BUSY_TIMEOUT_MS);
    return status;
}

/* Bytes of free pages, less the pages by which the log will make the file grow. */
static int64_t room_inside(iron__writer *w) {
    uint64_t free_pages = 0, pages = 0;
    bool found;

    if (iron__sql_number(w->db, IRON_SQL_FREE_PAGES, IRON_NO_WORDS, &found, &free_pages,
                         "count free pages", NULL) != IRON_OK ||
        iron__sql_number(w->db, IRON_SQL_PAGES, IRON_NO_WORDS, &found, &pages, "count pages",
                         NULL) != IRON_OK)
        return 0;
    return ((int64_t)free_pages - (int64_t)pages) * IRON_PAGE_BYTES +
           (int64_t)file_bytes(w->store, "iron.db");
}

static void set_full(iron__writer *w, bool is_full) {
    iron_error why = {0};

    atomic_store(&w->store->reserve_held, w->store->reserve.held);
    if (atomic_exchange(&w->store->is_full, is_full) == is_full)
        return;
    if (is_full)
        iron__store_full(w->store, &why);
    iron__store_note(w->store, is_full ? why.text : "there is room again: feeds are accepted");
}

/* Empties the log, takes back the reserve, and decides whether the disk is full. */
static bool find_room(iron__writer *w) {
    iron__reserve *r = &w->store->reserve;
    const int64_t half = (int64_t)(r->wanted / 2);
    int64_t inside;
    uint64_t keep;
    iron_error why = {0};
    bool is_found;

    w->room_ns = iron__clock_ns();
    w->is_cleanup_stuck = false;
    if (flush_with_reserve(w, &why) != IRON_OK && !iron__is_no_space(&why)) {
        iron__store_fail(w->store, &why);
        return false;
    }
    inside = room_inside(w);
    keep = inside < half ? (uint64_t)((int64_t)r->wanted - inside) : r->wanted - (uint64_t)half;
    is_found = iron__reserve_grow(r, keep + iron__reserve_headroom(r));
    iron__reserve_trim(r, is_found && keep < r->wanted ? keep : r->wanted);
    set_full(w, !is_found);
    return is_found;
}

/* Before rows are added: if part of the reserve is missing, free pages must make up for it. */
static bool has_room(iron__writer *w) {
    const iron__reserve *r = &w->store->reserve;

    if (atomic_load(&w->store->is_full))
        return false;
    return r->held >= r->wanted || (int64_t)r->held + room_inside(w) >= (int64_t)r->wanted ||
           find_room(w);
}

/* Groups. */

/* Waits for work and takes up to GROUP_JOBS of the waiting jobs; false when there will be none. */
static bool next_group(iron__writer *w, writer_job **group, uint32_t *count) {
    const iron__reserve *r = &w->store->reserve;
    writer_job **end = &w->first;
    bool has_failed, is_over, is_time = false;

    pthread_mutex_lock(&w->lock);
    while (!is_time) {
        has_failed = atomic_load(&w->store->has_failed);
        if (w->wants_cleanup)
            w->cleanup = (writer_cleanup){.is_wanted = true};
        w->wants_cleanup = false;
        if (w->first || w->is_closing ||
            (!has_failed && (w->wants_snapshots || (w->cleanup.is_wanted && !w->is_cleanup_stuck))))
            break;
        if (!has_failed && (atomic_load(&w->store->is_full) || r->held < r->wanted)) {
            struct timespec deadline = iron__deadline_after(ROOM_TICK_NS);

            is_time = pthread_cond_timedwait(&w->has_work, &w->lock, &deadline) != 0;
        } else {
            pthread_cond_wait(&w->has_work, &w->lock);
        }
    }
    *group = w->first;
    for (*count = 0; *end && *count < GROUP_JOBS; ++*count)
        end = &(*end)->next;
    w->first = *end;
    if (!w->first)
        w->last = &w->first;
    *end = NULL;
    atomic_fetch_sub(&w->queued, *count);
    is_over = w->is_closing && !*group;
    pthread_mutex_unlock(&w->lock);
    return !is_over;
}

/* Everything up to COMMIT. */
static iron_status write_group(iron__writer *w, writer_job *group, iron_error *err) {
    IRON_TRY(iron__sql_run(w->db, IRON_SQL_BEGIN, IRON_NO_WORDS, "begin a transaction", err));
    for (writer_job *job = group; job; job = job->next)
        if (!job->refused)
            IRON_TRY(job->run(w, job, err));
    IRON_TRY(pending_feeds_flush(w, err));
    iron__database_reset(w->db);
    return iron__sql_run(w->db, IRON_SQL_COMMIT, IRON_NO_WORDS, "commit", err);
}

static void roll_back_rows(iron__writer *w) {
    iron__database_reset(w->db);
    if (!sqlite3_get_autocommit(w->db->handle))
        iron__sql_run(w->db, IRON_SQL_ROLLBACK, IRON_NO_WORDS, "roll back", NULL);
    w->pending.count = 0;
}

static void release_changed(iron__writer *w) {
    for (size_t k = 0; k < w->changed_count; k++)
        iron__store_engine_release(w->changed[k]);
    w->changed_count = 0;
}

/* Drops the transaction: engines and jobs are as before it. */
static void roll_back(iron__writer *w, writer_job *group) {
    roll_back_rows(w);
    w->ledger = w->committed;
    for (size_t k = 0; k < w->changed_count; k++) {
        iron__store_engine *entry = w->changed[k];

        if (entry->engine && entry->latest.feeds != entry->published.feeds)
            entry_drop_engine(entry); /* created again from what is published */
        entry->latest = entry->published;
        entry->has_unpublished = entry->is_deleting = false;
        entry->incoming_committed = 0;
    }
    release_changed(w);
    for (writer_job *job = group; job; job = job->next) {
        job->is_done = false;
        if (!job->refused)
            job->error = (iron_error){0};
    }
}

/* Drops the transaction and makes the store read-only. */
static void fail_group(iron__writer *w, const iron_error *why) {
    roll_back_rows(w);
    iron__store_fail(w->store, why);
}

/* Refuses the jobs that are left, or those of them that need room: the disk is full. */
static void refuse_full(iron__writer *w, writer_job *group, bool is_all) {
    for (writer_job *job = group; job; job = job->next)
        if (!job->refused && (is_all || job->is_growing)) {
            job->refused = IRON_FEED_FULL;
            iron__store_full(w->store, &job->error);
        }
}

/* One portion of cleanup, as a transaction of its own. On a full disk it uses the reserve. */
static void clean(iron__writer *w) {
    iron_error why = {0};
    bool is_removed = false;
    iron_status status =
        iron__sql_run(w->db, IRON_SQL_BEGIN, IRON_NO_WORDS, "begin a transaction", &why);

    w->groups_since_cleanup = 0;
    for (int k = 0; status == IRON_OK && k < CLEANUP_OWNERS && w->cleanup.is_wanted && !is_removed;
         k++)
        status = clean_next(w, &is_removed, &why);
    if (status == IRON_OK)
        status = iron__sql_run(w->db, IRON_SQL_COMMIT, IRON_NO_WORDS, "commit", &why);
    if (status == IRON_OK) {
        if (!w->cleanup.is_wanted)
            atomic_store(&w->store->is_cleaning, false);
    } else if (!iron__is_no_space(&why)) {
        fail_group(w, &why);
    } else {
        roll_back_rows(w);
        w->cleanup = (writer_cleanup){.is_wanted = true}; /* from the beginning */
        set_full(w, true);
        w->is_cleanup_stuck = !iron__reserve_give(&w->store->reserve);
    }
}

/* The group as a transaction; false: the store has failed. */
static bool commit_group(iron__writer *w, writer_job *group) {
    bool is_growing = false, is_second = false, is_found = false;

    for (const writer_job *job = group; job; job = job->next)
        is_growing = is_growing || job->is_growing;
    if (is_growing && atomic_load(&w->store->is_full)) {
        /* what deleted engines leave is made free first */
        for (uint32_t k = 0; k < ROOM_PORTIONS && w->cleanup.is_wanted && !w->is_cleanup_stuck &&
                             !is_found && !atomic_load(&w->store->has_failed);
             k++) {
            clean(w);
            is_found = find_room(w);
        }
        if (!is_found && iron__clock_ns() - w->room_ns > ROOM_ASKED_NS)
            find_room(w);
    }
    for (;;) {
        iron_error why = {0};

        if (atomic_load(&w->store->has_failed))
            return false;
        if (is_growing && !has_room(w))
            refuse_full(w, group, false);
        if (write_group(w, group, &why) == IRON_OK)
            return true;
        if (!iron__is_no_space(&why)) {
            fail_group(w, &why);
            return false;
        }
        roll_back(w, group);
        if (!is_second) { /* the log may be what fills the disk */
            is_second = true;
            find_room(w);
            continue;
        }
        set_full(w, true);
        refuse_full(w, group, !iron__reserve_give(&w->store->reserve));
    }
}

static void run_group(iron__writer *w, writer_job *group, uint32_t count) {
    uint64_t began = iron__clock_ns();
    iron_error why = {0};
    bool is_good;

    w->group_ms = iron__now_ms();
    is_good = commit_group(w, group);
    if (is_good) {
        /* The marker says what is acknowledged from now on. The group is durable: if the marker
         * cannot be written, it is the last one. */
        iron_status marked = iron__marker_cover(w->store, (uint64_t)w->db->wal_frames, &why);

        for (size_t k = 0; k < w->changed_count && marked == IRON_OK; k++)
            marked = iron__marker_write(&w->store->marker, w->changed[k], &why);
        if (marked != IRON_OK)
            iron__store_fail(w->store, &why);
        w->committed = w->ledger;
        for (size_t k = 0; k < w->changed_count; k++) {
            entry_publish(w->changed[k]);
            w->wants_snapshots |= needs_snapshot(w->changed[k], false);
        }
        for (writer_job *job = group; job; job = job->next) {
            if (job->is_done && job->entry->is_deleting) {
                iron__store_remove_engine(w->store, job->entry);
                unreserve_engine(w->store, job->entry->plan.nodes);
            } else if (job->is_done) {
                iron__store_add_engine(w->store, iron__store_engine_retain(job->entry));
            }
        }
        atomic_fetch_add(&w->jobs, count);
        atomic_fetch_add(&w->commits, 1);
        atomic_store(&w->last_commit_ms, iron__now_ms());
        iron__latency_count(&w->commit_latency, iron__clock_ns() - began);
    }
    for (writer_job *job = group, *next; job; job = next) {
        next = job->next; /* the job is its caller's again once it is posted */
        if (!is_good) {
            job->refused = IRON_FEED_READ_ONLY;
            iron__store_failure(w->store, &job->error);
        }
        sem_post(&job->done);
    }
    release_changed(w);
}

static void run_snapshots(iron__writer *w, bool is_closing) {
    iron_error why = {0};

    w->wants_snapshots = false;
    if (atomic_load(&w->store->has_failed) || atomic_load(&w->store->is_full))
        return;
    if (write_snapshots(w, is_closing, &why) == IRON_OK) {
        if (w->store->options.keep_batches) /* feeds before a snapshot can be removed */
            w->cleanup = (writer_cleanup){.is_wanted = true};
    } else if (iron__is_no_space(&why)) {
        roll_back_rows(w);
    } else {
        fail_group(w, &why);
    }
}

/* No caller waits for this; but after a failure SQLite's idea of the disk may be wrong. */
static void flush_long_log(iron__writer *w) {
    uint64_t frames = w->store->reserve.wanted / 4 / IRON_PAGE_BYTES;
    iron_error why = {0};

    if (frames == 0 || frames > FLUSH_FRAMES)
        frames = FLUSH_FRAMES;
    if (frames < FLUSH_FRAMES_MIN)
        frames = FLUSH_FRAMES_MIN;
    if (atomic_load(&w->store->has_failed) || (uint64_t)w->db->wal_frames <= frames ||
        iron__database_flush_log(w->db, SQLITE_CHECKPOINT_PASSIVE, NULL, &why) == IRON_OK)
        return;
    if (iron__is_no_space(&why))
        find_room(w);
    else
        iron__store_fail(w->store, &why);
}

static void write_once(iron__writer *w, writer_job *group, uint32_t count) {
    bool is_idle = !group && !w->wants_snapshots;

    if (w->wants_snapshots)
        run_snapshots(w, false);
    if (group)
        run_group(w, group, count);
    if (atomic_load(&w->store->has_failed))
        return;
    if (w->cleanup.is_wanted && !w->is_cleanup_stuck &&
        (is_idle || ++w->groups_since_cleanup > CLEANUP_GROUPS))
        clean(w);
    flush_long_log(w);
    if (is_idle && (!w->cleanup.is_wanted || w->is_cleanup_stuck) &&
        (atomic_load(&w->store->is_full) || w->store->reserve.held < w->store->reserve.wanted))
        find_room(w);
}

static void *write_loop(void *context) {
    iron__writer *w = context;
    iron__store *store = w->store;
    bool is_alone = w->db->is_alone; /* readers use the same connection */
    writer_job *group;
    uint32_t count;

    while (next_group(w, &group, &count)) {
        atomic_store(&w->busy_since_ns, iron__clock_ns());
        if (is_alone)
            pthread_mutex_lock(&store->read_lock);
        write_once(w, group, count);
        if (is_alone)
            pthread_mutex_unlock(&store->read_lock);
        atomic_store(&w->busy_since_ns, 0);
    }
    run_snapshots(w, true);
    return NULL;
}

iron_status iron__writer_start(iron__store *store, const iron__store_ledger *ledger,
                               iron_error *err) {
    iron__writer *w;
    int code;

    IRON_TRY(IRON_NEW(&w, 1, "the writer", err));
    w->store = store;
    w->db = store->db;
    w->ledger = w->committed = *ledger;
    w->last = &w->first;
    w->wants_cleanup = true; /* of what the last process left behind */
    pthread_mutex_init(&w->lock, NULL);
    iron__condition_init(&w->has_work);
    atomic_store(&store->is_cleaning, true);
    store->writer = w;
    if (store->reserve.wanted > 0 && !iron__reserve_grow(&store->reserve, store->reserve.wanted))
        find_room(w);
    atomic_store(&store->reserve_held, store->reserve.held);
    code = pthread_create(&w->thread, NULL, write_loop, w);
    if (code != 0)
        return iron__fail(err, IRON_E_NOMEM, code, "cannot create the writer thread: %s",
                          strerror(code));
    w->has_thread = true;
    return IRON_OK;
}

void iron__writer_stop(iron__writer *w) {
    iron_error why = {0};

    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_closing = true;
    pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    if (!atomic_load(&w->store->has_failed) && w->has_thread &&
        flush_with_reserve(w, &why) != IRON_OK && !iron__is_no_space(&why))
        iron__store_fail(w->store, &why);
    pthread_cond_destroy(&w->has_work);
    pthread_mutex_destroy(&w->lock);
    for (size_t k = 0; k < IRON_NODES_HASH_MAX; k++) {
        free(w->pending.feeds[k].nodes.xors);
        free(w->pending.feeds[k].batches);
    }
    free(w);
}

/* Counters. */

void iron__store_count(iron__store *store, iron__store_counts *counts, iron__store_disk *disk) {
    iron__writer *w = store->writer;
    uint64_t began = atomic_load(&w->busy_since_ns), now = iron__clock_ns();
    struct statvfs info;

    *counts = (iron__store_counts){
        .feeds = atomic_load(&store->fed_feeds),
        .tokens = atomic_load(&store->fed_tokens),
        .bytes = atomic_load(&store->fed_bytes),
        .batches = atomic_load(&store->fed_batches),
        .uploads = atomic_load(&store->uploads),
        .moved = atomic_load(&store->moved),
        .busy_ns = began && now > began ? now - began : 0,
        .commits = atomic_load(&w->commits),
        .jobs = atomic_load(&w->jobs),
        .last_commit_ms = atomic_load(&w->last_commit_ms),
        .snapshots = atomic_load(&w->snapshots),
        .queued = atomic_load(&w->queued),
        .is_full = atomic_load(&store->is_full),
    };
    for (size_t k = 0; k <= IRON_FEED_FAILED; k++)
        counts->refused[k] = k == IRON_FEED_DONE ? 0 : atomic_load(&store->outcomes[k]);
    iron__latency_add(&w->commit_latency, &counts->commit_latency);
    if (!disk)
        return;
    *disk = (iron__store_disk){.database = file_bytes(store, "iron.db"),
                               .log = file_bytes(store, "iron.db-wal"),
                               .reserve = atomic_load(&store->reserve_held)};
    if (fstatvfs(store->directory_fd, &info) == 0) {
        disk->size = (uint64_t)info.f_blocks * info.f_frsize;
        disk->free = (uint64_t)info.f_bavail * info.f_frsize;
    }
}
