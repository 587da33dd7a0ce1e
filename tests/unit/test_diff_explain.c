/* SPDX-License-Identifier: MIT */
/*
 * test_diff_explain.c: known edits must be explained correctly, with files on both sides:
 * insertions and deletions of all sizes at many places, swapped and repeated shards, prefixes, and
 * repetitive data. Unrelated streams must not be explained.
 */
#include "diff_support.h"
#include "place.h"

#define CHUNK 1024u

static iron_diff_report compare(const stream *a, const stream *b) {
    return compare_files(&place, a, b, CHUNK, 2);
}

static void assert_text(const iron_diff_report *r, const char *word) {
    if (!strstr(r->text, word))
        fail_msg("'%s' does not say '%s'", r->text, word);
}

/* b has `shift` tokens more (or fewer) from the first difference on, and the report says so. */
static void assert_shift(const stream *a, const stream *b, iron_diff_kind kind, uint64_t shift) {
    iron_diff_report r = compare(a, b);

    if (r.kind != kind)
        fail_msg("kind %d, not %d: %s", (int)r.kind, (int)kind, r.text);
    assert_int_equal(r.length, shift);
    assert_int_equal(r.position, first_difference(a, b));
    assert_int_equal(r.edits, 1);
    assert_int_equal(r.is_verified, 1);
}

/* The first of several edits. */
static void assert_several(const stream *a, const stream *b, iron_diff_kind kind, uint64_t length,
                           uint64_t edits) {
    iron_diff_report r = compare(a, b);

    if (r.kind != kind)
        fail_msg("kind %d, not %d: %s", (int)r.kind, (int)kind, r.text);
    assert_int_equal(r.length, length);
    assert_int_equal(r.position, first_difference(a, b));
    assert_int_equal(r.edits, edits);
    assert_int_equal(r.has_more_edits, 0);
}

static void assert_kind(const stream *a, const stream *b, iron_diff_kind kind) {
    iron_diff_report r = compare(a, b);

    if (r.kind != kind)
        fail_msg("kind %d, not %d: %s", (int)r.kind, (int)kind, r.text);
}

static void inserted_and_deleted_anywhere(void **state) {
    static const size_t shifts[] = {1, 2, 3, 4, 5, 1000, 1023, 1024, 1025, 70000};
    stream a = stream_random(1, 50000, 150000);
    const size_t places[] = {0, 1, 1023, 1024, 1025, 77777, a.count - 1025, a.count - 1};

    (void)state;
    for (size_t k = 0; k < COUNT(shifts); k++)
        for (size_t p = 0; p < COUNT(places); p++) {
            stream b = stream_inserted(&a, places[p], shifts[k], 99 + k);

            assert_shift(&a, &b, IRON_DIFF_INSERTED, shifts[k]);
            assert_shift(&b, &a, IRON_DIFF_DELETED, shifts[k]);
            free(b.tokens);
        }
    free(a.tokens);
}

static void a_megatoken_inserted(void **state) {
    const size_t shift = ((size_t)1 << 20) + 1;
    stream a = stream_random(2, 50000, 1500000);

    (void)state;
    for (size_t at = 3; at < a.count; at += 700001) {
        stream b = stream_inserted(&a, at, shift, 5);

        assert_shift(&a, &b, IRON_DIFF_INSERTED, shift);
        assert_shift(&b, &a, IRON_DIFF_DELETED, shift);
        free(b.tokens);
    }
    free(a.tokens);
}

