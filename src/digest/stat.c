/* SPDX-License-Identifier: MIT */
/*
 * stat.c: iron_stat: statistics of a source, or of a range of it.
 *
 * The object comes first (lengths of documents, entropy, ranges that continue each other, the
 * report), then its computation by all threads, then its form as words for other processes.
 *
 * The document that a range begins with and the one it ends with are in no table, since a neighbour
 * may complete them: they are added when the report is made.
 */
#include "digest/digest_internal.h"

#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/number.h"
#include "feed/ring.h"
#include "formats/format.h"
#include "formats/source.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Statistics of a range that cannot be added up in any order: where things are, and what continues
 * over the range's ends.
 *
 * Ranges form an ordered monoid: a range is continued by tokens or by the range that follows it. A
 * run of one value, or a document, may span ranges; so a range keeps the run it begins with and the
 * one it ends with, the tokens before its first end of a document, and those after its last.
 *
 *     tokens    7 7 7 | 5 E 9 9 E 4 4 4          E: the eos
 *     run head  ------                 -- tail
 *     document head -------  (inside)    ----- tail
 *
 * Lengths of documents that begin and end inside are counted in a table, which adds up in any
 * order, like the histogram. */

typedef struct stat_run {
    uint64_t length; /* 0 if there is none */
    uint64_t position, value;
} stat_run;

typedef struct stat_range {
    uint64_t first, tokens, zeros, out_of_vocab;
    uint32_t min, max; /* of no tokens: UINT32_MAX and 0 */
    uint64_t place_count;
    struct {
        uint64_t position, value;
    } places[IRON_STAT_PLACES];   /* those past the count are zeros */
    stat_run head, tail, longest; /* runs; head and tail are one if all tokens are equal */
    uint64_t ends;                /* how often the eos occurs */
    uint64_t document_head;       /* tokens up to and including the first eos */
    uint64_t document_tail;       /* tokens after the last eos; all, if there is none */
} stat_range;

typedef struct stat_rule {
    uint64_t vocab;
    uint64_t eos; /* IRON_COUNT_UNKNOWN: none */
} stat_rule;

/* How many documents have which length. A length up to 2^20 tokens has a counter of its own. Longer
 * ones share counters: 1024 for each doubling, so that the lengths of one counter differ by less
 * than 1/1024 of the smallest. For the longest possible stream, 44 doublings, that is 9 MB, however
 * many documents there are. All zeros: no documents. */
#define LENGTHS_EXACT    (UINT64_C(1) << 20)
#define LENGTHS_COUNTERS ((size_t)(LENGTHS_EXACT + 1 + UINT64_C(44) * 1024))

typedef struct stat_lengths {
    uint64_t longer_min, longer_max;   /* of lengths beyond 2^20, exactly; 0: there are none */
    uint64_t counts[LENGTHS_COUNTERS]; /* counts[0]: only of rows and documents of files */
} stat_lengths;

struct iron_stat {
    stat_rule rule;
    stat_range range;
    stat_lengths *lengths;     /* of documents inside the range; NULL without an eos */
    iron_bag_cut_kind own_cut; /* ROWS or DOCUMENTS of the files, without an eos; else NONE */
    stat_lengths *own;         /* of those that begin in the range */
    uint64_t *histogram;       /* of vocab ids, or NULL */
};

/* A histogram of 64-bit counters is half a gigabyte then. */
#define HISTOGRAM_MAX (UINT64_C(1) << 26)

/* Lengths of documents. */

#define FINE_BITS  10u
#define FINE       (1u << FINE_BITS)
#define EXACT_BITS 20u

/* The counter of a length, and the smallest length of a counter. */
static size_t counter_of(uint64_t length) {
    unsigned bits;

    if (length <= LENGTHS_EXACT)
        return (size_t)length;
    bits = 63u - (unsigned)__builtin_clzll(length);
    return (size_t)(LENGTHS_EXACT + 1) + (size_t)(bits - EXACT_BITS) * FINE +
           (size_t)(length >> (bits - FINE_BITS)) % FINE;
}

static uint64_t smallest_of(size_t counter) {
    size_t shared = counter - (size_t)(LENGTHS_EXACT + 1);
    uint64_t smallest;

    if (counter <= LENGTHS_EXACT)
        return counter;
    smallest = (uint64_t)(FINE + shared % FINE) << (EXACT_BITS - FINE_BITS + shared / FINE);
    /* 2^20 itself has a counter of its own */
    return smallest > LENGTHS_EXACT ? smallest : smallest + 1;
}

static void note_longer(stat_lengths *t, uint64_t length) {
    if (t->longer_max == 0 || length < t->longer_min)
        t->longer_min = length;
    if (length > t->longer_max)
        t->longer_max = length;
}

static void lengths_add(stat_lengths *t, uint64_t length, uint64_t count) {
    t->counts[counter_of(length)] += count;
    if (length > LENGTHS_EXACT && count > 0)
        note_longer(t, length);
}

static void lengths_merge(stat_lengths *t, const stat_lengths *more) {
    for (size_t k = 0; k < LENGTHS_COUNTERS; k++)
        t->counts[k] += more->counts[k];
    if (more->longer_max > 0) {
        note_longer(t, more->longer_min);
        note_longer(t, more->longer_max);
    }
}

/* The fewest tokens that such documents can have together: exactly what they have, if none is
 * longer than 2^20; UINT64_MAX: more than a stream can have. */
static uint64_t lengths_tokens(const stat_lengths *t) {
    uint64_t sum = 0, tokens;

    for (size_t k = 1; k < LENGTHS_COUNTERS; k++)
        if (t->counts[k] > 0 && (__builtin_mul_overflow(smallest_of(k), t->counts[k], &tokens) ||
                                 __builtin_add_overflow(sum, tokens, &sum)))
            return UINT64_MAX;
    return sum;
}

/* The length with number rank (1 ... total) in ascending order; for a shared counter, the smallest
 * length it can stand for. `extra` are up to two lengths that are not in the table. */
static uint64_t lengths_at(const stat_lengths *t, const uint64_t *extra, size_t extras,
                           uint64_t rank) {
    size_t counters[2] = {0, 0};
    uint64_t below = 0;

    for (size_t e = 0; e < extras; e++)
        counters[e] = counter_of(extra[e]);
    for (size_t k = 0; k < LENGTHS_COUNTERS; k++) {
        below += t->counts[k] + (extras > 0 && counters[0] == k) + (extras > 1 && counters[1] == k);
        if (below >= rank)
            return smallest_of(k);
    }
    return 0;
}

