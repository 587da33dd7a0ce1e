/* SPDX-License-Identifier: MIT */
/*
 * compare_print.c: a comparison in words: a line for every row and scope, then how many of each
 * there are.
 *
 *     slower   atax.cpu.naive 4096x4096 f32, kernel: 10.12 ms -> 11.20 ms, +10.7 %
 *     broken   atax.cuda.tree pinned 4096x4096 f32 on NVIDIA H200: wrong: kernel: y[3] is 0
 *     against old.json: 41 same, 1 slower, 1 broken (threshold 5 %)
 */
#include "arena/compare.h"

const char *iron__change_name(iron__change change) {
    static const char *const names[IRON_CHANGES] = {"same",   "faster", "slower", "unclear",
                                                    "broken", "new",    "gone"};

    return change < IRON_CHANGES ? names[change] : "";
}

static void print_key(const iron__row_key *key, FILE *to) {
    fprintf(to, "%s.%s.%s", key->op, key->backend, key->contender);
    if (key->memory[0])
        fprintf(to, " %s", key->memory);
    if (key->size[0])
        fprintf(to, " %s", key->size);
    if (key->dtype[0])
        fprintf(to, " %s", key->dtype);
    if (key->vocab)
        fprintf(to, " vocab %u", key->vocab);
    for (size_t k = 0; k < key->params.count; k++)
        fprintf(to, "%s%s %s", k > 0 || key->vocab ? ", " : " ", key->params.list[k].name,
                iron__param_text(&key->params.list[k]).text);
    if (key->device[0])
        fprintf(to, " on %s", key->device);
}

static void print_times(const iron__comparison_row *row, FILE *to) {
    fprintf(to, ", %s:", iron__scope_name(row->scope));
    if (row->change == IRON_CHANGE_NEW)
        fprintf(to, " %.4g ms", row->new_ms);
    else if (row->change == IRON_CHANGE_GONE)
        fprintf(to, " was %.4g ms", row->old_ms);
    else
        fprintf(to, " %.4g ms -> %.4g ms", row->old_ms, row->new_ms);
    if (row->ratio > 0)
        fprintf(to, ", %+.1f %%", 100 * (row->ratio - 1));
}

static void print_row(const iron__comparison_row *row, FILE *to) {
    fprintf(to, "%-8s ", iron__change_name(row->change));
    print_key(&row->key, to);
    if (row->scope != IRON_SCOPES)
        print_times(row, to);
    if (row->reason[0])
        fprintf(to, ": %s", row->reason);
    fputc('\n', to);
}

void iron__comparison_print(const iron__comparison *comparison, FILE *to) {
    const char *between = " ";

    for (size_t k = 0; k < comparison->row_count; k++)
        print_row(&comparison->rows[k], to);
    fprintf(to, "against %s:", comparison->path);
    for (int k = 0; k < IRON_CHANGES; k++)
        if (comparison->counts[k] > 0) {
            fprintf(to, "%s%zu %s", between, comparison->counts[k],
                    iron__change_name((iron__change)k));
            between = ", ";
        }
    if (comparison->row_count == 0)
        fputs(" nothing to compare", to);
    fprintf(to, " (threshold %g %%)\n", comparison->threshold_percent);
}
