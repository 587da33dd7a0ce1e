/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_atax.c: the kernels of atax: every contender, in both widths, over shapes that fill
 * groups, leave them half empty, begin rows at odd places or need another form of the kernel,
 * against sums of doubles made here. As a whole and in parts, in one queue and in several; twice,
 * and the second answer must equal the first bit for bit; into an output full of NaN.
 *
 * IRON_TEST_BACKEND=cuda in the environment runs it on CUDA instead of OpenCL.
 */
#include "gpu_support.h"

#include "core/mix.h"
#include "ops/atax/atax_gpu.h"

#define CONTENDERS 8u
#define ONCE       6u /* from here on: CUDA's, with one call to the driver */
#define QUEUES     3u

typedef struct shape {
    uint64_t rows, cols;
} shape;

/* From one element to rows that no group can hold. */
static const shape shapes[] = {{1, 1},      {1, 7},     {7, 1},      {32, 32},   {33, 31},
                               {38, 42},    {257, 129}, {390, 410},  {64, 1000}, {1000, 64},
                               {3, 5000},   {37, 2048}, {19, 3001},  {11, 4096}, {100, 8192},
                               {13, 16001}, {9, 16384}, {40, 20000}, {7, 20003}, {5, 50000}};

static iron__gpu_device *device;
static iron__gpu_queue *queues[QUEUES];
static iron__gpu_event *events[QUEUES];

/* A problem as the op would make it, with the right answer and how large it can be by cancellation:
 * the square of the norm of |A|'(|A| |x|). */
typedef struct sample {
    iron__problem problem;
    double *y;
    double size;
    iron__gpu_buffer *a, *x, *out;
} sample;

static int set_up(void **state) {
    iron_error err;

    gpu_set_up(state);
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

/* In (-1, 1), and the same in both widths. */
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

static iron__array fill(iron__element element, uint64_t count, uint64_t seed) {
    iron__array array = {.name = "", .bytes = (size_t)count * iron__element_bytes(element)};

    array.data = grab(array.bytes);
    for (uint64_t k = 0; k < count; k++)
        put(array.data, element, k, number(seed, k));
    return array;
}

static void solve(sample *s) {
    const iron__problem *p = &s->problem;
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

/* All bits set: NaN in both widths. */
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

/* A dot product of n terms is off by n roundings at the worst and by some of them in practice. */
static void check(const sample *s, const void *answer, const char *name, const char *how) {
    const iron__case *c = &s->problem.c;
    double unit = c->element == IRON_F32 ? 0x1p-24 : 0x1p-53, off = 0;

    for (uint64_t j = 0; j < c->cols; j++) {
        double d = get(answer, c->element, j) - s->y[j];

        off += d * d;
    }
    if (!(off <= 32 * unit * 32 * unit * s->size)) /* not for NaN either */
        fail_msg("%s, %s, %s, %llux%llu: off by %g of %g, squared", name, how,
                 iron__element_name(c->element), (unsigned long long)c->rows,
                 (unsigned long long)c->cols, off, s->size);
}

static void run_whole(const iron__contender *row, iron__gpu_work *work, const sample *s) {
    iron__gpu_data data = data_of(s);
    iron_error err;

    assert_ok(row->gpu->run(work, &data, queues[0], &err), &err);
}

/* Parts go to queues in turns, and the end to the first, which follows the others. */
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
        assert_ok(iron__gpu_event_follow(queues[0], events[k], &err), &err);
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
        print_message("skipped: %s has no f64\n", device->info.name);
        skip();
    }
    for (size_t k = 0; iron__atax_gpu_contender_at(k, &row) && strcmp(row.name, name) != 0;)
        k++;
    assert_string_equal(row.name, name);
    for (size_t k = 0; k < COUNT(shapes); k++) {
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

#define TESTS_OF(test, name)                                                                       \
    static void test##_f32(void **state) {                                                         \
        (void)state;                                                                               \
        check_contender(name, IRON_F32);                                                           \
    }                                                                                              \
    static void test##_f64(void **state) {                                                         \
        (void)state;                                                                               \
        check_contender(name, IRON_F64);                                                           \
    }
TESTS_OF(naive, "naive")
TESTS_OF(constant, "constant")
TESTS_OF(transposed, "transposed")
TESTS_OF(tiled, "tiled")
TESTS_OF(coalesced, "coalesced")
TESTS_OF(single_pass, "single-pass")

static void rows_are_complete(void **state) {
    static const char *const names[CONTENDERS] = {"naive", "constant",  "transposed",
                                                  "tiled", "coalesced", "single-pass",
                                                  "graph", "one-launch"};
    const iron__case c = {.rows = 100, .cols = 50, .element = IRON_F64};
    iron__contender row;

    (void)state;
    for (size_t k = 0; k < CONTENDERS; k++) {
        assert_true(iron__atax_gpu_contender_at(k, &row));
        assert_string_equal(row.name, names[k]);
        assert_true(row.idea[0] != '\0');
        assert_true((row.beats == NULL) == (k == 0));
        assert_int_equal(row.backends, k < ONCE ? IRON_ON_GPU : IRON_ON_CUDA);
        assert_int_equal(row.elements, IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64));
        assert_true(row.passes == (k >= ONCE - 1 ? 1 : 2));
        assert_true(row.gpu->device_bytes(&row, &c) >= 100 * 8);
        assert_true(!row.gpu->run_part == !row.gpu->finish);
        assert_true(!row.gpu->derive || !row.gpu->run_part);
    }
    assert_false(iron__atax_gpu_contender_at(CONTENDERS, &row));
}

/* A device that cannot do it says why, and nothing is left behind. */
static void lacks_are_said(void **state) {
    sample s;
    iron__contender row;
    iron__gpu_work *work = NULL;
    iron__gpu_info info;
    iron_error err;

    (void)state;
    NEED_GPU();
    info = device->info;
    s = make((shape){4, 4}, IRON_F64);
    for (size_t k = 0; iron__atax_gpu_contender_at(k, &row); k++) {
        device->info.has_f64 = false;
        assert_refused(row.gpu->create(device, &row, &s.problem, 1, &work, &err),
                       IRON_E_UNSUPPORTED, &err);
        assert_says(&err, "has no f64");
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

/* What only CUDA promises, and rows that no group can hold. */
static void promises_are_needed(void **state) {
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
    device->info.can_graph = device->info.can_gather = false;
    assert_true(iron__atax_gpu_contender_at(ONCE, &row));
    assert_refused(row.gpu->create(device, &row, &s.problem, 1, &work, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "cannot record launches");
    assert_true(iron__atax_gpu_contender_at(ONCE + 1, &row));
    assert_refused(row.gpu->create(device, &row, &s.problem, 1, &work, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "run at once");
    device->info.can_gather = true;
    assert_refused(row.gpu->create(device, &row, &wide.problem, 1, &work, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "40000 columns");
    assert_null(work);
    device->info = info;
    unmake(&wide);
    unmake(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),   cmocka_unit_test(lacks_are_said),
        cmocka_unit_test(promises_are_needed), cmocka_unit_test(naive_f32),
        cmocka_unit_test(naive_f64),           cmocka_unit_test(constant_f32),
        cmocka_unit_test(constant_f64),        cmocka_unit_test(transposed_f32),
        cmocka_unit_test(transposed_f64),      cmocka_unit_test(tiled_f32),
        cmocka_unit_test(tiled_f64),           cmocka_unit_test(coalesced_f32),
        cmocka_unit_test(coalesced_f64),       cmocka_unit_test(single_pass_f32),
        cmocka_unit_test(single_pass_f64),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