/* 0: there are no documents. */
static uint64_t lengths_min(const stat_lengths *t) {
    uint64_t low = lengths_at(t, NULL, 0, 1);

    return low > LENGTHS_EXACT ? t->longer_min : low;
}

static uint64_t lengths_max(const stat_lengths *t) {
    size_t k = (size_t)LENGTHS_EXACT;

    while (k > 0 && t->counts[k] == 0)
        k--;
    return t->longer_max > 0 ? t->longer_max : k;
}

/* Entropy. */

#define TERMS     12
#define ROOT_TWO  1.4142135623730951
#define LOG2_OF_E 1.4426950408889634

/* The logarithm to base 2 of a positive, finite, normal number, since the library does not use
 * libm; off by less than 1e-15 of the value, or of 1 if that is more.
 *
 * x = m 2^e with m within sqrt(1/2) ... sqrt(2), and log m = 2 artanh(s) with s = (m-1)/(m+1), at
 * most 0.172: the series s + s^3/3 + s^5/5 + ... gains 1.5 digits per term, so twelve terms reach
 * the last bit of a double. */
static double log2_of(double x) {
    uint64_t bits;
    int exponent;
    double s, square, sum = 0;

    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    memcpy(&x, &bits, sizeof x);
    if (x > ROOT_TWO) {
        x /= 2;
        exponent++;
    }
    s = (x - 1) / (x + 1);
    square = s * s;
    for (int k = TERMS; k > 0; k--)
        sum = (sum + 1.0 / (2 * k - 1)) * (k > 1 ? square : 1);
    return (double)exponent + 2 * s * sum * LOG2_OF_E;
}

/* Bits per token, for tokens distributed as the counts are; 0 for no tokens. There may be sixty
 * million small terms: what rounding takes from the sum is carried along (Kahan). */
static double entropy_bits(const uint64_t *counts, size_t ids) {
    double total, sum = 0, lost = 0;
    uint64_t tokens = 0;

    for (size_t k = 0; k < ids; k++)
        tokens += counts[k];
    total = (double)tokens;
    for (size_t k = 0; k < ids; k++) {
        double share, term, next;

        if (counts[k] == 0 || counts[k] == tokens)
            continue;
        share = (double)counts[k] / total;
        term = share * log2_of(total / (double)counts[k]) - lost;
        next = sum + term;
        lost = next - sum - term;
        sum = next;
    }
    return sum;
}

/* Ranges. */

static stat_range range_at(uint64_t first) {
    return (stat_range){.first = first, .min = UINT32_MAX};
}

/* Of equal runs the first stays: what is offered later is later in the stream. */
static void offer_run(stat_run *longest, stat_run run) {
    if (run.length > longest->length)
        *longest = run;
}

/* The object. */

/* Checks the rule; statistics of no tokens at `first`. */
static iron_status stat_create(const stat_rule *rule, bool wants_histogram, uint64_t first,
                               iron_stat **out, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    iron_status status = IRON_OK;
    iron_stat *s;

    *out = NULL;
    IRON_FAIL_IF(rule->vocab < 1 || rule->vocab > UINT64_C(1) << 32, err, IRON_E_ARG,
                 "vocab is %" PRIu64 "; it must be 1 to 4294967296", rule->vocab);
    IRON_FAIL_IF(rule->eos > UINT32_MAX && rule->eos != IRON_COUNT_UNKNOWN, err, IRON_E_ARG,
                 "eos is %" PRIu64 "; a token is at most 4294967295", rule->eos);
    IRON_FAIL_IF(wants_histogram && rule->vocab > HISTOGRAM_MAX, err, IRON_E_ARG,
                 "a histogram of a vocabulary of %" PRIu64
                 " would take more than 512 MiB; the limit is 67108864: omit --hist",
                 rule->vocab);
    IRON_TRY(IRON_ALLOCATE(&s, memory, 1, "statistics", err));
    s->rule = *rule;
    s->range = range_at(first);
    if (rule->eos != IRON_COUNT_UNKNOWN)
        status = IRON_ALLOCATE(&s->lengths, memory, 1, "a table of lengths", err);
    if (status == IRON_OK && wants_histogram)
        status = IRON_ALLOCATE(&s->histogram, memory, (size_t)rule->vocab, "a histogram", err);
    if (status == IRON_OK)
        *out = s;
    else
        iron_stat_destroy(s);
    return status;
}

void iron_stat_destroy(iron_stat *stat) {
    const iron_allocator *memory = iron__allocator_default();

    if (!stat)
        return;
    iron__release(memory, stat->lengths);
    iron__release(memory, stat->own);
    iron__release(memory, stat->histogram);
    iron__release(memory, stat);
}

/* Adds a table of the files' rows or documents. */
static iron_status begin_own(iron_stat *stat, iron_bag_cut_kind cut, iron_error *err) {
    stat->own_cut = cut;
    return IRON_ALLOCATE(&stat->own, iron__allocator_default(), 1, "a table of lengths", err);
}

/* Continues the statistics with a range that follows directly. */
static void append_range(iron_stat *stat, const stat_range *b) {
    stat_range *a = &stat->range;
    stat_run run = a->tail;

    if (b->tokens == 0)
        return;
    if (a->tokens == 0) {
        *a = *b;
        return;
    }
    if (a->tail.value == b->head.value) {
        run.length += b->head.length;
        offer_run(&a->longest, run);
        if (a->head.length == a->tokens)
            a->head = run;
        a->tail = b->head.length == b->tokens ? run : b->tail;
    } else {
        a->tail = b->tail;
    }
    offer_run(&a->longest, b->longest);
    for (size_t k = 0; k < b->place_count && a->place_count < IRON_STAT_PLACES; k++)
        a->places[a->place_count++] = b->places[k];
    if (b->ends > 0 && a->ends > 0) /* a document began in a, after its first end, and ended in b */
        lengths_add(stat->lengths, a->document_tail + b->document_head, 1);
    else if (b->ends > 0)
        a->document_head = a->document_tail + b->document_head;
    a->document_tail = (b->ends > 0 ? 0 : a->document_tail) + b->document_tail;
    a->ends += b->ends;
    a->tokens += b->tokens;
    a->zeros += b->zeros;
    a->out_of_vocab += b->out_of_vocab;
    a->min = (uint32_t)iron__min(a->min, b->min);
    a->max = (uint32_t)iron__max(a->max, b->max);
}

