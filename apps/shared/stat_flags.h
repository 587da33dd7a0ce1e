/* SPDX-License-Identifier: MIT */
/*
 * stat_flags.h: what statistics are asked for, and the way from what was found to what is shown.
 */
#ifndef APPS_SHARED_STAT_FLAGS_H
#define APPS_SHARED_STAT_FLAGS_H

#include "reading.h"
#include "stat_show.h"

#define TOP_DEFAULT 10u

typedef struct stat_flags {
    reading reading;
    uint64_t vocab, eos, top;
    bool has_vocab, has_eos, has_top;
    bool wants_histogram, wants_json;
} stat_flags;

#define STAT_OPTIONS 10u

/* The options that fill `o`, and what they are unless given. */
void stat_option_table(stat_flags *o, option table[STAT_OPTIONS]);

/* Opens the files, if what is asked for can be had. */
iron_status stat_source_open(stat_flags *o, const args *a, iron_source **source, iron_error *err);

/* Options of the whole stream. */
iron_stat_options stat_options_of(const stat_flags *o);

/* Shows `stat`; of f, source, seconds and ranks are filled in. */
iron_status stat_show(const stat_flags *o, const iron_stat *stat, stat_findings *f,
                      iron_error *err);

#endif
