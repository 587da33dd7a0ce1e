/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_memory.c: buffers of every kind on the first OpenCL device there is: copies in all
 * directions and at all offsets, zeros, the turns of host and kernels at shared memory, the
 * caller's own buffers. What kernels see is told by one that sums up. Where there is no device, the
 * tests are skipped with the reason.
 *
 * What OpenCL itself would let pass (copies beyond a buffer, work on what the host is writing) must
 * be refused; and none of these refusals may mark the device.
 */
#include "opencl_work.h"

#include "gpu/opencl/opencl_loader.h"

static const iron__gpu_image image = {
    .name = "total",
    .source = "__kernel void total(__global const uint *from, ulong first, ulong count,\n"
              "                    __global uint *sum) {\n"
              "    ulong k = get_global_id(0);\n"
              "    if (k < count) atomic_add(sum, from[first + k]);\n"
              "}\n",
};

static iron_status launch_total(const iron__gpu_arg *args, uint32_t groups, iron_error *err) {
    iron__gpu_launch launch = {.groups = {groups}, .threads = {64}, .args = args, .arg_count = 4};

    assert_ok(OPS->kernel_find(program, "total", &launch.kernel, err), err);
    return OPS->launch(queue, &launch, err);
}

static void copy_in(const void *from, iron__gpu_buffer *to, size_t offset, size_t bytes) {
    iron_error err;

    assert_ok(OPS->copy(queue,
                        &(iron__gpu_copy){
                            .from_host = from, .to = to, .to_offset = offset, .bytes = bytes},
                        &err),
              &err);
}

/* Waits, so that the host may look. */
static void copy_out(const iron__gpu_buffer *from, size_t offset, void *to, size_t bytes) {
    iron_error err;

    assert_ok(OPS->copy(queue,
                        &(iron__gpu_copy){
                            .from = from, .from_offset = offset, .to_host = to, .bytes = bytes},
                        &err),
              &err);
    assert_ok(OPS->queue_wait(queue, &err), &err);
}

/* The sum of count tokens of a buffer, by a kernel. */
static uint32_t total_of(const iron__gpu_buffer *from, uint64_t first, uint64_t count) {
    iron__gpu_buffer *sum = buffer_of(IRON_GPU_MEMORY_DEVICE, 4);
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_VALUE(first), IRON_GPU_VALUE(count),
                            IRON_GPU_BUFFER(sum)};
    uint32_t got;
    iron_error err;

    assert_ok(OPS->clear(queue, sum, 0, 4, &err), &err);
    assert_ok(launch_total(args, (uint32_t)(count + 63) / 64, &err), &err);
    copy_out(sum, 0, &got, sizeof got);
    OPS->buffer_destroy(sum);
    return got;
}

static void copies_at_offsets(void **state) {
    enum { N = 1024 };
    unsigned char in[N], out[N], want[N];
    iron__gpu_buffer *a, *b;
    dice d = {5};
    iron_error err;

    (void)state;
    NEED_DEVICE();
    a = buffer_of(IRON_GPU_MEMORY_DEVICE, N);
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, N);
    for (int round = 0; round < 50; round++) {
        size_t from = (size_t)roll_below(&d, N), to = (size_t)roll_below(&d, N);
        size_t longest = N - (from > to ? from : to);
        size_t bytes = (size_t)roll_below(&d, longest + 1); /* 0 among them */

        for (size_t k = 0; k < N; k++)
            in[k] = (unsigned char)roll(&d);
        memset(want, 0, N);
        memcpy(want + to, in + from, bytes);
        copy_in(in, a, 0, N);
        assert_ok(OPS->clear(queue, b, 0, N, &err), &err);
        iron__gpu_copy copy = {
            .from = a, .to = b, .from_offset = from, .to_offset = to, .bytes = bytes};
        assert_ok(OPS->copy(queue, &copy, &err), &err);
        memset(out, 0xEE, N);
        copy_out(b, to, out + to, N - to);
        assert_memory_equal(out + to, want + to, N - to);
        /* the offset of a side in host memory counts from its address */
        copy = (iron__gpu_copy){
            .from_host = in, .to = b, .from_offset = from, .to_offset = to, .bytes = bytes};
        assert_ok(OPS->copy(queue, &copy, &err), &err);
        copy_out(b, 0, out, N);
        assert_memory_equal(out, want, N);
    }
    OPS->buffer_destroy(a);
    OPS->buffer_destroy(b);
}