iron_status iron_stat_append(iron_stat *stat, const iron_stat *next, iron_error *err) {
    uint64_t end = stat->range.first + stat->range.tokens;

    IRON_FAIL_IF(stat->rule.vocab != next->rule.vocab, err, IRON_E_ARG,
                 "statistics of vocabularies %" PRIu64 " and %" PRIu64 " cannot be joined",
                 stat->rule.vocab, next->rule.vocab);
    IRON_FAIL_IF(stat->rule.eos != next->rule.eos, err, IRON_E_ARG,
                 "statistics with different eos tokens cannot be joined; use the same eos");
    IRON_FAIL_IF(stat->own_cut != next->own_cut, err, IRON_E_ARG,
                 "statistics with and without documents cannot be joined; use the same files");
    IRON_FAIL_IF(!stat->histogram != !next->histogram, err, IRON_E_ARG,
                 "statistics with and without a histogram cannot be joined; use the same options");
    IRON_FAIL_IF(next->range.first != end, err, IRON_E_ARG,
                 "a range that begins at %" PRIu64 " does not follow one that ends at %" PRIu64
                 "; append them in order, without gaps",
                 next->range.first, end);
    append_range(stat, &next->range);
    if (stat->lengths)
        lengths_merge(stat->lengths, next->lengths);
    if (stat->own)
        lengths_merge(stat->own, next->own);
    if (stat->histogram)
        for (size_t k = 0; k < stat->rule.vocab; k++)
            stat->histogram[k] += next->histogram[k];
    return IRON_OK;
}

const uint64_t *iron_stat_histogram(const iron_stat *stat, uint64_t *ids) {
    if (ids)
        *ids = stat->histogram ? stat->rule.vocab : 0;
    return stat->histogram;
}

/* The report. */

/* `open` are lengths that are not in the table; `n` counts all documents. */
static void describe_lengths(const stat_lengths *t, const uint64_t *open, size_t opens, uint64_t n,
                             iron_stat_report *report) {
    uint64_t low = lengths_min(t), high = lengths_max(t);

    if (n == 0)
        return;
    for (size_t k = 0; k < opens; k++) {
        low = low == 0 || open[k] < low ? open[k] : low;
        high = iron__max(open[k], high);
    }
    report->documents = n;
    report->document_min = low;
    report->document_max = high;
    report->document_mean = (double)report->tokens / (double)n;
    /* of one document, or of fewer than 20, that is the largest, which is known exactly */
    report->document_median = n == 1 ? high : lengths_at(t, open, opens, n - n / 2);
    report->document_p95 = n < 20 ? high : lengths_at(t, open, opens, n - n / 20);
}

iron_status iron_stat_describe(const iron_stat *stat, iron_stat_report *report, iron_error *err) {
    const stat_range *r = &stat->range;

    IRON_TRY(iron__struct_check(report, sizeof *report, "iron_stat_report", err));
    *report = (iron_stat_report){.struct_size = sizeof *report,
                                 .min = r->tokens ? r->min : 0,
                                 .max = r->max,
                                 .tokens = r->tokens,
                                 .zeros = r->zeros,
                                 .out_of_vocab = r->out_of_vocab,
                                 .place_count = (uint32_t)r->place_count,
                                 .run_length = r->longest.length,
                                 .run_position = r->longest.position,
                                 .run_value = (uint32_t)r->longest.value};
    for (size_t k = 0; k < IRON_STAT_PLACES; k++)
        report->places[k] = (iron_stat_place){r->places[k].position, (uint32_t)r->places[k].value};
    if (stat->lengths) {
        uint64_t open[2]; /* the range's first and last document, which are in no table */
        size_t opens = 0;

        if (r->ends > 0)
            open[opens++] = r->document_head;
        if (r->document_tail > 0)
            open[opens++] = r->document_tail;
        report->document_cut = (iron_bag_cut){IRON_BAG_CUT_EOS, stat->rule.eos};
        describe_lengths(stat->lengths, open, opens, r->ends + (r->document_tail > 0), report);
        report->empty_documents = stat->lengths->counts[1] + (r->document_head == 1);
        report->is_last_open = r->document_tail > 0;
    }
    if (stat->own) { /* rows and documents of the files, which may be empty */
        uint64_t n = 0;

        for (size_t k = 0; k < LENGTHS_COUNTERS; k++)
            n += stat->own->counts[k];
        report->document_cut.kind = stat->own_cut;
        describe_lengths(stat->own, NULL, 0, n, report);
        report->empty_documents = stat->own->counts[0];
    }
    if (stat->histogram) {
        for (size_t k = 0; k < stat->rule.vocab; k++)
            report->used_ids += stat->histogram[k] > 0;
        report->unused_ids = stat->rule.vocab - report->used_ids;
        report->entropy_bits = entropy_bits(stat->histogram, (size_t)stat->rule.vocab);
        report->entropy_limit_bits = log2_of((double)stat->rule.vocab);
    }
    return IRON_OK;
}

/* Computing statistics of a source by all threads.
 *
 * The stream is processed in rounds. In a round the threads take pieces in order
 * (core/thread_pool.h); afterwards the pieces are appended in order. So memory is a round's pieces,
 * however long the stream, and of several bad tokens the first is reported. From files each thread
 * reads its pieces into a small buffer of its own; from a pipe a ring brings slots in order, and a
 * slot is a round.
 *
 * What depends on order goes into the piece. What does not is counted by each worker, over all its
 * pieces. Long documents are rare, so a piece has memory for all that can end inside it: no thread
 * needs a table of all lengths.
 *
 * add_token is the definition, one token at a time. stat_tokens.inc does the same for groups of
 * 16-bit and 32-bit tokens as they are stored; other widths are widened a few thousand at a
 * time. */

/* 256 KiB of 32-bit tokens: in the second-level cache while it is processed. */
#define PIECE_TOKENS    ((size_t)1 << 16)
#define SHORT_DOCUMENTS ((size_t)1 << 12) /* lengths up to here are counted by the worker */
#define PIECE_LONGS     (PIECE_TOKENS / SHORT_DOCUMENTS)

