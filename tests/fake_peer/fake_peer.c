/* SPDX-License-Identifier: MIT */
/*
 * fake_peer.c: a plug-in for tests, built once for every way to be one: FAKE_PEER_... says how it
 * differs from a good one. Its row copies the input.
 */
#include <iron/iron_peer.h>

#include <stdlib.h>
#include <string.h>

#if defined(FAKE_PEER_ABI)
#define ABI FAKE_PEER_ABI
#else
#define ABI IRON_PEER_ABI
#endif
#if defined(FAKE_PEER_NAME)
#define NAME FAKE_PEER_NAME
#else
#define NAME "tokens.cpu.fake"
#endif
#if defined(FAKE_PEER_ENTRY)
#define iron_peer_list_get FAKE_PEER_ENTRY
__attribute__((visibility("default"))) const iron_peer_list *iron_peer_list_get(void);
#endif

static int open_copy(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    (void)why;
    (void)why_size;
    *state = malloc(sizeof *c);
    if (!*state)
        return 1;
    memcpy(*state, c, sizeof *c);
    return 0;
}

static int run_copy(void *state, char *why, size_t why_size) {
    const iron_peer_case *c = state;

    (void)why;
    (void)why_size;
    memcpy(c->output, c->inputs[0], c->output_bytes);
    return 0;
}

static const iron_peer rows[] = {
    {sizeof rows[0], NAME, "copies", "u32", 0, open_copy, run_copy, free, NULL},
    {sizeof rows[0], NAME "-again", "copies too", "u32", 0, open_copy, run_copy, free, NULL},
};
static const iron_peer_list list = {ABI, "Fake", "1.2", rows, 2};

const iron_peer_list *iron_peer_list_get(void) { return &list; }
