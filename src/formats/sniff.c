/* SPDX-License-Identifier: MIT */
/*
 * sniff.c: finds out what a file is, and why.
 *
 * The formats that open a file for reading examine it and report their reasons. Only if none of
 * them recognises it, the dtype is guessed from a sample of the values, and the result is marked as
 * a guess.
 *
 * Reading uses the same judgement: a warning tells if the values of a raw file contradict the dtype
 * that the user gives.
 *
 * The guess tries the widest dtype first and accepts it if the upper parts of the values are what
 * token ids leave there: zeros in the upper half of 64 bits, values below 16 in the upper half of
 * 32 bits (ids below 2^20). Narrower tokens would have to alternate with such small values all the
 * time. Between u16 and u8 the values give no certain answer unless the bytes have the same
 * distribution; u16 is the common one. Every answer comes with the numbers that led to it.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "formats/format.h"
#include "io/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        iron__format_reason(c, "%zu %s negative, which is an error when reading", negative,
                            negative == 1 ? "is" : "are");
    return true;
}

static iron_dtype guess_32(const iron__candidate *c, const sample *s) {
    size_t words = s->count / 4, small = 0, negative = 0, zero = 0, large_low = 0;

    if (s->file_bytes % 4 != 0)
        return IRON_DTYPE_NONE;
    for (size_t k = 0; k < words; k++) {
        uint32_t word = iron__load_u32(s->data + 4 * k), upper = word >> 16;

        small += upper < SMALL;
        zero += upper == 0;
        negative += upper == UINT16_MAX;
        large_low += (word & UINT16_MAX) >= SMALL;
    }
    if ((small + negative) * 1000 < words * 999 || negative * 2 > words ||
        (zero < words && large_low * 10 < words)) {
        iron__format_reason(c, "as u32, %zu of %zu sampled values are below 2^20: too few for ids",
                            small, words);
        return IRON_DTYPE_NONE;
    }
    iron__format_reason(c, "as u32, %zu of %zu sampled values are below 2^20, %zu below 2^16",
                        small, words, zero);
    if (negative == 0)
        return IRON_DTYPE_U32;
    iron__format_reason(c, "as i32, %zu %s negative, which is an error when reading", negative,
                        negative == 1 ? "is" : "are");
    return IRON_DTYPE_I32;
}

/* u16, unless its bytes are alike as in u8. The sample is not empty. */
static iron_dtype guess_16(const iron__candidate *c, const sample *s) {
    uint64_t sums[2] = {0, 0}, pairs = s->count / 2;
    char why[IRON_WHY_ROOM];
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
    if (iron__dtype_contradiction(s->data, s->count, IRON_DTYPE_U16, why) == IRON_DTYPE_U8) {
        iron__format_reason(c, "%s", why);
        return IRON_DTYPE_U8;
    }
    return IRON_DTYPE_U16;
}

/* Contradictions.
 *
 * If narrow tokens are read as wide ones, every value consists of several tokens, so all its parts
 * have the same distribution; and it is not the uniform one, as all ids are below the vocabulary's
 * size and some are frequent. The lower parts of wide ids are nearly uniform, their upper parts are
 * small. If wide tokens are read as narrow ones, every second value (or three of four) is the upper
 * part of an id: 0, or below 16 for ids below 2^20. Narrow tokens would have to alternate with
 * such values all the time.
 *
 * Values that repeat are counted once, so that padding and frequent ids do not matter. Uniform
 * tokens that use every bit of their width cannot be told from wide ones, and nothing is reported
 * about fewer than some dozen different values. */

#define LANES     8u
#define BINS      128u              /* of a 16-bit part: its highest bits and three below them */
#define SEEN_BITS ((size_t)1 << 16) /* values with the same hash count once */
#define SIGNIFICANT                                                                                \
    3.0 /* times 1/sqrt(n): a Kolmogorov-Smirnov distance has it by chance in 3e-8 */

/* Counts of the parts of different values, by their position in the value. */
typedef struct parts {
    size_t values;
    uint32_t bins[LANES][BINS];
} parts;

