/* SPDX-License-Identifier: MIT */
/*
 * champion.cu: one batch, reduced and applied by a single launch. CUDA only: its groups wait for
 * each other. A step takes a few microseconds and begins before the previous launch has ended; a
 * stride is the same for batches that take longer, with more groups and the champion's loop.
 *
 * At the size of a step not bytes are the limit but waiting: for the launch, for the L2 cache, for
 * other groups. So there is as little of it as possible:
 *
 *     loads of tokens and tables, arithmetic, group's reduction   needs nothing of earlier launches
 *     -- wait for the previous launch --                          its states, its epoch, its slots
 *     publish: one 16-byte store per group {xor, epoch, sum}      no atomics, no fence, no clearing
 *     gather: each warp that has nodes reads all groups' slots    until all are of this epoch
 *     apply: one thread per node
 *
 * The epoch, in device memory, rises by one per launch; a slot of another epoch is not published
 * yet. Accesses of 16 bytes as a whole (ld/st.b128) see all of a slot or nothing.
 *
 * The host launches it for whole batches whose tokens are aligned to 16 bytes and whose first
 * position is a multiple of 16, and with all groups resident at the same time.
 */
#define STEP_TABLE 4096 /* bytes of the lattice's table that are copied to shared memory */

typedef struct step_slot {
    k_u32 xors, epoch;
    k_u64 sum;
} step_slot;

typedef struct step_sums {
    k_u64 sum;
    k_u32 xors;
} step_sums;

static __device__ __forceinline__ void step_publish(step_slot *slot, step_sums value, k_u32 epoch) {
    k_u64 low = (k_u64)epoch << 32 | value.xors;

    asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.gpu.global.b128 [%0], v; }"
                 :
                 : "l"(slot), "l"(low), "l"(value.sum)
                 : "memory");
}

static __device__ __forceinline__ step_slot step_look(const step_slot *slot) {
    k_u64 low, sum;

    asm volatile("{ .reg .b128 v; ld.relaxed.gpu.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
                 : "=l"(low), "=l"(sum)
                 : "l"(slot)
                 : "memory");
    step_slot value = {(k_u32)low, (k_u32)(low >> 32), sum};
    return value;
}

