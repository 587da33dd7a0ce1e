/* SPDX-License-Identifier: MIT */
/*
 * test_state.c: saved states. Loading restores what was saved, and an engine continues as if it had
 * not stopped. A state is written completely or not at all, leaves no other files, and goes only
 * where a state may go. Every other file is refused.
 *
 * Damage comes in two kinds. Accidents: every truncation and every flipped bit of a small file must
 * be refused. Forgeries: files with a correct checksum and impossible contents. Both are tried on
 * bytes in memory (iron__state_parse), some through the file system.
 */
#include "engine_support.h"
#include "place.h"

#include "engine/state.c"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NODES 5u

static iron_config small_config(void) {
    iron_config c;

    iron_config_init(&c);
    c.nodes = NODES;
    c.vocab = 1000;
    c.batch = 10;
    c.threads = 1;
    c.with_seal = 1;
    return c;
}

/* An engine that was fed `count` tokens and has closed its last batch. */
static iron_engine *fed_engine(const iron_config *c, const uint32_t *tokens, size_t count) {
    iron_engine *e = NULL;
    iron_error err;

    assert_ok(iron_engine_create(c, &e, &err), &err);
    assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    return e;
}

static iron_engine *small_engine(void) {
    iron_config c = small_config();
    uint32_t tokens[47];

    assert_int_equal(iron_generate(5, 1000, 0, tokens, COUNT(tokens), NULL), IRON_OK);
    return fed_engine(&c, tokens, COUNT(tokens));
}

static iron_engine *load(const char *path, const iron_config *run) {
    iron_engine *e = NULL;
    iron_error err;

    assert_ok(iron_engine_load(path, run, &e, &err), &err);
    return e;
}

static void assert_same_engines(iron_engine *a, iron_engine *b) {
    iron_report x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
    iron_config c;

    c = *iron_engine_config(a);
    assert_int_equal(iron_engine_report(a, &x, NULL), IRON_OK);
    assert_int_equal(iron_engine_report(b, &y, NULL), IRON_OK);
    assert_true(x.tokens == y.tokens && x.batches == y.batches && x.xor_total == y.xor_total);
    assert_true(x.sum == y.sum && x.state == y.state && x.has_seal == y.has_seal);
    assert_string_equal(x.seal, y.seal);
    assert_memory_equal(x.seal_words, y.seal_words, sizeof x.seal_words);
    assert_memory_equal(iron_engine_xor_accumulators(a), iron_engine_xor_accumulators(b),
                        c.nodes * sizeof(uint32_t));
    assert_memory_equal(iron_engine_potentials(a), iron_engine_potentials(b),
                        c.nodes * sizeof(float));
    assert_memory_equal(iron_engine_activations(a), iron_engine_activations(b),
                        c.nodes * sizeof(float));
}

/* The bytes of a small state; free() them. malloc aligns for floats, which the parser requires. */
static unsigned char *small_state(size_t *bytes) {
    file_name path = name_in(&place, "small");
    iron_engine *e = small_engine();
    iron_error err;
    char *data;

    assert_ok(iron_engine_save(e, path.path, &err), &err);
    iron_engine_destroy(e);
    data = file_read(path.path, bytes);
    assert_int_equal(unlink(path.path), 0);
    return (unsigned char *)data;
}

static void refuse_bytes(const unsigned char *data, size_t bytes, const char *word) {
    iron_engine *e = (iron_engine *)&e;
    iron_error err;

    assert_refused(iron__state_parse("some.state", data, bytes, NULL, &e, &err), IRON_E_FORMAT,
                   &err);
    assert_null(e);
    assert_says(&err, "some.state");
    assert_says(&err, word);
    assert_int_equal(iron__state_parse("some.state", data, bytes, NULL, &e, NULL), IRON_E_FORMAT);
}

/* Writes the correct checksum: FNV-1a over all but the last eight bytes. */
static void forge(unsigned char *data, size_t bytes) {
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t k = 0; k + 8 < bytes; k++)
        hash = (hash ^ data[k]) * UINT64_C(1099511628211);
    memcpy(data + bytes - 8, &hash, sizeof hash);
}

