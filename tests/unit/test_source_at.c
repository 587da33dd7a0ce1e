/* SPDX-License-Identifier: MIT */
/*
 * test_source_at.c: a source of files read in many places at once. Whatever the order and the
 * threads, a token comes from where it lies, as often as it is asked for; a file is the same for
 * all as long as it is open, and few are open at a time.
 */
#include "source_support.h"

#include "core/memory.h"
#include "formats/open_files.h"
#include "formats/source.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#define TOKENS 1290u /* 1 + 2 + ... + 50, and 15 more in the last file */

static folder place;
static uint16_t tokens[TOKENS];
static shards files;

/* Files of 1 ... 50 tokens, an empty one after every third, one at each end. */
static int set_up(void **state) {
    size_t sizes[80] = {0}, count = 1, longest = 0, sum = 0;

    (void)state;
    while (longest < 50) {
        sizes[count++] = ++longest;
        sum += longest;
        count += longest % 3 == 0;
    }
    sizes[count - 1] += TOKENS - sum;
    count++;
    folder_make(&place);
    fill_u16(tokens, TOKENS);
    files = shards_write(&place, tokens, sizes, count);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    shards_free(&files);
    folder_remove(&place);
    return 0;
}

static iron__source_at *open_at(const iron_source *s) {
    iron__source_at *at = NULL;
    iron_error err;

    assert_true(iron__source_is_seekable(s));
    assert_ok(iron__source_at_open(s, iron__allocator_default(), &at, &err), &err);
    return at;
}

static void assert_piece(iron__source_at *at, uint64_t first, const uint16_t *want, size_t count) {
    uint16_t piece[TOKENS + 1];
    iron_error err;

    piece[count] = 0xABCD;
    assert_ok(iron__source_at_read(at, first, piece, count, NULL, &err), &err);
    assert_memory_equal(piece, want, count * sizeof *piece);
    assert_int_equal(piece[count], 0xABCD);
}

/* From the end to the beginning, in pieces of every length, each twice; closing closes all. */
static void pieces_in_any_order(void **state) {
    size_t before = descriptors();

    (void)state;
    for (size_t length = 1; length <= TOKENS; length += 1 + length / 4) {
        iron_source *s = shards_open(&files);
        iron__source_at *at = open_at(s);
        size_t end = TOKENS;

        assert_int_equal(iron__source_at_tokens(at), TOKENS);
        while (end > 0) {
            size_t count = end < length ? end : length;

            end -= count;
            assert_piece(at, end, tokens + end, count);
            assert_piece(at, end / 2, tokens + end / 2, count);
        }
        iron__source_at_close(at);
        assert_int_equal(descriptors(), before);
        iron_source_close(s);
    }
}

/* What was read in order before is not there any more; seeking brings it back. */
static void it_begins_at_the_position(void **state) {
    iron_source *s = shards_open(&files);
    uint16_t piece[TOKENS];
    iron_error err;
    size_t count;

    (void)state;
    for (size_t position = 0; position <= TOKENS; position += 5) {
        iron__source_at *at;

        assert_int_equal(iron__source_position(s), position);
        at = open_at(s);
        assert_int_equal(iron__source_at_tokens(at), TOKENS - position);
        assert_piece(at, 0, tokens + position, TOKENS - position);
        iron__source_at_close(at);
        assert_int_equal(iron__source_position(s), position);
        assert_ok(iron_source_read(s, piece, 5, &count, &err), &err);
    }
    for (size_t position = 0; position <= TOKENS; position += 13) {
        iron__source_seek(s, position);
        assert_int_equal(iron__source_position(s), position);
        assert_stream(s, tokens + position, TOKENS - position, 100);
        assert_int_equal(iron__source_position(s), TOKENS);
    }
    iron_source_close(s);
}

/* Threads that take one piece after another. */
typedef struct work {
    iron__source_at *at;
    atomic_size_t next;
    size_t length;
    atomic_int status;
    uint16_t all[TOKENS];
} work;

static void *work_main(void *argument) {
    work *w = argument;
    size_t first;

    while ((first = atomic_fetch_add(&w->next, 1) * w->length) < TOKENS) {
        size_t rest = TOKENS - first, count = rest < w->length ? rest : w->length;
        iron_status status = iron__source_at_read(w->at, first, w->all + first, count, NULL, NULL);

        if (status != IRON_OK)
            atomic_store(&w->status, (int)status);
    }
    return NULL;
}

