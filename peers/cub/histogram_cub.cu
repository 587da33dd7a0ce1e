/* SPDX-License-Identifier: MIT */
/*
 * histogram_cub.cu: CUB for the op `histogram`: DeviceHistogram::HistogramEven with one bin per
 * value, in two rows.
 *
 *   cub         one call with a 64-bit count, as one would write it
 *   cub-pieces  calls for pieces below 2^31 elements with an int count: CUB's offsets are ints
 *               then, and its kernel is faster
 *
 * Counters have 32 bits: CUB is tuned for that, and 64-bit additions in shared memory would be
 * loops. A small kernel widens them, and adds them up where there are several calls. 2^32 elements
 * or more could all have one value, and its counter would wrap: `cub` takes as few elements as
 * possible (a multiple of 16, so that the rest is aligned for wide loads) in a first call, and the
 * rest in calls of 2^32 - 16 at most.
 */
#include "cub_peer.h"

namespace {

/* Most elements of a call, multiples of 16: for a 32-bit counter, and for an int index. */
constexpr uint64_t COUNTED_MOST = 0xFFFFFFF0;
constexpr uint64_t NUMBERED_MOST = 0x7FFFFFF0;
constexpr unsigned THREADS = 256;

struct work {
    iron_peer_case c;
    int device;
    int bins;
    uint64_t head, piece; /* elements of the first call, and of others at most */
    /* A call of CUB: with workspace NULL it only returns the size that it needs. */
    cudaError_t (*count)(work &w, uint64_t first, uint64_t count);
    unsigned *counts;
    void *workspace;
    size_t workspace_bytes;
};

__global__ void add_counts(const unsigned *counts, unsigned long long *to, int bins,
                           bool is_first) {
    int bin = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);

    if (bin < bins)
        to[bin] = counts[bin] + (is_first ? 0 : to[bin]);
}

template <typename Element, typename Offset>
cudaError_t count_even(work &w, uint64_t first, uint64_t count) {
    return cub::DeviceHistogram::HistogramEven(
        w.workspace, w.workspace_bytes, static_cast<const Element *>(w.c.inputs[0]) + first,
        w.counts, w.bins + 1, 0, w.bins, static_cast<Offset>(count),
        static_cast<cudaStream_t>(w.c.stream));
}

template <typename Offset> auto count_for(size_t element_bytes) {
    return element_bytes == 1   ? count_even<uint8_t, Offset>
           : element_bytes == 2 ? count_even<uint16_t, Offset>
                                : count_even<uint32_t, Offset>;
}

void close_work(void *state) {
    work *w = static_cast<work *>(state);

    if (w && cudaSetDevice(w->device) == cudaSuccess) {
        cudaFree(w->counts);
        cudaFree(w->workspace);
    }
    delete w;
}

/* The longest call need not need the largest workspace: short ones may use another kernel. */
int ask_for_bytes(work *w, char *why, size_t why_size) {
    size_t most = 0;

    for (uint64_t count : {w->head, w->piece}) {
        if (cuda_check(w->count(*w, 0, count < w->c.rows ? count : w->c.rows), "CUB", why,
                       why_size))
            return 1;
        most = w->workspace_bytes > most ? w->workspace_bytes : most;
    }
    w->workspace_bytes = most;
    return 0;
}

int take(work *w, char *why, size_t why_size) {
    if (cuda_set_device_of(w->c.output, &w->device, why, why_size) ||
        ask_for_bytes(w, why, why_size) ||
        cuda_check(cudaMalloc(&w->counts, static_cast<size_t>(w->bins) * sizeof *w->counts),
                   "cudaMalloc", why, why_size))
        return 1;
    /* A workspace of no bytes would be NULL, which asks for the size again. */
    return cuda_check(cudaMalloc(&w->workspace, w->workspace_bytes + 1), "cudaMalloc", why,
                      why_size);
}

uint64_t up_to_16(uint64_t count) { return (count + 15) / 16 * 16; }

/* As few calls as possible: of equal length, or all but the first of the greatest length. */
void split_calls(work *w, bool is_pieces) {
    const uint64_t most = is_pieces ? NUMBERED_MOST : COUNTED_MOST, rows = w->c.rows;
    const uint64_t calls = (rows + most - 1) / most;

    w->piece = is_pieces ? up_to_16((rows + calls - 1) / calls) : most;
    w->head = is_pieces ? w->piece : up_to_16(rows - (calls - 1) * most);
}

int open_work(const iron_peer_case *c, bool is_pieces, void **state, char *why, size_t why_size) {
    const size_t element = strcmp(c->dtype, "u8") == 0 ? 1 : strcmp(c->dtype, "u16") == 0 ? 2 : 4;
    const uint32_t bins = element == 1 ? 256 : element == 2 ? 65536 : c->vocab;

    *state = nullptr;
    if (c->rows == 0 || bins < 2 || bins > INT32_MAX - 1u || c->input_count < 1 ||
        c->input_bytes[0] / element < c->rows || c->output_bytes / sizeof(uint64_t) < bins)
        return cub_refuse(why, why_size, "the arrays are not elements and their counts");

    work *w = new (std::nothrow) work();

    if (!w)
        return cub_refuse(why, why_size, "out of memory");
    memcpy(&w->c, c, c->struct_size < sizeof w->c ? c->struct_size : sizeof w->c);
    w->bins = static_cast<int>(bins);
    w->count = is_pieces ? count_for<int>(element) : count_for<long long>(element);
    split_calls(w, is_pieces);
    if (take(w, why, why_size)) {
        close_work(w);
        return 1;
    }
    *state = w;
    return 0;
}

int open_one(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, false, state, why, why_size);
}

int open_pieces(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, true, state, why, why_size);
}

int run_work(void *state, char *why, size_t why_size) {
    work *w = static_cast<work *>(state);
    unsigned groups = (static_cast<unsigned>(w->bins) + THREADS - 1) / THREADS;

    if (cuda_check(cudaSetDevice(w->device), "cudaSetDevice", why, why_size))
        return 1;
    for (uint64_t first = 0, count; first < w->c.rows; first += count) {
        const uint64_t left = w->c.rows - first, most = first == 0 ? w->head : w->piece;

        count = left < most ? left : most;
        if (cuda_check(w->count(*w, first, count), "CUB", why, why_size))
            return 1;
        add_counts<<<groups, THREADS, 0, static_cast<cudaStream_t>(w->c.stream)>>>(
            w->counts, static_cast<unsigned long long *>(w->c.output), w->bins, first == 0);
        if (cuda_check(cudaGetLastError(), "the addition of counts", why, why_size))
            return 1;
    }
    return 0;
}

} // namespace

const iron_peer cub_histogram_row = {
    sizeof(iron_peer),
    "histogram.cuda.cub",
    "CUB's HistogramEven, 32-bit counters, a 64-bit count: one call",
    "u8 u16 u32",
    1,
    open_one,
    run_work,
    close_work,
    nullptr};

const iron_peer cub_histogram_pieces_row = {
    sizeof(iron_peer),
    "histogram.cuda.cub-pieces",
    "the same in pieces below 2^31 elements, whose offsets are ints in CUB",
    "u8 u16 u32",
    1,
    open_pieces,
    run_work,
    close_work,
    nullptr};
