/* SPDX-License-Identifier: MIT */
/*
 * banks.c: bank conflicts in local memory: each tile of 2048 words is mixed in 64 rounds that walk
 * through it with a stride. Only GPUs race; a CPU has no local memory.
 *
 * The reference copies the words of a tile into the order of the walk. A round is then one loop
 * along the tile, which compilers vectorize; the results are copied back at the end.
 */
#include "core/fail.h"
#include "ops/banks/kernel_params.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <string.h>

#define BANK_COUNT 32u /* of local memory; also the largest stride */

static uint32_t stride_of(const iron__case *c) { return (uint32_t)c->at[0]; }

/* The power of two in a stride of 1 to 32, which is its greatest common divisor with 32: the number
 * of lanes of a warp that share a bank in the plain layout. */
static uint32_t ways_of(uint32_t stride) { return stride & (0u - stride); }

/* See kernel_params.h: after 2^block steps the walk moves on by one word. */
static uint32_t block_of(uint32_t stride) {
    return (uint32_t)__builtin_ctz(BANKS_TILE / ways_of(stride));
}

static uint64_t tiles_of(const iron__case *c) { return iron__kit_pieces(c->rows, BANKS_TILE); }

static void compute_tile(void *context, size_t index) {
    const iron__op_problem *p = context;
    const uint32_t *line = (const uint32_t *)p->inputs[0].data + index * BANKS_TILE;
    uint32_t *answer = (uint32_t *)p->reference.data + index * BANKS_TILE;
    uint32_t tile[BANKS_TILE + BANKS_NEXT], stride = stride_of(&p->c);
    uint32_t block = block_of(stride);
    size_t left = (size_t)p->c.rows - index * BANKS_TILE;

    for (uint32_t i = 0; i < BANKS_TILE; i++) {
        size_t at = BANKS_PLACE(i, stride, block);

        tile[i] = at < left ? line[at] : 0;
    }
    /* The loop updates words in place: the word 32 steps ahead is not updated yet when it is read.
     * The last words read copies of the first. */
    for (uint32_t round = 0; round < BANKS_ROUNDS; round++) {
        memcpy(tile + BANKS_TILE, tile, BANKS_NEXT * sizeof *tile);
        for (size_t i = 0; i < BANKS_TILE; i++)
            tile[i] = BANKS_MIXED(tile[i], tile[i + BANKS_NEXT]);
    }
    for (uint32_t i = 0; i < BANKS_TILE; i++) {
        size_t at = BANKS_PLACE(i, stride, block);

        if (at < left)
            answer[at] = tile[i];
    }
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    IRON_TRY(iron__data_input(p, "line", (size_t)p->c.rows, NULL, err));
    IRON_TRY(iron__data_take(&p->reference, "reference", p->output_bytes, err));
    iron__thread_pool_run(p->pool, compute_tile, p, (size_t)tiles_of(&p->c));
    return IRON_OK;
}

IRON_KIT_IMAGE(banks)

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    uint32_t stride = stride_of(&work->c), block = block_of(stride);

    return IRON_KIT_LAUNCH(queue, err, work->kernels[0], tiles_of(&work->c), BANKS_THREADS,
                           IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                           IRON_GPU_VALUE(work->c.rows), IRON_GPU_VALUE(stride),
                           IRON_GPU_VALUE(block));
}

#define LAYOUT(kernel)                                                                             \
    IRON_ON_GPU,                                                                                   \
        .gpu = IRON_KIT(.kernels = {kernel}, .threads = BANKS_THREADS,                             \
                        .own_local_bytes = (BANKS_TILE + BANKS_TILE / 32) * sizeof(uint32_t),      \
                        .run = run)

static const iron__contender contenders[] = {
    {"plain", "words in order: the power of two in the stride is the number of threads per bank",
     NULL, LAYOUT("banks_plain")},
    {"padded", "one unused word after every 32: each row begins one bank later", "plain",
     LAYOUT("banks_padded")},
    {"swizzled", "words of a row permuted by XOR with the row number: no unused words", "plain",
     LAYOUT("banks_swizzled")},
};

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    if (index > 0)
        return false;
    *name = "ways";
    *value = ways_of(stride_of(c));
    return true;
}

const iron__op iron__op_banks = {
    .name = "banks",
    .contract =
        "each 2048 u32 (the last tile is padded with zeros) are mixed in 64 rounds: the word at "
        "step i of a walk with the given stride is combined with the word at step i + 32",
    .why =
        "Local memory consists of 32 banks, and consecutive words lie in consecutive banks. A warp "
        "whose 32 threads access 32 different banks is served at once; one whose threads all "
        "access the same bank waits 32 times as long. A stride of 32 words does that, and it "
        "occurs naturally: columns of a 32-wide tile, structs of 32 words, one row per thread. "
        "Here every access has the stride, so the time grows with the number of threads per bank "
        "(`ways`, the power of two in the stride).\n"
        "\n"
        "Padding leaves one word unused after every 32, so that each row begins one bank later; "
        "swizzling permutes the words within each row by XOR with the row number. Both remove all "
        "conflicts for strides that are powers of two. Odd strides have none, so both can only "
        "lose there: try stride=31.",
    .traffic =
        "The line is read once and written once, 8 bytes per element. In local memory 64 words are "
        "read and 64 written per element, which takes several times as long: compare the rows by "
        "time, not by the percentage of the copy ceiling.",
    .unless =
        "It does not pay if the stride is odd, if all threads of a warp read the same word (that "
        "is one access), if the kernel does not wait for local memory, or if that has no banks, as "
        "on an OpenCL CPU device. Padding needs 1/32 more local memory and breaks 16-byte "
        "accesses; swizzling needs one or two instructions for each address that is not a "
        "constant.",
    .used = "atax_transpose and the tiled kernels in src/ops/atax/atax_real.k have lines of 33 "
            "elements, and divergence_sorted in src/ops/divergence/divergence.k leaves one place "
            "unused after 32: padding, which is simpler. transpose_raw in "
            "src/ops/transpose/transpose.cu "
            "swizzles 16 bytes at a time, which cp.async has put where a multiple of 16 is.",
    IRON_LINE_OP(IRON_U32, iron__line_check),
    .bound = IRON_BOUND_COPY,
    IRON_AXES({.name = "stride",
               .about = "distance in words between the accesses of neighbouring threads",
               IRON_NUMBERS(1, 2, 8, 16, 32),
               .telling = 4, /* 32 */
               .least = 1,
               .most = BANK_COUNT,
               .is_whole = true}),
    .param_at = param_at,
    .baselines = {"plain", "plain"},
    IRON_LINE_SIZES(20, 24, 27),
    .usual_log2 = {{23, 26}, {25, 32}},
    .bytes_each = 2 * sizeof(uint32_t),
    .operations_each = 2 * BANKS_ROUNDS, /* a multiplication and an addition in each round */
    .rows_max = UINT64_C(1) << 38,
    .output = "out",
};
