/* SPDX-License-Identifier: MIT */
/*
 * test_recorder.c: a step's record is the same whatever integers its tokens are stored as and
 * however its rows are passed, and a call that is refused leaves nothing behind. What records
 * contain is tested against an oracle (tests/cli/test_ledger.py, python/tests/test_recorder.py).
 */
#include "place.h"

#include <iron/iron_ledger.h>

#define ROWS   ((size_t)7)
#define LENGTH ((size_t)2051) /* no multiple of four, and narrowed in several pieces */

static int64_t wide[ROWS * LENGTH];
static uint32_t narrow[ROWS * LENGTH];

/* How the rows of the one step are passed. */
typedef iron_status pass_rows(iron_recorder *r, iron_error *err);

static void record(const char *name, pass_rows *pass, iron_ledger_record *out) {
    file_name file = name_in(&place, name);
    const char *path = file.path;
    iron_recorder_options options;
    iron_recorder *r = NULL;
    iron_ledgers *ledgers = NULL;
    iron_error err = {0};

    iron_recorder_options_init(&options);
    assert_ok(iron_recorder_open(path, &options, &r, &err), &err);
    assert_ok(iron_recorder_begin(r, 3, 0, 0, &err), &err);
    assert_ok(pass(r, &err), &err);
    assert_ok(iron_recorder_end(r, &err), &err);
    assert_ok(iron_recorder_close(r, &err), &err);
    assert_ok(iron_ledgers_open(&path, 1, &ledgers, &err), &err);
    assert_int_equal(iron_ledgers_record_count(ledgers), 1);
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    assert_ok(iron_ledgers_record(ledgers, 0, out, &err), &err);
    out->time_ns = 0;
    iron_ledgers_close(ledgers);
}

static iron_status pass_narrow(iron_recorder *r, iron_error *err) {
    return iron_recorder_rows(r, IRON_DTYPE_U32, narrow, ROWS, LENGTH, err);
}

static iron_status pass_wide(iron_recorder *r, iron_error *err) {
    return iron_recorder_rows(r, IRON_DTYPE_I64, wide, ROWS, LENGTH, err);
}

/* Row by row, and after each a refused call whose last row has a bad value at its end. */
static iron_status pass_with_refusals(iron_recorder *r, iron_error *err) {
    static int64_t bad[2 * LENGTH];
    iron_error why;

    memcpy(bad, wide, sizeof bad);
    bad[2 * LENGTH - 1] = -7;
    for (size_t k = 0; k < ROWS; k++) {
        iron_status status =
            iron_recorder_rows(r, IRON_DTYPE_I64, wide + k * LENGTH, 1, LENGTH, err);

        if (status != IRON_OK)
            return status;
        assert_int_equal(iron_recorder_rows(r, IRON_DTYPE_I64, bad, 2, LENGTH, &why),
                         IRON_E_FORMAT);
        assert_non_null(strstr(why.text, "is -7;"));
    }
    return IRON_OK;
}

/* Field by field: the bytes between fields may be anything. */
static void assert_equal_records(const iron_ledger_record *a, const iron_ledger_record *b) {
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->micro, b->micro);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->tokens, b->tokens);
    assert_string_equal(a->seal, b->seal);
    assert_memory_equal(&a->bag, &b->bag, sizeof a->bag);
}

static void records_do_not_depend_on_how_rows_are_passed(void **state) {
    iron_ledger_record want, found;

    (void)state;
    for (size_t k = 0; k < ROWS * LENGTH; k++)
        wide[k] = narrow[k] = (uint32_t)(k * UINT32_C(2654435761));
    record("narrow", pass_narrow, &want);
    assert_int_equal(want.tokens, ROWS * LENGTH);
    assert_int_equal(want.bag.samples, ROWS);
    record("wide", pass_wide, &found);
    assert_equal_records(&found, &want);
    record("refused", pass_with_refusals, &found);
    assert_equal_records(&found, &want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_do_not_depend_on_how_rows_are_passed, make_place,
                                        remove_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
