/* SPDX-License-Identifier: MIT */
/*
 * test_parquet.c: Parquet files: every form of a column, encoding, page version and codec, files of
 * other writers, and what is refused. Files are written byte by byte by parquet_support.h; those of
 * other writers are in tests/containers/parquet.
 */
#include "formats/format.h"
#include "formats/source.h"

#include "parquet_support.h"
#include "place.h"

#include <fcntl.h>

#define TOKENS_MAX 60000u
#define ROWS_MAX   60000u

static file_name name;
static int file_fd;
static int64_t values[TOKENS_MAX];
static int rows[ROWS_MAX];

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    name = name_in(&place, "t.parquet");
    file_fd = open(name.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file_fd >= 0);
    return 0;
}

static int tear_down(void **state) {
    close(file_fd);
    return remove_place(state);
}

/* Thousands of files: creating each, or cutting it to nothing, would take most of the time. */
static void overwrite(const void *data, size_t bytes_written) {
    assert_int_equal(pwrite(file_fd, data, bytes_written, 0), bytes_written);
    assert_int_equal(ftruncate(file_fd, (off_t)bytes_written), 0);
}

/* Rows of 0 to 40 tokens, some empty, or of one token; returns their number for some tokens. */
static size_t make_rows(bool is_flat_column, size_t tokens, uint64_t limit) {
    rng r = {17};
    size_t count = 0;

    for (size_t k = 0; k < tokens; k++)
        values[k] = (int64_t)(k % 7 == 3 ? rng_below(&r, limit) : k * 11 % limit);
    for (size_t left = tokens; left > 0; count++) {
        size_t length = is_flat_column ? 1 : count % 3 == 1 ? 0 : rng_below(&r, 41);

        rows[count] = (int)(length < left ? length : left);
        left -= (size_t)rows[count];
    }
    if (!is_flat_column && tokens > 0)
        rows[count++] = 0;
    return count;
}

static iron_status try_file(const bytes *file, const char *column, iron_source **out,
                            iron_error *err) {
    const char *path = name.path;
    iron_source_options o = {
        .struct_size = sizeof o, .paths = &path, .path_count = 1, .column = column};

    if (file)
        overwrite(file->data, file->count);
    *out = NULL;
    return iron_source_open(&o, out, err);
}

/* Every row begins where it should. */
static void check_rows(iron_source *s, size_t row_count) {
    const iron__table *t = iron__source_layout(s, 0)->table;
    iron__block places = {.data = NULL};
    uint64_t start = 0;
    iron_error err;
    iron__input in = {.path = name.path, .fd = -1};

    assert_int_equal(t->rows, row_count);
    assert_ok(iron__input_open(&in, &err), &err);
    for (size_t k = 0; k < t->block_count; k++) {
        assert_int_equal(t->blocks[k].first_row, places.place_count);
        assert_ok(iron__table_row_starts(t, &in, k, &places, &err), &err);
    }
    assert_int_equal(places.place_count, row_count);
    for (size_t k = 0; k < row_count; k++) {
        assert_int_equal(places.places[k], start);
        start += rows[k] > 0 ? (uint64_t)rows[k] : 0;
    }
    iron__block_clear(&places);
    iron__input_close(&in);
}

/* The source's tokens are `values`. */
static void check_tokens(iron_source *s, size_t tokens) {
    uint32_t *got = grab((tokens + 1) * sizeof *got);
    size_t count = 0, more = 1;
    iron_error err;

    assert_int_equal(iron_source_dtype(s), IRON_DTYPE_U32);
    assert_int_equal(iron_source_tokens(s), tokens);
    for (; more > 0 && count <= tokens; count += more)
        assert_ok(iron_source_read(s, got + count, tokens + 1 - count, &more, &err), &err);
    assert_int_equal(count, tokens);
    for (size_t k = 0; k < tokens; k++)
        if (got[k] != (uint64_t)values[k])
            fail_msg("token %zu is %u, not %lld", k, got[k], (long long)values[k]);
    free(got);
}

