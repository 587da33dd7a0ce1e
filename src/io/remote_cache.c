/* SPDX-License-Identifier: MIT */
/*
 * remote_cache.c: reads of remote objects, answered from blocks that threads fetch.
 *
 * A block is a range of an object, in memory or on its way. All blocks of all objects take at most
 * 64 MiB. A read that stands alone fetches what it needs, in units of 256 KiB: a Parquet footer or
 * an Arrow header costs no more. Reads that come in order are recognised by cursors, of which each
 * object has a few, for readers in several places: then blocks are up to 4 MiB, and up to four
 * times as much as was read so far is fetched ahead, at most 48 MiB. Several threads that share a
 * cursor's region, a little out of order, count as one reader.
 *
 * Up to eight threads fetch, each with a connection of its own: first the blocks that somebody
 * waits for. Blocks that were read make room first. Reading ahead takes only such room; a read that
 * waits may also take blocks that were fetched ahead and not read yet.
 *
 * Invariants, under the mutex: 1. Blocks of an object do not overlap. 2. A block with waiters or
 * pins is not freed. 3. Each reader waits for one block at a time, so that waiting readers cannot
 * keep all the room from each other.
 */
#include "io/remote_internal.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/thread_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_BYTES_MAX ((uint64_t)64 << 20)
#define AHEAD_BYTES_MAX ((uint64_t)48 << 20)
#define BLOCK_BYTES     ((uint64_t)4 << 20)
#define UNIT_BYTES      ((uint64_t)256 << 10)
#define THREADS         8u
#define CURSORS         16u
#define SPARES          16u
#define WAIT_NS         50000000u
#define OLD_USES        256u
#define IDLE_NS         (UINT64_C(2) * 1000000000)
#define UNREAD_MAX_NS   (UINT64_C(10) * 1000000000) /* then reading ahead is given up */

typedef enum block_state { QUEUED, FETCHING, READY, BROKEN } block_state;

typedef struct block {
    struct block *next;
    iron__remote *remote;
    uint64_t at, bytes;
    unsigned char *data;
    block_state state;
    unsigned waiters;  /* readers that wait until it is ready or broken */
    unsigned pins;     /* readers that copy from it */
    bool is_abandoned; /* its reader was cancelled: stop fetching it */
    uint64_t read;     /* how many bytes were read from it */
    uint64_t used;     /* when it was last used, or queued: a count, not a time */
    iron_error error;  /* of a broken block */
} block;

/* A place up to which an object is read in order. */
struct iron__remote_cursor {
    uint64_t next;    /* the end of the furthest read */
    uint64_t run;     /* bytes that were read in order; 0: one read alone */
    uint64_t used;    /* as in block */
    uint64_t time_ns; /* of the last read */
};

static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cache_done;                            /* a block is ready, broken or free */
static pthread_cond_t cache_work = PTHREAD_COND_INITIALIZER; /* a block was queued */
static struct {
    block *blocks;
    uint64_t bytes;                /* of all blocks and spares */
    uint64_t count;                /* of uses */
    unsigned char *spares[SPARES]; /* of BLOCK_BYTES: new memory costs a page fault per 4 KiB */
    unsigned spare_count;
    pthread_t threads[THREADS];
    unsigned thread_count, idle, queued;
    atomic_bool is_ending;
} cache;

/* Memory. Blocks have 256 KiB or less, or else 4 MiB. */

static uint64_t room_of(uint64_t bytes) { return bytes <= UNIT_BYTES ? bytes : BLOCK_BYTES; }

static void free_block(block *b) {
    block **at = &cache.blocks;

    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    if (b->state == QUEUED)
        cache.queued--;
    if (b->bytes > UNIT_BYTES && cache.spare_count < SPARES) {
        cache.spares[cache.spare_count++] = b->data;
    } else {
        free(b->data);
        cache.bytes -= room_of(b->bytes);
    }
    free(b);
}

static uint64_t last_read_ns(const iron__remote *remote) {
    uint64_t last = 0;

    for (unsigned k = 0; remote->cursors && k < CURSORS; k++)
        if (remote->cursors[k].time_ns > last)
            last = remote->cursors[k].time_ns;
    return last;
}

/* Whether a block is probably not read again: it was read completely; or in part and some time ago,
 * as single reads do; or its object is not being read. */
static bool is_spent(const block *b, uint64_t now) {
    return b->state == READY &&
           (b->read >= b->bytes || (b->read > 0 && cache.count - b->used > OLD_USES) ||
            now - last_read_ns(b->remote) > IDLE_NS);
}

/* The block to give up first: one that is spent, or, for a reader that waits, any that nobody uses;
 * of these the one that was not used for the longest time. */
