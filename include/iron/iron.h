/* SPDX-License-Identifier: MIT */
/*
 * iron: reads token streams at the speed of memory.
 *
 * An engine takes a stream of unsigned 32-bit tokens and computes the state of its lattice of
 * nodes, the (xor, sum) of all batches and, on request, the stream's seal. Results are defined bit
 * for bit (docs/semantics.md): they do not depend on the mode, the number of threads, or how the
 * stream is split into calls.
 *
 * A complete program:
 *
 *     #include <iron/iron.h>
 *     #include <inttypes.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *         uint32_t tokens[1000];
 *         iron_error err;
 *         iron_config config;
 *         iron_engine *engine = NULL;
 *         iron_report report = {.struct_size = sizeof report};
 *
 *         iron_config_init(&config);
 *         config.vocab = 50257;
 *         if (iron_generate(1, config.vocab, 0, tokens, 1000, &err) ||
 *             iron_engine_create(&config, &engine, &err) ||
 *             iron_engine_feed(engine, tokens, 1000, &err) ||
 *             iron_engine_end_batch(engine, &err) ||
 *             iron_engine_report(engine, &report, &err)) {
 *             fprintf(stderr, "iron: %s\n", err.text);
 *             iron_engine_destroy(engine);
 *             return iron_status_exit_code(err.status);
 *         }
 *         printf("xor %08" PRIx32 " state %016" PRIx64 "\n", report.xor_total, report.state);
 *         iron_engine_destroy(engine);
 *         return 0;
 *     }
 *
 * Build it with: cc program.c $(pkg-config --cflags --libs iron)
 *
 * Errors. Every call that can fail returns an iron_status; 0 is success. The last parameter, which
 * may be NULL, receives a message: what happened, with which value, and what to do. On failure *out
 * is NULL and nothing leaks. No call ends the process or prints.
 *
 * Ownership.
 *     iron_engine_create, iron_engine_load    caller owns; iron_engine_destroy
 *     iron_lattice_create                     caller owns; iron_lattice_destroy
 *     iron_source_open                        caller owns; iron_source_close
 *     iron_input_files_list                   caller owns; iron_input_files_destroy
 *     iron_output_open                        caller owns; iron_output_commit or _abandon
 *     iron_engine_tokens_alloc                caller owns; iron_engine_tokens_free
 *     iron_digest_init, _load                 caller's storage; iron_digest_deinit
 *     pointers in iron_config                 borrowed for the call, copied where kept (the
 *                                             allocator's table: borrowed for the object's life)
 *     pointers returned by accessors          borrowed until the object's next non-const call
 * destroy, close and abandon accept NULL and do nothing then.
 *
 * Structs. Those with a struct_size only grow at their end. Set it to sizeof the struct; a library
 * with a different version of the struct refuses it.
 *
 * Threads. Different objects may be used from different threads at once; one object from one thread
 * at a time. A lattice is immutable and may be shared.
 */
#ifndef IRON_IRON_H
#define IRON_IRON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define IRON_API __attribute__((visibility("default")))
#else
#define IRON_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Status. */

/* The one list of outcomes: name, value, sentence, HTTP status, exit status of the command.
 * Published values never change their meaning. */
#define IRON_STATUS_MAP(X)                                                                         \
    X(OK, 0, "done", 200, 0)                                                                       \
    X(E_ARG, 1, "invalid argument", 400, 2)                                                        \
    X(E_NOMEM, 2, "out of memory", 507, 2)                                                         \
    X(E_UNSUPPORTED, 3, "not available here", 501, 2)                                              \
    X(E_IO, 4, "input or output failed", 500, 2)                                                   \
    X(E_FORMAT, 5, "malformed data", 422, 2)                                                       \
    X(E_STATE, 6, "not possible in this state", 409, 2)                                            \
    X(E_CANCELLED, 7, "cancelled", 499, 2)                                                         \
    X(E_MISMATCH, 8, "results differ", 500, 1)

typedef enum iron_status {
#define IRON_STATUS_ENUM(name, value, text, http, code) IRON_##name = (value),
    IRON_STATUS_MAP(IRON_STATUS_ENUM)
#undef IRON_STATUS_ENUM
} iron_status;

/* What went wrong; a plain value, so that it can be passed between threads and kept. */
typedef struct iron_error {
    iron_status status;
    int native; /* errno or a driver's error code, or 0 */
    char text[240];
} iron_error;

