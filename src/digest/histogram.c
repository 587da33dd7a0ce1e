/* SPDX-License-Identifier: MIT */
/*
 * histogram.c: iron_histogram and its context: how often each value occurs, in host or device
 * memory.
 *
 * The counting is the op `histogram`'s: its fastest row on the CPU, its champion on a GPU, both
 * found in the registry. These rows trust their data: a value without a bin would be counted
 * somewhere in memory. So values are checked first, unless their type has none without a bin: on a
 * GPU by the statistics of the seal (seal_device.c).
 *
 * Memory is bounded: two arrays of bins, the tables of the op's row, and up to 256 MiB of values
 * that must be narrowed or aligned.
 */
#include "digest/digest_internal.h"

#include "core/cpu.h"
#include "core/fail.h"
#include "core/number.h"
#include "ops/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BINS_MAX       (UINT64_C(1) << 24)
#define U16_BINS       65536u
#define VALUES_AT_ONCE ((size_t)1 << 26) /* that are narrowed or aligned */
#define TASK_VALUES    ((size_t)1 << 16) /* that a thread checks or narrows */
#define TABLES_BYTES   ((size_t)512 << 20)

/* A GPU, opened when the first values on it are added. */
typedef struct histogram_gpu {
    iron__seal_device checker; /* owns the device */
    iron__contender row;
    iron__op_problem problems[IRON_ELEMENTS];
    iron__gpu_work *works[IRON_ELEMENTS];
    iron__gpu_buffer *output, *narrow;
} histogram_gpu;

struct iron_histogram_context {
    uint32_t bins, device;
    char backend[16];
    const iron__op *op;
    iron__contender row; /* on the CPU */
    iron__thread_pool *pool;
    uint64_t total; /* values counted so far */
    uint64_t *counts;
    uint64_t *found; /* by one run of the op, in as many bins as its elements have */
    void *scratch, *narrow;
    size_t scratch_bytes, narrow_bytes;
    histogram_gpu *gpu;
};

typedef struct iron_histogram_context context;

static iron__element element_of(iron_dtype dtype) {
    return dtype == IRON_DTYPE_U8 ? IRON_U8 : dtype == IRON_DTYPE_U16 ? IRON_U16 : IRON_U32;
}

/* The op's bins. It has at least two of u32. */
static size_t op_bins(const context *h, iron__element element) {
    size_t bins = h->bins > 2 ? h->bins : 2;

    return element == IRON_U8 ? 256 : element == IRON_U16 ? U16_BINS : bins;
}

static iron__op_problem problem_of(const context *h, iron__element element, uint64_t count) {
    uint32_t vocab = element == IRON_U32 ? (uint32_t)op_bins(h, element) : 0;

    return (iron__op_problem){
        .c = {.op = h->op, .rows = count, .cols = 1, .element = element, .vocab = vocab},
        .inputs = {{.bytes = (size_t)count * iron__element_bytes(element)}},
        .input_count = 1,
        .output_bytes = op_bins(h, element) * sizeof(uint64_t),
        .pool = h->pool,
    };
}

/* Whether the type has values without a bin. */
static bool needs_check(const context *h, iron_dtype dtype) {
    return element_of(dtype) == IRON_U32 || h->bins < op_bins(h, element_of(dtype));
}

/* Fails with the first value of the view that has no bin; `index` counts from the call's first
 * value to the view's. */
static iron_status report_bad(const context *h, const iron__tokens_view *view, uint64_t index,
                              iron_error *err) {
    for (size_t k = 0; k < view->count; k++) {
        int64_t value = iron__view_stored(view, k);

        IRON_FAIL_IF((uint64_t)value >= h->bins, err, IRON_E_FORMAT,
                     "value %" PRId64 " at position %" PRIu64
                     " has no bin: the histogram has bins 0 to %u",
                     value, h->total + index + k, h->bins - 1);
    }
    return IRON_OK;
}

/* Adds what the op has counted. */
static void add_found(context *h, iron__element element) {
    size_t bins = op_bins(h, element);

    for (size_t k = 0; k < bins && k < h->bins; k++)
        h->counts[k] += h->found[k];
}

/* Host memory. */

typedef struct values_job {
    const context *h;
    const iron__tokens_view *view;
    uint32_t *narrow; /* where values go as 32 bits */
} values_job;

