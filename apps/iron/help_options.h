/* SPDX-License-Identifier: MIT */
/*
 * help_options.h: the options that a help text speaks of, for completion: those of the usage line
 * and those of the items, each once.
 *
 * What an option's value may be is taken from the text where it lists that, in one of the ways that
 * the texts have: "--log text|json"; "u8, u16 or u32: ..."; "On the CPU: scalar vector ...";
 * "stream: ...; batch: ...". Everything else may be a file.
 */
#ifndef APPS_IRON_HELP_OPTIONS_H
#define APPS_IRON_HELP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define CHOICES_ROOM 256u

typedef struct help_option {
    char name[32];              /* with its dashes */
    char value[32];             /* what the text calls it, "FILE"; empty: a flag */
    char choices[CHOICES_ROOM]; /* words with a blank after each; empty: anything */
    char summary[160];          /* the first clause of what is said of it */
} help_option;

typedef struct help_options {
    help_option list[48];
    size_t count;
    char choices[CHOICES_ROOM]; /* of the argument, where the usage lists them */
} help_options;

void help_options_collect(help_options *options, const char *help);

#endif
