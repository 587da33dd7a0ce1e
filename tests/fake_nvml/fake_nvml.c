/* SPDX-License-Identifier: MIT */
/*
 * fake_nvml.c: a fake of NVIDIA's management library that returns what a test sets. The prototypes
 * come from the backend's list of functions, so a definition that differs does not compile. As with
 * the fake driver, tests remove symbols by patching a copy.
 */
#include "fake_nvml.h"

#include "gpu/cuda/cuda_abi.h"

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

/* Returns the code, and the value if the code is success. */
static int answer(const iron__nvml_device *device, int code, unsigned value, unsigned *out) {
    if (device != &card)
        return 2; /* invalid argument */
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
    *device = &card; /* also on failure: it must not be used then */
    return fake_nvml_state.card_code;
}

int nvmlDeviceGetClockInfo(iron__nvml_device *device, int clock, unsigned *mhz) {
    const fake_nvml *f = &fake_nvml_state;

    return clock == IRON_NVML_CLOCK_SM ? answer(device, f->core_code, f->core, mhz)
                                       : answer(device, f->memory_code, f->memory, mhz);
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

int nvmlDeviceGetTotalEnergyConsumption(iron__nvml_device *device,
                                        unsigned long long *millijoules) {
    *millijoules = fake_nvml_state.energy;
    return device == &card ? fake_nvml_state.energy_code : 2;
}

int nvmlDeviceGetTemperature(iron__nvml_device *device, int sensor, unsigned *celsius) {
    const fake_nvml *f = &fake_nvml_state;

    return sensor == IRON_NVML_TEMPERATURE_GPU
               ? answer(device, f->celsius_code, f->celsius, celsius)
               : 2;
}
