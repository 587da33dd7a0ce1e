/* SPDX-License-Identifier: MIT */
/*
 * manifest.c: manifests as objects and as JSON files (docs/manifest.md).
 *
 * A manifest is read field by field, each with a message of its own, and then checked as a whole:
 * everything that is said twice must agree, and every range must lie where it can. So indices and
 * sums that are built on a manifest are safe, and a file that was damaged or edited is refused.
 * Unknown fields are skipped: a later iron of the same version may write more.
 *
 * Writing is all or nothing, and deterministic: neither time, machine nor threads are in the file.
 */
#include "digest/digest_internal.h"

#include "core/fail.h"
#include "core/files.h"
#include "core/json.h"
#include "core/number.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA  "iron.manifest/"
#define VERSION 2u /* 1 lacks the seals of files; still written for scans without them */

/* Manifests as objects. */

iron_status iron__chunk_tokens_check(uint64_t chunk_tokens, iron_error *err) {
    IRON_FAIL_IF(
        chunk_tokens != 0 && (chunk_tokens < IRON_CHUNK_TOKENS_MIN || chunk_tokens % 4 != 0 ||
                              chunk_tokens > IRON_MANIFEST_WHOLE_MAX),
        err, IRON_E_ARG, "chunks of %" PRIu64 " tokens; they must be a multiple of 4, at least %u",
        chunk_tokens, IRON_CHUNK_TOKENS_MIN);
    return IRON_OK;
}

uint64_t iron__manifest_chunks_of(uint64_t first, uint64_t tokens, uint64_t chunk_tokens) {
    if (chunk_tokens == 0 || tokens == 0)
        return 0;
    return (first + tokens - 1) / chunk_tokens - first / chunk_tokens + 1;
}

void iron__chunk_add(iron__chunk *chunk, const iron__chunk *piece) {
    chunk->t += piece->t;
    chunk->a += piece->a;
    chunk->b += piece->b;
    if (piece->mark < chunk->mark ||
        (piece->mark == chunk->mark && piece->mark_at < chunk->mark_at)) {
        chunk->mark = piece->mark;
        chunk->mark_at = piece->mark_at;
    }
}

void iron_manifest_destroy(iron_manifest *manifest) {
    if (!manifest)
        return;
    for (size_t k = 0; k < manifest->file_count; k++) {
        free(manifest->files[k].path);
        free(manifest->files[k].column);
    }
    free(manifest->files);
    free(manifest->chunks);
    free(manifest->origin);
    free(manifest);
}

iron_status iron_manifest_describe(const iron_manifest *manifest, iron_manifest_info *info,
                                   iron_error *err) {
    IRON_TRY(iron__struct_check(info, sizeof *info, "iron_manifest_info", err));
    *info = (iron_manifest_info){.struct_size = sizeof *info,
                                 .part = manifest->part,
                                 .parts = manifest->parts,
                                 .first = manifest->first,
                                 .tokens = manifest->tokens,
                                 .stream_tokens = manifest->stream_tokens,
                                 .chunk_tokens = manifest->chunk_tokens,
                                 .chunk_count = manifest->chunk_count,
                                 .vocab = manifest->vocab,
                                 .file_count = manifest->file_count};
    return IRON_OK;
}

iron_status iron_manifest_file_at(const iron_manifest *manifest, size_t index,
                                  iron_manifest_file *file, iron_error *err) {
    const iron__manifest_entry *f;

    IRON_TRY(iron__struct_check(file, sizeof *file, "iron_manifest_file", err));
    IRON_FAIL_IF(index >= manifest->file_count, err, IRON_E_ARG,
                 "file %zu of a manifest with %zu files; they count from 0", index,
                 manifest->file_count);
    f = &manifest->files[index];
    *file = (iron_manifest_file){.struct_size = sizeof *file,
                                 .dtype = f->dtype,
                                 .path = f->path,
                                 .format = f->format,
                                 .first = f->first,
                                 .tokens = f->tokens,
                                 .column = f->column,
                                 .compression = f->compression[0] ? f->compression : NULL};
    return IRON_OK;
}

iron_status iron_manifest_digest(const iron_manifest *manifest, iron_digest_result *result,
                                 iron_error *err) {
    IRON_TRY(iron__struct_check(result, sizeof *result, "iron_digest_result", err));
    iron__digest_result_set(result, manifest->words, &manifest->stats, manifest->vocab);
    return IRON_OK;
}

iron_status iron_manifest_bag(const iron_manifest *manifest, iron_bag_result *result,
                              iron_error *err) {
    return iron__bag_result_set(result, manifest->bag, manifest->bag_cut, err);
}

