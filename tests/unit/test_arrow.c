/* SPDX-License-Identifier: MIT */
/*
 * test_arrow.c: Arrow files and streams, made byte by byte (arrow_support.h): every type, list,
 * codec and layout, from files and from pipes; nulls, ids that are no tokens, dictionaries that
 * grow and are replaced; files that are cut off at every byte, or have any bit of their metadata
 * flipped.
 */
#include "arrow_support.h"

#include "formats/format.h"

#include <fcntl.h>
#include <sys/mman.h>

/* The file that is read: in memory, since there are many of them. */
static int file_fd;
static char file_path[40];

static void file_set(const void *data, size_t count) {
    assert_int_equal(ftruncate(file_fd, 0), 0);
    assert_int_equal(pwrite(file_fd, data, count, 0), count);
}

/* What reading a file gave. */
typedef struct outcome {
    iron_status status;
    iron_error err;
    iron_dtype dtype;
    uint64_t tokens, rows;
    iron__block all; /* tokens, and the places of rows */
    size_t blocks, direct;
} outcome;

static void outcome_clear(outcome *o) { iron__block_clear(&o->all); }

static iron_status fill_block(void *context, uint64_t index, iron__block *block,
                              const atomic_bool *stop, iron_error *err) {
    const iron__table *t = ((void **)context)[0];

    (void)stop;
    return t->kind->decode(t, ((void **)context)[1], (size_t)index, true, block, err);
}

/* Reads a table in one go, and each of its blocks, which must give the same. */
static void read_table(outcome *o, iron__table *t, iron__input *in) {
    void *context[2] = {t, in};
    iron__blocks_owner owner = {t->block_count, fill_block, NULL, context};
    size_t width = iron_dtype_bytes(t->dtype);
    iron__blocks_range range = {NULL, &owner, 0};
    iron_error *err = &o->err;

    o->tokens = t->tokens;
    o->rows = t->rows;
    o->blocks = t->block_count;
    assert_true(t->tokens < 1 << 24 && t->rows < 1 << 24);
    assert_ok(iron__blocks_create(1, &range.cache, err), err);
    assert_ok(iron__block_reserve(&o->all, (size_t)t->tokens * width, err), err);
    o->status = iron__table_read(t, in, &range, 0, o->all.data, (size_t)t->tokens, err);
    o->all.bytes = (size_t)t->tokens * width;
    for (size_t k = 0; k < t->block_count && o->status == IRON_OK; k++) {
        uint64_t tokens = iron__table_block_tokens(t, k);
        iron__block block = {NULL, 0, 0, NULL, 0, 0};

        o->direct += t->blocks[k].is_direct;
        assert_int_equal(t->blocks[k].first_row, o->all.place_count);
        o->status = t->kind->decode(t, in, k, true, &block, err);
        if (o->status == IRON_OK) {
            assert_int_equal(block.bytes, tokens * width);
            if (tokens)
                assert_memory_equal(block.data, o->all.data + t->blocks[k].first * width,
                                    block.bytes);
            o->status = iron__table_row_starts(t, in, k, &o->all, err);
        }
        iron__block_clear(&block);
    }
    if (o->status == IRON_OK)
        assert_int_equal(o->all.place_count, t->rows);
    for (size_t k = 0; k < o->all.place_count; k++)
        assert_true(o->all.places[k] <= t->tokens &&
                    (!k || o->all.places[k] >= o->all.places[k - 1]));
    iron__blocks_destroy(range.cache);
}

static void read_stream(outcome *o, iron__table *s, iron__input *in) {
    bool has_ended = false;

    while (!has_ended && o->status == IRON_OK)
        o->status = s->kind->next(s, in, &o->all, &has_ended, &o->err);
    o->tokens = o->all.bytes / iron_dtype_bytes(s->dtype);
    o->rows = s->rows;
    if (o->status == IRON_OK) {
        assert_int_equal(o->all.place_count, o->rows);
        assert_int_equal(s->kind->next(s, in, &o->all, &has_ended, &o->err), IRON_OK);
        assert_true(has_ended);
    }
}

static outcome read_path(const char *path, bool is_pipe, const char *column) {
    outcome o = {.status = IRON_OK};
    iron__input in = {.path = path, .fd = -1};
    iron__candidate c = {.file = &in, .name = path, .column = column};
    iron__format_layout layout;
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    in.bytes = is_pipe ? IRON_COUNT_UNKNOWN : (uint64_t)info.st_size;
    assert_ok(iron__input_open(&in, &o.err), &o.err);
    o.status = iron__format_examine(&iron__format_arrow, &c, &layout, &o.err);
    o.dtype = layout.dtype;
    if (o.status == IRON_OK && is_pipe) {
        assert_non_null(layout.stream);
        read_stream(&o, layout.stream, &in);
    } else if (o.status == IRON_OK) {
        assert_int_equal(layout.tokens, layout.table->tokens);
        assert_int_equal(layout.documents, layout.table->rows);
        read_table(&o, layout.table, &in);
    }
    if (o.status != IRON_OK) {
        assert_int_equal(o.err.status, o.status);
        assert_true(o.err.text[0] != '\0');
    }
    iron__format_layout_clear(&layout);
    iron__input_close(&in);
    return o;
}

