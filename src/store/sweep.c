/* SPDX-License-Identifier: MIT */
/* sweep.c: see sweep.h. The tables one after the other, each by its engines or uploads. */
#include "store/sweep.h"

#include "core/fail.h"
#include "store/writer.h"

/* Looks in one go, and rows in one go: others must not wait for long. */
#define LOOKS 256

typedef struct stage_row {
    iron__sql next, owner, remove;
    uint64_t rows; /* a portion: of feeds with very many batches 50 MB, of others little */
} stage_row;

static const stage_row stages[] = {
    {IRON_SQL_FEEDS_NEXT_ENGINE, IRON_SQL_ENGINE_EXISTS, IRON_SQL_FEEDS_SWEEP, 64},
    {IRON_SQL_SNAPSHOTS_NEXT_ENGINE, IRON_SQL_ENGINE_EXISTS, IRON_SQL_SNAPSHOTS_SWEEP, 1},
    {IRON_SQL_BLOCKS_NEXT_UPLOAD, IRON_SQL_UPLOAD_EXISTS, IRON_SQL_BLOCKS_SWEEP, 8},
};

#define STAGES (int)(sizeof stages / sizeof stages[0])

void iron__sweep_begin(iron__sweep *sweep) { *sweep = (iron__sweep){.is_wanted = true}; }

bool iron__upload_is_open(iron__store *store, uint64_t upload) {
    bool is_open = false;

    pthread_mutex_lock(&store->lock);
    for (uint32_t k = 0; k < store->options.uploads_max; k++)
        is_open = is_open || store->open_uploads[k] == upload;
    pthread_mutex_unlock(&store->lock);
    return is_open;
}

/* One parameter in, one number out, if there is one. */
static iron_status ask(iron__writer *w, iron__sql which, uint64_t parameter, bool *found,
                       uint64_t *answer, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(w->db, which, err);

    *found = false;
    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, parameter);
    IRON_TRY(iron__sql_step(w->db, s, found, "sweep up", err));
    if (*found)
        *answer = iron__column_word(s, 0);
    sqlite3_reset(s);
    return IRON_OK;
}

static iron_status remove_some(iron__writer *w, const stage_row *stage, uint64_t id,
                               bool *is_removed, iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(w->db, stage->remove, err);

    if (!s)
        return IRON_E_IO;
    iron__bind_word(s, 1, id);
    iron__bind_word(s, 2, stage->rows);
    IRON_TRY(iron__sql_run(w->db, s, "sweep up", err));
    *is_removed = sqlite3_changes(w->db->handle) > 0;
    return IRON_OK;
}

/* Looks at the next owner; is_removed: a portion of its rows is gone. */
static iron_status look(iron__writer *w, bool *is_removed, iron_error *err) {
    iron__sweep *sweep = &w->sweep;
    const stage_row *stage = &stages[sweep->stage];
    uint64_t id = 0, one = 0;
    bool found, is_owned;

    IRON_TRY(ask(w, stage->next, sweep->seen, &found, &id, err));
    if (!found) {
        sweep->stage++;
        sweep->seen = 0;
        sweep->is_wanted = sweep->stage < STAGES;
        return IRON_OK;
    }
    IRON_TRY(ask(w, stage->owner, id, &is_owned, &one, err));
    if (stage->owner == IRON_SQL_UPLOAD_EXISTS)
        is_owned = is_owned || iron__upload_is_open(w->store, id);
    if (!is_owned)
        IRON_TRY(remove_some(w, stage, id, is_removed, err));
    if (!*is_removed)
        sweep->seen = id;
    return IRON_OK;
}

iron_status iron__sweep_some(iron__writer *w, iron_error *err) {
    bool is_removed = false;

    IRON_TRY(iron__sql_do(w->db, IRON_SQL_BEGIN, "begin a transaction", err));
    for (int k = 0; k < LOOKS && w->sweep.is_wanted && !is_removed; k++)
        IRON_TRY(look(w, &is_removed, err));
    return iron__sql_do(w->db, IRON_SQL_COMMIT, "commit", err);
}
