/* SPDX-License-Identifier: MIT */
/*
 * op.h: an op is a problem with a contract, and the contenders that solve it.
 *
 * An op's folder makes the problem (data from a seed), has a reference in higher precision than any
 * contender, and checks answers. It lists its contenders as rows; the command, the tests, the
 * documentation and the races all read these rows. Nothing here measures: the arena does, and it
 * counts the op's useful bytes, the same for every contender.
 *
 *   axis       a parameter of an op besides size and element type, such as the order of the data
 *   case       what to compute: op, size, element type, parameters
 *   problem    a case with its data and its reference
 *   contender  one implementation: a function on the CPU, a launcher on a GPU
 *
 * The header also declares what most ops share: limits of one-dimensional ops (iron__line_...) and
 * requirements on a device (iron__needs_...).
 *
 * An op's file holds, in order: the problem and its check, the CPU rows, the GPU rows, and the op's
 * table. ops.def lists all ops. A folder may be deleted, and the rest still builds.
 */
#ifndef IRON_OPS_OP_H
#define IRON_OPS_OP_H

#include "core/thread_pool.h"
#include "gpu/gpu.h"

#include <stdbool.h>
#include <string.h>

typedef struct iron__op iron__op;
typedef struct iron__contender iron__contender;

/* Types of an op's elements. The names are the command's: "f32", "f64", "u8", "u16", "u32". */
typedef enum iron__element {
    IRON_F32,
    IRON_F64,
    IRON_U8,
    IRON_U16,
    IRON_U32,
    IRON_ELEMENTS
} iron__element;

#define IRON_BIT(index) (1u << (index))

const char *iron__element_name(iron__element element);
size_t iron__element_bytes(iron__element element);
/* IRON_ELEMENTS if the name is unknown. */
static inline iron__element iron__element_find(const char *name) {
    iron__element k = 0;

    while (k < IRON_ELEMENTS && strcmp(iron__element_name(k), name) != 0)
        k++;
    return k;
}

/* A parameter that a race varies. Its values are words or numbers. */
typedef struct iron__axis {
    const char *name;         /* "data": the key in reports and in --param data=zipf */
    const char *about;        /* short description */
    const char *const *words; /* NULL: the values are numbers */
    const double *numbers;    /* the default values */
    size_t count;             /* of words or numbers */
    size_t telling;           /* index of the value that a race over all ops uses */
    double least, most;       /* numbers: the allowed range */
    bool is_whole;            /* numbers: integers only */
} iron__axis;

#define IRON_OP_AXES 2u

/* Tokens of the user's, for ops with takes_data. */
typedef struct iron__op_data {
    char name[32];         /* short, without blanks */
    iron__element element; /* as they were stored: u8, u16 or u32 */
    const uint32_t *tokens;
    uint64_t count;
} iron__op_data;

typedef struct iron__case {
    const iron__op *op;
    uint64_t rows, cols; /* one-dimensional ops: rows elements, cols is 1 */
    iron__element element;
    uint32_t vocab; /* vocabulary of tokens; 0 if the elements are not tokens */
    uint64_t seed;
    double at[IRON_OP_AXES]; /* for each axis of the op: the number, or the index of the word */
    /* NULL: generated. Else `rows` tokens of these; seed 0: the first ones, as they are; others:
     * variations */
    const iron__op_data *data;
} iron__case;

#define IRON_OP_INPUTS 4u

typedef struct iron__op_array {
    const char *name;
    void *data;
    size_t bytes;
} iron__op_array;

/* Data and reference of a case. inputs[0] is the largest: c.rows rows, one after the other;
 * it may be copied to a device in pieces of whole rows. Contenders read the inputs and never
 * write them. */
typedef struct iron__op_problem {
    iron__case c;
    iron__op_array inputs[IRON_OP_INPUTS];
    size_t input_count;
    size_t output_bytes;
    iron__op_array reference; /* (optional) the right answer, or what the check needs of it */
    iron__thread_pool *pool;  /* borrowed; outlives the problem; used by check */
    void *own;                /* (optional) more data of the op, from iron__allocate */
} iron__op_problem;

/* A run of a CPU contender. It writes all of output. scratch has the size that cpu_scratch_bytes
 * asked for and is aligned to a cache line; it is undefined at first and keeps its content between
 * runs. */
typedef struct iron__cpu_work {
    const iron__contender *row;
    const iron__op_problem *problem;
    iron__thread_pool *pool;
    void *output;
    void *scratch;
} iron__cpu_work;

/* A contender's state on a device; kit.h defines it. */
typedef struct iron__gpu_work iron__gpu_work;

#define IRON_KIT_KERNELS 6u
#define IRON_KIT_BUFFERS 4u

/* Inputs and output of a GPU contender: buffers in any memory that kernels can access, of the same
 * sizes as the problem's arrays. */
