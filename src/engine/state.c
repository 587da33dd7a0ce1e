/* SPDX-License-Identifier: MIT */
/*
 * state.c: saved states: written to a file or to memory, read back, exported as NumPy arrays; and
 * the store's checkpoints, forks and replay (checkpoint.h).
 *
 * A saved state, little-endian:
 *
 *     header | xor_accumulators u32[] | potentials f32[] | activations f32[] | checksum u64
 *
 * Version 2 has a mark after the header: the state was saved in the middle of a feed
 * (iron_engine_feed_saving). Other states have version 1.
 *
 * The checksum is 64-bit FNV-1a over all bytes before it. When a state is read, its magic, version,
 * size, checksum and every value are checked, in this order; each refusal says which one failed.
 */
#include "core/fail.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/number.h"
#include "engine/checkpoint.h"
#include "formats/npy.h"
#include "formats/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STATE_MAGIC    "IRONSTAT"
#define STATE_VERSION  2u
#define CHECKSUM_BYTES sizeof(uint64_t)

typedef struct state_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t nodes, vocab, batch;
    uint32_t positions;
    uint32_t lattice_count;
    uint32_t lattice[IRON_LATTICE_MAX];
    uint64_t tokens, batches, sum;
    uint32_t xors;
    uint32_t with_seal;
    iron__seal_words seal_words;
    uint32_t seal_carry[3];
    uint32_t seal_carried;
} state_header;

_Static_assert(sizeof(state_header) == 384, "the header has no padding");

/* Of version 2. header_bytes counts it too. */
typedef struct state_mark {
    uint64_t first, tokens, sample;
    uint64_t zero;
} state_mark;

_Static_assert(sizeof(state_mark) == 32, "the mark has no padding");

static size_t header_bytes_of(uint32_t version) {
    return version == 1 ? sizeof(state_header) : sizeof(state_header) + sizeof(state_mark);
}

static uint64_t state_bytes(uint32_t version, uint64_t nodes) {
    return header_bytes_of(version) + nodes * (sizeof(uint32_t) + 2 * sizeof(float)) +
           CHECKSUM_BYTES;
}

#define STATE_BYTES_MAX state_bytes(STATE_VERSION, IRON_NODES_MAX)

/* The parts of a saved state in file order; they point into this struct and the engine. */
#define PARTS 6u
typedef struct saved_state {
    state_header header;
    state_mark mark;
    uint64_t checksum;
    struct {
        const void *data;
        size_t bytes;
    } parts[PARTS];
} saved_state;

/* mark: NULL, or the state is saved in the middle of a feed. */
static void gather(const iron_engine *e, const iron__feed_mark *mark, saved_state *s) {
    uint32_t version = mark ? 2 : 1;
    size_t bytes = e->nodes.count * sizeof(uint32_t);
    const iron__seal *seal = &e->seal;

    *s = (saved_state){.header = {.version = version,
                                  .header_bytes = (uint32_t)header_bytes_of(version),
                                  .nodes = e->config.nodes,
                                  .vocab = e->config.vocab,
                                  .batch = e->config.batch,
                                  .positions = (uint32_t)e->config.positions,
                                  .lattice_count = e->lattice->count,
                                  .tokens = e->closed.count,
                                  .batches = e->batches,
                                  .sum = e->closed.sum,
                                  .xors = e->closed.xors,
                                  .with_seal = e->config.with_seal ? 1 : 0,
                                  .seal_words = seal->words,
                                  .seal_carried = seal->carried},
                       .checksum = IRON_FNV_START,
                       .parts = {{&s->header, sizeof s->header},
                                 {&s->mark, mark ? sizeof s->mark : 0},
                                 {e->nodes.xor_accumulators, bytes},
                                 {e->nodes.potentials, bytes},
                                 {e->nodes.activations, bytes},
                                 {&s->checksum, sizeof s->checksum}}};
    memcpy(s->header.magic, STATE_MAGIC, sizeof s->header.magic);
    memcpy(s->header.seal_carry, seal->carry, seal->carried * sizeof seal->carry[0]);
    memcpy(s->header.lattice, e->lattice->points, e->lattice->count * sizeof e->lattice->points[0]);
    if (mark)
        s->mark = (state_mark){mark->first, mark->tokens, mark->sample, 0};
    for (size_t k = 0; k < PARTS - 1; k++)
        s->checksum = iron__fnv(s->checksum, s->parts[k].data, s->parts[k].bytes);
}

