/* SPDX-License-Identifier: MIT */
/*
 * reserve.c: disk space that is kept for what makes room.
 *
 * Deleting an engine on a full disk needs space: the deletion goes to the write-ahead log, and the
 * log can be emptied only into a file that may have to grow. So the file `reserve` beside the
 * database holds allocated blocks that no other program can take. While the disk is full, the
 * writer gives them back part by part to deletions, cleanup and checkpoints, never to feeds; when
 * there is room again it takes them back.
 *
 * Free space is tested by allocating it: a number from statvfs knows nothing of quotas. Where the
 * file system cannot allocate ahead (EOPNOTSUPP) there is no reserve, and statvfs has to do.
 */
#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define RESERVE_BYTES ((uint64_t)64 << 20)
#define PART_MIN      ((uint64_t)64 << 10)
#define PARTS         8u

void iron__reserve_open(iron__reserve *r, int directory, uint64_t wanted) {
    struct statvfs disk;
    struct stat info;

    *r = (iron__reserve){.fd = -1, .directory = directory, .wanted = wanted};
    if (wanted == IRON_RESERVE_AUTO) { /* of a small disk an eighth */
        r->wanted = RESERVE_BYTES;
        if (fstatvfs(directory, &disk) == 0 &&
            (uint64_t)disk.f_blocks * disk.f_frsize / PARTS < r->wanted)
            r->wanted = (uint64_t)disk.f_blocks * disk.f_frsize / PARTS;
    }
    r->fd = openat(directory, "reserve", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (r->fd >= 0 && fstat(r->fd, &info) == 0)
        r->held = (uint64_t)info.st_blocks * 512 < (uint64_t)info.st_size
                      ? (uint64_t)info.st_blocks * 512
                      : (uint64_t)info.st_size;
    if (r->held > r->wanted)
        iron__reserve_trim(r, r->wanted);
}

void iron__reserve_close(iron__reserve *r) {
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

uint64_t iron__reserve_headroom(const iron__reserve *r) {
    return r->wanted / PARTS > PART_MIN ? r->wanted / PARTS : PART_MIN;
}

void iron__reserve_trim(iron__reserve *r, uint64_t bytes) {
    if (r->held <= bytes || ftruncate(r->fd, (off_t)bytes) != 0)
        return;
    (void)fsync(r->fd); /* some file systems reuse blocks only when their release is on the disk */
    r->held = bytes;
}

bool iron__reserve_give(iron__reserve *r) {
    uint64_t part = iron__reserve_headroom(r), before = r->held;

    iron__reserve_trim(r, r->held > part ? r->held - part : 0);
    return r->held < before;
}

bool iron__reserve_grow(iron__reserve *r, uint64_t bytes) {
    struct statvfs disk;
    uint64_t part = iron__reserve_headroom(r);

    if (r->held >= bytes)
        return true;
    if (r->fd < 0)
        r->fd = openat(r->directory, "reserve", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (r->fd >= 0 && r->held < bytes) {
        uint64_t more = bytes - r->held < part ? bytes - r->held : part;

        if (fallocate(r->fd, 0, (off_t)r->held, (off_t)more) == 0) {
            r->held += more;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EOPNOTSUPP || errno == ENOSYS) {
            r->wanted = 0;
            return fstatvfs(r->directory, &disk) == 0 &&
                   (uint64_t)disk.f_bavail * disk.f_frsize >= bytes;
        }
        (void)ftruncate(r->fd, (off_t)r->held); /* part of it may have been allocated */
        return false;
    }
    return r->fd >= 0;
}
