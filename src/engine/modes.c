/* SPDX-License-Identifier: MIT */
/*
 * modes.c: lists backends, devices and modes, and chooses the registry row that runs an engine.
 *
 * Backend 0 is the CPU; the others are those of gpu/gpu.h, in their order. `auto` takes the first
 * backend with a GPU that has the mode, else the CPU; with `cpu` no other backend is probed.
 *
 * Mode `auto` on a GPU uses a calibration: iron_calibrate (called by `iron info --measure`)
 * measures every mode once per device over batch sizes and numbers of nodes, and the result is kept
 * in the user's cache folder. The nearest measured case decides. A device without a calibration
 * gets `champion`, which is right for all but tiny work.
 *
 * A calibration is a text file:
 *
 *     iron calibration 1
 *     key cuda|NVIDIA H200|CUDA 13.0, driver 580.159.04|0.1.0
 *     modes atomic2d node hybrid ...
 *     786432 4096 0 0 1523.1 ... 2471.0
 *     end
 *
 * One line per case: tokens in a batch, nodes, and nanoseconds per batch for each mode, 0 if not
 * measured. A file that differs from this form in any way, or has another key or other modes, is
 * treated as absent.
 */
#include "core/clock.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/files.h"
#include "core/hash.h"
#include "engine/engine.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_cpu(const char *backend) { return backend && strcmp(backend, "cpu") == 0; }

static bool is_gpu(const char *backend) {
    return backend && iron__gpu_backend_find(backend) < iron__gpu_backend_count();
}

size_t iron_backend_count(void) { return 1 + iron__gpu_backend_count(); }

iron_status iron_backend_at(size_t index, iron_backend_info *info, iron_error *err) {
    iron_error why = {0};
    size_t devices;

    IRON_TRY(iron__struct_check(info, sizeof *info, "iron_backend_info", err));
    IRON_FAIL_IF(index >= iron_backend_count(), err, IRON_E_ARG,
                 "backend %zu of %zu does not exist", index, iron_backend_count());
    *info = (iron_backend_info){.struct_size = sizeof *info, .name = "cpu", .is_available = 1};
    if (index == 0)
        return IRON_OK;
    info->name = iron__gpu_backend_name(index - 1);
    info->is_available = iron__gpu_probe(index - 1, &devices, &why) == IRON_OK;
    snprintf(info->reason, sizeof info->reason, "%s", info->is_available ? "" : why.text);
    return IRON_OK;
}

size_t iron_device_count(const char *backend) {
    size_t count = 0;

    if (is_gpu(backend))
        (void)iron__gpu_probe(iron__gpu_backend_find(backend), &count, NULL);
    return count;
}

iron_status iron_device_at(const char *backend, size_t index, iron_device_info *info,
                           iron_error *err) {
    iron__gpu_info gpu;
    IRON_TRY(iron__struct_check(info, sizeof *info, "iron_device_info", err));
    IRON_FAIL_IF(!is_gpu(backend), err, IRON_E_ARG, "backend %.20s has no devices",
                 backend ? backend : "NULL");
    IRON_TRY(iron__gpu_describe(iron__gpu_backend_find(backend), index, &gpu, err));
    *info = (iron_device_info){.struct_size = sizeof *info,
                               .is_gpu = gpu.is_gpu,
                               .units = gpu.units,
                               .version = gpu.version,
                               .memory_bytes = gpu.memory_bytes,
                               .cache_bytes = gpu.cache_bytes};
    memcpy(info->name, gpu.name, sizeof info->name);
    memcpy(info->driver, gpu.driver, sizeof info->driver);
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++)
        if (!gpu.lacks[k][0])
            iron__append(info->memory, sizeof info->memory, "%s%s", info->memory[0] ? " " : "",
                         iron__gpu_strategy_name(k));
    return IRON_OK;
}

size_t iron_mode_count(const char *backend) {
    size_t count = 0;

    while (is_cpu(backend) ? iron__tokens_mode_at(count) != NULL
                           : is_gpu(backend) && iron__tokens_gpu_row_at(count) != NULL)
        count++;
    return count;
}

size_t iron_variant_count(const char *backend) {
    return is_cpu(backend) ? iron__tokens_variant_count() : iron_mode_count(backend);
}

