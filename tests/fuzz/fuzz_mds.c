/* SPDX-License-Identifier: MIT */
/*
 * fuzz_mds.c: MDS shards with their index. The input begins with options; then the shard, or the
 * index as a text and the shard.
 *
 *   described  The index is written here: columns of any encodings, true counts and sizes. The
 *              shard is read if and only if a second, simple reader here accepts it, and both give
 *              the same tokens and rows; as it is, and compressed; with checksums that are right,
 *              and with wrong ones, which are refused.
 *   any text   An index of any text: whatever is read is read to its end or refused.
 */
#include "fuzz.h"

#include "formats/format.h"
#include "formats/source.h"
#include "io/checksum.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MAX   8192u
#define COLUMNS_MAX 4u

static const struct encoding {
    const char *name;
    unsigned code;  /* of integers: their type in arrays */
    unsigned width; /* of an integer; 0: not integers */
    unsigned size;  /* of the column; 0: variable */
    enum { OTHER, NUMBERS, ARRAY, TYPED, BYTES } kind;
} encodings[] = {
    {"int", 65, 8, 8, NUMBERS},
    {"int8", 9, 1, 1, NUMBERS},
    {"uint16", 16, 2, 2, NUMBERS},
    {"uint64", 64, 8, 8, NUMBERS},
    {"ndarray", 0, 0, 0, ARRAY},
    {"ndarray:uint8", 8, 1, 0, TYPED},
    {"ndarray:int16", 17, 2, 0, TYPED},
    {"ndarray:uint32", 32, 4, 0, TYPED},
    {"ndarray:int32", 33, 4, 0, TYPED},
    {"ndarray:int64", 65, 8, 0, TYPED},
    {"ndarray:uint16:3", 16, 2, 6, NUMBERS},
    {"ndarray:int32:2,1", 33, 4, 8, NUMBERS},
    {"bytes", 0, 0, 0, BYTES},
    {"str", 0, 0, 0, OTHER},
    {"float32", 0, 0, 4, OTHER},
    {"ndarray:float32", 0, 0, 0, OTHER},
};

#define ENCODINGS (sizeof encodings / sizeof encodings[0])

typedef enum checksums { CHECKSUMS_NONE, CHECKSUMS_RIGHT, CHECKSUMS_WRONG } checksums;

typedef struct choices {
    iron_dtype given;
    bool is_text, is_compressed;
    checksums checksums;
    size_t columns, chosen;
    const struct encoding *column[COLUMNS_MAX];
    const uint8_t *shard;
    size_t bytes;
} choices;

/* What the simple reader found. */
typedef struct expected {
    iron_dtype dtype;
    uint8_t *tokens;
    size_t bytes;
    uint64_t starts[BYTES_MAX]; /* of rows */
    size_t rows;
} expected;

static char folder[200];

static void remove_folder(void) {
    if (chdir(folder) != 0)
        return;
    unlink("index.json");
    unlink("s.mds");
    unlink("s.mds.gz");
    rmdir(folder);
}

static void place(const char *name, const void *data, size_t bytes) {
    const char *base = getenv("TMPDIR");
    char path[240];
    int fd;

    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%.150s/iron-fuzz-XXXXXX", base && base[0] ? base : "/tmp");
        FUZZ_REQUIRE(mkdtemp(folder) && atexit(remove_folder) == 0);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
}

static void choose(choices *c, fuzz_input *in) {
    uint8_t first = fuzz_byte(in);

    *c = (choices){.given = (iron_dtype)(first % 6),
                   .is_text = first & 0x80,
                   .is_compressed = first & 0x40,
                   .checksums = (checksums)((first >> 4 & 3) % 3)};
    first = fuzz_byte(in);
    c->columns = 1 + first % COLUMNS_MAX;
    c->chosen = (first >> 2) % c->columns;
    for (size_t k = 0; k < c->columns && !c->is_text; k++)
        c->column[k] = &encodings[fuzz_byte(in) % ENCODINGS];
}

/* The simple reader. */

static uint64_t number(const uint8_t *at, size_t bytes) {
    uint64_t value = 0;

    for (size_t k = 0; k < bytes; k++)
        value |= (uint64_t)at[k] << 8 * k;
    return value;
}

static iron_dtype dtype_of_width(unsigned width) {
    return width == 1 ? IRON_DTYPE_U8 : width == 2 ? IRON_DTYPE_U16 : IRON_DTYPE_U32;
}

static bool is_integer_code(unsigned code) {
    return code == 8 || code == 9 || code == 16 || code == 17 || code == 32 || code == 33 ||
           code == 64 || code == 65;
}