/* The check: does a manifest agree with itself? IRON_E_FORMAT: what was found and expected. */

#define REFUSE_IF(condition, ...) IRON_FAIL_IF(condition, err, IRON_E_FORMAT, __VA_ARGS__)

/* The sums T of all files of a whole stream add up to that of the stream. A file that is all of the
 * stream has its words. */
static iron_status check_file_seals(const iron_manifest *m, const char *name, iron_error *err) {
    uint64_t sum = 0;

    if (!m->has_file_seals)
        return IRON_OK;
    for (size_t k = 0; k < m->file_count; k++) {
        const iron__manifest_entry *f = &m->files[k];

        REFUSE_IF(f->words.count != iron__manifest_file_tokens(m, k),
                  "%.80s: the words of %.60s are of %" PRIu64 " tokens, and should be of %" PRIu64,
                  name, f->path, f->words.count, iron__manifest_file_tokens(m, k));
        REFUSE_IF(f->words.count == 0 && (f->words.t || f->words.a || f->words.b),
                  "%.80s: %.60s has no tokens here, but its words are not zeros", name, f->path);
        if (f->tokens > 0 && f->tokens == m->stream_tokens &&
            !iron__words_equal(&f->words, &m->words)) {
            char seals[2][IRON_SEAL_TEXT];

            iron__seal_text(m->words, seals[0]);
            iron__seal_text(f->words, seals[1]);
            IRON_FAIL(err, IRON_E_FORMAT,
                      "%.60s is a damaged manifest: its seal is %s, that of its only file with "
                      "tokens, %.60s, is %s",
                      name, seals[0], f->path, seals[1]);
        }
        sum += f->words.t;
    }
    REFUSE_IF(m->parts == 0 && sum != m->words.t,
              "%.80s: the files' sums add up to %" PRIu64 ", the stream's is %" PRIu64
              "; the manifest is damaged",
              name, sum, m->words.t);
    return IRON_OK;
}

static iron_status check_chunks(const iron_manifest *m, const char *name, iron_error *err) {
    uint64_t expected = iron__manifest_chunks_of(m->first, m->tokens, m->chunk_tokens);
    uint64_t sum = 0;

    REFUSE_IF(m->chunk_count != expected,
              "%.80s has %zu chunks; %" PRIu64 " tokens in chunks of %" PRIu64 " make %" PRIu64,
              name, m->chunk_count, m->tokens, m->chunk_tokens, expected);
    if (m->chunk_tokens == 0)
        return IRON_OK;
    for (size_t k = 0; k < m->chunk_count; k++) {
        const iron__chunk *c = &m->chunks[k];
        uint64_t first = iron__manifest_chunk_first(m, k), seen = iron__max(first, m->first);
        uint64_t position = first + c->mark_at;

        sum += c->t;
        /* its window begins in the part of its chunk that was scanned, and lies in the stream */
        REFUSE_IF(
            c->mark != IRON_MARK_NONE && (c->mark_at >= m->chunk_tokens || position < seen ||
                                          position >= seen + iron__manifest_chunk_tokens(m, k) ||
                                          m->stream_tokens - position < IRON_MARK_TOKENS),
            "%.80s: the mark of chunk %zu is at offset %" PRIu64 ", where no window can begin",
            name, k, c->mark_at);
    }
    REFUSE_IF(sum != m->words.t,
              "%.80s: the chunks' sums add up to %" PRIu64 ", the stream's is %" PRIu64
              "; the manifest is damaged",
              name, sum, m->words.t);
    /* the first chunk's positions are the stream's: alone, its words are too */
    REFUSE_IF(m->chunk_count == 1 && m->first < m->chunk_tokens &&
                  (m->chunks[0].a != m->words.a || m->chunks[0].b != m->words.b),
              "%.80s: its one chunk and its seal differ; the manifest is damaged", name);
    return IRON_OK;
}

