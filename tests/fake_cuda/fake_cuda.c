/* SPDX-License-Identifier: MIT */
/*
 * fake_cuda.c: a library that pretends to be the NVIDIA driver, so that the CUDA backend is tested
 * where there is no card, and in situations that no card can be brought into.
 *
 * Device memory is host memory; streams do their work at once, or note it down while they record;
 * kernels have names and arguments, and a launch of one is written down. Handles are looked up in
 * one list, so that a stale one is an error here and not luck. Everything but the questions about
 * devices needs a current context, as with the real one. When a context dies, its objects die with
 * it, and are counted as orphans.
 *
 * Calls that are told to fail do nothing, with an exception that follows the real driver: giving
 * something back, a popped context among it, always does so and reports what went wrong before. One
 * thread at a time, but for the questions about devices.
 *
 * Linked with -Bsymbolic: tests take names away by patching a copy, which must still load even
 * where the library itself refers to one of them.
 */
#include "fake_state.h"

#include <stdio.h>

#define INITIALLY                                                                                  \
    .version = 13000, .devices = FAKE_CUDA_DEVICES, .capability = 90, .has_managed = 1,            \
    .has_concurrent_managed = 1, .maps_host = 1, .is_cooperative = 1,                              \
    .memory_bytes = (size_t)64 << 20, .groups_max = 264, .registers = 40, .spill_bytes = 24,       \
    .static_bytes = 1024, .keep_max = 30 << 20, .window_max = 48 << 20, .grants = SIZE_MAX,        \
    .texture_max = 1 << 20

fake_cuda fake = {INITIALLY};
fake_object *fake_objects;
_Thread_local iron__cu_context *fake_stack[8];
_Thread_local int fake_depth;

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

int fake_arrive(const char *name) {
    unsigned number = atomic_fetch_add(&fake.calls, 1) + 1;

    if (fake.fail_at == 0 || number < fake.fail_at || (number > fake.fail_at && !fake.fails_on))
        return IRON_CUDA_SUCCESS;
    if (!fake.failed)
        fake.failed = name;
    return fake.fail_with;
}

fake_object *fake_add(fake_kind kind) {
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

fake_object *fake_find(fake_kind kind, const void *handle) {
    for (fake_object *o = fake_objects; o; o = o->next)
        if (o == handle && o->kind == kind)
            return o;
    return NULL;
}

void fake_discard(fake_object *o) {
    fake_object **link = &fake_objects;

    while (*link != o)
        link = &(*link)->next;
    *link = o->next;
    fake.live[o->kind]--;
    free(o->allocated);
    free(o->nodes);
    free(o);
}

int fake_give_back(const char *name, fake_object *o) {
    int code = fake_arrive(name);

    REQUIRE(fake_depth > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(o, IRON_CUDA_ERROR_INVALID_HANDLE);
    if (o->recording)
        fake_discard(o->recording);
    fake_discard(o);
    return code;
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
                                                    : "a text of the driver";
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
        {IRON_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
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
        {IRON_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, fake.keep_max},
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
    fake.set_aside[device] = 0;
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
    fake.pushed++;
    return IRON_CUDA_SUCCESS;
}

iron__cu_result cuCtxPopCurrent_v2(iron__cu_context **context) {
    int code = fake_arrive(__func__);

    REQUIRE(fake_depth > 0, IRON_CUDA_ERROR_INVALID_CONTEXT);
    *context = fake_stack[--fake_depth];
    fake.pushed--;
    return code;
}

iron__cu_result cuCtxSynchronize(void) {
    ARRIVE_IN_CONTEXT();
    fake.synchronizations++;
    return IRON_CUDA_SUCCESS;
}