/* Whether the value was not seen before, by its hash. */
static bool is_new(uint64_t value, unsigned char *seen) {
    size_t hash = (size_t)(value * 0x9E3779B97F4A7C15u >> 48);
    unsigned char bit = (unsigned char)(1u << hash % 8);
    bool is_first = (seen[hash / 8] & bit) == 0;

    seen[hash / 8] |= bit;
    return is_first;
}

static unsigned bin_of(unsigned part) {
    unsigned high;

    if (part < 16)
        return part;
    high = 31 - (unsigned)__builtin_clz(part);
    return 16 + 8 * (high - 4) + ((part >> (high - 3)) & 7);
}

/* The first value of the next bin. */
static unsigned bin_end(unsigned bin) {
    unsigned high = 4 + (bin - 16) / 8;

    return bin < 16 ? bin + 1 : (9 + bin % 8) << (high - 3);
}

/* Cuts values of `width` bytes into parts of `part` bytes, 1 or 2. Values whose parts are all the
 * same are left out: they are runs of one token, or a pattern. */
static void count_parts(const unsigned char *data, size_t count, unsigned width, unsigned part,
                        parts *p) {
    unsigned char seen[SEEN_BITS / 8] = {0};

    *p = (parts){.values = 0};
    for (size_t at = 0; at + width <= count; at += width) {
        if (memcmp(data + at, data + at + part, width - part) == 0 ||
            !is_new(iron__load(data + at, width), seen))
            continue;
        p->values++;
        for (unsigned k = 0; k < width / part; k++)
            p->bins[k][bin_of((unsigned)iron__load(data + at + (size_t)k * part, part))]++;
    }
}

/* The largest difference of two distributions; b NULL: the uniform one below `limit`. *is_less:
 * there the values of b are the smaller ones. */
static double distance(const parts *p, const uint32_t *a, const uint32_t *b, unsigned limit,
                       bool *is_less) {
    double sum_a = 0, sum_b = 0, largest = 0;

    for (unsigned k = 0; k < BINS && bin_end(k) <= limit; k++) {
        double difference;

        sum_a += a[k];
        sum_b = b ? sum_b + b[k] : (double)p->values * bin_end(k) / limit;
        difference = sum_a > sum_b ? sum_a - sum_b : sum_b - sum_a;
        if (difference > largest) {
            largest = difference;
            *is_less = sum_b > sum_a;
        }
    }
    return p->values ? largest / (double)p->values : 0;
}

/* Whether values of `width` bytes are really several tokens of `part` bytes. */
static bool is_several(const unsigned char *data, size_t count, unsigned width, unsigned part) {
    unsigned limit = 1u << 8 * part;
    unsigned used_least = BINS;
    double least = 1, apart = 0, n;
    bool is_less;
    parts p;

    count_parts(data, count, width, part, &p);
    n = (double)p.values;
    if (p.values < 12)
        return false;
    for (unsigned k = 0; k < width / part; k++) {
        double from_uniform = distance(&p, p.bins[k], NULL, limit, &is_less);
        double from_first = distance(&p, p.bins[0], p.bins[k], limit, &is_less);
        unsigned used = 0;

        for (unsigned bin = 0; bin < BINS; bin++)
            used += p.bins[k][bin] > 0;
        used_least = used < used_least ? used : used_least;
        least = from_uniform < least ? from_uniform : least;
        apart = from_first > apart ? from_first : apart;
    }
    /* a part with one or two values is a constant: the upper part of large ids */
    return used_least >= 4 && least * least * n >= SIGNIFICANT * SIGNIFICANT &&
           apart <= 0.6 * least;
}

/* Whether values of `width` bytes are really parts of tokens of `wide` bytes, 4 or 8: all of these
 * are small, and their lowest parts are not. */
