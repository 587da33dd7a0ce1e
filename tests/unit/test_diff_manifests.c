/* SPDX-License-Identifier: MIT */
/*
 * test_diff_manifests.c: differences found without the tokens: from two manifests alone, from one
 * manifest and files, and from manifests whose files still exist, changed or unchanged.
 */
#include "diff_support.h"
#include "place.h"

#define CHUNK 1024u

static void assert_text(const iron_diff_report *r, const char *word) {
    if (!strstr(r->text, word))
        fail_msg("'%s' does not say '%s'", r->text, word);
}

static void assert_kind(const iron_diff_report *r, iron_diff_kind kind) {
    if (r->kind != kind)
        fail_msg("kind %d, not %d: %s", (int)r->kind, (int)kind, r->text);
}

/* The inputs of a side: tokens, a manifest of them, or both. The manifest is made by the
 * library. */
typedef enum has { TOKENS = 1, MANIFEST = 2, BOTH = 3 } has;

typedef struct test_side {
    iron_diff_side side;
    iron_manifest *manifest;
} test_side;

static iron_manifest *scan_file(const char *path, uint64_t chunk_tokens) {
    iron_source *source = source_open(path, IRON_DTYPE_U32);
    iron_scan_options o;
    iron_manifest *m = NULL;
    iron_error err;

    iron_scan_options_init(&o);
    o.chunk_tokens = chunk_tokens;
    o.threads = 2;
    o.backend = "cpu";
    assert_ok(iron_scan(source, &o, &m, &err), &err);
    iron_source_close(source);
    return m;
}

static test_side make_side(const stream *s, const char *name, has what, uint64_t chunk_tokens) {
    file_name path = name_in(&place, name);
    test_side t = {{NULL, NULL, name[0] == 'a' ? "A" : "B"}, NULL};

    stream_store(s, IRON_DTYPE_U32, path.path);
    if (what & MANIFEST)
        t.side.manifest = t.manifest = scan_file(path.path, chunk_tokens);
    if (what & TOKENS)
        t.side.source = source_open(path.path, IRON_DTYPE_U32);
    return t;
}

static void free_side(test_side *t) {
    iron_source_close(t->side.source);
    iron_manifest_destroy(t->manifest);
}

static iron_diff_report compare(const stream *a, has of_a, const stream *b, has of_b) {
    test_side x = make_side(a, "a.bin", of_a, CHUNK), y = make_side(b, "b.bin", of_b, CHUNK);
    iron_diff *d = compare_sides(&x.side, &y.side, of_a & of_b & TOKENS ? CHUNK : 0, 2);
    uint64_t first = first_difference(a, b);
    iron_diff_report r = describe(d);

    if (of_a & of_b & TOKENS) {
        assert_exact(d, a, b);
    } else {
        assert_ranges(d, &r, a, b);
        assert_int_equal(r.kind == IRON_DIFF_EQUAL, first == UINT64_MAX);
        assert_true(first == UINT64_MAX || (r.first <= first && first < r.first_end));
    }
    iron_diff_destroy(d);
    free_side(&x);
    free_side(&y);
    return r;
}

static const has pairs[][2] = {{MANIFEST, MANIFEST}, {MANIFEST, TOKENS}, {TOKENS, MANIFEST},
                               {MANIFEST, BOTH},     {BOTH, MANIFEST},   {BOTH, TOKENS},
                               {TOKENS, BOTH},       {BOTH, BOTH}};

static void equal_streams_from_any_input(void **state) {
    static const size_t counts[] = {0, 1, 15, 16, 1023, 1024, 5000, 200001};

    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++)
        for (size_t p = 0; p < COUNT(pairs); p++) {
            stream a = stream_random(k + 1, 50000, counts[k]);
            iron_diff_report r = compare(&a, pairs[p][0], &a, pairs[p][1]);

            assert_kind(&r, IRON_DIFF_EQUAL);
            free(a.tokens);
        }
}

static void one_token_from_any_input(void **state) {
    static const size_t places[] = {0, 1023, 1024, 30000, 49999};
    stream a = stream_random(3, 50000, 50000);

    (void)state;
    for (size_t k = 0; k < COUNT(places); k++)
        for (size_t p = 0; p < COUNT(pairs); p++) {
            stream b = stream_part(&a, 0, a.count);
            iron_diff_report r;

            b.tokens[places[k]] = 60000;
            r = compare(&a, pairs[p][0], &b, pairs[p][1]);
            assert_kind(&r, IRON_DIFF_CHANGED);
            assert_int_equal(r.differing_chunks, 1);
            free(b.tokens);
        }
    free(a.tokens);
}

