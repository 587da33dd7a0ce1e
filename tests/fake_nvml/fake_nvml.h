/* SPDX-License-Identifier: MIT */
/*
 * fake_nvml.h: how a test sets what the fake management library returns. The test opens the same
 * library as the backend and looks up the state by FAKE_NVML_STATE.
 */
#ifndef TESTS_FAKE_NVML_H
#define TESTS_FAKE_NVML_H

#define FAKE_NVML_STATE "fake_nvml_state"

/* Each code is the return value of a function; 0: the figure is returned. */
typedef struct fake_nvml {
    int init_code, card_code, core_code, memory_code, reasons_code, energy_code, celsius_code;
    unsigned core, memory, celsius;
    unsigned long long reasons, energy;
    unsigned inits, cards, old_reasons; /* calls; old: of the older name */
    char bus[32];                       /* of the last lookup */
} fake_nvml;

#endif
