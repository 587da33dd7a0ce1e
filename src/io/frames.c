/* SPDX-License-Identifier: MIT */
/*
 * frames.c: the parts of a compressed file, and reading at any position.
 *
 * Parts are frames of zstd and lz4, members of gzip files in blocks (BGZF), and blocks of xz. Their
 * sizes are in headers, which are followed from one to the next (xz: they are listed at the end),
 * so that only a few pages of the file are read. A file that is damaged, of unknown sizes or with
 * large parts gets no table: it is read in order, which also finds where the damage is, or replayed
 * (below).
 *
 * Neighbouring parts form a group, which is decompressed at once: a block of the cache.
 * Decompressing verifies the checksums, and that the sizes are those of the headers.
 */
#include "io/frames.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/thread_pool.h"
#include "io/checksum.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small parts are grouped up to this size, compressed and decompressed. On a Neoverse V1, two
 * threads then need 1.10 (frames of 1 MiB) and 1.15 (64 KiB) times the CPU time of bare
 * decompression; with groups of 4 MiB, which leave the L2 cache before they are read, 1.14 and
 * 1.22. */
#define GROUP_BYTES ((uint64_t)1 << 20)

/* Larger parts would need too much memory, a block for each thread and more. */
#define PART_BYTES_MAX ((uint64_t)64 << 20)

/* Headers of a large file are followed by several threads, in sections of at least this size. */
#define SECTION_BYTES_MIN ((uint64_t)8 << 20)
#define SECTIONS_MAX      16u
#define SECTION_TRIES_MAX 16u

/* The table has at most so many groups: 32 MiB. */
#define GROUPS_MAX ((size_t)1 << 20)

/* Headers are read from pages of this size. */
#define PAGE_BYTES 4096u
#define LOOK_BYTES 64u

/* Following headers through a remote file would transfer all of it. */
#define REMOTE_BYTES_MAX ((uint64_t)16 << 20)

/* The index of an xz stream, and the number of streams: more are not worth a table. */
#define XZ_INDEX_BYTES_MAX ((uint64_t)16 << 20)
#define XZ_STREAMS_MAX     ((size_t)1 << 16)
#define XZ_PADDING_MAX     1024u /* after a stream, of four bytes each */
#define XZ_HEADER_BYTES    ((size_t)12)

typedef struct group {
    uint64_t at, stored; /* compressed bytes, in the file */
    uint64_t start;      /* of its decompressed bytes */
    uint32_t decoded;
    uint8_t check; /* xz: the kind of check that its stream has */
} group;

struct iron__frames {
    iron__codec codec;
    uint64_t bytes;
    size_t count, capacity;
    group *groups;
    struct replay *replay; /* NULL, or the file has no parts and is decompressed in order */

    char *path; /* the file, and its size */
    uint64_t stored;
    iron__blocks *cache; /* NULL: none was asked for */
    iron__blocks_owner owner;
};

/* What is at a position of the file. */
typedef enum part_kind {
    PART_NONE, /* nothing that has a known size */
    PART_DATA,
    PART_SKIPPED /* a frame without data */
} part_kind;

typedef struct part {
    uint64_t stored, decoded;
    uint8_t check;
} part;

/* A page of the file, for headers. */
typedef struct scanner {
    const iron__input *in;
    iron_error *err;
    iron_status status;
    uint64_t page_at;
    size_t page_bytes;
    unsigned char page[PAGE_BYTES];
} scanner;

/* The bytes at a position, up to 64 of them; NULL: the file is shorter, or cannot be read. */
static const unsigned char *look(scanner *s, uint64_t at, size_t count) {
    uint64_t size = s->in->bytes;

    if (s->status != IRON_OK || at > size || count > size - at)
        return NULL;
    if (at < s->page_at || at + count > s->page_at + s->page_bytes) {
        /* after a jump over data, only a header */
        size_t most = at >= s->page_at && at - s->page_at <= PAGE_BYTES ? PAGE_BYTES : LOOK_BYTES;

        s->page_at = at;
        s->page_bytes = size - at < most ? (size_t)(size - at) : most;
        s->status = iron__input_read_at(s->in, at, s->page, s->page_bytes, s->err);
        if (s->status != IRON_OK)
            return NULL;
    }
    return s->page + (at - s->page_at);
}