static outcome read_bytes(const void *data, size_t count, bool is_pipe) {
    file_set(data, count);
    return read_path(file_path, is_pipe, NULL);
}

/* Reads a stream that has no mark at its end yet. */
static outcome read_ended(const bytes *b, bool is_pipe) {
    bytes whole = {NULL, 0, 0};
    outcome o;

    bytes_add(&whole, b->data, b->count);
    add_number(&whole, UINT32_MAX, 8);
    o = read_bytes(whole.data, whole.count, is_pipe);
    bytes_clear(&whole);
    return o;
}

static void assert_tokens(const outcome *o, const size_t *lengths, size_t rows,
                          const int64_t *values, size_t count) {
    size_t width = iron_dtype_bytes(o->dtype), start = 0;

    if (o->status != IRON_OK)
        fail_msg("%s", o->err.text);
    assert_int_equal(o->tokens, count);
    assert_int_equal(o->rows, rows);
    for (size_t k = 0; k < count; k++)
        assert_memory_equal(o->all.data + k * width, &values[k], width);
    for (size_t k = 0; k < rows; k++) {
        assert_int_equal(o->all.places[k], start);
        start += lengths[k];
    }
}

/* Refused, from a file and from a pipe, with these words. */
static void assert_bad(const bytes *b, iron_status status, const char *word, const char *other) {
    for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
        outcome o = read_bytes(b->data, b->count, is_pipe);

        if (o.status != status)
            fail_msg("%s: %s", iron_status_name(o.status), o.err.text);
        assert_says(&o.err, word);
        assert_says(&o.err, other);
        outcome_clear(&o);
    }
}

/* Rows of 0 to 6 tokens in three batches, one of them empty. */
#define ROWS 40u
#define CUT  23u

typedef struct sample {
    size_t lengths[ROWS];
    int64_t values[ROWS * 8], stored[ROWS * 8]; /* stored: indices, if there is a dictionary */
    size_t count, before_cut;
} sample;

static sample make_sample(const arrow_spec *s) {
    uint64_t limit = spec_bits(s) >= 32 ? (uint64_t)1 << (32 - s->is_signed * (spec_bits(s) == 32))
                                        : (uint64_t)1 << (spec_bits(s) - s->is_signed);
    sample m = {.count = 0};
    rng r = {(uint64_t)s->shape * 100 + s->bits + 7};

    for (size_t k = 0; k < ROWS; k++) {
        m.lengths[k] = s->shape == PLAIN ? 1 : s->shape == FIXED ? s->list_size : rng_below(&r, 7);
        m.before_cut = k == CUT ? m.count : m.before_cut;
        m.count += m.lengths[k];
    }
    for (size_t k = 0; k < m.count; k++) {
        m.stored[k] = (int64_t)rng_below(&r, s->index_bits ? 10 : limit);
        m.values[k] = s->index_bits ? (m.stored[k] * 11 + 1) % (int64_t)limit : m.stored[k];
    }
    return m;
}

static arrow_file make_file(const arrow_spec *s, const sample *m) {
    arrow_file f = arrow_begin(s);
    int64_t words[10];

    for (int64_t k = 0; k < 10; k++)
        words[k] = k * 11 + 1;
    if (s->index_bits)
        arrow_dictionary(&f, words, 10, false);
    arrow_batch(&f, m->lengths, CUT, m->stored);
    arrow_batch(&f, m->lengths, 0, m->stored);
    arrow_batch(&f, m->lengths + CUT, ROWS - CUT, m->stored + m->before_cut);
    arrow_end(&f);
    return f;
}

static void check_spec(const arrow_spec *s) {
    sample m = make_sample(s);
    arrow_file f = make_file(s, &m);
    unsigned bits = spec_bits(s);

    for (int is_pipe = 0; is_pipe <= !(s->is_file && s->has_no_schema); is_pipe++) {
        outcome o = read_bytes(f.all.data, f.all.count, is_pipe);

        assert_tokens(&o, m.lengths, ROWS, m.values, m.count);
        assert_int_equal(o.dtype, bits == 8    ? IRON_DTYPE_U8
                                  : bits == 16 ? IRON_DTYPE_U16
                                               : IRON_DTYPE_U32);
        outcome_clear(&o);
    }
    arrow_clear(&f);
}

static void every_type_is_read(void **state) {
    (void)state;
    for (unsigned bits = 8; bits <= 64; bits *= 2)
        for (int k = 0; k < 64; k++) {
            arrow_spec s = {.bits = bits, .shape = k % 4, .is_signed = k >> 2 & 1, .list_size = 3};

            s.has_others = k >> 3 & 1;
            s.has_bitmaps = k >> 4 & 1;
            s.skipped = k >> 5 & 1 ? 5 : 0;
            check_spec(&s);
        }
}

