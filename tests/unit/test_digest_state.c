/* SPDX-License-Identifier: MIT */
/*
 * test_digest_state.c: serialized digests. Loading restores the same digest; every truncation and
 * every flipped bit is refused; and with a correct checksum, so is every value that no stream can
 * produce. The layout is written down here a second time, since other machines depend on it.
 */
#include "digest_support.h"

#include "core/hash.h"

enum {
    AT_VERSION = 8,
    AT_SEAL_VERSION = 12,
    AT_VOCAB = 16,
    AT_COUNT = 24,
    AT_T = 32,
    AT_OUT = 56,
    AT_FIRST = 64,
    AT_FIRST_VALUE = 72,
    AT_MIN = 76,
    AT_MAX = 80,
    AT_ZERO = 84,
    AT_STRETCHES = 88,
    AT_QUADS = 96,
    AT_ARRAYS = 104,
    AT_OPEN = AT_ARRAYS + 2 * 16, /* the example has two spans */
    EXAMPLE_BYTES = AT_OPEN + 2 * 32 + 8
};

/* The example: positions 0 ... 9 and 16 ... 20 of these. Quads 2 (18, 19) and 5 (30) stay open. */
static const uint32_t stream[32] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                    26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41};

static iron_digest example(void) {
    iron_digest digest = digest_make(1, 25);

    digest_take(&digest, stream, 16, 21);
    digest_take(&digest, stream, 0, 10);
    return digest;
}

static uint64_t word_at(const unsigned char *data, size_t at, unsigned bytes) {
    uint64_t value = 0;

    for (unsigned k = 0; k < bytes; k++)
        value |= (uint64_t)data[at + k] << 8 * k;
    return value;
}

static void put_word(unsigned char *data, size_t at, uint64_t value, unsigned bytes) {
    for (unsigned k = 0; k < bytes; k++)
        data[at + k] = (unsigned char)(value >> 8 * k);
}

static void the_layout(void **state) {
    iron_digest digest = example();
    iron__seal_words words = {0, 0, 0, 0};
    size_t bytes;
    unsigned char *data = digest_bytes(&digest, &bytes);

    (void)state;
    iron__seal_quads(&words, stream, 0, 2);
    iron__seal_quads(&words, stream + 16, 4, 1);
    assert_int_equal(bytes, EXAMPLE_BYTES);
    assert_memory_equal(data, "IRONDGST", 8);
    assert_int_equal(word_at(data, AT_VERSION, 4), 1);
    assert_int_equal(word_at(data, AT_SEAL_VERSION, 4), 1);
    assert_int_equal(word_at(data, AT_VOCAB, 8), 25);
    assert_int_equal(word_at(data, AT_COUNT, 8), 12);
    assert_int_equal(word_at(data, AT_T, 8), words.t);
    assert_int_equal(word_at(data, AT_T + 8, 8), words.a);
    assert_int_equal(word_at(data, AT_T + 16, 8), words.b);
    assert_int_equal(word_at(data, AT_OUT, 8), 5);
    assert_int_equal(word_at(data, AT_FIRST, 8), 16);
    assert_int_equal(word_at(data, AT_FIRST_VALUE, 4), 26);
    assert_int_equal(word_at(data, AT_MIN, 4), 10);
    assert_int_equal(word_at(data, AT_MAX, 4), 30);
    assert_int_equal(word_at(data, AT_STRETCHES, 8), 2);
    assert_int_equal(word_at(data, AT_QUADS, 8), 2);
    assert_int_equal(word_at(data, AT_ARRAYS, 8), 0);
    assert_int_equal(word_at(data, AT_ARRAYS + 8, 8), 10);
    assert_int_equal(word_at(data, AT_ARRAYS + 16, 8), 16);
    assert_int_equal(word_at(data, AT_ARRAYS + 24, 8), 21);
    assert_int_equal(word_at(data, AT_OPEN, 8), 2);
    assert_int_equal(word_at(data, AT_OPEN + 8, 4), 18);
    assert_int_equal(word_at(data, AT_OPEN + 24, 4), 3);
    assert_int_equal(word_at(data, AT_OPEN + 32, 8), 5);
    assert_int_equal(word_at(data, AT_OPEN + 40, 4), 30);
    assert_int_equal(word_at(data, AT_OPEN + 56, 4), 1);
    assert_int_equal(word_at(data, bytes - 8, 8), iron__fnv(IRON_FNV_START, data, bytes - 8));
    free(data);
    iron_digest_deinit(&digest);
}

static void round_trip(void **state) {
    iron_digest digest = example(), again;
    iron_digest_options o = {.struct_size = sizeof o, .vocab = 25, .threads = 1};
    size_t bytes, told = 0;
    unsigned char *data = digest_bytes(&digest, &bytes);
    iron_error err;

    (void)state;
    assert_refused(iron_digest_save(&digest, data, bytes - 1, &told, &err), IRON_E_ARG, &err);
    assert_int_equal(told, bytes);
    assert_ok(iron_digest_load(&again, &o, data, bytes, &err), &err);
    assert_same_state(&digest, &again);
    digest_take(&again, stream, 10, 16);
    digest_take(&digest, stream, 10, 16);
    assert_same_state(&digest, &again);
    iron_digest_deinit(&again);
    o.vocab = 26;
    assert_refused(iron_digest_load(&again, &o, data, bytes, &err), IRON_E_ARG, &err);
    assert_says(&err, "vocab 25, not 26");
    assert_null(again.own);
    o.struct_size = 1;
    assert_refused(iron_digest_load(&again, &o, data, bytes, &err), IRON_E_ARG, &err);
    assert_refused(iron_digest_load(&again, NULL, NULL, 9, &err), IRON_E_ARG, &err);
    free(data);
    iron_digest_deinit(&digest);
}

