/* SPDX-License-Identifier: MIT */
/*
 * parts.c: a stream in parts: where each part begins, and joining the manifests of all parts.
 *
 * Words and statistics merge in any order. A chunk that a cut goes through is in two parts, with
 * its own positions in both: its pieces add up, and the smaller mark is the chunk's. The words of a
 * file add up, too: the part in which a quad of the file begins has read the rest of the quad from
 * the next part. Likewise the bag of a part is of the samples that begin in it. The result is the
 * same manifest that one scan of the whole stream gives.
 */
#include "core/fail.h"
#include "digest/digest_internal.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

iron_status iron_part_range(uint64_t tokens, uint32_t part, uint32_t parts, uint64_t *first,
                            uint64_t *count, iron_error *err) {
    uint64_t quads = tokens / 4 + (tokens % 4 != 0), share, more, begin, end;

    *first = *count = 0;
    IRON_FAIL_IF(part < 1 || part > parts, err, IRON_E_ARG,
                 "part %u of %u; parts count from 1 to their number", part, parts);
    share = quads / parts;
    more = quads % parts; /* that many parts at the beginning have one quad more */
    begin = share * (part - 1) + (part - 1 < more ? part - 1 : more);
    end = begin + share + (part - 1 < more);
    if (begin == end) { /* more parts than quads: an empty part, at the end */
        *first = tokens / 4 * 4;
        return IRON_OK;
    }
    *first = 4 * begin;
    *count = (end == quads ? tokens : 4 * end) - *first;
    return IRON_OK;
}

/* The name of a part in messages. */
typedef struct part_name {
    char text[80];
} part_name;

static part_name name_of(const iron_manifest *m) {
    part_name n;

    if (m->origin)
        snprintf(n.text, sizeof n.text, "%.60s (part %u)", m->origin, m->part);
    else
        snprintf(n.text, sizeof n.text, "part %u", m->part);
    return n;
}

/* Something that two parts of one stream have in common, and these do not; NULL: nothing. */
static const char *difference(const iron_manifest *a, const iron_manifest *b) {
    if (a->parts != b->parts)
        return "number of parts";
    if (a->stream_tokens != b->stream_tokens)
        return "length of the stream";
    if (a->chunk_tokens != b->chunk_tokens)
        return "size of chunks";
    if (a->vocab != b->vocab)
        return "vocabulary";
    if (a->bag_cut.kind != b->bag_cut.kind || a->bag_cut.value != b->bag_cut.value)
        return a->bag_cut.kind == IRON_BAG_CUT_NONE || b->bag_cut.kind == IRON_BAG_CUT_NONE
                   ? "bags: not all have one"
                   : "cut into samples";
    for (size_t k = 0; k < a->file_count && k < b->file_count; k++) {
        const iron__manifest_entry *x = &a->files[k], *y = &b->files[k];

        if (strcmp(x->path, y->path) != 0 || strcmp(x->format, y->format) != 0 ||
            x->dtype != y->dtype || x->tokens != y->tokens)
            return "list of files";
    }
    return a->file_count == b->file_count ? NULL : "list of files";
}