/* Adds integers; false: one of them is not a token. */
static bool add_tokens(expected *e, const uint8_t *at, size_t count, unsigned code, unsigned width,
                       unsigned out) {
    for (size_t k = 0; k < count; k++) {
        uint64_t value = number(at + k * width, width);

        if (value > UINT32_MAX || (code % 8 == 1 && value >> (8 * width - 1)))
            return false;
        for (unsigned b = 0; b < out; b++)
            e->tokens[e->bytes++] = (uint8_t)(value >> 8 * b);
    }
    return true;
}

static bool expect_array(const struct encoding *t, expected *e, const uint8_t *at, size_t size) {
    size_t head = t->kind == ARRAY ? 2 : 1, width, dimensions, shape_width;
    unsigned code = t->code;
    unsigned __int128 count = 1;

    if (size < head)
        return false;
    if (t->kind == ARRAY)
        code = at[0];
    if (!is_integer_code(code))
        return false;
    width = code / 8 == 1 ? 1 : code / 8 == 2 ? 2 : code / 8 == 4 ? 4 : 8;
    dimensions = at[head - 1] >> 2;
    shape_width = (size_t)1 << (at[head - 1] & 3);
    if (size < head + dimensions * shape_width)
        return false;
    for (size_t k = 0; k < dimensions; k++) {
        count *= number(at + head + k * shape_width, shape_width);
        if (count > BYTES_MAX)
            count = BYTES_MAX + 1; /* too many, unless multiplied by 0 */
    }
    head += dimensions * shape_width;
    if (count * width != size - head)
        return false;
    if (e->dtype == IRON_DTYPE_NONE)
        e->dtype = dtype_of_width((unsigned)width);
    return e->dtype == dtype_of_width((unsigned)width) &&
           add_tokens(e, at + head, (size_t)count, code, (unsigned)width,
                      (unsigned)iron_dtype_bytes(e->dtype));
}

static bool expect_column(const choices *c, expected *e, const uint8_t *at, size_t size) {
    const struct encoding *t = c->column[c->chosen];
    unsigned width = t->kind == BYTES ? (unsigned)iron_dtype_bytes(c->given) : t->width;

    e->starts[e->rows++] = e->dtype == IRON_DTYPE_NONE ? 0 : e->bytes / iron_dtype_bytes(e->dtype);
    if (t->kind == ARRAY || t->kind == TYPED)
        return expect_array(t, e, at, size);
    if (size % width != 0)
        return false;
    if (t->kind == BYTES) {
        unsigned code = c->given == IRON_DTYPE_I32 || c->given == IRON_DTYPE_I64 ? 1 : 0;

        return add_tokens(e, at, size / width, code, width, width);
    }
    return add_tokens(e, at, size / width, t->code, width, (unsigned)iron_dtype_bytes(e->dtype));
}

static bool expect_sample(const choices *c, expected *e, const uint8_t *at, size_t size) {
    size_t words = 0, next, sizes[COLUMNS_MAX];
    bool is_good = true;

    for (size_t k = 0; k < c->columns; k++)
        words += c->column[k]->size == 0;
    next = 4 * words;
    if (size < next)
        return false;
    words = 0;
    for (size_t k = 0; k < c->columns; k++) {
        sizes[k] = c->column[k]->size ? c->column[k]->size : number(at + 4 * words++, 4);
        next += sizes[k];
    }
    if (next != size)
        return false;
    next = 4 * words;
    for (size_t k = 0; k < c->columns; k++) {
        if (k == c->chosen)
            is_good = expect_column(c, e, at + next, sizes[k]);
        next += sizes[k];
    }
    return is_good;
}

/* Whether the shard is good; fills `e`. */
static bool expect(const choices *c, expected *e) {
    const struct encoding *t = c->column[c->chosen];
    uint64_t count = c->bytes >= 4 ? number(c->shard, 4) : 0, begin, end;

    if (t->kind == OTHER || (t->kind == BYTES && c->given == IRON_DTYPE_NONE))
        return false;
    if (t->kind == BYTES)
        e->dtype = c->given;
    else if (t->kind != ARRAY)
        e->dtype = dtype_of_width(t->width);
    if (c->bytes < 8 || (c->bytes - 8) / 4 < count)
        return false;
    begin = number(c->shard + 4, 4);
    if (begin < 4 * (count + 2) || begin > c->bytes)
        return false;
    for (uint64_t k = 0; k < count; k++, begin = end) {
        end = number(c->shard + 8 + 4 * k, 4);
        if (end < begin || end > c->bytes ||
            !expect_sample(c, e, c->shard + begin, (size_t)(end - begin)))
            return false;
    }
    if (begin != c->bytes)
        return false;
    if (e->dtype == IRON_DTYPE_NONE)
        e->dtype = c->given == IRON_DTYPE_NONE ? IRON_DTYPE_U32 : c->given;
    return c->given == IRON_DTYPE_NONE || c->given == e->dtype;
}

