/* SPDX-License-Identifier: MIT */
/*
 * cmd_sum.c: `iron sum`: prints seals of token files, one line per file, or one for all files as a
 * single stream, with a manifest or as one part of several.
 *
 * Everything that can be refused is refused before anything is read. A file that cannot be read
 * does not keep the other files from being printed, as with sha256sum; the exit status is then 2.
 */
#include "command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sum_options {
    reading reading;
    uint64_t vocab, chunk;
    const char *manifest, *part_text, *output;
    uint32_t part, parts; /* parts is 0 without --part */
    bag_options bag;
    bool has_chunk, has_vocab, wants_stream, wants_json, wants_check, is_tagged, ends_with_zero;
} sum_options;

static const option sum_table[] = {
    OPTION("stream", OPTION_FLAG, NULL, sum_options, wants_stream,
           "treat all files as one stream with one seal"),
    OPTION("manifest", OPTION_TEXT, "FILE", sum_options, manifest,
           "one stream; also write a manifest with a seal for each file and chunk, so that iron "
           "check and iron diff can tell where something changed"),
    OPTION("chunk", OPTION_NUMBER, "TOKENS", sum_options, chunk,
           "chunk size of --manifest and --part; a multiple of 4, at least 1024",
           .standard = "1048576", GIVEN(sum_options, has_chunk)),
    OPTION("part", OPTION_TEXT, "I/N", sum_options, part_text,
           "one stream; process only part I of N (1-based) and write it to the file that -o names; "
           "join the parts with iron merge"),
    OPTION("output", OPTION_TEXT, "FILE", sum_options, output, "output file of --part",
           .letter = 'o'),
    OPTION("bag", OPTION_FLAG, NULL, sum_options, bag.wants_bag,
           "print bags, which do not depend on the order of samples, instead of seals; JSON, "
           "manifests and parts have both"),
    BAG_CUT_OPTIONS(sum_options, "with --bag: "),
    OPTION("vocab", OPTION_NUMBER, "V", sum_options, vocab,
           "size of the vocabulary: warn about tokens at or above V; JSON counts them", .min = 1,
           .max = UINT64_C(1) << 32, .standard = "50257, without a warning",
           GIVEN(sum_options, has_vocab)),
    OPTION("check", OPTION_FLAG, NULL, sum_options, wants_check,
           "verify the named lists: the same as iron check, with its options", .letter = 'c'),
    OPTION("tag", OPTION_FLAG, NULL, sum_options, is_tagged,
           "print lines in BSD style: IRON (<file>) = <seal>"),
    OPTION("zero", OPTION_FLAG, NULL, sum_options, ends_with_zero,
           "end each line with a zero byte instead of a newline, and do not escape names",
           .letter = 'z'),
    OPTION("json", OPTION_FLAG, NULL, sum_options, wants_json,
           "print one JSON document: an array with one object per line"),
};

static iron_status check_outputs(sum_options *o, iron_error *err) {
    const char *slash = o->part_text ? strchr(o->part_text, '/') : NULL;
    uint64_t part = 0, parts = 0;
    char first[24] = "";

    if (slash && slash - o->part_text < (ptrdiff_t)sizeof first) /* "2/3" */
        memcpy(first, o->part_text, (size_t)(slash - o->part_text));
    if (o->part_text && (!slash || parse_number("--part", first, &part, err) != IRON_OK ||
                         parse_number("--part", slash + 1, &parts, err) != IRON_OK))
        return usage(err, "invalid --part '%.40s'; give I/N, such as 2/3", o->part_text);
    if (o->part_text && (part < 1 || part > parts || parts > UINT32_MAX))
        return usage(err, "--part %.40s: I must be 1 to N", o->part_text);
    o->part = (uint32_t)part;
    o->parts = (uint32_t)parts;
    if (o->part_text && !o->output)
        return usage(err, "--part needs -o FILE for its result; iron merge joins the parts");
    if (o->output && !o->part_text)
        return usage(
            err, "-o is only for --part; use --manifest to write the manifest of a whole stream");
    if (o->manifest && o->part_text)
        return usage(err, "--manifest describes a whole stream; write a part with -o");
    if (o->has_chunk && !o->manifest && !o->part_text)
        return usage(err, "--chunk needs --manifest or --part");
    if (o->has_chunk && (o->chunk < 1024 || o->chunk % 4 != 0))
        return usage(err, "--chunk is %" PRIu64 "; it must be a multiple of 4, at least 1024",
                     o->chunk);
    if (o->bag.wants_bag)
        IRON_TRY(reading_cpu_backend(&o->reading, "bags are made", err));
    IRON_TRY(bag_check(&o->bag, err));
    if (o->manifest)
        return reading_target("--manifest", o->manifest, err);
    return o->output ? reading_target("-o", o->output, err) : IRON_OK;
}

