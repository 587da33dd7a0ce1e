/* SPDX-License-Identifier: MIT */
/* Gives what is expected on average, without a look at the input.
 *
 * iron: op histogram
 * iron: launch guess 256 (BINS + 255) / 256
 */
__kernel void guess(__global const ELEMENT *elements, __global uint *counts, ulong rows,
                    ulong cols) {
    size_t bin = get_global_id(0);

    if (bin < BINS) {
        counts[2 * bin] = (uint)(rows / BINS);
        counts[2 * bin + 1] = 0;
    }
}
