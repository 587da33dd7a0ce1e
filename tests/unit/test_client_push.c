/* SPDX-License-Identifier: MIT */
/*
 * test_client_push.c: the parts of a push without a network: addresses, responses, token files,
 * request bodies, the seal of a prefix, pieces, and what is done after each response, also against
 * a model of a server that loses requests and responses.
 */
#include "client/push.c"

#include "core/files.h"
#include "core/memory.h"
#include "source_support.h"
#include "support.h"

static void addresses_are_split(void **state) {
    static const struct {
        const char *text, *engine, *name;
        bool is_loopback;
    } cases[] = {
        {"http://127.0.0.1:8080/v1/engines/a", "http://127.0.0.1:8080/v1/engines/a", "a", true},
        {"http://127.0.0.1:8080/v1/engines/a/feed", "http://127.0.0.1:8080/v1/engines/a", "a",
         true},
        {"https://iron.example.org/v1/engines/Corpus-1.2_x",
         "https://iron.example.org/v1/engines/Corpus-1.2_x", "Corpus-1.2_x", false},
        {"HTTP://LocalHost:1/v1/engines/0", "HTTP://LocalHost:1/v1/engines/0", "0", true},
        {"http://[::1]:65535/v1/engines/x", "http://[::1]:65535/v1/engines/x", "x", true},
        {"http://[fe80::1]/v1/engines/x", "http://[fe80::1]/v1/engines/x", "x", false},
        {"http://127.evil.example/v1/engines/x", "http://127.evil.example/v1/engines/x", "x",
         false},
        {"http://localhost.example/v1/engines/x", "http://localhost.example/v1/engines/x", "x",
         false},
        {"http://h:1/v1/engines/feed", "http://h:1/v1/engines/feed", "feed", false},
    };
    engine_url url;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        assert_ok(parse_url(cases[k].text, &url, &err), &err);
        assert_string_equal(url.engine, cases[k].engine);
        assert_string_equal(url.name, cases[k].name);
        assert_int_equal(url.is_loopback, cases[k].is_loopback);
    }
}

static void everything_else_is_refused(void **state) {
    static const char *const texts[] = {
        "",
        "http://",
        "127.0.0.1:8080/v1/engines/a",
        "ftp://h/v1/engines/a",
        "file:///v1/engines/a",
        "http:/h/v1/engines/a",
        "httpx://h/v1/engines/a",
        "http://h",
        "http://h/",
        "http://h/v1/engines",
        "http://h/v1/engines/",
        "http://h/v1/engines//feed",
        "http://h/v1/engines/a/",
        "http://h/v1/engines/a/feed/",
        "http://h/v1/engines/a/state",
        "http://h/v1/engines/a?dtype=u8",
        "http://h/v1/engines/a#x",
        "http://h/v1/engines/..",
        "http://h/v1/engines/.a",
        "http://h/v1/engines/-a",
        "http://h/v1/engines/a%2Fb",
        "http://h/v1/engines/a b",
        "http://h/v1/engines/a\nHost: x",
        "http://h/V1/engines/a",
        "http://h/x/v1/engines/a",
        "http://user@h/v1/engines/a",
        "http://user:secret@h/v1/engines/a",
        "http://:80/v1/engines/a",
        "http://h:/v1/engines/a",
        "http://h:0/v1/engines/a",
        "http://h:65536/v1/engines/a",
        "http://h:99999999999999999999/v1/engines/a",
        "http://h:8080x/v1/engines/a",
        "http://h:-1/v1/engines/a",
        "http://[::1/v1/engines/a",
        "http://[]/v1/engines/a",
        "http://[::1]x/v1/engines/a",
        "http://[::1%25eth0]/v1/engines/a",
        "http://\xC3\xA4/v1/engines/a",
        " http://h/v1/engines/a",
    };
    engine_url url;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(texts); k++) {
        assert_refused(parse_url(texts[k], &url, &err), IRON_E_ARG, &err);
        assert_says(&err, "http://127.0.0.1:8080/v1/engines/NAME");
    }
}

