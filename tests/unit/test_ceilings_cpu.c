/* SPDX-License-Identifier: MIT */
/*
 * test_ceilings_cpu.c: the loops behind the CPU's ceilings touch every byte that they count and no
 * other, in every way; what a search finds is kept for the same machine and nothing else. Which way
 * is the fastest is not tested.
 */
#include "support.h"

#include "arena/ceilings_cpu.c"

#define BYTES ((size_t)6 << 20) /* whole granules in halves and thirds */

static iron__cpu_ceilings *made(uint32_t threads) {
    iron__cpu_ceilings *c = NULL;
    iron_error err;

    assert_ok(iron__cpu_ceilings_create(threads, BYTES, &c, &err), &err);
    assert_int_equal(c->bytes, BYTES);
    assert_ok(make_buffer(c, &err), &err);
    return c;
}

static void fill_words(iron__cpu_ceilings *c) {
    uint64_t *words = (uint64_t *)(void *)c->buffer;
    rng r = {5};

    for (size_t k = 0; k < BYTES / 8; k++)
        words[k] = rng_next(&r);
}

/* Runs a pass over one part, and compares the working set with what it should have become. */
static void check_pass(iron__cpu_ceilings *c, iron__cpu_pass pass, const way *w, unsigned part,
                       unsigned parts) {
    size_t array = BYTES / arrays[pass] / GRANULE * GRANULE;
    size_t region = array / parts / GRANULE * GRANULE;
    uint64_t *now = (uint64_t *)(void *)c->buffer, *before = malloc(BYTES), *also, *to;
    size_t words, first = part * region / 8;
    double bytes = 0;

    assert_non_null(before);
    fill_words(c);
    memcpy(before, c->buffer, BYTES);
    assert_true(run_pass(c, pass, w, part, parts, &bytes) >= 0);
    words = (size_t)bytes / arrays[pass] / 8;
    assert_true(words > 0 && words * 8 <= region && region - words * 8 < (size_t)4 << 20);
    also = before + array / 8;
    to = before + (arrays[pass] - 1) * array / 8;
    for (size_t k = first; k < first + words; k++) {
        if (pass == IRON_CPU_COPY)
            to[k] = before[k];
        else if (pass == IRON_CPU_TRIAD)
            to[k] = before[k] + also[k];
        else if (pass == IRON_CPU_WRITE && w->width < COUNT(widths))
            to[k] = 0;
        else if (pass == IRON_CPU_WRITE) /* memset: the piece's number in every byte */
            to[k] = now[k] == now[k] % 256 * UINT64_C(0x0101010101010101) ? now[k] : ~now[k];
    }
    assert_memory_equal(now, before, BYTES);
    free(before);
}

static void passes_touch_every_byte(void **state) {
    static const uint32_t aheads[] = {0, 1024, 32768}, pieces[] = {0, 256u << 10, 1u << 20};

    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        iron__cpu_ceilings *c = made(threads);

        for (iron__cpu_pass pass = IRON_CPU_READ; pass < IRON_CPU_PASSES; pass++)
            for (uint32_t width = 0; width <= COUNT(widths); width++)
                for (uint32_t level = 0; level < INTO_LEVELS; level++) {
                    way w = {width, level, aheads[level], pieces[(level + width) % 3], threads, 0};
                    bool is_library = width == COUNT(widths);

                    if (is_library ? pass != IRON_CPU_WRITE && pass != IRON_CPU_COPY
                                   : !iron__cpu_has(widths[width].needs))
                        continue;
                    w.is_plain = level == INTO_L1;
                    check_pass(c, pass, &w, 0, 1);
                    w.piece_bytes = GRANULE;
                    w.threads = 1;
                    check_pass(c, pass, &w, 3, 4);
                }
        iron__cpu_ceilings_destroy(c);
    }
}

/* The XOR of everything, whoever reads it. */
static void reading_reads_everything(void **state) {
    iron__cpu_ceilings *c = made(1);
    const uint64_t *words = (const uint64_t *)(const void *)c->buffer;
    uint64_t wanted = 0;

    (void)state;
    fill_words(c);
    for (size_t k = 0; k < BYTES / 8; k++)
        wanted ^= words[k];
    for (uint32_t width = 0; width < COUNT(widths); width++)
        for (uint32_t level = 0; level < INTO_LEVELS && iron__cpu_has(widths[width].needs);
             level++) {
            way w = {width, level, 4096, 0, 1, 0};
            work job = {
                .way = &w, .piece = BYTES, .from = c->buffer, .also = c->buffer, .to = c->buffer};

            run_piece(&job, 0);
            assert_true(job.result == wanted);
        }
    iron__cpu_ceilings_destroy(c);
}

