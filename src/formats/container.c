/* SPDX-License-Identifier: MIT */
/*
 * container.c: files that are not tokens: archives, compressed files, datasets, images, programs
 * and text. They are recognised by content, so that they are refused by name and their bytes are
 * not read as tokens by accident.
 *
 * A raw token file has no structure of its own, so any bytes can be tokens. The tests below must
 * therefore be far more specific than those of file(1): two or four magic bytes can be the first
 * one or two tokens of a file. Every test looks at 40 bits or more, and at the rest of the header
 * where the magic is made of common token ids. For 16-bit ids with the frequencies of words the
 * likeliest false matches have probabilities of 3e-10 (gzip: the header and a fixed block) and
 * about 1e-11 (zip: "PK", 3, 4, then a version, a method and a name; pickle: 8 opcodes and '.').
 * In ids of 32 bits every fourth byte is zero, which few magics allow.
 *
 * To recognise another container, write its test and add a row to the table.
 */
#include "formats/format.h"

#include <string.h>

/* The beginning of a file; reads elsewhere in it are rare and go through far_bytes. */
typedef struct start {
    const iron__candidate *c;
    const unsigned char *at;
    size_t count;
    uint64_t bytes; /* of the file; IRON_COUNT_UNKNOWN: a pipe */
} start;

static bool has(const start *s, size_t offset, const char *magic, size_t length) {
    return s->count >= offset + length && memcmp(s->at + offset, magic, length) == 0;
}

/* The magic is a string literal, which may contain zeros. */
#define HAS(s, offset, magic) has((s), (offset), (magic), sizeof(magic) - 1)

/* Reads bytes of a regular file; false if there are not so many, and for a pipe. */
static bool far_bytes(const start *s, uint64_t offset, unsigned char *to, size_t count) {
    return s->bytes != IRON_COUNT_UNKNOWN && offset <= s->bytes && s->bytes - offset >= count &&
           iron__input_read_at(s->c->file, offset, to, count, NULL) == IRON_OK;
}

static bool is_printable(const unsigned char *at, size_t count) {
    for (size_t k = 0; k < count; k++)
        if (at[k] < 0x20 || at[k] > 0x7E)
            return false;
    return true;
}

/* Compressed files. */

#define LZ4_LEGACY           "\x02\x21\x4C\x18"
#define LZ4_LEGACY_BLOCK_MAX 8421520u /* what 8 MiB can be at most when compressed */

/* Whether a deflate stream (RFC 1951) can begin at `at`: a stored block repeats its length
 * inverted, and the lengths of a dynamic block's first code fill the code space exactly. */
static bool is_deflate(const start *s, size_t at) {
    static const unsigned char first[8] = {0, 64, 32, 16, 8, 4, 2, 1}; /* 128ths, by length */
    uint64_t bits;
    unsigned space = 0;

    if (s->count < at + 10)
        return s->count < IRON_HEAD_BYTES;
    bits = iron__load_u64(s->at + at);
    switch (bits >> 1 & 3) {
    case 0:
        return (s->at[at + 1] ^ s->at[at + 3]) == 0xFF && (s->at[at + 2] ^ s->at[at + 4]) == 0xFF;
    case 1:
        return true;
    case 2:
        if ((bits >> 3 & 31) > 29 || (bits >> 8 & 31) > 29)
            return false;
        for (unsigned k = 0; k < (bits >> 13 & 15) + 4; k++) {
            unsigned bit = 17 + 3 * k;
            unsigned pair = s->at[at + bit / 8] | (unsigned)s->at[at + bit / 8 + 1] << 8;

            space += first[pair >> bit % 8 & 7];
        }
        return space == 128;
    default:
        return false;
    }
}

/* RFC 1952: method 8, three reserved flags, and the two bytes that gzip writers fill with few
 * values: the level and the operating system. Then a file name, or the data. */
static bool is_gzip(const start *s) {
    size_t at = 10, end;

    if (s->count < 18 || !HAS(s, 0, "\x1F\x8B\x08") || (s->at[3] & 0xE0) != 0 ||
        (s->at[8] != 0 && s->at[8] != 2 && s->at[8] != 4) || (s->at[9] > 13 && s->at[9] != 255))
        return false;
    if (s->at[3] & 4) /* extra fields, with their length */
        at += 2 + (s->at[10] | (size_t)s->at[11] << 8);
    for (end = at; end < s->count && s->at[end] >= 0x20; end++)
        ;
    if (s->at[3] & 8)
        return end > at && end < s->count && s->at[end] == 0;
    return (s->at[3] & 0x12) != 0 || is_deflate(s, at);
}

