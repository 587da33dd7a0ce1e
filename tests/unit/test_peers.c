/* SPDX-License-Identifier: MIT */
/*
 * test_peers.c: valid and invalid plug-ins (tests/fake_peer), and the folders that are searched for
 * them.
 */
#include "peers_support.h"

static size_t count_rows(const iron__peers *peers) {
    size_t count = 0;

    while (peers_at(peers, count, NULL))
        count++;
    return count;
}

static size_t count_unusable(const iron__peers *peers) {
    size_t count = 0;

    for (size_t k = 0; k < peers->count; k++)
        count += !peers->libraries[k].list;
    return count;
}

/* The plug-in of that file name cannot be used, and the reason contains `word`. */
static void assert_unusable(const iron__peers *peers, const char *file, const char *word) {
    for (size_t k = 0; k < peers->count; k++) {
        const iron__peer_library *l = &peers->libraries[k];

        if (l->list || !strstr(l->path, file))
            continue;
        if (!strstr(l->reason, word))
            fail_msg("%s: '%s' does not say '%s'", file, l->reason, word);
        return;
    }
    fail_msg("%s is not among those that cannot be used", file);
}

static void valid_plugins_are_listed(void **state) {
    const iron__peer_library *library = NULL;
    const iron_peer *row;
    iron__peers peers;
    folder f;

    (void)state;
    folder_make(&f);
    put(&f, "libiron-peer-fake.so", FAKE_PEER_GOOD);
    file_write(name_in(&f, "libiron-peer-.so").path, "", 0); /* these are not loaded */
    file_write(name_in(&f, "libother.so").path, "", 0);
    file_write(name_in(&f, "libiron-peer-fake.so.1").path, "", 0);
    peers = open_in(f.path);
    assert_int_equal(count_rows(&peers), 2);
    assert_int_equal(count_unusable(&peers), 0);
    row = peers_at(&peers, 0, &library);
    assert_string_equal(row->name, "tokens.cpu.fake");
    assert_string_equal(library->list->library, "Fake");
    assert_string_equal(library->list->version, "1.2");
    assert_string_equal(library->path, name_in(&f, "libiron-peer-fake.so").path);
    row = peers_at(&peers, 1, &library);
    assert_string_equal(row->name, "tokens.cpu.fake-again");
    assert_null(peers_at(&peers, 2, &library));
    peers_close(&peers);
    folder_remove(&f);
}

static void invalid_plugins_have_a_reason(void **state) {
    const iron__peer_library *library = NULL;
    const iron_peer *row;
    iron__peers peers;
    folder f;

    (void)state;
    folder_make(&f);
    put(&f, "libiron-peer-abi.so", FAKE_PEER_WRONG_ABI);
    put(&f, "libiron-peer-name.so", FAKE_PEER_BAD_NAME);
    put(&f, "libiron-peer-entry.so", FAKE_PEER_NO_ENTRY);
    file_write(name_in(&f, "libiron-peer-text.so").path, "no library at all\n", 18);
    assert_int_equal(symlink("/nowhere", name_in(&f, "libiron-peer-broken.so").path), 0);
    put(&f, "libiron-peer-fake.so", FAKE_PEER_GOOD);
    put(&f, "libiron-peer-twice.so", FAKE_PEER_TWICE);
    peers = open_in(f.path);
    assert_int_equal(count_rows(&peers), 2);
    row = peers_at(&peers, 0, &library);
    assert_true(row && strstr(library->path, "libiron-peer-fake.so"));
    assert_int_equal(count_unusable(&peers), 6);
    assert_unusable(&peers, "peer-abi.so", "it has abi 77, this iron has 1");
    assert_unusable(&peers, "peer-name.so", "row 0 is named 'atax.gpu.Fake'");
    assert_unusable(&peers, "peer-entry.so", "undefined symbol: iron_peer_list_get");
    assert_unusable(&peers, "peer-text.so", "peer-text.so: ");
    assert_unusable(&peers, "peer-broken.so", "cannot open shared object file");
    assert_unusable(&peers, "peer-twice.so", "libiron-peer-fake.so has the row tokens.cpu.fake ");
    peers_close(&peers);
    folder_remove(&f);
}

