/* SPDX-License-Identifier: MIT */
/*
 * roff.h: parts of a help text as the source of a manual page, in the macros of man(7).
 */
#ifndef APPS_IRON_ROFF_H
#define APPS_IRON_ROFF_H

#include "help_text.h"

#include <stdio.h>

/* A line of text, with whatever troff would take for a request or an escape made plain. */
void roff_line(FILE *to, span text);

/* A term or a synopsis: options bold, what stands for a value in italics. */
void roff_term(FILE *to, span term);

/* All lines of a section, under a heading. Are there any? */
bool roff_section(FILE *to, const char *help, help_section section, const char *heading);

#endif
