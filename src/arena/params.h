/* SPDX-License-Identifier: MIT */
/*
 * params.h: what a case is besides op, size and element type, as reports tell it: where it stands
 * on each axis of its op, and what else the op says of it.
 */
#ifndef IRON_ARENA_PARAMS_H
#define IRON_ARENA_PARAMS_H

#include "ops/op.h"

#define IRON_PARAMS_MAX 8u

typedef struct iron__param {
    char name[24];
    char word[32]; /* "": it is a number */
    double number;
    bool is_axis; /* else a fact about the case, such as its bins */
} iron__param;

typedef struct iron__params {
    iron__param list[IRON_PARAMS_MAX]; /* axes first, in the op's order */
    size_t count;
} iron__params;

iron__params iron__params_of(const iron__case *c);

/* The same names with the same values, in whatever order. */
bool iron__params_are_same(const iron__params *a, const iron__params *b);

/* The value as it is read and written: "zipf", "0.25", "4294967296". */
typedef struct iron__param_value {
    char text[40];
} iron__param_value;
iron__param_value iron__param_text(const iron__param *param);

/* Nine digits as reports have them, and whole numbers whole. */
iron__param_value iron__param_number(double number);
/* Is it whole, and small enough that a double has no doubt about it? */
bool iron__number_is_whole(double number);

typedef struct iron__params_line {
    char text[IRON_PARAMS_MAX * 68];
} iron__params_line;
/* "data zipf, density 0.5", of the axes or of the facts alone; "" where there are none. */
iron__params_line iron__params_axes(const iron__params *params);
iron__params_line iron__params_facts(const iron__params *params);

#endif
