/* SPDX-License-Identifier: MIT */
/*
 * check_show.h: what check says of each file, as sha256sum -c does or as JSON, and what all of it
 * comes to.
 */
#ifndef APPS_IRON_CHECK_SHOW_H
#define APPS_IRON_CHECK_SHOW_H

#include "args.h"
#include "json.h"

#include <iron/iron_digest.h>

typedef struct check_tally {
    bool is_json, is_quiet, is_silent, takes_missing; /* as asked for */
    bool has_begun;
    json j;
    size_t right, failed, missing, unread, unchecked, partly, bad_lines;
    iron_status worst; /* of what kept a file from being read at all: usage, memory, a device */
} check_tally;

/* Counts a file and shows it. `status` is of one that could not be read, else IRON_OK. */
void check_show(check_tally *tally, const iron_check_file *file, iron_status status);

/* Ends the document, and says in one line what was amiss: IRON_E_MISMATCH. */
iron_status check_conclude(check_tally *tally, const char *list, iron_error *err);

#endif