static void check_file(const spec *s, size_t row_count, size_t tokens) {
    bytes file = parquet_make(s, rows, row_count, values);
    iron_source *source;
    iron_error err;

    assert_ok(try_file(&file, s->name, &source, &err), &err);
    assert_string_equal(iron_source_file_format(source, 0), "parquet");
    assert_string_equal(iron_source_file_column(source, 0), column_name(s));
    check_tokens(source, tokens);
    check_rows(source, row_count);
    iron_source_close(source);
    bytes_free(&file);
}

/* Opening, or else reading, fails with these words. */
static void check_refused_file(const bytes *file, const char *column, iron_status expected,
                               const char *word) {
    iron_source *source;
    iron_error err;
    iron_status status = try_file(file, column, &source, &err);
    uint32_t piece[512];
    size_t count = 1;

    while (status == IRON_OK && count > 0)
        status = iron_source_read(source, piece, COUNT(piece), &count, &err);
    iron_source_close(source);
    assert_int_equal(status, expected);
    assert_says(&err, word);
}

static void check_refused(const spec *s, size_t row_count, iron_status expected, const char *word) {
    bytes file = parquet_make(s, rows, row_count, values);

    check_refused_file(&file, s->name, expected, word);
    bytes_free(&file);
}

/* Whether the codec's library is here. */
static bool has_codec(int codec) {
    static const iron__codec codecs[] = {IRON_CODEC_NONE, IRON_CODEC_SNAPPY, IRON_CODEC_GZIP,
                                         IRON_CODEC_NONE, IRON_CODEC_NONE,   IRON_CODEC_NONE,
                                         IRON_CODEC_ZSTD, IRON_CODEC_LZ4_RAW};

    return codec == UNCOMPRESSED || iron__codec_is_there(codecs[codec]);
}

/* Everything, with everything. */

static void forms_and_encodings(void **state) {
    static const int encodings[] = {PLAIN, PLAIN_DICTIONARY, DICTIONARY, DELTA, SPLIT};

    (void)state;
    for (unsigned f = FLAT_REQUIRED; f <= LIST_BARE; f++)
        for (size_t e = 0; e < COUNT(encodings); e++)
            for (unsigned bits = 0; bits < 8; bits++) {
                spec s = {.form = (form)f, .encoding = encodings[e]};
                size_t count = make_rows(f <= FLAT_OPTIONAL, 1000, 3000);

                s.type = bits & 1 ? INT64 : INT32;
                s.version = bits & 2 ? 2 : 1;
                s.is_packed = bits & 4;
                s.page_levels = e == 0 ? 0 : 170;
                s.group_rows = e == 1 ? 0 : 33;
                check_file(&s, count, 1000);
            }
}

static void codecs(void **state) {
    static const int all[] = {SNAPPY, GZIP, ZSTD, LZ4_RAW};
    size_t done = 0;

    (void)state;
    for (size_t c = 0; c < COUNT(all); c++)
        for (unsigned bits = 0; bits < 8 && has_codec(all[c]); bits++) {
            spec s = {.form = bits & 1 ? LIST_OPTIONAL : FLAT_OPTIONAL, .codec = all[c]};
            size_t count = make_rows(!(bits & 1), 1000, 3000);

            s.version = bits & 2 ? 2 : 1;
            s.encoding = bits & 4 ? DICTIONARY : PLAIN;
            s.page_levels = 100;
            s.has_crc = bits & 1;
            check_file(&s, count, 1000);
            s.version = 2;
            s.is_flag_clear = true;
            check_file(&s, count, 1000);
            done++;
        }
    if (has_codec(
            LZ4_RAW)) { /* a page of which only the beginning is decompressed for its levels */
        spec s = {.form = LIST_OPTIONAL, .codec = LZ4_RAW, .is_packed = true};

        check_file(&s, make_rows(false, 40000, 3000), 40000);
    }
    if (done == 0)
        print_message("no codec's library is here\n");
}