/* Files of zstd and lz4 may begin with frames that are skipped: pzstd writes one before each frame.
 * Reads the beginning of the first other frame. */
static bool read_frame(const start *s, unsigned char frame[8]) {
    uint64_t at = 0;

    for (unsigned k = 0; k < 16; k++) {
        if (at + 8 <= s->count)
            memcpy(frame, s->at + at, 8);
        else if (!far_bytes(s, at, frame, 8))
            return false;
        if (iron__load_u32(frame) >> 4 != 0x184D2A5)
            return true;
        at += 8 + (uint64_t)iron__load_u32(frame + 4);
    }
    return false;
}

static bool is_zstd(const start *s) {
    unsigned char frame[8];

    return read_frame(s, frame) && memcmp(frame, "\x28\xB5\x2F\xFD", 4) == 0 && (frame[4] & 8) == 0;
}

/* Version 1 and no reserved bits in the two bytes after the magic. */
static bool is_lz4(const start *s) {
    unsigned char frame[8];

    return read_frame(s, frame) && memcmp(frame, "\x04\x22\x4D\x18", 4) == 0 &&
           (frame[4] & 0xC2) == 0x40 && (frame[5] & 0x8F) == 0 && frame[5] >= 0x40;
}

/* Frames of lz4 -l, as in Linux images: blocks of at most 8 MiB, each after its compressed size, up
 * to the end of the file. The first one begins with a literal. */
static bool is_lz4_legacy(const start *s) {
    unsigned char size[4];
    uint64_t at = 4;

    if (!HAS(s, 0, LZ4_LEGACY) || s->count < 10 || s->at[8] >> 4 == 0)
        return false;
    memcpy(size, s->at + 4, sizeof size);
    for (unsigned k = 0; k < 16; k++) {
        uint32_t bytes = iron__load_u32(size);

        if (k > 0 && memcmp(size, LZ4_LEGACY, sizeof size) == 0)
            return true;
        if (bytes < 2 || bytes > LZ4_LEGACY_BLOCK_MAX)
            return false;
        at += 4 + (uint64_t)bytes;
        if (at + 4 <= s->count)
            memcpy(size, s->at + at, sizeof size);
        else if (!far_bytes(s, at, size, sizeof size))
            return at <= s->bytes; /* of a pipe, which is UINT64_MAX, always */
    }
    return true;
}

/* Archives. */

static bool is_zip(const start *s) {
    const unsigned char *at = s->at;
    size_t name;

    if (HAS(s, 0, "PK\5\6") && s->count == 22) /* an empty archive */
        return true;
    if (!HAS(s, 0, "PK\3\4") || s->count < 31)
        return false;
    name = at[26] | (size_t)at[27] << 8;
    return at[4] <= 63 && at[5] == 0 && at[8] <= 99 && at[9] == 0 && name > 0 && name < 4096 &&
           at[30] >= 0x20;
}

/* The header's checksum: octal digits at byte 148, over all bytes with blanks in their place. */
static bool is_tar(const start *s) {
    unsigned sum = 8 * ' ', told = 0, digits = 0;

    if (s->count < 512 || s->at[0] == 0)
        return false;
    for (size_t k = 0; k < 512; k++)
        sum += k < 148 || k >= 156 ? s->at[k] : 0;
    for (size_t k = 148; k < 156; k++) {
        if (s->at[k] >= '0' && s->at[k] <= '7') {
            told = 8 * told + s->at[k] - '0';
            digits++;
        } else if (s->at[k] != ' ' && s->at[k] != 0) {
            return false;
        }
    }
    return digits >= 4 && told == sum;
}

/* Datasets and models. */

/* Streams that do not begin with a schema; arrow.c recognises the others. A message has its length,
 * a multiple of 8, and a FlatBuffers table with a small vtable before it; its magic alone can be a
 * single 32-bit token. */
