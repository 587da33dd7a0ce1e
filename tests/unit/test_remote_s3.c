/* SPDX-License-Identifier: MIT */
/*
 * test_remote_s3.c: what S3 adds to remote files: signatures against the examples of Amazon's
 * documentation, addresses, credentials from environment and files, and lists of objects. Also the
 * numbers of libcurl that src/io declares itself, if its header is installed.
 */
#include "support.h"

#include "core/sha256.h"
#include "io/remote_internal.h"

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#define HAS_CURL 1
#else
#define HAS_CURL 0
#endif

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void check_hash(const char *text, const char *expected) {
    unsigned char digest[32];
    char hex[65];

    iron__sha256(text, strlen(text), digest);
    for (size_t k = 0; k < 32; k++)
        snprintf(hex + 2 * k, 3, "%02x", digest[k]);
    assert_string_equal(hex, expected);
}

/* The examples of FIPS 180-4 and of NIST, and lengths around a block. */
static void test_sha256(void **state) {
    (void)state;
    check_hash("", EMPTY);
    check_hash("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_hash("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
               "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    check_hash("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
               "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

static void check_signature(const iron__s3_signing *signing, const char *names,
                            const char *signature) {
    char expected[400], *got = iron__s3_authorization(signing);

    snprintf(expected, sizeof expected,
             "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
             "SignedHeaders=%s,Signature=%s",
             names, signature);
    assert_non_null(got);
    assert_string_equal(got, expected);
    free(got);
}

/* "Examples: Signature Calculations" of the Amazon S3 API Reference. */
static void test_signatures(void **state) {
    static const iron__s3_header with_range[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                                 {"range", "bytes=0-9"},
                                                 {"x-amz-content-sha256", EMPTY},
                                                 {"x-amz-date", "20130524T000000Z"}};
    static const iron__s3_header plain[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                            {"x-amz-content-sha256", EMPTY},
                                            {"x-amz-date", "20130524T000000Z"}};
    iron__s3_signing signing = {.path = "/test.txt",
                                .query = "",
                                .headers = with_range,
                                .count = 4,
                                .time = "20130524T000000Z",
                                .region = "us-east-1",
                                .key = "AKIAIOSFODNN7EXAMPLE",
                                .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};

    (void)state;
    check_signature(&signing, "host;range;x-amz-content-sha256;x-amz-date",
                    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    signing.headers = plain;
    signing.count = 3;
    signing.path = "/";
    signing.query = "lifecycle=";
    check_signature(&signing, "host;x-amz-content-sha256;x-amz-date",
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    signing.query = "max-keys=2&prefix=J";
    check_signature(&signing, "host;x-amz-content-sha256;x-amz-date",
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* A request's lines are those of the signature, with the token, and the host as it is sent. */
static void test_signed_lines(void **state) {
    char key[] = "KEY", secret[] = "SECRET", token[] = "TOKEN", region[] = "eu-west-1";
    iron__s3_access access = {.key = key, .secret = secret, .token = token, .region = region};
    char *lines[IRON_HTTP_LINES_MAX], *same[IRON_HTTP_LINES_MAX];
    unsigned count, same_count;
    iron_error err;

    (void)state;
    assert_ok(iron__s3_sign(&access, "http://host:80/b/k", 1369353600, lines, &count, &err), &err);
    assert_int_equal(count, 4);
    assert_string_equal(lines[1], "x-amz-content-sha256: " EMPTY);
    assert_string_equal(lines[2], "x-amz-date: 20130524T000000Z");
    assert_string_equal(lines[3], "x-amz-security-token: TOKEN");
    assert_non_null(strstr(lines[0], "Authorization: AWS4-HMAC-SHA256 Credential=KEY/20130524/"
                                     "eu-west-1/s3/aws4_request,SignedHeaders=host;"
                                     "x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
    assert_ok(iron__s3_sign(&access, "https://host/b/k", 1369353600, same, &same_count, &err),
              &err);
    assert_string_equal(same[0], lines[0]);
    for (unsigned k = 0; k < count; k++) {
        free(lines[k]);
        free(same[k]);
    }
    access.key = NULL;
    assert_ok(iron__s3_sign(&access, "https://host/b/k", 0, lines, &count, &err), &err);
    assert_int_equal(count, 0);
}

static void check_url(const iron__s3_access *access, const char *name, const char *expected) {
    char bucket[64], *url;
    const char *key;
    iron_error err;

    assert_ok(iron__s3_split(name, bucket, &key, &err), &err);
    url = iron__s3_url(access, bucket, key, NULL);
    assert_non_null(url);
    assert_string_equal(url, expected);
    free(url);
}

static void test_addresses(void **state) {
    static const char *const bad[] = {"s3://", "s3:///key", "s3://bucket", "s3://b ucket/key",
                                      "s3://u:p@bucket/key"};
    char region[] = "eu-west-1", china[] = "cn-north-1", endpoint[] = "http://127.0.0.1:4568/";
    iron__s3_access access = {.region = region};
    char bucket[64], *url;
    const char *key;
    iron_error err;

    (void)state;
    check_url(&access, "s3://bucket/a/b.bin", "https://bucket.s3.eu-west-1.amazonaws.com/a/b.bin");
    check_url(&access, "s3://my.bucket/k", "https://s3.eu-west-1.amazonaws.com/my.bucket/k");
    check_url(&access, "s3://bucket/a b+c?d#e%\xC3\xA9&=(~)",
              "https://bucket.s3.eu-west-1.amazonaws.com/a%20b%2Bc%3Fd%23e%25%C3%A9%26%3D%28~%29");
    check_url(&access, "s3://bucket//a/../b", "https://bucket.s3.eu-west-1.amazonaws.com//a/../b");
    access.region = china;
    check_url(&access, "s3://bucket/k", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
    access.endpoint = endpoint;
    check_url(&access, "s3://bucket/k", "http://127.0.0.1:4568/bucket/k");
    url = iron__s3_url(&access, "bucket", NULL, "list-type=2&prefix=a%2F");
    assert_string_equal(url, "http://127.0.0.1:4568/bucket?list-type=2&prefix=a%2F");
    free(url);
    access.endpoint = NULL;
    url = iron__s3_url(&access, "bucket", NULL, "list-type=2");
    assert_string_equal(url, "https://bucket.s3.cn-north-1.amazonaws.com.cn/?list-type=2");
    free(url);
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(iron__s3_split(bad[k], bucket, &key, &err), IRON_E_ARG, &err);
    assert_null(strstr(err.text, "u:p"));
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void clear_environment(void) {
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",           "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",           "AWS_REGION",
                                        "AWS_DEFAULT_REGION",          "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3",         "AWS_PROFILE",
                                        "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"};

    for (size_t k = 0; k < COUNT(names); k++)
        unsetenv(names[k]);
    setenv("HOME", "/nonexistent", 1);
}

static void check_access(const char *key, const char *secret, const char *token, const char *region,
                         const char *endpoint) {
    iron__s3_access access;
    iron_error err;

    assert_ok(iron__s3_access_load(&access, &err), &err);
#define CHECK(field, expected)                                                                     \
    do {                                                                                           \
        if (expected)                                                                              \
            assert_string_equal(access.field, expected);                                           \
        else                                                                                       \
            assert_null(access.field);                                                             \
    } while (0)
    CHECK(key, key);
    CHECK(secret, secret);
    CHECK(token, token);
    CHECK(region, region);
    CHECK(endpoint, endpoint);
#undef CHECK
    iron__s3_access_free(&access);
}

static void test_credentials(void **state) {
    char path[] = "/tmp/iron-test-aws-XXXXXX", file[200];
    iron__s3_access access;
    iron_error err;

    (void)state;
    assert_non_null(mkdtemp(path));
    clear_environment();
    check_access(NULL, NULL, NULL, "us-east-1", NULL);
    setenv("AWS_ACCESS_KEY_ID", "K", 1);
    check_access(NULL, NULL, NULL, "us-east-1", NULL);
    setenv("AWS_SECRET_ACCESS_KEY", "S", 1);
    setenv("AWS_DEFAULT_REGION", "r1", 1);
    setenv("AWS_ENDPOINT_URL", "http://one", 1);
    check_access("K", "S", NULL, "r1", "http://one");
    setenv("AWS_SESSION_TOKEN", "T", 1);
    setenv("AWS_REGION", "r2", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://two", 1);
    check_access("K", "S", "T", "r2", "http://two");
    clear_environment();

    snprintf(file, sizeof file, "%s/credentials", path);
    setenv("AWS_SHARED_CREDENTIALS_FILE", file, 1);
    write_text(file, "# comment\n[other]\naws_access_key_id=OK\naws_secret_access_key = O=S \r\n"
                     "aws_session_token = OT\n\n[default]\naws_access_key_id = DK\n"
                     "aws_secret_access_key\t=\tDS\n");
    check_access("DK", "DS", NULL, "us-east-1", NULL);
    snprintf(file, sizeof file, "%s/config", path);
    setenv("AWS_CONFIG_FILE", file, 1);
    write_text(file, "[default]\nregion = r3\ns3 =\n  region = nested\n[profile other]\n"
                     "endpoint_url = http://three\nregion=r4\n[profile roles]\nrole_arn=x\n");
    check_access("DK", "DS", NULL, "r3", NULL);
    setenv("AWS_PROFILE", "other", 1);
    check_access("OK", "O=S", "OT", "r4", "http://three");
    setenv("AWS_PROFILE", "roles", 1);
    check_access(NULL, NULL, NULL, "us-east-1", NULL);
    setenv("AWS_PROFILE", "oth", 1);
    assert_refused(iron__s3_access_load(&access, &err), IRON_E_ARG, &err);
    assert_says(&err, "AWS_PROFILE");
    iron__s3_access_free(&access);
    unlink(file);
    snprintf(file, sizeof file, "%s/credentials", path);
    unlink(file);
    rmdir(path);

    clear_environment();
    setenv("AWS_ENDPOINT_URL", "localhost:4568", 1);
    assert_refused(iron__s3_access_load(&access, &err), IRON_E_ARG, &err);
    iron__s3_access_free(&access);
    setenv("AWS_ENDPOINT_URL", "http://a\r\nb", 1);
    assert_refused(iron__s3_access_load(&access, &err), IRON_E_ARG, &err);
    iron__s3_access_free(&access);
    clear_environment();
    setenv("AWS_REGION", "evil.example.com/", 1);
    assert_refused(iron__s3_access_load(&access, &err), IRON_E_ARG, &err);
    iron__s3_access_free(&access);
    clear_environment();
}

#define LIST(inside) "<?xml version='1.0'?>\n<ListBucketResult>" inside "</ListBucketResult>\n"

static void test_lists(void **state) {
    static const char first[] =
        LIST("<Name>b</Name><Prefix>a/</Prefix><Key>no</Key><IsTruncated>true</IsTruncated>"
             "<Contents><Key>a/1 &amp; &lt;2&gt; &quot;&apos;&#233;&#x1F600;</Key><Size>3</Size>"
             "<Owner><ID>x</ID><Key>no</Key></Owner></Contents><Empty/>"
             "<Contents><Key>a/2</Key></Contents>"
             "<NextContinuationToken>t+/=&amp;</NextContinuationToken>");
    static const char last[] = LIST("<IsTruncated>false</IsTruncated>"
                                    "<Contents><Key>a/3</Key></Contents>");
    static const char *const bad[] = {
        "",
        "not xml",
        "<Error><Code>AccessDenied</Code></Error>",
        "<ListBucketResult>",
        "<ListBucketResult></Other>",
        "<ListBucketResult></ListBucketResult><a></a>",
        "<!DOCTYPE x><ListBucketResult></ListBucketResult>",
        LIST("<IsTruncated>true</IsTruncated>"),
        LIST("<IsTruncated>maybe</IsTruncated>"),
        LIST("<Contents><Key></Key></Contents>"),
        LIST("<Contents><Key>&bad;</Key></Contents>"),
        LIST("<Contents><Key>&#0;</Key></Contents>"),
        LIST("<Contents><Key>&#xD800;</Key></Contents>"),
        LIST("<Contents><Key>&#x110000;</Key></Contents>"),
        LIST("<Contents><Key>&#;</Key></Contents>"),
        LIST("<Contents><Key>a<!-- b -->c</Key></Contents>"),
        LIST("<Contents><Key><![CDATA[a]]></Key></Contents>"),
    };
    iron__s3_page page = {.keys = NULL};
    iron_error err;

    (void)state;
    assert_ok(iron__s3_read_page("s3://b/a/", first, sizeof first - 1, &page, &err), &err);
    assert_int_equal(page.count, 2);
    assert_string_equal(page.keys[0], "a/1 & <2> \"'\xC3\xA9\xF0\x9F\x98\x80");
    assert_string_equal(page.next, "t+/=&");
    assert_ok(iron__s3_read_page("s3://b/a/", last, sizeof last - 1, &page, &err), &err);
    assert_int_equal(page.count, 3);
    assert_null(page.next);
    for (size_t bytes = 0; bytes < sizeof first - 2; bytes++) /* cut anywhere */
        assert_refused(iron__s3_read_page("s3://b/a/", first, bytes, &page, &err), IRON_E_FORMAT,
                       &err);
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(iron__s3_read_page("s3://b/a/", bad[k], strlen(bad[k]), &page, &err),
                       IRON_E_FORMAT, &err);
    iron__s3_page_free(&page);
}

static void add_line(iron__http_response *r, const char *line) {
    iron__http_header_line(r, line, strlen(line));
}

static void test_header_lines(void **state) {
    static const char *const bad[] = {
        "bytes",       "bytes ",     "bytes 1/2",   "bytes 2-1/9",
        "bytes 0-9/9", "bytes */*",  "items 0-1/2", "bytes 0-1",
        "bytes -1/9",  "bytes 0-/9", "bytes 0-1/x", "bytes 0-1/99999999999999999999"};
    iron__http_response r = {0};
    char line[100];

    (void)state;
    add_line(&r, "HTTP/1.1 302 Found\r\n");
    add_line(&r, "ETag: \"old\"\r\n");
    add_line(&r, "HTTP/1.1 206 Partial Content\r\n");
    assert_int_equal(r.status, 206);
    assert_string_equal(r.tag, "");
    add_line(&r, "etag:\t\"new\" \r\n");
    add_line(&r, "Content-Range: bytes 5-9/100\r\n");
    add_line(&r, "CONTENT-LENGTH: 5\r\n");
    add_line(&r, "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n");
    add_line(&r, "Transfer-Encoding: gzip, chunked\r\n");
    add_line(&r, "Last-Modified: x\r\n");
    add_line(&r, "no colon\r\n");
    add_line(&r, "\r\n");
    assert_string_equal(r.tag, "\"new\"");
    assert_int_equal(r.range_first, 5);
    assert_int_equal(r.range_last, 9);
    assert_int_equal(r.range_total, 100);
    assert_int_equal(r.content_length, 5);
    assert_true(r.retry_after_s == IRON_COUNT_UNKNOWN);
    assert_true(r.is_chunked && !r.has_bad_range);
    for (size_t k = 0; k < COUNT(bad); k++) {
        add_line(&r, "HTTP/1.1 206 x");
        snprintf(line, sizeof line, "Content-Range: %s", bad[k]);
        add_line(&r, line);
        assert_true(r.has_bad_range);
    }
    add_line(&r, "HTTP/1.1 416 x");
    add_line(&r, "Content-Range: bytes */0");
    assert_true(!r.has_bad_range && r.range_total == 0);
    add_line(&r, "HTTP/2 200");
    assert_int_equal(r.status, 200);
}

/* Options and codes that are declared here have the values of the header. */
static void test_curl_numbers(void **state) {
    (void)state;
#if HAS_CURL
#define SAME(name) assert_int_equal(IRON_##name, (long)(name))
    SAME(CURLOPT_WRITEDATA);
    SAME(CURLOPT_URL);
    SAME(CURLOPT_READDATA);
    SAME(CURLOPT_ERRORBUFFER);
    SAME(CURLOPT_WRITEFUNCTION);
    SAME(CURLOPT_READFUNCTION);
    SAME(CURLOPT_POST);
    SAME(CURLOPT_POSTFIELDSIZE_LARGE);
    SAME(CURLOPT_UPLOAD_BUFFERSIZE);
    SAME(CURLOPT_TIMEOUT_MS);
    SAME(CURLOPT_NOPROXY);
    SAME(CURLOPT_USERAGENT);
    SAME(CURLOPT_LOW_SPEED_LIMIT);
    SAME(CURLOPT_LOW_SPEED_TIME);
    SAME(CURLOPT_HTTPHEADER);
    SAME(CURLOPT_HEADERDATA);
    SAME(CURLOPT_FOLLOWLOCATION);
    SAME(CURLOPT_CAINFO);
    SAME(CURLOPT_MAXREDIRS);
    SAME(CURLOPT_HEADERFUNCTION);
    SAME(CURLOPT_HTTP_VERSION);
    SAME(CURLOPT_CAPATH);
    SAME(CURLOPT_BUFFERSIZE);
    SAME(CURLOPT_NOSIGNAL);
    SAME(CURLOPT_CONNECTTIMEOUT_MS);
    SAME(CURLOPT_USERNAME);
    SAME(CURLOPT_PASSWORD);
    SAME(CURLOPT_PROTOCOLS);
    SAME(CURLOPT_REDIR_PROTOCOLS);
    SAME(CURLOPT_PATH_AS_IS);
    SAME(CURLINFO_EFFECTIVE_URL);
    SAME(CURLINFO_REDIRECT_COUNT);
    SAME(CURLINFO_RETRY_AFTER);
    SAME(CURL_HTTP_VERSION_1_1);
    SAME(CURLPROTO_HTTP);
    SAME(CURLPROTO_HTTPS);
    SAME(CURLMSG_DONE);
    SAME(CURL_GLOBAL_DEFAULT);
    SAME(CURL_ERROR_SIZE);
    SAME(CURL_READFUNC_ABORT);
    SAME(CURLE_OK);
    SAME(CURLE_COULDNT_RESOLVE_PROXY);
    SAME(CURLE_COULDNT_RESOLVE_HOST);
    SAME(CURLE_COULDNT_CONNECT);
    SAME(CURLE_PARTIAL_FILE);
    SAME(CURLE_OPERATION_TIMEDOUT);
    SAME(CURLE_SSL_CONNECT_ERROR);
    SAME(CURLE_GOT_NOTHING);
    SAME(CURLE_SEND_ERROR);
    SAME(CURLE_RECV_ERROR);
    SAME(CURLE_PEER_FAILED_VERIFICATION);
    SAME(CURLE_SEND_FAIL_REWIND);
    SAME(CURLE_SSL_CACERT_BADFILE);
#undef SAME
    assert_int_equal(sizeof(iron__curl_message), sizeof(CURLMsg));
    assert_int_equal(offsetof(iron__curl_message, easy), offsetof(CURLMsg, easy_handle));
    assert_int_equal(offsetof(iron__curl_message, data), offsetof(CURLMsg, data));
#else
    print_message("skipped: curl/curl.h is not installed\n");
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),       cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_signed_lines), cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_credentials),  cmocka_unit_test(test_lists),
        cmocka_unit_test(test_header_lines), cmocka_unit_test(test_curl_numbers),
    };

    return cmocka_run_group_tests_name("remote_s3", tests, NULL, NULL);
}
