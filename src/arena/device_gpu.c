/* SPDX-License-Identifier: MIT */
/*
 * device_gpu.c: a GPU in a race: the bandwidth of its memory and of the way to it from the host's,
 * and contenders and peers with their memory strategies.
 *
 * Ceilings on the device: reading, writing and copying (ceilings.k), each the best of several
 * shapes: a ceiling must not be lower than what contenders reach. Between host and device: copies
 * from ordinary and from page-locked memory, back to page-locked memory, and kernels that read the
 * host's memory across the bus. The working set is far larger than the last-level cache and holds
 * random-looking numbers, in pieces that all differ; before a shape's reading is timed, its result
 * is compared with the host's. A figure is the median of several passes after one that is not
 * counted. Passes are put into the queue one after the other without waiting, with events between
 * them, so the host's part in a launch is not in the figure; a driver that keeps no event times is
 * timed with the host's clock.
 *
 * A contender only computes; this file implements the memory strategies:
 *
 *   strategy      kernels read        before them                          prepare includes
 *   pageable      device memory       a copy from ordinary memory          device memory
 *   pinned        device memory       a copy from page-locked memory       + page-locking
 *   streams       device memory       rows in pieces, one queue each; the  + page-locking
 *                                     kernels of a piece follow its copy
 *   uvm           managed memory      nothing: pages move when touched     managed memory
 *   uvm-prefetch  managed memory      pages are prefetched                 managed memory
 *   zero-copy     the host's memory   nothing: every read crosses the bus  page-locking
 *
 * Scopes. kernel: inputs are in place, events around the passes, behind an untimed pass (or, cold,
 * a pass that empties the caches) that is still running while they are enqueued, so that launches
 * are not waited for. transfer: inputs in, answer out, nothing computed. end to end: the same with
 * the computation; what a contender derives from the inputs (a transposed copy) is derived again.
 * Both by the host's clock, since the host's part counts. Before each, pages of managed memory are
 * brought back to the host, untimed.
 *
 * Memory is allocated when the first contender asks for it, so that a race without managed memory
 * never allocates any. What the device or the host cannot provide comes back as an error that
 * becomes the contender's reason to be skipped.
 */
#include "arena/arena_internal.h"
#include "core/clock.h"
#include "core/fail.h"

#include <assert.h>

#define PASSES     9u
#define WARM_UP_NS 100000000u

#define GROUP_THREADS 256u /* CEILINGS_THREADS of ceilings.k */

/* One pass over a device's memory, put into a queue: the kernels of ceilings.k. Sizes are counted
 * in quads of 16 bytes. Any number of them works; whole blocks of PASS_BLOCK_BYTES are
 * fast. */
#define PASS_QUAD_BYTES  ((size_t)16)
#define PASS_BLOCK_BYTES ((size_t)16384)

typedef enum pass_kind {
    PASS_READ,  /* XORs all 32-bit words into the result */
    PASS_WRITE, /* word j becomes value + j, modulo 2^32 */
    PASS_COPY,  /* the first `quads` quads to the place right behind them */
    PASS_KINDS
} pass_kind;

/* How blocks are distributed: see ceilings.k. */
typedef enum pass_order {
    PASS_CONTIGUOUS, /* each group has a range */
    PASS_STRIDED,    /* groups alternate */
    PASS_PER_THREAD  /* each thread has a range: for CPUs */
} pass_order;

/* The best shape differs from device to device. */
typedef struct pass_shape {
    uint32_t groups_per_unit;
    pass_order order;
} pass_shape;

typedef struct pass_kernels {
    iron__gpu_device *device; /* borrowed */
    iron__gpu_program *program;
    iron__gpu_kernel *kernels[2][PASS_KINDS]; /* for groups; for each thread alone */
    iron__gpu_buffer *result;                 /* of reading: 4 bytes */
} pass_kernels;

IRON_GPU_EMBEDDED(ceilings)

static const iron__gpu_image image = IRON_GPU_IMAGE(ceilings);

static const char *const names[2][PASS_KINDS] = {
    {"ceilings_read", "ceilings_write", "ceilings_copy"},
    {"ceilings_read_alone", "ceilings_write_alone", "ceilings_copy_alone"}};

/* A multiprocessor holds 2048 threads, eight groups: half of them (leaving more registers for
 * each), all, and twice as many, which balances units that fall behind. */
static const pass_shape gpu_shapes[] = {
    {8, PASS_CONTIGUOUS}, {4, PASS_CONTIGUOUS}, {16, PASS_CONTIGUOUS},
    {8, PASS_STRIDED},    {4, PASS_STRIDED},    {16, PASS_STRIDED},
};

static const pass_shape other_shapes[] = {{8, PASS_PER_THREAD}, {8, PASS_CONTIGUOUS}};

/* The shapes that a device's ceilings are the best of; NULL after the last. */
static const pass_shape *pass_shape_for(const iron__gpu_info *info, size_t index) {
    if (info->is_gpu)
        return index < COUNT(gpu_shapes) ? &gpu_shapes[index] : NULL;
    return index < COUNT(other_shapes) ? &other_shapes[index] : NULL;
}

/* "8 x 256 threads a unit, contiguous" */
static void pass_shape_name(pass_shape shape, char *text, size_t size) {
    static const char *const orders[] = {"contiguous", "strided", "each alone"};

    snprintf(text, size, "%u x %u threads a unit, %s", shape.groups_per_unit, GROUP_THREADS,
             orders[shape.order]);
}

/* Takes a struct of zeros, too. */
static void pass_kernels_deinit(pass_kernels *p) {
    if (!p->device)
        return;
    iron__gpu_buffer_destroy(p->result);
    iron__gpu_program_unload(p->device, p->program);
    *p = (pass_kernels){.device = NULL};
}

/* To be deinitialised also after a failure. */
static iron_status pass_kernels_init(pass_kernels *p, iron__gpu_device *d, iron_error *err) {
    *p = (pass_kernels){.device = d};
    IRON_FAIL_IF(d->info.group_threads_max < GROUP_THREADS, err, IRON_E_UNSUPPORTED,
                 "%s has groups of %u threads at most; its ceilings are measured with %u",
                 d->info.name, d->info.group_threads_max, GROUP_THREADS);
    IRON_TRY(iron__gpu_program_load(d, &image, &p->program, err));
    for (size_t alone = 0; alone < 2; alone++)
        for (size_t k = 0; k < PASS_KINDS; k++)
            IRON_TRY(
                iron__gpu_kernel_find(d, p->program, names[alone][k], &p->kernels[alone][k], err));
    return iron__gpu_buffer_create(d, IRON_GPU_MEMORY_DEVICE, sizeof(uint32_t), &p->result, err);
}

