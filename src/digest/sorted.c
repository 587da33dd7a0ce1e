/* SPDX-License-Identifier: MIT */
/* sorted.c: see sorted.h. */
#include "digest/sorted.h"

#include <string.h>

/* Two neighbours that together have no more than this are joined: half a block, so that the next
 * insertion does not split it again. */
#define SPARSE (IRON_SORTED_BLOCK / 2)

iron__sorted iron__sorted_make(size_t entry_bytes, const iron_allocator *allocator) {
    return (iron__sorted){.allocator = allocator, .entry_bytes = entry_bytes};
}

static void *take_spare(iron__sorted *s) {
    void *block = s->spare;

    memcpy(&s->spare, block, sizeof s->spare);
    s->spare_count--;
    return block;
}

static void give_spare(iron__sorted *s, void *block) {
    memcpy(block, &s->spare, sizeof s->spare);
    s->spare = block;
    s->spare_count++;
}

void iron__sorted_deinit(iron__sorted *s) {
    for (size_t k = 0; k < s->slot_count; k++)
        iron__release(s->allocator, s->slots[k].entries);
    while (s->spare_count > 0)
        iron__release(s->allocator, take_spare(s));
    iron__release(s->allocator, s->slots);
    *s = iron__sorted_make(s->entry_bytes, s->allocator);
}

static iron_status grow_slots(iron__sorted *s, size_t least, iron_error *err) {
    size_t room = s->slot_room > 4 ? s->slot_room : 4;
    iron__sorted_slot *slots;

    while (room < least)
        room *= 2;
    slots = iron__allocate(s->allocator, room, sizeof *slots, "the positions seen", err);
    if (!slots)
        return IRON_E_NOMEM;
    if (s->slot_count)
        memcpy(slots, s->slots, s->slot_count * sizeof *slots);
    iron__release(s->allocator, s->slots);
    s->slots = slots;
    s->slot_room = room;
    return IRON_OK;
}

static iron_status reserve_blocks(iron__sorted *s, size_t blocks, iron_error *err) {
    if (s->slot_room - s->slot_count < blocks) {
        iron_status status = grow_slots(s, s->slot_count + blocks, err);

        if (status != IRON_OK)
            return status;
    }
    while (s->spare_count < blocks) {
        void *block = iron__allocate(s->allocator, IRON_SORTED_BLOCK, s->entry_bytes,
                                     "the positions seen", err);

        if (!block)
            return IRON_E_NOMEM;
        give_spare(s, block);
    }
    return IRON_OK;
}

void iron__sorted_trim(iron__sorted *s, size_t blocks) {
    while (s->spare_count > blocks)
        iron__release(s->allocator, take_spare(s));
}

/* An insertion splits at most one block. What closing gaps has set free goes back here, and not
 * earlier: what was reserved stays. */
iron_status iron__sorted_reserve(iron__sorted *s, size_t insertions, iron_error *err) {
    iron__sorted_trim(s, insertions + 2);
    return reserve_blocks(s, insertions, err);
}

iron_status iron__sorted_reserve_behind(iron__sorted *s, size_t insertions, iron_error *err) {
    return reserve_blocks(s, insertions / IRON_SORTED_BLOCK + 1, err);
}

static unsigned char *entry_at(const iron__sorted *s, size_t slot, size_t index) {
    return s->slots[slot].entries + index * s->entry_bytes;
}

static uint64_t key_of(const void *entry) {
    uint64_t key;

    memcpy(&key, entry, sizeof key);
    return key;
}

