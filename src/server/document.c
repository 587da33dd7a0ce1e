/* SPDX-License-Identifier: MIT */
/*
 * document.c: the body of a route that takes JSON: collected, then read by the route as a whole.
 *
 * A document of 1 MiB takes 13 MiB while it is read. So that many clients at once do not fill the
 * memory, large ones may have DOCUMENTS_MAX together while they come, and are read one at a time.
 * A large one gets all of its room or none: were it to grow, many that come together would fill the
 * room with beginnings, and none could end. Small ones, as all that make engines are, wait for
 * nobody.
 */
#include "server/talk.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_MAX     ((size_t)4 << 10)
#define WHOLE_MAX     (IRON_JSON_BODY_MAX + 1) /* with the zero at the end */
#define DOCUMENTS_MAX ((uint64_t)64 * WHOLE_MAX)

static uint64_t counted(size_t room) { return room > SMALL_MAX ? room : 0; }

/* What is refused is never counted, not even for a moment: it would take the place of others. */
static bool reserve(iron__talk *talk, size_t room) {
    uint64_t more = counted(room) - counted(talk->body_room);
    atomic_uint_fast64_t *all = &talk->server->document_bytes;
    uint_fast64_t now = atomic_load(all);

    do {
        if (now + more > DOCUMENTS_MAX)
            return false;
    } while (!atomic_compare_exchange_weak(all, &now, now + more));
    return true;
}

/* A small one, and then all that it may need: as much as it said, if it said so. */
static size_t room_for(const iron__talk *talk, size_t need) {
    uint64_t said = talk->x.expected_bytes;

    if (need <= SMALL_MAX)
        return SMALL_MAX;
    return said < IRON_JSON_BODY_MAX && need <= said + 1 ? (size_t)said + 1 : WHOLE_MAX;
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
