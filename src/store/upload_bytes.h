/* SPDX-License-Identifier: MIT */
/* upload_bytes.h: what upload.c asks of upload_bytes.c, which is how an upload takes bytes. */
#ifndef IRON_STORE_UPLOAD_BYTES_H
#define IRON_STORE_UPLOAD_BYTES_H

#include "store/upload.h"

/* A listener that keeps the batches of an upload, its context. */
void iron__upload_hear(void *context, iron__contribution batch);
/* Reduces what is staged; a part of a token is IRON_FEED_RAGGED. */
iron__feed_outcome iron__upload_flush(iron__upload *upload, iron_error *err);
/* The body's last, shorter batch. */
iron__feed_outcome iron__upload_close_batch(iron__upload *upload, iron_error *err);
/* May the fork serve again? */
bool iron__fork_is_whole(const iron__upload *upload);

#endif
