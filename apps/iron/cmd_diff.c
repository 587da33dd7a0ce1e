/* SPDX-License-Identifier: MIT */
/*
 * cmd_diff.c: `iron diff`: where two token streams differ, and how.
 *
 * Each side is a set of token files, standard input, or a manifest. The files of a manifest are
 * opened too if they still exist, by their names relative to the current directory or else to the
 * manifest's; the library finds out whether they still match the manifest. The text output shows
 * the first ten differing ranges, the JSON output all of them.
 */
#include "command.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANGES_SHOWN 10u
#define DTYPE_ROOM   16

typedef struct diff_options {
    reading reading;
    uint64_t chunk;
    bag_options bag;
    bool has_chunk, wants_json;
} diff_options;

static const option diff_table[] = {
    OPTION("chunk", OPTION_NUMBER, "TOKENS", diff_options, chunk,
           "size of the chunks that are reported as different; a multiple of 4, at least 1024",
           .standard = "that of the manifest, otherwise 1048576", GIVEN(diff_options, has_chunk)),
    BAG_CUT_OPTIONS(diff_options, "to find out whether samples were shuffled: "),
    OPTION("json", OPTION_FLAG, NULL, diff_options, wants_json,
           "print one JSON document with all ranges"),
};

/* One side of the comparison. */
typedef struct diff_input {
    const char *path;
    iron_manifest *manifest; /* or NULL */
    iron_source *source;     /* or NULL */
} diff_input;

/* Lists the paths of all files in some place: beside the first `length` bytes of the manifest's
 * path, and without the first `skip` bytes of their names, which all have in common. False if one
 * does not exist or is not a regular file, or if memory is short. *format is NULL if they have
 * several, which are then detected. */
static bool name_files(const diff_input *input, size_t length, size_t skip, char **paths,
                       size_t count, const char **format) {
    iron_manifest_file first = {.struct_size = sizeof first}, file = first;

    for (size_t k = 0; k < count; k++) {
        bool is_remote;
        struct stat info;
        char *name;

        if (iron_manifest_file_at(input->manifest, k, &file, NULL) != IRON_OK)
            return false;
        first = k ? first : file;
        *format = k && (!*format || strcmp(*format, file.format) != 0) ? NULL : file.format;
        if (strncmp(file.path, first.path, skip) != 0)
            return false;
        is_remote = iron_path_is_remote(file.path) != 0; /* it is where it is */
        if (asprintf(&name, "%.*s%s", is_remote || (file.path[0] == '/' && !skip) ? 0 : (int)length,
                     input->path, file.path + (is_remote ? 0 : skip)) < 0)
            return false;
        paths[k] = name;
        if (!is_remote &&
            (strcmp(name, "-") == 0 || stat(name, &info) != 0 || !S_ISREG(info.st_mode)))
            return false;
    }
    return count > 0;
}

/* Opens the files in some place. They replace those opened before if they have the length that the
 * manifest says. */
static void try_place(diff_input *input, const iron_manifest_info *info, size_t length,
                      size_t skip) {
    size_t count = info->file_count;
    char **paths = calloc(count + 1, sizeof *paths);
    iron_manifest_file first = {.struct_size = sizeof first};
    iron_source_options o = {.struct_size = sizeof o};
    iron_source *source = NULL, *other;

    if (paths && name_files(input, length, skip, paths, count, &o.format) &&
        iron_manifest_file_at(input->manifest, 0, &first, NULL) == IRON_OK) {
        o.dtype = first.dtype;
        o.column = first.column;
        o.paths = (const char *const *)paths;
        o.path_count = count;
        (void)iron_source_open(&o, &source, NULL); /* NULL if it fails */
    }
    for (size_t k = 0; paths && k < count; k++)
        free(paths[k]);
    free(paths);
    other = source;
    if (source && (!input->source || iron_source_tokens(source) == info->tokens)) {
        other = input->source;
        input->source = source;
    }
    iron_source_close(other);
}

