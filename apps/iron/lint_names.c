/* SPDX-License-Identifier: MIT */
/*
 * lint_names.c: what the names of shards show: gaps in their numbers, numbers that occur twice, an
 * order that depends on how names are sorted, and shards of unusual length. Files belong to one
 * group if they lie in one directory and their names differ only in numbers.
 */
#include "lint.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBERS_MAX  16u /* numbers in a file name; names with more are left alone */
#define NUMBER_LIMIT UINT64_C(1000000000000000000)

typedef struct name_number {
    size_t at, digits; /* in the path */
    uint64_t value;
} name_number;

typedef struct numbered_name {
    const shard *file;
    const char *base; /* the name without its directory */
    size_t count;
    name_number numbers[NUMBERS_MAX];
} numbered_name;

/* A run of names of one group. */
typedef struct name_group {
    numbered_name *names;
    size_t count;
    size_t part;  /* which number is the shard's */
    size_t total; /* which one is the number of shards, as in -of-00010 */
    bool has_total;
} name_group;

static size_t digits_at(const char *text) { return strspn(text, "0123456789"); }

static numbered_name parse_name(const shard *file) {
    const char *slash = strrchr(file->path, '/');
    numbered_name n = {.file = file, .base = slash ? slash + 1 : file->path};

    for (const char *at = n.base; *at;) {
        size_t digits = digits_at(at);
        name_number *number = n.count < NUMBERS_MAX ? &n.numbers[n.count] : NULL;

        if (digits > 0 && number) {
            *number = (name_number){.at = (size_t)(at - file->path), .digits = digits};
            for (size_t k = 0; k < digits && number->value < NUMBER_LIMIT; k++)
                number->value = 10 * number->value + (uint64_t)(at[k] - '0');
            n.count++;
        }
        at += digits > 0 ? digits : 1;
    }
    return n;
}

/* Compares directories, then names without their numbers. */
static int compare_patterns(const numbered_name *a, const numbered_name *b) {
    size_t length_a = (size_t)(a->base - a->file->path),
           length_b = (size_t)(b->base - b->file->path);
    const char *x = a->base, *y = b->base;
    int order = memcmp(a->file->path, b->file->path, length_a < length_b ? length_a : length_b);

    if (order || length_a != length_b)
        return order ? order : length_a < length_b ? -1 : 1;
    while (*x && *y) {
        size_t digits_x = digits_at(x), digits_y = digits_at(y);

        if (!digits_x != !digits_y || (!digits_x && *x != *y))
            break;
        x += digits_x ? digits_x : 1;
        y += digits_y ? digits_y : 1;
    }
    return (unsigned char)*x - (unsigned char)*y;
}

static int compare_values(const numbered_name *a, const numbered_name *b, size_t k) {
    uint64_t x = a->numbers[k].value, y = b->numbers[k].value;

    return (x > y) - (x < y);
}

static int by_pattern_and_numbers(const void *left, const void *right) {
    const numbered_name *a = left, *b = right;
    int order = compare_patterns(a, b);

    for (size_t k = 0; order == 0 && k < a->count; k++)
        order = compare_values(a, b, k);
    return order ? order : strcmp(a->base, b->base);
}

/* By all numbers but the shard's, then by the shard's. */
static int by_part(const void *left, const void *right, void *context) {
    const numbered_name *a = left, *b = right;
    const name_group *g = context;
    int order = 0;

    for (size_t k = 0; order == 0 && k < a->count; k++)
        if (k != g->part)
            order = compare_values(a, b, k);
    if (order == 0)
        order = compare_values(a, b, g->part);
    return order ? order : strcmp(a->base, b->base);
}

static bool is_same_series(const name_group *g, const numbered_name *a, const numbered_name *b) {
    for (size_t k = 0; k < a->count; k++)
        if (k != g->part && compare_values(a, b, k) != 0)
            return false;
    return true;
}

/* Whether number k is a total: "3-of-10", "3_of_10". */
static bool is_total(const numbered_name *n, size_t k) {
    const name_number *before, *number = &n->numbers[k];
    const char *between;

    if (k == 0)
        return false;
    before = &n->numbers[k - 1];
    between = n->file->path + before->at + before->digits;
    return number->at - before->at - before->digits == 4 && strchr("-_.", between[0]) &&
           tolower((unsigned char)between[1]) == 'o' && tolower((unsigned char)between[2]) == 'f' &&
           strchr("-_.", between[3]);
}

