/* SPDX-License-Identifier: MIT */
/*
 * help_options.c: see help_options.h. More than there is room for is left out: the texts are our
 * own, and a test finds every option of every text in the completion.
 */
#include "help_options.h"

#include "help_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define TEXT_ROOM 1024u

static void copy(char *to, size_t room, span from) {
    snprintf(to, room, "%.*s", (int)from.length, from.at);
}

static bool is_choice_character(char c) {
    return islower((unsigned char)c) || isdigit((unsigned char)c) || c == '-' || c == '_';
}

/* The word at the front: one that could be typed as it stands. */
static span front_word(span text) {
    size_t k = 0;

    while (k < text.length && is_choice_character(text.at[k]))
        k++;
    return (span){text.at, k};
}

static void add_choice(char *choices, span word) {
    char one[64];

    if (word.length == 0 || word.length + 3 > sizeof one)
        return;
    snprintf(one, sizeof one, "%.*s ", (int)word.length, word.at);
    for (const char *at = strstr(choices, one); at; at = strstr(at + 1, one))
        if (at == choices || at[-1] == ' ')
            return;
    if (strlen(choices) + strlen(one) < CHOICES_ROOM)
        strncat(choices, one, CHOICES_ROOM - strlen(choices) - 1);
}

/* "(default)" and the like, with the blank before it. */
static span skip_remark(span text) {
    const char *end = span_begins(text, " (") ? memchr(text.at, ')', text.length) : NULL;

    return end ? span_from(text, (size_t)(end - text.at) + 1) : text;
}

/* Moves past what parts two words of a list. Is there such a thing? */
static bool skip_comma(span *text, bool *has_or) {
    static const char *const commas[] = {", or ", " or ", ", "};

    for (size_t k = 0; k < sizeof commas / sizeof commas[0]; k++)
        if (span_begins(*text, commas[k])) {
            *text = span_from(*text, strlen(commas[k]));
            *has_or = *has_or || k < 2;
            return true;
        }
    return false;
}

/* "a, b or c" at the front. One word is no list, and without an "or" a sentence may only look like
 * one: nothing of it may follow. */
static void choices_of_list(char *choices, span text) {
    char found[CHOICES_ROOM] = "";
    size_t count = 0;
    bool has_or = false;
    span word;

    do {
        word = front_word(text);
        add_choice(found, word);
        count++;
        text = skip_remark(span_from(text, word.length));
    } while (word.length > 0 && skip_comma(&text, &has_or));
    if (word.length > 0 && count > 1 && (has_or || text.length == 0))
        memcpy(choices, found, sizeof found);
}

/* "On the CPU: a b c. On GPUs: d e", and what is the default. */
static void choices_of_devices(char *choices, const char *text) {
    static const char *const openings[] = {"On the CPU: ", "On GPUs: ", "to a GPU: "};
    const char *usual = strstr(text, " (default)"), *begin = usual;

    for (size_t k = 0; k < sizeof openings / sizeof openings[0]; k++) {
        const char *at = strstr(text, openings[k]);
        span rest = {at ? at + strlen(openings[k]) : "", 0};

        rest.length = strcspn(rest.at, ".");
        while (rest.length > 0) {
            span word = front_word(rest);

            if (!span_is(word, "or"))
                add_choice(choices, word);
            rest = skip_remark(span_from(rest, word.length));
            rest = span_from(rest, span_begins(rest, " ") ? 1 : word.length ? 0 : rest.length);
        }
    }
    while (begin && begin > text && is_choice_character(begin[-1]))
        begin--;
    if (choices[0] && usual)
        add_choice(choices, (span){begin, (size_t)(usual - begin)});
}

/* "a: what it does; b: what that does" */
static void choices_of_meanings(char *choices, const char *text) {
    const char *next = strstr(text, "; ");
    span first = front_word((span){text, strlen(text)}), second;

    if (!next || text[first.length] != ':' || first.length == 0)
        return;
    second = front_word((span){next + 2, strlen(next + 2)});
    if (second.length == 0 || second.at[second.length] != ':')
        return;
    add_choice(choices, first);
    add_choice(choices, second);
}