IRON_API const char *iron_status_name(iron_status status); /* "IRON_E_ARG" */
IRON_API const char *iron_status_text(iron_status status); /* "invalid argument" */
IRON_API int iron_status_exit_code(iron_status status);
IRON_API int iron_status_http_code(iron_status status);

/* The library's version, "MAJOR.MINOR.PATCH". */
IRON_API const char *iron_version(void);

/* Memory. */

/* Allocates an engine's memory: nodes, queues, threads and read-ahead ring. alloc returns `bytes`
 * aligned to `align` (a power of two, at least sizeof(void *)), or NULL; release frees what alloc
 * returned. Called on the thread that calls the library, never on its worker threads. */
typedef struct iron_allocator {
    void *(*alloc)(void *context, size_t bytes, size_t align);
    void (*release)(void *context, void *memory);
    void *context;
} iron_allocator;

/* Tokens. */

/* How tokens are stored. All little-endian. i32 and i64 must hold values in 0 ... 2^32-1. */
typedef enum iron_dtype {
    IRON_DTYPE_NONE = 0,
    IRON_DTYPE_U8 = 1,
    IRON_DTYPE_U16 = 2,
    IRON_DTYPE_U32 = 3,
    IRON_DTYPE_I32 = 4,
    IRON_DTYPE_I64 = 5
} iron_dtype;

/* "u16", or as NumPy names it: "uint16". */
IRON_API iron_status iron_dtype_parse(const char *name, iron_dtype *out, iron_error *err);
IRON_API const char *iron_dtype_name(iron_dtype dtype); /* "u16" */
IRON_API size_t iron_dtype_bytes(iron_dtype dtype);     /* 0 for IRON_DTYPE_NONE */

/* Tokens first ... first+count-1 of gen(seed, limit); limit 1 ... 2^32. */
IRON_API iron_status iron_generate(uint64_t seed, uint64_t limit, uint64_t first, uint32_t *tokens,
                                   size_t count, iron_error *err);

/* The lattice. */

/* 2 ... 64 strictly increasing points in 1 ... 65,535. NULL and 0 mean the default twelve. */
typedef struct iron_lattice iron_lattice;

IRON_API iron_status iron_lattice_create(const uint32_t *points, uint32_t count, iron_lattice **out,
                                         iron_error *err);
IRON_API void iron_lattice_destroy(iron_lattice *lattice);
IRON_API uint32_t iron_lattice_count(const iron_lattice *lattice);
IRON_API const uint32_t *iron_lattice_points(const iron_lattice *lattice);
IRON_API uint32_t iron_lattice_quantize_xor(const iron_lattice *lattice, uint32_t value);
/* For a finite number: 0 for 0, else the point nearest to its magnitude, with its sign. */
IRON_API double iron_lattice_quantize_real(const iron_lattice *lattice, double value);

/* The engine. */

typedef enum iron_positions {
    IRON_POSITIONS_STREAM = 0, /* positions count through the whole stream */
    IRON_POSITIONS_BATCH = 1   /* positions restart at 0 in every batch */
} iron_positions;

/* Call iron_config_init, then change what you need. */
typedef struct iron_config {
    uint32_t struct_size;     /* sizeof(iron_config), set by iron_config_init */
    iron_positions positions; /* IRON_POSITIONS_STREAM */
    uint64_t nodes;           /* 4096; 1 ... 2^20 */
    uint64_t vocab;           /* 50,257; 2 ... 2^31 */
    uint64_t batch;           /* 786,432 tokens; 1 ... , and batch * vocab <= 2^62 */
    const uint32_t *lattice;  /* NULL: the default twelve points */
    uint32_t lattice_count;
    uint32_t with_seal;              /* nonzero: compute the seal of the stream too */
    const float *activations;        /* NULL, or `nodes` finite numbers, 0 or |a| >= 2^-96 */
    const char *backend;             /* NULL or "auto", "cpu", "cuda", "opencl" */
    const char *mode;                /* NULL or "auto", or one of iron_mode_at's names */
    uint32_t device;                 /* 0; an index for iron_device_at; or see `devices` */
    uint32_t threads;                /* 0: every CPU this process may use; at most 1024 */
    const iron_allocator *allocator; /* NULL: malloc */
    const char *memory;              /* how tokens get to a GPU: NULL or "auto", "pageable",
                                        "pinned", "streams", "uvm", "uvm-prefetch", "zero-copy" */
    const char *devices;             /* NULL: `device`; "all", or numbers: "0,1,3" (see below) */
} iron_config;

