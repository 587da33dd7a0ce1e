/* SPDX-License-Identifier: MIT */
/*
 * source.c: several token files as one stream, read in order by one thread.
 *
 * When a source is opened, everything that can be known is checked before the first token is read:
 * that each file exists and is readable, that its header, its size and the files beside it agree,
 * and that all files hold tokens of one dtype. A pipe can be examined only when it is read. If the
 * user or another file gives the dtype, a pipe is examined when its turn comes; otherwise opening
 * the source waits for the first bytes of the first pipe.
 *
 * It is an error if a file became shorter since the source was opened, if a pipe ends inside a
 * token, or if a pipe delivers fewer or more tokens than its header says. parallel_source.c reads
 * files at several positions at once.
 *
 * Tokens of a file are its bytes after a header, or what those are converted to: columns of tables,
 * arrays in Fortran order, compressed files. What can be decoded at any position consists of
 * blocks, which a cache keeps while threads read them piece by piece. What can only be decompressed
 * in order is read like a pipe, but it can be opened again.
 */
#include "formats/source.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/number.h"
#include "formats/format.h"
#include "io/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct iron_source {
    iron_dtype dtype;            /* of all files; NONE only while the source is being opened */
    size_t dtype_file;           /* the file that determined it, if `given` did not */
    iron_dtype given;            /* given by the user, or NONE */
    bool is_for_raw;             /* `given` applies only to files without a dtype of their own */
    bool wants_seekable;         /* decompress files to find their length */
    bool is_seekable;            /* only regular files with names; does not change */
    const iron__format *forced;  /* NULL: recognise the format of each file */
    char *column;                /* of tables, given by the user; or NULL */
    iron_source_options options; /* only warn and its context */
    iron__file_list files;
    iron__format_layout *layouts;     /* of each file */
    iron__input_identity *identities; /* of each file */
    uint64_t tokens;
    uint64_t stdin_start; /* where standard input began, if it is a regular file */

    /* How the tokens of each file are decoded, in blocks that are counted through all files: a
     * thread that reads the end of one file decodes the beginning of the next ahead. */
    iron__blocks *cache; /* NULL: no file has blocks */
    iron__blocks_owner owner;
    uint64_t *bases; /* of each file: the number of blocks before it */

    size_t current;    /* index of the file being read */
    uint64_t done;     /* bytes of its tokens that were read */
    iron__input file;  /* the current file; opened when it is first read */
    iron__block batch; /* of a table that is read in order: decoded tokens */
    size_t batch_used; /* bytes of it that were read */

    /* rows that begin in what was read in order */
    bool notes_starts;
    size_t noted;       /* blocks of the current file's table whose rows were noted */
    iron__block starts; /* positions in the stream */
};

/* Examines an open file and checks that its dtype is the one of the source. */
static iron_status examine_open(iron_source *s, size_t index, iron__input *file, iron_error *err) {
    iron__candidate candidate = {.file = file,
                                 .name = iron__path_shown(file->path),
                                 .dtype = s->given,
                                 .is_for_raw = s->is_for_raw,
                                 .column = s->column,
                                 .wants_seekable = s->wants_seekable,
                                 .options = &s->options};
    iron_dtype found;

    iron__format_layout_clear(&s->layouts[index]);
    IRON_TRY(iron__format_examine(s->forced, &candidate, &s->layouts[index], err));
    found = s->layouts[index].dtype;
    if (s->dtype == IRON_DTYPE_NONE) {
        s->dtype = found;
        s->dtype_file = index;
    }
    IRON_FAIL_IF(found != s->dtype, err, IRON_E_FORMAT,
                 "%.80s holds %s tokens and %.80s %s; the files of one stream must agree",
                 candidate.name, iron_dtype_name(found),
                 iron__path_shown(s->files.paths[s->dtype_file]), iron_dtype_name(s->dtype));
    return IRON_OK;
}

