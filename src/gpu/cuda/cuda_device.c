/* SPDX-License-Identifier: MIT */
/*
 * cuda_device.c: the driver library, NVML, errors, device properties, opening and closing devices,
 * and the backend's table.
 *
 * The driver library, its functions and its version are loaded once per process. Checked in this
 * order: the library exists; it has every required function and is new enough; cuInit succeeds. A
 * failure is not an error but a reason: it is stored, and every later call returns it without
 * another attempt. This state is global, because a process has one driver. It is protected by a
 * mutex and constant once `is_tried`. The library stays open after cuInit was called, even if that
 * failed: drivers leave threads and exit handlers behind that need its code.
 *
 * NVML, NVIDIA's management library, has clocks, throttle reasons and energy. It comes
 * with the driver; a machine without it only loses these figures. It is loaded like the driver, at
 * the first use. A card is found by its PCI address, because CUDA and NVML number cards
 * differently. NVML never marks a device as failed. Cards and virtual machines differ in what they
 * report: a missing figure stays 0, and only a card that reports nothing at all is an error.
 * Throttled means slowed down unintentionally, by heat or by the power supply. An idle card, clocks
 * set by an administrator and the card's rated power limit are listed among the reasons, but they
 * are not throttling.
 *
 * An open device holds one reference to the card's primary context, and possibly a reservation of
 * L2 cache. The driver counts references, so a device may be opened more than once.
 *
 * Errors are of two kinds. Those listed in call_errors affect one call: a wrong argument, no
 * memory, an unsupported feature; the device stays usable. All others mark the device as failed:
 * illegal addresses, timeouts, failed launches, memory errors, lost contexts. CUDA calls them
 * sticky: they come from commands queued earlier and every later call returns them again. Unknown
 * codes are treated as sticky, because nothing says that continuing is safe.
 *
 * Properties are read without creating a context, which would take time and device memory: iron
 * info describes cards that are not used. CUDA reports the newest CUDA version that the driver
 * supports, but not the driver's own version ("580.159.04"); that comes from /proc on Linux.
 */
#include "core/fail.h"
#include "core/library.h"
#include "core/memory.h"
#include "gpu/cuda/cuda_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const iron__symbol driver_symbols[] = {
#define MUST(name, parameters) {#name, offsetof(iron__cuda_driver, name), true},
#define MAY(name, parameters)  {#name, offsetof(iron__cuda_driver, name), false},
    IRON_CUDA_FUNCTIONS(MUST, MAY)
#undef MUST
#undef MAY
};

static iron__once driver_once = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static iron__cuda_driver the_driver;
static void *driver_library;

iron__cuda_text iron__cuda_error_text(iron__cu_result code) {
    const char *name = NULL, *description = NULL;
    iron__cuda_text t;

    if (the_driver.cuGetErrorName(code, &name) != IRON_CUDA_SUCCESS || !name) {
        snprintf(t.text, sizeof t.text, "CUDA error %d", code);
        return t;
    }
    if (the_driver.cuGetErrorString(code, &description) != IRON_CUDA_SUCCESS || !description)
        description = "no text";
    snprintf(t.text, sizeof t.text, "%s (%.80s)", name, description);
    return t;
}

static iron_status fail_at(const char *function, iron__cu_result code, iron_error *err) {
    return iron__fail(err, IRON_E_UNSUPPORTED, code,
                      "cuda: %s failed: %s; check nvidia-smi and CUDA_VISIBLE_DEVICES", function,
                      iron__cuda_error_text(code).text);
}

static iron_status check_version(const char *missing, iron_error *err) {
    iron__cuda_driver *driver = &the_driver;
    char version[32] = "of unknown version";
    iron__cu_result code = IRON_CUDA_ERROR_UNKNOWN;

    if (driver->cuDriverGetVersion)
        code = driver->cuDriverGetVersion(&driver->version);
    if (code == IRON_CUDA_SUCCESS)
        snprintf(version, sizeof version, "for CUDA %d.%d", driver->version / 1000,
                 driver->version % 1000 / 10);
    IRON_FAIL_IF(missing, err, IRON_E_UNSUPPORTED,
                 "cuda: the driver (%s) is too old: it has no %s; update the NVIDIA driver",
                 version, missing);
    if (code != IRON_CUDA_SUCCESS)
        return fail_at("cuDriverGetVersion", code, err);
    IRON_FAIL_IF(driver->version < IRON_CUDA_VERSION_MIN, err, IRON_E_UNSUPPORTED,
                 "cuda: the driver (%s) is too old: at least CUDA %d.%d is needed; "
                 "update the NVIDIA driver",
                 version, IRON_CUDA_VERSION_MIN / 1000, IRON_CUDA_VERSION_MIN % 1000 / 10);
    return IRON_OK;
}

