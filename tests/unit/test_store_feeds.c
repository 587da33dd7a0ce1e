/* SPDX-License-Identifier: MIT */
/*
 * test_store_feeds.c: the results of feeds: small and large bodies, split anywhere, compared with
 * an engine that was fed directly; refused feeds leave nothing behind; acknowledged feeds survive
 * closing the store, and a crash.
 */
#include "place.h"
#include "store/store_internal.h"
#include "store_support.h"

#include <sys/wait.h>

#define LARGE_TOKENS (IRON_SMALL_BODY / 4 + 1234)

/* Bodies of many lengths, small and large: each response equals the direct engine's, and everything
 * is present after closing and reopening. */
static void feeds_equal_a_direct_engine(void **state) {
    static const size_t lengths[] = {
        1, 2,     3,     4, 5, 9, 10, 11, 100, 1000, LARGE_TOKENS, 7, LARGE_TOKENS + 3,
        1, 16384, 16385, 20};
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("one");
    iron__store_engine *entry = make_engine(store, &plan);
    iron_engine *direct = direct_engine(&plan);
    uint32_t *tokens = grab_tokens(3, 5000, LARGE_TOKENS + 100);
    iron_report want = report_now(direct);

    (void)state;
    assert_view(entry, &want);
    for (size_t k = 0; k < COUNT(lengths); k++) {
        const uint32_t *body = tokens + k;
        iron__feed_answer answer =
            feed_done(entry, (feeding){.is_chunked = k % 2}, body, 4 * lengths[k]);

        want = direct_feed(direct, IRON_DTYPE_U32, body, lengths[k]);
        assert_answer(&answer, &want);
        assert_true(answer.fed_tokens == lengths[k] && answer.position == want.tokens);
        assert_true(answer.fed_batches == (lengths[k] + plan.batch - 1) / plan.batch);
        assert_view(entry, &want);
        assert_true(look_at(entry).feeds == k + 1);
    }
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place);
    entry = found(store, "one");
    assert_view(entry, &want);
    assert_true(look_at(entry).feeds == COUNT(lengths));
    feed_done(entry, (feeding){.has_at = true, .at = want.tokens}, tokens, 4);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 1);
    assert_view(entry, &want);
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* The configuration of the papers, the default, through the store. */
static void golden_values(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan;
    iron__store_engine *entry;
    iron_engine *direct;
    uint32_t *tokens = grab_tokens(1, 50257, 1000000);
    iron__feed_answer answer;
    iron_report want;

    (void)state;
    iron__store_plan_init(&plan);
    strcpy(plan.name, "golden");
    entry = make_engine(store, &plan);
    direct = direct_engine(&plan);
    answer = feed_done(entry, (feeding){.piece = 100000}, tokens, 4000000);
    want = direct_feed(direct, IRON_DTYPE_U32, tokens, 1000000);
    assert_answer(&answer, &want);
    assert_true(answer.batches == 2);
    assert_string_equal(look_at(entry).plan.backend, "cpu");
    assert_int_equal(look_at(entry).plan.lattice_count, 12);
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* The result does not depend on how a body is split, for any dtype, small and large. */
static void splitting_does_not_matter(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I32, IRON_DTYPE_I64};
    iron__store *store = store_at(&place);
    unsigned char *body = grab(200000);

    (void)state;
    memset(body, 0, 200000);
    for (size_t k = 0; k < 200000; k += 8)
        body[k] = (unsigned char)(k / 8 * 37);
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        size_t width = iron_dtype_bytes(dtypes[d]);
        iron__store_plan plan = small_plan("cuts");
        iron_engine *direct = direct_engine(&plan);
        iron__store_engine *entry = make_engine(store, &plan);

        for (size_t piece = 1; piece <= 40; piece += 1 + piece / 12) {
            size_t bytes = (IRON_SMALL_BODY + 1000 + 8 * piece) / width * width;
            iron_report want = direct_feed(direct, dtypes[d], body, bytes / width);
            iron__feed_answer answer = feed_done(entry,
                                                 (feeding){.dtype = dtypes[d],
                                                           .piece = piece == 40 ? 7777 : piece,
                                                           .is_chunked = piece % 2},
                                                 body, bytes);

            assert_answer(&answer, &want);
        }
        for (size_t piece = 4099; piece < 4110; piece++) {
            iron_report want = direct_feed(direct, dtypes[d], body, 200000 / width);
            iron__feed_answer answer =
                feed_done(entry, (feeding){.dtype = dtypes[d], .piece = piece}, body, 200000);

            assert_answer(&answer, &want);
        }
        iron_engine_destroy(direct);
        assert_int_equal(iron__store_delete(store, entry, NULL), IRON_OK);
        iron__store_engine_release(entry);
    }
    iron__store_close(store);
    free(body);
}