iron_status iron_state_path_check(const char *path, iron_error *err) {
    iron_output *probe = NULL;
    struct stat info;

    IRON_FAIL_IF(strcmp(path, "-") == 0, err, IRON_E_ARG,
                 "a state cannot go to standard output; name a file (./- for one called -)");
    IRON_FAIL_IF(stat(path, &info) == 0 && !S_ISREG(info.st_mode), err, IRON_E_ARG,
                 "%.120s exists and is not a regular file; give another name for the state", path);
    /* does what saving will do, up to the first byte */
    IRON_TRY(iron_output_open(path, &probe, err));
    iron_output_abandon(probe);
    return IRON_OK;
}

static iron_status save_complete(iron_engine *engine, const iron__feed_mark *mark, const char *path,
                                 iron_error *err) {
    iron_output *output = NULL;
    iron_status status;
    sigset_t before;
    saved_state s;

    IRON_TRY(iron__engine_check_complete(engine, err));
    IRON_TRY(iron_state_path_check(path, err));
    IRON_TRY(iron__engine_sync(engine, err));
    gather(engine, mark, &s);
    iron__signals_block(&before);
    status = iron_output_open(path, &output, err);
    for (size_t k = 0; status == IRON_OK && k < PARTS; k++)
        status = iron_output_write(output, s.parts[k].data, s.parts[k].bytes, err);
    if (status == IRON_OK)
        status = iron_output_commit(output, err);
    else
        iron_output_abandon(output);
    iron__signals_restore(&before);
    return status;
}

iron_status iron_engine_save(iron_engine *engine, const char *path, iron_error *err) {
    return save_complete(engine, NULL, path, err);
}

size_t iron__state_bytes(const iron_engine *engine) {
    return (size_t)state_bytes(1, engine->nodes.count);
}

iron_status iron__state_write(iron_engine *engine, unsigned char *bytes, iron_error *err) {
    saved_state s;

    IRON_TRY(iron__engine_check_complete(engine, err));
    IRON_TRY(iron__engine_sync(engine, err));
    gather(engine, NULL, &s);
    for (size_t k = 0; k < PARTS; k++) {
        memcpy(bytes, s.parts[k].data, s.parts[k].bytes);
        bytes += s.parts[k].bytes;
    }
    return IRON_OK;
}

/* Checks magic, version, size and checksum, and copies the header and the mark. */
static iron_status check_file(const char *name, const unsigned char *data, size_t bytes,
                              state_header *h, state_mark *mark, iron_error *err) {
    uint64_t checksum, wanted;

    IRON_FAIL_IF(
        bytes < sizeof h->magic || memcmp(data, STATE_MAGIC, sizeof h->magic) != 0, err,
        IRON_E_FORMAT,
        "%.80s is not an iron state file, since it does not begin with %s; name one that iron "
        "feed --state wrote",
        name, STATE_MAGIC);
    IRON_FAIL_IF(bytes < sizeof(state_header), err, IRON_E_FORMAT,
                 "%.80s is truncated: %zu bytes, and the header alone has %zu", name, bytes,
                 sizeof(state_header));
    memcpy(h, data, sizeof *h);
    IRON_FAIL_IF(h->version > STATE_VERSION, err, IRON_E_FORMAT,
                 "%.80s has state version %u, newer than %u; read it with a newer iron", name,
                 h->version, STATE_VERSION);
    IRON_FAIL_IF(h->version < 1 || h->header_bytes != header_bytes_of(h->version), err,
                 IRON_E_FORMAT, "%.80s is damaged: version %u with a header of %u bytes", name,
                 h->version, h->header_bytes);
    IRON_FAIL_IF(h->nodes < 1 || h->nodes > IRON_NODES_MAX, err, IRON_E_FORMAT,
                 "%.80s is damaged: it says %" PRIu64 " nodes", name, h->nodes);
    wanted = state_bytes(h->version, h->nodes);
    IRON_FAIL_IF(bytes != wanted, err, IRON_E_FORMAT,
                 "%.80s is %s: %zu bytes, and %" PRIu64 " nodes take %" PRIu64, name,
                 bytes < wanted ? "truncated" : "damaged", bytes, h->nodes, wanted);
    memcpy(&checksum, data + bytes - CHECKSUM_BYTES, sizeof checksum);
    IRON_FAIL_IF(checksum != iron__fnv(IRON_FNV_START, data, bytes - CHECKSUM_BYTES), err,
                 IRON_E_FORMAT, "%.80s is damaged: its checksum differs", name);
    if (h->version > 1)
        memcpy(mark, data + sizeof *h, sizeof *mark);
    return IRON_OK;
}