static void small_files(void **state) {
    (void)state;
    for (unsigned f = FLAT_REQUIRED; f <= LIST_BARE; f++)
        for (size_t tokens = 0; tokens < 3; tokens++) {
            spec s = {.form = (form)f, .encoding = tokens ? DICTIONARY : PLAIN};

            check_file(&s, make_rows(f <= FLAT_OPTIONAL, tokens, 5), tokens);
        }
    for (unsigned f = LIST_OPTIONAL; f <= LIST_BARE; f++) { /* only empty rows */
        spec s = {.form = (form)f, .page_levels = 2, .is_packed = f & 1};

        memset(rows, 0, 5 * sizeof rows[0]);
        check_file(&s, 5, 0);
    }
}

/* Pages of which each is a direct block, and runs of pages that become one. */
static void blocks(void **state) {
    static const size_t sizes[] = {100, 20000, 30000};

    (void)state;
    for (unsigned f = FLAT_REQUIRED; f <= LIST_BARE; f++)
        for (size_t k = 0; k < COUNT(sizes); k++) {
            spec s = {.form = (form)f, .page_levels = sizes[k], .version = 1 + (int)(f & 1)};
            size_t count = make_rows(f <= FLAT_OPTIONAL, TOKENS_MAX - 1000, 100000);
            bytes file = parquet_make(&s, rows, count, values);
            iron_source *source;
            iron_error err;
            const iron__table *t;

            assert_ok(try_file(&file, NULL, &source, &err), &err);
            t = iron__source_layout(source, 0)->table;
            assert_int_equal(t->blocks[0].is_direct, sizes[k] >= 20000);
            assert_true(sizes[k] > 100 || t->block_count == 1);
            iron_source_close(source);
            bytes_free(&file);
            check_file(&s, count, TOKENS_MAX - 1000);
            s.has_crc = true; /* never direct */
            check_file(&s, count, TOKENS_MAX - 1000);
            s.type = INT64;
            s.has_crc = false;
            check_file(&s, count, TOKENS_MAX - 1000);
        }
}

static void fallback(void **state) {
    size_t count = make_rows(false, 2000, 900);
    spec s = {.form = LIST_OPTIONAL, .encoding = DICTIONARY, .fallback = 3, .page_levels = 300};

    (void)state;
    check_file(&s, count, 2000);
    s.fallback = 1;
    s.group_rows = 40;
    s.version = 2;
    check_file(&s, count, 2000);
}

/* A row that goes on in the next page; one row of all tokens. */
static void long_rows(void **state) {
    spec s = {.form = LIST_OPTIONAL, .page_levels = 97};

    (void)state;
    (void)make_rows(true, 1000, 100);
    rows[0] = 1000;
    check_file(&s, 1, 1000);
    rows[0] = 1;
    rows[1] = 998;
    rows[2] = 1;
    check_file(&s, 3, 1000);
}

/* Types. */

static void unsigned_integers(void **state) {
    spec s = {.encoding = PLAIN};

    (void)state;
    (void)make_rows(true, 10, 10);
    values[4] = 4294967295; /* -1 as INT32 */
    values[5] = 2147483648;
    for (unsigned bits = 0; bits < 4; bits++) {
        s.converted = bits & 1 ? 1 + 13 : 0;
        s.bits = bits & 1 ? 0 : 32;
        s.form = bits & 2 ? LIST_REQUIRED : FLAT_REQUIRED;
        for (size_t e = 0; e < 4; e++) {
            static const int encodings[] = {PLAIN, DICTIONARY, DELTA, SPLIT};

            s.encoding = encodings[e];
            check_file(&s, 10, 10);
        }
    }
    s = (spec){.encoding = DELTA, .type = INT64, .bits = 64};
    check_file(&s, 10, 10);
    s.bits = -64;
    check_file(&s, 10, 10);
    s = (spec){.bits = -32};
    check_refused(&s, 10, IRON_E_FORMAT, "row 4 of column input_ids has -1;");
}

static void small_logical_types(void **state) {
    static const int converted[] = {11, 12, 13, 15, 16, 17};
    static const int bits[] = {8, 16, 32, -8, -16, -32};
    size_t count = make_rows(false, 100, 100);

    (void)state;
    for (size_t k = 0; k < COUNT(converted); k++) {
        spec s = {.form = LIST_OPTIONAL, .converted = 1 + converted[k]};

        check_file(&s, count, 100);
        s.converted = 0;
        s.bits = bits[k];
        check_file(&s, count, 100);
    }
}