/* Puts a pass over the buffer's first `quads` quads into the queue; `value` is for writing. */
static iron_status put_pass(pass_kernels *p, iron__gpu_queue *queue, pass_kind kind,
                            pass_shape shape, const iron__gpu_buffer *data, uint64_t quads,
                            uint32_t value, iron_error *err) {
    uint32_t units = p->device->info.units ? p->device->info.units : 1;
    uint32_t is_strided = shape.order == PASS_STRIDED;
    bool is_per_thread = shape.order == PASS_PER_THREAD;
    iron__gpu_arg args[4] = {IRON_GPU_BUFFER(data), IRON_GPU_VALUE(quads)};
    iron__gpu_launch launch = {.kernel = p->kernels[is_per_thread][kind],
                               .groups = {units * shape.groups_per_unit},
                               .threads = {GROUP_THREADS},
                               .args = args,
                               .arg_count = 2};

    if (!is_per_thread)
        args[launch.arg_count++] = IRON_GPU_VALUE(is_strided);
    if (kind == PASS_READ)
        args[launch.arg_count++] = IRON_GPU_BUFFER(p->result);
    if (kind == PASS_WRITE)
        args[launch.arg_count++] = IRON_GPU_VALUE(value);
    return iron__gpu_run(queue, &launch, err);
}

#define MIB            ((size_t)1 << 20)
#define GPU_BYTES      (4096 * MIB)
#define OTHER_BYTES    (256 * MIB) /* CPUs behind OpenCL */
#define TRANSFER_BYTES (1024 * MIB)
#define PIECE_BYTES    (64 * MIB) /* of a transfer, and of what is generated */
#define LEAST_BYTES    (64 * MIB) /* where memory is short */
#define GRANULE_BYTES  (2 * MIB)  /* whole blocks, also in the halves that a copy uses */

_Static_assert(GRANULE_BYTES % (2 * PASS_BLOCK_BYTES) == 0, "halves are whole blocks");

typedef struct measurement {
    const iron_measure_options *options;
    iron__ceiling_sink sink;
    iron__gpu_device *device;
    iron__gpu_queue *queue;
    iron__gpu_event *begin[PASSES], *end[PASSES];
    pass_kernels passes;
    iron__gpu_buffer *data; /* the working set */
    char *numbers;          /* random ones: a piece and a bit more */
    size_t transfer_bytes;
    pass_shape best;   /* of reading */
    double ms[PASSES]; /* of the last measurement, in time order */
    unsigned done, steps;
} measurement;

typedef struct pass pass;
typedef iron_status pass_step(measurement *b, const pass *p, iron_error *err);

/* A pass to time: how to put it into the queue, and what it works on. */
struct pass {
    pass_step *enqueue;
    pass_step *prepare; /* before each, not timed; may be NULL */
    pass_kind kind;
    pass_shape shape;
    iron__gpu_buffer *buffer; /* the host's side of a transfer, or what a kernel works on */
    char *memory;             /* the host's side in ordinary memory */
    bool is_back;             /* a transfer from the device */
    size_t bytes;
    double counted; /* bytes that the rate counts for each byte */
};

static size_t at_most(size_t bytes, uint64_t most) { return bytes > most ? (size_t)most : bytes; }

static iron_status show_progress(measurement *b, iron_error *err) {
    const iron_measure_options *o = b->options;

    b->done++;
    IRON_FAIL_IF(o->progress && o->progress(o->context, b->done, b->steps), err, IRON_E_CANCELLED,
                 "cancelled while measuring");
    return IRON_OK;
}

/* Times passes with events, or each with the host's clock. */
static iron_status time_passes_by(measurement *b, const pass *p, bool by_events, iron_error *err) {
    for (size_t k = 0; k < PASSES; k++) {
        uint64_t start;

        if (p->prepare)
            IRON_TRY(p->prepare(b, p, err));
        IRON_TRY(by_events ? iron__gpu_event_record(b->queue, b->begin[k], err)
                           : iron__gpu_queue_wait(b->queue, err));
        start = iron__clock_ns();
        IRON_TRY(p->enqueue(b, p, err));
        IRON_TRY(by_events ? iron__gpu_event_record(b->queue, b->end[k], err)
                           : iron__gpu_queue_wait(b->queue, err));
        b->ms[k] = (double)(iron__clock_ns() - start) * 1e-6;
    }
    if (by_events)
        IRON_TRY(iron__gpu_event_wait(b->device, b->end[PASSES - 1], err));
    for (size_t k = 0; by_events && k < PASSES; k++) {
        IRON_TRY(iron__gpu_event_elapsed(b->device, b->begin[k], b->end[k], &b->ms[k], err));
        IRON_FAIL_IF(!(b->ms[k] > 0), err, IRON_E_UNSUPPORTED,
                     "the driver's event times cannot be used");
    }
    return IRON_OK;
}

static iron_status measure(measurement *b, const pass *p, iron_error *err) {
    iron_status status;

    if (p->prepare)
        IRON_TRY(p->prepare(b, p, err));
    IRON_TRY(p->enqueue(b, p, err));
    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    status = time_passes_by(b, p, true, err);
    if (status == IRON_E_UNSUPPORTED)
        status = time_passes_by(b, p, false, err);
    return status == IRON_OK ? show_progress(b, err) : status;
}

/* Piece k of any memory holds the numbers from this offset on. */
static size_t lead_of(size_t piece) { return piece * PASS_QUAD_BYTES; }

/* The XOR of all 32-bit words of memory that was filled with the numbers. */
static uint32_t xor_of(const measurement *b, size_t bytes) {
    uint32_t xors = 0;

    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        const uint32_t *words = (const uint32_t *)(void *)(b->numbers + lead_of(at / PIECE_BYTES));
        size_t left = at_most(bytes - at, PIECE_BYTES);

        for (size_t k = 0; k < left / sizeof *words; k++)
            xors ^= words[k];
    }
    return xors;
}

static void fill_host(const measurement *b, char *memory, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES)
        memcpy(memory + at, b->numbers + lead_of(at / PIECE_BYTES),
               at_most(bytes - at, PIECE_BYTES));
}

static iron_status put_kernel(measurement *b, const pass *p, iron_error *err) {
    return put_pass(&b->passes, b->queue, p->kind, p->shape, p->buffer, p->bytes / PASS_QUAD_BYTES,
                    b->done, err);
}

