/* SPDX-License-Identifier: MIT */
/*
 * test_cuda_driver.c: the CUDA backend against a pretended driver (tests/fake_cuda): reasons why
 * there is none to be used, what is asked of it and in what words its errors come out, and that
 * every failure, at every single call, leaves nothing behind.
 *
 * The table of the backend is called directly; what is kept about marked devices above it is
 * tested with gpu.c. Without FAKE_CUDA_LIBRARY the build has no such backend.
 */
#include "support.h"

#ifdef FAKE_CUDA_LIBRARY

#include "../fake_cuda/fake_scene.h"

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
#define MUST(name, parameters) check_without(&f, #name, true);
#define MAY(name, parameters)  check_without(&f, #name, false);
    IRON_CUDA_FUNCTIONS(MUST, MAY)
#undef MUST
#undef MAY
    iron__cuda_forget();
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

static void start_fails(void **state) {
    size_t count;

    fail_after(0, IRON_CUDA_ERROR_UNKNOWN);
    assert_unavailable("cuDriverGetVersion failed: CUDA_ERROR_UNKNOWN", "a text of the driver");
    fresh(state);
    fail_after(1, 4242);
    assert_unavailable("cuInit failed: CUDA error 4242", "nvidia-smi");
    fresh(state);
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
    assert_int_equal(atomic_load(&fake->calls), 2 + 800); /* version and init once */
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

        iron__cuda_module_version(lines[k][0], version, sizeof version);
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
    assert_true(info.is_gpu && info.can_graph && info.can_overlap && info.can_gather);
    assert_int_equal(info.units, 132);
    assert_int_equal(info.group_threads_max, 1024);
    assert_int_equal(info.subgroup, 32);
    assert_int_equal(info.local_bytes_max, 232448);
    assert_int_equal(info.memory_bytes, 64 << 20);
    assert_int_equal(info.cache_bytes, 50 << 20);
    assert_int_equal(info.version, 900);
    assert_true(info.has_textures);
    assert_int_equal(info.keep_bytes_max, 30 << 20);
    for (int k = 0; k < IRON_GPU_STRATEGIES; k++)
        assert_string_equal(info.lacks[k], "");
    assert_refused(ops->describe(2, &info, &err), IRON_E_ARG, &err);
    assert_says(&err, "no device 2; there are 2");
}

static void lesser_cards(void **state) {
    iron__gpu_info info;

    (void)state;
    fake->capability = 86;
    fake->has_concurrent_managed = fake->is_cooperative = fake->maps_host = fake->keep_max = 0;
    assert_int_equal(ops->describe(0, &info, NULL), IRON_OK);
    assert_int_equal(info.version, 860);
    assert_false(info.can_overlap || info.can_gather);
    assert_int_equal(info.keep_bytes_max, 0);
    assert_string_equal(info.lacks[IRON_GPU_UVM], "");
    assert_non_null(strstr(info.lacks[IRON_GPU_UVM_PREFETCH], "at the same time"));
    assert_non_null(strstr(info.lacks[IRON_GPU_ZERO_COPY], "map"));
    fake->has_managed = 0;
    assert_int_equal(ops->describe(0, &info, NULL), IRON_OK);
    assert_non_null(strstr(info.lacks[IRON_GPU_UVM], "managed"));
    assert_non_null(strstr(info.lacks[IRON_GPU_UVM_PREFETCH], "managed"));
}

