/* SPDX-License-Identifier: MIT */
/*
 * test_parallel_source.c: a source of files read at many positions at once. In any order and from
 * any thread, each token is the one at its position, however often it is read; a file stays the
 * same for all threads while it is open, and only a few files are open at a time.
 *
 * Direct reads past the page cache give the same bytes as ordinary ones, for any alignment in the
 * file and in memory. What cannot be read directly is read in the ordinary way, which also reports
 * the errors.
 *
 * Large cached files are used where they are mapped. A file that is truncated meanwhile gives the
 * error of an ordinary read, and no other signal is swallowed.
 */
#include "core/memory.h"
#include "formats/parallel_source.c"
#include "source_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

static iron__parallel_source *open_at(const iron_source *s) {
    iron__parallel_source *at = NULL;
    iron_error err;

    assert_true(iron__source_is_seekable(s));
    assert_ok(iron__parallel_source_open(s, iron__allocator_default(), &at, &err), &err);
    return at;
}

static void assert_piece(iron__parallel_source *at, uint64_t first, const uint16_t *want,
                         size_t count) {
    uint16_t piece[TOKENS + 1];
    iron_error err;

    piece[count] = 0xABCD;
    assert_ok(iron__parallel_source_read(at, first, piece, count, NULL, &err), &err);
    assert_memory_equal(piece, want, count * sizeof *piece);
    assert_int_equal(piece[count], 0xABCD);
}

/* From the end to the beginning, in pieces of every length, each twice; close closes all files. */
static void pieces_in_any_order(void **state) {
    size_t before = descriptors();

    (void)state;
    for (size_t length = 1; length <= TOKENS; length += 1 + length / 4) {
        iron_source *s = shards_open(&files);
        iron__parallel_source *at = open_at(s);
        size_t end = TOKENS;

        assert_int_equal(iron__parallel_source_tokens(at), TOKENS);
        while (end > 0) {
            size_t count = end < length ? end : length;

            end -= count;
            assert_piece(at, end, tokens + end, count);
            assert_piece(at, end / 2, tokens + end / 2, count);
        }
        iron__parallel_source_close(at);
        assert_int_equal(descriptors(), before);
        iron_source_close(s);
    }
}

