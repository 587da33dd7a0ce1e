/* SPDX-License-Identifier: MIT */
/*
 * test_ring.c: slots are filled by readers and taken in order. For any number of readers and slots,
 * the tokens are those of iron_source_read; an error comes after the slots before it and is the
 * first of the stream; slots that are held do not change; and whenever a ring is destroyed, no
 * thread, descriptor or memory leaks, and a source of files is positioned after the last token
 * taken.
 *
 * The tests do not depend on timing; a watchdog keeps a reader that never ends from hanging the
 * suite.
 */
#include "source_support.h"

#include "core/memory.h"
#include "feed/ring.h"
#include "formats/source.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define WATCHDOG_S 3000u
#define TOKENS     10820u /* 1 + 2 + ... + 40, and 10,000 in the last file */

static const uint32_t reader_counts[] = {1, 2, 3, 8};

static folder place;
static uint16_t tokens[TOKENS];
static size_t descriptors_before;

/* Files of 1 ... 40 tokens, an empty one after every third, then a long one. */
static shards write_many(void) {
    size_t sizes[60] = {0}, count = 1;

    for (size_t length = 1; length <= 40; length++) {
        sizes[count++] = length;
        count += length % 3 == 0;
    }
    sizes[count++] = 10000;
    return shards_write(&place, tokens, sizes, count);
}

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    fill_u16(tokens, TOKENS);
    descriptors_before = descriptors();
    alarm(WATCHDOG_S);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    alarm(0);
    assert_int_equal(descriptors(), descriptors_before);
    folder_remove(&place);
    return 0;
}

/* A ring and its memory: slots at distances of one token more than they hold. */
typedef struct rig {
    iron__ring *ring;
    ledger books;
    iron_allocator allocator;
    size_t capacity;
    uint16_t *memory;
    void *slots[IRON_RING_SLOTS_MAX];
} rig;

#define GUARD 0xABCD

/* `piece`: tokens that a reader takes at a time; 0: a whole slot. */
static iron_status rig_try(rig *r, iron_source *s, uint32_t readers, size_t slots, size_t capacity,
                           size_t piece, iron_error *err) {
    iron__ring_options o = {.source = s,
                            .slots = r->slots,
                            .shape = {.slot_count = slots,
                                      .slot_bytes = capacity * 2,
                                      .readers = readers,
                                      .piece_bytes = piece * 2},
                            .allocator = &r->allocator};

    r->allocator = ledger_allocator(&r->books);
    r->capacity = capacity;
    r->memory = grab(slots * (capacity + 1) * sizeof *r->memory);
    for (size_t k = 0; k < slots; k++) {
        r->slots[k] = r->memory + k * (capacity + 1);
        r->memory[k * (capacity + 1) + capacity] = GUARD;
    }
    r->ring = (iron__ring *)r;
    return iron__ring_create(&o, &r->ring, err);
}

static void rig_cut(rig *r, iron_source *s, uint32_t readers, size_t slots, size_t capacity,
                    size_t piece) {
    iron_error err;

    memset(r, 0, sizeof *r);
    assert_ok(rig_try(r, s, readers, slots, capacity, piece, &err), &err);
}

static void rig_open(rig *r, iron_source *s, uint32_t readers, size_t slots, size_t capacity) {
    rig_cut(r, s, readers, slots, capacity, 0);
}

static void rig_close(rig *r) {
    iron__ring_destroy(r->ring);
    assert_int_equal(r->books.out, 0);
    free(r->memory);
}

/* Takes the next slot, which must hold the tokens from `done` on. */
static size_t take(rig *r, const uint16_t *want, size_t done, size_t total) {
    size_t slot = 99, count = 99, expected = total - done;
    const uint16_t *held;
    iron_error err;

    expected = expected < r->capacity ? expected : r->capacity;
    assert_ok(iron__ring_next(r->ring, &slot, &count, &err), &err);
    assert_int_equal(count, expected);
    if (count == 0)
        return 0;
    held = r->slots[slot];
    assert_memory_equal(held, want + done, count * sizeof *held);
    assert_int_equal(held[r->capacity], GUARD);
    return count;
}

