/* SPDX-License-Identifier: MIT */
/*
 * output.c: the standard streams of a command, its error line and its progress line.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* If a standard stream is closed, the first file that the command opens gets its number, and a
 * saved state would be overwritten with messages meant for the terminal. */
void open_standard_streams(void) {
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* File names in the text may contain control characters. */
static void print_message(const char *name, const char *kind, const char *text) {
    fprintf(stderr, "%s: %s", name, kind);
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7F ? '?' : *text, stderr);
    fputc('\n', stderr);
}

void report_error(const char *name, const iron_error *err) { print_message(name, "", err->text); }

void report_warning(const char *name, const char *format, ...) {
    char text[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    print_message(name, "warning: ", text);
}

const char *plural_s(uint64_t count) { return count == 1 ? "" : "s"; }

bool finish_output(iron_status *status, iron_error *err) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return err->native != EPIPE;
    if (errno != EPIPE && *status == IRON_OK)
        *status = usage(err, "cannot write standard output: %s", strerror(errno));
    return errno != EPIPE;
}

#define BAR_WIDTH        30
#define INTERVAL_SECONDS 0.1

double seconds_now(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

progress progress_start(uint64_t unit_bytes) {
    double now = seconds_now();

    return (progress){isatty(STDERR_FILENO) == 1, unit_bytes, now, now - INTERVAL_SECONDS};
}

int progress_update(void *context, uint64_t done, uint64_t total) {
    progress *p = context;
    double now, spent, gigabytes;

    if (!p->is_shown)
        return 0;
    now = seconds_now();
    if (now - p->last < INTERVAL_SECONDS)
        return 0;
    p->last = now;
    spent = now - p->started;
    gigabytes = (double)done * (double)p->unit_bytes * 1e-9;
    fputs("\r\033[K", stderr);
    if (total != UINT64_MAX && total > 0) {
        double share = (double)done / (double)total;

        fputc('[', stderr);
        for (int k = 0; k < BAR_WIDTH; k++)
            fputc(k < (int)(share * BAR_WIDTH) ? '#' : '.', stderr);
        fprintf(stderr, "] %3.0f %%", 100 * share);
    }
    if (p->unit_bytes)
        fprintf(stderr, "  %.2f GB  %.2f GB/s", gigabytes, gigabytes / (spent > 0 ? spent : 1));
    if (total == UINT64_MAX && !p->unit_bytes)
        fprintf(stderr, "%" PRIu64 " done", done);
    if (total != UINT64_MAX && done > 0)
        fprintf(stderr, "  %.0f s left", spent * (double)(total - done) / (double)done);
    fflush(stderr);
    return 0;
}

void progress_clear(progress *p) {
    if (p->is_shown)
        fputs("\r\033[K", stderr);
    p->is_shown = false;
}

iron_json_writer json_begin(char bracket) {
    iron_json_writer j = {.to = stdout, .is_one_line = true};

    iron_json_open(&j, NULL, bracket);
    return j;
}

void json_end(iron_json_writer *j, char bracket) {
    iron_json_close(j, bracket);
    iron_json_end(j);
}

void json_put(iron_json_writer *j, const json_member *m) {
    char text[24];

    for (; m->kind; m++) {
        bool is_group = m->kind == '{' || m->kind == '[';

        if (m->is_null || (is_group && !m->members)) {
            iron_json_null(j, m->name);
        } else if (is_group) {
            iron_json_open(j, m->name, m->kind);
            json_put(j, m->members);
            iron_json_close(j, m->kind == '{' ? '}' : ']');
        } else if (m->kind == 't') {
            iron_json_text(j, m->name, m->text);
        } else if (m->kind == 'b') {
            iron_json_bool(j, m->name, m->number != 0);
        } else if (m->kind == 'n') {
            iron_json_number(j, m->name, m->number);
        } else if (m->kind == 'x') {
            iron_json_hex(j, m->name, m->number, m->digits);
        } else if (m->kind == 'r') {
            iron_json_real_format(j, m->name, m->text, m->real);
        } else {
            snprintf(text, sizeof text, "%" PRIu64, m->number);
            iron_json_text(j, m->name, text);
        }
    }
}

void json_totals(iron_json_writer *j, const iron_report *r) {
    JSON_PUT(j, NUMBER("tokens", r->tokens), NUMBER("batches", r->batches),
             HEX("xor", r->xor_total, 8), DECIMAL("sum", r->sum), HEX("state", r->state, 16));
    if (r->has_seal)
        iron_json_text(j, "seal", r->seal);
}

void json_files(iron_json_writer *j, const iron_source *source) {
    iron_json_open(j, "files", '[');
    for (size_t k = 0; k < iron_source_file_count(source); k++)
        iron_json_text(j, NULL, iron_source_file(source, k));
    iron_json_close(j, ']');
}
