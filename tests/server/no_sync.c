/* SPDX-License-Identifier: MIT */
/*
 * no_sync.c: fsync, fdatasync and msync that succeed without doing anything.
 *
 * Preloaded into the server, this is the negative control of the power failure test: acknowledged
 * feeds must get lost with it. If they do not, the simulated power failure is ineffective.
 */
int fsync(int descriptor);
int fdatasync(int descriptor);
int msync(void *address, unsigned long bytes, int flags);

int fsync(int descriptor) {
    (void)descriptor;
    return 0;
}

int fdatasync(int descriptor) {
    (void)descriptor;
    return 0;
}

int msync(void *address, unsigned long bytes, int flags) {
    (void)address;
    (void)bytes;
    (void)flags;
    return 0;
}
