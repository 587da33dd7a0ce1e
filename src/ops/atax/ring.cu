/* SPDX-License-Identifier: MIT */
/*
 * ring.cu: y = A^T(A x) in one launch and one read of A, for rows of any length. CUDA only, from
 * compute capability 9.0: the copy engine fills a ring in shared memory, so that memory is busy
 * whatever the threads wait for, and rows may begin at any address.
 *
 *     memory ----> | slot 0 | slot 1 | slot 2 | ...      bulk copies, 16-byte aligned around a row
 *                      |        |
 *                  its product with x,  then tmp * row is added to y's part in registers
 *
 * Three kinds of kernels, by the length of a row:
 *
 *   thread   up to 32 columns: a thread has a row. Rows of an even number of columns would make its
 *            neighbours wait for the same banks, so each begins at a column of its own (`turn`) and
 *            has its x and y in that order
 *   warp     up to 512 (f32) or 384 columns: a warp has some rows, and no thread waits for others
 *   team     longer rows: 14 warps of a group, or of `members` groups, share a row. The threads'
 *            partial sums go to the group's 15th warp, which adds them; with several members it
 *            sends the sum to all of them, and the 16th receives. The row stays in its slot until
 *            its sum arrives, `lag` turns later, so nobody waits for the exchange
 *
 * Members exchange sums through the L2 cache, not through a cluster's shared memory: any number of
 * groups can share a row, all units are used, and the latency is hidden either way. A packet is a
 * value with the turn's number in every 8 bytes, so one store publishes it and no fence is needed.
 * Packets are 0 between launches.
 *
 * Each group or team then leaves its part of y, a line; after a barrier across groups the lines are
 * added, always in the same order. Rows that no team can hold are read twice (atax_twice).
 *
 * Traffic: A once; lines * cols elements written and read, from the L2 cache.
 */
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

#define RING_LINE 32u /* lines are padded to as many elements */

K_DEVICE k_u32 ring_address(const void *shared) { return (k_u32)__cvta_generic_to_shared(shared); }

