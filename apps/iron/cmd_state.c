/* SPDX-License-Identifier: MIT */
/* cmd_state.c: `iron state`: prints a saved state as text, JSON, CSV or NumPy files. */
#include "command.h"

#include <inttypes.h>

typedef struct state_options {
    bool wants_json, wants_csv;
    const char *npy;
} state_options;

static const option state_table[] = {
    OPTION("json", OPTION_FLAG, NULL, state_options, wants_json,
           "print one JSON document with xor_accumulators, potentials and activations"),
    OPTION("csv", OPTION_FLAG, NULL, state_options, wants_csv, "print one line per node"),
    OPTION("npy", OPTION_TEXT, "DIR", state_options, npy,
           "write xor_accumulators.npy, potentials.npy and activations.npy into DIR"),
};

typedef struct saved {
    iron_engine *engine;
    iron_config config;
    iron_report report;
    const char *positions;
    const uint32_t *xors;
    const float *potentials, *activations;
} saved;

static void print_text(const saved *s) {
    const iron_report *r = &s->report;

    printf("nodes      %" PRIu64 "\nvocab      %" PRIu64 "\nbatch      %" PRIu64
           "\npositions  %s\nlattice    ",
           s->config.nodes, s->config.vocab, s->config.batch, s->positions);
    for (uint32_t k = 0; k < s->config.lattice_count; k++)
        printf("%s%" PRIu32, k ? "," : "", s->config.lattice[k]);
    printf("\ntokens     %" PRIu64 "\nbatches    %" PRIu64 "\nxor        %08" PRIx32
           "\nsum        %" PRIu64 "\nstate      %016" PRIx64 "\n",
           r->tokens, r->batches, r->xor_total, r->sum, r->state);
    if (r->has_seal)
        printf("seal       %s\n", r->seal);
}

static void put_floats(iron_json_writer *j, const char *name, const float *values, uint64_t count) {
    iron_json_open(j, name, '[');
    for (uint64_t k = 0; k < count; k++)
        iron_json_real_format(j, NULL, "%.9g", (double)values[k]);
    iron_json_close(j, ']');
}

static void print_json(const saved *s) {
    iron_json_writer j = json_begin('{');

    JSON_PUT(&j, NUMBER("nodes", s->config.nodes), NUMBER("vocab", s->config.vocab),
             NUMBER("batch", s->config.batch), TEXT("positions", s->positions));
    iron_json_open(&j, "lattice", '[');
    for (uint32_t k = 0; k < s->config.lattice_count; k++)
        iron_json_number(&j, NULL, s->config.lattice[k]);
    iron_json_close(&j, ']');
    json_totals(&j, &s->report);
    iron_json_open(&j, "xor_accumulators", '[');
    for (uint64_t k = 0; k < s->config.nodes; k++)
        iron_json_number(&j, NULL, s->xors[k]);
    iron_json_close(&j, ']');
    put_floats(&j, "potentials", s->potentials, s->config.nodes);
    put_floats(&j, "activations", s->activations, s->config.nodes);
    json_end(&j, '}');
}

/* %.9g is enough digits to read back the same float. */
static void print_csv(const saved *s) {
    printf("node,xor_accumulators,potentials,activations\n");
    for (uint64_t k = 0; k < s->config.nodes; k++)
        printf("%" PRIu64 ",%" PRIu32 ",%.9g,%.9g\n", k, s->xors[k], (double)s->potentials[k],
               (double)s->activations[k]);
}

static iron_status run(void *options, args *a, iron_error *err) {
    state_options *o = options;
    saved s = {.report.struct_size = sizeof s.report};
    iron_config here;
    iron_status status;

    if (a->value_count != 1)
        return usage(err, "state takes one file, but %zu are given; see iron state --help",
                     a->value_count);
    if (o->wants_json + o->wants_csv + (o->npy != NULL) > 1)
        return usage(err, "choose one of --json, --csv and --npy");
    iron_config_init(&here);
    here.backend = "cpu"; /* printing a file needs no GPU */
    here.threads = 1;
    IRON_TRY(iron_engine_load(a->values[0], &here, &s.engine, err));
    s.config = *iron_engine_config(s.engine);
    s.positions = s.config.positions == IRON_POSITIONS_BATCH ? "batch" : "stream";
    s.xors = iron_engine_xor_accumulators(s.engine);
    s.potentials = iron_engine_potentials(s.engine);
    s.activations = iron_engine_activations(s.engine);
    status = iron_engine_report(s.engine, &s.report, err);
    if (status == IRON_OK && o->npy)
        status = iron_engine_export_npy(s.engine, o->npy, err);
    else if (status == IRON_OK)
        (o->wants_json ? print_json : o->wants_csv ? print_csv : print_text)(&s);
    iron_engine_destroy(s.engine);
    return status;
}

const command command_state = {
    .name = "state",
    .summary = "prints a saved state",
    .synopsis = "FILE [--json|--csv|--npy DIR]",
    .description = "Prints the configuration and the totals of a saved state, or all of it.",
    .groups = {{NULL, state_table, COUNT(state_table), 0}},
    .examples = "iron state run.state --csv > nodes.csv",
    .options_bytes = sizeof(state_options),
    .run = run,
};
