/* SPDX-License-Identifier: MIT */
/*
 * champion.cu: one batch, reduced and applied by a single launch. CUDA only: its groups wait for
 * each other. In a chain of calls a launch begins before the previous one has ended.
 *
 * Up to a few MiB waiting is the limit, not bytes: for the launch, for memory, for other groups. In
 * a call of 64 MiB it is still a quarter of the time. So there is as little of it as possible:
 *
 *     two turns of tokens are requested                           before anything else
 *     tables, epoch and nodes are requested                       they come while tokens are read
 *     loads of tokens, arithmetic, group's reduction              needs nothing of earlier launches
 *     -- wait for the previous launch --                          its states, its epoch, its slots
 *     publish: one 16-byte store per group {xor, epoch, sum}      no atomics, no fence, no clearing
 *     gather: each warp that has nodes reads all groups' slots    until all are of this epoch
 *     apply: one thread per node
 *
 * A launch that overlaps the previous one requests epoch and nodes only after that wait.
 *
 * The epoch, in device memory, rises by one per launch; a slot of another epoch is not published
 * yet. Accesses of 16 bytes as a whole (ld/st.b128) see all of a slot or nothing.
 *
 * Groups take turns of 32 KiB, one after the other; a thread requests its next turn before it uses
 * the one that has arrived.
 *
 * The host launches it for whole batches whose tokens are aligned to 16 bytes and whose first
 * position is a multiple of 16, and with all groups resident at the same time.
 */
typedef struct step_slot {
    k_u32 xors, epoch;
    k_u64 sum;
} step_slot;

typedef struct step_sums {
    k_u64 sum;
    k_u32 xors;
} step_sums;

K_DEVICE void step_publish(step_slot *slot, step_sums value, k_u32 epoch) {
    k_u64 low = (k_u64)epoch << 32 | value.xors;

    asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.gpu.global.b128 [%0], v; }"
                 :
                 : "l"(slot), "l"(low), "l"(value.sum)
                 : "memory");
}

K_DEVICE step_slot step_look(const step_slot *slot) {
    k_u64 low, sum;

    asm volatile("{ .reg .b128 v; ld.relaxed.gpu.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
                 : "=l"(low), "=l"(sum)
                 : "l"(slot)
                 : "memory");
    step_slot value = {(k_u32)low, (k_u32)(low >> 32), sum};
    return value;
}

