/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_words.c: words of kernel_words.h that few kernels of the library use, in small kernels
 * (words.k) compared with the host; dynamic local memory, up to the device's limit and beyond; and
 * the launch log. On the first device, through gpu.h only.
 */
#include "gpu_support.h"

#include "gpu/gpu.h"

#define GROUP  96u /* WORDS_GROUP */
#define GROUPS 5u
#define ALL    (GROUP * GROUPS)

IRON_GPU_EMBEDDED(words)
static const iron__gpu_image image = IRON_GPU_IMAGE(words);

static iron__gpu_device *device;
static iron__gpu_program *program;
static iron__gpu_queue *queue;

static int open_device(void **state) {
    iron_error err;

    gpu_set_up(state);
    if (gpu_reason.status != IRON_OK)
        return 0;
    assert_ok(iron__gpu_device_open(gpu_index(), 0, &device, &err), &err);
    assert_ok(iron__gpu_program_load(device, &image, &program, &err), &err);
    assert_ok(iron__gpu_queue_create(device, &queue, &err), &err);
    return 0;
}

static int close_device(void **state) {
    if (device) {
        assert_int_equal(device->failure.status, IRON_OK);
        iron__gpu_queue_destroy(queue);
        iron__gpu_program_unload(device, program);
        iron__gpu_device_close(device);
    }
    return gpu_tear_down(state);
}

static iron__gpu_buffer *buffer_of(const void *content, size_t bytes) {
    const iron__gpu_copy copy = {.from_host = content, .bytes = bytes};
    iron__gpu_buffer *buffer = NULL;
    iron__gpu_copy in = copy;
    iron_error err;

    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, bytes, &buffer, &err), &err);
    in.to = buffer;
    if (content)
        assert_ok(iron__gpu_copy_bytes(queue, &in, &err), &err);
    else
        assert_ok(iron__gpu_clear(queue, buffer, 0, bytes, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    return buffer;
}

/* Waits, reads the buffer and destroys it. */
static void read_and_destroy(iron__gpu_buffer *buffer, void *content) {
    const iron__gpu_copy out = {.from = buffer, .to_host = content, .bytes = buffer->bytes};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queue, &out, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    iron__gpu_buffer_destroy(buffer);
}

static iron__gpu_kernel *kernel_of(const char *name) {
    iron__gpu_kernel *kernel = NULL;
    iron_error err;

    assert_ok(iron__gpu_kernel_find(device, program, name, &kernel, &err), &err);
    return kernel;
}

static void run(const char *name, const iron__gpu_arg *args, size_t arg_count) {
    const iron__gpu_launch launch = {.kernel = kernel_of(name),
                                     .groups = {GROUPS},
                                     .threads = {GROUP},
                                     .args = args,
                                     .arg_count = arg_count};
    iron_error err;

    assert_ok(iron__gpu_run(queue, &launch, &err), &err);
}

typedef struct reversal {
    const char *kernel;
    uint32_t groups, count; /* values per group */
    uint32_t more;          /* 1: the kernel adds the reversed thread number */
} reversal;

static iron_status reverse(const reversal *t, size_t local_bytes, iron_error *err) {
    size_t all = (size_t)t->groups * t->count;
    uint32_t *values = grab(all * 4), *reversed = grab(all * 4);
    iron__gpu_buffer *from, *to;
    iron_status status;

    for (size_t k = 0; k < all; k++)
        values[k] = (uint32_t)k * 2654435761u;
    from = buffer_of(values, all * 4);
    to = buffer_of(NULL, all * 4);
    {
        const iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_BUFFER(to),
                                      IRON_GPU_VALUE(t->count)};
        const iron__gpu_launch launch = {.kernel = kernel_of(t->kernel),
                                         .groups = {t->groups},
                                         .threads = {GROUP},
                                         .args = args,
                                         .arg_count = COUNT(args),
                                         .local_bytes = local_bytes};

        status = iron__gpu_run(queue, &launch, err);
    }
    read_and_destroy(to, reversed);
    iron__gpu_buffer_destroy(from);
    for (size_t k = 0; status == IRON_OK && k < all; k++) {
        size_t at = k % t->count, first = k - at;
        uint32_t more = t->more * (GROUP - 1 - (uint32_t)(at % GROUP));

        assert_int_equal(reversed[k], values[first + t->count - 1 - at] + more);
    }
    free(values);
    free(reversed);
    return status;
}

/* A launch gets the size it requests, regardless of earlier launches. */
static void dynamic_local_memory(void **state) {
    static const uint32_t counts[] = {1, 95, 97, 4096, 31, 12 * 1024, 12 * 1024 + 1, 1000};
    iron_error err;

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(counts); k++) {
        const reversal alone = {"words_reverse", GROUPS, counts[k], 0};
        const reversal with_static = {"words_reverse_static", GROUPS, counts[k], 1};
        size_t bytes = counts[k] * 4;

        if (bytes + GROUP * 4 > device->info.local_bytes_max)
            continue;
        assert_ok(reverse(&alone, bytes, &err), &err);
        assert_ok(reverse(&with_static, bytes, &err), &err);
    }
}

