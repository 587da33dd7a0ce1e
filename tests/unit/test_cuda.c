/* SPDX-License-Identifier: MIT */
/*
 * test_cuda.c: the CUDA backend with a fake driver (tests/fake_cuda): reasons why the driver cannot
 * be used, what is requested of it, its errors, and that a failure of any single call leaks
 * nothing.
 *
 * The backend's tables are called directly; gpu.c adds the check for failed devices, which the last
 * tests go through.
 */
#include "support.h"

#include "../fake_cuda/cuda_fixture.h"

#include <pthread.h>

static void no_library(void **state) {
    (void)state;
    setenv(LIBRARY, "/nowhere/libcuda.so.1", 1);
    assert_unavailable("no driver: /nowhere/libcuda.so.1: ", "unset IRON_CUDA_LIBRARY");
    setenv(LIBRARY, FAKE_CUDA_LIBRARY, 1);
    assert_unavailable("no driver: /nowhere/libcuda.so.1: ", "install the NVIDIA driver");
    assert_int_equal(atomic_load(&fake->calls), 0);
}

static void missing_functions(void **state) {
    folder f;

    (void)state;
    folder_make(&f);
#define MUST(name, parameters) check_without_symbol(&f, #name, true);
#define MAY(name, parameters)  check_without_symbol(&f, #name, false);
    IRON_CUDA_FUNCTIONS(MUST, MAY)
#undef MUST
#undef MAY
    cuda_forget();
    folder_remove(&f);
}

static void old_driver(void **state) {
    (void)state;
    fake->version = 11080;
    assert_unavailable("for CUDA 11.8) is too old: at least CUDA 12.0", "update the NVIDIA driver");
}

static void no_device(void **state) {
    (void)state;
    fake->devices = 0;
    assert_unavailable("cuInit failed: CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected");
}

static void init_fails(void **state) {
    size_t count;

    fail_after(0, IRON_CUDA_ERROR_UNKNOWN);
    assert_unavailable("cuDriverGetVersion failed: CUDA_ERROR_UNKNOWN", "a driver text");
    reset_driver(state);
    fail_after(1, 4242);
    assert_unavailable("cuInit failed: CUDA error 4242", "nvidia-smi");
    reset_driver(state);
    assert_int_equal(ops->probe(&count, NULL), IRON_OK);
    fail_after(0, IRON_CUDA_ERROR_UNKNOWN);
    assert_int_equal(ops->probe(&count, NULL), IRON_E_UNSUPPORTED);
    assert_string_equal(fake->failed, "cuDeviceGetCount");
    fake->devices = 0;
    assert_unavailable("no device", "CUDA_VISIBLE_DEVICES");
}

static void *probe_main(void *argument) {
    size_t *count = argument;

    for (int k = 0; k < 100; k++)
        if (ops->probe(count, NULL) != IRON_OK)
            *count = 0;
    return NULL;
}

static void threads_probe_at_once(void **state) {
    pthread_t threads[8];
    size_t counts[8] = {0};

    (void)state;
    for (int k = 0; k < 8; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, probe_main, &counts[k]), 0);
    for (int k = 0; k < 8; k++) {
        assert_int_equal(pthread_join(threads[k], NULL), 0);
        assert_int_equal(counts[k], FAKE_CUDA_DEVICES);
    }
    assert_int_equal(atomic_load(&fake->calls), 2 + 800); /* version and init only once */
}

static void module_versions(void **state) {
    static const char *const lines[][2] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Mar  3 2026\n",
         "580.159.04"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build",
         "570.86.15"},
        {"NVRM version: nothing of 2026 and x86.64\n", ""},
        {"580.1", "580.1"},
        {"", ""},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(lines); k++) {
        char version[32] = "?";

        module_version(lines[k][0], version, sizeof version);
        assert_string_equal(version, lines[k][1]);
    }
}

static void descriptions(void **state) {
    iron__gpu_info info;
    iron_error err;

    (void)state;
    assert_ok(ops->describe(1, &info, &err), &err);
    assert_string_equal(info.name, "Fake card 1");
    assert_int_equal(strncmp(info.driver, "CUDA 13.0", 9), 0);
    assert_true(info.is_gpu && info.can_graph && info.can_overlap && info.can_cooperate);
    assert_int_equal(info.units, 132);
    assert_int_equal(info.group_threads_max, 1024);
    assert_int_equal(info.local_bytes_max, 232448);
    assert_int_equal(info.memory_bytes, 64 << 20);
    assert_int_equal(info.cache_bytes, 50 << 20);
    assert_int_equal(info.version, 900);
    assert_true(info.has_textures);
    assert_int_equal(info.persisting_bytes_max, 30 << 20);
    for (int k = 0; k < IRON_GPU_STRATEGIES; k++)
        assert_string_equal(info.lacks[k], "");
    assert_refused(ops->describe(2, &info, &err), IRON_E_ARG, &err);
    assert_says(&err, "no device 2; there are 2");
}

static void older_cards(void **state) {
    iron__gpu_info info;

    (void)state;
    fake->capability = 86;
    fake->has_concurrent_managed = fake->is_cooperative = fake->maps_host = fake->persisting_max =
        0;
    assert_int_equal(ops->describe(0, &info, NULL), IRON_OK);
    assert_int_equal(info.version, 860);
    assert_false(info.can_overlap || info.can_cooperate);
    assert_int_equal(info.persisting_bytes_max, 0);
    assert_string_equal(info.lacks[IRON_GPU_UVM], "");
    assert_non_null(strstr(info.lacks[IRON_GPU_UVM_PREFETCH], "at the same time"));
    assert_non_null(strstr(info.lacks[IRON_GPU_ZERO_COPY], "map"));
    fake->has_managed = 0;
    assert_int_equal(ops->describe(0, &info, NULL), IRON_OK);
    assert_non_null(strstr(info.lacks[IRON_GPU_UVM], "managed"));
    assert_non_null(strstr(info.lacks[IRON_GPU_UVM_PREFETCH], "managed"));
}

