/* SPDX-License-Identifier: MIT */
/*
 * cuda_driver.c: finds the driver's library, its functions and its version, once a process.
 *
 * What can be missing, in the order in which it is looked at: the library; a function, or the
 * version, so that the driver is too old; a device that cuInit agrees to. None of it is an error:
 * the reason is kept as a text, and whoever asks gets the same one without another look at the
 * disk.
 *
 * The one piece of global state stands here, since a process has one driver: under a mutex, and
 * constant once `is_tried`. After cuInit has been called the library stays open even when cuInit
 * failed: drivers leave threads and exit handlers behind that must not lose their code.
 */
#include "gpu/cuda/cuda_driver.h"

#include "core/fail.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct function_row {
    const char *name;
    size_t offset; /* of its field in iron__cuda_driver */
    bool is_required;
} function_row;

static const function_row rows[] = {
#define MUST(name, parameters) {#name, offsetof(iron__cuda_driver, name), true},
#define MAY(name, parameters)  {#name, offsetof(iron__cuda_driver, name), false},
    IRON_CUDA_FUNCTIONS(MUST, MAY)
#undef MUST
#undef MAY
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool is_tried;
    void *library;
    iron__cuda_driver driver;
    iron_error failure; /* IRON_OK: the driver can be used */
} loaded;

void iron__cuda_words(const iron__cuda_driver *driver, iron__cu_result code, char *words,
                      size_t size) {
    const char *name = NULL, *text = NULL;

    if (driver->cuGetErrorName(code, &name) != IRON_CUDA_SUCCESS || !name) {
        snprintf(words, size, "CUDA error %d", code);
        return;
    }
    if (driver->cuGetErrorString(code, &text) != IRON_CUDA_SUCCESS || !text)
        text = "no text";
    snprintf(words, size, "%s (%.80s)", name, text);
}

/* The first required function that the library lacks; NULL if it has all of them. */
static const char *find_functions(void *library, iron__cuda_driver *driver) {
    const char *missing = NULL;

    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        void *symbol = dlsym(library, rows[k].name);

        /* ISO C has no conversion from an object's address to a function's; POSIX has the same
         * representation for both. */
        memcpy((char *)driver + rows[k].offset, &symbol, sizeof symbol);
        if (!symbol && rows[k].is_required && !missing)
            missing = rows[k].name;
    }
    return missing;
}

static iron_status fail_at(const iron__cuda_driver *driver, const char *function,
                           iron__cu_result code, iron_error *err) {
    char words[160];

    iron__cuda_words(driver, code, words, sizeof words);
    return iron__fail(err, IRON_E_UNSUPPORTED, code,
                      "cuda: %s failed: %s; see what nvidia-smi and CUDA_VISIBLE_DEVICES say",
                      function, words);
}

static iron_status check_age(iron__cuda_driver *driver, const char *missing, iron_error *err) {
    char version[32] = "of unknown version";
    iron__cu_result code = IRON_CUDA_ERROR_UNKNOWN;

    if (driver->cuDriverGetVersion)
        code = driver->cuDriverGetVersion(&driver->version);
    if (code == IRON_CUDA_SUCCESS)
        snprintf(version, sizeof version, "for CUDA %d.%d", driver->version / 1000,
                 driver->version % 1000 / 10);
    IRON_FAIL_IF(missing, err, IRON_E_UNSUPPORTED,
                 "cuda: the driver (%s) is too old: it has no %s; update the NVIDIA driver",
                 version, missing);
    if (code != IRON_CUDA_SUCCESS)
        return fail_at(driver, "cuDriverGetVersion", code, err);
    IRON_FAIL_IF(driver->version < IRON_CUDA_VERSION_MIN, err, IRON_E_UNSUPPORTED,
                 "cuda: the driver (%s) is too old: at least CUDA %d.%d is needed; "
                 "update the NVIDIA driver",
                 version, IRON_CUDA_VERSION_MIN / 1000, IRON_CUDA_VERSION_MIN % 1000 / 10);
    return IRON_OK;
}

static iron_status load(iron__cuda_driver *driver, void **library, iron_error *err) {
    /* Not from a program that runs with rights its caller does not have. */
    const char *named = secure_getenv("IRON_CUDA_LIBRARY");
    const char *path = named && named[0] ? named : "libcuda.so.1";
    iron__cu_result code;
    iron_status status;

    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) {
        const char *reason = dlerror();

        return iron__fail(
            err, IRON_E_UNSUPPORTED, 0, "cuda: no driver: %.150s; install the NVIDIA driver%s",
            reason ? reason : path, path == named ? " or unset IRON_CUDA_LIBRARY" : "");
    }
    status = check_age(driver, find_functions(*library, driver), err);
    if (status != IRON_OK) {
        dlclose(*library);
        *library = NULL;
        return status;
    }
    code = driver->cuInit(0);
    return code == IRON_CUDA_SUCCESS ? IRON_OK : fail_at(driver, "cuInit", code, err);
}

iron_status iron__cuda_load(const iron__cuda_driver **out, iron_error *err) {
    iron_status status;

    *out = NULL;
    pthread_mutex_lock(&lock);
    if (!loaded.is_tried)
        load(&loaded.driver, &loaded.library, &loaded.failure);
    loaded.is_tried = true;
    status = loaded.failure.status;
    if (status == IRON_OK)
        *out = &loaded.driver;
    else if (err)
        *err = loaded.failure;
    pthread_mutex_unlock(&lock);
    return status;
}

void iron__cuda_forget(void) {
    pthread_mutex_lock(&lock);
    if (loaded.library)
        dlclose(loaded.library);
    memset(&loaded, 0, sizeof loaded);
    pthread_mutex_unlock(&lock);
}