/* A number of so many bytes, or UINT64_MAX if it is not there. */
static uint64_t look_number(scanner *s, uint64_t at, unsigned bytes) {
    const unsigned char *p = look(s, at, bytes);

    return p ? iron__load(p, bytes) : UINT64_MAX;
}

/* Frames that zstd and lz4 skip have the same header. */
static bool is_skipped_frame(uint64_t magic) { return magic >> 4 == 0x184D2A5; }

static part_kind skip_frame(scanner *s, uint64_t at, part *p) {
    uint64_t size = look_number(s, at + 4, 4);

    *p = (part){.stored = 8 + size};
    return size == UINT64_MAX ? PART_NONE : PART_SKIPPED;
}

static part_kind find_zstd_frame(scanner *s, uint64_t at, part *p) {
    uint64_t magic = look_number(s, at, 4), next, header;
    const unsigned char *head;
    size_t head_bytes;
    unsigned flags;

    if (is_skipped_frame(magic))
        return skip_frame(s, at, p);
    if (magic != 0xFD2FB528 || !(head = look(s, at, 5)))
        return PART_NONE;
    flags = head[4];
    head_bytes = iron__zstd_head_bytes(flags);
    head = look(s, at, head_bytes);
    p->decoded = head ? iron__zstd_content(head) : UINT64_MAX;
    if (p->decoded > PART_BYTES_MAX || flags & 0x18) /* unknown size, unused or reserved bits */
        return PART_NONE;
    next = at + head_bytes;
    do { /* blocks */
        uint64_t size;
        unsigned type;

        header = look_number(s, next, 3);
        size = header >> 3;
        type = header >> 1 & 3;
        if (header == UINT64_MAX || type == 3 || size > 128u << 10)
            return PART_NONE;
        next += 3 + (type == 1 ? 1 : size); /* 1: one byte, repeated */
        if (next - at > PART_BYTES_MAX)
            return PART_NONE;
    } while (!(header & 1));
    p->stored = next + (flags & 4) - at; /* four bytes of checksum */
    return PART_DATA;
}

static part_kind find_lz4_frame(scanner *s, uint64_t at, part *p) {
    uint64_t magic = look_number(s, at, 4), next = at + 6 + 8 + 1, header; /* 1: a checksum */
    const unsigned char *descriptor = look(s, at + 4, 2);
    unsigned flags;

    if (is_skipped_frame(magic))
        return skip_frame(s, at, p);
    if (magic != 0x184D2204 || !descriptor)
        return PART_NONE;
    flags = *descriptor;
    if (flags >> 6 != 1 || !(flags & 8) || flags & 1) /* version, size, no dictionary */
        return PART_NONE;
    p->decoded = look_number(s, at + 6, 8);
    if (p->decoded == 0 || p->decoded > PART_BYTES_MAX) /* liblz4 takes 0 for unknown */
        return PART_NONE;
    /* A block's highest bit says that it is not compressed; size 0 ends the frame. */
    while ((header = look_number(s, next, 4)) != 0) {
        uint64_t size = header & 0x7FFFFFFF;

        if (header == UINT64_MAX || size > (4u << 20))
            return PART_NONE;
        next += 4 + size + (flags >> 4 & 1 ? 4 : 0); /* a checksum for each block */
        if (next - at > PART_BYTES_MAX)
            return PART_NONE;
    }
    p->stored = next + 4 + (flags & 4) - at; /* four bytes of checksum */
    return PART_DATA;
}

/* BGZF: gzip members whose extra field "BC" has their size, of at most 64 KiB. */
static part_kind find_bgzf_member(scanner *s, uint64_t at, part *p) {
    static const unsigned char start[4] = {0x1F, 0x8B, 8, 4};
    static const unsigned char extra[6] = {6, 0, 'B', 'C', 2, 0};
    const unsigned char *head = look(s, at, 18);
    uint64_t stored, decoded;

    if (!head || memcmp(head, start, sizeof start) != 0 ||
        memcmp(head + 10, extra, sizeof extra) != 0)
        return PART_NONE;
    stored = iron__load(head + 16, 2) + 1;
    if (stored < 18 + 8)
        return PART_NONE;
    decoded = look_number(s, at + stored - 4, 4);
    *p = (part){.stored = stored, .decoded = decoded};
    return decoded <= 64u << 10 ? PART_DATA : PART_NONE;
}

