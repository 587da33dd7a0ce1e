/* SPDX-License-Identifier: MIT */
/*
 * test_tokens_gpu.c: the op on a device, below the engine: its rows, the width of accumulators, and
 * objects that are created, destroyed and started again. The selftest checks every row over all
 * shapes.
 *
 * The first paper's kernels had 16-bit accumulators and updated them with 32-bit atomics, which
 * changed neighbours too. Here that does not compile where atomics are used, and is detected where
 * it does compile.
 */
#include "gpu_support.h"

#include "ops/tokens/tokens.h"
#include "ops/tokens/tokens_gpu.c"

#define NODES  37u
#define TOKENS 5000u
#define VOCAB  50257u

static iron__gpu_device *device;
static iron__gpu_queue *queue;
static iron__gpu_buffer *buffer;
static iron__gpu_program *program;
static iron_lattice *lattice;
static uint32_t *tokens;

static int set_up(void **state) {
    iron__gpu_copy copy = {.bytes = TOKENS * sizeof(uint32_t)};
    iron_error err;

    gpu_set_up(state);
    if (gpu_reason.status != IRON_OK)
        return 0;
    tokens = grab_tokens(3, UINT64_C(1) << 32, TOKENS);
    assert_ok(iron_lattice_create(NULL, 0, &lattice, &err), &err);
    assert_ok(iron__gpu_device_open(gpu_index(), 0, &device, &err), &err);
    assert_ok(iron__gpu_program_load(device, &iron__tokens_image, &program, &err), &err);
    assert_ok(iron__gpu_queue_create(device, &queue, &err), &err);
    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, copy.bytes, &buffer, &err),
              &err);
    copy.to = buffer;
    copy.from_host = tokens;
    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    return 0;
}

static int tear_down(void **state) {
    if (gpu_reason.status == IRON_OK) {
        iron__gpu_buffer_destroy(buffer);
        iron__gpu_queue_destroy(queue);
        iron__gpu_program_unload(device, program);
        iron__gpu_device_close(device);
        iron_lattice_destroy(lattice);
        free(tokens);
    }
    return gpu_tear_down(state);
}

static iron__tokens_gpu_config op_config(const char *mode) {
    return (iron__tokens_gpu_config){.row = iron__tokens_gpu_row_find(mode),
                                     .lattice = lattice,
                                     .allocator = iron__allocator_default(),
                                     .program = program,
                                     .batch = 1000,
                                     .nodes = NODES,
                                     .vocab = VOCAB};
}

static iron__tokens_gpu *op_of(const iron__tokens_gpu_config *config) {
    iron__tokens_gpu *t = NULL;
    iron_error err;

    assert_ok(iron__tokens_gpu_create(device, config, &t, &err), &err);
    return t;
}

static iron__nodes nodes_of(void) {
    iron__nodes nodes;
    iron_error err;

    assert_ok(iron__nodes_init(&nodes, NODES, lattice, NULL, iron__allocator_default(), &err),
              &err);
    return nodes;
}

static void begin(iron__tokens_gpu *t, const iron__nodes *nodes) {
    iron_error err;

    assert_ok(iron__tokens_gpu_begin(t, queue, nodes, iron__contribution_neutral(), 0, &err), &err);
}

static void feed(iron__tokens_gpu *t, uint64_t first, uint64_t count) {
    iron_error err;

    assert_ok(iron__tokens_gpu_feed(t, queue, buffer, first, count, &err), &err);
}

static void finish(iron__tokens_gpu *t, iron__nodes *nodes, iron__contribution *closed) {
    iron_error err;

    assert_ok(iron__tokens_gpu_end_batch(t, queue, &err), &err);
    assert_ok(iron__tokens_gpu_fetch(t, queue, nodes, closed, &err), &err);
}