static bool is_split(const unsigned char *data, size_t count, unsigned width, unsigned wide) {
    unsigned char seen[SEEN_BITS / 8] = {0};
    uint64_t limit = wide == 8 ? UINT64_C(1) << 32 : UINT64_C(1) << 20;
    size_t values = 0, large = 0, zero = 0, different = 0;

    for (size_t at = 0; at + wide <= count; at += wide) {
        uint64_t value = iron__load(data + at, wide), low = iron__load(data + at, width);

        if (value == 0)
            continue;
        if (value >= limit)
            return false;
        values++;
        large += low >= SMALL;
        zero += value == low;
        different += is_new(value, seen);
    }
    /* without large lower parts, narrow tokens of a tiny vocabulary look the same, unless every
     * upper part is 0 */
    return values >= 24 && different >= 4 && (large * 2 > values || zero == values);
}

iron_dtype iron__dtype_contradiction(const unsigned char *data, size_t count, iron_dtype given,
                                     char why[IRON_WHY_ROOM]) {
    unsigned width = (unsigned)iron_dtype_bytes(given);
    iron_dtype looks = IRON_DTYPE_NONE;
    bool is_less = false;
    double apart;
    parts p;

    /* i64 values are checked while they are read: two tokens in one are out of range */
    if (width == 8)
        return IRON_DTYPE_NONE;
    if (is_split(data, count, width, 8))
        looks = IRON_DTYPE_I64;
    else if (width < 4 && is_split(data, count, width, 4))
        looks = IRON_DTYPE_U32;
    if (looks == IRON_DTYPE_NONE && width == 1) { /* halves of u16: the upper ones are smaller */
        count_parts(data, count, 2, 1, &p);
        apart = distance(&p, p.bins[0], p.bins[1], 256, &is_less);
        if (p.values >= 24 && is_less && apart >= 0.2 &&
            apart * apart * (double)p.values >= 2 * SIGNIFICANT * SIGNIFICANT)
            looks = IRON_DTYPE_U16;
    }
    if (looks != IRON_DTYPE_NONE) {
        bool is_half = iron_dtype_bytes(looks) == 2 * (size_t)width;

        snprintf(why, IRON_WHY_ROOM, "%s small, like the upper %s of %s ids",
                 is_half ? "every second value is" : "most values are",
                 is_half ? "halves" : "parts", iron_dtype_name(looks));
        return looks;
    }
    if (width > 1 && is_several(data, count, width, 1))
        looks = IRON_DTYPE_U8;
    else if (width > 2 && is_several(data, count, width, 2))
        looks = IRON_DTYPE_U16;
    if (looks != IRON_DTYPE_NONE)
        snprintf(why, IRON_WHY_ROOM, "the %s of its values all have the distribution of ids",
                 looks == IRON_DTYPE_U8 ? "bytes" : "halves");
    return looks;
}

iron_status iron__dtype_warn(const iron__candidate *c, iron_error *err) {
    unsigned char data[2 * IRON_HEAD_BYTES];
    char why[IRON_WHY_ROOM], text[320];
    uint64_t bytes = c->file->bytes;
    size_t count = c->head_count, more = 0;
    iron_dtype looks;

    if (!c->options || !c->options->warn)
        return IRON_OK;
    memcpy(data, c->head, count);
    /* the middle too: the beginning may be unusual */
    if (bytes != IRON_COUNT_UNKNOWN && bytes >= 2 * sizeof data) {
        more = IRON_HEAD_BYTES;
        IRON_TRY(iron__input_read_at(c->file, bytes / 16 * 8, data + count, more, err));
    }
    looks = iron__dtype_contradiction(data, count + more, c->dtype, why);
    /* bytes of text alternate in patterns of any kind */
    if (looks == IRON_DTYPE_NONE ||
        (c->dtype == IRON_DTYPE_U8 && iron__is_text(data, count + more)))
        return IRON_OK;
    snprintf(text, sizeof text, "its values look like %s, but are read as %s: %s; check --dtype",
             iron_dtype_name(looks), iron_dtype_name(c->dtype), why);
    c->options->warn(c->options->warn_context, &(iron_warning){IRON_WARNING_DTYPE, c->name, text});
    return IRON_OK;
}

