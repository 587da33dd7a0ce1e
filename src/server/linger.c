/* SPDX-License-Identifier: MIT */
/*
 * linger.c: see linger.h. One thread waits for all of them; a slot for each. The kernel discards
 * (MSG_TRUNC), so nothing is copied.
 *
 * A duplicate shares its epoll entry with the original, which may live longer: it is taken out
 * before it is closed.
 */
#include "server/linger.h"

#include "core/clock.h"
#include "core/fail.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS     256u
#define WAKE      SLOTS /* as an event's number: the thread is called */
#define LINGER_NS UINT64_C(2000000000)
#define LOOK_MS   100

typedef struct slot {
    int fd; /* -1: free */
    uint64_t until_ns;
} slot;

struct iron__linger {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    slot slots[SLOTS];
    uint32_t count;
    bool is_stopping;
    int epoll, wake;
};

static void drop(iron__linger *l, slot *s) {
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    close(s->fd);
    s->fd = -1;
    l->count--;
}

/* A turn for one of them: at most 16 MiB, so that the others have theirs. */
static void drain(iron__linger *l, slot *s) {
    for (int k = 0; k < 16; k++) {
        ssize_t got = recv(s->fd, NULL, (size_t)1 << 20, MSG_TRUNC | MSG_DONTWAIT);

        if (got > 0)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        drop(l, s);
        return;
    }
}

static void drop_late(iron__linger *l) {
    uint64_t now = iron__clock_ns();

    for (uint32_t k = 0; k < SLOTS; k++)
        if (l->slots[k].fd >= 0 && now >= l->slots[k].until_ns)
            drop(l, &l->slots[k]);
}

static void *run(void *context) {
    iron__linger *l = context;
    struct epoll_event events[64];
    bool is_over = false;

    while (!is_over) {
        int timeout, ready;
        uint64_t calls;

        pthread_mutex_lock(&l->mutex);
        timeout = l->count ? LOOK_MS : -1;
        pthread_mutex_unlock(&l->mutex);
        ready = epoll_wait(l->epoll, events, 64, timeout);
        pthread_mutex_lock(&l->mutex);
        for (int k = 0; k < ready; k++) {
            uint32_t number = events[k].data.u32;

            if (number == WAKE)
                (void)!read(l->wake, &calls, sizeof calls);
            else if (l->slots[number].fd >= 0)
                drain(l, &l->slots[number]);
        }
        drop_late(l);
        is_over = l->is_stopping && l->count == 0;
        pthread_mutex_unlock(&l->mutex);
    }
    return NULL;
}

static void call(iron__linger *l) {
    const uint64_t one = 1;

    (void)!write(l->wake, &one, sizeof one);
}

static bool watch_slot(iron__linger *l, int fd, uint32_t number) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u32 = number};

    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The first free slot, or SLOTS. */
static uint32_t free_slot(const iron__linger *l) {
    uint32_t k = 0;

    while (k < SLOTS && l->slots[k].fd >= 0)
        k++;
    return k;
}

void iron__linger_take(iron__linger *l, int fd) {
    uint32_t k;

    if (fd < 0)
        return;
    pthread_mutex_lock(&l->mutex);
    k = l->is_stopping ? SLOTS : free_slot(l);
    if (k < SLOTS && watch_slot(l, fd, k)) {
        l->slots[k] = (slot){fd, iron__clock_ns() + LINGER_NS};
        if (l->count++ == 0)
            call(l);
        fd = -1;
    }
    pthread_mutex_unlock(&l->mutex);
    if (fd >= 0)
        close(fd);
}

static void destroy(iron__linger *l) {
    if (l->epoll >= 0)
        close(l->epoll);
    if (l->wake >= 0)
        close(l->wake);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

iron_status iron__linger_start(iron__linger **out, iron_error *err) {
    iron__linger *l = calloc(1, sizeof *l);

    *out = NULL;
    IRON_FAIL_IF(!l, err, IRON_E_NOMEM, "out of memory: lingering sockets");
    pthread_mutex_init(&l->mutex, NULL);
    for (uint32_t k = 0; k < SLOTS; k++)
        l->slots[k].fd = -1;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->epoll < 0 || l->wake < 0 || !watch_slot(l, l->wake, WAKE) ||
        pthread_create(&l->thread, NULL, run, l) != 0) {
        iron_status status =
            iron__fail(err, IRON_E_IO, errno, "cannot watch sockets: %s", strerror(errno));
        destroy(l);
        return status;
    }
    *out = l;
    return IRON_OK;
}

void iron__linger_stop(iron__linger *l) {
    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    l->is_stopping = true;
    call(l);
    pthread_mutex_unlock(&l->mutex);
    pthread_join(l->thread, NULL);
    destroy(l);
}
