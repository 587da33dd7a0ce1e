/* SPDX-License-Identifier: MIT */
/*
 * test_formats.c: the formats with a header (llmc, litpkds, npy), P.bin with P.idx, and X.ds with
 * X.ds.index and X.ds.metadata. Good files are read, whether the format is recognised or given;
 * every wrong number in a header or index, and every cut or extended file, is an error that names
 * the place, what was found and what was expected.
 */
#include "format_support.h"
#include "place.h"

static file_name name;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    name = name_in(&place, "file");
    return 0;
}

/* Opening fails, whether the format is recognised or given, with and without an iron_error. */
static void refuse(const blob *b, const char *format, const char *word) {
    save(&place, "file", b);
    assert_open_fails(name.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, word);
    assert_open_fails(name.path, format, IRON_DTYPE_NONE, IRON_E_FORMAT, word);
}

static void accept(const blob *b, const char *format, iron_dtype dtype, size_t tokens) {
    save(&place, "file", b);
    assert_reads(name.path, NULL, IRON_DTYPE_NONE, format, dtype, tokens);
    assert_reads(name.path, "auto", dtype, format, dtype, tokens);
    assert_reads(name.path, format, IRON_DTYPE_NONE, format, dtype, tokens);
}

/* Every truncation of a valid file is an error, except those too short to be recognised. */
static void refuse_cuts(blob b, const char *format, size_t shown) {
    for (b.count--; b.count >= shown; b.count--) {
        save(&place, "file", &b);
        assert_open_fails(name.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, "file");
        assert_open_fails(name.path, format, IRON_DTYPE_NONE, IRON_E_FORMAT, "file");
    }
    save(&place, "file", &b);
    assert_open_fails(name.path, format, IRON_DTYPE_NONE, IRON_E_FORMAT, "ended at byte");
    assert_open_fails(name.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG, "--dtype");
}

static void llmc(void **state) {
    blob b;

    (void)state;
    for (size_t tokens = 0; tokens < 30; tokens++) {
        b = llmc_blob(20240520, 1, tokens, 2);
        accept(&b, "llmc", IRON_DTYPE_U16, tokens);
        b = llmc_blob(20240801, 7, tokens, 4);
        accept(&b, "llmc", IRON_DTYPE_U32, tokens);
    }
    assert_open_fails(name.path, NULL, IRON_DTYPE_U16, IRON_E_FORMAT,
                      "of format llmc, with u32 tokens, but --dtype says u16");
    refuse_cuts(llmc_blob(20240520, 1, 3, 2), "llmc", 4);
    put_number(&b, 0, 4);
    refuse(&b, "llmc", "says 29 tokens of 4 bytes, but from byte 1024 on there are 120 bytes");
}

static void llmc_with_wrong_headers(void **state) {
    static const uint32_t wrong[][2] = {{20240520, 0}, {20240520, 2}, {20240520, 7},
                                        {20240801, 1}, {20240801, 8}, {20240520, UINT32_MAX}};
    const char *path = name.path;
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(wrong); k++) {
        char word[60];

        b = llmc_blob(wrong[k][0], wrong[k][1], 5, 2);
        snprintf(word, sizeof word, "at byte 4: llm.c version %d, expected %d", (int)wrong[k][1],
                 wrong[k][0] == 20240520 ? 1 : 7);
        refuse(&b, "llmc", word);
    }
    b = llmc_blob(20240520, 1, 5, 2);
    poke(&b, 8, 6, 4);
    refuse(&b, "llmc", "its header says 6 tokens");
    poke(&b, 8, 4, 4);
    refuse(&b, "llmc", "its header says 4 tokens");
    poke(&b, 8, UINT32_MAX, 4);
    refuse(&b, "llmc", "at byte 8: -1 tokens");
    poke(&b, 8, INT32_MAX, 4);
    refuse(&b, "llmc", "its header says 2147483647 tokens");
    poke(&b, 8, 5, 4);
    poke(&b, 0, 20240521, 4);
    save(&place, "file", &b);
    assert_open_fails(name.path, "llmc", IRON_DTYPE_NONE, IRON_E_FORMAT,
                      "at byte 0: 20240521, expected llm.c's magic 20240520 or 20240801");
    iron_source_close(open_all(IRON_DTYPE_U8, &path, 1)); /* without the magic: raw tokens */
}

