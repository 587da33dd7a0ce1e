/* SPDX-License-Identifier: MIT */
/*
 * peers.c: looks for plug-ins in their folders and keeps what became of each: its rows, or why it
 * has none. What a plug-in must be like is judged in peer_library.c.
 *
 * One array of candidates holds both kinds, in the order in which they were found: folder after
 * folder, by name in each, so that a list is the same at every start. Rows are counted through it;
 * there are a handful.
 */
#include "arena/peers.h"

#include "arena/peer_library.h"
#include "core/fail.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE       "IRON_PEERS"
#define PREFIX         "libiron-peer-"
#define SUFFIX         ".so"
#define PATH_MAX_BYTES 4096

typedef struct candidate {
    char *path;
    const iron_peer_list *list; /* NULL: absent */
    char reason[240];
} candidate;

struct iron__peers {
    candidate *candidates;
    size_t count;
};

static iron_status no_memory(iron_error *err) {
    return iron__fail(err, IRON_E_NOMEM, 0, "out of memory while listing peers");
}

/* A new candidate, absent for now; NULL: out of memory. */
static candidate *add(iron__peers *p, const char *path) {
    candidate *grown = realloc(p->candidates, (p->count + 1) * sizeof *grown), *c;

    if (!grown)
        return NULL;
    p->candidates = grown;
    c = &grown[p->count];
    *c = (candidate){.path = strdup(path)};
    if (!c->path)
        return NULL;
    p->count++;
    return c;
}

static iron_status add_absence(iron__peers *p, const char *path, const char *reason,
                               iron_error *err) {
    candidate *c = add(p, path);

    if (!c)
        return no_memory(err);
    snprintf(c->reason, sizeof c->reason, "%s", reason);
    return IRON_OK;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_seen(const iron__peers *p, const char *name) {
    for (size_t k = 0; k < p->count; k++)
        if (strcmp(base_name(p->candidates[k].path), name) == 0)
            return true;
    return false;
}

/* Whose plug-in has a row of this name already; NULL: nobody's. */
static const char *owner_of(const iron__peers *p, const char *name) {
    iron__peer_entry e;

    for (size_t k = 0; iron__peers_at(p, k, &e); k++)
        if (strcmp(e.row->name, name) == 0)
            return e.path;
    return NULL;
}

static iron_status add_library(iron__peers *p, const char *path, iron_error *err) {
    candidate *c = add(p, path);
    const iron_peer_list *list;

    if (!c)
        return no_memory(err);
    list = iron__peer_library_load(path, c->reason, sizeof c->reason);
    for (size_t k = 0; list && k < list->count; k++) {
        const char *owner = owner_of(p, list->rows[k].name);

        if (owner) {
            snprintf(c->reason, sizeof c->reason, "%.60s has the row %.60s already",
                     base_name(owner), list->rows[k].name);
            return IRON_OK;
        }
    }
    c->list = list;
    return IRON_OK;
}

static int is_plugin(const struct dirent *entry) {
    size_t length = strlen(entry->d_name), least = sizeof PREFIX - 1 + sizeof SUFFIX - 1;

    return length > least && strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
           strcmp(entry->d_name + length - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

/* By bytes: alphasort's order is the locale's. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static iron_status search(iron__peers *p, const char *folder, bool is_required, iron_error *err) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_plugin, by_name);
    iron_status status = IRON_OK;

    if (count < 0 && errno == ENOMEM)
        return no_memory(err);
    if (count < 0)
        return is_required ? add_absence(p, folder, strerror(errno), err) : IRON_OK;
    for (int k = 0; k < count; k++) {
        char path[PATH_MAX_BYTES];

        snprintf(path, sizeof path, "%s/%s", folder, entries[k]->d_name);
        if (status == IRON_OK && !is_seen(p, entries[k]->d_name))
            status = add_library(p, path, err);
        free(entries[k]);
    }
    free(entries);
    return status;
}

/* The folder of the running program; "" if the system does not tell. */
static void find_own_folder(char *folder, size_t size) {
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    char *slash;

    folder[length > 0 ? length : 0] = '\0';
    slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

static iron_status search_usual(iron__peers *p, iron_error *err) {
    char own[PATH_MAX_BYTES], installed[PATH_MAX_BYTES + sizeof IRON_PEERS_FROM_COMMAND];

    find_own_folder(own, sizeof own);
    if (own[0]) {
        snprintf(installed, sizeof installed, "%s/%s", own, IRON_PEERS_FROM_COMMAND);
        IRON_TRY(search(p, own, false, err));
        IRON_TRY(search(p, installed, false, err));
    }
    return search(p, IRON_PEERS_FOLDER, false, err);
}

static iron_status search_all(iron__peers *p, iron_error *err) {
    /* Not from a program that runs with rights its caller does not have. */
    const char *named = secure_getenv(VARIABLE);
    const char *obstacle = iron__peer_library_obstacle();

    if (named && strcmp(named, "none") == 0)
        return IRON_OK;
    if (obstacle)
        return add_absence(p, "", obstacle, err);
    return named && named[0] ? search(p, named, true, err) : search_usual(p, err);
}

iron_status iron__peers_open(iron__peers **out, iron_error *err) {
    iron__peers *p = calloc(1, sizeof *p);
    iron_status status;

    *out = NULL;
    if (!p)
        return no_memory(err);
    status = search_all(p, err);
    if (status != IRON_OK) {
        iron__peers_close(p);
        return status;
    }
    *out = p;
    return IRON_OK;
}

void iron__peers_close(iron__peers *peers) {
    if (!peers)
        return;
    for (size_t k = 0; k < peers->count; k++)
        free(peers->candidates[k].path);
    free(peers->candidates);
    free(peers);
}

size_t iron__peers_count(const iron__peers *peers) {
    size_t count = 0;

    for (size_t k = 0; k < peers->count; k++)
        count += peers->candidates[k].list ? peers->candidates[k].list->count : 0;
    return count;
}

bool iron__peers_at(const iron__peers *peers, size_t index, iron__peer_entry *out) {
    for (size_t k = 0; k < peers->count; k++) {
        const candidate *c = &peers->candidates[k];
        size_t rows = c->list ? c->list->count : 0;

        if (index < rows) {
            *out = (iron__peer_entry){&c->list->rows[index], c->list->library, c->list->version,
                                      c->path};
            return true;
        }
        index -= rows;
    }
    return false;
}

bool iron__peers_absent_at(const iron__peers *peers, size_t index, iron__peer_absence *out) {
    for (size_t k = 0; k < peers->count; k++)
        if (!peers->candidates[k].list && index-- == 0) {
            *out = (iron__peer_absence){peers->candidates[k].path, peers->candidates[k].reason};
            return true;
        }
    return false;
}
