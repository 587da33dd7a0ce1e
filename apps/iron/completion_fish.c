/* SPDX-License-Identifier: MIT */
/* completion_fish.c: see completion.h. A line for each command and each option. */
#include "command.h"
#include "completion.h"
#include "help_options.h"

#include <string.h>

static void put_quoted(FILE *to, const char *text) {
    fputc('\'', to);
    for (const char *at = text; *at; at++) {
        if (*at == '\'' || *at == '\\')
            fputc('\\', to);
        fputc(*at, to);
    }
    fputc('\'', to);
}

static void put_choices(FILE *to, const char *choices) {
    fprintf(to, " -a '%.*s'", (int)strlen(choices) - 1, choices);
}

/* -x: a value and no file, -r: a value. */
static void put_option(FILE *to, const command *c, const help_option *o) {
    bool is_long = o->name[1] == '-';

    fprintf(to, "complete -c iron -n '__fish_seen_subcommand_from %s' %s %s", c->name,
            is_long ? "-l" : "-s", o->name + (is_long ? 2 : 1));
    if (o->choices[0]) {
        fputs(" -x", to);
        put_choices(to, o->choices);
    } else if (o->value[0]) {
        fputs(" -r", to);
    }
    fputs(" -d ", to);
    put_quoted(to, o->summary);
    fputc('\n', to);
}

static void put_command(FILE *to, const command *c) {
    help_options options;

    help_options_collect(&options, c->help);
    for (size_t k = 0; k < options.count; k++)
        put_option(to, c, &options.list[k]);
    if (!options.choices[0])
        return;
    fprintf(to, "complete -c iron -n '__fish_seen_subcommand_from %s' -f", c->name);
    put_choices(to, options.choices);
    fputc('\n', to);
}

void completion_fish(FILE *to) {
    fputs("# fish completion for iron: printed by `iron completion fish`\n"
          "complete -c iron -n __fish_use_subcommand -f -l help -d 'lists the commands'\n"
          "complete -c iron -n __fish_use_subcommand -f -l version -d 'prints the version'\n",
          to);
    for (size_t k = 0; command_at(k); k++) {
        fprintf(to, "complete -c iron -n __fish_use_subcommand -f -a %s -d ", command_at(k)->name);
        put_quoted(to, command_at(k)->summary);
        fputc('\n', to);
    }
    for (size_t k = 0; command_at(k); k++)
        put_command(to, command_at(k));
}