/* Adds a part to the last group, or as a new one; false: out of memory, or too many. */
static bool add_part(iron__frames *f, uint64_t at, const part *p) {
    group *last = f->count ? &f->groups[f->count - 1] : NULL;

    /* blocks of xz stay alone: their sizes must be those of the index, each */
    if (last && f->codec != IRON_CODEC_XZ && last->at + last->stored == at &&
        last->stored + p->stored <= GROUP_BYTES && last->decoded + p->decoded <= GROUP_BYTES) {
        last->stored += p->stored;
        last->decoded += (uint32_t)p->decoded;
        f->bytes += p->decoded;
        return true;
    }
    if (f->count == GROUPS_MAX || !IRON_ARRAY_GROW(&f->groups, f->count, &f->capacity))
        return false;
    f->groups[f->count++] = (group){at, p->stored, f->bytes, (uint32_t)p->decoded, p->check};
    f->bytes += p->decoded;
    return true;
}

/* A codec whose parts are found by following headers. */
typedef struct part_finder {
    unsigned char magic[4]; /* what a part with data begins with */
    part_kind (*find)(scanner *s, uint64_t at, part *p);
} part_finder;

/* Follows the headers from *at on until `end`, or past it; false: there is something else. */
static bool follow_parts(scanner *s, iron__frames *f, const part_finder *finder, uint64_t *at,
                         uint64_t end) {
    while (*at < end) {
        part p = {.check = 0};
        part_kind kind = finder->find(s, *at, &p);

        if (kind == PART_NONE || p.stored > s->in->bytes - *at)
            return false;
        if (kind == PART_DATA && !add_part(f, *at, &p))
            return false;
        *at += p.stored;
    }
    return true;
}

/* Sections. Following headers is a chain of reads, each of which says where the next one is: one
 * thread needs 45 ms for the 65,536 blocks of 8 GiB, while 16 threads decompress all of it in 600.
 * So a large file is cut into sections, and in each a thread follows the headers from the first
 * place that looks like a part. Such a place may also be inside a part. Therefore a section counts
 * only if the parts before it end exactly where it begins; otherwise it is followed again. */

typedef struct section {
    const part_finder *finder;
    scanner scanner;
    uint64_t begin, end; /* where its first part is looked for */
    uint64_t first;      /* where it begins; UINT64_MAX: none was found */
    uint64_t last;       /* the end of its last part */
    iron__frames found;  /* decompressed bytes are counted from 0 */
} section;

/* Follows the headers from the first places of a section that look like a part to its end, or past
 * it. A read that fails is not reported here: joining the sections reads the same bytes again. */
static void follow_section(void *context, size_t index) {
    section *c = (section *)context + index;
    const unsigned char *magic = c->finder->magic;
    const size_t magic_bytes = sizeof c->finder->magic;
    unsigned char bytes[16u << 10];
    unsigned tries = 0;

    for (uint64_t at = c->begin; at + magic_bytes <= c->end; at += sizeof bytes - magic_bytes + 1) {
        size_t count = c->end - at < sizeof bytes ? (size_t)(c->end - at) : sizeof bytes;
        const unsigned char *next = bytes, *end = bytes + count;

        if (iron__input_read_at(c->scanner.in, at, bytes, count, NULL) != IRON_OK)
            return;
        while ((next = memmem(next, (size_t)(end - next), magic, magic_bytes)) != NULL) {
            if (tries++ == SECTION_TRIES_MAX)
                return;
            c->first = c->last = at + (size_t)(next - bytes);
            c->found.count = 0;
            c->found.bytes = 0;
            if (follow_parts(&c->scanner, &c->found, c->finder, &c->last, c->end))
                return;
            c->first = UINT64_MAX;
            next++;
        }
    }
}