/* The files are searched for under their names, then beside the manifest, as iron check does: there
 * names may lack folders that all of them begin with. */
static iron_status open_manifest(diff_input *input, iron_error *err) {
    iron_manifest_info info = {.struct_size = sizeof info};
    iron_manifest_file first = {.struct_size = sizeof first};
    const char *slash = strrchr(input->path, '/'), *name;
    size_t folder = slash ? (size_t)(slash - input->path) + 1 : 0;
    iron_status status = iron_manifest_read(input->path, &input->manifest, err);

    if (status == IRON_OK)
        status = iron_manifest_describe(input->manifest, &info, err);
    if (status != IRON_OK || info.parts > 0)
        return status;
    try_place(input, &info, 0, 0);
    if (iron_manifest_file_at(input->manifest, 0, &first, NULL) != IRON_OK)
        return IRON_OK;
    for (name = first.path; name; name = strchr(name, '/') ? strchr(name, '/') + 1 : NULL)
        if (!input->source || iron_source_tokens(input->source) != info.tokens)
            try_place(input, &info, folder, (size_t)(name - first.path));
    return IRON_OK;
}

/* The file that contains a position, and the index of the token in that file; NULL: unknown. */
static const char *find_place(const diff_input *input, uint64_t position, uint64_t *token) {
    iron_manifest_file file = {.struct_size = sizeof file};

    if (!input->manifest)
        return reading_find_file(input->source, position, token);
    for (size_t k = 0; iron_manifest_file_at(input->manifest, k, &file, NULL) == IRON_OK; k++) {
        *token = position - file.first;
        if (position >= file.first && *token < file.tokens)
            return file.path;
    }
    return NULL;
}

static const char *kind_name(iron_diff_kind kind) {
    static const char *const names[] = {"equal",    "changed", "truncated", "extended",
                                        "inserted", "deleted", "reordered", "repeated",
                                        "moved",    "shuffled"};

    return kind < COUNT(names) ? names[kind] : "unknown";
}

static void print_text(const iron_diff *d, const iron_diff_report *r, const diff_input inputs[2]) {
    bool is_exact = r->first_end - r->first <= 1;
    uint64_t first, end;

    if (r->kind == IRON_DIFF_EQUAL) {
        iron_digest_result result = {.struct_size = sizeof result};
        const iron_manifest *m = inputs[0].manifest ? inputs[0].manifest : inputs[1].manifest;

        printf("equal: %" PRIu64 " tokens", r->tokens[0]);
        if (m && iron_manifest_digest(m, &result, NULL) == IRON_OK)
            printf(", seal %s", result.seal);
        putchar('\n');
        return;
    }
    if (!is_exact)
        printf("first difference in positions %" PRIu64 " to %" PRIu64
               ": the exact position is not in the manifests\n",
               r->first, r->first_end - 1);
    else
        printf("first difference at position %" PRIu64 ": ", r->first);
    for (int side = 0; side < 2 && is_exact; side++) {
        if (r->has_value[side])
            printf("%" PRIu32, r->value[side]);
        else
            fputs(r->first < r->tokens[side] ? "unknown" : "the end", stdout);
        fputs(side ? "\n" : " | ", stdout);
    }
    for (int side = 0; side < 2; side++) {
        uint64_t token = 0;
        const char *file =
            r->first < r->tokens[side] ? find_place(&inputs[side], r->first, &token) : NULL;

        printf("  %s ", side ? "B" : "A");
        if (file)
            printf("%s, %stoken %" PRIu64 "\n", file, is_exact ? "" : "from ", token);
        else if (r->first < r->tokens[side])
            printf("%s\n", inputs[side].path);
        else
            printf("%s has ended: %" PRIu64 " tokens\n", inputs[side].path, r->tokens[side]);
    }
    /* after other edits nearly all chunks differ */
    if (r->chunks > 1 && (r->kind == IRON_DIFF_CHANGED || r->edits == IRON_COUNT_UNKNOWN)) {
        printf("%" PRIu64 " of %" PRIu64 " chunks of %" PRIu64 " tokens differ: positions ",
               r->differing_chunks, r->chunks, r->chunk_tokens);
        for (size_t k = 0; k < RANGES_SHOWN && iron_diff_range(d, k, &first, &end) == 0; k++)
            printf("%s%" PRIu64 "-%" PRIu64, k ? ", " : "", first, end - 1);
        if (r->range_count > RANGES_SHOWN)
            printf(" and %zu more", r->range_count - RANGES_SHOWN);
        putchar('\n');
    }
    printf("%s: %s\n", kind_name(r->kind), r->text);
}

