/* SPDX-License-Identifier: MIT */
/*
 * cmd_check.c: `iron check`: are the files still what a list or a manifest says? A list is verified
 * line by line as it is read, a manifest as one stream by the library.
 */
#include "check_show.h"
#include "command.h"
#include "progress.h"
#include "reading.h"
#include "seal_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A name has at most 4095 bytes, and may be escaped; a longer line is no line of ours. */
#define LINE_ROOM 16384u

typedef struct check_options {
    reading reading;
    bool is_quiet, is_silent, takes_missing, wants_json;
} check_options;

/* Reads up to a newline; what does not fit is passed over. False: there was nothing more. */
static bool read_line(FILE *from, char line[LINE_ROOM], size_t *length, bool *is_whole) {
    int c = EOF;

    *length = 0;
    *is_whole = true;
    while ((c = getc(from)) != EOF && c != '\n') {
        if (*length + 2 < LINE_ROOM)
            line[(*length)++] = (char)c;
        else
            *is_whole = false;
    }
    return c != EOF || *length > 0 || !*is_whole;
}

static void fail_with(iron_check_file *file, iron_check_state state, const char *reason) {
    file->state = state;
    snprintf(file->reason, sizeof file->reason, "%s", reason);
}

/* The seal of what is there under the name now. */
static iron_status seal_now(const check_options *o, const char *name, char seal[33],
                            iron_error *err) {
    iron_digest_result r = {.struct_size = sizeof r};
    iron_scan_options scan;
    iron_source *source = NULL;
    iron_manifest *m = NULL;
    progress p = progress_start(0);
    iron_status status = reading_open(&o->reading, &name, 1, &source, err);

    iron_scan_options_init(&scan);
    scan.threads = (uint32_t)o->reading.threads;
    scan.device = (uint32_t)o->reading.device;
    scan.backend = o->reading.backend;
    scan.progress = progress_tell;
    scan.context = &p;
    if (status == IRON_OK)
        status = iron_scan(source, &scan, &m, err);
    progress_clear(&p);
    if (status == IRON_OK)
        status = iron_manifest_digest(m, &r, err);
    if (status == IRON_OK)
        memcpy(seal, r.seal, sizeof r.seal);
    iron_manifest_destroy(m);
    iron_source_close(source);
    return status;
}

static void check_line(const check_options *o, const seal_line *line, check_tally *tally) {
    iron_check_file file = {.struct_size = sizeof file, .path = line->name};
    iron_status status = IRON_OK;
    iron_error why = {IRON_OK, 0, ""};

    snprintf(file.expected, sizeof file.expected, "%s", line->seal);
    if (strcmp(line->name, "-") != 0 && access(line->name, F_OK) != 0 && errno == ENOENT) {
        fail_with(&file, IRON_CHECK_MISSING, "the file is not there");
    } else if ((status = seal_now(o, line->name, file.found, &why)) != IRON_OK) {
        fail_with(&file, IRON_CHECK_ERROR, why.text);
    } else if (strcmp(file.found, file.expected) != 0) {
        file.state = IRON_CHECK_FAILED;
    }
    check_show(tally, &file, status);
}

static iron_status check_lines(const check_options *o, FILE *from, const char *name,
                               check_tally *tally, iron_error *err) {
    size_t good = 0, length;
    char line[LINE_ROOM];
    bool is_whole;

    while (read_line(from, line, &length, &is_whole)) {
        seal_line read;
        seal_line_kind kind = seal_line_read(line, length, &read);

        if (kind == SEAL_LINE_BAD || (kind == SEAL_LINE_GOOD && !is_whole)) {
            tally->bad_lines++;
        } else if (kind == SEAL_LINE_GOOD) {
            good++;
            check_line(o, &read, tally);
        }
    }
    if (ferror(from))
        return usage(err, "cannot read %.120s: %s", name, strerror(errno));
    if (good == 0)
        return usage(err,
                     "%.120s has no line of the form <seal>  <file>, and is no manifest (which "
                     "is a regular file, not a pipe); give what iron sum printed, or wrote with "
                     "--manifest",
                     name);
    return check_conclude(tally, name, err);
}

static iron_status check_list(const check_options *o, const char *path, check_tally *tally,
                              iron_error *err) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *from = is_stdin ? stdin : fopen(path, "re");
    iron_status status;

    if (!from)
        return usage(err, "cannot open %.120s: %s", path, strerror(errno));
    status = check_lines(o, from, is_stdin ? "standard input" : path, tally, err);
    if (!is_stdin)
        fclose(from);
    return status;
}