static iron_status load_driver(iron_error *err) {
    static const char *const usual[] = {"libcuda.so.1", NULL};
    iron__library l =
        iron__library_open("IRON_CUDA_LIBRARY", usual, driver_symbols,
                           sizeof driver_symbols / sizeof driver_symbols[0], &the_driver);
    iron__cu_result code;
    iron_status status;

    IRON_FAIL_IF(!l.handle, err, IRON_E_UNSUPPORTED,
                 "cuda: no driver: %.150s; install the NVIDIA driver%s", l.fault,
                 l.is_named ? " or unset IRON_CUDA_LIBRARY" : "");
    status = check_version(l.missing, err);
    if (status != IRON_OK) {
        iron__library_close(&l);
        return status;
    }
    driver_library = l.handle;
    code = the_driver.cuInit(0);
    return code == IRON_CUDA_SUCCESS ? IRON_OK : fail_at("cuInit", code, err);
}

/* Loads and initialises the_driver at the first call. IRON_E_UNSUPPORTED with the reason if it
 * cannot be used, the same at every call. */
static iron_status need_driver(iron_error *err) {
    return iron__once_get(&driver_once, load_driver, err);
}

typedef struct nvml_functions {
/* A declarator takes no more parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FIELD(result, name, parameters) result(*name) parameters;
    IRON_NVML_FUNCTIONS(FIELD, FIELD)
#undef FIELD
} nvml_functions;

static const iron__symbol nvml_symbols[] = {
#define MUST(result, name, parameters) {#name, offsetof(nvml_functions, name), true},
#define MAY(result, name, parameters)  {#name, offsetof(nvml_functions, name), false},
    IRON_NVML_FUNCTIONS(MUST, MAY)
#undef MUST
#undef MAY
};

/* The most important first: the text may not have room for all. */
static const struct {
    unsigned bit;
    bool throttles;
    const char *name;
} throttle_reasons[] = {
    {IRON_NVML_HW_THERMAL, true, "hardware thermal slowdown"},
    {IRON_NVML_POWER_BRAKE, true, "power brake"},
    {IRON_NVML_HW_SLOWDOWN, true, "hardware slowdown"},
    {IRON_NVML_SW_THERMAL, true, "thermal limit"},
    {IRON_NVML_POWER_CAP, false, "power cap"},
    {IRON_NVML_APPLICATION_CLOCKS, false, "set clocks"},
    {IRON_NVML_SYNC_BOOST, false, "sync boost"},
    {IRON_NVML_DISPLAY_CLOCKS, false, "display"},
    {IRON_NVML_IDLE, false, "idle"},
};

static iron__once nvml_once = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static nvml_functions the_nvml;
static void *nvml_library;

static iron_status nvml_fail(const char *function, int code, iron_error *err) {
    const char *text = the_nvml.nvmlErrorString(code);

    return iron__fail(err, IRON_E_UNSUPPORTED, code, "nvml: %s failed: %.120s", function,
                      text ? text : "no text");
}

static iron_status load_nvml(iron_error *err) {
    static const char *const usual[] = {"libnvidia-ml.so.1", NULL};
    iron__library l = iron__library_open("IRON_NVML_LIBRARY", usual, nvml_symbols,
                                         sizeof nvml_symbols / sizeof nvml_symbols[0], &the_nvml);
    int code;

    IRON_FAIL_IF(!l.handle, err, IRON_E_UNSUPPORTED, "nvml: no library: %.150s", l.fault);
    if (l.missing)
        iron__library_close(&l);
    IRON_FAIL_IF(l.missing, err, IRON_E_UNSUPPORTED,
                 "nvml: %.120s has no %s; update the NVIDIA driver", l.path, l.missing);
    nvml_library = l.handle;
    code = the_nvml.nvmlInit_v2();
    return code == IRON_NVML_SUCCESS ? IRON_OK : nvml_fail("nvmlInit_v2", code, err);
}

/* Fills d->nvml. */
static iron_status find_card(iron__cuda_device *d, iron_error *err) {
    char bus[32] = "";
    int code;

    if (d->nvml)
        return IRON_OK;
    code = d->driver->cuDeviceGetPCIBusId(bus, (int)sizeof bus, d->ordinal);
    if (code != IRON_CUDA_SUCCESS)
        return fail_at("cuDeviceGetPCIBusId", code, err);
    code = the_nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &d->nvml);
    if (code == IRON_NVML_SUCCESS)
        return IRON_OK;
    d->nvml = NULL;
    return nvml_fail("nvmlDeviceGetHandleByPciBusId_v2", code, err);
}

