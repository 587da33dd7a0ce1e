/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_feed_device.c: tokens that the caller already has in GPU memory, fed in the order of the
 * caller's queue. Invalid arguments are refused with helpful messages before anything is consumed,
 * and the engine continues unaffected.
 *
 * Buffers and queues are created the way a caller would, in the engine's own context.
 */
#include "gpu_support.h"

#include <dlfcn.h>

#define TOKENS 300000u

static uint32_t *tokens;

/* The caller's objects. */
typedef struct callers {
    iron__gpu_buffer *buffer;
    iron__gpu_queue *queue;
} callers;

static int set_up(void **state) {
    gpu_set_up(state);
    tokens = grab_tokens(9, UINT64_C(1) << 32, TOKENS);
    return 0;
}

static int tear_down(void **state) {
    free(tokens);
    return gpu_tear_down(state);
}

/* A buffer of all tokens and a queue, on a device. */
static callers callers_on(iron__gpu_device *device) {
    iron__gpu_copy copy = {.from_host = tokens, .bytes = TOKENS * sizeof *tokens};
    callers c = {NULL, NULL};
    iron_error err;

    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, copy.bytes, &c.buffer, &err),
              &err);
    assert_ok(iron__gpu_queue_create(device, &c.queue, &err), &err);
    copy.to = c.buffer;
    assert_ok(iron__gpu_copy_bytes(c.queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(c.queue, &err), &err);
    return c;
}

static void callers_leave(callers *c) {
    iron__gpu_queue_destroy(c->queue);
    iron__gpu_buffer_destroy(c->buffer);
}

static const void *memory_of(const callers *c) { return (const void *)c->buffer->native; }

static void *stream_of(const callers *c) { return (void *)c->queue->native; }

