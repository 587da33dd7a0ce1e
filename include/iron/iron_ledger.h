/* SPDX-License-Identifier: MIT */
/*
 * iron_ledger.h: what a training run really consumed: recorders write ledgers, and ledgers are
 * checked and compared.
 *
 * Each rank of a run writes one ledger: a file to which a record is appended for every step (or
 * micro step), with the seal of its tokens, their bag, and the seal of each sample. Opening an
 * existing ledger again appends a resume mark: steps recorded after it take the place of those with
 * the same or a higher number, which stay in the file as history. docs/ledger.md describes the file
 * and what the findings mean. The rules are those of iron.h; this header may change from version to
 * version.
 *
 *     iron_recorder_options o;
 *     iron_recorder *r = NULL;
 *
 *     iron_recorder_options_init(&o);
 *     o.rank = 3, o.world = 8;
 *     if (iron_recorder_open("run/rank-3.ledger", &o, &r, &err) ||
 *         iron_recorder_begin(r, step, 0, 0, &err) ||
 *         iron_recorder_rows(r, IRON_DTYPE_I64, batch, 16, 2048, &err) ||
 *         iron_recorder_end(r, &err))
 *         ...
 *     iron_recorder_close(r, &err);
 */
#ifndef IRON_IRON_LEDGER_H
#define IRON_IRON_LEDGER_H

#include <iron/iron_digest.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Recording. */

typedef struct iron_recorder_options {
    uint32_t struct_size;
    uint32_t rank, world;        /* 0 of 1 */
    uint32_t is_append;          /* 0: a ledger that exists is refused */
    uint32_t is_without_samples; /* leave out the seal of each sample: 16 bytes less for each */
    uint32_t flush_records;      /* 64: write to the file after so many records, */
    double flush_seconds;        /* 1: or at the first record after so many seconds */
} iron_recorder_options;

#define iron_recorder_options_init(options)                                                        \
    iron_recorder_options_init_sized((options), sizeof(iron_recorder_options))
IRON_API void iron_recorder_options_init_sized(iron_recorder_options *options, size_t struct_size);

typedef struct iron_recorder iron_recorder;

/* Creates a ledger, or with is_append goes on with one: bytes after its last whole record are
 * removed, and a resume mark is written. IRON_E_STATE: another recorder has it open. */
IRON_API iron_status iron_recorder_open(const char *path, const iron_recorder_options *options,
                                        iron_recorder **out, iron_error *err);
/* Begins a record; one that was begun and not ended is dropped. */
IRON_API iron_status iron_recorder_begin(iron_recorder *recorder, uint64_t step, uint32_t micro,
                                         uint32_t epoch, iron_error *err);
/* Adds the rows of a 2-D array in C order: each is a sample. May be called several times. */
IRON_API iron_status iron_recorder_rows(iron_recorder *recorder, iron_dtype dtype,
                                        const void *tokens, size_t rows, size_t length,
                                        iron_error *err);
IRON_API iron_status iron_recorder_end(iron_recorder *recorder, iron_error *err);
/* Hands all ended records to the system: they survive the end of this process. */
IRON_API iron_status iron_recorder_flush(iron_recorder *recorder, iron_error *err);
/* Flushes, marks the ledger as complete, and destroys the recorder whatever this returns. In a
 * process forked from the one that opened it, only destroys its copy. */
IRON_API iron_status iron_recorder_close(iron_recorder *recorder, iron_error *err);

/* Reading: the ledgers of one run. */

typedef struct iron_ledgers iron_ledgers;

/* Files, or folders whose ledgers are read. Damage is IRON_E_FORMAT; a torn end is not damage. */
IRON_API iron_status iron_ledgers_open(const char *const *paths, size_t count, iron_ledgers **out,
                                       iron_error *err);
IRON_API void iron_ledgers_close(iron_ledgers *ledgers);

/* Of the records that count. */
typedef struct iron_ledgers_summary {
    uint32_t struct_size; /* set by the caller */
    uint32_t world;       /* of the newest part of the run */
    uint64_t ledgers, ranks, steps, samples, tokens;
    uint64_t first_step, last_step; /* if steps > 0 */
    uint64_t records, superseded;   /* all records, and those that no longer count */
    uint32_t missing_ranks;         /* of the largest world: without a ledger */
    uint32_t first_missing_rank;
} iron_ledgers_summary;