static void describe_reasons(unsigned long long reasons, iron__gpu_clocks *out) {
    size_t length = 0;

    for (size_t k = 0; k < sizeof throttle_reasons / sizeof throttle_reasons[0]; k++) {
        size_t room = sizeof out->reasons - length;

        if (!(reasons & throttle_reasons[k].bit))
            continue;
        out->is_throttled |= throttle_reasons[k].throttles;
        if (strlen(throttle_reasons[k].name) + 2 < room)
            length += (size_t)snprintf(out->reasons + length, room, "%s%s", length ? ", " : "",
                                       throttle_reasons[k].name);
    }
}

static iron_status device_clocks(iron__gpu_device *device, iron__gpu_clocks *out, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(device);
    const nvml_functions *nvml = &the_nvml;
    unsigned long long reasons = 0, energy = 0;
    unsigned core = 0, memory = 0, celsius = 0;
    int core_code, memory_code, reasons_code = IRON_NVML_ERROR_NOT_SUPPORTED;

    memset(out, 0, sizeof *out);
    IRON_TRY(iron__once_get(&nvml_once, load_nvml, err));
    IRON_TRY(find_card(d, err));
    core_code = nvml->nvmlDeviceGetClockInfo(d->nvml, IRON_NVML_CLOCK_SM, &core);
    memory_code = nvml->nvmlDeviceGetClockInfo(d->nvml, IRON_NVML_CLOCK_MEMORY, &memory);
    /* the function has a newer and an older name */
    if (nvml->nvmlDeviceGetCurrentClocksEventReasons)
        reasons_code = nvml->nvmlDeviceGetCurrentClocksEventReasons(d->nvml, &reasons);
    else if (nvml->nvmlDeviceGetCurrentClocksThrottleReasons)
        reasons_code = nvml->nvmlDeviceGetCurrentClocksThrottleReasons(d->nvml, &reasons);
    if (core_code && memory_code && reasons_code)
        return nvml_fail("nvmlDeviceGetClockInfo", core_code, err);
    out->core_mhz = core_code ? 0 : core;
    out->memory_mhz = memory_code ? 0 : memory;
    describe_reasons(reasons_code ? 0 : reasons, out);
    if (nvml->nvmlDeviceGetTotalEnergyConsumption &&
        nvml->nvmlDeviceGetTotalEnergyConsumption(d->nvml, &energy) == IRON_NVML_SUCCESS)
        out->energy_mj = energy;
    if (nvml->nvmlDeviceGetTemperature &&
        nvml->nvmlDeviceGetTemperature(d->nvml, IRON_NVML_TEMPERATURE_GPU, &celsius) ==
            IRON_NVML_SUCCESS)
        out->celsius = celsius;
    return IRON_OK;
}

typedef struct error_class {
    iron__cu_result code;
    iron_status status;
    const char *advice; /* NULL: the image lacks code for this card */
} error_class;