static void assert_rest(rig *r, const uint16_t *want, size_t done, size_t total) {
    while (done < total) {
        done += take(r, want, done, total);
        iron__ring_free(r->ring);
    }
    assert_int_equal(take(r, want, total, total), 0);
    assert_int_equal(take(r, want, total, total), 0); /* and is unchanged */
}

static void any_readers_and_slots_give_the_stream(void **state) {
    static const size_t capacities[] = {1, 3, 7, 4096}, slot_counts[] = {1, 2, 5, 64};
    shards files = write_many();

    (void)state;
    for (size_t c = 0; c < COUNT(capacities); c++)
        for (size_t n = 0; n < COUNT(reader_counts); n++) {
            iron_source *s = shards_open(&files);
            rig r;

            rig_open(&r, s, reader_counts[n], slot_counts[(c + n) % 4], capacities[c]);
            assert_rest(&r, tokens, 0, TOKENS);
            rig_close(&r);
            assert_stream(s, NULL, 0, 10); /* it is used up */
            iron__source_seek(s, 0);
            assert_stream(s, tokens, TOKENS, capacities[c]);
            iron_source_close(s);
        }
    shards_free(&files);
}

/* Slots filled by several readers, in pieces that divide them evenly or not, that are longer than a
 * slot, or more than 64 per slot. */
static void slots_can_be_read_in_pieces(void **state) {
    static const size_t capacities[] = {2, 100, 4096, 20000}, pieces[] = {1, 7, 50, 1024, 5000};
    shards files = write_many();

    (void)state;
    for (size_t c = 0; c < COUNT(capacities); c++)
        for (size_t p = 0; p < COUNT(pieces); p++)
            for (size_t n = 0; n < COUNT(reader_counts); n++) {
                iron_source *s = shards_open(&files);
                rig r;

                rig_cut(&r, s, reader_counts[n], 1 + (p + n) % 3, capacities[c], pieces[p]);
                assert_rest(&r, tokens, 0, TOKENS);
                rig_close(&r);
                assert_stream(s, NULL, 0, 10);
                iron_source_close(s);
            }
    shards_free(&files);
}

static size_t threads(void) {
    static const folder tasks = {"/proc/self/task"};

    return folder_entries(&tasks);
}

/* The stream is longer than the slots, so started readers wait for room. A reader that has ended
 * may be listed for a moment longer; the watchdog handles those that do not end. */
static void check_threads(iron_source *s, uint32_t readers, size_t piece, size_t expected) {
    size_t before = threads();
    rig r;

    rig_cut(&r, s, readers, 1, 1000, piece);
    assert_int_equal(threads(), before + expected);
    rig_close(&r);
    while (threads() > before)
        usleep(1000);
}

/* Another ring stays open: a sanitizer starts a thread of its own with the first one. */
static void a_slot_is_work_for_as_many_as_it_has_pieces(void **state) {
    shards files = write_many();
    iron_source *s = shards_open(&files), *first = shards_open(&files);
    rig staying;

    (void)state;
    rig_open(&staying, first, 1, 1, 1000);
    check_threads(s, 8, 300, 4);
    check_threads(s, 3, 300, 3);
    check_threads(s, 8, 0, 1);
    rig_close(&staying);
    iron_source_close(first);
    iron_source_close(s);
    shards_free(&files);
}

/* Alternates between reading in order and a ring that is destroyed early. */
static void a_ring_leaves_the_source_where_it_was_taken_to(void **state) {
    shards files = write_many();
    iron_source *s = shards_open(&files);
    size_t done = 0;

    (void)state;
    for (uint32_t turn = 0; done < TOKENS; turn++) {
        uint16_t piece[5];
        size_t count;
        iron_error err;
        rig r;

        assert_ok(iron_source_read(s, piece, 5, &count, &err), &err);
        assert_memory_equal(piece, tokens + done, count * sizeof *piece);
        done += count;
        rig_cut(&r, s, 1 + turn % 5, 4, 31, turn % 3 * 5);
        for (uint32_t k = 0; k < turn % 9; k++) {
            done += take(&r, tokens, done, TOKENS);
            if (turn % 2)
                iron__ring_free(r.ring);
            else if (k == 3)
                break; /* all slots are held */
        }
        rig_close(&r);
    }
    assert_int_equal(done, TOKENS);
    iron_source_close(s);
    shards_free(&files);
}

