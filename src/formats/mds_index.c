/* SPDX-License-Identifier: MIT */
/*
 * mds_index.c: reading index.json of an MDS dataset.
 *
 * Every shard needs it, and it grows with the number of shards: so the last index that was read is
 * kept, parsed and sorted by names. It is used again while the file is unchanged, which its time of
 * change can tell only if that is some time ago when it is read.
 */
#include "formats/mds.h"

#include "core/fail.h"
#include "core/memory.h"
#include "formats/format.h"
#include "io/remote.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Times of change are as coarse as this on some filesystems. */
#define SETTLED_SECONDS 3

/* A name in an index, and the shard that it belongs to. */
typedef struct shard_name {
    const char *name;
    const iron__json *shard;
} shard_name;

/* Which version of a file was read. */
typedef struct version {
    uint64_t device, inode, bytes;
    struct timespec changed;
    bool is_settled; /* another version would differ in the above */
} version;

struct iron__mds_index {
    size_t users; /* guarded by the cache's mutex */
    char *path;
    version version;
    const iron__json *root; /* NULL: could not be parsed */
    const iron__json *shards;
    shard_name *names;
    size_t name_count;
    iron_error fault; /* why it is not an index; status IRON_OK: it is one */
};

static struct {
    pthread_mutex_t mutex;
    iron__mds_index *last;
} cache = {.mutex = PTHREAD_MUTEX_INITIALIZER};

bool iron__name_is_inside(const char *name) {
    if (name[0] == '\0' || name[0] == '/')
        return false;
    for (const char *at = name; *at; at += strcspn(at, "/"), at += *at == '/')
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    return true;
}

const char *iron__mds_basename(const iron__json *shard, const char *which) {
    const iron__json *file = iron__json_member(shard, which);
    const char *name = iron__json_get_text(iron__json_member(file, "basename"));

    return name && iron__name_is_inside(name) ? name : NULL;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const shard_name *)a)->name, ((const shard_name *)b)->name);
}

static void destroy(iron__mds_index *index) {
    if (!index)
        return;
    iron__json_destroy(iron__allocator_default(), index->root);
    free(index->names);
    free(index->path);
    free(index);
}

