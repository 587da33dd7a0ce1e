/* SPDX-License-Identifier: MIT */
/*
 * runs.c: checks runs in the background.
 *
 * One thread checks every run that has new records, with the code of `iron ledger check`: it reads
 * all records of the run into memory, one run at a time, so memory is bounded by --max-run. After a
 * check that took long it rests four times as long, so a large run that grows all the time costs at
 * most a fifth of one core. The newest result of each run is kept for the routes, the events and
 * the metrics; the results themselves are not stored, since they follow from the records. Requests
 * that compare two runs read them in the same way, one request at a time.
 */
#include "server/server_internal.h"

#include "core/number.h"
#include "ledger/ledger_internal.h"

#define REST_FACTOR 4u
#define REST_MAX_NS UINT64_C(60000000000)
#define LISTED_MAX  200u /* findings of each kind; totals count all */

/* The records of a run in memory. */
typedef struct run_memory {
    iron_ledgers *ledgers; /* made of what follows */
    unsigned char *bytes;
    size_t used, room;
    iron__ledger_frames *ranks;
    size_t rank_count, rank_room;
    uint64_t records;
} run_memory;

static bool take_record(void *context, uint64_t rank, const unsigned char *bytes, size_t count) {
    run_memory *m = context;
    bool is_next = m->rank_count == 0 || m->ranks[m->rank_count - 1].rank != rank;

    if (count > m->room - m->used || (is_next && m->rank_count == m->rank_room))
        return false; /* it came since the run was looked at */
    if (is_next)
        m->ranks[m->rank_count++] =
            (iron__ledger_frames){.rank = (uint32_t)rank, .bytes = m->bytes + m->used};
    memcpy(m->bytes + m->used, bytes, count);
    m->used += count;
    m->ranks[m->rank_count - 1].count += count;
    m->records++;
    return true;
}

static int is_stopping(void *context, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    return atomic_load(&((iron_server *)context)->is_stopping);
}

static void release_run(run_memory *m) {
    iron_ledgers_close(m->ledgers);
    free(m->bytes);
    free(m->ranks);
}

/* IRON_E_STATE: it was deleted meanwhile. *m is to be released in any case. */
static iron_status read_run(iron_server *server, const iron__run_view *view, run_memory *m,
                            iron_error *err) {
    iron__run_cursor at = {.rank = -1};
    bool is_over = false;

    *m = (run_memory){.room = view->bytes, .rank_room = view->ranks};
    m->bytes = malloc(m->room + 1);
    m->ranks = calloc(m->rank_room + 1, sizeof *m->ranks);
    if (!m->bytes || !m->ranks)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory for the records of run %s",
                          view->name);
    while (!is_over)
        IRON_TRY(
            iron__store_run_records(server->store, view->id, &at, take_record, m, &is_over, err));
    if (m->rank_count == 0)
        return iron__fail(err, IRON_E_STATE, 0, "run %s was deleted", view->name);
    return iron__ledgers_of_frames(m->ranks, m->rank_count, &m->ledgers, err);
}

static iron_status check_run(iron_server *server, const iron__run_view *view,
                             iron__run_check *check, iron_error *err) {
    iron_ledger_check_options options;
    iron_status status;
    run_memory m;

    *check = (iron__run_check){.run = view->id, .records = view->records};
    memcpy(check->name, view->name, sizeof check->name);
    check->summary.struct_size = sizeof check->summary;
    iron_ledger_check_options_init(&options);
    options.threads = 1;
    options.memory = (uint64_t)64 << 20;
    options.limit = LISTED_MAX;
    options.progress = is_stopping;
    options.context = server;
    status = read_run(server, view, &m, err);
    if (status == IRON_OK)
        status = iron_ledgers_summarize(m.ledgers, &check->summary, err);
    if (status == IRON_OK)
        status = iron_ledgers_check(m.ledgers, &options, &check->found, err);
    release_run(&m);
    return status;
}

iron_status iron__run_diff(iron_server *server, const iron__run_view *reference,
                           const iron__run_view *view, iron_ledger_diff *diff, iron_error *err) {
    run_memory a = {.ledgers = NULL}, b = {.ledgers = NULL};
    iron_status status;

    pthread_mutex_lock(&server->checker.comparing);
    status = read_run(server, reference, &a, err);
    if (status == IRON_OK)
        status = read_run(server, view, &b, err);
    if (status == IRON_OK)
        status = iron_ledgers_diff(a.ledgers, b.ledgers, diff, err);
    release_run(&a);
    release_run(&b);
    pthread_mutex_unlock(&server->checker.comparing);
    return status;
}

/* With the lock held. */
static iron__run_check *find_check(iron__checker *c, uint64_t run) {
    for (size_t k = 0; k < c->count; k++)
        if (c->all[k].run == run)
            return &c->all[k];
    return NULL;
}

static void announce(iron__checker *c) {
    c->changes++;
    pthread_cond_broadcast(&c->worker.wake);
}

