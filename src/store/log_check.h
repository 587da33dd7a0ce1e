/* SPDX-License-Identifier: MIT */
/*
 * log_check.h: was a database's log damaged, or only interrupted?
 *
 * SQLite reads its write-ahead log up to the first frame that is not right and forgets the rest: a
 * torn end is what a crash leaves, and it was never acknowledged. But one flipped byte in the
 * middle of a log looks the same to it, and all commits behind that would go without a word. They
 * can be told apart, for a commit is synced before the next begins: a frame of a later transaction
 * proves that the one before it was whole once.
 */
#ifndef IRON_STORE_LOG_CHECK_H
#define IRON_STORE_LOG_CHECK_H

#include <iron/iron.h>

/* IRON_OK: no such file, an empty one, whole, or torn at its end. IRON_E_FORMAT: damaged. */
iron_status iron__log_check(const char *path, iron_error *err);

#endif
