/* SPDX-License-Identifier: MIT */
/*
 * The plan of pieces, and what is done after each answer: a state machine without a network. A
 * model server that loses requests, answers and its mind is driven through it at the end: whatever
 * happens, every token goes in once.
 */
#include "support.h"

#include "client/push_steps.h"

static void pieces_are_whole_batches(void **state) {
    (void)state;
    assert_int_equal(iron__push_piece_tokens(0, 786432, 2), 170 * 786432);
    assert_int_equal(iron__push_piece_tokens(0, 786432, 4), 85 * 786432);
    assert_int_equal(iron__push_piece_tokens(100, 7, 2), 98);
    assert_int_equal(iron__push_piece_tokens(7, 7, 2), 7);
    assert_int_equal(iron__push_piece_tokens(3, 7, 2), 7);
    assert_int_equal(iron__push_piece_tokens(1, 1, 8), 1);
    /* a batch that is larger than a piece: one batch */
    assert_int_equal(iron__push_piece_tokens(0, UINT64_C(1) << 40, 4), UINT64_C(1) << 40);
}

/* From any position the pieces go on to the end without a gap, all whole but the last. */
static void pieces_cover_the_rest(void **state) {
    dice d = {2026};

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint64_t batch = 1 + roll_below(&d, 50), tokens = roll_below(&d, 2000);
        iron__push_plan plan = {roll_below(&d, 1000), tokens,
                                iron__push_piece_tokens(1 + roll_below(&d, 300), batch, 4)};
        uint64_t position = plan.base + roll_below(&d, tokens + 1), first = position - plan.base;
        iron__push_piece piece;

        while ((piece = iron__push_piece_at(&plan, position)).tokens > 0) {
            assert_int_equal(piece.at, position);
            assert_int_equal(piece.first, first);
            assert_true(piece.tokens % batch == 0 || first + piece.tokens == tokens);
            position += piece.tokens;
            first += piece.tokens;
        }
        assert_int_equal(first, tokens);
    }
}

static iron__push_answer answered(unsigned status) { return (iron__push_answer){.status = status}; }

static iron__push_answer at_token(uint64_t tokens) {
    return (iron__push_answer){.status = 200, .has_engine = true, .engine.tokens = tokens};
}

static const iron__push_piece piece = {100, 60, 20};

static void an_answer_moves_on_or_betrays_another_writer(void **state) {
    iron__push_answer a = at_token(120);

    (void)state;
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_GO_ON);
    a = at_token(119);
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_FOREIGN);
    a = at_token(100);
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_FOREIGN);
    a = at_token(140);
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_FOREIGN);
    a = answered(200); /* a 200 that is no engine's */
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_REFUSED);
    assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_REFUSED);
}

static void the_position_decides(void **state) {
    iron__push_answer a = at_token(100);

    (void)state;
    assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_SEND);
    a = at_token(120);
    assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_GO_ON);
    for (uint64_t tokens = 0; tokens < 200; tokens++) {
        a = at_token(tokens);
        if (tokens != 100 && tokens != 120)
            assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_FOREIGN);
    }
}

static void a_refusal_is_sure(void **state) {
    static const unsigned sure[] = {200, 400, 408, 409, 422, 429, 503};
    static const unsigned unsure[] = {0, 500, 502, 504};

    (void)state;
    for (size_t k = 0; k < COUNT(sure); k++)
        assert_false(iron__push_is_unsure(&(iron__push_answer){.status = sure[k]}));
    for (size_t k = 0; k < COUNT(unsure); k++)
        assert_true(iron__push_is_unsure(&(iron__push_answer){.status = unsure[k]}));
}

static void what_passes_is_tried_again(void **state) {
    static const unsigned passing[] = {408, 429, 502, 503, 504};
    static const unsigned final[] = {301, 400, 401, 403, 404, 405, 411, 413,
                                     415, 421, 422, 431, 500, 501, 507};
    iron__push_answer a = {.is_lost = true};

    (void)state;
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_AGAIN);
    assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_AGAIN);
    for (size_t k = 0; k < COUNT(passing); k++) {
        a = answered(passing[k]);
        assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_AGAIN);
        assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_AGAIN);
    }
    for (size_t k = 0; k < COUNT(final); k++) {
        a = answered(final[k]);
        assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_REFUSED);
        assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_REFUSED);
    }
    /* a certificate that is not trusted, an answer without an end */
    a = (iron__push_answer){.is_lost = false};
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_REFUSED);
    a = answered(409);
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_AGAIN);
    assert_int_equal(iron__push_after_asking(&a, &piece), IRON_PUSH_REFUSED);
    a = answered(500);
    a.has_retry_after = true;
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_AGAIN);
    a = answered(503);
    a.is_read_only = true;
    assert_int_equal(iron__push_after_feed(&a, &piece), IRON_PUSH_REFUSED);
}

