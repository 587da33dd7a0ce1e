/* SPDX-License-Identifier: MIT */
/* Honest, for the op of the template new-op: two additions for each mean. iron: op smooth */
#include <iron/iron_peer.h>

int iron_run(const iron_peer_case *c) {
    const ELEMENT *x = c->inputs[0];
    const int64_t rows = (int64_t)c->rows;
    ELEMENT *y = c->output;
    double sum = 0;

    for (int64_t k = -RADIUS; k < rows; k++) {
        int64_t first = k < RADIUS ? 0 : k - RADIUS,
                last = k + RADIUS < rows ? k + RADIUS : rows - 1;

        sum += k + RADIUS < rows ? x[k + RADIUS] : 0;
        sum -= k > RADIUS ? x[k - RADIUS - 1] : 0;
        if (k >= 0)
            y[k] = (ELEMENT)(sum / (double)(last - first + 1));
    }
    return 0;
}
