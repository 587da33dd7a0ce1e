/* SPDX-License-Identifier: MIT */
/*
 * cuda_nvml.c: what a card does at this moment, asked of NVML.
 *
 * The library is looked for once a process, at the first question, like the driver's
 * (cuda_driver.c): under a mutex, constant once it was tried, and kept open once it was
 * initialised. A card is found in it by its place on the bus, since the two number cards
 * differently.
 *
 * Nothing here is fatal, and nothing marks a device. Cards and virtual machines differ in what they
 * tell: a figure that is refused stays 0, and only a card that tells nothing at all is reported.
 *
 * Throttled means slowed down against the user's will: heat, or a power supply that gives out. An
 * idle card, clocks that somebody set, and the power limit that the card is sold with are told
 * among the reasons, but they are how the machine is meant to be.
 */
#include "gpu/cuda/cuda_nvml.h"
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_NAME     "libnvidia-ml.so.1"
#define LIBRARY_VARIABLE "IRON_NVML_LIBRARY"

typedef struct functions {
/* A declarator takes no more parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FIELD(result, name, parameters) result(*name) parameters;
    IRON_NVML_FUNCTIONS(FIELD, FIELD)
#undef FIELD
} functions;

static const struct {
    const char *name;
    size_t offset; /* in functions */
    bool is_required;
} rows[] = {
#define MUST(result, name, parameters) {#name, offsetof(functions, name), true},
#define MAY(result, name, parameters)  {#name, offsetof(functions, name), false},
    IRON_NVML_FUNCTIONS(MUST, MAY)
#undef MUST
#undef MAY
};

static const struct {
    unsigned bit;
    bool throttles;
    const char *name;
} causes[] = {
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool is_tried;
    void *library;
    functions nvml;
    iron_error failure; /* IRON_OK: it can be used */
} loaded;

static iron_status fail_at(const functions *nvml, const char *function, int code, iron_error *err) {
    const char *text = nvml->nvmlErrorString(code);

    return iron__fail(err, IRON_E_UNSUPPORTED, code, "nvml: %s failed: %.120s", function,
                      text ? text : "no text");
}

/* The first required function that the library lacks; NULL if it has all of them. */
static const char *find_functions(void *library, functions *nvml) {
    const char *missing = NULL;

    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        void *symbol = dlsym(library, rows[k].name);

        memcpy((char *)nvml + rows[k].offset, &symbol, sizeof symbol);
        if (!symbol && rows[k].is_required && !missing)
            missing = rows[k].name;
    }
    return missing;
}

static iron_status load(functions *nvml, void **library, iron_error *err) {
    /* Not from a program that runs with rights its caller does not have. */
    const char *named = secure_getenv(LIBRARY_VARIABLE);
    const char *path = named && named[0] ? named : LIBRARY_NAME, *missing;
    int code;

    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) {
        const char *reason = dlerror();

        return iron__fail(err, IRON_E_UNSUPPORTED, 0, "nvml: no library: %.150s",
                          reason ? reason : path);
    }
    missing = find_functions(*library, nvml);
    if (missing) {
        dlclose(*library);
        *library = NULL;
        return iron__fail(err, IRON_E_UNSUPPORTED, 0,
                          "nvml: %.120s has no %s; update the NVIDIA driver", path, missing);
    }
    code = nvml->nvmlInit_v2();
    return code == IRON_NVML_SUCCESS ? IRON_OK : fail_at(nvml, "nvmlInit_v2", code, err);
}

static iron_status find_library(const functions **out, iron_error *err) {
    iron_status status;

    pthread_mutex_lock(&lock);
    if (!loaded.is_tried)
        load(&loaded.nvml, &loaded.library, &loaded.failure);
    loaded.is_tried = true;
    status = loaded.failure.status;
    *out = &loaded.nvml;
    if (status != IRON_OK && err)
        *err = loaded.failure;
    pthread_mutex_unlock(&lock);
    return status;
}

void iron__cuda_nvml_forget(void) {
    pthread_mutex_lock(&lock);
    if (loaded.library)
        dlclose(loaded.library);
    memset(&loaded, 0, sizeof loaded);
    pthread_mutex_unlock(&lock);
}

