/* SPDX-License-Identifier: MIT */
/*
 * cmd_man.c: `iron man`: prints the manual pages iron(1) and iron-COMMAND(1) from the tables of
 * the commands, in the macros of man(7). The build runs it and installs the pages.
 *
 * Paragraphs are filled by troff, so that a page is as wide as the reader's terminal; examples
 * keep their lines.
 */
#include "command.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define PATH_ROOM 4096
#define TEXT_ROOM 1024

/* The names are those of command.environment; iron(1) lists all. */
static const struct variable {
    const char *name, *text;
} variables[] = {
    {"IRON_CACHE_DIR", "Folder for compiled kernels and calibrations; default: iron in "
                       "XDG_CACHE_HOME."},
    {"XDG_CACHE_HOME",
     "The user's cache folder; ignored unless absolute; default: .cache in HOME."},
    {"HOME", "The user's home folder; ignored unless absolute. If no folder is set, nothing is "
             "saved."},
    {"IRON_CUDA_LIBRARY", "Path of the CUDA driver; default: libcuda.so.1. A name that does not "
                          "exist, such as none, disables CUDA."},
    {"IRON_OPENCL_LIBRARY", "Path of the OpenCL loader; default: libOpenCL.so.1. A name that does "
                            "not exist disables OpenCL."},
    {"IRON_OPENCL_CACHE", "0: do not save kernels compiled by OpenCL."},
    {"IRON_NVML_LIBRARY",
     "Path of the library that reports clocks, energy and throttling of NVIDIA cards; "
     "default: libnvidia-ml.so.1."},
    {"IRON_NVRTC_LIBRARY",
     "Path of the library that compiles CUDA contenders where there is no nvcc; "
     "default: libnvrtc.so."},
    {"CC", "C compiler for contenders; default: cc."},
    {"NVCC", "CUDA compiler for contenders; default: /usr/local/cuda/bin/nvcc, or nvcc."},
    {"IRON_CURL_LIBRARY", "Path of libcurl, for remote files and iron push; default: "
                          "libcurl.so.4 or libcurl-gnutls.so.4."},
    {"AWS_ACCESS_KEY_ID", "With AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN: credentials for s3:// "
                          "addresses; default: those of AWS_PROFILE in ~/.aws, else none."},
    {"AWS_REGION", "Region of s3:// addresses; default: AWS_DEFAULT_REGION, the profile's, "
                   "us-east-1."},
    {"AWS_ENDPOINT_URL", "Server for s3:// addresses; AWS_ENDPOINT_URL_S3 comes first; default: "
                         "Amazon's."},
    {"SSL_CERT_FILE", "Certificates that https:// servers are checked with; default: the "
                      "system's."},
    {"SSL_CERT_DIR", "A folder of such certificates; default: the system's."},
    {"IRON_PEERS", "Folder of the plug-ins that race other libraries; none: race without them."},
    {"IRON_CEILING_MIB",
     "Working set in MiB with which ceilings are measured; default: at least four times the "
     "last-level cache. A small one takes no time, but its ceilings are those of the cache."},
    {"IRON_POWERCAP",
     "Folder of the processors' energy counters; default: /sys/class/powercap; none: energy is not "
     "measured."},
    {"TMPDIR", "Folder of temporary files; default: /tmp."},
    {"NO_COLOR", "If not empty, tables on a terminal have no colours."},
    {"LISTEN_FDS", "1: serve the socket in descriptor 3, if LISTEN_PID is this process."},
    {"LISTEN_PID", "The process that LISTEN_FDS is for."},
    {"NOTIFY_SOCKET", "Socket of the service manager that is told about readiness and state."},
    {"WATCHDOG_USEC", "Interval in microseconds within which the service manager must hear that "
                      "commits make progress."},
    {"WATCHDOG_PID", "The process that WATCHDOG_USEC is for; default: any."},
};

static void put_character(FILE *to, char c) {
    /* a bare - would become a hyphen, which cannot be pasted into a shell */
    static const char special[] = "\\-'`^~";
    static const char *const names[] = {"e", "-", "(aq", "(ga", "(ha", "(ti"};
    const char *at = strchr(special, c);

    if (at)
        fprintf(to, "\\%s", names[at - special]);
    else
        fputc(c, to);
}

static void put_text(FILE *to, const char *text, size_t length) {
    if (length > 0 && text[0] == '.') /* would be a request at the start of a line */
        fputs("\\&", to);
    for (size_t k = 0; k < length; k++)
        put_character(to, text[k]);
}

static void put_line(FILE *to, const char *text) {
    put_text(to, text, strlen(text));
    fputc('\n', to);
}

/* Lines; an empty one starts a new paragraph, or stays empty in text that is not filled. */
static void put_lines(FILE *to, const char *text, const char *paragraph) {
    while (*text) {
        size_t length = strcspn(text, "\n");

        put_text(to, text, length);
        fputs(length ? "\n" : paragraph, to);
        text += length + (text[length] == '\n');
    }
}

/* A synopsis or the term of an option: options bold, words in capitals italic. */
static void put_term(FILE *to, const char *term) {
    while (*term) {
        size_t length = 0, capitals = 0;
        char font = 'R';

        while (isalnum((unsigned char)term[length]) || term[length] == '-' || term[length] == '_')
            capitals += isupper((unsigned char)term[length++]) != 0;
        if (length == 0) {
            put_character(to, *term++);
            continue;
        }
        if (term[0] == '-' && length > 1)
            font = 'B';
        else if (capitals == length)
            font = 'I';
        if (font != 'R')
            fprintf(to, "\\f%c", font);
        put_text(to, term, length);
        if (font != 'R')
            fputs("\\fR", to);
        term += length;
    }
    fputc('\n', to);
}

