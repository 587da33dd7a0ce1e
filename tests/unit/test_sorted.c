/* SPDX-License-Identifier: MIT */
/*
 * test_sorted.c: the sorted array of digest.c against a plain array of all keys; growing, shrinking
 * and both at once, so that blocks split, fill, become sparse, are joined and disappear.
 */
#include "support.h"

#include "digest/digest.c"

#define KEYS 20000u

typedef struct entry {
    uint64_t key, twice;
} entry;

typedef struct model {
    sorted_array sorted;
    bool there[KEYS];
    size_t count;
} model;

static void insert(model *m, uint64_t key) {
    entry e = {key, 2 * key};
    iron_error err;

    if (m->there[key])
        return;
    assert_ok(sorted_reserve(&m->sorted, 1, &err), &err);
    sorted_insert(&m->sorted, &e);
    m->there[key] = true;
    m->count++;
}

static void take(model *m, uint64_t key) {
    sorted_place place;
    const entry *e = sorted_upto(&m->sorted, key, &place);

    assert_true(m->there[key] == (e && e->key == key));
    if (!m->there[key])
        return;
    sorted_remove(&m->sorted, place);
    m->there[key] = false;
    m->count--;
}

/* The largest present key up to this one, or KEYS. */
static uint64_t model_upto(const model *m, uint64_t key) {
    for (uint64_t k = key + 1; k-- > 0;)
        if (m->there[k])
            return k;
    return KEYS;
}

static void assert_agrees(const model *m, rng *r) {
    sorted_place place;
    const entry *e = sorted_first(&m->sorted, &place);

    assert_int_equal(m->sorted.count, m->count);
    for (uint64_t k = 0; k < KEYS; k++) {
        if (!m->there[k])
            continue;
        assert_non_null(e);
        assert_true(e->key == k && e->twice == 2 * k);
        e = sorted_next(&m->sorted, &place);
    }
    assert_null(e);
    for (int n = 0; n < 200; n++) {
        uint64_t key = rng_below(r, KEYS), want = model_upto(m, key);

        e = sorted_upto(&m->sorted, key, &place);
        assert_true(e ? e->key == want : want == KEYS);
    }
    for (size_t k = 0; k < m->sorted.slot_count; k++)
        assert_in_range(m->sorted.slots[k].count, 1, SORTED_BLOCK);
}

/* Memory is proportional to the contents: no two neighbouring blocks are nearly empty. */
static void assert_dense(const model *m) {
    for (size_t k = 0; k + 1 < m->sorted.slot_count; k++)
        assert_true(m->sorted.slots[k].count + m->sorted.slots[k + 1].count > SORTED_BLOCK / 2);
}

static model *make(const iron_allocator *allocator) {
    model *m = grab(sizeof *m);

    memset(m, 0, sizeof *m);
    m->sorted = sorted_make(sizeof(entry), allocator);
    return m;
}

static void grows_and_shrinks(void **state) {
    ledger l = {0};
    iron_allocator allocator = ledger_allocator(&l);
    model *m = make(&allocator);
    rng r = {61};

    (void)state;
    for (int round = 0; round < 8; round++) {
        uint64_t inserts = round % 2 ? 1 : 9; /* out of ten: it grows, then shrinks */

        for (int k = 0; k < 30000; k++) {
            uint64_t key = rng_below(&r, KEYS);

            if (rng_below(&r, 10) < inserts)
                insert(m, key);
            else
                take(m, key);
        }
        assert_agrees(m, &r);
        assert_dense(m);
    }
    for (uint64_t k = 0; k < KEYS; k++)
        take(m, k);
    assert_agrees(m, &r);
    insert(m, 3);
    assert_true(l.out <= 6); /* slots, the block, a few to spare */
    sorted_deinit(&m->sorted);
    assert_int_equal(l.out, 0);
    free(m);
}

static void in_order_blocks_are_full(void **state) {
    ledger l = {0};
    iron_allocator allocator = ledger_allocator(&l);
    model *m = make(&allocator);
    rng r = {62};
    iron_error err;

    (void)state;
    assert_ok(sorted_reserve_append(&m->sorted, KEYS, &err), &err);
    for (uint64_t k = 0; k < KEYS; k++) {
        entry e = {k, 2 * k};

        sorted_insert(&m->sorted, &e);
        m->there[k] = true;
        m->count++;
    }
    assert_agrees(m, &r);
    assert_int_equal(m->sorted.slot_count, (KEYS + SORTED_BLOCK - 1) / SORTED_BLOCK);
    sorted_trim(&m->sorted, 0);
    assert_int_equal(m->sorted.spare_count, 0);
    for (uint64_t k = KEYS; k-- > 0;)
        take(m, k);
    for (uint64_t k = KEYS; k-- > 0;)
        insert(m, k);
    assert_agrees(m, &r);
    assert_dense(m);
    sorted_deinit(&m->sorted);
    assert_int_equal(l.out, 0);
    free(m);
}

static void keys_change_in_place(void **state) {
    model *m = make(iron__allocator_default());
    rng r = {63};

    (void)state;
    for (uint64_t k = 9; k < KEYS; k += 10)
        insert(m, k);
    for (uint64_t k = 9; k < KEYS; k += 10) {
        sorted_place place;
        entry *e = sorted_upto(&m->sorted, k, &place);

        e->key = k - 5;
        e->twice = 2 * e->key;
        sorted_rekey(&m->sorted, place);
        m->there[k] = false;
        m->there[k - 5] = true;
    }
    assert_agrees(m, &r);
    sorted_deinit(&m->sorted);
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_shrinks),
        cmocka_unit_test(in_order_blocks_are_full),
        cmocka_unit_test(keys_change_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
