/* SPDX-License-Identifier: MIT */
/*
 * engine_jobs.c: engines made and deleted. An engine is made by the caller, who may take time over
 * it (a device), and is in the list only when its row is durable. A deletion is one row; what else
 * belonged to the engine is swept up later.
 */
#include "core/clock.h"
#include "core/fail.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct engine_job {
    iron__job job;
    bool is_done; /* else it is the job's own refusal: the name is taken, or it is gone */
} engine_job;

static iron_status write_ledger(iron__writer *w, const iron__kept *kept, int more,
                                iron_error *err) {
    w->ledger.engines += (uint64_t)more;
    w->ledger.engines_check ^= iron__plan_check(&kept->plan, kept->id, kept->created_ms);
    return iron__ledger_write(w->db, &w->ledger, err);
}

/* Also one that is in the list only after this group. */
static bool is_taken(iron__writer *w, const char *name) {
    iron__kept *other = iron__store_find(w->store, name);
    bool taken = other && !other->is_leaving;

    iron__kept_release(other);
    for (size_t k = 0; k < w->ahead_count && !taken; k++)
        taken = !w->ahead[k]->is_leaving && strcmp(w->ahead[k]->plan.name, name) == 0;
    return taken;
}

static iron_status run_create(iron__writer *w, iron__job *job, iron_error *err) {
    iron__kept *kept = job->kept;
    iron__engine_row row;

    if (is_taken(w, kept->plan.name))
        return IRON_OK;
    kept->id = w->ledger.next_engine++;
    row = (iron__engine_row){kept->id, kept->created_ms, kept->plan};
    IRON_TRY(iron__engine_insert(w->db, &row, err));
    IRON_TRY(write_ledger(w, kept, 1, err));
    IRON_TRY(iron__writer_touch(w, kept, err));
    memcpy(kept->ahead_nodes.xors, kept->nodes.xors, kept->plan.nodes * sizeof(uint32_t));
    memcpy(kept->ahead_nodes.potentials, kept->nodes.potentials, kept->plan.nodes * sizeof(float));
    ((engine_job *)job)->is_done = true;
    return IRON_OK;
}

static void publish_create(iron__store *store, iron__job *job) {
    if (((engine_job *)job)->is_done)
        iron__list_add(store, iron__kept_hold(job->kept));
}

static iron_status run_delete(iron__writer *w, iron__job *job, iron_error *err) {
    iron__kept *kept = job->kept;

    if (kept->is_leaving)
        return IRON_OK;
    IRON_TRY(iron__engine_delete(w->db, kept->id, err));
    IRON_TRY(write_ledger(w, kept, -1, err));
    IRON_TRY(iron__writer_touch(w, kept, err));
    kept->is_leaving = true;
    ((engine_job *)job)->is_done = true;
    return IRON_OK;
}

static void publish_delete(iron__store *store, iron__job *job) {
    if (!((engine_job *)job)->is_done)
        return;
    iron__list_remove(store, job->kept);
    iron__plan_drop(store, job->kept->plan.nodes);
}

static iron_status check_writable(iron__store *store, iron_error *err) {
    iron_error why = {0};

    if (iron__store_failure(store, &why) != IRON_OK)
        return iron__fail(err, IRON_E_IO, why.native, "%s", why.text);
    IRON_FAIL_IF(atomic_load(&store->is_stopping), err, IRON_E_IO, "the store is being closed");
    return IRON_OK;
}

static iron_status do_job(iron__store *store, engine_job *job, iron_error *err) {
    iron__writer_do(store->writer, &job->job);
    if (job->job.is_refused)
        return iron__fail(err, IRON_E_IO, job->job.error.native, "%s", job->job.error.text);
    return IRON_OK;
}

static iron_status build(iron__store *store, const iron__plan *plan, iron__kept **out,
                         iron_error *err) {
    iron__engine_row row = {.created_ms = iron__now_ms(), .plan = *plan};
    iron__moment moment = iron__moment_start();
    iron_engine *engine = NULL;
    iron_report report = {.struct_size = sizeof report};
    iron_config config;
    iron_status status;

    iron__plan_config(plan, &config);
    status = iron_engine_create(&config, &engine, err);
    if (status == IRON_OK)
        status = iron_engine_report(engine, &report, err);
    if (status != IRON_OK) {
        iron_engine_destroy(engine);
        return status;
    }
    moment.state = report.state;
    moment.changed_ms = row.created_ms;
    return iron__kept_create(store, &row, engine, NULL, &moment,
                             iron_engine_xor_accumulators(engine), iron_engine_potentials(engine),
                             out, err);
}

static iron_status create(iron__store *store, const iron__plan *plan, iron__kept **out,
                          iron_error *err) {
    engine_job job = {.job = {.run = run_create, .publish = publish_create}};
    iron_status status = build(store, plan, &job.job.kept, err);

    if (status == IRON_OK)
        status = do_job(store, &job, err);
    if (status == IRON_OK && !job.is_done)
        status =
            iron__fail(err, IRON_E_STATE, 0,
                       "an engine named %s exists; choose another name, or delete it", plan->name);
    if (status == IRON_OK)
        *out = job.job.kept;
    else
        iron__kept_release(job.job.kept);
    return status;
}

iron_status iron__store_create(iron__store *store, const iron__plan *plan, iron__kept **out,
                               iron_error *err) {
    iron__kept *other;
    iron_status status;

    *out = NULL;
    IRON_TRY(check_writable(store, err));
    IRON_FAIL_IF(!iron__engine_name_is_valid(plan->name), err, IRON_E_ARG,
                 "an engine's name has 1 to %u letters, digits, '.', '_' or '-', and begins with a "
                 "letter or digit",
                 IRON_ENGINE_NAME_MAX);
    other = iron__store_find(store, plan->name);
    iron__kept_release(other);
    IRON_FAIL_IF(other, err, IRON_E_STATE,
                 "an engine named %s exists; choose another name, or delete it", plan->name);
    IRON_TRY(iron__plan_reserve(store, plan->nodes, err));
    status = create(store, plan, out, err);
    if (status != IRON_OK)
        iron__plan_drop(store, plan->nodes);
    return status;
}

iron_status iron__store_delete(iron__store *store, iron__kept *kept, iron_error *err) {
    engine_job job = {.job = {.run = run_delete, .publish = publish_delete, .kept = kept}};

    IRON_TRY(check_writable(store, err));
    IRON_TRY(do_job(store, &job, err));
    IRON_FAIL_IF(!job.is_done, err, IRON_E_STATE, "engine %s was deleted before", kept->plan.name);
    iron__writer_sweep(store->writer);
    return IRON_OK;
}
