/* SPDX-License-Identifier: MIT */
/*
 * fake_cuda.c: a fake NVIDIA driver, to test the CUDA backend without a card and in situations that
 * no card can be brought into.
 *
 * Device memory is host memory. Streams execute commands at once, or record them for a graph.
 * Kernels have names and arguments; a launch is written down. Handles are looked up in one list, so
 * a stale one is an error. Memory is found by address, with a type, an owner and an end; an access
 * beyond an allocation is CUDA_ERROR_INVALID_VALUE here, where the real driver might say nothing.
 * Everything but queries about devices needs a current context. When a context is destroyed, its
 * objects are destroyed with it and counted as orphans.
 *
 * A call that is told to fail does nothing. The exception follows the real driver: releasing an
 * object, and popping a context, always works and returns the failure afterwards. All kernels use
 * the same resources. Time advances by 1.5 ms per recorded event. One thread at a time, except for
 * queries about devices.
 *
 * The prototypes come from the backend's list of functions, so a definition that differs does not
 * compile. The library is linked with -Bsymbolic: tests remove a symbol by patching a copy, which
 * must still load where the library itself refers to that symbol.
 */
#include "fake_cuda.h"

#include "gpu/cuda/cuda_abi.h"

#include <stdint.h>
#include <stdio.h>
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
    bool has_dynamic_bytes; /* dynamic_bytes was set */
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

#define INITIALLY                                                                                  \
    .version = 13000, .devices = FAKE_CUDA_DEVICES, .capability = 90, .has_managed = 1,            \
    .has_concurrent_managed = 1, .maps_host = 1, .is_cooperative = 1,                              \
    .memory_bytes = (size_t)64 << 20, .groups_max = 264, .registers = 40, .spill_bytes = 24,       \
    .static_bytes = 1024, .persisting_max = 30 << 20, .window_max = 48 << 20,                      \
    .grant_max = SIZE_MAX, .texture_max = 1 << 20

static fake_cuda fake = {INITIALLY};
static fake_object *fake_objects;
static _Thread_local iron__cu_context *fake_stack[8];
static _Thread_local int fake_depth;

static iron__cu_context contexts[FAKE_CUDA_DEVICES] = {{0, 0}, {0, 1}};

EXPORT fake_cuda *fake_cuda_control(bool resets);

fake_cuda *fake_cuda_control(bool resets) {
    if (resets) {
        fake_cuda fresh = {INITIALLY};

        memcpy(fresh.live, fake.live, sizeof fresh.live);
        memcpy(&fake, &fresh, sizeof fake);
    }
    return &fake;
}

static int fake_arrive(const char *name) {
    unsigned number = atomic_fetch_add(&fake.calls, 1) + 1;

    if (fake.fail_at == 0 || number < fake.fail_at ||
        (number > fake.fail_at && !fake.keeps_failing))
        return IRON_CUDA_SUCCESS;
    if (!fake.failed)
        fake.failed = name;
    return fake.fail_with;
}

static fake_object *fake_add(fake_kind kind) {
    fake_object *o = calloc(1, sizeof *o);

    if (!o)
        abort();
    o->kind = kind;
    o->context = fake_stack[fake_depth - 1];
    o->next = fake_objects;
    fake_objects = o;
    fake.live[kind]++;
    return o;
}

static fake_object *fake_find(fake_kind kind, const void *handle) {
    for (fake_object *o = fake_objects; o; o = o->next)
        if (o == handle && o->kind == kind)
            return o;
    return NULL;
}

static void fake_discard(fake_object *o) {
    fake_object **link = &fake_objects;

    while (*link != o)
        link = &(*link)->next;
    *link = o->next;
    fake.live[o->kind]--;
    free(o->allocated);
    free(o->nodes);
    free(o);
}

