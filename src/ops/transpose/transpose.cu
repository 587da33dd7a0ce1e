/* SPDX-License-Identifier: MIT */
/*
 * transpose.cu: the champion's kernels for matrices whose rows begin anywhere, CUDA only.
 *
 * What costs time here is the L2 cache: a warp that reads or writes 128 bytes across the border of
 * two lines asks twice. So both sides move whole vectors of 16 bytes, and no request crosses a line
 * that it need not cross:
 *
 *   1. A warp reads a row of the tile, beginning at the last multiple of 128 bytes: eight lanes
 *      have one line. cp.async moves the vectors into local memory as they are, without registers.
 *      A row begins there at its address modulo 16.
 *   2. The tile is TRANSPOSE_HALO bytes of B higher than what it writes, and its column j writes
 *      the rows that begin at the last multiple of TRANSPOSE_HALO in B: every sector of 32 bytes is
 *      written whole, by one tile. The rows above come from the L2 cache a second time.
 *
 *          columns:  j  j+1 j+2 j+3        rows of A
 *                    .   #   .   .    |  read by this tile and the one above
 *                    #   #   .   #    |
 *                    #   #   #   #
 *                    #   .   #   #       #: written by this tile
 *
 *   3. 4 and 8 bytes (transpose_raw): a thread collects a vector of B element by element. Vectors
 *      of a row are exchanged as in the champion, so that a column covers all banks.
 *      1 and 2 bytes (transpose_packed): squares of 4 x 4 or 2 x 2 elements are transposed in
 *      registers, from words that are shifted to where the row begins. A thread keeps to one word
 *      of the rows and takes every fourth square below: those are 16 bytes of B apart, so their
 *      rows begin at the same place within a word. The words, each part of a column, replace the
 *      tile in local memory; vectors of B are then shifted to where the column begins.
 */
K_DEVICE k_u64 transpose_address(const void *p) { return (k_u64)p; }

template <int BYTES> struct transpose_element;
template <> struct transpose_element<1> { typedef k_u8 type; };
template <> struct transpose_element<2> { typedef k_u16 type; };
template <> struct transpose_element<4> { typedef k_u32 type; };
template <> struct transpose_element<8> { typedef k_u64 type; };

/* A tile: rows top ... top+rows-1, and what is inside the part of A. */
struct transpose_area {
    k_i64 top, begin, end; /* rows; the part is begin ... end-1 */
    k_u64 col;
    int cols_in;
    bool is_inside; /* all rows are in the part */
};

/* Tiles are numbered down the columns of A, a band of rows at a time: bytes next to the tile that
 * memory delivers with it are still in the L2 cache when the next column of tiles needs them. Where
 * rows are short, the band is one range of a few MiB. */
template <int E, int HIGH> K_DEVICE transpose_area transpose_area_of(const transpose_part &p) {
    const int halo = TRANSPOSE_HALO / E;
    const int width = TRANSPOSE_RAW_BYTES / E;
    k_u32 down = transpose_tiles(p.count + halo, HIGH), across = transpose_tiles(p.cols, width);
    k_u32 most =
        (p.cols * E > TRANSPOSE_SHORT_BYTES ? TRANSPOSE_BAND(E) : TRANSPOSE_SHORT_BAND) / HIGH;
    k_u32 above = K_GROUP / across / most * most, left = K_GROUP - above * across;
    k_u32 band = min(down - above, most);
    transpose_area t;

    t.begin = (k_i64)p.first;
    t.end = t.begin + (k_i64)p.count;
    t.top = t.begin + (k_i64)(above + left % band) * HIGH - halo;
    t.col = (k_u64)(left / band) * width;
    t.cols_in = (int)transpose_inside(p.cols - t.col, width);
    t.is_inside = t.top >= t.begin && t.top + halo + HIGH <= t.end;
    return t;
}

/* Copies 1 to 16 bytes to local memory; the rest of the vector becomes 0. */
K_DEVICE void transpose_copy(char *to, const char *from, int bytes) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(
                     (k_u32)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes));
#else
    if (bytes == 16)
        *(k_u32x4 *)to = *(const k_u32x4 *)from;
    else
        for (int k = 0; k < bytes; k++)
            to[k] = from[k];
#endif
}

/* Copies rows of the tile, `lanes` threads each, from the last multiple of `unit` bytes on. Vectors
 * of row y are exchanged by XOR with y * E if asked for. A copy ends with the row, so nothing
 * behind the matrix is read. */
