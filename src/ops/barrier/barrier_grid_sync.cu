/* SPDX-License-Identifier: MIT */
/*
 * barrier_grid_sync.cu: one launch whose groups all wait for each other, after which the first adds
 * up what the others left. CUDA only: the host launches no more groups than run at the same time,
 * and the driver refuses the launch if it cannot keep that. Traffic as in barrier_grid.k.
 */

/*
 * All groups arrive before one goes on, and see what the others wrote. One word is enough, and it
 * is never reset: each group adds 1, the first adds so much that all together make 2^31. So the top
 * bit turns over when the last one arrives and not before, and everybody waits for that.
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