static iron_status check_piece(void *argument, uint32_t worker, uint64_t index,
                               const atomic_bool *stop, iron_error *err) {
    const values_job *j = argument;
    iron__tokens_view piece = iron__view_rest(j->view, (size_t)index * TASK_VALUES);

    (void)worker;
    (void)stop;
    piece.count = iron__min_size(piece.count, TASK_VALUES);
    return iron__view_count_outside(&piece, j->h->bins) > 0
               ? report_bad(j->h, &piece, index * TASK_VALUES, err)
               : IRON_OK;
}

static void narrow_task(void *argument, size_t task) {
    const values_job *j = argument;
    size_t end = iron__min_size((task + 1) * TASK_VALUES, j->view->count);

    for (size_t k = task * TASK_VALUES; k < end; k++)
        j->narrow[k] = (uint32_t)((const uint64_t *)j->view->data)[k];
}

static iron_status reserve(void **memory, size_t *have, size_t bytes, iron_error *err) {
    if (*have >= bytes)
        return IRON_OK;
    iron__release(iron__allocator_default(), *memory);
    *memory = iron__allocate(iron__allocator_default(), 1, bytes, "tables of a histogram", err);
    *have = *memory ? bytes : 0;
    return *memory ? IRON_OK : IRON_E_NOMEM;
}

/* Values that are checked. */
static iron_status count_view(context *h, const iron__tokens_view *view, iron_error *err) {
    iron__element element = element_of(view->dtype);
    iron__op_problem p = problem_of(h, element, view->count);
    iron__cpu_work work = {.row = &h->row, .problem = &p, .pool = h->pool, .output = h->found};

    p.inputs[0].data = (void *)(uintptr_t)view->data; /* rows only read it */
    if (view->dtype == IRON_DTYPE_I64) {
        values_job job = {.view = view};

        IRON_TRY(reserve(&h->narrow, &h->narrow_bytes, p.inputs[0].bytes, err));
        p.inputs[0].data = job.narrow = h->narrow;
        iron__thread_pool_run(h->pool, narrow_task, &job,
                              (size_t)iron__kit_pieces(view->count, TASK_VALUES));
    }
    if (h->row.cpu_scratch_bytes)
        IRON_TRY(reserve(&h->scratch, &h->scratch_bytes,
                         h->row.cpu_scratch_bytes(&p, iron__thread_pool_threads(h->pool)), err));
    work.scratch = h->scratch;
    h->row.cpu_run(&work);
    add_found(h, element);
    return IRON_OK;
}

iron_status iron_histogram_add(iron_histogram_context *h, iron_dtype dtype, const void *values,
                               size_t count, iron_error *err) {
    iron__tokens_view rest = {dtype, values, count};
    values_job job = {.h = h, .view = &rest};
    const iron__ordered_run check = {
        .count = iron__kit_pieces(count, TASK_VALUES), .piece = check_piece, .context = &job};
    size_t most = dtype == IRON_DTYPE_I64 ? VALUES_AT_ONCE : SIZE_MAX;

    IRON_TRY(iron__stored_check_memory(&rest, "values", err));
    if (needs_check(h, dtype))
        IRON_TRY(iron__thread_pool_run_ordered(h->pool, &check, err));
    while (rest.count > 0) {
        iron__tokens_view next = rest;

        next.count = iron__min_size(rest.count, most);
        IRON_TRY(count_view(h, &next, err));
        rest = iron__view_rest(&rest, next.count);
    }
    h->total += count;
    return IRON_OK;
}

/* Device memory. */

static void close_gpu(context *h) {
    histogram_gpu *g = h->gpu;

    if (!g)
        return;
    for (size_t k = 0; k < IRON_ELEMENTS; k++)
        if (g->works[k])
            g->row.gpu->destroy(g->works[k]);
    iron__gpu_buffer_destroy(g->output);
    iron__gpu_buffer_destroy(g->narrow);
    iron__seal_device_close(&g->checker);
    iron__release(iron__allocator_default(), g);
    h->gpu = NULL;
}

static iron__gpu_device *histogram_device(const context *h) { return h->gpu->checker.feed->device; }

