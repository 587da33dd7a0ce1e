/* SPDX-License-Identifier: MIT */
/*
 * engine.h: the engine's internals.
 *
 * An engine holds the nodes and totals of its closed batches and the contribution of the open one.
 * A backend reduces tokens to contributions and applies closed batches to the nodes: the CPU in
 * this process, the GPU on a device. The nodes in the struct may lag behind the backend;
 * iron__engine_sync brings them up to date, and everything that reads nodes calls it first.
 *
 *   engine.c       configuration, create and destroy, report
 *   engine_feed.c  tokens from memory, files and device pointers, checked and handed to the
 *                  backend; several GPUs feed one engine, each a range of batches
 *   backend_cpu.c  reduction on the CPU's threads, the seal, the queue of closed batches
 *   backend_gpu.c  the same on a GPU, through feed/gpu_feed.h
 *   modes.c        chooses backend and mode, lists them, and measures the modes of a GPU
 *   effect.c       what a range of batches does to any lattice, for streams split over processes
 *   state.c        saved states: write, read, export; checkpoints, forks and replay, for the store
 *                  (checkpoint.h)
 */
#ifndef IRON_ENGINE_ENGINE_H
#define IRON_ENGINE_ENGINE_H

#include "core/nodes.h"
#include "core/seal.h"
#include "core/thread_pool.h"
#include "feed/gpu_feed.h"
#include "feed/ring.h"
#include "formats/dtype.h"
#include "formats/source.h"
#include "ops/tokens/tokens.h"

#include <pthread.h>
#include <stdbool.h>

#define IRON_NODES_MAX       (UINT64_C(1) << 20)
#define IRON_VOCAB_MAX       (UINT64_C(1) << 31)
#define IRON_BATCH_VOCAB_MAX (UINT64_C(1) << 62)

/* Batches that are applied to the nodes together: enough to make the O(nodes) part rare. */
#define IRON_QUEUE_BATCHES 1024u

/* The registry row that backend and mode stand for. */
typedef struct iron__mode_choice {
    const iron__tokens_variant *variant; /* NULL on a GPU */
    const iron__tokens_gpu_row *gpu_row; /* NULL on the CPU */
    iron__gpu_devices devices;
    char reason[160];
} iron__mode_choice;

/* The batches since iron_engine_begin_at (effect.c). */
typedef struct iron__range {
    bool is_begun;
    uint64_t origin;               /* position of the first token; closed.count includes it */
    uint8_t map[IRON_LATTICE_MAX]; /* where the batches move each point, if sees_batches */
    iron_batch_effect *record;     /* the caller's array, or NULL: batches go to the nodes */
    size_t capacity, recorded;
} iron__range;

/* Where in a source the engine is. Part of states that are saved in the middle of a feed. */
typedef struct iron__feed_mark {
    uint64_t first;  /* tokens that the engine had when the source began */
    uint64_t tokens; /* of the whole source; 0: no mark */
    uint64_t sample; /* iron__source_sample of all files */
    uint64_t done;   /* tokens of the source that the engine had when it was loaded */
} iron__feed_mark;

/* Tokens that are not below the vocabulary (iron_engine_count_out_of_vocab). */
typedef struct iron__vocab_count {
    bool is_on;
    pthread_mutex_t mutex;   /* of what was found, while threads count */
    iron__token_stats found; /* without minimum and maximum */
} iron__vocab_count;

/* Called with each batch that closes while feeding (iron__engine_on_batch). */
typedef void (*iron__batch_callback)(void *context, iron__contribution batch);

typedef struct iron__cpu_state iron__cpu_state; /* private to backend_cpu.c */

/* An engine on another device, which records the batches of a range. */
typedef struct iron__member {
    iron_engine *engine;
    iron_batch_effect *record; /* room for `capacity` batches */
    size_t capacity;
    iron_effect effect; /* of the range that was fed last */
} iron__member;

typedef struct iron__members {
    size_t count;        /* of devices, with the engine's own */
    iron__member each[]; /* each[0] stands for the engine itself and is not used */
} iron__members;

/* Tokens of regular files that are to be fed, wherever they are. */
typedef struct iron__file_tokens {
    const iron_source *source;
    iron__parallel_source *files; /* the source, from `begin` on */
    uint64_t begin;
    uint64_t first, count; /* the next token, counted from `begin`, and how many follow */
    /* Called now and then by the caller's thread with how many were taken; an error ends it. */
    iron_status (*progress)(void *context, uint64_t taken, iron_error *err);
    void *context;
} iron__file_tokens;

