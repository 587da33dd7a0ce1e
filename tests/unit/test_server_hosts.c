/* SPDX-License-Identifier: MIT */
/*
 * test_server_hosts.c: which hosts and origins are ours; the addresses that can be listened on; and
 * how many connections an address may have.
 */
#include "server/census.h"
#include "server/hosts.h"
#include "server/listen.h"
#include "support.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static const iron__hosts loopback = {.scheme = "http", .address = "127.0.0.1", .is_loopback = true};

/* The kind of a request with these fields; NULL ones are left out. */
static const char *kind_of(const iron__hosts *hosts, const char *method, const char *host,
                           const char *origin, const char *site) {
    iron__header header = {.method = iron__text_of(method)};

    if (host)
        header.fields[header.count++] =
            iron__field_make(iron__text_of("Host"), iron__text_of(host));
    if (origin)
        header.fields[header.count++] =
            iron__field_make(iron__text_of("origin"), iron__text_of(origin));
    if (site)
        header.fields[header.count++] =
            iron__field_make(iron__text_of("Sec-Fetch-Site"), iron__text_of(site));
    return iron__hosts_check(hosts, &header).kind;
}

static const char *host_kind(const iron__hosts *hosts, const char *host) {
    return kind_of(hosts, "GET", host, NULL, NULL);
}

static void test_loopback_names(void **state) {
    static const char *const ours[] = {"localhost",   "LOCALHOST:1",       "localhost.",
                                       "127.0.0.1",   "127.9.8.7:80",      "[::1]",
                                       "[::1]:65535", "127.0.0.1:8080",    "[0:0:0:0:0:0:0:1]",
                                       "[::0001]:80", "[::ffff:127.0.0.1]"};
    static const char *const others[] = {
        "example.org",  "127.0.0.1.example.org", "localhost.x",   "xlocalhost", "128.0.0.1",
        "[::2]",        "[::ffff:128.0.0.1]",    "[::127.0.0.1]", "2130706433", "0x7f.1",
        "evil.test:80", "127.0.0.1.:8080x"};

    (void)state;
    for (size_t k = 0; k < COUNT(ours); k++)
        assert_null(host_kind(&loopback, ours[k]));
    for (size_t k = 0; k < COUNT(others); k++)
        assert_string_equal(host_kind(&loopback, others[k]), "wrong-host");
    assert_null(host_kind(&loopback, NULL)); /* HTTP/1.0 */
}

static void test_further_names(void **state) {
    static const char *const more[] = {"iron.example", "[fd00::1]"};
    iron__hosts hosts = loopback;
    iron__hosts public = {.scheme = "https", .address = "0.0.0.0"};

    (void)state;
    hosts.more = more;
    hosts.more_count = 2;
    assert_null(host_kind(&hosts, "IRON.example:443"));
    assert_null(host_kind(&hosts, "[fd00::1]:1"));
    assert_null(host_kind(&hosts, "localhost"));
    assert_string_equal(host_kind(&hosts, "other.example"), "wrong-host");
    assert_null(host_kind(&public, "anything.example"));
    public.more = more;
    public.more_count = 2;
    assert_null(host_kind(&public, "iron.example"));
    assert_string_equal(host_kind(&public, "localhost"), "wrong-host");
}

static void test_origins(void **state) {
    static const char *const foreign[] = {"null",
                                          "https://localhost:80",
                                          "http://localhost",
                                          "http://localhost:81",
                                          "http://evil.test:80",
                                          "http://localhost:80/",
                                          "http://localhost:80.evil.test",
                                          ""};

    (void)state;
    assert_null(kind_of(&loopback, "POST", "localhost:80", "http://localhost:80", NULL));
    assert_null(kind_of(&loopback, "POST", "localhost:80", "HTTP://LOCALHOST:80", "same-origin"));
    assert_null(kind_of(&loopback, "POST", "localhost:80", NULL, "none"));
    for (size_t k = 0; k < COUNT(foreign); k++)
        assert_string_equal(kind_of(&loopback, "GET", "localhost:80", foreign[k], NULL),
                            "foreign-origin");
    assert_string_equal(kind_of(&loopback, "GET", NULL, "http://localhost", NULL),
                        "foreign-origin");
    assert_null(kind_of(&loopback, "GET", "localhost", NULL, "cross-site"));
    assert_null(kind_of(&loopback, "HEAD", "localhost", NULL, "same-site"));
    assert_string_equal(kind_of(&loopback, "POST", "localhost", NULL, "cross-site"),
                        "foreign-origin");
    assert_string_equal(kind_of(&loopback, "DELETE", "localhost", NULL, "Same-Site"),
                        "foreign-origin");
}

