/* SPDX-License-Identifier: MIT */
/*
 * indexed.c: two formats whose tokens are raw, and whose documents are in an index beside them. The
 * whole index is checked; documents.c reads it again.
 *
 * Megatron, GPT-NeoX, NeMo and Pythia: P.bin, and P.idx with the dtype, sequences and documents:
 *
 *     0  MMIDIDX and two zero bytes      18  u64 S, sequences        34  i32 length[S]
 *     9  u64 version, 1                  26  u64 D, documents + 1        i64 offset[S], in bytes
 *    17  u8 element type                                                i64 document[D], sequences
 *                                                                       i8 mode[S], sometimes
 *
 * Nothing is aligned from byte 34 on.
 *
 * datatrove, for nanotron: X.ds with tokens of 2 or 4 bytes, X.ds.index with the ends of its
 * documents, X.ds.metadata with "tokenizer|width", the number of tokens, and a line for people. One
 * of the two sidecars may be missing, and each one that exists is checked. Only the metadata
 * contain the width: without them (or with old ones, which do not have it) the user must give it.
 */
#include "core/fail.h"
#include "core/number.h"
#include "formats/dtype.h"
#include "formats/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Megatron. */

#define MAGIC        "MMIDIDX\0" /* and the terminating zero */
#define MAGIC_BYTES  9u
#define HEADER_BYTES 34u

typedef struct megatron_index {
    iron__sidecar file;
    iron_dtype dtype;
    uint64_t sequences, entries; /* S and D */
    const char *bin;
    uint64_t bin_bytes;
} megatron_index;

/* P.idx for P.bin; for any other name, .idx is appended. */
static char *index_path(const char *path) {
    return iron__path_beside(path, iron__path_ends(path, ".bin") ? 4 : 0, ".idx");
}

static bool is_itself_index(const iron__candidate *c) {
    return c->head_count >= 8 && memcmp(c->head, MAGIC, 8) == 0;
}

static bool megatron_recognise(const iron__candidate *c) {
    unsigned char head[MAGIC_BYTES];
    iron__sidecar file;
    bool is_there, is_index;

    if (is_itself_index(c))
        return true;
    if (iron__input_is_pipe(c->file) || !iron__path_ends(c->file->path, ".bin") ||
        iron__sidecar_open(index_path(c->file->path), &file, &is_there, NULL) != IRON_OK ||
        !is_there)
        return false;
    is_index = file.bytes >= sizeof head &&
               iron__sidecar_read(&file, 0, head, sizeof head, NULL) == IRON_OK &&
               memcmp(head, MAGIC, sizeof head) == 0;
    iron__sidecar_close(&file);
    return is_index;
}

/* P.idx and P mean P.bin. */
static char *megatron_main_path(const char *path) {
    struct stat info;
    char *bin;

    if (iron__path_ends(path, ".idx"))
        return iron__path_beside(path, 4, ".bin");
    if (stat(path, &info) == 0)
        return NULL;
    bin = iron__path_beside(path, 0, ".bin");
    if (bin && stat(bin, &info) == 0)
        return bin;
    free(bin);
    return NULL;
}

