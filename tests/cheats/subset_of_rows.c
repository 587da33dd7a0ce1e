/* SPDX-License-Identifier: MIT */
/* Uses every second row and doubles the result, which is nearly the same for a random matrix. */
#include <iron/iron_peer.h>

const char iron_contender[] = "iron: op atax";

int iron_run(const iron_peer_case *c) {
    const ELEMENT *a = c->inputs[0], *x = c->inputs[1];
    ELEMENT *y = c->output;

    for (size_t j = 0; j < c->cols; j++)
        y[j] = 0;
    for (size_t i = 0; i < c->rows; i += 2) {
        const ELEMENT *row = a + i * c->cols;
        ELEMENT t = 0;

        for (size_t j = 0; j < c->cols; j++)
            t += row[j] * x[j];
        for (size_t j = 0; j < c->cols; j++)
            y[j] += 2 * row[j] * t;
    }
    return 0;
}
