/* SPDX-License-Identifier: MIT */
/*
 * parquet.c: Parquet files: a column of integers, or of lists of integers, in pages.
 *
 * Examining a file reads its footer and the headers of all pages of the chosen column. Of flat
 * columns that is all; of lists the levels are counted, too, by several threads if there is much to
 * read, so that the number of tokens is exact before the first is read. Consecutive pages of a
 * chunk form a block of about IRON_TABLE_BLOCK_TOKENS tokens. Large pages whose values lie in the
 * file as they are, are direct blocks. Decoding a block reads and checks everything again.
 *
 * Checksums of pages are checked whenever their values are decoded; so a page with a checksum is
 * never direct. Nulls are refused when they are seen: at the latest when they are decoded.
 */
#include "formats/parquet.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/thread_pool.h"
#include "formats/format.h"
#include "io/checksum.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC       "PAR1"
#define MAGIC_BYTES 4u
#define TAIL_BYTES  8u /* the footer's length and the magic */

#define FOOTER_BYTES_MAX ((uint64_t)1 << 30)

/* Page headers are read together with what follows them, in the expectation that it is needed. */
#define HEADER_BYTES     ((size_t)4 << 10)
#define HEADER_BYTES_MAX ((size_t)1 << 20)

/* Levels of a page: so many rows may begin in it, each with 8 bytes for its place. */
#define PAGE_VALUES_MAX (IRON_TABLE_PART_BYTES_MAX / 8)

/* Values of a direct block, and the pages of a block that is decoded, in the file. */
#define DIRECT_BYTES_MIN ((uint64_t)64 << 10)
#define PART_BYTES       ((uint64_t)16 << 20)

/* Larger buffers are not kept for the next block. */
#define KEPT_BYTES_MAX ((size_t)64 << 20)

/* Less than this is read by one thread. */
#define THREAD_BYTES   ((uint64_t)32 << 20)
#define THREADS_MAX    16u
#define LEVELS_AT_ONCE ((size_t)64 << 10) /* bytes of a page that are decompressed for them */

/* Consecutive pages of a chunk: a block of the table. */
typedef struct part {
    uint64_t at, bytes; /* from the first page's header on */
    uint64_t values_at; /* direct: the first value; else 0 */
    uint64_t values, tokens, rows;
    size_t chunk;
} part;

typedef struct part_list {
    part *parts;
    size_t count, capacity;
} part_list;

typedef struct buffer {
    unsigned char *data; /* with IRON_PARQUET_SLACK more bytes */
    size_t room;
} buffer;

/* Bytes of the file. */
typedef struct window {
    buffer buffer;
    uint64_t at;
    size_t count;
} window;

/* What a thread needs for decoding; kept for the next block. */
typedef struct workspace {
    struct workspace *next;
    window pages, dictionary_page;
    buffer page;           /* decompressed */
    buffer stored, tokens; /* of the dictionary */
    const iron__parquet_chunk *dictionary_of;
    iron__parquet_dictionary dictionary;
} workspace;

/* The state of a table. */
typedef struct parquet {
    iron__parquet_column column;
    iron__parquet_chunk *chunks;
    size_t chunk_count;
    part *parts; /* one for each block */
    pthread_mutex_t mutex;
    workspace *idle;
} parquet;

/* One pass over pages of a chunk. */
typedef struct reader {
    const parquet *file;
    const iron__parquet_chunk *chunk;
    const char *column;
    iron__input in; /* a copy: reads at any place do not change it */
    const char *name;
    workspace *work;
    window *window; /* one of the workspace's */
    const atomic_bool *stop;
} reader;

/* Workspaces. */

static workspace *workspace_take(parquet *file) {
    workspace *w;

    pthread_mutex_lock(&file->mutex);
    w = file->idle;
    if (w)
        file->idle = w->next;
    pthread_mutex_unlock(&file->mutex);
    if (!w)
        w = calloc(1, sizeof *w);
    return w;
}

static void release(buffer *b) {
    free(b->data);
    *b = (buffer){.data = NULL};
}

static void workspace_put(parquet *file, workspace *w) {
    if (!w)
        return;
    if (w->pages.buffer.room > KEPT_BYTES_MAX)
        release(&w->pages.buffer);
    if (w->page.room > KEPT_BYTES_MAX)
        release(&w->page);
    w->pages.count = 0;
    pthread_mutex_lock(&file->mutex);
    w->next = file->idle;
    file->idle = w;
    pthread_mutex_unlock(&file->mutex);
}

static void workspace_destroy(workspace *w) {
    free(w->pages.buffer.data);
    free(w->dictionary_page.buffer.data);
    free(w->page.data);
    free(w->stored.data);
    free(w->tokens.data);
    free(w);
}

static void destroy(void *state) {
    parquet *file = state;

    while (file->idle) {
        workspace *w = file->idle;

        file->idle = w->next;
        workspace_destroy(w);
    }
    pthread_mutex_destroy(&file->mutex);
    free(file->parts);
    free(file->chunks);
    free(file);
}