/* On a GPU every mode has one variant. */
static iron_status describe_mode(const char *backend, size_t index, bool is_variant,
                                 iron_mode_info *info, iron_error *err) {
    IRON_TRY(iron__struct_check(info, sizeof *info, "iron_mode_info", err));
    IRON_FAIL_IF(index >= (is_variant ? iron_variant_count(backend) : iron_mode_count(backend)),
                 err, IRON_E_ARG, "%s %zu of backend %.20s does not exist",
                 is_variant ? "variant" : "mode", index, backend ? backend : "NULL");
    if (is_cpu(backend)) {
        const iron__tokens_variant *row =
            is_variant ? iron__tokens_variant_at(index)
                       : iron__tokens_variant_find(iron__tokens_mode_at(index));

        info->is_available = iron__tokens_variant_runs_here(row);
        info->name = row->mode;
        info->variant = row->name;
        info->idea = row->idea;
    } else {
        const iron__tokens_gpu_row *row = iron__tokens_gpu_row_at(index);

        info->is_available = iron_device_count(backend) > 0;
        info->name = row->mode;
        info->variant = row->names[iron__gpu_backend_find(backend)];
        info->idea = row->idea;
    }
    return IRON_OK;
}

iron_status iron_mode_at(const char *backend, size_t index, iron_mode_info *info, iron_error *err) {
    return describe_mode(backend, index, false, info, err);
}

iron_status iron_variant_at(const char *backend, size_t index, iron_mode_info *info,
                            iron_error *err) {
    return describe_mode(backend, index, true, info, err);
}

static iron_status no_such_mode(const char *backend, const char *mode, iron_error *err) {
    char modes[160] = "auto";

    for (size_t k = 0; k < iron_mode_count(backend); k++)
        iron__append(modes, sizeof modes, " %s",
                     is_cpu(backend) ? iron__tokens_mode_at(k) : iron__tokens_gpu_row_at(k)->mode);
    IRON_FAIL(err, IRON_E_ARG, "backend %s has no mode '%.40s'; use one of: %s", backend, mode,
              modes);
}

static const uint64_t calibrated_batches[] = {1024, 16384, 262144, 1048576, 16777216};
static const uint64_t calibrated_nodes[] = {1, 256, 4096, 65536};

#define CALIBRATED_MODES 9u
#define CALIBRATED_CASES (COUNT(calibrated_batches) * COUNT(calibrated_nodes))

/* One case: nanoseconds per batch in each mode, in the rows' order; 0: not measured, too slow. */
typedef struct calibration_case {
    uint64_t batch, nodes;
    double ns[CALIBRATED_MODES];
} calibration_case;

typedef struct calibration {
    size_t count;
    calibration_case cases[CALIBRATED_CASES];
} calibration;

#define HEADER_BYTES   1024
#define FILE_BYTES_MAX ((size_t)64 << 10)

static void calibration_key(size_t backend, const iron__gpu_info *info, char *key, size_t size) {
    snprintf(key, size, "%s|%s|%s|%s", iron__gpu_backend_name(backend), info->name, info->driver,
             iron_version());
}

static char *path_of(const char *key) {
    return iron__cache_path("calibration", iron__fnv(IRON_FNV_START, key, strlen(key)), ".txt");
}

/* The lines before the cases. */
static void write_header(const char *key, char text[HEADER_BYTES]) {
    snprintf(text, HEADER_BYTES, "iron calibration 1\nkey %.250s\nmodes", key);
    for (size_t k = 0; iron__tokens_gpu_row_at(k); k++)
        iron__append(text, HEADER_BYTES, " %s", iron__tokens_gpu_row_at(k)->mode);
    iron__append(text, HEADER_BYTES, "\n");
}

static bool parse(char *text, const char *key, calibration *out) {
    char header[HEADER_BYTES], *end, *at;
    calibration_case *c;

    write_header(key, header);
    if (strncmp(text, header, strlen(header)) != 0)
        return false;
    out->count = 0;
    for (char *line = text + strlen(header); (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (strcmp(line, "end") == 0)
            return out->count > 0 && end[1] == '\0';
        if (out->count == CALIBRATED_CASES || strpbrk(line, "-+")) /* strtoull would take them */
            return false;
        c = &out->cases[out->count++];
        c->batch = strtoull(line, &at, 10);
        c->nodes = strtoull(at, &at, 10);
        for (size_t k = 0; k < CALIBRATED_MODES; k++) {
            const char *before = at;

            c->ns[k] = strtod(before, &at);
            if (at == before || !(c->ns[k] >= 0) || c->ns[k] > 1e18)
                return false;
        }
        if (*at != '\0' || c->batch == 0 || c->nodes == 0)
            return false;
    }
    return false;
}

static bool calibration_load(const char *key, calibration *out) {
    char *path = path_of(key), *text = NULL;
    size_t bytes;
    bool is_there = path &&
                    iron__small_file_read(path, "calibration", FILE_BYTES_MAX, false, &text, &bytes,
                                          NULL) == IRON_OK &&
                    strlen(text) == bytes && parse(text, key, out);

    free(text);
    free(path);
    return is_there;
}

static iron_status write_lines(iron_output *output, const char *key, const calibration *c,
                               iron_error *err) {
    char line[HEADER_BYTES];

    write_header(key, line);
    IRON_TRY(iron_output_write(output, line, strlen(line), err));
    for (const calibration_case *at = c->cases; at < c->cases + c->count; at++) {
        snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64, at->batch, at->nodes);
        for (size_t k = 0; k < CALIBRATED_MODES; k++)
            iron__append(line, sizeof line, " %.1f", at->ns[k]);
        iron__append(line, sizeof line, "\n");
        IRON_TRY(iron_output_write(output, line, strlen(line), err));
    }
    return iron_output_write(output, "end\n", 4, err);
}

