/* SPDX-License-Identifier: MIT */
#include "io/codec.h"
#include "core/fail.h"
const char *iron__codec_name(iron__codec codec) {
    (void)codec;
    return "";
}
iron_status iron__codec_load(iron__codec codec, const char *name, iron_error *err) {
    (void)codec;
    IRON_FAIL(err, IRON_E_UNSUPPORTED, "%s", name);
}
const char *iron__codec_library(iron__codec codec) {
    (void)codec;
    return "";
}
const char *iron__codec_package(iron__codec codec) {
    (void)codec;
    return "";
}
bool iron__codec_is_there(iron__codec codec) {
    (void)codec;
    return false;
}
iron_status iron__codec_decompress(iron__codec codec, const char *name, const void *from,
                                   size_t count, void *to, size_t room, iron_error *err) {
    (void)from;
    (void)count;
    (void)to;
    (void)room;
    return iron__codec_load(codec, name, err);
}
iron_status iron__codec_decompress_start(iron__codec codec, const char *name, const void *from,
                                         size_t count, void *to, size_t room, size_t wanted,
                                         iron_error *err) {
    (void)from;
    (void)count;
    (void)to;
    (void)room;
    (void)wanted;
    return iron__codec_load(codec, name, err);
}
iron_status iron__decompression_create(iron__codec codec, const char *name,
                                       iron__decompression **out, iron_error *err) {
    *out = NULL;
    return iron__codec_load(codec, name, err);
}
void iron__decompression_destroy(iron__decompression *d) { (void)d; }
iron_status iron__decompression_run(iron__decompression *d, iron__codec_buffers *buffers,
                                    iron_error *err) {
    (void)d;
    (void)buffers;
    (void)err;
    return IRON_E_UNSUPPORTED;
}
iron_status iron__decompression_finish(const iron__decompression *d, iron_error *err) {
    (void)d;
    (void)err;
    return IRON_OK;
}