static void litpkds(void **state) {
    static const struct {
        unsigned code, width;
        iron_dtype dtype;
    } kinds[] = {{1, 1, IRON_DTYPE_U8},
                 {4, 4, IRON_DTYPE_I32},
                 {5, 8, IRON_DTYPE_I64},
                 {8, 2, IRON_DTYPE_U16}};
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        b = litpkds_blob(kinds[k].code, 21, kinds[k].width);
        accept(&b, "litpkds", kinds[k].dtype, 21);
    }
    poke(&b, 16, 4096, 8); /* as the writer intended */
    accept(&b, "litpkds", IRON_DTYPE_U16, 21);
    assert_open_fails(name.path, NULL, IRON_DTYPE_I64, IRON_E_FORMAT,
                      "of format litpkds, with u16 tokens, but --dtype says i64");
    put_number(&b, 0, 1);
    refuse(&b, "litpkds", "43 bytes after its header, not a whole number of u16 tokens");
}

static void litpkds_with_wrong_headers(void **state) {
    static const struct {
        unsigned code;
        const char *word;
    } types[] = {{0, "0 (nothing)"}, {2, "2 (i8)"}, {3, "3 (i16)"},        {6, "6 (f32)"},
                 {7, "7 (f64)"},     {9, "9 (unk"}, {255, "255 (unknown)"}};
    blob b = litpkds_blob(8, 5, 2), short_one;

    (void)state;
    for (size_t k = 0; k < COUNT(types); k++) {
        poke(&b, 15, types[k].code, 1);
        refuse(&b, "litpkds", types[k].word);
        refuse(&b, "litpkds", "at byte 15");
    }
    poke(&b, 15, 8, 1);
    poke(&b, 7, 2, 8);
    refuse(&b, "litpkds", "at byte 7: LITPKDS version 2, expected 1");
    poke(&b, 7, UINT64_C(1) << 40 | 1, 8);
    refuse(&b, "litpkds", "version 1099511627777");
    poke(&b, 7, 1, 8);
    poke(&b, 16, 0, 8);
    refuse(&b, "litpkds", "its header says 0 tokens of 2 bytes, but");
    poke(&b, 16, 5, 8);
    poke(&b, 6, 'X', 1);
    save(&place, "file", &b);
    assert_open_fails(name.path, "litpkds", IRON_DTYPE_NONE, IRON_E_FORMAT,
                      "at byte 0: 4c 49 54 50 ..., expected the magic LITPKDS");
    short_one = litpkds_blob(8, 0, 2);
    refuse_cuts(short_one, "litpkds", 7);
}