static iron_status check_manifest(const iron_manifest *m, const char *name, iron_error *err) {
    uint64_t end = m->first + m->tokens;
    const iron_bag *bag = &m->bag;
    uint64_t length = m->bag_cut.value;
    bool is_possible = bag->samples > 0 || (bag->hi == 0 && bag->lo == 0);
    const iron__token_stats *s;
    bool has_out;
    uint64_t next_first = 0;

    REFUSE_IF(end > m->stream_tokens,
              "%.80s: positions %" PRIu64 " to %" PRIu64 " of a stream of %" PRIu64 " tokens", name,
              m->first, end, m->stream_tokens);
    REFUSE_IF((m->part == 0) != (m->parts == 0) || m->part > m->parts,
              "%.80s: part %u of %u; parts count from 1", name, m->part, m->parts);
    REFUSE_IF(m->first % 4 != 0 || (end % 4 != 0 && end != m->stream_tokens),
              "%.80s: positions %" PRIu64 " to %" PRIu64
              " do not begin and end at multiples of 4 or with the stream",
              name, m->first, end);
    REFUSE_IF(m->words.count != m->tokens,
              "%.80s: its seal is of %" PRIu64 " tokens, its range has %" PRIu64, name,
              m->words.count, m->tokens);
    REFUSE_IF(m->tokens == 0 && (m->words.t || m->words.a || m->words.b),
              "%.80s: it has no tokens, but its seal is not that of an empty stream", name);
    /* how many samples there can be follows from the cut */
    if (m->bag_cut.kind == IRON_BAG_CUT_SAMPLE) {
        /* samples begin at the multiples of their length */
        uint64_t before = m->first / length + (m->first % length != 0);

        is_possible = is_possible && bag->samples == end / length + (end % length != 0) - before;
    } else if (m->bag_cut.kind == IRON_BAG_CUT_EOS) {
        is_possible = is_possible && bag->samples <= m->tokens;
    }
    REFUSE_IF(!is_possible,
              "%.80s: a bag of %" PRIu64 " samples, which is impossible for %" PRIu64
              " tokens; the manifest is damaged",
              name, bag->samples, m->tokens);
    REFUSE_IF(m->parts == 0 && m->tokens != m->stream_tokens,
              "%.80s is not of a part, but has only %" PRIu64 " tokens of %" PRIu64, name,
              m->tokens, m->stream_tokens);
    s = &m->stats;
    has_out = s->out_of_vocab > 0;
    REFUSE_IF(m->vocab < 1, "%.80s: vocab is 0; it must be at least 1", name);
    REFUSE_IF(m->tokens > 0 ? s->min > s->max : s->min != UINT32_MAX || s->max != 0,
              "%.80s: tokens from %u to %u in %" PRIu64 " tokens", name, s->min, s->max, m->tokens);
    REFUSE_IF(s->out_of_vocab > m->tokens || has_out != (m->tokens > 0 && s->max >= m->vocab),
              "%.80s: %" PRIu64 " tokens out of the vocabulary, with a largest of %u in %" PRIu64
              " tokens and a vocabulary of %" PRIu64,
              name, s->out_of_vocab, s->max, m->tokens, m->vocab);
    REFUSE_IF(has_out != (s->first_position != UINT64_MAX),
              "%.80s: %" PRIu64 " tokens out of the vocabulary, and the first of them is %sgiven",
              name, s->out_of_vocab, has_out ? "not " : "");
    REFUSE_IF(has_out &&
                  (s->first_position < m->first || s->first_position - m->first >= m->tokens ||
                   s->first_value < m->vocab || s->first_value > s->max),
              "%.80s: the first token out of the vocabulary is %u at position %" PRIu64
              ", which is impossible",
              name, s->first_value, s->first_position);
    REFUSE_IF(m->file_count == 0, "%.80s lists no files", name);
    for (size_t k = 0; k < m->file_count; k++) {
        const iron__manifest_entry *f = &m->files[k];

        REFUSE_IF(f->first != next_first,
                  "%.80s: %.60s begins at position %" PRIu64 ", and the files before it end at "
                  "%" PRIu64,
                  name, f->path, f->first, next_first);
        next_first += f->tokens;
        REFUSE_IF(next_first > m->stream_tokens,
                  "%.80s: %.60s ends at position %" PRIu64 " of a stream of %" PRIu64 " tokens",
                  name, f->path, next_first, m->stream_tokens);
    }
    REFUSE_IF(next_first != m->stream_tokens,
              "%.80s: the files have %" PRIu64 " tokens, the stream %" PRIu64, name, next_first,
              m->stream_tokens);
    IRON_TRY(check_file_seals(m, name, err));
    REFUSE_IF(iron__chunk_tokens_check(m->chunk_tokens, NULL) != IRON_OK,
              "%.80s has chunks of %" PRIu64 " tokens; that is not a multiple of 4, or too small",
              name, m->chunk_tokens);
    return check_chunks(m, name, err);
}

/* Reading fields. */

static iron_status bad_field(iron_error *err, const char *path, const char *field,
                             const char *expected) {
    return iron__fail(err, IRON_E_FORMAT, 0, "%.100s: \"%s\" is missing or not %s", path, field,
                      expected);
}

typedef struct fields {
    const char *path;
    const iron__json *object;
} fields;