/* Several devices. An engine with config.devices keeps its nodes on the first of them. Long feeds
 * from host memory and from files are cut into a range of batches per device, which are read and
 * reduced at the same time; the results are the same bit for bit. Pipes, short feeds and tokens in
 * device memory go to the first device alone. "all" stands for every device of the backend (with
 * backend "auto", for every GPU); a number may be given more than once. Only mode champion has
 * several devices. The engine's allocator is used for the first device. */

/* What an engine has computed, over closed batches; open_tokens counts those of the open batch. */
typedef struct iron_report {
    uint32_t struct_size; /* set by the caller: sizeof(iron_report) */
    uint32_t xor_total;   /* of all batches merged */
    uint64_t tokens;
    uint64_t batches;
    uint64_t sum;
    uint64_t state;         /* FNV-1a over xor_accumulators, then potentials */
    uint64_t open_tokens;   /* fed, but in a batch that is not closed yet */
    uint32_t has_seal;      /* the seal covers every token fed, also in the open batch */
    char seal[33];          /* 32 hex digits */
    uint64_t seal_words[4]; /* count, T, A, B */
} iron_report;

typedef struct iron_engine iron_engine;
typedef struct iron_source iron_source;

/* Called now and then during long work with the amount done and the total (UINT64_MAX if unknown).
 * A nonzero return value cancels: the call returns IRON_E_CANCELLED. */
typedef int (*iron_progress)(void *context, uint64_t done, uint64_t total);

/* Sets the defaults above. A macro, so that it passes the struct size of the caller's build. */
#define iron_config_init(config) iron_config_init_sized((config), sizeof(iron_config))
IRON_API void iron_config_init_sized(iron_config *config, size_t struct_size);
IRON_API iron_status iron_engine_create(const iron_config *config, iron_engine **out,
                                        iron_error *err);
IRON_API void iron_engine_destroy(iron_engine *engine);

/* Feeding. The stream may be fed in pieces of any length; batches are cut from the stream, not from
 * the calls. Tokens must be aligned to their width. end_batch closes the open batch early; it does
 * nothing if no batch is open. A call that fails on a bad token leaves the engine as it was before
 * the call; only after feed_source has the engine taken an unspecified part of the source. */
IRON_API iron_status iron_engine_feed(iron_engine *engine, const uint32_t *tokens, size_t count,
                                      iron_error *err);
IRON_API iron_status iron_engine_feed_as(iron_engine *engine, iron_dtype dtype, const void *tokens,
                                         size_t count, iron_error *err);
IRON_API iron_status iron_engine_feed_source(iron_engine *engine, iron_source *source,
                                             iron_progress progress, void *context,
                                             iron_error *err);
IRON_API iron_status iron_engine_end_batch(iron_engine *engine, iron_error *err);

/* From now on, tokens from host memory and from sources that are not below config.vocab are
 * counted, which takes one more pass over tokens in the cache. out_of_vocab returns how many there
 * were; if any, *position and *value are those of the first. */
IRON_API void iron_engine_count_out_of_vocab(iron_engine *engine);
IRON_API uint64_t iron_engine_out_of_vocab(const iron_engine *engine, uint64_t *position,
                                           uint32_t *value);

/* Feeds 32-bit tokens that are already in GPU memory, in the order of the caller's stream and
 * without copying. `tokens` is a CUDA device pointer on the engine's device, aligned to 4 bytes, or
 * a cl_mem created in iron_engine_native_context. `stream` is a CUstream (NULL: the default stream)
 * or a cl_command_queue of that context. Does not wait for the stream: the tokens must not change
 * until the stream has passed this call. Only for engines on a GPU. */
IRON_API iron_status iron_feed_device(iron_engine *engine, const void *tokens, uint64_t count,
                                      void *stream, iron_error *err);
/* The CUcontext or cl_context of an engine; NULL on the CPU. */
IRON_API void *iron_engine_native_context(const iron_engine *engine);

/* Allocates the page-locked memory that feeding from sources needs, so that the first feed does not
 * have to. Optional. */