static uint64_t part_of(const name_group *g, const numbered_name *n) {
    return n->numbers[g->part].value;
}

static bool is_padded(const name_group *g) {
    for (size_t k = 0; k < g->count; k++) {
        const name_number *number = &g->names[k].numbers[g->part];

        if (number->digits > 1 && g->names[k].file->path[number->at] == '0')
            return true;
    }
    return false;
}

/* The path of another shard of the series, with the digits that `like` has; the caller frees it. */
static char *name_of_part(const name_group *g, const numbered_name *like, uint64_t value,
                          bool is_full) {
    const name_number *number = &like->numbers[g->part];
    const char *path = like->file->path, *start = is_full ? path : like->base;
    char *name = NULL;

    if (asprintf(&name, "%.*s%0*" PRIu64 "%s", (int)(number->at - (size_t)(start - path)), start,
                 is_padded(g) ? (int)number->digits : 1, value,
                 path + number->at + number->digits) < 0)
        return NULL;
    return name;
}

/* Shards `first` to `last` of the series are missing beside `like`. `before` is the one on the
 * other side of a gap, or NULL at the ends of the series. */
static void report_missing(const name_group *g, const numbered_name *like,
                           const numbered_name *before, uint64_t first, uint64_t last,
                           finding_list *found) {
    char *path = name_of_part(g, like, first, true);
    char *name = name_of_part(g, like, last, false);

    if (!path || !name)
        found->is_incomplete = true;
    else if (like->file->is_named && access(path, F_OK) == 0)
        ; /* it exists: the user did not name it */
    else if (first < last)
        lint_add(found, "missing", path, IRON_COUNT_UNKNOWN, last - first + 1,
                 "%" PRIu64 " files are missing, from this one to %.*s", last - first + 1,
                 NAME_CHARS, name);
    else if (before)
        lint_add(found, "missing", path, IRON_COUNT_UNKNOWN, 1,
                 "there is no such file between %.*s and %.*s", NAME_CHARS, before->base,
                 NAME_CHARS, like->base);
    else
        lint_add(found, "missing", path, IRON_COUNT_UNKNOWN, 1,
                 "there is no such file, but the names of the others announce %" PRIu64 " files",
                 like->numbers[g->total].value);
    free(path);
    free(name);
}

/* Where nearly all shards but the last have the same number of tokens, reports the ones that do
 * not, and a last one that has more. */
static void report_sizes(const name_group *g, finding_list *found) {
    size_t votes = 0, same = 0, before_last = g->count - 1;
    uint64_t usual = 0;

    if (before_last < 4)
        return;
    for (size_t k = 0; k < g->count; k++)
        if (!g->names[k].file->is_read)
            return;
    for (size_t k = 0; k < before_last; k++) { /* the majority's value, if there is a majority */
        uint64_t tokens = g->names[k].file->digest.tokens;

        usual = votes == 0 ? tokens : usual;
        votes = tokens == usual ? votes + 1 : votes - 1;
    }
    for (size_t k = 0; k < before_last; k++)
        same += g->names[k].file->digest.tokens == usual;
    if (usual == 0 || 4 * (before_last - same) > before_last)
        return;
    for (size_t k = 0; k < g->count; k++) {
        const shard *s = g->names[k].file;
        uint64_t tokens = s->digest.tokens;

        if (tokens > 0 && (k < before_last ? tokens != usual : tokens > usual))
            lint_add(found, "size", s->path, IRON_COUNT_UNKNOWN, tokens,
                     "has %" PRIu64 " tokens, but %zu of the %zu files before the last one "
                     "have %" PRIu64,
                     tokens, same, before_last, usual);
    }
}

