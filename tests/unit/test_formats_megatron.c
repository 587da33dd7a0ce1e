/* SPDX-License-Identifier: MIT */
/*
 * test_formats_megatron.c: P.bin with P.idx. A good pair is read under each of its names; an index
 * with any number changed, cut or extended is refused, with the byte where it lies.
 */
#include "format_support.h"
#include "place.h"

#define SEQUENCES 10u
#define TOKENS    45u
#define LENGTHS   34u
#define OFFSETS   (LENGTHS + 4 * SEQUENCES)
#define DOCUMENTS (OFFSETS + 8 * SEQUENCES)

static const size_t lengths[SEQUENCES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static file_name bin, idx;

static int set_up(void **state) {
    blob b = raw_blob(TOKENS, 2);

    (void)state;
    folder_make(&place);
    bin = name_in(&place, "P.bin");
    idx = name_in(&place, "P.idx");
    save(&place, "P.bin", &b);
    return 0;
}

static blob good_index(void) { return megatron_index(8, lengths, SEQUENCES, 2); }

static void refuse(const blob *index, const char *word) {
    save(&place, "P.idx", index);
    assert_open_fails(bin.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, word);
    assert_open_fails(bin.path, "megatron", IRON_DTYPE_NONE, IRON_E_FORMAT, word);
}

/* One number of a good index changed. */
static void refuse_poke(size_t at, uint64_t value, unsigned bytes, const char *word) {
    blob index = good_index();

    poke(&index, at, value, bytes);
    refuse(&index, word);
}

static void good_pairs(void **state) {
    static const struct {
        unsigned code, width;
        iron_dtype dtype;
    } kinds[] = {{1, 1, IRON_DTYPE_U8},
                 {4, 4, IRON_DTYPE_I32},
                 {5, 8, IRON_DTYPE_I64},
                 {8, 2, IRON_DTYPE_U16}};

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        blob tokens = raw_blob(TOKENS, kinds[k].width);
        blob index = megatron_index(kinds[k].code, lengths, SEQUENCES, kinds[k].width);

        save(&place, "P.bin", &tokens);
        for (int has_modes = 0; has_modes < 2; has_modes++) {
            save(&place, "P.idx", &index);
            assert_reads(bin.path, NULL, IRON_DTYPE_NONE, "megatron", kinds[k].dtype, TOKENS);
            assert_reads(bin.path, "megatron", kinds[k].dtype, "megatron", kinds[k].dtype, TOKENS);
            index.count += SEQUENCES; /* a mode for each */
        }
    }
    assert_open_fails(bin.path, NULL, IRON_DTYPE_U32, IRON_E_FORMAT,
                      "megatron file of u16 tokens, but --dtype says u32");
    assert_reads(bin.path, "raw", IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, TOKENS);
}

static void no_sequences(void **state) {
    blob index = megatron_index(8, NULL, 0, 2), none = {.count = 0};

    (void)state;
    save(&place, "P.bin", &none);
    save(&place, "P.idx", &index);
    assert_reads(bin.path, NULL, IRON_DTYPE_NONE, "megatron", IRON_DTYPE_U16, 0);
    none.count = 2;
    save(&place, "P.bin", &none);
    refuse(&index, "its last sequence ends at byte 0, expected 2, the size of");
}

