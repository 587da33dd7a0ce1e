/* SPDX-License-Identifier: MIT */
/*
 * ledgers.c: reads the ledgers of a run through mappings, and decides which of their records count.
 *
 * A resume mark ends a part of a file. The parts that the ranks recorded at the same time are a
 * generation; a generation takes the place of everything that earlier ones recorded from its first
 * step on, also on ranks that it no longer has. Of records with the same step, micro step and rank
 * in one generation the last one counts.
 */
#include "ledger/ledger_internal.h"

#include "core/array.h"
#include "core/fail.h"
#include "core/memory.h"
#include "io/checksum.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The format. */

bool iron__ledger_header_is_valid(const unsigned char header[LEDGER_HEADER_BYTES]) {
    return memcmp(header, LEDGER_MAGIC, 8) == 0 && iron__ledger_u32(header + 8) == LEDGER_VERSION &&
           iron__ledger_u32(header + 12) == LEDGER_HEADER_BYTES &&
           iron__ledger_u32(header + LEDGER_HEADER_BYTES - 4) ==
               iron__crc32(header, LEDGER_HEADER_BYTES - 4) &&
           iron__ledger_u32(header + 16) < iron__ledger_u32(header + 20);
}

uint32_t iron__ledger_frame_crc(const unsigned char *frame, uint32_t bytes) {
    uint32_t head = iron__crc32(frame, 8); /* kind and length */

    return head ^ iron__crc32(frame + LEDGER_FRAME_BYTES, bytes);
}

size_t iron__ledger_frame(const unsigned char *at, size_t left) {
    uint32_t kind, bytes;

    if (left < LEDGER_FRAME_BYTES)
        return 0;
    kind = iron__ledger_u32(at);
    bytes = iron__ledger_u32(at + 4);
    if (bytes > LEDGER_FRAME_MAX || left - LEDGER_FRAME_BYTES < bytes ||
        iron__ledger_u32(at + 8) != iron__ledger_frame_crc(at, bytes))
        return 0;
    if ((kind == LEDGER_STEP && bytes < LEDGER_STEP_BYTES) ||
        (kind == LEDGER_RESUME && bytes != LEDGER_RESUME_BYTES) ||
        (kind == LEDGER_END && bytes != LEDGER_END_BYTES) || kind < LEDGER_STEP ||
        kind > LEDGER_END)
        return 0;
    return LEDGER_FRAME_BYTES + (size_t)bytes;
}

iron__ledger_step iron__ledger_step_read(const unsigned char *p) {
    return (iron__ledger_step){
        .step = iron__ledger_u64(p),
        .micro = iron__ledger_u32(p + 8),
        .epoch = iron__ledger_u32(p + 12),
        .tokens = iron__ledger_u64(p + 16),
        .seal = {iron__ledger_u64(p + 24), iron__ledger_u64(p + 32)},
        .bag = {iron__ledger_u64(p + 40), iron__ledger_u64(p + 48), iron__ledger_u64(p + 56)},
        .time_ns = iron__ledger_u64(p + 64),
    };
}

const unsigned char *iron__ledger_samples(const iron_ledgers *l, const iron__ledger_entry *e,
                                          uint64_t *count) {
    const unsigned char *payload = iron__ledger_payload(l, e);
    uint32_t bytes = iron__ledger_u32(payload - LEDGER_FRAME_BYTES + 4);

    *count = (bytes - LEDGER_STEP_BYTES) / LEDGER_SAMPLE_BYTES;
    return payload + LEDGER_STEP_BYTES;
}

size_t iron__ledger_step_end(const iron__ledger_entry *e, size_t from, size_t count) {
    size_t end = from + 1;

    while (end < count && e[end].step == e[from].step)
        end++;
    return end;
}

size_t iron__ledger_unit_end(const iron__ledger_entry *e, size_t from, size_t count) {
    size_t end = from + 1;

    while (end < count && e[end].step == e[from].step && e[end].file == e[from].file)
        end++;
    return end;
}

iron_bag iron__ledger_bag(const iron_ledgers *l, const iron__ledger_entry *e, size_t from,
                          size_t end) {
    iron_bag sum = {0, 0, 0};

    for (size_t k = from; k < end; k++) {
        iron__ledger_step s = iron__ledger_read(l, &e[k]);

        iron_bag_merge(&sum, &s.bag);
    }
    return sum;
}

/* Files. */

