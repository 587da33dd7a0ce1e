/* SPDX-License-Identifier: MIT */
/*
 * tokens_cpu.c: the rows of tokens.h on the CPU, and all of their code that is plain C.
 *
 * The contribution, in this order:
 *   scalar     the reference: SPEC's definition, token by token, with %. Everything else is checked
 *              against it.
 *   by_groups  what all vector rows share: whole groups of 16 positions, aligned in the stream, in
 *              which the position hash is linear; the few tokens before and after one by one.
 *   portable   no division, and loops over groups that any compiler can vectorise: for processors
 *              without vector code here, and the baseline for those with it.
 *   hybrid     what one node does in the papers' Part I: 256 threads with a stride of 256 tokens,
 *              then a tree. (`node`, one loop over all tokens, is iron__tokens_one_by_one.) The
 *              engine calls these once per node: O(nodes x tokens), kept to show what
 *              reduce-then-apply saves. Same bits.
 *
 * The seal, likewise: the reference (core/seal.c, then one look at each token), by_parts, which
 * cuts a run for the vector loops (tokens_cpu.h explains), and the portable loops over groups of
 * quads: the keys of a group into a small array, then its products, then its statistics.
 */
#include "ops/tokens/tokens_cpu.h"

#include "core/hash.h"
#include "core/number.h"

#include <string.h>

iron__contribution iron__tokens_scalar(const iron__tokens_run *run) {
    iron__contribution c = {.count = run->count};
    uint32_t vocab = run->divisor->vocab;

    for (size_t k = 0; k < run->count; k++) {
        uint32_t p = run->tokens[k] + iron__position_hash(run->first + k);

        c.xors ^= p;
        c.sum += p % vocab;
    }
    return c;
}

iron__contribution iron__tokens_one_by_one(const iron__tokens_run *run) {
    iron__contribution c = {.count = run->count};

    for (size_t k = 0; k < run->count; k++) {
        uint32_t token = run->tokens_u16 ? run->tokens_u16[k] : run->tokens[k];
        uint32_t p = token + iron__position_hash(run->first + k);

        c.xors ^= p;
        c.sum += iron__divisor_remainder(run->divisor, p);
    }
    return c;
}

iron__tokens_run iron__tokens_part(const iron__tokens_run *run, size_t begin, size_t count) {
    return (iron__tokens_run){run->tokens_u16 ? NULL : run->tokens + begin, count,
                              run->first + begin, run->divisor,
                              run->tokens_u16 ? run->tokens_u16 + begin : NULL};
}

iron__contribution iron__tokens_by_groups(const iron__tokens_run *run,
                                          iron__tokens_reduce reduce_groups) {
    size_t head = iron__min_size(run->count, -run->first % IRON_HASH_GROUP);
    size_t body = (run->count - head) / IRON_HASH_GROUP * IRON_HASH_GROUP;
    iron__tokens_run before = iron__tokens_part(run, 0, head);
    iron__tokens_run groups = iron__tokens_part(run, head, body);
    iron__tokens_run after = iron__tokens_part(run, head + body, run->count - head - body);
    iron__contribution c = iron__tokens_one_by_one(&before);

    if (body)
        c = iron__contribution_merge(c, reduce_groups(&groups));
    return iron__contribution_merge(c, iron__tokens_one_by_one(&after));
}

/* Whole groups; run->first is a multiple of 16. `is_u16` is a constant wherever this is used. */
static inline iron__contribution reduce_groups_of(const iron__tokens_run *run, bool is_u16) {
    const iron__divisor d = *run->divisor;
    uint32_t hash = iron__position_hash(run->first);
    uint32_t xors[IRON_HASH_GROUP] = {0};
    uint64_t sums[IRON_HASH_GROUP] = {0};
    iron__contribution c = {.count = run->count};

    for (size_t k = 0; k < run->count; k += IRON_HASH_GROUP, hash += IRON_HASH_GROUP_STEP) {
        for (uint32_t lane = 0; lane < IRON_HASH_GROUP; lane++) {
            uint32_t token = is_u16 ? run->tokens_u16[k + lane] : run->tokens[k + lane];
            uint32_t p = token + (hash + IRON_HASH_STEP * lane);

            xors[lane] ^= p;
            sums[lane] += iron__divisor_remainder(&d, p);
        }
    }
    for (uint32_t lane = 0; lane < IRON_HASH_GROUP; lane++) {
        c.xors ^= xors[lane];
        c.sum += sums[lane];
    }
    return c;
}

