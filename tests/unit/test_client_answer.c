/* SPDX-License-Identifier: MIT */
/* Answers: an engine's figures or none, problems in one plain line; token files. */
#include "support.h"

#include "client/push_answer.h"
#include "core/token_file.h"

#define SEAL  "0123456789abcdef0123456789abcdef"
#define STATE "\"state\": \"00000000deadbeef\", \"seal\": \"" SEAL "\""

static iron__push_answer read_text(unsigned status, const char *text) {
    iron__push_answer a;

    iron__push_answer_read(&a, status, text, strlen(text));
    assert_int_equal(a.status, status);
    return a;
}

static void an_engine_is_read(void **state) {
    iron__push_answer a =
        read_text(200, "{\"name\": \"x\", \"batch\": 786432, \"tokens\": 9007199254740991, "
                       "\"batches\": 12, \"xor\": \"8000000f\", \"sum\": "
                       "\"18446744073709551615\", \"more\": [1, {}], " STATE "}");

    (void)state;
    assert_true(a.has_engine);
    assert_int_equal(a.engine.tokens, UINT64_C(9007199254740991));
    assert_int_equal(a.engine.batches, 12);
    assert_int_equal(a.engine.batch, 786432);
    assert_int_equal(a.engine.xors, 0x8000000Fu);
    assert_true(a.engine.sum == UINT64_MAX);
    assert_int_equal(a.engine.state, 0xDEADBEEF);
    assert_string_equal(a.engine.seal, SEAL);
    /* a feed's answer need not tell the batch size */
    a = read_text(
        200, "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"0\", " STATE "}");
    assert_true(a.has_engine);
    assert_int_equal(a.engine.batch, 0);
    /* the longest batch that an engine may have is beyond what a double holds exactly */
    a = read_text(200, "{\"batch\": 2305843009213693951, \"tokens\": 0, \"batches\": 0, "
                       "\"xor\": \"00000000\", \"sum\": \"0\", " STATE "}");
    assert_int_equal(a.engine.batch, UINT64_C(1) << 53);
}

static void what_is_no_engine_is_none(void **state) {
    static const char *const texts[] = {
        "",
        "hello",
        "[]",
        "null",
        "{}",
        "{\"tokens\": -1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"0\", " STATE "}",
        "{\"tokens\": 1.5, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"0\", " STATE "}",
        "{\"tokens\": \"1\", \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"0\", " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": \"0000000\", \"sum\": \"0\", " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": \"0000000G\", \"sum\": \"0\", " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": 0, \"sum\": \"0\", " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": 0, " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"\", " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"-1\", " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": "
        "\"18446744073709551616\", " STATE "}",
        "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"0\", " STATE,
        ("{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"0\", \"state\": "
         "\"00000000deadbeef\", \"seal\": \"short\"}"),
    };

    (void)state;
    for (size_t k = 0; k < COUNT(texts); k++) {
        iron__push_answer a = read_text(200, texts[k]);

        assert_false(a.has_engine);
        assert_non_null(strstr(a.words, "not as iron serve does"));
    }
    /* figures in an answer that is no 200 are none */
    assert_false(read_text(202, "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": "
                                "\"0\", " STATE "}")
                     .has_engine);
}

static void problems_are_one_plain_line(void **state) {
    iron__push_answer a =
        read_text(404, "{\"type\": \"urn:iron:problem:no-such-engine\", \"title\": \"There is no "
                       "engine of this name\", \"detail\": \"no engine 'x'\", \"help\": \"make "
                       "it first\", \"status\": 404}");

    (void)state;
    assert_string_equal(a.words,
                        "There is no engine of this name (404): no engine 'x'; make it first");
    assert_false(a.is_read_only);
    a = read_text(413, "{\"title\": \"Too\\nlarge\\u001b[31m\\u007f\"}");
    assert_string_equal(a.words, "Too large [31m  (413)");
    a = read_text(500, "{\"title\": 5, \"detail\": []}");
    assert_non_null(strstr(a.words, "it answered 500"));
    a = read_text(503, "{\"title\": \"t\", \"type\": \"urn:iron:problem:read-only\"}");
    assert_true(a.is_read_only);
    a = read_text(503, "{\"title\": \"t\", \"type\": \"urn:iron:problem:busy\"}");
    assert_false(a.is_read_only);
}