static void clears(void **state) {
    uint32_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    const uint32_t want[8] = {1, 2, 0, 0, 0, 6, 7, 8};
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, sizeof in);
    copy_in(in, b, 0, sizeof in);
    assert_ok(OPS->clear(queue, b, 8, 12, &err), &err);
    assert_ok(OPS->clear(queue, b, 32, 0, &err), &err);
    assert_refused(OPS->clear(queue, b, 2, 4, &err), IRON_E_ARG, &err);
    assert_refused(OPS->clear(queue, b, 4, 5, &err), IRON_E_ARG, &err);
    assert_refused(OPS->clear(queue, b, 4, 32, &err), IRON_E_ARG, &err);
    copy_out(b, 0, out, sizeof out);
    assert_memory_equal(out, want, sizeof out);
    OPS->buffer_destroy(b);
}

static void copies_that_cannot_be(void **state) {
    iron__gpu_buffer *b;
    char host[64];
    iron_error err;

    (void)state;
    NEED_DEVICE();
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64);
    iron__gpu_copy bad[] = {
        {.from = b, .to_host = host, .bytes = 65},
        {.from = b, .to_host = host, .from_offset = 60, .bytes = 5},
        {.from = b, .to_host = host, .from_offset = SIZE_MAX, .bytes = 2},
        {.from_host = host, .to = b, .to_offset = 65},
        {.from_host = host, .to = b, .to_offset = 32, .bytes = SIZE_MAX},
        {.from = b, .bytes = 4},
        {.to = b, .bytes = 4},
        {.from_host = host, .to_host = host, .bytes = 4},
        {.from = b, .from_host = host, .to_host = host, .bytes = 4},
        {.from = b, .to = b, .to_offset = 4, .bytes = 16},
    };
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(OPS->copy(queue, &bad[k], &err), IRON_E_ARG, &err);
    assert_says(&err, "CL_MEM_COPY_OVERLAP");
    OPS->buffer_destroy(b);
}

static void buffers_that_cannot_be(void **state) {
    iron__gpu_buffer *b = (iron__gpu_buffer *)&place;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    for (int kind = IRON_GPU_MEMORY_DEVICE; kind <= IRON_GPU_MEMORY_MAPPED; kind++) {
        assert_refused(OPS->buffer_create(device, (iron__gpu_memory)kind, 0, &b, &err), IRON_E_ARG,
                       &err);
        assert_null(b);
        assert_refused(OPS->buffer_create(device, (iron__gpu_memory)kind, SIZE_MAX, &b, &err),
                       IRON_E_NOMEM, &err);
        assert_says(&err, "18446744073709551615");
        assert_null(b);
    }
    OPS->buffer_destroy(NULL);
    OPS->queue_destroy(NULL);
    OPS->event_destroy(NULL);
    OPS->program_unload(NULL);
    OPS->device_close(NULL);
}

static void pinned_memory(void **state) {
    enum { N = 100000 };
    iron__gpu_buffer *pinned, *b;
    uint32_t *tokens, sum = 0;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    pinned = buffer_of(IRON_GPU_MEMORY_PINNED, N * 4);
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, N * 4);
    tokens = pinned->host;
    assert_non_null(tokens);
    for (uint32_t k = 0; k < N; k++)
        sum += tokens[k] = k * 2654435761u;
    assert_ok(OPS->host_begin(queue, pinned, &err), &err); /* nothing to do */
    assert_ok(OPS->host_end(queue, pinned, &err), &err);
    assert_ptr_equal(pinned->host, tokens);
    iron__gpu_copy copy = {.from = pinned, .to = b, .from_offset = 4, .bytes = (N - 1) * 4};
    assert_ok(OPS->copy(queue, &copy, &err), &err);
    assert_int_equal(total_of(b, 0, N - 1), sum - tokens[0]);
    memset(tokens, 0, N * 4);
    copy = (iron__gpu_copy){.from = b, .to = pinned, .bytes = (N - 1) * 4};
    assert_ok(OPS->copy(queue, &copy, &err), &err);
    assert_ok(OPS->queue_wait(queue, &err), &err);
    for (uint32_t k = 0; k + 1 < N; k++)
        assert_int_equal(tokens[k], (k + 1) * 2654435761u);
    assert_refused(OPS->clear(queue, pinned, 0, 4, &err), IRON_E_ARG, &err);
    OPS->buffer_destroy(pinned);
    OPS->buffer_destroy(b);
}

