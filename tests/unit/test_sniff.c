/* SPDX-License-Identifier: MIT */
/*
 * test_sniff.c: what iron_sniff reports: formats recognised by header or sidecar, never as a guess;
 * dtypes of raw files by their values, always as a guess; damaged files with the problem and the
 * format they look like. And the judgement behind warnings: values that contradict a dtype, and
 * files that are not tokens, without a false alarm.
 */
#include "formats/format.h"

#include "format_support.h"
#include "place.h"

static file_name name;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    name = name_in(&place, "file");
    return 0;
}

static iron_sniff_report sniff(const char *path) {
    iron_sniff_report r = {.struct_size = sizeof r};
    iron_error err;

    assert_ok(iron_sniff(path, NULL, &r, &err), &err);
    assert_true(r.reason_count > 0);
    for (size_t k = 0; k < r.reason_count; k++)
        assert_non_null(memchr(r.reasons[k], '\0', sizeof r.reasons[k]));
    return r;
}

static bool tells(const iron_sniff_report *r, const char *word) {
    for (size_t k = 0; k < r->reason_count; k++)
        if (strstr(r->reasons[k], word))
            return true;
    return false;
}

static void assert_tells(const iron_sniff_report *r, const char *word) {
    if (!tells(r, word))
        fail_msg("no reason says '%s'; the first is '%s'", word, r->reasons[0]);
}

static void assert_known(const blob *b, const char *format, iron_dtype dtype, uint64_t offset,
                         uint64_t tokens, const char *word) {
    iron_sniff_report r;

    save(&place, "file", b);
    r = sniff(name.path);
    assert_string_equal(r.format, format);
    assert_int_equal(r.dtype, dtype);
    assert_false(r.is_guess);
    assert_int_equal(r.bytes, b->count);
    assert_int_equal(r.data_offset, offset);
    assert_int_equal(r.tokens, tokens);
    assert_true(r.documents == IRON_COUNT_UNKNOWN);
    assert_tells(&r, word);
}

static void headers(void **state) {
    blob b = llmc_blob(20240520, 1, 9, 2);

    (void)state;
    assert_known(&b, "llmc", IRON_DTYPE_U16, 1024, 9, "llm.c magic 20240520 at byte 0");
    assert_known(&b, "llmc", IRON_DTYPE_U16, 1024, 9, "9 tokens at byte 8");
    b = npy_of("<i4", 5, 4);
    assert_known(&b, "npy", IRON_DTYPE_I32, b.count - 20, 5, "NumPy magic");
    assert_known(&b, "npy", IRON_DTYPE_I32, b.count - 20, 5, "'<i4' is i32");
    b = litpkds_blob(8, 7, 2);
    assert_known(&b, "litpkds", IRON_DTYPE_U16, 24, 7,
                 "chunk of 7 tokens at byte 16, which matches");
    poke(&b, 16, 8, 8);
    assert_known(&b, "litpkds", IRON_DTYPE_U16, 24, 7, "but the file size gives 7");
}

static void sidecars(void **state) {
    static const size_t lengths[] = {3, 4, 5, 6};
    static const uint64_t ends[] = {2, 10, 18};
    file_name bin = name_in(&place, "P.bin"), ds = name_in(&place, "X.ds");
    blob tokens = raw_blob(18, 2), idx = megatron_index(8, lengths, 4, 2);
    iron_sniff_report r;

    (void)state;
    save(&place, "P.bin", &tokens);
    save(&place, "P.idx", &idx);
    save(&place, "X.ds", &tokens);
    file_write(name_in(&place, "X.ds.index").path, ends, sizeof ends);
    save_text(&place, "X.ds.metadata", "gpt2|2\n18\n18 T");
    r = sniff(bin.path);
    assert_string_equal(r.format, "megatron");
    assert_int_equal(r.documents, 2);
    assert_int_equal(r.tokens, 18);
    assert_false(r.is_guess);
    assert_tells(&r, "magic MMIDIDX");
    r = sniff(ds.path);
    assert_string_equal(r.format, "ds");
    assert_int_equal(r.documents, 3);
    assert_int_equal(r.tokens, 18);
    assert_int_equal(r.dtype, IRON_DTYPE_U16);
    assert_false(r.is_guess);
    assert_tells(&r, "3 documents");
}

