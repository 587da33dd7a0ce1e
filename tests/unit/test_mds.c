/* SPDX-License-Identifier: MIT */
/*
 * MDS shards: every encoding of integers, alone and among other columns, compressed, with
 * checksums; and everything that can be wrong with a shard or its index.
 */
#include "mds_support.h"

#include "formats/format.h"
#include "io/checksum.h"

#include <utime.h>

/* A shard that was examined. */
typedef struct opened {
    iron__input file;
    iron__format_layout layout;
    char path[400];
    size_t warnings;
    char warning[240];
} opened;

static const char *wanted_column;
static iron_dtype given_dtype;

static void count_warning(void *context, const iron_warning *w) {
    opened *o = context;

    assert_int_equal(w->kind, IRON_WARNING_UNCHECKED);
    o->warnings++;
    snprintf(o->warning, sizeof o->warning, "%s", w->text);
}

/* Examines a file as iron__format_examine would, if mds recognises it. */
static iron_status try_examine(const folder *in, const char *name, opened *o, iron_error *err) {
    iron__input_identity identity;
    iron_source_options options = {
        .struct_size = sizeof options, .warn = count_warning, .warn_context = o};
    iron__candidate c = {.dtype = given_dtype, .column = wanted_column, .options = &options};
    iron_status status;

    *o = (opened){.file = {.fd = -1}};
    snprintf(o->path, sizeof o->path, "%s", name_in(in, name).path);
    assert_ok(iron__input_identify(o->path, &identity, err), err);
    o->file.path = o->path;
    o->file.bytes = identity.bytes;
    assert_ok(iron__input_open(&o->file, err), err);
    c.file = &o->file;
    c.name = o->path;
    o->layout = (iron__format_layout){
        .bytes = identity.bytes, .tokens = IRON_COUNT_UNKNOWN, .documents = IRON_COUNT_UNKNOWN};
    assert_true(iron__format_mds.recognise(&c));
    status = iron__format_mds.examine(&c, &o->layout, err);
    if (status != IRON_OK) {
        iron__format_layout_clear(&o->layout);
        iron__input_close(&o->file);
    }
    return status;
}

static void close_opened(opened *o) {
    iron__table_destroy(o->layout.table);
    iron__input_close(&o->file);
}

/* Decodes all blocks: the tokens, and the rows' first tokens. */
static iron_status decode_all(const opened *o, iron__block *out, iron_error *err) {
    const iron__table *t = o->layout.table;
    iron_status status = IRON_OK;

    *out = (iron__block){.data = NULL};
    for (size_t k = 0; k < t->block_count && status == IRON_OK; k++) {
        size_t before = out->place_count;
        iron__block rows = {.data = NULL};

        status = t->kind->decode(t, &o->file, k, true, out, err);
        if (status == IRON_OK) /* without tokens, rows are the same */
            status = t->kind->decode(t, &o->file, k, false, &rows, err);
        if (status == IRON_OK) {
            assert_int_equal(rows.place_count, out->place_count - before);
            assert_int_equal(rows.bytes, 0);
            for (size_t r = 0; r < rows.place_count; r++) {
                assert_int_equal(rows.places[r], out->places[before + r]);
                out->places[before + r] += t->blocks[k].first;
            }
        }
        iron__block_clear(&rows);
    }
    return status;
}

/* Examines a file, whose tokens are 1, 2, 3, ... in rows of these lengths. */
static void assert_rows(const folder *in, const char *name, iron_dtype dtype, const size_t *rows,
                        size_t count) {
    uint64_t token = 0;
    iron__block all;
    iron_error err;
    opened o;

    assert_ok(try_examine(in, name, &o, &err), &err);
    assert_int_equal(o.layout.dtype, dtype);
    assert_int_equal(o.layout.documents, count);
    assert_int_equal(o.layout.table->rows, count);
    assert_ok(decode_all(&o, &all, &err), &err);
    assert_int_equal(all.place_count, count);
    for (size_t r = 0; r < count; r++) {
        assert_int_equal(all.places[r], token);
        for (size_t k = 0; k < rows[r]; k++) {
            uint64_t value = 0;

            memcpy(&value, all.data + token * iron_dtype_bytes(dtype), iron_dtype_bytes(dtype));
            assert_int_equal(value, ++token);
        }
    }
    assert_int_equal(o.layout.tokens, token);
    assert_int_equal(all.bytes, token * iron_dtype_bytes(dtype));
    iron__block_clear(&all);
    close_opened(&o);
}

static void assert_examine_fails(const folder *in, const char *name, iron_status expected,
                                 const char *word) {
    iron_error err;
    opened o;

    assert_refused(try_examine(in, name, &o, &err), expected, &err);
    assert_says(&err, word);
}

