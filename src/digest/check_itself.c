/* SPDX-License-Identifier: MIT */
/*
 * check_itself.c: is the manifest sound itself? Its chunks cannot tell: the stream's words A and B
 * do not follow from theirs, and the statistics not at all. But once all of the stream was read and
 * every chunk is as it was, a scan knows them; whatever the manifest says otherwise was changed in
 * the manifest.
 */
#include "digest/check.h"

#include <stdarg.h>
#include <stdio.h>

static void damage(iron_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void damage(iron_check *c, const char *format, ...) {
    va_list list;

    c->is_damaged = true;
    c->damage.state = IRON_CHECK_FAILED;
    va_start(list, format);
    vsnprintf(c->damage.reason, sizeof c->damage.reason, format, list);
    va_end(list);
}

static bool has_same_words(const iron__seal_words *x, const iron__seal_words *y) {
    return x->count == y->count && x->t == y->t && x->a == y->a && x->b == y->b;
}

static bool has_same_statistics(const iron__token_stats *x, const iron__token_stats *y) {
    return x->min == y->min && x->max == y->max && x->out_of_vocab == y->out_of_vocab &&
           x->first_position == y->first_position &&
           (x->out_of_vocab == 0 || x->first_value == y->first_value);
}

/* The first chunk with another mark; chunk_count if there is none. */
static size_t other_mark(const iron_manifest *m, const iron_manifest *found) {
    size_t k = 0;

    while (
        k < m->chunk_count && m->chunks[k].mark == found->chunks[k].mark &&
        (m->chunks[k].mark == IRON_MARK_NONE || m->chunks[k].mark_at == found->chunks[k].mark_at))
        k++;
    return k;
}

void iron__check_itself(iron_check *check, const iron_manifest *found) {
    const iron_manifest *m = check->manifest;

    if (check->wrong > 0)
        return;
    if (!has_same_words(&m->words, &found->words)) {
        iron__seal_text(m->words, check->damage.expected);
        iron__seal_text(found->words, check->damage.found);
        damage(check,
               "the manifest is damaged: its chunks are those of its files, its seal is not");
    } else if (!has_same_statistics(&m->stats, &found->stats)) {
        damage(check, "the manifest is damaged: its statistics are not those of its files");
    } else if (other_mark(m, found) < m->chunk_count) {
        damage(check, "the manifest is damaged: the mark of chunk %zu is not that of its files",
               other_mark(m, found));
    }
}
