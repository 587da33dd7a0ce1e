/* SPDX-License-Identifier: MIT */
/*
 * check.c: what is wrong within one run.
 *
 * Steps that repeat a step or another rank are found by their bags, which are sorted. Repeated
 * samples are found in hash tables, each of which takes the samples whose hash lies in one part of
 * the range, and is filled from the mapped ledgers; so memory is bounded, and threads share
 * nothing. A first pass finds the hashes that occur twice, which are few in a good run; only if
 * there are any, a second pass finds where. Samples of steps that are already known to be repeated
 * are left out. The rest is one walk over the records in the order of their steps.
 */
#include "ledger/ledger_internal.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/seal.h"
#include "core/thread_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Hashes that are looked up together, so that their cache misses overlap. */
#define TOGETHER 32u

const char *iron_ledger_kind_name(iron_ledger_kind kind) {
#define KIND_NAME(name, text) text,
    static const char *const names[] = {IRON_LEDGER_KIND_MAP(KIND_NAME)};
#undef KIND_NAME

    return (size_t)kind < IRON_LEDGER_KINDS ? names[kind] : "unknown";
}

void iron_ledger_check_options_init_sized(iron_ledger_check_options *options, size_t struct_size) {
    const iron_ledger_check_options defaults = {
        .struct_size = (uint32_t)struct_size, .memory = UINT64_C(1) << 30, .limit = 10000};

    iron__struct_init(options, struct_size, &defaults, sizeof defaults);
}

/* A unit: the records of a step and rank, and what they repeat. */
typedef struct unit_mark {
    size_t entry;                      /* its first record; the next unit's begins where it ends */
    uint64_t first;                    /* entry that it repeats as a whole, + 1; 0: none */
    atomic_uint_fast64_t first_sample; /* the earliest entry that one of its samples repeats, + 1 */
    atomic_uint_fast32_t samples;      /* how many of them do */
    uint32_t is_same_step;             /* `first` is of the same step on another rank */
} unit_mark;

typedef struct check {
    const iron_ledgers *ledgers;
    const iron_ledger_check_options *options;
    iron_ledger_findings *findings;
    size_t capacity;
    unit_mark *units; /* and one more, where the last one ends */
    size_t unit_count;
} check;

/* Findings. */

static iron_status add(check *c, iron_ledger_kind kind, uint32_t rank, uint32_t first_rank,
                       uint64_t step, uint64_t first_step, uint64_t count, iron_error *err) {
    iron_ledger_findings *to = c->findings;

    to->total++;
    if (to->totals[kind]++ >= c->options->limit)
        return IRON_OK;
    if (!IRON_ARRAY_GROW(&to->list, to->count, &c->capacity))
        return iron__no_memory(err, "findings");
    to->list[to->count++] = (iron_ledger_finding){kind, rank, first_rank, step, first_step, count};
    return IRON_OK;
}

static int compare_findings(const void *a, const void *b) {
    const iron_ledger_finding *x = a, *y = b;

#define BY(member)                                                                                 \
    if (x->member != y->member)                                                                    \
    return x->member < y->member ? -1 : 1
    BY(step);
    BY(rank);
    BY(kind);
    BY(first_step);
    BY(first_rank);
#undef BY
    return 0;
}

void iron_ledger_findings_deinit(iron_ledger_findings *findings) {
    free(findings->list);
    *findings = (iron_ledger_findings){.list = NULL};
}

/* Steps that are missing, conflict, or end in a torn record. */

