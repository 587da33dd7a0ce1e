/* SPDX-License-Identifier: MIT */
/*
 * cmd_man.c: `iron man`: the manual pages iron(1) and iron-COMMAND(1), made of the help texts. The
 * build runs it, and installs what it writes.
 *
 * What a help text does not say is here: the environment, and which pages belong together.
 */
#include "command.h"
#include "roff.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 4096

/* Who reads a variable; NULL is for the overview alone. */
#define LOADERS " info sum check diff feed serve arena selftest "

static const struct variable {
    const char *name, *readers, *text;
} variables[] = {
    {"IRON_CACHE_DIR", LOADERS,
     "The folder in which built kernels and calibrations are kept. Otherwise iron in "
     "XDG_CACHE_HOME."},
    {"XDG_CACHE_HOME", LOADERS,
     "The user's folder for such things; ignored unless absolute. Otherwise .cache in HOME."},
    {"HOME", LOADERS, "The user's folder; ignored unless absolute. Without any, nothing is kept."},
    {"IRON_CUDA_LIBRARY", LOADERS,
     "The CUDA driver (libcuda.so.1). A name that does not exist, none for one, keeps it away."},
    {"IRON_OPENCL_LIBRARY", LOADERS,
     "The OpenCL loader (libOpenCL.so.1). A name that does not exist keeps it away."},
    {"IRON_OPENCL_CACHE", LOADERS, "0: kernels that OpenCL has built are not kept."},
    {"IRON_NVML_LIBRARY", " arena ",
     "What tells clocks and throttling of NVIDIA's cards (libnvidia-ml.so.1)."},
    {"IRON_PEERS", " arena ",
     "The folder with plug-ins of other libraries that race along; none: without them."},
    {"NO_COLOR", " arena ", "Not empty: tables have no colours on a terminal."},
    {"LISTEN_FDS", " serve ", "1: the socket to serve is descriptor 3, if LISTEN_PID is right."},
    {"LISTEN_PID", " serve ", "The process that LISTEN_FDS is meant for."},
    {"NOTIFY_SOCKET", " serve ", "Where a service manager hears of readiness and of the state."},
    {"WATCHDOG_USEC", " serve ",
     "Within how many microseconds it wants to hear that commits make progress."},
    {"WATCHDOG_PID", " serve ", "The process that WATCHDOG_USEC is meant for; any, if not there."},
};

static span span_of(const char *text) { return (span){text, strlen(text)}; }

static bool reads(const char *name, const struct variable *v) {
    const char *at = strstr(v->readers, name);

    return at && at[-1] == ' ' && at[strlen(name)] == ' ';
}

/* Of the command `name`, or all if it is NULL. */
static void put_environment(FILE *to, const char *name) {
    bool is_begun = false;

    for (size_t k = 0; k < COUNT(variables); k++) {
        if (name && !reads(name, &variables[k]))
            continue;
        if (!is_begun)
            fputs(".SH ENVIRONMENT\n", to);
        is_begun = true;
        fprintf(to, ".TP\n.B %s\n", variables[k].name);
        roff_line(to, span_of(variables[k].text));
    }
}

/* Does the help speak of `iron NAME`? */
static bool mentions(const char *help, const char *name) {
    char words[64];
    int length = snprintf(words, sizeof words, "iron %s", name);

    for (const char *at = strstr(help, words); at; at = strstr(at + 1, words))
        if (!isalpha((unsigned char)at[length]))
            return true;
    return false;
}

/* All pages, or those that the help of `c` speaks of. */
static void put_see_also(FILE *to, const command *c) {
    fprintf(to, ".SH SEE ALSO\n%s", c ? ".BR iron (1)" : "");
    for (size_t k = 0; command_at(k); k++) {
        const char *name = command_at(k)->name;

        if (c && (command_at(k) == c || !mentions(c->help, name)))
            continue;
        fprintf(to, "%s.BR iron\\-%s (1)", c || k > 0 ? ",\n" : "", name);
    }
    fputc('\n', to);
}

static void put_title(FILE *to, const char *dash, const char *name) {
    fputs(".TH IRON", to);
    for (const char *at = dash; *at; at++)
        fputs("\\-", to);
    for (const char *at = name; *at; at++)
        fputc(toupper((unsigned char)*at), to);
    fprintf(to, " 1 \"\" \"iron %s\" \"iron\"\n", iron_version());
}

static void put_usage(FILE *to, const char *help) {
    help_reader reader = help_open(help);
    help_line line;

    fputs(".SH SYNOPSIS\n.nh\n", to);
    while (help_next(&reader, &line) && line.section == HELP_USAGE)
        roff_term(to, line.text);
    fputs(".hy\n", to);
}

