/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu_resident.c: tokens that are on the device already, without an engine around the op:
 * spans that begin anywhere in a buffer, pieces that cross batches, more batches waiting than there
 * is room for, and potentials at the border where additions must go in order.
 *
 * The reference is the definition: the scalar loop for every piece, one batch after the other to
 * every node.
 */
#include "engine/selftest_gpu.h"

#include "core/fail.h"
#include "ops/tokens/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define NODES  33u
#define VOCAB  50257u
#define TOKENS 100000u

/* Potentials are exact in float up to here. */
#define EXACT 16777216

typedef struct bench {
    iron__selftest_device *d;
    iron_lattice *lattice, *wide; /* the default one, and the widest there can be */
    iron__gpu_program *program;
    iron__gpu_queue *queue;
    iron__gpu_buffer *buffer; /* of `tokens` */
    uint32_t *tokens;
} bench;

/* One check: how tokens are cut, where they begin, and what the nodes are like. */
typedef struct plan {
    const char *what;
    uint64_t batch;
    bool by_batch;
    bool is_near_limit; /* potentials begin around 2^24 */
    bool is_settled;    /* after every piece: the open batch changes its entry */
    size_t begin;       /* of the first piece in the buffer */
    const size_t *pieces;
    size_t piece_count;
    uint32_t nodes; /* 0: NODES */
    uint64_t start; /* tokens that went before: the first one's position in the stream */
    bool is_wide;   /* on the widest lattice */
} plan;

/* What the op should come to. */
typedef struct model {
    const plan *p;
    iron__divisor divisor;
    iron__nodes nodes;
    iron__contribution open, closed;
    uint64_t batches;
} model;

static void close_batch(model *m) {
    iron__batch_effect effect = {m->open.xors, iron__contribution_potential(m->open, VOCAB)};

    if (m->open.count == 0)
        return;
    iron__nodes_apply_one(&m->nodes, effect);
    m->closed = iron__contribution_merge(m->closed, m->open);
    m->open = iron__contribution_neutral();
    m->batches++;
}

static void model_feed(model *m, const uint32_t *tokens, size_t count) {
    while (count > 0) {
        uint64_t left = m->p->batch - m->open.count;
        size_t taken = count < left ? count : (size_t)left;
        iron__tokens_run run = {
            tokens, taken, m->open.count + (m->p->by_batch ? 0 : m->closed.count), &m->divisor};

        m->open = iron__contribution_merge(m->open, iron__tokens_scalar(&run));
        if (m->open.count == m->p->batch)
            close_batch(m);
        tokens += taken;
        count -= taken;
    }
}

/* On both sides of 2^24, with both signs; activations of all sizes. */
static void set_near_limit(iron__nodes *nodes) {
    for (uint32_t j = 0; j < nodes->count; j++) {
        float potential = j % 3 == 2 ? (float)(EXACT + 2 * 100 * j) : (float)(EXACT - 1 - 37 * j);

        nodes->potentials[j] = j % 2 ? -potential : potential;
        nodes->activations[j] = (j % 4 < 2 ? 1.0f : -1.0f) * (0.01f + 0.9f * (float)j);
    }
}

static uint32_t nodes_of(const plan *p) { return p->nodes ? p->nodes : NODES; }

static const iron_lattice *lattice_of(const bench *b, const plan *p) {
    return p->is_wide ? b->wide : b->lattice;
}

static iron_status init_nodes(const bench *b, const plan *p, iron__nodes *nodes, iron_error *err) {
    IRON_TRY(iron__nodes_init(nodes, nodes_of(p), lattice_of(b, p), NULL, iron__allocator_default(),
                              err));
    if (p->is_near_limit)
        set_near_limit(nodes);
    return IRON_OK;
}

static iron__contribution before(const plan *p) { return (iron__contribution){p->start, 0, 0}; }

