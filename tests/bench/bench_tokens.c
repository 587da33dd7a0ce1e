/* SPDX-License-Identifier: MIT */
/*
 * bench_tokens.c: how fast the CPU variants are, beside what the memory gives in the same run.
 *
 * Every row goes through the public engine, lattice updates included, over a buffer of at least
 * four times the last-level cache. Rows are timed round-robin, so that drift hits all of them
 * alike; the figure is the median. The ceiling is measured before and after, and the larger counts.
 * The modes of Part I read every token once a node; they get a small share of the buffer. Nothing
 * here passes or fails: it reports ratios.
 */
#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef HAVE_XXHASH
#include <xxhash.h>
#endif

#define ROUNDS          9
#define ROWS_MAX        64
#define PER_NODE_TOKENS 16384u

static const uint32_t vocabs[] = {65536, 50257, 128256};

typedef struct row {
    const char *name;
    uint32_t vocab; /* 0: does not depend on it */
    bool uses_all_threads;
    iron_engine *engine; /* NULL: XXH3 */
    size_t tokens;
    double seconds[ROUNDS];
    double gb_s;
} row;

typedef struct bench {
    uint32_t *tokens;
    size_t count;
    row rows[ROWS_MAX];
    size_t row_count;
    iron_ceilings ceilings;
    double xxh3_gb_s;
} bench;

static double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *text) {
    fprintf(stderr, "bench-tokens: %s\n", text);
    exit(2);
}

static double larger(double a, double b) { return a > b ? a : b; }

static void measure_ceilings(bench *b) {
    iron_measure_options options = {0};
    iron_ceilings c;
    iron_error err;

    if (iron_measure_ceilings(&options, &c, &err) != IRON_OK)
        die(err.text);
    c.read.one_thread_gb_s = larger(c.read.one_thread_gb_s, b->ceilings.read.one_thread_gb_s);
    c.read.all_threads_gb_s = larger(c.read.all_threads_gb_s, b->ceilings.read.all_threads_gb_s);
    b->ceilings = c;
}

static void make_tokens(bench *b) {
    size_t bytes = (size_t)b->ceilings.buffer_bytes;

    b->count = bytes / sizeof(uint32_t);
    b->tokens = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->tokens == MAP_FAILED)
        die("out of memory for the tokens");
    madvise(b->tokens, bytes, MADV_HUGEPAGE);
    iron_generate(1, 50257, 0, b->tokens, b->count, NULL);
}

static void add_row(bench *b, const iron_mode_info *info, uint32_t vocab) {
    bool is_per_node = strcmp(info->name, "node") == 0 || strcmp(info->name, "hybrid") == 0;
    row *r = &b->rows[b->row_count++];
    iron_config config;
    iron_error err;

    iron_config_init(&config);
    config.vocab = vocab;
    config.mode = info->variant;
    if (iron_engine_create(&config, &r->engine, &err) != IRON_OK)
        die(err.text);
    config = *iron_engine_config(r->engine);
    r->name = info->variant;
    r->vocab = vocab;
    r->uses_all_threads = config.threads > 1;
    r->tokens = is_per_node ? PER_NODE_TOKENS : b->count;
}

static void add_rows(bench *b) {
#ifdef HAVE_XXHASH
    b->rows[b->row_count++] = (row){.name = "tokens.cpu.xxh3", .tokens = b->count};
#endif
    for (size_t v = 0; v < sizeof vocabs / sizeof vocabs[0]; v++) {
        for (size_t k = 0; k < iron_variant_count("cpu"); k++) {
            iron_mode_info info = {.struct_size = sizeof info};

            if (iron_variant_at("cpu", k, &info, NULL) == IRON_OK && info.is_available &&
                b->row_count < ROWS_MAX)
                add_row(b, &info, vocabs[v]);
        }
    }
}

/* One pass of a row. */
static void run_row(const bench *b, row *r) {
    iron_error err;

    if (r->engine) {
        if (iron_engine_feed(r->engine, b->tokens, r->tokens, &err) != IRON_OK ||
            iron_engine_end_batch(r->engine, &err) != IRON_OK)
            die(err.text);
        return;
    }
#ifdef HAVE_XXHASH
    static uint64_t first;
    uint64_t hash = XXH3_64bits(b->tokens, b->count * sizeof(uint32_t));

    if (first && first != hash)
        die("XXH3 differs from itself");
    first = hash;
#endif
}