static bool is_arrow(const start *s) {
    uint32_t length, table, back, vtable;

    if (!HAS(s, 0, "\xFF\xFF\xFF\xFF") || s->count < 32)
        return false;
    length = iron__load_u32(s->at + 4);
    table = iron__load_u32(s->at + 8);
    if (length % 8 != 0 || length > 1u << 26 || table < 8 || table >= length ||
        table > s->count - 16)
        return false;
    back = iron__load_u32(s->at + 8 + table);
    if (back < 4 || back > table)
        return false;
    vtable = iron__load_u32(s->at + 8 + table - back); /* its size, then that of the table */
    return (vtable & 0xFFFF) >= 6 && (vtable & 0xFFFF) <= 32 && vtable % 2 == 0 &&
           vtable >> 16 >= 6 && vtable >> 16 <= 64;
}

/* After the magic comes a map, in any order, with the schema. */
static bool is_avro(const start *s) {
    return HAS(s, 0, "Obj\1") && (HAS(s, 6, "avro.") || memmem(s->at, s->count, "avro.schema", 11));
}

/* "ORC" at both ends, the second before a byte with the length of what it ends. */
static bool is_orc(const start *s) {
    unsigned char end[4];

    if (s->bytes == IRON_COUNT_UNKNOWN) /* the end cannot be looked at; words may begin so */
        return HAS(s, 0, "ORC") && s->count >= 16 && !iron__is_text(s->at, s->count);
    return HAS(s, 0, "ORC") && s->bytes >= 16 && far_bytes(s, s->bytes - 4, end, 4) &&
           memcmp(end, "ORC", 3) == 0 && end[3] >= 4;
}

/* The format before Arrow files: its magic, padded to 8 bytes, and once more at the end. */
static bool is_feather(const start *s) {
    unsigned char end[4];

    if (!HAS(s, 0, "FEA1"))
        return false;
    return s->bytes == IRON_COUNT_UNKNOWN ? HAS(s, 4, "\0\0\0\0")
                                          : s->bytes >= 12 && far_bytes(s, s->bytes - 4, end, 4) &&
                                                memcmp(end, "FEA1", 4) == 0;
}

static bool is_hdf5(const start *s) {
    for (size_t at = 0; at + 8 <= s->count; at = at ? 2 * at : 512)
        if (HAS(s, at, "\x89HDF\r\n\x1A\n"))
            return true;
    return false;
}

/* u64 length of a JSON object, then the object. */
static bool is_safetensors(const start *s) {
    uint64_t length = s->count >= 16 ? iron__load_u64(s->at) : 0;
    size_t shown;

    if (length < 2 || length > 100000000 || !HAS(s, 8, "{"))
        return false;
    if (s->bytes != IRON_COUNT_UNKNOWN && length > s->bytes - 8)
        return false;
    shown = length < s->count - 8 ? (size_t)length : s->count - 8;
    return is_printable(s->at + 8, shown < 64 ? shown : 64) &&
           (HAS(s, 8, "{\"") || HAS(s, 8, "{}"));
}

static bool is_gguf(const start *s) {
    return HAS(s, 0, "GGUF") && s->count >= 24 && iron__load_u32(s->at + 4) >= 1 &&
           iron__load_u32(s->at + 4) <= 9 && iron__load_u64(s->at + 8) < 1u << 24 &&
           iron__load_u64(s->at + 16) < 1u << 24;
}

/* A protobuf whose first piece is the unknown token. */
static bool is_sentencepiece(const start *s) {
    return s->count >= 12 && s->at[0] == 0x0A && s->at[2] == 0x0A && s->at[3] < 32 &&
           s->at[3] + 2u <= s->at[1] && s->at[4] == '<' && is_printable(s->at + 4, s->at[3]) &&
           s->at[3] >= 3 && s->at[3] + 4u < s->count && s->at[3 + s->at[3]] == '>';
}

/* The bytes of a pickle opcode's argument: a number, LINE: up to a newline, COUNTED | n: an n-byte
 * length and so many bytes, BAD: no opcode. Of protocols 2 to 5; 'I' and other text opcodes too. */
enum { LINE = 16, COUNTED = 32, BAD = 64 };

static int pickle_argument(unsigned char opcode) {
    static const struct {
        int argument;
        const char *opcodes;
    } rows[] = {{0, "(012NQR]abdelsotu})\x81\x85\x86\x87\x88\x89\x8F\x90\x91\x92\x93\x94\x97\x98"},
                {1, "Kqh\x80\x82"},
                {2, "M\x83"},
                {4, "Jrj\x84"},
                {8, "G\x95"},
                {LINE, "ciILFSVPgp"},
                {COUNTED | 1, "UC\x8A\x8C"},
                {COUNTED | 4, "TXB\x8B"},
                {COUNTED | 8, "\x8D\x8E\x96"}};

    for (size_t k = 0; k < sizeof rows / sizeof rows[0] && opcode; k++)
        if (strchr(rows[k].opcodes, (char)opcode))
            return rows[k].argument;
    return BAD;
}

