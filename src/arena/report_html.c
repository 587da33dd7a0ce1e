/* SPDX-License-Identifier: MIT */
/*
 * report_html.c: the report as one page that needs no network: web/report/, embedded when iron was
 * built, with the JSON document put where the page wants its data, and beside it, as another
 * document, what there is to say of the ops. All drawing is the page's.
 *
 * The documents go into <script type="application/json">, which a browser reads up to the first
 * `</script`: the writer leaves no `<` in them, so no name and no reason can end one.
 */
#include "arena/notes.h"
#include "arena/report_words.h"

#include <string.h>

/* cmake/Embed.cmake makes it, and sees to it that each place is there once, in this order. */
extern const char iron__report_page[];

static const char place_of_data[] = "{{data}}", place_of_ops[] = "{{ops}}";

static void put_notes(iron__json_writer *j, const iron__op *op) {
    iron__json_write_open(j, "notes", '[');
    for (iron_note note = 0; iron_arena_note_title(note); note++) {
        if (!iron__op_note(op, note))
            continue;
        iron__json_write_open(j, NULL, '{');
        iron__json_write_text(j, "title", iron_arena_note_title(note));
        iron__json_write_text(j, "text", iron__op_note(op, note));
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, ']');
}

static void put_axes(iron__json_writer *j, const iron__op *op) {
    iron_arena_axis axis = {.struct_size = sizeof axis};

    iron__json_write_open(j, "axes", '[');
    for (size_t k = 0; iron__op_axis_at(op, k, &axis); k++) {
        iron__json_write_open(j, NULL, '{');
        iron__json_write_text(j, "name", axis.name);
        iron__json_write_text(j, "about", axis.about);
        iron__json_write_text(j, "values", axis.values);
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, ']');
}

static void put_contenders(iron__json_writer *j, const iron__op *op) {
    iron_arena_contender row = {.struct_size = sizeof row};

    iron__json_write_open(j, "contenders", '[');
    for (size_t k = 0; iron__op_contender_at(op, k, &row); k++) {
        iron__json_write_open(j, NULL, '{');
        iron__json_write_text(j, "name", row.name);
        iron__json_write_text(j, "backends", row.backends);
        iron__json_write_text(j, "idea", row.idea);
        iron__json_write_text(j, "beats", row.beats);
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, ']');
}

static void put_ops(iron__json_writer *j, const iron__report *report) {
    iron__json_write_open(j, NULL, '[');
    for (size_t k = 0; k < report->op_count; k++) {
        iron__json_write_open(j, NULL, '{');
        iron__json_write_text(j, "op", report->ops[k]->name);
        put_notes(j, report->ops[k]);
        put_axes(j, report->ops[k]);
        put_contenders(j, report->ops[k]);
        iron__json_write_close(j, '}');
    }
    iron__json_write_close(j, ']');
}

void iron__report_html(const iron__report *report, FILE *to) {
    const char *data = strstr(iron__report_page, place_of_data);
    const char *ops = data ? strstr(data, place_of_ops) : NULL, *between;
    iron__json_writer j = {.to = to, .is_in_html = true};

    if (!ops) /* the build would have failed */
        return;
    fwrite(iron__report_page, 1, (size_t)(data - iron__report_page), to);
    iron__report_document(report, &j);
    between = data + sizeof place_of_data - 1;
    fwrite(between, 1, (size_t)(ops - between), to);
    j = (iron__json_writer){.to = to, .is_in_html = true};
    put_ops(&j, report);
    fputs(ops + sizeof place_of_ops - 1, to);
}