static const error_class call_errors[] = {
    {IRON_CUDA_ERROR_INVALID_VALUE, IRON_E_ARG, "check the requested sizes"},
    {IRON_CUDA_ERROR_INVALID_DEVICE, IRON_E_ARG, "list the devices with iron info"},
    {IRON_CUDA_ERROR_INVALID_HANDLE, IRON_E_ARG, "check that it belongs to this device"},
    {IRON_CUDA_ERROR_NOT_FOUND, IRON_E_ARG, "check the name"},
    {IRON_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, IRON_E_ARG, "launch fewer threads per group"},
    {IRON_CUDA_ERROR_OUT_OF_MEMORY, IRON_E_NOMEM, "free device memory or request less"},
    {IRON_CUDA_ERROR_NO_BINARY_FOR_GPU, IRON_E_UNSUPPORTED, NULL},
    {IRON_CUDA_ERROR_INVALID_IMAGE, IRON_E_UNSUPPORTED, NULL},
    {IRON_CUDA_ERROR_INVALID_PTX, IRON_E_UNSUPPORTED, NULL},
    {IRON_CUDA_ERROR_JIT_COMPILER_NOT_FOUND, IRON_E_UNSUPPORTED, NULL},
    {IRON_CUDA_ERROR_UNSUPPORTED_PTX_VERSION, IRON_E_UNSUPPORTED, NULL},
    {IRON_CUDA_ERROR_JIT_COMPILATION_DISABLED, IRON_E_UNSUPPORTED, NULL},
    {IRON_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, IRON_E_UNSUPPORTED, "launch fewer groups"},
    {IRON_CUDA_ERROR_NOT_PERMITTED, IRON_E_UNSUPPORTED, "use another mode or device"},
    {IRON_CUDA_ERROR_NOT_SUPPORTED, IRON_E_UNSUPPORTED, "use another mode or device"},
    {IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, IRON_E_UNSUPPORTED, "use another queue"},
    {IRON_CUDA_ERROR_OPERATING_SYSTEM, IRON_E_IO, "check the system log and limits"},
    {IRON_CUDA_ERROR_NOT_READY, IRON_E_STATE, "wait for the queue first"},
};

static const error_class sticky = {0, IRON_E_IO, "restart the program to use this device"};
static const error_class capture = {0, IRON_E_STATE, "record again"};