static void the_whole_sequence(void **state) {
    unsigned char host[1024];
    scene s = make_scene();
    iron_error err;

    (void)state;
    for (size_t k = 0; k < sizeof host; k++)
        host[k] = (unsigned char)(k * 7);
    for (int k = 0; k < 4; k++)
        assert_int_equal(s.buffers[k]->native % IRON_GPU_ALIGNMENT, 0);
    assert_true(s.buffers[IRON_GPU_MEMORY_PINNED]->native == 0);
    assert_true(s.buffers[IRON_GPU_MEMORY_MAPPED]->native != 0);
    assert_null(s.buffers[IRON_GPU_MEMORY_DEVICE]->host);
    assert_true(s.wrapped->native == s.buffers[0]->native + 256 && s.wrapped->lead_bytes == 4);
    assert_true(ops->context(s.device) != 0);
    assert_ok(use(&s, host, &err), &err);
    for (size_t k = 0; k < 512; k++)
        assert_int_equal(host[k], (unsigned char)(k * 7)); /* through device and managed memory */
    for (size_t k = 0; k < 16; k++)
        assert_int_equal(((unsigned char *)s.buffers[IRON_GPU_MEMORY_MAPPED]->host)[32 + k],
                         (unsigned char)(k * 7));
    assert_int_equal(((unsigned char *)s.buffers[0]->native)[BYTES - 1], 0); /* cleared */
    assert_int_equal(fake->on_default, 0);
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

/* A card that is lost answers nothing any more, not even the giving back. */
static void every_call_fails_from_one_on(void **state) {
    bool is_over = false;

    (void)state;
    for (unsigned n = 1; !is_over; n++) {
        unsigned char host[1024] = {0};
        scene s = {0};
        iron_error err = {0};

        fresh(NULL);
        fake->fail_at = n;
        fake->fail_with = IRON_CUDA_ERROR_ILLEGAL_ADDRESS;
        fake->fails_on = true;
        if (make_rest(&s, &err) || use(&s, host, &err))
            assert_says(&err, "CUDA_ERROR_ILLEGAL_ADDRESS");
        clean_up(&s);
        assert_nothing_lives();
        is_over = !fake->failed;
    }
}

static void lasting_errors_mark(void **state) {
    static const int lasting[] = {214, 220, 700, 702, 709, 710, 714, 715,
                                  716, 717, 718, 719, 802, 999, 4242};
    static const struct {
        int code;
        iron_status status;
    } passing[] = {{1, IRON_E_ARG},           {2, IRON_E_NOMEM},         {400, IRON_E_ARG},
                   {701, IRON_E_ARG},         {600, IRON_E_STATE},       {901, IRON_E_STATE},
                   {906, IRON_E_STATE},       {304, IRON_E_IO},          {801, IRON_E_UNSUPPORTED},
                   {900, IRON_E_UNSUPPORTED}, {209, IRON_E_UNSUPPORTED}, {720, IRON_E_UNSUPPORTED}};
    scene s = make_scene();
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(passing); k++) {
        fail_after(1, passing[k].code);
        assert_refused(ops->queue_wait(s.queue, &err), passing[k].status, &err);
        assert_int_equal(err.native, passing[k].code);
        assert_int_equal(s.device->failure.status, IRON_OK);
    }
    for (size_t k = 0; k < COUNT(lasting); k++) {
        memset(&s.device->failure, 0, sizeof s.device->failure);
        fail_after(1, lasting[k]);
        assert_refused(ops->queue_wait(s.queue, &err), IRON_E_IO, &err);
        assert_says(&err, "cuda: cuStreamSynchronize failed: CUDA");
        assert_memory_equal(&s.device->failure, &err, sizeof err);
    }
    fail_after(1, IRON_CUDA_ERROR_UNKNOWN); /* the first one stays */
    assert_int_equal(ops->queue_wait(s.queue, NULL), IRON_E_IO);
    assert_int_equal(s.device->failure.native, 4242);
    clean_up(&s);
    assert_nothing_lives();
}

static void launches_arrive(void **state) {
    scene s = make_scene();
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
        assert_true(last->is_cooperative == ((flags & IRON_GPU_LAUNCH_TOGETHER) != 0));
    }
    clean_up(&s);
}

