/* SPDX-License-Identifier: MIT */
/*
 * push_prefix.h: is what an engine holds the beginning of this file? Its seal tells, without any of
 * its tokens.
 */
#ifndef IRON_CLIENT_PUSH_PREFIX_H
#define IRON_CLIENT_PUSH_PREFIX_H

#include "core/seal.h"
#include "formats/source.h"

/* The seal of the source's first `tokens` tokens, which are there, at the speed of memory. */
iron_status iron__push_prefix_seal(iron_source *source, iron__source_at *at, uint64_t tokens,
                                   iron_progress progress, void *context, char seal[IRON_SEAL_TEXT],
                                   iron_error *err);

#endif
