/* SPDX-License-Identifier: MIT */
/* diff_show.h: what `iron diff` prints of a comparison, as text and as JSON. */
#ifndef APPS_IRON_DIFF_SHOW_H
#define APPS_IRON_DIFF_SHOW_H

#include "diff_open.h"

void diff_print_text(const iron_diff *d, const iron_diff_report *r, const diff_input inputs[2]);
void diff_print_json(const iron_diff *d, const iron_diff_report *r);

#endif
