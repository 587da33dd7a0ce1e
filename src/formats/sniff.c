/* SPDX-License-Identifier: MIT */
/*
 * sniff.c: what a file is, and why. The same rows that open a file for reading look at it and leave
 * their reasons; only where none of them finds a sign, a sample of the values is asked, and the
 * answer is called a guess.
 */
#include "formats/sniff.h"

#include "core/fail.h"
#include "formats/sidecar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* 64 KiB from the beginning, the middle and the end: padding or a strange tail shows. */
#define PART_BYTES ((size_t)64 << 10)
#define PARTS      3u

static iron_status read_part(iron__candidate *c, uint64_t from, unsigned char *to, size_t want,
                             size_t *count, iron_error *err) {
    size_t got;

    c->file->taken = from;
    IRON_TRY(iron__source_file_read(c->file, to + *count, want, &got, NULL, err));
    *count += got;
    return IRON_OK;
}

static iron_status take_sample(iron__candidate *c, unsigned char *to, size_t *count,
                               iron_error *err) {
    uint64_t bytes = c->file->bytes;

    *count = 0;
    if (bytes <= PARTS * PART_BYTES)
        return read_part(c, 0, to, (size_t)bytes, count, err);
    IRON_TRY(read_part(c, 0, to, PART_BYTES, count, err));
    IRON_TRY(read_part(c, bytes / 16 * 8, to, PART_BYTES, count, err));
    return read_part(c, (bytes - PART_BYTES) / 8 * 8, to, PART_BYTES, count, err);
}

static iron_status guess(iron__candidate *c, iron_sniff_report *r, iron_error *err) {
    unsigned char *data = malloc(PARTS * PART_BYTES);
    iron__sample sample = {.data = data, .file_bytes = c->file->bytes};
    iron_status status;

    if (!data)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a sample");
    status = take_sample(c, data, &sample.count, err);
    if (status == IRON_OK) {
        r->is_guess = 1;
        iron__because(c, "no header and no index beside it: raw tokens, from byte 0 on%s",
                      iron__path_ends(c->file->path, ".npy") ? ", as OLMo writes .npy" : "");
        r->dtype = iron__sniff_guess(c, &sample);
        if (r->dtype == IRON_DTYPE_NONE)
            iron__because(c, "give --dtype as you know it");
        else
            iron__because(c, "a guess: give --dtype %s if that is right",
                          iron_dtype_name(r->dtype));
        if (r->dtype != IRON_DTYPE_NONE || r->bytes == 0)
            r->tokens = r->bytes ? r->bytes / iron_dtype_bytes(r->dtype) : 0;
    }
    free(data);
    return status;
}

/* An open regular file. */
static iron_status look(iron__candidate *c, iron_sniff_report *r, iron_error *err) {
    const iron__format *format;
    iron__layout layout;
    iron_status status;

    IRON_TRY(iron__source_file_peek(c->file, c->head, &c->head_count, NULL, err));
    IRON_TRY(iron__sidecar_refuse(c->file->path, err));
    format = iron__format_recognise(c);
    memcpy(r->format, format->name, strlen(format->name) + 1);
    if (format == &iron__format_raw)
        return guess(c, r, err);
    status = iron__format_examine(format, c, &layout, err);
    r->dtype = layout.dtype;
    r->data_offset = layout.data_offset;
    r->documents = layout.documents;
    if (status == IRON_OK)
        r->tokens = layout.tokens;
    return status;
}

iron_status iron_sniff(const char *path, iron_sniff_report *report, iron_error *err) {
    iron__source_file file = {.path = path, .fd = -1};
    iron__candidate candidate = {.file = &file, .name = path, .report = report};
    struct stat info;
    iron_status status;

    IRON_FAIL_IF(!report || report->struct_size != sizeof *report, err, IRON_E_ARG,
                 "iron_sniff_report.struct_size is not %zu; set it to sizeof", sizeof *report);
    *report = (iron_sniff_report){.struct_size = sizeof *report,
                                  .bytes = IRON_COUNT_UNKNOWN,
                                  .tokens = IRON_COUNT_UNKNOWN,
                                  .documents = IRON_COUNT_UNKNOWN};
    IRON_FAIL_IF(iron__path_is_stdin(path), err, IRON_E_ARG,
                 "- is standard input; only a file can be looked at and still be read");
    if (stat(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    IRON_FAIL_IF(S_ISDIR(info.st_mode), err, IRON_E_ARG,
                 "%.120s is a directory; name the files in it", path);
    IRON_FAIL_IF(!S_ISREG(info.st_mode), err, IRON_E_ARG,
                 "%.120s is a pipe or a device; only a file can be looked at and still be read",
                 path);
    report->bytes = file.bytes = (uint64_t)info.st_size;
    IRON_TRY(iron__source_file_open(&file, err));
    status = look(&candidate, report, err);
    iron__source_file_close(&file);
    return status;
}