static void not_tokens(void **state) {
    static const struct {
        spec s;
        const char *word;
    } cases[] = {
        {{.converted = 1 + 6}, "input_ids (date)"},
        {{.converted = 1 + 5}, "(decimal)"},
        {{.converted = 1 + 9, .type = INT64}, "(timestamp)"},
        {{.logical = 8, .type = INT64}, "(timestamp)"},
        {{.logical = 6}, "(date)"},
        {{.logical = 11}, "(null)"},
        {{.logical = 77}, "(unknown)"},
        {{.bits = 64}, "(integer)"}, /* in 32 bits */
        {{.type = 4}, "(float)"},
        {{.type = 5}, "(double)"},
        {{.type = 6}, "(binary)"},
        {{.type = 6, .converted = 1}, "(string)"},
        {{.type = 99}, "(unknown)"},
        {{.type = 6, .form = LIST_OPTIONAL}, "(list<binary>)"},
        {{.form = LIST_NESTED}, "(list<list>)"},
    };

    (void)state;
    (void)make_rows(true, 3, 10);
    for (size_t k = 0; k < COUNT(cases); k++) {
        check_refused(&cases[k].s, 3, IRON_E_FORMAT, cases[k].word);
        check_refused(&cases[k].s, 3, IRON_E_FORMAT, "has no column of integers");
    }
}

static void columns(void **state) {
    size_t count = make_rows(false, 50, 100);
    spec s = {.form = LIST_OPTIONAL, .name = "ids", .extra_columns = 20};
    bytes file = parquet_make(&s, rows, count, values);
    iron_sniff_report r = {.struct_size = sizeof r};
    iron_error err;

    (void)state;
    check_file(&s, count, 50);
    check_refused_file(&file, "nothing", IRON_E_ARG, "no column nothing");
    check_refused_file(&file, "text", IRON_E_FORMAT, "column text is string");
    assert_ok(iron_sniff(name.path, NULL, &r, &err), &err);
    assert_string_equal(r.format, "parquet");
    assert_int_equal(r.tokens, 50);
    assert_int_equal(r.column_count, 21);
    assert_string_equal(r.columns[0].name, "text");
    assert_string_equal(r.columns[0].type, "string");
    iron_sniff_report_deinit(&r);
    assert_refused(iron_sniff(name.path, "nothing", &r, &err), IRON_E_ARG, &err);
    assert_int_equal(r.column_count, 21);
    iron_sniff_report_deinit(&r);
    bytes_free(&file);
    s.extra_columns = 0;
    s.name = "any\x01name"; /* shown as any?name */
    file = parquet_make(&s, rows, count, values);
    check_refused_file(&file, "any", IRON_E_ARG, "any?name (list<int32>)");
    bytes_free(&file);
}

/* Refusals. */

static void nulls(void **state) {
    static const struct {
        form form;
        int null;
    } cases[] = {{FLAT_OPTIONAL, NULL_ELEMENT}, {LIST_OPTIONAL, NULL_LIST},
                 {LIST_OPTIONAL, NULL_ELEMENT}, {LIST_MIXED, NULL_LIST},
                 {LIST_TWO, NULL_LIST},         {LIST_TUPLE, NULL_LIST}};

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++)
        for (unsigned bits = 0; bits < 16; bits++) {
            size_t count = make_rows(cases[k].form == FLAT_OPTIONAL, 200, 100);
            spec s = {.form = cases[k].form, .version = 1 + (bits & 1), .is_packed = bits & 2};

            s.page_levels = bits & 4 ? 30 : 0;
            s.group_rows = bits & 8 ? 5 : 0;
            rows[7] = cases[k].null;
            check_refused(&s, count, IRON_E_FORMAT, "row 7 of column input_ids is null");
        }
    /* in a page that is direct otherwise */
    (void)make_rows(true, 50000, 100);
    rows[40000] = NULL_ELEMENT;
    check_refused(&(spec){.form = FLAT_OPTIONAL}, 50000, IRON_E_FORMAT, "row 40000 of column");
}

