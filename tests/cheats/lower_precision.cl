/* SPDX-License-Identifier: MIT */
/* Computes with floats where doubles are asked for.
 *
 * iron: op atax
 * iron: scratch rows * element
 * iron: launch multiply 64 (rows + 63) / 64
 * iron: launch multiply_back 64 (cols + 63) / 64
 */
__kernel void multiply(__global const ELEMENT *a, __global const ELEMENT *x, __global ELEMENT *y,
                       __global ELEMENT *t, ulong rows, ulong cols) {
    size_t i = get_global_id(0);
    float sum = 0;

    for (size_t j = 0; i < rows && j < cols; j++)
        sum += (float)a[i * cols + j] * (float)x[j];
    if (i < rows)
        t[i] = sum;
}

__kernel void multiply_back(__global const ELEMENT *a, __global const ELEMENT *x,
                            __global ELEMENT *y, __global ELEMENT *t, ulong rows, ulong cols) {
    size_t j = get_global_id(0);
    float sum = 0;

    for (size_t i = 0; j < cols && i < rows; i++)
        sum += (float)a[i * cols + j] * (float)t[i];
    if (j < cols)
        y[j] = sum;
}
