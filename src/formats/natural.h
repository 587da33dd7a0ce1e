/* SPDX-License-Identifier: MIT */
/* natural.h: the order in which people number files: part-2 before part-10. */
#ifndef IRON_FORMATS_NATURAL_H
#define IRON_FORMATS_NATURAL_H

/* Like strcmp, but runs of digits compare as numbers. A total order: equal only if identical. */
int iron__natural_compare(const char *a, const char *b);

#endif
