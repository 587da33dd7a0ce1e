/* SPDX-License-Identifier: MIT */
/*
 * reading.c: the options of commands that read tokens, and the checks of input and output paths
 * that all of them make before they start.
 */
#include "reading.h"

#include <string.h>
#include <sys/stat.h>

const option reading_options[READING_COUNT] = {
    OPTION("dtype", OPTION_TEXT, "D", reading, dtype_name,
           "token type; required for headerless files, otherwise it must match the header",
           .choices = "u8 u16 u32 i32 i64"),
    OPTION("format", OPTION_TEXT, "F", reading, format,
           "file format; auto detects it for each file, raw takes every byte as token data",
           .choices = "auto raw llmc megatron npy ds litpkds", .standard = "auto"),
    OPTION("threads", OPTION_NUMBER, "T", reading, threads, "number of CPU threads", .min = 1,
           .max = 1024, .standard = "all available CPUs"),
    OPTION("backend", OPTION_TEXT, "B", reading, backend,
           "where to compute; auto takes the first CUDA GPU, otherwise the first OpenCL GPU, "
           "otherwise the CPU",
           .choices = "auto cpu cuda opencl", .standard = "auto"),
    OPTION("device", OPTION_NUMBER, "K", reading, device,
           "device number within the backend, counted from 0", .standard = "0"),
};

iron_status reading_check(reading *r, iron_error *err) {
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
    for (size_t k = 0; k < iron_source_file_count(source); k++)
        if (stat(iron_source_file(source, k), &input) == 0 && input.st_dev == target.st_dev &&
            input.st_ino == target.st_ino)
            return usage(err, "%s %.100s is an input file; give another name", option_name, path);
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
        return usage(err, "%s %.100s exists and is not a regular file; give another name",
                     option_name, path);
    /* open it the way the command will, without writing anything */
    status = iron_output_open(path, &probe, err);
    if (status == IRON_OK)
        iron_output_abandon(probe);
    return status;
}