/* After the first, untimed pass: every row of a vocabulary against its first row, the reference. */
static void verify_rows(const bench *b) {
    iron_report want = {.struct_size = sizeof want}, got = want;
    const row *reference = NULL;

    for (size_t k = 0; k < b->row_count; k++) {
        const row *r = &b->rows[k];

        if (!r->engine)
            continue;
        if (iron_engine_report(r->engine, &got, NULL) != IRON_OK)
            die("no report");
        if (!reference || reference->vocab != r->vocab) {
            reference = r;
            want = got;
        }
        if (r->tokens == reference->tokens &&
            (got.xor_total != want.xor_total || got.sum != want.sum || got.state != want.state)) {
            fprintf(stderr, "bench-tokens: %s with vocab %" PRIu32 " is WRONG\n", r->name,
                    r->vocab);
            exit(1);
        }
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void time_rows(bench *b) {
    for (int round = -1; round < ROUNDS; round++) {
        for (size_t k = 0; k < b->row_count; k++) {
            double started = now();

            run_row(b, &b->rows[k]);
            if (round >= 0)
                b->rows[k].seconds[round] = now() - started;
        }
        if (round < 0)
            verify_rows(b);
    }
    for (size_t k = 0; k < b->row_count; k++) {
        row *r = &b->rows[k];

        qsort(r->seconds, ROUNDS, sizeof r->seconds[0], by_value);
        r->gb_s = (double)r->tokens * sizeof(uint32_t) / r->seconds[ROUNDS / 2] * 1e-9;
        if (!r->engine)
            b->xxh3_gb_s = r->gb_s;
    }
}

static double ceiling_of(const bench *b, const row *r) {
    return r->uses_all_threads ? b->ceilings.read.all_threads_gb_s
                               : b->ceilings.read.one_thread_gb_s;
}

static void print_table(const bench *b) {
    printf("\ntokens on the CPU: %" PRIu64
           " MiB, medians of %d interleaved passes, lattice of 4096 "
           "nodes updated\n\n%-8s %-28s %9s %12s %8s\n",
           b->ceilings.buffer_bytes >> 20, ROUNDS, "vocab", "row", "GB/s", "of ceiling", "x XXH3");
    printf("%-8s %-28s %9.2f\n", "", "read ceiling, 1 thread", b->ceilings.read.one_thread_gb_s);
    printf("%-8s read ceiling, %-3u threads%5s %9.2f\n", "", b->ceilings.threads, "",
           b->ceilings.read.all_threads_gb_s);
    for (size_t k = 0; k < b->row_count; k++) {
        const row *r = &b->rows[k];
        char vocab[16] = "";

        if (r->vocab && (k == 0 || b->rows[k - 1].vocab != r->vocab))
            snprintf(vocab, sizeof vocab, "%" PRIu32, r->vocab);
        printf("%-8s %-28s %9.*f %10.1f %%", vocab, r->name, r->gb_s < 0.1 ? 4 : 2, r->gb_s,
               100 * r->gb_s / ceiling_of(b, r));
        if (b->xxh3_gb_s > 0)
            printf(" %8.2f", r->gb_s / b->xxh3_gb_s);
        putchar('\n');
    }
}

static void print_json(const bench *b, const char *path) {
    FILE *f = fopen(path, "w");

    if (!f)
        die("cannot write the JSON file");
    fprintf(f,
            "{\"schema\": \"iron.bench/1\", \"iron\": \"%s\", \"threads\": %u, \"buffer_bytes\": "
            "%" PRIu64 ",\n \"read_ceiling_gb_s\": {\"one_thread\": %.3f, \"all_threads\": %.3f},"
            "\n \"rows\": [",
            iron_version(), b->ceilings.threads, b->ceilings.buffer_bytes,
            b->ceilings.read.one_thread_gb_s, b->ceilings.read.all_threads_gb_s);
    for (size_t k = 0; k < b->row_count; k++) {
        const row *r = &b->rows[k];

        fprintf(f,
                "%s\n  {\"name\": \"%s\", \"vocab\": %" PRIu32 ", \"tokens\": %zu, \"median_s\": "
                "%.9f, \"gb_s\": %.4f, \"of_ceiling\": %.4f}",
                k ? "," : "", r->name, r->vocab, r->tokens, r->seconds[ROUNDS / 2], r->gb_s,
                r->gb_s / ceiling_of(b, r));
    }
    fprintf(f, "\n ]}\n");
    if (fclose(f) != 0)
        die("cannot write the JSON file");
}

int main(int argc, char **argv) {
    static bench b;

    if (argc != 1 && !(argc == 3 && strcmp(argv[1], "--json") == 0))
        die("usage: bench-tokens [--json FILE]");
    measure_ceilings(&b);
    make_tokens(&b);
    add_rows(&b);
    time_rows(&b);
    measure_ceilings(&b);
    print_table(&b);
    if (argc == 3)
        print_json(&b, argv[2]);
    for (size_t k = 0; k < b.row_count; k++)
        iron_engine_destroy(b.rows[k].engine);
    munmap(b.tokens, b.count * sizeof(uint32_t));
    return 0;
}
