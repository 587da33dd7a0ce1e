/* SPDX-License-Identifier: MIT */
/*
 * histogram.c: iron_histogram and its context: how often each value occurs, in host or device
 * memory.
 *
 * The counting is the op `histogram`'s: its fastest row on the CPU, its champion on a GPU, both
 * found in the registry. These rows trust their data: a value without a bin would be counted
 * somewhere in memory. So 32 and 64 bits are checked before they are counted: in host memory piece
 * by piece, small enough that they are counted out of the cache; in device memory by the statistics
 * of the seal (seal_device.c), a second read. 8 and 16 bits are counted in all the bins that they
 * can have, and it is checked afterwards that the surplus ones are empty.
 *
 * A call counts everything or nothing: its counts are pending until the last value is known to be
 * good. Memory is bounded: three arrays of bins, the tables of the op's row, and up to 256 MiB of
 * values on their way if they must be narrowed or are not aligned.
 */
#include "digest/digest_internal.h"

#include "core/cpu.h"
#include "core/fail.h"
#include "ops/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS_MAX (UINT64_C(1) << 24)
#define U16_BINS 65536u

/* Values per piece in host memory and thread: 8 MiB of 32 bits, so that pieces stay in the
 * last-level cache; more if there are so many bins that adding up tables would take long. */
#define PIECE_VALUES   ((size_t)1 << 21)
#define PIECE_PER_BIN  ((size_t)32)
#define VALUES_AT_ONCE ((size_t)1 << 26) /* that are narrowed or aligned */
#define TASK_VALUES    ((size_t)1 << 16) /* that a thread checks or narrows */
#define TABLES_BYTES   ((size_t)512 << 20)

/* The elements that the op counts. */
enum { ELEMENT_U8, ELEMENT_U16, ELEMENT_U32, ELEMENTS };

/* A GPU, opened when the first values on it are added. */
typedef struct histogram_gpu {
    iron__seal_device checker; /* owns the device */
    iron__contender row;
    iron__op_problem problems[ELEMENTS];
    iron__gpu_work *works[ELEMENTS];
    iron__gpu_buffer *output, *narrow;
} histogram_gpu;

struct iron_histogram_context {
    uint32_t bins, device;
    char backend[16];
    const iron__op *op;
    iron__contender row; /* on the CPU */
    iron__thread_pool *pool;
    uint64_t total;   /* values counted so far */
    uint64_t *counts; /* of `bins` values, and of the current call: */
    uint64_t *pending;
    uint64_t *found; /* what the op has counted, in as many bins as its elements have */
    void *scratch;
    size_t scratch_bytes;
    uint32_t *narrow; /* `narrow_values` of them */
    size_t narrow_values;
    histogram_gpu *gpu;
};

typedef struct iron_histogram_context context;

static int element_of(iron_dtype dtype) {
    return dtype == IRON_DTYPE_U8    ? ELEMENT_U8
           : dtype == IRON_DTYPE_U16 ? ELEMENT_U16
                                     : ELEMENT_U32;
}

/* The op's bins. It has at least two of u32. */
static size_t op_bins(const context *h, int element) {
    return element == ELEMENT_U8    ? 256
           : element == ELEMENT_U16 ? U16_BINS
           : h->bins > 2            ? h->bins
                                    : 2;
}

static iron__op_problem problem_of(const context *h, int element, uint64_t count) {
    static const iron__element elements[ELEMENTS] = {IRON_U8, IRON_U16, IRON_U32};
    iron__op_problem p = {
        .c = {.op = h->op, .rows = count, .cols = 1, .element = elements[element]},
        .input_count = 1,
        .output_bytes = op_bins(h, element) * sizeof(uint64_t),
        .pool = h->pool};

    p.c.vocab = element == ELEMENT_U32 ? (uint32_t)op_bins(h, element) : 0;
    p.inputs[0].bytes = (size_t)count * iron__element_bytes(elements[element]);
    return p;
}