static void every_length_and_every_bit(void **state) {
    iron_digest digest = example(), again;
    size_t bytes;
    unsigned char *data = digest_bytes(&digest, &bytes);
    iron_error err;

    (void)state;
    for (size_t length = 0; length < bytes; length++) {
        unsigned char *cut =
            grab(length); /* its own block, so that a sanitizer detects reads beyond it */

        memcpy(cut, data, length);
        assert_refused(iron_digest_load(&again, NULL, cut, length, &err), IRON_E_FORMAT, &err);
        assert_null(again.own);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_refused(iron_digest_load(&again, NULL, data, bytes, &err), IRON_E_FORMAT, &err);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_ok(iron_digest_load(&again, NULL, data, bytes, &err), &err);
    iron_digest_deinit(&again);
    free(data);
    iron_digest_deinit(&digest);
}

static void newer_versions_are_named(void **state) {
    iron_digest digest = example(), again;
    size_t bytes;
    unsigned char *data = digest_bytes(&digest, &bytes);
    iron_error err;

    (void)state;
    data[AT_VERSION] = 2;
    assert_refused(iron_digest_load(&again, NULL, data, bytes, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "version 2, newer than 1");
    data[AT_VERSION] = 1;
    data[AT_SEAL_VERSION] = 7;
    assert_refused(iron_digest_load(&again, NULL, data, bytes, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "seal version 7, newer than 1");
    data[0] = 'X';
    assert_refused(iron_digest_load(&again, NULL, data, bytes, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "do not begin with IRONDGST");
    free(data);
    iron_digest_deinit(&digest);
}

/* Values that no stream produces, with a correct checksum. */
static void impossible_values(void **state) {
    static const struct {
        size_t at;
        unsigned bytes;
        uint64_t value;
    } changes[] = {
        {AT_VERSION, 4, 0},
        {AT_SEAL_VERSION, 4, 0},
        {AT_VOCAB, 8, 0},
        {AT_VOCAB, 8, (UINT64_C(1) << 32) + 1},
        {AT_VOCAB, 8, 31}, /* then no token is outside the vocabulary */
        {AT_VOCAB, 8, 9},  /* then all tokens are */
        {AT_VOCAB, 8, 27}, /* then the first one is in the vocabulary */
        {AT_COUNT, 8, 16},
        {AT_COUNT, 8, 13},
        {AT_T, 8, 119},
        {AT_T, 8, 361},
        {AT_OUT, 8, 0},
        {AT_OUT, 8, 14},
        {AT_FIRST, 8, 10},
        {AT_FIRST, 8, 9}, /* in the open quad that contains 19 */
        {AT_FIRST, 8, 20},
        {AT_FIRST, 8, 21},
        {AT_FIRST, 8, UINT64_MAX},
        {AT_FIRST_VALUE, 4, 24},
        {AT_FIRST_VALUE, 4, 31},
        {AT_MIN, 4, 19},
        {AT_MIN, 4, 31},
        {AT_MAX, 4, 29},
        {AT_MAX, 4, 24},
        {AT_ZERO, 4, 1},
        {AT_STRETCHES, 8, 1},
        {AT_STRETCHES, 8, 4},
        {AT_STRETCHES, 8, UINT64_C(1) << 60},
        {AT_QUADS, 8, 1},
        {AT_QUADS, 8, UINT64_C(1) << 59},
        {AT_ARRAYS, 8, 1},
        {AT_ARRAYS, 8, 10},
        {AT_ARRAYS + 8, 8, 16},
        {AT_ARRAYS + 8, 8, 17},
        {AT_ARRAYS + 16, 8, 9},
        {AT_ARRAYS + 24, 8, 16},
        {AT_ARRAYS + 24, 8, 22},
        {AT_ARRAYS + 24, 8, 20},
        {AT_OPEN, 8, 3},
        {AT_OPEN + 8, 4, 31},  /* above the largest */
        {AT_OPEN + 8, 4, 9},   /* below the smallest */
        {AT_OPEN + 16, 4, 20}, /* a token that was not fed */
        {AT_OPEN + 24, 4, 7},
        {AT_OPEN + 24, 4, 1},
        {AT_OPEN + 24, 4, 15},
        {AT_OPEN + 28, 4, 1},
        {AT_OPEN + 32, 8, 2},
        {AT_OPEN + 32, 8, UINT64_MAX},
    };
    iron_digest digest = example(), again;
    size_t bytes;
    unsigned char *data = digest_bytes(&digest, &bytes), *changed = grab(bytes);
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(changes); k++) {
        memcpy(changed, data, bytes);
        put_word(changed, changes[k].at, changes[k].value, changes[k].bytes);
        put_word(changed, bytes - 8, iron__fnv(IRON_FNV_START, changed, bytes - 8), 8);
        if (iron_digest_load(&again, NULL, changed, bytes, &err) == IRON_OK)
            fail_msg("%llu at byte %zu was taken", (unsigned long long)changes[k].value,
                     changes[k].at);
        assert_int_equal(err.status, IRON_E_FORMAT);
        assert_null(again.own);
    }
    free(changed);
    free(data);
    iron_digest_deinit(&digest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(every_length_and_every_bit),
        cmocka_unit_test(newer_versions_are_named),
        cmocka_unit_test(impossible_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