/* Guesses the dtype and reports the reasons; IRON_DTYPE_NONE if the sample gives no indication. */
static iron_dtype guess_dtype(const iron__candidate *c, const sample *s, bool is_text) {
    iron_dtype dtype;

    if (s->count == 0 || (s->data[0] == 0 && memcmp(s->data, s->data + 1, s->count - 1) == 0)) {
        iron__format_reason(c, "%s: nothing indicates the token width",
                            s->count ? "every sampled byte is 0" : "it is empty");
        return IRON_DTYPE_NONE;
    }
    if (is_text || iron__is_text(s->data, s->count)) {
        iron__format_reason(c, "it reads as text (ASCII or UTF-8), which is not tokenized yet");
        iron__format_reason(c, "--dtype u8 would read its %" PRIu64 " byte%s as tokens",
                            s->file_bytes, s->file_bytes == 1 ? "" : "s");
        return IRON_DTYPE_U8;
    }
    if (is_i64(c, s))
        return IRON_DTYPE_I64;
    dtype = guess_32(c, s);
    return dtype == IRON_DTYPE_NONE ? guess_16(c, s) : dtype;
}

void iron_sniff_report_deinit(iron_sniff_report *report) {
    for (size_t k = 0; k < report->column_count; k++)
        free(report->columns[k].name);
    free(report->columns);
    report->columns = NULL;
    report->column_count = 0;
}

/* `bytes`: of the tokens; IRON_COUNT_UNKNOWN of compressed ones whose number is not known. is_text:
 * it is known to begin with text. */
static iron_status guess(iron__candidate *c, uint64_t bytes, bool is_text, iron_sniff_report *r,
                         iron_error *err) {
    bool has_idx = iron__path_has_idx(c->file->path);
    unsigned char *data;
    const uint64_t starts[PARTS] = {0, bytes / 16 * 8, (bytes - PART_BYTES) / 8 * 8};
    sample s = {.count = iron__min_size(PARTS * PART_BYTES, bytes)};
    bool is_pipe = iron__input_is_pipe(c->file), is_whole = s.count < PARTS * PART_BYTES;
    iron_status status = IRON_OK;

    IRON_TRY(IRON_NEW(&data, PARTS * PART_BYTES, "a sample", err));
    s.data = data;
    if (is_pipe) /* compressed: only its beginning */
        status = iron__input_read(c->file, data, PARTS * PART_BYTES, &s.count, err);
    for (size_t k = 0; !is_pipe && k < (is_whole ? 1 : PARTS) && status == IRON_OK; k++)
        status = iron__input_read_at(c->file, starts[k], data + k * PART_BYTES,
                                     is_whole ? s.count : PART_BYTES, err);
    if (bytes == IRON_COUNT_UNKNOWN && s.count < PARTS * PART_BYTES)
        bytes = s.count; /* that was all */
    s.file_bytes = bytes == IRON_COUNT_UNKNOWN ? 0 : bytes;
    s.count = s.count >= 8 && is_pipe ? s.count / 8 * 8 : s.count;
    if (status == IRON_OK) {
        r->is_guess = 1;
        if (has_idx)
            iron__format_reason(c, "the .idx file beside it does not begin with MMIDIDX: is it "
                                   "damaged, or not a Megatron index?");
        iron__format_reason(c, "no header%s: raw tokens from byte 0 on%s",
                            has_idx ? "" : " and no index beside it",
                            iron__path_ends(c->file->path, ".npy") ? ", as OLMo writes .npy" : "");
        r->dtype = guess_dtype(c, &s, is_text);
        if (r->dtype == IRON_DTYPE_NONE)
            iron__format_reason(c, "give --dtype if you know it");
        else
            iron__format_reason(c, "a guess: give --dtype %s if that is right",
                                iron_dtype_name(r->dtype));
    }
    if (bytes == 0)
        r->tokens = 0;
    else if (bytes != IRON_COUNT_UNKNOWN && r->dtype != IRON_DTYPE_NONE)
        r->tokens = bytes / iron_dtype_bytes(r->dtype);
    free(data);
    return status;
}

/* Compressed files of up to this size are decompressed to count what is in them. */
#define COUNTED_BYTES_MAX ((uint64_t)64 << 20)

