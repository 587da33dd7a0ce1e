/* SPDX-License-Identifier: MIT */
/*
 * options.c: parses a command line according to the table of a command, and prints --help from the
 * same table. Anything that is not understood is an error; nothing is skipped or rounded.
 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HELP_WIDTH  80u
#define TEXT_COLUMN 24u /* a term that reaches it has its text on the next line */
#define TEXT_ROOM   1024u

iron_status usage(iron_error *err, const char *format, ...) {
    va_list list;

    err->status = IRON_E_ARG;
    err->native = 0;
    va_start(list, format);
    vsnprintf(err->text, sizeof err->text, format, list);
    va_end(list);
    return IRON_E_ARG;
}

void *list_grow(void *items, size_t count, size_t *capacity, size_t item_bytes) {
    size_t more = *capacity ? 2 * *capacity : 64;
    void *larger = count < *capacity ? NULL : realloc(items, more * item_bytes);

    if (!larger)
        return items;
    *capacity = more;
    return larger;
}

/* The factor of a unit such as k, MB or GiB; 1 for an empty text, 0 for an unknown unit. */
static uint64_t unit_factor(const char *text) {
    static const char prefixes[] = "kMGT";
    const char *prefix = strchr(prefixes, *text == 'K' ? 'k' : *text);
    bool is_binary = *text && text[1] == 'i';
    uint64_t factor = 1;

    if (*text == '\0')
        return 1;
    if (!prefix)
        return 0;
    for (const char *at = prefixes; at <= prefix; at++)
        factor *= is_binary ? 1024 : 1000;
    text += 1 + is_binary;
    return strcmp(text, "") == 0 || strcmp(text, "B") == 0 ? factor : 0;
}

/* Appends the digits at *at to *number and returns how many there are; *is_too_large: beyond 64
 * bits. */
static size_t take_digits(const char **at, uint64_t *number, bool *is_too_large) {
    const char *begin = *at;

    for (; isdigit((unsigned char)**at); ++*at)
        if (__builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (uint64_t)(**at - '0'), number))
            *is_too_large = true;
    return (size_t)(*at - begin);
}

iron_status parse_number(const char *what, const char *text, uint64_t *value, iron_error *err) {
    const char *at = text;
    uint64_t number = 0, exponent = 0, factor;
    size_t decimals = 0;
    bool is_too_large = false, is_number = take_digits(&at, &number, &is_too_large) > 0;

    if (is_number && *at == '.') {
        at++;
        decimals = take_digits(&at, &number, &is_too_large);
        is_number = decimals > 0;
    }
    if (is_number && (*at == 'e' || *at == 'E')) {
        at += at[1] == '+' ? 2 : 1;
        is_number = take_digits(&at, &exponent, &is_too_large) > 0;
    }
    factor = is_number ? unit_factor(at) : 0;
    *value = 0;
    if (factor == 0)
        return usage(err,
                     "%.60s '%.40s' is not a number; give digits, or a short form such as 50k, 1e6 "
                     "or 2GiB",
                     what, text);
    is_too_large = is_too_large || __builtin_mul_overflow(number, factor, &number);
    for (; exponent > decimals && number > 0 && !is_too_large; exponent--)
        is_too_large = __builtin_mul_overflow(number, 10u, &number);
    if (is_too_large)
        return usage(err, "%.60s %.40s is beyond 64 bits; give a smaller number", what, text);
    for (; decimals > exponent && number > 0; decimals--, number /= 10)
        if (number % 10 != 0)
            return usage(err, "%.60s %.40s is not a whole number", what, text);
    *value = number;
    return IRON_OK;
}

iron_status parse_real(const char *what, const char *text, double *value, iron_error *err) {
    char *end = NULL;

    errno = 0;
    *value = strtod(text, &end);
    /* strtod alone would also accept hexadecimal, "inf" and "nan" */
    if (*end || strspn(text, "+-.0123456789eE") != strlen(text) || !strpbrk(text, "0123456789"))
        return usage(err, "%.60s '%.40s' is not a number; give a decimal like -11.5", what, text);
    if (!isfinite(*value))
        return usage(err, "%.60s %.40s is too large; give a finite number", what, text);
    /* a value too small for a double is not zero: its sign decides the nearest lattice point */
    if (*value == 0 && errno == ERANGE)
        *value = text[0] == '-' ? -DBL_MIN : DBL_MIN;
    return IRON_OK;
}

iron_status parse_lattice(const char *text, uint32_t points[LATTICE_ROOM], uint32_t *count,
                          iron_error *err) {
    *count = 0;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        char item[24];
        uint64_t point;

        if (length >= sizeof item)
            return usage(err, "invalid lattice point '%.30s'; points are 1 to 65535", at);
        memcpy(item, at, length);
        item[length] = '\0';
        IRON_TRY(parse_number("lattice point", item, &point, err));
        if (point > UINT32_MAX)
            return usage(err, "lattice point %s is too large; points are 1 to 65535", item);
        if (*count < LATTICE_ROOM)
            points[(*count)++] = (uint32_t)point;
        if (at[length] == '\0')
            return IRON_OK;
        at += length + 1;
    }
}