IRON_API iron_status iron_ledgers_summarize(const iron_ledgers *ledgers,
                                            iron_ledgers_summary *summary, iron_error *err);

/* One file. */
typedef struct iron_ledger_info {
    uint32_t struct_size; /* set by the caller */
    uint32_t rank, world; /* world: of its newest part */
    uint32_t resumes;
    uint32_t is_closed;   /* its recorder ended properly */
    uint32_t has_samples; /* every record has the seal of each sample */
    const char *path;     /* borrowed */
    uint64_t bytes, torn; /* torn: bytes after its last whole record */
    uint64_t records, superseded, samples, tokens;
    uint64_t first_step, last_step; /* of all records; last: of the last one written */
    uint32_t first_epoch, last_epoch;
} iron_ledger_info;

IRON_API iron_status iron_ledgers_at(const iron_ledgers *ledgers, size_t index,
                                     iron_ledger_info *info, iron_error *err);

/* One record that counts, in the order of steps, ranks and micro steps. */
typedef struct iron_ledger_record {
    uint32_t struct_size; /* set by the caller */
    uint32_t rank, micro, epoch;
    uint64_t step, tokens, time_ns; /* time_ns: since 1970 */
    char seal[33];
    iron_bag bag;
} iron_ledger_record;

IRON_API uint64_t iron_ledgers_record_count(const iron_ledgers *ledgers);
IRON_API iron_status iron_ledgers_record(const iron_ledgers *ledgers, uint64_t index,
                                         iron_ledger_record *record, iron_error *err);

/* Checking one run. */

#define IRON_LEDGER_KIND_MAP(X)                                                                    \
    X(REPEATED_SAMPLE, "repeated-sample")                                                          \
    X(REPEATED_STEP, "repeated-step")                                                              \
    X(MISSING_STEP, "missing-step")                                                                \
    X(SAME_ON_RANKS, "same-on-ranks")                                                              \
    X(CONFLICTING_STEP, "conflicting-step")                                                        \
    X(CUT_OFF, "cut-off")

typedef enum iron_ledger_kind {
#define IRON_LEDGER_KIND_ENUM(name, text) IRON_LEDGER_##name,
    IRON_LEDGER_KIND_MAP(IRON_LEDGER_KIND_ENUM)
#undef IRON_LEDGER_KIND_ENUM
        IRON_LEDGER_KINDS
} iron_ledger_kind;

IRON_API const char *iron_ledger_kind_name(iron_ledger_kind kind);

typedef struct iron_ledger_finding {
    iron_ledger_kind kind;
    uint32_t rank, first_rank;
    uint64_t step, first_step;
    uint64_t count; /* of samples; MISSING_STEP: of steps; CUT_OFF: of torn bytes */
} iron_ledger_finding;

/* A sentence without a full stop, such as "step 9 on rank 1 repeats step 4: 8 samples". It tells
 * `steps` findings at once if those at the next steps are alike; `count` is of all. */
#define IRON_LEDGER_SENTENCE 280u
IRON_API void iron_ledger_finding_text(const iron_ledger_finding *finding, uint64_t steps,
                                       uint64_t count, char text[IRON_LEDGER_SENTENCE]);

typedef struct iron_ledger_findings {
    iron_ledger_finding *list; /* sorted by step, rank and kind; the first `limit` of each kind */
    size_t count;
    uint64_t totals[IRON_LEDGER_KINDS];
    uint64_t total;
} iron_ledger_findings;

typedef struct iron_ledger_check_options {
    uint32_t struct_size;
    uint32_t threads; /* 0: every CPU */
    uint64_t memory;  /* 1 GiB: of the tables in which repeated samples are found */
    uint64_t limit;   /* 10,000 findings of each kind are listed */
    iron_progress progress;
    void *context;
} iron_ledger_check_options;

#define iron_ledger_check_options_init(options)                                                    \
    iron_ledger_check_options_init_sized((options), sizeof(iron_ledger_check_options))
IRON_API void iron_ledger_check_options_init_sized(iron_ledger_check_options *options,
                                                   size_t struct_size);

/* To be released by iron_ledger_findings_deinit. */
IRON_API iron_status iron_ledgers_check(const iron_ledgers *ledgers,
                                        const iron_ledger_check_options *options,
                                        iron_ledger_findings *findings, iron_error *err);
