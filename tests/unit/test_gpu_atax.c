/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_atax.c: the kernels of atax: every contender over shapes that fill groups, leave them
 * half empty, begin rows at odd places or need another version of a kernel, against sums of doubles
 * computed here. As a whole and in parts, in one queue and in several; twice, and the second answer
 * must equal the first bit for bit; into an output full of NaN.
 *
 * Compiling kernels takes most of the time, so by default each contender runs with f32 at three
 * shapes, and the single pass also with f64. IRON_TEST_FULL=1 runs both types at all shapes.
 *
 * IRON_TEST_BACKEND=cuda in the environment runs it on CUDA instead of OpenCL.
 */
#include "gpu_support.h"

#include "core/hash.h"
#include "ops/atax/atax.h"

#define CUDA_ONLY 6u /* rows from here on need CUDA */
#define QUEUES    3u

typedef struct shape {
    uint64_t rows, cols;
} shape;

/* From one element to rows longer than any group can hold; the first are the reduced sweep. */
#define REDUCED_SHAPES 3u
static const shape shapes[] = {{390, 410},  {64, 1000}, {1, 1},      {1, 7},     {7, 1},
                               {32, 32},    {33, 31},   {38, 42},    {257, 129}, {1000, 64},
                               {3, 5000},   {37, 2048}, {19, 3001},  {11, 4096}, {100, 8192},
                               {13, 16001}, {9, 16384}, {40, 20000}, {7, 20003}, {5, 50000}};

static iron__gpu_device *device;
static iron__gpu_queue *queues[QUEUES];
static iron__gpu_event *events[QUEUES];

/* A problem as the op makes it, with the right answer and the square of the norm of |A|'(|A| |x|),
 * the size it would have without cancellation. */
typedef struct sample {
    iron__op_problem problem;
    double *y;
    double size;
    iron__gpu_buffer *a, *x, *out;
} sample;

static int set_up(void **state) {
    iron_error err;

    gpu_set_up(state);
    setenv("IRON_OPENCL_CACHE", "0", 1); /* saving a program would compile all its kernels */
    if (gpu_reason.status != IRON_OK)
        return 0;
    assert_ok(iron__gpu_device_open(gpu_index(), 0, &device, &err), &err);
    for (size_t k = 0; k < QUEUES; k++) {
        assert_ok(iron__gpu_queue_create(device, &queues[k], &err), &err);
        assert_ok(iron__gpu_event_create(device, &events[k], &err), &err);
    }
    return 0;
}

static int tear_down(void **state) {
    for (size_t k = 0; device && k < QUEUES; k++) {
        iron__gpu_event_destroy(device, events[k]);
        iron__gpu_queue_destroy(queues[k]);
    }
    iron__gpu_device_close(device);
    return gpu_tear_down(state);
}

/* In (-1, 1), and the same in both types. */
static double number(uint64_t seed, uint64_t k) {
    return (double)(int32_t)(iron__mix64(seed + k) >> 32) / 2147483648.0;
}

static void put(void *array, iron__element element, uint64_t k, double value) {
    if (element == IRON_F32)
        ((float *)array)[k] = (float)value;
    else
        ((double *)array)[k] = value;
}

static double get(const void *array, iron__element element, uint64_t k) {
    return element == IRON_F32 ? (double)((const float *)array)[k] : ((const double *)array)[k];
}

static iron__op_array fill(iron__element element, uint64_t count, uint64_t seed) {
    iron__op_array array = {.name = "", .bytes = (size_t)count * iron__element_bytes(element)};

    array.data = grab(array.bytes);
    for (uint64_t k = 0; k < count; k++)
        put(array.data, element, k, number(seed, k));
    return array;
}