static iron_status calibration_save(const char *key, const calibration *all, iron_error *err) {
    char *path = path_of(key);
    iron_output *output = NULL;
    iron_status status;

    IRON_FAIL_IF(!path, err, IRON_E_IO,
                 "there is no folder for a calibration; set IRON_CACHE_DIR to one");
    iron__cache_folder_create();
    status = iron_output_open(path, &output, err);
    free(path);
    if (status == IRON_OK)
        status = write_lines(output, key, all, err);
    if (status == IRON_OK)
        return iron_output_commit(output, err);
    iron_output_abandon(output);
    return status;
}

/* How many times larger the larger one is. */
static double ratio(uint64_t a, uint64_t b) {
    return a > b ? (double)a / (double)b : (double)b / (double)a;
}

static const calibration_case *nearest_case(const calibration *all, uint64_t batch,
                                            uint64_t nodes) {
    const calibration_case *best = NULL;
    double least = 0;

    for (size_t k = 0; k < all->count; k++) {
        const calibration_case *c = &all->cases[k];
        double distance = ratio(c->batch, batch) * ratio(c->nodes, nodes);

        if (!best || distance < least) {
            best = c;
            least = distance;
        }
    }
    return best;
}

static size_t fastest_mode(const calibration_case *c) {
    size_t best = CALIBRATED_MODES;

    for (size_t k = 0; k < CALIBRATED_MODES; k++)
        if (c->ns[k] > 0 && (best == CALIBRATED_MODES || c->ns[k] < c->ns[best]))
            best = k;
    return best;
}

/* Takes the fastest mode of the nearest case; false if the device has no calibration. */
static bool look_up(const iron_config *config, size_t backend, iron__mode_choice *choice) {
    const calibration_case *c;
    calibration all;
    iron__gpu_info info;
    char key[320];
    size_t best;

    if (iron__gpu_describe(backend, choice->devices.index[0], &info, NULL) != IRON_OK)
        return false;
    calibration_key(backend, &info, key, sizeof key);
    if (!calibration_load(key, &all))
        return false;
    c = nearest_case(&all, config->batch, config->nodes);
    best = fastest_mode(c);
    choice->gpu_row = iron__tokens_gpu_row_at(best);
    if (!choice->gpu_row)
        return false;
    snprintf(choice->reason, sizeof choice->reason,
             "auto: %s, the fastest of all when calibrated with batches of %" PRIu64 " on %" PRIu64
             " nodes (%.2f us each)",
             choice->gpu_row->names[backend], c->batch, c->nodes, c->ns[best] * 1e-3);
    return true;
}

static iron_status choose_on_cpu(const iron_config *config, iron__mode_choice *choice,
                                 iron_error *err) {
    if (!iron__gpu_is_auto(config->memory) && strcmp(config->memory, "pageable") != 0) {
        IRON_FAIL_IF(iron__gpu_strategy_find(config->memory) < IRON_GPU_STRATEGIES, err, IRON_E_ARG,
                     "memory strategy %s is for GPUs; backend cpu has auto and pageable",
                     config->memory);
        IRON_FAIL(err, IRON_E_ARG, "unknown memory strategy '%.40s'; use auto or pageable",
                  config->memory);
    }
    if (iron__gpu_is_auto(config->mode)) {
        uint32_t threads = config->threads ? config->threads : iron__cpu_threads();

        /* the vector code on all allowed threads is always the fastest */
        choice->variant = iron__tokens_variant_find(threads > 1 ? "champion" : "vector");
        snprintf(choice->reason, sizeof choice->reason,
                 "auto: %s, the fastest code for this processor, on %u thread%s",
                 choice->variant->name, threads, threads > 1 ? "s" : "");
        return IRON_OK;
    }
    choice->variant = iron__tokens_variant_find(config->mode);
    if (!choice->variant)
        return no_such_mode("cpu", config->mode, err);
    snprintf(choice->reason, sizeof choice->reason, "asked for: %s", choice->variant->name);
    return IRON_OK;
}