/* Longer than the pieces in which an index is read. */
static void a_long_index(void **state) {
    enum { MANY = 10000 };
    const size_t at = 34 + 12 * (size_t)MANY + 8 * 7001;
    unsigned char *index = grab(34 + 20 * (size_t)MANY + 8);
    size_t used = 0;
    blob head = {.count = 0};
    uint16_t *tokens = grab(MANY * sizeof *tokens);

    (void)state;
    put(&head, "MMIDIDX\0", 9);
    put_number(&head, 1, 8);
    put_number(&head, 8, 1);
    put_number(&head, MANY, 8);
    put_number(&head, MANY + 1, 8);
    memcpy(index, head.data, head.count);
    used = head.count;
    for (uint32_t k = 0, one = 1; k < MANY; k++, used += 4) {
        memcpy(index + used, &one, 4);
        tokens[k] = (uint16_t)(k + 1);
    }
    for (uint64_t k = 0, offset = 0; k < MANY; k++, offset += 2, used += 8)
        memcpy(index + used, &offset, 8);
    for (uint64_t k = 0; k <= MANY; k++, used += 8)
        memcpy(index + used, &k, 8);
    file_write(bin.path, tokens, MANY * sizeof *tokens);
    file_write(idx.path, index, used);
    assert_reads(bin.path, NULL, IRON_DTYPE_NONE, "megatron", IRON_DTYPE_U16, MANY);
    index[34 + 4 * MANY + 8 * 9000] ^= 2; /* an offset in the last piece */
    file_write(idx.path, index, used);
    assert_open_fails(bin.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, "sequence 9000 begins");
    index[34 + 4 * MANY + 8 * 9000] ^= 2;
    index[at] ^= 0x80; /* a document in the second piece */
    file_write(idx.path, index, used);
    assert_open_fails(bin.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, "document entry 700");
    free(tokens);
    free(index);
}

static void headers_that_lie(void **state) {
    static const struct {
        unsigned code;
        const char *word;
    } types[] = {{0, "0 (nothing)"}, {2, "2 (i8)"},  {3, "3 (i16)"},
                 {6, "6 (f64)"},     {7, "7 (f32)"}, {9, "9 (unknown)"}};

    (void)state;
    refuse_poke(9, 2, 8, "P.idx at byte 9: version 2, expected 1");
    refuse_poke(9, 0, 8, "P.idx at byte 9: version 0, expected 1");
    for (size_t k = 0; k < COUNT(types); k++) {
        refuse_poke(17, types[k].code, 1, types[k].word);
        refuse_poke(17, types[k].code, 1, "P.idx at byte 17");
    }
    refuse_poke(26, 0, 8, "P.idx at byte 26: 0 document entries");
}

static void sizes_that_lie(void **state) {
    static const uint64_t wrong[] = {
        0, 9, 11, UINT32_MAX, UINT64_MAX, UINT64_MAX / 12, UINT64_MAX / 8 + 2, UINT64_C(1) << 61};
    blob index = good_index();
    size_t whole = index.count;

    (void)state;
    for (size_t k = 0; k < COUNT(wrong); k++) {
        refuse_poke(18, wrong[k], 8, "P.idx: 194 bytes, expected 34 + 12 S + 8 D (+ S)");
        if (wrong[k])
            refuse_poke(26, wrong[k], 8, "P.idx: 194 bytes, expected 34 + 12 S + 8 D (+ S)");
    }
    for (index.count = whole + 1; index.count < whole + 2 * SEQUENCES; index.count++)
        if (index.count != whole + SEQUENCES)
            refuse(&index, "expected 34 + 12 S + 8 D (+ S)");
    for (index.count = whole - 1; index.count >= 9; index.count--)
        refuse(&index, "P.idx");
    save(&place, "P.idx", &index); /* 8 bytes: no magic any more */
    assert_open_fails(bin.path, "megatron", IRON_DTYPE_NONE, IRON_E_FORMAT, "8 bytes, expected");
    assert_reads(bin.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, TOKENS);
}

static void sequences_that_lie(void **state) {
    blob longer = raw_blob(TOKENS + 1, 2), shorter = raw_blob(TOKENS - 1, 2), index = good_index();

    (void)state;
    refuse_poke(LENGTHS + 12, UINT32_MAX, 4,
                "P.idx at byte 46: sequence 3 has -1 tokens, expected 0 or more");
    refuse_poke(LENGTHS + 12, 4, 4, "sequence 4 begins at byte 12, expected 14");
    refuse_poke(LENGTHS + 36, INT32_MAX, 4, "sequence 9 ends at byte 4294967366, expected at most");
    refuse_poke(LENGTHS + 36, 8, 4, "its last sequence ends at byte 88, expected 90");
    refuse_poke(OFFSETS, 2, 8, "P.idx at byte 74: sequence 0 begins at byte 2, expected 0");
    for (size_t k = 0; k < SEQUENCES; k++)
        refuse_poke(OFFSETS + 8 * k, UINT64_MAX - k, 8, "begins at byte -");
    save(&place, "P.bin", &longer);
    refuse(&index, "its last sequence ends at byte 90, expected 92, the size of");
    save(&place, "P.bin", &shorter);
    refuse(&index, "expected at most 88, the size of");
    longer.count--; /* inside a token */
    save(&place, "P.bin", &longer);
    refuse(&index, "its last sequence ends at byte 90, expected 91");
}

