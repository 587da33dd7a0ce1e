/* SPDX-License-Identifier: MIT */
/*
 * scan.c: iron_scan: one pass over a stream, or a range of it, that fills a manifest.
 *
 * Options are checked and the manifest is prepared; then the stream is processed in pieces of
 * 256 KiB by all threads (core/thread_pool.h): in order, and the first bad token of the stream is
 * the one reported. Each thread has a buffer and sums of its own, so nothing is shared while a
 * piece is reduced.
 *
 *     files    every thread takes its pieces where they are in the page cache, or reads them into
 *              its buffer, small enough to stay in the second-level cache: memory is read once.
 *              formats/parallel_source.c decides which, and reports truncated files.
 *     pipes    a ring reads ahead (feed/ring.h); the threads share each slot.
 *     GPUs     whole streams without chunks (seal_device.c); files in as many ranges as devices.
 *
 * Without chunks a piece is one call of the seal's fastest row. With chunks the piece is cut at
 * their borders, and each cut goes block by block through the row twice: at the stream's positions,
 * with statistics, and at the chunk's; then once through the marks. If there are several files,
 * the piece is also cut at their borders and sealed at the files' positions, while it is still in
 * the cache. The only file of a stream has the stream's seal. If a bag is wanted, the piece then
 * goes through the thread's cutter (below).
 */
#include "digest/digest_internal.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/number.h"
#include "feed/split.h"
#include "formats/format.h"
#include "formats/source.h"
#include "gpu/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A manifest is JSON of at most 256 MiB; a chunk is a line of at most 96 bytes. */
#define CHUNKS_MAX (UINT64_C(1) << 21)

/* 64 Ki tokens. On a Neoverse V1 (1 MiB of second-level cache per core) 128 to 512 KiB are
 * alike. */
#define PIECE_BYTES ((size_t)256 << 10)

/* Large files, of which each thread has several pieces: 4 MiB, so that a piece that is mapped has
 * page tables of its own. What must be read is read 256 KiB at a time. */
#define LARGE_PIECE_BUFFERS 16u
#define LARGE_PIECES        4u

/* Progress is reported about so often: every 4 MiB, a millisecond. */
#define PROGRESS_BYTES ((size_t)4 << 20)

/* 32 KiB: what is read twice comes from the first-level cache the second time. */
#define BLOCK_TOKENS ((size_t)8192)

/* The buffer holds a piece and the tokens after it that windows reach. */
#define AHEAD_TOKENS (IRON_MARK_TOKENS - 1)
#define AHEAD_BYTES  ((size_t)IRON_MARK_TOKENS * 8)
#define WIDE_BYTES   ((size_t)IRON_WIDEN_TOKENS * sizeof(uint32_t))

/* Fast rows prefetch this far past what they read. Where no memory is mapped, a prefetch takes as
 * long as everything else: so every buffer is followed by that much memory. */
#define SLACK_BYTES ((size_t)IRON_PREFETCH_BYTES)

/* Fewer tokens for each of several devices are sealed sooner than the others are opened. */
#define GPU_RANGE_TOKENS (UINT64_C(1) << 18)

/* Slots of a pipe, as the engine's: 16 MiB stay inside a server's last-level cache. */
#define SLOTS      4u
#define SLOT_BYTES ((size_t)4 << 20)

/* Samples that have so many tokens after the piece they begin in are sealed by all threads. */
#ifndef LONG_TOKENS /* small ones in tests */
#define LONG_TOKENS ((uint64_t)4 << 20)
#endif

/* Samples up to this length are sealed without the rows for long runs, whose setup costs more. */
#define SHORT_TOKENS 64u

/* What is read at first to find the EOS of a piece's last sample. */
#define FIRST_READ_TOKENS 4096u

/* A sample that is too long for the thread that found it. */
typedef struct bag_long {
    uint64_t first, end; /* end: UINT64_MAX if it is not known */
    uint64_t searched;   /* there is no EOS before this position */
} bag_long;

/* The bag of a source. */
typedef struct bag_job {
    const iron_source *source;
    iron_bag_cut cut;       /* never FORMAT */
    bool has_starts;        /* rows or documents */
    uint64_t stream_tokens; /* of files */
    uint64_t *file_starts;  /* of each file, and the end of the last; if has_starts */
    bag_long *longs;
    size_t long_count, long_capacity;
    iron_bag sums;
} bag_job;

/* What a thread has for itself. */
typedef struct bag_cutter {
    _Alignas(IRON_CACHE_LINE) iron_bag_cut cut;
    void *buffer; /* for tokens that the thread reads; of files */
    size_t buffer_tokens;
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
} bag_cutter;

/* The files of the stream, whose seals are wanted. Where a pipe ends is known only once it was
 * read: at the current tokens, starts[0] ... starts[known] are. */
typedef struct file_seals {
    size_t count, known;
    uint64_t *starts;        /* count + 1 positions */
    iron__seal_words *words; /* of each */
} file_seals;

typedef struct scan_job {
    iron_source *source;
    iron_scan_options options; /* checked */
    uint32_t threads;          /* at least 1 */
    iron__gpu_devices devices; /* or the CPU */
    iron_dtype dtype;
    bool is_seekable;
    uint64_t base;  /* where in the source position 0 lies */
    uint64_t first; /* of the range */
    uint64_t count; /* IRON_COUNT_UNKNOWN: known only at the end */
    uint64_t stream_tokens;
    iron_manifest *manifest; /* the result; memory for the chunks of a known range is reserved */
    size_t chunk_capacity;
    pthread_mutex_t mutex;           /* of chunks, files and samples of several pieces */
    const iron__seal_variant *row;   /* the fastest for this processor */
    bool lists_files, samples_files; /* what the manifest says about files */
    bool seals_files;                /* implied by samples and chunks: such manifests are written */
    file_seals files; /* without memory: the seals of files are not wanted, or are the stream's */
    bool is_bag_only; /* neither seals nor statistics are wanted */
    bool has_bag;
    bag_job bag; /* if has_bag */
} scan_job;

/* What a thread has for itself. */
typedef struct worker {
    _Alignas(IRON_CACHE_LINE) iron__seal_words words;
    iron__token_stats stats;
    bool has_bad;       /* an i64 that is no token was added */
    char *buffer;       /* of a piece read from files */
    uint32_t *wide;     /* IRON_WIDEN_TOKENS, followed by SLACK_BYTES */
    bag_cutter *cutter; /* NULL: no bag is wanted */
} worker;

/* The threads, and the tokens that they work on. */
typedef struct workers {
    scan_job *scan;
    iron__thread_pool *pool;
    worker *each;
    bag_cutter *cutters; /* of each */
    size_t piece_tokens;
    uint64_t first, count;     /* of the stream */
    uint64_t ahead;            /* how many more tokens can be read after these */
    iron__parallel_source *at; /* files; or NULL: */
    const char *tokens;        /* in memory */
} workers;

/* Tokens in memory: `view` from position `first` on, a multiple of 4, followed by `ahead` tokens
 * that only complete windows: 15, or all that the stream still has. Only the stream's last piece
 * may have a count that is not a multiple of 4. */
typedef struct piece {
    iron__tokens_view view;
    size_t ahead;
    uint64_t first;
} piece;

/* Options and ranges. */

void iron_scan_options_init_sized(iron_scan_options *options, size_t struct_size) {
    const iron_scan_options defaults = {.vocab = 50257, .count = IRON_COUNT_UNKNOWN};

    iron__struct_init(options, struct_size, &defaults, sizeof defaults);
}

static bool is_on_gpu(const scan_job *s) { return s->devices.backend < iron__gpu_backend_count(); }