static void launches_refused(void **state) {
    scene s = make_scene();
    iron__gpu_arg args[17];
    iron__gpu_launch l = {.kernel = s.kernel, .groups = {1}, .threads = {32}, .args = args};
    iron_error err;

    (void)state;
    for (int k = 0; k < 17; k++)
        args[k] = IRON_GPU_BUFFER(s.buffers[0]);
    assert_ok(ops->kernel_find(s.program, "wide", &l.kernel, &err), &err);
    l.arg_count = 16;
    assert_ok(ops->launch(s.queue, &l, &err), &err);
    assert_int_equal(fake->last.argument_bytes, 16 * 8);
    l.arg_count = 17;
    assert_refused(ops->launch(s.queue, &l, &err), IRON_E_ARG, &err);
    l.arg_count = 16;
    args[5].buffer = s.buffers[IRON_GPU_MEMORY_PINNED];
    assert_refused(ops->launch(s.queue, &l, &err), IRON_E_ARG, &err);
    assert_says(&err, "argument 5 of kernel 'wide'");
    args[5].buffer = s.buffers[IRON_GPU_MEMORY_MAPPED];
    l.threads[1] = 33;
    assert_refused(ops->launch(s.queue, &l, &err), IRON_E_ARG, &err);
    assert_says(&err, "1056 threads");
    l.threads[1] = 0;
    l.groups[0] = 0;
    assert_refused(ops->launch(s.queue, &l, &err), IRON_E_ARG, &err);
    l.groups[0] = 265;
    l.flags = IRON_GPU_LAUNCH_TOGETHER;
    assert_refused(ops->launch(s.queue, &l, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "launch at most 264");
    s.device->info.can_gather = s.device->info.can_overlap = false;
    assert_refused(ops->launch(s.queue, &l, &err), IRON_E_UNSUPPORTED, &err);
    l.flags = IRON_GPU_LAUNCH_OVERLAP;
    assert_ok(ops->launch(s.queue, &l, &err), &err);
    assert_false(fake->last.may_overlap);
    fail_after(1, IRON_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_refused(ops->launch(s.queue, &l, &err), IRON_E_ARG, &err);
    assert_says(&err, "cuLaunchKernel of 'wide' failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

static void memory_runs_out(void **state) {
    scene s = make_scene();
    iron__gpu_buffer *buffer = s.wrapped;
    const size_t free_bytes = ((size_t)64 << 20) - 2 * (size_t)BYTES;
    char text[64];
    iron_error err;

    (void)state;
    for (int k = 0; k < 4; k++) {
        iron__gpu_memory memory = (iron__gpu_memory)k;

        assert_refused(ops->buffer_create(s.device, memory, 0, &buffer, &err), IRON_E_ARG, &err);
        assert_refused(ops->buffer_create(s.device, memory, (size_t)65 << 20, &buffer, &err),
                       IRON_E_NOMEM, &err);
        assert_null(buffer);
        assert_says(&err, "68157440 bytes");
        assert_int_equal(s.device->failure.status, IRON_OK);
    }
    assert_int_equal(
        ops->buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, free_bytes + 1, &buffer, &err),
        IRON_E_NOMEM);
    snprintf(text, sizeof text, "%zu free on the device", free_bytes);
    assert_says(&err, text);
    assert_refused(
        ops->buffer_create(s.device, IRON_GPU_MEMORY_MANAGED, free_bytes / 2 + 1, &buffer, &err),
        IRON_E_NOMEM, &err);
    assert_says(&err, "more than half");
    fake->misalignment = 128;
    assert_refused(ops->buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, 64, &buffer, &err),
                   IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "no multiple of 256");
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 0);
}

static void wraps_look_closely(void **state) {
    scene s = make_scene(), other = {0};
    uintptr_t address = s.buffers[0]->native;
    iron__gpu_buffer *buffer = NULL;
    uint32_t ordinary[4];
    iron_error err;

    (void)state;
#define REFUSED(device, native, bytes, word)                                                       \
    do {                                                                                           \
        assert_refused(ops->buffer_wrap(device, native, bytes, &buffer, &err), IRON_E_ARG, &err);  \
        assert_says(&err, word);                                                                   \
    } while (0)
    REFUSED(s.device, 0, 4, "no buffer");
    REFUSED(s.device, address, 0, "no buffer");
    REFUSED(s.device, address + 2, 4, "no multiple of 4");
    REFUSED(s.device, address + 4, BYTES, "has 4092 there");
    REFUSED(s.device, (uintptr_t)ordinary, sizeof ordinary, "no address that CUDA knows");
    REFUSED(s.device, (uintptr_t)s.buffers[IRON_GPU_MEMORY_PINNED]->host, 4, "memory of the host");
    assert_ok(ops->device_open(1, &other.device, &err), &err);
    REFUSED(other.device, address, BYTES, "belongs to device 0 and not to device 1");
#undef REFUSED
    assert_int_equal(s.device->failure.status, IRON_OK);
    assert_ok(ops->buffer_wrap(other.device, s.buffers[IRON_GPU_MEMORY_MANAGED]->native, BYTES,
                               &buffer, &err),
              &err);
    assert_true(buffer->memory == IRON_GPU_MEMORY_MANAGED && buffer->host && buffer->is_borrowed);
    ops->buffer_destroy(buffer);
    assert_false(ops->is_pinned(s.device, ordinary, sizeof ordinary));
    assert_false(ops->is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_PINNED]->host, BYTES + 1));
    assert_false(ops->is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_MANAGED]->host, BYTES));
    assert_true(ops->is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_PINNED]->host, BYTES));
    assert_true(ops->is_pinned(s.device, s.buffers[IRON_GPU_MEMORY_MAPPED]->host, 1));
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&other);
    clean_up(&s);
    assert_nothing_lives();
}