/* Does reading give the right result? */
static iron_status check_reading(measurement *b, const pass *p, uint32_t expected,
                                 iron_error *err) {
    uint32_t found = 0;
    iron__gpu_copy copy = {.from = b->passes.result, .to_host = &found, .bytes = sizeof found};
    char shape[40];

    IRON_TRY(iron__gpu_clear(b->queue, b->passes.result, 0, sizeof found, err));
    IRON_TRY(put_kernel(b, p, err));
    IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    pass_shape_name(p->shape, shape, sizeof shape);
    IRON_FAIL_IF(found != expected, err, IRON_E_MISMATCH,
                 "%s reads wrong data (%s): the XOR of %zu bytes is %08" PRIx32 ", not %08" PRIx32,
                 b->device->info.name, shape, p->bytes, found, expected);
    return IRON_OK;
}

static void add_ceiling(const measurement *b, const char *name, const pass *p, const char *shape,
                        const double *ms) {
    iron__ceiling_samples samples = {name, shape, p->counted * (double)p->bytes, ms, PASSES};

    b->sink.add(b->sink.context, &samples);
}

/* The first half of the working set to the second, by the driver. */
static iron_status put_driver_copy(measurement *b, const pass *p, iron_error *err) {
    iron__gpu_copy copy = {
        .from = p->buffer, .to = p->buffer, .to_offset = p->bytes, .bytes = p->bytes};

    return iron__gpu_copy_bytes(b->queue, &copy, err);
}

/* Finds the shape with the highest rate; p keeps it. */
static iron_status measure_shapes(measurement *b, pass *p, const char *what, iron_error *err) {
    const iron__gpu_info *info = &b->device->info;
    uint32_t expected = p->kind == PASS_READ ? xor_of(b, p->bytes) : 0;
    double ms[PASSES], best = 0, median; /* of the best way so far */
    pass_shape best_shape = {0};
    char name[48] = "";

    for (size_t k = 0;; k++) {
        bool is_kernel = pass_shape_for(info, k);

        if (is_kernel)
            p->shape = *pass_shape_for(info, k);
        else if (p->kind == PASS_COPY && p->enqueue != put_driver_copy)
            p->enqueue = put_driver_copy;
        else
            break;
        if (p->kind == PASS_READ)
            IRON_TRY(check_reading(b, p, expected, err));
        IRON_TRY(measure(b, p, err));
        median = iron__statistics_of(b->ms, PASSES).median;
        if (k > 0 && median >= best)
            continue;
        best = median;
        best_shape = p->shape;
        memcpy(ms, b->ms, sizeof ms);
        if (is_kernel)
            pass_shape_name(p->shape, name, sizeof name);
        else
            snprintf(name, sizeof name, "the driver's copy");
    }
    p->shape = best_shape;
    add_ceiling(b, what, p, name, ms);
    return IRON_OK;
}

static iron_status measure_memory(measurement *b, iron_error *err) {
    pass read = {.enqueue = put_kernel,
                 .kind = PASS_READ,
                 .shape = *pass_shape_for(&b->device->info, 0),
                 .buffer = b->data,
                 .bytes = b->data->bytes,
                 .counted = 1};
    pass copy = read, write = read;
    uint64_t start = iron__clock_ns();

    copy.kind = PASS_COPY;
    copy.bytes = b->data->bytes / 2;
    copy.counted = 2;
    write.kind = PASS_WRITE;
    do { /* an idle card takes a while to reach its full clock */
        IRON_TRY(put_kernel(b, &read, err));
        IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    } while (iron__clock_ns() - start < WARM_UP_NS);
    IRON_TRY(measure_shapes(b, &read, "read", err));
    b->best = read.shape;
    IRON_TRY(measure_shapes(b, &copy, "copy", err));
    IRON_TRY(check_reading(b, &read, 0, err)); /* two equal halves */
    IRON_TRY(measure_shapes(b, &write, "write", err));
    return IRON_OK;
}

static iron_status put_transfer(measurement *b, const pass *p, iron_error *err) {
    for (size_t at = 0; at < p->bytes; at += PIECE_BYTES) {
        iron__gpu_copy copy = {
            .from_offset = at, .to_offset = at, .bytes = at_most(p->bytes - at, PIECE_BYTES)};

        copy.from = p->is_back ? b->data : p->buffer;
        copy.to = p->is_back ? p->buffer : b->data;
        copy.from_host = p->memory;
        IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    }
    return IRON_OK;
}

static iron_status measure_transfer(measurement *b, const pass *p, const char *what,
                                    iron_error *err) {
    IRON_TRY(measure(b, p, err));
    add_ceiling(b, what, p, "", b->ms);
    return IRON_OK;
}

/* Allocates memory of a kind, or less of it where there is not so much. */
static iron_status allocate(measurement *b, iron__gpu_memory memory, size_t bytes, size_t least,
                            iron__gpu_buffer **out, iron_error *err) {
    iron_status status = iron__gpu_buffer_create(b->device, memory, bytes, out, err);

    while (status == IRON_E_NOMEM && bytes / 2 >= least) {
        bytes = bytes / 2 / GRANULE_BYTES * GRANULE_BYTES;
        status = iron__gpu_buffer_create(b->device, memory, bytes, out, err);
    }
    return status;
}

static iron_status measure_pageable(measurement *b, pass *p, iron_error *err) {
    fill_host(b, p->memory, p->bytes);
    return measure_transfer(b, p, "to_device_pageable", err);
}

static iron_status measure_pinned(measurement *b, pass *p, iron_error *err) {
    fill_host(b, p->buffer->host, p->bytes);
    IRON_TRY(measure_transfer(b, p, "to_device_pinned", err));
    p->is_back = true;
    return measure_transfer(b, p, "from_device_pinned", err);
}

static iron_status give_to_host(measurement *b, const pass *p, iron_error *err) {
    return iron__gpu_host_begin(b->queue, p->buffer, err);
}

/* Includes the hand-over to the device, when some drivers copy the memory instead of mapping it. */
static iron_status put_in_place(measurement *b, const pass *p, iron_error *err) {
    IRON_TRY(iron__gpu_host_end(b->queue, p->buffer, err));
    return put_kernel(b, p, err);
}

static iron_status measure_zero_copy(measurement *b, pass *p, iron_error *err) {
    p->enqueue = put_in_place;
    p->prepare = give_to_host;
    p->shape = b->best;
    IRON_TRY(give_to_host(b, p, err));
    fill_host(b, p->buffer->host, p->bytes);
    IRON_TRY(iron__gpu_host_end(b->queue, p->buffer, err));
    IRON_TRY(check_reading(b, p, xor_of(b, p->bytes), err));
    return measure_transfer(b, p, "zero_copy", err);
}

