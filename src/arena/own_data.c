/* SPDX-License-Identifier: MIT */
/*
 * own_data.c: the tokens of the user's that a race is over (--data): they are read once, when the
 * race is planned, since the vocabulary is a part of every case.
 *
 * They stay in memory as u32, and each problem has a copy in its own type; so many are read that
 * both take a half of the machine's memory at most.
 */
#include "arena/arena_internal.h"
#include "core/fail.h"

#define BYTES_PER_TOKEN 8u /* here and in a problem */
#define VOCAB_USUAL     50257u
#define VOCAB_MAX       (UINT64_C(1) << 31)

iron_status iron__own_data_read(iron__own_data *own, const iron_arena_data *from, uint64_t wanted,
                                uint32_t vocab, uint64_t host_bytes, iron_error *err) {
    iron__op_data *d = &own->data;
    uint64_t most = host_bytes ? host_bytes / 2 / BYTES_PER_TOKEN : UINT64_MAX, least = 0, at = 0;
    const char *slash;

    IRON_FAIL_IF(from->struct_size != sizeof *from, err, IRON_E_ARG,
                 "an arena's data have %u bytes, which is another version", from->struct_size);
    d->element = iron__element_find(from->dtype);
    slash = strrchr(from->file, '/');
    snprintf(d->name, sizeof d->name, "%s", slash && slash[1] ? slash + 1 : from->file);
    for (char *c = d->name; *c; c++)
        if ((unsigned char)*c <= ' ' || strchr("/,=\"'", *c))
            *c = '_'; /* it must be one word */
    snprintf(own->file, sizeof own->file, "%s", from->file);
    own->total = from->tokens;
    IRON_FAIL_IF(from->tokens == 0, err, IRON_E_ARG, "%.180s has no tokens to race over",
                 own->file);
    if (most > from->tokens)
        most = from->tokens;
    IRON_FAIL_IF(wanted > most, err, IRON_E_ARG,
                 "--size %" PRIu64 " is more than the %" PRIu64 " tokens of %.120s%s", wanted, most,
                 own->file, most < from->tokens ? " that fit into memory" : "");
    d->count = wanted ? wanted : most;
    own->bytes = (size_t)d->count * sizeof *d->tokens;
    own->tokens = iron__allocate_large(own->bytes, err);
    if (!own->tokens)
        return IRON_E_NOMEM;
    d->tokens = own->tokens;
    IRON_TRY(from->read(from->context, own->tokens, (size_t)d->count, err));
    for (uint64_t k = 0; k < d->count; k++) /* every id must be below the vocabulary */
        if (d->tokens[k] >= least) {
            least = d->tokens[k] + UINT64_C(1);
            at = k;
        }
    IRON_FAIL_IF(least > (vocab ? vocab : VOCAB_MAX), err, IRON_E_ARG,
                 "%.100s: token %" PRIu64 " at position %" PRIu64 " is not below %s%" PRIu64,
                 own->file, least - 1, at, vocab ? "--vocab " : "the largest vocabulary, ",
                 vocab ? vocab : VOCAB_MAX);
    own->vocab = vocab ? vocab : (uint32_t)(least > VOCAB_USUAL ? least : VOCAB_USUAL);
    return IRON_OK;
}
