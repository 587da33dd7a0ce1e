/* SPDX-License-Identifier: MIT */
/*
 * fuzz_raw.c: raw token files, from bytes to results. The input begins with options: the token
 * type, the engine's configuration, the split into files (in memory, or pipes) and into feeds; then
 * come the files' bytes.
 *
 *   reading    A file in memory whose size is not a multiple of the token size is refused when
 *              opened, a pipe that ends inside a token when read. Otherwise the tokens read, in
 *              pieces of any capacity, are the bytes of all files. Files that begin like another
 *              format or a container are read as raw (fuzz_formats tests the others).
 *   decoding   The engine's count, batches, XOR and sum equal those of a loop over tokens decoded
 *              here from the definition; a token outside 32 bits is refused with its position.
 *   splitting  One feed, many feeds and iron_engine_feed_source give the same report, or the same
 *              error; a failed feed leaves the engine unchanged.
 */
#include "formats/format.h"
#include "fuzz.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILES_MAX 3u
#define BYTES_MAX 16384u /* below what a pipe holds at once */

typedef struct input_file {
    const uint8_t *data;
    size_t bytes;
    bool is_pipe;
    int fd;
    char path[40];
} input_file;

typedef struct choices {
    iron_dtype dtype;
    size_t width;
    bool is_raw;       /* --format raw: headers of other formats are tokens too */
    bool feeds_source; /* iron_engine_feed_source too: slow, it takes 16 MiB */
    size_t capacity;
    uint8_t step; /* sizes of feeds follow from it */
    iron_config config;
    size_t file_count;
    input_file files[FILES_MAX];
} choices;

static void open_file(input_file *f) {
    int ends[2];

    if (f->is_pipe) {
        FUZZ_REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
        FUZZ_REQUIRE(write(ends[1], f->data, f->bytes) == (ssize_t)f->bytes);
        close(ends[1]);
        f->fd = ends[0];
    } else {
        f->fd = memfd_create("tokens", MFD_CLOEXEC);
        FUZZ_REQUIRE(f->fd >= 0 && write(f->fd, f->data, f->bytes) == (ssize_t)f->bytes);
    }
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
}

static void choose_config(iron_config *c, fuzz_input *in) {
    static const char *const modes[] = {"vector", "scalar",  "champion",
                                        "node",   "threads", "hybrid"};
    static const uint32_t vocabs[] = {50257, 2, 3, 65536, 128256, UINT32_C(1) << 31, 4095, 7919};
    uint8_t flags = fuzz_byte(in);

    iron_config_init(c);
    c->mode = modes[(flags & 7) % (sizeof modes / sizeof modes[0])];
    c->threads = 2;
    c->with_seal = flags >> 3 & 1;
    c->positions = flags >> 4 & 1 ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
    c->vocab = vocabs[flags >> 5];
    c->nodes = 1 + fuzz_byte(in);
    c->batch = 1 + fuzz_word(in, 2);
}

/* Begins like a file of another format. */
static bool has_foreign_header(const input_file *f) {
    static const char *const magics[] = {"\x93NUMPY", "LITPKDS", "MMIDIDX", "\x88\xd8\x34\x01",
                                         "\xa1\xd9\x34\x01"};

    for (size_t k = 0; k < sizeof magics / sizeof magics[0]; k++)
        if (f->bytes >= strlen(magics[k]) && memcmp(f->data, magics[k], strlen(magics[k])) == 0)
            return true;
    return false;
}

/* Is recognised as something else, and refused unless the format is raw. */
static bool is_container(const input_file *f, iron_dtype dtype) {
    iron__input file = {.path = f->path, .bytes = f->bytes, .fd = f->fd};
    iron__candidate c = {.file = &file, .name = f->path, .dtype = dtype};

    if (f->is_pipe)
        file.bytes = IRON_COUNT_UNKNOWN;
    c.head_count = f->bytes < IRON_HEAD_BYTES ? f->bytes : IRON_HEAD_BYTES;
    if (c.head_count > 0)
        memcpy(c.head, f->data, c.head_count);
    return iron__container_find(&c) != NULL;
}