static void saved_and_loaded(void **state) {
    file_name path = name_in(&place, "same");
    iron_config c = small_config(), got;
    uint32_t points[] = {3, 10, 100, 1000};
    float activations[] = {-1, 0, 0.25f, 8, 1e10f};
    uint32_t *tokens = grab_tokens(101, 5000, 333);
    iron_error err;

    (void)state;
    c.lattice = points;
    c.lattice_count = COUNT(points);
    c.activations = activations;
    c.positions = IRON_POSITIONS_BATCH;
    for (size_t count = 0; count <= 333; count += count < 9 ? 1 : 54) {
        iron_engine *saved, *loaded;

        c.with_seal = count % 2;
        saved = fed_engine(&c, tokens, count);
        assert_ok(iron_engine_save(saved, path.path, &err), &err);
        loaded = load(path.path, NULL);
        assert_same_engines(saved, loaded);
        got = *iron_engine_config(loaded);
        assert_true(got.nodes == NODES && got.vocab == 1000 && got.batch == 10);
        assert_int_equal(got.positions, IRON_POSITIONS_BATCH);
        assert_int_equal(got.lattice_count, COUNT(points));
        assert_memory_equal(got.lattice, points, sizeof points);
        assert_int_equal(got.with_seal, count % 2);
        iron_engine_destroy(saved);
        iron_engine_destroy(loaded);
    }
    free(tokens);
}

static void saving_again_gives_the_same_bytes(void **state) {
    file_name first = name_in(&place, "first"), second = name_in(&place, "second");
    iron_engine *e = small_engine(), *again;
    iron_error err;
    size_t bytes;
    char *data;

    (void)state;
    assert_ok(iron_engine_save(e, first.path, &err), &err);
    again = load(first.path, NULL);
    assert_ok(iron_engine_save(again, second.path, &err), &err);
    data = file_read(first.path, &bytes);
    assert_int_equal(bytes, sizeof(state_header) + 12 * NODES + 8);
    assert_file_holds(second.path, data, bytes);
    free(data);
    iron_engine_destroy(e);
    iron_engine_destroy(again);
}

/* Stopped after every batch, loaded in another mode and with other threads each time. */
static void resumed_equals_uninterrupted(void **state) {
    static const char *const modes[] = {"scalar", "champion", "node", "vector", "hybrid", NULL};
    file_name path = name_in(&place, "resume");
    uint32_t *tokens = grab_tokens(103, 50257, 997);
    iron_config c = small_config();
    iron_engine *whole, *e;
    iron_error err;
    size_t round = 0;

    (void)state;
    c.batch = 50;
    assert_ok(iron_engine_create(&c, &whole, &err), &err);
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    for (size_t done = 0, piece = 1; done < 997; done += piece, piece = piece * 3 % 71 + 1) {
        iron_config run = small_config();

        piece = piece < 997 - done ? piece : 997 - done;
        assert_ok(iron_engine_feed(whole, tokens + done, piece, &err), &err);
        assert_ok(iron_engine_end_batch(whole, &err), &err);
        assert_ok(iron_engine_feed(e, tokens + done, piece, &err), &err);
        assert_ok(iron_engine_end_batch(e, &err), &err);
        assert_ok(iron_engine_save(e, path.path, &err), &err);
        iron_engine_destroy(e);
        run.mode = modes[round % COUNT(modes)];
        run.threads = 1 + (uint32_t)round++ % 3;
        e = load(path.path, &run);
        assert_true(!run.mode || strcmp(iron_engine_mode(e), run.mode) == 0);
        assert_same_engines(whole, e);
    }
    assert_true(round > 10);
    iron_engine_destroy(e);
    iron_engine_destroy(whole);
    free(tokens);
}

static void every_truncation_is_refused(void **state) {
    file_name path = name_in(&place, "short");
    size_t bytes;
    unsigned char *data = small_state(&bytes);

    (void)state;
    for (size_t length = 0; length < bytes; length++)
        refuse_bytes(data, length, length < 8 ? "not an iron state" : "truncated");
    for (size_t length = 0; length < bytes; length += 37) {
        iron_engine *e = (iron_engine *)&e;
        iron_error err;

        file_write(path.path, data, length);
        assert_refused(iron_engine_load(path.path, NULL, &e, &err), IRON_E_FORMAT, &err);
        assert_null(e);
    }
    data = realloc(data, bytes + 1);
    assert_non_null(data);
    data[bytes] = 0;
    refuse_bytes(data, bytes + 1, "damaged");
    free(data);
}