/* Tokens that were read in order before are not part of it; seeking back includes them. */
static void starts_at_the_position(void **state) {
    iron_source *s = shards_open(&files);
    uint16_t piece[TOKENS];
    iron_error err;
    size_t count;

    (void)state;
    for (size_t position = 0; position <= TOKENS; position += 5) {
        iron__parallel_source *at;

        assert_int_equal(iron__source_position(s), position);
        at = open_at(s);
        assert_int_equal(iron__parallel_source_tokens(at), TOKENS - position);
        assert_piece(at, 0, tokens + position, TOKENS - position);
        iron__parallel_source_close(at);
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
    iron__parallel_source *at;
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
        iron_status status =
            iron__parallel_source_read(w->at, first, w->all + first, count, NULL, NULL);

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
    iron__parallel_source_close(w.at);
    iron_source_close(s);
}

/* Each thread reads everything, in its own order. */
static void *read_all_main(void *argument) {
    work *w = argument;
    rng r = {77 + atomic_fetch_add(&w->next, 1)};
    uint16_t piece[64];

    for (size_t k = 0; k < 2000; k++) {
        size_t first = rng_below(&r, TOKENS), count = 1 + rng_below(&r, COUNT(piece));

        count = count < TOKENS - first ? count : TOKENS - first;
        if (iron__parallel_source_read(w->at, first, piece, count, NULL, NULL) != IRON_OK ||
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
    iron__parallel_source_close(w.at);
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

/* A file that is replaced stays the same for a reader that has it open. */
static void a_file_is_opened_once(void **state) {
    file_name name = name_in(&place, "old"), other = name_in(&place, "new");
    static const uint16_t new_tokens[100] = {0};
    const char *path = name.path;
    size_t before = descriptors();
    iron__parallel_source *at;
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
    iron__parallel_source_close(at); /* before all was read */
    assert_int_equal(descriptors(), before);
    iron_source_close(s);
}

/* More files than table entries: only the most recently used ones are open. A file that was closed
 * meanwhile and is another file now is an error. */
static void few_files_are_open(void **state) {
    enum { MANY = 3 * OPEN_FILES_MAX };
    size_t sizes[MANY], before = descriptors();
    folder many;
    shards all;
    iron_source *s;
    iron__parallel_source *at;
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
            assert_true(descriptors() <= before + open_files_capacity());
        }
    assert_int_equal(descriptors(), before + open_files_capacity());
    file_write(name_in(&many, "other").path, tokens, sizeof *tokens);
    assert_int_equal(rename(name_in(&many, "other").path, all.paths[0]), 0);
    file_write(name_in(&many, "other").path, tokens, sizeof *tokens);
    assert_int_equal(rename(name_in(&many, "other").path, all.paths[MANY - 1]), 0);
    assert_piece(at, MANY - 1, tokens + MANY - 1, 1); /* still open */
    assert_refused(iron__parallel_source_read(at, 0, &token, 1, NULL, &err), IRON_E_IO, &err);
    assert_says(&err, "f0 was replaced");
    iron__parallel_source_close(at);
    iron_source_close(s);
    assert_int_equal(descriptors(), before);
    shards_free(&all);
    folder_remove(&many);
}

/* Three sources, all of whose files are in use, leave descriptors for others. */
static void a_low_limit_is_shared(void **state) {
    static const rlim_t limits[] = {0, 4, 9, 10, 16, 64, 400, 1024, RLIM_INFINITY};
    static const size_t capacities[] = {1, 1, 1, 1, 2, 10, 64, 64, 64};
    struct rlimit before, low;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t k = 0; k < COUNT(limits); k++) {
        size_t capacity;

        low = before;
        low.rlim_cur = limits[k] < before.rlim_max ? limits[k] : before.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        capacity = open_files_capacity();
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (low.rlim_cur == limits[k])
            assert_int_equal(capacity, capacities[k]);
    }
}

static void assert_piece_fails(iron__parallel_source *at, uint64_t first, size_t count,
                               const atomic_bool *stop, iron_status expected, const char *word) {
    uint16_t piece[TOKENS];
    iron_error err;

    assert_refused(iron__parallel_source_read(at, first, piece, count, stop, &err), expected, &err);
    assert_says(&err, word);
}

static void files_that_change_are_an_error(void **state) {
    iron_source *s = shards_open(&files);
    iron__parallel_source *at = open_at(s);
    atomic_bool stop = true;

    (void)state;
    assert_int_equal(truncate(files.paths[1], 0), 0); /* its one token */
    assert_piece_fails(at, 0, 1, NULL, IRON_E_IO, "f1 ended at byte 0 of 2; it was cut");
    assert_int_equal(unlink(files.paths[2]), 0); /* tokens 1 and 2 */
    assert_piece_fails(at, 2, 3, NULL, IRON_E_IO, "cannot open");
    assert_int_equal(truncate(files.paths[3], 3), 0); /* tokens 3 to 5 */
    assert_piece_fails(at, 3, 3, NULL, IRON_E_IO, "f3 ended at byte 3 of 6;");
    assert_piece_fails(at, 100, 30, &stop, IRON_E_CANCELLED, "reading was cancelled");
    iron__parallel_source_close(at);
    iron_source_close(s);
}

/* Pipes cannot seek, and other processes see the offset of standard input. */
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

/* The file and byte offset of every token. */
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
        iron__parallel_source *at = (iron__parallel_source *)&books;
        iron_error err;

        assert_refused(iron__parallel_source_open(s, &allocator, &at, &err), IRON_E_NOMEM, &err);
        assert_null(at);
        assert_int_equal(books.out, 0);
    }
    iron__parallel_source_close(NULL);
    iron_source_close(s);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#define DIRECT_TOKENS                                                                              \
    (3u * 1024 * 1024 + 777) /* more than three buffers, and half a block at the end */

static folder direct_place;
static uint16_t *direct_tokens;
static shards direct_files;

/* A short file, so that the tokens of the long one are not aligned to blocks of the stream. */
static int direct_set_up(void **state) {
    static const size_t sizes[] = {5, DIRECT_TOKENS - 5};

    (void)state;
    folder_make(&direct_place);
    direct_tokens = grab(DIRECT_TOKENS * sizeof *direct_tokens);
    fill_u16(direct_tokens, DIRECT_TOKENS);
    direct_files = shards_write(&direct_place, direct_tokens, sizes, COUNT(sizes));
    return 0;
}

static int direct_tear_down(void **state) {
    (void)state;
    shards_free(&direct_files);
    free(direct_tokens);
    folder_remove(&direct_place);
    return 0;
}

static iron__parallel_source *direct_open_at(const iron_source *s, iron__direct_mode how) {
    iron__parallel_source *at = NULL;
    iron_error err;

    assert_ok(iron__parallel_source_open(s, iron__allocator_default(), &at, &err), &err);
    iron__parallel_source_set_direct(at, how);
    return at;
}

/* Whether this file system supports direct reads. */
static bool is_possible(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Reads to `shift` bytes after a block boundary in memory. */
static void direct_assert_piece(iron__parallel_source *at, char *memory, size_t shift, size_t first,
                                size_t count) {
    iron_error err;
    char *to = memory + shift;

    to[count * 2] = 77;
    assert_ok(iron__parallel_source_read(at, first, to, count, NULL, &err), &err);
    assert_memory_equal(to, direct_tokens + first, count * sizeof *direct_tokens);
    assert_int_equal(to[count * 2], 77);
}

static void pieces_of_any_alignment_and_length(void **state) {
    static const size_t firsts[] = {0,    4,    5,    6,         5 + BLOCK / 2,         5 + BLOCK,
                                    2048, 2053, 9999, 5 + 65536, DIRECT_TOKENS - 100000};
    static const size_t counts[] = {1, 2, BLOCK / 2, BLOCK, 3000, 65536, 99999, 614400};
    static const size_t shifts[] = {0, 2, 512, 1000};
    size_t before = descriptors();
    iron_source *s = shards_open(&direct_files);
    iron__parallel_source *at = direct_open_at(s, IRON_DIRECT_ALWAYS);
    char *memory = NULL;

    (void)state;
    assert_int_equal(posix_memalign((void **)&memory, BLOCK, 2 * DIRECT_TOKENS + 2 * BLOCK), 0);
    for (size_t f = 0; f < COUNT(firsts); f++)
        for (size_t c = 0; c < COUNT(counts); c++)
            for (size_t k = 0; k < COUNT(shifts); k++)
                if (firsts[f] + counts[c] <= DIRECT_TOKENS)
                    direct_assert_piece(at, memory, shifts[k], firsts[f], counts[c]);
    for (size_t k = 0; k < COUNT(shifts); k++) {
        direct_assert_piece(at, memory, shifts[k], 0, DIRECT_TOKENS);
        direct_assert_piece(at, memory, shifts[k], 5, DIRECT_TOKENS - 5);
        direct_assert_piece(at, memory, shifts[k], DIRECT_TOKENS - 1, 1);
    }
    if (is_possible(direct_files.paths[1]))
        assert_true(at->direct_bytes > 16 * (uint64_t)DIRECT_TOKENS);
    iron__parallel_source_close(at);
    iron_source_close(s);
    assert_int_equal(descriptors(), before);
    free(memory);
}

/* Files that were just written are in the page cache and are read from there. */
static void cached_files_are_not_read_directly(void **state) {
    static const iron__direct_mode hows[] = {IRON_DIRECT_NEVER, IRON_DIRECT_COLD};
    iron_source *s = shards_open(&direct_files);
    char *memory = grab(2 * DIRECT_TOKENS + 1);

    (void)state;
    for (size_t k = 0; k < COUNT(hows); k++) {
        iron__parallel_source *at = direct_open_at(s, hows[k]);

        direct_assert_piece(at, memory, 0, 0, DIRECT_TOKENS);
        assert_int_equal(at->direct_bytes, 0);
        iron__parallel_source_close(at);
    }
    iron_source_close(s);
    free(memory);
}

/* A long sparse file is not in the cache before it is read for the first time. */
static void uncached_files_are_read_directly(void **state) {
    const off_t bytes = (off_t)32 << 20;
    file_name name = name_in(&direct_place, "holes");
    int fd = open(name.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char *memory = grab((size_t)bytes);
    direct_file cold, warm;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    cold = direct_open(fd, IRON_DIRECT_COLD);
    assert_int_equal(cold.fd >= 0, is_possible(name.path));
    if (cold.fd >= 0)
        close(cold.fd);
    assert_int_equal(pread(fd, memory, (size_t)bytes, 0), bytes);
    warm = direct_open(fd, IRON_DIRECT_COLD);
    assert_int_equal(warm.fd, -1);
    close(fd);
    free(memory);
}

/* Files in /proc or /sys are regular files but cannot be read directly. */
static void files_without_direct_reads_use_ordinary_reads(void **state) {
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
        iron__parallel_source *at =
            direct_open_at(s, turn ? IRON_DIRECT_ALWAYS : IRON_DIRECT_NEVER);
        iron_error err;

        assert_ok(
            iron__parallel_source_read(at, 0, turn ? direct : ordinary, (size_t)count, NULL, &err),
            &err);
        assert_int_equal(at->direct_bytes, 0);
        iron__parallel_source_close(at);
    }
    assert_memory_equal(direct, ordinary, (size_t)count);
    iron_source_close(s);
}

static void free_buffers(iron__parallel_source *p) {
    while (p->idle_buffers)
        munmap(take_buffer(p), BUFFER_BYTES);
}

/* A descriptor on which every read fails. */
static void failing_direct_reads_return_nothing(void **state) {
    direct_file file = {open(direct_files.paths[1], O_WRONLY | O_CLOEXEC), 10 * BLOCK};
    iron__parallel_source buffers = {.buffer_mutex = PTHREAD_MUTEX_INITIALIZER};
    char to[100];

    (void)state;
    assert_true(file.fd >= 0);
    assert_int_equal(direct_read(&buffers, &file, 7, to, sizeof to, NULL), 0);
    close(file.fd);
    free_buffers(&buffers);
}

static void cancelled_direct_reads_return_nothing(void **state) {
    int fd = open(direct_files.paths[1], O_RDONLY | O_CLOEXEC);
    direct_file file = direct_open(fd, IRON_DIRECT_ALWAYS);
    iron__parallel_source buffers = {.buffer_mutex = PTHREAD_MUTEX_INITIALIZER};
    atomic_bool stop = true;
    char to[100];

    (void)state;
    close(fd);
    if (file.fd < 0)
        skip();
    assert_int_equal(direct_read(&buffers, &file, 7, to, sizeof to, &stop), 0);
    assert_int_equal(direct_read(&buffers, &file, 7, to, sizeof to, NULL), sizeof to);
    close(file.fd);
    free_buffers(&buffers);
}

/* A file truncated after it was opened, at the end of a block, inside one, and to 0 bytes: the
 * error is that of ordinary reads, to the byte. */
static void truncated_files_give_the_same_error(void **state) {
    static const off_t ends[] = {(off_t)300 * BLOCK, (off_t)299 * BLOCK + 1235, 3, 0};
    char *memory = grab(2 * DIRECT_TOKENS);

    (void)state;
    for (size_t k = 0; k < COUNT(ends); k++) {
        iron_error errs[2];
        iron_source *s;

        for (int turn = 0; turn < 2; turn++) {
            iron__parallel_source *at;
            iron_error err;

            assert_int_equal(truncate(direct_files.paths[1], 2 * (DIRECT_TOKENS - 5)), 0);
            s = shards_open(&direct_files);
            at = direct_open_at(s, turn ? IRON_DIRECT_ALWAYS : IRON_DIRECT_NEVER);
            assert_ok(iron__parallel_source_read(at, 5, memory, 1, NULL, &err),
                      &err); /* it is open */
            assert_int_equal(truncate(direct_files.paths[1], ends[k]), 0);
            assert_refused(
                iron__parallel_source_read(at, 0, memory, DIRECT_TOKENS, NULL, &errs[turn]),
                IRON_E_IO, &errs[turn]);
            iron__parallel_source_close(at);
            iron_source_close(s);
        }
        assert_says(&errs[0], "it was cut while being read");
        assert_string_equal(errs[0].text, errs[1].text);
    }
    free(memory);
}

typedef struct direct_work {
    iron__parallel_source *at;
    atomic_size_t next;
    atomic_int status;
    uint16_t *all;
} direct_work;

static void *direct_work_main(void *argument) {
    enum { LENGTH = 40001 };
    direct_work *w = argument;
    size_t first;

    while ((first = atomic_fetch_add(&w->next, 1) * LENGTH) < DIRECT_TOKENS) {
        size_t count = DIRECT_TOKENS - first < LENGTH ? DIRECT_TOKENS - first : LENGTH;
        iron_status status =
            iron__parallel_source_read(w->at, first, w->all + first, count, NULL, NULL);

        if (status != IRON_OK)
            atomic_store(&w->status, (int)status);
    }
    return NULL;
}

static void many_threads_read_at_once(void **state) {
    iron_source *s = shards_open(&direct_files);
    direct_work w = {.at = direct_open_at(s, IRON_DIRECT_ALWAYS),
                     .all = grab(DIRECT_TOKENS * sizeof *w.all)};
    pthread_t threads[6];

    (void)state;
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, direct_work_main, &w), 0);
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    assert_int_equal(w.status, IRON_OK);
    assert_memory_equal(w.all, direct_tokens, DIRECT_TOKENS * sizeof *direct_tokens);
    iron__parallel_source_close(w.at);
    iron_source_close(s);
    free(w.all);
}

