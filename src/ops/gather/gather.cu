/* SPDX-License-Identifier: MIT */
/*
 * gather.cu: one thread per element, with the table as a one-dimensional texture of words. CUDA
 * only.
 *
 * Traffic as gather_global in gather.k. Textures used to have the only cache for reads from memory;
 * on current cards that cache is the L1 cache, which serves all loads.
 */
K_KERNEL(GATHER_THREADS)
gather_texture(const k_u32 *K_RESTRICT index, const cudaTextureObject_t table,
               k_u32 *K_RESTRICT out, const k_u64 count) {
    k_u64 i = (k_u64)K_GROUP * GATHER_THREADS + K_THREAD;

    if (i < count)
        out[i] = tex1Dfetch<k_u32>(table, (int)index[i]);
}
