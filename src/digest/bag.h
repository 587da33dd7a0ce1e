/* SPDX-License-Identifier: MIT */
/*
 * bag.h: bags within scans: what scan.c needs of bag.c.
 *
 *     files   for each piece, on the thread that has it:
 *                 iron__bag_begin, iron__bag_add for all tokens of the piece, iron__bag_end
 *             and after the last piece iron__bag_finish
 *     pipes   iron__bag_add_pipe for all tokens, then iron__bag_finish_pipe
 */
#ifndef IRON_DIGEST_BAG_H
#define IRON_DIGEST_BAG_H

#include "digest/digest_internal.h"

/* A sample that is too long for the thread that found it. */
typedef struct iron__bag_long {
    uint64_t first, end; /* end: UINT64_MAX if it is not known */
    uint64_t searched;   /* there is no EOS before this position */
} iron__bag_long;

/* The bag of a source. */
typedef struct iron__bag_job {
    const iron_source *source;
    iron_bag_cut cut;            /* never FORMAT */
    bool has_starts;             /* rows or documents */
    uint64_t first, end;         /* the range in which samples begin; of files */
    uint64_t stream_tokens;      /* of files */
    const uint64_t *file_starts; /* of each file, and the end of the last; if has_starts */
    pthread_mutex_t mutex;       /* of the list */
    iron__bag_long *longs;
    size_t long_count, long_capacity;
    iron_bag sums;
} iron__bag_job;

/* What a thread has for itself. */
typedef struct iron__bag_cutter {
    iron_bag_cut cut;
    const iron__seal_variant *row;
    uint32_t *wide;       /* scratch memory: IRON_WIDEN_TOKENS, with IRON_PREFETCH_BYTES after */
    uint64_t position;    /* of the next token */
    uint64_t end;         /* samples that begin here or later belong to others */
    bool is_open;         /* a sample has begun and not ended: */
    uint64_t first, stop; /* where it begins; where it ends, except with EOS */
    iron__seal seal;      /* of its tokens so far */
    bool is_after_eos;    /* EOS: the next token begins a sample */
    uint64_t start;       /* SAMPLE: where the next sample begins */
    iron__block starts;   /* rows, documents: where samples begin that have tokens */
    size_t next;          /* of them */
    uint64_t after;       /* where the last of them ends */
    iron__document_walk walk;
    bool has_pending; /* of a pipe: the last row that began, which may be empty */
    uint64_t pending;
    iron_bag sums;
    iron__seal_words long_words;
} iron__bag_cutter;

/* Memory for tokens that a thread reads. */
typedef struct iron__bag_buffer {
    void *memory;
    size_t tokens;
} iron__bag_buffer;

/* The threads, for iron__bag_finish. */
typedef struct iron__bag_threads {
    iron__thread_pool *pool;
    iron__parallel_source *at;
    iron__bag_cutter *(*cutter)(void *context, uint32_t worker);
    iron__bag_buffer (*buffer)(void *context, uint32_t worker);
    void *context;
} iron__bag_threads;

typedef struct iron__bag_range {
    uint64_t first, count;
    uint32_t part; /* its number, from 1 on; 0: not a part */
} iron__bag_range;

/* The samples that begin in a range of a seekable source; NULL: all of a pipe. To be deinitialised
 * whatever this returns. */
iron_status iron__bag_job_init(iron__bag_job *job, iron_source *source, iron_bag_cut cut,
                               const iron__bag_range *range, iron_error *err);
void iron__bag_job_deinit(iron__bag_job *job);

void iron__bag_cutter_init(iron__bag_cutter *cutter, const iron__bag_job *job, uint32_t *wide);
void iron__bag_cutter_deinit(iron__bag_cutter *cutter);

/* The cutter's next tokens are those of this piece; finds where samples begin in it. */
iron_status iron__bag_begin(const iron__bag_job *job, iron__bag_cutter *cutter,
                            iron__parallel_source *at, uint64_t first, uint64_t count,
                            const atomic_bool *stop, iron_error *err);
/* The next tokens, which were checked. Neither allocates nor locks. */
void iron__bag_add(iron__bag_cutter *cutter, const iron__tokens_view *view);
/* Reads past the piece to finish its last sample. */
iron_status iron__bag_end(iron__bag_job *job, iron__bag_cutter *cutter, iron__parallel_source *at,
                          const iron__bag_buffer *buffer, const atomic_bool *stop, iron_error *err);
/* Adds what all threads found, and what they left, to job->sums. */
iron_status iron__bag_finish(iron__bag_job *job, iron__bag_threads *threads, iron_error *err);

/* The next tokens of a pipe; `starts`: where rows begin that begin in them, or NULL. */
iron_status iron__bag_add_pipe(iron__bag_cutter *cutter, const iron__tokens_view *view,
                               const iron__block *starts, iron_error *err);
void iron__bag_finish_pipe(iron__bag_job *job, iron__bag_cutter *cutter);

/* Fills a result; the error is about its struct_size. */
iron_status iron__bag_result_set(iron_bag_result *result, iron_bag bag, iron_bag_cut cut,
                                 iron_error *err);

#endif