static void documents_that_lie(void **state) {
    (void)state;
    refuse_poke(DOCUMENTS, 1, 8, "the first document begins at sequence 1, expected 0");
    refuse_poke(DOCUMENTS, UINT64_MAX, 8, "the first document begins at sequence -1, expected 0");
    refuse_poke(DOCUMENTS + 8, 7, 8, "document entry 2 is sequence 6, expected 7 to 10");
    refuse_poke(DOCUMENTS + 8, 11, 8, "document entry 1 is sequence 11, expected 0 to 10");
    refuse_poke(DOCUMENTS + 8, UINT64_MAX, 8, "document entry 1 is sequence -1, expected");
    refuse_poke(DOCUMENTS + 32, 9, 8, "the last document ends with sequence 9, expected 10");
}

/* With the format named, the prefix and the index stand for the pair. */
static void names(void **state) {
    file_name prefix = name_in(&place, "P"), gone = name_in(&place, "Q");
    const char *path = idx.path;
    blob index = good_index();
    iron_source *s = NULL;
    iron_error err;

    (void)state;
    save(&place, "P.idx", &index);
    assert_reads(prefix.path, "megatron", IRON_DTYPE_NONE, "megatron", IRON_DTYPE_U16, TOKENS);
    assert_reads(idx.path, "megatron", IRON_DTYPE_NONE, "megatron", IRON_DTYPE_U16, TOKENS);
    assert_open_fails(prefix.path, NULL, IRON_DTYPE_NONE, IRON_E_IO, "P");
    assert_open_fails(gone.path, "megatron", IRON_DTYPE_NONE, IRON_E_IO, "Q");
    assert_open_fails(idx.path, NULL, IRON_DTYPE_U16, IRON_E_ARG, "index of");
    assert_open_fails(idx.path, NULL, IRON_DTYPE_U16, IRON_E_ARG, "P.bin");
    assert_int_equal(rename(bin.path, gone.path), 0);
    assert_open_fails(idx.path, NULL, IRON_DTYPE_U16, IRON_E_FORMAT, "a Megatron index");
    assert_open_fails(idx.path, "megatron", IRON_DTYPE_U16, IRON_E_IO, "P.bin");
    assert_open_fails(gone.path, "megatron", IRON_DTYPE_U16, IRON_E_FORMAT, "no index beside it");
    assert_ok(try_open(IRON_DTYPE_U8, "raw", &path, 1, &s, &err), &err); /* bytes are bytes */
    iron_source_close(s);
}

/* An index that waits for a writer keeps nobody waiting; one of another kind is no sign. */
static void strange_indexes(void **state) {
    (void)state;
    assert_int_equal(mkfifo(idx.path, 0600), 0);
    assert_reads(bin.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, TOKENS);
    assert_open_fails(bin.path, "megatron", IRON_DTYPE_U16, IRON_E_IO, "not a regular file");
    assert_int_equal(unlink(idx.path), 0);
    save_text(&place, "P.idx", "TNTIDX\\0\\0 of another time");
    assert_reads(bin.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, TOKENS);
    assert_open_fails(bin.path, "megatron", IRON_DTYPE_U16, IRON_E_FORMAT, "P.idx");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(good_pairs),         CASE(no_sequences),   CASE(a_long_index),
        CASE(headers_that_lie),   CASE(sizes_that_lie), CASE(sequences_that_lie),
        CASE(documents_that_lie), CASE(names),          CASE(strange_indexes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