static void full_sequence(void **state) {
    unsigned char host[1024];
    fixture s = make_fixture();
    iron_error err;

    (void)state;
    for (size_t k = 0; k < sizeof host; k++)
        host[k] = (unsigned char)(k * 7);
    for (int k = 0; k < 4; k++)
        assert_int_equal(s.buffers[k]->native % IRON_GPU_ALIGNMENT, 0);
    assert_true(s.buffers[IRON_GPU_MEMORY_PINNED]->native == 0);
    assert_true(s.buffers[IRON_GPU_MEMORY_MAPPED]->native != 0);
    assert_null(s.buffers[IRON_GPU_MEMORY_DEVICE]->host);
    assert_true(s.wrapped->native == s.buffers[0]->native + 256 && s.wrapped->native_offset == 4);
    assert_true(ops->context(s.device) != 0);
    assert_ok(run_commands(&s, host, &err), &err);
    for (size_t k = 0; k < 512; k++)
        assert_int_equal(host[k], (unsigned char)(k * 7)); /* through device and managed memory */
    for (size_t k = 0; k < 16; k++)
        assert_int_equal(((unsigned char *)s.buffers[IRON_GPU_MEMORY_MAPPED]->host)[32 + k],
                         (unsigned char)(k * 7));
    assert_int_equal(((unsigned char *)s.buffers[0]->native)[BYTES - 1], 0); /* cleared */
    assert_int_equal(fake->default_stream_commands, 0);
    assert_int_equal(fake->launches, 3 + 2);
    assert_int_equal(fake->replays, 2);
    assert_int_equal(fake->prefetches, 1);
    assert_int_equal(fake->synchronizations, 0);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 0);
}