template <int E, int HIGH, int THREADS, bool IS_EXCHANGED>
K_DEVICE void transpose_fetch_rows(const char *a, k_u64 stride, const transpose_area &t, char *tile,
                                   int lanes, int unit) {
    const int rows = HIGH + TRANSPOSE_HALO / E;
    int lane = (int)K_THREAD % lanes, y = (int)K_THREAD / lanes, step = THREADS / lanes;
    int last = t.end - t.top < rows ? (int)(t.end - t.top) : rows;
    const char *from = a + (t.top + y) * (k_i64)stride + t.col * E;

#pragma unroll 4
    for (; y < last; y += step, from += step * stride) {
        int before = (int)(transpose_address(from) % unit);
        int bytes = min(16, before + t.cols_in * E - 16 * lane);
        int at = 16 * (lane - before / 16);

        if (IS_EXCHANGED)
            at ^= y * E & 0x70;
        if (bytes > 0 && lane >= before / 16 && t.top + y >= t.begin)
            transpose_copy(tile + y * TRANSPOSE_RAW_PITCH(E) + at, from - before + 16 * lane,
                           bytes);
    }
}

/* A warp copies one row, or several short ones: those are nearly adjacent, so there it does not
 * matter where lines begin. */
template <int E, int HIGH, int THREADS, bool IS_EXCHANGED>
K_DEVICE void transpose_fetch(const char *a, k_u64 stride, const transpose_area &t, char *tile) {
    int width = t.cols_in * E;

    if (width > 240)
        transpose_fetch_rows<E, HIGH, THREADS, IS_EXCHANGED>(a, stride, t, tile, 32, 128);
    else
        transpose_fetch_rows<E, HIGH, THREADS, IS_EXCHANGED>(a, stride, t, tile,
                                                             width > 112  ? 16
                                                             : width > 48 ? 8
                                                                          : 4,
                                                             16);
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    K_BARRIER();
}

/* Stores a vector at `to`, elements of a column from row `first` on, as far as they are inside. */
template <int E>
K_DEVICE void transpose_put(char *to, k_u32x4 v, const transpose_area &t, k_i64 first) {
    typedef typename transpose_element<E>::type element;

    if (t.is_inside || (first >= t.begin && first + 16 / E <= t.end)) {
        *(k_u32x4 *)to = v;
        return;
    }
#pragma unroll K_UNROLL
    for (int k = 0; k < 16 / E; k++)
        if (first + k >= t.begin && first + k < t.end)
            ((element *)to)[k] = ((const element *)&v)[k];
}

template <int E, int HIGH>
K_DEVICE void transpose_raw(const char *a, char *b, const transpose_part &p, char *tile) {
    typedef typename transpose_element<E>::type element;
    const int each = 16 / E, halo = TRANSPOSE_HALO / E, pitch = TRANSPOSE_RAW_PITCH(E);
    const int down = HIGH / each, step = TRANSPOSE_RAW_THREADS / down;
    transpose_area t = transpose_area_of<E, HIGH>(p);
    /* Half a warp has two columns by eight vectors: all banks. */
    int lane = (int)K_THREAD % 32, warp = (int)K_THREAD / 32;
    int q = warp % (down / 8) * 8 + lane / 2 % 8;
    int j = warp / (down / 8) * 4 + (lane % 2 | lane / 16 * 2);
    k_u32 stride = (k_u32)(p.cols * E);
    k_u32 place = (k_u32)transpose_address(a + t.top * (k_i64)(p.cols * E) + t.col * E);
    char *to = b + (t.col + j) * p.rows * E + (t.top + halo) * E;

    transpose_fetch<E, HIGH, TRANSPOSE_RAW_THREADS, true>(a, p.cols * E, t, tile);
#pragma unroll 2
    for (; j < t.cols_in; j += step, to += step * p.rows * E) {
        int before = (int)(transpose_address(to) % TRANSPOSE_HALO);
        int y = halo - before / E + q * each;
        k_u32x4 v;

#pragma unroll K_UNROLL
        for (int k = 0; k < each; k++, y++) {
            int at = (int)(place + y * stride & 15) + j * E ^ (y * E & 0x70);

            ((element *)&v)[k] = *(const element *)(tile + y * pitch + at);
        }
        transpose_put<E>(to - before + 16 * q, v, t, t.top + y - each);
    }
}

/* Transposes E = 1: 4 x 4 bytes, E = 2: 2 x 2 halves. */
template <int E> K_DEVICE void transpose_square(k_u32 *w) {
    if (E == 2) {
        k_u32 low = __byte_perm(w[0], w[1], 0x5410);

        w[1] = __byte_perm(w[0], w[1], 0x7632);
        w[0] = low;
    } else {
        k_u32 top_low = __byte_perm(w[0], w[1], 0x5140), top_high = __byte_perm(w[0], w[1], 0x7362);
        k_u32 low = __byte_perm(w[2], w[3], 0x5140), high = __byte_perm(w[2], w[3], 0x7362);

        w[0] = __byte_perm(top_low, low, 0x5410);
        w[1] = __byte_perm(top_low, low, 0x7632);
        w[2] = __byte_perm(top_high, high, 0x5410);
        w[3] = __byte_perm(top_high, high, 0x7632);
    }
}