/* Describes what is in the file; `outer` says whether it is compressed. */
static iron_status describe(iron__candidate *c, const iron__format_layout *outer,
                            iron_sniff_report *r, iron_error *err) {
    const iron__format *format = iron__format_recognise(c);
    const iron__container *found = format == &iron__format_raw ? iron__container_find(c) : NULL;
    bool is_text = found && strcmp(found->name, "text") == 0;
    uint64_t bytes = outer->frames ? iron__frames_bytes(outer->frames) : c->file->bytes;
    iron__format_layout layout;
    iron_status status;

    memcpy(r->format, format->name, strlen(format->name) + 1);
    if (found && !is_text) {
        snprintf(r->format, sizeof r->format, "%s", found->name);
        iron__format_reason(c, "its first bytes are those of %s, which is not tokens: %s",
                            found->what, found->advice);
        return IRON_OK;
    }
    if (format == &iron__format_raw)
        return guess(c, bytes, is_text, r, err);
    status = iron__format_examine(format, c, &layout, err);
    r->dtype = layout.dtype;
    r->data_offset = layout.data_offset;
    if (status == IRON_OK) {
        r->documents = layout.documents;
        r->tokens = layout.tokens;
    }
    if (status == IRON_OK && layout.stream)
        iron__format_reason(c, "rows and tokens are not counted: that would decompress all of it, "
                               "as iron stat does");
    else if (status == IRON_OK && r->tokens == IRON_COUNT_UNKNOWN && outer->frames && !layout.table)
        r->tokens = (bytes - layout.data_offset) / iron_dtype_bytes(layout.dtype);
    iron__format_layout_clear(&layout);
    return status;
}

/* Examines an open regular file. */
static iron_status examine(iron__candidate *c, iron_sniff_report *r, iron_error *err) {
    iron__format_layout outer = {.format = NULL};
    const iron__container *found = NULL;
    iron_status status = IRON_OK;

    IRON_TRY(iron__input_peek(c->file, c->head, &c->head_count, err));
    IRON_TRY(iron__sidecar_refuse(c->file->path, err));
    if (iron__format_recognise(c) == &iron__format_raw)
        found = iron__container_find(c);
    /* of a small file all is known; a large one would have to be decompressed for it */
    c->wants_seekable = c->file->bytes <= COUNTED_BYTES_MAX;
    if (found && found->codec != IRON_CODEC_NONE)
        status = iron__candidate_decompress(c, found->codec, &outer, err);
    if (status == IRON_OK)
        status = describe(c, &outer, r, err);
    iron__format_layout_clear(&outer);
    return status;
}

iron_status iron_sniff(const char *path, const char *column, iron_sniff_report *report,
                       iron_error *err) {
    iron__input file = {.path = path, .fd = -1};
    iron__candidate candidate = {.file = &file, .name = path, .column = column, .report = report};
    iron__input_identity id;
    iron_status status;

    IRON_TRY(iron__struct_check(report, sizeof *report, "iron_sniff_report", err));
    *report = (iron_sniff_report){.struct_size = sizeof *report,
                                  .bytes = IRON_COUNT_UNKNOWN,
                                  .tokens = IRON_COUNT_UNKNOWN,
                                  .documents = IRON_COUNT_UNKNOWN};
    IRON_FAIL_IF(
        iron__path_is_stdin(path), err, IRON_E_ARG,
        "- is standard input; name a regular file, which can be examined without consuming it");
    IRON_TRY(iron__input_identify(path, &id, err));
    IRON_FAIL_IF(id.kind == IRON_INPUT_DIRECTORY, err, IRON_E_ARG,
                 "%.120s is a directory; name the files in it", path);
    IRON_FAIL_IF(id.kind == IRON_INPUT_PIPE && iron__path_is_remote(path), err, IRON_E_ARG,
                 "%.120s: the server does not send parts of it (ranges), which sniff needs; "
                 "download it first",
                 path);
    IRON_FAIL_IF(id.kind == IRON_INPUT_PIPE, err, IRON_E_ARG,
                 "%.120s is a pipe or a device; name a regular file, which can be examined without "
                 "consuming it",
                 path);
    report->bytes = file.bytes = id.bytes;
    IRON_TRY(iron__input_open(&file, err));
    status = examine(&candidate, report, err);
    iron__input_close(&file);
    return status;
}
