/* SPDX-License-Identifier: MIT */
/* library.c: opening libraries, and finding their functions. */
#include "core/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef IRON_NO_DLOPEN
iron__library iron__library_open(const char *variable, const char *const *usual,
                                 const iron__symbol *symbols, size_t count, void *table) {
    (void)variable, (void)symbols, (void)count, (void)table;
    return (iron__library){.path = usual[0], .fault = "this build of iron loads no libraries"};
}

void iron__library_close(const iron__library *library) { (void)library; }
#else
iron__library iron__library_open(const char *variable, const char *const *usual,
                                 const iron__symbol *symbols, size_t count, void *table) {
    /* secure_getenv: ignored by programs that run with elevated privileges. */
    const char *named = variable ? secure_getenv(variable) : NULL;
    iron__library l = {.is_named = named && named[0]};
    const char *const given[] = {named, NULL}, *const *paths = l.is_named ? given : usual;

    for (int round = paths[1] ? 0 : 1; !l.handle && round < 2; round++)
        for (size_t k = 0; !l.handle && paths[k]; k++) {
            l.path = paths[k];
            l.handle = dlopen(l.path, RTLD_NOW | RTLD_LOCAL | (round == 0 ? RTLD_NOLOAD : 0));
        }
    if (!l.handle) {
        const char *fault = dlerror();

        l.fault = fault ? fault : l.path;
        return l;
    }
    for (size_t k = 0; k < count; k++) {
        void *address = dlsym(l.handle, symbols[k].name);

        /* ISO C cannot convert an object pointer to a function pointer; POSIX guarantees the same
         * representation. */
        memcpy((char *)table + symbols[k].offset, &address, sizeof address);
        if (!address && symbols[k].is_required && !l.missing)
            l.missing = symbols[k].name;
    }
    return l;
}

void iron__library_close(const iron__library *library) { dlclose(library->handle); }
#endif

iron_status iron__once_get(iron__once *once, iron_status (*load)(iron_error *err),
                           iron_error *err) {
    iron_status status;

    pthread_mutex_lock(&once->mutex);
    if (!once->is_tried) {
        once->failure = (iron_error){.status = IRON_OK};
        once->is_tried = load(&once->failure) != IRON_E_NOMEM; /* the next call may have memory */
    }
    status = once->failure.status;
    if (status != IRON_OK && err)
        *err = once->failure;
    pthread_mutex_unlock(&once->mutex);
    return status;
}
