/* SPDX-License-Identifier: MIT */
/*
 * diff_shift.c: has content moved by some tokens?
 *
 * A suggestion (from the lengths, a probe, a mark) becomes a finding only when the tokens were
 * compared: from the earliest place the shift could begin to the end, on all threads. So whatever
 * is said of a shift was seen, and how far it was seen is known.
 */
#include "digest/diff_shift.h"

#include "core/fail.h"
#include "digest/diff_probe.h"

/* How far probes look: 16 MiB a side. Twice what a chunk of the usual size needs. */
#define LOOK_TOKENS ((uint64_t)1 << 22)
#define NEAR_TOKENS ((uint64_t)1 << 13)
/* Changes in place that are passed over in the search for a shift. */
#define CHANGES_MAX 256u
/* Less agreement than this is no reason to speak of a shift, unless all ends fit. */
#define AGREES_MIN     64u
#define AGREES_MIN_MID 1024u

#define BACK_TOKENS ((size_t)16384)

static uint64_t less_of(uint64_t x, uint64_t y) { return x < y ? x : y; }

/* Tokens that both have from these places on. */
static uint64_t left_at(const iron__diff_run *run, const uint64_t at[2]) {
    return less_of(run->text[0].tokens - at[0], run->text[1].tokens - at[1]);
}

static iron_status agree_from(iron__diff_run *run, const uint64_t at[2], uint64_t *agrees,
                              iron_error *err) {
    const iron__lockstep what = {
        {&run->text[0], &run->text[1]}, {at[0], at[1]}, left_at(run, at), NULL};

    return iron__lockstep_run(&what, &run->crew, agrees, err);
}

static iron_status take_both(iron__diff_run *run, const uint64_t at[2], size_t count,
                             uint32_t *to[2], iron_error *err) {
    for (int side = 0; side < 2; side++)
        IRON_TRY(iron__diff_text_take(&run->text[side], at[side], to[side], count, err));
    return IRON_OK;
}

/* How many tokens directly before the anchor agree, of at most `most`. */
static iron_status agree_before(iron__diff_run *run, const uint64_t anchor[2], uint64_t most,
                                uint32_t *block[2], uint64_t *back, iron_error *err) {
    *back = 0;
    while (*back < most) {
        size_t some = (size_t)less_of(most - *back, BACK_TOKENS), same = 0;
        const uint64_t at[2] = {anchor[0] - *back - some, anchor[1] - *back - some};

        IRON_TRY(take_both(run, at, some, block, err));
        while (same < some && block[0][some - 1 - same] == block[1][some - 1 - same])
            same++;
        *back += same;
        if (same < some)
            break;
    }
    return IRON_OK;
}

static iron_status make_blocks(size_t count, uint32_t *block[2], iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();

    block[0] = iron__allocate(memory, 2 * count, sizeof *block[0], "tokens to search", err);
    block[1] = block[0] ? block[0] + count : NULL;
    return block[0] ? IRON_OK : IRON_E_NOMEM;
}

/* The agreement does not go back to where it could begin: how far does it? */
static iron_status settle_late(iron__diff_run *run, const uint64_t anchor[2], uint64_t most,
                               iron__shift *shift, iron_error *err) {
    uint32_t *block[2];
    uint64_t back = 0;
    iron_status status = make_blocks(BACK_TOKENS, block, err);

    if (status == IRON_OK)
        status = agree_before(run, anchor, most, block, &back, err);
    iron__release(iron__allocator_default(), block[0]);
    IRON_TRY(status);
    for (int side = 0; side < 2; side++)
        shift->at[side] = anchor[side] - back;
    return agree_from(run, shift->at, &shift->agrees, err);
}

iron_status iron__shift_settle(iron__diff_run *run, const uint64_t anchor[2], iron__shift *shift,
                               iron_error *err) {
    uint64_t earliest = less_of(anchor[0], anchor[1]) - shift->apart;

    for (int side = 0; side < 2; side++)
        shift->at[side] = anchor[side] - earliest;
    IRON_TRY(agree_from(run, shift->at, &shift->agrees, err));
    if (shift->agrees < earliest)
        IRON_TRY(settle_late(run, anchor, earliest, shift, err));
    shift->is_found = true;
    shift->to_end = shift->agrees == left_at(run, shift->at);
    return IRON_OK;
}

