/* SPDX-License-Identifier: MIT */
/*
 * mds.c: shards of MosaicML Streaming: files with samples, and index.json, which describes them.
 *
 * A shard is a count, count+1 offsets, a text that repeats the columns, and the samples, all
 * numbers u32. The index says how many samples there are, which columns they have, how each one is
 * encoded, and the sizes and checksums of the files:
 *
 *   count | offset 0 ... offset count | config | sample 0 | sample 1 | ...
 *   sample:  the sizes of its columns of variable size, and then the columns
 *
 * A column of integers, or of arrays of integers, is tokens; each sample is a row. An array may
 * begin with its own type and shape. If only one column has a variable size, its size follows from
 * the offsets, otherwise every sample's sizes are read. Both are checked again when a block is
 * decoded: blocks are runs of samples. A compressed shard is one block.
 */
#include "core/fail.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/number.h"
#include "formats/dtype.h"
#include "formats/format.h"
#include "io/checksum.h"
#include "io/remote.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#define COLUMNS_MAX 4096u
#define HASHES_MAX  32u

/* In one block. */
#define COMPRESSED_SAMPLES_MAX ((uint64_t)1 << 26)

/* Folders above that of a shard whose index may list it. */
#define FOLDERS_ABOVE 3u

/* What is read at once: of samples that follow each other, and of the beginnings of samples that
 * are farther apart. */
#define WINDOW_BYTES ((size_t)1 << 20)
#define GLANCE_BYTES ((size_t)4 << 10)

/* Times of change are as coarse as this on some filesystems. */
#define SETTLED_SECONDS 3

/* The index. Every shard needs it, and it grows with the number of shards: so the last index that
 * was read is kept, parsed and sorted by names. It is used again while the file is unchanged, which
 * its time of change can tell only if that is some time ago when it is read. */

/* A name in an index, and the shard that it belongs to. */
typedef struct shard_name {
    const char *name;
    const iron__json *shard;
} shard_name;

/* Which version of a file was read: device, inode, size, time of change in two parts. */
typedef struct file_version {
    uint64_t words[5];
} file_version;

struct iron__mds_index {
    size_t users; /* guarded by the cache's mutex */
    char *path;
    file_version version;
    bool is_settled;        /* another version would differ in the above */
    const iron__json *root; /* NULL: could not be parsed */
    const iron__json *shards;
    shard_name *names;
    size_t name_count;
    iron_error fault; /* why it is not an index; status IRON_OK: it is one */
};

static struct {
    pthread_mutex_t mutex;
    iron__mds_index *last;
} cache = {.mutex = PTHREAD_MUTEX_INITIALIZER};

const char *iron__mds_basename(const iron__json *shard, const char *which) {
    const iron__json *file = iron__json_member(shard, which);
    const char *name = iron__json_get_text(iron__json_member(file, "basename"));

    return name && iron__name_is_inside(name) ? name : NULL;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const shard_name *)a)->name, ((const shard_name *)b)->name);
}

/* One user less; with the mutex, or before others know the index. */
static void leave_index(iron__mds_index *index) {
    if (!index || --index->users > 0)
        return;
    iron__json_destroy(iron__allocator_default(), index->root);
    free(index->names);
    free(index->path);
    free(index);
}

/* False: the file is not there, or is not a file; opening it then says which. */
static bool read_version(const char *path, file_version *out, bool *is_settled) {
    iron__input_identity identity;
    struct stat info;

    *is_settled = iron__path_is_remote(path);
    if (*is_settled) {
        if (iron__input_identify(path, &identity, NULL) != IRON_OK)
            return false;
        *out = (file_version){{identity.device, identity.inode, identity.bytes}};
        return true;
    }
    if (stat(path, &info) != 0)
        return false;
    *is_settled = time(NULL) - info.st_mtim.tv_sec > SETTLED_SECONDS;
    *out = (file_version){{info.st_dev, info.st_ino, (uint64_t)info.st_size,
                           (uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec}};
    return true;
}

/* Parses the text of an index. What is wrong with it is kept as its fault. */
static iron_status parse_index(iron__mds_index *index, const char *text, size_t length,
                               iron_error *err) {
    iron_error fault = {0};
    iron_status status =
        iron__json_parse(text, length, iron__allocator_default(), &index->root, &fault);
    size_t count;

    if (status == IRON_E_NOMEM)
        return iron__fail_again(err, &fault);
    index->shards = iron__json_member(index->root, "shards");
    if (status != IRON_OK)
        iron__fail(&index->fault, IRON_E_FORMAT, 0, "%.100s: %.120s", index->path, fault.text);
    else if (!index->shards || index->shards->kind != IRON_JSON_ARRAY)
        iron__fail(&index->fault, IRON_E_FORMAT, 0,
                   "%.100s is not the index of an MDS dataset: it has no list of shards",
                   index->path);
    count = iron__json_length(index->shards);
    IRON_TRY(IRON_NEW(&index->names, 2 * count + 1, index->path, err));
    for (size_t k = 0; k < count; k++) {
        const iron__json *shard = iron__json_at(index->shards, k);
        const char *raw = iron__mds_basename(shard, "raw_data");
        const char *zip = iron__mds_basename(shard, "zip_data");

        if (raw)
            index->names[index->name_count++] = (shard_name){raw, shard};
        if (zip)
            index->names[index->name_count++] = (shard_name){zip, shard};
    }
    qsort(index->names, index->name_count, sizeof *index->names, by_name);
    return IRON_OK;
}

static iron_status read_index(const char *path, iron__mds_index **out, iron_error *err) {
    bool is_remote = iron__path_is_remote(path), is_there = false;
    iron__sidecar file = {.file = {.fd = -1}};
    iron__mds_index *index;
    char *text = NULL;
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_NEW(&index, 1, "an index", err));
    index->users = 1; /* the cache */
    index->path = strdup(path);
    /* before it is read: a change after this shows. A remote object stays the version that was
     * opened. */
    if (!is_remote)
        read_version(path, &index->version, &index->is_settled);
    status = index->path ? iron__sidecar_open(strdup(path), &file, &is_there, err)
                         : iron__no_memory(err, "an index");
    if (status == IRON_OK && is_there) {
        if (is_remote)
            read_version(path, &index->version, &index->is_settled);
        status = iron__sidecar_text(&file, IRON_JSON_BYTES_MAX, &text, err);
        if (status == IRON_OK)
            status = parse_index(index, text, (size_t)file.bytes, err);
    }
    free(text);
    iron__sidecar_close(&file);
    if (status == IRON_OK && is_there)
        *out = index;
    else
        leave_index(index);
    return status;
}