static void assert_decode_fails(const folder *in, const char *name, iron_status expected,
                                const char *word) {
    iron__block all;
    iron_error err;
    opened o;

    assert_ok(try_examine(in, name, &o, &err), &err);
    assert_refused(decode_all(&o, &all, &err), expected, &err);
    assert_says(&err, word);
    iron__block_clear(&all);
    close_opened(&o);
}

/* Appends an array as Streaming does; `code`: its type, or 0 if the encoding has it. */
static void put_array(blob *b, unsigned code, unsigned shape_width, const unsigned *shape,
                      unsigned dimensions, uint64_t first, unsigned width) {
    unsigned count = 1, log = 0;

    while (1u << log < shape_width)
        log++;
    if (code)
        put_number(b, code, 1);
    put_number(b, dimensions << 2 | log, 1);
    for (unsigned k = 0; k < dimensions; k++) {
        put_number(b, shape[k], shape_width);
        count *= shape[k];
    }
    for (unsigned k = 0; k < count; k++)
        put_number(b, first + k, width);
}

static void save_shard(const folder *in, const mds_entry *e, const blob *samples, size_t count) {
    blob b = mds_shard(samples, count, "{\"format\": \"mds\"}");

    save(in, "shard.00000.mds", &b);
    mds_index(in, e, count, b.count, 0);
}

/* Numbers: one token in each row. */
static void test_numbers(void **state) {
    static const struct {
        const char *encoding;
        unsigned bytes;
        iron_dtype dtype;
    } cases[] = {{"int", 8, IRON_DTYPE_U32},    {"int8", 1, IRON_DTYPE_U8},
                 {"int16", 2, IRON_DTYPE_U16},  {"int32", 4, IRON_DTYPE_U32},
                 {"int64", 8, IRON_DTYPE_U32},  {"uint8", 1, IRON_DTYPE_U8},
                 {"uint16", 2, IRON_DTYPE_U16}, {"uint32", 4, IRON_DTYPE_U32},
                 {"uint64", 8, IRON_DTYPE_U32}};
    static const size_t rows[] = {1, 1, 1, 1, 1};
    folder f;

    (void)state;
    folder_make(&f);
    for (size_t k = 0; k < COUNT(cases); k++) {
        mds_column column = {"tokens", cases[k].encoding, cases[k].bytes};
        blob samples[COUNT(rows)];

        for (size_t r = 0; r < COUNT(rows); r++) {
            samples[r].count = 0;
            put_number(&samples[r], r + 1, cases[k].bytes);
        }
        save_shard(&f, &(mds_entry){.columns = &column, .column_count = 1}, samples, COUNT(rows));
        assert_rows(&f, "shard.00000.mds", cases[k].dtype, rows, COUNT(rows));
        /* a size that the index does not tell: each sample has its own */
        column.size = 0;
        for (size_t r = 0; r < COUNT(rows); r++) {
            samples[r].count = 0;
            put_number(&samples[r], cases[k].bytes, 4);
            put_number(&samples[r], r + 1, cases[k].bytes);
        }
        save_shard(&f, &(mds_entry){.columns = &column, .column_count = 1}, samples, COUNT(rows));
        assert_rows(&f, "shard.00000.mds", cases[k].dtype, rows, COUNT(rows));
        column.size = cases[k].bytes + 1;
        save_shard(&f, &(mds_entry){.columns = &column, .column_count = 1}, samples, COUNT(rows));
        assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "bytes, but");
    }
    folder_remove(&f);
}

static const struct array_case {
    const char *name;
    unsigned code, bytes;
    iron_dtype dtype;
} array_cases[] = {
    {"uint8", 8, 1, IRON_DTYPE_U8},    {"int8", 9, 1, IRON_DTYPE_U8},
    {"uint16", 16, 2, IRON_DTYPE_U16}, {"int16", 17, 2, IRON_DTYPE_U16},
    {"uint32", 32, 4, IRON_DTYPE_U32}, {"int32", 33, 4, IRON_DTYPE_U32},
    {"uint64", 64, 8, IRON_DTYPE_U32}, {"int64", 65, 8, IRON_DTYPE_U32},
};

/* Arrays with their type, without it, and without type and shape; of several dimensions; with sizes
 * of any width. */