static iron_status find_missing(check *c, iron_error *err) {
    const iron_ledgers *l = c->ledgers;
    size_t *next; /* of each rank: its last record, + 1 */
    iron_status status = IRON_NEW(&next, l->file_count, "the ranks of a run", err);

    for (size_t k = 0; status == IRON_OK && k < l->count; k++) {
        const iron__ledger_entry *e = &l->entries[k];
        const iron__ledger_entry *before = next[e->file] ? &l->entries[next[e->file] - 1] : e;
        uint64_t expected = before->step + 1;
        uint32_t rank = l->files[e->file].info.rank;

        /* the rank goes on in another generation: those between, without it, have taken steps */
        for (uint32_t g = before->generation + 1; g < e->generation; g++) {
            const iron__ledger_generation *between = &l->generations[g];
            uint64_t end =
                between->last_step < between->limit ? between->last_step + 1 : between->limit;

            if (between->world <= rank && between->first_step <= expected && end > expected)
                expected = end;
        }
        if (before != e && e->step > expected)
            status = add(c, IRON_LEDGER_MISSING_STEP, rank, rank, expected, expected,
                         e->step - expected, err);
        next[e->file] = k + 1;
    }
    free(next);
    return status;
}

static iron_status find_cut_off(check *c, iron_error *err) {
    const iron_ledgers *l = c->ledgers;

    for (size_t k = 0; k < l->file_count; k++) {
        const iron__ledger_file *f = &l->files[k];

        if (f->info.torn == 0 || f->parts[f->part_count - 1].generation + 1 < l->generation_count)
            continue;
        IRON_TRY(add(c, IRON_LEDGER_CUT_OFF, f->info.rank, f->info.rank, f->info.last_step,
                     f->info.last_step, f->info.torn, err));
    }
    return IRON_OK;
}

/* Whether two records, or sets of micro steps, have the same tokens. Micro steps that were divided
 * differently are compared as bags. */
static bool are_same_tokens(const iron_ledgers *l, const iron__ledger_entry *x, size_t x_count,
                            const iron__ledger_entry *y, size_t y_count) {
    iron_bag x_bag, y_bag;

    for (size_t k = 0; x_count == y_count && k < x_count && x[k].micro == y[k].micro; k++) {
        iron__ledger_step s = iron__ledger_read(l, &x[k]), t = iron__ledger_read(l, &y[k]);

        if (s.tokens != t.tokens || s.seal[0] != t.seal[0] || s.seal[1] != t.seal[1])
            return false;
        if (k + 1 == x_count)
            return true;
    }
    x_bag = iron__ledger_bag(l, x, 0, x_count);
    y_bag = iron__ledger_bag(l, y, 0, y_count);
    return iron__ledger_bags_equal(&x_bag, &y_bag);
}

/* How many units there are among these entries; in one step: how many ranks have a record. */
static size_t count_units(const iron__ledger_entry *e, size_t count) {
    size_t units = 0;

    for (size_t k = 0; k < count; k = iron__ledger_unit_end(e, k, count))
        units++;
    return units;
}

static iron_status add_conflict(check *c, const iron__ledger_entry *now, size_t count,
                                iron_error *err) {
    uint32_t rank = iron__ledger_rank(c->ledgers, now);
    iron_bag bag = iron__ledger_bag(c->ledgers, now, 0, count);

    return add(c, IRON_LEDGER_CONFLICTING_STEP, rank, rank, now->step, now->step, bag.samples, err);
}

/* Compares what counts of a step with what a generation recorded of it before: rank by rank if the
 * world is the same, otherwise the bags of all ranks, if all have recorded it. */
static iron_status compare_step(check *c, const iron__ledger_entry *now, size_t now_count,
                                const iron__ledger_entry *old, size_t old_count, iron_error *err) {
    const iron_ledgers *l = c->ledgers;
    uint32_t world = l->generations[now->generation].world,
             old_world = l->generations[old->generation].world;

    if (world != old_world) {
        if (count_units(now, now_count) == world && count_units(old, old_count) == old_world) {
            iron_bag x = iron__ledger_bag(l, now, 0, now_count),
                     y = iron__ledger_bag(l, old, 0, old_count);

            if (!iron__ledger_bags_equal(&x, &y))
                IRON_TRY(add_conflict(c, now, now_count, err));
        }
        return IRON_OK;
    }
    for (size_t k = 0, o = 0, end; k < now_count; k = end) {
        size_t old_end;

        end = iron__ledger_unit_end(now, k, now_count);
        while (o < old_count && old[o].file < now[k].file)
            o++;
        if (o == old_count || old[o].file != now[k].file)
            continue;
        old_end = iron__ledger_unit_end(old, o, old_count);
        if (!are_same_tokens(l, now + k, end - k, old + o, old_end - o))
            IRON_TRY(add_conflict(c, now + k, end - k, err));
    }
    return IRON_OK;
}