static iron__contribution reduce_groups(const iron__tokens_run *run) {
    return run->tokens_u16 ? reduce_groups_of(run, true) : reduce_groups_of(run, false);
}

static iron__contribution tokens_portable(const iron__tokens_run *run) {
    return iron__tokens_by_groups(run, reduce_groups);
}

#define HYBRID_THREADS 256u

static iron__contribution tokens_hybrid(const iron__tokens_run *run) {
    const iron__divisor d = *run->divisor;
    uint32_t xors[HYBRID_THREADS] = {0};
    uint64_t sums[HYBRID_THREADS] = {0};

    for (size_t k = 0; k < run->count; k += HYBRID_THREADS) {
        uint32_t width = (uint32_t)iron__min(run->count - k, HYBRID_THREADS);

        for (uint32_t thread = 0; thread < width; thread++) {
            uint32_t p = run->tokens[k + thread] + iron__position_hash(run->first + k + thread);

            xors[thread] ^= p;
            sums[thread] += iron__divisor_remainder(&d, p);
        }
    }
    /* the block's reduction through shared memory */
    for (uint32_t width = HYBRID_THREADS / 2; width > 0; width /= 2) {
        for (uint32_t thread = 0; thread < width; thread++) {
            xors[thread] ^= xors[thread + width];
            sums[thread] += sums[thread + width];
        }
    }
    return (iron__contribution){run->count, sums[0], xors[0]};
}

static void quads_reference(const iron__quads_run *run, iron__seal_words *words,
                            iron__token_stats *stats) {
    iron__token_stats s = iron__token_stats_neutral();

    iron__seal_quads(words, run->tokens, run->first_quad, run->quads);
    if (!stats)
        return;
    for (size_t k = 0; k < 4 * run->quads; k++) {
        uint32_t token = run->tokens[k];

        if (token < s.min)
            s.min = token;
        if (token > s.max)
            s.max = token;
        if (token >= run->vocab && s.out_of_vocab++ == 0) {
            s.first_position = 4 * run->first_quad + k;
            s.first_value = token;
        }
    }
    *stats = iron__token_stats_merge(*stats, s);
}

static inline uint32_t token_at(const iron__quads_part *part, size_t k, bool is_u16) {
    return is_u16 ? ((const uint16_t *)part->tokens)[k] : ((const uint32_t *)part->tokens)[k];
}

static bool is_u16(const iron__quads_part *part) {
    return part->quad_bytes == 4 * sizeof(uint16_t);
}

void iron__quads_one_by_one(const iron__quads_part *part, iron__quads_sums *sums) {
    uint32_t z = iron__quads_start(part->low_quad);

    for (size_t k = 0; k < 4 * part->quads; k += 4, z += IRON_SEAL_STEP) {
        uint32_t t[4];

        for (size_t j = 0; j < 4; j++)
            t[j] = token_at(part, k + j, is_u16(part));
        iron__quads_add_products(sums, t, z, part->window);
        sums->t += (uint64_t)t[0] + t[1] + t[2] + t[3];
    }
}

void iron__quads_one_by_one_stats(const iron__quads_part *part, iron__quads_sums *sums) {
    iron__quads_one_by_one(part, sums);
    for (size_t k = 0; k < 4 * part->quads; k++) {
        uint32_t token = token_at(part, k, is_u16(part));

        iron__quads_extremes(sums, token, token, true);
    }
}

/* Counts the tokens of a block that are not below the vocabulary, which is at most 2^32 - 1 here,
 * and finds the first. The caller knows that there is one. */
static inline void count_outside(const iron__quads_part *part, uint32_t vocab, bool narrow,
                                 iron__token_stats *block) {
    uint32_t outside = 0;
    size_t first = 0;

    for (size_t k = 0; k < 4 * part->quads; k++)
        outside += token_at(part, k, narrow) >= vocab;
    while (token_at(part, first, narrow) < vocab)
        first++;
    block->out_of_vocab = outside;
    block->first_position = first;
    block->first_value = token_at(part, first, narrow);
}

/* A block; `position` is that of its first token. */
static void reduce_block(const iron__quads_part *part, const iron__quads_loops *loops,
                         uint64_t position, uint64_t vocab, iron__quads_sums *sums,
                         iron__token_stats *stats) {
    bool needs_max_only = stats->min == 0 && loops->seal_max;
    iron__token_stats block = iron__token_stats_neutral();

    sums->min = UINT32_MAX;
    sums->max = 0;
    (needs_max_only ? loops->seal_max : loops->seal_stats)(part, sums);
    block.min = sums->min;
    block.max = sums->max;
    if (sums->max >= vocab) {
        if (is_u16(part))
            count_outside(part, (uint32_t)vocab, true, &block);
        else
            count_outside(part, (uint32_t)vocab, false, &block);
        block.first_position += position;
    }
    *stats = iron__token_stats_merge(*stats, block);
}

