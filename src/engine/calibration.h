/* SPDX-License-Identifier: MIT */
/*
 * calibration.h: which mode is the fastest on a device, for a batch size and a number of nodes.
 *
 * Measured once a device (iron_calibrate, which `iron info --measure` calls) and kept in the user's
 * cache folder; `--mode auto` looks the nearest measured case up. A device that was not calibrated
 * gets `champion`, which is right for all but tiny work.
 */
#ifndef IRON_ENGINE_CALIBRATION_H
#define IRON_ENGINE_CALIBRATION_H

#include "engine/engine.h"

#define IRON_CALIBRATION_MODES 9u
#define IRON_CALIBRATION_CASES 20u

/* One case: nanoseconds a batch in each mode, in the rows' order; 0: not measured, too slow. */
typedef struct iron__calibration_case {
    uint64_t batch, nodes;
    double ns[IRON_CALIBRATION_MODES];
} iron__calibration_case;

typedef struct iron__calibration {
    size_t count;
    iron__calibration_case cases[IRON_CALIBRATION_CASES];
} iron__calibration;

/* What a device's calibration is kept under. */
void iron__calibration_key(size_t backend, const iron__gpu_info *info, char *key, size_t size);

/* false: there is none, or it is damaged, or of another version or driver. */
bool iron__calibration_load(const char *key, iron__calibration *out);
iron_status iron__calibration_save(const char *key, const iron__calibration *calibration,
                                   iron_error *err);

/* The measured case nearest to this one, and the fastest mode's index in it. */
const iron__calibration_case *iron__calibration_nearest(const iron__calibration *calibration,
                                                        uint64_t batch, uint64_t nodes);
size_t iron__calibration_fastest(const iron__calibration_case *c);

/* Fills gpu_row and reason of a choice whose mode is `auto`. */
void iron__calibration_choose(const iron_config *config, size_t backend, iron__mode_choice *choice);

#endif