/* Examines a regular file. Pipes and devices have no size and are examined later. */
static iron_status examine_file(iron_source *s, size_t index, iron_error *err) {
    const char *path = s->files.paths[index];
    iron__input_identity *id = &s->identities[index];
    iron__input file = {.path = path, .fd = -1};
    iron_status status;
    off_t from = 0;

    s->layouts[index] =
        (iron__format_layout){.bytes = IRON_COUNT_UNKNOWN, .tokens = IRON_COUNT_UNKNOWN};
    IRON_TRY(iron__input_identify(path, id, err));
    IRON_FAIL_IF(id->kind == IRON_INPUT_DIRECTORY, err, IRON_E_ARG,
                 "%.120s is a directory; name it as an argument instead", iron__path_shown(path));
    if (id->kind != IRON_INPUT_REGULAR)
        return IRON_OK;
    file.bytes = id->bytes;
    IRON_TRY(iron__input_open(&file, err));
    if (iron__path_is_stdin(path)) /* part of it may have been read already */
        from = lseek(file.fd, 0, SEEK_CUR);
    if (from > 0)
        s->stdin_start = (uint64_t)from < id->bytes ? (uint64_t)from : id->bytes;
    file.start = iron__path_is_stdin(path) ? s->stdin_start : 0;
    file.bytes = id->bytes - file.start;
    status = examine_open(s, index, &file, err);
    iron__input_close(&file);
    return status;
}

/* Opens a file to read its tokens: of a regular file, in any order. */
static iron_status open_again(const iron_source *s, size_t index, iron__input *in,
                              iron_error *err) {
    *in = (iron__input){.path = s->files.paths[index], .bytes = IRON_COUNT_UNKNOWN, .fd = -1};
    if (s->identities[index].kind == IRON_INPUT_REGULAR) {
        in->start = iron__path_is_stdin(in->path) ? s->stdin_start : 0;
        in->bytes = s->identities[index].bytes - in->start;
    }
    IRON_TRY(iron__input_open(in, err));
    iron__layout_use_frames(&s->layouts[index], in);
    return IRON_OK;
}

/* Blocks. */

/* The file of a block: the last that begins with it or before. */
static size_t file_of_block(const iron_source *s, uint64_t block) {
    return iron__array_find(s->bases, sizeof *s->bases, s->files.count, block);
}

static iron_status fill_block(void *context, uint64_t index, iron__block *block,
                              const atomic_bool *stop, iron_error *err) {
    const iron_source *s = context;
    size_t k = file_of_block(s, index);
    const iron__format_layout *l = &s->layouts[k];
    iron__input in;
    iron_status status;

    index -= s->bases[k];
    IRON_TRY(open_again(s, k, &in, err));
    in.stop = stop;
    if (l->table)
        status = l->table->kind->decode(l->table, &in, (size_t)index, true, block, err);
    else
        status = iron__frames_decode(l->frames, &in, index, block, err);
    iron__input_close(&in);
    return status;
}

static uint64_t block_size(void *context, uint64_t index) {
    const iron_source *s = context;
    size_t k = file_of_block(s, index);
    const iron__format_layout *l = &s->layouts[k];

    index -= s->bases[k];
    if (l->table)
        return iron__table_block_tokens(l->table, (size_t)index) * iron_dtype_bytes(l->dtype);
    return iron__frames_block_bytes(l->frames, index);
}

static iron__blocks_range blocks_of(const iron_source *s, size_t index) {
    return (iron__blocks_range){s->cache, &s->owner, s->bases[index]};
}

iron_status iron__source_options_check(const iron_source_options *o, iron_error *err) {
    IRON_TRY(iron__struct_check(o, sizeof *o, "iron_source_options", err));
    IRON_FAIL_IF(o->path_count == 0, err, IRON_E_ARG,
                 "no input; name files, or - for standard input");
    IRON_FAIL_IF(o->dtype != IRON_DTYPE_NONE && iron_dtype_bytes(o->dtype) == 0, err, IRON_E_ARG,
                 "unknown dtype %d; use those of --dtype: u8, u16, u32, i32 or i64", (int)o->dtype);
    return IRON_OK;
}