/* Up to the last byte, including the kernel's static local memory. */
static void local_memory_limit(void **state) {
    size_t most, own = GROUP * 4;
    iron_error err;

    (void)state;
    NEED_GPU();
    most = (size_t)device->info.local_bytes_max;
    assert_true(most >= 16 * 1024 && most % 4 == 0);
    reversal alone = {"words_reverse", 2, (uint32_t)(most / 4), 0};
    reversal with_static = {"words_reverse_static", 2, (uint32_t)((most - own) / 4), 1};

    assert_ok(reverse(&alone, most, &err), &err);
    assert_refused(reverse(&alone, most + 1, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "words_reverse");
    assert_says(&err, "bytes of local memory per group");
    assert_refused(reverse(&alone, SIZE_MAX, &err), IRON_E_UNSUPPORTED, &err);
    assert_ok(reverse(&with_static, most - own, &err), &err);
    with_static.count = 1;
    assert_refused(reverse(&with_static, most - own + 4, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "plus 384 static bytes");
    assert_int_equal(device->failure.status, IRON_OK);
    assert_ok(reverse(&with_static, 4, &err), &err);
    if (strcmp(gpu_backend(), "opencl") == 0) { /* it knows the number of parameters */
        assert_refused(reverse(&with_static, 0, &err), IRON_E_ARG, &err);
        assert_says(&err, "3 arguments for 4 parameters");
    }
}

static void subgroup_rank(void **state) {
    uint64_t flags[ALL];
    uint32_t ranks[ALL], counts[ALL];
    rng r = {5};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < ALL; k++) /* none, all and some set */
        flags[k] = k < 32 ? 0 : k < 64 ? UINT64_MAX : rng_next(&r);
    iron__gpu_buffer *from = buffer_of(flags, sizeof flags), *to = buffer_of(NULL, sizeof ranks),
                     *all = buffer_of(NULL, sizeof counts);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_BUFFER(to), IRON_GPU_BUFFER(all)};
    run("words_rank", args, COUNT(args));
    read_and_destroy(to, ranks);
    read_and_destroy(all, counts);
    iron__gpu_buffer_destroy(from);
    for (size_t k = 0; k < ALL; k++) {
        uint32_t rank = 0, count = 0;

        for (size_t i = k / 32 * 32; i < k / 32 * 32 + 32; i++) {
            uint32_t both = (uint32_t)(flags[i] >> 63) + 100 * (uint32_t)(flags[i] & 1);

            rank += i < k ? both : 0;
            count += both;
        }
        assert_int_equal(ranks[k], rank);
        assert_int_equal(counts[k], count);
    }
}

static void subgroup_rank_2d(void **state) {
    uint32_t flags[3 * 64], ranks[3 * 64];
    rng r = {6};
    iron_error err;

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(flags); k++)
        flags[k] = rng_u32(&r);
    iron__gpu_buffer *from = buffer_of(flags, sizeof flags), *to = buffer_of(NULL, sizeof ranks);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_BUFFER(to)};
    const iron__gpu_launch launch = {.kernel = kernel_of("words_rank_2d"),
                                     .groups = {3},
                                     .threads = {16, 4},
                                     .args = args,
                                     .arg_count = COUNT(args)};
    assert_ok(iron__gpu_run(queue, &launch, &err), &err);
    read_and_destroy(to, ranks);
    iron__gpu_buffer_destroy(from);
    for (size_t k = 0; k < COUNT(flags); k++) {
        uint32_t want = 0;

        for (size_t i = k / 32 * 32; i < k / 32 * 32 + 32; i++)
            want += (flags[i] & 1) * (i < k ? 101u : 100u);
        assert_int_equal(ranks[k], want);
    }
}

/* Each number below count occurs once. */
static void assert_permutation(const uint32_t *numbers, uint32_t count) {
    unsigned char taken[ALL] = {0};

    for (uint32_t k = 0; k < count; k++) {
        assert_true(numbers[k] < count);
        assert_int_equal(taken[numbers[k]]++, 0);
    }
}

static void atomic_take(void **state) {
    uint32_t next = 0, of_group[ALL], of_all[ALL];

    (void)state;
    NEED_GPU();
    iron__gpu_buffer *counter = buffer_of(&next, sizeof next),
                     *here = buffer_of(NULL, sizeof of_group),
                     *everywhere = buffer_of(NULL, sizeof of_all);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(counter), IRON_GPU_BUFFER(here),
                                  IRON_GPU_BUFFER(everywhere)};
    run("words_take", args, COUNT(args));
    read_and_destroy(here, of_group);
    read_and_destroy(everywhere, of_all);
    read_and_destroy(counter, &next);
    assert_int_equal(next, ALL);
    assert_permutation(of_all, ALL);
    for (uint32_t g = 0; g < GROUPS; g++)
        assert_permutation(of_group + (size_t)g * GROUP, GROUP);
}