/* Managed and mapped memory are alike: the host's turn, then the kernels'. */
static void take_turns(iron__gpu_memory memory) {
    enum { N = 5000 };
    iron__gpu_buffer *shared = buffer_of(memory, N * 4), *b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64);
    uint64_t first = 0, count = N;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(shared), IRON_GPU_VALUE(first), IRON_GPU_VALUE(count),
                            IRON_GPU_BUFFER(b)};
    uint32_t few[4];
    iron_error err;

    assert_null(shared->host);
    if (memory == IRON_GPU_MEMORY_MANAGED)
        assert_int_equal(shared->native % IRON_GPU_ALIGNMENT, 0);
    for (uint32_t round = 1; round < 4; round++) {
        uint32_t *tokens, sum = 0;

        assert_refused(OPS->host_end(queue, shared, &err), IRON_E_STATE, &err);
        assert_ok(OPS->host_begin(queue, shared, &err), &err);
        tokens = shared->host;
        assert_non_null(tokens);
        /* a part only: the rest stays from the last round */
        for (uint32_t k = 0; k < N; k++) {
            if (round == 1 || k % round == 0)
                tokens[k] = k * round * 40503u;
            sum += tokens[k];
        }
        assert_refused(OPS->host_begin(queue, shared, &err), IRON_E_STATE, &err);
        assert_refused(launch_total(args, 1, &err), IRON_E_STATE, &err);
        assert_refused(OPS->clear(queue, shared, 0, 4, &err), IRON_E_STATE, &err);
        assert_ok(OPS->host_end(queue, shared, &err), &err);
        assert_null(shared->host);
        assert_int_equal(total_of(shared, 0, N), sum);
        assert_int_equal(total_of(shared, 0, N), sum);
    }
    copy_out(shared, 16, few, sizeof few);
    assert_int_equal(few[0], 4 * 2 * 40503u);
    copy_in(few, shared, 0, sizeof few);
    assert_int_equal(total_of(shared, 0, 1), few[0]);
    assert_ok(OPS->clear(queue, shared, 4, 8, &err), &err);
    assert_int_equal(total_of(shared, 0, 4), few[0] + few[3]);
    /* to and from device memory */
    iron__gpu_copy copy = {.from = shared, .to = b, .from_offset = 12, .to_offset = 4, .bytes = 4};
    assert_ok(OPS->copy(queue, &copy, &err), &err);
    assert_int_equal(total_of(b, 1, 1), few[3]);
    copy = (iron__gpu_copy){.from = b, .to = shared, .from_offset = 4, .to_offset = 4, .bytes = 4};
    assert_ok(OPS->copy(queue, &copy, &err), &err);
    assert_int_equal(total_of(shared, 1, 1), few[3]);
    copy = (iron__gpu_copy){.from = shared, .to = shared, .to_offset = 4000, .bytes = 16};
    assert_ok(OPS->copy(queue, &copy, &err), &err);
    assert_int_equal(total_of(shared, 1000, 4), total_of(shared, 0, 4));
    OPS->buffer_destroy(b);
    /* destroyed in the host's turn */
    assert_ok(OPS->host_begin(queue, shared, &err), &err);
    OPS->buffer_destroy(shared);
}

static void mapped_memory(void **state) {
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    take_turns(IRON_GPU_MEMORY_MAPPED);
    b = buffer_of(IRON_GPU_MEMORY_DEVICE, 64);
    assert_refused(OPS->host_begin(queue, b, &err), IRON_E_ARG, &err);
    assert_refused(OPS->host_end(queue, b, &err), IRON_E_ARG, &err);
    assert_refused(OPS->prefetch(queue, b, 64, &err), IRON_E_ARG, &err);
    OPS->buffer_destroy(b);
}

