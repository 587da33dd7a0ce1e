/* SPDX-License-Identifier: MIT */
/*
 * fuzz_state.c: saved states. The first byte of the input selects how the rest becomes a file, so
 * that the fuzzer does not have to guess a 64-bit checksum:
 *
 *   raw        unchanged
 *   framed     with correct magic, version, sizes and checksum; all other values are the input's
 *   repaired   framed, and every value brought into its range: must be accepted
 *
 * It also selects the mode that runs the state; the second byte is the number of tokens to feed.
 *
 * An accepted state contains lattice points and integer potentials. It is the same when saved and
 * loaded, and refused when truncated or with a flipped bit. The scalar mode in one call and the
 * selected mode in many calls, with a save and a load between two batches, end in the same state,
 * which has all these properties again.
 */
#include "core/hash.h"
#include "engine/state.c"
#include "fuzz.h"

#include <math.h>
#include <unistd.h>

#define NODE_BYTES 12u

#define INPUT_MAX 8192u

typedef struct state_file {
    unsigned char *data;
    size_t bytes;
} state_file;

static char scratch_folder[200], scratch_file[220];

static void remove_scratch(void) {
    unlink(scratch_file);
    rmdir(scratch_folder);
}

/* Where states are saved: one file, in memory where there is such a folder. */
static const char *scratch(void) {
    const char *root = getenv("TMPDIR");

    if (scratch_file[0])
        return scratch_file;
    if (!root)
        root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(scratch_folder, sizeof scratch_folder, "%.160s/iron-fuzz-XXXXXX", root);
    FUZZ_REQUIRE(mkdtemp(scratch_folder));
    snprintf(scratch_file, sizeof scratch_file, "%s/state", scratch_folder);
    atexit(remove_scratch);
    return scratch_file;
}

static void repair_lattice(state_header *h) {
    h->lattice_count = IRON_LATTICE_MIN + h->lattice_count % (IRON_LATTICE_MAX - 1);
    for (uint32_t k = 0; k < h->lattice_count; k++)
        h->lattice[k] = (k ? h->lattice[k - 1] : 0) + 1 + h->lattice[k] % 1000;
}

static void repair_counts(state_header *h) {
    h->vocab = 2 + h->vocab % (IRON_VOCAB_MAX - 1);
    h->batch = 1 + h->batch % (IRON_BATCH_VOCAB_MAX / h->vocab);
    h->positions &= 1;
    if (h->tokens == 0) {
        h->batches = h->sum = 0;
        h->xors = 0;
    } else {
        uint64_t least = (h->tokens - 1) / h->batch + 1, most;

        h->batches = least + h->batches % (h->tokens - least + 1);
        if (!__builtin_mul_overflow(h->tokens, h->vocab - 1, &most) && h->sum > most)
            h->sum %= most + 1;
    }
}

static void repair_seal(state_header *h) {
    uint64_t sealed;

    h->with_seal &= 1;
    sealed = h->with_seal ? h->tokens : 0;
    h->seal_carried = sealed % 4;
    h->seal_words.count = sealed - h->seal_carried;
    for (uint32_t k = h->seal_carried; k < 3; k++)
        h->seal_carry[k] = 0;
    if (h->seal_words.count == 0)
        h->seal_words = (iron__seal_words){0, 0, 0, 0};
}

static void repair_nodes(const state_header *h, unsigned char *arrays) {
    uint32_t *accumulators = (uint32_t *)(void *)arrays;
    float *potentials = (float *)(void *)arrays + h->nodes;
    float *activations = potentials + h->nodes;

    for (uint64_t j = 0; j < h->nodes; j++) {
        uint64_t point = h->batches ? accumulators[j] : j;

        accumulators[j] = h->lattice[point % h->lattice_count];
        potentials[j] = h->batches && isfinite(potentials[j]) ? truncf(potentials[j]) + 0.0f : 0;
        if (!isfinite(activations[j]) || fabsf(activations[j]) < 0x1p-96f)
            activations[j] = 0;
    }
}

/* A checkpoint in the middle of a feed. */
static bool repair_mark(const state_header *h, state_mark *mark) {
    uint64_t done = h->tokens - h->tokens % h->batch;

    *mark = (state_mark){h->tokens - done, done + 1, mark->sample, 0};
    return done > 0 && done < UINT64_MAX;
}