/* A range must lie in the stream, begin at a multiple of 4, and end at one or with the stream. */
static iron_status set_range(scan_job *s, bool is_whole, iron_error *err) {
    const iron_scan_options *o = &s->options;
    s->first = o->first;
    s->stream_tokens = iron_source_tokens(s->source);
    if (s->stream_tokens != IRON_COUNT_UNKNOWN)
        s->stream_tokens -= s->base;
    IRON_FAIL_IF(!s->is_seekable && !is_whole, err, IRON_E_ARG,
                 "only files on a disk can be scanned in part; a pipe is scanned whole");
    if (!s->is_seekable) {
        s->count = IRON_COUNT_UNKNOWN;
        return IRON_OK;
    }
    IRON_FAIL_IF(s->first > s->stream_tokens, err, IRON_E_ARG,
                 "a range from position %" PRIu64 " on; the stream has %" PRIu64 " tokens",
                 s->first, s->stream_tokens);
    s->count = o->count == IRON_COUNT_UNKNOWN ? s->stream_tokens - s->first : o->count;
    IRON_FAIL_IF(s->count > s->stream_tokens - s->first, err, IRON_E_ARG,
                 "a range of %" PRIu64 " tokens from position %" PRIu64
                 " on; the stream has %" PRIu64,
                 s->count, s->first, s->stream_tokens);
    if (s->is_bag_only) /* samples may begin anywhere */
        return IRON_OK;
    IRON_FAIL_IF(s->first % 4 != 0 || (s->count % 4 != 0 && s->first + s->count < s->stream_tokens),
                 err, IRON_E_ARG,
                 "a range of positions %" PRIu64 " to %" PRIu64
                 "; it must begin and end at multiples of 4, or end with the stream",
                 s->first, s->first + s->count);
    return IRON_OK;
}

/* How many chunks a known stream makes is known before it is read. For a part, all chunks of the
 * stream count: otherwise only the merge would fail, too late. */
static iron_status check_chunk_count(const scan_job *s, iron_error *err) {
    bool is_part = s->options.parts > 0;
    uint64_t first = is_part ? 0 : s->first, tokens = is_part ? s->stream_tokens : s->count;
    uint64_t size = s->options.chunk_tokens, fits = IRON_CHUNK_TOKENS_MIN;
    uint64_t chunks = iron__manifest_chunks_of(first, tokens, size);

    if (s->count == IRON_COUNT_UNKNOWN || chunks <= CHUNKS_MAX)
        return IRON_OK;
    while (iron__manifest_chunks_of(first, tokens, fits) > CHUNKS_MAX)
        fits *= 2;
    IRON_FAIL(err, IRON_E_ARG,
              "chunks of %" PRIu64 " tokens make %" PRIu64 " chunks of this stream, and a manifest "
              "has at most %" PRIu64 "; use --chunk %" PRIu64,
              size, chunks, CHUNKS_MAX, fits);
}

/* Reports progress; IRON_E_CANCELLED if the caller cancels. */
static iron_status scan_progress(const scan_job *scan, uint64_t done, iron_error *err) {
    const iron_scan_options *o = &scan->options;
    uint64_t total = scan->count != IRON_COUNT_UNKNOWN ? scan->count : scan->stream_tokens;

    return iron__progress(o->progress, o->context, done, total, err);
}

/* Marks: the mark of a chunk: its smallest window, by which content is found again elsewhere.
 * docs/manifest.md defines windows, candidates and hashes. They are part of the format
 * "iron.manifest/2", and of version 1; a change is a new version.
 *
 * The mark of a chunk does not depend on how the chunk was cut into pieces. Four tokens decide
 * whether a window is hashed, so that streams of bytes and streams in which one token is everywhere
 * have candidates too; the test is a loop that compilers vectorise: one loop without branches
 * computes the words of a block and whether a candidate is among them, and only then they are
 * searched. The constant at the end of the word excludes windows of zeros, which padding consists
 * of. */

#define MARK_BLOCK     16u
#define CANDIDATE_BITS 7u

/* k[j] = mix64((j + 1) * IRON_GOLDEN_GAMMA) >> 32; a test computes them again. */
static const uint32_t mark_keys[IRON_MARK_TOKENS] = {
    0xE220A839, 0x6E789E6A, 0x06C45D18, 0xF88BB8A8, 0x1B39896A, 0x53CB9F0C, 0x2C829ABE, 0xC584133A,
    0x3EE57890, 0xF3B8488C, 0x657EECDD, 0xC2D326E0, 0x8621A03F, 0x8E1F7555, 0xB54E0F16, 0x84BB3F97,
};

static inline uint32_t candidate_word(const uint32_t *t) {
    return t[0] * UINT32_C(0x9E3779B1) + t[1] * UINT32_C(0x85EBCA77) + t[2] * UINT32_C(0xC2B2AE3D) +
           t[3] * UINT32_C(0x27D4EB2F) + UINT32_C(0x165667B1);
}

static inline bool is_candidate(uint32_t word) { return word >> (32 - CANDIDATE_BITS) == 0; }

static uint64_t window_hash(const uint32_t tokens[IRON_MARK_TOKENS]) {
    uint64_t sum = 0;

    for (size_t j = 0; j < IRON_MARK_TOKENS; j += 2) {
        uint32_t x = tokens[j] + mark_keys[j], y = tokens[j + 1] + mark_keys[j + 1];

        sum += (uint64_t)x * y;
    }
    return iron__mix64(sum) >> 1;
}

static void add_candidate(const uint32_t *tokens, size_t at, uint64_t offset, iron__chunk *chunk) {
    uint64_t hash;

    /* in a long run of one token each window equals the one before, which precedes it */
    if (at > 0 && memcmp(tokens + at, tokens + at - 1, IRON_MARK_TOKENS * sizeof *tokens) == 0)
        return;
    hash = window_hash(tokens + at);
    if (hash < chunk->mark || (hash == chunk->mark && offset + at < chunk->mark_at)) {
        chunk->mark = hash;
        chunk->mark_at = offset + at;
    }
}

/* Adds the windows that begin at tokens `begin` ... `begin + windows - 1` of the view, which must
 * hold IRON_MARK_TOKENS - 1 more, to the chunk's mark; token `begin` is at `offset` of the chunk.
 * `wide` is scratch memory. */
static void marks_add(const iron__tokens_view *view, size_t begin, size_t windows, uint64_t offset,
                      uint32_t wide[IRON_WIDEN_TOKENS], iron__chunk *chunk) {
    while (windows > 0) {
        size_t count = windows + IRON_MARK_TOKENS - 1;
        const uint32_t *tokens = iron__view_tokens(view, begin, &count, wide);
        size_t some = count - (IRON_MARK_TOKENS - 1);
        size_t at = 0;

        for (; at + MARK_BLOCK <= some; at += MARK_BLOCK) {
            uint32_t words[MARK_BLOCK], smallest = UINT32_MAX;

            for (size_t k = 0; k < MARK_BLOCK; k++) {
                uint32_t word = candidate_word(tokens + at + k);

                words[k] = word;
                smallest = word < smallest ? word : smallest;
            }
            for (size_t k = 0; is_candidate(smallest) && k < MARK_BLOCK; k++)
                if (is_candidate(words[k]))
                    add_candidate(tokens, at + k, offset, chunk);
        }
        for (; at < some; at++)
            if (is_candidate(candidate_word(tokens + at)))
                add_candidate(tokens, at, offset, chunk);
        begin += some;
        offset += some;
        windows -= some;
    }
}

/* Bags: a cutter takes tokens in order, finds where samples begin and end, and seals each sample
 * from its own position 0. Each thread has a cutter, and a piece owns the samples that begin in it.
 * After the piece, the thread reads past its end to finish the last sample. Only samples that go on
 * for LONG_TOKENS more are left to the end, where all threads share them. Of a pipe there is one
 * cutter, which never stops.
 *
 * Where samples begin: every L tokens; after each EOS, which the cutter finds; or where the rows or
 * documents of the files do, which formats/documents.c finds. Empty rows and documents have no
 * tokens and are only counted. */

static void add_empty(iron_bag *bag, uint64_t samples) {
    iron__bag_add(bag, (iron__seal_words){0, 0, 0, 0}, samples);
}

/* The words of a sample of at most SHORT_TOKENS tokens. */
static inline iron__seal_words seal_short(const uint32_t *tokens, size_t count) {
    const uint64_t window = iron__seal_window(0);
    iron__seal_words words = {count, 0, 0, 0};
    size_t rest = count % 4;
    uint32_t quad = 0;

    for (; count - rest > 4 * (size_t)quad; quad++)
        iron__seal_add_quad(&words, tokens + 4 * (size_t)quad, quad, window);
    if (rest > 0) {
        const uint32_t *t = tokens + 4 * (size_t)quad;
        const uint32_t last[4] = {t[0], rest > 1 ? t[1] : 0, rest > 2 ? t[2] : 0, 0};

        iron__seal_add_quad(&words, last, quad, window);
    }
    return words;
}