/* Whether the state can lie there in a source: after whole batches, before its end. */
static bool mark_agrees(const state_header *h, const state_mark *mark) {
    uint64_t done = h->tokens - mark->first;

    if (h->version == 1)
        return true;
    return mark->first <= h->tokens && done > 0 && done < mark->tokens && done % h->batch == 0 &&
           mark->zero == 0;
}

static bool seal_agrees(const state_header *h) {
    uint64_t sealed = h->with_seal ? h->tokens : 0;
    const iron__seal_words *w = &h->seal_words;

    if (h->with_seal > 1 || h->seal_carried != sealed % 4 || w->count != sealed - sealed % 4)
        return false;
    for (uint32_t k = h->seal_carried; k < 3; k++)
        if (h->seal_carry[k] != 0)
            return false;
    return w->count > 0 || (w->t == 0 && w->a == 0 && w->b == 0);
}

/* Whether these can be the totals of a stream. */
static bool counts_agree(const state_header *h) {
    uint64_t most;

    if (h->tokens == 0)
        return h->batches == 0 && h->sum == 0 && h->xors == 0 && seal_agrees(h);
    if (h->batches > h->tokens || (h->tokens - 1) / h->batch + 1 > h->batches)
        return false;
    if (!__builtin_mul_overflow(h->tokens, h->vocab - 1, &most) && h->sum > most)
        return false;
    return seal_agrees(h);
}

/* Potentials are sums of quantize_real's whole numbers, which never become -0. From 2^24 on every
 * finite float is whole. */
static bool is_whole(float potential) {
    if (!isfinite(potential) || (potential == 0 && signbit(potential)))
        return false;
    return fabsf(potential) >= 0x1p24f || potential == (float)(int32_t)potential;
}

/* Sets everything of the engine but the mark as the state has it. */
static iron_status set_state(iron_engine *e, const char *name, const state_header *h,
                             const unsigned char *arrays, iron_error *err) {
    iron__nodes *nodes = &e->nodes;
    const iron_lattice *l = nodes->lattice;
    size_t bytes = nodes->count * sizeof(uint32_t);

    memcpy(nodes->xor_accumulators, arrays, bytes);
    memcpy(nodes->potentials, arrays + bytes, bytes);
    e->closed = (iron__contribution){h->tokens, h->sum, h->xors};
    e->batches = h->batches;
    e->seal = (iron__seal){.words = h->seal_words, .carried = h->seal_carried};
    memcpy(e->seal.carry, h->seal_carry, sizeof e->seal.carry);
    for (uint32_t j = 0; j < nodes->count; j++) {
        uint32_t x = nodes->xor_accumulators[j];

        IRON_FAIL_IF(h->batches == 0 && (x != l->points[j % l->count] || nodes->potentials[j] != 0),
                     err, IRON_E_FORMAT, "%.80s is refused: node %u moved before the first batch",
                     name, j);
        IRON_FAIL_IF(
            x < l->first || x > l->last || iron__lattice_xor(l, x) != x, err, IRON_E_FORMAT,
            "%.80s is refused: node %u holds %u, which is not a point of its lattice", name, j, x);
        IRON_FAIL_IF(!is_whole(nodes->potentials[j]), err, IRON_E_FORMAT,
                     "%.80s is refused: node %u has potential %.9g, not a whole number", name, j,
                     (double)nodes->potentials[j]);
    }
    return e->backend->restart(e, err);
}