/* Between the device and the host's memory of a kind; IRON_GPU_MEMORY_DEVICE: ordinary memory. */
static iron_status measure_host(measurement *b, iron__gpu_memory memory,
                                iron_status (*measure_all)(measurement *, pass *, iron_error *),
                                iron_error *err) {
    pass p = {.enqueue = put_transfer, .kind = PASS_READ, .bytes = b->transfer_bytes, .counted = 1};
    iron_status status;

    if (memory == IRON_GPU_MEMORY_DEVICE) {
        p.memory = malloc(p.bytes);
        IRON_FAIL_IF(!p.memory, err, IRON_E_NOMEM, "out of memory for %zu bytes to measure with",
                     p.bytes);
    } else {
        IRON_TRY(allocate(b, memory, p.bytes, LEAST_BYTES, &p.buffer, err));
        p.bytes = p.buffer->bytes;
    }
    status = measure_all(b, &p, err);
    (void)iron__gpu_queue_wait(b->queue, NULL); /* nothing may read it after it is freed */
    iron__gpu_buffer_destroy(p.buffer);
    free(p.memory);
    return status;
}

static size_t whole_granules(size_t bytes) {
    size_t granules = bytes / GRANULE_BYTES;

    return (granules ? granules : 1) * GRANULE_BYTES;
}

static iron_status set_up(measurement *b, size_t backend, uint32_t device, iron_error *err) {
    iron_cpu_info host = {.struct_size = sizeof host};
    const iron__gpu_info *info;
    size_t bytes, least, asked = (size_t)iron__ceiling_bytes(b->options->buffer_bytes);

    IRON_TRY(iron__gpu_device_open(backend, device, &b->device, err));
    info = &b->device->info;
    IRON_TRY(iron__gpu_queue_create(b->device, &b->queue, err));
    IRON_TRY(pass_kernels_init(&b->passes, b->device, err));
    for (size_t k = 0; k < PASSES; k++) {
        IRON_TRY(iron__gpu_event_create(b->device, &b->begin[k], err));
        IRON_TRY(iron__gpu_event_create(b->device, &b->end[k], err));
    }
    bytes = info->is_gpu ? GPU_BYTES : OTHER_BYTES;
    least = 4 * (size_t)info->cache_bytes;
    bytes = at_most(bytes > least ? bytes : least, info->memory_bytes / 4);
    if (asked)
        bytes = least = asked;
    IRON_TRY(allocate(b, IRON_GPU_MEMORY_DEVICE, whole_granules(bytes),
                      least > LEAST_BYTES ? least : LEAST_BYTES, &b->data, err));
    IRON_TRY(iron_cpu_describe(&host, err));
    b->transfer_bytes = at_most(TRANSFER_BYTES, b->data->bytes);
    b->transfer_bytes = whole_granules(at_most(b->transfer_bytes, host.memory_bytes / 8));
    b->steps = 5; /* four between host and device, and the driver's copy */
    for (size_t k = 0; pass_shape_for(info, k); k++)
        b->steps += 3;
    bytes = at_most(PIECE_BYTES, b->data->bytes) + lead_of(b->data->bytes / PIECE_BYTES);
    b->numbers = malloc(bytes);
    IRON_FAIL_IF(!b->numbers, err, IRON_E_NOMEM, "out of memory for %zu bytes to measure with",
                 bytes);
    IRON_TRY(iron_generate(1, UINT64_C(1) << 32, 0, (uint32_t *)(void *)b->numbers,
                           bytes / sizeof(uint32_t), err));
    for (size_t at = 0; at < b->data->bytes; at += PIECE_BYTES) {
        iron__gpu_copy copy = {.from_host = b->numbers + lead_of(at / PIECE_BYTES),
                               .to = b->data,
                               .to_offset = at,
                               .bytes = at_most(b->data->bytes - at, PIECE_BYTES)};

        IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    }
    return iron__gpu_queue_wait(b->queue, err);
}

static void tear_down(measurement *b) {
    if (b->queue)
        (void)iron__gpu_queue_wait(b->queue, NULL); /* an error now was reported before */
    free(b->numbers);
    iron__gpu_buffer_destroy(b->data);
    for (size_t k = 0; k < PASSES; k++) {
        iron__gpu_event_destroy(b->device, b->begin[k]);
        iron__gpu_event_destroy(b->device, b->end[k]);
    }
    pass_kernels_deinit(&b->passes);
    iron__gpu_queue_destroy(b->queue);
    iron__gpu_device_close(b->device);
}

static iron_status measure_all(measurement *b, size_t backend, uint32_t device, iron_error *err) {
    IRON_TRY(set_up(b, backend, device, err));
    IRON_TRY(measure_memory(b, err));
    IRON_TRY(measure_host(b, IRON_GPU_MEMORY_DEVICE, measure_pageable, err));
    IRON_TRY(measure_host(b, IRON_GPU_MEMORY_PINNED, measure_pinned, err));
    if (b->device->info.lacks[IRON_GPU_ZERO_COPY][0])
        return show_progress(b, err);
    return measure_host(b, IRON_GPU_MEMORY_MAPPED, measure_zero_copy, err);
}

static iron_status measure_gpu(size_t backend, uint32_t device, const iron_measure_options *options,
                               iron__ceiling_sink sink, iron_error *err) {
    measurement b = {.options = options, .sink = sink};
    iron_status status = measure_all(&b, backend, device, err);

    tear_down(&b);
    return status;
}

static void add_rate(void *context, const iron__ceiling_samples *s) {
    iron_device_ceilings *out = context;
    const struct {
        const char *name;
        double *gb_s;
    } rates[] = {{"read", &out->read_gb_s},
                 {"write", &out->write_gb_s},
                 {"copy", &out->copy_gb_s},
                 {"to_device_pageable", &out->to_device_pageable_gb_s},
                 {"to_device_pinned", &out->to_device_pinned_gb_s},
                 {"from_device_pinned", &out->from_device_pinned_gb_s},
                 {"zero_copy", &out->zero_copy_gb_s}};

    for (size_t k = 0; k < COUNT(rates); k++)
        if (strcmp(rates[k].name, s->name) == 0)
            *rates[k].gb_s = s->bytes / iron__statistics_of(s->ms, s->count).median * 1e-6;
    if (strcmp(s->name, "read") == 0) {
        out->buffer_bytes = (uint64_t)s->bytes;
        snprintf(out->read_shape, sizeof out->read_shape, "%.39s", s->shape);
    }
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
    return measure_gpu(index, device, options, (iron__ceiling_sink){add_rate, out}, err);
}

/* All ways are tried each time. */
static iron_status measure_planned(iron__race_device *device, const iron__race_plan_device *planned,
                                   const iron_measure_options *options, bool is_new_search,
                                   iron__ceiling_sink sink, iron_error *err) {
    (void)device;
    (void)is_new_search;
    return measure_gpu(planned->gpu_backend, planned->index, options, sink, err);
}

#define FLUSH_LEAST ((size_t)64 << 20)
#define STREAMS_MAX 32u
#define MEMORIES    (IRON_GPU_MEMORY_MAPPED + 1)