/* Follows the opcodes: a pickle consists only of valid ones up to '.', the last byte of the file.
 * Long strings are skipped, in a file also beyond its beginning. If there are more than so many
 * bytes of opcodes, and all are valid, the last byte decides. */
static bool is_pickle(const start *s) {
    unsigned char window[512], last = '.';
    const unsigned char *bytes = s->at; /* those from byte `base` on */
    size_t have = s->count, opcodes = 0, windows = 0;
    uint64_t base = 0, at = 2;

    if (HAS(s, 0, "\x80\2\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19")) /* old torch.save */
        return true;
    if (s->count < 4)
        return false;
    if (s->at[0] != 0x80 || s->at[1] < 2 || s->at[1] > 5) {
        if (!iron__path_ends(s->c->file->path, ".pkl"))
            return false;
        at = 0; /* protocol 1 has no header */
    }
    if (at && s->at[2] == 0x95 && s->count > 11 && iron__load_u64(s->at + 3) > s->bytes - 11)
        return false; /* a frame that does not fit */
    while (windows < 8) {
        unsigned char opcode;
        int argument;
        size_t length;

        /* an opcode and its argument's length need at most 9 bytes */
        if (at + 9 > base + have && at < s->bytes && s->bytes != IRON_COUNT_UNKNOWN) {
            base = at;
            have = s->bytes - at < sizeof window ? (size_t)(s->bytes - at) : sizeof window;
            bytes = window;
            windows++;
            if (!far_bytes(s, at, window, have))
                return false;
        }
        if (at >= base + have)
            break;
        opcode = bytes[at++ - base];
        if (opcode == '.') {
            bool is_followed = at + 2 <= base + have && bytes[at - base] == 0x80 &&
                               bytes[at + 1 - base] >= 2 && bytes[at + 1 - base] <= 5;

            if (s->bytes == at)
                return true;
            return opcodes >= 3 && (is_followed || s->bytes == IRON_COUNT_UNKNOWN);
        }
        argument = pickle_argument(opcode);
        length = (size_t)argument & 15;
        if (argument == BAD)
            return false;
        opcodes++;
        if (argument == LINE) {
            /* two lines for a global name, one otherwise */
            for (int lines = opcode == 'c' || opcode == 'i' ? 2 : 1; lines > 0; at++) {
                if (at >= base + have || (bytes[at - base] < 0x20 && bytes[at - base] != '\n'))
                    return false;
                lines -= bytes[at - base] == '\n';
            }
        } else if (argument & COUNTED) {
            uint64_t there = base + have - at;
            uint64_t counted = iron__load(bytes + (at - base), length < there ? length : there);

            if (counted > INT64_MAX || counted > s->bytes - at)
                return false;
            at += length + counted;
        } else {
            at += length;
        }
    }
    if (s->bytes != IRON_COUNT_UNKNOWN && !far_bytes(s, s->bytes - 1, &last, 1))
        return false;
    return last == '.' && (opcodes >= 8 || (opcodes >= 1 && s->bytes == IRON_COUNT_UNKNOWN &&
                                            (s->at[2] == 0x95 || s->at[1] >= 4)));
}

/* Documents and images. */

/* The first segment: JFIF, Exif, or a quantization table. */
static bool is_jpeg(const start *s) {
    return HAS(s, 0, "\xFF\xD8\xFF") && s->count >= 12 &&
           (HAS(s, 6, "JFIF\0") || HAS(s, 6, "Exif\0") ||
            (s->at[3] >= 0xDB && s->at[3] <= 0xFE && s->at[4] < 8));
}

static bool is_bmp(const start *s) {
    uint32_t header;

    if (!HAS(s, 0, "BM") || s->count < 26 || iron__load_u32(s->at + 6) != 0)
        return false;
    header = iron__load_u32(s->at + 14);
    return (header == 12 || header == 40 || header == 108 || header == 124) &&
           iron__load_u32(s->at + 10) >= 14 + header && iron__load_u32(s->at + 10) < 4096;
}

