/* SPDX-License-Identifier: MIT */
/*
 * ds.c: the files that datatrove writes and nanotron reads: X.ds with raw tokens of 2 or 4 bytes,
 * X.ds.index with the ends of its documents, X.ds.metadata with "tokenizer|width", the number of
 * tokens, and a line for people.
 *
 * One of the two sidecars may be missing, and each one that exists is checked. Only the metadata
 * contain the width: without them (or with old ones, which do not have it) the user must give it.
 */
#include "core/fail.h"
#include "core/number.h"
#include "formats/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define METADATA_MAX 4096u

static bool recognise(const iron__candidate *c) {
    const char *path = c->file->path;

    return !iron__input_is_pipe(c->file) && iron__path_ends(path, ".ds") &&
           (iron__path_has_beside(path, 0, ".index") ||
            iron__path_has_beside(path, 0, ".metadata"));
}

static iron_status parse_metadata(const char *path, const char *text, iron__format_layout *layout,
                                  iron_error *err) {
    const char *end = strchr(text, '\n'), *at, *bar;
    size_t digits;

    IRON_FAIL_IF(!end, err, IRON_E_FORMAT,
                 "%.100s: one line, expected 'tokenizer|width' and then the number of tokens",
                 path);
    /* the first line ends in "|2" or "|4"; without a bar the width is unknown */
    bar = memrchr(text, '|', (size_t)(end - text));
    digits = bar ? (size_t)(end - (bar + 1)) : 0;
    layout->dtype = digits != 1     ? IRON_DTYPE_NONE
                    : bar[1] == '2' ? IRON_DTYPE_U16
                    : bar[1] == '4' ? IRON_DTYPE_U32
                                    : IRON_DTYPE_NONE;
    IRON_FAIL_IF(bar && layout->dtype == IRON_DTYPE_NONE, err, IRON_E_FORMAT,
                 "%.100s at byte %zu: width '%.*s', expected 2 or 4 after the bar", path,
                 (size_t)(bar + 1 - text), (int)(digits < 20 ? digits : 20), bar + 1);
    at = end + 1;
    IRON_FAIL_IF(!iron__read_digits(&at, NULL, 10, &layout->tokens) ||
                     (*at != '\0' && *at != '\n') || layout->tokens == IRON_COUNT_UNKNOWN,
                 err, IRON_E_FORMAT,
                 "%.100s at byte %zu: '%.20s', expected only the number of tokens on line 2", path,
                 (size_t)(end + 1 - text), end + 1);
    return IRON_OK;
}

static iron_status check_metadata(const iron__candidate *c, iron__format_layout *layout,
                                  bool *found, iron_error *err) {
    char text[METADATA_MAX + 1] = "";
    iron__sidecar metadata;
    iron_status status;

    IRON_TRY(iron__sidecar_open(iron__path_beside(c->file->path, 0, ".metadata"), &metadata, found,
                                err));
    if (!*found)
        return IRON_OK;
    if (metadata.bytes > METADATA_MAX)
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%.100s: %" PRIu64 " bytes, expected three lines of at most %u",
                            metadata.path, metadata.bytes, METADATA_MAX);
    else
        status = iron__sidecar_read(&metadata, 0, text, (size_t)metadata.bytes, err);
    if (status == IRON_OK)
        status = parse_metadata(metadata.path, text, layout, err);
    if (status == IRON_OK)
        iron__format_reason(c, "X.metadata: width %s, %" PRIu64 " tokens",
                            layout->dtype == IRON_DTYPE_NONE ? "unknown"
                                                             : iron_dtype_name(layout->dtype),
                            layout->tokens);
    iron__sidecar_close(&metadata);
    return status;
}