static iron_status open_files(iron_source *s, const iron_source_options *o, iron_error *err) {
    uint64_t count = 0, bytes = 0;
    size_t stdins = 0;

    IRON_TRY(iron__format_find(o->format, &s->forced, err));
    s->given = o->dtype;
    s->is_for_raw = o->dtype_is_for_raw != 0;
    s->wants_seekable = o->wants_seekable != 0;
    s->dtype = s->is_for_raw ? IRON_DTYPE_NONE : o->dtype;
    s->file.fd = -1;
    s->options = (iron_source_options){.warn = o->warn, .warn_context = o->warn_context};
    if (o->column && !(s->column = strdup(o->column)))
        return iron__no_memory(err, "an input");
    IRON_TRY(iron__file_list_fill(&s->files, o, err));
    IRON_TRY(IRON_NEW(&s->layouts, s->files.count, "a list of files", err));
    IRON_TRY(IRON_NEW(&s->identities, s->files.count, "a list of files", err));
    IRON_TRY(IRON_NEW(&s->bases, s->files.count, "a list of files", err));
    s->is_seekable = true;
    for (size_t k = 0; k < s->files.count; k++) {
        const iron__format_layout *l = &s->layouts[k];

        stdins += iron__path_is_stdin(s->files.paths[k]);
        IRON_FAIL_IF(stdins > 1, err, IRON_E_ARG,
                     "standard input (-) is named twice; name it once");
        IRON_TRY(examine_file(s, k, err));
        if (l->bytes == IRON_COUNT_UNKNOWN) /* a pipe's header is not read yet */
            s->tokens = IRON_COUNT_UNKNOWN;
        else if (s->tokens != IRON_COUNT_UNKNOWN)
            s->tokens += l->tokens;
        if (l->bytes == IRON_COUNT_UNKNOWN || iron__path_is_stdin(s->files.paths[k]) ||
            __builtin_add_overflow(bytes, l->bytes, &bytes))
            s->is_seekable = false;
        s->bases[k] = count;
        if (l->table)
            count += l->table->block_count;
        else if (l->frames)
            count += iron__frames_block_count(l->frames);
    }
    s->owner = (iron__blocks_owner){count, fill_block, block_size, s};
    IRON_TRY(count > 0 ? iron__blocks_create(iron__cpu_threads(), &s->cache, err) : IRON_OK);
    if (s->dtype != IRON_DTYPE_NONE)
        return IRON_OK;
    /* No file gave the dtype, so the first one is a pipe: examine it now. It stays open, because
     * the bytes that were read cannot be read again. */
    IRON_TRY(open_again(s, 0, &s->file, err));
    return examine_open(s, 0, &s->file, err);
}

iron_status iron_source_open(const iron_source_options *options, iron_source **out,
                             iron_error *err) {
    iron_source *s;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__source_options_check(options, err));
    IRON_TRY(IRON_NEW(&s, 1, "an input", err));
    status = open_files(s, options, err);
    if (status == IRON_OK)
        *out = s;
    else
        iron_source_close(s);
    return status;
}

void iron_source_close(iron_source *source) {
    if (!source)
        return;
    if (source->file.path)
        iron__input_close(&source->file);
    iron__blocks_destroy(source->cache);
    free(source->bases);
    iron__block_clear(&source->batch);
    iron__block_clear(&source->starts);
    for (size_t k = 0; source->layouts && k < source->files.count; k++)
        iron__format_layout_clear(&source->layouts[k]);
    iron__file_list_clear(&source->files);
    free(source->layouts);
    free(source->identities);
    free(source->column);
    free(source);
}

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

const char *iron_source_file_column(const iron_source *source, size_t index) {
    const iron__table *table =
        index < source->files.count ? iron__layout_table(&source->layouts[index]) : NULL;

    return table ? table->column : NULL;
}

const char *iron_source_file_compression(const iron_source *source, size_t index) {
    if (index >= source->files.count || source->layouts[index].codec == IRON_CODEC_NONE)
        return NULL;
    return iron__codec_name(source->layouts[index].codec);
}

int iron_path_is_remote(const char *path) { return iron__path_is_remote(path); }

const iron__format_layout *iron__source_layout(const iron_source *source, size_t index) {
    return &source->layouts[index];
}

int iron_source_is_seekable(const iron_source *source) { return source->is_seekable; }

bool iron__source_is_seekable(const iron_source *source) { return source->is_seekable; }

uint64_t iron__source_position(const iron_source *source) {
    uint64_t tokens = source->done / iron_dtype_bytes(source->dtype);

    for (size_t k = 0; k < source->current; k++)
        tokens += source->layouts[k].tokens;
    return tokens;
}

