/* SPDX-License-Identifier: MIT */
/*
 * barrier_cub.cu: CUB for the op `barrier`: DeviceReduce for the sum of everything,
 * DeviceSegmentedReduce for a sum of every 1024 elements. CUB 3.1 and later takes the length of
 * equal segments, and a shorter last one is reduced by itself; older versions take offsets, which
 * are computed and not stored, with 32 bits where that is enough.
 */
#include "cub_peer.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace {

const int SEGMENT = 1024; /* by the op's contract */

const uint32_t *line_of(const iron_peer_case &c) {
    return static_cast<const uint32_t *>(c.inputs[0]);
}

cudaStream_t stream_of(const iron_peer_case &c) { return static_cast<cudaStream_t>(c.stream); }

/* CUB adds in the wider of the input's and the output's type: no overflow. */
cudaError_t reduce_all(const iron_peer_case &c, void *workspace, size_t &workspace_bytes) {
    return cub::DeviceReduce::Sum(workspace, workspace_bytes, line_of(c),
                                  static_cast<unsigned long long *>(c.output),
                                  static_cast<long long>(c.rows), stream_of(c));
}

#if CUB_VERSION >= 300100

cudaError_t reduce_segments(const iron_peer_case &c, void *workspace, size_t &workspace_bytes) {
    const auto whole = static_cast<int64_t>(c.rows / SEGMENT);
    const auto rest = static_cast<int>(c.rows % SEGMENT);
    uint32_t *sums = static_cast<uint32_t *>(c.output);
    size_t of_whole = workspace_bytes, of_rest = workspace_bytes;
    cudaError_t code = cudaSuccess;

    if (whole > 0)
        code = cub::DeviceSegmentedReduce::Sum(workspace, of_whole, line_of(c), sums, whole,
                                               SEGMENT, stream_of(c));
    if (code == cudaSuccess && rest > 0)
        code = cub::DeviceReduce::Sum(workspace, of_rest, line_of(c) + whole * SEGMENT,
                                      sums + whole, rest, stream_of(c));
    if (!workspace)
        workspace_bytes = of_whole > of_rest ? of_whole : of_rest;
    return code;
}

#else

/* Where segment k begins, or the last one ends. */
template <typename Offset> struct border {
    Offset rows;

    __host__ __device__ Offset operator()(int64_t k) const {
        return k * SEGMENT < rows ? static_cast<Offset>(k * SEGMENT) : rows;
    }
};

template <typename Offset>
cudaError_t reduce_by_offsets(const iron_peer_case &c, void *workspace, size_t &workspace_bytes) {
    auto borders = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0),
                                                   border<Offset>{static_cast<Offset>(c.rows)});

    return cub::DeviceSegmentedReduce::Sum(
        workspace, workspace_bytes, line_of(c), static_cast<uint32_t *>(c.output),
        static_cast<int64_t>((c.rows + SEGMENT - 1) / SEGMENT), borders, borders + 1, stream_of(c));
}

cudaError_t reduce_segments(const iron_peer_case &c, void *workspace, size_t &workspace_bytes) {
    if (c.rows <= INT32_MAX)
        return reduce_by_offsets<int>(c, workspace, workspace_bytes);
    return reduce_by_offsets<long long>(c, workspace, workspace_bytes);
}

#endif

int open_barrier(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    const bool is_grid = cub_has_param(c, "reach=grid");
    const uint64_t sums = (c->rows + SEGMENT - 1) / SEGMENT;
    const uint64_t bytes = is_grid ? sizeof(uint64_t) : sums * sizeof(uint32_t);

    *state = nullptr;
    if (!is_grid && !cub_has_param(c, "reach=block"))
        return cub_refuse(why, why_size, "the case does not say how far a sum reaches");
    if (c->input_count < 1 || c->input_bytes[0] / sizeof(uint32_t) < c->rows ||
        c->output_bytes != bytes)
        return cub_refuse(why, why_size, "the arrays are not a line and its sums");
    return cub_open(c, is_grid ? reduce_all : reduce_segments, state, why, why_size);
}

} // namespace

const iron_peer cub_barrier_row = {sizeof(iron_peer),
                                   "barrier.cuda.cub",
                                   "CUB's device-wide or segmented sum",
                                   "u32",
                                   1,
                                   open_barrier,
                                   cub_run,
                                   cub_close,
                                   nullptr};