static void test_arrays(void **state) {
    static const unsigned shapes[3][2] = {{3}, {2, 2}, {1}};
    static const unsigned dimensions[3] = {1, 2, 1};
    static const size_t rows[3] = {3, 4, 1}, fixed_rows[2] = {6, 6};
    folder f;

    (void)state;
    folder_make(&f);
    for (size_t k = 0; k < 2 * COUNT(array_cases); k++) {
        const struct array_case *a = &array_cases[k / 2];
        bool has_type = k % 2;
        char encoding[40];
        mds_column column = {"x", encoding, 0};
        mds_entry entry = {.columns = &column, .column_count = 1};
        uint64_t next = 1;
        blob samples[3];

        snprintf(encoding, sizeof encoding, has_type ? "ndarray:%s" : "ndarray", a->name);
        for (size_t r = 0; r < 3; r++) {
            samples[r].count = 0;
            put_number(&samples[r], 0, 4);
            put_array(&samples[r], has_type ? 0 : a->code, 1u << r, shapes[r], dimensions[r], next,
                      a->bytes);
            poke(&samples[r], 0, samples[r].count - 4, 4);
            next += rows[r];
        }
        save_shard(&f, &entry, samples, 3);
        assert_rows(&f, "shard.00000.mds", a->dtype, rows, 3);

        snprintf(encoding, sizeof encoding, "ndarray:%s:3,2", a->name);
        column.size = 6 * a->bytes;
        for (size_t r = 0; r < 2; r++) {
            samples[r].count = 0;
            for (unsigned n = 1; n <= 6; n++)
                put_number(&samples[r], 6 * r + n, a->bytes);
        }
        save_shard(&f, &entry, samples, 2);
        assert_rows(&f, "shard.00000.mds", a->dtype, fixed_rows, 2);
    }
    folder_remove(&f);
}

/* Arrays that begin with types of different widths are refused; int32 and int64 both give u32. */
static void test_mixed_arrays(void **state) {
    static const mds_column column = {"x", "ndarray", 0};
    static const mds_entry entry = {.columns = &column, .column_count = 1};
    static const unsigned shape[1] = {2};
    static const size_t rows[2] = {2, 2};
    blob samples[2] = {{.count = 0}, {.count = 0}};
    folder f;

    (void)state;
    folder_make(&f);
    for (unsigned k = 0; k < 2; k++) {
        put_number(&samples[k], 0, 4);
        put_array(&samples[k], k ? 33 : 65, 1, shape, 1, 2 * k + 1, k ? 4 : 8);
        poke(&samples[k], 0, samples[k].count - 4, 4);
    }
    save_shard(&f, &entry, samples, 2);
    assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U32, rows, 2);
    samples[1].count = 4;
    put_array(&samples[1], 16, 1, shape, 1, 3, 2);
    poke(&samples[1], 0, samples[1].count - 4, 4);
    save_shard(&f, &entry, samples, 2);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_UNSUPPORTED, "one width");
    poke(&samples[1], 4, 34, 1);
    save_shard(&f, &entry, samples, 2);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "type 34 (floats)");
    poke(&samples[1], 4, 7, 1);
    save_shard(&f, &entry, samples, 2);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "type 7,");
    poke(&samples[1], 4, 33, 1);
    save_shard(&f, &entry, samples, 2);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "2 values of 4 bytes, but 4");
    poke(&samples[1], 5, 63 << 2 | 3, 1);
    save_shard(&f, &entry, samples, 2);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "too few for 63 dimensions");
    samples[1].count = 5;
    poke(&samples[1], 0, 1, 4);
    save_shard(&f, &entry, samples, 2);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "too few for its header");
    folder_remove(&f);
}

/* Bytes need the user's dtype, which they keep. */
static void test_bytes(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I32, IRON_DTYPE_I64};
    static const mds_column column = {"tokens", "bytes", 0};
    static const mds_entry entry = {.columns = &column, .column_count = 1};
    static const size_t rows[3] = {2, 0, 5};
    folder f;

    (void)state;
    folder_make(&f);
    for (size_t k = 0; k < COUNT(dtypes); k++) {
        unsigned width = (unsigned)iron_dtype_bytes(dtypes[k]);
        uint64_t next = 1;
        blob samples[3];

        for (size_t r = 0; r < 3; r++) {
            samples[r].count = 0;
            put_number(&samples[r], rows[r] * width, 4);
            for (size_t n = 0; n < rows[r]; n++)
                put_number(&samples[r], next++, width);
        }
        save_shard(&f, &entry, samples, 3);
        given_dtype = dtypes[k];
        assert_rows(&f, "shard.00000.mds", dtypes[k], rows, 3);
        given_dtype = IRON_DTYPE_NONE;
        assert_examine_fails(&f, "shard.00000.mds", IRON_E_ARG, "--dtype");
    }
    given_dtype = IRON_DTYPE_U16;
    {
        blob sample = {.count = 0};

        put_number(&sample, 3, 4);
        put_number(&sample, 0, 3);
        save_shard(&f, &entry, &sample, 1);
        assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "3 bytes, expected a multiple");
        /* nothing would be read of a sample without tokens */
        sample.count = 0;
        put_number(&sample, 2, 4);
        save_shard(&f, &entry, &sample, 1);
        assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "its columns need 6");
        given_dtype = IRON_DTYPE_I64;
        sample.count = 0;
        put_number(&sample, 8, 4);
        put_number(&sample, UINT64_C(1) << 32, 8);
        save_shard(&f, &entry, &sample, 1);
        assert_decode_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "row 0 of column tokens");
    }
    given_dtype = IRON_DTYPE_NONE;
    folder_remove(&f);
}