static iron_status open_gpu(context *h, iron_error *err) {
    iron__seal_device_config config = {.device = h->device,
                                       .vocab = h->bins,
                                       .pool = h->pool,
                                       .allocator = iron__allocator_default()};
    iron__gpu_devices devices = {.count = 1, .index = {h->device}};
    bool is_there = false;
    iron_status status;

    if (h->gpu)
        return IRON_OK;
    IRON_TRY(iron__gpu_choose(h->backend[0] ? h->backend : NULL, &devices, err));
    IRON_FAIL_IF(devices.backend == iron__gpu_backend_count(), err, IRON_E_UNSUPPORTED,
                 "no CUDA or OpenCL GPU was found; copy the values to memory and use "
                 "iron_histogram_add");
    config.backend = devices.backend;
    IRON_TRY(IRON_ALLOCATE(&h->gpu, iron__allocator_default(), 1, "a GPU's histogram", err));
    for (size_t k = 0; !is_there && h->op->contender_at(k, &h->gpu->row); k++)
        is_there = (h->gpu->row.backends & (uint32_t)IRON_ON_CUDA << devices.backend) &&
                   strcmp(h->gpu->row.name, "champion") == 0;
    status = is_there ? iron__seal_device_open(&h->gpu->checker, &config, err)
                      : iron__fail(err, IRON_E_UNSUPPORTED, 0, "no histogram for GPUs here");
    if (status == IRON_OK)
        status = iron__gpu_buffer_create(histogram_device(h), IRON_GPU_MEMORY_DEVICE,
                                         iron__max(h->bins, U16_BINS) * sizeof(uint64_t),
                                         &h->gpu->output, err);
    if (status != IRON_OK)
        close_gpu(h);
    return status;
}

/* The caller's values on the device. */
typedef struct resident {
    uintptr_t values, stream;
    iron_dtype dtype;
    uint64_t count;
    iron__gpu_queue *queue;
    iron__gpu_buffer *buffer; /* begins `lead` bytes before them, at a multiple of 16 bytes */
    size_t lead;
} resident;

/* Fails with the first value without a bin. */
static iron_status report_bad_on_device(context *h, const resident *r, iron_error *err) {
    iron_status status = IRON_OK;
    void *some = iron__allocate(iron__allocator_default(), TASK_VALUES, iron_dtype_bytes(r->dtype),
                                "values to check", err);

    if (!some)
        return IRON_E_NOMEM;
    for (uint64_t done = 0; status == IRON_OK && done < r->count; done += TASK_VALUES) {
        iron__tokens_view view = {r->dtype, some, iron__min_size(TASK_VALUES, r->count - done)};

        status = iron__gpu_feed_read_device(h->gpu->checker.feed, r->values, r->dtype, done,
                                            view.count, r->stream, some, err);
        if (status == IRON_OK)
            status = report_bad(h, &view, done, err);
    }
    iron__release(iron__allocator_default(), some);
    return status != IRON_OK
               ? status
               : iron__fail(err, IRON_E_FORMAT, 0, "a value had no bin, and has changed since");
}

/* `count` values that begin with the buffer. Of the work for them, only a launch depends on their
 * number, not what was loaded. */
static iron_status count_buffer(context *h, const resident *r, const iron__gpu_buffer *values,
                                iron__element element, uint64_t count, iron_error *err) {
    histogram_gpu *g = h->gpu;
    const iron__gpu_launcher *gpu = g->row.gpu;
    iron__gpu_work **work = &g->works[element];
    iron__gpu_data data = {.inputs = {values}, .output = g->output};
    iron__gpu_copy back = {
        .from = g->output, .to_host = h->found, .bytes = op_bins(h, element) * sizeof *h->found};

    g->problems[element] = problem_of(h, element, count);
    if (*work && (*work)->c.rows != count && (gpu->tear_down || !gpu->set_up)) {
        gpu->destroy(*work);
        *work = NULL;
    }
    if (!*work) {
        IRON_TRY(gpu->create(histogram_device(h), &g->row, &g->problems[element], 1, work, err));
    } else if ((*work)->c.rows != count) {
        (*work)->c.rows = count;
        IRON_TRY(gpu->set_up(*work, err));
    }
    IRON_TRY(gpu->run(*work, &data, r->queue, err));
    IRON_TRY(iron__gpu_copy_bytes(r->queue, &back, err));
    IRON_TRY(iron__gpu_queue_wait(r->queue, err));
    add_found(h, element);
    return IRON_OK;
}