static void folders_are_searched(void **state) {
    iron__peers peers;
    folder f;

    (void)state;
    peers = open_in("none");
    assert_int_equal(count_rows(&peers), 0);
    assert_int_equal(count_unusable(&peers), 0);
    peers_close(&peers);
    peers = open_in("/nowhere/at/all");
    assert_int_equal(count_rows(&peers), 0);
    assert_unusable(&peers, "/nowhere/at/all", "No such file");
    peers_close(&peers);
    folder_make(&f);
    peers = open_in(f.path);
    assert_int_equal(count_rows(&peers) + count_unusable(&peers), 0);
    peers_close(&peers);
    peers_close(&peers); /* closed already */
    folder_remove(&f);
}

/* Without IRON_PEERS, the folder of this program is searched first. */
static void the_folder_of_the_program_comes_first(void **state) {
    static const char name[] = "libiron-peer-beside-test-peers.so";
    char path[4200] = "";
    const iron__peer_library *library = NULL;
    iron__peers peers;
    ssize_t length = readlink("/proc/self/exe", path, 4000);
    bool is_found = false;

    (void)state;
    assert_true(length > 0);
    path[length] = '\0';
    snprintf(strrchr(path, '/') + 1, sizeof name, "%s", name);
    unlink(path); /* left by a test that was killed */
    assert_int_equal(symlink(FAKE_PEER_GOOD, path), 0);
    unsetenv(PEERS);
    assert_int_equal(peers_open(&peers, NULL), IRON_OK);
    unlink(path);
    for (size_t k = 0; peers_at(&peers, k, &library); k++)
        is_found |= strcmp(library->path, path) == 0;
    assert_true(is_found);
    peers_close(&peers);
}

static int never(void *state, char *why, size_t why_size) {
    (void)state;
    (void)why;
    (void)why_size;
    return 1;
}

static int never_open(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    (void)c;
    *state = NULL;
    return never(NULL, why, why_size);
}

static const iron_peer valid_row = {.struct_size = sizeof(iron_peer),
                                    .name = "atax.opencl.clblast",
                                    .idea = "x",
                                    .dtypes = "f32",
                                    .open = never_open,
                                    .run = never,
                                    .close = free};

static bool is_valid(const iron_peer *row, const char *word) {
    const iron_peer_list list = {IRON_PEER_ABI, "x", "1", row, row ? 1 : 0};
    iron_error why = {0};
    iron_status status = check_list(&list, &why);

    assert_non_null(strstr(why.text, word));
    return status == IRON_OK;
}

static void rows_must_keep_to_the_contract(void **state) {
    static const char *const bad_names[] = {"",         "atax",         "atax.cpu",   "atax.cpu.",
                                            ".cpu.x",   "atax..x",      "a.cp.x",     "atax.gpu.x",
                                            "a.cpux.x", "atax.cpu.x.y", "Atax.cpu.x", "atax.cpu.x ",
                                            "a cpu.",   "atax.cpu.X86", "atax/cpu/x"};
    iron_error why;
    iron_peer row = valid_row;

    (void)state;
    assert_true(is_valid(&row, ""));
    for (size_t k = 0; k < COUNT(bad_names); k++) {
        row.name = bad_names[k];
        assert_false(is_valid(&row, "is not op.backend.library"));
    }
    row.name = NULL;
    assert_false(is_valid(&row, "(null)"));
    row = valid_row;
    row.struct_size--;
    assert_false(is_valid(&row, "struct_size"));
    row = valid_row;
    row.run = NULL;
    assert_false(is_valid(&row, "incomplete"));
    assert_false(is_valid(NULL, "no rows"));
    assert_int_not_equal(check_list(NULL, &why), IRON_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_plugins_are_listed),
        cmocka_unit_test(invalid_plugins_have_a_reason),
        cmocka_unit_test(folders_are_searched),
        cmocka_unit_test(the_folder_of_the_program_comes_first),
        cmocka_unit_test(rows_must_keep_to_the_contract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
