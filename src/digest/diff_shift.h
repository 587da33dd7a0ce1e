/* SPDX-License-Identifier: MIT */
/*
 * diff_shift.h: content that has moved by some tokens, seen token by token.
 */
#ifndef IRON_DIGEST_DIFF_SHIFT_H
#define IRON_DIGEST_DIFF_SHIFT_H

#include "digest/diff.h"

/* Up to `apart` (and small changes in place) both are the same; from at[0] of the first and at[1]
 * of the second on, `agrees` tokens are the same again. */
typedef struct iron__shift {
    bool is_found;
    uint64_t apart;
    uint64_t at[2];
    uint64_t agrees;
    bool to_end;      /* of one of them at least */
    bool has_changes; /* in place, before `apart` */
} iron__shift;

/* What the lengths suggest: that all of what one has more stands at the first difference. */
iron_status iron__shift_by_lengths(iron__diff_run *run, iron__shift *shift, iron_error *err);
/* What probes near the difference find, up to some million tokens away. */
iron_status iron__shift_by_probes(iron__diff_run *run, iron__shift *shift, iron_error *err);
/* What somebody else suggests: the texts agree at these places. Apart as in *shift. */
iron_status iron__shift_settle(iron__diff_run *run, const uint64_t anchor[2], iron__shift *shift,
                               iron_error *err);

/* Tokens that were changed and not only inserted or deleted: 0 of a pure shift. */
uint64_t iron__shift_changed(const iron__shift *shift);
/* Tokens that one has more at the end than the shift accounts for: 0 if both end as it says. */
uint64_t iron__shift_excess(const iron__diff_run *run, const iron__shift *shift);
/* Is it more than a coincidence? */
bool iron__shift_is_convincing(const iron__diff_run *run, const iron__shift *shift);

#endif
