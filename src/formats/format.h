/* SPDX-License-Identifier: MIT */
/*
 * format.h: token file formats, and what the files of this module share.
 *
 * A format is a row in a table. It recognises its files by their first bytes or by the files beside
 * them, and examines a file: it makes every check that is possible before the first token is read,
 * against its header and the files beside it. The result is a layout: where the tokens are and how
 * wide they are. Readers need only the layout, not the format. `iron sniff` reports what the same
 * rows found.
 *
 * To add a format, write one file with its row and add the row to the table in format.c.
 */
#ifndef IRON_FORMATS_FORMAT_H
#define IRON_FORMATS_FORMAT_H

#include "formats/table.h"
#include "io/frames.h"
#include "io/input.h"

#include <iron/iron.h>

#include <stdbool.h>

/* Formats (format.c). */

typedef struct iron__format iron__format;

/* Where the numbers are in the index of documents beside a file: 8 bytes each. */
typedef struct iron__document_index {
    uint64_t bytes;
    uint64_t ends_at;               /* the ends of documents, in tokens, or in sequences */
    uint64_t offsets_at, sequences; /* Megatron: where sequences begin, in bytes; else 0 */
} iron__document_index;

/* What is known about a file. */
typedef struct iron__format_layout {
    const iron__format *format; /* NULL: a pipe that was not examined yet */
    iron_dtype dtype;
    uint64_t bytes;             /* of the file; IRON_COUNT_UNKNOWN: a pipe */
    uint64_t data_offset;       /* of the first token */
    uint64_t tokens;            /* of a pipe: from its header, or IRON_COUNT_UNKNOWN */
    uint64_t documents;         /* IRON_COUNT_UNKNOWN: the format does not tell */
    iron__document_index index; /* if documents are known and are not rows */
    bool is_swapped;            /* tokens are big-endian */
    unsigned dimensions;        /* of `shape` */
    uint64_t *shape;      /* owned: an array in Fortran order, whose tiles are `table`; or NULL */
    iron__codec codec;    /* the file is compressed; all of the above is about what is inside */
    iron__frames *frames; /* owned: it can be decompressed at any position; else NULL */
    iron__table *table;   /* owned: tokens are decoded in blocks, such as a column; else NULL. With
                           * frames: it is the table of what they decompress to */
    iron__table *stream;  /* owned: the same, read in order; else NULL */
} iron__format_layout;

/* Whether the tokens of a file are not simply the bytes from data_offset on. */
static inline bool iron__layout_is_converted(const iron__format_layout *layout) {
    return layout->is_swapped || layout->frames || layout->table;
}

/* Of a table in a compressed file: an open input becomes what is inside. */
static inline void iron__layout_use_frames(const iron__format_layout *layout, iron__input *in) {
    if (layout->table && layout->frames)
        iron__input_use_frames(in, layout->frames);
}

/* The table of a file that has one, whether it is read in frames or as a stream; else NULL. */
static inline const iron__table *iron__layout_table(const iron__format_layout *layout) {
    return layout->table ? layout->table : layout->stream;
}

/* Of a column: fills dtype, tokens and documents as they are in the layout's table. */
static inline void iron__layout_use_table(iron__format_layout *layout) {
    layout->dtype = layout->table->dtype;
    layout->tokens = layout->dtype == IRON_DTYPE_NONE ? IRON_COUNT_UNKNOWN : layout->table->tokens;
    layout->documents = layout->table->rows;
}

void iron__format_layout_clear(iron__format_layout *layout);

/* A file that is being examined. */
typedef struct iron__candidate {
    iron__input *file;   /* open, at its beginning */
    const char *name;    /* for messages */
    iron_dtype dtype;    /* given by the user, or IRON_DTYPE_NONE */
    bool is_for_raw;     /* the user's dtype applies only to files without a dtype of their own */
    const char *column;  /* of tables: given by the user, or NULL */
    bool wants_seekable; /* of compressed files: decompress to find the length, if necessary */
    iron_sniff_report *report;          /* receives the reasons; may be NULL */
    const iron_source_options *options; /* for warnings; may be NULL */
    unsigned char head[IRON_HEAD_BYTES];
    size_t head_count;
    iron__codec codec;     /* of a compressed file, which is being decompressed in order; */
    uint64_t stored_bytes; /* and its size; IRON_COUNT_UNKNOWN: it cannot be opened again */
} iron__candidate;

