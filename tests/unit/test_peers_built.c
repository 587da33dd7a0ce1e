/* SPDX-License-Identifier: MIT */
/*
 * test_peers_built.c: the peers of this build: OpenBLAS against plain loops in double precision,
 * XXH3 against itself and with a wrong hash, and those of CUDA as far as possible without a card.
 */
#include "peers_support.h"

/* Loads a peer of this build, alone in a folder; false: this build has no such peer. */
static bool open_built(const char *library, folder *f, iron__peers *peers) {
    if (!library[0]) {
        print_message("skipped: this build has no such peer\n");
        return false;
    }
    folder_make(f);
    put(f, "libiron-peer-built.so", library);
    *peers = open_in(f->path);
    assert_int_equal(peers->count, 1);
    if (!peers->libraries[0].list)
        fail_msg("%s: %s", library, peers->libraries[0].reason);
    assert_true(peers->libraries[0].list->version[0] != '\0');
    return true;
}

static double at(const void *array, bool is_f64, size_t index) {
    return is_f64 ? ((const double *)array)[index] : (double)((const float *)array)[index];
}

static void set(void *array, bool is_f64, size_t index, double value) {
    if (is_f64)
        ((double *)array)[index] = value;
    else
        ((float *)array)[index] = (float)value;
}

static void *make_array(rng *r, bool is_f64, size_t count) {
    void *array = grab(count * (is_f64 ? 8 : 4));

    for (size_t k = 0; k < count; k++)
        set(array, is_f64, k, (double)rng_below(r, 2001) / 1000 - 1);
    return array;
}

/* y = A'(A x), in double, one term after the other. */
static double *reference(const iron_peer_case *c, bool is_f64) {
    double *y = calloc(c->cols, sizeof *y);

    assert_non_null(y);
    for (size_t i = 0; i < c->rows; i++) {
        double dot = 0;

        for (size_t j = 0; j < c->cols; j++)
            dot += at(c->inputs[0], is_f64, i * c->cols + j) * at(c->inputs[1], is_f64, j);
        for (size_t j = 0; j < c->cols; j++)
            y[j] += at(c->inputs[0], is_f64, i * c->cols + j) * dot;
    }
    return y;
}

static void run_peer(const iron_peer *row, const iron_peer_case *c) {
    char why[200] = "";
    void *state = NULL;

    if (row->open(c, &state, why, sizeof why) != 0)
        fail_msg("%s: open: %s", row->name, why);
    for (int round = 0; round < 2; round++) {
        memset(c->output, 0xFF, c->output_bytes);
        if (row->run(state, why, sizeof why) != 0)
            fail_msg("%s: run: %s", row->name, why);
    }
    row->close(state);
}

static void check_atax(const iron_peer *row, uint64_t rows, uint64_t cols, bool is_f64,
                       uint32_t threads) {
    const size_t element = is_f64 ? 8 : 4;
    rng r = {.state = rows * 1000 + cols + element};
    void *a = make_array(&r, is_f64, rows * cols), *x = make_array(&r, is_f64, cols);
    void *y = grab(cols * element);
    const iron_peer_case c = {.struct_size = sizeof c,
                              .threads = threads,
                              .dtype = is_f64 ? "f64" : "f32",
                              .rows = rows,
                              .cols = cols,
                              .input_count = 2,
                              .inputs = {a, x},
                              .input_bytes = {rows * cols * element, cols * element},
                              .output = y,
                              .output_bytes = cols * element};
    double *want = reference(&c, is_f64);
    /* Sums of rows * cols products below 1 each; their rounding errors are far below this. */
    const double most = (is_f64 ? 1e-12 : 1e-3) * (1 + (double)rows / 100);

    run_peer(row, &c);
    for (size_t k = 0; k < cols; k++) {
        double off = at(y, is_f64, k) - want[k];

        if (!(off <= most && off >= -most)) /* NaN fails as well */
            fail_msg("%zux%zu, %s: y[%zu] is %g, not %g", (size_t)rows, (size_t)cols, c.dtype, k,
                     at(y, is_f64, k), want[k]);
    }
    free(want);
    free(y);
    free(x);
    free(a);
}

