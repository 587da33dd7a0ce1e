/* SPDX-License-Identifier: MIT */
/*
 * completion_bash.c: see completion.h. Needs nothing but bash: a value after = comes as a word of
 * its own, since = parts words there.
 */
#include "command.h"
#include "completion.h"
#include "help_options.h"

#include <string.h>

static const char head[] =
    "# bash completion for iron: printed by `iron completion bash`\n"
    "_iron() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local options='' values='' arguments=''\n"
    "    COMPREPLY=()\n"
    "    if [ \"$previous\" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "    if [ \"$current\" = = ]; then current=''; fi\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W '";

/* An empty answer lets bash offer files. */
static const char tail[] =
    "    *) return ;;\n"
    "    esac\n"
    "    if [ -n \"$values\" ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$current\")\n"
    "    elif [[ $current == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
    "    elif [ -n \"$arguments\" ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$arguments\" -- \"$current\")\n"
    "    fi\n"
    "}\n"
    "complete -o bashdefault -o default -F _iron iron\n";

static void put_values(FILE *to, const help_options *options) {
    for (size_t k = 0; k < options->count; k++) {
        const help_option *o = &options->list[k];

        if (o->choices[0])
            fprintf(to, "        %s) values='%.*s' ;;\n", o->name, (int)strlen(o->choices) - 1,
                    o->choices);
        else if (o->value[0])
            fprintf(to, "        %s) return ;;\n", o->name);
    }
}

static void put_command(FILE *to, const command *c) {
    help_options options;

    help_options_collect(&options, c->help);
    fprintf(to, "    %s)\n        options='", c->name);
    for (size_t k = 0; k < options.count; k++)
        fprintf(to, "%s%s", k ? " " : "", options.list[k].name);
    fputs("'\n", to);
    if (options.choices[0])
        fprintf(to, "        arguments='%.*s'\n", (int)strlen(options.choices) - 1,
                options.choices);
    fputs("        case $previous in\n", to);
    put_values(to, &options);
    fputs("        esac ;;\n", to);
}

void completion_bash(FILE *to) {
    fputs(head, to);
    for (size_t k = 0; command_at(k); k++)
        fprintf(to, "%s ", command_at(k)->name);
    fputs("--help --version' -- \"$current\")\n        return\n    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          to);
    for (size_t k = 0; command_at(k); k++)
        put_command(to, command_at(k));
    fputs(tail, to);
}