static void npy(void **state) {
    static const struct {
        const char *descr;
        unsigned width;
        iron_dtype dtype;
    } kinds[] = {{"|u1", 1, IRON_DTYPE_U8},
                 {"<u2", 2, IRON_DTYPE_U16},
                 {"<u4", 4, IRON_DTYPE_U32},
                 {"<i4", 4, IRON_DTYPE_I32},
                 {"<i8", 8, IRON_DTYPE_I64}};
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        b = npy_of(kinds[k].descr, 33, kinds[k].width);
        accept(&b, "npy", kinds[k].dtype, 33);
        b = npy_of(kinds[k].descr, 0, kinds[k].width);
        accept(&b, "npy", kinds[k].dtype, 0);
    }
    for (unsigned version = 1; version <= 3; version++) {
        b = npy_blob(version, "{'shape': (3, 4), 'fortran_order': False, 'descr': '<u2'}", 12, 2);
        accept(&b, "npy", IRON_DTYPE_U16, 12);
    }
    b = npy_blob(1, "{'shape': (3, 2, 1, 2), 'fortran_order': False, 'descr': '<u2'}", 12, 2);
    accept(&b, "npy", IRON_DTYPE_U16, 12);
    b = npy_blob(1, "{'shape': (), 'fortran_order': True, 'descr': '<u2'}", 1, 2);
    accept(&b, "npy", IRON_DTYPE_U16, 1);
    /* one dimension has one order */
    b = npy_blob(1, "{'shape': (1, 12, 1), 'fortran_order': True, 'descr': '<u2'}", 12, 2);
    accept(&b, "npy", IRON_DTYPE_U16, 12);
    b = npy_of("<u2", 3, 2);
    refuse_cuts(b, "npy", 6);
    put_number(&b, 0, 2);
    refuse(&b, "npy", "says 3 tokens");
    refuse(&b, "npy", "was something appended?");
    b.count -= 4;
    refuse(&b, "npy", "is it cut off?");
    assert_open_fails(name.path, NULL, IRON_DTYPE_U32, IRON_E_FORMAT, "says u32");
}

static void npy_with_wrong_headers(void **state) {
    static const struct {
        const char *header, *word;
    } invalid[] = {
        {"{'descr': '|u2', 'fortran_order': False, 'shape': (4,)}", "'|u2'"},
        {"{'descr': '<u8', 'fortran_order': False, 'shape': (4,)}", "'<u8'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", "'<f4'"},
        {"{'descr': '|i1', 'fortran_order': False, 'shape': (4,)}", "'|i1'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (4,)}", "'<i2'"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", "'|b1'"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': ()}", "says 1 tokens"},
        {"{'descr': '<u2', 'fortran_order': True, 'shape': (3, 2)}", "says 6 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2, 3)}", "says 6 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", "says 3 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (5,)}", "says 5 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3)}", "says 6 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775812,)}", "tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (18446744073709551615,)}", "2^64"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "2^64"},
        {"{'descr': '<u2', 'fortran_order': False}", "NumPy header"},
        {"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (4,)}", "NumPy header"},
        {"", "NumPy header"},
    };
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(invalid); k++) {
        b = npy_blob(1, invalid[k].header, 4, 2);
        refuse(&b, "npy", invalid[k].word);
    }
    b = npy_of("<u2", 4, 2);
    poke(&b, 6, 4, 1);
    refuse(&b, "npy", "at byte 6: NumPy format version 4.0");
    poke(&b, 6, 2, 1); /* the header's length continues in the dict */
    refuse(&b, "npy", "at byte 8: NumPy header of");
    poke(&b, 6, 1, 1);
    poke(&b, 8, 60000, 2);
    refuse(&b, "npy", "inside its header");
    poke(&b, 0, 'x', 1);
    save(&place, "file", &b);
    assert_open_fails(name.path, "npy", IRON_DTYPE_NONE, IRON_E_FORMAT, "expected NumPy's magic");
}

/* Big-endian tokens 1, 2, 3, ..., and the same in Fortran order, of each width. */
static void npy_in_other_orders(void **state) {
    static const char *const kinds[] = {"u2", "u4", "i4", "i8"};
    static const iron_dtype dtypes[] = {IRON_DTYPE_U16, IRON_DTYPE_U32, IRON_DTYPE_I32,
                                        IRON_DTYPE_I64};

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        unsigned width = (unsigned)iron_dtype_bytes(dtypes[k]);
        char header[120];
        blob b;

        snprintf(header, sizeof header, "{'descr': '>%s', 'fortran_order': False, 'shape': (3, 8)}",
                 kinds[k]);
        b = npy_blob(1, header, 0, width);
        for (uint64_t token = 1; token <= 24; token++)
            put_number(&b, token << (8 * (width - 1)), width);
        accept(&b, "npy", dtypes[k], 24);
        snprintf(header, sizeof header,
                 "{'descr': '<%s', 'fortran_order': True, 'shape': (2, 3, 4)}", kinds[k]);
        b = npy_blob(1, header, 0, width);
        for (uint64_t third = 0; third < 4; third++)
            for (uint64_t second = 0; second < 3; second++)
                for (uint64_t first = 0; first < 2; first++)
                    put_number(&b, 1 + (first * 3 + second) * 4 + third, width);
        accept(&b, "npy", dtypes[k], 24);
        b.count -= width;
        refuse(&b, "npy", "is it cut off?");
    }
}

