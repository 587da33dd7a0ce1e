/* SPDX-License-Identifier: MIT */
/*
 * test_store_keys.c: a feed with a key is fed once. Repeated, it gets the first answer; with other
 * tokens it is refused, for bodies of any size, also after a restart.
 */
#include "place.h"
#include "store_support.h"

#include <pthread.h>
#include <unistd.h>

#define LARGE_TOKENS ((size_t)50000)

static void assert_repeats(iron__store_engine *entry, feeding how, const void *body, size_t bytes,
                           const iron__feed_answer *first) {
    iron__store_engine_view before = look_at(entry);
    iron__feed_answer answer;
    iron_error err = {0};

    assert_int_equal(feed_as(entry, how, body, bytes, &answer, &err), IRON_FEED_REPEATED);
    assert_true(answer.tokens == first->tokens && answer.batches == first->batches);
    assert_true(answer.sum == first->sum && answer.xors == first->xors);
    assert_true(answer.state == first->state && answer.fed_tokens == first->fed_tokens);
    assert_true(answer.fed_batches == first->fed_batches);
    assert_true(answer.position == before.tokens);
    assert_string_equal(answer.seal, first->seal);
    assert_true(look_at(entry).version == before.version);
}

static void assert_reused(iron__store_engine *entry, feeding how, const void *body, size_t bytes) {
    iron__store_engine_view before = look_at(entry);
    iron__feed_answer answer;
    iron_error err = {0};

    assert_int_equal(feed_as(entry, how, body, bytes, &answer, &err), IRON_FEED_KEY_REUSED);
    assert_says(&err, "key");
    assert_true(look_at(entry).version == before.version);
}

/* Feeds with keys, and others in between; then each key again, with the same and with other
 * tokens. */
static void check_all(iron__store_engine *entry, const uint32_t *tokens,
                      const iron__feed_answer *answers, const size_t *lengths, size_t count) {
    char key[32];

    for (size_t k = 0; k < count; k++) {
        size_t bytes = 4 * lengths[k];
        uint32_t *other = grab(bytes + 8);
        uint16_t *narrow = grab(bytes / 2 + 2);

        snprintf(key, sizeof key, "key-%zu", k);
        memcpy(other, tokens + k, bytes + 8);
        for (size_t t = 0; t < lengths[k]; t++)
            narrow[t] = (uint16_t)tokens[k + t];
        assert_repeats(entry, (feeding){.key = key}, tokens + k, bytes, &answers[k]);
        assert_repeats(entry, (feeding){.key = key, .is_chunked = true, .piece = 999}, tokens + k,
                       bytes, &answers[k]);
        /* the key is looked up before the position is checked */
        assert_repeats(entry, (feeding){.key = key, .has_at = true, .at = 12345678}, tokens + k,
                       bytes, &answers[k]);
        assert_repeats(entry, (feeding){.key = key, .dtype = IRON_DTYPE_U16}, narrow, bytes / 2,
                       &answers[k]);
        assert_reused(entry, (feeding){.key = key}, other, bytes + 4);
        assert_reused(entry, (feeding){.key = key, .is_chunked = true}, other, bytes + 4);
        if (bytes > 0) {
            assert_reused(entry, (feeding){.key = key}, other, bytes - 4);
            other[lengths[k] / 2] ^= 1;
            assert_reused(entry, (feeding){.key = key}, other, bytes);
            assert_reused(entry, (feeding){.key = key, .is_chunked = true}, other, bytes);
        }
        free(other);
        free(narrow);
    }
}

