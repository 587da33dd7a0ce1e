/* SPDX-License-Identifier: MIT */
/* Writes far outside of its memory.
 *
 * iron: op histogram
 * iron: launch crash 1 1
 */
__kernel void crash(__global const ELEMENT *elements, __global uint *counts, ulong rows,
                    ulong cols) {
    for (size_t far = 1; far < ((size_t)1 << 48); far *= 2)
        counts[far * 64] = 0;
}
