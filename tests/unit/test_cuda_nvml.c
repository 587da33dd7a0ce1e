/* SPDX-License-Identifier: MIT */
/*
 * test_cuda_nvml.c: clocks, throttle reasons and energy with a fake management library
 * (tests/fake_nvml) and the fake driver: a missing library, errors, every reason. None of it marks
 * a device as failed.
 */
#include "support.h"

#include "../fake_cuda/cuda_fixture.h"
#include "../fake_nvml/fake_nvml.h"
#include "arena/arena_internal.h"

#define NVML "IRON_NVML_LIBRARY"

static fake_nvml *nvml;

/* The state of a fake library, reset. */
static fake_nvml *state_of(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays open, so its state stays too */
    fake_nvml *state;

    assert_non_null(library);
    state = dlsym(library, FAKE_NVML_STATE);
    assert_non_null(state);
    *state = (fake_nvml){.core = 1980, .memory = 3201, .celsius = 61, .energy = 123456789012};
    return state;
}

/* Closes NVML, so that the next call loads it again. No device that has read clocks may be open. */
static void nvml_forget(void) {
    pthread_mutex_lock(&nvml_once.mutex);
    if (nvml_library)
        dlclose(nvml_library);
    nvml_library = NULL;
    memset(&the_nvml, 0, sizeof the_nvml);
    nvml_once.is_tried = false;
    pthread_mutex_unlock(&nvml_once.mutex);
}

static void use_library(const char *path) {
    nvml_forget();
    setenv(NVML, path, 1);
}

static int set_up(void **state) {
    reset_driver(state);
    use_library(FAKE_NVML_LIBRARY);
    nvml = state_of(FAKE_NVML_LIBRARY);
    return 0;
}

static iron__gpu_device *open_card(size_t index) {
    iron__gpu_device *device = NULL;
    iron_error err;

    assert_ok(ops->device_open(index, &device, &err), &err);
    return device;
}

/* Reads through gpu.h; must succeed. */
static iron__gpu_clocks read_clocks(iron__gpu_device *device) {
    iron__gpu_clocks c;
    iron_error err;

    memset(&c, 0xA5, sizeof c);
    assert_ok(iron__gpu_clocks_read(device, &c, &err), &err);
    assert_int_equal(device->failure.status, IRON_OK);
    return c;
}

static void assert_no_clocks(iron__gpu_device *device, const char *word) {
    static const iron__gpu_clocks nothing;
    iron__gpu_clocks c;
    iron_error err;

    memset(&c, 0xA5, sizeof c);
    assert_refused(iron__gpu_clocks_read(device, &c, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, word);
    assert_int_equal(iron__gpu_clocks_read(device, &c, NULL), IRON_E_UNSUPPORTED);
    assert_int_equal(device->failure.status, IRON_OK);
    assert_true(c.core_mhz == nothing.core_mhz && !c.is_throttled && c.reasons[0] == '\0');
}

static void all_figures(void **state) {
    iron__gpu_device *device = open_card(1);

    (void)state;
    for (int round = 0; round < 3; round++) {
        iron__gpu_clocks c = read_clocks(device);

        assert_int_equal(c.core_mhz, 1980);
        assert_int_equal(c.memory_mhz, 3201);
        assert_false(c.is_throttled);
        assert_string_equal(c.reasons, "");
        assert_int_equal(c.celsius, 61);
        assert_int_equal(c.energy_mj, 123456789012);
    }
    assert_string_equal(nvml->bus, "0000:1B:00.0"); /* of this card, not of card 0 */
    assert_int_equal(nvml->inits, 1);
    assert_int_equal(nvml->cards, 1);
    assert_int_equal(nvml->old_reasons, 0);
    ops->device_close(device);
}

static void every_reason(void **state) {
    static const struct {
        unsigned long long bits;
        bool is_throttled;
        const char *words;
    } rows[] = {
        {IRON_NVML_IDLE, false, "idle"},
        {IRON_NVML_APPLICATION_CLOCKS, false, "set clocks"},
        {IRON_NVML_POWER_CAP, false, "power cap"},
        {IRON_NVML_HW_SLOWDOWN, true, "hardware slowdown"},
        {IRON_NVML_SYNC_BOOST, false, "sync boost"},
        {IRON_NVML_SW_THERMAL, true, "thermal limit"},
        {IRON_NVML_HW_THERMAL, true, "hardware thermal slowdown"},
        {IRON_NVML_POWER_BRAKE, true, "power brake"},
        {IRON_NVML_DISPLAY_CLOCKS, false, "display"},
        {IRON_NVML_POWER_CAP | IRON_NVML_IDLE, false, "power cap, idle"},
        {IRON_NVML_POWER_CAP | IRON_NVML_SW_THERMAL, true, "thermal limit, power cap"},
        {UINT64_C(1) << 40, false, ""},
    };
    iron__gpu_device *device = open_card(0);

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++) {
        iron__gpu_clocks c;

        nvml->reasons = rows[k].bits;
        c = read_clocks(device);
        assert_string_equal(c.reasons, rows[k].words);
        assert_int_equal(c.is_throttled, rows[k].is_throttled);
    }
    nvml->reasons = ~0ull; /* more than the text holds: throttling ones come first, none is cut */
    assert_true(read_clocks(device).is_throttled);
    assert_non_null(strstr(read_clocks(device).reasons, "thermal limit, power cap"));
    ops->device_close(device);
}

