/* SPDX-License-Identifier: MIT */
/*
 * mds_support.h: MDS shards and their indexes, built byte by byte.
 */
#ifndef TESTS_UNIT_MDS_SUPPORT_H
#define TESTS_UNIT_MDS_SUPPORT_H

#include "format_support.h"

/* A column of an index: its size in bytes, or 0 if that varies. */
typedef struct mds_column {
    const char *name, *encoding;
    unsigned size;
} mds_column;

/* What the index says about a shard; 0 and NULL: what is true. */
typedef struct mds_entry {
    const mds_column *columns;
    size_t column_count;
    const char *format;
    unsigned version;
    size_t samples;
    size_t bytes, zip_bytes;
    const char *hashes, *zip_hashes; /* "{}" */
    const char *compression;
    bool has_zip;
    const char *raw_name; /* shard.00000.mds */
} mds_entry;

/* A shard of samples, each of which is a blob; `config` is between offsets and samples. */
static inline blob mds_shard(const blob *samples, size_t count, const char *config) {
    size_t at = 4 + 4 * (count + 1) + strlen(config);
    blob b = {.count = 0};

    put_number(&b, count, 4);
    put_number(&b, at, 4);
    for (size_t k = 0; k < count; k++) {
        at += samples[k].count;
        put_number(&b, at, 4);
    }
    put(&b, config, strlen(config));
    for (size_t k = 0; k < count; k++)
        put(&b, samples[k].data, samples[k].count);
    return b;
}

static inline size_t mds_describe(char *text, size_t room, const mds_entry *e, size_t samples,
                                  size_t bytes, size_t zip_bytes) {
    const char *name = e->raw_name ? e->raw_name : "shard.00000.mds";
    size_t at = (size_t)snprintf(text, room, "{\"column_encodings\": [");

    for (size_t k = 0; k < e->column_count; k++)
        at += (size_t)snprintf(text + at, room - at, "%s\"%s\"", k ? ", " : "",
                               e->columns[k].encoding);
    at += (size_t)snprintf(text + at, room - at, "], \"column_names\": [");
    for (size_t k = 0; k < e->column_count; k++)
        at += (size_t)snprintf(text + at, room - at, "%s\"%s\"", k ? ", " : "", e->columns[k].name);
    at += (size_t)snprintf(text + at, room - at, "], \"column_sizes\": [");
    for (size_t k = 0; k < e->column_count; k++)
        at += e->columns[k].size ? (size_t)snprintf(text + at, room - at, "%s%u", k ? ", " : "",
                                                    e->columns[k].size)
                                 : (size_t)snprintf(text + at, room - at, "%snull", k ? ", " : "");
    at += (size_t)snprintf(text + at, room - at,
                           "], \"compression\": %s%s%s, \"format\": \"%s\", \"hashes\": [], "
                           "\"raw_data\": {\"basename\": \"%s\", \"bytes\": %zu, \"hashes\": %s}, "
                           "\"samples\": %zu, \"size_limit\": 67108864, \"version\": %u, ",
                           e->compression ? "\"" : "", e->compression ? e->compression : "null",
                           e->compression ? "\"" : "", e->format ? e->format : "mds", name,
                           e->bytes ? e->bytes : bytes, e->hashes ? e->hashes : "{}",
                           e->samples ? e->samples : samples, e->version ? e->version : 2);
    if (e->has_zip)
        at += (size_t)snprintf(text + at, room - at,
                               "\"zip_data\": {\"basename\": \"%s.zip\", \"bytes\": %zu, "
                               "\"hashes\": %s}}",
                               name, e->zip_bytes ? e->zip_bytes : zip_bytes,
                               e->zip_hashes ? e->zip_hashes : "{}");
    else
        at += (size_t)snprintf(text + at, room - at, "\"zip_data\": null}");
    assert_true(at < room);
    return at;
}

/* Writes index.json with one shard. */
static inline void mds_index(const folder *in, const mds_entry *e, size_t samples, size_t bytes,
                             size_t zip_bytes) {
    char text[8192] = "{\"shards\": [";
    size_t at = strlen(text);

    at += mds_describe(text + at, sizeof text - at - 32, e, samples, bytes, zip_bytes);
    strcpy(text + at, "], \"version\": 2}");
    save_text(in, "index.json", text);
}

/* gzip of one stored block. */
static inline blob gzip_of(const blob *b) {
    uint32_t crc = UINT32_MAX;
    blob z = {.count = 0};

    put(&z, "\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", 11);
    put_number(&z, b->count, 2);
    put_number(&z, ~b->count, 2);
    put(&z, b->data, b->count);
    for (size_t k = 0; k < b->count; k++) {
        crc ^= b->data[k];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    put_number(&z, ~crc, 4);
    put_number(&z, b->count, 4);
    return z;
}

#endif
