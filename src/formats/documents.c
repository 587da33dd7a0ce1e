/* SPDX-License-Identifier: MIT */
/*
 * documents.c: the documents of a token file: as the index beside it says (Megatron's P.idx and
 * datatrove's X.ds.index), or the rows of a table. Opening the tokens has checked the whole index
 * (indexed.c describes the files); here it is read again. The rows of a table are found block by
 * block.
 *
 * The first document begins with the file's first token, the others where the one before ends.
 */
#include <iron/iron_digest.h>

#include "core/array.h"
#include "core/fail.h"
#include "core/memory.h"
#include "formats/format.h"
#include "formats/source.h"

#include <inttypes.h>
#include <stdlib.h>

struct iron_documents {
    uint64_t tokens; /* of the file */
    uint64_t width;
    uint64_t count; /* documents */
    uint64_t next;  /* the next document */
    uint64_t last;  /* the last beginning or end that was read */
    uint64_t read;  /* how many ends were read */
    /* of an index */
    iron__sidecar index;
    bool is_megatron;
    iron__numbers ends;    /* of documents: Megatron counts in sequences, ds in tokens */
    iron__numbers offsets; /* Megatron: where each sequence begins, in bytes */
    /* of a table, whose rows are read one block at a time */
    const iron__table *table; /* NULL: an index */
    iron__input in;
    size_t block;     /* its number, if has_rows */
    iron__block rows; /* where its rows begin in the file */
    bool has_rows;
};

iron__cut iron__source_cut(const iron_source *source, size_t index) {
    const iron__format_layout *layout = iron__source_layout(source, index);

    if ((layout->table && !layout->shape) || layout->stream)
        return IRON_CUT_ROWS;
    return layout->format && layout->documents != IRON_COUNT_UNKNOWN ? IRON_CUT_DOCUMENTS
                                                                     : IRON_CUT_NONE;
}

bool iron__source_tells_starts(const iron_source *source) {
    for (size_t k = 0; k < iron_source_file_count(source); k++)
        if (iron__source_cut(source, k) != IRON_CUT_ROWS)
            return false;
    return true;
}

/* *is_there is false if the index was removed. */
static iron_status open_index(iron_documents *d, const char *path, const iron__document_index *x,
                              bool *is_there, iron_error *err) {
    char *beside = d->is_megatron
                       ? iron__path_beside(path, iron__path_ends(path, ".bin") ? 4 : 0, ".idx")
                       : iron__path_beside(path, 0, ".index");

    IRON_TRY(iron__sidecar_open(beside, &d->index, is_there, err));
    IRON_FAIL_IF(*is_there && d->index.bytes != x->bytes, err, IRON_E_FORMAT,
                 "%.120s changed while being read", d->index.path);
    d->ends = (iron__numbers){.file = &d->index, .at = x->ends_at, .count = d->count, .width = 8};
    d->offsets =
        (iron__numbers){.file = &d->index, .at = x->offsets_at, .count = x->sequences, .width = 8};
    return IRON_OK;
}

iron_status iron_documents_open(const iron_source *source, size_t index, iron_documents **out,
                                iron_error *err) {
    const char *path = iron_source_file(source, index);
    const iron__format_layout *layout = path ? iron__source_layout(source, index) : NULL;
    bool is_there = true;
    iron_documents *d;
    iron_status status;

    *out = NULL;
    /* the rows of a pipe are known only when it is read */
    if (!layout || iron__source_cut(source, index) == IRON_CUT_NONE || layout->stream)
        return IRON_OK;
    IRON_TRY(IRON_NEW(&d, 1, "an index", err));
    d->tokens = iron_source_file_tokens(source, index);
    d->width = iron_dtype_bytes(iron_source_dtype(source));
    d->is_megatron = layout->index.offsets_at > 0;
    d->count = layout->table ? layout->table->rows : layout->documents;
    d->in = (iron__input){.path = path, .bytes = layout->bytes, .fd = -1};
    if (layout->table) {
        d->table = layout->table;
        status = iron__input_open(&d->in, err);
        iron__layout_use_frames(layout, &d->in);
    } else {
        status = open_index(d, path, &layout->index, &is_there, err);
    }
    if (status == IRON_OK && is_there)
        *out = d;
    else
        iron_documents_close(d);
    return status;
}

void iron_documents_close(iron_documents *documents) {
    if (!documents)
        return;
    iron__sidecar_close(&documents->index);
    iron__input_close(&documents->in);
    iron__block_clear(&documents->rows);
    free(documents);
}

static iron_status load_rows(iron_documents *d, size_t block, iron_error *err) {
    if (d->has_rows && d->block == block)
        return IRON_OK;
    d->has_rows = false;
    d->rows.place_count = 0;
    IRON_TRY(iron__table_row_starts(d->table, &d->in, block, &d->rows, err));
    d->block = block;
    d->has_rows = true;
    return IRON_OK;
}

