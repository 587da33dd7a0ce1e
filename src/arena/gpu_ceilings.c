/* SPDX-License-Identifier: MIT */
/*
 * gpu_ceilings.c: what a GPU's memory can give, and the way to it from the host's.
 *
 * On the device: reading, writing and copying, each the best of several shapes (gpu_passes.h): what
 * others are measured against must not be lower than what they reach. Between host and device:
 * copies from ordinary and from page-locked memory, back to page-locked memory, and kernels that
 * read the host's memory across the bus.
 *
 * The working set is far larger than the last-level cache and holds numbers that look random, in
 * pieces of which no two are equal; before a shape's reading is timed, its result is compared with
 * the host's. A figure is the median of several passes after one that is not counted. Passes are
 * put into the queue one after the other without waiting, with events between them, so the host's
 * part in a launch is not in the figure; a driver that keeps no times of events is timed by the
 * host's clock.
 */
#include "arena/ceilings.h"
#include "arena/gpu_passes.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/fail.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSES     9u
#define WARM_UP_NS 100000000u

#define MIB            ((size_t)1 << 20)
#define GPU_BYTES      (4096 * MIB)
#define OTHER_BYTES    (256 * MIB) /* CPUs behind OpenCL */
#define TRANSFER_BYTES (1024 * MIB)
#define PIECE_BYTES    (64 * MIB) /* of a transfer, and of what is generated */
#define LEAST_BYTES    (64 * MIB) /* where there is little memory */
#define GRANULE_BYTES  (2 * MIB)  /* whole turns, also for the halves that a copy uses */

_Static_assert(GRANULE_BYTES % (2 * IRON_PASS_TURN_BYTES) == 0, "halves are whole turns");

typedef struct bench {
    const iron_measure_options *options;
    iron__ceiling_listener listener;
    iron__gpu_device *device;
    iron__gpu_queue *queue;
    iron__gpu_event *begin[PASSES], *end[PASSES];
    iron__passes passes;
    iron__gpu_buffer *data; /* the working set */
    char *numbers;          /* a piece of them and a bit more */
    size_t transfer_bytes;
    iron__pass_shape best; /* of reading */
    double ms[PASSES];     /* of what was measured last, in the order of time */
    unsigned done, steps;
} bench;

typedef struct pass pass;
typedef iron_status step(bench *b, const pass *p, iron_error *err);

/* One pass of something: how to put it into the queue, and what it works on. */
struct pass {
    step *enqueue;
    step *prepare; /* before each, not timed; may be NULL */
    iron__pass_verb verb;
    iron__pass_shape shape;
    iron__gpu_buffer *buffer; /* the host's side, or what a kernel works on */
    char *memory;             /* the host's side where it is no buffer */
    size_t bytes;
    double counted; /* bytes that the rate counts for each of them */
};

static size_t at_most(size_t bytes, uint64_t most) { return bytes > most ? (size_t)most : bytes; }

static iron_status tell(bench *b, iron_error *err) {
    const iron_measure_options *o = b->options;

    b->done++;
    IRON_FAIL_IF(o->progress && o->progress(o->context, b->done, b->steps), err, IRON_E_CANCELLED,
                 "cancelled while measuring");
    return IRON_OK;
}

static iron_status put_passes(bench *b, const pass *p, iron_error *err) {
    for (size_t k = 0; k < PASSES; k++) {
        if (p->prepare)
            IRON_TRY(p->prepare(b, p, err));
        IRON_TRY(iron__gpu_event_record(b->queue, b->begin[k], err));
        IRON_TRY(p->enqueue(b, p, err));
        IRON_TRY(iron__gpu_event_record(b->queue, b->end[k], err));
    }
    return iron__gpu_event_wait(b->device, b->end[PASSES - 1], err);
}

static iron_status time_by_events(bench *b, const pass *p, double *ms, iron_error *err) {
    IRON_TRY(put_passes(b, p, err));
    for (size_t k = 0; k < PASSES; k++) {
        IRON_TRY(iron__gpu_event_elapsed(b->device, b->begin[k], b->end[k], &ms[k], err));
        IRON_FAIL_IF(!(ms[k] > 0), err, IRON_E_UNSUPPORTED,
                     "the driver's times are not to be used");
    }
    return IRON_OK;
}

