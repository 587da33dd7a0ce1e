/* SPDX-License-Identifier: MIT */
/*
 * test_server_events.c: what a stream of events says, word for word, of a store that has what the
 * test says; read in pieces of any size.
 */
#include "support.h"

#include "server/roster.h"

/* The store: engines with views that the test sets. */
struct iron__kept {
    iron__glimpse glimpse;
    iron__kept_view view;
    bool is_listed, is_found;
};

static iron__kept engines[20];
static size_t engine_count;

size_t iron__store_glance(iron__store *store, iron__glimpse *out, size_t room) {
    size_t count = 0;

    (void)store;
    for (size_t k = 0; k < engine_count; k++)
        if (engines[k].is_listed && count++ < room)
            out[count - 1] = engines[k].glimpse;
    return count;
}

iron__kept *iron__store_find(iron__store *store, const char *name) {
    (void)store;
    for (size_t k = 0; k < engine_count; k++)
        if (engines[k].is_found && strcmp(engines[k].glimpse.name, name) == 0)
            return &engines[k];
    return NULL;
}

void iron__kept_look(iron__kept *kept, iron__kept_view *view) { *view = kept->view; }

void iron__kept_release(iron__kept *kept) { (void)kept; }

/* In the order of their names. */
static iron__kept *add(const char *name) {
    iron__kept *kept = &engines[engine_count++];

    *kept = (iron__kept){.is_listed = true, .is_found = true};
    kept->glimpse.id = engine_count;
    snprintf(kept->glimpse.name, sizeof kept->glimpse.name, "%s", name);
    snprintf(kept->view.plan.name, sizeof kept->view.plan.name, "%s", name);
    kept->view.version = 2;
    return kept;
}

static void change(iron__kept *kept, uint64_t tokens) {
    kept->view.tokens = tokens;
    kept->view.version++;
    kept->glimpse.news++;
}

static iron__site site;

typedef struct teller {
    iron__event_stream stream;
    iron__roster roster;
} teller;

static teller make_teller(void) { return (teller){.stream = {.site = &site}}; }

static void free_teller(teller *t) {
    iron__event_stream_deinit(&t->stream);
    iron__roster_deinit(&t->roster);
    engine_count = 0;
}

#define HEAD(complete) "event: engines\ndata: {\"complete\": " complete ", \"engines\": ["
#define ROW(name, tokens, incoming, rate, version)                                                 \
    "{\"name\": \"" name "\", \"tokens\": " tokens                                                 \
    ", \"batches\": 0, \"feeds\": 0, \"incoming\": " incoming ", \"rate\": " rate                  \
    ", \"version\": " version ", \"changed\": \"1970-01-01T00:00:00.000Z\"}"

static void tells(teller *t, const char *expected) {
    t->stream.bytes = 0;
    iron__roster_tell(&t->roster, &t->stream);
    assert_false(t->stream.is_short);
    assert_int_equal(t->stream.bytes, strlen(expected));
    assert_memory_equal(t->stream.text, expected, t->stream.bytes);
}

static void all_at_first_then_what_changed(void **state) {
    teller t = make_teller();
    iron__kept *a, *b;

    (void)state;
    tells(&t, HEAD("true") "], \"removed\": []}\n\n");
    tells(&t, "");
    a = add("a");
    b = add("b.B-_9");
    tells(&t, HEAD("false") ROW("a", "0", "0", "0.0", "2") ", " ROW("b.B-_9", "0", "0", "0.0",
                                                                    "2") "], \"removed\": []}\n\n");
    tells(&t, "");
    change(b, UINT64_MAX);
    tells(&t, HEAD("false")
                  ROW("b.B-_9", "18446744073709551615", "0", "0.0", "3") "], \"removed\": []}\n\n");
    a->is_listed = a->is_found = false;
    tells(&t, HEAD("false") "], \"removed\": [\"a\"]}\n\n");
    b->is_listed = b->is_found = false;
    tells(&t, HEAD("false") "], \"removed\": [\"b.B-_9\"]}\n\n");
    tells(&t, "");
    free_teller(&t);
}

