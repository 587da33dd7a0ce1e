/* SPDX-License-Identifier: MIT */
/*
 * iron_digest.h: whole streams of files: scans, manifests, parts, differences, statistics.
 *
 * The commands sum, check, diff, merge and stat use these functions. The rules are those of iron.h:
 * functions return a status, err may be NULL, the creator of an object destroys it, NULL may be
 * destroyed. The stable digest of tokens in memory is in iron.h; this header may change from
 * version to version.
 *
 *     iron_scan_options o;
 *     iron_manifest *m = NULL;
 *     iron_digest_result r = {.struct_size = sizeof r};
 *
 *     iron_scan_options_init(&o);
 *     o.chunk_tokens = 1 << 20;
 *     if (iron_scan(source, &o, &m, &err) || iron_manifest_digest(m, &r, &err) ||
 *         iron_manifest_write(m, "corpus.manifest", &err))
 *         ...
 *     iron_manifest_destroy(m);
 */
#ifndef IRON_IRON_DIGEST_H
#define IRON_IRON_DIGEST_H

#include <iron/iron.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Documents of a file as the index beside it divides it (Megatron's and datatrove's), or as the
 * rows of a table do. */
typedef struct iron_documents iron_documents;

/* File `index` of a source. *out is NULL if the file's format does not divide it, or if it is a
 * pipe. */
IRON_API iron_status iron_documents_open(const iron_source *source, size_t index,
                                         iron_documents **out, iron_error *err);
IRON_API void iron_documents_close(iron_documents *documents);
/* Reads where the next documents end, up to `room` of them: positions in the file, each one past
 * the document's last token. *count is 0 at the end. */
IRON_API iron_status iron_documents_read(iron_documents *documents, uint64_t *ends, size_t room,
                                         size_t *count, iron_error *err);

/* Bags: order-free seals. A stream is cut into samples, and each is sealed as a stream of its own.
 * Of each seal's 32 hex digits the first 16 are a number hi and the last 16 a number lo; the bag is
 * the sums of both modulo 2^64, and the number of samples. So the same samples in any order have
 * the same bag, and bags of parts add up. Like seals, bags detect accidents, not an adversary. */

#define IRON_BAG_TEXT     54u /* room for "<hi><lo>-<samples>" */
#define IRON_BAG_CUT_TEXT 32u /* room for "sample=2048" */

/* Zeros: no samples. */
typedef struct iron_bag {
    uint64_t hi, lo, samples;
} iron_bag;

/* How a stream is cut. SAMPLE and EOS cut the whole stream, across files; rows and documents are
 * those of each file. */
typedef enum iron_bag_cut_kind {
    IRON_BAG_CUT_NONE = 0,      /* no bag */
    IRON_BAG_CUT_FORMAT = 1,    /* ROWS or DOCUMENTS, as the files' format says */
    IRON_BAG_CUT_ROWS = 2,      /* of tables */
    IRON_BAG_CUT_DOCUMENTS = 3, /* of indexes beside the files */
    IRON_BAG_CUT_SAMPLE = 4,    /* every `value` tokens; the last sample may be shorter */
    IRON_BAG_CUT_EOS = 5        /* after each token `value`; what follows the last is one more */
} iron_bag_cut_kind;

typedef struct iron_bag_cut {
    iron_bag_cut_kind kind;
    uint64_t value;
} iron_bag_cut;

/* Adds one sample; `tokens` may be NULL if count is 0: an empty sample counts. A call that fails
 * leaves the bag as it was. */
IRON_API iron_status iron_bag_add_sample(iron_bag *bag, iron_dtype dtype, const void *tokens,
                                         size_t count, iron_error *err);
/* Adds the rows of a 2-D array in C order as samples of `length` tokens each. */
IRON_API iron_status iron_bag_add_rows(iron_bag *bag, iron_dtype dtype, const void *tokens,
                                       size_t rows, size_t length, iron_error *err);
/* Adds all samples of another bag. */
IRON_API void iron_bag_merge(iron_bag *bag, const iron_bag *other);
IRON_API void iron_bag_format(const iron_bag *bag, char text[IRON_BAG_TEXT]);
/* Reads what iron_bag_format writes. */
IRON_API iron_status iron_bag_parse(const char *text, iron_bag *bag, iron_error *err);
/* "rows", "documents", "sample=L", "eos=E"; other kinds: "". */
IRON_API void iron_bag_cut_format(const iron_bag_cut *cut, char text[IRON_BAG_CUT_TEXT]);
IRON_API iron_status iron_bag_cut_parse(const char *text, iron_bag_cut *cut, iron_error *err);
/* What FORMAT means for a source: ROWS, DOCUMENTS or, if its files have no cut of their own, NONE.
 * IRON_E_ARG: some have and others have not, or they differ. */
