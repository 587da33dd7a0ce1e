/* SPDX-License-Identifier: MIT */
/*
 * stage.c: see stage.h. Memory is taken when the first contender asks for it, so that a race
 * without managed memory never takes any; what the device or the host cannot give comes back as an
 * error that becomes the contender's reason to be skipped.
 */
#include "arena/stage.h"

#include "core/clock.h"
#include "core/fail.h"

#include <stdlib.h>
#include <string.h>

#define FLUSH_LEAST ((size_t)64 << 20)

static iron_status create_queues(iron__stage *s, iron_error *err) {
    for (uint32_t k = 0; k < s->streams; k++) {
        IRON_TRY(iron__gpu_queue_create(s->device, &s->queues[k], err));
        IRON_TRY(iron__gpu_event_create(s->device, &s->joined[k], err));
    }
    IRON_TRY(iron__gpu_event_create(s->device, &s->begin, err));
    return iron__gpu_event_create(s->device, &s->end, err);
}

static iron_status create_flush(iron__stage *s, iron_error *err) {
    size_t bytes = 2 * (size_t)s->device->info.cache_bytes;

    bytes = bytes > FLUSH_LEAST ? bytes / IRON_PASS_TURN_BYTES * IRON_PASS_TURN_BYTES : FLUSH_LEAST;
    IRON_TRY(iron__passes_init(&s->passes, s->device, err));
    IRON_TRY(iron__gpu_buffer_create(s->device, IRON_GPU_MEMORY_DEVICE, bytes, &s->flush, err));
    IRON_TRY(iron__gpu_clear(s->queues[0], s->flush, 0, bytes, err));
    return iron__passes_reset(&s->passes, s->queues[0], err);
}

/* Can two events be told apart by their times? */
static iron_status try_events(iron__stage *s, iron_error *err) {
    double ms = 0;

    IRON_TRY(iron__gpu_event_record(s->queues[0], s->begin, err));
    IRON_TRY(iron__stage_flush(s, err));
    IRON_TRY(iron__gpu_event_record(s->queues[0], s->end, err));
    IRON_TRY(iron__gpu_event_wait(s->device, s->end, err));
    s->has_event_times =
        iron__gpu_event_elapsed(s->device, s->begin, s->end, &ms, NULL) == IRON_OK && ms > 0;
    return IRON_OK;
}

static iron_status fill(iron__stage *s, iron_error *err) {
    s->poison = malloc(s->problem->output_bytes);
    s->answer = malloc(s->problem->output_bytes);
    IRON_FAIL_IF(!s->poison || !s->answer, err, IRON_E_NOMEM,
                 "out of memory: an output of %zu bytes", s->problem->output_bytes);
    memset(s->poison, 0xFF, s->problem->output_bytes);
    IRON_TRY(create_queues(s, err));
    IRON_TRY(create_flush(s, err));
    return try_events(s, err);
}

iron_status iron__stage_open(iron__stage *stage, iron__gpu_device *device,
                             const iron__problem *problem, uint32_t streams, iron_error *err) {
    iron_status status;

    *stage = (iron__stage){.device = device, .problem = problem, .streams = streams ? streams : 1};
    status = fill(stage, err);
    if (status != IRON_OK)
        iron__stage_close(stage);
    return status;
}

static void wait_for_all(iron__stage *s) {
    for (uint32_t k = 0; k < s->streams; k++)
        if (s->queues[k])
            (void)iron__gpu_queue_wait(s->queues[k], NULL); /* what fails now has failed before */
}

static void destroy_place(iron__place *place) {
    for (size_t k = 0; k < IRON_OP_INPUTS; k++)
        iron__gpu_buffer_destroy(place->inputs[k]);
    *place = (iron__place){.ms = 0};
}

void iron__stage_close(iron__stage *s) {
    if (s->device) {
        wait_for_all(s);
        for (size_t k = 0; k < IRON_MEMORIES; k++)
            destroy_place(&s->places[k]);
        iron__gpu_buffer_destroy(s->flush);
        iron__passes_deinit(&s->passes);
        iron__gpu_event_destroy(s->device, s->begin);
        iron__gpu_event_destroy(s->device, s->end);
        for (uint32_t k = 0; k < s->streams; k++) {
            iron__gpu_event_destroy(s->device, s->joined[k]);
            iron__gpu_queue_destroy(s->queues[k]);
        }
    }
    free(s->poison);
    free(s->answer);
    *s = (iron__stage){.device = NULL};
}

