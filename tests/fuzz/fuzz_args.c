/* SPDX-License-Identifier: MIT */
/*
 * fuzz_args.c: a subcommand's arguments. The input, cut at its zero bytes, is the argument vector
 * of a command with the options of `iron feed` (and --output, for its short form).
 *
 * Accepted values are pieces of the input: positional values are some of the arguments, in their
 * order, and texts lie inside arguments. Written in another form (every option as --name=VALUE,
 * then --, then the values), the command line parses to the same result. After a leading --,
 * everything is accepted as a value.
 */
#include "fuzz.h"
#include "options.h"

#include <inttypes.h>

#define ARGUMENTS_MAX 64

static const char *const number_names[] = {"vocab", "nodes", "batch", "threads", "device"};
static const char *const text_names[] = {"positions", "lattice", "activations", "mode",
                                         "memory",    "state",   "resume",      "format",
                                         "dtype",     "backend", "output"};
static const char *const flag_names[] = {"seal", "json"};

#define NUMBERS COUNT(number_names)
#define TEXTS   COUNT(text_names)
#define FLAGS   COUNT(flag_names)
#define OPTIONS (NUMBERS + TEXTS + FLAGS)

typedef struct command_line {
    uint64_t numbers[NUMBERS];
    bool has_number[NUMBERS];
    const char *texts[TEXTS];
    bool flags[FLAGS];
    args parsed;
} command_line;

static iron_status parse(command_line *line, int argc, char **argv, iron_error *err) {
    option table[OPTIONS], *o = table;
    const option_group groups[] = {{NULL, table, OPTIONS, 0}, {0}};

    for (size_t k = 0; k < NUMBERS; k++)
        *o++ = (option){.name = number_names[k],
                        .kind = OPTION_NUMBER,
                        .offset = offsetof(command_line, numbers) + k * sizeof(uint64_t),
                        .bytes = sizeof(uint64_t),
                        .given = offsetof(command_line, has_number) + k * sizeof(bool) + 1};
    for (size_t k = 0; k < TEXTS; k++)
        *o++ = (option){.name = text_names[k],
                        .letter = strcmp(text_names[k], "output") == 0 ? 'o' : '\0',
                        .kind = OPTION_TEXT,
                        .offset = offsetof(command_line, texts) + k * sizeof(char *)};
    for (size_t k = 0; k < FLAGS; k++)
        *o++ = (option){.name = flag_names[k],
                        .kind = OPTION_FLAG,
                        .offset = offsetof(command_line, flags) + k * sizeof(bool)};
    *line = (command_line){0};
    return options_parse(groups, line, &line->parsed, argc, argv, err);
}

static char *joined(const char *name, const char *value) {
    char *text = NULL;

    FUZZ_REQUIRE(asprintf(&text, value ? "--%s=%s" : "--%s", name, value) > 0);
    return text;
}

/* The same command line in one plain form; returns how many arguments it has, all to be freed. */
static int say_again(const command_line *line, char **argv) {
    int argc = 0;
    char number[24];

    for (size_t k = 0; k < NUMBERS; k++) {
        snprintf(number, sizeof number, "%" PRIu64, line->numbers[k]);
        if (line->has_number[k])
            argv[argc++] = joined(number_names[k], number);
    }
    for (size_t k = 0; k < TEXTS; k++)
        if (line->texts[k])
            argv[argc++] = joined(text_names[k], line->texts[k]);
    for (size_t k = 0; k < FLAGS; k++)
        if (line->flags[k])
            argv[argc++] = joined(flag_names[k], NULL);
    if (line->parsed.wants_help)
        argv[argc++] = joined("help", NULL);
    argv[argc++] = strdup("--");
    for (size_t k = 0; k < line->parsed.value_count; k++)
        argv[argc++] = strdup(line->parsed.values[k]);
    return argc;
}

static void require_same(const command_line *a, const command_line *b) {
    FUZZ_REQUIRE(memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0);
    FUZZ_REQUIRE(memcmp(a->has_number, b->has_number, sizeof a->has_number) == 0);
    FUZZ_REQUIRE(memcmp(a->flags, b->flags, sizeof a->flags) == 0);
    FUZZ_REQUIRE(a->parsed.wants_help == b->parsed.wants_help);
    FUZZ_REQUIRE(a->parsed.value_count == b->parsed.value_count);
    for (size_t k = 0; k < TEXTS; k++) {
        FUZZ_REQUIRE(!a->texts[k] == !b->texts[k]);
        FUZZ_REQUIRE(!a->texts[k] || strcmp(a->texts[k], b->texts[k]) == 0);
    }
    for (size_t k = 0; k < a->parsed.value_count; k++)
        FUZZ_REQUIRE(strcmp(a->parsed.values[k], b->parsed.values[k]) == 0);
}

static void check_said_again(const command_line *line) {
    char *argv[ARGUMENTS_MAX + OPTIONS + 2], *kept[ARGUMENTS_MAX + OPTIONS + 2];
    int argc = say_again(line, argv);
    command_line again;
    iron_error err;

    memcpy(kept, argv, sizeof kept[0] * (size_t)argc);
    FUZZ_REQUIRE(parse(&again, argc, argv, &err) == IRON_OK);
    require_same(line, &again);
    for (int k = 0; k < argc; k++)
        free(kept[k]);
}

/* Values are arguments in their order; texts and values lie inside the block of all arguments. */
static void check_pieces(const command_line *line, char *const *argv, int argc, const char *block,
                         size_t bytes) {
    int at = 0;

    FUZZ_REQUIRE(line->parsed.value_count <= (size_t)argc);
    for (size_t k = 0; k < line->parsed.value_count; k++, at++) {
        while (at < argc && argv[at] != line->parsed.values[k])
            at++;
        FUZZ_REQUIRE(at < argc);
    }
    for (size_t k = 0; k < TEXTS; k++)
        FUZZ_REQUIRE(!line->texts[k] ||
                     (line->texts[k] >= block && line->texts[k] < block + bytes));
}

/* After -- everything is a value. */
static void check_ended(char *const *argv, int argc) {
    char end[] = "--", *ended[ARGUMENTS_MAX + 1] = {end};
    command_line line;
    iron_error err;

    for (int k = 0; k < argc; k++)
        ended[k + 1] = argv[k];
    FUZZ_REQUIRE(parse(&line, argc + 1, ended, &err) == IRON_OK);
    FUZZ_REQUIRE(line.parsed.value_count == (size_t)argc);
    for (int k = 0; k < argc; k++)
        FUZZ_REQUIRE(line.parsed.values[k] == argv[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *block = malloc(size + 1), *argv[ARGUMENTS_MAX], **given;
    int argc = 0;
    command_line line;
    iron_error err;

    FUZZ_REQUIRE(block);
    if (size)
        memcpy(block, data, size);
    block[size] = '\0';
    for (size_t at = 0; at < size && argc < ARGUMENTS_MAX; at += strlen(block + at) + 1)
        argv[argc++] = block + at;
    /* no NULL after the last one: the parser may rely only on argc */
    given = fuzz_copy(argv, sizeof argv[0] * (size_t)argc);
    if (!fuzz_refused(parse(&line, argc, given, &err), &err)) {
        check_pieces(&line, argv, argc, block, size + 1);
        check_said_again(&line);
    }
    check_ended(argv, argc);
    free(given);
    free(block);
    return 0;
}