/* Large enough that adding up a group's vectors is little work, small enough that most groups of
 * text hold no end of a document. */
#define GROUP  128u
#define STRIDE 16u /* of a group, where ends of documents are searched for */

#define ROUND_PIECES                                                                               \
    64u /* per thread: some 10 ms of work, compared with microseconds between rounds */
#define ROUND_PIECES_MAX ((size_t)1 << 15) /* 2^31 tokens: 32-bit counters hold a round */

/* The histograms of all threads together have at most so many counters: 2 GiB. Larger vocabularies
 * get fewer threads; they are slow anyway, as their counters do not fit into caches. */
#define COUNTERS_MAX (UINT64_C(1) << 29)

#define SLOTS      4u
#define SLOT_BYTES ((size_t)4 << 20)

typedef struct piece {
    stat_range range;
    uint32_t long_count;
    uint32_t longs[PIECE_LONGS]; /* lengths of documents inside the piece that are not short */
} piece;

/* What a thread has for itself; allocated apart, so that neighbours share no cache line. */
typedef struct worker {
    uint32_t
        *histogram[2];  /* of vocab counters each, NULL without, allocated together; even and odd
                               tokens, so that counting a value twice running does not wait for
                               itself */
    uint64_t run_floor; /* an earlier piece has a run of this length: later ones that are not
                               longer need not be found */
    uint64_t shorts[SHORT_DOCUMENTS + 1]; /* documents inside pieces, by length */
    void *buffer;                         /* of a piece, where tokens come from files */
} worker;

typedef struct workers {
    iron_stat *stat; /* the rounds are appended to it */
    const iron_source *source;
    iron_dtype dtype;
    uint64_t total; /* tokens there will be, as far as that is known */
    uint64_t done;  /* tokens of all rounds so far */
    iron_progress progress;
    void *context;

    iron__thread_pool *pool;
    worker **each;
    size_t worker_count;
    piece *pieces; /* of a round */
    size_t piece_capacity;
    uint64_t uncollected; /* tokens counted by workers: below 2^32, so no counter overflows */

    /* The tokens of the round: */
    iron__parallel_source *at; /* files, from the source's position on, or NULL: */
    const void *tokens;        /* in memory */
    size_t count;
} workers;

/* Pieces. */

typedef struct group_facts {
    uint32_t min, max, zeros;
    uint32_t same; /* tokens that equal the one before them */
    uint32_t ends;
} group_facts;

/* A piece being computed. */
typedef struct builder {
    piece *piece;
    stat_range *range; /* the piece's */
    worker *worker;
    const stat_rule *rule;
    bool has_eos;
    uint64_t run_floor; /* runs up to this length do not matter any more */
} builder;

/* Position of the token `ahead` tokens after those in the range. */
static inline uint64_t position_of(const builder *b, size_t ahead) {
    return b->range->first + b->range->tokens + ahead;
}

static void add_place(builder *b, uint32_t value, size_t ahead) {
    stat_range *r = b->range;

    if (r->place_count < IRON_STAT_PLACES) {
        r->places[r->place_count].position = position_of(b, ahead);
        r->places[r->place_count++].value = value;
    }
    r->out_of_vocab++;
}

static inline void lengthen_run(builder *b, uint64_t by) {
    stat_range *r = b->range;

    /* the first run is still the only one: it begins where the range does and ends here */
    if (r->head.length == r->tail.position + r->tail.length - r->first)
        r->head.length += by;
    r->tail.length += by;
    offer_run(&r->longest, r->tail);
    b->run_floor = iron__max(b->run_floor, r->longest.length);
}

static inline void add_to_run(builder *b, uint32_t value, size_t ahead) {
    stat_range *r = b->range;

    if (value == r->tail.value)
        lengthen_run(b, 1);
    else
        r->tail = (stat_run){1, position_of(b, ahead), value};
}

/* The eos was counted into the tail. */
static inline void end_document(builder *b) {
    stat_range *r = b->range;
    uint64_t length = r->document_tail;

    r->document_tail = 0;
    if (r->ends++ == 0)
        r->document_head = length;
    else if (length <= SHORT_DOCUMENTS)
        b->worker->shorts[length]++;
    else
        b->piece->longs[b->piece->long_count++] = (uint32_t)length;
}

static void add_token(builder *b, uint32_t value) {
    stat_range *r = b->range;

    r->min = value < r->min ? value : r->min;
    r->max = value > r->max ? value : r->max;
    r->zeros += value == 0;
    if (value >= b->rule->vocab)
        add_place(b, value, 0);
    else if (b->worker->histogram[0])
        b->worker->histogram[0][value]++;
    if (r->tokens == 0)
        r->head = r->tail = r->longest = (stat_run){1, r->first, value};
    else
        add_to_run(b, value, 0);
    if (b->has_eos) {
        r->document_tail++;
        if (value == b->rule->eos)
            end_document(b);
    }
    r->tokens++;
}

#define STAT_TOKEN   uint16_t
#define STAT_NAME(x) x##_u16
#include "digest/stat_tokens.inc"
#undef STAT_TOKEN
#undef STAT_NAME

#define STAT_TOKEN   uint32_t
#define STAT_NAME(x) x##_u32
#include "digest/stat_tokens.inc"
#undef STAT_TOKEN
#undef STAT_NAME

/* Computes the piece of these tokens, at most PIECE_TOKENS that all are 0 ... 2^32-1. A worker's
 * pieces come in the stream's order. */
static void compute_piece(piece *p, worker *w, const stat_rule *rule, const iron__tokens_view *view,
                          uint64_t position) {
    builder b = {p, &p->range, w, rule, rule->eos != IRON_COUNT_UNKNOWN, w->run_floor};
    uint32_t wide[IRON_WIDEN_TOKENS];

    p->range = range_at(position);
    p->long_count = 0;
    for (size_t done = 0; done < view->count;) {
        size_t count = view->count - done;

        if (view->dtype == IRON_DTYPE_U16) {
            add_tokens_u16(&b, (const uint16_t *)view->data + done, count);
        } else {
            /* in a statement of its own: it changes count, and arguments have no order */
            const uint32_t *tokens = iron__view_tokens(view, done, &count, wide);

            add_tokens_u32(&b, tokens, count);
        }
        done += count;
    }
    w->run_floor = b.run_floor;
}

