/* SPDX-License-Identifier: MIT */
/* seal_list.c: see seal_list.h. */
#include "seal_list.h"

#include <ctype.h>
#include <string.h>

/* Undoes \\, \n and \r in place; false: another character follows a backslash, or none. */
static bool unescape(char *name) {
    char *to = name;

    for (const char *at = name; *at; at++) {
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        at++;
        if (*at != '\\' && *at != 'n' && *at != 'r')
            return false;
        *to++ = *at == 'n' ? '\n' : *at == 'r' ? '\r' : '\\';
    }
    *to = '\0';
    return true;
}

static bool take_seal(const char *line, char seal[SEAL_DIGITS + 1]) {
    for (size_t k = 0; k < SEAL_DIGITS; k++) {
        if (!isxdigit((unsigned char)line[k]))
            return false;
        seal[k] = (char)tolower((unsigned char)line[k]);
    }
    seal[SEAL_DIGITS] = '\0';
    return true;
}

seal_line_kind seal_line_read(char *line, size_t length, seal_line *out) {
    bool is_escaped;

    length -= length > 0 && line[length - 1] == '\n';
    length -= length > 0 && line[length - 1] == '\r';
    line[length] = '\0';
    if (length == 0 || line[0] == '#')
        return SEAL_LINE_NOTHING;
    is_escaped = line[0] == '\\';
    if (is_escaped) {
        line++;
        length--;
    }
    if (length < SEAL_DIGITS + 3 || strlen(line) != length || !take_seal(line, out->seal))
        return SEAL_LINE_BAD;
    line += SEAL_DIGITS;
    if (line[0] != ' ' || (line[1] != ' ' && line[1] != '*'))
        return SEAL_LINE_BAD;
    out->name = line + 2;
    return is_escaped && !unescape(line + 2) ? SEAL_LINE_BAD : SEAL_LINE_GOOD;
}

static bool needs_escape(const char *name) { return strpbrk(name, "\\\n\r"); }

static void print_escaped(const char *name) {
    for (; *name; name++) {
        if (*name == '\\' || *name == '\n' || *name == '\r')
            putchar('\\');
        putchar(*name == '\n' ? 'n' : *name == '\r' ? 'r' : *name);
    }
}

void seal_name_print(const char *name) {
    if (!needs_escape(name)) {
        fputs(name, stdout);
        return;
    }
    putchar('\\');
    print_escaped(name);
}

void seal_line_print(const char *seal, const char *name) {
    if (needs_escape(name))
        putchar('\\');
    printf("%s  ", seal);
    print_escaped(name);
    putchar('\n');
}