static void every_layout_is_read(void **state) {
    (void)state;
    for (int k = 0; k < 4 * 64; k++) {
        arrow_spec s = {.bits = 16, .shape = k % 4, .list_size = 3, .has_others = k >> 2 & 1};

        s.is_file = k >> 3 & 1;
        s.is_legacy = k >> 4 & 1;
        s.has_no_schema = s.is_file && (k >> 5 & 1);
        s.is_wide = k >> 6 & 1;
        s.index_bits = k >> 7 & 1 ? 8 : 0;
        s.version = k >> 3 & 1 ? 4 : 5;
        check_spec(&s);
    }
}

/* Old files have no mark before their footer. */
static void a_file_without_the_mark_is_read(void **state) {
    arrow_spec s = {.shape = LIST, .is_file = true, .has_no_end = true};
    sample m = make_sample(&s);
    arrow_file f = make_file(&s, &m);
    outcome o = read_bytes(f.all.data, f.all.count, false);

    (void)state;
    assert_tokens(&o, m.lengths, ROWS, m.values, m.count);
    outcome_clear(&o);
    arrow_clear(&f);
}

static void compressed_batches_are_read(void **state) {
    (void)state;
    for (int k = 0; k < 4 * 64; k++) {
        arrow_spec s = {.bits = 8u << (k >> 2 & 3), .shape = k % 4, .list_size = 3};

        s.codec = k >> 4 & 1 ? IRON_CODEC_ZSTD : IRON_CODEC_LZ4;
        s.is_stored = k >> 5 & 1;
        s.has_wrong_length = !s.is_stored && (k >> 6 & 1);
        s.index_bits = k >> 7 & 1 ? 16 : 0;
        s.has_others = s.is_file = k & 1;
        s.has_bitmaps = k >> 1 & 1;
        check_spec(&s);
    }
}

static void every_index_is_read(void **state) {
    (void)state;
    for (int k = 0; k < 64; k++) {
        arrow_spec s = {.bits = 8u << (k >> 2 & 3), .shape = k % 4, .list_size = 3};

        s.index_bits = 8u << (k >> 4 & 3);
        s.is_index_signed = k & 1;
        s.is_file = k >> 1 & 1;
        check_spec(&s);
    }
}

static void dictionaries_grow_and_are_replaced(void **state) {
    arrow_spec s = {.index_bits = 8, .is_index_signed = true};
    const int64_t words[4] = {70000, 70001, 70002, 70003}, others[2] = {9, 8};
    const int64_t first[3] = {1, 0, 1}, second[3] = {3, 2, 0}, third[2] = {0, 1}, past[2] = {0, 2};
    const int64_t want[8] = {70001, 70000, 70001, 70003, 70002, 70000, 9, 8};
    const size_t lengths[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    arrow_file f = arrow_begin(&s), g;

    (void)state;
    arrow_dictionary(&f, words, 2, false);
    arrow_batch(&f, NULL, 3, first);
    arrow_dictionary(&f, words + 2, 2, true);
    arrow_batch(&f, NULL, 3, second);
    arrow_dictionary(&f, others, 2, false);
    arrow_batch(&f, NULL, 2, third);
    for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
        outcome o = read_ended(&f.all, is_pipe);

        assert_tokens(&o, lengths, 8, want, 8);
        outcome_clear(&o);
    }
    arrow_batch(&f, NULL, 2, past);
    arrow_end(&f);
    assert_bad(&f.all, IRON_E_FORMAT, "row 9", "index 2");
    arrow_clear(&f);

    g = arrow_begin(&s); /* an addition to nothing */
    arrow_dictionary(&g, words, 2, true);
    assert_bad(&g.all, IRON_E_FORMAT, "addition", "at byte");
    arrow_clear(&g);
    g = arrow_begin(&s); /* no dictionary at all */
    arrow_batch(&g, NULL, 3, first);
    arrow_end(&g);
    assert_bad(&g.all, IRON_E_FORMAT, "row 0", "0 values");
    arrow_clear(&g);
    s.is_file = true;
    g = arrow_begin(&s);
    arrow_dictionary(&g, words, 2, false);
    arrow_dictionary(&g, others, 2, false);
    arrow_batch(&g, NULL, 3, first);
    arrow_end(&g);
    assert_bad(&g.all, IRON_E_FORMAT, "replaces", "files must not");
    arrow_clear(&g);
}