/* The file that contains a token; files.count if past the end. *position becomes the token's index
 * in that file. */
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
    if (source->layouts[*index].shape)
        position = iron__fortran_place(&source->layouts[*index], position);
    *byte = source->layouts[*index].data_offset + position * iron_dtype_bytes(source->dtype);
    return true;
}

/* Moves to a byte of a file's tokens; index == files.count is the end of the stream. */
static void go_to(iron_source *s, size_t index, uint64_t done) {
    if (s->file.path)
        iron__input_close(&s->file);
    s->file.path = NULL;
    s->current = index;
    s->done = done;
    s->noted = 0;
}

void iron__source_seek(iron_source *source, uint64_t position) {
    size_t index = file_with(source, &position);

    go_to(source, index, position * iron_dtype_bytes(source->dtype));
}

/* Opens the current file at its next token. A pipe is examined now; a file that is decompressed in
 * order, again. */
static iron_status open_current(iron_source *s, const atomic_bool *stop, iron_error *err) {
    const iron__format_layout *l = &s->layouts[s->current];
    const char *path = s->files.paths[s->current];
    bool is_pipe = l->bytes == IRON_COUNT_UNKNOWN;

    s->file.stop = stop;
    if (s->file.path)
        return IRON_OK;
    IRON_TRY(open_again(s, s->current, &s->file, err));
    s->file.stop = stop;
    if (is_pipe)
        return examine_open(s, s->current, &s->file, err);
    s->file.is_stream = iron__path_is_stdin(path);
    s->file.offset = l->data_offset + s->done;
    /* other processes see the offset of standard input: skip the header as if it were read */
    if (s->file.is_stream && lseek(s->file.fd, (off_t)s->file.offset, SEEK_CUR) < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot seek in standard input: %s",
                          strerror(errno));
    return IRON_OK;
}

/* Notes where in the stream the rows of the current file's table begin, of blocks that begin before
 * token `end`; at the end of the file, of all that are left. */
static iron_status note_blocks(iron_source *s, uint64_t end, iron_error *err) {
    const iron__table *table = s->layouts[s->current].table;
    iron__block *starts = &s->starts;
    uint64_t base;

    if (!s->notes_starts || !table || s->layouts[s->current].shape)
        return IRON_OK;
    end = end == table->tokens ? UINT64_MAX : end;
    base = iron__source_position(s) - s->done / iron_dtype_bytes(s->dtype);
    for (; s->noted < table->block_count && table->blocks[s->noted].first < end; s->noted++) {
        size_t k = starts->place_count;

        IRON_TRY(iron__table_row_starts(table, &s->file, s->noted, starts, err));
        for (; k < starts->place_count; k++)
            starts->places[k] += base;
    }
    return IRON_OK;
}

/* The current file ended, or all its tokens were read: then a pipe must end too. */
static iron_status finish_current(iron_source *s, bool has_ended, iron_error *err) {
    iron__format_layout *l = &s->layouts[s->current];
    const char *name = iron__path_shown(s->files.paths[s->current]);
    uint64_t width = iron_dtype_bytes(s->dtype);
    unsigned char more;
    size_t got = 0;

    IRON_TRY(has_ended ? iron__input_check_end(&s->file, err) : IRON_OK);
    /* a file without tokens was never opened: all of its rows are empty */
    for (uint64_t k = 0; s->notes_starts && l->tokens == 0 && l->table && k < l->table->rows; k++)
        IRON_TRY(iron__block_add_place(&s->starts, iron__source_position(s), err));
    if (l->bytes == IRON_COUNT_UNKNOWN) { /* a pipe */
        /* not twice: on a terminal the user would have to type a second end-of-file */
        if (!has_ended)
            IRON_TRY(iron__input_read(&s->file, &more, 1, &got, err));
        IRON_FAIL_IF(got > 0, err, IRON_E_FORMAT,
                     "%.100s continues after byte %" PRIu64 ", but its %s header says %" PRIu64
                     " tokens",
                     name, s->file.offset - 1, l->format->name, l->tokens);
        IRON_FAIL_IF(l->tokens != IRON_COUNT_UNKNOWN && s->done < l->tokens * width, err,
                     IRON_E_FORMAT,
                     "%.100s ended after byte %" PRIu64 " with %" PRIu64 " of the %" PRIu64
                     " tokens in its %s header",
                     name, s->file.offset, s->done / width, l->tokens, l->format->name);
        IRON_FAIL_IF(s->done % width != 0, err, IRON_E_FORMAT,
                     "%.100s ended after %" PRIu64 " bytes, not a whole number of %s tokens (%zu "
                     "bytes each); %s",
                     name, s->file.offset, iron_dtype_name(s->dtype), (size_t)width,
                     l->format == &iron__format_raw ? "check --dtype and the sender"
                                                    : "is it cut off?");
        l->tokens = s->done / width;
    }
    go_to(s, s->current + 1, 0);
    return IRON_OK;
}

