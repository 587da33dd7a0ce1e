/* SPDX-License-Identifier: MIT */
/*
 * test_diff_property.c: every claim of a report is true. Streams of many kinds get random edits,
 * are compared from files, from manifests and from one of each, and every claim of the report is
 * checked against the tokens themselves.
 */
#include "diff_support.h"
#include "place.h"

#define CHUNK 1024u

/* Random, few values, constant, periodic, or repeated sentences. */
static stream any_stream(rng *r) {
    static const uint32_t limits[] = {50000, 50000, 256, 4, 2};
    size_t count = 2000 + rng_below(r, 40000);
    uint64_t kind = rng_below(r, 8);
    stream s, sentences;

    if (kind < COUNT(limits))
        return stream_random(rng_next(r) | 1, limits[kind], count);
    if (kind == 5)
        return stream_filled(count, 1);
    if (kind == 6)
        return stream_filled(count, 2 + (uint32_t)rng_below(r, 600));
    sentences = stream_random(rng_next(r) | 1, 50000, 5000);
    s = (stream){NULL, 0};
    while (s.count < count)
        append(&s, sentences.tokens + 300 * rng_below(r, 10), 100 + rng_below(r, 1000));
    free(sentences.tokens);
    return s;
}

static size_t any_length(rng *r, size_t most) {
    static const size_t lengths[] = {1, 3, 4, 700, 1024, 2048, 2048, 5000};
    size_t length = lengths[rng_below(r, COUNT(lengths))];

    return length < most ? length : most;
}

static stream edit(rng *r, const stream *s) {
    size_t length = any_length(r, s->count), at = rng_below(r, s->count - length + 1), to;
    stream more = stream_random(rng_next(r) | 1, 50000, length), out, rest;

    if (rng_below(r, 2)) /* at a chunk boundary, if possible */
        at = at / CHUNK * CHUNK;
    switch (rng_below(r, 8)) {
    case 0:
        out = stream_spliced(s, at, 0, more.tokens, length);
        break;
    case 1:
        out = stream_deleted(s, at, length);
        break;
    case 2:
        out = stream_spliced(s, at, length, more.tokens, length);
        break;
    case 3: /* a copy of a range, somewhere */
        to = rng_below(r, 2) ? at + length : rng_below(r, s->count + 1) / CHUNK * CHUNK;
        out = stream_spliced(s, to, 0, s->tokens + at, length);
        break;
    case 4: /* moved after the next range */
        rest = stream_deleted(s, at, length);
        to = at + length < rest.count ? at + length : rest.count;
        out = stream_spliced(&rest, to, 0, s->tokens + at, length);
        free(rest.tokens);
        break;
    case 5:
        out = stream_part(s, 0, at);
        break;
    case 6: /* two blocks change places */
        to = rng_below(r, s->count - length + 1);
        out = stream_spliced(s, at, length, s->tokens + to, length);
        memcpy(out.tokens + to, s->tokens + at, length * sizeof *s->tokens);
        break;
    default:
        out = stream_part(s, 0, s->count);
        append(&out, more.tokens, length);
    }
    free(more.tokens);
    return out;
}

/* Number of equal tokens from these positions on, and directly before them. */
static size_t agreement(const stream *a, size_t i, const stream *b, size_t j) {
    size_t same = 0;

    while (i + same < a->count && j + same < b->count && a->tokens[i + same] == b->tokens[j + same])
        same++;
    return same;
}

static void claim_fails(const iron_diff_report *r, const char *why) {
    fail_msg("%s: kind %d, %llu tokens at %llu, verified %u, tokens %llu and %llu: %s", why,
             (int)r->kind, (unsigned long long)r->length, (unsigned long long)r->position,
             r->is_verified, (unsigned long long)r->tokens[0], (unsigned long long)r->tokens[1],
             r->text);
}

static void check_shift(const iron_diff_report *r, const stream *a, const stream *b) {
    const stream *longer = r->kind == IRON_DIFF_INSERTED ? b : a;
    const stream *shorter = r->kind == IRON_DIFF_INSERTED ? a : b;
    size_t at = (size_t)r->position, shift = (size_t)r->length, longest = 0;
    bool to_end = false;

    if (shift == 0 || at > shorter->count || at + shift > longer->count)
        claim_fails(r, "no such place");
    for (size_t k = at; k < shorter->count && k + shift < longer->count;) {
        size_t same = agreement(shorter, k, longer, k + shift);

        longest = same > longest ? same : longest;
        to_end = to_end || k + same == shorter->count || k + shift + same == longer->count;
        k += same + 1;
    }
    if (r->is_verified && !to_end)
        claim_fails(r, "the ends do not agree");
    if (longest < IRON_MARK_TOKENS && !(r->is_verified && to_end))
        claim_fails(r, "nothing is shifted by that");
}

