/* SPDX-License-Identifier: MIT */
/*
 * format.c: the table of formats, the checks that all formats share, and the three formats that are
 * only tokens or a short header and tokens: raw, llmc and litpkds.
 */
#include "formats/format.h"

#include "core/fail.h"
#include "core/memory.h"
#include "formats/dtype.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which `auto` tries them; raw recognises every file. */
static const iron__format *const formats[] = {
    &iron__format_npy,   &iron__format_litpkds, &iron__format_llmc,
    &iron__format_arrow, &iron__format_parquet, &iron__format_megatron,
    &iron__format_ds,    &iron__format_mds,     &iron__format_raw,
};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

iron_status iron__format_find(const char *name, const iron__format **out, iron_error *err) {
    *out = NULL;
    if (!name || strcmp(name, "auto") == 0)
        return IRON_OK;
    for (size_t k = 0; k < FORMAT_COUNT; k++)
        if (strcmp(formats[k]->name, name) == 0)
            *out = formats[k];
    IRON_FAIL_IF(!*out, err, IRON_E_ARG,
                 "unknown format '%.40s'; use auto, raw, llmc, megatron, npy, ds, litpkds, arrow, "
                 "parquet or mds",
                 name);
    return IRON_OK;
}

const iron__format *iron__format_recognise(const iron__candidate *c) {
    size_t k = 0;

    while (k + 1 < FORMAT_COUNT && !formats[k]->recognise(c))
        k++;
    return formats[k];
}

void iron__format_layout_clear(iron__format_layout *layout) {
    free(layout->shape);
    iron__frames_close(layout->frames);
    iron__table_destroy(layout->table);
    iron__table_destroy(layout->stream);
    *layout = (iron__format_layout){.format = NULL};
}

/* Fills the columns of the candidate's report. `chosen` may be `count`: none; a reason says why, if
 * the user did not name one. */
static iron_status report_columns(const iron__candidate *c, const iron__table_column *columns,
                                  size_t count, size_t chosen, iron_error *err) {
    iron_sniff_report *r = c->report;
    size_t possible = 0;

    IRON_TRY(IRON_NEW(&r->columns, count, "the columns of a table", err));
    for (size_t k = 0; k < count; k++) {
        iron_sniff_column *to = &r->columns[k];

        to->name = strdup(columns[k].name);
        if (!to->name)
            return iron__no_memory(err, "the columns of a table");
        memcpy(to->type, columns[k].type, sizeof to->type);
        to->is_chosen = k == chosen;
        possible += columns[k].is_tokens;
        r->column_count++;
    }
    if (chosen < count || c->column)
        return IRON_OK;
    if (possible == 0)
        iron__format_reason(c, "no column of integers or lists of integers: it has no tokens");
    else
        iron__format_reason(c, "%zu columns could be the tokens: choose one with --column",
                            possible);
    return IRON_OK;
}

iron_status iron__format_choose(const iron__candidate *c, const iron__table_column *columns,
                                size_t count, size_t *chosen, char **name, iron_error *err) {
    bool may_be_open = c->report && !c->column;
    iron_status status =
        iron__table_choose(columns, count, c->column, c->name, chosen, may_be_open ? NULL : err);

    *name = NULL;
    if (c->report)
        IRON_TRY(report_columns(c, columns, count, status == IRON_OK ? *chosen : count, err));
    if (may_be_open && status != IRON_OK)
        return IRON_OK;
    IRON_TRY(status);
    *name = strdup(columns[*chosen].name);
    return *name ? IRON_OK : iron__no_memory(err, "a table");
}

void iron__format_reason(const iron__candidate *c, const char *format, ...) {
    iron_sniff_report *r = c->report;
    va_list arguments;

    if (!r || r->reason_count == sizeof r->reasons / sizeof r->reasons[0])
        return;
    va_start(arguments, format);
    vsnprintf(r->reasons[r->reason_count++], sizeof r->reasons[0], format, arguments);
    va_end(arguments);
}

iron_status iron__candidate_read(iron__candidate *c, void *to, size_t want, iron_error *err) {
    uint64_t from = c->file->offset;
    size_t got;

    IRON_TRY(iron__input_read(c->file, to, want, &got, err));
    IRON_FAIL_IF(got < want, err, IRON_E_FORMAT,
                 "%.100s ended at byte %" PRIu64 ", inside its header, which needs at least "
                 "%" PRIu64 " bytes",
                 c->name, from + got, from + want);
    return IRON_OK;
}