IRON_API iron_status iron_bag_source_cut(const iron_source *source, iron_bag_cut *cut,
                                         iron_error *err);

/* Replaces FORMAT by what it means for the source. IRON_E_ARG: the files have no cut of their own,
 * or the cut's value is impossible. */
IRON_API iron_status iron_bag_cut_resolve(const iron_source *source, iron_bag_cut *cut,
                                          iron_error *err);

typedef struct iron_bag_options {
    uint32_t struct_size;
    uint32_t threads;       /* 0: every CPU */
    iron_bag_cut cut;       /* FORMAT */
    uint64_t first, count;  /* the samples that begin in this range; as in a scan */
    iron_progress progress; /* NULL, or called with the tokens done and the total */
    void *context;
} iron_bag_options;

#define iron_bag_options_init(options)                                                             \
    iron_bag_options_init_sized((options), sizeof(iron_bag_options))
IRON_API void iron_bag_options_init_sized(iron_bag_options *options, size_t struct_size);

typedef struct iron_bag_result {
    uint32_t struct_size; /* set by the caller */
    iron_bag bag;
    iron_bag_cut cut; /* NONE: there is no bag */
    char text[IRON_BAG_TEXT];
    char cut_text[IRON_BAG_CUT_TEXT];
} iron_bag_result;

/* The bag of a source, in one pass at the speed of a scan; of a pipe, by one thread. */
IRON_API iron_status iron_bag_source(iron_source *source, const iron_bag_options *options,
                                     iron_bag_result *result, iron_error *err);

/* Scans. One pass over a source, or over a range of it, at the speed of memory. */

#define IRON_CHUNK_TOKENS (UINT64_C(1) << 20)

typedef struct iron_scan_options {
    uint32_t struct_size;
    uint32_t threads;       /* 0: every CPU */
    uint64_t vocab;         /* 50,257; 1 ... 2^32 */
    uint64_t chunk_tokens;  /* 0: no chunks; else a multiple of 4, at least 1024. With chunks, the
                               manifest also has the seal of every file */
    uint64_t first;         /* of the range: a multiple of 4; 0 for pipes */
    uint64_t count;         /* a multiple of 4, or up to the end; IRON_COUNT_UNKNOWN: to the end */
    uint32_t part, parts;   /* 0, or the range is this part (1 ... parts); recorded only */
    uint32_t device;        /* 0 */
    const char *backend;    /* NULL or "auto", "cpu", "cuda", "opencl" */
    iron_bag_cut bag;       /* NONE; else the manifest also has the bag of the samples that begin
                               in the range */
    iron_progress progress; /* NULL, or called with the tokens done and the total */
    void *context;
    const char *devices; /* NULL: `device`; "all", or numbers: "0,1,3". The files are cut into a
                            range for each; a number may be given more than once */
} iron_scan_options;

#define iron_scan_options_init(options)                                                            \
    iron_scan_options_init_sized((options), sizeof(iron_scan_options))
IRON_API void iron_scan_options_init_sized(iron_scan_options *options, size_t struct_size);

typedef struct iron_manifest iron_manifest;

IRON_API iron_status iron_scan(iron_source *source, const iron_scan_options *options,
                               iron_manifest **out, iron_error *err);
/* Range of part 1 ... parts of a stream: of equal length, rounded to multiples of 4. */
IRON_API iron_status iron_part_range(uint64_t tokens, uint32_t part, uint32_t parts,
                                     uint64_t *first, uint64_t *count, iron_error *err);

/* Manifests: the result of a scan, as an object and as a readable JSON file "iron.manifest/2". */

typedef struct iron_manifest_info {
    uint32_t struct_size; /* set by the caller */
    uint32_t part, parts; /* 0: the whole stream */
    uint64_t first;       /* position of the first token that was scanned */
    uint64_t tokens;      /* how many were scanned */
    uint64_t stream_tokens;
    uint64_t chunk_tokens; /* 0: no chunks */
    uint64_t chunk_count;
    uint64_t vocab;
    size_t file_count;
} iron_manifest_info;

typedef struct iron_manifest_file {
    uint32_t struct_size; /* set by the caller */
    iron_dtype dtype;
    const char *path; /* borrowed from the manifest; as it was given */
    const char *format;
    uint64_t first; /* position of its first token in the stream */
    uint64_t tokens;
    const char *column;      /* of a table; or NULL */
    const char *compression; /* "zstd"; or NULL */
} iron_manifest_file;