static bool stands_in(const stream *chunk_of, size_t chunk, const stream *in, size_t *times) {
    size_t first = chunk * CHUNK, count = chunk_of->count - first;

    *times = 0;
    count = count < CHUNK ? count : CHUNK;
    for (size_t k = 0; k < in->count; k += CHUNK) {
        size_t other = in->count - k < CHUNK ? in->count - k : CHUNK;

        *times += other == count && agree(chunk_of, first, in, k, count);
    }
    return *times > 0;
}

static void check_moves(const iron_diff_report *r, const stream *a, const stream *b) {
    size_t in_a, in_b, more = 0;

    for (size_t k = 0; k * CHUNK < b->count; k++) {
        if (!stands_in(b, k, a, &in_a))
            claim_fails(r, "a chunk is new");
        stands_in(b, k, b, &in_b);
        more += in_b > in_a;
        if (r->kind != IRON_DIFF_REPEATED && in_a != in_b)
            claim_fails(r, "chunks occur more or less often");
    }
    if (r->kind == IRON_DIFF_REPEATED && more == 0)
        claim_fails(r, "no chunk occurs more often");
}

static void check_beginning(const iron_diff_report *r, const stream *a, const stream *b) {
    const stream *shorter = r->kind == IRON_DIFF_TRUNCATED ? b : a;
    const stream *longer = r->kind == IRON_DIFF_TRUNCATED ? a : b;
    size_t sure = r->is_verified ? shorter->count : shorter->count / CHUNK * CHUNK;

    if (shorter->count >= longer->count || !agree(shorter, 0, longer, 0, sure))
        claim_fails(r, "no beginning");
}

/* One edit: what it makes of the first stream is the second. */
static stream edited(const iron_diff_report *r, const stream *a, const stream *b) {
    size_t at = (size_t)r->position, length = (size_t)r->length, from = (size_t)r->source;
    bool is_longer = r->tokens[1] == r->tokens[0] + r->length;
    stream rest, out;

    switch (r->kind) {
    case IRON_DIFF_TRUNCATED:
    case IRON_DIFF_DELETED:
        return stream_deleted(a, at, length);
    case IRON_DIFF_EXTENDED:
    case IRON_DIFF_INSERTED:
        return stream_spliced(a, at, 0, b->tokens + at, length);
    case IRON_DIFF_REPEATED:
        return stream_spliced(a, at, is_longer ? 0 : length + a->count - b->count, a->tokens + from,
                              length);
    case IRON_DIFF_MOVED:
        rest = stream_deleted(a, from, length);
        out = stream_spliced(&rest, at, 0, a->tokens + from, length);
        free(rest.tokens);
        return out;
    default: /* CHANGED, REORDERED: other tokens in this place */
        return stream_spliced(a, at, length + a->count - b->count, b->tokens + at, length);
    }
}

static int by_value(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return (a > b) - (a < b);
}

static bool has_same_tokens(const stream *a, const stream *b) {
    stream x = stream_part(a, 0, a->count), y = stream_part(b, 0, b->count);
    bool is_same;

    qsort(x.tokens, x.count, sizeof *x.tokens, by_value);
    qsort(y.tokens, y.count, sizeof *y.tokens, by_value);
    is_same = first_difference(&x, &y) == UINT64_MAX;
    free(x.tokens);
    free(y.tokens);
    return is_same;
}

static void check_edit(const iron_diff_report *r, const stream *a, const stream *b) {
    size_t at = (size_t)r->position, length = (size_t)r->length;
    bool is_in_first = r->kind == IRON_DIFF_DELETED || r->kind == IRON_DIFF_TRUNCATED;

    if (length == 0 || at + length > (is_in_first ? a : b)->count)
        claim_fails(r, "no such place");
    if (r->edits == 1 && !r->has_more_edits) {
        stream expected = edited(r, a, b);

        if (first_difference(&expected, b) != UINT64_MAX)
            claim_fails(r, "the edit does not make the second stream");
        free(expected.tokens);
    }
    if (r->kind == IRON_DIFF_REORDERED && r->edits == 1 && !has_same_tokens(a, b))
        claim_fails(r, "these are other tokens");
    if (r->kind == IRON_DIFF_CHANGED && a->count == b->count && r->edits == 1 &&
        (a->tokens[at] == b->tokens[at] ||
         a->tokens[at + length - 1] == b->tokens[at + length - 1]))
        claim_fails(r, "less is changed");
    if ((r->kind == IRON_DIFF_REPEATED || r->kind == IRON_DIFF_MOVED) &&
        !agree(a, (size_t)r->source, b, at, length))
        claim_fails(r, "the source has other tokens");
}

