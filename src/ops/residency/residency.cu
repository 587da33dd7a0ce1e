/* SPDX-License-Identifier: MIT */
/*
 * residency.cu: sums over a stream of records whose keys are looked up in a table.
 *
 * Traffic: 4 bytes read per word of the stream, once; and per RESIDENCY_RECORD words one word of
 * the table, which costs 32 bytes from the L2 cache, or from memory if the stream has evicted it.
 * 24 bytes written per group.
 *
 * All kernels share one text and differ in how they load the stream and the table (`hints`):
 *
 *   residency_plain       ordinary loads
 *   residency_streaming   the stream is evicted first (ld.global.cs)
 *   residency_policy      the same by an L2 policy, and the table is evicted last
 *
 * The quads of a thread are a multiple of the group's threads apart, so a thread has keys in all
 * its quads or in none. The first group processes what is left after the last complete turn. The
 * group that finishes last adds all sums and resets the counter.
 */
struct residency_plain_hints {
    __device__ __forceinline__ k_u32x4 stream(const k_u32x4 *p) const { return __ldg(p); }
    __device__ __forceinline__ k_u32 table(const k_u32 *p) const { return __ldg(p); }
};

struct residency_streaming_hints {
    __device__ __forceinline__ k_u32x4 stream(const k_u32x4 *p) const { return __ldcs(p); }
    __device__ __forceinline__ k_u32 table(const k_u32 *p) const { return __ldg(p); }
};

/* Cards before Ampere do not support these policies, so code for them has no such kernel. */
#if __CUDA_ARCH__ >= 800
struct residency_policy_hints {
    k_u64 last, first;

    __device__ __forceinline__ residency_policy_hints() {
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
    }

    __device__ __forceinline__ k_u32x4 stream(const k_u32x4 *p) const {
        k_u32x4 v;

        asm("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
            : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
            : "l"(p), "l"(first));
        return v;
    }

    __device__ __forceinline__ k_u32 table(const k_u32 *p) const {
        k_u32 v;

        asm("ld.global.nc.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(v) : "l"(p), "l"(last));
        return v;
    }
};
#endif

struct residency_sums {
    k_u64 sum;
    k_u32 xors;

    __device__ __forceinline__ void add(k_u32 word) {
        sum += word;
        xors ^= word;
    }

    __device__ __forceinline__ void add(k_u32x4 v) {
        sum += ((k_u64)v.x + v.y) + ((k_u64)v.z + v.w);
        xors ^= v.x ^ v.y ^ v.z ^ v.w;
    }
};

/* The sums of all threads, valid in thread 0. Ends with a barrier, so that it can be called
 * again. */
static __device__ __forceinline__ residency_sums residency_join(residency_sums s) {
    __shared__ k_u64 sums[RESIDENCY_THREADS / 32];
    __shared__ k_u32 xors[RESIDENCY_THREADS / 32];

    s.sum = k_subgroup_add_u64(s.sum);
    s.xors = k_subgroup_xor(s.xors);
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = s.sum;
        xors[threadIdx.x / 32] = s.xors;
    }
    __syncthreads();
    s.sum = threadIdx.x < RESIDENCY_THREADS / 32 ? sums[threadIdx.x] : 0;
    s.xors = threadIdx.x < RESIDENCY_THREADS / 32 ? xors[threadIdx.x] : 0;
    s.sum = k_subgroup_add_u64(s.sum);
    s.xors = k_subgroup_xor(s.xors);
    __syncthreads();
    return s;
}

/* shares: {sum, xor} of each group. */
static __device__ __forceinline__ void residency_report(residency_sums s, ulonglong2 *shares,
                                                        k_u32 *counter, ulonglong2 *answer) {
    __shared__ int is_last;

    s = residency_join(s);
    if (threadIdx.x == 0) {
        __stcg(shares + blockIdx.x, make_ulonglong2(s.sum, s.xors));
        __threadfence();
        is_last = atomicAdd(counter, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last)
        return;
    s.sum = 0;
    s.xors = 0;
    for (k_u32 k = threadIdx.x; k < gridDim.x; k += RESIDENCY_THREADS) {
        ulonglong2 share = __ldcg(shares + k);

        s.sum += share.x;
        s.xors ^= (k_u32)share.y;
    }
    s = residency_join(s);
    if (threadIdx.x == 0) {
        *answer = make_ulonglong2(s.sum, s.xors);
        *counter = 0;
    }
}

template <class HINTS>
static __device__ __forceinline__ void residency_rest(const HINTS &hints, const k_u32 *stream,
                                                      k_u64 from, k_u64 count, const k_u32 *table,
                                                      k_u32 words, residency_sums *s) {
    for (k_u64 i = from + threadIdx.x; i < count; i += RESIDENCY_THREADS) {
        k_u32 word = __ldg(stream + i);

        if (i % RESIDENCY_RECORD == 0)
            word ^= hints.table(table + __umulhi(word, words));
        s->add(word);
    }
}

template <class HINTS>
static __device__ __forceinline__ residency_sums residency_walk(const k_u32 *stream, k_u64 count,
                                                                const k_u32 *table, k_u32 words) {
    const HINTS hints;
    const k_u32x4 *quads = (const k_u32x4 *)stream;
    const k_u64 turn = RESIDENCY_THREADS * RESIDENCY_LOADS, whole = count / 4 / turn * turn;
    const bool has_keys = threadIdx.x % (RESIDENCY_RECORD / 4) == 0;
    residency_sums s = {0, 0};

#pragma unroll 1
    for (k_u64 at = blockIdx.x * turn + threadIdx.x; at < whole; at += gridDim.x * turn) {
        k_u32x4 v[RESIDENCY_LOADS];

#pragma unroll
        for (int k = 0; k < RESIDENCY_LOADS; k++)
            v[k] = hints.stream(quads + at + k * RESIDENCY_THREADS);
        if (has_keys) {
#pragma unroll
            for (int k = 0; k < RESIDENCY_LOADS; k++)
                v[k].x ^= hints.table(table + __umulhi(v[k].x, words));
        }
#pragma unroll
        for (int k = 0; k < RESIDENCY_LOADS; k++)
            s.add(v[k]);
    }
    if (blockIdx.x == 0)
        residency_rest(hints, stream, 4 * whole, count, table, words, &s);
    return s;
}

#define RESIDENCY_KERNEL(name)                                                                     \
    K_KERNEL_DENSE(RESIDENCY_THREADS, RESIDENCY_DENSE)                                             \
    residency_##name(const k_u32 *K_RESTRICT stream, const k_u64 count,                            \
                     const k_u32 *K_RESTRICT table, const k_u32 words, ulonglong2 *shares,         \
                     k_u32 *counter, ulonglong2 *answer) {                                         \
        residency_report(residency_walk<residency_##name##_hints>(stream, count, table, words),    \
                         shares, counter, answer);                                                 \
    }
RESIDENCY_KERNEL(plain)
RESIDENCY_KERNEL(streaming)
#if __CUDA_ARCH__ >= 800
RESIDENCY_KERNEL(policy)
#endif
