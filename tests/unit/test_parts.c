/* SPDX-License-Identifier: MIT */
/*
 * test_parts.c: the parts of a stream are merged to the same manifest, byte for byte, as that of
 * one scan: any number of parts, any order, any cuts; parts that do not form a stream are refused
 * with their names.
 *
 * Likewise the results of ranges of a stream add up to those of the whole, in any order and
 * grouping; and those of different streams are refused.
 */
#include "place.h"
#include "scan_support.h"
#include "source_support.h"

#include <iron/iron_digest.h>

#define PARTS_MAX 9u

static void test_ranges(void **state) {
    static const uint64_t sizes[] = {0, 1, 3, 4, 5, 8, 9, 15, 16, 17, 1000003, UINT64_MAX};
    iron_error err;

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (uint32_t parts = 1; parts <= 11; parts++) {
            uint64_t place_now = 0, most = 0, least = UINT64_MAX;

            for (uint32_t part = 1; part <= parts; part++) {
                uint64_t first, count;

                assert_ok(iron_part_range(sizes[s], part, parts, &first, &count, &err), &err);
                assert_int_equal(first % 4, 0);
                assert_true(first <= sizes[s] && count <= sizes[s] - first);
                if (count > 0)
                    assert_int_equal(first, place_now);
                place_now += count;
                most = count > most ? count : most;
                least = count < least ? count : least;
            }
            assert_int_equal(place_now, sizes[s]);
            assert_true(most - least <= 7);
        }
    assert_refused(iron_part_range(10, 0, 3, &(uint64_t){0}, &(uint64_t){0}, &err), IRON_E_ARG,
                   &err);
    assert_refused(iron_part_range(10, 4, 3, &(uint64_t){0}, &(uint64_t){0}, &err), IRON_E_ARG,
                   &err);
}

/* Three files of tokens, scanned completely or in parts. */
typedef struct stream {
    shards files;
    uint64_t tokens;
} stream;

static stream make_stream(size_t a, size_t b, size_t c) {
    size_t sizes[] = {a, b, c};
    uint16_t *tokens = grab((a + b + c) * sizeof *tokens);
    stream s = {.tokens = a + b + c};

    fill_u16(tokens, a + b + c);
    s.files = shards_write(&place, tokens, sizes, 3);
    free(tokens);
    return s;
}

static iron_manifest *scan_part(const stream *s, uint32_t part, uint32_t parts, uint64_t chunk) {
    iron_scan_options o = scan_options(1 + part % 3, chunk);
    iron_error err;

    o.part = part;
    o.parts = parts;
    if (parts)
        assert_ok(iron_part_range(s->tokens, part, parts, &o.first, &o.count, &err), &err);
    return scan_paths(IRON_DTYPE_U16, s->files.paths, s->files.count, &o);
}

static void assert_same_bytes(const iron_manifest *a, const iron_manifest *b) {
    file_name x = name_in(&place, "x"), y = name_in(&place, "y");
    iron_error err;
    size_t bytes;
    char *text;

    assert_ok(iron_manifest_write(a, x.path, &err), &err);
    assert_ok(iron_manifest_write(b, y.path, &err), &err);
    text = file_read(x.path, &bytes);
    assert_file_holds(y.path, text, bytes);
    free(text);
}

static void shuffle(rng *r, iron_manifest **parts, size_t count) {
    for (size_t k = count; k > 1; k--) {
        size_t other = (size_t)rng_below(r, k);
        iron_manifest *other_part = parts[other];

        parts[other] = parts[k - 1];
        parts[k - 1] = other_part;
    }
}

static void destroy_all(iron_manifest **parts, size_t count) {
    for (size_t k = 0; k < count; k++)
        iron_manifest_destroy(parts[k]);
}

static void test_parts_make_the_whole(void **state) {
    static const struct {
        size_t a, b, c;
        uint64_t chunk;
    } rows[] = {{0, 0, 0, 1024},      {5, 0, 2, 1024},        {1000, 1, 23, 1024},
                {5000, 333, 0, 1024}, {70000, 3, 5001, 4096}, {7, 40000, 9, 1 << 20},
                {1, 2, 3, 1024},      {3, 3, 3000, 1024},     {1001, 1002, 1003, 1028},
                {3000, 3000, 3001, 0}};
    rng random = {5};

    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        stream s = make_stream(rows[r].a, rows[r].b, rows[r].c);
        iron_manifest *whole = scan_part(&s, 0, 0, rows[r].chunk);

        for (uint32_t count = 1; count <= PARTS_MAX; count++) {
            iron_manifest *parts[PARTS_MAX], *joined = NULL;
            iron_error err;

            for (uint32_t k = 0; k < count; k++)
                parts[k] = scan_part(&s, k + 1, count, rows[r].chunk);
            shuffle(&random, parts, count);
            assert_ok(iron_manifest_merge(parts, count, &joined, &err), &err);
            assert_same_bytes(whole, joined);
            iron_manifest_destroy(joined);
            destroy_all(parts, count);
        }
        iron_manifest_destroy(whole);
        shards_free(&s.files);
    }
}

