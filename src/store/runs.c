/* SPDX-License-Identifier: MIT */
/*
 * runs.c: the records of training runs.
 *
 * A run has a row, each of its ranks has one with totals, and each record has one, found by its
 * place (rank, time) or by its content (rank, SHA-256). All rows of one call are written in one
 * transaction; nothing is kept in memory, readers look into the database. Totals are stored so that
 * a missing or damaged record is noticed (iron serve verify) and limits cost nothing to check.
 *
 * The tables are created with the first run: a database without runs is as earlier versions know
 * it. Deleting a run removes its row; the writer removes the rest later.
 */
#include "core/clock.h"
#include "core/fail.h"
#include "core/sha256.h"
#include "store/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define RUN_BYTES_MAX   ((uint64_t)256 << 20)
#define PORTION_RECORDS 8192u
#define PORTION_BYTES   ((size_t)4 << 20)

/* Rows. */

static uint64_t run_check(const iron__run_view *v) {
    return iron__run_check_words(
        v->name, IRON_WORDS(v->id, v->created_ms, v->changed_ms, v->ranks, v->records, v->bytes));
}

static uint64_t rank_check(uint64_t run, const iron__run_rank *r) {
    return iron__run_check_words("", IRON_WORDS(run, r->rank, r->world, r->records, r->steps,
                                                r->bytes, r->last_time, r->last_kind, r->last_step,
                                                r->last_hi, r->last_lo, r->records_check));
}

static uint64_t record_check(uint64_t run, uint64_t rank, uint64_t time, uint64_t hi, uint64_t lo) {
    return iron__run_check_words("", IRON_WORDS(run, rank, time, hi, lo));
}

static iron_status damaged(const iron__database *db, const char *what, uint64_t run,
                           iron_error *err) {
    return iron__fail(err, IRON_E_FORMAT, 0,
                      "%s of run %" PRIu64 " in %.100s is damaged; restore a backup", what, run,
                      db->path);
}

static iron_status next_run(iron__database *db, sqlite3_stmt *s, iron__run_view *v, bool *found,
                            iron_error *err) {
    IRON_TRY(iron__sql_step(db, s, found, "read a run", err));
    if (!*found)
        return IRON_OK;
    *v = (iron__run_view){.id = iron__column_word(s, 0),
                          .created_ms = iron__column_word(s, 2),
                          .changed_ms = iron__column_word(s, 3),
                          .ranks = iron__column_word(s, 4),
                          .records = iron__column_word(s, 5),
                          .bytes = iron__column_word(s, 6)};
    if (iron__column_text(s, 1, v->name, sizeof v->name) && iron__column_word(s, 7) == run_check(v))
        return IRON_OK;
    return damaged(db, "the row", v->id, err);
}

static iron_status find_run(iron__database *db, const char *name, iron__run_view *v, bool *found,
                            iron_error *err) {
    sqlite3_stmt *s = iron__sql_ready(db, IRON_SQL_RUN_BY_NAME, IRON_NO_WORDS, err);
    iron_status status;

    *found = false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    status = next_run(db, s, v, found, err);
    sqlite3_reset(s);
    return status;
}

static iron_status next_rank(iron__database *db, sqlite3_stmt *s, uint64_t run, iron__run_rank *r,
                             bool *found, iron_error *err) {
    IRON_TRY(iron__sql_step(db, s, found, "read a rank", err));
    if (!*found)
        return IRON_OK;
    *r =
        (iron__run_rank){iron__column_word(s, 1),  iron__column_word(s, 2), iron__column_word(s, 3),
                         iron__column_word(s, 4),  iron__column_word(s, 5), iron__column_word(s, 6),
                         iron__column_word(s, 7),  iron__column_word(s, 8), iron__column_word(s, 9),
                         iron__column_word(s, 10), iron__column_word(s, 11)};
    return iron__column_word(s, 12) == rank_check(run, r) ? IRON_OK
                                                          : damaged(db, "a rank", run, err);
}

/* Adding. */

void iron__run_record_seal(iron__run_record *record) {
    unsigned char digest[IRON_SHA256_BYTES];

    iron__sha256(record->bytes, record->count, digest);
    for (int k = 0; k < 8; k++) {
        record->hi = record->hi << 8 | digest[k];
        record->lo = record->lo << 8 | digest[8 + k];
    }
}

typedef struct addition {
    iron__store *store;
    const char *name;
    uint64_t rank;
    const iron__run_record *records;
    size_t count;
    uint64_t added;
    iron__run_view run;
    iron_error refused; /* a limit: nothing was added */
} addition;