static void values_out_of_range(void **state) {
    static const int encodings[] = {PLAIN, DICTIONARY, DELTA, SPLIT};

    (void)state;
    for (size_t e = 0; e < COUNT(encodings); e++)
        for (unsigned bits = 0; bits < 16; bits++) {
            spec s = {.form = bits & 1 ? LIST_OPTIONAL : FLAT_REQUIRED, .encoding = encodings[e]};
            size_t count = make_rows(!(bits & 1), 300, 100);
            size_t row = 0, begun = 0;
            char word[80];

            s.type = bits & 2 ? INT64 : INT32;
            s.is_packed = bits & 4;
            s.page_levels = bits & 8 ? 50 : 0;
            for (; begun + (size_t)rows[row] <= 217; row++)
                begun += (size_t)rows[row];
            values[217] = bits & 2 ? INT64_C(1) << 32 : -5;
            snprintf(word, sizeof word, "row %zu of column input_ids has %lld;", row,
                     (long long)values[217]);
            check_refused(&s, count, IRON_E_FORMAT, word);
            values[217] = -1;
            snprintf(word, sizeof word, "row %zu of column input_ids has -1;", row);
            check_refused(&s, count, IRON_E_FORMAT, word);
        }
    /* in a direct block */
    (void)make_rows(true, 50000, 100);
    values[33333] = -77;
    check_refused(&(spec){.form = FLAT_REQUIRED}, 50000, IRON_E_FORMAT, "row 33333 of column");
    /* in a dictionary, but not used */
    (void)make_rows(true, 100, 100);
    check_file(&(spec){.encoding = DICTIONARY, .has_bad_entry = true}, 100, 100);
}

static void not_read(void **state) {
    static const struct {
        spec s;
        iron_status status;
        const char *word;
    } cases[] = {
        {{.codec = LZO}, IRON_E_UNSUPPORTED, "LZO"},
        {{.codec = BROTLI}, IRON_E_UNSUPPORTED, "BROTLI"},
        {{.codec = LZ4}, IRON_E_UNSUPPORTED, "LZ4 (the old one)"},
        {{.codec = 8}, IRON_E_UNSUPPORTED, "codec 8"},
        {{.is_encrypted = true}, IRON_E_UNSUPPORTED, "encrypted"},
        {{.is_elsewhere = true}, IRON_E_UNSUPPORTED, "another file"},
        {{.encoding = DELTA_LENGTH}, IRON_E_UNSUPPORTED, "DELTA_LENGTH_BYTE_ARRAY"},
        {{.encoding = 55}, IRON_E_UNSUPPORTED, "unknown number"},
        {{.form = FLAT_OPTIONAL, .level_encoding = BIT_PACKED}, IRON_E_UNSUPPORTED, "BIT_PACKED"},
        {{.form = LIST_BARE, .level_encoding = BIT_PACKED}, IRON_E_UNSUPPORTED, "BIT_PACKED"},
        {{.claim_rows = 1}, IRON_E_FORMAT, "says 11 rows"},
        {{.claim_values = 1}, IRON_E_FORMAT, "10 rows, but 11 values"},
        {{.form = LIST_TWO, .claim_values = 1}, IRON_E_FORMAT, "damaged"},
        {{.form = LIST_TWO, .claim_values = -1}, IRON_E_FORMAT, "damaged"},
        {{.claim_size = 1000}, IRON_E_FORMAT, "is said to have 1000 bytes"},
        {{.claim_size = INT32_MAX}, IRON_E_FORMAT, "is said to have 2147483647 bytes"},
        {{.claim_size = 39}, IRON_E_FORMAT, "plain values"},
    };

    (void)state;
    (void)make_rows(true, 10, 10);
    for (size_t k = 0; k < COUNT(cases); k++)
        check_refused(&cases[k].s, 10, cases[k].status, cases[k].word);
}

