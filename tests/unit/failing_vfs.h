/* SPDX-License-Identifier: MIT */
/*
 * failing_vfs.h: a VFS for SQLite in which the n-th write, truncation or sync fails, once or from
 * then on. Everything else goes to the default VFS.
 */
#ifndef TESTS_UNIT_FAILING_VFS_H
#define TESTS_UNIT_FAILING_VFS_H

#include "support.h"

#include <sqlite3.h>
#include <stdatomic.h>

/* All atomic: the writer looks at a full disk by itself, while a test changes what fails. */
typedef struct vfs_faults {
    atomic_bool is_armed;
    atomic_uint calls;       /* since it was armed */
    atomic_uint fail_at;     /* 0: never */
    atomic_bool is_lasting;  /* all after it fail too */
    atomic_bool only_main;   /* counts the database file alone, which only checkpoints write */
    atomic_bool only_writes; /* neither truncations nor syncs */
    atomic_int code;         /* of a failing write: SQLITE_IOERR_WRITE or SQLITE_FULL */
    atomic_uint failed;      /* calls that failed */
} vfs_faults;

static vfs_faults faults;

typedef struct failing_file {
    sqlite3_file base;
    sqlite3_file *real; /* directly after this struct */
    bool is_main;
} failing_file;

static inline sqlite3_file *real_of(sqlite3_file *file) { return ((failing_file *)file)->real; }

static inline bool fails_now(const sqlite3_file *file) {
    unsigned call;

    if (!atomic_load(&faults.is_armed) ||
        (faults.only_main && !((const failing_file *)file)->is_main))
        return false;
    call = atomic_fetch_add(&faults.calls, 1) + 1;
    if (!faults.fail_at || (faults.is_lasting ? call < faults.fail_at : call != faults.fail_at))
        return false;
    atomic_fetch_add(&faults.failed, 1);
    return true;
}

static inline int f_close(sqlite3_file *f) { return real_of(f)->pMethods->xClose(real_of(f)); }
static inline int f_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at) {
    return real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}
static inline int f_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at) {
    if (fails_now(f)) {
        sqlite3_int64 size = 0;

        /* half of it is written, as by a torn write, or by a full disk where the file grows */
        real_of(f)->pMethods->xFileSize(real_of(f), &size);
        if (faults.code != SQLITE_FULL || at >= size)
            real_of(f)->pMethods->xWrite(real_of(f), from, n / 2, at);
        return faults.code;
    }
    return real_of(f)->pMethods->xWrite(real_of(f), from, n, at);
}
static inline int f_truncate(sqlite3_file *f, sqlite3_int64 size) {
    return !faults.only_writes && fails_now(f) ? SQLITE_IOERR_TRUNCATE
                                               : real_of(f)->pMethods->xTruncate(real_of(f), size);
}
static inline int f_sync(sqlite3_file *f, int flags) {
    return !faults.only_writes && fails_now(f) ? SQLITE_IOERR_FSYNC
                                               : real_of(f)->pMethods->xSync(real_of(f), flags);
}
static inline int f_size(sqlite3_file *f, sqlite3_int64 *size) {
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}
static inline int f_lock(sqlite3_file *f, int level) {
    return real_of(f)->pMethods->xLock(real_of(f), level);
}
static inline int f_unlock(sqlite3_file *f, int level) {
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}
static inline int f_reserved(sqlite3_file *f, int *out) {
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}
static inline int f_control(sqlite3_file *f, int op, void *arg) {
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}
static inline int f_sector(sqlite3_file *f) {
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}
static inline int f_traits(sqlite3_file *f) {
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}
static inline int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}
static inline int f_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}
static inline void f_shm_barrier(sqlite3_file *f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); }
static inline int f_shm_unmap(sqlite3_file *f, int remove_it) {
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove_it);
}

static inline int failing_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                               int *out_flags) {
    static const sqlite3_io_methods methods = {
        2,          f_close,       f_read,      f_write,   f_truncate, f_sync,   f_size,
        f_lock,     f_unlock,      f_reserved,  f_control, f_sector,   f_traits, f_shm_map,
        f_shm_lock, f_shm_barrier, f_shm_unmap, NULL,      NULL,
    };
    sqlite3_vfs *real = vfs->pAppData;
    failing_file *own = (failing_file *)file;
    int code;

    own->real = (sqlite3_file *)(own + 1);
    own->is_main = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    code = real->xOpen(real, name, own->real, flags, out_flags);
    own->base.pMethods = own->real->pMethods ? &methods : NULL;
    return code;
}

/* Becomes the default for connections that are opened from now on. */
static inline void failing_vfs_register(void) {
    static sqlite3_vfs vfs;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);

    vfs = *real;
    vfs.zName = "failing";
    vfs.pNext = NULL;
    vfs.szOsFile = (int)sizeof(failing_file) + real->szOsFile;
    vfs.pAppData = real;
    vfs.xOpen = failing_open;
    assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

static inline void faults_arm(unsigned fail_at, bool is_lasting, int code) {
    faults.fail_at = fail_at;
    faults.is_lasting = is_lasting;
    faults.code = code;
    atomic_store(&faults.calls, 0);
    atomic_store(&faults.failed, 0);
    atomic_store(&faults.is_armed, true);
}

static inline void faults_disarm(void) { atomic_store(&faults.is_armed, false); }

#endif
