/* SPDX-License-Identifier: MIT */
/*
 * sniff.c: finds out what a file is, and why.
 *
 * The formats that open a file for reading examine it and report their reasons. Only if none of
 * them recognises it, the dtype is guessed from a sample of the values, and the result is marked as
 * a guess.
 *
 * The guess tries the widest dtype first and accepts it if the upper parts of the values are what
 * token ids leave there: zeros in the upper half of 64 bits, values below 16 in the upper half of
 * 32 bits (ids below 2^20). Narrower tokens would have to alternate with such small values all the
 * time. Between u16 and u8 the values give no certain answer; u16 is the common one. Every answer
 * comes with the numbers that led to it.
 */
#include "core/fail.h"
#include "formats/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The sample is 64 KiB each from the beginning, the middle and the end, so that padding or an
 * unusual tail shows. */
#define PART_BYTES ((size_t)64 << 10)
#define PARTS      3u

#define SMALL 16u /* upper halves of ids below 2^20 */

/* Parts of a file. Each begins at a multiple of 8 bytes and has a multiple of 8 bytes, except at
 * the end of the file. */
typedef struct sample {
    const unsigned char *data;
    size_t count;
    uint64_t file_bytes;
} sample;

/* Counts of the 32-bit words of a sample. */
typedef struct halves {
    size_t words;
    size_t small, negative, zero; /* upper halves below SMALL, 0xFFFF, 0 */
    size_t large_low;             /* lower halves of SMALL and more */
} halves;

static bool is_all_zero(const sample *s) {
    for (size_t k = 0; k < s->count; k++)
        if (s->data[k])
            return false;
    return true;
}

/* Counts bytes that are not text: control characters and invalid UTF-8. A sample may begin and end
 * inside a character. */
static size_t non_text_bytes(const sample *s) {
    size_t bad = 0;

    for (size_t k = 0; k < s->count;) {
        unsigned char c = s->data[k];
        size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : 3;
        size_t found = 0;

        if ((c < 0x20 && !strchr("\t\n\f\r", c)) || c == 0 || c == 0x7F)
            bad++;
        else if ((c >= 0x80 && c < 0xC2) || c >= 0xF5)
            bad++, more = 0;
        while (found < more && k + 1 + found < s->count && (s->data[k + 1 + found] & 0xC0) == 0x80)
            found++;
        bad += found < more;
        k += 1 + found;
    }
    return bad;
}

/* i64: the upper words are zero, except for a few negative values. */
static bool is_i64(const iron__candidate *c, const sample *s) {
    size_t count = s->count / 8, zero = 0, negative = 0;

    if (s->file_bytes % 8 != 0)
        return false;
    for (size_t k = 0; k < count; k++) {
        uint32_t upper = iron__load_u32(s->data + 8 * k + 4);

        zero += upper == 0;
        negative += upper == UINT32_MAX;
    }
    if (zero + negative < count || negative * 2 > count)
        return false;
    iron__format_reason(c, "as i64, the upper 32 bits of %zu of %zu sampled values are 0", zero,
                        count);
    if (negative)
        iron__format_reason(c, "%zu are negative, which is an error when reading", negative);
    return true;
}

static halves look_at_halves(const sample *s) {
    halves h = {.words = s->count / 4};

    for (size_t k = 0; k < h.words; k++) {
        uint32_t word = iron__load_u32(s->data + 4 * k), upper = word >> 16;

        h.small += upper < SMALL;
        h.zero += upper == 0;
        h.negative += upper == UINT16_MAX;
        h.large_low += (word & UINT16_MAX) >= SMALL;
    }
    return h;
}

static iron_dtype guess_32(const iron__candidate *c, const sample *s) {
    halves h = look_at_halves(s);
    bool fits = (h.small + h.negative) * 1000 >= h.words * 999 && h.negative * 2 <= h.words;

    if (s->file_bytes % 4 != 0)
        return IRON_DTYPE_NONE;
    if (!fits || (h.zero < h.words && h.large_low * 10 < h.words)) {
        iron__format_reason(c, "as u32, %zu of %zu sampled values are below 2^20: too few for ids",
                            h.small, h.words);
        return IRON_DTYPE_NONE;
    }
    iron__format_reason(c, "as u32, %zu of %zu sampled values are below 2^20, %zu below 2^16",
                        h.small, h.words, h.zero);
    if (h.negative == 0)
        return IRON_DTYPE_U32;
    iron__format_reason(c, "as i32, %zu are negative, which is an error when reading", h.negative);
    return IRON_DTYPE_I32;
}

/* u16 or u8: reports how low and high bytes differ. The sample is not empty. */
static iron_dtype guess_16(const iron__candidate *c, const sample *s) {
    uint64_t sums[2] = {0, 0}, pairs = s->count / 2;
    unsigned largest = 0;

    if (s->file_bytes % 2 != 0) {
        iron__format_reason(c, "%" PRIu64 " bytes is an odd size: only u8 fits", s->file_bytes);
        return IRON_DTYPE_U8;
    }
    for (size_t k = 0; k < pairs; k++) {
        unsigned value = s->data[2 * k] | (unsigned)s->data[2 * k + 1] << 8;

        sums[0] += s->data[2 * k];
        sums[1] += s->data[2 * k + 1];
        largest = value > largest ? value : largest;
    }
    if (pairs == 0) /* the file became shorter meanwhile */
        return IRON_DTYPE_NONE;
    iron__format_reason(c, "as u16, the largest of %" PRIu64 " sampled values is %u", pairs,
                        largest);
    iron__format_reason(c,
                        "bytes at even offsets are %" PRIu64 " on average, at odd offsets %" PRIu64
                        "; similar values would not distinguish u16 from u8",
                        sums[0] / pairs, sums[1] / pairs);
    return IRON_DTYPE_U16;
}

