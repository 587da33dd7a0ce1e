/* SPDX-License-Identifier: MIT */
/*
 * tokens_cub.cu: what a good engineer would write in ten lines for the op `tokens`: CUB's
 * device-wide reduction of the same monoid, (xor, sum of p mod vocab), with a plain % by a number
 * known at run time. Beside it CUB's plain sum of the tokens, which answers another question (and
 * checks itself): what CUB reads where nothing is to be computed.
 *
 * bench-gpu calls the reduction without the rest of the plug-in:
 *
 *   int iron_peer_tokens_cub(tokens, count, vocab, workspace, &workspace_bytes, result, stream)
 *
 * With workspace NULL it only says how much it needs. result: {uint64 sum, uint32 xor} in device
 * memory. Positions begin at 0: a first position as a third member of the functor costs CUB a third
 * of its speed. Returns a cudaError_t.
 */
#include "cuda_peer.h"

#include <iron/iron_peer.h>

#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace {

struct contribution {
    unsigned long long sum;
    unsigned int xors;
};

/* What the op takes for an answer. CUB's result covers sum and xors; a state of the engine's nodes
 * is not computed, which has_state = 0 says. */
struct answer {
    uint64_t sum;
    uint32_t xors, has_state;
    uint64_t state;
};

static_assert(offsetof(contribution, sum) == offsetof(answer, sum), "one lies on the other");
static_assert(offsetof(contribution, xors) == offsetof(answer, xors), "one lies on the other");

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

/* A call of CUB: with workspace NULL it only says how much it needs. */
struct work {
    iron_peer_case c;
    int device;
    cudaError_t (*reduce)(const iron_peer_case &c, void *workspace, size_t &workspace_bytes);
    void *workspace;
    size_t workspace_bytes;
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
    /* After the reduction, whose store of a whole struct may reach into these bytes. */
    return cudaMemsetAsync(static_cast<char *>(c.output) + offsetof(answer, has_state), 0,
                           sizeof(answer) - offsetof(answer, has_state),
                           static_cast<cudaStream_t>(c.stream));
}

/* CUB adds up in the wider of the input's and the output's type: no sum is lost. */
cudaError_t reduce_sum(const iron_peer_case &c, void *workspace, size_t &workspace_bytes) {
    return cub::DeviceReduce::Sum(
        workspace, workspace_bytes, static_cast<const uint32_t *>(c.inputs[0]),
        static_cast<unsigned long long *>(c.output), static_cast<long long>(c.rows),
        static_cast<cudaStream_t>(c.stream));
}

int refuse(char *why, size_t size, const char *text) {
    snprintf(why, size, "%s", text);
    return 1;
}

void close_work(void *state) {
    work *w = static_cast<work *>(state);

    if (w && w->workspace && cudaSetDevice(w->device) == cudaSuccess)
        cudaFree(w->workspace);
    delete w;
}

int take(work *w, char *why, size_t why_size) {
    if (cuda_enter_device_of(w->c.output, &w->device, why, why_size) ||
        cuda_says(w->reduce(w->c, nullptr, w->workspace_bytes), "CUB", why, why_size))
        return 1;
    /* A workspace of no bytes would be NULL, and that asks for the size again. */
    return cuda_says(cudaMalloc(&w->workspace, w->workspace_bytes + 1), "cudaMalloc", why,
                     why_size);
}

int open_work(const iron_peer_case *c, decltype(work::reduce) reduce, size_t output_bytes,
              void **state, char *why, size_t why_size) {
    *state = nullptr;
    if (c->input_count < 1 || c->input_bytes[0] / sizeof(uint32_t) < c->rows ||
        c->output_bytes < output_bytes)
        return refuse(why, why_size, "the arrays are not tokens and their answer");

    work *w = new (std::nothrow) work{*c, 0, reduce, nullptr, 0};

    if (!w)
        return refuse(why, why_size, "out of memory");
    if (take(w, why, why_size)) {
        close_work(w);
        return 1;
    }
    *state = w;
    return 0;
}

int open_monoid(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, reduce_monoid, sizeof(answer), state, why, why_size);
}

int open_sum(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, reduce_sum, sizeof(uint64_t), state, why, why_size);
}

int run_work(void *state, char *why, size_t why_size) {
    work *w = static_cast<work *>(state);

    if (cuda_says(cudaSetDevice(w->device), "cudaSetDevice", why, why_size))
        return 1;
    return cuda_says(w->reduce(w->c, w->workspace, w->workspace_bytes), "CUB", why, why_size);
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

extern "C" const iron_peer_list *iron_peer_list_get(void) {
    static const iron_peer rows[] = {
        {sizeof rows[0], "tokens.cuda.cub", "CUB's reduction of the same pairs, with a plain %",
         "u32", 1, open_monoid, run_work, close_work, nullptr},
        {sizeof rows[0], "tokens.cuda.cub-sum", "another question: CUB's plain sum", "u32", 1,
         open_sum, run_work, close_work, check_sum},
    };
    static char version[32];
    static const iron_peer_list list = {IRON_PEER_ABI, "CUB", version, rows, 2};

    snprintf(version, sizeof version, "%d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION,
             CUB_SUBMINOR_VERSION);
    return &list;
}
