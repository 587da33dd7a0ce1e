/* SPDX-License-Identifier: MIT */
/*
 * libraries.c: the public description of the libraries that codec.c and remote.c load, for iron
 * info. Asking loads them.
 */
#include "core/fail.h"
#include "io/codec.h"
#include "io/remote.h"

/* lz4 blocks are in the same library as frames: they have no row. */
static const iron__codec listed[] = {IRON_CODEC_ZSTD, IRON_CODEC_GZIP, IRON_CODEC_XZ,
                                     IRON_CODEC_LZ4, IRON_CODEC_SNAPPY};

size_t iron_codec_count(void) { return sizeof listed / sizeof listed[0]; }

static iron_status check_struct(const iron_library_info *info, iron_error *err) {
    IRON_FAIL_IF(!info || info->struct_size != sizeof *info, err, IRON_E_ARG,
                 "iron_library_info.struct_size is not %zu; set it to sizeof", sizeof *info);
    return IRON_OK;
}

iron_status iron_codec_at(size_t index, iron_library_info *info, iron_error *err) {
    iron__codec codec;

    IRON_TRY(check_struct(info, err));
    IRON_FAIL_IF(index >= iron_codec_count(), err, IRON_E_ARG,
                 "codec %zu does not exist; there are %zu", index, iron_codec_count());
    codec = listed[index];
    *info = (iron_library_info){
        .struct_size = sizeof *info,
        .is_available = iron__codec_is_there(codec),
        .name = iron__codec_name(codec),
        .library = iron__codec_library(codec),
        .package = iron__codec_package(codec),
    };
    return IRON_OK;
}

iron_status iron_remote_describe(iron_library_info *info, iron_error *err) {
    const char *version;

    IRON_TRY(check_struct(info, err));
    version = iron__remote_library();
    *info = (iron_library_info){
        .struct_size = sizeof *info,
        .is_available = version != NULL,
        .name = "remote",
        .library = "libcurl",
        .package = "libcurl4",
        .version = version,
    };
    return IRON_OK;
}