IRON_API iron_status iron_engine_prepare(iron_engine *engine, iron_error *err);

/* Memory from which this engine reads tokens fastest: page-locked for an engine on a GPU. Free it
 * before the engine is destroyed. */
IRON_API iron_status iron_engine_tokens_alloc(iron_engine *engine, size_t bytes, void **out,
                                              iron_error *err);
IRON_API void iron_engine_tokens_free(iron_engine *engine, void *memory);

/* Results. The three arrays have config.nodes entries. After a device failure xor_accumulators and
 * potentials return NULL: check for it on a GPU. iron_engine_report and every later call then
 * return the device's error, and the engine can only be destroyed. */
IRON_API iron_status iron_engine_report(iron_engine *engine, iron_report *report, iron_error *err);
IRON_API const uint32_t *iron_engine_xor_accumulators(iron_engine *engine);
IRON_API const float *iron_engine_potentials(iron_engine *engine);
IRON_API const float *iron_engine_activations(iron_engine *engine);
/* The configuration in use, with defaults filled in; borrowed from the engine. */
IRON_API const iron_config *iron_engine_config(const iron_engine *engine);
IRON_API const char *iron_engine_backend(const iron_engine *engine);     /* "cpu" */
IRON_API const char *iron_engine_device(const iron_engine *engine);      /* the device's name */
IRON_API const char *iron_engine_mode(const iron_engine *engine);        /* "champion" */
IRON_API const char *iron_engine_mode_reason(const iron_engine *engine); /* a sentence */
IRON_API const char *iron_engine_memory(const iron_engine *engine);      /* "streams" */
/* Estimated seconds for so many tokens in the modes in which every node reads every token; 0 for
 * the other modes, which take as long as reading the tokens. */
IRON_API double iron_engine_seconds_estimate(const iron_engine *engine, uint64_t tokens);

/* Saved states. save needs every batch closed; it writes the complete file or leaves the old one in
 * place. load takes the configuration from the file, and backend, device, devices, mode, memory,
 * threads and allocator from `run` (NULL: defaults). */
IRON_API iron_status iron_engine_save(iron_engine *engine, const char *path, iron_error *err);
IRON_API iron_status iron_engine_load(const char *path, const iron_config *run, iron_engine **out,
                                      iron_error *err);
/* Feeds a source of files like feed_source, and saves the engine to `path` each time that `every`
 * more tokens, rounded up to whole batches, have been fed: a checkpoint, which also records what
 * identifies the files. If the engine was loaded from a checkpoint, the tokens that it has are
 * skipped, and other files are refused; the result is that of an uninterrupted feed, bit for bit.
 * Neither closes the last batch nor saves the final state. */
IRON_API iron_status iron_engine_feed_saving(iron_engine *engine, iron_source *source,
                                             const char *path, uint64_t every,
                                             iron_progress progress, void *context,
                                             iron_error *err);
/* Nonzero if the engine was loaded from a checkpoint that has not been continued: it has the first
 * *done of the *tokens tokens of the files. */
IRON_API int iron_engine_checkpoint(const iron_engine *engine, uint64_t *done, uint64_t *tokens);
/* Checks that save could write there: a regular file or a new name in a writable folder. */
IRON_API iron_status iron_state_path_check(const char *path, iron_error *err);
/* Writes xor_accumulators.npy, potentials.npy and activations.npy into a directory, which is
 * created if it does not exist. */
IRON_API iron_status iron_engine_export_npy(iron_engine *engine, const char *directory,
                                            iron_error *err);
/* Reads exactly `count` activations from a one-dimensional .npy file of <f4 or <f8. */
IRON_API iron_status iron_activations_read(const char *path, float *activations, uint64_t count,
                                           iron_error *err);

/* One stream split over many processes, or ranks (docs/scale.md). */

/* Each process feeds a range of whole batches into its own engine and gets their effect: what they
 * do to any lattice, as plain numbers that can be sent to other processes. An engine that applies
 * the effects in the stream's order equals, bit for bit, an engine that was fed everything.
 *
 *     iron_engine_begin_at(mine, first, &err)                            every rank
 *     iron_engine_feed_range(mine, source, first, count, NULL, NULL, &err)
 *     iron_engine_end_batch(mine, &err)
 *     iron_engine_effect(mine, &effect, additions, &err)
 *     iron_engine_apply(whole, &effect, additions, &err)                 one of them, in order
 *
 * Potentials are floats, in which sums are exact only below 2^24. If a range has so many batches
 * that it could pass that (iron_engine_exact_batches), record the batches and apply them one by
 * one. */