static block *find_victim(bool is_urgent) {
    uint64_t now = iron__clock_ns();
    block *victim = NULL;
    bool was_spent = false;

    for (block *b = cache.blocks; b; b = b->next) {
        bool is_last = is_spent(b, now);

        if (b->waiters == 0 && b->pins == 0 && b->state != FETCHING && (is_last || is_urgent) &&
            (!victim || is_last > was_spent || (is_last == was_spent && b->used < victim->used))) {
            victim = b;
            was_spent = is_last;
        }
    }
    return victim;
}

/* Memory for a block; NULL if there is none or, with errno 0, no room at present. */
static unsigned char *take_memory(uint64_t bytes, bool is_urgent) {
    uint64_t room = room_of(bytes);
    unsigned char *data;

    errno = 0;
    for (;;) {
        if (room == BLOCK_BYTES && cache.spare_count > 0)
            return cache.spares[--cache.spare_count];
        if (cache.bytes + room <= CACHE_BYTES_MAX)
            break;
        if (cache.spare_count > 0) {
            free(cache.spares[--cache.spare_count]);
            cache.bytes -= BLOCK_BYTES;
        } else {
            block *victim = find_victim(is_urgent);

            if (!victim)
                return NULL;
            free_block(victim);
        }
    }
    data = malloc(room);
    if (data)
        cache.bytes += room;
    return data;
}

/* Adds a block to those of the cache; NULL as for take_memory. */
static block *make_block(iron__remote *remote, uint64_t at, uint64_t bytes, block_state state,
                         bool is_urgent) {
    unsigned char *data = take_memory(bytes, is_urgent);
    block *b = data ? malloc(sizeof *b) : NULL;

    if (!b) {
        cache.bytes -= data ? room_of(bytes) : 0;
        free(data);
        return NULL;
    }
    *b = (block){.next = cache.blocks,
                 .remote = remote,
                 .at = at,
                 .bytes = bytes,
                 .data = data,
                 .state = state,
                 .used = cache.count++};
    cache.blocks = b;
    return b;
}

static block *find_block(const iron__remote *remote, uint64_t at) {
    for (block *b = cache.blocks; b; b = b->next)
        if (b->remote == remote && at >= b->at && at - b->at < b->bytes)
            return b;
    return NULL;
}

/* Threads. */

/* The next block to fetch: one that somebody waits for, else the one that was queued first. */
static block *next_block(void) {
    block *best = NULL;

    for (block *b = cache.blocks; b; b = b->next)
        if (b->state == QUEUED &&
            (!best || (b->waiters > 0) > (best->waiters > 0) ||
             ((b->waiters > 0) == (best->waiters > 0) && b->used < best->used)))
            best = b;
    return best;
}

static bool is_block_wanted(void *context) {
    const block *b = context;
    bool is_wanted;

    if (atomic_load(&cache.is_ending))
        return false;
    pthread_mutex_lock(&cache_mutex);
    is_wanted = b->waiters > 0 ||
                (!b->is_abandoned && iron__clock_ns() - last_read_ns(b->remote) < UNREAD_MAX_NS);
    pthread_mutex_unlock(&cache_mutex);
    return is_wanted;
}

static void *fetch_main(void *argument) {
    pthread_mutex_lock(&cache_mutex);
    while (!atomic_load(&cache.is_ending)) {
        block *b = next_block();
        iron__exchange x = {
            .kind = IRON_EXCHANGE_RANGE, .is_wanted = is_block_wanted, .context = b};
        iron_status status;

        if (!b) {
            cache.idle++;
            pthread_cond_wait(&cache_work, &cache_mutex);
            cache.idle--;
            continue;
        }
        x.remote = b->remote;
        x.at = b->at;
        x.to = b->data;
        x.room = (size_t)b->bytes;
        b->state = FETCHING;
        cache.queued--;
        pthread_mutex_unlock(&cache_mutex);
        status = iron__exchange_run(&x, &b->error);
        pthread_mutex_lock(&cache_mutex);
        b->state = status == IRON_OK ? READY : BROKEN;
        if (b->state == BROKEN && b->waiters == 0)
            free_block(b); /* it was to be read ahead; a reader who needs it will try again */
        pthread_cond_broadcast(&cache_done);
    }
    pthread_mutex_unlock(&cache_mutex);
    return argument;
}

static void wake_thread(void) {
    if (cache.queued > cache.idle && cache.thread_count < THREADS &&
        iron__thread_start(&cache.threads[cache.thread_count], fetch_main, NULL) == 0)
        cache.thread_count++;
    pthread_cond_signal(&cache_work);
}

