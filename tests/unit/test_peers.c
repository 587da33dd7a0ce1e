/* SPDX-License-Identifier: MIT */
/*
 * test_peers.c: plug-ins that keep to the contract and plug-ins that do not (tests/fake_peer), and
 * where they are looked for.
 */
#include "peers_support.h"

#include "arena/peer_library.h"

static size_t count_absent(const iron__peers *peers) {
    iron__peer_absence a;
    size_t count = 0;

    while (iron__peers_absent_at(peers, count, &a))
        count++;
    return count;
}

/* The plug-in of that file name is absent, and the reason says this. */
static void assert_absent(const iron__peers *peers, const char *file, const char *word) {
    iron__peer_absence a;

    for (size_t k = 0; iron__peers_absent_at(peers, k, &a); k++)
        if (strstr(a.path, file)) {
            if (!strstr(a.reason, word))
                fail_msg("%s: '%s' does not say '%s'", file, a.reason, word);
            return;
        }
    fail_msg("%s is not among the absent", file);
}

static void good_rows(void **state) {
    iron__peer_entry e;
    iron__peers *peers;
    folder f;

    (void)state;
    folder_make(&f);
    put(&f, "libiron-peer-fake.so", FAKE_PEER_GOOD);
    file_write(name_in(&f, "libiron-peer-.so").path, "", 0); /* these are not asked */
    file_write(name_in(&f, "libother.so").path, "", 0);
    file_write(name_in(&f, "libiron-peer-fake.so.1").path, "", 0);
    peers = open_in(f.path);
    assert_int_equal(iron__peers_count(peers), 2);
    assert_int_equal(count_absent(peers), 0);
    assert_true(iron__peers_at(peers, 0, &e));
    assert_string_equal(e.row->name, "tokens.cpu.fake");
    assert_string_equal(e.library, "Fake");
    assert_string_equal(e.version, "1.2");
    assert_string_equal(e.path, name_in(&f, "libiron-peer-fake.so").path);
    assert_true(iron__peers_at(peers, 1, &e));
    assert_string_equal(e.row->name, "tokens.cpu.fake-again");
    assert_false(iron__peers_at(peers, 2, &e));
    iron__peers_close(peers);
    folder_remove(&f);
}

static void bad_ones(void **state) {
    iron__peer_entry e;
    iron__peers *peers;
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
    assert_int_equal(iron__peers_count(peers), 2);
    assert_true(iron__peers_at(peers, 0, &e) && strstr(e.path, "libiron-peer-fake.so"));
    assert_int_equal(count_absent(peers), 6);
    assert_absent(peers, "peer-abi.so", "it has abi 77, this iron has 1");
    assert_absent(peers, "peer-name.so", "row 0 is named 'atax.gpu.Fake'");
    assert_absent(peers, "peer-entry.so", "undefined symbol: iron_peer_list_get");
    assert_absent(peers, "peer-text.so", "peer-text.so: ");
    assert_absent(peers, "peer-broken.so", "cannot open shared object file");
    assert_absent(peers, "peer-twice.so", "libiron-peer-fake.so has the row tokens.cpu.fake ");
    iron__peers_close(peers);
    folder_remove(&f);
}

static void folders(void **state) {
    iron__peers *peers;
    folder f;

    (void)state;
    peers = open_in("none");
    assert_int_equal(iron__peers_count(peers), 0);
    assert_int_equal(count_absent(peers), 0);
    iron__peers_close(peers);
    peers = open_in("/nowhere/at/all");
    assert_int_equal(iron__peers_count(peers), 0);
    assert_absent(peers, "/nowhere/at/all", "No such file");
    iron__peers_close(peers);
    folder_make(&f);
    peers = open_in(f.path);
    assert_int_equal(iron__peers_count(peers) + count_absent(peers), 0);
    iron__peers_close(peers);
    iron__peers_close(NULL);
    folder_remove(&f);
}

/* Without IRON_PEERS, what lies beside this very program is found first. */
static void beside_the_program(void **state) {
    static const char name[] = "libiron-peer-beside-test-peers.so";
    char path[4200] = "";
    iron__peers *peers = NULL;
    iron__peer_entry e;
    ssize_t length = readlink("/proc/self/exe", path, 4000);
    bool is_found = false;

    (void)state;
    assert_true(length > 0);
    path[length] = '\0';
    snprintf(strrchr(path, '/') + 1, sizeof name, "%s", name);
    unlink(path); /* of a test that was killed */
    assert_int_equal(symlink(FAKE_PEER_GOOD, path), 0);
    unsetenv(PEERS);
    assert_int_equal(iron__peers_open(&peers, NULL), IRON_OK);
    unlink(path);
    for (size_t k = 0; iron__peers_at(peers, k, &e); k++)
        is_found |= strcmp(e.path, path) == 0;
    assert_true(is_found);
    iron__peers_close(peers);
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

static const iron_peer sound_row = {.struct_size = sizeof(iron_peer),
                                    .name = "atax.opencl.clblast",
                                    .idea = "x",
                                    .dtypes = "f32",
                                    .open = never_open,
                                    .run = never,
                                    .close = free};

static bool is_sound(const iron_peer *row, const char *word) {
    const iron_peer_list list = {IRON_PEER_ABI, "x", "1", row, row ? 1 : 0};
    char reason[240] = "";
    bool verdict = iron__peer_list_is_sound(&list, reason, sizeof reason);

    assert_non_null(strstr(reason, word));
    return verdict;
}

static void contract(void **state) {
    static const char *const bad_names[] = {"",         "atax",         "atax.cpu",   "atax.cpu.",
                                            ".cpu.x",   "atax..x",      "a.cp.x",     "atax.gpu.x",
                                            "a.cpux.x", "atax.cpu.x.y", "Atax.cpu.x", "atax.cpu.x ",
                                            "a cpu.",   "atax.cpu.X86", "atax/cpu/x"};
    char reason[240];
    iron_peer row = sound_row;

    (void)state;
    assert_true(is_sound(&row, ""));
    for (size_t k = 0; k < COUNT(bad_names); k++) {
        row.name = bad_names[k];
        assert_false(is_sound(&row, "is not op.backend.library"));
    }
    row.name = NULL;
    assert_false(is_sound(&row, "(null)"));
    row = sound_row;
    row.struct_size--;
    assert_false(is_sound(&row, "struct_size"));
    row = sound_row;
    row.run = NULL;
    assert_false(is_sound(&row, "incomplete"));
    assert_false(is_sound(NULL, "no rows"));
    assert_false(iron__peer_list_is_sound(NULL, reason, sizeof reason));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_rows),          cmocka_unit_test(bad_ones), cmocka_unit_test(folders),
        cmocka_unit_test(beside_the_program), cmocka_unit_test(contract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