/* A null in a dictionary matters only if a row has it; its value may be anything. */
static void nulls_in_dictionaries_are_refused_if_used(void **state) {
    const int64_t words[4] = {70000, -5, 70002, 70003}, more[2] = {-6, 9};
    const int64_t good[4] = {3, 0, 2, 3}, second[3] = {5, 0, 3}, bad[3] = {0, 2, 1};
    const int64_t want[7] = {70003, 70000, 70002, 70003, 9, 70000, 70003};
    const size_t lengths[7] = {1, 1, 1, 1, 1, 1, 1};

    (void)state;
    for (unsigned k = 0; k < 12; k++) {
        arrow_spec s = {.index_bits = 8, .is_signed = true, .is_file = k % 2};
        arrow_file f;

        s.codec = k / 2 % 3 == 0   ? IRON_CODEC_NONE
                  : k / 2 % 3 == 1 ? IRON_CODEC_ZSTD
                                   : IRON_CODEC_LZ4;
        f = arrow_begin(&s);
        f.s.null_word = k < 6 ? 2 : 0;
        arrow_dictionary(&f, words, 4, false);
        f.s.null_word = 0;
        arrow_batch(&f, NULL, 4, good);
        f.s.null_word = 1;
        arrow_dictionary(&f, more, 2, true);
        f.s.null_word = 0;
        arrow_batch(&f, NULL, 3, second);
        if (!s.is_file)
            for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
                outcome o = read_ended(&f.all, is_pipe);

                assert_tokens(&o, lengths, 7, want, 7);
                outcome_clear(&o);
            }
        arrow_batch(&f, NULL, 3, bad);
        arrow_end(&f);
        assert_bad(&f.all, IRON_E_FORMAT, "row 9 of column input_ids", k < 6 ? "null" : "has -5");
        arrow_clear(&f);
    }
}

/* A dictionary that replaces one with nulls has none. */
static void nulls_do_not_outlive_their_dictionary(void **state) {
    arrow_spec s = {.index_bits = 8};
    const int64_t words[2] = {7, 8}, indices[2] = {1, 0}, others[2] = {5, 6}, one[1] = {1};
    const int64_t want[3] = {8, 6, 5};
    const size_t lengths[3] = {1, 1, 1};
    arrow_file f = arrow_begin(&s);

    (void)state;
    f.s.null_word = 1;
    arrow_dictionary(&f, words, 2, false);
    f.s.null_word = 0;
    arrow_batch(&f, NULL, 1, one);
    arrow_dictionary(&f, others, 2, false);
    arrow_batch(&f, NULL, 2, indices);
    for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
        outcome o = read_ended(&f.all, is_pipe);

        assert_tokens(&o, lengths, 3, want, 3);
        outcome_clear(&o);
    }
    arrow_clear(&f);
}

/* In a file, dictionaries may come after what uses them. */
static void the_order_of_messages_in_files_is_free(void **state) {
    arrow_spec s = {.index_bits = 8, .is_file = true};
    const int64_t words[4] = {7, 6, 5, 4}, indices[3] = {3, 0, 2}, want[3] = {4, 7, 5};
    const size_t lengths[3] = {1, 1, 1};
    arrow_file f = arrow_begin(&s);
    outcome o;

    (void)state;
    arrow_batch(&f, NULL, 3, indices);
    arrow_dictionary(&f, words, 2, false);
    arrow_dictionary(&f, words + 2, 2, true);
    arrow_end(&f);
    o = read_bytes(f.all.data, f.all.count, false);
    assert_tokens(&o, lengths, 3, want, 3);
    outcome_clear(&o);
    arrow_clear(&f);
}

static void empty_tables_are_read(void **state) {
    const size_t lengths[3] = {0, 0, 0};
    const int64_t values[1] = {0};

    (void)state;
    for (int k = 0; k < 16; k++) {
        arrow_spec s = {.shape = LIST + (k & 1), .is_file = k >> 1 & 1, .has_others = k >> 2 & 1};
        size_t rows = 0;
        arrow_file f;

        s.codec = k >> 3 & 1 ? IRON_CODEC_ZSTD : IRON_CODEC_NONE;
        for (unsigned batches = 0; batches < 4; batches++) {
            f = arrow_begin(&s);
            rows = 0;
            for (unsigned n = 0; n < batches; n++) { /* 0, 1, 3 rows without tokens */
                arrow_batch(&f, lengths, n == 2 ? 3 : n, values);
                rows += n == 2 ? 3 : n;
            }
            arrow_end(&f);
            for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
                outcome o = read_bytes(f.all.data, f.all.count, is_pipe);

                assert_tokens(&o, (const size_t[4]){0, 0, 0, 0}, rows, values, 0);
                outcome_clear(&o);
            }
            arrow_clear(&f);
        }
    }
}

static void nulls_are_refused_with_their_row(void **state) {
    const size_t lengths[4] = {2, 0, 3, 1};
    const int64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    for (int k = 0; k < 32; k++) {
        arrow_spec s = {.shape = k % 4, .list_size = 2, .codec = k >> 2 & 1 ? IRON_CODEC_LZ4 : 0};
        bool is_item = k >> 3 & 1 || s.shape == PLAIN;
        arrow_file f;

        s.skipped = k >> 4 & 1 ? 3 : 0;
        f = arrow_begin(&s);
        arrow_batch(&f, lengths, 4, values);
        f.s.null_row = is_item ? 0 : 3;
        f.s.null_item = is_item ? s.shape == PLAIN ? 3 : 5 : 0; /* the fifth item is in row 2 */
        arrow_batch(&f, lengths, 4, values);
        assert_bad(&f.all, IRON_E_FORMAT, "row 6 of column input_ids", "null");
        arrow_clear(&f);
    }
}