static iron_status no_bin(const context *h, uint64_t index, int64_t value, iron_error *err) {
    return iron__fail(err, IRON_E_FORMAT, 0,
                      "value %" PRId64 " at position %" PRIu64
                      " has no bin: the histogram has bins 0 to %u",
                      value, h->total + index, h->bins - 1);
}

/* Fails with the first value of the view that has no bin; `index` counts from the call's first
 * value to the view's. */
static iron_status report_bad(const context *h, const iron__tokens_view *view, uint64_t index,
                              iron_error *err) {
    for (size_t k = 0; k < view->count; k++) {
        int64_t value = iron__view_stored(view, k);

        if ((uint64_t)value >= h->bins)
            return no_bin(h, index + k, value, err);
    }
    return IRON_OK;
}

/* Adds what the op has counted; false if it has counted values without a bin. */
static bool add_found(context *h, int element) {
    size_t bins = op_bins(h, element), common = bins < h->bins ? bins : h->bins;
    uint64_t outside = 0;

    for (size_t k = 0; k < common; k++)
        h->pending[k] += h->found[k];
    for (size_t k = common; k < bins; k++)
        outside |= h->found[k];
    return outside == 0;
}

static iron_status finish_call(context *h, uint64_t count, iron_status status) {
    for (size_t k = 0; k < h->bins; k++) {
        if (status == IRON_OK)
            h->counts[k] += h->pending[k];
        h->pending[k] = 0;
    }
    if (status == IRON_OK)
        h->total += count;
    return status;
}

/* Host memory. */

typedef struct check_job {
    const iron__tokens_view *view;
    uint64_t bins;
    uint32_t *narrow; /* NULL, or where 64-bit values go as 32 bits */
    atomic_bool has_bad;
} check_job;

/* Loops that compilers vectorise: a maximum, and of 64 bits the lower halves. */
static void check_task(void *argument, size_t task) {
    check_job *j = argument;
    size_t first = task * TASK_VALUES, left = j->view->count - first;
    size_t count = left < TASK_VALUES ? left : TASK_VALUES;
    const uint32_t *words = (const uint32_t *)j->view->data + first;
    const uint64_t *wide = (const uint64_t *)j->view->data + first;
    uint64_t most = 0;

    if (j->narrow) {
        for (size_t k = 0; k < count; k++) {
            most = wide[k] > most ? wide[k] : most;
            j->narrow[first + k] = (uint32_t)wide[k];
        }
    } else {
        uint32_t largest = 0;

        for (size_t k = 0; k < count; k++)
            largest = words[k] > largest ? words[k] : largest;
        most = largest;
    }
    if (most >= j->bins)
        atomic_store(&j->has_bad, true);
}

static iron_status reserve(void **memory, size_t *have, size_t bytes, const char *what,
                           iron_error *err) {
    if (*have >= bytes)
        return IRON_OK;
    iron__release(iron__allocator_default(), *memory);
    *have = 0;
    *memory = iron__allocate(iron__allocator_default(), 1, bytes, what, err);
    *have = *memory ? bytes : 0;
    return *memory ? IRON_OK : IRON_E_NOMEM;
}