static void solve(sample *s) {
    const iron__op_problem *p = &s->problem;
    iron__element e = p->c.element;
    double *sizes = grab((size_t)p->c.cols * sizeof *sizes);

    s->y = grab((size_t)p->c.cols * sizeof *s->y);
    memset(s->y, 0, (size_t)p->c.cols * sizeof *s->y);
    memset(sizes, 0, (size_t)p->c.cols * sizeof *sizes);
    for (uint64_t i = 0; i < p->c.rows; i++) {
        double tmp = 0, size = 0;

        for (uint64_t j = 0; j < p->c.cols; j++) {
            double product =
                get(p->inputs[0].data, e, i * p->c.cols + j) * get(p->inputs[1].data, e, j);

            tmp += product;
            size += (product < 0 ? -product : product);
        }
        for (uint64_t j = 0; j < p->c.cols; j++) {
            double a = get(p->inputs[0].data, e, i * p->c.cols + j);

            s->y[j] += a * tmp;
            sizes[j] += (a < 0 ? -a : a) * size;
        }
    }
    s->size = 0;
    for (uint64_t j = 0; j < p->c.cols; j++)
        s->size += sizes[j] * sizes[j];
    free(sizes);
}

static iron__gpu_buffer *buffer_of(size_t bytes) {
    iron__gpu_buffer *buffer = NULL;
    iron_error err;

    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, bytes, &buffer, &err), &err);
    return buffer;
}

static void send(iron__gpu_buffer *to, const void *from, size_t bytes) {
    const iron__gpu_copy copy = {.to = to, .from_host = from, .bytes = bytes};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queues[0], &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(queues[0], &err), &err);
}

static sample make(shape of, iron__element element) {
    sample s = {.problem = {.c = {.rows = of.rows, .cols = of.cols, .element = element},
                            .input_count = 2,
                            .output_bytes = (size_t)of.cols * iron__element_bytes(element)}};

    s.problem.inputs[0] = fill(element, of.rows * of.cols, 1);
    s.problem.inputs[1] = fill(element, of.cols, UINT64_C(1) << 40);
    solve(&s);
    s.a = buffer_of(s.problem.inputs[0].bytes);
    s.x = buffer_of(s.problem.inputs[1].bytes);
    s.out = buffer_of(s.problem.output_bytes);
    send(s.a, s.problem.inputs[0].data, s.problem.inputs[0].bytes);
    send(s.x, s.problem.inputs[1].data, s.problem.inputs[1].bytes);
    return s;
}

static void unmake(sample *s) {
    iron__gpu_buffer_destroy(s->a);
    iron__gpu_buffer_destroy(s->x);
    iron__gpu_buffer_destroy(s->out);
    free(s->problem.inputs[0].data);
    free(s->problem.inputs[1].data);
    free(s->y);
}

static iron__gpu_data data_of(const sample *s) {
    return (iron__gpu_data){.inputs = {s->a, s->x}, .output = s->out};
}

static iron__gpu_work *work_of(const iron__contender *row, const sample *s, uint32_t parts) {
    iron__gpu_work *work = NULL;
    iron__gpu_data data = data_of(s);
    iron_error err;

    assert_ok(row->gpu->create(device, row, &s->problem, parts, &work, &err), &err);
    if (row->gpu->derive)
        assert_ok(row->gpu->derive(work, &data, queues[0], &err), &err);
    return work;
}

/* All bits set: NaN in both types. */
static void poison(const sample *s) {
    void *ones = grab(s->problem.output_bytes);

    memset(ones, 0xFF, s->problem.output_bytes);
    send(s->out, ones, s->problem.output_bytes);
    free(ones);
}

static void *answer_of(const sample *s) {
    void *answer = grab(s->problem.output_bytes);
    const iron__gpu_copy copy = {
        .from = s->out, .to_host = answer, .bytes = s->problem.output_bytes};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queues[0], &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(queues[0], &err), &err);
    return answer;
}

/* A dot product of n terms is off by at most n roundings, and by a few in practice. */
static void check(const sample *s, const void *answer, const char *name, const char *how) {
    const iron__case *c = &s->problem.c;
    double unit = c->element == IRON_F32 ? 0x1p-24 : 0x1p-53, off = 0;

    for (uint64_t j = 0; j < c->cols; j++) {
        double d = get(answer, c->element, j) - s->y[j];

        off += d * d;
    }
    if (!(off <= 32 * unit * 32 * unit * s->size)) /* NaN fails as well */
        fail_msg("%s, %s, %s, %llux%llu: off by %g of %g, squared", name, how,
                 iron__element_name(c->element), (unsigned long long)c->rows,
                 (unsigned long long)c->cols, off, s->size);
}

