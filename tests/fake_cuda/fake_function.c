/* SPDX-License-Identifier: MIT */
/*
 * fake_function.c: modules of the pretended driver, the kernels in them, and what they are said to
 * take. All kernels take the same; but each has local memory that a launch sizes only as far as it
 * was allowed to, which without a word is what every card has.
 */
#include "fake_state.h"

#include <stdio.h>

#define LOCAL_BYTES_EVERYWHERE (48 << 10)

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
    return fake_give_back(__func__, fake_find(FAKE_MODULE, module));
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

/* What a launch may ask for. */
static size_t dynamic_max(const iron__cu_function *function) {
    size_t everywhere = (size_t)(LOCAL_BYTES_EVERYWHERE - fake.static_bytes);

    return function->is_allowed ? function->dynamic_bytes : everywhere;
}

bool fake_may_have(const iron__cu_function *function, size_t bytes) {
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
    function->is_allowed = true;
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
