/* SPDX-License-Identifier: MIT */
/*
 * mpi_scan.c: `iron-mpi sum` and `iron-mpi stat`: every rank reads a part, and the results are
 * merged.
 *
 * sum: every rank opens every file once to learn its length, so that all ranks know which one
 * reads what without a message. Each stream has an iron_digest_result on every rank for what that
 * rank has read, and one reduction at the end adds them up. All ranks read a large file, one part
 * each. Small files are dealt out whole, because opening a file for a few tokens costs more than
 * reading them.
 *
 * stat: the statistics of neighbouring parts are appended in rank order.
 */
#include "ranks.h"
#include "reading.h"

#include <stdlib.h>
#include <string.h>

/* A file with fewer tokens per rank is read by one rank. */
#define SHARE_TOKENS (UINT64_C(1) << 20)

typedef struct sum_options {
    reading reading;
    uint64_t vocab;
    bag_options bag;
    bool wants_stream, wants_json;
} sum_options;

static const option sum_table[] = {
    OPTION("stream", OPTION_FLAG, NULL, sum_options, wants_stream,
           "treat all files as one stream with one seal"),
    OPTION("bag", OPTION_FLAG, NULL, sum_options, bag.wants_bag,
           "print bags, which do not depend on the order of samples, instead of seals; JSON has "
           "both"),
    BAG_CUT_OPTIONS(sum_options, "with --bag: "),
    OPTION("vocab", OPTION_NUMBER, "V", sum_options, vocab, "count tokens at or above V", .min = 1,
           .max = UINT64_C(1) << 32, .standard = "50257"),
    OPTION("json", OPTION_FLAG, NULL, sum_options, wants_json,
           "print one JSON document: an array with one object per line"),
};

/* One file, or all files. */
typedef struct sum_stream {
    char *name; /* owned; the path of a file */
    iron_dtype dtype;
    uint64_t tokens;
    iron_bag_cut cut; /* NONE: no bag is wanted */
} sum_stream;

typedef struct sum_work {
    const ranks *ranks;
    const sum_options *options;
    iron_source *source; /* all files as one stream; NULL: every file is a stream */
    size_t count, room;
    sum_stream *list;
    bool is_checkable;           /* by iron check: not several arguments as one stream */
    iron_bag_cut cut;            /* that is wanted; of each stream, what it means */
    iron_digest_result *results; /* one per stream, like the others */
    iron_bag *bags;
    double *seconds;
    progress progress;
} sum_work;

static iron_status no_memory(iron_error *err, size_t count) {
    usage(err, "out of memory for a list of %zu files", count);
    return err->status = IRON_E_NOMEM;
}

/* Takes ownership of the name. */
static iron_status append(sum_work *s, char *name, const iron_source *source, iron_error *err) {
    iron_bag_cut cut = s->cut;

    if (cut.kind != IRON_BAG_CUT_NONE && iron_bag_cut_resolve(source, &cut, err) != IRON_OK) {
        free(name);
        return err->status;
    }
    s->list = list_grow(s->list, s->count, &s->room, sizeof *s->list);
    if (s->count == s->room) {
        free(name);
        return no_memory(err, s->count + 1);
    }
    s->list[s->count++] =
        (sum_stream){name, iron_source_dtype(source), iron_source_tokens(source), cut};
    return IRON_OK;
}

/* Lists the streams and notes them. */
static iron_status open_streams(sum_work *s, const args *a, iron_error *err) {
    const sum_options *o = s->options;
    const char *const *paths = (const char *const *)a->values;
    iron_input_files *files = NULL;
    iron_status status = IRON_OK;
    char *name;

    s->is_checkable = !o->wants_stream || a->value_count == 1;
    s->cut = bag_cut_of(&o->bag);
    if (a->value_count == 0)
        return usage(err, "no input; name files");
    if (o->wants_stream) {
        IRON_TRY(reading_open(&o->reading, paths, a->value_count, &s->source, err));
        IRON_TRY(ranks_note_files(ranks_here(), s->source, err));
        name = join_names(paths, a->value_count, err);
        return name ? append(s, name, s->source, err) : IRON_E_NOMEM;
    }
    for (size_t k = 0; k < a->value_count && status == IRON_OK; k++) {
        status = reading_list(&o->reading, paths[k], &files, err);
        for (size_t n = 0; status == IRON_OK && n < iron_input_files_count(files); n++) {
            const char *path = iron_input_files_at(files, n);
            iron_source *source = NULL;

            if ((status = reading_open(&o->reading, &path, 1, &source, err)) == IRON_OK &&
                (status = ranks_note_files(ranks_here(), source, err)) == IRON_OK)
                status = (name = strdup(path)) ? append(s, name, source, err)
                                               : no_memory(err, s->count + 1);
            iron_source_close(source);
        }
        iron_input_files_destroy(files);
    }
    return status;
}