static void print_json(const iron_diff *d, const iron_diff_report *r) {
    iron_json_writer j = json_begin('{');
    char cut[IRON_BAG_CUT_TEXT];
    uint64_t first, end;

    JSON_PUT(&j, BOOL("equal", r->kind == IRON_DIFF_EQUAL), TEXT("kind", kind_name(r->kind)),
             KNOWN("position", r->position), NUMBER("length", r->length),
             KNOWN("source", r->source), KNOWN("edits", r->edits),
             BOOL("more_edits", r->has_more_edits),
             ARRAY("tokens", NUMBER(NULL, r->tokens[0]), NUMBER(NULL, r->tokens[1])),
             OBJECT_IF(r->first != IRON_COUNT_UNKNOWN, "first_difference",
                       NUMBER("position", r->first), NUMBER("end", r->first_end),
                       ARRAY("values", NUMBER_IF(r->has_value[0], NULL, r->value[0]),
                             NUMBER_IF(r->has_value[1], NULL, r->value[1]))),
             NUMBER("chunk_tokens", r->chunk_tokens), NUMBER("chunks", r->chunks),
             NUMBER("differing_chunks", r->differing_chunks));
    iron_json_open(&j, "ranges", '[');
    for (size_t k = 0; iron_diff_range(d, k, &first, &end) == 0; k++)
        JSON_PUT(&j, ARRAY(NULL, NUMBER(NULL, first), NUMBER(NULL, end)));
    iron_json_close(&j, ']');
    iron_bag_cut_format(&r->bag_cut, cut);
    if (cut[0]) /* shuffled */
        iron_json_text(&j, "bag_cut", cut);
    JSON_PUT(&j, BOOL("verified", r->is_verified), TEXT("text", r->text));
    json_end(&j, '}');
}

/* Manifests first, since they tell the type of the other side. */
static iron_status open_inputs(const diff_options *o, const args *a, diff_input inputs[2],
                               iron_error *err) {
    iron_status status = IRON_OK;

    for (int side = 0; side < 2 && status == IRON_OK; side++) {
        const char *path = inputs[side].path = a->values[side];

        if (strcmp(path, "-") != 0 && iron_manifest_is_one(path))
            status = open_manifest(&inputs[side], err);
    }
    for (int side = 0; side < 2 && status == IRON_OK; side++) {
        const char *path = inputs[side].path, *names = o->reading.dtype_name;
        const char *comma = names ? strchr(names, ',') : NULL;
        iron_manifest_file first = {.struct_size = sizeof first};
        reading r = o->reading;
        struct stat info;
        char name[DTYPE_ROOM];
        int length;

        r.is_for_raw = !comma; /* one stream may have a header and the other none */
        if (comma) {           /* --dtype u16,u32 gives one type for each side */
            length = snprintf(name, sizeof name, "%.*s", side ? INT_MAX : (int)(comma - names),
                              side ? comma + 1 : names);
            if (length >= DTYPE_ROOM)
                return usage(
                    err, "--dtype %.40s: use one of u8, u16, u32, i32 and i64, or two: A,B", names);
            r.dtype_name = name;
        }
        status = reading_check(&r, err);
        if (status != IRON_OK || inputs[side].manifest)
            continue;
        /* without --dtype, headerless files have the type that the other side's manifest lists */
        if (!r.dtype_name && inputs[!side].manifest &&
            iron_manifest_file_at(inputs[!side].manifest, 0, &first, NULL) == IRON_OK) {
            r.dtype_name = iron_dtype_name(first.dtype);
            r.dtype = first.dtype;
        }
        r.wants_seekable = true;
        /* standard input that is a file, from its beginning on, can be read at any position */
        if (strcmp(path, "-") == 0 && fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode) &&
            lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
            path = "/dev/stdin";
        status = reading_open(&r, &path, 1, &inputs[side].source, err);
    }
    return status;
}