/* Queues the block that contains a byte that no block has: from the start of its unit of 256 KiB to
 * the end of `unit`, as far as the object goes and no other block is in the way. */
static block *add_block(iron__remote *remote, uint64_t at, uint64_t unit, bool is_urgent) {
    uint64_t first = at - at % UNIT_BYTES, last = at - at % unit + (unit - 1);
    block *b;

    if (last - first >= BLOCK_BYTES)
        last = first + (BLOCK_BYTES - 1);
    if (last >= remote->bytes)
        last = remote->bytes - 1;
    for (b = cache.blocks; b; b = b->next) {
        if (b->remote != remote)
            continue;
        if (b->at <= at && b->at + b->bytes > first)
            first = b->at + b->bytes;
        if (b->at > at && b->at <= last)
            last = b->at - 1;
    }
    b = make_block(remote, first, last - first + 1, QUEUED, is_urgent);
    if (b) {
        cache.queued++;
        wake_thread();
    }
    return b;
}

/* The end of the process, and fork. */

/* Threads must not use libcurl any more when its library cleans up at the end of the process. */
static void end_threads(void) {
    atomic_store(&cache.is_ending, true);
    pthread_mutex_lock(&cache_mutex);
    pthread_cond_broadcast(&cache_work);
    pthread_cond_broadcast(&cache_done);
    pthread_mutex_unlock(&cache_mutex);
    for (unsigned k = 0; k < cache.thread_count; k++)
        pthread_join(cache.threads[k], NULL);
}

/* A child of fork has no threads and must not use its parent's sockets; what was on its way is
 * forgotten. */
static void before_fork(void) {
    pthread_mutex_lock(&cache_mutex);
    iron__remote_before_fork();
}

static void after_fork(void) {
    iron__remote_after_fork(false);
    pthread_mutex_unlock(&cache_mutex);
}

static void after_fork_in_child(void) {
    iron__remote_after_fork(true);
    pthread_mutex_unlock(&cache_mutex);
    iron__condition_init(&cache_done);
    pthread_cond_init(&cache_work, NULL);
    cache.thread_count = cache.idle = 0;
    for (block *b = cache.blocks, *next; b; b = next) {
        next = b->next;
        b->waiters = b->pins = 0;
        if (b->state != READY)
            free_block(b);
    }
}

static void set_up(void) {
    iron__condition_init(&cache_done);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    atexit(end_threads);
}

void iron__remote_cache_add(iron__remote *remote, const void *data, size_t bytes) {
    block *b;

    if (bytes == 0)
        return;
    pthread_once(&cache_once, set_up);
    pthread_mutex_lock(&cache_mutex);
    b = make_block(remote, 0, bytes, READY, false);
    if (b) {
        memcpy(b->data, data, bytes);
        b->read = bytes; /* makes room when it is needed: many files may be opened */
    }
    pthread_mutex_unlock(&cache_mutex);
}

/* Reads. */

/* Finds the cursor that a read continues, or starts one; updates it. NULL: out of memory. */
static struct iron__remote_cursor *move_cursor(iron__remote *remote, uint64_t at, size_t want) {
    struct iron__remote_cursor *oldest, *c;
    uint64_t now = iron__clock_ns();

    if (!remote->cursors)
        remote->cursors = calloc(CURSORS, sizeof *remote->cursors);
    if (!remote->cursors)
        return NULL;
    oldest = remote->cursors;
    for (c = remote->cursors; c < remote->cursors + CURSORS; c++) {
        uint64_t reach = c->run > BLOCK_BYTES ? AHEAD_BYTES_MAX : BLOCK_BYTES;

        if (c->used < oldest->used)
            oldest = c;
        if (c->used == 0)
            continue;
        if (at >= c->next && at - c->next < reach) {
            c->run += at + want - c->next;
            c->next = at + want;
            break;
        }
        /* a thread of several that is late */
        if (at < c->next && c->run > 0 && c->next - at <= CACHE_BYTES_MAX) {
            if (at + want > c->next)
                c->next = at + want;
            break;
        }
    }
    if (c == remote->cursors + CURSORS) {
        c = oldest;
        *c = (struct iron__remote_cursor){.next = at + want};
    }
    c->used = ++cache.count;
    c->time_ns = now;
    return c;
}

/* Queues what is missing of bytes at ... end-1; false: there is no room. `is_urgent`: a reader
 * waits for the first of them. */
static bool queue_range(iron__remote *remote, uint64_t at, uint64_t end, uint64_t unit,
                        bool is_urgent) {
    for (block *b; at < end; at = b->at + b->bytes, is_urgent = false)
        if (!(b = find_block(remote, at)) && !(b = add_block(remote, at, unit, is_urgent)))
            return false;
    return true;
}