/* Among other columns, before and after, of fixed and of variable sizes. */
static void test_columns(void **state) {
    static const mds_column columns[] = {
        {"a", "str", 0},  {"b", "int", 8},     {"c", "ndarray:uint16", 0},
        {"d", "json", 0}, {"e", "float32", 4}, {"f", "bytes", 0}};
    static const mds_entry entry = {.columns = columns, .column_count = COUNT(columns)};
    static const size_t rows[3] = {2, 1, 3}, ones[3] = {1, 1, 1};
    blob samples[3];
    uint64_t next = 1;
    folder f;

    (void)state;
    folder_make(&f);
    for (unsigned r = 0; r < 3; r++) {
        blob *s = &samples[r], array = {.count = 0};
        unsigned shape[1] = {(unsigned)rows[r]};

        put_array(&array, 0, 1, shape, 1, next, 2);
        s->count = 0;
        put_number(s, r, 4);
        put_number(s, array.count, 4);
        put_number(s, 2, 4);
        put_number(s, 0, 4);
        put(s, "xyz", r);
        put_number(s, r + 1, 8);
        put(s, array.data, array.count);
        put(s, "{}", 2);
        put_number(s, 0x3f800000, 4);
        next += rows[r];
    }
    save_shard(&f, &entry, samples, 3);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_ARG, "2 columns that could be tokens");
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_ARG, "c (ndarray:uint16)");
    wanted_column = "c";
    assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U16, rows, 3);
    wanted_column = "b";
    assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U32, ones, 3);
    wanted_column = "a";
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "column a is str");
    wanted_column = "f";
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_ARG, "column f is bytes");
    wanted_column = "g";
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_ARG, "no column g");
    /* sizes that do not add up to the sample */
    wanted_column = "c";
    poke(&samples[1], 8, 3, 4);
    save_shard(&f, &entry, samples, 3);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "sample 1 at byte");
    poke(&samples[1], 8, UINT32_MAX, 4);
    save_shard(&f, &entry, samples, 3);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "sample 1 at byte");
    wanted_column = NULL;
    folder_remove(&f);
}

/* A size word that contradicts the offsets is noticed when the sample is read. */
static void test_inferred_size(void **state) {
    static const mds_column columns[] = {{"ids", "ndarray:uint8:2", 2}, {"text", "str", 0}};
    static const mds_entry entry = {.columns = columns, .column_count = 2};
    static const size_t rows[1] = {2};
    blob sample = {.count = 0};
    folder f;

    (void)state;
    folder_make(&f);
    put_number(&sample, 3, 4);
    put(&sample, "\1\2abc", 5);
    save_shard(&f, &entry, &sample, 1);
    assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U8, rows, 1);
    poke(&sample, 0, 4, 4);
    save_shard(&f, &entry, &sample, 1);
    assert_decode_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "sample 0 at byte");
    folder_remove(&f);
}

/* Values that are not tokens are refused with row and column. */
static void test_values(void **state) {
    static const mds_column column = {"ids", "ndarray:int32:2", 8};
    static const mds_entry entry = {.columns = &column, .column_count = 1};
    blob samples[2] = {{.count = 0}, {.count = 0}};
    folder f;

    (void)state;
    folder_make(&f);
    put_number(&samples[0], 1, 8);
    put_number(&samples[1], 5, 4);
    put_number(&samples[1], UINT32_MAX - 6, 4);
    save_shard(&f, &entry, samples, 2);
    assert_decode_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "row 1 of column ids has -7");
    folder_remove(&f);
}

static void make_scalars(const folder *f, mds_entry *entry, blob *shard) {
    static const mds_column column = {"ids", "uint16", 2};
    blob samples[4];

    for (unsigned k = 0; k < 4; k++) {
        samples[k].count = 0;
        put_number(&samples[k], k + 1, 2);
    }
    *entry = (mds_entry){.columns = &column, .column_count = 1};
    *shard = mds_shard(samples, 4, "config");
    save(f, "shard.00000.mds", shard);
    mds_index(f, entry, 4, shard->count, 0);
}