/* Mapped reads: a large file after a short one. */
#define MAPPED_TOKENS ((size_t)(COLD_BYTES + 1234) / 2)
#define SHORT_TOKENS  ((size_t)100)

static folder mapped_place;
static uint16_t *mapped_tokens;
static shards mapped_files;

static int mapped_set_up(void **state) {
    const size_t sizes[] = {SHORT_TOKENS, MAPPED_TOKENS};

    (void)state;
    folder_make(&mapped_place);
    mapped_tokens = grab((SHORT_TOKENS + MAPPED_TOKENS) * sizeof *mapped_tokens);
    fill_u16(mapped_tokens, SHORT_TOKENS + MAPPED_TOKENS);
    mapped_files = shards_write(&mapped_place, mapped_tokens, sizes, COUNT(sizes));
    return 0;
}

static int mapped_tear_down(void **state) {
    (void)state;
    shards_free(&mapped_files);
    free(mapped_tokens);
    folder_remove(&mapped_place);
    return 0;
}

/* What a use gets, and what it does. */
typedef struct usage {
    const uint16_t *want;
    size_t count;
    const char *truncate_path; /* NULL: the file stays */
    off_t truncate_bytes;
    bool is_equal;
    unsigned calls;
} usage;

static iron_status compare_tokens(void *context, const void *got, iron_error *err) {
    usage *u = context;

    (void)err;
    u->calls++;
    if (u->truncate_path && truncate(u->truncate_path, u->truncate_bytes) != 0)
        return IRON_E_STATE;
    u->is_equal = memcmp(got, u->want, u->count * sizeof *u->want) == 0;
    return IRON_OK;
}