IRON_API void iron_ledger_findings_deinit(iron_ledger_findings *findings);

/* Comparing two runs; A is the reference. */

#define IRON_LEDGER_CHANGE_MAP(X)                                                                  \
    X(EQUAL, "equal")                                                                              \
    X(CHANGED, "changed")                                                                          \
    X(REPEATED, "repeated")                                                                        \
    X(SKIPPED, "skipped")                                                                          \
    X(REORDERED, "reordered")                                                                      \
    X(OTHER_RANKS, "other-ranks")                                                                  \
    X(LONGER, "longer")                                                                            \
    X(SHORTER, "shorter")

typedef enum iron_ledger_change {
#define IRON_LEDGER_CHANGE_ENUM(name, text) IRON_LEDGER_##name,
    IRON_LEDGER_CHANGE_MAP(IRON_LEDGER_CHANGE_ENUM)
#undef IRON_LEDGER_CHANGE_ENUM
} iron_ledger_change;

IRON_API const char *iron_ledger_change_name(iron_ledger_change change);

typedef struct iron_ledger_diff {
    uint32_t struct_size; /* set by the caller */
    iron_ledger_change change;
    uint64_t first_step; /* unless EQUAL */
    uint64_t other_step; /* REPEATED, SKIPPED: the step of A that has these tokens */
    uint32_t rank;       /* the first that differs; UINT32_MAX: only whole steps were compared */
    uint32_t has_same_world; /* zero: bags of whole steps were compared */
    uint64_t steps;          /* that both runs have */
    uint64_t steps_a, steps_b;
    char sentence[200];
} iron_ledger_diff;

IRON_API iron_status iron_ledgers_diff(const iron_ledgers *a, const iron_ledgers *b,
                                       iron_ledger_diff *result, iron_error *err);

/* Tracing samples to a dataset. */

#define IRON_LEDGER_SEEN 16u

typedef struct iron_ledger_trace iron_ledger_trace;

typedef struct iron_ledger_trace_options {
    uint32_t struct_size;
    uint32_t threads; /* 0: every CPU */
    uint64_t memory;  /* 1 GiB: of the tables in which samples are found */
    iron_bag_cut cut; /* how the loader cuts samples: SAMPLE, or FORMAT, ROWS or DOCUMENTS */
    iron_progress progress;
    void *context;
} iron_ledger_trace_options;

#define iron_ledger_trace_options_init(options)                                                    \
    iron_ledger_trace_options_init_sized((options), sizeof(iron_ledger_trace_options))
IRON_API void iron_ledger_trace_options_init_sized(iron_ledger_trace_options *options,
                                                   size_t struct_size);

typedef struct iron_ledger_trace_summary {
    uint32_t struct_size; /* set by the caller */
    uint32_t first_unknown_rank;
    uint64_t first_unknown_step;
    iron_bag_cut cut;
    uint64_t dataset_samples, dataset_tokens;
    uint64_t copies;           /* samples of the dataset that are equal to an earlier one */
    uint64_t samples, unknown; /* recorded; unknown: of them, not in the dataset */
    uint64_t
        seen[IRON_LEDGER_SEEN]; /* samples seen 0, 1, 2, ... times; the last: so often or more */
} iron_ledger_trace_summary;

/* Reads the dataset once, and keeps 20 bytes for each of its samples and 8 for each recorded one in
 * temporary files (TMPDIR). */
IRON_API iron_status iron_ledgers_trace(const iron_ledgers *ledgers, iron_source *dataset,
                                        const iron_ledger_trace_options *options,
                                        iron_ledger_trace **out, iron_error *err);
IRON_API void iron_ledger_trace_destroy(iron_ledger_trace *trace);
IRON_API iron_status iron_ledger_trace_summarize(const iron_ledger_trace *trace,
                                                 iron_ledger_trace_summary *summary,
                                                 iron_error *err);
/* How often each sample of the dataset was seen. */
IRON_API const uint32_t *iron_ledger_trace_seen(const iron_ledger_trace *trace);
/* Which sample of the dataset each recorded one is, UINT64_MAX: none; in the order of the records
 * that count. */
IRON_API const uint64_t *iron_ledger_trace_places(const iron_ledger_trace *trace);

#ifdef __cplusplus
}
#endif

#endif