static iron_digest_result empty_result(uint64_t vocab) {
    return (iron_digest_result){.struct_size = sizeof(iron_digest_result),
                                .seal_version = IRON_SEAL_VERSION,
                                .vocab = vocab,
                                .first_out_position = IRON_COUNT_UNKNOWN,
                                .min = UINT32_MAX};
}

static iron_status scan(sum_work *w, size_t index, iron_source *source, iron_scan_options *o,
                        iron_error *err) {
    iron_bag_result bag = {.struct_size = sizeof bag};
    iron_manifest *m = NULL;
    iron_status status;

    if (!o->backend)
        o->backend = "cpu"; /* all ranks of a machine would share one GPU */
    o->vocab = w->options->vocab;
    o->bag = w->list[index].cut;
    if (iron_source_tokens(source) != w->list[index].tokens)
        return usage(err, "%.120s changed while it was read", w->list[index].name);
    if ((status = iron_scan(source, o, &m, err)) == IRON_OK &&
        (status = iron_manifest_digest(m, &w->results[index], err)) == IRON_OK)
        status = iron_manifest_bag(m, &bag, err);
    w->bags[index] = bag.bag;
    iron_manifest_destroy(m);
    return status;
}

static iron_status scan_stream(sum_work *w, size_t index, iron_error *err) {
    const sum_stream *stream = &w->list[index];
    uint64_t rank = (uint64_t)w->ranks->rank, all = (uint64_t)w->ranks->count;
    bool is_dealt = index % all == rank; /* if one rank reads the stream, it is this one */
    iron_source *source = w->source;
    reading again = w->options->reading;
    double started = seconds_now();
    iron_scan_options o = reading_scan_options(&again, &w->progress);
    iron_status status = IRON_OK;
    bool is_mine;

    again.is_quiet = true; /* open_streams has warned */
    w->results[index] = empty_result(w->options->vocab);
    o.count = is_dealt ? stream->tokens : 0;
    if (w->count == 1 || stream->tokens / all >= SHARE_TOKENS)
        status = iron_part_range(stream->tokens, (uint32_t)rank + 1, (uint32_t)all, &o.first,
                                 &o.count, err);
    /* one rank has the samples of a stream without tokens, which may be empty documents */
    is_mine =
        o.count > 0 || (stream->cut.kind != IRON_BAG_CUT_NONE && stream->tokens == 0 && is_dealt);
    if (status == IRON_OK && is_mine && !source)
        status = reading_open(&again, (const char *const *)&stream->name, 1, &source, err);
    if (status == IRON_OK && is_mine)
        status = scan(w, index, source, &o, err);
    if (source != w->source)
        iron_source_close(source);
    w->seconds[index] = seconds_now() - started;
    return status;
}