/* The last slot that begins at or before the key; there is one. */
static size_t slot_upto(const iron__sorted *s, uint64_t key) {
    size_t low = 0, high = s->slot_count - 1;

    if (s->slots[high].key <= key)
        return high;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (s->slots[middle].key <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void *iron__sorted_upto(const iron__sorted *s, uint64_t key, iron__sorted_place *place) {
    size_t slot, low = 0, high;

    if (s->slot_count == 0 || s->slots[0].key > key)
        return NULL;
    slot = slot_upto(s, key);
    for (high = s->slots[slot].count; high - low > 1;) {
        size_t middle = low + (high - low) / 2;

        if (key_of(entry_at(s, slot, middle)) <= key)
            low = middle;
        else
            high = middle;
    }
    *place = (iron__sorted_place){slot, low};
    return entry_at(s, slot, low);
}

void *iron__sorted_first(const iron__sorted *s, iron__sorted_place *place) {
    *place = (iron__sorted_place){0, 0};
    return s->slot_count ? s->slots[0].entries : NULL;
}

void *iron__sorted_next(const iron__sorted *s, iron__sorted_place *place) {
    if (++place->index == s->slots[place->slot].count) {
        place->slot++;
        place->index = 0;
    }
    return place->slot < s->slot_count ? entry_at(s, place->slot, place->index) : NULL;
}

static void add_slot(iron__sorted *s, size_t at) {
    memmove(s->slots + at + 1, s->slots + at, (s->slot_count - at) * sizeof *s->slots);
    s->slots[at] = (iron__sorted_slot){0, take_spare(s), 0};
    s->slot_count++;
}

static void drop_slot(iron__sorted *s, size_t at) {
    give_spare(s, s->slots[at].entries);
    s->slot_count--;
    memmove(s->slots + at, s->slots + at + 1, (s->slot_count - at) * sizeof *s->slots);
}

/* The upper half of a full block becomes one of its own. */
static void split(iron__sorted *s, size_t at) {
    size_t kept = IRON_SORTED_BLOCK / 2, moved = s->slots[at].count - kept;

    add_slot(s, at + 1);
    memcpy(s->slots[at + 1].entries, entry_at(s, at, kept), moved * s->entry_bytes);
    s->slots[at].count = kept;
    s->slots[at + 1].count = moved;
    s->slots[at + 1].key = key_of(s->slots[at + 1].entries);
}

/* Makes sure that the place is in a block with room. */
static void make_room(iron__sorted *s, iron__sorted_place *place) {
    size_t count = s->slot_count ? s->slots[place->slot].count : IRON_SORTED_BLOCK;

    if (count < IRON_SORTED_BLOCK)
        return;
    if (place->slot + 1 >= s->slot_count && (s->slot_count == 0 || place->index == count)) {
        *place = (iron__sorted_place){s->slot_count, 0};
        add_slot(s, place->slot);
        return;
    }
    split(s, place->slot);
    if (place->index > s->slots[place->slot].count) {
        place->index -= s->slots[place->slot].count;
        place->slot++;
    }
}

void iron__sorted_insert(iron__sorted *s, const void *entry) {
    iron__sorted_place place = {0, 0};
    unsigned char *at;

    if (iron__sorted_upto(s, key_of(entry), &place))
        place.index++;
    make_room(s, &place);
    at = entry_at(s, place.slot, place.index);
    memmove(at + s->entry_bytes, at, (s->slots[place.slot].count - place.index) * s->entry_bytes);
    memcpy(at, entry, s->entry_bytes);
    s->slots[place.slot].count++;
    s->count++;
    iron__sorted_rekey(s, place);
}

void iron__sorted_rekey(iron__sorted *s, iron__sorted_place place) {
    s->slots[place.slot].key = key_of(s->slots[place.slot].entries);
}

static void join_if_sparse(iron__sorted *s, size_t at) {
    iron__sorted_slot *left = s->slots + at, *right = left + 1;

    if (at + 1 >= s->slot_count || left->count + right->count > SPARSE)
        return;
    memcpy(left->entries + left->count * s->entry_bytes, right->entries,
           right->count * s->entry_bytes);
    left->count += right->count;
    drop_slot(s, at + 1);
}

void iron__sorted_remove(iron__sorted *s, iron__sorted_place place) {
    iron__sorted_slot *slot = s->slots + place.slot;
    unsigned char *at = entry_at(s, place.slot, place.index);

    slot->count--;
    s->count--;
    memmove(at, at + s->entry_bytes, (slot->count - place.index) * s->entry_bytes);
    if (slot->count == 0) {
        drop_slot(s, place.slot);
        return;
    }
    iron__sorted_rekey(s, place);
    join_if_sparse(s, place.slot);
    if (place.slot > 0)
        join_if_sparse(s, place.slot - 1);
}
