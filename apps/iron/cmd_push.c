/* SPDX-License-Identifier: MIT */
/*
 * cmd_push.c: `iron push`: a file to an engine on a server, from where the engine is.
 *
 * An interruption needs no care: the server takes a piece whole or not at all, and the next push
 * asks where the engine stands.
 */
#include "command.h"
#include "json.h"
#include "progress.h"
#include "reading.h"

#include <iron/iron_server.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct push_flags {
    reading reading;
    iron_push_options options;
    uint64_t retries;
    bool wants_append, has_retries, has_piece, wants_json;
} push_flags;

static iron_status check(push_flags *o, const args *a, iron_error *err) {
    if (a->value_count != 2)
        return usage(err,
                     "%zu arguments; give a file and the address of an engine: iron push "
                     "FILE http://127.0.0.1:8080/v1/engines/NAME",
                     a->value_count);
    if (strcmp(a->values[0], "-") == 0)
        return usage(err, "a pipe cannot be sent again if it must be; save it to a file, or send "
                          "it with curl -X POST -T - 'URL/feed?dtype=D'");
    if (o->has_retries && (o->retries < 1 || o->retries > 1000))
        return usage(err, "--retries is %" PRIu64 "; it must be 1 to 1000", o->retries);
    if (o->has_piece && o->options.piece_tokens < 1)
        return usage(err, "--piece is 0; it must be at least 1");
    o->options.struct_size = sizeof o->options;
    o->options.url = a->values[1];
    o->options.is_append = o->wants_append;
    o->options.retries = (uint32_t)o->retries;
    return reading_check(&o->reading, err);
}

#if IRON_WITH_CLIENT

/* What a person sees meanwhile: a bar, and sentences above it. */
typedef struct watch {
    progress bar;
    uint64_t width;
} watch;

/* Sealing what the engine holds, and sending, each begin at 0: a bar each. */
static int watch_tell(void *context, uint64_t done, uint64_t total) {
    watch *w = context;

    if (done == 0)
        w->bar = progress_start(w->width);
    return progress_tell(&w->bar, done, total);
}

static void watch_note(void *context, const char *sentence) {
    watch *w = context;

    if (w->bar.is_shown)
        fprintf(stderr, "\r\033[Kiron: %s\n", sentence);
}

static void show_text(const iron_push_result *r, uint64_t tokens, double seconds, double rate) {
    printf("engine    %s\n", r->engine);
    if (r->pushed == 0)
        printf("pushed    nothing: %s\n", tokens ? "all of it was there already" : "it is empty");
    else if (r->resumed_at > 0)
        printf("pushed    %" PRIu64 " tokens, from token %" PRIu64 " on\n", r->pushed,
               r->resumed_at);
    else
        printf("pushed    %" PRIu64 " tokens\n", r->pushed);
    if (r->retried > 0)
        printf("retried   %" PRIu32 "\n", r->retried);
    printf("tokens    %" PRIu64 "\nbatches   %" PRIu64 "\nxor       %08" PRIx32
           "\nsum       %" PRIu64 "\nstate     %016" PRIx64 "\nseal      %s\n"
           "time      %.6f s, %.3f GB/s\n",
           r->tokens, r->batches, r->xor_total, r->sum, r->state, r->seal, seconds, rate);
}

static void show_json(const iron_push_result *r, const char *url, double seconds, double rate) {
    char sum[24];
    json j = {0};

    snprintf(sum, sizeof sum, "%" PRIu64, r->sum);
    json_open(&j, NULL, '{');
    json_text(&j, "engine", r->engine);
    json_text(&j, "url", url);
    json_number(&j, "tokens", r->tokens);
    json_number(&j, "batches", r->batches);
    json_hex(&j, "xor", r->xor_total, 8);
    json_text(&j, "sum", sum);
    json_hex(&j, "state", r->state, 16);
    json_text(&j, "seal", r->seal);
    json_number(&j, "resumed_at", r->resumed_at);
    json_number(&j, "pushed", r->pushed);
    json_number(&j, "retried", r->retried);
    json_real(&j, "seconds", "%.6f", seconds);
    json_real(&j, "gb_per_s", "%.6f", rate);
    json_close(&j, '}');
    json_end(&j);
}