/* Guesses the dtype and reports the reasons; IRON_DTYPE_NONE if the sample gives no indication. */
static iron_dtype guess_dtype(const iron__candidate *c, const sample *s) {
    iron_dtype dtype;

    if (s->count == 0 || is_all_zero(s)) {
        iron__format_reason(c, "%s: nothing indicates the token width",
                            s->count ? "every sampled byte is 0" : "it is empty");
        return IRON_DTYPE_NONE;
    }
    if (non_text_bytes(s) * 1000 <= s->count) {
        iron__format_reason(c, "it reads as text (ASCII or UTF-8), which is not tokenized yet");
        iron__format_reason(c, "--dtype u8 would read its %" PRIu64 " bytes as tokens",
                            s->file_bytes);
        return IRON_DTYPE_U8;
    }
    if (is_i64(c, s))
        return IRON_DTYPE_I64;
    dtype = guess_32(c, s);
    return dtype == IRON_DTYPE_NONE ? guess_16(c, s) : dtype;
}

static iron_status read_part(iron__candidate *c, uint64_t from, unsigned char *to, size_t want,
                             size_t *count, iron_error *err) {
    size_t got;

    c->file->offset = from;
    IRON_TRY(iron__source_file_read(c->file, to + *count, want, &got, NULL, err));
    *count += got;
    return IRON_OK;
}

static iron_status read_sample(iron__candidate *c, unsigned char *to, size_t *count,
                               iron_error *err) {
    uint64_t bytes = c->file->bytes;

    *count = 0;
    if (bytes <= PARTS * PART_BYTES)
        return read_part(c, 0, to, (size_t)bytes, count, err);
    IRON_TRY(read_part(c, 0, to, PART_BYTES, count, err));
    IRON_TRY(read_part(c, bytes / 16 * 8, to, PART_BYTES, count, err));
    return read_part(c, (bytes - PART_BYTES) / 8 * 8, to, PART_BYTES, count, err);
}

static iron_status guess(iron__candidate *c, iron_sniff_report *r, iron_error *err) {
    unsigned char *data = malloc(PARTS * PART_BYTES);
    sample s = {.data = data, .file_bytes = c->file->bytes};
    iron_status status;

    if (!data)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a sample");
    status = read_sample(c, data, &s.count, err);
    if (status == IRON_OK) {
        r->is_guess = 1;
        iron__format_reason(c, "no header and no index beside it: raw tokens from byte 0 on%s",
                            iron__path_ends(c->file->path, ".npy") ? ", as OLMo writes .npy" : "");
        r->dtype = guess_dtype(c, &s);
        if (r->dtype == IRON_DTYPE_NONE)
            iron__format_reason(c, "give --dtype if you know it");
        else
            iron__format_reason(c, "a guess: give --dtype %s if that is right",
                                iron_dtype_name(r->dtype));
        if (r->bytes == 0)
            r->tokens = 0;
        else if (r->dtype != IRON_DTYPE_NONE)
            r->tokens = r->bytes / iron_dtype_bytes(r->dtype);
    }
    free(data);
    return status;
}

/* Examines an open regular file. */
static iron_status examine(iron__candidate *c, iron_sniff_report *r, iron_error *err) {
    const iron__format *format;
    iron__format_layout layout;
    iron_status status;

    IRON_TRY(iron__source_file_peek(c->file, c->head, &c->head_count, NULL, err));
    IRON_TRY(iron__sidecar_refuse(c->file->path, err));
    format = iron__format_recognise(c);
    memcpy(r->format, format->name, strlen(format->name) + 1);
    if (format == &iron__format_raw)
        return guess(c, r, err);
    status = iron__format_examine(format, c, &layout, err);
    r->dtype = layout.dtype;
    r->data_offset = layout.data_offset;
    r->documents = layout.documents;
    if (status == IRON_OK)
        r->tokens = layout.tokens;
    return status;
}

iron_status iron_sniff(const char *path, iron_sniff_report *report, iron_error *err) {
    iron__source_file file = {.path = path, .fd = -1};
    iron__candidate candidate = {.file = &file, .name = path, .report = report};
    struct stat info;
    iron_status status;

    IRON_FAIL_IF(!report || report->struct_size != sizeof *report, err, IRON_E_ARG,
                 "iron_sniff_report.struct_size is not %zu; set it to sizeof", sizeof *report);
    *report = (iron_sniff_report){.struct_size = sizeof *report,
                                  .bytes = IRON_COUNT_UNKNOWN,
                                  .tokens = IRON_COUNT_UNKNOWN,
                                  .documents = IRON_COUNT_UNKNOWN};
    IRON_FAIL_IF(
        iron__path_is_stdin(path), err, IRON_E_ARG,
        "- is standard input; name a regular file, which can be examined without consuming it");
    if (stat(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    IRON_FAIL_IF(S_ISDIR(info.st_mode), err, IRON_E_ARG,
                 "%.120s is a directory; name the files in it", path);
    IRON_FAIL_IF(!S_ISREG(info.st_mode), err, IRON_E_ARG,
                 "%.120s is a pipe or a device; name a regular file, which can be examined without "
                 "consuming it",
                 path);
    report->bytes = file.bytes = (uint64_t)info.st_size;
    IRON_TRY(iron__source_file_open(&file, err));
    status = examine(&candidate, report, err);
    iron__source_file_close(&file);
    return status;
}