/* Finding the EOS: blocks without one are skipped by a loop that compilers vectorise. */

#define EOS_BLOCK 64u

#define DEFINE_FIND(name, type)                                                                    \
    static size_t name(const type *tokens, size_t from, size_t count, type wanted) {               \
        for (; count - from >= EOS_BLOCK; from += EOS_BLOCK) {                                     \
            type found = 0;                                                                        \
                                                                                                   \
            for (size_t k = 0; k < EOS_BLOCK; k++)                                                 \
                found = (type)(found | (type)(tokens[from + k] == wanted));                        \
            if (found)                                                                             \
                break;                                                                             \
        }                                                                                          \
        while (from < count && tokens[from] != wanted)                                             \
            from++;                                                                                \
        return from;                                                                               \
    }

DEFINE_FIND(find_u8, uint8_t)
DEFINE_FIND(find_u16, uint16_t)
DEFINE_FIND(find_u32, uint32_t)
DEFINE_FIND(find_u64, uint64_t)

/* The index of the first token from `from` on that is the EOS, or the view's count. */
static size_t find_eos(const iron__tokens_view *view, size_t from, uint64_t eos) {
    size_t width = iron_dtype_bytes(view->dtype);

    if (width < 8 && eos >> (8 * width) != 0)
        return view->count;
    switch (width) {
    case 1:
        return find_u8(view->data, from, view->count, (uint8_t)eos);
    case 2:
        return find_u16(view->data, from, view->count, (uint16_t)eos);
    case 4:
        return find_u32(view->data, from, view->count, (uint32_t)eos);
    default:
        return find_u64(view->data, from, view->count, eos);
    }
}

/* The cutter. */

#define NO_START UINT64_MAX

/* Where the next sample begins, from token `at` of the view on: a position, or NO_START if it is
 * not known. */
static uint64_t next_start(bag_cutter *c, const iron__tokens_view *view, size_t at) {
    switch (c->cut.kind) {
    case IRON_BAG_CUT_SAMPLE:
        return c->start;
    case IRON_BAG_CUT_EOS:
        if (!c->is_after_eos) {
            at = find_eos(view, at, c->cut.value);
            if (at == view->count)
                return NO_START;
            c->is_after_eos = true;
            at++;
        }
        return c->position + at;
    default:
        return c->next < c->starts.place_count ? c->starts.places[c->next] : NO_START;
    }
}

/* The end of the open sample in the view; *is_end is false if it goes on. */
static size_t sample_end(bag_cutter *c, const iron__tokens_view *view, size_t at, bool *is_end) {
    if (c->cut.kind == IRON_BAG_CUT_EOS) {
        at = find_eos(view, at, c->cut.value);
        *is_end = c->is_after_eos = at < view->count;
        return at + *is_end;
    }
    *is_end = c->stop - c->position <= view->count;
    return *is_end ? (size_t)(c->stop - c->position) : view->count;
}

static void close_sample(bag_cutter *c, iron__seal_words words) {
    iron__bag_add(&c->sums, words, 1);
    c->is_open = false;
    c->start = c->stop;
}

/* Adds tokens at ... end-1 to the open sample, which is complete then if is_end. */
static inline void add_to_sample(bag_cutter *c, const iron__tokens_view *view, size_t at,
                                 size_t end, bool is_end) {
    if (is_end && end - at <= SHORT_TOKENS && c->first == c->position + at) {
        size_t count = end - at;
        const uint32_t *tokens = iron__view_tokens(view, at, &count, c->wide);

        close_sample(c, seal_short(tokens, count));
        return;
    }
    iron__seal_view(c->row, view, at, end, c->wide, &c->seal);
    if (is_end)
        close_sample(c, iron__seal_total(&c->seal));
}

/* Short samples of one length that are all in the view: their tokens are widened together. Returns
 * where the first sample begins that is left. */
static size_t add_short_samples(bag_cutter *c, const iron__tokens_view *view, size_t at) {
    size_t length = (size_t)c->cut.value, most = IRON_WIDEN_TOKENS / length * length;

    for (;;) {
        uint64_t position = c->position + at, left = view->count - at;
        size_t count = left < most ? (size_t)left / length * length : most;
        const uint32_t *tokens;

        if (count == 0 || c->end <= position || c->end - position < count)
            return at;
        tokens = iron__view_tokens(view, at, &count, c->wide);
        for (size_t k = 0; k < count; k += length)
            iron__bag_add(&c->sums, seal_short(tokens + k, length), 1);
        at += count;
        c->start = c->position + at;
    }
}

/* The next tokens, which were checked. Neither allocates nor locks. */
static void cut_tokens(bag_cutter *c, const iron__tokens_view *view) {
    bool has_short = c->cut.kind == IRON_BAG_CUT_SAMPLE && c->cut.value <= SHORT_TOKENS;

    for (size_t at = 0, end; at < view->count; at = end) {
        bool is_end;

        if (!c->is_open && has_short && c->start == c->position + at) {
            at = add_short_samples(c, view, at);
            if (at == view->count)
                break;
        }
        if (!c->is_open) {
            uint64_t start = next_start(c, view, at);

            if (start >= c->end || start - c->position >= view->count)
                break;
            at = (size_t)(start - c->position);
            c->is_open = true;
            c->first = start;
            c->seal = (iron__seal){.carried = 0};
            if (c->cut.kind == IRON_BAG_CUT_SAMPLE)
                c->stop = c->cut.value < NO_START - start ? start + c->cut.value : NO_START;
            else if (c->cut.kind != IRON_BAG_CUT_EOS)
                c->stop = ++c->next < c->starts.place_count ? c->starts.places[c->next] : c->after;
        }
        end = sample_end(c, view, at, &is_end);
        add_to_sample(c, view, at, end, is_end);
    }
    c->position += view->count;
}

/* The samples that begin in the scan's range; of a pipe, all. */
static iron_status bag_job_init(scan_job *s, iron_error *err) {
    bag_job *job = &s->bag;
    uint64_t end = s->first + s->count;
    bool is_last;

    *job = (bag_job){.source = s->source, .cut = s->options.bag};
    IRON_TRY(iron_bag_cut_resolve(s->source, &job->cut, err));
    job->has_starts = iron__cut_is_own(job->cut.kind);
    job->stream_tokens = iron_source_tokens(s->source);
    if (!job->has_starts)
        return IRON_OK;
    if (!s->is_seekable) {
        IRON_FAIL_IF(!iron__source_tells_starts(s->source), err, IRON_E_ARG,
                     "rows or documents of files together with a pipe; cut the stream with "
                     "--sample or --eos instead");
        iron__source_note_starts(s->source);
        return IRON_OK;
    }
    job->file_starts = iron__file_starts(s->source, err);
    if (!job->file_starts)
        return IRON_E_NOMEM;
    /* of the parts of an empty stream, the first is the last */
    is_last =
        end == job->stream_tokens && (job->stream_tokens > 0 ? s->count > 0 : s->options.part <= 1);
    add_empty(&job->sums,
              iron__documents_without_tokens(s->source, job->file_starts, s->first, end, is_last));
    return IRON_OK;
}

/* wide: scratch memory, IRON_WIDEN_TOKENS, with IRON_PREFETCH_BYTES after. */
static void cutter_init(bag_cutter *c, const bag_job *job, uint32_t *wide) {
    *c = (bag_cutter){.cut = job->cut,
                      .row = iron__seal_variant_find("champion"),
                      .wide = wide,
                      .is_after_eos = true, /* of a pipe: the first token begins a sample */
                      .end = NO_START};
}

static void cutter_deinit(bag_cutter *c) {
    iron_documents_close(c->walk.documents);
    iron__block_clear(&c->starts);
}

static iron_status take_document(void *context, uint64_t first, uint64_t end, iron_error *err) {
    bag_cutter *c = context;

    if (first == end) {
        add_empty(&c->sums, 1);
        return IRON_OK;
    }
    c->after = c->walk.base + end;
    return iron__block_add_place(&c->starts, c->walk.base + first, err);
}