static void take_failure(rig *r, iron_status expected, const char *word) {
    size_t slot, count = 99;
    iron_error err;

    for (int k = 0; k < 2; k++) {
        assert_refused(iron__ring_next(r->ring, &slot, &count, &err), expected, &err);
        assert_says(&err, word);
        assert_int_equal(count, 0);
    }
    assert_int_equal(iron__ring_next(r->ring, &slot, &count, NULL), expected);
}

/* Reads up to the error; afterwards reading in order fails the same way. */
static void check_failure(iron_source *s, size_t good, const char *word) {
    static const size_t capacities[] = {1, 16, 333, 333, 5000}, pieces[] = {0, 3, 0, 50, 80};

    for (size_t c = 0; c < COUNT(capacities); c++)
        for (size_t n = 0; n < COUNT(reader_counts); n++) {
            rig r;

            iron__source_seek(s, 0);
            rig_cut(&r, s, reader_counts[n], 5, capacities[c], pieces[c]);
            for (size_t done = 0; good - done >= capacities[c];) {
                done += take(&r, tokens, done, TOKENS);
                iron__ring_free(r.ring);
            }
            take_failure(&r, IRON_E_IO, word);
            rig_close(&r);
            assert_read_fails(s, IRON_E_IO, word);
        }
}

static void files_that_shrink_fail_in_their_turn(void **state) {
    shards files = write_many();
    iron_source *s = shards_open(&files);

    (void)state;
    assert_int_equal(truncate(files.paths[files.count - 1], 10001), 0);
    check_failure(s, 820 + 5000, "ended at byte 10001 of 20000; it was cut");
    assert_int_equal(truncate(files.paths[files.count - 1], 0), 0);
    check_failure(s, 820, "ended at byte 0 of 20000; it was cut");
    iron_source_close(s);
    shards_free(&files);
}

static void files_that_go_fail_in_their_turn(void **state) {
    static const size_t sizes[] = {500, 0, 400, 300, 200};
    shards files = shards_write(&place, tokens, sizes, COUNT(sizes));
    iron_source *s = shards_open(&files);

    (void)state;
    assert_int_equal(unlink(files.paths[1]), 0); /* it was empty */
    assert_int_equal(truncate(files.paths[4], 100), 0);
    check_failure(s, 1250, "f4 ended at byte 100 of 400;");
    assert_int_equal(unlink(files.paths[3]), 0);
    check_failure(s, 900, "f3: No such file");
    assert_int_equal(unlink(files.paths[0]), 0);
    check_failure(s, 0, "f0: No such file");
    iron_source_close(s);
    shards_free(&files);
}

/* The first file takes a while to read; the files after it fail at once, each with a different
 * message. A slot contains one of them, or all as pieces: the first failure is reported. */
static void check_quick_failures(bool has_pieces) {
    enum { LONG = 1 << 18 };
    static const size_t sizes[] = {LONG, LONG, LONG, LONG};
    uint16_t *many = grab(4 * LONG * sizeof *many);

    fill_u16(many, 4 * LONG);
    for (int turn = 0; turn < 20; turn++) {
        shards files = shards_write(&place, many, sizes, COUNT(sizes));
        iron_source *s = shards_open(&files);
        rig r;

        assert_int_equal(truncate(files.paths[1], 2), 0);
        assert_int_equal(unlink(files.paths[2]), 0);
        assert_int_equal(truncate(files.paths[3], 4), 0);
        if (has_pieces) {
            rig_cut(&r, s, 4, 1 + (size_t)turn % 2, 4 * LONG, LONG);
        } else {
            rig_open(&r, s, 4, 4, LONG);
            assert_int_equal(take(&r, many, 0, 4 * LONG), LONG);
        }
        take_failure(&r, IRON_E_IO, "f1 ended at byte 2 of ");
        rig_close(&r);
        iron_source_close(s);
        shards_free(&files);
    }
    free(many);
}