static iron_status add_part(iron__ledger_file *f, uint32_t world, uint64_t time_ns,
                            iron_error *err) {
    if (!IRON_ARRAY_GROW(&f->parts, f->part_count, &f->part_capacity))
        return iron__no_memory(err, f->info.path);
    f->parts[f->part_count++] = (iron__ledger_part){.world = world, .time_ns = time_ns};
    f->info.world = world;
    f->info.resumes = (uint32_t)f->part_count - 1;
    return IRON_OK;
}

static iron_status add_step(iron_ledgers *l, iron__ledger_file *f, size_t offset, iron_error *err) {
    iron__ledger_step s = iron__ledger_step_read(f->map + offset);
    iron_ledger_info *info = &f->info;

    if (!IRON_ARRAY_GROW(&l->entries, l->count, &l->capacity))
        return iron__no_memory(err, info->path);
    l->entries[l->count++] = (iron__ledger_entry){
        .step = s.step,
        .offset = offset,
        .file = (uint32_t)(f - l->files),
        .micro = s.micro,
        .epoch = s.epoch,
        .generation = (uint32_t)f->part_count - 1, /* of this file, until all are known */
    };
    if (info->records++ == 0) {
        info->first_step = s.step;
        info->first_epoch = s.epoch;
    }
    info->last_step = s.step;
    info->last_epoch = s.epoch;
    info->samples += s.bag.samples;
    info->tokens += s.tokens;
    return IRON_OK;
}

static iron_status read_frames(iron_ledgers *l, iron__ledger_file *f, iron_error *err) {
    size_t at = f->is_borrowed ? 0 : LEDGER_HEADER_BYTES, bytes;

    if (!f->is_borrowed)
        IRON_TRY(add_part(f, iron__ledger_u32(f->map + 20), iron__ledger_u64(f->map + 24), err));
    IRON_FAIL_IF(f->is_borrowed && (iron__ledger_frame(f->map, (size_t)f->info.bytes) == 0 ||
                                    iron__ledger_u32(f->map) != LEDGER_RESUME),
                 err, IRON_E_FORMAT, "the records of %.80s do not begin with their header",
                 f->info.path);
    for (; at < f->info.bytes; at += bytes) {
        const unsigned char *frame = f->map + at, *payload = frame + LEDGER_FRAME_BYTES;
        size_t left = (size_t)f->info.bytes - at;
        uint32_t claimed;

        bytes = iron__ledger_frame(frame, left);
        if (bytes == 0) { /* the torn end of the file, or damage if a whole frame follows */
            claimed = left >= LEDGER_FRAME_BYTES ? iron__ledger_u32(frame + 4) : UINT32_MAX;
            f->info.torn = left;
            f->info.is_closed = false;
            IRON_FAIL_IF(
                claimed <= LEDGER_FRAME_MAX && left - LEDGER_FRAME_BYTES > claimed &&
                    iron__ledger_frame(payload + claimed, left - LEDGER_FRAME_BYTES - claimed) > 0,
                err, IRON_E_FORMAT,
                "%.120s is damaged at byte %zu, after record %" PRIu64 "; restore it from a copy",
                f->info.path, at, f->info.records);
            break;
        }
        f->info.is_closed = iron__ledger_u32(frame) == LEDGER_END;
        if (iron__ledger_u32(frame) == LEDGER_STEP)
            IRON_TRY(add_step(l, f, at + LEDGER_FRAME_BYTES, err));
        else if (iron__ledger_u32(frame) == LEDGER_RESUME)
            IRON_TRY(add_part(f, iron__ledger_u32(payload), iron__ledger_u64(payload + 8), err));
    }
    return IRON_OK;
}