static iron_status run(void *options, args *a, iron_error *err) {
    diff_options *o = options;
    diff_input inputs[2] = {{0}};
    iron_diff_side sides[2];
    iron_diff_options wanted = {.struct_size = sizeof wanted, .progress = progress_update};
    iron_diff_report r = {.struct_size = sizeof r};
    iron_diff *d = NULL;
    progress p;
    iron_status status;

    o->bag.wants_bag = o->bag.has_sample || o->bag.has_eos;
    if (a->value_count != 2)
        return usage(err, "diff takes two streams, but %zu are given; see iron diff --help",
                     a->value_count);
    if (strcmp(a->values[0], "-") == 0 && strcmp(a->values[1], "-") == 0)
        return usage(err, "standard input (-) can be one of the two streams, not both");
    IRON_TRY(reading_cpu_backend(&o->reading, "streams are compared", err));
    if (o->has_chunk && o->chunk == 0)
        return usage(err, "--chunk is 0; it must be a multiple of 4, at least 1024");
    IRON_TRY(bag_check(&o->bag, err));
    if ((status = open_inputs(o, a, inputs, err)) != IRON_OK)
        goto done;
    for (int side = 0; side < 2; side++)
        sides[side] =
            (iron_diff_side){inputs[side].manifest, inputs[side].source, inputs[side].path};
    p = progress_start(0);
    wanted.threads = o->reading.threads;
    wanted.chunk_tokens = o->chunk;
    wanted.bag = bag_cut_of(&o->bag);
    wanted.context = &p;
    status = iron_diff_run(&sides[0], &sides[1], &wanted, &d, err);
    progress_clear(&p);
    if (status != IRON_OK || (status = iron_diff_describe(d, &r, err)) != IRON_OK)
        goto done;
    if (o->wants_json)
        print_json(d, &r);
    else
        print_text(d, &r, inputs);
    if (r.kind != IRON_DIFF_EQUAL) { /* a result, not a failure: without an error line */
        status = IRON_E_MISMATCH;
        err->text[0] = '\0';
    }
done:
    iron_diff_destroy(d);
    for (int side = 0; side < 2; side++) {
        iron_source_close(inputs[side].source);
        iron_manifest_destroy(inputs[side].manifest);
    }
    return status;
}

const command command_diff = {
    .name = "diff",
    .summary = "shows where and how two token streams differ",
    .synopsis = "A B [OPTIONS]",
    .description =
        "Compares two streams token by token, whatever their formats and token widths. A and B are "
        "files, directories (all files as one stream), manifests of iron sum, or - for standard "
        "input. Reports the first difference and what happened to A to make it B: tokens were "
        "changed, inserted, deleted, repeated, moved or reordered, or the stream was truncated or "
        "extended. One edit is named exactly; of several, the first is named, with their number. "
        "If the samples of A are all there in another order, they were shuffled: a sample is a row "
        "or document of the files, or what --sample or --eos say. Manifests are compared without "
        "their files; if the files still exist, everything is exact.\n\n"
        "--dtype may give two types, one for each side: --dtype u16,u32. A single type applies to "
        "headerless files; without one they have the type that the other side's manifest names. "
        "Comparisons run on the CPU.",
    .groups = {{NULL, diff_table, COUNT(diff_table), 0}, READING_GROUP(diff_options, reading)},
    .exit_status = "0: the streams are equal; 1: they differ; 2: error.",
    .environment = DRIVER_VARIABLES,
    .examples = "iron diff corpus.manifest shards/",
    .options_bytes = sizeof(diff_options),
    .run = run,
};
