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

#ifdef __cplusplus
}
#endif

#endif
