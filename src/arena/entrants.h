/* SPDX-License-Identifier: MIT */
/*
 * entrants.h: contenders made ready to race: on the CPU, on a GPU with a memory strategy, and
 * peers. Making one is what the scope `prepare` measures.
 */
#ifndef IRON_ARENA_ENTRANTS_H
#define IRON_ARENA_ENTRANTS_H

#include "arena/kernels.h"
#include "arena/race.h"
#include "arena/stage.h"

#include <iron/iron_peer.h>

/* What the CPU lends its contenders. */
typedef struct iron__cpu_stage {
    const iron__problem *problem;
    iron__team *team, *alone; /* all threads; one */
    void *flush;              /* read before cold turns */
    size_t flush_bytes;       /* a multiple of 1 MiB, twice the last-level cache */
    uint64_t host_bytes;      /* of the host's memory; 0 unknown */
    uint64_t lent_bytes;      /* of it, to the problem and to contenders: all are there at once */
} iron__cpu_stage;

/* Returns owned; ops->close frees it. The stage and the contender are borrowed for its life. */
iron_status iron__entrant_cpu(iron__cpu_stage *stage, const iron__contender *contender,
                              iron__entrant **out, iron_error *err);
/* What it launches while it is made and gives its first answer is noted in *kernels, which must
 * outlive it. */
iron_status iron__entrant_gpu(iron__stage *stage, const iron__contender *contender,
                              iron__gpu_strategy strategy, iron__kernels *kernels,
                              iron__entrant **out, iron_error *err);

/* A peer as a contender: functions of op.h around its own. `own` is the peer. */
iron__contender iron__peer_contender(const iron_peer *peer, const iron__contender *names);
iron_status iron__entrant_cpu_peer(iron__cpu_stage *stage, const iron_peer *peer,
                                   iron__entrant **out, iron_error *err);

/* Judges with the peer's own check where it has one, else with the op's; an answer in an order of
 * the contender's own is brought into the op's before. */
typedef struct iron__judging {
    const iron__problem *problem;
    const iron_peer *peer; /* NULL: the op's contender */
    const iron__contender *contender;
    void *unpacked; /* as long as an answer; NULL where the contender does not unpack */
} iron__judging;

bool iron__judge_answer(const void *context, const void *output, char *text, size_t size);

/* The case as a peer sees it, with pointers to the host's memory. */
iron_peer_case iron__peer_case(const iron__problem *problem, void *output, uint32_t threads);

#endif