iron_status iron__candidate_decompress(iron__candidate *c, iron__codec codec,
                                       iron__format_layout *layout, iron_error *err) {
    bool is_file = !iron__input_is_pipe(c->file) && !iron__path_is_stdin(c->file->path);

    layout->codec = c->codec = codec;
    c->stored_bytes = c->file->start == 0 ? c->file->bytes : IRON_COUNT_UNKNOWN;
    iron__format_reason(c, "compressed with %s", iron__codec_name(codec));
    if (c->report)
        snprintf(c->report->compression, sizeof c->report->compression, "%s",
                 iron__codec_name(codec));
    if (!is_file)
        layout->frames = NULL;
    else if (c->wants_seekable)
        IRON_TRY(iron__frames_open_any(c->file, codec, &layout->frames, err));
    else
        IRON_TRY(iron__frames_open(c->file, codec, &layout->frames, err));
    IRON_TRY(iron__input_decompress(c->file, codec, err));
    IRON_TRY(iron__input_peek(c->file, c->head, &c->head_count, err));
    layout->bytes = IRON_COUNT_UNKNOWN;
    return IRON_OK;
}

/* What is left to check once the format's own checks have passed. */
static iron_status check_layout(const iron__candidate *c, iron__format_layout *l, iron_error *err) {
    const iron__table *table = iron__layout_table(l);
    iron_dtype stored_as = table ? table->stored_as : IRON_DTYPE_NONE;
    uint64_t width, body, announced;

    if (!c->is_for_raw && c->dtype == IRON_DTYPE_I32 && stored_as == IRON_DTYPE_I32)
        l->dtype = IRON_DTYPE_I32; /* as wide as u32; no value is negative */
    IRON_FAIL_IF(!c->is_for_raw && c->dtype == IRON_DTYPE_I64 && stored_as == IRON_DTYPE_I64 &&
                     l->dtype != IRON_DTYPE_I64,
                 err, IRON_E_FORMAT,
                 "%.100s: its int64 values are read as u32 tokens, but --dtype says i64; omit "
                 "--dtype",
                 c->name);
    IRON_FAIL_IF(
        c->dtype != IRON_DTYPE_NONE && !c->is_for_raw && c->dtype != l->dtype, err, IRON_E_FORMAT,
        "%.100s is of format %s, with %s tokens, but --dtype says %s; omit --dtype, or use "
        "--format raw to read all of its bytes as tokens",
        c->name, l->format->name, iron_dtype_name(l->dtype), iron_dtype_name(c->dtype));
    if (l->stream) {
        /* a table that is read in order cannot be read at any position */
        iron__frames_close(l->frames);
        l->frames = NULL;
    }
    if (l->frames)
        l->bytes = iron__frames_bytes(l->frames);
    if ((l->table && !l->shape) || l->stream)
        return IRON_OK;
    width = iron_dtype_bytes(l->dtype);
    if (l->bytes == IRON_COUNT_UNKNOWN) {
        /* the count of a pipe is checked while it is read, but it must be possible */
        IRON_FAIL_IF(l->tokens != IRON_COUNT_UNKNOWN && l->tokens > UINT64_MAX / width, err,
                     IRON_E_FORMAT,
                     "%.100s: its header says %" PRIu64 " %s tokens, more than 2^64 bytes", c->name,
                     l->tokens, iron_dtype_name(l->dtype));
        return IRON_OK;
    }
    /* a regular file has exactly the tokens of its header, or whole tokens if it has none */
    body = l->bytes - l->data_offset;
    IRON_FAIL_IF(l->tokens == IRON_COUNT_UNKNOWN && body % width != 0, err, IRON_E_FORMAT,
                 "%.100s has %" PRIu64 " bytes%s, not a whole number of %s tokens (%zu bytes each);"
                 " %s",
                 c->name, body, l->data_offset ? " after its header" : "",
                 iron_dtype_name(l->dtype), (size_t)width,
                 l->format == &iron__format_raw ? "check --dtype and the end of the file"
                                                : "is it cut off?");
    if (l->tokens == IRON_COUNT_UNKNOWN)
        l->tokens = body / width;
    IRON_FAIL_IF(__builtin_mul_overflow(l->tokens, width, &announced) || announced != body, err,
                 IRON_E_FORMAT,
                 "%.100s: its header says %" PRIu64 " tokens of %zu bytes, but from byte %" PRIu64
                 " on there are %" PRIu64 " bytes, which are %" PRIu64 " tokens; %s",
                 c->name, l->tokens, (size_t)width, l->data_offset, body, body / width,
                 body / width < l->tokens ? "is it cut off?" : "was something appended?");
    return IRON_OK;
}

/* From here on the candidate's compressed file is read at any position, not in order. */
static iron_status go_inside(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    bool is_stdin = iron__path_is_stdin(c->file->path);
    iron__input stored = {.path = is_stdin ? IRON_STDIN_AGAIN : c->file->path,
                          .bytes = c->stored_bytes,
                          .fd = -1,
                          .stop = c->file->stop};
    iron_status status = IRON_OK;

    if (!layout->frames) {
        status = iron__input_open(&stored, err);
        if (status == IRON_OK)
            status = iron__frames_open_any(&stored, c->codec, &layout->frames, err);
        iron__input_close(&stored);
        IRON_TRY(status);
    }
    IRON_TRY(iron__frames_add_cache(layout->frames, err));
    iron__input_use_frames(c->file, layout->frames);
    layout->bytes = c->file->bytes;
    return IRON_OK;
}