/* However much a server has to say, it fits. */
static void long_words_are_cut(void **state) {
    char *text = grab(8000);
    iron__push_answer a;

    (void)state;
    memset(text, 'w', 8000);
    memcpy(text, "{\"title\": \"", 11);
    memcpy(text + 3000, "\", \"detail\": \"", 14);
    memcpy(text + 6000, "\", \"help\": \"", 12);
    memcpy(text + 7998, "\"}", 2);
    iron__push_answer_read(&a, 400, text, 8000);
    assert_int_equal(strnlen(a.words, sizeof a.words), sizeof a.words - 1);
    assert_non_null(strstr(a.words, " (400): "));
    free(text);
}

static iron_status read_token(const folder *f, const char *content, mode_t mode, char *token,
                              iron_error *err) {
    file_name n = name_in(f, "token");

    file_write(n.path, content, strlen(content));
    assert_int_equal(chmod(n.path, mode), 0);
    return iron__token_file_read(n.path, token, err);
}

static void tokens_are_read_from_private_files(void **state) {
    char token[IRON_TOKEN_ROOM], longest[IRON_TOKEN_ROOM + 1] = "";
    iron_error err;
    folder f;

    (void)state;
    folder_make(&f);
    assert_ok(read_token(&f, "se.cr-et~123==\n", 0600, token, &err), &err);
    assert_string_equal(token, "se.cr-et~123==");
    assert_ok(read_token(&f, "abc\r\n", 0400, token, &err), &err);
    assert_string_equal(token, "abc");
    assert_ok(read_token(&f, "abc", 0600, token, &err), &err);
    assert_string_equal(token, "abc");
    memset(longest, 't', IRON_TOKEN_ROOM - 1);
    assert_ok(read_token(&f, longest, 0600, token, &err), &err);
    assert_string_equal(token, longest);
    longest[IRON_TOKEN_ROOM - 1] = '\n';
    assert_ok(read_token(&f, longest, 0600, token, &err), &err);
    longest[IRON_TOKEN_ROOM - 1] = 't';
    assert_refused(read_token(&f, longest, 0600, token, &err), IRON_E_ARG, &err);
    folder_remove(&f);
}

static void other_token_files_are_refused_and_not_shown(void **state) {
    static const char *const contents[] = {"",
                                           "\n",
                                           "sec ret\n",
                                           "secret\n\n",
                                           "secret\nmore\n",
                                           "secr\x01t\n",
                                           "secr\xC3\xA9t\n",
                                           " secret\n"};
    static const mode_t modes[] = {0640, 0604, 0644, 0660, 0620};
    char token[IRON_TOKEN_ROOM];
    iron_error err;
    folder f;

    (void)state;
    folder_make(&f);
    for (size_t k = 0; k < COUNT(contents); k++) {
        assert_refused(read_token(&f, contents[k], 0600, token, &err), IRON_E_ARG, &err);
        assert_null(strstr(err.text, "secr"));
        assert_string_equal(token, "");
    }
    for (size_t k = 0; k < COUNT(modes); k++) {
        assert_refused(read_token(&f, "secret\n", modes[k], token, &err), IRON_E_ARG, &err);
        assert_says(&err, "chmod 600");
    }
    assert_refused(iron__token_file_read(f.path, token, &err), IRON_E_ARG, &err);
    assert_refused(iron__token_file_read(name_in(&f, "none").path, token, &err), IRON_E_IO, &err);
    folder_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_is_read),
        cmocka_unit_test(what_is_no_engine_is_none),
        cmocka_unit_test(problems_are_one_plain_line),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(tokens_are_read_from_private_files),
        cmocka_unit_test(other_token_files_are_refused_and_not_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
