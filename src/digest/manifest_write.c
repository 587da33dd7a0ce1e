/* SPDX-License-Identifier: MIT */
/*
 * manifest_write.c: a manifest as a file (docs/manifest.md), whole or not at all. The same manifest
 * is always the same bytes: nothing of the time, the machine or the threads is in it.
 */
#include "core/fail.h"
#include "core/json_read.h"
#include "core/json_write.h"
#include "core/output.h"
#include "digest/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* A stream of C's that writes into an output, and what it came to. */
typedef struct sink {
    iron_output *output;
    uint64_t bytes;
    iron_status status;
    iron_error error;
} sink;

static ssize_t sink_write(void *cookie, const char *data, size_t bytes) {
    sink *s = cookie;

    s->bytes += bytes;
    if (s->status == IRON_OK)
        s->status = iron_output_write(s->output, data, bytes, &s->error);
    return s->status == IRON_OK ? (ssize_t)bytes : 0;
}

static void write_word(iron__json_writer *j, const char *name, uint64_t word) {
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, word);
    iron__json_write_text(j, name, text);
}

static void write_words(iron__json_writer *j, const iron_manifest *m) {
    char seal[IRON_SEAL_TEXT];

    iron__seal_text(m->words, seal);
    iron__json_write_text(j, "seal", seal);
    iron__json_write_whole(j, "seal_version", IRON_SEAL_VERSION);
    iron__json_write_open(j, "words", '[');
    write_word(j, NULL, m->words.count);
    write_word(j, NULL, m->words.t);
    write_word(j, NULL, m->words.a);
    write_word(j, NULL, m->words.b);
    iron__json_write_close(j, ']');
}

static void write_range(iron__json_writer *j, const iron_manifest *m) {
    iron__json_write_whole(j, "tokens", m->tokens);
    iron__json_write_whole(j, "first", m->first);
    iron__json_write_whole(j, "stream_tokens", m->stream_tokens);
    iron__json_write_whole(j, "part", m->part);
    iron__json_write_whole(j, "parts", m->parts);
}

static void write_limit(iron__json_writer *j, const char *name, bool is_there, uint32_t value) {
    if (is_there)
        iron__json_write_whole(j, name, value);
    else
        iron__json_write_null(j, name);
}

static void write_statistics(iron__json_writer *j, const iron_manifest *m) {
    iron__json_write_whole(j, "vocab", m->vocab);
    iron__json_write_open(j, "statistics", '{');
    write_limit(j, "min", m->tokens > 0, m->stats.min);
    write_limit(j, "max", m->tokens > 0, m->stats.max);
    iron__json_write_whole(j, "out_of_vocab", m->stats.out_of_vocab);
    if (m->stats.out_of_vocab > 0) {
        iron__json_write_open(j, "first_out_of_vocab", '{');
        iron__json_write_whole(j, "position", m->stats.first_position);
        iron__json_write_whole(j, "value", m->stats.first_value);
        iron__json_write_close(j, '}');
    } else {
        iron__json_write_null(j, "first_out_of_vocab");
    }
    iron__json_write_close(j, '}');
}

/* A name may be any bytes; JSON holds characters. What is no UTF-8 stands there in hex, too. */
static void write_path(iron__json_writer *j, const char *path) {
    static const char digits[] = "0123456789abcdef";
    char hex[2 * 4096 + 1];
    size_t length = strlen(path);

    iron__json_write_text(j, "path", path);
    if (iron__json_is_text(path) || length > (sizeof hex - 1) / 2)
        return;
    for (size_t k = 0; k < length; k++) {
        hex[2 * k] = digits[(unsigned char)path[k] >> 4];
        hex[2 * k + 1] = digits[(unsigned char)path[k] & 15];
    }
    hex[2 * length] = '\0';
    iron__json_write_text(j, "path_bytes", hex);
}

