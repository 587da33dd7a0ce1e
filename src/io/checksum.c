/* SPDX-License-Identifier: MIT */
/*
 * checksum.c: checksums by libcrypto and libxxhash, whose functions are declared here, so that
 * neither is needed to build or to run. And CRC-32.
 */
#include "io/checksum.h"

#include "core/fail.h"
#include "core/library.h"
#include "core/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The functions of libcrypto 1.1 and 3. */
static struct crypto_functions {
    const void *(*EVP_get_digestbyname)(const char *name);
    void *(*EVP_MD_CTX_new)(void);
    void (*EVP_MD_CTX_free)(void *context);
    int (*EVP_DigestInit_ex)(void *context, const void *digest, void *engine);
    int (*EVP_DigestUpdate)(void *context, const void *data, size_t bytes);
    int (*EVP_DigestFinal_ex)(void *context, unsigned char *to, unsigned *length);
} crypto;

typedef struct xxh128 {
    uint64_t low, high;
} xxh128;

/* The functions of libxxhash 0.8: four hashes with the same ones, but for seeds and results. */
typedef enum family { XXH_32, XXH_64, XXH_3_64, XXH_3_128, CRYPTO } family;

typedef struct xxh_functions {
    void *(*create)(void);
    int (*destroy)(void *state);
    int (*update)(void *state, const void *data, size_t bytes);
    union {
        int (*seed_32)(void *state, uint32_t seed);
        int (*seed_64)(void *state, uint64_t seed);
        int (*no_seed)(void *state);
    } reset;
    union {
        uint32_t (*u32)(const void *state);
        uint64_t (*u64)(const void *state);
        xxh128 (*u128)(const void *state);
    } digest;
} xxh_functions;

static xxh_functions xxh[CRYPTO]; /* by family */
static bool has_crypto, has_xxh;

typedef struct algorithm {
    const char *name;
    family family;
    const char *digest; /* libcrypto's name for it */
} algorithm;

static const algorithm algorithms[] = {
    {"md5", CRYPTO, "md5"},
    {"sha1", CRYPTO, "sha1"},
    {"sha224", CRYPTO, "sha224"},
    {"sha256", CRYPTO, "sha256"},
    {"sha384", CRYPTO, "sha384"},
    {"sha512", CRYPTO, "sha512"},
    {"sha3_224", CRYPTO, "sha3-224"},
    {"sha3_256", CRYPTO, "sha3-256"},
    {"sha3_384", CRYPTO, "sha3-384"},
    {"sha3_512", CRYPTO, "sha3-512"},
    {"blake2b", CRYPTO, "blake2b512"},
    {"blake2s", CRYPTO, "blake2s256"},
    {"xxh32", XXH_32, NULL},
    {"xxh64", XXH_64, NULL},
    {"xxh3_64", XXH_3_64, NULL},
    {"xxh128", XXH_3_128, NULL},
    {"xxh3_128", XXH_3_128, NULL},
};

struct iron__checksum {
    const algorithm *algorithm;
    void *state; /* the library's */
};

static void load_crypto(void) {
    static const iron__symbol symbols[] = {
#define SYMBOL(name) {#name, offsetof(struct crypto_functions, name), true}
        SYMBOL(EVP_get_digestbyname),
        SYMBOL(EVP_MD_CTX_new),
        SYMBOL(EVP_MD_CTX_free),
        SYMBOL(EVP_DigestInit_ex),
        SYMBOL(EVP_DigestUpdate),
        SYMBOL(EVP_DigestFinal_ex)
#undef SYMBOL
    };
    static const char *const usual[] = {"libcrypto.so.3", "libcrypto.so.1.1", NULL};
    iron__library l =
        iron__library_open(NULL, usual, symbols, sizeof symbols / sizeof symbols[0], &crypto);

    has_crypto = l.handle && !l.missing;
}