/* What was told stays known when there are suddenly more. */
static void more_than_there_was_room_for(void **state) {
    teller t = make_teller();
    char name[8];

    (void)state;
    add("a");
    tells(&t, HEAD("true") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    for (unsigned k = 1; k < 20; k++) {
        snprintf(name, sizeof name, "b%02u", k);
        add(name);
    }
    t.stream.bytes = 0;
    iron__roster_tell(&t.roster, &t.stream);
    assert_int_equal(t.roster.count, 20);
    iron__event_write(&t.stream, "%c", '\0');
    assert_null(strstr(t.stream.text, "\"a\""));
    assert_non_null(strstr(t.stream.text, "\"b01\""));
    assert_non_null(strstr(t.stream.text, "\"b19\""));
    tells(&t, "");
    for (size_t k = 0; k < engine_count; k++)
        engines[k].is_listed = k == 7;
    t.stream.bytes = 0;
    iron__roster_tell(&t.roster, &t.stream);
    assert_int_equal(t.roster.count, 1);
    free_teller(&t);
}

/* Another engine of the same name is no removal. */
static void a_successor_replaces(void **state) {
    teller t = make_teller();
    iron__kept *a = add("a");

    (void)state;
    tells(&t, HEAD("true") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    a->glimpse.id = 77;
    tells(&t, HEAD("false") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    tells(&t, "");
    free_teller(&t);
}

/* Deleted between the glance and the look. */
static void one_that_goes_meanwhile(void **state) {
    teller t = make_teller();
    iron__kept *a = add("a"), *b = add("b");

    (void)state;
    b->is_found = false;
    tells(&t, HEAD("true") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    b->is_listed = false; /* it was never told */
    tells(&t, "");
    change(a, 5);
    a->view.is_deleted = true;
    tells(&t, "");
    a->is_listed = false;
    tells(&t, HEAD("false") "], \"removed\": [\"a\"]}\n\n");
    free_teller(&t);
}

/* The clock is real here: `wake_ns` is when something is told next without news. */
static void a_rate_is_told_until_it_is_none(void **state) {
    teller t = make_teller();
    iron__kept *a = add("a");

    (void)state;
    add("b");
    a->view.rate = 12.34;
    a->view.incoming = 9;
    iron__roster_tell(&t.roster, &t.stream);
    assert_int_equal(t.roster.wake_ns, t.roster.rows[0].told_ns + IRON_ROSTER_NS);
    t.roster.rows[0].told_ns -= IRON_ROSTER_NS; /* as if it were so long ago */
    a->view.rate = 0;
    tells(&t, HEAD("false") ROW("a", "0", "9", "0.0", "2") "], \"removed\": []}\n\n");
    /* nothing comes, but something is on its way: once a second */
    assert_int_equal(t.roster.wake_ns, t.roster.rows[0].told_ns + 4 * IRON_ROSTER_NS);
    t.roster.rows[0].told_ns -= 4 * IRON_ROSTER_NS;
    a->view.incoming = 0;
    tells(&t, HEAD("false") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    assert_true(t.roster.wake_ns == UINT64_MAX);
    tells(&t, "");
    free_teller(&t);
}

static void the_words_of_one_engine(void **state) {
    teller t = make_teller();
    iron__kept_view view = {.plan = {.name = "e"},
                            .version = 7,
                            .tokens = 33,
                            .batches = 3,
                            .feeds = 1,
                            .xors = 0x1ba2,
                            .sum = 73170,
                            .state = 0xa6,
                            .seal = "55ca"};
    static const char expected[] =
        "event: engine\nid: 7\ndata: {\"name\": \"e\", \"tokens\": 33, \"batches\": 3, "
        "\"feeds\": 1, \"xor\": \"00001ba2\", \"sum\": \"73170\", "
        "\"state\": \"00000000000000a6\", \"seal\": \"55ca\", \"version\": 7}\n\n"
        "event: deleted\ndata: {\"name\": \"e\"}\n\n";

    (void)state;
    iron__event_write_engine(&t.stream, &view);
    iron__event_write_deleted(&t.stream, "e");
    assert_int_equal(t.stream.bytes, sizeof expected - 1);
    assert_memory_equal(t.stream.text, expected, sizeof expected - 1);
    free_teller(&t);
}

/* A stream with three things to say. */
static unsigned looks;

static void say_three(iron__event_stream *s) {
    if (looks < 3)
        iron__event_write(s, "data: %0*u\n\n", looks == 1 ? 400 : 1, looks);
    s->is_over = ++looks == 3;
}

static size_t read_all(iron__event_stream *s, size_t piece, char *room) {
    size_t bytes = 0;
    ssize_t got;

    looks = 0;
    while ((got = iron__event_stream_read(s, room + bytes, piece)) >= 0)
        bytes += (size_t)got;
    return bytes;
}

static void pieces_of_any_size(void **state) {
    static const size_t sizes[] = {1, 2, 7, 408, 409, 100000};
    char first[1000], next[1000];

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        iron__event_stream s = {.site = &site, .look = say_three};
        size_t bytes = read_all(&s, sizes[k], k ? next : first);

        assert_int_equal(bytes, 9 + 408 + 9);
        if (k)
            assert_memory_equal(first, next, bytes);
        iron__event_stream_deinit(&s);
    }
}

static void say_nothing(iron__event_stream *s) { (void)s; }

static void silence_and_the_end(void **state) {
    iron__event_stream s = {.site = &site, .look = say_nothing};
    char room[100];

    (void)state; /* nothing was ever told: that is a long silence */
    assert_int_equal(iron__event_stream_read(&s, room, sizeof room), 15);
    assert_memory_equal(room, ": nothing new\n\n", 15);
    assert_int_equal(iron__event_stream_read(&s, room, sizeof room), 0);
    atomic_store(&site.is_stopping, true);
    assert_true(iron__event_stream_read(&s, room, sizeof room) < 0);
    atomic_store(&site.is_stopping, false);
    iron__event_stream_deinit(&s);
}

/* What does not fit is no event: the stream ends. */
static void say_too_much(iron__event_stream *s) { iron__event_write(s, "%0999u", 1u); }

static void half_an_event_is_none(void **state) {
    iron__event_stream s = {.site = &site, .look = say_too_much};
    char room[100];

    (void)state;
    assert_true(iron__event_stream_read(&s, room, sizeof room) < 0);
    iron__event_stream_deinit(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_at_first_then_what_changed),
        cmocka_unit_test(more_than_there_was_room_for),
        cmocka_unit_test(a_successor_replaces),
        cmocka_unit_test(one_that_goes_meanwhile),
        cmocka_unit_test(a_rate_is_told_until_it_is_none),
        cmocka_unit_test(the_words_of_one_engine),
        cmocka_unit_test(pieces_of_any_size),
        cmocka_unit_test(silence_and_the_end),
        cmocka_unit_test(half_an_event_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