static iron_status get_whole(const fields *f, const char *name, uint64_t max, uint64_t *out,
                             iron_error *err) {
    char expected[48];

    if (iron__json_get_whole(iron__json_member(f->object, name), max, out))
        return IRON_OK;
    snprintf(expected, sizeof expected, "a whole number 0 to %" PRIu64, max);
    return bad_field(err, f->path, name, expected);
}

static iron_status get_u32(const fields *f, const char *name, uint32_t *out, iron_error *err) {
    uint64_t value = 0;

    IRON_TRY(get_whole(f, name, UINT32_MAX, &value, err));
    *out = (uint32_t)value;
    return IRON_OK;
}

static iron_status get_text(const fields *f, const char *name, const char **out, iron_error *err) {
    *out = iron__json_get_text(iron__json_member(f->object, name));
    return *out ? IRON_OK : bad_field(err, f->path, name, "a string");
}

/* Parses digits of a base, a number below 2^64, up to the end or a blank. Returns the end, or NULL
 * if there is no such number. */
static const char *parse_word(const char *at, unsigned base, uint64_t *out) {
    return iron__read_digits(&at, NULL, base, out) && (!*at || *at == ' ') ? at : NULL;
}

/* "words": count, T, A, B of the stream or of a file. */
static iron_status get_words(const fields *f, iron__seal_words *out, iron_error *err) {
    const iron__json *words = iron__json_member(f->object, "words");
    uint64_t *to[] = {&out->count, &out->t, &out->a, &out->b};

    IRON_FAIL_IF(iron__json_length(words) != 4, err, IRON_E_FORMAT,
                 "%.100s: \"words\" has %zu entries, not 4", f->path, iron__json_length(words));
    for (size_t k = 0; k < 4; k++) {
        const char *word = iron__json_get_text(iron__json_at(words, k));
        const char *end = word ? parse_word(word, 10, to[k]) : NULL;

        IRON_FAIL_IF(
            !end || *end, err, IRON_E_FORMAT,
            "%.100s: entry %zu of \"words\" is not a string with a decimal number below 2^64",
            f->path, k);
    }
    return IRON_OK;
}

/* The seal must be that of the words. */
static iron_status check_seal(const fields *f, const char *of, const iron__seal_words *words,
                              iron_error *err) {
    char text[IRON_SEAL_TEXT];
    const char *seal = NULL;

    IRON_TRY(get_text(f, "seal", &seal, err));
    iron__seal_text(*words, text);
    IRON_FAIL_IF(
        strcmp(seal, text) != 0, err, IRON_E_FORMAT,
        "%.80s: the seal of %.60s is %.40s, but its words give %s; the manifest is damaged",
        f->path, of, seal, text);
    return IRON_OK;
}

static bool is_null(const iron__json *value) { return value && value->kind == IRON_JSON_NULL; }

static iron_status get_statistics(const fields *f, iron_manifest *m, iron_error *err) {
    fields s = {f->path, iron__json_member(f->object, "statistics")};
    fields first = {f->path, iron__json_member(s.object, "first_out_of_vocab")};

    m->stats = iron__token_stats_neutral();
    IRON_TRY(get_whole(f, "vocab", UINT64_C(1) << 32, &m->vocab, err));
    if (!s.object || s.object->kind != IRON_JSON_OBJECT)
        return bad_field(err, f->path, "statistics", "an object");
    if (!is_null(iron__json_member(s.object, "min")))
        IRON_TRY(get_u32(&s, "min", &m->stats.min, err));
    if (!is_null(iron__json_member(s.object, "max")))
        IRON_TRY(get_u32(&s, "max", &m->stats.max, err));
    IRON_TRY(get_whole(&s, "out_of_vocab", IRON_MANIFEST_WHOLE_MAX, &m->stats.out_of_vocab, err));
    if (is_null(first.object))
        return IRON_OK;
    if (!first.object || first.object->kind != IRON_JSON_OBJECT)
        return bad_field(err, f->path, "first_out_of_vocab", "an object or null");
    IRON_TRY(get_whole(&first, "position", IRON_MANIFEST_WHOLE_MAX, &m->stats.first_position, err));
    return get_u32(&first, "value", &m->stats.first_value, err);
}

/* The original name: from hex where it was not UTF-8. NULL: invalid hex. */
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

/* A member that may be missing: then *out is NULL. False: it is not a text. */
static bool get_optional(const fields *f, const char *name, const char **out) {
    const iron__json *value = iron__json_member(f->object, name);

    *out = iron__json_get_text(value);
    return *out || !value;
}