/* Maps a file of at least a header. *is_ledger: it begins like one. */
static iron_status map_file(iron__ledger_file *f, bool *is_ledger, iron_error *err) {
    int fd = open(f->info.path, O_RDONLY | O_CLOEXEC);
    unsigned char header[LEDGER_HEADER_BYTES];
    iron_status status = IRON_OK;
    struct stat about;
    void *map;

    *is_ledger = false;
    if (fd < 0 || fstat(fd, &about) != 0) {
        status = iron__fail_path(err, "open", f->info.path, errno);
    } else if (S_ISREG(about.st_mode) && about.st_size >= LEDGER_HEADER_BYTES &&
               pread(fd, header, sizeof header, 0) == (ssize_t)sizeof header &&
               iron__ledger_header_is_valid(header)) {
        *is_ledger = true;
        f->info.bytes = (uint64_t)about.st_size;
        f->info.rank = iron__ledger_u32(header + 16);
        f->info.has_samples = !(iron__ledger_u32(header + 32) & LEDGER_WITHOUT_SAMPLES);
        map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
            status = iron__fail_path(err, "map", f->info.path, errno);
        else
            f->map = map;
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* Adds a file if it is a ledger. */
static iron_status add_file(iron_ledgers *l, const char *path, bool *is_ledger, iron_error *err) {
    char *copy = strdup(path);
    iron__ledger_file f = {.info = {.struct_size = sizeof f.info, .path = copy}};
    iron_status status;

    if (!copy || !IRON_ARRAY_GROW(&l->files, l->file_count, &l->file_capacity)) {
        free(copy);
        return iron__no_memory(err, path);
    }
    status = map_file(&f, is_ledger, err);
    if (*is_ledger)
        l->files[l->file_count++] = f;
    else
        free(copy);
    return status;
}

static iron_status add_folder(iron_ledgers *l, const char *path, iron_error *err) {
    DIR *folder = opendir(path);
    size_t before = l->file_count;
    const struct dirent *entry;
    iron_status status = IRON_OK;
    char *name = NULL;
    bool is_ledger;

    if (!folder)
        return iron__fail_path(err, "open", path, errno);
    while (status == IRON_OK && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        name = iron__print("%s/%s", path, entry->d_name);
        status = name ? add_file(l, name, &is_ledger, err) : iron__no_memory(err, path);
        free(name);
    }
    closedir(folder);
    if (status == IRON_OK && l->file_count == before)
        status = iron__fail(
            err, IRON_E_ARG, 0,
            "%.160s contains no ledgers; name the folder that the Recorder wrote to", path);
    return status;
}

static iron_status add_path(iron_ledgers *l, const char *path, iron_error *err) {
    struct stat about;
    bool is_ledger;

    if (stat(path, &about) != 0)
        return iron__fail_path(err, "open", path, errno);
    if (S_ISDIR(about.st_mode))
        return add_folder(l, path, err);
    IRON_TRY(add_file(l, path, &is_ledger, err));
    IRON_FAIL_IF(!is_ledger, err, IRON_E_FORMAT,
                 "%.160s is not a ledger; ledgers are written by the Recorder of iron_tokens",
                 path);
    return IRON_OK;
}

static int compare_files(const void *a, const void *b) {
    const iron__ledger_file *x = a, *y = b;

    return x->info.rank != y->info.rank
               ? (x->info.rank > y->info.rank) - (x->info.rank < y->info.rank)
               : strcmp(x->info.path, y->info.path);
}

/* Sorts the files by rank, and reads them. */
static iron_status read_files(iron_ledgers *l, iron_error *err) {
    if (l->file_count > 1)
        qsort(l->files, l->file_count, sizeof *l->files, compare_files);
    for (size_t k = 0; k < l->file_count; k++) {
        IRON_FAIL_IF(k > 0 && l->files[k].info.rank == l->files[k - 1].info.rank, err, IRON_E_ARG,
                     "%.80s and %.80s are both of rank %" PRIu32
                     "; a run has one ledger for each rank",
                     l->files[k - 1].info.path, l->files[k].info.path, l->files[k].info.rank);
        IRON_TRY(read_frames(l, &l->files[k], err));
    }
    return IRON_OK;
}

/* Generations. */

static uint64_t distance(uint64_t x, uint64_t y) { return x > y ? x - y : y - x; }

/* The generations of a file's parts. All ranks have seen those whose world is large enough for
 * them; a rank that has missed some is matched by world and time. */
static void match_parts(const iron_ledgers *l, iron__ledger_file *f) {
    size_t expected = 0, g = 0;

    for (size_t k = 0; k < l->generation_count; k++)
        expected += l->generations[k].world > f->info.rank;
    for (size_t k = 0; k < f->part_count; k++) {
        iron__ledger_part *part = &f->parts[k];
        size_t left = f->part_count - 1 - k, best = l->generation_count;

        for (size_t at = g; at + left < l->generation_count; at++) {
            const iron__ledger_generation *to = &l->generations[at];
            bool fits = to->world > f->info.rank && to->world == part->world;

            if (fits && (best == l->generation_count ||
                         distance(to->time_ns, part->time_ns) <
                             distance(l->generations[best].time_ns, part->time_ns)))
                best = at;
            if (fits && expected == f->part_count)
                break;
        }
        part->generation = (uint32_t)(best < l->generation_count ? best : l->generation_count - 1);
        g = part->generation + 1;
    }
}

static iron_status find_generations(iron_ledgers *l, iron_error *err) {
    const iron__ledger_file *most = &l->files[0];

    for (size_t k = 1; k < l->file_count; k++)
        if (l->files[k].part_count > most->part_count)
            most = &l->files[k];
    l->generation_count = most->part_count;
    IRON_TRY(IRON_NEW(&l->generations, most->part_count, most->info.path, err));
    for (size_t k = 0; k < most->part_count; k++)
        l->generations[k] = (iron__ledger_generation){.world = most->parts[k].world,
                                                      .time_ns = most->parts[k].time_ns,
                                                      .first_step = UINT64_MAX};
    for (size_t k = 0; k < l->file_count; k++)
        match_parts(l, &l->files[k]);
    for (size_t k = 0; k < l->count; k++) {
        iron__ledger_entry *e = &l->entries[k];
        iron__ledger_generation *g;

        e->generation = l->files[e->file].parts[e->generation].generation;
        g = &l->generations[e->generation];
        g->first_step = e->step < g->first_step ? e->step : g->first_step;
        g->last_step = e->step > g->last_step ? e->step : g->last_step;
    }
    for (size_t k = l->generation_count, limit = SIZE_MAX; k-- > 0;) {
        l->generations[k].limit = limit;
        limit = l->generations[k].first_step < limit ? l->generations[k].first_step : limit;
    }
    return IRON_OK;
}

/* Which records count. */

static int compare_entries(const void *a, const void *b) {
    const iron__ledger_entry *x = a, *y = b;

#define BY(member)                                                                                 \
    if (x->member != y->member)                                                                    \
    return x->member < y->member ? -1 : 1
    BY(step);
    BY(file); /* which are sorted by rank */
    BY(micro);
    BY(generation);
    BY(offset);
#undef BY
    return 0;
}

static bool counts(const iron_ledgers *l, size_t k) {
    const iron__ledger_entry *e = &l->entries[k];
    bool is_last =
        k + 1 == l->count || e[1].step != e->step || e[1].file != e->file || e[1].micro != e->micro;

    return is_last && e->step < l->generations[e->generation].limit;
}

/* Moves the records that do not count behind those that do; both stay sorted. */
static iron_status divide(iron_ledgers *l, iron_error *err) {
    size_t kept = 0, history = 0;
    iron__ledger_entry *old;

    for (size_t k = 0; k < l->count; k++)
        kept += counts(l, k);
    IRON_TRY(IRON_NEW(&old, l->count - kept, "the records of a run", err));
    kept = 0;
    for (size_t k = 0; k < l->count; k++) {
        bool is_counted = counts(l, k); /* looks at the next one, which has not moved */
        iron__ledger_entry e = l->entries[k];

        if (is_counted) {
            l->entries[kept++] = e;
        } else {
            old[history++] = e;
            l->files[e.file].info.superseded++;
        }
    }
    if (history > 0)
        memcpy(l->entries + kept, old, history * sizeof *old);
    free(old);
    l->history = l->entries + kept;
    l->history_count = history;
    l->count = kept;
    return IRON_OK;
}

static iron_status prepare(iron_ledgers *l, iron_error *err) {
    IRON_TRY(read_files(l, err));
    IRON_TRY(find_generations(l, err));
    for (size_t k = 1; k < l->count; k++)
        if (compare_entries(&l->entries[k - 1], &l->entries[k]) > 0) {
            qsort(l->entries, l->count, sizeof *l->entries, compare_entries);
            break;
        }
    IRON_TRY(divide(l, err));
    for (size_t k = 0; k < l->count; k = iron__ledger_step_end(l->entries, k, l->count))
        l->steps++;
    for (size_t k = 0; k < l->file_count; k++)
        l->ranks += l->files[k].info.records > l->files[k].info.superseded;
    return IRON_OK;
}

/* Reads the files, if all could be added. Takes the ledgers. */
static iron_status finish(iron_ledgers *l, iron_status status, iron_ledgers **out,
                          iron_error *err) {
    if (status == IRON_OK)
        status = prepare(l, err);
    if (status != IRON_OK)
        iron_ledgers_close(l);
    *out = status == IRON_OK ? l : NULL;
    return status;
}

iron_status iron__ledgers_of_frames(const iron__ledger_frames *ranks, size_t count,
                                    iron_ledgers **out, iron_error *err) {
    iron_ledgers *l = calloc(1, sizeof *l);
    bool has_room = l && count > 0 && (l->files = calloc(count, sizeof *l->files));

    for (size_t k = 0; has_room && k < count; k++) {
        iron__ledger_file *f = &l->files[l->file_count++];

        *f = (iron__ledger_file){.info = {.struct_size = sizeof f->info,
                                          .path = iron__print("rank %" PRIu32, ranks[k].rank),
                                          .bytes = ranks[k].count,
                                          .rank = ranks[k].rank,
                                          .has_samples = true},
                                 .map = ranks[k].bytes,
                                 .is_borrowed = true};
        has_room = f->info.path != NULL;
    }
    return finish(l, has_room ? IRON_OK : iron__no_memory(err, "the ledgers of a run"), out, err);
}

iron_status iron_ledgers_open(const char *const *paths, size_t count, iron_ledgers **out,
                              iron_error *err) {
    iron_ledgers *l;
    iron_status status = IRON_NEW(&l, 1, "ledgers", err);

    for (size_t k = 0; status == IRON_OK && k < count; k++)
        status = add_path(l, paths[k], err);
    if (status == IRON_OK && l->file_count == 0)
        status = iron__fail(err, IRON_E_ARG, 0, "no ledgers; name files, or a folder of them");
    return finish(l, status, out, err);
}

void iron_ledgers_close(iron_ledgers *l) {
    if (!l)
        return;
    for (size_t k = 0; k < l->file_count; k++) {
        iron__ledger_file *f = &l->files[k];

        if (f->map && !f->is_borrowed)
            munmap((void *)(uintptr_t)f->map, (size_t)f->info.bytes);
        free((char *)(uintptr_t)f->info.path);
        free(f->parts);
    }
    free(l->files);
    free(l->generations);
    free(l->entries);
    free(l);
}

/* What a caller sees. */

iron_status iron_ledgers_summarize(const iron_ledgers *l, iron_ledgers_summary *s,
                                   iron_error *err) {
    uint32_t world = 0, next = 0;

    IRON_TRY(iron__struct_check(s, sizeof *s, "iron_ledgers_summary", err));
    *s = (iron_ledgers_summary){
        .struct_size = sizeof *s,
        .world = l->generations[l->generation_count - 1].world,
        .ledgers = l->file_count,
        .ranks = l->ranks,
        .steps = l->steps,
        .records = l->count + l->history_count,
        .superseded = l->history_count,
    };
    /* ranks of the largest world, without a ledger */
    for (size_t k = 0; k < l->generation_count; k++)
        if (l->generations[k].world > world)
            world = l->generations[k].world;
    while (next < l->file_count && next == l->files[next].info.rank)
        next++;
    s->missing_ranks = world > l->file_count ? world - (uint32_t)l->file_count : 0;
    s->first_missing_rank = next;
    if (l->count > 0) {
        s->first_step = l->entries[0].step;
        s->last_step = l->entries[l->count - 1].step;
    }
    for (size_t k = 0; k < l->count; k++) {
        iron__ledger_step step = iron__ledger_read(l, &l->entries[k]);

        s->samples += step.bag.samples;
        s->tokens += step.tokens;
    }
    return IRON_OK;
}

iron_status iron_ledgers_at(const iron_ledgers *l, size_t index, iron_ledger_info *info,
                            iron_error *err) {
    IRON_TRY(iron__struct_check(info, sizeof *info, "iron_ledger_info", err));
    IRON_FAIL_IF(index >= l->file_count, err, IRON_E_ARG, "ledger %zu of %zu", index,
                 l->file_count);
    *info = l->files[index].info;
    return IRON_OK;
}

uint64_t iron_ledgers_record_count(const iron_ledgers *l) { return l->count; }

iron_status iron_ledgers_record(const iron_ledgers *l, uint64_t index, iron_ledger_record *record,
                                iron_error *err) {
    iron__ledger_step s;

    IRON_TRY(iron__struct_check(record, sizeof *record, "iron_ledger_record", err));
    IRON_FAIL_IF(index >= l->count, err, IRON_E_ARG, "record %" PRIu64 " of %zu", index, l->count);
    s = iron__ledger_read(l, &l->entries[index]);
    *record = (iron_ledger_record){
        .struct_size = sizeof *record,
        .rank = iron__ledger_rank(l, &l->entries[index]),
        .micro = s.micro,
        .epoch = s.epoch,
        .step = s.step,
        .tokens = s.tokens,
        .time_ns = s.time_ns,
        .bag = s.bag,
    };
    snprintf(record->seal, sizeof record->seal, "%016" PRIx64 "%016" PRIx64, s.seal[0], s.seal[1]);
    return IRON_OK;
}
