/* SPDX-License-Identifier: MIT */
/*
 * token.c: see token.h.
 */
#include "server/token.h"

#include <string.h>
#include <strings.h>

iron_status iron__token_read(iron__token *token, const char *path, iron_error *err) {
    iron_status status = iron__token_file_read(path, token->text, err);

    token->bytes = strlen(token->text);
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
