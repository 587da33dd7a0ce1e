/* SPDX-License-Identifier: MIT */
/* reading.c: see reading.h. */
#include "reading.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

iron_status reading_check(reading *r, iron_error *err) {
    if (r->has_threads && (r->threads < 1 || r->threads > 1024))
        return usage(err, "threads is %" PRIu64 "; it must be 1 to 1024", r->threads);
    if (r->device > UINT32_MAX)
        return usage(err, "device %" PRIu64 " does not exist", r->device);
    return r->dtype_name ? iron_dtype_parse(r->dtype_name, &r->dtype, err) : IRON_OK;
}

iron_status reading_open(const reading *r, const char *const *paths, size_t count,
                         iron_source **out, iron_error *err) {
    iron_source_options options = {.struct_size = sizeof options,
                                   .dtype = r->dtype,
                                   .format = r->format,
                                   .paths = paths,
                                   .path_count = count,
                                   .dtype_is_for_raw = r->is_for_raw};

    return iron_source_open(&options, out, err);
}

iron_status reading_guard(const iron_source *source, const char *option_name, const char *path,
                          iron_error *err) {
    struct stat target, input;

    if (!path || stat(path, &target) != 0)
        return IRON_OK;
    for (size_t k = 0; k < iron_source_file_count(source); k++) {
        const char *file = iron_source_file(source, k);

        if (stat(file, &input) == 0 && input.st_dev == target.st_dev &&
            input.st_ino == target.st_ino)
            return usage(err, "%s %.100s is an input file; give another name", option_name, path);
    }
    return IRON_OK;
}

iron_status reading_target(const char *option_name, const char *path, iron_error *err) {
    iron_output *probe = NULL;
    struct stat info;
    iron_status status;

    if (strcmp(path, "-") == 0)
        return usage(err, "%s cannot be standard output; name a file (./- for one called -)",
                     option_name);
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return usage(err, "%s %.100s exists and is no regular file; give another name", option_name,
                     path);
    /* the way that writing will go, up to the first byte */
    status = iron_output_open(path, &probe, err);
    if (status == IRON_OK)
        iron_output_abandon(probe);
    return status;
}
