/* SPDX-License-Identifier: MIT */
/*
 * test_source_direct.c: files read past the page cache. Wherever a piece begins and ends, in the
 * file and in memory, it is what the ordinary way brings; what cannot be read directly comes in the
 * ordinary way, and what goes wrong is told in its words.
 */
#include "source_support.h"

#include "core/memory.h"
#include "formats/direct.h"
#include "formats/source.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#define BLOCK  4096u
#define TOKENS (3u * 1024 * 1024 + 777) /* more than three buffers, and half a block at the end */

static folder place;
static uint16_t *tokens;
static shards files;

/* A short file, so that the tokens of the long one are not at whole blocks of the stream. */
static int set_up(void **state) {
    static const size_t sizes[] = {5, TOKENS - 5};

    (void)state;
    folder_make(&place);
    tokens = grab(TOKENS * sizeof *tokens);
    fill_u16(tokens, TOKENS);
    files = shards_write(&place, tokens, sizes, COUNT(sizes));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    shards_free(&files);
    free(tokens);
    folder_remove(&place);
    return 0;
}

static iron__source_at *open_at(const iron_source *s, iron__direct how) {
    iron__source_at *at = NULL;
    iron_error err;

    assert_ok(iron__source_at_open(s, iron__allocator_default(), &at, &err), &err);
    iron__source_at_direct(at, how);
    return at;
}