static void every_flipped_bit_is_refused(void **state) {
    size_t bytes;
    unsigned char *data = small_state(&bytes);

    (void)state;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        refuse_bytes(data, bytes, "some.state");
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(data);
}

static void foreign_files_are_refused(void **state) {
    file_name path = name_in(&place, "foreign");
    iron_engine *e = (iron_engine *)&e;
    iron_error err;

    (void)state;
    file_write(path.path, "\x93NUMPY and so on, for many bytes", 30);
    assert_refused(iron_engine_load(path.path, NULL, &e, &err), IRON_E_FORMAT, &err);
    assert_null(e);
    assert_says(&err, "foreign");
    assert_says(&err, "not an iron state");
    file_write(path.path, "", 0);
    assert_refused(iron_engine_load(path.path, NULL, &e, &err), IRON_E_FORMAT, &err);
}

static void missing_files_and_folders_are_refused(void **state) {
    file_name path = name_in(&place, "not-there");
    iron_engine *e = (iron_engine *)&e;
    iron_error err;

    (void)state;
    assert_refused(iron_engine_load(path.path, NULL, &e, &err), IRON_E_IO, &err);
    assert_null(e);
    assert_says(&err, "not-there");
    assert_true(err.native != 0);
    assert_refused(iron_engine_load(place.path, NULL, &e, &err), IRON_E_IO, &err);
    assert_null(e);
}

static void run_configuration_is_checked(void **state) {
    file_name path = name_in(&place, "run");
    iron_engine *e = small_engine();
    iron_config run = small_config();
    iron_error err;

    (void)state;
    assert_ok(iron_engine_save(e, path.path, &err), &err);
    iron_engine_destroy(e);
    run.mode = "warp";
    assert_refused(iron_engine_load(path.path, &run, &e, &err), IRON_E_ARG, &err);
    assert_says(&err, "warp");
    assert_null(e);
    run = small_config();
    run.struct_size = 3;
    assert_refused(iron_engine_load(path.path, &run, &e, &err), IRON_E_ARG, &err);
    run = small_config();
    run.backend = "cuda"; /* requested and possibly unavailable: must be reported */
    if (iron_engine_load(path.path, &run, &e, &err) != IRON_OK)
        assert_null(e);
    else
        assert_string_equal(iron_engine_backend(e), "cuda");
    iron_engine_destroy(e);
}

/* A state with a changed header or arrays and a correct checksum. */
typedef struct forged {
    unsigned char *data;
    size_t bytes;
    state_header h;
    uint32_t xors[NODES];
    float potentials[NODES], activations[NODES];
} forged;

static forged take_apart(void) {
    forged f;
    unsigned char *at;

    f.data = small_state(&f.bytes);
    assert_int_equal(f.bytes, sizeof f.h + 12 * NODES + 8);
    at = f.data + sizeof f.h;
    memcpy(&f.h, f.data, sizeof f.h);
    memcpy(f.xors, at, sizeof f.xors);
    memcpy(f.potentials, at + sizeof f.xors, sizeof f.potentials);
    memcpy(f.activations, at + 2 * sizeof f.xors, sizeof f.activations);
    return f;
}

static void put_together(const forged *f) {
    unsigned char *at = f->data + sizeof f->h;

    memcpy(f->data, &f->h, sizeof f->h);
    memcpy(at, f->xors, sizeof f->xors);
    memcpy(at + sizeof f->xors, f->potentials, sizeof f->potentials);
    memcpy(at + 2 * sizeof f->xors, f->activations, sizeof f->activations);
    forge(f->data, f->bytes);
}

static void refuse_forged(const forged *f, const char *word) {
    put_together(f);
    refuse_bytes(f->data, f->bytes, word);
}

/* The helper works: unchanged contents pass, and so do changed but valid ones. */
static void possible_contents_are_accepted(void **state) {
    forged f = take_apart();
    iron_engine *e = NULL;
    iron_error err;

    (void)state;
    put_together(&f);
    assert_ok(iron__state_parse("x", f.data, f.bytes, NULL, &e, &err), &err);
    iron_engine_destroy(e);
    f.xors[0] = 511;
    f.xors[1] = 7;
    f.potentials[2] = -16777216.0f * 4;
    f.activations[3] = -0.0f;
    put_together(&f);
    assert_ok(iron__state_parse("x", f.data, f.bytes, NULL, &e, &err), &err);
    assert_int_equal(iron_engine_xor_accumulators(e)[0], 511);
    assert_true(iron_engine_potentials(e)[2] == -67108864.0f);
    iron_engine_destroy(e);
    free(f.data);
}

