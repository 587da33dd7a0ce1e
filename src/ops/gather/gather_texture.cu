/* SPDX-License-Identifier: MIT */
/*
 * gather_texture.cu: a thread an element, and the table is a texture of words in a line.
 *
 * Traffic: as in gather_each.k. Textures had a cache of their own once, the only one that reads
 * from memory went through; on cards of today that cache is the L1 cache of everybody.
 */
K_KERNEL(GATHER_THREADS)
gather_texture(const k_u32 *K_RESTRICT index, const cudaTextureObject_t table,
               k_u32 *K_RESTRICT out, const k_u64 count) {
    k_u64 i = (k_u64)K_GROUP * GATHER_THREADS + K_THREAD;

    if (i < count)
        out[i] = tex1Dfetch<k_u32>(table, (int)index[i]);
}
