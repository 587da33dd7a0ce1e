/* SPDX-License-Identifier: MIT */
/*
 * test_server_events.c: the exact text of event streams over a store whose engines the test sets,
 * read in pieces of any size.
 */
#include "support.h"

#include "server/events.c"

/* The store: engines with views that the test sets. */
struct iron__store_engine {
    iron__engine_stamp stamp;
    iron__store_engine_view view;
    bool is_listed, is_found;
};

static iron__store_engine engines[20];
static size_t engine_count;

size_t iron__store_stamps(iron__store *store, iron__engine_stamp *out, size_t room) {
    size_t count = 0;

    (void)store;
    for (size_t k = 0; k < engine_count; k++)
        if (engines[k].is_listed && count++ < room)
            out[count - 1] = engines[k].stamp;
    return count;
}

iron__store_engine *iron__store_find(iron__store *store, const char *name) {
    (void)store;
    for (size_t k = 0; k < engine_count; k++)
        if (engines[k].is_found && strcmp(engines[k].stamp.name, name) == 0)
            return &engines[k];
    return NULL;
}

void iron__store_engine_get_view(iron__store_engine *kept, iron__store_engine_view *view,
                                 const iron__engine_nodes *nodes) {
    (void)nodes;
    *view = kept->view;
}

void iron__store_engine_release(iron__store_engine *kept) { (void)kept; }

/* Not used here. */
bool iron__store_engine_wait(iron__store_engine *kept, uint64_t version, uint32_t milliseconds) {
    (void)kept;
    (void)version;
    (void)milliseconds;
    return false;
}

uint64_t iron__store_wait(iron__store *store, uint64_t seen, uint32_t milliseconds) {
    (void)store;
    (void)milliseconds;
    return seen;
}

iron_status iron__store_run_find(iron__store *store, const char *name, iron__run_view *view,
                                 bool *found, iron_error *err) {
    (void)store;
    (void)name;
    (void)view;
    (void)err;
    *found = false;
    return IRON_OK;
}

uint64_t iron__checker_wait(iron_server *server, uint64_t seen, uint32_t milliseconds) {
    (void)server;
    (void)milliseconds;
    return seen;
}

bool iron__run_check_get(iron_server *server, uint64_t run, iron__run_check *copy) {
    (void)server;
    (void)run;
    (void)copy;
    return false;
}

bool iron__route_run(iron__request *req, iron__run_view *view) {
    (void)req;
    (void)view;
    return false;
}

iron__store_engine *iron__route_engine(iron__request *req, const char *name) {
    (void)req;
    (void)name;
    return NULL;
}

const char *iron__request_query(const iron__request *req, const char *name) {
    (void)req;
    (void)name;
    return NULL;
}

void iron__route_no_memory(iron__request *req, const char *what) {
    (void)req;
    (void)what;
}

void iron__write_finding(iron_json_writer *j, const iron_ledger_finding *finding) {
    (void)j;
    (void)finding;
}

void iron__response_stream(iron__request *req, unsigned status, const char *type,
                           iron__stream_read read, void (*done)(void *context), void *context) {
    (void)req;
    (void)status;
    (void)type;
    (void)read;
    (void)done;
    (void)context;
}

/* Times in 1970; test_server_common.c tests others. */
void iron__time_text(uint64_t milliseconds, char text[IRON_TIME_TEXT]) {
    assert_int_equal(milliseconds, 0);
    snprintf(text, IRON_TIME_TEXT, "1970-01-01T00:00:00.000Z");
}

/* Sorted by name. */
static iron__store_engine *add(const char *name) {
    iron__store_engine *kept = &engines[engine_count++];

    *kept = (iron__store_engine){.is_listed = true, .is_found = true};
    kept->stamp.id = engine_count;
    snprintf(kept->stamp.name, sizeof kept->stamp.name, "%s", name);
    snprintf(kept->view.plan.name, sizeof kept->view.plan.name, "%s", name);
    kept->view.version = 2;
    return kept;
}

static void change(iron__store_engine *kept, uint64_t tokens) {
    kept->view.tokens = tokens;
    kept->view.version++;
    kept->stamp.changes++;
}