/* Values that the op's kernels cannot read where they are, through a buffer of our own. */
static iron_status count_copied(context *h, const resident *r, iron_error *err) {
    size_t width = iron_dtype_bytes(r->dtype), kept = width > sizeof(uint32_t) ? 4 : width;
    uint64_t most = iron__min(r->count, VALUES_AT_ONCE);
    iron__gpu_buffer **narrow = &h->gpu->narrow;

    if (*narrow && (*narrow)->bytes < most * kept) {
        iron__gpu_buffer_destroy(*narrow);
        *narrow = NULL;
    }
    if (!*narrow)
        IRON_TRY(iron__gpu_buffer_create(histogram_device(h), IRON_GPU_MEMORY_DEVICE,
                                         (size_t)(most * kept), narrow, err));
    for (uint64_t done = 0; done < r->count; done += most) {
        uint64_t count = iron__min(r->count - done, most);
        iron__gpu_copy copy = {.from = r->buffer,
                               .to = *narrow,
                               .from_offset = r->lead + (size_t)done * width,
                               .bytes = (size_t)count * width};

        if (r->dtype == IRON_DTYPE_I64)
            IRON_TRY(iron__tokens_gpu_widen(h->gpu->checker.feed->tokens, r->queue, width,
                                            r->buffer, r->lead / width + done, *narrow, count,
                                            err));
        else
            IRON_TRY(iron__gpu_copy_bytes(r->queue, &copy, err));
        IRON_TRY(count_buffer(h, r, *narrow, element_of(r->dtype), count, err));
    }
    return IRON_OK;
}

static iron_status count_on_device(context *h, resident *r, iron_error *err) {
    size_t width = iron_dtype_bytes(r->dtype);
    iron_status status = IRON_OK;

    r->lead = histogram_device(h)->info.has_addresses ? (size_t)(r->values % 16) : 0;
    IRON_FAIL_IF(r->count > (SIZE_MAX - 16) / width, err, IRON_E_ARG,
                 "%" PRIu64 " values are more than an address space holds", r->count);
    if (needs_check(h, r->dtype)) {
        iron__seal_device *checker = &h->gpu->checker;
        iron__seal_words words;
        iron__token_stats stats;
        bool has_wide = false;

        IRON_TRY(iron__seal_device_begin(checker, 0, err));
        IRON_TRY(iron__gpu_feed_resident(checker->feed, r->values, r->dtype, 0, r->count, r->stream,
                                         err));
        IRON_TRY(iron__seal_device_fetch(checker, &words, &stats, err));
        if (r->dtype == IRON_DTYPE_I64)
            IRON_TRY(iron__gpu_feed_has_overflow(checker->feed, &has_wide, err));
        if (has_wide || stats.out_of_vocab > 0)
            return report_bad_on_device(h, r, err);
    }
    IRON_TRY(iron__gpu_buffer_wrap(histogram_device(h), r->values - r->lead,
                                   r->lead + (size_t)r->count * width, &r->buffer, err));
    status = iron__gpu_queue_wrap(histogram_device(h), r->stream, &r->queue, err);
    if (status == IRON_OK)
        status = r->lead > 0 || r->dtype == IRON_DTYPE_I64
                     ? count_copied(h, r, err)
                     : count_buffer(h, r, r->buffer, element_of(r->dtype), r->count, err);
    iron__gpu_queue_destroy(r->queue);
    iron__gpu_buffer_destroy(r->buffer);
    return status;
}

iron_status iron_histogram_add_device(iron_histogram_context *h, iron_dtype dtype,
                                      const void *values, uint64_t count, void *stream,
                                      iron_error *err) {
    resident r = {
        .values = (uintptr_t)values, .stream = (uintptr_t)stream, .dtype = dtype, .count = count};
    iron_status status;

    IRON_TRY(iron__stored_check_memory(&(iron__tokens_view){dtype, values, (size_t)count}, "values",
                                       err));
    if (count == 0)
        return IRON_OK;
    IRON_TRY(open_gpu(h, err));
    status = count_on_device(h, &r, err);
    if (status == IRON_OK)
        h->total += count;
    else if (status != IRON_E_FORMAT && status != IRON_E_ARG)
        close_gpu(h); /* a device that failed is not used again */
    return status;
}

void *iron_histogram_native_context(iron_histogram_context *h, iron_error *err) {
    return open_gpu(h, err) == IRON_OK ? (void *)iron__gpu_feed_context(h->gpu->checker.feed)
                                       : NULL;
}

