/* SPDX-License-Identifier: MIT */
/* cmd_gen.c: `iron gen`: the generator's stream as raw tokens. */
#include "command.h"
#include "progress.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_TOKENS 65536u

typedef struct gen_options {
    uint64_t seed, count, limit;
    const char *dtype, *output;
    bool has_seed, has_count, has_limit;
} gen_options;

static iron_status check(const gen_options *o, iron_dtype *dtype, iron_error *err) {
    if (!o->has_seed || !o->has_count || !o->has_limit || !o->output)
        return usage(err, "gen needs %s; see iron gen --help",
                     !o->has_seed    ? "--seed S"
                     : !o->has_count ? "--count N"
                     : !o->has_limit ? "--limit L"
                                     : "-o FILE (or -o - for standard output)");
    if (iron_dtype_parse(o->dtype, dtype, err) != IRON_OK)
        return err->status;
    if (*dtype != IRON_DTYPE_U16 && *dtype != IRON_DTYPE_U32)
        return usage(err, "gen cannot write dtype %s; use u16 or u32", o->dtype);
    if (o->limit < 1 || o->limit > UINT64_C(1) << 32)
        return usage(err, "limit is %llu; it must be 1 to 4294967296",
                     (unsigned long long)o->limit);
    if (*dtype == IRON_DTYPE_U16 && o->limit > 65536)
        return usage(err, "limit %llu is above 65536, what u16 can hold; use --dtype u32",
                     (unsigned long long)o->limit);
    return IRON_OK;
}

/* Tokens in place become 16 bits wide; the buffer is read ahead of where it is written. */
static void narrow(uint32_t *tokens, size_t count) {
    unsigned char *to = (unsigned char *)tokens;

    for (size_t k = 0; k < count; k++) {
        uint16_t token = (uint16_t)tokens[k];

        memcpy(to + 2 * k, &token, sizeof token);
    }
}

static iron_status write_stream(const gen_options *o, iron_dtype dtype, iron_output *output,
                                iron_error *err) {
    static uint32_t tokens[CHUNK_TOKENS];
    progress p = progress_start(iron_dtype_bytes(dtype));
    iron_status status = IRON_OK;

    for (uint64_t done = 0; done < o->count && status == IRON_OK;) {
        uint64_t left = o->count - done;
        size_t some = left < CHUNK_TOKENS ? (size_t)left : CHUNK_TOKENS;

        status = iron_generate(o->seed, o->limit, done, tokens, some, err);
        if (dtype == IRON_DTYPE_U16)
            narrow(tokens, some);
        if (status == IRON_OK)
            status = iron_output_write(output, tokens, some * iron_dtype_bytes(dtype), err);
        done += some;
        progress_tell(&p, done, o->count);
    }
    progress_clear(&p);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    gen_options o = {.dtype = "u32"};
    const option options[] = {
        {"seed", OPTION_NUMBER, &o.seed, &o.has_seed},
        {"count", OPTION_NUMBER, &o.count, &o.has_count},
        {"limit", OPTION_NUMBER, &o.limit, &o.has_limit},
        {"dtype", OPTION_TEXT, &o.dtype, NULL},
        {"output", OPTION_TEXT, &o.output, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    iron_output *output = NULL;
    iron_dtype dtype = IRON_DTYPE_NONE;
    iron_status status;
    bool is_done;

    status = command_args(&command_gen, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    if (a.value_count > 0)
        return usage(err, "gen takes no argument '%.60s'; see iron gen --help", a.values[0]);
    if ((status = check(&o, &dtype, err)) != IRON_OK ||
        (status = iron_output_open(o.output, &output, err)) != IRON_OK)
        return status;
    command_guard_file(iron_output_temporary(output));
    status = write_stream(&o, dtype, output, err);
    if (status == IRON_OK)
        status = iron_output_commit(output, err);
    else
        iron_output_abandon(output);
    command_guard_file(NULL);
    return status;
}

const command command_gen = {
    "gen", "writes the generator's token stream, for tests and demos",
    "usage: iron gen --seed S --count N --limit L [--dtype u16|u32] -o FILE|-\n\n"
    "Writes N tokens of the generator as raw little-endian numbers. Token k is\n"
    "mix64(S + (k+1) * 0x9E3779B97F4A7C15) mod L, so the stream is the same everywhere.\n\n"
    "  --seed S      any 64-bit number\n"
    "  --count N     how many tokens\n"
    "  --limit L     tokens are below L; 1 to 4294967296\n"
    "  --dtype D     u16 or u32 (default u32)\n"
    "  -o FILE       where to; appears whole or not at all; - is standard output\n\n"
    "example: iron gen --seed 1 --count 1000000 --limit 50257 --dtype u16 -o tokens.bin\n",
    run};