/* The directory that the header points to: up to 1000 entries, sorted by tag; every image has a
 * width, tag 256, and only two kinds of tags come before it. */
static bool is_tiff(const start *s) {
    unsigned char entry[6];
    bool is_big = HAS(s, 0, "MM\0*");
    uint32_t at, count, tag, type;

    if (s->count < 8 || (!is_big && !HAS(s, 0, "II*\0")))
        return false;
    at = is_big ? (uint32_t)s->at[4] << 24 | (uint32_t)s->at[5] << 16 | (uint32_t)s->at[6] << 8 |
                      s->at[7]
                : iron__load_u32(s->at + 4);
    if (at >= 8 && at + 6ull <= s->count)
        memcpy(entry, s->at + at, sizeof entry);
    else if (at < 8 || !far_bytes(s, at, entry, sizeof entry))
        return false;
    count = (uint32_t)(is_big ? entry[0] << 8 | entry[1] : entry[1] << 8 | entry[0]);
    tag = (uint32_t)(is_big ? entry[2] << 8 | entry[3] : entry[3] << 8 | entry[2]);
    type = (uint32_t)(is_big ? entry[4] << 8 | entry[5] : entry[5] << 8 | entry[4]);
    return count >= 1 && count <= 1000 && tag >= 254 && tag <= 256 && type >= 1 && type <= 13;
}

/* Programs. */

static bool is_elf(const start *s) {
    return HAS(s, 0,
               "\x7F"
               "ELF") &&
           s->count >= 16 && (s->at[4] == 1 || s->at[4] == 2) && (s->at[5] == 1 || s->at[5] == 2) &&
           s->at[6] == 1;
}

static bool is_windows_program(const start *s) {
    uint32_t at = HAS(s, 0, "MZ") && s->count >= 64 ? iron__load_u32(s->at + 60) : 0;

    return at >= 4 && at < 4096 && HAS(s, at, "PE\0\0");
}

/* Mach-O of 64 bits, WebAssembly, compiled Python. */
static bool is_other_program(const start *s) {
    return (HAS(s, 0, "\xCF\xFA\xED\xFE") && s->count >= 16 && s->at[12] >= 1 && s->at[12] < 16 &&
            s->at[13] == 0) ||
           HAS(s, 0, "\0asm\1\0\0\0") ||
           (HAS(s, 2, "\r\n") && s->count >= 21 && s->at[1] >= 12 && s->at[1] <= 14 &&
            iron__load_u32(s->at + 4) <= 3 && (s->at[16] & 0x7F) == 'c' &&
            iron__load_u32(s->at + 17) == 0);
}

/* Text. */

/* A sample may begin and end inside a character. */
bool iron__is_text(const unsigned char *data, size_t count) {
    size_t bad = 0;

    for (size_t k = 0; k < count && bad * 1000 <= count;) {
        unsigned char c = data[k];
        size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : 3;
        size_t found = 0;

        if ((c < 0x20 && !strchr("\t\n\f\r\033", c)) || c == 0 || c == 0x7F)
            bad++;
        else if ((c >= 0x80 && c < 0xC2) || c >= 0xF5)
            bad++, more = 0;
        while (found < more && k + 1 + found < count && (data[k + 1 + found] & 0xC0) == 0x80)
            found++;
        bad += found < more && k + 1 + found < count;
        k += 1 + found;
    }
    return bad * 1000 <= count;
}

static const char *const text_names[] = {
    ".txt", ".json", ".jsonl", ".ndjson", ".csv",  ".tsv",  ".md",  ".rst", ".py",
    ".sh",  ".yaml", ".yml",   ".toml",   ".ini",  ".cfg",  ".log", ".xml", ".html",
    ".c",   ".h",    ".js",    ".ipynb",  ".lock", ".conf", ".tex", NULL,
};

static const char *const other_names[] = {
    ".pkl", ".pickle", ".model", ".pyc", ".crc", ".md5", ".sha256",
    ".npz", ".zip",    ".bz2",   ".tar", ".tgz", NULL,
};

static bool ends_in(const char *path, const char *const *suffixes) {
    for (; *suffixes; suffixes++)
        if (iron__path_ends(path, *suffixes))
            return true;
    return false;
}

/* UTF-8. 48 bytes of it are 24 tokens of 16 bits, which all consist of two such bytes with a
 * probability of less than 1e-13 for any usual vocabulary; fewer are text if a newline or the name
 * says so too. One repeated token can be two characters, hence the number of different bytes. */