static void pauses_grow_and_differ(void **state) {
    static const uint64_t full[] = {200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    dice d = {7};

    (void)state;
    for (uint32_t attempt = 1; attempt <= COUNT(full); attempt++) {
        uint64_t least = UINT64_MAX, most = 0, whole = full[attempt - 1];

        for (int k = 0; k < 1000; k++) {
            uint64_t pause = iron__push_pause_ms(attempt, roll(&d), 0);

            least = pause < least ? pause : least;
            most = pause > most ? pause : most;
        }
        assert_true(least > whole / 2 && least < whole * 6 / 10);
        assert_true(most <= whole && most > whole * 9 / 10);
    }
    assert_true(iron__push_pause_ms(UINT32_MAX, roll(&d), 0) <= 30000);
    assert_int_equal(iron__push_pause_ms(1, roll(&d), 7), 7000);
    assert_true(iron__push_pause_ms(8, 0, 1) == 25600);
    assert_int_equal(iron__push_pause_ms(1, roll(&d), UINT64_MAX), 300000);
}

/* A server with a position and a taste for accidents: requests and answers get lost, a request
 * whose answer was lost takes effect later, during the next pause. */
typedef struct model {
    dice d;
    uint64_t tokens;
    uint64_t late_at, late_tokens; /* what will still take effect, if the position fits then */
    uint32_t fed[64];              /* how often each token went in */
} model;

static bool model_take(model *m, uint64_t at, uint64_t tokens) {
    if (m->tokens != at)
        return false;
    for (uint64_t k = at; k < at + tokens; k++)
        m->fed[k]++;
    m->tokens += tokens;
    return true;
}

static iron__push_answer model_feed(model *m, const iron__push_piece *p) {
    switch (roll_below(&m->d, 6)) {
    case 0:
        return (iron__push_answer){.is_lost = true};
    case 1:
        (void)model_take(m, p->at, p->tokens);
        return (iron__push_answer){.is_lost = true};
    case 2:
        m->late_at = p->at;
        m->late_tokens = p->tokens;
        return (iron__push_answer){.is_lost = true};
    case 3:
        return answered(503);
    default:
        return model_take(m, p->at, p->tokens) ? at_token(m->tokens) : answered(409);
    }
}

static iron__push_answer model_ask(model *m) {
    iron__push_answer answer = at_token(m->tokens);

    if (roll_below(&m->d, 4) == 0)
        answer = (iron__push_answer){.is_lost = true};
    if (roll_below(&m->d, 2) == 0) { /* before or after it was asked: the answer may be old */
        (void)model_take(m, m->late_at, m->late_tokens);
        m->late_tokens = 0;
    }
    return answer;
}

static void every_token_goes_in_once(void **state) {
    (void)state;
    for (uint64_t round = 1; round <= 5000; round++) {
        model m = {.d = {round}};
        iron__push_plan plan = {0, 1 + roll_below(&m.d, 64), 1 + roll_below(&m.d, 20)};

        for (uint64_t position = 0; position < plan.tokens;) {
            iron__push_piece p = iron__push_piece_at(&plan, position);
            iron__push_step step = IRON_PUSH_SEND;

            while (step == IRON_PUSH_SEND || step == IRON_PUSH_AGAIN) {
                bool sends = step == IRON_PUSH_SEND;
                iron__push_answer a = sends ? model_feed(&m, &p) : model_ask(&m);

                step = (sends ? iron__push_after_feed : iron__push_after_asking)(&a, &p);
            }
            assert_int_equal(step, IRON_PUSH_GO_ON);
            position += p.tokens;
        }
        for (uint64_t k = 0; k < plan.tokens; k++)
            assert_int_equal(m.fed[k], 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_whole_batches),
        cmocka_unit_test(pieces_cover_the_rest),
        cmocka_unit_test(an_answer_moves_on_or_betrays_another_writer),
        cmocka_unit_test(the_position_decides),
        cmocka_unit_test(a_refusal_is_sure),
        cmocka_unit_test(what_passes_is_tried_again),
        cmocka_unit_test(pauses_grow_and_differ),
        cmocka_unit_test(every_token_goes_in_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
