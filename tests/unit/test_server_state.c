/* SPDX-License-Identifier: MIT */
/*
 * test_server_state.c: states as JSON and as NumPy files, of engines in a real store, read in
 * pieces of any size: they contain the engine's nodes exactly. Also the memory budget of copied
 * nodes.
 */
#include "support.h"

#include "core/json.h"
#include "server/route_state.c"

typedef struct place {
    folder data;
    iron__store *store;
    iron__store_engine *kept;
    uint32_t nodes;
    uint32_t *xors;
    float *potentials, *activations;
} place;

static void feed_some(iron__store_engine *kept) {
    uint32_t *tokens = grab_tokens(1, 50257, 1000);
    iron__feed_request request = {.dtype = IRON_DTYPE_U32, .expected_bytes = 4000};
    iron__feed_answer answer;
    iron__feed *feed = NULL;
    iron_error err = {0};

    assert_int_equal(iron__feed_begin(kept, &request, &feed, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(feed, tokens, 4000, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(feed, &answer, &err), IRON_FEED_DONE);
    free(tokens);
}

static void place_make(place *p, uint32_t nodes) {
    iron__store_options options = {.directory = p->data.path};
    iron__store_engine_view view;
    iron__store_plan plan;
    iron_error err = {0};

    folder_make(&p->data);
    assert_ok(iron__store_open(&options, &p->store, &err), &err);
    iron__store_plan_init(&plan);
    snprintf(plan.name, sizeof plan.name, "demo");
    snprintf(plan.backend, sizeof plan.backend, "cpu");
    plan.nodes = nodes;
    plan.batch = 64;
    assert_ok(iron__store_create(p->store, &plan, &p->kept, &err), &err);
    feed_some(p->kept);
    p->nodes = nodes;
    p->xors = grab(nodes * sizeof *p->xors);
    p->potentials = grab(nodes * sizeof *p->potentials);
    p->activations = grab(nodes * sizeof *p->activations);
    iron__store_engine_get_view(p->kept, &view,
                                &(iron__engine_nodes){p->xors, p->potentials, p->activations});
    assert_int_equal(view.tokens, 1000);
}

static void place_remove(place *p) {
    iron__store_engine_release(p->kept);
    iron__store_close(p->store);
    folder_remove(&p->data);
    free(p->xors);
    free(p->potentials);
    free(p->activations);
}

/* The complete dump, read in pieces of `piece` bytes. */
static char *collect(dump *d, size_t piece, size_t *bytes) {
    char *all = NULL, *room = grab(piece);
    FILE *to = open_memstream(&all, bytes);
    ssize_t count;

    assert_non_null(d);
    assert_non_null(to);
    while ((count = dump_read(d, room, piece)) >= 0) {
        assert_true((size_t)count <= piece);
        fwrite(room, 1, (size_t)count, to);
    }
    assert_int_equal(fclose(to), 0);
    dump_destroy(d);
    free(room);
    return all;
}

static void require_reals(const iron__json *root, const char *name, const float *values,
                          uint32_t count) {
    const iron__json *array = iron__json_member(root, name);

    assert_int_equal(iron__json_length(array), count);
    for (uint32_t k = 0; k < count; k++)
        assert_true((float)iron__json_at(array, k)->number == values[k]);
}

static void require_json(const place *p, const char *text, size_t bytes) {
    const iron__json *root = NULL, *xors;
    iron_error err = {0};

    assert_ok(iron__json_parse(text, bytes, iron__allocator_default(), &root, &err), &err);
    assert_int_equal(root->count, 19 + 3);
    assert_string_equal(iron__json_get_text(iron__json_member(root, "name")), "demo");
    xors = iron__json_member(root, "xor_accumulators");
    assert_int_equal(iron__json_length(xors), p->nodes);
    for (uint32_t k = 0; k < p->nodes; k++)
        assert_true(iron__json_at(xors, k)->number == (double)p->xors[k]);
    require_reals(root, "potentials", p->potentials, p->nodes);
    require_reals(root, "activations", p->activations, p->nodes);
    iron__json_destroy(iron__allocator_default(), root);
}

static void test_json(void **state) {
    static const uint32_t sizes[] = {1, 15, 16, 17, 4096};
    static const size_t pieces[] = {64, 100, 4096, 1 << 20};

    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        place p = {0};

        place_make(&p, sizes[k]);
        for (size_t i = 0; i < COUNT(pieces); i++) {
            size_t bytes = 0;
            char *text = collect(dump_create(p.kept, false, ARRAY_XORS), pieces[i], &bytes);

            require_json(&p, text, bytes);
            free(text);
        }
        place_remove(&p);
    }
}

static void require_array(const place *p, node_array array, const char *descr,
                          const void *expected) {
    size_t bytes = 0;
    char *file = collect(dump_create(p->kept, true, array), 333, &bytes);
    iron__npy_header header;
    iron_error err = {0};

    assert_ok(iron__npy_parse((const unsigned char *)file, bytes, &header, &err), &err);
    assert_string_equal(header.descr, descr);
    assert_int_equal(header.dimensions, 1);
    assert_int_equal(header.shape[0], p->nodes);
    assert_int_equal(header.data_offset % 64, 0);
    assert_int_equal(bytes - header.data_offset, (size_t)p->nodes * 4);
    assert_memory_equal(file + header.data_offset, expected, (size_t)p->nodes * 4);
    free(file);
}

static void test_npy_arrays(void **state) {
    place p = {0};

    (void)state;
    place_make(&p, 4097);
    require_array(&p, ARRAY_XORS, "<u4", p.xors);
    require_array(&p, ARRAY_POTENTIALS, "<f4", p.potentials);
    require_array(&p, ARRAY_ACTIVATIONS, "<f4", p.activations);
    place_remove(&p);
}

static void test_npy_records(void **state) {
    static const char dict[] = "{'descr': [('xor_accumulators', '<u4'), ('potentials', '<f4'), "
                               "('activations', '<f4')], 'fortran_order': False, 'shape': (77,), }";
    place p = {0};
    size_t bytes = 0, head;
    char *file;

    (void)state;
    place_make(&p, 77);
    file = collect(dump_create(p.kept, true, ARRAYS), 64, &bytes);
    head = 10 + ((unsigned char)file[8] | (size_t)(unsigned char)file[9] << 8);
    assert_memory_equal(file, "\x93NUMPY\x01\x00", 8);
    assert_memory_equal(file + 10, dict, strlen(dict));
    assert_int_equal(head % 64, 0);
    assert_int_equal(file[head - 1], '\n');
    assert_int_equal(bytes, head + 77 * 12);
    for (size_t k = 0; k < 77; k++) {
        assert_memory_equal(file + head + 12 * k, &p.xors[k], 4);
        assert_memory_equal(file + head + 12 * k + 4, &p.potentials[k], 4);
        assert_memory_equal(file + head + 12 * k + 8, &p.activations[k], 4);
    }
    free(file);
    place_remove(&p);
}

/* Requests that are too large for the budget never make a small one fail. */
static atomic_uint_fast64_t budget;
static atomic_uint asked;

static void *ask_too_much(void *context) {
    (void)context;
    for (; atomic_load(&asked) < 200000; atomic_fetch_add(&asked, 1))
        assert_false(iron__budget_take(&budget, COPIES_MAX + 1, COPIES_MAX));
    return NULL;
}

static void test_budget(void **state) {
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, ask_too_much, NULL), 0);
    while (atomic_load(&asked) < 200000) {
        assert_true(iron__budget_take(&budget, 1000, COPIES_MAX));
        atomic_fetch_sub(&budget, 1000);
    }
    pthread_join(thread, NULL);
    assert_true(iron__budget_take(&budget, COPIES_MAX, COPIES_MAX));
    assert_false(iron__budget_take(&budget, 1, COPIES_MAX));
    assert_true(iron__budget_take(&budget, 0, COPIES_MAX));
    assert_int_equal(atomic_load(&budget), COPIES_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_npy_arrays),
        cmocka_unit_test(test_npy_records),
        cmocka_unit_test(test_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
