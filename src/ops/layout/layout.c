/* SPDX-License-Identifier: MIT */
/*
 * layout.c: data layouts: a time step of particles with six fields, stored as an array of
 * structures (aos), a structure of arrays (soa), or blocks of 32 particles (aosoa); kernel_params.h
 * shows them.
 *
 * The six numbers of a particle are random functions of their indices, so a particle or field in a
 * wrong place, or an answer that was not computed, differs in nearly every element. Each operation
 * of a step rounds once and nothing is fused, so there is one right answer, bit for bit. The check
 * computes it again from the inputs; no reference is stored.
 *
 * The CPU loops are plain: a compiler vectorizes arrays of one field, but must pick the fields of a
 * structure apart one by one. Arrays of fields are processed one axis at a time (x with vx, then y
 * with vy), which gives four address streams, easier for prefetchers than twelve.
 */
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/layout/kernel_params.h"
#include "ops/op.h"

#include <stdio.h>
#include <string.h>

/* The axis `fields`: whether a step touches x alone. */
static bool is_one_field(const iron__case *c) { return c->at[0] != 0; }

/* A conversion between the op's order and blocks of particles with an array per field: aosoa, or,
 * with one block for all particles, soa. */
typedef struct conversion {
    const float *from;
    float *to;
    size_t count, block;
    bool is_back; /* to the op's order */
} conversion;

static void convert_piece(void *context, size_t begin, size_t end) {
    const conversion *m = context;

    for (size_t k = begin; k < end; k++) {
        size_t first = k / m->block * m->block, left = m->count - first;
        size_t pitch = left < m->block ? left : m->block; /* from field to field */

        for (size_t f = 0; f < LAYOUT_FIELDS; f++) {
            size_t plain = k * LAYOUT_FIELDS + f;
            size_t own = first * LAYOUT_FIELDS + k - first + f * pitch;

            m->to[m->is_back ? plain : own] = m->from[m->is_back ? own : plain];
        }
    }
}

/* Converts an answer to the op's order. One field is in the order of particles in every layout. */
static void unpack(const iron__op_problem *p, const void *from, void *to, size_t block) {
    conversion m = {from, to, (size_t)p->c.rows, block, true};

    if (is_one_field(&p->c))
        memcpy(to, from, m.count * sizeof(float));
    else
        iron__data_pieces(p->pool, m.count, convert_piece, &m);
}

static void unpack_soa(const iron__op_problem *problem, const void *own_order, void *output) {
    unpack(problem, own_order, output, (size_t)problem->c.rows);
}

static void unpack_aosoa(const iron__op_problem *problem, const void *own_order, void *output) {
    unpack(problem, own_order, output, LAYOUT_BLOCK);
}

_Static_assert(sizeof(layout_particle) == LAYOUT_FIELDS * sizeof(float), "no gaps");

static iron_status fill(iron__op_problem *p, iron_error *err) {
    size_t count = (size_t)p->c.rows;

    p->output_bytes = count * (is_one_field(&p->c) ? sizeof(float) : sizeof(layout_particle));
    return iron__data_input(p, "particles", count * LAYOUT_FIELDS, NULL, err);
}

/* The bits of word k of the answer: a field of a particle, or the x of particle k. */
static uint32_t expected(const iron__op_problem *problem, size_t k) {
    const float *all = problem->inputs[0].data, *particle = all + k / LAYOUT_FIELDS * LAYOUT_FIELDS;
    size_t field = k % LAYOUT_FIELDS, axis = field % 3;
    float speed = particle[3 + axis] - (axis == 2 ? LAYOUT_FALL : 0.0f);
    float distance = speed * LAYOUT_DT;

    if (is_one_field(&problem->c))
        return iron__data_word_of(all[k * LAYOUT_FIELDS] + LAYOUT_SHIFT);
    return iron__data_word_of(field < 3 ? particle[axis] + distance : speed);
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    static const char *const names[] = {"x", "y", "z", "vx", "vy", "vz"};
    size_t fields = is_one_field(&problem->c) ? 1 : LAYOUT_FIELDS;
    size_t count = (size_t)problem->c.rows * fields;
    size_t first = iron__data_first_word(problem, output, count);
    uint32_t bits;
    float should_be;

    if (first == count)
        return true;
    bits = expected(problem, first);
    memcpy(&should_be, &bits, sizeof should_be);
    snprintf(text, size, "%s of particle %zu is %.9g, should be %.9g", names[first % fields],
             first / fields, (double)((const float *)output)[first], (double)should_be);
    return false;
}

