/* SPDX-License-Identifier: MIT */
/*
 * test_server_tickets.c: a ticket does once, for a minute; of many the oldest goes; nothing else is
 * one. The clock is the test's.
 */
#include "support.h"

#include "server/tickets.h"

#define SECOND UINT64_C(1000000000)
#define START  (UINT64_C(1000) * SECOND)

typedef struct ticket_text {
    char text[IRON_TICKET_TEXT];
} ticket_text;

static ticket_text issue(iron__tickets *tickets, uint64_t now_ns) {
    ticket_text ticket;

    assert_true(iron__tickets_issue(tickets, now_ns, ticket.text));
    assert_int_equal(strlen(ticket.text), 32);
    assert_int_equal(strspn(ticket.text, "0123456789abcdef"), 32);
    return ticket;
}

static void it_does_once(void **state) {
    iron__tickets tickets;
    ticket_text one, other;

    (void)state;
    iron__tickets_init(&tickets);
    one = issue(&tickets, START);
    other = issue(&tickets, START);
    assert_string_not_equal(one.text, other.text);
    assert_true(iron__tickets_redeem(&tickets, START, one.text));
    assert_false(iron__tickets_redeem(&tickets, START, one.text));
    assert_true(iron__tickets_redeem(&tickets, START + SECOND, other.text));
    assert_false(iron__tickets_redeem(&tickets, START + SECOND, other.text));
    iron__tickets_deinit(&tickets);
}

static void it_does_for_a_minute(void **state) {
    iron__tickets tickets;
    ticket_text early, late;

    (void)state;
    iron__tickets_init(&tickets);
    early = issue(&tickets, START);
    late = issue(&tickets, START);
    assert_true(iron__tickets_redeem(&tickets, START + 60 * SECOND - 1, early.text));
    assert_false(iron__tickets_redeem(&tickets, START + 60 * SECOND, late.text));
    /* one that came too late does not become good again */
    assert_false(iron__tickets_redeem(&tickets, START, late.text));
    iron__tickets_deinit(&tickets);
}

static void of_many_the_oldest_goes(void **state) {
    ticket_text all[IRON_TICKETS_MAX + 1];
    iron__tickets tickets;

    (void)state;
    iron__tickets_init(&tickets);
    for (size_t k = 0; k <= IRON_TICKETS_MAX; k++)
        all[k] = issue(&tickets, START + k);
    assert_false(iron__tickets_redeem(&tickets, START + SECOND, all[0].text));
    for (size_t k = 1; k <= IRON_TICKETS_MAX; k++)
        assert_true(iron__tickets_redeem(&tickets, START + SECOND, all[k].text));
    iron__tickets_deinit(&tickets);
}

/* Used ones make room: an old one stays as long as there are few. */
static void used_ones_make_room(void **state) {
    iron__tickets tickets;
    ticket_text old;

    (void)state;
    iron__tickets_init(&tickets);
    old = issue(&tickets, START);
    for (uint64_t k = 0; k < UINT64_C(3) * IRON_TICKETS_MAX; k++) {
        ticket_text next = issue(&tickets, START + k);

        assert_true(iron__tickets_redeem(&tickets, START + k, next.text));
    }
    assert_true(iron__tickets_redeem(&tickets, START + SECOND, old.text));
    iron__tickets_deinit(&tickets);
}

static void what_is_none(void **state) {
    static const char *const none[] = {"",
                                       "0",
                                       "00000000000000000000000000000000",
                                       "0000000000000000000000000000000",
                                       "000000000000000000000000000000000",
                                       "gggggggggggggggggggggggggggggggg",
                                       " 0000000000000000000000000000000"};
    iron__tickets tickets;
    ticket_text good, changed;

    (void)state;
    iron__tickets_init(&tickets);
    for (size_t k = 0; k < sizeof none / sizeof none[0]; k++)
        assert_false(iron__tickets_redeem(&tickets, 0, none[k]));
    good = issue(&tickets, START);
    for (size_t k = 0; k < 32; k++) {
        changed = good;
        changed.text[k] = changed.text[k] == '0' ? '1' : '0';
        assert_false(iron__tickets_redeem(&tickets, START, changed.text));
        changed.text[k] = '\0';
        assert_false(iron__tickets_redeem(&tickets, START, changed.text));
    }
    assert_true(iron__tickets_redeem(&tickets, START, good.text));
    iron__tickets_deinit(&tickets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_does_once),
        cmocka_unit_test(it_does_for_a_minute),
        cmocka_unit_test(of_many_the_oldest_goes),
        cmocka_unit_test(used_ones_make_room),
        cmocka_unit_test(what_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
