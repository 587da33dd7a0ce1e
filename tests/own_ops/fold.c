/* SPDX-License-Identifier: MIT */
/* An op with much of what an op can have: a matrix, two inputs, words, integers, the default check.
 * The library of the same text is raced, too: so the lines are a string.
 */
#include <iron/iron_peer.h>

const char iron_contender[] = "iron: new op fold\n"
                              "iron: contract y[r] is v[r] and row r of A, added or by xor\n"
                              "iron: why Shows nothing.\n"
                              "iron: types u32\n"
                              "iron: vocab 1000\n"
                              "iron: shape matrix\n"
                              "iron: parameter by sum,xor\n"
                              "iron: parameter skip 1,2\n"
                              "iron: input A rows * cols * element\n"
                              "iron: input v rows * 4\n"
                              "iron: output rows * 4\n"
                              "iron: bytes rows * (cols * element + 8)\n"
                              "iron: operations rows * cols\n";

static uint32_t fold(const iron_peer_case *c, uint64_t r, int by, unsigned skip) {
    const uint32_t *row = (const uint32_t *)c->inputs[0] + r * c->cols;
    uint32_t y = ((const uint32_t *)c->inputs[1])[r];

    for (uint64_t k = 0; k < c->cols; k += skip)
        y = by ? y ^ row[k] : y + row[k];
    return y;
}

static void fold_all(const iron_peer_case *c, uint32_t *to) {
    int by = 0;
    unsigned skip = 1;
    const char *at = c->params;

    for (; *at; at++) { /* "by=xor skip=2" */
        by |= at[0] == '=' && at[1] == 'x';
        skip = at[0] == '=' && at[1] >= '0' && at[1] <= '9' ? (unsigned)(at[1] - '0') : skip;
    }
    for (uint64_t r = 0; r < c->rows; r++)
        to[r] = fold(c, r, by, skip);
}

int iron_op_generate(const iron_peer_case *c, void *const *inputs, uint64_t seed) {
    for (uint64_t k = 0; k < c->rows * c->cols; k++)
        ((uint32_t *)inputs[0])[k] = (uint32_t)(iron_peer_random(seed, k) % c->vocab);
    for (uint64_t k = 0; k < c->rows; k++)
        ((uint32_t *)inputs[1])[k] = (uint32_t)(iron_peer_random(seed + 1, k) % c->vocab);
    return 0;
}

int iron_op_reference(const iron_peer_case *c, void *reference) {
    fold_all(c, reference);
    return 0;
}

int iron_run(const iron_peer_case *c) {
    fold_all(c, c->output);
    return 0;
}