/* Writing. */

/* gzip with a stored block. */
static size_t compress(const choices *c, uint8_t *to) {
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1};
    uint32_t crc = UINT32_MAX;
    size_t at = sizeof head;

    memcpy(to, head, at);
    to[at++] = (uint8_t)c->bytes;
    to[at++] = (uint8_t)(c->bytes >> 8);
    to[at++] = (uint8_t)~c->bytes;
    to[at++] = (uint8_t)(~c->bytes >> 8);
    for (size_t k = 0; k < c->bytes; k++) {
        to[at++] = c->shard[k];
        crc ^= c->shard[k];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    for (unsigned k = 0; k < 4; k++)
        to[at++] = (uint8_t)(~crc >> 8 * k);
    for (unsigned k = 0; k < 4; k++)
        to[at++] = (uint8_t)(c->bytes >> 8 * k);
    return at;
}

/* {"sha1": "..."}, or {} if it cannot be computed here. */
static void write_hashes(const choices *c, const void *data, size_t bytes, char text[200]) {
    char hex[IRON_CHECKSUM_HEX_MAX + 1] = "";
    iron__checksum *sum = NULL;

    strcpy(text, "{}");
    if (c->checksums == CHECKSUMS_NONE || iron__checksum_create("sha1", &sum, NULL) != IRON_OK)
        return;
    FUZZ_REQUIRE(iron__checksum_update(sum, data, bytes, NULL) == IRON_OK);
    FUZZ_REQUIRE(iron__checksum_final(sum, hex, NULL) == IRON_OK);
    iron__checksum_destroy(sum);
    hex[7] = c->checksums == CHECKSUMS_WRONG ? (hex[7] == '0' ? '1' : '0') : hex[7];
    snprintf(text, 200, "{\"sha1\": \"%s\"}", hex);
}

/* Writes shard and index; `name` receives the file to read. Whether a checksum is wrong. */
static bool write_described(const choices *c, const char **name) {
    char text[2000], hashes[200], zip_hashes[200];
    uint8_t zip[BYTES_MAX + 64];
    size_t zip_bytes = compress(c, zip), at;

    write_hashes(c, c->shard, c->bytes, hashes);
    write_hashes(c, zip, zip_bytes, zip_hashes);
    at = (size_t)snprintf(text, sizeof text, "{\"shards\": [{\"column_names\": [");
    for (size_t k = 0; k < c->columns; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"c%zu\"", k ? "," : "", k);
    at += (size_t)snprintf(text + at, sizeof text - at, "], \"column_encodings\": [");
    for (size_t k = 0; k < c->columns; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%s\"", k ? "," : "",
                               c->column[k]->name);
    at += (size_t)snprintf(text + at, sizeof text - at, "], \"column_sizes\": [");
    for (size_t k = 0; k < c->columns; k++)
        at += c->column[k]->size
                  ? (size_t)snprintf(text + at, sizeof text - at, "%s%u", k ? "," : "",
                                     c->column[k]->size)
                  : (size_t)snprintf(text + at, sizeof text - at, "%snull", k ? "," : "");
    at += (size_t)snprintf(
        text + at, sizeof text - at,
        "], \"compression\": \"gz\", \"format\": \"mds\", \"version\": 2, \"samples\": %llu, "
        "\"raw_data\": {\"basename\": \"s.mds\", \"bytes\": %zu, \"hashes\": %s}, "
        "\"zip_data\": {\"basename\": \"s.mds.gz\", \"bytes\": %zu, \"hashes\": %s}}]}",
        (unsigned long long)(c->bytes >= 4 ? number(c->shard, 4) : 0), c->bytes, hashes, zip_bytes,
        zip_hashes);
    FUZZ_REQUIRE(at < sizeof text);
    place("index.json", text, at);
    *name = c->is_compressed ? "s.mds.gz" : "s.mds";
    if (c->is_compressed)
        place("s.mds.gz", zip, zip_bytes);
    else
        place("s.mds", c->shard, c->bytes);
    return c->checksums == CHECKSUMS_WRONG && strlen(hashes) > 2;
}