K_DEVICE void step_wait_for_previous_launch(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

K_DEVICE void step_let_next_begin(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* All threads get the warp's contribution. A sum is added in three parts of at most 26 bits: 32 of
 * those cannot overflow 32 bits. */
K_DEVICE step_sums step_reduce_warp(step_sums v) {
#if __CUDA_ARCH__ >= 800
    k_u32 low = __reduce_add_sync(0xFFFFFFFFu, (k_u32)v.sum & 0x3FFFFFFu);
    k_u32 middle = __reduce_add_sync(0xFFFFFFFFu, (k_u32)(v.sum >> 26) & 0x3FFFFFFu);
    k_u32 high = __reduce_add_sync(0xFFFFFFFFu, (k_u32)(v.sum >> 52));

    v.xors = __reduce_xor_sync(0xFFFFFFFFu, v.xors);
    v.sum = ((k_u64)high << 52) + ((k_u64)middle << 26) + low;
#else
    v.xors = k_subgroup_xor(v.xors);
    v.sum = k_subgroup_add_u64(v.sum);
#endif
    return v;
}

/* The group's contribution, in every thread of the first warp. */
K_DEVICE step_sums step_reduce_group(step_sums v) {
    __shared__ step_sums warps[TOKENS_STEP_THREADS / 32];
    k_u32 lane = K_THREAD % 32, warp = K_THREAD / 32;
    const step_sums none = {0, 0};

    v = step_reduce_warp(v);
    if (lane == 0)
        warps[warp] = v;
    __syncthreads();
    return warp == 0 ? step_reduce_warp(lane < TOKENS_STEP_THREADS / 32 ? warps[lane] : none)
                     : none;
}

#define STEP_LOADS 4
#define STEP_TURN  (STEP_LOADS * TOKENS_STEP_THREADS) /* quads that a group loads at once */

/* A thread's quads of one turn. */
typedef struct step_turn {
    k_u32x4 quads[STEP_LOADS];
} step_turn;

K_DEVICE void step_load(step_turn *t, const k_u32x4 *__restrict__ quads, k_u32 turn, k_u32 turns) {
    if (turn < turns)
#pragma unroll
        for (int k = 0; k < STEP_LOADS; k++)
            t->quads[k] = quads[(k_u64)turn * STEP_TURN + k * TOKENS_STEP_THREADS + K_THREAD];
}

K_DEVICE void step_use(const step_turn *t, k_u32 turn, k_u32 turns, const tokens_span *s,
                       step_sums *v) {
    k_u32 hash = tokens_hash(s->first + 4 * ((k_u64)turn * STEP_TURN + K_THREAD));
    const champion_offsets o = {137u, 2 * 137u, 3 * 137u};

    if (turn < turns)
#pragma unroll
        for (int k = 0; k < STEP_LOADS; k++)
            champion_quad(t->quads[k], hash + k * CHAMPION_RISE(4 * TOKENS_STEP_THREADS), o, s,
                          &v->xors, &v->sum);
}

/* What is left after the last whole turn. The last groups take it: they have fewer turns. */
K_DEVICE void step_take_rest(const k_u32x4 *__restrict__ quads, k_u32 turns, const tokens_span *s,
                             step_sums *v) {
    const champion_offsets o = {137u, 2 * 137u, 3 * 137u};
    k_u64 end = s->count / 4, token = end * 4 + K_THREAD;
    k_u64 quad =
        (k_u64)turns * STEP_TURN + (K_GROUPS - 1 - K_GROUP) * TOKENS_STEP_THREADS + K_THREAD;

    for (; quad < end; quad += K_GROUPS * TOKENS_STEP_THREADS)
        champion_quad(quads[quad], tokens_hash(s->first + 4 * quad), o, s, &v->xors, &v->sum);
    if (K_GROUP + 1 == K_GROUPS && token < s->count)
        champion_token(((const k_u32 *)quads)[token], tokens_hash(s->first + token), s, &v->xors,
                       &v->sum);
}

/* The sum of all groups' contributions, in every thread of the calling warp. SLOTS: of a thread. */
template <int SLOTS> K_DEVICE step_sums step_gather(const step_slot *slots, k_u32 epoch) {
    step_sums v = {0, 0};
    k_u32 missing = 0;

#pragma unroll
    for (int k = 0; k < SLOTS; k++)
        missing |= (K_THREAD % 32 + 32 * k < K_GROUPS) << k;
    while (missing) {
        step_slot seen[SLOTS];

#pragma unroll
        for (int k = 0; k < SLOTS; k++)
            if (missing >> k & 1)
                seen[k] = step_look(slots + K_THREAD % 32 + 32 * k);
#pragma unroll
        for (int k = 0; k < SLOTS; k++)
            if ((missing >> k & 1) && seen[k].epoch == epoch) {
                missing &= ~(1u << k);
                v.xors ^= seen[k].xors;
                v.sum += seen[k].sum;
            }
    }
    __syncwarp();
    return step_reduce_warp(v);
}

/* This launch's epoch, in thread 0: every thread's load would queue at one line of the cache. */
K_DEVICE k_u32 step_epoch(const k_u32 *epochs) {
    return K_THREAD == 0 ? *(const volatile k_u32 *)epochs + 1 : 0;
}

K_DEVICE apply_node step_node(k_u32 node, const k_u32 *accumulators, const k_f32 *potentials,
                              const k_f32 *__restrict__ activations, const tokens_lattice *l) {
    apply_node n = {0, 0, 0};

    if (node < l->nodes)
        n = {accumulators[node], potentials[node], activations[node]};
    return n;
}

/* 16 bytes to shared memory; nothing waits for them before step_copies_wait. */
K_DEVICE void step_copy(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"((k_u32)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
#else
    *(k_u32x4 *)to = *(const k_u32x4 *)from;
#endif
}

K_DEVICE void step_copies_wait(void) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* The lattice's tables, whose memory is a multiple of 16 bytes. */
K_DEVICE void step_load_tables(apply_tables *to, const tokens_lattice *l,
                               const k_u32 *__restrict__ points, const k_u8 *__restrict__ nearest) {
    k_u32 at = 16 * K_THREAD;

    if (at < sizeof to->points)
        step_copy((k_u8 *)to->points + at, (const k_u8 *)points + at);
    if (at < APPLY_TABLE && at < 2 * l->span)
        step_copy(to->nearest + at, nearest + at);
}

extern "C" __global__ void __launch_bounds__(TOKENS_STEP_THREADS, 2)
    tokens_champion_step(const k_u32 *__restrict__ tokens, step_slot *slots, k_u32 *epochs,
                         k_u32 *accumulators, k_f32 *potentials,
                         const k_f32 *__restrict__ activations, k_u64 *totals,
                         const k_u32 *__restrict__ points, const k_u8 *__restrict__ nearest,
                         const tokens_span s, const tokens_lattice l, const tokens_closing c,
                         const k_u32 overlaps) {
    __shared__ __align__(16) apply_tables tables;
    __shared__ k_u32 published;
    const k_u32x4 *quads = (const k_u32x4 *)(tokens + s.begin);
    k_u32 turns = (k_u32)(s.count / 4 / STEP_TURN), turn = K_GROUP;
    /* the first warp of every group has the first nodes, the second the next, ... */
    k_u32 node = (K_THREAD / 32 * K_GROUPS + K_GROUP) * 32 + K_THREAD % 32;
    step_turn even, odd;
    apply_node n;
    k_f32 potential;
    k_u32 epoch;
    step_sums v = {0, 0};

    step_let_next_begin();
    step_load(&even, quads, turn, turns);
    step_load(&odd, quads, turn + K_GROUPS, turns);
    if (K_GROUP * 32 < l.nodes)
        step_load_tables(&tables, &l, points, nearest);
    if (!overlaps) {
        epoch = step_epoch(epochs);
        n = step_node(node, accumulators, potentials, activations, &l);
    }
    for (; turn < turns; turn += 2 * K_GROUPS) {
        step_use(&even, turn, turns, &s, &v);
        step_load(&even, quads, turn + 2 * K_GROUPS, turns);
        step_use(&odd, turn + K_GROUPS, turns, &s, &v);
        step_load(&odd, quads, turn + 3 * K_GROUPS, turns);
    }
    step_take_rest(quads, turns, &s, &v);
    step_copies_wait();
    v = step_reduce_group(v);
    step_wait_for_previous_launch();
    if (overlaps) {
        epoch = step_epoch(epochs);
        n = step_node(node, accumulators, potentials, activations, &l);
    }
    if (K_THREAD == 0) {
        step_publish(slots + K_GROUP, v, epoch);
        published = epoch;
    }
    __syncthreads();
    if (node / 32 * 32 >= l.nodes)
        return;
    v = K_GROUPS <= TOKENS_STEP_GROUPS / 2 ? step_gather<TOKENS_STEP_GROUPS / 64>(slots, published)
                                           : step_gather<TOKENS_STEP_GROUPS / 32>(slots, published);
    potential = __double2float_rn(__dmul_rn((double)(k_i64)(v.sum - c.last * c.middle),
                                            __longlong_as_double((k_i64)c.inverse_bits)));
    while (node < l.nodes) {
        n = apply_to_node(n, v.xors, potential, &tables, nearest, &l);
        accumulators[node] = n.accumulator;
        potentials[node] = n.potential;
        node += K_GROUPS * TOKENS_STEP_THREADS;
        n = step_node(node, accumulators, potentials, activations, &l);
    }
    if (K_GROUP == 0 && K_THREAD == 0) {
        K_ATOMIC_ADD_U64(&totals[0], v.sum);
        K_ATOMIC_XOR_U32((k_u32 *)&totals[1], v.xors);
        *epochs = published; /* all groups have published: they have read it */
    }
}