static iron_status process_piece(void *context, uint32_t index, uint64_t piece_index,
                                 const atomic_bool *stop, iron_error *err) {
    workers *all = context;
    worker *w = all->each[index];
    size_t begin = (size_t)piece_index * PIECE_TOKENS;
    uint64_t position = all->stat->range.first + all->done + begin;
    iron__tokens_view round = {all->dtype, all->tokens, all->count};
    iron__tokens_view view = {all->dtype, w->buffer, 0};

    if (!all->at)
        view = iron__view_rest(&round, begin);
    view.count = all->count - begin;
    view.count = iron__min_size(view.count, PIECE_TOKENS);
    if (all->at)
        IRON_TRY(iron__parallel_source_read(all->at, position, w->buffer, view.count, stop, err));
    /* a pipe has no places to report, and its position belongs to the reader */
    IRON_TRY(iron__stored_check(all->at ? all->source : NULL,
                                (all->at ? iron__source_position(all->source) : 0) + position,
                                &view, position, err));
    compute_piece(&all->pieces[piece_index], w, &all->stat->rule, &view, position);
    return IRON_OK;
}

/* Rounds. */

static void append_piece(iron_stat *stat, const piece *p) {
    append_range(stat, &p->range);
    for (uint32_t k = 0; k < p->long_count; k++)
        lengths_add(stat->lengths, p->longs[k], 1);
}

/* Adds what the workers have counted to the statistics, and clears it there. */
static void collect_counts(workers *all) {
    iron_stat *stat = all->stat;

    for (size_t k = 0; k < all->worker_count; k++) {
        worker *w = all->each[k];

        for (size_t length = 1; stat->lengths && length <= SHORT_DOCUMENTS; length++)
            lengths_add(stat->lengths, length, w->shorts[length]);
        memset(w->shorts, 0, sizeof w->shorts);
        if (!stat->histogram)
            continue;
        for (size_t id = 0; id < stat->rule.vocab; id++)
            stat->histogram[id] += (uint64_t)w->histogram[0][id] + w->histogram[1][id];
        memset(w->histogram[0], 0, 2 * (size_t)stat->rule.vocab * sizeof(uint32_t));
    }
    all->uncollected = 0;
}

/* Processes the `count` tokens that follow, appends the results and reports progress. */
static iron_status run_round(workers *all, size_t count, iron_error *err) {
    iron__ordered_run run = {
        .count = (count + PIECE_TOKENS - 1) / PIECE_TOKENS, .piece = process_piece, .context = all};

    if (all->uncollected > UINT32_MAX - count)
        collect_counts(all);
    all->count = count;
    IRON_TRY(iron__thread_pool_run_ordered(all->pool, &run, err));
    for (size_t k = 0; k < run.count; k++)
        append_piece(all->stat, &all->pieces[k]);
    all->uncollected += count;
    all->done += count;
    return iron__progress(all->progress, all->context, all->done, all->total, err);
}

/* Starts threads and allocates memory for workers whose first fields are set. To be deinitialised
 * whatever this returns. threads 0: every CPU. */
static iron_status workers_init(workers *all, uint32_t threads, bool reads_files, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    uint64_t pieces = all->total / PIECE_TOKENS + 1;
    /* its caller has made stat: NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    size_t vocab = (size_t)all->stat->rule.vocab, histograms = COUNTERS_MAX / (2 * vocab) + 1;
    size_t count = threads ? threads : iron__cpu_threads();

    /* no more threads than there are pieces, or than may have a histogram */
    count = count < IRON_THREADS_MAX ? count : IRON_THREADS_MAX;
    count = count < pieces ? count : (size_t)pieces;
    count = all->stat->histogram && histograms < count ? histograms : count;
    all->piece_capacity = count * ROUND_PIECES;
    all->piece_capacity = iron__min_size(all->piece_capacity, ROUND_PIECES_MAX);
    if (all->piece_capacity < SLOT_BYTES / PIECE_TOKENS)
        all->piece_capacity = SLOT_BYTES / PIECE_TOKENS; /* a slot of 8-bit tokens */
    IRON_TRY(iron__thread_pool_create((uint32_t)count, memory, &all->pool, err));
    IRON_TRY(IRON_ALLOCATE(&all->pieces, memory, all->piece_capacity, "a round's pieces", err));
    IRON_TRY(IRON_ALLOCATE(&all->each, memory, count, "a list of threads", err));
    for (; all->worker_count < count; all->worker_count++) {
        worker *w;

        IRON_TRY(IRON_ALLOCATE(&w, memory, 1, "a thread's statistics", err));
        all->each[all->worker_count] = w;
        if (reads_files)
            IRON_TRY(iron__allocate_at((iron__array *)&w->buffer, memory, PIECE_TOKENS,
                                       iron_dtype_bytes(all->dtype), "a reading buffer", err));
        if (all->stat->histogram) {
            IRON_TRY(IRON_ALLOCATE(&w->histogram[0], memory, 2 * vocab, "a histogram", err));
            w->histogram[1] = w->histogram[0] + vocab;
        }
    }
    return IRON_OK;
}

static void workers_deinit(workers *all) {
    const iron_allocator *memory = iron__allocator_default();

    for (size_t k = 0; all->each && k < iron__thread_pool_threads(all->pool); k++) {
        if (!all->each[k])
            continue;
        iron__release(memory, all->each[k]->buffer);
        iron__release(memory, all->each[k]->histogram[0]);
        iron__release(memory, all->each[k]);
    }
    iron__release(memory, all->each);
    iron__release(memory, all->pieces);
    iron__thread_pool_destroy(all->pool);
}

/* Sources. */

static iron_status stat_files(workers *all, iron_source *source, iron_error *err) {
    size_t most = all->piece_capacity * PIECE_TOKENS;
    iron_status status =
        iron__parallel_source_open(source, iron__allocator_default(), &all->at, err);

    while (status == IRON_OK && all->done < all->total)
        status = run_round(all, iron__min_size(most, all->total - all->done), err);
    iron__parallel_source_close(all->at);
    if (status == IRON_OK)
        iron__source_seek(source,
                          iron__source_position(source) + all->stat->range.first + all->total);
    return status;
}