typedef struct iron__gpu_data {
    const iron__gpu_buffer *inputs[IRON_OP_INPUTS];
    iron__gpu_buffer *output;
} iron__gpu_data;

/* Whole rows first ... first+count-1 of inputs[0], as piece number `index` of `total`. */
typedef struct iron__gpu_part {
    uint64_t first, count;
    uint32_t index, total;
} iron__gpu_part;

/* How a contender runs on a GPU. All functions except create, destroy and fetch only enqueue work.
 * Functions marked (optional) may be NULL. */
typedef struct iron__gpu_launcher {
    /* Loads programs, finds kernels, allocates memory. `parts` is the largest part count that
     * run_part will see. Returns IRON_E_UNSUPPORTED with the reason if the contender cannot run
     * this case on this device. */
    iron_status (*create)(iron__gpu_device *device, const iron__contender *row,
                          const iron__op_problem *problem, uint32_t parts, iron__gpu_work **out,
                          iron_error *err);
    void (*destroy)(iron__gpu_work *work);
    /* (optional; default: negligible) Device memory that create allocates besides inputs and
     * output. */
    uint64_t (*device_bytes)(const iron__contender *row, const iron__case *c);
    /* (optional) Computes data derived from the inputs, such as a transposed copy. Called each time
     * after the inputs have been copied to the device. */
    iron_status (*derive)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err);
    /* The whole computation. */
    iron_status (*run)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err);
    /* (optional, both or none) The same in parts, so that copies overlap with kernels. Each part
     * may run in a different queue; finish runs in a queue that waits for all of them. A launcher
     * with derive has no parts. */
    iron_status (*run_part)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_part part,
                            iron__gpu_queue *queue, iron_error *err);
    iron_status (*finish)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err);
    /* (optional; default: nothing to clear) Clears scratch memory, so that a run that computes too
     * little cannot pass with the results of an earlier run. */
    iron_status (*spoil)(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);
    /* (optional, both or none) For answers that are not an output buffer; data.output is NULL then.
     * reset sets the initial state of a run; fetch waits and copies the answer to the host. */
    iron_status (*reset)(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);
    iron_status (*fetch)(iron__gpu_work *work, iron__gpu_queue *queue, void *output,
                         iron_error *err);

    /* The rest describes launchers of the common form: see kit.h. */
    const iron__gpu_image *image;
    const char *kernels[IRON_KIT_KERNELS]; /* NULL after the last */
    bool is_typed;                         /* kernel names end with the element type: name_f32 */
    uint32_t threads;                      /* per group; 0: run knows */
    uint32_t block;                        /* elements that a group processes */
    uint32_t sharing;                      /* groups that process a block together; 0: one */
    uint32_t local_bytes;                  /* of local memory that a launch requests */
    uint32_t own_local_bytes;              /* of local memory that a kernel declares itself */
    /* (optional) IRON_E_UNSUPPORTED with the reason if the contender cannot run the case. */
    iron_status (*suits)(const iron__gpu_device *device, const iron__case *c, iron_error *err);
    /* (optional) Bytes of the work's buffer number `index`; 0: not allocated. */
    uint64_t (*buffer_bytes)(const iron__case *c, size_t index);
    uint32_t scratch; /* IRON_BIT(index) of buffers whose content is not needed between runs */
    /* (optional) The last step of create, and the first of destroy, also after a failed set_up. */
    iron_status (*set_up)(iron__gpu_work *work, iron_error *err);
    void (*tear_down)(iron__gpu_work *work);
    const void *own; /* for the op */
} iron__gpu_launcher;

enum { IRON_ON_CPU = 1, IRON_ON_CUDA = 2, IRON_ON_OPENCL = 4, IRON_ON_GPU = 6 };

/* Tables of rows give the first four members by position. */
struct iron__contender {
    const char *name;  /* "single-pass": the third part of atax.cuda.single-pass */
    const char *idea;  /* short description of what it does */
    const char *beats; /* the row it improves on, or NULL */
    uint32_t backends; /* IRON_ON_... */
    uint32_t needs;    /* iron__cpu_feature bits */
    uint32_t elements; /* IRON_BIT(IRON_F32) | ...; 0: all types of the op */
    double passes;     /* how often it reads inputs[0] from memory by design; 0: once */
    /* (optional) Whether the row exists for this case; for rows that make sense only for some
     * values of an axis. */
    bool (*suits)(const iron__contender *row, const iron__case *c);
    /* (optional) Converts an answer in the contender's own order into the op's order for the check;
     * both have the same size. */
    void (*unpack)(const iron__op_problem *problem, const void *own_order, void *output);
    /* CPU */
    void (*cpu_run)(const iron__cpu_work *work);
    /* For iron__line_run: elements begin ... end-1. */
    void (*cpu_piece)(const iron__cpu_work *work, size_t begin, size_t end);
    void (*cpu_prepare)(const iron__cpu_work *work); /* (optional) once, into scratch */
    size_t (*cpu_scratch_bytes)(const iron__op_problem *problem, uint32_t threads); /* (optional) */
    bool is_single; /* its pool has one thread */
    /* GPUs */
    const iron__gpu_launcher *gpu;
    /* (optional) Estimated seconds of one run, for rows that may take minutes; device is NULL on
     * the CPU. */
    double (*seconds)(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads);
    const void *own; /* for the op */
};

