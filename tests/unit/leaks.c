/* SPDX-License-Identifier: MIT */
/*
 * leaks.c: a leak check that is linked into every C test of a build with the address sanitizer, and
 * is free for tests that free all of their memory.
 *
 * The sanitizer's search walks four times over all 2^28 regions in which its allocator for aarch64
 * could have placed a block: 4 s per process, whatever the process did. Here hooks of the allocator
 * note which blocks are in use. A block that was freed cannot have leaked, so at exit the sanitizer
 * searches only if blocks remain; it decides whether one of them is a leak, and reports it. Blocks
 * of the dynamic linker (the tables of threads whose stacks libc keeps) are not ours; the sanitizer
 * ignores them as well. leaking.c proves that leaks are found.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS ((size_t)1 << 21)

/* NOLINTBEGIN(bugprone-reserved-identifier): gcc and libc do not install headers of these. */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                              void (*)(const volatile void *));
/* Frees what libc keeps for itself: changed environment, time zone, the text of dlerror. */
void __libc_freeres(void) __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier) */

static const volatile void **blocks; /* a hash table with linear probing; NULL: free */
static size_t block_count;
static bool is_complete; /* `blocks` has all blocks since the start */
static atomic_flag lock = ATOMIC_FLAG_INIT;

/* Called before the first constructor. */
const char *__asan_default_options(void) { return "leak_check_at_exit=0"; }

static void lock_blocks(void) {
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
}

static void unlock_blocks(void) { atomic_flag_clear_explicit(&lock, memory_order_release); }

static size_t home_of(const volatile void *block) {
    return (size_t)(((uint64_t)(uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u >> 43) % SLOTS;
}

static void add_block(const volatile void *block, size_t bytes) {
    size_t at = home_of(block);

    (void)bytes;
    lock_blocks();
    if (block_count >= SLOTS / 2)
        is_complete = false;
    if (is_complete) {
        while (blocks[at])
            at = (at + 1) % SLOTS;
        blocks[at] = block;
        block_count++;
    }
    unlock_blocks();
}

/* Moves later blocks of a run back, so that the slot at `hole` can be free. */
static void close_hole(size_t hole) {
    for (size_t at = (hole + 1) % SLOTS; blocks[at]; at = (at + 1) % SLOTS) {
        if ((at - home_of(blocks[at])) % SLOTS < (at - hole) % SLOTS)
            continue; /* would come before its home */
        blocks[hole] = blocks[at];
        hole = at;
    }
    blocks[hole] = NULL;
}

/* A block that is not there was allocated before the hooks were. */
static void remove_block(const volatile void *block) {
    size_t at = home_of(block);

    lock_blocks();
    while (blocks[at] && blocks[at] != block)
        at = (at + 1) % SLOTS;
    if (block && blocks[at]) {
        close_hole(at);
        block_count--;
    }
    unlock_blocks();
}

/* The innermost frame is the allocator's, the next its caller. */
static bool is_of_dynamic_linker(const volatile void *block) {
    void *frames[2];
    int thread;
    Dl_info caller, linker;

    return __asan_get_alloc_stack((void *)(uintptr_t)block, frames, 2, &thread) == 2 &&
           dladdr(frames[1], &caller) && dladdr((void *)_r_debug.r_brk, &linker) &&
           caller.dli_fbase == linker.dli_fbase;
}

static bool are_all_freed(void) {
    if (!is_complete)
        return false;
    for (size_t at = 0; at < SLOTS && block_count > 0; at++)
        if (blocks[at] && !is_of_dynamic_linker(blocks[at]))
            return false;
    return true;
}

/* Threads of a driver, such as PoCL's, may still use libc. */
static bool is_alone(void) {
    struct stat tasks; /* a link for each thread, besides `.` and `..` */

    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

static void search_at_exit(void) {
    if (are_all_freed())
        return;
    fflush(stdout); /* a report ends the process at once */
    if (__libc_freeres && is_alone())
        __libc_freeres();
    if (!are_all_freed())
        __lsan_do_leak_check();
}

__attribute__((constructor)) static void start(void) {
    static char output[BUFSIZ];

    /* libc would never free the buffer that it allocates */
    setvbuf(stdout, output, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof output);
    blocks = mmap(NULL, SLOTS * sizeof *blocks, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    is_complete = blocks != MAP_FAILED &&
                  pthread_atfork(lock_blocks, unlock_blocks, unlock_blocks) == 0 &&
                  __sanitizer_install_malloc_and_free_hooks(add_block, remove_block) != 0;
    /* the first registered runs last */
    if (atexit(search_at_exit) != 0) {
        fputs("leaks: the search at exit could not be registered\n", stderr);
        abort();
    }
}
