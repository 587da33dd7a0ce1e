/* SPDX-License-Identifier: MIT */
/*
 * push_prefix.c: see push_prefix.h. A scan takes whole quads with all threads; what is left of a
 * last one, at most three tokens, a seal carries over anyhow.
 */
#include "client/push_prefix.h"

#include "core/fail.h"
#include "formats/dtype.h"

#include <iron/iron_digest.h>

static iron_status scan_quads(iron_source *source, uint64_t tokens, iron_progress progress,
                              void *context, iron__seal *seal, iron_error *err) {
    iron_digest_result r = {.struct_size = sizeof r};
    iron_manifest *manifest = NULL;
    iron_scan_options options;
    iron_status status;

    iron_scan_options_init(&options);
    options.backend = "cpu";
    options.count = tokens;
    options.progress = progress;
    options.context = context;
    status = iron_scan(source, &options, &manifest, err);
    if (status == IRON_OK)
        status = iron_manifest_digest(manifest, &r, err);
    iron_manifest_destroy(manifest);
    seal->words = (iron__seal_words){r.words[0], r.words[1], r.words[2], r.words[3]};
    return status;
}

static iron_status add_rest(iron__source_at *at, iron_dtype dtype, uint64_t first, size_t count,
                            iron__seal *seal, iron_error *err) {
    uint64_t stored[3]; /* of any width */
    uint32_t wide[IRON_WIDEN_TOKENS];
    iron__tokens_view view = {dtype, stored, count};

    IRON_TRY(iron__source_at_read(at, first, stored, count, NULL, err));
    IRON_TRY(iron__view_check(&view, first, err));
    iron__seal_feed(seal, iron__view_tokens(&view, 0, &count, wide), count);
    return IRON_OK;
}

iron_status iron__push_prefix_seal(iron_source *source, iron__source_at *at, uint64_t tokens,
                                   iron_progress progress, void *context, char seal[IRON_SEAL_TEXT],
                                   iron_error *err) {
    size_t rest = (size_t)(tokens % 4);
    iron__seal s = {0};

    IRON_TRY(scan_quads(source, tokens - rest, progress, context, &s, err));
    if (rest > 0)
        IRON_TRY(add_rest(at, iron_source_dtype(source), tokens - rest, rest, &s, err));
    iron__seal_text(iron__seal_total(&s), seal);
    return IRON_OK;
}