/* What the index says must be there and must be true. */
static void test_index(void **state) {
    static const size_t rows[4] = {1, 1, 1, 1};
    mds_entry entry, e;
    folder f;
    blob b;

    (void)state;
    folder_make(&f);
    make_scalars(&f, &entry, &b);
    assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U16, rows, 4);
    e = entry;
    e.format = "json";
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_UNSUPPORTED, "format 'json'");
    e = entry;
    e.version = 3;
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_UNSUPPORTED, "version 3");
    e = entry;
    e.samples = 5;
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "4 samples, but index.json says 5");
    e = entry;
    e.samples = UINT32_MAX - 2;
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "too few for the offsets");
    e = entry;
    e.samples = UINT32_MAX;
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "number of samples");
    e = entry;
    e.bytes = b.count + 1;
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "is it cut off?");
    e = entry;
    e.bytes = b.count - 1;
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "was something appended?");
    e = entry;
    e.column_count = 0;
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "0 column_names");
    e = entry;
    e.raw_name = "shard.00001.mds";
    mds_index(&f, &e, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "lists this file");
    save_text(&f, "index.json", "{\"shards\": [");
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "index.json: line 1");
    save_text(&f, "index.json", "{\"shards\": {}}");
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "not the index of an MDS");
    save_text(&f, "index.json",
              "{\"shards\": [{\"raw_data\": {\"basename\": \"shard.00000.mds\"}}]}");
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "does not give its format");
    assert_int_equal(unlink(name_in(&f, "index.json").path), 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "no index.json beside it");
    folder_remove(&f);
}

/* An index of a folder above lists shards with their subfolder; the last index is kept, but a new
 * one is noticed. */
static void test_folders_above(void **state) {
    static const size_t rows[4] = {1, 1, 1, 1};
    const struct utimbuf long_ago = {1000000000, 1000000000};
    mds_entry entry;
    folder f, sub;
    blob b;

    (void)state;
    folder_make(&f);
    make_scalars(&f, &entry, &b);
    snprintf(sub.path, sizeof sub.path, "%.150s/a", f.path);
    assert_int_equal(mkdir(sub.path, 0700), 0);
    save(&sub, "x.bin", &b);
    entry.raw_name = "a/x.bin";
    mds_index(&f, &entry, 4, b.count, 0);
    assert_int_equal(utime(name_in(&f, "index.json").path, &long_ago), 0);
    assert_rows(&f, "a/x.bin", IRON_DTYPE_U16, rows, 4);
    assert_rows(&f, "a/x.bin", IRON_DTYPE_U16, rows, 4);
    entry.samples = 3;
    mds_index(&f, &entry, 4, b.count, 0);
    assert_examine_fails(&f, "a/x.bin", IRON_E_FORMAT, "4 samples, but index.json says 3");
    entry.samples = 5;
    mds_index(&f, &entry, 4, b.count, 0);
    assert_examine_fails(&f, "a/x.bin", IRON_E_FORMAT, "4 samples, but index.json says 5");
    folder_remove(&f);
}

static void test_names(void **state) {
    static const char *const inside[] = {"a", "a/b", "..a/b", "a/..b", "a..", "..."};
    static const char *const outside[] = {"", "/a", "..", "../a", "a/..", "a/../b"};

    (void)state;
    for (size_t k = 0; k < COUNT(inside); k++)
        assert_true(iron__name_is_inside(inside[k]));
    for (size_t k = 0; k < COUNT(outside); k++)
        assert_false(iron__name_is_inside(outside[k]));
}

/* Files without an index, or that an index does not list, are not MDS. */
static void test_others(void **state) {
    iron__input file = {.bytes = 1, .fd = -1};
    iron__candidate c = {.file = &file};
    mds_entry entry;
    file_name name;
    folder f;
    blob b;

    (void)state;
    folder_make(&f);
    name = name_in(&f, "x.bin");
    file.path = name.path;
    assert_false(iron__format_mds.recognise(&c));
    make_scalars(&f, &entry, &b);
    assert_false(iron__format_mds.recognise(&c));
    entry.raw_name = "x.bin";
    mds_index(&f, &entry, 4, b.count, 0);
    assert_true(iron__format_mds.recognise(&c));
    file.bytes = IRON_COUNT_UNKNOWN;
    assert_false(iron__format_mds.recognise(&c));
    file.path = "-";
    file.bytes = 1;
    assert_false(iron__format_mds.recognise(&c));
    file.path = "http://localhost/x.bin";
    assert_false(iron__format_mds.recognise(&c));
    folder_remove(&f);
}

/* Cut off anywhere, with an index that agrees; every offset wrong. */
static void test_damage(void **state) {
    mds_entry entry;
    iron_error err;
    opened o;
    folder f;
    blob b;

    (void)state;
    folder_make(&f);
    make_scalars(&f, &entry, &b);
    for (size_t bytes = 0; bytes < b.count; bytes++) {
        blob cut = b;

        cut.count = bytes;
        save(&f, "shard.00000.mds", &cut);
        mds_index(&f, &entry, 4, bytes, 0);
        assert_refused(try_examine(&f, "shard.00000.mds", &o, &err), IRON_E_FORMAT, &err);
    }
    mds_index(&f, &entry, 4, b.count, 0);
    for (size_t k = 0; k < 5; k++)
        for (unsigned v = 0; v < 3; v++) {
            static const uint32_t wrong[3] = {0, 0x7fffffff, UINT32_MAX};
            blob bad = b;

            poke(&bad, 4 + 4 * k, wrong[v], 4);
            save(&f, "shard.00000.mds", &bad);
            assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "at byte");
        }
    folder_remove(&f);
}

