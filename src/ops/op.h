/* SPDX-License-Identifier: MIT */
/*
 * op.h: what an op is: a problem with a contract, and the ways to solve it.
 *
 * An op's folder makes the problem (data from a seed), knows the right answer (a reference in
 * higher precision than any contender), and judges answers. It lists its contenders as rows; a row
 * is the single source for the command, the tests, the docs and the races. Nothing here measures:
 * the arena does, and counts the op's own useful bytes, the same for every contender.
 *
 *   axis       a parameter of an op besides size and element type: what the data are like
 *   case       what is to be computed: op, size, element type, parameters
 *   problem    a case with its data and its right answer
 *   contender  one way to do it: on the CPU a function, on GPUs an object with a few functions
 *
 * ops.def names all ops; a folder may be deleted, and the rest still builds.
 */
#ifndef IRON_OPS_OP_H
#define IRON_OPS_OP_H

#include "core/team.h"
#include "gpu/gpu.h"

#include <stdbool.h>

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
/* IRON_ELEMENTS: there is none of that name. */
iron__element iron__element_find(const char *name);

/* A parameter that a race goes through, value by value. Its values are words, or numbers. */
typedef struct iron__axis {
    const char *name;         /* "data": the key in reports and in --param data=zipf */
    const char *about;        /* what it says, in half a line */
    const char *const *words; /* NULL: numbers */
    const double *numbers;    /* those that are raced unless others are asked for */
    size_t count;             /* of words, or of numbers */
    size_t telling;           /* which of them a race over everything takes */
    double least, most;       /* numbers: what may be asked for */
    bool is_whole;            /* numbers: whole ones only */
} iron__axis;

#define IRON_OP_AXES 2u

typedef struct iron__case {
    const iron__op *op;
    uint64_t rows, cols; /* an op over a line: rows elements, cols is 1 */
    iron__element element;
    uint32_t vocab; /* of tokens; 0 where the elements are none */
    uint64_t seed;
    double at[IRON_OP_AXES]; /* on each axis of the op: the number, or the index of the word */
} iron__case;

#define IRON_OP_INPUTS 4u

typedef struct iron__array {
    const char *name;
    void *data;
    size_t bytes;
} iron__array;

/* Data and right answer of a case. inputs[0] is the big one: it consists of c.rows rows, one after
 * the other, and may be brought to a device in pieces of whole rows. Who has the problem may read
 * the inputs, never write them. */
typedef struct iron__problem {
    iron__case c;
    iron__array inputs[IRON_OP_INPUTS];
    size_t input_count;
    size_t output_bytes;
    iron__team *team; /* the maker's, which outlives the problem; for checks */
    void *own;        /* the op's: reference, norms */
} iron__problem;

/* A contender at work on the CPU. Its answer goes to output, all of it; scratch is aligned to a
 * cache line and holds what cpu_scratch_bytes asked for, undefined at first, kept between runs. */
typedef struct iron__cpu_work {
    const iron__contender *row;
    const iron__problem *problem;
    iron__team *team;
    void *output;
    void *scratch;
} iron__cpu_work;

/* A contender's object on a device. */
typedef struct iron__gpu_work iron__gpu_work;

/* Where a contender finds its inputs and leaves its answer: buffers of any memory that kernels can
 * reach, as long as the problem's arrays. */
typedef struct iron__gpu_data {
    const iron__gpu_buffer *inputs[IRON_OP_INPUTS];
    iron__gpu_buffer *output;
} iron__gpu_data;

/* Whole rows first ... first+count-1 of inputs[0], as piece number `index` of `total`. */
typedef struct iron__gpu_part {
    uint64_t first, count;
    uint32_t index, total;
} iron__gpu_part;

/* How a contender works on a GPU. All functions but create, destroy and fetch only put work into
 * the queue they are given. Functions marked (optional) may be NULL. */
typedef struct iron__gpu_way {
    /* Loads programs, finds kernels, takes memory. `parts` is the most that run_part will see.
     * IRON_E_UNSUPPORTED with the reason where the device or the case does not suit. */
    iron_status (*create)(iron__gpu_device *device, const iron__contender *row,
                          const iron__problem *problem, uint32_t parts, iron__gpu_work **out,
                          iron_error *err);
    void (*destroy)(iron__gpu_work *work);
    /* (optional: little) Device memory that create takes besides inputs and output. */
    uint64_t (*device_bytes)(const iron__contender *row, const iron__case *c);
    /* (optional) Makes what is derived from the inputs and kept, such as a transposed copy. Called
     * after the inputs have arrived, and again whenever they arrive anew. */
    iron_status (*derive)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err);
    /* The whole computation. */
    iron_status (*run)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err);
    /* (optional, both or none) The same in pieces, so that copies of later ones run under the
     * kernels of earlier ones. Every part has a queue, which may differ from part to part; finish
     * comes in a queue that follows them all. A way with derive has no parts. */
    iron_status (*run_part)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_part part,
                            iron__gpu_queue *queue, iron_error *err);
    iron_status (*finish)(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err);
    /* (optional: nothing is kept) Clears what the object keeps between runs, so that a run which
     * leaves something out cannot live on what the one before it left. */
    iron_status (*spoil)(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);
    /* (optional, both or none) For answers that are not an output buffer: sets the state to what a
     * run begins with; waits, and brings the answer to the host. data.output is NULL then. */
    iron_status (*reset)(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);
    iron_status (*fetch)(iron__gpu_work *work, iron__gpu_queue *queue, void *output,
                         iron_error *err);
} iron__gpu_way;