/* Makes room for `bytes`; what was there is kept if `kept` says so. */
static iron_status reserve(buffer *b, size_t bytes, size_t kept, iron_error *err) {
    size_t room = bytes > 2 * b->room ? bytes : 2 * b->room;
    unsigned char *data;

    if (bytes <= b->room && b->data)
        return IRON_OK;
    data = malloc(room + IRON_PARQUET_SLACK);
    if (!data)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory: %zu bytes for a page", bytes);
    if (kept > 0)
        memcpy(data, b->data, kept);
    free(b->data);
    b->data = data;
    b->room = room;
    return IRON_OK;
}

/* Bytes of the file: at least `need` from `at` on, which are in the chunk; reads up to `want`. */
static iron_status fetch(reader *r, uint64_t at, size_t need, size_t want,
                         const unsigned char **out, iron_error *err) {
    window *w = r->window;
    uint64_t end = w->at + w->count;
    size_t there = 0;

    if (at >= w->at && at <= end && w->buffer.data) {
        there = (size_t)(end - at);
        *out = w->buffer.data + (at - w->at);
        if (there >= need)
            return IRON_OK;
        memmove(w->buffer.data, *out, there);
    }
    want = want > need ? want : need;
    want = want < r->chunk->end - at ? want : (size_t)(r->chunk->end - at);
    w->count = 0;
    IRON_TRY(reserve(&w->buffer, want, there, err));
    assert(w->buffer.data);
    IRON_TRY(iron__input_read_at(&r->in, at + there, w->buffer.data + there, want - there, r->stop,
                                 err));
    memset(w->buffer.data + want, 0, IRON_PARQUET_SLACK);
    w->at = at;
    w->count = want;
    *out = w->buffer.data;
    return IRON_OK;
}

/* The error for a page whose content contradicts itself. */
static iron_status refuse_page(const reader *r, const iron__parquet_page *p, const char *why,
                               iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT,
              "%.90s: the page of column %.40s at byte %" PRIu64 " is damaged: %s", r->name,
              r->column, p->at, why);
}

/* Pages. */

static bool is_data(const iron__parquet_page *p) {
    return p->type == IRON_PARQUET_DATA || p->type == IRON_PARQUET_DATA_V2;
}

static bool is_dictionary_encoded(const iron__parquet_page *p) {
    return p->encoding == IRON_PARQUET_PLAIN_DICTIONARY ||
           p->encoding == IRON_PARQUET_RLE_DICTIONARY;
}

static bool is_packed(const reader *r, const iron__parquet_page *p) {
    return r->chunk->codec != IRON_CODEC_NONE && p->is_compressed;
}

/* Refuses encodings that are not read. */
static iron_status check_encodings(const reader *r, const iron__parquet_page *p, iron_error *err) {
    static const char *const names[] = {"PLAIN",
                                        "GROUP_VAR_INT",
                                        "PLAIN_DICTIONARY",
                                        "RLE",
                                        "BIT_PACKED",
                                        "DELTA_BINARY_PACKED",
                                        "DELTA_LENGTH_BYTE_ARRAY",
                                        "DELTA_BYTE_ARRAY",
                                        "RLE_DICTIONARY",
                                        "BYTE_STREAM_SPLIT",
                                        "ALP"};
    const iron__parquet_shape *shape = &r->file->column.shape;
    bool is_known = p->encoding >= 0 && (size_t)p->encoding < sizeof names / sizeof names[0];

    IRON_FAIL_IF(
        (shape->repetition_max && p->repetition_encoding != IRON_PARQUET_RLE) ||
            (shape->definition_max && p->definition_encoding != IRON_PARQUET_RLE),
        err, IRON_E_UNSUPPORTED,
        "%.90s: the page of column %.40s at byte %" PRIu64
        " has levels in the encoding BIT_PACKED or an unknown one, not RLE; write the file "
        "again with a current writer",
        r->name, r->column, p->at);
    if (p->encoding == IRON_PARQUET_PLAIN || p->encoding == IRON_PARQUET_DELTA ||
        p->encoding == IRON_PARQUET_BYTE_STREAM_SPLIT || is_dictionary_encoded(p))
        return IRON_OK;
    IRON_FAIL(err, IRON_E_UNSUPPORTED,
              "%.90s: the page of column %.40s at byte %" PRIu64
              " has the encoding %s, which is not read for integers; write it with PLAIN or a "
              "dictionary",
              r->name, r->column, p->at, is_known ? names[p->encoding] : "of an unknown number");
}