static iron__parallel_source *mapped_open_at(const iron_source *s) {
    iron__parallel_source *at = open_at(s);

    iron__parallel_source_set_mapped(at);
    return at;
}

/* Whether tokens are used where they are mapped; then they must be right. */
static bool is_used(iron__parallel_source *at, size_t first, size_t count) {
    usage u = {.want = mapped_tokens + first, .count = count};
    iron_error err;
    bool is_used;

    assert_ok(iron__parallel_source_use(at, first, count, compare_tokens, &u, &is_used, &err),
              &err);
    assert_int_equal(u.calls, is_used);
    assert_int_equal(u.is_equal, is_used);
    return is_used;
}

static void large_files_are_mapped(void **state) {
    const size_t all = SHORT_TOKENS + MAPPED_TOKENS;
    iron_source *s = shards_open(&mapped_files);
    iron__parallel_source *at = open_at(s);

    (void)state;
    assert_false(is_used(at, SHORT_TOKENS, 1)); /* not wanted */
    iron__parallel_source_close(at);
    at = mapped_open_at(s);
    assert_false(is_used(at, 0, 1));                /* of the short file */
    assert_false(is_used(at, SHORT_TOKENS - 1, 2)); /* of both */
    assert_false(is_used(at, SHORT_TOKENS, 0));
    assert_true(is_used(at, SHORT_TOKENS, 1));
    assert_true(is_used(at, SHORT_TOKENS + 77, 123456));
    assert_true(is_used(at, SHORT_TOKENS, MAPPED_TOKENS));
    assert_true(is_used(at, all - 1, 1));
    iron__parallel_source_close(at);
    iron_source_close(s);
}