IRON_API void iron_manifest_destroy(iron_manifest *manifest);
IRON_API iron_status iron_manifest_describe(const iron_manifest *manifest, iron_manifest_info *info,
                                            iron_error *err);
IRON_API iron_status iron_manifest_file_at(const iron_manifest *manifest, size_t index,
                                           iron_manifest_file *file, iron_error *err);
/* The digest of what was scanned; the words of parts add up. */
IRON_API iron_status iron_manifest_digest(const iron_manifest *manifest, iron_digest_result *result,
                                          iron_error *err);
/* The bag of a scan that made one; else cut.kind is NONE. */
IRON_API iron_status iron_manifest_bag(const iron_manifest *manifest, iron_bag_result *result,
                                       iron_error *err);
/* Replaces the file completely or not at all. */
IRON_API iron_status iron_manifest_write(const iron_manifest *manifest, const char *path,
                                         iron_error *err);
IRON_API iron_status iron_manifest_read(const char *path, iron_manifest **out, iron_error *err);
/* Nonzero: the file looks like a manifest, of any version. */
IRON_API int iron_manifest_is_one(const char *path);
/* Joins the parts of one stream, given in any order. Gaps, overlaps, parts of other streams:
 * IRON_E_FORMAT; the message says which and where. */
IRON_API iron_status iron_manifest_merge(iron_manifest *const *parts, size_t count,
                                         iron_manifest **out, iron_error *err);

/* Checking: are the files of a manifest still what they were? */

typedef enum iron_check_state {
    IRON_CHECK_OK = 0,
    IRON_CHECK_FAILED = 1,  /* other tokens, another number of them, or not such a file any more */
    IRON_CHECK_MISSING = 2, /* the file does not exist */
    IRON_CHECK_ERROR = 3,   /* it could not be opened or read */
    /* Only for manifests of version 1, which have no seals of files: */
    IRON_CHECK_UNCHECKED = 4, /* all of its chunks are shared with missing files */
    IRON_CHECK_PARTLY = 5     /* some of them are; the rest is unchanged */
} iron_check_state;

typedef struct iron_check_options {
    uint32_t struct_size;
    uint32_t threads;       /* 0: every CPU */
    uint32_t takes_missing; /* version 1, nonzero: chunks shared with a missing file are not
                               checked; else the files that share them fail */
    uint32_t device;
    const char *backend; /* as in a scan */
    iron_progress progress;
    void *context;
    const char *devices;
} iron_check_options;

typedef struct iron_check_file {
    uint32_t struct_size; /* set by the caller */
    iron_check_state state;
    const char *path;             /* as the manifest has it; borrowed from the check */
    char reason[240];             /* a sentence, or "" */
    char expected[56], found[56]; /* numbers of tokens, or seals of the file (version 1: of its
                                     first differing chunk), or bags; or "" */
} iron_check_file;

typedef struct iron_check iron_check;

/* Searches for each file under its name, then beside the manifest. A file fails if its seal
 * differs; in version 1, if a chunk does that overlaps it. A manifest that does not match its files
 * otherwise (chunks, seal of the stream, statistics, marks) is damaged: it is listed after its
 * files as one more failed file. The function fails only if the check could not be done. */
IRON_API iron_status iron_check_run(const iron_manifest *manifest,
                                    const iron_check_options *options, iron_check **out,
                                    iron_error *err);
IRON_API void iron_check_destroy(iron_check *check);
IRON_API size_t iron_check_file_count(const iron_check *check);
IRON_API iron_status iron_check_file_at(const iron_check *check, size_t index,
                                        iron_check_file *file, iron_error *err);

/* Differences. */

/* One of two streams: a manifest, or files, or both (then the manifest is of those files). */
typedef struct iron_diff_side {
    const iron_manifest *manifest; /* or NULL; borrowed for the call */
    iron_source *source;           /* NULL: no files; borrowed for the call */
    const char *name;              /* for messages */
} iron_diff_side;

/* What happened to the first stream, A, to make the second, B. */
typedef enum iron_diff_kind {
    IRON_DIFF_EQUAL = 0,
    IRON_DIFF_CHANGED = 1,   /* tokens were replaced by others */
    IRON_DIFF_TRUNCATED = 2, /* B is a beginning of A */
    IRON_DIFF_EXTENDED = 3,  /* A is a beginning of B */
    IRON_DIFF_INSERTED = 4,  /* B has tokens that A does not have */
    IRON_DIFF_DELETED = 5,   /* B lacks tokens of A */
    IRON_DIFF_REORDERED = 6, /* blocks of A are in another order in B */
    IRON_DIFF_REPEATED = 7,  /* B has a block of A once more */
    IRON_DIFF_MOVED = 8,     /* one block of A is in another place in B */
    IRON_DIFF_SHUFFLED = 9   /* B has the samples of A in another order: their bags agree */
} iron_diff_kind;

