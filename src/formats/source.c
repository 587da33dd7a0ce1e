/* SPDX-License-Identifier: MIT */
/*
 * source.c: several token files as one stream, read one after another by one thread.
 *
 * A file that got shorter since the source was opened, a pipe that ends inside a token, or one that
 * brings fewer or more tokens than its header says, is an error, never a guess. Reads are blocking
 * and fill what they are given. source_at.c reads files in several places at once.
 */
#include "formats/source_parts.h"

#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

iron_dtype iron_source_dtype(const iron_source *source) { return source->dtype; }

uint64_t iron_source_tokens(const iron_source *source) { return source->tokens; }

size_t iron_source_file_count(const iron_source *source) { return source->files.count; }

const char *iron_source_file(const iron_source *source, size_t index) {
    return index < source->files.count ? source->files.paths[index] : NULL;
}

const char *iron_source_file_format(const iron_source *source, size_t index) {
    const iron__format *format;

    if (index >= source->files.count)
        return NULL;
    format = source->layouts[index].format ? source->layouts[index].format : source->forced;
    return format ? format->name : "auto";
}

uint64_t iron_source_file_tokens(const iron_source *source, size_t index) {
    return index < source->files.count ? source->layouts[index].tokens : IRON_COUNT_UNKNOWN;
}

const iron__layout *iron__source_layout(const iron_source *source, size_t index) {
    return &source->layouts[index];
}

uint64_t iron__source_file_bytes(const iron_source *source, size_t index) {
    return source->layouts[index].bytes;
}

static bool is_pipe(const iron__layout *l) { return l->bytes == IRON_COUNT_UNKNOWN; }

bool iron__source_is_seekable(const iron_source *source) { return source->is_seekable; }

uint64_t iron__source_position(const iron_source *source) {
    uint64_t tokens = source->done / iron_dtype_bytes(source->dtype);

    for (size_t k = 0; k < source->current; k++)
        tokens += source->layouts[k].tokens;
    return tokens;
}

/* The file with a token, and the token's place in it; files.count behind the last. */
static size_t file_with(const iron_source *s, uint64_t *position) {
    size_t index = 0;

    while (index < s->files.count && *position >= s->layouts[index].tokens)
        *position -= s->layouts[index++].tokens;
    return index;
}

bool iron__source_locate(const iron_source *source, uint64_t position, size_t *index,
                         uint64_t *byte) {
    *index = file_with(source, &position);
    if (*index == source->files.count)
        return false;
    *byte = source->layouts[*index].data_offset + position * iron_dtype_bytes(source->dtype);
    return true;
}

/* Goes to a place in a file, or with index == files.count to the end of all. */
static void go_to(iron_source *s, size_t index, uint64_t done) {
    if (s->file.path)
        iron__source_file_close(&s->file);
    s->file.path = NULL;
    s->current = index;
    s->done = done;
}

void iron__source_seek(iron_source *source, uint64_t position) {
    size_t index = file_with(source, &position);

    go_to(source, index, position * iron_dtype_bytes(source->dtype));
}

/* Others see where standard input stands: its header is passed over as if it were read. */
static iron_status pass_header(iron__source_file *file, iron_error *err) {
    if (lseek(file->fd, (off_t)file->taken, SEEK_CUR) < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot move in standard input: %s",
                          strerror(errno));
    return IRON_OK;
}

/* Opens the current file where its tokens go on; a pipe shows now what it is. */
static iron_status open_current(iron_source *s, const atomic_bool *stop, iron_error *err) {
    const iron__layout *l = &s->layouts[s->current];
    const char *path = s->files.paths[s->current];

    if (s->file.path)
        return IRON_OK;
    s->file = (iron__source_file){.path = path, .bytes = l->bytes, .fd = -1};
    s->file.moves = !is_pipe(l) && iron__path_is_stdin(path);
    IRON_TRY(iron__source_file_open(&s->file, err));
    if (is_pipe(l))
        return iron__source_look_into(s, stop, err);
    s->file.taken = l->data_offset + s->done;
    return s->file.moves ? pass_header(&s->file, err) : IRON_OK;
}

/* A pipe ended, or there is more of it than there should be. */
static iron_status check_pipe(const iron_source *s, bool has_more, iron_error *err) {
    const iron__layout *l = &s->layouts[s->current];
    const char *name = iron__path_shown(s->file.path);
    uint64_t width = iron_dtype_bytes(s->dtype);

    IRON_FAIL_IF(has_more, err, IRON_E_FORMAT,
                 "%.100s goes on after byte %" PRIu64 ": its %s header says %" PRIu64 " tokens",
                 name, s->file.taken - 1, l->format->name, l->tokens);
    IRON_FAIL_IF(l->tokens != IRON_COUNT_UNKNOWN && s->done < l->tokens * width, err, IRON_E_FORMAT,
                 "%.100s ended after byte %" PRIu64 " with %" PRIu64 " of the %" PRIu64
                 " tokens that its %s header says",
                 name, s->file.taken, s->done / width, l->tokens, l->format->name);
    IRON_FAIL_IF(s->done % width != 0, err, IRON_E_FORMAT,
                 "%.100s ended after %" PRIu64 " bytes, not a whole number of %s tokens (%zu bytes "
                 "each); check --dtype and the sender",
                 name, s->file.taken, iron_dtype_name(s->dtype), (size_t)width);
    return IRON_OK;
}

/* The current file ended, or its tokens are used up: then a pipe must end too. */
static iron_status finish_current(iron_source *s, bool has_ended, const atomic_bool *stop,
                                  iron_error *err) {
    iron__layout *l = &s->layouts[s->current];
    unsigned char more;
    size_t got = 0;

    IRON_TRY(has_ended ? iron__source_file_check_end(&s->file, err) : IRON_OK);
    if (is_pipe(l)) {
        /* not twice: a terminal would want a second end of its user */
        if (!has_ended)
            IRON_TRY(iron__source_file_read(&s->file, &more, 1, &got, stop, err));
        IRON_TRY(check_pipe(s, got > 0, err));
        l->tokens = s->done / iron_dtype_bytes(s->dtype);
    }
    go_to(s, s->current + 1, 0);
    return IRON_OK;
}

/* Bytes of tokens that the current file still has; of a pipe that does not say: no limit. */
static uint64_t bytes_left(const iron_source *s) {
    uint64_t tokens = s->layouts[s->current].tokens;

    if (tokens == IRON_COUNT_UNKNOWN)
        return UINT64_MAX;
    return tokens * iron_dtype_bytes(s->dtype) - s->done;
}

iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err) {
    size_t width = iron_dtype_bytes(source->dtype);
    size_t room = capacity * width, filled = 0;

    *count = 0;
    while (filled < room && source->current < source->files.count) {
        size_t want = room - filled, got = 0;
        uint64_t left;

        if (bytes_left(source) > 0) /* what is empty is never opened */
            IRON_TRY(open_current(source, stop, err));
        left = bytes_left(source);
        want = want < left ? want : (size_t)left;
        if (want > 0)
            IRON_TRY(iron__source_file_read(&source->file, (char *)tokens + filled, want, &got,
                                            stop, err));
        filled += got;
        source->done += got;
        if (got < want || got == left)
            IRON_TRY(finish_current(source, got < want, stop, err));
    }
    *count = filled / width;
    return IRON_OK;
}

iron_status iron_source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                             iron_error *err) {
    return iron__source_read(source, tokens, capacity, count, NULL, err);
}
