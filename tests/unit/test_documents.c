/* SPDX-License-Identifier: MIT */
/*
 * test_documents.c: where documents end, as an index says: all of them in calls of any size, empty
 * documents, documents of several sequences, more entries than are read at once, formats without an
 * index, and an index that changes after the tokens were opened.
 */
#include "place.h"

#include <iron/iron_digest.h>

#include <stdlib.h>

#define TOKENS_MAX 20000u

typedef struct bytes {
    unsigned char data[34 + 20 * TOKENS_MAX];
    size_t count;
} bytes;

static void put_number(bytes *b, uint64_t value, unsigned width) {
    for (unsigned k = 0; k < width; k++)
        b->data[b->count++] = (unsigned char)(value >> 8 * k);
}

static iron_source *open_tokens(const char *name, size_t tokens) {
    static const uint16_t zeros[TOKENS_MAX];
    file_name path = name_in(&place, name);
    const char *paths[] = {path.path};
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = IRON_DTYPE_U16, .paths = paths, .path_count = 1};
    iron_source *source = NULL;
    iron_error err;

    file_write(path.path, zeros, 2 * tokens);
    assert_ok(iron_source_open(&o, &source, &err), &err);
    return source;
}

static void write_index(const char *name, const bytes *b) {
    file_write(name_in(&place, name).path, b->data, b->count);
}

/* Sequences of these lengths; documents begin with the sequences in `documents`. */
static void write_megatron(const uint32_t *lengths, size_t sequences, const uint64_t *documents,
                           size_t entries) {
    bytes *b = calloc(1, sizeof *b);
    uint64_t offset = 0;

    assert_non_null(b);
    memcpy(b->data, "MMIDIDX\0", 9);
    b->count = 9;
    put_number(b, 1, 8);
    put_number(b, 8, 1); /* u16 */
    put_number(b, sequences, 8);
    put_number(b, entries, 8);
    for (size_t k = 0; k < sequences; k++)
        put_number(b, lengths[k], 4);
    for (size_t k = 0; k < sequences; k++) {
        put_number(b, offset, 8);
        offset += 2 * (uint64_t)lengths[k];
    }
    for (size_t k = 0; k < entries; k++)
        put_number(b, documents[k], 8);
    write_index("p.idx", b);
    free(b);
}

static void write_ds(const uint64_t *ends, size_t count) {
    bytes *b = calloc(1, sizeof *b);

    assert_non_null(b);
    for (size_t k = 0; k < count; k++)
        put_number(b, ends[k], 8);
    write_index("x.ds.index", b);
    free(b);
}

/* Reads all ends, `room` at a time. */
static void assert_ends(const iron_source *source, const uint64_t *want, size_t count,
                        size_t room) {
    uint64_t *ends = calloc(room, sizeof *ends);
    iron_documents *d = NULL;
    size_t done = 0, some = 1;
    iron_error err;

    assert_non_null(ends);
    assert_ok(iron_documents_open(source, 0, &d, &err), &err);
    assert_non_null(d);
    while (some > 0) {
        assert_ok(iron_documents_read(d, ends, room, &some, &err), &err);
        assert_true(some == room || done + some == count);
        assert_memory_equal(ends, want + done, some * sizeof *ends);
        done += some;
    }
    assert_int_equal(done, count);
    iron_documents_close(d);
    free(ends);
}

static void documents_of_several_sequences(void **state) {
    static const uint32_t lengths[] = {3, 0, 5, 2, 0, 0, 7};
    static const uint64_t documents[] = {0, 2, 2, 3, 6, 7, 7}, ends[] = {3, 3, 8, 10, 17, 17};
    iron_source *source;

    (void)state;
    write_megatron(lengths, COUNT(lengths), documents, COUNT(documents));
    source = open_tokens("p.bin", 17);
    for (size_t room = 1; room <= 8; room++)
        assert_ends(source, ends, COUNT(ends), room);
    iron_source_close(source);
}