typedef struct iron_diff_options {
    uint32_t struct_size;
    uint32_t threads;
    uint64_t chunk_tokens; /* 0: the manifests', or IRON_CHUNK_TOKENS */
    iron_bag_cut bag;      /* what a sample is; NONE: rows or documents if both sides have them, or
                              what the manifests' bags say */
    iron_progress progress;
    void *context;
} iron_diff_options;

typedef struct iron_diff_report {
    uint32_t struct_size; /* set by the caller */
    iron_diff_kind kind;
    uint64_t tokens[2];
    uint64_t first;        /* first position that differs, or IRON_COUNT_UNKNOWN: none does */
    uint64_t first_end;    /* first + 1; more where only the chunk is known, not the token */
    uint32_t has_value[2]; /* the token there is known (not past the end, files available) */
    uint32_t value[2];
    uint64_t chunk_tokens;
    uint64_t chunks;           /* of the longer stream */
    uint64_t differing_chunks; /* those in the ranges */
    size_t range_count;        /* outside the ranges both have the same tokens */
    /* The edit; of several, the first. */
    uint64_t position; /* where it begins in B; DELETED, TRUNCATED: in A */
    uint64_t length;   /* tokens */
    uint64_t source;   /* where A has what was repeated or moved, or IRON_COUNT_UNKNOWN */
    uint64_t edits;    /* how many were found; IRON_COUNT_UNKNOWN: tokens of both are needed */
    uint32_t has_more_edits; /* there are more than `edits` */
    iron_bag_cut bag_cut;    /* SHUFFLED: what a sample is */
    uint32_t is_verified; /* seen in all tokens or chunks; else it is what the manifests suggest */
    char text[240];       /* the finding, in a sentence */
} iron_diff_report;

typedef struct iron_diff iron_diff;

IRON_API iron_status iron_diff_run(const iron_diff_side *a, const iron_diff_side *b,
                                   const iron_diff_options *options, iron_diff **out,
                                   iron_error *err);
IRON_API void iron_diff_destroy(iron_diff *diff);
IRON_API iron_status iron_diff_describe(const iron_diff *diff, iron_diff_report *report,
                                        iron_error *err);
/* Range `index` of differing chunks, as positions first ... end-1; nonzero past the last. */
IRON_API int iron_diff_range(const iron_diff *diff, size_t index, uint64_t *first, uint64_t *end);

/* Statistics of a stream, beyond those of a digest. */

#define IRON_STAT_PLACES 8u

typedef struct iron_stat_options {
    uint32_t struct_size;
    uint32_t threads;
    uint64_t vocab;           /* 1 ... 2^32 */
    uint64_t eos;             /* ends a document; IRON_COUNT_UNKNOWN: documents are the rows or
                                 documents of the files, if all have them */
    uint32_t wants_histogram; /* then vocab must be at most 2^26 */
    uint64_t first, count;    /* the range, as in a scan */
    iron_progress progress;
    void *context;
} iron_stat_options;

#define iron_stat_options_init(options)                                                            \
    iron_stat_options_init_sized((options), sizeof(iron_stat_options))
IRON_API void iron_stat_options_init_sized(iron_stat_options *options, size_t struct_size);

typedef struct iron_stat iron_stat;

typedef struct iron_stat_place {
    uint64_t position;
    uint32_t value;
} iron_stat_place;

typedef struct iron_stat_report {
    uint32_t struct_size; /* set by the caller */
    uint32_t min, max;
    uint64_t tokens, zeros;
    uint64_t out_of_vocab;
    size_t place_count; /* of the first tokens that are out of the vocabulary */
    iron_stat_place places[IRON_STAT_PLACES];
    uint64_t run_length, run_position; /* the longest run of one value, the first of its length */
    uint32_t run_value;
    /* Documents. EOS: a document ends with it, or with the stream. ROWS, DOCUMENTS: those of the
     * files. NONE: no documents are known. The median is the length that at least half of the
     * documents do not exceed, p95 the one that 95 of 100 do not: lengths that occur,
     * not means of two. Both are exact up to 2^20 tokens; above, they are at most the true length,
     * and less than 1/1024 below it. Everything else is exact. */
    iron_bag_cut document_cut;
    uint64_t documents, document_min, document_max, document_median, document_p95;
    uint64_t empty_documents; /* only an eos; rows and documents: no tokens */
    double document_mean;     /* lengths count the eos */
    uint32_t is_last_open;    /* the stream does not end with the eos */
    /* With a histogram. */
    uint64_t used_ids, unused_ids;
    double entropy_bits;       /* per token, of those in the vocabulary */
    double entropy_limit_bits; /* if all ids were equally frequent: log2(vocab) */
} iron_stat_report;