/* Scans one file, or several as one stream, and prints the seal. The manifest is written first, so
 * that a printed result has always been saved; neither --manifest nor -o may be an input file. */
static iron_status sum_file(const sum_options *o, const sum_result *named, const char *const *paths,
                            size_t count, sum_printer *to, iron_error *err) {
    const char *target = o->manifest ? o->manifest : o->output;
    progress p = progress_start(0);
    double started;
    sum_result result = *named;
    iron_digest_result digest = {.struct_size = sizeof digest};
    iron_bag_result bag = {.struct_size = sizeof bag};
    /* lines of bags need no seal */
    bool is_bag_only =
        o->bag.wants_bag && !o->wants_json && !o->manifest && !o->parts && !o->has_vocab;
    iron_source *source = NULL;
    iron_manifest *m = NULL;
    iron_scan_options s = reading_scan_options(&o->reading, &p);
    iron_status status;

    if ((status = reading_open(&o->reading, paths, count, &source, err)) != IRON_OK ||
        (status = reading_guard(source, "--manifest", o->manifest, err)) != IRON_OK ||
        (status = reading_guard(source, "-o", o->output, err)) != IRON_OK)
        goto done;
    p = progress_start(iron_dtype_bytes(iron_source_dtype(source)));
    started = seconds_now();
    s.vocab = o->vocab;
    s.bag = bag_cut_of(&o->bag);
    if (o->manifest || o->parts)
        s.chunk_tokens = o->chunk;
    if (o->parts > 0) {
        uint64_t tokens = iron_source_tokens(source);

        s.part = o->part;
        s.parts = o->parts;
        status = tokens == IRON_COUNT_UNKNOWN
                     ? usage(err, "--part needs regular files: the length of a pipe is not known "
                                  "in advance")
                     : iron_part_range(tokens, o->part, o->parts, &s.first, &s.count, err);
        if (status != IRON_OK)
            goto done;
    }
    status = reading_scan(source, &s, is_bag_only, &m, &bag, err);
    if (is_bag_only) {
        result.bag = &bag;
        result.digest = &digest;
    }
    result.seconds = seconds_now() - started;
    result.manifest = m;
    result.wants_bag = o->bag.wants_bag;
    progress_clear(&p);
    if (status != IRON_OK ||
        (target && (status = iron_manifest_write(m, target, err)) != IRON_OK) ||
        (status = sum_print(to, &result, err)) != IRON_OK ||
        (m && (status = iron_manifest_digest(m, &digest, err)) != IRON_OK))
        goto done;
    /* only if the user told the size: most vocabularies differ from the default */
    if (o->has_vocab && digest.out_of_vocab > 0)
        status = reading_warn_of_vocab(
            &o->reading, result.name,
            &(iron_stat_place){digest.first_out_position, digest.first_out_value},
            digest.out_of_vocab, digest.tokens, o->vocab, err);
done:
    iron_manifest_destroy(m);
    iron_source_close(source);
    return status;
}

/* Prints an error and continues. A message that is the same for every file is printed once. */
static void note(iron_status status, const iron_error *why, iron_error *last) {
    if (status == IRON_OK)
        return;
    if (why->text[0] && (last->status == IRON_OK || strcmp(last->text, why->text) != 0))
        command_complain(why);
    /* an error counts more than a warning under --strict */
    if (status == IRON_E_MISMATCH && last->status != IRON_OK)
        return;
    *last = *why;
    last->status = status;
}