/* B = A^T, exactly. */
static void check_transpose(const iron_peer *row, uint64_t rows, uint64_t cols, bool is_f64) {
    const size_t bytes = rows * cols * (is_f64 ? 8 : 4);
    rng r = {.state = rows * 1000 + cols};
    void *a = make_array(&r, is_f64, rows * cols), *b = grab(bytes);
    const iron_peer_case c = {.struct_size = sizeof c,
                              .threads = 2,
                              .dtype = is_f64 ? "f64" : "f32",
                              .rows = rows,
                              .cols = cols,
                              .input_count = 1,
                              .inputs = {a},
                              .input_bytes = {bytes},
                              .output = b,
                              .output_bytes = bytes};

    run_peer(row, &c);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            assert_true(at(b, is_f64, j * rows + i) == at(a, is_f64, i * cols + j));
    free(b);
    free(a);
}

static void openblas(void **state) {
    const iron_peer_list *list;
    iron__peers peers = {0};
    folder f;

    (void)state;
    if (!open_built(PEER_OPENBLAS, &f, &peers))
        skip();
    list = peers.libraries[0].list;
    assert_string_equal(list->rows[0].name, "atax.cpu.openblas");
    assert_string_equal(list->library, "OpenBLAS");
    for (uint32_t threads = 1; threads <= 2; threads++)
        for (int is_f64 = 0; is_f64 < 2; is_f64++) {
            check_atax(&list->rows[0], 390, 410, is_f64, threads);
            check_atax(&list->rows[0], 1, 7, is_f64, threads);
        }
    assert_int_equal(list->count, 2);
    assert_string_equal(list->rows[1].name, "transpose.cpu.openblas");
    for (int is_f64 = 0; is_f64 < 2; is_f64++) {
        check_transpose(&list->rows[1], 390, 411, is_f64);
        check_transpose(&list->rows[1], 1, 7, is_f64);
    }
    peers_close(&peers);
    folder_remove(&f);
}

/* A row refuses what it cannot compute, with a reason: another type, more rows than its library can
 * count, more rows than A has. */
static void assert_refuses(const iron_peer *row) {
    float data[4] = {0};
    const iron_peer_case good = {.struct_size = sizeof good,
                                 .threads = 1,
                                 .dtype = "f32",
                                 .rows = 2,
                                 .cols = 2,
                                 .input_count = 2,
                                 .inputs = {data, data},
                                 .input_bytes = {sizeof data, sizeof data},
                                 .output = data,
                                 .output_bytes = sizeof data};
    iron_peer_case bad[3] = {good, good, good};

    bad[0].dtype = "u32";
    bad[1].rows = UINT64_C(1) << 31;
    bad[2].rows = 3;
    for (size_t k = 0; k < COUNT(bad); k++) {
        char why[200] = "";
        void *work = NULL;

        assert_int_not_equal(row->open(&bad[k], &work, why, sizeof why), 0);
        assert_true(why[0] != '\0');
        assert_null(work);
    }
    row->close(NULL);
}

static void openblas_refuses(void **state) {
    const iron_peer_list *list;
    iron__peers peers = {0};
    folder f;

    (void)state;
    if (!open_built(PEER_OPENBLAS, &f, &peers))
        skip();
    list = peers.libraries[0].list;
    for (size_t k = 0; k < list->count; k++)
        assert_refuses(&list->rows[k]);
    peers_close(&peers);
    folder_remove(&f);
}

static void xxh3(void **state) {
    static const size_t counts[] = {0, 1, 61, 100003};
    const iron_peer_list *list;
    iron__peers peers = {0};
    folder f;

    (void)state;
    if (!open_built(PEER_XXH3, &f, &peers))
        skip();
    list = peers.libraries[0].list;
    assert_string_equal(list->rows[0].name, "tokens.cpu.xxh3");
    for (size_t k = 0; k < COUNT(counts); k++) {
        uint32_t *tokens = grab_tokens(k + 1, 50257, counts[k]);
        unsigned char output[24];
        const iron_peer_case c = {.struct_size = sizeof c,
                                  .threads = 1,
                                  .dtype = "u32",
                                  .rows = counts[k],
                                  .cols = 1,
                                  .vocab = 50257,
                                  .input_count = 1,
                                  .inputs = {tokens},
                                  .input_bytes = {counts[k] * sizeof *tokens},
                                  .output = output,
                                  .output_bytes = sizeof output};
        char why[200] = "";

        run_peer(&list->rows[0], &c);
        assert_int_equal(list->rows[0].check(&c, output, why, sizeof why), 0);
        assert_true(output[8] == 0xFF && output[23] == 0xFF); /* not its own op */
        output[k] ^= 0x10;
        assert_int_not_equal(list->rows[0].check(&c, output, why, sizeof why), 0);
        assert_non_null(strstr(why, "in pieces"));
        free(tokens);
    }
    peers_close(&peers);
    folder_remove(&f);
}

