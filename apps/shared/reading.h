/* SPDX-License-Identifier: MIT */
/*
 * reading.h: the options of every command that reads tokens: what the files are, and what reads
 * them.
 *
 *     reading r = {0};
 *     const option options[] = {{"vocab", ...}, READING_OPTIONS(r)};
 *     ...
 *     if ((status = reading_check(&r, err)) != IRON_OK || (status = reading_open(&r, ...
 */
#ifndef APPS_SHARED_READING_H
#define APPS_SHARED_READING_H

#include "args.h"

typedef struct reading {
    const char *format, *dtype_name, *backend;
    uint64_t threads, device;
    bool has_threads;
    iron_dtype dtype; /* set by reading_check; IRON_DTYPE_NONE: none was given */
    bool is_for_raw;  /* several streams: --dtype is for files that do not say it themselves */
} reading;

#define READING_OPTIONS(r)                                                                         \
    {"format", OPTION_TEXT, &(r).format, NULL}, {"dtype", OPTION_TEXT, &(r).dtype_name, NULL},     \
        {"backend", OPTION_TEXT, &(r).backend, NULL},                                              \
        {"device", OPTION_NUMBER, &(r).device, NULL}, {                                            \
        "threads", OPTION_NUMBER, &(r).threads, &(r).has_threads                                   \
    }

#define READING_HELP                                                                               \
    "  --dtype D           u8, u16, u32, i32 or i64: raw tokens do not say, other files must\n"    \
    "                      agree; iron sniff FILE guesses\n"                                       \
    "  --format F          raw, llmc, megatron, npy, ds, litpkds, or auto (default): looked for\n" \
    "                      in each file; raw takes every byte for tokens\n"                        \
    "  --threads T         the CPU's threads (default: every CPU this process may use)\n"          \
    "  --backend B         cpu, cuda, opencl, or auto (default)\n"                                 \
    "  --device K          which device of the backend, counted from 0 (default 0)\n"

/* Checks the texts and numbers; what only the library can know is checked there. */
iron_status reading_check(reading *r, iron_error *err);
iron_status reading_open(const reading *r, const char *const *paths, size_t count,
                         iron_source **out, iron_error *err);

/* An output must not replace what it is made of: refuses a path that is an input's. */
iron_status reading_guard(const iron_source *source, const char *option_name, const char *path,
                          iron_error *err);

/* Could a file be written there? A regular one or none yet, in a folder that takes files. */
iron_status reading_target(const char *option_name, const char *path, iron_error *err);

#endif