static void load_xxh(void) {
    static const iron__symbol symbols[] = {
#define FAMILY(family, state, hash)                                                                \
    {state "_createState", sizeof xxh[0] * (family) + offsetof(xxh_functions, create), true},      \
        {state "_freeState", sizeof xxh[0] * (family) + offsetof(xxh_functions, destroy), true},   \
        {hash "_reset", sizeof xxh[0] * (family) + offsetof(xxh_functions, reset), true},          \
        {hash "_update", sizeof xxh[0] * (family) + offsetof(xxh_functions, update), true},        \
        {hash "_digest", sizeof xxh[0] * (family) + offsetof(xxh_functions, digest), true},
        FAMILY(XXH_32, "XXH32", "XXH32") FAMILY(XXH_64, "XXH64", "XXH64")
            FAMILY(XXH_3_64, "XXH3", "XXH3_64bits") FAMILY(XXH_3_128, "XXH3", "XXH3_128bits")
#undef FAMILY
    };
    static const char *const usual[] = {"libxxhash.so.0", NULL};
    iron__library l =
        iron__library_open(NULL, usual, symbols, sizeof symbols / sizeof symbols[0], xxh);

    has_xxh = l.handle && !l.missing;
}

static const algorithm *algorithm_of(const char *name) {
    for (size_t k = 0; k < sizeof algorithms / sizeof algorithms[0]; k++)
        if (strcmp(algorithms[k].name, name) == 0)
            return &algorithms[k];
    return NULL;
}

bool iron__checksum_is_known(const char *name) { return algorithm_of(name) != NULL; }

const char *iron__checksum_package(const char *name) {
    const algorithm *a = algorithm_of(name);

    return !a ? NULL : a->family == CRYPTO ? "libssl3" : "libxxhash0";
}

/* libcrypto may be configured not to compute some: md5 in FIPS mode. */
static bool start(iron__checksum *sum) {
    family f = sum->algorithm->family;

    if (f == CRYPTO) {
        const void *digest = crypto.EVP_get_digestbyname(sum->algorithm->digest);

        sum->state = digest ? crypto.EVP_MD_CTX_new() : NULL;
        return sum->state && crypto.EVP_DigestInit_ex(sum->state, digest, NULL) == 1;
    }
    sum->state = xxh[f].create();
    return sum->state && (f == XXH_32   ? xxh[f].reset.seed_32(sum->state, 0)
                          : f == XXH_64 ? xxh[f].reset.seed_64(sum->state, 0)
                                        : xxh[f].reset.no_seed(sum->state)) == 0;
}

iron_status iron__checksum_create(const char *name, iron__checksum **out, iron_error *err) {
    const algorithm *a = algorithm_of(name);
    iron__checksum *sum;
    static pthread_once_t crypto_once = PTHREAD_ONCE_INIT, xxh_once = PTHREAD_ONCE_INIT;

    *out = NULL;
    IRON_FAIL_IF(!a, err, IRON_E_UNSUPPORTED, "the checksum '%.40s' is not known", name);
    if (a->family == CRYPTO)
        pthread_once(&crypto_once, load_crypto);
    else
        pthread_once(&xxh_once, load_xxh);
    IRON_FAIL_IF(!(a->family == CRYPTO ? has_crypto : has_xxh), err, IRON_E_UNSUPPORTED,
                 "the checksum %s needs the package %s, which is not installed", name,
                 iron__checksum_package(name));
    IRON_TRY(IRON_NEW(&sum, 1, "a checksum", err));
    sum->algorithm = a;
    if (!start(sum)) {
        iron__checksum_destroy(sum);
        IRON_FAIL(err, IRON_E_UNSUPPORTED, "the library of the package %s does not compute %s",
                  iron__checksum_package(name), name);
    }
    *out = sum;
    return IRON_OK;
}