/* Names have up to 64 characters, addresses as many as fit the buffer. */
static void lengths_have_limits(void **state) {
    char text[2 * URL_BYTES], name[66] = "";
    engine_url url;
    iron_error err;

    (void)state;
    memset(name, 'n', 64);
    snprintf(text, sizeof text, "http://h/v1/engines/%s/feed", name);
    assert_ok(parse_url(text, &url, &err), &err);
    assert_string_equal(url.name, name);
    name[64] = 'n';
    snprintf(text, sizeof text, "http://h/v1/engines/%s", name);
    assert_refused(parse_url(text, &url, &err), IRON_E_ARG, &err);
    for (size_t host = 470; host < 520; host++) {
        char long_host[600] = "";
        size_t length;

        memset(long_host, 'h', host);
        length = (size_t)snprintf(text, sizeof text, "http://%s/v1/engines/a", long_host);
        assert_int_equal(parse_url(text, &url, NULL), length < URL_BYTES ? IRON_OK : IRON_E_ARG);
    }
}

#define SEAL  "0123456789abcdef0123456789abcdef"
#define STATE "\"state\": \"00000000deadbeef\", \"seal\": \"" SEAL "\""

static response read_text(unsigned status, const char *text) {
    response a;

    read_response(&a, status, text, strlen(text));
    assert_int_equal(a.status, status);
    return a;
}

static void an_engine_is_read(void **state) {
    response a =
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
    /* the response to a feed need not contain the batch size */
    a = read_text(
        200, "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": \"0\", " STATE "}");
    assert_true(a.has_engine);
    assert_int_equal(a.engine.batch, 0);
    /* the longest batch that an engine may have is beyond what a double holds exactly */
    a = read_text(200, "{\"batch\": 2305843009213693951, \"tokens\": 0, \"batches\": 0, "
                       "\"xor\": \"00000000\", \"sum\": \"0\", " STATE "}");
    assert_int_equal(a.engine.batch, UINT64_C(1) << 53);
}

static void incomplete_engines_are_refused(void **state) {
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
        response a = read_text(200, texts[k]);

        assert_false(a.has_engine);
        assert_non_null(strstr(a.reason, "not as iron serve does"));
    }
    /* numbers in a response other than 200 are ignored */
    assert_false(read_text(202, "{\"tokens\": 1, \"batches\": 1, \"xor\": \"00000000\", \"sum\": "
                                "\"0\", " STATE "}")
                     .has_engine);
}

static void problems_are_one_plain_line(void **state) {
    response a =
        read_text(404, "{\"type\": \"urn:iron:problem:no-such-engine\", \"title\": \"There is no "
                       "engine of this name\", \"detail\": \"no engine 'x'\", \"help\": \"make "
                       "it first\", \"status\": 404}");

    (void)state;
    assert_string_equal(a.reason,
                        "There is no engine of this name (404): no engine 'x'; make it first");
    assert_false(a.is_read_only);
    a = read_text(413, "{\"title\": \"Too\\nlarge\\u001b[31m\\u007f\"}");
    assert_string_equal(a.reason, "Too large [31m  (413)");
    a = read_text(500, "{\"title\": 5, \"detail\": []}");
    assert_non_null(strstr(a.reason, "it answered 500"));
    a = read_text(503, "{\"title\": \"t\", \"type\": \"urn:iron:problem:read-only\"}");
    assert_true(a.is_read_only);
    a = read_text(503, "{\"title\": \"t\", \"type\": \"urn:iron:problem:busy\"}");
    assert_false(a.is_read_only);
}

/* A long message from the server is cut to fit. */
static void long_reasons_are_cut(void **state) {
    char *text = grab(8000);
    response a;

    (void)state;
    memset(text, 'w', 8000);
    memcpy(text, "{\"title\": \"", 11);
    memcpy(text + 3000, "\", \"detail\": \"", 14);
    memcpy(text + 6000, "\", \"help\": \"", 12);
    memcpy(text + 7998, "\"}", 2);
    read_response(&a, 400, text, 8000);
    assert_int_equal(strnlen(a.reason, sizeof a.reason), sizeof a.reason - 1);
    assert_non_null(strstr(a.reason, " (400): "));
    free(text);
}