/* Checks that the ends are in order; *last is the last one. */
static iron_status check_ends(const iron__sidecar *index, uint64_t *last, iron_error *err) {
    iron__numbers ends = {.file = index, .count = index->bytes / 8, .width = 8};
    uint64_t end;

    *last = 0;
    for (uint64_t k = 0; k < ends.count; k++, *last = end) {
        IRON_TRY(iron__numbers_get(&ends, k, &end, err));
        IRON_FAIL_IF(end < *last, err, IRON_E_FORMAT,
                     "%.100s at byte %" PRIu64 ": a document ends at token %" PRIu64
                     ", expected at least %" PRIu64 ", the end of the one before",
                     index->path, 8 * k, end, *last);
    }
    return IRON_OK;
}

static iron_status check_index(const iron__candidate *c, iron__format_layout *layout,
                               uint64_t *last, bool *found, iron_error *err) {
    iron__sidecar index;
    iron_status status = IRON_OK;

    IRON_TRY(iron__sidecar_open(iron__path_beside(c->file->path, 0, ".index"), &index, found, err));
    if (!*found)
        return IRON_OK;
    if (index.bytes % 8 != 0)
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%.100s: %" PRIu64 " bytes, expected 8 for each document", index.path,
                            index.bytes);
    if (status == IRON_OK)
        status = check_ends(&index, last, err);
    layout->documents = index.bytes / 8;
    if (status == IRON_OK)
        iron__format_reason(c, "X.index: %" PRIu64 " documents, the last ends at token %" PRIu64,
                            layout->documents, *last);
    iron__sidecar_close(&index);
    return status;
}

static iron_status examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    bool has_metadata, has_index;
    uint64_t last = 0, width;
    const char *fits;

    IRON_FAIL_IF(iron__input_is_pipe(c->file), err, IRON_E_UNSUPPORTED,
                 "%.100s is a pipe; format ds needs files beside the tokens: name the .ds file",
                 c->name);
    IRON_TRY(check_metadata(c, layout, &has_metadata, err));
    IRON_TRY(check_index(c, layout, &last, &has_index, err));
    IRON_FAIL_IF(!has_metadata && !has_index, err, IRON_E_FORMAT,
                 "%.100s has neither .index nor .metadata beside it, expected at least one; is it "
                 "--format raw?",
                 c->name);
    if (layout->dtype == IRON_DTYPE_NONE)
        layout->dtype = c->dtype;
    fits = !has_index || last == 0      ? "u16 or u32"
           : c->file->bytes / 2 == last ? "u16, which agrees with its index"
           : c->file->bytes / 4 == last ? "u32, which agrees with its index"
                                        : "u16 or u32";
    IRON_FAIL_IF(layout->dtype == IRON_DTYPE_NONE, err, IRON_E_ARG,
                 "%.100s: no metadata beside it with the token width; give --dtype %s", c->name,
                 fits);
    width = iron_dtype_bytes(layout->dtype);
    IRON_FAIL_IF(layout->dtype != IRON_DTYPE_U16 && layout->dtype != IRON_DTYPE_U32, err,
                 IRON_E_FORMAT,
                 "%.100s: --dtype %s, expected u16 or u32, the only ones in ds files", c->name,
                 iron_dtype_name(layout->dtype));
    IRON_FAIL_IF(has_index && (c->file->bytes % width != 0 || last != c->file->bytes / width), err,
                 IRON_E_FORMAT,
                 "%.100s.index: the last document ends at token %" PRIu64 ", expected %" PRIu64
                 ": %" PRIu64 " bytes of %s",
                 c->name, last, c->file->bytes / width, c->file->bytes,
                 iron_dtype_name(layout->dtype));
    IRON_FAIL_IF(
        has_metadata && (c->file->bytes % width != 0 || layout->tokens != c->file->bytes / width),
        err, IRON_E_FORMAT,
        "%.100s.metadata: %" PRIu64 " tokens, expected %" PRIu64 ": %" PRIu64 " bytes of %s",
        c->name, layout->tokens, c->file->bytes / width, c->file->bytes,
        iron_dtype_name(layout->dtype));
    iron__format_reason(c, "%" PRIu64 " bytes of tokens match", c->file->bytes);
    return IRON_OK;
}

const iron__format iron__format_ds = {"ds", recognise, examine, NULL};