static void quick_failures_wait_for_slow_slots(void **state) {
    (void)state;
    check_quick_failures(false);
}

static void quick_failures_wait_for_slow_pieces(void **state) {
    (void)state;
    check_quick_failures(true);
}

/* Slots that are held keep their tokens while the readers continue. */
static void several_slots_can_be_held(void **state) {
    enum { SLOTS = 5, CAPACITY = 13 };
    shards files = write_many();

    (void)state;
    for (size_t n = 0; n < COUNT(reader_counts); n++) {
        iron_source *s = shards_open(&files);
        size_t taken = 0, freed = 0, slot, count;
        iron_error err;
        rng random = {7 + n};
        rig r;

        rig_cut(&r, s, reader_counts[n], SLOTS, CAPACITY, n % 2 * 4);
        iron__ring_free(r.ring); /* none is held: no effect */
        while (freed * CAPACITY < TOKENS) {
            if (taken * CAPACITY < TOKENS && taken - freed < SLOTS && rng_below(&random, 3) > 0) {
                take(&r, tokens, taken * CAPACITY, TOKENS);
                taken++;
            } else if (taken * CAPACITY < TOKENS && taken - freed == SLOTS) {
                assert_refused(iron__ring_next(r.ring, &slot, &count, &err), IRON_E_STATE, &err);
                assert_int_equal(count, 0);
            }
            for (size_t k = freed; k < taken; k++) {
                size_t rest = TOKENS - k * CAPACITY;

                assert_memory_equal(r.slots[k % SLOTS], tokens + k * CAPACITY,
                                    (rest < CAPACITY ? rest : CAPACITY) * sizeof *tokens);
            }
            if (freed < taken && rng_below(&random, 3) == 0) {
                iron__ring_free(r.ring);
                freed++;
            }
        }
        assert_rest(&r, tokens, TOKENS, TOKENS);
        rig_close(&r);
        iron_source_close(s);
    }
    shards_free(&files);
}

/* The end is reported even if the caller holds every slot. */
static void the_end_needs_no_free_slot(void **state) {
    static const size_t size = 6;
    shards files = shards_write(&place, tokens, &size, 1);
    iron_source *s = shards_open(&files);
    rig r;

    (void)state;
    rig_open(&r, s, 2, 2, 3);
    take(&r, tokens, 0, 6);
    take(&r, tokens, 3, 6);
    assert_int_equal(take(&r, tokens, 6, 6), 0);
    rig_close(&r);
    iron_source_close(s);
    shards_free(&files);
}

static void empty_sources_end_at_once(void **state) {
    static const size_t sizes[] = {0, 0};
    shards files = shards_write(&place, tokens, sizes, 2);
    iron_source *s = shards_open(&files);
    rig r;

    (void)state;
    rig_open(&r, s, 0, 3, 10); /* 0 readers means one */
    assert_rest(&r, tokens, 0, 0);
    rig_close(&r);
    iron_source_close(s);
    shards_free(&files);
}

/* A ring that is destroyed at any point, while its readers work or wait for room. */
static void rings_can_be_given_up(void **state) {
    shards files = write_many();

    (void)state;
    for (uint32_t turn = 0; turn < 200; turn++) {
        iron_source *s = shards_open(&files);
        size_t done = 0;
        rig r;

        rig_cut(&r, s, reader_counts[turn % 4], 1 + turn % 7, 1 + turn % 11, turn % 5);
        for (uint32_t k = 0; k < turn % 13; k++) {
            done += take(&r, tokens, done, TOKENS);
            iron__ring_free(r.ring);
        }
        rig_close(&r);
        iron_source_close(s);
    }
    shards_free(&files);
}

typedef struct sender {
    int end;
    size_t count;
} sender;

