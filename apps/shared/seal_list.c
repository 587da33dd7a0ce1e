/* SPDX-License-Identifier: MIT */
/*
 * seal_list.c: lists of seals. Reads the lines that `iron check` verifies, and prints the results
 * of sum and merge as such lines or as JSON.
 */
#include "output.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Undoes the escapes \\, \n and \r in place; false if another character, or nothing, follows a
 * backslash. */
static bool unescape(char *name) {
    char *to = name;

    for (const char *at = name; *at; at++) {
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        at++;
        if (*at != '\\' && *at != 'n' && *at != 'r')
            return false;
        *to++ = *at == 'n' ? '\n' : *at == 'r' ? '\r' : '\\';
    }
    *to = '\0';
    return true;
}

/* Takes a seal, or a bag, from the beginning of the text; returns its length, or 0. */
static size_t take_seal(const char *text, char seal[SEAL_ROOM]) {
    size_t length = 0;

    while (length < SEAL_DIGITS && isxdigit((unsigned char)text[length]))
        length++;
    if (length == SEAL_DIGITS && text[length] == '-' && isdigit((unsigned char)text[length + 1])) {
        for (length++; length < SEAL_ROOM - 1 && isdigit((unsigned char)text[length]);)
            length++;
        if (isdigit((unsigned char)text[length]))
            return 0;
    }
    if (length < SEAL_DIGITS)
        return 0;
    for (size_t k = 0; k < length; k++)
        seal[k] = (char)tolower((unsigned char)text[k]);
    seal[length] = '\0';
    return length;
}

/* "<seal>  <name>": returns the name, or NULL. */
static char *read_plain(char *line, size_t length, char seal[SEAL_ROOM]) {
    size_t digits = take_seal(line, seal);

    if (digits == 0 || length < digits + 3 || line[digits] != ' ' ||
        (line[digits + 1] != ' ' && line[digits + 1] != '*'))
        return NULL;
    return line + digits + 2;
}

/* "IRON (<name>) = <seal>": returns the name, or NULL. A name may contain anything, so the line is
 * read from both ends: a seal has no blank. */
static char *read_tagged(char *line, size_t length, char seal[SEAL_ROOM]) {
    static const char begin[] = "IRON (", middle[] = ") = ";
    char *blank = strrchr(line, ' '), *end = blank ? blank + 1 - strlen(middle) : NULL;

    if (strncmp(line, begin, strlen(begin)) != 0 || !end || end < line + strlen(begin) + 1 ||
        strncmp(end, middle, strlen(middle)) != 0 ||
        take_seal(blank + 1, seal) != (size_t)(line + length - (blank + 1)))
        return NULL;
    *end = '\0';
    return line + strlen(begin);
}

/* Words of a comment end at blanks. In a value, blanks and % are written as %20, %25 and so on, and
 * an empty one is %00. Without a value (NULL) nothing is printed. */
static void print_value(const char *name, const char *value) {
    if (!value)
        return;
    printf(" --%s ", name);
    if (!*value)
        fputs("%00", stdout);
    for (; *value; value++) {
        if ((unsigned char)*value <= ' ' || *value == '%' || *value == '\x7f')
            printf("%%%02X", (unsigned char)*value);
        else
            putchar(*value);
    }
}

static const char **add_text(text_list *list) {
    return list->count < LIST_ROOM ? &list->texts[list->count++] : NULL;
}

/* "# iron sum --bag --sample 2048 --dtype u16": the words that follow an option are its values. */
static seal_line_kind read_comment(char *line, seal_line *out) {
    static const char begin[] = "# iron sum ";
    const char **value = NULL;
    char *rest = NULL;

    if (strncmp(line, begin, strlen(begin)) != 0)
        return SEAL_LINE_EMPTY;
    for (char *word = strtok_r(line + strlen(begin), " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        if (value) {
            char *to = word, digits[3] = "";

            *value = word;
            value = NULL;
            for (const char *at = word; *at; at++) { /* undoes %20 in place */
                bool is_code =
                    *at == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2]);

                if (is_code)
                    memcpy(digits, at + 1, 2);
                *to++ = is_code ? (char)strtoul(digits, NULL, 16) : *at;
                at += is_code ? 2 : 0;
            }
            *to = '\0';
            continue;
        }
        out->is_recursive |= strcmp(word, "--recursive") == 0;
        value = strcmp(word, "--dtype") == 0     ? &out->dtype
                : strcmp(word, "--format") == 0  ? &out->format
                : strcmp(word, "--column") == 0  ? &out->column
                : strcmp(word, "--sample") == 0  ? &out->sample
                : strcmp(word, "--eos") == 0     ? &out->eos
                : strcmp(word, "--include") == 0 ? add_text(&out->include)
                : strcmp(word, "--exclude") == 0 ? add_text(&out->exclude)
                                                 : NULL;
    }
    return SEAL_LINE_OPTIONS;
}

