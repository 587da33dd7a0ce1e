/* SPDX-License-Identifier: MIT */
/*
 * documents.c: where the documents of a token file end, as the index beside it says: Megatron's
 * P.idx and datatrove's X.ds.index. Opening the tokens has checked the whole index (megatron.c and
 * ds.c describe the files); here it is read again, in pieces, because it may have hundreds of
 * millions of entries.
 */
#include <iron/iron_digest.h>

#include "core/fail.h"
#include "formats/format.h"
#include "formats/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define PIECE 4096u /* entries read at once */

#define MEGATRON_SEQUENCES_AT 18u
#define MEGATRON_ENTRIES_AT   26u
#define MEGATRON_LENGTHS_AT   34u

/* A window into an array of 64-bit numbers in the index. */
typedef struct entry_window {
    uint64_t at;    /* byte of the array's first entry */
    uint64_t count; /* entries of the array */
    uint64_t first; /* of those in memory */
    size_t held;
    unsigned char data[8 * PIECE];
} entry_window;

struct iron_documents {
    iron__sidecar index;
    uint64_t tokens; /* of the file */
    uint64_t width;
    uint64_t count, next; /* documents, and how many have been read */
    uint64_t last;        /* end of the document before */
    bool is_megatron;
    entry_window ends;    /* of documents: Megatron counts in sequences, ds in tokens */
    entry_window offsets; /* Megatron: where each sequence begins, in bytes */
};

static iron_status load_entry(const iron_documents *d, entry_window *w, uint64_t k, uint64_t *value,
                              iron_error *err) {
    if (k < w->first || k >= w->first + w->held) {
        uint64_t left = w->count - k;
        size_t some = left < PIECE ? (size_t)left : PIECE;

        w->held = 0;
        IRON_TRY(iron__sidecar_read(&d->index, w->at + 8 * k, w->data, 8 * some, err));
        w->first = k;
        w->held = some;
    }
    *value = iron__load_u64(w->data + 8 * (k - w->first));
    return IRON_OK;
}

static iron_status read_megatron_header(iron_documents *d, iron_error *err) {
    unsigned char numbers[16];
    uint64_t sequences, entries, body = d->index.bytes - MEGATRON_LENGTHS_AT;

    IRON_TRY(iron__sidecar_read(&d->index, MEGATRON_SEQUENCES_AT, numbers, sizeof numbers, err));
    sequences = iron__load_u64(numbers);
    entries = iron__load_u64(numbers + (MEGATRON_ENTRIES_AT - MEGATRON_SEQUENCES_AT));
    IRON_FAIL_IF(d->index.bytes < MEGATRON_LENGTHS_AT || entries == 0 || sequences > body / 12 ||
                     entries > (body - 12 * sequences) / 8,
                 err, IRON_E_FORMAT, "%.120s changed while being read", d->index.path);
    d->is_megatron = true;
    d->count = entries - 1;
    /* entry 0 is the beginning of the first document */
    d->ends = (entry_window){.at = MEGATRON_LENGTHS_AT + 12 * sequences + 8, .count = d->count};
    d->offsets = (entry_window){.at = MEGATRON_LENGTHS_AT + 4 * sequences, .count = sequences};
    return IRON_OK;
}

iron_status iron_documents_open(const iron_source *source, size_t index, iron_documents **out,
                                iron_error *err) {
    const char *path = iron_source_file(source, index);
    const char *format = path ? iron_source_file_format(source, index) : "";
    bool is_megatron = strcmp(format, "megatron") == 0, is_there = false;
    iron_documents *d;
    iron_status status;

    *out = NULL;
    if (!is_megatron && strcmp(format, "ds") != 0)
        return IRON_OK;
    d = calloc(1, sizeof *d);
    if (!d)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for an index");
    d->tokens = iron_source_file_tokens(source, index);
    d->width = iron_dtype_bytes(iron_source_dtype(source));
    status = iron__sidecar_open(
        is_megatron ? iron__path_beside(path, iron__path_ends(path, ".bin") ? 4 : 0, ".idx")
                    : iron__path_beside(path, 0, ".index"),
        &d->index, &is_there, err);
    if (status == IRON_OK && is_there && is_megatron) {
        status = read_megatron_header(d, err);
    } else if (status == IRON_OK && is_there) {
        d->count = d->index.bytes / 8;
        d->ends = (entry_window){.count = d->count};
    }
    if (status != IRON_OK || !is_there) {
        iron_documents_close(d);
        return status;
    }
    *out = d;
    return IRON_OK;
}

void iron_documents_close(iron_documents *documents) {
    if (!documents)
        return;
    iron__sidecar_close(&documents->index);
    free(documents);
}

/* The first token after document k. */
static iron_status find_end(iron_documents *d, uint64_t k, uint64_t *end, iron_error *err) {
    uint64_t sequence;

    if (!d->is_megatron)
        return load_entry(d, &d->ends, k, end, err);
    IRON_TRY(load_entry(d, &d->ends, k, &sequence, err));
    *end = d->tokens;
    if (sequence >= d->offsets.count) /* it ends with the last sequence */
        return IRON_OK;
    IRON_TRY(load_entry(d, &d->offsets, sequence, end, err));
    *end /= d->width;
    return IRON_OK;
}

iron_status iron_documents_read(iron_documents *documents, uint64_t *ends, size_t room,
                                size_t *count, iron_error *err) {
    iron_documents *d = documents;

    *count = 0;
    while (*count < room && d->next < d->count) {
        uint64_t end;

        IRON_TRY(find_end(d, d->next, &end, err));
        IRON_FAIL_IF(end < d->last || end > d->tokens, err, IRON_E_FORMAT,
                     "%.100s: document %" PRIu64 " ends at token %" PRIu64 ", expected %" PRIu64
                     " to %" PRIu64 "; it changed while being read",
                     d->index.path, d->next, end, d->last, d->tokens);
        d->last = ends[(*count)++] = end;
        d->next++;
    }
    return IRON_OK;
}

iron__cut iron__source_cut(const iron_source *source, size_t index) {
    (void)source, (void)index;
    return IRON_CUT_NONE;
}

iron_status iron__source_starts(const iron_source *source, size_t index, uint64_t first,
                                uint64_t end, iron__block *places, const atomic_bool *stop,
                                iron_error *err) {
    (void)source, (void)index, (void)first, (void)end, (void)places, (void)stop, (void)err;
    return IRON_OK;
}