/* The state of a barrier in shared memory is 8 bytes; `arrivals` complete a phase. */
K_DEVICE void ring_init(k_u32 barrier, k_u32 arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes initialized barriers visible to the copy engine. */
K_DEVICE void ring_ready(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

K_DEVICE void ring_arrive(k_u32 barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

K_DEVICE void ring_wait(k_u32 barrier, k_u32 parity) {
    asm volatile("{ .reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again; }" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Announces `bytes` to a barrier, which their arrival completes. */
K_DEVICE void ring_expect(k_u32 barrier, k_u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

K_DEVICE void ring_copy(k_u32 to, const void *from, k_u32 bytes, k_u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* Bytes of a copy that begins `shift` bytes before what is wanted: whole vectors of 16. */
K_DEVICE k_u32 ring_whole(k_u32 shift, k_u32 bytes) { return (shift + bytes + 15) & ~15u; }

K_DEVICE k_u32 ring_shift(const char *from) { return (k_u32)(k_u64)from & 15; }

/* Adds `count` values of each lane over a warp as far as one value per lane: lane l then has a sum
 * of value l / (32 / count), over that many lanes. v is used up. */
template <typename REAL, int COUNT> K_DEVICE REAL ring_gather(REAL *v, k_u32 lane) {
    k_u32 bit = 16;

#pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2, bit /= 2)
#pragma unroll
        for (int k = 0; k < half; k++) {
            REAL mine = lane & bit ? v[k + half] : v[k], other = lane & bit ? v[k] : v[k + half];

            v[k] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, bit);
        }
    return v[0];
}

/* The rest of the addition: over the lanes that have the same value. */
template <typename REAL, int COUNT> K_DEVICE REAL ring_rest(REAL v) {
#pragma unroll
    for (int bit = 16 / COUNT; bit > 0; bit /= 2)
        v += __shfl_xor_sync(0xFFFFFFFFu, v, bit);
    return v;
}

/* Where this group or team leaves its part of y. */
template <typename REAL>
K_DEVICE REAL *ring_line(const atax_ring &s, REAL *partials, REAL *y, k_u32 lines, k_u32 line) {
    return lines == 1 ? y
                      : partials + (k_u64)line * ((s.cols + RING_LINE - 1) / RING_LINE * RING_LINE);
}

template <typename REAL> struct ring_vector;
template <> struct ring_vector<k_f32> { typedef k_f32x4 type; };
template <> struct ring_vector<k_f64> { typedef k_f64x2 type; };

K_DEVICE k_f32x4 ring_plus(k_f32x4 a, k_f32x4 b) { return k_fma_f32x4(1, a, b); }

K_DEVICE k_f64x2 ring_plus(k_f64x2 a, k_f64x2 b) { return k_fma_f64x2(1, a, b); }

/* Adds the lines: a group has some vectors of columns, its threads share the lines. */
template <typename REAL, typename VECTOR>
K_DEVICE void ring_sum(const atax_ring &s, const REAL *partials, REAL *y, k_u32 lines,
                       VECTOR *shared) {
    const k_u32 each = sizeof(VECTOR) / sizeof(REAL);
    k_u64 pitch = ((s.cols + RING_LINE - 1) / RING_LINE * RING_LINE) / each;
    k_u64 vectors = (s.cols + each - 1) / each, share = (vectors + K_GROUPS - 1) / K_GROUPS;
    k_u64 begin = share * K_GROUP, end = begin + share < vectors ? begin + share : vectors;
    k_u32 width = share < K_THREADS ? (k_u32)share : K_THREADS, ways = K_THREADS / width;
    k_u32 way = K_THREAD / width, at = K_THREAD % width;

    for (; begin < end; begin += width) {
        VECTOR sum = {};

        if (way < ways && begin + at < end)
#pragma unroll 8
            for (k_u32 line = way; line < lines; line += ways)
                sum = ring_plus(sum, __ldcg((const VECTOR *)partials + line * pitch + begin + at));
        shared[K_THREAD] = sum;
        __syncthreads();
        for (k_u32 k = K_THREAD; k < width * each; k += K_THREADS) {
            k_u64 column = begin * each + k;
            REAL total = 0;

            for (k_u32 other = 0; other < ways; other++)
                total += ((const REAL *)shared)[other * width * each + k];
            if (column < s.cols && column < end * each)
                y[column] = total;
        }
        __syncthreads();
    }
}

/* The end of every kernel: the lines are added. Packets of members become 0 again. */
template <typename REAL>
K_DEVICE void ring_end(const atax_ring &s, const REAL *partials, REAL *y, k_u32 *words,
                       char *shared) {
    k_u32 lines = K_GROUPS / s.members;

    if (K_GROUPS == 1)
        return;
    together_wait(words);
    if (s.members > 1) {
        k_u64 *packets = (k_u64 *)(words + ATAX_BARRIER_WORDS);

        for (k_u32 k = K_THREAD; k < ATAX_PACKETS * 2; k += K_THREADS)
            packets[K_GROUP * ATAX_PACKETS * 2 + k] = 0;
    }
    if (lines > 1)
        ring_sum(s, partials, y, lines, (typename ring_vector<REAL>::type *)shared);
}

/* Tiles of rows, dealt to the groups in turns; MAIN warps use them, the next one loads. */
template <typename REAL, int MAIN> struct ring_tiles {
    const char *a;
    k_u64 rows, row_bytes;
    k_u32 tile_rows, slot_bytes, slots, count, ring, full, empty;

    __device__ __forceinline__ k_u64 first(k_u32 tile) const {
        return ((k_u64)tile * K_GROUPS + K_GROUP) * tile_rows;
    }
    __device__ __forceinline__ const char *from(k_u32 tile) const {
        return a + first(tile) * row_bytes;
    }
    __device__ __forceinline__ k_u32 rows_of(k_u32 tile) const {
        k_u64 left = rows - first(tile);

        return left < tile_rows ? (k_u32)left : tile_rows;
    }

    __device__ __forceinline__ void load(k_u32 tile) const {
        k_u32 shift = ring_shift(from(tile)), slot = tile % slots;
        k_u32 bytes = ring_whole(shift, rows_of(tile) * (k_u32)row_bytes);

        ring_expect(full + 8 * slot, bytes);
        ring_copy(ring + slot * slot_bytes, from(tile) - shift, bytes, full + 8 * slot);
    }

    __device__ __forceinline__ void begin(const REAL *matrix, const atax_ring &s, char *shared) {
        k_u64 all = (s.rows + s.tile_rows - 1) / s.tile_rows;

        a = (const char *)matrix;
        rows = s.rows;
        row_bytes = s.cols * sizeof(REAL);
        tile_rows = s.tile_rows;
        slot_bytes = s.slot_bytes;
        slots = s.slots;
        count = all > K_GROUP ? (k_u32)((all - K_GROUP + K_GROUPS - 1) / K_GROUPS) : 0;
        ring = ring_address(shared);
        full = ring + slots * slot_bytes;
        empty = full + 8 * slots;
        if (K_THREAD == MAIN * 32) {
            for (k_u32 k = 0; k < slots; k++) {
                ring_init(full + 8 * k, 1);
                ring_init(empty + 8 * k, MAIN);
            }
            ring_ready();
            for (k_u32 k = 0; k < slots && k < count; k++)
                load(k);
        }
        __syncthreads();
    }

    /* One thread: loads a tile as soon as all warps have left its slot. */
    __device__ __forceinline__ void produce() const {
        k_u32 slot = 0, parity = 0;

        for (k_u32 tile = slots; tile < count; tile++) {
            ring_wait(empty + 8 * slot, parity);
            load(tile);
            if (++slot == slots) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
};

/* SURE: so many of a thread's VALUES are in every row; further ones may be beyond its end. */
template <typename REAL, int VALUES, int SURE, int ROWS>
K_DEVICE void ring_warps(const REAL *a, const REAL *x, REAL *y, REAL *partials, const atax_ring &s,
                         char *shared) {
    const int MAIN = ATAX_RING_THREADS / 32 - 1;
    ring_tiles<REAL, MAIN> t;
    k_u32 warp = K_THREAD / 32, lane = K_THREAD % 32, cols = (k_u32)s.cols;
    REAL xs[VALUES], ys[VALUES];
    REAL *line = ring_line(s, partials, y, K_GROUPS, K_GROUP), *all = (REAL *)shared;

    t.begin(a, s, shared);
    if (warp == MAIN) {
        if (lane == 0)
            t.produce();
    } else {
        k_u32 slot = 0, parity = 0, row_bytes = (k_u32)t.row_bytes;

#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            xs[k] = k * 32 + lane < cols ? x[k * 32 + lane] : 0;
            ys[k] = 0;
        }
        for (k_u32 tile = 0; tile < t.count; tile++) {
            k_u32 rows = t.rows_of(tile);
            const char *base =
                shared + slot * s.slot_bytes + ring_shift(t.from(tile)) + lane * sizeof(REAL);

            ring_wait(t.full + 8 * slot, parity);
            for (k_u32 r = warp * ROWS; r < rows; r += MAIN * ROWS) {
                REAL v[ROWS][VALUES], sums[ROWS], tmp;

#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    const REAL *row = (const REAL *)(base + (r + i) * row_bytes);
                    bool is_there = ROWS == 1 || r + i < rows;

#pragma unroll
                    for (int k = 0; k < VALUES; k++)
                        v[i][k] =
                            is_there && (k < SURE || k * 32 + lane < cols) ? row[k * 32] : REAL(0);
                }
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    REAL part[2] = {0, 0};

#pragma unroll
                    for (int k = 0; k < VALUES; k++)
                        part[k & 1] = k_fma(v[i][k], xs[k], part[k & 1]);
                    sums[i] = part[0] + part[1];
                }
                tmp = ring_rest<REAL, ROWS>(ring_gather<REAL, ROWS>(sums, lane));
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    REAL its = ROWS == 1 ? tmp : __shfl_sync(0xFFFFFFFFu, tmp, i * (32 / ROWS));

#pragma unroll
                    for (int k = 0; k < VALUES; k++)
                        ys[k] = k_fma(its, v[i][k], ys[k]);
                }
            }
            __syncwarp();
            if (lane == 0)
                ring_arrive(t.empty + 8 * slot);
            if (++slot == t.slots) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
    __syncthreads(); /* the ring is free */
    if (warp < MAIN)
#pragma unroll
        for (int k = 0; k < VALUES; k++)
            if (k < SURE || k * 32 + lane < cols)
                all[warp * cols + k * 32 + lane] = ys[k];
    __syncthreads();
    for (k_u32 column = K_THREAD; column < cols; column += K_THREADS) {
        REAL sum = 0;

        for (k_u32 k = 0; k < MAIN; k++)
            sum += all[k * cols + column];
        line[column] = sum;
    }
}

/* A thread has rows of up to COLS columns, of COLS if IS_EXACT. */
template <typename REAL, int COLS, int MAIN, bool IS_EXACT>
K_DEVICE void ring_threads(const REAL *a, const REAL *x, REAL *y, REAL *partials,
                           const atax_ring &s, char *shared) {
    const k_u32 BANKS = 128 / sizeof(REAL), THREADS = 32 * MAIN;
    const int ROWS = ATAX_THREAD_ROWS(COLS * (int)sizeof(REAL), MAIN);
    const bool CAN_TURN = !IS_EXACT || COLS % 2 == 0;
    ring_tiles<REAL, MAIN> t;
    k_u32 cols = IS_EXACT ? COLS : (k_u32)s.cols, row_bytes = cols * sizeof(REAL);
    k_u32 warp = K_THREAD / 32, lane = K_THREAD % 32, shared_banks = 1, span, turn, parts;
    REAL xs[COLS], ys[COLS];
    REAL *line = ring_line(s, partials, y, K_GROUPS, K_GROUP), *all = (REAL *)shared;

    t.begin(a, s, shared);
    /* Neighbours that are `span` apart would use the same banks: they differ in their turn. */
    while (shared_banks < BANKS && cols % (2 * shared_banks) == 0)
        shared_banks *= 2;
    span = BANKS / shared_banks;
    turn = CAN_TURN ? lane % BANKS / span % cols : 0;
    parts = 32 / span;
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        k_u32 column = k + turn < cols ? k + turn : k + turn - cols;

        xs[k] = IS_EXACT || k < cols ? x[column] : 0;
        ys[k] = 0;
    }
    if (warp == MAIN) {
        if (lane == 0)
            t.produce();
    } else {
        k_u32 slot = 0, parity = 0;

        for (k_u32 tile = 0; tile < t.count; tile++) {
            k_u32 rows = t.rows_of(tile);
            const char *base =
                shared + slot * s.slot_bytes + ring_shift(t.from(tile)) + turn * sizeof(REAL);

            ring_wait(t.full + 8 * slot, parity);
            for (k_u32 r = K_THREAD; r < rows; r += THREADS * ROWS) {
                REAL v[ROWS][COLS];

#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    const char *row = base + (r + i * THREADS) * row_bytes,
                               *wrapped = row - row_bytes;
                    bool is_there = ROWS == 1 || r + i * THREADS < rows;

#pragma unroll
                    for (int k = 0; k < COLS; k++) {
                        const char *at = !CAN_TURN || k + turn < cols ? row : wrapped;

                        v[i][k] =
                            is_there && (IS_EXACT || k < cols) ? ((const REAL *)at)[k] : REAL(0);
                    }
                }
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    REAL part[2] = {0, 0}, tmp;

#pragma unroll
                    for (int k = 0; k < COLS; k++)
                        part[k & 1] = k_fma(v[i][k], xs[k], part[k & 1]);
                    tmp = part[0] + part[1];
#pragma unroll
                    for (int k = 0; k < COLS; k++)
                        ys[k] = k_fma(tmp, v[i][k], ys[k]);
                }
            }
            __syncwarp();
            if (lane == 0)
                ring_arrive(t.empty + 8 * slot);
            if (++slot == t.slots) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
    __syncthreads(); /* the ring is free */
    if (warp < MAIN)
#pragma unroll
        for (int k = 0; k < COLS; k++) {
            k_u32 column = k + turn < cols ? k + turn : k + turn - cols;
            REAL sum = ys[k];

            for (k_u32 bit = span / 2; bit > 0; bit /= 2)
                sum += __shfl_xor_sync(0xFFFFFFFFu, sum, bit);
            if (k < cols && lane % span == 0)
                all[(warp * parts + lane / span) * cols + column] = sum;
        }
    __syncthreads();
    if (K_THREAD < cols) {
        REAL sum = 0;

        for (k_u32 k = 0; k < MAIN * parts; k++)
            sum += all[k * cols + K_THREAD];
        line[K_THREAD] = sum;
    }
}

/* A packet: one or two words of 8 bytes, each with 4 bytes of the value and the turn's number. */
K_DEVICE void ring_send(k_u64 *to, k_f32 value, k_u32 turn) {
    *(volatile k_u64 *)to = (k_u64)turn << 32 | __float_as_uint(value);
}

K_DEVICE void ring_send(k_u64 *to, k_f64 value, k_u32 turn) {
    k_u64 bits = (k_u64)__double_as_longlong(value), tag = (k_u64)turn << 32;

    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
                 "l"(tag | (bits & 0xFFFFFFFFu)), "l"(tag | bits >> 32)
                 : "memory");
}

K_DEVICE k_f32 ring_receive(const k_u64 *from, k_u32 turn, k_f32) {
    k_u64 v;

    do
        v = *(const volatile k_u64 *)from;
    while ((k_u32)(v >> 32) != turn);
    return __uint_as_float((k_u32)v);
}

K_DEVICE k_f64 ring_receive(const k_u64 *from, k_u32 turn, k_f64) {
    k_u64 low, high;

    do
        asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(low), "=l"(high)
                     : "l"(from)
                     : "memory");
    while ((k_u32)(low >> 32) != turn || (k_u32)(high >> 32) != turn);
    return __longlong_as_double((long long)(high << 32 | (low & 0xFFFFFFFFu)));
}

/* What a group of a team knows of its rows: turn i has ROWS rows from i * ROWS on, if there. */
template <typename REAL, int ROWS> struct ring_team {
    const char *from; /* the first row's part that this member has */
    k_u64 row_bytes, rows;
    k_u32 cols, turns, slot_bytes, slots, lag, places, ring, full, empty, sum_full, tmp_full;
    bool is_tight; /* one slot ahead: it is loaded as soon as it is free, not a turn later */
    REAL *sums;    /* [places][ATAX_TEAM_THREADS]: of threads */
    REAL *tmps;    /* [places][ROWS] */

    __device__ __forceinline__ void begin(const REAL *a, const atax_ring &s, char *shared,
                                          k_u64 first_column) {
        k_u32 member = K_GROUP % s.members, team = K_GROUP / s.members,
              teams = K_GROUPS / s.members;
        k_u64 first = s.rows * team / teams, end = s.rows * (team + 1) / teams;

        row_bytes = s.cols * sizeof(REAL);
        rows = end - first;
        from = (const char *)(a + first * s.cols + first_column);
        cols = (k_u32)(s.cols * (member + 1) / s.members - first_column);
        turns = (k_u32)((rows + ROWS - 1) / ROWS);
        slot_bytes = s.slot_bytes;
        slots = s.slots;
        lag = s.lag;
        places = s.lag + 2;
        is_tight = s.slots <= s.lag + 2;
        ring = ring_address(shared);
        full = ring + slots * slot_bytes;
        empty = full + 8 * slots;
        sum_full = empty + 8 * slots;
        tmp_full = sum_full + 8 * places;
        sums = (REAL *)(shared + slots * (slot_bytes + 16) + places * 16);
        tmps = sums + places * ATAX_TEAM_THREADS;
    }

    __device__ __forceinline__ const char *row(k_u32 turn, k_u32 i) const {
        return from + ((k_u64)turn * ROWS + i) * row_bytes;
    }
    __device__ __forceinline__ bool has(k_u32 turn, k_u32 i) const {
        return ROWS == 1 || (k_u64)turn * ROWS + i < rows;
    }
    /* Row i of a turn in its slot. */
    __device__ __forceinline__ const REAL *at(const char *shared, k_u32 slot, k_u32 turn,
                                              k_u32 i) const {
        k_u32 low = (k_u32)(k_u64)from + (turn * ROWS + i) * (k_u32)row_bytes;

        return (const REAL *)(shared + slot * slot_bytes + i * (slot_bytes / ROWS) + low % 16);
    }

    /* One warp: lane i loads row i. */
    __device__ __forceinline__ void load(k_u32 turn) const {
        k_u32 lane = K_THREAD % 32, slot = turn % slots, bytes = 0, all;
        const char *its = row(turn, lane);

        if (lane < ROWS && has(turn, lane))
            bytes = ring_whole(ring_shift(its), cols * sizeof(REAL));
        all = bytes;
        if (ROWS > 1)
            all = __reduce_add_sync(0xFFFFFFFFu, bytes);
        if (lane == 0)
            ring_expect(full + 8 * slot, all);
        __syncwarp();
        if (bytes > 0)
            ring_copy(ring + slot * slot_bytes + lane * (slot_bytes / ROWS), its - ring_shift(its),
                      bytes, full + 8 * slot);
    }
};

template <typename REAL, int VALUES, int SURE, int ROWS>
K_DEVICE void ring_teams(const REAL *a, const REAL *x, REAL *y, REAL *partials, k_u32 *words,
                         const atax_ring &s, char *shared) {
    const k_u32 MAIN = ATAX_TEAM_THREADS / 32, T = ATAX_TEAM_THREADS, WORDS = sizeof(REAL) / 4;
    k_u32 warp = K_THREAD / 32, lane = K_THREAD % 32, index = K_THREAD;
    k_u32 member = K_GROUP % s.members, team = K_GROUP / s.members, teams = K_GROUPS / s.members;
    k_u64 first_column = s.cols * member / s.members;
    k_u64 *packets =
        (k_u64 *)(words + ATAX_BARRIER_WORDS) + (k_u64)team * s.members * ATAX_PACKETS * 2;
    ring_team<REAL, ROWS> t;

    t.begin(a, s, shared, first_column);
    if (warp == MAIN) {
        if (lane == 0) {
            for (k_u32 k = 0; k < t.slots; k++) {
                ring_init(t.full + 8 * k, 1);
                ring_init(t.empty + 8 * k, MAIN);
            }
            for (k_u32 k = 0; k < t.places; k++) {
                ring_init(t.sum_full + 8 * k, MAIN);
                ring_init(t.tmp_full + 8 * k, 1);
            }
            ring_ready();
        }
        __syncwarp();
        for (k_u32 k = 0; k < t.slots && k < t.turns; k++)
            t.load(k);
    }
    __syncthreads();
    if (warp == MAIN) { /* adds the sums of threads, then loads into the slot that becomes free */
        for (k_u32 i = 0, place = 0, parity = 0; i < t.turns; i++) {
            REAL v = 0;

            ring_wait(t.sum_full + 8 * place, parity);
#pragma unroll
            for (k_u32 k = 0; k < MAIN; k++)
                v += t.sums[place * T + k * 32 + lane];
            v = ring_rest<REAL, ROWS>(v);
            if (s.members > 1) {
                if (lane == 0)
                    ring_send(packets + (i % ATAX_PACKETS * s.members + member) * WORDS, v, i + 1);
            } else {
                if (lane % (32 / ROWS) == 0)
                    t.tmps[place * ROWS + lane / (32 / ROWS)] = v;
                __syncwarp();
                if (lane == 0)
                    ring_arrive(t.tmp_full + 8 * place);
            }
            if (t.is_tight) {
                if (i >= t.lag && i - t.lag + t.slots < t.turns) {
                    k_u32 done = i - t.lag;

                    ring_wait(t.empty + 8 * (done % t.slots), done / t.slots % 2);
                    t.load(done + t.slots);
                }
            } else if (i > t.lag && i - t.lag - 1 + t.slots < t.turns) {
                t.load(i - t.lag - 1 + t.slots); /* all warps left it before turn i */
            }
            if (++place == t.places) {
                place = 0;
                parity ^= 1;
            }
        }
    } else if (warp > MAIN) { /* receives the sums of members */
        for (k_u32 i = 0, place = 0; i < t.turns && s.members > 1; i++) {
            REAL v = 0;

            for (k_u32 m = lane; m < s.members; m += 32)
                v += ring_receive(packets + (i % ATAX_PACKETS * s.members + m) * WORDS, i + 1,
                                  REAL());
            v = ring_rest<REAL, 1>(v);
            if (lane == 0) {
                t.tmps[place] = v;
                ring_arrive(t.tmp_full + 8 * place);
            }
            if (++place == t.places)
                place = 0;
        }
    } else {
        k_u32 slot = 0, parity = 0, place = 0, use_slot = 0, use_place = 0, use_parity = 0;
        REAL *line = ring_line(s, partials, y, teams, team) + first_column;
        REAL xs[VALUES], ys[VALUES];

#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            xs[k] = k * T + index < t.cols ? x[first_column + k * T + index] : 0;
            ys[k] = 0;
        }
        for (k_u32 i = 0; i < t.turns + t.lag; i++) {
            if (i < t.turns) {
                REAL sums[ROWS];

                ring_wait(t.full + 8 * slot, parity);
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    const REAL *row = t.at(shared, slot, i, r) + index;
                    bool is_there = t.has(i, r);
                    REAL part[4] = {0, 0, 0, 0};

#pragma unroll
                    for (int k = 0; k < VALUES; k++) {
                        bool is_in = is_there && (k < SURE || k * T + index < t.cols);

                        part[k & 3] = k_fma(is_in ? row[k * T] : REAL(0), xs[k], part[k & 3]);
                    }
                    sums[r] = (part[0] + part[1]) + (part[2] + part[3]);
                }
                t.sums[place * T + index] = ring_gather<REAL, ROWS>(sums, lane);
                __syncwarp();
                if (lane == 0)
                    ring_arrive(t.sum_full + 8 * place);
                if (++slot == t.slots) {
                    slot = 0;
                    parity ^= 1;
                }
                if (++place == t.places)
                    place = 0;
            }
            if (i >= t.lag) {
                ring_wait(t.tmp_full + 8 * use_place, use_parity);
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    const REAL *row = t.at(shared, use_slot, i - t.lag, r) + index;
                    REAL tmp = t.tmps[use_place * ROWS + r];
                    bool is_there = t.has(i - t.lag, r);

#pragma unroll
                    for (int k = 0; k < VALUES; k++) {
                        bool is_in = is_there && (k < SURE || k * T + index < t.cols);

                        ys[k] = k_fma(tmp, is_in ? row[k * T] : REAL(0), ys[k]);
                    }
                }
                if (t.is_tight) {
                    __syncwarp();
                    if (lane == 0)
                        ring_arrive(t.empty + 8 * use_slot);
                }
                if (++use_slot == t.slots)
                    use_slot = 0;
                if (++use_place == t.places) {
                    use_place = 0;
                    use_parity ^= 1;
                }
            }
        }
#pragma unroll
        for (int k = 0; k < VALUES; k++)
            if (k < SURE || k * T + index < t.cols)
                line[k * T + index] = ys[k];
    }
}