static bool try_source(const choices *c, const char *name, iron_source **out) {
    char path[240], column[8];
    const char *paths[] = {path};
    iron_source_options options = {.struct_size = sizeof options,
                                   .dtype = c->given,
                                   .format = c->is_text ? NULL : "mds",
                                   .column = c->is_text ? NULL : column,
                                   .paths = paths,
                                   .path_count = 1};
    iron_error err;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(column, sizeof column, "c%zu", c->chosen);
    *out = NULL;
    return !fuzz_refused(iron_source_open(&options, out, &err), &err);
}

/* Reads to the end; NULL: refused. */
static uint8_t *read_all(const choices *c, iron_source *source, size_t *bytes) {
    size_t width = iron_dtype_bytes(iron_source_dtype(source)), got = 1;
    uint8_t *all = malloc(c->bytes + 64);
    iron_error err;

    FUZZ_REQUIRE(all);
    for (*bytes = 0; got > 0; *bytes += got * width) {
        FUZZ_REQUIRE(*bytes <= c->bytes);
        if (fuzz_refused(iron_source_read(source, all + *bytes, 7, &got, &err), &err)) {
            free(all);
            return NULL;
        }
    }
    FUZZ_REQUIRE(iron_source_tokens(source) == *bytes / width);
    return all;
}

/* The rows of the table, block by block. */
static void check_rows(iron_source *source, const char *name, const expected *e) {
    const iron__table *t = iron__source_layout(source, 0)->table;
    iron__input in = {.fd = -1};
    char path[240];
    size_t row = 0;
    iron_error err;

    FUZZ_REQUIRE(t && t->rows == e->rows);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    in.path = path;
    FUZZ_REQUIRE(iron__input_open(&in, &err) == IRON_OK);
    for (size_t k = 0; k < t->block_count; k++) {
        iron__block places = {.data = NULL};

        FUZZ_REQUIRE(iron__table_row_starts(t, &in, k, &places, &err) == IRON_OK);
        for (size_t p = 0; p < places.place_count; p++, row++)
            FUZZ_REQUIRE(row < e->rows && places.places[p] == e->starts[row]);
        iron__block_clear(&places);
    }
    FUZZ_REQUIRE(row == e->rows);
    iron__input_close(&in);
}

static void run_described(const choices *c) {
    static expected e;
    iron_source *source;
    const char *name;
    bool is_good, is_wrong = write_described(c, &name);
    uint8_t *all = NULL;
    size_t bytes = 0;

    e = (expected){.tokens = malloc(c->bytes + 64)};
    FUZZ_REQUIRE(e.tokens);
    is_good = expect(c, &e) && !is_wrong;
    if (c->is_compressed && !iron__codec_is_there(IRON_CODEC_GZIP))
        is_good = false;
    if (try_source(c, name, &source))
        all = read_all(c, source, &bytes);
    FUZZ_REQUIRE(is_good == (all != NULL));
    if (is_good) {
        FUZZ_REQUIRE(iron_source_dtype(source) == e.dtype);
        FUZZ_REQUIRE(bytes == e.bytes && memcmp(all, e.tokens, bytes) == 0);
        check_rows(source, name, &e);
    }
    free(all);
    free(e.tokens);
    iron_source_close(source);
}

static void run_text(const choices *c, const char *text) {
    iron_sniff_report r = {.struct_size = sizeof r};
    iron_source *source;
    uint64_t tokens[512];
    size_t count = 1;
    char path[240];
    iron_error err;

    place("index.json", text, strlen(text));
    place("s.mds", c->shard, c->bytes);
    if (try_source(c, "s.mds", &source)) {
        while (count > 0 &&
               !fuzz_refused(iron_source_read(source, tokens, 512, &count, &err), &err)) {
        }
        iron_source_close(source);
    }
    snprintf(path, sizeof path, "%s/s.mds", folder);
    (void)fuzz_refused(iron_sniff(path, NULL, &r, &err), &err);
    iron_sniff_report_deinit(&r);
    if (try_source(c, "index.json", &source)) /* stands for its shards */
        iron_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size < BYTES_MAX ? size : BYTES_MAX};
    choices c;

    choose(&c, &in);
    if (c.is_text) {
        char *text = fuzz_text(&in);

        c.shard = in.at;
        c.bytes = in.left;
        run_text(&c, text);
        free(text);
    } else {
        c.shard = in.at;
        c.bytes = in.left;
        run_described(&c);
    }
    return 0;
}