static iron_status choose_on_gpu(const iron_config *config, iron__mode_choice *choice,
                                 iron_error *err) {
    size_t backend = choice->devices.backend;
    bool is_shared = choice->devices.count > 1;

    if (iron__gpu_is_auto(config->mode)) {
        if (!is_shared && look_up(config, backend, choice))
            return IRON_OK;
        choice->gpu_row = iron__tokens_gpu_row_find("champion");
        snprintf(choice->reason, sizeof choice->reason, "auto: %s%s",
                 choice->gpu_row->names[backend],
                 is_shared ? ", which several devices can share"
                           : "; the device is not calibrated: iron info --measure does it");
        return IRON_OK;
    }
    choice->gpu_row = iron__tokens_gpu_row_for(backend, config->mode);
    if (!choice->gpu_row)
        return no_such_mode(iron__gpu_backend_name(backend), config->mode, err);
    IRON_FAIL_IF(is_shared && !choice->gpu_row->takes_many, err, IRON_E_ARG,
                 "mode %s runs on one device, not on %u; use mode champion or auto", config->mode,
                 choice->devices.count);
    snprintf(choice->reason, sizeof choice->reason, "asked for: %s",
             choice->gpu_row->names[backend]);
    return IRON_OK;
}

iron_status iron__mode_choose(const iron_config *config, iron__mode_choice *choice,
                              iron_error *err) {
    iron__gpu_devices *d = &choice->devices;
    bool is_named = !iron__gpu_is_auto(config->backend);

    *choice = (iron__mode_choice){.variant = NULL};
    IRON_TRY(iron__gpu_devices_parse(config->devices, config->device, d, err));
    for (size_t k = 0; !is_named && k < iron__gpu_backend_count(); k++)
        if ((iron__gpu_is_auto(config->mode) || iron__tokens_gpu_row_for(k, config->mode)) &&
            iron__gpu_is_for_auto(k, d))
            return choose_on_gpu(config, choice, err);
    IRON_TRY(iron__gpu_choose(is_named ? config->backend : "cpu", d, err));
    return (d->backend < iron__gpu_backend_count() ? choose_on_gpu : choose_on_cpu)(config, choice,
                                                                                    err);
}

/* Measuring. The tokens are in device memory; a case is timed from feeding a batch until it is
 * applied, over enough batches to make the clock's resolution irrelevant, best of ROUNDS. Modes
 * that read every token for every node are skipped where they would take long: there they have
 * lost. */
#define ROUNDS     3u
#define ROUND_NS   2e6 /* a round takes about this long */
#define REPEAT_MAX 256u

/* Pairs of node and token that a case may cost per multiprocessor. */
#define PAIRS (UINT64_C(1) << 20)

typedef struct bench {
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron__gpu_queue *queue;
    iron__gpu_buffer *tokens;
    iron_lattice *lattice;
    uint64_t tokens_max;
} bench;

/* Nanoseconds until `repeat` batches are fed and applied. */
static iron_status time_batches(bench *b, iron__tokens_gpu *t, uint64_t batch, uint32_t repeat,
                                double *ns, iron_error *err) {
    uint64_t start;

    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    start = iron__clock_ns();
    for (uint32_t k = 0; k < repeat; k++)
        IRON_TRY(iron__tokens_gpu_feed(t, b->queue, b->tokens, 0, batch, err));
    IRON_TRY(iron__tokens_gpu_apply_pending(t, b->queue, err));
    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    *ns = (double)(iron__clock_ns() - start);
    return IRON_OK;
}

static iron_status time_mode(bench *b, iron__tokens_gpu *t, uint64_t batch, double *out,
                             iron_error *err) {
    uint32_t repeat = 1;
    double ns;

    IRON_TRY(time_batches(b, t, batch, 1, &ns, err)); /* warm-up */
    IRON_TRY(time_batches(b, t, batch, 1, &ns, err));
    if (ns < ROUND_NS)
        repeat = ns * REPEAT_MAX < ROUND_NS ? REPEAT_MAX : (uint32_t)(ROUND_NS / ns) + 1;
    for (uint32_t k = 0; k < ROUNDS; k++) {
        IRON_TRY(time_batches(b, t, batch, repeat, &ns, err));
        if (k == 0 || ns / repeat < *out)
            *out = ns / repeat;
    }
    return IRON_OK;
}

