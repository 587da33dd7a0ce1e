/* SPDX-License-Identifier: MIT */
/* sum_show.c: see sum_show.h. */
#include "sum_show.h"

#include "seal_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *sum_join_names(const char *const *names, size_t count, iron_error *err) {
    size_t length = 1;
    char *all, *at;

    for (size_t k = 0; k < count; k++)
        length += strlen(names[k]) + 1;
    all = at = malloc(length);
    if (!all) {
        usage(err, "out of memory for %zu names", count);
        return NULL;
    }
    *at = '\0';
    for (size_t k = 0; k < count; k++)
        at += sprintf(at, "%s%s", k ? " " : "", names[k]);
    return all;
}

static iron_status look(const sum_result *result, iron_digest_result *r, iron_manifest_info *info,
                        iron_error *err) {
    iron_status status;

    if (!result->manifest) {
        *r = *result->digest;
        *info = (iron_manifest_info){
            .file_count = result->source ? iron_source_file_count(result->source) : 1};
        return IRON_OK;
    }
    r->struct_size = sizeof *r;
    info->struct_size = sizeof *info;
    status = iron_manifest_digest(result->manifest, r, err);
    return status == IRON_OK ? iron_manifest_describe(result->manifest, info, err) : status;
}

/* A part's seal is no stream's: it is shown as what it is good for, a range and words to add. */
static void show_part(const iron_manifest_info *info, const iron_digest_result *r) {
    printf("part %" PRIu32 "/%" PRIu32 ": ", info->part, info->parts);
    if (info->tokens == 0) {
        puts("no tokens");
        return;
    }
    printf("positions %" PRIu64 " to %" PRIu64 " of %" PRIu64 ", words %" PRIu64 " %" PRIu64
           " %" PRIu64 " %" PRIu64 "\n",
           info->first, info->first + info->tokens - 1, info->stream_tokens, r->words[0],
           r->words[1], r->words[2], r->words[3]);
}

static iron_status show_line(const sum_result *result, iron_error *err) {
    iron_digest_result r;
    iron_manifest_info info;
    iron_status status = look(result, &r, &info, err);

    if (status != IRON_OK)
        return status;
    if (info.parts > 0)
        show_part(&info, &r);
    else
        seal_line_print(r.seal, result->name);
    return IRON_OK;
}

static void show_words(json *j, const iron_digest_result *r) {
    json_open(j, "words", '[');
    for (size_t k = 0; k < 4; k++) {
        char word[24];

        snprintf(word, sizeof word, "%" PRIu64, r->words[k]);
        json_text(j, NULL, word);
    }
    json_close(j, ']');
}

static void show_statistics(json *j, const iron_digest_result *r) {
    json_number(j, "tokens", r->tokens);
    if (r->tokens > 0) {
        json_number(j, "min", r->min);
        json_number(j, "max", r->max);
    } else {
        json_null(j, "min");
        json_null(j, "max");
    }
    json_number(j, "out_of_vocab", r->out_of_vocab);
    if (r->out_of_vocab > 0) {
        json_open(j, "first_out_of_vocab", '{');
        json_number(j, "position", r->first_out_position);
        json_number(j, "value", r->first_out_value);
        json_close(j, '}');
    } else {
        json_null(j, "first_out_of_vocab");
    }
    json_number(j, "vocab", r->vocab);
}

static iron_status look_at_file(const sum_result *result, size_t index, iron_manifest_file *f,
                                iron_error *err) {
    if (result->manifest)
        return iron_manifest_file_at(result->manifest, index, f, err);
    f->path = result->source ? iron_source_file(result->source, index) : result->name;
    f->dtype = result->dtype;
    return IRON_OK;
}

static iron_status show_files(json *j, const sum_result *result, size_t count, uint64_t *bytes,
                              iron_error *err) {
    iron_status status = IRON_OK;

    if (result->is_stream)
        json_open(j, "files", '[');
    for (size_t k = 0; k < count && status == IRON_OK; k++) {
        iron_manifest_file f = {.struct_size = sizeof f};

        status = look_at_file(result, k, &f, err);
        if (status != IRON_OK)
            break;
        *bytes = iron_dtype_bytes(f.dtype);
        if (result->is_stream)
            json_text(j, NULL, f.path);
    }
    if (result->is_stream)
        json_close(j, ']');
    return status;
}

static iron_status show_json(json *j, const sum_result *result, iron_error *err) {
    uint64_t width = 0;
    iron_digest_result r;
    iron_manifest_info info;
    iron_status status = look(result, &r, &info, err);

    if (status != IRON_OK)
        return status;
    json_open(j, NULL, '{');
    json_text(j, "file", result->name);
    json_text(j, "seal", r.seal);
    json_number(j, "seal_version", r.seal_version);
    show_words(j, &r);
    show_statistics(j, &r);
    status = show_files(j, result, info.file_count, &width, err);
    if (info.parts > 0) {
        json_number(j, "part", info.part);
        json_number(j, "parts", info.parts);
        json_number(j, "first", info.first);
        json_number(j, "stream_tokens", info.stream_tokens);
    }
    if (result->seconds > 0) {
        json_real(j, "seconds", "%.6f", result->seconds);
        json_real(j, "gb_per_s", "%.6f", (double)r.tokens * (double)width / result->seconds * 1e-9);
    }
    if (result->ranks > 0)
        json_number(j, "ranks", result->ranks);
    json_close(j, '}');
    return status;
}

iron_status sum_show(sum_printer *printer, const sum_result *result, iron_error *err) {
    if (!printer->is_json)
        return show_line(result, err);
    if (!printer->has_begun)
        json_open(&printer->j, NULL, '[');
    printer->has_begun = true;
    return show_json(&printer->j, result, err);
}

void sum_show_end(sum_printer *printer) {
    if (!printer->has_begun)
        return;
    json_close(&printer->j, ']');
    json_end(&printer->j);
}