static int fake_release(const char *name, fake_object *o) {
    int code = fake_arrive(name);

    REQUIRE(fake_depth > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(o, IRON_CUDA_ERROR_INVALID_HANDLE);
    if (o->recording)
        fake_discard(o->recording);
    fake_discard(o);
    return code;
}

static void perform(const fake_node *n) {
    if (n->kind == SET) {
        memset(n->to, 0, n->bytes);
    } else if (n->kind == COPY) {
        memcpy(n->to, n->from, n->bytes);
    } else {
        fake.last = n->launch;
        fake.launches++;
    }
}

static int fake_submit(const void *stream, const fake_node *n) {
    fake_object *s = fake_find(FAKE_STREAM, stream), *graph;

    REQUIRE(s || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    fake.default_stream_commands += !s;
    graph = s ? s->recording : NULL;
    if (!graph) {
        perform(n);
        return IRON_CUDA_SUCCESS;
    }
    REQUIRE(graph->node_count < NODES_MAX, IRON_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    graph->nodes[graph->node_count++] = *n;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuInit(unsigned flags) {
    ARRIVE();
    REQUIRE(flags == 0, IRON_CUDA_ERROR_INVALID_VALUE);
    return fake.devices ? IRON_CUDA_SUCCESS : IRON_CUDA_ERROR_NO_DEVICE;
}

iron__cu_result cuDriverGetVersion(int *version) {
    ARRIVE();
    *version = fake.version;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuGetErrorName(iron__cu_result code, const char **name) {
#define ROW(text, value) {#text, value},
    static const struct {
        const char *name;
        int code;
    } rows[] = {IRON_CU_VALUES(ROW)};
#undef ROW

    *name = NULL;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0] && !*name; k++)
        if (rows[k].code == code && strncmp(rows[k].name, "CUDA_", 5) == 0)
            *name = rows[k].name;
    return *name ? IRON_CUDA_SUCCESS : IRON_CUDA_ERROR_INVALID_VALUE;
}

iron__cu_result cuGetErrorString(iron__cu_result code, const char **text) {
    *text = code == IRON_CUDA_ERROR_NO_DEVICE       ? "no CUDA-capable device is detected"
            : code == IRON_CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
                                                    : "a driver text";
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceGetCount(int *count) {
    ARRIVE();
    *count = fake.devices;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceGet(iron__cu_device *device, int ordinal) {
    ARRIVE();
    REQUIRE(ordinal >= 0 && ordinal < fake.devices, IRON_CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceGetName(char *name, int size, iron__cu_device device) {
    ARRIVE();
    snprintf(name, (size_t)size, "Fake card %d", device);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceGetPCIBusId(char *name, int size, iron__cu_device device) {
    ARRIVE();
    snprintf(name, (size_t)size, "0000:%02X:00.0", device + 0x1a);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceTotalMem_v2(size_t *bytes, iron__cu_device device) {
    (void)device;
    ARRIVE();
    *bytes = fake.memory_bytes;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceGetAttribute(int *value, iron__cu_device_attribute attribute,
                                     iron__cu_device device) {
    const struct {
        int attribute, value;
    } rows[] = {
        {IRON_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {IRON_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {IRON_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, fake.maps_host},
        {IRON_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
        {IRON_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, fake.capability / 10},
        {IRON_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, fake.capability % 10},
        {IRON_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, fake.has_managed},
        {IRON_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, fake.has_concurrent_managed},
        {IRON_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, fake.is_cooperative},
        {IRON_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, FAKE_LOCAL_BYTES},
        {IRON_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {IRON_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, fake.persisting_max},
        {IRON_CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, fake.window_max},
        {IRON_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, FAKE_TEXTURE_ALIGNMENT},
    };

    (void)device;
    ARRIVE();
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].attribute == attribute) {
            *value = rows[k].value;
            return IRON_CUDA_SUCCESS;
        }
    return IRON_CUDA_ERROR_INVALID_VALUE;
}

iron__cu_result cuDevicePrimaryCtxRetain(iron__cu_context **context, iron__cu_device device) {
    ARRIVE();
    *context = &contexts[device];
    if (contexts[device].references++ == 0)
        fake.live[FAKE_CONTEXT]++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDevicePrimaryCtxRelease_v2(iron__cu_device device) {
    int code = fake_arrive(__func__);

    REQUIRE(contexts[device].references > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    if (--contexts[device].references > 0)
        return code;
    fake.live[FAKE_CONTEXT]--;
    fake.reserved[device] = 0;
    for (fake_object *o = fake_objects, *next; o; o = next) {
        next = o->next;
        if (o->context == &contexts[device]) {
            fake.orphans++;
            fake_discard(o);
        }
    }
    return code;
}

iron__cu_result cuCtxPushCurrent_v2(iron__cu_context *context) {
    ARRIVE();
    REQUIRE(context && context->references > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    fake_stack[fake_depth++] = context;
    fake.contexts_pushed++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuCtxPopCurrent_v2(iron__cu_context **context) {
    int code = fake_arrive(__func__);

    REQUIRE(fake_depth > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    *context = fake_stack[--fake_depth];
    fake.contexts_pushed--;
    return code;
}

iron__cu_result cuCtxSynchronize(void) {
    ARRIVE_IN_CONTEXT();
    fake.synchronizations++;
    return IRON_CUDA_SUCCESS;
}

static fake_object *memory_at(uintptr_t address, size_t bytes) {
    for (fake_object *o = fake_objects; o; o = o->next)
        if (o->kind == FAKE_MEMORY && address >= (uintptr_t)o->start &&
            address + bytes <= (uintptr_t)o->start + o->bytes)
            return o;
    return NULL;
}

static bool fake_is_on_device(uintptr_t address, size_t bytes) {
    const fake_object *o = memory_at(address, bytes);

    return o && (o->type == IRON_CU_MEMORYTYPE_DEVICE || o->is_mapped);
}

static size_t free_bytes(unsigned type) {
    size_t used = 0;

    for (fake_object *o = fake_objects; o; o = o->next)
        if (o->kind == FAKE_MEMORY && o->type == type && o->context == fake_stack[fake_depth - 1])
            used += o->bytes;
    return fake.memory_bytes - used;
}

static int allocate(size_t bytes, unsigned type, fake_object **out) {
    fake_object *o;

    REQUIRE(bytes > 0, IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(bytes <= free_bytes(type), IRON_CUDA_ERROR_OUT_OF_MEMORY);
    o = fake_add(FAKE_MEMORY);
    o->allocated = aligned_alloc(FAKE_TEXTURE_ALIGNMENT,
                                 (bytes + fake.misalignment + FAKE_TEXTURE_ALIGNMENT - 1) /
                                     FAKE_TEXTURE_ALIGNMENT * FAKE_TEXTURE_ALIGNMENT);
    if (!o->allocated)
        abort();
    memset(o->allocated, 0xA5, bytes);
    o->start = (char *)o->allocated + fake.misalignment;
    o->bytes = bytes;
    o->type = type;
    *out = o;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemGetInfo_v2(size_t *available, size_t *total) {
    ARRIVE_IN_CONTEXT();
    *available = free_bytes(IRON_CU_MEMORYTYPE_DEVICE);
    *total = fake.memory_bytes;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemAlloc_v2(iron__cu_pointer *pointer, size_t bytes) {
    fake_object *o = NULL;
    int code;

    ARRIVE_IN_CONTEXT();
    code = allocate(bytes, IRON_CU_MEMORYTYPE_DEVICE, &o);
    if (code == IRON_CUDA_SUCCESS)
        *pointer = (uintptr_t)o->start;
    return code;
}

iron__cu_result cuMemAllocManaged(iron__cu_pointer *pointer, size_t bytes, unsigned flags) {
    fake_object *o = NULL;
    int code;

    ARRIVE_IN_CONTEXT();
    REQUIRE(flags == IRON_CU_MEM_ATTACH_GLOBAL, IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(fake.has_managed, IRON_CUDA_ERROR_NOT_SUPPORTED);
    code = allocate(bytes, IRON_CU_MEMORYTYPE_DEVICE, &o);
    if (code != IRON_CUDA_SUCCESS)
        return code;
    o->is_managed = 1;
    *pointer = (uintptr_t)o->start;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemFree_v2(iron__cu_pointer pointer) {
    fake_object *o = memory_at(pointer, 1);

    return fake_release(__func__, o && o->type == IRON_CU_MEMORYTYPE_DEVICE ? o : NULL);
}

iron__cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    fake_object *o = NULL;
    int code;

    ARRIVE_IN_CONTEXT();
    REQUIRE(flags & IRON_CU_MEMHOSTALLOC_PORTABLE, IRON_CUDA_ERROR_INVALID_VALUE);
    code = allocate(bytes, IRON_CU_MEMORYTYPE_HOST, &o);
    if (code != IRON_CUDA_SUCCESS)
        return code;
    o->is_mapped = flags & IRON_CU_MEMHOSTALLOC_DEVICEMAP;
    *memory = o->start;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemFreeHost(void *memory) {
    fake_object *o = memory_at((uintptr_t)memory, 1);

    return fake_release(__func__, o && o->type == IRON_CU_MEMORYTYPE_HOST ? o : NULL);
}

iron__cu_result cuMemHostGetDevicePointer_v2(iron__cu_pointer *pointer, void *host,
                                             unsigned flags) {
    const fake_object *o = memory_at((uintptr_t)host, 1);

    ARRIVE_IN_CONTEXT();
    REQUIRE(o && o->is_mapped && flags == 0, IRON_CUDA_ERROR_INVALID_VALUE);
    *pointer = (uintptr_t)host;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuPointerGetAttribute(void *data, iron__cu_pointer_attribute attribute,
                                      iron__cu_pointer pointer) {
    const fake_object *o = memory_at(pointer, 1);

    ARRIVE_IN_CONTEXT();
    REQUIRE(o, IRON_CUDA_ERROR_INVALID_VALUE);
    if (attribute == IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned *)data = o->type;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(unsigned *)data = o->is_managed;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        *(int *)data = o->context->device;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(uintptr_t *)data = (uintptr_t)o->start;
    else if (attribute == IRON_CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        *(size_t *)data = o->bytes;
    else
        return IRON_CUDA_ERROR_INVALID_VALUE;
    return IRON_CUDA_SUCCESS;
}

/* Unlike cuPointerGetAttribute, an unknown address is not an error: the value is 0. */
iron__cu_result cuPointerGetAttributes(unsigned count, iron__cu_pointer_attribute *attributes,
                                       void **data, iron__cu_pointer pointer) {
    const fake_object *o = memory_at(pointer, 1);

    ARRIVE_IN_CONTEXT();
    REQUIRE(count == 1 && attributes[0] == IRON_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            IRON_CUDA_ERROR_INVALID_VALUE);
    *(unsigned *)data[0] = o ? o->type : 0;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemsetD32Async(iron__cu_pointer to, unsigned value, size_t count,
                                 iron__cu_stream *stream) {
    const fake_node n = {.kind = SET, .to = (char *)to, .bytes = count * 4};

    ARRIVE_IN_CONTEXT();
    REQUIRE(value == 0 && fake_is_on_device(to, n.bytes), IRON_CUDA_ERROR_INVALID_VALUE);
    return fake_submit(stream, &n);
}

static int copy(char *to, const void *from, size_t bytes, const iron__cu_stream *stream) {
    const fake_node n = {.kind = COPY, .to = to, .from = from, .bytes = bytes};

    return fake_submit(stream, &n);
}

iron__cu_result cuMemcpyHtoDAsync_v2(iron__cu_pointer to, const void *from, size_t bytes,
                                     iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(fake_is_on_device(to, bytes), IRON_CUDA_ERROR_INVALID_VALUE);
    return copy((char *)to, from, bytes, stream);
}

iron__cu_result cuMemcpyDtoHAsync_v2(void *to, iron__cu_pointer from, size_t bytes,
                                     iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(fake_is_on_device(from, bytes), IRON_CUDA_ERROR_INVALID_VALUE);
    return copy(to, (const void *)from, bytes, stream);
}

iron__cu_result cuMemcpyDtoDAsync_v2(iron__cu_pointer to, iron__cu_pointer from, size_t bytes,
                                     iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(fake_is_on_device(to, bytes) && fake_is_on_device(from, bytes),
            IRON_CUDA_ERROR_INVALID_VALUE);
    return copy((char *)to, (const void *)from, bytes, stream);
}

static int prefetch(iron__cu_pointer memory, size_t bytes, int device, const void *stream) {
    const fake_object *o = memory_at(memory, bytes);

    REQUIRE(o && o->is_managed, IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(fake_find(FAKE_STREAM, stream) || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(device >= 0 && device < fake.devices, IRON_CUDA_ERROR_INVALID_DEVICE);
    fake.prefetches++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuMemPrefetchAsync_v2(iron__cu_pointer memory, size_t bytes,
                                      iron__cu_location where, unsigned flags,
                                      iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(where.type == IRON_CU_MEM_LOCATION_TYPE_DEVICE && flags == 0,
            IRON_CUDA_ERROR_INVALID_VALUE);
    return prefetch(memory, bytes, where.id, stream);
}

iron__cu_result cuMemPrefetchAsync(iron__cu_pointer memory, size_t bytes, iron__cu_device where,
                                   iron__cu_stream *stream) {
    ARRIVE_IN_CONTEXT();
    return prefetch(memory, bytes, where, stream);
}

#define DEFAULT_LOCAL_BYTES (48 << 10)

iron__cu_result cuModuleLoadData(iron__cu_module **module, const void *image) {
    int arch = 0;
    const char *line = image;
    fake_object *o;

    ARRIVE_IN_CONTEXT();
    REQUIRE(sscanf(line, "sm_%d", &arch) == 1, IRON_CUDA_ERROR_INVALID_IMAGE);
    REQUIRE(arch == fake.capability, IRON_CUDA_ERROR_NO_BINARY_FOR_GPU);
    o = fake_add(FAKE_MODULE);
    for (int k = 0; k < KERNELS_MAX; k++) {
        line += strcspn(line, "\n");
        line += *line == '\n';
        if (sscanf(line, "%31[a-z]%*1[ ]%31s", o->kernels[k].name, o->kernels[k].sizes) < 1)
            break;
    }
    *module = (iron__cu_module *)o;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuModuleUnload(iron__cu_module *module) {
    return fake_release(__func__, fake_find(FAKE_MODULE, module));
}

iron__cu_result cuModuleGetFunction(iron__cu_function **function, iron__cu_module *module,
                                    const char *name) {
    fake_object *o = fake_find(FAKE_MODULE, module);

    ARRIVE_IN_CONTEXT();
    REQUIRE(o, IRON_CUDA_ERROR_INVALID_HANDLE);
    for (int k = 0; k < KERNELS_MAX; k++)
        if (o->kernels[k].name[0] && strcmp(o->kernels[k].name, name) == 0) {
            *function = &o->kernels[k];
            return IRON_CUDA_SUCCESS;
        }
    return IRON_CUDA_ERROR_NOT_FOUND;
}

iron__cu_result cuModuleGetGlobal_v2(iron__cu_pointer *pointer, size_t *bytes,
                                     iron__cu_module *module, const char *name) {
    fake_object *o = fake_find(FAKE_MODULE, module);

    ARRIVE_IN_CONTEXT();
    REQUIRE(o, IRON_CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(strcmp(name, FAKE_CONSTANT) == 0, IRON_CUDA_ERROR_NOT_FOUND);
    *pointer = (uintptr_t)o->constant;
    *bytes = sizeof o->constant;
    return IRON_CUDA_SUCCESS;
}

/* Dynamic local memory that a launch may request. */
static size_t dynamic_max(const iron__cu_function *function) {
    size_t by_default = (size_t)(DEFAULT_LOCAL_BYTES - fake.static_bytes);

    return function->has_dynamic_bytes ? function->dynamic_bytes : by_default;
}

static bool fake_may_have(const iron__cu_function *function, size_t bytes) {
    return bytes <= dynamic_max(function);
}

iron__cu_result cuFuncGetAttribute(int *value, iron__cu_function_attribute attribute,
                                   iron__cu_function *function) {
    (void)function;
    ARRIVE_IN_CONTEXT();
    if (attribute == IRON_CU_FUNC_ATTRIBUTE_NUM_REGS)
        *value = fake.registers;
    else if (attribute == IRON_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
        *value = fake.spill_bytes;
    else if (attribute == IRON_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
        *value = fake.static_bytes;
    else
        return IRON_CUDA_ERROR_INVALID_VALUE;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuFuncSetAttribute(iron__cu_function *function,
                                   iron__cu_function_attribute attribute, int value) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(attribute == IRON_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
                value <= FAKE_LOCAL_BYTES - fake.static_bytes,
            IRON_CUDA_ERROR_INVALID_VALUE);
    function->has_dynamic_bytes = true;
    function->dynamic_bytes = (size_t)value;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *groups,
                                                            iron__cu_function *function,
                                                            int threads, size_t shared_bytes) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(threads > 0, IRON_CUDA_ERROR_INVALID_VALUE);
    *groups = fake_may_have(function, shared_bytes) ? (int)fake.groups_max / 132 : 0;
    return IRON_CUDA_SUCCESS;
}

static float clock_ms;

iron__cu_result cuStreamCreate(iron__cu_stream **stream, unsigned flags) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(flags == IRON_CU_STREAM_NON_BLOCKING, IRON_CUDA_ERROR_INVALID_VALUE);
    *stream = (iron__cu_stream *)fake_add(FAKE_STREAM);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamDestroy_v2(iron__cu_stream *stream) {
    return fake_release(__func__, fake_find(FAKE_STREAM, stream));
}

iron__cu_result cuStreamSynchronize(iron__cu_stream *stream) {
    const fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    return s && s->recording ? IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamWaitEvent(iron__cu_stream *stream, iron__cu_event *event, unsigned flags) {
    ARRIVE_IN_CONTEXT();
    REQUIRE((fake_find(FAKE_STREAM, stream) || !stream) && fake_find(FAKE_EVENT, event),
            IRON_CUDA_ERROR_INVALID_HANDLE);
    return flags ? IRON_CUDA_ERROR_INVALID_VALUE : IRON_CUDA_SUCCESS;
}

iron__cu_result cuEventCreate(iron__cu_event **event, unsigned flags) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(flags == 0, IRON_CUDA_ERROR_INVALID_VALUE);
    *event = (iron__cu_event *)fake_add(FAKE_EVENT);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuEventDestroy_v2(iron__cu_event *event) {
    return fake_release(__func__, fake_find(FAKE_EVENT, event));
}

iron__cu_result cuEventRecord(iron__cu_event *event, iron__cu_stream *stream) {
    fake_object *e = fake_find(FAKE_EVENT, event);

    ARRIVE_IN_CONTEXT();
    REQUIRE(e && (fake_find(FAKE_STREAM, stream) || !stream), IRON_CUDA_ERROR_INVALID_HANDLE);
    e->time = clock_ms += 1.5F;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuEventSynchronize(iron__cu_event *event) {
    ARRIVE_IN_CONTEXT();
    return fake_find(FAKE_EVENT, event) ? IRON_CUDA_SUCCESS : IRON_CUDA_ERROR_INVALID_HANDLE;
}

iron__cu_result cuEventElapsedTime(float *ms, iron__cu_event *from, iron__cu_event *to) {
    const fake_object *a = fake_find(FAKE_EVENT, from), *b = fake_find(FAKE_EVENT, to);

    ARRIVE_IN_CONTEXT();
    REQUIRE(a && b && a->time > 0 && b->time > 0, IRON_CUDA_ERROR_INVALID_HANDLE);
    *ms = b->time - a->time;
    return IRON_CUDA_SUCCESS;
}

static int record_attribute(const iron__cu_launch_attribute *a, fake_launch *l) {
    const iron__cu_window *w = &a->value.window;

    if (a->id == IRON_CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        l->is_cooperative = a->value.is_cooperative == 1;
    } else if (a->id == IRON_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
        l->may_overlap = a->value.may_overlap == 1;
    } else {
        REQUIRE(a->id == IRON_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && w->bytes > 0 &&
                    w->bytes <= (size_t)fake.window_max && w->hit_ratio > 0 && w->hit_ratio <= 1 &&
                    w->hit == IRON_CU_ACCESS_PROPERTY_PERSISTING &&
                    w->miss == IRON_CU_ACCESS_PROPERTY_STREAMING,
                IRON_CUDA_ERROR_INVALID_VALUE);
        l->window = w->start;
        l->window_bytes = w->bytes;
        l->window_ratio = w->hit_ratio;
    }
    return IRON_CUDA_SUCCESS;
}

/* The real driver knows the sizes of arguments from the code; here the image lists them. */
static int record_launch(const iron__cu_launch_config *c, const iron__cu_function *function,
                         void **arguments, bool is_extended) {
    fake_node n = {.kind = RUN,
                   .launch = {.kernel = function->name,
                              .grid = {c->grid_x, c->grid_y, c->grid_z},
                              .block = {c->block_x, c->block_y, c->block_z},
                              .local_bytes = c->shared_bytes,
                              .is_extended = is_extended}};
    fake_launch *l = &n.launch;

    for (unsigned k = 0; k < c->attribute_count; k++) {
        int code = record_attribute(&c->attributes[k], l);

        REQUIRE(code == IRON_CUDA_SUCCESS, code);
    }
    REQUIRE(c->block_x * c->block_y * c->block_z <= 1024 &&
                fake_may_have(function, c->shared_bytes),
            IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!l->is_cooperative || c->grid_x * c->grid_y <= fake.groups_max,
            IRON_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    for (size_t k = 0; function->sizes[k]; k++) {
        size_t bytes = function->sizes[k] == 'p' ? 8 : (size_t)(function->sizes[k] - '0');

        memcpy(l->arguments + l->argument_bytes, arguments[k], bytes);
        l->argument_bytes += bytes;
    }
    return fake_submit(c->stream, &n);
}

iron__cu_result cuLaunchKernel(iron__cu_function *function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, iron__cu_stream *stream,
                               void **arguments, void **extra) {
    const iron__cu_launch_config config = {grid_x,  grid_y,       grid_z, block_x, block_y,
                                           block_z, shared_bytes, stream, NULL,    0};

    ARRIVE_IN_CONTEXT();
    REQUIRE(!extra, IRON_CUDA_ERROR_INVALID_VALUE);
    return record_launch(&config, function, arguments, false);
}

iron__cu_result cuLaunchKernelEx(const iron__cu_launch_config *config, iron__cu_function *function,
                                 void **arguments, void **extra) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(!extra, IRON_CUDA_ERROR_INVALID_VALUE);
    return record_launch(config, function, arguments, true);
}

static fake_object *add_graph(fake_kind kind) {
    fake_object *o = fake_add(kind);

    o->nodes = calloc(NODES_MAX, sizeof *o->nodes);
    if (!o->nodes)
        abort();
    return o;
}

iron__cu_result cuStreamBeginCapture_v2(iron__cu_stream *stream, iron__cu_capture_mode mode) {
    fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s, IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REQUIRE(mode == IRON_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !s->recording,
            IRON_CUDA_ERROR_INVALID_VALUE);
    s->recording = add_graph(FAKE_GRAPH);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamEndCapture(iron__cu_stream *stream, iron__cu_graph **graph) {
    fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s && s->recording, IRON_CUDA_ERROR_INVALID_VALUE);
    *graph = (iron__cu_graph *)s->recording;
    s->recording = NULL;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuStreamIsCapturing(iron__cu_stream *stream, iron__cu_capture_status *status) {
    const fake_object *s = fake_find(FAKE_STREAM, stream);

    ARRIVE_IN_CONTEXT();
    REQUIRE(s || !stream, IRON_CUDA_ERROR_INVALID_HANDLE);
    *status = s && s->recording ? IRON_CU_STREAM_CAPTURE_STATUS_ACTIVE
                                : IRON_CU_STREAM_CAPTURE_STATUS_NONE;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuGraphInstantiateWithFlags(iron__cu_graph_exec **exec, iron__cu_graph *graph,
                                            unsigned long long flags) {
    const fake_object *g = fake_find(FAKE_GRAPH, graph);
    fake_object *e;

    ARRIVE_IN_CONTEXT();
    REQUIRE(g && flags == 0, IRON_CUDA_ERROR_INVALID_VALUE);
    e = add_graph(FAKE_EXEC);
    memcpy(e->nodes, g->nodes, NODES_MAX * sizeof *e->nodes);
    e->node_count = g->node_count;
    *exec = (iron__cu_graph_exec *)e;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuGraphLaunch(iron__cu_graph_exec *exec, iron__cu_stream *stream) {
    const fake_object *e = fake_find(FAKE_EXEC, exec);

    ARRIVE_IN_CONTEXT();
    REQUIRE(e && (fake_find(FAKE_STREAM, stream) || !stream), IRON_CUDA_ERROR_INVALID_HANDLE);
    for (size_t k = 0; k < e->node_count; k++)
        perform(&e->nodes[k]);
    fake.replays++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuGraphExecDestroy(iron__cu_graph_exec *exec) {
    return fake_release(__func__, fake_find(FAKE_EXEC, exec));
}

iron__cu_result cuGraphDestroy(iron__cu_graph *graph) {
    return fake_release(__func__, fake_find(FAKE_GRAPH, graph));
}

static int device_here(void) { return fake_stack[fake_depth - 1]->device; }

/* Setting 0 always works, like releasing an object. */
iron__cu_result cuCtxSetLimit(iron__cu_limit limit, size_t value) {
    int code = fake_arrive(__func__);

    REQUIRE(fake_depth > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(limit == IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE && value <= (size_t)fake.persisting_max,
            IRON_CUDA_ERROR_INVALID_VALUE);
    if (code == IRON_CUDA_SUCCESS || value == 0)
        fake.reserved[device_here()] = value < fake.grant_max ? value : fake.grant_max;
    return code;
}

iron__cu_result cuCtxGetLimit(size_t *value, iron__cu_limit limit) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(limit == IRON_CU_LIMIT_PERSISTING_L2_CACHE_SIZE, IRON_CUDA_ERROR_INVALID_VALUE);
    *value = fake.reserved[device_here()];
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuCtxResetPersistingL2Cache(void) {
    ARRIVE_IN_CONTEXT();
    fake.cache_resets++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuDeviceGetTexture1DLinearMaxWidth(size_t *count, iron__cu_array_format format,
                                                   unsigned channels, iron__cu_device device) {
    (void)device;
    ARRIVE();
    REQUIRE(format == IRON_CU_AD_FORMAT_UNSIGNED_INT32 && channels == 1,
            IRON_CUDA_ERROR_INVALID_VALUE);
    *count = fake.texture_max;
    return IRON_CUDA_SUCCESS;
}

/* The real driver returns a sticky error for a bad address: the backend must check before. */
iron__cu_result cuTexObjectCreate(iron__cu_texture *texture, const iron__cu_resource *resource,
                                  const iron__cu_reading *reading, const iron__cu_view *view) {
    ARRIVE_IN_CONTEXT();
    REQUIRE(resource->type == IRON_CU_RESOURCE_TYPE_LINEAR && resource->flags == 0 &&
                resource->of.linear.format == IRON_CU_AD_FORMAT_UNSIGNED_INT32 &&
                resource->of.linear.channels == 1 &&
                reading->flags == IRON_CU_TRSF_READ_AS_INTEGER && !view,
            IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(resource->of.linear.bytes % 4 == 0 &&
                resource->of.linear.bytes / 4 <= fake.texture_max &&
                fake_is_on_device(resource->of.linear.start, resource->of.linear.bytes),
            IRON_CUDA_ERROR_INVALID_VALUE);
    REQUIRE(resource->of.linear.start % FAKE_TEXTURE_ALIGNMENT == 0,
            IRON_CUDA_ERROR_ILLEGAL_ADDRESS);
    fake.texture_bytes = resource->of.linear.bytes;
    *texture = (uintptr_t)fake_add(FAKE_TEXTURE);
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuTexObjectDestroy(iron__cu_texture texture) {
    return fake_release(__func__, fake_find(FAKE_TEXTURE, (const void *)(uintptr_t)texture));
}