static void choose(choices *c, fuzz_input *in) {
    uint8_t kinds = fuzz_byte(in), files = fuzz_byte(in);
    uint8_t cuts[FILES_MAX - 1];

    c->dtype = (iron_dtype)(IRON_DTYPE_U8 + kinds % 5);
    c->width = iron_dtype_bytes(c->dtype);
    c->is_raw = kinds >> 7;
    c->feeds_source = (kinds & 0x60) == 0x60;
    c->capacity = 1 + (size_t)fuzz_byte(in) * fuzz_byte(in);
    c->step = fuzz_byte(in);
    choose_config(&c->config, in);
    for (size_t k = 0; k < FILES_MAX - 1; k++)
        cuts[k] = fuzz_byte(in);
    in->left = in->left < BYTES_MAX ? in->left : BYTES_MAX;
    c->file_count = 1 + (files & 3) % FILES_MAX;
    for (size_t k = 0; k < c->file_count; k++) {
        size_t cut =
            k + 1 < c->file_count ? cuts[k] * (size_t)(files & 4 ? 1 : c->width) : in->left;
        input_file *f = &c->files[k];

        *f = (input_file){in->at, cut < in->left ? cut : in->left, files >> (5 + k) & 1, -1, ""};
        in->at += f->bytes;
        in->left -= f->bytes;
        open_file(f);
        c->is_raw = c->is_raw || has_foreign_header(f) || is_container(f, c->dtype);
    }
}

/* What must happen: refused when opened, refused when read, or neither. */
static void expect(const choices *c, bool *opens, bool *reads, uint64_t *tokens) {
    *opens = *reads = true;
    *tokens = 0;
    for (size_t k = 0; k < c->file_count; k++) {
        const input_file *f = &c->files[k];

        if (f->is_pipe) {
            *reads = *reads && f->bytes % c->width == 0;
            *tokens = IRON_COUNT_UNKNOWN;
            continue;
        }
        *opens = *opens && f->bytes % c->width == 0;
        if (*tokens != IRON_COUNT_UNKNOWN)
            *tokens += f->bytes / c->width;
    }
}

static iron_source *open_source(const choices *c, bool opens, uint64_t tokens) {
    const char *paths[FILES_MAX];
    iron_source_options options = {.struct_size = sizeof options,
                                   .dtype = c->dtype,
                                   .format = c->is_raw ? "raw" : NULL,
                                   .paths = paths,
                                   .path_count = c->file_count};
    iron_source *source = NULL;
    iron_error err;

    for (size_t k = 0; k < c->file_count; k++)
        paths[k] = c->files[k].path;
    if (fuzz_refused(iron_source_open(&options, &source, &err), &err)) {
        FUZZ_REQUIRE(!opens && err.status == IRON_E_FORMAT && !source);
        return NULL;
    }
    FUZZ_REQUIRE(opens && iron_source_dtype(source) == c->dtype);
    FUZZ_REQUIRE(iron_source_tokens(source) == tokens);
    FUZZ_REQUIRE(iron_source_file_count(source) == c->file_count);
    return source;
}

/* All tokens of the source, in pieces; NULL if reading fails, as it must. */
static void *read_tokens(const choices *c, iron_source *source, bool reads, size_t *count) {
    size_t total = 0, got = 0;
    uint8_t *piece = malloc(c->capacity * c->width), *all;
    iron_error err;

    for (size_t k = 0; k < c->file_count; k++)
        total += c->files[k].bytes;
    all = malloc(total ? total : 1);
    FUZZ_REQUIRE(piece && all);
    *count = 0;
    do {
        if (fuzz_refused(iron_source_read(source, piece, c->capacity, &got, &err), &err)) {
            FUZZ_REQUIRE(!reads && err.status == IRON_E_FORMAT);
            free(all);
            all = NULL;
            break;
        }
        FUZZ_REQUIRE(got <= c->capacity && (*count + got) * c->width <= total);
        if (got)
            memcpy(all + *count * c->width, piece, got * c->width);
        *count += got;
    } while (got > 0);
    FUZZ_REQUIRE(!all || (reads && *count * c->width == total));
    free(piece);
    return all;
}

static void check_bytes(const choices *c, const uint8_t *tokens) {
    for (size_t k = 0; k < c->file_count; k++) {
        FUZZ_REQUIRE(!c->files[k].bytes ||
                     memcmp(tokens, c->files[k].data, c->files[k].bytes) == 0);
        tokens += c->files[k].bytes;
    }
}

/* Token k, byte by byte; false if it is negative or wider than 32 bits. */
static bool decode(const choices *c, const uint8_t *tokens, size_t k, uint32_t *token) {
    uint64_t value = 0;

    for (size_t b = 0; b < c->width; b++)
        value |= (uint64_t)tokens[k * c->width + b] << 8 * b;
    *token = (uint32_t)value;
    return value <= (c->dtype == IRON_DTYPE_I32 ? INT32_MAX : UINT32_MAX);
}

/* What the engine must say of the tokens, straight from the definition; false if one is bad. */
static bool model(const choices *c, const uint8_t *tokens, size_t count, iron_report *r) {
    uint64_t batch = c->config.batch;

    *r = (iron_report){.tokens = count, .batches = count / batch + (count % batch > 0)};
    for (size_t k = 0; k < count; k++) {
        uint64_t i = c->config.positions == IRON_POSITIONS_BATCH ? k % batch : k;
        uint32_t token;

        if (!decode(c, tokens, k, &token))
            return false;
        token += (uint32_t)(137 * i + 17 * (i >> 4));
        r->xor_total ^= token;
        r->sum += token % c->config.vocab;
    }
    return true;
}