static void check_claim(const iron_diff_report *r, const stream *a, const stream *b) {
    if (r->edits != IRON_COUNT_UNKNOWN && r->edits > 0 && r->is_verified) {
        check_edit(r, a, b);
        return;
    }
    switch (r->kind) {
    case IRON_DIFF_EQUAL:
    case IRON_DIFF_CHANGED:
        if ((r->kind == IRON_DIFF_EQUAL) != (first_difference(a, b) == UINT64_MAX))
            claim_fails(r, "not so");
        break;
    case IRON_DIFF_TRUNCATED:
    case IRON_DIFF_EXTENDED:
        check_beginning(r, a, b);
        break;
    case IRON_DIFF_INSERTED:
    case IRON_DIFF_DELETED:
        check_shift(r, a, b);
        break;
    case IRON_DIFF_REORDERED:
    case IRON_DIFF_REPEATED:
    case IRON_DIFF_MOVED:
        check_moves(r, a, b);
        break;
    case IRON_DIFF_SHUFFLED: /* only for streams with samples */
        fail_msg("shuffled, without samples");
        break;
    }
}

static iron_diff_report compare_mixed(const stream *a, const stream *b, int known) {
    const stream *both[2] = {a, b};
    file_name name = name_in(&place, "mixed.bin");
    iron_diff_side sides[2] = {{NULL, NULL, "A"}, {NULL, NULL, "B"}};
    iron_scan_options o;
    iron_manifest *m = NULL;
    iron_diff_report r;
    iron_error err;
    iron_diff *d;

    iron_scan_options_init(&o);
    o.chunk_tokens = CHUNK;
    o.backend = "cpu";
    stream_store(both[known], IRON_DTYPE_U32, name.path);
    sides[known].source = source_open(name.path, IRON_DTYPE_U32);
    assert_ok(iron_scan(sides[known].source, &o, &m, &err), &err);
    iron_source_close(sides[known].source);
    sides[known].source = NULL;
    sides[known].manifest = m;
    stream_store(both[!known], IRON_DTYPE_U32, name.path);
    sides[!known].source = source_open(name.path, IRON_DTYPE_U32);
    d = compare_sides(&sides[0], &sides[1], 0, 2);
    r = describe(d);
    assert_ranges(d, &r, a, b);
    iron_diff_destroy(d);
    iron_manifest_destroy(m);
    iron_source_close(sides[!known].source);
    return r;
}

static void check_pair(const stream *a, const stream *b, size_t counts[9]) {
    iron_diff_report r = compare_files(&place, a, b, CHUNK, 2);

    counts[r.kind]++;
    check_claim(&r, a, b);
    r = compare_manifests(a, b, CHUNK);
    check_claim(&r, a, b);
    for (int known = 0; known < 2; known++) {
        r = compare_mixed(a, b, known);
        check_claim(&r, a, b);
    }
}

/* Whether a pair of every kind occurred. If not, the edits do not cover enough. */
static size_t missing_kind(const size_t counts[9]) {
    for (size_t kind = 1; kind < 9; kind++)
        if (counts[kind] == 0)
            return kind;
    return 0;
}

/* The random numbers depend on the order in which a compiler evaluates arguments: a fixed number of
 * trials, and more until every kind has occurred. */
static void every_claim_is_true(void **state) {
    size_t trials = is_long_test() ? 5000 : 150, most = 20 * trials, counts[9] = {0};
    rng r = {2026};

    (void)state;
    for (size_t trial = 0; trial < trials || (missing_kind(counts) && trial < most); trial++) {
        stream a = any_stream(&r), b = edit(&r, &a);

        for (uint64_t k = rng_below(&r, 3); k > 0 && b.count > 0; k--) {
            stream next = edit(&r, &b);

            free(b.tokens);
            b = next;
        }
        check_pair(&a, &b, counts);
        check_pair(&b, &a, counts);
        free(a.tokens);
        free(b.tokens);
    }
    if (missing_kind(counts))
        fail_msg("no pair was of kind %zu", missing_kind(counts));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_claim_is_true)};

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
