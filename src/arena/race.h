/* SPDX-License-Identifier: MIT */
/*
 * race.h: the race itself: entrants take turns, are verified before and after, and leave samples.
 *
 * It knows nothing of ops, devices or memory: an entrant is something that can be timed in some
 * scopes and that gives an answer which can be judged. The rules:
 *
 *   1. Every scope of every entrant is verified before its first sample and after its last, with
 *      the output poisoned before. One that is wrong, fails, or answers otherwise the second time
 *      is out: its samples are thrown away.
 *   2. Turns go round: in each round every entrant that still needs samples gets one a scope, in an
 *      order drawn anew, so that drift and neighbours hit all.
 *   3. A turn is warm (an untimed pass right before the timed ones) or cold (caches are emptied
 *      before).
 *   4. Sampling of a scope ends when the median's 95 % interval is within the precision asked for,
 *      when its share of the time is spent, or after a fixed number of runs; it is kept which.
 *   5. Samples of a round in which the machine was throttled are dropped and taken again, while
 *      time lasts.
 */
#ifndef IRON_ARENA_RACE_H
#define IRON_ARENA_RACE_H

#include "arena/stats.h"

#include <iron/iron_arena.h>

#include <stdint.h>

typedef enum iron__scope {
    IRON_SCOPE_PREPARE,    /* once: allocation, pinning, a transposed copy */
    IRON_SCOPE_KERNEL,     /* the computation, data in place */
    IRON_SCOPE_TRANSFER,   /* inputs to the device and the answer back, no computation */
    IRON_SCOPE_END_TO_END, /* from inputs in the host's memory to the answer there */
    IRON_SCOPES
} iron__scope;

/* "prepare", "kernel", "transfer", "end_to_end" */
const char *iron__scope_name(iron__scope scope);

typedef struct iron__entrant iron__entrant;

typedef struct iron__entrant_ops {
    /* `passes` passes of the scope in a row; *ms is the mean time of one. Cold: caches are emptied
     * first, and passes is 1. */
    iron_status (*time)(iron__entrant *e, iron__scope scope, bool is_cold, uint32_t passes,
                        double *ms, iron_error *err);
    /* Poisons the output (all bytes 0xFF: NaN), runs one pass of the scope, kernel or end_to_end,
     * and brings the answer to `output`, which is poisoned too. */
    iron_status (*answer)(iron__entrant *e, iron__scope scope, void *output, iron_error *err);
    void (*close)(iron__entrant *e);
} iron__entrant_ops;

/* What every entrant begins with. */
struct iron__entrant {
    const iron__entrant_ops *ops;
    uint32_t scopes;   /* 1 << IRON_SCOPE_...: those it can be timed in besides prepare */
    bool has_cold;     /* cold turns of the kernel scope make sense */
    double prepare_ms; /* what making it took; 0: nothing to prepare */
};

typedef enum iron__row_status {
    IRON_ROW_OK,
    IRON_ROW_WRONG,
    IRON_ROW_SKIPPED,
    IRON_ROW_FAILED
} iron__row_status;

/* "ok", "wrong", "skipped", "failed" */
const char *iron__row_status_name(iron__row_status status);

typedef enum iron__stop {
    IRON_STOP_NONE,      /* never sampled */
    IRON_STOP_PRECISION, /* the interval is narrow enough */
    IRON_STOP_TIME,      /* the time is spent */
    IRON_STOP_RUNS       /* the number of runs asked for */
} iron__stop;

/* "", "precision", "time", "runs" */
const char *iron__stop_name(iron__stop stop);

typedef struct iron__samples {
    double *ms; /* owned */
    uint32_t count, room;
    uint32_t dropped; /* taken while the machine was throttled */
    uint32_t passes;  /* in a row behind each */
    iron__stop stop;
} iron__samples;

/* Judges an answer; text says where it differs first. */
typedef bool (*iron__judge)(const void *context, const void *output, char *text, size_t size);

/* One row of the race. The caller fills the first part; the rest is the race's. */
typedef struct iron__racer {
    iron__entrant
        *entrant; /* owned by the caller; NULL: does not race (status and reason say why) */
    size_t output_bytes;
    iron__judge judge; /* NULL: nothing to judge (ceilings) */
    const void *judge_context;

    iron__row_status status;
    char reason[240];
    bool is_verified; /* before and after, in all scopes */
    iron__samples warm[IRON_SCOPES];
    iron__samples cold; /* of the kernel scope */
} iron__racer;

typedef struct iron__race_rules {
    double seconds;   /* for all turns of all racers */
    double *spent;    /* NULL, or: the seconds that turns took are added to it */
    uint32_t runs;    /* 0: by precision and time; else exactly so many samples a scope */
    double precision; /* 0.01: the interval within 1 % of the median */
    uint64_t seed;    /* of the order of turns */
    bool (*is_throttled)(void *context); /* NULL: nobody looks. Asked before and after each round */
    iron_progress progress;              /* NULL, or: done and total in thousandths */
    void *context;                       /* of both */
} iron__race_rules;

/* IRON_OK also when racers were wrong or failed: their rows say so. IRON_E_CANCELLED when progress
 * says stop, IRON_E_NOMEM. */
iron_status iron__race_run(iron__racer *racers, size_t count, const iron__race_rules *rules,
                           iron_error *err);

/* Frees the samples, not the entrants. */
void iron__racers_deinit(iron__racer *racers, size_t count);

#endif