/* Raw values, enough for a sample in parts. */
static void assert_guess(const void *data, size_t bytes, iron_dtype dtype, const char *word) {
    iron_sniff_report r;

    file_write(name.path, data, bytes);
    r = sniff(name.path);
    assert_string_equal(r.format, "raw");
    assert_true(r.is_guess);
    assert_int_equal(r.dtype, dtype);
    assert_tells(&r, word);
    if (dtype == IRON_DTYPE_NONE)
        assert_true(r.tokens == (bytes ? IRON_COUNT_UNKNOWN : 0));
    else
        assert_int_equal(r.tokens, bytes / iron_dtype_bytes(dtype));
    assert_int_equal(r.data_offset, 0);
    assert_tells(&r, dtype == IRON_DTYPE_NONE ? "if you know it" : "a guess: give --dtype");
}

/* Ids below a vocabulary size, uniform or mostly small, of each dtype. */
static void assert_ids(uint64_t vocab, size_t count, bool is_skewed) {
    uint16_t *u16 = grab(count * sizeof *u16);
    uint32_t *u32 = grab(count * sizeof *u32);
    int64_t *i64 = grab(count * sizeof *i64);
    rng r = {vocab + count};

    for (size_t k = 0; k < count; k++) {
        uint64_t id = rng_below(&r, vocab);

        if (is_skewed)
            id = rng_below(&r, id + 1);
        u16[k] = (uint16_t)id;
        u32[k] = (uint32_t)id;
        i64[k] = (int64_t)id;
    }
    if (vocab <= 65536)
        assert_guess(u16, count * sizeof *u16, IRON_DTYPE_U16, "give --dtype u16");
    assert_guess(u32, count * sizeof *u32, IRON_DTYPE_U32, "sampled values are below 2^20");
    assert_guess(i64, count * sizeof *i64, IRON_DTYPE_I64, "the upper 32 bits of");
    free(u16);
    free(u32);
    free(i64);
}

static void widths_are_guessed(void **state) {
    static const uint64_t vocabs[] = {65, 256, 50257, 65536};

    (void)state;
    for (size_t k = 0; k < COUNT(vocabs); k++) {
        assert_ids(vocabs[k], 1000, false);
        assert_ids(vocabs[k], 1000, true);
        assert_ids(vocabs[k], 300000, false);
    }
    assert_ids(128256, 1000, true);
    assert_ids(1000000, 20000, false);
}

static void odd_ones_are_guessed(void **state) {
    static const char text[] = "It was a bright cold day in April.\n",
                      russian[] = "\xd0\xb4\xd0\xb0";
    static const unsigned char zeros[64] = {0}, odd[] = {1, 2, 3, 200, 5, 250, 0};
    int32_t padded[400];
    int64_t ignored[400];

    (void)state;
    assert_guess(text, sizeof text - 1, IRON_DTYPE_U8, "reads as text");
    assert_guess(russian, sizeof russian - 1, IRON_DTYPE_U8, "reads as text");
    assert_guess(zeros, sizeof zeros, IRON_DTYPE_NONE, "every sampled byte is 0");
    assert_guess("", 0, IRON_DTYPE_NONE, "it is empty");
    assert_guess(odd, sizeof odd, IRON_DTYPE_U8, "7 bytes is an odd size");
    for (int k = 0; k < 400; k++)
        padded[k] = k % 10 ? 1000 + k : -100;
    for (int k = 0; k < 400; k++)
        ignored[k] = k % 10 ? 1000 + k : -100;
    assert_guess(padded, sizeof padded, IRON_DTYPE_I32, "as i32, 40 are negative");
    assert_guess(ignored, sizeof ignored, IRON_DTYPE_I64, "40 are negative");
}

/* Streams of ids as real ones are distributed, and harder ones. */
typedef enum stream_kind { UNIFORM, ZIPF, SHUFFLED, PADDED, RUNS, COUNTING, KINDS } stream_kind;

