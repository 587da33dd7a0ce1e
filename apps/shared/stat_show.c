/* SPDX-License-Identifier: MIT */
/* stat_show.c: see stat_show.h. */
#include "stat_show.h"

#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Into a list that is sorted and has room for `wanted`. */
static void offer_id(stat_findings *f, stat_id one, uint64_t wanted) {
    size_t at = f->top_count;

    if (at == wanted && (at == 0 || one.count <= f->top[at - 1].count))
        return;
    if (at < wanted)
        f->top_count++;
    else
        at--;
    for (; at > 0 && f->top[at - 1].count < one.count; at--)
        f->top[at] = f->top[at - 1];
    f->top[at] = one;
}

void stat_find_ids(stat_findings *f, const uint64_t *counts, uint64_t ids, uint64_t wanted) {
    for (uint64_t k = 0; k < ids; k++) {
        if (counts[k] > 0)
            offer_id(f, (stat_id){k, counts[k]}, wanted);
        else if (k > 0 && counts[k - 1] == 0 && f->ranges[f->range_count - 1].last == k - 1)
            f->ranges[f->range_count - 1].last = k;
        else if (f->range_count < RANGES_MAX)
            f->ranges[f->range_count++] = (stat_ids){k, k};
    }
}

/* Where in which file a position lies; false where a pipe's length hides it. */
static bool find_file(const iron_source *source, uint64_t position, size_t *file,
                      uint64_t *offset) {
    size_t files = iron_source_file_count(source);

    *offset = position;
    for (*file = 0; *file < files; (*file)++) {
        uint64_t tokens = iron_source_file_tokens(source, *file);

        *offset = position;
        if (tokens == IRON_COUNT_UNKNOWN)
            return *file + 1 == files;
        if (position < tokens)
            return true;
        position -= tokens;
    }
    return false;
}

static double share(uint64_t part, uint64_t all) {
    return all ? 100 * (double)part / (double)all : 0;
}

static void print_number(const char *name, uint64_t value) {
    printf("%-13s %" PRIu64 "\n", name, value);
}

static void print_places(const stat_findings *f) {
    const iron_stat_report *r = &f->report;

    printf("%-13s %" PRIu64 " of %" PRIu64 " tokens\n", "out of vocab", r->out_of_vocab, r->tokens);
    for (size_t k = 0; k < r->place_count; k++) {
        const iron_stat_place *p = &r->places[k];
        uint64_t offset;
        size_t file;

        printf("%-13s position %" PRIu64 ": %" PRIu32, "", p->position, p->value);
        if (find_file(f->source, p->position, &file, &offset))
            printf(", in %s at %" PRIu64, iron_source_file(f->source, file), offset);
        putchar('\n');
    }
    if (r->out_of_vocab > r->place_count)
        printf("%-13s ... and %" PRIu64 " more\n", "", r->out_of_vocab - r->place_count);
}

static void print_documents(const iron_stat_report *r) {
    printf("%-13s %" PRIu64 "%s\n", "documents", r->documents,
           r->is_last_open ? ", the last one open" : "");
    if (r->documents == 0)
        return;
    print_number("  shortest", r->document_min);
    print_number("  longest", r->document_max);
    printf("%-13s %.2f\n", "  mean", r->document_mean);
    print_number("  median", r->document_median);
    print_number("  p95", r->document_p95);
    print_number("  empty", r->empty_documents);
}

static void print_ranges(const stat_findings *f) {
    uint64_t shown = 0;

    if (f->range_count == 0)
        return;
    printf("%-13s ", "unused ids");
    for (size_t k = 0; k < f->range_count; k++) {
        const stat_ids *ids = &f->ranges[k];

        printf("%s%" PRIu64, k ? ", " : "", ids->first);
        if (ids->last > ids->first)
            printf("-%" PRIu64, ids->last);
        shown += ids->last - ids->first + 1;
    }
    if (shown < f->report.unused_ids)
        printf(", ... and %" PRIu64 " more", f->report.unused_ids - shown);
    putchar('\n');
}

static void print_histogram(const stat_findings *f) {
    const iron_stat_report *r = &f->report;
    double of_limit = r->entropy_limit_bits > 0 ? r->entropy_bits / r->entropy_limit_bits : 0;

    printf("%-13s %" PRIu64 " of %" PRIu64 ", %" PRIu64 " unused\n", "ids used", r->used_ids,
           f->vocab, r->unused_ids);
    printf("%-13s %.6f bits a token, %.2f %% of the %.6f that %" PRIu64 " ids can have\n",
           "entropy", r->entropy_bits, 100 * of_limit, r->entropy_limit_bits, f->vocab);
    for (size_t k = 0; k < f->top_count; k++)
        printf("%-13s %10" PRIu64 " %14" PRIu64 " times %7.3f %%\n", k ? "" : "most frequent",
               f->top[k].id, f->top[k].count, share(f->top[k].count, r->tokens));
    print_ranges(f);
}

