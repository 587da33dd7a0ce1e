/* SPDX-License-Identifier: MIT */
/* place.h: a temporary folder for each test of a file: `place`, created before the test and removed
 * with its contents after it. */
#ifndef TESTS_UNIT_PLACE_H
#define TESTS_UNIT_PLACE_H

#include "support.h"

static folder place;

static inline int make_place(void **state) {
    (void)state;
    folder_make(&place);
    return 0;
}

static inline int remove_place(void **state) {
    (void)state;
    folder_remove(&place);
    return 0;
}

#endif