/* How many pages of the mapped file are resident. */
static size_t resident_pages(const iron__parallel_source *at) {
    file_map map = at->entries[at->identities[1].entry].map;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY);

    assert_true(fd >= 0);
    for (size_t at_byte = 0; at_byte < map.size; at_byte += page_bytes) {
        uintptr_t page = (uintptr_t)(map.bytes + at_byte) / page_bytes;
        uint64_t what;

        assert_int_equal(pread(fd, &what, sizeof what, (off_t)(page * sizeof what)), sizeof what);
        count += what >> 63; /* present */
    }
    close(fd);
    return count;
}

/* Whatever the pieces are and their order, nothing stays. */
static void used_pages_are_dropped(void **state) {
    static const size_t pieces[] = {100001, 1 << 20, MAPPED_TOKENS};
    iron_source *s = shards_open(&mapped_files);
    iron__parallel_source *at = mapped_open_at(s);

    (void)state;
    for (size_t k = 0; k < COUNT(pieces); k++) {
        size_t count = (MAPPED_TOKENS + pieces[k] - 1) / pieces[k];

        for (size_t n = 0; n < count; n++) {
            size_t first = (n ^ 1) < count ? (n ^ 1) * pieces[k] : n * pieces[k];
            size_t left = MAPPED_TOKENS - first;

            assert_true(is_used(at, SHORT_TOKENS + first, left < pieces[k] ? left : pieces[k]));
        }
        assert_int_equal(resident_pages(at), 0);
    }
    iron__parallel_source_close(at);
    iron_source_close(s);
}