/* The file, in memory aligned as the parser wants it. */
static state_file make_file(const fuzz_input *in, bool is_framed, bool is_repaired,
                            bool is_marked) {
    size_t header = header_bytes_of(is_marked ? 2 : 1), frame = header + CHECKSUM_BYTES;
    size_t bytes = in->left;
    uint64_t nodes = bytes < frame + NODE_BYTES ? 1 : (bytes - frame) / NODE_BYTES;
    state_header h;
    uint64_t checksum;
    unsigned char *data;

    if (!is_framed)
        return (state_file){fuzz_copy(in->at, bytes), bytes};
    bytes = frame + nodes * NODE_BYTES;
    data = calloc(1, bytes);
    FUZZ_REQUIRE(data);
    if (in->left)
        memcpy(data, in->at, in->left < bytes ? in->left : bytes);
    memcpy(&h, data, sizeof h);
    memcpy(h.magic, STATE_MAGIC, sizeof h.magic);
    h.version = is_marked ? 2 : 1;
    h.header_bytes = (uint32_t)header;
    h.nodes = nodes;
    if (is_repaired) {
        repair_lattice(&h);
        repair_counts(&h);
        repair_seal(&h);
        repair_nodes(&h, data + header);
    }
    if (is_repaired && is_marked) {
        state_mark mark;

        memcpy(&mark, data + sizeof h, sizeof mark);
        if (!repair_mark(&h, &mark)) { /* nothing was fed yet */
            free(data);
            return make_file(in, is_framed, is_repaired, false);
        }
        memcpy(data + sizeof h, &mark, sizeof mark);
    }
    memcpy(data, &h, sizeof h);
    checksum = iron__fnv(IRON_FNV_START, data, bytes - CHECKSUM_BYTES);
    memcpy(data + bytes - CHECKSUM_BYTES, &checksum, sizeof checksum);
    return (state_file){data, bytes};
}

static void check_invariants(iron_engine *e) {
    const uint32_t *accumulators = iron_engine_xor_accumulators(e);
    const float *potentials = iron_engine_potentials(e);
    iron_report r = fuzz_report(e);
    iron_config c;

    c = *iron_engine_config(e);
    for (uint64_t j = 0; j < c.nodes; j++) {
        uint32_t k = 0;

        while (k < c.lattice_count && c.lattice[k] != accumulators[j])
            k++;
        FUZZ_REQUIRE(k < c.lattice_count);
        FUZZ_REQUIRE(isfinite(potentials[j]) && floorf(potentials[j]) == potentials[j]);
    }
    FUZZ_REQUIRE(r.batches <= r.tokens && (r.batches == 0) == (r.tokens == 0));
    FUZZ_REQUIRE(r.tokens == 0 || (r.tokens - 1) / c.batch < r.batches);
    FUZZ_REQUIRE(!r.has_seal || r.seal_words[0] == r.tokens + r.open_tokens);
}

static void require_same_engine(iron_engine *a, iron_engine *b) {
    iron_report ra = fuzz_report(a), rb = fuzz_report(b);
    iron_config ca, cb;

    ca = *iron_engine_config(a);
    cb = *iron_engine_config(b);
    fuzz_require_same(&ra, &rb);
    FUZZ_REQUIRE(ca.nodes == cb.nodes && ca.vocab == cb.vocab && ca.batch == cb.batch);
    FUZZ_REQUIRE(ca.positions == cb.positions && ca.lattice_count == cb.lattice_count);
    FUZZ_REQUIRE(memcmp(ca.lattice, cb.lattice, 4 * ca.lattice_count) == 0);
    FUZZ_REQUIRE(memcmp(iron_engine_activations(a), iron_engine_activations(b), 4 * ca.nodes) == 0);
}

/* Saves the engine and loads what was saved; takes the engine. */
static iron_engine *through_file(iron_engine *e, const iron_config *run) {
    iron_engine *loaded = NULL;
    iron_error err;

    FUZZ_REQUIRE(iron_engine_save(e, scratch(), &err) == IRON_OK);
    FUZZ_REQUIRE(iron_engine_load(scratch(), run, &loaded, &err) == IRON_OK);
    require_same_engine(e, loaded);
    iron_engine_destroy(e);
    return loaded;
}

