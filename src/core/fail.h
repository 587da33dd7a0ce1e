/* SPDX-License-Identifier: MIT */
/*
 * fail.h: how the library reports errors.
 *
 * Each of the three macros needs a message: what, which value, what to do. The macros only return,
 * so they are for places that hold no resources; with resources held, call iron__fail and
 * `goto done`.
 */
#ifndef IRON_CORE_FAIL_H
#define IRON_CORE_FAIL_H

#include <iron/iron.h>

/* Fills err (which may be NULL) and returns status. `native` is errno or a driver's code, or 0. */
iron_status iron__fail(iron_error *err, iron_status status, int native, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* IRON_E_NOMEM: "out of memory for WHAT", which may be a file's name. */
iron_status iron__no_memory(iron_error *err, const char *what);

/* IRON_E_IO: "cannot VERB PATH: ..." with the sentence for the code, which is errno's. */
iron_status iron__fail_path(iron_error *err, const char *verb, const char *path, int code);

/* Passes an error on. */
iron_status iron__fail_again(iron_error *err, const iron_error *why);

/* IRON_E_ARG unless a caller's struct, which begins with its struct_size, has so many bytes; also
 * for NULL. */
iron_status iron__struct_check(const void *given, size_t bytes, const char *name, iron_error *err);

/* Fills a caller's struct of so many bytes with defaults. A caller that was built against another
 * version has another size: no byte is written beyond it. */
void iron__struct_init(void *to, size_t struct_size, const void *defaults, size_t bytes);

/* Calls `progress`, which may be NULL. IRON_E_CANCELLED: the caller wants to stop. */
iron_status iron__progress(iron_progress progress, void *context, uint64_t done, uint64_t total,
                           iron_error *err);

#ifdef __clang_analyzer__ /* it does not see other files: these do not return IRON_OK */
#define iron__fail(err, status, native, ...)                                                       \
    (iron__fail((err), (status), (native), __VA_ARGS__), (status))
#define iron__no_memory(err, what) (iron__no_memory((err), (what)), IRON_E_NOMEM)
#define iron__fail_again(err, why) (iron__fail_again((err), (why)), IRON_E_STATE)
#define iron__fail_path(err, verb, path, code)                                                     \
    (iron__fail_path((err), (verb), (path), (code)), IRON_E_IO)
#define iron__struct_check(given, bytes, name, err)                                                \
    ((given) ? iron__struct_check((given), (bytes), (name), (err)) : IRON_E_ARG)
#endif

#define IRON_FAIL(err, status, ...) return iron__fail((err), (status), 0, __VA_ARGS__)

#define IRON_FAIL_IF(condition, err, status, ...)                                                  \
    do {                                                                                           \
        if (condition)                                                                             \
            return iron__fail((err), (status), 0, __VA_ARGS__);                                    \
    } while (0)

#define IRON_TRY(expression)                                                                       \
    do {                                                                                           \
        iron_status iron_try_status_ = (expression);                                               \
        if (iron_try_status_ != IRON_OK)                                                           \
            return iron_try_status_;                                                               \
    } while (0)

#endif
