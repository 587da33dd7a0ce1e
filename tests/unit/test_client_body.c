/* SPDX-License-Identifier: MIT */
/* A piece as bytes, in whatever amounts they are taken; and the seal of a file's beginning. */
#include "source_support.h"

#include "client/push_body.h"
#include "client/push_prefix.h"
#include "core/memory.h"

#define TOKENS 5000u

typedef struct corpus {
    folder place;
    uint16_t tokens[TOKENS];
    shards files;
    iron_source *source;
    iron__source_at *at;
} corpus;

static int corpus_make(void **state) {
    static const size_t sizes[] = {1, 1777, 0, 3000, 222};
    corpus *c = grab(sizeof *c);
    iron_error err;

    folder_make(&c->place);
    fill_u16(c->tokens, TOKENS);
    c->files = shards_write(&c->place, c->tokens, sizes, COUNT(sizes));
    c->source = shards_open(&c->files);
    assert_ok(iron__source_at_open(c->source, iron__allocator_default(), &c->at, &err), &err);
    *state = c;
    return 0;
}

static int corpus_end(void **state) {
    corpus *c = *state;

    iron__source_at_close(c->at);
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

/* Any room, also one that cuts tokens in two. */
static void bytes_are_the_files(void **state) {
    corpus *c = *state;
    char *bytes = grab(TOKENS * 2 + 64);
    dice d = {5};

    for (int round = 0; round < 300; round++) {
        uint64_t first = roll_below(&d, TOKENS), count = 1 + roll_below(&d, TOKENS - first);
        told t = {0};
        iron__push_teller teller = {hear, &t, 0, TOKENS};
        iron__push_body body = {
            .at = c->at, .width = 2, .first = first, .tokens = count, .teller = &teller};
        size_t done = 0, some;

        memset(bytes, 0xEE, TOKENS * 2 + 64);
        while ((some = iron__push_body_take(&body, bytes + done, 1 + roll_below(&d, 999))) > 0)
            done += some;
        assert_int_equal(body.status, IRON_OK);
        assert_int_equal(done, 2 * count);
        assert_int_equal(done, iron__push_body_bytes(&body));
        assert_memory_equal(bytes, c->tokens + first, done);
        assert_int_equal((unsigned char)bytes[done], 0xEE);
        assert_true(t.calls > 0 && t.last >= first && t.last < first + count);
    }
    free(bytes);
}

static void a_body_can_be_called_off(void **state) {
    corpus *c = *state;
    told t = {.enough = 3};
    iron__push_teller teller = {hear, &t, 0, TOKENS};
    iron__push_body body = {.at = c->at, .width = 2, .tokens = TOKENS, .teller = &teller};
    char room[100];

    assert_int_equal(iron__push_body_take(&body, room, sizeof room), 100);
    assert_int_equal(iron__push_body_take(&body, room, sizeof room), 100);
    assert_int_equal(iron__push_body_take(&body, room, sizeof room), 0);
    assert_int_equal(body.status, IRON_E_CANCELLED);
    assert_int_equal(body.error.status, IRON_E_CANCELLED);
    assert_int_equal(iron__push_body_take(&body, room, sizeof room), 0);
}

/* A file that became shorter ends the body with an error, not the process. */
static void a_shorter_file_is_an_error(void **state) {
    corpus *c = *state;
    iron__push_teller teller = {0};
    iron__push_body body = {.at = c->at, .width = 2, .tokens = TOKENS, .teller = &teller};
    char *room = grab(2 * TOKENS);

    assert_int_equal(truncate(c->files.paths[3], 100), 0);
    assert_int_equal(iron__push_body_take(&body, room, 2 * TOKENS), 0);
    assert_int_equal(body.status, IRON_E_IO);
    assert_true(body.error.text[0] != '\0');
    free(room);
}

/* Against a digest that was fed the tokens in one piece. */
static void prefixes_are_sealed(void **state) {
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
        assert_ok(iron__push_prefix_seal(c->source, c->at, count, NULL, NULL, seal, &err), &err);
        assert_string_equal(seal, want.seal);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_the_files, corpus_make, corpus_end),
        cmocka_unit_test_setup_teardown(a_body_can_be_called_off, corpus_make, corpus_end),
        cmocka_unit_test_setup_teardown(a_shorter_file_is_an_error, corpus_make, corpus_end),
        cmocka_unit_test_setup_teardown(prefixes_are_sealed, corpus_make, corpus_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