/* A named size: set "talk", name "STANDARD". */
typedef struct iron__size {
    const char *set, *name;
    uint64_t rows, cols;
    const char *dtype; /* element type of the suite; NULL: the op's default */
} iron__size;

typedef enum iron__bound { IRON_BOUND_READ, IRON_BOUND_COPY } iron__bound;

struct iron__op {
    const char *name;     /* "atax" */
    const char *contract; /* one sentence: "y = A'(A x), A row-major" */
    const char *why;      /* one or two paragraphs: what the race shows */
    /* (optional, one or a few sentences each) The bytes that contenders move; when the technique
     * does not pay; where iron's own kernels use it, or why they do not. */
    const char *traffic, *unless, *used;
    uint32_t elements;    /* IRON_BIT(...) of the supported types */
    iron__element usual;  /* the default for --dtype */
    bool is_line;         /* one-dimensional: a size is a count of elements, not ROWSxCOLS */
    uint64_t rows_max;    /* one-dimensional: the largest size, for iron__line_accept_case */
    uint32_t nodes;       /* number of nodes it updates; 0: none */
    uint32_t vocab_usual; /* the default for --vocab (u32 only); 0: no vocabulary */
    iron__bound bound;    /* the ceiling it is measured against */
    /* The race compares kernels: by default inputs are copied from pageable memory, and only the
     * kernels are timed. */
    bool is_resident;
    bool is_never_cold;     /* the race is about caches: they are not flushed before a run */
    bool takes_data;        /* its elements are tokens, and may be the user's */
    const iron__axis *axes; /* IRON_OP_AXES at most */
    size_t axis_count;
    /* (optional) Derived parameters of a case for reports, such as bins; false past the last. */
    bool (*param_at)(const iron__case *c, size_t index, const char **name, double *value);
    /* The contenders that speedups refer to, on the CPU and on GPUs, with pageable memory. If one
     * does not suit a case, the first suitable row without `beats` replaces it. */
    const char *baselines[2];
    const iron__size *sizes;
    size_t size_count;
    /* The default size of a one-dimensional op, on a CPU and with a GPU: 2^least elements, doubled
     * until bytes_each of them are four times the caches (or as often as usual_caches says), or the
     * count reaches 2^most. Or (optional) a function for a machine with caches of so many bytes.
     * Else four times the caches by useful_bytes. */
    struct {
        uint8_t least, most;
    } usual_log2[2];
    uint32_t usual_caches;
    void (*usual_size)(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols);
    /* The bytes that every contender must move, and the operations it must perform: for each of
     * c.rows, or (optional) as a function. */
    uint32_t bytes_each, operations_each;
    uint64_t (*useful_bytes)(const iron__case *c);
    double (*operations)(const iron__case *c);
    /* (optional; default: the useful bytes) Host memory of a problem. */
    uint64_t (*host_bytes)(const iron__case *c);
    /* Checks that the op supports the case; IRON_E_ARG with a message if not. */
    iron_status (*accept)(const iron__case *c, iron_error *err);
    /* Fills *out, whose c is set; on failure nothing leaks. The pool must outlive *out. */
    iron_status (*make)(iron__op_problem *out, iron__thread_pool *pool, iron_error *err);
    void (*unmake)(iron__op_problem *problem); /* also after a failed make */
    /* For iron__data_make: arrays and reference of a problem whose case and pool are set. */
    iron_status (*fill)(iron__op_problem *problem, iron_error *err);
    /* Is the answer right? If not, text describes the first difference: which element, its value,
     * the expected value. */
    bool (*check)(const iron__op_problem *problem, const void *output, char *text, size_t size);
    /* For iron__line_check: the name of the output, and (optional; default: the reference's) the
     * bits of its element `index`. */
    const char *output;
    uint32_t (*expected)(const iron__op_problem *problem, size_t index);
    /* The contenders, as a table or (optional) as a function like iron__op_contender. Strings and
     * functions are static. */
    const iron__contender *contenders;
    size_t contender_count;
    bool (*contender_at)(size_t index, iron__contender *out);
};

/* Copies row *index of a table to *out. Past the table's end *index is reduced by its length, so
 * that an op's tables can be searched one after the other: row_at(cpu...) || row_at(gpu...). */