seal_line_kind seal_line_read(char *line, size_t length, seal_line *out) {
    bool is_escaped;
    char *name;

    *out = (seal_line){.name = NULL};
    length -= length > 0 && line[length - 1] == '\n';
    length -= length > 0 && line[length - 1] == '\r';
    line[length] = '\0';
    if (length == 0)
        return SEAL_LINE_EMPTY;
    if (line[0] == '#')
        return read_comment(line, out);
    is_escaped = line[0] == '\\';
    if (is_escaped) {
        line++;
        length--;
    }
    if (strlen(line) != length)
        return SEAL_LINE_BAD;
    name = read_plain(line, length, out->seal);
    if (!name)
        name = read_tagged(line, length, out->seal);
    out->name = name;
    return !name || (is_escaped && !unescape(name)) ? SEAL_LINE_BAD : SEAL_LINE_GOOD;
}

static bool needs_escape(const char *name) { return strpbrk(name, "\\\n\r"); }

static void print_escaped(const char *name) {
    for (; *name; name++) {
        if (*name == '\\' || *name == '\n' || *name == '\r')
            putchar('\\');
        putchar(*name == '\n' ? 'n' : *name == '\r' ? 'r' : *name);
    }
}

void seal_name_print(const char *name) {
    if (needs_escape(name))
        putchar('\\');
    print_escaped(name);
}

void sum_print_options(const sum_printer *printer, const seal_line *o, const iron_bag_cut *cut) {
    if (printer->line_count == 0 || printer->ends_with_zero ||
        (!o->dtype && !o->format && !o->column && !cut && !o->is_recursive && !o->include.count &&
         !o->exclude.count))
        return;
    fputs("# iron sum", stdout);
    if (cut)
        fputs(" --bag", stdout);
    if (cut && cut->kind == IRON_BAG_CUT_SAMPLE)
        printf(" --sample %" PRIu64, cut->value);
    if (cut && cut->kind == IRON_BAG_CUT_EOS)
        printf(" --eos %" PRIu64, cut->value);
    print_value("dtype", o->dtype);
    print_value("format", o->format);
    print_value("column", o->column);
    if (o->is_recursive)
        fputs(" --recursive", stdout);
    for (size_t k = 0; k < o->include.count; k++)
        print_value("include", o->include.texts[k]);
    for (size_t k = 0; k < o->exclude.count; k++)
        print_value("exclude", o->exclude.texts[k]);
    putchar('\n');
}

