/* SPDX-License-Identifier: MIT */
/*
 * test_sha256.c: SHA-256 against the examples of FIPS 180-4 (NIST's example file SHA256.pdf and
 * the long message of SHAVS), whole and in pieces of every length.
 */
#include "core/sha256.h"
#include "support.h"

static void assert_digest(iron__sha256_state *hash, const char *expected) {
    unsigned char digest[IRON_SHA256_BYTES];
    char text[2 * IRON_SHA256_BYTES + 1];

    iron__sha256_end(hash, digest);
    for (size_t k = 0; k < sizeof digest; k++)
        snprintf(text + 2 * k, 3, "%02x", digest[k]);
    assert_string_equal(text, expected);
}

static void test_vectors(void **state) {
    static const struct {
        const char *text, *digest;
    } rows[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
                {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                 "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"}};

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++)
        for (size_t piece = 1; piece <= 130; piece++) {
            size_t length = strlen(rows[k].text);
            iron__sha256_state hash;

            iron__sha256_init(&hash);
            for (size_t at = 0; at < length; at += piece)
                iron__sha256_add(&hash, rows[k].text + at,
                                 length - at < piece ? length - at : piece);
            assert_digest(&hash, rows[k].digest);
        }
}

static void test_million(void **state) {
    char letters[1000];
    iron__sha256_state hash;

    (void)state;
    memset(letters, 'a', sizeof letters);
    iron__sha256_init(&hash);
    for (int k = 0; k < 1000; k++)
        iron__sha256_add(&hash, letters, sizeof letters);
    assert_digest(&hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_million)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
