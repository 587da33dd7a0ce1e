/* SPDX-License-Identifier: MIT */
/*
 * ceilings_cpu.c: what the host's memory can deliver: reading, writing, copying, and a triad (two
 * arrays read, one written).
 *
 * A ceiling has to be the best of many ways, or a contender beats it with a better access pattern:
 * without prefetching into the second-level cache reading is a sixth slower on a Neoverse V1 and a
 * third slower on a Xeon. The ways differ in the width of loads and stores, how far ahead and into
 * which cache is prefetched, the size of the pieces that threads take, the number of threads, and
 * the pages: huge or ordinary ones, and where there are several nodes, also spread over them.
 * (Otherwise each thread first touches the part that it will use, so it is on its own node.) The C
 * library's memset and memcpy take part as well. The search goes from the best way so far one
 * property at a time: all combinations would take minutes. What it finds is kept in the user's
 * cache folder, and later races begin with it.
 *
 * Reading means that every byte reaches a register (an XOR keeps the compiler from removing the
 * loads); the triad adds. Nothing is computed that a memory-bound kernel would not have to do, so a
 * kernel's share of these figures is its share of what is possible.
 *
 * A ceiling is the fastest pass: other load lowers what is measured and never raises it. So shares
 * of it are not too high.
 *
 * The working set is at least four times the last-level cache. A pass goes over all of it. In the
 * search one goes over a quarter, the next one over the next quarter, so that no pass finds in the
 * cache what the one before it has left there.
 */
#include "arena/arena_internal.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/files.h"
#include "core/hash.h"

#include <assert.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PASSES     9u
#define BUFFER_MIN (UINT64_C(512) << 20)
#define BUFFER_MAX (UINT64_C(8) << 30)
#define GRANULE    ((size_t)64 << 10) /* pieces are multiples of it */

/* Of the search for each kind of pass, and of measuring one: on a busy machine it ends before it
 * has tried all ways, or with fewer passes. */
#define SEARCH_NS  UINT64_C(1500000000)
#define MEASURE_NS UINT64_C(1000000000)
#define PASSES_MIN 3u

/* A way must be so much faster than the best so far. */
#define BETTER 1.02

/* A search is kept if its threads had the processors for so much of the time. */
#define QUIET 0.7

/* Loads in flight: independent XORs, so that none waits for another. */
#define CHAINS     8u
#define LINE_BYTES 64u

typedef struct way {
    uint32_t width;       /* of widths; COUNT(widths): the C library */
    uint32_t level;       /* that is prefetched into */
    uint32_t ahead_bytes; /* 0: nothing is prefetched */
    uint32_t piece_bytes; /* 0: each thread has one piece */
    uint32_t threads;
    uint32_t is_plain; /* ordinary stores, by which lines are read first */
} way;

/* A pass over a piece. */
typedef struct work {
    const way *way;
    iron__cpu_pass pass;
    size_t piece;
    char *from, *also, *to; /* also: the triad's other array */
    uint64_t result;        /* of reading, XORed over the pieces */
} work;

typedef void loop(work *w, size_t at);

/* What is done with each vector of a piece; lines of the arrays that are read are prefetched. */
#define AT(array) ((vector *)(void *)((array) + k + c * sizeof(vector)))
#define EACH(has_from, has_also, locality, statement)                                              \
    for (size_t k = 0; k < piece; k += CHAINS * sizeof(vector)) {                                  \
        for (size_t line = k + ahead; ahead && line < k + ahead + CHAINS * sizeof(vector);         \
             line += LINE_BYTES) {                                                                 \
            if (has_from)                                                                          \
                __builtin_prefetch(from + line, 0, locality);                                      \
            if (has_also)                                                                          \
                __builtin_prefetch(also + line, 0, locality);                                      \
        }                                                                                          \
        for (size_t c = 0; c < CHAINS; c++)                                                        \
            (statement);                                                                           \
    }

/* The loops with vectors of so many bytes, prefetching into one level (the locality that
 * __builtin_prefetch takes). STREAM is a store that does not read the line first. */