/* The same tokens on the CPU: all of them `times` times, after `before` from the host. */
static iron_engine *expected(iron_config config, size_t before, size_t times) {
    iron_config c = as_on_cpu(config);
    iron_engine *e = engine_of(&c);
    iron_error err;

    assert_ok(iron_engine_feed(e, tokens, before, &err), &err);
    for (size_t k = 0; k < times; k++)
        assert_ok(iron_engine_feed(e, tokens, TOKENS, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    return e;
}

static void assert_comes_to(iron_engine *e, iron_config config, size_t before, size_t times) {
    iron_engine *want = expected(config, before, times);
    iron_error err;

    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_same_engines(e, want);
    iron_engine_destroy(want);
}

/* Right in every mode and strategy, between feeds from the host, without waiting in between. */
static void every_mode_takes_them(void **state) {
    (void)state;
    NEED_GPU();
    for (size_t r = 0; iron__tokens_gpu_row_at(r); r++) {
        iron_config config = gpu_config();
        iron_engine *e;
        callers c;
        iron_error err;

        config.mode = iron__tokens_gpu_row_at(r)->mode;
        config.nodes = 5;
        config.batch = 17777;
        e = engine_of(&config);
        c = callers_on(device_of(e));
        assert_ok(iron_engine_feed(e, tokens, 3, &err), &err);
        for (size_t k = 0; k < 3; k++)
            assert_ok(iron_feed_device(e, memory_of(&c), TOKENS, stream_of(&c), &err), &err);
        assert_ok(iron_feed_device(e, memory_of(&c), 0, stream_of(&c), &err), &err);
        assert_comes_to(e, config, 3, 3);
        callers_leave(&c);
        iron_engine_destroy(e);
    }
}

static void every_strategy_takes_them(void **state) {
    (void)state;
    NEED_GPU();
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++) {
        iron_config config = gpu_config();
        iron_engine *e;
        callers c;
        iron_error err;

        if (!gpu_offers(k))
            continue;
        config.memory = iron__gpu_strategy_name(k);
        e = engine_of(&config);
        c = callers_on(device_of(e));
        assert_ok(iron_engine_feed(e, tokens, 12345, &err), &err);
        assert_ok(iron_feed_device(e, memory_of(&c), TOKENS, stream_of(&c), &err), &err);
        assert_ok(iron_engine_feed(e, tokens, TOKENS, &err), &err);
        assert_ok(iron_feed_device(e, memory_of(&c), TOKENS, stream_of(&c), &err), &err);
        assert_comes_to(e, config, 12345, 3);
        callers_leave(&c);
        iron_engine_destroy(e);
    }
}

/* The feed follows the caller's queue: it sees the tokens that the queue wrote before the call. */
static void in_the_callers_order(void **state) {
    iron_config config = gpu_config();
    iron__gpu_copy copy = {.from_host = tokens, .bytes = TOKENS * sizeof *tokens};
    uint32_t *zeros = grab(TOKENS * sizeof *zeros);
    iron_engine *e;
    callers c;
    iron_error err;

    (void)state;
    memset(zeros, 0, TOKENS * sizeof *zeros);
    if (gpu_reason.status != IRON_OK)
        free(zeros);
    NEED_GPU();
    e = engine_of(&config);
    c = callers_on(device_of(e));
    copy.to = c.buffer;
    for (size_t k = 0; k < 4; k++) {
        copy.from_host = zeros;
        assert_ok(iron__gpu_copy_bytes(c.queue, &copy, &err), &err);
        copy.from_host = tokens;
        assert_ok(iron__gpu_copy_bytes(c.queue, &copy, &err), &err);
        assert_ok(iron_feed_device(e, memory_of(&c), TOKENS, stream_of(&c), &err), &err);
    }
    copy.from_host = zeros; /* after the last feed: too late to matter */
    assert_ok(iron__gpu_copy_bytes(c.queue, &copy, &err), &err);
    assert_comes_to(e, config, 0, 4);
    callers_leave(&c);
    iron_engine_destroy(e);
    free(zeros);
}

static void refuse(iron_engine *e, const void *memory, uint64_t count, void *stream,
                   iron_status expected_status, const char *word) {
    iron_error err;

    assert_refused(iron_feed_device(e, memory, count, stream, &err), expected_status, &err);
    assert_says(&err, word);
    assert_int_equal(iron_feed_device(e, memory, count, stream, NULL), expected_status);
}

/* Refused calls change nothing: only the tokens before, between and after them count. */
static void invalid_arguments_are_refused(void **state) {
    iron_config config = gpu_config();
    callers c;
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    e = engine_of(&config);
    c = callers_on(device_of(e));
    assert_ok(iron_engine_feed(e, tokens, 777, &err), &err);
    refuse(e, NULL, TOKENS, stream_of(&c), IRON_E_ARG, "buffer is 0");
    refuse(e, memory_of(&c), UINT64_MAX / 2, stream_of(&c), IRON_E_ARG, "more than");
    refuse(e, memory_of(&c), UINT64_MAX, stream_of(&c), IRON_E_ARG, "2^64");
    if (strcmp(gpu_backend(), "opencl") == 0) {
        refuse(e, memory_of(&c), TOKENS, NULL, IRON_E_ARG, "no default queue");
        refuse(e, memory_of(&c), TOKENS + 1, stream_of(&c), IRON_E_ARG, "bytes");
    }
    assert_ok(iron_feed_device(e, memory_of(&c), TOKENS, stream_of(&c), &err), &err);
    assert_comes_to(e, config, 777, 1);
    callers_leave(&c);
    iron_engine_destroy(e);
}

/* An engine on the CPU refuses device memory. */
static void cpu_engines_refuse_device_memory(void **state) {
    iron_config config = gpu_config(), on_cpu = as_on_cpu(config);
    iron_engine *cpu = engine_of(&on_cpu);
    iron_error err;

    (void)state;
    assert_null(iron_engine_native_context(cpu));
    refuse(cpu, tokens, TOKENS, NULL, IRON_E_UNSUPPORTED, "on the CPU");
    assert_ok(iron_engine_feed(cpu, tokens, TOKENS, &err), &err);
    assert_comes_to(cpu, config, 0, 1);
    iron_engine_destroy(cpu);
}

/* Between feeds from the host that leave the seal's carry at every remainder. */
static void sealed_too(void **state) {
    (void)state;
    NEED_GPU();
    for (size_t before = 0; before < 4; before++) {
        iron_config config = gpu_config();
        iron_engine *e;
        callers c;
        iron_error err;

        config.with_seal = 1;
        config.batch = before ? 1000 : 16384;
        e = engine_of(&config);
        c = callers_on(device_of(e));
        assert_ok(iron_engine_feed(e, tokens, before, &err), &err);
        assert_ok(iron_feed_device(e, memory_of(&c), TOKENS, stream_of(&c), &err), &err);
        assert_ok(iron_feed_device(e, memory_of(&c), TOKENS, stream_of(&c), &err), &err);
        assert_ok(iron_engine_feed(e, tokens, TOKENS, &err), &err);
        assert_comes_to(e, config, before, 3);
        callers_leave(&c);
        iron_engine_destroy(e);
    }
}

/* OpenCL as a caller's program uses it. */
typedef struct caller_cl {
    void *library;
    int32_t (*get_context_info)(void *, uint32_t, size_t, void *, size_t *);
    void *(*create_context)(const intptr_t *, uint32_t, void **, void *, void *, int32_t *);
    void *(*create_queue)(void *, void *, uint64_t, int32_t *);
    void *(*create_buffer)(void *, uint64_t, size_t, const void *, int32_t *);
    int32_t (*finish)(void *), (*release_context)(void *), (*release_queue)(void *),
        (*release_buffer)(void *);
} caller_cl;

#define CL_CONTEXT_DEVICES    0x1081
#define CL_MEM_READ_ONLY_COPY ((1u << 2) | (1u << 5)) /* with CL_MEM_COPY_HOST_PTR */

static void *symbol_of(void *library, const char *name) {
    void *symbol = dlsym(library, name);

    assert_non_null(symbol);
    return symbol;
}

static caller_cl caller_cl_open(void) {
    caller_cl cl = {.library = dlopen("libOpenCL.so.1", RTLD_NOW)};

    assert_non_null(cl.library);
    *(void **)&cl.get_context_info = symbol_of(cl.library, "clGetContextInfo");
    *(void **)&cl.create_context = symbol_of(cl.library, "clCreateContext");
    *(void **)&cl.create_queue = symbol_of(cl.library, "clCreateCommandQueue");
    *(void **)&cl.create_buffer = symbol_of(cl.library, "clCreateBuffer");
    *(void **)&cl.finish = symbol_of(cl.library, "clFinish");
    *(void **)&cl.release_context = symbol_of(cl.library, "clReleaseContext");
    *(void **)&cl.release_queue = symbol_of(cl.library, "clReleaseCommandQueue");
    *(void **)&cl.release_buffer = symbol_of(cl.library, "clReleaseMemObject");
    return cl;
}

/* A buffer of all tokens and a queue, in a context. */
typedef struct caller_things {
    void *buffer, *queue;
} caller_things;

static caller_things things_in(const caller_cl *cl, void *context, void *device) {
    caller_things t;
    int32_t code = 0;

    t.queue = cl->create_queue(context, device, 0, &code);
    assert_int_equal(code, 0);
    t.buffer =
        cl->create_buffer(context, CL_MEM_READ_ONLY_COPY, TOKENS * sizeof *tokens, tokens, &code);
    assert_int_equal(code, 0);
    return t;
}

static void things_release(const caller_cl *cl, const caller_things *t) {
    assert_int_equal(cl->finish(t->queue), 0);
    assert_int_equal(cl->release_queue(t->queue), 0);
    assert_int_equal(cl->release_buffer(t->buffer), 0);
}

static void *device_in(const caller_cl *cl, void *context) {
    void *device = NULL;

    assert_int_equal(
        cl->get_context_info(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL), 0);
    return device;
}

#define NEED_OPENCL()                                                                              \
    do {                                                                                           \
        NEED_GPU();                                                                                \
        if (strcmp(gpu_backend(), "opencl") != 0) {                                                \
            print_message("skipped: it is about OpenCL's contexts\n");                             \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

/* A program with its own OpenCL that uses only iron.h. The engine may be destroyed while the
 * caller's queue still works for it. */
static void a_caller_with_its_own_opencl(void **state) {
    iron_config config = gpu_config();
    caller_things own;
    iron_engine *e;
    iron_error err;
    caller_cl cl;
    void *context;

    (void)state;
    NEED_OPENCL();
    cl = caller_cl_open();
    e = engine_of(&config);
    context = iron_engine_native_context(e);
    assert_non_null(context);
    own = things_in(&cl, context, device_in(&cl, context));
    assert_ok(iron_feed_device(e, own.buffer, TOKENS, own.queue, &err), &err);
    assert_ok(iron_feed_device(e, own.buffer, TOKENS, own.queue, &err), &err);
    assert_comes_to(e, config, 0, 2);
    for (size_t k = 0; k < 5; k++)
        assert_ok(iron_feed_device(e, own.buffer, TOKENS, own.queue, &err), &err);
    iron_engine_destroy(e);
    things_release(&cl, &own);
    dlclose(cl.library);
}

static void another_context_is_refused(void **state) {
    iron_config config = gpu_config();
    caller_things own, foreign;
    void *context, *other, *device;
    int32_t code = 0;
    iron_engine *e;
    iron_error err;
    caller_cl cl;

    (void)state;
    NEED_OPENCL();
    cl = caller_cl_open();
    e = engine_of(&config);
    context = iron_engine_native_context(e);
    device = device_in(&cl, context);
    other = cl.create_context(NULL, 1, &device, NULL, NULL, &code);
    assert_int_equal(code, 0);
    own = things_in(&cl, context, device);
    foreign = things_in(&cl, other, device);
    refuse(e, foreign.buffer, TOKENS, own.queue, IRON_E_ARG, "iron_engine_native_context");
    refuse(e, own.buffer, TOKENS, foreign.queue, IRON_E_ARG, "iron_engine_native_context");
    assert_ok(iron_feed_device(e, own.buffer, TOKENS, own.queue, &err), &err);
    assert_comes_to(e, config, 0, 1);
    things_release(&cl, &foreign);
    things_release(&cl, &own);
    assert_int_equal(cl.release_context(other), 0);
    iron_engine_destroy(e);
    dlclose(cl.library);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_takes_them),
        cmocka_unit_test(every_strategy_takes_them),
        cmocka_unit_test(in_the_callers_order),
        cmocka_unit_test(invalid_arguments_are_refused),
        cmocka_unit_test(cpu_engines_refuse_device_memory),
        cmocka_unit_test(sealed_too),
        cmocka_unit_test(a_caller_with_its_own_opencl),
        cmocka_unit_test(another_context_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