template <int E, int HIGH>
K_DEVICE void transpose_packed(const char *a, char *b, const transpose_part &p, char *tile) {
    const int side = 4 / E, words = TRANSPOSE_RAW_BYTES / 4, pitch = TRANSPOSE_RAW_PITCH(E);
    const int rows = HIGH + TRANSPOSE_HALO / E, each = rows * E / 16;
    const int line = rows / side + 1; /* words of a column, an odd number */
    const int down = HIGH * E / 16, step = TRANSPOSE_PACKED_THREADS / down;
    transpose_area t = transpose_area_of<E, HIGH>(p);
    int g = (int)K_THREAD % words, square = (int)K_THREAD / words;
    k_u32 stride = (k_u32)(p.cols * E);
    k_u32 place = (k_u32)transpose_address(a + t.top * (k_i64)(p.cols * E) + t.col * E);
    k_u32 *columns = (k_u32 *)tile, w[rows * E / 16][4 / E];

    transpose_fetch<E, HIGH, TRANSPOSE_PACKED_THREADS, false>(a, p.cols * E, t, tile);
#pragma unroll K_UNROLL
    for (int m = 0; m < side; m++) {
        int y = square * side + m;
        k_u32 before = place + y * stride & 15;
        const k_u32 *from = (const k_u32 *)(tile + y * pitch) + before / 4 + g;

#pragma unroll K_UNROLL
        for (int k = 0; k < each; k++, from += 4 * side * pitch / 4)
            w[k][m] = __funnelshift_r(from[0], from[1], 8 * (before & 3));
    }
    K_BARRIER();
    columns += g * side * line + g * side / 32 + square;
#pragma unroll K_UNROLL
    for (int k = 0; k < each; k++) {
        transpose_square<E>(w[k]);
#pragma unroll K_UNROLL
        for (int m = 0; m < side; m++)
            columns[m * line + 4 * k] = w[k][m];
    }
    K_BARRIER();
    int q = (int)K_THREAD % down, j = (int)K_THREAD / down;
    char *to = b + (t.col + j) * p.rows * E + (t.top + TRANSPOSE_HALO / E) * E;

#pragma unroll 2
    for (; j < t.cols_in; j += step, to += step * p.rows * E) {
        int before = (int)(transpose_address(to) % TRANSPOSE_HALO);
        int at = TRANSPOSE_HALO - before + 16 * q, shift = 8 * (at & 3);
        const k_u32 *from = (const k_u32 *)tile + j * line + j / 32 + at / 4;
        k_u32x4 v = {
            __funnelshift_r(from[0], from[1], shift), __funnelshift_r(from[1], from[2], shift),
            __funnelshift_r(from[2], from[3], shift), __funnelshift_r(from[3], from[4], shift)};

        transpose_put<E>(to - before + 16 * q, v, t, t.top + at / E);
    }
}

#define TRANSPOSE_RAW_KERNEL(name, move, threads, e, rows)                                         \
    K_KERNEL(threads)                                                                              \
    name(const char *K_RESTRICT a, char *K_RESTRICT b, const transpose_part p,                     \
         const k_u32 along_b) {                                                                    \
        K_DYNAMIC(char, tile);                                                                     \
        move<e, rows>(a, b, p, tile);                                                              \
    }
#define TRANSPOSE_RAW_KERNELS(name, rows)                                                          \
    TRANSPOSE_RAW_KERNEL(name##_u8, transpose_packed, TRANSPOSE_PACKED_THREADS, 1,                 \
                         TRANSPOSE_RAW_ROWS)                                                       \
    TRANSPOSE_RAW_KERNEL(name##_u16, transpose_packed, TRANSPOSE_PACKED_THREADS, 2,                \
                         TRANSPOSE_RAW_ROWS)                                                       \
    TRANSPOSE_RAW_KERNEL(name##_f32, transpose_raw, TRANSPOSE_RAW_THREADS, 4, rows)                \
    TRANSPOSE_RAW_KERNEL(name##_f64, transpose_raw, TRANSPOSE_RAW_THREADS, 8, rows)

TRANSPOSE_RAW_KERNELS(transpose_raw, TRANSPOSE_RAW_ROWS)
TRANSPOSE_RAW_KERNELS(transpose_low, TRANSPOSE_LOW_ROWS)
#undef TRANSPOSE_RAW_KERNELS
#undef TRANSPOSE_RAW_KERNEL
