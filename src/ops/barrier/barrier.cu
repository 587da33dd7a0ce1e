/* SPDX-License-Identifier: MIT */
/*
 * barrier.cu: the kernels of barrier that need CUDA.
 *
 * grid_sync: one launch whose groups all wait for each other; then the first adds the sums of the
 * others. The host launches at most as many groups as run at the same time, and the driver refuses
 * the launch if it cannot guarantee that. Traffic as in barrier.k.
 *
 * redux: barrier_shuffle with the sum of a warp by one instruction, which cards from compute
 * capability 8.0 on have (redux.sync, 32-bit integers only). For older cards the same kernel is
 * compiled to five shuffles: the choice is made for each architecture of the fatbin, not at run
 * time.
 */
/*
 * All groups arrive before one continues, and see what the others wrote. One word is enough, and it
 * is never reset: each group adds 1, the first adds so much that the total is 2^31. So the top bit
 * flips when the last group arrives, and all groups wait for that.
 */
static __device__ __forceinline__ void barrier_all_groups(k_u32 *arrived) {
    const k_u32 top = 0x80000000u;

    __syncthreads();
    if (K_THREAD == 0) {
        __threadfence();
        k_u32 before = atomicAdd(arrived, K_GROUP == 0 ? top - (K_GROUPS - 1) : 1u);

        while (((*(volatile k_u32 *)arrived ^ before) & top) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

K_KERNEL_DENSE(BARRIER_THREADS, BARRIER_GROUPS)
barrier_grid_sync(const k_u32 *__restrict__ from, volatile k_u64 *partials, k_u32 *arrived,
                  k_u64 *__restrict__ to, const k_u64 count, const k_u32 share) {
    __shared__ k_u64 warps[BARRIER_THREADS / 32];
    k_u64 sum = barrier_group_sum(barrier_take(from, count, share), (k_u64 *)0, warps);

    if (K_THREAD == 0)
        partials[K_GROUP] = sum;
    barrier_all_groups(arrived);
    if (K_GROUP > 0)
        return;
    sum = barrier_group_sum(barrier_collect(partials, K_GROUPS), (k_u64 *)0, warps);
    if (K_THREAD == 0)
        *to = sum;
}

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