/* Finds all parts of the file, with what is known of sections. */
static bool join_sections(scanner *s, iron__frames *f, const part_finder *finder,
                          const section *sections, size_t count) {
    uint64_t size = s->in->bytes, at = 0;
    size_t k = 0;

    while (at < size) {
        while (k < count && (sections[k].first < at || sections[k].first == UINT64_MAX))
            k++;
        if (k < count && sections[k].first == at) {
            const iron__frames *found = &sections[k].found;

            for (size_t n = 0; n < found->count; n++) {
                const group *g = &found->groups[n];

                if (!add_part(f, g->at, &(part){g->stored, g->decoded, g->check}))
                    return false;
            }
            at = sections[k++].last;
        } else if (!follow_parts(s, f, finder, &at, k < count ? sections[k].first : size)) {
            return false;
        }
    }
    return true;
}

/* Follows the headers from the beginning to the end of the file, in all sections at once. No
 * sections are right, too. */
static bool find_parts(scanner *s, iron__frames *f, const part_finder *finder) {
    uint64_t size = s->in->bytes, most = iron__min(iron__cpu_threads(), SECTIONS_MAX);
    size_t count = (size_t)iron__min(size / SECTION_BYTES_MIN, most);
    section *sections = count < 2 || s->in->remote ? NULL : malloc(count * sizeof *sections);
    iron__thread_pool *pool;
    bool is_good;

    if (!sections || iron__thread_pool_create((uint32_t)count, iron__allocator_default(), &pool,
                                              NULL) != IRON_OK)
        count = 0;
    for (size_t k = 0; k < count; k++)
        sections[k] = (section){
            .finder = finder,
            .scanner = {.in = s->in},
            .begin = size / count * k,
            .end = k + 1 < count ? size / count * (k + 1) : size,
            .first = UINT64_MAX,
            .found = {.codec = f->codec},
        };
    if (count > 0) {
        iron__thread_pool_run(pool, follow_section, sections, count);
        iron__thread_pool_destroy(pool);
    }
    is_good = join_sections(s, f, finder, sections, count);
    for (size_t k = 0; k < count; k++)
        free(sections[k].found.groups);
    free(sections);
    return is_good;
}

/* xz: the index at the end of a stream lists its blocks. */

typedef struct xz_stream {
    uint64_t start, index_at, index_bytes;
    uint8_t check;
} xz_stream;

/* The header of a stream: six bytes of magic, two of flags, a checksum. */
static void make_xz_header(uint8_t check, unsigned char header[XZ_HEADER_BYTES]) {
    static const unsigned char magic[6] = {0xFD, '7', 'z', 'X', 'Z', 0};
    uint32_t crc;

    memcpy(header, magic, sizeof magic);
    header[6] = 0;
    header[7] = check;
    crc = iron__crc32(header + 6, 2);
    for (unsigned k = 0; k < 4; k++)
        header[8 + k] = (unsigned char)(crc >> 8 * k);
}

/* Takes a number of 7 bits a byte from an index; false: it is not one. */
static bool take_number(const unsigned char **at, const unsigned char *end, uint64_t *value) {
    *value = 0;
    for (unsigned k = 0; k < 9 && *at < end; k++) {
        unsigned char byte = *(*at)++;

        *value |= (uint64_t)(byte & 0x7F) << 7 * k;
        if (!(byte & 0x80))
            return byte != 0 || k == 0;
    }
    return false;
}

/* Adds the blocks of a stream whose index is here, and finds where the stream begins. With `f` NULL
 * only the latter. */
static bool read_xz_index(iron__frames *f, xz_stream *stream, const unsigned char *index) {
    const unsigned char *at = index + 1, *end = index + stream->index_bytes - 4;
    uint64_t count, total = 0, room = stream->index_at;

    if (index[0] != 0 || iron__crc32(index, stream->index_bytes - 4) != iron__load_u32(end) ||
        !take_number(&at, end, &count) || count > (uint64_t)(end - at) / 2)
        return false;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t unpadded;
        part p = {.check = stream->check};

        if (!take_number(&at, end, &unpadded) || !take_number(&at, end, &p.decoded) ||
            unpadded > 2 * PART_BYTES_MAX || p.decoded > PART_BYTES_MAX)
            return false;
        p.stored = (unpadded + 3) / 4 * 4;
        if (p.stored > room - total)
            return false;
        if (f && !add_part(f, stream->start + XZ_HEADER_BYTES + total, &p))
            return false;
        total += p.stored;
    }
    if (total + XZ_HEADER_BYTES > stream->index_at)
        return false;
    stream->start = stream->index_at - total - XZ_HEADER_BYTES;
    return true;
}

