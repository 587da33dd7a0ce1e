/* SPDX-License-Identifier: MIT */
/*
 * stat_source.c: statistics of a source, or of a range of it, by all threads.
 *
 * Of files, each thread reads what it looks at; from a pipe a ring brings slots in order, and a
 * slot is a round (stat_crew.h).
 */
#include "core/fail.h"
#include "digest/stat_crew.h"
#include "feed/ring.h"

#include <inttypes.h>
#include <string.h>

#define SLOTS 4u

static iron_status stat_files(iron__stat_crew *c, iron_source *source, iron_error *err) {
    size_t round = iron__stat_crew_room(c);
    iron_status status = iron__source_at_open(source, iron__allocator_default(), &c->at, err);

    while (status == IRON_OK && c->done < c->total) {
        uint64_t left = c->total - c->done;

        status = iron__stat_crew_round(c, left < round ? (size_t)left : round, err);
    }
    iron__source_at_close(c->at);
    if (status == IRON_OK)
        iron__source_seek(source, iron__source_position(source) + c->stat->range.first + c->total);
    return status;
}

/* The range may end before the stream does. */
static iron_status take_slots(iron__stat_crew *c, iron__ring *ring, char *slots, iron_error *err) {
    uint64_t wanted = c->total;

    while (c->done < wanted) {
        size_t slot, count;

        IRON_TRY(iron__ring_next(ring, &slot, &count, err));
        if (count == 0)
            break;
        if (count > wanted - c->done)
            count = (size_t)(wanted - c->done);
        c->tokens = slots + slot * IRON_STAT_SLOT_BYTES;
        IRON_TRY(iron__stat_crew_round(c, count, err));
        iron__ring_free(ring);
    }
    IRON_FAIL_IF(wanted != IRON_COUNT_UNKNOWN && c->done < wanted, err, IRON_E_ARG,
                 "the stream has %" PRIu64 " tokens, not the %" PRIu64 " of the range", c->done,
                 wanted);
    return IRON_OK;
}

static iron_status stat_pipe(iron__stat_crew *c, iron_source *source, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    char *slots = iron__allocate(memory, SLOTS, IRON_STAT_SLOT_BYTES, "the reading ring", err);
    iron__ring_options options = {
        .source = source, .slot_count = SLOTS, .slot_bytes = IRON_STAT_SLOT_BYTES, .readers = 1};
    void *places[SLOTS];
    iron__ring *ring = NULL;
    iron_status status;

    if (!slots)
        return IRON_E_NOMEM;
    for (size_t k = 0; k < SLOTS; k++)
        places[k] = slots + k * IRON_STAT_SLOT_BYTES;
    options.slots = places;
    options.allocator = memory;
    status = iron__ring_create(&options, &ring, err);
    if (status == IRON_OK)
        status = take_slots(c, ring, slots, err);
    iron__ring_destroy(ring);
    iron__release(memory, slots);
    return status;
}

/* How many tokens the range has, as far as anybody knows. */
static iron_status plan_range(const iron_stat_options *o, const iron_source *source,
                              uint64_t *count, iron_error *err) {
    bool is_file = iron__source_is_seekable(source);
    uint64_t tokens = iron_source_tokens(source);

    IRON_FAIL_IF(o->first % 4 != 0, err, IRON_E_ARG,
                 "first is %" PRIu64 "; ranges begin at multiples of 4", o->first);
    IRON_FAIL_IF(!is_file && o->first != 0, err, IRON_E_ARG,
                 "first is %" PRIu64 "; only files can be read from there: a pipe begins at 0",
                 o->first);
    if (is_file)
        tokens -= iron__source_position(source);
    *count = o->count;
    if (tokens == IRON_COUNT_UNKNOWN)
        return IRON_OK;
    IRON_FAIL_IF(
        o->first > tokens || (o->count != IRON_COUNT_UNKNOWN && o->count > tokens - o->first), err,
        IRON_E_ARG, "a range from %" PRIu64 " on does not lie in a stream of %" PRIu64 " tokens",
        o->first, tokens);
    if (o->count == IRON_COUNT_UNKNOWN)
        *count = tokens - o->first;
    return IRON_OK;
}

void iron_stat_options_init_sized(iron_stat_options *options, size_t struct_size) {
    iron_stat_options defaults = {.struct_size = (uint32_t)struct_size,
                                  .vocab = 50257,
                                  .eos = IRON_COUNT_UNKNOWN,
                                  .count = IRON_COUNT_UNKNOWN};

    memset(options, 0, struct_size);
    memcpy(options, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
}

iron_status iron_stat_source(iron_source *source, const iron_stat_options *options, iron_stat **out,
                             iron_error *err) {
    bool is_file = iron__source_is_seekable(source);
    iron__stat_crew c = {.source = source, .dtype = iron_source_dtype(source)};
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(!options || options->struct_size != sizeof *options, err, IRON_E_ARG,
                 "iron_stat_options.struct_size is not %zu; use iron_stat_options_init",
                 sizeof *options);
    c.progress = options->progress;
    c.context = options->context;
    IRON_TRY(plan_range(options, source, &c.total, err));
    IRON_TRY(iron__stat_create(&(iron__stat_rule){options->vocab, options->eos},
                               options->wants_histogram, options->first, &c.stat, err));
    status = iron__stat_crew_init(&c, options->threads, is_file, err);
    if (status == IRON_OK)
        status = (is_file ? stat_files : stat_pipe)(&c, source, err);
    if (status == IRON_OK)
        status = iron__source_check_unchanged(source, err);
    if (status == IRON_OK)
        iron__stat_crew_settle(&c);
    iron__stat_crew_deinit(&c);
    if (status != IRON_OK) {
        iron_stat_destroy(c.stat);
        return status;
    }
    *out = c.stat;
    return IRON_OK;
}
