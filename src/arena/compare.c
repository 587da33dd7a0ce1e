/* SPDX-License-Identifier: MIT */
/*
 * compare.c: see compare.h. Rows of now are matched with rows of the old report in order, each with
 * at most one; what is left over on either side is new or gone.
 *
 * How sure a verdict is: the 95 % interval of a median says what other samples of the same minutes
 * would have given. It does not know that the clock rose or a neighbour came in between, so both
 * intervals are widened by the drift seen within each run: its samples, in the order of time, are
 * cut into up to five blocks of three or more, and half of the spread of the blocks' medians is
 * added on either side. Runs of fewer than three samples decide nothing.
 */
#include "arena/compare.h"

#include "arena/compare_old.h"
#include "core/fail.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX   5u
#define BLOCK_MIN    3u
#define DECIDING_MIN 3u

static const iron__scope compared[] = {IRON_SCOPE_KERNEL, IRON_SCOPE_END_TO_END};

typedef struct span {
    size_t count;
    double median, low, high;
} span;

/* Half of the spread of the medians of blocks in the order of time. */
static double drift_of(const double *ms, size_t count) {
    size_t blocks = count / BLOCK_MIN < BLOCKS_MAX ? count / BLOCK_MIN : BLOCKS_MAX;
    double low = 0, high = 0;

    for (size_t b = 0; b < blocks; b++) {
        size_t from = b * count / blocks, to = (b + 1) * count / blocks;
        double median = iron__statistics_of(ms + from, to - from).median;

        low = b == 0 || median < low ? median : low;
        high = b == 0 || median > high ? median : high;
    }
    return (high - low) / 2;
}

static span span_of(const double *ms, size_t count) {
    iron__statistics s = iron__statistics_of(ms, count);
    double drift = drift_of(ms, count);

    return (span){count, s.median, s.low - drift, s.high + drift};
}

static span old_span(const iron__json *samples) {
    double ms[IRON_SAMPLES_MAX] = {0};
    size_t count = iron__json_length(samples);

    for (size_t k = 0; k < count; k++)
        iron__json_number(&samples->items[k], &ms[k]);
    return span_of(ms, count);
}

static iron__change change_of(const span *old, const span *new, double threshold) {
    bool is_slower = new->median > old->median *(1 + threshold);
    bool is_faster = old->median > new->median *(1 + threshold);
    bool is_sure = old->count >= DECIDING_MIN && new->count >= DECIDING_MIN;

    if (!is_slower && !is_faster)
        return IRON_CHANGE_SAME;
    if (is_sure && is_slower && new->low > old->high)
        return IRON_CHANGE_SLOWER;
    if (is_sure && is_faster && new->high < old->low)
        return IRON_CHANGE_FASTER;
    return IRON_CHANGE_UNCLEAR;
}

/* out->rows grows; what is added is counted. */
static iron_status add(iron__comparison *out, const iron__comparison_row *row, iron_error *err) {
    /* full at every power of two */
    if ((out->row_count & (out->row_count - 1)) == 0) {
        size_t room = out->row_count ? 2 * out->row_count : 1;
        iron__comparison_row *rows = realloc(out->rows, room * sizeof *rows);

        IRON_FAIL_IF(!rows, err, IRON_E_NOMEM, "out of memory: a comparison of %zu rows", room);
        out->rows = rows;
    }
    out->rows[out->row_count++] = *row;
    out->counts[row->change]++;
    out->slower_count += row->change == IRON_CHANGE_SLOWER || row->change == IRON_CHANGE_BROKEN;
    return IRON_OK;
}

/* A change of the row as a whole; what it is (now or was) and its reason go along. */
static iron_status add_whole(iron__comparison *out, const iron__row_key *key, iron__change change,
                             const char *what, const char *reason, iron_error *err) {
    iron__comparison_row row = {.key = *key, .scope = IRON_SCOPES, .change = change};

    snprintf(row.reason, sizeof row.reason, "%s%s", what, reason);
    return add(out, &row, err);
}

/* What stands before a row's reason. */
static const char *told_status(iron__row_status status) {
    static const char *const told[] = {"", "wrong: ", "skipped: ", "failed: "};

    return told[status];
}

/* One scope of a row that is ok in both; where only one has samples it is new or gone. */
static iron_status compare_scope(iron__comparison *out, const iron__row_key *key, iron__scope scope,
                                 const iron__json *then, const iron__samples *now,
                                 iron_error *err) {
    iron__comparison_row row = {.key = *key, .scope = scope, .change = IRON_CHANGE_NEW};
    span old = {0}, new = {0};

    if (then)
        old = old_span(then);
    if (now && now->count > 0)
        new = span_of(now->ms, now->count);
    if (old.count == 0 && new.count == 0)
        return IRON_OK;
    row.old_ms = old.median;
    row.new_ms = new.median;
    if (old.count > 0 && new.count > 0) {
        row.change = change_of(&old, &new, out->threshold_percent / 100);
        row.ratio = old.median > 0 ? new.median / old.median : 0;
    } else if (old.count > 0) {
        row.change = IRON_CHANGE_GONE;
    }
    return add(out, &row, err);
}

