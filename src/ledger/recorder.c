/* SPDX-License-Identifier: MIT */
/*
 * recorder.c: writes a ledger: one record for each step, buffered, and written with one call to
 * write(). What was written survives the end of the process; a record that was torn by the end of
 * the machine is recognised by its checksum, and removed when the ledger is opened again.
 */
#include "ledger/ledger_internal.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/memory.h"
#include "digest/digest_internal.h"
#include "io/checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Written when so many bytes are waiting, whatever the options say. */
#define FLUSH_BYTES ((size_t)256 << 10)

struct iron_recorder {
    int fd;
    pid_t owner;
    char *path;
    iron_recorder_options options;
    unsigned char *buffer; /* whole frames, then the open record */
    size_t used, capacity; /* used: without the open record */
    bool is_open;          /* a record has begun: */
    size_t record_bytes;
    iron__ledger_step step;
    iron__seal seal;
    uint32_t waiting; /* records in the buffer */
    uint64_t flushed; /* when, as core/clock.h counts */
};

static uint64_t now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static unsigned char *put32(unsigned char *at, uint32_t value) {
    for (int k = 0; k < 4; k++)
        *at++ = (unsigned char)(value >> 8 * k);
    return at;
}

static unsigned char *put64(unsigned char *at, uint64_t value) {
    return put32(put32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

void iron_recorder_options_init_sized(iron_recorder_options *options, size_t struct_size) {
    const iron_recorder_options defaults = {
        .struct_size = (uint32_t)struct_size, .world = 1, .flush_records = 64, .flush_seconds = 1};

    iron__struct_init(options, struct_size, &defaults, sizeof defaults);
}

/* Makes room for so many bytes after those in use. NULL: out of memory. */
static unsigned char *reserve(iron_recorder *r, size_t used, size_t more) {
    size_t wanted = used + more;

    if (wanted > r->capacity) {
        size_t capacity = wanted > 2 * r->capacity ? wanted : 2 * r->capacity;
        unsigned char *larger = realloc(r->buffer, capacity);

        if (!larger)
            return NULL;
        r->buffer = larger;
        r->capacity = capacity;
    }
    return r->buffer + used;
}

/* Completes a frame whose payload stands after its header. */
static void seal_frame(unsigned char *frame, uint32_t kind, size_t bytes) {
    put32(put32(frame, kind), (uint32_t)bytes);
    put32(frame + 12, 0);
    put32(frame + 8, iron__ledger_frame_crc(frame, (uint32_t)bytes));
}

/* Writes all bytes, or none of them as far as the next reader can see. */
static iron_status write_all(iron_recorder *r, const unsigned char *data, size_t bytes,
                             iron_error *err) {
    while (bytes > 0) {
        ssize_t done = write(r->fd, data, bytes);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return iron__fail_path(err, "write", r->path, done < 0 ? errno : ENOSPC);
        data += done;
        bytes -= (size_t)done;
    }
    return IRON_OK;
}

/* Opening. */

static iron_status write_header(iron_recorder *r, iron_error *err) {
    const iron_recorder_options *o = &r->options;
    unsigned char header[LEDGER_HEADER_BYTES] = LEDGER_MAGIC, *at = header + 8;

    at = put32(put32(at, LEDGER_VERSION), LEDGER_HEADER_BYTES);
    at = put64(put32(put32(at, o->rank), o->world), now_ns());
    put32(at, o->is_without_samples ? LEDGER_WITHOUT_SAMPLES : 0);
    put32(header + LEDGER_HEADER_BYTES - 4, iron__crc32(header, LEDGER_HEADER_BYTES - 4));
    return write_all(r, header, sizeof header, err);
}

/* Goes on with a ledger: removes a torn end and writes the mark. */
static iron_status resume(iron_recorder *r, size_t bytes, iron_error *err) {
    unsigned char header[LEDGER_HEADER_BYTES], mark[LEDGER_FRAME_BYTES + LEDGER_RESUME_BYTES] = {0};
    size_t end = LEDGER_HEADER_BYTES, frame;
    const unsigned char *map;

    IRON_FAIL_IF(
        bytes < sizeof header || pread(r->fd, header, sizeof header, 0) != (ssize_t)sizeof header ||
            !iron__ledger_header_is_valid(header),
        err, IRON_E_FORMAT, "%.160s is not a ledger; remove it or choose another name", r->path);
    IRON_FAIL_IF(iron__ledger_u32(header + 16) != r->options.rank, err, IRON_E_ARG,
                 "%.140s is the ledger of rank %" PRIu32 ", not of rank %" PRIu32, r->path,
                 iron__ledger_u32(header + 16), r->options.rank);
    r->options.is_without_samples = (iron__ledger_u32(header + 32) & LEDGER_WITHOUT_SAMPLES) != 0;
    map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, r->fd, 0);
    if (map == MAP_FAILED)
        return iron__fail_path(err, "map", r->path, errno);
    while ((frame = iron__ledger_frame(map + end, bytes - end)) > 0)
        end += frame; /* of the last whole frame */
    munmap((void *)(uintptr_t)map, bytes);
    if (ftruncate(r->fd, (off_t)end) != 0 || lseek(r->fd, (off_t)end, SEEK_SET) < 0)
        return iron__fail_path(err, "write", r->path, errno);
    put64(put32(put32(mark + LEDGER_FRAME_BYTES, r->options.world), 0), now_ns());
    seal_frame(mark, LEDGER_RESUME, LEDGER_RESUME_BYTES);
    return write_all(r, mark, sizeof mark, err);
}

static iron_status open_file(iron_recorder *r, iron_error *err) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool is_append = r->options.is_append;
    struct stat about;

    r->fd = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC | (is_append ? 0 : O_EXCL), 0666);
    IRON_FAIL_IF(r->fd < 0 && errno == EEXIST, err, IRON_E_STATE,
                 "%.140s exists; go on with it (append) or choose another name", r->path);
    if (r->fd < 0)
        return iron__fail_path(err, "create", r->path, errno);
    /* one recorder at a time; file systems without locks are trusted */
    IRON_FAIL_IF(fcntl(r->fd, F_SETLK, &whole) != 0 && (errno == EACCES || errno == EAGAIN), err,
                 IRON_E_STATE, "%.160s is open in another recorder; each rank needs its own ledger",
                 r->path);
    if (fstat(r->fd, &about) != 0)
        return iron__fail_path(err, "read", r->path, errno);
    IRON_FAIL_IF(!S_ISREG(about.st_mode), err, IRON_E_ARG,
                 "%.160s is not a file; a ledger is a regular file", r->path);
    return about.st_size == 0 ? write_header(r, err) : resume(r, (size_t)about.st_size, err);
}

