/* SPDX-License-Identifier: MIT */
/*
 * layout_cpu.c: the rows of the op layout on the CPU: three layouts, on one thread and on all. The
 * loops are plain; what a compiler makes of them is the point: it turns arrays of one field into
 * vectors, and has to pick a struct's fields apart one by one.
 *
 * Arrays of fields are gone through axis by axis (x with vx, then y with vy): four streams of
 * addresses at a time, which prefetchers follow more easily than twelve.
 */
#include "ops/data.h"
#include "ops/layout/layout.h"

/* A row's work, which threads take in pieces of particles. */
typedef struct job {
    const float *from; /* in the row's layout */
    float *to;
    size_t count;
    bool is_one;
} job;

/* fall: what the speed loses. v - 0 is v, to the bit. */
static inline void step_axis(const float *restrict at, const float *restrict speed,
                             float *restrict at_to, float *restrict speed_to, size_t count,
                             float fall) {
    for (size_t k = 0; k < count; k++) {
        float v = speed[k] - fall;
        float way = v * LAYOUT_DT;

        at_to[k] = at[k] + way;
        speed_to[k] = v;
    }
}

static inline void shift(const float *restrict from, float *restrict to, size_t count) {
    for (size_t k = 0; k < count; k++)
        to[k] = from[k] + LAYOUT_SHIFT;
}

/* Fields whose arrays are `pitch` elements apart. */
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

static void piece_of_aos(void *context, size_t begin, size_t end) {
    const job *j = context;
    const layout_particle *from = (const layout_particle *)j->from;

    if (!j->is_one) {
        step_aos(from + begin, (layout_particle *)j->to + begin, end - begin);
        return;
    }
    for (size_t k = begin; k < end; k++)
        j->to[k] = from[k].x + LAYOUT_SHIFT;
}

static void piece_of_soa(void *context, size_t begin, size_t end) {
    const job *j = context;

    if (j->is_one)
        shift(j->from + begin, j->to + begin, end - begin);
    else
        step_fields(j->from + begin, j->to + begin, j->count, end - begin);
}

/* Whole blocks have a length that the compiler knows. Pieces begin at blocks. */
static void piece_of_aosoa(void *context, size_t begin, size_t end) {
    const job *j = context;

    for (size_t k = begin; k < end; k += LAYOUT_BLOCK) {
        size_t at = k * LAYOUT_FIELDS, left = j->count - k;

        if (left >= LAYOUT_BLOCK && j->is_one)
            shift(j->from + at, j->to + k, LAYOUT_BLOCK);
        else if (left >= LAYOUT_BLOCK)
            step_fields(j->from + at, j->to + at, LAYOUT_BLOCK, LAYOUT_BLOCK);
        else if (j->is_one)
            shift(j->from + at, j->to + k, left);
        else
            step_fields(j->from + at, j->to + at, left, left);
    }
}

static job job_of(const iron__cpu_work *work, const void *from) {
    return (job){.from = from,
                 .to = work->output,
                 .count = (size_t)work->problem->c.rows,
                 .is_one = iron__layout_is_one(&work->problem->c)};
}

static void run_aos(const iron__cpu_work *work) {
    job j = job_of(work, work->problem->inputs[0].data);

    piece_of_aos(&j, 0, j.count);
}

static void run_aosoa(const iron__cpu_work *work) {
    job j = job_of(work, work->scratch);

    piece_of_aosoa(&j, 0, j.count);
}

static void run_soa(const iron__cpu_work *work) {
    job j = job_of(work, work->scratch);

    piece_of_soa(&j, 0, j.count);
}

static void run_aos_threads(const iron__cpu_work *work) {
    job j = job_of(work, work->problem->inputs[0].data);

    iron__data_pieces(work->team, j.count, piece_of_aos, &j);
}

static void run_aosoa_threads(const iron__cpu_work *work) {
    job j = job_of(work, work->scratch);

    iron__data_pieces(work->team, j.count, piece_of_aosoa, &j);
}

static void run_soa_threads(const iron__cpu_work *work) {
    job j = job_of(work, work->scratch);

    iron__data_pieces(work->team, j.count, piece_of_soa, &j);
}

static size_t scratch_bytes(const iron__problem *problem, uint32_t threads) {
    (void)threads;
    return problem->inputs[0].bytes;
}

static void prepare_soa(const iron__cpu_work *work) {
    iron__layout_to_soa(work->team, work->problem->inputs[0].data, work->scratch,
                        (size_t)work->problem->c.rows);
}

static void prepare_aosoa(const iron__cpu_work *work) {
    iron__layout_to_aosoa(work->team, work->problem->inputs[0].data, work->scratch,
                          (size_t)work->problem->c.rows);
}

#define ROW(text_name, text_idea, slower, function, single, ...)                                   \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = IRON_ON_CPU,      \
        .passes = 1, .cpu_run = (function), .is_single = (single), __VA_ARGS__                     \
    }
#define SOA                                                                                        \
    .cpu_prepare = prepare_soa, .cpu_scratch_bytes = scratch_bytes, .unpack = iron__layout_from_soa
#define AOSOA                                                                                      \
    .cpu_prepare = prepare_aosoa, .cpu_scratch_bytes = scratch_bytes,                              \
    .unpack = iron__layout_from_aosoa

static const iron__contender rows[] = {
    ROW("aos", "an array of structures, one after the other", NULL, run_aos, true, .unpack = NULL),
    ROW("aosoa", "blocks of 32 particles, a short array a field in each", "aos", run_aosoa, true,
        AOSOA),
    ROW("soa", "an array a field: loops that compilers turn into vectors", "aos", run_soa, true,
        SOA),
    ROW("aos-threads", "aos on all threads", "aos", run_aos_threads, false, .unpack = NULL),
    ROW("aosoa-threads", "aosoa on all threads", "aosoa", run_aosoa_threads, false, AOSOA),
    ROW("soa-threads", "soa on all threads", "soa", run_soa_threads, false, SOA),
};

size_t iron__layout_cpu_count(void) { return sizeof rows / sizeof rows[0]; }

bool iron__layout_cpu_contender_at(size_t index, iron__contender *out) {
    if (index >= iron__layout_cpu_count())
        return false;
    *out = rows[index];
    return true;
}
