/* SPDX-License-Identifier: MIT */
/*
 * raw.c: tokens from byte 0 and nothing else, as nanoGPT writes them, and OLMo under the name
 * .npy. The file does not say how wide they are, so the user must.
 */
#include "core/fail.h"
#include "formats/format.h"

static bool recognise(const iron__candidate *c) {
    (void)c;
    return true;
}

static iron_status examine(iron__candidate *c, iron__layout *layout, iron_error *err) {
    IRON_FAIL_IF(c->dtype == IRON_DTYPE_NONE, err, IRON_E_ARG,
                 "%.100s: raw tokens do not say their width; give --dtype u8, u16, u32, i32 or i64 "
                 "(`iron sniff` guesses)",
                 c->name);
    layout->dtype = c->dtype;
    return IRON_OK;
}

const iron__format iron__format_raw = {"raw", recognise, examine, NULL};