/* One series of shards, sorted by number. */
static void check_series(const name_group *g, finding_list *found) {
    const numbered_name *first = &g->names[0], *last = &g->names[g->count - 1];
    uint64_t low = part_of(g, first), high = part_of(g, last), missing = 0, begin, end;

    if (high >= NUMBER_LIMIT || (g->count == 1 && (first->file->is_named || !g->has_total)))
        return;
    for (size_t k = 1; k < g->count; k++) {
        const numbered_name *n = &g->names[k];

        if (part_of(g, n) == part_of(g, n - 1))
            lint_add(found, "order", n->file->path, IRON_COUNT_UNKNOWN, IRON_COUNT_UNKNOWN,
                     "has the same number as %.*s", NAME_CHARS, (n - 1)->base);
        else
            missing += part_of(g, n) - part_of(g, n - 1) - 1;
    }
    begin = low;
    end = high;
    if (g->has_total && first->numbers[g->total].value > 0) { /* counted from 0 or from 1 */
        uint64_t total = first->numbers[g->total].value;
        bool is_from_1 = low > 0 && high == total;

        begin = is_from_1;
        end = is_from_1 ? total : total - 1;
    }
    /* numbers without leading zeros may be dates or steps: then most are missing */
    if (!g->has_total && !is_padded(g) && missing > g->count)
        return;
    if (low > begin)
        report_missing(g, first, NULL, begin, low - 1 < end ? low - 1 : end, found);
    for (size_t k = 1; k < g->count; k++) {
        uint64_t before = part_of(g, &g->names[k - 1]), number = part_of(g, &g->names[k]);

        if (number > before + 1 && before < end)
            report_missing(g, &g->names[k], &g->names[k - 1], before + 1,
                           number - 1 < end ? number - 1 : end, found);
    }
    if (high < end)
        report_missing(g, last, NULL, high + 1, end, found);
    for (size_t k = 0; k < g->count; k++)
        if (part_of(g, &g->names[k]) > end)
            lint_add(found, "order", g->names[k].file->path, IRON_COUNT_UNKNOWN, IRON_COUNT_UNKNOWN,
                     "its number is not among the %" PRIu64 " that its name announces",
                     first->numbers[g->total].value);
    report_sizes(g, found);
}

/* Files whose names differ only in numbers, sorted by these. */
static void check_group(name_group *g, finding_list *found) {
    const numbered_name *first = &g->names[0];

    for (size_t k = 1; k < first->count; k++)
        if (is_total(first, k)) {
            g->has_total = true;
            g->total = k;
        }
    g->part = first->count - 1;
    if (g->has_total)
        g->part = g->total - 1;
    else
        while (g->part > 0 && g->count > 1) { /* the last number that is not always the same */
            bool varies = false;

            for (size_t k = 1; k < g->count && !varies; k++)
                varies = compare_values(first, &g->names[k], g->part) != 0;
            if (varies)
                break;
            g->part--;
        }
    for (size_t k = 1; k < g->count; k++)
        if (strcmp(g->names[k - 1].base, g->names[k].base) > 0) {
            lint_add(found, "order", g->names[k].file->path, IRON_COUNT_UNKNOWN, IRON_COUNT_UNKNOWN,
                     "follows %.*s by number, but sorted() and ls put it before: a loader that "
                     "sorts names as text reads another order than iron; write all numbers with "
                     "equally many digits",
                     NAME_CHARS, g->names[k - 1].base);
            break;
        }
    for (size_t k = 1; g->has_total && k < g->count; k++)
        if (compare_values(first, &g->names[k], g->total) != 0) {
            lint_add(found, "mixed", g->names[k].file->path, IRON_COUNT_UNKNOWN, IRON_COUNT_UNKNOWN,
                     "its name announces %" PRIu64 " files, that of %.*s %" PRIu64,
                     g->names[k].numbers[g->total].value, NAME_CHARS, first->base,
                     first->numbers[g->total].value);
            break;
        }
    qsort_r(g->names, g->count, sizeof *g->names, by_part, g);
    for (size_t begin = 0, end; begin < g->count; begin = end) {
        name_group series = *g;

        for (end = begin + 1; end < g->count; end++)
            if (!is_same_series(g, &g->names[begin], &g->names[end]))
                break;
        series.names = g->names + begin;
        series.count = end - begin;
        check_series(&series, found);
    }
}

iron_status lint_names(const shard_list *list, finding_list *found, iron_error *err) {
    numbered_name *names = calloc(list->count + 1, sizeof *names);
    size_t count = 0;

    if (!names)
        return lint_no_memory(err);
    for (size_t k = 0; k < list->count; k++) {
        numbered_name n = parse_name(&list->items[k]);

        if (n.count > 0 && n.count < NUMBERS_MAX)
            names[count++] = n;
    }
    qsort(names, count, sizeof *names, by_pattern_and_numbers);
    for (size_t begin = 0, end; begin < count; begin = end) {
        name_group g = {.names = names + begin};

        for (end = begin + 1; end < count; end++)
            if (compare_patterns(&names[begin], &names[end]) != 0)
                break;
        g.count = end - begin;
        check_group(&g, found);
    }
    free(names);
    return IRON_OK;
}