/* Tables in a compressed file are read in order, unless that is not enough for the caller or not
 * possible: Parquet, and Arrow files whose schema is at their end. */
static iron_status examine_table(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    const iron__format *format = layout->format;
    bool can_go = c->codec != IRON_CODEC_NONE && c->stored_bytes != IRON_COUNT_UNKNOWN;
    iron_status status;

    if (!can_go || !c->wants_seekable) {
        status = format->examine(c, layout, err);
        if (status != IRON_E_UNSUPPORTED || !can_go)
            return status;
        iron__table_destroy(layout->stream);
        layout->stream = NULL;
    }
    IRON_TRY(go_inside(c, layout, err));
    return format->examine(c, layout, err);
}

iron_status iron__format_examine(const iron__format *forced, iron__candidate *c,
                                 iron__format_layout *layout, iron_error *err) {
    bool is_forced = forced != NULL, is_pipe = iron__input_is_pipe(c->file);
    const iron__container *found = NULL;

    *layout = (iron__format_layout){
        .bytes = c->file->bytes, .tokens = IRON_COUNT_UNKNOWN, .documents = IRON_COUNT_UNKNOWN};
    IRON_TRY(iron__input_peek(c->file, c->head, &c->head_count, err));
    /* shards of MDS are decompressed by their own reader */
    if (forced ? forced != &iron__format_mds : iron__format_recognise(c) == &iron__format_raw)
        found = iron__container_find(c);
    if (found && found->codec != IRON_CODEC_NONE)
        IRON_TRY(iron__candidate_decompress(c, found->codec, layout, err));
    if (!forced && !is_pipe)
        IRON_TRY(iron__sidecar_refuse(c->file->path, err));
    layout->format = forced = forced ? forced : iron__format_recognise(c);
    if (forced == &iron__format_raw) {
        /* refuses what is recognisably something else, unless the user insists on raw, and warns if
         * the values contradict the dtype */
        found = iron__container_find(c);
        is_forced = is_forced && (found || iron__format_recognise(c) != &iron__format_raw);
        IRON_FAIL_IF(found && !is_forced, err, IRON_E_FORMAT,
                     "%.110s is %s, not tokens: %s, or give %s to read its bytes", c->name,
                     found->what, found->advice,
                     strcmp(found->name, "text") == 0 ? "--dtype u8 or --format raw"
                                                      : "--format raw");
        if (!is_forced && c->dtype != IRON_DTYPE_NONE)
            IRON_TRY(iron__dtype_warn(c, err));
    }
    if (forced == &iron__format_arrow || forced == &iron__format_parquet)
        IRON_TRY(examine_table(c, layout, err));
    else
        IRON_TRY(forced->examine(c, layout, err));
    return check_layout(c, layout, err);
}

/* Raw: tokens from byte 0 and nothing else, as nanoGPT writes them, and OLMo under the name .npy.
 * The file does not store the dtype, so the user must give it. */

static iron_status raw_examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    IRON_FAIL_IF(c->dtype == IRON_DTYPE_NONE && iron__path_has_idx(c->file->path), err, IRON_E_ARG,
                 "%.100s: the .idx file beside it is not a Megatron index, or is damaged; give "
                 "--dtype to read the tokens without it",
                 c->name);
    IRON_FAIL_IF(
        c->dtype == IRON_DTYPE_NONE, err, IRON_E_ARG,
        "%.100s: raw token files do not store a dtype; give --dtype u8, u16, u32, i32 or i64 "
        "(`iron sniff` guesses it)",
        c->name);
    layout->dtype = c->dtype;
    return IRON_OK;
}

const iron__format iron__format_raw = {"raw", NULL, raw_examine, NULL};

/* llmc: token files of llm.c and modded-nanogpt: a header of 256 int32 (only three are used),
 * then the tokens. Each of the two magic numbers means one dtype and has one version. */

#define LLMC_HEADER_BYTES 1024u

static const struct llmc_kind {
    uint32_t magic, version;
    iron_dtype dtype;
} llmc_kinds[] = {{20240520, 1, IRON_DTYPE_U16}, {20240801, 7, IRON_DTYPE_U32}};

static const struct llmc_kind *llmc_kind_of(const unsigned char *head) {
    for (size_t k = 0; k < sizeof llmc_kinds / sizeof llmc_kinds[0]; k++)
        if (iron__load_u32(head) == llmc_kinds[k].magic)
            return &llmc_kinds[k];
    return NULL;
}