/* Each step of the checksum is a bijection, so one flipped bit always shows. */
static void check_damaged(const state_file *file, const iron_config *run, uint64_t hash) {
    size_t at = hash % file->bytes;
    iron_engine *e = NULL;
    iron_error err;

    FUZZ_REQUIRE(fuzz_refused(
        iron__state_parse("cut", file->data, file->bytes - 1 - at / 2, run, &e, &err), &err));
    file->data[at] ^= (unsigned char)(1u << hash / file->bytes % 8);
    FUZZ_REQUIRE(
        fuzz_refused(iron__state_parse("bad", file->data, file->bytes, run, &e, &err), &err));
    file->data[at] ^= (unsigned char)(1u << hash / file->bytes % 8);
    FUZZ_REQUIRE(!e);
}

/* The same tokens into both: at once into one, in pieces into the other, with a save where no batch
 * is open. Both end a batch where the save was wanted, so that they see the same batches. */
static void feed_both(iron_engine *plain, iron_engine **other, const iron_config *run,
                      const uint32_t *tokens, size_t count) {
    size_t half = count / 2;
    iron_error err;

    FUZZ_REQUIRE(iron_engine_feed(plain, tokens, half, &err) == IRON_OK);
    FUZZ_REQUIRE(iron_engine_end_batch(plain, &err) == IRON_OK);
    FUZZ_REQUIRE(iron_engine_feed(plain, tokens + half, count - half, &err) == IRON_OK);
    for (size_t done = 0, piece = 1; done < count; done += piece, piece = 1 + done % 13) {
        if (done < half && done + piece > half)
            piece = half - done;
        if (done == half) {
            FUZZ_REQUIRE(iron_engine_end_batch(*other, &err) == IRON_OK);
            *other = through_file(*other, run);
        }
        piece = piece < count - done ? piece : count - done;
        FUZZ_REQUIRE(iron_engine_feed(*other, tokens + done, piece, &err) == IRON_OK);
    }
    require_same_engine(plain, *other);
    FUZZ_REQUIRE(iron_engine_end_batch(plain, &err) == IRON_OK);
    FUZZ_REQUIRE(iron_engine_end_batch(*other, &err) == IRON_OK);
    require_same_engine(plain, *other);
}

static void check_accepted(iron_engine *other, const state_file *file, const iron_config *run,
                           size_t count) {
    uint64_t hash = iron__fnv(IRON_FNV_START, file->data, file->bytes);
    iron_config scalar = *run;
    uint32_t tokens[256];
    iron_engine *plain = NULL;
    iron_report before = fuzz_report(other);
    iron_error err;

    check_invariants(other);
    check_damaged(file, run, hash);
    scalar.mode = "scalar";
    FUZZ_REQUIRE(iron__state_parse("again", file->data, file->bytes, &scalar, &plain, &err) ==
                 IRON_OK);
    require_same_engine(plain, other);
    other = through_file(other, run);
    FUZZ_REQUIRE(iron_generate(hash, UINT64_C(1) << 32, 0, tokens, count, &err) == IRON_OK);
    if (count > UINT64_MAX - before.tokens) {
        FUZZ_REQUIRE(fuzz_refused(iron_engine_feed(other, tokens, count, &err), &err));
    } else {
        feed_both(plain, &other, run, tokens, count);
        check_invariants(other);
        other = through_file(other, run);
    }
    iron_engine_destroy(plain);
    iron_engine_destroy(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const modes[] = {"vector", "champion", "node", "hybrid"};
    fuzz_input in = {data, size < INPUT_MAX ? size : INPUT_MAX};
    uint8_t choice = fuzz_byte(&in), count = fuzz_byte(&in);
    state_file file = make_file(&in, choice % 3 >= 1, choice % 3 == 2, choice / 12 % 2 == 1);
    iron_engine *engine = NULL;
    iron_config run;
    iron_error err;

    iron_config_init(&run);
    run.mode = modes[choice / 3 % 4];
    run.threads = 2;
    if (fuzz_refused(iron__state_parse("input", file.data, file.bytes, &run, &engine, &err), &err))
        FUZZ_REQUIRE(!engine && choice % 3 != 2);
    else
        check_accepted(engine, &file, &run, count);
    free(file.data);
    return 0;
}