/* A stream of a fixed length: an insertion drops as many tokens at the end. */
static void the_length_stays(void **state) {
    static const size_t shifts[] = {1, 3, 4, 1000, 30000};
    stream a = stream_random(3, 50000, 120000);

    (void)state;
    for (size_t k = 0; k < COUNT(shifts); k++) {
        stream longer = stream_inserted(&a, 40000, shifts[k], 7);
        stream b = stream_part(&longer, 0, a.count);
        iron_diff_report r = compare(&a, &b);

        assert_int_equal(r.kind, IRON_DIFF_INSERTED);
        assert_int_equal(r.length, shifts[k]);
        assert_int_equal(r.position, 40000);
        assert_int_equal(r.edits, 2);
        assert_text(&r, "the first of 2 edits");
        r = compare(&b, &a);
        assert_int_equal(r.kind, IRON_DIFF_DELETED);
        assert_int_equal(r.length, shifts[k]);
        assert_int_equal(r.edits, 2);
        free(longer.tokens);
        free(b.tokens);
    }
    free(a.tokens);
}

/* All in one chunk, as in short streams. */
static void short_streams(void **state) {
    stream a = stream_random(17, 50000, 900), longer = stream_inserted(&a, 300, 5, 1);
    stream b = stream_part(&longer, 0, a.count), c = stream_part(&a, 0, a.count);

    (void)state;
    assert_several(&a, &b, IRON_DIFF_INSERTED, 5, 2);
    assert_several(&b, &a, IRON_DIFF_DELETED, 5, 2);
    c.tokens[300] = c.tokens[650] = 60000;
    assert_kind(&a, &c, IRON_DIFF_CHANGED);
    free(a.tokens);
    free(b.tokens);
    free(c.tokens);
    free(longer.tokens);
}

/* Too far to be in memory, with equal lengths: seeds find it. */
static void far_away_with_equal_lengths(void **state) {
    const size_t shift = 4300001;
    stream a = stream_random(4, 50000, 5600000);
    stream longer = stream_inserted(&a, 1000000, shift, 8);
    stream b = stream_part(&longer, 0, a.count);

    (void)state;
    assert_several(&a, &b, IRON_DIFF_INSERTED, shift, 2);
    assert_several(&b, &a, IRON_DIFF_DELETED, shift, 2);
    free(a.tokens);
    free(b.tokens);
    free(longer.tokens);
}

static void insertions_at_several_places(void **state) {
    stream a = stream_random(5, 50000, 150000);
    stream once = stream_inserted(&a, 30000, 3, 1), twice = stream_inserted(&once, 90000, 5, 2);
    iron_diff_report r = compare(&a, &twice);

    (void)state;
    assert_int_equal(r.kind, IRON_DIFF_INSERTED);
    assert_int_equal(r.length, 3);
    assert_int_equal(r.position, 30000);
    assert_int_equal(r.edits, 2);
    assert_text(&r, "the first of 2 edits");
    free(a.tokens);
    free(once.tokens);
    free(twice.tokens);
}

/* Changes in place, and an insertion after them: each is an edit. */
static void changes_before_an_insertion(void **state) {
    stream a = stream_random(6, 50000, 150000), b = stream_inserted(&a, 100000, 7, 1);

    (void)state;
    for (size_t k = 0; k < 20; k++)
        b.tokens[1000 + 4000 * k] = 60002;
    assert_several(&a, &b, IRON_DIFF_CHANGED, 1, 21);
    b.tokens[1100] = 60002; /* close together: one edit, from the first to the last */
    assert_several(&a, &b, IRON_DIFF_CHANGED, 101, 21);
    free(a.tokens);
    free(b.tokens);
}

/* More edits than are listed. */
static void a_thousand_changes(void **state) {
    stream a = stream_random(7, 50000, 600000), b = stream_part(&a, 0, a.count);
    iron_diff_report r;

    (void)state;
    for (size_t k = 0; k < 1000; k++)
        b.tokens[600 * k] = 60000;
    r = compare(&a, &b);
    assert_int_equal(r.kind, IRON_DIFF_CHANGED);
    assert_int_equal(r.length, 1);
    assert_int_equal(r.has_more_edits, 1);
    assert_text(&r, "more than");
    free(a.tokens);
    free(b.tokens);
}