/* Checks what the header of a page says about its sizes. */
static iron_status check_page(const reader *r, const iron__parquet_page *p, iron_error *err) {
    uint64_t levels = (uint64_t)p->repetition_bytes + p->definition_bytes;
    uint64_t left = r->chunk->end - p->body;

    IRON_FAIL_IF(p->stored > left, err, IRON_E_FORMAT,
                 "%.90s: the page of column %.40s at byte %" PRIu64 " is said to have %" PRIu32
                 " bytes, but its row group has only %" PRIu64 " left",
                 r->name, r->column, p->at, p->stored, left);
    IRON_FAIL_IF(p->size > IRON_TABLE_PART_BYTES_MAX || p->stored > IRON_TABLE_PART_BYTES_MAX ||
                     p->values > PAGE_VALUES_MAX,
                 err, IRON_E_UNSUPPORTED,
                 "%.90s: the page of column %.40s at byte %" PRIu64 " has %" PRIu32
                 " bytes and %" PRIu32
                 " values, more than is decoded at once; write it with smaller pages",
                 r->name, r->column, p->at, p->size, p->values);
    if (p->type == IRON_PARQUET_DATA_V2 && (levels > p->stored || levels > p->size))
        return refuse_page(r, p, "its levels have more bytes than the page", err);
    if (!is_packed(r, p) && p->stored != p->size)
        return refuse_page(r, p, "it is not compressed, but its two sizes differ", err);
    return is_data(p) ? check_encodings(r, p, err) : IRON_OK;
}

/* Reads the header of the page at byte `at`, and checks it. */
static iron_status read_header(reader *r, uint64_t at, iron__parquet_page *p, iron_error *err) {
    uint64_t left = r->chunk->end - at;
    size_t most = left < HEADER_BYTES_MAX ? (size_t)left : HEADER_BYTES_MAX, used = 0;
    const char *why = "there is no room for it";
    iron__parquet_parse parsed = IRON_PARQUET_SHORT;

    *p = (iron__parquet_page){.type = -1};
    for (size_t bytes = 64; parsed == IRON_PARQUET_SHORT; bytes *= 8) {
        const unsigned char *from;

        if (at >= r->chunk->end || (bytes >= 8 * most && most > 0))
            break;
        bytes = bytes < most ? bytes : most;
        IRON_TRY(fetch(r, at, bytes, HEADER_BYTES, &from, err));
        parsed = iron__parquet_page_parse(from, bytes, p, &used, &why);
    }
    p->at = at;
    p->body = at + used;
    if (parsed != IRON_PARQUET_PARSED)
        return refuse_page(r, p, why, err);
    return check_page(r, p, err);
}

/* The body of a data page. */
typedef struct body {
    iron__parquet_levels levels;
    const unsigned char *values; /* NULL: not wanted */
    size_t value_bytes;
    uint64_t values_at; /* where they are in the file; 0: they are compressed */
} body;

/* Finds the levels at the beginning of a page of version 1, of which `have` bytes are known.
 * Returns the bytes that must be known, up to the values; more than `size`: damaged. */
static uint64_t split_levels(const iron__parquet_shape *shape, const unsigned char *from,
                             uint64_t have, iron__parquet_levels *out) {
    uint64_t at = 0;

    if (shape->repetition_max) {
        if (have < 4)
            return 4;
        out->repetition_bytes = iron__load_u32(from);
        out->repetition = from + 4;
        at = 4 + (uint64_t)out->repetition_bytes;
    }
    if (shape->definition_max) {
        if (have < at + 4)
            return at + 4;
        out->definition_bytes = iron__load_u32(from + at);
        out->definition = from + at + 4;
        at += 4 + (uint64_t)out->definition_bytes;
    }
    return at;
}

/* Version 1: levels and values are compressed together. */
static iron_status read_body_v1(reader *r, const iron__parquet_page *p, bool wants_values,
                                body *out, iron_error *err) {
    const unsigned char *from = r->window->buffer.data, *stored;
    uint64_t need = 0, have = 0;
    bool is_compressed = is_packed(r, p) && p->size > 0;

    for (;;) {
        need = split_levels(&r->file->column.shape, from, have, &out->levels);
        if (need > p->size)
            return refuse_page(r, p, "its levels have more bytes than the page", err);
        if (wants_values)
            need = p->size;
        if (need <= have)
            break;
        if (!is_compressed) {
            have = need;
            IRON_TRY(fetch(r, p->body, (size_t)have, 0, &from, err));
            continue;
        }
        IRON_TRY(fetch(r, p->body, p->stored, 0, &stored, err));
        IRON_TRY(reserve(&r->work->page, p->size, 0, err));
        have = need < LEVELS_AT_ONCE ? LEVELS_AT_ONCE : 2 * need;
        have = have < p->size ? have : p->size;
        from = r->work->page.data;
        if (have == p->size)
            IRON_TRY(iron__codec_decompress(r->chunk->codec, r->name, stored, p->stored,
                                            r->work->page.data, p->size, err));
        else
            IRON_TRY(iron__codec_decompress_start(r->chunk->codec, r->name, stored, p->stored,
                                                  r->work->page.data, p->size, (size_t)have, err));
        memset(r->work->page.data + p->size, 0, IRON_PARQUET_SLACK);
    }
    need = split_levels(&r->file->column.shape, from, have, &out->levels);
    out->value_bytes = (size_t)(p->size - need);
    out->values = wants_values ? from + need : NULL;
    out->values_at = is_compressed ? 0 : p->body + need;
    return IRON_OK;
}

