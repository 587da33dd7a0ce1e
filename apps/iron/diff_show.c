/* SPDX-License-Identifier: MIT */
/* diff_show.c: see diff_show.h. Of many ranges the text shows the first ten, the JSON all. */
#include "diff_show.h"

#include "json.h"

#include <inttypes.h>
#include <stdio.h>

#define RANGES_SHOWN 10u

static const char *kind_name(iron_diff_kind kind) {
    switch (kind) {
    case IRON_DIFF_SAME:
        return "same";
    case IRON_DIFF_CHANGED:
        return "changed";
    case IRON_DIFF_CUT:
        return "cut";
    case IRON_DIFF_EXTENDED:
        return "extended";
    case IRON_DIFF_INSERTED:
        return "inserted";
    case IRON_DIFF_DELETED:
        return "deleted";
    case IRON_DIFF_REORDERED:
        return "reordered";
    case IRON_DIFF_REPEATED:
        return "repeated";
    }
    return "unknown";
}

/* The seal, where somebody has worked it out already. */
static void print_seal(const diff_input inputs[2]) {
    iron_digest_result result = {.struct_size = sizeof result};

    for (int side = 0; side < 2; side++)
        if (inputs[side].manifest &&
            iron_manifest_digest(inputs[side].manifest, &result, NULL) == IRON_OK) {
            printf(", seal %s", result.seal);
            return;
        }
}

static void print_value(const iron_diff_report *r, int side) {
    if (r->has_value[side])
        printf("%" PRIu32, r->value[side]);
    else
        fputs(r->first < r->tokens[side] ? "not known" : "the end", stdout);
}

static void print_first(const iron_diff_report *r) {
    if (r->first_end - r->first > 1) {
        printf("first difference in positions %" PRIu64 " to %" PRIu64
               ": only the files could tell where\n",
               r->first, r->first_end - 1);
        return;
    }
    printf("first difference at position %" PRIu64 ": ", r->first);
    print_value(r, 0);
    fputs(" | ", stdout);
    print_value(r, 1);
    putchar('\n');
}

static void print_places(const iron_diff_report *r, const diff_input inputs[2]) {
    for (int side = 0; side < 2; side++) {
        uint64_t token = 0;
        const char *file =
            r->first < r->tokens[side] ? diff_input_place(&inputs[side], r->first, &token) : NULL;

        printf("  %s ", side ? "B" : "A");
        if (file)
            printf("%s, %stoken %" PRIu64 "\n", file, r->first_end - r->first > 1 ? "from " : "",
                   token);
        else if (r->first < r->tokens[side])
            printf("%s\n", inputs[side].path);
        else
            printf("%s has ended: %" PRIu64 " tokens\n", inputs[side].path, r->tokens[side]);
    }
}

static void print_ranges(const iron_diff *d, const iron_diff_report *r) {
    uint64_t first, end;

    printf("%" PRIu64 " of %" PRIu64 " chunks of %" PRIu64 " tokens differ: positions ",
           r->differing_chunks, r->chunks, r->chunk_tokens);
    for (size_t k = 0; k < RANGES_SHOWN && iron_diff_range(d, k, &first, &end) == 0; k++)
        printf("%s%" PRIu64 "-%" PRIu64, k ? ", " : "", first, end - 1);
    if (r->range_count > RANGES_SHOWN)
        printf(" and %zu more", r->range_count - RANGES_SHOWN);
    putchar('\n');
}

void diff_print_text(const iron_diff *d, const iron_diff_report *r, const diff_input inputs[2]) {
    if (r->kind == IRON_DIFF_SAME) {
        printf("same: %" PRIu64 " tokens", r->tokens[0]);
        print_seal(inputs);
        putchar('\n');
        return;
    }
    print_first(r);
    print_places(r, inputs);
    print_ranges(d, r);
    printf("%s: %s\n", kind_name(r->kind), r->text);
}

static void json_first(json *j, const iron_diff_report *r) {
    if (r->first == IRON_COUNT_UNKNOWN) {
        json_null(j, "first_difference");
        return;
    }
    json_open(j, "first_difference", '{');
    json_number(j, "position", r->first);
    json_number(j, "end", r->first_end);
    json_open(j, "values", '[');
    for (int side = 0; side < 2; side++) {
        if (r->has_value[side])
            json_number(j, NULL, r->value[side]);
        else
            json_null(j, NULL);
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void json_ranges(json *j, const iron_diff *d) {
    uint64_t first, end;

    json_open(j, "ranges", '[');
    for (size_t k = 0; iron_diff_range(d, k, &first, &end) == 0; k++) {
        json_open(j, NULL, '[');
        json_number(j, NULL, first);
        json_number(j, NULL, end);
        json_close(j, ']');
    }
    json_close(j, ']');
}

void diff_print_json(const iron_diff *d, const iron_diff_report *r) {
    json j = {0};

    json_open(&j, NULL, '{');
    json_bool(&j, "same", r->kind == IRON_DIFF_SAME);
    json_text(&j, "kind", kind_name(r->kind));
    json_open(&j, "tokens", '[');
    json_number(&j, NULL, r->tokens[0]);
    json_number(&j, NULL, r->tokens[1]);
    json_close(&j, ']');
    json_first(&j, r);
    json_number(&j, "chunk_tokens", r->chunk_tokens);
    json_number(&j, "chunks", r->chunks);
    json_number(&j, "differing_chunks", r->differing_chunks);
    json_ranges(&j, d);
    json_number(&j, "shift", r->shift);
    json_number(&j, "shift_at", r->shift_at);
    json_number(&j, "moved", r->moved);
    json_bool(&j, "verified", r->is_verified);
    json_text(&j, "text", r->text);
    json_close(&j, '}');
    json_end(&j);
}
