/* SPDX-License-Identifier: MIT */
/*
 * report_columns.c: see report_columns.h.
 *
 * A table that wraps is worse than one with a column less: columns go in a fixed order, least
 * needed first (`sacrifices` below), and only then are names cut. What stays longest is what a race
 * is about: who, how long, how many GB/s, how much of the ceiling. A column that is empty in every
 * row, as the transfers of a race on the CPU alone, takes no room either.
 */
#include "arena/report_columns.h"

#include <string.h>

#define BAR_CELLS     8 /* as many as in bar_cell's text */
#define NAME_MIN      12
#define PEER_MARK     '*'
#define RESIDENT_MARK '~'

/* One line's figures, of a row or of a ceiling. */
typedef struct line {
    iron__words name;
    const iron__report_row *row;                   /* NULL: a ceiling */
    const iron__report_scope *scopes[IRON_SCOPES]; /* NULL where one does not apply */
} line;

typedef struct column {
    const char *title;
    int width; /* with the blank before it; more where a figure needs it */
    iron__words (*cell)(const line *of);
} column;

static iron__words milliseconds(const line *of, iron__scope scope) {
    return iron__figure(of->scopes[scope] ? of->scopes[scope]->warm.median : 0);
}

static iron__words rank_cell(const line *of) {
    iron__words w = {""};

    if (of->row)
        snprintf(w.text, sizeof w.text, "%2u%c%c", of->row->rank,
                 of->row->is_peer ? PEER_MARK : ' ',
                 of->row->is_cache_resident ? RESIDENT_MARK : ' ');
    return w;
}
static iron__words name_cell(const line *of) { return of->name; }
static iron__words kernel_cell(const line *of) { return milliseconds(of, IRON_SCOPE_KERNEL); }
static iron__words end_to_end_cell(const line *of) {
    return milliseconds(of, IRON_SCOPE_END_TO_END);
}
static iron__words transfer_cell(const line *of) { return milliseconds(of, IRON_SCOPE_TRANSFER); }
static iron__words prepare_cell(const line *of) { return milliseconds(of, IRON_SCOPE_PREPARE); }

static iron__words rate_cell(const line *of) {
    return iron__figure(of->scopes[IRON_SCOPE_KERNEL] ? of->scopes[IRON_SCOPE_KERNEL]->gb_s : 0);
}

static double percent_of(const line *of) {
    const iron__report_scope *kernel = of->scopes[IRON_SCOPE_KERNEL];

    return kernel && kernel->percent_of_ceiling > 0 ? kernel->percent_of_ceiling : 0;
}

static iron__words percent_cell(const line *of) { return iron__figure_of(percent_of(of), 1, ""); }

/* In eighths of a character; what is beyond the ceiling (a cache's doing) ends at the edge. */
static iron__words bar_cell(const line *of) {
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double percent = percent_of(of);
    int eighths = percent >= 100 ? 8 * BAR_CELLS : (int)(percent * 8 * BAR_CELLS / 100 + 0.5);
    iron__words w;

    snprintf(w.text, sizeof w.text, "%.*s%s", eighths / 8 * (int)strlen("█"), "████████",
             parts[eighths % 8]);
    return w;
}

static iron__words cold_cell(const line *of) {
    const iron__report_scope *kernel = of->scopes[IRON_SCOPE_KERNEL];

    return iron__figure(kernel ? kernel->cold_gb_s : 0);
}

static iron__words speedup_cell(const line *of) {
    double speedup = of->row ? of->row->speedup : 0;

    return iron__figure_of(speedup, speedup < 10 ? 2 : speedup < 100 ? 1 : 0, "x");
}

static iron__words noise_cell(const line *of) {
    const iron__report_scope *kernel = of->scopes[IRON_SCOPE_KERNEL];
    iron__words w = {""};

    if (kernel && kernel->warm.count > 0) /* none at all is a figure, too */
        snprintf(w.text, sizeof w.text, "%.*f%%", kernel->warm.noise_percent < 10 ? 1 : 0,
                 kernel->warm.noise_percent);
    return w;
}

/* "40p": forty samples, then precise enough. */
static iron__words samples_cell(const line *of) {
    const iron__report_scope *kernel = of->scopes[IRON_SCOPE_KERNEL];
    iron__words w = {""};

    if (kernel && kernel->warm.count > 0)
        snprintf(w.text, sizeof w.text, "%zu%.1s", kernel->warm.count,
                 kernel->samples ? iron__stop_name(kernel->samples->stop) : "");
    return w;
}

