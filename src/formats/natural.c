/* SPDX-License-Identifier: MIT */
/* natural.c: see natural.h. Numbers may be of any length: they are compared as digit strings. */
#include "formats/natural.h"

#include <stddef.h>
#include <string.h>

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

/* Compares the numbers at *a and *b and moves both past them. */
static int compare_numbers(const char **a, const char **b) {
    size_t zeros_a = strspn(*a, "0"), zeros_b = strspn(*b, "0");
    size_t length_a = digits(*a + zeros_a), length_b = digits(*b + zeros_b);
    int order;

    if (length_a != length_b)
        order = length_a < length_b ? -1 : 1;
    else
        order = memcmp(*a + zeros_a, *b + zeros_b, length_a);
    *a += zeros_a + length_a;
    *b += zeros_b + length_b;
    return order;
}

int iron__natural_compare(const char *a, const char *b) {
    const char *x = a, *y = b;

    while (*x && *y) {
        if (digits(x) && digits(y)) {
            int order = compare_numbers(&x, &y);

            if (order)
                return order;
        } else {
            if (*x != *y)
                return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++;
            y++;
        }
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b); /* 01 and 1: some order, always the same */
}