/* Of the history of a step, the entries of the newest generation before the one that counts; within
 * that generation, of a micro step that was recorded several times, the last. Moves them to the
 * front of `of`. */
static size_t newest_history(iron__ledger_entry *of, const iron__ledger_entry *history,
                             size_t count, uint32_t generation) {
    uint32_t newest = 0;
    size_t kept = 0;

    for (size_t k = 0; k < count; k++)
        if (history[k].generation <= generation && history[k].generation >= newest)
            newest = history[k].generation;
    for (size_t k = 0; k < count; k++) {
        if (history[k].generation != newest)
            continue;
        if (kept > 0 && of[kept - 1].file == history[k].file &&
            of[kept - 1].micro == history[k].micro)
            kept--;
        of[kept++] = history[k];
    }
    return kept;
}

/* Of a micro step that one generation recorded twice only the later record counts, but all others
 * are complete: units are compared without the records that have no earlier counterpart. */
static size_t only_repeated(iron__ledger_entry *to, const iron__ledger_entry *now, size_t count,
                            const iron__ledger_entry *old, size_t old_count) {
    size_t kept = 0;

    for (size_t k = 0; k < count; k++)
        for (size_t o = 0; o < old_count; o++)
            if (old[o].file == now[k].file && old[o].micro == now[k].micro) {
                to[kept++] = now[k];
                break;
            }
    return kept;
}

static iron_status find_conflicts(check *c, iron_error *err) {
    const iron_ledgers *l = c->ledgers;
    iron__ledger_entry *scratch = NULL;
    size_t room = 0;
    iron_status status = IRON_OK;

    for (size_t h = 0, k = 0, end; status == IRON_OK && h < l->history_count; h = end) {
        const iron__ledger_entry *old = l->history + h, *now;
        size_t now_count, old_count;

        end = iron__ledger_step_end(l->history, h, l->history_count);
        while (k < l->count && l->entries[k].step < old->step)
            k++;
        if (k == l->count || l->entries[k].step != old->step)
            continue;
        now = l->entries + k;
        now_count = iron__ledger_step_end(l->entries, k, l->count) - k;
        if (end - h + now_count > room) {
            room = 2 * (end - h + now_count);
            free(scratch);
            scratch = malloc(room * sizeof *scratch);
            if (!scratch)
                return iron__no_memory(err, "the records of a step");
        }
        old_count = newest_history(scratch, old, end - h, now->generation);
        if (old_count > 0 && scratch->generation == now->generation) {
            now_count = only_repeated(scratch + old_count, now, now_count, scratch, old_count);
            now = scratch + old_count;
        }
        if (old_count > 0 && now_count > 0)
            status = compare_step(c, now, now_count, scratch, old_count, err);
    }
    free(scratch);
    return status;
}

/* Steps that repeat a step or another rank. */

typedef struct unit_key {
    uint64_t hash; /* of epoch and bag */
    size_t unit;
} unit_key;

static int compare_keys(const void *a, const void *b) {
    const unit_key *x = a, *y = b;

    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1)
                              : (x->unit > y->unit) - (x->unit < y->unit);
}

static iron_status find_units(check *c, iron_error *err) {
    const iron_ledgers *l = c->ledgers;
    size_t units = count_units(l->entries, l->count);

    IRON_TRY(IRON_NEW(&c->units, units + 1, "the steps of a run", err));
    for (size_t k = 0; k < l->count; k = iron__ledger_unit_end(l->entries, k, l->count))
        c->units[c->unit_count++].entry = k;
    c->units[units].entry = l->count;
    return IRON_OK;
}