static iron_status time_by_clock(bench *b, const pass *p, double *ms, iron_error *err) {
    for (size_t k = 0; k < PASSES; k++) {
        uint64_t start;

        if (p->prepare)
            IRON_TRY(p->prepare(b, p, err));
        IRON_TRY(iron__gpu_queue_wait(b->queue, err));
        start = iron__clock_ns();
        IRON_TRY(p->enqueue(b, p, err));
        IRON_TRY(iron__gpu_queue_wait(b->queue, err));
        ms[k] = (double)(iron__clock_ns() - start) * 1e-6;
    }
    return IRON_OK;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static iron_status measure(bench *b, const pass *p, double *gb_s, iron_error *err) {
    iron_status status;
    double ms[PASSES];

    if (p->prepare)
        IRON_TRY(p->prepare(b, p, err));
    IRON_TRY(p->enqueue(b, p, err));
    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    status = time_by_events(b, p, ms, err);
    if (status == IRON_E_UNSUPPORTED)
        status = time_by_clock(b, p, ms, err);
    if (status != IRON_OK)
        return status;
    memcpy(b->ms, ms, sizeof ms);
    qsort(ms, PASSES, sizeof ms[0], by_value);
    *gb_s = p->counted * (double)p->bytes / ms[PASSES / 2] * 1e-6;
    return tell(b, err);
}

/* Piece k of any memory begins so many bytes into the generated numbers. */
static size_t lead_of(size_t piece) { return piece * IRON_PASS_QUAD_BYTES; }

static iron_status generate(bench *b, iron_error *err) {
    size_t bytes = at_most(PIECE_BYTES, b->data->bytes) + lead_of(b->data->bytes / PIECE_BYTES);

    b->numbers = malloc(bytes);
    if (!b->numbers)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: %zu bytes to measure with", bytes);
    return iron_generate(1, UINT64_C(1) << 32, 0, (uint32_t *)(void *)b->numbers,
                         bytes / sizeof(uint32_t), err);
}

/* The XOR of all 32-bit words of memory that was filled with the numbers. */
static uint32_t xor_of(const bench *b, size_t bytes) {
    uint32_t xors = 0;

    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        const uint32_t *words = (const uint32_t *)(void *)(b->numbers + lead_of(at / PIECE_BYTES));
        size_t left = at_most(bytes - at, PIECE_BYTES);

        for (size_t k = 0; k < left / sizeof *words; k++)
            xors ^= words[k];
    }
    return xors;
}

static void fill_host(const bench *b, char *memory, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES)
        memcpy(memory + at, b->numbers + lead_of(at / PIECE_BYTES),
               at_most(bytes - at, PIECE_BYTES));
}

static iron_status fill_device(bench *b, iron_error *err) {
    size_t bytes = b->data->bytes;

    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        iron__gpu_copy copy = {.from_host = b->numbers + lead_of(at / PIECE_BYTES),
                               .to = b->data,
                               .to_offset = at,
                               .bytes = at_most(bytes - at, PIECE_BYTES)};

        IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    }
    return iron__gpu_queue_wait(b->queue, err);
}

static iron_status put_kernel(bench *b, const pass *p, iron_error *err) {
    return iron__passes_put(&b->passes, b->queue, p->verb, p->shape, p->buffer,
                            p->bytes / IRON_PASS_QUAD_BYTES, b->done, err);
}

/* Does reading give what it should? */
static iron_status check_reading(bench *b, const pass *p, uint32_t expected, iron_error *err) {
    uint32_t found = 0;
    char shape[40];

    IRON_TRY(iron__passes_reset(&b->passes, b->queue, err));
    IRON_TRY(put_kernel(b, p, err));
    IRON_TRY(iron__passes_result(&b->passes, b->queue, &found, err));
    iron__pass_shape_name(p->shape, shape, sizeof shape);
    IRON_FAIL_IF(found != expected, err, IRON_E_MISMATCH,
                 "%s reads wrongly (%s): the XOR of %zu bytes is %08" PRIx32 ", not %08" PRIx32,
                 b->device->info.name, shape, p->bytes, found, expected);
    return IRON_OK;
}

/* The best way found so far to do something. */
typedef struct best_way {
    double gb_s;
    double ms[PASSES];
    iron__pass_shape shape;
    char name[48];
} best_way;