static iron_status get_file(const fields *f, bool has_seal, iron__manifest_entry *file,
                            iron_error *err) {
    const char *path = NULL, *format = NULL, *dtype = NULL, *compression, *column, *sample;
    uint64_t number;
    bool is_text;

    IRON_TRY(get_text(f, "path", &path, err));
    IRON_TRY(get_text(f, "format", &format, err));
    IRON_TRY(get_text(f, "dtype", &dtype, err));
    IRON_TRY(get_whole(f, "first", IRON_MANIFEST_WHOLE_MAX, &file->first, err));
    IRON_TRY(get_whole(f, "tokens", IRON_MANIFEST_WHOLE_MAX, &file->tokens, err));
    IRON_FAIL_IF(iron_dtype_parse(dtype, &file->dtype, NULL) != IRON_OK, err, IRON_E_FORMAT,
                 "%.100s: dtype \"%.40s\" of %.60s is unknown", f->path, dtype, path);
    IRON_FAIL_IF(path[0] == '\0', err, IRON_E_FORMAT, "%.100s: a file's path is empty", f->path);
    IRON_FAIL_IF(strlen(format) == 0 || strlen(format) >= sizeof file->format, err, IRON_E_FORMAT,
                 "%.100s: format \"%.40s\" of %.60s is empty or too long", f->path, format, path);
    snprintf(file->format, sizeof file->format, "%s", format);
    /* what a table or a compressed file adds */
    is_text = get_optional(f, "compression", &compression);
    IRON_FAIL_IF(!is_text || (compression && strlen(compression) >= sizeof file->compression), err,
                 IRON_E_FORMAT, "%.100s: \"compression\" of %.60s is not a short text", f->path,
                 path);
    IRON_FAIL_IF(!get_optional(f, "column", &column), err, IRON_E_FORMAT,
                 "%.100s: \"column\" of %.60s is not a text", f->path, path);
    if (compression)
        snprintf(file->compression, sizeof file->compression, "%s", compression);
    if (column && !(file->column = strdup(column)))
        return iron__no_memory(err, f->path);
    /* missing in older manifests, and for pipes */
    is_text = get_optional(f, "sample", &sample);
    IRON_FAIL_IF(!is_text || (sample && sample[0] &&
                              (strlen(sample) != sizeof file->sample - 1 || strchr(sample, ' ') ||
                               !parse_word(sample, 16, &number))),
                 err, IRON_E_FORMAT, "%.100s: \"sample\" of %.60s is not 16 hex digits", f->path,
                 path);
    snprintf(file->sample, sizeof file->sample, "%s", sample ? sample : "");
    /* a file that a part does not reach has neither words nor a seal; one that it contains in part
     * has only words */
    if (has_seal && iron__json_member(f->object, "words"))
        IRON_TRY(get_words(f, &file->words, err));
    if (has_seal && file->words.count == file->tokens)
        IRON_TRY(check_seal(f, path, &file->words, err));
    else
        IRON_FAIL_IF(has_seal && iron__json_member(f->object, "seal"), err, IRON_E_FORMAT,
                     "%.100s: a seal of %.60s, but words of %" PRIu64 " of its %" PRIu64 " tokens",
                     f->path, path, file->words.count, file->tokens);
    file->path = make_path(path, iron__json_get_text(iron__json_member(f->object, "path_bytes")));
    IRON_FAIL_IF(!file->path, err, IRON_E_FORMAT,
                 "%.100s: \"path_bytes\" of %.60s is not bytes in hex", f->path, path);
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

static iron_status get_array(const fields *f, const char *name, const iron__json **out,
                             iron_error *err) {
    *out = iron__json_member(f->object, name);
    return *out && (*out)->kind == IRON_JSON_ARRAY ? IRON_OK
                                                   : bad_field(err, f->path, name, "an array");
}

static iron_status get_manifest(const fields *f, iron_manifest *m, iron_error *err) {
    const char *schema = NULL, *end, *cut = NULL, *text = NULL;
    const uint64_t max = IRON_MANIFEST_WHOLE_MAX;
    fields bag = {f->path, iron__json_member(f->object, "bag")};
    const iron__json *array;
    uint32_t seal_version = 0;
    uint64_t version = 0;
    iron_error why = {0};

    IRON_FAIL_IF(!f->object || f->object->kind != IRON_JSON_OBJECT, err, IRON_E_FORMAT,
                 "%.100s is not a manifest: it is not a JSON object", f->path);
    IRON_TRY(get_text(f, "schema", &schema, err));
    IRON_FAIL_IF(strncmp(schema, SCHEMA, strlen(SCHEMA)) != 0, err, IRON_E_FORMAT,
                 "%.100s is not a manifest: its schema is \"%.40s\", not \"%s%u\"", f->path, schema,
                 SCHEMA, VERSION);
    end = parse_word(schema + strlen(SCHEMA), 10, &version);
    IRON_FAIL_IF(end && !*end && version > VERSION, err, IRON_E_UNSUPPORTED,
                 "%.100s is a manifest of version %" PRIu64
                 ", newer than this iron reads, %u; read it with a newer iron",
                 f->path, version, VERSION);
    IRON_FAIL_IF(!end || *end || version == 0 || version > VERSION, err, IRON_E_FORMAT,
                 "%.100s: schema \"%.40s\" is unknown, not \"%s%u\"", f->path, schema, SCHEMA,
                 VERSION);
    m->has_file_seals = version >= 2;
    IRON_TRY(get_u32(f, "seal_version", &seal_version, err));
    IRON_FAIL_IF(seal_version != IRON_SEAL_VERSION, err,
                 seal_version > IRON_SEAL_VERSION ? IRON_E_UNSUPPORTED : IRON_E_FORMAT,
                 "%.100s has seals of version %u; this iron knows %u", f->path, seal_version,
                 IRON_SEAL_VERSION);
    IRON_TRY(get_words(f, &m->words, err));
    IRON_TRY(check_seal(f, "the stream", &m->words, err));
    IRON_TRY(get_whole(f, "tokens", max, &m->tokens, err));
    IRON_TRY(get_whole(f, "first", max, &m->first, err));
    IRON_TRY(get_whole(f, "stream_tokens", max, &m->stream_tokens, err));
    IRON_TRY(get_u32(f, "part", &m->part, err));
    IRON_TRY(get_u32(f, "parts", &m->parts, err));
    IRON_TRY(get_statistics(f, m, err));
    IRON_TRY(get_array(f, "files", &array, err));
    IRON_TRY(IRON_NEW(&m->files, iron__json_length(array), f->path, err));
    for (; m->file_count < iron__json_length(array); m->file_count++) {
        fields one = {f->path, iron__json_at(array, m->file_count)};

        IRON_TRY(get_file(&one, m->has_file_seals, &m->files[m->file_count], err));
    }
    IRON_TRY(get_whole(f, "chunk_tokens", max, &m->chunk_tokens, err));
    IRON_TRY(get_array(f, "chunks", &array, err));
    IRON_TRY(IRON_NEW(&m->chunks, iron__json_length(array), f->path, err));
    for (; m->chunk_count < iron__json_length(array); m->chunk_count++) {
        text = iron__json_get_text(iron__json_at(array, m->chunk_count));
        IRON_FAIL_IF(!text || !parse_chunk(text, &m->chunks[m->chunk_count]), err, IRON_E_FORMAT,
                     "%.100s: chunk %zu is \"%.60s\", not \"t a b mark offset\" in hex", f->path,
                     m->chunk_count, text ? text : "not a string");
    }
    if (!bag.object || is_null(bag.object))
        return check_manifest(m, f->path, err);
    /* "bag": {"cut": "sample=2048", "bag": "..."} */
    IRON_TRY(get_text(&bag, "cut", &cut, err));
    IRON_TRY(get_text(&bag, "bag", &text, err));
    IRON_FAIL_IF(iron_bag_cut_parse(cut, &m->bag_cut, &why) != IRON_OK ||
                     iron_bag_parse(text, &m->bag, &why) != IRON_OK,
                 err, IRON_E_FORMAT, "%.90s: %.140s", f->path, why.text);
    return check_manifest(m, f->path, err);
}

/* From the text of a file of this name. */
static iron_status parse_manifest(const char *name, const char *text, size_t length,
                                  iron_manifest **out, iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    iron_manifest *m;
    fields f = {.path = name};
    iron_error why = {0};
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_NEW(&m, 1, name, err));
    status = iron__json_parse(text, length, allocator, &f.object, &why);
    m->origin = strdup(name);
    if (status != IRON_OK)
        iron__fail(err, status, why.native, "%.100s: %.130s", name, why.text);
    else
        status = m->origin ? get_manifest(&f, m, err) : iron__no_memory(err, name);
    iron__json_destroy(allocator, f.object);
    if (status == IRON_OK)
        *out = m;
    else
        iron_manifest_destroy(m);
    return status;
}

