/* SPDX-License-Identifier: MIT */
/*
 * checksum.h: the checksums that other tools store beside their files, computed by the libraries
 * made for them (libcrypto, libxxhash), which are loaded when they are first needed. All functions
 * may be called from several threads at once, for different checksums.
 */
#ifndef IRON_IO_CHECKSUM_H
#define IRON_IO_CHECKSUM_H

#include <iron/iron.h>

#include <stdbool.h>

#define IRON_CHECKSUM_HEX_MAX 128u

/* Names are those of Python's hashlib and xxhash: md5, sha1, sha224, sha256, sha384, sha512,
 * sha3_224 ... sha3_512, blake2b, blake2s, xxh32, xxh64, xxh3_64, xxh128. */
bool iron__checksum_is_known(const char *name);

/* The Debian package of the library that computes it; NULL: the name is not known. */
const char *iron__checksum_package(const char *name);

typedef struct iron__checksum iron__checksum;

/* IRON_E_UNSUPPORTED: the name is not known, or the library is missing. */
iron_status iron__checksum_create(const char *name, iron__checksum **out, iron_error *err);
void iron__checksum_destroy(iron__checksum *sum);

iron_status iron__checksum_update(iron__checksum *sum, const void *data, size_t bytes,
                                  iron_error *err);
/* As hexdigest() prints it: lowercase. Once, after the last update. */
iron_status iron__checksum_final(iron__checksum *sum, char hex[IRON_CHECKSUM_HEX_MAX + 1],
                                 iron_error *err);

/* CRC-32, as in gzip, xz and Parquet; needs no library. */
uint32_t iron__crc32(const unsigned char *data, size_t bytes);

#endif
