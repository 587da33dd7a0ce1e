/* SPDX-License-Identifier: MIT */
/*
 * cmd_completion.c: `iron completion`: prints the script that makes a shell complete this command.
 *
 * All three scripts are printed from the tables of the commands: commands with their summaries,
 * options with their help, the choices of an option, and files for every other value.
 */
#include "command.h"

#include <string.h>

/* The options of a command, --help last; NULL after it. */
static const option *option_at(const command *c, size_t index) {
    static const option help = {.name = "help", .help = "show this help"};

    for (const option_group *g = c->groups; g->options; index -= g->count, g++)
        if (index < g->count)
            return &g->options[index];
    return index == 0 ? &help : NULL;
}

/* bash splits words at =, so that a value after = is a word of its own. An empty answer lets bash
 * offer files. */
static const char bash_head[] =
    "# bash completion for iron: printed by `iron completion bash`\n"
    "_iron() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local options='' values='' arguments=''\n"
    "    COMPREPLY=()\n"
    "    if [ \"$previous\" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "    if [ \"$current\" = = ]; then current=''; fi\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W '";

static const char bash_tail[] =
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

static void print_bash(FILE *to) {
    const command *c;
    const option *o;

    fputs(bash_head, to);
    for (size_t k = 0; (c = command_at(k)); k++)
        fprintf(to, "%s ", c->name);
    fputs("--help --version' -- \"$current\")\n        return\n    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          to);
    for (size_t k = 0; (c = command_at(k)); k++) {
        fprintf(to, "    %s)\n        options='", c->name);
        for (size_t n = 0; (o = option_at(c, n)); n++) {
            if (o->letter)
                fprintf(to, "-%c ", o->letter);
            fprintf(to, "--%s ", o->name);
        }
        fputs("'\n", to);
        if (c->arguments)
            fprintf(to, "        arguments='%s'\n", c->arguments);
        fputs("        case $previous in\n", to);
        for (size_t n = 0; (o = option_at(c, n)); n++) {
            fputs(o->argument ? "        " : "", to);
            if (o->argument && o->letter)
                fprintf(to, "-%c | ", o->letter);
            if (o->argument && o->choices)
                fprintf(to, "--%s) values='%s' ;;\n", o->name, o->choices);
            else if (o->argument)
                fprintf(to, "--%s) return ;;\n", o->name);
        }
        fputs("        esac ;;\n", to);
    }
    fputs(bash_tail, to);
}

/* Puts a text inside single quotes; characters in `special` get a backslash. */
static void put_quoted(FILE *to, const char *text, const char *special) {
    for (; *text; text++) {
        if (*text == '\'' && !strchr(special, '\''))
            fputs("'\\'", to); /* ends the quotes, and begins them again */
        else if (strchr(special, *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}

/* '*--name=[help]:VALUE:(a b c)': any number of times, with = or a blank. */
static void zsh_option(FILE *to, const option *o) {
    for (int is_long = o->letter ? 0 : 1; is_long < 2; is_long++) {
        if (is_long)
            fprintf(to, " \\\n            '*--%s%s[", o->name, o->argument ? "=" : "");
        else
            fprintf(to, " \\\n            '*-%c[", o->letter);
        put_quoted(to, o->help, "[]\\");
        fputc(']', to);
        if (o->argument) {
            fputc(':', to);
            put_quoted(to, o->argument, ":\\");
            if (o->choices)
                fprintf(to, ":(%s)", o->choices);
            else
                fputs(":_files", to);
        }
        fputc('\'', to);
    }
}

static void print_zsh(FILE *to) {
    const command *c;

    fputs("#compdef iron\n"
          "# zsh completion for iron: printed by `iron completion zsh`\n"
          "_iron() {\n"
          "    local -a commands\n"
          "    if (( CURRENT == 2 )); then\n"
          "        commands=(\n",
          to);
    for (size_t k = 0; (c = command_at(k)); k++) {
        fprintf(to, "            '%s:", c->name);
        put_quoted(to, c->summary, "\\");
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
    for (size_t k = 0; (c = command_at(k)); k++) {
        fprintf(to, "    %s)\n        _arguments -S", c->name);
        for (size_t n = 0; option_at(c, n); n++)
            zsh_option(to, option_at(c, n));
        if (c->arguments)
            fprintf(to, " \\\n            '1:argument:(%s)' ;;\n", c->arguments);
        else
            fputs(" \\\n            '*:file:_files' ;;\n", to);
    }
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _iron ]]; then _iron \"$@\"; else compdef _iron iron; fi\n",
          to);
}

static void fish_quote(FILE *to, const char *text) {
    fputs(" -d '", to);
    put_quoted(to, text, "'\\");
    fputs("'\n", to);
}

static void print_fish(FILE *to) {
    const command *c;
    const option *o;

    fputs("# fish completion for iron: printed by `iron completion fish`\n"
          "complete -c iron -n __fish_use_subcommand -f -l help -d 'lists the commands'\n"
          "complete -c iron -n __fish_use_subcommand -f -l version -d 'prints the version'\n",
          to);
    for (size_t k = 0; (c = command_at(k)); k++) {
        fprintf(to, "complete -c iron -n __fish_use_subcommand -f -a %s", c->name);
        fish_quote(to, c->summary);
    }
    for (size_t k = 0; (c = command_at(k)); k++) {
        for (size_t n = 0; (o = option_at(c, n)); n++) {
            fprintf(to, "complete -c iron -n '__fish_seen_subcommand_from %s'", c->name);
            if (o->letter)
                fprintf(to, " -s %c", o->letter);
            fprintf(to, " -l %s", o->name);
            if (o->choices)
                fprintf(to, " -x -a '%s'", o->choices); /* a value that is not a file */
            else if (o->argument)
                fputs(" -r", to); /* a value that may be one */
            fish_quote(to, o->help);
        }
        if (c->arguments)
            fprintf(to, "complete -c iron -n '__fish_seen_subcommand_from %s' -f -a '%s'\n",
                    c->name, c->arguments);
    }
}

static iron_status run(void *options, args *a, iron_error *err) {
    static const struct {
        const char *name;
        void (*print)(FILE *to);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

    (void)options;
    if (a->value_count != 1)
        return usage(err, "completion takes the name of one shell; give bash, zsh or fish");
    for (size_t k = 0; k < COUNT(shells); k++)
        if (strcmp(shells[k].name, a->values[0]) == 0) {
            shells[k].print(stdout);
            return IRON_OK;
        }
    return usage(err, "no completion for the shell '%.60s'; give bash, zsh or fish", a->values[0]);
}

const command command_completion = {
    .name = "completion",
    .summary = "prints a script that makes a shell complete this command",
    .synopsis = "bash|zsh|fish",
    .description =
        "Prints the completion script of a shell: commands and options with their descriptions, "
        "the possible values of an option, and files. make install and the Debian package install "
        "all three. Otherwise, add the line for your shell to its start-up file.",
    .arguments = "bash zsh fish",
    .examples = "source <(iron completion bash)     # ~/.bashrc\n"
                "source <(iron completion zsh)      # ~/.zshrc, after compinit\n"
                "iron completion fish | source      # ~/.config/fish/config.fish",
    .run = run,
};