static iron_status read_token(const folder *f, const char *content, mode_t mode, char *token,
                              iron_error *err) {
    file_name n = name_in(f, "token");

    file_write(n.path, content, strlen(content));
    assert_int_equal(chmod(n.path, mode), 0);
    return iron__auth_token_read(n.path, token, err);
}

static void tokens_are_read_from_private_files(void **state) {
    char token[IRON_AUTH_TOKEN_SIZE], longest[IRON_AUTH_TOKEN_SIZE + 1] = "";
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
    memset(longest, 't', IRON_AUTH_TOKEN_SIZE - 1);
    assert_ok(read_token(&f, longest, 0600, token, &err), &err);
    assert_string_equal(token, longest);
    longest[IRON_AUTH_TOKEN_SIZE - 1] = '\n';
    assert_ok(read_token(&f, longest, 0600, token, &err), &err);
    longest[IRON_AUTH_TOKEN_SIZE - 1] = 't';
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
    char token[IRON_AUTH_TOKEN_SIZE];
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
    assert_refused(iron__auth_token_read(f.path, token, &err), IRON_E_ARG, &err);
    assert_refused(iron__auth_token_read(name_in(&f, "none").path, token, &err), IRON_E_IO, &err);
    folder_remove(&f);
}

#define TOKENS 5000u

typedef struct corpus {
    folder place;
    uint16_t tokens[TOKENS];
    shards files;
    iron_source *source;
    iron__parallel_source *at;
} corpus;

static int corpus_make(void **state) {
    static const size_t sizes[] = {1, 1777, 0, 3000, 222};
    corpus *c = grab(sizeof *c);
    iron_error err;

    folder_make(&c->place);
    fill_u16(c->tokens, TOKENS);
    c->files = shards_write(&c->place, c->tokens, sizes, COUNT(sizes));
    c->source = shards_open(&c->files);
    assert_ok(iron__parallel_source_open(c->source, iron__allocator_default(), &c->at, &err), &err);
    *state = c;
    return 0;
}

static int corpus_end(void **state) {
    corpus *c = *state;

    iron__parallel_source_close(c->at);
    iron_source_close(c->source);
    shards_free(&c->files);
    folder_remove(&c->place);
    free(c);
    return 0;
}

typedef struct told {
    uint64_t calls, last, enough; /* cancels at call `enough`; 0: never */
} told;

static int hear(void *context, uint64_t done, uint64_t total) {
    told *t = context;

    assert_true(done <= total);
    t->last = done;
    return ++t->calls == t->enough;
}

/* Buffers of any size, also sizes that split tokens. */
static void bytes_are_the_files(void **state) {
    corpus *c = *state;
    char *bytes = grab(TOKENS * 2 + 64);
    rng r = {5};

    for (int round = 0; round < 300; round++) {
        uint64_t first = rng_below(&r, TOKENS), count = 1 + rng_below(&r, TOKENS - first);
        told t = {0};
        push_progress progress = {hear, &t, 0, TOKENS};
        request_body body = {
            .at = c->at, .width = 2, .first = first, .tokens = count, .progress = &progress};
        size_t done = 0, some;

        memset(bytes, 0xEE, TOKENS * 2 + 64);
        while ((some = body_take(&body, bytes + done, 1 + rng_below(&r, 999))) > 0)
            done += some;
        assert_int_equal(body.status, IRON_OK);
        assert_int_equal(done, 2 * count);
        assert_int_equal(done, body.tokens * body.width);
        assert_memory_equal(bytes, c->tokens + first, done);
        assert_int_equal((unsigned char)bytes[done], 0xEE);
        assert_true(t.calls > 0 && t.last >= first && t.last < first + count);
    }
    free(bytes);
}

