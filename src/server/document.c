/* SPDX-License-Identifier: MIT */
/*
 * document.c: the body of a route that takes JSON: collected, then read by the route as a whole.
 *
 * A document of 1 MiB takes 13 MiB while it is read. So that many clients at once do not fill the
 * memory, large ones may have DOCUMENTS_MAX together while they come, and are read one at a time.
 * Small ones, as all that make engines are, wait for nobody.
 */
#include "server/talk.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_MAX     ((size_t)4 << 10)
#define DOCUMENTS_MAX ((uint64_t)64 << 20)

static uint64_t counted(size_t room) { return room > SMALL_MAX ? room : 0; }

static bool reserve(iron__talk *talk, size_t room) {
    uint64_t more = counted(room) - counted(talk->body_room);
    atomic_uint_fast64_t *all = &talk->server->document_bytes;

    if (atomic_fetch_add(all, more) + more <= DOCUMENTS_MAX)
        return true;
    atomic_fetch_sub(all, more);
    return false;
}

/* A room that grows by doubling, and has a place for the zero at the end. */
static size_t room_for(const iron__talk *talk, size_t need) {
    size_t room = talk->body_room ? talk->body_room : 1024;

    while (room < need)
        room *= 2;
    return room <= IRON_JSON_BODY_MAX ? room : IRON_JSON_BODY_MAX + 1;
}

static bool make_room(iron__talk *talk, size_t count) {
    size_t need = talk->x.body_bytes + count + 1, room = room_for(talk, need);
    char *larger;

    if (need <= talk->body_room)
        return true;
    if (!reserve(talk, room))
        return false;
    larger = realloc(talk->body, room);
    if (!larger) {
        atomic_fetch_sub(&talk->server->document_bytes, counted(room) - counted(talk->body_room));
        return false;
    }
    talk->body = larger;
    talk->body_room = room;
    return true;
}

void iron__document_take(iron__talk *talk, const char *bytes, size_t count) {
    if (count > IRON_JSON_BODY_MAX - talk->x.body_bytes) {
        iron__talk_refuse_large(talk, IRON_JSON_BODY_MAX);
    } else if (!make_room(talk, count)) {
        iron__answer_problem(&talk->x, "busy", "try again a little later",
                             "there is no room for one more large document now");
    } else {
        memcpy(talk->body + talk->x.body_bytes, bytes, count);
        talk->x.body_bytes += count;
    }
}

void iron__document_read(iron__talk *talk) {
    bool is_large = talk->body_room > SMALL_MAX;

    if (talk->body)
        talk->body[talk->x.body_bytes] = '\0';
    talk->x.body = talk->body ? talk->body : "";
    if (is_large)
        pthread_mutex_lock(&talk->server->reading);
    talk->x.route->end(&talk->x);
    if (is_large)
        pthread_mutex_unlock(&talk->server->reading);
}

void iron__document_free(iron__talk *talk) {
    atomic_fetch_sub(&talk->server->document_bytes, counted(talk->body_room));
    free(talk->body);
}