void stat_show_text(const stat_findings *f) {
    const iron_stat_report *r = &f->report;

    for (size_t k = 0; iron_source_file_count(f->source) > 1; k++) {
        if (k == iron_source_file_count(f->source))
            break;
        printf("%-13s %s\n", k ? "" : "files", iron_source_file(f->source, k));
    }
    print_number("tokens", r->tokens);
    print_number("vocab", f->vocab);
    if (r->tokens > 0) {
        print_number("min", r->min);
        print_number("max", r->max);
    }
    printf("%-13s %" PRIu64 " (%.3f %%)\n", "zeros", r->zeros, share(r->zeros, r->tokens));
    print_places(f);
    if (r->tokens > 0)
        printf("%-13s %" PRIu64 " times %" PRIu32 " from position %" PRIu64 " on\n", "longest run",
               r->run_length, r->run_value, r->run_position);
    if (f->has_documents)
        print_documents(r);
    if (f->has_histogram)
        print_histogram(f);
    printf("%-13s %.6f s, %.3f GB/s\n", "time", f->seconds, f->rate);
    if (f->ranks > 0)
        print_number("ranks", f->ranks);
}

static void number_or_null(json *j, const char *name, bool is_there, uint64_t value) {
    if (is_there)
        json_number(j, name, value);
    else
        json_null(j, name);
}

static void json_places(json *j, const stat_findings *f) {
    json_open(j, "out_of_vocab_places", '[');
    for (size_t k = 0; k < f->report.place_count; k++) {
        const iron_stat_place *p = &f->report.places[k];
        uint64_t offset;
        size_t file;
        bool is_found = find_file(f->source, p->position, &file, &offset);

        json_open(j, NULL, '{');
        json_number(j, "position", p->position);
        json_number(j, "value", p->value);
        if (is_found)
            json_text(j, "file", iron_source_file(f->source, file));
        else
            json_null(j, "file");
        number_or_null(j, "offset", is_found, offset);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_run(json *j, const iron_stat_report *r) {
    if (r->run_length == 0) {
        json_null(j, "longest_run");
        return;
    }
    json_open(j, "longest_run", '{');
    json_number(j, "length", r->run_length);
    json_number(j, "position", r->run_position);
    json_number(j, "value", r->run_value);
    json_close(j, '}');
}

static void json_documents(json *j, const iron_stat_report *r) {
    bool has_some = r->documents > 0;

    json_open(j, "documents", '{');
    json_number(j, "count", r->documents);
    number_or_null(j, "min", has_some, r->document_min);
    number_or_null(j, "max", has_some, r->document_max);
    if (has_some)
        json_real(j, "mean", "%.17g", r->document_mean);
    else
        json_null(j, "mean");
    number_or_null(j, "median", has_some, r->document_median);
    number_or_null(j, "p95", has_some, r->document_p95);
    json_number(j, "empty", r->empty_documents);
    json_bool(j, "last_open", r->is_last_open);
    json_close(j, '}');
}

static void json_histogram(json *j, const stat_findings *f) {
    json_open(j, "histogram", '{');
    json_number(j, "used", f->report.used_ids);
    json_number(j, "unused", f->report.unused_ids);
    json_real(j, "entropy_bits", "%.17g", f->report.entropy_bits);
    json_open(j, "top", '[');
    for (size_t k = 0; k < f->top_count; k++) {
        json_open(j, NULL, '{');
        json_number(j, "id", f->top[k].id);
        json_number(j, "count", f->top[k].count);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "unused_ids", '[');
    for (size_t k = 0; k < f->range_count; k++) {
        json_open(j, NULL, '[');
        json_number(j, NULL, f->ranges[k].first);
        json_number(j, NULL, f->ranges[k].last);
        json_close(j, ']');
    }
    json_close(j, ']');
    json_close(j, '}');
}

void stat_show_json(const stat_findings *f) {
    const iron_stat_report *r = &f->report;
    json j = {0};

    json_open(&j, NULL, '{');
    json_number(&j, "tokens", r->tokens);
    number_or_null(&j, "min", r->tokens > 0, r->min);
    number_or_null(&j, "max", r->tokens > 0, r->max);
    json_number(&j, "zeros", r->zeros);
    json_number(&j, "vocab", f->vocab);
    json_number(&j, "out_of_vocab", r->out_of_vocab);
    json_places(&j, f);
    json_run(&j, r);
    if (f->has_documents)
        json_documents(&j, r);
    if (f->has_histogram)
        json_histogram(&j, f);
    json_open(&j, "files", '[');
    for (size_t k = 0; k < iron_source_file_count(f->source); k++)
        json_text(&j, NULL, iron_source_file(f->source, k));
    json_close(&j, ']');
    json_real(&j, "seconds", "%.6f", f->seconds);
    json_real(&j, "gb_per_s", "%.6f", f->rate);
    if (f->ranks > 0)
        json_number(&j, "ranks", f->ranks);
    json_close(&j, '}');
    json_end(&j);
}
