/* SPDX-License-Identifier: MIT */
/*
 * problem.c: the rows of problem.h as a table.
 */
#include "server/problem.h"

#include <stddef.h>
#include <string.h>

const iron__problem iron__problems[] = {
#define PROBLEM_ROW(kind, status, title) {kind, status, title},
    IRON_PROBLEM_MAP(PROBLEM_ROW)
#undef PROBLEM_ROW
        {NULL, 0, NULL}};

const iron__problem *iron__problem_find(const char *kind) {
    for (const iron__problem *row = iron__problems; row->kind; row++)
        if (strcmp(row->kind, kind) == 0)
            return row;
    return NULL;
}