static void keys_are_remembered(void **state) {
    static const size_t lengths[] = {5, 0, 1, LARGE_TOKENS, 16384, 0, 3, LARGE_TOKENS + 1, 7};
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("keyed");
    iron__store_engine *entry = make_engine(store, &plan);
    iron_engine *direct = direct_engine(&plan);
    uint32_t *tokens = grab_tokens(7, 1000, LARGE_TOKENS + 100);
    iron__feed_answer answers[COUNT(lengths)];
    iron_report want;
    char key[32];

    (void)state;
    for (size_t k = 0; k < COUNT(lengths); k++) {
        snprintf(key, sizeof key, "key-%zu", k);
        answers[k] = feed_done(entry, (feeding){.key = key}, tokens + k, 4 * lengths[k]);
        direct_feed(direct, IRON_DTYPE_U32, tokens + k, lengths[k]);
        feed_done(entry, (feeding){.key = NULL}, tokens, 4 * k);
        want = direct_feed(direct, IRON_DTYPE_U32, tokens, k);
    }
    assert_view(entry, &want);
    check_all(entry, tokens, answers, lengths, COUNT(lengths));
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place);
    entry = found(store, "keyed");
    assert_view(entry, &want);
    check_all(entry, tokens, answers, lengths, COUNT(lengths));
    assert_view(entry, &want);
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* Every engine has its own keys, which are deleted with it. */
static void keys_belong_to_an_engine(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("a"), other = small_plan("b");
    iron__store_engine *a = make_engine(store, &plan), *b = make_engine(store, &other);
    uint32_t one[] = {1, 2}, two[] = {3};

    (void)state;
    feed_done(a, (feeding){.key = "k"}, one, sizeof one);
    feed_done(b, (feeding){.key = "k"}, two, sizeof two);
    assert_reused(a, (feeding){.key = "k"}, two, sizeof two);
    assert_int_equal(iron__store_delete(store, a, NULL), IRON_OK);
    iron__store_engine_release(a);
    a = make_engine(store, &plan);
    feed_done(a, (feeding){.key = "k"}, two, sizeof two);
    iron__store_engine_release(a);
    iron__store_engine_release(b);
    iron__store_close(store);
}

