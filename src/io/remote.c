/* SPDX-License-Identifier: MIT */
#include "io/remote.h"
#include "core/fail.h"
#include <string.h>
bool iron__path_is_remote(const char *path) {
    return strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0 ||
           strncmp(path, "s3://", 5) == 0;
}
char *iron__remote_name(const char *address) { return strdup(address); }
iron_status iron__remote_open(const char *name, iron__remote **out, iron_error *err) {
    *out = NULL;
    IRON_FAIL(err, IRON_E_UNSUPPORTED, "%.100s", name);
}
uint64_t iron__remote_bytes(const iron__remote *remote) {
    (void)remote;
    return 0;
}
bool iron__remote_has_ranges(const iron__remote *remote) {
    (void)remote;
    return false;
}
uint64_t iron__remote_version(const iron__remote *remote) {
    (void)remote;
    return 0;
}
iron_status iron__remote_read(iron__remote *remote, uint64_t at, void *to, size_t want, size_t *got,
                              const atomic_bool *stop, iron_error *err) {
    (void)remote;
    (void)at;
    (void)to;
    (void)want;
    (void)got;
    (void)stop;
    (void)err;
    return IRON_E_UNSUPPORTED;
}
iron_status iron__remote_check_unchanged(iron__remote *remote, iron_error *err) {
    (void)remote;
    (void)err;
    return IRON_OK;
}
iron_status iron__remote_stream_open(iron__remote *remote, iron__remote_stream **out, int *fd,
                                     iron_error *err) {
    (void)remote;
    (void)out;
    (void)fd;
    (void)err;
    return IRON_E_UNSUPPORTED;
}
iron_status iron__remote_stream_check(iron__remote_stream *stream, iron_error *err) {
    (void)stream;
    (void)err;
    return IRON_OK;
}
void iron__remote_stream_close(iron__remote_stream *stream) { (void)stream; }
iron_status iron__remote_list(const char *prefix, char ***names, size_t *count, iron_error *err) {
    (void)prefix;
    (void)names;
    (void)count;
    (void)err;
    return IRON_E_UNSUPPORTED;
}
const char *iron__remote_library(void) { return NULL; }
