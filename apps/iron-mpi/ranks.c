/* SPDX-License-Identifier: MIT */
/*
 * ranks.c: everything that calls MPI: start and end, agreement on errors, the check that all ranks
 * work on the same files, and the reductions. An error inside MPI ends the job, which is what its
 * default error handler does.
 *
 * Digests merge in any order, effects of neighbouring ranges in their order: two operations of our
 * own, which MPI_Allreduce applies as a tree over the ranks. Such an operation cannot fail, so a
 * result that does not fit is marked with a struct_size of 0, which every later call refuses.
 *
 * Statistics have no fixed length (a histogram, lengths of documents). They are sent up a tree of
 * our own, to the left neighbour at distance 1, 2, 4, ..., so that what is appended always follows
 * directly:
 *
 *     0 1 2 3 4 5 6     0 <- 1, 2 <- 3, 4 <- 5;  0 <- 2, 4 <- 6;  0 <- 4
 */
#include "ranks.h"

#include <mpi.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static ranks here;

void ranks_begin(int *argc, char ***argv) {
    MPI_Comm machine;
    int provided;

    /* the threads of the library never call MPI */
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &here.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &here.count);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, here.rank, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &here.place);
    MPI_Comm_free(&machine);
}

void ranks_end(void) { MPI_Finalize(); }

ranks *ranks_here(void) { return &here; }

iron_status ranks_agree(const ranks *r, iron_status status, iron_error *err) {
    /* minimum over the ranks: the first rank that failed, and -1 if a rank did not fail */
    int mine[2] = {status == IRON_OK ? r->count : r->rank, status == IRON_OK ? -1 : 0}, all[2];
    iron_error first = *err;

    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all[0] == r->count)
        return IRON_OK;
    first.status = status;
    MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, all[0], MPI_COMM_WORLD);
    *err = first;
    if (all[1] == -1 && first.text[0]) /* --strict has no text */
        snprintf(err->text, sizeof err->text, "rank %d: %.220s", all[0], first.text);
    return first.status;
}

/* Finds the device for this rank; false: the backend has none. */
static bool device_of_place(const char *backend, bool only_gpus, int place, size_t *device) {
    size_t list[256], devices = iron_device_count(backend), count = 0;
    iron_device_info info = {.struct_size = sizeof info};

    for (size_t k = 0; k < devices && count < COUNT(list); k++)
        if (!only_gpus || (iron_device_at(backend, k, &info, NULL) == IRON_OK && info.is_gpu))
            list[count++] = k;
    if (count > 0)
        *device = list[(size_t)place % count];
    return count > 0;
}

void ranks_choose_device(const ranks *r, const char **backend, const char **devices) {
    static char text[24];
    bool is_any = !*backend || strcmp(*backend, "auto") == 0;
    size_t device = 0;

    if (!*devices || strcmp(*devices, "auto") != 0)
        return;
    if (!is_any)
        device_of_place(*backend, false, r->place, &device); /* without devices: an error later */
    else if (device_of_place("cuda", true, r->place, &device))
        *backend = "cuda";
    else
        *backend = device_of_place("opencl", true, r->place, &device) ? "opencl" : "cpu";
    snprintf(text, sizeof text, "%zu", device);
    *devices = text;
}