/* Of the main kernel of a row on a GPU; 0 is a figure there. */
static iron__words kernel_figure(double value, int decimals) {
    iron__words w = {""};

    if (value >= 0)
        snprintf(w.text, sizeof w.text, "%.*f", decimals, value);
    return w;
}

static iron__kernel_figures kernel_of(const line *of) {
    return iron__kernel_figures_of(of->row ? iron__kernels_main(of->row->kernels) : NULL);
}

static iron__words registers_cell(const line *of) {
    return kernel_figure(kernel_of(of).registers, 0);
}
static iron__words local_cell(const line *of) {
    return kernel_figure(kernel_of(of).local_bytes, 0);
}
static iron__words spill_cell(const line *of) {
    return kernel_figure(kernel_of(of).spill_bytes, 0);
}
static iron__words occupancy_cell(const line *of) {
    return kernel_figure(kernel_of(of).occupancy_percent, 0);
}

static const column columns[IRON_COLUMNS] = {
    [IRON_COLUMN_RANK] = {"", 5, rank_cell},
    [IRON_COLUMN_NAME] = {"contender", 0, name_cell}, /* as wide as the longest */
    [IRON_COLUMN_KERNEL] = {"kernel ms", 10, kernel_cell},
    [IRON_COLUMN_RATE] = {"GB/s", 7, rate_cell},
    [IRON_COLUMN_BAR] = {"ceiling", BAR_CELLS + 1, bar_cell},
    [IRON_COLUMN_PERCENT] = {"%", 6, percent_cell},
    [IRON_COLUMN_COLD] = {"cold", 7, cold_cell},
    [IRON_COLUMN_END_TO_END] = {"end ms", 8, end_to_end_cell},
    [IRON_COLUMN_TRANSFER] = {"copy ms", 8, transfer_cell},
    [IRON_COLUMN_PREPARE] = {"prep ms", 8, prepare_cell},
    [IRON_COLUMN_SPEEDUP] = {"speedup", 8, speedup_cell},
    [IRON_COLUMN_NOISE] = {"noise", 6, noise_cell},
    [IRON_COLUMN_SAMPLES] = {"runs", 6, samples_cell},
    [IRON_COLUMN_REGISTERS] = {"regs", 5, registers_cell},
    [IRON_COLUMN_LOCAL] = {"local", 6, local_cell},
    [IRON_COLUMN_SPILL] = {"spill", 6, spill_cell},
    [IRON_COLUMN_OCCUPANCY] = {"occ", 4, occupancy_cell},
};

static const iron__column sacrifices[] = {
    IRON_COLUMN_LOCAL,   IRON_COLUMN_SPILL,    IRON_COLUMN_REGISTERS,  IRON_COLUMN_OCCUPANCY,
    IRON_COLUMN_PREPARE, IRON_COLUMN_TRANSFER, IRON_COLUMN_SAMPLES,    IRON_COLUMN_NOISE,
    IRON_COLUMN_BAR,     IRON_COLUMN_COLD,     IRON_COLUMN_END_TO_END, IRON_COLUMN_SPEEDUP,
    IRON_COLUMN_PERCENT,
};

iron__words iron__ceiling_name(const iron__report_ceiling *ceiling) {
    iron__words w;

    snprintf(w.text, sizeof w.text, "%s ceiling: %s", ceiling->backend, ceiling->name);
    return iron__plain(w.text, "");
}

static line line_of_row(const iron__report_row *row) {
    line of = {.name = iron__row_name(row), .row = row};

    for (iron__scope k = 0; k < IRON_SCOPES; k++)
        of.scopes[k] = iron__row_scope(row, k);
    return of;
}

static line line_of_ceiling(const iron__report_ceiling *ceiling) {
    line of = {.name = iron__ceiling_name(ceiling)};

    of.scopes[IRON_SCOPE_KERNEL] = &ceiling->figures;
    return of;
}

/* Notes which columns the line fills, and how wide they are with it. */
static void take_notice(iron__layout *l, const line *of) {
    int name = iron__columns(of->name.text);

    for (iron__column k = 0; k < IRON_COLUMNS; k++) {
        int cell = iron__columns(columns[k].cell(of).text);

        l->is_shown[k] |= cell > 0;
        if (k != IRON_COLUMN_NAME && cell + 1 > l->widths[k])
            l->widths[k] = cell + 1;
    }
    if (name > l->name_width)
        l->name_width = name;
}

static int line_width(const iron__layout *l) {
    int width = l->name_width;

    for (iron__column k = 0; k < IRON_COLUMNS; k++)
        width += l->is_shown[k] ? l->widths[k] : 0;
    return width;
}