/* All pieces through the op, and what it came to brought to `nodes` and `closed`. */
static iron_status feed_op(const bench *b, const plan *p, iron__tokens_gpu *t, iron__nodes *nodes,
                           iron__contribution *closed, iron_error *err) {
    size_t at = p->begin;

    IRON_TRY(iron__tokens_gpu_begin(t, b->queue, nodes, before(p), 0, err));
    for (size_t k = 0; k < p->piece_count; k++) {
        IRON_TRY(iron__tokens_gpu_feed(t, b->queue, b->buffer, at, p->pieces[k], err));
        at += p->pieces[k];
        if (p->is_settled)
            IRON_TRY(iron__tokens_gpu_settle(t, b->queue, err));
    }
    IRON_TRY(iron__tokens_gpu_end_batch(t, b->queue, err));
    return iron__tokens_gpu_fetch(t, b->queue, nodes, closed, err);
}

static void feed_model(const bench *b, const plan *p, model *m) {
    size_t at = p->begin;

    for (size_t k = 0; k < p->piece_count; k++) {
        model_feed(m, b->tokens + at, p->pieces[k]);
        at += p->pieces[k];
    }
    close_batch(m);
}

static void compare(const model *m, const iron__nodes *nodes, iron__contribution closed,
                    uint64_t batches, char *text, size_t size) {
    const iron__nodes *want = &m->nodes;

    if (closed.count != m->closed.count || closed.sum != m->closed.sum ||
        closed.xors != m->closed.xors || batches != m->batches) {
        snprintf(text, size,
                 "got %" PRIu64 " tokens %" PRIu64 " batches xor %08" PRIx32 " sum %" PRIu64
                 ", expected %" PRIu64 " %" PRIu64 " %08" PRIx32 " %" PRIu64,
                 closed.count, batches, closed.xors, closed.sum, m->closed.count, m->batches,
                 m->closed.xors, m->closed.sum);
        return;
    }
    for (uint32_t j = 0; j < want->count; j++) {
        if (nodes->xor_accumulators[j] == want->xor_accumulators[j] &&
            nodes->potentials[j] == want->potentials[j])
            continue;
        snprintf(text, size, "node %u: xor %u potential %.9g, expected %u %.9g", j,
                 nodes->xor_accumulators[j], (double)nodes->potentials[j],
                 want->xor_accumulators[j], (double)want->potentials[j]);
        return;
    }
}