static iron_status sum_each(const sum_options *o, const args *a, sum_printer *to, iron_error *err) {
    iron_error last = {IRON_OK, 0, ""};

    for (size_t k = 0; k < a->value_count; k++) {
        iron_input_files *files = NULL;
        iron_error why = {IRON_OK, 0, ""};
        iron_status status = reading_list(&o->reading, a->values[k], &files, &why);

        note(status, &why, &last);
        for (size_t n = 0; status == IRON_OK && n < iron_input_files_count(files); n++) {
            const char *path = iron_input_files_at(files, n);

            why = (iron_error){IRON_OK, 0, ""};
            note(sum_file(o, &(sum_result){.name = path}, &path, 1, to, &why), &why, &last);
        }
        iron_input_files_destroy(files);
    }
    err->text[0] = '\0';
    /* an error does not hide the warnings about the files that were printed */
    if (iron_status_exit_code(last.status) == 2)
        reading_finish("iron", last.status);
    return last.status;
}

bool sum_takes_check(int *argc, char **argv) {
    int count = 0;
    bool has_ended = false;

    for (int k = 0; k < *argc; k++) {
        has_ended = has_ended || strcmp(argv[k], "--") == 0;
        if (has_ended || (strcmp(argv[k], "-c") != 0 && strcmp(argv[k], "--check") != 0))
            argv[count++] = argv[k];
    }
    if (count == *argc)
        return false;
    *argc = count;
    return true;
}

static iron_status run(void *options, args *a, iron_error *err) {
    sum_options *o = options;
    const char *const *paths;
    sum_printer to = {0};
    char *name = NULL;
    iron_status status;
    bool is_stream;
    iron_bag_cut cut;
    seal_line comment;

    IRON_TRY(reading_check(&o->reading, err));
    o->reading.wants_seekable = o->part_text != NULL;
    IRON_TRY(
        command_default_input(a, "no input; name files, or give tokens on standard input", err));
    if (o->is_tagged && o->wants_json)
        return usage(err, "--tag is for lines; leave it out with --json");
    IRON_TRY(check_outputs(o, err));
    to = (sum_printer){
        .is_json = o->wants_json, .is_tagged = o->is_tagged, .ends_with_zero = o->ends_with_zero};
    is_stream = o->wants_stream || o->manifest || o->part_text;
    o->reading.is_for_raw = !is_stream && a->value_count > 1;
    paths = (const char *const *)a->values;
    if (is_stream && !(name = join_names(paths, a->value_count, err)))
        return IRON_E_NOMEM;
    status = is_stream ? sum_file(o, &(sum_result){.name = name, .is_stream = true}, paths,
                                  a->value_count, &to, err)
                       : sum_each(o, a, &to, err);
    free(name);
    /* check can verify all lines but those of a pipe, and of one stream of several arguments */
    cut = bag_cut_of(&o->bag);
    comment = reading_comment(&o->reading, is_stream);
    if (!o->part_text && !(is_stream && a->value_count > 1) &&
        !(a->value_count == 1 && strcmp(a->values[0], "-") == 0))
        sum_print_options(&to, &comment, o->bag.wants_bag ? &cut : NULL);
    sum_print_end(&to);
    return status;
}

const command command_sum = {
    .name = "sum",
    .summary = "prints seals of token files, like sha256sum",
    .synopsis = "[FILE...] [OPTIONS]",
    .description =
        "Prints <seal>  <file> for each file; a directory stands for its token files in natural "
        "order. Without files, or for -, reads standard input. Two streams with the same tokens in "
        "the same order have the same seal, whatever their format and token width. The seal "
        "detects accidents, not deliberate changes.\n\n"
        "With --bag, prints <bag>  <file>: two streams with the same samples in any order have the "
        "same bag. A sample is a row or document of the file, or what --sample or --eos say.\n\n"
        "iron check verifies the printed list. Its last line is a comment with the options that "
        "check needs to read the files again.",
    .groups = {{NULL, sum_table, COUNT(sum_table), 0}, READING_GROUP(sum_options, reading)},
    .environment = DRIVER_VARIABLES,
    .examples = "iron sum shards/ --dtype u16 > seals.txt && iron check seals.txt\n"
                "iron sum shards/ --dtype u16 --manifest corpus.manifest\n"
                "iron sum --bag --sample 2048 --stream shards/ --dtype u16",
    .options_bytes = sizeof(sum_options),
    .defaults = &(const sum_options){.vocab = 50257, .chunk = IRON_CHUNK_TOKENS},
    .run = run,
};