/* OLMo writes raw tokens under the name .npy. */
static void npy_by_name_only(void **state) {
    file_name n = name_in(&place, "part.npy");
    blob b = raw_blob(10, 2);

    (void)state;
    file_write(n.path, b.data, b.count);
    assert_reads(n.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, 10);
    assert_open_fails(n.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG, "iron sniff");
    assert_open_fails(n.path, "npy", IRON_DTYPE_U16, IRON_E_FORMAT, "NumPy's magic");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

#define SEQUENCES 10u
#define TOKENS    45u
#define LENGTHS   34u
#define OFFSETS   (LENGTHS + 4 * SEQUENCES)
#define DOCUMENTS (OFFSETS + 8 * SEQUENCES)

static const size_t lengths[SEQUENCES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static file_name bin, idx;

static int megatron_set_up(void **state) {
    blob b = raw_blob(TOKENS, 2);

    (void)state;
    folder_make(&place);
    bin = name_in(&place, "P.bin");
    idx = name_in(&place, "P.idx");
    save(&place, "P.bin", &b);
    return 0;
}

static blob good_index(void) { return megatron_index(8, lengths, SEQUENCES, 2); }

static void megatron_refuse(const blob *index, const char *word) {
    save(&place, "P.idx", index);
    assert_open_fails(bin.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, word);
    assert_open_fails(bin.path, "megatron", IRON_DTYPE_NONE, IRON_E_FORMAT, word);
}

/* One changed number in a valid index. */
static void refuse_poke(size_t at, uint64_t value, unsigned bytes, const char *word) {
    blob index = good_index();

    poke(&index, at, value, bytes);
    megatron_refuse(&index, word);
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
            index.count += SEQUENCES; /* one mode each */
        }
    }
    assert_open_fails(bin.path, NULL, IRON_DTYPE_U32, IRON_E_FORMAT,
                      "of format megatron, with u16 tokens, but --dtype says u32");
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
    megatron_refuse(&index, "the last sequence ends at byte 0, expected 2, the size of");
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

static void wrong_headers(void **state) {
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

static void wrong_sizes(void **state) {
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
            megatron_refuse(&index, "expected 34 + 12 S + 8 D (+ S)");
    for (index.count = whole - 1; index.count >= 9; index.count--)
        megatron_refuse(&index, "P.idx");
    save(&place, "P.idx", &index); /* 8 bytes: the magic is incomplete */
    assert_open_fails(bin.path, "megatron", IRON_DTYPE_NONE, IRON_E_FORMAT, "8 bytes, expected");
    assert_reads(bin.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, TOKENS);
}

static void wrong_sequences(void **state) {
    blob longer = raw_blob(TOKENS + 1, 2), shorter = raw_blob(TOKENS - 1, 2), index = good_index();

    (void)state;
    refuse_poke(LENGTHS + 12, UINT32_MAX, 4,
                "P.idx at byte 46: sequence 3 has -1 tokens, expected 0 or more");
    refuse_poke(LENGTHS + 12, 4, 4, "sequence 4 begins at byte 12, expected 14");
    refuse_poke(LENGTHS + 36, INT32_MAX, 4, "sequence 9 ends at byte 4294967366, expected at most");
    refuse_poke(LENGTHS + 36, 8, 4, "the last sequence ends at byte 88, expected 90");
    refuse_poke(OFFSETS, 2, 8, "P.idx at byte 74: sequence 0 begins at byte 2, expected 0");
    for (size_t k = 0; k < SEQUENCES; k++)
        refuse_poke(OFFSETS + 8 * k, UINT64_MAX - k, 8, "begins at byte -");
    save(&place, "P.bin", &longer);
    megatron_refuse(&index, "the last sequence ends at byte 90, expected 92, the size of");
    save(&place, "P.bin", &shorter);
    megatron_refuse(&index, "expected at most 88, the size of");
    longer.count--; /* inside a token */
    save(&place, "P.bin", &longer);
    megatron_refuse(&index, "the last sequence ends at byte 90, expected 91");
}

static void wrong_documents(void **state) {
    (void)state;
    refuse_poke(DOCUMENTS, 1, 8, "the first document begins at sequence 1, expected 0");
    refuse_poke(DOCUMENTS, UINT64_MAX, 8, "the first document begins at sequence -1, expected 0");
    refuse_poke(DOCUMENTS + 8, 7, 8, "document entry 2 is sequence 6, expected 7 to 10");
    refuse_poke(DOCUMENTS + 8, 11, 8, "document entry 1 is sequence 11, expected 0 to 10");
    refuse_poke(DOCUMENTS + 8, UINT64_MAX, 8, "document entry 1 is sequence -1, expected");
    refuse_poke(DOCUMENTS + 32, 9, 8, "the last document ends with sequence 9, expected 10");
}

/* If the format is given, the prefix and the index name the pair. */
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
    assert_ok(try_open(IRON_DTYPE_U8, "raw", &path, 1, &s, &err),
              &err); /* any bytes are valid u8 tokens */
    iron_source_close(s);
}

/* An index that is a pipe without a writer does not block; an index of another kind is ignored. */
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

#define MEGATRON_CASE(function)                                                                    \
    cmocka_unit_test_setup_teardown(function, megatron_set_up, remove_place)

#define DS_TOKENS 20u

static file_name ds;

static int ds_set_up(void **state) {
    blob b = raw_blob(DS_TOKENS, 2);

    (void)state;
    folder_make(&place);
    ds = name_in(&place, "X.ds");
    save(&place, "X.ds", &b);
    return 0;
}

static blob index_of(const uint64_t *ends, size_t count) {
    blob b = {.count = 0};

    for (size_t k = 0; k < count; k++)
        put_number(&b, ends[k], 8);
    return b;
}

static void save_index(const uint64_t *ends, size_t count) {
    blob b = index_of(ends, count);

    save(&place, "X.ds.index", &b);
}

static void save_good(void) {
    static const uint64_t ends[] = {0, 7, 7, 20};

    save_index(ends, COUNT(ends));
    save_text(&place, "X.ds.metadata", "gpt2|2\n20\n20 T");
}

static void ds_refuse(iron_dtype dtype, const char *word) {
    assert_open_fails(ds.path, NULL, dtype, IRON_E_FORMAT, word);
    assert_open_fails(ds.path, "ds", dtype, IRON_E_FORMAT, word);
}

static void good_ones(void **state) {
    static const char *const metadata[] = {"gpt2|2\n20\n20 T", "a/b|c|2\n20", "|2\n20\n",
                                           "Unknown Tokenizer|2|2\n20\n\n"};
    blob wide = raw_blob(DS_TOKENS, 4);

    (void)state;
    save_good();
    for (size_t k = 0; k < COUNT(metadata); k++) {
        save_text(&place, "X.ds.metadata", metadata[k]);
        assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, DS_TOKENS);
        assert_reads(ds.path, "ds", IRON_DTYPE_U16, "ds", IRON_DTYPE_U16, DS_TOKENS);
    }
    ds_refuse(IRON_DTYPE_U32, "of format ds, with u16 tokens, but --dtype says u32");
    assert_reads(ds.path, "raw", IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, DS_TOKENS);
    save(&place, "X.ds", &wide);
    save_text(&place, "X.ds.metadata", "llama|4\n20\n20 T");
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U32, DS_TOKENS);
}