static void run_whole(const iron__contender *row, iron__gpu_work *work, const sample *s) {
    iron__gpu_data data = data_of(s);
    iron_error err;

    assert_ok(row->gpu->run(work, &data, queues[0], &err), &err);
}

/* Parts run in the queues in turns, and finish in the first queue, which waits for the others. */
static void run_in_parts(const iron__contender *row, iron__gpu_work *work, const sample *s,
                         uint32_t parts) {
    iron__gpu_data data = data_of(s);
    uint64_t rows = s->problem.c.rows;
    iron_error err;

    for (uint32_t k = 0; k < parts; k++) {
        uint64_t first = rows * k / parts;
        iron__gpu_part part = {first, rows * (k + 1) / parts - first, k, parts};

        assert_ok(row->gpu->run_part(work, &data, part, queues[k % QUEUES], &err), &err);
    }
    for (size_t k = 1; k < QUEUES; k++) {
        assert_ok(iron__gpu_event_record(queues[k], events[k], &err), &err);
        assert_ok(iron__gpu_queue_wait_event(queues[0], events[k], &err), &err);
    }
    assert_ok(row->gpu->finish(work, &data, queues[0], &err), &err);
}

/* parts 0: as a whole. */
static void check_twice(const iron__contender *row, const sample *s, uint32_t parts) {
    static const char *const hows[] = {"whole", "1 part", "2 parts", "3 parts", "4 parts"};
    iron__gpu_work *work = work_of(row, s, parts ? parts : 1);
    void *answers[2];

    for (int k = 0; k < 2; k++) {
        poison(s);
        if (parts)
            run_in_parts(row, work, s, parts);
        else
            run_whole(row, work, s);
        answers[k] = answer_of(s);
        check(s, answers[k], row->name, hows[parts]);
    }
    assert_memory_equal(answers[0], answers[1], s->problem.output_bytes);
    free(answers[0]);
    free(answers[1]);
    row->gpu->destroy(work);
}

static void check_contender(const char *name, iron__element element) {
    iron__contender row = {.name = NULL};

    NEED_GPU();
    if (element == IRON_F64 && !device->info.has_f64) {
        print_message("skipped: %s does not support f64\n", device->info.name);
        skip();
    }
    for (size_t k = 0; k < COUNT(iron__atax_gpu_rows); k++)
        if (strcmp(iron__atax_gpu_rows[k].name, name) == 0)
            row = iron__atax_gpu_rows[k];
    assert_non_null(row.name);
    for (size_t k = 0; k < (is_full_test() ? COUNT(shapes) : REDUCED_SHAPES); k++) {
        sample s = make(shapes[k], element);

        check_twice(&row, &s, 0);
        if (row.gpu->run_part) {
            check_twice(&row, &s, 1);
            check_twice(&row, &s, 3);
            check_twice(&row, &s, 4);
        }
        unmake(&s);
    }
}

static void check_f64(const char *name) {
    if (!is_full_test() && strcmp(name, "single-pass") != 0) {
        print_message("skipped: f64 of this contender runs with IRON_TEST_FULL=1\n");
        skip();
    }
    check_contender(name, IRON_F64);
}

#define TESTS_OF(test, name)                                                                       \
    static void test##_f32(void **state) {                                                         \
        (void)state;                                                                               \
        check_contender(name, IRON_F32);                                                           \
    }                                                                                              \
    static void test##_f64(void **state) {                                                         \
        (void)state;                                                                               \
        check_f64(name);                                                                           \
    }
TESTS_OF(naive, "naive")
TESTS_OF(constant, "constant")
TESTS_OF(transposed, "transposed")
TESTS_OF(tiled, "tiled")
TESTS_OF(coalesced, "coalesced")
TESTS_OF(single_pass, "single-pass")