static void share(size_t length) {
    iron_source *s = shards_open(&files);
    work w = {.at = open_at(s), .length = length};
    pthread_t threads[6];

    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, work_main, &w), 0);
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    assert_int_equal(atomic_load(&w.status), IRON_OK);
    assert_memory_equal(w.all, tokens, sizeof w.all);
    iron__source_at_close(w.at);
    iron_source_close(s);
}

/* Each thread reads all of it, in an order of its own. */
static void *read_all_main(void *argument) {
    work *w = argument;
    dice d = {77 + atomic_fetch_add(&w->next, 1)};
    uint16_t piece[64];

    for (size_t k = 0; k < 2000; k++) {
        size_t first = roll_below(&d, TOKENS), count = 1 + roll_below(&d, COUNT(piece));

        count = count < TOKENS - first ? count : TOKENS - first;
        if (iron__source_at_read(w->at, first, piece, count, NULL, NULL) != IRON_OK ||
            memcmp(piece, tokens + first, count * sizeof *piece) != 0)
            atomic_store(&w->status, 1);
    }
    return NULL;
}

static void threads_read_the_same(void **state) {
    iron_source *s = shards_open(&files);
    work w = {.at = open_at(s)};
    pthread_t threads[6];

    (void)state;
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, read_all_main, &w), 0);
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    assert_int_equal(atomic_load(&w.status), 0);
    iron__source_at_close(w.at);
    iron_source_close(s);
}

