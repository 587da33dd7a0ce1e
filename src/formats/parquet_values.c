/* SPDX-License-Identifier: MIT */
/*
 * parquet_values.c: the encodings of Parquet, for levels and integers.
 *
 * Levels and dictionary indices are sequences of runs: a value that is repeated, or values that are
 * packed in a few bits each. Levels are not expanded: repeated ones are counted at once, packed
 * ones 28 or 56 at a time, as bits of a word. Values are unpacked in groups of eight; a group reads
 * words, which may reach beyond the data by less than IRON_PARQUET_SLACK.
 *
 * Nothing is read past the given bytes but that slack, whatever the data say, and what was read
 * there is never used.
 */
#include "formats/parquet.h"

#include <string.h>

/* Numbers in the encodings: at most 10 bytes. False: they are not there. */
static bool read_varint(const unsigned char **at, const unsigned char *end, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned byte = *(*at)++;

        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return shift < 63 || byte <= 1;
    }
    return false;
}

/* Runs. */

typedef struct runs {
    const unsigned char *at, *end; /* the next run */
    unsigned width;                /* of a value, in bits: 1 to 32 */
    bool is_packed;
    uint64_t left; /* values of the current run */
    uint32_t value;
    const unsigned char *packed;
    uint64_t bit; /* of `packed`: the next value's */
} runs;

/* Begins the next run; false: there is none, or it is damaged. */
static bool next_run(runs *r) {
    uint64_t head;
    size_t bytes = (r->width + 7) / 8;

    if (!read_varint(&r->at, r->end, &head) || head >> 1 == 0 || head >> 32 != 0)
        return false;
    r->is_packed = head & 1;
    if (r->is_packed) {
        uint64_t there = (uint64_t)(r->end - r->at), size = (head >> 1) * r->width;

        /* some writers leave out the padding of the last group */
        r->left = size <= there ? (head >> 1) * 8 : there * 8 / r->width;
        r->packed = r->at;
        r->bit = 0;
        r->at += size <= there ? size : there;
        return r->left > 0;
    }
    if ((size_t)(r->end - r->at) < bytes)
        return false;
    r->left = head >> 1;
    r->value = 0;
    memcpy(&r->value, r->at, bytes);
    r->at += bytes;
    return r->width == 32 || r->value >> r->width == 0;
}

/* The next bits of a packed run: 57 at least, of which those beyond the run are arbitrary. */
static uint64_t packed_bits(const runs *r) {
    uint64_t word;

    memcpy(&word, r->packed + (r->bit >> 3), sizeof word);
    return word >> (r->bit & 7);
}

/* Levels. */

/* Every other bit of a word, beginning with the lowest. */
static uint64_t even_bits(uint64_t word) {
    word &= UINT64_C(0x5555555555555555);
    word = (word | word >> 1) & UINT64_C(0x3333333333333333);
    word = (word | word >> 2) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    word = (word | word >> 4) & UINT64_C(0x00FF00FF00FF00FF);
    word = (word | word >> 8) & UINT64_C(0x0000FFFF0000FFFF);
    return (word | word >> 16) & UINT64_C(0x00000000FFFFFFFF);
}

/* A bit for each of the next `n` values of a run: whether it is `value`. */
static uint64_t where_equal(const runs *r, unsigned n, unsigned value) {
    uint64_t mask = (UINT64_C(1) << n) - 1, bits, low, high;

    if (!r->is_packed)
        return r->value == value ? mask : 0;
    bits = packed_bits(r);
    if (r->width == 1)
        return value > 1 ? 0 : (value ? bits : ~bits) & mask;
    low = even_bits(bits);
    high = even_bits(bits >> 1);
    return value > 3 ? 0 : (value & 1 ? low : ~low) & (value & 2 ? high : ~high) & mask;
}

static void take(runs *r, uint64_t n) {
    r->left -= n;
    if (r->is_packed)
        r->bit += n * r->width;
}

/* Room for that many more places. */
static iron_status reserve_places(iron__block *places, uint64_t more, iron_error *err) {
    size_t wanted = places->place_count + (size_t)more, doubled = 2 * places->place_capacity;

    if (wanted <= places->place_capacity)
        return IRON_OK;
    return iron__block_reserve_places(places, wanted > doubled ? wanted : doubled, err);
}