static void missing_library(void **state) {
    iron__gpu_device *device = open_card(0);

    (void)state;
    use_library("/nowhere/libnvidia-ml.so.1");
    assert_no_clocks(device, "nvml: no library: /nowhere/libnvidia-ml.so.1: ");
    setenv(NVML, FAKE_NVML_LIBRARY, 1); /* tried only once */
    assert_no_clocks(device, "nvml: no library: /nowhere/libnvidia-ml.so.1: ");
    ops->device_close(device);
}

static void check_missing_symbol(const folder *f, const char *name, bool is_required) {
    file_name copy = name_in(f, name);
    iron__gpu_device *device = open_card(0);
    fake_nvml *old;

    copy_library_without(FAKE_NVML_LIBRARY, copy.path, &name, 1);
    use_library(copy.path);
    old = state_of(copy.path);
    old->reasons = IRON_NVML_IDLE;
    if (is_required) {
        assert_no_clocks(device, name);
    } else {
        iron__gpu_clocks c = read_clocks(device);

        assert_int_equal(c.core_mhz, 1980);
        assert_string_equal(c.reasons, "idle");
        assert_int_equal(old->old_reasons,
                         strcmp(name, "nvmlDeviceGetCurrentClocksEventReasons") == 0);
    }
    ops->device_close(device);
}

static void missing_functions(void **state) {
    folder f;

    (void)state;
    folder_make(&f);
#define MUST(result, name, parameters) check_missing_symbol(&f, #name, true);
#define MAY(result, name, parameters)  check_missing_symbol(&f, #name, false);
    IRON_NVML_FUNCTIONS(MUST, MAY)
#undef MUST
#undef MAY
    nvml_forget();
    folder_remove(&f);
}

static void no_reasons_function(void **state) {
    static const char *const names[] = {"nvmlDeviceGetCurrentClocksEventReasons",
                                        "nvmlDeviceGetCurrentClocksThrottleReasons"};
    iron__gpu_device *device = open_card(0);
    file_name copy;
    folder f;

    (void)state;
    folder_make(&f);
    copy = name_in(&f, "old.so");
    copy_library_without(FAKE_NVML_LIBRARY, copy.path, names, 2);
    use_library(copy.path);
    state_of(copy.path)->reasons = IRON_NVML_HW_THERMAL;
    assert_int_equal(read_clocks(device).core_mhz, 1980);
    assert_false(read_clocks(device).is_throttled); /* unknown */
    ops->device_close(device);
    nvml_forget();
    folder_remove(&f);
}

