/* SPDX-License-Identifier: MIT */
/*
 * report_html.c: the report as one page that needs no network: web/report/, embedded when iron was
 * built, with the JSON document put where the page wants its data. All drawing is the page's.
 *
 * The document goes into a <script type="application/json">, which a browser reads up to the first
 * `</script`: the writer leaves no `<` in it, so no name and no reason can end it.
 */
#include "arena/report_words.h"

#include <string.h>

/* cmake/Embed.cmake makes it, and sees to it that the place for the data is there once. */
extern const char iron__report_page[];

static const char place[] = "{{data}}";

void iron__report_html(const iron__report *report, FILE *to) {
    const char *data = strstr(iron__report_page, place);
    iron__json_writer j = {.to = to, .is_in_html = true};

    if (!data) /* the build would have failed */
        return;
    fwrite(iron__report_page, 1, (size_t)(data - iron__report_page), to);
    iron__report_document(report, &j);
    fputs(data + sizeof place - 1, to);
}