static iron_status compare_scopes(iron__comparison *out, const iron__row_key *key,
                                  const iron__old_row *old, const iron__report_row *now,
                                  iron_error *err) {
    for (size_t k = 0; k < sizeof compared / sizeof compared[0]; k++) {
        const iron__report_scope *scope = &now->scopes[compared[k]];

        IRON_TRY(compare_scope(out, key, compared[k], old->samples[compared[k]],
                               scope->is_there ? scope->samples : NULL, err));
    }
    return IRON_OK;
}

/* Rows that are not ok in both are judged as a whole; not ok before and now says nothing new. */
static iron_status compare_row(iron__comparison *out, const iron__row_key *key,
                               const iron__old_row *old, const iron__report_row *now,
                               iron_error *err) {
    bool is_broken = now->status == IRON_ROW_WRONG || now->status == IRON_ROW_FAILED;

    if (old->status == IRON_ROW_OK && now->status == IRON_ROW_OK)
        return compare_scopes(out, key, old, now, err);
    if (old->status == IRON_ROW_OK)
        return add_whole(out, key, is_broken ? IRON_CHANGE_BROKEN : IRON_CHANGE_GONE,
                         told_status(now->status), now->reason, err);
    if (now->status == IRON_ROW_OK)
        return add_whole(out, key, IRON_CHANGE_NEW, "it was ", iron__row_status_name(old->status),
                         err);
    return IRON_OK;
}

static iron__row_key key_of(const iron__report_row *row) {
    iron__row_key key = {.vocab = row->vocab, .params = row->params};

    memcpy(key.op, row->op, sizeof key.op);
    memcpy(key.contender, row->contender, sizeof key.contender);
    memcpy(key.backend, row->backend, sizeof key.backend);
    memcpy(key.memory, row->memory, sizeof key.memory);
    memcpy(key.device, row->device, sizeof key.device);
    memcpy(key.size, row->size, sizeof key.size);
    memcpy(key.dtype, row->dtype, sizeof key.dtype);
    return key;
}

static bool is_same_key(const iron__row_key *a, const iron__row_key *b) {
    return strcmp(a->contender, b->contender) == 0 && strcmp(a->op, b->op) == 0 &&
           strcmp(a->backend, b->backend) == 0 && strcmp(a->memory, b->memory) == 0 &&
           strcmp(a->device, b->device) == 0 && strcmp(a->size, b->size) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && a->vocab == b->vocab &&
           iron__params_are_same(&a->params, &b->params);
}

static bool is_same_or_unsaid(uint64_t then, uint32_t now) {
    return then == now || then == UINT64_MAX;
}

static iron__old_row *find_old(iron__old_report *old, const iron__row_key *key,
                               const iron__report_row *now) {
    for (size_t k = 0; k < old->row_count; k++) {
        iron__old_row *row = &old->rows[k];

        if (!row->is_matched && is_same_key(&row->key, key) &&
            is_same_or_unsaid(row->nodes, now->nodes) &&
            is_same_or_unsaid(row->threads, now->threads) &&
            is_same_or_unsaid(row->streams, now->streams))
            return row;
    }
    return NULL;
}

static iron_status compare_rows(iron__comparison *out, iron__old_report *old,
                                const iron__report *now, iron_error *err) {
    for (size_t k = 0; k < now->row_count; k++) {
        const iron__report_row *row = &now->rows[k];
        iron__row_key key = key_of(row);
        iron__old_row *then = find_old(old, &key, row);

        if (then) {
            then->is_matched = true;
            IRON_TRY(compare_row(out, &key, then, row, err));
        } else {
            IRON_TRY(
                add_whole(out, &key, IRON_CHANGE_NEW, told_status(row->status), row->reason, err));
        }
    }
    for (size_t k = 0; k < old->row_count; k++)
        if (!old->rows[k].is_matched)
            IRON_TRY(add_whole(out, &old->rows[k].key, IRON_CHANGE_GONE, "it was ",
                               iron__row_status_name(old->rows[k].status), err));
    return IRON_OK;
}

iron_status iron__compare(const char *path, const iron__report *now, double threshold_percent,
                          iron__comparison *out, iron_error *err) {
    iron__old_report old;
    iron_status status;

    *out = (iron__comparison){.threshold_percent = threshold_percent};
    snprintf(out->path, sizeof out->path, "%s", path);
    IRON_FAIL_IF(!(threshold_percent >= 0 && threshold_percent <= 1e6), err, IRON_E_ARG,
                 "the threshold is %g %%; it must be 0 or more", threshold_percent);
    IRON_TRY(iron__old_report_read(path, &old, err));
    status = compare_rows(out, &old, now, err);
    iron__old_report_deinit(&old);
    if (status != IRON_OK)
        iron__comparison_deinit(out);
    return status;
}

void iron__comparison_deinit(iron__comparison *comparison) {
    free(comparison->rows);
    *comparison = (iron__comparison){0};
}