/* Windows of 4096 entries: one document for each sequence, for every third, and for all. */
static void many_documents(void **state) {
    static const size_t steps[] = {1, 3, 9000, TOKENS_MAX / 2};
    static uint32_t lengths[TOKENS_MAX / 2];
    static uint64_t documents[TOKENS_MAX / 2 + 1], ends[TOKENS_MAX / 2 + 1];
    size_t sequences = COUNT(lengths);

    (void)state;
    for (size_t k = 0; k < sequences; k++)
        lengths[k] = 2;
    for (size_t s = 0; s < COUNT(steps); s++) {
        iron_source *source;
        size_t count = 0;

        for (size_t k = steps[s]; k < sequences; k += steps[s]) {
            documents[count + 1] = k;
            ends[count++] = 2 * k;
        }
        documents[count + 1] = sequences;
        ends[count++] = TOKENS_MAX;
        write_megatron(lengths, sequences, documents, count + 1);
        source = open_tokens("p.bin", TOKENS_MAX);
        assert_ends(source, ends, count, 512);
        assert_ends(source, ends, count, TOKENS_MAX);
        iron_source_close(source);
    }
}

static void ends_of_ds(void **state) {
    static const uint64_t ends[] = {0, 4, 4, 9};
    iron_source *source;

    (void)state;
    write_ds(ends, COUNT(ends));
    source = open_tokens("x.ds", 9);
    for (size_t room = 1; room <= 6; room++)
        assert_ends(source, ends, COUNT(ends), room);
    iron_source_close(source);
}

static void without_an_index(void **state) {
    iron_source *source = open_tokens("raw.bin", 9);
    iron_documents *d = (iron_documents *)&d;
    iron_error err;

    (void)state;
    assert_ok(iron_documents_open(source, 0, &d, &err), &err);
    assert_null(d);
    assert_ok(iron_documents_open(source, 1, &d, &err), &err); /* no such file */
    assert_null(d);
    iron_documents_close(NULL);
    iron_source_close(source);
}

/* Valid while the tokens are opened; then replaced. */
static void changed_index(void **state) {
    static const uint64_t good[] = {4, 9}, low[] = {4, 3}, high[] = {4, 10};
    static const uint32_t length = 9;
    static const uint64_t document[] = {0, 1};
    uint64_t ends[2];
    iron_documents *d = NULL;
    iron_source *source;
    bytes broken = {.count = 20};
    size_t count;
    iron_error err;

    (void)state;
    for (int k = 0; k < 2; k++) {
        write_ds(good, 2);
        source = open_tokens("x.ds", 9);
        write_ds(k ? low : high, 2);
        assert_ok(iron_documents_open(source, 0, &d, &err), &err);
        assert_refused(iron_documents_read(d, ends, 2, &count, &err), IRON_E_FORMAT, &err);
        assert_says(&err, "changed");
        iron_documents_close(d);
        iron_source_close(source);
    }
    write_megatron(&length, 1, document, 2);
    source = open_tokens("p.bin", 9);
    write_index("p.idx", &broken);
    assert_refused(iron_documents_open(source, 0, &d, &err), IRON_E_FORMAT, &err);
    assert_null(d);
    broken.count = 60;
    memset(broken.data + 18, 0xFF, 8); /* more sequences than bytes */
    write_index("p.idx", &broken);
    assert_refused(iron_documents_open(source, 0, &d, &err), IRON_E_FORMAT, &err);
    assert_null(d);
    assert_int_equal(unlink(name_in(&place, "p.idx").path), 0);
    assert_ok(iron_documents_open(source, 0, &d, &err), &err);
    assert_null(d);
    iron_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_of_several_sequences),
        cmocka_unit_test(many_documents),
        cmocka_unit_test(ends_of_ds),
        cmocka_unit_test(without_an_index),
        cmocka_unit_test(changed_index),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