void iron__checksum_destroy(iron__checksum *sum) {
    if (sum && sum->state && sum->algorithm->family == CRYPTO)
        crypto.EVP_MD_CTX_free(sum->state);
    else if (sum && sum->state)
        xxh[sum->algorithm->family].destroy(sum->state);
    free(sum);
}

iron_status iron__checksum_update(iron__checksum *sum, const void *data, size_t bytes,
                                  iron_error *err) {
    family f = sum->algorithm->family;
    bool is_done = f == CRYPTO ? crypto.EVP_DigestUpdate(sum->state, data, bytes) == 1
                               : xxh[f].update(sum->state, data, bytes) == 0;

    IRON_FAIL_IF(!is_done, err, IRON_E_UNSUPPORTED, "the library of the package %s failed at %s",
                 iron__checksum_package(sum->algorithm->name), sum->algorithm->name);
    return IRON_OK;
}

/* The most significant digit first, which is xxhash's canonical form. */
static void write_hex(uint64_t value, size_t digits, char *to) {
    for (size_t k = digits; k > 0; k--, value >>= 4)
        to[k - 1] = "0123456789abcdef"[value & 15];
    to[digits] = '\0';
}

iron_status iron__checksum_final(iron__checksum *sum, char hex[IRON_CHECKSUM_HEX_MAX + 1],
                                 iron_error *err) {
    unsigned char bytes[IRON_CHECKSUM_HEX_MAX / 2];
    unsigned length = 0;
    xxh128 both;

    hex[0] = '\0';
    switch (sum->algorithm->family) {
    case CRYPTO:
        IRON_FAIL_IF(crypto.EVP_DigestFinal_ex(sum->state, bytes, &length) != 1 ||
                         length > sizeof bytes,
                     err, IRON_E_UNSUPPORTED, "libcrypto failed at %s", sum->algorithm->name);
        for (unsigned k = 0; k < length; k++)
            write_hex(bytes[k], 2, hex + (size_t)2 * k);
        break;
    case XXH_32:
        write_hex(xxh[XXH_32].digest.u32(sum->state), 8, hex);
        break;
    case XXH_64:
    case XXH_3_64:
        write_hex(xxh[sum->algorithm->family].digest.u64(sum->state), 16, hex);
        break;
    case XXH_3_128:
        both = xxh[XXH_3_128].digest.u128(sum->state);
        write_hex(both.high, 16, hex);
        write_hex(both.low, 16, hex + 16);
        break;
    }
    return IRON_OK;
}

/* CRC-32: table[0] has the effect of one byte, table[k] that of one that k others follow. */

static uint32_t crc_table[8][256];

static void make_crc_table(void) {
    for (uint32_t k = 0; k < 256; k++) {
        uint32_t rest = k;

        for (unsigned bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? UINT32_C(0xEDB88320) : 0);
        crc_table[0][k] = rest;
    }
    for (unsigned t = 1; t < 8; t++)
        for (uint32_t k = 0; k < 256; k++) {
            uint32_t before = crc_table[t - 1][k];

            crc_table[t][k] = before >> 8 ^ crc_table[0][before & 255];
        }
}

uint32_t iron__crc32(const unsigned char *data, size_t bytes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint32_t(*t)[256] = (const uint32_t(*)[256])crc_table;
    uint32_t rest = UINT32_MAX;

    pthread_once(&once, make_crc_table);
    for (; bytes >= 8; data += 8, bytes -= 8) {
        uint64_t word;

        memcpy(&word, data, sizeof word);
        word ^= rest;
        rest = t[7][word & 255] ^ t[6][word >> 8 & 255] ^ t[5][word >> 16 & 255] ^
               t[4][word >> 24 & 255] ^ t[3][word >> 32 & 255] ^ t[2][word >> 40 & 255] ^
               t[1][word >> 48 & 255] ^ t[0][word >> 56];
    }
    for (; bytes > 0; data++, bytes--)
        rest = rest >> 8 ^ t[0][(rest ^ *data) & 255];
    return ~rest;
}