/* Counts `n` values, all of the same levels. */
static iron_status tally_same(const iron__parquet_shape *shape, unsigned repetition,
                              unsigned definition, uint64_t n, iron__block *places, uint64_t first,
                              iron__parquet_tally *out, iron_error *err) {
    bool is_value = definition == shape->definition_max;

    if (!is_value && definition != shape->empty) {
        out->rows += repetition == 0; /* the row that has it */
        out->has_null = true;
        return IRON_OK;
    }
    if (!is_value && repetition > 0) {
        out->fault = "an empty list continues a row";
        return IRON_OK;
    }
    if (repetition == 0 && places) {
        uint64_t *to, place = first + out->tokens, step = is_value;

        if (reserve_places(places, n, err) != IRON_OK)
            return IRON_E_NOMEM;
        to = places->places + places->place_count;
        for (uint64_t k = 0; k < n; k++)
            to[k] = place + k * step;
        places->place_count += (size_t)n;
    }
    out->rows += repetition == 0 ? n : 0;
    out->tokens += is_value ? n : 0;
    return IRON_OK;
}

/* Counts `n` values by bits: those that begin a row, have a value, are an empty list. */
static iron_status tally_bits(uint64_t begins, uint64_t has_value, uint64_t is_empty, unsigned n,
                              iron__block *places, uint64_t first, iron__parquet_tally *out,
                              iron_error *err) {
    uint64_t all = (UINT64_C(1) << n) - 1, null = all & ~(has_value | is_empty);

    if (null) {
        /* up to and with the null, so that the row is known */
        uint64_t before = null ^ (null - 1);

        out->rows += (unsigned)__builtin_popcountll(begins & before);
        out->has_null = true;
        return IRON_OK;
    }
    if (is_empty & ~begins) {
        out->fault = "an empty list continues a row";
        return IRON_OK;
    }
    if (places && begins) {
        if (reserve_places(places, n, err) != IRON_OK)
            return IRON_E_NOMEM;
        for (uint64_t rest = begins; rest; rest &= rest - 1) {
            uint64_t before = (rest & (0 - rest)) - 1;

            places->places[places->place_count++] =
                first + out->tokens + (unsigned)__builtin_popcountll(has_value & before);
        }
    }
    out->rows += (unsigned)__builtin_popcountll(begins);
    out->tokens += (unsigned)__builtin_popcountll(has_value);
    return IRON_OK;
}

/* The runs of levels up to `most`; a column that has only one level stores none. */
static runs level_runs(unsigned most, const unsigned char *from, size_t bytes, uint64_t count) {
    if (most == 0)
        return (runs){.width = 1, .left = count};
    return (runs){.at = from, .end = from + bytes, .width = most > 1 ? 2 : 1};
}

iron_status iron__parquet_tally_levels(const iron__parquet_shape *shape,
                                       const iron__parquet_levels *levels, iron__block *places,
                                       uint64_t first, iron__parquet_tally *out, iron_error *err) {
    runs repetition = level_runs(shape->repetition_max, levels->repetition,
                                 levels->repetition_bytes, levels->count);
    runs definition = level_runs(shape->definition_max, levels->definition,
                                 levels->definition_bytes, levels->count);
    iron_status status = IRON_OK;

    *out = (iron__parquet_tally){.tokens = 0};
    for (uint64_t left = levels->count, n; left > 0; left -= n) {
        if ((repetition.left == 0 && !next_run(&repetition)) ||
            (definition.left == 0 && !next_run(&definition))) {
            out->fault = "its levels end too early or are damaged";
            return IRON_OK;
        }
        n = repetition.left < definition.left ? repetition.left : definition.left;
        n = n < left ? n : left;
        if (!repetition.is_packed && !definition.is_packed) {
            if (definition.value > shape->definition_max)
                out->fault = "a definition level is too high";
            else
                status = tally_same(shape, repetition.value, definition.value, n, places, first,
                                    out, err);
            if (left == levels->count)
                out->is_continued = repetition.value > 0;
        } else {
            unsigned most = definition.is_packed && definition.width > 1 ? 28 : 56;
            unsigned some = n < most ? (unsigned)n : most;
            uint64_t begins = where_equal(&repetition, some, 0);

            if (shape->definition_max == 2 && where_equal(&definition, some, 3))
                out->fault = "a definition level is too high";
            else
                status = tally_bits(begins, where_equal(&definition, some, shape->definition_max),
                                    where_equal(&definition, some, shape->empty), some, places,
                                    first, out, err);
            if (left == levels->count)
                out->is_continued = !(begins & 1);
            n = some;
        }
        if (status != IRON_OK || out->fault || out->has_null)
            return status;
        take(&repetition, n);
        take(&definition, n);
    }
    return IRON_OK;
}