static void ends(void **state) {
    spec s = {.form = LIST_OPTIONAL};
    bytes file = parquet_make(&s, rows, make_rows(false, 20, 10), values);
    unsigned char *end = file.data + file.count - 4;
    iron_source *source;
    iron_error err;

    (void)state;
    memcpy(end, "PARE", 4);
    check_refused_file(&file, NULL, IRON_E_UNSUPPORTED, "encrypted");
    memcpy(file.data, "PARE", 4);
    check_refused_file(&file, NULL, IRON_E_UNSUPPORTED, "encrypted");
    memcpy(file.data, "PAR1", 4);
    memcpy(end, "PAR2", 4);
    check_refused_file(&file, NULL, IRON_E_FORMAT, "does not end with");
    memcpy(end, "PAR1", 4);
    memset(end - 4, 0xFF, 4);
    check_refused_file(&file, NULL, IRON_E_FORMAT, "4294967295 bytes, more than the file");
    memset(end - 4, 0, 4);
    check_refused_file(&file, NULL, IRON_E_FORMAT, "damaged");
    overwrite("PAR1\x15", 5);
    assert_refused(try_file(NULL, NULL, &source, &err), IRON_E_FORMAT, &err);
    bytes_free(&file);
}

static void pipes(void **state) {
    spec s = {.form = LIST_OPTIONAL};
    bytes file = parquet_make(&s, rows, make_rows(false, 20, 10), values);
    const char *path = "-";
    iron_source *source = NULL;
    iron_error err;
    int saved, end = pipe_as_stdin(&saved);

    (void)state;
    assert_int_equal(write(end, file.data, file.count), (ssize_t)file.count);
    close(end);
    assert_refused(try_open(IRON_DTYPE_NONE, NULL, &path, 1, &source, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "it needs a file, not a pipe");
    restore_stdin(saved);
    bytes_free(&file);
}

/* Damage. */

static void checksums(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 4; bits++) {
        size_t count = make_rows(true, 40, 20);
        spec s = {.form = FLAT_OPTIONAL, .has_crc = true, .encoding = bits & 1 ? DICTIONARY : 0};
        bytes file;
        size_t end = 4;

        s.version = bits & 2 ? 2 : 1;
        file = parquet_make(&s, rows, count, values);
        while (memcmp(file.data + end, "input_ids", 9) != 0) /* in the footer */
            end++;
        for (size_t k = 4; k + 40 < end; k++)
            for (unsigned bit = 0; bit < 8; bit += 7) {
                iron_source *source;
                uint32_t piece[64];
                size_t got = 0;
                iron_error err;
                iron_status status;

                file.data[k] ^= (unsigned char)(1u << bit);
                status = try_file(&file, NULL, &source, &err);
                if (status == IRON_OK)
                    status = iron_source_read(source, piece, 64, &got, &err);
                /* headers have no checksum: what a change there means may be the same */
                if (status == IRON_OK)
                    check_tokens((iron__source_seek(source, 0), source), 40);
                iron_source_close(source);
                file.data[k] ^= (unsigned char)(1u << bit);
            }
        bytes_free(&file);
    }
    {
        spec s = {.form = FLAT_REQUIRED, .has_crc = true};
        bytes file = parquet_make(&s, rows, make_rows(true, 40, 20), values);

        file.data[100] ^= 4;
        check_refused_file(&file, NULL, IRON_E_FORMAT, "has the checksum");
        bytes_free(&file);
    }
}

/* Every prefix of a file, and every byte changed: refused, or the file has other tokens; never more
 * than that. */
static void damage(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 8; bits++) {
        spec s = {.form = bits & 1 ? LIST_OPTIONAL : FLAT_OPTIONAL, .page_levels = 20};
        size_t count = make_rows(!(bits & 1), 60, 20), step = is_full_test() ? 1 : 7;
        bytes file;

        s.encoding = bits & 2 ? DICTIONARY : bits & 4 ? DELTA : PLAIN;
        s.version = bits & 4 ? 2 : 1;
        file = parquet_make(&s, rows, count, values);
        for (size_t k = 0; k < file.count; k++) { /* without its end */
            bytes cut = {file.data, k, 0};
            iron_source *source;
            iron_error err;

            assert_int_not_equal(try_file(&cut, NULL, &source, &err), IRON_OK);
        }
        for (size_t k = 4; k < file.count; k += 1)
            for (unsigned change = 1; change < 256; change += 37 * (unsigned)step) {
                iron_source *source;
                uint32_t piece[64];
                size_t got = 1;
                iron_error err;
                iron_status status;

                file.data[k] ^= (unsigned char)change;
                status = try_file(&file, NULL, &source, &err);
                for (size_t n = 0; status == IRON_OK && got > 0 && n < 5; n++)
                    status = iron_source_read(source, piece, 64, &got, &err);
                if (status != IRON_OK)
                    assert_true(err.text[0] != '\0');
                iron_source_close(source);
                file.data[k] ^= (unsigned char)change;
            }
        bytes_free(&file);
    }
}