/* The inputs in one kind of memory. */
typedef struct input_buffers {
    iron__gpu_buffer *inputs[IRON_OP_INPUTS]; /* all NULL: not made yet */
    double ms;                                /* time to allocate them */
} input_buffers;

/* What a GPU provides to its contenders for one problem: queues, events to time with, the inputs in
 * every kind of memory that a contender needs (made once and shared, since no contender writes
 * them), and a way to empty its caches. */
typedef struct gpu_setup {
    iron__gpu_device *device; /* borrowed, as the problem */
    const iron__op_problem *problem;
    uint32_t streams;
    iron__gpu_queue *queues[STREAMS_MAX]; /* the first is used for everything not split */
    iron__gpu_event *begin, *end;
    iron__gpu_event *joined[STREAMS_MAX];
    input_buffers memories[MEMORIES];
    pass_kernels passes;
    iron__gpu_buffer *flush; /* twice the last-level cache; NULL until something is timed */
    bool can_time;           /* prepare_timing has succeeded */
    uint64_t used_bytes;     /* of device memory, by inputs and contenders */
    void *poison;            /* as long as an output, all bytes 0xFF */
    void *answer;            /* likewise: timed passes copy their answers here */
    bool has_event_times;    /* else only the host's clock can be used */
} gpu_setup;

/* Puts a pass into the first queue after which the caches hold nothing of the problem. It reads:
 * lines that were written would have to be written back during a later contender's time. */
static iron_status flush_caches(gpu_setup *s, iron_error *err) {
    return put_pass(&s->passes, s->queues[0], PASS_READ, *pass_shape_for(&s->device->info, 0),
                    s->flush, s->flush->bytes / PASS_QUAD_BYTES, 0, err);
}

/* Before the first pass is timed. */
static iron_status prepare_timing(gpu_setup *s, iron_error *err) {
    size_t flush_bytes = 2 * (size_t)s->device->info.cache_bytes;
    double ms = 0;

    if (s->can_time)
        return IRON_OK;
    iron__gpu_buffer_destroy(s->flush); /* of an attempt that failed */
    s->flush = NULL;
    pass_kernels_deinit(&s->passes);
    flush_bytes =
        flush_bytes > FLUSH_LEAST ? flush_bytes / PASS_BLOCK_BYTES * PASS_BLOCK_BYTES : FLUSH_LEAST;
    IRON_TRY(pass_kernels_init(&s->passes, s->device, err));
    IRON_TRY(
        iron__gpu_buffer_create(s->device, IRON_GPU_MEMORY_DEVICE, flush_bytes, &s->flush, err));
    IRON_TRY(iron__gpu_clear(s->queues[0], s->flush, 0, flush_bytes, err));
    IRON_TRY(iron__gpu_clear(s->queues[0], s->passes.result, 0, s->passes.result->bytes, err));

    /* does the driver keep times of events? */
    IRON_TRY(iron__gpu_event_record(s->queues[0], s->begin, err));
    IRON_TRY(flush_caches(s, err));
    IRON_TRY(iron__gpu_event_record(s->queues[0], s->end, err));
    IRON_TRY(iron__gpu_event_wait(s->device, s->end, err));
    s->has_event_times =
        iron__gpu_event_elapsed(s->device, s->begin, s->end, &ms, NULL) == IRON_OK && ms > 0;
    s->can_time = true;
    return IRON_OK;
}

/* Waits until all queues are empty, whatever happened in them. */
static void wait_for_all(gpu_setup *s) {
    for (uint32_t k = 0; k < s->streams; k++)
        if (s->queues[k])
            (void)iron__gpu_queue_wait(s->queues[k], NULL); /* an error now was reported before */
}

static void destroy_inputs(input_buffers *b) {
    for (size_t k = 0; k < IRON_OP_INPUTS; k++)
        iron__gpu_buffer_destroy(b->inputs[k]);
    *b = (input_buffers){.ms = 0};
}

/* Copies the inputs to device memory, or writes them where the host sees the buffer: pages that had
 * moved come back. */