static iron_status run_sum(void *options, args *a, iron_error *err) {
    sum_options *o = options;
    const ranks *r = ranks_here();
    sum_work w = {.ranks = r, .options = o};
    sum_printer to = {.is_json = o->wants_json};
    seal_line comment;
    const iron_digest_result none = empty_result(o->vocab);
    iron_status status = reading_check(&o->reading, err);

    o->reading.wants_seekable = true;
    if (status == IRON_OK && (status = bag_check(&o->bag, err)) == IRON_OK)
        status = open_streams(&w, a, err);
    if ((status = ranks_work_on_same(r, status, err)) != IRON_OK)
        goto done;
    w.results = calloc(w.count + 1, sizeof *w.results);
    w.seconds = calloc(w.count + 1, sizeof *w.seconds);
    w.bags = calloc(w.count + 1, sizeof *w.bags);
    w.progress = progress_start(0);
    w.progress.is_shown = w.progress.is_shown && r->rank == 0;
    if (!w.results || !w.seconds || !w.bags)
        status = usage(err, "out of memory for %zu results", w.count);
    for (size_t k = 0; k < w.count && status == IRON_OK; k++)
        status = scan_stream(&w, k, err);
    progress_clear(&w.progress);
    if ((status = ranks_agree(r, status, err)) != IRON_OK)
        goto done;
    status = ranks_add_results(r, w.results, w.count, err);
    ranks_largest(w.seconds, w.count);
    ranks_add(&w.bags[0].hi, 3 * w.count);
    /* adding an empty result computes the seal, also where no rank had a part */
    for (size_t k = 0; k < w.count && status == IRON_OK; k++)
        status = iron_digest_result_add(&w.results[k], &none, err);
    if ((status = ranks_agree(r, status, err)) != IRON_OK || r->rank > 0)
        goto done;
    for (size_t k = 0; k < w.count && status == IRON_OK; k++) {
        const sum_stream *s = &w.list[k];
        iron_bag_result bag = {.struct_size = sizeof bag, .bag = w.bags[k], .cut = s->cut};
        sum_result result = {.name = s->name,
                             .bag = &bag,
                             .wants_bag = o->bag.wants_bag,
                             .digest = &w.results[k],
                             .dtype = s->dtype,
                             .source = w.source,
                             .is_stream = o->wants_stream,
                             .seconds = w.seconds[k],
                             .ranks = (uint64_t)r->count};

        iron_bag_format(&bag.bag, bag.text);
        iron_bag_cut_format(&bag.cut, bag.cut_text);
        status = sum_print(&to, &result, err);
    }
    comment = reading_comment(&o->reading, o->wants_stream);
    if (w.is_checkable)
        sum_print_options(&to, &comment, o->bag.wants_bag ? &w.cut : NULL);
    sum_print_end(&to);
done:
    free(w.results);
    free(w.seconds);
    free(w.bags);
    for (size_t k = 0; k < w.count; k++)
        free(w.list[k].name);
    free(w.list);
    iron_source_close(w.source);
    return status;
}

const command mpi_command_sum = {
    .name = "sum",
    .summary = "prints seals of token files",
    .synopsis = "FILE... [OPTIONS]",
    .description =
        "Prints what iron sum prints: <seal>  <file> for each file, or <bag>  <file> with --bag; a "
        "directory stands for its files. In contrast to iron sum, a file that cannot be read is an "
        "error, and nothing is printed. To write manifests in parallel, use iron sum --part and "
        "iron merge. Each rank uses the CPU unless --backend is given.",
    .groups = {{NULL, sum_table, COUNT(sum_table), 0}, READING_GROUP(sum_options, reading)},
    .examples = "mpirun -n 16 iron-mpi sum shards/ --dtype u16 --stream",
    .options_bytes = sizeof(sum_options),
    .defaults = &(const sum_options){.vocab = 50257},
    .run = run_sum,
};

static iron_status run_stat(void *options, args *a, iron_error *err) {
    stat_options *o = options;
    ranks *r = ranks_here();
    iron_source *source = NULL;
    iron_stat *stat = NULL;
    iron_stat_options scan;
    double started;
    iron_status status;
    progress p;

    o->reading.wants_seekable = true;
    if ((status = stat_source_open(o, a, &source, err)) == IRON_OK)
        status = ranks_note_files(r, source, err);
    status = ranks_work_on_same(r, status, err);
    if (status != IRON_OK)
        goto done;
    p = progress_start(iron_dtype_bytes(iron_source_dtype(source)));
    p.is_shown = p.is_shown && r->rank == 0;
    scan = stat_scan_options(o);
    scan.progress = progress_update;
    scan.context = &p;
    started = seconds_now();
    status = iron_part_range(iron_source_tokens(source), (uint32_t)r->rank + 1, (uint32_t)r->count,
                             &scan.first, &scan.count, err);
    /* rank 0 always has statistics: those of the other ranks are appended to them */
    if (status == IRON_OK && (scan.count > 0 || r->rank == 0))
        status = iron_stat_source(source, &scan, &stat, err);
    status = ranks_agree(r, status, err);
    if (status == IRON_OK)
        status = ranks_append_stats(r, &stat, err);
    progress_clear(&p);
    if (status == IRON_OK && r->rank == 0)
        status = stat_print(o, stat, source, seconds_now() - started, (uint64_t)r->count, err);
done:
    iron_stat_destroy(stat);
    iron_source_close(source);
    return status;
}

const command mpi_command_stat = {
    .name = "stat",
    .summary = "prints statistics of a token stream",
    .synopsis = "FILE... --vocab V [OPTIONS]",
    .description = "Prints what iron stat prints, with the same options and the same numbers. "
                   "Every rank reads its own part of the stream; rank 0 prints. " STAT_CPU_ONLY,
    .groups = {STAT_GROUPS},
    .examples = "mpirun -n 16 iron-mpi stat shards/ --dtype u16 --vocab 50257 --eos 50256 --hist",
    .options_bytes = sizeof(stat_options),
    .run = run_stat,
};