/* Part k of a stream of 4, with its own range. */
static iron_manifest *scan_range(const stream *s, uint32_t part, uint64_t first, uint64_t count) {
    iron_scan_options o = scan_options(1, 1024);

    o.part = part;
    o.parts = 4;
    o.first = first;
    o.count = count;
    return scan_paths(IRON_DTYPE_U16, s->files.paths, s->files.count, &o);
}

/* Four orders that a sort could get wrong, of four ranges that are correct or not. */
static void assert_join(const stream *s, const uint64_t (*ranges)[2], const char *word) {
    iron_manifest *parts[4], *joined = NULL;
    iron_error err = {0};
    rng r = {9};

    for (uint32_t k = 0; k < 4; k++)
        parts[k] = scan_range(s, k + 1, ranges[k][0], ranges[k][1]);
    for (size_t round = 0; round < 8; round++) {
        if (!word) {
            assert_ok(iron_manifest_merge(parts, 4, &joined, &err), &err);
        } else {
            assert_refused(iron_manifest_merge(parts, 4, &joined, &err), IRON_E_FORMAT, &err);
            assert_says(&err, word);
            assert_null(joined);
        }
        iron_manifest_destroy(joined);
        joined = NULL;
        shuffle(&r, parts, 4);
    }
    destroy_all(parts, 4);
}

static void test_ranges_that_fit_and_do_not(void **state) {
    static const uint64_t fits[4][2] = {{2000, 500}, {0, 4}, {4, 1996}, {2500, 507}};
    static const uint64_t gap[4][2] = {{0, 1000}, {1004, 1000}, {2004, 4}, {2008, 999}};
    static const uint64_t overlap[4][2] = {{0, 1000}, {996, 1000}, {1996, 4}, {2000, 1007}};
    static const uint64_t no_end[4][2] = {{0, 1000}, {1000, 1000}, {2000, 4}, {2004, 4}};
    static const uint64_t no_start[4][2] = {{8, 992}, {1000, 1000}, {2000, 4}, {2004, 1003}};
    stream s = make_stream(1000, 7, 2000);

    (void)state;
    assert_join(&s, fits, NULL);
    assert_join(&s, gap, "positions 1000 to 1003");
    assert_join(&s, overlap, "overlaps");
    assert_join(&s, no_end, "positions 2008 to 3006");
    assert_join(&s, no_start, "positions 0 to 7");
    shards_free(&s.files);
}