static void nvml_errors(void **state) {
    iron__gpu_device *device = open_card(0);
    iron__gpu_clocks c;
    iron_error err;

    nvml->card_code = 999;
    assert_no_clocks(device, "nvmlDeviceGetHandleByPciBusId_v2 failed: Unknown Error");
    nvml->card_code = 0;
    nvml->core_code = nvml->reasons_code = IRON_NVML_ERROR_NOT_SUPPORTED;
    nvml->reasons = IRON_NVML_HW_THERMAL; /* ignored because of the error */
    c = read_clocks(device);
    assert_true(c.core_mhz == 0 && c.memory_mhz == 3201);
    assert_true(!c.is_throttled && c.reasons[0] == '\0');
    nvml->memory_code = IRON_NVML_ERROR_NOT_SUPPORTED;
    assert_no_clocks(device, "nvmlDeviceGetClockInfo failed: Not Supported");
    ops->device_close(device);
    set_up(state);
    device = open_card(0);
    fail_after(0, IRON_CUDA_ERROR_UNKNOWN);
    assert_refused(iron__gpu_clocks_read(device, &c, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "cuDeviceGetPCIBusId failed: CUDA_ERROR_UNKNOWN");
    assert_int_equal(device->failure.status, IRON_OK);
    assert_int_equal(read_clocks(device).core_mhz, 1980);
    ops->device_close(device);
    set_up(state);
    device = open_card(0);
    nvml->init_code = 9;
    assert_no_clocks(device, "nvmlInit_v2 failed: Unknown Error");
    ops->device_close(device);
    assert_nothing_lives();
}

/* The card takes 300 mJ for each pass. */
static iron_status take_energy(iron__race_contender *c, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    (void)c, (void)scope, (void)is_cold, (void)err;
    nvml->energy += 300 * passes;
    *ms = 1000;
    return IRON_OK;
}

/* With a card that counts, energy per byte is known; without, or after an error, it is not. */
static void energy_of_a_card(void **state) {
    static const iron__race_contender_ops contender_ops = {.time = take_energy};
    iron__race_contender c = {.ops = &contender_ops};
    iron__gpu_device *device = open_card(0);
    iron__energy_meter meter = iron__energy_meter_open(device);
    iron__energy e;
    iron_error err;

    (void)state;
    assert_string_equal(meter.source, "nvml");
    assert_ok(iron__energy_measure(&meter, &c, 1000, 2e9, 1e9, &e, &err), &err);
    assert_string_equal(e.source, "nvml");
    assert_true(e.joules_per_gb > 0.1499 && e.joules_per_gb < 0.1501 && e.watts > 0);
    assert_int_equal(e.clocks.core_mhz, 1980);
    assert_int_equal(e.clocks.celsius, 61);
    nvml->celsius_code = IRON_NVML_ERROR_NOT_SUPPORTED;
    assert_int_equal(read_clocks(device).celsius, 0);
    nvml->reasons = IRON_NVML_SW_THERMAL;
    assert_ok(iron__energy_measure(&meter, &c, 1000, 2e9, 1e9, &e, &err), &err);
    assert_null(e.source);
    assert_string_equal(e.clocks.reasons, "thermal limit");
    nvml->energy_code = IRON_NVML_ERROR_NOT_SUPPORTED;
    assert_int_equal(read_clocks(device).energy_mj, 0);
    assert_ok(iron__energy_measure(&meter, &c, 1000, 2e9, 1e9, &e, &err), &err);
    assert_null(e.source);
    assert_null(iron__energy_meter_open(device).source);
    ops->device_close(device);
}

/* A backend without clocks, and a failed device. */
static void backend_without_clocks(void **state) {
    static const iron__gpu_ops plain = {.name = "plain"};
    iron__gpu_device device = {.ops = &plain};
    iron__gpu_clocks c;

    (void)state;
    assert_no_clocks(&device, "plain does not report clocks");
    device.failure.status = IRON_E_IO;
    assert_int_equal(iron__gpu_clocks_read(&device, &c, NULL), IRON_E_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_figures, set_up),
        cmocka_unit_test_setup(every_reason, set_up),
        cmocka_unit_test_setup(missing_library, set_up),
        cmocka_unit_test_setup(missing_functions, set_up),
        cmocka_unit_test_setup(no_reasons_function, set_up),
        cmocka_unit_test_setup(nvml_errors, set_up),
        cmocka_unit_test_setup(energy_of_a_card, set_up),
        cmocka_unit_test_setup(backend_without_clocks, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
