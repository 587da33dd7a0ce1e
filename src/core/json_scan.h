/* SPDX-License-Identifier: MIT */
/* json_scan.h: what json_read.c and json_scan.c share: the reader's place, and its words. */
#ifndef IRON_CORE_JSON_SCAN_H
#define IRON_CORE_JSON_SCAN_H

#include "core/json_read.h"

typedef struct iron__json_reader {
    const char *start, *at, *end;
    uint32_t depth;
    iron__json *settled, *waiting; /* see json_read.c */
    char *strings;                 /* where the next one goes */
} iron__json_reader;

/* IRON_E_FORMAT with the line and column of r->at. */
iron_status iron__json_refuse(const iron__json_reader *r, iron_error *err, const char *why);
void iron__json_skip_blanks(iron__json_reader *r);

/* From the opening quote to past the closing one. */
iron_status iron__json_read_string(iron__json_reader *r, iron__json *out, iron_error *err);
/* Also what tells that there is no value at all. */
iron_status iron__json_read_number(iron__json_reader *r, iron__json *out, iron_error *err);

#endif