/* Adds row * x over columns begin ... end-1 to sums[], for one thread and ROWS rows. */
template <typename REAL, int ROWS, int LOADS>
K_DEVICE void twice_products(const REAL *a, const REAL *x, k_u64 cols, k_u64 begin, k_u64 end,
                             REAL *sums) {
    const k_u32 T = ATAX_RING_THREADS;
    k_u64 j = begin + K_THREAD;

    for (; begin + LOADS * T <= end; begin += LOADS * T, j += LOADS * T) {
        REAL v[ROWS][LOADS];

#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                v[r][k] = __ldcs(a + r * cols + j + k * T);
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            REAL its = x[j + k * T];

#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sums[r] = k_fma(v[r][k], its, sums[r]);
        }
    }
    for (; j < end; j += T) {
        REAL its = x[j];

#pragma unroll
        for (int r = 0; r < ROWS; r++)
            sums[r] = k_fma(a[r * cols + j], its, sums[r]);
    }
}

/* ROWS rows of the group's columns begin ... end-1: their products with x are added to totals[]. */
template <typename REAL, int ROWS>
K_DEVICE void twice_rows(const REAL *a, const REAL *x, k_u64 cols, k_u64 begin, k_u64 end,
                         REAL *totals, REAL *scratch) {
    const k_u32 WARPS = ATAX_RING_THREADS / 32, PER_ROW = 32 / ROWS;
    REAL sums[ROWS] = {}, v;

    twice_products<REAL, ROWS, 64 / ROWS / (int)sizeof(REAL)>(a, x, cols, begin, end, sums);
    v = ring_rest<REAL, ROWS>(ring_gather<REAL, ROWS>(sums, K_THREAD % 32));
    if (K_THREAD % PER_ROW == 0)
        scratch[K_THREAD % 32 / PER_ROW * WARPS + K_THREAD / 32] = v;
    __syncthreads();
    if (K_THREAD < ROWS) {
        v = totals[K_THREAD];
#pragma unroll
        for (k_u32 k = 0; k < WARPS; k++)
            v += scratch[K_THREAD * WARPS + k];
        totals[K_THREAD] = v;
    }
    __syncthreads();
}