static void shifts_from_manifests(void **state) {
    static const size_t shifts[] = {1, 3, 4, 500, 1000, 1024, 1500, 5000};
    static const size_t places[] = {0, 1500, 40000, 90000};
    stream a = stream_random(4, 50000, 120000);

    (void)state;
    for (size_t k = 0; k < COUNT(shifts); k++)
        for (size_t p = 0; p < COUNT(places); p++)
            for (int back = 0; back < 2; back++) {
                stream b = stream_inserted(&a, places[p], shifts[k], 9);
                iron_diff_report r =
                    back ? compare_manifests(&b, &a, CHUNK) : compare_manifests(&a, &b, CHUNK);

                assert_kind(&r, back ? IRON_DIFF_DELETED : IRON_DIFF_INSERTED);
                assert_int_equal(r.length, shifts[k]);
                assert_int_equal(r.position, places[p] / CHUNK * CHUNK);
                assert_int_equal(r.is_verified, 0);
                free(b.tokens);
            }
    free(a.tokens);
}

/* Which sides have tokens affects the certainty of a report, not its findings. */
static void shifts_from_any_input(void **state) {
    static const size_t shifts[] = {1, 4, 1000, 3001};
    stream a = stream_random(5, 50000, 120000);

    (void)state;
    for (size_t k = 0; k < COUNT(shifts); k++)
        for (size_t p = 0; p < COUNT(pairs); p++) {
            stream b = stream_inserted(&a, 40000, shifts[k], 9);
            bool is_exact = pairs[p][0] & pairs[p][1] & TOKENS;
            bool has_tokens = (pairs[p][0] | pairs[p][1]) & TOKENS;
            iron_diff_report r = compare(&a, pairs[p][0], &b, pairs[p][1]);

            assert_kind(&r, IRON_DIFF_INSERTED);
            assert_int_equal(r.length, shifts[k]);
            assert_int_equal(r.position, is_exact ? 40000 : 39936);
            assert_int_equal(r.is_verified, has_tokens);
            free(b.tokens);
        }
    free(a.tokens);
}

/* A later difference that marks do not show must be found when the shift is verified. */
static void a_shift_and_a_later_change(void **state) {
    stream a = stream_random(6, 50000, 120000), b = stream_inserted(&a, 40000, 3, 9);
    iron_diff_report r;

    (void)state;
    b.tokens[100000] = 60000;
    for (size_t p = 0; p < COUNT(pairs); p++) {
        r = compare(&a, pairs[p][0], &b, pairs[p][1]);
        assert_kind(&r, IRON_DIFF_INSERTED);
        assert_int_equal(r.length, 3);
        if (pairs[p][0] & pairs[p][1] & TOKENS)
            assert_int_equal(r.edits, 2);
        else
            assert_int_equal(r.is_verified, 0);
    }
    free(a.tokens);
    free(b.tokens);
}

static void two_insertions(void **state) {
    stream a = stream_random(7, 50000, 120000), once = stream_inserted(&a, 40000, 3, 9);
    stream b = stream_inserted(&once, 80000, 700, 10);
    iron_diff_report r = compare_manifests(&a, &b, CHUNK);

    (void)state;
    assert_kind(&r, IRON_DIFF_INSERTED);
    assert_int_equal(r.length, 3);
    assert_text(&r, "more shifts");
    free(once.tokens);
    once = stream_deleted(&b, 80000,
                          703); /* the length equals the first's again, and so do positions */
    r = compare_manifests(&a, &once, CHUNK);
    assert_kind(&r, IRON_DIFF_CHANGED);
    assert_text(&r, "3 later");
    free(a.tokens);
    free(b.tokens);
    free(once.tokens);
}

static void beginnings(void **state) {
    static const size_t counts[] = {0, 1, 17, 1023, 1024, 1025, 60000, 61440};
    stream a = stream_random(8, 50000, 100000);

    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++)
        for (size_t p = 0; p < COUNT(pairs); p++) {
            stream b = stream_part(&a, 0, counts[k]);
            bool is_sure = counts[k] % CHUNK == 0 || pairs[p][0] & TOKENS;
            bool is_likely = is_sure || counts[k] > 1000; /* a mark or a chunk agrees */
            iron_diff_report r = compare(&a, pairs[p][0], &b, pairs[p][1]);

            assert_kind(&r, is_likely ? IRON_DIFF_TRUNCATED : IRON_DIFF_CHANGED);
            assert_int_equal(r.is_verified, is_sure);
            r = compare(&b, pairs[p][1], &a, pairs[p][0]);
            assert_kind(&r, is_likely ? IRON_DIFF_EXTENDED : IRON_DIFF_CHANGED);
            assert_int_equal(r.is_verified, is_sure);
            if (is_sure)
                assert_int_equal(r.first, counts[k]);
            free(b.tokens);
        }
    free(a.tokens);
}