static iron_server server;

typedef struct sender {
    event_stream stream;
    engine_list list;
} sender;

static sender make_sender(void) { return (sender){.stream = {.server = &server}}; }

static void free_sender(sender *t) {
    free(t->stream.text);
    free(t->list.rows);
    engine_count = 0;
}

#define HEAD(complete) "event: engines\ndata: {\"complete\": " complete ", \"engines\": ["
#define ROW(name, tokens, incoming, rate, version)                                                 \
    "{\"name\": \"" name "\", \"tokens\": " tokens                                                 \
    ", \"batches\": 0, \"feeds\": 0, \"incoming\": " incoming ", \"rate\": " rate                  \
    ", \"version\": " version ", \"changed\": \"1970-01-01T00:00:00.000Z\"}"

static void write_list(event_stream *s) { write_list_event(&((sender *)s)->list, s); }

/* Collects what is written, as stream_read does. */
static void collect_list(sender *t) {
    t->stream.fill = write_list;
    t->stream.written_ns = iron__clock_ns(); /* no comment */
    assert_true(collect(&t->stream));
}

static void sends(sender *t, const char *expected) {
    collect_list(t);
    assert_int_equal(t->stream.bytes, strlen(expected));
    assert_memory_equal(t->stream.text, expected, t->stream.bytes);
}

static void first_all_then_changes(void **state) {
    sender t = make_sender();
    iron__store_engine *a, *b;

    (void)state;
    sends(&t, HEAD("true") "], \"removed\": []}\n\n");
    sends(&t, "");
    a = add("a");
    b = add("b.B-_9");
    sends(&t, HEAD("false") ROW("a", "0", "0", "0.0", "2") ", " ROW("b.B-_9", "0", "0", "0.0",
                                                                    "2") "], \"removed\": []}\n\n");
    sends(&t, "");
    change(b, UINT64_MAX);
    sends(&t, HEAD("false")
                  ROW("b.B-_9", "18446744073709551615", "0", "0.0", "3") "], \"removed\": []}\n\n");
    a->is_listed = a->is_found = false;
    sends(&t, HEAD("false") "], \"removed\": [\"a\"]}\n\n");
    b->is_listed = b->is_found = false;
    sends(&t, HEAD("false") "], \"removed\": [\"b.B-_9\"]}\n\n");
    sends(&t, "");
    free_sender(&t);
}