static void destroy(iron_recorder *r) {
    if (r->fd >= 0)
        close(r->fd);
    free(r->path);
    free(r->buffer);
    free(r);
}

iron_status iron_recorder_open(const char *path, const iron_recorder_options *options,
                               iron_recorder **out, iron_error *err) {
    const iron_recorder_options *o = options;
    iron_recorder *r;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__struct_check(o, sizeof *o, "iron_recorder_options", err));
    IRON_FAIL_IF(o->world == 0 || o->rank >= o->world, err, IRON_E_ARG,
                 "rank %" PRIu32 " of %" PRIu32 "; ranks are 0 to world - 1", o->rank, o->world);
    IRON_FAIL_IF(!(o->flush_seconds >= 0), err, IRON_E_ARG, "flush after %g seconds; use 0 or more",
                 o->flush_seconds);
    IRON_TRY(IRON_NEW(&r, 1, path, err));
    *r = (iron_recorder){.fd = -1, .owner = getpid(), .options = *options, .path = strdup(path)};
    status = r->path ? open_file(r, err) : iron__no_memory(err, path);
    r->flushed = iron__clock_ns();
    if (status == IRON_OK)
        *out = r;
    else
        destroy(r);
    return status;
}

/* Recording. */

static iron_status check_owner(const iron_recorder *r, iron_error *err) {
    IRON_FAIL_IF(r->owner != getpid(), err, IRON_E_STATE,
                 "%.120s belongs to another process; record where the batches arrive, not in a "
                 "worker",
                 r->path);
    return IRON_OK;
}

iron_status iron_recorder_begin(iron_recorder *r, uint64_t step, uint32_t micro, uint32_t epoch,
                                iron_error *err) {
    IRON_TRY(check_owner(r, err));
    if (!reserve(r, r->used, LEDGER_FRAME_BYTES + LEDGER_STEP_BYTES))
        return iron__no_memory(err, r->path);
    r->is_open = true;
    r->record_bytes = LEDGER_STEP_BYTES;
    r->step = (iron__ledger_step){.step = step, .micro = micro, .epoch = epoch};
    r->seal = (iron__seal){.carried = 0};
    return IRON_OK;
}

/* Adds a row's tokens to the seals of its sample and of the step. 64-bit tokens are narrowed once
 * for both, and checked on the way: a pass of its own would take as long as the seal. */
static void seal_row(const iron__tokens_view *view, size_t begin, size_t end, iron__widened *wide,
                     iron__seal *sample, iron__seal *step, bool *is_bad) {
    const iron__seal_variant *variant = iron__seal_variant_find("champion");

    if (view->dtype != IRON_DTYPE_I64) {
        iron__seal_view(variant, view, begin, end, wide->tokens, sample);
        iron__seal_view(variant, view, begin, end, wide->tokens, step);
        return;
    }
    for (size_t count; begin < end; begin += count) {
        iron__tokens_view piece = {IRON_DTYPE_U32, NULL, 0};

        count = end - begin;
        piece.data = iron__view_check_tokens(view, begin, &count, wide->tokens, is_bad);
        piece.count = count;
        iron__seal_view(variant, &piece, 0, count, NULL, sample);
        iron__seal_view(variant, &piece, 0, count, NULL, step);
    }
}