/* The last chunk of the shorter stream differs too: only its mark, or the tokens, can show that. */
static void no_beginning(void **state) {
    stream a = stream_random(9, 50000, 100000), b = stream_part(&a, 0, 60900);
    iron_diff_report r;

    (void)state;
    for (size_t k = 60000; k < b.count; k++)
        b.tokens[k] = (uint32_t)k;
    for (size_t p = 0; p < COUNT(pairs); p++) {
        r = compare(&a, pairs[p][0], &b, pairs[p][1]);
        assert_kind(&r, IRON_DIFF_CHANGED);
        r = compare(&b, pairs[p][0], &a, pairs[p][1]);
        assert_kind(&r, IRON_DIFF_CHANGED);
    }
    free(a.tokens);
    free(b.tokens);
}

static void moved_and_repeated(void **state) {
    stream a = stream_random(10, 50000, 40 * CHUNK + 5), b = {NULL, 0}, c = {NULL, 0};
    iron_diff_report r;

    (void)state;
    append(&b, a.tokens + 10 * CHUNK, 10 * CHUNK);
    append(&b, a.tokens, 10 * CHUNK);
    append(&b, a.tokens + 20 * CHUNK, a.count - 20 * CHUNK);
    append(&c, a.tokens, 30 * CHUNK);
    append(&c, a.tokens + 5 * CHUNK, a.count - 5 * CHUNK);
    for (size_t p = 0; p < COUNT(pairs); p++) {
        r = compare(&a, pairs[p][0], &b, pairs[p][1]);
        assert_kind(&r, IRON_DIFF_MOVED);
        assert_int_equal(r.position, 0);
        assert_int_equal(r.length, 10 * CHUNK);
        assert_int_equal(r.source, 10 * CHUNK);
        r = compare(&a, pairs[p][0], &c, pairs[p][1]);
        assert_kind(&r, IRON_DIFF_REPEATED);
        assert_int_equal(r.length, 25 * CHUNK);
        assert_int_equal(r.is_verified, 1);
    }
    free(a.tokens);
    free(b.tokens);
    free(c.tokens);
}

static void nothing_to_explain(void **state) {
    (void)state;
    for (uint32_t limit = 2; limit < 60000; limit *= 17) {
        stream a = stream_random(11, limit, 50000), b = stream_random(12, limit, 51000);

        for (size_t p = 0; p < COUNT(pairs); p++) {
            iron_diff_report r = compare(&a, pairs[p][0], &b, pairs[p][1]);

            assert_kind(&r, IRON_DIFF_CHANGED);
        }
        free(a.tokens);
        free(b.tokens);
    }
    for (uint32_t period = 1; period <= 4; period += 3) {
        stream a = stream_filled(50000, period), b = stream_inserted(&a, 20000, 3, 1);
        iron_diff_report r = compare_manifests(&a, &b, CHUNK);

        if (r.kind == IRON_DIFF_INSERTED)
            assert_int_equal(r.length, 3);
        else
            assert_kind(&r, IRON_DIFF_CHANGED);
        free(a.tokens);
        free(b.tokens);
    }
}