struct iron__format {
    const char *name;
    /* Whether the file looks like this format. Uses only c->head and the files beside it. Raw has
     * none: it is what no other format recognises. */
    bool (*recognise)(const iron__candidate *c);
    /* Fills dtype, data_offset, tokens and documents, which start as NONE, 0, UNKNOWN, UNKNOWN.
     * If tokens stays UNKNOWN, everything after data_offset is tokens. A format of tables fills
     * `table`, or for a pipe `stream`, with dtype, tokens and documents (rows) as in there. */
    iron_status (*examine)(iron__candidate *c, iron__format_layout *layout, iron_error *err);
    /* (optional) The file that a path means if the user names the format; the caller frees it.
     * NULL: the path itself. */
    char *(*main_path)(const char *path);
};

extern const iron__format iron__format_arrow, iron__format_parquet, iron__format_mds,
    iron__format_npy, iron__format_litpkds, iron__format_llmc, iron__format_megatron,
    iron__format_ds, iron__format_raw;

/* Finds a format by name. NULL and "auto" give NULL; an unknown name is an error. */
iron_status iron__format_find(const char *name, const iron__format **out, iron_error *err);

/* The first format that recognises the candidate, whose head must be filled; raw if none does. */
const iron__format *iron__format_recognise(const iron__candidate *c);

/* Examines an open file. `forced`: NULL to recognise the format. On failure layout->format is the
 * format that was recognised, if any. Clear the layout, also then. */
iron_status iron__format_examine(const iron__format *forced, iron__candidate *c,
                                 iron__format_layout *layout, iron_error *err);

/* Chooses the column of a table, and adds all columns to the candidate's sniff report, if there is
 * one. The caller frees *name, the chosen one's. With a report, it is NULL if the user must choose
 * first: then the table has no dtype, and only its rows are counted. */
iron_status iron__format_choose(const iron__candidate *c, const iron__table_column *columns,
                                size_t count, size_t *chosen, char **name, iron_error *err);