iron_status iron_recorder_rows(iron_recorder *r, iron_dtype dtype, const void *tokens, size_t rows,
                               size_t length, iron_error *err) {
    const iron__ledger_step step = r->step;
    const iron__seal seal = r->seal;
    size_t seals = r->options.is_without_samples ? 0 : LEDGER_SAMPLE_BYTES;
    iron__tokens_view view = {dtype, tokens, 0};
    iron__widened wide;
    bool is_bad = false;
    unsigned char *at;

    IRON_TRY(check_owner(r, err));
    IRON_FAIL_IF(!r->is_open, err, IRON_E_STATE, "no record has begun; call iron_recorder_begin");
    IRON_FAIL_IF(iron_dtype_bytes(dtype) == 0, err, IRON_E_ARG,
                 "unknown dtype %d; use those of iron_dtype", (int)dtype);
    IRON_FAIL_IF(__builtin_mul_overflow(rows, length, &view.count) ||
                     (view.count > 0 && (!tokens || (uintptr_t)tokens % iron_dtype_bytes(dtype))),
                 err, IRON_E_ARG, "%zu samples of %zu tokens at %p; align them to their width",
                 rows, length, tokens);
    IRON_FAIL_IF(seals > 0 && rows > (LEDGER_FRAME_MAX - r->record_bytes) / seals, err, IRON_E_ARG,
                 "%zu samples are too many for one record; divide them into micro steps", rows);
    if (dtype != IRON_DTYPE_I64)
        IRON_TRY(iron__view_check(&view, r->step.tokens, err));
    at = reserve(r, r->used, LEDGER_FRAME_BYTES + r->record_bytes + rows * seals);
    if (!at)
        return iron__no_memory(err, r->path);
    at += LEDGER_FRAME_BYTES + r->record_bytes;
    iron__widened_touch(&wide);
    for (size_t k = 0; k < rows; k++) {
        iron__seal sample = {.carried = 0};
        iron__seal_words words;
        uint64_t hi, lo;

        if (length > 0)
            seal_row(&view, k * length, (k + 1) * length, &wide, &sample, &r->seal, &is_bad);
        words = iron__seal_total(&sample);
        hi = iron__seal_fold(0, words);
        lo = iron__seal_fold(1, words);
        r->step.bag.hi += hi;
        r->step.bag.lo += lo;
        if (seals > 0)
            at = put64(put64(at, hi), lo);
    }
    if (is_bad) {
        r->step = step;
        r->seal = seal;
        return iron__view_check(&view, step.tokens, err);
    }
    r->step.bag.samples += rows;
    r->step.tokens += view.count;
    r->record_bytes += rows * seals;
    return IRON_OK;
}

iron_status iron_recorder_end(iron_recorder *r, iron_error *err) {
    iron__seal_words words = iron__seal_total(&r->seal);
    const iron__ledger_step *s = &r->step;
    unsigned char *frame = r->buffer + r->used, *at = frame + LEDGER_FRAME_BYTES;

    IRON_TRY(check_owner(r, err));
    IRON_FAIL_IF(!r->is_open, err, IRON_E_STATE, "no record has begun; call iron_recorder_begin");
    at = put64(put32(put32(put64(at, s->step), s->micro), s->epoch), s->tokens);
    at = put64(put64(at, iron__seal_fold(0, words)), iron__seal_fold(1, words));
    at = put64(put64(put64(at, s->bag.hi), s->bag.lo), s->bag.samples);
    put64(at, now_ns());
    seal_frame(frame, LEDGER_STEP, r->record_bytes);
    r->used += LEDGER_FRAME_BYTES + r->record_bytes;
    r->is_open = false;
    r->waiting++;
    if (r->waiting < r->options.flush_records && r->used < FLUSH_BYTES &&
        (double)(iron__clock_ns() - r->flushed) * 1e-9 < r->options.flush_seconds)
        return IRON_OK;
    return iron_recorder_flush(r, err);
}

iron_status iron_recorder_flush(iron_recorder *r, iron_error *err) {
    iron_status status;
    off_t before;

    IRON_TRY(check_owner(r, err));
    r->is_open = false;
    r->flushed = iron__clock_ns();
    if (r->used == 0)
        return IRON_OK;
    before = lseek(r->fd, 0, SEEK_CUR);
    status = write_all(r, r->buffer, r->used, err);
    /* what a full disk has cut off would hide all later records: written again next time */
    if (status != IRON_OK && before >= 0 &&
        (ftruncate(r->fd, before) != 0 || lseek(r->fd, before, SEEK_SET) < 0))
        return status;
    /* memory stays bounded if the file cannot be written for long: these records are lost */
    if (status == IRON_OK || r->used >= 4 * FLUSH_BYTES) {
        r->used = 0;
        r->waiting = 0;
    }
    return status;
}

iron_status iron_recorder_close(iron_recorder *r, iron_error *err) {
    unsigned char mark[LEDGER_FRAME_BYTES + LEDGER_END_BYTES];
    iron_status status = IRON_OK;

    if (!r)
        return IRON_OK;
    if (r->owner == getpid()) {
        status = iron_recorder_flush(r, err);
        put64(mark + LEDGER_FRAME_BYTES, now_ns());
        seal_frame(mark, LEDGER_END, LEDGER_END_BYTES);
        if (status == IRON_OK)
            status = write_all(r, mark, sizeof mark, err);
    }
    destroy(r);
    return status;
}
