/* SPDX-License-Identifier: MIT */
/*
 * generator.c: the pseudorandom token stream of tests and demos; any position can be generated
 * directly.
 */
#include "core/fail.h"
#include "core/hash.h"

#include <inttypes.h>

#define LIMIT_MAX (UINT64_C(1) << 32)

iron_status iron_generate(uint64_t seed, uint64_t limit, uint64_t first, uint32_t *tokens,
                          size_t count, iron_error *err) {
    IRON_FAIL_IF(limit < 1 || limit > LIMIT_MAX, err, IRON_E_ARG,
                 "limit is %" PRIu64 "; it must be 1 to 4294967296", limit);
    for (size_t k = 0; k < count; k++) {
        uint64_t z = iron__mix64(seed + (first + k + 1) * IRON_GOLDEN_GAMMA);

        tokens[k] = (uint32_t)(z % limit);
    }
    return IRON_OK;
}
