/* SPDX-License-Identifier: MIT */
/*
 * gpu_support.h: shared by the GPU tests: caches in a temporary folder, the reason if there is no
 * device, engines on the GPU and on the CPU, and comparing them.
 *
 * The tests run on the first OpenCL device; PoCL provides one on every machine.
 * IRON_TEST_BACKEND=cuda in the environment runs them on CUDA instead.
 */
#ifndef TESTS_UNIT_GPU_SUPPORT_H
#define TESTS_UNIT_GPU_SUPPORT_H

#include "engine_support.h"

#include "engine/engine.h"

/* PoCL's compiler leaks; our own leaks are still found. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libpocl\nleak:libLLVM\n"; }

static folder gpu_place;
static iron_error gpu_reason; /* status IRON_OK: there is a device */

#define NEED_GPU()                                                                                 \
    do {                                                                                           \
        if (gpu_reason.status != IRON_OK) {                                                        \
            print_message("skipped: %s\n", gpu_reason.text);                                       \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

static inline const char *gpu_backend(void) {
    const char *name = getenv("IRON_TEST_BACKEND");

    return name && name[0] ? name : "opencl";
}

static inline size_t gpu_index(void) { return iron__gpu_backend_find(gpu_backend()); }

static inline int gpu_set_up(void **state) {
    size_t devices;

    (void)state;
    folder_make(&gpu_place);
    setenv("IRON_CACHE_DIR", name_in(&gpu_place, "cache").path, 1);
    setenv("POCL_CACHE_DIR", gpu_place.path, 0); /* PoCL's own cache, not in the user's home */
    gpu_reason = (iron_error){.status = IRON_OK};
    (void)iron__gpu_probe(gpu_index(), &devices, &gpu_reason);
    return 0;
}

static inline int gpu_tear_down(void **state) {
    (void)state;
    folder_remove(&gpu_place);
    return 0;
}

/* Small, with batches of 1000. */
static inline iron_config gpu_config(void) {
    iron_config c;

    iron_config_init(&c);
    c.backend = gpu_backend();
    c.mode = "champion";
    c.nodes = 33;
    c.batch = 1000;
    c.threads = 2;
    return c;
}

static inline iron_config as_on_cpu(iron_config c) {
    c.backend = "cpu";
    c.mode = "scalar";
    c.memory = NULL;
    return c;
}

static inline iron_engine *engine_of(const iron_config *c) {
    iron_engine *e = create(c);

    assert_string_equal(iron_engine_backend(e), c->backend);
    return e;
}

/* Compares everything that engines report. */
static inline void assert_same_engines(iron_engine *a, iron_engine *b) {
    iron_report ra = report_of(a), rb = report_of(b);
    size_t n = (size_t)iron_engine_config(b)->nodes;

    assert_int_equal(ra.tokens, rb.tokens);
    assert_int_equal(ra.batches, rb.batches);
    assert_int_equal(ra.open_tokens, rb.open_tokens);
    assert_int_equal(ra.xor_total, rb.xor_total);
    assert_int_equal(ra.sum, rb.sum);
    assert_int_equal(ra.state, rb.state);
    assert_int_equal(ra.has_seal, rb.has_seal);
    assert_string_equal(ra.seal, rb.seal);
    assert_memory_equal(iron_engine_xor_accumulators(a), iron_engine_xor_accumulators(b),
                        n * sizeof(uint32_t));
    assert_memory_equal(iron_engine_potentials(a), iron_engine_potentials(b), n * sizeof(float));
    assert_memory_equal(iron_engine_activations(a), iron_engine_activations(b), n * sizeof(float));
}

/* The device that an engine works on. */
static inline iron__gpu_device *device_of(const iron_engine *e) { return e->gpu->device; }

/* Whether the device offers this strategy. */
static inline bool gpu_offers(iron__gpu_strategy strategy) {
    iron__gpu_info info;
    iron_error err;

    assert_ok(iron__gpu_describe(gpu_index(), 0, &info, &err), &err);
    return info.lacks[strategy][0] == '\0';
}

#endif