static void newer_versions_are_reported(void **state) {
    static const uint32_t newer[] = {STATE_VERSION + 1, 77, UINT32_MAX};
    forged f = take_apart();

    (void)state;
    for (size_t k = 0; k < COUNT(newer); k++) {
        f.h.version = newer[k];
        refuse_forged(&f, "newer");
    }
    f.h.version = 0;
    refuse_forged(&f, "version 0");
    f.h.version = STATE_VERSION;
    f.h.header_bytes = 400;
    refuse_forged(&f, "400");
    free(f.data);
}

static void impossible_node_counts(void **state) {
    static const uint64_t counts[] = {0,          NODES - 1,          NODES + 1, (1 << 20) + 1,
                                      UINT64_MAX, UINT64_MAX / 12 + 1};
    forged f = take_apart();

    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++) {
        f.h.nodes = counts[k];
        refuse_forged(&f, "nodes");
    }
    free(f.data);
}

static void impossible_totals(void **state) {
    const forged good = take_apart(); /* 47 tokens in 5 batches of 10 */
    forged f = good;

    (void)state;
    assert_true(good.h.tokens == 47 && good.h.batches == 5);
    f.h.batches = 48;
    refuse_forged(&f, "counts");
    f.h.batches = 4;
    refuse_forged(&f, "counts");
    f.h.batches = 0;
    refuse_forged(&f, "counts");
    f = good;
    f.h.with_seal = 0; /* so that only the totals are wrong */
    f.h.tokens = 0;
    refuse_forged(&f, "counts");
    f.h.tokens = 51;
    refuse_forged(&f, "counts");
    f.h.tokens = UINT64_MAX;
    refuse_forged(&f, "counts");
    free(good.data);
}

static void impossible_seals(void **state) {
    const forged good = take_apart();
    forged f = good;

    (void)state;
    f.h.with_seal = 2;
    refuse_forged(&f, "seal");
    f = good;
    f.h.seal_carried = 4;
    f.h.seal_words.count = 43;
    refuse_forged(&f, "seal");
    f = good;
    f.h.seal_carried = 2;
    refuse_forged(&f, "seal");
    f = good;
    f.h.seal_words.count += 4;
    refuse_forged(&f, "seal");
    f.h.seal_words.count = 45;
    f.h.seal_carried = 2; /* the sum is right, but 45 is not a multiple of 4 */
    refuse_forged(&f, "seal");
    free(good.data);
}

/* A configuration that create refuses is refused in a file too: IRON_E_FORMAT, not IRON_E_ARG. */
static void impossible_configurations(void **state) {
    const forged good = take_apart();
    forged f = good;

    (void)state;
    f.h.vocab = 0;
    refuse_forged(&f, "vocab");
    f.h.vocab = 1;
    refuse_forged(&f, "vocab");
    f.h.vocab = (UINT64_C(1) << 31) + 1;
    refuse_forged(&f, "vocab");
    f = good;
    f.h.batch = 0;
    refuse_forged(&f, "batch");
    f.h.batch = UINT64_MAX;
    refuse_forged(&f, "batch");
    f = good;
    f.h.positions = 2;
    refuse_forged(&f, "positions");
    f = good;
    f.activations[4] = NAN;
    refuse_forged(&f, "activation 4");
    f.activations[4] = 0x1p-97f;
    refuse_forged(&f, "activation 4");
    free(good.data);
}

static void impossible_lattices(void **state) {
    static const uint32_t counts[] = {0, 1, 65, UINT32_MAX};
    const forged good = take_apart();
    forged f = good;

    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++) {
        f.h.lattice_count = counts[k];
        refuse_forged(&f, "lattice");
    }
    f = good;
    f.h.lattice[1] = f.h.lattice[0];
    refuse_forged(&f, "lattice");
    f = good;
    f.h.lattice[0] = 0;
    refuse_forged(&f, "lattice");
    f = good;
    f.h.lattice[11] = 65536;
    refuse_forged(&f, "lattice");
    free(good.data);
}