static void rows_are_complete(void **state) {
    static const char *const names[IRON_ATAX_GPU_ROWS] = {
        "naive",       "constant", "transposed", "tiled", "coalesced",
        "single-pass", "graph",    "one-launch", "ring",  "champion"};
    const iron__case c = {.rows = 100, .cols = 50, .element = IRON_F64};

    (void)state;
    for (size_t k = 0; k < COUNT(names); k++) {
        iron__contender row = iron__atax_gpu_rows[k];

        assert_string_equal(row.name, names[k]);
        assert_true(row.idea[0] != '\0');
        assert_true((row.beats == NULL) == (k == 0));
        assert_int_equal(row.backends, k < CUDA_ONLY ? IRON_ON_GPU : IRON_ON_CUDA);
        assert_int_equal(row.elements, IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64));
        assert_true(row.passes == (k >= CUDA_ONLY - 1 ? 1 : 2));
        assert_true(row.gpu->device_bytes(&row, &c) >= 100 * 8);
        assert_true(!row.gpu->run_part == !row.gpu->finish);
        assert_true(!row.gpu->derive || !row.gpu->run_part);
    }
}

/* A device without f64 or large groups is refused with the reason, and nothing leaks. */
static void unsupported_devices_are_refused(void **state) {
    sample s;
    iron__contender row;
    iron__gpu_work *work = NULL;
    iron__gpu_info info;
    iron_error err;

    (void)state;
    NEED_GPU();
    info = device->info;
    s = make((shape){4, 4}, IRON_F64);
    for (size_t k = 0; k < COUNT(iron__atax_gpu_rows); k++) {
        row = iron__atax_gpu_rows[k];
        device->info.has_f64 = false;
        assert_refused(row.gpu->create(device, &row, &s.problem, 1, &work, &err),
                       IRON_E_UNSUPPORTED, &err);
        assert_says(&err, "does not support f64");
        assert_null(work);
        device->info = info;
        device->info.group_threads_max = 16;
        assert_refused(row.gpu->create(device, &row, &s.problem, 1, &work, &err),
                       IRON_E_UNSUPPORTED, &err);
        assert_says(&err, "16 threads");
        device->info = info;
    }
    unmake(&s);
}

/* Rows that need a feature of CUDA, and matrices whose rows are too long for any group. */
static void missing_features_are_refused(void **state) {
    sample s, wide;
    iron__contender row;
    iron__gpu_work *work = NULL;
    iron__gpu_info info;
    iron_error err;

    (void)state;
    NEED_GPU();
    info = device->info;
    s = make((shape){4, 4}, IRON_F32);
    wide = make((shape){2, 40000}, IRON_F32);
    device->info.can_graph = device->info.can_cooperate = false;
    row = iron__atax_gpu_rows[CUDA_ONLY];
    assert_refused(row.gpu->create(device, &row, &s.problem, 1, &work, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "cannot record launches");
    row = iron__atax_gpu_rows[CUDA_ONLY + 1];
    assert_refused(row.gpu->create(device, &row, &s.problem, 1, &work, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "run at once");
    device->info.can_cooperate = true;
    assert_refused(row.gpu->create(device, &row, &wide.problem, 1, &work, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "40000 columns");
    row = iron__atax_gpu_rows[CUDA_ONLY + 2];
    assert_refused(row.gpu->create(device, &row, &wide.problem, 1, &work, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "no bulk copies");
    assert_null(work);
    device->info = info;
    unmake(&wide);
    unmake(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(unsupported_devices_are_refused),
        cmocka_unit_test(missing_features_are_refused),
        cmocka_unit_test(naive_f32),
        cmocka_unit_test(naive_f64),
        cmocka_unit_test(constant_f32),
        cmocka_unit_test(constant_f64),
        cmocka_unit_test(transposed_f32),
        cmocka_unit_test(transposed_f64),
        cmocka_unit_test(tiled_f32),
        cmocka_unit_test(tiled_f64),
        cmocka_unit_test(coalesced_f32),
        cmocka_unit_test(coalesced_f64),
        cmocka_unit_test(single_pass_f32),
        cmocka_unit_test(single_pass_f64),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
