/* SPDX-License-Identifier: MIT */
/*
 * test_fnv.c: FNV-1a, 64 bit, against the published test vectors of its authors (Fowler, Noll, Vo),
 * and the two properties that saved states rest on: pieces hash as the whole, and no single damaged
 * bit goes unseen.
 */
#include "support.h"

#include "core/fnv.h"

static const struct {
    const char *text;
    uint64_t hash;
} vectors[] = {{"", UINT64_C(0xcbf29ce484222325)},      {"a", UINT64_C(0xaf63dc4c8601ec8c)},
               {"b", UINT64_C(0xaf63df4c8601f1a5)},     {"c", UINT64_C(0xaf63de4c8601eff2)},
               {"foo", UINT64_C(0xdcb27518fed9d577)},   {"fo", UINT64_C(0x08985907b541d342)},
               {"foob", UINT64_C(0xdd120e790c2512af)},  {"fooba", UINT64_C(0xcac165afa2fef40a)},
               {"foobar", UINT64_C(0x85944171f73967e8)}};

static void published_vectors(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(vectors); k++)
        assert_int_equal(iron__fnv(IRON_FNV_START, vectors[k].text, strlen(vectors[k].text)),
                         vectors[k].hash);
    assert_int_equal(iron__fnv(IRON_FNV_START, "", 1), UINT64_C(0xaf63bd4c8601b7df)); /* one 0 */
}

static void bytes_are_unsigned(void **state) {
    (void)state;
    /* one step by hand: (start ^ 0xff) * prime */
    assert_int_equal(iron__fnv(IRON_FNV_START, "\xff", 1),
                     (UINT64_C(0xcbf29ce484222325) ^ 0xff) * UINT64_C(0x100000001b3));
}

static void pieces_make_the_whole(void **state) {
    unsigned char data[257];
    uint64_t whole;
    dice d = {67};

    (void)state;
    for (size_t k = 0; k < sizeof data; k++)
        data[k] = (unsigned char)roll(&d);
    whole = iron__fnv(IRON_FNV_START, data, sizeof data);
    for (size_t k = 0; k <= sizeof data; k++)
        assert_int_equal(iron__fnv(iron__fnv(IRON_FNV_START, data, k), data + k, sizeof data - k),
                         whole);
}

static void every_bit_counts(void **state) {
    unsigned char data[300] = {0};
    uint64_t whole = iron__fnv(IRON_FNV_START, data, sizeof data);

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(iron__fnv(IRON_FNV_START, data, sizeof data) != whole);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(bytes_are_unsigned),
        cmocka_unit_test(pieces_make_the_whole),
        cmocka_unit_test(every_bit_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