/* Version 2: levels are never compressed. */
static iron_status read_body_v2(reader *r, const iron__parquet_page *p, bool wants_values,
                                body *out, iron_error *err) {
    size_t levels = (size_t)p->repetition_bytes + p->definition_bytes;
    const unsigned char *from;
    buffer *page = &r->work->page;

    IRON_TRY(fetch(r, p->body, wants_values ? p->stored : levels, 0, &from, err));
    out->levels.repetition = from;
    out->levels.repetition_bytes = p->repetition_bytes;
    out->levels.definition = from + p->repetition_bytes;
    out->levels.definition_bytes = p->definition_bytes;
    out->value_bytes = p->size - levels;
    if (!is_packed(r, p) || out->value_bytes == 0) {
        out->values = from + levels;
        out->values_at = p->body + levels;
        return IRON_OK;
    }
    if (!wants_values)
        return IRON_OK;
    IRON_TRY(reserve(page, out->value_bytes, 0, err));
    IRON_TRY(iron__codec_decompress(r->chunk->codec, r->name, from + levels, p->stored - levels,
                                    page->data, out->value_bytes, err));
    memset(page->data + out->value_bytes, 0, IRON_PARQUET_SLACK);
    out->values = page->data;
    return IRON_OK;
}

/* Checks the checksum of a page's body, as it is in the file. */
static iron_status check_crc(reader *r, const iron__parquet_page *p, iron_error *err) {
    const unsigned char *from;
    uint32_t crc;

    if (!p->has_crc)
        return IRON_OK;
    IRON_TRY(fetch(r, p->body, p->stored, 0, &from, err));
    crc = iron__crc32(from, p->stored);
    IRON_FAIL_IF(crc != p->crc, err, IRON_E_FORMAT,
                 "%.90s: the page of column %.40s at byte %" PRIu64 " has the checksum %08" PRIx32
                 ", but its header says %08" PRIx32 "; the file is damaged",
                 r->name, r->column, p->at, crc, p->crc);
    return IRON_OK;
}

/* Reads a data page: its levels, and its values if they are wanted. */
static iron_status read_body(reader *r, const iron__parquet_page *p, bool wants_values, body *out,
                             iron_error *err) {
    *out = (body){.levels = {.count = p->values}};
    if (wants_values)
        IRON_TRY(check_crc(r, p, err));
    if (p->type == IRON_PARQUET_DATA_V2)
        return read_body_v2(r, p, wants_values, out, err);
    return read_body_v1(r, p, wants_values, out, err);
}

/* Counts the tokens and rows of a page. `row`: how many rows begin before it in the file. */
static iron_status tally(const reader *r, const iron__parquet_page *p,
                         const iron__parquet_levels *levels, uint64_t row, iron__block *places,
                         uint64_t first, iron__parquet_tally *out, iron_error *err) {
    IRON_TRY(iron__parquet_tally_levels(&r->file->column.shape, levels, places, first, out, err));
    if (out->fault)
        return refuse_page(r, p, out->fault, err);
    if (out->is_continued && row == r->chunk->first_row)
        return refuse_page(r, p, "the row group does not begin with a row", err);
    row += out->rows;
    if (out->has_null)
        return iron__table_refuse_null(r->name, r->column, row > 0 ? row - 1 : 0, err);
    return IRON_OK;
}

/* Examining: the pages of a chunk become parts. */

static iron_status add_part(part_list *list, const part *p, iron_error *err) {
    part *parts = iron__array_grow(list->parts, list->count, &list->capacity, sizeof *parts);

    if (!parts)
        return iron__no_memory(err, "the blocks of a file");
    list->parts = parts;
    list->parts[list->count++] = *p;
    return IRON_OK;
}

/* Adds a page to the last part, or begins another one. */
static iron_status add_page(part_list *list, const part *page, iron_error *err) {
    part *last = list->count > 0 ? &list->parts[list->count - 1] : NULL;
    uint64_t end = page->at + page->bytes;

    if (!last || page->values_at || last->values_at ||
        last->values + page->values > IRON_TABLE_BLOCK_TOKENS || end - last->at > PART_BYTES)
        return add_part(list, page, err);
    last->bytes = end - last->at;
    last->values += page->values;
    last->tokens += page->tokens;
    last->rows += page->rows;
    return IRON_OK;
}

/* Examines one data page; `row` rows of the file begin before it. */
static iron_status examine_page(reader *r, const iron__parquet_page *p, uint64_t row,
                                part_list *list, part *page, iron_error *err) {
    const iron__parquet_shape *shape = &r->file->column.shape;
    size_t width = iron__stored_bytes(r->file->column.stored);
    bool may_be_direct = p->encoding == IRON_PARQUET_PLAIN && !is_packed(r, p) && !p->has_crc &&
                         p->values * width >= DIRECT_BYTES_MIN;
    iron__parquet_tally counted = {.tokens = p->values, .rows = p->values};
    body b = {.values = NULL};

    if (is_dictionary_encoded(p) && !r->chunk->dictionary_at)
        return refuse_page(r, p, "its row group has no dictionary before it", err);
    if (shape->repetition_max || may_be_direct) {
        IRON_TRY(read_body(r, p, false, &b, err));
        IRON_TRY(tally(r, p, &b.levels, row, NULL, 0, &counted, err));
    }
    *page = (part){.at = p->at,
                   .bytes = p->body + p->stored - p->at,
                   .values = p->values,
                   .tokens = counted.tokens,
                   .rows = counted.rows,
                   .chunk = (size_t)(r->chunk - r->file->chunks)};
    if (may_be_direct && counted.tokens * width >= DIRECT_BYTES_MIN) {
        if (b.value_bytes != counted.tokens * width)
            return refuse_page(r, p, "its plain values have not the size that their number gives",
                               err);
        page->values_at = b.values_at;
    }
    return add_page(list, page, err);
}