void iron__quads_by_parts(const iron__quads_run *run, const void *tokens, size_t quad_bytes,
                          const iron__quads_loops *loops, iron__seal_words *words,
                          iron__token_stats *stats) {
    bool is_long = run->quads > IRON_PREFETCH_BYTES / quad_bytes;
    size_t most = stats || quad_bytes < 16 ? IRON_QUADS_BLOCK : SIZE_MAX;
    iron__quads_sums sums = {0, 0, 0, 0, 0};

    for (size_t done = 0; done < run->quads;) {
        uint64_t quad = run->first_quad + done, in_window = (UINT64_C(1) << 32) - (uint32_t)quad;
        iron__quads_part part = {
            .tokens = (const char *)tokens + done * quad_bytes,
            .quad_bytes = quad_bytes,
            .quads = iron__min_size(iron__min_size(run->quads - done, most), in_window),
            .low_quad = (uint32_t)quad,
            .window = iron__seal_window(quad),
            .ahead = is_long ? IRON_PREFETCH_BYTES : 0};

        if (stats)
            reduce_block(&part, loops, 4 * quad, run->vocab, &sums, stats);
        else
            loops->seal(&part, &sums);
        done += part.quads;
    }
    words->count += 4 * (uint64_t)run->quads;
    words->t += sums.t;
    words->a += sums.a;
    words->b += sums.b;
}

#define PORTABLE_QUADS 16u /* of a group */

typedef struct group_keys {
    uint32_t k0[PORTABLE_QUADS], k1[PORTABLE_QUADS], k2[PORTABLE_QUADS], k3[PORTABLE_QUADS];
} group_keys;

static inline void make_keys(group_keys *g, uint32_t low_quad, uint64_t window) {
    for (uint32_t j = 0; j < PORTABLE_QUADS; j++) {
        uint32_t z = iron__quads_scrambled(iron__quads_start(low_quad + j));

        g->k0[j] = z ^ (uint32_t)window;
        g->k1[j] = (z * IRON_SEAL_STEP + IRON_SEAL_OTHER) ^ (uint32_t)(window >> 32);
        g->k2[j] = iron__quads_rotate(g->k0[j], IRON_SEAL_ROTATE_2);
        g->k3[j] = iron__quads_rotate(g->k1[j], IRON_SEAL_ROTATE_3);
    }
}

static inline void add_group(iron__quads_sums *s, const uint32_t *tokens, const group_keys *g) {
    uint64_t t = 0, a = 0, b = 0;

    for (uint32_t j = 0; j < PORTABLE_QUADS; j++) {
        const uint32_t *q = tokens + (size_t)4 * j;

        a += (uint64_t)(q[0] + g->k0[j]) * (q[1] + g->k1[j]);
        a += (uint64_t)(q[2] + g->k2[j]) * (q[3] + g->k3[j]);
        b += (uint64_t)(q[0] + g->k2[j]) * (q[2] + g->k0[j]);
        b += (uint64_t)(q[1] + g->k3[j]) * (q[3] + g->k1[j]);
        t += (uint64_t)q[0] + q[1] + q[2] + q[3];
    }
    s->t += t;
    s->a += a;
    s->b += b;
}

static void portable_seal(const iron__quads_part *part, iron__quads_sums *sums) {
    size_t whole = part->quads / PORTABLE_QUADS * PORTABLE_QUADS;
    const uint32_t *tokens = part->tokens;
    iron__quads_part rest = iron__quads_rest(part, whole);
    group_keys keys;

    for (size_t k = 0; k < whole; k += PORTABLE_QUADS) {
        make_keys(&keys, part->low_quad + (uint32_t)k, part->window);
        add_group(sums, tokens + 4 * k, &keys);
    }
    iron__quads_one_by_one(&rest, sums);
}

/* The second loop finds the block in the first-level cache. */
static void portable_seal_stats(const iron__quads_part *part, iron__quads_sums *sums) {
    const uint32_t *tokens = part->tokens;
    uint32_t min = sums->min, max = sums->max;

    portable_seal(part, sums);
    for (size_t k = 0; k < 4 * part->quads; k++) {
        min = tokens[k] < min ? tokens[k] : min;
        max = tokens[k] > max ? tokens[k] : max;
    }
    sums->min = min;
    sums->max = max;
}