static void assert_refuses(iron__store_engine *entry, feeding how, const void *body, size_t bytes,
                           iron__feed_outcome want) {
    iron__store_engine_view before = look_at(entry), after;
    iron__feed_answer answer;
    iron_error err = {0};

    assert_int_equal(feed_as(entry, how, body, bytes, &answer, &err), want);
    assert_true(err.text[0] != '\0');
    if (want == IRON_FEED_POSITION)
        assert_true(answer.position == before.tokens);
    after = look_at(entry);
    assert_true(before.version == after.version && before.state == after.state);
}

static void refusals_leave_nothing(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("refused");
    iron__store_engine *entry = make_engine(store, &plan);
    size_t bytes = 2 * IRON_SMALL_BODY;
    int32_t *body = grab(bytes);

    (void)state;
    memset(body, 0, bytes);
    feed_done(entry, (feeding){.has_at = true, .at = 0}, body, 40);
    assert_refuses(entry, (feeding){.has_at = true, .at = 9}, body, 40, IRON_FEED_POSITION);
    assert_refuses(entry, (feeding){.has_at = true, .at = 9}, body, 0, IRON_FEED_POSITION);
    assert_refuses(entry, (feeding){.has_at = true, .at = 11}, body, bytes, IRON_FEED_POSITION);
    assert_refuses(entry, (feeding){.has_at = true, .at = 11, .is_chunked = true}, body, bytes,
                   IRON_FEED_POSITION);
    for (size_t ragged = 1; ragged < 4; ragged++) {
        assert_refuses(entry, (feeding){.has_at = false}, body, 8 + ragged, IRON_FEED_RAGGED);
        assert_refuses(entry, (feeding){.is_chunked = true}, body, 8 + ragged, IRON_FEED_RAGGED);
        assert_refuses(entry, (feeding){.is_chunked = true, .piece = 1000}, body, bytes - ragged,
                       IRON_FEED_RAGGED);
    }
    body[7] = -1;
    assert_refuses(entry, (feeding){.dtype = IRON_DTYPE_I32}, body, 40, IRON_FEED_BAD_TOKEN);
    assert_refuses(entry, (feeding){.dtype = IRON_DTYPE_I32}, body, bytes, IRON_FEED_BAD_TOKEN);
    assert_refuses(entry, (feeding){.dtype = IRON_DTYPE_I64}, body, 40, IRON_FEED_BAD_TOKEN);
    body[7] = 0;
    body[bytes / 4 - 1] = -5;
    assert_refuses(entry, (feeding){.dtype = IRON_DTYPE_I32}, body, bytes, IRON_FEED_BAD_TOKEN);
    assert_refuses(entry, (feeding){.dtype = IRON_DTYPE_NONE + 77}, body, 40, IRON_FEED_FAILED);
    /* and feeding continues */
    feed_done(entry, (feeding){.has_at = true, .at = 10}, body, 40);
    assert_true(look_at(entry).tokens == 20 && look_at(entry).feeds == 2);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(body);
}

