/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_loader.c: the loader with fake libraries: missing, without a function, without a
 * platform, without a device, with unusable devices, with many usable ones.
 *
 * The loader's sources are included with dlopen and dlsym replaced, so this test needs no OpenCL
 * and gives the same result everywhere. The fake library has two platforms; their devices are rows
 * of a table that each test fills.
 */
#include <dlfcn.h>

static void *fake_dlopen(const char *name, int flags);
static void *fake_dlsym(void *handle, const char *name);
static int fake_dlclose(void *handle);
static char *fake_dlerror(void);

#define dlopen           fake_dlopen
#define dlsym            fake_dlsym
#define dlclose          fake_dlclose
#define dlerror          fake_dlerror
#define IRON_WITH_CUDA   0
#define IRON_WITH_OPENCL 1
#include "core/library.c"
#include "gpu/gpu.c"
#include "opencl_support.h" /* includes opencl_device.c */
#undef dlopen
#undef dlsym
#undef dlclose
#undef dlerror

#define PLATFORMS 2u

/* A fake device; its address is its cl_device_id. */
typedef struct fake_device {
    uint32_t platform;
    uint64_t kind;
    const char *name, *version;
    uint32_t is_unavailable, is_without_compiler, is_big_endian;
    const char *extensions;
    uint64_t svm;
} fake_device;

static struct {
    bool is_absent;
    const char *missing; /* a symbol */
    int32_t platforms_code;
    uint32_t platforms;
    fake_device *devices;
    size_t device_count;
    size_t opened;
    char opened_name[64];
} fake;

static char platform_ids[PLATFORMS];

static int32_t get_platforms(uint32_t room, iron__cl_platform **out, uint32_t *count) {
    if (count)
        *count = fake.platforms;
    for (uint32_t k = 0; out && k < room; k++)
        out[k] = (iron__cl_platform *)&platform_ids[k];
    return fake.platforms_code;
}

static int32_t give(const void *value, size_t bytes, size_t room, void *out, size_t *needed) {
    if (needed)
        *needed = bytes;
    if (out && room < bytes)
        return IRON_CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, bytes);
    return IRON_CL_SUCCESS;
}

static int32_t get_platform(iron__cl_platform *id, uint32_t what, size_t room, void *out,
                            size_t *needed) {
    static const char name[] = "Fake Computing with a platform name that has no end";

    (void)id;
    assert_int_equal(what, IRON_CL_PLATFORM_NAME);
    return give(name, sizeof name, room, out, needed);
}

static int32_t get_devices(iron__cl_platform *platform, uint64_t kind, uint32_t room,
                           iron__cl_device **out, uint32_t *count) {
    uint32_t found = 0;

    for (size_t k = 0; k < fake.device_count; k++)
        if (&platform_ids[fake.devices[k].platform] == (char *)platform &&
            (fake.devices[k].kind & kind)) {
            if (out && found < room)
                out[found] = (iron__cl_device *)&fake.devices[k];
            found++;
        }
    if (count)
        *count = found;
    return found ? IRON_CL_SUCCESS : IRON_CL_DEVICE_NOT_FOUND;
}