/* A new run has no ranks; its row is completed with the first one. */
static iron_status insert_run(iron__database *db, addition *a, iron_error *err) {
    uint64_t runs = 0, now = iron__now_ms();
    sqlite3_stmt *s;
    bool found;

    IRON_TRY(iron__sql_number(db, IRON_SQL_RUN_COUNT, IRON_NO_WORDS, &found, &runs,
                              "count the runs", err));
    if (runs >= IRON_RUNS_MAX) {
        iron__fail(&a->refused, IRON_E_NOMEM, 0,
                   "the limit of %u runs is reached; delete one (DELETE /v1/runs/NAME)",
                   IRON_RUNS_MAX);
        return IRON_OK;
    }
    s = iron__sql_ready(db, IRON_SQL_RUN_INSERT, IRON_WORDS(now), err);
    sqlite3_bind_text(s, 2, a->name, -1, SQLITE_STATIC);
    IRON_TRY(iron__sql_finish(db, s, "write a run", err));
    a->run =
        (iron__run_view){.id = (uint64_t)sqlite3_last_insert_rowid(db->handle), .created_ms = now};
    snprintf(a->run.name, sizeof a->run.name, "%s", a->name);
    return IRON_OK;
}

/* Adds the records that the rank does not have. */
static iron_status insert_records(iron__database *db, addition *a, iron__run_rank *rank,
                                  iron_error *err) {
    uint64_t time = 0;

    for (size_t k = 0; k < a->count; k++) {
        const iron__run_record *r = &a->records[k];
        uint64_t known = 0;
        sqlite3_stmt *s;
        bool found;

        IRON_TRY(iron__sql_number(db, IRON_SQL_RECORD_TIME,
                                  IRON_WORDS(a->run.id, a->rank, r->hi, r->lo), &found, &known,
                                  "look for a record", err));
        time = found ? known : r->time > time ? r->time : time + 1;
        if (found)
            continue;
        s = iron__sql_ready(db, IRON_SQL_RECORD_INSERT,
                            IRON_WORDS(a->run.id, a->rank, time, r->hi, r->lo), err);
        sqlite3_bind_blob(s, 6, r->bytes, (int)r->count, SQLITE_STATIC);
        IRON_TRY(iron__sql_finish(db, s, "write a record", err));
        if (rank->records++ == 0 || time >= rank->last_time) { /* the newest one */
            rank->last_time = time;
            rank->last_kind = r->kind;
            rank->last_hi = r->hi;
            rank->last_lo = r->lo;
            rank->last_step = r->step != UINT64_MAX ? r->step : rank->last_step;
            rank->world = r->world ? r->world : rank->world;
        }
        rank->steps += r->step != UINT64_MAX;
        rank->bytes += r->count;
        rank->records_check ^= record_check(a->run.id, a->rank, time, r->hi, r->lo);
        a->run.bytes += r->count;
        a->added++;
    }
    return IRON_OK;
}

static iron_status write_addition(iron__database *db, void *context, iron_error *err) {
    static const iron__sql make[4] = {IRON_SQL_MAKE_RUNS, IRON_SQL_MAKE_RANKS,
                                      IRON_SQL_MAKE_RECORDS, IRON_SQL_MAKE_RECORDS_INDEX};
    addition *a = context;
    const uint64_t max = a->store->options.run_bytes_max;
    iron__run_rank rank = {0};
    uint64_t bytes = 0, time;
    bool has_run, has_rank, found;

    a->added = 0;
    a->refused = (iron_error){0};
    for (size_t k = 0; k < 4 && !atomic_load(&a->store->has_runs); k++)
        IRON_TRY(iron__sql_run(db, make[k], IRON_NO_WORDS, "make the tables of runs", err));
    IRON_TRY(find_run(db, a->name, &a->run, &has_run, err));
    if (!has_run)
        IRON_TRY(insert_run(db, a, err));
    if (a->refused.status)
        return IRON_OK;
    IRON_TRY(next_rank(db, iron__sql_ready(db, IRON_SQL_RANKS, IRON_WORDS(a->run.id, a->rank), err),
                       a->run.id, &rank, &has_rank, err));
    has_rank = has_rank && rank.rank == a->rank;
    if (!has_rank)
        rank = (iron__run_rank){.rank = a->rank};
    /* new bytes are counted before anything is written: a refused call leaves no rows */
    for (size_t k = 0; k < a->count; k++) {
        const iron__run_record *r = &a->records[k];

        IRON_TRY(iron__sql_number(db, IRON_SQL_RECORD_TIME,
                                  IRON_WORDS(a->run.id, a->rank, r->hi, r->lo), &found, &time,
                                  "look for a record", err));
        bytes += found ? 0 : r->count;
    }
    if (a->run.bytes + bytes > max)
        iron__fail(&a->refused, IRON_E_NOMEM, 0,
                   "run %s has %" PRIu64 " bytes of records, and %" PRIu64
                   " more would exceed %" PRIu64 "; raise --max-run, or begin another run",
                   a->name, a->run.bytes, bytes, max);
    else if (!has_rank && a->run.ranks >= IRON_RUN_RANKS_MAX)
        iron__fail(&a->refused, IRON_E_NOMEM, 0,
                   "run %s has %u ranks, and cannot have more; begin another run", a->name,
                   IRON_RUN_RANKS_MAX);
    if (a->refused.status) /* a run that is not there yet must not stay */
        return has_run ? IRON_OK
                       : iron__sql_run(db, IRON_SQL_RUN_DELETE, IRON_WORDS(a->run.id),
                                       "remove a run", err);
    IRON_TRY(insert_records(db, a, &rank, err));
    if (a->added == 0)
        return IRON_OK;
    a->run.changed_ms = iron__now_ms();
    a->run.ranks += !has_rank;
    a->run.records += a->added;
    IRON_TRY(iron__sql_run(db, IRON_SQL_RANK_WRITE,
                           IRON_WORDS(a->run.id, rank.rank, rank.world, rank.records, rank.steps,
                                      rank.bytes, rank.last_time, rank.last_kind, rank.last_step,
                                      rank.last_hi, rank.last_lo, rank.records_check,
                                      rank_check(a->run.id, &rank)),
                           "write a rank", err));
    return iron__sql_run(db, IRON_SQL_RUN_UPDATE,
                         IRON_WORDS(a->run.id, a->run.changed_ms, a->run.ranks, a->run.records,
                                    a->run.bytes, run_check(&a->run)),
                         "write a run", err);
}