/* Values that are no tokens: the second batch's row 1 is row 5 of the file. */
static void other_ids_are_refused_with_their_row(void **state) {
    static const struct bad_id {
        unsigned bits;
        bool is_signed;
        int64_t value;
        const char *shown;
    } ids[] = {{8, true, -1, "-1"},
               {16, true, -300, "-300"},
               {32, true, INT32_MIN, "-2147483648"},
               {64, true, -5, "-5"},
               {64, true, 1ll << 32, "4294967296"},
               {64, false, -1, "18446744073709551615"}};
    const size_t lengths[4] = {2, 3, 0, 1};

    (void)state;
    for (size_t n = 0; n < COUNT(ids); n++)
        for (int k = 0; k < 16; k++) {
            arrow_spec s = {.shape = k % 4, .bits = ids[n].bits, .is_signed = ids[n].is_signed};
            int64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
            int64_t words[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
            size_t at = s.shape == PLAIN ? 1 : 2;
            arrow_file f;

            s.list_size = 2;
            s.codec = k >> 2 & 1 ? IRON_CODEC_ZSTD : IRON_CODEC_NONE;
            s.index_bits = k >> 3 & 1 ? 8 : 0;
            f = arrow_begin(&s);
            if (s.index_bits)
                words[values[at]] = ids[n].value;
            else
                values[at] = ids[n].value;
            if (s.index_bits)
                arrow_dictionary(&f, words, 9, false);
            arrow_batch(&f, (const size_t[4]){1, 0, 0, 0}, 4, (const int64_t[8]){1, 1, 1, 1, 1});
            arrow_batch(&f, lengths, 4, values);
            arrow_end(&f);
            assert_bad(&f.all, IRON_E_FORMAT, "row 5 of column input_ids", ids[n].shown);
            arrow_clear(&f);
        }
}

/* Offsets. */

static void offsets_are_checked(void **state) {
    const size_t lengths[4] = {1, 2, 3, 2};
    const int64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    for (int k = 0; k < 2; k++) {
        arrow_spec s = {.shape = LIST + k};
        unsigned width = k ? 8 : 4;
        arrow_file f = arrow_begin(&s);
        size_t body;

        arrow_batch(&f, lengths, 4, values);
        arrow_end(&f);
        body = f.metadata[1][1];
        for (size_t n = 0; n < 5; n++) {
            static const int64_t bad[] = {-1, 9, 1000000, INT32_MIN, INT32_MAX};
            uint64_t good = get_number(&f.all, body + n * width, width);

            for (size_t v = 0; v < COUNT(bad); v++) {
                set_number(&f.all, body + n * width, (uint64_t)bad[v], width);
                assert_bad(&f.all, IRON_E_FORMAT, "not valid Arrow", "/fd/");
            }
            set_number(&f.all, body + n * width, good, width);
        }
        set_number(&f.all, body + width, 4, width); /* not in order */
        assert_bad(&f.all, IRON_E_FORMAT, "row 1", "4 to 3");
        arrow_clear(&f);
    }
}

/* Blocks. */

static void large_batches_are_divided(void **state) {
    size_t count = 3 * (size_t)IRON_TABLE_BLOCK_TOKENS + 5, rows = count / 1000;
    int64_t *values = grab(count * sizeof *values);
    size_t *lengths = grab(rows * sizeof *lengths);

    (void)state;
    for (size_t k = 0; k < count; k++)
        values[k] = (int64_t)(k * 2654435761u >> 7 & 127);
    for (size_t k = 0; k < rows; k++)
        lengths[k] = k + 1 < rows ? 1000 : count - 1000 * k;
    for (int k = 0; k < 4; k++) {
        arrow_spec s = {.bits = 8, .shape = LIST, .index_bits = k == 1 ? 8 : 0};
        arrow_file f;
        outcome o;

        s.codec = k == 2 ? IRON_CODEC_LZ4 : IRON_CODEC_NONE;
        s.skipped = k == 3 ? 12345 : 0;
        f = arrow_begin(&s);
        if (s.index_bits)
            arrow_dictionary(&f, values, 1, false);
        if (s.index_bits) /* all the same word */
            memset(values, 0, count * sizeof *values);
        arrow_batch(&f, lengths, rows, values);
        o = read_ended(&f.all, false);
        assert_tokens(&o, lengths, rows, values, count);
        assert_int_equal(o.blocks, k == 2 ? 1 : 4);
        assert_int_equal(o.direct, k == 0 || k == 3 ? 4 : 0);
        outcome_clear(&o);
        arrow_clear(&f);
        if (k == 1)
            for (size_t n = 0; n < count; n++)
                values[n] = (int64_t)(n & 127);
    }
    free(values);
    free(lengths);
}

static void small_batches_share_blocks(void **state) {
    arrow_spec s = {.bits = 16, .index_bits = 0};
    size_t count = 9000;
    int64_t *values = grab(count * sizeof *values);
    size_t *lengths = grab(count * sizeof *lengths);
    bytes repeated = {NULL, 0, 0};
    arrow_file f = arrow_begin(&s);
    size_t first = f.all.count, each;

    (void)state;
    arrow_batch(&f, NULL, 1, values);
    each = f.all.count - first;
    bytes_room(&repeated, first + count * each);
    bytes_add(&repeated, f.all.data, first);
    for (size_t k = 0; k < count; k++) {
        values[k] = (int64_t)(k * 7 & 0xFFFF);
        lengths[k] = 1;
        bytes_add(&repeated, f.all.data + first, each);
        set_number(&repeated, repeated.count - 8, (uint64_t)values[k], 2);
    }
    for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
        outcome o = read_ended(&repeated, is_pipe);

        assert_tokens(&o, lengths, count, values, count);
        assert_true(o.blocks <= 3 && o.direct == 0);
        outcome_clear(&o);
    }
    bytes_clear(&repeated);
    arrow_clear(&f);
    free(values);
    free(lengths);
}