static void test_missing_and_repeated(void **state) {
    stream s = make_stream(1000, 1000, 1000);
    iron_manifest *parts[4], *joined = NULL;
    iron_error err;

    (void)state;
    for (uint32_t k = 0; k < 3; k++)
        parts[k] = scan_part(&s, k + 1, 3, 1024);
    assert_refused(iron_manifest_merge(parts, 2, &joined, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "part 3 of 3 is missing");
    assert_refused(iron_manifest_merge(parts + 1, 2, &joined, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "part 1 of 3 is missing");
    parts[3] = parts[1];
    assert_refused(iron_manifest_merge(parts, 4, &joined, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "part 2 of 3 is there twice");
    assert_refused(iron_manifest_merge(parts, 0, &joined, &err), IRON_E_ARG, &err);
    parts[3] = scan_part(&s, 0, 0, 1024);
    assert_refused(iron_manifest_merge(parts + 3, 1, &joined, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "whole stream");
    assert_null(joined);
    destroy_all(parts, 4);
    shards_free(&s.files);
}

static void test_foreign(void **state) {
    stream s = make_stream(1000, 1000, 1000);
    iron_manifest *parts[2], *joined = NULL;
    iron_error err;

    (void)state;
    parts[0] = scan_part(&s, 1, 2, 1024);
    parts[1] = scan_part(&s, 2, 2, 1024);
#define FOREIGN(change, back, word)                                                                \
    change;                                                                                        \
    assert_refused(iron_manifest_merge(parts, 2, &joined, &err), IRON_E_FORMAT, &err);             \
    assert_says(&err, word);                                                                       \
    back
    FOREIGN(parts[1]->parts = 3, parts[1]->parts = 2, "number of parts");
    FOREIGN(parts[1]->stream_tokens++, parts[1]->stream_tokens--, "length");
    FOREIGN(parts[1]->vocab++, parts[1]->vocab--, "vocabulary");
    FOREIGN(parts[1]->chunk_tokens = 2048, parts[1]->chunk_tokens = 1024, "chunks");
    FOREIGN(parts[1]->files[1].path[0] = 'x', parts[1]->files[1].path[0] = '/', "files");
    FOREIGN(parts[1]->files[1].dtype = IRON_DTYPE_I64, parts[1]->files[1].dtype = IRON_DTYPE_U16,
            "files");
    FOREIGN(parts[1]->files[1].sample[3] ^= 1, parts[1]->files[1].sample[3] ^= 1,
            "part 2 was made of another ");
    FOREIGN(parts[0]->files[2].sample[15] ^= 1, parts[0]->files[2].sample[15] ^= 1, "its sample");
    FOREIGN(parts[1]->files[1].tokens++, parts[1]->files[1].tokens--, "files");
    assert_ok(iron_manifest_merge(parts, 2, &joined, &err), &err);
    iron_manifest_destroy(joined);
    parts[1]->files[1].sample[0] = '\0'; /* of an older version of iron */
    assert_ok(iron_manifest_merge(parts, 2, &joined, &err), &err);
    assert_string_equal(joined->files[1].sample, parts[0]->files[1].sample);
    iron_manifest_destroy(joined);
    destroy_all(parts, 2);
    shards_free(&s.files);
}

/* Parts of version 1 have no seals of files, and neither has what one of them is joined to. */
static void test_parts_of_version_1(void **state) {
    stream s = make_stream(1001, 1002, 1003);
    iron_manifest *parts[2], *joined = NULL, *whole = scan_part(&s, 0, 0, 1024);
    iron_error err;

    (void)state;
    parts[0] = scan_part(&s, 1, 2, 1024);
    parts[1] = scan_part(&s, 2, 2, 1024);
    parts[1]->has_file_seals = whole->has_file_seals = false;
    for (size_t k = 0; k < 3; k++)
        parts[1]->files[k].words = (iron__seal_words){0, 0, 0, 0};
    assert_ok(iron_manifest_merge(parts, 2, &joined, &err), &err);
    assert_false(joined->has_file_seals);
    assert_same_bytes(whole, joined);
    iron_manifest_destroy(joined);
    iron_manifest_destroy(whole);
    destroy_all(parts, 2);
    shards_free(&s.files);
}

/* The first part ends in a quad of the second file, which changes before the second part is made:
 * in the middle, where samples do not see it. */
static void test_file_that_changes_between_parts(void **state) {
    stream s = make_stream(8001, 8009, 40000);
    iron_manifest *parts[4], *joined = NULL;
    uint16_t token;
    iron_error err;
    FILE *file;

    (void)state;
    parts[0] = scan_range(&s, 1, 0, 20000);
    file = fopen(s.files.paths[2], "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 2 * (20000 - 16010), SEEK_SET), 0);
    assert_int_equal(fread(&token, sizeof token, 1, file), 1);
    token ^= 1;
    assert_int_equal(fseek(file, 2 * (20000 - 16010), SEEK_SET), 0);
    assert_int_equal(fwrite(&token, sizeof token, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    parts[1] = scan_range(&s, 2, 20000, 4);
    parts[2] = scan_range(&s, 3, 20004, 4);
    parts[3] = scan_range(&s, 4, 20008, IRON_COUNT_UNKNOWN);
    assert_refused(iron_manifest_merge(parts, 4, &joined, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "do not fit together");
    assert_null(joined);
    destroy_all(parts, 4);
    shards_free(&s.files);
}

/* A sparse file of two gibibytes: a part of it is small, but the manifest of all parts would be
 * large. */
static void test_chunks_of_the_whole_count(void **state) {
    file_name name = name_in(&place, "large");
    const char *paths[] = {name.path};
    iron_scan_options o = scan_options(1, 1024);
    iron_manifest *m = NULL;
    iron_source *source;
    iron_error err;

    (void)state;
    file_write(name.path, "", 0);
    assert_int_equal(truncate(name.path, (INT64_C(1) << 31) + 4), 0);
    source = open_all(IRON_DTYPE_U8, paths, 1);
    o.part = 3;
    o.parts = 100000;
    assert_ok(iron_part_range(iron_source_tokens(source), 3, 100000, &o.first, &o.count, &err),
              &err);
    assert_refused(iron_scan(source, &o, &m, &err), IRON_E_ARG, &err);
    assert_says(&err, "2097153 chunks");
    assert_says(&err, "--chunk 2048");
    assert_null(m);
    o.chunk_tokens = 2048;
    assert_ok(iron_scan(source, &o, &m, &err), &err);
    iron_manifest_destroy(m);
    iron_source_close(source);
    assert_int_equal(unlink(name.path), 0);
}

#define TOKENS     10007u
#define RANGES_MAX 12u

static iron_digest_result digest_range(iron_source *source, uint64_t first, uint64_t count) {
    iron_digest_result r = {.struct_size = sizeof r};
    iron_manifest *m = NULL;
    iron_scan_options o;
    iron_error err;

    iron_scan_options_init(&o);
    o.vocab = 60000;
    o.threads = 1;
    o.first = first;
    o.count = count;
    assert_ok(iron_scan(source, &o, &m, &err), &err);
    assert_ok(iron_manifest_digest(m, &r, &err), &err);
    iron_manifest_destroy(m);
    return r;
}

static void assert_same(const iron_digest_result *a, const iron_digest_result *b) {
    assert_string_equal(a->seal, b->seal);
    assert_memory_equal(a->words, b->words, sizeof a->words);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->out_of_vocab, b->out_of_vocab);
    assert_int_equal(a->first_out_position, b->first_out_position);
    assert_int_equal(a->first_out_value, b->first_out_value);
    assert_int_equal(a->min, b->min);
    assert_int_equal(a->max, b->max);
}

/* Merges two random results of the list until one is left. */
static iron_digest_result add_all(iron_digest_result *list, size_t count, rng *r) {
    iron_error err;

    for (; count > 1; count--) {
        size_t to = (size_t)rng_below(r, count), from = (size_t)rng_below(r, count - 1);

        from += from >= to;
        assert_ok(iron_digest_result_add(&list[to], &list[from], &err), &err);
        list[from] = list[count - 1];
        if (to == count - 1)
            to = from;
    }
    return list[0];
}

static void parts_add_up(void **state) {
    uint16_t tokens[TOKENS];
    rng r = {4711};
    folder f;
    file_name name;
    iron_source *source;
    iron_digest_result whole;

    (void)state;
    fill_u16(tokens, TOKENS);
    folder_make(&f);
    name = name_in(&f, "t");
    file_write(name.path, tokens, sizeof tokens);
    source = open_all(IRON_DTYPE_U16, (const char *[]){name.path}, 1);
    whole = digest_range(source, 0, TOKENS);
    assert_true(whole.out_of_vocab > 0);
    for (size_t n = 0; n < 40; n++) {
        iron_digest_result list[RANGES_MAX];
        size_t count = 0;

        for (uint64_t at = 0; at < TOKENS && count < RANGES_MAX;) {
            uint64_t length = 4 * rng_below(&r, 900);

            if (count == RANGES_MAX - 1 || length > TOKENS - at)
                length = TOKENS - at;
            list[count++] = digest_range(source, at, length);
            at += length;
        }
        list[0] = add_all(list, count, &r);
        assert_same(&whole, &list[0]);
    }
    iron_source_close(source);
    folder_remove(&f);
}

static void other_streams_are_refused(void **state) {
    iron_digest_result a = {.struct_size = sizeof a, .seal_version = 1, .vocab = 10}, b = a, old;
    iron_error err;

    (void)state;
    old = a;
    b.vocab = 11;
    assert_refused(iron_digest_result_add(&a, &b, &err), IRON_E_ARG, &err);
    assert_says(&err, "11");
    b = a;
    b.seal_version = 2;
    assert_refused(iron_digest_result_add(&a, &b, &err), IRON_E_ARG, &err);
    b = a;
    b.struct_size--;
    assert_refused(iron_digest_result_add(&a, &b, &err), IRON_E_ARG, &err);
    assert_refused(iron_digest_result_add(&b, &a, &err), IRON_E_ARG, &err);
    assert_refused(iron_digest_result_add(NULL, &a, &err), IRON_E_ARG, &err);
    assert_memory_equal(&a, &old, sizeof a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_parts_make_the_whole),
        cmocka_unit_test(test_ranges_that_fit_and_do_not),
        cmocka_unit_test(test_missing_and_repeated),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_parts_of_version_1),
        cmocka_unit_test(test_file_that_changes_between_parts),
        cmocka_unit_test(test_chunks_of_the_whole_count),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(other_streams_are_refused),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}