static void subgroup_barrier(void **state) {
    const uint32_t turns = 37;
    uint32_t values[ALL], passed[ALL];
    rng r = {7};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < ALL; k++)
        values[k] = rng_u32(&r);
    iron__gpu_buffer *from = buffer_of(values, sizeof values), *to = buffer_of(NULL, sizeof passed);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_BUFFER(to),
                                  IRON_GPU_VALUE(turns)};
    run("words_rotate", args, COUNT(args));
    read_and_destroy(to, passed);
    iron__gpu_buffer_destroy(from);
    for (uint32_t k = 0; k < ALL; k++)
        assert_int_equal(passed[k],
                         values[k / 32 * 32 + (k + turns) % 32] + turns * (turns - 1) / 2);
}

static void store_once(void **state) {
    const uint32_t count = ALL - 7;
    static uint32_t words[ALL], fours[4 * ALL];
    static float reals[4 * ALL];

    (void)state;
    NEED_GPU();
    iron__gpu_buffer *a = buffer_of(NULL, sizeof words), *b = buffer_of(NULL, sizeof fours),
                     *c = buffer_of(NULL, sizeof reals);
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(a), IRON_GPU_BUFFER(b), IRON_GPU_BUFFER(c),
                                  IRON_GPU_VALUE(count)};
    run("words_store", args, COUNT(args));
    read_and_destroy(a, words);
    read_and_destroy(b, fours);
    read_and_destroy(c, reals);
    for (uint32_t k = 0; k < ALL; k++)
        assert_int_equal(words[k], k < count ? 3 * k : 0);
    for (uint32_t k = 0; k < 4 * ALL; k++) {
        assert_int_equal(fours[k], k < 4 * count ? k : 0);
        assert_true(reals[k] == (k % 4 == 1 && k < 4 * count ? (float)(k / 4) : 0.0F));
    }
}

/* The largest launch of each kernel, with its resources. */
static void launches_are_logged(void **state) {
    static const reversal few = {"words_reverse_static", 2, 8, 1},
                          many = {"words_reverse_static", 3, 32, 1},
                          other = {"words_reverse", 1, 4, 0};
    iron__gpu_launch_log log = {.count = 0};
    const iron__gpu_resources *f = &log.seen[0].resources;
    bool is_cuda = strcmp(gpu_backend(), "cuda") == 0;
    iron_error err;

    (void)state;
    NEED_GPU();
    device->launch_log = &log;
    assert_ok(reverse(&few, 8 * 4, &err), &err);
    assert_ok(reverse(&many, 32 * 4, &err), &err);
    assert_ok(reverse(&few, 8 * 4, &err), &err);
    assert_ok(reverse(&other, 4 * 4, &err), &err);
    assert_refused(reverse(&other, SIZE_MAX, &err), IRON_E_UNSUPPORTED, &err);
    device->launch_log = NULL;
    assert_ok(reverse(&other, 4 * 4, &err), &err);
    assert_int_equal(log.count, 2);
    assert_string_equal(log.seen[0].kernel, "words_reverse_static");
    assert_string_equal(log.seen[1].kernel, "words_reverse");
    assert_int_equal(log.seen[0].groups, 3);
    assert_int_equal(log.seen[0].threads, GROUP);
    assert_int_equal(f->local_bytes, GROUP * 4 + 32 * 4);
    assert_int_equal(log.seen[1].resources.local_bytes, 4 * 4);
    assert_true((f->registers > 0) == is_cuda && (f->groups > 0) == is_cuda);
    assert_true(is_cuda ? f->occupancy > 0 && f->occupancy <= 1 : f->occupancy == 0);
    assert_int_equal(f->spill_bytes, 0);
}

/* Unsupported features are refused with the device's name; the device stays usable. */
static void textures_and_cache_reservation(void **state) {
    iron__gpu_buffer *b;
    uint64_t handle = 7;
    iron_error err;

    (void)state;
    NEED_GPU();
    b = buffer_of(NULL, 4096);
    if (device->info.has_textures) {
        assert_ok(iron__gpu_texture_create(b, &handle, &err), &err);
        assert_true(handle != 0);
    } else {
        assert_refused(iron__gpu_texture_create(b, &handle, &err), IRON_E_UNSUPPORTED, &err);
        assert_says(&err, "textures");
        assert_true(handle == 0);
    }
    iron__gpu_texture_destroy(device, handle);
    if (device->info.persisting_bytes_max) {
        assert_ok(iron__gpu_cache_reserve(device, device->info.persisting_bytes_max, &err), &err);
        assert_ok(iron__gpu_cache_reserve(device, 0, &err), &err);
    } else {
        assert_refused(iron__gpu_cache_reserve(device, 4096, &err), IRON_E_UNSUPPORTED, &err);
        assert_says(&err, device->info.name);
    }
    iron__gpu_buffer_destroy(b);
    assert_int_equal(device->failure.status, IRON_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dynamic_local_memory),
        cmocka_unit_test(local_memory_limit),
        cmocka_unit_test(subgroup_rank),
        cmocka_unit_test(subgroup_rank_2d),
        cmocka_unit_test(atomic_take),
        cmocka_unit_test(subgroup_barrier),
        cmocka_unit_test(store_once),
        cmocka_unit_test(launches_are_logged),
        cmocka_unit_test(textures_and_cache_reservation),
    };

    return cmocka_run_group_tests_name("gpu_words", tests, open_device, close_device);
}