/* Queues what the read needs, then what comes after it. */
static void queue_blocks(iron__remote *remote, uint64_t at, uint64_t end, uint64_t run,
                         uint64_t next) {
    uint64_t ahead = run < AHEAD_BYTES_MAX / 4 ? 4 * run : AHEAD_BYTES_MAX, unit = UNIT_BYTES;

    while (unit < BLOCK_BYTES && unit < (ahead > end - at ? ahead : end - at))
        unit *= 2;
    if (!queue_range(remote, at, end, unit, true))
        return;
    if (next > end)
        end = next;
    ahead = remote->bytes - end < ahead ? remote->bytes : end + ahead;
    (void)queue_range(remote, end, ahead, unit, false);
}

/* The reader was cancelled: what is fetched for it is given up. */
static void abandon(const iron__remote *remote) {
    for (block *b = cache.blocks, *next; b; b = next) {
        next = b->next;
        if (b->remote != remote || b->waiters > 0)
            continue;
        b->is_abandoned = true;
        if (b->state == QUEUED)
            free_block(b);
    }
}

/* Waits until the block with this byte is ready, and pins it. */
static iron_status wait_for_block(iron__remote *remote, uint64_t at, const atomic_bool *stop,
                                  block **out, iron_error *err) {
    for (;;) {
        block *b = find_block(remote, at);
        struct timespec until;

        if ((stop && atomic_load(stop)) || atomic_load(&cache.is_ending)) {
            abandon(remote);
            IRON_FAIL(err, IRON_E_CANCELLED, "reading %.120s was cancelled", remote->name);
        }
        if (!b) { /* given up for another reader, or no room at first */
            b = add_block(remote, at, UNIT_BYTES, true);
            if (!b && errno == ENOMEM)
                return iron__no_memory(err, remote->name);
        }
        if (b && b->state == READY) {
            b->pins++;
            *out = b;
            return IRON_OK;
        }
        if (b && b->state == BROKEN) {
            iron_error why = b->error;

            if (why.status != IRON_E_CANCELLED) {
                if (b->waiters == 0)
                    free_block(b);
                return iron__fail_again(err, &why);
            }
            b->state = QUEUED; /* it was given up before this reader came */
            cache.queued++;
            wake_thread();
        }
        if (b) {
            b->is_abandoned = false;
            b->waiters++;
        }
        until = iron__deadline_after(WAIT_NS);
        (void)pthread_cond_timedwait(&cache_done, &cache_mutex, &until);
        if (b)
            b->waiters--;
    }
}

iron_status iron__remote_read(iron__remote *remote, uint64_t at, void *to, size_t want, size_t *got,
                              const atomic_bool *stop, iron_error *err) {
    struct iron__remote_cursor *cursor;
    iron_status status = IRON_OK;
    size_t done = 0;

    *got = 0;
    IRON_FAIL_IF(!remote->has_ranges, err, IRON_E_UNSUPPORTED,
                 "%.120s: its server has no ranges; it can be read from start to end only",
                 remote->name);
    if (at >= remote->bytes)
        return IRON_OK;
    if (want > remote->bytes - at)
        want = (size_t)(remote->bytes - at);
    if (remote->whole) {
        memcpy(to, remote->whole + at, want);
        *got = want;
        return IRON_OK;
    }
    pthread_once(&cache_once, set_up);
    pthread_mutex_lock(&cache_mutex);
    cursor = move_cursor(remote, at, want);
    if (!cursor)
        status = iron__no_memory(err, remote->name);
    while (status == IRON_OK && done < want) {
        block *b = NULL;
        size_t part;

        queue_blocks(remote, at + done, at + want, cursor->run, cursor->next);
        status = wait_for_block(remote, at + done, stop, &b, err);
        if (!b)
            break;
        part = (size_t)(b->at + b->bytes - (at + done));
        part = part < want - done ? part : want - done;
        pthread_mutex_unlock(&cache_mutex);
        memcpy((char *)to + done, b->data + (at + done - b->at), part);
        pthread_mutex_lock(&cache_mutex);
        b->pins--;
        b->read += part;
        b->used = cache.count++;
        done += part;
        if (b->read >= b->bytes)
            pthread_cond_broadcast(&cache_done); /* room for a reader that waits for it */
    }
    pthread_mutex_unlock(&cache_mutex);
    if (status == IRON_OK && atomic_load(&remote->is_changed))
        status = iron__remote_fail_changed(remote, err);
    if (status == IRON_OK)
        *got = done;
    return status;
}
