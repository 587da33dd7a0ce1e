/* SPDX-License-Identifier: MIT */
/*
 * manifest_fields.c: a manifest from its text. Fields are taken one by one, each with a message of
 * its own; whether they agree with each other is manifest_check.c's business. Fields that are not
 * known are passed over: a later iron of the same version may have more to say.
 */
#include "core/fail.h"
#include "core/json_read.h"
#include "core/memory.h"
#include "digest/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iron_status no_memory(iron_error *err, const char *path) {
    return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while reading %.120s", path);
}

static iron_status bad(iron_error *err, const char *path, const char *field, const char *expected) {
    return iron__fail(err, IRON_E_FORMAT, 0, "%.100s: \"%s\" is not there or no %s", path, field,
                      expected);
}

typedef struct fields {
    const char *path;
    const iron__json *object;
} fields;

static iron_status take_whole(const fields *f, const char *name, uint64_t max, uint64_t *out,
                              iron_error *err) {
    char expected[48];

    if (iron__json_whole(iron__json_member(f->object, name), max, out))
        return IRON_OK;
    snprintf(expected, sizeof expected, "whole number 0 to %" PRIu64, max);
    return bad(err, f->path, name, expected);
}

static iron_status take_u32(const fields *f, const char *name, uint32_t *out, iron_error *err) {
    uint64_t value = 0;

    IRON_TRY(take_whole(f, name, UINT32_MAX, &value, err));
    *out = (uint32_t)value;
    return IRON_OK;
}

static iron_status take_text(const fields *f, const char *name, const char **out, iron_error *err) {
    *out = iron__json_text(iron__json_member(f->object, name));
    return *out ? IRON_OK : bad(err, f->path, name, "text");
}

/* Digits of a base alone, below 2^64, up to the end or a blank; NULL if there is no such number. */
static const char *parse_word(const char *at, unsigned base, uint64_t *out) {
    const char *start = at;

    *out = 0;
    for (; *at && *at != ' '; at++) {
        unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
                                                    : 16;

        if (digit >= base || __builtin_mul_overflow(*out, base, out) ||
            __builtin_add_overflow(*out, digit, out))
            return NULL;
    }
    return at == start ? NULL : at;
}

static iron_status take_schema(const fields *f, iron_error *err) {
    const char *schema = NULL, *end;
    uint64_t version = 0;

    IRON_FAIL_IF(!f->object || f->object->kind != IRON_JSON_OBJECT, err, IRON_E_FORMAT,
                 "%.100s is no manifest: it is no JSON object", f->path);
    IRON_TRY(take_text(f, "schema", &schema, err));
    IRON_FAIL_IF(strncmp(schema, IRON_MANIFEST_SCHEMA, strlen(IRON_MANIFEST_SCHEMA)) != 0, err,
                 IRON_E_FORMAT, "%.100s is no manifest: its schema is \"%.40s\", not \"%s%u\"",
                 f->path, schema, IRON_MANIFEST_SCHEMA, IRON_MANIFEST_VERSION);
    end = parse_word(schema + strlen(IRON_MANIFEST_SCHEMA), 10, &version);
    IRON_FAIL_IF(end && !*end && version > IRON_MANIFEST_VERSION, err, IRON_E_UNSUPPORTED,
                 "%.100s is a manifest of version %" PRIu64
                 ", newer than this iron reads, %u; read it with a newer iron",
                 f->path, version, IRON_MANIFEST_VERSION);
    IRON_FAIL_IF(!end || *end || version != IRON_MANIFEST_VERSION, err, IRON_E_FORMAT,
                 "%.100s: schema \"%.40s\" is unknown, not \"%s%u\"", f->path, schema,
                 IRON_MANIFEST_SCHEMA, IRON_MANIFEST_VERSION);
    return IRON_OK;
}

static iron_status take_words(const fields *f, iron_manifest *m, iron_error *err) {
    const iron__json *words = iron__json_member(f->object, "words");
    uint64_t *to[] = {&m->words.count, &m->words.t, &m->words.a, &m->words.b};
    char text[IRON_SEAL_TEXT];
    const char *seal = NULL;
    uint32_t version = 0;

    IRON_TRY(take_u32(f, "seal_version", &version, err));
    IRON_FAIL_IF(version != IRON_SEAL_VERSION, err,
                 version > IRON_SEAL_VERSION ? IRON_E_UNSUPPORTED : IRON_E_FORMAT,
                 "%.100s has seals of version %u; this iron knows %u", f->path, version,
                 IRON_SEAL_VERSION);
    IRON_FAIL_IF(iron__json_length(words) != 4, err, IRON_E_FORMAT,
                 "%.100s: \"words\" has %zu entries, not 4", f->path, iron__json_length(words));
    for (size_t k = 0; k < 4; k++) {
        const char *word = iron__json_text(iron__json_at(words, k));
        const char *end = word ? parse_word(word, 10, to[k]) : NULL;

        IRON_FAIL_IF(!end || *end, err, IRON_E_FORMAT,
                     "%.100s: entry %zu of \"words\" is no decimal number below 2^64, as text",
                     f->path, k);
    }
    IRON_TRY(take_text(f, "seal", &seal, err));
    iron__seal_text(m->words, text);
    IRON_FAIL_IF(strcmp(seal, text) != 0, err, IRON_E_FORMAT,
                 "%.100s: seal is %.40s, but its words give %s; the manifest is damaged", f->path,
                 seal, text);
    return IRON_OK;
}