static int32_t get_device(iron__cl_device *id, uint32_t what, size_t room, void *out,
                          size_t *needed) {
    const fake_device *d = (const fake_device *)id;
    const char *text = d->extensions ? d->extensions : "";
    uint32_t flag = 0;
    uint64_t number = 77;

    switch (what) {
    case IRON_CL_DEVICE_AVAILABLE:
        flag = !d->is_unavailable;
        return give(&flag, sizeof flag, room, out, needed);
    case IRON_CL_DEVICE_COMPILER_AVAILABLE:
        flag = !d->is_without_compiler;
        return give(&flag, sizeof flag, room, out, needed);
    case IRON_CL_DEVICE_ENDIAN_LITTLE:
        flag = !d->is_big_endian;
        return give(&flag, sizeof flag, room, out, needed);
    case IRON_CL_DEVICE_MAX_COMPUTE_UNITS:
        flag = 132;
        return give(&flag, sizeof flag, room, out, needed);
    case IRON_CL_DEVICE_NAME:
        return give(d->name, strlen(d->name) + 1, room, out, needed);
    case IRON_CL_DEVICE_VERSION:
        return give(d->version, strlen(d->version) + 1, room, out, needed);
    case IRON_CL_DRIVER_VERSION:
        return give("580.1", 6, room, out, needed);
    case IRON_CL_DEVICE_EXTENSIONS:
        return give(text, strlen(text) + 1, room, out, needed);
    case IRON_CL_DEVICE_SVM_CAPABILITIES:
        return give(&d->svm, sizeof d->svm, room, out, needed);
    default:
        return give(&number, sizeof number, room, out, needed);
    }
}

static void must_not_be_called(void) { abort(); }

static void *fake_dlopen(const char *name, int flags) {
    (void)flags;
    fake.opened++;
    snprintf(fake.opened_name, sizeof fake.opened_name, "%s", name);
    return fake.is_absent ? NULL : &fake;
}

static void *fake_dlsym(void *handle, const char *name) {
    static const struct {
        const char *name;
        void (*function)(void);
    } own[] = {
        {"clGetPlatformIDs", (void (*)(void))get_platforms},
        {"clGetPlatformInfo", (void (*)(void))get_platform},
        {"clGetDeviceIDs", (void (*)(void))get_devices},
        {"clGetDeviceInfo", (void (*)(void))get_device},
    };
    void (*function)(void) = must_not_be_called;
    void *address;

    assert_ptr_equal(handle, &fake);
    for (size_t k = 0; k < COUNT(own); k++)
        if (strcmp(own[k].name, name) == 0)
            function = own[k].function;
    memcpy(&address, &function, sizeof address);
    return fake.missing && strcmp(fake.missing, name) == 0 ? NULL : address;
}

static int fake_dlclose(void *handle) {
    assert_ptr_equal(handle, &fake);
    return 0;
}

static char *fake_dlerror(void) {
    static char text[200];

    snprintf(text, sizeof text, "%s: cannot open shared object file", fake.opened_name);
    return text;
}

static fake_device one_gpu[] = {
    {.kind = IRON_CL_DEVICE_TYPE_GPU, .name = "  Some GPU ", .version = "OpenCL 3.0 CUDA 13"}};

static int set_up(void **state) {
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.platforms = PLATFORMS;
    fake.devices = one_gpu;
    fake.device_count = COUNT(one_gpu);
    unsetenv("IRON_OPENCL_LIBRARY");
    opencl_forget();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    opencl_forget();
    return 0;
}

static void assert_absent(const char *word) {
    size_t count = 7;
    iron_error err;

    for (int round = 0; round < 2; round++) { /* the reason stays the same */
        assert_refused(OPS->probe(&count, &err), IRON_E_UNSUPPORTED, &err);
        assert_int_equal(count, 0);
        assert_says(&err, word);
        assert_says(&err, "opencl: ");
    }
    assert_int_equal(OPS->probe(&count, NULL), IRON_E_UNSUPPORTED);
    assert_int_equal(fake.opened, 1);
}

static void no_library(void **state) {
    (void)state;
    fake.is_absent = true;
    assert_absent("libOpenCL.so.1: cannot open");
}

static void library_from_environment(void **state) {
    (void)state;
    setenv("IRON_OPENCL_LIBRARY", "/opt/other.so", 1);
    fake.is_absent = true;
    assert_absent("/opt/other.so: cannot open");
    setenv("IRON_OPENCL_LIBRARY", "", 1);
    fake.opened = 0;
    opencl_forget();
    assert_absent("libOpenCL.so.1: cannot open");
}

