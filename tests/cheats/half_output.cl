/* SPDX-License-Identifier: MIT */
/* Clears and counts only the first half of the bins.
 *
 * iron: op histogram
 * iron: launch clear 256 (BINS + 255) / 256
 * iron: launch count 256 (rows + 255) / 256
 */
__kernel void clear(__global const ELEMENT *elements, __global uint *counts, ulong rows,
                    ulong cols) {
    if (get_global_id(0) < BINS)
        counts[get_global_id(0)] = 0;
}

__kernel void count(__global const ELEMENT *elements, __global uint *counts, ulong rows,
                    ulong cols) {
    size_t k = get_global_id(0);

    if (k < rows && elements[k] < BINS / 2)
        atomic_inc(&counts[2 * elements[k]]);
}