static void test_host_syntax(void **state) {
    static const char *const good[] = {"a", "a.b-c_d:1", "[::1]:8", "1.2.3.4"};
    static const char *const bad[] = {"",       ":1",   "a:",    "a:0",     "a:1x",    "a:123456",
                                      "[::1]x", "[::1", "[x]:1", "a b",     "a@b",     "[]",
                                      "::1",    "a,b",  "a:1:2", "[::1%1]", "\xc3\xa9"};

    (void)state;
    for (size_t k = 0; k < COUNT(good); k++)
        assert_true(iron__host_is_valid(iron__text_of(good[k])));
    for (size_t k = 0; k < COUNT(bad); k++)
        if (iron__host_is_valid(iron__text_of(bad[k])))
            fail_msg("'%s' is taken for a host", bad[k]);
    assert_true(iron__host_is_name(iron__text_of("[::1]")));
    assert_false(iron__host_is_name(iron__text_of("a:1")));
}

static void test_listen(void **state) {
    static const char *const bad[] = {
        "",      "8080",   ":8080", "127.0.0.1", "127.0.0.1:",    "127.0.0.1:x", "127.0.0.1:65536",
        "a.b:1", "::1:80", "[::1]", "[::1:80",   "[127.0.0.1]:1", "1.2.3:4",     "127.0.0.1:-1"};
    iron__listen at;
    iron_error err;
    int fd, second;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(iron__listen_parse(&at, bad[k], &err), IRON_E_ARG, &err);
    assert_ok(iron__listen_parse(&at, "0.0.0.0:80", &err), &err);
    assert_false(at.is_loopback);
    assert_ok(iron__listen_parse(&at, "[::]:80", &err), &err);
    assert_false(at.is_loopback);
    assert_ok(iron__listen_parse(&at, "[::1]:80", &err), &err);
    assert_true(at.is_loopback);
    assert_ok(iron__listen_parse(&at, "localhost:0", &err), &err);
    assert_true(at.is_loopback);
    assert_ok(iron__listen_open(&at, "http", &fd, &err), &err);
    assert_non_null(strstr(at.url, "http://127.0.0.1:"));
    assert_null(strstr(at.url, ":0"));
    assert_refused(iron__listen_open(&at, "http", &second, &err), IRON_E_IO, &err);
    assert_says(&err, "another port");
    assert_int_equal(second, -1);
    close(fd);
}

static struct sockaddr_in6 v6(const char *text) {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};

    assert_int_equal(inet_pton(AF_INET6, text, &a.sin6_addr), 1);
    return a;
}

static void test_census(void **state) {
    iron__census *census;
    iron_error err;
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 mapped = v6("::ffff:10.0.0.1"), six = v6("2001:db8::1"),
                        near = v6("2001:db8::ffff"), far = v6("2001:db8:0:1::1");

    (void)state;
    inet_pton(AF_INET, "10.0.0.1", &four.sin_addr);
    assert_ok(iron__census_create(5, 2, &census, &err), &err);
    assert_int_equal(iron__census_enter(census, (void *)&four), IRON_CENSUS_ENTERED);
    assert_int_equal(iron__census_enter(census, (void *)&mapped), IRON_CENSUS_ENTERED);
    assert_int_equal(iron__census_enter(census, (void *)&four), IRON_CENSUS_ADDRESS_FULL);
    assert_int_equal(iron__census_enter(census, (void *)&six), IRON_CENSUS_ENTERED);
    assert_int_equal(iron__census_enter(census, (void *)&near), IRON_CENSUS_ENTERED);
    assert_int_equal(iron__census_enter(census, (void *)&six), IRON_CENSUS_ADDRESS_FULL);
    assert_int_equal(iron__census_enter(census, (void *)&far), IRON_CENSUS_ENTERED);
    assert_int_equal(iron__census_enter(census, (void *)&far), IRON_CENSUS_FULL);
    iron__census_leave(census, (void *)&mapped);
    assert_int_equal(iron__census_enter(census, (void *)&four), IRON_CENSUS_ENTERED);
    iron__census_leave(census, (void *)&six);
    iron__census_leave(census, (void *)&six);
    assert_int_equal(iron__census_count(census), 3);
    iron__census_destroy(census);
}

/* Many addresses come and go; the table never loses one. */
static void test_census_churn(void **state) {
    iron__census *census;
    iron_error err;
    dice d = {77};
    uint8_t count[300] = {0};
    uint32_t all = 0;

    (void)state;
    assert_ok(iron__census_create(200, 3, &census, &err), &err);
    for (int k = 0; k < 100000; k++) {
        uint32_t who = (uint32_t)roll_below(&d, 300);
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(who * 7919u)};

        if (roll(&d) >> 63) {
            iron__census_answer expected = all == 200        ? IRON_CENSUS_FULL
                                           : count[who] >= 3 ? IRON_CENSUS_ADDRESS_FULL
                                                             : IRON_CENSUS_ENTERED;

            assert_int_equal(iron__census_enter(census, (void *)&a), expected);
            if (expected == IRON_CENSUS_ENTERED) {
                count[who]++;
                all++;
            }
        } else if (count[who] > 0) {
            iron__census_leave(census, (void *)&a);
            count[who]--;
            all--;
        }
        assert_int_equal(iron__census_count(census), all);
    }
    iron__census_destroy(census);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback_names), cmocka_unit_test(test_further_names),
        cmocka_unit_test(test_origins),        cmocka_unit_test(test_host_syntax),
        cmocka_unit_test(test_listen),         cmocka_unit_test(test_census),
        cmocka_unit_test(test_census_churn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