static bool llmc_recognise(const iron__candidate *c) {
    return c->head_count >= 4 && llmc_kind_of(c->head);
}

static iron_status llmc_examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    unsigned char header[LLMC_HEADER_BYTES];
    const struct llmc_kind *kind;
    uint32_t count;

    IRON_TRY(iron__candidate_read(c, header, 4, err));
    kind = llmc_kind_of(header);
    IRON_FAIL_IF(!kind, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %" PRIu32 ", expected llm.c's magic 20240520 or 20240801",
                 c->name, iron__load_u32(header));
    iron__format_reason(c, "llm.c magic %" PRIu32 " at byte 0: tokens are %s", kind->magic,
                        iron_dtype_name(kind->dtype));
    IRON_TRY(iron__candidate_read(c, header + 4, sizeof header - 4, err));
    IRON_FAIL_IF(iron__load_u32(header + 4) != kind->version, err, IRON_E_FORMAT,
                 "%.100s at byte 4: llm.c version %" PRId32 ", expected %" PRIu32
                 " with magic %" PRIu32 "; if these are tokens, use --format raw",
                 c->name, (int32_t)iron__load_u32(header + 4), kind->version, kind->magic);
    iron__format_reason(c, "version %" PRIu32 " at byte 4", kind->version);
    count = iron__load_u32(header + 8);
    IRON_FAIL_IF(count > INT32_MAX, err, IRON_E_FORMAT,
                 "%.100s at byte 8: %" PRId32 " tokens, expected 0 or more", c->name,
                 (int32_t)count);
    iron__format_reason(c, "%" PRIu32 " tokens at byte 8, checked against the file size", count);
    layout->dtype = kind->dtype;
    layout->data_offset = LLMC_HEADER_BYTES;
    layout->tokens = count;
    return IRON_OK;
}

const iron__format iron__format_llmc = {"llmc", llmc_recognise, llmc_examine, NULL};

/* litpkds: packed datasets of lit-gpt and TinyLlama: a header of 24 bytes, then the tokens of one
 * chunk. The number of tokens follows from the file's size. The chunk size in the header is what
 * the writer intended, so a difference is reported by sniff but is not an error. */

#define LITPKDS_MAGIC        "LITPKDS"
#define LITPKDS_MAGIC_BYTES  7u
#define LITPKDS_HEADER_BYTES 24u

static bool litpkds_recognise(const iron__candidate *c) {
    return c->head_count >= LITPKDS_MAGIC_BYTES &&
           memcmp(c->head, LITPKDS_MAGIC, LITPKDS_MAGIC_BYTES) == 0;
}

static iron_status litpkds_examine(iron__candidate *c, iron__format_layout *layout,
                                   iron_error *err) {
    unsigned char header[LITPKDS_HEADER_BYTES];
    uint64_t version, chunk, tokens;

    IRON_TRY(iron__candidate_read(c, header, LITPKDS_MAGIC_BYTES, err));
    IRON_FAIL_IF(memcmp(header, LITPKDS_MAGIC, LITPKDS_MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %02x %02x %02x %02x ..., expected the magic LITPKDS", c->name,
                 header[0], header[1], header[2], header[3]);
    iron__format_reason(c, "magic LITPKDS at byte 0");
    IRON_TRY(iron__candidate_read(c, header + LITPKDS_MAGIC_BYTES,
                                  sizeof header - LITPKDS_MAGIC_BYTES, err));
    version = iron__load_u64(header + LITPKDS_MAGIC_BYTES);
    IRON_FAIL_IF(version != 1, err, IRON_E_FORMAT,
                 "%.100s at byte 7: LITPKDS version %" PRIu64 ", expected 1", c->name, version);
    iron__format_reason(c, "version 1 at byte 7");
    IRON_TRY(iron__dtype_from_code(header[15], false, c->name, 15, &layout->dtype, err));
    iron__format_reason(c, "element type %u, %s, at byte 15", header[15],
                        iron_dtype_name(layout->dtype));
    chunk = iron__load_u64(header + 16);
    layout->data_offset = LITPKDS_HEADER_BYTES;
    if (chunk == 0) /* an empty chunk has no tokens */
        layout->tokens = 0;
    if (iron__input_is_pipe(c->file))
        return IRON_OK;
    tokens = (layout->bytes - LITPKDS_HEADER_BYTES) / iron_dtype_bytes(layout->dtype);
    if (chunk == tokens)
        iron__format_reason(
            c, "chunk of %" PRIu64 " tokens at byte 16, which matches the file size", chunk);
    else
        iron__format_reason(c,
                            "chunk of %" PRIu64 " tokens at byte 16, but the file size gives "
                            "%" PRIu64 ": cut or extended?",
                            chunk, tokens);
    return IRON_OK;
}

const iron__format iron__format_litpkds = {"litpkds", litpkds_recognise, litpkds_examine, NULL};