/* Reads a stream's index and passes it on. */
static bool load_xz_index(scanner *s, iron__frames *f, xz_stream *stream) {
    unsigned char *index = malloc((size_t)stream->index_bytes);
    bool is_good;

    if (!index)
        return false;
    s->status =
        iron__input_read_at(s->in, stream->index_at, index, (size_t)stream->index_bytes, s->err);
    is_good = s->status == IRON_OK && read_xz_index(f, stream, index);
    free(index);
    return is_good;
}

/* Finds the stream that ends at `end`. */
static bool find_xz_stream(scanner *s, uint64_t end, xz_stream *stream) {
    const unsigned char *footer, *start;
    unsigned char header[XZ_HEADER_BYTES];

    for (unsigned k = 0; k < XZ_PADDING_MAX && end >= 4 && look_number(s, end - 4, 4) == 0; k++)
        end -= 4;
    footer = end < 2 * XZ_HEADER_BYTES ? NULL : look(s, end - XZ_HEADER_BYTES, XZ_HEADER_BYTES);
    if (!footer || footer[10] != 'Y' || footer[11] != 'Z' || footer[8] != 0 || footer[9] > 15 ||
        iron__crc32(footer + 4, 6) != iron__load_u32(footer))
        return false;
    stream->check = footer[9];
    stream->index_bytes = ((uint64_t)iron__load_u32(footer + 4) + 1) * 4;
    if (stream->index_bytes < 8 || stream->index_bytes > XZ_INDEX_BYTES_MAX ||
        stream->index_bytes > end - 2 * XZ_HEADER_BYTES)
        return false;
    stream->index_at = end - XZ_HEADER_BYTES - stream->index_bytes;
    if (!load_xz_index(s, NULL, stream))
        return false;
    make_xz_header(stream->check, header);
    start = look(s, stream->start, XZ_HEADER_BYTES);
    return start && memcmp(start, header, sizeof header) == 0;
}

/* The streams are found from the end of the file on, and added in their order. */
static bool find_xz_blocks(scanner *s, iron__frames *f) {
    xz_stream *streams = NULL, found = {.start = 0};
    size_t count = 0, capacity = 0;
    bool is_good = true;

    for (uint64_t end = s->in->bytes; end > 0 && is_good; end = found.start) {
        is_good = count < XZ_STREAMS_MAX && find_xz_stream(s, end, &found) &&
                  IRON_ARRAY_GROW(&streams, count, &capacity);
        if (is_good)
            streams[count++] = found;
    }
    while (is_good && count > 0)
        is_good = load_xz_index(s, f, &streams[--count]);
    free(streams);
    return is_good;
}

/* Replay: reading at any position of a file that can only be decompressed in order. It is
 * decompressed once to find its length, and again as it is read, in blocks of GROUP_BYTES: reading
 * in order, in two or three places at a time, costs nothing more; going back starts from the
 * beginning.
 *
 * Threads that read a file in order ask for its blocks almost in order: a block may be wanted
 * shortly after one that follows it. So the last blocks are kept. Tables are read in more than one
 * place at a time, where rows begin and where their values are: so there are several decompressions
 * of the same file, and the one that is nearest before a block goes on to it. Only a request for a
 * block that all of them have passed starts one again. */

/* Each may hold a dictionary of up to 128 MiB. */
#define CURSORS 3u

/* A decompression of the file, up to some block. */
typedef struct cursor {
    iron__input in; /* open, unless in.path is NULL */
    uint64_t next;  /* block that it comes to next */
    uint64_t last_use;
} cursor;

typedef struct kept_block {
    unsigned char *data; /* allocated when it is needed */
    uint64_t index;
    bool is_there;
} kept_block;

typedef struct replay {
    pthread_mutex_t mutex;
    uint64_t clock;
    cursor cursors[CURSORS];
    size_t kept_count; /* block k is kept in kept[k % kept_count] */
    kept_block kept[];
} replay;

static void stop_cursor(cursor *c) {
    if (c->in.path)
        iron__input_close(&c->in);
    c->in.path = NULL;
}

