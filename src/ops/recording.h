/* SPDX-License-Identifier: MIT */
/*
 * recording.h: a contender's launches, recorded once and replayed with one call.
 *
 * A recording holds the addresses of its buffers, which are known when it runs and not before: so
 * the first run records, and any run that brings other buffers than the one before it.
 */
#ifndef IRON_OPS_RECORDING_H
#define IRON_OPS_RECORDING_H

#include "ops/op.h"

typedef struct iron__recording {
    iron__gpu_graph *graph; /* NULL: nothing is recorded */
    uintptr_t buffers[3];   /* two inputs and the output that it was recorded with */
} iron__recording;

/* What is recorded: a way's run. */
typedef iron_status (*iron__recorded_run)(iron__gpu_work *work, const iron__gpu_data *data,
                                          iron__gpu_queue *queue, iron_error *err);

/* Puts what `run` would put into the queue there, by replaying it. */
iron_status iron__recording_run(iron__recording *recording, iron__gpu_device *device,
                                iron__recorded_run run, iron__gpu_work *work,
                                const iron__gpu_data *data, iron__gpu_queue *queue,
                                iron_error *err);
void iron__recording_deinit(iron__recording *recording, iron__gpu_device *device);

/* IRON_E_UNSUPPORTED where the device cannot. */
iron_status iron__recording_suits(const iron__gpu_device *device, iron_error *err);

#endif
