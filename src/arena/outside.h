/* SPDX-License-Identifier: MIT */
/*
 * outside.h: contenders from outside, that is from the user's files: .c and .so for the CPU, .cl
 * for OpenCL, .cu for CUDA.
 *
 *   outside.c        reads what a file says about itself; compiles it; runs it in a process of its
 *                    own and judges it: the referee
 *   outside_op.c     what a file says about an op of its own
 *   outside_child.c  that process: it loads the contender and runs it on request
 *
 * The two processes share a socket, the inputs, which the child cannot write on the CPU, and the
 * outputs. The child never has the answer, and it does not learn what is checked. docs/referee.md
 * lists what the referee detects.
 *
 * An op of a file is compiled without the contender of the same file, and runs in other processes,
 * one for each problem: it makes the inputs and the reference and checks answers. Contenders have
 * no access to them.
 */
#ifndef IRON_ARENA_OUTSIDE_H
#define IRON_ARENA_OUTSIDE_H

#include "arena/arena_internal.h"

#define IRON_OUTSIDE_INPUT_SETS 3u
#define IRON_OUTSIDE_SLOTS      64u /* outputs of a sample at most: one for each pass */
#define IRON_OUTSIDE_LAUNCHES   8u
#define IRON_OUTSIDE_PAGE       ((size_t)4096)

/* Descriptors of the child. 1 and 2 are files in memory that the parent reads. */
enum { IRON_OUTSIDE_SOCKET = 3, IRON_OUTSIDE_INPUTS, IRON_OUTSIDE_OUTPUTS, IRON_OUTSIDE_MODULE };

/* What the child is told first. */
typedef struct iron__outside_setup {
    bool is_cpu;
    bool is_op;       /* the module is an op, on the CPU */
    bool is_compiled; /* the module is no text */
    char backend[12]; /* of a GPU */
    uint32_t device;  /* of the backend */
    uint32_t threads, vocab, slots;
    uint64_t rows, cols, output_bytes, reference_bytes, memory_limit;
    char dtype[8], params[96];
    uint32_t input_count;
    uint64_t input_bytes[IRON_OP_INPUTS];
    uint64_t module_bytes, text_bytes; /* a kernel file's module is followed by its text */
    iron__defines defines;
} iron__outside_setup;

typedef enum iron__outside_task {
    IRON_OUTSIDE_PREPARE,  /* take new inputs and poisoned outputs; cold: empty the caches */
    IRON_OUTSIDE_RUN,      /* what is timed */
    IRON_OUTSIDE_FETCH,    /* outputs of the last run to shared memory */
    IRON_OUTSIDE_RETURN,   /* input set `order[0]`, as it is now, to shared memory */
    IRON_OUTSIDE_GENERATE, /* op: inputs from `seed`, and the reference */
    IRON_OUTSIDE_CHECK     /* op: is the output right? IRON_E_MISMATCH if not */
} iron__outside_task;

typedef struct iron__outside_request {
    iron__outside_task task;
    uint32_t passes, is_cold;
    uint64_t number; /* the reply repeats it */
    uint64_t seed;
    uint32_t generation[IRON_OUTSIDE_INPUT_SETS];
    uint8_t order[IRON_OUTSIDE_SLOTS]; /* pass k reads input set order[k] and writes slot k */
} iron__outside_request;

typedef struct iron__outside_reply {
    uint64_t number;
    iron_status status;
    double ms; /* of a run, by the child's clock or the device's: all passes */
    char text[200];
} iron__outside_reply;

static inline size_t iron__outside_round(size_t bytes) {
    return (bytes + IRON_OUTSIDE_PAGE - 1) / IRON_OUTSIDE_PAGE * IRON_OUTSIDE_PAGE;
}

/* Shared memory: input sets one after the other, each with its arrays on pages of their own; the
 * outputs' slots, and after them room for one input set that a GPU returns. */
static inline size_t iron__outside_set_bytes(const iron__outside_setup *s) {
    size_t bytes = 0;

    for (uint32_t k = 0; k < s->input_count; k++)
        bytes += iron__outside_round(s->input_bytes[k]);
    return bytes;
}