/* Examines all pages of a chunk. */
static iron_status examine_chunk(reader *r, iron__parquet_chunk *chunk, part_list *list,
                                 iron_error *err) {
    uint64_t at = chunk->at, values = 0, rows = 0;

    while (values < chunk->values) {
        iron__parquet_page p;
        part page = {.rows = 0};

        IRON_TRY(read_header(r, at, &p, err));
        if (p.type == IRON_PARQUET_DICTIONARY) {
            if (chunk->dictionary_at)
                return refuse_page(r, &p, "its row group has two dictionaries", err);
            chunk->dictionary_at = at;
        } else if (is_data(&p)) {
            if (p.values > chunk->values - values)
                return refuse_page(r, &p, "it has more values than its row group", err);
            IRON_TRY(examine_page(r, &p, chunk->first_row + rows, list, &page, err));
            values += p.values;
            rows += page.rows;
        }
        at = p.body + p.stored;
    }
    IRON_FAIL_IF(rows != chunk->rows, err, IRON_E_FORMAT,
                 "%.90s: column %.40s of the row group at byte %" PRIu64 " has %" PRIu64
                 " rows, but the footer says %" PRIu64,
                 r->name, r->column, chunk->at, rows, chunk->rows);
    return IRON_OK;
}

/* Examining on several threads: each takes the next chunk. */
typedef struct survey {
    parquet *file;
    const iron__input *in;
    const char *name, *column;
    const atomic_bool *stop;
    iron__pieces pieces;
    part_list *lists; /* one for each chunk */
} survey;

static void *survey_run(void *context) {
    survey *s = context;
    reader r = {.file = s->file, .column = s->column, .in = *s->in, .name = s->name};
    uint64_t piece;

    r.in.is_stream = false;
    r.stop = s->stop;
    r.work = workspace_take(s->file);
    while (iron__pieces_take(&s->pieces, &piece)) {
        iron_status status = IRON_OK;
        iron_error error;

        if (!r.work) {
            status = iron__no_memory(&error, "a column");
        } else {
            r.chunk = &s->file->chunks[piece];
            r.window = &r.work->pages;
            r.window->count = 0;
            status = examine_chunk(&r, &s->file->chunks[piece], &s->lists[piece], &error);
        }
        if (status != IRON_OK)
            iron__pieces_end(&s->pieces, piece, status, &error);
    }
    workspace_put(s->file, r.work);
    return NULL;
}

/* How many threads are worth starting: levels are all that takes time. */
static uint32_t survey_threads(const parquet *file) {
    uint64_t bytes = 0, most;

    if (file->column.shape.repetition_max == 0)
        return 1;
    for (size_t k = 0; k < file->chunk_count; k++)
        bytes += file->chunks[k].end - file->chunks[k].at;
    most = bytes / THREAD_BYTES + 1;
    most = most < file->chunk_count ? most : file->chunk_count;
    most = most < iron__cpu_threads() ? most : iron__cpu_threads();
    return most < THREADS_MAX ? (uint32_t)most : THREADS_MAX;
}

static iron_status survey_all(survey *s, iron_error *err) {
    uint32_t threads = survey_threads(s->file), started = 0;
    pthread_t others[THREADS_MAX];
    iron_status status;

    iron__pieces_init(&s->pieces, s->file->chunk_count);
    while (started + 1 < threads && iron__thread_start(&others[started], survey_run, s) == 0)
        started++;
    survey_run(s);
    for (uint32_t k = 0; k < started; k++)
        pthread_join(others[k], NULL);
    status = s->pieces.status;
    if (status != IRON_OK && err)
        *err = s->pieces.error;
    iron__pieces_deinit(&s->pieces);
    return status;
}

/* Makes the blocks of the table of all parts. */
static iron_status add_blocks(parquet *file, const part_list *lists, iron__table *table,
                              iron_error *err) {
    size_t count = 0, done = 0;

    for (size_t k = 0; k < file->chunk_count; k++)
        count += lists[k].count;
    file->parts = malloc((count + 1) * sizeof *file->parts);
    if (!file->parts)
        return iron__no_memory(err, "the blocks of a file");
    for (size_t k = 0; k < file->chunk_count; k++)
        for (size_t p = 0; p < lists[k].count; p++) {
            const part *from = &lists[k].parts[p];
            iron__table_block block = {.first = table->tokens,
                                       .first_row = table->rows,
                                       .at = from->values_at ? from->values_at : from->at,
                                       .is_direct = from->values_at != 0,
                                       .stored = file->column.stored};

            IRON_TRY(iron__table_add_block(table, &block, err));
            table->tokens += from->tokens;
            table->rows += from->rows;
            file->parts[done++] = *from;
        }
    return IRON_OK;
}

