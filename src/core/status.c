/* SPDX-License-Identifier: MIT */
/*
 * status.c: names, messages and codes of every iron_status, all from the one list in iron.h; the
 * functions that fill an iron_error; and checks that many public functions share.
 */
#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What fail.h tells the analyzer is for callers; here are the functions themselves. */
#undef iron__fail
#undef iron__no_memory
#undef iron__fail_again
#undef iron__fail_path
#undef iron__struct_check

typedef struct status_row {
    iron_status status;
    const char *name, *text;
    int http, code;
} status_row;

static const status_row rows[] = {
#define STATUS_ROW(name, value, text, http, code) {IRON_##name, "IRON_" #name, text, http, code},
    IRON_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static const status_row *row_of(iron_status status) {
    static const status_row unknown = {IRON_E_ARG, "IRON_E_UNKNOWN", "unknown status", 500, 2};

    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].status == status)
            return &rows[k];
    return &unknown;
}

const char *iron_status_name(iron_status status) { return row_of(status)->name; }

const char *iron_status_text(iron_status status) { return row_of(status)->text; }

int iron_status_exit_code(iron_status status) { return row_of(status)->code; }

int iron_status_http_code(iron_status status) { return row_of(status)->http; }

const char *iron_version(void) { return IRON_VERSION; }

iron_status iron__fail(iron_error *err, iron_status status, int native, const char *format, ...) {
    if (err) {
        va_list args;

        err->status = status;
        err->native = status == IRON_E_NOMEM && native == 0 ? ENOMEM : native;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

iron_status iron__no_memory(iron_error *err, const char *what) {
    return iron__fail(err, IRON_E_NOMEM, 0, "out of memory for %.120s", what);
}

iron_status iron__fail_path(iron_error *err, const char *verb, const char *path, int code) {
    return iron__fail(err, IRON_E_IO, code, "cannot %s %.120s: %s", verb, path, strerror(code));
}

iron_status iron__fail_again(iron_error *err, const iron_error *why) {
    if (err)
        *err = *why;
    return why->status;
}

iron_status iron__struct_check(const void *given, size_t bytes, const char *name, iron_error *err) {
    uint32_t struct_size = 0;

    if (given)
        memcpy(&struct_size, given, sizeof struct_size);
    IRON_FAIL_IF(struct_size != bytes, err, IRON_E_ARG,
                 "%s.struct_size is not %zu; set it to sizeof, or with the struct's init function",
                 name, bytes);
    return IRON_OK;
}

void iron__struct_init(void *to, size_t struct_size, const void *defaults, size_t bytes) {
    uint32_t size = (uint32_t)struct_size;
    size_t known = struct_size < bytes ? struct_size : bytes;

    memset(to, 0, struct_size);
    memcpy(to, defaults, known);
    memcpy(to, &size, sizeof size);
}

iron_status iron__progress(iron_progress progress, void *context, uint64_t done, uint64_t total,
                           iron_error *err) {
    IRON_FAIL_IF(progress && progress(context, done, total), err, IRON_E_CANCELLED,
                 "cancelled after %" PRIu64 " tokens", done);
    return IRON_OK;
}