void iron__swap_bytes(unsigned char *tokens, size_t count, size_t width) {
    for (size_t k = 0; k < count; k++, tokens += width)
        for (size_t n = 0; n < width / 2; n++) {
            unsigned char byte = tokens[n];

            tokens[n] = tokens[width - 1 - n];
            tokens[width - 1 - n] = byte;
        }
}

iron_status iron__source_read_converted(const iron_source *source, size_t index,
                                        const iron__input *in, uint64_t first, void *tokens,
                                        size_t count, iron_error *err) {
    const iron__format_layout *l = &source->layouts[index];
    iron__blocks_range blocks = blocks_of(source, index);
    size_t width = iron_dtype_bytes(l->dtype);

    if (l->table)
        return iron__table_read(l->table, in, &blocks, first, tokens, count, err);
    if (l->frames)
        IRON_TRY(iron__frames_read(l->frames, &blocks, l->data_offset + first * width, tokens,
                                   count * width, in->stop, err));
    else
        IRON_TRY(
            iron__input_read_at(in, l->data_offset + first * width, tokens, count * width, err));
    if (l->is_swapped)
        iron__swap_bytes(tokens, count, width);
    return IRON_OK;
}

iron_status iron__source_hold(const iron_source *source, size_t index, uint64_t first, size_t count,
                              const void **tokens, const iron__block **held,
                              const atomic_bool *stop, iron_error *err) {
    const iron__format_layout *l = &source->layouts[index];
    iron__blocks_range blocks = blocks_of(source, index);
    size_t width = iron_dtype_bytes(l->dtype), offset = 0, size = 0;
    uint64_t block = 0;

    *held = NULL;
    if (l->table) {
        block = iron__table_find(l->table, first);
        offset = (size_t)(first - l->table->blocks[block].first) * width;
        if (!l->table->blocks[block].is_direct)
            size = (size_t)iron__table_block_tokens(l->table, (size_t)block) * width;
    } else if (l->frames && !l->is_swapped) {
        block = iron__frames_find(l->frames, l->data_offset + first * width, &offset);
        size = (size_t)iron__frames_block_bytes(l->frames, block);
    }
    if (offset % width != 0 || offset + count * width > size)
        return IRON_OK;
    IRON_TRY(iron__blocks_get(blocks.cache, blocks.owner, blocks.base + block, held, stop, err));
    *tokens = (*held)->data + offset;
    if (offset + count * width <= (*held)->bytes)
        return IRON_OK;
    iron__blocks_put(blocks.cache, *held, 0); /* the last block of a file may be shorter */
    *held = NULL;
    return IRON_OK;
}

void iron__source_release(const iron_source *source, const iron__block *held, size_t count) {
    iron__blocks_put(source->cache, held, count * iron_dtype_bytes(source->dtype));
}

/* Reads tokens of a table in order; fewer than wanted at its end alone. */
static iron_status read_batches(iron_source *s, char *to, size_t want, size_t *got,
                                iron_error *err) {
    iron__table *stream = s->layouts[s->current].stream;
    uint64_t first = iron__source_position(s), width = iron_dtype_bytes(s->dtype);
    bool has_ended = false;

    for (*got = 0; *got < want && !has_ended;) {
        size_t left = s->batch.bytes - s->batch_used;
        size_t some = left < want - *got ? left : want - *got;

        if (some > 0)
            memcpy(to + *got, s->batch.data + s->batch_used, some);
        *got += some;
        s->batch_used += some;
        if (*got == want)
            break;
        s->batch.bytes = s->batch.place_count = s->batch_used = 0;
        IRON_TRY(stream->kind->next(stream, &s->file, &s->batch, &has_ended, err));
        for (size_t k = 0; s->notes_starts && k < s->batch.place_count; k++)
            IRON_TRY(
                iron__block_add_place(&s->starts, first + *got / width + s->batch.places[k], err));
    }
    return IRON_OK;
}