static void missing_symbols(void **state) {
    static const char *const required[] = {"clGetPlatformIDs", "clEnqueueFillBuffer", "clFinish"};

    (void)state;
    for (size_t k = 0; k < COUNT(required); k++) {
        opencl_forget();
        fake.opened = 0;
        fake.missing = required[k];
        assert_absent(required[k]);
    }
}

static void optional_symbols(void **state) {
    const iron__opencl_library *library = &the_library;
    iron_error err;

    (void)state;
    fake.missing = "clSVMAlloc";
    assert_ok(need_library(&err), &err);
    assert_null(library->api.clSVMAlloc);
    assert_non_null(library->api.clSVMFree);
}

static void no_platform(void **state) {
    (void)state;
    fake.platforms = 0;
    assert_absent("no platform");
    opencl_forget();
    fake.opened = 0;
    fake.platforms_code = IRON_CL_PLATFORM_NOT_FOUND_KHR;
    assert_absent("no platform");
    opencl_forget();
    fake.opened = 0;
    fake.platforms_code = IRON_CL_OUT_OF_HOST_MEMORY;
    assert_absent("clGetPlatformIDs failed: CL_OUT_OF_HOST_MEMORY");
}

static void no_device(void **state) {
    (void)state;
    fake.device_count = 0;
    assert_absent("no device");
}

static void unusable_devices(void **state) {
    static fake_device devices[] = {
        {0, IRON_CL_DEVICE_TYPE_GPU, "old", "OpenCL 1.1 x", 0, 0, 0, NULL, 0},
        {0, IRON_CL_DEVICE_TYPE_GPU, "odd", "OpenGL 4.6", 0, 0, 0, NULL, 0},
        {0, IRON_CL_DEVICE_TYPE_GPU, "away", "OpenCL 1.2 x", 1, 0, 0, NULL, 0},
        {1, IRON_CL_DEVICE_TYPE_GPU, "mute", "OpenCL 1.2 x", 0, 1, 0, NULL, 0},
        {1, IRON_CL_DEVICE_TYPE_CPU, "big", "OpenCL 1.2 x", 0, 0, 1, NULL, 0},
    };

    (void)state;
    fake.devices = devices;
    fake.device_count = COUNT(devices);
    assert_absent("none of 5");
}

static void gpus_come_first(void **state) {
    static fake_device devices[] = {
        {0, IRON_CL_DEVICE_TYPE_CPU, "cpu", "OpenCL 1.2 x", 0, 0, 0, NULL, 0},
        {0, IRON_CL_DEVICE_TYPE_GPU, "gpu a", "OpenCL 2.1 x", 0, 0, 0, NULL, 0},
        {0, IRON_CL_DEVICE_TYPE_GPU, "too old", "OpenCL 1.0", 0, 0, 0, NULL, 0},
        {1, IRON_CL_DEVICE_TYPE_ACCELERATOR, "board", "OpenCL 1.2", 0, 0, 0, NULL, 0},
        {1, IRON_CL_DEVICE_TYPE_GPU | IRON_CL_DEVICE_TYPE_CPU, "gpu b", "OpenCL 3.0 x", 0, 0, 0,
         NULL, 0},
    };
    static const char *const names[] = {"gpu a", "gpu b", "board", "cpu"};
    static const uint32_t versions[] = {210, 300, 120, 120};
    iron__gpu_info info;
    iron_error err;
    size_t count;

    (void)state;
    fake.devices = devices;
    fake.device_count = COUNT(devices);
    assert_ok(OPS->probe(&count, &err), &err);
    assert_int_equal(count, COUNT(names));
    for (size_t k = 0; k < count; k++) {
        assert_ok(OPS->describe(k, &info, &err), &err);
        assert_string_equal(info.name, names[k]);
        assert_int_equal(info.version, versions[k]);
        assert_int_equal(info.is_gpu, k < 2);
    }
    assert_refused(OPS->describe(count, &info, &err), IRON_E_ARG, &err);
    assert_says(&err, "no device 4");
}