/* What an engine asks of its backend. Entries marked optional may be NULL. */
typedef struct iron__engine_backend {
    /* Closed batches pass through the host one by one, so they can be recorded and composed into
     * range.map. A GPU returns only totals and nodes, or else records batches. */
    bool sees_batches;
    /* feed counts tokens outside the vocabulary, where they are in the cache; else the caller. */
    bool counts_vocab;

    /* Also sets config.backend, .mode and .memory and the device's name. */
    iron_status (*create)(iron_engine *engine, iron_error *err);
    void (*destroy)(iron_engine *engine); /* also after create failed or was never called */

    /* Takes tokens that are already checked and closes the batches they fill. Calls on_batch for
     * each closed batch in order, or not at all if the call fails. */
    iron_status (*feed)(iron_engine *engine, const iron__tokens_view *view, iron_error *err);
    /* Closes the open batch; does nothing if it is empty. */
    iron_status (*end_batch)(iron_engine *engine, iron_error *err);
    /* Optional: takes the next of these tokens, at least one, and checks them; *taken: how many.
     * Default: files are read into memory and passed to feed. */
    iron_status (*feed_files)(iron_engine *engine, const iron__file_tokens *tokens, size_t *taken,
                              iron_error *err);
    /* Brings nodes, closed and seal up to date with everything fed. */
    iron_status (*sync)(iron_engine *engine, iron_error *err);
    /* Goes on from nodes, closed, batches and seal as the caller has set them. */
    iron_status (*restart)(iron_engine *engine, iron_error *err);
    double (*seconds_estimate)(const iron_engine *engine, uint64_t tokens);
    /* Optional, unless it sees batches: from now on batches go to range.record, at the latest when
     * sync is called, and not to the nodes. */
    iron_status (*record)(iron_engine *engine, iron_error *err);

    /* Optional: tokens in device memory. Default: IRON_E_UNSUPPORTED. */
    iron_status (*feed_device)(iron_engine *engine, const void *tokens, uint64_t count,
                               void *stream, iron_error *err);

    /* Of a GPU whose feed has slots: page-locked memory that a reader fills and the device reads
     * from. Otherwise files are read into ordinary memory and passed to feed. */
    iron_status (*get_slots)(iron_engine *engine, void *slots[IRON_FEED_SLOTS_MAX],
                             iron_error *err);
    /* *released: how many slots, oldest first, may be filled again. */
    iron_status (*feed_slot)(iron_engine *engine, size_t slot, const iron__tokens_view *view,
                             size_t *released, iron_error *err);
} iron__engine_backend;

extern const iron__engine_backend iron__engine_cpu, iron__engine_gpu;

struct iron_engine {
    iron_config config; /* as it is in force; its pointers point into this engine */
    const iron_allocator *allocator;
    const iron__engine_backend *backend;
    iron_lattice *lattice;
    iron__mode_choice choice;
    char device[96];
    char devices[IRON_GPU_DEVICES_TEXT]; /* their numbers */
    iron__thread_pool *pool;

    iron__nodes nodes;         /* current after iron__engine_sync */
    iron__contribution open;   /* of the batch that is not closed yet; on a GPU only its count */
    iron__contribution closed; /* of all closed batches, merged */
    uint64_t batches;
    iron__seal seal;
    iron__range range;
    iron__vocab_count outside;
    iron__feed_mark mark; /* of the state that the engine was loaded from */

    iron__batch_callback on_batch; /* NULL: none */
    void *on_batch_context;

    iron__cpu_state *cpu;   /* of the CPU backend, else NULL */
    iron__gpu_feed *gpu;    /* of the GPU backend, else NULL */
    bool is_synced;         /* GPU: nodes, closed and seal are those of the device */
    iron_error error;       /* of the device's last call that failed */
    iron_error failure;     /* of the first; every later call returns it again */
    iron__members *members; /* engines on the other devices, where there are several; else NULL */
    uint32_t sharers;       /* how many engines share the machine's processors and the work */
};

/* engine.c */
iron_status iron__config_check(const iron_config *config, iron_error *err);
/* Returns the device's failure, if there was one. */
iron_status iron__engine_check_failure(const iron_engine *engine, iron_error *err);
/* Brings the nodes, totals and seal of the struct up to date. */
iron_status iron__engine_sync(iron_engine *engine, iron_error *err);
/* Fails unless every batch is closed; complete: and the engine was fed from position 0 on. */
iron_status iron__engine_check_closed(const iron_engine *engine, iron_error *err);
iron_status iron__engine_check_complete(const iron_engine *engine, iron_error *err);
/* Applies batches in order to the nodes of the struct and to range.map. */
void iron__engine_apply_effects(iron_engine *engine, const iron_batch_effect *effects,
                                size_t count);

/* engine_feed.c: counts tokens outside the vocabulary; from any thread. The first of these tokens,
 * which are valid, has this position. */
void iron__engine_count_vocab(iron_engine *engine, const iron__tokens_view *view,
                              uint64_t position);

/* effect.c: iron_engine_begin_at for an engine that will record. */
iron_status iron__engine_begin_recording(iron_engine *engine, uint64_t position,
                                         iron_batch_effect *room, size_t capacity, iron_error *err);

/* engine.c: creates one of several engines that share the machine and their work. */
iron_status iron__engine_create_sharing(const iron_config *config, uint32_t sharers,
                                        iron_engine **out, iron_error *err);

/* engine_feed.c: opens the engine's other devices; destroy closes them. */
iron_status iron__members_create(iron_engine *engine, iron_error *err);
void iron__members_destroy(iron_engine *engine);

/* modes.c: finds the row for backend and mode. */
iron_status iron__mode_choose(const iron_config *config, iron__mode_choice *choice,
                              iron_error *err);

static inline iron_batch_effect iron__batch_effect_of(const iron_engine *engine,
                                                      iron__contribution batch) {
    return (iron_batch_effect){batch.xors,
                               iron__contribution_potential(batch, (uint32_t)engine->config.vocab)};
}

/* How many batches close when so many more tokens are fed. */
static inline uint64_t iron__engine_closing(const iron_engine *engine, uint64_t tokens) {
    uint64_t batch = engine->config.batch;

    return tokens / batch + (engine->open.count + tokens % batch) / batch;
}

#endif