static struct sigaction bus_action(void) {
    struct sigaction now;

    assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
    return now;
}

/* A use that truncates the file before it looks at the tokens, and what came of it. */
typedef struct truncation {
    iron__parallel_source *at;
    usage u;
    iron_status status;
    iron_error err;
    bool is_blocked, is_guarded; /* afterwards: the signal, the thread */
} truncation;

/* In a thread that blocks all signals, as those of a pool do. */
static void *use_truncated(void *argument) {
    truncation *t = argument;
    sigset_t every, after;
    bool is_used;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, NULL);
    t->status = iron__parallel_source_use(t->at, SHORT_TOKENS + 4096, t->u.count, compare_tokens,
                                          &t->u, &is_used, &t->err);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    t->is_blocked = sigismember(&after, SIGBUS) == 1;
    t->is_guarded = own_guard != NULL;
    return NULL;
}

static void truncated_files_end_the_use(void **state) {
    struct sigaction before = bus_action();
    iron_source *s = shards_open(&mapped_files);
    truncation t = {.at = mapped_open_at(s),
                    .u = {.want = mapped_tokens + SHORT_TOKENS + 4096,
                          .count = 100000,
                          .truncate_path = mapped_files.paths[1],
                          .truncate_bytes = 8192}};
    pthread_t thread;

    (void)state;
    assert_true(is_used(t.at, SHORT_TOKENS, 10));
    assert_ptr_equal(bus_action().sa_sigaction, on_bus_error);
    assert_int_equal(pthread_create(&thread, NULL, use_truncated, &t), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(t.status, IRON_E_IO);
    assert_says(&t.err, "f1 ended at byte 8192 of ");
    assert_says(&t.err, "it was cut while being read");
    assert_int_equal(t.u.calls, 1);
    assert_true(t.is_blocked && !t.is_guarded && !t.u.is_equal);
    iron__parallel_source_close(t.at);
    assert_ptr_equal(bus_action().sa_handler, before.sa_handler);
    iron_source_close(s);
}

/* A file that was cut and has its size again is not the one that was mapped. */
static void files_that_grow_again_are_an_error(void **state) {
    iron_source *s = shards_open(&mapped_files);
    iron__parallel_source *at = mapped_open_at(s);
    iron_error err;

    (void)state;
    assert_int_equal(why_gone(at, 1, MAPPED_TOKENS - 5000, 5000, &err), IRON_E_IO);
    assert_says(&err, "f1 changed while being read");
    iron__parallel_source_close(at);
    iron_source_close(s);
}

static volatile sig_atomic_t bus_count;

static void count_bus(int number) {
    (void)number;
    bus_count = bus_count + 1;
}

/* A signal that is not about our files goes to the handler that was there before; one that was
 * installed later stays. */
static void other_bus_errors_go_to_their_handler(void **state) {
    iron_source *s = shards_open(&mapped_files);
    struct sigaction before = bus_action();
    iron__parallel_source *at, *second;

    (void)state;
    bus_count = 0;
    signal(SIGBUS, count_bus);
    at = mapped_open_at(s);
    second = mapped_open_at(s);
    assert_false(is_used(at, 0, SHORT_TOKENS));
    assert_ptr_equal(bus_action().sa_handler, count_bus); /* not replaced without need */
    assert_true(is_used(at, SHORT_TOKENS, 10));
    assert_true(is_used(second, SHORT_TOKENS, 10));
    assert_int_equal(raise(SIGBUS), 0);
    assert_int_equal(bus_count, 1);
    iron__parallel_source_close(at);
    assert_ptr_equal(bus_action().sa_sigaction, on_bus_error);
    signal(SIGBUS, SIG_IGN);
    iron__parallel_source_close(second);
    assert_ptr_equal(bus_action().sa_handler, SIG_IGN);
    at = mapped_open_at(s);
    assert_true(is_used(at, SHORT_TOKENS, 10));
    assert_int_equal(raise(SIGBUS), 0); /* ignored, as before */
    iron__parallel_source_close(at);
    assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
    iron_source_close(s);
}

#define MAPPED_CASE(function)                                                                      \
    cmocka_unit_test_setup_teardown(function, mapped_set_up, mapped_tear_down)

#define DIRECT_CASE(function)                                                                      \
    cmocka_unit_test_setup_teardown(function, direct_set_up, direct_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(pieces_in_any_order),
        CASE(starts_at_the_position),
        CASE(threads_share_files),
        CASE(threads_read_the_same),
        CASE(a_file_is_opened_once),
        CASE(few_files_are_open),
        CASE(a_low_limit_is_shared),
        CASE(tokens_are_located),
        CASE(files_that_change_are_an_error),
        CASE(streams_are_not_seekable),
        CASE(no_memory),
        DIRECT_CASE(pieces_of_any_alignment_and_length),
        DIRECT_CASE(cached_files_are_not_read_directly),
        DIRECT_CASE(uncached_files_are_read_directly),
        DIRECT_CASE(files_without_direct_reads_use_ordinary_reads),
        DIRECT_CASE(failing_direct_reads_return_nothing),
        DIRECT_CASE(cancelled_direct_reads_return_nothing),
        DIRECT_CASE(truncated_files_give_the_same_error),
        DIRECT_CASE(many_threads_read_at_once),
        MAPPED_CASE(large_files_are_mapped),
        MAPPED_CASE(used_pages_are_dropped),
        MAPPED_CASE(truncated_files_end_the_use),
        MAPPED_CASE(files_that_grow_again_are_an_error),
        MAPPED_CASE(other_bus_errors_go_to_their_handler),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
