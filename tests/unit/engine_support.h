/* SPDX-License-Identifier: MIT */
/* engine_support.h: shared by the engine tests: creating an engine and reading its report. */
#ifndef TESTS_UNIT_ENGINE_SUPPORT_H
#define TESTS_UNIT_ENGINE_SUPPORT_H

#include "support.h"

static inline iron_engine *create(const iron_config *config) {
    iron_engine *e = NULL;
    iron_error err;

    assert_ok(iron_engine_create(config, &e, &err), &err);
    return e;
}

static inline iron_report report_of(iron_engine *e) {
    iron_report r = {.struct_size = sizeof r};
    iron_error err;

    assert_ok(iron_engine_report(e, &r, &err), &err);
    return r;
}

#endif