/* The keys of the units that have tokens, sorted. */
static size_t make_keys(const check *c, unit_key *keys) {
    const iron_ledgers *l = c->ledgers;
    size_t count = 0;

    for (size_t unit = 0; unit < c->unit_count; unit++) {
        size_t from = c->units[unit].entry, end = c->units[unit + 1].entry;
        iron_bag bag = iron__ledger_bag(l, l->entries, from, end);
        uint64_t tokens = 0, hash = iron__mix64(l->entries[from].epoch + 1);

        for (size_t k = from; k < end; k++)
            tokens += iron__ledger_read(l, &l->entries[k]).tokens;
        hash = iron__mix64(bag.hi ^ iron__mix64(bag.lo ^ bag.samples ^ hash));
        if (tokens > 0)
            keys[count++] = (unit_key){hash, unit};
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    return count;
}

static iron_status find_repeated_steps(check *c, iron_error *err) {
    const iron__ledger_entry *entries = c->ledgers->entries;
    unit_mark *units = c->units;
    unit_key *keys;
    size_t count;

    IRON_TRY(IRON_NEW(&keys, c->unit_count, "the steps of a run", err));
    count = make_keys(c, keys);
    /* of neighbours with the same hash, the first is the original; `same` begins its step */
    for (size_t k = 1, first = 0, same = 0; k < count; k++) {
        unit_mark *unit = &units[keys[k].unit];

        if (keys[k].hash != keys[first].hash) {
            first = same = k;
            continue;
        }
        if (entries[units[keys[same].unit].entry].step != entries[unit->entry].step)
            same = k;
        unit->is_same_step = same < k;
        unit->first = units[keys[same < k ? same : first].unit].entry + 1;
    }
    free(keys);
    return IRON_OK;
}

/* Repeated samples. */

typedef struct seen_twice {
    uint64_t hash, other; /* 0: free; the rest of the first one's seal */
    uint64_t first;       /* its entry + 1; 0: not found yet */
} seen_twice;

/* Of one worker: hashes that occur at all, and those that occur twice. */
typedef struct sample_table {
    uint64_t *seen;
    size_t left;               /* free slots that may be filled */
    uint64_t hashes[TOGETHER]; /* to be looked up */
    size_t waiting;
    seen_twice *twice;
    size_t twice_count, twice_slots;
} sample_table;

typedef struct sample_search {
    check *check;
    size_t slots; /* of each table: a power of two */
    uint64_t parts;
    sample_table *tables;
} sample_search;

/* Never 0. The same tokens in another epoch are another sample. */
static inline uint64_t sample_hash(const unsigned char *seal, uint64_t epoch_key) {
    uint64_t hash;

    memcpy(&hash, seal, sizeof hash);
    hash = iron__mix64(hash ^ epoch_key);
    return hash ? hash : 1;
}

static seen_twice *find_twice(const sample_table *t, uint64_t hash) {
    size_t mask = t->twice_slots - 1, slot = (size_t)(hash * IRON_GOLDEN_GAMMA >> 20) & mask;

    while (t->twice[slot].hash && t->twice[slot].hash != hash)
        slot = (slot + 1) & mask;
    return &t->twice[slot];
}

static bool grow_twice(sample_table *t) {
    sample_table larger = {.twice_slots = t->twice_slots ? 4 * t->twice_slots : 1024};

    larger.twice = calloc(larger.twice_slots, sizeof *larger.twice);
    if (!larger.twice)
        return false;
    for (size_t k = 0; k < t->twice_slots; k++)
        if (t->twice[k].hash)
            *find_twice(&larger, t->twice[k].hash) = t->twice[k];
    free(t->twice);
    t->twice = larger.twice;
    t->twice_slots = larger.twice_slots;
    return true;
}

static iron_status add_twice(sample_table *t, uint64_t hash, iron_error *err) {
    seen_twice *slot;

    if (2 * t->twice_count >= t->twice_slots && !grow_twice(t))
        return iron__no_memory(err, "repeated samples");
    slot = find_twice(t, hash);
    t->twice_count += slot->hash == 0;
    slot->hash = hash;
    return IRON_OK;
}

/* Looks up the hashes that wait, and notes those that were there. */
static iron_status add_hashes(const sample_search *s, sample_table *t, iron_error *err) {
    const uint64_t *hashes = t->hashes;
    size_t mask = s->slots - 1, count = t->waiting;

    t->waiting = 0;
    for (size_t k = 0; k < count; k++)
        __builtin_prefetch(&t->seen[(size_t)(hashes[k] * IRON_GOLDEN_GAMMA >> 16) & mask], 1);
    for (size_t k = 0; k < count; k++) {
        size_t slot = (size_t)(hashes[k] * IRON_GOLDEN_GAMMA >> 16) & mask;

        while (t->seen[slot] && t->seen[slot] != hashes[k])
            slot = (slot + 1) & mask;
        if (t->seen[slot]) {
            IRON_TRY(add_twice(t, hashes[k], err));
            continue;
        }
        IRON_FAIL_IF(t->left == 0, err, IRON_E_NOMEM,
                     "the seals of the samples are not evenly distributed; use more --memory");
        t->left--;
        t->seen[slot] = hashes[k];
    }
    return IRON_OK;
}

/* What a pass does with each sample of a part. */
typedef iron_status use_sample(sample_search *s, sample_table *t, size_t entry, unit_mark *unit,
                               const unsigned char *seal, uint64_t hash, iron_error *err);

/* Calls `use` for the samples whose hash is in the part, except those of steps that are repeated as
 * a whole, until *stop. */
static inline iron_status each_sample(sample_search *s, sample_table *t, uint64_t part,
                                      const atomic_bool *stop, use_sample *use, iron_error *err) {
    const iron_ledgers *l = s->check->ledgers;
    unit_mark *unit = s->check->units, *end = unit + s->check->unit_count;

    for (; unit < end && !atomic_load_explicit(stop, memory_order_relaxed); unit++)
        for (size_t k = unit->entry; !unit->first && k < unit[1].entry; k++) {
            uint64_t count, epoch_key = iron__mix64(l->entries[k].epoch + 1);
            const unsigned char *seal = iron__ledger_samples(l, &l->entries[k], &count);

            for (uint64_t j = 0; j < count; j++, seal += LEDGER_SAMPLE_BYTES) {
                uint64_t hash = sample_hash(seal, epoch_key);

                if (iron__ledger_part_of(hash, s->parts) == part)
                    IRON_TRY(use(s, t, k, unit, seal, hash, err));
            }
        }
    return IRON_OK;
}

/* First pass: which hashes occur twice? Hashes are looked up together. */
static iron_status collect_hash(sample_search *s, sample_table *t, size_t entry, unit_mark *unit,
                                const unsigned char *seal, uint64_t hash, iron_error *err) {
    (void)entry;
    (void)unit;
    (void)seal;
    t->hashes[t->waiting++] = hash;
    return t->waiting == TOGETHER ? add_hashes(s, t, err) : IRON_OK;
}

/* Second pass: where are the samples with these hashes? */
static iron_status find_place(sample_search *s, sample_table *t, size_t entry, unit_mark *unit,
                              const unsigned char *seal, uint64_t hash, iron_error *err) {
    const iron__seal_words none = {0, 0, 0, 0};
    uint64_t hi = iron__ledger_u64(seal), lo = iron__ledger_u64(seal + 8), known;
    seen_twice *found = find_twice(t, hash);

    (void)s;
    (void)err;
    /* that the empty sample is repeated means nothing */
    if (!found->hash || (hi == iron__seal_fold(0, none) && lo == iron__seal_fold(1, none)))
        return IRON_OK;
    if (!found->first) {
        found->first = entry + 1;
        found->other = lo;
    } else if (found->other == lo) {
        known = atomic_load(&unit->first_sample);
        while ((known == 0 || found->first < known) &&
               !atomic_compare_exchange_weak(&unit->first_sample, &known, found->first))
            continue;
        atomic_fetch_add(&unit->samples, 1);
    }
    return IRON_OK;
}

static iron_status search_part(void *context, uint32_t worker, uint64_t part,
                               const atomic_bool *stop, iron_error *err) {
    sample_search *s = context;
    sample_table *t = &s->tables[worker];

    t->twice_count = t->waiting = 0;
    t->left = s->slots - s->slots / 8;
    if (t->twice)
        memset(t->twice, 0, t->twice_slots * sizeof *t->twice);
    if (!t->seen)
        t->seen = malloc(s->slots * sizeof *t->seen);
    if (!t->seen)
        return iron__no_memory(err, "the table of samples");
    memset(t->seen, 0, s->slots * sizeof *t->seen);
    IRON_TRY(each_sample(s, t, part, stop, collect_hash, err));
    IRON_TRY(add_hashes(s, t, err));
    return t->twice_count > 0 ? each_sample(s, t, part, stop, find_place, err) : IRON_OK;
}

static iron_status tell_progress(void *context, uint64_t part, iron_error *err) {
    const sample_search *s = context;
    const iron_ledger_check_options *o = s->check->options;

    return iron__progress(o->progress, o->context, part + 1, s->parts, err);
}

static iron_status find_repeated_samples(check *c, iron_error *err) {
    const iron_ledger_check_options *o = c->options;
    uint32_t threads = o->threads ? o->threads : iron__cpu_threads();
    uint64_t most = o->memory / threads / sizeof(uint64_t), samples = 0, count;
    sample_search s = {.check = c, .slots = 1024};
    iron__thread_pool *pool = NULL;
    iron_status status;

    for (const unit_mark *unit = c->units; unit < c->units + c->unit_count; unit++)
        for (size_t k = unit->entry; !unit->first && k < unit[1].entry; k++, samples += count)
            iron__ledger_samples(c->ledgers, &c->ledgers->entries[k], &count);
    if (samples == 0)
        return IRON_OK;
    /* half of the slots stay free */
    while (2 * s.slots <= most && s.slots < 2 * samples)
        s.slots *= 2;
    s.parts = samples / (s.slots / 2) + 1;
    if (s.parts > 1) /* threads take parts in turn: as many for each */
        s.parts = (s.parts + threads - 1) / threads * threads;
    IRON_TRY(IRON_NEW(&s.tables, threads, "the table of samples", err));
    status = iron__thread_pool_create(threads, iron__allocator_default(), &pool, err);
    if (status == IRON_OK)
        status = iron__thread_pool_run_ordered(
            pool, &(iron__ordered_run){s.parts, search_part, tell_progress, &s}, err);
    iron__thread_pool_destroy(pool);
    for (uint32_t k = 0; k < threads; k++) {
        free(s.tables[k].seen);
        free(s.tables[k].twice);
    }
    free(s.tables);
    return status;
}

/* Turns what was marked into findings. */
static iron_status report_units(check *c, iron_error *err) {
    const iron_ledgers *l = c->ledgers;

    for (const unit_mark *u = c->units; u < c->units + c->unit_count; u++) {
        uint64_t count = atomic_load(&u->samples), sample = atomic_load(&u->first_sample);
        iron_ledger_kind kind = IRON_LEDGER_REPEATED_SAMPLE;
        const iron__ledger_entry *e = &l->entries[u->entry], *first;

        if (u->first) {
            kind = u->is_same_step ? IRON_LEDGER_SAME_ON_RANKS : IRON_LEDGER_REPEATED_STEP;
            count = iron__ledger_bag(l, l->entries, u->entry, u[1].entry).samples;
        } else if (count == 0) {
            continue;
        }
        first = &l->entries[(u->first ? u->first : sample) - 1];
        IRON_TRY(add(c, kind, iron__ledger_rank(l, e), iron__ledger_rank(l, first), e->step,
                     first->step, count, err));
    }
    return IRON_OK;
}

/* "step 7" or "steps 7 to 9" */
static void steps_text(uint64_t first, uint64_t count, char text[64]) {
    if (count == 1)
        snprintf(text, 64, "step %" PRIu64, first);
    else
        snprintf(text, 64, "steps %" PRIu64 " to %" PRIu64, first, first + count - 1);
}

void iron_ledger_finding_text(const iron_ledger_finding *f, uint64_t steps, uint64_t count,
                              char text[IRON_LEDGER_SENTENCE]) {
    char here[64], there[64], other[24] = "", says[112];
    bool is_one = steps == 1;

    steps_text(f->step, f->kind == IRON_LEDGER_MISSING_STEP ? f->count : steps, here);
    steps_text(f->first_step, steps, there);
    if (f->first_rank != f->rank)
        snprintf(other, sizeof other, " on rank %" PRIu32, f->first_rank);
    switch (f->kind) {
    case IRON_LEDGER_CUT_OFF:
        snprintf(text, IRON_LEDGER_SENTENCE,
                 "rank %" PRIu32 " is cut off after step %" PRIu64 ": %" PRIu64 " torn bytes",
                 f->rank, f->step, f->count);
        return;
    case IRON_LEDGER_MISSING_STEP:
        snprintf(text, IRON_LEDGER_SENTENCE, "%s %s missing on rank %" PRIu32, here,
                 f->count == 1 ? "is" : "are", f->rank);
        return;
    case IRON_LEDGER_SAME_ON_RANKS:
        snprintf(says, sizeof says, "ha%s the tokens of rank %" PRIu32, is_one ? "s" : "ve",
                 f->first_rank);
        break;
    case IRON_LEDGER_CONFLICTING_STEP:
        snprintf(says, sizeof says, "w%s recorded before with other tokens", is_one ? "as" : "ere");
        break;
    default:
        snprintf(says, sizeof says, "repeat%s %s%s%s", is_one ? "s" : "",
                 f->kind == IRON_LEDGER_REPEATED_STEP ? "" : "samples of ", there, other);
    }
    snprintf(text, IRON_LEDGER_SENTENCE, "%s on rank %" PRIu32 " %s: %" PRIu64 " sample%s", here,
             f->rank, says, count, count == 1 ? "" : "s");
}

iron_status iron_ledgers_check(const iron_ledgers *ledgers,
                               const iron_ledger_check_options *options,
                               iron_ledger_findings *findings, iron_error *err) {
    static iron_status (*const steps[])(check * c, iron_error * err) = {
        find_units,          find_missing,          find_cut_off, find_conflicts,
        find_repeated_steps, find_repeated_samples, report_units};
    check c = {.ledgers = ledgers, .options = options, .findings = findings};
    iron_status status = IRON_OK;

    *findings = (iron_ledger_findings){.list = NULL};
    IRON_TRY(iron__struct_check(options, sizeof *options, "iron_ledger_check_options", err));
    IRON_FAIL_IF(options->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "%" PRIu32 " threads; use at most %u", options->threads, IRON_THREADS_MAX);
    for (size_t k = 0; k < sizeof steps / sizeof steps[0] && status == IRON_OK; k++)
        status = steps[k](&c, err);
    free(c.units);
    if (status == IRON_OK && findings->count > 1)
        qsort(findings->list, findings->count, sizeof *findings->list, compare_findings);
    if (status != IRON_OK)
        iron_ledger_findings_deinit(findings);
    return status;
}