/* Damage. */

static void files_that_are_cut_off_are_refused(void **state) {
    (void)state;
    for (int k = 0; k < 16; k += is_full_test() ? 1 : 3) {
        arrow_spec s = {.shape = k & 1 ? FIXED : LIST, .list_size = 2, .bits = 16};
        sample m;
        arrow_file f;

        s.is_file = k >> 1 & 1;
        s.codec = k >> 2 & 1 ? IRON_CODEC_ZSTD : IRON_CODEC_NONE;
        s.index_bits = k & 1 ? 8 : 0;
        s.is_legacy = k >> 3 & 1;
        m = make_sample(&s);
        f = make_file(&s, &m);
        for (size_t cut = 0; cut < f.all.count; cut++) {
            outcome o = read_bytes(f.all.data, cut, cut & 1);

            assert_int_equal(o.status, IRON_E_FORMAT);
            outcome_clear(&o);
        }
        arrow_clear(&f);
    }
}

static void check_flips(const arrow_spec *s) {
    sample m = make_sample(s);
    arrow_file f = make_file(s, &m);

    file_set(f.all.data, f.all.count);
    for (size_t part = 0; part < f.metadata_count; part++)
        for (size_t at = f.metadata[part][0] - 8; at < f.metadata[part][1]; at++)
            for (unsigned bit = 0; bit < 8; bit++) {
                unsigned char byte = (unsigned char)(f.all.data[at] ^ 1u << bit);
                outcome o;

                assert_int_equal(pwrite(file_fd, &byte, 1, (off_t)at), 1);
                o = read_path(file_path, false, NULL);
                if (o.status == IRON_OK && (o.tokens != m.count || o.rows != ROWS))
                    fail_msg("part %zu, byte %zu, bit %u: %zu rows", part, at - f.metadata[part][0],
                             bit, (size_t)o.rows);
                if (o.status == IRON_OK)
                    assert_tokens(&o, m.lengths, ROWS, m.values, m.count);
                outcome_clear(&o);
                assert_int_equal(pwrite(file_fd, &f.all.data[at], 1, (off_t)at), 1);
            }
    arrow_clear(&f);
}

static void flipped_bits_of_metadata_do_no_harm(void **state) {
    (void)state;
    for (int k = 0; k < 8; k += is_full_test() ? 1 : 3) { /* 0, 3, 6: a stream and two more */
        arrow_spec s = {.shape = k % 4, .list_size = 2, .bits = 32, .is_signed = true};

        s.is_file = k & 1;
        s.index_bits = k >> 2 & 1 ? 8 : 0;
        s.codec = k >> 1 & 1 ? IRON_CODEC_ZSTD : IRON_CODEC_NONE;
        s.has_others = k == 3;
        check_flips(&s);
    }
}

/* Any number in the metadata can be any claim. */
static void huge_numbers_are_refused(void **state) {
    static const uint64_t claims[] = {INT32_MAX,     UINT32_MAX,        UINT32_MAX - 7,
                                      INT64_MAX,     (uint64_t)1 << 63, UINT64_MAX,
                                      INT64_MAX - 7, (uint64_t)1 << 61, (uint64_t)1 << 40};

    (void)state;
    for (int k = 0; k < 8; k += is_full_test() ? 1 : 5) {
        arrow_spec s = {.shape = k % 4, .list_size = 2, .is_file = k & 1};
        sample m;
        arrow_file f;

        s.codec = k >> 2 & 1 ? IRON_CODEC_LZ4 : IRON_CODEC_NONE;
        m = make_sample(&s);
        f = make_file(&s, &m);
        for (size_t part = 0; part < f.metadata_count; part++)
            for (size_t at = f.metadata[part][0] - 8; at + 8 <= f.metadata[part][1]; at += 4)
                for (size_t n = 0; n < COUNT(claims); n++) {
                    unsigned width = claims[n] > UINT32_MAX ? 8 : 4;
                    uint64_t before = get_number(&f.all, at, width);
                    outcome o;

                    set_number(&f.all, at, claims[n], width);
                    o = read_bytes(f.all.data, f.all.count, n & 1);
                    if (o.status == IRON_OK)
                        assert_tokens(&o, m.lengths, ROWS, m.values, m.count);
                    outcome_clear(&o);
                    set_number(&f.all, at, before, width);
                }
        arrow_clear(&f);
    }
}