static void announce(const bench *b, const char *what, const pass *p, const char *shape,
                     const double *ms) {
    iron__ceiling_passes passes = {what, shape, p->counted * (double)p->bytes, ms, PASSES};

    if (b->listener.told)
        b->listener.told(b->listener.context, &passes);
}

static iron_status try_way(bench *b, const pass *p, const char *name, best_way *best,
                           iron_error *err) {
    double gb_s = 0;

    IRON_TRY(measure(b, p, &gb_s, err));
    if (gb_s <= best->gb_s)
        return IRON_OK;
    *best = (best_way){.gb_s = gb_s, .shape = p->shape};
    memcpy(best->ms, b->ms, sizeof best->ms);
    snprintf(best->name, sizeof best->name, "%s", name);
    return IRON_OK;
}

/* The first half of the working set to the second, as the driver does it. */
static iron_status put_driver_copy(bench *b, const pass *p, iron_error *err) {
    iron__gpu_copy copy = {
        .from = p->buffer, .to = p->buffer, .to_offset = p->bytes, .bytes = p->bytes};

    return iron__gpu_copy_bytes(b->queue, &copy, err);
}

/* The highest median over the shapes; p keeps the shape that had it. */
static iron_status measure_shapes(bench *b, pass *p, const char *what, best_way *best,
                                  iron_error *err) {
    const iron__gpu_info *info = &b->device->info;
    uint32_t expected = p->verb == IRON_PASS_READ ? xor_of(b, p->bytes) : 0;
    char name[40];

    *best = (best_way){.shape = *iron__pass_shape_for(info, 0)};
    for (size_t k = 0; iron__pass_shape_for(info, k); k++) {
        p->shape = *iron__pass_shape_for(info, k);
        iron__pass_shape_name(p->shape, name, sizeof name);
        if (p->verb == IRON_PASS_READ)
            IRON_TRY(check_reading(b, p, expected, err));
        IRON_TRY(try_way(b, p, name, best, err));
    }
    if (p->verb == IRON_PASS_COPY) {
        p->enqueue = put_driver_copy;
        IRON_TRY(try_way(b, p, "the driver's copy", best, err));
    }
    p->shape = best->shape;
    announce(b, what, p, best->name, best->ms);
    return IRON_OK;
}

/* A card that was idle takes a while to reach its clock. */
static iron_status warm_up(bench *b, pass *p, iron_error *err) {
    uint64_t start = iron__clock_ns();

    p->shape = *iron__pass_shape_for(&b->device->info, 0);
    do {
        IRON_TRY(put_kernel(b, p, err));
        IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    } while (iron__clock_ns() - start < WARM_UP_NS);
    return IRON_OK;
}

static iron_status measure_device(bench *b, iron_device_ceilings *out, iron_error *err) {
    size_t bytes = b->data->bytes;
    pass read = {.enqueue = put_kernel, .verb = IRON_PASS_READ, .bytes = bytes, .counted = 1};
    pass copy = {.enqueue = put_kernel, .verb = IRON_PASS_COPY, .bytes = bytes / 2, .counted = 2};
    pass write = {.enqueue = put_kernel, .verb = IRON_PASS_WRITE, .bytes = bytes, .counted = 1};

    best_way best;

    read.buffer = copy.buffer = write.buffer = b->data;
    IRON_TRY(warm_up(b, &read, err));
    IRON_TRY(measure_shapes(b, &read, "read", &best, err));
    out->read_gb_s = best.gb_s;
    snprintf(out->read_shape, sizeof out->read_shape, "%.39s", best.name);
    b->best = read.shape;
    IRON_TRY(measure_shapes(b, &copy, "copy", &best, err));
    out->copy_gb_s = best.gb_s;
    IRON_TRY(check_reading(b, &read, 0, err)); /* two equal halves */
    IRON_TRY(measure_shapes(b, &write, "write", &best, err));
    out->write_gb_s = best.gb_s;
    return IRON_OK;
}

static iron_status put_transfer(bench *b, const pass *p, bool is_back, iron_error *err) {
    for (size_t at = 0; at < p->bytes; at += PIECE_BYTES) {
        iron__gpu_copy copy = {
            .from_offset = at, .to_offset = at, .bytes = at_most(p->bytes - at, PIECE_BYTES)};

        copy.from = is_back ? b->data : p->buffer;
        copy.to = is_back ? p->buffer : b->data;
        copy.from_host = is_back ? NULL : p->memory;
        IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    }
    return IRON_OK;
}

