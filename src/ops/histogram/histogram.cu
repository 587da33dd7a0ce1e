/* SPDX-License-Identifier: MIT */
/*
 * histogram.cu: the row match-any, CUDA only: lanes of a warp with the same value find each other,
 * and one of them adds for all.
 *
 * Local memory and traffic as `shared` in histogram.k. The match saves additions to one address; it
 * costs an instruction per element that compares every lane with every other.
 */
K_DEVICE void histogram_matched(HISTOGRAM_TABLE_ARGS) {
    k_u64 step = (k_u64)K_GROUPS * HISTOGRAM_TABLE_THREADS;
    k_u64 warp = (k_u64)K_GROUP * HISTOGRAM_TABLE_THREADS +
                 K_THREAD / 32 * 32; /* its first lane's element */
    k_u32 lane = K_THREAD % 32;

    histogram_zero(table, s->bins, HISTOGRAM_TABLE_THREADS);
    for (; warp < s->count; warp += step) { /* all lanes take part in every match */
        bool is_there = warp + lane < s->count;
        k_u32 value = is_there ? histogram_at(data, warp + lane, bits) : 0xFFFFFFFFu;
        k_u32 same = __match_any_sync(0xFFFFFFFFu, value);

        if (is_there && lane + 1 == (k_u32)__ffs((int)same))
            atomicAdd(&table[value], (k_u32)__popc(same));
    }
    K_BARRIER();
    histogram_add_table(counts, s, table);
}

HISTOGRAM_TABLE_KERNELS(histogram_match, histogram_matched)
