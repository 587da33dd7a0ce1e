/* SPDX-License-Identifier: MIT */
/*
 * test_cuda_kernel.c: what the CUDA backend asks of a driver beside plain launches, against a
 * pretended one (tests/fake_cuda): what a kernel takes, local memory that launches size, memory
 * that is to be kept in the cache, textures. That each of these calls may fail and leave nothing
 * behind is played in test_cuda_driver.c, whose scene has them all.
 *
 * The last tests go through gpu.h, which keeps the contract about what a device cannot do, and
 * watches launches.
 */
#include "support.h"

#ifdef FAKE_CUDA_LIBRARY

#include "../fake_cuda/fake_scene.h"

static iron__gpu_facts facts_of(scene *s, uint32_t threads, size_t local_bytes) {
    iron__gpu_facts facts = {.registers = 7};
    iron_error err;

    assert_ok(ops->kernel_facts(s->device, s->kernel, threads, local_bytes, &facts, &err), &err);
    return facts;
}

static void facts_are_the_drivers(void **state) {
    scene s = make_scene();
    iron__gpu_facts f = facts_of(&s, 256, 0);

    (void)state;
    assert_int_equal(f.registers, 40);
    assert_int_equal(f.spill_bytes, 24);
    assert_int_equal(f.local_bytes, 1024);
    assert_int_equal(f.groups, 2);
    assert_true(f.occupancy == 2 * 256 / 2048.0);
    f = facts_of(&s, 1024, 200 << 10); /* nobody has launched with so much */
    assert_int_equal(f.local_bytes, 1024 + (200 << 10));
    assert_int_equal(f.groups, 2);
    assert_true(f.occupancy == 1.0);
    fake->groups_max = 0;
    f = facts_of(&s, 256, 0);
    assert_true(f.registers == 40 && f.groups == 0 && f.occupancy == 0);
    clean_up(&s);
    assert_nothing_lives();
}