/* False: the file is not there, or is not a file; opening it then says which. */
static bool read_version(const char *path, version *out) {
    iron__input_identity identity;
    struct timespec now;
    struct stat info;

    *out = (version){.is_settled = false};
    if (iron__path_is_remote(path)) {
        if (iron__input_identify(path, &identity, NULL) != IRON_OK)
            return false;
        *out = (version){identity.device, identity.inode, identity.bytes, {0, 0}, true};
        return true;
    }
    if (stat(path, &info) != 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (version){info.st_dev, info.st_ino, (uint64_t)info.st_size, info.st_mtim,
                     now.tv_sec - info.st_mtim.tv_sec > SETTLED_SECONDS};
    return true;
}

static bool is_same(const version *a, const version *b) {
    return a->is_settled && a->device == b->device && a->inode == b->inode &&
           a->bytes == b->bytes && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

static iron_status sort_names(iron__mds_index *index, iron_error *err) {
    size_t count = iron__json_length(index->shards);

    index->names = calloc(2 * count + 1, sizeof *index->names);
    if (!index->names)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %.100s", index->path);
    for (size_t k = 0; k < count; k++) {
        const iron__json *shard = iron__json_at(index->shards, k);
        const char *raw = iron__mds_basename(shard, "raw_data");
        const char *zip = iron__mds_basename(shard, "zip_data");

        if (raw)
            index->names[index->name_count++] = (shard_name){raw, shard};
        if (zip)
            index->names[index->name_count++] = (shard_name){zip, shard};
    }
    qsort(index->names, index->name_count, sizeof *index->names, by_name);
    return IRON_OK;
}

/* Parses the text of an index. What is wrong with it is kept as its fault. */
static iron_status parse(iron__mds_index *index, const char *text, size_t length, iron_error *err) {
    iron_error fault = {0};
    iron_status status =
        iron__json_parse(text, length, iron__allocator_default(), &index->root, &fault);

    if (status == IRON_E_NOMEM) {
        if (err)
            *err = fault;
        return status;
    }
    if (status == IRON_OK)
        index->shards = iron__json_member(index->root, "shards");
    if (status != IRON_OK)
        iron__fail(&index->fault, IRON_E_FORMAT, 0, "%.100s: %.120s", index->path, fault.text);
    else if (!index->shards || index->shards->kind != IRON_JSON_ARRAY)
        iron__fail(&index->fault, IRON_E_FORMAT, 0,
                   "%.100s is not the index of an MDS dataset: it has no list of shards",
                   index->path);
    else
        return sort_names(index, err);
    return IRON_OK;
}

static iron_status read_index(const char *path, iron__mds_index **out, iron_error *err) {
    iron__mds_index *index = calloc(1, sizeof *index);
    iron__sidecar file = {.file = {.fd = -1}};
    bool is_there = false;
    char *text = NULL;
    iron_status status;

    *out = NULL;
    if (!index || !(index->path = strdup(path))) {
        status = iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for an index");
        goto done;
    }
    /* before it is read: a change after this shows. A remote object stays the version that was
     * opened. */
    if (!iron__path_is_remote(path))
        read_version(path, &index->version);
    status = iron__sidecar_open(strdup(path), &file, &is_there, err);
    if (status != IRON_OK || !is_there)
        goto done;
    if (iron__path_is_remote(path))
        read_version(path, &index->version);
    status = iron__sidecar_text(&file, IRON_JSON_BYTES_MAX, &text, err);
    if (status == IRON_OK)
        status = parse(index, text, (size_t)file.bytes, err);
    if (status == IRON_OK) {
        *out = index;
        index = NULL;
    }

done:
    free(text);
    iron__sidecar_close(&file);
    destroy(index);
    return status;
}

static iron__mds_index *find_cached(const char *path) {
    iron__mds_index *found = NULL;
    version now;

    pthread_mutex_lock(&cache.mutex);
    if (cache.last && strcmp(cache.last->path, path) == 0 && read_version(path, &now) &&
        is_same(&cache.last->version, &now)) {
        found = cache.last;
        found->users++;
    }
    pthread_mutex_unlock(&cache.mutex);
    return found;
}

/* The index has two users now: the cache and the caller. */
static void keep(iron__mds_index *index) {
    iron__mds_index *before;

    pthread_mutex_lock(&cache.mutex);
    before = cache.last;
    cache.last = index;
    index->users = 2;
    pthread_mutex_unlock(&cache.mutex);
    iron__mds_index_close(before);
}

iron_status iron__mds_index_open(const char *folder, iron__mds_index **out, iron_error *err) {
    size_t length = strlen(folder);
    const char *slash = length == 0 || folder[length - 1] == '/' ? "" : "/";
    char *path = NULL;
    iron_status status = IRON_OK;

    *out = NULL;
    if (asprintf(&path, "%s%sindex.json", folder, slash) < 0)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a file name");
    *out = find_cached(path);
    if (!*out) {
        status = read_index(path, out, err);
        if (*out)
            keep(*out);
    }
    free(path);
    if (*out && (*out)->fault.status != IRON_OK) {
        status = (*out)->fault.status;
        if (err)
            *err = (*out)->fault;
        iron__mds_index_close(*out);
        *out = NULL;
    }
    return status;
}

void iron__mds_index_close(iron__mds_index *index) {
    bool is_last;

    if (!index)
        return;
    pthread_mutex_lock(&cache.mutex);
    is_last = --index->users == 0;
    pthread_mutex_unlock(&cache.mutex);
    if (is_last)
        destroy(index);
}

const iron__json *iron__mds_index_shards(const iron__mds_index *index) { return index->shards; }

const iron__json *iron__mds_index_find(const iron__mds_index *index, const char *basename) {
    shard_name wanted = {basename, NULL};
    const shard_name *found =
        bsearch(&wanted, index->names, index->name_count, sizeof wanted, by_name);

    return found ? found->shard : NULL;
}
