/* SPDX-License-Identifier: MIT */
/*
 * digest.c: iron_digest: tokens in memory, in pieces that come in any order, become a seal.
 *
 * What a digest has seen is four things that always agree: which positions (`seen`), the tokens of
 * quads that are not complete yet (`open`), the words of all complete quads, and the statistics of
 * all tokens. They change together, after everything that can fail: a piece is added whole or not
 * at all.
 *
 * The file begins with the sorted array that `seen` and `open` are kept in, then has these two, the
 * pass over whole quads by all threads, and the public functions: adding tokens that are in memory
 * or in a GPU's memory, merging, saving and loading.
 */
#include "digest/digest_internal.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define VOCAB_DEFAULT UINT64_C(50257)
#define VOCAB_MAX     (UINT64_C(1) << 32)

/* A sorted array in blocks.
 *
 * A shuffled data loader leaves a gap after almost every piece: millions of entries, and each new
 * one may lie anywhere among them. One sorted array would have to move half of its entries, tens of
 * megabytes, for each. So entries lie in blocks of at most SORTED_BLOCK, and an array of slots, one
 * per block, holds the first key of each block: an insertion moves part of one block. A full block
 * is split in halves, or a new one is begun where keys only grow; neighbouring blocks that have
 * become sparse are joined. Searching past the last key, as streams in order do, takes a few steps
 * in the last block.
 *
 * Only the reserve functions allocate and can fail. */

/* Entries are structs that begin with their key, a uint64_t; each key occurs once. */
#define SORTED_BLOCK ((size_t)128)

typedef struct sorted_slot {
    uint64_t key; /* of the block's first entry */
    unsigned char *entries;
    size_t count; /* never 0 */
} sorted_slot;

typedef struct sorted_array {
    const iron_allocator *allocator;
    size_t entry_bytes; /* a multiple of 8 */
    size_t count;       /* of all entries */
    sorted_slot *slots;
    size_t slot_count, slot_capacity;
    void *spare; /* reserved blocks: each begins with a pointer to the next */
    size_t spare_count;
} sorted_array;

/* Where an entry is; valid until the next insertion or removal. */
typedef struct sorted_place {
    size_t slot, index;
} sorted_place;

/* The first entry, and the one after a place, which moves on to it; NULL after the last. */
static void *sorted_first(const sorted_array *s, sorted_place *at) {
    *at = (sorted_place){0, 0};
    return s->slot_count ? s->slots[0].entries : NULL;
}

static void *sorted_next(const sorted_array *s, sorted_place *at) {
    if (++at->index == s->slots[at->slot].count) {
        at->slot++;
        at->index = 0;
    }
    if (at->slot == s->slot_count)
        return NULL;
    return s->slots[at->slot].entries + at->index * s->entry_bytes;
}

/* Two neighbours that together have no more entries than this are joined: half a block, so that the
 * next insertion does not split the result again. */
#define SPARSE (SORTED_BLOCK / 2)

static sorted_array sorted_make(size_t entry_bytes, const iron_allocator *allocator) {
    return (sorted_array){.allocator = allocator, .entry_bytes = entry_bytes};
}

/* Copies all entries, in order; returns where they end. */
static unsigned char *sorted_copy(const sorted_array *s, unsigned char *to) {
    for (size_t k = 0; k < s->slot_count; k++) {
        memcpy(to, s->slots[k].entries, s->slots[k].count * s->entry_bytes);
        to += s->slots[k].count * s->entry_bytes;
    }
    return to;
}

static void *take_spare(sorted_array *s) {
    void *block = s->spare;

    memcpy(&s->spare, block, sizeof s->spare);
    s->spare_count--;
    return block;
}

static void give_spare(sorted_array *s, void *block) {
    memcpy(block, &s->spare, sizeof s->spare);
    s->spare = block;
    s->spare_count++;
}

/* Releases the spare blocks beyond this number. */
static void sorted_trim(sorted_array *s, size_t blocks) {
    while (s->spare_count > blocks)
        iron__release(s->allocator, take_spare(s));
}

static void sorted_deinit(sorted_array *s) {
    for (size_t k = 0; k < s->slot_count; k++)
        iron__release(s->allocator, s->slots[k].entries);
    sorted_trim(s, 0);
    iron__release(s->allocator, s->slots);
    *s = sorted_make(s->entry_bytes, s->allocator);
}

static iron_status reserve_blocks(sorted_array *s, size_t blocks, iron_error *err) {
    if (s->slot_capacity - s->slot_count < blocks) {
        size_t capacity = s->slot_capacity > 4 ? s->slot_capacity : 4;
        sorted_slot *slots;

        while (capacity < s->slot_count + blocks)
            capacity *= 2;
        IRON_TRY(IRON_ALLOCATE(&slots, s->allocator, capacity, "the positions seen", err));
        if (s->slot_count)
            memcpy(slots, s->slots, s->slot_count * sizeof *slots);
        iron__release(s->allocator, s->slots);
        s->slots = slots;
        s->slot_capacity = capacity;
    }
    while (s->spare_count < blocks) {
        void *block =
            iron__allocate(s->allocator, SORTED_BLOCK, s->entry_bytes, "the positions seen", err);

        if (!block)
            return IRON_E_NOMEM;
        give_spare(s, block);
    }
    return IRON_OK;
}

/* Makes sure that so many insertions anywhere cannot fail: each splits at most one block. Blocks
 * that became free when gaps closed are released here and not earlier, so that what was reserved
 * stays reserved. */
static iron_status sorted_reserve(sorted_array *s, size_t insertions, iron_error *err) {
    sorted_trim(s, insertions + 2);
    return reserve_blocks(s, insertions, err);
}

/* Makes sure that so many insertions in ascending order, after all entries, cannot fail. */
static iron_status sorted_reserve_append(sorted_array *s, size_t insertions, iron_error *err) {
    return reserve_blocks(s, insertions / SORTED_BLOCK + 1, err);
}

static unsigned char *entry_at(const sorted_array *s, size_t slot, size_t index) {
    assert(s->slots);
    return s->slots[slot].entries + index * s->entry_bytes;
}

static uint64_t key_of(const void *entry) {
    uint64_t key;

    memcpy(&key, entry, sizeof key);
    return key;
}

/* The last entry whose key is not above `key`, and its place; NULL if there is none. */
static void *sorted_upto(const sorted_array *s, uint64_t key, sorted_place *place) {
    size_t slot = s->slot_count - 1, index;

    if (s->slot_count == 0 || s->slots[0].key > key)
        return NULL;
    if (s->slots[slot].key > key) /* not as for streams in order */
        slot = iron__array_find(&s->slots[0].key, sizeof *s->slots, s->slot_count, key);
    index = iron__array_find((const uint64_t *)(const void *)s->slots[slot].entries, s->entry_bytes,
                             s->slots[slot].count, key);
    *place = (sorted_place){slot, index};
    return entry_at(s, slot, index);
}

