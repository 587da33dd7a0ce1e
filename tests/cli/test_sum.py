# SPDX-License-Identifier: MIT
"""Seals of files: `iron sum`, `iron check`, `iron merge`.

Seals and statistics are compared with the oracle and the golden vectors; the chunks and marks of a
manifest with a model written from docs/manifest.md; lists with the output of sha256sum for the
same names.  Changes must be located, merged parts must equal the manifest of the whole, and errors
must be detected before anything is written.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

from harness import (DTYPE_MAX, DTYPES, TIMEOUT_S, IronTest, load_golden, npy, oracle, pack, parse_json,
                     start)

SUM_KEYS = {"file", "seal", "seal_version", "words", "tokens", "min", "max", "out_of_vocab",
            "vocab", "first_out_of_vocab", "seconds", "gb_per_s"}
U32, U64 = 2**32 - 1, 2**64 - 1
CHUNK = 1024


# A model of marks.

MARK_KEYS = [oracle.mix64((j + 1) * oracle.GOLDEN_RATIO_64 & U64) >> 32 for j in range(16)]
CANDIDATE = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F)


def mark_hash(window) -> int:
    total = 0
    for j in range(0, 16, 2):
        total += ((window[j] + MARK_KEYS[j]) & U32) * ((window[j + 1] + MARK_KEYS[j + 1]) & U32)
    return oracle.mix64(total & U64) >> 1


def is_candidate(window) -> bool:
    return (sum(t * k for t, k in zip(window, CANDIDATE)) + 0x165667B1 & U32) >> 25 == 0


def chunk_lines(tokens, size) -> list[str]:
    lines = []
    for first in range(0, len(tokens), size):
        _, t, a, b = oracle.seal_words(tokens[first:first + size])
        windows = [(mark_hash(tokens[k:k + 16]), k - first)
                   for k in range(first, min(first + size, len(tokens) - 15))
                   if is_candidate(tokens[k:k + 16])]
        mark = "{:x} {:x}".format(*min(windows)) if windows else "- -"
        lines.append(f"{t:x} {a:x} {b:x} {mark}")
    return lines


def sample(data: bytes) -> str:
    """FNV-1a of both ends of a file, which distinguishes files of the same name and size."""
    return f"{oracle.fnv1a(data if len(data) <= 8192 else data[:4096] + data[-4096:]):016x}"


class Seals(IronTest):
    def test_golden_seals(self):
        for case in load_golden()["seals"]:
            with self.subTest(name=case["name"]):
                tokens = oracle.golden_tokens(case)
                path = self.write_tokens(case["name"] + ".bin", tokens)
                result = self.succeeds("sum", path, "--dtype", "u32")
                self.assertEqual(result.text, f"{case['seal']}  {path}\n# iron sum --dtype u32\n")
                report, = self.json("sum", path, "--dtype", "u32", "--vocab", case["vocab"])
                self.assertEqual(report["words"], case["words"])

    def test_every_width_gives_the_same_seal(self):
        tokens = oracle.gen(4, 1001, 256)
        for dtype in DTYPES:
            for threads in (1, 3):
                with self.subTest(dtype=dtype, threads=threads):
                    self.write_tokens(f"t.{dtype}", tokens, dtype)
                    line = self.succeeds("sum", f"t.{dtype}", "--dtype", dtype, "--threads",
                                         threads).text
                    self.assertEqual(line, f"{oracle.seal(tokens)}  t.{dtype}\n"
                                           f"# iron sum --dtype {dtype}\n")

    def test_statistics(self):
        for dtype, limit in DTYPE_MAX.items():
            for count in (0, 1, 2, 3, 5, 333):
                tokens = [t % (limit + 1) for t in oracle.gen(count, count, 2**32)]
                self.write_tokens("t", tokens, dtype)
                for vocab in (1, 100, 50257, 2**32):
                    with self.subTest(dtype=dtype, count=count, vocab=vocab):
                        self.assert_report(tokens, vocab, self.json("sum", "t", "--dtype", dtype,
                                                                    "--vocab", vocab)[0])

    def assert_report(self, tokens, vocab, report):
        self.assertEqual(set(report), SUM_KEYS)
        self.assertEqual(report["file"], "t")
        self.assertEqual(report["seal"], oracle.seal(tokens))
        self.assertEqual(report["seal_version"], 1)
        self.assertEqual(report["words"], [str(w) for w in oracle.seal_words(tokens)])
        self.assertEqual(report["tokens"], len(tokens))
        self.assertEqual(report["min"], min(tokens, default=None))
        self.assertEqual(report["max"], max(tokens, default=None))
        self.assertEqual(report["vocab"], vocab)
        out = [{"position": k, "value": t} for k, t in enumerate(tokens) if t >= vocab]
        self.assertEqual(report["out_of_vocab"], len(out))
        self.assertEqual(report["first_out_of_vocab"], out[0] if out else None)

    def test_standard_input(self):
        tokens = oracle.gen(6, 2001, 50257)
        for stdin in (pack(tokens, "u16"), self.write_tokens("t", tokens, "u16").open("rb")):
            result = self.succeeds("sum", "-", "--dtype", "u16", stdin=stdin)
            self.assertEqual(result.text, f"{oracle.seal(tokens)}  -\n")
        stdin.close()

    def test_long_stream_from_a_file_and_a_pipe(self):
        # several pieces and slots, compared with the engine's seal, which is computed differently
        self.succeeds("gen", "--seed", 8, "--count", 5_000_001, "--limit", 50257, "--dtype", "u16",
                      "-o", "long")
        seal = self.feed("long", "--dtype", "u16", "--seal")["seal"]
        for threads in (1, 2, 5):
            line = self.succeeds("sum", "long", "--dtype", "u16", "--threads", threads).text
            self.assertEqual(line, f"{seal}  long\n# iron sum --dtype u16\n")
        with open(self.dir / "long", "rb") as data:
            piped = self.succeeds("sum", "-", "--dtype", "u16", stdin=data.read())
        self.assertEqual(piped.text, f"{seal}  -\n")

    def test_other_formats(self):
        tokens = oracle.gen(9, 500, 50257)
        self.write("t.npy", npy(tokens, "<u2", "H"))
        report, = self.json("sum", "t.npy")
        self.assertEqual(report["seal"], oracle.seal(tokens))


class Lists(IronTest):
    def setUp(self):
        super().setUp()
        self.streams = {f"part-{k}.bin": oracle.gen(k, 100 * k + k % 3, 50257)
                        for k in (10, 2, 1)}
        for name, tokens in self.streams.items():
            self.write_tokens(f"corpus/{name}", tokens, "u16")

    def line(self, name):
        return f"{oracle.seal(self.streams[name])}  corpus/{name}\n"

    def sum(self, *args, **kwargs):
        return self.succeeds("sum", *args, "--dtype", "u16", **kwargs)

    def check(self, data, *args, code=0):
        """`iron check` of a list; its lines, and the number of lines on standard error."""
        self.write("list", data if isinstance(data, bytes) else data.encode())
        result = self.iron("check", "list", "--dtype", "u16", *args)
        self.assertEqual(result.code, code, str(result))
        if code == 0:
            self.assertEqual(result.err, b"", str(result))
        return result

    def test_directory_is_listed_in_natural_order(self):
        expected = "".join(self.line(f"part-{k}.bin") for k in (1, 2, 10))
        self.assertEqual(self.sum("corpus").text, expected + "# iron sum --dtype u16\n")
        self.assertEqual([r["file"] for r in self.json("sum", "corpus", "--dtype", "u16")],
                         [f"corpus/part-{k}.bin" for k in (1, 2, 10)])

    def test_stream_is_printed_on_one_line(self):
        together = [t for k in (1, 2, 10) for t in self.streams[f"part-{k}.bin"]]
        self.assertEqual(self.sum("corpus", "--stream").text,
                         f"{oracle.seal(together)}  corpus\n# iron sum --dtype u16\n")
        names = [f"corpus/part-{k}.bin" for k in (1, 2, 10)]
        self.assertEqual(self.sum(*names, "--stream").text,
                         f"{oracle.seal(together)}  {' '.join(names)}\n")
        report, = self.json("sum", "corpus", "--stream", "--dtype", "u16")
        self.assertEqual(report["files"], names)
        self.assertEqual(set(report), SUM_KEYS | {"files"})

    def test_invalid_file_does_not_stop_the_others(self):
        self.write("corpus/part-3.bin", b"odd")
        for extra in ([], ["--json"]):
            result = self.iron("sum", "nothing", "corpus", "--dtype", "u16", *extra)
            self.assertEqual(result.code, 2, str(result))
            lines = result.message.splitlines()
            self.assertEqual(len(lines), 2, str(result))
            self.assertRegex(lines[0], "iron: .*nothing")
            self.assertRegex(lines[1], "iron: .*part-3.bin")
        self.assertEqual([r["file"] for r in parse_json(result.out)],
                         [f"corpus/part-{k}.bin" for k in (1, 2, 10)])

    def test_check_accepts_the_output_of_sum(self):
        printed = self.sum("corpus").text
        expected = "".join(f"corpus/part-{k}.bin: OK\n" for k in (1, 2, 10))
        self.assertEqual(self.check(printed).text, expected)
        self.assertEqual(self.check(printed, "--quiet").text, "")
        self.assertEqual(self.check(printed, "--status").text, "")
        result = self.succeeds("check", "-", "--dtype", "u16", stdin=printed.encode())
        self.assertEqual(result.text, expected)

    def test_variations_accepted_by_sha256sum(self):
        printed = self.sum("corpus").text
        seal, name = printed.splitlines()[0].split("  ")
        for line in (f"{seal} *{name}\n", f"{seal.upper()}  {name}\n", f"{seal}  {name}",
                     f"{seal}  {name}\r\n", f"# a comment\n\n{seal}  {name}\n"):
            with self.subTest(line=line):
                self.assertEqual(self.check(line).text, f"{name}: OK\n")

    def test_check_of_a_directory_as_one_stream(self):
        self.assertEqual(self.check(self.sum("corpus", "--stream").text).text, "corpus: OK\n")
        self.write_tokens("corpus/part-11.bin", [1], "u16")
        self.assertEqual(self.check(self.dir.joinpath("list").read_bytes(), code=1).text,
                         "corpus: FAILED\n")

    def test_changed_missing_and_unreadable(self):
        printed = self.sum("corpus").text
        data = bytearray((self.dir / "corpus/part-2.bin").read_bytes())
        data[100] ^= 1
        self.write("corpus/part-2.bin", bytes(data))
        self.write("corpus/part-10.bin", b"odd")
        (self.dir / "corpus/part-1.bin").unlink()
        expected = ["corpus/part-1.bin: FAILED open or read", "corpus/part-2.bin: FAILED",
                    "corpus/part-10.bin: FAILED open or read"]
        self.assertEqual(self.check(printed, code=1).text.splitlines(), expected)
        self.assertEqual(self.check(printed, "--quiet", code=1).text.splitlines(), expected)
        silent = self.check(printed, "--status", code=1)
        self.assertEqual((silent.out, silent.err), (b"", b""))
        ignoring = self.check(printed, "--ignore-missing", code=1)
        self.assertEqual(ignoring.text.splitlines(), expected[1:])
        found = parse_json(self.check(printed, "--json", code=1).out)
        self.assertEqual([f["status"] for f in found], ["missing", "failed", "error"])
        self.assertEqual([set(f) for f in found],
                         [{"file", "status", "reason", "expected", "found"}] * 3)
        self.assertEqual(found[1]["expected"], printed.splitlines()[1][:32])
        self.assertEqual(found[1]["found"], self.sum("corpus/part-2.bin").text[:32])
        self.assertEqual((found[0]["found"], found[2]["found"]), (None, None))
        self.assertIn("not a whole number", found[2]["reason"])

    def test_list_of_only_missing_files_fails(self):
        printed = self.sum("corpus").text
        shutil.rmtree(self.dir / "corpus")
        self.assertIn("no file was verified", self.check(printed, "--ignore-missing", code=1).message)

    def test_malformed_lines(self):
        good = self.line("part-1.bin")
        for bad in ("x\n", f"{good[:31]}\n", good.replace("  ", " "), good[1:], "g" + good[1:],
                    f"\\{good[:34]}bad\\escape\n", good[:32] + "  \n", good.replace("  ", "\t\t"),
                    f"{good[:34]}{'n' * 20000}\n"):
            with self.subTest(bad=bad[:60]):
                result = self.check(good + bad, code=1)
                self.assertEqual(result.text, "corpus/part-1.bin: OK\n")
                self.assertRegex(result.message, r"\Airon: 1 line is improperly formatted\n\Z")
                self.refused("check", self.write("bad", bad.encode()), "--dtype", "u16")
        self.refused("check", self.write("empty", b""), "--dtype", "u16", says="no line.*iron sum")
        self.refused("check", self.write("binary", bytes(range(256)) * 100), "--dtype", "u16")
        self.refused("check", "nothing", says="nothing")
        self.refused("check", "corpus", says="corpus")

    def test_check_of_raw_files_needs_dtype(self):
        self.write("list", self.sum("corpus").out.partition(b"#")[0])
        result = self.iron("check", "list")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("--dtype", result.message)

    def test_names_are_escaped_as_by_sha256sum(self):
        names = ["plain", "two words", "back\\slash", "new\nline", "\\", "cr\rhere", "a\\nb", " lead",
                 "*star", "umlaut-\u00fc"]
        names = [os.fsencode(name) for name in names] + [b"broken-\xff"]
        for name in names:
            (self.dir / os.fsdecode(name)).write_bytes(pack([1, 2, 3], "u16"))
        for name in names:
            with self.subTest(name=name):
                printed = self.sum(name).out.partition(b"# ")[0]
                theirs = subprocess.run([b"sha256sum", b"--", name], cwd=self.dir, check=True,
                                        stdout=subprocess.PIPE).stdout
                # the same line except for the digits
                self.assertEqual(re.sub(rb"[0-9a-f]{32}", b"", printed, count=1),
                                 re.sub(rb"[0-9a-f]{64}", b"", theirs, count=1))
                escaped = printed[:1] == b"\\"
                self.assertEqual(self.check(printed).out,
                                 (b"\\" if escaped else b"") + printed[34 + escaped:-1] + b": OK\n")

    def test_closed_pipe_prints_no_error(self):
        self.write("list", self.sum("corpus").out * 20000)
        with start("check", "list", "--dtype", "u16", cwd=self.dir, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE) as command:
            command.stdout.readline()
            command.stdout.close()
            self.assertEqual(command.stderr.read(), b"")


class Manifests(IronTest):
    def setUp(self):
        super().setUp()
        self.parts = [oracle.gen(1, 3000, 50257), oracle.gen(2, 1500, 60000), [],
                      oracle.gen(3, 2001, 50257)]
        self.names = [f"data/{k}.bin" for k in range(4)]
        for name, tokens in zip(self.names, self.parts):
            self.write_tokens(name, tokens, "u16")
        self.tokens = [t for part in self.parts for t in part]

    def manifest(self, name="m", *args):
        self.succeeds("sum", *self.names, "--dtype", "u16", "--manifest", name, "--chunk", CHUNK,
                      *args)
        return json.loads((self.dir / name).read_text())

    def check(self, *args, code=0, manifest="m", **kwargs):
        result = self.iron("check", manifest, *args, **kwargs)
        self.assertEqual(result.code, code, str(result))
        return result

    def statuses(self, *args, **kwargs):
        found = parse_json(self.check("--json", *args, **kwargs).out)
        return {f["file"]: f["status"] for f in found}

    def test_contents_of_a_manifest(self):
        m = self.manifest()
        self.assertEqual(m["schema"], "iron.manifest/2")
        self.assertEqual(m["seal"], oracle.seal(self.tokens))
        self.assertEqual(m["words"], [str(w) for w in oracle.seal_words(self.tokens)])
        self.assertEqual((m["seal_version"], m["tokens"], m["first"], m["stream_tokens"]),
                         (1, len(self.tokens), 0, len(self.tokens)))
        self.assertEqual((m["part"], m["parts"], m["vocab"]), (0, 0, 50257))
        first = next(k for k, t in enumerate(self.tokens) if t >= 50257)
        self.assertEqual(m["statistics"], {
            "min": min(self.tokens), "max": max(self.tokens),
            "out_of_vocab": sum(t >= 50257 for t in self.tokens),
            "first_out_of_vocab": {"position": first, "value": self.tokens[first]}})
        place = 0
        for name, part, entry in zip(self.names, self.parts, m["files"], strict=True):
            self.assertEqual(entry, {"path": name, "format": "raw", "dtype": "u16",
                                     "first": place, "tokens": len(part),
                                     "sample": sample(pack(part, "u16")),
                                     "seal": oracle.seal(part)} | (
                {"words": [str(w) for w in oracle.seal_words(part)]} if part else {}))
            place += len(part)
        self.assertEqual(m["chunk_tokens"], CHUNK)
        self.assertEqual(m["chunks"], chunk_lines(self.tokens, CHUNK))

    def test_marks_of_few_values(self):
        # bytes, and runs of one value, with and without marks
        for seed, limit in ((1, 2), (2, 4), (3, 256), (4, 1)):
            tokens = oracle.gen(seed, 5000, limit)
            self.write_tokens("t", tokens, "u8")
            self.succeeds("sum", "t", "--dtype", "u8", "--manifest", "m", "--chunk", CHUNK)
            self.assertEqual(json.loads((self.dir / "m").read_text())["chunks"],
                             chunk_lines(tokens, CHUNK))

    def test_an_empty_stream(self):
        self.write("none", b"")
        self.succeeds("sum", "none", "--dtype", "u16", "--manifest", "m")
        m = json.loads((self.dir / "m").read_text())
        self.assertEqual((m["tokens"], m["chunks"], m["statistics"]["min"]), (0, [], None))
        self.assertEqual(self.check().text, "none: OK\n")

    def test_manifest_does_not_depend_on_threads_or_pipes(self):
        self.manifest("a", "--threads", 1)
        self.manifest("b", "--threads", 7)
        self.assertEqual((self.dir / "a").read_bytes(), (self.dir / "b").read_bytes())
        self.succeeds("sum", "-", "--dtype", "u16", "--manifest", "c", "--chunk", CHUNK,
                      stdin=pack(self.tokens, "u16"))
        a, c = (json.loads((self.dir / name).read_text()) for name in "ac")
        self.assertEqual(a["chunks"], c["chunks"])
        self.assertEqual(self.check(manifest="c", stdin=pack(self.tokens, "u16")).text, "-: OK\n")
        self.check(manifest="c", stdin=pack(self.tokens[:-1], "u16"), code=1)

    def test_unchanged_files_pass(self):
        self.manifest()
        self.assertEqual(self.check().text, "".join(f"{name}: OK\n" for name in self.names))
        self.assertEqual(self.check("--quiet").text, "")
        self.assertEqual(set(self.statuses().values()), {"ok"})
        self.check("--dtype", "u16", "--format", "raw")

    def test_changed_token_is_located(self):
        self.manifest()
        for position in (0, 1023, 1024, 2999, 3000, 4499, 4500, len(self.tokens) - 1):
            with self.subTest(position=position):
                changed = list(self.tokens)
                changed[position] ^= 1
                self.write_parts(changed)
                self.assert_failed(position, position + 1)
        self.write_parts(self.tokens)
        self.check()

    def write_parts(self, tokens):
        place = 0
        for name, part in zip(self.names, self.parts):
            self.write_tokens(name, tokens[place:place + len(part)], "u16")
            place += len(part)

    def assert_failed(self, first, end):
        """The files with changed positions first ... end-1 fail, with the positions of their
        differing chunks if those are not the whole file; the others do not fail."""
        lines = self.check(code=1).text.splitlines()
        chunks = first // CHUNK * CHUNK, -(-end // CHUNK) * CHUNK
        place = 0
        for name, part, line in zip(self.names, self.parts, lines, strict=True):
            stop = place + len(part)
            low, high = max(chunks[0], place), min(chunks[1], stop)
            where = f" (positions {low} to {high - 1} differ)" if high - low < len(part) else ""
            self.assertEqual(line, f"{name}: FAILED{where}" if first < stop and end > place
                             else f"{name}: OK")
            place = stop

    def test_swapped_tokens_and_chunks(self):
        self.manifest()
        swapped = list(self.tokens)
        swapped[1100:1104], swapped[1104:1108] = swapped[1104:1108], swapped[1100:1104]
        self.write_parts(swapped)
        self.assert_failed(CHUNK, 2 * CHUNK)
        swapped = list(self.tokens)
        swapped[:CHUNK], swapped[CHUNK:2 * CHUNK] = swapped[CHUNK:2 * CHUNK], swapped[:CHUNK]
        self.write_parts(swapped)
        self.assert_failed(0, 2 * CHUNK)

    def test_two_ranges(self):
        self.manifest()
        changed = list(self.tokens)
        changed[5] ^= 1
        changed[2500] ^= 1
        self.write_parts(changed)
        self.assertIn("data/0.bin: FAILED (positions 0 to 1023 and 1 more range differ)",
                      self.check(code=1).text)

    def test_other_lengths(self):
        self.manifest()
        self.write_tokens(self.names[1], self.parts[1] + [7], "u16")
        found = parse_json(self.check("--json", code=1).out)
        self.assertEqual(found[1]["status"], "failed")
        self.assertEqual((found[1]["expected"], found[1]["found"]),
                         ("1500 tokens", "1501 tokens"))
        self.assertEqual([f["status"] for f in found], ["ok", "failed", "ok", "ok"])

    def test_missing(self):
        self.manifest()
        (self.dir / self.names[1]).rename(self.dir / "elsewhere")
        self.assertEqual(self.statuses(code=1),
                         dict(zip(self.names, ("ok", "missing", "ok", "ok"))))
        self.assertEqual(self.statuses("--ignore-missing"),
                         {self.names[k]: "ok" for k in (0, 2, 3)})
        changed = list(self.parts[0])
        changed[10] ^= 1
        self.write_tokens(self.names[0], changed, "u16")
        self.assertEqual(self.statuses("--ignore-missing", code=1),
                         {self.names[0]: "failed", self.names[2]: "ok", self.names[3]: "ok"})

    def test_files_beside_the_manifest_are_found(self):
        self.manifest("data.manifest")
        other = self.dir / "other"
        other.mkdir()
        self.check(manifest="../data.manifest", cwd=other)
        (self.dir / "data").rename(other / "data")
        self.check(manifest="data.manifest", code=1)
        self.check(manifest="../data.manifest", cwd=other)

    def test_damaged_i32(self):
        self.write_tokens("i", range(5000), "i32")
        self.succeeds("sum", "i", "--dtype", "i32", "--manifest", "m")
        self.write_tokens("i", [*range(4999), -1], "i32")
        result = self.check(code=1)
        self.assertRegex(result.text, r"i: FAILED \(.*position 4999 is -1")

    def test_contradicting_options(self):
        self.manifest()
        self.refused("check", "m", "--dtype", "u32", says="u32 contradicts")
        self.refused("check", "m", "--format", "npy", says="npy contradicts")

    def test_other_formats(self):
        self.write("t.npy", npy(self.tokens, "<u2", "H"))
        self.succeeds("sum", "t.npy", "--manifest", "m", "--chunk", CHUNK)
        self.assertEqual(json.loads((self.dir / "m").read_text())["files"][0]["format"], "npy")
        self.check()
        self.write("t.npy", npy(self.tokens, "<u2", "H")[:-2])
        self.check(code=1)

    def test_damaged_manifests(self):
        text = json.dumps(self.manifest())
        for bad in (text[:-2], text.replace("manifest/2", "manifest/3"),
                    text.replace('"parts": 0', '"parts": 1'), "{}"):
            with self.subTest(bad=bad[:40] + bad[-20:]):
                self.refused("check", self.write("bad", bad.encode()))
        self.refused("check", self.write("new", text.replace("st/2", "st/9").encode()),
                     says="version 9.*newer")

    def test_manifest_with_a_wrong_seal(self):
        m = self.manifest()
        words = oracle.seal_words(self.tokens)
        m["words"][2] = str(words[2] ^ 1)
        m["seal"] = oracle.seal_text([words[0], words[1], words[2] ^ 1, words[3]])
        self.write("m", json.dumps(m).encode())
        result = self.check(code=1)
        lines = result.text.splitlines()
        self.assertEqual(lines[:-1], [f"{name}: OK" for name in self.names])
        self.assertRegex(lines[-1], r"\Am: FAILED \(the manifest is damaged: .*seal")
        found = parse_json(self.check("--json", code=1).out)[-1]
        self.assertEqual((found["file"], found["status"], found["expected"], found["found"]),
                         ("m", "failed", m["seal"], oracle.seal(self.tokens)))

    def test_manifest_with_wrong_statistics(self):
        m = self.manifest()
        m["statistics"]["min"] += 1
        self.write("m", json.dumps(m).encode())
        self.assertIn("m: FAILED (the manifest is damaged: its statistics",
                      self.check("--quiet", code=1).text)

    def test_lists_and_manifests_through_a_pipe(self):
        os.mkfifo(self.dir / "fifo")
        line = self.succeeds("sum", "data/0.bin", "--dtype", "u16").out
        self.manifest()
        for data, code, says in ((line, 0, "data/0.bin: OK"),
                                 ((self.dir / "m").read_bytes(), 2, "regular file")):
            writer = threading.Thread(target=(self.dir / "fifo").write_bytes, args=(data,))
            writer.start()
            result = self.check("--dtype", "u16", manifest="fifo", code=code)
            writer.join()
            self.assertIn(says, result.text + result.message)

    def test_names_of_any_bytes(self):
        for name in ('quote"\\', "new\nline", b"broken-\xff\xfe"):
            path = os.fsdecode(name)
            (self.dir / path).write_bytes(pack(self.tokens, "u16"))
            self.succeeds("sum", name, "--dtype", "u16", "--manifest", "m")
            self.check()
            (self.dir / path).write_bytes(pack(self.tokens[1:] + [0], "u16"))
            self.check(code=1)


class Parts(IronTest):
    def setUp(self):
        super().setUp()
        self.names = ["a.bin", "b.bin", "c.bin"]
        for name, tokens in zip(self.names, (oracle.gen(1, 2500, 50257), oracle.gen(2, 3, 60000),
                                             oracle.gen(3, 4001, 50257))):
            self.write_tokens(name, tokens, "u16")
        self.options = [*self.names, "--dtype", "u16", "--chunk", CHUNK]

    def part(self, index, count, *extra):
        return self.succeeds("sum", *self.options, "--part", f"{index}/{count}", "-o",
                             f"p{index}-{count}", *extra)

    def test_merged_parts_equal_the_whole(self):
        line = self.succeeds("sum", *self.options, "--manifest", "whole").text
        for count in range(1, 8):
            with self.subTest(count=count):
                for index in range(1, count + 1):
                    self.assertRegex(self.part(index, count).text,
                                     rf"\Apart {index}/{count}: positions \d+ to \d+ of 6504, words")
                order = [f"p{index}-{count}" for index in range(count, 0, -1)]
                merged = self.succeeds("merge", *order, "-o", "merged")
                self.assertEqual(merged.text, line)
                self.assertEqual((self.dir / "merged").read_bytes(),
                                 (self.dir / "whole").read_bytes())
        self.succeeds("check", "merged")
        self.refused("check", "p1-7", says="merge")

    def test_more_parts_than_tokens(self):
        self.options = ["b.bin", "--dtype", "u16"]
        for index in range(1, 4):
            self.part(index, 3)
        self.assertEqual(self.succeeds("merge", "p1-3", "p2-3", "p3-3").text,
                         self.succeeds("sum", "b.bin", "--dtype", "u16").text.partition("#")[0])

    def test_json(self):
        report, = parse_json(self.part(2, 3, "--json").out)
        self.assertEqual((report["part"], report["parts"], report["stream_tokens"]), (2, 3, 6504))
        self.part(1, 3)
        self.part(3, 3)
        merged, = self.json("merge", "p1-3", "p2-3", "p3-3")
        whole, = self.json("sum", *self.names, "--stream", "--dtype", "u16")
        for key in ("seconds", "gb_per_s"):
            del whole[key]
        self.assertEqual(merged, whole)
        self.assertEqual(report["first"] % 4, 0)

    def test_incompatible_parts_are_refused(self):
        for index in (1, 2, 3):
            self.part(index, 3)
        self.part(1, 2)
        self.succeeds("sum", *self.options, "--manifest", "whole")
        self.refused("merge", "p1-3", "p3-3", says="part 2 of 3 is missing")
        self.refused("merge", "p1-3", "p2-3", "p3-3", "p2-3", says="twice")
        self.refused("merge", "p1-3", "p1-2", says="number of parts")
        self.refused("merge", "whole", says="whole")
        self.refused("merge", "p1-3", "nothing", says="nothing")
        self.refused("merge", "a.bin", says="a.bin.*iron sum --part")
        self.refused("merge", says="no parts")
        text = (self.dir / "p2-3").read_text()
        first = json.loads(text)["first"]
        self.write("moved", text.replace(f'"first": {first}', f'"first": {first + 4}', 1).encode())
        self.refused("merge", "p1-3", "moved", "p3-3")
        self.refused("merge", "p1-3", "p2-3", "p3-3", "-o", "p2-3", says="one of the parts")
        self.refused("merge", "p1-3", "p2-3", "p3-3", "-o", "no/such/folder", says="no/such")

    def test_parts_of_another_file_of_the_same_size(self):
        line = self.succeeds("sum", *self.options, "--manifest", "whole").text
        self.part(1, 2)
        tokens = oracle.gen(3, 4001, 50257)
        for place in (0, 2047, 4001 - 2048, 4000):
            changed = list(tokens)
            changed[place] ^= 1
            self.write_tokens("c.bin", changed, "u16")
            self.part(2, 2)
            was, now = (sample(pack(t, "u16")) for t in (tokens, changed))
            self.refused("merge", "p1-2", "p2-2", "-o", "merged",
                         says=f"part 2.*another c.bin: its sample is {now}, not {was}")
        self.write_tokens("c.bin", tokens, "u16")
        self.part(2, 2)
        for name in ("p1-2", "p2-2"):  # as written by an older version
            old = json.loads((self.dir / name).read_text())
            for entry in old["files"]:
                del entry["sample"]
            self.write("old-" + name, json.dumps(old).encode())
        self.assertEqual(self.succeeds("merge", "old-p1-2", "old-p2-2").text, line)
        self.assertEqual(self.succeeds("merge", "old-p1-2", "p2-2", "-o", "mixed").text, line)
        self.succeeds("check", "mixed")
        old["files"][0]["sample"] = "0123456789abcdeX"
        self.write("bad", json.dumps(old).encode())
        self.refused("merge", "p1-2", "bad", says="16 hex digits")

    def test_parts_of_another_stream(self):
        self.part(1, 2)
        for change in (["--vocab", 100], ["--chunk", 2048]):
            self.succeeds("sum", *self.options, "--part", "2/2", "-o", "other", *change)
            self.refused("merge", "p1-2", "other", says="not of one stream")
        self.succeeds("sum", "a.bin", "c.bin", "b.bin", "--dtype", "u16", "--chunk", CHUNK,
                      "--part", "2/2", "-o", "other")
        self.refused("merge", "p1-2", "other", says="list of files")


class Refusals(IronTest):
    def setUp(self):
        super().setUp()
        self.write_tokens("t", range(100), "u16")

    def refused_sum(self, *options, says=()):
        return self.refused("sum", "t", "--dtype", "u16", *options, says=says)

    def test_usage(self):
        self.refused("sum", "t", says="--dtype")
        self.refused("sum", "nothing", "--dtype", "u16", says="nothing")
        self.refused("sum", "t", "--dtype", "i64", says="--dtype")
        self.refused_sum("--frobnicate", says="frobnicate")
        self.refused_sum("--vocab", 0, says="vocab")
        self.refused_sum("--vocab", 2**32 + 1, says="vocab")
        self.refused_sum("--threads", 0, says="threads")
        self.refused_sum("--backend", "gpu", says="gpu")
        self.refused_sum("--format", "parquet", says="parquet")
        self.refused("check", says="standard input has no line")

    def test_parts(self):
        for part in ("", "1", "1/", "/2", "0/2", "3/2", "1/0", "x/2", "1/x", "1/2/3", "-1/2",
                     "1/99999999999", "1 /2"):
            with self.subTest(part=part):
                self.refused_sum(f"--part={part}", "-o", "p", says="part")
        self.refused_sum("--part", "1/2", says="-o")
        self.refused_sum("-o", "p", says="--part")
        self.refused_sum("--part", "1/2", "-o", "p", "--manifest", "m", says="--manifest")
        self.refused("sum", "-", "--dtype", "u16", "--part", "1/2", "-o", "p", says="pipe")

    def test_chunks(self):
        for chunk in (0, 4, 1020, 1026, 2049):
            self.refused_sum("--manifest", "m", "--chunk", chunk, says="multiple of 4")
        self.refused_sum("--chunk", 1024, says="--manifest")

    def test_targets(self):
        self.write("folder/x", b"")
        device = self.device_node("null", 3)
        for option in (["--manifest"], ["--part", "1/1", "-o"]):
            for target in ("t", "folder", "no/such/folder", "-", device):
                with self.subTest(option=option, target=target):
                    self.refused_sum(*option, target)
        os.link(self.dir / "t", self.dir / "again")
        self.refused_sum("--manifest", "again", says="input")

    def test_failed_scan_keeps_the_old_manifest(self):
        self.write("m", b"before")
        self.write_tokens("bad", [1, -1], "i32")
        self.refused("sum", "bad", "--dtype", "i32", "--manifest", "m", says="position 1 is -1")

    def test_interrupt_leaves_no_files(self):
        with start("sum", "-", "--dtype", "u16", "--manifest", "m", cwd=self.dir,
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
            command.stdin.write(bytes(100000))
            command.stdin.flush()
            time.sleep(0.2)
            command.send_signal(signal.SIGINT)
            command.wait(TIMEOUT_S)
            self.assertEqual(command.returncode, -signal.SIGINT)
        self.assertEqual(sorted(self.listing()), ["t"])


if __name__ == "__main__":
    unittest.main()