/* Brings the inputs into device memory, or writes them where the host sees the buffer. */
static iron_status write_inputs(iron__stage *s, iron__place *place, iron_error *err) {
    for (size_t k = 0; k < s->problem->input_count; k++) {
        const iron__array *from = &s->problem->inputs[k];
        iron__gpu_buffer *to = place->inputs[k];
        iron__gpu_copy copy = {.from_host = from->data, .to = to, .bytes = from->bytes};

        if (to->memory == IRON_GPU_MEMORY_DEVICE) {
            IRON_TRY(iron__gpu_copy_bytes(s->queues[0], &copy, err));
            continue;
        }
        IRON_TRY(iron__gpu_host_begin(s->queues[0], to, err));
        memcpy(to->host, from->data, from->bytes);
        IRON_TRY(iron__gpu_host_end(s->queues[0], to, err));
    }
    return iron__gpu_queue_wait(s->queues[0], err);
}

/* Managed memory may take half of what a card has: pages beyond that would push each other out, or
 * the process out of memory where it is shared. */
static iron_status check_size(const iron__stage *s, iron__gpu_memory memory, iron_error *err) {
    uint64_t bytes = 0, most = s->device->info.memory_bytes;

    if (memory == IRON_GPU_MEMORY_MANAGED)
        most /= 2;
    for (size_t k = 0; k < s->problem->input_count; k++)
        bytes += s->problem->inputs[k].bytes;
    IRON_FAIL_IF(memory != IRON_GPU_MEMORY_PINNED && memory != IRON_GPU_MEMORY_MAPPED &&
                     bytes > most,
                 err, IRON_E_NOMEM,
                 "too large for %s: %.1f GiB of inputs, and it can take %.1f; use a smaller --size",
                 s->device->info.name, (double)bytes / 0x1p30, (double)most / 0x1p30);
    return IRON_OK;
}

static iron_status take_memory(iron__stage *s, iron__gpu_memory memory, iron__place *place,
                               iron_error *err) {
    uint64_t start = iron__clock_ns();

    IRON_TRY(check_size(s, memory, err));
    for (size_t k = 0; k < s->problem->input_count; k++)
        IRON_TRY(iron__gpu_buffer_create(s->device, memory, s->problem->inputs[k].bytes,
                                         &place->inputs[k], err));
    place->ms = (double)(iron__clock_ns() - start) * 1e-6;
    for (size_t k = 0; k < s->problem->input_count; k++)
        if (memory == IRON_GPU_MEMORY_DEVICE || memory == IRON_GPU_MEMORY_MANAGED)
            s->lent_bytes += s->problem->inputs[k].bytes;
    return IRON_OK;
}

iron_status iron__stage_place(iron__stage *stage, iron__gpu_memory memory, const iron__place **out,
                              iron_error *err) {
    iron__place *place = &stage->places[memory];
    iron_status status = IRON_OK;

    *out = place;
    if (place->inputs[0])
        return IRON_OK;
    status = take_memory(stage, memory, place, err);
    if (status == IRON_OK)
        status = write_inputs(stage, place, err);
    if (status != IRON_OK)
        destroy_place(place);
    return status;
}

void iron__stage_wait(iron__stage *stage) { wait_for_all(stage); }

iron_status iron__stage_forget(iron__stage *stage, iron_error *err) {
    const iron__place *place = &stage->places[IRON_GPU_MEMORY_DEVICE];

    for (size_t k = 0; k < stage->problem->input_count; k++)
        IRON_TRY(iron__gpu_clear(stage->queues[0], place->inputs[k], 0,
                                 place->inputs[k]->bytes & ~(size_t)3, err));
    return iron__gpu_queue_wait(stage->queues[0], err);
}

iron_status iron__stage_refill(iron__stage *stage, iron__gpu_memory memory, iron_error *err) {
    return write_inputs(stage, &stage->places[memory], err);
}

/* By reading: lines that were written would have to be written back, in somebody else's time. */
iron_status iron__stage_flush(iron__stage *stage, iron_error *err) {
    iron__pass_shape shape = *iron__pass_shape_for(&stage->device->info, 0);

    return iron__passes_read(&stage->passes, stage->queues[0], shape, stage->flush,
                             stage->flush->bytes / IRON_PASS_QUAD_BYTES, err);
}