/* The context. */

void iron_histogram_options_init_sized(iron_histogram_options *options, size_t struct_size) {
    memset(options, 0, struct_size);
    options->struct_size = (uint32_t)struct_size;
}

static iron_status set_up(context *h, const iron_histogram_options *o, iron_error *err) {
    const iron_allocator *a = iron__allocator_default();
    uint64_t table = o->bins * sizeof(uint32_t); /* of a thread */
    uint32_t threads = o->threads ? o->threads : iron__cpu_threads();
    iron__contender row;
    bool is_there = false;

    h->bins = (uint32_t)o->bins;
    h->device = o->device;
    snprintf(h->backend, sizeof h->backend, "%s", o->backend ? o->backend : "");
    /* the op's row that uses all threads */
    h->op = iron__op_find("histogram");
    for (size_t k = 0; h->op && h->op->contender_at(k, &row); k++)
        if ((row.backends & IRON_ON_CPU) && !row.is_single) {
            h->row = row;
            is_there = true;
        }
    IRON_FAIL_IF(!is_there, err, IRON_E_UNSUPPORTED, "this build has no histogram");
    threads = (uint32_t)iron__min(threads, TABLES_BYTES / table);
    IRON_TRY(iron__thread_pool_create(threads, a, &h->pool, err));
    IRON_TRY(IRON_ALLOCATE(&h->counts, a, h->bins, "bins", err));
    return IRON_ALLOCATE(&h->found, a, iron__max(h->bins, U16_BINS), "bins", err);
}

iron_status iron_histogram_create(const iron_histogram_options *options,
                                  iron_histogram_context **out, iron_error *err) {
    iron_status status;
    context *h;

    *out = NULL;
    IRON_TRY(iron__struct_check(options, sizeof *options, "iron_histogram_options", err));
    IRON_FAIL_IF(options->bins < 1 || options->bins > BINS_MAX, err, IRON_E_ARG,
                 "bins is %" PRIu64 "; it must be 1 to 16777216", options->bins);
    IRON_FAIL_IF(options->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", options->threads, IRON_THREADS_MAX);
    IRON_TRY(IRON_ALLOCATE(&h, iron__allocator_default(), 1, "a histogram", err));
    status = set_up(h, options, err);
    if (status == IRON_OK)
        *out = h;
    else
        iron_histogram_destroy(h);
    return status;
}

void iron_histogram_destroy(iron_histogram_context *h) {
    const iron_allocator *a = iron__allocator_default();

    if (!h)
        return;
    close_gpu(h);
    iron__thread_pool_destroy(h->pool);
    iron__release(a, h->counts);
    iron__release(a, h->found);
    iron__release(a, h->scratch);
    iron__release(a, h->narrow);
    iron__release(a, h);
}

void iron_histogram_reset(iron_histogram_context *h) {
    memset(h->counts, 0, h->bins * sizeof *h->counts);
    h->total = 0;
}

const uint64_t *iron_histogram_counts(const iron_histogram_context *h, uint64_t *total) {
    if (total)
        *total = h->total;
    return h->counts;
}

iron_status iron_histogram_merge(iron_histogram_context *h, const iron_histogram_context *other,
                                 iron_error *err) {
    IRON_FAIL_IF(h->bins != other->bins, err, IRON_E_ARG,
                 "a histogram of %u bins cannot be added to one of %u", other->bins, h->bins);
    for (size_t k = 0; k < h->bins; k++)
        h->counts[k] += other->counts[k];
    h->total += other->total;
    return IRON_OK;
}

iron_status iron_histogram(iron_dtype dtype, const void *values, size_t count, uint64_t *counts,
                           uint64_t bins, iron_error *err) {
    iron_histogram_context *h = NULL;
    iron_histogram_options o;
    iron_status status;

    IRON_FAIL_IF(!counts, err, IRON_E_ARG, "counts is NULL; give the address of a count per bin");
    iron_histogram_options_init(&o);
    o.bins = bins;
    o.threads = count < TASK_VALUES ? 1 : 0; /* starting threads would take longer */
    status = iron_histogram_create(&o, &h, err);
    if (!h)
        return status;
    status = iron_histogram_add(h, dtype, values, count, err);
    if (status == IRON_OK)
        memcpy(counts, h->counts, (size_t)bins * sizeof *counts);
    iron_histogram_destroy(h);
    return status;
}
