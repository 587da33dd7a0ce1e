/* SPDX-License-Identifier: MIT */
/*
 * cub_list.cu: the plug-in's one function: all rows around CUB, from the files beside this one.
 */
#include "cub_peer.h"

extern "C" const iron_peer_list *iron_peer_list_get(void) {
    static const iron_peer rows[] = {
        cub_tokens_row,    cub_tokens_sum_row,       cub_barrier_row,
        cub_histogram_row, cub_histogram_pieces_row,
    };
    static char version[32];
    static const iron_peer_list list = {IRON_PEER_ABI, "CUB", version, rows,
                                        sizeof rows / sizeof rows[0]};

    snprintf(version, sizeof version, "%d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION,
             CUB_SUBMINOR_VERSION);
    return &list;
}