static iron_status examine_pages(const iron__candidate *c, parquet *file, iron__table *table,
                                 iron_error *err) {
    survey s = {.file = file, .in = c->file, .name = c->name, .column = table->column};
    iron_status status;

    s.stop = c->stop;
    s.lists = calloc(file->chunk_count + 1, sizeof *s.lists);
    if (!s.lists)
        return iron__no_memory(err, "the row groups of a file");
    status = survey_all(&s, err);
    if (status == IRON_OK)
        status = add_blocks(file, s.lists, table, err);
    for (size_t k = 0; k < file->chunk_count; k++)
        free(s.lists[k].parts);
    free(s.lists);
    return status;
}

/* Decoding. */

/* A block that is being decoded. */
typedef struct decoding {
    reader r;
    const iron__table *table;
    size_t index;
    bool wants_tokens;
    iron__block *out;
    uint64_t tokens, rows;          /* of the block */
    uint64_t tokens_done, row_done; /* so far; rows of the file */
    size_t places_before;
} decoding;

/* Converts the integers of a dictionary. Those that are not tokens matter only if they are used. */
static void convert_dictionary(workspace *w, iron__stored stored, size_t count) {
    size_t width = iron__stored_bytes(stored);

    w->dictionary =
        (iron__parquet_dictionary){.stored = w->stored.data,
                                   .tokens = (const uint32_t *)(const void *)w->tokens.data,
                                   .count = count};
    for (size_t k = 0; k < count; k++) { /* each step ends at the next one that is not a token */
        k += iron__stored_convert(stored, w->stored.data + k * width, count - k,
                                  w->tokens.data + k * sizeof(uint32_t));
        w->dictionary.has_bad = w->dictionary.has_bad || k < count;
    }
}

static iron_status read_dictionary_page(reader *r, iron_error *err) {
    workspace *w = r->work;
    size_t bytes;
    const unsigned char *from;
    iron__parquet_page p;

    IRON_TRY(read_header(r, r->chunk->dictionary_at, &p, err));
    bytes = p.values * iron__stored_bytes(r->file->column.stored);
    if (p.type != IRON_PARQUET_DICTIONARY)
        return refuse_page(r, &p, "it is not a dictionary any more", err);
    if (p.encoding != IRON_PARQUET_PLAIN && p.encoding != IRON_PARQUET_PLAIN_DICTIONARY)
        return refuse_page(r, &p, "its encoding is not that of dictionaries", err);
    if (p.size != bytes)
        return refuse_page(r, &p, "its size is not that of its number of values", err);
    IRON_TRY(check_crc(r, &p, err));
    IRON_TRY(fetch(r, p.body, p.stored, 0, &from, err));
    IRON_TRY(reserve(&w->stored, bytes, 0, err));
    IRON_TRY(reserve(&w->tokens, p.values * sizeof(uint32_t), 0, err));
    if (is_packed(r, &p) && bytes > 0)
        IRON_TRY(iron__codec_decompress(r->chunk->codec, r->name, from, p.stored, w->stored.data,
                                        bytes, err));
    else
        memcpy(w->stored.data, from, bytes);
    convert_dictionary(w, r->file->column.stored, p.values);
    return IRON_OK;
}

/* Reads the chunk's dictionary unless this workspace has it. */
static iron_status read_dictionary(reader *r, iron_error *err) {
    workspace *w = r->work;
    window *before = r->window;
    iron_status status;

    if (w->dictionary_of == r->chunk)
        return IRON_OK;
    w->dictionary_of = NULL;
    r->window = &w->dictionary_page; /* the pages that were read are still needed */
    r->window->count = 0;
    status = read_dictionary_page(r, err);
    r->window = before;
    if (status == IRON_OK)
        w->dictionary_of = r->chunk;
    return status;
}

/* The error for a value that is not a token. */
static iron_status refuse_value(const decoding *d, const iron__parquet_failure *failure,
                                iron_error *err) {
    uint64_t token = d->tokens_done + failure->index;
    uint64_t begun = d->table->blocks[d->index].first_row;

    if (d->r.file->column.shape.repetition_max == 0)
        begun += token + 1;
    for (size_t k = d->places_before; k < d->out->place_count && d->out->places[k] <= token; k++)
        begun++;
    return iron__stored_refuse(d->r.file->column.stored, failure->stored, 0, d->r.name, d->r.column,
                               begun > 0 ? begun - 1 : 0, err);
}