/* The cutter's next tokens are those of this piece; finds where samples begin in it. */
static iron_status begin_piece(const bag_job *job, bag_cutter *c, iron__parallel_source *at,
                               uint64_t first, uint64_t count, const atomic_bool *stop,
                               iron_error *err) {
    uint64_t length = job->cut.value, before[1];
    iron__tokens_view view = {iron_source_dtype(job->source), before, 1};

    c->position = first;
    c->end = first + count;
    c->is_open = false;
    switch (job->cut.kind) {
    case IRON_BAG_CUT_SAMPLE:
        c->start = first % length ? first + (length - first % length) : first;
        c->start = c->start < first ? NO_START : c->start; /* the sum has overflowed */
        return IRON_OK;
    case IRON_BAG_CUT_EOS:
        c->is_after_eos = first == 0;
        if (first > 0) {
            IRON_TRY(iron__parallel_source_read(at, first - 1, before, 1, stop, err));
            c->is_after_eos = find_eos(&view, 0, length) == 0;
        }
        return IRON_OK;
    default:
        c->starts.place_count = c->next = 0;
        return iron__document_walk_range(&c->walk, job->source, job->file_starts, first, c->end,
                                         take_document, c, stop, err);
    }
}

/* Reads past the piece to finish its last sample. */
static iron_status end_piece(scan_job *scan, bag_cutter *c, iron__parallel_source *at,
                             const atomic_bool *stop, iron_error *err) {
    bag_job *job = &scan->bag;
    bool is_eos = job->cut.kind == IRON_BAG_CUT_EOS;
    size_t want = is_eos ? FIRST_READ_TOKENS : c->buffer_tokens;
    uint64_t limit = c->position + LONG_TOKENS;

    if (c->is_open && (is_eos || c->stop > job->stream_tokens))
        c->stop = job->stream_tokens;
    while (c->is_open && c->position < c->stop) {
        iron__tokens_view view = {iron_source_dtype(job->source), c->buffer, 0};

        if (is_eos ? c->position >= limit : c->stop > limit) { /* left to finish_bag */
            bool has_room;

            c->is_open = false;
            pthread_mutex_lock(&scan->mutex);
            has_room = IRON_ARRAY_GROW(&job->longs, job->long_count, &job->long_capacity);
            if (has_room)
                job->longs[job->long_count++] =
                    (bag_long){c->first, is_eos ? NO_START : c->stop, c->position};
            pthread_mutex_unlock(&scan->mutex);
            return has_room ? IRON_OK : iron__no_memory(err, "samples");
        }
        want = iron__min_size(want, c->buffer_tokens);
        view.count = iron__min_size(want, c->stop - c->position);
        IRON_TRY(iron__parallel_source_read(at, c->position, c->buffer, view.count, stop, err));
        IRON_TRY(iron__stored_check(job->source, c->position, &view, c->position, err));
        cut_tokens(c, &view);
        want *= 4;
    }
    if (c->is_open)
        close_sample(c, iron__seal_total(&c->seal));
    return IRON_OK;
}

/* Long samples: all threads look for the EOS, then all seal the sample. */

typedef struct long_run {
    bag_job *job;
    iron__thread_pool *pool;
    bag_cutter *cutters; /* one per thread */
    iron__parallel_source *at;
    const bag_long *sample;
    uint64_t first, end;
    iron__tokens_use use; /* what is done with their tokens */
    _Atomic uint64_t eos; /* position of the first one found */
} long_run;

/* A piece of a long sample, for one thread. */
typedef struct long_piece {
    long_run *run;
    bag_cutter *c;
    uint64_t first;
    size_t count;
} long_piece;

static iron_status seal_long_piece(void *context, const void *tokens, iron_error *err) {
    const long_piece *p = context;
    const bag_job *job = p->run->job;
    iron__tokens_view view = {iron_source_dtype(job->source), tokens, p->count};
    iron__seal seal = {.words.count = p->first - p->run->sample->first};

    IRON_TRY(iron__stored_check(job->source, p->first, &view, p->first, err));
    iron__seal_view(p->c->row, &view, 0, view.count, p->c->wide, &seal);
    seal.words = iron__seal_total(&seal);
    seal.words.count -= p->first - p->run->sample->first;
    p->c->long_words = iron__seal_merge(p->c->long_words, seal.words);
    return IRON_OK;
}

/* The piece with the first EOS ends the ordered run: it reports that it was cancelled. */
static iron_status search_long_piece(void *context, const void *tokens, iron_error *err) {
    const long_piece *p = context;
    iron__tokens_view view = {iron_source_dtype(p->run->job->source), tokens, p->count};
    size_t at = find_eos(&view, 0, p->run->job->cut.value);

    if (at == view.count)
        return IRON_OK;
    iron__lower(&p->run->eos, p->first + at);
    return iron__fail(err, IRON_E_CANCELLED, 0, "found");
}

static iron_status use_long_piece(void *context, uint32_t thread, uint64_t index,
                                  const atomic_bool *stop, iron_error *err) {
    long_run *run = context;
    bag_cutter *c = &run->cutters[thread];
    size_t tokens = c->buffer_tokens / 4 * 4;
    uint64_t first = run->first + index * tokens, left = run->end - first;
    long_piece p = {run, c, first, tokens < left ? tokens : (size_t)left};
    bool is_used = false;

    IRON_TRY(iron__parallel_source_use(run->at, p.first, p.count, run->use, &p, &is_used, err));
    if (is_used)
        return IRON_OK;
    IRON_TRY(iron__parallel_source_read(run->at, p.first, c->buffer, p.count, stop, err));
    return run->use(&p, c->buffer, err);
}

/* Positions first ... end-1 by all threads. */
static iron_status run_long(long_run *run, uint64_t first, uint64_t end, iron__tokens_use use,
                            iron_error *err) {
    size_t tokens = run->cutters[0].buffer_tokens / 4 * 4;
    iron__ordered_run ordered = {.count = (end - first) / tokens + ((end - first) % tokens != 0),
                                 .piece = use_long_piece,
                                 .context = run};

    run->first = first;
    run->end = end;
    run->use = use;
    return iron__thread_pool_run_ordered(run->pool, &ordered, err);
}

/* Adds what all threads found, each with its cutter, and what they left, to job->sums. */
static iron_status finish_bag(bag_job *job, iron__thread_pool *pool, bag_cutter *cutters,
                              iron__parallel_source *at, iron_error *err) {
    uint32_t threads = iron__thread_pool_threads(pool);

    for (uint32_t k = 0; k < threads; k++)
        iron_bag_merge(&job->sums, &cutters[k].sums);
    for (size_t k = 0; k < job->long_count; k++) {
        const bag_long *sample = &job->longs[k];
        long_run run = {.job = job, .pool = pool, .cutters = cutters, .at = at, .sample = sample};
        iron__seal_words words = {0, 0, 0, 0};
        uint64_t end = sample->end;

        if (end == NO_START) {
            iron_status status;

            atomic_init(&run.eos, NO_START);
            status = run_long(&run, sample->searched, job->stream_tokens, search_long_piece, err);
            end = atomic_load(&run.eos);
            if (status != IRON_OK && end == NO_START)
                return status;
            end = end == NO_START ? job->stream_tokens : end + 1;
        }
        IRON_TRY(run_long(&run, sample->first, end, seal_long_piece, err));
        for (uint32_t i = 0; i < threads; i++) {
            words = iron__seal_merge(words, cutters[i].long_words);
            cutters[i].long_words = (iron__seal_words){0, 0, 0, 0};
        }
        iron__bag_add(&job->sums, words, 1);
    }
    return IRON_OK;
}

/* A bag of a pipe. */

/* The next tokens of a pipe; `starts`: where rows begin that begin in them, or NULL. The starts of
 * rows are those of a list that grows while the pipe is read. A row that begins where
 * the next one begins is empty; so the last one waits for the next. */