/* Does a text mention `iron NAME`? */
static bool mentions(const char *text, const char *name) {
    char words[64];
    int length = snprintf(words, sizeof words, "iron %s", name);

    for (const char *at = text ? strstr(text, words) : NULL; at; at = strstr(at + 1, words))
        if (!isalpha((unsigned char)at[length]))
            return true;
    return false;
}

static bool refers_to(const command *c, const char *name) {
    for (const option_group *g = c->groups; g->options; g++)
        for (size_t k = 0; k < g->count; k++)
            if (mentions(g->options[k].help, name))
                return true;
    return mentions(c->description, name) || mentions(c->examples, name);
}

static void put_page(FILE *to, const command *c) {
    bool is_program = !c->name[0];
    const char *dash = is_program ? "" : "\\-";
    char text[TEXT_ROOM];

    fprintf(to, ".TH IRON%s", dash);
    for (const char *at = c->name; *at; at++)
        fputc(toupper((unsigned char)*at), to);
    fprintf(to, " 1 \"\" \"iron %s\" \"iron\"\n.SH NAME\niron%s%s \\- ", iron_version(), dash,
            c->name);
    put_line(to, c->summary);
    fprintf(to, ".SH SYNOPSIS\n.nh\niron %s%s", c->name, c->name[0] ? " " : "");
    put_term(to, c->synopsis);
    fputs(".hy\n.SH DESCRIPTION\n", to);
    put_lines(to, c->description, ".PP\n");
    if (c->command_count > 0)
        fputs(".SH COMMANDS\n", to);
    for (size_t k = 0; k < c->command_count; k++) {
        fprintf(to, ".TP\n%s\n", c->commands[k]->name);
        put_line(to, c->commands[k]->summary);
    }
    for (const option_group *g = c->groups; g->options; g++) {
        if (g == c->groups)
            fputs(".SH OPTIONS\n", to);
        if (g->heading) {
            fputs(".SS ", to);
            put_line(to, g->heading);
        }
        for (size_t k = 0; k < g->count; k++) {
            fputs(".TP\n", to);
            option_term(&g->options[k], text, sizeof text);
            put_term(to, text);
            option_text(&g->options[k], text, sizeof text);
            put_line(to, text);
        }
    }
    fputs(".SH EXIT STATUS\n", to);
    put_line(to, c->exit_status ? c->exit_status : USUAL_EXIT_STATUS);
    if (is_program || c->environment)
        fputs(".SH ENVIRONMENT\n", to);
    for (size_t k = 0; k < COUNT(variables); k++)
        if (is_program || (c->environment && has_word(c->environment, variables[k].name))) {
            fprintf(to, ".TP\n.B %s\n", variables[k].name);
            put_line(to, variables[k].text);
        }
    if (c->examples) {
        fputs(".SH EXAMPLES\n.nf\n", to);
        put_lines(to, c->examples, "\n");
        fputs(".fi\n", to);
    }
    /* all pages for iron(1), else those of the commands that the page mentions */
    fprintf(to, ".SH SEE ALSO\n%s", is_program ? "" : ".BR iron (1)");
    for (size_t k = 0; command_at(k); k++)
        if (is_program || (command_at(k) != c && refers_to(c, command_at(k)->name)))
            fprintf(to, "%s.BR iron\\-%s (1)", is_program && k == 0 ? "" : ",\n",
                    command_at(k)->name);
    fputc('\n', to);
}

static iron_status write_page(const char *folder, const command *c, iron_error *err) {
    char path[PATH_ROOM];
    bool has_failed;
    FILE *file;

    snprintf(path, sizeof path, "%s/iron%s%s.1", folder, c->name[0] ? "-" : "", c->name);
    file = fopen(path, "w");
    if (file)
        put_page(file, c);
    has_failed = !file || ferror(file) != 0;
    if ((file && fclose(file) != 0) || has_failed)
        return usage(err, "cannot write '%.150s': %s", path, strerror(errno));
    return IRON_OK;
}

typedef struct man_options {
    const char *folder;
} man_options;

static const option man_table[] = {
    OPTION("output", OPTION_TEXT, "DIR", man_options, folder,
           "write all pages into DIR instead: iron.1, iron-feed.1, ...", .letter = 'o'),
};

static iron_status run(void *options, args *a, iron_error *err) {
    man_options *o = options;
    const char *name = a->value_count > 0 ? a->values[0] : "iron";
    const command *page = &command_iron;
    iron_status status;

    if (a->value_count > (o->folder ? 0u : 1u))
        return usage(err, "man takes no argument '%.60s'; see iron man --help",
                     a->values[a->value_count - 1]);
    if (o->folder) {
        status = write_page(o->folder, &command_iron, err);
        for (size_t k = 0; status == IRON_OK && command_at(k); k++)
            status = write_page(o->folder, command_at(k), err);
        return status;
    }
    /* the name by which man(1) would find it, iron or iron-feed; or that of a command */
    if (strcmp(name, "iron") != 0)
        for (size_t k = 0; (page = command_at(k)); k++)
            if (strcmp(page->name, strncmp(name, "iron-", 5) == 0 ? name + 5 : name) == 0)
                break;
    if (!page)
        return usage(err, "no manual page for '%.60s'; iron --help lists the commands", name);
    put_page(stdout, page);
    return IRON_OK;
}

const command command_man = {
    .name = "man",
    .summary = "prints the source of a manual page",
    .synopsis = "[COMMAND] [-o DIR]",
    .description = "Prints the source of iron(1), or of the page of a command, in the macros of "
                   "man(7). An installed iron has all pages: man iron, man iron-feed.",
    .groups = {{NULL, man_table, COUNT(man_table), 0}},
    .examples = "iron man feed | man -l -",
    .options_bytes = sizeof(man_options),
    .run = run,
};
