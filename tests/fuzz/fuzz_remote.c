/* SPDX-License-Identifier: MIT */
/*
 * fuzz_remote.c: what servers send and users type about remote files. The first byte chooses: lines
 * of a response's header, where a range that is accepted is one; a list of objects, whose keys are
 * not empty; an address, whose name has no user and no secret in its query, and is its own name.
 */
#include "fuzz.h"

#include "io/remote.c"

static void check_header(const char *text, size_t bytes) {
    iron__http_response r = {0};

    for (const char *end; bytes > 0; bytes -= (size_t)(end - text), text = end) {
        const char *newline = memchr(text, '\n', bytes);

        end = newline ? newline + 1 : text + bytes;
        iron__http_header_line(&r, text, (size_t)(end - text));
        FUZZ_REQUIRE(r.status <= 999);
        FUZZ_REQUIRE(memchr(r.tag, '\0', sizeof r.tag) && memchr(r.region, '\0', sizeof r.region));
        if (r.status > 0 && !r.has_bad_range && r.range_first != IRON_COUNT_UNKNOWN)
            FUZZ_REQUIRE(r.range_first <= r.range_last && r.range_last < r.range_total);
    }
}

static void check_list(const char *text, size_t bytes) {
    iron__s3_page page = {.keys = NULL};
    iron_error err = {0};

    if (!fuzz_refused(iron__s3_read_page("s3://bucket/", text, bytes, &page, &err), &err))
        FUZZ_REQUIRE(!page.next || page.next[0]);
    for (size_t k = 0; k < page.count; k++)
        FUZZ_REQUIRE(page.keys[k][0]);
    iron__s3_page_free(&page);
}

static void check_address(const char *address) {
    static const char *const secrets[] = {"sig",        "token",    "key",
                                          "credential", "password", "secret"};
    iron__remote remote = {.name = NULL};
    char *name, *again, bucket[64];
    const char *key, *path;
    iron_error err = {0};

    if (!iron__path_is_remote(address))
        return;
    name = without_credentials(address);
    again = name ? without_credentials(name) : NULL;
    FUZZ_REQUIRE(again && iron__path_is_remote(name));
    path = strstr(name, "://") + 3;
    FUZZ_REQUIRE(!memchr(path, '@', strcspn(path, "/?#")));
    FUZZ_REQUIRE(strcmp(name, again) == 0);
    if (strncmp(name, "s3://", 5) == 0) {
        fuzz_refused(iron__s3_split(address, bucket, &key, &err), &err);
    } else {
        path += strcspn(path, "?");
        for (; *path; path += strcspn(path, "&?") + (path[strcspn(path, "&?")] != '\0'))
            for (size_t k = 0; k < sizeof secrets / sizeof secrets[0]; k++)
                FUZZ_REQUIRE(strncasecmp(path, secrets[k], strlen(secrets[k])) != 0);
        FUZZ_REQUIRE(set_address(&remote, address));
        for (const char *at = remote.url; *at; at++)
            FUZZ_REQUIRE(at < strstr(remote.url, "://") + 3 +
                                  strcspn(strstr(remote.url, "://") + 3, "/?") ||
                         (*at > ' ' && *at < 0x7f));
        free(remote.url);
        free(remote.user);
        free(remote.password);
    }
    free(name);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    char *copy;

    switch (fuzz_byte(&in) % 3) {
    case 0:
        copy = fuzz_copy(in.at, in.left);
        check_header(copy, in.left);
        break;
    case 1:
        copy = fuzz_copy(in.at, in.left);
        check_list(copy, in.left);
        break;
    default:
        copy = fuzz_text(&in);
        check_address(copy);
    }
    free(copy);
    return 0;
}
