/* SPDX-License-Identifier: MIT */
/*
 * opencl_cache.c: files opencl-<16 hex digits>.bin, one a program, device and driver.
 *
 *   0    8  "IRONOCLB"
 *   8    8  the format's version; a file of the other byte order has none that is known
 *  16    8  bytes of the key
 *  24    8  bytes of the binary
 *  32    8  FNV-1a of the binary
 *  40       the key, then the binary, then nothing
 *
 * The name is FNV-1a of the key, which is no proof of it: the key stands in the file and is
 * compared. A file that is short, long, damaged, not a plain file or another user's (drivers run
 * what is in it) counts as absent, and is replaced by the next program built. Files appear whole,
 * so any number of processes may share a folder.
 */
#include "gpu/opencl/opencl_cache.h"

#include "core/cache_dir.h"
#include "core/fnv.h"

#include <iron/iron.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT_VERSION UINT64_C(1)

/* Nothing near this size is a program of ours. */
#define BINARY_BYTES_MAX ((size_t)256 << 20)

typedef struct header {
    char magic[8];
    uint64_t version, key_bytes, binary_bytes, binary_fnv;
} header;

static const char magic[8] = {'I', 'R', 'O', 'N', 'O', 'C', 'L', 'B'};

static bool is_off(void) {
    const char *value = getenv("IRON_OPENCL_CACHE");

    return value && strcmp(value, "0") == 0;
}

/* NULL: no place for a cache, or it is off. free() it. */
static char *file_for(const char *key) {
    if (is_off())
        return NULL;
    return iron__cache_path("opencl", iron__fnv(IRON_FNV_START, key, strlen(key)), ".bin");
}

static bool read_all(int fd, void *data, size_t bytes) {
    char *at = data;

    while (bytes > 0) {
        ssize_t count = read(fd, at, bytes);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        bytes -= (size_t)count;
    }
    return true;
}

/* The header of a file that has the right size and owner for this key. */
static bool read_header(int fd, size_t key_bytes, header *h) {
    struct stat info;
    uint64_t size;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        !read_all(fd, h, sizeof *h))
        return false;
    size = (uint64_t)info.st_size;
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->version == FORMAT_VERSION &&
           h->key_bytes == key_bytes && h->binary_bytes > 0 &&
           h->binary_bytes <= BINARY_BYTES_MAX &&
           size == sizeof *h + h->key_bytes + h->binary_bytes;
}

static unsigned char *read_file(int fd, const char *key, size_t *bytes) {
    size_t key_bytes = strlen(key);
    unsigned char *content;
    header h;

    if (!read_header(fd, key_bytes, &h))
        return NULL;
    *bytes = (size_t)h.binary_bytes;
    content = malloc(key_bytes + *bytes);
    if (content && read_all(fd, content, key_bytes + *bytes) &&
        memcmp(content, key, key_bytes) == 0 &&
        iron__fnv(IRON_FNV_START, content + key_bytes, *bytes) == h.binary_fnv) {
        memmove(content, content + key_bytes, *bytes);
        return content;
    }
    free(content);
    return NULL;
}

unsigned char *iron__opencl_cache_read(const char *key, size_t *bytes) {
    char *path = file_for(key);
    /* not blocking: what has the name might be a pipe */
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    unsigned char *binary = NULL;

    if (fd >= 0) {
        binary = read_file(fd, key, bytes);
        close(fd);
    }
    free(path);
    return binary;
}

static bool is_replaceable(const char *path) {
    struct stat info;

    return lstat(path, &info) == 0 ? S_ISREG(info.st_mode) : errno == ENOENT;
}

static void write_file(const char *path, const char *key, const unsigned char *binary,
                       size_t bytes) {
    header h = {
        .version = FORMAT_VERSION,
        .key_bytes = strlen(key),
        .binary_bytes = bytes,
        .binary_fnv = iron__fnv(IRON_FNV_START, binary, bytes),
    };
    iron_output *output;

    memcpy(h.magic, magic, sizeof magic);
    if (!is_replaceable(path) || iron_output_open(path, &output, NULL) != IRON_OK)
        return;
    if (iron_output_write(output, &h, sizeof h, NULL) == IRON_OK &&
        iron_output_write(output, key, strlen(key), NULL) == IRON_OK &&
        iron_output_write(output, binary, bytes, NULL) == IRON_OK)
        iron_output_commit(output, NULL);
    else
        iron_output_abandon(output);
}

void iron__opencl_cache_write(const char *key, const unsigned char *binary, size_t bytes) {
    char *path = file_for(key);

    if (path && bytes > 0 && bytes <= BINARY_BYTES_MAX) {
        iron__cache_make();
        write_file(path, key, binary, bytes);
    }
    free(path);
}
