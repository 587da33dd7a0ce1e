/* SPDX-License-Identifier: MIT */
/*
 * checksum.c: checksums by libcrypto and libxxhash. Both are found with dlopen, and their functions
 * are declared here, so that neither is needed to build or to run. And CRC-32.
 */
#include "io/checksum.h"

#include "core/fail.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifndef IRON_NO_DLOPEN /* a static command can load nothing */
#include <dlfcn.h>
#endif

/* The functions of libcrypto 1.1 and 3. */
static struct {
    const void *(*digest_by_name)(const char *name);
    void *(*create)(void);
    void (*destroy)(void *context);
    int (*init)(void *context, const void *digest, void *engine);
    int (*update)(void *context, const void *data, size_t bytes);
    int (*final)(void *context, unsigned char *to, unsigned *length);
    bool is_there;
} crypto;

/* The functions of libxxhash 0.8. */
typedef struct xxh128 {
    uint64_t low, high;
} xxh128;

static struct {
    void *(*create_32)(void), *(*create_64)(void), *(*create_3)(void);
    int (*free_32)(void *state), (*free_64)(void *state), (*free_3)(void *state);
    int (*reset_32)(void *state, uint32_t seed), (*reset_64)(void *state, uint64_t seed);
    int (*reset_3_64)(void *state), (*reset_3_128)(void *state);
    int (*update_32)(void *state, const void *data, size_t bytes);
    int (*update_64)(void *state, const void *data, size_t bytes);
    int (*update_3_64)(void *state, const void *data, size_t bytes);
    int (*update_3_128)(void *state, const void *data, size_t bytes);
    uint32_t (*digest_32)(const void *state);
    uint64_t (*digest_64)(const void *state), (*digest_3_64)(const void *state);
    xxh128 (*digest_3_128)(const void *state);
    bool is_there;
} xxh;

typedef enum family {
    FAMILY_CRYPTO,
    FAMILY_XXH32,
    FAMILY_XXH64,
    FAMILY_XXH3,
    FAMILY_XXH128
} family;

typedef struct algorithm {
    const char *name;
    family family;
    const char *digest; /* libcrypto's name for it */
} algorithm;

static const algorithm algorithms[] = {
    {"md5", FAMILY_CRYPTO, "md5"},
    {"sha1", FAMILY_CRYPTO, "sha1"},
    {"sha224", FAMILY_CRYPTO, "sha224"},
    {"sha256", FAMILY_CRYPTO, "sha256"},
    {"sha384", FAMILY_CRYPTO, "sha384"},
    {"sha512", FAMILY_CRYPTO, "sha512"},
    {"sha3_224", FAMILY_CRYPTO, "sha3-224"},
    {"sha3_256", FAMILY_CRYPTO, "sha3-256"},
    {"sha3_384", FAMILY_CRYPTO, "sha3-384"},
    {"sha3_512", FAMILY_CRYPTO, "sha3-512"},
    {"blake2b", FAMILY_CRYPTO, "blake2b512"},
    {"blake2s", FAMILY_CRYPTO, "blake2s256"},
    {"xxh32", FAMILY_XXH32, NULL},
    {"xxh64", FAMILY_XXH64, NULL},
    {"xxh3_64", FAMILY_XXH3, NULL},
    {"xxh128", FAMILY_XXH128, NULL},
    {"xxh3_128", FAMILY_XXH128, NULL},
};

struct iron__checksum {
    const algorithm *algorithm;
    void *state; /* the library's */
};

#ifndef IRON_NO_DLOPEN

/* Finds a function; ISO C has no cast from object to function pointer. */
static bool find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void load_crypto(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        library = dlopen("libcrypto.so.1.1", RTLD_NOW | RTLD_LOCAL);
    crypto.is_there = library && find(library, "EVP_get_digestbyname", &crypto.digest_by_name) &&
                      find(library, "EVP_MD_CTX_new", &crypto.create) &&
                      find(library, "EVP_MD_CTX_free", &crypto.destroy) &&
                      find(library, "EVP_DigestInit_ex", &crypto.init) &&
                      find(library, "EVP_DigestUpdate", &crypto.update) &&
                      find(library, "EVP_DigestFinal_ex", &crypto.final);
}

static void load_xxh(void) {
    void *library = dlopen("libxxhash.so.0", RTLD_NOW | RTLD_LOCAL);

    xxh.is_there = library && find(library, "XXH32_createState", &xxh.create_32) &&
                   find(library, "XXH32_freeState", &xxh.free_32) &&
                   find(library, "XXH32_reset", &xxh.reset_32) &&
                   find(library, "XXH32_update", &xxh.update_32) &&
                   find(library, "XXH32_digest", &xxh.digest_32) &&
                   find(library, "XXH64_createState", &xxh.create_64) &&
                   find(library, "XXH64_freeState", &xxh.free_64) &&
                   find(library, "XXH64_reset", &xxh.reset_64) &&
                   find(library, "XXH64_update", &xxh.update_64) &&
                   find(library, "XXH64_digest", &xxh.digest_64) &&
                   find(library, "XXH3_createState", &xxh.create_3) &&
                   find(library, "XXH3_freeState", &xxh.free_3) &&
                   find(library, "XXH3_64bits_reset", &xxh.reset_3_64) &&
                   find(library, "XXH3_64bits_update", &xxh.update_3_64) &&
                   find(library, "XXH3_64bits_digest", &xxh.digest_3_64) &&
                   find(library, "XXH3_128bits_reset", &xxh.reset_3_128) &&
                   find(library, "XXH3_128bits_update", &xxh.update_3_128) &&
                   find(library, "XXH3_128bits_digest", &xxh.digest_3_128);
}

