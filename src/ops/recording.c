/* SPDX-License-Identifier: MIT */
/* recording.c: see recording.h. */
#include "ops/recording.h"

#include "core/fail.h"

#include <string.h>

void iron__recording_deinit(iron__recording *recording, iron__gpu_device *device) {
    iron__gpu_graph_destroy(device, recording->graph);
    recording->graph = NULL;
}

static iron_status record(iron__recording *recording, iron__gpu_device *device,
                          iron__recorded_run run, iron__gpu_work *work, const iron__gpu_data *data,
                          iron__gpu_queue *queue, iron_error *err) {
    iron_status status, ended;

    iron__recording_deinit(recording, device);
    IRON_TRY(iron__gpu_graph_begin(queue, err));
    status = run(work, data, queue, err);
    /* However it went, the queue must come out of the recording. */
    ended = iron__gpu_graph_end(queue, &recording->graph, status == IRON_OK ? err : NULL);
    if (status == IRON_OK)
        status = ended;
    if (status != IRON_OK)
        iron__recording_deinit(recording, device);
    return status;
}

iron_status iron__recording_run(iron__recording *recording, iron__gpu_device *device,
                                iron__recorded_run run, iron__gpu_work *work,
                                const iron__gpu_data *data, iron__gpu_queue *queue,
                                iron_error *err) {
    const uintptr_t buffers[3] = {data->inputs[0]->native, data->inputs[1]->native,
                                  data->output->native};

    if (!recording->graph || memcmp(recording->buffers, buffers, sizeof buffers) != 0) {
        IRON_TRY(record(recording, device, run, work, data, queue, err));
        memcpy(recording->buffers, buffers, sizeof buffers);
    }
    return iron__gpu_graph_replay(recording->graph, queue, err);
}

iron_status iron__recording_suits(const iron__gpu_device *device, iron_error *err) {
    IRON_FAIL_IF(!device->info.can_graph, err, IRON_E_UNSUPPORTED,
                 "%s cannot record launches and replay them as one", device->info.name);
    return IRON_OK;
}