/* The range may end before the stream does. */
static iron_status stat_slots(workers *all, iron__ring *ring, iron_error *err) {
    uint64_t wanted = all->total;

    while (all->done < wanted) {
        size_t slot, count;

        IRON_TRY(iron__ring_next(ring, &slot, &count, err));
        if (count == 0)
            break;
        count = iron__min_size(count, wanted - all->done);
        all->tokens = iron__ring_slot(ring, slot);
        IRON_TRY(run_round(all, count, err));
        iron__ring_free(ring);
    }
    IRON_FAIL_IF(wanted != IRON_COUNT_UNKNOWN && all->done < wanted, err, IRON_E_ARG,
                 "the stream has %" PRIu64 " tokens, not the %" PRIu64 " of the range", all->done,
                 wanted);
    return IRON_OK;
}

/* Rows of a stream that is read in order: where they begin becomes known while it is read. A row
 * ends where the next one begins. */
typedef struct pipe_rows {
    iron_source *source;
    stat_lengths *lengths;
    iron__block starts; /* of what was just read */
    bool has_last;      /* the row that began last, */
    uint64_t last;      /* and where */
    iron_status status;
    iron_error error;
} pipe_rows;

/* Called by the ring's reader. */
static void note_rows(void *context, const iron__ring_piece *read) {
    pipe_rows *rows = context;

    (void)read;
    rows->starts.place_count = 0;
    if (rows->status == IRON_OK)
        rows->status = iron__source_take_starts(rows->source, &rows->starts, &rows->error);
    for (size_t k = 0; rows->status == IRON_OK && k < rows->starts.place_count; k++) {
        if (rows->has_last)
            lengths_add(rows->lengths, rows->starts.places[k] - rows->last, 1);
        rows->last = rows->starts.places[k];
        rows->has_last = true;
    }
}

/* What all files are cut into, if that is wanted: without an eos. */
static iron_bag_cut_kind own_cut(const iron_stat *stat, const iron_source *source) {
    iron_bag_cut cut = {IRON_BAG_CUT_NONE, 0};

    if (stat->rule.eos == IRON_COUNT_UNKNOWN)
        (void)iron_bag_source_cut(source, &cut, NULL);
    return cut.kind;
}

static iron_status stat_pipe(workers *all, iron_source *source, iron_error *err) {
    pipe_rows rows = {.source = source};
    iron__ring_options options = {.source = source,
                                  .shape = {1, SLOTS, SLOT_BYTES, 0, IRON_DIRECT_NEVER},
                                  .allocator = iron__allocator_default(),
                                  .context = &rows};
    iron__ring *ring = NULL;
    iron_status status;

    if (all->total == iron_source_tokens(source) &&
        own_cut(all->stat, source) == IRON_BAG_CUT_ROWS && iron__source_tells_starts(source)) {
        IRON_TRY(begin_own(all->stat, IRON_BAG_CUT_ROWS, err));
        rows.lengths = all->stat->own;
        iron__source_note_starts(source);
        options.filled = note_rows;
    }
    status = iron__ring_create(&options, &ring, err);
    if (status == IRON_OK)
        status = stat_slots(all, ring, err);
    iron__ring_destroy(ring);
    if (status == IRON_OK && rows.status != IRON_OK)
        status = iron__fail_again(err, &rows.error);
    if (status == IRON_OK && rows.has_last)
        lengths_add(rows.lengths, all->done - rows.last, 1);
    iron__block_clear(&rows.starts);
    return status;
}

/* Rows and documents of files.
 *
 * Where they begin is known without the tokens (formats/documents.c). All threads walk through
 * pieces of the range; a piece has the documents that begin in it. */

#define WALK_TOKENS  (UINT64_C(1) << 22)
#define WALK_LENGTHS 1024u

typedef struct own_walk {
    const iron_source *source;
    stat_lengths *lengths;
    pthread_mutex_t mutex; /* of the lengths */
    uint64_t first, end;   /* the range */
    uint64_t *starts;      /* of files, and the end of the last */
    iron__document_walk *threads;
} own_walk;

/* Lengths that a thread has found and not added yet. */
typedef struct found_lengths {
    own_walk *walk;
    size_t count;
    uint64_t lengths[WALK_LENGTHS];
} found_lengths;

static void add_found(found_lengths *f) {
    pthread_mutex_lock(&f->walk->mutex);
    for (size_t k = 0; k < f->count; k++)
        lengths_add(f->walk->lengths, f->lengths[k], 1);
    pthread_mutex_unlock(&f->walk->mutex);
    f->count = 0;
}

static iron_status note_document(void *context, uint64_t first, uint64_t end, iron_error *err) {
    found_lengths *f = context;

    (void)err;
    if (f->count == WALK_LENGTHS)
        add_found(f);
    f->lengths[f->count++] = end - first;
    return IRON_OK;
}

static iron_status walk_piece(void *context, uint32_t thread, uint64_t index,
                              const atomic_bool *stop, iron_error *err) {
    own_walk *w = context;
    uint64_t first = w->first + index * WALK_TOKENS;
    uint64_t end = first + iron__min(WALK_TOKENS, w->end - first);
    found_lengths found = {.walk = w};
    iron_status status = iron__document_walk_range(&w->threads[thread], w->source, w->starts, first,
                                                   end, note_document, &found, stop, err);

    add_found(&found);
    return status;
}

/* Counts the rows or documents that begin in the range, if all files have them. */
static iron_status stat_own(workers *all, iron_source *source, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    uint32_t threads = iron__thread_pool_threads(all->pool);
    iron_stat *stat = all->stat;
    own_walk w = {
        .source = source, .first = stat->range.first, .end = stat->range.first + all->total};
    const iron__ordered_run run = {
        .count = (all->total + WALK_TOKENS - 1) / WALK_TOKENS, .piece = walk_piece, .context = &w};
    iron_bag_cut_kind cut = own_cut(stat, source);
    iron_status status;

    if (cut == IRON_BAG_CUT_NONE)
        return IRON_OK;
    IRON_TRY(begin_own(stat, cut, err));
    w.lengths = stat->own;
    w.starts = iron__file_starts(source, err);
    if (!w.starts)
        return IRON_E_NOMEM;
    w.threads = iron__allocate(memory, threads, sizeof *w.threads, "documents", err);
    pthread_mutex_init(&w.mutex, NULL);
    lengths_add(w.lengths, 0,
                iron__documents_without_tokens(source, w.starts, w.first, w.end,
                                               w.end == w.starts[iron_source_file_count(source)]));
    status = w.threads ? iron__thread_pool_run_ordered(all->pool, &run, err) : IRON_E_NOMEM;
    for (uint32_t k = 0; w.threads && k < threads; k++)
        iron_documents_close(w.threads[k].documents);
    pthread_mutex_destroy(&w.mutex);
    iron__release(memory, w.threads);
    free(w.starts);
    return status;
}

