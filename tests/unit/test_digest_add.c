/* SPDX-License-Identifier: MIT */
/*
 * test_digest_add.c: results of ranges of a stream add up to the whole's, in any order and
 * grouping, whatever the ranges; and those that are of no one stream are refused.
 */
#include "source_support.h"

#include <iron/iron_digest.h>

#define TOKENS     10007u
#define RANGES_MAX 12u

static iron_digest_result scan_range(iron_source *source, uint64_t first, uint64_t count) {
    iron_digest_result r = {.struct_size = sizeof r};
    iron_manifest *m = NULL;
    iron_scan_options o;
    iron_error err;

    iron_scan_options_init(&o);
    o.vocab = 60000;
    o.threads = 1;
    o.first = first;
    o.count = count;
    assert_ok(iron_scan(source, &o, &m, &err), &err);
    assert_ok(iron_manifest_digest(m, &r, &err), &err);
    iron_manifest_destroy(m);
    return r;
}

static void assert_same(const iron_digest_result *a, const iron_digest_result *b) {
    assert_string_equal(a->seal, b->seal);
    assert_memory_equal(a->words, b->words, sizeof a->words);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->out_of_vocab, b->out_of_vocab);
    assert_int_equal(a->first_out_position, b->first_out_position);
    assert_int_equal(a->first_out_value, b->first_out_value);
    assert_int_equal(a->min, b->min);
    assert_int_equal(a->max, b->max);
}

/* Two results of the list become one, at random, until one is left. */
static iron_digest_result add_all(iron_digest_result *list, size_t count, dice *d) {
    iron_error err;

    for (; count > 1; count--) {
        size_t to = (size_t)roll_below(d, count), from = (size_t)roll_below(d, count - 1);

        from += from >= to;
        assert_ok(iron_digest_result_add(&list[to], &list[from], &err), &err);
        list[from] = list[count - 1];
        if (to == count - 1)
            to = from;
    }
    return list[0];
}

static void parts_add_up(void **state) {
    uint16_t tokens[TOKENS];
    dice d = {4711};
    folder f;
    file_name name;
    iron_source *source;
    iron_digest_result whole;

    (void)state;
    fill_u16(tokens, TOKENS);
    folder_make(&f);
    name = name_in(&f, "t");
    file_write(name.path, tokens, sizeof tokens);
    source = open_all(IRON_DTYPE_U16, (const char *[]){name.path}, 1);
    whole = scan_range(source, 0, TOKENS);
    assert_true(whole.out_of_vocab > 0);
    for (size_t n = 0; n < 40; n++) {
        iron_digest_result list[RANGES_MAX];
        size_t count = 0;

        for (uint64_t at = 0; at < TOKENS && count < RANGES_MAX;) {
            uint64_t length = 4 * roll_below(&d, 900);

            if (count == RANGES_MAX - 1 || length > TOKENS - at)
                length = TOKENS - at;
            list[count++] = scan_range(source, at, length);
            at += length;
        }
        list[0] = add_all(list, count, &d);
        assert_same(&whole, &list[0]);
    }
    iron_source_close(source);
    folder_remove(&f);
}

static void strangers_are_refused(void **state) {
    iron_digest_result a = {.struct_size = sizeof a, .seal_version = 1, .vocab = 10}, b = a, old;
    iron_error err;

    (void)state;
    old = a;
    b.vocab = 11;
    assert_refused(iron_digest_result_add(&a, &b, &err), IRON_E_ARG, &err);
    assert_says(&err, "11");
    b = a;
    b.seal_version = 2;
    assert_refused(iron_digest_result_add(&a, &b, &err), IRON_E_ARG, &err);
    b = a;
    b.struct_size--;
    assert_refused(iron_digest_result_add(&a, &b, &err), IRON_E_ARG, &err);
    assert_refused(iron_digest_result_add(&b, &a, &err), IRON_E_ARG, &err);
    assert_refused(iron_digest_result_add(NULL, &a, &err), IRON_E_ARG, &err);
    assert_memory_equal(&a, &old, sizeof a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(strangers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