static iron_status put_to_device(bench *b, const pass *p, iron_error *err) {
    return put_transfer(b, p, false, err);
}

static iron_status put_from_device(bench *b, const pass *p, iron_error *err) {
    return put_transfer(b, p, true, err);
}

static iron_status measure_transfer(bench *b, const pass *p, const char *what, double *gb_s,
                                    iron_error *err) {
    IRON_TRY(measure(b, p, gb_s, err));
    announce(b, what, p, "", b->ms);
    return IRON_OK;
}

/* Memory of a kind; less of it where there is not so much. */
static iron_status take_memory(bench *b, iron__gpu_memory memory, size_t bytes, size_t least,
                               iron__gpu_buffer **out, iron_error *err) {
    iron_status status = iron__gpu_buffer_create(b->device, memory, bytes, out, err);

    while (status == IRON_E_NOMEM && bytes / 2 >= least) {
        bytes = bytes / 2 / GRANULE_BYTES * GRANULE_BYTES;
        status = iron__gpu_buffer_create(b->device, memory, bytes, out, err);
    }
    return status;
}

static iron_status measure_pageable(bench *b, iron_device_ceilings *out, iron_error *err) {
    pass p = {.enqueue = put_to_device, .bytes = b->transfer_bytes, .counted = 1};
    iron_status status;

    p.memory = malloc(p.bytes);
    if (!p.memory)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: %zu bytes to measure with",
                          p.bytes);
    fill_host(b, p.memory, p.bytes);
    status = measure_transfer(b, &p, "to_device_pageable", &out->to_device_pageable_gb_s, err);
    (void)iron__gpu_queue_wait(b->queue, NULL); /* nothing may read it any more, failed or not */
    free(p.memory);
    return status;
}

static iron_status measure_pinned(bench *b, iron_device_ceilings *out, iron_error *err) {
    pass p = {.counted = 1};
    iron_status status;

    IRON_TRY(
        take_memory(b, IRON_GPU_MEMORY_PINNED, b->transfer_bytes, LEAST_BYTES, &p.buffer, err));
    p.bytes = p.buffer->bytes;
    fill_host(b, p.buffer->host, p.bytes);
    p.enqueue = put_to_device;
    status = measure_transfer(b, &p, "to_device_pinned", &out->to_device_pinned_gb_s, err);
    p.enqueue = put_from_device;
    if (status == IRON_OK)
        status = measure_transfer(b, &p, "from_device_pinned", &out->from_device_pinned_gb_s, err);
    (void)iron__gpu_queue_wait(b->queue, NULL);
    iron__gpu_buffer_destroy(p.buffer);
    return status;
}

static iron_status begin_turn(bench *b, const pass *p, iron_error *err) {
    return iron__gpu_host_begin(b->queue, p->buffer, err);
}

/* With the end of the host's turn, when some drivers copy the memory instead of mapping it. */
static iron_status put_in_place(bench *b, const pass *p, iron_error *err) {
    IRON_TRY(iron__gpu_host_end(b->queue, p->buffer, err));
    return put_kernel(b, p, err);
}

static iron_status read_in_place(bench *b, pass *p, double *gb_s, iron_error *err) {
    IRON_TRY(begin_turn(b, p, err));
    fill_host(b, p->buffer->host, p->bytes);
    IRON_TRY(iron__gpu_host_end(b->queue, p->buffer, err));
    IRON_TRY(check_reading(b, p, xor_of(b, p->bytes), err));
    return measure_transfer(b, p, "zero_copy", gb_s, err);
}

static iron_status measure_zero_copy(bench *b, iron_device_ceilings *out, iron_error *err) {
    pass p = {.enqueue = put_in_place, .prepare = begin_turn, .verb = IRON_PASS_READ, .counted = 1};
    iron_status status;

    if (b->device->info.lacks[IRON_GPU_ZERO_COPY][0])
        return tell(b, err);
    p.shape = b->best;
    IRON_TRY(
        take_memory(b, IRON_GPU_MEMORY_MAPPED, b->transfer_bytes, LEAST_BYTES, &p.buffer, err));
    p.bytes = p.buffer->bytes;
    status = read_in_place(b, &p, &out->zero_copy_gb_s, err);
    (void)iron__gpu_queue_wait(b->queue, NULL);
    iron__gpu_buffer_destroy(p.buffer);
    return status;
}

