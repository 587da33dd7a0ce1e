/* SPDX-License-Identifier: MIT */
#include "io/frames.h"
iron_status iron__frames_open(const iron__input *in, iron__codec codec, iron__frames **out,
                              iron_error *err) {
    (void)in;
    (void)codec;
    (void)err;
    *out = NULL;
    return IRON_OK;
}
void iron__frames_close(iron__frames *frames) { (void)frames; }
uint64_t iron__frames_bytes(const iron__frames *frames) {
    (void)frames;
    return 0;
}
uint64_t iron__frames_block_count(const iron__frames *frames) {
    (void)frames;
    return 0;
}
uint64_t iron__frames_block_bytes(const iron__frames *frames, uint64_t index) {
    (void)frames;
    (void)index;
    return 0;
}
iron_status iron__frames_decode(const iron__frames *frames, const iron__input *in, uint64_t index,
                                iron__block *out, const atomic_bool *stop, iron_error *err) {
    (void)frames;
    (void)in;
    (void)index;
    (void)out;
    (void)stop;
    (void)err;
    return IRON_E_UNSUPPORTED;
}
iron_status iron__frames_read(const iron__frames *frames, const iron__blocks_range *blocks,
                              uint64_t at, void *to, size_t want, const atomic_bool *stop,
                              iron_error *err) {
    (void)frames;
    (void)blocks;
    (void)at;
    (void)to;
    (void)want;
    (void)stop;
    (void)err;
    return IRON_E_UNSUPPORTED;
}