/* A table that was examined, and whose file then changed. */
static void changed_files(void **state) {
    spec s = {.form = LIST_OPTIONAL, .encoding = DICTIONARY};
    size_t count = make_rows(false, 500, 100);
    bytes file = parquet_make(&s, rows, count, values), other;
    iron_source *source;
    uint32_t piece[600];
    size_t got;
    iron_error err;

    (void)state;
    assert_ok(try_file(&file, NULL, &source, &err), &err);
    rows[0] = 0;
    rows[3] = 1;
    other = parquet_make(&s, rows, count, values);
    overwrite(other.data, other.count);
    assert_int_not_equal(iron_source_read(source, piece, 600, &got, &err), IRON_OK);
    iron_source_close(source);
    bytes_free(&file);
    bytes_free(&other);
}

/* Files of other writers: all have the same tokens, see make-fixtures.mjs. */

static void check_fixture(const char *file, uint64_t limit) {
    bool is_list = strstr(file, "-list");
    size_t tokens = 0, row_count = 0;
    iron_source *source;
    iron_error err;

    for (size_t r = 0; r < 40; r++) {
        size_t length = r % 10 == 0 ? 0 : r * 7919 % 61;

        rows[row_count++] = (int)length;
        tokens += length;
    }
    for (size_t k = 0; k < tokens; k++)
        values[k] = (int64_t)((uint32_t)(k * UINT64_C(2654435761)) % limit);
    if (!is_list)
        for (row_count = 0; row_count < tokens; row_count++)
            rows[row_count] = 1;
    snprintf(name.path, sizeof name.path, IRON_TESTS_FOLDER "/containers/parquet/%s.parquet", file);
    if (try_file(NULL, NULL, &source, &err) == IRON_E_UNSUPPORTED) {
        print_message("%s: %s\n", file, err.text); /* a codec's library is missing */
        return;
    }
    assert_non_null(source);
    check_tokens(source, tokens);
    check_rows(source, row_count);
    iron_source_close(source);
}

static void other_writers(void **state) {
    static const char *const files[] = {
        "hyparquet-flat-delta",
        "hyparquet-flat-delta-int64",
        "hyparquet-flat-dictionary",
        "hyparquet-flat-int32",
        "hyparquet-flat-int64-optional",
        "hyparquet-flat-split",
        "hyparquet-flat-split-int64",
        "hyparquet-list-gzip",
        "hyparquet-list-snappy",
        "rust-flat-delta",
        "rust-flat-v2-dictionary",
        "rust-list-dictionary-snappy",
        "rust-list-fallback",
        "rust-list-gzip",
        "rust-list-lz4",
        "rust-list-plain",
        "rust-list-v2",
        "rust-list-v2-zstd",
    };

    (void)state;
    for (size_t k = 0; k < COUNT(files); k++)
        check_fixture(files[k], strstr(files[k], "dictionary") ? 200 : 50257);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(forms_and_encodings),
        CASE(codecs),
        CASE(small_files),
        CASE(blocks),
        CASE(fallback),
        CASE(long_rows),
        CASE(unsigned_integers),
        CASE(small_logical_types),
        CASE(not_tokens),
        CASE(columns),
        CASE(nulls),
        CASE(values_out_of_range),
        CASE(not_read),
        CASE(ends),
        CASE(pipes),
        CASE(checksums),
        CASE(damage),
        CASE(changed_files),
        CASE(other_writers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