static void accumulators_off_the_lattice(void **state) {
    static const uint32_t bad[] = {0, 6, 8, 384, 512, 65536 + 7, UINT32_MAX};
    forged f = take_apart();

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++) {
        f.xors[3] = bad[k];
        refuse_forged(&f, "node 3");
    }
    free(f.data);
}

static void fractional_potentials(void **state) {
    static const float bad[] = {-0.0f, 0.5f, -7.25f, 1e-40f, NAN, INFINITY, -INFINITY};
    forged f = take_apart();

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++) {
        f.potentials[2] = bad[k];
        refuse_forged(&f, "node 2");
    }
    free(f.data);
}

/* The file at `path` holds the state of `e`. */
static void assert_holds_state(const char *path, iron_engine *e) {
    iron_report want = report_of(e), got;
    iron_engine *loaded = NULL;
    iron_error err;

    assert_ok(iron_engine_load(path, NULL, &loaded, &err), &err);
    got = report_of(loaded);
    assert_true(got.tokens == want.tokens && got.state == want.state && got.sum == want.sum);
    assert_string_equal(got.seal, want.seal);
    iron_engine_destroy(loaded);
}

/* Opens a file of 47 tokens; a checkpoint fits after 10, 20, 30 or 40 of them. */
static iron_source *small_source(const char *name) {
    file_name path = name_in(&place, name);
    const char *paths[] = {path.path};
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = IRON_DTYPE_U32, .paths = paths, .path_count = 1};
    iron_source *source = NULL;
    uint32_t tokens[47];
    iron_error err;

    assert_int_equal(iron_generate(5, 1000, 0, tokens, COUNT(tokens), NULL), IRON_OK);
    file_write(path.path, tokens, sizeof tokens);
    assert_ok(iron_source_open(&o, &source, &err), &err);
    return source;
}

static int stop_after(void *context, uint64_t done, uint64_t total) {
    assert_int_equal(total, 47);
    return done >= *(uint64_t *)context;
}

/* Stopped after any number of tokens, saved after whole batches, loaded and continued. */
static void continued_equals_uninterrupted(void **state) {
    file_name path = name_in(&place, "checkpoint");
    iron_engine *whole = small_engine();
    iron_config c = small_config();
    uint64_t done, tokens;
    iron_error err;

    (void)state;
    for (uint64_t every = 1; every <= 40; every += 13)
        for (uint64_t stop = 1; stop <= 47; stop++) {
            iron_source *source = small_source("tokens");
            iron_engine *e = NULL;
            iron_status status;

            unlink(path.path);
            assert_ok(iron_engine_create(&c, &e, &err), &err);
            assert_int_equal(iron_engine_checkpoint(e, &done, &tokens), 0);
            status = iron_engine_feed_saving(e, source, path.path, every, stop_after, &stop, &err);
            assert_int_equal(status, IRON_E_CANCELLED);
            if (access(path.path, F_OK) == 0) {
                iron_engine_destroy(e);
                e = load(path.path, NULL);
                assert_true(iron_engine_checkpoint(e, &done, &tokens));
                assert_true(done < 47 && done % 10 == 0 && tokens == 47);
                assert_ok(iron_engine_feed_saving(e, source, path.path, every, NULL, NULL, &err),
                          &err);
                assert_ok(iron_engine_end_batch(e, &err), &err);
                assert_same_engines(whole, e);
                assert_int_equal(iron_engine_checkpoint(e, &done, &tokens), 0);
            }
            iron_engine_destroy(e);
            iron_source_close(source);
        }
    iron_engine_destroy(whole);
}

