/* SPDX-License-Identifier: MIT */
/*
 * reduce_ranks.c: what the ranks found becomes one result.
 *
 * Digests merge in any order and effects of neighbours in theirs: two operations of our own, which
 * MPI_Allreduce applies as a tree over the ranks. An operation cannot fail, so what does not fit is
 * marked by a struct_size of 0, which nothing accepts afterwards.
 *
 * Statistics have no fixed length (a histogram, lengths of documents): they go up a tree of our
 * own, to the left neighbour at distance 1, 2, 4, ..., so that what is appended always follows
 * directly:
 *
 *     0 1 2 3 4 5 6     0 <- 1, 2 <- 3, 4 <- 5;  0 <- 2, 4 <- 6;  0 <- 4
 */
#include "ranks.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

static iron_status no_memory(iron_error *err, size_t bytes) {
    *err = (iron_error){.status = IRON_E_NOMEM};
    snprintf(err->text, sizeof err->text, "out of memory: %zu bytes for what ranks exchange",
             bytes);
    return IRON_E_NOMEM;
}

static iron_status is_whole(uint32_t struct_size, iron_error *err) {
    if (struct_size > 0)
        return IRON_OK;
    *err = (iron_error){.status = IRON_E_STATE};
    snprintf(err->text, sizeof err->text,
             "the ranks' results do not fit together; are all of one version?");
    return IRON_E_STATE;
}

/* `mine` becomes what all ranks have, combined in rank order. */
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

/* These have the type that MPI wants; *length elements, `lower` from the lower ranks. */
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
        status = is_whole(results[k].struct_size, err);
    return ranks_agree(r, status, err);
}

void ranks_largest(double *numbers, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

iron_status ranks_join_effects(const ranks *r, iron_effect *effect, int32_t *additions,
                               size_t nodes, iron_error *err) {
    combine(effect, 1, sizeof *effect, join_effects, 0);
    MPI_Allreduce(MPI_IN_PLACE, additions, (int)nodes, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    return ranks_agree(r, is_whole(effect->struct_size, err), err);
}

/* Messages are counted in words by an int: 16 GiB, and a histogram has half a GiB at most. */
static iron_status send_stat(int to, const iron_stat *stat, iron_error *err) {
    uint64_t count = stat ? iron_stat_words(stat, NULL, 0) : 0;
    uint64_t *words = count ? malloc((size_t)count * sizeof *words) : NULL;
    bool has_room = words || count == 0;

    if (words)
        iron_stat_words(stat, words, (size_t)count);
    else
        count = 0;
    MPI_Send(&count, 1, MPI_UINT64_T, to, 0, MPI_COMM_WORLD);
    if (count > 0)
        MPI_Send(words, (int)count, MPI_UINT64_T, to, 0, MPI_COMM_WORLD);
    free(words);
    return has_room ? IRON_OK : no_memory(err, iron_stat_words(stat, NULL, 0) * sizeof *words);
}

/* On top of *stat, or in its place where there is none yet. */
static iron_status take_words(iron_stat **stat, const uint64_t *words, size_t count,
                              iron_error *err) {
    iron_stat *next = NULL;
    iron_status status = iron_stat_from_words(words, count, &next, err);

    if (status == IRON_OK && !*stat) {
        *stat = next;
        return IRON_OK;
    }
    if (status == IRON_OK)
        status = iron_stat_append(*stat, next, err);
    iron_stat_destroy(next);
    return status;
}

/* Takes what is sent in any case, for the sender waits; uses it if all was well so far. */
static iron_status receive_stat(int from, iron_stat **stat, iron_status status, iron_error *err) {
    uint64_t count, *words;

    MPI_Recv(&count, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (count == 0)
        return status;
    words = malloc((size_t)count * sizeof *words);
    if (!words) {
        fprintf(stderr, "iron-mpi: out of memory for the statistics of rank %d\n", from);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return IRON_E_NOMEM;
    }
    MPI_Recv(words, (int)count, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (status == IRON_OK)
        status = take_words(stat, words, (size_t)count, err);
    free(words);
    return status;
}

iron_status ranks_append_stats(const ranks *r, iron_stat **stat, iron_error *err) {
    iron_status status = IRON_OK;

    for (int step = 1; step < r->count; step *= 2) {
        if (r->rank % (2 * step) != 0) {
            if (status == IRON_OK)
                status = send_stat(r->rank - step, *stat, err);
            else
                send_stat(r->rank - step, NULL, err);
            iron_stat_destroy(*stat);
            *stat = NULL;
            break;
        }
        if (r->rank + step < r->count)
            status = receive_stat(r->rank + step, stat, status, err);
    }
    return ranks_agree(r, status, err);
}