static iron_status find_card(const functions *nvml, iron__cuda_device *d, iron_error *err) {
    char bus[32] = "", words[160];
    int code;

    if (d->watched)
        return IRON_OK;
    code = d->driver->cuDeviceGetPCIBusId(bus, (int)sizeof bus, d->ordinal);
    if (code != IRON_CUDA_SUCCESS) {
        iron__cuda_words(d->driver, code, words, sizeof words);
        return iron__fail(err, IRON_E_UNSUPPORTED, code, "cuda: cuDeviceGetPCIBusId failed: %s",
                          words);
    }
    code = nvml->nvmlDeviceGetHandleByPciBusId_v2(bus, &d->watched);
    if (code == IRON_NVML_SUCCESS)
        return IRON_OK;
    d->watched = NULL;
    return fail_at(nvml, "nvmlDeviceGetHandleByPciBusId_v2", code, err);
}

static void name_reasons(unsigned long long reasons, iron__gpu_clocks *out) {
    size_t length = 0;

    for (size_t k = 0; k < sizeof causes / sizeof causes[0]; k++) {
        size_t room = sizeof out->reasons - length;

        if (!(reasons & causes[k].bit))
            continue;
        out->is_throttled |= causes[k].throttles;
        if (strlen(causes[k].name) + 2 < room) /* those that matter come first, the rest may miss */
            length += (size_t)snprintf(out->reasons + length, room, "%s%s", length ? ", " : "",
                                       causes[k].name);
    }
}

/* The newer name of the same function first. */
static int ask_reasons(const functions *nvml, iron__nvml_device *card,
                       unsigned long long *reasons) {
    if (nvml->nvmlDeviceGetCurrentClocksEventReasons)
        return nvml->nvmlDeviceGetCurrentClocksEventReasons(card, reasons);
    if (nvml->nvmlDeviceGetCurrentClocksThrottleReasons)
        return nvml->nvmlDeviceGetCurrentClocksThrottleReasons(card, reasons);
    return IRON_NVML_ERROR_NOT_SUPPORTED;
}

/* What may be missing without a word. */
static void ask_rest(const functions *nvml, iron__nvml_device *card, iron__gpu_clocks *out) {
    unsigned value = 0;

    if (nvml->nvmlDeviceGetMaxClockInfo &&
        nvml->nvmlDeviceGetMaxClockInfo(card, IRON_NVML_CLOCK_SM, &value) == IRON_NVML_SUCCESS)
        out->core_max_mhz = value;
    if (nvml->nvmlDeviceGetTemperature &&
        nvml->nvmlDeviceGetTemperature(card, IRON_NVML_SENSOR_GPU, &value) == IRON_NVML_SUCCESS)
        out->temperature_c = value;
    if (nvml->nvmlDeviceGetPowerUsage &&
        nvml->nvmlDeviceGetPowerUsage(card, &value) == IRON_NVML_SUCCESS)
        out->power_w = (value + 500) / 1000;
}

iron_status iron__cuda_clocks(iron__gpu_device *device, iron__gpu_clocks *out, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(device);
    const functions *nvml = NULL;
    unsigned long long reasons = 0;
    unsigned core = 0, memory = 0;
    int core_code, memory_code, reasons_code;

    memset(out, 0, sizeof *out);
    IRON_TRY(find_library(&nvml, err));
    IRON_TRY(find_card(nvml, d, err));
    core_code = nvml->nvmlDeviceGetClockInfo(d->watched, IRON_NVML_CLOCK_SM, &core);
    memory_code = nvml->nvmlDeviceGetClockInfo(d->watched, IRON_NVML_CLOCK_MEMORY, &memory);
    reasons_code = ask_reasons(nvml, d->watched, &reasons);
    if (core_code && memory_code && reasons_code)
        return fail_at(nvml, "nvmlDeviceGetClockInfo", core_code, err);
    out->core_mhz = core_code ? 0 : core;
    out->memory_mhz = memory_code ? 0 : memory;
    name_reasons(reasons_code ? 0 : reasons, out);
    ask_rest(nvml, d->watched, out);
    return IRON_OK;
}