static void ways_have_names(void **state) {
    iron__cpu_ceilings c = {.threads = 2};
    const way plain = {0, INTO_L2, 32768, 1u << 20, 2, 0}, alone = {0, INTO_L1, 0, 0, 1, 1},
              library = {COUNT(widths), INTO_L2, 4096, 256u << 10, 2, 0};
    char text[IRON_SHAPE_ROOM];

    (void)state;
    name_way(&c, IRON_CPU_READ, &plain, text);
    assert_string_equal(text, "128-bit, prefetch 32 KiB ahead into L2, pieces of 1024 KiB, 2 "
                              "threads, huge pages");
    c.pages = PAGES_ORDINARY;
    name_way(&c, IRON_CPU_READ, &alone, text);
    assert_string_equal(text, "128-bit, no prefetch, one piece a thread, 1 thread, ordinary pages");
    name_way(&c, IRON_CPU_WRITE, &alone, text);
    assert_string_equal(text,
                        "128-bit ordinary stores, one piece a thread, 1 thread, ordinary pages");
    name_way(&c, IRON_CPU_COPY, &library, text);
    assert_string_equal(text, "memcpy, pieces of 256 KiB, 2 threads, ordinary pages");
    assert_int_equal(iron__cpu_pass_find("triad"), IRON_CPU_TRIAD);
    assert_int_equal(iron__cpu_pass_find("zero_copy"), IRON_CPU_PASSES);
}

/* Replaces the file of the calibration. */
static void write_calibration(const iron__cpu_ceilings *c, const char *rest) {
    char header[320], *path;
    FILE *to;

    calibration_header(c, header, sizeof header);
    path = calibration_path(header);
    to = fopen(path, "w");
    assert_non_null(to);
    fprintf(to, "%s%s", header, rest);
    assert_int_equal(fclose(to), 0);
    free(path);
}

static void searches_are_kept(void **state) {
    static const char *const bad[] = {
        "",
        "0 0 0 0 0 1 0\n",
        "0 0 0 0 0 4 0\n0 0 0 0 0 4 0\n0 0 0 0 0 4 0\nx\n",
        "0 0 0 0 0 3 0\n0 0 0 0 0 4 0\n0 0 0 0 0 4 0\n0 0 0 0 0 4 0\n",
        "9 0 0 0 0 4 0\n9 0 0 0 0 4 0\n9 0 0 0 0 4 0\n9 0 0 0 0 4 0\n",
        "0 9 0 0 0 4 0\n0 9 0 0 0 4 0\n0 9 0 0 0 4 0\n0 9 0 0 0 4 0\n",
        "0 0 3 0 0 4 0\n0 0 3 0 0 4 0\n0 0 3 0 0 4 0\n0 0 3 0 0 4 0\n",
        "0 0 0 0 77 4 0\n0 0 0 0 77 4 0\n0 0 0 0 77 4 0\n0 0 0 0 77 4 0\n"};
    iron__cpu_ceilings *c = made(4), *other = made(4);
    folder home;

    (void)state;
    folder_make(&home);
    assert_int_equal(setenv("IRON_CACHE_DIR", home.path, 1), 0);
    assert_false(calibration_load(other));
    c->pages = PAGES_ORDINARY;
    for (uint32_t k = 0; k < IRON_CPU_PASSES; k++)
        c->ways[k] = (way){0, k % INTO_LEVELS, 512 * k, k << 16, k % 2 ? 2 : 4, k % 2};
    calibration_save(c);
    assert_true(calibration_load(other));
    assert_int_equal(other->pages, PAGES_ORDINARY);
    assert_memory_equal(other->ways, c->ways, sizeof c->ways);
    for (size_t k = 0; k < COUNT(bad); k++) {
        write_calibration(c, bad[k]);
        assert_false(calibration_load(other));
        assert_memory_equal(other->ways, c->ways, sizeof c->ways); /* unchanged */
    }
    folder_remove(&home);
    iron__cpu_ceilings_destroy(c);
    iron__cpu_ceilings_destroy(other);
}

/* A search ends with ways that this machine has, and memory is given back and made again. */
static void a_search_finds_ways_that_run(void **state) {
    iron__cpu_ceilings *c = made(2);
    iron__ceiling_samples what = {.count = 0};
    iron_error err;
    folder home;

    (void)state;
    folder_make(&home);
    assert_int_equal(setenv("IRON_CACHE_DIR", home.path, 1), 0);
    assert_ok(iron__cpu_ceilings_prepare(c, true, &err), &err);
    iron__cpu_ceilings_release(c);
    assert_null(c->buffer);
    assert_ok(iron__cpu_ceilings_prepare(c, false, &err), &err);
    for (iron__cpu_pass pass = IRON_CPU_READ; pass < IRON_CPU_PASSES; pass++) {
        assert_true(iron__cpu_ceilings_pass(c, pass, &what) > 0);
        assert_string_equal(what.name, pass_names[pass]);
        assert_true(what.bytes > 0 && what.bytes <= BYTES && what.shape[0]);
    }
    folder_remove(&home);
    iron__cpu_ceilings_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_touch_every_byte),
        cmocka_unit_test(reading_reads_everything),
        cmocka_unit_test(ways_have_names),
        cmocka_unit_test(searches_are_kept),
        cmocka_unit_test(a_search_finds_ways_that_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