/* An empty part goes before one with tokens that begins at the same position. */
static int by_position(const void *a, const void *b) {
    const iron_manifest *x = *(iron_manifest *const *)a, *y = *(iron_manifest *const *)b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if ((x->tokens > 0) != (y->tokens > 0))
        return x->tokens > 0 ? 1 : -1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static int by_number(const void *a, const void *b) {
    const iron_manifest *x = *(iron_manifest *const *)a, *y = *(iron_manifest *const *)b;

    return x->part < y->part ? -1 : x->part > y->part;
}

/* Fills a manifest of zeros with all parts. */
static iron_status add_parts(iron_manifest *m, iron_manifest **parts, size_t count,
                             iron_error *err) {
    const iron_manifest *like = parts[0];
    uint64_t sum = 0;

    m->tokens = m->stream_tokens = like->stream_tokens;
    m->vocab = like->vocab;
    m->chunk_tokens = like->chunk_tokens;
    m->bag_cut = like->bag_cut;
    m->has_file_seals = true; /* unless a part has none */
    m->stats = iron__token_stats_neutral();
    m->chunk_count = (size_t)iron__manifest_chunks_of(0, m->tokens, m->chunk_tokens);
    IRON_TRY(IRON_NEW(&m->chunks, m->chunk_count, "joined parts", err));
    for (size_t k = 0; k < m->chunk_count; k++)
        m->chunks[k] = iron__chunk_empty();
    for (size_t i = 0; i < count; i++) {
        const iron_manifest *part = parts[i];

        m->words = iron__seal_merge(m->words, part->words);
        iron_bag_merge(&m->bag, &part->bag);
        m->has_file_seals = m->has_file_seals && part->has_file_seals;
        m->stats = iron__token_stats_merge(m->stats, part->stats);
        for (size_t k = 0; k < part->chunk_count; k++)
            iron__chunk_add(&m->chunks[part->first / part->chunk_tokens + k], &part->chunks[k]);
    }
    IRON_TRY(IRON_NEW(&m->files, like->file_count, "joined parts", err));
    for (size_t k = 0; k < like->file_count; k++) {
        iron__manifest_entry *f = &m->files[m->file_count++];

        *f = like->files[k];
        f->path = strdup(f->path);
        f->column = f->column ? strdup(f->column) : NULL;
        f->words = (iron__seal_words){0, 0, 0, 0};
        if (!f->path || (like->files[k].column && !f->column))
            return iron__no_memory(err, "joined parts");
        for (size_t i = 0; m->has_file_seals && i < count; i++)
            f->words = iron__seal_merge(f->words, parts[i]->files[k].words);
        sum += f->words.t;
    }
    /* A part read up to three tokens of the next one for the last quad of a file. If the file
     * changed in between, sums that would agree differ. */
    IRON_FAIL_IF(m->has_file_seals && sum != m->words.t, err, IRON_E_FORMAT,
                 "the parts do not fit together: a file changed after one part of it was read; "
                 "make the parts again");
    return IRON_OK;
}

static iron_status join_sorted(iron_manifest **sorted, size_t count, iron_manifest **out,
                               iron_error *err) {
    iron_manifest *m;
    iron_status status;
    uint32_t parts = sorted[0]->parts, expected = 1;
    uint64_t place = 0;

    qsort(sorted, count, sizeof(void *), by_number);
    for (size_t k = 0; k < count; k++, expected++) {
        IRON_FAIL_IF(sorted[k]->part < expected, err, IRON_E_FORMAT,
                     "part %u of %u is there twice: %s and %s", sorted[k]->part, parts,
                     name_of(sorted[k - 1]).text, name_of(sorted[k]).text);
        if (sorted[k]->part > expected)
            break;
    }
    IRON_FAIL_IF(expected <= parts, err, IRON_E_FORMAT,
                 "part %u of %u is missing; %zu parts were given", expected, parts, count);
    qsort(sorted, count, sizeof(void *), by_position);
    for (size_t k = 0; k < count; k++) {
        const iron_manifest *part = sorted[k];

        if (part->tokens == 0)
            continue;
        IRON_FAIL_IF(part->first > place, err, IRON_E_FORMAT,
                     "nothing covers positions %" PRIu64 " to %" PRIu64 ", before %s", place,
                     part->first - 1, name_of(part).text);
        IRON_FAIL_IF(part->first < place, err, IRON_E_FORMAT,
                     "%s overlaps the part before it: it begins at position %" PRIu64
                     ", and the other ends at %" PRIu64,
                     name_of(part).text, part->first, place);
        place = part->first + part->tokens;
    }
    IRON_FAIL_IF(place != sorted[0]->stream_tokens, err, IRON_E_FORMAT,
                 "nothing covers positions %" PRIu64 " to %" PRIu64 ", the end of the stream",
                 place, sorted[0]->stream_tokens - 1);
    IRON_TRY(IRON_NEW(&m, 1, "joined parts", err));
    status = add_parts(m, sorted, count, err);
    if (status == IRON_OK)
        *out = m;
    else
        iron_manifest_destroy(m);
    return status;
}

iron_status iron_manifest_merge(iron_manifest *const *parts, size_t count, iron_manifest **out,
                                iron_error *err) {
    iron_manifest **sorted;
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(count == 0, err, IRON_E_ARG, "no parts; give those that `iron sum --part` wrote");
    for (size_t k = 0; k < count; k++) {
        const char *what = difference(parts[0], parts[k]);

        IRON_FAIL_IF(parts[k]->parts == 0, err, IRON_E_FORMAT,
                     "%.100s is the manifest of a whole stream, not of a part",
                     parts[k]->origin ? parts[k]->origin : "a manifest");
        IRON_FAIL_IF(what, err, IRON_E_FORMAT,
                     "%s and %s are not of one stream: they differ in their %s",
                     name_of(parts[0]).text, name_of(parts[k]).text, what);
    }
    /* files with the same name and size may still differ; samples are compared with the first
     * part that has one: not all need to */
    for (size_t k = 0; k < parts[0]->file_count; k++) {
        const char *known = "";

        for (size_t p = 0; p < count; p++) {
            const iron__manifest_entry *f = &parts[p]->files[k];

            IRON_FAIL_IF(known[0] && f->sample[0] && strcmp(known, f->sample) != 0, err,
                         IRON_E_FORMAT, "%s was made of another %.60s: its sample is %s, not %s",
                         name_of(parts[p]).text, f->path, f->sample, known);
            known = known[0] ? known : f->sample;
        }
    }
    sorted = calloc(count, sizeof(void *));
    if (!sorted)
        return iron__no_memory(err, "joined parts");
    memcpy(sorted, parts, count * sizeof(void *));
    status = join_sorted(sorted, count, out, err);
    free(sorted);
    return status;
}