static void put_page(FILE *to, const command *c, const char *overview) {
    put_title(to, "-", c->name);
    fprintf(to, ".SH NAME\niron\\-%s \\- ", c->name);
    roff_line(to, span_of(c->summary));
    put_usage(to, c->help);
    roff_section(to, c->help, HELP_DESCRIPTION, "DESCRIPTION");
    roff_section(to, c->help, HELP_ITEMS, "OPTIONS");
    if (!roff_section(to, c->help, HELP_EXIT_STATUS, "EXIT STATUS"))
        roff_section(to, overview, HELP_EXIT_STATUS, "EXIT STATUS");
    put_environment(to, c->name);
    roff_section(to, c->help, HELP_EXAMPLES, "EXAMPLES");
    put_see_also(to, c);
}

static void put_overview(FILE *to, const char *overview) {
    put_title(to, "", "");
    fputs(".SH NAME\niron \\- reads token streams at the speed of memory\n", to);
    put_usage(to, overview);
    fputs(".SH DESCRIPTION\n"
          "Tells what token streams are: same tokens, same order, whatever the container and the\n"
          "width, and if not, where; runs them through the IRON engine; and races ways of doing\n"
          "memory\\-bound work on this machine. Each command has a page of its own.\n",
          to);
    roff_section(to, overview, HELP_ITEMS, "COMMANDS");
    roff_section(to, overview, HELP_EXIT_STATUS, "EXIT STATUS");
    put_environment(to, NULL);
    put_see_also(to, NULL);
}

/* iron(1) if `c` is NULL. */
static iron_status put(FILE *to, const command *c, iron_error *err) {
    char *overview = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&overview, &bytes);

    if (!memory)
        return usage(err, "no memory for a manual page: %s", strerror(errno));
    command_overview(memory);
    fclose(memory);
    if (c)
        put_page(to, c, overview);
    else
        put_overview(to, overview);
    free(overview);
    return IRON_OK;
}

static iron_status write_page(const char *folder, const command *c, iron_error *err) {
    char path[PATH_ROOM];
    FILE *file;
    iron_status status;
    bool is_bad;

    snprintf(path, sizeof path, "%s/iron%s%s.1", folder, c ? "-" : "", c ? c->name : "");
    file = fopen(path, "w");
    if (!file)
        return usage(err, "cannot write '%.150s': %s", path, strerror(errno));
    status = put(file, c, err);
    is_bad = ferror(file) != 0;
    if ((fclose(file) != 0 || is_bad) && status == IRON_OK)
        return usage(err, "cannot write '%.150s': %s", path, strerror(errno));
    return status;
}

static iron_status write_all(const char *folder, iron_error *err) {
    iron_status status = write_page(folder, NULL, err);

    for (size_t k = 0; status == IRON_OK && command_at(k); k++)
        status = write_page(folder, command_at(k), err);
    return status;
}

/* As man(1) is asked: iron, iron-feed; or by the command's name alone. */
static iron_status print_page(const char *name, iron_error *err) {
    if (strcmp(name, "iron") == 0)
        return put(stdout, NULL, err);
    if (strncmp(name, "iron-", 5) == 0)
        name += 5;
    for (size_t k = 0; command_at(k); k++)
        if (strcmp(command_at(k)->name, name) == 0)
            return put(stdout, command_at(k), err);
    return usage(err, "no manual page for '%.60s'; iron --help lists the commands", name);
}

static iron_status run(int argc, char **argv, iron_error *err) {
    const char *folder = NULL;
    const option options[] = {{"output", OPTION_TEXT, &folder, NULL}};
    args a = {.options = options, .option_count = COUNT(options)};
    bool is_done;
    iron_status status = command_args(&command_man, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    if (a.value_count > (folder ? 0u : 1u))
        return usage(err, "man takes no argument '%.60s'; see iron man --help",
                     a.values[a.value_count - 1]);
    if (folder)
        return write_all(folder, err);
    return a.value_count ? print_page(a.values[0], err) : put(stdout, NULL, err);
}

const command command_man = {
    "man", "prints the source of a manual page",
    "usage: iron man [COMMAND] [-o DIR]\n\n"
    "Prints the source of iron(1), or of the page of a command, in the macros of man(7). An\n"
    "installed iron has them all: man iron, man iron-feed.\n\n"
    "  -o DIR   writes all pages into DIR instead: iron.1, iron-feed.1, ...\n\n"
    "example: iron man feed | man -l -\n",
    run};
