/* SPDX-License-Identifier: MIT */
/*
 * cuda_nvml.h: NVIDIA's management library, which knows what CUDA does not tell: clocks, heat,
 * power, and why a card is slower than it could be. It comes with the driver, and is found like it,
 * never linked; a machine without it loses these figures and nothing else.
 *
 * One list names every function that is called, with its version, and declares its parameters; all
 * return a code, 0 for success, but nvmlErrorString. Values are those that NVML has published; they
 * never change.
 */
#ifndef IRON_GPU_CUDA_NVML_H
#define IRON_GPU_CUDA_NVML_H

typedef struct iron__nvml_device iron__nvml_device;

/* clang-format would take the parameters for products. */
/* clang-format off */
#define IRON_NVML_FUNCTIONS(MUST, MAY)                                                             \
    MUST(int, nvmlInit_v2, (void))                                                                 \
    MUST(const char *, nvmlErrorString, (int code))                                                \
    MUST(int, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, iron__nvml_device **device))     \
    MUST(int, nvmlDeviceGetClockInfo, (iron__nvml_device *device, int clock, unsigned *mhz))       \
    MAY(int, nvmlDeviceGetMaxClockInfo, (iron__nvml_device *device, int clock, unsigned *mhz))     \
    MAY(int, nvmlDeviceGetCurrentClocksEventReasons,                                               \
        (iron__nvml_device *device, unsigned long long *reasons))                                  \
    MAY(int, nvmlDeviceGetCurrentClocksThrottleReasons,                                            \
        (iron__nvml_device *device, unsigned long long *reasons))                                  \
    MAY(int, nvmlDeviceGetTemperature, (iron__nvml_device *device, int sensor, unsigned *celsius)) \
    MAY(int, nvmlDeviceGetPowerUsage, (iron__nvml_device *device, unsigned *milliwatts))
/* clang-format on */

enum { IRON_NVML_SUCCESS = 0, IRON_NVML_ERROR_NOT_SUPPORTED = 3 };
enum { IRON_NVML_CLOCK_SM = 1, IRON_NVML_CLOCK_MEMORY = 2 };
enum { IRON_NVML_SENSOR_GPU = 0 };

/* Why clocks are not at their highest. */
enum {
    IRON_NVML_IDLE = 0x1,
    IRON_NVML_APPLICATION_CLOCKS = 0x2,
    IRON_NVML_POWER_CAP = 0x4,
    IRON_NVML_HW_SLOWDOWN = 0x8,
    IRON_NVML_SYNC_BOOST = 0x10,
    IRON_NVML_SW_THERMAL = 0x20,
    IRON_NVML_HW_THERMAL = 0x40,
    IRON_NVML_POWER_BRAKE = 0x80,
    IRON_NVML_DISPLAY_CLOCKS = 0x100
};

/* For tests: closes the library and forgets it, so that the next call looks again. No device that
 * was asked for its clocks may be open. */
void iron__cuda_nvml_forget(void);

#endif