/* tmp[] of `rows` rows: what all groups have for each row, added. */
template <typename REAL> K_DEVICE void twice_sum(const REAL *partials, k_u64 rows, REAL *tmp) {
    for (k_u64 i = K_THREAD / 32; i < rows; i += ATAX_RING_THREADS / 32) {
        REAL sum = 0;

#pragma unroll 8
        for (k_u32 k = K_THREAD % 32; k < K_GROUPS; k += 32)
            sum += __ldcg(partials + i * K_GROUPS + k);
        sum = ring_rest<REAL, 1>(sum);
        if (K_THREAD % 32 == 0)
            tmp[i] = sum;
    }
    __syncthreads();
}

/* Adds tmp * row to y for columns begin ... end-1, the last ones first: they may still be in the L2
 * cache. */
template <typename REAL>
K_DEVICE void twice_columns(const REAL *a, const REAL *tmp, REAL *y, k_u64 rows, k_u64 cols,
                            k_u64 begin, k_u64 end, bool is_first) {
    const k_u32 T = ATAX_RING_THREADS, LOADS = 16 / sizeof(REAL);

    for (k_u64 last = end; last > begin;) {
        k_u64 first = last > begin + LOADS * T ? last - LOADS * T : begin, j = first + K_THREAD;
        bool is_whole = last - first == LOADS * T;
        REAL sums[LOADS] = {};

        if (is_whole) {
#pragma unroll 4
            for (k_u64 i = rows; i-- > 0;)
#pragma unroll
                for (k_u32 k = 0; k < LOADS; k++)
                    sums[k] = k_fma(tmp[i], __ldcs(a + i * cols + j + k * T), sums[k]);
        } else {
            for (k_u64 i = rows; i-- > 0;)
                for (k_u32 k = 0; k < LOADS && j + k * T < last; k++)
                    sums[k] = k_fma(tmp[i], a[i * cols + j + k * T], sums[k]);
        }
#pragma unroll
        for (k_u32 k = 0; k < LOADS; k++)
            if (is_whole || j + k * T < last)
                y[j + k * T] = is_first ? sums[k] : y[j + k * T] + sums[k];
        last = first;
    }
}