static iron_status cut_pipe(bag_cutter *c, const iron__tokens_view *view, const iron__block *starts,
                            iron_error *err) {
    size_t kept = c->starts.place_count - c->next;

    if (starts && c->next > 0) {
        memmove(c->starts.places, c->starts.places + c->next, kept * sizeof *c->starts.places);
        c->starts.place_count = kept;
        c->next = 0;
    }
    for (size_t k = 0; starts && k < starts->place_count; k++) {
        uint64_t start = starts->places[k];

        if (c->has_pending && c->pending == start)
            add_empty(&c->sums, 1);
        else
            IRON_TRY(iron__block_add_place(&c->starts, start, err));
        c->has_pending = true;
        c->pending = start;
    }
    /* the end of an open row may have become known */
    c->after = NO_START;
    if (starts && c->is_open)
        c->stop = c->next < c->starts.place_count ? c->starts.places[c->next] : NO_START;
    cut_tokens(c, view);
    return IRON_OK;
}

static void finish_pipe(bag_job *job, bag_cutter *c) {
    if (c->is_open)
        close_sample(c, iron__seal_total(&c->seal));
    if (c->has_pending && c->pending == c->position)
        add_empty(&c->sums, 1);
    iron_bag_merge(&job->sums, &c->sums);
}

/* Pieces. */

/* Adds tokens begin ... end-1 of the view as `offset` and following, a multiple of 4, of a stream;
 * only at its end their number may be no multiple of 4: the seal pads the last quad with zeros,
 * statistics do not. */
static void add_range(const scan_job *scan, const iron__tokens_view *view, size_t begin, size_t end,
                      uint64_t offset, worker *w, iron__seal_words *words,
                      iron__token_stats *stats) {
    size_t quads = (end - begin) / 4, rest = (end - begin) % 4;

    iron__quads_add(scan->row, view, begin, quads, offset / 4, scan->options.vocab, w->wide, words,
                    stats, view->dtype == IRON_DTYPE_I64 ? &w->has_bad : NULL);
    if (rest > 0) {
        const uint32_t *last =
            iron__view_check_tokens(view, end - rest, &rest, w->wide, &w->has_bad);
        uint32_t quad[4] = {0, 0, 0, 0};
        iron__quads_run run = {quad, 1, offset / 4 + quads, scan->options.vocab};

        memcpy(quad, last, rest * sizeof *quad);
        scan->row->take(&run, words, NULL);
        words->count -= 4 - rest;
        if (stats)
            iron__stats_add(stats, quad, rest, offset + 4 * quads, scan->options.vocab);
    }
}

/* Tokens begin ... end-1 of the piece, all of one chunk, the first of them at `offset` of it. */
static iron__chunk scan_chunk_piece(const scan_job *scan, const piece *p, size_t begin, size_t end,
                                    uint64_t offset, worker *w) {
    iron__tokens_view with_ahead = p->view;
    iron__seal_words words = {0, 0, 0, 0};
    iron__chunk chunk = iron__chunk_empty();
    size_t windows;

    for (size_t at = begin; at < end;) {
        size_t count = iron__min_size(end - at, BLOCK_TOKENS);
        const uint32_t *tokens = iron__view_tokens(&p->view, at, &count, w->wide);
        const iron__tokens_view block = {IRON_DTYPE_U32, tokens, count};

        add_range(scan, &block, 0, count, p->first + at, w, &w->words, &w->stats);
        add_range(scan, &block, 0, count, offset + (at - begin), w, &words, NULL);
        at += count;
    }
    with_ahead.count += p->ahead;
    windows = with_ahead.count < IRON_MARK_TOKENS ? 0 : with_ahead.count - IRON_MARK_TOKENS + 1;
    windows = iron__min_size(windows, end);
    if (windows > begin)
        marks_add(&with_ahead, begin, windows - begin, offset, w->wide, &chunk);
    chunk.t = words.t;
    chunk.a = words.a;
    chunk.b = words.b;
    return chunk;
}

/* Adds the quads of files that begin in the piece; the piece's `ahead` completes the last. */
static void add_files(scan_job *scan, const piece *p, worker *w) {
    const file_seals *files = &scan->files;
    uint64_t end = p->first + p->view.count, readable = end + p->ahead;
    iron__tokens_view view = p->view;

    view.count += p->ahead;
    for (size_t k =
             iron__array_find(files->starts, sizeof *files->starts, files->known + 1, p->first);
         k < files->count && k <= files->known && files->starts[k] < end; k++) {
        uint64_t first = files->starts[k];
        uint64_t tokens = k < files->known ? files->starts[k + 1] - first : readable - first;
        uint64_t from = iron__file_tokens_before(first, tokens, p->first);
        uint64_t to = iron__file_tokens_before(first, tokens, end);
        iron__seal_words words = {0, 0, 0, 0};

        if (from >= to)
            continue;
        add_range(scan, &view, (size_t)(first + from - p->first), (size_t)(first + to - p->first),
                  from, w, &words, NULL);
        if (to - from == tokens && k < files->known) {
            files->words[k] = words; /* no other piece has a part of it */
            continue;
        }
        pthread_mutex_lock(&scan->mutex);
        files->words[k] = iron__seal_merge(files->words[k], words);
        pthread_mutex_unlock(&scan->mutex);
    }
}

static size_t buffer_tokens(iron_dtype dtype) {
    size_t width = iron_dtype_bytes(dtype);

    return PIECE_BYTES / (width < 2 ? 2 : width);
}

/* What is left to scan of a large piece, and who scans it. */
typedef struct piece_rest {
    scan_job *scan;
    worker *w;
    uint64_t first;
    size_t count;
    uint64_t readable; /* tokens from `first` on, also after the piece */
} piece_rest;

/* The tokens after the next `count` ones that windows and quads of files reach. */
static size_t ahead_of(const piece_rest *r, size_t count) {
    bool has_ahead = r->scan->options.chunk_tokens || r->scan->files.words;

    return has_ahead ? iron__min_size(AHEAD_TOKENS, r->readable - count) : 0;
}

static iron_status add_next(piece_rest *r, const void *tokens, size_t count, iron_error *err) {
    scan_job *scan = r->scan;
    bool is_plain = !scan->options.chunk_tokens && !scan->is_bag_only;
    piece p = {
        .view = {scan->dtype, tokens, count}, .ahead = ahead_of(r, count), .first = r->first};

    if (is_plain)
        add_range(scan, &p.view, 0, count, p.first, r->w, &r->w->words, &r->w->stats);
    /* values were checked on the way: i64 as they were narrowed; a negative i32 is the largest */
    if (!is_plain || r->w->has_bad ||
        (scan->dtype == IRON_DTYPE_I32 && r->w->stats.max > INT32_MAX))
        IRON_TRY(iron__stored_check(scan->is_seekable ? scan->source : NULL, scan->base + p.first,
                                    &p.view, p.first, err));
    if (scan->options.chunk_tokens) {
        uint64_t chunk_tokens = scan->options.chunk_tokens;

        for (size_t begin = 0, end; begin < p.view.count; begin = end) {
            uint64_t position = p.first + begin;
            uint64_t offset = position % chunk_tokens;
            iron__chunk *chunk =
                &scan->manifest->chunks[position / chunk_tokens - scan->first / chunk_tokens];
            iron__chunk found;

            end = begin + iron__min_size(p.view.count - begin, chunk_tokens - offset);
            found = scan_chunk_piece(scan, &p, begin, end, offset, r->w);
            if (end - begin == chunk_tokens) {
                *chunk = found; /* no other piece has a part of it */
                continue;
            }
            pthread_mutex_lock(&scan->mutex);
            iron__chunk_add(chunk, &found);
            pthread_mutex_unlock(&scan->mutex);
        }
    }
    if (scan->files.words)
        add_files(scan, &p, r->w);
    if (scan->has_bag && scan->is_seekable)
        cut_tokens(r->w->cutter, &p.view);
    r->first += count;
    r->count -= count;
    r->readable -= count;
    return IRON_OK;
}

/* In steps: what is read twice stays in the second-level cache. */
static iron_status add_mapped(void *context, const void *tokens, iron_error *err) {
    piece_rest *r = context;
    const char *next = tokens;

    while (r->count > 0) {
        size_t some = iron__min_size(buffer_tokens(r->scan->dtype), r->count);

        IRON_TRY(add_next(r, next, some, err));
        next += some * iron_dtype_bytes(r->scan->dtype);
    }
    return IRON_OK;
}

/* A step of it, if the rest is elsewhere. */
static iron_status add_decoded(void *context, const void *tokens, iron_error *err) {
    piece_rest *r = context;

    return add_next(r, tokens, iron__min_size(buffer_tokens(r->scan->dtype), r->count), err);
}