/* One piece; `index` counts from the call's first value to the piece's. */
static iron_status add_piece(context *h, const iron__tokens_view *view, uint64_t index,
                             iron_error *err) {
    int element = element_of(view->dtype);
    iron__op_problem p = problem_of(h, element, view->count);
    iron__cpu_work work = {.row = &h->row, .problem = &p, .pool = h->pool, .output = h->found};
    check_job job = {.view = view, .bins = h->bins};

    p.inputs[0].data = (void *)(uintptr_t)view->data; /* rows only read it */
    if (view->dtype == IRON_DTYPE_I64) {
        size_t have = h->narrow_values * sizeof *h->narrow;
        void *narrow = h->narrow;
        iron_status status =
            reserve(&narrow, &have, view->count * sizeof *h->narrow, "values", err);

        h->narrow = narrow;
        h->narrow_values = have / sizeof *h->narrow;
        IRON_TRY(status);
        p.inputs[0].data = job.narrow = h->narrow;
    }
    if (element == ELEMENT_U32) {
        iron__thread_pool_run(h->pool, check_task, &job,
                              (size_t)iron__kit_pieces(view->count, TASK_VALUES));
        if (job.has_bad)
            return report_bad(h, view, index, err);
    }
    if (h->row.cpu_scratch_bytes)
        IRON_TRY(reserve(&h->scratch, &h->scratch_bytes,
                         h->row.cpu_scratch_bytes(&p, iron__thread_pool_threads(h->pool)),
                         "tables of a histogram", err));
    work.scratch = h->scratch;
    h->row.cpu_run(&work);
    return add_found(h, element) ? IRON_OK : report_bad(h, view, index, err);
}

static size_t piece_values(const context *h, iron_dtype dtype) {
    size_t piece = PIECE_PER_BIN * op_bins(h, element_of(dtype));

    piece = (piece > PIECE_VALUES ? piece : PIECE_VALUES) * iron__thread_pool_threads(h->pool);
    return dtype == IRON_DTYPE_I64 && piece > VALUES_AT_ONCE ? VALUES_AT_ONCE : piece;
}

static iron_status check_values(iron_dtype dtype, const void *values, uint64_t count,
                                iron_error *err) {
    size_t width = iron_dtype_bytes(dtype);

    IRON_FAIL_IF(width == 0, err, IRON_E_ARG, "dtype %d is unknown; use an iron_dtype", (int)dtype);
    IRON_FAIL_IF(count > 0 && !values, err, IRON_E_ARG, "the values are at NULL; give an address");
    IRON_FAIL_IF((uintptr_t)values % width != 0, err, IRON_E_ARG,
                 "values at %p are not aligned to their %zu bytes; copy them", values, width);
    return IRON_OK;
}

iron_status iron_histogram_add(iron_histogram_context *h, iron_dtype dtype, const void *values,
                               size_t count, iron_error *err) {
    iron__tokens_view rest = {dtype, values, count};
    iron_status status = check_values(dtype, values, count, err);
    size_t piece = status == IRON_OK ? piece_values(h, dtype) : 0;

    while (status == IRON_OK && rest.count > 0) {
        iron__tokens_view next = rest;

        next.count = rest.count < piece ? rest.count : piece;
        status = add_piece(h, &next, count - rest.count, err);
        rest = iron__view_rest(&rest, next.count);
    }
    return finish_call(h, count, status);
}

/* Device memory. */

