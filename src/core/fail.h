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
