/* SPDX-License-Identifier: MIT */
/*
 * bench_codec.c: how fast zstd alone decompresses the frames of a file, on several threads: the
 * ceiling for `iron sum` of that file (scripts/bench-containers). Each thread takes the next frame
 * and decompresses it into a buffer of its own. Prints the median of the rounds.
 *
 *   bench-codec FILE.zst [THREADS 0: all] [ROUNDS 5]
 */
#include "core/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define THREADS_MAX 1024u
#define ROUNDS_MAX  1000u

typedef struct frame {
    const unsigned char *data;
    size_t bytes, content;
} frame;

typedef struct work {
    frame *frames;
    size_t count, largest;
    uint64_t content;
    atomic_size_t next;
    atomic_bool has_failed;
} work;

static void *decompress_frames(void *context) {
    work *w = context;
    unsigned char *to = malloc(w->largest);
    ZSTD_DCtx *state = ZSTD_createDCtx();
    size_t k;

    while (to && state && (k = atomic_fetch_add(&w->next, 1)) < w->count) {
        const frame *f = &w->frames[k];
        if (ZSTD_decompressDCtx(state, to, w->largest, f->data, f->bytes) != f->content)
            atomic_store(&w->has_failed, true);
    }
    if (!to || !state)
        atomic_store(&w->has_failed, true);
    ZSTD_freeDCtx(state);
    free(to);
    return NULL;
}

/* Finds the frames; false if one does not state its content. */
static bool find_frames(const unsigned char *data, size_t bytes, work *w) {
    size_t capacity = 0;

    for (size_t at = 0; at < bytes;) {
        size_t length = ZSTD_findFrameCompressedSize(data + at, bytes - at);
        unsigned long long content = ZSTD_getFrameContentSize(data + at, bytes - at);
        if (ZSTD_isError(length) || content >= ZSTD_CONTENTSIZE_ERROR)
            return false;
        if (w->count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            frame *more = realloc(w->frames, capacity * sizeof *more);
            if (!more)
                return false;
            w->frames = more;
        }
        w->frames[w->count++] = (frame){data + at, length, (size_t)content};
        w->content += content;
        if (content > w->largest)
            w->largest = (size_t)content;
        at += length;
    }
    return w->count > 0;
}

static double seconds_of_round(work *w, unsigned threads) {
    pthread_t ids[THREADS_MAX];
    unsigned started = 0;
    uint64_t begun = iron__clock_ns();

    atomic_store(&w->next, 0);
    while (started < threads && pthread_create(&ids[started], NULL, decompress_frames, w) == 0)
        started++;
    for (unsigned k = 0; k < started; k++)
        pthread_join(ids[k], NULL);
    if (started < threads)
        atomic_store(&w->has_failed, true);
    return (double)(iron__clock_ns() - begun) * 1e-9;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned rounds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 5;
    int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    work w = {.frames = NULL};
    double seconds[ROUNDS_MAX];
    struct stat info;

    if (threads == 0)
        threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size == 0 || rounds - 1 >= ROUNDS_MAX ||
        threads > THREADS_MAX) {
        fprintf(stderr, "usage: bench-codec FILE.zst [THREADS] [ROUNDS]\n");
        return 2;
    }
    size_t bytes = (size_t)info.st_size;
    void *data = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED || !find_frames(data, bytes, &w)) {
        fprintf(stderr, "bench-codec: %s has no frames that state their content\n", argv[1]);
        return 2;
    }
    for (unsigned k = 0; k < rounds; k++)
        seconds[k] = seconds_of_round(&w, threads);
    qsort(seconds, rounds, sizeof *seconds, by_value);
    if (atomic_load(&w.has_failed)) {
        fprintf(stderr, "bench-codec: a frame of %s cannot be decompressed\n", argv[1]);
        return 2;
    }
    double median = seconds[rounds / 2];
    printf("{\"frames\": %zu, \"bytes\": %" PRIu64 ", \"threads\": %u, \"seconds\": %.6f, "
           "\"gb_per_s\": %.3f}\n",
           w.count, w.content, threads, median, (double)w.content / median * 1e-9);
    free(w.frames);
    munmap(data, bytes);
    close(fd);
    return 0;
}
