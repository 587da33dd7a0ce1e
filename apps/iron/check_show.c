/* SPDX-License-Identifier: MIT */
/* check_show.c: see check_show.h. */
#include "check_show.h"

#include "command.h"
#include "seal_list.h"

#include <stdio.h>
#include <string.h>

static const char *state_name(iron_check_state state) {
    static const char *const names[] = {"ok", "failed", "missing", "error", "unchecked", "partly"};

    return names[state];
}

static void count(check_tally *t, const iron_check_file *file, iron_status status) {
    size_t *const counts[] = {&t->right,  &t->failed,    &t->missing,
                              &t->unread, &t->unchecked, &t->partly};

    ++*counts[file->state];
    /* a damaged file is an answer; a missing option, memory or device is none */
    if (status == IRON_E_ARG || status == IRON_E_NOMEM || status == IRON_E_UNSUPPORTED)
        t->worst = status;
}

static void show_text_or_null(json *j, const char *name, const char *text) {
    if (text[0])
        json_text(j, name, text);
    else
        json_null(j, name);
}

static void show_json(check_tally *t, const iron_check_file *file) {
    if (!t->has_begun)
        json_open(&t->j, NULL, '[');
    t->has_begun = true;
    json_open(&t->j, NULL, '{');
    json_text(&t->j, "file", file->path);
    json_text(&t->j, "status", state_name(file->state));
    show_text_or_null(&t->j, "reason", file->reason);
    show_text_or_null(&t->j, "expected", file->expected);
    show_text_or_null(&t->j, "found", file->found);
    json_close(&t->j, '}');
}

static void show_line(const iron_check_file *file) {
    static const char *const words[] = {
        "OK", "FAILED", "FAILED open or read", "FAILED open or read", "not checked", "OK in part"};

    seal_name_print(file->path);
    printf(": %s", words[file->state]);
    if (file->reason[0] && file->state != IRON_CHECK_MISSING && file->state != IRON_CHECK_ERROR)
        printf(" (%s)", file->reason);
    putchar('\n');
}

static void complain(const iron_check_file *file) {
    iron_error err = {IRON_E_IO, 0, ""};

    if (file->state == IRON_CHECK_MISSING)
        snprintf(err.text, sizeof err.text, "%.120s: %.100s", file->path, file->reason);
    else
        snprintf(err.text, sizeof err.text, "%s", file->reason);
    command_complain(&err);
}

void check_show(check_tally *tally, const iron_check_file *file, iron_status status) {
    count(tally, file, status);
    if (tally->takes_missing && file->state == IRON_CHECK_MISSING)
        return;
    if (tally->is_silent || (tally->is_quiet && file->state == IRON_CHECK_OK && !tally->is_json))
        return;
    if (tally->is_json) {
        show_json(tally, file);
        return;
    }
    if (file->state == IRON_CHECK_MISSING || file->state == IRON_CHECK_ERROR)
        complain(file);
    show_line(file);
}

/* Appends "3 files failed" and the like, with a comma where something is there already. */
static void tell(iron_error *err, size_t number, const char *one, const char *many) {
    size_t length = strlen(err->text);

    if (number > 0)
        snprintf(err->text + length, sizeof err->text - length, "%s%zu %s",
                 err->text[0] ? ", " : "", number, number == 1 ? one : many);
}

iron_status check_conclude(check_tally *tally, const char *list, iron_error *err) {
    if (tally->has_begun) {
        json_close(&tally->j, ']');
        json_end(&tally->j);
    } else if (tally->is_json && !tally->is_silent) {
        puts("[]");
    }
    *err = (iron_error){IRON_E_MISMATCH, 0, ""};
    tell(err, tally->failed, "file differs", "files differ");
    tell(err, tally->missing * !tally->takes_missing, "file is missing", "files are missing");
    tell(err, tally->unread, "file could not be read", "files could not be read");
    tell(err, tally->bad_lines, "line is improperly formatted", "lines are improperly formatted");
    if (!err->text[0] && tally->takes_missing && tally->right + tally->partly == 0 &&
        tally->missing > 0)
        snprintf(err->text, sizeof err->text, "%.120s: no file was verified", list);
    if (tally->worst != IRON_OK)
        err->status = tally->worst;
    else if (!err->text[0])
        err->status = IRON_OK;
    if (tally->is_silent)
        err->text[0] = '\0';
    return err->status;
}