/* Reading files. */

/* Every manifest contains this, but not at a fixed place: other programs may have sorted its
 * members. */
#define SIGNATURE       "\"" SCHEMA
#define SIGNATURE_BYTES (sizeof SIGNATURE - 1)
#define BLOCK_BYTES     ((size_t)16 << 10)

/* Searches in blocks that overlap, so that the signature is found across their borders too. */
static bool has_signature(int fd) {
    char block[SIGNATURE_BYTES + BLOCK_BYTES];
    size_t overlap = 0;
    bool is_object = false;

    for (;;) {
        ssize_t count = iron__read_all(fd, block + overlap, BLOCK_BYTES);
        size_t length = overlap + (size_t)count, k = overlap;

        if (count <= 0)
            return false;
        /* the first byte that is not white space is a brace */
        while (!is_object && k < length && block[k] && strchr(" \t\r\n", block[k]))
            k++;
        if (!is_object && k < length && block[k] != '{')
            return false;
        is_object = is_object || k < length;
        if (is_object && memmem(block, length, SIGNATURE, SIGNATURE_BYTES))
            return true;
        overlap = iron__min_size(length, SIGNATURE_BYTES - 1);
        memmove(block, block + length - overlap, overlap);
    }
}

/* A pipe is not even opened: its content can be read only once, and its writer would find a reader
 * and lose it again. */