iron_status iron__mds_index_open(const char *folder, iron__mds_index **out, iron_error *err) {
    char *path = iron__folder_join(folder, "index.json");
    iron_status status = IRON_OK;
    iron__mds_index *index;
    file_version now;
    bool is_settled;

    *out = NULL;
    if (!path)
        return iron__no_memory(err, "a file name");
    pthread_mutex_lock(&cache.mutex);
    index = cache.last;
    if (index &&
        (strcmp(index->path, path) != 0 || !index->is_settled ||
         !read_version(path, &now, &is_settled) || memcmp(&now, &index->version, sizeof now) != 0))
        index = NULL;
    if (index)
        index->users++;
    pthread_mutex_unlock(&cache.mutex);
    if (!index) { /* reading may take long, and other threads open other datasets meanwhile */
        status = read_index(path, &index, err);
        if (index) {
            pthread_mutex_lock(&cache.mutex);
            index->users++; /* one for the cache, one for the caller */
            leave_index(cache.last);
            cache.last = index;
            pthread_mutex_unlock(&cache.mutex);
        }
    }
    free(path);
    if (index && index->fault.status != IRON_OK) {
        status = iron__fail_again(err, &index->fault);
        iron__mds_index_close(index);
        index = NULL;
    }
    *out = index;
    return status;
}

void iron__mds_index_close(iron__mds_index *index) {
    pthread_mutex_lock(&cache.mutex);
    leave_index(index);
    pthread_mutex_unlock(&cache.mutex);
}

const iron__json *iron__mds_index_shards(const iron__mds_index *index) { return index->shards; }

/* Shards. */

/* How the token column is encoded. */
typedef struct encoding {
    enum {
        ENCODING_OTHER, /* not tokens */
        ENCODING_FIXED, /* `count` integers: a number, or an array of known shape */
        ENCODING_ARRAY, /* an array that begins with its shape, and with its type if not known */
        ENCODING_BYTES  /* integers of the user's dtype */
    } kind;
    iron__stored stored;
    bool has_type;  /* of an array: `stored` is known */
    uint64_t count; /* of FIXED */
} encoding;

/* The table's state. */
typedef struct shard {
    encoding encoding;
    uint32_t *sizes; /* of the columns; 0: variable */
    size_t column_count, token_column;
    size_t variable_count; /* columns */
    uint64_t fixed_bytes;  /* of the others, in a sample */
    uint64_t samples;
    uint64_t bytes;       /* of the shard, decompressed */
    uint64_t file_bytes;  /* of the file */
    iron__codec codec;    /* IRON_CODEC_NONE: the file is the shard */
    iron_dtype dtype;     /* of the tokens; NONE: not known yet */
    uint64_t dtype_since; /* the sample that decided it */
} shard;

/* The bytes of a shard: in memory, or in a file, of which a part is held. */
typedef struct shard_bytes {
    const char *name;
    const iron__input *file;
    const unsigned char *memory; /* NULL: in the file */
    uint64_t count;
    iron__window window;
} shard_bytes;

/* Gives bytes at ... at+want-1, which are in the shard and at most WINDOW_BYTES, until the next
 * call. */
static iron_status look(shard_bytes *b, uint64_t at, size_t want, const unsigned char **out,
                        iron_error *err) {
    const iron__window *w = &b->window;
    bool is_far = w->block.bytes > 0 && (at < w->at || at - w->at > 2 * WINDOW_BYTES);

    if (b->memory) {
        *out = b->memory + at;
        return IRON_OK;
    }
    return iron__window_get(&b->window, b->file, at, want,
                            iron__min_size(is_far ? GLANCE_BYTES : WINDOW_BYTES, b->count - at),
                            out, err);
}

/* Names. */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Finds the shard in the index beside it, or in one of a folder above, which lists it with its
 * subfolder. *shard is NULL if there is none. Close the index, also on failure. */
static iron_status find_shard(const char *path, iron__mds_index **index, const iron__json **entry,
                              iron_error *err) {
    const char *name = base_name(path);
    const shard_name *found = NULL;

    *index = NULL;
    *entry = NULL;
    for (unsigned k = 0; k <= FOLDERS_ABOVE; k++) {
        char *folder = strndup(path, (size_t)(name - path));
        iron_status status;

        if (!folder)
            return iron__no_memory(err, path);
        status = iron__mds_index_open(folder, index, err);
        free(folder);
        if (status != IRON_OK && k == 0)
            return status;
        if (*index)
            found = bsearch(&(shard_name){name, NULL}, (*index)->names, (*index)->name_count,
                            sizeof *found, by_name);
        if (found) {
            *entry = found->shard;
            return IRON_OK;
        }
        iron__mds_index_close(*index);
        *index = NULL;
        if (name == path || name == path + 1)
            break;
        for (name--; name > path && name[-1] != '/';)
            name--;
        if (iron__path_is_remote(path) && name - path <= (ptrdiff_t)strlen("https://"))
            break;
    }
    return IRON_OK;
}