static bool is_text(const start *s) {
    bool seen[256] = {false};
    unsigned different = 0;

    if (s->count == 0 || !iron__is_text(s->at, s->count))
        return false;
    if (ends_in(s->c->file->path, text_names))
        return true;
    for (size_t k = 0; k < s->count; k++) {
        different += !seen[s->at[k]];
        seen[s->at[k]] = true;
    }
    return different >= 8 && (s->count >= 48 || (s->count >= 16 && s->at[s->count - 1] == '\n'));
}

/* UTF-16 with a byte order mark: Latin characters have a zero in every second byte. */
static bool is_utf16(const start *s) {
    size_t zero = s->count >= 32 && HAS(s, 0, "\xFF\xFE") ? 1 : 0, latin = 0;

    if (s->count < 32 || (!HAS(s, 0, "\xFF\xFE") && !HAS(s, 0, "\xFE\xFF")))
        return false;
    for (size_t k = 2; k + 1 < 32; k += 2)
        latin += s->at[k + zero] == 0 && is_printable(s->at + k + 1 - zero, 1);
    return latin >= 12;
}

#define UNPACK     "decompress it first"
#define EXTRACT    "extract it first"
#define OTHER      "name a token file"
#define SAVE       "save its tokens as .npy or raw"
#define CONVERT    "convert its tokens to .npy or raw"
#define REWRITE    "convert it to Parquet or Arrow"
#define RIFF(kind) RANGE("RIFF\0\0\0\0" kind, "RIFF\xFF\xFF\xFF\xFF" kind)
#define FF8        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
#define PI         "\x31\x41\x59\x26\x53\x59" /* bzip2 begins its blocks and its end with these */
#define ROOT_PI    "\x17\x72\x45\x38\x50\x90"
#define LMDB       "\xDE\xC0\xEF\xBE\1\0\0\0"

/* Bytes from least to most. */
#define RANGE(least, most) .magic = (least), .magic_most = (most), .length = sizeof(least) - 1
#define MAGIC(at, text)                                                                            \
    .offset = (at), .magic = (text), .magic_most = (text), .length = sizeof(text) - 1