iron_status iron__state_parse(const char *name, const unsigned char *data, size_t bytes,
                              const iron_config *run, iron_engine **out, iron_error *err) {
    state_header h = {0};
    state_mark mark = {0};
    const unsigned char *arrays;
    iron_error inner = {0};
    iron_status status;
    iron_config config;

    *out = NULL;
    IRON_TRY(check_file(name, data, bytes, &h, &mark, err));
    IRON_FAIL_IF(h.vocab < 2 || h.batch < 1, err, IRON_E_FORMAT,
                 "%.80s is refused: vocab %" PRIu64 ", batch %" PRIu64, name, h.vocab, h.batch);
    IRON_FAIL_IF(!counts_agree(&h), err, IRON_E_FORMAT,
                 "%.80s is refused: its counts of tokens, batches and seal contradict each other",
                 name);
    IRON_FAIL_IF(!mark_agrees(&h, &mark), err, IRON_E_FORMAT,
                 "%.80s is refused: its place in the source contradicts its counts", name);
    IRON_FAIL_IF(h.lattice_count > IRON_LATTICE_MAX, err, IRON_E_FORMAT,
                 "%.80s is refused: a lattice of %u points", name, h.lattice_count);
    iron_config_init(&config);
    if (run) {
        IRON_TRY(iron__config_check(run, err));
        config = *run;
    }
    arrays = data + h.header_bytes;
    config.nodes = h.nodes;
    config.vocab = h.vocab;
    config.batch = h.batch;
    config.positions = (iron_positions)h.positions;
    config.lattice = h.lattice;
    config.lattice_count = h.lattice_count;
    config.with_seal = h.with_seal;
    config.activations = (const float *)(const void *)(arrays + 2 * h.nodes * sizeof(uint32_t));
    IRON_FAIL_IF(iron__config_check(&config, &inner) != IRON_OK ||
                     iron__lattice_check(h.lattice, h.lattice_count, &inner) != IRON_OK,
                 err, IRON_E_FORMAT, "%.80s is refused: %.140s", name, inner.text);
    IRON_TRY(iron_engine_create(&config, out, err));
    (*out)->mark = (iron__feed_mark){mark.first, mark.tokens, mark.sample, h.tokens - mark.first};
    status = set_state(*out, name, &h, arrays, err);
    if (status != IRON_OK) {
        iron_engine_destroy(*out);
        *out = NULL;
    }
    return status;
}

iron_status iron_engine_load(const char *path, const iron_config *run, iron_engine **out,
                             iron_error *err) {
    const iron_allocator *allocator =
        run && run->allocator ? run->allocator : iron__allocator_default();
    size_t room = STATE_BYTES_MAX + 1, bytes; /* so that a file that is too large is noticed */
    iron_status status = IRON_E_NOMEM;
    FILE *file = fopen(path, "rbe");
    unsigned char *data;
    struct stat info;

    *out = NULL;
    if (!file)
        return iron__fail_path(err, "open", path, errno);
    if (fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size < room)
        room = (size_t)info.st_size + 1;
    data = iron__allocate(allocator, 1, room, "a state file", err);
    if (!data)
        goto done;
    bytes = fread(data, 1, room, file);
    if (ferror(file))
        status = iron__fail_path(err, "read", path, errno);
    else
        status = iron__state_parse(path, data, bytes, run, out, err);
    iron__release(allocator, data);
done:
    fclose(file);
    return status;
}

#define ARRAYS 3

