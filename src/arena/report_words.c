/* SPDX-License-Identifier: MIT */
/*
 * report_words.c: see report_words.h.
 *
 * Names of devices come from drivers, reasons from drivers and compilers: both may hold line breaks
 * and terminal sequences. Every printer for people passes them through iron__plain; JSON and CSV
 * keep them whole and escape them by their own rules.
 */
#include "arena/report_words.h"

#include <string.h>

const char *iron__row_memory(const iron__report_row *row) {
    return row->memory[0] ? row->memory : "host";
}

iron__words iron__row_name(const iron__report_row *row) {
    iron__words w;

    snprintf(w.text, sizeof w.text, "%s.%s.%s%s%s", row->op, row->backend, row->contender,
             row->memory[0] && strcmp(row->memory, "host") != 0 ? " " : "",
             strcmp(row->memory, "host") != 0 ? row->memory : "");
    return iron__plain(w.text, "");
}

bool iron__rows_are_grouped(const iron__report_row *a, const iron__report_row *b) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->size, b->size) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && a->vocab == b->vocab &&
           iron__params_are_same(&a->params, &b->params);
}

iron__words iron__group_title(const iron__report_row *row) {
    iron__params_line axes = iron__params_axes(&row->params);
    iron__words w;

    snprintf(w.text, sizeof w.text, "%s %s%s%s%s %s%s%.300s", row->op, row->size,
             row->size_name[0] ? " (" : "", row->size_name, row->size_name[0] ? ")" : "",
             row->dtype, axes.text[0] ? ", " : "", axes.text);
    return iron__plain(w.text, "");
}

iron__words iron__group_facts(const iron__report_row *row) {
    iron__params_line facts = iron__params_facts(&row->params);
    iron__words w, vocab = {""};

    if (row->vocab)
        snprintf(vocab.text, sizeof vocab.text, "vocab %u", row->vocab);
    snprintf(w.text, sizeof w.text, "%.16s of useful bytes%s%.20s%s%.300s",
             iron__bytes_words(row->useful_bytes).text, row->vocab || facts.text[0] ? "; " : "",
             vocab.text, row->vocab && facts.text[0] ? ", " : "", facts.text);
    return iron__plain(w.text, "");
}

size_t iron__group_end(const iron__report *report, size_t first) {
    size_t k = first + 1;

    while (k < report->row_count && iron__rows_are_grouped(&report->rows[first], &report->rows[k]))
        k++;
    return k;
}

bool iron__group_has_ceiling(const iron__report *report, size_t first, size_t end,
                             const iron__report_ceiling *ceiling) {
    static const char *const shown[] = {"read", "write", "copy", "to_device_pinned"};
    bool is_shown = false;

    for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++)
        is_shown |= strcmp(ceiling->name, shown[k]) == 0;
    for (size_t k = first; is_shown && k < end; k++)
        if (report->rows[k].status == IRON_ROW_OK &&
            strcmp(report->rows[k].backend, ceiling->backend) == 0)
            return true;
    return false;
}

const iron__report_scope *iron__row_scope(const iron__report_row *row, iron__scope scope) {
    const iron__report_scope *s = &row->scopes[scope];

    return row->status == IRON_ROW_OK && s->is_there ? s : NULL;
}

double iron__cold_percent(const iron__report_scope *scope) {
    return scope->gb_s > 0 ? scope->percent_of_ceiling * scope->cold_gb_s / scope->gb_s : 0;
}

iron__words iron__figure_of(double value, int decimals, const char *unit) {
    iron__words w = {""};

    if (value > 0 && value < 1e15)
        snprintf(w.text, sizeof w.text, "%.*f%s", decimals, value, unit);
    return w;
}

iron__words iron__figure(double value) {
    int decimals = 3;
    double at = value;

    while (at >= 10 && decimals > 0) {
        at /= 10;
        decimals--;
    }
    while (at > 0 && at < 1 && decimals < 9) {
        at *= 10;
        decimals++;
    }
    return iron__figure_of(value, decimals, "");
}

iron__words iron__bytes_words(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    iron__words w;
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(w.text, sizeof w.text, value < 10 && unit > 0 ? "%.2g %s" : "%.0f %s", value,
             units[unit]);
    return w;
}

/* Bytes of the control character at `at`, 0 if it is none. U+0080 to U+009F are two bytes. */
static size_t control_bytes(const char *at) {
    const unsigned char *c = (const unsigned char *)at;

    if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0)
        return 2;
    return c[0] < 0x20 || c[0] == 0x7F;
}

iron__words iron__plain(const char *text, const char *escape) {
    iron__words w;
    size_t used = 0;

    while (*text && used + 3 < sizeof w.text) {
        size_t control = control_bytes(text);

        if (strchr(escape, *text))
            w.text[used++] = '\\';
        w.text[used++] = control ? ' ' : *text;
        text += control ? control : 1;
    }
    w.text[used] = '\0';
    return w;
}

int iron__columns(const char *text) {
    int columns = 0;

    for (; *text; text++)
        columns += ((unsigned char)*text & 0xC0) != 0x80;
    return columns;
}