/* What is given along must say what the manifest says. */
static iron_status check_flags(const check_options *o, const iron_manifest *m, iron_error *err) {
    iron_manifest_file f = {.struct_size = sizeof f};
    const char *format = o->reading.format;

    for (size_t k = 0; iron_manifest_file_at(m, k, &f, NULL) == IRON_OK; k++) {
        if (o->reading.dtype != IRON_DTYPE_NONE && o->reading.dtype != f.dtype)
            return usage(err, "--dtype %s contradicts the manifest, where %.100s is %s",
                         o->reading.dtype_name, f.path, iron_dtype_name(f.dtype));
        if (format && strcmp(format, "auto") != 0 && strcmp(format, f.format) != 0)
            return usage(err, "--format %.20s contradicts the manifest, where %.100s is %s", format,
                         f.path, f.format);
    }
    return IRON_OK;
}

static iron_status check_files(const check_options *o, const iron_manifest *m, iron_check **check,
                               iron_error *err) {
    progress p = progress_start(0);
    iron_check_options options = {.struct_size = sizeof options,
                                  .threads = (uint32_t)o->reading.threads,
                                  .device = (uint32_t)o->reading.device,
                                  .backend = o->reading.backend,
                                  .takes_missing = o->takes_missing,
                                  .progress = progress_tell,
                                  .context = &p};
    iron_status status = iron_check_run(m, &options, check, err);

    progress_clear(&p);
    return status;
}

static iron_status check_manifest(const check_options *o, const char *path, check_tally *tally,
                                  iron_error *err) {
    iron_manifest *m = NULL;
    iron_check *check = NULL;
    iron_status status = iron_manifest_read(path, &m, err);

    if (status == IRON_OK)
        status = check_flags(o, m, err);
    if (status == IRON_OK)
        status = check_files(o, m, &check, err);
    for (size_t k = 0; status == IRON_OK && k < iron_check_file_count(check); k++) {
        iron_check_file file = {.struct_size = sizeof file};

        status = iron_check_file_at(check, k, &file, err);
        if (status == IRON_OK)
            check_show(tally, &file, IRON_OK);
    }
    if (status == IRON_OK)
        status = check_conclude(tally, path, err);
    iron_check_destroy(check);
    iron_manifest_destroy(m);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    check_options o = {0};
    const option options[] = {
        {"quiet", OPTION_FLAG, &o.is_quiet, NULL},
        {"status", OPTION_FLAG, &o.is_silent, NULL},
        {"ignore-missing", OPTION_FLAG, &o.takes_missing, NULL},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
        READING_OPTIONS(o.reading),
    };
    args a = {.options = options, .option_count = COUNT(options)};
    check_tally tally = {0};
    iron_status status;
    bool is_done;

    status = command_args(&command_check, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    if (a.value_count != 1)
        return usage(err, "check takes one list or manifest, and has %zu; see iron check --help",
                     a.value_count);
    if ((status = reading_check(&o.reading, err)) != IRON_OK)
        return status;
    o.reading.is_for_raw = true;
    tally = (check_tally){.is_json = o.wants_json,
                          .is_quiet = o.is_quiet,
                          .is_silent = o.is_silent,
                          .takes_missing = o.takes_missing};
    return (iron_manifest_is_one(a.values[0]) ? check_manifest : check_list)(&o, a.values[0],
                                                                             &tally, err);
}

const command command_check = {
    "check", "verifies files against a list of seals or a manifest",
    "usage: iron check FILE [OPTIONS]\n\n"
    "FILE is what iron sum printed (- is standard input), or a manifest. Prints <file>: OK or\n"
    "FAILED for each, as sha256sum -c does; of a manifest, also which positions differ. Names are\n"
    "as they were given to iron sum: run it from the same folder, or keep a manifest beside its\n"
    "files. Exit status: 0 all is well; 1 a file differs, is missing or cannot be read, or a line\n"
    "is damaged; 2 nothing could be verified.\n\n"
    "  --quiet             print no OK lines (those of files that were not checked whole, still)\n"
    "  --status            print nothing: the exit status tells\n"
    "  --ignore-missing    files that are not there do not count\n"
    "  --json              one JSON document: file, status, reason, expected, found\n"
    "Of files in a list; a manifest knows the first two:\n" READING_HELP
    "\nexample: iron check corpus.manifest\n",
    run};