static iron_status scan_piece(void *context, uint32_t index, uint64_t piece_index,
                              const atomic_bool *stop, iron_error *err) {
    const workers *all = context;
    uint64_t offset = piece_index * all->piece_tokens, left = all->count - offset;
    piece_rest r = {.scan = all->scan,
                    .w = &all->each[index],
                    .first = all->first + offset,
                    .count = iron__min_size(all->piece_tokens, left),
                    .readable = left + all->ahead};
    bag_job *bag = all->at && all->scan->has_bag ? &all->scan->bag : NULL;

    if (!all->at)
        return add_next(&r, all->tokens + offset * iron_dtype_bytes(all->scan->dtype), r.count,
                        err);
    /* with the bag of the samples that begin in the piece */
    if (bag)
        IRON_TRY(begin_piece(bag, r.w->cutter, all->at, r.first, r.count, stop, err));
    /* Scans a piece of files: where it is, as far as that is possible, otherwise from the
     * buffer. */
    while (r.count > 0) {
        uint64_t first = r.scan->base + r.first;
        size_t some = iron__min_size(buffer_tokens(r.scan->dtype), r.count);
        bool is_used;

        IRON_TRY(iron__parallel_source_use(all->at, first, r.count + ahead_of(&r, r.count),
                                           add_mapped, &r, &is_used, err));
        if (is_used)
            break;
        IRON_TRY(iron__parallel_source_use(all->at, first, some + ahead_of(&r, some), add_decoded,
                                           &r, &is_used, err));
        if (is_used)
            continue;
        IRON_TRY(iron__parallel_source_read(all->at, first, r.w->buffer, some + ahead_of(&r, some),
                                            stop, err));
        IRON_TRY(add_next(&r, r.w->buffer, some, err));
    }
    return bag ? end_piece(all->scan, r.w->cutter, all->at, stop, err) : IRON_OK;
}

/* The threads. */

static void workers_deinit(workers *all) {
    for (uint32_t k = 0; all->each && k < iron__thread_pool_threads(all->pool); k++) {
        if (all->each[k].cutter)
            cutter_deinit(all->each[k].cutter);
        iron__release(iron__allocator_default(), all->each[k].buffer);
    }
    iron__release(iron__allocator_default(), all->each);
    iron__release(iron__allocator_default(), all->cutters);
    iron__thread_pool_destroy(all->pool);
}

/* At most `tokens` are scanned at a time. To be deinitialised whatever this returns. */
static iron_status workers_init(workers *all, uint64_t tokens, bool reads_files, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    size_t buffer_bytes = reads_files ? PIECE_BYTES + AHEAD_BYTES : 0;
    size_t some = buffer_tokens(all->scan->dtype), large = some * LARGE_PIECE_BUFFERS;
    bool has_large = reads_files && tokens / all->scan->threads >= LARGE_PIECES * large;
    uint64_t pieces;
    uint32_t threads;

    all->piece_tokens = has_large ? large : some;
    pieces = tokens / all->piece_tokens + 1;
    threads = pieces < all->scan->threads ? (uint32_t)pieces : all->scan->threads;
    IRON_TRY(iron__thread_pool_create(threads, memory, &all->pool, err));
    IRON_TRY(IRON_ALLOCATE(&all->each, memory, threads, "the sums of threads", err));
    if (all->scan->has_bag)
        IRON_TRY(IRON_ALLOCATE(&all->cutters, memory, threads, "cutters", err));
    for (uint32_t k = 0; k < threads; k++) {
        worker *w = &all->each[k];

        w->stats = iron__token_stats_neutral();
        IRON_TRY(IRON_ALLOCATE(&w->buffer, memory, buffer_bytes + WIDE_BYTES + SLACK_BYTES,
                               "a reading buffer", err));
        w->wide = (uint32_t *)(void *)(w->buffer + buffer_bytes);
        if (!all->scan->has_bag)
            continue;
        w->cutter = &all->cutters[k];
        cutter_init(w->cutter, &all->scan->bag, w->wide);
        w->cutter->buffer = w->buffer;
        w->cutter->buffer_tokens = buffer_tokens(all->scan->dtype);
    }
    return IRON_OK;
}

static iron_status report_progress(void *context, uint64_t piece_index, iron_error *err) {
    const workers *all = context;
    size_t width = iron_dtype_bytes(all->scan->dtype);
    uint64_t pieces = PROGRESS_BYTES / (width * all->piece_tokens);
    uint64_t done = (piece_index + 1) * all->piece_tokens;

    if (pieces > 1 && piece_index % pieces != 0)
        return IRON_OK;
    return scan_progress(all->scan, all->first - all->scan->first + iron__min(done, all->count),
                         err);
}

/* Scans the tokens set in `all`, which follow those of the run before. */
static iron_status workers_run(workers *all, iron_error *err) {
    iron__ordered_run run = {.count = all->count / all->piece_tokens +
                                      (all->count % all->piece_tokens != 0),
                             .piece = scan_piece,
                             .progress = report_progress,
                             .context = all};
    scan_job *scan = all->scan;
    iron_manifest *m = scan->manifest;
    uint64_t end = all->first + all->count, size = m->chunk_tokens;
    uint64_t needed = iron__manifest_chunks_of(scan->first, end - scan->first, size);
    size_t capacity = scan->chunk_capacity;
    iron__chunk *chunks;

    /* there must be chunks for tokens up to `end` */
    IRON_FAIL_IF(needed > CHUNKS_MAX, err, IRON_E_ARG,
                 "chunks of %" PRIu64 " tokens make more than %" PRIu64
                 " chunks of this stream; use larger ones (--chunk)",
                 size, CHUNKS_MAX);
    if (needed > capacity) {
        /* a known range gets what it needs, a pipe twice as much as before */
        capacity = scan->count != IRON_COUNT_UNKNOWN || needed > 2 * capacity ? (size_t)needed
                                                                              : 2 * capacity;
        chunks = realloc(m->chunks, capacity * sizeof *chunks);
        IRON_FAIL_IF(!chunks, err, IRON_E_NOMEM, "out of memory for %zu chunks", capacity);
        m->chunks = chunks;
        scan->chunk_capacity = capacity;
    }
    for (; m->chunk_count < needed; m->chunk_count++)
        m->chunks[m->chunk_count] = iron__chunk_empty();
    return iron__thread_pool_run_ordered(all->pool, &run, err);
}

/* Adds what all threads found to the manifest; once, after the last run. */
static void workers_finish(const workers *all) {
    iron_manifest *m = all->scan->manifest;

    for (uint32_t k = 0; k < iron__thread_pool_threads(all->pool); k++) {
        m->words = iron__seal_merge(m->words, all->each[k].words);
        m->stats = iron__token_stats_merge(m->stats, all->each[k].stats);
    }
}

static iron_status scan_files(scan_job *scan, iron_error *err) {
    uint64_t before = iron__source_position(scan->source);
    workers all = {.scan = scan,
                   .first = scan->first,
                   .count = scan->count,
                   .ahead = scan->stream_tokens - scan->first - scan->count};
    iron_status status;

    /* positions are the stream's, whatever was read of it before */
    iron__source_seek(scan->source, 0);
    status = iron__parallel_source_open(scan->source, iron__allocator_default(), &all.at, err);
    if (status == IRON_OK)
        iron__parallel_source_set_mapped(all.at);
    if (status == IRON_OK)
        status = workers_init(&all, scan->count, true, err);
    if (status == IRON_OK)
        status = workers_run(&all, err);
    if (status == IRON_OK && scan->has_bag)
        status = finish_bag(&scan->bag, all.pool, all.cutters, all.at, err);
    if (status == IRON_OK)
        workers_finish(&all);
    workers_deinit(&all);
    iron__parallel_source_close(all.at);
    iron__source_seek(scan->source, before);
    return status;
}

/* Pipes. A window that begins at the end of a slot ends in the next one. So a slot is scanned only
 * when the next one is there, whose first tokens are copied after its own: every slot has memory
 * for them. */