/* Forgets the runs that were deleted, and checks those that have new records. */
static void check_all(iron_server *server, iron__run_view *views) {
    iron__checker *c = &server->checker;
    size_t count;

    if (iron__store_runs(server->store, views, &count, NULL) != IRON_OK)
        return;
    pthread_mutex_lock(&c->worker.mutex);
    for (size_t k = c->count, at; k-- > 0;) {
        for (at = 0; at < count && views[at].id != c->all[k].run;)
            at++;
        if (at < count)
            continue;
        iron_ledger_findings_deinit(&c->all[k].found);
        c->all[k] = c->all[--c->count];
        c->all[c->count] = (iron__run_check){.run = 0};
    }
    pthread_mutex_unlock(&c->worker.mutex);
    for (size_t k = 0; k < count && !atomic_load(&server->is_stopping); k++) {
        iron__run_check check;
        iron__run_check *old;
        iron_error why = {0};
        bool is_new;
        iron_status status;

        pthread_mutex_lock(&c->worker.mutex);
        old = find_check(c, views[k].id);
        is_new = !old || old->records != views[k].records;
        pthread_mutex_unlock(&c->worker.mutex);
        if (!is_new)
            continue;
        status = check_run(server, &views[k], &check, &why);
        if (status != IRON_OK) {
            if (status != IRON_E_STATE && status != IRON_E_CANCELLED)
                iron__note(server->log, "cannot check run %s: %s", views[k].name, why.text);
            continue;
        }
        pthread_mutex_lock(&c->worker.mutex);
        old = find_check(c, check.run);
        if (!old)
            old = &c->all[c->count++];
        for (int kind = 0; kind < IRON_LEDGER_KINDS; kind++)
            check.most[kind] = iron__max(check.found.totals[kind], old->most[kind]);
        iron_ledger_findings_deinit(&old->found);
        *old = check;
        announce(c);
        pthread_mutex_unlock(&c->worker.mutex);
    }
}

static void *run_checker(void *context) {
    iron_server *server = context;
    iron__checker *c = &server->checker;
    iron__run_view *views = calloc(IRON_RUNS_MAX, sizeof *views);
    uint64_t seen = UINT64_MAX, rest;

    pthread_mutex_lock(&c->worker.mutex);
    while (views && !c->worker.is_over) {
        if (c->changes == seen) {
            pthread_cond_wait(&c->worker.wake, &c->worker.mutex);
            continue;
        }
        seen = c->changes;
        pthread_mutex_unlock(&c->worker.mutex);
        rest = iron__clock_ns();
        check_all(server, views);
        rest = REST_FACTOR * (iron__clock_ns() - rest);
        pthread_mutex_lock(&c->worker.mutex);
        for (struct timespec until = iron__deadline_after(rest < REST_MAX_NS ? rest : REST_MAX_NS);
             !c->worker.is_over &&
             pthread_cond_timedwait(&c->worker.wake, &c->worker.mutex, &until) == 0;)
            continue;
    }
    pthread_mutex_unlock(&c->worker.mutex);
    free(views);
    return NULL;
}

iron_status iron__checker_start(iron_server *server, iron_error *err) {
    return iron__worker_start(&server->checker.worker, run_checker, server, err);
}

void iron__checker_stop(iron_server *server) {
    iron__checker *c = &server->checker;

    iron__worker_stop(&c->worker);
    for (size_t k = 0; k < c->count; k++)
        iron_ledger_findings_deinit(&c->all[k].found);
}

void iron__checker_notify(iron_server *server) {
    pthread_mutex_lock(&server->checker.worker.mutex);
    announce(&server->checker);
    pthread_mutex_unlock(&server->checker.worker.mutex);
}

uint64_t iron__checker_wait(iron_server *server, uint64_t seen, uint32_t milliseconds) {
    struct timespec deadline = iron__deadline_after(milliseconds * UINT64_C(1000000));
    iron__checker *c = &server->checker;
    bool is_late = false;

    pthread_mutex_lock(&c->worker.mutex);
    while (c->changes == seen && !c->worker.is_over && !is_late &&
           !atomic_load(&server->is_stopping))
        is_late = pthread_cond_timedwait(&c->worker.wake, &c->worker.mutex, &deadline) != 0;
    seen = c->changes;
    pthread_mutex_unlock(&c->worker.mutex);
    return seen;
}

bool iron__run_check_get(iron_server *server, uint64_t run, iron__run_check *copy) {
    iron__checker *c = &server->checker;
    const iron__run_check *check;

    *copy = (iron__run_check){.run = 0};
    pthread_mutex_lock(&c->worker.mutex);
    check = find_check(c, run);
    if (check) {
        iron_ledger_finding *list = malloc((check->found.count + 1) * sizeof *list);

        *copy = *check;
        copy->found.list = list;
        if (!list)
            copy->found.count = 0;
        else if (check->found.count > 0)
            memcpy(list, check->found.list, check->found.count * sizeof *list);
    }
    pthread_mutex_unlock(&c->worker.mutex);
    return check != NULL;
}

size_t iron__run_checks(iron_server *server, iron__run_check *out) {
    iron__checker *c = &server->checker;
    size_t count;

    pthread_mutex_lock(&c->worker.mutex);
    count = c->count;
    for (size_t k = 0; k < count; k++) {
        out[k] = c->all[k];
        out[k].found.list = NULL;
        out[k].found.count = 0;
    }
    pthread_mutex_unlock(&c->worker.mutex);
    return count;
}
