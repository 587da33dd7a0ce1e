/* SPDX-License-Identifier: MIT */
/*
 * token.c: see token.h.
 */
#include "server/token.h"

#include "server/small_file.h"

#include "core/fail.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static iron_status take(iron__token *token, const char *path, const char *text, size_t bytes,
                        iron_error *err) {
    if (bytes > 0 && text[bytes - 1] == '\n')
        bytes--;
    if (bytes > 0 && text[bytes - 1] == '\r')
        bytes--;
    IRON_FAIL_IF(bytes == 0, err, IRON_E_ARG,
                 "token file %s: it is empty; write one line with "
                 "the token alone",
                 path);
    IRON_FAIL_IF(bytes > IRON_TOKEN_BYTES_MAX, err, IRON_E_ARG,
                 "token file %s: the token has %zu bytes, at most %u are taken", path, bytes,
                 IRON_TOKEN_BYTES_MAX);
    for (size_t k = 0; k < bytes; k++)
        IRON_FAIL_IF(text[k] <= 0x20 || text[k] >= 0x7F, err, IRON_E_ARG,
                     "token file %s: byte %zu is a blank or no visible ASCII; write one line with "
                     "the token alone",
                     path, k);
    memcpy(token->text, text, bytes);
    token->bytes = bytes;
    return IRON_OK;
}

iron_status iron__token_read(iron__token *token, const char *path, iron_error *err) {
    iron_status status;
    char *text;
    size_t bytes;

    memset(token, 0, sizeof *token);
    IRON_TRY(iron__small_file_read(path, "token file", IRON_TOKEN_BYTES_MAX + 2, true, &text,
                                   &bytes, err));
    status = take(token, path, text, bytes, err);
    explicit_bzero(text, bytes);
    free(text);
    return status;
}

/* Both are filled up to one size with zeros, and all of it is compared, whatever was found. */
static bool is_same(const iron__token *token, iron__text guess) {
    char padded[IRON_TOKEN_BYTES_MAX] = {0};
    unsigned difference = guess.bytes != token->bytes;

    memcpy(padded, guess.at, guess.bytes < sizeof padded ? guess.bytes : sizeof padded);
    for (size_t k = 0; k < sizeof padded; k++)
        difference |= (unsigned)(unsigned char)(padded[k] ^ token->text[k]);
    explicit_bzero(padded, sizeof padded);
    return difference == 0;
}

bool iron__token_admits(const iron__token *token, iron__text authorization) {
    static const char scheme[] = "Bearer ";

    if (token->bytes == 0)
        return true;
    if (!authorization.at || authorization.bytes < sizeof scheme ||
        strncasecmp(authorization.at, scheme, sizeof scheme - 1) != 0)
        return false;
    authorization.at += sizeof scheme - 1;
    authorization.bytes -= sizeof scheme - 1;
    while (authorization.bytes > 0 && *authorization.at == ' ') {
        authorization.at++;
        authorization.bytes--;
    }
    return is_same(token, authorization);
}