static iron_status start_cursor(const iron__frames *f, cursor *c, iron_error *err) {
    stop_cursor(c);
    c->in = (iron__input){.path = f->path, .bytes = f->stored, .fd = -1};
    c->next = 0;
    IRON_TRY(iron__input_open(&c->in, err));
    return iron__input_decompress(&c->in, f->codec, err);
}

/* Decompresses all of the file, to count its bytes. */
static iron_status start_replay(iron__frames *f, const atomic_bool *stop, iron_error *err) {
    size_t kept = 4 * (size_t)iron__cpu_threads() + 4, got = GROUP_BYTES;
    cursor all = {.next = 0};
    unsigned char *buffer;
    iron_status status;

    f->replay = calloc(1, sizeof *f->replay + kept * sizeof f->replay->kept[0]);
    if (!f->replay)
        return iron__no_memory(err, f->path);
    pthread_mutex_init(&f->replay->mutex, NULL);
    f->replay->kept_count = kept;
    IRON_TRY(IRON_NEW(&buffer, GROUP_BYTES, f->path, err));
    status = start_cursor(f, &all, err);
    all.in.stop = stop;
    while (status == IRON_OK && got == GROUP_BYTES) {
        status = iron__input_read(&all.in, buffer, GROUP_BYTES, &got, err);
        f->bytes += got;
    }
    f->count = (size_t)((f->bytes + GROUP_BYTES - 1) / GROUP_BYTES);
    free(buffer);
    stop_cursor(&all);
    return status;
}

