/* SPDX-License-Identifier: MIT */
/* cmd_state.c: `iron state`: a saved state read out, as text, JSON, CSV or NumPy files. */
#include "command.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct saved {
    iron_engine *engine;
    iron_config config;
    iron_report report;
    const uint32_t *xors;
    const float *potentials, *activations;
} saved;

static const char *positions_name(iron_positions positions) {
    return positions == IRON_POSITIONS_BATCH ? "batch" : "stream";
}

static iron_status load(const char *path, saved *s, iron_error *err) {
    iron_config run;
    iron_status status;

    iron_config_init(&run);
    run.backend = "cpu"; /* no GPU is opened to print a file */
    run.threads = 1;
    status = iron_engine_load(path, &run, &s->engine, err);
    if (status != IRON_OK)
        return status;
    s->config = *iron_engine_config(s->engine);
    s->report.struct_size = sizeof s->report;
    s->xors = iron_engine_xor_accumulators(s->engine);
    s->potentials = iron_engine_potentials(s->engine);
    s->activations = iron_engine_activations(s->engine);
    return iron_engine_report(s->engine, &s->report, err);
}

static void print_text(const saved *s) {
    const iron_report *r = &s->report;

    printf("nodes      %" PRIu64 "\nvocab      %" PRIu64 "\nbatch      %" PRIu64
           "\npositions  %s\nlattice    ",
           s->config.nodes, s->config.vocab, s->config.batch, positions_name(s->config.positions));
    for (uint32_t k = 0; k < s->config.lattice_count; k++)
        printf("%s%" PRIu32, k ? "," : "", s->config.lattice[k]);
    printf("\ntokens     %" PRIu64 "\nbatches    %" PRIu64 "\nxor        %08" PRIx32
           "\nsum        %" PRIu64 "\nstate      %016" PRIx64 "\n",
           r->tokens, r->batches, r->xor_total, r->sum, r->state);
    if (r->has_seal)
        printf("seal       %s\n", r->seal);
}

static void json_header(json *j, const saved *s) {
    const iron_report *r = &s->report;
    char sum[24];

    json_number(j, "nodes", s->config.nodes);
    json_number(j, "vocab", s->config.vocab);
    json_number(j, "batch", s->config.batch);
    json_text(j, "positions", positions_name(s->config.positions));
    json_open(j, "lattice", '[');
    for (uint32_t k = 0; k < s->config.lattice_count; k++)
        json_number(j, NULL, s->config.lattice[k]);
    json_close(j, ']');
    json_number(j, "tokens", r->tokens);
    json_number(j, "batches", r->batches);
    json_hex(j, "xor", r->xor_total, 8);
    snprintf(sum, sizeof sum, "%" PRIu64, r->sum);
    json_text(j, "sum", sum);
    json_hex(j, "state", r->state, 16);
    if (r->has_seal)
        json_text(j, "seal", r->seal);
}

static void json_floats(json *j, const char *name, const float *values, uint64_t count) {
    json_open(j, name, '[');
    for (uint64_t k = 0; k < count; k++)
        json_real(j, NULL, "%.9g", (double)values[k]);
    json_close(j, ']');
}

static void print_json(const saved *s) {
    json j = {0};

    json_open(&j, NULL, '{');
    json_header(&j, s);
    json_open(&j, "xor_accumulators", '[');
    for (uint64_t k = 0; k < s->config.nodes; k++)
        json_number(&j, NULL, s->xors[k]);
    json_close(&j, ']');
    json_floats(&j, "potentials", s->potentials, s->config.nodes);
    json_floats(&j, "activations", s->activations, s->config.nodes);
    json_close(&j, '}');
    json_end(&j);
}

/* %.9g gives back the same float when read. */
static void print_csv(const saved *s) {
    printf("node,xor_accumulators,potentials,activations\n");
    for (uint64_t k = 0; k < s->config.nodes; k++)
        printf("%" PRIu64 ",%" PRIu32 ",%.9g,%.9g\n", k, s->xors[k], (double)s->potentials[k],
               (double)s->activations[k]);
}

static iron_status run(int argc, char **argv, iron_error *err) {
    bool wants_json = false, wants_csv = false, is_done;
    const char *npy = NULL;
    const option options[] = {
        {"json", OPTION_FLAG, &wants_json, NULL},
        {"csv", OPTION_FLAG, &wants_csv, NULL},
        {"npy", OPTION_TEXT, &npy, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    saved s = {0};
    iron_status status = command_args(&command_state, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    if (a.value_count != 1)
        return usage(err, "state takes one file, and got %zu; see iron state --help",
                     a.value_count);
    if (wants_json + wants_csv + (npy != NULL) > 1)
        return usage(err, "choose one of --json, --csv and --npy");
    status = load(a.values[0], &s, err);
    if (status == IRON_OK) {
        if (npy)
            status = iron_engine_export_npy(s.engine, npy, err);
        else if (wants_json)
            print_json(&s);
        else if (wants_csv)
            print_csv(&s);
        else
            print_text(&s);
    }
    iron_engine_destroy(s.engine);
    return status;
}

const command command_state = {
    "state", "reads a saved state out",
    "usage: iron state FILE [--json|--csv|--npy DIR]\n\n"
    "Prints a saved state's configuration and totals, or all of it:\n\n"
    "  --json      one JSON document with xor_accumulators, potentials and activations\n"
    "  --csv       a line a node\n"
    "  --npy DIR   xor_accumulators.npy, potentials.npy and activations.npy in DIR\n\n"
    "example: iron state run.state --csv > nodes.csv\n",
    run};