static void one_sidecar_is_enough(void **state) {
    file_name index = name_in(&place, "X.ds.index"), metadata = name_in(&place, "X.ds.metadata");

    (void)state;
    save_good();
    assert_int_equal(unlink(index.path), 0);
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, DS_TOKENS);
    save_good();
    assert_int_equal(unlink(metadata.path), 0);
    assert_reads(ds.path, NULL, IRON_DTYPE_U16, "ds", IRON_DTYPE_U16, DS_TOKENS);
    assert_open_fails(ds.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG,
                      "give --dtype u16, which agrees with its index");
    assert_open_fails(ds.path, "ds", IRON_DTYPE_NONE, IRON_E_ARG, "give --dtype u16");
    ds_refuse(IRON_DTYPE_U32, "X.ds.index: the last document ends at token 20, expected 10");
    ds_refuse(IRON_DTYPE_U8, "--dtype u8, expected u16 or u32");
    ds_refuse(IRON_DTYPE_I32, "--dtype i32, expected u16 or u32");
    save_text(&place, "X.ds.metadata", "gpt2\n20\n20 T"); /* an old one, without a token width */
    assert_reads(ds.path, NULL, IRON_DTYPE_U16, "ds", IRON_DTYPE_U16, DS_TOKENS);
    assert_open_fails(ds.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG, "--dtype");
    assert_int_equal(unlink(index.path), 0);
    assert_int_equal(unlink(metadata.path), 0);
    assert_reads(ds.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, DS_TOKENS);
    assert_open_fails(ds.path, "ds", IRON_DTYPE_U16, IRON_E_FORMAT, "neither");
}

