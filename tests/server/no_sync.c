/* SPDX-License-Identifier: MIT */
/*
 * no_sync.c: a disk that lies: fsync and its kind say yes and do nothing.
 *
 * Preloaded into the server it is the negative control of the power cut: with it acknowledged feeds
 * must get lost, or the cut is none and proves nothing about a server without it.
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