/* A server is asked for an index only if the name suggests that there is one. */
static bool recognise(const iron__candidate *c) {
    /* the names that Streaming gives to shards */
    static const char *const suffixes[] = {".mds",     ".mds.zstd", ".mds.gz",
                                           ".mds.bz2", ".mds.br",   ".mds.snappy"};
    const char *path = c->file->path;
    const iron__json *entry;
    iron__mds_index *index;

    for (size_t k = 0; k < sizeof suffixes / sizeof suffixes[0]; k++)
        if (iron__path_ends(path, suffixes[k]))
            return true;
    if (iron__input_is_pipe(c->file) || iron__path_is_stdin(path) || iron__path_is_remote(path))
        return false;
    (void)find_shard(path, &index, &entry, NULL);
    iron__mds_index_close(index);
    return entry != NULL;
}

/* Columns. */

static bool parse_stored(const char *name, size_t length, iron__stored *out) {
    for (*out = IRON_STORED_U8; *out <= IRON_STORED_I64; ++*out)
        if (strlen(iron__stored_name(*out)) == length &&
            memcmp(iron__stored_name(*out), name, length) == 0)
            return true;
    return false;
}

/* Reads "2,3", a shape, as the number of values; false if it is not one. */
static bool parse_shape(const char *text, uint64_t *count) {
    *count = 1;
    for (;;) {
        uint64_t size;

        if (!iron__read_digits(&text, NULL, 10, &size) || size == 0 ||
            __builtin_mul_overflow(*count, size, count) || *count > UINT32_MAX)
            return false;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
}

static encoding parse_encoding(const char *text) {
    encoding e = {.kind = ENCODING_OTHER, .count = 1};
    const char *type = strchr(text, ':'), *shape;

    if (strcmp(text, "int") == 0) {
        e.kind = ENCODING_FIXED;
        e.stored = IRON_STORED_I64;
    } else if (strcmp(text, "bytes") == 0) {
        e.kind = ENCODING_BYTES;
    } else if (parse_stored(text, strlen(text), &e.stored)) {
        e.kind = ENCODING_FIXED;
    } else if (strcmp(text, "ndarray") == 0 || strcmp(text, "ndarray:") == 0) {
        e.kind = ENCODING_ARRAY;
    } else if (strncmp(text, "ndarray:", 8) == 0) {
        shape = strchr(++type, ':');
        if (!parse_stored(type, shape ? (size_t)(shape - type) : strlen(type), &e.stored))
            return e;
        e.has_type = true;
        if (!shape)
            e.kind = ENCODING_ARRAY;
        else if (parse_shape(shape + 1, &e.count))
            e.kind = ENCODING_FIXED;
    }
    return e;
}

/* Reads the lists of columns of the index into `columns` and s->sizes. */
static iron_status read_columns(const iron__candidate *c, const iron__json *entry, shard *s,
                                iron__table_column *columns, iron_error *err) {
    const iron__json *names = iron__json_member(entry, "column_names");
    const iron__json *encodings = iron__json_member(entry, "column_encodings");
    const iron__json *sizes = iron__json_member(entry, "column_sizes");
    bool has_integers = false;

    for (size_t k = 0; k < s->column_count; k++) {
        const char *name = iron__json_get_text(iron__json_at(names, k));
        const char *type = iron__json_get_text(iron__json_at(encodings, k));
        const iron__json *size = iron__json_at(sizes, k);
        uint64_t bytes = 0;
        encoding e;

        IRON_FAIL_IF(!name || !type, err, IRON_E_FORMAT,
                     "%.100s: index.json has no name or no encoding for its column %zu", c->name,
                     k);
        IRON_FAIL_IF(!size || (size->kind != IRON_JSON_NULL &&
                               (!iron__json_get_whole(size, UINT32_MAX, &bytes) || bytes == 0)),
                     err, IRON_E_FORMAT,
                     "%.100s: index.json has a size of column %.40s that is neither null nor 1 to "
                     "4294967295",
                     c->name, name);
        e = parse_encoding(type);
        IRON_FAIL_IF(e.kind == ENCODING_FIXED && bytes != 0 &&
                         bytes != e.count * iron__stored_bytes(e.stored),
                     err, IRON_E_FORMAT,
                     "%.100s: index.json says that column %.40s has %" PRIu64 " bytes, but %.40s "
                     "has %" PRIu64,
                     c->name, name, bytes, type, e.count * iron__stored_bytes(e.stored));
        columns[k].name = strdup(name);
        if (!columns[k].name)
            return iron__no_memory(err, c->name);
        strncpy(columns[k].type, type, sizeof columns[k].type - 1);
        columns[k].is_tokens = e.kind == ENCODING_FIXED || e.kind == ENCODING_ARRAY;
        has_integers |= columns[k].is_tokens;
        s->sizes[k] = (uint32_t)bytes;
        s->fixed_bytes += bytes;
        s->variable_count += bytes == 0;
    }
    /* Bytes are offered as tokens if the user says what is in them, or if nothing else could be
     * meant: then they are refused with the way out. */
    for (size_t k = 0; k < s->column_count; k++)
        if (strcmp(columns[k].type, "bytes") == 0)
            columns[k].is_tokens = c->dtype != IRON_DTYPE_NONE || !has_integers ||
                                   iron__table_is_usual(columns[k].name) ||
                                   (c->column && strcmp(columns[k].name, c->column) == 0);
    return IRON_OK;
}

/* Reads the columns of the index, chooses one, and decides what its tokens are, as far as the index
 * tells; the caller frees *column. */
static iron_status choose_column(const iron__candidate *c, const iron__json *entry, shard *s,
                                 char **column, iron_error *err) {
    /* how integers of the user's dtype are stored */
    static const iron__stored stored[] = {[IRON_DTYPE_U8] = IRON_STORED_U8,
                                          [IRON_DTYPE_U16] = IRON_STORED_U16,
                                          [IRON_DTYPE_U32] = IRON_STORED_U32,
                                          [IRON_DTYPE_I32] = IRON_STORED_I32,
                                          [IRON_DTYPE_I64] = IRON_STORED_I64};
    const iron__json *encodings = iron__json_member(entry, "column_encodings");
    size_t count = iron__json_length(iron__json_member(entry, "column_names"));
    iron__table_column *columns;
    iron_status status;

    IRON_FAIL_IF(count == 0 || count > COLUMNS_MAX || iron__json_length(encodings) != count ||
                     iron__json_length(iron__json_member(entry, "column_sizes")) != count,
                 err, IRON_E_FORMAT,
                 "%.100s: index.json has %zu column_names, expected 1 to %u, and as many "
                 "column_encodings and column_sizes",
                 c->name, count, COLUMNS_MAX);
    s->column_count = count;
    IRON_TRY(IRON_NEW(&s->sizes, count, c->name, err));
    IRON_TRY(IRON_NEW(&columns, count, c->name, err));
    status = read_columns(c, entry, s, columns, err);
    if (status == IRON_OK)
        status = iron__format_choose(c, columns, count, &s->token_column, column, err);
    if (status == IRON_OK && *column)
        iron__format_reason(c, "column '%.40s' of %zu: %s", *column, count,
                            columns[s->token_column].type);
    iron__table_columns_free(columns, count);
    if (status != IRON_OK || !*column)
        return status;
    s->encoding = parse_encoding(iron__json_get_text(iron__json_at(encodings, s->token_column)));
    if (s->encoding.kind == ENCODING_BYTES && c->dtype == IRON_DTYPE_NONE && c->report) {
        iron__format_reason(c, "bytes do not say what they are: give --dtype when reading");
    } else if (s->encoding.kind == ENCODING_BYTES) {
        IRON_FAIL_IF(c->dtype == IRON_DTYPE_NONE, err, IRON_E_ARG,
                     "%.100s: column %.40s is bytes, which do not say what they are; give --dtype "
                     "u8, u16, u32, i32 or i64",
                     c->name, *column);
        s->encoding.stored = stored[c->dtype];
        s->dtype = c->dtype;
    } else if (s->encoding.kind == ENCODING_FIXED || s->encoding.has_type) {
        s->dtype = iron__stored_dtype(s->encoding.stored);
    }
    return IRON_OK;
}

/* Samples. */

/* Reads the offset of a sample; *offset is that of the sample before. */
static iron_status read_offset(const shard *s, shard_bytes *b, uint64_t sample, uint64_t *offset,
                               iron_error *err) {
    uint64_t at = 4 + 4 * sample, before = *offset;
    const unsigned char *bytes = NULL;

    IRON_TRY(look(b, at, 4, &bytes, err));
    *offset = iron__load_u32(bytes);
    IRON_FAIL_IF(*offset < before || *offset > s->bytes, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": sample %" PRIu64 " begins at byte %" PRIu64
                 ", expected %" PRIu64 " to %" PRIu64,
                 b->name, at, sample, *offset, before, s->bytes);
    return IRON_OK;
}

/* Where the token column of a sample is: at *at, *length bytes. Without `may_infer`, the sizes that
 * the sample has are read even if they follow from the offsets; so are those of empty columns,
 * because a block without tokens is not decoded. */
static iron_status find_column(const shard *s, shard_bytes *b, uint64_t sample, uint64_t begin,
                               uint64_t end, bool may_infer, uint64_t *at, uint64_t *length,
                               iron_error *err) {
    uint64_t head = 4 * (uint64_t)s->variable_count, needed = head + s->fixed_bytes;
    bool is_inferred =
        s->variable_count == 0 || (s->variable_count == 1 && may_infer && end - begin > needed);
    const unsigned char *words = NULL;
    uint64_t next = end - begin < needed ? begin + needed : begin + head;

    if (!is_inferred && end - begin >= needed)
        IRON_TRY(look(b, begin, (size_t)head, &words, err));
    for (size_t k = 0; k < s->column_count && end - begin >= needed; k++) {
        uint64_t size = s->sizes[k];

        if (size == 0) {
            size = words ? iron__load_u32(words) : end - begin - needed;
            words = words ? words + 4 : NULL;
        }
        if (k == s->token_column) {
            *at = next;
            *length = size;
        }
        next += size; /* at most 2^12 sizes of 32 bits */
    }
    IRON_FAIL_IF(next != end, err, IRON_E_FORMAT,
                 "%.100s: sample %" PRIu64 " at byte %" PRIu64 " has %" PRIu64
                 " bytes, but its columns need %" PRIu64 "; is it damaged?",
                 b->name, sample, begin, end - begin, next - begin);
    return IRON_OK;
}

/* The types of arrays that begin with theirs: 8, 16, 32 and 64 are unsigned, one more is signed. */
static bool stored_of_code(unsigned code, iron__stored *out) {
    for (*out = IRON_STORED_U8; *out <= IRON_STORED_I64; ++*out)
        if (code == 8 * iron__stored_bytes(*out) + (*out >= IRON_STORED_I8))
            return true;
    return false;
}

/* Where the values of a sample are, and what they are. */
typedef struct values {
    uint64_t at, count;
    iron__stored stored;
} values;

/* An array that begins with its type, if the encoding does not have it, the number of dimensions
 * and the width of their sizes in one byte, and the sizes. */
static iron_status read_array(const shard *s, shard_bytes *b, uint64_t sample, uint64_t at,
                              uint64_t length, values *out, iron_error *err) {
    uint64_t before = s->encoding.has_type ? 1 : 2, head, count = 1, bytes;
    const unsigned char *next;
    unsigned dimensions, width;

    IRON_FAIL_IF(length < before, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": the array of sample %" PRIu64 " has %" PRIu64
                 " bytes, too few for its header",
                 b->name, at, sample, length);
    IRON_TRY(look(b, at, (size_t)before, &next, err));
    IRON_FAIL_IF(!s->encoding.has_type && !stored_of_code(next[0], &out->stored), err,
                 IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": the array of sample %" PRIu64 " has type %u%s, "
                 "expected one of integers",
                 b->name, at, sample, next[0],
                 next[0] == 18 || next[0] == 34 || next[0] == 66 ? " (floats)" : "");
    dimensions = next[before - 1] >> 2;
    width = 1u << (next[before - 1] & 3);
    head = before + (uint64_t)dimensions * width;
    IRON_FAIL_IF(length < head, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": the array of sample %" PRIu64 " has %" PRIu64
                 " bytes, too few for %u dimensions",
                 b->name, at, sample, length, dimensions);
    IRON_TRY(look(b, at, (size_t)head, &next, err));
    bytes = iron__stored_bytes(out->stored);
    for (unsigned k = 0; k < dimensions; k++) {
        uint64_t size = 0;

        memcpy(&size, next + before + (size_t)k * width, width);
        if (__builtin_mul_overflow(count, size, &count) || count > UINT32_MAX)
            count = UINT32_MAX; /* more than there can be */
    }
    IRON_FAIL_IF(count * bytes != length - head, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": the array of sample %" PRIu64 " has %" PRIu64
                 " values of %" PRIu64 " bytes, but %" PRIu64 " bytes follow",
                 b->name, at, sample, count, bytes, length - head);
    out->at = at + head;
    out->count = count;
    return IRON_OK;
}

/* Where the tokens of a sample are, from its bounds. */
static iron_status find_values(const shard *s, shard_bytes *b, uint64_t sample, uint64_t begin,
                               uint64_t end, bool may_infer, values *out, iron_error *err) {
    uint64_t at = 0, length = 0, width;

    IRON_TRY(find_column(s, b, sample, begin, end, may_infer, &at, &length, err));
    *out = (values){at, 0, s->encoding.stored};
    if (s->encoding.kind == ENCODING_ARRAY)
        return read_array(s, b, sample, at, length, out, err);
    width = iron__stored_bytes(s->encoding.stored);
    out->count = length / width;
    IRON_FAIL_IF(length % width != 0 ||
                     (s->encoding.kind == ENCODING_FIXED && out->count != s->encoding.count),
                 err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": the column of sample %" PRIu64 " has %" PRIu64
                 " bytes, expected %s%" PRIu64,
                 b->name, at, sample, length,
                 s->encoding.kind == ENCODING_FIXED ? "" : "a multiple of ",
                 s->encoding.kind == ENCODING_FIXED ? width * s->encoding.count : width);
    return IRON_OK;
}

/* Goes through all samples: checks them, counts tokens, and makes blocks. */
static iron_status scan(iron__table *t, shard *s, shard_bytes *offsets, shard_bytes *samples,
                        iron_error *err) {
    iron__table_block block = {.first = 0};
    uint64_t begin = 0, end, since = 0; /* bytes of the block */
    iron_dtype dtype;
    values v;
    uint64_t head = 4 + 4 * (s->samples + 1), last = 0, first = head;
    const unsigned char *bytes;

    /* the offsets must be there, and end with the file */
    IRON_FAIL_IF(offsets->count < head, err, IRON_E_FORMAT,
                 "%.100s has %" PRIu64 " bytes, too few for the offsets of %" PRIu64
                 " samples; is it cut off?",
                 offsets->name, offsets->count, s->samples);
    IRON_TRY(look(offsets, 0, 4, &bytes, err));
    IRON_FAIL_IF(iron__load_u32(bytes) != s->samples, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %" PRIu32 " samples, but index.json says %" PRIu64,
                 offsets->name, iron__load_u32(bytes), s->samples);
    IRON_TRY(read_offset(s, offsets, s->samples, &last, err));
    IRON_FAIL_IF(last != offsets->count, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": the last sample ends at byte %" PRIu64
                 ", but the shard has %" PRIu64 " bytes",
                 offsets->name, head - 4, last, offsets->count);
    offsets->window.block.bytes = 0; /* the offsets follow in order */
    IRON_TRY(read_offset(s, offsets, 0, &first, err));
    begin = first;
    if (s->samples > 0)
        IRON_TRY(iron__table_add_block(t, &block, err));
    for (uint64_t k = 0; k < s->samples; k++, begin = end) {
        uint64_t tokens = t->tokens - block.first;

        if (s->codec == IRON_CODEC_NONE &&
            (tokens >= IRON_TABLE_BLOCK_TOKENS || k - block.first_row >= IRON_TABLE_BLOCK_TOKENS)) {
            block = (iron__table_block){.first = t->tokens, .first_row = k, .at = k};
            IRON_TRY(iron__table_add_block(t, &block, err));
            since = 0;
        }
        end = begin;
        IRON_TRY(read_offset(s, offsets, k + 1, &end, err));
        IRON_TRY(
            find_values(s, samples, k, begin, end, s->encoding.kind != ENCODING_ARRAY, &v, err));
        dtype = s->encoding.kind == ENCODING_BYTES ? s->dtype : iron__stored_dtype(v.stored);
        if (s->dtype == IRON_DTYPE_NONE) {
            s->dtype = dtype;
            s->dtype_since = k;
        }
        IRON_FAIL_IF(dtype != s->dtype, err, IRON_E_UNSUPPORTED,
                     "%.100s: the array of sample %" PRIu64 " gives %s tokens, that of sample "
                     "%" PRIu64 " %s; all must have one width: write them again with ndarray:DTYPE",
                     samples->name, k, iron_dtype_name(dtype), s->dtype_since,
                     iron_dtype_name(s->dtype));
        since += v.count * iron__stored_bytes(v.stored);
        IRON_FAIL_IF(since > IRON_TABLE_PART_BYTES_MAX, err, IRON_E_UNSUPPORTED,
                     "%.100s: sample %" PRIu64 " has %" PRIu64 " tokens, more than can be read at "
                     "once; write shorter samples, or smaller shards",
                     samples->name, k, v.count);
        t->tokens += v.count;
    }
    t->rows = s->samples;
    return IRON_OK;
}

/* Decoding. */

/* Appends the tokens of a sample, for which there is room. */
static iron_status copy_tokens(const iron__table *t, shard_bytes *b, uint64_t row, const values *v,
                               iron__block *out, iron_error *err) {
    size_t stored = iron__stored_bytes(v->stored), width = iron_dtype_bytes(t->dtype);
    uint64_t left = v->count, at = v->at;

    while (left > 0) {
        size_t some = left < WINDOW_BYTES / stored ? (size_t)left : WINDOW_BYTES / stored, good;
        unsigned char *to = out->data + out->bytes;
        const unsigned char *from = NULL;

        IRON_TRY(look(b, at, some * stored, &from, err));
        assert(from);
        if (width == 8) { /* bytes that the user calls i64 */
            memcpy(to, from, some * stored);
            good = iron__view_first_bad(&(iron__tokens_view){IRON_DTYPE_I64, to, some});
        } else {
            good = iron__stored_convert(v->stored, from, some, to);
        }
        if (good < some)
            return iron__stored_refuse(v->stored, from, good, b->name, t->column, row, err);
        out->bytes += some * width;
        at += some * stored;
        left -= some;
    }
    return IRON_OK;
}

/* The samples of a block, which are in `offsets` and `samples`. */
static iron_status decode_samples(const iron__table *t, size_t index, bool wants_tokens,
                                  shard_bytes *offsets, shard_bytes *samples, iron__block *out,
                                  iron_error *err) {
    const shard *s = t->state;
    uint64_t first = t->blocks[index].first_row, tokens = iron__table_block_tokens(t, index);
    uint64_t last = index + 1 < t->block_count ? t->blocks[index + 1].first_row : t->rows;
    uint64_t begin = 4 + 4 * (s->samples + 1), end, done = 0;
    bool is_same = true;
    values v;

    IRON_TRY(iron__block_reserve_places(out, out->place_count + (size_t)(last - first), err));
    if (wants_tokens)
        IRON_TRY(iron__block_reserve(out, out->bytes + (size_t)tokens * iron_dtype_bytes(t->dtype),
                                     err));
    IRON_TRY(read_offset(s, offsets, first, &begin, err));
    for (uint64_t k = first; k < last && is_same; k++, begin = end) {
        end = begin;
        IRON_TRY(read_offset(s, offsets, k + 1, &end, err));
        IRON_TRY(find_values(s, samples, k, begin, end, !wants_tokens, &v, err));
        is_same = v.count <= tokens - done &&
                  (s->encoding.kind != ENCODING_ARRAY || iron__stored_dtype(v.stored) == t->dtype);
        IRON_TRY(iron__block_add_place(out, done, err));
        if (wants_tokens && is_same)
            IRON_TRY(copy_tokens(t, samples, k, &v, out, err));
        done += v.count;
    }
    IRON_FAIL_IF(!is_same || done != tokens, err, IRON_E_IO, "%.120s changed while being read",
                 samples->name);
    return IRON_OK;
}

/* Reads and decompresses a whole shard; the caller frees *out, also on failure. */
static iron_status decompress(const shard *s, const iron__input *in, const char *name,
                              unsigned char **out, iron_error *err) {
    size_t bytes = (size_t)s->file_bytes;
    unsigned char *from = malloc(bytes + 1);
    iron_status status;

    *out = malloc((size_t)s->bytes + 1);
    status =
        from && *out ? iron__input_read_at(in, 0, from, bytes, err) : iron__no_memory(err, name);
    if (status == IRON_OK)
        status = iron__codec_decompress(s->codec, name, from, bytes, *out, (size_t)s->bytes, err);
    free(from);
    return status;
}

static iron_status decode(const iron__table *t, const iron__input *in, size_t index,
                          bool wants_tokens, iron__block *out, iron_error *err) {
    const shard *s = t->state;
    const char *name = iron__path_shown(in->path);
    shard_bytes offsets = {.name = name, .file = in, .count = s->bytes};
    shard_bytes samples = offsets;
    unsigned char *memory = NULL;
    iron_status status = IRON_OK;

    if (s->codec != IRON_CODEC_NONE)
        status = decompress(s, in, name, &memory, err);
    offsets.memory = samples.memory = memory;
    if (status == IRON_OK)
        status = decode_samples(t, index, wants_tokens, &offsets, &samples, out, err);
    iron__block_clear(&offsets.window.block);
    iron__block_clear(&samples.window.block);
    free(memory);
    return status;
}

static void destroy(void *state) {
    shard *s = state;

    free(s->sizes);
    free(s);
}

static const iron__table_kind mds_kind = {decode, destroy, NULL};

/* Checksums. */

static iron_status run_checksums(iron__checksum *const *sums, size_t count, shard_bytes *b,
                                 iron_error *err) {
    for (uint64_t at = 0; at < b->count;) {
        size_t some = iron__min_size(WINDOW_BYTES, b->count - at);
        const unsigned char *data;

        IRON_TRY(look(b, at, some, &data, err));
        for (size_t k = 0; k < count; k++)
            if (sums[k])
                IRON_TRY(iron__checksum_update(sums[k], data, some, err));
        at += some;
    }
    return IRON_OK;
}

/* Checks the hashes that the index has for a file ("raw_data", "zip_data"), in one pass. */
static iron_status check_hashes(const iron__candidate *c, const iron__json *file, shard_bytes *b,
                                const char *what, bool *has_warned, iron_error *err) {
    const iron__json *hashes = iron__json_member(file, "hashes");
    size_t count = hashes && hashes->kind == IRON_JSON_OBJECT ? hashes->count : 0, known = 0;
    iron__checksum *sums[HASHES_MAX] = {NULL};
    char why[240] = "", hex[IRON_CHECKSUM_HEX_MAX + 1];
    iron_status status = IRON_OK;

    IRON_FAIL_IF(count > HASHES_MAX, err, IRON_E_FORMAT,
                 "%.100s: index.json has %zu hashes of it, expected at most %u", c->name, count,
                 HASHES_MAX);
    for (size_t k = 0; k < count && status == IRON_OK; k++) {
        const char *name = hashes->items[k].name;
        iron_error fault = {0};

        if (!iron__json_get_text(&hashes->items[k]))
            status =
                iron__fail(err, IRON_E_FORMAT, 0,
                           "%.100s: index.json has a hash %.40s that is not a text", c->name, name);
        else if (iron__checksum_create(name, &sums[k], &fault) == IRON_OK)
            known++;
        else if (fault.status != IRON_E_UNSUPPORTED)
            status = iron__fail_again(err, &fault);
        else /* what cannot be computed here is not checked, but not silently */
            snprintf(why, sizeof why, "its %.40s is not checked: %.150s", name,
                     iron__checksum_is_known(name) ? fault.text : "iron does not know this hash");
    }
    if (why[0] && !*has_warned) {
        *has_warned = true; /* once for each file */
        iron__format_reason(c, "%s", why);
        if (c->options && c->options->warn)
            c->options->warn(c->options->warn_context,
                             &(iron_warning){IRON_WARNING_UNCHECKED, c->name, why});
    }
    if (status == IRON_OK && known > 0)
        status = run_checksums(sums, count, b, err);
    for (size_t k = 0; k < count; k++) {
        const char *name = hashes->items[k].name,
                   *expected = iron__json_get_text(&hashes->items[k]);

        if (status == IRON_OK && sums[k])
            status = iron__checksum_final(sums[k], hex, err);
        if (status == IRON_OK && sums[k] && strcasecmp(hex, expected) != 0)
            status = iron__fail(err, IRON_E_FORMAT, 0,
                                "%.90s: the %s of %s is %.16s..., but index.json says %.16s...; it "
                                "is damaged, or is not the shard that was indexed",
                                c->name, name, what, hex, expected);
        else if (status == IRON_OK && sums[k])
            iron__format_reason(c, "%s of %s agrees with index.json", name, what);
        iron__checksum_destroy(sums[k]);
    }
    return status;
}

/* Examining. */

/* Checks hashes and samples of the shard, which is decompressed for that. */
static iron_status check_content(const iron__candidate *c, const iron__json *raw,
                                 const iron__json *file, shard *s, iron__table *t,
                                 iron_error *err) {
    shard_bytes stored = {.name = c->name, .file = c->file, .count = s->file_bytes};
    shard_bytes offsets = stored, samples = stored;
    unsigned char *memory = NULL;
    bool has_warned = false;
    iron_status status = check_hashes(c, file, &stored, "the file", &has_warned, err);

    if (status == IRON_OK && s->codec != IRON_CODEC_NONE) {
        status = decompress(s, c->file, c->name, &memory, err);
        offsets.memory = samples.memory = memory;
        offsets.count = samples.count = s->bytes;
        if (status == IRON_OK)
            status = check_hashes(c, raw, &samples, "what it decompresses to", &has_warned, err);
    }
    if (status == IRON_OK)
        status = scan(t, s, &offsets, &samples, err);
    iron__block_clear(&stored.window.block);
    iron__block_clear(&offsets.window.block);
    iron__block_clear(&samples.window.block);
    free(memory);
    return status;
}

/* A number that the index gives for a shard. */
static iron_status get_number(const iron__candidate *c, const iron__json *object,
                              const char *member, uint64_t most, const char *what, uint64_t *out,
                              iron_error *err) {
    IRON_FAIL_IF(!iron__json_get_whole(iron__json_member(object, member), most, out), err,
                 IRON_E_FORMAT, "%.100s: index.json does not give its %s", c->name, what);
    return IRON_OK;
}

static iron_status examine_entry(const iron__candidate *c, const iron__json *entry, iron__table *t,
                                 iron_error *err) {
    static const iron__codec codecs[] = {IRON_CODEC_ZSTD, IRON_CODEC_GZIP, IRON_CODEC_SNAPPY};
    static const char *const codec_names[] = {"zstd", "gz", "snappy"};
    const iron__json *raw = iron__json_member(entry, "raw_data"), *file = raw;
    const char *raw_name = iron__mds_basename(entry, "raw_data");
    shard *s = t->state;
    const char *format = iron__json_get_text(iron__json_member(entry, "format"));
    uint64_t version = 0, expected = 0;
    const char *text = iron__json_get_text(iron__json_member(entry, "compression"));
    size_t length = text ? strcspn(text, ":") : 0; /* "zstd", "gz:5" */

    IRON_FAIL_IF(!format, err, IRON_E_FORMAT, "%.100s: index.json does not give its format",
                 c->name);
    IRON_FAIL_IF(strcmp(format, "mds") != 0, err, IRON_E_UNSUPPORTED,
                 "%.100s is a shard of Streaming's format '%.20s'; only mds is read", c->name,
                 format);
    IRON_TRY(get_number(c, entry, "version", UINT32_MAX, "version", &version, err));
    IRON_FAIL_IF(version != 2, err, IRON_E_UNSUPPORTED,
                 "%.100s: index.json says MDS version %" PRIu64 ", expected 2", c->name, version);
    IRON_TRY(
        get_number(c, entry, "samples", UINT32_MAX - 2, "number of samples", &s->samples, err));
    if (!raw_name || strcmp(base_name(raw_name), base_name(c->file->path)) != 0) {
        file = iron__json_member(entry, "zip_data");
        for (size_t k = 0; text && k < sizeof codecs / sizeof codecs[0]; k++)
            if (strlen(codec_names[k]) == length && memcmp(codec_names[k], text, length) == 0)
                s->codec = codecs[k];
        IRON_FAIL_IF(
            s->codec == IRON_CODEC_NONE, err, IRON_E_UNSUPPORTED,
            "%.100s is compressed with '%.20s', which is not read; decompress the shards, or "
            "write them with zstd or gz",
            c->name, text ? text : "nothing that index.json names");
        IRON_TRY(iron__codec_load(s->codec, c->name, err));
    }
    IRON_TRY(choose_column(c, entry, s, &t->column, err));
    /* the sizes of the file and of the shard must be those of the index */
    s->file_bytes = c->file->bytes;
    IRON_TRY(get_number(c, file, "bytes", (uint64_t)1 << 53, "size", &expected, err));
    IRON_TRY(get_number(c, raw, "bytes", (uint64_t)1 << 53, "size", &s->bytes, err));
    IRON_FAIL_IF(expected != s->file_bytes, err, IRON_E_FORMAT,
                 "%.100s has %" PRIu64 " bytes, but index.json says %" PRIu64 "; %s", c->name,
                 s->file_bytes, expected,
                 s->file_bytes < expected ? "is it cut off?" : "was something appended?");
    IRON_FAIL_IF(s->bytes > UINT32_MAX, err, IRON_E_FORMAT,
                 "%.100s: index.json says %" PRIu64 " bytes, more than 32-bit offsets reach",
                 c->name, s->bytes);
    IRON_FAIL_IF(s->codec != IRON_CODEC_NONE && (s->bytes > IRON_TABLE_PART_BYTES_MAX ||
                                                 s->file_bytes > IRON_TABLE_PART_BYTES_MAX ||
                                                 s->samples > COMPRESSED_SAMPLES_MAX),
                 err, IRON_E_UNSUPPORTED,
                 "%.100s is compressed and has %" PRIu64 " bytes and %" PRIu64
                 " samples, more than "
                 "is decompressed at once; decompress it first, or write smaller shards",
                 c->name, s->bytes, s->samples);
    iron__format_reason(c, "index.json: MDS version 2, %" PRIu64 " sample%s, %" PRIu64 " bytes%s%s",
                        s->samples, s->samples == 1 ? "" : "s", s->bytes,
                        s->codec == IRON_CODEC_NONE ? "" : ", compressed: ",
                        s->codec == IRON_CODEC_NONE ? "" : iron__codec_name(s->codec));
    if (!t->column || (s->encoding.kind == ENCODING_BYTES && s->dtype == IRON_DTYPE_NONE)) {
        t->rows = s->samples;
        return IRON_OK;
    }
    IRON_TRY(check_content(c, raw, file, s, t, err));
    if (s->dtype == IRON_DTYPE_NONE) /* no sample: any will do */
        s->dtype = c->dtype != IRON_DTYPE_NONE ? c->dtype : IRON_DTYPE_U32;
    t->dtype = s->dtype;
    if (s->encoding.kind == ENCODING_FIXED || s->encoding.has_type)
        t->stored_as = iron__stored_signed(s->encoding.stored);
    return IRON_OK;
}

static iron_status examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    const iron__json *entry = NULL;
    iron__mds_index *index = NULL;
    iron_status status;

    IRON_FAIL_IF(iron__input_is_pipe(c->file), err, IRON_E_UNSUPPORTED, "%.100s %s", c->name,
                 iron__path_is_remote(c->file->path)
                     ? "is an MDS shard on a server that does not serve ranges; download it first"
                     : "is a pipe; MDS shards need index.json beside them: name the file");
    status = find_shard(c->file->path, &index, &entry, err);
    if (status == IRON_OK && !entry)
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%.120s: no index.json beside it lists this file, and without it MDS "
                            "shards cannot be read; is it --format raw?",
                            c->name);
    if (status == IRON_OK)
        status = iron__table_create(&mds_kind, sizeof(shard), &layout->table, err);
    if (status == IRON_OK)
        status = examine_entry(c, entry, layout->table, err);
    iron__mds_index_close(index);
    if (status == IRON_OK)
        iron__layout_use_table(layout);
    return status;
}

const iron__format iron__format_mds = {"mds", recognise, examine, NULL};