static void work_stays_inside_buffers(void **state) {
    scene s = make_scene();
    iron__gpu_copy both = {.from = s.buffers[0], .from_host = s.buffers, .to_host = &s, .bytes = 1};
    iron__gpu_copy wrapped = {.bytes = 16};
    unsigned char got[16];
    iron_error err;

    (void)state;
    assert_refused(copy(&s, 0, 2, 8, 0, BYTES, &err), IRON_E_ARG, &err);
    assert_refused(copy(&s, 0, 2, 0, SIZE_MAX, 2, &err), IRON_E_ARG, &err);
    assert_refused(copy(&s, 1, 3, 0, 0, 4, &err), IRON_E_ARG, &err);
    assert_refused(ops->copy(s.queue, &both, &err), IRON_E_ARG, &err);
    assert_refused(ops->clear(s.queue, s.buffers[0], 2, 4, &err), IRON_E_ARG, &err);
    assert_refused(ops->clear(s.queue, s.buffers[0], 0, 6, &err), IRON_E_ARG, &err);
    assert_refused(ops->clear(s.queue, s.buffers[0], 4, BYTES, &err), IRON_E_ARG, &err);
    assert_refused(ops->clear(s.queue, s.buffers[1], 0, 4, &err), IRON_E_ARG, &err);
    assert_refused(ops->prefetch(s.queue, s.buffers[0], 4, &err), IRON_E_ARG, &err);
    assert_refused(ops->prefetch(s.queue, s.buffers[2], BYTES + 1, &err), IRON_E_ARG, &err);
    assert_ok(copy(&s, 0, 2, BYTES, 0, 0, &err), &err);
    memset((void *)s.buffers[0]->native, 7, BYTES);
    assert_ok(ops->clear(s.queue, s.wrapped, 4, 8, &err), &err); /* counted from byte 260 */
    for (size_t k = 0; k < BYTES; k++)
        assert_int_equal(((char *)s.buffers[0]->native)[k], k >= 264 && k < 272 ? 0 : 7);
    wrapped.from = s.wrapped;
    wrapped.to_host = got;
    assert_ok(ops->copy(s.queue, &wrapped, &err), &err);
    assert_true(got[0] == 7 && got[3] == 7 && got[4] == 0 && got[11] == 0 && got[12] == 7);
    assert_ok(ops->clear(s.queue, s.buffers[0], BYTES, 0, &err), &err);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

static void programs_refused(void **state) {
    static const char empty[1];
    const iron__gpu_image none = {
        .name = "tokens", .machine_code = empty, .machine_code_end = empty};
    const iron__gpu_image old = {.name = "tokens", .machine_code = "sm_70\ncount p48\n"};
    scene s = make_scene();
    iron__gpu_program *program = NULL;
    iron__gpu_kernel *kernel = s.kernel;
    iron__gpu_buffer *constant = NULL;
    iron_error err;

    (void)state;
    assert_refused(ops->program_load(s.device, &none, &program, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "nvcc");
    assert_refused(ops->program_load(s.device, &old, &program, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_says(&err, "for sm_90; rebuild with IRON_CUDA_ARCHS=90");
    assert_refused(ops->kernel_find(s.program, "absent", &kernel, &err), IRON_E_ARG, &err);
    assert_says(&err, "no kernel 'absent'");
    assert_null(kernel);
    assert_true(s.constant->is_borrowed && s.constant->native != 0);
    assert_refused(ops->constant_find(s.program, "absent", 1, &constant, &err), IRON_E_ARG, &err);
    assert_says(&err, "no constant memory 'absent'");
    assert_refused(
        ops->constant_find(s.program, FAKE_CONSTANT, FAKE_CONSTANT_BYTES + 1, &constant, &err),
        IRON_E_ARG, &err);
    assert_null(constant);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
}

/* However a recording fails, the queue does its work at once again. */
static void recordings_fail(void **state) {
    static const struct {
        unsigned begin, end; /* calls before the one that fails; 9: none */
    } places[] = {{1, 9}, {2, 9}, {9, 1}, {9, 2}, {9, 3}, {9, 4}};
    scene s = make_scene();
    iron_error err;

    (void)state;
    assert_refused(ops->graph_begin(s.default_queue, &err), IRON_E_UNSUPPORTED, &err);
    for (size_t k = 0; k < COUNT(places); k++) {
        iron__gpu_graph *graph = NULL;
        unsigned before;

        fail_after(places[k].begin, IRON_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        if (places[k].begin == 9) {
            assert_ok(ops->graph_begin(s.queue, &err), &err);
            fail_after(places[k].end, IRON_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            assert_refused(ops->graph_end(s.queue, &graph, &err), IRON_E_STATE, &err);
        } else {
            assert_refused(ops->graph_begin(s.queue, &err), IRON_E_STATE, &err);
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

/* Without concurrent access the host must not touch managed memory beside a kernel. */
static void managed_memory_on_lesser_cards(void **state) {
    scene s = {0};
    iron_error err;

    (void)state;
    fake->has_concurrent_managed = 0;
    s = make_scene();
    assert_ok(ops->host_begin(s.queue, s.buffers[IRON_GPU_MEMORY_MAPPED], &err), &err);
    assert_int_equal(fake->synchronizations, 0);
    assert_ok(ops->host_begin(s.queue, s.buffers[IRON_GPU_MEMORY_MANAGED], &err), &err);
    assert_int_equal(fake->synchronizations, 1);
    assert_refused(ops->prefetch(s.queue, s.buffers[IRON_GPU_MEMORY_MANAGED], 4, &err),
                   IRON_E_UNSUPPORTED, &err);
    clean_up(&s);
    fake->has_managed = fake->maps_host = 0;
    memset(&s, 0, sizeof s);
    assert_ok(ops->device_open(0, &s.device, &err), &err);
    for (int k = IRON_GPU_MEMORY_MANAGED; k <= IRON_GPU_MEMORY_MAPPED; k++)
        assert_refused(ops->buffer_create(s.device, (iron__gpu_memory)k, 4, &s.wrapped, &err),
                       IRON_E_UNSUPPORTED, &err);
    clean_up(&s);
}

/* The functions that a driver may lack: other ways are gone, or what they do is said to lack. */
static void without_optional_functions(void **state) {
    static const char *const names[] = {"cuLaunchKernelEx", "cuMemPrefetchAsync_v2",
                                        "cuMemPrefetchAsync"};
    scene s;
    iron_error err;
    folder f;

    (void)state;
    folder_make(&f);
    for (size_t count = 2; count <= COUNT(names); count++) {
        file_name path = name_in(&f, names[count - 1]);
        void *library;

        iron__cuda_forget();
        make_copy(FAKE_CUDA_LIBRARY, path.path, names, count);
        setenv(LIBRARY, path.path, 1);
        library = dlopen(path.path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        fake = control_of(library, true);
        s = make_scene();
        assert_false(s.device->info.can_overlap || s.device->info.can_gather);
        assert_int_equal(s.device->info.keep_bytes_max, 0);
        assert_ok(launch(&s, IRON_GPU_LAUNCH_OVERLAP, &err), &err);
        assert_refused(launch(&s, IRON_GPU_LAUNCH_TOGETHER, &err), IRON_E_UNSUPPORTED, &err);
        if (count == 2)
            assert_ok(ops->prefetch(s.queue, s.buffers[IRON_GPU_MEMORY_MANAGED], 4, &err), &err);
        else
            assert_non_null(strstr(s.device->info.lacks[IRON_GPU_UVM_PREFETCH], "driver"));
        clean_up(&s);
        assert_nothing_lives();
        dlclose(library);
    }
    iron__cuda_forget();
    folder_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_library, fresh),
        cmocka_unit_test_setup(missing_functions, fresh),
        cmocka_unit_test_setup(old_driver, fresh),
        cmocka_unit_test_setup(no_device, fresh),
        cmocka_unit_test_setup(start_fails, fresh),
        cmocka_unit_test_setup(threads_probe_at_once, fresh),
        cmocka_unit_test(module_versions),
        cmocka_unit_test_setup(descriptions, fresh),
        cmocka_unit_test_setup(lesser_cards, fresh),
        cmocka_unit_test_setup(the_whole_sequence, fresh),
        cmocka_unit_test_setup(every_call_fails_once, fresh),
        cmocka_unit_test_setup(every_call_fails_from_one_on, fresh),
        cmocka_unit_test_setup(lasting_errors_mark, fresh),
        cmocka_unit_test_setup(launches_arrive, fresh),
        cmocka_unit_test_setup(launches_refused, fresh),
        cmocka_unit_test_setup(memory_runs_out, fresh),
        cmocka_unit_test_setup(wraps_look_closely, fresh),
        cmocka_unit_test_setup(work_stays_inside_buffers, fresh),
        cmocka_unit_test_setup(programs_refused, fresh),
        cmocka_unit_test_setup(recordings_fail, fresh),
        cmocka_unit_test_setup(managed_memory_on_lesser_cards, fresh),
        cmocka_unit_test_setup(without_optional_functions, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void the_build_has_no_cuda_backend(void **state) {
    (void)state;
    print_message("skipped: this build has no CUDA backend\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_build_has_no_cuda_backend)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