/* A file that changes between examining and reading does not give other tokens silently. */
static void test_changes(void **state) {
    static const mds_column column = {"ids", "ndarray", 0};
    static const mds_entry entry = {.columns = &column, .column_count = 1};
    static const unsigned shape[1] = {4};
    blob sample = {.count = 0}, b;
    iron__block all;
    iron_error err;
    opened o;
    folder f;

    (void)state;
    folder_make(&f);
    put_number(&sample, 0, 4);
    put_array(&sample, 16, 1, shape, 1, 1, 2);
    poke(&sample, 0, sample.count - 4, 4);
    save_shard(&f, &entry, &sample, 1);
    assert_ok(try_examine(&f, "shard.00000.mds", &o, &err), &err);
    poke(&sample, 4, 8, 1);
    poke(&sample, 6, 8, 1);
    b = mds_shard(&sample, 1, "{\"format\": \"mds\"}");
    save(&f, "shard.00000.mds", &b);
    assert_refused(decode_all(&o, &all, &err), IRON_E_IO, &err);
    assert_says(&err, "changed");
    iron__block_clear(&all);
    b.count -= 3;
    save(&f, "shard.00000.mds", &b);
    assert_refused(decode_all(&o, &all, &err), IRON_E_IO, &err);
    iron__block_clear(&all);
    close_opened(&o);
    folder_remove(&f);
}

static void test_empty(void **state) {
    static const mds_column columns[] = {{"ids", "ndarray", 0}, {"x", "int", 8}};
    static const mds_entry entry = {.columns = columns, .column_count = 2};
    folder f;

    (void)state;
    folder_make(&f);
    save_shard(&f, &entry, NULL, 0);
    assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U32, NULL, 0);
    given_dtype = IRON_DTYPE_U16;
    assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U16, NULL, 0);
    given_dtype = IRON_DTYPE_NONE;
    folder_remove(&f);
}

/* Several blocks, and samples larger than what is read at once. */
static void test_large(void **state) {
    static const mds_column column = {"ids", "ndarray:uint16", 0};
    static const mds_entry entry = {.columns = &column, .column_count = 1};
    enum { SAMPLES = 5, TOKENS = 700001, HEAD = 4 + 4 * (SAMPLES + 1), EACH = 4 + 5 + 2 * TOKENS };
    size_t bytes = HEAD + (size_t)SAMPLES * EACH;
    unsigned char *data = grab(bytes), *at = data;
    iron__block all;
    iron_error err;
    opened o;
    folder f;

    (void)state;
    folder_make(&f);
    memset(data, 0, bytes);
    for (unsigned k = 0; k <= SAMPLES + 1; k++, at += 4) {
        uint32_t word = k == 0 ? SAMPLES : HEAD + (k - 1) * EACH;

        memcpy(at, &word, 4);
    }
    for (unsigned k = 0; k < SAMPLES; k++) {
        const uint32_t size = EACH - 4, count = TOKENS;

        memcpy(at, &size, 4);
        at[4] = 1 << 2 | 2;
        memcpy(at + 5, &count, 4);
        at += 9;
        for (uint64_t n = 0; n < TOKENS; n++, at += 2) {
            uint16_t token = (uint16_t)(7 * (k * TOKENS + n));

            memcpy(at, &token, 2);
        }
    }
    file_write(name_in(&f, "shard.00000.mds").path, data, bytes);
    mds_index(&f, &entry, SAMPLES, bytes, 0);
    free(data);
    assert_ok(try_examine(&f, "shard.00000.mds", &o, &err), &err);
    assert_int_equal(o.layout.tokens, (uint64_t)SAMPLES * TOKENS);
    assert_int_equal(o.layout.table->block_count, 3);
    assert_ok(decode_all(&o, &all, &err), &err);
    assert_int_equal(all.place_count, SAMPLES);
    assert_int_equal(all.places[4], (uint64_t)4 * TOKENS);
    for (uint64_t n = 0; n < (uint64_t)SAMPLES * TOKENS; n++) {
        uint16_t token;

        memcpy(&token, all.data + 2 * n, 2);
        if (token != (uint16_t)(7 * n))
            fail_msg("token %zu is %u", (size_t)n, token);
    }
    iron__block_clear(&all);
    close_opened(&o);
    folder_remove(&f);
}