static void replaced_by_more(void **state) {
    stream a = stream_random(7, 50000, 150000), other = stream_random(70, 50000, 500);
    stream b;
    iron_diff_report r;

    (void)state;
    other.tokens[0] = 60001;
    b = stream_spliced(&a, 60000, 200, other.tokens, other.count);
    r = compare(&a, &b);
    assert_int_equal(r.kind, IRON_DIFF_CHANGED);
    assert_int_equal(r.length, 500);
    assert_int_equal(r.position, 60000);
    assert_int_equal(r.edits, 1);
    assert_text(&r, "200 tokens became 500 others");
    free(a.tokens);
    free(b.tokens);
    free(other.tokens);
}

/* An insertion, and later a deletion of the same length: only the part in between is shifted. */
static void a_shift_of_a_range(void **state) {
    stream a = stream_random(8, 50000, 150000);
    stream more = stream_inserted(&a, 30000, 3, 1), b = stream_deleted(&more, 90003, 3);

    (void)state;
    assert_several(&a, &b, IRON_DIFF_INSERTED, 3, 2);
    free(a.tokens);
    free(b.tokens);
    free(more.tokens);
}

static void beginnings(void **state) {
    stream a = stream_random(9, 50000, 100000);
    static const size_t counts[] = {0, 1, 1023, 1024, 1025, 99328, 99999};

    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++) {
        stream b = stream_part(&a, 0, counts[k]);

        assert_kind(&a, &b, IRON_DIFF_TRUNCATED);
        assert_kind(&b, &a, IRON_DIFF_EXTENDED);
        free(b.tokens);
    }
    free(a.tokens);
}

/* Shards s0 s1 s2 ... of `size` tokens, in this order. */
static stream shuffled(const stream *a, size_t size, const char *order) {
    stream s = {NULL, 0};

    for (; *order; order++) {
        size_t first = (size_t)(*order - '0') * size;

        append(&s, a->tokens + first, a->count - first < size ? a->count - first : size);
    }
    return s;
}

/* With shards on chunk borders and off them. */
static void shards_in_another_order(void **state) {
    static const struct {
        const char *order;
        iron_diff_kind kind;
    } cases[] = {{"1023456", IRON_DIFF_MOVED},     {"0213456", IRON_DIFF_MOVED},
                 {"0231456", IRON_DIFF_MOVED},     {"5432106", IRON_DIFF_REORDERED},
                 {"0423156", IRON_DIFF_REORDERED}, {"1032546", IRON_DIFF_REORDERED}};

    (void)state;
    for (size_t size = 20480; size <= 20481; size++) {
        stream a = stream_random(10, 50000, 6 * size + 100); /* 6 is short */

        for (size_t k = 0; k < COUNT(cases); k++) {
            stream b = shuffled(&a, size, cases[k].order);
            iron_diff_report r = compare(&a, &b);

            if (r.kind != cases[k].kind)
                fail_msg("%s: kind %d: %s", cases[k].order, (int)r.kind, r.text);
            assert_int_equal(r.edits, 1);
            assert_int_equal(r.is_verified, 1);
            free(b.tokens);
        }
        free(a.tokens);
    }
}

/* Once more after itself, elsewhere, in place of another; with the end pushed out or not. */
static void shards_that_are_repeated(void **state) {
    static const struct {
        const char *order;
        uint64_t position, source, edits; /* in shards */
    } cases[] = {{"00123456", 1, 0, 1},
                 {"0123345", 4, 3, 2},
                 {"0122456", 3, 2, 1},
                 {"0120456", 3, 0, 1},
                 {"01203456", 3, 0, 1}};

    (void)state;
    for (size_t size = 20480; size <= 20481; size++) {
        stream a = stream_random(11, 50000, 6 * size + 100);

        for (size_t k = 0; k < COUNT(cases); k++) {
            stream b = shuffled(&a, size, cases[k].order);
            iron_diff_report r = compare(&a, &b);

            if (r.kind != IRON_DIFF_REPEATED)
                fail_msg("%s: kind %d: %s", cases[k].order, (int)r.kind, r.text);
            assert_int_equal(r.position, cases[k].position * size);
            assert_int_equal(r.length, size);
            assert_int_equal(r.source, cases[k].source * size);
            assert_int_equal(r.edits, cases[k].edits);
            free(b.tokens);
        }
        free(a.tokens);
    }
}