/* Rows that no team can hold, two reads. A group has some columns of all rows, ATAX_TWICE at a
 * time, so that x comes from its cache for all rows but the first ones. Groups wait for each other,
 * add what all have for each row, and read their columns again. A turn has ATAX_TWICE_ROWS rows;
 * turns alternate between two halves of partials, because some groups still read the last one. */
template <typename REAL>
K_DEVICE void ring_twice(const REAL *a, const REAL *x, REAL *y, REAL *partials, k_u32 *words,
                         const atax_ring &s, REAL *shared) {
    const k_u32 T = ATAX_RING_THREADS, HALF = ATAX_TWICE_ROWS * K_GROUPS;
    k_u64 blocks = (s.cols + ATAX_TWICE_LINE - 1) / ATAX_TWICE_LINE;
    k_u64 begin = blocks * K_GROUP / K_GROUPS * ATAX_TWICE_LINE;
    k_u64 end = blocks * (K_GROUP + 1) / K_GROUPS * ATAX_TWICE_LINE;
    REAL *tmp = shared + T / 4; /* what comes before is scratch of twice_rows */

    end = end < s.cols ? end : s.cols;
    for (k_u64 done = 0; done < s.rows; done += ATAX_TWICE_ROWS, a += ATAX_TWICE_ROWS * s.cols) {
        k_u64 rows = s.rows - done < ATAX_TWICE_ROWS ? s.rows - done : ATAX_TWICE_ROWS;
        REAL *mine = partials + done / ATAX_TWICE_ROWS % 2 * HALF;

        for (k_u64 i = K_THREAD; i < rows; i += T)
            tmp[i] = 0;
        __syncthreads();
        for (k_u64 first = begin; first < end; first += ATAX_TWICE) {
            k_u64 last = first + ATAX_TWICE < end ? first + ATAX_TWICE : end, i = 0;

            for (; i + 8 <= rows; i += 8)
                twice_rows<REAL, 8>(a + i * s.cols, x, s.cols, first, last, tmp + i, shared);
            for (; i + 2 <= rows; i += 2)
                twice_rows<REAL, 2>(a + i * s.cols, x, s.cols, first, last, tmp + i, shared);
            for (; i < rows; i++)
                twice_rows<REAL, 1>(a + i * s.cols, x, s.cols, first, last, tmp + i, shared);
        }
        for (k_u64 i = K_THREAD; i < rows; i += T)
            mine[i * K_GROUPS + K_GROUP] = tmp[i];
        together_wait(words);
        twice_sum(mine, rows, tmp);
        twice_columns(a, tmp, y, rows, s.cols, begin, end, done == 0);
        __syncthreads();
    }
}

