/* SPDX-License-Identifier: MIT */
/* Addresses of engines: the one form, and everything near it that is refused. */
#include "support.h"

#include "client/push_url.h"

static void addresses_are_taken_apart(void **state) {
    static const struct {
        const char *text, *engine, *name;
        bool is_loopback;
    } cases[] = {
        {"http://127.0.0.1:8080/v1/engines/a", "http://127.0.0.1:8080/v1/engines/a", "a", true},
        {"http://127.0.0.1:8080/v1/engines/a/feed", "http://127.0.0.1:8080/v1/engines/a", "a",
         true},
        {"https://iron.example.org/v1/engines/Corpus-1.2_x",
         "https://iron.example.org/v1/engines/Corpus-1.2_x", "Corpus-1.2_x", false},
        {"HTTP://LocalHost:1/v1/engines/0", "HTTP://LocalHost:1/v1/engines/0", "0", true},
        {"http://[::1]:65535/v1/engines/x", "http://[::1]:65535/v1/engines/x", "x", true},
        {"http://[fe80::1]/v1/engines/x", "http://[fe80::1]/v1/engines/x", "x", false},
        {"http://127.evil.example/v1/engines/x", "http://127.evil.example/v1/engines/x", "x",
         false},
        {"http://localhost.example/v1/engines/x", "http://localhost.example/v1/engines/x", "x",
         false},
        {"http://h:1/v1/engines/feed", "http://h:1/v1/engines/feed", "feed", false},
    };
    iron__push_url url;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        assert_ok(iron__push_url_parse(cases[k].text, &url, &err), &err);
        assert_string_equal(url.engine, cases[k].engine);
        assert_string_equal(url.name, cases[k].name);
        assert_int_equal(url.is_loopback, cases[k].is_loopback);
    }
}

static void everything_else_is_refused(void **state) {
    static const char *const texts[] = {
        "",
        "http://",
        "127.0.0.1:8080/v1/engines/a",
        "ftp://h/v1/engines/a",
        "file:///v1/engines/a",
        "http:/h/v1/engines/a",
        "httpx://h/v1/engines/a",
        "http://h",
        "http://h/",
        "http://h/v1/engines",
        "http://h/v1/engines/",
        "http://h/v1/engines//feed",
        "http://h/v1/engines/a/",
        "http://h/v1/engines/a/feed/",
        "http://h/v1/engines/a/state",
        "http://h/v1/engines/a?dtype=u8",
        "http://h/v1/engines/a#x",
        "http://h/v1/engines/..",
        "http://h/v1/engines/.a",
        "http://h/v1/engines/-a",
        "http://h/v1/engines/a%2Fb",
        "http://h/v1/engines/a b",
        "http://h/v1/engines/a\nHost: x",
        "http://h/V1/engines/a",
        "http://h/x/v1/engines/a",
        "http://user@h/v1/engines/a",
        "http://user:secret@h/v1/engines/a",
        "http://:80/v1/engines/a",
        "http://h:/v1/engines/a",
        "http://h:0/v1/engines/a",
        "http://h:65536/v1/engines/a",
        "http://h:99999999999999999999/v1/engines/a",
        "http://h:8080x/v1/engines/a",
        "http://h:-1/v1/engines/a",
        "http://[::1/v1/engines/a",
        "http://[]/v1/engines/a",
        "http://[::1]x/v1/engines/a",
        "http://[::1%25eth0]/v1/engines/a",
        "http://\xC3\xA4/v1/engines/a",
        " http://h/v1/engines/a",
    };
    iron__push_url url;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(texts); k++) {
        assert_refused(iron__push_url_parse(texts[k], &url, &err), IRON_E_ARG, &err);
        assert_says(&err, "http://127.0.0.1:8080/v1/engines/NAME");
    }
}

/* Names have 64 characters, addresses as many as there is room for. */
static void lengths_have_limits(void **state) {
    char text[2 * IRON_PUSH_URL_ROOM], name[66] = "";
    iron__push_url url;
    iron_error err;

    (void)state;
    memset(name, 'n', 64);
    snprintf(text, sizeof text, "http://h/v1/engines/%s/feed", name);
    assert_ok(iron__push_url_parse(text, &url, &err), &err);
    assert_string_equal(url.name, name);
    name[64] = 'n';
    snprintf(text, sizeof text, "http://h/v1/engines/%s", name);
    assert_refused(iron__push_url_parse(text, &url, &err), IRON_E_ARG, &err);
    for (size_t host = 470; host < 520; host++) {
        char long_host[600] = "";
        size_t length;

        memset(long_host, 'h', host);
        length = (size_t)snprintf(text, sizeof text, "http://%s/v1/engines/a", long_host);
        assert_int_equal(iron__push_url_parse(text, &url, NULL),
                         length < IRON_PUSH_URL_ROOM ? IRON_OK : IRON_E_ARG);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_taken_apart),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(lengths_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