static const struct {
    int code;
    const char *word;
} failures[] = {{IRON_CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
                {IRON_CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                {IRON_CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"},
                {IRON_CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                {4242, "CUDA error 4242"}};

static void every_call_fails_once(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(failures); k++) {
        unsigned n = 1;

        while (fail_once(n, failures[k].code, failures[k].word))
            n++;
        assert_true(n > 180);
    }
}

/* A lost card fails every call, including releases. */
static void every_call_fails_from_one_on(void **state) {
    bool is_over = false;

    (void)state;
    for (unsigned n = 1; !is_over; n++) {
        unsigned char host[1024] = {0};
        fixture s = {0};
        iron_error err = {0};

        reset_driver(NULL);
        fake->fail_at = n;
        fake->fail_with = IRON_CUDA_ERROR_ILLEGAL_ADDRESS;
        fake->keeps_failing = true;
        if (make_objects(&s, &err) || run_commands(&s, host, &err))
            assert_says(&err, "CUDA_ERROR_ILLEGAL_ADDRESS");
        clean_up(&s);
        assert_nothing_lives();
        is_over = !fake->failed;
    }
}

static void sticky_errors_mark_the_device(void **state) {
    static const int sticky_codes[] = {214, 220, 700, 702, 709, 710, 714, 715,
                                       716, 717, 718, 719, 802, 999, 4242};
    static const struct {
        int code;
        iron_status status;
    } call_codes[] = {
        {1, IRON_E_ARG},           {2, IRON_E_NOMEM},         {400, IRON_E_ARG},
        {701, IRON_E_ARG},         {600, IRON_E_STATE},       {901, IRON_E_STATE},
        {906, IRON_E_STATE},       {304, IRON_E_IO},          {801, IRON_E_UNSUPPORTED},
        {900, IRON_E_UNSUPPORTED}, {209, IRON_E_UNSUPPORTED}, {720, IRON_E_UNSUPPORTED}};
    fixture s = make_fixture();
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(call_codes); k++) {
        fail_after(1, call_codes[k].code);
        assert_refused(iron__gpu_queue_wait(s.queue, &err), call_codes[k].status, &err);
        assert_int_equal(err.native, call_codes[k].code);
        assert_int_equal(s.device->failure.status, IRON_OK);
    }
    for (size_t k = 0; k < COUNT(sticky_codes); k++) {
        memset(&s.device->failure, 0, sizeof s.device->failure);
        fail_after(1, sticky_codes[k]);
        assert_refused(iron__gpu_queue_wait(s.queue, &err), IRON_E_IO, &err);
        assert_says(&err, "cuda: cuStreamSynchronize failed: CUDA");
        assert_memory_equal(&s.device->failure, &err, sizeof err);
    }
    fail_after(0, IRON_CUDA_ERROR_UNKNOWN); /* the first error stays */
    assert_int_equal(ops->queue->wait(s.queue, NULL), IRON_E_IO);
    assert_int_equal(s.device->failure.native, 4242);
    clean_up(&s);
    assert_nothing_lives();
}

static void launch_arguments(void **state) {
    fixture s = make_fixture();
    unsigned char want[20];
    const fake_launch *last = &fake->last;

    (void)state;
    memcpy(want, &s.buffers[0]->native, 8);
    memcpy(want + 8, &(uint32_t){SMALL}, 4);
    memcpy(want + 12, &(uint64_t){LARGE}, 8);
    for (uint32_t flags = 0; flags < 4; flags++) {
        memset(&fake->last, 0, sizeof fake->last);
        assert_int_equal(launch(&s, flags, NULL), IRON_OK);
        assert_string_equal(last->kernel, "count");
        assert_true(last->grid[0] == 7 && last->grid[1] == 3 && last->grid[2] == 1);
        assert_true(last->block[0] == 128 && last->block[1] == 1 && last->block[2] == 1);
        assert_int_equal(last->argument_bytes, sizeof want);
        assert_memory_equal(last->arguments, want, sizeof want);
        assert_true(last->is_extended == (flags != 0));
        assert_true(last->may_overlap == ((flags & IRON_GPU_LAUNCH_OVERLAP) != 0));
        assert_true(last->is_cooperative == ((flags & IRON_GPU_LAUNCH_COOPERATIVE) != 0));
    }
    clean_up(&s);
}

static void invalid_launches(void **state) {
    fixture s = make_fixture();
    iron__gpu_arg args[17];
    iron__gpu_launch l = {.kernel = s.kernel, .groups = {1}, .threads = {32}, .args = args};
    iron_error err;

    (void)state;
    for (int k = 0; k < 17; k++)
        args[k] = IRON_GPU_BUFFER(s.buffers[0]);
    assert_ok(iron__gpu_kernel_find(s.program->device, s.program, "wide", &l.kernel, &err), &err);
    l.arg_count = 16;
    assert_ok(iron__gpu_run(s.queue, &l, &err), &err);
    assert_int_equal(fake->last.argument_bytes, 16 * 8);
    l.arg_count = 17;
    assert_refused(iron__gpu_run(s.queue, &l, &err), IRON_E_ARG, &err);
    l.arg_count = 16;
    args[5].buffer = s.buffers[IRON_GPU_MEMORY_PINNED];
    assert_refused(iron__gpu_run(s.queue, &l, &err), IRON_E_ARG, &err);
    assert_says(&err, "argument 5 of kernel 'wide'");
    args[5].buffer = s.buffers[IRON_GPU_MEMORY_MAPPED];
    l.threads[1] = 33;
    assert_refused(iron__gpu_run(s.queue, &l, &err), IRON_E_ARG, &err);
    assert_says(&err, "1056 threads");
    l.threads[1] = 0;
    l.groups[0] = 0;
    assert_refused(iron__gpu_run(s.queue, &l, &err), IRON_E_ARG, &err);
    l.groups[0] = 265;
    l.flags = IRON_GPU_LAUNCH_COOPERATIVE;
    assert_refused(iron__gpu_run(s.queue, &l, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "launch at most 264");
    s.device->info.can_cooperate = s.device->info.can_overlap = false;
    assert_refused(iron__gpu_run(s.queue, &l, &err), IRON_E_UNSUPPORTED, &err);
    l.flags = IRON_GPU_LAUNCH_OVERLAP;
    assert_ok(iron__gpu_run(s.queue, &l, &err), &err);
    assert_false(fake->last.may_overlap);
    fail_after(1, IRON_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_refused(iron__gpu_run(s.queue, &l, &err), IRON_E_ARG, &err);
    assert_says(&err, "cuLaunchKernel of 'wide' failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

static void memory_runs_out(void **state) {
    fixture s = make_fixture();
    iron__gpu_buffer *buffer = s.wrapped;
    const size_t free_bytes = ((size_t)64 << 20) - 2 * (size_t)BYTES;
    char text[64];
    iron_error err;

    (void)state;
    for (int k = 0; k < 4; k++) {
        iron__gpu_memory memory = (iron__gpu_memory)k;

        assert_refused(iron__gpu_buffer_create(s.device, memory, 0, &buffer, &err), IRON_E_ARG,
                       &err);
        assert_refused(iron__gpu_buffer_create(s.device, memory, (size_t)65 << 20, &buffer, &err),
                       IRON_E_NOMEM, &err);
        assert_null(buffer);
        assert_says(&err, "68157440 bytes");
        assert_int_equal(s.device->failure.status, IRON_OK);
    }
    assert_int_equal(
        iron__gpu_buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, free_bytes + 1, &buffer, &err),
        IRON_E_NOMEM);
    snprintf(text, sizeof text, "%zu free on the device", free_bytes);
    assert_says(&err, text);
    assert_refused(iron__gpu_buffer_create(s.device, IRON_GPU_MEMORY_MANAGED, free_bytes / 2 + 1,
                                           &buffer, &err),
                   IRON_E_NOMEM, &err);
    assert_says(&err, "more than half");
    fake->misalignment = 128;
    assert_refused(iron__gpu_buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, 64, &buffer, &err),
                   IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "not a multiple of 256");
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 0);
}

static void wrapped_memory_is_checked(void **state) {
    fixture s = make_fixture(), other = {0};
    uintptr_t address = s.buffers[0]->native;
    iron__gpu_buffer *buffer = NULL;
    uint32_t ordinary[4];
    iron_error err;

    (void)state;
#define REFUSED(device, native, bytes, word)                                                       \
    do {                                                                                           \
        assert_refused(iron__gpu_buffer_wrap(device, native, bytes, &buffer, &err), IRON_E_ARG,    \
                       &err);                                                                      \
        assert_says(&err, word);                                                                   \
    } while (0)
    REFUSED(s.device, 0, 4, "the buffer is 0");
    REFUSED(s.device, address, 0, "a buffer of 0 bytes");
    REFUSED(s.device, address + 2, 4, "not a multiple of 4");
    REFUSED(s.device, address + 4, BYTES, "has 4092 bytes from there");
    REFUSED(s.device, (uintptr_t)ordinary, sizeof ordinary, "not a CUDA address");
    REFUSED(s.device, (uintptr_t)s.buffers[IRON_GPU_MEMORY_PINNED]->host, 4, "host memory");
    assert_ok(ops->device_open(1, &other.device, &err), &err);
    REFUSED(other.device, address, BYTES, "belongs to device 0, not to device 1");
#undef REFUSED
    assert_int_equal(s.device->failure.status, IRON_OK);
    assert_ok(iron__gpu_buffer_wrap(other.device, s.buffers[IRON_GPU_MEMORY_MANAGED]->native, BYTES,
                                    &buffer, &err),
              &err);
    assert_true(buffer->memory == IRON_GPU_MEMORY_MANAGED && buffer->host && buffer->is_borrowed);
    iron__gpu_buffer_destroy(buffer);
    assert_false(iron__gpu_is_pinned(s.device, ordinary, sizeof ordinary));
    assert_false(iron__gpu_is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_PINNED]->host, BYTES + 1));
    assert_false(iron__gpu_is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_MANAGED]->host, BYTES));
    assert_true(iron__gpu_is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_PINNED]->host, BYTES));
    assert_true(iron__gpu_is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_MAPPED]->host, 1));
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&other);
    clean_up(&s);
    assert_nothing_lives();
}

