/* SPDX-License-Identifier: MIT */
/*
 * fake_state.h: what the files of the pretended driver share: its objects, the stack of contexts,
 * and how a call begins. The prototypes come from the backend's own table, so that a definition
 * which differs from it does not compile.
 */
#ifndef TESTS_FAKE_STATE_H
#define TESTS_FAKE_STATE_H

#include "fake_cuda.h"

#include "gpu/cuda/cuda_driver.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define DECLARE(name, parameters) EXPORT iron__cu_result name parameters;
IRON_CUDA_FUNCTIONS(DECLARE, DECLARE)
#undef DECLARE

#define KERNELS_MAX 4
#define NODES_MAX   16

#define FAKE_TEXTURE_ALIGNMENT 512

struct iron__cu_context {
    int references, device;
};

struct iron__cu_function {
    char name[32], sizes[32];
    bool is_allowed; /* so much local memory that launches size: */
    size_t dynamic_bytes;
};

typedef struct fake_node {
    enum { SET, COPY, RUN } kind;
    char *to;
    const char *from;
    size_t bytes;
    fake_launch launch;
} fake_node;

typedef struct fake_object {
    struct fake_object *next;
    fake_kind kind;
    iron__cu_context *context;
    iron__cu_function kernels[KERNELS_MAX]; /* of a module */
    char constant[FAKE_CONSTANT_BYTES];
    char *start; /* of memory */
    void *allocated;
    size_t bytes;
    unsigned type, is_managed, is_mapped;
    float time; /* of an event; 0: never recorded */
    struct fake_object *recording;
    fake_node *nodes; /* of a graph, recorded or executable */
    size_t node_count;
} fake_object;

extern fake_cuda fake;
extern fake_object *fake_objects;
extern _Thread_local iron__cu_context *fake_stack[8];
extern _Thread_local int fake_depth;

/* Counts a call; what it is told to fail with, or 0. */
int fake_arrive(const char *name);

fake_object *fake_add(fake_kind kind); /* to the current context */
fake_object *fake_find(fake_kind kind, const void *handle);
void fake_discard(fake_object *o);

/* Giving back: done whenever it can be, and then the failure that was ordered. */
int fake_give_back(const char *name, fake_object *o);

/* Memory of a device's kind, on the device. */
bool fake_is_on_device(uintptr_t address, size_t bytes);

/* May a launch of it have so much local memory? */
bool fake_may_have(const iron__cu_function *function, size_t bytes);

/* Work for a stream; NULL is the default one. */
int fake_submit(const void *stream, const fake_node *n);

#define ARRIVE()                                                                                   \
    do {                                                                                           \
        int code_ = fake_arrive(__func__);                                                         \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

#define REQUIRE(condition, code)                                                                   \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return (code);                                                                         \
    } while (0)

#define ARRIVE_IN_CONTEXT()                                                                        \
    do {                                                                                           \
        ARRIVE();                                                                                  \
        REQUIRE(fake_depth > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);                                  \
    } while (0)

#endif
