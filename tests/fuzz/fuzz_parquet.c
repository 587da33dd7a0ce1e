/* SPDX-License-Identifier: MIT */
/*
 * fuzz_parquet.c: Parquet files. The input is a file.
 *
 *   examining  A file that is accepted has blocks in order, whose tokens and rows add up.
 *   decoding   A block gives its number of tokens, or is refused; its rows begin in order, as many
 *              as the next block says.
 *   reading    Tokens that are read in pieces are those that are decoded at once; decoding twice
 *              gives the same.
 */
#include "fuzz.h"

#include "formats/format.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* A few bytes can be runs of a million tokens, but not for every input. */
#define VALUES_MAX ((uint64_t)1 << 16)

static const iron__table *table;
static iron__input in = {.fd = -1};

static iron_status fill(void *context, uint64_t index, iron__block *block, const atomic_bool *stop,
                        iron_error *err) {
    (void)context, (void)stop;
    return table->kind->decode(table, &in, (size_t)index, true, block, err);
}

static uint64_t rows_of(size_t k) {
    return (k + 1 < table->block_count ? table->blocks[k + 1].first_row : table->rows) -
           table->blocks[k].first_row;
}

static void check_places(size_t k, const iron__block *block) {
    uint64_t last = 0;

    FUZZ_REQUIRE(block->place_count == rows_of(k));
    for (size_t p = 0; p < block->place_count; p++) {
        FUZZ_REQUIRE(block->places[p] >= last);
        last = block->places[p];
    }
    FUZZ_REQUIRE(last <= iron__table_block_tokens(table, k));
}

/* Tokens of a block, read in pieces, against those that were decoded at once. */
static void check_pieces(size_t k, const iron__block *whole, const iron__blocks_range *blocks) {
    uint64_t first = table->blocks[k].first, count = iron__table_block_tokens(table, k);
    uint32_t piece[100];
    iron_error err;

    for (uint64_t at = 0; at < count; at += 1 + at) {
        size_t some = count - at < 100 ? (size_t)(count - at) : 100;

        if (fuzz_refused(iron__table_read(table, &in, blocks, first + at, piece, some, &err),
                         &err)) {
            FUZZ_REQUIRE(!whole); /* or it is direct, and refused in the same way */
            return;
        }
        FUZZ_REQUIRE(!whole || memcmp(piece, whole->data + at * 4, some * 4) == 0);
    }
}

static void check_block(size_t k, const iron__blocks_range *blocks) {
    uint64_t tokens = iron__table_block_tokens(table, k);
    iron__block whole = {.data = NULL}, rows = {.data = NULL};
    bool is_refused, has_rows;
    iron_error err;

    if (tokens > VALUES_MAX || rows_of(k) > VALUES_MAX)
        return;
    is_refused = fuzz_refused(fill(NULL, k, &whole, NULL, &err), &err);
    has_rows = !fuzz_refused(table->kind->decode(table, &in, k, false, &rows, &err), &err);
    FUZZ_REQUIRE(is_refused || (has_rows && whole.bytes == tokens * 4));
    if (has_rows)
        check_places(k, &rows);
    check_pieces(k, is_refused ? NULL : &whole, blocks);
    iron__block_clear(&whole);
    iron__block_clear(&rows);
}

static void check_table(void) {
    iron__blocks_owner owner = {table->block_count, fill, NULL, NULL};
    iron__blocks_range blocks = {NULL, &owner, 0};
    iron_error err;

    FUZZ_REQUIRE(table->dtype == IRON_DTYPE_U32 && table->column);
    FUZZ_REQUIRE(iron__blocks_create(1, &blocks.cache, &err) == IRON_OK);
    for (size_t k = 0; k < table->block_count; k++) {
        const iron__table_block *b = &table->blocks[k];

        FUZZ_REQUIRE(k > 0 || (b->first == 0 && b->first_row == 0));
        FUZZ_REQUIRE(b->first <= table->tokens && b->first_row <= table->rows);
        FUZZ_REQUIRE(k == 0 || (b->first >= b[-1].first && b->first_row >= b[-1].first_row));
        FUZZ_REQUIRE(!b->is_direct || (b->at < in.bytes && iron__table_block_tokens(table, k) *
                                                                   iron__stored_bytes(b->stored) <=
                                                               in.bytes - b->at));
        if (k < 20)
            check_block(k, &blocks);
    }
    iron__blocks_destroy(blocks.cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static iron_sniff_report report;
    iron__candidate c = {.file = &in, .name = "file", .report = &report};
    iron__format_layout layout = {.tokens = IRON_COUNT_UNKNOWN};
    iron_error err;

    if (in.fd < 0)
        in = (iron__input){.path = "file", .fd = memfd_create("fuzz", MFD_CLOEXEC)};
    FUZZ_REQUIRE(in.fd >= 0 && ftruncate(in.fd, (off_t)size) == 0);
    FUZZ_REQUIRE(pwrite(in.fd, data, size, 0) == (ssize_t)size);
    in.bytes = size;
    report = (iron_sniff_report){.struct_size = sizeof report};
    c.head_count = size < IRON_HEAD_BYTES ? size : IRON_HEAD_BYTES;
    if (size)
        memcpy(c.head, data, c.head_count);
    (void)iron__format_parquet.recognise(&c);
    if (!fuzz_refused(iron__format_parquet.examine(&c, &layout, &err), &err)) {
        table = layout.table;
        FUZZ_REQUIRE(table && layout.documents == table->rows);
        FUZZ_REQUIRE(layout.tokens == (table->column ? table->tokens : IRON_COUNT_UNKNOWN));
        if (table->column) /* else there are several */
            check_table();
    }
    iron_sniff_report_deinit(&report);
    iron__format_layout_clear(&layout);
    return 0;
}
