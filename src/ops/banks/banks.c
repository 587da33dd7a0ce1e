/* SPDX-License-Identifier: MIT */
/*
 * banks.c: the op banks: what it is, what it is about, its sizes and limits.
 */
#include "ops/banks/banks.h"

#include "ops/banks/banks_op.h"
#include "ops/kit.h"
#include "ops/line.h"

#define ROWS_MAX (UINT64_C(1) << 38)

static const char why[] =
    "Local memory is 32 banks side by side, and neighbouring words lie in neighbouring banks. In "
    "one step each bank serves one word, so a warp whose 32 threads touch 32 banks is served at "
    "once, and one whose threads touch the same bank waits 32 times as long. A stride of 32 words "
    "does that, and it comes by itself: the columns of a tile of 32, structs of 32 words, a thread "
    "a "
    "row. Here every access of 64 rounds through a tile has the stride, so time grows with the "
    "threads that meet in a bank (`ways`, the power of two in the stride) while the bytes to and "
    "from the device's memory stay the same.\n"
    "\n"
    "The cure is to put the words elsewhere. Padding leaves one word out after every 32, so that "
    "the next row begins a bank later; swizzling keeps the size and exchanges words within each "
    "row, by XOR with the row's number. Both take all conflicts from strides that are powers of "
    "two. With odd strides there is nothing to cure, and both can only lose: try stride=31.";

static const char traffic[] =
    "The line is read once and written once, 8 bytes an element; in local memory 64 words are read "
    "and 64 written for each element, and that takes several times as long. The share of the copy "
    "ceiling is therefore small by design: compare the rows by time, stride by stride.";

static const char unless[] =
    "It does not pay where the stride is odd, where all threads of a warp read the same word (that "
    "is one access), or where local memory is not what the kernel waits for. Padding takes a 32nd "
    "more local memory and breaks 16-byte accesses; swizzling takes an instruction or two for each "
    "address that is not a constant. A device whose local memory has no banks, such as a CPU "
    "behind "
    "OpenCL, shows no difference.";

static const char used[] =
    "atax_transpose in src/ops/atax/two_kernels_real.k and the tiles of src/ops/atax/tiled_real.k "
    "have lines of 33 elements, and divergence_sorted in src/ops/divergence/divergence_sorted.k "
    "leaves a place free after 32: padding, which is simpler. The champion of src/ops/transpose "
    "swizzles, since it reads its tile 16 bytes at a time.";

static const double strides[] = {1, 2, 8, 16, 32};

static const iron__axis axes[] = {{.name = "stride",
                                   .about = "words of local memory from one thread's to the next's",
                                   .numbers = strides,
                                   .count = IRON_KIT_COUNT(strides),
                                   .telling = IRON_KIT_COUNT(strides) - 1,
                                   .least = 1,
                                   .most = IRON_BANKS,
                                   .is_whole = true}};

static const iron__size sizes[] = {
    {"size", "SMALL", UINT64_C(1) << 20, 1, NULL},
    {"size", "STANDARD", UINT64_C(1) << 24, 1, NULL},
    {"size", "LARGE", UINT64_C(1) << 27, 1, NULL},
};

/* 1 GiB moved on a GPU; else four times the caches, and 256 MiB at most. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = UINT64_C(1) << (has_gpu ? 25 : 23);
    uint64_t most = UINT64_C(1) << (has_gpu ? 32 : 26);

    *rows = iron__line_usual(least, most, 2 * iron__element_bytes(element), cache_bytes);
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) { return 2 * c->rows * sizeof(uint32_t); }

/* A multiplication and an addition a word and round. */
static double operations(const iron__case *c) { return 2.0 * BANKS_ROUNDS * (double)c->rows; }

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    if (index > 0)
        return false;
    *name = "ways";
    *value = iron__banks_ways(iron__banks_stride(c));
    return true;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

const iron__op iron__op_banks = {
    .name = "banks",
    .contract =
        "each 2048 u32 (the last filled up with zeros) mixed in 64 rounds: the word at step i "
        "of a walk with that stride takes in the word at step i + 32",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .axes = axes,
    .axis_count = IRON_KIT_COUNT(axes),
    .param_at = param_at,
    .baselines = {"plain", "plain"},
    .sizes = sizes,
    .size_count = IRON_KIT_COUNT(sizes),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__banks_make,
    .unmake = iron__banks_unmake,
    .check = iron__banks_check,
    .contender_at = iron__banks_contender_at,
};
