/* SPDX-License-Identifier: MIT */
/*
 * mpi_main.c: the command `iron-mpi`: `iron sum`, `stat` and `feed` over the ranks of an MPI job,
 * with the same results bit for bit. Rank 0 prints them, after all have agreed that there is
 * nothing more that could fail; else it prints the one line that says what did, and all end with
 * that status.
 */
#include "mpi_command.h"
#include "outcome.h"

#include <stdio.h>
#include <string.h>

static const mpi_command *const commands[] = {&mpi_command_sum, &mpi_command_stat,
                                              &mpi_command_feed};

static void print_overview(void) {
    printf("usage: mpirun -n RANKS iron-mpi COMMAND FILE... [OPTIONS]\n\n");
    for (size_t k = 0; k < COUNT(commands); k++)
        printf("  %-10s %s\n", commands[k]->name, commands[k]->summary);
    printf(
        "\nThe ranks share the stream; results are those of iron, bit for bit. Every rank must\n"
        "see the same files. iron-mpi COMMAND --help tells more. Exit status: 0 done; 2 anything\n"
        "that kept it from its answer, with one line on rank 0's standard error.\n");
}

iron_status mpi_command_args(const mpi_command *c, const ranks *r, args *a, int argc, char **argv,
                             bool *is_done, iron_error *err) {
    iron_status status = ranks_agree(r, args_parse(a, argc, argv, err), err);

    *is_done = status != IRON_OK || a->wants_help;
    if (status == IRON_OK && a->wants_help && r->rank == 0)
        fputs(c->help, stdout);
    return status;
}

static const mpi_command *find_command(const char *name) {
    for (size_t k = 0; k < COUNT(commands); k++)
        if (strcmp(commands[k]->name, name) == 0)
            return commands[k];
    return NULL;
}

static iron_status choose(int argc, char **argv, const mpi_command **c, iron_error *err) {
    if (argc < 2)
        return usage(err, "no command; iron-mpi --help lists the commands");
    *c = find_command(argv[1]);
    if (!*c)
        return usage(err, "unknown command '%.60s'; iron-mpi --help lists the commands", argv[1]);
    return IRON_OK;
}

/* --version and --help are for those who start it without mpirun too. */
static bool answer(const ranks *r, const char *text) {
    bool is_version = strcmp(text, "--version") == 0;

    if (!is_version && strcmp(text, "--help") != 0 && strcmp(text, "-h") != 0)
        return false;
    if (r->rank == 0 && is_version)
        printf("iron-mpi %s\n", iron_version());
    else if (r->rank == 0)
        print_overview();
    return true;
}

static iron_status run(const ranks *r, int argc, char **argv, iron_error *err) {
    const mpi_command *c = NULL;
    iron_status status;

    if (argc > 1 && answer(r, argv[1]))
        return IRON_OK;
    status = ranks_agree(r, choose(argc, argv, &c, err), err);
    return status == IRON_OK && c ? c->run(r, argc - 2, argv + 2, err) : status;
}

int main(int argc, char **argv) {
    iron_error err = {IRON_OK, 0, ""};
    iron_status status;
    bool is_heard;
    ranks r;

    open_standard_streams();
    r = ranks_begin(&argc, &argv);
    status = run(&r, argc, argv, &err);
    is_heard = finish_output(&status, &err);
    if (is_heard && r.rank == 0 && status != IRON_OK && err.text[0])
        print_error("iron-mpi", &err);
    ranks_end();
    return is_heard ? iron_status_exit_code(status) : 2;
}