/* All files are written before the first of them appears under its name. */
iron_status iron_engine_export_npy(iron_engine *engine, const char *directory, iron_error *err) {
    const iron__nodes *n = &engine->nodes;
    const struct {
        const char *name, *descr;
        const void *data;
    } arrays[ARRAYS] = {{"xor_accumulators", "<u4", n->xor_accumulators},
                        {"potentials", "<f4", n->potentials},
                        {"activations", "<f4", n->activations}};
    iron_output *outputs[ARRAYS] = {NULL};
    iron_status status = IRON_OK;
    sigset_t before;

    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return iron__fail_path(err, "create directory", directory, errno);
    IRON_TRY(iron__engine_sync(engine, err));
    iron__signals_block(&before);
    for (int k = 0; k < ARRAYS && status == IRON_OK; k++) {
        char *path = iron__print("%s/%s.npy", directory, arrays[k].name);

        if (!path) {
            status = iron__no_memory(err, directory);
            break;
        }
        status = iron__npy_write(path, arrays[k].descr, arrays[k].data, n->count, sizeof(uint32_t),
                                 &outputs[k], err);
        free(path);
    }
    for (int k = 0; k < ARRAYS; k++) {
        if (status == IRON_OK)
            status = iron_output_commit(outputs[k], err);
        else
            iron_output_abandon(outputs[k]);
    }
    iron__signals_restore(&before);
    return status;
}

/* Checkpoints, restoring them in another engine, and replaying batches. Restore and replay end
 * exactly where feeding would have ended: a checkpoint and the nodes are all that feeding leaves
 * behind, and a batch acts on the nodes through its contribution alone, in whatever mode it was
 * reduced. */

iron_status iron__engine_checkpoint(iron_engine *engine, iron__checkpoint *checkpoint,
                                    iron_error *err) {
    IRON_TRY(iron__engine_check_complete(engine, err));
    IRON_TRY(iron__engine_sync(engine, err));
    *checkpoint = (iron__checkpoint){engine->closed, engine->batches, engine->seal};
    /* stale tokens of the carry would make equal checkpoints differ */
    for (uint32_t k = checkpoint->seal.carried; k < 3; k++)
        checkpoint->seal.carry[k] = 0;
    return IRON_OK;
}

/* An engine without a seal ignores that of the other. */
static void set_seal(iron_engine *e, const iron__seal *seal) {
    e->seal = e->config.with_seal ? *seal : (iron__seal){.carried = 0};
}

iron_status iron__engine_restore(iron_engine *engine, const iron__checkpoint *checkpoint,
                                 const uint32_t *xor_accumulators, const float *potentials,
                                 iron_error *err) {
    size_t bytes = engine->nodes.count * sizeof(uint32_t);

    IRON_TRY(iron__engine_check_failure(engine, err));
    memcpy(engine->nodes.xor_accumulators, xor_accumulators, bytes);
    memcpy(engine->nodes.potentials, potentials, bytes);
    engine->open = iron__contribution_neutral();
    engine->closed = checkpoint->closed;
    engine->batches = checkpoint->batches;
    set_seal(engine, &checkpoint->seal);
    engine->range = (iron__range){.is_begun = false};
    return engine->backend->restart(engine, err);
}

iron_status iron__engine_replay(iron_engine *engine, const iron__contribution *batches,
                                size_t count, const iron__seal *seal, iron_error *err) {
    iron_batch_effect effects[IRON_QUEUE_BATCHES];
    uint64_t tokens = engine->closed.count;

    IRON_TRY(iron__engine_check_complete(engine, err));
    IRON_TRY(iron__engine_sync(engine, err));
    /* can these be the engine's next batches, and the seal that of the stream after them? */
    for (size_t k = 0; k < count; k++) {
        IRON_FAIL_IF(batches[k].count < 1 || batches[k].count > engine->config.batch, err,
                     IRON_E_FORMAT,
                     "batch %" PRIu64 " claims %" PRIu64 " tokens; it must have 1 to %" PRIu64,
                     engine->batches + k, batches[k].count, engine->config.batch);
        IRON_FAIL_IF(batches[k].count > UINT64_MAX - tokens, err, IRON_E_FORMAT,
                     "batch %" PRIu64 " would pass 2^64 tokens", engine->batches + k);
        tokens += batches[k].count;
    }
    IRON_FAIL_IF(engine->config.with_seal &&
                     (!seal || seal->carried > 3 || seal->words.count + seal->carried != tokens),
                 err, IRON_E_FORMAT,
                 "the seal after the batches is not that of a stream of %" PRIu64 " tokens",
                 tokens);
    for (size_t done = 0; done < count;) {
        size_t taken = 0;

        for (; taken < IRON_QUEUE_BATCHES && done < count; taken++, done++) {
            effects[taken] = iron__batch_effect_of(engine, batches[done]);
            engine->closed = iron__contribution_merge(engine->closed, batches[done]);
        }
        iron__engine_apply_effects(engine, effects, taken);
    }
    engine->batches += count;
    if (seal)
        set_seal(engine, seal);
    return engine->backend->restart(engine, err);
}