/* For uniform data, only what is certain may be reported. */
static void repetitive_data(void **state) {
    (void)state;
    for (uint32_t period = 1; period <= 4; period += 3) {
        stream a = stream_filled(100000, period), b = stream_inserted(&a, 50000, 3, 1);
        stream c = stream_part(&b, 0, a.count), d = stream_part(&a, 0, a.count);

        assert_shift(&a, &b, IRON_DIFF_INSERTED, 3);
        assert_shift(&b, &a, IRON_DIFF_DELETED, 3);
        if (period == 1)
            assert_kind(&a, &c, IRON_DIFF_CHANGED);
        d.tokens[10] = d.tokens[70000] = 1;
        assert_kind(&a, &d, IRON_DIFF_CHANGED);
        free(a.tokens);
        free(b.tokens);
        free(c.tokens);
        free(d.tokens);
    }
}

static void unrelated_streams(void **state) {
    static const uint32_t limits[] = {2, 4, 256, 50000};

    (void)state;
    for (size_t k = 0; k < COUNT(limits); k++)
        for (size_t count = 5000; count <= 100000; count += 47500) {
            stream a = stream_random(20 + k, limits[k], count);
            stream b = stream_random(30 + k, limits[k], count + 1000 * (k % 3));

            assert_kind(&a, &b, IRON_DIFF_CHANGED);
            assert_kind(&b, &a, IRON_DIFF_CHANGED);
            free(a.tokens);
            free(b.tokens);
        }
}

/* A common passage that the probes find does not make unrelated texts a shift; nor does a common
 * end. */
static void a_passage_in_unrelated_streams(void **state) {
    stream a = stream_random(40, 50000, 50000), b = stream_random(41, 50000, 45000);
    stream passage = stream_random(42, 50000, 1400);

    (void)state;
    memcpy(a.tokens + 16000, passage.tokens, passage.count * sizeof *passage.tokens);
    memcpy(b.tokens + 9000, passage.tokens, passage.count * sizeof *passage.tokens);
    assert_kind(&a, &b, IRON_DIFF_CHANGED);
    assert_kind(&b, &a, IRON_DIFF_CHANGED);
    append(&a, passage.tokens, passage.count);
    append(&b, passage.tokens, passage.count);
    assert_kind(&a, &b, IRON_DIFF_CHANGED);
    assert_kind(&b, &a, IRON_DIFF_CHANGED);
    assert_int_equal(compare_manifests(&a, &b, CHUNK).kind, IRON_DIFF_CHANGED);
    free(a.tokens);
    free(b.tokens);
    free(passage.tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inserted_and_deleted_anywhere),
        cmocka_unit_test(a_megatoken_inserted),
        cmocka_unit_test(the_length_stays),
        cmocka_unit_test(short_streams),
        cmocka_unit_test(far_away_with_equal_lengths),
        cmocka_unit_test(insertions_at_several_places),
        cmocka_unit_test(changes_before_an_insertion),
        cmocka_unit_test(a_thousand_changes),
        cmocka_unit_test(replaced_by_more),
        cmocka_unit_test(a_shift_of_a_range),
        cmocka_unit_test(beginnings),
        cmocka_unit_test(shards_in_another_order),
        cmocka_unit_test(shards_that_are_repeated),
        cmocka_unit_test(repetitive_data),
        cmocka_unit_test(unrelated_streams),
        cmocka_unit_test(a_passage_in_unrelated_streams),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