static void empty_bodies_change_nothing(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("empty");
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t tokens[] = {1, 2, 3};
    iron__feed_answer first = feed_done(entry, (feeding){.dtype = IRON_DTYPE_U32}, tokens, 12);
    iron__feed_answer again = feed_done(entry, (feeding){.dtype = IRON_DTYPE_U32}, tokens, 0);
    iron__store_engine_view view = look_at(entry);

    (void)state;
    assert_true(again.state == first.state && again.tokens == 3 && again.fed_tokens == 0);
    assert_true(view.feeds == 1 && view.batches == 1);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* Abandoned bodies, small and large, before and after blocks were written. */
static void abandoned_bodies_leave_nothing(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("left");
    uint32_t *tokens = grab_tokens(1, 1000, 100000);
    iron__store_engine *entry;

    (void)state;
    plan.batch = 1;
    entry = make_engine(store, &plan);
    for (size_t bytes = 4; bytes <= 400000; bytes *= 10) {
        iron__feed_request request = {.dtype = IRON_DTYPE_U32, .expected_bytes = 400000};
        iron__feed_answer answer;
        iron__feed *feed;
        iron_error err;

        assert_int_equal(iron__feed_begin(entry, &request, &feed, &answer, &err), IRON_FEED_DONE);
        assert_int_equal((int)atomic_load(&store->feeds_open), 1);
        assert_int_equal(iron__feed_take(feed, tokens, bytes, &answer, &err), IRON_FEED_DONE);
        iron__feed_abandon(feed);
        assert_int_equal((int)atomic_load(&store->feeds_open), 0);
    }
    assert_true(look_at(entry).tokens == 0 && look_at(entry).version == 2);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

/* A process that feeds, reports what was acknowledged, and exits without closing the store. */
static void feed_and_vanish(const uint32_t *tokens, int pipe_end) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("vanish");
    iron__store_engine *entry = make_engine(store, &plan);

    for (size_t k = 1; k <= 30; k++) {
        size_t count = k % 10 == 0 ? LARGE_TOKENS : k;
        iron__feed_answer answer =
            feed_done(entry, (feeding){.dtype = IRON_DTYPE_U32}, tokens, 4 * count);

        if (write(pipe_end, &answer, sizeof answer) != sizeof answer)
            _exit(2);
    }
    _exit(0);
}

static void acknowledged_feeds_survive_a_crash(void **state) {
    uint32_t *tokens = grab_tokens(9, 1000, LARGE_TOKENS);
    iron_engine *direct;
    iron__store_plan plan = small_plan("vanish");
    iron__feed_answer answer = {0};
    iron_report want = {0};
    iron__store *store;
    iron__store_engine *entry;
    int ends[2], status;
    size_t told = 0;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        feed_and_vanish(tokens, ends[1]);
    close(ends[1]);
    direct = direct_engine(&plan);
    while (read(ends[0], &answer, sizeof answer) == sizeof answer) {
        told++;
        want = direct_feed(direct, IRON_DTYPE_U32, tokens, told % 10 == 0 ? LARGE_TOKENS : told);
        assert_answer(&answer, &want);
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(told, 30);
    store = store_at(&place);
    entry = found(store, "vanish");
    assert_view(entry, &want);
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
    free(tokens);
}

/* Two large bodies begun at one position: the first to finish is accepted, the other gets the
 * position. */
static void overtaken_bodies_get_the_position(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("overtaken");
    iron__store_engine *entry = make_engine(store, &plan);
    uint32_t *tokens = grab_tokens(1, 1000, LARGE_TOKENS);
    iron__feed_request request = {.dtype = IRON_DTYPE_U32, .expected_bytes = 4 * LARGE_TOKENS};
    iron__feed_answer answer;
    iron__feed *one, *two, *three;
    iron_error err;

    (void)state;
    assert_int_equal(iron__feed_begin(entry, &request, &one, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_begin(entry, &request, &two, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(one, tokens, 4 * LARGE_TOKENS, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(two, tokens, 4 * LARGE_TOKENS, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(two, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(one, &answer, &err), IRON_FEED_POSITION);
    assert_true(answer.position == LARGE_TOKENS);
    /* a small body can be first, too */
    assert_int_equal(iron__feed_begin(entry, &request, &three, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(three, tokens, 4 * LARGE_TOKENS, &answer, &err),
                     IRON_FEED_DONE);
    feed_done(entry, (feeding){.dtype = IRON_DTYPE_U32}, tokens, 4);
    assert_int_equal(iron__feed_end(three, &answer, &err), IRON_FEED_POSITION);
    assert_true(answer.position == LARGE_TOKENS + 1);
    assert_true(look_at(entry).feeds == 2);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(feeds_equal_a_direct_engine),
        IN_A_PLACE(golden_values),
        IN_A_PLACE(splitting_does_not_matter),
        IN_A_PLACE(refusals_leave_nothing),
        IN_A_PLACE(empty_bodies_change_nothing),
        IN_A_PLACE(abandoned_bodies_leave_nothing),
        IN_A_PLACE(acknowledged_feeds_survive_a_crash),
        IN_A_PLACE(overtaken_bodies_get_the_position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