IRON_API iron_status iron_stat_source(iron_source *source, const iron_stat_options *options,
                                      iron_stat **out, iron_error *err);
IRON_API void iron_stat_destroy(iron_stat *stat);
IRON_API iron_status iron_stat_describe(const iron_stat *stat, iron_stat_report *report,
                                        iron_error *err);
/* Counts of ids 0 ... vocab-1, or NULL without a histogram. */
IRON_API const uint64_t *iron_stat_histogram(const iron_stat *stat, uint64_t *ids);
/* Appends the range that follows this one directly. */
IRON_API iron_status iron_stat_append(iron_stat *stat, const iron_stat *next, iron_error *err);
/* As words for other processes, in the machine's own byte order. Returns how many words there are;
 * if `room` is less (or NULL and 0), what was written is incomplete. */
IRON_API size_t iron_stat_words(const iron_stat *stat, uint64_t *words, size_t room);
IRON_API iron_status iron_stat_from_words(const uint64_t *words, size_t count, iron_stat **out,
                                          iron_error *err);

/* Histograms: how often each value 0 ... bins-1 occurs, in 64-bit counts. A value without a bin is
 * never dropped: the call fails with IRON_E_FORMAT, its message has the first such value and its
 * position, and nothing of the call is counted. After other errors, of memory or a device, counts
 * are undefined until a reset. Values must be aligned to their width. */

/* Values in host memory, in one call and on every CPU: counts[0] ... counts[bins-1] are set, or
 * left as they were if it fails. bins is 1 ... 2^24. */
IRON_API iron_status iron_histogram(iron_dtype dtype, const void *values, size_t count,
                                    uint64_t *counts, uint64_t bins, iron_error *err);

/* A histogram that values are added to, from host and device memory, in any order. */
typedef struct iron_histogram_context iron_histogram_context;

typedef struct iron_histogram_options {
    uint32_t struct_size; /* set by iron_histogram_options_init */
    uint32_t threads;     /* 0: every CPU; fewer are used if there are very many bins */
    uint64_t bins;        /* must be set: 1 ... 2^24 */
    const char *backend;  /* for add_device: NULL or "auto", "cuda", "opencl" */
    uint32_t device;      /* for add_device: an index for iron_device_at */
} iron_histogram_options;

#define iron_histogram_options_init(options)                                                       \
    iron_histogram_options_init_sized((options), sizeof(iron_histogram_options))
IRON_API void iron_histogram_options_init_sized(iron_histogram_options *options,
                                                size_t struct_size);
IRON_API iron_status iron_histogram_create(const iron_histogram_options *options,
                                           iron_histogram_context **out, iron_error *err);
IRON_API void iron_histogram_destroy(iron_histogram_context *histogram);

/* Positions in messages count all values added so far. */
IRON_API iron_status iron_histogram_add(iron_histogram_context *histogram, iron_dtype dtype,
                                        const void *values, size_t count, iron_error *err);
/* Values in the memory of a GPU, in the order of the caller's stream; returns when they are
 * counted. `values` is a CUDA device pointer or a cl_mem created in the native context; `stream` is
 * a CUstream (NULL: the default stream) or a cl_command_queue of that context. Values are read
 * twice, since they are checked first; u8 and u16 once, if all their values have bins. 64 bits, and
 * pointers that are not multiples of 16, take up to 256 MiB on the device. */
IRON_API iron_status iron_histogram_add_device(iron_histogram_context *histogram, iron_dtype dtype,
                                               const void *values, uint64_t count, void *stream,
                                               iron_error *err);
/* Opens the device and returns its CUcontext or cl_context; NULL on failure, and err says why. */
IRON_API void *iron_histogram_native_context(iron_histogram_context *histogram, iron_error *err);

/* The counts, borrowed until the next call, and how many values were counted (or NULL). */
IRON_API const uint64_t *iron_histogram_counts(const iron_histogram_context *histogram,
                                               uint64_t *total);
/* Adds the counts of another histogram with as many bins. */
IRON_API iron_status iron_histogram_merge(iron_histogram_context *histogram,
                                          const iron_histogram_context *other, iron_error *err);
/* Back to zero; an open device stays open. */
IRON_API void iron_histogram_reset(iron_histogram_context *histogram);

#ifdef __cplusplus
}
#endif

#endif