static void *sender_main(void *argument) {
    sender *s = argument;

    for (size_t done = 0; done < s->count; done += 11) {
        size_t count = s->count - done < 11 ? s->count - done : 11;

        if (write(s->end, tokens + done, count * sizeof *tokens) < 0)
            break;
    }
    close(s->end);
    return NULL;
}

static void pipes_have_one_reader(void **state) {
    static const char *const paths[] = {"-"};

    (void)state;
    for (size_t n = 0; n < COUNT(reader_counts); n++) {
        int saved;
        sender w = {pipe_as_stdin(&saved), TOKENS};
        iron_source *s = open_all(IRON_DTYPE_U16, paths, 1);
        pthread_t thread;
        rig r;

        assert_int_equal(pthread_create(&thread, NULL, sender_main, &w), 0);
        rig_open(&r, s, reader_counts[n], 4, 100);
        assert_rest(&r, tokens, 0, TOKENS);
        rig_close(&r);
        assert_int_equal(pthread_join(thread, NULL), 0);
        iron_source_close(s);
        restore_stdin(saved);
    }
}

static void silent_pipes_can_be_given_up(void **state) {
    static const char *const paths[] = {"-"};

    (void)state;
    for (int is_named = 0; is_named < 2; is_named++) {
        file_name fifo = name_in(&place, "fifo");
        const char *path = is_named ? fifo.path : paths[0];
        int saved, end = pipe_as_stdin(&saved);
        iron_source *s;
        rig r;

        assert_true(!is_named || mkfifo(path, 0600) == 0);
        s = open_all(IRON_DTYPE_U16, &path, 1);
        if (!is_named)
            assert_int_equal(write(end, tokens, 4100), 4100); /* its head and a bit, then silence */
        rig_open(&r, s, 8, 4, 7);
        if (!is_named)
            take(&r, tokens, 0, TOKENS);
        rig_close(&r);
        iron_source_close(s);
        close(end);
        restore_stdin(saved);
    }
}

/* A pipe between files, truncated inside a token: the tokens before it are delivered first. */
static void pipes_fail_in_their_turn(void **state) {
    static const size_t size = 10;
    shards files = shards_write(&place, tokens, &size, 1);
    const char *const paths[] = {files.paths[0], "-", files.paths[0]};
    int saved, end = pipe_as_stdin(&saved);
    iron_source *s = open_all(IRON_DTYPE_U16, paths, 3);
    rig r;

    (void)state;
    assert_int_equal(write(end, tokens + 10, 9), 9);
    close(end);
    rig_open(&r, s, 3, 4, 6);
    take(&r, tokens, 0, TOKENS);
    iron__ring_free(r.ring);
    take(&r, tokens, 6, TOKENS);
    take_failure(&r, IRON_E_FORMAT, "ended after 9 bytes");
    rig_close(&r);
    iron_source_close(s);
    restore_stdin(saved);
    shards_free(&files);
}

/* A file as standard input: other processes that share it see that it was read. */
static void standard_input_moves_along(void **state) {
    static const char *const paths[] = {"-"};
    static const size_t size = 100;
    shards files = shards_write(&place, tokens, &size, 1);
    int saved = dup(0), fd = open(files.paths[0], O_RDONLY | O_CLOEXEC);
    iron_source *s;
    rig r;

    (void)state;
    assert_true(fd >= 0 && lseek(fd, 20, SEEK_SET) == 20);
    assert_int_equal(dup2(fd, 0), 0);
    close(fd);
    s = open_all(IRON_DTYPE_U16, paths, 1);
    rig_open(&r, s, 8, 3, 7);
    assert_rest(&r, tokens + 10, 0, 90);
    rig_close(&r);
    assert_int_equal(lseek(0, 0, SEEK_CUR), 200);
    iron_source_close(s);
    restore_stdin(saved);
    shards_free(&files);
}

