/* SPDX-License-Identifier: MIT */
/*
 * held_sync.c: preloaded into the server, gives a test control over waiting.
 *
 * fsync and fdatasync block while the file named by IRON_TEST_HOLD exists, so a test can inspect
 * the server in the middle of a start or a commit. IRON_TEST_BUSY_MS replaces the time that SQLite
 * waits for a locked database, which is ten seconds.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_while_held(void) {
    const char *path = getenv("IRON_TEST_HOLD");

    while (path && access(path, F_OK) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

int sqlite3_busy_timeout(void *database, int milliseconds);

int sqlite3_busy_timeout(void *database, int milliseconds) {
    int (*real)(void *, int) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "sqlite3_busy_timeout");
    const char *wanted = getenv("IRON_TEST_BUSY_MS");

    memcpy(&real, &symbol, sizeof real);
    return real(database, wanted ? atoi(wanted) : milliseconds);
}

int fsync(int descriptor) {
    wait_while_held();
    return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor) {
    wait_while_held();
    return (int)syscall(SYS_fdatasync, descriptor);
}
