/* SPDX-License-Identifier: MIT */
/*
 * state_export.c: where states may go: the check of a target path before hours of work, and the
 * arrays as NumPy files for the next stage.
 */
#include "core/fail.h"
#include "core/output.h"
#include "engine/engine.h"
#include "formats/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

iron_status iron_state_path_check(const char *path, iron_error *err) {
    iron_output *probe = NULL;
    struct stat info;

    IRON_FAIL_IF(strcmp(path, "-") == 0, err, IRON_E_ARG,
                 "a state cannot go to standard output; name a file (./- for one called -)");
    IRON_FAIL_IF(stat(path, &info) == 0 && !S_ISREG(info.st_mode), err, IRON_E_ARG,
                 "%.120s exists and is no regular file; give another name for the state", path);
    /* the way that saving will go, up to the first byte */
    IRON_TRY(iron_output_open(path, &probe, err));
    iron_output_abandon(probe);
    return IRON_OK;
}

static iron_status write_array(const char *directory, const char *name, const char *descr,
                               const void *data, size_t count, iron_output **out, iron_error *err) {
    char *path = NULL;
    iron_status status;

    if (asprintf(&path, "%s/%s.npy", directory, name) < 0)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory");
    status = iron__npy_write(path, descr, data, count, sizeof(uint32_t), out, err);
    free(path);
    return status;
}

#define ARRAYS 3

/* All files are written before the first of them appears. */
iron_status iron_engine_export_npy(iron_engine *engine, const char *directory, iron_error *err) {
    const iron__nodes *n = &engine->nodes;
    const struct {
        const char *name, *descr;
        const void *data;
    } arrays[ARRAYS] = {{"xor_accumulators", "<u4", n->xor_accumulators},
                        {"potentials", "<f4", n->potentials},
                        {"activations", "<f4", n->activations}};
    iron_output *outputs[ARRAYS] = {NULL};
    iron_status status = IRON_OK;
    sigset_t before;

    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return iron__fail(err, IRON_E_IO, errno, "cannot create directory %.120s: %s", directory,
                          strerror(errno));
    IRON_TRY(iron__engine_settle(engine, err));
    iron__interruptions_hold(&before);
    for (int k = 0; k < ARRAYS && status == IRON_OK; k++)
        status = write_array(directory, arrays[k].name, arrays[k].descr, arrays[k].data, n->count,
                             &outputs[k], err);
    for (int k = 0; k < ARRAYS; k++) {
        if (status == IRON_OK)
            status = iron_output_commit(outputs[k], err);
        else
            iron_output_abandon(outputs[k]);
    }
    iron__interruptions_release(&before);
    return status;
}
