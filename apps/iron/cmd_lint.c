/* SPDX-License-Identifier: MIT */
/*
 * cmd_lint.c: `iron lint`: looks for signs of trouble in a dataset.
 *
 * Every file is read once: several files at a time, each by one thread that reads, seals and looks
 * for EOS tokens; with fewer files than threads, the other threads help to seal. What needs all
 * files, such as gaps in the numbers of their names and files with equal seals, is checked
 * afterwards. Findings are collected in the order of the files and printed at the end.
 *
 * What keeps a file from being opened in its format is a finding, with the reader's own message. A
 * file that cannot be read at all is an error: the other files are checked, and the exit status
 * is 2.
 */
#include "command.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1 << 20) /* read at once by each thread */
#define ENDS_ROOM   512u              /* ends of documents read at once */
#define WORKERS_MAX 256u
#define KINDS_MAX   256u /* more than there are formats times dtypes */

typedef struct lint_options {
    reading reading;
    uint64_t vocab;
    uint32_t eos;
    bool has_vocab, has_eos, wants_json;
} lint_options;

static const option lint_table[] = {
    OPTION("vocab", OPTION_NUMBER, "V", lint_options, vocab,
           "size of the vocabulary: report tokens at or above V", .min = 1,
           .max = UINT64_C(1) << 32, GIVEN(lint_options, has_vocab)),
    OPTION("eos", OPTION_NUMBER, "E", lint_options, eos,
           "token that ends a document: report empty documents, and files and documents that do "
           "not end with it",
           GIVEN(lint_options, has_eos)),
    OPTION("json", OPTION_FLAG, NULL, lint_options, wants_json, JSON_HELP),
};

typedef struct finding {
    const char *kind; /* a fixed word */
    char *file, *text;
    uint64_t position, count; /* IRON_COUNT_UNKNOWN: does not apply */
} finding;

typedef struct finding_list {
    finding *items;
    size_t count, capacity;
    bool is_incomplete; /* out of memory */
} finding_list;

#define NAME_CHARS 120 /* of another file's name in a sentence */

#define NO_PLACE IRON_COUNT_UNKNOWN, IRON_COUNT_UNKNOWN /* of a finding about a whole file */

/* A file, and what reading it showed. */
typedef struct shard {
    char *path;
    bool is_named; /* by the user, not found in a directory */
    bool is_pipe;  /* or a device: it would be consumed, and might never end */
    bool is_read;  /* to its end; otherwise `error` says why not */
    bool has_index, begins_with_eos;
    uint64_t bytes;
    iron_dtype dtype;
    char format[16];
    iron_error error;
    const char *problem_kind; /* NULL: the file could not be checked */
    iron_digest_result digest;
    uint32_t last; /* token */
    uint64_t empty_documents, first_empty;
    uint64_t documents, open_documents, first_open; /* open: without the EOS at the end */
} shard;

typedef struct shard_list {
    shard *items;
    size_t count, capacity;
} shard_list;

/* Findings. */

static void __attribute__((format(printf, 6, 7)))
add_finding(finding_list *list, const char *kind, const char *file, uint64_t position,
            uint64_t count, const char *format, ...) {
    finding f = {.kind = kind, .file = strdup(file), .position = position, .count = count};
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&f.text, format, arguments) < 0)
        f.text = NULL;
    va_end(arguments);
    for (char *at = f.text; at && *at; at++) /* a file name may have line breaks */
        *at = iscntrl((unsigned char)*at) ? '?' : *at;
    list->items = list_grow(list->items, list->count, &list->capacity, sizeof *list->items);
    if (!f.file || !f.text || list->count == list->capacity) {
        free(f.file);
        free(f.text);
        list->is_incomplete = true;
        return;
    }
    list->items[list->count++] = f;
}

/* Files. */

static iron_status no_memory(iron_error *err) {
    *err = (iron_error){IRON_E_NOMEM, 0, "out of memory for the list of files"};
    return IRON_E_NOMEM;
}

/* Takes `path`, also on failure. */
static iron_status add_shard(shard_list *list, char *path, bool is_named, iron_error *err) {
    struct stat info;
    bool is_there = path && stat(path, &info) == 0;

    list->items = list_grow(list->items, list->count, &list->capacity, sizeof *list->items);
    if (!path || list->count == list->capacity) {
        free(path);
        return no_memory(err);
    }
    list->items[list->count++] =
        (shard){.path = path,
                .is_named = is_named,
                .is_pipe = is_there && !S_ISREG(info.st_mode),
                .bytes = is_there && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0};
    return IRON_OK;
}

static bool ends_with(const char *path, const char *suffix) {
    size_t length = strlen(path), end = strlen(suffix);

    return length > end && strcmp(path + length - end, suffix) == 0;
}