typedef struct iron_effect {
    uint32_t struct_size; /* set by the caller: sizeof(iron_effect) */
    uint32_t xor_total;
    uint64_t position; /* of the first token */
    uint64_t tokens, batches, sum;
    uint64_t kind;          /* hash of the configuration; effects of another one are refused */
    uint64_t seal_words[4]; /* with a seal, of whole quads; then up to three tokens: */
    uint32_t seal_carry[3];
    uint32_t seal_carried;
    uint32_t has_map; /* 0 if the batches were recorded */
    uint8_t map[64];  /* point k of the lattice moves to point map[k] */
} iron_effect;

/* What one batch does: its XOR, and its potential before activations scale it. */
typedef struct iron_batch_effect {
    uint32_t xors;
    float potential;
} iron_batch_effect;

/* Resets the engine so that its first token is at this position of the stream, where a batch begins
 * (with a seal: a multiple of 4). From then on it reports only what it is fed itself. On a GPU the
 * engine needs at least as many nodes as its lattice has points. */
IRON_API iron_status iron_engine_begin_at(iron_engine *engine, uint64_t position, iron_error *err);
/* Feeds tokens first ... first+count-1 of a source of files; progress counts only these. */
IRON_API iron_status iron_engine_feed_range(iron_engine *engine, iron_source *source,
                                            uint64_t first, uint64_t count, iron_progress progress,
                                            void *context, iron_error *err);
/* From now on closed batches are written to `room` (borrowed until the next begin_at) instead of
 * being applied to the engine's own nodes. Must follow begin_at directly. Tokens that would close
 * more than `capacity` batches are refused. Only for engines on the CPU. */
IRON_API iron_status iron_engine_record(iron_engine *engine, iron_batch_effect *room,
                                        size_t capacity, iron_error *err);
/* The effect of all batches since begin_at; every batch must be closed. `additions` receives what
 * they add to each node's potential (config.nodes whole numbers); NULL if the batches were
 * recorded. */
IRON_API iron_status iron_engine_effect(iron_engine *engine, iron_effect *effect,
                                        int32_t *additions, iron_error *err);
/* Joins the effect of the range that follows; the caller adds the additions, node by node. */
IRON_API iron_status iron_effect_join(iron_effect *effect, const iron_effect *next,
                                      iron_error *err);
/* How many more batches can be applied as sums. */
IRON_API uint64_t iron_engine_exact_batches(iron_engine *engine);
/* The effect must begin at the engine's position. A call that fails leaves the engine as it was. */
IRON_API iron_status iron_engine_apply(iron_engine *engine, const iron_effect *effect,
                                       const int32_t *additions, iron_error *err);
/* The same with recorded batches: effect->batches of them, in the stream's order. */
IRON_API iron_status iron_engine_apply_batches(iron_engine *engine, const iron_effect *effect,
                                               const iron_batch_effect *batches, iron_error *err);

/* The digest: tells whether two streams have the same tokens in the same order. */

#define IRON_SEAL_VERSION 1u

/* A stream's seal and the statistics of its values. Pieces may be added in any order and at any
 * position, and digests can be merged. A digest knows which positions it has seen: it refuses a
 * piece that it has seen before and names a gap that is left. Memory: a few words per gap between
 * pieces, freed when the gap closes. The seal is a checksum against accidents, not against an
 * adversary. */
typedef struct iron_digest {
    void *own; /* NULL: not initialised */
} iron_digest;

typedef struct iron_digest_options {
    uint32_t struct_size;            /* sizeof(iron_digest_options) */
    uint32_t threads;                /* 0: every CPU this process may use; at most 1024 */
    uint64_t vocab;                  /* 1 ... 2^32; 0: 50,257. Tokens at or above are counted */
    uint32_t device;                 /* for update_device: an index for iron_device_at */
    const char *backend;             /* for update_device: NULL or "auto", "cuda", "opencl" */
    const iron_allocator *allocator; /* NULL: malloc */
} iron_digest_options;

