/* SPDX-License-Identifier: MIT */
/*
 * log_check.c: see log_check.h. The format is SQLite's, described in its documentation ("The WAL
 * File Format"): a header of 32 bytes, then frames of 24 bytes and a page. All numbers are
 * big-endian; a checksum runs through header and frames, over words in the order that the magic
 * number's last bit tells. Frames of an older log, which was begun anew, have other salts.
 */
#include "store/log_check.h"

#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_HEADER   32u
#define FRAME_HEADER 24u
#define MAGIC        UINT32_C(0x377f0682) /* or one more: words are big-endian */
#define PAGE_MAX     65536u

typedef struct log_reader {
    FILE *file;
    unsigned char salts[8];
    bool is_big_endian;
    uint32_t page_bytes;
    uint32_t sums[2];
    unsigned char *frame;
} log_reader;

static uint32_t word_at(const unsigned char *at, bool is_big_endian) {
    uint32_t b0 = at[0], b1 = at[1], b2 = at[2], b3 = at[3];

    return is_big_endian ? b0 << 24 | b1 << 16 | b2 << 8 | b3 : b3 << 24 | b2 << 16 | b1 << 8 | b0;
}

static void add_bytes(log_reader *log, const unsigned char *bytes, size_t count) {
    for (size_t k = 0; k < count; k += 8) {
        log->sums[0] += word_at(bytes + k, log->is_big_endian) + log->sums[1];
        log->sums[1] += word_at(bytes + k + 4, log->is_big_endian) + log->sums[0];
    }
}

static bool sums_are(const log_reader *log, const unsigned char *stored) {
    return word_at(stored, true) == log->sums[0] && word_at(stored + 4, true) == log->sums[1];
}

/* False: SQLite takes such a log for none. */
static bool read_header(log_reader *log) {
    unsigned char header[LOG_HEADER];
    uint32_t magic;

    if (fread(header, 1, sizeof header, log->file) != sizeof header)
        return false;
    magic = word_at(header, true);
    log->is_big_endian = magic & 1;
    log->page_bytes = word_at(header + 8, true);
    memcpy(log->salts, header + 16, sizeof log->salts);
    add_bytes(log, header, LOG_HEADER - 8);
    return (magic & ~UINT32_C(1)) == MAGIC && sums_are(log, header + 24) &&
           log->page_bytes >= 512 && log->page_bytes <= PAGE_MAX &&
           (log->page_bytes & (log->page_bytes - 1)) == 0;
}

static bool next_frame(log_reader *log) {
    size_t bytes = FRAME_HEADER + log->page_bytes;

    return fread(log->frame, 1, bytes, log->file) == bytes;
}

/* An older log's salts are random beside these; one byte that differs is a damaged one. */
static bool is_of_this_log(const log_reader *log) {
    unsigned differing = 0;

    for (size_t k = 0; k < sizeof log->salts; k++)
        differing += log->frame[8 + k] != log->salts[k];
    return differing <= 1;
}

static bool is_commit(const log_reader *log) { return word_at(log->frame + 4, true) != 0; }

static bool is_right(log_reader *log) {
    if (memcmp(log->frame + 8, log->salts, sizeof log->salts) != 0)
        return false;
    add_bytes(log, log->frame, 8);
    add_bytes(log, log->frame + FRAME_HEADER, log->page_bytes);
    return sums_are(log, log->frame + 16);
}

/* The frame in hand is wrong. Is there one of a later transaction behind it? */
static bool has_later_commit(log_reader *log) {
    bool is_over = is_of_this_log(log) && is_commit(log);

    while (next_frame(log)) {
        if (!is_of_this_log(log))
            continue;
        if (is_over)
            return true;
        is_over = is_commit(log);
    }
    return false;
}

static iron_status read_frames(log_reader *log, const char *path, iron_error *err) {
    uint64_t number = 1;

    while (next_frame(log)) {
        if (!is_right(log)) {
            IRON_FAIL_IF(has_later_commit(log), err, IRON_E_FORMAT,
                         "%.120s is damaged: frame %" PRIu64
                         " is not as it was written, and later ones follow; restore a backup",
                         path, number);
            return IRON_OK;
        }
        number++;
    }
    return IRON_OK;
}

/* A header is one small write, synced before any frame follows: it is whole, or it is not there. */
static iron_status check_without_header(log_reader *log, const char *path, iron_error *err) {
    unsigned char byte = 0;
    bool is_written = false;

    rewind(log->file);
    while (!is_written && fread(&byte, 1, 1, log->file) == 1)
        is_written = byte != 0;
    IRON_FAIL_IF(is_written, err, IRON_E_FORMAT,
                 "%.120s is damaged: its header is not as it was written; restore a backup", path);
    return IRON_OK;
}

static iron_status check(log_reader *log, const char *path, iron_error *err) {
    iron_status status;

    if (!read_header(log))
        return check_without_header(log, path, err);
    log->frame = malloc(FRAME_HEADER + log->page_bytes);
    IRON_FAIL_IF(!log->frame, err, IRON_E_NOMEM, "out of memory: a frame of %.120s", path);
    status = read_frames(log, path, err);
    free(log->frame);
    return status;
}

iron_status iron__log_check(const char *path, iron_error *err) {
    log_reader log = {.file = fopen(path, "rbe")};
    iron_status status;

    if (!log.file && errno == ENOENT)
        return IRON_OK;
    if (!log.file)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    status = check(&log, path, err);
    if (status == IRON_OK && ferror(log.file))
        status = iron__fail(err, IRON_E_IO, errno, "cannot read %.120s: %s", path, strerror(errno));
    fclose(log.file);
    return status;
}
