/* SPDX-License-Identifier: MIT */
/* completion_zsh.c: see completion.h. The rows are those of zsh's _arguments and _describe. */
#include "command.h"
#include "completion.h"
#include "help_options.h"

#include <string.h>

/* Inside single quotes; `special` are characters that want a backslash there. */
static void put_quoted(FILE *to, const char *text, const char *special) {
    for (const char *at = text; *at; at++) {
        if (*at == '\'')
            fputs("'\\'", to);
        else if (strchr(special, *at))
            fputc('\\', to);
        fputc(*at, to);
    }
}

/* '*--name=[summary]:VALUE:(a b c)': any number of times, with = or a blank. */
static void put_option(FILE *to, const help_option *o) {
    bool is_long = o->name[1] == '-';

    fprintf(to, " \\\n            '*%s%s[", o->name, o->value[0] && is_long ? "=" : "");
    put_quoted(to, o->summary, "[]\\");
    fputc(']', to);
    if (o->value[0]) {
        fputc(':', to);
        put_quoted(to, o->value, ":\\");
        if (o->choices[0])
            fprintf(to, ":(%.*s)", (int)strlen(o->choices) - 1, o->choices);
        else
            fputs(":_files", to);
    }
    fputc('\'', to);
}

static void put_command(FILE *to, const command *c) {
    help_options options;

    help_options_collect(&options, c->help);
    fprintf(to, "    %s)\n        _arguments -S", c->name);
    for (size_t k = 0; k < options.count; k++)
        put_option(to, &options.list[k]);
    if (options.choices[0])
        fprintf(to, " \\\n            '1:argument:(%.*s)' ;;\n", (int)strlen(options.choices) - 1,
                options.choices);
    else
        fputs(" \\\n            '*:file:_files' ;;\n", to);
}

void completion_zsh(FILE *to) {
    fputs("#compdef iron\n"
          "# zsh completion for iron: printed by `iron completion zsh`\n"
          "_iron() {\n"
          "    local -a commands\n"
          "    if (( CURRENT == 2 )); then\n"
          "        commands=(\n",
          to);
    for (size_t k = 0; command_at(k); k++) {
        fprintf(to, "            '%s:", command_at(k)->name);
        put_quoted(to, command_at(k)->summary, "\\");
        fputs("'\n", to);
    }
    fputs("            '--help:lists the commands'\n"
          "            '--version:prints the version'\n"
          "        )\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $words[1] in\n",
          to);
    for (size_t k = 0; command_at(k); k++)
        put_command(to, command_at(k));
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _iron ]]; then _iron \"$@\"; else compdef _iron iron; fi\n",
          to);
}