/* The files were changed after the manifest was made: their values are not shown. */
static void files_that_contradict_their_manifest(void **state) {
    stream a = stream_random(13, 50000, 20000), b = stream_part(&a, 0, a.count), later;
    file_name path = name_in(&place, "b.bin");
    test_side x, y;
    iron_diff_report r;
    iron_diff *d;

    (void)state;
    b.tokens[5000] = 60000;
    later = stream_part(&b, 0, b.count);
    later.tokens[5001] = 60001;
    x = make_side(&a, "a.bin", BOTH, CHUNK);
    y = make_side(&b, "b.bin", MANIFEST, CHUNK);
    stream_store(&later, IRON_DTYPE_U32, path.path);
    y.side.source = source_open(path.path, IRON_DTYPE_U32);
    d = compare_sides(&x.side, &y.side, 0, 2);
    r = describe(d);
    assert_int_equal(r.first, 4096);
    assert_int_equal(r.first_end, 5120);
    assert_int_equal(r.has_value[0] | r.has_value[1], 0);
    assert_text(&r, "the files of B are no longer what its manifest says");
    iron_diff_destroy(d);
    iron_source_close(y.side.source);
    append(&later, a.tokens, 1); /* another length is detected at once */
    stream_store(&later, IRON_DTYPE_U32, path.path);
    y.side.source = source_open(path.path, IRON_DTYPE_U32);
    d = compare_sides(&x.side, &y.side, 0, 2);
    r = describe(d);
    assert_int_equal(r.tokens[1], b.count);
    assert_text(&r, "no longer");
    iron_diff_destroy(d);
    free_side(&x);
    free_side(&y);
    free(a.tokens);
    free(b.tokens);
    free(later.tokens);
}

static iron_status try_chunks(const stream *a, uint64_t of_a, has what_a, const stream *b,
                              uint64_t of_b, has what_b, iron_diff_kind *kind, iron_error *err) {
    test_side x = make_side(a, "a.bin", what_a, of_a), y = make_side(b, "b.bin", what_b, of_b);
    iron_diff *d = NULL;
    iron_status status = iron_diff_run(&x.side, &y.side, NULL, &d, err);

    if (status == IRON_OK)
        *kind = describe(d).kind;
    else
        assert_null(d);
    iron_diff_destroy(d);
    free_side(&x);
    free_side(&y);
    return status;
}

/* Chunks of different sizes: comparable through equal seals or tokens, otherwise refused. */
static void chunks_of_other_sizes(void **state) {
    stream a = stream_random(14, 50000, 20000), b = stream_part(&a, 0, a.count);
    iron_diff_kind kind = IRON_DIFF_TRUNCATED;
    iron_error err;

    (void)state;
    b.tokens[7] = 60000;
    assert_ok(try_chunks(&a, 1024, MANIFEST, &a, 2048, MANIFEST, &kind, &err), &err);
    assert_int_equal(kind, IRON_DIFF_EQUAL);
    assert_ok(try_chunks(&a, 0, MANIFEST, &a, 0, MANIFEST, &kind, &err), &err);
    assert_int_equal(kind, IRON_DIFF_EQUAL);
    for (uint64_t other = 0; other <= 2048; other += 2048) {
        assert_refused(try_chunks(&a, 1024, MANIFEST, &b, other, MANIFEST, &kind, &err),
                       IRON_E_FORMAT, &err);
        assert_says(&err, "--chunk");
        assert_ok(try_chunks(&a, 1024, MANIFEST, &b, other, BOTH, &kind, &err), &err);
        assert_int_equal(kind, IRON_DIFF_CHANGED);
        assert_ok(try_chunks(&a, other, BOTH, &b, 1024, MANIFEST, &kind, &err), &err);
        assert_ok(try_chunks(&a, other, BOTH, &b, 4096, BOTH, &kind, &err), &err);
        assert_int_equal(kind, IRON_DIFF_CHANGED);
    }
    free(a.tokens);
    free(b.tokens);
}

static void parts_are_refused(void **state) {
    stream a = stream_random(15, 50000, 20000);
    test_side x = make_side(&a, "a.bin", MANIFEST, CHUNK);
    iron_diff_side other = x.side;
    iron_manifest *part = manifest_by_hand(&a, CHUNK);
    iron_diff *d = NULL;
    iron_error err;

    (void)state;
    part->part = 1;
    part->parts = 2;
    part->stream_tokens = 2 * part->tokens;
    other.manifest = part;
    assert_refused(iron_diff_run(&x.side, &other, NULL, &d, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "iron merge");
    iron_manifest_destroy(part);
    free_side(&x);
    free(a.tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_streams_from_any_input),
        cmocka_unit_test(one_token_from_any_input),
        cmocka_unit_test(shifts_from_manifests),
        cmocka_unit_test(shifts_from_any_input),
        cmocka_unit_test(a_shift_and_a_later_change),
        cmocka_unit_test(two_insertions),
        cmocka_unit_test(beginnings),
        cmocka_unit_test(no_beginning),
        cmocka_unit_test(moved_and_repeated),
        cmocka_unit_test(nothing_to_explain),
        cmocka_unit_test(files_that_contradict_their_manifest),
        cmocka_unit_test(chunks_of_other_sizes),
        cmocka_unit_test(parts_are_refused),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
