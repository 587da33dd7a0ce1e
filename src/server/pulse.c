/* SPDX-License-Identifier: MIT */
/*
 * pulse.c: the thread that tells the service manager how things are; see notify.h. It looks every
 * two seconds, or as often as a third of the manager's patience, and tells what has changed since.
 */
#include "server/notify.h"

#include "core/clock.h"
#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_NS       UINT64_C(2000000000)
#define SECOND_NS     UINT64_C(1000000000)
#define LOOK_LEAST_NS UINT64_C(10000000)

struct iron__pulse {
    iron__notify *notify;
    iron__site *site;
    const char *url;
    uint64_t look_ns, patience_ns; /* patience 0: nobody wants to hear regularly */
    char told[400];                /* the STATUS that was told last */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_over;
};

static void describe(iron__pulse *p, uint64_t busy_ns, bool is_well, char *text, size_t room) {
    size_t engines = iron__store_list(p->site->store, NULL, 0);
    iron_error why = {0};

    if (iron__store_failure(p->site->store, &why) != IRON_OK)
        snprintf(text, room, "read-only: %s", why.text);
    else if (!is_well)
        snprintf(text, room, "the disk has not answered for %" PRIu64 " s", busy_ns / SECOND_NS);
    else
        snprintf(text, room, "serving %s, %zu engine%s", p->url, engines, engines == 1 ? "" : "s");
}

static void beat(iron__pulse *p, const char *first) {
    uint64_t busy_ns = iron__store_busy_ns(p->site->store);
    bool is_well = p->patience_ns == 0 || busy_ns < p->patience_ns;
    char text[sizeof p->told];

    describe(p, busy_ns, is_well, text, sizeof text);
    if (strcmp(text, p->told) != 0) {
        iron__notify_tell(p->notify, "%sSTATUS=%s", first, text);
        memcpy(p->told, text, sizeof text);
    }
    if (is_well && p->patience_ns)
        iron__notify_tell(p->notify, "WATCHDOG=1");
}

static struct timespec time_after(uint64_t ns) {
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    ns += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(ns / SECOND_NS);
    at.tv_nsec = (long)(ns % SECOND_NS);
    return at;
}

static void *run(void *context) {
    iron__pulse *p = context;

    pthread_mutex_lock(&p->lock);
    while (!p->is_over) {
        struct timespec until = time_after(p->look_ns);

        while (!p->is_over && pthread_cond_timedwait(&p->wake, &p->lock, &until) != ETIMEDOUT)
            continue;
        if (p->is_over)
            break;
        pthread_mutex_unlock(&p->lock);
        beat(p, "");
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void init(iron__pulse *p, uint64_t watchdog_us) {
    pthread_condattr_t monotonic;

    p->patience_ns = watchdog_us < UINT64_MAX / 1000 ? watchdog_us * 1000 : 0;
    p->look_ns = LOOK_NS;
    if (p->patience_ns && p->patience_ns / 3 < p->look_ns)
        p->look_ns = p->patience_ns / 3 > LOOK_LEAST_NS ? p->patience_ns / 3 : LOOK_LEAST_NS;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void destroy(iron__pulse *p) {
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

iron_status iron__pulse_start(iron__notify *notify, iron__site *site, const char *url,
                              uint64_t watchdog_us, iron__pulse **out, iron_error *err) {
    iron__pulse *p;
    int number;

    *out = NULL;
    if (notify->fd < 0)
        return IRON_OK;
    p = calloc(1, sizeof *p);
    IRON_FAIL_IF(!p, err, IRON_E_NOMEM, "out of memory: the pulse");
    p->notify = notify;
    p->site = site;
    p->url = url;
    init(p, watchdog_us);
    beat(p, "READY=1\n");
    number = pthread_create(&p->thread, NULL, run, p);
    if (number != 0) {
        destroy(p);
        return iron__fail(err, IRON_E_NOMEM, number, "cannot start a thread: %s", strerror(number));
    }
    *out = p;
    return IRON_OK;
}

void iron__pulse_stop(iron__pulse *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_over = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    destroy(p);
}