static void a_body_can_be_cancelled(void **state) {
    corpus *c = *state;
    told t = {.enough = 3};
    push_progress progress = {hear, &t, 0, TOKENS};
    request_body body = {.at = c->at, .width = 2, .tokens = TOKENS, .progress = &progress};
    char room[100];

    assert_int_equal(body_take(&body, room, sizeof room), 100);
    assert_int_equal(body_take(&body, room, sizeof room), 100);
    assert_int_equal(body_take(&body, room, sizeof room), 0);
    assert_int_equal(body.status, IRON_E_CANCELLED);
    assert_int_equal(body.error.status, IRON_E_CANCELLED);
    assert_int_equal(body_take(&body, room, sizeof room), 0);
}

/* A file that became shorter ends the body with an error, not the process. */
static void a_shorter_file_is_an_error(void **state) {
    corpus *c = *state;
    push_progress progress = {0};
    request_body body = {.at = c->at, .width = 2, .tokens = TOKENS, .progress = &progress};
    char *room = grab(2 * TOKENS);

    assert_int_equal(truncate(c->files.paths[3], 100), 0);
    assert_int_equal(body_take(&body, room, 2 * TOKENS), 0);
    assert_int_equal(body.status, IRON_E_IO);
    assert_true(body.error.text[0] != '\0');
    free(room);
}

/* Against a digest that was fed the tokens in one piece. */
static void prefixes_are_sealed(void **state) {
    const push_progress none = {0};
    corpus *c = *state;

    for (uint64_t count = 1; count <= TOKENS; count += count < 24 ? 1 : 97) {
        iron_digest_result want = {.struct_size = sizeof want};
        char seal[IRON_SEAL_TEXT];
        iron_digest digest;
        iron_error err;

        assert_ok(iron_digest_init(&digest, NULL, &err), &err);
        assert_ok(iron_digest_update(&digest, 0, IRON_DTYPE_U16, c->tokens, count, &err), &err);
        assert_ok(iron_digest_final(&digest, &want, &err), &err);
        iron_digest_deinit(&digest);
        assert_ok(seal_prefix(c->source, c->at, count, &none, seal, &err), &err);
        assert_string_equal(seal, want.seal);
    }
}

static void pieces_are_whole_batches(void **state) {
    (void)state;
    assert_int_equal(piece_tokens(0, 786432, 2), 170 * 786432);
    assert_int_equal(piece_tokens(0, 786432, 4), 85 * 786432);
    assert_int_equal(piece_tokens(100, 7, 2), 98);
    assert_int_equal(piece_tokens(7, 7, 2), 7);
    assert_int_equal(piece_tokens(3, 7, 2), 7);
    assert_int_equal(piece_tokens(1, 1, 8), 1);
    /* a batch that is larger than a piece: one batch */
    assert_int_equal(piece_tokens(0, UINT64_C(1) << 40, 4), UINT64_C(1) << 40);
}

/* From any position, the pieces continue to the end without a gap, and all but the last are
 * whole. */
static void pieces_cover_the_rest(void **state) {
    rng r = {2026};

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint64_t batch = 1 + rng_below(&r, 50), tokens = rng_below(&r, 2000);
        push_plan plan = {rng_below(&r, 1000), tokens,
                          piece_tokens(1 + rng_below(&r, 300), batch, 4)};
        uint64_t position = plan.base + rng_below(&r, tokens + 1), first = position - plan.base;
        file_piece piece;

        while ((piece = piece_at(&plan, position)).tokens > 0) {
            assert_int_equal(piece.at, position);
            assert_int_equal(piece.first, first);
            assert_true(piece.tokens % batch == 0 || first + piece.tokens == tokens);
            position += piece.tokens;
            first += piece.tokens;
        }
        assert_int_equal(first, tokens);
    }
}

static response answered(unsigned status) { return (response){.status = status}; }

static response at_token(uint64_t tokens) {
    return (response){.status = 200, .has_engine = true, .engine.tokens = tokens};
}

static const file_piece piece = {100, 60, 20};

