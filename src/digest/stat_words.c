/* SPDX-License-Identifier: MIT */
/*
 * stat_words.c: statistics as 64-bit words, for other processes of the same kind of machine.
 *
 *     mark  flags  vocab  eos  range ...  [n  counter count  counter count ...  longer_min
 *     longer_max]  [histogram: vocab words]  checksum
 *
 * Of the table of lengths the counters that are not 0, in ascending order. The checksum is over
 * everything before it; beyond that, fields that contradict each other are refused: what comes in
 * may have been made by anybody.
 */
#include "core/fail.h"
#include "core/fnv.h"
#include "digest/stat.h"

#include <inttypes.h>
#include <string.h>

#define MARK          UINT64_C(0x3154415453524E49) /* "INRSTAT1" where the low byte is first */
#define HAS_HISTOGRAM UINT64_C(1)
#define HEAD_WORDS    4u
#define RANGE_WORDS   (18u + 2u * IRON_STAT_PLACES)

/* Words being written, or only counted where there is no room. */
typedef struct word_writer {
    uint64_t *words;
    size_t room, count;
} word_writer;

static void put(word_writer *w, uint64_t value) {
    if (w->count < w->room)
        w->words[w->count] = value;
    w->count++;
}

static void put_run(word_writer *w, const iron__stat_run *run) {
    put(w, run->length);
    put(w, run->position);
    put(w, run->value);
}

static void put_range(word_writer *w, const iron__stat_range *r) {
    put(w, r->first);
    put(w, r->tokens);
    put(w, r->zeros);
    put(w, r->out_of_vocab);
    put(w, (uint64_t)r->max << 32 | r->min);
    put(w, r->place_count);
    for (size_t k = 0; k < IRON_STAT_PLACES; k++) {
        put(w, k < r->place_count ? r->places[k].position : 0);
        put(w, k < r->place_count ? r->places[k].value : 0);
    }
    put_run(w, &r->head);
    put_run(w, &r->tail);
    put_run(w, &r->longest);
    put(w, r->ends);
    put(w, r->document_head);
    put(w, r->document_tail);
}

static void put_lengths(word_writer *w, const iron__stat_lengths *t) {
    uint64_t used = 0;

    for (size_t k = 0; k < IRON_LENGTHS_COUNTERS; k++)
        used += t->counts[k] > 0;
    put(w, used);
    for (size_t k = 0; k < IRON_LENGTHS_COUNTERS; k++) {
        if (t->counts[k] == 0)
            continue;
        put(w, k);
        put(w, t->counts[k]);
    }
    put(w, t->longer_min);
    put(w, t->longer_max);
}

size_t iron_stat_words(const iron_stat *stat, uint64_t *words, size_t room) {
    word_writer w = {words, words ? room : 0, 0};

    put(&w, MARK);
    put(&w, stat->histogram ? HAS_HISTOGRAM : 0);
    put(&w, stat->rule.vocab);
    put(&w, stat->rule.eos);
    put_range(&w, &stat->range);
    if (stat->lengths)
        put_lengths(&w, stat->lengths);
    if (stat->histogram)
        for (size_t k = 0; k < stat->rule.vocab; k++)
            put(&w, stat->histogram[k]);
    put(&w, w.count < w.room ? iron__fnv(IRON_FNV_START, words, w.count * sizeof *words) : 0);
    return w.count;
}

/* Words being read; past the end there are zeros, and the reader knows. */
typedef struct word_reader {
    const uint64_t *words;
    size_t count, at;
    bool is_sound;
} word_reader;

static uint64_t get(word_reader *r) {
    if (r->at < r->count)
        return r->words[r->at++];
    r->is_sound = false;
    return 0;
}

static uint32_t get_u32(word_reader *r) {
    uint64_t value = get(r);

    r->is_sound = r->is_sound && value <= UINT32_MAX;
    return (uint32_t)value;
}

static iron__stat_run get_run(word_reader *r) {
    iron__stat_run run;

    run.length = get(r);
    run.position = get(r);
    run.value = get_u32(r);
    return run;
}

static iron__stat_range get_range(word_reader *r) {
    iron__stat_range range = {.first = get(r)};
    uint64_t extremes;

    range.tokens = get(r);
    range.zeros = get(r);
    range.out_of_vocab = get(r);
    extremes = get(r);
    range.min = (uint32_t)extremes;
    range.max = (uint32_t)(extremes >> 32);
    range.place_count = get_u32(r);
    for (size_t k = 0; k < IRON_STAT_PLACES; k++) {
        range.places[k].position = get(r);
        range.places[k].value = get_u32(r);
    }
    range.head = get_run(r);
    range.tail = get_run(r);
    range.longest = get_run(r);
    range.ends = get(r);
    range.document_head = get(r);
    range.document_tail = get(r);
    return range;
}

