/* SPDX-License-Identifier: MIT */
/*
 * iron_peer.h: how another library takes part in a race: a shared library named
 * libiron-peer-<name>.so with one function, iron_peer_list_get, that returns a table of rows.
 *
 * `iron arena` looks for such libraries beside its own executable and in <libdir>/iron/peers; if
 * IRON_PEERS names a folder, only there. A peer that cannot be loaded is left out, and `iron arena
 * --list` says why.
 *
 * A row computes what its op's contract says, into `output`, and is checked like any contender. A
 * row that computes something else (a hash, a plain sum) takes part for its speed; it checks
 * itself.
 *
 *   static const iron_peer rows[] = {{.struct_size = sizeof rows[0], .name = "atax.cpu.mine" ...}};
 *   static const iron_peer_list list = {IRON_PEER_ABI, "mine", "1.0", rows, 1};
 *   const iron_peer_list *iron_peer_list_get(void) { return &list; }
 */
#ifndef IRON_IRON_PEER_H
#define IRON_IRON_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IRON_PEER_ABI 1u

/* What to compute, and where. On the CPU pointers are the host's. On CUDA inputs and output are
 * device memory of that device's primary context, and stream is a CUstream; no context is current
 * when a function is called: get the device of a pointer and set it (cudaPointerGetAttributes,
 * cudaSetDevice). Pointers stay the same from open to close; the inputs are filled when run is
 * called. */
typedef struct iron_peer_case {
    uint32_t struct_size;
    uint32_t threads;    /* CPU: number of threads to use */
    const char *dtype;   /* "f32" */
    uint64_t rows, cols; /* one-dimensional ops: rows elements, cols is 1 */
    uint32_t vocab;
    uint32_t input_count;
    const void *inputs[4];
    size_t input_bytes[4];
    void *output;
    size_t output_bytes;
    void *stream;
    /* Other parameters of the case, named as in reports and separated by blanks: "reach=grid",
     * "stride=8 ways=8". Absent if struct_size ends before it: an older iron. */
    char params[96];
} iron_peer_case;

/* Functions return 0, or another value with `why` filled: one line, zero-terminated. */
typedef struct iron_peer {
    uint32_t struct_size;
    const char *name;   /* op.backend.library: "atax.cpu.openblas" */
    const char *idea;   /* "two gemv" */
    const char *dtypes; /* "f32 f64" */
    double passes;      /* how many times it reads the big input from memory; 0: once */
    int (*open)(const iron_peer_case *c, void **state, char *why, size_t why_size);
    /* CUDA: only puts work into the stream. */
    int (*run)(void *state, char *why, size_t why_size);
    void (*close)(void *state);
    /* NULL: the op's own check. Else: is `output` (host memory) right for these inputs, which
     * are in host memory on every backend? */
    int (*check)(const iron_peer_case *host, const void *output, char *why, size_t why_size);
} iron_peer;

typedef struct iron_peer_list {
    uint32_t abi;        /* IRON_PEER_ABI */
    const char *library; /* "OpenBLAS" */
    const char *version; /* of the library: "0.3.21" */
    const iron_peer *rows;
    size_t count;
} iron_peer_list;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const iron_peer_list *
iron_peer_list_get(void);

/* The other way to take part, with one file and no table: `iron arena --contender FILE` compiles a
 * C file, or takes a shared library, with
 *
 *   const char iron_contender[] = "iron: op histogram";
 *   int iron_run(const iron_peer_case *c) { ...; return 0; }
 *
 * and calls iron_run in a process of its own for every pass; 0 is success. Inputs may not be
 * written; they and the output may be elsewhere each time. A C file is compiled with ELEMENT, the
 * type of the elements, VOCAB, and the case's parameters in capitals (BINS=256, REACH=1 for the
 * second word of the parameter `reach`). */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int iron_run(const iron_peer_case *c);

/* An op of one's own: the same file, or another one without a contender, brings it. Lines in it
 * ("iron: ..."; in a shared library one string with line feeds) describe the op:
 *
 *   new op smooth                     its name; contenders in other files write "op smooth"
 *   contract TEXT                     what it computes, in one sentence
 *   why TEXT                          (optional) what its race shows
 *   types f32 f64                     (optional) the usual type first: f32 f64 u8 u16 u32
 *   shape matrix                      (optional) sizes are ROWSxCOLS, not a number of rows
 *   parameter radius 1,8              (optional, at most two) values that race: words or numbers
 *   input x rows * element            the bytes of each input, one to four
 *   output rows * element             of the output
 *   reference rows * 8                (optional) of the reference; default: as the output
 *   bytes 2 * rows * element          that every contender must move: rates are in these
 *   operations rows                   (optional) for the roofline
 *   bound copy                        (optional) the ceiling to compare with; default: read
 *   vocab 50257                       (optional) the usual --vocab, for u32
 *
 * Bytes are expressions of + - * / % ( ), numbers, rows, cols, element (bytes of one), VOCAB and
 * parameters in capitals. The file is compiled twice: with IRON_OP defined, as C, for these
 * functions, and without it for the contender. The functions run in processes of their own, which
 * contenders cannot read; they return 0 for success. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
/* Fills the inputs: other data for each seed, the same for the same. */
int iron_op_generate(const iron_peer_case *c, void *const *inputs, uint64_t seed);
/* Computes what iron_op_check compares answers with. */
int iron_op_reference(const iron_peer_case *c, void *reference);
/* (optional; default: the output must equal the reference in every bit) Is the output right? 0, or
 * another value with `why` filled: the first difference. */
int iron_op_check(const iron_peer_case *c, const void *reference, const void *output, char *why,
                  size_t why_size);
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

/* Random number `index` of a seed, in any order (splitmix64). */
static inline uint64_t iron_peer_random(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

#ifdef __cplusplus
}
#endif

#endif