/* CUDA peers load without a card and describe themselves. */
static void check_rows(const char *library, const char *name, const char *const *rows,
                       size_t count) {
    const iron_peer_list *list;
    iron__peers peers = {0};
    folder f;

    if (!open_built(library, &f, &peers))
        skip();
    list = peers.libraries[0].list;
    assert_string_equal(list->library, name);
    assert_int_equal(list->count, count);
    for (size_t k = 0; k < count; k++) {
        assert_string_equal(list->rows[k].name, rows[k]);
    }
    peers_close(&peers);
    folder_remove(&f);
}

static void cub(void **state) {
    static const char *const rows[] = {"tokens.cuda.cub", "tokens.cuda.cub-sum", "barrier.cuda.cub",
                                       "histogram.cuda.cub", "histogram.cuda.cub-pieces"};

    (void)state;
    check_rows(PEER_CUB, "CUB", rows, COUNT(rows));
}

/* A peer refuses invalid cases of its op before it looks for a device. */
static void cub_refuses(void **state) {
    static const struct {
        const char *params;
        size_t output_bytes;
    } cases[] = {{"", 8},
                 {"reach=far", 8},
                 {"stretch=grid", 8},
                 {"reach=grid", 4},
                 {"reach=block segment=1024", 4}};
    uint32_t line[2000] = {0};
    const iron_peer_list *list;
    const iron_peer *row;
    iron__peers peers = {0};
    folder f;

    (void)state;
    if (!open_built(PEER_CUB, &f, &peers))
        skip();
    list = peers.libraries[0].list;
    row = &list->rows[2];
    for (size_t k = 0; k < COUNT(cases); k++) {
        iron_peer_case c = {.struct_size = sizeof c,
                            .dtype = "u32",
                            .rows = COUNT(line),
                            .cols = 1,
                            .input_count = 1,
                            .inputs = {line},
                            .input_bytes = {sizeof line},
                            .output = line,
                            .output_bytes = cases[k].output_bytes};
        char why[200] = "";
        void *work = line;

        snprintf(c.params, sizeof c.params, "%s", cases[k].params);
        assert_int_not_equal(row->open(&c, &work, why, sizeof why), 0);
        assert_non_null(strstr(why, k < 3 ? "reaches" : "its sums"));
        assert_null(work);
    }
    row->close(NULL);
    peers_close(&peers);
    folder_remove(&f);
}

/* Missing elements, no room for the counts, an empty vocabulary. */
static void cub_histogram_refuses(void **state) {
    uint64_t counts[256] = {0};
    uint8_t bytes[16] = {0};
    const iron_peer_case good = {.struct_size = sizeof good,
                                 .dtype = "u8",
                                 .rows = sizeof bytes,
                                 .cols = 1,
                                 .input_count = 1,
                                 .inputs = {bytes},
                                 .input_bytes = {sizeof bytes},
                                 .output = counts,
                                 .output_bytes = sizeof counts};
    iron_peer_case bad[4] = {good, good, good, good};
    const iron_peer_list *list;
    const iron_peer *row;
    iron__peers peers = {0};
    folder f;

    (void)state;
    if (!open_built(PEER_CUB, &f, &peers))
        skip();
    list = peers.libraries[0].list;
    bad[0].rows = 0;
    bad[1].rows++;
    bad[2].output_bytes--;
    bad[3].dtype = "u32";
    bad[3].rows = 4;
    for (size_t k = 0; k < 2 * COUNT(bad); k++) {
        char why[200] = "";
        void *work = bytes;

        row = &list->rows[3 + k % 2];
        assert_int_not_equal(row->open(&bad[k / 2], &work, why, sizeof why), 0);
        assert_non_null(strstr(why, "elements and their counts"));
        assert_null(work);
        row->close(NULL);
    }
    peers_close(&peers);
    folder_remove(&f);
}

static void cublas(void **state) {
    static const char *const rows[] = {"atax.cuda.cublas", "transpose.cuda.cublas"};

    (void)state;
    check_rows(PEER_CUBLAS, "cuBLAS", rows, COUNT(rows));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openblas),    cmocka_unit_test(openblas_refuses),
        cmocka_unit_test(xxh3),        cmocka_unit_test(cub),
        cmocka_unit_test(cub_refuses), cmocka_unit_test(cub_histogram_refuses),
        cmocka_unit_test(cublas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
