/* SPDX-License-Identifier: MIT */
/*
 * histogram.c: the most frequent ids of a file of 16-bit tokens.
 *
 *     cc examples/histogram.c $(pkg-config --cflags --libs iron) -o histogram
 *     ./histogram tokens.bin
 *
 * The file is read in pieces and added to one histogram, so memory stays small. A program that has
 * its tokens in the memory of a GPU calls iron_histogram_add_device with their address instead.
 */
#include <iron/iron_digest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BINS  65536u
#define SHOWN 10u
#define PIECE ((size_t)1 << 22)

static iron_status count_file(FILE *file, iron_histogram_context *histogram, iron_error *err) {
    uint16_t *piece = malloc(PIECE * sizeof *piece);
    iron_status status = piece ? IRON_OK : IRON_E_NOMEM;
    size_t count;

    while (status == IRON_OK && (count = fread(piece, sizeof *piece, PIECE, file)) > 0)
        status = iron_histogram_add(histogram, IRON_DTYPE_U16, piece, count, err);
    free(piece);
    return status;
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    iron_histogram_context *histogram = NULL;
    iron_histogram_options options;
    iron_error err = {IRON_OK, 0, "out of memory"};
    const uint64_t *counts;
    uint64_t total;

    if (!file) {
        fprintf(stderr, "usage: histogram FILE (16-bit tokens)\n");
        return 2;
    }
    iron_histogram_options_init(&options);
    options.bins = BINS;
    if (iron_histogram_create(&options, &histogram, &err) || count_file(file, histogram, &err) ||
        ferror(file)) {
        fprintf(stderr, "histogram: %s\n", ferror(file) ? "the file cannot be read" : err.text);
        iron_histogram_destroy(histogram);
        fclose(file);
        return 2;
    }
    fclose(file);
    counts = iron_histogram_counts(histogram, &total);
    printf("%" PRIu64 " tokens\n", total);
    for (uint64_t shown = 0, last = UINT64_MAX, after = 0; shown < SHOWN; shown++) {
        uint64_t best = BINS;

        /* the next in order of count, then of id */
        for (uint64_t id = 0; id < BINS; id++)
            if ((counts[id] < last || (counts[id] == last && id >= after)) &&
                (best == BINS || counts[id] > counts[best]))
                best = id;
        if (best == BINS || counts[best] == 0)
            break;
        printf("%6" PRIu64 " %12" PRIu64 "\n", best, counts[best]);
        last = counts[best];
        after = best + 1;
    }
    iron_histogram_destroy(histogram);
    return 0;
}
