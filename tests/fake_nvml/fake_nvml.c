/* SPDX-License-Identifier: MIT */
/*
 * fake_nvml.c: a library that pretends to be NVIDIA's management library: it says what a test tells
 * it to say. The prototypes come from the backend's own table, so that a definition which differs
 * from it does not compile. As with the pretended driver, tests take names away by patching a copy.
 */
#include "fake_nvml.h"

#include "gpu/cuda/cuda_nvml.h"

#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

#define DECLARE(result, name, parameters) EXPORT result name parameters;
IRON_NVML_FUNCTIONS(DECLARE, DECLARE)
#undef DECLARE

struct iron__nvml_device {
    char nothing;
};

EXPORT extern fake_nvml fake_nvml_state;
fake_nvml fake_nvml_state;

static iron__nvml_device card;

/* The code of a question about the card, and the answer where it is a success. */
static int answer(const iron__nvml_device *device, int code, unsigned value, unsigned *out) {
    if (device != &card)
        return 2; /* a wrong argument */
    if (code == 0)
        *out = value;
    return code;
}

int nvmlInit_v2(void) {
    fake_nvml_state.inits++;
    return fake_nvml_state.init_code;
}

const char *nvmlErrorString(int code) {
    return code == IRON_NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : "Unknown Error";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, iron__nvml_device **device) {
    fake_nvml_state.cards++;
    snprintf(fake_nvml_state.bus, sizeof fake_nvml_state.bus, "%s", bus);
    *device = &card; /* also on failure: nobody may use it then */
    return fake_nvml_state.card_code;
}

int nvmlDeviceGetClockInfo(iron__nvml_device *device, int clock, unsigned *mhz) {
    const fake_nvml *f = &fake_nvml_state;

    return clock == IRON_NVML_CLOCK_SM ? answer(device, f->core_code, f->core, mhz)
                                       : answer(device, f->memory_code, f->memory, mhz);
}

int nvmlDeviceGetMaxClockInfo(iron__nvml_device *device, int clock, unsigned *mhz) {
    const fake_nvml *f = &fake_nvml_state;

    return clock == IRON_NVML_CLOCK_SM ? answer(device, f->max_code, f->max, mhz) : 2;
}

int nvmlDeviceGetCurrentClocksEventReasons(iron__nvml_device *device, unsigned long long *reasons) {
    *reasons = fake_nvml_state.reasons;
    return device == &card ? fake_nvml_state.reasons_code : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(iron__nvml_device *device,
                                              unsigned long long *reasons) {
    fake_nvml_state.old_reasons++;
    *reasons = fake_nvml_state.reasons;
    return device == &card ? fake_nvml_state.reasons_code : 2;
}

int nvmlDeviceGetTemperature(iron__nvml_device *device, int sensor, unsigned *celsius) {
    const fake_nvml *f = &fake_nvml_state;

    return sensor == IRON_NVML_SENSOR_GPU
               ? answer(device, f->temperature_code, f->temperature, celsius)
               : 2;
}

int nvmlDeviceGetPowerUsage(iron__nvml_device *device, unsigned *milliwatts) {
    return answer(device, fake_nvml_state.power_code, fake_nvml_state.milliwatts, milliwatts);
}