#define LOOP(name, target, width, locality, STREAM)                                                \
    target static void name(work *w, size_t first) {                                               \
        typedef uint64_t vector __attribute__((vector_size(width), may_alias));                    \
        const size_t ahead = (size_t)w->way->ahead_bytes, piece = w->piece;                        \
        char *from = w->from + first, *also = w->also + first, *to = w->to + first;                \
        vector x[CHAINS] = {{0}};                                                                  \
                                                                                                   \
        if (w->pass == IRON_CPU_READ)                                                              \
            EACH(true, false, locality, x[c] ^= *AT(from))                                         \
        else if (w->pass == IRON_CPU_COPY)                                                         \
            EACH(true, false, locality, STREAM(AT(to), *AT(from)))                                 \
        else if (w->pass == IRON_CPU_TRIAD)                                                        \
            EACH(true, true, locality, STREAM(AT(to), *AT(from) + *AT(also)))                      \
        else if (w->way->is_plain)                                                                 \
            EACH(false, false, locality, *AT(to) = x[c])                                           \
        else                                                                                       \
            EACH(false, false, locality, STREAM(AT(to), x[c]))                                     \
        for (size_t c = 1; c < CHAINS; c++)                                                        \
            x[0] ^= x[c];                                                                          \
        for (size_t lane = 1; lane < (width) / 8; lane++)                                          \
            x[0][0] ^= x[0][lane];                                                                 \
        __atomic_fetch_xor(&w->result, x[0][0], __ATOMIC_RELAXED);                                 \
    }

