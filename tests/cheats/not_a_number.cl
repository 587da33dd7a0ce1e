/* SPDX-License-Identifier: MIT */
/* Gives NaN, which is neither too large nor too small.
 *
 * iron: op atax
 * iron: launch spoil 64 (cols + 63) / 64
 */
__kernel void spoil(__global const ELEMENT *a, __global const ELEMENT *x, __global ELEMENT *y,
                    ulong rows, ulong cols) {
    ELEMENT zero = 0;

    if (get_global_id(0) < cols)
        y[get_global_id(0)] = zero / zero;
}