iron_status iron__shift_by_lengths(iron__diff_run *run, iron__shift *shift, iron_error *err) {
    uint64_t *tokens = run->diff->report.tokens;

    shift->is_found = false;
    if (tokens[0] == tokens[1])
        return IRON_OK;
    for (int side = 0; side < 2; side++)
        shift->at[side] =
            shift->apart + (tokens[side] > tokens[!side] ? tokens[side] - tokens[!side] : 0);
    IRON_TRY(agree_from(run, shift->at, &shift->agrees, err));
    shift->is_found = shift->to_end = shift->agrees == left_at(run, shift->at);
    return IRON_OK;
}

/* The tokens from where they are apart on, at most so many of each. */
static iron_status load(iron__diff_run *run, uint64_t apart, uint64_t most, uint32_t *block[2],
                        iron__probe_texts *texts, iron_error *err) {
    for (int side = 0; side < 2; side++) {
        size_t count = (size_t)less_of(run->text[side].tokens - apart, most);

        texts->tokens[side] = block[side];
        texts->count[side] = count;
        IRON_TRY(iron__diff_text_take(&run->text[side], apart, block[side], count, err));
    }
    return IRON_OK;
}

/* One search, from where they are apart: *at is where they agree again, in the texts loaded. A
 * change of a few tokens in place is looked for first, since that takes few tokens to see. */
static iron_status search_once(iron__diff_run *run, uint64_t apart, uint32_t *block[2],
                               size_t at[2], bool *is_found, iron_error *err) {
    iron__probe_texts texts;

    IRON_TRY(load(run, apart, NEAR_TOKENS, block, &texts, err));
    *is_found = iron__probe_in_place(&texts, &at[0]);
    at[1] = at[0];
    if (*is_found)
        return IRON_OK;
    IRON_TRY(load(run, apart, LOOK_TOKENS, block, &texts, err));
    *is_found = iron__probe_search(&texts, at);
    return IRON_OK;
}

/* From one change in place to the next, until something has moved. */
static iron_status search(iron__diff_run *run, uint32_t *block[2], iron__shift *shift,
                          iron_error *err) {
    uint64_t common = iron__diff_common(&run->diff->report);

    for (uint32_t k = 0; k < CHANGES_MAX && shift->apart < common; k++) {
        size_t at[2] = {0, 0};
        uint64_t anchor[2], agrees;
        bool is_found;

        IRON_TRY(search_once(run, shift->apart, block, at, &is_found, err));
        if (!is_found)
            return IRON_OK;
        for (int side = 0; side < 2; side++)
            anchor[side] = shift->apart + at[side];
        if (at[0] != at[1])
            return iron__shift_settle(run, anchor, shift, err);
        IRON_TRY(agree_from(run, anchor, &agrees, err));
        shift->has_changes = true;
        shift->apart = anchor[0] + agrees;
    }
    return IRON_OK;
}

iron_status iron__shift_by_probes(iron__diff_run *run, iron__shift *shift, iron_error *err) {
    uint64_t room = less_of(LOOK_TOKENS, iron__diff_longer(&run->diff->report));
    uint32_t *block[2];
    iron_status status = make_blocks((size_t)room, block, err);

    shift->is_found = false;
    if (status == IRON_OK)
        status = search(run, block, shift, err);
    iron__release(iron__allocator_default(), block[0]);
    return status;
}

uint64_t iron__shift_changed(const iron__shift *shift) {
    return less_of(shift->at[0], shift->at[1]) - shift->apart;
}

uint64_t iron__shift_excess(const iron__diff_run *run, const iron__shift *shift) {
    uint64_t a = run->text[0].tokens - shift->at[0], b = run->text[1].tokens - shift->at[1];

    return a > b ? a - b : b - a;
}

bool iron__shift_is_convincing(const iron__diff_run *run, const iron__shift *shift) {
    uint64_t changed = iron__shift_changed(shift);

    if (!shift->is_found || shift->at[0] == shift->at[1])
        return false;
    if (shift->to_end && changed == 0 && iron__shift_excess(run, shift) == 0)
        return shift->agrees > 0;
    return shift->agrees >= (shift->to_end ? AGREES_MIN : AGREES_MIN_MID) &&
           shift->agrees / 4 >= changed;
}
