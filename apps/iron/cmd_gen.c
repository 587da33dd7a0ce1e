/* SPDX-License-Identifier: MIT */
/* cmd_gen.c: `iron gen`: writes the generator's stream as raw tokens. */
#include "command.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_TOKENS 65536u

typedef struct gen_options {
    uint64_t seed, count, limit;
    const char *dtype, *output;
} gen_options;

static const option gen_table[] = {
    OPTION("seed", OPTION_NUMBER, "S", gen_options, seed, "seed, any 64-bit number",
           .standard = "1"),
    OPTION("count", OPTION_NUMBER, "N", gen_options, count, "number of tokens", .standard = "1e6"),
    OPTION("limit", OPTION_NUMBER, "L", gen_options, limit, "all tokens are below L", .min = 1,
           .max = UINT64_C(1) << 32, .standard = "50257"),
    OPTION("dtype", OPTION_TEXT, "D", gen_options, dtype, "token type", .choices = "u16 u32",
           .standard = "u32"),
    OPTION("output", OPTION_TEXT, "FILE", gen_options, output,
           "output file, or - for standard output; the file appears when it is complete",
           .letter = 'o', .standard = "-"),
};

static iron_status run(void *options, args *a, iron_error *err) {
    static uint32_t tokens[CHUNK_TOKENS];
    gen_options *o = options;
    iron_output *output = NULL;
    iron_dtype dtype = IRON_DTYPE_NONE;
    iron_status status = IRON_OK;
    progress p;

    if (a->value_count > 0)
        return usage(err, "gen takes no argument '%.60s'; see iron gen --help", a->values[0]);
    IRON_TRY(iron_dtype_parse(o->dtype, &dtype, err));
    if (dtype != IRON_DTYPE_U16 && dtype != IRON_DTYPE_U32)
        return usage(err, "--dtype '%.40s' is not written by gen; use u16 or u32", o->dtype);
    if (!o->output && isatty(STDOUT_FILENO))
        return usage(err, "tokens are not text for a terminal; name a file with -o, or use a pipe");
    if (!o->output)
        o->output = "-";
    if (dtype == IRON_DTYPE_U16 && o->limit > 65536)
        return usage(err, "--limit %" PRIu64 " is above 65536, the limit of u16; use --dtype u32",
                     o->limit);
    IRON_TRY(iron_output_open(o->output, &output, err));
    command_guard_file(iron_output_temporary(output));
    p = progress_start(iron_dtype_bytes(dtype));
    for (uint64_t done = 0; done < o->count && status == IRON_OK;) {
        uint64_t left = o->count - done;
        size_t some = left < CHUNK_TOKENS ? (size_t)left : CHUNK_TOKENS;

        status = iron_generate(o->seed, o->limit, done, tokens, some, err);
        for (size_t k = 0; dtype == IRON_DTYPE_U16 && k < some; k++) { /* packs them in place */
            uint16_t token = (uint16_t)tokens[k];

            memcpy((char *)tokens + 2 * k, &token, sizeof token);
        }
        if (status == IRON_OK)
            status = iron_output_write(output, tokens, some * iron_dtype_bytes(dtype), err);
        done += some;
        progress_update(&p, done, o->count);
    }
    progress_clear(&p);
    if (status == IRON_OK)
        status = iron_output_commit(output, err);
    else
        iron_output_abandon(output);
    command_guard_file(NULL);
    return status;
}

const command command_gen = {
    .name = "gen",
    .summary = "writes the generator's token stream, for tests and demos",
    .synopsis = "[OPTIONS]",
    .description = "Writes N tokens of the generator as raw little-endian numbers. Token k is "
                   "mix64(S + (k+1) * 0x9E3779B97F4A7C15) mod L, so the stream is the same on "
                   "every machine.",
    .groups = {{NULL, gen_table, COUNT(gen_table), 0}},
    .examples = "iron gen --count 50M --dtype u16 -o tokens.bin\n"
                "iron gen | iron sum --dtype u32",
    .options_bytes = sizeof(gen_options),
    .defaults = &(const gen_options){.seed = 1, .count = 1000000, .limit = 50257, .dtype = "u32"},
    .run = run,
};
