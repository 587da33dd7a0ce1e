/* SPDX-License-Identifier: MIT */
/*
 * mpi_main.c: the command `iron-mpi`: `iron sum`, `stat` and `feed` over the ranks of an MPI job,
 * with the same results bit for bit. Rank 0 prints the result after all ranks have succeeded;
 * otherwise it prints one error line, and all ranks exit with that status.
 */
#include "ranks.h"
#include "reading.h"

#include <stdlib.h>
#include <string.h>

static const command *const commands[] = {&mpi_command_sum, &mpi_command_stat, &mpi_command_feed};

static const command program = {
    .name = "",
    .synopsis = "COMMAND FILE... [OPTIONS]",
    .commands = commands,
    .command_count = COUNT(commands),
    .description =
        "The ranks share the stream; results are the same as those of iron, bit for bit. Every "
        "rank must see the same files. If one rank fails, all ranks exit with status 2.\n\n"
        "iron-mpi COMMAND --help describes a command; iron-mpi --version prints the version.",
    .exit_status = "0: success; 2: error, with one line on standard error of rank 0.",
};

/* --version and --help also work without mpirun. */
static bool answer(const ranks *r, const char *text) {
    bool is_version = strcmp(text, "--version") == 0;

    if (!is_version && strcmp(text, "--help") != 0 && strcmp(text, "-h") != 0)
        return false;
    if (r->rank == 0 && is_version)
        printf("iron-mpi %s\n", iron_version());
    else if (r->rank == 0)
        command_help(stdout, "mpirun -n RANKS iron-mpi", &program);
    return true;
}

static iron_status run(ranks *r, int argc, char **argv, iron_error *err) {
    const command *c = NULL;
    void *options = NULL;
    iron_status status = IRON_OK;
    args a;

    if (argc > 1 && answer(r, argv[1]))
        return IRON_OK;
    if (argc < 2)
        status = usage(err, "no command; iron-mpi --help lists the commands");
    else if (!(c = command_find(commands, COUNT(commands), argv[1])))
        status = usage(err, "unknown command '%.60s'; iron-mpi --help lists the commands", argv[1]);
    status = ranks_agree(r, status, err);
    if (status != IRON_OK || !c)
        return status;
    /* all ranks parse the command line; rank 0 prints --help */
    ranks_note_command(r, c->name, argc - 2, argv + 2);
    status = ranks_agree(r, command_parse(c, &options, &a, argc - 2, argv + 2, err), err);
    if (status == IRON_OK && a.wants_help && r->rank == 0)
        command_help(stdout, "mpirun -n RANKS iron-mpi", c);
    if (status == IRON_OK && !a.wants_help)
        status = c->run(options, &a, err);
    free(options);
    return status;
}

int main(int argc, char **argv) {
    iron_error err = {IRON_OK, 0, ""};
    iron_status status;
    bool has_reader;
    ranks *r;

    open_standard_streams();
    ranks_begin(&argc, &argv);
    r = ranks_here();
    status = run(r, argc, argv, &err);
    if (iron_status_exit_code(status) != 2)
        status = reading_finish(r->rank == 0 ? "iron-mpi" : NULL, status);
    has_reader = finish_output(&status, &err);
    if (!has_reader && status == IRON_OK)
        status = IRON_E_IO;
    status = ranks_agree(r, status, &err);
    if (has_reader && r->rank == 0 && status != IRON_OK && err.text[0])
        report_error("iron-mpi", &err);
    ranks_end();
    return iron_status_exit_code(status);
}