/* Feeds in pieces of 1 ... limit tokens, all at once for limit 0; closes the last batch. */
static iron_status feed(iron_engine *e, const choices *c, const uint8_t *tokens, size_t count,
                        size_t limit, iron_error *err) {
    bool may_fail = c->dtype == IRON_DTYPE_I32 || c->dtype == IRON_DTYPE_I64;
    iron_report before = {0}, after;
    iron_status status = IRON_OK;

    for (size_t done = 0, k = 0; done < count && status == IRON_OK; k++) {
        size_t piece = limit ? 1 + (k * 37 + c->step) % limit : count;

        /* a report settles the queue of batches: not for all, or queues would never be long */
        if (may_fail)
            before = fuzz_report(e);
        piece = piece < count - done ? piece : count - done;
        status = iron_engine_feed_as(e, c->dtype, tokens + done * c->width, piece, err);
        done += piece;
        if (fuzz_refused(status, err)) {
            FUZZ_REQUIRE(may_fail);
            after = fuzz_report(e);
            fuzz_require_same(&before, &after);
        }
    }
    return status == IRON_OK ? iron_engine_end_batch(e, err) : status;
}

static iron_engine *create(const choices *c) {
    iron_engine *engine = NULL;
    iron_error err;

    FUZZ_REQUIRE(iron_engine_create(&c->config, &engine, &err) == IRON_OK);
    return engine;
}

/* The same tokens from a source, for files in memory: a pipe is empty by now. */
static void check_source_feed(const choices *c, const iron_report *whole, const iron_error *why) {
    iron_engine *engine = create(c);
    iron_source *source = NULL;
    iron_report report;
    iron_error err = {0};
    bool opens, reads;
    uint64_t tokens;

    expect(c, &opens, &reads, &tokens);
    source = tokens == IRON_COUNT_UNKNOWN ? NULL : open_source(c, opens, tokens);
    if (source) {
        iron_status status = iron_engine_feed_source(engine, source, NULL, NULL, &err);

        FUZZ_REQUIRE(status == why->status);
        if (fuzz_refused(status, &err)) {
            const char *advice = strstr(why->text, ": check");
            iron_error same = *why;

            if (advice) /* another one for files */
                same.text[advice - why->text] = '\0';
            FUZZ_REQUIRE(strstr(err.text, same.text)); /* and where in which file */
        } else {
            FUZZ_REQUIRE(iron_engine_end_batch(engine, &err) == IRON_OK);
            report = fuzz_report(engine);
            fuzz_require_same(&report, whole);
        }
    }
    iron_source_close(source);
    iron_engine_destroy(engine);
}

static void check_feeds(const choices *c, const uint8_t *tokens, size_t count) {
    iron_engine *once = create(c), *split = create(c);
    iron_error err = {0}, split_err = {0};
    iron_status status = feed(once, c, tokens, count, 0, &err);
    iron_report wanted, whole, pieces;

    FUZZ_REQUIRE((status == IRON_OK) == model(c, tokens, count, &wanted));
    FUZZ_REQUIRE(feed(split, c, tokens, count, 1 + (size_t)c->step, &split_err) == status);
    whole = fuzz_report(once);
    pieces = fuzz_report(split);
    if (status != IRON_OK) {
        FUZZ_REQUIRE(status == IRON_E_FORMAT && strcmp(err.text, split_err.text) == 0);
    } else {
        FUZZ_REQUIRE(whole.tokens == wanted.tokens && whole.batches == wanted.batches);
        FUZZ_REQUIRE(whole.xor_total == wanted.xor_total && whole.sum == wanted.sum);
        fuzz_require_same(&whole, &pieces);
    }
    if (c->feeds_source)
        check_source_feed(c, &whole, &err);
    iron_engine_destroy(split);
    iron_engine_destroy(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    choices c;
    iron_source *source;
    uint8_t *tokens = NULL;
    size_t count = 0;
    bool opens, reads;
    uint64_t promised;

    choose(&c, &in);
    expect(&c, &opens, &reads, &promised);
    source = open_source(&c, opens, promised);
    if (source)
        tokens = read_tokens(&c, source, reads, &count);
    iron_source_close(source);
    if (tokens) {
        check_bytes(&c, tokens);
        check_feeds(&c, tokens, count);
    }
    free(tokens);
    for (size_t k = 0; k < c.file_count; k++)
        close(c.files[k].fd);
    return 0;
}
