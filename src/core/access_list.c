/* SPDX-License-Identifier: MIT */
/*
 * access_list.c: see access_list.h. The list is an extended attribute of the kernel's own format
 * (linux/posix_acl_xattr.h): a version, then entries of a tag, permissions and a number, all
 * little-endian. It is read here because it is a few bytes, and libacl would be a dependency.
 */
#include "core/access_list.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/xattr.h>
#include <unistd.h>

#define VERSION      2u
#define HEADER_BYTES 4u
#define ENTRY_BYTES  8u
#define ENTRIES_MAX  32u

enum { TAG_OWNER = 0x01, TAG_USER = 0x02, TAG_MASK = 0x10 };

static uint32_t number_at(const unsigned char *at, size_t bytes) {
    uint32_t number = 0;

    for (size_t k = bytes; k > 0; k--)
        number = number << 8 | at[k - 1];
    return number;
}

/* The owner's entry and the mask give nothing to anybody else; the rest are groups and others. */
static bool is_private(const unsigned char *entry) {
    uint32_t tag = number_at(entry, 2), permissions = number_at(entry + 2, 2);
    uint32_t user = number_at(entry + 4, 4);

    if (permissions == 0 || tag == TAG_OWNER || tag == TAG_MASK)
        return true;
    return tag == TAG_USER && (user == 0 || user == geteuid());
}

bool iron__access_list_is_private(int fd) {
    unsigned char list[HEADER_BYTES + ENTRIES_MAX * ENTRY_BYTES];
    ssize_t got = fgetxattr(fd, "system.posix_acl_access", list, sizeof list);
    size_t bytes = got > 0 ? (size_t)got : 0;

    if (bytes <= HEADER_BYTES || (bytes - HEADER_BYTES) % ENTRY_BYTES != 0 ||
        number_at(list, HEADER_BYTES) != VERSION)
        return false;
    for (size_t at = HEADER_BYTES; at < bytes; at += ENTRY_BYTES)
        if (!is_private(list + at))
            return false;
    return true;
}