/* A number or null, which stands for `none`. */
static iron_status take_limit(const fields *f, const char *name, uint32_t none, uint32_t *out,
                              iron_error *err) {
    const iron__json *value = iron__json_member(f->object, name);

    *out = none;
    return value && value->kind == IRON_JSON_NULL ? IRON_OK : take_u32(f, name, out, err);
}

static iron_status take_statistics(const fields *f, iron_manifest *m, iron_error *err) {
    fields s = {f->path, iron__json_member(f->object, "statistics")};
    fields first = {f->path, iron__json_member(s.object, "first_out_of_vocab")};

    m->stats = iron__token_stats_neutral();
    IRON_TRY(take_whole(f, "vocab", UINT64_C(1) << 32, &m->vocab, err));
    if (!s.object || s.object->kind != IRON_JSON_OBJECT)
        return bad(err, f->path, "statistics", "object");
    IRON_TRY(take_limit(&s, "min", UINT32_MAX, &m->stats.min, err));
    IRON_TRY(take_limit(&s, "max", 0, &m->stats.max, err));
    IRON_TRY(take_whole(&s, "out_of_vocab", IRON_MANIFEST_WHOLE_MAX, &m->stats.out_of_vocab, err));
    if (first.object && first.object->kind == IRON_JSON_NULL)
        return IRON_OK;
    if (!first.object || first.object->kind != IRON_JSON_OBJECT)
        return bad(err, f->path, "first_out_of_vocab", "object, nor null");
    IRON_TRY(
        take_whole(&first, "position", IRON_MANIFEST_WHOLE_MAX, &m->stats.first_position, err));
    return take_u32(&first, "value", &m->stats.first_value, err);
}

static iron_status take_range(const fields *f, iron_manifest *m, iron_error *err) {
    uint64_t max = IRON_MANIFEST_WHOLE_MAX;

    IRON_TRY(take_whole(f, "tokens", max, &m->tokens, err));
    IRON_TRY(take_whole(f, "first", max, &m->first, err));
    IRON_TRY(take_whole(f, "stream_tokens", max, &m->stream_tokens, err));
    IRON_TRY(take_u32(f, "part", &m->part, err));
    return take_u32(f, "parts", &m->parts, err);
}

/* The name as it was: from hex where it was no UTF-8. NULL: no such name. */
static char *make_path(const char *shown, const char *hex) {
    size_t length = hex ? (strlen(hex) + 1) / 2 : 0;
    char *path = hex ? calloc(length + 1, 1) : strdup(shown);

    for (size_t k = 0; path && k < length; k++) {
        char two[3] = {hex[2 * k], hex[2 * k + 1], '\0'};
        uint64_t byte = 0;
        const char *end = parse_word(two, 16, &byte);

        path[k] = (char)byte;
        if (end != two + 2 || byte == 0) {
            free(path);
            return NULL;
        }
    }
    return path;
}

/* Not there in older manifests, and of pipes. */
static iron_status take_sample(const fields *f, const char *path, iron__manifest_entry *file,
                               iron_error *err) {
    const iron__json *value = iron__json_member(f->object, "sample");
    const char *text = iron__json_text(value);
    uint64_t sample;

    if (!value || (text && !text[0]))
        return IRON_OK;
    IRON_FAIL_IF(!text || strlen(text) != sizeof file->sample - 1 || strchr(text, ' ') ||
                     !parse_word(text, 16, &sample),
                 err, IRON_E_FORMAT, "%.100s: \"sample\" of %.60s is not 16 hex digits", f->path,
                 path);
    memcpy(file->sample, text, sizeof file->sample);
    return IRON_OK;
}

