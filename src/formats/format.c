/* SPDX-License-Identifier: MIT */
/*
 * format.c: the table of formats, and what they share. The order of the rows is the order in which
 * `auto` looks.
 */
#include "formats/format.h"

#include "core/fail.h"
#include "formats/sidecar.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const iron__format *const formats[] = {
    &iron__format_npy,      &iron__format_litpkds, &iron__format_llmc,
    &iron__format_megatron, &iron__format_ds,      &iron__format_raw,
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
                 "unknown format '%.40s'; use auto, raw, llmc, megatron, npy, ds or litpkds", name);
    return IRON_OK;
}

const iron__format *iron__format_recognise(const iron__candidate *c) {
    size_t k = 0;

    while (k + 1 < FORMAT_COUNT && !formats[k]->recognise(c))
        k++;
    return formats[k];
}

void iron__because(const iron__candidate *c, const char *format, ...) {
    iron_sniff_report *r = c->report;
    va_list arguments;

    if (!r || r->reason_count == sizeof r->reasons / sizeof r->reasons[0])
        return;
    va_start(arguments, format);
    vsnprintf(r->reasons[r->reason_count++], sizeof r->reasons[0], format, arguments);
    va_end(arguments);
}

bool iron__candidate_is_pipe(const iron__candidate *c) {
    return c->file->bytes == IRON_COUNT_UNKNOWN;
}

iron_status iron__candidate_take(iron__candidate *c, void *to, size_t want, iron_error *err) {
    uint64_t from = c->file->taken;
    size_t got;

    IRON_TRY(iron__source_file_read(c->file, to, want, &got, c->stop, err));
    IRON_FAIL_IF(got < want, err, IRON_E_FORMAT,
                 "%.100s ended at byte %" PRIu64 ", inside its header, which goes on to byte "
                 "%" PRIu64 " at least",
                 c->name, from + got, from + want);
    return IRON_OK;
}

uint32_t iron__stored_u32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t iron__stored_u64(const unsigned char *at) {
    return iron__stored_u32(at) | (uint64_t)iron__stored_u32(at + 4) << 32;
}

static iron_status check_dtype(const iron__candidate *c, const iron__layout *l, iron_error *err) {
    IRON_FAIL_IF(c->dtype != IRON_DTYPE_NONE && !c->is_for_raw && c->dtype != l->dtype, err,
                 IRON_E_FORMAT,
                 "%.100s is a %s file of %s tokens, but --dtype says %s; leave --dtype out, or say "
                 "--format raw to take all of its bytes for tokens",
                 c->name, l->format->name, iron_dtype_name(l->dtype), iron_dtype_name(c->dtype));
    return IRON_OK;
}

/* A regular file holds what its header says, to the byte, and whole tokens in any case. */
static iron_status check_size(const iron__candidate *c, iron__layout *l, iron_error *err) {
    uint64_t width = iron_dtype_bytes(l->dtype), body = l->bytes - l->data_offset, announced;

    IRON_FAIL_IF(l->tokens == IRON_COUNT_UNKNOWN && body % width != 0, err, IRON_E_FORMAT,
                 "%.100s has %" PRIu64 " bytes%s, not a whole number of %s tokens (%zu bytes each);"
                 " check --dtype and the file's end",
                 c->name, body, l->data_offset ? " after its header" : "",
                 iron_dtype_name(l->dtype), (size_t)width);
    if (l->tokens == IRON_COUNT_UNKNOWN)
        l->tokens = body / width;
    IRON_FAIL_IF(__builtin_mul_overflow(l->tokens, width, &announced) || announced != body, err,
                 IRON_E_FORMAT,
                 "%.100s: its header says %" PRIu64 " tokens of %zu bytes, but from byte %" PRIu64
                 " on there are %" PRIu64 " bytes, which are %" PRIu64 " tokens; is it cut?",
                 c->name, l->tokens, (size_t)width, l->data_offset, body, body / width);
    return IRON_OK;
}

/* What a pipe's header says comes true or not as it is read; but it must be possible. */
static iron_status check_count(const iron__candidate *c, const iron__layout *l, iron_error *err) {
    uint64_t announced = 0;

    IRON_FAIL_IF(l->tokens != IRON_COUNT_UNKNOWN &&
                     __builtin_mul_overflow(l->tokens, iron_dtype_bytes(l->dtype), &announced),
                 err, IRON_E_FORMAT,
                 "%.100s: its header says %" PRIu64 " %s tokens, more than 2^64 bytes", c->name,
                 l->tokens, iron_dtype_name(l->dtype));
    return IRON_OK;
}

iron_status iron__format_examine(const iron__format *forced, iron__candidate *c,
                                 iron__layout *layout, iron_error *err) {
    *layout = (iron__layout){
        .bytes = c->file->bytes, .tokens = IRON_COUNT_UNKNOWN, .documents = IRON_COUNT_UNKNOWN};
    if (!forced) {
        IRON_TRY(iron__source_file_peek(c->file, c->head, &c->head_count, c->stop, err));
        if (!iron__candidate_is_pipe(c))
            IRON_TRY(iron__sidecar_refuse(c->file->path, err));
        forced = iron__format_recognise(c);
    }
    layout->format = forced;
    IRON_TRY(forced->examine(c, layout, err));
    IRON_TRY(check_dtype(c, layout, err));
    return iron__candidate_is_pipe(c) ? check_count(c, layout, err) : check_size(c, layout, err);
}