static void options_are_checked(void **state) {
    shards files = write_many();
    iron_source *s = shards_open(&files);
    void *slots[IRON_RING_SLOTS_MAX + 1] = {0};
    iron__ring_options o = {.source = s,
                            .slots = slots,
                            .shape = {.slot_bytes = 2, .readers = 1},
                            .allocator = iron__allocator_default()};
    iron__ring *ring = (iron__ring *)&o;
    iron_error err;

    (void)state;
    assert_refused(iron__ring_create(&o, &ring, &err), IRON_E_ARG, &err);
    assert_says(&err, "0 slots");
    assert_null(ring);
    o.shape.slot_count = IRON_RING_SLOTS_MAX + 1;
    assert_refused(iron__ring_create(&o, &ring, &err), IRON_E_ARG, &err);
    assert_says(&err, "65 slots");
    o.shape.slot_count = 1;
    o.shape.slot_bytes = 1;
    assert_refused(iron__ring_create(&o, &ring, &err), IRON_E_ARG, &err);
    assert_says(&err, "1 bytes");
    iron__ring_destroy(NULL);
    iron_source_close(s);
    shards_free(&files);
}

static void no_memory(void **state) {
    shards files = write_many();
    iron_source *s = shards_open(&files);
    size_t failures = 0;
    bool has_failed = true;

    (void)state;
    while (has_failed) {
        rig r = {.books.fail_at = failures + 1};
        iron_error err = {0};
        iron_status status = rig_try(&r, s, 3, 4, 50, 9, &err);

        has_failed = status != IRON_OK;
        if (has_failed) {
            failures++;
            assert_int_equal(status, IRON_E_NOMEM);
            assert_says(&err, "out of memory");
            assert_null(r.ring);
        } else {
            assert_rest(&r, tokens, 0, TOKENS); /* nothing was taken */
        }
        rig_close(&r);
    }
    assert_true(failures >= 3); /* the ring, and its two views of the files */
    iron_source_close(s);
    shards_free(&files);
}

/* Bytes of addresses in use. */
static rlim_t address_space(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* In a separate process: with room for the stacks of two threads (256 KiB each and a guard), eight
 * are requested. Returns the number of the check that failed. */
static int too_many_threads(const shards *files) {
    static const folder tasks = {"/proc/self/task"};
    iron_source *s = shards_open(files);
    rlim_t most = address_space() + 700 * 1024;
    struct rlimit limit = {most, most};
    iron_error err = {0};
    rig r = {0};

    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    if (rig_try(&r, s, 8, 16, 7, 2, &err) != IRON_E_NOMEM || r.ring || r.books.out != 0)
        return 2;
    if (!strstr(err.text, "cannot start 8 reading threads") || iron__source_position(s) != 0)
        return 3;
    for (int k = 0; k < 30000 && folder_entries(&tasks) > 1; k++)
        poll(NULL, 0, 10); /* a joined thread is listed for a moment longer */
    if (folder_entries(&tasks) != 1)
        return 4;
    iron_source_close(s);
    return descriptors() == descriptors_before ? 0 : 5;
}

static void no_threads(void **state) {
    shards files = write_many();
    int status = 0;
    pid_t child;

    (void)state;
    if (address_space() >> 40) {
        print_message("left out: a sanitizer does not live with a limit on addresses\n");
    } else {
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(too_many_threads(&files));
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    assert_int_equal(status, 0);
    shards_free(&files);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(no_threads), /* first, because stacks of ended threads stay allocated */
        CASE(a_slot_is_work_for_as_many_as_it_has_pieces), /* first, because it counts threads */
        CASE(any_readers_and_slots_give_the_stream),
        CASE(slots_can_be_read_in_pieces),
        CASE(a_ring_leaves_the_source_where_it_was_taken_to),
        CASE(files_that_shrink_fail_in_their_turn),
        CASE(files_that_go_fail_in_their_turn),
        CASE(quick_failures_wait_for_slow_slots),
        CASE(quick_failures_wait_for_slow_pieces),
        CASE(several_slots_can_be_held),
        CASE(the_end_needs_no_free_slot),
        CASE(empty_sources_end_at_once),
        CASE(rings_can_be_given_up),
        CASE(pipes_have_one_reader),
        CASE(silent_pipes_can_be_given_up),
        CASE(pipes_fail_in_their_turn),
        CASE(standard_input_moves_along),
        CASE(options_are_checked),
        CASE(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
