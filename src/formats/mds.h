/* SPDX-License-Identifier: MIT */
/*
 * mds.h: the index of an MDS dataset (MosaicML Streaming), which lists its shards in order.
 */
#ifndef IRON_FORMATS_MDS_H
#define IRON_FORMATS_MDS_H

#include "core/json.h"

#include <iron/iron.h>

#include <stdbool.h>

/* An index, parsed. The shards of a dataset share it: the last one that was read is kept. */
typedef struct iron__mds_index iron__mds_index;

/* Reads folder/index.json. *out is NULL if there is none, which is not an error. IRON_E_FORMAT: it
 * is not the index of an MDS dataset. May be called from several threads at once. */
iron_status iron__mds_index_open(const char *folder, iron__mds_index **out, iron_error *err);
void iron__mds_index_close(iron__mds_index *index);

/* The list of shards. Each has the names of its two files, with the subfolder that they are in:
 * raw_data.basename, and zip_data.basename if it is compressed. */
const iron__json *iron__mds_index_shards(const iron__mds_index *index);
/* NULL: the shard has no such file ("raw_data", "zip_data"), or it has no usable name. */
const char *iron__mds_basename(const iron__json *shard, const char *which);
/* The shard with a file of that name, or NULL. */
const iron__json *iron__mds_index_find(const iron__mds_index *index, const char *basename);

/* Whether a name is that of a file in the folder or below it: relative, without "..". */
bool iron__name_is_inside(const char *name);

#endif
