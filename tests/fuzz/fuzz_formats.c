/* SPDX-License-Identifier: MIT */
/*
 * fuzz_formats.c: token files of every format, with their sidecars. The input begins with options:
 * the format of the file names, whether it is given explicitly, the user's dtype; then the two
 * sidecars with their lengths, and the token file.
 *
 *   judging   A megatron, ds, llmc or litpkds file opens if and only if a second, simple
 *             implementation of the format here accepts it.
 *             A raw file is refused if it is recognised as a container.
 *   reading   A file that opens is read to its end: it has the announced number of tokens, and they
 *             are the end of the file, in the order of its bytes and dimensions; positioned reads
 *             give the same tokens.
 *   pipes     A file without sidecars gives the same tokens, or also an error, through a pipe.
 *   sniffing  iron_sniff agrees with opening: format, dtype, tokens, or an error.
 */
#include "fuzz.h"

#include "core/memory.h"
#include "formats/format.h"
#include "formats/source.h"

#include <fcntl.h>
#include <unistd.h>

#define BYTES_MAX 8192u /* below what a pipe holds at once */

typedef enum kind { RAW, LLMC, NPY, LITPKDS, MEGATRON, DS, KINDS } kind;

static const char *const kind_names[KINDS] = {"raw", "llmc", "npy", "litpkds", "megatron", "ds"};

typedef struct part {
    const uint8_t *data;
    size_t bytes;
    bool is_there;
} part;

typedef struct choices {
    kind kind;
    bool is_forced;
    iron_dtype given;
    part sides[2], main;
} choices;

/* The folder of all runs; its files are overwritten by each run. */
static char folder[200];

static void remove_folder(void) {
    static const char *const names[] = {"t.bin", "t.idx", "t.ds", "t.ds.index", "t.ds.metadata"};

    if (chdir(folder) != 0)
        return;
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        unlink(names[k]);
    rmdir(folder);
}

static void make_folder(void) {
    const char *base = getenv("TMPDIR");

    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "%.150s/iron-fuzz-XXXXXX", base && base[0] ? base : "/tmp");
    FUZZ_REQUIRE(mkdtemp(folder));
    FUZZ_REQUIRE(atexit(remove_folder) == 0);
}