static void wrong_indexes(void **state) {
    static const uint64_t back[] = {0, 7, 6, 20}, last[] = {0, 7, 19}, beyond[] = {21},
                          huge[] = {1, UINT64_MAX}, none[] = {0};
    blob odd = {.count = 9};

    (void)state;
    save_good();
    save_index(back, COUNT(back));
    ds_refuse(IRON_DTYPE_NONE,
              "X.ds.index at byte 16: a document ends at token 6, expected at least 7");
    save_index(last, COUNT(last));
    ds_refuse(IRON_DTYPE_NONE, "the last document ends at token 19, expected 20: 40 bytes of u16");
    save_index(beyond, COUNT(beyond));
    ds_refuse(IRON_DTYPE_NONE, "the last document ends at token 21, expected 20");
    save_index(huge, COUNT(huge));
    ds_refuse(IRON_DTYPE_NONE, "the last document ends at token 18446744073709551615");
    save_index(none, 1);
    ds_refuse(IRON_DTYPE_NONE, "the last document ends at token 0, expected 20");
    save_index(none, 0);
    ds_refuse(IRON_DTYPE_NONE, "the last document ends at token 0, expected 20");
    save(&place, "X.ds.index", &odd);
    ds_refuse(IRON_DTYPE_NONE, "X.ds.index: 9 bytes, expected 8 for each document");
}

/* Longer than the pieces in which an index is read. */
static void ds_a_long_index(void **state) {
    enum { MANY = 9000 };
    uint64_t *ends = grab(MANY * sizeof *ends);
    uint16_t *tokens = grab(MANY * sizeof *tokens);

    (void)state;
    for (size_t k = 0; k < MANY; k++) {
        ends[k] = k + 1;
        tokens[k] = (uint16_t)(k + 1);
    }
    file_write(ds.path, tokens, MANY * sizeof *tokens);
    file_write(name_in(&place, "X.ds.index").path, ends, MANY * sizeof *ends);
    save_text(&place, "X.ds.metadata", "gpt2|2\n9000\n9.0 kT");
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, MANY);
    ends[4096] = 4095; /* the first entry of the second piece is below the last of the first */
    file_write(name_in(&place, "X.ds.index").path, ends, MANY * sizeof *ends);
    ds_refuse(IRON_DTYPE_NONE,
              "X.ds.index at byte 32768: a document ends at token 4095, expected at least 4096");
    free(ends);
    free(tokens);
}