static const error_class *classify(iron__cu_result code) {
    for (size_t k = 0; k < sizeof call_errors / sizeof call_errors[0]; k++)
        if (call_errors[k].code == code)
            return &call_errors[k];
    if (code >= IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        code <= IRON_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return &capture;
    return &sticky;
}

iron_status iron__cuda_check(iron__cuda_device *device, iron_error *err, const char *function,
                             iron__cu_result code) {
    const error_class *c = classify(code);
    const char *advice = c->advice ? c->advice : "rebuild with IRON_CUDA_ARCHS for this card";
    iron_error own;

    if (code == IRON_CUDA_SUCCESS)
        return IRON_OK;
    if (device && !c->advice) {
        unsigned arch = device->base.info.version / 10;

        iron__fail(&own, c->status, code,
                   "cuda: %s failed: %s: no code for sm_%u; rebuild with IRON_CUDA_ARCHS=%u",
                   function, iron__cuda_error_text(code).text, arch, arch);
    } else {
        iron__fail(&own, c->status, code, "cuda: %s failed: %s; %s", function,
                   iron__cuda_error_text(code).text, advice);
    }
    /* The first error is the cause, later ones its consequences. */
    if (device && c == &sticky && device->base.failure.status == IRON_OK)
        device->base.failure = own;
    if (err)
        *err = own;
    return own.status;
}

iron_status iron__cuda_enter(iron__gpu_device *device, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(device);

    return IRON_CU(d, err, cuCtxPushCurrent_v2, d->context);
}

iron_status iron__cuda_leave(iron__gpu_device *device, iron_status status, iron_error *err) {
    iron__cu_context *popped = NULL;
    iron_status left = IRON_CU(iron__cuda_device_of(device), status == IRON_OK ? err : NULL,
                               cuCtxPopCurrent_v2, &popped);

    return status == IRON_OK ? left : status;
}

static iron_status probe(size_t *count, iron_error *err) {
    iron__cu_result code;
    int found = 0;

    *count = 0;
    IRON_TRY(need_driver(err));
    code = the_driver.cuDeviceGetCount(&found);
    if (code != IRON_CUDA_SUCCESS)
        return fail_at("cuDeviceGetCount", code, err);
    IRON_FAIL_IF(found <= 0, err, IRON_E_UNSUPPORTED,
                 "cuda: no device; check nvidia-smi and CUDA_VISIBLE_DEVICES");
    *count = (size_t)found;
    return IRON_OK;
}

typedef struct attributes {
    int threads_max, units, maps_host, cache, major, minor;
    int has_managed, has_concurrent_managed, is_cooperative, shared_max, persisting_max;
} attributes;

static const struct {
    iron__cu_device_attribute attribute;
    size_t offset;
} attribute_rows[] = {
    {IRON_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, offsetof(attributes, threads_max)},
    {IRON_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, offsetof(attributes, units)},
    {IRON_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, offsetof(attributes, maps_host)},
    {IRON_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, offsetof(attributes, cache)},
    {IRON_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, offsetof(attributes, major)},
    {IRON_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, offsetof(attributes, minor)},
    {IRON_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, offsetof(attributes, has_managed)},
    {IRON_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
     offsetof(attributes, has_concurrent_managed)},
    {IRON_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, offsetof(attributes, is_cooperative)},
    {IRON_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, offsetof(attributes, shared_max)},
    {IRON_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, offsetof(attributes, persisting_max)},
};

/* Finds the version in the first line of MODULE_VERSION_FILE; "" if there is none. The line is
 * "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ..." or, for the open module,
 * "NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  ...": the first word of digits and
 * dots. */
static void module_version(const char *line, char *version, size_t size) {
    version[0] = '\0';
    while (*line) {
        size_t length = strcspn(line, " \t\n"), number = strspn(line, "0123456789.");

        if (number == length && memchr(line, '.', length)) {
            snprintf(version, size, "%.*s", (int)length, line);
            return;
        }
        line += length + strspn(line + length, " \t\n");
    }
}

#define MODULE_VERSION_FILE "/proc/driver/nvidia/version"

static void describe_lacks(const attributes *a, iron__gpu_info *info) {
    const size_t size = sizeof info->lacks[0];

    if (!a->has_managed) {
        snprintf(info->lacks[IRON_GPU_UVM], size, "the device has no managed memory");
        snprintf(info->lacks[IRON_GPU_UVM_PREFETCH], size, "the device has no managed memory");
    } else if (!a->has_concurrent_managed) {
        snprintf(info->lacks[IRON_GPU_UVM_PREFETCH], size,
                 "host and device cannot use managed memory at the same time");
    } else if (!the_driver.cuMemPrefetchAsync_v2 && !the_driver.cuMemPrefetchAsync) {
        snprintf(info->lacks[IRON_GPU_UVM_PREFETCH], size, "the driver has no cuMemPrefetchAsync");
    }
    if (!a->maps_host)
        snprintf(info->lacks[IRON_GPU_ZERO_COPY], size, "the device cannot map host memory");
}

static iron_status describe(size_t index, iron__gpu_info *info, iron_error *err) {
    const iron__cuda_driver *driver = &the_driver;
    iron__cu_device device = 0;
    size_t memory_bytes = 0;
    attributes a = {0};
    int count = 0;
    FILE *file;
    char line[256] = "", version[32];

    memset(info, 0, sizeof *info);
    IRON_TRY(need_driver(err));
    IRON_TRY(iron__cuda_check(NULL, err, "cuDeviceGetCount", driver->cuDeviceGetCount(&count)));
    IRON_FAIL_IF(index >= (size_t)count, err, IRON_E_ARG,
                 "cuda: no device %zu; there are %d, counted from 0", index, count);
    IRON_TRY(iron__cuda_check(NULL, err, "cuDeviceGet", driver->cuDeviceGet(&device, (int)index)));
    IRON_TRY(iron__cuda_check(NULL, err, "cuDeviceGetName",
                              driver->cuDeviceGetName(info->name, sizeof info->name, device)));
    IRON_TRY(iron__cuda_check(NULL, err, "cuDeviceTotalMem_v2",
                              driver->cuDeviceTotalMem_v2(&memory_bytes, device)));
    for (size_t k = 0; k < sizeof attribute_rows / sizeof attribute_rows[0]; k++) {
        int *value = (int *)(void *)((char *)&a + attribute_rows[k].offset);

        IRON_TRY(iron__cuda_check(
            NULL, err, "cuDeviceGetAttribute",
            driver->cuDeviceGetAttribute(value, attribute_rows[k].attribute, device)));
    }
    file = fopen(MODULE_VERSION_FILE, "re");
    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    module_version(line, version, sizeof version);
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d%s%s", the_driver.version / 1000,
             the_driver.version % 1000 / 10, version[0] ? ", driver " : "", version);
    info->is_gpu = true;
    info->units = (uint32_t)a.units;
    info->group_threads_max = (uint32_t)a.threads_max;
    info->has_f64 = true;
    info->local_bytes_max = (uint64_t)a.shared_max;
    info->memory_bytes = memory_bytes;
    info->cache_bytes = (uint64_t)a.cache;
    info->version = (uint32_t)(a.major * 100 + a.minor * 10);
    info->has_addresses = true;
    info->can_graph = true;
    info->can_overlap = driver->cuLaunchKernelEx && a.major >= 9; /* since Hopper */
    info->can_cooperate = driver->cuLaunchKernelEx && a.is_cooperative;
    info->has_textures = true;
    /* Access windows are attributes of cuLaunchKernelEx. */
    if (driver->cuLaunchKernelEx && a.persisting_max > 0)
        info->persisting_bytes_max = (uint64_t)a.persisting_max;
    describe_lacks(&a, info);
    return IRON_OK;
}