typedef struct iron_digest_result {
    uint32_t struct_size; /* set by the caller: sizeof(iron_digest_result) */
    uint32_t seal_version;
    char seal[33];     /* 32 hex digits */
    uint64_t words[4]; /* count, T, A, B */
    uint64_t tokens;
    uint64_t vocab;
    uint64_t out_of_vocab;
    uint64_t first_out_position; /* IRON_COUNT_UNKNOWN if all are in the vocabulary */
    uint32_t first_out_value;
    uint32_t min, max; /* without tokens: 4294967295 and 0 */
} iron_digest_result;

/* options: NULL for the defaults. */
IRON_API iron_status iron_digest_init(iron_digest *digest, const iron_digest_options *options,
                                      iron_error *err);
IRON_API void iron_digest_deinit(iron_digest *digest);
/* Adds `count` tokens in memory, aligned to their width, that are at `position` in the stream. A
 * call that fails leaves the digest as it was. */
IRON_API iron_status iron_digest_update(iron_digest *digest, uint64_t position, iron_dtype dtype,
                                        const void *tokens, size_t count, iron_error *err);
/* The same for tokens in GPU memory: a CUDA device pointer, or a cl_mem created in
 * iron_digest_native_context; `stream` is a CUstream (NULL: the default stream) or a
 * cl_command_queue. Waits until the tokens have been read. */
IRON_API iron_status iron_digest_update_device(iron_digest *digest, uint64_t position,
                                               iron_dtype dtype, const void *tokens, uint64_t count,
                                               void *stream, iron_error *err);
IRON_API void *iron_digest_native_context(iron_digest *digest, iron_error *err);
/* Adds everything `other` has seen; both must have the same vocab and no position in common. */
IRON_API iron_status iron_digest_merge(iron_digest *digest, const iron_digest *other,
                                       iron_error *err);
/* The result so far; more can be added later. IRON_E_STATE: a gap before the last position seen. */
IRON_API iron_status iron_digest_final(const iron_digest *digest, iron_digest_result *result,
                                       iron_error *err);
/* Adds the result of another part of the same stream, at other positions, such as a scan of a
 * range: words are added, statistics merged, and the seal is recomputed. The order does not
 * matter. */
IRON_API iron_status iron_digest_result_add(iron_digest_result *result,
                                            const iron_digest_result *other, iron_error *err);
/* The first position that was not seen, and where the gap ends (IRON_COUNT_UNKNOWN: nothing after
 * it was seen, so it is the end and not a gap). */
IRON_API void iron_digest_gap(const iron_digest *digest, uint64_t *first, uint64_t *end);
/* Saves the digest as bytes that any machine can read; *bytes is how many. If `buffer` is NULL,
 * only *bytes is set. load refuses bytes of a newer version and names it. */
IRON_API iron_status iron_digest_save(const iron_digest *digest, void *buffer, size_t room,
                                      size_t *bytes, iron_error *err);
IRON_API iron_status iron_digest_load(iron_digest *digest, const iron_digest_options *options,
                                      const void *buffer, size_t bytes, iron_error *err);

/* Token files. */

#define IRON_COUNT_UNKNOWN UINT64_MAX

/* What a user should know although reading continues. */
typedef enum iron_warning_kind {
    IRON_WARNING_DTYPE = 1,    /* the values of a raw file contradict the dtype */
    IRON_WARNING_SKIPPED = 2,  /* a file of a directory was skipped because it is not tokens */
    IRON_WARNING_UNCHECKED = 3 /* a checksum of a file could not be computed */
} iron_warning_kind;

typedef struct iron_warning {
    iron_warning_kind kind;
    const char *file; /* its path */
    const char *text; /* DTYPE, UNCHECKED: why; SKIPPED: what the file is, "a pickle" */
} iron_warning;

/* Called once for each file; for a pipe, possibly by another thread of the library, while the pipe
 * is read. The warning is valid during the call. */
typedef void (*iron_warn)(void *context, const iron_warning *warning);

/* The formats are raw llmc megatron npy ds litpkds (docs/formats.md). Files that are recognisably
 * not tokens (archives, compressed files, text and so on) are refused unless the format is "raw";
 * those found in directories are skipped with a warning. */