/* With descriptors for a third of the files. */
static void threads_share_files(void **state) {
    struct rlimit before, few;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = descriptors() + files.count / 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (size_t length = 1; length < 200; length += 6)
        share(length);
    threads_read_the_same(state);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A file that another one takes the place of stays what it was for whoever has begun it. */
static void a_file_is_opened_once(void **state) {
    file_name name = name_in(&place, "old"), other = name_in(&place, "new");
    static const uint16_t new_tokens[100] = {0};
    const char *path = name.path;
    size_t before = descriptors();
    iron__source_at *at;
    iron_source *s;

    (void)state;
    file_write(path, tokens, 100 * sizeof *tokens);
    file_write(other.path, new_tokens, sizeof new_tokens);
    s = open_all(IRON_DTYPE_U16, &path, 1);
    at = open_at(s);
    assert_piece(at, 50, tokens + 50, 10);
    assert_int_equal(rename(other.path, path), 0);
    assert_piece(at, 0, tokens, 50);
    assert_int_equal(unlink(path), 0);
    assert_piece(at, 60, tokens + 60, 30);
    assert_int_equal(descriptors(), before + 1);
    iron__source_at_close(at); /* before all was read */
    assert_int_equal(descriptors(), before);
    iron_source_close(s);
}

/* More files than places: few are open at a time, the last ones used. One that was closed
 * meanwhile and is another file now is refused. */
static void few_files_are_open(void **state) {
    enum { MANY = 3 * IRON_OPEN_FILES_MAX };
    size_t sizes[MANY], before = descriptors();
    folder many;
    shards all;
    iron_source *s;
    iron__source_at *at;
    iron_error err;
    uint16_t token;

    (void)state;
    for (size_t k = 0; k < MANY; k++)
        sizes[k] = 1;
    folder_make(&many);
    all = shards_write(&many, tokens, sizes, MANY);
    s = shards_open(&all);
    at = open_at(s);
    for (size_t round = 0; round < 3; round++)
        for (size_t k = 0; k < MANY; k++) {
            assert_piece(at, k, tokens + k, 1);
            assert_true(descriptors() <= before + IRON_OPEN_FILES_MAX);
        }
    assert_int_equal(descriptors(), before + IRON_OPEN_FILES_MAX);
    file_write(name_in(&many, "other").path, tokens, sizeof *tokens);
    assert_int_equal(rename(name_in(&many, "other").path, all.paths[0]), 0);
    file_write(name_in(&many, "other").path, tokens, sizeof *tokens);
    assert_int_equal(rename(name_in(&many, "other").path, all.paths[MANY - 1]), 0);
    assert_piece(at, MANY - 1, tokens + MANY - 1, 1); /* still open */
    assert_refused(iron__source_at_read(at, 0, &token, 1, NULL, &err), IRON_E_IO, &err);
    assert_says(&err, "f0 was replaced");
    iron__source_at_close(at);
    iron_source_close(s);
    assert_int_equal(descriptors(), before);
    shards_free(&all);
    folder_remove(&many);
}

static void assert_piece_fails(iron__source_at *at, uint64_t first, size_t count,
                               const atomic_bool *stop, iron_status expected, const char *word) {
    uint16_t piece[TOKENS];
    iron_error err;

    assert_refused(iron__source_at_read(at, first, piece, count, stop, &err), expected, &err);
    assert_says(&err, word);
}

static void files_that_change_are_an_error(void **state) {
    iron_source *s = shards_open(&files);
    iron__source_at *at = open_at(s);
    atomic_bool stop = true;

    (void)state;
    assert_int_equal(truncate(files.paths[1], 0), 0); /* its one token */
    assert_piece_fails(at, 0, 1, NULL, IRON_E_IO, "f1 ended at byte 0 of 2; it was cut");
    assert_int_equal(unlink(files.paths[2]), 0); /* tokens 1 and 2 */
    assert_piece_fails(at, 2, 3, NULL, IRON_E_IO, "cannot open");
    assert_int_equal(truncate(files.paths[3], 3), 0); /* tokens 3 to 5 */
    assert_piece_fails(at, 3, 3, NULL, IRON_E_IO, "f3 ended at byte 3 of 6;");
    assert_piece_fails(at, 100, 30, &stop, IRON_E_CANCELLED, "called off");
    iron__source_at_close(at);
    iron_source_close(s);
}

/* Pipes cannot be read anywhere, and standard input has an offset that others see. */
static void streams_are_not_seekable(void **state) {
    static const char *const standard_input[] = {"-"};
    file_name fifo = name_in(&place, "fifo");
    const char *const paths[] = {files.paths[0], fifo.path, files.paths[1]};
    iron_source *s;
    int saved = dup(0), fd;

    (void)state;
    assert_int_equal(mkfifo(fifo.path, 0600), 0);
    s = open_all(IRON_DTYPE_U16, paths, 3);
    assert_false(iron__source_is_seekable(s));
    iron_source_close(s);
    fd = open(files.paths[1], O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(dup2(fd, 0), 0);
    close(fd);
    s = open_all(IRON_DTYPE_U16, standard_input, 1);
    assert_int_equal(iron_source_tokens(s), 1);
    assert_false(iron__source_is_seekable(s));
    assert_stream(s, tokens, 1, 10);
    assert_int_equal(lseek(0, 0, SEEK_CUR), 2);
    iron_source_close(s);
    restore_stdin(saved);
}

/* Token by token: the file and byte from which it comes. */
static void tokens_are_located(void **state) {
    iron_source *s = shards_open(&files);
    size_t index;
    uint64_t byte;

    (void)state;
    for (size_t k = 0; k < TOKENS; k++) {
        uint16_t found;
        FILE *file;

        assert_true(iron__source_locate(s, k, &index, &byte));
        file = fopen(files.paths[index], "rb");
        assert_non_null(file);
        assert_int_equal(fseek(file, (long)byte, SEEK_SET), 0);
        assert_int_equal(fread(&found, sizeof found, 1, file), 1);
        assert_int_equal(found, tokens[k]);
        fclose(file);
    }
    assert_false(iron__source_locate(s, TOKENS, &index, &byte));
    iron_source_close(s);
}

static void no_memory(void **state) {
    iron_source *s = shards_open(&files);

    (void)state;
    for (size_t n = 1; n <= 3; n++) {
        ledger books = {.fail_at = n};
        iron_allocator allocator = ledger_allocator(&books);
        iron__source_at *at = (iron__source_at *)&books;
        iron_error err;

        assert_refused(iron__source_at_open(s, &allocator, &at, &err), IRON_E_NOMEM, &err);
        assert_null(at);
        assert_int_equal(books.out, 0);
    }
    iron__source_at_close(NULL);
    iron_source_close(s);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(pieces_in_any_order),      CASE(it_begins_at_the_position),
        CASE(threads_share_files),      CASE(threads_read_the_same),
        CASE(a_file_is_opened_once),    CASE(few_files_are_open),
        CASE(tokens_are_located),       CASE(files_that_change_are_an_error),
        CASE(streams_are_not_seekable), CASE(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