static iron_status decode_page(decoding *d, const iron__parquet_page *p, iron_error *err) {
    iron__parquet_values values = {.encoding = p->encoding, .stored = d->r.file->column.stored};
    /* of a flat column, every token is a row: who wants tokens needs no places */
    bool has_places = !d->wants_tokens || d->r.file->column.shape.repetition_max > 0;
    iron__parquet_failure failure;
    iron__parquet_tally counted;
    body b;

    if (d->wants_tokens && is_dictionary_encoded(p)) {
        if (!d->r.chunk->dictionary_at)
            return refuse_page(&d->r, p, "its row group has no dictionary before it", err);
        IRON_TRY(read_dictionary(&d->r, err));
    }
    IRON_TRY(read_body(&d->r, p, d->wants_tokens, &b, err));
    IRON_TRY(tally(&d->r, p, &b.levels, d->row_done, has_places ? d->out : NULL, d->tokens_done,
                   &counted, err));
    IRON_FAIL_IF(counted.tokens > d->tokens - d->tokens_done, err, IRON_E_FORMAT,
                 "%.90s: the page of column %.40s at byte %" PRIu64
                 " has more tokens than before; the file was changed while being read",
                 d->r.name, d->r.column, p->at);
    if (d->wants_tokens) {
        values.from = b.values;
        values.bytes = b.value_bytes;
        values.count = (size_t)counted.tokens;
        values.dictionary = &d->r.work->dictionary;
        if (!iron__parquet_decode(&values, (uint32_t *)(void *)(d->out->data + d->out->bytes),
                                  &failure))
            return failure.fault ? refuse_page(&d->r, p, failure.fault, err)
                                 : refuse_value(d, &failure, err);
        d->out->bytes += values.count * sizeof(uint32_t);
    }
    d->tokens_done += counted.tokens;
    d->row_done += counted.rows;
    return IRON_OK;
}

/* Decodes the pages of a block. */
static iron_status decode_part(decoding *d, const part *piece, iron_error *err) {
    uint64_t first_row = d->table->blocks[d->index].first_row, at = piece->at;
    const unsigned char *unused;

    if (d->wants_tokens) {
        size_t bytes = (size_t)d->tokens * sizeof(uint32_t);

        IRON_TRY(iron__block_reserve(d->out, d->out->bytes + bytes, err));
        IRON_TRY(fetch(&d->r, at, (size_t)piece->bytes, 0, &unused, err));
    }
    d->row_done = first_row;
    while (at < piece->at + piece->bytes) {
        iron__parquet_page p;

        IRON_TRY(read_header(&d->r, at, &p, err));
        if (is_data(&p))
            IRON_TRY(decode_page(d, &p, err));
        at = p.body + p.stored;
    }
    IRON_FAIL_IF(d->tokens_done != d->tokens || d->row_done - first_row != d->rows ||
                     at != piece->at + piece->bytes,
                 err, IRON_E_FORMAT,
                 "%.90s: column %.40s has not the same pages at byte %" PRIu64
                 " as before; the file was changed while being read",
                 d->r.name, d->r.column, piece->at);
    return IRON_OK;
}

static iron_status decode(const iron__table *table, const iron__input *in, size_t index,
                          bool wants_tokens, iron__block *out, const atomic_bool *stop,
                          iron_error *err) {
    parquet *file = table->state;
    const part *piece = &file->parts[index];
    decoding d = {.r = {.file = file,
                        .chunk = &file->chunks[piece->chunk],
                        .column = table->column,
                        .in = *in,
                        .name = iron__path_shown(in->path),
                        .stop = stop},
                  .table = table,
                  .index = index,
                  .wants_tokens = wants_tokens,
                  .out = out,
                  .tokens = piece->tokens,
                  .rows = piece->rows,
                  .places_before = out->place_count};
    iron_status status;

    d.r.in.is_stream = false;
    d.r.work = workspace_take(file);
    if (!d.r.work)
        return iron__no_memory(err, "a column");
    d.r.window = &d.r.work->pages;
    status = decode_part(&d, piece, err);
    workspace_put(file, d.r.work);
    return status;
}

static const iron__table_kind kind = {decode, destroy, NULL};

/* The format. */

/* "PAR1" at both ends; of a pipe, or if the end is cut off, the first field of a page header. */
static bool recognise(const iron__candidate *c) {
    iron__input file = *c->file;
    unsigned char end[MAGIC_BYTES];

    if (c->head_count < MAGIC_BYTES ||
        (memcmp(c->head, MAGIC, MAGIC_BYTES) != 0 && memcmp(c->head, "PARE", MAGIC_BYTES) != 0))
        return false;
    if (c->head_count > MAGIC_BYTES && c->head[MAGIC_BYTES] == 0x15)
        return true;
    file.is_stream = false; /* does not move the offset of standard input */
    return !iron__input_is_pipe(&file) && file.bytes >= MAGIC_BYTES + TAIL_BYTES &&
           iron__input_read_at(&file, file.bytes - MAGIC_BYTES, end, sizeof end, c->stop, NULL) ==
               IRON_OK &&
           memcmp(end, c->head, MAGIC_BYTES) == 0;
}

