/* SPDX-License-Identifier: MIT */
/* arena_show.h: what `iron arena` shows without a race: lists, plans, explanations. */
#ifndef APPS_IRON_ARENA_SHOW_H
#define APPS_IRON_ARENA_SHOW_H

#include <iron/iron_arena.h>

/* Each contender once with its idea; then the ops' sizes and parameters. */
void arena_show_list(const iron_arena *a);

/* Every row: over what it would race, or why not. */
void arena_show_plan(const iron_arena *a);

/* All there is to say of the ops that the glob chooses; IRON_E_ARG if there is none. */
iron_status arena_explain(const char *glob, iron_error *err);

#endif