typedef struct pipe_scan {
    scan_job *scan;
    iron__ring *ring;
    /* the reader's; the slots' entries are handed over with the slots */
    size_t files_known;
    size_t slot_files_known[SLOTS + 1]; /* how many files end in it or before; all at the end */
    iron__block slot_starts[SLOTS + 1]; /* of rows; the last are those found at the end */
    iron_status starts_status;
    iron_error starts_error;
} pipe_scan;

/* Called by the reader: only here the source can be asked about its files, and about where the rows
 * begin that were just read. */
static void note_slot(void *context, const iron__ring_piece *read) {
    pipe_scan *p = context;
    file_seals *files = &p->scan->files;
    iron__block *starts = &p->slot_starts[read->count > 0 ? read->slot : SLOTS];

    while (files->words && p->files_known < files->count) {
        uint64_t tokens = iron_source_file_tokens(p->scan->source, p->files_known);

        if (tokens == IRON_COUNT_UNKNOWN)
            break;
        files->starts[p->files_known + 1] = files->starts[p->files_known] + tokens;
        p->files_known++;
    }
    p->slot_files_known[read->slot] = p->files_known;
    starts->place_count = 0;
    if (p->scan->has_bag && p->scan->bag.has_starts && p->starts_status == IRON_OK)
        p->starts_status = iron__source_take_starts(p->scan->source, starts, &p->starts_error);
}

/* *slot is SLOTS, and *count 0, at the end. */
static iron_status next_slot(pipe_scan *p, size_t *slot, size_t *count, iron_error *err) {
    *slot = SLOTS;
    IRON_TRY(iron__ring_next(p->ring, slot, count, err));
    if (*count > 0)
        return IRON_OK;
    *slot = SLOTS;
    return p->starts_status == IRON_OK ? IRON_OK : iron__fail_again(err, &p->starts_error);
}

static iron_status scan_slots(workers *all, pipe_scan *p, iron_error *err) {
    size_t width = iron_dtype_bytes(all->scan->dtype), slot, next, next_count;
    iron__tokens_view view = {.dtype = all->scan->dtype};

    p->slot_files_known[SLOTS] = p->scan->files.count;
    IRON_TRY(next_slot(p, &slot, &view.count, err));
    for (;;) {
        /* samples of a pipe follow each other: one thread cuts and seals them */
        const iron__block *starts = p->scan->bag.has_starts ? &p->slot_starts[slot] : NULL;

        if (view.count > 0) {
            char *tokens = iron__ring_slot(p->ring, slot);

            IRON_TRY(next_slot(p, &next, &next_count, err));
            view.data = all->tokens = tokens;
            all->scan->files.known = p->slot_files_known[next];
            all->count = view.count;
            all->ahead = iron__min_size(AHEAD_TOKENS, next_count);
            if (all->ahead > 0)
                memcpy(tokens + view.count * width, iron__ring_slot(p->ring, next),
                       (size_t)all->ahead * width);
            IRON_TRY(workers_run(all, err));
        }
        if (all->scan->has_bag)
            IRON_TRY(cut_pipe(all->each[0].cutter, &view, starts, err));
        if (view.count == 0)
            break;
        all->first += view.count;
        iron__ring_free(p->ring);
        IRON_TRY(scan_progress(all->scan, all->first, err));
        slot = next;
        view.count = next_count;
    }
    if (all->scan->has_bag)
        finish_pipe(&all->scan->bag, all->each[0].cutter);
    return IRON_OK;
}

static iron_status scan_pipe(scan_job *scan, iron_error *err) {
    workers all = {.scan = scan};
    pipe_scan p = {.scan = scan};
    iron__ring_options o = {.source = scan->source,
                            .shape = {1, SLOTS, SLOT_BYTES, 0, IRON_DIRECT_NEVER},
                            .slack_bytes = SLACK_BYTES,
                            .allocator = iron__allocator_default(),
                            .filled = note_slot,
                            .context = &p};
    iron_status status = workers_init(&all, SLOT_BYTES / iron_dtype_bytes(scan->dtype), false, err);

    if (status == IRON_OK)
        status = iron__ring_create(&o, &p.ring, err);
    if (status == IRON_OK)
        status = scan_slots(&all, &p, err);
    if (status == IRON_OK) {
        scan->count = all.first;
        workers_finish(&all);
    }
    iron__ring_destroy(p.ring);
    for (size_t k = 0; k <= SLOTS; k++)
        iron__block_clear(&p.slot_starts[k]);
    workers_deinit(&all);
    return status;
}

/* Whole streams on GPUs: each device has a range of the files (a pipe goes to the first device as a
 * whole), and a ring whose readers fill page-locked slots; the device seals what they hold. A
 * strategy without page-locked slots is fed from ordinary ones. */

typedef struct gpu_scan {
    scan_job *scan;
    iron__thread_pool *pool;
    iron__seal_device device;
    void *slots[IRON_FEED_SLOTS_MAX]; /* the device's, if it has any; else the ring's */
    iron__ring *ring;
    uint64_t first, count; /* of its range; a count of 0: all that comes */
    uint64_t done;
    iron__seal_words words; /* of the range, and its statistics */
    iron__token_stats stats;
} gpu_scan;

static iron_status seal_on_device(gpu_scan *g, uint32_t device, iron_progress progress,
                                  void *of_part, iron_error *err) {
    const iron__gpu_devices *devices = &g->scan->devices;
    uint32_t threads = g->scan->threads / devices->count;
    iron__seal_device_config config = {.backend = devices->backend,
                                       .device = device,
                                       .vocab = g->scan->options.vocab,
                                       .sharers = devices->count,
                                       .allocator = iron__allocator_default()};
    iron__ring_options o = {.source = g->scan->source,
                            .tokens = g->count,
                            .is_shared = g->count > 0,
                            .skip = g->first,
                            .allocator = config.allocator};
    iron__gpu_feed *feed;

    IRON_TRY(iron__thread_pool_create(threads > 0 ? threads : 1, config.allocator, &g->pool, err));
    config.pool = g->pool;
    IRON_TRY(iron__seal_device_open(&g->device, &config, err));
    IRON_TRY(iron__seal_device_begin(&g->device, g->first, err));
    feed = g->device.feed;
    o.shape = feed->shape;
    o.shape.slot_bytes = iron__gpu_feed_slot_bytes(feed, g->scan->dtype);
    if (iron__gpu_feed_has_slots(feed)) {
        IRON_TRY(iron__gpu_feed_slots(feed, g->slots, err));
        o.slots = g->slots;
    }
    IRON_TRY(iron__ring_create(&o, &g->ring, err));
    for (;;) {
        iron__tokens_view view = {.dtype = g->scan->dtype};
        size_t released = 1, slot;

        IRON_TRY(iron__ring_next(g->ring, &slot, &view.count, err));
        if (view.count == 0)
            return iron__seal_device_fetch(&g->device, &g->words, &g->stats, err);
        view.data = iron__ring_slot(g->ring, slot);
        IRON_TRY(iron__view_check(&view, g->first + g->done, err));
        if (o.slots)
            IRON_TRY(iron__gpu_feed_send_slot(feed, slot, view.dtype, view.count, &released, err));
        else
            IRON_TRY(iron__gpu_feed_host(feed, &view, err));
        for (size_t k = 0; k < released; k++)
            iron__ring_free(g->ring);
        g->done += view.count;
        IRON_TRY(iron__progress(progress, of_part, g->done, g->count, err));
    }
}

/* The range of one device. */
static iron_status scan_on_device(void *context, size_t index, iron_progress progress,
                                  void *of_part, iron_error *err) {
    gpu_scan *g = (gpu_scan *)context + index;
    uint32_t device = g->scan->devices.index[index];
    iron_error why = {0};
    iron_status status = seal_on_device(g, device, progress, of_part, &why);

    /* it could not be opened, or its driver has reported an error */
    bool has_failed =
        !g->device.feed || iron__gpu_device_check(g->device.feed->device, NULL) != IRON_OK;

    if (err)
        *err = why;
    if (status != IRON_OK && g->scan->devices.count > 1 && has_failed)
        iron__fail(err, status, why.native, "device %u: %.200s", device, why.text);
    iron__ring_destroy(g->ring); /* its threads end before their slots are freed */
    iron__seal_device_close(&g->device);
    iron__thread_pool_destroy(g->pool);
    return status;
}