/* Adds up without passing 2^64. */
static uint64_t add_sound(word_reader *r, uint64_t sum, uint64_t more) {
    r->is_sound = r->is_sound && more <= UINT64_MAX - sum;
    return sum + more;
}

/* Documents fill the range: those inside, the first and the last. */
static bool are_lengths_sound(const iron__stat_lengths *t, const iron__stat_range *range) {
    uint64_t inside = range->tokens - range->document_head - range->document_tail;
    uint64_t tokens = iron__stat_lengths_tokens(t);

    if (t->longer_max == 0)
        return t->longer_min == 0 && tokens == inside;
    return t->longer_min > IRON_LENGTHS_EXACT && t->longer_min <= t->longer_max && tokens <= inside;
}

static void get_lengths(word_reader *r, iron__stat_lengths *t, const iron__stat_range *range) {
    uint64_t used = get(r), documents = 0, before = 0;

    for (uint64_t k = 0; k < used && r->is_sound; k++) {
        uint64_t counter = get(r), count = get(r);

        r->is_sound = r->is_sound && counter > before && counter < IRON_LENGTHS_COUNTERS && count;
        if (!r->is_sound)
            return;
        t->counts[counter] = count;
        documents = add_sound(r, documents, count);
        before = counter;
    }
    t->longer_min = get(r);
    t->longer_max = get(r);
    r->is_sound = r->is_sound && documents == (range->ends ? range->ends - 1 : 0) &&
                  (before > IRON_LENGTHS_EXACT) == (t->longer_max > 0) &&
                  are_lengths_sound(t, range);
}

static void get_histogram(word_reader *r, iron_stat *stat) {
    uint64_t tokens = 0;

    for (size_t k = 0; k < stat->rule.vocab && r->is_sound; k++) {
        stat->histogram[k] = get(r);
        tokens = add_sound(r, tokens, stat->histogram[k]);
    }
    r->is_sound = r->is_sound && tokens == stat->range.tokens - stat->range.out_of_vocab &&
                  (stat->histogram[0] == stat->range.zeros);
}

static iron_status check_frame(const uint64_t *words, size_t count, iron_error *err) {
    IRON_FAIL_IF(count < HEAD_WORDS + RANGE_WORDS + 1 || words[0] != MARK, err, IRON_E_FORMAT,
                 "%zu words are no statistics of this version of iron", count);
    IRON_FAIL_IF(iron__fnv(IRON_FNV_START, words, (count - 1) * sizeof *words) != words[count - 1],
                 err, IRON_E_FORMAT, "statistics of %zu words are damaged: wrong checksum", count);
    /* checked before memory is taken for it */
    IRON_FAIL_IF(words[1] > HAS_HISTOGRAM || (words[1] == HAS_HISTOGRAM && words[2] > count), err,
                 IRON_E_FORMAT, "statistics of %zu words are too short for their histogram", count);
    return IRON_OK;
}

static void get_all(word_reader *r, iron_stat *s) {
    s->range = get_range(r);
    r->is_sound = r->is_sound && iron__stat_range_is_sound(&s->range, s->rule.vocab, s->lengths);
    if (s->lengths && r->is_sound)
        get_lengths(r, s->lengths, &s->range);
    if (s->histogram && r->is_sound)
        get_histogram(r, s);
    r->is_sound = r->is_sound && r->at == r->count;
}

iron_status iron_stat_from_words(const uint64_t *words, size_t count, iron_stat **out,
                                 iron_error *err) {
    word_reader r = {words, count - 1, HEAD_WORDS, true};
    iron_stat *s = NULL;

    *out = NULL;
    IRON_TRY(check_frame(words, count, err));
    IRON_TRY(iron__stat_create(&(iron__stat_rule){words[2], words[3]}, words[1] == HAS_HISTOGRAM, 0,
                               &s, err));
    get_all(&r, s);
    if (!r.is_sound) {
        iron_stat_destroy(s);
        IRON_FAIL(err, IRON_E_FORMAT, "statistics of %zu words contradict themselves", count);
    }
    *out = s;
    return IRON_OK;
}
