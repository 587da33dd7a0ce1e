/* SPDX-License-Identifier: MIT */
/*
 * library.h: libraries that are loaded at run time and never linked: drivers, codecs, libcurl.
 * Building needs none of them, and running only those of the features that are used.
 */
#ifndef IRON_CORE_LIBRARY_H
#define IRON_CORE_LIBRARY_H

#include <iron/iron.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* A static command can load nothing. */
#ifdef IRON_NO_DLOPEN
enum { IRON_LOADS_LIBRARIES = false };
#else
enum { IRON_LOADS_LIBRARIES = true };
#endif

typedef struct iron__symbol {
    const char *name;
    size_t offset; /* of the function pointer in the table */
    bool is_required;
} iron__symbol;

typedef struct iron__library {
    void *handle; /* NULL: it could not be opened, for the reason in fault */
    const char *path, *fault;
    const char *missing; /* the first required function that it does not have; NULL: none */
    bool is_named;       /* by the variable */
} iron__library;

/* Opens the file that the environment variable names (NULL: none does), else the first of the
 * `usual` ones that is there, of which those that the process has loaded already come first; NULL
 * ends them. Fills a table of function pointers. */
iron__library iron__library_open(const char *variable, const char *const *usual,
                                 const iron__symbol *symbols, size_t count, void *table);
/* Only of a library that is of no use: drivers that were initialised leave threads and exit
 * handlers behind, which need their code. */
void iron__library_close(const iron__library *library);

/* Loads something once per process: the first call of get calls load, and all later ones return
 * what came of it, unless there was no memory then. Thread-safe. */
typedef struct iron__once {
    pthread_mutex_t mutex;
    bool is_tried;
    iron_error failure; /* status IRON_OK: loaded */
} iron__once;

iron_status iron__once_get(iron__once *once, iron_status (*load)(iron_error *err), iron_error *err);

#endif
