/* SPDX-License-Identifier: MIT */
/*
 * test_natural.c: part-2 before part-10, and a total order whatever the names are.
 *
 * A list in the wanted order is compared pair by pair, both ways. Then the laws that qsort needs
 * are tried on random names made of the characters that could break them: digits with leading
 * zeros, letters, signs on both sides of the digits in the character set, bytes above 127.
 */
#include "support.h"

#include "formats/natural.h"

static const char *const ordered[] = {"",
                                      "-1",
                                      "0",
                                      "00",
                                      "1",
                                      "2",
                                      "10",
                                      "99999999999999999999",
                                      "100000000000000000000",
                                      "a",
                                      "a0",
                                      "a1",
                                      "a01b",
                                      "a1c",
                                      "a2",
                                      "a10",
                                      "a10b",
                                      "ab",
                                      "part",
                                      "part-",
                                      "part-1.bin",
                                      "part-2.bin",
                                      "part-10.bin",
                                      "part-10a.bin",
                                      "part-100.bin",
                                      "part_1",
                                      "z",
                                      "\xc3\xa4"};

static int sign(int x) { return (x > 0) - (x < 0); }

static void names_as_people_order_them(void **state) {
    (void)state;
    for (size_t a = 0; a < COUNT(ordered); a++) {
        for (size_t b = 0; b < COUNT(ordered); b++) {
            int got = sign(iron__natural_compare(ordered[a], ordered[b]));

            if (got != (a > b) - (a < b))
                fail_msg("'%s' against '%s' gave %d", ordered[a], ordered[b], got);
        }
    }
}

static void leading_zeros_do_not_change_the_number(void **state) {
    (void)state;
    assert_true(iron__natural_compare("x007", "x8") < 0);
    assert_true(iron__natural_compare("x010", "x9") > 0);
    assert_true(iron__natural_compare("x08y", "x8z") < 0);
    assert_true(iron__natural_compare("x8y", "x08z") < 0);
    /* the same number written twice: some order, and the opposite the other way round */
    assert_int_equal(sign(iron__natural_compare("x01", "x1")),
                     -sign(iron__natural_compare("x1", "x01")));
    assert_true(iron__natural_compare("x01", "x1") != 0);
    assert_int_equal(iron__natural_compare("x01", "x01"), 0);
}

static void random_name(char name[8], dice *d) {
    static const char alphabet[] = "00112.-/:a~\xc3";
    size_t length = (size_t)roll_below(d, 7);

    for (size_t k = 0; k < length; k++)
        name[k] = alphabet[roll_below(d, sizeof alphabet - 1)];
    name[length] = '\0';
}

static void a_total_order(void **state) {
    dice d = {71};

    (void)state;
    for (int n = 0; n < 300000; n++) {
        char a[8], b[8], c[8];
        int ab, bc, ac;

        random_name(a, &d);
        random_name(b, &d);
        random_name(c, &d);
        ab = sign(iron__natural_compare(a, b));
        bc = sign(iron__natural_compare(b, c));
        ac = sign(iron__natural_compare(a, c));
        if (ab != -sign(iron__natural_compare(b, a)))
            fail_msg("not antisymmetric: '%s' '%s'", a, b);
        if ((ab == 0) != (strcmp(a, b) == 0))
            fail_msg("equal but not identical, or the reverse: '%s' '%s'", a, b);
        if (ab <= 0 && bc <= 0 && ac > 0)
            fail_msg("not transitive: '%s' '%s' '%s'", a, b, c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_as_people_order_them),
        cmocka_unit_test(leading_zeros_do_not_change_the_number),
        cmocka_unit_test(a_total_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
