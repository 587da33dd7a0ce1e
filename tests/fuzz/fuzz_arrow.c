/* SPDX-License-Identifier: MIT */
/*
 * fuzz_arrow.c: Arrow files and streams. The input is the file; its first byte chooses the column
 * (the usual one, or "x"). The seeds are files as tests/unit/arrow_support.h makes them, and files
 * written by apache-arrow for JavaScript.
 *
 *   reading   A file that can be examined is read as a whole, and block by block: the same tokens,
 *             and as many rows as announced, in order.
 *   pipes     Read in order, a stream gives the same tokens and rows, or also an error.
 */
#include "fuzz.h"

#include "formats/format.h"

#include <sys/mman.h>
#include <unistd.h>

#define TOKENS_MAX ((uint64_t)1 << 20) /* a compressed buffer can be large */

/* What reading gave. */
typedef struct outcome {
    bool is_read;
    size_t width;
    uint64_t rows;
    iron__block all;
} outcome;

typedef struct opened {
    iron__table *table;
    iron__input *in;
} opened;

static iron_status fill(void *context, uint64_t index, iron__block *block, const atomic_bool *stop,
                        iron_error *err) {
    const opened *o = context;

    (void)stop;
    return o->table->kind->decode(o->table, o->in, (size_t)index, true, block, err);
}

/* Decodes a block, and compares it with what was read. */
static bool check_block(opened *o, size_t index, outcome *out) {
    iron__table *t = o->table;
    iron__block block = {NULL, 0, 0, NULL, 0, 0};
    iron_error err;
    bool is_good;

    is_good = !fuzz_refused(t->kind->decode(t, o->in, index, true, &block, &err), &err);
    if (is_good) {
        FUZZ_REQUIRE(block.bytes == iron__table_block_tokens(t, index) * out->width);
        FUZZ_REQUIRE(block.bytes == 0 ||
                     memcmp(block.data, out->all.data + t->blocks[index].first * out->width,
                            block.bytes) == 0);
        FUZZ_REQUIRE(t->blocks[index].first_row == out->all.place_count);
        is_good = !fuzz_refused(iron__table_row_starts(t, o->in, index, &out->all, &err), &err);
    }
    iron__block_clear(&block);
    return is_good;
}

static void read_table(opened *o, outcome *out) {
    iron__table *t = o->table;
    iron__blocks_owner owner = {t->block_count, fill, NULL, o};
    iron__blocks_range range = {NULL, &owner, 0};
    iron_error err;

    out->rows = t->rows;
    out->width = iron_dtype_bytes(t->dtype);
    if (t->tokens > TOKENS_MAX || t->rows > TOKENS_MAX)
        return;
    FUZZ_REQUIRE(iron__blocks_create(1, &range.cache, &err) == IRON_OK);
    out->all.bytes = (size_t)t->tokens * out->width;
    out->all.capacity = out->all.bytes;
    out->all.data = malloc(out->all.bytes ? out->all.bytes : 1); /* of exactly that size */
    FUZZ_REQUIRE(out->all.data);
    out->is_read = !fuzz_refused(
        iron__table_read(t, o->in, &range, 0, out->all.data, (size_t)t->tokens, &err), &err);
    for (size_t k = 0; k < t->block_count && out->is_read; k++)
        out->is_read = check_block(o, k, out);
    iron__blocks_destroy(range.cache);
    if (!out->is_read)
        return;
    FUZZ_REQUIRE(out->all.place_count == t->rows);
    for (size_t k = 0; k < out->all.place_count; k++)
        FUZZ_REQUIRE(out->all.places[k] <= t->tokens &&
                     (k == 0 || out->all.places[k] >= out->all.places[k - 1]));
}

static void read_stream(iron__table *s, iron__input *in, outcome *out) {
    bool has_ended = false;
    iron_error err;

    out->width = iron_dtype_bytes(s->dtype);
    out->is_read = true;
    while (!has_ended && out->is_read && out->all.bytes <= 4 * TOKENS_MAX && s->rows <= TOKENS_MAX)
        out->is_read = !fuzz_refused(s->kind->next(s, in, &out->all, &has_ended, &err), &err);
    out->is_read = out->is_read && has_ended;
    out->rows = s->rows;
    FUZZ_REQUIRE(!out->is_read || out->all.place_count == s->rows);
}

static outcome read_file(const char *path, uint64_t bytes, const char *column) {
    outcome out = {.is_read = false};
    iron__input in = {.path = path, .bytes = bytes, .fd = -1};
    iron__candidate c = {.file = &in, .name = path, .column = column};
    iron__format_layout layout;
    iron_error err;

    FUZZ_REQUIRE(iron__input_open(&in, &err) == IRON_OK);
    if (!fuzz_refused(iron__format_examine(&iron__format_arrow, &c, &layout, &err), &err)) {
        opened o = {layout.table, &in};

        FUZZ_REQUIRE((layout.table != NULL) != (layout.stream != NULL));
        if (layout.table)
            read_table(&o, &out);
        else
            read_stream(layout.stream, &in, &out);
    }
    iron__format_layout_clear(&layout);
    iron__input_close(&in);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[40];
    const char *column = size > 0 && data[0] % 2 ? "x" : NULL;
    outcome file, pipe;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    data += size > 0;
    size -= size > 0;
    FUZZ_REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    file = read_file(path, size, column);
    pipe = read_file(path, IRON_COUNT_UNKNOWN, column);
    /* a file can have its dictionaries in any order, and its schema at the end */
    if (size < 6 || memcmp(data, "ARROW1", 6) != 0)
        FUZZ_REQUIRE(!file.is_read || pipe.is_read);
    if (file.is_read && pipe.is_read) {
        FUZZ_REQUIRE(file.width == pipe.width && file.rows == pipe.rows);
        FUZZ_REQUIRE(file.all.bytes == pipe.all.bytes);
        FUZZ_REQUIRE(file.all.bytes == 0 ||
                     memcmp(file.all.data, pipe.all.data, file.all.bytes) == 0);
        FUZZ_REQUIRE(file.rows == 0 || memcmp(file.all.places, pipe.all.places,
                                              file.rows * sizeof *file.all.places) == 0);
    }
    iron__block_clear(&file.all);
    iron__block_clear(&pipe.all);
    return 0;
}