enum { IRON_ON_CPU = 1, IRON_ON_CUDA = 2, IRON_ON_OPENCL = 4, IRON_ON_GPU = 6 };

struct iron__contender {
    const char *name;  /* "single-pass": the third part of atax.cuda.single-pass */
    const char *idea;  /* what it does, in half a line */
    const char *beats; /* the row it improves on, or NULL */
    uint32_t backends; /* IRON_ON_... */
    uint32_t needs;    /* iron__cpu_feature bits */
    uint32_t elements; /* IRON_BIT(IRON_F32) | ...; 0: all that the op knows */
    double passes;     /* how often it reads inputs[0] from memory, by design; 0: once */
    /* (optional) Does it take part in that case? Where it does not, it is not there: for rows that
     * are about one value of an axis alone. */
    bool (*suits)(const iron__contender *row, const iron__case *c);
    /* (optional) The answer is in an order of the contender's own, as long as the op's: puts it
     * into the op's order, for the check. */
    void (*unpack)(const iron__problem *problem, const void *own_order, void *output);
    /* CPU */
    void (*cpu_run)(const iron__cpu_work *work);
    void (*cpu_prepare)(const iron__cpu_work *work); /* (optional) once, into scratch */
    size_t (*cpu_scratch_bytes)(const iron__problem *problem, uint32_t threads); /* (optional) */
    bool is_single; /* uses one thread of the team */
    /* GPUs */
    const iron__gpu_way *gpu;
    /* (optional) About how long one run takes where that may be minutes; device: NULL on the CPU.
     * */
    double (*seconds)(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads);
    const void *own; /* for the op */
};

/* A named size: set "talk", name "STANDARD". The first of a set of one name stands for it. */
typedef struct iron__size {
    const char *set, *name;
    uint64_t rows, cols;
    const char *dtype; /* the suite's own; NULL: the op's usual */
} iron__size;

typedef enum iron__bound { IRON_BOUND_READ, IRON_BOUND_COPY } iron__bound;

struct iron__op {
    const char *name;     /* "atax" */
    const char *contract; /* one sentence: "y = A'(A x), A row-major" */
    const char *why;      /* a paragraph or two: what the race shows */
    /* (optional, each a sentence or a few) The bytes that contenders move; when the technique does
     * not pay; where our own kernels use it, or why they do not. */
    const char *traffic, *unless, *used;
    uint32_t elements;    /* IRON_BIT(...) of those it knows */
    iron__element usual;  /* unless --dtype says otherwise */
    bool is_line;         /* sizes are counts of elements; else ROWSxCOLS */
    uint32_t nodes;       /* that it updates; 0: none */
    uint32_t vocab_usual; /* of u32, unless --vocab says otherwise; 0: the op has none */
    iron__bound bound;    /* whose ceiling it is measured against */
    /* The race is about kernels: unless it is told otherwise, inputs are copied from ordinary
     * memory, and only the kernels are timed. */
    bool is_resident;
    bool is_never_cold; /* what the caches keep is what it is about: they are not emptied before */
    const iron__axis *axes; /* IRON_OP_AXES at most */
    size_t axis_count;
    /* (optional) What else reports say of a case, such as its bins; false past the last. */
    bool (*param_at)(const iron__case *c, size_t index, const char **name, double *value);
    /* The contenders that speedups refer to: on the CPU, on GPUs. Alone, with pageable memory.
     * Where one does not suit a case, the first that does and beats nobody stands for it. */
    const char *baselines[2];
    const iron__size *sizes;
    size_t size_count;
    /* The size when none is asked for, for caches of so many bytes: at least 4 times as much. */
    void (*usual_size)(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols);
    /* What any contender must move, and what it computes. */
    uint64_t (*useful_bytes)(const iron__case *c);
    /* (optional: the useful bytes) What a problem takes of the host's memory. */
    uint64_t (*host_bytes)(const iron__case *c);
    double (*operations)(const iron__case *c);
    /* Is the case within what the op can do? IRON_E_ARG with a sentence. */
    iron_status (*accept)(const iron__case *c, iron_error *err);
    /* Fills *out, whose c is set; on failure nothing is left behind. The team outlives *out. */
    iron_status (*make)(iron__problem *out, iron__team *team, iron_error *err);
    void (*unmake)(iron__problem *problem); /* takes a struct of zeros but c, too */
    /* Is the answer right? If not, text says where it differs first: which element, what it is,
     * what it should be. */
    bool (*check)(const iron__problem *problem, const void *output, char *text, size_t size);
    /* Fills *out with row number `index`; false past the last. Strings and functions are static. */
    bool (*contender_at)(size_t index, iron__contender *out);
};

/* All ops of this build; NULL past the last. */
const iron__op *iron__op_at(size_t index);
const iron__op *iron__op_find(const char *name);

/* What was measured of the op, where and when, in a sentence or a few; NULL: nothing yet. */
const char *iron__op_measured(const char *name);

#endif