static void keys_have_a_length(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("long");
    iron__store_engine *entry = make_engine(store, &plan);
    char key[IRON_FEED_KEY_MAX + 2];
    uint32_t token = 1;
    iron__feed_answer answer;
    iron_error err = {0};

    (void)state;
    memset(key, 'k', sizeof key);
    key[IRON_FEED_KEY_MAX + 1] = '\0';
    assert_int_equal(feed_as(entry, (feeding){.key = key}, &token, 4, &answer, &err),
                     IRON_FEED_FAILED);
    assert_int_equal(feed_as(entry, (feeding){.key = ""}, &token, 4, &answer, &err),
                     IRON_FEED_FAILED);
    key[IRON_FEED_KEY_MAX] = '\0';
    answer = feed_done(entry, (feeding){.key = key}, &token, 4);
    assert_repeats(entry, (feeding){.key = key}, &token, 4, &answer);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* Two large bodies with one new key, both begun before either ended. */
static void one_key_in_two_concurrent_bodies(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("twice");
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t *tokens = grab_tokens(1, 1000, LARGE_TOKENS);
    iron__feed_request request = {
        .dtype = IRON_DTYPE_U32, .key = "once", .expected_bytes = 4 * LARGE_TOKENS};
    iron__feed_answer first, second;
    iron__feed *feeds[3];
    iron_error err;

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(iron__feed_begin(entry, &request, &feeds[k], &first, &err),
                         IRON_FEED_DONE);
        tokens[9] ^= k == 2; /* the third has other content */
        assert_int_equal(iron__feed_take(feeds[k], tokens, 4 * LARGE_TOKENS, &first, &err),
                         IRON_FEED_DONE);
    }
    assert_int_equal(iron__feed_end(feeds[0], &first, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(feeds[1], &second, &err), IRON_FEED_REPEATED);
    assert_true(second.state == first.state && second.fed_tokens == first.fed_tokens);
    assert_int_equal(iron__feed_end(feeds[2], &second, &err), IRON_FEED_KEY_REUSED);
    /* begun at another position: it gets the position, and the next try is a repeat */
    request.key = "later";
    assert_int_equal(iron__feed_begin(entry, &request, &feeds[0], &first, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(feeds[0], tokens, 4 * LARGE_TOKENS, &first, &err),
                     IRON_FEED_DONE);
    feed_done(entry, (feeding){.key = NULL}, tokens, 4);
    first = feed_done(entry, (feeding){.key = "later"}, tokens, 4 * LARGE_TOKENS);
    assert_int_equal(iron__feed_end(feeds[0], &second, &err), IRON_FEED_POSITION);
    assert_repeats(entry, (feeding){.key = "later"}, tokens, 4 * LARGE_TOKENS, &first);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

typedef struct retrier {
    pthread_t thread;
    iron__store_engine *entry;
    const uint32_t *tokens;
    size_t done, repeated;
} retrier;

#define KEYS 50

static void *retry(void *context) {
    retrier *r = context;

    for (size_t k = 0; k < KEYS; k++) {
        size_t bytes = k % 10 == 9 ? 4 * LARGE_TOKENS : 4 * (k + 1);
        iron__feed_outcome outcome = IRON_FEED_POSITION;
        iron__feed_answer answer;
        iron_error err = {0};
        char key[32];

        snprintf(key, sizeof key, "shared-%zu", k);
        while (outcome == IRON_FEED_POSITION)
            outcome = feed_as(r->entry, (feeding){.key = key}, r->tokens + k, bytes, &answer, &err);
        r->done += outcome == IRON_FEED_DONE;
        r->repeated += outcome == IRON_FEED_REPEATED;
    }
    return NULL;
}

/* Eight threads feed the same bodies with the same keys: each is fed once. */
static void concurrent_retries_count_once(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("crowd");
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t *tokens = grab_tokens(1, 1000, LARGE_TOKENS + KEYS);
    retrier crowd[8];
    size_t done = 0, repeated = 0;
    uint64_t fed = 0;

    (void)state;
    for (size_t k = 0; k < COUNT(crowd); k++) {
        crowd[k] = (retrier){.entry = entry, .tokens = tokens};
        assert_int_equal(pthread_create(&crowd[k].thread, NULL, retry, &crowd[k]), 0);
    }
    for (size_t k = 0; k < COUNT(crowd); k++) {
        pthread_join(crowd[k].thread, NULL);
        done += crowd[k].done;
        repeated += crowd[k].repeated;
    }
    for (size_t k = 0; k < KEYS; k++)
        fed += k % 10 == 9 ? LARGE_TOKENS : k + 1;
    assert_int_equal(done, KEYS);
    assert_int_equal(repeated, 7 * KEYS);
    assert_true(look_at(entry).tokens == fed && look_at(entry).feeds == KEYS);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

/* --keep-keys: after that time a key is as if it had never been used, for bodies of any size. */
static void keys_expire(void **state) {
    static const size_t sizes[] = {40, 4 * LARGE_TOKENS};
    iron__store_options brief = {.keep_keys_ms = 1};
    iron__store *store = store_at_with(&place, brief);
    iron__store_plan plan = small_plan("brief");
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t *tokens = grab_tokens(3, 1000, LARGE_TOKENS);
    iron__feed_answer answer;

    (void)state;
    for (uint32_t k = 0; k < 4; k++) {
        size_t bytes = sizes[k % 2];

        answer = feed_done(entry, (feeding){.key = "same", .is_chunked = k > 1}, tokens, bytes);
        assert_true(answer.fed_tokens == bytes / 4);
        usleep(3000);
    }
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place); /* where keys do not expire, the last one counts */
    entry = found(store, "brief");
    assert_true(look_at(entry).feeds == 4);
    assert_repeats(entry, (feeding){.key = "same"}, tokens, sizes[1], &answer);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(keys_are_remembered),
        IN_A_PLACE(keys_belong_to_an_engine),
        IN_A_PLACE(keys_have_a_length),
        IN_A_PLACE(one_key_in_two_concurrent_bodies),
        IN_A_PLACE(concurrent_retries_count_once),
        IN_A_PLACE(keys_expire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
