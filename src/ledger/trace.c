/* SPDX-License-Identifier: MIT */
/*
 * trace.c: where in a dataset each recorded sample comes from, and how often each sample of the
 * dataset was seen.
 *
 * The dataset is read once, and the seals of its samples go to a temporary file, in order. Then
 * hash tables, each for one part of the range of hashes, are filled from that file, and the
 * ledgers' samples are looked up in them. So memory is bounded, and threads share nothing: a sample
 * belongs to one part. Samples that the dataset has several times cannot be told apart; what was
 * seen of them is distributed evenly.
 */
#include "ledger/ledger_internal.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/memory.h"
#include "digest/digest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define READ_TOKENS ((size_t)1 << 18)
#define SEALS_ROOM  4096u /* seals that are written together */
#define ENDS_ROOM   4096u /* ends of rows or documents that are read together */

void iron_ledger_trace_options_init_sized(iron_ledger_trace_options *options, size_t struct_size) {
    const iron_ledger_trace_options defaults = {.struct_size = (uint32_t)struct_size,
                                                .memory = UINT64_C(1) << 30};

    iron__struct_init(options, struct_size, &defaults, sizeof defaults);
}

/* An array in a temporary file that has no name, which the system may move out of memory. */
typedef struct scratch {
    int fd;
    void *map;
    size_t bytes;
} scratch;

static iron_status scratch_open(scratch *s, iron_error *err) {
    const char *folder = getenv("TMPDIR");
    char *name = iron__print("%s/iron-XXXXXX", folder && *folder ? folder : "/tmp");
    iron_status status = IRON_OK;

    *s = (scratch){.fd = name ? mkostemp(name, O_CLOEXEC) : -1};
    if (!name)
        status = iron__no_memory(err, "a temporary file");
    else if (s->fd < 0)
        status = iron__fail_path(err, "create", name, errno);
    else
        unlink(name);
    free(name);
    return status;
}