static void write_files(iron__json_writer *j, const iron_manifest *m) {
    iron__json_write_open(j, "files", '[');
    for (size_t k = 0; k < m->file_count; k++) {
        const iron__manifest_entry *f = &m->files[k];

        iron__json_write_open(j, NULL, '{');
        write_path(j, f->path);
        iron__json_write_text(j, "format", f->format);
        iron__json_write_text(j, "dtype", iron_dtype_name(f->dtype));
        iron__json_write_whole(j, "first", f->first);
        iron__json_write_whole(j, "tokens", f->tokens);
        if (f->sample[0])
            iron__json_write_text(j, "sample", f->sample);
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, ']');
}

static void write_chunks(iron__json_writer *j, const iron_manifest *m) {
    iron__json_write_whole(j, "chunk_tokens", m->chunk_tokens);
    iron__json_write_open(j, "chunks", '[');
    for (size_t k = 0; k < m->chunk_count; k++) {
        const iron__chunk *c = &m->chunks[k];
        char text[96];
        int end = snprintf(text, sizeof text, "%" PRIx64 " %" PRIx64 " %" PRIx64, c->t, c->a, c->b);

        if (c->mark == IRON_MARK_NONE)
            snprintf(text + end, sizeof text - (size_t)end, " - -");
        else
            snprintf(text + end, sizeof text - (size_t)end, " %" PRIx64 " %" PRIx64, c->mark,
                     c->mark_at);
        iron__json_write_text(j, NULL, text);
    }
    iron__json_write_close(j, ']');
}

static void write_document(FILE *to, const iron_manifest *m) {
    iron__json_writer j = {.to = to};
    char schema[32];

    snprintf(schema, sizeof schema, "%s%u", IRON_MANIFEST_SCHEMA, IRON_MANIFEST_VERSION);
    iron__json_write_open(&j, NULL, '{');
    iron__json_write_text(&j, "schema", schema);
    write_words(&j, m);
    write_range(&j, m);
    write_statistics(&j, m);
    write_files(&j, m);
    write_chunks(&j, m);
    iron__json_write_close(&j, '}');
    iron__json_write_end(&j);
}

static iron_status write_to(iron_output *output, const iron_manifest *m, iron_error *err) {
    sink s = {.output = output};
    FILE *to = fopencookie(&s, "w", (cookie_io_functions_t){.write = sink_write});
    bool is_whole;

    if (!to)
        return iron__fail(err, IRON_E_NOMEM, errno, "out of memory while writing a manifest");
    write_document(to, m);
    is_whole = !ferror(to);
    is_whole = fclose(to) == 0 && is_whole;
    if (s.status != IRON_OK && err)
        *err = s.error;
    IRON_TRY(s.status);
    IRON_FAIL_IF(!is_whole, err, IRON_E_IO, "the manifest could not be written whole");
    IRON_FAIL_IF(s.bytes > IRON_JSON_BYTES_MAX, err, IRON_E_ARG,
                 "the manifest has %" PRIu64 " bytes, more than is read, %zu; use larger chunks "
                 "(--chunk), or several manifests",
                 s.bytes, IRON_JSON_BYTES_MAX);
    return IRON_OK;
}

static iron_status check_writable(const iron_manifest *m, iron_error *err) {
    IRON_FAIL_IF(m->stream_tokens > IRON_MANIFEST_WHOLE_MAX, err, IRON_E_ARG,
                 "a stream of %" PRIu64 " tokens is more than a manifest can tell, 2^53",
                 m->stream_tokens);
    return iron__manifest_check(m, "a manifest to be written", err);
}

static iron_status save(const iron_manifest *m, const char *path, iron_error *err) {
    iron_output *output = NULL;
    iron_status status;

    IRON_TRY(iron_output_open(path, &output, err));
    status = write_to(output, m, err);
    if (status == IRON_OK)
        return iron_output_commit(output, err);
    iron_output_abandon(output);
    return status;
}

iron_status iron_manifest_write(const iron_manifest *manifest, const char *path, iron_error *err) {
    sigset_t before;
    iron_status status;

    IRON_TRY(check_writable(manifest, err));
    iron__interruptions_hold(&before);
    status = save(manifest, path, err);
    iron__interruptions_release(&before);
    return status;
}