static uint64_t next_id(stream_kind kind, uint64_t vocab, size_t index, uint64_t last, rng *r) {
    /* as many ids of each length: about 1/(k+1) for id k, as words are distributed */
    unsigned bits = 64 - (unsigned)__builtin_clzll(vocab - 1);
    uint64_t id = rng_below(r, UINT64_C(1) << rng_below(r, bits + 1)) % vocab;

    switch (kind) {
    case UNIFORM:
        return rng_below(r, vocab);
    case SHUFFLED: /* frequent ids are anywhere */
        return (id * 2654435761u + 12345) % vocab;
    case PADDED:
        return rng_below(r, 10) ? vocab - 1 : id;
    case RUNS:
        return index > 0 && rng_below(r, 3) ? last : id;
    case COUNTING:
        return index % vocab;
    default:
        return id;
    }
}

/* What a stream of ids looks like when it is stored with one dtype and read with another. */
static iron_dtype judge(stream_kind kind, uint64_t vocab, size_t bytes, iron_dtype stored,
                        iron_dtype read, uint64_t seed) {
    size_t width = iron_dtype_bytes(stored), count = bytes / width;
    unsigned char *data = grab(bytes + 8);
    char why[IRON_WHY_ROOM] = "";
    rng r = {seed * 7919 + vocab + kind};
    uint64_t id = 0;
    iron_dtype looks;

    for (size_t k = 0; k < count; k++) {
        id = next_id(kind, vocab, k, id, &r);
        memcpy(data + k * width, &id, width);
    }
    looks = iron__dtype_contradiction(data, count * width, read, why);
    assert_true((looks == IRON_DTYPE_NONE) == (why[0] == '\0'));
    free(data);
    return looks;
}

static void true_dtypes_are_never_contradicted(void **state) {
    static const uint64_t vocabs[] = {2,
                                      5,
                                      12,
                                      20,
                                      65,
                                      256,
                                      300,
                                      1024,
                                      32000,
                                      50257,
                                      65024,
                                      65536,
                                      100277,
                                      128256,
                                      151643,
                                      200019,
                                      UINT64_C(1) << 20,
                                      UINT64_C(1) << 24,
                                      UINT64_C(1) << 31,
                                      UINT64_C(1) << 32};
    static const size_t sizes[] = {8, 64, 200, 1000, 4096, 8192};

    (void)state;
    for (size_t v = 0; v < COUNT(vocabs); v++)
        for (iron_dtype dtype = IRON_DTYPE_U8; dtype <= IRON_DTYPE_I64; dtype++) {
            unsigned bits = dtype == IRON_DTYPE_I32 ? 31 : 8 * (unsigned)iron_dtype_bytes(dtype);

            if (bits < 64 && vocabs[v] > UINT64_C(1) << bits)
                continue;
            for (stream_kind kind = UNIFORM; kind < KINDS; kind++)
                for (size_t s = 0; s < COUNT(sizes); s++)
                    for (uint64_t seed = 1; seed <= 4; seed++)
                        if (judge(kind, vocabs[v], sizes[s], dtype, dtype, seed))
                            fail_msg("kind %d, vocab %llu, %zu bytes, seed %llu: not %s", kind,
                                     (unsigned long long)vocabs[v], sizes[s],
                                     (unsigned long long)seed, iron_dtype_name(dtype));
        }
}

static void wrong_dtypes_are_contradicted(void **state) {
    static const uint64_t vocabs[] = {32000, 50257, 100277, 128256, 151643, 200019};
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I64};

    (void)state;
    for (size_t v = 0; v < COUNT(vocabs); v++)
        for (size_t stored = 1; stored < COUNT(dtypes); stored++)
            for (size_t read = 0; read + 1 < COUNT(dtypes); read++) /* i64 is checked by value */
                for (stream_kind kind = UNIFORM; kind <= RUNS; kind++) {
                    size_t width = iron_dtype_bytes(dtypes[stored]);

                    if (stored == read || (width == 2 && vocabs[v] > 65536))
                        continue;
                    /* 2048 tokens, those of 64 bits in twice the usual sample */
                    assert_int_equal(
                        judge(kind, vocabs[v], 2048 * width, dtypes[stored], dtypes[read], 1),
                        dtypes[stored]);
                }
}

