/* SPDX-License-Identifier: MIT */
/*
 * main.c: the command `iron`: finds the subcommand, runs it, and turns the result into an exit
 * status and at most one error line.
 */
#include "command.h"

#include <iron/iron_arena.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The overview leaves out the last two: a user needs completion once, and the build calls man. */
static const command *const commands[] = {
    &command_info,  &command_gen,      &command_sniff,      &command_sum,   &command_check,
    &command_diff,  &command_merge,    &command_lint,       &command_stat,  &command_ledger,
    &command_feed,  &command_state,    &command_quantize,   &command_serve, &command_push,
    &command_arena, &command_selftest, &command_completion, &command_man,
};

const command command_iron = {
    .name = "",
    .summary = "reads token streams at the speed of memory",
    .synopsis = "COMMAND [OPTIONS]",
    .commands = commands,
    .command_count = COUNT(commands) - 2,
    .description =
        "Compares token streams independently of file format and token width, finds "
        "where they differ, runs them through the IRON engine, and benchmarks "
        "memory-bound algorithms on this machine.\n\n"
        "iron COMMAND --help describes a command; iron --version (-V) prints the version.",
    .exit_status = USUAL_EXIT_STATUS,
};

/* Set by the command, read by the signal handler. */
static const char *volatile guarded_file;

static void remove_file_and_die(int signal_number) {
    if (guarded_file)
        unlink(guarded_file);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void command_guard_file(const char *temporary) { guarded_file = temporary; }

const command *command_at(size_t index) {
    return commands[index] == &command_man ? NULL : commands[index];
}

iron_status command_default_input(args *a, const char *missing, iron_error *err) {
    static char name[] = "-", *values[] = {name};

    if (a->value_count == 0 && isatty(STDIN_FILENO))
        return usage(err, "%s", missing);
    if (a->value_count == 0)
        *a = (args){.values = values, .value_count = 1};
    return IRON_OK;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    const command *c;
    suggestion s = {0};
    iron_status status;
    void *options;
    args a;

    if (argc < 2)
        return usage(err, "no command; iron --help lists the commands");
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("iron %s\n", iron_version());
        return IRON_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        command_help(stdout, "iron", &command_iron);
        return IRON_OK;
    }
    if (strcmp(argv[1], "arena-contender") == 0) /* started by iron arena for --contender */
        exit(iron_arena_contender_main());
    s.word = argv[1];
    c = command_find(commands, COUNT(commands), argv[1]);
    for (size_t k = 0; !c && k < COUNT(commands); k++)
        suggest(&s, commands[k]->name);
    if (!c)
        return suggest_end(&s, "command", argv[1], "iron ", "iron --help lists the commands", err);
    argc -= 2;
    argv += 2;
    if (c == &command_sum && sum_takes_check(&argc, argv))
        c = &command_check;
    status = command_parse(c, &options, &a, argc, argv, err);
    if (a.wants_help) {
        command_help(stdout, "iron", c);
        status = IRON_OK;
    } else if (status == IRON_OK) {
        status = c->run(options, &a, err);
    }
    free(options);
    return status;
}

void command_complain(const iron_error *err) { report_error("iron", err); }

int main(int argc, char **argv) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    static char flag[] = "--help";
    struct sigaction action = {.sa_handler = remove_file_and_die}, before;
    iron_error err = {IRON_OK, 0, ""};
    iron_status status;

    open_standard_streams();
    /* signals that were ignored at start (nohup, background jobs) stay ignored */
    for (size_t k = 0; k < COUNT(signals); k++)
        if (sigaction(signals[k], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[k], &action, NULL);
    /* `iron help` is `iron --help`, and `iron help COMMAND` is `iron COMMAND --help` */
    if (argc > 1 && strcmp(argv[1], "help") == 0) {
        argv[1] = argc > 2 ? argv[2] : flag;
        argv[2] = argc > 2 ? flag : NULL;
    }
    status = run(argc, argv, &err);
    if (iron_status_exit_code(status) != 2)
        status = reading_finish("iron", status);
    if (!finish_output(&status, &err))
        return 2;
    if (status != IRON_OK && err.text[0])
        command_complain(&err);
    return iron_status_exit_code(status);
}