static void find_choices(help_option *o, const char *text) {
    choices_of_list(o->choices, (span){text, strlen(text)});
    if (!o->choices[0])
        choices_of_devices(o->choices, text);
    if (!o->choices[0])
        choices_of_meanings(o->choices, text);
}

/* Up to the first stop outside of parentheses, so that it goes on a line beside the option; all of
 * it if that would be but a word. */
static void summarise(help_option *o, const char *text) {
    size_t length = 0, depth = 0;

    for (; text[length]; length++) {
        depth += text[length] == '(';
        depth -= text[length] == ')' && depth > 0;
        if (depth == 0 && strchr(".;:", text[length]) && text[length + 1] == ' ')
            break;
    }
    if (!memchr(text, ' ', length))
        length = strlen(text);
    copy(o->summary, sizeof o->summary, (span){text, length});
}

static help_option *find_or_add(help_options *options, span name) {
    help_option *o;

    for (size_t k = 0; k < options->count; k++)
        if (span_is(name, options->list[k].name))
            return &options->list[k];
    if (options->count == sizeof options->list / sizeof options->list[0])
        return NULL;
    o = &options->list[options->count++];
    *o = (help_option){.name = ""};
    copy(o->name, sizeof o->name, name);
    return o;
}

/* "u16|u32", and "real" alone; nothing of what stands for a value, like FILE. */
static void add_alternatives(char *choices, span value) {
    size_t k = 0;

    for (; k < value.length; k++)
        if (!is_choice_character(value.at[k]) && value.at[k] != '|')
            return;
    for (k = 0; k < value.length; k++) {
        span word = front_word(span_from(value, k));

        add_choice(choices, word);
        k += word.length;
    }
}

/* The next word, without what groups it: blanks, brackets, commas, and the bar before an option. */
static bool take_word(span *rest, span *word) {
    size_t k = 0;

    while (k < rest->length && strchr(" [],|", rest->at[k]))
        k++;
    *rest = span_from(*rest, k);
    for (k = 0; k < rest->length && !strchr(" []", rest->at[k]); k++)
        if (rest->at[k] == '|' && k + 1 < rest->length && rest->at[k + 1] == '-')
            break;
    *word = (span){rest->at, k};
    *rest = span_from(*rest, k);
    if (word->length > 1 && word->at[word->length - 1] == ',')
        word->length--;
    return word->length > 0;
}

/* The options of a term or of the usage; `text` is what is said of them, "" if nothing. */
static void take_term(help_options *options, span term, const char *text) {
    help_option *before = NULL; /* the option whose value may follow */
    span word;

    while (take_word(&term, &word)) {
        if (word.at[0] == '-') {
            before = word.length > 1 ? find_or_add(options, word) : NULL;
            if (before && !before->summary[0])
                summarise(before, text);
            continue;
        }
        if (before) {
            copy(before->value, sizeof before->value, word);
            add_alternatives(before->choices, word);
            if (!before->choices[0])
                find_choices(before, text);
        } else if (memchr(word.at, '|', word.length)) {
            add_alternatives(options->choices, word);
        }
        before = NULL;
    }
}

void help_options_collect(help_options *options, const char *help) {
    help_reader reader = help_open(help);
    help_line line;
    char text[TEXT_ROOM] = "";
    span term = {"", 0};

    *options = (help_options){.count = 0};
    while (help_next(&reader, &line)) {
        size_t length = strlen(text);

        if (line.kind == HELP_MORE) {
            snprintf(text + length, sizeof text - length, "%s%.*s", length ? " " : "",
                     (int)line.text.length, line.text.at);
            continue;
        }
        take_term(options, term, text);
        term = line.kind == HELP_ITEM ? line.term : (span){"", 0};
        copy(text, sizeof text, line.text);
        if (line.section == HELP_USAGE)
            take_term(options, line.text, "");
    }
    take_term(options, term, text);
    take_term(options, (span){"--help", 6}, "prints the help");
}