static iron_status run_plan(const bench *b, const iron__tokens_gpu_row *row, const plan *p,
                            char *text, size_t size, iron_error *err) {
    iron__tokens_gpu_config config = {.row = row,
                                      .lattice = lattice_of(b, p),
                                      .allocator = iron__allocator_default(),
                                      .program = b->program,
                                      .batch = p->batch,
                                      .nodes = nodes_of(p),
                                      .vocab = VOCAB,
                                      .by_batch = p->by_batch,
                                      .is_chained = p->begin == 0}; /* on CUDA: overlapping */
    model m = {.p = p, .closed = before(p), .divisor = iron__divisor_make(VOCAB)};
    iron__contribution closed;
    iron__tokens_gpu *t = NULL;
    iron__nodes nodes = {0};
    iron_status status;

    status = init_nodes(b, p, &nodes, err);
    if (status == IRON_OK)
        status = init_nodes(b, p, &m.nodes, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_create(b->d->device, &config, &t, err);
    if (status == IRON_OK)
        status = feed_op(b, p, t, &nodes, &closed, err);
    if (status == IRON_OK) {
        feed_model(b, p, &m);
        compare(&m, &nodes, closed, iron__tokens_gpu_progress_of(t).batches, text, size);
    }
    iron__tokens_gpu_destroy(t);
    iron__nodes_deinit(&m.nodes);
    iron__nodes_deinit(&nodes);
    return status;
}

static void test_plan(const bench *b, const iron__tokens_gpu_row *row, const plan *p) {
    char what[160], text[280] = "";
    iron__selftest_name name;
    iron_error err;
    iron_status status;

    if (b->d->is_lost)
        return;
    snprintf(what, sizeof what, "on the device: %s, from %zu, batch %" PRIu64, p->what, p->begin,
             p->batch);
    name = iron__selftest_name_of(b->d, row, what);
    if (!iron__selftest_wants(b->d->test, name.text))
        return;
    status = run_plan(b, row, p, text, sizeof text, &err);
    iron__selftest_tell_gpu(b->d, name.text, status, text, &err);
}

#define PIECES(list) .pieces = (list), .piece_count = COUNT(list)

/* Pieces around quads, warps and batches, at every alignment. */
static void test_alignments(const bench *b, const iron__tokens_gpu_row *row) {
    static const size_t begins[] = {0, 1, 2, 3, 5};
    static const size_t small[] = {1, 2, 3, 4, 5, 1, 7, 15, 16, 17, 31, 64, 1000, 999, 1, 3001};
    static const size_t large[] = {1, 19999, 20001, 3, 16384, 8192, 5, 20000};

    for (size_t k = 0; k < COUNT(begins); k++) {
        plan few = {.what = "small pieces", .batch = 1000, .begin = begins[k], PIECES(small)};
        plan many = {.what = "large pieces", .batch = 20000, .begin = begins[k], PIECES(large)};

        few.by_batch = k % 2 != 0;
        many.by_batch = !few.by_batch;
        test_plan(b, row, &few);
        if (!b->d->test->is_quick || k < 2)
            test_plan(b, row, &many);
    }
}

/* Batches that wait are applied while one is open, and more wait later than did before. */
static void test_settling(const bench *b, const iron__tokens_gpu_row *row) {
    static const size_t pieces[] = {7500, 9123, 999, 12001, 20000};
    plan p = {.what = "settled", .batch = 1000, .is_settled = true, .begin = 1, PIECES(pieces)};

    test_plan(b, row, &p);
}

/* More closed batches than can wait: with one launch, and with pieces that end just before, at and
 * behind the end of the room. Other modes apply every batch at once; for them a few are enough. */
static void test_waiting(const bench *b, const iron__tokens_gpu_row *row) {
    for (uint64_t batch = 1; batch <= 3; batch++) {
        size_t room = row->takes_many ? (size_t)batch * TOKENS_WAITING : 40;
        const size_t at_once[] = {2 * room + 5};
        const size_t in_pieces[] = {room - 1, 2, room - 2, 2, 1, room, 3, 2};
        plan whole = {.what = "many batches", .batch = batch, .begin = 1, PIECES(at_once)};
        plan cut = {.what = "many batches in pieces",
                    .batch = batch,
                    .by_batch = true,
                    .begin = 2,
                    PIECES(in_pieces)};

        test_plan(b, row, &whole);
        test_plan(b, row, &cut);
    }
}

/* Pieces that are whole batches, which one launch can reduce and apply where a device gathers its
 * groups; and such that are almost so: not at 16 bytes, or of a length that moves positions off.
 * Where every node reads every token, many nodes would only take long. */
static void test_whole_batches(const bench *b, const iron__tokens_gpu_row *row) {
    static const size_t even[] = {16384, 16384, 16384, 16384, 16384};
    static const size_t odd[] = {16387, 16387, 1, 16387, 32, 16387};
    plan plans[] = {
        {.what = "whole batches", .batch = 16384, PIECES(even)},
        {.what = "whole batches", .batch = 16384, .begin = 4, .is_wide = true, PIECES(even)},
        {.what = "whole batches, not at 16 bytes", .batch = 16384, .begin = 5, PIECES(even)},
        {.what = "whole odd batches", .batch = 16387, .nodes = 1, PIECES(odd)},
        {.what = "whole batches near 2^24", .batch = 16384, .is_wide = true, PIECES(even)},
        {.what = "whole batches, many nodes", .batch = 16384, .nodes = 100003, PIECES(even)},
    };

    plans[1].by_batch = plans[2].by_batch = plans[3].by_batch = true;
    plans[4].is_near_limit = true;
    for (size_t k = 0; k < COUNT(plans); k++)
        if (!row->per_node || plans[k].nodes == 0)
            test_plan(b, row, &plans[k]);
}

/* Positions that need more than 32 bits, and more than 36. */
static void test_far_positions(const bench *b, const iron__tokens_gpu_row *row) {
    static const uint64_t starts[] = {(UINT64_C(1) << 32) - 30011, (UINT64_C(1) << 36) - 16400,
                                      (UINT64_C(1) << 63) + 1};
    static const size_t pieces[] = {1, 999, 5, 40000, 17};

    for (size_t k = 0; k < COUNT(starts); k++) {
        plan few = {.what = "far positions", .batch = 1000, .start = starts[k], PIECES(pieces)};
        plan many = {.what = "far positions", .batch = 20000, .start = starts[k], PIECES(pieces)};

        test_plan(b, row, &few);
        test_plan(b, row, &many);
    }
}

/* Batches that wait together, and single ones, while potentials pass 2^24. */
static void test_near_limit(const bench *b, const iron__tokens_gpu_row *row) {
    static const size_t together[] = {6400, 1, 77}, large[] = {20000, 16384, 20000, 5};
    plan few = {.what = "potentials near 2^24", .batch = 64, .begin = 3, PIECES(together)};
    plan many = {.what = "potentials near 2^24", .batch = 16384, .begin = 4, PIECES(large)};

    few.is_near_limit = many.is_near_limit = true;
    many.by_batch = true;
    test_plan(b, row, &few);
    test_plan(b, row, &many);
}

static iron_status set_up(bench *b, iron_error *err) {
    iron__gpu_device *device = b->d->device;
    iron__gpu_copy copy = {.from_host = b->tokens, .bytes = TOKENS * sizeof(uint32_t)};
    uint32_t points[IRON_LATTICE_MAX];

    IRON_TRY(iron_generate(12, UINT64_C(1) << 32, 0, b->tokens, TOKENS, err));
    for (uint32_t k = 0; k < IRON_LATTICE_MAX; k++)
        points[k] = 1 + k * (IRON_LATTICE_POINT_MAX - 1) / (IRON_LATTICE_MAX - 1);
    IRON_TRY(iron_lattice_create(NULL, 0, &b->lattice, err));
    IRON_TRY(iron_lattice_create(points, IRON_LATTICE_MAX, &b->wide, err));
    IRON_TRY(iron__gpu_program_load(device, &iron__tokens_image, &b->program, err));
    IRON_TRY(iron__gpu_queue_create(device, &b->queue, err));
    IRON_TRY(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, copy.bytes, &b->buffer, err));
    copy.to = b->buffer;
    IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    return iron__gpu_queue_wait(b->queue, err);
}

