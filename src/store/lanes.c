/* SPDX-License-Identifier: MIT */
/* lanes.c: see lanes.h. */
#include "store/lanes.h"

#include "core/fail.h"
#include "store/writer.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BATCHES 64u

static bool grow_nodes(iron__lane *lane, uint64_t nodes) {
    free(lane->nodes.xors);
    free(lane->nodes.potentials);
    lane->nodes.xors = malloc(nodes * sizeof(uint32_t));
    lane->nodes.potentials = malloc(nodes * sizeof(float));
    return lane->nodes.xors && lane->nodes.potentials;
}

/* All lanes are empty. */
static iron_status make_room(iron__lanes *l, uint64_t nodes, iron_error *err) {
    bool has_room = true;

    if (nodes <= l->room)
        return IRON_OK;
    for (size_t k = 0; k < IRON_HASH_LANES; k++)
        has_room = grow_nodes(&l->lanes[k], nodes) && has_room;
    l->room = has_room ? nodes : 0;
    IRON_FAIL_IF(!has_room, err, IRON_E_NOMEM, "out of memory: copies of an engine's nodes");
    return IRON_OK;
}

iron_status iron__lane_open(iron__writer *writer, iron__kept *kept, iron__lane **out,
                            bool *is_failure, iron_error *err) {
    iron__lanes *l = &writer->lanes;
    iron_status status = IRON_OK;

    *out = NULL;
    *is_failure = false;
    if (l->used == IRON_HASH_LANES || (l->used > 0 && l->nodes != kept->plan.nodes)) {
        status = iron__lanes_flush(writer, err);
        *is_failure = status != IRON_OK;
    }
    if (status == IRON_OK && l->used == 0)
        status = make_room(l, kept->plan.nodes, err);
    if (status != IRON_OK)
        return status;
    l->nodes = kept->plan.nodes;
    *out = &l->lanes[l->used];
    (*out)->kept = kept;
    (*out)->batch_count = 0;
    (*out)->is_short = false;
    return IRON_OK;
}

void iron__lane_hear(void *context, iron__contribution batch) {
    iron__lane *lane = context;

    if (lane->batch_count == lane->batch_room) {
        size_t room = lane->batch_room ? 2 * lane->batch_room : FIRST_BATCHES;
        unsigned char *more = realloc(lane->batches, room * IRON_BATCH_BYTES);

        if (!more) {
            lane->is_short = true;
            return;
        }
        lane->batches = more;
        lane->batch_room = room;
    }
    iron__batch_encode(lane->batches + lane->batch_count++ * IRON_BATCH_BYTES, batch);
}

void iron__lane_close(iron__writer *writer, iron__lane *lane) {
    iron_engine *engine = lane->kept->engine;
    size_t bytes = lane->kept->plan.nodes * sizeof(uint32_t);

    memcpy(lane->nodes.xors, iron_engine_xor_accumulators(engine), bytes);
    memcpy(lane->nodes.potentials, iron_engine_potentials(engine), bytes);
    lane->row.batch_bytes = lane->batches;
    lane->row.batch_bytes_count = lane->batch_count * IRON_BATCH_BYTES;
    lane->kept->ahead = lane->row.after;
    writer->lanes.used++;
}

/* The newest nodes of each engine in the lanes are those that will be published. */
static void keep_newest(const iron__lanes *l) {
    size_t bytes = l->nodes * sizeof(uint32_t);

    for (size_t k = 0; k < l->used; k++) {
        iron__kept *kept = l->lanes[k].kept;
        bool is_newest = true;

        for (size_t later = k + 1; later < l->used; later++)
            is_newest = is_newest && l->lanes[later].kept != kept;
        if (!is_newest)
            continue;
        memcpy(kept->ahead_nodes.xors, l->lanes[k].nodes.xors, bytes);
        memcpy(kept->ahead_nodes.potentials, l->lanes[k].nodes.potentials, bytes);
        kept->ahead.state = l->lanes[k].row.after.state;
        kept->is_ahead = true;
    }
}

iron_status iron__lanes_flush(iron__writer *writer, iron_error *err) {
    iron__lanes *l = &writer->lanes;
    iron__hash_lane hashes[IRON_HASH_LANES];

    for (size_t k = 0; k < l->used; k++)
        hashes[k] = (iron__hash_lane){l->lanes[k].nodes.xors, l->lanes[k].nodes.potentials, 0};
    iron__nodes_hash_lanes(hashes, l->used, (uint32_t)l->nodes);
    for (size_t k = 0; k < l->used; k++) {
        iron__lane *lane = &l->lanes[k];

        lane->row.after.state = hashes[k].hash;
        IRON_TRY(iron__feed_insert(writer->db, &lane->row, err));
        lane->result->after = lane->row.after;
    }
    keep_newest(l);
    l->used = 0;
    return IRON_OK;
}

void iron__lanes_free(iron__lanes *l) {
    for (size_t k = 0; k < IRON_HASH_LANES; k++) {
        free(l->lanes[k].nodes.xors);
        free(l->lanes[k].nodes.potentials);
        free(l->lanes[k].batches);
    }
}
