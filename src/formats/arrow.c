/* SPDX-License-Identifier: MIT */
#include "core/fail.h"
#include "formats/format.h"

static bool recognise(const iron__candidate *c) {
    (void)c;
    return false;
}
static iron_status examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    (void)layout;
    IRON_FAIL(err, IRON_E_UNSUPPORTED, "%.100s: not there yet", c->name);
}
const iron__format iron__format_arrow = {"arrow", recognise, examine, NULL};