void iron_stat_options_init_sized(iron_stat_options *options, size_t struct_size) {
    const iron_stat_options defaults = {
        .vocab = 50257, .eos = IRON_COUNT_UNKNOWN, .count = IRON_COUNT_UNKNOWN};

    iron__struct_init(options, struct_size, &defaults, sizeof defaults);
}

iron_status iron_stat_source(iron_source *source, const iron_stat_options *options, iron_stat **out,
                             iron_error *err) {
    bool is_file = iron__source_is_seekable(source);
    workers all = {.source = source, .dtype = iron_source_dtype(source)};
    uint64_t tokens = iron_source_tokens(source);
    const iron_stat_options *o = options;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__struct_check(o, sizeof *o, "iron_stat_options", err));
    IRON_FAIL_IF(o->first % 4 != 0, err, IRON_E_ARG,
                 "first is %" PRIu64 "; ranges begin at multiples of 4", o->first);
    IRON_FAIL_IF(!is_file && o->first != 0, err, IRON_E_ARG,
                 "first is %" PRIu64 "; a pipe can only be read from 0", o->first);
    if (is_file)
        tokens -= iron__source_position(source);
    IRON_FAIL_IF(
        tokens != IRON_COUNT_UNKNOWN &&
            (o->first > tokens || (o->count != IRON_COUNT_UNKNOWN && o->count > tokens - o->first)),
        err, IRON_E_ARG, "a range from %" PRIu64 " on is not inside a stream of %" PRIu64 " tokens",
        o->first, tokens);
    all.total = o->count;
    if (all.total == IRON_COUNT_UNKNOWN && tokens != IRON_COUNT_UNKNOWN)
        all.total = tokens - o->first;
    all.progress = o->progress;
    all.context = o->context;
    IRON_TRY(
        stat_create(&(stat_rule){o->vocab, o->eos}, o->wants_histogram, o->first, &all.stat, err));
    status = workers_init(&all, o->threads, is_file, err);
    if (status == IRON_OK)
        status = (is_file ? stat_files : stat_pipe)(&all, source, err);
    if (status == IRON_OK && is_file)
        status = stat_own(&all, source, err);
    if (status == IRON_OK)
        status = iron__source_check_unchanged(source, err);
    if (status == IRON_OK)
        collect_counts(&all);
    workers_deinit(&all);
    if (status == IRON_OK)
        *out = all.stat;
    else
        iron_stat_destroy(all.stat);
    return status;
}

/* Statistics as 64-bit words, for other processes on the same kind of machine.
 *
 *     signature  flags  vocab  eos  range ...  [n  counter count  counter count ...  longer_min
 *     longer_max]  [the same of rows or documents]  [histogram: vocab words]  checksum
 *
 * Of the table of lengths only the counters that are not 0 are written, in ascending order. The
 * checksum is over everything before it. Fields that contradict each other are refused too, since
 * the words may come from anywhere. */

#define SIGNATURE     UINT64_C(0x3154415453524E49) /* "INRSTAT1" where the low byte is first */
#define HAS_HISTOGRAM UINT64_C(1)
#define HAS_ROWS      UINT64_C(2)
#define HAS_DOCUMENTS UINT64_C(4)
#define HEADER_WORDS  4u
#define RANGE_WORDS   (sizeof(stat_range) / sizeof(uint64_t))

_Static_assert(RANGE_WORDS == 18 + 2 * IRON_STAT_PLACES, "a range has no padding");

/* Words being written, or only counted where there is no memory for them. */
typedef struct word_writer {
    uint64_t *words;
    size_t capacity, count;
} word_writer;

static void put(word_writer *w, const void *values, size_t count) {
    for (size_t k = 0; k < count; k++, w->count++)
        if (w->count < w->capacity)
            memcpy(w->words + w->count, (const uint64_t *)values + k, sizeof *w->words);
}

static void put_lengths(word_writer *w, const stat_lengths *t) {
    uint64_t used = 0;

    for (size_t k = 0; k < LENGTHS_COUNTERS; k++)
        used += t->counts[k] > 0;
    put(w, &used, 1);
    for (size_t k = 0; k < LENGTHS_COUNTERS; k++)
        if (t->counts[k] > 0)
            put(w, (uint64_t[]){k, t->counts[k]}, 2);
    put(w, (uint64_t[]){t->longer_min, t->longer_max}, 2);
}

size_t iron_stat_words(const iron_stat *stat, uint64_t *words, size_t capacity) {
    word_writer w = {.words = words, .capacity = words ? capacity : 0};
    uint64_t flags = (stat->histogram ? HAS_HISTOGRAM : 0) |
                     (stat->own_cut == IRON_BAG_CUT_ROWS ? HAS_ROWS : 0) |
                     (stat->own_cut == IRON_BAG_CUT_DOCUMENTS ? HAS_DOCUMENTS : 0);
    uint64_t checksum = 0;

    put(&w, (uint64_t[]){SIGNATURE, flags, stat->rule.vocab, stat->rule.eos}, HEADER_WORDS);
    put(&w, &stat->range, RANGE_WORDS);
    if (stat->lengths)
        put_lengths(&w, stat->lengths);
    if (stat->own)
        put_lengths(&w, stat->own);
    if (stat->histogram)
        put(&w, stat->histogram, (size_t)stat->rule.vocab);
    if (w.count < w.capacity)
        checksum = iron__fnv(IRON_FNV_START, words, w.count * sizeof *words);
    put(&w, &checksum, 1);
    return w.count;
}

/* Words being read: past the end they are zeros, and is_valid becomes false. */
typedef struct word_reader {
    const uint64_t *words;
    size_t capacity, count;
    bool is_valid;
} word_reader;

static uint64_t get(word_reader *r) {
    if (r->count < r->capacity)
        return r->words[r->count++];
    r->is_valid = false;
    return 0;
}

/* Adds; beyond 2^64 the words are not valid. */
static uint64_t add_checked(word_reader *r, uint64_t sum, uint64_t more) {
    r->is_valid = r->is_valid && more <= UINT64_MAX - sum;
    return sum + more;
}

