/* SPDX-License-Identifier: MIT */
/*
 * reading.h: commands that read tokens: the options that all of them have (reading.c), and the
 * parts of `feed` (feed.c) and `stat` (token_stats.c) that iron and iron-mpi share.
 */
#ifndef APPS_SHARED_READING_H
#define APPS_SHARED_READING_H

#include "options.h"
#include "output.h"

#include <iron/iron_digest.h>

typedef struct reading {
    const char *format, *column, *dtype_name, *backend, *devices;
    uint32_t threads;
    iron_dtype dtype; /* set by reading_check; IRON_DTYPE_NONE: not given */
    bool is_for_raw;  /* several streams: --dtype applies only to files without a header */
    bool is_recursive, is_strict;
    bool is_quiet;       /* no warnings */
    bool wants_seekable; /* files are read in parts or more than once */
    text_list include, exclude;
} reading;

/* Those that choose and interpret files come first; the others are for commands that compute. */
enum { READING_FORMAT_COUNT = 7, READING_COUNT = 10 };

extern const option reading_options[READING_COUNT];

#define READING_GROUP(type, member)                                                                \
    { "Reading options", reading_options, READING_COUNT, offsetof(type, member) }

/* Checks --dtype; the library checks the format, the backend and the device. */
iron_status reading_check(reading *r, iron_error *err);
iron_status reading_open(const reading *r, const char *const *paths, size_t count,
                         iron_source **out, iron_error *err);
/* The options that check needs for a list of files, or of one stream made of a directory. */
seal_line reading_comment(const reading *r, bool is_stream);
/* The files that a path stands for. */
iron_status reading_list(const reading *r, const char *path, iron_input_files **out,
                         iron_error *err);

/* The library's options for a scan; `p` shows its progress. */
iron_scan_options reading_scan_options(const reading *r, progress *p);

/* Scans a source for its manifest, or for its bag alone: then *manifest stays NULL. */
iron_status reading_scan(iron_source *source, const iron_scan_options *options, bool is_bag_only,
                         iron_manifest **manifest, iron_bag_result *bag, iron_error *err);

/* Warnings about the files that were opened are collected, so that a command prints one line of
 * each kind, however many files it reads. main calls this when a command has ended without an
 * error, and a command that continues after errors calls it before it returns one. Prints the
 * warnings as "name: warning: ..." (name NULL: nothing), forgets them, and returns IRON_E_MISMATCH
 * if there were any and --strict was given, otherwise `status`. */
iron_status reading_finish(const char *name, iron_status status);

/* The file that contains a position, and the offset in it; NULL if the length of a pipe before it
 * is unknown. */
const char *reading_find_file(const iron_source *source, uint64_t position, uint64_t *offset);

/* Warns about tokens that are not below --vocab. IRON_E_MISMATCH under --strict. */
iron_status reading_warn_of_vocab(const reading *r, const char *name, const iron_stat_place *first,
                                  uint64_t count, uint64_t tokens, uint64_t vocab, iron_error *err);

/* Refuses --backend unless it is the CPU; `what` runs there. The other one also checks --device. */
iron_status reading_cpu_backend(const reading *r, const char *what, iron_error *err);
iron_status reading_cpu_only(const reading *r, const char *what, iron_error *err);

/* Refuses an output path that is one of the input files. `path` may be NULL. */
bool is_same_file(const char *a, const char *b);
iron_status reading_guard(const iron_source *source, const char *option_name, const char *path,
                          iron_error *err);
/* Checks that a file can be written there: a regular file or a new one. */
iron_status reading_target(const char *option_name, const char *path, iron_error *err);

/* Bags: what a sample is. */

typedef struct bag_options {
    bool wants_bag;
    uint64_t sample;
    uint32_t eos;
    bool has_sample, has_eos;
} bag_options;

/* The rows of --sample and --eos for a struct with a member `bag`; `when` begins their help. */
#define BAG_CUT_OPTIONS(type, when)                                                                \
    OPTION("sample", OPTION_NUMBER, "LENGTH", type, bag.sample,                                    \
           when "a sample is LENGTH tokens of the stream, across files", .min = 1,                 \
           GIVEN(type, bag.has_sample)),                                                           \
        OPTION("eos", OPTION_NUMBER, "E", type, bag.eos,                                           \
               when "a sample ends with token E, across files; without --sample and --eos it is "  \
                    "a row or document of the file",                                               \
               GIVEN(type, bag.has_eos))

/* Refuses --sample together with --eos, and both without a bag. */
iron_status bag_check(const bag_options *o, iron_error *err);
/* NONE unless a bag is wanted. */
iron_bag_cut bag_cut_of(const bag_options *o);

/* feed: the options, the engine and the input they ask for, and the report. */

typedef struct feed_options {
    reading reading;
    uint64_t vocab, nodes, batch;
    const char *positions, *lattice, *activations, *mode, *memory, *state, *resume;
    bool has_vocab, has_nodes, has_batch;
    bool wants_seal, wants_json;
} feed_options;

enum { FEED_COUNT = 12 };

extern const option feed_table[FEED_COUNT];

#define FEED_GROUPS {NULL, feed_table, FEED_COUNT, 0}, READING_GROUP(feed_options, reading)

/* The configuration that the options describe. */
typedef struct feed_plan {
    iron_config config;
    uint32_t points[LATTICE_ROOM];
    float *activations; /* owned: free() it, also after a failure */
} feed_plan;

iron_status feed_plan_make(feed_options *o, feed_plan *plan, iron_error *err);

/* Creates an engine, or loads the state that --resume names. */
iron_status feed_engine_make(const feed_options *o, feed_plan *plan, iron_engine **e,
                             iron_error *err);

/* Opens the files; refuses a --state that is one of them. */
iron_status feed_source_open(const feed_options *o, const args *a, iron_source **source,
                             iron_error *err);

typedef struct feed_result {
    const iron_engine *engine;
    const iron_source *source;
    iron_report report;
    double seconds, gb_per_s;
    double setup_seconds; /* device, kernels and buffers, before the first token; 0: not shown */
    uint64_t ranks;       /* 0: not an MPI job */
    const uint64_t *rank_devices; /* NULL, or the device number of each rank */
} feed_result;

void feed_print(const feed_result *f, bool as_json);

/* stat: the options and the report. */

typedef struct stat_options {
    reading reading;
    uint64_t vocab, top;
    uint32_t eos;
    bool has_vocab, has_eos, has_top;
    bool wants_histogram, wants_json;
} stat_options;

enum { STAT_COUNT = 5 };

extern const option stat_table[STAT_COUNT];

#define STAT_GROUPS {NULL, stat_table, STAT_COUNT, 0}, READING_GROUP(stat_options, reading)
#define STAT_CPU_ONLY                                                                              \
    "Statistics run on the CPU: --backend accepts only auto and cpu, --device only 0 and all."

/* Checks the options and opens the files. */
iron_status stat_source_open(stat_options *o, const args *a, iron_source **source, iron_error *err);

/* The library's options for the whole stream. */
iron_stat_options stat_scan_options(const stat_options *o);

/* Prints the statistics. `ranks`: 0 unless this is an MPI job. */
iron_status stat_print(const stat_options *o, const iron_stat *stat, const iron_source *source,
                       double seconds, uint64_t ranks, iron_error *err);

#endif
