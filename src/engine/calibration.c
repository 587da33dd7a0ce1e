/* SPDX-License-Identifier: MIT */
/*
 * calibration.c: keeps calibrations and looks modes up in them. Measuring is in calibrate.c.
 *
 * A calibration is a text file, so that it can be looked at:
 *
 *     iron calibration 1
 *     key cuda|NVIDIA H200|CUDA 13.0, driver 580.159.04|0.1.0
 *     modes atomic2d node hybrid ...
 *     786432 4096 0 0 1523.1 ... 2471.0
 *     end
 *
 * A case a line: tokens of a batch, nodes, and nanoseconds a batch for each mode. A file that is
 * not exactly of this form, or whose key or modes are others, counts as absent.
 */
#include "engine/calibration.h"

#include "core/cache_dir.h"
#include "core/fail.h"
#include "core/fnv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 512

void iron__calibration_key(size_t backend, const iron__gpu_info *info, char *key, size_t size) {
    snprintf(key, size, "%s|%s|%s|%s", iron__gpu_backend_name(backend), info->name, info->driver,
             iron_version());
}

static char *path_of(const char *key) {
    return iron__cache_path("calibration", iron__fnv(IRON_FNV_START, key, strlen(key)), ".txt");
}

static void write_modes(char *line, size_t size) {
    size_t used = (size_t)snprintf(line, size, "modes");

    for (size_t k = 0; iron__tokens_gpu_row_at(k) && used < size; k++)
        used += (size_t)snprintf(line + used, size - used, " %s", iron__tokens_gpu_row_at(k)->mode);
}

static void write_case(const iron__calibration_case *c, char *line, size_t size) {
    size_t used = (size_t)snprintf(line, size, "%" PRIu64 " %" PRIu64, c->batch, c->nodes);

    for (size_t k = 0; k < IRON_CALIBRATION_MODES && used < size; k++)
        used += (size_t)snprintf(line + used, size - used, " %.1f", c->ns[k]);
}

static bool parse_case(const char *line, iron__calibration_case *c) {
    char *at;

    if (strpbrk(line, "-+")) /* strtoull would take them */
        return false;
    c->batch = strtoull(line, &at, 10);
    c->nodes = strtoull(at, &at, 10);
    for (size_t k = 0; k < IRON_CALIBRATION_MODES; k++) {
        const char *before = at;

        c->ns[k] = strtod(before, &at);
        if (at == before || !(c->ns[k] >= 0) || c->ns[k] > 1e18)
            return false;
    }
    return *at == '\0' && c->batch > 0 && c->nodes > 0;
}

/* The next line without its end; false when there is none, or it is too long. */
static bool next_line(FILE *file, char *line) {
    size_t length;

    if (!fgets(line, LINE_BYTES, file))
        return false;
    length = strlen(line);
    if (length == 0 || line[length - 1] != '\n')
        return false;
    line[length - 1] = '\0';
    return true;
}

static bool expect_line(FILE *file, const char *wanted) {
    char line[LINE_BYTES];

    return next_line(file, line) && strcmp(line, wanted) == 0;
}

static bool parse(FILE *file, const char *key, iron__calibration *out) {
    char line[LINE_BYTES];

    snprintf(line, sizeof line, "key %s", key);
    if (!expect_line(file, "iron calibration 1") || !expect_line(file, line))
        return false;
    write_modes(line, sizeof line);
    if (!expect_line(file, line))
        return false;
    for (out->count = 0; next_line(file, line); out->count++) {
        if (strcmp(line, "end") == 0)
            return out->count > 0 && fgetc(file) == EOF;
        if (out->count == IRON_CALIBRATION_CASES || !parse_case(line, &out->cases[out->count]))
            return false;
    }
    return false;
}

bool iron__calibration_load(const char *key, iron__calibration *out) {
    char *path = path_of(key);
    FILE *file = path ? fopen(path, "re") : NULL;
    bool is_there = file && parse(file, key, out);

    if (file)
        fclose(file);
    free(path);
    return is_there;
}