void iron__engine_on_batch(iron_engine *engine, iron__batch_callback callback, void *context) {
    engine->on_batch = callback;
    engine->on_batch_context = context;
}

/* Checkpoints in the middle of a feed. */

/* Progress of one piece, as part of all. */
typedef struct piece_progress {
    iron_progress progress;
    void *context;
    uint64_t before, total;
} piece_progress;

static int report_piece(void *context, uint64_t done, uint64_t total) {
    const piece_progress *p = context;

    (void)total;
    return p->progress ? p->progress(p->context, p->before + done, p->total) : 0;
}

iron_status iron_engine_feed_saving(iron_engine *engine, iron_source *source, const char *path,
                                    uint64_t every, iron_progress progress, void *context,
                                    iron_error *err) {
    const iron__feed_mark *saved = &engine->mark;
    uint64_t batch = engine->config.batch, done, piece;
    iron__feed_mark mark;

    IRON_FAIL_IF(!iron__source_is_seekable(source), err, IRON_E_ARG,
                 "checkpoints need regular files: a pipe or standard input cannot be continued in "
                 "the middle");
    IRON_TRY(iron__engine_check_complete(engine, err));
    IRON_TRY(iron__engine_sync(engine, err));
    /* continues the source that the engine's mark describes, or begins it */
    mark = (iron__feed_mark){.first = saved->tokens ? saved->first : engine->closed.count,
                             .tokens = iron_source_tokens(source),
                             .sample = IRON_FNV_START};
    /* what identifies the files: their lengths, and samples of their bytes */
    for (size_t k = 0; k < iron_source_file_count(source); k++) {
        uint64_t words[2] = {iron_source_file_tokens(source, k), 0};
        bool is_there;

        IRON_TRY(iron__source_sample(source, k, &words[1], &is_there, err));
        mark.sample = iron__fnv(mark.sample, words, sizeof words);
    }
    IRON_FAIL_IF(saved->tokens && engine->closed.count != saved->first + saved->done, err,
                 IRON_E_STATE,
                 "other tokens were fed since the checkpoint was loaded; load it again");
    IRON_FAIL_IF(saved->tokens && saved->tokens != mark.tokens, err, IRON_E_ARG,
                 "the checkpoint is of files with %" PRIu64 " tokens, and these have %" PRIu64
                 "; give the same files in the same order",
                 saved->tokens, mark.tokens);
    IRON_FAIL_IF(saved->tokens && saved->sample != mark.sample, err, IRON_E_ARG,
                 "the checkpoint is of other files, or the files have changed; give the same files "
                 "in the same order");
    done = engine->closed.count - mark.first;
    piece = every / batch + (every % batch != 0);
    if (__builtin_mul_overflow(iron__max(piece, 1), batch, &piece))
        piece = UINT64_MAX;
    while (done < mark.tokens) {
        uint64_t count = iron__min(mark.tokens - done, piece);
        piece_progress part = {progress, context, done, mark.tokens};

        IRON_TRY(iron_engine_feed_range(engine, source, done, count, report_piece, &part, err));
        done += count;
        if (done < mark.tokens)
            IRON_TRY(save_complete(engine, &mark, path, err));
    }
    engine->mark = (iron__feed_mark){0};
    return IRON_OK;
}

int iron_engine_checkpoint(const iron_engine *engine, uint64_t *done, uint64_t *tokens) {
    const iron__feed_mark *mark = &engine->mark;

    *done = mark->done;
    *tokens = mark->tokens;
    return mark->tokens != 0;
}