static iron_status take_file(const fields *f, iron__manifest_entry *file, iron_error *err) {
    const char *path = NULL, *format = NULL, *dtype = NULL;

    IRON_TRY(take_text(f, "path", &path, err));
    IRON_TRY(take_text(f, "format", &format, err));
    IRON_TRY(take_text(f, "dtype", &dtype, err));
    IRON_TRY(take_whole(f, "first", IRON_MANIFEST_WHOLE_MAX, &file->first, err));
    IRON_TRY(take_whole(f, "tokens", IRON_MANIFEST_WHOLE_MAX, &file->tokens, err));
    IRON_FAIL_IF(iron_dtype_parse(dtype, &file->dtype, NULL) != IRON_OK, err, IRON_E_FORMAT,
                 "%.100s: dtype \"%.40s\" of %.60s is unknown", f->path, dtype, path);
    IRON_FAIL_IF(path[0] == '\0', err, IRON_E_FORMAT, "%.100s: a file's path is empty", f->path);
    IRON_FAIL_IF(strlen(format) == 0 || strlen(format) >= sizeof file->format, err, IRON_E_FORMAT,
                 "%.100s: format \"%.40s\" of %.60s is none", f->path, format, path);
    snprintf(file->format, sizeof file->format, "%s", format);
    IRON_TRY(take_sample(f, path, file, err));
    file->path = make_path(path, iron__json_text(iron__json_member(f->object, "path_bytes")));
    IRON_FAIL_IF(!file->path, err, IRON_E_FORMAT,
                 "%.100s: \"path_bytes\" of %.60s are no bytes in hex", f->path, path);
    return IRON_OK;
}

static iron_status take_files(const fields *f, iron_manifest *m, iron_error *err) {
    const iron__json *files = iron__json_member(f->object, "files");
    size_t count = iron__json_length(files);

    if (!files || files->kind != IRON_JSON_ARRAY)
        return bad(err, f->path, "files", "array");
    m->files = calloc(count ? count : 1, sizeof *m->files);
    if (!m->files)
        return no_memory(err, f->path);
    for (; m->file_count < count; m->file_count++) {
        fields one = {f->path, iron__json_at(files, m->file_count)};

        IRON_TRY(take_file(&one, &m->files[m->file_count], err));
    }
    return IRON_OK;
}

/* "t a b mark offset", or "t a b - -". */
static bool parse_chunk(const char *text, iron__chunk *c) {
    uint64_t *to[] = {&c->t, &c->a, &c->b, &c->mark, &c->mark_at};

    for (size_t k = 0; k < 5; k++) {
        if (k == 3 && strcmp(text, "- -") == 0) {
            c->mark = IRON_MARK_NONE;
            return true;
        }
        text = parse_word(text, 16, to[k]);
        if (!text || *text != (k < 4 ? ' ' : '\0'))
            return false;
        text += k < 4;
    }
    return c->mark != IRON_MARK_NONE;
}

static iron_status take_chunks(const fields *f, iron_manifest *m, iron_error *err) {
    const iron__json *chunks = iron__json_member(f->object, "chunks");
    size_t count = iron__json_length(chunks);

    IRON_TRY(take_whole(f, "chunk_tokens", IRON_MANIFEST_WHOLE_MAX, &m->chunk_tokens, err));
    if (!chunks || chunks->kind != IRON_JSON_ARRAY)
        return bad(err, f->path, "chunks", "array");
    m->chunks = calloc(count ? count : 1, sizeof *m->chunks);
    if (!m->chunks)
        return no_memory(err, f->path);
    for (; m->chunk_count < count; m->chunk_count++) {
        const char *text = iron__json_text(iron__json_at(chunks, m->chunk_count));

        IRON_FAIL_IF(!text || !parse_chunk(text, &m->chunks[m->chunk_count]), err, IRON_E_FORMAT,
                     "%.100s: chunk %zu is \"%.60s\", not \"t a b mark offset\" in hex", f->path,
                     m->chunk_count, text ? text : "no text");
    }
    return IRON_OK;
}

static iron_status take_all(const fields *f, iron_manifest *m, iron_error *err) {
    IRON_TRY(take_schema(f, err));
    IRON_TRY(take_words(f, m, err));
    IRON_TRY(take_range(f, m, err));
    IRON_TRY(take_statistics(f, m, err));
    IRON_TRY(take_files(f, m, err));
    IRON_TRY(take_chunks(f, m, err));
    return iron__manifest_check(m, f->path, err);
}

iron_status iron__manifest_parse(const char *name, const char *text, size_t length,
                                 iron_manifest **out, iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    iron_manifest *m = calloc(1, sizeof *m);
    fields f = {.path = name};
    iron_error why = {0};
    iron_status status;

    *out = NULL;
    if (!m)
        return no_memory(err, name);
    status = iron__json_parse(text, length, allocator, &f.object, &why);
    if (status != IRON_OK)
        iron__fail(err, status, why.native, "%.100s: %.130s", name, why.text);
    else
        status = take_all(&f, m, err);
    iron__json_destroy(allocator, f.object);
    if (status == IRON_OK)
        *out = m;
    else
        iron_manifest_destroy(m);
    return status;
}