static void close_gpu(context *h) {
    histogram_gpu *g = h->gpu;

    if (!g)
        return;
    for (int k = 0; k < ELEMENTS; k++)
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
    h->gpu = iron__allocate(iron__allocator_default(), 1, sizeof *h->gpu, "a GPU's histogram", err);
    if (!h->gpu)
        return IRON_E_NOMEM;
    for (size_t k = 0; !is_there && h->op->contender_at(k, &h->gpu->row); k++)
        is_there = (h->gpu->row.backends & (uint32_t)IRON_ON_CUDA << devices.backend) &&
                   strcmp(h->gpu->row.name, "champion") == 0;
    status = is_there ? iron__seal_device_open(&h->gpu->checker, &config, err)
                      : iron__fail(err, IRON_E_UNSUPPORTED, 0, "no histogram for GPUs here");
    if (status == IRON_OK)
        status = iron__gpu_buffer_create(
            histogram_device(h), IRON_GPU_MEMORY_DEVICE,
            (h->bins > U16_BINS ? h->bins : U16_BINS) * sizeof(uint64_t), &h->gpu->output, err);
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

/* Fails with the first value without a bin, from `first` on. */
static iron_status report_bad_on_device(context *h, const resident *r, uint64_t first,
                                        iron_error *err) {
    iron_status status = IRON_OK;
    void *some = iron__allocate(iron__allocator_default(), TASK_VALUES, iron_dtype_bytes(r->dtype),
                                "values to check", err);

    if (!some)
        return IRON_E_NOMEM;
    for (uint64_t done = first; status == IRON_OK && done < r->count; done += TASK_VALUES) {
        iron__tokens_view view = {r->dtype, some, TASK_VALUES};

        view.count = r->count - done < TASK_VALUES ? (size_t)(r->count - done) : TASK_VALUES;
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

static iron_status check_on_device(context *h, const resident *r, iron_error *err) {
    iron__seal_device *checker = &h->gpu->checker;
    iron__seal_words words;
    iron__token_stats stats;
    bool has_wide = false;

    IRON_TRY(iron__seal_device_begin(checker, 0, err));
    IRON_TRY(
        iron__gpu_feed_resident(checker->feed, r->values, r->dtype, 0, r->count, r->stream, err));
    IRON_TRY(iron__seal_device_fetch(checker, &words, &stats, err));
    if (r->dtype == IRON_DTYPE_I64)
        IRON_TRY(iron__gpu_feed_has_overflow(checker->feed, &has_wide, err));
    if (has_wide) /* the statistics are those of the lower halves */
        return report_bad_on_device(h, r, 0, err);
    return stats.out_of_vocab == 0 ? IRON_OK
                                   : report_bad_on_device(h, r, stats.first_position, err);
}

/* The work for so many elements. Only a launch depends on their number, not what was loaded. */
static iron_status work_for(context *h, int element, uint64_t count, iron__gpu_work **out,
                            iron_error *err) {
    histogram_gpu *g = h->gpu;
    const iron__gpu_launcher *gpu = g->row.gpu;
    iron__gpu_work *work = g->works[element];

    g->problems[element] = problem_of(h, element, count);
    if (work && work->c.rows != count && (gpu->tear_down || !gpu->set_up)) {
        gpu->destroy(work);
        work = g->works[element] = NULL;
    }
    if (!work) {
        IRON_TRY(gpu->create(histogram_device(h), &g->row, &g->problems[element], 1, &work, err));
        g->works[element] = work;
    } else if (work->c.rows != count) {
        work->c.rows = count;
        IRON_TRY(gpu->set_up(work, err));
    }
    *out = work;
    return IRON_OK;
}

/* `count` values that begin with the buffer. */
static iron_status count_buffer(context *h, const resident *r, const iron__gpu_buffer *values,
                                int element, uint64_t count, iron_error *err) {
    iron__gpu_data data = {.inputs = {values}, .output = h->gpu->output};
    iron__gpu_copy back = {.from = h->gpu->output,
                           .to_host = h->found,
                           .bytes = op_bins(h, element) * sizeof *h->found};
    iron__gpu_work *work;

    IRON_TRY(work_for(h, element, count, &work, err));
    IRON_TRY(h->gpu->row.gpu->run(work, &data, r->queue, err));
    IRON_TRY(iron__gpu_copy_bytes(r->queue, &back, err));
    IRON_TRY(iron__gpu_queue_wait(r->queue, err));
    return add_found(h, element) ? IRON_OK : report_bad_on_device(h, r, 0, err);
}

/* Values that the op's kernels cannot read where they are, through a buffer of our own. */
static iron_status count_copied(context *h, const resident *r, iron_error *err) {
    size_t width = iron_dtype_bytes(r->dtype), kept = width > sizeof(uint32_t) ? 4 : width;
    uint64_t most = r->count < VALUES_AT_ONCE ? r->count : VALUES_AT_ONCE;
    iron__gpu_buffer **narrow = &h->gpu->narrow;

    if (*narrow && (*narrow)->bytes < most * kept) {
        iron__gpu_buffer_destroy(*narrow);
        *narrow = NULL;
    }
    if (!*narrow)
        IRON_TRY(iron__gpu_buffer_create(histogram_device(h), IRON_GPU_MEMORY_DEVICE,
                                         (size_t)(most * kept), narrow, err));
    for (uint64_t done = 0; done < r->count; done += most) {
        uint64_t count = r->count - done < most ? r->count - done : most;
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
    if (element_of(r->dtype) == ELEMENT_U32)
        IRON_TRY(check_on_device(h, r, err));
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
    iron_status status = check_values(dtype, values, count, err);

    if (status != IRON_OK || count == 0)
        return status;
    IRON_TRY(open_gpu(h, err));
    status = finish_call(h, count, count_on_device(h, &r, err));
    if (status != IRON_OK && status != IRON_E_FORMAT && status != IRON_E_ARG)
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

/* The op's row that uses all threads. */
static iron_status find_op(context *h, iron_error *err) {
    iron__contender row;
    bool is_there = false;

    h->op = iron__op_find("histogram");
    for (size_t k = 0; h->op && h->op->contender_at(k, &row); k++)
        if ((row.backends & IRON_ON_CPU) && !row.is_single) {
            h->row = row;
            is_there = true;
        }
    IRON_FAIL_IF(!is_there, err, IRON_E_UNSUPPORTED, "this build has no histogram");
    return IRON_OK;
}

static iron_status set_up(context *h, const iron_histogram_options *o, iron_error *err) {
    uint32_t threads = o->threads ? o->threads : iron__cpu_threads();
    size_t table = (size_t)o->bins * sizeof(uint32_t); /* of a thread */
    uint64_t **arrays[] = {&h->counts, &h->pending, &h->found};

    h->bins = (uint32_t)o->bins;
    h->device = o->device;
    snprintf(h->backend, sizeof h->backend, "%s", o->backend ? o->backend : "");
    IRON_TRY(find_op(h, err));
    if (threads > TABLES_BYTES / table)
        threads = (uint32_t)(TABLES_BYTES / table);
    IRON_TRY(iron__thread_pool_create(threads, iron__allocator_default(), &h->pool, err));
    for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++) {
        size_t bins = k < 2 || h->bins > U16_BINS ? h->bins : U16_BINS;

        *arrays[k] = iron__allocate(iron__allocator_default(), bins, sizeof **arrays[k],
                                    "bins of a histogram", err);
        if (!*arrays[k])
            return IRON_E_NOMEM;
        memset(*arrays[k], 0, bins * sizeof **arrays[k]);
    }
    return IRON_OK;
}

iron_status iron_histogram_create(const iron_histogram_options *options,
                                  iron_histogram_context **out, iron_error *err) {
    iron_status status;
    context *h;

    *out = NULL;
    IRON_FAIL_IF(!options || options->struct_size != sizeof *options, err, IRON_E_ARG,
                 "iron_histogram_options.struct_size is not %zu; call iron_histogram_options_init",
                 sizeof *options);
    IRON_FAIL_IF(options->bins < 1 || options->bins > BINS_MAX, err, IRON_E_ARG,
                 "bins is %" PRIu64 "; it must be 1 to 16777216", options->bins);
    IRON_FAIL_IF(options->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", options->threads, IRON_THREADS_MAX);
    h = iron__allocate(iron__allocator_default(), 1, sizeof *h, "a histogram", err);
    if (!h)
        return IRON_E_NOMEM;
    status = set_up(h, options, err);
    if (status != IRON_OK) {
        iron_histogram_destroy(h);
        return status;
    }
    *out = h;
    return IRON_OK;
}

void iron_histogram_destroy(iron_histogram_context *h) {
    const iron_allocator *a = iron__allocator_default();

    if (!h)
        return;
    close_gpu(h);
    iron__thread_pool_destroy(h->pool);
    iron__release(a, h->counts);
    iron__release(a, h->pending);
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
