/* SPDX-License-Identifier: MIT */
/*
 * cmd_push.c: `iron push`: feeds a file to an engine on a server, starting at the engine's
 * position; or sends a ledger to a run.
 *
 * Interrupting it is safe: the server takes each piece whole or not at all, and the next push asks
 * for the engine's position.
 */
#include "command.h"

#include <iron/iron_server.h>

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

typedef struct push_options {
    reading reading;
    iron_push_options push;
    bool wants_append, wants_json;
} push_options;

static const option push_table[] = {
    OPTION("append", OPTION_FLAG, NULL, push_options, wants_append,
           "append the file to whatever the engine has read; if interrupted, the same command "
           "would send the beginning again"),
    OPTION("piece", OPTION_NUMBER, "TOKENS", push_options, push.piece_tokens,
           "tokens per request, rounded to whole batches", .min = 1, .standard = "about 256 MiB"),
    OPTION("token-file", OPTION_TEXT, "FILE", push_options, push.token_file,
           "file with the server's token on one line; it must be readable only by its owner"),
    OPTION("ca", OPTION_TEXT, "FILE", push_options, push.ca_file,
           "certificates (PEM) to trust for https instead of the system's"),
    OPTION("retries", OPTION_NUMBER, "N", push_options, push.retries,
           "how often a piece is sent again, with growing pauses", .min = 1, .max = 1000,
           .standard = "8, about a minute"),
    OPTION("json", OPTION_FLAG, NULL, push_options, wants_json, JSON_HELP),
};

/* The progress line, and messages above it. */
typedef struct watch {
    progress bar;
    uint64_t width;
} watch;

/* Sealing what the engine has and sending the rest both start at 0: each gets a new bar. */
static int watch_progress(void *context, uint64_t done, uint64_t total) {
    watch *w = context;

    if (done == 0)
        w->bar = progress_start(w->width);
    return progress_update(&w->bar, done, total);
}

static void watch_note(void *context, const char *sentence) {
    watch *w = context;

    if (w->bar.is_shown)
        fprintf(stderr, "\r\033[Kiron: %s\n", sentence);
}

static iron_status push(push_options *o, const char *path, iron_error *err) {
    iron_push_result r = {.struct_size = sizeof r};
    iron_source *source = NULL;
    bool is_empty;
    double started, seconds, rate;
    watch w = {0};
    iron_json_writer j;
    iron_status status;

    IRON_TRY(reading_open(&o->reading, &path, 1, &source, err));
    w.width = iron_dtype_bytes(iron_source_dtype(source));
    w.bar = progress_start(w.width);
    o->push.note = watch_note;
    started = seconds_now();
    status = iron_push(&o->push, source, watch_progress, &w, &r, err);
    seconds = seconds_now() - started;
    progress_clear(&w.bar);
    rate = (double)r.pushed * (double)w.width / seconds * 1e-9;
    is_empty = iron_source_tokens(source) == 0;
    iron_source_close(source);
    IRON_TRY(status);
    if (o->wants_json) {
        j = json_begin('{');
        JSON_PUT(&j, TEXT("engine", r.engine), TEXT("url", o->push.url), NUMBER("tokens", r.tokens),
                 NUMBER("batches", r.batches), HEX("xor", r.xor_total, 8), DECIMAL("sum", r.sum),
                 HEX("state", r.state, 16), TEXT("seal", r.seal),
                 NUMBER("resumed_at", r.resumed_at), NUMBER("pushed", r.pushed),
                 NUMBER("retried", r.retried), REAL("seconds", "%.6f", seconds),
                 REAL("gb_per_s", "%.6f", rate));
        json_end(&j, '}');
        return IRON_OK;
    }
    printf("engine    %s\n", r.engine);
    if (r.pushed == 0)
        printf("pushed    nothing: %s\n",
               is_empty ? "the file is empty" : "the engine has the whole file");
    else if (r.resumed_at > 0)
        printf("pushed    %" PRIu64 " tokens, starting at token %" PRIu64 "\n", r.pushed,
               r.resumed_at);
    else
        printf("pushed    %" PRIu64 " tokens\n", r.pushed);
    if (r.retried > 0)
        printf("retried   %" PRIu32 "\n", r.retried);
    printf("tokens    %" PRIu64 "\nbatches   %" PRIu64 "\nxor       %08" PRIx32
           "\nsum       %" PRIu64 "\nstate     %016" PRIx64 "\nseal      %s\n"
           "time      %.6f s, %.3f GB/s\n",
           r.tokens, r.batches, r.xor_total, r.sum, r.state, r.seal, seconds, rate);
    return IRON_OK;
}

