/* SPDX-License-Identifier: MIT */
/*
 * test_server_token.c: which token files are taken, and which requests a token admits.
 */
#include "server/token.h"
#include "support.h"

static iron_status read_text(const folder *f, const char *text, size_t bytes, mode_t mode,
                             iron__token *token, iron_error *err) {
    file_name name = name_in(f, "token");

    unlink(name.path);
    file_write(name.path, text, bytes);
    assert_int_equal(chmod(name.path, mode), 0);
    return iron__token_read(token, name.path, err);
}

static void taken(const folder *f, const char *text, const char *expected) {
    iron__token token;
    iron_error err;

    assert_ok(read_text(f, text, strlen(text), 0600, &token, &err), &err);
    assert_int_equal(token.bytes, strlen(expected));
    assert_memory_equal(token.text, expected, token.bytes);
}

static void refused(const folder *f, const char *text, size_t bytes, mode_t mode,
                    const char *word) {
    iron__token token;
    iron_error err;

    assert_refused(read_text(f, text, bytes, mode, &token, &err), IRON_E_ARG, &err);
    assert_says(&err, word);
    assert_int_equal(token.bytes, 0);
}

static void test_files(void **state) {
    folder f;
    iron__token token;
    iron_error err;
    char large[IRON_TOKEN_BYTES_MAX + 3];

    (void)state;
    folder_make(&f);
    taken(&f, "s3cret\n", "s3cret");
    taken(&f, "s3cret", "s3cret");
    taken(&f, "s3cret\r\n", "s3cret");
    refused(&f, "", 0, 0600, "empty");
    refused(&f, "\n", 1, 0600, "empty");
    refused(&f, "a b\n", 4, 0600, "blank");
    refused(&f, "a\nb\n", 4, 0600, "blank");
    refused(&f, "a\n\n", 3, 0600, "blank");
    refused(&f, "a\0b", 3, 0600, "blank");
    refused(&f, "caf\xc3\xa9", 5, 0600, "ASCII");
    refused(&f, "a\n", 2, 0640, "chmod 600");
    refused(&f, "a\n", 2, 0604, "chmod 600");
    refused(&f, "a\n", 2, 0620, "chmod 600");
    memset(large, 'x', sizeof large);
    refused(&f, large, sizeof large, 0600, "at most");
    refused(&f, large, IRON_TOKEN_BYTES_MAX + 1, 0600, "at most");
    assert_refused(iron__token_read(&token, f.path, &err), IRON_E_ARG, &err);
    assert_says(&err, "regular");
    assert_refused(iron__token_read(&token, name_in(&f, "none").path, &err), IRON_E_IO, &err);
    folder_remove(&f);
}

static bool admits(const iron__token *token, const char *authorization) {
    return iron__token_admits(token,
                              authorization ? iron__text_of(authorization) : (iron__text){NULL, 0});
}

static void test_requests(void **state) {
    iron__token none = {.bytes = 0}, token = {.bytes = 6, .text = "s3cret"};
    char large[IRON_TOKEN_BYTES_MAX + 20];

    (void)state;
    assert_true(admits(&none, NULL));
    assert_true(admits(&token, "Bearer s3cret"));
    assert_true(admits(&token, "bEARER   s3cret"));
    assert_false(admits(&token, NULL));
    assert_false(admits(&token, ""));
    assert_false(admits(&token, "Bearer"));
    assert_false(admits(&token, "Bearer "));
    assert_false(admits(&token, "Bearer s3cre"));
    assert_false(admits(&token, "Bearer s3crets"));
    assert_false(admits(&token, "Bearer S3cret"));
    assert_false(admits(&token, "Basic s3cret"));
    assert_false(admits(&token, "s3cret"));
    assert_false(admits(&token, "Bearer s3cret x"));
    snprintf(large, sizeof large, "Bearer s3cret%0*d", (int)IRON_TOKEN_BYTES_MAX, 0);
    assert_false(admits(&token, large));
    assert_false(iron__token_admits(&token, (iron__text){"Bearer s3cret\0", 14}));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_requests)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