/* Reserves L2 cache for persisting accesses. The limit belongs to the context, which all users of
 * the card share; the last one to set it wins. A driver may grant less than requested or, when it
 * serves several processes, ignore the request, so the limit is read back. */
static iron_status reserve(iron__cuda_device *d, size_t bytes, iron_error *err) {
    size_t granted = 0;
    iron_status status;
    int window_max = 0;

    IRON_TRY(IRON_CU(d, err, cuDeviceGetAttribute, &window_max,
                     IRON_CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, d->ordinal));
    IRON_TRY(IRON_CU(d, err, cuCtxSetLimit, IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, bytes));
    status = IRON_CU(d, err, cuCtxGetLimit, &granted, IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
    if (status == IRON_OK && (granted == 0 || window_max <= 0))
        status = iron__fail(err, IRON_E_UNSUPPORTED, 0,
                            "cuda: the driver reserved %zu of %zu bytes of cache, for windows of "
                            "at most %d bytes; run without a cache reservation",
                            granted, bytes, window_max);
    if (status != IRON_OK) {
        d->driver->cuCtxSetLimit(IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
        d->reserved_bytes = 0;
        return status;
    }
    d->reserved_bytes = granted;
    d->window_bytes_max = (size_t)window_max;
    return IRON_OK;
}

static iron_status cache_reserve(iron__gpu_device *device, uint64_t bytes, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(device);

    if (bytes)
        return reserve(d, (size_t)bytes, err);
    IRON_TRY(IRON_CU(d, err, cuCtxSetLimit, IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
    d->reserved_bytes = 0;
    return IRON_CU(d, err, cuCtxResetPersistingL2Cache);
}

static void device_close(iron__gpu_device *device) {
    iron__cuda_device *d = iron__cuda_device_of(device);

    if (!d)
        return;
    if (d->reserved_bytes)
        iron__gpu_cache_reserve(device, 0, NULL); /* other users may keep the context alive */
    if (d->context)
        d->driver->cuDevicePrimaryCtxRelease_v2(d->ordinal);
    iron__release(iron__allocator_default(), d);
}

static iron_status device_open(size_t index, iron__gpu_device **out, iron_error *err) {
    iron__cuda_device *d;
    iron_status status;

    *out = NULL;
    IRON_TRY(need_driver(err));
    IRON_TRY(IRON_ALLOCATE(&d, iron__allocator_default(), 1, "a CUDA device", err));
    d->base.ops = &iron__cuda_ops;
    d->driver = &the_driver;
    status = describe(index, &d->base.info, err);
    if (status == IRON_OK)
        status = IRON_CU(d, err, cuDeviceGet, &d->ordinal, (int)index);
    if (status == IRON_OK)
        status = IRON_CU(d, err, cuDevicePrimaryCtxRetain, &d->context, d->ordinal);
    if (status != IRON_OK) {
        device_close(&d->base);
        return status;
    }
    *out = &d->base;
    return IRON_OK;
}

static uintptr_t context_of(iron__gpu_device *device) {
    return (uintptr_t)iron__cuda_device_of(device)->context;
}

const iron__gpu_ops iron__cuda_ops = {
    .name = "cuda",
    .probe = probe,
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .enter = iron__cuda_enter,
    .leave = iron__cuda_leave,
    .context = context_of,
    .clocks = device_clocks,
    .cache_reserve = cache_reserve,
    .program = &iron__cuda_program_ops,
    .memory = &iron__cuda_memory_ops,
    .queue = &iron__cuda_queue_ops,
};
