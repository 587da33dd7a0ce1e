/* SPDX-License-Identifier: MIT */
/*
 * ranks.c: begin and end, agreeing on errors, and the check that all ranks were given the same
 * work. MPI's own errors end the job: that is what its default error handler does.
 */
#include "ranks.h"

#include <mpi.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

ranks ranks_begin(int *argc, char ***argv) {
    ranks r;
    int provided;

    /* the library's threads never call MPI */
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.count);
    return r;
}

void ranks_end(void) { MPI_Finalize(); }

iron_status ranks_agree(const ranks *r, iron_status status, iron_error *err) {
    /* the first rank that failed, and -1 if there is one that did not */
    int mine[2] = {status == IRON_OK ? r->count : r->rank, status == IRON_OK ? -1 : 0}, all[2];
    iron_error first = *err;

    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all[0] == r->count)
        return IRON_OK;
    first.status = status;
    MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, all[0], MPI_COMM_WORLD);
    *err = first;
    if (all[1] == -1)
        snprintf(err->text, sizeof err->text, "rank %d: %.220s", all[0], first.text);
    return first.status;
}

/* FNV-1a, the end of each text included. */
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

static iron_status fail(iron_error *err, const char *text) {
    *err = (iron_error){.status = IRON_E_ARG};
    snprintf(err->text, sizeof err->text, "%s", text);
    return IRON_E_ARG;
}

static iron_status check_regular(const char *path, iron_error *err) {
    bool is_stdin = strcmp(path, "-") == 0;
    struct stat info;
    char text[240];

    if (!is_stdin && stat(path, &info) == 0 && S_ISREG(info.st_mode))
        return IRON_OK;
    snprintf(text, sizeof text,
             "%.120s is no file on a disk, and ranks read ranges of files; iron reads pipes",
             is_stdin ? "standard input" : path);
    return fail(err, text);
}

rank_view rank_view_begin(const char *command, int argc, char **argv) {
    rank_view v = {.hash = hash_text(UINT64_C(0xCBF29CE484222325), command)};

    for (int k = 0; k < argc; k++)
        v.hash = hash_text(v.hash, argv[k]);
    return v;
}

iron_status rank_view_add(rank_view *view, const iron_source *source, iron_error *err) {
    iron_status status = IRON_OK;

    view->hash = hash_number(view->hash, (uint64_t)iron_source_dtype(source));
    for (size_t k = 0; k < iron_source_file_count(source) && status == IRON_OK; k++) {
        status = check_regular(iron_source_file(source, k), err);
        view->hash = hash_text(view->hash, iron_source_file(source, k));
        view->hash = hash_text(view->hash, iron_source_file_format(source, k));
        view->hash = hash_number(view->hash, iron_source_file_tokens(source, k));
    }
    view->files += iron_source_file_count(source);
    view->tokens += iron_source_tokens(source);
    return status;
}

iron_status ranks_same_view(const ranks *r, iron_status status, const rank_view *view,
                            iron_error *err) {
    rank_view first = *view;
    char text[240];

    status = ranks_agree(r, status, err); /* whoever failed has seen nothing to compare */
    if (status != IRON_OK)
        return status;
    MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (memcmp(view, &first, sizeof first) != 0) {
        snprintf(text, sizeof text,
                 "sees other files or arguments than rank 0: %" PRIu64 " files of %" PRIu64
                 " tokens, rank 0 %" PRIu64 " of %" PRIu64 "; give all the same",
                 view->files, view->tokens, first.files, first.tokens);
        status = fail(err, text);
    }
    return ranks_agree(r, status, err);
}

void ranks_send(const void *data, size_t bytes) {
    MPI_Send(data, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

void ranks_receive(int from, void *data, size_t bytes) {
    MPI_Recv(data, (int)bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