static void checkpoints_know_their_source(void **state) {
    static const uint32_t other[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    file_name path = name_in(&place, "checkpoint"), file = name_in(&place, "tokens");
    iron_source *source = small_source("tokens");
    iron_config c = small_config();
    iron_engine *e = NULL;
    uint64_t stop = 25;
    uint32_t token = 7;
    size_t bytes;
    char *data;
    iron_error err;

    (void)state;
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    assert_int_equal(iron_engine_feed_saving(e, source, path.path, 10, stop_after, &stop, &err),
                     IRON_E_CANCELLED);
    iron_engine_destroy(e);

    e = load(path.path, NULL); /* tokens from elsewhere come between */
    assert_ok(iron_engine_feed(e, other, COUNT(other), &err), &err);
    assert_refused(iron_engine_feed_saving(e, source, path.path, 10, NULL, NULL, &err),
                   IRON_E_STATE, &err);
    iron_engine_destroy(e);

    data = file_read(file.path, &bytes); /* another file of the same length */
    memcpy(data + 80, &token, sizeof token);
    file_write(file.path, data, bytes);
    e = load(path.path, NULL);
    assert_refused(iron_engine_feed_saving(e, source, path.path, 10, NULL, NULL, &err), IRON_E_ARG,
                   &err);
    assert_says(&err, "other files");
    iron_engine_destroy(e);
    iron_source_close(source);
    free(data);
}

static void impossible_marks(void **state) {
    /* 50 tokens in batches of 10 */
    static const struct {
        iron__feed_mark mark;
        bool is_possible;
    } cases[] = {
        {{0, 51, 9, 0}, true},   {{40, 11, 9, 0}, true},  {{40, UINT64_MAX, 0, 0}, true},
        {{0, 50, 9, 0}, false},  {{0, 7, 9, 0}, false},   {{50, 60, 9, 0}, false},
        {{60, 60, 9, 0}, false}, {{45, 60, 9, 0}, false}, {{0, 0, 9, 0}, false},
    };
    file_name path = name_in(&place, "marked");
    iron_config c = small_config();
    uint32_t tokens[50];
    iron_engine *e, *loaded;
    uint64_t done, total;
    iron_error err;

    (void)state;
    assert_int_equal(iron_generate(5, 1000, 0, tokens, COUNT(tokens), NULL), IRON_OK);
    e = fed_engine(&c, tokens, COUNT(tokens));
    for (size_t k = 0; k < COUNT(cases); k++) {
        assert_ok(save_complete(e, &cases[k].mark, path.path, &err), &err);
        if (cases[k].is_possible) {
            loaded = load(path.path, NULL);
            assert_true(iron_engine_checkpoint(loaded, &done, &total));
            assert_int_equal(done, 50 - cases[k].mark.first);
            assert_true(total == cases[k].mark.tokens);
            assert_same_engines(e, loaded);
            iron_engine_destroy(loaded);
        } else {
            loaded = (iron_engine *)&loaded;
            assert_refused(iron_engine_load(path.path, NULL, &loaded, &err), IRON_E_FORMAT, &err);
            assert_says(&err, "place in the source");
        }
    }
    iron_engine_destroy(e);
}

static void open_batches_are_not_saved(void **state) {
    static const uint32_t tokens[] = {1, 2, 3};
    file_name path = name_in(&place, "open");
    iron_engine *e = small_engine();
    size_t before = folder_entries(&place);
    iron_error err;

    (void)state;
    assert_ok(iron_engine_feed(e, tokens, 3, &err), &err);
    assert_refused(iron_engine_save(e, path.path, &err), IRON_E_STATE, &err);
    assert_says(&err, "3 tokens");
    assert_int_equal(iron_engine_save(e, path.path, NULL), IRON_E_STATE);
    assert_int_equal(folder_entries(&place), before);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_ok(iron_engine_save(e, path.path, &err), &err);
    iron_engine_destroy(e);
}

/* A reader of the old file can still read all of it; the folder contains nothing else before or
 * after. */
static void saving_replaces_at_once(void **state) {
    static const char old[] = "the old content";
    iron_engine *e = small_engine();
    char content[sizeof old] = "";
    file_name path;
    iron_error err;
    folder f;
    int fd;

    (void)state;
    folder_make(&f);
    path = name_in(&f, "state");
    file_write(path.path, old, sizeof old);
    fd = open(path.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_ok(iron_engine_save(e, path.path, &err), &err);
    assert_int_equal(read(fd, content, sizeof content), sizeof old);
    assert_string_equal(content, old);
    close(fd);
    assert_int_equal(folder_entries(&f), 1);
    assert_holds_state(path.path, e);
    iron_engine_destroy(e);
    folder_remove(&f);
}

/* Simulates a full disk: files may have 100 bytes. */
static void failed_saves_keep_the_old_file(void **state) {
    static const char old[] = "the old content";
    iron_engine *e = small_engine();
    struct rlimit limit, before;
    file_name path;
    iron_error err = {0};
    iron_status status;
    folder f;

    (void)state;
    folder_make(&f);
    path = name_in(&f, "state");
    file_write(path.path, old, sizeof old);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = iron_engine_save(e, path.path, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, IRON_E_IO);
    assert_true(err.native != 0 && err.text[0] != '\0');
    assert_file_holds(path.path, old, sizeof old);
    assert_int_equal(folder_entries(&f), 1);
    assert_ok(iron_engine_save(e, path.path, &err), &err);
    assert_holds_state(path.path, e);
    iron_engine_destroy(e);
    folder_remove(&f);
}

static void refuse_target(iron_engine *e, const char *path, iron_status expected) {
    iron_error err;

    assert_refused(iron_engine_save(e, path, &err), expected, &err);
    assert_refused(iron_state_path_check(path, &err), expected, &err);
    assert_int_equal(iron_state_path_check(path, NULL), expected);
}

static void invalid_targets(void **state) {
    file_name fifo = name_in(&place, "fifo"), under = name_in(&place, "missing/state");
    file_name good = name_in(&place, "good"), slash = name_in(&place, "new/");
    iron_engine *e = small_engine();
    iron_error err;

    (void)state;
    assert_int_equal(mkfifo(fifo.path, 0600), 0);
    refuse_target(e, place.path, IRON_E_ARG);
    refuse_target(e, "/dev/null", IRON_E_ARG);
    refuse_target(e, fifo.path, IRON_E_ARG);
    refuse_target(e, "", IRON_E_ARG);
    refuse_target(e, "-", IRON_E_ARG);
    assert_true(iron_engine_save(e, slash.path, NULL) != IRON_OK);
    assert_true(iron_state_path_check(slash.path, NULL) != IRON_OK);
    refuse_target(e, under.path, IRON_E_IO);
    assert_ok(iron_state_path_check(good.path, &err), &err);
    assert_int_equal(access(good.path, F_OK), -1); /* the check left no file */
    iron_engine_destroy(e);
}

/* Without permissions; as root, a child drops its privileges first. */
static int save_without_privileges(iron_engine *e, const char *path) {
    iron_error err = {0};
    iron_status saved, checked;

    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 3;
    checked = iron_state_path_check(path, &err);
    saved = iron_engine_save(e, path, &err);
    return saved == IRON_E_IO && checked == IRON_E_IO && err.native == EACCES ? 0 : 4;
}

static void folders_without_permission(void **state) {
    iron_engine *e = small_engine();
    file_name path;
    folder f;
    pid_t child;
    int result = -1;

    (void)state;
    folder_make(&f);
    path = name_in(&f, "state");
    assert_int_equal(chmod(f.path, 0555), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(save_without_privileges(e, path.path));
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(chmod(f.path, 0755), 0);
    assert_int_equal(folder_entries(&f), 0);
    folder_remove(&f);
    iron_engine_destroy(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(saving_again_gives_the_same_bytes),
        cmocka_unit_test(resumed_equals_uninterrupted),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(foreign_files_are_refused),
        cmocka_unit_test(missing_files_and_folders_are_refused),
        cmocka_unit_test(run_configuration_is_checked),
        cmocka_unit_test(possible_contents_are_accepted),
        cmocka_unit_test(newer_versions_are_reported),
        cmocka_unit_test(impossible_node_counts),
        cmocka_unit_test(impossible_totals),
        cmocka_unit_test(impossible_seals),
        cmocka_unit_test(impossible_configurations),
        cmocka_unit_test(impossible_lattices),
        cmocka_unit_test(accumulators_off_the_lattice),
        cmocka_unit_test(fractional_potentials),
        cmocka_unit_test(continued_equals_uninterrupted),
        cmocka_unit_test(checkpoints_know_their_source),
        cmocka_unit_test(impossible_marks),
        cmocka_unit_test(open_batches_are_not_saved),
        cmocka_unit_test(saving_replaces_at_once),
        cmocka_unit_test(failed_saves_keep_the_old_file),
        cmocka_unit_test(invalid_targets),
        cmocka_unit_test(folders_without_permission),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