static const option *find_option(const option_group *groups, const char *text, size_t length,
                                 const option_group **group) {
    bool is_long = strncmp(text, "--", 2) == 0;

    for (const option_group *g = groups; g->options; g++)
        for (size_t k = 0; k < g->count; k++) {
            const option *o = &g->options[k];

            *group = g;
            if (is_long && strlen(o->name) == length - 2 &&
                strncmp(o->name, text + 2, length - 2) == 0)
                return o;
            if (!is_long && text[1] == o->letter && text[2] == '\0')
                return o;
        }
    return NULL;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The number of single-character edits between two words, swaps of neighbours included; words are
 * cut off at 31 characters. */
static size_t word_distance(const char *a, const char *b) {
    enum { ROOM = 32 };
    size_t n = strnlen(a, ROOM - 1), m = strnlen(b, ROOM - 1), d[ROOM][ROOM];

    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            size_t best = i > 0 ? d[i - 1][j] + 1 : j;

            if (i > 0 && j > 0) {
                best = smaller(best, d[i][j - 1] + 1);
                best = smaller(best, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            }
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = smaller(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    return d[n][m];
}

void suggest(suggestion *s, const char *candidate) {
    size_t distance = strncmp(candidate, s->word, strlen(s->word)) == 0
                          ? 0 /* the beginning of a name */
                          : word_distance(s->word, candidate);

    if (s->word[0] && distance < (s->best ? s->distance : 2 + strlen(s->word) / 3)) {
        s->best = candidate;
        s->distance = distance;
    }
}

iron_status suggest_end(const suggestion *s, const char *what, const char *text, const char *prefix,
                        const char *list, iron_error *err) {
    if (!s->best)
        return usage(err, "unknown %s '%.60s'; %s", what, text, list);
    return usage(err, "unknown %s '%.60s'; did you mean %s%s? %s", what, text, prefix, s->best,
                 list);
}

/* The choices as "a, b, c"; "" without any. */
static void join_choices(const option *o, char *text, size_t room) {
    size_t used = 0;

    for (const char *at = o->choices ? o->choices : ""; *at && used + 2 < room; at++) {
        if (*at == ' ')
            text[used++] = ',';
        text[used++] = *at;
    }
    text[used] = '\0';
}

bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);

    if (length == 0 || strchr(word, ' '))
        return false;
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* `field` is where the value goes; `value` is NULL for a flag. */
static iron_status store(const option *o, const char *value, char *field, iron_error *err) {
    uint64_t widest = o->bytes == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX, number;
    uint64_t max = o->max ? o->max : widest;
    text_list *list = (void *)field;
    char what[64], choices[128];

    snprintf(what, sizeof what, "--%s", o->name);
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return IRON_OK;
    case OPTION_NUMBER:
        IRON_TRY(parse_number(what, value, &number, err));
        if (number < o->min && max == widest)
            return usage(err, "%s is %" PRIu64 "; it must be at least %" PRIu64, what, number,
                         o->min);
        if (number < o->min || number > max)
            return usage(err, "%s is %" PRIu64 "; it must be %" PRIu64 " to %" PRIu64, what, number,
                         o->min, max);
        if (o->bytes == sizeof(uint32_t))
            *(uint32_t *)(void *)field = (uint32_t)number;
        else
            *(uint64_t *)(void *)field = number;
        return IRON_OK;
    case OPTION_REAL:
        return parse_real(what, value, (double *)(void *)field, err);
    case OPTION_LIST:
        if (list->count == LIST_ROOM)
            return usage(err, "option --%s is given more than %u times", o->name, LIST_ROOM);
        list->texts[list->count++] = value;
        return IRON_OK;
    case OPTION_CHOICE:
        if (has_word(o->choices, value))
            break;
        join_choices(o, choices, sizeof choices);
        return usage(err, "--%s '%.40s' is unknown; use one of: %s", o->name, value, choices);
    case OPTION_TEXT:
        break;
    }
    *(const char **)(void *)field = value;
    return IRON_OK;
}

iron_status options_parse(const option_group *groups, void *into, args *a, int argc, char **argv,
                          iron_error *err) {
    suggestion s = {0};
    char name[40];
    bool has_ended = false;

    *a = (args){.values = argv};
    for (int k = 0; k < argc; k++) {
        const char *text = argv[k], *value = NULL;
        size_t length = strcspn(text, "=");
        const option_group *group;
        const option *o;

        /* "-" and negative numbers are values, too */
        if (has_ended || text[0] != '-' || text[1] == '\0' || text[1] == '.' ||
            isdigit((unsigned char)text[1])) {
            a->values[a->value_count++] = argv[k];
            continue;
        }
        if (strcmp(text, "--") == 0) {
            has_ended = true;
            continue;
        }
        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            a->wants_help = true;
            continue;
        }
        o = find_option(groups, text, length, &group);
        if (!o) {
            snprintf(name, sizeof name, "%.*s", (int)length, text);
            s.word = name + strspn(name, "-");
            for (const option_group *g = groups; g->options; g++)
                for (size_t n = 0; n < g->count && strlen(s.word) > 1; n++)
                    suggest(&s, g->options[n].name);
            return suggest_end(&s, "option", text, "--", "--help lists the options", err);
        }
        if (text[length])
            value = text + length + 1;
        else if (o->kind != OPTION_FLAG && k + 1 < argc)
            value = argv[++k];
        if (o->kind == OPTION_FLAG && value)
            return usage(err, "option --%s takes no value: '%.40s'", o->name, text);
        if (o->kind != OPTION_FLAG && !value)
            return usage(err, "option %.60s needs a value; see --help", text);
        if (o->given)
            *((bool *)into + group->offset + o->given - 1) = true;
        IRON_TRY(store(o, value, (char *)into + group->offset + o->offset, err));
    }
    return IRON_OK;
}

