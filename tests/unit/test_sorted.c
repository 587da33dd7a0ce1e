/* SPDX-License-Identifier: MIT */
/*
 * test_sorted.c: entries in the order of their keys, against a plain array of all keys; growing,
 * shrinking and both at once, so that blocks split, fill, become sparse, are joined and go.
 */
#include "support.h"

#include "digest/sorted.h"

#define KEYS 20000u

typedef struct entry {
    uint64_t key, twice;
} entry;

typedef struct model {
    iron__sorted sorted;
    bool there[KEYS];
    size_t count;
} model;

static void put(model *m, uint64_t key) {
    entry e = {key, 2 * key};
    iron_error err;

    if (m->there[key])
        return;
    assert_ok(iron__sorted_reserve(&m->sorted, 1, &err), &err);
    iron__sorted_insert(&m->sorted, &e);
    m->there[key] = true;
    m->count++;
}

static void take(model *m, uint64_t key) {
    iron__sorted_place place;
    const entry *e = iron__sorted_upto(&m->sorted, key, &place);

    assert_true(m->there[key] == (e && e->key == key));
    if (!m->there[key])
        return;
    iron__sorted_remove(&m->sorted, place);
    m->there[key] = false;
    m->count--;
}

/* The last key that is there up to this one, or KEYS. */
static uint64_t model_upto(const model *m, uint64_t key) {
    for (uint64_t k = key + 1; k-- > 0;)
        if (m->there[k])
            return k;
    return KEYS;
}

static void assert_agrees(const model *m, dice *d) {
    iron__sorted_place place;
    const entry *e = iron__sorted_first(&m->sorted, &place);

    assert_int_equal(m->sorted.count, m->count);
    for (uint64_t k = 0; k < KEYS; k++) {
        if (!m->there[k])
            continue;
        assert_non_null(e);
        assert_true(e->key == k && e->twice == 2 * k);
        e = iron__sorted_next(&m->sorted, &place);
    }
    assert_null(e);
    for (int n = 0; n < 200; n++) {
        uint64_t key = roll_below(d, KEYS), want = model_upto(m, key);

        e = iron__sorted_upto(&m->sorted, key, &place);
        assert_true(e ? e->key == want : want == KEYS);
    }
    for (size_t k = 0; k < m->sorted.slot_count; k++)
        assert_in_range(m->sorted.slots[k].count, 1, IRON_SORTED_BLOCK);
}

/* Memory follows what is in it: no two neighbours are nearly empty. */
static void assert_dense(const model *m) {
    for (size_t k = 0; k + 1 < m->sorted.slot_count; k++)
        assert_true(m->sorted.slots[k].count + m->sorted.slots[k + 1].count >
                    IRON_SORTED_BLOCK / 2);
}

static model *make(const iron_allocator *allocator) {
    model *m = grab(sizeof *m);

    memset(m, 0, sizeof *m);
    m->sorted = iron__sorted_make(sizeof(entry), allocator);
    return m;
}

static void grows_and_shrinks(void **state) {
    ledger l = {0};
    iron_allocator allocator = ledger_allocator(&l);
    model *m = make(&allocator);
    dice d = {61};

    (void)state;
    for (int round = 0; round < 8; round++) {
        uint64_t inserts = round % 2 ? 1 : 9; /* of ten: it grows, then shrinks */

        for (int k = 0; k < 30000; k++) {
            uint64_t key = roll_below(&d, KEYS);

            if (roll_below(&d, 10) < inserts)
                put(m, key);
            else
                take(m, key);
        }
        assert_agrees(m, &d);
        assert_dense(m);
    }
    for (uint64_t k = 0; k < KEYS; k++)
        take(m, k);
    assert_agrees(m, &d);
    put(m, 3);
    assert_true(l.out <= 6); /* slots, the block, a few to spare */
    iron__sorted_deinit(&m->sorted);
    assert_int_equal(l.out, 0);
    free(m);
}

static void in_order_blocks_are_full(void **state) {
    ledger l = {0};
    iron_allocator allocator = ledger_allocator(&l);
    model *m = make(&allocator);
    dice d = {62};
    iron_error err;

    (void)state;
    assert_ok(iron__sorted_reserve_behind(&m->sorted, KEYS, &err), &err);
    for (uint64_t k = 0; k < KEYS; k++) {
        entry e = {k, 2 * k};

        iron__sorted_insert(&m->sorted, &e);
        m->there[k] = true;
        m->count++;
    }
    assert_agrees(m, &d);
    assert_int_equal(m->sorted.slot_count, (KEYS + IRON_SORTED_BLOCK - 1) / IRON_SORTED_BLOCK);
    iron__sorted_trim(&m->sorted, 0);
    assert_int_equal(m->sorted.spare_count, 0);
    for (uint64_t k = KEYS; k-- > 0;)
        take(m, k);
    for (uint64_t k = KEYS; k-- > 0;)
        put(m, k);
    assert_agrees(m, &d);
    assert_dense(m);
    iron__sorted_deinit(&m->sorted);
    assert_int_equal(l.out, 0);
    free(m);
}

static void keys_change_in_place(void **state) {
    model *m = make(iron__allocator_default());
    dice d = {63};

    (void)state;
    for (uint64_t k = 9; k < KEYS; k += 10)
        put(m, k);
    for (uint64_t k = 9; k < KEYS; k += 10) {
        iron__sorted_place place;
        entry *e = iron__sorted_upto(&m->sorted, k, &place);

        e->key = k - 5;
        e->twice = 2 * e->key;
        iron__sorted_rekey(&m->sorted, place);
        m->there[k] = false;
        m->there[k - 5] = true;
    }
    assert_agrees(m, &d);
    iron__sorted_deinit(&m->sorted);
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
