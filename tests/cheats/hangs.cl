/* SPDX-License-Identifier: MIT */
/* Never ends.
 *
 * iron: op histogram
 * iron: launch wait 1 1
 */
__kernel void wait(__global const ELEMENT *elements, __global uint *counts, ulong rows,
                   ulong cols) {
    volatile __global uint *word = counts;

    while (*word != 1)
        *word = 2;
}
