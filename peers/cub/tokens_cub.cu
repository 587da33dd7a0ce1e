/* SPDX-License-Identifier: MIT */
/*
 * tokens_cub.cu: CUB for the op `tokens`: its device-wide reduction of the same monoid, (xor, sum
 * of p mod vocab), with a plain % by a number known at run time. Beside it CUB's plain sum of the
 * tokens, which computes something else (and checks itself): how fast CUB reads when it computes
 * almost nothing. And the list of all rows of this plug-in.
 *
 * bench-gpu calls the reduction without the rest of the plug-in:
 *
 *   int iron_peer_tokens_cub(tokens, count, vocab, workspace, &workspace_bytes, result, stream)
 *
 * With workspace NULL it only returns the size that it needs. result: {uint64 sum, uint32 xor} in
 * device memory. Positions begin at 0: a first position as a third member of the functor costs CUB
 * a third of its speed. Returns a cudaError_t.
 */
#include "cub_peer.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cinttypes>

namespace {

struct contribution {
    unsigned long long sum;
    unsigned int xors;
};

/* The op's answer. CUB computes sum and xors; has_state = 0 says that it does not compute the state
 * of the engine's nodes. */
struct answer {
    uint64_t sum;
    uint32_t xors, has_state;
    uint64_t state;
};

static_assert(offsetof(contribution, sum) == offsetof(answer, sum), "same layout");
static_assert(offsetof(contribution, xors) == offsetof(answer, xors), "same layout");

struct positioned {
    const uint32_t *tokens;
    uint32_t vocab;

    __host__ __device__ contribution operator()(uint64_t i) const {
        uint32_t p = tokens[i] + static_cast<uint32_t>(137 * i + 17 * (i >> 4));

        return contribution{p % vocab, p};
    }
};

struct merge {
    __host__ __device__ contribution operator()(contribution a, contribution b) const {
        return contribution{a.sum + b.sum, a.xors ^ b.xors};
    }
};

} // namespace

extern "C" __attribute__((visibility("default"))) int
iron_peer_tokens_cub(const uint32_t *tokens, uint64_t count, uint32_t vocab, void *workspace,
                     size_t *workspace_bytes, void *result, void *stream) {
    auto input = thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                                 positioned{tokens, vocab});

    return cub::DeviceReduce::Reduce(workspace, *workspace_bytes, input,
                                     static_cast<contribution *>(result),
                                     static_cast<long long>(count), merge(), contribution{0, 0},
                                     static_cast<cudaStream_t>(stream));
}

namespace {

cudaError_t reduce_monoid(const iron_peer_case &c, void *workspace, size_t &workspace_bytes) {
    auto code = static_cast<cudaError_t>(
        iron_peer_tokens_cub(static_cast<const uint32_t *>(c.inputs[0]), c.rows, c.vocab, workspace,
                             &workspace_bytes, c.output, c.stream));

    if (code != cudaSuccess || !workspace)
        return code;
    /* After the reduction, whose store of a whole struct may overwrite these bytes. */
    return cudaMemsetAsync(static_cast<char *>(c.output) + offsetof(answer, has_state), 0,
                           sizeof(answer) - offsetof(answer, has_state),
                           static_cast<cudaStream_t>(c.stream));
}

/* CUB adds in the wider of the input's and the output's type: no overflow. */
cudaError_t reduce_sum(const iron_peer_case &c, void *workspace, size_t &workspace_bytes) {
    return cub::DeviceReduce::Sum(
        workspace, workspace_bytes, static_cast<const uint32_t *>(c.inputs[0]),
        static_cast<unsigned long long *>(c.output), static_cast<long long>(c.rows),
        static_cast<cudaStream_t>(c.stream));
}

int open_tokens(const iron_peer_case *c, cub_call call, size_t output_bytes, void **state,
                char *why, size_t why_size) {
    *state = nullptr;
    if (c->input_count < 1 || c->input_bytes[0] / sizeof(uint32_t) < c->rows ||
        c->output_bytes < output_bytes)
        return cub_refuse(why, why_size, "the arrays are not tokens and their answer");
    return cub_open(c, call, state, why, why_size);
}

int open_monoid(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_tokens(c, reduce_monoid, sizeof(answer), state, why, why_size);
}

int open_sum(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_tokens(c, reduce_sum, sizeof(uint64_t), state, why, why_size);
}

int check_sum(const iron_peer_case *host, const void *output, char *why, size_t why_size) {
    const uint32_t *tokens = static_cast<const uint32_t *>(host->inputs[0]);
    uint64_t want = 0, got;

    for (uint64_t k = 0; k < host->rows; k++)
        want += tokens[k];
    memcpy(&got, output, sizeof got);
    if (got == want)
        return 0;
    snprintf(why, why_size, "the sum is %" PRIu64 ", the host's %" PRIu64, got, want);
    return 1;
}

} // namespace

const iron_peer cub_tokens_row = {sizeof(iron_peer),
                                  "tokens.cuda.cub",
                                  "CUB's reduction of the same pairs, with a plain %",
                                  "u32",
                                  1,
                                  open_monoid,
                                  cub_run,
                                  cub_close,
                                  nullptr};
const iron_peer cub_tokens_sum_row = {sizeof(iron_peer),
                                      "tokens.cuda.cub-sum",
                                      "another question: CUB's plain sum",
                                      "u32",
                                      1,
                                      open_sum,
                                      cub_run,
                                      cub_close,
                                      check_sum};

extern "C" const iron_peer_list *iron_peer_list_get(void) {
    static const iron_peer rows[] = {
        cub_tokens_row,    cub_tokens_sum_row,       cub_barrier_row,
        cub_histogram_row, cub_histogram_pieces_row,
    };
    static char version[32];
    static const iron_peer_list list = {IRON_PEER_ABI, "CUB", version, rows,
                                        sizeof rows / sizeof rows[0]};

    snprintf(version, sizeof version, "%d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION,
             CUB_SUBMINOR_VERSION);
    return &list;
}