/* Checksums of "abc" by Python's hashlib and by xxhsum. */
static const char *const sums[][2] = {
    {"md5", "900150983cd24fb0d6963f7d28e17f72"},
    {"sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {"sha224", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
    {"sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"sha384",
     "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358ba"
     "eca134c825a7"},
    {"sha512",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba"
     "3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
    {"sha3_224", "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"},
    {"sha3_256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"},
    {"sha3_384",
     "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539"
     "f1edf228376d25"},
    {"sha3_512",
     "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a"
     "7ec57647e3934057340b4cf408d5a56592f8274eec53f0"},
    {"blake2b",
     "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d17d87c5392aab792dc25"
     "2d5de4533cc9518d38aa8dbf1925ab92386edd4009923"},
    {"blake2s", "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"},
    {"xxh32", "32d153ff"},
    {"xxh64", "44bc2cf5ad770999"},
    {"xxh3_64", "78af5f94892f3950"},
    {"xxh128", "06b05ab6733a618578af5f94892f3950"},
    {"xxh3_128", "06b05ab6733a618578af5f94892f3950"},
};

/* The checksum of bytes; false: its library is not here. */
static bool checksum_of(const char *name, const void *data, size_t bytes,
                        char hex[IRON_CHECKSUM_HEX_MAX + 1]) {
    iron__checksum *sum;
    iron_error err;
    iron_status status = iron__checksum_create(name, &sum, &err);

    if (status == IRON_E_UNSUPPORTED)
        return false;
    assert_ok(status, &err);
    assert_ok(iron__checksum_update(sum, data, bytes / 2, &err), &err);
    assert_ok(iron__checksum_update(sum, (const char *)data + bytes / 2, bytes - bytes / 2, &err),
              &err);
    assert_ok(iron__checksum_final(sum, hex, &err), &err);
    iron__checksum_destroy(sum);
    return true;
}

static void test_checksums(void **state) {
    char hex[IRON_CHECKSUM_HEX_MAX + 1];
    iron__checksum *sum;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(sums); k++) {
        assert_true(iron__checksum_is_known(sums[k][0]));
        assert_non_null(iron__checksum_package(sums[k][0]));
        if (checksum_of(sums[k][0], "abc", 3, hex))
            assert_string_equal(hex, sums[k][1]);
        else
            print_message("%s: no library\n", sums[k][0]);
    }
    assert_false(iron__checksum_is_known("shake_128"));
    assert_null(iron__checksum_package("crc32"));
    assert_refused(iron__checksum_create("crc32", &sum, &err), IRON_E_UNSUPPORTED, &err);
    assert_null(sum);
    iron__checksum_destroy(NULL);
}

/* Right hashes pass, wrong ones do not, and those that cannot be computed are warned about. */
static void test_hashes(void **state) {
    char hex[IRON_CHECKSUM_HEX_MAX + 1], hashes[200];
    mds_entry entry;
    iron_error err;
    opened o;
    folder f;
    blob b;

    (void)state;
    folder_make(&f);
    make_scalars(&f, &entry, &b);
    entry.hashes = hashes;
    for (size_t k = 0; k < COUNT(sums); k++) {
        if (!checksum_of(sums[k][0], b.data, b.count, hex))
            continue;
        snprintf(hashes, sizeof hashes, "{\"%s\": \"%s\"}", sums[k][0], hex);
        mds_index(&f, &entry, 4, b.count, 0);
        assert_ok(try_examine(&f, "shard.00000.mds", &o, &err), &err);
        assert_int_equal(o.warnings, 0);
        close_opened(&o);
        hashes[strlen(hashes) - 3] ^= 1;
        mds_index(&f, &entry, 4, b.count, 0);
        assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, sums[k][0]);
        assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "damaged");
    }
    strcpy(hashes, "{\"crc99\": \"00\"}");
    mds_index(&f, &entry, 4, b.count, 0);
    assert_ok(try_examine(&f, "shard.00000.mds", &o, &err), &err);
    assert_int_equal(o.warnings, 1);
    assert_string_equal(o.warning, "its crc99 is not checked: iron does not know this hash");
    close_opened(&o);
    strcpy(hashes, "{\"sha1\": 7}");
    mds_index(&f, &entry, 4, b.count, 0);
    assert_examine_fails(&f, "shard.00000.mds", IRON_E_FORMAT, "hash sha1 that is not a text");
    folder_remove(&f);
}

/* zstd with one raw block: a single segment, the size in two bytes. */
static blob zstd_of(const blob *b) {
    blob z = {.count = 0};

    put(&z, "\x28\xb5\x2f\xfd\x60", 5);
    put_number(&z, b->count - 256, 2);
    put_number(&z, b->count << 3 | 1, 3);
    put(&z, b->data, b->count);
    return z;
}

