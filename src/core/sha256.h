/* SPDX-License-Identifier: MIT */
/*
 * sha256.h: SHA-256 (FIPS 180-4) of bytes that arrive in pieces: for what strangers may have
 * chosen, where the project's own hashes (hash.h, seal.h) are not meant to hold.
 */
#ifndef IRON_CORE_SHA256_H
#define IRON_CORE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define IRON_SHA256_BYTES 32u

typedef struct iron__sha256_state {
    uint32_t words[8];
    uint64_t bytes;          /* added so far */
    unsigned char block[64]; /* the bytes after the last whole block */
} iron__sha256_state;

void iron__sha256_init(iron__sha256_state *hash);
void iron__sha256_add(iron__sha256_state *hash, const void *bytes, size_t count);
void iron__sha256_end(iron__sha256_state *hash, unsigned char digest[IRON_SHA256_BYTES]);
/* All at once. */
void iron__sha256(const void *bytes, size_t count, unsigned char digest[IRON_SHA256_BYTES]);

#endif
