/* SPDX-License-Identifier: MIT */
/* Leaves out the elements after the last whole group of 256.
 *
 * iron: op histogram
 * iron: launch clear 256 (BINS + 255) / 256
 * iron: launch count 256 rows / 256
 */
__kernel void clear(__global const ELEMENT *elements, __global uint *counts, ulong rows,
                    ulong cols) {
    size_t bin = get_global_id(0);

    if (bin < BINS) {
        counts[2 * bin] = 0;
        counts[2 * bin + 1] = 0;
    }
}

__kernel void count(__global const ELEMENT *elements, __global uint *counts, ulong rows,
                    ulong cols) {
    size_t k = get_global_id(0);

    if (k < rows)
        atomic_inc(&counts[2 * elements[k]]);
}
