/* SPDX-License-Identifier: MIT */
/* Counts every second time, with a number that it keeps in scratch memory.
 *
 * iron: op histogram
 * iron: scratch 4
 * iron: launch clear 256 (BINS + 255) / 256
 * iron: launch count 256 (rows + 255) / 256
 * iron: launch turn 1 1
 */
__kernel void clear(__global const ELEMENT *elements, __global uint *counts, __global uint *kept,
                    ulong rows, ulong cols) {
    size_t bin = get_global_id(0);

    if (bin < BINS && kept[0] % 2 == 0) {
        counts[2 * bin] = 0;
        counts[2 * bin + 1] = 0;
    }
}

__kernel void count(__global const ELEMENT *elements, __global uint *counts, __global uint *kept,
                    ulong rows, ulong cols) {
    size_t k = get_global_id(0);

    if (k < rows && kept[0] % 2 == 0)
        atomic_inc(&counts[2 * elements[k]]);
}

__kernel void turn(__global const ELEMENT *elements, __global uint *counts, __global uint *kept,
                   ulong rows, ulong cols) {
    kept[0]++;
}
