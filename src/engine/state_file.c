/* SPDX-License-Identifier: MIT */
/*
 * state_file.c: saved states, loaded. A file is believed only after its magic, version, size,
 * checksum and every value in it have been checked, in this order; each refusal says which it was.
 */
#include "engine/state_file.h"

#include "core/fail.h"
#include "core/fnv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER_BYTES   sizeof(iron__state_header)
#define CHECKSUM_BYTES sizeof(uint64_t)
#define FILE_BYTES_MAX iron__state_room(IRON_NODES_MAX)

/* Magic, version, size, checksum: is this a whole state file that this version can read? */
static iron_status check_file(const char *name, const unsigned char *data, size_t bytes,
                              iron__state_header *h, iron_error *err) {
    uint64_t checksum;

    IRON_FAIL_IF(
        bytes < sizeof h->magic || memcmp(data, IRON_STATE_MAGIC, sizeof h->magic) != 0, err,
        IRON_E_FORMAT,
        "%.80s is not an iron state file, since it does not begin with %s; name one that iron "
        "feed --state wrote",
        name, IRON_STATE_MAGIC);
    IRON_FAIL_IF(bytes < HEADER_BYTES, err, IRON_E_FORMAT,
                 "%.80s is truncated: %zu bytes, and the header alone has %zu", name, bytes,
                 HEADER_BYTES);
    memcpy(h, data, sizeof *h);
    IRON_FAIL_IF(h->version > IRON_STATE_VERSION, err, IRON_E_FORMAT,
                 "%.80s has state version %u, newer than %u; read it with a newer iron", name,
                 h->version, IRON_STATE_VERSION);
    IRON_FAIL_IF(h->version < 1 || h->header_bytes != HEADER_BYTES, err, IRON_E_FORMAT,
                 "%.80s is damaged: version %u with a header of %u bytes", name, h->version,
                 h->header_bytes);
    IRON_FAIL_IF(h->nodes < 1 || h->nodes > IRON_NODES_MAX, err, IRON_E_FORMAT,
                 "%.80s is damaged: it says %" PRIu64 " nodes", name, h->nodes);
    IRON_FAIL_IF(bytes != iron__state_room(h->nodes), err, IRON_E_FORMAT,
                 "%.80s is %s: %zu bytes, and %" PRIu64 " nodes take %" PRIu64, name,
                 bytes < iron__state_room(h->nodes) ? "truncated" : "damaged", bytes, h->nodes,
                 iron__state_room(h->nodes));
    memcpy(&checksum, data + bytes - CHECKSUM_BYTES, sizeof checksum);
    IRON_FAIL_IF(checksum != iron__fnv(IRON_FNV_START, data, bytes - CHECKSUM_BYTES), err,
                 IRON_E_FORMAT, "%.80s is damaged: its checksum differs", name);
    return IRON_OK;
}

static bool seal_agrees(const iron__state_header *h) {
    static const iron__seal none;
    uint64_t sealed = h->with_seal ? h->tokens : 0;

    if (h->with_seal > 1 || h->seal_carried != sealed % 4 ||
        h->seal_words[0] != sealed - sealed % 4)
        return false;
    for (uint32_t k = h->seal_carried; k < 3; k++)
        if (h->seal_carry[k] != 0)
            return false;
    return h->seal_words[0] > 0 || memcmp(h->seal_words, &none.words, sizeof h->seal_words) == 0;
}

/* Could these totals be those of a stream? */
static bool counts_agree(const iron__state_header *h) {
    uint64_t most;

    if (h->tokens == 0)
        return h->batches == 0 && h->sum == 0 && h->xors == 0 && seal_agrees(h);
    if (h->batches > h->tokens || (h->tokens - 1) / h->batch + 1 > h->batches)
        return false;
    if (!__builtin_mul_overflow(h->tokens, h->vocab - 1, &most) && h->sum > most)
        return false;
    return seal_agrees(h);
}

/* Whole numbers as quantize_real gives them; sums of those never become -0. From 2^24 on every
 * finite float is whole. */
static bool is_whole(float potential) {
    if (!isfinite(potential) || (potential == 0 && signbit(potential)))
        return false;
    return fabsf(potential) >= 0x1p24f || potential == (float)(int32_t)potential;
}

static iron_status check_nodes(const char *name, const iron__nodes *nodes, uint64_t batches,
                               iron_error *err) {
    const iron_lattice *l = nodes->lattice;

    for (uint32_t j = 0; j < nodes->count; j++) {
        uint32_t x = nodes->xor_accumulators[j];

        IRON_FAIL_IF(batches == 0 && (x != l->points[j % l->count] || nodes->potentials[j] != 0),
                     err, IRON_E_FORMAT, "%.80s is refused: node %u moved before the first batch",
                     name, j);
        IRON_FAIL_IF(x < l->first || x > l->last || iron__lattice_xor(l, x) != x, err,
                     IRON_E_FORMAT, "%.80s is refused: node %u holds %u, no point of its lattice",
                     name, j, x);
        IRON_FAIL_IF(!is_whole(nodes->potentials[j]), err, IRON_E_FORMAT,
                     "%.80s is refused: node %u has potential %.9g, no whole number", name, j,
                     (double)nodes->potentials[j]);
    }
    return IRON_OK;
}