#define LOOPS(name, target, width, STREAM)                                                         \
    LOOP(name##_l1, target, width, 3, STREAM)                                                      \
    LOOP(name##_l2, target, width, 2, STREAM)                                                      \
    LOOP(name##_nta, target, width, 0, STREAM)

#if defined(__x86_64__)
#define STREAM_16(to, value) _mm_stream_si128((__m128i *)(void *)(to), (__m128i)(value))
#define STREAM_32(to, value) _mm256_stream_si256((__m256i *)(void *)(to), (__m256i)(value))
#define STREAM_64(to, value) _mm512_stream_si512((__m512i *)(void *)(to), (__m512i)(value))
LOOPS(loop_32, __attribute__((target("avx2"))), 32, STREAM_32)
LOOPS(loop_64, __attribute__((target("avx512f"))), 64, STREAM_64)
#else
#define STREAM_16(to, value) (*(to) = (value))
#endif
LOOPS(loop_16, , 16, STREAM_16)

enum { INTO_L1, INTO_L2, INTO_NONE, INTO_LEVELS };

static const struct {
    const char *name;
    uint32_t needs;
    loop *loops[INTO_LEVELS];
} widths[] = {{"128-bit", 0, {loop_16_l1, loop_16_l2, loop_16_nta}},
#if defined(__x86_64__)
              {"256-bit", IRON_CPU_AVX2, {loop_32_l1, loop_32_l2, loop_32_nta}},
              {"512-bit", IRON_CPU_AVX512, {loop_64_l1, loop_64_l2, loop_64_nta}}
#endif
};

/* How the pages of the working set are made. */
typedef enum pages { PAGES_HUGE, PAGES_ORDINARY, PAGES_SPREAD, PAGES_KINDS } pages;

struct iron__cpu_ceilings {
    uint32_t threads;
    size_t bytes;
    char *buffer; /* NULL while it is released */
    pages pages;
    bool is_known; /* the ways were found by a search, now or earlier */
    way ways[IRON_CPU_PASSES];
    char shapes[IRON_CPU_PASSES][IRON_SHAPE_ROOM];
    iron__thread_pool *pools[3]; /* all threads, half of them, one */
    unsigned quarter;            /* of the next pass of a search */
};

static const char *const pass_names[IRON_CPU_PASSES] = {"read", "write", "copy", "triad"};
/* Arrays that a pass goes over. */
static const size_t arrays[IRON_CPU_PASSES] = {1, 1, 2, 3};

/* "512-bit, prefetch 32 KiB ahead into L2, pieces of 1 MiB, 16 threads, huge pages" */
static void name_way(const iron__cpu_ceilings *c, iron__cpu_pass pass, const way *w, char *text) {
    static const char *const levels[] = {"L1", "L2", "L1 only"};
    static const char *const kinds[] = {"huge", "ordinary", "spread"};
    bool is_library = w->width == COUNT(widths);

    snprintf(text, IRON_SHAPE_ROOM, "%s%s",
             !is_library              ? widths[w->width].name
             : pass == IRON_CPU_WRITE ? "memset"
                                      : "memcpy",
             w->is_plain && pass == IRON_CPU_WRITE && !is_library ? " ordinary stores" : "");
    if (!is_library && pass != IRON_CPU_WRITE && w->ahead_bytes)
        iron__append(text, IRON_SHAPE_ROOM, ", prefetch %g KiB ahead into %s",
                     w->ahead_bytes / 1024.0, levels[w->level]);
    else if (!is_library && pass != IRON_CPU_WRITE)
        iron__append(text, IRON_SHAPE_ROOM, ", no prefetch");
    if (w->piece_bytes)
        iron__append(text, IRON_SHAPE_ROOM, ", pieces of %u KiB", w->piece_bytes >> 10);
    else
        iron__append(text, IRON_SHAPE_ROOM, ", one piece a thread");
    iron__append(text, IRON_SHAPE_ROOM, ", %u thread%s, %s pages", w->threads,
                 w->threads == 1 ? "" : "s", kinds[c->pages]);
}

static void run_piece(void *context, size_t index) {
    work *w = context;
    size_t at = index * w->piece;

    if (w->way->width < COUNT(widths))
        widths[w->way->width].loops[w->way->level](w, at);
    else if (w->pass == IRON_CPU_WRITE)
        memset(w->to + at, (int)(index & 0xFF), w->piece);
    else
        memcpy(w->to + at, w->from + at, w->piece);
}

/* Runs a pass over one part of so many of the working set. Returns its time and the bytes it moved,
 * 0 if the way does not suit so small a part. */
static double run_pass(iron__cpu_ceilings *c, iron__cpu_pass pass, const way *w, unsigned part,
                       unsigned parts, double *bytes) {
    size_t array = c->bytes / arrays[pass] / GRANULE * GRANULE;
    size_t region = array / parts / GRANULE * GRANULE, count;
    work job = {.way = w, .pass = pass, .piece = w->piece_bytes};
    uint64_t start;

    if (!job.piece)
        job.piece = region / w->threads / GRANULE * GRANULE;
    count = job.piece ? region / job.piece : 0;
    *bytes = (double)count * (double)job.piece * (double)arrays[pass];
    job.from = c->buffer + part * region;
    job.to = c->buffer + (arrays[pass] - 1) * array + part * region;
    job.also = c->buffer + (pass == IRON_CPU_TRIAD ? array : 0) + part * region;
    start = iron__clock_ns();
    iron__thread_pool_run(c->pools[w->threads == c->threads ? 0
                                   : w->threads == 1        ? 2
                                                            : 1],
                          run_piece, &job, count);
    return (double)(iron__clock_ns() - start) * 1e-6;
}

/* First touches a granule; with spread pages a thread's neighbours touch what it will use. */
static void touch(void *context, size_t index) {
    const iron__cpu_ceilings *c = context;
    size_t count = c->bytes / GRANULE, stride = count / c->threads;
    size_t at = c->pages == PAGES_SPREAD && stride > 0 && index < stride * c->threads
                    ? index % c->threads * stride + index / c->threads
                    : index;

    memset(c->buffer + at * GRANULE, 1, GRANULE);
}

static iron_status make_buffer(iron__cpu_ceilings *c, iron_error *err) {
    if (c->buffer)
        return IRON_OK;
    c->buffer = iron__allocate_large(c->bytes, err);
    if (!c->buffer)
        return IRON_E_NOMEM;
#ifdef MADV_NOHUGEPAGE
    if (c->pages == PAGES_ORDINARY)
        madvise(c->buffer, c->bytes, MADV_NOHUGEPAGE); /* fails for memory that is not mapped */
#endif
    iron__thread_pool_run(c->pools[0], touch, c, c->bytes / GRANULE);
    return IRON_OK;
}

void iron__cpu_ceilings_release(iron__cpu_ceilings *c) {
    iron__release_large(c->buffer, c->bytes);
    c->buffer = NULL;
}

/* A search for the best way of one kind of pass. */
typedef struct search {
    iron__cpu_ceilings *c;
    iron__cpu_pass pass;
    way best;
    double rate; /* of the best, bytes a millisecond */
    uint64_t end;
} search;

/* Keeps a way if it is the best so far: of two passes the faster one counts. */
static void consider(search *s, way w) {
    iron__cpu_ceilings *c = s->c;
    double rate = 0;

    if (iron__clock_ns() > s->end && s->rate > 0)
        return;
    for (int k = 0; k < 2; k++) {
        double bytes, ms = run_pass(c, s->pass, &w, c->quarter++ % 4, 4, &bytes);

        rate = ms > 0 && bytes / ms > rate ? bytes / ms : rate;
    }
    if (rate > BETTER * s->rate) {
        s->rate = rate;
        s->best = w;
    }
}

/* Tries other values of one property of the best way. */
#define CONSIDER(s, field, ...)                                                                    \
    do {                                                                                           \
        const uint32_t values[] = {__VA_ARGS__};                                                   \
        const way from = (s)->best;                                                                \
                                                                                                   \
        for (size_t k = 0; k < COUNT(values); k++)                                                 \
            if (values[k] != from.field) {                                                         \
                way w = from;                                                                      \
                                                                                                   \
                w.field = values[k];                                                               \
                consider(s, w);                                                                    \
            }                                                                                      \
    } while (0)

static void search_way(iron__cpu_ceilings *c, iron__cpu_pass pass) {
    search s = {c, pass, c->ways[pass], 0, iron__clock_ns() + SEARCH_NS};
    const uint32_t distances[INTO_LEVELS][4] = {
        {512, 1024, 2048, 4096}, {4096, 8192, 16384, 65536}, {1024, 2048, 8192, 32768}};

    consider(&s, c->ways[pass]);
    for (uint32_t width = 0; width < COUNT(widths); width++)
        if (iron__cpu_has(widths[width].needs))
            CONSIDER(&s, width, width);
    if (pass == IRON_CPU_WRITE || pass == IRON_CPU_COPY)
        CONSIDER(&s, width, COUNT(widths));
    if (pass == IRON_CPU_WRITE)
        CONSIDER(&s, is_plain, 1);
    for (uint32_t level = 0; level < INTO_LEVELS && pass != IRON_CPU_WRITE; level++)
        for (size_t k = 0; k < COUNT(distances[level]); k++) {
            way w = s.best;

            w.level = level;
            w.ahead_bytes = distances[level][k];
            consider(&s, w);
        }
    if (pass != IRON_CPU_WRITE)
        CONSIDER(&s, ahead_bytes, 0);
    CONSIDER(&s, piece_bytes, 256u << 10, 4u << 20, 0);
    if (c->threads > 1)
        CONSIDER(&s, threads, c->threads > 3 ? c->threads / 2 : 1, 1);
    c->ways[pass] = s.best;
}

/* Other pages for the whole working set, if reading is faster with them: where there is memory for
 * a second one. */
static void search_pages(iron__cpu_ceilings *c) {
    search s = {c, IRON_CPU_READ, c->ways[IRON_CPU_READ], 0, UINT64_MAX};
    bool has_nodes = access("/sys/devices/system/node/node1", F_OK) == 0;
    pages best = c->pages;

    consider(&s, s.best);
    consider(&s, s.best);
    for (pages kind = PAGES_HUGE; kind < PAGES_KINDS; kind++) {
        char *kept = c->buffer;
        pages before = c->pages;
        double rate = s.rate;

        if (kind == best || (kind == PAGES_SPREAD && !has_nodes))
            continue;
        c->buffer = NULL;
        c->pages = kind;
        if (make_buffer(c, NULL) == IRON_OK) {
            consider(&s, s.best);
            consider(&s, s.best);
        }
        if (s.rate > rate) {
            best = kind;
            iron__release_large(kept, c->bytes);
        } else {
            iron__cpu_ceilings_release(c);
            c->buffer = kept;
            c->pages = before;
        }
    }
}

/* What was found is for this processor with so many threads. */
static void calibration_header(const iron__cpu_ceilings *c, char *text, size_t size) {
    char cpu[96];

    iron__cpu_name(cpu, sizeof cpu);
    snprintf(text, size, "iron ceilings 1\nkey %s|%u|%x|%zu|%s\n", cpu, c->threads,
             iron__cpu_features(), c->bytes, iron_version());
}

static char *calibration_path(const char *header) {
    return iron__cache_path("ceilings", iron__fnv(IRON_FNV_START, header, strlen(header)), ".txt");
}

/* Seven numbers a line: pages, then the way. Advances *line past it. */
static bool parse_way(const char **line, iron__cpu_ceilings *c, way *w) {
    uint32_t page = 0, *const to[] = {&page,           &w->width,   &w->level,   &w->ahead_bytes,
                                      &w->piece_bytes, &w->threads, &w->is_plain};

    for (size_t k = 0; k < COUNT(to); k++) {
        char *end;
        unsigned long value = strtoul(*line, &end, 10);

        if (**line < '0' || **line > '9' || value > 4u << 20 ||
            *end != (k + 1 < COUNT(to) ? ' ' : '\n'))
            return false;
        *to[k] = (uint32_t)value;
        *line = end + 1;
    }
    c->pages = (pages)page;
    return page < PAGES_KINDS && w->width <= COUNT(widths) && w->level < INTO_LEVELS &&
           (w->width == COUNT(widths) || iron__cpu_has(widths[w->width].needs)) &&
           w->ahead_bytes <= 1u << 20 && w->piece_bytes % GRANULE == 0 && w->is_plain <= 1 &&
           (w->threads == c->threads || w->threads == 1 ||
            (c->threads > 3 && w->threads == c->threads / 2));
}

static bool calibration_load(iron__cpu_ceilings *c) {
    char header[320], *path, *text = NULL;
    iron__cpu_ceilings found = *c;
    const char *line;
    size_t bytes;
    bool is_there;

    calibration_header(c, header, sizeof header);
    path = calibration_path(header);
    is_there =
        path &&
        iron__small_file_read(path, "calibration", 4096, false, &text, &bytes, NULL) == IRON_OK &&
        strncmp(text, header, strlen(header)) == 0;
    line = is_there ? text + strlen(header) : "";
    for (size_t k = 0; is_there && k < IRON_CPU_PASSES; k++)
        is_there = parse_way(&line, &found, &found.ways[k]);
    /* the C library only writes and copies */
    is_there = is_there && found.ways[IRON_CPU_READ].width < COUNT(widths) &&
               found.ways[IRON_CPU_TRIAD].width < COUNT(widths);
    if (is_there)
        *c = found;
    free(text);
    free(path);
    return is_there;
}

/* A search that cannot be kept is made again by the next race. */
static void calibration_save(const iron__cpu_ceilings *c) {
    char text[1024], *path;
    iron_output *output = NULL;

    calibration_header(c, text, sizeof text);
    path = calibration_path(text);
    for (const way *w = c->ways; w < c->ways + IRON_CPU_PASSES; w++)
        iron__append(text, sizeof text, "%u %u %u %u %u %u %u\n", c->pages, w->width, w->level,
                     w->ahead_bytes, w->piece_bytes, w->threads, w->is_plain);
    iron__cache_folder_create();
    if (path && iron_output_open(path, &output, NULL) == IRON_OK) {
        if (iron_output_write(output, text, strlen(text), NULL) == IRON_OK)
            (void)iron_output_commit(output, NULL);
        else
            iron_output_abandon(output);
    }
    free(path);
}

/* Nanoseconds that all threads of the process have run. */
static uint64_t processor_ns(void) {
    struct timespec t = {0, 0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t iron__ceiling_bytes(uint64_t asked) {
    const char *text = secure_getenv("IRON_CEILING_MIB");
    unsigned long mib = text ? strtoul(text, NULL, 10) : 0;

    return asked ? asked : mib <= BUFFER_MAX >> 20 ? (uint64_t)mib << 20 : BUFFER_MAX;
}

static uint32_t widest(void) {
    uint32_t width = 0;

    while (width + 1 < COUNT(widths) && iron__cpu_has(widths[width + 1].needs))
        width++;
    return width;
}

/* Short reads: a thread gets a processor for one of them now and then, whatever else runs. */
#define BURSTS      64u
#define BURST_BYTES ((size_t)1 << 20)

double iron__cpu_read_gb_s(uint64_t bytes, uint32_t threads) {
    const size_t step = (size_t)CHAINS * LINE_BYTES; /* of the widest loop */
    size_t each = (size_t)(bytes / threads), most = 2 * (size_t)iron__cpu_last_cache_bytes();
    size_t pieces = (most && each > most ? most : each) / BURST_BYTES + 1;
    size_t piece = each < BURST_BYTES ? each / step * step : BURST_BYTES, rounds;
    const way fastest = {.width = widest(), .level = INTO_L2, .ahead_bytes = 32768};
    work w = {.way = &fastest, .pass = IRON_CPU_READ, .piece = piece ? piece : step};
    uint64_t best = UINT64_MAX;

    rounds = BURST_BYTES / w.piece;
    w.from = iron__allocate_large(pieces * BURST_BYTES, NULL);
    if (!w.from)
        return 0;
    w.also = w.to = w.from;
    memset(w.from, 1, pieces * BURST_BYTES);
    for (size_t k = 0; k < BURSTS + pieces; k++) {
        uint64_t start = iron__clock_ns(), took;

        for (size_t round = 0; round < rounds; round++)
            widths[fastest.width].loops[fastest.level](&w, k % pieces * BURST_BYTES);
        took = iron__clock_ns() - start;
        best = took < best ? took : best;
    }
    iron__release_large(w.from, pieces * BURST_BYTES);
    return (double)(rounds * w.piece) / (double)(best ? best : 1) * threads;
}

iron_status iron__cpu_ceilings_create(uint32_t threads, uint64_t bytes, iron__cpu_ceilings **out,
                                      iron_error *err) {
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    iron__cpu_ceilings *c;
    iron_status status = IRON_OK;

    *out = NULL;
    threads = threads ? threads : iron__cpu_threads();
    IRON_FAIL_IF(threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", threads, IRON_THREADS_MAX);
    c = calloc(1, sizeof *c);
    if (!c)
        return iron__no_memory(err, "a measurement");
    c->threads = threads;
    bytes = iron__ceiling_bytes(bytes);
    if (bytes == 0) {
        iron_cpu_describe(&cpu, NULL);
        bytes = 4 * iron__cpu_last_cache_bytes();
        bytes = bytes < BUFFER_MIN ? BUFFER_MIN : bytes > BUFFER_MAX ? BUFFER_MAX : bytes;
        if (bytes > cpu.memory_bytes / 4)
            bytes = cpu.memory_bytes / 4;
    }
    c->bytes = (size_t)((bytes + GRANULE - 1) / GRANULE * GRANULE);
    for (size_t k = 0; k < IRON_CPU_PASSES; k++)
        c->ways[k] = (way){widest(), INTO_L2, IRON_PREFETCH_BYTES, 1u << 20, threads, 0};
    for (size_t k = 0; k < COUNT(c->pools) && status == IRON_OK; k++)
        status = iron__thread_pool_create(k == 0                  ? threads
                                          : k == 1 && threads > 3 ? threads / 2
                                                                  : 1,
                                          iron__allocator_default(), &c->pools[k], err);
    if (status == IRON_OK)
        *out = c;
    else
        iron__cpu_ceilings_destroy(c);
    return status;
}

void iron__cpu_ceilings_destroy(iron__cpu_ceilings *c) {
    if (!c)
        return;
    iron__cpu_ceilings_release(c);
    for (size_t k = 0; k < COUNT(c->pools); k++)
        iron__thread_pool_destroy(c->pools[k]);
    free(c);
}

iron_status iron__cpu_ceilings_prepare(iron__cpu_ceilings *c, bool is_new_search, iron_error *err) {
    uint64_t start, processors;

    if (!c->is_known && !is_new_search)
        c->is_known = calibration_load(c);
    IRON_TRY(make_buffer(c, err));
    if (c->is_known && !is_new_search)
        return IRON_OK;
    start = iron__clock_ns();
    processors = processor_ns();
    search_way(c, IRON_CPU_READ);
    search_pages(c);
    for (iron__cpu_pass pass = IRON_CPU_WRITE; pass < IRON_CPU_PASSES; pass++)
        search_way(c, pass);
    c->is_known = true;
    if ((double)(processor_ns() - processors) >
        QUIET * c->threads * (double)(iron__clock_ns() - start))
        calibration_save(c);
    return IRON_OK;
}

double iron__cpu_ceilings_pass(iron__cpu_ceilings *c, iron__cpu_pass pass,
                               iron__ceiling_samples *what) {
    assert(c->buffer);
    what->name = pass_names[pass];
    name_way(c, pass, &c->ways[pass], c->shapes[pass]);
    what->shape = c->shapes[pass];
    return run_pass(c, pass, &c->ways[pass], 0, 1, &what->bytes);
}

iron__cpu_pass iron__cpu_pass_find(const char *name) {
    iron__cpu_pass pass = IRON_CPU_READ;

    while (pass < IRON_CPU_PASSES && strcmp(pass_names[pass], name) != 0)
        pass++;
    return pass;
}

iron_status iron__cpu_ceilings_measure(iron__cpu_ceilings *c, bool is_new_search,
                                       iron__ceiling_sink sink, iron_error *err) {
    IRON_TRY(iron__cpu_ceilings_prepare(c, is_new_search, err));
    for (iron__cpu_pass pass = IRON_CPU_READ; pass < IRON_CPU_PASSES; pass++) {
        iron__ceiling_samples samples = {.count = 0};
        uint64_t start = iron__clock_ns();
        double ms[PASSES];

        while (samples.count < PASSES_MIN ||
               (samples.count < PASSES && iron__clock_ns() - start < MEASURE_NS)) {
            double one = iron__cpu_ceilings_pass(c, pass, &samples);

            ms[samples.count++] = one;
        }
        samples.ms = ms;
        sink.add(sink.context, &samples);
    }
    return IRON_OK;
}

/* The figures of one thread or of all. */
typedef struct rates {
    iron_ceilings *out;
    bool is_one;
} rates;

static void add_rate(void *context, const iron__ceiling_samples *samples) {
    const rates *r = context;
    iron_ceiling *const to[IRON_CPU_PASSES] = {&r->out->read, &r->out->write, &r->out->copy,
                                               &r->out->triad};
    iron_ceiling *ceiling = to[iron__cpu_pass_find(samples->name)];
    double gb_s = samples->bytes / iron__statistics_of(samples->ms, samples->count).min * 1e-6;

    *(r->is_one ? &ceiling->one_thread_gb_s : &ceiling->all_threads_gb_s) = gb_s;
    if (!r->is_one)
        snprintf(ceiling->shape, sizeof ceiling->shape, "%s", samples->shape);
}

iron_status iron_measure_ceilings(const iron_measure_options *options, iron_ceilings *out,
                                  iron_error *err) {
    iron__cpu_ceilings *c = NULL;
    iron_status status = IRON_OK;
    rates r = {.out = out};

    *out = (iron_ceilings){.passes = PASSES};
    IRON_TRY(iron__cpu_ceilings_create(options->threads, options->buffer_bytes, &c, err));
    assert(c);
    out->threads = c->threads;
    out->buffer_bytes = c->bytes;
    for (uint32_t done = 0; status == IRON_OK && done < 2; done++) {
        r.is_one = done == 1;
        for (size_t k = 0; r.is_one && k < IRON_CPU_PASSES; k++)
            c->ways[k].threads = 1;
        status = iron__cpu_ceilings_measure(c, !r.is_one, (iron__ceiling_sink){add_rate, &r}, err);
        if (status == IRON_OK && options->progress &&
            options->progress(options->context, done + 1, 2))
            status = iron__fail(err, IRON_E_CANCELLED, 0, "cancelled while measuring");
    }
    iron__cpu_ceilings_destroy(c);
    return status;
}