static void stop_replay(replay *r) {
    if (!r)
        return;
    for (size_t k = 0; k < CURSORS; k++)
        stop_cursor(&r->cursors[k]);
    for (size_t k = 0; k < r->kept_count; k++)
        free(r->kept[k].data);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

/* The last block may be shorter than the others. */
static size_t replayed_bytes(const iron__frames *f, uint64_t index) {
    uint64_t left = f->bytes - index * GROUP_BYTES;

    return (size_t)(left < GROUP_BYTES ? left : GROUP_BYTES);
}

/* Decompresses the cursor's next block, which is then kept. */
static iron_status advance(const iron__frames *f, cursor *c, const atomic_bool *stop,
                           iron_error *err) {
    kept_block *kept = &f->replay->kept[c->next % f->replay->kept_count];
    size_t want = replayed_bytes(f, c->next), got;

    if (!kept->data)
        kept->data = malloc(GROUP_BYTES);
    if (!kept->data)
        return iron__no_memory(err, f->path);
    kept->is_there = false;
    c->in.stop = stop;
    IRON_TRY(iron__input_read(&c->in, kept->data, want, &got, err));
    IRON_FAIL_IF(got < want, err, IRON_E_IO, "%.120s changed while being read", f->path);
    kept->index = c->next++;
    kept->is_there = true;
    return IRON_OK;
}

/* The cursor to reach a block with: the nearest before it, or the one that was not used for
 * longest, from the beginning. */
static iron_status choose_cursor(const iron__frames *f, uint64_t index, cursor **out,
                                 iron_error *err) {
    cursor *nearest = NULL, *oldest = f->replay->cursors;

    for (cursor *c = f->replay->cursors; c < f->replay->cursors + CURSORS; c++) {
        if (c->in.path && c->next <= index && (!nearest || c->next > nearest->next))
            nearest = c;
        if (!c->in.path || c->last_use < oldest->last_use)
            oldest = c;
    }
    *out = nearest ? nearest : oldest;
    return nearest ? IRON_OK : start_cursor(f, oldest, err);
}

/* With the mutex held: makes sure that the block is kept. */
static iron_status keep_block(const iron__frames *f, uint64_t index, const atomic_bool *stop,
                              iron_error *err) {
    const kept_block *kept = &f->replay->kept[index % f->replay->kept_count];
    cursor *c;
    iron_status status;

    if (kept->is_there && kept->index == index)
        return IRON_OK;
    status = choose_cursor(f, index, &c, err);
    while (status == IRON_OK && c->next <= index)
        status = advance(f, c, stop, err);
    c->last_use = ++f->replay->clock;
    if (status != IRON_OK) /* a failed decompression cannot go on */
        stop_cursor(c);
    return status;
}

static iron_status create(const iron__input *in, iron__codec codec, iron__frames **out,
                          iron_error *err) {
    IRON_TRY(IRON_NEW(out, 1, iron__path_shown(in->path), err));
    (*out)->codec = codec;
    (*out)->stored = in->bytes;
    (*out)->path = strdup(in->path);
    return (*out)->path ? IRON_OK : iron__no_memory(err, iron__path_shown(in->path));
}

iron_status iron__frames_open(const iron__input *in, iron__codec codec, iron__frames **out,
                              iron_error *err) {
    static const part_finder finders[IRON_CODEC_COUNT] = {
        [IRON_CODEC_ZSTD] = {{0x28, 0xB5, 0x2F, 0xFD}, find_zstd_frame},
        [IRON_CODEC_LZ4] = {{0x04, 0x22, 0x4D, 0x18}, find_lz4_frame},
        [IRON_CODEC_GZIP] = {{0x1F, 0x8B, 8, 4}, find_bgzf_member},
    };
    scanner s = {.in = in, .err = err};
    bool is_good = false;
    iron__frames *f = NULL;

    *out = NULL;
    if (iron__input_is_pipe(in) || in->is_stream ||
        (in->remote && codec != IRON_CODEC_XZ && in->bytes > REMOTE_BYTES_MAX))
        return IRON_OK;
    IRON_TRY(iron__codec_load(codec, iron__path_shown(in->path), err));
    s.status = create(in, codec, &f, err);
    if (s.status == IRON_OK && codec == IRON_CODEC_XZ)
        is_good = find_xz_blocks(&s, f);
    else if (s.status == IRON_OK && finders[codec].find)
        is_good = find_parts(&s, f, &finders[codec]);
    if (is_good && f->count > 0)
        *out = f;
    else
        iron__frames_close(f);
    return s.status;
}

iron_status iron__frames_open_any(const iron__input *in, iron__codec codec, iron__frames **out,
                                  iron_error *err) {
    iron_status status;

    IRON_TRY(iron__frames_open(in, codec, out, err));
    if (*out)
        return IRON_OK;
    status = create(in, codec, out, err);
    if (status == IRON_OK)
        status = start_replay(*out, in->stop, err);
    if (status != IRON_OK) {
        iron__frames_close(*out);
        *out = NULL;
    }
    return status;
}

void iron__frames_close(iron__frames *frames) {
    if (!frames)
        return;
    iron__blocks_destroy(frames->cache);
    stop_replay(frames->replay);
    free(frames->path);
    free(frames->groups);
    free(frames);
}

uint64_t iron__frames_bytes(const iron__frames *frames) { return frames->bytes; }

uint64_t iron__frames_block_count(const iron__frames *frames) { return frames->count; }

uint64_t iron__frames_block_bytes(const iron__frames *frames, uint64_t index) {
    return frames->replay ? GROUP_BYTES : frames->groups[index].decoded;
}

/* A block of xz is decompressed behind a header made for it. No index follows: that it ends where
 * it should is checked here, its check by the library. */
static iron_status decode_xz(const group *g, const char *name, const unsigned char *stored,
                             unsigned char *to, iron_error *err) {
    unsigned char header[XZ_HEADER_BYTES], more;
    iron__codec_buffers b = {header, sizeof header, &more, 1};
    iron__decompression *d;
    iron_status status;

    make_xz_header(g->check, header);
    IRON_TRY(iron__decompression_create(IRON_CODEC_XZ, name, &d, err));
    status = iron__decompression_run(d, &b, err);
    b = (iron__codec_buffers){stored, (size_t)g->stored, to, g->decoded};
    if (status == IRON_OK)
        status = iron__decompression_run(d, &b, err);
    if (status == IRON_OK && b.room == 0) { /* the check follows the data */
        b.to = &more;
        b.room = 1;
        status = iron__decompression_run(d, &b, err);
        b.room = 1 - b.room;
    }
    if (status == IRON_OK && (b.room > 0 || b.from_count > 0))
        status = iron__fail(
            err, IRON_E_FORMAT, 0,
            "%.130s: the xz block does not have the sizes of the index; it is damaged", name);
    iron__decompression_destroy(d);
    return status;
}

iron_status iron__frames_decode(const iron__frames *frames, const iron__input *in, uint64_t index,
                                iron__block *out, iron_error *err) {
    const group *g;
    unsigned char *stored;
    char name[124]; /* with the bytes that messages are about */

    if (frames->replay) {
        size_t bytes = replayed_bytes(frames, index);
        iron_status status;

        IRON_TRY(iron__block_reserve(out, bytes, err));
        pthread_mutex_lock(&frames->replay->mutex); /* one thread decompresses at a time */
        status = keep_block(frames, index, in->stop, err);
        if (status == IRON_OK) {
            memcpy(out->data, frames->replay->kept[index % frames->replay->kept_count].data, bytes);
            out->bytes = bytes;
        }
        pthread_mutex_unlock(&frames->replay->mutex);
        return status;
    }
    g = &frames->groups[index];
    /* The compressed bytes go behind the room for the others: a block keeps its memory. */
    out->bytes = 0;
    IRON_TRY(iron__block_reserve(out, (size_t)(g->decoded + g->stored), err));
    stored = out->data + g->decoded;
    IRON_TRY(iron__input_read_at(in, g->at, stored, (size_t)g->stored, err));
    snprintf(name, sizeof name, "%.70s, bytes %" PRIu64 " to %" PRIu64, iron__path_shown(in->path),
             g->at, g->at + g->stored - 1);
    if (frames->codec == IRON_CODEC_XZ)
        IRON_TRY(decode_xz(g, name, stored, out->data, err));
    else
        IRON_TRY(iron__codec_decompress(frames->codec, name, stored, (size_t)g->stored, out->data,
                                        g->decoded, err));
    out->bytes = g->decoded;
    return IRON_OK;
}

uint64_t iron__frames_find(const iron__frames *f, uint64_t at, size_t *offset) {
    size_t index;

    *offset = (size_t)(at % GROUP_BYTES);
    if (f->replay)
        return at / GROUP_BYTES;
    index = iron__array_find(&f->groups[0].start, sizeof *f->groups, f->count, at);
    *offset = (size_t)(at - f->groups[index].start);
    return index;
}

iron_status iron__frames_read(const iron__frames *frames, const iron__blocks_range *blocks,
                              uint64_t at, void *to, size_t want, const atomic_bool *stop,
                              iron_error *err) {
    unsigned char *next = to;

    IRON_FAIL_IF(at > frames->bytes || want > frames->bytes - at, err, IRON_E_ARG,
                 "decompressed bytes %" PRIu64 " + %zu are past the end, %" PRIu64, at, want,
                 frames->bytes);
    while (want > 0) {
        size_t skip, some;
        uint64_t k = iron__frames_find(frames, at, &skip);
        const iron__block *block;

        IRON_TRY(
            iron__blocks_get(blocks->cache, blocks->owner, blocks->base + k, &block, stop, err));
        some = block->bytes - skip < want ? block->bytes - skip : want;
        memcpy(next, block->data + skip, some);
        iron__blocks_put(blocks->cache, block, some);
        next += some;
        at += some;
        want -= some;
    }
    return IRON_OK;
}

static iron_status fill_block(void *context, uint64_t index, iron__block *block,
                              const atomic_bool *stop, iron_error *err) {
    const iron__frames *f = context;
    iron__input in = {.path = f->path, .bytes = f->stored, .stop = stop, .fd = -1};
    iron_status status = iron__input_open(&in, err);

    if (status == IRON_OK)
        status = iron__frames_decode(f, &in, index, block, err);
    iron__input_close(&in);
    return status;
}

static uint64_t block_size(void *context, uint64_t index) {
    return iron__frames_block_bytes(context, index);
}

iron_status iron__frames_add_cache(iron__frames *frames, iron_error *err) {
    frames->owner = (iron__blocks_owner){frames->count, fill_block, block_size, frames};
    return iron__blocks_create(iron__cpu_threads(), &frames->cache, err);
}

iron_status iron__frames_read_at(const iron__frames *frames, uint64_t at, void *to, size_t want,
                                 const atomic_bool *stop, iron_error *err) {
    iron__blocks_range blocks = {frames->cache, &frames->owner, 0};

    return iron__frames_read(frames, &blocks, at, to, want, stop, err);
}