/* fall is subtracted from the speed; v - 0 is v, bit for bit. */
static inline void step_axis(const float *restrict at, const float *restrict speed,
                             float *restrict at_to, float *restrict speed_to, size_t count,
                             float fall) {
    for (size_t k = 0; k < count; k++) {
        float v = speed[k] - fall;
        float distance = v * LAYOUT_DT;

        at_to[k] = at[k] + distance;
        speed_to[k] = v;
    }
}

static inline void shift(const float *restrict from, float *restrict to, size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = from[k] + LAYOUT_SHIFT;
}

/* A step of fields whose arrays are `pitch` elements apart. */
static inline void step_fields(const float *from, float *to, size_t pitch, size_t count) {
    for (size_t axis = 0; axis < 3; axis++)
        step_axis(from + axis * pitch, from + (3 + axis) * pitch, to + axis * pitch,
                  to + (3 + axis) * pitch, count, axis == 2 ? LAYOUT_FALL : 0.0f);
}

static void step_aos(const layout_particle *restrict from, layout_particle *restrict to,
                     size_t count) {
    for (size_t k = 0; k < count; k++) {
        layout_particle p = from[k];

        p.vz = p.vz - LAYOUT_FALL;
        p.x = p.x + p.vx * LAYOUT_DT;
        p.y = p.y + p.vy * LAYOUT_DT;
        p.z = p.z + p.vz * LAYOUT_DT;
        to[k] = p;
    }
}

static void piece_of_aos(const iron__cpu_work *w, size_t begin, size_t end) {
    const layout_particle *from = w->problem->inputs[0].data;
    float *to = w->output;

    if (!is_one_field(&w->problem->c)) {
        step_aos(from + begin, (layout_particle *)w->output + begin, end - begin);
        return;
    }
    for (size_t k = begin; k < end; k++)
        to[k] = from[k].x + LAYOUT_SHIFT;
}

static void piece_of_soa(const iron__cpu_work *w, size_t begin, size_t end) {
    const float *from = (const float *)w->scratch + begin;
    float *to = (float *)w->output + begin;

    if (is_one_field(&w->problem->c))
        shift(from, to, end - begin);
    else
        step_fields(from, to, (size_t)w->problem->c.rows, end - begin);
}

/* Complete blocks have a length that the compiler knows. Pieces begin at blocks. */
static void piece_of_aosoa(const iron__cpu_work *w, size_t begin, size_t end) {
    bool is_one = is_one_field(&w->problem->c);

    for (size_t k = begin; k < end; k += LAYOUT_BLOCK) {
        size_t at = k * LAYOUT_FIELDS, left = (size_t)w->problem->c.rows - k;
        const float *from = (const float *)w->scratch + at;
        float *to = (float *)w->output + (is_one ? k : at);

        if (left >= LAYOUT_BLOCK && is_one)
            shift(from, to, LAYOUT_BLOCK);
        else if (left >= LAYOUT_BLOCK)
            step_fields(from, to, LAYOUT_BLOCK, LAYOUT_BLOCK);
        else if (is_one)
            shift(from, to, left);
        else
            step_fields(from, to, left, left);
    }
}

static size_t scratch_bytes(const iron__op_problem *problem, uint32_t threads) {
    (void)threads;
    return problem->inputs[0].bytes;
}

/* Copies the particles to scratch in the row's layout. */
static void prepare(const iron__cpu_work *work) {
    size_t count = (size_t)work->problem->c.rows;
    conversion m = {work->problem->inputs[0].data, work->scratch, count,
                    work->row->cpu_piece == piece_of_soa ? count : LAYOUT_BLOCK, false};

    iron__data_pieces(work->pool, count, convert_piece, &m);
}

