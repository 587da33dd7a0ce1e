/* SPDX-License-Identifier: MIT */
/*
 * cuda_graph.c: a queue's work, recorded while it is put in and replayed with one call.
 *
 * What a graph saves is the host's part of each launch, which counts where a batch is small.
 * Recording is the business of this thread alone (THREAD_LOCAL): other threads may go on allocating
 * memory meanwhile. The recorded form is not kept; the driver's executable one needs nothing of it.
 *
 * However the recording ends, the stream is an ordinary one afterwards: a recording that failed is
 * ended and thrown away.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"
#include "core/memory.h"

struct iron__gpu_graph {
    iron__cuda_device *device;
    iron__cu_graph_exec *exec;
};

/* Ends a recording that nobody wants; nothing if there is none. */
static void abandon(iron__cuda_device *d, iron__cu_stream *stream) {
    iron__cu_capture_status capture = IRON_CU_STREAM_CAPTURE_STATUS_NONE;
    iron__cu_graph *graph = NULL;

    d->driver->cuStreamIsCapturing(stream, &capture);
    if (capture != IRON_CU_STREAM_CAPTURE_STATUS_NONE)
        d->driver->cuStreamEndCapture(stream, &graph);
    if (graph)
        d->driver->cuGraphDestroy(graph);
}

iron_status iron__cuda_graph_begin(iron__gpu_queue *queue, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    iron_status status;

    IRON_TRY(iron__cuda_enter(d, err));
    status =
        IRON_CU(d, err, cuStreamBeginCapture_v2, stream, IRON_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (status != IRON_OK)
        return iron__cuda_leave(d, status, err);
    status = iron__cuda_leave(d, IRON_OK, err);
    if (status != IRON_OK && iron__cuda_enter(d, NULL) == IRON_OK) {
        abandon(d, stream);
        iron__cuda_leave(d, IRON_OK, NULL);
    }
    return status;
}

/* The recording, or the stream set free. */
static iron_status end_capture(iron__cuda_device *d, iron__cu_stream *stream,
                               iron__cu_graph **graph, iron_error *err) {
    iron_status status = IRON_CU(d, err, cuStreamEndCapture, stream, graph);

    if (status == IRON_OK)
        return IRON_OK;
    if (*graph)
        d->driver->cuGraphDestroy(*graph);
    *graph = NULL;
    abandon(d, stream);
    return status;
}

static iron_status make_exec(iron__gpu_graph *graph, iron__cu_stream *stream, iron_error *err) {
    iron__cuda_device *d = graph->device;
    iron__cu_graph *recorded = NULL;
    iron_status status, destroyed;

    IRON_TRY(end_capture(d, stream, &recorded, err));
    status = IRON_CU(d, err, cuGraphInstantiateWithFlags, &graph->exec, recorded, 0);
    destroyed = IRON_CU(d, status == IRON_OK ? err : NULL, cuGraphDestroy, recorded);
    return status == IRON_OK ? destroyed : status;
}

iron_status iron__cuda_graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    iron__cu_stream *stream = iron__cuda_stream_of(queue);
    iron__gpu_graph *graph;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__cuda_enter(d, err));
    graph = iron__allocate(iron__allocator_default(), 1, sizeof *graph, "a graph", err);
    if (!graph) {
        abandon(d, stream);
        return iron__cuda_leave(d, IRON_E_NOMEM, err);
    }
    graph->device = d;
    status = iron__cuda_leave(d, make_exec(graph, stream, err), err);
    if (status != IRON_OK) {
        iron__cuda_graph_destroy(graph);
        return status;
    }
    *out = graph;
    return IRON_OK;
}

iron_status iron__cuda_graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue,
                                    iron_error *err) {
    iron__cuda_device *d = graph->device;

    IRON_TRY(iron__cuda_enter(d, err));
    return iron__cuda_leave(
        d, IRON_CU(d, err, cuGraphLaunch, graph->exec, iron__cuda_stream_of(queue)), err);
}

void iron__cuda_graph_destroy(iron__gpu_graph *graph) {
    if (!graph)
        return;
    if (graph->exec)
        IRON_CU_DROP(graph->device, cuGraphExecDestroy, graph->exec);
    iron__release(iron__allocator_default(), graph);
}
