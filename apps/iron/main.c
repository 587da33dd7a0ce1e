/* SPDX-License-Identifier: MIT */
/*
 * main.c: the command `iron`: finds the subcommand, and turns its outcome into one line on standard
 * error and an exit status: 0 done, 1 a comparison found a difference, 2 anything else.
 */
#include "command.h"
#include "outcome.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As the overview lists them: what is here, what files are, what they hold, the engine, the
 * server, races. */
static const command *const commands[] = {
    &command_info,     &command_gen,   &command_sniff, &command_sum,   &command_check,
    &command_diff,     &command_merge, &command_stat,  &command_feed,  &command_state,
    &command_quantize, &command_serve, &command_push,  &command_arena, &command_selftest,
};

/* Known, but not in the overview: one is asked for once in the life of an installation, the other
 * by the build. */
static const command *const tools[] = {&command_completion, &command_man};

/* Written by the command, read by the signal handler. */
static const char *volatile guarded_file;

static void die_cleanly(int signal_number) {
    if (guarded_file)
        unlink(guarded_file);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void command_guard_file(const char *temporary) { guarded_file = temporary; }

static void catch_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = die_cleanly};

    for (size_t k = 0; k < COUNT(signals); k++) {
        struct sigaction before;

        /* started with nohup or in the background: what was ignored stays ignored */
        if (sigaction(signals[k], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[k], &action, NULL);
    }
}

const command *command_at(size_t index) {
    if (index < COUNT(commands))
        return commands[index];
    return index == COUNT(commands) ? &command_completion : NULL;
}

void command_overview(FILE *to) {
    fprintf(to, "usage: iron COMMAND [OPTIONS]\n\n");
    for (size_t k = 0; k < COUNT(commands); k++)
        fprintf(to, "  %-10s %s\n", commands[k]->name, commands[k]->summary);
    fprintf(to, "\niron COMMAND --help tells more; iron --version prints the version.\n"
                "Exit status: 0 done; 1 a comparison found a difference; 2 anything that kept the\n"
                "command from its answer, with one line on standard error.\n");
}

iron_status command_args(const command *c, args *a, int argc, char **argv, bool *is_done,
                         iron_error *err) {
    iron_status status = args_parse(a, argc, argv, err);

    *is_done = status != IRON_OK || a->wants_help;
    if (a->wants_help) {
        fputs(c->help, stdout);
        return IRON_OK;
    }
    return status;
}

static const command *find_command(const char *name) {
    for (size_t k = 0; k < COUNT(commands); k++)
        if (strcmp(commands[k]->name, name) == 0)
            return commands[k];
    for (size_t k = 0; k < COUNT(tools); k++)
        if (strcmp(tools[k]->name, name) == 0)
            return tools[k];
    return NULL;
}

/* iron help is iron --help, and iron help COMMAND is iron COMMAND --help. */
static void understand_help(int argc, char **argv) {
    static char flag[] = "--help";

    if (argc < 2 || strcmp(argv[1], "help") != 0)
        return;
    argv[1] = argc > 2 ? argv[2] : flag;
    if (argc > 2)
        argv[2] = flag;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    const command *c;

    if (argc < 2)
        return usage(err, "no command; iron --help lists the commands");
    if (strcmp(argv[1], "--version") == 0) {
        printf("iron %s\n", iron_version());
        return IRON_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        command_overview(stdout);
        return IRON_OK;
    }
    c = find_command(argv[1]);
    if (!c)
        return usage(err, "unknown command '%.60s'; iron --help lists the commands", argv[1]);
    return c->run(argc - 2, argv + 2, err);
}

void command_complain(const iron_error *err) { print_error("iron", err); }

int main(int argc, char **argv) {
    iron_error err = {IRON_OK, 0, ""};
    iron_status status;

    open_standard_streams();
    catch_signals();
    understand_help(argc, argv);
    status = run(argc, argv, &err);
    if (!finish_output(&status, &err))
        return 2;
    if (status != IRON_OK && err.text[0])
        command_complain(&err);
    return iron_status_exit_code(status);
}