iron__layout iron__layout_make(const iron__report *report, FILE *to, bool is_terminal, int width) {
    iron__layout l = {.to = to, .is_terminal = is_terminal, .width = width, .name_width = NAME_MIN};
    size_t spare = 0;
    int over;

    for (iron__column k = 0; k < IRON_COLUMNS; k++)
        l.widths[k] = columns[k].width;
    for (size_t k = 0; k < report->ceiling_count; k++) {
        line of = line_of_ceiling(&report->ceilings[k]);
        take_notice(&l, &of);
    }
    for (size_t k = 0; k < report->row_count; k++) {
        line of = line_of_row(&report->rows[k]);
        if (report->rows[k].status == IRON_ROW_OK)
            take_notice(&l, &of);
    }
    l.is_shown[IRON_COLUMN_BAR] &= is_terminal;
    while (line_width(&l) > width && spare < sizeof sacrifices / sizeof sacrifices[0])
        l.is_shown[sacrifices[spare++]] = false;
    over = line_width(&l) - width;
    if (over > 0)
        l.name_width = l.name_width - over > NAME_MIN ? l.name_width - over : NAME_MIN;
    return l;
}

void iron__ink_begin(const iron__layout *l, iron__ink ink) {
    static const char *const codes[] = {"\033[1m", "\033[2m", "\033[1;31m", "\033[33m"};

    if (l->is_terminal)
        fputs(codes[ink], l->to);
}

void iron__ink_end(const iron__layout *l) {
    if (l->is_terminal)
        fputs("\033[0m", l->to);
}

static void put_blanks(const iron__layout *l, int count) {
    fprintf(l->to, "%*s", count > 0 ? count : 0, "");
}

/* The name, cut where it is too long: its end (the memory) tells more than its middle. */
static void put_name(const iron__layout *l, const char *name) {
    int columns_of_name = iron__columns(name), cut = columns_of_name - l->name_width;
    int keep = l->name_width / 2;

    if (cut <= 0 || columns_of_name != (int)strlen(name))
        fprintf(l->to, "%s", name);
    else
        fprintf(l->to, "%.*s~%s", keep, name, name + keep + cut + 1);
    put_blanks(l, -cut);
}

static void put_cell(const iron__layout *l, iron__column k, const char *text) {
    int room = l->widths[k] - 1 - iron__columns(text);

    if (k == IRON_COLUMN_NAME) {
        put_name(l, text);
        return;
    }
    if (k == IRON_COLUMN_RANK) {
        fprintf(l->to, "%-*s", l->widths[k], text);
        return;
    }
    put_blanks(l, k == IRON_COLUMN_BAR ? 1 : room + 1);
    fputs(text, l->to);
    put_blanks(l, k == IRON_COLUMN_BAR ? room : 0);
}

/* Up to the last cell that has something in it. */
static void put_line(const iron__layout *l, const line *of) {
    iron__column end = IRON_COLUMNS;

    while (end > 0 && (!l->is_shown[end - 1] || !columns[end - 1].cell(of).text[0]))
        end--;
    for (iron__column k = 0; k < end; k++)
        if (l->is_shown[k])
            put_cell(l, k, columns[k].cell(of).text);
}

void iron__layout_titles(const iron__layout *l) {
    iron__ink_begin(l, IRON_INK_DIM);
    for (iron__column k = 0; k < IRON_COLUMNS; k++)
        if (l->is_shown[k])
            put_cell(l, k, columns[k].title);
    iron__ink_end(l);
    fputc('\n', l->to);
}

void iron__layout_row(const iron__layout *l, const iron__report_row *row) {
    line of = line_of_row(row);

    if (row->rank == 1)
        iron__ink_begin(l, IRON_INK_BOLD);
    put_line(l, &of);
    if (row->rank == 1)
        iron__ink_end(l);
    fputc('\n', l->to);
}

void iron__layout_ceiling(const iron__layout *l, const iron__report_ceiling *ceiling) {
    line of = line_of_ceiling(ceiling);

    iron__ink_begin(l, IRON_INK_DIM);
    put_line(l, &of);
    iron__ink_end(l);
    fputc('\n', l->to);
}

void iron__layout_text(const iron__layout *l, const char *text, int indent, int *at) {
    while (*text) {
        size_t word = strcspn(text, " ");
        iron__words w;
        int wide;

        snprintf(w.text, sizeof w.text, "%.*s", (int)word, text);
        wide = iron__columns(w.text);
        if (*at > 0 && *at + 1 + wide > l->width) {
            fprintf(l->to, "\n%*s", indent, "");
            *at = indent;
        } else if (*at > 0) {
            fputc(' ', l->to);
            ++*at;
        }
        fputs(w.text, l->to);
        *at += wide;
        text += word + strspn(text + word, " ");
    }
}
