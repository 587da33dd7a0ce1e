/* SPDX-License-Identifier: MIT */
/*
 * completion.h: the scripts that make a shell complete `iron`: commands with what each does, their
 * options, the values that the help lists, and files for everything else.
 */
#ifndef APPS_IRON_COMPLETION_H
#define APPS_IRON_COMPLETION_H

#include <stdio.h>

void completion_bash(FILE *to);
void completion_zsh(FILE *to);
void completion_fish(FILE *to);

#endif
