/* SPDX-License-Identifier: MIT */
/* repeats.c: see repeats.h. */
#include "store/repeats.h"

#include "core/fail.h"

#include <inttypes.h>
#include <string.h>

bool iron__same_content(const iron__feed_row *first, const iron__contribution *fed,
                        const iron__seal *seal) {
    const iron__seal *want = &first->after.standing.seal;

    return fed->count == first->fed.count && fed->sum == first->fed.sum &&
           fed->xors == first->fed.xors && seal->words.t == want->words.t &&
           seal->words.a == want->words.a && seal->words.b == want->words.b &&
           memcmp(seal->carry, want->carry, sizeof seal->carry) == 0;
}

/* The seal before a feed is the one after the feed before it. */
static iron_status seal_before(iron__kept *kept, iron__database *db, const iron__feed_row *first,
                               iron__seal *seal, iron_error *err) {
    iron__feed_row before;
    bool found;

    *seal = iron__seal_of_count(0);
    if (first->number == 1)
        return IRON_OK;
    IRON_TRY(iron__feed_by_number(db, kept->id, first->number - 1, &before, &found, err));
    IRON_FAIL_IF(!found || before.after.standing.closed.count != first->position, err,
                 IRON_E_FORMAT,
                 "engine %s: the feed before number %" PRIu64 " is %s; restore a backup",
                 kept->plan.name, first->number, found ? "damaged" : "missing");
    *seal = before.after.standing.seal;
    return IRON_OK;
}

static iron_status make_reader(const iron__plan *plan, iron_engine **out, iron_error *err) {
    iron_config config;

    iron__plan_config_cpu(plan, &config);
    config.nodes = 1;
    return iron_engine_create(&config, out, err);
}

iron_status iron__repeat_begin(iron__repeat *repeat, iron__kept *kept, iron__database *db,
                               const iron__feed_row *first, iron_error *err) {
    uint32_t xors; /* of its one node, which stays as it began */
    float potential;

    *repeat = (iron__repeat){.first = *first};
    repeat->first.batch_bytes = NULL;
    repeat->begun.closed.count = first->position;
    IRON_TRY(seal_before(kept, db, first, &repeat->begun.seal, err));
    IRON_TRY(make_reader(&kept->plan, &repeat->reader, err));
    xors = *iron_engine_xor_accumulators(repeat->reader);
    potential = *iron_engine_potentials(repeat->reader);
    return iron__engine_stand(repeat->reader, &repeat->begun, &xors, &potential, err);
}

iron_status iron__repeat_take(iron__repeat *repeat, const iron__tokens_view *view,
                              iron_error *err) {
    return iron_engine_feed_as(repeat->reader, view->dtype, view->data, view->count, err);
}

iron_status iron__repeat_end(iron__repeat *repeat, bool *is_same, iron_error *err) {
    iron__standing end;

    *is_same = false;
    IRON_TRY(iron_engine_end_batch(repeat->reader, err));
    IRON_TRY(iron__engine_standing(repeat->reader, &end, err));
    end.closed.count -= repeat->begun.closed.count; /* sum and xor began with 0 */
    *is_same = iron__same_content(&repeat->first, &end.closed, &end.seal);
    return IRON_OK;
}

void iron__repeat_free(iron__repeat *repeat) {
    iron_engine_destroy(repeat->reader);
    repeat->reader = NULL;
}