static size_t whole_granules(size_t bytes) {
    size_t granules = bytes / GRANULE_BYTES;

    return (granules ? granules : 1) * GRANULE_BYTES;
}

static iron_status take_working_set(bench *b, iron_error *err) {
    const iron__gpu_info *info = &b->device->info;
    size_t asked = (size_t)b->options->buffer_bytes;
    size_t bytes = info->is_gpu ? GPU_BYTES : OTHER_BYTES, least = 4 * (size_t)info->cache_bytes;

    bytes = at_most(bytes > least ? bytes : least, info->memory_bytes / 4);
    if (asked)
        bytes = least = asked;
    bytes = whole_granules(bytes);
    return take_memory(b, IRON_GPU_MEMORY_DEVICE, bytes, least > LEAST_BYTES ? least : LEAST_BYTES,
                       &b->data, err);
}

static iron_status create_events(bench *b, iron_error *err) {
    for (size_t k = 0; k < PASSES; k++) {
        IRON_TRY(iron__gpu_event_create(b->device, &b->begin[k], err));
        IRON_TRY(iron__gpu_event_create(b->device, &b->end[k], err));
    }
    return IRON_OK;
}

static iron_status set_up(bench *b, size_t backend, uint32_t device, iron_error *err) {
    iron_cpu_info host = {.struct_size = sizeof host};

    IRON_TRY(iron__gpu_device_open(backend, device, &b->device, err));
    IRON_TRY(iron__gpu_queue_create(b->device, &b->queue, err));
    IRON_TRY(iron__passes_init(&b->passes, b->device, err));
    IRON_TRY(create_events(b, err));
    IRON_TRY(take_working_set(b, err));
    IRON_TRY(iron_cpu_describe(&host, err));
    b->transfer_bytes = at_most(TRANSFER_BYTES, b->data->bytes);
    b->transfer_bytes = whole_granules(at_most(b->transfer_bytes, host.memory_bytes / 8));
    b->steps = 5; /* of which four go between host and device, one is the driver's copy */
    for (size_t k = 0; iron__pass_shape_for(&b->device->info, k); k++)
        b->steps += 3;
    IRON_TRY(generate(b, err));
    return fill_device(b, err);
}

static void tear_down(bench *b) {
    if (b->queue)
        (void)iron__gpu_queue_wait(b->queue, NULL); /* what fails now has failed before */
    free(b->numbers);
    iron__gpu_buffer_destroy(b->data);
    for (size_t k = 0; k < PASSES; k++) {
        iron__gpu_event_destroy(b->device, b->begin[k]);
        iron__gpu_event_destroy(b->device, b->end[k]);
    }
    iron__passes_deinit(&b->passes);
    iron__gpu_queue_destroy(b->queue);
    iron__gpu_device_close(b->device);
}

static iron_status measure_all(bench *b, iron_device_ceilings *out, iron_error *err) {
    out->buffer_bytes = b->data->bytes;
    IRON_TRY(measure_device(b, out, err));
    IRON_TRY(measure_pageable(b, out, err));
    IRON_TRY(measure_pinned(b, out, err));
    return measure_zero_copy(b, out, err);
}

iron_status iron__measure_device(size_t backend, uint32_t device,
                                 const iron_measure_options *options,
                                 iron__ceiling_listener listener, iron_device_ceilings *out,
                                 iron_error *err) {
    bench b = {.options = options, .listener = listener};
    iron_status status;

    *out = (iron_device_ceilings){.passes = PASSES};
    status = set_up(&b, backend, device, err);
    if (status == IRON_OK)
        status = measure_all(&b, out, err);
    tear_down(&b);
    return status;
}

iron_status iron_measure_device(const char *backend, uint32_t device,
                                const iron_measure_options *options, iron_device_ceilings *out,
                                iron_error *err) {
    size_t count = iron__gpu_backend_count();
    size_t index = backend ? iron__gpu_backend_find(backend) : count;

    *out = (iron_device_ceilings){.passes = PASSES};
    IRON_FAIL_IF(index == count, err, IRON_E_ARG,
                 "backend '%.20s' has no devices to measure; use cuda or opencl",
                 backend ? backend : "");
    return iron__measure_device(index, device, options, (iron__ceiling_listener){0}, out, err);
}