static void add_slot(sorted_array *s, size_t at) {
    assert(s->slots); /* reserved before */
    memmove(s->slots + at + 1, s->slots + at, (s->slot_count - at) * sizeof *s->slots);
    s->slots[at] = (sorted_slot){0, take_spare(s), 0};
    s->slot_count++;
}

static void drop_slot(sorted_array *s, size_t at) {
    give_spare(s, s->slots[at].entries);
    s->slot_count--;
    memmove(s->slots + at, s->slots + at + 1, (s->slot_count - at) * sizeof *s->slots);
}

/* Makes sure that the place is in a block that is not full: after the last block a new one begins,
 * elsewhere the upper half of a full block becomes a block of its own. */
static void make_room(sorted_array *s, sorted_place *place) {
    size_t count = s->slot_count ? s->slots[place->slot].count : SORTED_BLOCK;
    size_t half = SORTED_BLOCK / 2, at = place->slot;

    if (count < SORTED_BLOCK)
        return;
    if (at + 1 >= s->slot_count && (s->slot_count == 0 || place->index == count)) {
        *place = (sorted_place){s->slot_count, 0};
        add_slot(s, place->slot);
        return;
    }
    add_slot(s, at + 1);
    memcpy(s->slots[at + 1].entries, entry_at(s, at, half), (count - half) * s->entry_bytes);
    s->slots[at].count = half;
    s->slots[at + 1].count = count - half;
    s->slots[at + 1].key = key_of(s->slots[at + 1].entries);
    if (place->index > half)
        *place = (sorted_place){at + 1, place->index - half};
}

/* To be called when the key of an entry was changed in place; it must still be between those of its
 * neighbours. */
static void sorted_rekey(sorted_array *s, sorted_place place) {
    assert(s->slots && s->slots[place.slot].entries);
    s->slots[place.slot].key = key_of(s->slots[place.slot].entries);
}

/* Inserts a copy of an entry whose key is not there yet; must have been reserved. */
static void sorted_insert(sorted_array *s, const void *entry) {
    sorted_place place = {0, 0};
    unsigned char *at;

    if (sorted_upto(s, key_of(entry), &place))
        place.index++;
    make_room(s, &place);
    at = entry_at(s, place.slot, place.index);
    memmove(at + s->entry_bytes, at, (s->slots[place.slot].count - place.index) * s->entry_bytes);
    memcpy(at, entry, s->entry_bytes);
    s->slots[place.slot].count++;
    s->count++;
    sorted_rekey(s, place);
}

static void join_if_sparse(sorted_array *s, size_t at) {
    sorted_slot *left = s->slots + at, *right = left + 1;

    if (at + 1 >= s->slot_count || left->count + right->count > SPARSE)
        return;
    memcpy(left->entries + left->count * s->entry_bytes, right->entries,
           right->count * s->entry_bytes);
    left->count += right->count;
    drop_slot(s, at + 1);
}

static void sorted_remove(sorted_array *s, sorted_place place) {
    sorted_slot *slot = s->slots + place.slot;
    unsigned char *at = entry_at(s, place.slot, place.index);

    assert(slot);
    slot->count--;
    s->count--;
    memmove(at, at + s->entry_bytes, (slot->count - place.index) * s->entry_bytes);
    if (slot->count == 0) {
        drop_slot(s, place.slot);
        return;
    }
    sorted_rekey(s, place);
    join_if_sparse(s, place.slot);
    if (place.slot > 0)
        join_if_sparse(s, place.slot - 1);
}

/* Coverage: the positions seen, as spans that neither overlap nor touch. A stream that comes in
 * order is one span; each gap costs one more. */

/* Positions first ... end-1; never empty. */
typedef struct span {
    uint64_t first, end;
} span;

/* The span that begins at or before a position, and the one after it; NULL if there is none. */
typedef struct neighbours {
    span *left, *right;
    sorted_place right_at;
} neighbours;

static neighbours around(const sorted_array *c, uint64_t position) {
    neighbours n;

    n.left = sorted_upto(c, position, &n.right_at);
    n.right = n.left ? sorted_next(c, &n.right_at) : sorted_first(c, &n.right_at);
    return n;
}