/* The inputs' shared memory; an op has one set and the reference behind it. */
static inline size_t iron__outside_input_bytes(const iron__outside_setup *s) {
    return s->is_op ? iron__outside_set_bytes(s) + iron__outside_round(s->reference_bytes)
                    : IRON_OUTSIDE_INPUT_SETS * iron__outside_set_bytes(s);
}

static inline size_t iron__outside_slot_bytes(const iron__outside_setup *s) {
    return iron__outside_round(s->output_bytes);
}

static inline size_t iron__outside_output_bytes(const iron__outside_setup *s) {
    return s->slots * iron__outside_slot_bytes(s) + (s->is_cpu ? 0 : iron__outside_set_bytes(s));
}

/* A line "iron: WORD rest" of a contender's text. Copies `rest` to line and returns the text after
 * it; NULL if there is none. */
const char *iron__outside_directive(const char *text, const char *word, char *line, size_t size);

/* What a file is compiled with for a case. */
iron__defines iron__outside_defines(const iron__outside *o, const iron__case *c);

/* Expressions of + - * / % and parentheses over numbers, rows, cols, element, the size of one in
 * bytes, and defined names. The value must be least ... most. IRON_E_FORMAT. */
typedef struct iron__outside_names {
    uint64_t rows, cols, element_bytes;
    const iron__defines *defines;
} iron__outside_names;

iron_status iron__outside_evaluate(const char *text, const iron__outside_names *names,
                                   uint64_t least, uint64_t most, uint64_t *value, iron_error *err);

/* An op that a file brings: its lines "iron: ..." describe it. */
#define IRON_OUTSIDE_LINE   160u
#define IRON_OUTSIDE_VALUES 16u /* of a parameter */

typedef struct iron__outside_op {
    iron__op base;
    iron__outside module; /* the file again, compiled as an op */
    const char *lines;    /* of the module's text */
    const char *command;  /* that runs the op's processes; borrowed */
    char name[24], contract[IRON_OUTSIDE_LINE], why[400], baseline[48];
    iron__axis axes[IRON_OP_AXES];
    char axis_texts[IRON_OP_AXES][IRON_OUTSIDE_LINE]; /* names and words */
    const char *words[IRON_OP_AXES][IRON_OUTSIDE_VALUES];
    double numbers[IRON_OP_AXES][IRON_OUTSIDE_VALUES];
    size_t input_count;
    char input_names[IRON_OP_INPUTS][24], inputs[IRON_OP_INPUTS][IRON_OUTSIDE_LINE];
    char output[IRON_OUTSIDE_LINE], reference[IRON_OUTSIDE_LINE], bytes[IRON_OUTSIDE_LINE];
    char operations[IRON_OUTSIDE_LINE]; /* "": unknown */
} iron__outside_op;

/* Sizes of a case in bytes. */
typedef struct iron__outside_sizes {
    uint64_t inputs[IRON_OP_INPUTS], output, reference, useful;
} iron__outside_sizes;

/* IRON_E_ARG if a line cannot be computed for this case. */
iron_status iron__outside_op_sizes(const iron__case *c, iron__outside_sizes *sizes,
                                   iron_error *err);
/* Fills the op from its file's lines; name and module are set. IRON_E_ARG. */
iron_status iron__outside_op_read(iron__outside_op *o, iron_error *err);
/* The functions of its processes (outside.c), which are members of the op. */
iron_status iron__outside_op_make(iron__op_problem *p, iron__thread_pool *pool, iron_error *err);
void iron__outside_op_unmake(iron__op_problem *p);
bool iron__outside_op_check(const iron__op_problem *p, const void *output, char *text, size_t size);

/* The contenders of a case on a device share inputs, whose seeds are drawn when all are loaded. */
typedef struct iron__referee iron__referee;

iron_status iron__referee_create(const iron__op_problem *problem, iron__referee **out,
                                 iron_error *err);
void iron__referee_destroy(iron__referee *referee);

/* A contender of a race that runs in a process of its own. */
iron_status iron__outside_open(iron__referee *referee, const iron__race_plan *plan,
                               const iron__race_plan_row *row, const char *command,
                               uint32_t threads, double seconds, iron__race_contender **out,
                               iron_error *err);
/* Checks an answer that the contender has just given: an iron__answer_check. */
bool iron__outside_check(const void *contender, const void *output, char *text, size_t size);

#endif
