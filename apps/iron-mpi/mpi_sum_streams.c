/* SPDX-License-Identifier: MIT */
/*
 * mpi_sum_streams.c: which streams there are. Every rank opens every file once, which tells its
 * length, so that all know who reads what without a word.
 */
#include "mpi_sum.h"

#include "sum_show.h"

#include <stdlib.h>
#include <string.h>

static iron_status no_memory(iron_error *err, size_t count) {
    usage(err, "out of memory for a list of %zu files", count);
    return err->status = IRON_E_NOMEM;
}

/* Takes the name. */
static iron_status append(sum_streams *s, char *name, const iron_source *source, iron_error *err) {
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        sum_stream *list = realloc(s->list, room * sizeof *list);

        if (!list) {
            free(name);
            return no_memory(err, room);
        }
        s->list = list;
        s->room = room;
    }
    s->list[s->count++] = (sum_stream){name, iron_source_dtype(source), iron_source_tokens(source)};
    return IRON_OK;
}

static iron_status add_file(sum_streams *s, const reading *r, const char *path, rank_view *view,
                            iron_error *err) {
    iron_source *source = NULL;
    char *name = strdup(path);
    iron_status status =
        name ? reading_open(r, &path, 1, &source, err) : no_memory(err, s->count + 1);

    if (status == IRON_OK)
        status = rank_view_add(view, source, err);
    if (status == IRON_OK)
        status = append(s, name, source, err);
    else
        free(name);
    iron_source_close(source);
    return status;
}

static iron_status add_argument(sum_streams *s, const reading *r, const char *path, rank_view *view,
                                iron_error *err) {
    iron_file_names *names = NULL;
    iron_status status = iron_file_names_list(path, &names, err);

    for (size_t k = 0; status == IRON_OK && k < iron_file_names_count(names); k++)
        status = add_file(s, r, iron_file_names_at(names, k), view, err);
    iron_file_names_destroy(names);
    return status;
}

static iron_status open_as_one(sum_streams *s, const reading *r, const args *a, rank_view *view,
                               iron_error *err) {
    const char *const *paths = (const char *const *)a->values;
    char *name;
    iron_status status = reading_open(r, paths, a->value_count, &s->source, err);

    if (status == IRON_OK)
        status = rank_view_add(view, s->source, err);
    if (status != IRON_OK)
        return status;
    name = sum_join_names(paths, a->value_count, err);
    return name ? append(s, name, s->source, err) : IRON_E_NOMEM;
}

iron_status sum_streams_open(sum_streams *s, const reading *r, const args *a, bool as_one,
                             rank_view *view, iron_error *err) {
    iron_status status = IRON_OK;

    *s = (sum_streams){0};
    if (a->value_count == 0)
        return usage(err, "no input; name files");
    if (as_one)
        return open_as_one(s, r, a, view, err);
    for (size_t k = 0; k < a->value_count && status == IRON_OK; k++)
        status = add_argument(s, r, a->values[k], view, err);
    return status;
}

void sum_streams_close(sum_streams *s) {
    for (size_t k = 0; k < s->count; k++)
        free(s->list[k].name);
    free(s->list);
    iron_source_close(s->source);
}
