/* SPDX-License-Identifier: MIT */
/* manifest.c: looking into a manifest, and letting go of it. */
#include "digest/manifest.h"

#include "core/fail.h"

#include <stdlib.h>

uint64_t iron__manifest_chunks_of(uint64_t first, uint64_t tokens, uint64_t chunk_tokens) {
    if (chunk_tokens == 0 || tokens == 0)
        return 0;
    return (first + tokens - 1) / chunk_tokens - first / chunk_tokens + 1;
}

uint64_t iron__manifest_chunk_first(const iron_manifest *m, size_t k) {
    return (m->first / m->chunk_tokens + k) * m->chunk_tokens;
}

uint64_t iron__manifest_chunk_tokens(const iron_manifest *m, size_t k) {
    uint64_t first = iron__manifest_chunk_first(m, k), end = first + m->chunk_tokens;
    uint64_t seen_end = m->first + m->tokens;

    first = first > m->first ? first : m->first;
    end = end < seen_end ? end : seen_end;
    return end - first;
}

void iron_manifest_destroy(iron_manifest *manifest) {
    if (!manifest)
        return;
    for (size_t k = 0; k < manifest->file_count; k++)
        free(manifest->files[k].path);
    free(manifest->files);
    free(manifest->chunks);
    free(manifest->origin);
    free(manifest);
}

iron_status iron_manifest_describe(const iron_manifest *manifest, iron_manifest_info *info,
                                   iron_error *err) {
    IRON_FAIL_IF(info->struct_size != sizeof *info, err, IRON_E_ARG,
                 "iron_manifest_info.struct_size is not %zu; set it to sizeof", sizeof *info);
    *info = (iron_manifest_info){.struct_size = sizeof *info,
                                 .part = manifest->part,
                                 .parts = manifest->parts,
                                 .first = manifest->first,
                                 .tokens = manifest->tokens,
                                 .stream_tokens = manifest->stream_tokens,
                                 .chunk_tokens = manifest->chunk_tokens,
                                 .chunk_count = manifest->chunk_count,
                                 .vocab = manifest->vocab,
                                 .file_count = manifest->file_count};
    return IRON_OK;
}

iron_status iron_manifest_file_at(const iron_manifest *manifest, size_t index,
                                  iron_manifest_file *file, iron_error *err) {
    const iron__manifest_entry *f;

    IRON_FAIL_IF(file->struct_size != sizeof *file, err, IRON_E_ARG,
                 "iron_manifest_file.struct_size is not %zu; set it to sizeof", sizeof *file);
    IRON_FAIL_IF(index >= manifest->file_count, err, IRON_E_ARG,
                 "file %zu of a manifest with %zu; they count from 0", index, manifest->file_count);
    f = &manifest->files[index];
    *file = (iron_manifest_file){sizeof *file, f->dtype, f->path, f->format, f->first, f->tokens};
    return IRON_OK;
}

iron_status iron_manifest_digest(const iron_manifest *manifest, iron_digest_result *result,
                                 iron_error *err) {
    const iron__token_stats *s = &manifest->stats;

    IRON_FAIL_IF(result->struct_size != sizeof *result, err, IRON_E_ARG,
                 "iron_digest_result.struct_size is not %zu; set it to sizeof", sizeof *result);
    *result = (iron_digest_result){
        .struct_size = sizeof *result,
        .seal_version = IRON_SEAL_VERSION,
        .words = {manifest->words.count, manifest->words.t, manifest->words.a, manifest->words.b},
        .tokens = manifest->tokens,
        .vocab = manifest->vocab,
        .out_of_vocab = s->out_of_vocab,
        .first_out_position = s->first_position,
        .first_out_value = s->first_value,
        .min = s->min,
        .max = s->max};
    iron__seal_text(manifest->words, result->seal);
    return IRON_OK;
}