static iron_config config_of(const iron__state_header *h, const float *activations,
                             const iron_config *run) {
    iron_config c;

    if (run)
        c = *run;
    else
        iron_config_init(&c);
    c.nodes = h->nodes;
    c.vocab = h->vocab;
    c.batch = h->batch;
    c.positions = (iron_positions)h->positions;
    c.lattice = h->lattice;
    c.lattice_count = h->lattice_count;
    c.with_seal = h->with_seal;
    c.activations = activations;
    return c;
}

static void adopt(iron_engine *e, const iron__state_header *h, const unsigned char *arrays) {
    size_t bytes = e->nodes.count * sizeof(uint32_t);

    memcpy(e->nodes.xor_accumulators, arrays, bytes);
    memcpy(e->nodes.potentials, arrays + bytes, bytes);
    e->closed = (iron__contribution){h->tokens, h->sum, h->xors};
    e->batches = h->batches;
    e->seal.words =
        (iron__seal_words){h->seal_words[0], h->seal_words[1], h->seal_words[2], h->seal_words[3]};
    memcpy(e->seal.carry, h->seal_carry, sizeof e->seal.carry);
    e->seal.carried = h->seal_carried;
}

/* The file is whole; is what it says possible? `data` is aligned for floats. */
static iron_status build(const char *name, const iron__state_header *h, const unsigned char *data,
                         const iron_config *run, iron_engine **out, iron_error *err) {
    const unsigned char *arrays = data + HEADER_BYTES;
    const float *activations =
        (const float *)(const void *)(arrays + 2 * h->nodes * sizeof(uint32_t));
    iron_config config = config_of(h, activations, run);
    iron_error inner = {0};
    iron_status status;

    IRON_FAIL_IF(!counts_agree(h), err, IRON_E_FORMAT,
                 "%.80s is refused: its counts of tokens, batches and seal contradict each other",
                 name);
    IRON_FAIL_IF(h->lattice_count > IRON_LATTICE_MAX, err, IRON_E_FORMAT,
                 "%.80s is refused: a lattice of %u points", name, h->lattice_count);
    if (run)
        IRON_TRY(iron__config_check(run, err));
    if (iron__config_check(&config, &inner) != IRON_OK ||
        iron__lattice_check(h->lattice, h->lattice_count, &inner) != IRON_OK)
        return iron__fail(err, IRON_E_FORMAT, 0, "%.80s is refused: %.140s", name, inner.text);
    IRON_TRY(iron_engine_create(&config, out, err));
    adopt(*out, h, arrays);
    status = check_nodes(name, &(*out)->nodes, h->batches, err);
    if (status == IRON_OK && (*out)->gpu)
        status = iron__gpu_engine_begin(*out, err);
    if (status != IRON_OK) {
        iron_engine_destroy(*out);
        *out = NULL;
    }
    return status;
}

iron_status iron__state_parse(const char *name, const unsigned char *data, size_t bytes,
                              const iron_config *run, iron_engine **out, iron_error *err) {
    iron__state_header header = {0};

    *out = NULL;
    IRON_TRY(check_file(name, data, bytes, &header, err));
    IRON_FAIL_IF(header.vocab < 2 || header.batch < 1, err, IRON_E_FORMAT,
                 "%.80s is refused: vocab %" PRIu64 ", batch %" PRIu64, name, header.vocab,
                 header.batch);
    return build(name, &header, data, run, out, err);
}

/* One byte more than there should be at most, so that a file that is too large shows. */
static size_t room_for(FILE *file) {
    struct stat info;

    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode) ||
        (uint64_t)info.st_size > FILE_BYTES_MAX)
        return FILE_BYTES_MAX + 1;
    return (size_t)info.st_size + 1;
}

static iron_status load(const char *path, FILE *file, const iron_allocator *allocator,
                        const iron_config *run, iron_engine **out, iron_error *err) {
    size_t room = room_for(file), bytes;
    unsigned char *data = iron__allocate(allocator, 1, room, "a state file", err);
    iron_status status;

    if (!data)
        return IRON_E_NOMEM;
    bytes = fread(data, 1, room, file);
    if (ferror(file))
        status = iron__fail(err, IRON_E_IO, errno, "cannot read %.120s: %s", path, strerror(errno));
    else
        status = iron__state_parse(path, data, bytes, run, out, err);
    iron__release(allocator, data);
    return status;
}

iron_status iron_engine_load(const char *path, const iron_config *run, iron_engine **out,
                             iron_error *err) {
    const iron_allocator *allocator =
        run && run->allocator ? run->allocator : iron__allocator_default();
    FILE *file = fopen(path, "rbe");
    iron_status status;

    *out = NULL;
    if (!file)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    status = load(path, file, allocator, run, out, err);
    fclose(file);
    return status;
}
