/* SPDX-License-Identifier: MIT */
/*
 * inspection.h: is the whole file what it should be? Rows are verified when they are read; but an
 * index that no longer leads to a row would let a key be taken twice, and only a look at everything
 * finds that. It takes about a second for a million feeds: a small file is inspected before it is
 * used, a large one meanwhile, by a thread of its own that only reads; damage then makes the store
 * read-only like a failed write.
 */
#ifndef IRON_STORE_INSPECTION_H
#define IRON_STORE_INSPECTION_H

#include "store/inside.h"

/* On any connection. IRON_E_CANCELLED: it was interrupted (sqlite3_progress_handler). */
iron_status iron__database_inspect(iron__database *db, iron_error *err);

/* At once, if the file is small; else begins, and iron__inspection_stop ends it. */
iron_status iron__inspect_now(iron__store *store, iron_error *err);
iron_status iron__inspection_start(iron__store *store, iron_error *err);
void iron__inspection_stop(iron__store *store);

#endif