/* Adds a sentence to the candidate's sniff report, if there is one. */
void iron__format_reason(const iron__candidate *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* From here on the candidate is what decompressing the file gives; its head is filled again. Sets
 * codec and, if possible, frames of the layout. */
iron_status iron__candidate_decompress(iron__candidate *c, iron__codec codec,
                                       iron__format_layout *layout, iron_error *err);

/* Reads the next `want` bytes of the header; an error if the file ends before. */
iron_status iron__candidate_read(iron__candidate *c, void *to, size_t want, iron_error *err);

#define IRON_DIMENSIONS_MAX 64u

/* Where a token of an array in Fortran order is in the file, counted in tokens (npy.c). */
uint64_t iron__fortran_place(const iron__format_layout *layout, uint64_t token);

/* Reverses the bytes of each token. */
void iron__swap_bytes(unsigned char *tokens, size_t count, size_t width);

/* Files that are not tokens (container.c). */

typedef struct iron__container {
    const char *name;   /* "gzip" */
    const char *what;   /* "a gzip file" */
    const char *advice; /* "decompress it first" */
    iron__codec codec;  /* it is read: decompressed */
} iron__container;

/* What a file is, if its content shows that it is not tokens; NULL otherwise. The candidate's head
 * must be filled. Text is not reported if the user's dtype is u8. */
const iron__container *iron__container_find(const iron__candidate *c);
/* The same for a file's name alone, for files that the user did not name. */
const char *iron__container_by_name(const char *path, iron_dtype dtype);
/* Whether bytes are UTF-8 text, but for one in a thousand: control characters and invalid ones. */
bool iron__is_text(const unsigned char *data, size_t count);

/* Widths (sniff.c). */

#define IRON_WHY_ROOM 160u

/* Whether a sample of values contradicts a dtype, beyond doubt. Returns the dtype that the values
 * look like, and the reason; IRON_DTYPE_NONE if there is no contradiction. The sample must begin at
 * a token and consist of pieces of a multiple of 8 bytes. */
iron_dtype iron__dtype_contradiction(const unsigned char *data, size_t count, iron_dtype given,
                                     char why[IRON_WHY_ROOM]);
/* Warns if the values of a raw file, whose head is filled, contradict the user's dtype. */
iron_status iron__dtype_warn(const iron__candidate *c, iron_error *err);

/* Sidecars (sidecar.c): files beside a token file that describe it, such as P.idx beside P.bin or
 * X.ds.index beside X.ds. They do not contain tokens. */

typedef struct iron__sidecar {
    char *path;
    uint64_t bytes;
    iron__input file;
    unsigned char *memory; /* all of it, from a server without ranges; else NULL */
} iron__sidecar;

bool iron__path_ends(const char *path, const char *suffix);

/* The path without its last `cut` characters, followed by `suffix`; the caller frees it. NULL: out
 * of memory. */
char *iron__path_beside(const char *path, size_t cut, const char *suffix);

/* Whether a regular file, or a remote object, exists; and whether one beside a path does. */
bool iron__path_is_there(const char *path);
bool iron__path_has_beside(const char *path, size_t cut, const char *suffix);

/* Whether P.idx exists beside P.bin. If P.bin is not recognised as Megatron's, P.idx is damaged or
 * something else. */
bool iron__path_has_idx(const char *path);

/* Whether the path names a sidecar whose main file exists. */
bool iron__path_is_sidecar(const char *path);

/* An error if the path names a sidecar; the message names its main file. */
iron_status iron__sidecar_refuse(const char *path, iron_error *err);

/* Takes `path`, also on failure. A missing sidecar is not an error: *is_there is false. */
iron_status iron__sidecar_open(char *path, iron__sidecar *out, bool *is_there, iron_error *err);
void iron__sidecar_close(iron__sidecar *sidecar);

/* Reads bytes at ... at+want-1; an error if the file is shorter. */
iron_status iron__sidecar_read(const iron__sidecar *sidecar, uint64_t at, void *to, size_t want,
                               iron_error *err);

/* Numbers of a sidecar, which may have hundreds of millions of them: some are in memory. */
typedef struct iron__numbers {
    const iron__sidecar *file;
    uint64_t at;    /* byte of the first one */
    uint64_t count; /* of all */
    size_t width;   /* 4 or 8 bytes */
    bool is_sought; /* one is read at a time, not those after it as well */
    uint64_t first; /* of those in memory */
    size_t held;
    unsigned char data[32 << 10];
} iron__numbers;

/* Number `index`, which must be less than the count. */
iron_status iron__numbers_get(iron__numbers *numbers, uint64_t index, uint64_t *value,
                              iron_error *err);

/* All of it, with a zero after it; the caller frees it. */
iron_status iron__sidecar_text(const iron__sidecar *sidecar, size_t bytes_max, char **text,
                               iron_error *err);

/* Folders (files.c). */

/* The path of a file in a folder; the caller frees it. NULL: out of memory. */
char *iron__folder_join(const char *folder, const char *name);

/* Whether a name is that of a file in the folder or below it: relative, without "..". */
bool iron__name_is_inside(const char *name);

/* The index of an MDS dataset (mds.c), which lists its shards in order. The shards share it: the
 * last one that was read is kept. */

typedef struct iron__mds_index iron__mds_index;

/* Reads folder/index.json. *out is NULL if there is none, which is not an error. IRON_E_FORMAT: it
 * is not the index of an MDS dataset. May be called from several threads at once. */
iron_status iron__mds_index_open(const char *folder, iron__mds_index **out, iron_error *err);
void iron__mds_index_close(iron__mds_index *index);

/* The list of shards. Each has the names of its two files, with the subfolder that they are in:
 * raw_data.basename, and zip_data.basename if it is compressed. */
const struct iron__json *iron__mds_index_shards(const iron__mds_index *index);
/* NULL: the shard has no such file ("raw_data", "zip_data"), or it has no usable name. */
const char *iron__mds_basename(const struct iron__json *shard, const char *which);

#endif