/* Reads tokens of the current file from s->done on; `want` and *got are bytes. */
static iron_status read_tokens(iron_source *s, void *to, size_t want, size_t *got,
                               iron_error *err) {
    const iron__format_layout *l = &s->layouts[s->current];
    size_t width = iron_dtype_bytes(s->dtype);

    if (l->stream)
        return read_batches(s, to, want, got, err);
    if (l->table || l->frames) {
        *got = want;
        IRON_TRY(note_blocks(s, s->done / width + want / width, err));
        return iron__source_read_converted(s, s->current, &s->file, s->done / width, to,
                                           want / width, err);
    }
    IRON_TRY(iron__input_read(&s->file, to, want, got, err));
    if (l->is_swapped)
        iron__swap_bytes(to, *got / width, width);
    return IRON_OK;
}

void iron__source_note_starts(iron_source *source) { source->notes_starts = true; }

iron_status iron__source_take_starts(iron_source *source, iron__block *places, iron_error *err) {
    iron__block *from = &source->starts;

    for (size_t k = 0; k < from->place_count; k++)
        IRON_TRY(iron__block_add_place(places, from->places[k], err));
    from->place_count = 0;
    return IRON_OK;
}

iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err) {
    size_t width = iron_dtype_bytes(source->dtype);
    size_t wanted = capacity * width, filled = 0, want, got;
    const iron__format_layout *l;
    uint64_t left;

    *count = 0;
    while (filled < wanted && source->current < source->files.count) {
        l = &source->layouts[source->current];
        got = 0;
        /* empty files are never opened, unless they must be read to know that they end */
        if (l->tokens * width > source->done || l->bytes == IRON_COUNT_UNKNOWN)
            IRON_TRY(open_current(source, stop, err));
        /* opening a pipe may have told how many there are */
        left = l->tokens == IRON_COUNT_UNKNOWN ? UINT64_MAX : l->tokens * width - source->done;
        want = iron__min_size(wanted - filled, left);
        if (want > 0)
            IRON_TRY(read_tokens(source, (char *)tokens + filled, want, &got, err));
        filled += got;
        source->done += got;
        if (got < want || got == left)
            IRON_TRY(finish_current(source, got < want, err));
    }
    *count = filled / width;
    return IRON_OK;
}

iron_status iron_source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                             iron_error *err) {
    return iron__source_read(source, tokens, capacity, count, NULL, err);
}

iron_status iron__source_check_unchanged(const iron_source *source, iron_error *err) {
    for (size_t k = 0; k < source->files.count; k++)
        IRON_TRY(iron__input_check_unchanged(source->files.paths[k], &source->identities[k], err));
    return IRON_OK;
}

iron_status iron__source_sample(const iron_source *source, size_t index, uint64_t *sample,
                                bool *is_there, iron_error *err) {
    uint64_t bytes = source->identities[index].bytes;
    iron__input file = {.path = source->files.paths[index], .bytes = bytes, .fd = -1};
    unsigned char data[2 * IRON_SAMPLE_BYTES];
    size_t end = bytes <= sizeof data ? 0 : IRON_SAMPLE_BYTES, begin = end ? end : (size_t)bytes;
    iron_status status;

    *sample = IRON_FNV_START;
    *is_there =
        source->identities[index].kind == IRON_INPUT_REGULAR && !iron__path_is_stdin(file.path);
    if (!*is_there)
        return IRON_OK;
    IRON_TRY(iron__input_open(&file, err));
    status = iron__input_read_at(&file, 0, data, begin, err);
    if (status == IRON_OK)
        status = iron__input_read_at(&file, bytes - end, data + begin, end, err);
    if (status == IRON_OK)
        *sample = iron__fnv(*sample, data, begin + end);
    iron__input_close(&file);
    return status;
}