static iron_status push(push_flags *o, iron_source *source, iron_error *err) {
    watch w = {.width = iron_dtype_bytes(iron_source_dtype(source))};
    iron_push_result r = {.struct_size = sizeof r};
    double started = seconds_now(), seconds, rate;
    iron_status status;

    w.bar = progress_start(w.width);
    o->options.note = watch_note;
    status = iron_push(&o->options, source, watch_tell, &w, &r, err);
    seconds = seconds_now() - started;
    progress_clear(&w.bar);
    if (status != IRON_OK)
        return status;
    rate = (double)r.pushed * (double)w.width / seconds * 1e-9;
    if (o->wants_json)
        show_json(&r, o->options.url, seconds, rate);
    else
        show_text(&r, iron_source_tokens(source), seconds, rate);
    return IRON_OK;
}

static iron_status open_and_push(push_flags *o, const char *path, iron_error *err) {
    iron_source *source = NULL;
    iron_status status = reading_open(&o->reading, &path, 1, &source, err);

    if (status == IRON_OK)
        status = push(o, source, err);
    iron_source_close(source);
    return status;
}

#else

static iron_status open_and_push(push_flags *o, const char *path, iron_error *err) {
    (void)o;
    (void)path;
    return usage(err, "iron push is not part of this build: %s", IRON_CLIENT_WHY);
}

#endif

static iron_status run(int argc, char **argv, iron_error *err) {
    push_flags o = {0};
    const option options[] = {
        {"append", OPTION_FLAG, &o.wants_append, NULL},
        {"piece", OPTION_NUMBER, &o.options.piece_tokens, &o.has_piece},
        {"token-file", OPTION_TEXT, &o.options.token_file, NULL},
        {"ca", OPTION_TEXT, &o.options.ca_file, NULL},
        {"retries", OPTION_NUMBER, &o.retries, &o.has_retries},
        {"format", OPTION_TEXT, &o.reading.format, NULL},
        {"dtype", OPTION_TEXT, &o.reading.dtype_name, NULL},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    iron_status status;
    bool is_done;

    status = command_args(&command_push, &a, argc, argv, &is_done, err);
    if (is_done || (status = check(&o, &a, err)) != IRON_OK)
        return status;
    return open_and_push(&o, a.values[0], err);
}

const command command_push = {
    "push", "feeds a file to an engine on a server, and resumes exactly",
    "usage: iron push FILE http://HOST:PORT/v1/engines/NAME [OPTIONS]\n\n"
    "Feeds a token file to an engine of iron serve. The file is the engine's whole stream: if the\n"
    "engine holds its first tokens already (a seal tells), the rest is sent; interrupted at any\n"
    "point, the same command goes on exactly where the engine is. A directory stands for its "
    "files\n"
    "in natural order. Pieces go one after another; each is taken whole or not at all, and after\n"
    "a lost connection the engine is asked where it stands before anything is sent again.\n\n"
    "Pieces are whole batches of the engine, so its state is the one that iron feed FILE with the\n"
    "same configuration comes to. (Only if others fed the engine, and stopped within a batch, are\n"
    "its batches cut elsewhere: batches never span requests.)\n\n"
    "  --append            the file follows what the engine holds, whatever that is. Interrupted,\n"
    "                      the same command would send its beginning once more\n"
    "  --piece TOKENS      in a request, rounded to whole batches (default: about 256 MiB)\n"
    "  --token-file FILE   the server's token, alone on a line; nobody else may read the file\n"
    "  --ca FILE           certificates (PEM) to trust for https, instead of the system's\n"
    "  --retries N         of a piece, with growing pauses; 1 to 1000 (default 8: a minute)\n"
    "  --dtype D           u8, u16, u32, i32 or i64: raw tokens do not say, other files must\n"
    "                      agree; iron sniff FILE guesses. Tokens are sent in this width\n"
    "  --format F          raw, llmc, megatron, npy, ds, litpkds, or auto (default)\n"
    "  --json              one JSON document\n\n"
    "examples: iron push tokens.bin http://127.0.0.1:8080/v1/engines/corpus --dtype u16\n"
    "          iron push shards/ https://iron.example.org/v1/engines/corpus --token-file token\n",
    run};