/* Of what cannot be launched the kernel's own figures are told, and no room for it. */
static void facts_of_what_cannot_be(void **state) {
    static const struct {
        uint32_t threads;
        size_t local_bytes;
    } asked[] = {{0, 0}, {1025, 0}, {UINT32_MAX, 0}, {32, FAKE_LOCAL_BYTES}, {32, SIZE_MAX / 2}};
    scene s = make_scene();

    (void)state;
    for (size_t k = 0; k < COUNT(asked); k++) {
        iron__gpu_facts f = facts_of(&s, asked[k].threads, asked[k].local_bytes);

        assert_true(f.registers == 40 && f.spill_bytes == 24);
        assert_int_equal(f.local_bytes, 1024 + asked[k].local_bytes);
        assert_true(f.groups == 0 && f.occupancy == 0);
    }
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

/* Each question of it fails in turn, in the worst way: a figure is 0, and that is all. */
static void facts_that_are_not_told(void **state) {
    scene s = make_scene();
    unsigned calls = atomic_load(&fake->calls);

    (void)state;
    facts_of(&s, 128, 4096);
    calls = atomic_load(&fake->calls) - calls;
    assert_int_equal(calls, 7); /* push, three attributes, room, threads, pop */
    for (unsigned k = 0; k < calls; k++) {
        iron__gpu_facts f;

        fail_after(k, IRON_CUDA_ERROR_ILLEGAL_ADDRESS);
        f = facts_of(&s, 128, 4096);
        assert_int_equal(s.device->failure.status, IRON_OK);
        assert_int_equal(fake->pushed, 0);
        assert_int_equal(f.registers, k == 0 || k == 1 ? 0 : 40);
        assert_int_equal(f.spill_bytes, k == 0 || k == 2 ? 0 : 24);
        assert_int_equal(f.local_bytes, k == 0 || k == 3 ? 0 : 1024 + 4096);
        assert_int_equal(f.groups, k == 0 || k == 4 ? 0 : 2);
        assert_true(f.occupancy == (k == 0 || k == 4 || k == 5 ? 0 : 2 * 128 / 2048.0));
    }
    clean_up(&s);
    assert_nothing_lives();
}

static iron_status launch_local(scene *s, size_t bytes, iron_error *err) {
    return launch_with(s, 0, &(iron__gpu_launch){.local_bytes = bytes}, err);
}

static void local_memory_of_launches(void **state) {
    static const size_t sizes[] = {1, 48 << 10, (48 << 10) + 1, 200 << 10, 100, 0, 200 << 10};
    scene s = make_scene(), again = s;
    unsigned before;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        assert_ok(launch_local(&s, sizes[k], &err), &err);
        assert_int_equal(fake->last.local_bytes, sizes[k]);
    }
    before = atomic_load(&fake->calls); /* what was once allowed is not asked for again */
    assert_ok(launch_local(&s, 150 << 10, &err), &err);
    assert_int_equal(atomic_load(&fake->calls), before + 3);
    /* found again it is the same kernel: nobody takes back what another was allowed */
    assert_ok(ops->kernel_find(s.program, "count", &again.kernel, &err), &err);
    assert_ptr_equal(again.kernel, s.kernel);
    assert_ok(ops->kernel_find(s.program, "wide", &again.kernel, &err), &err);
    assert_ptr_not_equal(again.kernel, s.kernel);
    assert_ok(launch_local(&s, FAKE_LOCAL_BYTES - 1024, &err), &err);
    assert_refused(launch_local(&s, FAKE_LOCAL_BYTES - 1023, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "kernel 'count' with 231425 bytes of local memory a group beside 1024");
    assert_says(&err, "the device has 232448");
    assert_refused(launch_local(&s, FAKE_LOCAL_BYTES + 1, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "232449 bytes of local memory a group; the device has 232448");
    assert_refused(launch_local(&s, SIZE_MAX, &err), IRON_E_UNSUPPORTED, &err);
    assert_int_equal(s.device->failure.status, IRON_OK);
    assert_ok(launch_local(&s, FAKE_LOCAL_BYTES - 1024, &err), &err);
    clean_up(&s);
    assert_nothing_lives();
}

/* The driver's own words come out where it is not the sizes. */
static void local_memory_that_is_not_allowed(void **state) {
    scene s = make_scene();
    iron_error err;

    (void)state;
    fail_after(1, IRON_CUDA_ERROR_NOT_SUPPORTED);
    assert_refused(launch_local(&s, 150 << 10, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "cuFuncSetAttribute failed: CUDA_ERROR_NOT_SUPPORTED");
    fail_after(1, IRON_CUDA_ERROR_INVALID_VALUE);
    fake->fails_on = true; /* nor does it tell what the kernel has of its own */
    assert_refused(launch_local(&s, 150 << 10, &err), IRON_E_ARG, &err);
    assert_says(&err, "cuFuncSetAttribute failed: CUDA_ERROR_INVALID_VALUE");
    fake->fail_at = 0;
    assert_ok(launch_local(&s, 150 << 10, &err), &err); /* was not taken for allowed */
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
}

static iron_status launch_keeping(scene *s, const iron__gpu_buffer *kept, size_t bytes,
                                  uint32_t flags, iron_error *err) {
    memset(&fake->last, 0, sizeof fake->last);
    return launch_with(s, flags, &(iron__gpu_launch){.kept = kept, .kept_bytes = bytes}, err);
}

static void windows_arrive(void **state) {
    scene s = make_scene();
    iron__gpu_buffer *large = NULL;
    const fake_launch *last = &fake->last;
    iron_error err;

    (void)state;
    assert_ok(ops->buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, 60 << 20, &large, &err), &err);
    assert_ok(launch_keeping(&s, large, 4 << 20, 0, &err), &err);
    assert_true(last->is_extended && !last->may_overlap && !last->is_cooperative);
    assert_ptr_equal(last->window, large->native);
    assert_int_equal(last->window_bytes, 4 << 20);
    assert_true(last->window_ratio == 1.0F);
    assert_ok(launch_keeping(&s, large, KEPT, 3, &err), &err);
    assert_true(last->window_ratio == 1.0F && last->may_overlap && last->is_cooperative);
    assert_ok(launch_keeping(&s, large, 4 * KEPT, 0, &err), &err); /* a quarter fits */
    assert_int_equal(last->window_bytes, 4 * KEPT);
    assert_true(last->window_ratio == 0.25F);
    assert_ok(launch_keeping(&s, large, 60 << 20, 0, &err), &err); /* longer than a window */
    assert_int_equal(last->window_bytes, 48 << 20);
    assert_true(last->window_ratio > 0.1666F && last->window_ratio < 0.1667F);
    assert_ok(launch_keeping(&s, s.wrapped, 64, 0, &err), &err);
    assert_true((uintptr_t)last->window == s.buffers[0]->native + 260);
    assert_refused(launch_keeping(&s, large, (60 << 20) + 1, 0, &err), IRON_E_ARG, &err);
    assert_says(&err, "62914561 bytes of a buffer that has 62914560");
    assert_refused(launch_keeping(&s, s.buffers[IRON_GPU_MEMORY_PINNED], 4, 0, &err), IRON_E_ARG,
                   &err);
    assert_says(&err, "has 0 on the device");
    assert_ok(launch_keeping(&s, large, 0, 0, &err), &err);
    assert_true(!last->is_extended && !last->window);
    assert_ok(ops->keep(s.device, 0, &err), &err); /* nothing is set aside: nothing to keep in */
    assert_ok(launch_keeping(&s, large, 4096, 0, &err), &err);
    assert_true(!last->is_extended && !last->window);
    ops->buffer_destroy(large);
    clean_up(&s);
    assert_nothing_lives();
}

static void the_cache_is_set_aside(void **state) {
    scene s = make_scene();
    iron__gpu_device *other = NULL;
    iron_error err;

    (void)state;
    assert_int_equal(fake->set_aside[0], KEPT);
    assert_ok(ops->keep(s.device, 2 * KEPT, &err), &err);
    assert_int_equal(fake->set_aside[0], 2 * KEPT);
    assert_int_equal(fake->let_go, 0);
    assert_ok(ops->keep(s.device, 0, &err), &err);
    assert_int_equal(fake->set_aside[0], 0);
    assert_int_equal(fake->let_go, 1);
    /* closing gives it back, though another one holds the context */
    assert_ok(ops->device_open(0, &other, &err), &err);
    assert_ok(ops->keep(other, KEPT, &err), &err);
    ops->device_close(other);
    assert_int_equal(fake->set_aside[0], 0);
    assert_int_equal(fake->let_go, 2);
    fake->grants = KEPT / 2; /* what counts is what the driver says */
    assert_ok(ops->keep(s.device, KEPT, &err), &err);
    assert_ok(launch_keeping(&s, s.buffers[0], BYTES, 0, &err), &err);
    assert_true(fake->last.window_ratio == 1.0F);
    fake->grants = BYTES / 4;
    assert_ok(ops->keep(s.device, KEPT, &err), &err);
    assert_ok(launch_keeping(&s, s.buffers[0], BYTES, 0, &err), &err);
    assert_true(fake->last.window_ratio == 0.25F);
    fake->grants = 0;
    assert_refused(ops->keep(s.device, KEPT, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "set 0 of 8388608 bytes of the cache aside");
    fail_after(3, IRON_CUDA_ERROR_INVALID_VALUE); /* set, but how much is not told: put back */
    fake->grants = SIZE_MAX;
    assert_refused(ops->keep(s.device, KEPT, &err), IRON_E_ARG, &err);
    assert_says(&err, "cuCtxGetLimit");
    assert_int_equal(fake->set_aside[0], 0);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
}

static void textures(void **state) {
    scene s = make_scene();
    iron__gpu_buffer *buffer = NULL;
    uint64_t handle = 7;
    iron_error err;

    (void)state;
    assert_int_equal(fake->live[FAKE_TEXTURE], 1);
    assert_int_equal(fake->texture_bytes, BYTES);
    assert_ok(ops->buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, (4 << 20) + 3, &buffer, &err),
              &err);
    assert_ok(ops->texture_create(buffer, &handle, &err), &err); /* whole elements of it */
    assert_int_equal(fake->texture_bytes, 4 << 20);
    ops->texture_destroy(s.device, handle);
    ops->texture_destroy(s.device, 0);
    ops->buffer_destroy(buffer);
    assert_ok(ops->buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, (4 << 20) + 4, &buffer, &err),
              &err);
    assert_refused(ops->texture_create(buffer, &handle, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "a texture of 1048577 elements; the device has them up to 1048576");
    assert_true(handle == 0);
    ops->buffer_destroy(buffer);
    assert_refused(ops->texture_create(s.wrapped, &handle, &err), IRON_E_ARG, &err);
    assert_says(&err, "no multiple of 512");
    assert_refused(ops->texture_create(s.buffers[IRON_GPU_MEMORY_PINNED], &handle, &err),
                   IRON_E_ARG, &err);
    assert_ok(ops->buffer_create(s.device, IRON_GPU_MEMORY_DEVICE, 3, &buffer, &err), &err);
    assert_refused(ops->texture_create(buffer, &handle, &err), IRON_E_ARG, &err);
    assert_says(&err, "a texture of 3 bytes");
    ops->buffer_destroy(buffer);
    assert_int_equal(s.device->failure.status, IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 0);
}

/* Forgotten, it dies with the context, and that is noticed. */
static void forgotten_textures_are_noticed(void **state) {
    scene s = make_scene();

    (void)state;
    s.texture = 0;
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 1);
}

/* Through gpu.h: refused where the device cannot, and with a marked device's words. */
static void what_a_device_cannot_do(void **state) {
    scene s = make_scene();
    iron__gpu_facts facts = {.registers = 7};
    uint64_t handle = 7;
    unsigned calls;
    iron_error err;

    (void)state;
    assert_refused(iron__gpu_keep(s.device, (30 << 20) + 1, &err), IRON_E_ARG, &err);
    assert_says(&err, "Fake card 0 can set 31457280 bytes of its cache aside, not 31457281");
    assert_ok(iron__gpu_keep(s.device, 30 << 20, &err), &err);
    assert_ok(iron__gpu_keep(s.device, 0, &err), &err);
    assert_ok(iron__gpu_texture_create(s.buffers[2], &handle, &err), &err);
    iron__gpu_texture_destroy(s.device, handle);
    iron__gpu_texture_destroy(s.device, 0);
    s.device->info.keep_bytes_max = 0;
    s.device->info.has_textures = false;
    calls = atomic_load(&fake->calls);
    assert_refused(iron__gpu_keep(s.device, 0, &err), IRON_E_UNSUPPORTED, &err);
    assert_refused(iron__gpu_texture_create(s.buffers[0], &handle, &err), IRON_E_UNSUPPORTED, &err);
    assert_true(handle == 0);
    s.device->failure = (iron_error){IRON_E_IO, 700, "cuda: the test broke the device"};
    s.device->info.has_textures = true;
    handle = 7;
    assert_refused(iron__gpu_keep(s.device, 0, &err), IRON_E_IO, &err);
    assert_refused(iron__gpu_texture_create(s.buffers[0], &handle, &err), IRON_E_IO, &err);
    assert_true(handle == 0);
    assert_refused(iron__gpu_kernel_facts(s.device, s.kernel, 128, 0, &facts, &err), IRON_E_IO,
                   &err);
    assert_says(&err, "the test broke the device");
    assert_int_equal(facts.registers, 0);
    assert_int_equal(atomic_load(&fake->calls), calls);
    clean_up(&s);
    assert_nothing_lives();
    assert_int_equal(fake->orphans, 0);
}

static void run_watched(scene *s, uint32_t x, uint32_t y, size_t local_bytes) {
    const iron__gpu_launch l = {
        .kernel = s->kernel, .groups = {x, y}, .threads = {32, 4}, .local_bytes = local_bytes};
    iron_error err;

    assert_ok(iron__gpu_run(s->queue, &l, &err), &err);
}

static void launches_are_watched(void **state) {
    scene s = make_scene();
    iron__gpu_watch w = {.count = 0};
    const iron__gpu_launch bad = {.kernel = s.kernel, .groups = {0}, .threads = {32}};
    iron_error err;

    (void)state;
    assert_ok(ops->kernel_find(s.program, "nothing", &s.kernel, &err), &err);
    s.device->watch = &w;
    assert_refused(iron__gpu_run(s.queue, &bad, &err), IRON_E_ARG, &err);
    assert_int_equal(w.count, 0);
    run_watched(&s, 5, 0, 64);
    run_watched(&s, 3, 2, 128); /* the largest */
    run_watched(&s, 6, 1, 256);
    assert_int_equal(w.count, 1);
    assert_string_equal(w.seen[0].kernel, "nothing");
    assert_int_equal(w.seen[0].groups, 6);
    assert_int_equal(w.seen[0].threads, 128);
    assert_int_equal(w.seen[0].facts.local_bytes, 1024 + 128);
    assert_int_equal(w.seen[0].facts.registers, 40);
    assert_true(w.seen[0].facts.occupancy == 2 * 128 / 2048.0);
    w.count = 0;
    run_watched(&s, INT32_MAX, UINT16_MAX, 0);
    assert_true(w.seen[0].groups == (uint64_t)INT32_MAX * UINT16_MAX);
    fail_after(3 + 1, IRON_CUDA_ERROR_ILLEGAL_ADDRESS); /* after the launch: no fact is a failure */
    w.count = 0;
    run_watched(&s, 1, 1, 0);
    assert_non_null(fake->failed);
    assert_int_equal(s.device->failure.status, IRON_OK);
    assert_true(w.count == 1 && w.seen[0].facts.registers == 0 && w.seen[0].facts.groups == 2);
    s.device->watch = NULL;
    run_watched(&s, 9, 9, 0);
    assert_int_equal(w.seen[0].groups, 1);
    clean_up(&s);
    assert_nothing_lives();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(facts_are_the_drivers, fresh),
        cmocka_unit_test_setup(facts_of_what_cannot_be, fresh),
        cmocka_unit_test_setup(facts_that_are_not_told, fresh),
        cmocka_unit_test_setup(local_memory_of_launches, fresh),
        cmocka_unit_test_setup(local_memory_that_is_not_allowed, fresh),
        cmocka_unit_test_setup(windows_arrive, fresh),
        cmocka_unit_test_setup(the_cache_is_set_aside, fresh),
        cmocka_unit_test_setup(textures, fresh),
        cmocka_unit_test_setup(forgotten_textures_are_noticed, fresh),
        cmocka_unit_test_setup(what_a_device_cannot_do, fresh),
        cmocka_unit_test_setup(launches_are_watched, fresh),
    };

    return cmocka_run_group_tests_name("cuda_kernel", tests, NULL, NULL);
}

#else

static void the_build_has_no_cuda_backend(void **state) {
    (void)state;
    print_message("skipped: this build has no CUDA backend\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_build_has_no_cuda_backend)};

    return cmocka_run_group_tests_name("cuda_kernel", tests, NULL, NULL);
}

#endif
