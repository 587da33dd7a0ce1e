/* SPDX-License-Identifier: MIT */
/*
 * fake_stream.c: streams, events, launches and graphs of the pretended driver. A stream does its
 * work while it is put in; a recording one notes it down for the graph, and replaying does it then.
 * Time is a clock that goes on 1.5 ms an event.
 */
#include "fake_state.h"

static float clock_ms;

static void perform(const fake_node *n) {
    if (n->kind == SET) {
        memset(n->to, 0, n->bytes);
    } else if (n->kind == COPY) {
        memcpy(n->to, n->from, n->bytes);
    } else {
        fake.last = n->launch;
        fake.launches++;
    }
}

int fake_submit(const void *stream, const fake_node *n) {
    fake_object *s = fake_find(FAKE_STREAM, stream), *graph;

    REQUIRE(s || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    fake.on_default += !s;
    graph = s ? s->recording : NULL;
    if (!graph) {
        perform(n);
        return IRON_CUDA_SUCCESS;
    }
    REQUIRE(graph->node_count < NODES_MAX, IRON_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    graph->nodes[graph->node_count++] = *n;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamCreate(iron__cu_stream **stream, unsigned flags) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(flags == IRON_CU_STREAM_NON_BLOCKING, IRON_CUDA_ERROR_INVALID_VALUE);
    *stream = (iron__cu_stream *)fake_add(FAKE_STREAM);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamDestroy_v2(iron__cu_stream *stream) {
    return fake_give_back(__func__, fake_find(FAKE_STREAM, stream));
}

iron__cu_result cuStreamSynchronize(iron__cu_stream *stream) {
    const fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    return s && s->recording ? IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamWaitEvent(iron__cu_stream *stream, iron__cu_event *event, unsigned flags) {
    ARRIVE_IN_CONTEXT();
    REQUIRE((fake_find(FAKE_STREAM, stream) || !stream) && fake_find(FAKE_EVENT, event),
            IRON_CUDA_ERROR_INVALID_HANDLE);
    return flags ? IRON_CUDA_ERROR_INVALID_VALUE : IRON_CUDA_SUCCESS;
}

iron__cu_result cuEventCreate(iron__cu_event **event, unsigned flags) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(flags == 0, IRON_CUDA_ERROR_INVALID_VALUE);
    *event = (iron__cu_event *)fake_add(FAKE_EVENT);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuEventDestroy_v2(iron__cu_event *event) {
    return fake_give_back(__func__, fake_find(FAKE_EVENT, event));
}

iron__cu_result cuEventRecord(iron__cu_event *event, iron__cu_stream *stream) {
    fake_object *e = fake_find(FAKE_EVENT, event);

    ARRIVE_IN_CONTEXT();
    REQUIRE(e && (fake_find(FAKE_STREAM, stream) || !stream), IRON_CUDA_ERROR_INVALID_HANDLE);
    e->time = clock_ms += 1.5F;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuEventSynchronize(iron__cu_event *event) {
    ARRIVE_IN_CONTEXT();
    return fake_find(FAKE_EVENT, event) ? IRON_CUDA_SUCCESS : IRON_CUDA_ERROR_INVALID_HANDLE;
}

iron__cu_result cuEventElapsedTime(float *ms, iron__cu_event *from, iron__cu_event *to) {
    const fake_object *a = fake_find(FAKE_EVENT, from), *b = fake_find(FAKE_EVENT, to);

    ARRIVE_IN_CONTEXT();
    REQUIRE(a && b && a->time > 0 && b->time > 0, IRON_CUDA_ERROR_INVALID_HANDLE);
    *ms = b->time - a->time;
    return IRON_CUDA_SUCCESS;
}

static int note_attribute(const iron__cu_launch_attribute *a, fake_launch *l) {
    const iron__cu_window *w = &a->value.window;

    if (a->id == IRON_CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        l->is_cooperative = a->value.is_cooperative == 1;
    } else if (a->id == IRON_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
        l->may_overlap = a->value.may_overlap == 1;
    } else {
        REQUIRE(a->id == IRON_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && w->bytes > 0 &&
                    w->bytes <= (size_t)fake.window_max && w->hit_ratio > 0 && w->hit_ratio <= 1 &&
                    w->hit == IRON_CU_ACCESS_PROPERTY_PERSISTING &&
                    w->miss == IRON_CU_ACCESS_PROPERTY_STREAMING,
                IRON_CUDA_ERROR_INVALID_VALUE);
        l->window = w->start;
        l->window_bytes = w->bytes;
        l->window_ratio = w->hit_ratio;
    }
    return IRON_CUDA_SUCCESS;
}

/* The driver knows the arguments' sizes from the kernel's code; here its line tells them. */
static int note_launch(const iron__cu_launch_config *c, const iron__cu_function *function,
                       void **arguments, bool is_extended) {
    fake_node n = {.kind = RUN,
                   .launch = {.kernel = function->name,
                              .grid = {c->grid_x, c->grid_y, c->grid_z},
                              .block = {c->block_x, c->block_y, c->block_z},
                              .local_bytes = c->shared_bytes,
                              .is_extended = is_extended}};
    fake_launch *l = &n.launch;

    for (unsigned k = 0; k < c->attribute_count; k++) {
        int code = note_attribute(&c->attributes[k], l);

        REQUIRE(code == IRON_CUDA_SUCCESS, code);
    }
    REQUIRE(c->block_x * c->block_y * c->block_z <= 1024 &&
                fake_may_have(function, c->shared_bytes),
            IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!l->is_cooperative || c->grid_x * c->grid_y <= fake.groups_max,
            IRON_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    for (size_t k = 0; function->sizes[k]; k++) {
        size_t bytes = function->sizes[k] == 'p' ? 8 : (size_t)(function->sizes[k] - '0');

        memcpy(l->arguments + l->argument_bytes, arguments[k], bytes);
        l->argument_bytes += bytes;
    }
    return fake_submit(c->stream, &n);
}

iron__cu_result cuLaunchKernel(iron__cu_function *function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, iron__cu_stream *stream,
                               void **arguments, void **extra) {
    const iron__cu_launch_config config = {grid_x,  grid_y,       grid_z, block_x, block_y,
                                           block_z, shared_bytes, stream, NULL,    0};

    ARRIVE_IN_CONTEXT();
    REQUIRE(!extra, IRON_CUDA_ERROR_INVALID_VALUE);
    return note_launch(&config, function, arguments, false);
}

iron__cu_result cuLaunchKernelEx(const iron__cu_launch_config *config, iron__cu_function *function,
                                 void **arguments, void **extra) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(!extra, IRON_CUDA_ERROR_INVALID_VALUE);
    return note_launch(config, function, arguments, true);
}

static fake_object *add_graph(fake_kind kind) {
    fake_object *o = fake_add(kind);

    o->nodes = calloc(NODES_MAX, sizeof *o->nodes);
    if (!o->nodes)
        abort();
    return o;
}

iron__cu_result cuStreamBeginCapture_v2(iron__cu_stream *stream, iron__cu_capture_mode mode) {
    fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s, IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REQUIRE(mode == IRON_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !s->recording,
            IRON_CUDA_ERROR_INVALID_VALUE);
    s->recording = add_graph(FAKE_GRAPH);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamEndCapture(iron__cu_stream *stream, iron__cu_graph **graph) {
    fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s && s->recording, IRON_CUDA_ERROR_INVALID_VALUE);
    *graph = (iron__cu_graph *)s->recording;
    s->recording = NULL;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamIsCapturing(iron__cu_stream *stream, iron__cu_capture_status *status) {
    const fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    *status = s && s->recording ? IRON_CU_STREAM_CAPTURE_STATUS_ACTIVE
                                : IRON_CU_STREAM_CAPTURE_STATUS_NONE;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuGraphInstantiateWithFlags(iron__cu_graph_exec **exec, iron__cu_graph *graph,
                                            unsigned long long flags) {
    const fake_object *g = fake_find(FAKE_GRAPH, graph);
    fake_object *e;

    ARRIVE_IN_CONTEXT();
    REQUIRE(g && flags == 0, IRON_CUDA_ERROR_INVALID_VALUE);
    e = add_graph(FAKE_EXEC);
    memcpy(e->nodes, g->nodes, NODES_MAX * sizeof *e->nodes);
    e->node_count = g->node_count;
    *exec = (iron__cu_graph_exec *)e;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuGraphLaunch(iron__cu_graph_exec *exec, iron__cu_stream *stream) {
    const fake_object *e = fake_find(FAKE_EXEC, exec);

    ARRIVE_IN_CONTEXT();
    REQUIRE(e && (fake_find(FAKE_STREAM, stream) || !stream), IRON_CUDA_ERROR_INVALID_HANDLE);
    for (size_t k = 0; k < e->node_count; k++)
        perform(&e->nodes[k]);
    fake.replays++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuGraphExecDestroy(iron__cu_graph_exec *exec) {
    return fake_give_back(__func__, fake_find(FAKE_EXEC, exec));
}

iron__cu_result cuGraphDestroy(iron__cu_graph *graph) {
    return fake_give_back(__func__, fake_find(FAKE_GRAPH, graph));
}