static __device__ __forceinline__ void step_wait_for_previous_launch(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ __forceinline__ void step_let_next_begin(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* All threads get the warp's contribution. A sum is added in three parts of at most 26 bits: 32 of
 * those cannot overflow 32 bits. */
static __device__ __forceinline__ step_sums step_reduce_warp(step_sums v) {
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
static __device__ __forceinline__ step_sums step_reduce_group(step_sums v) {
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

#define STEP_LOADS 2

/* The group's share of the tokens: `share` quads, all loads of a turn in flight at once. */
static __device__ __forceinline__ step_sums step_take(const k_u32x4 *__restrict__ quads,
                                                      k_u32 share, const tokens_span *s) {
    k_u64 end = s->count / 4, stop = (k_u64)(K_GROUP + 1) * share;
    k_u64 quad = (k_u64)K_GROUP * share + K_THREAD;
    const champion_offsets o = {137u, 2 * 137u, 3 * 137u};
    step_sums v = {0, 0};

    stop = stop < end ? stop : end;
    for (; quad < stop; quad += STEP_LOADS * TOKENS_STEP_THREADS) {
        k_u32 hash = tokens_hash(s->first + 4 * quad);
        k_u32x4 t[STEP_LOADS];

#pragma unroll
        for (int k = 0; k < STEP_LOADS; k++)
            if (quad + k * TOKENS_STEP_THREADS < stop)
                t[k] = quads[quad + k * TOKENS_STEP_THREADS];
#pragma unroll
        for (int k = 0; k < STEP_LOADS; k++)
            if (quad + k * TOKENS_STEP_THREADS < stop)
                champion_quad(t[k], hash + k * CHAMPION_RISE(4 * TOKENS_STEP_THREADS), o, s,
                              &v.xors, &v.sum);
    }
    if (K_GROUP + 1 == K_GROUPS && K_THREAD < s->count % 4) { /* less than a quad is left */
        k_u64 i = end * 4 + K_THREAD;

        champion_token(((const k_u32 *)quads)[i], tokens_hash(s->first + i), s, &v.xors, &v.sum);
    }
    return v;
}

/* The same where reading takes the time: the champion's loop. */
static __device__ __forceinline__ step_sums step_take_long(const k_u32 *__restrict__ tokens,
                                                           const tokens_span *s) {
    champion_range range = champion_range_of(s, TOKENS_STEP_THREADS);
    step_sums v = {0, 0};

    if (range.begin < range.end)
        champion_take(tokens, range.begin, range.end, s->first + (range.begin - s->begin),
                      TOKENS_STEP_THREADS, s, &v.xors, &v.sum);
    return v;
}

/* The sum of all groups' contributions, in every thread of the calling warp. */
template <int GROUPS>
static __device__ __forceinline__ step_sums step_gather(const step_slot *slots, k_u32 epoch) {
    step_sums v = {0, 0};
    k_u32 missing = 0;

#pragma unroll
    for (int k = 0; k < GROUPS / 32; k++)
        missing |= (K_THREAD % 32 + 32 * k < K_GROUPS) << k;
    while (missing) {
        step_slot seen[GROUPS / 32];

#pragma unroll
        for (int k = 0; k < GROUPS / 32; k++)
            if (missing >> k & 1)
                seen[k] = step_look(slots + K_THREAD % 32 + 32 * k);
#pragma unroll
        for (int k = 0; k < GROUPS / 32; k++)
            if ((missing >> k & 1) && seen[k].epoch == epoch) {
                missing &= ~(1u << k);
                v.xors ^= seen[k].xors;
                v.sum += seen[k].sum;
            }
    }
    __syncwarp();
    return step_reduce_warp(v);
}

/* The lattice's tables, in shared memory where they fit. */
typedef struct step_tables {
    k_u32 points[TOKENS_POINTS];
    k_u8 nearest[STEP_TABLE];
} step_tables;

static __device__ __forceinline__ void step_load_tables(step_tables *to, const tokens_lattice *l,
                                                        const k_u32 *__restrict__ points,
                                                        const k_u8 *__restrict__ nearest) {
    if (K_THREAD < l->count)
        to->points[K_THREAD] = points[K_THREAD];
    for (k_u32 k = K_THREAD; k < 2 * l->span - 1 && k < STEP_TABLE; k += TOKENS_STEP_THREADS)
        to->nearest[k] = nearest[k];
}

static __device__ __forceinline__ k_u32 step_point(const step_tables *tables, k_u32 entry,
                                                   const k_u8 *__restrict__ nearest) {
    return tables->points[entry < STEP_TABLE ? tables->nearest[entry] : nearest[entry]];
}

template <int GROUPS, bool IS_LONG>
static __device__ __forceinline__ void
step(const k_u32 *__restrict__ tokens, step_slot *slots, k_u32 *epochs, k_u32 *accumulators,
     k_f32 *potentials, const k_f32 *__restrict__ activations, k_u64 *totals,
     const k_u32 *__restrict__ points, const k_u8 *__restrict__ nearest, const tokens_span &s,
     const tokens_lattice &l, const tokens_closing &c, k_u32 share) {
    __shared__ step_tables tables;
    /* the first warp of every group has the first nodes, the second the next, ... */
    k_u32 node = (K_THREAD / 32 * K_GROUPS + K_GROUP) * 32 + K_THREAD % 32;
    k_u32 epoch;
    k_f32 potential;
    step_sums v;

    step_let_next_begin();
    step_load_tables(&tables, &l, points, nearest);
    v = step_reduce_group(IS_LONG ? step_take_long(tokens, &s)
                                  : step_take((const k_u32x4 *)(tokens + s.begin), share, &s));
    step_wait_for_previous_launch();
    epoch = *(volatile k_u32 *)epochs + 1;
    __syncthreads(); /* the epoch may change once a group has published: all have read it */
    if (K_THREAD == 0)
        step_publish(slots + K_GROUP, v, epoch);
    if (node / 32 * 32 >= l.nodes)
        return;
    v = step_gather<GROUPS>(slots, epoch);
    potential = __double2float_rn(__dmul_rn((double)(k_i64)(v.sum - c.last * c.middle),
                                            __longlong_as_double((k_i64)c.inverse_bits)));
    for (; node < l.nodes; node += K_GROUPS * TOKENS_STEP_THREADS) {
        k_f32 product = activations[node] * potential;
        k_f32 point = (k_f32)step_point(&tables, apply_entry_real(&l, fabsf(product)), nearest);

        accumulators[node] =
            step_point(&tables, apply_entry_xor(&l, accumulators[node] ^ v.xors), nearest);
        potentials[node] += product == 0.0f ? 0.0f : copysignf(point, product);
    }
    if (K_GROUP == 0 && K_THREAD == 0) {
        K_ATOMIC_ADD_U64(&totals[0], v.sum);
        K_ATOMIC_XOR_U32((k_u32 *)&totals[1], v.xors);
        *epochs = epoch; /* all groups have published: their threads have read it */
    }
}

#define STEP_KERNEL(name, groups, is_long)                                                         \
    extern "C" __global__ void __launch_bounds__(TOKENS_STEP_THREADS, 2) name(                     \
        const k_u32 *__restrict__ tokens, step_slot *slots, k_u32 *epochs, k_u32 *accumulators,    \
        k_f32 *potentials, const k_f32 *__restrict__ activations, k_u64 *totals,                   \
        const k_u32 *__restrict__ points, const k_u8 *__restrict__ nearest, const tokens_span s,   \
        const tokens_lattice l, const tokens_closing c, const k_u32 share) {                       \
        step<groups, is_long>(tokens, slots, epochs, accumulators, potentials, activations,        \
                              totals, points, nearest, s, l, c, share);                            \
    }

/* Few groups, which exchange their sums quickly, for a few microseconds; twice as many for what
 * takes longer. */
STEP_KERNEL(tokens_champion_step, TOKENS_STEP_GROUPS, false)
STEP_KERNEL(tokens_champion_stride, TOKENS_STRIDE_GROUPS, true)