/* The definition: tokens first ... first+count-1 in batches of 1000, applied to fresh nodes. */
static iron__nodes expected(uint64_t first, uint64_t count, iron__contribution *closed) {
    iron__divisor divisor = iron__divisor_make(VOCAB);
    iron__nodes nodes = nodes_of();

    *closed = iron__contribution_neutral();
    for (uint64_t done = 0; done < count;) {
        size_t taken = count - done < 1000 ? (size_t)(count - done) : 1000;
        iron__tokens_run run = {tokens + first + done, taken, done, &divisor, NULL};
        iron__contribution c = iron__tokens_scalar(&run);
        iron_batch_effect effect = {c.xors, iron__contribution_potential(c, VOCAB)};

        iron__nodes_apply_one(&nodes, effect);
        *closed = iron__contribution_merge(*closed, c);
        done += taken;
    }
    return nodes;
}

static bool is_same(const iron__nodes *a, const iron__nodes *b) {
    return memcmp(a->xor_accumulators, b->xor_accumulators, NODES * sizeof(uint32_t)) == 0 &&
           memcmp(a->potentials, b->potentials, NODES * sizeof(float)) == 0;
}

static void rows_are_the_nine_modes(void **state) {
    static const char *const modes[] = {"atomic2d",      "node",       "hybrid",
                                        "tiled",         "tiled-wide", "tiled-vector",
                                        "hybrid-vector", "reduce",     "champion"};

    (void)state;
    for (size_t k = 0; k < COUNT(modes); k++) {
        const iron__tokens_gpu_row *row = iron__tokens_gpu_row_at(k);

        assert_non_null(row);
        assert_string_equal(row->mode, modes[k]);
        assert_ptr_equal(iron__tokens_gpu_row_find(modes[k]), row);
        for (size_t b = 0; b < iron__gpu_backend_count(); b++) {
            char name[80];

            snprintf(name, sizeof name, "tokens.%s.%s", iron__gpu_backend_name(b), modes[k]);
            assert_string_equal(row->names[b], name);
            assert_ptr_equal(iron__tokens_gpu_row_find(name), row);
        }
        assert_true(row->idea[0] != '\0');
        assert_true(!row->beats || iron__tokens_gpu_row_find(row->beats));
        assert_true(!row->shares_sum || row->per_node);
    }
    assert_null(iron__tokens_gpu_row_at(COUNT(modes)));
    /* a full name is found only on its own backend */
    assert_non_null(iron__tokens_gpu_row_for(0, "tokens.cuda.champion"));
    assert_null(iron__tokens_gpu_row_for(1, "tokens.cuda.champion"));
    assert_non_null(iron__tokens_gpu_row_for(1, "champion"));
    assert_null(iron__tokens_gpu_row_for(1, "vector"));
    assert_null(iron__tokens_gpu_row_find("vector"));
    assert_null(iron__tokens_gpu_row_find(""));
}

/* A copy with every `from` replaced by `to`; free() it. */
static char *replaced(const char *text, const char *from, const char *to, size_t *count) {
    size_t from_bytes = strlen(from), to_bytes = strlen(to);
    char *result = grab(strlen(text) * 2 + 1), *at = result;

    assert_true(to_bytes <= 2 * from_bytes);
    *count = 0;
    while (*text) {
        if (strncmp(text, from, from_bytes) == 0) {
            memcpy(at, to, to_bytes);
            at += to_bytes;
            text += from_bytes;
            ++*count;
        } else {
            *at++ = *text++;
        }
    }
    *at = '\0';
    return result;
}

