/* SPDX-License-Identifier: MIT */
/*
 * test_fortran.c: arrays in Fortran order, read in C order in pieces of any size and at any place,
 * through tiles that hold only some rows. Arrays of random shapes are compared with the definition
 * of both orders.
 */
#define TILE_BYTES ((size_t)1024)
#include "formats/npy.c"

#include "place.h"
#include "support.h"

#define HEADER 7u /* bytes before the tokens */

static file_name name;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    name = name_in(&place, "array");
    return 0;
}

/* Writes an array whose tokens are 0, 1, 2, ... in C order, modulo the width. */
static iron__format_layout write_array(iron_dtype dtype, uint64_t *shape, unsigned dimensions) {
    size_t width = iron_dtype_bytes(dtype);
    iron__format_layout l = {.dtype = dtype,
                             .data_offset = HEADER,
                             .tokens = 1,
                             .dimensions = dimensions,
                             .shape = shape};
    unsigned char *data;

    for (unsigned d = 0; d < dimensions; d++)
        l.tokens *= shape[d];
    l.bytes = HEADER + l.tokens * width;
    data = grab((size_t)l.bytes);
    memset(data, 0xEE, HEADER);
    for (uint64_t k = 0; k < l.tokens; k++) {
        uint64_t place_of = 0, rest = k;

        /* the last index of a C position is the slowest of a Fortran position */
        for (unsigned d = dimensions; d > 0; d--) {
            uint64_t stride = 1;

            for (unsigned e = 0; e < d - 1; e++)
                stride *= shape[e];
            place_of += rest % shape[d - 1] * stride;
            rest /= shape[d - 1];
        }
        memcpy(data + HEADER + place_of * width, &k, width);
        assert_int_equal(iron__fortran_place(&l, k), place_of);
    }
    file_write(name.path, data, (size_t)l.bytes);
    free(data);
    return l;
}

/* The tiles of an array, as a source reads them. */
typedef struct array_reader {
    iron__format_layout *layout;
    iron__blocks_owner owner;
    iron__blocks_range blocks;
} array_reader;

static iron_status fill_tile(void *context, uint64_t index, iron__block *block,
                             const atomic_bool *stop, iron_error *err) {
    const iron__table *table = context;
    iron__input in = {.path = name.path, .stop = stop, .fd = -1};
    iron_status status = iron__input_open(&in, err);

    if (status == IRON_OK)
        status = table->kind->decode(table, &in, (size_t)index, true, block, err);
    iron__input_close(&in);
    return status;
}

static void reader_open(array_reader *r, iron__format_layout *l) {
    iron_error err;

    assert_ok(fortran_table(l, "array", &err), &err);
    r->layout = l;
    r->owner = (iron__blocks_owner){l->table->block_count, fill_tile, NULL, l->table};
    r->blocks = (iron__blocks_range){NULL, &r->owner, 0};
    assert_ok(iron__blocks_create(2, &r->blocks.cache, &err), &err);
}

static void reader_close(array_reader *r) {
    iron__blocks_destroy(r->blocks.cache);
    iron__table_destroy(r->layout->table);
}

static iron_status read_array(const array_reader *r, uint64_t first, void *to, size_t count,
                              iron_error *err) {
    return iron__table_read(r->layout->table, &(iron__input){.fd = -1}, &r->blocks, first, to,
                            count, err);
}

static void assert_tokens(const array_reader *reader, const iron__format_layout *l, uint64_t first,
                          size_t count) {
    size_t width = iron_dtype_bytes(l->dtype);
    unsigned char *got = grab(count * width + 1);
    iron_error err;

    got[count * width] = 0xAB;
    assert_ok(read_array(reader, first, got, count, &err), &err);
    for (size_t k = 0; k < count; k++) {
        uint64_t want = first + k;

        assert_memory_equal(got + k * width, &want, width);
    }
    assert_int_equal(got[count * width], 0xAB);
    free(got);
}

static void random_arrays(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I64};
    rng r = {5};

    (void)state;
    for (int round = 0; round < 200; round++) {
        iron_dtype dtype = dtypes[round % 4];
        unsigned dimensions = 2 + (unsigned)rng_below(&r, 3);
        uint64_t shape[4] = {2 + rng_below(&r, 300)};
        iron__format_layout l;
        array_reader reader;

        for (unsigned d = 1; d < dimensions; d++)
            shape[d] = 2 + rng_below(&r, dimensions == 2 ? 70 : 4);
        l = write_array(dtype, shape, dimensions);
        reader_open(&reader, &l);
        assert_tokens(&reader, &l, 0, (size_t)l.tokens);
        for (int k = 0; k < 10; k++) {
            uint64_t first = rng_below(&r, l.tokens);

            assert_tokens(&reader, &l, first, (size_t)rng_below(&r, l.tokens - first + 1));
        }
        reader_close(&reader);
    }
}

static void rows_that_do_not_fit(void **state) {
    uint64_t shape[2] = {2, TILE_BYTES / 8};
    iron__format_layout l = {
        .dtype = IRON_DTYPE_I64, .tokens = 2 * shape[1], .dimensions = 2, .shape = shape};
    iron_error err;

    (void)state;
    assert_ok(fortran_table(&l, "array", &err), &err);
    iron__table_destroy(l.table);
    l.table = NULL;
    shape[1]++;
    l.tokens = 2 * shape[1];
    assert_refused(fortran_table(&l, "array", &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "numpy.ascontiguousarray");
}

static void files_that_shrink(void **state) {
    uint64_t shape[2] = {50, 9};
    iron__format_layout l = write_array(IRON_DTYPE_U16, shape, 2);
    array_reader reader;
    unsigned char got[900];
    iron_error err;

    (void)state;
    reader_open(&reader, &l);
    assert_int_equal(truncate(name.path, (off_t)l.bytes - 1), 0);
    assert_refused(read_array(&reader, 0, got, 450, &err), IRON_E_IO, &err);
    assert_says(&err, "cut while being read");
    assert_int_equal(unlink(name.path), 0);
    assert_refused(read_array(&reader, 400, got, 1, &err), IRON_E_IO, &err);
    reader_close(&reader);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(random_arrays),
        CASE(rows_that_do_not_fit),
        CASE(files_that_shrink),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