iron_status command_parse(const command *c, void **options, args *a, int argc, char **argv,
                          iron_error *err) {
    *a = (args){.values = argv};
    *options = calloc(1, c->options_bytes + 1);
    if (!*options)
        return usage(err, "out of memory for the options");
    if (c->defaults)
        memcpy(*options, c->defaults, c->options_bytes);
    return options_parse(c->groups, *options, a, argc, argv, err);
}

const command *command_find(const command *const *commands, size_t count, const char *name) {
    for (size_t k = 0; k < count; k++)
        if (strcmp(commands[k]->name, name) == 0)
            return commands[k];
    return NULL;
}

void option_term(const option *o, char *text, size_t room) {
    char letter[8] = "";

    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(text, room, "%s--%s%s%s", letter, o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
}

void option_text(const option *o, char *text, size_t room) {
    char choices[256], range[64] = "", standard[160] = "";
    bool has_more;

    join_choices(o, choices, sizeof choices);
    if (o->max)
        snprintf(range, sizeof range, "%s%" PRIu64 " to %" PRIu64, choices[0] ? "; " : "", o->min,
                 o->max);
    if (o->standard)
        snprintf(standard, sizeof standard, "%sdefault: %s", choices[0] || range[0] ? "; " : "",
                 o->standard);
    has_more = choices[0] || range[0] || standard[0];
    snprintf(text, room, "%s%s%s%s%s%s", o->help, has_more ? " (" : "", choices, range, standard,
             has_more ? ")" : "");
}

void print_wrapped(FILE *to, const char *text, size_t column, size_t indent, size_t width) {
    bool is_start = true; /* of a line: no blank before the word */

    while (*text) {
        size_t length = strcspn(text, " \n");

        if (!is_start && column + 1 + length > width) {
            fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
            is_start = true;
        }
        fprintf(to, "%s%.*s", is_start ? "" : " ", (int)length, text);
        column += length + !is_start;
        is_start = false;
        text += length;
        if (*text == '\n') {
            fprintf(to, "\n%*s", text[1] == '\n' ? 0 : (int)indent, "");
            column = indent;
            is_start = true;
        }
        text += *text != '\0';
    }
    fputc('\n', to);
}

void command_help(FILE *to, const char *program, const command *c) {
    size_t column = strlen("usage: ") + strlen(program) + strlen(c->name) + 2;
    char term[80], text[TEXT_ROOM];

    fprintf(to, "usage: %s %s%s", program, c->name, c->name[0] ? " " : "");
    print_wrapped(to, c->synopsis, column, column, HELP_WIDTH);
    fputc('\n', to);
    print_wrapped(to, c->description, 0, 0, HELP_WIDTH);
    if (c->command_count > 0)
        fputs("\nCommands:\n", to);
    for (size_t k = 0; k < c->command_count; k++)
        fprintf(to, "  %-10s %s\n", c->commands[k]->name, c->commands[k]->summary);
    for (const option_group *g = c->groups; g->options; g++) {
        fprintf(to, "\n%s:\n", g->heading ? g->heading : "Options");
        for (size_t k = 0; k < g->count; k++) {
            option_term(&g->options[k], term, sizeof term);
            option_text(&g->options[k], text, sizeof text);
            if (strlen(term) + 4 > TEXT_COLUMN)
                fprintf(to, "  %s\n%*s", term, (int)TEXT_COLUMN, "");
            else
                fprintf(to, "  %-*s", (int)TEXT_COLUMN - 2, term);
            print_wrapped(to, text, TEXT_COLUMN, TEXT_COLUMN, HELP_WIDTH);
        }
    }
    if (c->exit_status) {
        fputs("\nExit status: ", to);
        print_wrapped(to, c->exit_status, strlen("Exit status: "), 0, HELP_WIDTH);
    }
    if (c->examples) {
        fputs("\nExamples:\n  ", to);
        for (const char *at = c->examples; *at; at++)
            fputs(*at == '\n' ? "\n  " : (const char[]){*at, '\0'}, to);
        fputc('\n', to);
    }
}
