/* SPDX-License-Identifier: MIT */
/*
 * cpu_scalar.c: the reference: SPEC's definition, token by token, with the language's own %.
 * Everything else is verified against this.
 */
#include "core/mix.h"
#include "ops/tokens/tokens.h"

iron__contribution iron__tokens_scalar(const iron__tokens_run *run) {
    iron__contribution c = {.count = run->count};
    uint32_t vocab = run->divisor->vocab;

    for (size_t k = 0; k < run->count; k++) {
        uint32_t p = run->tokens[k] + iron__position_hash(run->first + k);

        c.xors ^= p;
        c.sum += p % vocab;
    }
    return c;
}