/* snappy with one literal. */
static blob snappy_of(const blob *b) {
    blob z = {.count = 0};

    put_number(&z, (b->count & 127) | 128, 1);
    put_number(&z, b->count >> 7, 1);
    put_number(&z, 61 << 2, 1);
    put_number(&z, b->count - 1, 2);
    put(&z, b->data, b->count);
    return z;
}

static void test_compressed(void **state) {
    static const mds_column column = {"ids", "ndarray:uint16:50", 100};
    static const size_t rows[4] = {50, 50, 50, 50};
    static const struct {
        const char *name;
        iron__codec codec;
        blob (*compress)(const blob *b);
    } codecs[] = {{"gz:5", IRON_CODEC_GZIP, gzip_of},
                  {"zstd", IRON_CODEC_ZSTD, zstd_of},
                  {"zstd:7", IRON_CODEC_ZSTD, zstd_of},
                  {"snappy", IRON_CODEC_SNAPPY, snappy_of}};
    char hex[IRON_CHECKSUM_HEX_MAX + 1], hashes[200] = "{}", zip_hashes[200] = "{}";
    blob samples[4], b;
    folder f;

    (void)state;
    folder_make(&f);
    for (unsigned r = 0; r < 4; r++) {
        samples[r].count = 0;
        for (unsigned k = 1; k <= 50; k++)
            put_number(&samples[r], 50 * r + k, 2);
    }
    b = mds_shard(samples, 4, "");
    for (size_t k = 0; k < COUNT(codecs); k++) {
        mds_entry e = {.columns = &column,
                       .column_count = 1,
                       .has_zip = true,
                       .compression = codecs[k].name,
                       .hashes = hashes,
                       .zip_hashes = zip_hashes};
        blob z = codecs[k].compress(&b);

        if (!iron__codec_is_there(codecs[k].codec)) {
            print_message("%s: no library\n", codecs[k].name);
            continue;
        }
        save(&f, "shard.00000.mds.zip", &z);
        if (checksum_of("xxh64", b.data, b.count, hex))
            snprintf(hashes, sizeof hashes, "{\"xxh64\": \"%s\"}", hex);
        if (checksum_of("xxh64", z.data, z.count, hex))
            snprintf(zip_hashes, sizeof zip_hashes, "{\"xxh64\": \"%s\"}", hex);
        mds_index(&f, &e, 4, b.count, z.count);
        assert_rows(&f, "shard.00000.mds.zip", IRON_DTYPE_U16, rows, 4);
        if (strlen(hashes) > 2) {
            hashes[12] ^= 1;
            mds_index(&f, &e, 4, b.count, z.count);
            assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_FORMAT, "decompresses to");
            hashes[12] ^= 1;
            zip_hashes[12] ^= 1;
            mds_index(&f, &e, 4, b.count, z.count);
            assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_FORMAT, "of the file");
            zip_hashes[12] ^= 1;
        }
        mds_index(&f, &e, 4, b.count + 1, z.count);
        assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_FORMAT, "");
        mds_index(&f, &e, 4, b.count, z.count + 1);
        assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_FORMAT, "is it cut off?");
        mds_index(&f, &e, 4, ((size_t)1 << 30) + 1, z.count);
        assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_UNSUPPORTED, "decompress it first");
        /* the decompressed one may be there as well */
        save(&f, "shard.00000.mds", &b);
        mds_index(&f, &e, 4, b.count, z.count);
        assert_rows(&f, "shard.00000.mds", IRON_DTYPE_U16, rows, 4);
    }
    folder_remove(&f);
}

static void test_other_codecs(void **state) {
    static const mds_column column = {"ids", "uint8", 1};
    mds_entry e = {.columns = &column, .column_count = 1, .has_zip = true};
    folder f;

    (void)state;
    folder_make(&f);
    save_text(&f, "shard.00000.mds.zip", "x");
    e.compression = "br:11";
    mds_index(&f, &e, 0, 8, 1);
    assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_UNSUPPORTED, "'br:11'");
    e.compression = "zstdx";
    mds_index(&f, &e, 0, 8, 1);
    assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_UNSUPPORTED, "'zstdx'");
    e.compression = NULL;
    mds_index(&f, &e, 0, 8, 1);
    assert_examine_fails(&f, "shard.00000.mds.zip", IRON_E_UNSUPPORTED, "not read");
    folder_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_mixed_arrays),  cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_columns),       cmocka_unit_test(test_inferred_size),
        cmocka_unit_test(test_values),        cmocka_unit_test(test_index),
        cmocka_unit_test(test_folders_above), cmocka_unit_test(test_names),
        cmocka_unit_test(test_others),        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_changes),       cmocka_unit_test(test_empty),
        cmocka_unit_test(test_large),         cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_hashes),        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_other_codecs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