/* The first bytes of random tokens are no container, however often one tries. */
static void tokens_are_no_containers(void **state) {
    static const uint64_t vocabs[] = {50257, 65536, 200019};
    iron__input file = {.path = "tokens", .bytes = 4096, .fd = -1};
    iron__candidate c = {.file = &file, .name = "tokens", .dtype = IRON_DTYPE_U16};
    rng r = {17};

    (void)state;
    for (size_t round = 0; round < 20000; round++) {
        uint64_t vocab = vocabs[round % 3];
        size_t width = vocab > 65536 ? 4 : 2;

        c.head_count = 64;
        for (size_t k = 0; k < c.head_count; k += width) {
            uint64_t id = next_id(round & 1 ? ZIPF : UNIFORM, vocab, k, 0, &r);

            memcpy(c.head + k, &id, width);
        }
        assert_null(iron__container_find(&c));
    }
}

static void names_without_headers(void **state) {
    file_name n = name_in(&place, "part.npy");
    blob b = raw_blob(300, 2);
    iron_sniff_report r;

    (void)state;
    file_write(n.path, b.data, b.count);
    r = sniff(n.path);
    assert_true(r.is_guess);
    assert_int_equal(r.dtype, IRON_DTYPE_U16);
    assert_tells(&r, "as OLMo writes .npy");
}

static void assert_problem(const char *path, iron_status expected, const char *format,
                           const char *word) {
    iron_sniff_report r = {.struct_size = sizeof r};
    iron_error err;

    assert_refused(iron_sniff(path, NULL, &r, &err), expected, &err);
    assert_string_equal(r.format, format);
    assert_says(&err, word);
    assert_true(r.tokens == IRON_COUNT_UNKNOWN);
    assert_int_equal(iron_sniff(path, NULL, &r, NULL), expected);
}

static void damaged_files(void **state) {
    file_name bin = name_in(&place, "P.bin"), idx = name_in(&place, "P.idx");
    static const size_t lengths[] = {3};
    blob b = llmc_blob(20240520, 1, 9, 2), index = megatron_index(8, lengths, 1, 2);
    iron_sniff_report r = {.struct_size = sizeof r - 1};
    iron_error err;

    (void)state;
    b.count -= 2;
    save(&place, "file", &b);
    assert_problem(name.path, IRON_E_FORMAT, "llmc", "its header says 9 tokens");
    save(&place, "P.bin", &b);
    save(&place, "P.idx", &index);
    assert_problem(bin.path, IRON_E_FORMAT, "llmc",
                   "says 9 tokens"); /* magic takes precedence over sidecars */
    b = raw_blob(4, 2);
    save(&place, "P.bin", &b);
    assert_problem(bin.path, IRON_E_FORMAT, "megatron", "P.idx: the last sequence ends at byte 6");
    assert_problem(idx.path, IRON_E_ARG, "", "P.bin, which holds the tokens");
    assert_problem(place.path, IRON_E_ARG, "", "directory");
    assert_problem("-", IRON_E_ARG, "", "standard input");
    assert_problem(name_in(&place, "gone").path, IRON_E_IO, "", "gone");
    assert_int_equal(mkfifo(name_in(&place, "fifo").path, 0600), 0);
    assert_problem(name_in(&place, "fifo").path, IRON_E_ARG, "", "pipe");
    assert_refused(iron_sniff(name.path, NULL, &r, &err), IRON_E_ARG, &err);
    assert_refused(iron_sniff(name.path, NULL, NULL, &err), IRON_E_ARG, &err);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(headers),
        CASE(sidecars),
        CASE(widths_are_guessed),
        CASE(odd_ones_are_guessed),
        CASE(true_dtypes_are_never_contradicted),
        CASE(wrong_dtypes_are_contradicted),
        CASE(tokens_are_no_containers),
        CASE(names_without_headers),
        CASE(damaged_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