iron_status iron__store_run_add(iron__store *store, const char *name, uint64_t rank,
                                const iron__run_record *records, size_t count, uint64_t *added,
                                iron__run_view *after, iron_error *err) {
    addition a = {.store = store, .name = name, .rank = rank, .records = records, .count = count};

    IRON_TRY(iron__store_write(store, true, write_addition, &a, err));
    if (a.refused.status) {
        if (err)
            *err = a.refused;
        return a.refused.status;
    }
    atomic_store(&store->has_runs, true);
    *added = a.added;
    *after = a.run;
    return IRON_OK;
}

typedef struct removal {
    const char *name;
    bool found;
} removal;

static iron_status write_removal(iron__database *db, void *context, iron_error *err) {
    removal *r = context;
    iron__run_view run;

    IRON_TRY(find_run(db, r->name, &run, &r->found, err));
    return r->found
               ? iron__sql_run(db, IRON_SQL_RUN_DELETE, IRON_WORDS(run.id), "delete a run", err)
               : IRON_OK;
}

iron_status iron__store_run_delete(iron__store *store, const char *name, bool *found,
                                   iron_error *err) {
    removal r = {.name = name};

    if (atomic_load(&store->has_runs))
        IRON_TRY(iron__store_write(store, false, write_removal, &r, err));
    *found = r.found;
    return IRON_OK;
}

/* Reading, on the readers' connection. */

iron_status iron__store_run_find(iron__store *store, const char *name, iron__run_view *view,
                                 bool *found, iron_error *err) {
    iron_status status;

    *found = false;
    if (!atomic_load(&store->has_runs))
        return IRON_OK;
    pthread_mutex_lock(&store->read_lock);
    status = find_run(store->reader, name, view, found, err);
    pthread_mutex_unlock(&store->read_lock);
    return status;
}

iron_status iron__store_runs(iron__store *store, iron__run_view *out, size_t *count,
                             iron_error *err) {
    iron_status status = IRON_OK;
    iron__database *db = store->reader;
    sqlite3_stmt *s;
    bool found = true;

    *count = 0;
    if (!atomic_load(&store->has_runs))
        return IRON_OK;
    pthread_mutex_lock(&store->read_lock);
    s = iron__sql_ready(db, IRON_SQL_RUNS, IRON_NO_WORDS, err);
    while (status == IRON_OK && found && *count < IRON_RUNS_MAX) {
        status = next_run(db, s, &out[*count], &found, err);
        *count += status == IRON_OK && found;
    }
    sqlite3_reset(s);
    pthread_mutex_unlock(&store->read_lock);
    return status;
}

iron_status iron__store_run_ranks(iron__store *store, uint64_t run, iron__run_rank *out,
                                  size_t *count, iron_error *err) {
    iron_status status = IRON_OK;
    iron__database *db = store->reader;
    sqlite3_stmt *s;
    bool found = true;

    *count = 0;
    pthread_mutex_lock(&store->read_lock);
    s = iron__sql_ready(db, IRON_SQL_RANKS, IRON_WORDS(run, 0), err);
    while (status == IRON_OK && found && *count < IRON_RUN_RANKS_MAX) {
        status = next_rank(db, s, run, &out[*count], &found, err);
        *count += status == IRON_OK && found;
    }
    sqlite3_reset(s);
    pthread_mutex_unlock(&store->read_lock);
    return status;
}

