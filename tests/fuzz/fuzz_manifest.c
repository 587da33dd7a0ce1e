/* SPDX-License-Identifier: MIT */
/*
 * fuzz_manifest.c: any bytes as a manifest. An accepted manifest is consistent: chunks and files
 * are within the stream, and sums agree. Written and read again it is the same; merged with itself
 * as parts it is refused or describes the same stream.
 */
#include "fuzz.h"

#include "digest/manifest.c"

#include <unistd.h>

static void require_good(const iron_manifest *m) {
    uint64_t place = 0, sum = 0, file_sum = 0;
    iron_error err;

    FUZZ_REQUIRE(check_manifest(m, "fuzz", &err) == IRON_OK);
    FUZZ_REQUIRE(m->first % 4 == 0 && m->first + m->tokens <= m->stream_tokens);
    for (size_t k = 0; k < m->file_count; k++) {
        iron_manifest_file f = {.struct_size = sizeof f};

        FUZZ_REQUIRE(iron_manifest_file_at(m, k, &f, &err) == IRON_OK);
        FUZZ_REQUIRE(f.first == place && f.path[0] && f.format[0] && iron_dtype_bytes(f.dtype) > 0);
        place += f.tokens;
        FUZZ_REQUIRE(m->files[k].words.count <= f.tokens);
        file_sum += m->files[k].words.t;
    }
    FUZZ_REQUIRE(!m->has_file_seals || m->parts > 0 || file_sum == m->words.t);
    FUZZ_REQUIRE(place == m->stream_tokens);
    for (size_t k = 0; k < m->chunk_count; k++) {
        FUZZ_REQUIRE(iron__manifest_chunk_tokens(m, k) > 0);
        FUZZ_REQUIRE(iron__manifest_chunk_tokens(m, k) <= m->chunk_tokens);
        FUZZ_REQUIRE(m->chunks[k].mark == IRON_MARK_NONE || m->chunks[k].mark_at < m->chunk_tokens);
        sum += m->chunks[k].t;
    }
    FUZZ_REQUIRE(m->chunk_tokens == 0 || sum == m->words.t);
}

static void require_same(const iron_manifest *a, const iron_manifest *b) {
    FUZZ_REQUIRE(memcmp(&a->words, &b->words, sizeof a->words) == 0);
    FUZZ_REQUIRE(a->first == b->first && a->tokens == b->tokens && a->vocab == b->vocab);
    FUZZ_REQUIRE(a->stream_tokens == b->stream_tokens && a->chunk_tokens == b->chunk_tokens);
    FUZZ_REQUIRE(a->part == b->part && a->parts == b->parts);
    FUZZ_REQUIRE(a->chunk_count == b->chunk_count && a->file_count == b->file_count);
    FUZZ_REQUIRE(a->has_file_seals == b->has_file_seals);
    for (size_t k = 0; k < a->file_count; k++) {
        FUZZ_REQUIRE(strcmp(a->files[k].path, b->files[k].path) == 0);
        FUZZ_REQUIRE(iron__words_equal(&a->files[k].words, &b->files[k].words));
    }
    for (size_t k = 0; k < a->chunk_count; k++)
        FUZZ_REQUIRE(a->chunks[k].a == b->chunks[k].a && a->chunks[k].mark == b->chunks[k].mark);
}

static void require_round_trip(const iron_manifest *m) {
    const char *base = getenv("TMPDIR");
    iron_manifest *again = NULL;
    iron_error err;
    char path[256];

    snprintf(path, sizeof path, "%.200s/fuzz-manifest-%d", base ? base : "/tmp", (int)getpid());
    FUZZ_REQUIRE(iron_manifest_write(m, path, &err) == IRON_OK);
    FUZZ_REQUIRE(iron_manifest_is_one(path));
    FUZZ_REQUIRE(iron_manifest_read(path, &again, &err) == IRON_OK);
    require_same(m, again);
    iron_manifest_destroy(again);
    unlink(path);
}

static void try_merge(iron_manifest *m) {
    iron_manifest *const twice[] = {m, m};
    iron_manifest *joined = NULL;
    iron_error err;

    if (!fuzz_refused(iron_manifest_merge(twice, 1, &joined, &err), &err)) {
        FUZZ_REQUIRE(m->part == 1 && m->parts == 1);
        require_good(joined);
    }
    iron_manifest_destroy(joined);
    FUZZ_REQUIRE(fuzz_refused(iron_manifest_merge(twice, 2, &joined, &err), &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_copy(data, size);
    iron_manifest *m = NULL;
    iron_error err;

    if (fuzz_refused(parse_manifest("input", text, size, &m, &err), &err)) {
        FUZZ_REQUIRE(!m && (err.status == IRON_E_FORMAT || err.status == IRON_E_UNSUPPORTED));
    } else {
        memset(text, '#', size);
        require_good(m);
        require_round_trip(m);
        try_merge(m);
    }
    iron_manifest_destroy(m);
    free(text);
    return 0;
}