static void managed_memory(void **state) {
    const char *lack;
    iron__gpu_buffer *b;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    lack = device->info.lacks[IRON_GPU_UVM];
    if (lack[0]) {
        assert_refused(OPS->buffer_create(device, IRON_GPU_MEMORY_MANAGED, 64, &b, &err),
                       IRON_E_UNSUPPORTED, &err);
        assert_says(&err, lack);
        assert_null(b);
        return;
    }
    take_turns(IRON_GPU_MEMORY_MANAGED);
    assert_refused(OPS->buffer_create(device, IRON_GPU_MEMORY_MANAGED,
                                      (size_t)device->info.memory_bytes / 2 + 1, &b, &err),
                   IRON_E_NOMEM, &err);
    b = buffer_of(IRON_GPU_MEMORY_MANAGED, 4096);
    if (!device->info.lacks[IRON_GPU_UVM_PREFETCH][0]) {
        assert_ok(OPS->prefetch(queue, b, 4096, &err), &err);
        assert_ok(OPS->prefetch(queue, b, 0, &err), &err);
        assert_refused(OPS->prefetch(queue, b, 4097, &err), IRON_E_ARG, &err);
        assert_ok(OPS->queue_wait(queue, &err), &err);
    }
    OPS->buffer_destroy(b);
}

static void the_callers_own_buffers(void **state) {
    const iron__opencl_library *library;
    iron__cl_context *foreign;
    iron__gpu_buffer *b = NULL;
    iron__cl_memory *memory;
    uint32_t in[4] = {1, 20, 300, 4000};
    int32_t code = 0;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(iron__opencl_load(&library, &err), &err);
    memory = library->api.clCreateBuffer((iron__cl_context *)iron__opencl_context(device),
                                         IRON_CL_MEM_READ_WRITE, 16, NULL, &code);
    assert_int_equal(code, 0);
    assert_refused(OPS->buffer_wrap(device, (uintptr_t)memory, 17, &b, &err), IRON_E_ARG, &err);
    assert_refused(OPS->buffer_wrap(device, (uintptr_t)memory, 0, &b, &err), IRON_E_ARG, &err);
    assert_refused(OPS->buffer_wrap(device, 0, 16, &b, &err), IRON_E_ARG, &err);
    assert_null(b);
    assert_ok(OPS->buffer_wrap(device, (uintptr_t)memory, 16, &b, &err), &err);
    assert_true(b->is_borrowed && b->native == (uintptr_t)memory && !b->host);
    library->api.clReleaseMemObject(memory); /* the wrap keeps it */
    copy_in(in, b, 0, sizeof in);
    assert_int_equal(total_of(b, 1, 3), 4320);
    OPS->buffer_destroy(b);

    const intptr_t properties[] = {IRON_CL_CONTEXT_PLATFORM, (intptr_t)library->entries[0].platform,
                                   0};
    foreign =
        library->api.clCreateContext(properties, 1, &library->entries[0].id, NULL, NULL, &code);
    assert_int_equal(code, 0);
    memory = library->api.clCreateBuffer(foreign, IRON_CL_MEM_READ_WRITE, 16, NULL, &code);
    assert_int_equal(code, 0);
    assert_refused(OPS->buffer_wrap(device, (uintptr_t)memory, 16, &b, &err), IRON_E_ARG, &err);
    assert_says(&err, "iron_engine_native_context");
    assert_null(b);
    library->api.clReleaseMemObject(memory);
    library->api.clReleaseContext(foreign);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_at_offsets),     cmocka_unit_test(clears),
        cmocka_unit_test(copies_that_cannot_be), cmocka_unit_test(buffers_that_cannot_be),
        cmocka_unit_test(pinned_memory),         cmocka_unit_test(mapped_memory),
        cmocka_unit_test(managed_memory),        cmocka_unit_test(the_callers_own_buffers),
    };

    return cmocka_run_group_tests_name("opencl_memory", tests, open_all, close_all);
}