/* Can files here be read directly at all? Not on every file system. */
static bool is_possible(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* `shift` bytes behind a block's beginning in memory. */
static void assert_piece(iron__source_at *at, char *memory, size_t shift, size_t first,
                         size_t count) {
    iron_error err;
    char *to = memory + shift;

    to[count * 2] = 77;
    assert_ok(iron__source_at_read(at, first, to, count, NULL, &err), &err);
    assert_memory_equal(to, tokens + first, count * sizeof *tokens);
    assert_int_equal(to[count * 2], 77);
}

static void pieces_of_any_place_and_length(void **state) {
    static const size_t firsts[] = {0,    4,    5,    6,         5 + BLOCK / 2,  5 + BLOCK,
                                    2048, 2053, 9999, 5 + 65536, TOKENS - 100000};
    static const size_t counts[] = {1, 2, BLOCK / 2, BLOCK, 3000, 65536, 99999, 614400};
    static const size_t shifts[] = {0, 2, 512, 1000};
    size_t before = descriptors();
    iron_source *s = shards_open(&files);
    iron__source_at *at = open_at(s, IRON_DIRECT_ALWAYS);
    char *memory = NULL;

    (void)state;
    assert_int_equal(posix_memalign((void **)&memory, BLOCK, 2 * TOKENS + 2 * BLOCK), 0);
    for (size_t f = 0; f < COUNT(firsts); f++)
        for (size_t c = 0; c < COUNT(counts); c++)
            for (size_t k = 0; k < COUNT(shifts); k++)
                if (firsts[f] + counts[c] <= TOKENS)
                    assert_piece(at, memory, shifts[k], firsts[f], counts[c]);
    for (size_t k = 0; k < COUNT(shifts); k++) {
        assert_piece(at, memory, shifts[k], 0, TOKENS);
        assert_piece(at, memory, shifts[k], 5, TOKENS - 5);
        assert_piece(at, memory, shifts[k], TOKENS - 1, 1);
    }
    if (is_possible(files.paths[1]))
        assert_true(iron__source_at_direct_bytes(at) > 16 * (uint64_t)TOKENS);
    iron__source_at_close(at);
    iron_source_close(s);
    assert_int_equal(descriptors(), before);
    free(memory);
}

/* What was written a moment ago is in the page cache: such files are read from there. */
static void what_is_cached_is_not_read_directly(void **state) {
    static const iron__direct hows[] = {IRON_DIRECT_NEVER, IRON_DIRECT_COLD};
    iron_source *s = shards_open(&files);
    char *memory = grab(2 * TOKENS + 1);

    (void)state;
    for (size_t k = 0; k < COUNT(hows); k++) {
        iron__source_at *at = open_at(s, hows[k]);

        assert_piece(at, memory, 0, 0, TOKENS);
        assert_int_equal(iron__source_at_direct_bytes(at), 0);
        iron__source_at_close(at);
    }
    iron_source_close(s);
    free(memory);
}

/* A long file of holes that nobody has read is not in the cache; once it was read, it is. */
static void what_is_not_cached_is(void **state) {
    const off_t bytes = (off_t)32 << 20;
    file_name name = name_in(&place, "holes");
    int fd = open(name.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char *memory = grab((size_t)bytes);
    iron__direct_file cold, warm;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    cold = iron__direct_open(fd, IRON_DIRECT_COLD);
    assert_int_equal(cold.fd >= 0, is_possible(name.path));
    iron__direct_close(&cold);
    assert_int_equal(pread(fd, memory, (size_t)bytes, 0), bytes);
    warm = iron__direct_open(fd, IRON_DIRECT_COLD);
    assert_int_equal(warm.fd, -1);
    close(fd);
    free(memory);
}

/* Files of the kernel's own are regular ones and cannot be read directly. */
static void where_it_is_refused_the_ordinary_way_is_taken(void **state) {
    static const char *const path = "/sys/kernel/notes";
    unsigned char direct[4096], ordinary[4096];
    struct stat info;
    iron_source *s;
    uint64_t count;

    (void)state;
    if (stat(path, &info) != 0 || info.st_size == 0 || is_possible(path))
        skip();
    s = open_all(IRON_DTYPE_U8, &path, 1);
    count = iron_source_tokens(s);
    assert_in_range(count, 1, sizeof direct);
    for (int turn = 0; turn < 2; turn++) {
        iron__source_at *at = open_at(s, turn ? IRON_DIRECT_ALWAYS : IRON_DIRECT_NEVER);
        iron_error err;

        assert_ok(iron__source_at_read(at, 0, turn ? direct : ordinary, (size_t)count, NULL, &err),
                  &err);
        assert_int_equal(iron__source_at_direct_bytes(at), 0);
        iron__source_at_close(at);
    }
    assert_memory_equal(direct, ordinary, (size_t)count);
    iron_source_close(s);
}

/* A descriptor that every read is refused of. */
static void refused_reads_bring_nothing(void **state) {
    iron__direct_file file = {open(files.paths[1], O_WRONLY | O_CLOEXEC), 10 * BLOCK};
    iron__direct_buffers buffers;
    char to[100];

    (void)state;
    iron__direct_buffers_init(&buffers);
    assert_true(file.fd >= 0);
    assert_int_equal(iron__direct_read(&buffers, &file, 7, to, sizeof to, NULL), 0);
    iron__direct_close(&file);
    assert_int_equal(file.fd, -1);
    iron__direct_buffers_deinit(&buffers);
}

static void called_off_it_brings_nothing(void **state) {
    int fd = open(files.paths[1], O_RDONLY | O_CLOEXEC);
    iron__direct_file file = iron__direct_open(fd, IRON_DIRECT_ALWAYS);
    iron__direct_buffers buffers;
    atomic_bool stop = true;
    char to[100];

    (void)state;
    close(fd);
    if (file.fd < 0)
        skip();
    iron__direct_buffers_init(&buffers);
    assert_int_equal(iron__direct_read(&buffers, &file, 7, to, sizeof to, &stop), 0);
    assert_int_equal(iron__direct_read(&buffers, &file, 7, to, sizeof to, NULL), sizeof to);
    iron__direct_close(&file);
    iron__direct_buffers_deinit(&buffers);
}

/* Cut after it was opened, at a block's end, inside one, and to nothing: as the ordinary way says
 * it, to the byte. */
static void files_that_shrink_are_told_alike(void **state) {
    static const off_t ends[] = {(off_t)300 * BLOCK, (off_t)299 * BLOCK + 1235, 3, 0};
    char *memory = grab(2 * TOKENS);

    (void)state;
    for (size_t k = 0; k < COUNT(ends); k++) {
        iron_error errs[2];
        iron_source *s;

        for (int turn = 0; turn < 2; turn++) {
            iron__source_at *at;
            iron_error err;

            assert_int_equal(truncate(files.paths[1], 2 * (TOKENS - 5)), 0);
            s = shards_open(&files);
            at = open_at(s, turn ? IRON_DIRECT_ALWAYS : IRON_DIRECT_NEVER);
            assert_ok(iron__source_at_read(at, 5, memory, 1, NULL, &err), &err); /* it is open */
            assert_int_equal(truncate(files.paths[1], ends[k]), 0);
            assert_refused(iron__source_at_read(at, 0, memory, TOKENS, NULL, &errs[turn]),
                           IRON_E_IO, &errs[turn]);
            iron__source_at_close(at);
            iron_source_close(s);
        }
        assert_says(&errs[0], "it was cut while being read");
        assert_string_equal(errs[0].text, errs[1].text);
    }
    free(memory);
}

typedef struct work {
    iron__source_at *at;
    atomic_size_t next;
    atomic_int status;
    uint16_t *all;
} work;

static void *work_main(void *argument) {
    enum { LENGTH = 40001 };
    work *w = argument;
    size_t first;

    while ((first = atomic_fetch_add(&w->next, 1) * LENGTH) < TOKENS) {
        size_t count = TOKENS - first < LENGTH ? TOKENS - first : LENGTH;
        iron_status status = iron__source_at_read(w->at, first, w->all + first, count, NULL, NULL);

        if (status != IRON_OK)
            atomic_store(&w->status, (int)status);
    }
    return NULL;
}

static void many_threads_read_at_once(void **state) {
    iron_source *s = shards_open(&files);
    work w = {.at = open_at(s, IRON_DIRECT_ALWAYS), .all = grab(TOKENS * sizeof *w.all)};
    pthread_t threads[6];

    (void)state;
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, work_main, &w), 0);
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    assert_int_equal(w.status, IRON_OK);
    assert_memory_equal(w.all, tokens, TOKENS * sizeof *tokens);
    iron__source_at_close(w.at);
    iron_source_close(s);
    free(w.all);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(pieces_of_any_place_and_length),
        CASE(what_is_cached_is_not_read_directly),
        CASE(what_is_not_cached_is),
        CASE(where_it_is_refused_the_ordinary_way_is_taken),
        CASE(refused_reads_bring_nothing),
        CASE(called_off_it_brings_nothing),
        CASE(files_that_shrink_are_told_alike),
        CASE(many_threads_read_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