static bool common(span a, span b, span *both) {
    *both = (span){a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
    return both->first < both->end;
}

/* Finds the first part of `piece` that is in c, a sorted array of spans. */
static bool coverage_overlaps(const sorted_array *c, span piece, span *seen) {
    neighbours n = around(c, piece.first);

    return (n.left && common(*n.left, piece, seen)) || (n.right && common(*n.right, piece, seen));
}

/* Adds a piece that overlaps nothing; needs a reserved insertion. */
static void coverage_add(sorted_array *c, const span *piece) {
    neighbours n = around(c, piece->first);
    bool joins_left = n.left && n.left->end == piece->first;
    bool joins_right = n.right && n.right->first == piece->end;

    if (joins_left && joins_right) {
        n.left->end = n.right->end;
        sorted_remove(c, n.right_at);
    } else if (joins_left) {
        n.left->end = piece->end;
    } else if (joins_right) {
        n.right->first = piece->first;
        sorted_rekey(c, n.right_at);
    } else {
        sorted_insert(c, piece);
    }
}

/* The first span that both have seen. */
static bool coverage_meets(const sorted_array *a, const sorted_array *b, span *both) {
    sorted_place in_a, in_b;
    const span *x = sorted_first(a, &in_a);
    const span *y = sorted_first(b, &in_b);

    while (x && y) {
        if (common(*x, *y, both))
            return true;
        if (x->end < y->end)
            x = sorted_next(a, &in_a);
        else
            y = sorted_next(b, &in_b);
    }
    return false;
}

/* The first gap; its end is UINT64_MAX if nothing was seen after it. */
static span coverage_gap(const sorted_array *c) {
    span gap = {0, UINT64_MAX};
    sorted_place at;
    const span *next = sorted_first(c, &at);

    if (next && next->first == 0) {
        gap.first = next->end;
        next = sorted_next(c, &at);
    }
    if (next)
        gap.end = next->first;
    return gap;
}

/* Open quads: the seal works on the four tokens at positions 4q ... 4q+3. A piece that begins or
 * ends inside a quad leaves up to three tokens on either side; they wait here, sorted by quad,
 * until the missing ones have come. There are at most two for every span seen. */

#define QUAD_WHOLE 15u

typedef struct open_quad {
    uint64_t quad;
    uint32_t tokens[4]; /* 0 where none has come */
    uint32_t mask;      /* bit k: the token at 4 * quad + k has come; never 0, never all */
    uint32_t zero;
} open_quad;

/* Adds tokens that were not there yet; needs a reserved insertion. A quad that becomes complete is
 * removed, and added to the words. */
static void open_quads_add(sorted_array *open, const open_quad *part, iron__seal_words *words) {
    sorted_place place;
    open_quad *at = sorted_upto(open, part->quad, &place);

    if (!at || at->quad != part->quad) {
        sorted_insert(open, part);
        return;
    }
    for (uint32_t k = 0; k < 4; k++)
        if (part->mask & 1u << k)
            at->tokens[k] = part->tokens[k];
    at->mask |= part->mask;
    if (at->mask != QUAD_WHOLE)
        return;
    iron__seal_quads(words, at->tokens, at->quad, 1);
    sorted_remove(open, place);
}

/* Initialises *out with all of a and b, which have no token in common: spans or, with words, open
 * quads, of which those that become complete are added to the words. On failure *out holds nothing,
 * and the words have not changed. */
static iron_status join_arrays(const sorted_array *a, const sorted_array *b, sorted_array *out,
                               iron__seal_words *words, iron_error *err) {
    sorted_place in_a, in_b;
    const void *x = sorted_first(a, &in_a), *y = sorted_first(b, &in_b);
    iron_status status;

    *out = sorted_make(a->entry_bytes, a->allocator);
    status = sorted_reserve_append(out, a->count + b->count, err);
    if (status != IRON_OK)
        sorted_deinit(out);
    while (status == IRON_OK && (x || y)) {
        bool takes_x = x && (!y || key_of(x) < key_of(y));

        if (words)
            open_quads_add(out, takes_x ? x : y, words);
        else
            coverage_add(out, takes_x ? x : y);
        if (takes_x)
            x = sorted_next(a, &in_a);
        else
            y = sorted_next(b, &in_b);
    }
    sorted_trim(out, 2);
    return status;
}

typedef struct quads_sum {
    iron__seal_words words;
    iron__token_stats stats;
    bool has_bad; /* a value outside 0 ... 2^32-1 */
} quads_sum;

typedef struct digest_data {
    const iron_allocator *allocator;
    uint64_t vocab;
    uint32_t threads;
    uint32_t device;         /* these two are for iron_digest_update_device */
    char backend[16];        /* "auto", "cuda", "opencl" */
    iron__seal_device *gpu;  /* NULL until a piece is on one */
    pid_t gpu_owner;         /* the process that opened it: a fork can neither use nor close it */
    iron__thread_pool *pool; /* NULL until a piece is long enough */
    pid_t pool_owner;        /* the process whose threads they are: a fork has none of them */
    quads_sum *sums;
    iron__seal_words words;  /* of whole quads only */
    iron__token_stats stats; /* of all tokens */
    sorted_array seen;       /* of span: the positions of all tokens */
    sorted_array open;       /* of open_quad */
} digest_data;

/* The pass over whole quads in memory.
 *
 * Memory is read once. Signed types are searched for values that are not tokens, and narrow ones
 * widened, a few thousand at a time: the block is then in the first-level cache, where the sums
 * read it again. Each task has a sum of its own; merging them takes a few nanoseconds each. */

/* Tokens per task: 256 KiB of the usual width, part of the second-level cache; and tasks between
 * two merges, which is how many sums a digest has memory for. */
#define TASK_TOKENS ((size_t)65536)
#define ROUND_TASKS ((size_t)256)

typedef struct pass {
    iron__tokens_view view;
    uint64_t first_quad;
    uint64_t vocab;
    const iron__seal_variant *row;
    quads_sum *sums;
} pass;

static quads_sum no_tokens(void) { return (quads_sum){.stats = iron__token_stats_neutral()}; }

static void sum_task(void *context, size_t task) {
    const pass *p = context;
    size_t begin = task * TASK_TOKENS;
    iron__tokens_view piece = iron__view_rest(&p->view, begin);
    quads_sum sum = no_tokens();
    uint32_t wide[IRON_WIDEN_TOKENS];

    piece.count = iron__min_size(piece.count, TASK_TOKENS);
    iron__quads_add(p->row, &piece, 0, piece.count / 4, p->first_quad + begin / 4, p->vocab, wide,
                    &sum.words, &sum.stats, &sum.has_bad);
    p->sums[task] = sum;
}

/* Words and statistics of the quads of `view`, whose count is a multiple of 4, from quad
 * `first_quad` of the stream on; and whether a value is not a token, in which case the rest means
 * nothing. `pool` may be NULL for one thread. */
static quads_sum sum_quads(const digest_data *d, const iron__tokens_view *view, uint64_t first_quad,
                           iron__thread_pool *pool) {
    const iron__seal_variant *row = iron__seal_variant_find("champion");
    quads_sum total = no_tokens();

    for (size_t done = 0; done < view->count && !total.has_bad;) {
        pass p = {iron__view_rest(view, done), first_quad + done / 4, d->vocab, row, d->sums};
        size_t tasks;

        p.view.count = iron__min_size(p.view.count, ROUND_TASKS * TASK_TOKENS);
        tasks = (p.view.count + TASK_TOKENS - 1) / TASK_TOKENS;
        if (pool)
            iron__thread_pool_run(pool, sum_task, &p, tasks);
        for (size_t k = 0; k < tasks; k++) {
            if (!pool)
                sum_task(&p, k);
            total.words = iron__seal_merge(total.words, d->sums[k].words);
            total.stats = iron__token_stats_merge(total.stats, d->sums[k].stats);
            total.has_bad = total.has_bad || d->sums[k].has_bad;
        }
        done += p.view.count;
    }
    return total;
}

/* Creating and destroying. */

iron_status iron_digest_init(iron_digest *digest, const iron_digest_options *options,
                             iron_error *err) {
    static const iron_digest_options defaults = {.struct_size = sizeof defaults};
    const iron_digest_options *o = options ? options : &defaults;
    const iron_allocator *allocator;
    const char *backend;
    digest_data *d;

    digest->own = NULL;
    IRON_TRY(iron__struct_check(o, sizeof *o, "iron_digest_options", err));
    backend = o->backend ? o->backend : "auto";
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", o->threads, IRON_THREADS_MAX);
    IRON_FAIL_IF(o->vocab > VOCAB_MAX, err, IRON_E_ARG,
                 "vocab is %" PRIu64 "; it must be 1 to 4294967296, or 0 for 50257", o->vocab);
    IRON_FAIL_IF(strcmp(backend, "auto") != 0 && strcmp(backend, "cuda") != 0 &&
                     strcmp(backend, "opencl") != 0,
                 err, IRON_E_ARG, "unknown backend '%.40s'; use auto, cuda or opencl", backend);
    allocator = o->allocator ? o->allocator : iron__allocator_default();
    IRON_TRY(IRON_ALLOCATE(&d, allocator, 1, "a digest", err));
    d->allocator = allocator;
    d->vocab = o->vocab ? o->vocab : VOCAB_DEFAULT;
    d->threads = o->threads ? o->threads : iron__cpu_threads();
    d->device = o->device;
    snprintf(d->backend, sizeof d->backend, "%s", backend);
    d->stats = iron__token_stats_neutral();
    d->seen = sorted_make(sizeof(span), allocator);
    d->open = sorted_make(sizeof(open_quad), allocator);
    d->sums = iron__allocate(allocator, ROUND_TASKS, sizeof *d->sums, "a digest's sums", err);
    digest->own = d;
    if (!d->sums) {
        iron_digest_deinit(digest);
        return IRON_E_NOMEM;
    }
    return IRON_OK;
}

/* Closes the GPU, if there is one, unless it is another process's. */
static void close_device(digest_data *d) {
    if (d->gpu && d->gpu_owner == getpid()) {
        iron__seal_device_close(d->gpu);
        iron__release(d->allocator, d->gpu);
    }
    d->gpu = NULL;
}

void iron_digest_deinit(iron_digest *digest) {
    digest_data *d = digest ? digest->own : NULL;
    const iron_allocator *allocator;

    if (!d)
        return;
    allocator = d->allocator;
    close_device(d);
    if (d->pool && d->pool_owner == getpid()) /* a forked process has no such threads to end */
        iron__thread_pool_destroy(d->pool);
    sorted_deinit(&d->seen);
    sorted_deinit(&d->open);
    iron__release(allocator, d->sums);
    iron__release(allocator, d);
    digest->own = NULL;
}

/* NULL with err filled: not initialised. */
static digest_data *data_of(const iron_digest *digest, iron_error *err) {
    if (!digest || !digest->own) {
        iron__fail(err, IRON_E_STATE, 0, "the digest is not initialised; call iron_digest_init");
        return NULL;
    }
    return digest->own;
}

/* Adding pieces.
 *
 *     tokens      . . 2 3 | 4 5 6 7 | 8 9 . .        position 2, count 8
 *     piece       head      quads     tail
 *
 * Whole quads are reduced to words and statistics where the tokens are: by threads or by a GPU. The
 * edges, at most three tokens each, come along as tokens, and wait in `open` for their
 * neighbours. */

/* Tokens position ... position+count-1 of the stream. One that reaches no quad's end is all tail if
 * it begins where a quad does, otherwise all head. */
typedef struct digest_piece {
    uint64_t position, count, quads;
    uint32_t heads, tails;     /* tokens before the first and after the last whole quad: */
    uint32_t head[3], tail[3]; /* these */
    quads_sum sum;             /* of the whole quads in between, at their places in the stream */
} digest_piece;

static digest_piece piece_of(uint64_t position, uint64_t count) {
    uint64_t heads = iron__min((4 - position % 4) % 4, count);

    return (digest_piece){.position = position,
                          .count = count,
                          .quads = (count - heads) / 4,
                          .heads = (uint32_t)heads,
                          .tails = (uint32_t)((count - heads) % 4),
                          .sum = no_tokens()};
}

static iron_status refuse_seen(span seen, iron_error *err) {
    static const char *const advice = "was a batch repeated, or is its position wrong?";

    if (seen.end - seen.first == 1)
        IRON_FAIL(err, IRON_E_STATE, "position %" PRIu64 " was seen before; %s", seen.first,
                  advice);
    IRON_FAIL(err, IRON_E_STATE, "positions %" PRIu64 " to %" PRIu64 " were seen before; %s",
              seen.first, seen.end - 1, advice);
}

/* Refuses positions that were seen before and those beyond the last one. */
static iron_status check_range(const digest_data *d, uint64_t position, uint64_t count,
                               iron_error *err) {
    span piece = {position, position + count}, seen;

    IRON_FAIL_IF(count > UINT64_MAX - position, err, IRON_E_ARG,
                 "%" PRIu64 " tokens from position %" PRIu64
                 " pass the last one, 18446744073709551614; check the position",
                 count, position);
    if (count > 0 && coverage_overlaps(&d->seen, piece, &seen))
        return refuse_seen(seen, err);
    return IRON_OK;
}

/* Tokens of one quad, which they do not fill. */
static void add_edge(digest_data *d, uint64_t position, const uint32_t *tokens, uint32_t count) {
    open_quad part = {.quad = position / 4};

    if (count == 0)
        return;
    for (uint32_t k = 0; k < count; k++) {
        part.tokens[position % 4 + k] = tokens[k];
        part.mask |= 1u << (position % 4 + k);
    }
    open_quads_add(&d->open, &part, &d->words);
    iron__stats_add(&d->stats, tokens, count, position, d->vocab);
}

/* Checks, then adds a piece that is not empty. On failure nothing has changed. */
static iron_status add_piece(digest_data *d, const digest_piece *piece, iron_error *err) {
    uint64_t position = piece->position, end = position + piece->count;

    IRON_TRY(check_range(d, position, piece->count, err));
    IRON_TRY(sorted_reserve(&d->seen, 1, err));
    IRON_TRY(sorted_reserve(&d->open, 2, err));

    coverage_add(&d->seen, &(span){position, end});
    d->words = iron__seal_merge(d->words, piece->sum.words);
    d->stats = iron__token_stats_merge(d->stats, piece->sum.stats);
    add_edge(d, position, piece->head, piece->heads);
    add_edge(d, end - piece->tails, piece->tail, piece->tails);
    return IRON_OK;
}

/* Up to three tokens at an edge of the view; false if a value is not a token. */
static bool read_edge(const iron__tokens_view *view, size_t begin, size_t count,
                      uint32_t tokens[3]) {
    for (size_t k = 0; k < count; k++) {
        int64_t stored = iron__view_stored(view, begin + k);

        if (stored < 0 || stored > UINT32_MAX)
            return false;
        tokens[k] = (uint32_t)stored;
    }
    return true;
}

iron_status iron_digest_update(iron_digest *digest, uint64_t position, iron_dtype dtype,
                               const void *tokens, size_t count, iron_error *err) {
    digest_data *d = data_of(digest, err);
    iron__tokens_view view = {dtype, tokens, count}, quads;
    digest_piece piece = piece_of(position, count);
    iron__thread_pool *pool = NULL;

    if (!d)
        return IRON_E_STATE;
    if (count == 0)
        return IRON_OK;
    IRON_TRY(iron__stored_check_memory(&view, "tokens", err));
    IRON_TRY(check_range(d, position, count, err));
    /* Threads are started when a piece is first long enough for two: most digests of a data loader
     * see short pieces only. A loader may also fork its workers, and a fork has the digest but none
     * of its threads; so the owning process is remembered, and another one starts its own. */
    if (count > TASK_TOKENS && d->threads > 1) {
        if (!d->pool || d->pool_owner != getpid()) {
            d->pool = NULL;
            IRON_TRY(iron__thread_pool_create(d->threads, d->allocator, &d->pool, err));
            d->pool_owner = getpid();
        }
        pool = d->pool;
    }
    quads = iron__view_rest(&view, piece.heads);
    quads.count = 4 * (size_t)piece.quads;
    piece.sum = sum_quads(d, &quads, (position + piece.heads) / 4, pool);
    if (piece.sum.has_bad || !read_edge(&view, 0, piece.heads, piece.head) ||
        !read_edge(&view, count - piece.tails, piece.tails, piece.tail)) {
        IRON_TRY(iron__view_check(&view, position, err));
        IRON_FAIL(err, IRON_E_FORMAT, "the tokens changed while they were read; give a copy");
    }
    return add_piece(d, &piece, err);
}

/* Tokens in a GPU's memory.
 *
 * Whole quads are reduced where they are; the few tokens at the edges are copied to the host. A
 * device is opened when the first piece needs it. Signed tokens have not been checked: negative
 * 32-bit ones show as a maximum that is too large, values of more than 32 bits set a flag while
 * they are narrowed; then the tokens are copied to the host in blocks until the first bad one is
 * found, for the message. */

/* Tokens that are checked on the host at a time, when one of them is bad. */
#define CHECK_TOKENS 65536u

/* The caller's tokens. */
typedef struct resident {
    uintptr_t tokens, stream;
    iron_dtype dtype;
} resident;

static iron_status open_device(digest_data *d, iron_error *err) {
    iron__seal_device_config config = {
        .device = d->device, .vocab = d->vocab, .allocator = d->allocator};
    iron__gpu_devices devices = {.count = 1, .index = {d->device}};
    iron_status status;

    if (d->gpu && d->gpu_owner == getpid())
        return IRON_OK;
    IRON_TRY(iron__gpu_choose(d->backend, &devices, err));
    config.backend = devices.backend;
    IRON_FAIL_IF(config.backend == iron__gpu_backend_count(), err, IRON_E_UNSUPPORTED,
                 "no CUDA or OpenCL GPU was found; copy the tokens to memory and use "
                 "iron_digest_update");
    d->gpu_owner = getpid();
    IRON_TRY(IRON_ALLOCATE(&d->gpu, d->allocator, 1, "a GPU's digest", err));
    status = iron__seal_device_open(d->gpu, &config, err);
    if (status != IRON_OK)
        close_device(d);
    return status;
}

/* Copies up to three tokens at an edge to the host. */
static iron_status read_device_edge(digest_data *d, const resident *r, uint64_t first,
                                    uint32_t count, uint64_t position, uint32_t *edge,
                                    iron_error *err) {
    uint64_t stored[3];
    iron__tokens_view view = {r->dtype, stored, count};

    if (count == 0)
        return IRON_OK;
    IRON_TRY(iron__gpu_feed_read_device(d->gpu->feed, r->tokens, r->dtype, first, count, r->stream,
                                        stored, err));
    (void)read_edge(&view, 0, count, edge);
    return iron__view_check(&view, position, err);
}

static iron_status add_resident(digest_data *d, const resident *r, digest_piece *piece,
                                iron_error *err) {
    uint64_t tail_at = piece->heads + 4 * piece->quads;
    iron__gpu_feed *feed = d->gpu->feed;
    quads_sum *sum = &piece->sum;

    if (piece->quads > 0) {
        IRON_TRY(iron__seal_device_begin(d->gpu, piece->position + piece->heads, err));
        IRON_TRY(iron__gpu_feed_resident(feed, r->tokens, r->dtype, piece->heads, 4 * piece->quads,
                                         r->stream, err));
        IRON_TRY(iron__seal_device_fetch(d->gpu, &sum->words, &sum->stats, err));
        sum->has_bad = r->dtype == IRON_DTYPE_I32 && sum->stats.max > (uint32_t)INT32_MAX;
        if (r->dtype == IRON_DTYPE_I64)
            IRON_TRY(iron__gpu_feed_has_overflow(feed, &sum->has_bad, err));
    }
    if (sum->has_bad) {
        /* fails with the first value that is not a token, and its position */
        iron_status status = IRON_OK;
        void *some = iron__allocate(d->allocator, CHECK_TOKENS, iron_dtype_bytes(r->dtype),
                                    "tokens to check", err);

        if (!some)
            return IRON_E_NOMEM;
        for (uint64_t done = 0; status == IRON_OK && done < piece->count; done += CHECK_TOKENS) {
            iron__tokens_view view = {r->dtype, some,
                                      iron__min_size(CHECK_TOKENS, piece->count - done)};

            status = iron__gpu_feed_read_device(feed, r->tokens, r->dtype, done, view.count,
                                                r->stream, some, err);
            if (status == IRON_OK)
                status = iron__view_check(&view, piece->position + done, err);
        }
        iron__release(d->allocator, some);
        if (status == IRON_OK) /* the memory was written to meanwhile */
            return iron__fail(err, IRON_E_FORMAT, 0,
                              "a token was not 0 to 4294967295, and has changed since");
        return status;
    }
    IRON_TRY(read_device_edge(d, r, 0, piece->heads, piece->position, piece->head, err));
    IRON_TRY(
        read_device_edge(d, r, tail_at, piece->tails, piece->position + tail_at, piece->tail, err));
    return add_piece(d, piece, err);
}

iron_status iron_digest_update_device(iron_digest *digest, uint64_t position, iron_dtype dtype,
                                      const void *tokens, uint64_t count, void *stream,
                                      iron_error *err) {
    digest_data *d = data_of(digest, err);
    digest_piece piece = piece_of(position, count);
    resident r = {(uintptr_t)tokens, (uintptr_t)stream, dtype};
    iron_status status;

    if (!d)
        return IRON_E_STATE;
    if (count == 0)
        return IRON_OK;
    IRON_FAIL_IF(iron_dtype_bytes(dtype) == 0, err, IRON_E_ARG,
                 "dtype %d is unknown; use an iron_dtype", (int)dtype);
    IRON_FAIL_IF(!tokens, err, IRON_E_ARG, "the tokens are at NULL; give their address");
    IRON_TRY(check_range(d, position, count, err));
    IRON_TRY(open_device(d, err));
    status = add_resident(d, &r, &piece, err);
    if (status != IRON_OK && status != IRON_E_FORMAT)
        close_device(d); /* a device that failed is not used again */
    return status;
}

void *iron_digest_native_context(iron_digest *digest, iron_error *err) {
    digest_data *d = data_of(digest, err);

    if (!d || open_device(d, err) != IRON_OK)
        return NULL;
    return (void *)iron__gpu_feed_context(d->gpu->feed);
}

/* Merging and results. */

iron_status iron_digest_merge(iron_digest *digest, const iron_digest *other, iron_error *err) {
    digest_data *d = data_of(digest, err);
    const digest_data *o = d ? data_of(other, err) : NULL;
    iron__seal_words words;
    sorted_array seen, open;
    iron_status status;
    span both;

    if (!d || !o)
        return IRON_E_STATE;
    IRON_FAIL_IF(d->vocab != o->vocab, err, IRON_E_ARG,
                 "digests with vocab %" PRIu64 " and %" PRIu64
                 " do not merge; make them with the same",
                 d->vocab, o->vocab);
    if (coverage_meets(&d->seen, &o->seen, &both))
        return refuse_seen(both, err);
    if (o->seen.count == 0)
        return IRON_OK;
    /* what both have seen, in new memory that replaces the digest's */
    words = iron__seal_merge(d->words, o->words);
    IRON_TRY(join_arrays(&d->seen, &o->seen, &seen, NULL, err));
    status = join_arrays(&d->open, &o->open, &open, &words, err);
    if (status != IRON_OK) {
        sorted_deinit(&seen);
        return status;
    }
    sorted_deinit(&d->seen);
    sorted_deinit(&d->open);
    d->seen = seen;
    d->open = open;
    d->words = words;
    d->stats = iron__token_stats_merge(d->stats, o->stats);
    return IRON_OK;
}

void iron_digest_gap(const iron_digest *digest, uint64_t *first, uint64_t *end) {
    const digest_data *d = data_of(digest, NULL);
    span gap = {0, IRON_COUNT_UNKNOWN};

    if (d)
        gap = coverage_gap(&d->seen);
    *first = gap.first;
    *end = gap.end;
}

iron_status iron_digest_final(const iron_digest *digest, iron_digest_result *result,
                              iron_error *err) {
    const digest_data *d = data_of(digest, err);
    const open_quad *last;
    sorted_place at;
    span gap;
    iron__seal_words w;

    if (!d)
        return IRON_E_STATE;
    IRON_TRY(iron__struct_check(result, sizeof *result, "iron_digest_result", err));
    gap = coverage_gap(&d->seen);
    IRON_FAIL_IF(gap.end != IRON_COUNT_UNKNOWN, err, IRON_E_STATE,
                 "positions %" PRIu64 " to %" PRIu64
                 " were not seen, and later ones were; update or merge them first",
                 gap.first, gap.end - 1);
    w = d->words;
    last = sorted_first(&d->open, &at); /* without a gap, only the last quad can be open */
    if (last)
        iron__seal_quads(&w, last->tokens, last->quad, 1); /* its missing tokens are zeros */
    w.count = gap.first;
    iron__digest_result_set(result, w, &d->stats, d->vocab);
    return IRON_OK;
}

void iron__digest_result_set(iron_digest_result *result, iron__seal_words words,
                             const iron__token_stats *stats, uint64_t vocab) {
    *result = (iron_digest_result){.struct_size = sizeof *result,
                                   .seal_version = IRON_SEAL_VERSION,
                                   .words = {words.count, words.t, words.a, words.b},
                                   .tokens = words.count,
                                   .vocab = vocab,
                                   .out_of_vocab = stats->out_of_vocab,
                                   .first_out_position = stats->first_position,
                                   .first_out_value = stats->first_value,
                                   .min = stats->min,
                                   .max = stats->max};
    iron__seal_text(words, result->seal);
}

static iron__token_stats stats_of(const iron_digest_result *r) {
    return (iron__token_stats){r->out_of_vocab, r->first_out_position, r->first_out_value, r->min,
                               r->max};
}

static iron__seal_words words_of(const iron_digest_result *r) {
    return (iron__seal_words){r->words[0], r->words[1], r->words[2], r->words[3]};
}

static iron_status check_result(const iron_digest_result *r, iron_error *err) {
    IRON_TRY(iron__struct_check(r, sizeof *r, "iron_digest_result", err));
    IRON_FAIL_IF(r->seal_version != IRON_SEAL_VERSION, err, IRON_E_ARG,
                 "a result of seal version %u; this library has %u", r->seal_version,
                 IRON_SEAL_VERSION);
    return IRON_OK;
}

/* A part's words are those of its tokens at the stream's positions, so they add up, like everything
 * else here, in any order and grouping. */
iron_status iron_digest_result_add(iron_digest_result *result, const iron_digest_result *other,
                                   iron_error *err) {
    iron__token_stats s;

    IRON_TRY(check_result(result, err));
    IRON_TRY(check_result(other, err));
    IRON_FAIL_IF(result->vocab != other->vocab, err, IRON_E_ARG,
                 "results for vocabularies of %" PRIu64 " and %" PRIu64 "; parts must have one",
                 result->vocab, other->vocab);
    s = iron__token_stats_merge(stats_of(result), stats_of(other));
    iron__digest_result_set(result, iron__seal_merge(words_of(result), words_of(other)), &s,
                            result->vocab);
    return IRON_OK;
}

/* A digest as bytes, the same on every machine, saved and loaded.
 *
 * Version 1, all numbers little-endian:
 *
 *     0    "IRONDGST"
 *     8    u32 version, u32 seal version
 *     16   u64 vocab
 *     24   u64 count, T, A, B            of whole quads only
 *     56   u64 out of vocab, position of the first
 *     72   u32 its value, min, max, 0
 *     88   u64 spans, u64 open quads
 *     104  spans:       u64 first, u64 end
 *          open quads:  u64 quad, u32 tokens[4], u32 mask, u32 0
 *     -8   u64 FNV-1a of everything before it
 *
 * Loading checks magic, version, length, checksum and every value, in this order. A state that
 * passes is one that some stream leaves, as far as sums can tell, and no later call can be
 * surprised by it. */

#define MAGIC   "IRONDGST"
#define VERSION 1u

typedef struct saved_header {
    char magic[8];
    uint32_t version, seal_version;
    uint64_t vocab;
    iron__seal_words words;
    uint64_t out_of_vocab, first_position;
    uint32_t first_value, min, max, zero;
    uint64_t spans, quads;
} saved_header;

/* All machines are little-endian (core/nodes.c): the bytes of these structs are those above. */
_Static_assert(sizeof(saved_header) == 104 && sizeof(span) == 16 && sizeof(open_quad) == 32,
               "saved structs have no padding");

iron_status iron_digest_save(const iron_digest *digest, void *buffer, size_t capacity,
                             size_t *bytes, iron_error *err) {
    const digest_data *d = data_of(digest, err);
    unsigned char *to = buffer;
    uint64_t checksum;
    saved_header h;

    *bytes = 0;
    if (!d)
        return IRON_E_STATE;
    *bytes = sizeof h + d->seen.count * sizeof(span) + d->open.count * sizeof(open_quad) +
             sizeof checksum;
    if (!buffer)
        return IRON_OK;
    IRON_FAIL_IF(capacity < *bytes, err, IRON_E_ARG,
                 "a digest's state takes %zu bytes and the buffer has %zu; ask for the size "
                 "with a NULL buffer first",
                 *bytes, capacity);
    h = (saved_header){.version = VERSION,
                       .seal_version = IRON_SEAL_VERSION,
                       .vocab = d->vocab,
                       .words = d->words,
                       .out_of_vocab = d->stats.out_of_vocab,
                       .first_position = d->stats.first_position,
                       .first_value = d->stats.first_value,
                       .min = d->stats.min,
                       .max = d->stats.max,
                       .spans = d->seen.count,
                       .quads = d->open.count};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(to, &h, sizeof h);
    to = sorted_copy(&d->open, sorted_copy(&d->seen, to + sizeof h));
    checksum = iron__fnv(IRON_FNV_START, buffer, *bytes - sizeof checksum);
    memcpy(to, &checksum, sizeof checksum);
    return IRON_OK;
}

/* Are these complete bytes that this version can read? */
static iron_status check_frame(const unsigned char *data, size_t bytes, saved_header *h,
                               iron_error *err) {
    const size_t least = sizeof *h + sizeof(uint64_t);

    memcpy(h, data, iron__min_size(bytes, sizeof *h));
    IRON_FAIL_IF(bytes < 16 || memcmp(h->magic, MAGIC, sizeof h->magic) != 0, err, IRON_E_FORMAT,
                 "not a saved digest: its %zu bytes do not begin with " MAGIC, bytes);
    IRON_FAIL_IF(h->version > VERSION, err, IRON_E_FORMAT,
                 "the digest's state has version %u, newer than %u; load it with a newer iron",
                 h->version, VERSION);
    IRON_FAIL_IF(h->seal_version > IRON_SEAL_VERSION, err, IRON_E_FORMAT,
                 "the digest's state has seal version %u, newer than %u; load it with a newer iron",
                 h->seal_version, IRON_SEAL_VERSION);
    IRON_FAIL_IF(h->version < 1 || h->seal_version < 1, err, IRON_E_FORMAT,
                 "the digest's state is damaged: version %u, seal version %u", h->version,
                 h->seal_version);
    IRON_FAIL_IF(bytes < least, err, IRON_E_FORMAT,
                 "the digest's state is truncated: it has %zu bytes, and at least %zu are needed",
                 bytes, least);
    IRON_FAIL_IF(iron__load_u64(data + bytes - sizeof(uint64_t)) !=
                     iron__fnv(IRON_FNV_START, data, bytes - sizeof(uint64_t)),
                 err, IRON_E_FORMAT,
                 "the digest's state is damaged or cut short: its checksum differs");
    return IRON_OK;
}

/* Reads what follows the header: `left` bytes. */
static iron_status get_state(const saved_header *h, const unsigned char *from, size_t left,
                             digest_data *d, iron_error *err) {
    open_quad q = {0};
    span s = {0, 0};

    d->vocab = h->vocab;
    d->words = h->words;
    d->stats =
        (iron__token_stats){h->out_of_vocab, h->first_position, h->first_value, h->min, h->max};
    IRON_FAIL_IF(h->zero != 0 || h->spans > left / sizeof s || h->quads > left / sizeof q ||
                     h->spans * sizeof s + h->quads * sizeof q != left,
                 err, IRON_E_FORMAT,
                 "the digest's state is damaged: %" PRIu64 " spans and %" PRIu64
                 " open quads do not take %zu bytes",
                 h->spans, h->quads, left);
    /* spans in order, with a gap before each but the first */
    IRON_TRY(sorted_reserve_append(&d->seen, (size_t)h->spans, err));
    for (uint64_t k = 0; k < h->spans; k++, from += sizeof s) {
        uint64_t before = s.end;

        memcpy(&s, from, sizeof s);
        IRON_FAIL_IF(s.first >= s.end || (k > 0 && s.first <= before), err, IRON_E_FORMAT,
                     "the digest's state is invalid: span %" PRIu64 " of its positions, %" PRIu64
                     " to %" PRIu64 ", is empty or out of order",
                     k, s.first, s.end);
        sorted_insert(&d->seen, &s);
    }
    IRON_TRY(sorted_reserve_append(&d->open, (size_t)h->quads, err));
    for (uint64_t k = 0; k < h->quads; k++, from += sizeof q) {
        uint64_t before = q.quad;

        memcpy(&q, from, sizeof q);
        IRON_FAIL_IF(q.zero != 0 || (k > 0 && q.quad <= before), err, IRON_E_FORMAT,
                     "the digest's state is invalid: open quad %" PRIu64
                     " is out of order, or its last bytes are not zero",
                     q.quad);
        sorted_insert(&d->open, &q);
    }
    return IRON_OK;
}

/* The checks of values. Positions come first: everything else follows from them or is bounded by
 * them. The edges of what was seen say which quads are open; from these follows how many tokens the
 * words have; sums and statistics must be possible for so many tokens of such values. */

/* Which of the four positions of a quad were seen: bit k is position 4 * quad + k. */
static uint32_t seen_of_quad(const sorted_array *c, uint64_t quad) {
    uint32_t mask = 0;

    for (uint32_t k = 0; k < 4; k++) {
        uint64_t position = 4 * quad + k;
        span seen;

        if (position != UINT64_MAX && coverage_overlaps(c, (span){position, position + 1}, &seen))
            mask |= 1u << k;
    }
    return mask;
}

/* Every edge inside a quad leaves that quad open, and nothing else does. */
static iron_status check_open(const digest_data *d, iron_error *err) {
    sorted_place at, quad_at;
    const span *s = sorted_first(&d->seen, &at);
    const open_quad *q = sorted_first(&d->open, &quad_at);
    uint64_t last = UINT64_MAX;

    for (; s; s = sorted_next(&d->seen, &at)) {
        const uint64_t edges[2] = {s->first, s->end};

        for (size_t e = 0; e < 2; e++) {
            uint64_t quad = edges[e] / 4;
            bool is_right;

            if (edges[e] % 4 == 0 || quad == last)
                continue;
            is_right = q && q->quad == quad && q->mask == seen_of_quad(&d->seen, quad);
            for (uint32_t k = 0; is_right && k < 4; k++)
                is_right = q->mask & 1u << k || q->tokens[k] == 0;
            IRON_FAIL_IF(!is_right, err, IRON_E_FORMAT,
                         "the digest's state is invalid: its tokens of quad %" PRIu64
                         " do not match the positions it has seen",
                         quad);
            q = sorted_next(&d->open, &quad_at);
            last = quad;
        }
    }
    IRON_FAIL_IF(q, err, IRON_E_FORMAT,
                 "the digest's state is invalid: quad %" PRIu64
                 " is open, but no position seen leaves it open",
                 q->quad);
    return IRON_OK;
}

/* Statistics of the tokens in open quads, and how many there are. */
static iron__token_stats stats_of_open(const digest_data *d, uint64_t *tokens) {
    iron__token_stats stats = iron__token_stats_neutral();
    sorted_place at;
    const open_quad *q = sorted_first(&d->open, &at);

    *tokens = 0;
    for (; q; q = sorted_next(&d->open, &at)) {
        for (uint32_t i = 0; i < 4; i++) {
            if (!(q->mask & 1u << i))
                continue;
            iron__stats_add(&stats, &q->tokens[i], 1, 4 * q->quad + i, d->vocab);
            ++*tokens;
        }
    }
    return stats;
}

/* Is T possible for so many tokens between min and max? */
static bool sum_is_possible(iron__seal_words w, const iron__token_stats *s) {
    uint64_t least, most;

    if (w.count == 0)
        return w.t == 0 && w.a == 0 && w.b == 0;
    if (__builtin_mul_overflow(w.count, (uint64_t)s->max, &most))
        return true;
    least = w.count * s->min;
    return least <= w.t && w.t <= most;
}

static bool first_out_is_possible(const digest_data *d, const iron__token_stats *open) {
    const iron__token_stats *s = &d->stats;
    span at = {s->first_position, s->first_position + 1}, seen;

    if (s->out_of_vocab == 0)
        return s->first_position == UINT64_MAX && s->first_value == 0;
    if (s->first_position == UINT64_MAX || !coverage_overlaps(&d->seen, at, &seen))
        return false;
    if (s->first_position > open->first_position)
        return false;
    if (s->first_position == open->first_position)
        return s->first_value == open->first_value;
    /* then it is in a whole quad: one in an open quad is in open->first_position */
    return seen_of_quad(&d->seen, s->first_position / 4) == QUAD_WHOLE &&
           s->first_value >= d->vocab && s->first_value >= s->min && s->first_value <= s->max;
}

static bool stats_are_possible(const digest_data *d, uint64_t total, uint64_t open_tokens,
                               const iron__token_stats *open) {
    const iron__token_stats *s = &d->stats;

    if (total == 0)
        return s->min == UINT32_MAX && s->max == 0 && s->out_of_vocab == 0;
    if (s->min > s->max || s->min > open->min || s->max < open->max)
        return false;
    if (total == open_tokens && (s->min != open->min || s->max != open->max))
        return false;
    if (s->out_of_vocab < open->out_of_vocab ||
        s->out_of_vocab - open->out_of_vocab > total - open_tokens)
        return false;
    return (s->max >= d->vocab) == (s->out_of_vocab > 0) &&
           (s->min >= d->vocab) == (s->out_of_vocab == total);
}

static iron_status check_state(const digest_data *d, iron_error *err) {
    sorted_place at;
    const span *s = sorted_first(&d->seen, &at);
    iron__token_stats open;
    uint64_t total = 0, open_tokens;

    IRON_FAIL_IF(d->vocab < 1 || d->vocab > VOCAB_MAX, err, IRON_E_FORMAT,
                 "the digest's state is invalid: vocab is %" PRIu64 ", not 1 to 4294967296",
                 d->vocab);
    IRON_TRY(check_open(d, err));
    for (; s; s = sorted_next(&d->seen, &at))
        total += s->end - s->first;
    open = stats_of_open(d, &open_tokens);
    IRON_FAIL_IF(d->words.count != total - open_tokens, err, IRON_E_FORMAT,
                 "the digest's state is invalid: its words are of %" PRIu64 " tokens, and %" PRIu64
                 " were seen in whole quads",
                 d->words.count, total - open_tokens);
    IRON_FAIL_IF(
        !stats_are_possible(d, total, open_tokens, &open) || !first_out_is_possible(d, &open), err,
        IRON_E_FORMAT, "the digest's state is invalid: its statistics contradict each other");
    IRON_FAIL_IF(!sum_is_possible(d->words, &d->stats), err, IRON_E_FORMAT,
                 "the digest's state is invalid: tokens between %u and %u cannot have its sum",
                 d->stats.min, d->stats.max);
    return IRON_OK;
}

iron_status iron_digest_load(iron_digest *digest, const iron_digest_options *options,
                             const void *buffer, size_t bytes, iron_error *err) {
    const unsigned char *data = buffer;
    saved_header h = {.version = 0};
    iron_status status;
    digest_data *d;

    digest->own = NULL;
    IRON_FAIL_IF(!data, err, IRON_E_ARG, "a digest's state at NULL; give its address");
    IRON_TRY(check_frame(data, bytes, &h, err));
    IRON_TRY(iron_digest_init(digest, options, err));
    d = digest->own;
    status = get_state(&h, data + sizeof h, bytes - sizeof h - sizeof(uint64_t), d, err);
    if (status == IRON_OK)
        status = check_state(d, err);
    if (status == IRON_OK && options && options->vocab && options->vocab != d->vocab)
        status = iron__fail(err, IRON_E_ARG, 0,
                            "the digest was saved with vocab %" PRIu64 ", not %" PRIu64
                            "; give the same, or 0 for the saved one",
                            d->vocab, options->vocab);
    if (status != IRON_OK)
        iron_digest_deinit(digest);
    return status;
}