static const struct container {
    iron__container shown;
    bool (*is)(const start *s); /* NULL: it has this magic */
    size_t offset;
    const char *magic, *magic_most;
    size_t length;
} containers[] = {
    {{"gzip", "a gzip file", UNPACK, IRON_CODEC_GZIP}, .is = is_gzip},
    {{"bzip2", "a bzip2 file", UNPACK, IRON_CODEC_NONE}, RANGE("BZh1" PI, "BZh9" PI)},
    {{"bzip2", "a bzip2 file", UNPACK, IRON_CODEC_NONE}, RANGE("BZh1" ROOT_PI, "BZh9" ROOT_PI)},
    {{"xz", "an xz file", UNPACK, IRON_CODEC_XZ}, MAGIC(0, "\xFD\x37zXZ\0")},
    {{"lzma", "an lzma file", UNPACK, IRON_CODEC_NONE},
     RANGE("\x5D\0\0\0\0" FF8, "\x5D\0\0\xFF\xFF" FF8)},
    {{"zstd", "a zstd file", UNPACK, IRON_CODEC_ZSTD}, .is = is_zstd},
    {{"lz4", "an lz4 file", UNPACK, IRON_CODEC_LZ4}, .is = is_lz4},
    {{"lz4-legacy", "an lz4 file of the legacy format (lz4 -l)", UNPACK, IRON_CODEC_NONE},
     .is = is_lz4_legacy},
    {{"zip", "a zip archive (as .npz and .pt files are)", EXTRACT, IRON_CODEC_NONE}, .is = is_zip},
    {{"archive", "an archive", EXTRACT, IRON_CODEC_NONE}, MAGIC(0, "7z\xBC\xAF\x27\x1C")},
    {{"archive", "an archive", EXTRACT, IRON_CODEC_NONE}, MAGIC(0, "Rar!\x1A\x07")},
    {{"tar", "a tar archive", EXTRACT, IRON_CODEC_NONE}, .is = is_tar},
    {{"arrow", "an Arrow file", CONVERT, IRON_CODEC_NONE}, .is = is_arrow},
    {{"feather", "a Feather file of version 1", REWRITE, IRON_CODEC_NONE}, .is = is_feather},
    {{"orc", "an ORC file", REWRITE, IRON_CODEC_NONE}, .is = is_orc},
    {{"avro", "an Avro file", REWRITE, IRON_CODEC_NONE}, .is = is_avro},
    {{"hdf5", "an HDF5 file", CONVERT, IRON_CODEC_NONE}, .is = is_hdf5},
    {{"sqlite", "an SQLite database", CONVERT, IRON_CODEC_NONE}, MAGIC(0, "SQLite format 3\0")},
    {{"lmdb", "an LMDB database", CONVERT, IRON_CODEC_NONE}, MAGIC(16, LMDB)},
    {{"lmdb", "an LMDB database", CONVERT, IRON_CODEC_NONE}, MAGIC(24, LMDB)},
    {{"pickle", "a pickle", SAVE, IRON_CODEC_NONE}, .is = is_pickle},
    {{"safetensors", "a safetensors file", SAVE, IRON_CODEC_NONE}, .is = is_safetensors},
    {{"gguf", "a GGUF model", OTHER, IRON_CODEC_NONE}, .is = is_gguf},
    {{"sentencepiece", "a SentencePiece model", OTHER, IRON_CODEC_NONE}, .is = is_sentencepiece},
    {{"pdf", "a PDF document", OTHER, IRON_CODEC_NONE}, RANGE("%PDF-   ", "%PDF-~~~")},
    {{"png", "a PNG image", OTHER, IRON_CODEC_NONE}, MAGIC(0, "\x89PNG\r\n\x1A\n")},
    {{"jpeg", "a JPEG image", OTHER, IRON_CODEC_NONE}, .is = is_jpeg},
    {{"gif", "a GIF image", OTHER, IRON_CODEC_NONE}, MAGIC(0, "GIF87a")},
    {{"gif", "a GIF image", OTHER, IRON_CODEC_NONE}, MAGIC(0, "GIF89a")},
    {{"riff", "a WebP, WAV or AVI file", OTHER, IRON_CODEC_NONE}, RIFF("WEBP")},
    {{"riff", "a WebP, WAV or AVI file", OTHER, IRON_CODEC_NONE}, RIFF("WAVE")},
    {{"riff", "a WebP, WAV or AVI file", OTHER, IRON_CODEC_NONE}, RIFF("AVI ")},
    {{"bmp", "a BMP image", OTHER, IRON_CODEC_NONE}, .is = is_bmp},
    {{"tiff", "a TIFF image", OTHER, IRON_CODEC_NONE}, .is = is_tiff},
    {{"elf", "an executable or a library", OTHER, IRON_CODEC_NONE}, .is = is_elf},
    {{"pe", "a Windows program", OTHER, IRON_CODEC_NONE}, .is = is_windows_program},
    {{"program", "a compiled program", OTHER, IRON_CODEC_NONE}, .is = is_other_program},
    {{"git-lfs", "a Git LFS pointer", "run git lfs pull", IRON_CODEC_NONE},
     MAGIC(0, "version https://git-lfs.github.com/spec/")},
    {{"utf-16", "UTF-16 text", "tokenize it first", IRON_CODEC_NONE}, .is = is_utf16},
};

static const iron__container text = {"text", "text", "tokenize it first", IRON_CODEC_NONE};

static bool is_magic(const start *s, const struct container *row) {
    size_t k = 0;

    while (k < row->length && row->offset + k < s->count &&
           s->at[row->offset + k] >= (unsigned char)row->magic[k] &&
           s->at[row->offset + k] <= (unsigned char)row->magic_most[k])
        k++;
    return k == row->length;
}

const iron__container *iron__container_find(const iron__candidate *c) {
    start s = {c, c->head, c->head_count, c->file->bytes};

    for (const struct container *k = containers;
         k < containers + sizeof containers / sizeof containers[0]; k++)
        if (k->is ? k->is(&s) : is_magic(&s, k))
            return &k->shown;
    /* the bytes of a text can be tokens, but only if the user says that tokens are bytes */
    return c->dtype != IRON_DTYPE_U8 && is_text(&s) ? &text : NULL;
}

const char *iron__container_by_name(const char *path, iron_dtype dtype) {
    if (ends_in(path, other_names))
        return "judged by its name";
    return dtype != IRON_DTYPE_U8 && ends_in(path, text_names) ? "text, judged by its name" : NULL;
}