#define NEED_TEXT()                                                                                \
    do {                                                                                           \
        NEED_GPU();                                                                                \
        if (strcmp(gpu_backend(), "opencl") != 0) {                                                \
            print_message("skipped: only OpenCL builds kernels here\n");                           \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

/* Contributions use atomics, which do not exist for 16 bits. */
static void sixteen_bit_contributions_do_not_build(void **state) {
    iron__gpu_image image = iron__tokens_image;
    iron__gpu_program *bad = NULL;
    iron_error err;
    size_t count;
    char *text;

    (void)state;
    NEED_TEXT();
    text = replaced(image.source, "k_u32 *K_RESTRICT xors", "k_u16 *K_RESTRICT xors", &count);
    assert_true(count > 5);
    image.source = text;
    assert_refused(iron__gpu_program_load(device, &image, &bad, &err), IRON_E_IO, &err);
    assert_says(&err, "clBuildProgram");
    assert_null(bad);
    free(text);
    assert_int_equal(device->failure.status, IRON_OK);
}

static char *copy_of(const char *source) { return strcpy(grab(strlen(source) + 1), source); }

/* The program without the kernels of Part I and of the seal, which take most of PoCL's build time:
 * cut at the header comments of their files; free() it. */
static char *without_most_kernels(const char *source) {
    char *text = copy_of(source), *from, *to;

    from = strstr(text, " * part_one.k:");
    to = strstr(text, " * reduce.k:");
    assert_true(from && to && from < to);
    memmove(from, to, strlen(to) + 1);
    from = strstr(text, " * quads.k:");
    assert_non_null(from);
    strcpy(from, " */\n");
    return text;
}

/* Accumulators are stored without atomics: 16 bits would compile there, but every comparison
 * detects them. (In the mode that applies one batch at a time: to apply many, a point is looked up
 * by its accumulator, and half of one could be any index.) The full test also builds all kernels,
 * with and without the change. */
static void sixteen_bit_accumulators_are_seen(void **state) {
    iron__nodes want, got;
    iron__contribution closed, want_closed;
    iron_error err;
    size_t count;

    (void)state;
    NEED_TEXT();
    want = expected(0, TOKENS, &want_closed);
    for (size_t narrow = is_full_test() ? 0 : 1; narrow < 2; narrow++) {
        iron__tokens_gpu_config config = op_config("reduce");
        char *source = is_full_test() ? copy_of(iron__tokens_image.source)
                                      : without_most_kernels(iron__tokens_image.source);
        char *text = replaced(
            source, "k_u32 *K_RESTRICT accumulators",
            narrow ? "k_u16 *K_RESTRICT accumulators" : "k_u32 *K_RESTRICT accumulators ", &count);
        iron__gpu_image changed = {.name = "changed", .source = text};
        iron__tokens_gpu *t;

        assert_int_equal(count, 3); /* apply_one, apply_settle and whole */
        assert_ok(iron__gpu_program_load(device, &changed, &config.program, &err), &err);
        t = op_of(&config);
        got = nodes_of();
        begin(t, &got);
        feed(t, 0, TOKENS);
        finish(t, &got, &closed);
        assert_int_equal(is_same(&got, &want), !narrow);
        iron__nodes_deinit(&got);
        iron__tokens_gpu_destroy(t);
        iron__gpu_program_unload(device, config.program);
        free(text);
        free(source);
    }
    iron__nodes_deinit(&want);
}

/* All 32 bits of every node's contribution, in every mode that has one per node. */
static void nodes_do_not_change_their_neighbours(void **state) {
    iron__divisor divisor = iron__divisor_make(VOCAB);

    (void)state;
    NEED_GPU();
    for (size_t r = 0; iron__tokens_gpu_row_at(r); r++) {
        const iron__tokens_gpu_row *row = iron__tokens_gpu_row_at(r);
        iron__tokens_gpu_config config = op_config(row->mode);
        iron__tokens_run run = {tokens, 999, 0, &divisor, NULL};
        iron__contribution want = iron__tokens_scalar(&run), closed, want_closed;
        iron__nodes got = nodes_of(), want_nodes = expected(0, 999, &want_closed);
        iron__tokens_gpu *t = op_of(&config);
        uint32_t xors[NODES];
        iron__gpu_copy copy = {.to_host = xors, .bytes = sizeof xors};
        iron_error err;

        begin(t, &got);
        feed(t, 0, 999);
        copy.from = t->buffers.xors;
        assert_true(want.xors >> 16 != 0);
        assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
        assert_ok(iron__gpu_queue_wait(queue, &err), &err);
        for (uint32_t j = 0; j < (row->per_node ? NODES : 1); j++)
            assert_int_equal(xors[j], want.xors);
        finish(t, &got, &closed);
        assert_true(is_same(&got, &want_nodes));
        assert_int_equal(closed.sum, want_closed.sum);
        /* neutral again for the next batch */
        assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
        assert_ok(iron__gpu_queue_wait(queue, &err), &err);
        for (uint32_t j = 0; j < (row->per_node ? NODES : 0); j++)
            assert_int_equal(xors[j], 0);
        iron__tokens_gpu_destroy(t);
        iron__nodes_deinit(&got);
        iron__nodes_deinit(&want_nodes);
    }
}

/* begin discards everything, including an open batch and pending ones. */
static void begin_discards_everything(void **state) {
    (void)state;
    NEED_GPU();
    for (size_t r = 0; iron__tokens_gpu_row_at(r); r++) {
        iron__tokens_gpu_config config = op_config(iron__tokens_gpu_row_at(r)->mode);
        iron__tokens_gpu *t = op_of(&config);
        iron__nodes got = nodes_of(), fresh = nodes_of(), want;
        iron__contribution closed, want_closed;

        begin(t, &got);
        feed(t, 1, 3777);
        begin(t, &fresh);
        assert_int_equal(iron__tokens_gpu_progress_of(t).open_tokens, 0);
        assert_int_equal(iron__tokens_gpu_progress_of(t).batches, 0);
        feed(t, 2, 2500);
        assert_int_equal(iron__tokens_gpu_progress_of(t).closed_tokens, 2000);
        assert_int_equal(iron__tokens_gpu_progress_of(t).open_tokens, 500);
        finish(t, &got, &closed);
        want = expected(2, 2500, &want_closed);
        assert_true(is_same(&got, &want));
        assert_int_equal(closed.count, 2500);
        assert_int_equal(closed.xors, want_closed.xors);
        iron__tokens_gpu_destroy(t);
        iron__nodes_deinit(&got);
        iron__nodes_deinit(&fresh);
        iron__nodes_deinit(&want);
    }
}

/* Fetching does not change later results; closing when no batch is open does nothing. */
static void fetching_changes_nothing(void **state) {
    (void)state;
    NEED_GPU();
    for (size_t r = 0; iron__tokens_gpu_row_at(r); r++) {
        iron__tokens_gpu_config config = op_config(iron__tokens_gpu_row_at(r)->mode);
        iron__tokens_gpu *t = op_of(&config);
        iron__nodes got = nodes_of(), want = expected(0, TOKENS, &(iron__contribution){0});
        iron__contribution closed;
        iron_error err;

        begin(t, &got);
        for (uint64_t at = 0; at < TOKENS; at += 250) {
            feed(t, at, 250);
            assert_ok(iron__tokens_gpu_apply_pending(t, queue, &err), &err);
            assert_ok(iron__tokens_gpu_fetch(t, queue, &got, &closed, &err), &err);
            assert_int_equal(closed.count, (at + 250) / 1000 * 1000);
        }
        finish(t, &got, &closed);
        finish(t, &got, &closed);
        assert_true(is_same(&got, &want));
        iron__tokens_gpu_destroy(t);
        iron__nodes_deinit(&got);
        iron__nodes_deinit(&want);
    }
}

/* Objects with their own program, and objects that cannot be created. */
static void objects_are_created_and_destroyed(void **state) {
    iron__tokens_gpu_config config;
    ledger l = {0};
    iron_allocator allocator = ledger_allocator(&l);
    iron__tokens_gpu *t = NULL;
    iron_error err;

    (void)state;
    NEED_GPU();
    config = op_config("champion");
    config.program = NULL;
    config.allocator = &allocator;
    t = op_of(&config);
    iron__tokens_gpu_destroy(t);
    assert_int_equal(l.out, 0);
    l.fail_at = l.calls + 1;
    assert_refused(iron__tokens_gpu_create(device, &config, &t, &err), IRON_E_NOMEM, &err);
    assert_null(t);
    l.fail_at = 0;
    iron__tokens_gpu_destroy(NULL);
    device->failure = (iron_error){IRON_E_IO, -5, "marked by the test"};
    assert_refused(iron__tokens_gpu_create(device, &config, &t, &err), IRON_E_IO, &err);
    assert_says(&err, "marked by the test");
    assert_null(t);
    assert_int_equal(l.out, 0);
    device->failure = (iron_error){.status = IRON_OK};
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_nine_modes),
        cmocka_unit_test(sixteen_bit_contributions_do_not_build),
        cmocka_unit_test(sixteen_bit_accumulators_are_seen),
        cmocka_unit_test(nodes_do_not_change_their_neighbours),
        cmocka_unit_test(begin_discards_everything),
        cmocka_unit_test(fetching_changes_nothing),
        cmocka_unit_test(objects_are_created_and_destroyed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