static void quads_portable(const iron__quads_run *run, iron__seal_words *words,
                           iron__token_stats *stats) {
    static const iron__quads_loops loops = {portable_seal, portable_seal_stats, NULL};

    iron__quads_by_parts(run, run->tokens, 4 * sizeof(uint32_t), &loops, words, stats);
}

static const iron__vector_rows rows_portable = IRON_VECTOR_ROWS(
    "portable", 0, tokens_portable, "plain C without division, left to the compiler's vectoriser",
    quads_portable, NULL, "plain C over groups of quads, left to the compiler's vectoriser");

static const iron__tokens_variant scalar_row = {
    "tokens.cpu.scalar", "scalar", 0, iron__tokens_scalar,
    .idea = "one token at a time with %: the reference"};
static const iron__tokens_variant threads_row = {
    "tokens.cpu.threads",
    "threads",
    0,
    iron__tokens_scalar,
    .all_threads = true,
    .idea = "the reference's loop, runs distributed over all threads",
    .beats = "tokens.cpu.scalar"};
static const iron__tokens_variant node_row = {
    "tokens.cpu.node",
    "node",
    0,
    iron__tokens_one_by_one,
    .all_threads = true,
    .per_node = true,
    .idea = "each node loops over all tokens: O(nodes x tokens)"};
static const iron__tokens_variant hybrid_row = {
    "tokens.cpu.hybrid",
    "hybrid",
    0,
    tokens_hybrid,
    .all_threads = true,
    .per_node = true,
    .idea = "each node sums strided tokens, then a tree: O(nodes x tokens), vectorised",
    .beats = "tokens.cpu.node"};
static const iron__seal_variant reference_row = {
    "seal.cpu.reference", "reference", 0, quads_reference,
    .idea = "quad by quad, then token by token: the reference"};

/* A member of the vector rows of this architecture, best first. */
#if defined(__x86_64__)
#define VECTOR_ROWS(member)                                                                        \
    &iron__rows_avx512.member, &iron__rows_avx2.member, &rows_portable.member
#elif defined(__aarch64__)
#define VECTOR_ROWS(member) &iron__rows_neon.member, &rows_portable.member
#else
#define VECTOR_ROWS(member) &rows_portable.member
#endif

static const iron__tokens_variant *const variants[] = {&scalar_row,  VECTOR_ROWS(tokens),
                                                       &threads_row, VECTOR_ROWS(tokens_threads),
                                                       &node_row,    &hybrid_row};

static const iron__seal_variant *const seal_variants[] = {&reference_row, VECTOR_ROWS(seal),
                                                          VECTOR_ROWS(seal_threads)};

#define VARIANT_COUNT      (sizeof variants / sizeof variants[0])
#define SEAL_VARIANT_COUNT (sizeof seal_variants / sizeof seal_variants[0])

size_t iron__tokens_variant_count(void) { return VARIANT_COUNT; }

const iron__tokens_variant *iron__tokens_variant_at(size_t index) {
    return index < VARIANT_COUNT ? variants[index] : NULL;
}

/* A row that runs here, by mode or by full name. */
#define IS_CALLED(row, its_name)                                                                   \
    ((strcmp((row)->mode, (its_name)) == 0 || strcmp((row)->name, (its_name)) == 0) &&             \
     iron__cpu_has((row)->needs))

const iron__tokens_variant *iron__tokens_variant_find(const char *name) {
    for (size_t k = 0; k < VARIANT_COUNT; k++)
        if (IS_CALLED(variants[k], name))
            return variants[k];
    return NULL;
}

const char *iron__tokens_mode_at(size_t index) {
    size_t seen = 0;

    for (size_t k = 0; k < VARIANT_COUNT; k++) {
        if (k > 0 && strcmp(variants[k]->mode, variants[k - 1]->mode) == 0)
            continue;
        if (seen++ == index)
            return variants[k]->mode;
    }
    return NULL;
}

const iron__seal_variant *iron__seal_variant_at(size_t index) {
    return index < SEAL_VARIANT_COUNT ? seal_variants[index] : NULL;
}

const iron__seal_variant *iron__seal_variant_find(const char *name) {
    for (size_t k = 0; k < SEAL_VARIANT_COUNT; k++)
        if (IS_CALLED(seal_variants[k], name))
            return seal_variants[k];
    return NULL;
}