/* Unpacking. */

/* Groups of eight values of `width` bits; inlined for each width, so that all shifts are constant:
 * twice as fast. */
static inline __attribute__((always_inline)) void
unpack_groups(const unsigned char *from, size_t groups, uint32_t *to, unsigned width) {
    uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1);

    for (size_t g = 0; g < groups; g++) {
        for (unsigned k = 0; k < 8; k++) {
            uint64_t word;

            memcpy(&word, from + (k * width >> 3), sizeof word);
            to[k] = (uint32_t)(word >> (k * width & 7)) & mask;
        }
        from += width;
        to += 8;
    }
}

/* `groups` times eight values of 0 to 32 bits. */
static void unpack(const unsigned char *from, size_t groups, uint32_t *to, unsigned width) {
#define WIDTH(n)                                                                                   \
    case n:                                                                                        \
        unpack_groups(from, groups, to, n);                                                        \
        break;
#define WIDTHS(n) WIDTH((n)) WIDTH((n) + 1) WIDTH((n) + 2) WIDTH((n) + 3)
    switch (width) {
        WIDTHS(1)
        WIDTHS(5)
        WIDTHS(9)
        WIDTHS(13)
        WIDTHS(17)
        WIDTHS(21)
        WIDTHS(25)
        WIDTHS(29)
    default:
        memset(to, 0, groups * 8 * sizeof *to);
    }
#undef WIDTHS
#undef WIDTH
}

/* `count` values of 0 to 64 bits. */
static void unpack_wide(const unsigned char *from, size_t count, uint64_t *to, unsigned width) {
    uint64_t mask = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX, bit = 0;

    for (size_t k = 0; k < count; k++, bit += width) {
        unsigned shift = bit & 7;
        uint64_t word;

        memcpy(&word, from + (bit >> 3), sizeof word);
        word >>= shift;
        if (width + shift > 64)
            word |= (uint64_t)from[(bit >> 3) + 8] << (64 - shift);
        to[k] = word & mask;
    }
}

/* Values. */

static bool fail(iron__parquet_failure *failure, const char *fault) {
    *failure = (iron__parquet_failure){.fault = fault};
    return false;
}

/* Value `index` is not a token. */
static bool fail_value(iron__parquet_failure *failure, iron__stored stored, size_t index,
                       const void *value) {
    *failure = (iron__parquet_failure){.index = index};
    memcpy(failure->stored, value, iron__stored_bytes(stored));
    return false;
}

static bool decode_plain(const iron__parquet_values *v, uint32_t *to,
                         iron__parquet_failure *failure) {
    size_t width = iron__stored_bytes(v->stored), good;

    if (v->bytes != v->count * width)
        return fail(failure, "its plain values have not the size that their number gives");
    good = iron__stored_convert(v->stored, v->from, v->count, to);
    return good == v->count || fail_value(failure, v->stored, good, v->from + good * width);
}

/* Indices that are unpacked at a time: a kilobyte, which stays in the first-level cache. */
#define INDEX_PIECE 256u

static size_t first_bad_entry(const iron__parquet_values *v, const uint32_t *indices, size_t count,
                              iron__parquet_failure *failure, size_t done) {
    size_t width = iron__stored_bytes(v->stored);

    for (size_t k = 0; k < count; k++) {
        const unsigned char *entry = v->dictionary->stored + indices[k] * width;
        uint32_t token;

        if (iron__stored_convert(v->stored, entry, 1, &token) == 0) {
            (void)fail_value(failure, v->stored, done + k, entry);
            return k;
        }
    }
    return count;
}

/* Looks up a piece of indices. */
static bool look_up(const iron__parquet_values *v, const uint32_t *indices, size_t count,
                    size_t done, uint32_t *to, iron__parquet_failure *failure) {
    const uint32_t *tokens = v->dictionary->tokens;
    uint32_t most = 0;

    for (size_t k = 0; k < count; k++)
        most = indices[k] > most ? indices[k] : most;
    if (most >= v->dictionary->count)
        return fail(failure, "a value is not in its dictionary");
    for (size_t k = 0; k < count; k++)
        to[k] = tokens[indices[k]];
    return !v->dictionary->has_bad || first_bad_entry(v, indices, count, failure, done) == count;
}