#else

static void load_crypto(void) {}
static void load_xxh(void) {}

#endif

static const algorithm *algorithm_of(const char *name) {
    for (size_t k = 0; k < sizeof algorithms / sizeof algorithms[0]; k++)
        if (strcmp(algorithms[k].name, name) == 0)
            return &algorithms[k];
    return NULL;
}

bool iron__checksum_is_known(const char *name) { return algorithm_of(name) != NULL; }

const char *iron__checksum_package(const char *name) {
    const algorithm *a = algorithm_of(name);

    return !a ? NULL : a->family == FAMILY_CRYPTO ? "libssl3" : "libxxhash0";
}

static bool is_loaded(const algorithm *a) {
    static pthread_once_t crypto_once = PTHREAD_ONCE_INIT, xxh_once = PTHREAD_ONCE_INIT;

    if (a->family == FAMILY_CRYPTO)
        pthread_once(&crypto_once, load_crypto);
    else
        pthread_once(&xxh_once, load_xxh);
    return a->family == FAMILY_CRYPTO ? crypto.is_there : xxh.is_there;
}

/* libcrypto may be configured not to compute some: md5 in FIPS mode. */
static bool start_crypto(iron__checksum *sum) {
    const void *digest = crypto.digest_by_name(sum->algorithm->digest);

    sum->state = digest ? crypto.create() : NULL;
    return sum->state && crypto.init(sum->state, digest, NULL) == 1;
}

static bool start(iron__checksum *sum) {
    switch (sum->algorithm->family) {
    case FAMILY_CRYPTO:
        return start_crypto(sum);
    case FAMILY_XXH32:
        sum->state = xxh.create_32();
        return sum->state && xxh.reset_32(sum->state, 0) == 0;
    case FAMILY_XXH64:
        sum->state = xxh.create_64();
        return sum->state && xxh.reset_64(sum->state, 0) == 0;
    case FAMILY_XXH3:
        sum->state = xxh.create_3();
        return sum->state && xxh.reset_3_64(sum->state) == 0;
    default:
        sum->state = xxh.create_3();
        return sum->state && xxh.reset_3_128(sum->state) == 0;
    }
}

iron_status iron__checksum_create(const char *name, iron__checksum **out, iron_error *err) {
    const algorithm *a = algorithm_of(name);
    iron__checksum *sum;

    *out = NULL;
    IRON_FAIL_IF(!a, err, IRON_E_UNSUPPORTED, "the checksum '%.40s' is not known", name);
    IRON_FAIL_IF(!is_loaded(a), err, IRON_E_UNSUPPORTED,
                 "the checksum %s needs the package %s, which is not installed", name,
                 iron__checksum_package(name));
    sum = calloc(1, sizeof *sum);
    if (!sum)
        return iron__no_memory(err, "a checksum");
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
    if (sum && sum->state) {
        family f = sum->algorithm->family;

        if (f == FAMILY_CRYPTO)
            crypto.destroy(sum->state);
        else if (f == FAMILY_XXH32)
            xxh.free_32(sum->state);
        else if (f == FAMILY_XXH64)
            xxh.free_64(sum->state);
        else
            xxh.free_3(sum->state);
    }
    free(sum);
}

iron_status iron__checksum_update(iron__checksum *sum, const void *data, size_t bytes,
                                  iron_error *err) {
    family f = sum->algorithm->family;
    bool is_done = f == FAMILY_CRYPTO  ? crypto.update(sum->state, data, bytes) == 1
                   : f == FAMILY_XXH32 ? xxh.update_32(sum->state, data, bytes) == 0
                   : f == FAMILY_XXH64 ? xxh.update_64(sum->state, data, bytes) == 0
                   : f == FAMILY_XXH3  ? xxh.update_3_64(sum->state, data, bytes) == 0
                                       : xxh.update_3_128(sum->state, data, bytes) == 0;

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
    case FAMILY_CRYPTO:
        IRON_FAIL_IF(crypto.final(sum->state, bytes, &length) != 1 || length > sizeof bytes, err,
                     IRON_E_UNSUPPORTED, "libcrypto failed at %s", sum->algorithm->name);
        for (unsigned k = 0; k < length; k++)
            write_hex(bytes[k], 2, hex + (size_t)2 * k);
        break;
    case FAMILY_XXH32:
        write_hex(xxh.digest_32(sum->state), 8, hex);
        break;
    case FAMILY_XXH64:
        write_hex(xxh.digest_64(sum->state), 16, hex);
        break;
    case FAMILY_XXH3:
        write_hex(xxh.digest_3_64(sum->state), 16, hex);
        break;
    default:
        both = xxh.digest_3_128(sum->state);
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