/* Where document k begins. */
static iron_status find_start(iron_documents *d, uint64_t k, uint64_t *start, iron_error *err) {
    const iron__table_block *blocks = d->table ? d->table->blocks : NULL;
    uint64_t sequence, row;

    *start = 0;
    if (blocks) {
        row = d->has_rows ? k - blocks[d->block].first_row : UINT64_MAX;
        if (row >= d->rows.place_count) { /* in another block, or an earlier one: it wraps around */
            IRON_TRY(load_rows(
                d,
                iron__array_find(&blocks[0].first_row, sizeof blocks[0], d->table->block_count, k),
                err));
            row = k - blocks[d->block].first_row;
        }
        IRON_FAIL_IF(row >= d->rows.place_count, err, IRON_E_FORMAT,
                     "%.100s changed while being read", d->in.path);
        *start = d->rows.places[row];
        return IRON_OK;
    }
    if (k == 0)
        return IRON_OK;
    if (!d->is_megatron)
        return iron__numbers_get(&d->ends, k - 1, start, err);
    IRON_TRY(iron__numbers_get(&d->ends, k - 1, &sequence, err));
    *start = d->tokens;
    if (sequence >= d->offsets.count) /* the one before ends with the last sequence */
        return IRON_OK;
    IRON_TRY(iron__numbers_get(&d->offsets, sequence, start, err));
    *start /= d->width;
    return IRON_OK;
}

/* The next document is the first that begins at the position or later. Rows that begin there may be
 * in two blocks: empty ones at the end of the first. */
static iron_status seek(iron_documents *d, uint64_t position, iron_error *err) {
    const iron__table *t = d->table;
    uint64_t low = 0, high = t ? t->block_count : d->count, start;
    iron_status status = IRON_OK;

    d->last = position;
    d->ends.is_sought = d->offsets.is_sought = true;
    while (low < high && status == IRON_OK) {
        uint64_t middle = low + (high - low) / 2;

        if (t) /* the first block that ends at the position or after it */
            start = t->blocks[middle].first + iron__table_block_tokens(t, (size_t)middle);
        else
            status = find_start(d, middle, &start, err);
        if (start < position)
            low = middle + 1;
        else
            high = middle;
    }
    d->ends.is_sought = d->offsets.is_sought = false;
    d->next = t ? d->count : low;
    if (!t || low >= t->block_count)
        return status;
    IRON_TRY(load_rows(d, (size_t)low, err));
    d->next = t->blocks[low].first_row;
    for (size_t k = 0; k < d->rows.place_count && d->rows.places[k] < position; k++)
        d->next++;
    return IRON_OK;
}

/* Where the next document begins. */
static iron_status next_start(iron_documents *d, uint64_t *start, bool *is_there, iron_error *err) {
    *is_there = d->next < d->count;
    if (!*is_there)
        return IRON_OK;
    IRON_TRY(find_start(d, d->next, start, err));
    IRON_FAIL_IF(*start < d->last || *start > d->tokens, err, IRON_E_FORMAT,
                 "%.100s: a document begins at token %" PRIu64 ", expected %" PRIu64 " to %" PRIu64
                 "; it changed while being read",
                 d->table ? d->in.path : d->index.path, *start, d->last, d->tokens);
    d->last = *start;
    d->next++;
    return IRON_OK;
}

iron_status iron_documents_read(iron_documents *documents, uint64_t *ends, size_t room,
                                size_t *count, iron_error *err) {
    iron_documents *d = documents;

    *count = 0;
    d->in.stop = NULL;
    while (*count < room && d->read < d->count) {
        uint64_t end = d->tokens;

        /* a document ends where the next one begins; an index has an entry for the last, too */
        if (!d->table || d->read + 1 < d->count)
            IRON_TRY(find_start(d, d->read + 1, &end, err));
        IRON_FAIL_IF(end < d->last || end > d->tokens, err, IRON_E_FORMAT,
                     "%.100s: document %" PRIu64 " ends at token %" PRIu64 ", expected %" PRIu64
                     " to %" PRIu64 "; it changed while being read",
                     d->table ? d->in.path : d->index.path, d->read, end, d->last, d->tokens);
        d->last = ends[(*count)++] = end;
        d->read++;
    }
    return IRON_OK;
}

iron_status iron__documents_each(iron_documents *documents, uint64_t first, uint64_t end,
                                 iron__document_use use, void *context, const atomic_bool *stop,
                                 iron_error *err) {
    uint64_t begin = 0, next = 0;
    bool is_there = false, is_next_there = false;

    documents->in.stop = stop;
    IRON_TRY(seek(documents, first, err));
    IRON_TRY(next_start(documents, &begin, &is_there, err));
    while (is_there && (begin < end || (begin == end && end == documents->tokens))) {
        IRON_TRY(next_start(documents, &next, &is_next_there, err));
        next = is_next_there ? next : documents->tokens;
        IRON_TRY(use(context, begin, next, err));
        begin = next;
        is_there = is_next_there;
    }
    return IRON_OK;
}