static iron_status scratch_map(scratch *s, size_t bytes, iron_error *err) {
    void *map = NULL;

    if (bytes > 0 && ftruncate(s->fd, (off_t)bytes) == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (bytes > 0 && (!map || map == MAP_FAILED))
        return iron__fail_path(err, "use", "a temporary file (TMPDIR)", errno);
    s->map = map;
    s->bytes = bytes;
    return IRON_OK;
}

static iron_status scratch_make(scratch *s, size_t count, size_t each, iron_error *err) {
    IRON_TRY(scratch_open(s, err));
    /* written as zeros now: a full disk is an error here, and a signal later */
    if (count > 0 && posix_fallocate(s->fd, 0, (off_t)(count * each)) != 0)
        return iron__fail(
            err, IRON_E_IO, ENOSPC,
            "no room for %zu bytes in the temporary folder; set TMPDIR to a larger one",
            count * each);
    return scratch_map(s, count * each, err);
}

static void scratch_close(scratch *s) {
    if (s->map)
        munmap(s->map, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
}

struct iron_ledger_trace {
    iron_ledger_trace_summary summary;
    scratch seals;  /* of the dataset's samples: 2 * u64 each */
    scratch seen;   /* of each of them how often: u32 */
    scratch places; /* of each recorded sample: its number in the dataset, or UINT64_MAX: u64 */
};

/* Reading the dataset. */

typedef struct dataset {
    iron_source *source;
    iron_bag_cut cut;
    iron_documents *documents; /* of the current file; NULL: cut every `value` tokens */
    uint64_t file_first;       /* where it begins */
    size_t file;
    uint64_t ends[ENDS_ROOM];
    size_t end_at, end_count;
    uint64_t position, stop; /* of the next token; where the current sample ends */
    iron__seal seal;
    unsigned char ready[SEALS_ROOM * LEDGER_SAMPLE_BYTES];
    size_t ready_count;
    scratch *to;
    uint64_t samples;
} dataset;

static iron_status write_seals(dataset *d, iron_error *err) {
    size_t bytes = d->ready_count * LEDGER_SAMPLE_BYTES;

    for (size_t at = 0; at < bytes;) {
        ssize_t done = write(d->to->fd, d->ready + at, bytes - at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return iron__fail_path(err, "write", "a temporary file (TMPDIR)",
                                   done < 0 ? errno : ENOSPC);
        at += (size_t)done;
    }
    d->ready_count = 0;
    return IRON_OK;
}

static iron_status end_sample(dataset *d, iron_error *err) {
    iron__seal_words words = iron__seal_total(&d->seal);
    uint64_t halves[2] = {iron__seal_fold(0, words), iron__seal_fold(1, words)};

    memcpy(d->ready + d->ready_count * LEDGER_SAMPLE_BYTES, halves, sizeof halves);
    d->seal = (iron__seal){.carried = 0};
    d->samples++;
    if (++d->ready_count == SEALS_ROOM)
        return write_seals(d, err);
    return IRON_OK;
}

/* Finds where the next sample ends. UINT64_MAX: there is none. */
static iron_status next_stop(dataset *d, iron_error *err) {
    if (d->cut.kind == IRON_BAG_CUT_SAMPLE) {
        d->stop = d->position + d->cut.value;
        return IRON_OK;
    }
    while (d->end_at == d->end_count) {
        if (!d->documents) {
            if (d->file == iron_source_file_count(d->source)) {
                d->stop = UINT64_MAX;
                return IRON_OK;
            }
            IRON_TRY(iron_documents_open(d->source, d->file, &d->documents, err));
        }
        IRON_TRY(iron_documents_read(d->documents, d->ends, ENDS_ROOM, &d->end_count, err));
        d->end_at = 0;
        if (d->end_count == 0) {
            iron_documents_close(d->documents);
            d->documents = NULL;
            d->file_first += iron_source_file_tokens(d->source, d->file++);
        }
    }
    d->stop = d->file_first + d->ends[d->end_at++];
    return IRON_OK;
}

static iron_status add_tokens(dataset *d, const iron__tokens_view *view, iron__widened *wide,
                              iron_error *err) {
    const iron__seal_variant *row = iron__seal_variant_find("champion");

    for (size_t at = 0;;) {
        uint64_t left = d->stop - d->position;
        size_t end = left < view->count - at ? at + (size_t)left : view->count;

        if (end > at)
            iron__seal_view(row, view, at, end, wide->tokens, &d->seal);
        d->position += end - at;
        at = end;
        if (d->position < d->stop)
            return IRON_OK;
        IRON_TRY(end_sample(d, err));
        IRON_TRY(next_stop(d, err));
        if (at == view->count && d->stop > d->position)
            return IRON_OK;
    }
}

static iron_status read_dataset(dataset *d, const iron_ledger_trace_options *o, iron_error *err) {
    iron_dtype dtype = iron_source_dtype(d->source);
    uint64_t total = iron_source_tokens(d->source);
    void *buffer = malloc(READ_TOKENS * iron_dtype_bytes(dtype));
    iron__tokens_view view = {dtype, buffer, 0};
    iron__widened wide;
    iron_status status = buffer ? next_stop(d, err) : iron__no_memory(err, "the dataset");

    iron__widened_touch(&wide);
    while (status == IRON_OK) {
        status = iron_source_read(d->source, buffer, READ_TOKENS, &view.count, err);
        if (status != IRON_OK || view.count == 0)
            break;
        status = iron__view_check(&view, d->position, err);
        if (status == IRON_OK)
            status = add_tokens(d, &view, &wide, err);
        if (status == IRON_OK)
            status = iron__progress(o->progress, o->context, d->position, total, err);
    }
    /* a last, shorter sample; and rows without tokens at the end */
    if (status == IRON_OK && d->cut.kind == IRON_BAG_CUT_SAMPLE && d->position % d->cut.value != 0)
        status = end_sample(d, err);
    while (status == IRON_OK && d->cut.kind != IRON_BAG_CUT_SAMPLE && d->stop == d->position) {
        status = end_sample(d, err);
        if (status == IRON_OK)
            status = next_stop(d, err);
    }
    if (status == IRON_OK)
        status = write_seals(d, err);
    free(buffer);
    iron_documents_close(d->documents);
    return status;
}

/* Looking samples up. */

typedef struct slot {
    uint64_t hash, sample; /* sample: its number + 1; 0: free */
} slot;

typedef struct copy_of {
    uint64_t first, copy;
} copy_of;

typedef struct lookup {
    const iron_ledgers *ledgers;
    const iron_ledger_trace_options *options;
    const uint64_t *seals;
    uint64_t *firsts; /* of each record, the number of its first sample */
    uint64_t samples;
    uint32_t *seen;
    uint64_t *places;
    size_t slots; /* of each table: a power of two */
    uint64_t parts;
    slot **tables; /* of each worker */
    pthread_mutex_t mutex;
    copy_of *copies; /* samples that the dataset has again */
    size_t copy_count, copy_capacity;
} lookup;

/* The upper bits choose the part, so the slot comes from a product. */
static slot *find_slot(const lookup *l, slot *table, uint64_t hash, uint64_t other) {
    size_t mask = l->slots - 1, at = (size_t)(hash * IRON_GOLDEN_GAMMA >> 16) & mask;

    while (table[at].sample &&
           (table[at].hash != hash || l->seals[2 * (table[at].sample - 1) + 1] != other))
        at = (at + 1) & mask;
    return &table[at];
}

static iron_status look_up_part(void *context, uint32_t worker, uint64_t part,
                                const atomic_bool *stop, iron_error *err) {
    lookup *l = context;
    const iron_ledgers *of = l->ledgers;
    size_t left = l->slots - l->slots / 8;
    slot *table;

    if (!l->tables[worker])
        l->tables[worker] = malloc(l->slots * sizeof *table);
    table = l->tables[worker];
    if (!table)
        return iron__no_memory(err, "the table of samples");
    memset(table, 0, l->slots * sizeof *table);
    for (uint64_t k = 0; k < l->samples; k++) {
        uint64_t hash = iron__mix64(l->seals[2 * k]);
        bool has_room;
        slot *s;

        if (iron__ledger_part_of(hash, l->parts) != part)
            continue;
        s = find_slot(l, table, hash, l->seals[2 * k + 1]);
        if (s->sample) {
            pthread_mutex_lock(&l->mutex);
            has_room = IRON_ARRAY_GROW(&l->copies, l->copy_count, &l->copy_capacity);
            if (has_room)
                l->copies[l->copy_count++] = (copy_of){s->sample - 1, k};
            pthread_mutex_unlock(&l->mutex);
            if (!has_room)
                return iron__no_memory(err, "repeated samples of the dataset");
            continue;
        }
        IRON_FAIL_IF(left-- == 0, err, IRON_E_NOMEM,
                     "the seals of the samples are not evenly distributed; use more --memory");
        *s = (slot){hash, k + 1};
    }
    for (size_t k = 0; k < of->count && !atomic_load_explicit(stop, memory_order_relaxed); k++) {
        uint64_t count;
        const unsigned char *at = iron__ledger_samples(of, &of->entries[k], &count);

        for (uint64_t j = 0; j < count; j++, at += LEDGER_SAMPLE_BYTES) {
            uint64_t hash = iron__mix64(iron__ledger_u64(at));
            const slot *s;

            if (iron__ledger_part_of(hash, l->parts) != part)
                continue;
            s = find_slot(l, table, hash, iron__ledger_u64(at + 8));
            l->places[l->firsts[k] + j] = s->sample - 1;
            if (s->sample)
                l->seen[s->sample - 1]++;
        }
    }
    return IRON_OK;
}

static iron_status look_up(lookup *l, iron_error *err) {
    uint32_t threads = l->options->threads ? l->options->threads : iron__cpu_threads();
    uint64_t most = l->options->memory / threads / sizeof(slot);
    iron__thread_pool *pool = NULL;
    iron_status status;

    l->slots = 1024;
    while (2 * l->slots <= most && l->slots < 2 * l->samples)
        l->slots *= 2;
    l->parts = l->samples / (l->slots / 2) + 1;
    IRON_TRY(IRON_NEW(&l->tables, threads, "the table of samples", err));
    status = iron__thread_pool_create(threads, iron__allocator_default(), &pool, err);
    if (status == IRON_OK)
        status = iron__thread_pool_run_ordered(
            pool, &(iron__ordered_run){l->parts, look_up_part, NULL, l}, err);
    iron__thread_pool_destroy(pool);
    for (uint32_t k = 0; k < threads; k++)
        free(l->tables[k]);
    free(l->tables);
    return status;
}

static int compare_copies(const void *a, const void *b) {
    const copy_of *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->copy > y->copy) - (x->copy < y->copy);
}

/* What was seen of a sample is distributed over its copies. */
static void distribute(lookup *l) {
    if (l->copy_count > 1)
        qsort(l->copies, l->copy_count, sizeof *l->copies, compare_copies);
    for (size_t k = 0, end; k < l->copy_count; k = end) {
        uint64_t first = l->copies[k].first, seen = l->seen[first], places;

        for (end = k; end < l->copy_count && l->copies[end].first == first;)
            end++;
        places = end - k + 1;
        l->seen[first] = (uint32_t)((seen + places - 1) / places);
        for (size_t j = k; j < end; j++)
            l->seen[l->copies[j].copy] = (uint32_t)((seen + places - 2 - (j - k)) / places);
    }
}

static void summarize(iron_ledger_trace *t, const iron_ledgers *l, const uint64_t *firsts) {
    iron_ledger_trace_summary *s = &t->summary;
    const uint64_t *places = t->places.map;
    const uint32_t *seen = t->seen.map;

    for (uint64_t k = 0; k < s->dataset_samples; k++)
        s->seen[seen[k] < IRON_LEDGER_SEEN - 1 ? seen[k] : IRON_LEDGER_SEEN - 1]++;
    for (size_t k = 0; k < l->count; k++) {
        uint64_t end = k + 1 < l->count ? firsts[k + 1] : s->samples;

        for (uint64_t j = firsts[k]; places && j < end; j++)
            if (places[j] == UINT64_MAX && s->unknown++ == 0) {
                s->first_unknown_step = l->entries[k].step;
                s->first_unknown_rank = iron__ledger_rank(l, &l->entries[k]);
            }
    }
}

static iron_status trace(iron_ledger_trace *t, lookup *job, dataset *d, iron_error *err) {
    const iron_ledgers *l = job->ledgers;
    uint64_t count;

    IRON_TRY(scratch_open(&t->seals, err));
    IRON_TRY(IRON_NEW(&job->firsts, l->count, "the records of a run", err));
    for (size_t k = 0; k < l->count; k++, t->summary.samples += count) {
        job->firsts[k] = t->summary.samples;
        iron__ledger_samples(l, &l->entries[k], &count);
    }
    IRON_TRY(read_dataset(d, job->options, err));
    t->summary.dataset_samples = d->samples;
    t->summary.dataset_tokens = d->position;
    IRON_TRY(scratch_map(&t->seals, (size_t)d->samples * LEDGER_SAMPLE_BYTES, err));
    IRON_TRY(scratch_make(&t->seen, (size_t)d->samples, sizeof(uint32_t), err));
    IRON_TRY(scratch_make(&t->places, (size_t)t->summary.samples, sizeof(uint64_t), err));
    job->seals = t->seals.map;
    job->samples = d->samples;
    job->seen = t->seen.map;
    job->places = t->places.map;
    IRON_TRY(look_up(job, err));
    distribute(job);
    t->summary.copies = job->copy_count;
    summarize(t, l, job->firsts);
    return IRON_OK;
}

iron_status iron_ledgers_trace(const iron_ledgers *ledgers, iron_source *source,
                               const iron_ledger_trace_options *options, iron_ledger_trace **out,
                               iron_error *err) {
    iron_bag_cut cut = {IRON_BAG_CUT_NONE, 0};
    lookup job = {.ledgers = ledgers, .options = options, .mutex = PTHREAD_MUTEX_INITIALIZER};
    iron_ledger_trace *t;
    dataset *d;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__struct_check(options, sizeof *options, "iron_ledger_trace_options", err));
    cut = options->cut;
    IRON_TRY(iron_bag_cut_resolve(source, &cut, err));
    IRON_FAIL_IF(cut.kind == IRON_BAG_CUT_NONE || cut.kind == IRON_BAG_CUT_EOS, err, IRON_E_ARG,
                 "say how the loader cuts samples: every so many tokens, or the files' rows");
    for (size_t k = 0; k < ledgers->file_count; k++)
        IRON_FAIL_IF(!ledgers->files[k].info.has_samples, err, IRON_E_ARG,
                     "%.140s was recorded without the seals of its samples; they cannot be traced",
                     ledgers->files[k].info.path);
    t = calloc(1, sizeof *t);
    d = calloc(1, sizeof *d);
    if (t) {
        t->seals.fd = t->seen.fd = t->places.fd = -1;
        t->summary = (iron_ledger_trace_summary){.struct_size = sizeof t->summary, .cut = cut};
    }
    if (d && t)
        *d = (dataset){.source = source, .cut = cut, .to = &t->seals};
    status = t && d ? trace(t, &job, d, err) : iron__no_memory(err, "a trace");
    free(job.copies);
    free(job.firsts);
    free(d);
    if (status == IRON_OK)
        *out = t;
    else
        iron_ledger_trace_destroy(t);
    return status;
}

void iron_ledger_trace_destroy(iron_ledger_trace *t) {
    if (!t)
        return;
    scratch_close(&t->seals);
    scratch_close(&t->seen);
    scratch_close(&t->places);
    free(t);
}

iron_status iron_ledger_trace_summarize(const iron_ledger_trace *t, iron_ledger_trace_summary *s,
                                        iron_error *err) {
    IRON_TRY(iron__struct_check(s, sizeof *s, "iron_ledger_trace_summary", err));
    *s = t->summary;
    return IRON_OK;
}

const uint32_t *iron_ledger_trace_seen(const iron_ledger_trace *t) { return t->seen.map; }
const uint64_t *iron_ledger_trace_places(const iron_ledger_trace *t) { return t->places.map; }