/* A run of the same index. */
static bool repeat(const iron__parquet_values *v, uint32_t index, size_t count, size_t done,
                   uint32_t *to, iron__parquet_failure *failure) {
    if (!look_up(v, &index, 1, done, to, failure))
        return false;
    for (size_t k = 1; k < count; k++)
        to[k] = to[0];
    return true;
}

static bool decode_dictionary(const iron__parquet_values *v, uint32_t *to,
                              iron__parquet_failure *failure) {
    runs r = {.at = v->from + 1, .end = v->from + v->bytes};
    uint32_t indices[INDEX_PIECE] = {0};

    if (v->bytes == 0 || v->from[0] > 32)
        return fail(failure, "its dictionary indices have no valid width");
    r.width = v->from[0];
    if (r.width == 0)
        return repeat(v, 0, v->count, 0, to, failure);
    for (size_t done = 0, n; done < v->count; done += n) {
        if (r.left == 0 && !next_run(&r))
            return fail(failure, "its dictionary indices end too early or are damaged");
        n = v->count - done < r.left ? v->count - done : (size_t)r.left;
        if (!r.is_packed) {
            if (!repeat(v, r.value, n, done, to + done, failure))
                return false;
        } else {
            n = n < INDEX_PIECE ? n : INDEX_PIECE; /* whole groups, but for the last */
            unpack(r.packed + (r.bit >> 3), (n + 7) / 8, indices, r.width);
            if (!look_up(v, indices, n, done, to + done, failure))
                return false;
        }
        take(&r, n);
    }
    return true;
}

/* Deltas: blocks of miniblocks, each with a width of its own. */
typedef struct deltas {
    const unsigned char *at, *end;
    uint64_t minis, per_mini; /* miniblocks in a block, values in a miniblock */
    uint64_t last;
} deltas;

#define DELTA_PIECE 32u /* values: every miniblock is a multiple */

static bool begin_deltas(const iron__parquet_values *v, deltas *d) {
    uint64_t block, total, first;

    *d = (deltas){.at = v->from, .end = v->from + v->bytes};
    if (!read_varint(&d->at, d->end, &block) || !read_varint(&d->at, d->end, &d->minis) ||
        !read_varint(&d->at, d->end, &total) || !read_varint(&d->at, d->end, &first))
        return false;
    if (block == 0 || block % 128 != 0 || block > 1u << 24 || d->minis == 0 ||
        block % d->minis != 0 || total != v->count)
        return false;
    d->per_mini = block / d->minis;
    d->last = first >> 1 ^ (0 - (first & 1));
    return d->per_mini % DELTA_PIECE == 0;
}

/* Adds up to 32 deltas of `width` bits; false: a result is not a token. */
static bool add_deltas_32(deltas *d, const unsigned char *from, size_t n, uint64_t least,
                          unsigned width, bool is_signed, uint32_t *to) {
    uint32_t piece[DELTA_PIECE], last = (uint32_t)d->last, all = 0;

    unpack(from, (n + 7) / 8, piece, width);
    for (size_t k = 0; k < n; k++) {
        last += (uint32_t)least + piece[k];
        all |= last;
        to[k] = last;
    }
    d->last = last;
    return !is_signed || all >> 31 == 0;
}

static bool add_deltas_64(deltas *d, const unsigned char *from, size_t n, uint64_t least,
                          unsigned width, uint64_t wide[DELTA_PIECE], uint32_t *to) {
    uint64_t last = d->last, all = 0;

    unpack_wide(from, n, wide, width);
    for (size_t k = 0; k < n; k++) {
        last += least + wide[k];
        all |= last;
        wide[k] = last;
        to[k] = (uint32_t)last;
    }
    d->last = last;
    return all <= UINT32_MAX;
}