char *join_names(const char *const *names, size_t count, iron_error *err) {
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

static iron_status print_json(iron_json_writer *j, const sum_result *result,
                              const iron_digest_result *r, const iron_bag_result *bag,
                              const iron_manifest_info *info, iron_error *err) {
    iron_status status = IRON_OK;
    double bytes = 0;

    iron_json_open(j, NULL, '{');
    JSON_PUT(j, TEXT("file", result->name), TEXT("seal", r->seal),
             NUMBER("seal_version", r->seal_version),
             ARRAY("words", DECIMAL(NULL, r->words[0]), DECIMAL(NULL, r->words[1]),
                   DECIMAL(NULL, r->words[2]), DECIMAL(NULL, r->words[3])),
             NUMBER("tokens", r->tokens), NUMBER_IF(r->tokens > 0, "min", r->min),
             NUMBER_IF(r->tokens > 0, "max", r->max), NUMBER("out_of_vocab", r->out_of_vocab),
             OBJECT_IF(r->out_of_vocab > 0, "first_out_of_vocab",
                       NUMBER("position", r->first_out_position),
                       NUMBER("value", r->first_out_value)),
             NUMBER("vocab", r->vocab));
    if (bag->cut.kind != IRON_BAG_CUT_NONE)
        JSON_PUT(j, TEXT("bag", bag->text), NUMBER("samples", bag->bag.samples),
                 TEXT("bag_cut", bag->cut_text));
    if (result->is_stream)
        iron_json_open(j, "files", '[');
    for (size_t k = 0; k < info->file_count; k++) {
        iron_manifest_file f = {
            .struct_size = sizeof f, .path = result->name, .dtype = result->dtype};

        if (result->source)
            f.path = iron_source_file(result->source, k);
        if (result->manifest &&
            (status = iron_manifest_file_at(result->manifest, k, &f, err)) != IRON_OK)
            break;
        bytes = (double)r->tokens * (double)iron_dtype_bytes(f.dtype);
        if (result->is_stream)
            iron_json_text(j, NULL, f.path);
    }
    if (result->is_stream)
        iron_json_close(j, ']');
    if (info->parts > 0)
        JSON_PUT(j, NUMBER("part", info->part), NUMBER("parts", info->parts),
                 NUMBER("first", info->first), NUMBER("stream_tokens", info->stream_tokens));
    if (result->seconds > 0)
        JSON_PUT(j, REAL("seconds", "%.6f", result->seconds),
                 REAL("gb_per_s", "%.6f", bytes / result->seconds * 1e-9));
    if (result->ranks > 0)
        iron_json_number(j, "ranks", result->ranks);
    iron_json_close(j, '}');
    return status;
}

iron_status sum_print(sum_printer *printer, const sum_result *result, iron_error *err) {
    iron_digest_result digest = {.struct_size = sizeof digest};
    iron_manifest_info info = {.struct_size = sizeof info};
    iron_bag_result bag = {.struct_size = sizeof bag};
    const iron_manifest *m = result->manifest;
    if (printer->is_json && !printer->has_begun) {
        printer->j = json_begin('[');
        printer->has_begun = true;
    }
    if (result->bag)
        bag = *result->bag;
    if (m) {
        IRON_TRY(iron_manifest_digest(m, &digest, err));
        if (!result->bag)
            IRON_TRY(iron_manifest_bag(m, &bag, err));
        IRON_TRY(iron_manifest_describe(m, &info, err));
    } else {
        digest = *result->digest;
        info.file_count = result->source ? iron_source_file_count(result->source) : 1;
    }
    if (printer->is_json)
        return print_json(&printer->j, result, &digest, &bag, &info, err);
    if (info.parts == 0) {
        const char *seal = result->wants_bag ? bag.text : digest.seal;

        if (!printer->ends_with_zero && needs_escape(result->name))
            putchar('\\');
        if (printer->is_tagged)
            fputs("IRON (", stdout);
        else
            printf("%s  ", seal);
        if (printer->ends_with_zero)
            fputs(result->name, stdout);
        else
            print_escaped(result->name);
        if (printer->is_tagged)
            printf(") = %s", seal);
        putchar(printer->ends_with_zero ? '\0' : '\n');
        printer->line_count++;
        return IRON_OK;
    }
    /* a part has no seal of its own: its line shows the range and the four words to add */
    printf("part %" PRIu32 "/%" PRIu32 ": ", info.part, info.parts);
    if (info.tokens == 0)
        fputs("no tokens", stdout);
    else
        printf("positions %" PRIu64 " to %" PRIu64 " of %" PRIu64 ", words %" PRIu64 " %" PRIu64
               " %" PRIu64 " %" PRIu64,
               info.first, info.first + info.tokens - 1, info.stream_tokens, digest.words[0],
               digest.words[1], digest.words[2], digest.words[3]);
    if (bag.cut.kind != IRON_BAG_CUT_NONE)
        printf(", bag %s", bag.text);
    putchar('\n');
    return IRON_OK;
}

void sum_print_end(sum_printer *printer) {
    if (printer->has_begun)
        json_end(&printer->j, ']');
}