iron_status iron__store_run_records(iron__store *store, uint64_t run, iron__run_cursor *at,
                                    bool (*take)(void *context, uint64_t rank,
                                                 const unsigned char *bytes, size_t count),
                                    void *context, bool *is_over, iron_error *err) {
    size_t records = 0, bytes = 0;
    iron_status status = IRON_OK;
    sqlite3_stmt *s;
    bool found;

    pthread_mutex_lock(&store->read_lock);
    s = iron__sql_ready(store->reader, IRON_SQL_RECORDS_AFTER,
                        IRON_WORDS(run, (uint64_t)at->rank, at->time, at->hi, at->lo), err);
    while (records < PORTION_RECORDS && bytes < PORTION_BYTES) {
        status = iron__sql_step(store->reader, s, &found, "read the records of a run", err);
        if (status != IRON_OK)
            break;
        *is_over = !found || !take(context, iron__column_word(s, 0), sqlite3_column_blob(s, 4),
                                   (size_t)sqlite3_column_bytes(s, 4));
        if (*is_over)
            break;
        *at = (iron__run_cursor){sqlite3_column_int64(s, 0), iron__column_word(s, 1),
                                 iron__column_word(s, 2), iron__column_word(s, 3)};
        bytes += (size_t)sqlite3_column_bytes(s, 4);
        records++;
    }
    sqlite3_reset(s);
    pthread_mutex_unlock(&store->read_lock);
    return status;
}

/* Opening and verifying. */

iron_status iron__runs_load(iron__store *store, iron_error *err) {
    uint64_t one;
    bool found;

    store->options.run_bytes_max =
        store->options.run_bytes_max ? store->options.run_bytes_max : RUN_BYTES_MAX;
    IRON_TRY(iron__sql_number(store->db, IRON_SQL_HAS_RUNS, IRON_NO_WORDS, &found, &one,
                              "look for runs", err));
    atomic_store(&store->has_runs, found);
    return IRON_OK;
}

static iron_status verify_run(iron__database *db, const iron__run_view *run, iron_error *err) {
    sqlite3_stmt *ranks = iron__sql_ready(db, IRON_SQL_RANKS, IRON_WORDS(run->id, 0), err);
    sqlite3_stmt *s =
        iron__sql_ready(db, IRON_SQL_RECORDS_AFTER, IRON_WORDS(run->id, UINT64_MAX, 0, 0, 0), err);
    iron__run_view sum = {0};
    bool has_rank = true, has_record;

    IRON_TRY(iron__sql_step(db, s, &has_record, "read the records of a run", err));
    for (;;) {
        iron__run_rank rank, seen = {0};

        IRON_TRY(next_rank(db, ranks, run->id, &rank, &has_rank, err));
        if (!has_rank)
            break;
        while (has_record && iron__column_word(s, 0) == rank.rank) {
            iron__run_record r = {.bytes = sqlite3_column_blob(s, 4),
                                  .count = (uint32_t)sqlite3_column_bytes(s, 4)};

            iron__run_record_seal(&r);
            if (r.hi != iron__column_word(s, 2) || r.lo != iron__column_word(s, 3))
                return damaged(db, "a record", run->id, err);
            seen.records++;
            seen.bytes += r.count;
            seen.records_check ^=
                record_check(run->id, rank.rank, iron__column_word(s, 1), r.hi, r.lo);
            IRON_TRY(iron__sql_step(db, s, &has_record, "read the records of a run", err));
        }
        if (seen.records != rank.records || seen.bytes != rank.bytes ||
            seen.records_check != rank.records_check)
            return damaged(db, "a rank", run->id, err);
        sum.ranks++;
        sum.records += seen.records;
        sum.bytes += seen.bytes;
    }
    return has_record || sum.ranks != run->ranks || sum.records != run->records ||
                   sum.bytes != run->bytes
               ? damaged(db, "the total", run->id, err)
               : IRON_OK;
}

iron_status iron__runs_verify(iron__store *store, iron_server_verified *found, iron_error *err) {
    sqlite3_stmt *s;
    iron__run_view run;
    bool is_there = true;

    IRON_TRY(iron__runs_load(store, err));
    if (!atomic_load(&store->has_runs))
        return IRON_OK;
    s = iron__sql_ready(store->db, IRON_SQL_RUNS, IRON_NO_WORDS, err);
    for (;;) {
        IRON_TRY(next_run(store->db, s, &run, &is_there, err));
        if (!is_there)
            return IRON_OK;
        IRON_TRY(verify_run(store->db, &run, err));
        found->runs++;
        found->records += run.records;
    }
}