/* Reads the footer's bytes. */
static iron_status read_footer(const iron__candidate *c, iron__parquet_footer *f, iron_error *err) {
    iron__input file = *c->file;
    unsigned char head[MAGIC_BYTES], tail[TAIL_BYTES];
    uint64_t bytes = file.bytes, length;

    f->name = c->name;
    file.is_stream = false;
    IRON_FAIL_IF(bytes < MAGIC_BYTES + TAIL_BYTES, err, IRON_E_FORMAT,
                 "%.100s has %" PRIu64 " bytes; a Parquet file has at least 12", c->name, bytes);
    IRON_TRY(iron__input_read_at(&file, 0, head, sizeof head, c->stop, err));
    IRON_TRY(iron__input_read_at(&file, bytes - TAIL_BYTES, tail, sizeof tail, c->stop, err));
    IRON_FAIL_IF(memcmp(tail + 4, "PARE", MAGIC_BYTES) == 0, err, IRON_E_UNSUPPORTED,
                 "%.100s is an encrypted Parquet file, which is not read; write it without "
                 "encryption",
                 c->name);
    IRON_FAIL_IF(memcmp(head, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %02x %02x %02x %02x, expected Parquet's magic PAR1", c->name,
                 head[0], head[1], head[2], head[3]);
    IRON_FAIL_IF(memcmp(tail + 4, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s does not end with Parquet's magic PAR1, but with %02x %02x %02x %02x; is "
                 "it cut off?",
                 c->name, tail[4], tail[5], tail[6], tail[7]);
    length = iron__load_u32(tail);
    IRON_FAIL_IF(length > bytes - MAGIC_BYTES - TAIL_BYTES, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": its footer is said to have %" PRIu64
                 " bytes, more than the file; it is damaged",
                 c->name, bytes - TAIL_BYTES, length);
    IRON_FAIL_IF(length > FOOTER_BYTES_MAX, err, IRON_E_UNSUPPORTED,
                 "%.100s has a footer of %" PRIu64 " bytes, more than 1 GiB; write it with larger "
                 "row groups",
                 c->name, length);
    f->at = bytes - TAIL_BYTES - length;
    f->bytes = (size_t)length;
    f->data = malloc(f->bytes + 1);
    if (!f->data)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory: a footer of %zu bytes",
                          f->bytes);
    return iron__input_read_at(&file, f->at, f->data, f->bytes, c->stop, err);
}

/* The chosen column's chunks; refuses what no library here can decompress. */
static iron_status read_chunks(const iron__candidate *c, const iron__parquet_footer *f,
                               size_t chosen, iron__table *table, iron_error *err) {
    parquet *file = table->state;

    file->column = f->details[chosen];
    table->dtype = iron__stored_dtype(file->column.stored);
    table->stored_as = iron__stored_signed(file->column.stored);
    IRON_TRY(iron__parquet_chunks_read(f, chosen, &file->chunks, &file->chunk_count, err));
    for (size_t k = 0; k < file->chunk_count; k++)
        if (file->chunks[k].codec != IRON_CODEC_NONE &&
            (k == 0 || file->chunks[k].codec != file->chunks[k - 1].codec))
            IRON_TRY(iron__codec_load(file->chunks[k].codec, c->name, err));
    return IRON_OK;
}

static iron_status examine_file(const iron__candidate *c, iron__parquet_footer *footer,
                                iron__format_layout *layout, iron_error *err) {
    iron__table *table;
    parquet *file;
    size_t chosen;

    IRON_TRY(read_footer(c, footer, err));
    IRON_TRY(iron__parquet_footer_read(footer, err));
    iron__format_reason(c, "magic PAR1 at both ends; footer of %zu bytes", footer->bytes);
    IRON_TRY(iron__table_create(&kind, sizeof *file, &layout->table, err));
    table = layout->table;
    file = table->state;
    pthread_mutex_init(&file->mutex, NULL);
    IRON_TRY(iron__format_choose(c, footer->columns, footer->column_count, &chosen, &table->column,
                                 err));
    if (!table->column) {
        table->rows = footer->rows;
        iron__layout_use_table(layout);
        return IRON_OK;
    }
    IRON_TRY(read_chunks(c, footer, chosen, table, err));
    IRON_TRY(examine_pages(c, file, table, err));
    iron__format_reason(c, "%" PRIu64 " row%s in %zu row group%s; pages and levels agree with them",
                        table->rows, table->rows == 1 ? "" : "s", file->chunk_count,
                        file->chunk_count == 1 ? "" : "s");
    iron__layout_use_table(layout);
    return IRON_OK;
}

static iron_status examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    iron__parquet_footer footer = {.data = NULL};
    iron_status status;

    IRON_FAIL_IF(iron__input_is_pipe(c->file), err, IRON_E_UNSUPPORTED,
                 "%.100s: Parquet is read from its end: it needs a file, not a pipe; save it to a "
                 "file first",
                 c->name);
    status = examine_file(c, &footer, layout, err);
    iron__parquet_footer_clear(&footer);
    return status;
}

const iron__format iron__format_parquet = {"parquet", recognise, examine, NULL};