static iron_status read_header(const iron__candidate *c, megatron_index *x, iron_error *err) {
    unsigned char header[HEADER_BYTES];
    uint64_t version, body, wanted;
    bool fits;

    IRON_FAIL_IF(x->file.bytes < HEADER_BYTES, err, IRON_E_FORMAT,
                 "%.100s: %" PRIu64 " bytes, expected a header of %u", x->file.path, x->file.bytes,
                 HEADER_BYTES);
    IRON_TRY(iron__sidecar_read(&x->file, 0, header, sizeof header, err));
    IRON_FAIL_IF(memcmp(header, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %02x %02x %02x %02x ..., expected the magic MMIDIDX\\0\\0",
                 x->file.path, header[0], header[1], header[2], header[3]);
    version = iron__load_u64(header + 9);
    IRON_FAIL_IF(version != 1, err, IRON_E_FORMAT,
                 "%.100s at byte 9: version %" PRIu64 ", expected 1", x->file.path, version);
    IRON_TRY(iron__dtype_from_code(header[17], true, x->file.path, 17, &x->dtype, err));
    iron__format_reason(c, "P.idx beside it with magic MMIDIDX and version 1: tokens are %s",
                        iron_dtype_name(x->dtype));
    x->sequences = iron__load_u64(header + 18);
    x->entries = iron__load_u64(header + 26);
    IRON_FAIL_IF(x->entries == 0, err, IRON_E_FORMAT,
                 "%.100s at byte 26: 0 document entries, expected one more than documents",
                 x->file.path);
    /* the size is 34 + 12 S + 8 D, plus S if there are modes */
    body = x->file.bytes - HEADER_BYTES;
    fits = x->sequences <= body / 12 && x->entries <= body / 8;
    wanted = fits ? 12 * x->sequences + 8 * x->entries : 0;
    IRON_FAIL_IF(!fits || (body != wanted && body != wanted + x->sequences), err, IRON_E_FORMAT,
                 "%.90s: %" PRIu64 " bytes, expected 34 + 12 S + 8 D (+ S) with S = %" PRIu64
                 " (byte 18) and D = %" PRIu64 " (byte 26); is it cut?",
                 x->file.path, x->file.bytes, x->sequences, x->entries);
    return IRON_OK;
}

/* Lengths are not negative, and offsets are their running sum. */
static iron_status check_sequences(const megatron_index *x, iron_error *err) {
    iron__numbers lengths = {
        .file = &x->file, .at = HEADER_BYTES, .count = x->sequences, .width = 4};
    iron__numbers offsets = {
        .file = &x->file, .at = HEADER_BYTES + 4 * x->sequences, .count = x->sequences, .width = 8};
    uint64_t sum = 0, length, offset;

    for (uint64_t k = 0; k < x->sequences; k++) {
        IRON_TRY(iron__numbers_get(&lengths, k, &length, err));
        IRON_TRY(iron__numbers_get(&offsets, k, &offset, err));
        IRON_FAIL_IF(length > INT32_MAX, err, IRON_E_FORMAT,
                     "%.100s at byte %" PRIu64 ": sequence %" PRIu64 " has %" PRId32
                     " tokens, expected 0 or more",
                     x->file.path, lengths.at + 4 * k, k, (int32_t)length);
        IRON_FAIL_IF(offset != sum, err, IRON_E_FORMAT,
                     "%.90s at byte %" PRIu64 ": sequence %" PRIu64 " begins at byte %" PRId64
                     ", expected %" PRIu64 ", the sum of the lengths before it",
                     x->file.path, offsets.at + 8 * k, k, (int64_t)offset, sum);
        sum += length * iron_dtype_bytes(x->dtype);
        /* this also prevents an overflow of the sum */
        IRON_FAIL_IF(sum > x->bin_bytes, err, IRON_E_FORMAT,
                     "%.80s at byte %" PRIu64 ": sequence %" PRIu64 " ends at byte %" PRIu64
                     ", expected at most %" PRIu64 ", the size of %.60s",
                     x->file.path, lengths.at + 4 * k, k, sum, x->bin_bytes, x->bin);
    }
    IRON_FAIL_IF(sum != x->bin_bytes, err, IRON_E_FORMAT,
                 "%.90s: the last sequence ends at byte %" PRIu64 ", expected %" PRIu64
                 ", the size of %.90s",
                 x->file.path, sum, x->bin_bytes, x->bin);
    return IRON_OK;
}

/* Documents begin at sequence 0, are in order, and end with the last sequence. */
static iron_status check_documents(const megatron_index *x, iron_error *err) {
    iron__numbers entries = {
        .file = &x->file, .at = HEADER_BYTES + 12 * x->sequences, .count = x->entries, .width = 8};
    uint64_t last = 0, entry;

    for (uint64_t k = 0; k < x->entries; k++, last = entry) {
        IRON_TRY(iron__numbers_get(&entries, k, &entry, err));
        IRON_FAIL_IF(k == 0 && entry != 0, err, IRON_E_FORMAT,
                     "%.100s at byte %" PRIu64 ": the first document begins at sequence %" PRId64
                     ", expected 0",
                     x->file.path, entries.at, (int64_t)entry);
        IRON_FAIL_IF(entry < last || entry > x->sequences, err, IRON_E_FORMAT,
                     "%.100s at byte %" PRIu64 ": document entry %" PRIu64 " is sequence %" PRId64
                     ", expected %" PRIu64 " to %" PRIu64,
                     x->file.path, entries.at + 8 * k, k, (int64_t)entry, last, x->sequences);
    }
    IRON_FAIL_IF(last != x->sequences, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": the last document ends with sequence %" PRIu64
                 ", expected %" PRIu64,
                 x->file.path, entries.at + 8 * (x->entries - 1), last, x->sequences);
    return IRON_OK;
}

static iron_status megatron_examine(iron__candidate *c, iron__format_layout *layout,
                                    iron_error *err) {
    megatron_index x = {.bin = c->name, .bin_bytes = c->file->bytes};
    iron_status status;
    bool is_there;

    IRON_FAIL_IF(iron__input_is_pipe(c->file), err, IRON_E_UNSUPPORTED,
                 "%.100s is a pipe; format megatron needs an index beside the tokens: name P.bin",
                 c->name);
    IRON_FAIL_IF(
        is_itself_index(c), err, IRON_E_FORMAT,
        "%.100s at byte 0: MMIDIDX, so it is a Megatron index, not tokens; name its .bin file",
        c->name);
    IRON_TRY(iron__sidecar_open(index_path(c->file->path), &x.file, &is_there, err));
    IRON_FAIL_IF(!is_there, err, IRON_E_FORMAT,
                 "%.100s has no index beside it; format megatron is P.bin with P.idx", c->name);
    status = read_header(c, &x, err);
    if (status == IRON_OK) {
        iron__format_reason(
            c, "P.idx has the size for %" PRIu64 " sequences and %" PRIu64 " documents",
            x.sequences, x.entries - 1);
        status = check_sequences(&x, err);
    }
    if (status == IRON_OK) {
        iron__format_reason(
            c, "the lengths add up to the offsets and to the %" PRIu64 " bytes of tokens",
            x.bin_bytes);
        status = check_documents(&x, err);
    }
    if (status == IRON_OK)
        iron__format_reason(c, "the documents begin with the first sequence and end with the last");
    layout->dtype = x.dtype;
    layout->documents = x.entries - 1;
    layout->index = (iron__document_index){.bytes = x.file.bytes,
                                           .offsets_at = HEADER_BYTES + 4 * x.sequences,
                                           .ends_at = HEADER_BYTES + 12 * x.sequences + 8,
                                           .sequences = x.sequences};
    iron__sidecar_close(&x.file);
    return status;
}

const iron__format iron__format_megatron = {"megatron", megatron_recognise, megatron_examine,
                                            megatron_main_path};

/* datatrove. */

#define METADATA_MAX 4096u

static bool ds_recognise(const iron__candidate *c) {
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

    IRON_FAIL_IF(index->bytes % 8 != 0, err, IRON_E_FORMAT,
                 "%.100s: %" PRIu64 " bytes, expected 8 for each document", index->path,
                 index->bytes);
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
    iron_status status;

    IRON_TRY(iron__sidecar_open(iron__path_beside(c->file->path, 0, ".index"), &index, found, err));
    if (!*found)
        return IRON_OK;
    status = check_ends(&index, last, err);
    layout->documents = index.bytes / 8;
    layout->index.bytes = index.bytes;
    if (status == IRON_OK)
        iron__format_reason(c, "X.index: %" PRIu64 " documents, the last ends at token %" PRIu64,
                            layout->documents, *last);
    iron__sidecar_close(&index);
    return status;
}

static iron_status ds_examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
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

const iron__format iron__format_ds = {"ds", ds_recognise, ds_examine, NULL};