/* Ranges begin at multiples of 4, so that their seals add up. */
static iron_status scan_gpus(scan_job *scan, iron_error *err) {
    iron_manifest *m = scan->manifest;
    size_t ranges = scan->is_seekable ? scan->devices.count : 1;
    uint64_t share = scan->is_seekable ? scan->count / ranges / 4 * 4 : 0;
    iron__split split = {.part = scan_on_device,
                         .progress = scan->options.progress,
                         .progress_context = scan->options.context,
                         .total = scan->stream_tokens};
    gpu_scan *all;
    iron_status status;

    if (share < GPU_RANGE_TOKENS) /* too few tokens for more than one */
        ranges = 1;
    split.count = ranges;
    split.context = all = calloc(ranges, sizeof *all);
    IRON_FAIL_IF(!all, err, IRON_E_NOMEM, "out of memory for ranges of devices");
    for (size_t k = 0; k < ranges; k++) {
        all[k].scan = scan;
        all[k].first = k * share;
        if (ranges > 1)
            all[k].count = k + 1 < ranges ? share : scan->count - k * share;
    }
    status = iron__split_run(&split, err);
    m->words = (iron__seal_words){0};
    scan->count = 0;
    for (size_t k = 0; k < ranges; k++) {
        m->words = iron__seal_merge(m->words, all[k].words);
        m->stats = iron__token_stats_merge(m->stats, all[k].stats);
        scan->count += all[k].done;
    }
    free(all);
    return status;
}

/* The manifest. */

/* After the scan: only then the files of a pipe are known. */
static iron_status list_files(const scan_job *s, iron_error *err) {
    iron_manifest *m = s->manifest;
    size_t count = iron_source_file_count(s->source);
    uint64_t next_first = 0;

    IRON_TRY(IRON_NEW(&m->files, count, "a list of files", err));
    for (size_t k = 0; k < count; k++) {
        iron__manifest_entry *f = &m->files[m->file_count++];
        iron_dtype dtype = iron__source_layout(s->source, k)->dtype;
        const char *column = iron_source_file_column(s->source, k);
        const char *compression = iron_source_file_compression(s->source, k);
        bool has_sample = false;
        uint64_t sample = 0;

        f->path = strdup(iron_source_file(s->source, k));
        f->column = column ? strdup(column) : NULL;
        if (!f->path || (column && !f->column))
            return iron__no_memory(err, "a list of files");
        strncpy(f->format, iron_source_file_format(s->source, k), sizeof f->format - 1);
        snprintf(f->compression, sizeof f->compression, "%s", compression ? compression : "");
        f->dtype = dtype == IRON_DTYPE_NONE ? s->dtype : dtype;
        f->first = next_first;
        f->tokens = iron_source_file_tokens(s->source, k);
        if (s->seals_files)
            f->words = s->files.words ? s->files.words[k] : m->words;
        next_first += f->tokens;
        if (s->samples_files)
            IRON_TRY(iron__source_sample(s->source, k, &sample, &has_sample, err));
        if (has_sample)
            snprintf(f->sample, sizeof f->sample, "%016" PRIx64, sample);
    }
    m->has_file_seals = s->seals_files;
    return IRON_OK;
}

static iron_status fill_manifest(scan_job *s, iron_error *err) {
    iron_manifest *m = s->manifest;
    file_seals *files = &s->files;
    size_t count = iron_source_file_count(s->source);

    m->first = s->first;
    m->vocab = s->options.vocab;
    m->part = s->options.part;
    m->parts = s->options.parts;
    m->chunk_tokens = s->options.chunk_tokens;
    m->stats = iron__token_stats_neutral();
    if (s->seals_files && count > 1) { /* one file has the stream's seal */
        files->count = count;
        files->starts = calloc(count + 1, sizeof *files->starts);
        files->words = calloc(count, sizeof *files->words);
        IRON_FAIL_IF(!files->starts || !files->words, err, IRON_E_NOMEM,
                     "out of memory for seals of %zu files", count);
        files->known = s->is_seekable ? count : 0;
        for (size_t k = 0; k < files->known; k++)
            files->starts[k + 1] = files->starts[k] + iron_source_file_tokens(s->source, k);
    }
    if (is_on_gpu(s))
        IRON_TRY(scan_gpus(s, err));
    else if (s->is_seekable)
        IRON_TRY(scan_files(s, err));
    else
        IRON_TRY(scan_pipe(s, err));
    IRON_TRY(iron__source_check_unchanged(s->source, err));
    if (!s->is_seekable)
        s->stream_tokens = s->count;
    m->tokens = s->count;
    m->stream_tokens = s->stream_tokens;
    if (s->has_bag) {
        m->bag = s->bag.sums;
        m->bag_cut = s->bag.cut;
    }
    return s->lists_files ? list_files(s, err) : IRON_OK;
}

iron_status iron__scan(iron_source *source, iron__scan_what what, uint64_t base,
                       const iron_scan_options *options, iron_manifest **out, iron_error *err) {
    const iron_scan_options *o = options;
    scan_job s = {.source = source,
                  .base = base,
                  .row = iron__seal_variant_find("champion"),
                  .dtype = iron_source_dtype(source),
                  .is_seekable = iron__source_is_seekable(source),
                  .lists_files = what == IRON_SCAN_MANIFEST || what == IRON_SCAN_FILE_SEALS,
                  .samples_files = what == IRON_SCAN_MANIFEST,
                  .is_bag_only = what == IRON_SCAN_BAG};
    iron_status status = IRON_OK;
    bool is_whole;

    *out = NULL;
    IRON_TRY(iron__struct_check(o, sizeof *o, "iron_scan_options", err));
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", o->threads, IRON_THREADS_MAX);
    IRON_FAIL_IF(o->vocab < 1 || o->vocab > UINT64_C(1) << 32, err, IRON_E_ARG,
                 "vocab is %" PRIu64 "; it must be 1 to 4294967296", o->vocab);
    IRON_FAIL_IF((o->part == 0) != (o->parts == 0) || o->part > o->parts, err, IRON_E_ARG,
                 "part %u of %u; parts count from 1", o->part, o->parts);
    IRON_TRY(iron__chunk_tokens_check(o->chunk_tokens, err));
    s.options = *o;
    s.seals_files = what == IRON_SCAN_FILE_SEALS || (s.samples_files && o->chunk_tokens > 0);
    s.threads = o->threads ? o->threads : iron__cpu_threads();
    s.has_bag = o->bag.kind != IRON_BAG_CUT_NONE;
    is_whole = o->first == 0 && o->count == IRON_COUNT_UNKNOWN && o->parts == 0;
    /* `auto` is the CPU: files are read no faster than it seals them, and starting a GPU costs more
     * than gigabytes do (8 GiB of page cache: 0.13 s by 16 Xeon cores, 0.47 s by an H200). Chunks
     * and ranges are scanned on the CPU anyhow: a GPU would have to read twice for them. */
    IRON_TRY(iron__gpu_devices_parse(o->devices, o->device, &s.devices, err));
    IRON_TRY(iron__gpu_choose(iron__gpu_is_auto(o->backend) ? "cpu" : o->backend, &s.devices, err));
    IRON_FAIL_IF(is_on_gpu(&s) && (o->chunk_tokens || s.seals_files || s.has_bag || !is_whole), err,
                 IRON_E_UNSUPPORTED,
                 "manifests, parts and bags are made on the CPU; omit --backend %s", o->backend);
    IRON_TRY(set_range(&s, is_whole, err));
    IRON_TRY(check_chunk_count(&s, err));
    IRON_TRY(IRON_NEW(&s.manifest, 1, "a manifest", err));
    pthread_mutex_init(&s.mutex, NULL);
    if (s.has_bag)
        status = bag_job_init(&s, err);
    if (status == IRON_OK)
        status = fill_manifest(&s, err);
    free(s.bag.file_starts);
    free(s.bag.longs);
    pthread_mutex_destroy(&s.mutex);
    free(s.files.starts);
    free(s.files.words);
    if (status == IRON_OK)
        *out = s.manifest;
    else
        iron_manifest_destroy(s.manifest);
    return status;
}

iron_status iron_scan(iron_source *source, const iron_scan_options *options, iron_manifest **out,
                      iron_error *err) {
    return iron__scan(source, IRON_SCAN_MANIFEST, 0, options, out, err);
}