IRON_KIT_IMAGE(layout)

/* The kernels of a row. ALL_ANY, if present, is for counts that are not a multiple of a vector. */
enum { ALL, ONE, DERIVE, ALL_ANY };

/* Particles per thread. */
typedef struct shares {
    uint32_t all, one;
} shares;

static const shares singles = {1, LAYOUT_LOADS};
static const shares quads = {4, 4 * LAYOUT_QUADS};

/* The copy of the particles in the contender's layout. */
static uint64_t copy_bytes(const iron__case *c, size_t index) {
    return index == 0 ? c->rows * sizeof(layout_particle) : 0;
}

static iron_status launch(iron__gpu_work *work, size_t kernel, uint32_t share,
                          const iron__gpu_buffer *from, iron__gpu_buffer *to,
                          iron__gpu_queue *queue, iron_error *err) {
    uint64_t groups = iron__kit_pieces(work->c.rows, (uint64_t)share * LAYOUT_THREADS);

    return IRON_KIT_LAUNCH(queue, err, work->kernels[kernel], groups, LAYOUT_THREADS,
                           IRON_GPU_BUFFER(from), IRON_GPU_BUFFER(to),
                           IRON_GPU_VALUE(work->c.rows));
}

static iron_status launch_step(iron__gpu_work *work, const iron__gpu_data *data,
                               iron__gpu_queue *queue, iron_error *err) {
    const shares *s = work->spec->own;
    bool is_one = is_one_field(&work->c);
    bool is_any = work->kernels[ALL_ANY] && work->c.rows % 4 != 0;
    size_t kernel = is_one ? ONE : is_any ? ALL_ANY : ALL;

    return launch(work, kernel, is_one ? s->one : s->all,
                  work->buffers[0] ? work->buffers[0] : data->inputs[0], data->output, queue, err);
}

static iron_status launch_copy(iron__gpu_work *work, const iron__gpu_data *data,
                               iron__gpu_queue *queue, iron_error *err) {
    return launch(work, DERIVE, 1, data->inputs[0], work->buffers[0], queue, err);
}

#define CPU(piece) IRON_ON_CPU, .passes = 1, .cpu_run = iron__line_run, .cpu_piece = (piece)
#define CPU_COPIED(piece, function)                                                                \
    CPU(piece), .cpu_prepare = prepare, .cpu_scratch_bytes = scratch_bytes, .unpack = (function)
#define CPU_AOSOA CPU_COPIED(piece_of_aosoa, unpack_aosoa)
#define CPU_SOA   CPU_COPIED(piece_of_soa, unpack_soa)
#define GPU(per_thread, ...)                                                                       \
    IRON_ON_GPU, .passes = 1,                                                                      \
                 .gpu = IRON_KIT(.threads = LAYOUT_THREADS, .run = launch_step,                    \
                                 .own = &(per_thread), __VA_ARGS__)
#define COPIED .buffer_bytes = copy_bytes, .derive = launch_copy

static const iron__contender contenders[] = {
    {"aos", "an array of structures, one after the other", NULL, CPU(piece_of_aos),
     .is_single = true},
    {"aosoa", "blocks of 32 particles, each with a short array per field", "aos", CPU_AOSOA,
     .is_single = true},
    {"soa", "one array per field: loops that compilers vectorize", "aos", CPU_SOA,
     .is_single = true},
    {"aos-threads", "aos on all threads", "aos", CPU(piece_of_aos)},
    {"aosoa-threads", "aosoa on all threads", "aosoa", CPU_AOSOA},
    {"soa-threads", "soa on all threads", "soa", CPU_SOA},
    {"aos", "one thread per structure: neighbours read 24 bytes apart", NULL,
     GPU(singles, .kernels = {"layout_aos_all", "layout_aos_one"})},
    {"aosoa", "blocks of 32 particles, each with an array per field: a warp reads six whole lines",
     "aos",
     GPU(singles, COPIED, .kernels = {"layout_aosoa_all", "layout_aosoa_one", "layout_to_aosoa"}),
     .unpack = unpack_aosoa},
    {"soa", "one array per field: neighbours read neighbouring elements", "aos",
     GPU(singles, COPIED, .kernels = {"layout_soa_all", "layout_soa_one", "layout_to_soa"}),
     .unpack = unpack_soa},
    {"soa-vector", "the same with 16-byte accesses, several in flight", "soa",
     GPU(quads, COPIED,
         .kernels = {"layout_vector_all", "layout_vector_one", "layout_to_soa",
                     "layout_vector_all_any"}),
     .unpack = unpack_soa},
};

