/* SPDX-License-Identifier: MIT */
/* token_file.c: see token_file.h. No message shows any of the token. */
#include "core/token_file.h"

#include "core/fail.h"
#include "core/small_file.h"

#include <stdlib.h>
#include <string.h>

static iron_status take(const char *path, const char *bytes, size_t count, char *text,
                        iron_error *err) {
    if (count > 0 && bytes[count - 1] == '\n')
        count--;
    if (count > 0 && bytes[count - 1] == '\r')
        count--;
    IRON_FAIL_IF(count == 0, err, IRON_E_ARG,
                 "token file %.120s: it is empty; write one line with the token alone", path);
    IRON_FAIL_IF(count > IRON_TOKEN_BYTES_MAX, err, IRON_E_ARG,
                 "token file %.120s: the token has %zu bytes, at most %u are taken", path, count,
                 IRON_TOKEN_BYTES_MAX);
    for (size_t k = 0; k < count; k++)
        IRON_FAIL_IF(bytes[k] <= 0x20 || bytes[k] >= 0x7F, err, IRON_E_ARG,
                     "token file %.120s: byte %zu is a blank or no visible ASCII; write one line "
                     "with the token alone",
                     path, k);
    memcpy(text, bytes, count);
    return IRON_OK;
}

iron_status iron__token_file_read(const char *path, char text[IRON_TOKEN_ROOM], iron_error *err) {
    iron_status status;
    char *bytes;
    size_t count;

    memset(text, 0, IRON_TOKEN_ROOM);
    IRON_TRY(iron__small_file_read(path, "token file", IRON_TOKEN_BYTES_MAX + 2, true, &bytes,
                                   &count, err));
    status = take(path, bytes, count, text, err);
    explicit_bzero(bytes, count);
    free(bytes);
    return status;
}