typedef struct iron_source_options {
    uint32_t struct_size;     /* sizeof(iron_source_options) */
    iron_dtype dtype;         /* required for raw data; otherwise IRON_DTYPE_NONE, or it must match
                                 the file's header */
    const char *format;       /* NULL or "auto": detected per file; or a format's name */
    const char *const *paths; /* files, directories (their files in natural order), "-": stdin,
                                 http://, https:// and s3:// addresses */
    size_t path_count;
    uint32_t dtype_is_for_raw;  /* nonzero: files with a header need not match dtype */
    uint32_t is_recursive;      /* nonzero: directories include their subdirectories */
    const char *const *include; /* globs: only files of directories that match one, if any */
    size_t include_count;
    const char *const *exclude; /* globs: without files and subdirectories that match one */
    size_t exclude_count;
    iron_warn warn; /* NULL: no warnings */
    void *warn_context;
    const char *column; /* of tables (arrow, parquet, mds); NULL: input_ids, tokens, token_ids, ids,
                           or the only column of integers */
    uint32_t wants_seekable; /* nonzero: a compressed file that does not tell its length is
                                decompressed once to find it, so that it can be read in parts */
} iron_source_options;

/* Checks everything that can be checked before the first token is read. All files must have tokens
 * of one width. */
IRON_API iron_status iron_source_open(const iron_source_options *options, iron_source **out,
                                      iron_error *err);
IRON_API void iron_source_close(iron_source *source);
IRON_API iron_dtype iron_source_dtype(const iron_source *source);
IRON_API uint64_t iron_source_tokens(const iron_source *source); /* or IRON_COUNT_UNKNOWN */
/* Nonzero: it has no pipes and can be read at any position. */
IRON_API int iron_source_is_seekable(const iron_source *source);
IRON_API size_t iron_source_file_count(const iron_source *source);
IRON_API const char *iron_source_file(const iron_source *source, size_t index);
IRON_API const char *iron_source_file_format(const iron_source *source, size_t index); /* "npy" */
IRON_API uint64_t iron_source_file_tokens(const iron_source *source, size_t index);
/* The column of a table that the tokens are from, or NULL. */
IRON_API const char *iron_source_file_column(const iron_source *source, size_t index);
/* "zstd": how the file is compressed; NULL: it is not. */
IRON_API const char *iron_source_file_compression(const iron_source *source, size_t index);
/* Nonzero: the path is an http://, https:// or s3:// address. */
IRON_API int iron_path_is_remote(const char *path);
/* Reads up to `capacity` tokens in the source's own width; *count is 0 at the end. */
IRON_API iron_status iron_source_read(iron_source *source, void *tokens, size_t capacity,
                                      size_t *count, iron_error *err);

/* The files that the paths stand for, in the order in which a source would read them. Files that do
 * not exist or cannot be read are listed if a directory contains them. */
typedef struct iron_input_files iron_input_files;

IRON_API iron_status iron_input_files_list(const iron_source_options *options,
                                           iron_input_files **out, iron_error *err);
IRON_API void iron_input_files_destroy(iron_input_files *files);
IRON_API size_t iron_input_files_count(const iron_input_files *files);
IRON_API const char *iron_input_files_at(const iron_input_files *files, size_t index);

/* A column of a table. */
typedef struct iron_sniff_column {
    char *name;
    char type[80];      /* "list<int32>" */
    uint32_t is_chosen; /* its integers are the tokens */
} iron_sniff_column;

/* What a file is, and why: from its first bytes, its size and the files beside it, or else guessed
 * from a sample of its values. */
typedef struct iron_sniff_report {
    uint32_t struct_size; /* set by the caller: sizeof(iron_sniff_report) */
    uint32_t is_guess;    /* the file itself does not say */
    iron_dtype dtype;     /* IRON_DTYPE_NONE: could not be guessed */
    char format[16];
    uint64_t bytes;
    uint64_t data_offset; /* of the first token */
    uint64_t tokens;      /* IRON_COUNT_UNKNOWN, also of a table whose column must be chosen */
    uint64_t documents;   /* IRON_COUNT_UNKNOWN if the format does not count them */
    size_t reason_count;
    char reasons[12][160]; /* sentences */
    char compression[8];   /* "zstd": everything else is about what is inside; "": none */
    size_t column_count;   /* of a table */
    iron_sniff_column *columns;
} iron_sniff_report;