int iron_manifest_is_one(const char *path) {
    struct stat info;
    bool is_one;
    int fd;

    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    is_one = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
             (uint64_t)info.st_size <= IRON_JSON_BYTES_MAX && has_signature(fd);
    close(fd);
    return is_one;
}

/* All of a file, which may be a pipe; it stops one byte above the limit. */
static iron_status read_text(int fd, const char *path, char **text, size_t *length,
                             iron_error *err) {
    size_t capacity = (size_t)64 << 10;

    *text = NULL;
    *length = 0;
    for (;;) {
        char *larger = realloc(*text, capacity);
        ssize_t count;

        if (!larger)
            return iron__no_memory(err, path);
        *text = larger;
        count = iron__read_all(fd, *text + *length, capacity - *length);
        if (count < 0)
            return iron__fail_path(err, "read", path, errno);
        *length += (size_t)count;
        if (*length < capacity)
            return IRON_OK;
        IRON_FAIL_IF(*length > IRON_JSON_BYTES_MAX, err, IRON_E_FORMAT,
                     "%.120s has more than %zu bytes, the largest manifest that can be read; make "
                     "it with larger chunks",
                     path, IRON_JSON_BYTES_MAX);
        capacity = 2 * capacity < IRON_JSON_BYTES_MAX ? 2 * capacity : IRON_JSON_BYTES_MAX + 1;
    }
}

iron_status iron_manifest_read(const char *path, iron_manifest **out, iron_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t length = 0;
    iron_status status;

    *out = NULL;
    if (fd < 0)
        return iron__fail_path(err, "open", path, errno);
    status = read_text(fd, path, &text, &length, err);
    close(fd);
    if (status == IRON_OK)
        status = parse_manifest(path, text, length, out, err);
    free(text);
    return status;
}

/* Writing. */

/* A stdio stream that writes into an output, and its outcome. */
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

static void write_words(iron_json_writer *j, const iron__seal_words *w) {
    const uint64_t words[] = {w->count, w->t, w->a, w->b};

    iron_json_open(j, "words", '[');
    for (size_t k = 0; k < 4; k++) {
        char text[24];

        snprintf(text, sizeof text, "%" PRIu64, words[k]);
        iron_json_text(j, NULL, text);
    }
    iron_json_close(j, ']');
}

static void write_seal(iron_json_writer *j, const iron__seal_words *words) {
    char seal[IRON_SEAL_TEXT];

    iron__seal_text(*words, seal);
    iron_json_text(j, "seal", seal);
}

/* A name may be any bytes; JSON holds characters. A name that is not UTF-8 is also written in
 * hex. */
static void write_path(iron_json_writer *j, const char *path) {
    char hex[2 * 4096 + 1];
    size_t length = strlen(path);

    iron_json_text(j, "path", path);
    if (iron__json_is_utf8(path) || length > (sizeof hex - 1) / 2)
        return;
    for (size_t k = 0; k < length; k++)
        snprintf(hex + 2 * k, 3, "%02x", (unsigned char)path[k]);
    iron_json_text(j, "path_bytes", hex);
}