static void ranges_are_checked(void **state) {
    fixture s = make_fixture();
    iron__gpu_copy both = {.from = s.buffers[0], .from_host = s.buffers, .to_host = &s, .bytes = 1};
    iron__gpu_copy wrapped = {.bytes = 16};
    unsigned char got[16];
    iron_error err;

    (void)state;
    assert_refused(copy(&s, 0, 2, 8, 0, BYTES, &err), IRON_E_ARG, &err);
    assert_refused(copy(&s, 0, 2, 0, SIZE_MAX, 2, &err), IRON_E_ARG, &err);
    assert_refused(copy(&s, 1, 3, 0, 0, 4, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_copy_bytes(s.queue, &both, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_clear(s.queue, s.buffers[0], 2, 4, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_clear(s.queue, s.buffers[0], 0, 6, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_clear(s.queue, s.buffers[0], 4, BYTES, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_clear(s.queue, s.buffers[1], 0, 4, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_prefetch(s.queue, s.buffers[0], 4, &err), IRON_E_ARG, &err);
    assert_refused(iron__gpu_prefetch(s.queue, s.buffers[2], BYTES + 1, &err), IRON_E_ARG, &err);
    assert_ok(copy(&s, 0, 2, BYTES, 0, 0, &err), &err);
    memset((void *)s.buffers[0]->native, 7, BYTES);
    assert_ok(iron__gpu_clear(s.queue, s.wrapped, 4, 8, &err), &err); /* counted from byte 260 */
    for (size_t k = 0; k < BYTES; k++)
        assert_int_equal(((char *)s.buffers[0]->native)[k], k >= 264 && k < 272 ? 0 : 7);
    wrapped.from = s.wrapped;
    wrapped.to_host = got;
    assert_ok(iron__gpu_copy_bytes(s.queue, &wrapped, &err), &err);
    assert_true(got[0] == 7 && got[3] == 7 && got[4] == 0 && got[11] == 0 && got[12] == 7);
    assert_ok(iron__gpu_clear(s.queue, s.buffers[0], BYTES, 0, &err), &err);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

/* A user's text is compiled by NVRTC; what it says goes to standard error. */
static void users_programs(void **state) {
    const iron__gpu_image good = {.name = "mine", .source = "sm_90\ncount p48\n", .is_users = true};
    const iron__gpu_image bad = {.name = "mine", .source = "sm_90\nerror\n", .is_users = true};
    fixture s = make_fixture();
    iron__gpu_program *program = NULL;
    iron__gpu_kernel *kernel = NULL;
    iron_error err;

    (void)state;
    setenv("IRON_NVRTC_LIBRARY", "none", 1);
    assert_refused(iron__gpu_program_load(s.device, &good, &program, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "no nvcc and no NVRTC");
    setenv("IRON_NVRTC_LIBRARY", FAKE_CUDA_LIBRARY, 1);
    assert_refused(iron__gpu_program_load(s.device, &good, &program, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "nvrtcCreateProgram");
    setenv("IRON_NVRTC_LIBRARY", FAKE_NVRTC_LIBRARY, 1);
    assert_refused(iron__gpu_program_load(s.device, &bad, &program, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "NVRTC_ERROR_COMPILATION");
    assert_ok(iron__gpu_program_load(s.device, &good, &program, &err), &err);
    assert_ok(iron__gpu_kernel_find(s.device, program, "count", &kernel, &err), &err);
    iron__gpu_program_unload(s.device, program);
    unsetenv("IRON_NVRTC_LIBRARY");
    clean_up(&s);
}

static void invalid_programs(void **state) {
    static const char empty[1];
    const iron__gpu_image none = {
        .name = "tokens", .machine_code = empty, .machine_code_end = empty};
    const iron__gpu_image old = {.name = "tokens", .machine_code = "sm_70\ncount p48\n"};
    fixture s = make_fixture();
    iron__gpu_program *program = NULL;
    iron__gpu_kernel *kernel = s.kernel;
    iron__gpu_buffer *constant = NULL;
    iron_error err;

    (void)state;
    assert_refused(iron__gpu_program_load(s.device, &none, &program, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "nvcc");
    assert_refused(iron__gpu_program_load(s.device, &old, &program, &err), IRON_E_UNSUPPORTED,
                   &err);
    assert_says(&err, "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_says(&err, "for sm_90; rebuild with IRON_CUDA_ARCHS=90");
    assert_refused(iron__gpu_kernel_find(s.program->device, s.program, "absent", &kernel, &err),
                   IRON_E_ARG, &err);
    assert_says(&err, "no kernel 'absent'");
    assert_null(kernel);
    assert_true(s.constant->is_borrowed && s.constant->native != 0);
    assert_refused(
        iron__gpu_constant_find(s.program->device, s.program, "absent", 1, &constant, &err),
        IRON_E_ARG, &err);
    assert_says(&err, "no constant memory 'absent'");
    assert_refused(iron__gpu_constant_find(s.program->device, s.program, FAKE_CONSTANT,
                                           FAKE_CONSTANT_BYTES + 1, &constant, &err),
                   IRON_E_ARG, &err);
    assert_null(constant);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
}

/* After a failed recording the queue executes commands again. */
static void failed_recordings(void **state) {
    static const struct {
        unsigned begin, end; /* calls before the failing one; 9: none fails */
    } places[] = {{1, 9}, {2, 9}, {9, 1}, {9, 2}, {9, 3}, {9, 4}};
    fixture s = make_fixture();
    iron_error err;

    (void)state;
    assert_refused(iron__gpu_graph_begin(s.default_queue, &err), IRON_E_UNSUPPORTED, &err);
    for (size_t k = 0; k < COUNT(places); k++) {
        iron__gpu_graph *graph = NULL;
        unsigned before;

        fail_after(places[k].begin, IRON_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        if (places[k].begin == 9) {
            assert_ok(iron__gpu_graph_begin(s.queue, &err), &err);
            fail_after(places[k].end, IRON_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            assert_refused(iron__gpu_graph_end(s.queue, &graph, &err), IRON_E_STATE, &err);
        } else {
            assert_refused(iron__gpu_graph_begin(s.queue, &err), IRON_E_STATE, &err);
        }
        assert_null(graph);
        before = fake->launches;
        assert_ok(launch(&s, 0, &err), &err);
        assert_int_equal(fake->launches, before + 1);
        assert_int_equal(fake->live[FAKE_GRAPH] + fake->live[FAKE_EXEC], 0);
    }
    clean_up(&s);
    assert_nothing_lives();
}

/* Without concurrent access the host must not touch managed memory while a kernel runs. */
static void managed_memory_on_older_cards(void **state) {
    fixture s = {0};
    iron_error err;

    (void)state;
    fake->has_concurrent_managed = 0;
    s = make_fixture();
    assert_ok(iron__gpu_host_begin(s.queue, s.buffers[IRON_GPU_MEMORY_MAPPED], &err), &err);
    assert_int_equal(fake->synchronizations, 0);
    assert_ok(iron__gpu_host_begin(s.queue, s.buffers[IRON_GPU_MEMORY_MANAGED], &err), &err);
    assert_int_equal(fake->synchronizations, 1);
    assert_refused(iron__gpu_prefetch(s.queue, s.buffers[IRON_GPU_MEMORY_MANAGED], 4, &err),
                   IRON_E_UNSUPPORTED, &err);
    clean_up(&s);
    fake->has_managed = fake->maps_host = 0;
    memset(&s, 0, sizeof s);
    assert_ok(ops->device_open(0, &s.device, &err), &err);
    for (int k = IRON_GPU_MEMORY_MANAGED; k <= IRON_GPU_MEMORY_MAPPED; k++)
        assert_refused(iron__gpu_buffer_create(s.device, (iron__gpu_memory)k, 4, &s.wrapped, &err),
                       IRON_E_UNSUPPORTED, &err);
    clean_up(&s);
}

/* Without optional functions the backend uses others or reports that the feature is missing. */
static void without_optional_functions(void **state) {
    static const char *const names[] = {"cuLaunchKernelEx", "cuMemPrefetchAsync_v2",
                                        "cuMemPrefetchAsync"};
    fixture s;
    iron_error err;
    folder f;

    (void)state;
    folder_make(&f);
    for (size_t count = 2; count <= COUNT(names); count++) {
        file_name path = name_in(&f, names[count - 1]);
        void *library;

        cuda_forget();
        copy_library_without(FAKE_CUDA_LIBRARY, path.path, names, count);
        setenv(LIBRARY, path.path, 1);
        library = dlopen(path.path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        fake = control_of(library, true);
        s = make_fixture();
        assert_false(s.device->info.can_overlap || s.device->info.can_cooperate);
        assert_int_equal(s.device->info.persisting_bytes_max, 0);
        assert_ok(launch(&s, IRON_GPU_LAUNCH_OVERLAP, &err), &err);
        assert_refused(launch(&s, IRON_GPU_LAUNCH_COOPERATIVE, &err), IRON_E_UNSUPPORTED, &err);
        if (count == 2)
            assert_ok(iron__gpu_prefetch(s.queue, s.buffers[IRON_GPU_MEMORY_MANAGED], 4, &err),
                      &err);
        else
            assert_non_null(strstr(s.device->info.lacks[IRON_GPU_UVM_PREFETCH], "driver"));
        clean_up(&s);
        assert_nothing_lives();
        dlclose(library);
    }
    cuda_forget();
    folder_remove(&f);
}

static iron__gpu_resources resources_of(fixture *s, uint32_t threads, size_t local_bytes) {
    iron__gpu_resources resources = {.registers = 7};
    iron_error err;

    assert_ok(
        iron__gpu_kernel_resources(s->device, s->kernel, threads, local_bytes, &resources, &err),
        &err);
    return resources;
}

static void kernel_resources_from_driver(void **state) {
    fixture s = make_fixture();
    iron__gpu_resources f = resources_of(&s, 256, 0);

    (void)state;
    assert_int_equal(f.registers, 40);
    assert_int_equal(f.spill_bytes, 24);
    assert_int_equal(f.local_bytes, 1024);
    assert_int_equal(f.groups, 2);
    assert_true(f.occupancy == 2 * 256 / 2048.0);
    f = resources_of(&s, 1024, 200 << 10); /* more than any launch so far */
    assert_int_equal(f.local_bytes, 1024 + (200 << 10));
    assert_int_equal(f.groups, 2);
    assert_true(f.occupancy == 1.0);
    fake->groups_max = 0;
    f = resources_of(&s, 256, 0);
    assert_true(f.registers == 40 && f.groups == 0 && f.occupancy == 0);
    clean_up(&s);
    assert_nothing_lives();
}

/* For invalid launches only the kernel's own figures are reported. */
static void kernel_resources_of_invalid_launches(void **state) {
    static const struct {
        uint32_t threads;
        size_t local_bytes;
    } requests[] = {{0, 0}, {1025, 0}, {UINT32_MAX, 0}, {32, FAKE_LOCAL_BYTES}, {32, SIZE_MAX / 2}};
    fixture s = make_fixture();

    (void)state;
    for (size_t k = 0; k < COUNT(requests); k++) {
        iron__gpu_resources f = resources_of(&s, requests[k].threads, requests[k].local_bytes);

        assert_true(f.registers == 40 && f.spill_bytes == 24);
        assert_int_equal(f.local_bytes, 1024 + requests[k].local_bytes);
        assert_true(f.groups == 0 && f.occupancy == 0);
    }
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

/* Each query fails in turn with a sticky error: the figure is 0, and the device stays usable. */
static void unreported_kernel_resources(void **state) {
    fixture s = make_fixture();
    unsigned calls = atomic_load(&fake->calls);

    (void)state;
    resources_of(&s, 128, 4096);
    calls = atomic_load(&fake->calls) - calls;
    assert_int_equal(calls, 7); /* push, three attributes, occupancy, threads, pop */
    for (unsigned k = 0; k < calls; k++) {
        iron__gpu_resources f;

        fail_after(k, IRON_CUDA_ERROR_ILLEGAL_ADDRESS);
        f = resources_of(&s, 128, 4096);
        assert_int_equal(s.device->failure.status, IRON_OK);
        assert_int_equal(fake->contexts_pushed, 0);
        assert_int_equal(f.registers, k == 0 || k == 1 ? 0 : 40);
        assert_int_equal(f.spill_bytes, k == 0 || k == 2 ? 0 : 24);
        assert_int_equal(f.local_bytes, k == 0 || k == 3 ? 0 : 1024 + 4096);
        assert_int_equal(f.groups, k == 0 || k == 4 ? 0 : 2);
        assert_true(f.occupancy == (k == 0 || k == 4 || k == 5 ? 0 : 2 * 128 / 2048.0));
    }
    clean_up(&s);
    assert_nothing_lives();
}

static iron_status launch_local(fixture *s, size_t bytes, iron_error *err) {
    return launch_with(s, 0, &(iron__gpu_launch){.local_bytes = bytes}, err);
}

static void dynamic_local_memory(void **state) {
    static const size_t sizes[] = {1, 48 << 10, (48 << 10) + 1, 200 << 10, 100, 0, 200 << 10};
    fixture s = make_fixture(), again = s;
    unsigned before;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        assert_ok(launch_local(&s, sizes[k], &err), &err);
        assert_int_equal(fake->last.local_bytes, sizes[k]);
    }
    before = atomic_load(&fake->calls); /* an allowed size is not requested again */
    assert_ok(launch_local(&s, 150 << 10, &err), &err);
    assert_int_equal(atomic_load(&fake->calls), before + 3);
    /* found again it is the same kernel, with the same limit */
    assert_ok(iron__gpu_kernel_find(s.program->device, s.program, "count", &again.kernel, &err),
              &err);
    assert_ptr_equal(again.kernel, s.kernel);
    assert_ok(iron__gpu_kernel_find(s.program->device, s.program, "wide", &again.kernel, &err),
              &err);
    assert_ptr_not_equal(again.kernel, s.kernel);
    assert_ok(launch_local(&s, FAKE_LOCAL_BYTES - 1024, &err), &err);
    assert_refused(launch_local(&s, FAKE_LOCAL_BYTES - 1023, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err,
                "kernel 'count' with 231425 bytes of local memory per group plus 1024 static");
    assert_says(&err, "the device has 232448");
    assert_refused(launch_local(&s, FAKE_LOCAL_BYTES + 1, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "232449 bytes of local memory per group; the device has 232448");
    assert_refused(launch_local(&s, SIZE_MAX, &err), IRON_E_UNSUPPORTED, &err);
    assert_int_equal(s.device->failure.status, IRON_OK);
    assert_ok(launch_local(&s, FAKE_LOCAL_BYTES - 1024, &err), &err);
    clean_up(&s);
    assert_nothing_lives();
}

/* Other errors are reported with the driver's text. */
static void refused_local_memory(void **state) {
    fixture s = make_fixture();
    iron_error err;

    (void)state;
    fail_after(1, IRON_CUDA_ERROR_NOT_SUPPORTED);
    assert_refused(launch_local(&s, 150 << 10, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "cuFuncSetAttribute failed: CUDA_ERROR_NOT_SUPPORTED");
    fail_after(1, IRON_CUDA_ERROR_INVALID_VALUE);
    fake->keeps_failing = true; /* nor does it report the static size */
    assert_refused(launch_local(&s, 150 << 10, &err), IRON_E_ARG, &err);
    assert_says(&err, "cuFuncSetAttribute failed: CUDA_ERROR_INVALID_VALUE");
    fake->fail_at = 0;
    assert_ok(launch_local(&s, 150 << 10, &err), &err); /* the limit was not recorded */
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

static iron_status launch_persisting(fixture *s, const iron__gpu_buffer *buffer, size_t bytes,
                                     uint32_t flags, iron_error *err) {
    memset(&fake->last, 0, sizeof fake->last);
    return launch_with(s, flags,
                       &(iron__gpu_launch){.persisting = buffer, .persisting_bytes = bytes}, err);
}

static void access_windows(void **state) {
    fixture s = make_fixture();
    iron__gpu_buffer *large = NULL;
    const fake_launch *last = &fake->last;
    iron_error err;

    (void)state;
    assert_ok(iron__gpu_buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, 60 << 20, &large, &err),
              &err);
    assert_ok(launch_persisting(&s, large, 4 << 20, 0, &err), &err);
    assert_true(last->is_extended && !last->may_overlap && !last->is_cooperative);
    assert_ptr_equal(last->window, large->native);
    assert_int_equal(last->window_bytes, 4 << 20);
    assert_true(last->window_ratio == 1.0F);
    assert_ok(launch_persisting(&s, large, RESERVED, 3, &err), &err);
    assert_true(last->window_ratio == 1.0F && last->may_overlap && last->is_cooperative);
    assert_ok(launch_persisting(&s, large, 4 * RESERVED, 0, &err), &err); /* a quarter fits */
    assert_int_equal(last->window_bytes, 4 * RESERVED);
    assert_true(last->window_ratio == 0.25F);
    assert_ok(launch_persisting(&s, large, 60 << 20, 0, &err), &err); /* longer than a window */
    assert_int_equal(last->window_bytes, 48 << 20);
    assert_true(last->window_ratio > 0.1666F && last->window_ratio < 0.1667F);
    assert_ok(launch_persisting(&s, s.wrapped, 64, 0, &err), &err);
    assert_true((uintptr_t)last->window == s.buffers[0]->native + 260);
    assert_refused(launch_persisting(&s, large, (60 << 20) + 1, 0, &err), IRON_E_ARG, &err);
    assert_says(&err, "62914561 persisting bytes of a buffer with 62914560 bytes");
    assert_refused(launch_persisting(&s, s.buffers[IRON_GPU_MEMORY_PINNED], 4, 0, &err), IRON_E_ARG,
                   &err);
    assert_says(&err, "with 0 bytes on the device");
    assert_ok(launch_persisting(&s, large, 0, 0, &err), &err);
    assert_true(!last->is_extended && !last->window);
    assert_ok(iron__gpu_cache_reserve(s.device, 0, &err),
              &err); /* without a reservation there is no window */
    assert_ok(launch_persisting(&s, large, 4096, 0, &err), &err);
    assert_true(!last->is_extended && !last->window);
    iron__gpu_buffer_destroy(large);
    clean_up(&s);
    assert_nothing_lives();
}

static void cache_reservation(void **state) {
    fixture s = make_fixture();
    iron__gpu_device *other = NULL;
    iron_error err;

    (void)state;
    assert_int_equal(fake->reserved[0], RESERVED);
    assert_ok(iron__gpu_cache_reserve(s.device, 2 * RESERVED, &err), &err);
    assert_int_equal(fake->reserved[0], 2 * RESERVED);
    assert_int_equal(fake->cache_resets, 0);
    assert_ok(iron__gpu_cache_reserve(s.device, 0, &err), &err);
    assert_int_equal(fake->reserved[0], 0);
    assert_int_equal(fake->cache_resets, 1);
    /* closing ends it, although another device holds the context */
    assert_ok(ops->device_open(0, &other, &err), &err);
    assert_ok(iron__gpu_cache_reserve(other, RESERVED, &err), &err);
    ops->device_close(other);
    assert_int_equal(fake->reserved[0], 0);
    assert_int_equal(fake->cache_resets, 2);
    fake->grant_max = RESERVED / 2; /* the granted size counts */
    assert_ok(iron__gpu_cache_reserve(s.device, RESERVED, &err), &err);
    assert_ok(launch_persisting(&s, s.buffers[0], BYTES, 0, &err), &err);
    assert_true(fake->last.window_ratio == 1.0F);
    fake->grant_max = BYTES / 4;
    assert_ok(iron__gpu_cache_reserve(s.device, RESERVED, &err), &err);
    assert_ok(launch_persisting(&s, s.buffers[0], BYTES, 0, &err), &err);
    assert_true(fake->last.window_ratio == 0.25F);
    fake->grant_max = 0;
    assert_refused(iron__gpu_cache_reserve(s.device, RESERVED, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "reserved 0 of 8388608 bytes of cache");
    fail_after(3, IRON_CUDA_ERROR_INVALID_VALUE); /* set, but not readable: undone */
    fake->grant_max = SIZE_MAX;
    assert_refused(iron__gpu_cache_reserve(s.device, RESERVED, &err), IRON_E_ARG, &err);
    assert_says(&err, "cuCtxGetLimit");
    assert_int_equal(fake->reserved[0], 0);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
}

static void textures(void **state) {
    fixture s = make_fixture();
    iron__gpu_buffer *buffer = NULL;
    uint64_t handle = 7;
    iron_error err;

    (void)state;
    assert_int_equal(fake->live[FAKE_TEXTURE], 1);
    assert_int_equal(fake->texture_bytes, BYTES);
    assert_ok(
        iron__gpu_buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, (4 << 20) + 3, &buffer, &err),
        &err);
    assert_ok(iron__gpu_texture_create(buffer, &handle, &err), &err); /* whole elements only */
    assert_int_equal(fake->texture_bytes, 4 << 20);
    iron__gpu_texture_destroy(s.device, handle);
    iron__gpu_texture_destroy(s.device, 0);
    iron__gpu_buffer_destroy(buffer);
    assert_ok(
        iron__gpu_buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, (4 << 20) + 4, &buffer, &err),
        &err);
    assert_refused(iron__gpu_texture_create(buffer, &handle, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "a texture of 1048577 elements; the device supports at most 1048576");
    assert_true(handle == 0);
    iron__gpu_buffer_destroy(buffer);
    assert_refused(iron__gpu_texture_create(s.wrapped, &handle, &err), IRON_E_ARG, &err);
    assert_says(&err, "not a multiple of 512");
    assert_refused(iron__gpu_texture_create(s.buffers[IRON_GPU_MEMORY_PINNED], &handle, &err),
                   IRON_E_ARG, &err);
    assert_ok(iron__gpu_buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, 3, &buffer, &err), &err);
    assert_refused(iron__gpu_texture_create(buffer, &handle, &err), IRON_E_ARG, &err);
    assert_says(&err, "a texture of 3 bytes");
    iron__gpu_buffer_destroy(buffer);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 0);
}

/* A leaked texture is destroyed with the context and counted. */
static void leaked_textures_are_detected(void **state) {
    fixture s = make_fixture();

    (void)state;
    s.texture = 0;
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 1);
}

/* Through gpu.h: refused if unsupported, and with the error of a failed device. */
static void unsupported_features(void **state) {
    fixture s = make_fixture();
    iron__gpu_resources resources = {.registers = 7};
    uint64_t handle = 7;
    unsigned calls;
    iron_error err;

    (void)state;
    assert_refused(iron__gpu_cache_reserve(s.device, (30 << 20) + 1, &err), IRON_E_ARG, &err);
    assert_says(&err, "Fake card 0 can reserve at most 31457280 bytes of its cache, not 31457281");
    assert_ok(iron__gpu_cache_reserve(s.device, 30 << 20, &err), &err);
    assert_ok(iron__gpu_cache_reserve(s.device, 0, &err), &err);
    assert_ok(iron__gpu_texture_create(s.buffers[2], &handle, &err), &err);
    iron__gpu_texture_destroy(s.device, handle);
    iron__gpu_texture_destroy(s.device, 0);
    s.device->info.persisting_bytes_max = 0;
    s.device->info.has_textures = false;
    calls = atomic_load(&fake->calls);
    assert_refused(iron__gpu_cache_reserve(s.device, 0, &err), IRON_E_UNSUPPORTED, &err);
    assert_refused(iron__gpu_texture_create(s.buffers[0], &handle, &err), IRON_E_UNSUPPORTED, &err);
    assert_true(handle == 0);
    s.device->failure = (iron_error){IRON_E_IO, 700, "cuda: the test broke the device"};
    s.device->info.has_textures = true;
    handle = 7;
    assert_refused(iron__gpu_cache_reserve(s.device, 0, &err), IRON_E_IO, &err);
    assert_refused(iron__gpu_texture_create(s.buffers[0], &handle, &err), IRON_E_IO, &err);
    assert_true(handle == 0);
    assert_refused(iron__gpu_kernel_resources(s.device, s.kernel, 128, 0, &resources, &err),
                   IRON_E_IO, &err);
    assert_says(&err, "the test broke the device");
    assert_int_equal(resources.registers, 0);
    assert_int_equal(atomic_load(&fake->calls), calls);
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 0);
}

static void run_logged(fixture *s, uint32_t x, uint32_t y, size_t local_bytes) {
    const iron__gpu_launch l = {
        .kernel = s->kernel, .groups = {x, y}, .threads = {32, 4}, .local_bytes = local_bytes};
    iron_error err;

    assert_ok(iron__gpu_run(s->queue, &l, &err), &err);
}

static void launches_are_logged(void **state) {
    fixture s = make_fixture();
    iron__gpu_launch_log log = {.count = 0};
    const iron__gpu_launch bad = {.kernel = s.kernel, .groups = {0}, .threads = {32}};
    iron_error err;

    (void)state;
    assert_ok(iron__gpu_kernel_find(s.program->device, s.program, "nothing", &s.kernel, &err),
              &err);
    s.device->launch_log = &log;
    assert_refused(iron__gpu_run(s.queue, &bad, &err), IRON_E_ARG, &err);
    assert_int_equal(log.count, 0);
    run_logged(&s, 5, 0, 64);
    run_logged(&s, 3, 2, 128); /* the largest */
    run_logged(&s, 6, 1, 256);
    assert_int_equal(log.count, 1);
    assert_string_equal(log.seen[0].kernel, "nothing");
    assert_int_equal(log.seen[0].groups, 6);
    assert_int_equal(log.seen[0].threads, 128);
    assert_int_equal(log.seen[0].resources.local_bytes, 1024 + 128);
    assert_int_equal(log.seen[0].resources.registers, 40);
    assert_true(log.seen[0].resources.occupancy == 2 * 128 / 2048.0);
    log.count = 0;
    run_logged(&s, INT32_MAX, UINT16_MAX, 0);
    assert_true(log.seen[0].groups == (uint64_t)INT32_MAX * UINT16_MAX);
    fail_after(3 + 1,
               /* after the launch: unreported resources are not a failure */
               IRON_CUDA_ERROR_ILLEGAL_ADDRESS);
    log.count = 0;
    run_logged(&s, 1, 1, 0);
    assert_non_null(fake->failed);
    assert_int_equal(s.device->failure.status, IRON_OK);
    assert_true(log.count == 1 && log.seen[0].resources.registers == 0 &&
                log.seen[0].resources.groups == 2);
    s.device->launch_log = NULL;
    run_logged(&s, 9, 9, 0);
    assert_int_equal(log.seen[0].groups, 1);
    clean_up(&s);
    assert_nothing_lives();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_library, reset_driver),
        cmocka_unit_test_setup(missing_functions, reset_driver),
        cmocka_unit_test_setup(old_driver, reset_driver),
        cmocka_unit_test_setup(no_device, reset_driver),
        cmocka_unit_test_setup(init_fails, reset_driver),
        cmocka_unit_test_setup(threads_probe_at_once, reset_driver),
        cmocka_unit_test(module_versions),
        cmocka_unit_test_setup(descriptions, reset_driver),
        cmocka_unit_test_setup(older_cards, reset_driver),
        cmocka_unit_test_setup(full_sequence, reset_driver),
        cmocka_unit_test_setup(every_call_fails_once, reset_driver),
        cmocka_unit_test_setup(every_call_fails_from_one_on, reset_driver),
        cmocka_unit_test_setup(sticky_errors_mark_the_device, reset_driver),
        cmocka_unit_test_setup(launch_arguments, reset_driver),
        cmocka_unit_test_setup(invalid_launches, reset_driver),
        cmocka_unit_test_setup(memory_runs_out, reset_driver),
        cmocka_unit_test_setup(wrapped_memory_is_checked, reset_driver),
        cmocka_unit_test_setup(ranges_are_checked, reset_driver),
        cmocka_unit_test_setup(invalid_programs, reset_driver),
        cmocka_unit_test_setup(users_programs, reset_driver),
        cmocka_unit_test_setup(failed_recordings, reset_driver),
        cmocka_unit_test_setup(managed_memory_on_older_cards, reset_driver),
        cmocka_unit_test_setup(without_optional_functions, reset_driver),
        cmocka_unit_test_setup(kernel_resources_from_driver, reset_driver),
        cmocka_unit_test_setup(kernel_resources_of_invalid_launches, reset_driver),
        cmocka_unit_test_setup(unreported_kernel_resources, reset_driver),
        cmocka_unit_test_setup(dynamic_local_memory, reset_driver),
        cmocka_unit_test_setup(refused_local_memory, reset_driver),
        cmocka_unit_test_setup(access_windows, reset_driver),
        cmocka_unit_test_setup(cache_reservation, reset_driver),
        cmocka_unit_test_setup(textures, reset_driver),
        cmocka_unit_test_setup(leaked_textures_are_detected, reset_driver),
        cmocka_unit_test_setup(unsupported_features, reset_driver),
        cmocka_unit_test_setup(launches_are_logged, reset_driver),
    };

    return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