static inline bool iron__row_at(const iron__contender *rows, size_t count, size_t *index,
                                iron__contender *out) {
    if (*index >= count) {
        *index -= count;
        return false;
    }
    *out = rows[*index];
    return true;
}

/* What an op's members or functions say. */

/* Fills *out with row number `index`; false past the last. */
static inline bool iron__op_contender(const iron__op *op, size_t index, iron__contender *out) {
    return op->contender_at ? op->contender_at(index, out)
                            : iron__row_at(op->contenders, op->contender_count, &index, out);
}

/* The op's check of a contender's answer, which is brought into the op's order first. `unpacked` is
 * room for that, as long as an output; unused if the row does not unpack. */
static inline bool iron__op_check(const iron__op_problem *p, const iron__contender *row,
                                  const void *output, void *unpacked, char *text, size_t size) {
    if (row->unpack) {
        memset(unpacked, 0xFF, p->output_bytes); /* shows what is not unpacked */
        row->unpack(p, output, unpacked);
        output = unpacked;
    }
    return p->c.op->check(p, output, text, size);
}

static inline uint64_t iron__op_useful_bytes(const iron__case *c) {
    return c->op->useful_bytes ? c->op->useful_bytes(c) : c->op->bytes_each * c->rows;
}

static inline double iron__op_operations(const iron__case *c) {
    return c->op->operations ? c->op->operations(c) : c->op->operations_each * (double)c->rows;
}

void iron__op_usual_size(const iron__op *op, uint64_t cache_bytes, bool has_gpu,
                         iron__element element, uint64_t *rows, uint64_t *cols);

#define IRON_COUNT_OF(type, ...) (sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

/* Members of an axis and of an op: lists and their lengths. */
#define IRON_WORDS(...)                                                                            \
    .words = (const char *const[]){__VA_ARGS__}, .count = IRON_COUNT_OF(char *const, __VA_ARGS__)
#define IRON_NUMBERS(...)                                                                          \
    .numbers = (const double[]){__VA_ARGS__}, .count = IRON_COUNT_OF(double, __VA_ARGS__)
#define IRON_AXES(...)                                                                             \
    .axes = (const iron__axis[]){__VA_ARGS__}, .axis_count = IRON_COUNT_OF(iron__axis, __VA_ARGS__)
#define IRON_SIZES(...)                                                                            \
    .sizes = (const iron__size[]){__VA_ARGS__}, .size_count = IRON_COUNT_OF(iron__size, __VA_ARGS__)
#define IRON_CONTENDERS(table)                                                                     \
    .contenders = (table), .contender_count = sizeof(table) / sizeof((table)[0])
/* Sizes of a one-dimensional op, as powers of two. */
#define IRON_LINE_SIZES(small, standard, large)                                                    \
    IRON_SIZES({"size", "SMALL", UINT64_C(1) << (small), 1, NULL},                                 \
               {"size", "STANDARD", UINT64_C(1) << (standard), 1, NULL},                           \
               {"size", "LARGE", UINT64_C(1) << (large), 1, NULL})

#define IRON_OP(name) extern const iron__op iron__op_##name;
#include "ops/ops.def"
#undef IRON_OP

/* All ops of this build; NULL past the last. */
const iron__op *iron__op_at(size_t index);

/* NULL: not found. */
static inline const iron__op *iron__op_find(const char *name) {
    const iron__op *op;

    for (size_t k = 0; (op = iron__op_at(k)); k++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

/* Measured results of the op with machine and date, one or a few sentences; NULL if not
 * measured. */
const char *iron__op_measured(const char *name);

/* Checks a case of a one-dimensional op: element type, 1 to `most` elements, a valid value on each
 * axis. IRON_E_ARG with a message if not. */
iron_status iron__line_accept(const iron__case *c, uint64_t most, iron_error *err);
/* The same with op->rows_max: an `accept` function. */
iron_status iron__line_accept_case(const iron__case *c, iron_error *err);

/* The same for ops over a matrix: both sides from 1 to 2^31 - 1, at most 2^40 bytes; and the
 * default side of a square matrix, `side` plus as many `step`s as it takes to be four times the
 * caches. */
iron_status iron__matrix_accept(const iron__case *c, iron_error *err);
uint64_t iron__matrix_usual(uint64_t side, uint64_t step, iron__element element,
                            uint64_t cache_bytes);

/* Requirements of a contender: work-groups of so many threads, so much local memory per group, f64
 * if the case uses it. IRON_E_UNSUPPORTED with both numbers if the device has less. */
iron_status iron__needs_threads(const iron__gpu_device *device, uint32_t threads, iron_error *err);
iron_status iron__needs_local(const iron__gpu_device *device, uint64_t bytes, iron_error *err);
iron_status iron__needs_element(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err);

#endif