static void write_document(FILE *to, const iron_manifest *m) {
    iron_json_writer j = {.to = to};
    char schema[32], cut[IRON_BAG_CUT_TEXT], bag[IRON_BAG_TEXT];

    snprintf(schema, sizeof schema, "%s%u", SCHEMA, m->has_file_seals ? VERSION : 1u);
    iron_json_open(&j, NULL, '{');
    iron_json_text(&j, "schema", schema);
    write_seal(&j, &m->words);
    iron_json_number(&j, "seal_version", IRON_SEAL_VERSION);
    write_words(&j, &m->words);
    iron_json_number(&j, "tokens", m->tokens);
    iron_json_number(&j, "first", m->first);
    iron_json_number(&j, "stream_tokens", m->stream_tokens);
    iron_json_number(&j, "part", m->part);
    iron_json_number(&j, "parts", m->parts);
    iron_json_number(&j, "vocab", m->vocab);
    iron_json_open(&j, "statistics", '{');
    if (m->tokens > 0) {
        iron_json_number(&j, "min", m->stats.min);
        iron_json_number(&j, "max", m->stats.max);
    } else {
        iron_json_null(&j, "min");
        iron_json_null(&j, "max");
    }
    iron_json_number(&j, "out_of_vocab", m->stats.out_of_vocab);
    if (m->stats.out_of_vocab > 0) {
        iron_json_open(&j, "first_out_of_vocab", '{');
        iron_json_number(&j, "position", m->stats.first_position);
        iron_json_number(&j, "value", m->stats.first_value);
        iron_json_close(&j, '}');
    } else {
        iron_json_null(&j, "first_out_of_vocab");
    }
    iron_json_close(&j, '}');
    if (m->bag_cut.kind != IRON_BAG_CUT_NONE) {
        iron_bag_cut_format(&m->bag_cut, cut);
        iron_bag_format(&m->bag, bag);
        iron_json_open(&j, "bag", '{');
        iron_json_text(&j, "cut", cut);
        iron_json_text(&j, "bag", bag);
        iron_json_close(&j, '}');
    }
    iron_json_open(&j, "files", '[');
    for (size_t k = 0; k < m->file_count; k++) {
        const iron__manifest_entry *f = &m->files[k];

        iron_json_open(&j, NULL, '{');
        write_path(&j, f->path);
        iron_json_text(&j, "format", f->format);
        if (f->column)
            iron_json_text(&j, "column", f->column);
        if (f->compression[0])
            iron_json_text(&j, "compression", f->compression);
        iron_json_text(&j, "dtype", iron_dtype_name(f->dtype));
        iron_json_number(&j, "first", f->first);
        iron_json_number(&j, "tokens", f->tokens);
        if (f->sample[0])
            iron_json_text(&j, "sample", f->sample);
        if (m->has_file_seals && f->words.count == f->tokens)
            write_seal(&j, &f->words);
        if (m->has_file_seals && f->words.count > 0)
            write_words(&j, &f->words);
        iron_json_close(&j, '}');
    }
    iron_json_close(&j, ']');
    iron_json_number(&j, "chunk_tokens", m->chunk_tokens);
    iron_json_open(&j, "chunks", '[');
    for (size_t k = 0; k < m->chunk_count; k++) {
        const iron__chunk *c = &m->chunks[k];
        char text[96];
        int end = snprintf(text, sizeof text, "%" PRIx64 " %" PRIx64 " %" PRIx64, c->t, c->a, c->b);

        if (c->mark == IRON_MARK_NONE)
            snprintf(text + end, sizeof text - (size_t)end, " - -");
        else
            snprintf(text + end, sizeof text - (size_t)end, " %" PRIx64 " %" PRIx64, c->mark,
                     c->mark_at);
        iron_json_text(&j, NULL, text);
    }
    iron_json_close(&j, ']');
    iron_json_close(&j, '}');
    iron_json_end(&j);
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
    if (s.status != IRON_OK)
        return iron__fail_again(err, &s.error);
    IRON_FAIL_IF(!is_whole, err, IRON_E_IO, "the manifest could not be written completely");
    IRON_FAIL_IF(s.bytes > IRON_JSON_BYTES_MAX, err, IRON_E_ARG,
                 "the manifest has %" PRIu64
                 " bytes, more than can be read, %zu; use larger chunks "
                 "(--chunk), or several manifests",
                 s.bytes, IRON_JSON_BYTES_MAX);
    return IRON_OK;
}

iron_status iron_manifest_write(const iron_manifest *manifest, const char *path, iron_error *err) {
    iron_output *output = NULL;
    sigset_t before;
    iron_status status;

    IRON_FAIL_IF(manifest->stream_tokens > IRON_MANIFEST_WHOLE_MAX, err, IRON_E_ARG,
                 "a stream of %" PRIu64 " tokens; a manifest can describe at most 2^53",
                 manifest->stream_tokens);
    IRON_TRY(check_manifest(manifest, "a manifest to be written", err));
    iron__signals_block(&before);
    status = iron_output_open(path, &output, err);
    if (status == IRON_OK) {
        status = write_to(output, manifest, err);
        if (status == IRON_OK)
            status = iron_output_commit(output, err);
        else
            iron_output_abandon(output);
    }
    iron__signals_restore(&before);
    return status;
}