static bool are_places_valid(const stat_range *r, uint64_t vocab) {
    uint64_t next = r->first;

    if (r->place_count != iron__min(r->out_of_vocab, IRON_STAT_PLACES) ||
        (r->out_of_vocab > 0) != (r->max >= vocab))
        return false;
    for (size_t k = 0; k < r->place_count; k++) {
        uint64_t position = r->places[k].position, value = r->places[k].value;

        if (position < next || position - r->first >= r->tokens || value < vocab || value > r->max)
            return false;
        next = position + 1;
    }
    return true;
}

static bool are_runs_valid(const stat_range *r) {
    const stat_run *runs[] = {&r->head, &r->tail, &r->longest};

    for (size_t k = 0; k < sizeof runs / sizeof runs[0]; k++) {
        const stat_run *run = runs[k];

        if (run->length == 0 || run->length > r->tokens || run->position < r->first ||
            run->position - r->first > r->tokens - run->length || run->value < r->min ||
            run->value > r->max || run->length > r->longest.length)
            return false;
    }
    return r->head.position == r->first &&
           r->tail.position - r->first == r->tokens - r->tail.length;
}

static bool are_documents_valid(const stat_range *r, bool has_eos) {
    if (!has_eos)
        return r->ends == 0 && r->document_head == 0 && r->document_tail == 0;
    if (r->ends == 0)
        return r->document_head == 0 && r->document_tail == r->tokens;
    /* each document inside has at least one token */
    return r->document_head > 0 && r->document_head <= r->tokens &&
           r->document_tail <= r->tokens - r->document_head &&
           r->ends - 1 <= r->tokens - r->document_head - r->document_tail;
}

/* Is this a range that tokens can have? false: the fields contradict each other. */
static bool is_range_valid(const stat_range *r, uint64_t vocab, bool has_eos) {
    stat_range none = range_at(r->first);

    if (r->tokens == 0)
        return memcmp(r, &none, sizeof none) == 0;
    return r->tokens <= UINT64_MAX - r->first && r->min <= r->max && r->zeros <= r->tokens &&
           (r->zeros > 0) == (r->min == 0) && r->out_of_vocab <= r->tokens &&
           are_places_valid(r, vocab) && are_runs_valid(r) && are_documents_valid(r, has_eos);
}

/* Reads counters from `lowest` on; returns how many documents there are. */
static uint64_t get_table(word_reader *r, stat_lengths *t, uint64_t lowest) {
    uint64_t used = get(r), documents = 0, next = lowest;

    for (uint64_t k = 0; k < used && r->is_valid; k++) {
        uint64_t counter = get(r), count = get(r);

        r->is_valid = r->is_valid && counter >= next && counter < LENGTHS_COUNTERS && count;
        if (!r->is_valid)
            return 0;
        t->counts[counter] = count;
        documents = add_checked(r, documents, count);
        next = counter + 1;
    }
    t->longer_min = get(r);
    t->longer_max = get(r);
    r->is_valid = r->is_valid && (next > LENGTHS_EXACT + 1) == (t->longer_max > 0) &&
                  t->longer_min <= t->longer_max &&
                  (t->longer_max == 0 || t->longer_min > LENGTHS_EXACT);
    return documents;
}

iron_status iron_stat_from_words(const uint64_t *words, size_t count, iron_stat **out,
                                 iron_error *err) {
    word_reader r = {words, count - 1, HEADER_WORDS + RANGE_WORDS, false};
    iron_stat *s = NULL;

    *out = NULL;
    IRON_FAIL_IF(count < HEADER_WORDS + RANGE_WORDS + 1 || words[0] != SIGNATURE, err,
                 IRON_E_FORMAT, "%zu words are not statistics of this version of iron", count);
    IRON_FAIL_IF(iron__fnv(IRON_FNV_START, words, (count - 1) * sizeof *words) != words[count - 1],
                 err, IRON_E_FORMAT, "statistics of %zu words are damaged: wrong checksum", count);
    /* checked before memory is allocated for it */
    IRON_FAIL_IF(words[1] > (HAS_HISTOGRAM | HAS_DOCUMENTS) ||
                     (words[1] > HAS_HISTOGRAM && words[3] != IRON_COUNT_UNKNOWN) ||
                     (words[1] & HAS_HISTOGRAM && words[2] > count),
                 err, IRON_E_FORMAT, "statistics of %zu words are too short for their histogram",
                 count);
    IRON_TRY(stat_create(&(stat_rule){words[2], words[3]}, words[1] & HAS_HISTOGRAM, 0, &s, err));
    assert(s);
    memcpy(&s->range, words + HEADER_WORDS, sizeof s->range);
    r.is_valid = is_range_valid(&s->range, s->rule.vocab, s->lengths);
    if (s->lengths && r.is_valid) {
        /* Documents fill the range: those inside, the first and the last. */
        uint64_t documents = get_table(&r, s->lengths, 1);
        uint64_t inside = s->range.tokens - s->range.document_head - s->range.document_tail;
        uint64_t tokens = lengths_tokens(s->lengths); /* at least */

        r.is_valid = r.is_valid && documents == (s->range.ends ? s->range.ends - 1 : 0) &&
                     (s->lengths->longer_max == 0 ? tokens == inside : tokens <= inside);
    }
    if (words[1] > HAS_HISTOGRAM && r.is_valid) {
        if (begin_own(s, words[1] & HAS_ROWS ? IRON_BAG_CUT_ROWS : IRON_BAG_CUT_DOCUMENTS, err) !=
            IRON_OK) {
            iron_stat_destroy(s);
            return IRON_E_NOMEM;
        }
        get_table(&r, s->own, 0); /* where they end is not known here: any lengths */
    }
    if (s->histogram) {
        uint64_t tokens = 0;

        for (size_t k = 0; k < s->rule.vocab && r.is_valid; k++) {
            s->histogram[k] = get(&r);
            tokens = add_checked(&r, tokens, s->histogram[k]);
        }
        r.is_valid = r.is_valid && tokens == s->range.tokens - s->range.out_of_vocab &&
                     s->histogram[0] == s->range.zeros;
    }
    if (!r.is_valid || r.count != r.capacity) {
        iron_stat_destroy(s);
        IRON_FAIL(err, IRON_E_FORMAT, "statistics of %zu words contradict each other", count);
    }
    *out = s;
    return IRON_OK;
}