/* `column`: of a table, as in iron_source_options. A table without a column of tokens, or with
 * several, is not an error unless a column is given. Also on failure the report has what was found;
 * release it. */
IRON_API iron_status iron_sniff(const char *path, const char *column, iron_sniff_report *report,
                                iron_error *err);
IRON_API void iron_sniff_report_deinit(iron_sniff_report *report);

/* An output file that appears under its name complete and synced, or not at all. "-" is standard
 * output; an existing device or pipe is written directly; a directory is refused. */
typedef struct iron_output iron_output;

IRON_API iron_status iron_output_open(const char *path, iron_output **out, iron_error *err);
IRON_API iron_status iron_output_write(iron_output *output, const void *data, size_t bytes,
                                       iron_error *err);
/* Frees the output, also when it fails. */
IRON_API iron_status iron_output_commit(iron_output *output, iron_error *err);
IRON_API void iron_output_abandon(iron_output *output);
/* The temporary name that a signal handler should unlink, or NULL if there is none yet. */
IRON_API const char *iron_output_temporary(const iron_output *output);

/* Backends, devices and modes of this machine. */

typedef struct iron_backend_info {
    uint32_t struct_size; /* set by the caller */
    uint32_t is_available;
    const char *name; /* "cpu", "cuda", "opencl" */
    char reason[240]; /* why it is not available, or "" */
} iron_backend_info;

typedef struct iron_device_info {
    uint32_t struct_size; /* set by the caller */
    uint32_t is_gpu;      /* `auto` only uses GPUs */
    uint32_t units;       /* multiprocessors, compute units */
    uint32_t version;     /* compute capability or OpenCL version, 9.0 as 900 */
    uint64_t memory_bytes;
    uint64_t cache_bytes; /* last level; 0 unknown */
    char name[96];
    char driver[96];
    char memory[200]; /* supported strategies, "pageable pinned streams" */
} iron_device_info;

typedef struct iron_mode_info {
    uint32_t struct_size; /* set by the caller */
    uint32_t is_available;
    const char *name;    /* "champion" */
    const char *variant; /* its registry row here: "tokens.cpu.champion.neon" */
    const char *idea;
} iron_mode_info;

typedef struct iron_cpu_info {
    uint32_t struct_size;                   /* set by the caller */
    uint32_t threads;                       /* CPUs this process may use */
    uint64_t l1d_bytes, l2_bytes, l3_bytes; /* of the first CPU; 0 unknown */
    uint64_t memory_bytes;
    char name[96];
    char features[96]; /* "neon sha3" */
} iron_cpu_info;

IRON_API size_t iron_backend_count(void);
IRON_API iron_status iron_backend_at(size_t index, iron_backend_info *info, iron_error *err);
/* Devices of "cuda" and "opencl"; for the CPU see iron_cpu_describe. */
IRON_API size_t iron_device_count(const char *backend);
IRON_API iron_status iron_device_at(const char *backend, size_t index, iron_device_info *info,
                                    iron_error *err);
/* Modes of a backend, without `auto`. */
IRON_API size_t iron_mode_count(const char *backend);
IRON_API iron_status iron_mode_at(const char *backend, size_t index, iron_mode_info *info,
                                  iron_error *err);
/* Registry rows of the tokens op on a backend; every row's name is also accepted as a mode. */
IRON_API size_t iron_variant_count(const char *backend);
IRON_API iron_status iron_variant_at(const char *backend, size_t index, iron_mode_info *info,
                                     iron_error *err);
IRON_API iron_status iron_cpu_describe(iron_cpu_info *info, iron_error *err);

/* Libraries that are loaded when a file needs them. */

typedef struct iron_library_info {
    uint32_t struct_size; /* set by the caller */
    uint32_t is_available;
    const char *name;    /* what it reads: "zstd"; "remote": http, https and s3 addresses */
    const char *library; /* "libzstd.so.1" */
    const char *package; /* of Debian: "libzstd1" */
    const char *version; /* NULL: not asked */
} iron_library_info;

/* Codecs of compressed files and columns. */
IRON_API size_t iron_codec_count(void);
IRON_API iron_status iron_codec_at(size_t index, iron_library_info *info, iron_error *err);
/* What remote files are read with. */
IRON_API iron_status iron_remote_describe(iron_library_info *info, iron_error *err);

#ifdef __cplusplus
}
#endif

#endif