static iron_status measure_mode(bench *b, const iron__tokens_gpu_row *row, uint64_t batch,
                                uint64_t nodes, double *ns, iron_error *err) {
    const iron_allocator *a = iron__allocator_default();
    iron__tokens_gpu_config config = {.row = row,
                                      .lattice = b->lattice,
                                      .allocator = a,
                                      .program = b->program,
                                      .batch = batch,
                                      .nodes = (uint32_t)nodes,
                                      .vocab = 50257};
    iron__nodes state = {0};
    iron__tokens_gpu *t = NULL;
    iron_status status;

    status = iron__nodes_init(&state, config.nodes, b->lattice, NULL, a, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_create(b->device, &config, &t, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_begin(t, b->queue, &state, iron__contribution_neutral(), 0, err);
    if (status == IRON_OK)
        status = time_mode(b, t, batch, ns, err);
    iron__tokens_gpu_destroy(t);
    iron__nodes_deinit(&state);
    return status;
}

static iron_status measure_all(bench *b, calibration *out, iron_progress progress, void *context,
                               iron_error *err) {
    const iron__tokens_gpu_row *row;

    for (size_t k = 0; k < CALIBRATED_CASES; k++) {
        calibration_case *c = &out->cases[out->count];

        *c = (calibration_case){.batch = calibrated_batches[k / COUNT(calibrated_nodes)],
                                .nodes = calibrated_nodes[k % COUNT(calibrated_nodes)]};
        for (size_t m = 0; (row = iron__tokens_gpu_row_at(m)); m++)
            if (c->batch <= b->tokens_max &&
                (!row->per_node || c->batch <= b->device->info.units * PAIRS / c->nodes))
                IRON_TRY(measure_mode(b, row, c->batch, c->nodes, &c->ns[m], err));
        if (fastest_mode(c) < CALIBRATED_MODES)
            out->count++;
        IRON_FAIL_IF(progress && progress(context, k + 1, CALIBRATED_CASES), err, IRON_E_CANCELLED,
                     "cancelled while calibrating");
    }
    return IRON_OK;
}

static iron_status set_up(bench *b, size_t backend, size_t device, iron_error *err) {
    iron__gpu_copy copy = {.from_offset = 0};
    iron_status status;
    uint32_t *tokens;

    IRON_TRY(iron__gpu_device_open(backend, device, &b->device, err));
    b->tokens_max =
        calibrated_batches[COUNT(calibrated_batches) - (b->device->info.is_gpu ? 1 : 2)];
    copy.bytes = (size_t)b->tokens_max * sizeof *tokens;
    IRON_TRY(iron_lattice_create(NULL, 0, &b->lattice, err));
    IRON_TRY(iron__gpu_program_load(b->device, &iron__tokens_image, &b->program, err));
    IRON_TRY(iron__gpu_queue_create(b->device, &b->queue, err));
    IRON_TRY(
        iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, copy.bytes, &b->tokens, err));
    tokens = malloc(copy.bytes);
    IRON_FAIL_IF(!tokens, err, IRON_E_NOMEM, "out of memory for %zu bytes of tokens", copy.bytes);
    copy.from_host = tokens;
    copy.to = b->tokens;
    status = iron_generate(1, 50257, 0, tokens, (size_t)b->tokens_max, err);
    if (status == IRON_OK)
        status = iron__gpu_copy_bytes(b->queue, &copy, err);
    if (status == IRON_OK)
        status = iron__gpu_queue_wait(b->queue, err);
    free(tokens);
    return status;
}

static void tear_down(bench *b) {
    iron__gpu_buffer_destroy(b->tokens);
    iron__gpu_queue_destroy(b->queue);
    if (b->device)
        iron__gpu_program_unload(b->device, b->program);
    iron_lattice_destroy(b->lattice);
    iron__gpu_device_close(b->device);
}

iron_status iron_calibrate(const char *backend, uint32_t device, iron_progress progress,
                           void *context, iron_error *err) {
    size_t index = iron__gpu_backend_find(backend);
    calibration all = {.count = 0};
    bench b = {.device = NULL};
    iron_status status;
    char key[320];

    IRON_FAIL_IF(index == iron__gpu_backend_count(), err, IRON_E_ARG,
                 "backend '%.20s' is not calibrated; use cuda or opencl", backend);
    status = set_up(&b, index, device, err);
    if (status == IRON_OK)
        status = measure_all(&b, &all, progress, context, err);
    if (status == IRON_OK) {
        calibration_key(index, &b.device->info, key, sizeof key);
        status = calibration_save(key, &all, err);
    }
    tear_down(&b);
    return status;
}