static bool is_file(const char *path) {
    struct stat info;

    return path && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* The path without its last `cut` characters, followed by `suffix`; the caller frees it. */
static char *path_beside(const char *path, size_t cut, const char *suffix) {
    char *beside = NULL;

    return asprintf(&beside, "%.*s%s", (int)(strlen(path) - cut), path, suffix) < 0 ? NULL : beside;
}

/* Adds the files of an argument: those of a directory in natural order; P.bin if it is the prefix P
 * of a Megatron dataset or its index P.idx. */
static iron_status add_argument(shard_list *list, const reading *r, const char *argument,
                                iron_error *err) {
    iron_input_files *files = NULL;
    struct stat info;
    bool is_there = stat(argument, &info) == 0, is_named = !is_there || !S_ISDIR(info.st_mode);
    bool is_index = ends_with(argument, ".idx");
    char *bin = is_index || !is_there ? path_beside(argument, is_index ? 4 : 0, ".bin") : NULL;
    iron_status status;

    if (is_file(bin))
        return add_shard(list, bin, true, err);
    free(bin);
    status = reading_list(r, argument, &files, err);
    for (size_t k = 0; status == IRON_OK && k < iron_input_files_count(files); k++)
        status = add_shard(list, strdup(iron_input_files_at(files, k)), is_named, err);
    iron_input_files_destroy(files);
    return status;
}

/* Reading. */

typedef struct lint_run {
    const lint_options *options;
    shard_list shards;
    uint32_t digest_threads;
    uint64_t bytes;
    pthread_mutex_t mutex; /* for what follows, and while a file is opened */
    size_t next;
    uint64_t bytes_done;
    progress bar;
} lint_run;

/* The documents of an index, compared with the tokens while these pass by. */
typedef struct document_check {
    iron_documents *list;
    uint64_t ends[ENDS_ROOM];
    size_t count, next;
    uint64_t begin; /* of the current document */
} document_check;

static uint32_t token_at(iron_dtype dtype, const void *tokens, size_t k) {
    size_t width = iron_dtype_bytes(dtype);
    uint32_t value = 0; /* little-endian: the low bytes come first */

    memcpy(&value, (const char *)tokens + k * width, width < sizeof value ? width : sizeof value);
    return value;
}

/* How often `eos` follows itself. Simple loops, which the compiler vectorises. */
#define COUNT_PAIRS(type)                                                                          \
    do {                                                                                           \
        const type *t = tokens, wanted = (type)eos;                                                \
        if (wanted == eos)                                                                         \
            for (size_t k = 1; k < count; k++)                                                     \
                pairs += (uint64_t)((t[k - 1] == wanted) & (t[k] == wanted));                      \
    } while (0)

/* Counts empty documents in a file without an index: an EOS directly after an EOS. s->last is the
 * token before these. */
static void find_pairs(shard *s, const void *tokens, uint64_t position, size_t count,
                       uint32_t eos) {
    uint32_t before = s->last;
    bool crosses = position > 0 && before == eos && token_at(s->dtype, tokens, 0) == eos;
    uint64_t pairs = crosses;
    size_t width = iron_dtype_bytes(s->dtype);

    if (width == 1)
        COUNT_PAIRS(uint8_t);
    else if (width == 2)
        COUNT_PAIRS(uint16_t);
    else if (width == 4)
        COUNT_PAIRS(uint32_t);
    else
        COUNT_PAIRS(uint64_t);

    if (pairs > 0 && s->empty_documents == 0) {
        size_t k = crosses ? 0 : 1;

        while (!crosses &&
               (token_at(s->dtype, tokens, k - 1) != eos || token_at(s->dtype, tokens, k) != eos))
            k++;
        s->first_empty = position + k;
    }
    s->empty_documents += pairs;
}

/* Checks the documents that end within the `count` tokens at `position`. */
static iron_status check_documents(const lint_options *o, shard *s, document_check *d,
                                   const void *tokens, uint64_t position, size_t count,
                                   iron_error *err) {
    for (;;) {
        uint64_t end;
        bool has_eos = false;

        if (d->next == d->count) {
            iron_status status = iron_documents_read(d->list, d->ends, ENDS_ROOM, &d->count, err);

            d->next = 0;
            if (status != IRON_OK || d->count == 0)
                return status;
        }
        end = d->ends[d->next];
        if (end > position + count)
            return IRON_OK;
        d->next++;
        s->documents++;
        if (o->has_eos && end > d->begin)
            has_eos = token_at(s->dtype, tokens, (size_t)(end - 1 - position)) == o->eos;
        if (end == d->begin || (has_eos && end == d->begin + 1)) {
            if (s->empty_documents++ == 0)
                s->first_empty = d->begin;
        } else if (o->has_eos && !has_eos && s->open_documents++ == 0) {
            s->first_open = end - 1;
        }
        d->begin = end;
    }
}

/* An error with this number is about a value that is no token; of columns, the readers say so. */
#define BAD_VALUE EDOM

/* Reads a file to its end. */
static iron_status read_tokens(lint_run *run, shard *s, iron_source *source, iron_digest *digest,
                               document_check *d, void *buffer, iron_error *err) {
    const lint_options *o = run->options;
    size_t width = iron_dtype_bytes(s->dtype), count;
    uint64_t position = 0;
    iron_status status;

    while ((status = iron_source_read(source, buffer, PIECE_BYTES / width, &count, err)) ==
               IRON_OK &&
           count > 0) {
        status = iron_digest_update(digest, position, s->dtype, buffer, count, err);
        err->native = status == IRON_E_FORMAT ? BAD_VALUE : err->native;
        IRON_TRY(status);
        if (d->list)
            IRON_TRY(check_documents(o, s, d, buffer, position, count, err));
        if (o->has_eos && !d->list)
            find_pairs(s, buffer, position, count, o->eos);
        if (o->has_eos && position == 0)
            s->begins_with_eos = token_at(s->dtype, buffer, 0) == o->eos;
        s->last = token_at(s->dtype, buffer, count - 1);
        position += count;
        pthread_mutex_lock(&run->mutex);
        run->bytes_done += count * width;
        progress_update(&run->bar, run->bytes_done, run->bytes);
        pthread_mutex_unlock(&run->mutex);
    }
    IRON_TRY(status);
    if (d->list) /* an empty file may have empty documents */
        IRON_TRY(check_documents(o, s, d, buffer, position, 0, err));
    s->digest.struct_size = sizeof s->digest;
    return iron_digest_final(digest, &s->digest, err);
}

static iron_status read_shard(lint_run *run, shard *s, iron_source *source, void *buffer,
                              iron_error *err) {
    iron_digest_options options = {.struct_size = sizeof options,
                                   .threads = run->digest_threads,
                                   .vocab = run->options->has_vocab ? run->options->vocab
                                                                    : UINT64_C(1) << 32};
    document_check documents = {0};
    iron_digest digest = {0};
    iron_status status;

    s->dtype = iron_source_dtype(source);
    snprintf(s->format, sizeof s->format, "%s", iron_source_file_format(source, 0));
    status = iron_documents_open(source, 0, &documents.list, err);
    s->has_index = documents.list != NULL;
    if (status == IRON_OK)
        status = iron_digest_init(&digest, &options, err);
    if (status == IRON_OK)
        status = read_tokens(run, s, source, &digest, &documents, buffer, err);
    iron_digest_deinit(&digest);
    iron_documents_close(documents.list);
    return status;
}

/* The message without the file's name, which the finding has already. */
static const char *without_name(const char *message, const char *path) {
    size_t length = strlen(path);

    if (strncmp(message, path, length) != 0 || !strchr(": ", message[length]))
        return message;
    message += length;
    return message + strspn(message, ": ");
}

/* What a file suffers from whose format's reader refused it, or its index while it was read. */
static const char *damage_kind(const lint_options *o, const shard *s) {
    iron_sniff_report report = {.struct_size = sizeof report};
    const char *format = s->format[0] ? s->format : o->reading.format;

    if (!format || strcmp(format, "auto") == 0) {
        /* it tells the format also of damaged files */
        iron_sniff(s->path, o->reading.column, &report, NULL);
        iron_sniff_report_deinit(&report);
        format = report.format;
    }
    return strcmp(format, "raw") == 0 && !s->format[0]                    ? "size"
           : strcmp(format, "megatron") == 0 || strcmp(format, "ds") == 0 ? "index"
                                                                          : "header";
}

/* A table in a compressed file must be seekable: else its rows are known too late. */
static iron_status open_shard(const reading *r, const shard *s, iron_source **source,
                              iron_error *err) {
    const char *const *path = (const char *const *)&s->path;
    reading again = *r;
    iron_status status = reading_open(r, path, 1, source, err);

    again.wants_seekable = true;
    if (status != IRON_OK || iron_source_is_seekable(*source) ||
        !iron_source_file_column(*source, 0))
        return status;
    iron_source_close(*source);
    status = reading_open(&again, path, 1, source, err);
    if (status != IRON_OK || iron_source_is_seekable(*source))
        return status;
    iron_source_close(*source);
    *source = NULL;
    usage(err,
          "%.120s: the server does not send parts of it (ranges), which lint needs to know its "
          "rows; download it first",
          s->path);
    return err->status = IRON_E_IO;
}

/* A thread: takes files until none is left. */
static void *work(void *context) {
    lint_run *run = context;
    void *buffer = malloc(PIECE_BYTES);

    for (;;) {
        iron_error err = {IRON_OK, 0, ""};
        iron_source *source = NULL;
        iron_status status;
        shard *s;

        pthread_mutex_lock(&run->mutex);
        s = run->next < run->shards.count ? &run->shards.items[run->next++] : NULL;
        if (s && s->is_pipe) {
            usage(&err, "%.120s is not a regular file; lint needs files", s->path);
            status = err.status = IRON_E_IO;
        } else if (s && buffer) {
            status = open_shard(&run->options->reading, s, &source, &err);
        } else {
            status = no_memory(&err);
        }
        pthread_mutex_unlock(&run->mutex);
        if (!s)
            break;
        if (status == IRON_OK)
            status = read_shard(run, s, source, buffer, &err);
        s->is_read = status == IRON_OK;
        s->error = err;
        s->error.status = status;
        if (status == IRON_E_FORMAT)
            s->problem_kind = err.native == BAD_VALUE ? "ids" : damage_kind(run->options, s);
        iron_source_close(source);
    }
    free(buffer);
    return NULL;
}

/* Reads all files. A thread that cannot be started is not missed: this one takes files too. */
static void read_all(lint_run *run) {
    pthread_t threads[WORKERS_MAX];
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    uint32_t wanted = run->options->reading.threads, started = 0, workers;

    if (run->shards.count == 0)
        return;
    if (wanted == 0)
        wanted = iron_cpu_describe(&cpu, NULL) == IRON_OK && cpu.threads > 0 ? cpu.threads : 1;
    workers = wanted < WORKERS_MAX ? wanted : WORKERS_MAX;
    if (workers > run->shards.count)
        workers = (uint32_t)run->shards.count;
    run->digest_threads = wanted / workers;
    for (size_t k = 0; k < run->shards.count; k++)
        run->bytes += run->shards.items[k].bytes;
    pthread_mutex_init(&run->mutex, NULL);
    run->bar = progress_start(1);
    while (started + 1 < workers && pthread_create(&threads[started], NULL, work, run) == 0)
        started++;
    work(run);
    for (uint32_t k = 0; k < started; k++)
        pthread_join(threads[k], NULL);
    progress_clear(&run->bar);
    pthread_mutex_destroy(&run->mutex);
}

/* What each file shows by itself. */

static const char *plural(uint64_t count, const char *one, const char *many) {
    return count == 1 ? one : many;
}

static void report_shard(const lint_options *o, const shard *s, finding_list *found) {
    const iron_digest_result *r = &s->digest;

    if (s->problem_kind)
        add_finding(found, s->problem_kind, s->path, NO_PLACE, "%s",
                    without_name(s->error.text, s->path));
    if (!s->is_read)
        return;
    if (r->tokens == 0)
        add_finding(found, "empty-file", s->path, NO_PLACE, "%s",
                    s->bytes == 0 ? "has 0 bytes" : "has a header, but no tokens");
    if (r->out_of_vocab > 0)
        add_finding(found, "ids", s->path, r->first_out_position, r->out_of_vocab,
                    "%" PRIu64 " of %" PRIu64 " tokens %s not below --vocab %" PRIu64
                    "; the first is %" PRIu32 " at position %" PRIu64,
                    r->out_of_vocab, r->tokens, plural(r->out_of_vocab, "is", "are"), o->vocab,
                    r->first_out_value, r->first_out_position);
    if (s->empty_documents > 0)
        add_finding(found, "empty-document", s->path, s->first_empty, s->empty_documents,
                    "%" PRIu64 " empty %s; the first is at position %" PRIu64, s->empty_documents,
                    plural(s->empty_documents, "document", "documents"), s->first_empty);
    if (s->open_documents > 0)
        add_finding(found, "no-eos", s->path, s->first_open, s->open_documents,
                    "%" PRIu64 " of %" PRIu64 " documents %s not end with token %" PRIu32
                    " (--eos); the first of them ends at position %" PRIu64,
                    s->open_documents, s->documents, plural(s->open_documents, "does", "do"),
                    o->eos, s->first_open);
    /* llm.c and others put the token before each document instead */
    if (o->has_eos && r->tokens > 0 && !s->has_index && s->last != o->eos && !s->begins_with_eos)
        add_finding(found, "no-eos", s->path, r->tokens - 1, 1,
                    "ends with token %" PRIu32 ", not with %" PRIu32 " (--eos); is it cut?",
                    s->last, o->eos);
}

/* Sidecars: a file without its index, and an index without its file. */

static bool has_format(const shard_list *list, const char *format) {
    for (size_t k = 0; k < list->count; k++)
        if (list->items[k].is_read && strcmp(list->items[k].format, format) == 0)
            return true;
    return false;
}

/* An index whose tokens are missing; the reader's message would call it a file without tokens. */
static bool report_orphan(shard *s, finding_list *found) {
    static const struct {
        const char *suffix, *main_suffix;
    } kinds[] = {{".idx", ".bin"}, {".ds.index", ".ds"}, {".ds.metadata", ".ds"}};
    const char *last = found->count ? found->items[found->count - 1].file : NULL;
    bool is_orphan = false;

    for (size_t k = 0; k < COUNT(kinds) && !s->is_read && !is_orphan; k++) {
        char *main_path = ends_with(s->path, kinds[k].suffix)
                              ? path_beside(s->path, strlen(kinds[k].suffix), kinds[k].main_suffix)
                              : NULL;

        is_orphan = main_path && access(main_path, F_OK) != 0;
        /* .ds files have two sidecars */
        if (is_orphan && (!last || strcmp(last, main_path) != 0))
            add_finding(found, "missing", main_path, IRON_COUNT_UNKNOWN, 1,
                        "there is no such file, but %.*s describes it", NAME_CHARS, s->path);
        free(main_path);
    }
    return is_orphan;
}

/* Tokens that were read as raw, or could not be read without --dtype, because the index that they
 * should have is missing or damaged. */
static bool report_no_index(const lint_options *o, const shard_list *list, const shard *s,
                            finding_list *found) {
    bool is_forced = o->reading.format && strcmp(o->reading.format, "auto") != 0;
    char *index = ends_with(s->path, ".bin") ? path_beside(s->path, 4, ".idx") : NULL;
    bool is_raw = s->is_read ? strcmp(s->format, "raw") == 0 : s->error.status == IRON_E_ARG;
    bool has_index = is_file(index), is_reported = true;

    is_raw = is_raw && !is_forced;
    if (is_raw && has_index)
        add_finding(found, "index", s->path, NO_PLACE,
                    "%.*s beside it is not a Megatron index: it does not begin with MMIDIDX",
                    NAME_CHARS, index);
    else if (is_raw && index && has_format(list, "megatron"))
        add_finding(found, "index", s->path, NO_PLACE,
                    "%.*s is missing; other files here have an index", NAME_CHARS, index);
    else if (is_raw && ends_with(s->path, ".ds") && has_format(list, "ds"))
        add_finding(found, "index", s->path, NO_PLACE,
                    "has neither .index nor .metadata beside it; other files here have them");
    else
        is_reported = false;
    free(index);
    return is_reported;
}

/* Files with equal tokens, and files of different kinds. */

static int by_seal(const void *left, const void *right) {
    const shard *a = *(const shard *const *)left, *b = *(const shard *const *)right;
    int order = strcmp(a->digest.seal, b->digest.seal);

    return order ? order : (a > b) - (a < b);
}

static bool is_same_kind(const shard *a, const shard *b) {
    return a->dtype == b->dtype && strcmp(a->format, b->format) == 0;
}

static iron_status compare_shards(const shard_list *list, finding_list *found, iron_error *err) {
    const shard **files = calloc(list->count + 1, sizeof(void *));
    const shard *kinds[KINDS_MAX] = {0},
                *like; /* the first file of each kind, of the most frequent */
    size_t counts[KINDS_MAX] = {0}, kind_count = 0, usual = 0, count = 0;

    if (!files)
        return no_memory(err);
    for (size_t k = 0; k < list->count; k++)
        if (list->items[k].is_read && list->items[k].digest.tokens > 0)
            files[count++] = &list->items[k];
    for (size_t k = 0; k < count; k++) {
        size_t kind = 0;

        while (kind < kind_count && !is_same_kind(kinds[kind], files[k]))
            kind++;
        if (kind == kind_count)
            kinds[kind_count++] = files[k];
        counts[kind]++;
    }
    for (size_t k = 1; k < kind_count; k++)
        usual = counts[k] > counts[usual] ? k : usual;
    like = kinds[usual];
    usual = counts[usual];
    for (size_t k = 0; k < count; k++)
        if (!is_same_kind(files[k], like))
            add_finding(found, "mixed", files[k]->path, NO_PLACE,
                        "is a %s file of %s tokens; %zu of %zu files, such as %.*s, are %s files "
                        "of %s tokens",
                        files[k]->format, iron_dtype_name(files[k]->dtype), usual, count,
                        NAME_CHARS, like->path, like->format, iron_dtype_name(like->dtype));
    qsort(files, count, sizeof(void *), by_seal);
    for (size_t k = 1, first = 0; k < count; k++) {
        if (strcmp(files[k]->digest.seal, files[first]->digest.seal) != 0)
            first = k;
        else
            add_finding(found, "repeated", files[k]->path, IRON_COUNT_UNKNOWN,
                        files[k]->digest.tokens, "has the same %" PRIu64 " tokens as %.*s",
                        files[k]->digest.tokens, NAME_CHARS, files[first]->path);
    }
    free(files);
    return IRON_OK;
}

/* Names: gaps in their numbers, numbers that occur twice, an order that depends on how names are
 * sorted, and shards of unusual length. Files belong to one group if they lie in one directory and
 * their names differ only in numbers. */

#define NUMBERS_MAX  16u /* numbers in a file name; names with more are left alone */
#define NUMBER_LIMIT UINT64_C(1000000000000000000)

typedef struct name_number {
    const char *at; /* in the path */
    size_t digits;
    uint64_t value;
} name_number;

typedef struct numbered_name {
    const shard *file;
    const char *base; /* the name without its directory */
    size_t count;
    name_number numbers[NUMBERS_MAX];
} numbered_name;

/* A run of names of one group. The shard's number is moved behind the others. */
typedef struct name_group {
    numbered_name *names;
    size_t count;
    size_t total; /* which number is that of shards, as in -of-00010 */
    bool has_total;
} name_group;

static size_t digits_at(const char *text) { return strspn(text, "0123456789"); }

/* Compares directories, then names without their numbers. */
static int compare_patterns(const numbered_name *a, const numbered_name *b) {
    size_t length_a = (size_t)(a->base - a->file->path),
           length_b = (size_t)(b->base - b->file->path);
    const char *x = a->base, *y = b->base;
    int order = memcmp(a->file->path, b->file->path, length_a < length_b ? length_a : length_b);

    if (order || length_a != length_b)
        return order ? order : length_a < length_b ? -1 : 1;
    while (*x && *y) {
        size_t digits_x = digits_at(x), digits_y = digits_at(y);

        if (!digits_x != !digits_y || (!digits_x && *x != *y))
            break;
        x += digits_x ? digits_x : 1;
        y += digits_y ? digits_y : 1;
    }
    return (unsigned char)*x - (unsigned char)*y;
}

static int compare_numbers(const numbered_name *a, const numbered_name *b, size_t count) {
    int order = 0;

    for (size_t k = 0; order == 0 && k < count; k++)
        order = (a->numbers[k].value > b->numbers[k].value) -
                (a->numbers[k].value < b->numbers[k].value);
    return order;
}

static int by_pattern_and_numbers(const void *left, const void *right) {
    const numbered_name *a = left, *b = right;
    int order = compare_patterns(a, b);

    order = order ? order : compare_numbers(a, b, a->count);
    return order ? order : strcmp(a->base, b->base);
}

/* Whether number k is a total: "3-of-10", "3_of_10". */
static bool is_total(const numbered_name *n, size_t k) {
    const char *between = n->numbers[k - 1].at + n->numbers[k - 1].digits;

    return n->numbers[k].at - between == 4 && strchr("-_.", between[0]) &&
           tolower((unsigned char)between[1]) == 'o' && tolower((unsigned char)between[2]) == 'f' &&
           strchr("-_.", between[3]);
}

static const name_number *part_of(const numbered_name *n) { return &n->numbers[n->count - 1]; }

static bool is_padded(const name_group *g) {
    for (size_t k = 0; k < g->count; k++)
        if (part_of(&g->names[k])->digits > 1 && part_of(&g->names[k])->at[0] == '0')
            return true;
    return false;
}

/* The path of another shard of the series, with the digits that `like` has; the caller frees it. */
static char *name_of_part(const name_group *g, const numbered_name *like, uint64_t value,
                          bool is_full) {
    const name_number *number = part_of(like);
    const char *start = is_full ? like->file->path : like->base;
    char *name = NULL;

    if (asprintf(&name, "%.*s%0*" PRIu64 "%s", (int)(number->at - start), start,
                 is_padded(g) ? (int)number->digits : 1, value, number->at + number->digits) < 0)
        return NULL;
    return name;
}

/* Shards `first` to `last` of the series are missing beside `like`. `before` is the one on the
 * other side of a gap, or NULL at the ends of the series. */
static void report_missing(const name_group *g, const numbered_name *like,
                           const numbered_name *before, uint64_t first, uint64_t last,
                           finding_list *found) {
    char *path = name_of_part(g, like, first, true);
    char *name = name_of_part(g, like, last, false);

    if (!path || !name)
        found->is_incomplete = true;
    else if (like->file->is_named && access(path, F_OK) == 0)
        ; /* it exists: the user did not name it */
    else if (first < last)
        add_finding(found, "missing", path, IRON_COUNT_UNKNOWN, last - first + 1,
                    "%" PRIu64 " files are missing, from this one to %.*s", last - first + 1,
                    NAME_CHARS, name);
    else if (before)
        add_finding(found, "missing", path, IRON_COUNT_UNKNOWN, 1,
                    "there is no such file between %.*s and %.*s", NAME_CHARS, before->base,
                    NAME_CHARS, like->base);
    else
        add_finding(found, "missing", path, IRON_COUNT_UNKNOWN, 1,
                    "there is no such file, but the names of the others announce %" PRIu64 " files",
                    like->numbers[g->total].value);
    free(path);
    free(name);
}

/* Where nearly all shards but the last have the same number of tokens, reports the ones that do
 * not, and a last one that has more. */
static void report_sizes(const name_group *g, finding_list *found) {
    size_t votes = 0, same = 0, before_last = g->count - 1;
    uint64_t usual = 0;

    if (before_last < 4)
        return;
    for (size_t k = 0; k < g->count; k++)
        if (!g->names[k].file->is_read)
            return;
    for (size_t k = 0; k < before_last; k++) { /* the majority's value, if there is a majority */
        uint64_t tokens = g->names[k].file->digest.tokens;

        usual = votes == 0 ? tokens : usual;
        votes = tokens == usual ? votes + 1 : votes - 1;
    }
    for (size_t k = 0; k < before_last; k++)
        same += g->names[k].file->digest.tokens == usual;
    if (usual == 0 || 4 * (before_last - same) > before_last)
        return;
    for (size_t k = 0; k < g->count; k++) {
        const shard *s = g->names[k].file;
        uint64_t tokens = s->digest.tokens;

        if (tokens > 0 && (k < before_last ? tokens != usual : tokens > usual))
            add_finding(found, "size", s->path, IRON_COUNT_UNKNOWN, tokens,
                        "has %" PRIu64 " tokens, but %zu of the %zu files before the last one "
                        "have %" PRIu64,
                        tokens, same, before_last, usual);
    }
}

/* One series of shards, sorted by number. */
static void check_series(const name_group *g, finding_list *found) {
    const numbered_name *first = &g->names[0], *last = &g->names[g->count - 1];
    uint64_t low = part_of(first)->value, high = part_of(last)->value, missing = 0;
    uint64_t begin = low, end = high;
    uint64_t total = g->has_total ? first->numbers[g->total].value : 0;

    if (high >= NUMBER_LIMIT || (g->count == 1 && (first->file->is_named || !g->has_total)))
        return;
    for (size_t k = 1; k < g->count; k++) {
        const numbered_name *n = &g->names[k];
        uint64_t step = part_of(n)->value - part_of(n - 1)->value;

        if (step == 0)
            add_finding(found, "order", n->file->path, NO_PLACE, "has the same number as %.*s",
                        NAME_CHARS, (n - 1)->base);
        else
            missing += step - 1;
    }
    if (total > 0) { /* counted from 0 or from 1 */
        begin = low > 0 && high == total;
        end = begin ? total : total - 1;
    }
    /* numbers without leading zeros may be dates or steps: then most are missing */
    if (!g->has_total && !is_padded(g) && missing > g->count)
        return;
    if (low > begin)
        report_missing(g, first, NULL, begin, low - 1 < end ? low - 1 : end, found);
    for (size_t k = 1; k < g->count; k++) {
        const numbered_name *n = &g->names[k];
        uint64_t before = part_of(n - 1)->value, number = part_of(n)->value;

        if (number > before + 1 && before < end)
            report_missing(g, n, n - 1, before + 1, number - 1 < end ? number - 1 : end, found);
    }
    if (high < end)
        report_missing(g, last, NULL, high + 1, end, found);
    for (size_t k = 0; k < g->count; k++)
        if (part_of(&g->names[k])->value > end)
            add_finding(found, "order", g->names[k].file->path, NO_PLACE,
                        "its number is not among the %" PRIu64 " that its name announces", total);
    report_sizes(g, found);
}

/* Files whose names differ only in numbers, sorted by these. */
static void check_group(name_group *g, finding_list *found) {
    const numbered_name *first = &g->names[0];
    size_t part = first->count - 1;

    for (size_t k = 1; k < first->count; k++)
        if (is_total(first, k)) {
            g->has_total = true;
            part = g->total = k - 1; /* once the part is behind it */
        }
    /* else the last number that is not always the same */
    for (; !g->has_total && part > 0 && g->count > 1; part--) {
        size_t same = 1;

        while (same < g->count && g->names[same].numbers[part].value == first->numbers[part].value)
            same++;
        if (same < g->count)
            break;
    }
    for (numbered_name *n = g->names; n < g->names + g->count; n++) {
        name_number number = n->numbers[part];

        memmove(&n->numbers[part], &n->numbers[part + 1], (n->count - part - 1) * sizeof number);
        n->numbers[n->count - 1] = number;
    }
    for (size_t k = 1; k < g->count; k++)
        if (strcmp(g->names[k - 1].base, g->names[k].base) > 0) {
            add_finding(found, "order", g->names[k].file->path, NO_PLACE,
                        "follows %.*s by number, but sorted() and ls put it before: a loader that "
                        "sorts names as text reads another order than iron; write all numbers with "
                        "equally many digits",
                        NAME_CHARS, g->names[k - 1].base);
            break;
        }
    for (size_t k = 1; g->has_total && k < g->count; k++)
        if (g->names[k].numbers[g->total].value != first->numbers[g->total].value) {
            add_finding(found, "mixed", g->names[k].file->path, NO_PLACE,
                        "its name announces %" PRIu64 " files, that of %.*s %" PRIu64,
                        g->names[k].numbers[g->total].value, NAME_CHARS, first->base,
                        first->numbers[g->total].value);
            break;
        }
    qsort(g->names, g->count, sizeof *g->names, by_pattern_and_numbers);
    for (size_t begin = 0, end; begin < g->count; begin = end) {
        name_group series = *g;

        end = begin + 1;
        while (end < g->count &&
               compare_numbers(&g->names[begin], &g->names[end], first->count - 1) == 0)
            end++;
        series.names = g->names + begin;
        series.count = end - begin;
        check_series(&series, found);
    }
}

static iron_status look_at_names(const shard_list *list, finding_list *found, iron_error *err) {
    numbered_name *names = calloc(list->count + 1, sizeof *names);
    size_t count = 0;

    if (!names)
        return no_memory(err);
    for (size_t k = 0; k < list->count; k++) {
        const char *path = list->items[k].path, *slash = strrchr(path, '/');
        numbered_name n = {.file = &list->items[k], .base = slash ? slash + 1 : path};

        for (const char *at = n.base; *at;) {
            size_t digits = digits_at(at);
            uint64_t value = 0;

            for (size_t d = 0; d < digits && value < NUMBER_LIMIT; d++)
                value = 10 * value + (uint64_t)(at[d] - '0');
            if (digits > 0 && n.count < NUMBERS_MAX)
                n.numbers[n.count++] = (name_number){at, digits, value};
            at += digits > 0 ? digits : 1;
        }
        if (n.count > 0 && n.count < NUMBERS_MAX)
            names[count++] = n;
    }
    qsort(names, count, sizeof *names, by_pattern_and_numbers);
    for (size_t begin = 0, end; begin < count; begin = end) {
        name_group g = {.names = names + begin};

        end = begin + 1;
        while (end < count && compare_patterns(&names[begin], &names[end]) == 0)
            end++;
        g.count = end - begin;
        check_group(&g, found);
    }
    free(names);
    return IRON_OK;
}

static iron_status run(void *options, args *a, iron_error *err) {
    lint_options *o = options;
    lint_run r = {.options = o};
    finding_list found = {0};
    uint64_t tokens = 0;
    iron_status status = IRON_OK, unread = IRON_OK;
    iron_json_writer j;

    if (a->value_count == 0)
        return usage(err, "no dataset; name a directory, files or a Megatron prefix");
    for (size_t k = 0; k < a->value_count; k++)
        if (strcmp(a->values[k], "-") == 0)
            return usage(err, "- is standard input; lint needs files: name a directory or files");
    if (o->has_eos && o->has_vocab && o->eos >= o->vocab)
        return usage(err, "--eos %" PRIu32 " is not below --vocab %" PRIu64, o->eos, o->vocab);
    IRON_TRY(reading_cpu_only(&o->reading, "lint runs", err));
    IRON_TRY(reading_check(&o->reading, err));
    for (size_t k = 0; status == IRON_OK && k < a->value_count; k++)
        status = add_argument(&r.shards, &o->reading, a->values[k], err);
    if (status != IRON_OK)
        goto done;
    o->reading.is_for_raw = r.shards.count > 1;
    read_all(&r);
    for (shard *s = r.shards.items; s < r.shards.items + r.shards.count; s++) {
        tokens += s->is_read ? s->digest.tokens : 0;
        if (report_orphan(s, &found))
            continue;
        report_shard(o, s, &found);
        if (report_no_index(o, &r.shards, s, &found) || s->is_read || s->problem_kind)
            continue;
        /* a file that cannot be read decides the exit status; wrong options end the command */
        *err = s->error;
        unread = err->status;
        if (unread == IRON_E_ARG || unread == IRON_E_NOMEM) {
            status = unread;
            goto done;
        }
        command_complain(err);
    }
    if ((status = look_at_names(&r.shards, &found, err)) != IRON_OK ||
        (status = compare_shards(&r.shards, &found, err)) != IRON_OK)
        goto done;
    if (found.is_incomplete) {
        status = no_memory(err);
        goto done;
    }
    err->text[0] = '\0';
    status = unread == IRON_OK && found.count > 0 ? IRON_E_MISMATCH : unread;
    if (o->wants_json) {
        j = json_begin('{');
        JSON_PUT(&j, TEXT("schema", "iron.lint/1"), NUMBER("files", r.shards.count),
                 NUMBER("tokens", tokens));
        iron_json_open(&j, "findings", '[');
    }
    for (const finding *f = found.items; f < found.items + found.count; f++) {
        if (o->wants_json) {
            JSON_PUT(&j, OBJECT(NULL, TEXT("kind", f->kind), TEXT("file", f->file),
                                KNOWN("position", f->position), KNOWN("count", f->count),
                                TEXT("text", f->text)));
            continue;
        }
        seal_name_print(f->file);
        printf(": %s: %s\n", f->kind, f->text);
    }
    if (o->wants_json) {
        iron_json_close(&j, ']');
        json_end(&j, '}');
    } else if (found.count == 0 && status == IRON_OK) {
        printf("no findings: %zu %s, %" PRIu64 " tokens\n", r.shards.count,
               plural(r.shards.count, "file", "files"), tokens);
    }
    if (found.count > 0)
        snprintf(err->text, sizeof err->text, "%zu %s in %zu %s", found.count,
                 plural(found.count, "finding", "findings"), r.shards.count,
                 plural(r.shards.count, "file", "files"));
done:
    for (size_t k = 0; k < found.count; k++) {
        free(found.items[k].file);
        free(found.items[k].text);
    }
    free(found.items);
    for (size_t k = 0; k < r.shards.count; k++)
        free(r.shards.items[k].path);
    free(r.shards.items);
    return status;
}

const command command_lint = {
    .name = "lint",
    .summary = "looks for signs of trouble in a dataset",
    .synopsis = "DATASET... [OPTIONS]",
    .description =
        "Checks a directory, files, or a Megatron dataset named by its prefix, all at once: "
        "indexes and headers against the data, missing and repeated shards, the order of shards, "
        "ids, empty documents, documents and files without an EOS at the end, empty files, and "
        "files of different kinds. Prints one line for each finding: FILE: KIND: what was found. "
        "docs/lint.md describes the kinds.\n\n"
        "Every file is read once. lint runs on the CPU: --backend accepts only auto and cpu, "
        "--device only 0 and all.",
    .groups = {{NULL, lint_table, COUNT(lint_table), 0}, READING_GROUP(lint_options, reading)},
    .exit_status = "0: no findings; 1: there are findings; 2: error, or a file could not be "
                   "checked.",
    .examples = "iron lint shards/ --dtype u16 --vocab 50257 --eos 50256\n"
                "iron lint corpus_text_document",
    .options_bytes = sizeof(lint_options),
    .run = run,
};