static void place_file(const char *name, const part *p, char path[240]) {
    int fd;

    snprintf(path, 240, "%s/%s", folder, name);
    if (!p->is_there) {
        unlink(path);
        return;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_REQUIRE(fd >= 0 && write(fd, p->data, p->bytes) == (ssize_t)p->bytes);
    close(fd);
}

static void place_files(const choices *c, char path[240]) {
    static const part none = {NULL, 0, false};
    bool is_ds = c->kind == DS;
    char side[240];

    make_folder();
    place_file("t.idx", is_ds ? &none : &c->sides[0], side);
    place_file("t.ds.index", is_ds ? &c->sides[0] : &none, side);
    place_file("t.ds.metadata", is_ds ? &c->sides[1] : &none, side);
    place_file(is_ds ? "t.ds" : "t.bin", &c->main, path);
}

static void choose(choices *c, fuzz_input *in) {
    uint8_t first = fuzz_byte(in);

    *c = (choices){.kind = (kind)(first % KINDS), .is_forced = first >> 7};
    c->given = (iron_dtype)(fuzz_byte(in) % 6);
    in->left = in->left < BYTES_MAX ? in->left : BYTES_MAX;
    for (size_t k = 0; k < 2; k++) {
        size_t bytes = fuzz_word(in, 2);
        part *p = &c->sides[k];

        bytes = bytes < in->left ? bytes : in->left;
        *p = (part){in->at, bytes, bytes > 0 && c->kind >= MEGATRON};
        in->at += bytes;
        in->left -= bytes;
    }
    c->main = (part){in->at, in->left, true};
}

/* The plain reading. */

static uint64_t number(const part *p, size_t at, unsigned bytes) {
    uint64_t value = 0;

    for (unsigned k = 0; k < bytes; k++)
        value |= (uint64_t)p->data[at + k] << 8 * k;
    return value;
}

static iron_dtype dtype_of_code(uint64_t code) {
    return code == 1   ? IRON_DTYPE_U8
           : code == 4 ? IRON_DTYPE_I32
           : code == 5 ? IRON_DTYPE_I64
           : code == 8 ? IRON_DTYPE_U16
                       : IRON_DTYPE_NONE;
}

/* Each returns the width of a good file's tokens, NONE of any other. */
static iron_dtype expected_llmc(const part *p) {
    bool is_old = p->bytes >= 12 && number(p, 0, 4) == 20240520 && number(p, 4, 4) == 1;
    bool is_new = p->bytes >= 12 && number(p, 0, 4) == 20240801 && number(p, 4, 4) == 7;
    size_t width = is_old ? 2 : 4;

    if ((!is_old && !is_new) || p->bytes < 1024 || number(p, 8, 4) > INT32_MAX ||
        p->bytes - 1024 != number(p, 8, 4) * width)
        return IRON_DTYPE_NONE;
    return is_old ? IRON_DTYPE_U16 : IRON_DTYPE_U32;
}

static iron_dtype expected_litpkds(const part *p) {
    iron_dtype dtype;

    if (p->bytes < 24 || memcmp(p->data, "LITPKDS", 7) != 0 || number(p, 7, 8) != 1 ||
        (number(p, 16, 8) == 0 && p->bytes > 24))
        return IRON_DTYPE_NONE;
    dtype = dtype_of_code(number(p, 15, 1));
    if (dtype != IRON_DTYPE_NONE && (p->bytes - 24) % iron_dtype_bytes(dtype) != 0)
        return IRON_DTYPE_NONE;
    return dtype;
}

static iron_dtype expected_megatron(const part *x, const part *main) {
    unsigned __int128 size, sum = 0, s, d;
    uint64_t last = 0;
    iron_dtype dtype;

    if (x->bytes < 34 || memcmp(x->data, "MMIDIDX\0", 9) != 0 || number(x, 9, 8) != 1)
        return IRON_DTYPE_NONE;
    dtype = dtype_of_code(number(x, 17, 1));
    s = number(x, 18, 8);
    d = number(x, 26, 8);
    size = 34 + 12 * s + 8 * d;
    if (dtype == IRON_DTYPE_NONE || d == 0 || (x->bytes != size && x->bytes != size + s))
        return IRON_DTYPE_NONE;
    for (size_t k = 0; k < s; k++) {
        uint64_t length = number(x, 34 + 4 * k, 4);

        if (length > INT32_MAX || number(x, 34 + 4 * (size_t)s + 8 * k, 8) != sum)
            return IRON_DTYPE_NONE;
        sum += length * iron_dtype_bytes(dtype);
    }
    for (size_t k = 0; k < d; k++) {
        uint64_t entry = number(x, 34 + 12 * (size_t)s + 8 * k, 8);

        if ((k == 0 && entry != 0) || entry < last)
            return IRON_DTYPE_NONE;
        last = entry;
    }
    return last == s && sum == main->bytes ? dtype : IRON_DTYPE_NONE;
}

/* The width that metadata say: 0 if none, 1 if they are bad. */
static size_t expected_metadata(const part *p, uint64_t *count) {
    char text[BYTES_MAX + 1], *line, *end;
    size_t width = 0;

    if (p->bytes > 4096)
        return 1;
    memcpy(text, p->data, p->bytes);
    text[p->bytes] = '\0';
    line = strchr(text, '\n');
    if (!line || line[1] < '0' || line[1] > '9' || strspn(line + 1, "0123456789") > 19)
        return 1; /* longer ones with zeros before are not made by any writer; see below */
    *count = strtoull(line + 1, &end, 10);
    if (*end != '\0' && *end != '\n')
        return 1;
    *line = '\0';
    if (strrchr(text, '|')) {
        width = strcmp(strrchr(text, '|'), "|2") == 0 ? 2 : 1;
        width = strcmp(strrchr(text, '|'), "|4") == 0 ? 4 : width;
    }
    return width;
}

static bool has_long_number(const part *p) {
    size_t run = 0;

    for (size_t k = 0; k < p->bytes; k++) {
        run = p->data[k] >= '0' && p->data[k] <= '9' ? run + 1 : 0;
        if (run > 19)
            return true;
    }
    return false;
}

static iron_dtype expected_ds(const choices *c) {
    const part *index = &c->sides[0], *metadata = &c->sides[1];
    uint64_t count = UINT64_MAX, last = 0, tokens;
    size_t width = metadata->is_there ? expected_metadata(metadata, &count) : 0;

    if (width == 0)
        width = c->given == IRON_DTYPE_U16 ? 2 : c->given == IRON_DTYPE_U32 ? 4 : 1;
    if (width == 1 || c->main.bytes % width != 0 || index->bytes * index->is_there % 8 != 0)
        return IRON_DTYPE_NONE;
    tokens = c->main.bytes / width;
    for (size_t k = 0; index->is_there && k < index->bytes; k += 8) {
        if (number(index, k, 8) < last)
            return IRON_DTYPE_NONE;
        last = number(index, k, 8);
    }
    if ((index->is_there && last != tokens) || (metadata->is_there && count != tokens))
        return IRON_DTYPE_NONE;
    return width == 2 ? IRON_DTYPE_U16 : IRON_DTYPE_U32;
}

static bool begins(const part *p, const char *magic, size_t bytes) {
    return p->bytes >= bytes && memcmp(p->data, magic, bytes) == 0;
}

/* The format that `auto` must take. */
static kind recognise(const choices *c) {
    if (begins(&c->main, "\x93NUMPY", 6))
        return NPY;
    if (begins(&c->main, "LITPKDS", 7))
        return LITPKDS;
    if (begins(&c->main, "\x88\xd8\x34\x01", 4) || begins(&c->main, "\xa1\xd9\x34\x01", 4))
        return LLMC;
    if (begins(&c->main, "MMIDIDX\0", 8) ||
        (c->kind != DS && c->sides[0].is_there && begins(&c->sides[0], "MMIDIDX\0", 9)))
        return MEGATRON;
    return c->kind == DS && (c->sides[0].is_there || c->sides[1].is_there) ? DS : RAW;
}

/* 1: the file must open; 0: it must not; -1: unknown. */
static int must_open(const choices *c, kind k) {
    iron_dtype dtype = IRON_DTYPE_NONE;

    switch (k) {
    case RAW:
        return c->given != IRON_DTYPE_NONE && c->main.bytes % iron_dtype_bytes(c->given) == 0;
    case LLMC:
        dtype = expected_llmc(&c->main);
        break;
    case LITPKDS:
        dtype = expected_litpkds(&c->main);
        break;
    case MEGATRON:
        if (!c->is_forced && begins(&c->main, "MMIDIDX\0", 8))
            return 0;
        if (c->kind != DS && c->sides[0].is_there)
            dtype = expected_megatron(&c->sides[0], &c->main);
        break;
    case DS:
        if (c->kind == DS && c->sides[1].is_there && has_long_number(&c->sides[1]))
            return -1;
        if (c->kind == DS && (c->sides[0].is_there || c->sides[1].is_there))
            dtype = expected_ds(c);
        break;
    default:
        return -1;
    }
    return dtype != IRON_DTYPE_NONE && (c->given == IRON_DTYPE_NONE || c->given == dtype);
}

/* What a raw file is, if it is not tokens; of a pipe, only its first bytes are known. *is_table: it
 * is an Arrow or a Parquet file. */
static const iron__container *look_at(const choices *c, const char *path, bool is_pipe,
                                      bool *is_table) {
    iron__input file = {.path = path, .bytes = c->main.bytes, .fd = open(path, O_RDONLY)};
    iron__candidate candidate = {.file = &file, .name = path, .dtype = c->given};
    const iron__container *found;
    const iron__format *format;

    candidate.head_count = c->main.bytes < IRON_HEAD_BYTES ? c->main.bytes : IRON_HEAD_BYTES;
    if (candidate.head_count > 0)
        memcpy(candidate.head, c->main.data, candidate.head_count);
    if (is_pipe)
        file.bytes = IRON_COUNT_UNKNOWN;
    found = iron__container_find(&candidate);
    format = iron__format_recognise(&candidate);
    *is_table = format == &iron__format_arrow || format == &iron__format_parquet ||
                (found && strcmp(found->name, "arrow") == 0);
    close(file.fd);
    return found;
}

static const iron__container *container_of(const choices *c, const char *path, bool is_pipe) {
    bool is_table;

    return look_at(c, path, is_pipe, &is_table);
}

/* Where token `k` of an array in Fortran order is: there the first index changes fastest. */
static uint64_t place_in_file(const iron__format_layout *l, uint64_t k) {
    uint64_t place = 0;

    for (unsigned d = l->dimensions; d-- > 0; k /= l->shape[d]) {
        uint64_t stride = 1;

        for (unsigned before = 0; before < d; before++)
            stride *= l->shape[before];
        place += k % l->shape[d] * stride;
    }
    return place;
}

/* The tokens are the bytes at the end of the file, in another order if the layout says so. */
static void check_bytes(const choices *c, const iron_source *source, const uint8_t *all,
                        size_t bytes) {
    const iron__format_layout *l = iron__source_layout(source, 0);
    size_t width = iron_dtype_bytes(l->dtype);
    const uint8_t *data = c->main.data + c->main.bytes - bytes;

    for (size_t k = 0; k < bytes / width; k++) {
        size_t place = l->shape ? (size_t)place_in_file(l, k) : k;

        for (size_t b = 0; b < width; b++)
            FUZZ_REQUIRE(all[k * width + b] ==
                         data[place * width + (l->is_swapped ? width - 1 - b : b)]);
    }
}

/* All tokens of a source: at most the bytes of the main file; NULL if it fails. */
static uint8_t *read_all(const choices *c, iron_source *source, size_t *bytes) {
    size_t width = iron_dtype_bytes(iron_source_dtype(source)), got = 1;
    uint8_t *all = malloc(c->main.bytes + 8 * width);
    iron_error err;

    FUZZ_REQUIRE(all);
    for (*bytes = 0; got > 0; *bytes += got * width) {
        FUZZ_REQUIRE(*bytes <= c->main.bytes);
        if (fuzz_refused(iron_source_read(source, all + *bytes, 7, &got, &err), &err)) {
            free(all);
            return NULL;
        }
    }
    return all;
}

/* The same tokens by place, one after another. */
static void check_places(iron_source *source, const uint8_t *all, size_t bytes) {
    size_t width = iron_dtype_bytes(iron_source_dtype(source));
    iron__parallel_source *at = NULL;
    uint8_t token[8];
    iron_error err;

    iron__source_seek(source, 0);
    FUZZ_REQUIRE(iron__parallel_source_open(source, iron__allocator_default(), &at, &err) ==
                 IRON_OK);
    FUZZ_REQUIRE(iron__parallel_source_tokens(at) == bytes / width);
    for (size_t k = 0; k < bytes / width; k += 1 + k / 3) {
        FUZZ_REQUIRE(iron__parallel_source_read(at, k, token, 1, NULL, &err) == IRON_OK);
        FUZZ_REQUIRE(memcmp(token, all + k * width, width) == 0);
    }
    iron__parallel_source_close(at);
}

static bool try_source(const choices *c, const char *path, iron_source **out, iron_error *err) {
    iron_source_options options = {.struct_size = sizeof options,
                                   .dtype = c->given,
                                   .format = c->is_forced ? kind_names[c->kind] : NULL,
                                   .paths = &path,
                                   .path_count = 1};

    *out = NULL;
    if (!fuzz_refused(iron_source_open(&options, out, err), err))
        return true;
    FUZZ_REQUIRE(!*out && (err->status == IRON_E_FORMAT || err->status == IRON_E_ARG ||
                           err->status == IRON_E_UNSUPPORTED));
    return false;
}

/* Through a pipe: `wanted` is what the file gave, NULL if it was refused. */
static void check_pipe(const choices *c, const uint8_t *wanted, size_t wanted_bytes) {
    iron_source *source;
    uint8_t *all = NULL;
    size_t bytes = 0;
    char path[40];
    iron_error err;
    int ends[2];

    FUZZ_REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    FUZZ_REQUIRE(write(ends[1], c->main.data, c->main.bytes) == (ssize_t)c->main.bytes);
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    if (try_source(c, path, &source, &err))
        all = read_all(c, source, &bytes);
    FUZZ_REQUIRE(!all == !wanted);
    FUZZ_REQUIRE(!all || (bytes == wanted_bytes && memcmp(all, wanted, bytes) == 0));
    free(all);
    iron_source_close(source);
    close(ends[0]);
}

/* What sniffing says of the file, against opening it without being told anything. */
static void check_sniff(const choices *c, const char *path) {
    choices plain = *c;
    const iron__container *found;
    iron_sniff_report r = {.struct_size = sizeof r};
    iron_source *source;
    iron_error err, why;
    bool is_known;

    plain.is_forced = false;
    plain.given = IRON_DTYPE_NONE;
    is_known = !fuzz_refused(iron_sniff(path, NULL, &r, &why), &why);
    found = recognise(c) == RAW ? container_of(&plain, path, false) : NULL;
    if (found && strcmp(found->name, "text") != 0) { /* of text, sniff guesses u8 */
        FUZZ_REQUIRE(is_known && strcmp(r.format, found->name) == 0);
        FUZZ_REQUIRE(!r.is_guess && r.dtype == IRON_DTYPE_NONE && r.reason_count > 0);
        return;
    }
    FUZZ_REQUIRE(strcmp(r.format, kind_names[recognise(c)]) == 0);
    FUZZ_REQUIRE(r.reason_count <= sizeof r.reasons / sizeof r.reasons[0]);
    FUZZ_REQUIRE(r.is_guess == (recognise(c) == RAW) && r.bytes == c->main.bytes);
    if (r.is_guess)
        plain.given = r.dtype;
    if (r.is_guess && r.dtype == IRON_DTYPE_NONE)
        return;
    if (!try_source(&plain, path, &source, &err)) {
        FUZZ_REQUIRE(!is_known && strcmp(err.text, why.text) == 0);
        return;
    }
    FUZZ_REQUIRE(is_known && strcmp(iron_source_file_format(source, 0), r.format) == 0);
    FUZZ_REQUIRE(iron_source_dtype(source) == r.dtype);
    FUZZ_REQUIRE(iron_source_tokens(source) == r.tokens);
    FUZZ_REQUIRE(r.data_offset + r.tokens * iron_dtype_bytes(r.dtype) == r.bytes);
    iron_source_close(source);
}

/* Compressed files and tables: what is inside decides. Whatever it is, it is read to its end or
 * refused; their own fuzzers say more. */
static bool is_wrapped(const choices *c, const char *path) {
    bool is_table;
    const iron__container *found = look_at(c, path, false, &is_table);

    return is_table || (found && found->codec != IRON_CODEC_NONE);
}

static void read_wrapped(const choices *c, const char *path) {
    iron_sniff_report r = {.struct_size = sizeof r};
    iron_source *source;
    uint64_t tokens[512];
    size_t count = 1, most = 4096; /* a few bytes can be compressed gigabytes */
    iron_error err;

    if (try_source(c, path, &source, &err)) {
        while (count > 0 && most-- > 0 &&
               !fuzz_refused(iron_source_read(source, tokens, 512, &count, &err), &err)) {
        }
        iron_source_close(source);
    }
    (void)fuzz_refused(iron_sniff(path, NULL, &r, &err), &err);
    iron_sniff_report_deinit(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    iron_source *source;
    uint8_t *all = NULL;
    size_t bytes = 0;
    iron_error err;
    char path[240];
    choices c;
    kind k;
    bool is_array = false, is_same_in_pipe = true;
    int verdict;

    choose(&c, &in);
    place_files(&c, path);
    if (is_wrapped(&c, path)) {
        read_wrapped(&c, path);
        return 0;
    }
    k = c.is_forced ? c.kind : recognise(&c);
    verdict = must_open(&c, k);
    if (k == RAW && !c.is_forced) {
        const iron__container *found = container_of(&c, path, false);

        verdict = found ? 0 : verdict;
        is_same_in_pipe = found == container_of(&c, path, true);
    }
    if (try_source(&c, path, &source, &err)) {
        FUZZ_REQUIRE(verdict != 0);
        FUZZ_REQUIRE(strcmp(iron_source_file_format(source, 0), kind_names[k]) == 0);
        all = read_all(&c, source, &bytes);
        FUZZ_REQUIRE(all);
        FUZZ_REQUIRE(bytes ==
                     iron_source_tokens(source) * iron_dtype_bytes(iron_source_dtype(source)));
        FUZZ_REQUIRE(bytes <= c.main.bytes);
        check_bytes(&c, source, all, bytes);
        is_array = iron__source_layout(source, 0)->shape != NULL;
        if (iron__source_is_seekable(source))
            check_places(source, all, bytes);
    } else {
        FUZZ_REQUIRE(verdict <= 0);
    }
    /* arrays in Fortran order need a file, and some containers are recognised by their end */
    if (k < MEGATRON && !is_array && is_same_in_pipe)
        check_pipe(&c, all, bytes);
    check_sniff(&c, path);
    free(all);
    iron_source_close(source);
    return 0;
}