#define RING_BODY(...) __VA_ARGS__
#else
#define RING_BODY(...)
#endif

#define RING_KERNEL(name, real, threads, per_unit)                                                 \
    extern "C" __global__ void __launch_bounds__(threads, per_unit)                                \
        name(const real *__restrict__ a, const real *__restrict__ x, real *y, real *partials,      \
             k_u32 *words, const __grid_constant__ atax_ring s)

/* A kernel that ends with the sum over lines; the rest is the call of what comes before it. */
#define RING_SUMMED(name, real, threads, ...)                                                      \
    RING_KERNEL(name, real, threads, 1) {                                                          \
        RING_BODY(K_DYNAMIC(char, shared); __VA_ARGS__;                                            \
                  ring_end<real>(s, partials, y, words, shared);)                                  \
    }

#define RING_THREAD(kind, cols, warps, is_exact)                                                   \
    RING_SUMMED(atax_thread_##cols##_##kind, k_##kind, (warps)*32 + 32,                            \
                ring_threads<k_##kind, cols, warps, is_exact>(a, x, y, partials, s, shared))
#define RING_THREADS(cols, warps_f32, warps_f64, is_exact)                                         \
    RING_THREAD(f32, cols, warps_f32, is_exact)                                                    \
    RING_THREAD(f64, cols, warps_f64, is_exact)
ATAX_THREAD_SHAPES(RING_THREADS)

#define RING_WARP(kind, values, sure, rows)                                                        \
    RING_SUMMED(atax_warp_##values##_##kind, k_##kind, ATAX_RING_THREADS,                          \
                ring_warps<k_##kind, values, sure, rows>(a, x, y, partials, s, shared))
#define RING_WARP_F32(values, sure, rows) RING_WARP(f32, values, sure, rows)
#define RING_WARP_F64(values, sure, rows) RING_WARP(f64, values, sure, rows)
ATAX_WARP_SHAPES_F32(RING_WARP_F32)
ATAX_WARP_SHAPES_F64(RING_WARP_F64)

#define RING_TEAM(kind, values, sure, rows)                                                        \
    RING_SUMMED(atax_team_##values##x##rows##_##kind, k_##kind, ATAX_RING_THREADS,                 \
                ring_teams<k_##kind, values, sure, rows>(a, x, y, partials, words, s, shared))
#define RING_TEAM_F32(values, sure, rows) RING_TEAM(f32, values, sure, rows)
#define RING_TEAM_F64(values, sure, rows) RING_TEAM(f64, values, sure, rows)
ATAX_TEAM_SHAPES_F32(RING_TEAM_F32)
ATAX_TEAM_SHAPES_F64(RING_TEAM_F64)

#define RING_TWICE(kind)                                                                           \
    RING_KERNEL(atax_twice_##kind, k_##kind, ATAX_RING_THREADS, ATAX_TWICE_GROUPS) {               \
        RING_BODY(K_DYNAMIC(k_##kind, shared); ring_twice(a, x, y, partials, words, s, shared);)   \
    }
RING_TWICE(f32)
RING_TWICE(f64)