static void other_damage_is_refused(void **state) {
    arrow_spec s = {.shape = LIST, .bits = 16};
    sample m = make_sample(&s);
    arrow_file f = make_file(&s, &m), g = make_file(&s, &m);
    bytes twice = {NULL, 0, 0};

    (void)state;
    bytes_add(&twice, f.all.data, f.all.count);
    add_number(&twice, 0, 1);
    assert_bad(&twice, IRON_E_FORMAT, "appended", "/fd/");
    bytes_add(&twice, f.all.data, f.all.count);
    assert_bad(&twice, IRON_E_FORMAT, "appended", "/fd/");
    add_schema(&g); /* after the end */
    assert_bad(&g.all, IRON_E_FORMAT, "appended", "/fd/");
    arrow_clear(&g);
    g = arrow_begin(&s);
    add_schema(&g);
    assert_bad(&g.all, IRON_E_FORMAT, "second schema", "at byte");
    arrow_clear(&g);
    s.has_no_schema = true;
    g = make_file(&s, &m);
    assert_bad(&g.all, IRON_E_FORMAT, "not a schema", "at byte 0");
    arrow_clear(&g);
    s = (arrow_spec){.endianness = 1};
    g = arrow_begin(&s);
    assert_bad(&g.all, IRON_E_UNSUPPORTED, "big-endian", "/fd/");
    arrow_clear(&g);
    for (unsigned version = 1; version <= 6; version++) {
        s = (arrow_spec){.version = version};
        g = arrow_begin(&s);
        if (version < 4 || version > 5)
            assert_bad(&g.all, IRON_E_UNSUPPORTED, "version", "/fd/");
        arrow_clear(&g);
    }
    /* a footer with the same batches in another order */
    s = (arrow_spec){.shape = LIST, .bits = 16, .is_file = true};
    g = make_file(&s, &m);
    assert_true(g.blocks[1].count >= 48);
    for (size_t k = 0; k < 24; k++) {
        unsigned char first = g.blocks[1].data[k];

        g.blocks[1].data[k] = g.blocks[1].data[k + 24];
        g.blocks[1].data[k + 24] = first;
    }
    g.all.count = g.metadata[g.metadata_count - 1][0] - 8;
    arrow_end(&g);
    assert_bad(&g.all, IRON_E_UNSUPPORTED, "lists its record batches in another order", "again");
    arrow_clear(&g);
    /* the footer of another file */
    s = (arrow_spec){.shape = LIST, .bits = 16, .is_file = true};
    g = make_file(&s, &m);
    bytes_clear(&g.blocks[1]);
    g.all.count = g.metadata[g.metadata_count - 1][0] - 8;
    arrow_end(&g);
    assert_bad(&g.all, IRON_E_FORMAT, "footer", "list");
    arrow_clear(&g);
    bytes_clear(&twice);
    arrow_clear(&f);
}

/* Columns. */

static void columns_are_chosen(void **state) {
    arrow_spec s = {.shape = FIXED, .list_size = 2048, .bits = 16, .has_others = true, .name = "x"};
    arrow_file f = arrow_begin(&s);

    (void)state;
    arrow_end(&f);
    file_set(f.all.data, f.all.count);
    for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
        static const struct wanted {
            const char *column;
            iron_status status;
            const char *word;
        } tries[] = {{NULL, IRON_OK, ""},
                     {"x", IRON_OK, ""},
                     {"text", IRON_E_FORMAT, "string"},
                     {"flag", IRON_E_FORMAT, "bool"},
                     {"y", IRON_E_ARG, "x (fixed_size_list<uint16>[2048])"}};

        for (size_t k = 0; k < COUNT(tries); k++) {
            outcome o = read_path(file_path, is_pipe, tries[k].column);

            assert_int_equal(o.status, tries[k].status);
            if (o.status != IRON_OK)
                assert_says(&o.err, tries[k].word);
            outcome_clear(&o);
        }
    }
    arrow_clear(&f);
}