static iron_status write_inputs(gpu_setup *s, iron__gpu_memory memory, iron_error *err) {
    for (size_t k = 0; k < s->problem->input_count; k++) {
        const iron__op_array *from = &s->problem->inputs[k];
        iron__gpu_buffer *to = s->memories[memory].inputs[k];
        iron__gpu_copy copy = {.from_host = from->data, .to = to, .bytes = from->bytes};

        assert(to);
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

/* Managed memory may use half of a card: pages beyond that would evict each other, or exhaust the
 * memory where it is shared with the host. */
static iron_status allocate_inputs(gpu_setup *s, iron__gpu_memory memory, iron_error *err) {
    input_buffers *b = &s->memories[memory];
    bool is_host = memory == IRON_GPU_MEMORY_PINNED || memory == IRON_GPU_MEMORY_MAPPED;
    uint64_t start = iron__clock_ns(), bytes = 0, most = s->device->info.memory_bytes;

    if (memory == IRON_GPU_MEMORY_MANAGED)
        most /= 2;
    for (size_t k = 0; k < s->problem->input_count; k++)
        bytes += s->problem->inputs[k].bytes;
    IRON_FAIL_IF(!is_host && bytes > most, err, IRON_E_NOMEM,
                 "too large for %s: %.1f GiB of inputs, and it can take %.1f; use a smaller --size",
                 s->device->info.name, (double)bytes / 0x1p30, (double)most / 0x1p30);
    for (size_t k = 0; k < s->problem->input_count; k++)
        IRON_TRY(iron__gpu_buffer_create(s->device, memory, s->problem->inputs[k].bytes,
                                         &b->inputs[k], err));
    b->ms = (double)(iron__clock_ns() - start) * 1e-6;
    if (!is_host)
        s->used_bytes += bytes;
    return write_inputs(s, memory, err);
}

/* The inputs in that memory, made and filled at first use. */
static iron_status get_inputs(gpu_setup *s, iron__gpu_memory memory, const input_buffers **out,
                              iron_error *err) {
    iron_status status = IRON_OK;

    *out = &s->memories[memory];
    if (!s->memories[memory].inputs[0])
        status = allocate_inputs(s, memory, err);
    if (status != IRON_OK)
        destroy_inputs(&s->memories[memory]);
    return status;
}

/* A peer that works on device memory, as functions of op.h: it gets the addresses of the buffers
 * and the queue's own stream. It is opened when the buffers are known, which is when the inputs
 * have arrived for the first time. */
typedef struct peer_work {
    const iron_peer *peer;
    const iron__op_problem *problem;
    void *state;
    bool is_open;
} peer_work;

static void peer_destroy(iron__gpu_work *object) {
    peer_work *w = (peer_work *)object;

    if (w && w->is_open)
        w->peer->close(w->state);
    free(w);
}

static iron_status peer_create(iron__gpu_device *device, const iron__contender *row,
                               const iron__op_problem *problem, uint32_t parts,
                               iron__gpu_work **out, iron_error *err) {
    peer_work *w;

    (void)parts;
    *out = NULL;
    IRON_FAIL_IF(!device->info.has_addresses, err, IRON_E_UNSUPPORTED,
                 "%s has no addresses that a peer could use", device->info.name);
    w = calloc(1, sizeof *w);
    IRON_FAIL_IF(!w, err, IRON_E_NOMEM, "out of memory for a peer");
    *w = (peer_work){.peer = row->own, .problem = problem};
    *out = (iron__gpu_work *)w;
    return IRON_OK;
}

static iron_status peer_derive(iron__gpu_work *object, const iron__gpu_data *data,
                               iron__gpu_queue *queue, iron_error *err) {
    peer_work *w = (peer_work *)object;
    iron_peer_case c = iron__peer_case(w->problem, NULL, 1);
    char why[160] = "";

    if (w->is_open)
        return IRON_OK;
    for (size_t k = 0; k < w->problem->input_count; k++)
        c.inputs[k] = (const void *)data->inputs[k]->native;
    c.output = (void *)data->output->native;
    c.stream = (void *)queue->native;
    IRON_FAIL_IF(w->peer->open(&c, &w->state, why, sizeof why) != 0, err, IRON_E_UNSUPPORTED,
                 "%s: %s", w->peer->name, why);
    w->is_open = true;
    return IRON_OK;
}

static iron_status peer_run(iron__gpu_work *object, const iron__gpu_data *data,
                            iron__gpu_queue *queue, iron_error *err) {
    peer_work *w = (peer_work *)object;
    char why[160] = "";

    (void)data;
    (void)queue;
    IRON_FAIL_IF(w->peer->run(w->state, why, sizeof why) != 0, err, IRON_E_STATE, "%s failed: %s",
                 w->peer->name, why);
    return IRON_OK;
}

static const iron__gpu_launcher peer_functions = {
    .create = peer_create, .destroy = peer_destroy, .derive = peer_derive, .run = peer_run};

typedef struct gpu_contender {
    iron__race_contender base;
    gpu_setup *setup;
    iron__contender row;
    iron__gpu_strategy strategy;
    iron__gpu_work *work;
    iron__gpu_data data;            /* what kernels see */
    const input_buffers *host;      /* page-locked inputs; NULL: the problem's own */
    iron__gpu_launch_log *launches; /* noted during the first answer; NULL afterwards */
} gpu_contender;

static iron__gpu_queue *main_queue(const gpu_contender *c) { return c->setup->queues[0]; }

/* The memory that kernels read. */
static iron__gpu_memory memory_of(iron__gpu_strategy strategy) {
    return strategy == IRON_GPU_UVM || strategy == IRON_GPU_UVM_PREFETCH ? IRON_GPU_MEMORY_MANAGED
           : strategy == IRON_GPU_ZERO_COPY                              ? IRON_GPU_MEMORY_MAPPED
                                                                         : IRON_GPU_MEMORY_DEVICE;
}

static bool is_copied(const gpu_contender *c) {
    return memory_of(c->strategy) == IRON_GPU_MEMORY_DEVICE;
}

/* The put_ functions put work into queues and do not wait. */
static iron_status put_input(gpu_contender *c, size_t input, size_t offset, size_t bytes,
                             iron__gpu_queue *queue, iron_error *err) {
    iron__gpu_copy copy = {
        .to = c->data.inputs[input], .to_offset = offset, .from_offset = offset, .bytes = bytes};

    if (c->host)
        copy.from = c->host->inputs[input];
    else
        copy.from_host = c->setup->problem->inputs[input].data;
    return iron__gpu_copy_bytes(queue, &copy, err);
}

static iron_status put_inputs(gpu_contender *c, size_t first, iron_error *err) {
    const iron__op_problem *p = c->setup->problem;

    for (size_t k = first; k < p->input_count; k++)
        IRON_TRY(put_input(c, k, 0, p->inputs[k].bytes, main_queue(c), err));
    return IRON_OK;
}

/* The big input in pieces, one queue each; with `computes` followed by the contender's part of the
 * work. All end in the main queue. */
static iron_status put_parts(gpu_contender *c, bool computes, iron_error *err) {
    gpu_setup *s = c->setup;
    uint64_t rows = s->problem->c.rows;
    size_t row_bytes = s->problem->inputs[0].bytes / (size_t)rows;
    uint32_t parts = rows < s->streams ? (uint32_t)rows : s->streams;

    IRON_TRY(put_inputs(c, 1, err));
    IRON_TRY(iron__gpu_event_record(s->queues[0], s->joined[0], err));
    for (uint32_t k = 0; k < parts; k++) {
        iron__gpu_part part = {.first = rows * k / parts, .index = k, .total = parts};

        part.count = rows * (k + 1) / parts - part.first;
        IRON_TRY(put_input(c, 0, (size_t)part.first * row_bytes, (size_t)part.count * row_bytes,
                           s->queues[k], err));
        if (k > 0)
            IRON_TRY(iron__gpu_queue_wait_event(s->queues[k], s->joined[0], err));
        if (computes)
            IRON_TRY(c->row.gpu->run_part(c->work, &c->data, part, s->queues[k], err));
        if (k > 0)
            IRON_TRY(iron__gpu_event_record(s->queues[k], s->joined[k], err));
    }
    for (uint32_t k = 1; k < parts; k++)
        IRON_TRY(iron__gpu_queue_wait_event(s->queues[0], s->joined[k], err));
    return IRON_OK;
}

static iron_status put_load(gpu_contender *c, iron_error *err) {
    const input_buffers *b = &c->setup->memories[memory_of(c->strategy)];

    if (c->strategy == IRON_GPU_STREAMS)
        return put_parts(c, false, err);
    if (is_copied(c))
        return put_inputs(c, 0, err);
    for (size_t k = 0; k < c->setup->problem->input_count; k++)
        IRON_TRY(iron__gpu_host_end(main_queue(c), b->inputs[k], err));
    for (size_t k = 0; c->strategy == IRON_GPU_UVM_PREFETCH && k < c->setup->problem->input_count;
         k++)
        IRON_TRY(iron__gpu_prefetch(main_queue(c), b->inputs[k], b->inputs[k]->bytes, err));
    return IRON_OK;
}

static iron_status put_derive(gpu_contender *c, iron_error *err) {
    return c->row.gpu->derive ? c->row.gpu->derive(c->work, &c->data, main_queue(c), err) : IRON_OK;
}

static iron_status put_run(gpu_contender *c, iron_error *err) {
    return c->row.gpu->run(c->work, &c->data, main_queue(c), err);
}

static iron_status put_whole(gpu_contender *c, iron_error *err) {
    if (c->strategy == IRON_GPU_STREAMS && c->row.gpu->run_part) {
        IRON_TRY(put_parts(c, true, err));
        return c->row.gpu->finish(c->work, &c->data, main_queue(c), err);
    }
    IRON_TRY(put_load(c, err));
    IRON_TRY(put_derive(c, err));
    return put_run(c, err);
}

/* Waits, and copies the answer to the host. */
static iron_status fetch(gpu_contender *c, void *output, iron_error *err) {
    iron__gpu_copy copy = {
        .from = c->data.output, .to_host = output, .bytes = c->setup->problem->output_bytes};

    if (c->row.gpu->fetch)
        return c->row.gpu->fetch(c->work, main_queue(c), output, err);
    IRON_TRY(iron__gpu_copy_bytes(main_queue(c), &copy, err));
    return iron__gpu_queue_wait(main_queue(c), err);
}

/* Before a transfer: pages that moved come back, and the host owns the inputs. */
static iron_status return_to_host(gpu_contender *c, iron_error *err) {
    iron__gpu_memory memory = memory_of(c->strategy);

    if (is_copied(c))
        return iron__gpu_queue_wait(main_queue(c), err);
    if (memory == IRON_GPU_MEMORY_MANAGED)
        IRON_TRY(write_inputs(c->setup, memory, err));
    for (size_t k = 0; k < c->setup->problem->input_count; k++)
        IRON_TRY(iron__gpu_host_begin(main_queue(c), c->setup->memories[memory].inputs[k], err));
    return iron__gpu_queue_wait(main_queue(c), err);
}

static iron_status time_passes(iron__race_contender *base, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    gpu_contender *c = (gpu_contender *)base;
    gpu_setup *s = c->setup;
    uint64_t start;

    if (scope != IRON_SCOPE_KERNEL) { /* a transfer or a whole run, by the host's clock */
        IRON_TRY(return_to_host(c, err));
        start = iron__clock_ns();
        IRON_TRY(scope == IRON_SCOPE_TRANSFER ? put_load(c, err) : put_whole(c, err));
        IRON_TRY(fetch(c, s->answer, err));
        *ms = (double)(iron__clock_ns() - start) * 1e-6;
        return IRON_OK;
    }
    IRON_TRY(prepare_timing(s, err));
    IRON_TRY(is_cold ? flush_caches(s, err) : put_run(c, err));
    IRON_TRY(s->has_event_times ? iron__gpu_event_record(s->queues[0], s->begin, err)
                                : iron__gpu_queue_wait(s->queues[0], err));
    start = iron__clock_ns();
    for (uint32_t k = 0; k < passes; k++)
        IRON_TRY(put_run(c, err));
    if (s->has_event_times) {
        IRON_TRY(iron__gpu_event_record(s->queues[0], s->end, err));
        IRON_TRY(iron__gpu_event_wait(s->device, s->end, err));
        IRON_TRY(iron__gpu_event_elapsed(s->device, s->begin, s->end, ms, err));
    } else {
        IRON_TRY(iron__gpu_queue_wait(s->queues[0], err));
        *ms = (double)(iron__clock_ns() - start) * 1e-6;
    }
    *ms /= passes;
    return IRON_OK;
}

static iron_status compute_answer(gpu_contender *c, iron__scope scope, void *output,
                                  iron_error *err) {
    const input_buffers *b = &c->setup->memories[IRON_GPU_MEMORY_DEVICE];
    const iron__gpu_launcher *gpu = c->row.gpu;
    iron__gpu_copy poison = {.from_host = c->setup->poison,
                             .to = c->data.output,
                             .bytes = c->setup->problem->output_bytes};

    if (gpu->spoil)
        IRON_TRY(gpu->spoil(c->work, main_queue(c), err));
    if (gpu->reset) {
        IRON_TRY(gpu->reset(c->work, main_queue(c), err));
    } else {
        IRON_TRY(iron__gpu_copy_bytes(main_queue(c), &poison, err));
        IRON_TRY(iron__gpu_queue_wait(main_queue(c), err));
    }
    if (scope != IRON_SCOPE_END_TO_END) {
        IRON_TRY(put_run(c, err));
        return fetch(c, output, err);
    }
    IRON_TRY(return_to_host(c, err));
    /* cleared, so that inputs which are not copied again make the answer wrong */
    for (size_t k = 0; is_copied(c) && k < c->setup->problem->input_count; k++)
        IRON_TRY(
            iron__gpu_clear(main_queue(c), b->inputs[k], 0, b->inputs[k]->bytes & ~(size_t)3, err));
    IRON_TRY(iron__gpu_queue_wait(main_queue(c), err));
    IRON_TRY(put_whole(c, err));
    return fetch(c, output, err);
}

static iron_status answer(iron__race_contender *base, iron__scope scope, void *output,
                          iron_error *err) {
    gpu_contender *c = (gpu_contender *)base;
    iron_status status;

    c->setup->device->launch_log = c->launches;
    status = compute_answer(c, scope, output, err);
    c->setup->device->launch_log = c->launches = NULL;
    return status;
}

static void close_contender(iron__race_contender *base) {
    gpu_contender *c = (gpu_contender *)base;

    wait_for_all(c->setup);
    if (c->work)
        c->row.gpu->destroy(c->work);
    iron__gpu_buffer_destroy(c->data.output);
    free(c);
}

/* Inputs, output, the contender's own memory, and what it derives; all of it is `prepare`. Kernels
 * are loaded, and built where they must be, once before anything is timed. All contenders of a race
 * use memory at the same time. */
static iron_status prepare(gpu_contender *c, iron_error *err) {
    const iron__gpu_launcher *gpu = c->row.gpu;
    gpu_setup *s = c->setup;
    uint64_t most = s->device->info.memory_bytes, bytes = s->problem->output_bytes, start;
    const input_buffers *inputs;
    iron_status status;

    if (gpu->device_bytes)
        bytes += gpu->device_bytes(&c->row, &s->problem->c);
    IRON_FAIL_IF(s->used_bytes + bytes > most - most / 8, err, IRON_E_NOMEM,
                 "too large for %s beside the others: needs %.1f GiB more, and %.1f of %.1f GiB "
                 "are in use; race it with fewer others",
                 s->device->info.name, (double)bytes / 0x1p30, (double)s->used_bytes / 0x1p30,
                 (double)most / 0x1p30);
    s->used_bytes += bytes;
    status = gpu->create(s->device, &c->row, s->problem, s->streams, &c->work, err);
    if (status == IRON_OK)
        gpu->destroy(c->work);
    c->work = NULL;
    IRON_TRY(status);
    IRON_TRY(get_inputs(s, memory_of(c->strategy), &inputs, err));
    memcpy(c->data.inputs, inputs->inputs, sizeof inputs->inputs);
    if (c->strategy == IRON_GPU_PINNED || c->strategy == IRON_GPU_STREAMS)
        IRON_TRY(get_inputs(s, IRON_GPU_MEMORY_PINNED, &c->host, err));
    c->base.prepare_ms = inputs->ms + (c->host ? c->host->ms : 0);
    start = iron__clock_ns();
    if (!gpu->fetch)
        IRON_TRY(iron__gpu_buffer_create(s->device, IRON_GPU_MEMORY_DEVICE,
                                         s->problem->output_bytes, &c->data.output, err));
    IRON_TRY(gpu->create(s->device, &c->row, s->problem, s->streams, &c->work, err));
    IRON_TRY(put_derive(c, err));
    IRON_TRY(iron__gpu_queue_wait(main_queue(c), err));
    c->base.prepare_ms += (double)(iron__clock_ns() - start) * 1e-6;
    return IRON_OK;
}

/* The GPU in the race. It stays open from problem to problem. */
typedef struct planned_gpu {
    iron__race_device base;
    const iron__race_plan_device *planned;
    uint64_t host_bytes; /* of the host's memory; 0 unknown */
    uint32_t streams;
    gpu_setup setup; /* zeros outside begin and end */
} planned_gpu;

static iron_status open_contender(iron__race_device *base, const iron__race_plan_row *row,
                                  iron__kernels *kernels, iron__race_contender **out,
                                  iron_error *err) {
    gpu_setup *setup = &((planned_gpu *)base)->setup;
    static const iron__race_contender_ops ops = {time_passes, answer, close_contender};
    gpu_contender *c = calloc(1, sizeof *c);
    iron_status status;

    *out = NULL;
    if (!c)
        return iron__no_memory(err, "a contender");
    *c = (gpu_contender){
        .base = {.ops = &ops,
                 .scopes = IRON_BIT(IRON_SCOPE_KERNEL) | IRON_BIT(IRON_SCOPE_END_TO_END),
                 .has_cold = !setup->problem->c.op->is_never_cold},
        .setup = setup,
        .row = row->contender,
        .strategy = row->memory,
        .launches = &kernels->answer};
    /* these two have no transfer: pages move when touched, or reads cross the bus */
    if (row->memory != IRON_GPU_UVM && row->memory != IRON_GPU_ZERO_COPY)
        c->base.scopes |= IRON_BIT(IRON_SCOPE_TRANSFER);
    if (row->peer) {
        c->row.gpu = &peer_functions;
        c->row.own = row->peer;
    }
    setup->device->launch_log = &kernels->prepare;
    status = prepare(c, err);
    setup->device->launch_log = NULL;
    if (status == IRON_OK)
        *out = &c->base;
    else
        close_contender(&c->base);
    return status;
}

static iron_status open_planned(const iron__race_plan *plan, size_t index, uint32_t streams,
                                iron__thread_pool *pool, iron__race_device **out, iron_error *err) {
    planned_gpu *g = calloc(1, sizeof *g);

    (void)pool;
    *out = NULL;
    if (!g)
        return iron__no_memory(err, "a race");
    *g = (planned_gpu){.base = {.ops = &iron__race_gpu},
                       .planned = &plan->devices[index],
                       .host_bytes = plan->host_bytes,
                       .streams = streams};
    *out = &g->base;
    return IRON_OK;
}

static void close_planned(iron__race_device *base) {
    iron__gpu_device_close(base->gpu);
    free(base);
}

/* end_problem frees what this makes, also after a failure. */
static iron_status begin_problem(iron__race_device *base, const iron__op_problem *problem,
                                 iron_error *err) {
    planned_gpu *g = (planned_gpu *)base;
    gpu_setup *s = &g->setup;
    /* outputs: poison, an answer while it is timed, and one that is checked */
    uint64_t bytes = iron__problem_bytes(problem, 3), most = g->host_bytes;

    IRON_FAIL_IF(most && bytes > most - most / 8, err, IRON_E_NOMEM,
                 "too large for this machine: %.1f GiB of inputs and answers, and it has %.1f GiB "
                 "of memory; use a smaller --size",
                 (double)bytes / 0x1p30, (double)most / 0x1p30);
    if (!base->gpu)
        IRON_TRY(
            iron__gpu_device_open(g->planned->gpu_backend, g->planned->index, &base->gpu, err));
    *s = (gpu_setup){.device = base->gpu,
                     .problem = problem,
                     .streams = g->streams ? g->streams : 1,
                     .poison = malloc(problem->output_bytes),
                     .answer = malloc(problem->output_bytes)};
    IRON_FAIL_IF(!s->poison || !s->answer, err, IRON_E_NOMEM,
                 "out of memory for an output of %zu bytes", problem->output_bytes);
    memset(s->poison, 0xFF, problem->output_bytes);
    for (uint32_t k = 0; k < s->streams; k++) {
        IRON_TRY(iron__gpu_queue_create(s->device, &s->queues[k], err));
        IRON_TRY(iron__gpu_event_create(s->device, &s->joined[k], err));
    }
    IRON_TRY(iron__gpu_event_create(s->device, &s->begin, err));
    return iron__gpu_event_create(s->device, &s->end, err);
}

/* A device that its driver marked as failed is opened again for the next problem. */
static void end_problem(iron__race_device *base) {
    gpu_setup *s = &((planned_gpu *)base)->setup;

    if (s->device) {
        wait_for_all(s);
        for (size_t k = 0; k < MEMORIES; k++)
            destroy_inputs(&s->memories[k]);
        iron__gpu_buffer_destroy(s->flush);
        pass_kernels_deinit(&s->passes);
        iron__gpu_event_destroy(s->device, s->begin);
        iron__gpu_event_destroy(s->device, s->end);
        for (uint32_t k = 0; k < s->streams; k++) {
            iron__gpu_event_destroy(s->device, s->joined[k]);
            iron__gpu_queue_destroy(s->queues[k]);
        }
    }
    free(s->poison);
    free(s->answer);
    *s = (gpu_setup){.device = NULL};
    if (base->gpu && base->gpu->failure.status != IRON_OK) {
        iron__gpu_device_close(base->gpu);
        base->gpu = NULL;
    }
}

const iron__race_device_ops iron__race_gpu = {.measure = measure_planned,
                                              .open = open_planned,
                                              .close = close_planned,
                                              .begin = begin_problem,
                                              .end = end_problem,
                                              .contender_open = open_contender};
