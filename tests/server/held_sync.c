/* SPDX-License-Identifier: MIT */
/*
 * held_sync.c: a disk that can be held: fsync and fdatasync wait for as long as the file named by
 * IRON_TEST_HOLD is there. Preloaded into the server it keeps a start or a commit half way until a
 * test has looked.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_while_held(void) {
    const char *path = getenv("IRON_TEST_HOLD");

    while (path && access(path, F_OK) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

int fsync(int descriptor) {
    wait_while_held();
    return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor) {
    wait_while_held();
    return (int)syscall(SYS_fdatasync, descriptor);
}