static void a_response_moves_on_or_shows_another_client(void **state) {
    response a = at_token(120);

    (void)state;
    assert_int_equal(after_send(&a, &piece), STEP_NEXT);
    a = at_token(119);
    assert_int_equal(after_send(&a, &piece), STEP_CONFLICT);
    a = at_token(100);
    assert_int_equal(after_send(&a, &piece), STEP_CONFLICT);
    a = at_token(140);
    assert_int_equal(after_send(&a, &piece), STEP_CONFLICT);
    a = answered(200); /* a 200 that is not an engine */
    assert_int_equal(after_send(&a, &piece), STEP_REFUSED);
    assert_int_equal(after_ask(&a, &piece), STEP_REFUSED);
}

static void the_position_decides(void **state) {
    response a = at_token(100);

    (void)state;
    assert_int_equal(after_ask(&a, &piece), STEP_SEND);
    a = at_token(120);
    assert_int_equal(after_ask(&a, &piece), STEP_NEXT);
    for (uint64_t tokens = 0; tokens < 200; tokens++) {
        a = at_token(tokens);
        if (tokens != 100 && tokens != 120)
            assert_int_equal(after_ask(&a, &piece), STEP_CONFLICT);
    }
}

static void a_refused_piece_was_not_taken(void **state) {
    static const unsigned sure[] = {200, 400, 408, 409, 422, 429, 503};
    static const unsigned unsure[] = {0, 500, 502, 504};

    (void)state;
    for (size_t k = 0; k < COUNT(sure); k++)
        assert_false(may_be_taken(&(response){.status = sure[k]}));
    for (size_t k = 0; k < COUNT(unsure); k++)
        assert_true(may_be_taken(&(response){.status = unsure[k]}));
}

static void temporary_errors_are_retried(void **state) {
    static const unsigned passing[] = {408, 429, 502, 503, 504};
    static const unsigned final[] = {301, 400, 401, 403, 404, 405, 411, 413,
                                     415, 421, 422, 431, 500, 501, 507};
    response a = {.is_lost = true};

    (void)state;
    assert_int_equal(after_send(&a, &piece), STEP_ASK);
    assert_int_equal(after_ask(&a, &piece), STEP_ASK);
    for (size_t k = 0; k < COUNT(passing); k++) {
        a = answered(passing[k]);
        assert_int_equal(after_send(&a, &piece), STEP_ASK);
        assert_int_equal(after_ask(&a, &piece), STEP_ASK);
    }
    for (size_t k = 0; k < COUNT(final); k++) {
        a = answered(final[k]);
        assert_int_equal(after_send(&a, &piece), STEP_REFUSED);
        assert_int_equal(after_ask(&a, &piece), STEP_REFUSED);
    }
    /* an untrusted certificate, a response without end */
    a = (response){.is_lost = false};
    assert_int_equal(after_send(&a, &piece), STEP_REFUSED);
    a = answered(409);
    assert_int_equal(after_send(&a, &piece), STEP_ASK);
    assert_int_equal(after_ask(&a, &piece), STEP_REFUSED);
    a = answered(500);
    a.retry_after_s = 1;
    assert_int_equal(after_send(&a, &piece), STEP_ASK);
    a = answered(503);
    a.is_read_only = true;
    assert_int_equal(after_send(&a, &piece), STEP_REFUSED);
}