static void tear_down(bench *b) {
    iron__gpu_buffer_destroy(b->buffer);
    iron__gpu_queue_destroy(b->queue);
    iron__gpu_program_unload(b->d->device, b->program);
    iron_lattice_destroy(b->wide);
    iron_lattice_destroy(b->lattice);
    free(b->tokens);
}

void iron__selftest_gpu_resident(iron__selftest_device *d) {
    bench b = {.d = d, .tokens = malloc(TOKENS * sizeof(uint32_t))};
    iron_error err;
    iron_status status;

    if (!b.tokens || d->is_lost) {
        if (!b.tokens)
            iron__selftest_fail(d->test, &iron__selftest_no_memory);
        free(b.tokens);
        return;
    }
    status = set_up(&b, &err);
    if (status != IRON_OK)
        iron__selftest_tell_gpu(d, "tokens on the device", status, "", &err);
    for (size_t r = 0; !d->is_lost && iron__tokens_gpu_row_at(r); r++) {
        test_alignments(&b, iron__tokens_gpu_row_at(r));
        test_settling(&b, iron__tokens_gpu_row_at(r));
        test_waiting(&b, iron__tokens_gpu_row_at(r));
        test_whole_batches(&b, iron__tokens_gpu_row_at(r));
        test_far_positions(&b, iron__tokens_gpu_row_at(r));
        test_near_limit(&b, iron__tokens_gpu_row_at(r));
    }
    tear_down(&b);
}