/* Rows that were sent are kept when the list grows. */
static void list_grows(void **state) {
    sender t = make_sender();
    char name[8];

    (void)state;
    add("a");
    sends(&t, HEAD("true") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    for (unsigned k = 1; k < 20; k++) {
        snprintf(name, sizeof name, "b%02u", k);
        add(name);
    }
    collect_list(&t);
    assert_int_equal(t.list.count, 20);
    assert_null(strstr(t.stream.text, "\"a\""));
    assert_non_null(strstr(t.stream.text, "\"b01\""));
    assert_non_null(strstr(t.stream.text, "\"b19\""));
    sends(&t, "");
    for (size_t k = 0; k < engine_count; k++)
        engines[k].is_listed = k == 7;
    collect_list(&t);
    assert_int_equal(t.list.count, 1);
    free_sender(&t);
}

/* A new engine with the same name is not a removal. */
static void same_name_replaces(void **state) {
    sender t = make_sender();
    iron__store_engine *a = add("a");

    (void)state;
    sends(&t, HEAD("true") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    a->stamp.id = 77;
    sends(&t, HEAD("false") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    sends(&t, "");
    free_sender(&t);
}

/* Deleted after the summary was read. */
static void deleted_meanwhile(void **state) {
    sender t = make_sender();
    iron__store_engine *a = add("a"), *b = add("b");

    (void)state;
    b->is_found = false;
    sends(&t, HEAD("true") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    b->is_listed = false; /* it was never sent */
    sends(&t, "");
    change(a, 5);
    a->view.is_deleted = true;
    sends(&t, "");
    a->is_listed = false;
    sends(&t, HEAD("false") "], \"removed\": [\"a\"]}\n\n");
    free_sender(&t);
}

/* The real clock: `wake_ns` is the time of the next event if nothing changes. */
static void rate_is_sent_until_zero(void **state) {
    sender t = make_sender();
    iron__store_engine *a = add("a");

    (void)state;
    add("b");
    a->view.rate = 12.34;
    a->view.incoming = 9;
    collect_list(&t);
    assert_int_equal(t.list.wake_ns, t.list.rows[0].sent_ns + LIST_NS);
    t.list.rows[0].sent_ns -= LIST_NS; /* as if that much time had passed */
    a->view.rate = 0;
    sends(&t, HEAD("false") ROW("a", "0", "9", "0.0", "2") "], \"removed\": []}\n\n");
    /* the rate is zero, but tokens are incoming: once a second */
    assert_int_equal(t.list.wake_ns, t.list.rows[0].sent_ns + 4 * LIST_NS);
    t.list.rows[0].sent_ns -= 4 * LIST_NS;
    a->view.incoming = 0;
    sends(&t, HEAD("false") ROW("a", "0", "0", "0.0", "2") "], \"removed\": []}\n\n");
    assert_true(t.list.wake_ns == UINT64_MAX);
    sends(&t, "");
    free_sender(&t);
}

static void engine_events_text(void **state) {
    sender t = make_sender();
    iron__store_engine_view view = {.plan = {.name = "e"},
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
    t.stream.to = open_memstream(&t.stream.text, &t.stream.bytes);
    write_engine_event(&t.stream, &view);
    write_deleted_event(&t.stream, "e");
    fclose(t.stream.to);
    assert_int_equal(t.stream.bytes, sizeof expected - 1);
    assert_memory_equal(t.stream.text, expected, sizeof expected - 1);
    free_sender(&t);
}

/* A stream of three events. */
static unsigned fills;

static void write_three(event_stream *s) {
    if (fills < 3)
        fprintf(s->to, "data: %0*u\n\n", fills == 1 ? 400 : 1, fills);
    s->is_over = ++fills == 3;
}

static size_t read_all(event_stream *s, size_t piece, char *room) {
    size_t bytes = 0;
    ssize_t got;

    fills = 0;
    while ((got = stream_read(s, room + bytes, piece)) >= 0)
        bytes += (size_t)got;
    return bytes;
}

static void pieces_of_any_size(void **state) {
    static const size_t sizes[] = {1, 2, 7, 408, 409, 100000};
    char first[1000], next[1000];

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        event_stream s = {.server = &server, .fill = write_three};
        size_t bytes = read_all(&s, sizes[k], k ? next : first);

        assert_int_equal(bytes, 9 + 408 + 9);
        if (k)
            assert_memory_equal(first, next, bytes);
        free(s.text);
    }
}

static void write_nothing(event_stream *s) { (void)s; }

static void silence_and_end(void **state) {
    event_stream s = {.server = &server, .fill = write_nothing};
    char room[100];

    (void)state; /* nothing was sent yet: a long silence */
    assert_int_equal(stream_read(&s, room, sizeof room), 15);
    assert_memory_equal(room, ": nothing new\n\n", 15);
    assert_int_equal(stream_read(&s, room, sizeof room), 0);
    atomic_store(&server.is_stopping, true);
    assert_true(stream_read(&s, room, sizeof room) < 0);
    atomic_store(&server.is_stopping, false);
    free(s.text);
}

/* An event that there was no memory for ends the stream. */
static void write_half(event_stream *s) {
    fprintf(s->to, "event: ");
    s->is_truncated = true;
}

static void truncated_event_ends_stream(void **state) {
    event_stream s = {.server = &server, .fill = write_half};
    char room[100];

    (void)state;
    assert_true(stream_read(&s, room, sizeof room) < 0);
    free(s.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_all_then_changes),      cmocka_unit_test(list_grows),
        cmocka_unit_test(same_name_replaces),          cmocka_unit_test(deleted_meanwhile),
        cmocka_unit_test(rate_is_sent_until_zero),     cmocka_unit_test(engine_events_text),
        cmocka_unit_test(pieces_of_any_size),          cmocka_unit_test(silence_and_end),
        cmocka_unit_test(truncated_event_ends_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
