/* SPDX-License-Identifier: MIT */
/*
 * sha256.c: SHA-256, with the names of FIPS 180-4 where they are letters.
 */
#include "core/sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, unsigned bits) { return word >> bits | word << (32 - bits); }

static uint32_t read_word(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void write_word(unsigned char *at, uint32_t word) {
    for (int k = 0; k < 4; k++)
        at[k] = (unsigned char)(word >> (24 - 8 * k));
}

static void add_block(uint32_t words[8], const unsigned char block[64]) {
    uint32_t w[64], a = words[0], b = words[1], c = words[2], d = words[3], e = words[4],
                    f = words[5], g = words[6], h = words[7];

    for (int t = 0; t < 16; t++)
        w[t] = read_word(block + 4 * (size_t)t);
    for (int t = 16; t < 64; t++) {
        uint32_t low = w[t - 15], high = w[t - 2];

        w[t] = (rotate(high, 17) ^ rotate(high, 19) ^ high >> 10) + w[t - 7] +
               (rotate(low, 7) ^ rotate(low, 18) ^ low >> 3) + w[t - 16];
    }
    for (int t = 0; t < 64; t++) {
        uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
                      constants[t] + w[t];
        uint32_t t2 =
            (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    words[0] += a, words[1] += b, words[2] += c, words[3] += d;
    words[4] += e, words[5] += f, words[6] += g, words[7] += h;
}

void iron__sha256_init(iron__sha256_state *hash) {
    *hash = (iron__sha256_state){.words = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void iron__sha256_add(iron__sha256_state *hash, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    size_t used = (size_t)(hash->bytes % 64);

    hash->bytes += count;
    if (used > 0 && used + count >= 64) {
        memcpy(hash->block + used, at, 64 - used);
        add_block(hash->words, hash->block);
        at += 64 - used;
        count -= 64 - used;
        used = 0;
    }
    for (; used == 0 && count >= 64; at += 64, count -= 64)
        add_block(hash->words, at);
    if (count > 0)
        memcpy(hash->block + used, at, count);
}

void iron__sha256_end(iron__sha256_state *hash, unsigned char digest[IRON_SHA256_BYTES]) {
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = hash->bytes * 8;
    unsigned char length[8];

    write_word(length, (uint32_t)(bits >> 32));
    write_word(length + 4, (uint32_t)bits);
    iron__sha256_add(hash, padding, 1 + (119 - hash->bytes % 64) % 64);
    iron__sha256_add(hash, length, sizeof length);
    for (size_t k = 0; k < 8; k++)
        write_word(digest + 4 * k, hash->words[k]);
}

void iron__sha256(const void *bytes, size_t count, unsigned char digest[IRON_SHA256_BYTES]) {
    iron__sha256_state hash;

    iron__sha256_init(&hash);
    iron__sha256_add(&hash, bytes, count);
    iron__sha256_end(&hash, digest);
}