#define BYTES_MAX (UINT64_C(1) << 40)

/* On a GPU all fields take 1.5 GiB, and one takes a quarter GiB. On a CPU all fields are four times
 * the cache; so is one, unless that takes more than 400 MB of particles. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t count = has_gpu ? 1 << 26 : 1 << 22, most = UINT64_C(1) << 35;

    (void)element;
    while (count < most && (count * sizeof(layout_particle) / 4 < cache_bytes ||
                            (count * sizeof(float) / 2 < cache_bytes && count < 1 << 24)))
        count *= 2;
    *rows = count;
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) {
    return 2 * c->rows * (is_one_field(c) ? sizeof(float) : sizeof(layout_particle));
}

/* All fields of the particles, whatever a step touches, and an answer. */
static uint64_t host_bytes(const iron__case *c) {
    return c->rows * sizeof(layout_particle) + useful_bytes(c) / 2;
}

/* One subtraction, three products and three sums; or one sum. */
static double operations(const iron__case *c) {
    return (double)c->rows * (is_one_field(c) ? 1 : 7);
}

const iron__op iron__op_layout = {
    .name = "layout",
    .contract = "a time step of particles (x y z vx vy vz): fall, then move; or only x is shifted",
    .why =
        "Many particles of six numbers can be stored as one structure per particle, or as one "
        "array per field. Processors work on many particles at once, so it matters what lies next "
        "to what: 32 threads of a GPU that read the same field of 32 structures touch six lines of "
        "memory for data that would fit into one, and a CPU must assemble its vectors element by "
        "element.\n"
        "\n"
        "The cost depends on how much of a structure is used (the axis `fields`). A step that "
        "reads and writes all six fields uses every byte of every line in either layout, and "
        "caches compensate for the order; a step that needs one field of six also moves the other "
        "five. Blocks of 32 particles, each a small structure of arrays, are the third layout: the "
        "fields of a particle stay within a few lines of one page. The contenders work on a copy "
        "in their own layout, which counts as `prepare`: a program would keep its data in that "
        "layout.",
    .traffic =
        "fields all: 24 bytes read and 24 written per particle, in every layout. fields one: 4 "
        "bytes read and 4 written are useful; an array of structures reads all 24.",
    .unless =
        "It does not pay if particles are accessed one by one at random and all their fields are "
        "needed: then a structure is one line, and six arrays are six. Nor if the data must be "
        "converted for every use: that costs as much as the step itself.",
    .used = "Nodes are stored as one array per field: accumulators, potentials and activations are "
            "separate arrays in iron__nodes (src/core/nodes.h), and the kernel tokens_apply_one in "
            "src/ops/tokens/apply.k works on them. Tokens and matrices have one field only.",
    IRON_LINE_OP(IRON_F32, check),
    .bound = IRON_BOUND_COPY,
    IRON_AXES({.name = "fields",
               .about = "what a step touches: all six fields or only x",
               IRON_WORDS("all", "one")}),
    .baselines = {"aos", "aos"},
    IRON_SIZES({"size", "SMALL", 1 << 20, 1, NULL}, {"size", "STANDARD", 1 << 24, 1, NULL},
               {"size", "LARGE", 1 << 27, 1, NULL}, {"size", "ODD", (1 << 27) - 1, 1, NULL}),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .host_bytes = host_bytes,
    .operations = operations,
    .rows_max = BYTES_MAX / sizeof(layout_particle),
    .expected = expected,
};