static void pauses_grow_and_differ(void **state) {
    static const uint64_t full[] = {200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    rng r = {7};

    (void)state;
    for (uint32_t attempt = 1; attempt <= COUNT(full); attempt++) {
        uint64_t least = UINT64_MAX, most = 0, whole = full[attempt - 1];

        for (int k = 0; k < 1000; k++) {
            uint64_t pause = pause_ms(attempt, rng_next(&r), 0);

            least = pause < least ? pause : least;
            most = pause > most ? pause : most;
        }
        assert_true(least > whole / 2 && least < whole * 6 / 10);
        assert_true(most <= whole && most > whole * 9 / 10);
    }
    assert_true(pause_ms(UINT32_MAX, rng_next(&r), 0) <= 30000);
    assert_int_equal(pause_ms(1, rng_next(&r), 7), 7000);
    assert_true(pause_ms(8, 0, 1) == 25600);
    assert_int_equal(pause_ms(1, rng_next(&r), UINT64_MAX), 300000);
}

/* A model server with a position: requests and responses get lost, and a request whose response was
 * lost may take effect later, during the next pause. */
typedef struct model {
    rng r;
    uint64_t tokens;
    uint64_t late_at, late_tokens; /* what will still take effect, if the position fits then */
    uint32_t fed[64];              /* how often each token was fed */
} model;

static bool model_take(model *m, uint64_t at, uint64_t tokens) {
    if (m->tokens != at)
        return false;
    for (uint64_t k = at; k < at + tokens; k++)
        m->fed[k]++;
    m->tokens += tokens;
    return true;
}

static response model_feed(model *m, const file_piece *p) {
    switch (rng_below(&m->r, 6)) {
    case 0:
        return (response){.is_lost = true};
    case 1:
        (void)model_take(m, p->at, p->tokens);
        return (response){.is_lost = true};
    case 2:
        m->late_at = p->at;
        m->late_tokens = p->tokens;
        return (response){.is_lost = true};
    case 3:
        return answered(503);
    default:
        return model_take(m, p->at, p->tokens) ? at_token(m->tokens) : answered(409);
    }
}

static response model_ask(model *m) {
    response answer = at_token(m->tokens);

    if (rng_below(&m->r, 4) == 0)
        answer = (response){.is_lost = true};
    if (rng_below(&m->r, 2) == 0) { /* before or after the answer was made: it may be out of date */
        (void)model_take(m, m->late_at, m->late_tokens);
        m->late_tokens = 0;
    }
    return answer;
}

static void every_token_goes_in_once(void **state) {
    (void)state;
    for (uint64_t round = 1; round <= 5000; round++) {
        model m = {.r = {round}};
        push_plan plan = {0, 1 + rng_below(&m.r, 64), 1 + rng_below(&m.r, 20)};

        for (uint64_t position = 0; position < plan.tokens;) {
            file_piece p = piece_at(&plan, position);
            next_step step = STEP_SEND;

            while (step == STEP_SEND || step == STEP_ASK) {
                bool sends = step == STEP_SEND;
                response a = sends ? model_feed(&m, &p) : model_ask(&m);

                step = (sends ? after_send : after_ask)(&a, &p);
            }
            assert_int_equal(step, STEP_NEXT);
            position += p.tokens;
        }
        for (uint64_t k = 0; k < plan.tokens; k++)
            assert_int_equal(m.fed[k], 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_split),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(lengths_have_limits),
        cmocka_unit_test(an_engine_is_read),
        cmocka_unit_test(incomplete_engines_are_refused),
        cmocka_unit_test(problems_are_one_plain_line),
        cmocka_unit_test(long_reasons_are_cut),
        cmocka_unit_test(tokens_are_read_from_private_files),
        cmocka_unit_test(other_token_files_are_refused_and_not_shown),
        cmocka_unit_test_setup_teardown(bytes_are_the_files, corpus_make, corpus_end),
        cmocka_unit_test_setup_teardown(a_body_can_be_cancelled, corpus_make, corpus_end),
        cmocka_unit_test_setup_teardown(a_shorter_file_is_an_error, corpus_make, corpus_end),
        cmocka_unit_test_setup_teardown(prefixes_are_sealed, corpus_make, corpus_end),
        cmocka_unit_test(pieces_are_whole_batches),
        cmocka_unit_test(pieces_cover_the_rest),
        cmocka_unit_test(a_response_moves_on_or_shows_another_client),
        cmocka_unit_test(the_position_decides),
        cmocka_unit_test(a_refused_piece_was_not_taken),
        cmocka_unit_test(temporary_errors_are_retried),
        cmocka_unit_test(pauses_grow_and_differ),
        cmocka_unit_test(every_token_goes_in_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