static void wrong_metadata(void **state) {
    static const struct {
        const char *text, *word;
    } invalid[] = {
        {"", "one line, expected"},
        {"gpt2|2", "one line, expected"},
        {"gpt2|3\n20", "at byte 5: width '3', expected 2 or 4"},
        {"gpt2|\n20", "width ''"},
        {"gpt2|22\n20", "width '22'"},
        {"gpt2| 2\n20", "width ' 2'"},
        {"gpt2|8\n20", "width '8'"},
        {"gpt2|4\n20", "expected 10: 40 bytes of u32"},
        {"gpt2|2\n19", "X.ds.metadata: 19 tokens, expected 20: 40 bytes of u16"},
        {"gpt2|2\n21\n21 T", "X.ds.metadata: 21 tokens, expected 20"},
        {"gpt2|2\n\n", "at byte 7: '"},
        {"gpt2|2\n20 T", "expected only the number of tokens"},
        {"gpt2|2\n-20", "'-20'"},
        {"gpt2|2\n2e1", "'2e1'"},
        {"gpt2|2\n18446744073709551616", "expected only the number"},
        {"gpt2|2\n18446744073709551615", "expected only the number"},
    };
    blob large = {.count = 4097};

    (void)state;
    save_good();
    for (size_t k = 0; k < COUNT(invalid); k++) {
        save_text(&place, "X.ds.metadata", invalid[k].text);
        ds_refuse(IRON_DTYPE_NONE, invalid[k].word);
    }
    save(&place, "X.ds.metadata", &large);
    ds_refuse(IRON_DTYPE_NONE, "4097 bytes, expected three lines");
}

static void truncated_tokens(void **state) {
    blob b = raw_blob(DS_TOKENS, 2);

    (void)state;
    save_good();
    for (b.count = 0; b.count < 2 * DS_TOKENS; b.count++) {
        save(&place, "X.ds", &b);
        ds_refuse(IRON_DTYPE_NONE, "X.ds.index: the last document ends at token 20");
    }
    assert_int_equal(unlink(name_in(&place, "X.ds.index").path), 0);
    for (b.count = 0; b.count < 2 * DS_TOKENS; b.count++) {
        save(&place, "X.ds", &b);
        ds_refuse(IRON_DTYPE_NONE, "X.ds.metadata: 20 tokens, expected");
    }
}

/* An index without documents is correct for a file without tokens. */
static void no_tokens(void **state) {
    blob none = {.count = 0};

    (void)state;
    save(&place, "X.ds", &none);
    save(&place, "X.ds.index", &none);
    save_text(&place, "X.ds.metadata", "gpt2|2\n0\n0 T");
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, 0);
}

#define DS_CASE(function) cmocka_unit_test_setup_teardown(function, ds_set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(llmc),
        CASE(llmc_with_wrong_headers),
        CASE(litpkds),
        CASE(litpkds_with_wrong_headers),
        CASE(npy),
        CASE(npy_with_wrong_headers),
        CASE(npy_in_other_orders),
        CASE(npy_by_name_only),
        MEGATRON_CASE(good_pairs),
        MEGATRON_CASE(no_sequences),
        MEGATRON_CASE(a_long_index),
        MEGATRON_CASE(wrong_headers),
        MEGATRON_CASE(wrong_sizes),
        MEGATRON_CASE(wrong_sequences),
        MEGATRON_CASE(wrong_documents),
        MEGATRON_CASE(names),
        MEGATRON_CASE(strange_indexes),
        DS_CASE(good_ones),
        DS_CASE(one_sidecar_is_enough),
        DS_CASE(wrong_indexes),
        DS_CASE(ds_a_long_index),
        DS_CASE(wrong_metadata),
        DS_CASE(truncated_tokens),
        DS_CASE(no_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