/* The values of one miniblock. */
static bool decode_mini(const iron__parquet_values *v, deltas *d, uint64_t least, unsigned width,
                        size_t done, size_t count, uint32_t *to, iron__parquet_failure *failure) {
    bool is_wide = iron__stored_bytes(v->stored) == 8, is_signed = v->stored == IRON_STORED_I32;
    uint64_t wide[DELTA_PIECE];

    for (size_t k = 0, n; k < count; k += n) {
        const unsigned char *from = d->at + k / 8 * width;
        const unsigned char *values = (const unsigned char *)wide;
        bool is_good;

        n = count - k < DELTA_PIECE ? count - k : DELTA_PIECE;
        if (is_wide) {
            is_good = add_deltas_64(d, from, n, least, width, wide, to + k);
        } else {
            is_good = add_deltas_32(d, from, n, least, width, is_signed, to + k);
            values = (const unsigned char *)(to + k);
        }
        if (!is_good) {
            uint32_t tokens[DELTA_PIECE];
            size_t bad = iron__stored_convert(v->stored, values, n, tokens);

            return fail_value(failure, v->stored, done + k + bad,
                              values + bad * iron__stored_bytes(v->stored));
        }
    }
    return true;
}

static bool decode_deltas(const iron__parquet_values *v, uint32_t *to,
                          iron__parquet_failure *failure) {
    static const char damaged[] = "its deltas end too early or are damaged";
    size_t bits = 8 * iron__stored_bytes(v->stored), done = 1;
    deltas d;

    if (!begin_deltas(v, &d))
        return fail(failure, damaged);
    if (iron__stored_convert(v->stored, &d.last, 1, to) == 0)
        return fail_value(failure, v->stored, 0, &d.last);
    while (done < v->count) {
        const unsigned char *widths;
        uint64_t least;

        if (!read_varint(&d.at, d.end, &least) || (uint64_t)(d.end - d.at) < d.minis)
            return fail(failure, damaged);
        least = least >> 1 ^ (0 - (least & 1));
        widths = d.at;
        d.at += d.minis;
        for (uint64_t m = 0; m < d.minis && done < v->count; m++) {
            size_t n = v->count - done < d.per_mini ? v->count - done : (size_t)d.per_mini;
            uint64_t there = (uint64_t)(d.end - d.at), size = d.per_mini / 8 * widths[m];

            /* some writers leave out the padding of the last miniblock */
            if (widths[m] > bits || ((uint64_t)n * widths[m] + 7) / 8 > there)
                return fail(failure, damaged);
            if (!decode_mini(v, &d, least, widths[m], done, n, to + done, failure))
                return false;
            d.at += size < there ? size : there;
            done += n;
        }
    }
    return true;
}

/* The first bytes of all values, then the second ones, and so on. */
static bool decode_split(const iron__parquet_values *v, uint32_t *to,
                         iron__parquet_failure *failure) {
    size_t width = iron__stored_bytes(v->stored), count = v->count;
    const unsigned char *s = v->from;
    uint32_t upper = 0;

    if (v->bytes != count * width)
        return fail(failure, "its split values have not the size that their number gives");
    for (size_t k = 0; k < count; k++)
        to[k] = s[k] | (uint32_t)s[k + count] << 8 | (uint32_t)s[k + 2 * count] << 16 |
                (uint32_t)s[k + 3 * count] << 24;
    if (v->stored == IRON_STORED_I32)
        for (size_t k = 0; k < count; k++)
            upper |= to[k] >> 31;
    for (size_t k = 4 * count; k < count * width; k++)
        upper |= s[k];
    for (size_t k = 0; upper && k < count; k++) {
        unsigned char value[8];
        uint32_t token;

        for (size_t b = 0; b < width; b++)
            value[b] = s[k + b * count];
        if (iron__stored_convert(v->stored, value, 1, &token) == 0)
            return fail_value(failure, v->stored, k, value);
    }
    return true;
}

bool iron__parquet_decode(const iron__parquet_values *values, uint32_t *to,
                          iron__parquet_failure *failure) {
    if (values->count == 0)
        return true;
    switch (values->encoding) {
    case IRON_PARQUET_PLAIN:
        return decode_plain(values, to, failure);
    case IRON_PARQUET_PLAIN_DICTIONARY:
    case IRON_PARQUET_RLE_DICTIONARY:
        return decode_dictionary(values, to, failure);
    case IRON_PARQUET_DELTA:
        return decode_deltas(values, to, failure);
    case IRON_PARQUET_BYTE_STREAM_SPLIT:
        return decode_split(values, to, failure);
    default:
        return fail(failure, "its encoding is not read");
    }
}