iron_status ranks_gather(const ranks *r, uint64_t number, uint64_t **numbers, iron_error *err) {
    uint64_t *all = r->rank == 0 ? malloc((size_t)r->count * sizeof *all) : NULL;
    iron_status status = r->rank == 0 && !all
                             ? usage(err, "out of memory for the numbers of %d ranks", r->count)
                             : IRON_OK;

    status = ranks_agree(r, status, err);
    if (status == IRON_OK)
        MPI_Gather(&number, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    *numbers = all;
    return status;
}

/* FNV-1a, including the zero at the end of each text. */
static uint64_t hash_text(uint64_t hash, const char *text) {
    do
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    while (*text++);
    return hash;
}

static uint64_t hash_number(uint64_t hash, uint64_t number) {
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return hash_text(hash, digits);
}

void ranks_note_command(ranks *r, const char *command_name, int argc, char **argv) {
    r->hash = hash_text(UINT64_C(0xCBF29CE484222325), command_name);
    for (int k = 0; k < argc; k++)
        r->hash = hash_text(r->hash, argv[k]);
}

iron_status ranks_note_files(ranks *r, const iron_source *source, iron_error *err) {
    size_t pipes = 0;

    r->hash = hash_number(r->hash, (uint64_t)iron_source_dtype(source));
    for (size_t k = 0; k < iron_source_file_count(source); k++) {
        const char *path = iron_source_file(source, k);
        bool is_pipe =
            strcmp(path, "-") == 0 || iron_source_file_tokens(source, k) == IRON_COUNT_UNKNOWN;

        if (is_pipe && !iron_source_is_seekable(source) && pipes++ == 0)
            usage(err,
                  "%.120s is not a regular file, and ranks read ranges of files; use iron for "
                  "pipes",
                  strcmp(path, "-") == 0 ? "standard input" : path);
        r->hash = hash_text(r->hash, iron_source_file(source, k));
        r->hash = hash_text(r->hash, iron_source_file_format(source, k));
        r->hash = hash_number(r->hash, iron_source_file_tokens(source, k));
    }
    r->files += iron_source_file_count(source);
    r->tokens += iron_source_tokens(source);
    return pipes ? IRON_E_ARG : IRON_OK;
}

iron_status ranks_work_on_same(const ranks *r, iron_status status, iron_error *err) {
    ranks first = *r;

    IRON_TRY(ranks_agree(r, status, err)); /* a rank that failed has nothing to compare */
    MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (r->hash != first.hash || r->files != first.files || r->tokens != first.tokens)
        status = usage(err,
                       "has other files or arguments than rank 0: %" PRIu64 " files with %" PRIu64
                       " tokens, rank 0 has %" PRIu64 " with %" PRIu64 "; give all ranks the same",
                       r->files, r->tokens, first.files, first.tokens);
    return ranks_agree(r, status, err);
}

void ranks_send(const void *data, size_t bytes) {
    MPI_Send(data, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

void ranks_receive(int from, void *data, size_t bytes) {
    MPI_Recv(data, (int)bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static iron_status check_fits(uint32_t struct_size, iron_error *err) {
    if (struct_size > 0)
        return IRON_OK;
    usage(err, "the results of the ranks do not fit together; use the same version on all ranks");
    return err->status = IRON_E_STATE;
}

/* Replaces `mine` by the values of all ranks, combined in rank order. */
static void combine(void *mine, size_t count, size_t bytes, MPI_User_function *with,
                    int is_commutative) {
    MPI_Datatype type;
    MPI_Op operation;

    MPI_Type_contiguous((int)bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(with, is_commutative, &operation);
    MPI_Allreduce(MPI_IN_PLACE, mine, (int)count, type, operation, MPI_COMM_WORLD);
    MPI_Op_free(&operation);
    MPI_Type_free(&type);
}

/* Two functions of the type MPI_User_function: *length elements; `lower` comes from lower ranks. */
static void add_results(void *lower, void *higher, int *length, MPI_Datatype *type) {
    const iron_digest_result *from = lower;
    iron_digest_result *to = higher;

    (void)type;
    for (int k = 0; k < *length; k++)
        if (iron_digest_result_add(&to[k], &from[k], NULL) != IRON_OK)
            to[k].struct_size = 0;
}

static void join_effects(void *lower, void *higher, int *length, MPI_Datatype *type) {
    const iron_effect *before = lower;
    iron_effect *after = higher;

    (void)type;
    for (int k = 0; k < *length; k++) {
        iron_effect joined = before[k];

        if (iron_effect_join(&joined, &after[k], NULL) != IRON_OK)
            joined.struct_size = 0;
        after[k] = joined;
    }
}

iron_status ranks_add_results(const ranks *r, iron_digest_result *results, size_t count,
                              iron_error *err) {
    iron_status status = IRON_OK;

    combine(results, count, sizeof *results, add_results, 1);
    for (size_t k = 0; k < count && status == IRON_OK; k++)
        status = check_fits(results[k].struct_size, err);
    return ranks_agree(r, status, err);
}

void ranks_add(uint64_t *numbers, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

void ranks_largest(double *numbers, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

iron_status ranks_join_effects(const ranks *r, iron_effect *effect, int32_t *additions,
                               size_t nodes, iron_error *err) {
    combine(effect, 1, sizeof *effect, join_effects, 0);
    MPI_Allreduce(MPI_IN_PLACE, additions, (int)nodes, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    return ranks_agree(r, check_fits(effect->struct_size, err), err);
}

/* MPI counts words in an int, which allows 16 GiB; a histogram has at most half a GiB. */
static iron_status send_stat(int to, const iron_stat *stat, iron_error *err) {
    size_t count = stat ? (size_t)iron_stat_words(stat, NULL, 0) : 0;
    uint64_t *words = count ? malloc(count * sizeof *words) : NULL;

    if (words)
        iron_stat_words(stat, words, count);
    MPI_Send(words, words ? (int)count : 0, MPI_UINT64_T, to, 0, MPI_COMM_WORLD);
    if (!words && count > 0) {
        usage(err, "out of memory for %zu bytes of statistics to send", count * sizeof *words);
        return err->status = IRON_E_NOMEM;
    }
    free(words);
    return IRON_OK;
}

/* Always receives, because the sender waits. Appends to *stat, or sets it if it is NULL, but only
 * if nothing has failed so far. */
static iron_status receive_stat(int from, iron_stat **stat, iron_status status, iron_error *err) {
    iron_stat *next = NULL;
    MPI_Status message;
    uint64_t *words;
    int count;

    MPI_Probe(from, 0, MPI_COMM_WORLD, &message);
    MPI_Get_count(&message, MPI_UINT64_T, &count);
    words = malloc(((size_t)count + 1) * sizeof *words);
    if (!words) {
        fprintf(stderr, "iron-mpi: out of memory for the statistics of rank %d\n", from);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return IRON_E_NOMEM;
    }
    MPI_Recv(words, count, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (count > 0 && status == IRON_OK)
        status = iron_stat_from_words(words, (size_t)count, &next, err);
    free(words);
    if (next && *stat)
        status = iron_stat_append(*stat, next, err);
    else if (next)
        *stat = next;
    if (*stat != next)
        iron_stat_destroy(next);
    return status;
}

iron_status ranks_append_stats(const ranks *r, iron_stat **stat, iron_error *err) {
    iron_status status = IRON_OK;

    for (int step = 1; step < r->count; step *= 2) {
        if (r->rank % (2 * step) != 0) {
            if (status == IRON_OK)
                status = send_stat(r->rank - step, *stat, err);
            else
                (void)send_stat(r->rank - step, NULL, NULL);
            iron_stat_destroy(*stat);
            *stat = NULL;
            break;
        }
        if (r->rank + step < r->count)
            status = receive_stat(r->rank + step, stat, status, err);
    }
    return ranks_agree(r, status, err);
}
