/* SPDX-License-Identifier: MIT */
/*
 * barrier_redux.cu: barrier_shuffle with the sum of a warp by one instruction, which cards from
 * compute capability 8.0 on have (redux.sync, integers of 32 bits only). For older ones the same
 * kernel is compiled to five shuffles: the code is chosen for each architecture of the fatbin, and
 * nothing is asked while it runs.
 */

static __device__ __forceinline__ k_u32 barrier_warp_sum(k_u32 v) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xFFFFFFFFu, v);
#else
    return k_subgroup_add_u32(v);
#endif
}

K_KERNEL(BARRIER_THREADS)
barrier_redux(const k_u32 *__restrict__ from, k_u32 *__restrict__ to, const k_u64 count) {
    __shared__ k_u32 warps[BARRIER_THREADS / 32];
    k_u32 sum = barrier_warp_sum(barrier_part(from, count));

    if (K_THREAD % 32 == 0)
        warps[K_THREAD / 32] = sum;
    __syncthreads();
    if (K_THREAD == 0)
        to[K_GROUP] = barrier_join(warps);
}