static void types_are_named(void **state) {
    static const struct named {
        arrow_spec s;
        const char *name;
    } specs[] = {
        {{.bits = 64, .is_signed = true}, "(int64)"},
        {{.bits = 8}, "(uint8)"},
        {{.shape = LIST, .bits = 64, .is_signed = true}, "(list<int64>)"},
        {{.shape = LARGE_LIST, .bits = 16}, "(large_list<uint16>)"},
        {{.index_bits = 8, .is_index_signed = true, .is_signed = true},
         "(dictionary<values=int32, indices=int8>)"},
        {{.shape = LIST, .index_bits = 8, .is_index_signed = true, .is_signed = true},
         "(list<dictionary<values=int32, indices=int8>>)"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++) {
        arrow_file f = arrow_begin(&specs[k].s);
        outcome o;

        file_set(f.all.data, f.all.count);
        o = read_path(file_path, false, "none");
        assert_int_equal(o.status, IRON_E_ARG);
        assert_says(&o.err, specs[k].name);
        arrow_clear(&f);
    }
}

static void other_types_are_refused_by_name(void **state) {
    static const struct named {
        arrow_spec s;
        const char *name;
    } specs[] = {
        {{.shape = LIST_VIEW}, "input_ids (list_view<uint32>)"},
        {{.shape = LARGE_LIST_VIEW, .bits = 16}, "input_ids (large_list_view<uint16>)"},
        {{.shape = MAP}, "input_ids (map)"},
        {{.shape = STRUCT}, "input_ids (struct)"},
        {{.shape = RUN_END}, "input_ids (run_end_encoded)"},
        {{.shape = FIXED, .list_size = 0}, "input_ids (fixed_size_list<uint32>[0])"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++) {
        arrow_file f = arrow_begin(&specs[k].s);

        assert_bad(&f.all, IRON_E_FORMAT, "no column of integers", specs[k].name);
        arrow_clear(&f);
    }
}

/* A type that does not exist yet. */
static void newer_types_are_refused(void **state) {
    arrow_spec s = {.has_others = true};
    arrow_file f = arrow_begin(&s);
    bool is_found = false;

    (void)state;
    for (size_t at = f.metadata[0][0]; at < f.metadata[0][1] && !is_found; at++)
        if (f.all.data[at] == 24 && f.all.data[at - 1] == 0) { /* the views' */
            f.all.data[at] = 77;
            outcome o = read_bytes(f.all.data, f.all.count, false);

            is_found = o.status == IRON_E_UNSUPPORTED && strstr(o.err.text, "type number 77");
            f.all.data[at] = 24;
            outcome_clear(&o);
        }
    assert_true(is_found);
    arrow_clear(&f);
}

/* Recognition. */

static bool is_recognised(const void *data, size_t count) {
    iron__input in = {.path = "t", .bytes = count, .fd = -1};
    iron__candidate c = {.file = &in, .name = "t"};

    c.head_count = count < sizeof c.head ? count : sizeof c.head;
    memcpy(c.head, data, c.head_count);
    return iron__format_arrow.recognise(&c);
}

static void arrow_is_recognised_and_tokens_are_not(void **state) {
    rng r = {99};

    (void)state;
    for (int k = 0; k < 8; k++) {
        arrow_spec s = {.shape = k % 4, .list_size = 3, .is_file = k >> 2 & 1, .has_others = k & 1};

        for (int is_legacy = 0; is_legacy < 2; is_legacy++) {
            arrow_file f;

            s.is_legacy = is_legacy;
            f = arrow_begin(&s);
            assert_true(is_recognised(f.all.data, f.all.count));
            assert_false(is_recognised(f.all.data, 7));
            arrow_clear(&f);
        }
    }
    for (int k = 0; k < 200000; k++) { /* small ids, also after the mark and a plausible length */
        unsigned char tokens[64];
        uint32_t words[16];
        unsigned limit = 1u << (k % 16);

        for (size_t n = 0; n < 16; n++)
            words[n] = rng_u32(&r) % (limit + 1);
        if (k & 64)
            words[0] = UINT32_MAX;
        for (size_t n = 0; n < 32; n++)
            ((uint16_t *)(void *)tokens)[n] = (uint16_t)rng_below(&r, limit + 1u);
        assert_false(is_recognised(words, sizeof words));
        assert_false(is_recognised(tokens, sizeof tokens));
    }
}

static int set_up(void **state) {
    (void)state;
    file_fd = memfd_create("arrow", MFD_CLOEXEC);
    snprintf(file_path, sizeof file_path, "/proc/self/fd/%d", file_fd);
    return file_fd < 0;
}

static int tear_down(void **state) {
    (void)state;
    return close(file_fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(every_layout_is_read),
        cmocka_unit_test(a_file_without_the_mark_is_read),
        cmocka_unit_test(compressed_batches_are_read),
        cmocka_unit_test(every_index_is_read),
        cmocka_unit_test(dictionaries_grow_and_are_replaced),
        cmocka_unit_test(nulls_in_dictionaries_are_refused_if_used),
        cmocka_unit_test(nulls_do_not_outlive_their_dictionary),
        cmocka_unit_test(the_order_of_messages_in_files_is_free),
        cmocka_unit_test(empty_tables_are_read),
        cmocka_unit_test(nulls_are_refused_with_their_row),
        cmocka_unit_test(other_ids_are_refused_with_their_row),
        cmocka_unit_test(offsets_are_checked),
        cmocka_unit_test(large_batches_are_divided),
        cmocka_unit_test(small_batches_share_blocks),
        cmocka_unit_test(files_that_are_cut_off_are_refused),
        cmocka_unit_test(flipped_bits_of_metadata_do_no_harm),
        cmocka_unit_test(huge_numbers_are_refused),
        cmocka_unit_test(other_damage_is_refused),
        cmocka_unit_test(columns_are_chosen),
        cmocka_unit_test(types_are_named),
        cmocka_unit_test(other_types_are_refused_by_name),
        cmocka_unit_test(newer_types_are_refused),
        cmocka_unit_test(arrow_is_recognised_and_tokens_are_not),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
