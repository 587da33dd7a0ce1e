/* SPDX-License-Identifier: MIT */
/*
 * opencl_shared.c: a list of the contexts that the next to open a device may join, behind one lock.
 *
 * Making a context is done under the lock: two who open a device at once want the same one.
 * Building a program and taking a context apart are not: they take long, and nobody needs to wait.
 * So two who build the same text at once both build it, and the first one's is kept. A retired
 * context is not in the list; its users alone know it, and the last of them takes it apart.
 */
#include "gpu/opencl/opencl_shared.h"

#include "gpu/opencl/opencl_error.h"

#include <pthread.h>
#include <string.h>

typedef struct kept_program {
    struct kept_program *next;
    iron__cl_program *program;
    char key[];
} kept_program;

struct iron__opencl_shared {
    iron__opencl_shared *next;
    iron__cl_device *id;
    iron__cl_context *context;
    size_t users;
    kept_program *programs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all below, and users, programs */
static iron__opencl_shared *all;

static iron__opencl_shared *find(const iron__cl_device *id) {
    iron__opencl_shared *s = all;

    while (s && s->id != id)
        s = s->next;
    return s;
}

/* NULL: code says why, or err where it is IRON_CL_SUCCESS. */
static iron__opencl_shared *make(const iron__opencl_device *d, int32_t *code, iron_error *err) {
    const intptr_t properties[] = {IRON_CL_CONTEXT_PLATFORM, (intptr_t)d->entry->platform, 0};
    iron__opencl_shared *s = iron__opencl_new(sizeof *s, "an OpenCL context", err);

    if (!s)
        return NULL;
    s->id = d->entry->id;
    s->context = d->api->clCreateContext(properties, 1, &d->entry->id, NULL, NULL, code);
    if (*code != IRON_CL_SUCCESS) {
        iron__opencl_delete(s);
        return NULL;
    }
    s->next = all;
    all = s;
    return s;
}

iron_status iron__opencl_shared_take(iron__opencl_device *device, iron_error *err) {
    int32_t code = IRON_CL_SUCCESS;
    iron__opencl_shared *s;

    pthread_mutex_lock(&lock);
    s = find(device->entry->id);
    if (!s)
        s = make(device, &code, err);
    if (s) {
        s->users++;
        device->shared = s;
        device->context = s->context;
    }
    pthread_mutex_unlock(&lock);
    if (s)
        return IRON_OK;
    return code == IRON_CL_SUCCESS
               ? IRON_E_NOMEM
               : iron__opencl_check(&device->base, code, "clCreateContext", err);
}

/* Takes it out of the list, if it is there. */
static void unlist(const iron__opencl_shared *s) {
    iron__opencl_shared **at = &all;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
}

static void destroy(const iron__opencl_api *cl, iron__opencl_shared *s) {
    while (s->programs) {
        kept_program *p = s->programs;

        s->programs = p->next;
        cl->clReleaseProgram(p->program);
        iron__opencl_delete(p);
    }
    cl->clReleaseContext(s->context);
    iron__opencl_delete(s);
}

void iron__opencl_shared_give(iron__opencl_device *device) {
    iron__opencl_shared *s = device->shared;
    bool is_last;

    if (!s)
        return;
    pthread_mutex_lock(&lock);
    is_last = --s->users == 0;
    if (is_last)
        unlist(s);
    pthread_mutex_unlock(&lock);
    if (is_last)
        destroy(device->api, s);
    device->shared = NULL;
    device->context = NULL;
}

void iron__opencl_shared_retire(const iron__opencl_device *device) {
    if (!device->shared)
        return;
    pthread_mutex_lock(&lock);
    unlist(device->shared);
    pthread_mutex_unlock(&lock);
}

static kept_program *find_program(const iron__opencl_shared *s, const char *key) {
    kept_program *p = s->programs;

    while (p && strcmp(p->key, key) != 0)
        p = p->next;
    return p;
}

iron__cl_program *iron__opencl_shared_program(iron__opencl_device *device, const char *key) {
    const kept_program *p;

    pthread_mutex_lock(&lock);
    p = find_program(device->shared, key);
    pthread_mutex_unlock(&lock);
    /* it stays where it is for as long as the device is open */
    return p && device->api->clRetainProgram(p->program) == IRON_CL_SUCCESS ? p->program : NULL;
}

void iron__opencl_shared_keep(iron__opencl_device *device, const char *key,
                              iron__cl_program *program) {
    size_t key_bytes = strlen(key) + 1;
    kept_program *p = iron__opencl_new(sizeof *p + key_bytes, "a kept program", NULL);
    bool is_kept;

    if (!p)
        return;
    memcpy(p->key, key, key_bytes);
    p->program = program;
    if (device->api->clRetainProgram(program) != IRON_CL_SUCCESS) {
        iron__opencl_delete(p);
        return;
    }
    pthread_mutex_lock(&lock);
    is_kept = !find_program(device->shared, key);
    if (is_kept) {
        p->next = device->shared->programs;
        device->shared->programs = p;
    }
    pthread_mutex_unlock(&lock);
    if (is_kept)
        return;
    device->api->clReleaseProgram(program); /* another was faster */
    iron__opencl_delete(p);
}
