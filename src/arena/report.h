/* SPDX-License-Identifier: MIT */
/*
 * report.h: what a race came to, once, for all who print it: table, markdown, CSV, JSON, HTML,
 * comparison. Printers only format: no figure is computed twice.
 */
#ifndef IRON_ARENA_REPORT_H
#define IRON_ARENA_REPORT_H

#include "arena/kernels.h"
#include "arena/params.h"
#include "arena/race.h"

#include <stdio.h>

/* One scope of a row, or a ceiling. Times in ms. */
typedef struct iron__report_scope {
    bool is_there;
    iron__statistics warm, cold;                 /* cold.count is 0 where there are no cold turns */
    double gb_s;                                 /* useful bytes by the median */
    double cold_gb_s;                            /* 0: none */
    double percent_of_ceiling;                   /* 0: no ceiling was measured */
    double speedup;                              /* over the baseline's same scope; 0: unknown */
    const iron__samples *samples, *cold_samples; /* borrowed from the racer; cold: NULL if none */
} iron__report_scope;

typedef struct iron__report_row {
    char op[24], contender[48], backend[12], memory[16], device[96], size[40], dtype[8];
    char size_name[40];           /* "talk:STANDARD"; "" */
    uint32_t vocab;               /* params: 0 where an op has none */
    uint32_t nodes;               /* likewise */
    uint32_t streams;             /* memory `streams`: how many queues; else 0 */
    uint32_t threads;             /* CPU: how many; else 0 */
    iron__params params;          /* the case's */
    const iron__kernels *kernels; /* what it launched, borrowed; NULL: nothing that was seen */
    const char *idea;             /* borrowed from the contender or peer */
    bool is_peer, is_cache_resident, is_verified;
    uint64_t useful_bytes;
    double operations, passes; /* for the roofline: arithmetic, and times the big input is read */
    iron__row_status status;
    char reason[240];
    char baseline[48]; /* "naive": whose times speedup refers to; "" if there is none */
    double speedup;    /* kernel scope; 0: unknown */
    uint32_t rank;     /* among the ok rows of its group, by the kernel's median; 0: not ranked */
    iron__report_scope scopes[IRON_SCOPES];
} iron__report_row;

/* One measured limit of one device: "read", "write", "copy", "to_device_pageable",
 * "to_device_pinned", "from_device_pinned", "zero_copy". The best way found is told in `shape`. */
typedef struct iron__report_ceiling {
    char backend[12], device[96], name[24], shape[48];
    uint64_t bytes; /* moved by a pass: copy counts both ways */
    iron__report_scope figures;
} iron__report_ceiling;

typedef struct iron__report_device {
    char backend[12], name[96], driver[96];
    uint32_t index, units;
    uint64_t memory_bytes, cache_bytes;
    bool is_there;
    char reason[240]; /* why it is not raced; "" */
    /* Clocks seen during the race, MHz; 0: unknown. */
    uint32_t clock_min, clock_max, memory_clock;
    char throttle[96]; /* reasons seen, "" for none */
} iron__report_device;

typedef struct iron__report_host {
    char name[64], cpu[96], features[48], kernel[96], compiler[96], flags[96], commit[48], date[32];
    uint32_t threads;
    uint64_t memory_bytes, cache_bytes;
} iron__report_host;

#define IRON_REPORT_OPS 64u

typedef struct iron__report {
    iron__report_host host;
    char version[24]; /* iron's */
    iron__report_device *devices;
    size_t device_count;
    iron__report_ceiling *ceilings;
    size_t ceiling_count;
    /* In groups of one op, size, dtype and params: ranked rows first, then the others. */
    iron__report_row *rows;
    size_t row_count;
    const iron__op *ops[IRON_REPORT_OPS]; /* those raced, for what there is to say of them */
    size_t op_count;
    double seconds;    /* that the race took */
    char command[512]; /* how to run it again */
} iron__report;

/* Each writes all of it; errors are those of the stream, which the caller checks. Colour and bars
 * only if is_terminal; width is the terminal's columns. */
void iron__report_table(const iron__report *report, FILE *to, bool is_terminal, int width);
void iron__report_markdown(const iron__report *report, FILE *to);
void iron__report_csv(const iron__report *report, FILE *to);
void iron__report_json(const iron__report *report, FILE *to);
void iron__report_html(const iron__report *report, FILE *to);

#endif