static iron_status write_lines(iron_output *output, const char *key, const iron__calibration *c,
                               iron_error *err) {
    char line[LINE_BYTES], modes[LINE_BYTES / 2], text[2 * LINE_BYTES];

    write_modes(modes, sizeof modes);
    snprintf(text, sizeof text, "iron calibration 1\nkey %.250s\n%s\n", key, modes);
    IRON_TRY(iron_output_write(output, text, strlen(text), err));
    for (size_t k = 0; k < c->count; k++) {
        write_case(&c->cases[k], line, sizeof line);
        IRON_TRY(iron_output_write(output, line, strlen(line), err));
        IRON_TRY(iron_output_write(output, "\n", 1, err));
    }
    return iron_output_write(output, "end\n", 4, err);
}

iron_status iron__calibration_save(const char *key, const iron__calibration *calibration,
                                   iron_error *err) {
    char *path = path_of(key);
    iron_output *output = NULL;
    iron_status status;

    IRON_FAIL_IF(!path, err, IRON_E_IO,
                 "there is no folder for a calibration; set IRON_CACHE_DIR to one");
    iron__cache_make();
    status = iron_output_open(path, &output, err);
    free(path);
    if (status != IRON_OK)
        return status;
    status = write_lines(output, key, calibration, err);
    if (status != IRON_OK) {
        iron_output_abandon(output);
        return status;
    }
    return iron_output_commit(output, err);
}

/* How many times larger one is than the other, whichever way. */
static double ratio(uint64_t a, uint64_t b) {
    return a > b ? (double)a / (double)b : (double)b / (double)a;
}

const iron__calibration_case *iron__calibration_nearest(const iron__calibration *calibration,
                                                        uint64_t batch, uint64_t nodes) {
    const iron__calibration_case *best = NULL;
    double least = 0;

    for (size_t k = 0; k < calibration->count; k++) {
        const iron__calibration_case *c = &calibration->cases[k];
        double distance = ratio(c->batch, batch) * ratio(c->nodes, nodes);

        if (!best || distance < least) {
            best = c;
            least = distance;
        }
    }
    return best;
}

size_t iron__calibration_fastest(const iron__calibration_case *c) {
    size_t best = IRON_CALIBRATION_MODES;

    for (size_t k = 0; k < IRON_CALIBRATION_MODES; k++)
        if (c->ns[k] > 0 && (best == IRON_CALIBRATION_MODES || c->ns[k] < c->ns[best]))
            best = k;
    return best;
}

/* The fastest mode of the nearest case; false where the device has no calibration. */
static bool look_up(const iron_config *config, size_t backend, iron__mode_choice *choice) {
    const iron__calibration_case *c;
    iron__calibration calibration;
    iron__gpu_info info;
    char key[320];
    size_t best;

    if (iron__gpu_describe(backend, config->device, &info, NULL) != IRON_OK)
        return false;
    iron__calibration_key(backend, &info, key, sizeof key);
    if (!iron__calibration_load(key, &calibration))
        return false;
    c = iron__calibration_nearest(&calibration, config->batch, config->nodes);
    best = iron__calibration_fastest(c);
    choice->gpu_row = iron__tokens_gpu_row_at(best);
    if (!choice->gpu_row)
        return false;
    snprintf(choice->reason, sizeof choice->reason,
             "auto: %s, the fastest of all when calibrated with batches of %" PRIu64 " on %" PRIu64
             " nodes (%.2f us each)",
             choice->gpu_row->names[backend], c->batch, c->nodes, c->ns[best] * 1e-3);
    return true;
}

void iron__calibration_choose(const iron_config *config, size_t backend,
                              iron__mode_choice *choice) {
    if (look_up(config, backend, choice))
        return;
    choice->gpu_row = iron__tokens_gpu_row_find("champion");
    snprintf(choice->reason, sizeof choice->reason,
             "auto: %s; the device is not calibrated: iron info --measure does it",
             choice->gpu_row->names[backend]);
}