static bool is_ledger(const char *path) {
    struct stat about; /* opening a pipe would wait for its writer */
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rbe") : NULL;
    char magic[8];
    bool is_it = file && fread(magic, 1, 8, file) == 8 && memcmp(magic, "IRONLDGR", 8) == 0;

    if (file)
        fclose(file);
    return is_it;
}

static iron_status push_ledger(push_options *o, const char *path, iron_error *err) {
    iron_push_ledger_result r = {.struct_size = sizeof r};
    watch w = {.width = 1};
    iron_json_writer j;
    iron_status status;

    w.bar = progress_start(w.width);
    o->push.note = watch_note;
    status = iron_push_ledger(&o->push, path, watch_progress, &w, &r, err);
    progress_clear(&w.bar);
    IRON_TRY(status);
    if (o->wants_json) {
        j = json_begin('{');
        JSON_PUT(&j, TEXT("run", r.run), TEXT("url", o->push.url), NUMBER("rank", r.rank),
                 NUMBER("sent", r.sent), NUMBER("added", r.added),
                 NUMBER("resumed_at", r.resumed_at), NUMBER("torn", r.torn),
                 NUMBER("retried", r.retried));
        json_end(&j, '}');
        return IRON_OK;
    }
    printf("run       %s\nrank      %" PRIu32 "\nsent      %" PRIu64 " records\nadded     %" PRIu64
           ", a new header included\n",
           r.run, r.rank, r.sent, r.added);
    if (r.torn > 0)
        printf("torn      %" PRIu64 " bytes at the end are not a whole record\n", r.torn);
    return IRON_OK;
}

static iron_status run(void *options, args *a, iron_error *err) {
    push_options *o = options;

    if (a->value_count != 2)
        return usage(err,
                     "%zu arguments; give a file and the address of an engine: iron push "
                     "FILE http://127.0.0.1:8080/v1/engines/NAME",
                     a->value_count);
    if (strcmp(a->values[0], "-") == 0)
        return usage(err, "a pipe cannot be sent again after an error; save it to a file, or send "
                          "it with curl -X POST -T - 'URL/feed?dtype=D'");
    o->push.url = a->values[1];
    if (strstr(o->push.url, "/v1/runs/") || is_ledger(a->values[0]))
        return push_ledger(o, a->values[0], err);
    o->reading.wants_seekable = true;
    IRON_TRY(reading_check(&o->reading, err));
    o->push.is_append = o->wants_append;
    return push(o, a->values[0], err);
}

const command command_push = {
    .name = "push",
    .summary = "feeds a file to an engine on a server; resumes after interruptions",
    .synopsis = "FILE http://HOST:PORT/v1/engines/NAME [OPTIONS]",
    .description =
        "Feeds a token file to an engine of iron serve. The file is the whole stream of the "
        "engine: if the engine already has its first tokens (their seal is compared), only the "
        "rest is sent. After an interruption, the same command continues exactly where the engine "
        "is. A directory stands for its files in natural order. Tokens are sent with the type "
        "that the file has.\n\n"
        "Pieces are sent one after another. The server takes each piece whole or not at all; "
        "after a lost connection, push asks for the engine's position before it sends anything "
        "again. Pieces are whole batches of the engine, so its state is the same as after iron "
        "feed FILE with the same configuration. (If another client has fed the engine and stopped "
        "within a batch, batch boundaries differ: batches never span requests.)\n\n"
        "A ledger, which the Recorder of iron_tokens writes for one rank of a training run, goes "
        "to a run of the server instead: http://HOST/v1/runs/NAME. The server has each record "
        "once, however often the ledger is pushed, and says what repeats or is missing: GET "
        "/v1/runs/NAME/findings.",
    .groups = {{NULL, push_table, COUNT(push_table), 0},
               {"Reading options", reading_options, READING_FORMAT_COUNT,
                offsetof(push_options, reading)}},
    .examples = "iron push tokens.bin http://127.0.0.1:8080/v1/engines/corpus --dtype u16\n"
                "iron push shards/ https://iron.example.org/v1/engines/corpus --token-file token\n"
                "iron push run/rank-0.ledger http://127.0.0.1:8080/v1/runs/pretrain-1",
    .options_bytes = sizeof(push_options),
    .defaults = &(const push_options){.push.struct_size = sizeof(iron_push_options)},
    .run = run,
};
