/* SPDX-License-Identifier: MIT */
/*
 * iron_arena.h: measuring this machine and testing the library on it.
 *
 * Unlike iron.h this header does not promise a stable ABI: it grows with the arena.
 */
#ifndef IRON_IRON_ARENA_H
#define IRON_IRON_ARENA_H

#include <iron/iron.h>

#ifdef __cplusplus
extern "C" {
#endif

/* GB (10^9 bytes) per second, with one thread and with all. Bytes read and written count. */
typedef struct iron_ceiling {
    double one_thread_gb_s;
    double all_threads_gb_s;
    char shape[112]; /* the fastest way found: "512-bit, prefetch 8 KiB ahead into L2, ..." */
} iron_ceiling;

typedef struct iron_ceilings {
    uint32_t threads;
    uint32_t passes;       /* timed passes behind each figure, at most */
    uint64_t buffer_bytes; /* working set of read and write; copy uses two halves, triad thirds */
    iron_ceiling read, write, copy;
    iron_ceiling triad; /* two arrays are read, one is written */
} iron_ceilings;

typedef struct iron_measure_options {
    uint32_t threads;      /* 0: all; the CPU's ceilings only */
    uint64_t buffer_bytes; /* 0: at least 4 x the last-level cache, at most a quarter of memory */
    iron_progress progress;
    void *context;
} iron_measure_options;

/* Measures the bandwidth of the host's memory: the fastest of several passes in the fastest of many
 * ways. Which these are is saved in the user's cache folder, where races find it. */
IRON_API iron_status iron_measure_ceilings(const iron_measure_options *options, iron_ceilings *out,
                                           iron_error *err);

/* Bandwidth of a device's own memory, and between it and the host's. */
typedef struct iron_device_ceilings {
    uint32_t passes;       /* timed passes behind each median */
    uint64_t buffer_bytes; /* working set of read and write; copy uses two halves */
    double read_gb_s, write_gb_s, copy_gb_s;
    double to_device_pageable_gb_s, to_device_pinned_gb_s, from_device_pinned_gb_s;
    double zero_copy_gb_s; /* kernels reading the host's memory; 0: not supported */
    char read_shape[40];   /* the best shape for reading: "8 x 256 threads a unit, contiguous" */
} iron_device_ceilings;

/* Measures the bandwidths of a device of "cuda" or "opencl": medians, each the best of several
 * ways. Takes seconds. IRON_E_MISMATCH when the device reads other data than was written. */
IRON_API iron_status iron_measure_device(const char *backend, uint32_t device,
                                         const iron_measure_options *options,
                                         iron_device_ceilings *out, iron_error *err);

/* The folder for compiled kernels and calibrations, whether it exists yet or not.
 * IRON_E_UNSUPPORTED if the environment names none. */
IRON_API iron_status iron_cache_folder(char *path, size_t size, iron_error *err);

/* Measures every mode on a GPU over batch sizes and numbers of nodes, and saves the result in the
 * user's cache folder, where mode `auto` finds it. Takes seconds. */
IRON_API iron_status iron_calibrate(const char *backend, uint32_t device, iron_progress progress,
                                    void *context, iron_error *err);

/* Tokens of one's own, for races over them instead of generated ones. */
typedef struct iron_arena_data {
    uint32_t struct_size;  /* sizeof(iron_arena_data) */
    const char *file;      /* where they are from, for reports */
    const char *arguments; /* that give them to the command again: "--data 'a.bin' --dtype u16" */
    const char *dtype;     /* how they are stored: "u8", "u16" or "u32" */
    uint64_t tokens;       /* how many there are */
    /* Reads the first `count`; called once, by iron_arena_open. */
    iron_status (*read)(void *context, uint32_t *tokens, size_t count, iron_error *err);
    void *context;
} iron_arena_data;

/* The arena: races of contenders, each a kernel and a memory strategy, over problems of a size. */
typedef struct iron_arena_options {
    uint32_t struct_size;     /* set by iron_arena_options_init */
    const char *const *globs; /* matched with op.backend.contender; none: everything */
    size_t glob_count;
    const char *sizes; /* "STANDARD", "acc:LARGE,4096x8192", "batch:*", "random:200"; NULL: usual */
    const char *dtype; /* "f32", "f32,f64"; NULL: each op's default */
    /* "data=zipf,uniform", each with another name. Axes that are not named: all of their values, or
     * only one if there are no globs. */
    const char *const *params;
    size_t param_count;
    /* Comma-separated strategies. NULL: all, or pageable for ops whose race is about kernels */
    const char *memory;
    /* Of kernel, transfer, end_to_end; NULL: all, or kernel for those ops. kernel is always
     * timed */
    const char *scopes;
    uint32_t vocab;   /* 0: each op's default */
    uint32_t device;  /* number of the device on each backend */
    int has_device;   /* 0: the first GPU of each */
    uint32_t threads; /* CPU; 0: all */
    uint32_t streams; /* queues of the strategy `streams`; 0: 4 */
    uint64_t seed;    /* of the data and the order */
    double seconds;   /* for all answers and samples of the race; 0: 60 */
    uint32_t runs;    /* 0: by precision and time; else so many samples per scope */
    int is_listing;   /* rows of absent backends are planned too, with the reason */
    iron_progress progress;
    void *context;
    const char *devices; /* NULL: `device`; "all", or numbers: "0,1,3". They race one after another,
                            each on data of its own and against its own ceilings */
    /* Files with contenders (.c .so .cl .cu), which race in processes of their own: `command` is
     * run with the argument arena-contender, and calls iron_arena_contender_main. */
    const char *const *contenders;
    size_t contender_count;
    /* "BLOCK=1,2,4": numbers that they are compiled with, each with another name */
    const char *const *defines;
    size_t define_count;
    const char *command; /* NULL: /proc/self/exe */
    /* NULL, or: ops over tokens race over these, others are passed over. Sizes are counts of the
     * first tokens (NULL: all), histogram races in their dtype, and the vocabulary is that of their
     * ids */
    const iron_arena_data *data;
} iron_arena_options;

IRON_API void iron_arena_options_init(iron_arena_options *options);

typedef struct iron_arena iron_arena;

/* Plans the race: devices are looked for, nothing is measured. IRON_E_ARG with a message for a glob
 * without a match, an unknown size, dtype, parameter or strategy. */
IRON_API iron_status iron_arena_open(const iron_arena_options *options, iron_arena **out,
                                     iron_error *err);
IRON_API void iron_arena_close(iron_arena *arena);

/* One row of the plan. Strings live as long as the arena. */
typedef struct iron_arena_row {
    uint32_t struct_size; /* set by the caller */
    const char *name;     /* "atax.cuda.single-pass" */
    const char *memory, *device, *size, *size_name, *dtype, *idea;
    const char *params; /* the case's values on the op's axes: "data zipf"; "" if it has none */
    int is_peer, is_outside;
    const char *reason; /* why it will be skipped; "" if it will race */
    uint64_t bytes;     /* useful bytes */
} iron_arena_row;

IRON_API size_t iron_arena_count(const iron_arena *arena);
IRON_API iron_status iron_arena_at(const iron_arena *arena, size_t index, iron_arena_row *row,
                                   iron_error *err);
/* Remarks about what is absent: "passed over: " and an op that the sizes or types do not fit,
 * "unavailable: " and a backend without a device or a peer that cannot be loaded; NULL past the
 * last. */
IRON_API const char *iron_arena_remark(const iron_arena *arena, size_t index);

/* Measures the ceilings of all devices that take part, then races. IRON_E_MISMATCH when a contender
 * was wrong: the report is still complete. */
IRON_API iron_status iron_arena_race(iron_arena *arena, iron_error *err);
/* Is there a report? Also after a race that had wrong or failed rows. */
IRON_API int iron_arena_has_raced(const iron_arena *arena);

/* What `command` of the options does: runs a contender for the process that started it. Returns
 * the exit status. */
IRON_API int iron_arena_contender_main(void);
/* A complete contender for "histogram.c", "histogram.cl" or "histogram.cu", to begin with, or with
 * "new-op.c" and so on an op; NULL if there is no such op or ending. To be freed with free(). */
IRON_API char *iron_arena_template(const char *name);

typedef enum iron_report_format {
    IRON_REPORT_TABLE = 0,
    IRON_REPORT_MARKDOWN = 1,
    IRON_REPORT_CSV = 2,
    IRON_REPORT_JSON = 3,
    IRON_REPORT_HTML = 4
} iron_report_format;

/* Writes the report, whole or not at all; "-" is standard output. */
IRON_API iron_status iron_arena_report(const iron_arena *arena, iron_report_format format,
                                       const char *path, iron_error *err);
/* The table, for a terminal of so many columns. */
IRON_API void iron_arena_print(const iron_arena *arena, int is_terminal, int columns);

/* Is this the JSON of an earlier race, as iron_arena_compare needs it? Call it before the race. */
IRON_API iron_status iron_arena_compare_check(const char *path, iron_error *err);
/* Prints a comparison with the JSON of an earlier race, and keeps it for the HTML report.
 * IRON_E_MISMATCH when a row is slower by more than noise and threshold (percent). */
IRON_API iron_status iron_arena_compare(iron_arena *arena, const char *path,
                                        double threshold_percent, iron_error *err);

/* The ops of this build; NULL past the last. */
IRON_API const char *iron_arena_op_at(size_t index);
/* Its named sizes, one line per set: "talk: MINI (32x32) SMALL (500x500) ..." */
IRON_API void iron_arena_sizes(const char *op, char *text, size_t size);

/* Texts about an op, in the order in which they are printed. */
typedef enum iron_note {
    IRON_NOTE_CONTRACT = 0, /* what it computes, in one sentence */
    IRON_NOTE_WHY = 1,      /* what its race shows */
    IRON_NOTE_TRAFFIC = 2,  /* the bytes that its contenders move */
    IRON_NOTE_UNLESS = 3,   /* when the technique does not pay */
    IRON_NOTE_USED = 4,     /* where this library's own kernels use it */
    IRON_NOTE_MEASURED = 5  /* what was measured, where and when */
} iron_note;

/* NULL: there is no such op or text. Paragraphs are separated by an empty line. */
IRON_API const char *iron_arena_note(const char *op, iron_note note);
/* The title of a text: "Bytes moved"; "" for the first two; NULL past the last. */
IRON_API const char *iron_arena_note_title(iron_note note);

/* Writes the registry as one JSON document ("iron.registry/1"), whole or not at all: every op and
 * contender with their texts. "-" is standard output. */
IRON_API iron_status iron_arena_registry(const char *path, iron_error *err);

/* One axis of an op: a parameter that a race goes through. */
typedef struct iron_arena_axis {
    uint32_t struct_size; /* set by the caller */
    const char *name, *about;
    char values[400]; /* that are raced unless others are requested: "uniform, zipf" */
    char takes[400];  /* what may be requested: "uniform or zipf", "numbers from 0 to 1" */
} iron_arena_axis;

/* 0: there is no such op, or it has no more axes. */
IRON_API int iron_arena_axis_at(const char *op, size_t index, iron_arena_axis *axis);

/* One contender of an op, whether this machine can race it or not; peers are not among them. */
typedef struct iron_arena_contender {
    uint32_t struct_size; /* set by the caller */
    const char *name;     /* "single-pass" */
    const char *idea;     /* what it does */
    const char *beats;    /* the contender it improves on; "" */
    char backends[24];    /* "cpu", "cuda, opencl" */
} iron_arena_contender;

/* 0: there is no such op, or it has no more contenders. */
IRON_API int iron_arena_contender_at(const char *op, size_t index, iron_arena_contender *contender);

typedef enum iron_verdict {
    IRON_VERDICT_PASSED = 0,
    IRON_VERDICT_FAILED = 1,
    IRON_VERDICT_SKIPPED = 2
} iron_verdict;

/* One check of a selftest: what was tested, and "" if it passed, else how the result differs, the
 * driver's message, or why the check was skipped. */
typedef void (*iron_selftest_line)(void *context, iron_verdict verdict, const char *what,
                                   const char *text);

typedef struct iron_selftest_options {
    int is_quick;            /* the same with smaller sizes */
    const char *only;        /* NULL, or: only checks whose names contain this */
    iron_selftest_line line; /* may be NULL */
    void *context;
} iron_selftest_options;

typedef struct iron_selftest_result {
    uint64_t passed, failed, skipped;
} iron_selftest_result;

/* Checks golden vectors, and every variant on this machine against the reference: on the CPU,
 * and on every device of every GPU backend in every mode and memory strategy. IRON_E_MISMATCH
 * when something differs. */
IRON_API iron_status iron_selftest(const iron_selftest_options *options,
                                   iron_selftest_result *result, iron_error *err);

#ifdef __cplusplus
}
#endif

#endif
