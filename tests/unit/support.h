/* SPDX-License-Identifier: MIT */
/*
 * support.h: shared by the unit tests: cmocka with the headers that it requires, pseudo-random
 * numbers that are the same in every run, temporary folders, and an allocator that counts and
 * fails. Everything is static inline, so that a test is one file.
 */
#ifndef TESTS_UNIT_SUPPORT_H
#define TESTS_UNIT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <iron/iron.h>

#include <dirent.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Asserts success; a failure shows the library's message. */
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        iron_status got_ = (call);                                                                 \
        if (got_ != IRON_OK)                                                                       \
            fail_msg("%s: %s: %s", #call, iron_status_name(got_), (err)->text);                    \
    } while (0)

/* Asserts that the call failed with this status, and that the error has the same status and a
 * message. */
#define assert_refused(call, expected, err)                                                        \
    do {                                                                                           \
        memset((err), 0, sizeof *(err));                                                           \
        assert_int_equal((call), (expected));                                                      \
        assert_int_equal((err)->status, (expected));                                               \
        assert_true((err)->text[0] != '\0');                                                       \
    } while (0)

#define assert_says(err, word)                                                                     \
    do {                                                                                           \
        if (!strstr((err)->text, (word)))                                                          \
            fail_msg("'%s' does not say '%s'", (err)->text, (word));                               \
    } while (0)

/* Three levels of coverage: `make test` runs reduced sweeps, `make test-all` sets IRON_TEST_FULL=1
 * for the full counts, `make test-long` sets IRON_TEST_LONG=1 for sweeps that take many minutes. */
static inline bool is_level_set(const char *variable) {
    const char *value = getenv(variable);

    return value && strcmp(value, "1") == 0;
}

static inline bool is_long_test(void) { return is_level_set("IRON_TEST_LONG"); }

static inline bool is_full_test(void) { return is_long_test() || is_level_set("IRON_TEST_FULL"); }

/* Sweeps that use one thread: the thread sanitizer, which slows them down most, finds nothing. */
#ifdef __SANITIZE_THREAD__
#define SKIP_UNDER_TSAN() skip()
#else
#define SKIP_UNDER_TSAN() ((void)0)
#endif

/* xorshift64*; deliberately not the library's generator. */
typedef struct rng {
    uint64_t state; /* not 0 */
} rng;

static inline uint64_t rng_next(rng *r) {
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * UINT64_C(0x2545F4914F6CDD1D);
}

/* 0 ... limit-1 */
static inline uint64_t rng_below(rng *r, uint64_t limit) { return (rng_next(r) >> 11) % limit; }

static inline uint32_t rng_u32(rng *r) { return (uint32_t)(rng_next(r) >> 32); }

/* malloc that ends the test on failure. */
static inline void *grab(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);

    assert_non_null(memory);
    return memory;
}

static inline uint32_t *grab_tokens(uint64_t seed, uint64_t limit, size_t count) {
    uint32_t *tokens = grab(count * sizeof *tokens);

    assert_int_equal(iron_generate(seed, limit, 0, tokens, count, NULL), IRON_OK);
    return tokens;
}

/* A temporary folder, and paths in it. */
typedef struct folder {
    char path[200];
} folder;

typedef struct file_name {
    char path[400];
} file_name;

static inline void folder_make(folder *f) {
    const char *base = getenv("TMPDIR");

    snprintf(f->path, sizeof f->path, "%.150s/iron-unit-XXXXXX", base && base[0] ? base : "/tmp");
    assert_non_null(mkdtemp(f->path));
}

static inline int remove_entry(const char *path, const struct stat *info, int kind,
                               struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline void folder_remove(const folder *f) {
    assert_int_equal(nftw(f->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline file_name name_in(const folder *f, const char *name) {
    file_name n;

    snprintf(n.path, sizeof n.path, "%s/%s", f->path, name);
    return n;
}

static inline size_t folder_entries(const folder *f) {
    DIR *directory = opendir(f->path);
    struct dirent *entry;
    size_t count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

static inline void file_write(const char *path, const void *data, size_t bytes) {
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(bytes ? fwrite(data, 1, bytes, file) : 0, bytes);
    assert_int_equal(fclose(file), 0);
}

/* The whole file, with a zero byte after it; free() it. */
static inline char *file_read(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    struct stat info;
    char *data;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    data = grab((size_t)info.st_size + 1);
    *bytes = fread(data, 1, (size_t)info.st_size, file);
    assert_int_equal(*bytes, info.st_size);
    data[*bytes] = '\0';
    fclose(file);
    return data;
}

static inline void assert_file_holds(const char *path, const void *data, size_t bytes) {
    size_t found;
    char *content = file_read(path, &found);

    assert_int_equal(found, bytes);
    if (bytes)
        assert_memory_equal(content, data, bytes);
    free(content);
}

/* An allocator that counts live allocations and fails at call number fail_at (0: never). */
typedef struct ledger {
    size_t calls, out, fail_at;
} ledger;

static inline void *ledger_alloc(void *context, size_t bytes, size_t align) {
    ledger *l = context;
    void *memory = NULL;

    if (++l->calls == l->fail_at || posix_memalign(&memory, align, bytes) != 0)
        return NULL;
    memset(memory, 0xA5, bytes); /* code must not rely on zeros */
    l->out++;
    return memory;
}

static inline void ledger_release(void *context, void *memory) {
    ledger *l = context;

    assert_non_null(memory);
    assert_true(l->out > 0);
    l->out--;
    free(memory);
}

static inline iron_allocator ledger_allocator(ledger *l) {
    return (iron_allocator){ledger_alloc, ledger_release, l};
}

/* Descriptor 0 becomes the read end of a pipe; returns the write end. */
static inline int pipe_as_stdin(int *saved) {
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    *saved = dup(0);
    assert_int_equal(dup2(ends[0], 0), 0);
    close(ends[0]);
    return ends[1];
}

static inline void restore_stdin(int saved) {
    if (saved >= 0) {
        assert_int_equal(dup2(saved, 0), 0);
        close(saved);
    } else {
        close(0);
    }
}

#endif