static void device_info(void **state) {
    static fake_device device = {
        .kind = IRON_CL_DEVICE_TYPE_GPU,
        .name = "  Some GPU ",
        .version = "OpenCL 2.0 x",
        .extensions = "cl_nv_device_attribute_query_more cl_nv_device_attribute_query",
        .svm = IRON_CL_DEVICE_SVM_COARSE_GRAIN_BUFFER,
    };
    iron__gpu_info info;
    iron_error err;

    (void)state;
    fake.devices = &device;
    fake.device_count = 1;
    assert_ok(OPS->describe(0, &info, &err), &err);
    assert_string_equal(info.name, "Some GPU");
    assert_string_equal(info.driver,
                        "Fake Computing with a platform name , OpenCL 2.0, driver 580.1");
    assert_int_equal(info.units, 132);
    assert_int_equal(info.memory_bytes, 77);
    assert_int_equal(info.cache_bytes, 0); /* NVIDIA does not report the last level */
    assert_string_equal(info.lacks[IRON_GPU_UVM], "");
    assert_true(strstr(info.lacks[IRON_GPU_UVM_PREFETCH], "prefetch") != NULL);
    assert_false(info.can_graph || info.can_overlap || info.can_cooperate);

    device.version = "OpenCL 1.2 x"; /* regardless of its SVM capabilities */
    device.extensions = "cl_nv_device_attribute_query_more";
    opencl_forget();
    assert_ok(OPS->describe(0, &info, &err), &err);
    assert_int_equal(info.cache_bytes, 77);
    assert_string_equal(info.lacks[IRON_GPU_UVM], "the device has no shared virtual memory");
    assert_string_equal(info.lacks[IRON_GPU_UVM_PREFETCH], info.lacks[IRON_GPU_UVM]);
    assert_string_equal(info.lacks[IRON_GPU_ZERO_COPY], "");

    device.version = "OpenCL 3.0 x"; /* the loader must have the functions too */
    fake.missing = "clEnqueueSVMMap";
    opencl_forget();
    assert_ok(OPS->describe(0, &info, &err), &err);
    assert_string_equal(info.lacks[IRON_GPU_UVM], "the device has no shared virtual memory");
}

static void version_parsing(void **state) {
    (void)state;
    assert_int_equal(parse_version("OpenCL 1.2"), 120);
    assert_int_equal(parse_version("OpenCL 3.0 PoCL HSTR: x"), 300);
    assert_int_equal(parse_version("OpenCL 3"), 0);
    assert_int_equal(parse_version("OpenCL"), 0);
    assert_int_equal(parse_version(""), 0);
    assert_int_equal(parse_version("OpenCL C 1.2"), 0);
    assert_int_equal(parse_version("OpenCL 99999999999999999999.1"), 0);
    assert_int_equal(parse_version("OpenCL 2.10"), 0);
}

static void *probe_often(void *argument) {
    size_t count = 0;

    (void)argument;
    for (int k = 0; k < 1000; k++)
        if (OPS->probe(&count, NULL) != IRON_OK || count != 1)
            return &fake;
    return NULL;
}

static void threads_load_once(void **state) {
    pthread_t threads[4];
    void *bad;

    (void)state;
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, probe_often, NULL), 0);
    for (size_t k = 0; k < COUNT(threads); k++) {
        assert_int_equal(pthread_join(threads[k], &bad), 0);
        assert_null(bad);
    }
    assert_int_equal(fake.opened, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_library, set_up, tear_down),
        cmocka_unit_test_setup_teardown(library_from_environment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_symbols, set_up, tear_down),
        cmocka_unit_test_setup_teardown(optional_symbols, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_platform, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unusable_devices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gpus_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(device_info, set_up, tear_down),
        cmocka_unit_test(version_parsing),
        cmocka_unit_test_setup_teardown(threads_load_once, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("opencl_loader", tests, NULL, NULL);
}
