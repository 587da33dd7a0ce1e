# SPDX-License-Identifier: MIT
"""`iron lint`: a good dataset has no findings, in every format; each kind of trouble is found by
itself and named; findings are one line each, and the exit status is 1.
"""

import itertools
import os
import random
import struct
import subprocess
import unittest

from harness import DTYPES, SEED, IRON, IronTest, environment, npy, pack, parse_json
from test_formats import litpkds, llmc, megatron_index

EOS = 999
KEYS = {"kind", "file", "position", "count", "text"}


def flat(documents) -> list[int]:
    return list(itertools.chain.from_iterable(documents))


class LintTest(IronTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} {self.id()}")

    def documents(self, count=5, longest=40):
        """Documents that end with EOS and contain it nowhere else."""
        return [[self.rng.randrange(EOS) for _ in range(self.rng.randrange(1, longest))] + [EOS]
                for _ in range(count)]

    def tokens(self, *args):
        return flat(self.documents(*args))

    def shards(self, names, folder="d"):
        """Raw u16 files with different tokens."""
        return [self.write_tokens(f"{folder}/{name}", self.tokens(), "u16") for name in names]

    def megatron(self, prefix, documents, dtype="u16", index=None):
        self.write(f"{prefix}.bin", pack(flat(documents), dtype))
        if index is None:
            index = megatron_index([len(d) for d in documents], dtype,
                                   list(range(len(documents) + 1)))
        self.write(f"{prefix}.idx", index)

    def ds(self, name, documents, index=None):
        tokens = flat(documents)
        ends = [sum(map(len, documents[:k + 1])) for k in range(len(documents))]
        self.write(name, pack(tokens, "u16"))
        self.write(f"{name}.index", struct.pack(f"<{len(ends)}Q", *ends) if index is None else index)
        self.write(f"{name}.metadata", f"gpt2|2\n{len(tokens)}\n{len(tokens)} tokens\n".encode())

    def findings(self, *args, code=1):
        """Runs lint as JSON and as text and compares the two."""
        result = self.iron("lint", *args, "--json")
        self.assertEqual(result.code, code, str(result))
        document = parse_json(result.out)
        self.assertEqual(document["schema"], "iron.lint/1")
        for finding in document["findings"]:
            self.assertEqual(set(finding), KEYS)
        lines = [f"{f['file']}: {f['kind']}: {f['text']}" for f in document["findings"]]
        text = self.iron("lint", *args)
        self.assertEqual(text.code, code, str(text))
        if lines:
            self.assertEqual(text.text.splitlines(), lines)
        return document["findings"]

    def clean(self, *args):
        self.assertEqual(self.findings(*args, code=0), [])
        result = self.succeeds("lint", *args)
        self.assertRegex(result.text, r"\Ano findings: \d+ files?, \d+ tokens\n\Z")
        return result.text

    def finds(self, *args, kind, file, position=None, count=None, says=()):
        """Exactly one finding, with these members."""
        found = self.findings(*args)
        self.assertEqual(len(found), 1, found)
        self.assertEqual({k: found[0][k] for k in KEYS - {"text"}},
                         {"kind": kind, "file": file, "position": position, "count": count})
        for wanted in [says] if isinstance(says, str) else says:
            self.assertIn(wanted, found[0]["text"])
        return found[0]["text"]


class Good(LintTest):
    OPTIONS = ("--vocab", 1000, "--eos", EOS)

    def test_raw_of_every_width(self):
        for dtype in DTYPES:
            for k in range(3):
                tokens = [t % 256 for t in self.tokens()] if dtype == "u8" else self.tokens()
                self.write_tokens(f"{dtype}/part-{k}.bin", tokens, dtype)
            options = self.OPTIONS if dtype != "u8" else ("--vocab", 256)
            self.clean(dtype, "--dtype", dtype, *options)

    def test_files_with_headers(self):
        for k in range(3):
            tokens = self.tokens()
            self.write(f"npy/{k}.npy", npy(tokens, "<u2", "H"))
            self.write(f"llmc/{k}.bin", llmc(tokens, "u16"))
            self.write(f"litpkds/chunk-{k}.bin", litpkds(tokens, "u16"))
        for folder in ("npy", "llmc", "litpkds"):
            self.assertIn("3 files", self.clean(folder, *self.OPTIONS))

    def test_files_with_an_index(self):
        for k in range(3):
            self.megatron(f"m/p_{k}", self.documents())
            self.ds(f"s/{k}_unshuffled.ds", self.documents())
        self.clean("m", *self.OPTIONS)
        self.clean("s", *self.OPTIONS)

    def test_names_of_a_megatron_dataset(self):
        documents = self.documents()
        self.megatron("corpus_text_document", documents)
        for name in ("corpus_text_document", "corpus_text_document.bin",
                     "corpus_text_document.idx"):
            self.assertEqual(self.clean(name, *self.OPTIONS),
                             f"no findings: 1 file, {sum(map(len, documents))} tokens\n")

    def test_megatron_documents_of_several_sequences(self):
        documents = self.documents(4, 9)
        pieces = [p for d in documents for p in ([d[:1], d[1:]] if len(d) > 2 else [d])]
        starts, sequence = [0], 0
        for d in documents:
            sequence += 2 if len(d) > 2 else 1
            starts.append(sequence)
        self.megatron("p", documents, index=megatron_index([len(p) for p in pieces], "u16", starts))
        self.clean("p", *self.OPTIONS)

    def test_eos_before_each_document(self):
        """As llm.c writes it: the file begins with the token instead of ending with it."""
        self.write_tokens("a.bin", [EOS, 1, 2, EOS, 3], "u16")
        self.clean("a.bin", "--dtype", "u16", *self.OPTIONS)

    def test_names_that_are_no_series(self):
        """Dates, steps, years, hashes and files with other names."""
        self.shards(["20240105.bin", "20240321.bin", "20251101.bin"], "dates")
        self.shards(["step1000.bin", "step2000.bin"], "steps")
        self.shards(["train_000001.bin", "train_000002.bin", "val_000000.bin"], "split")
        self.shards(["a7f3.bin", "a9c1.bin", "b2.bin"], "hashes")
        self.shards([f"{y}_{m:02}.bin" for y in (2023, 2024) for m in (1, 2, 3)], "months")
        self.shards([f"run-{run}-{k:05}.bin" for run in ("20261119210812345678", "20261120093011223344") for k in (1, 2)], "runs")
        for folder in ("dates", "steps", "split", "hashes", "months", "runs"):
            self.clean(folder, "--dtype", "u16", *self.OPTIONS)

    def test_complete_totals(self):
        self.shards([f"x-{k:05}-of-00003.bin" for k in range(3)], "from0")
        self.shards([f"x-{k}-of-3.bin" for k in range(1, 4)], "from1")
        self.clean("from0", "--dtype", "u16")
        self.clean("from1", "--dtype", "u16")

    def test_last_shard_may_be_shorter(self):
        for k in range(6):
            self.write_tokens(f"d/{k}.bin", [k * 10 + t for t in range(8 if k < 5 else 3)], "u16")
        self.clean("d", "--dtype", "u16")

    def test_files_named_out_of_a_longer_series(self):
        self.shards([f"{k:03}.bin" for k in range(5)])
        self.clean("d/000.bin", "d/003.bin", "--dtype", "u16")


class Indexes(LintTest):
    def test_data_longer_than_the_index(self):
        self.megatron("d/p", self.documents())
        with open(self.dir / "d/p.bin", "ab") as file:
            file.write(b"\1\0")
        self.finds("d", kind="index", file="d/p.bin", says=["p.idx", "the size of"])

    def test_message_is_the_readers(self):
        self.megatron("p", self.documents())
        (self.dir / "p.bin").write_bytes((self.dir / "p.bin").read_bytes()[:-2])
        text = self.finds("p.bin", kind="index", file="p.bin")
        self.assertIn(text, self.refused("sum", "p.bin").message)

    def test_damaged_magic_of_an_index(self):
        self.megatron("p", self.documents(), index=b"XMIDIDX\0\0" + bytes(60))
        self.finds("p", kind="index", file="p.bin", says=["p.idx", "MMIDIDX"])
        self.finds("p", "--dtype", "u16", kind="index", file="p.bin", says="MMIDIDX")

    def test_index_without_tokens(self):
        self.megatron("d/p", self.documents())
        self.megatron("d/q", self.documents())
        (self.dir / "d/q.bin").unlink()
        self.finds("d", kind="missing", file="d/q.bin", count=1, says="q.idx")

    def test_tokens_without_index(self):
        self.megatron("d/p", self.documents())
        self.write_tokens("d/q.bin", self.tokens(), "u16")
        self.finds("d", kind="index", file="d/q.bin", says=["q.idx", "missing"])

    def test_ds(self):
        self.ds("d/a.ds", self.documents(), index=struct.pack("<2Q", 3, 2))
        self.finds("d", kind="index", file="d/a.ds", says="a document ends at token 2")
        (self.dir / "d/a.ds").unlink()
        self.finds("d", kind="missing", file="d/a.ds", count=1, says="describes it")


class Headers(LintTest):
    def test_each_header(self):
        tokens = self.tokens()
        for name, data in (("a.npy", npy(tokens, "<u2", "H")), ("a.bin", llmc(tokens, "u16")),
                           ("l.bin", litpkds(tokens, "u16"))):
            self.write(name, data[:-3])
            text = self.finds(name, kind="header", file=name)
            self.assertIn(text, self.refused("sum", name).message)

    def test_headers_are_checked_beside_good_files(self):
        for k in range(4):
            self.write(f"d/{k}.npy", npy(self.tokens(), "<u2", "H")[:None if k != 2 else -4])
        self.finds("d", kind="header", file="d/2.npy")

    def test_raw_file_with_half_a_token(self):
        self.write("a.bin", pack(self.tokens(), "u16") + b"\1")
        self.finds("a.bin", "--dtype", "u16", kind="size", file="a.bin", says="whole number")

    def test_empty_files(self):
        a, _ = self.shards(["a.bin", "c.bin"])
        self.write("d/b.bin", b"")
        self.finds("d", "--dtype", "u16", "--eos", EOS, kind="empty-file", file="d/b.bin",
                   says="0 bytes")
        self.write("e.npy", npy([], "<u2", "H"))
        self.finds("e.npy", kind="empty-file", file="e.npy", says="header")
        self.assertTrue(a.exists())


class Names(LintTest):
    def test_gap(self):
        self.shards(["shard_00002.bin", "shard_00004.bin"])
        self.finds("d", "--dtype", "u16", kind="missing", file="d/shard_00003.bin", count=1,
                   says=["shard_00002.bin", "shard_00004.bin"])

    def test_gap_between_named_files(self):
        self.shards(["s_1.bin", "s_3.bin"])
        self.finds("d/s_1.bin", "d/s_3.bin", "--dtype", "u16", kind="missing", file="d/s_2.bin",
                   count=1)

    def test_several_gaps(self):
        self.shards([f"{k:04}.bin" for k in (0, 1, 5, 6, 8)])
        found = self.findings("d", "--dtype", "u16")
        self.assertEqual([(f["kind"], f["file"], f["count"]) for f in found],
                         [("missing", "d/0002.bin", 3), ("missing", "d/0007.bin", 1)])
        self.assertIn("0004.bin", found[0]["text"])

    def test_totals(self):
        self.shards([f"x-{k:05}-of-00005.bin" for k in (1, 2, 4)])
        found = self.findings("d", "--dtype", "u16")
        self.assertEqual([(f["kind"], f["file"]) for f in found],
                         [("missing", "d/x-00000-of-00005.bin"),
                          ("missing", "d/x-00003-of-00005.bin")])

    def test_end_of_a_total(self):
        self.shards([f"x-{k}-of-5.bin" for k in range(3)])
        self.finds("d", "--dtype", "u16", kind="missing", file="d/x-3-of-5.bin", count=2,
                   says="x-4-of-5.bin")

    def test_only_file_of_a_total(self):
        self.shards(["x-0-of-2.bin"])
        self.finds("d", "--dtype", "u16", kind="missing", file="d/x-1-of-2.bin", count=1,
                   says="2 files")
        self.clean("d/x-0-of-2.bin", "--dtype", "u16")

    def test_number_beyond_the_total(self):
        self.shards([f"x-{k}-of-2.bin" for k in (0, 1, 7)])
        self.finds("d", "--dtype", "u16", kind="order", file="d/x-7-of-2.bin")

    def test_two_totals(self):
        self.shards([f"x-{k}-of-2.bin" for k in range(2)] + [f"x-{k}-of-3.bin" for k in range(3)])
        self.finds("d", "--dtype", "u16", kind="mixed", file="d/x-0-of-3.bin", says=["3", "2"])

    def test_order_of_names(self):
        self.shards([f"shard_{k}.bin" for k in range(11)])
        self.finds("d", "--dtype", "u16", kind="order", file="d/shard_10.bin",
                   says=["shard_9.bin", "sorted()"])

    def test_same_number_twice(self):
        self.shards(["1.bin", "01.bin"])
        self.finds("d", "--dtype", "u16", kind="order", file="d/1.bin", says="01.bin")

    def test_series_with_another_number_behind(self):
        self.shards([f"part{k}_v2.bin" for k in (0, 1, 3)])
        self.finds("d", "--dtype", "u16", kind="missing", file="d/part2_v2.bin", count=1)

    def test_each_series_by_itself(self):
        self.shards([f"a_{k:02}.bin" for k in (1, 3)] + [f"b_{k:02}.bin" for k in (1, 2)])
        self.finds("d", "--dtype", "u16", kind="missing", file="d/a_02.bin", count=1)


class Shards(LintTest):
    def test_repeated(self):
        a, _, c = self.shards(["0.bin", "1.bin", "2.bin"])
        c.write_bytes(a.read_bytes())
        self.finds("d", "--dtype", "u16", kind="repeated", file="d/2.bin",
                   count=len(a.read_bytes()) // 2, says="d/0.bin")

    def test_repeated_in_another_width_and_folder(self):
        tokens = self.tokens()
        self.write("train/0.npy", npy(tokens, "<u2", "H"))
        self.write("val/0.npy", npy(tokens, "<u4", "I"))
        found = self.findings("train", "val")
        self.assertEqual([(f["kind"], f["file"]) for f in found],
                         [("mixed", "val/0.npy"), ("repeated", "val/0.npy")])

    def test_mixed_widths(self):
        for k in range(4):
            self.write(f"d/{k}.npy", npy(self.tokens(), "<u4" if k == 2 else "<u2",
                                         "I" if k == 2 else "H"))
        self.finds("d", kind="mixed", file="d/2.npy", says=["u32", "3 of 4 files", "u16"])

    def test_mixed_formats(self):
        self.write("d/a.npy", npy(self.tokens(), "<u2", "H"))
        self.write_tokens("d/b.bin", self.tokens(), "u16")
        self.finds("d", "--dtype", "u16", kind="mixed", file="d/b.bin", says=["raw", "npy"])

    def test_shorter_shard(self):
        for k in range(6):
            self.write_tokens(f"d/{k}.bin", [k * 10 + t for t in range(3 if k == 2 else 8)], "u16")
        self.finds("d", "--dtype", "u16", kind="size", file="d/2.bin", count=3, says="8")

    def test_longer_last_shard(self):
        for k in range(6):
            self.write_tokens(f"d/{k}.bin", [k * 10 + t for t in range(9 if k == 5 else 8)], "u16")
        self.finds("d", "--dtype", "u16", kind="size", file="d/5.bin", count=9, says="8")


class Tokens(LintTest):
    def test_ids(self):
        self.write_tokens("a.bin", [5, 99, 100, 7, 65535], "u16")
        self.finds("a.bin", "--dtype", "u16", "--vocab", 100, kind="ids", file="a.bin", position=2,
                   count=2, says=["2 of 5", "100 at position 2"])

    def test_negative_ids(self):
        self.write_tokens("a.bin", [5, 6, -1], "i32")
        self.finds("a.bin", "--dtype", "i32", kind="ids", file="a.bin", says="position 2 is -1")

    def test_empty_documents(self):
        self.write_tokens("a.bin", [1, EOS, EOS, 2, EOS, EOS, EOS], "u16")
        self.finds("a.bin", "--dtype", "u16", "--eos", EOS, kind="empty-document", file="a.bin",
                   position=2, count=3)
        self.clean("a.bin", "--dtype", "u16")

    def test_empty_documents_across_pieces(self):
        """The command reads pieces of 1 MiB: pairs at, before and after their borders."""
        for dtype, width in (("u16", 2), ("i64", 8)):
            border = 2**20 // width
            for at in (border - 1, border, border + 1, 2 * border):
                tokens = [7] * (2 * border + 5) + [EOS]
                tokens[at - 1] = tokens[at] = EOS
                self.write_tokens("a.bin", tokens, dtype)
                self.finds("a.bin", "--dtype", dtype, "--eos", EOS, kind="empty-document",
                           file="a.bin", position=at, count=1)

    def test_empty_documents_in_an_index(self):
        self.megatron("p", [[1, 2, EOS], [], [3, EOS], [EOS], [], [4, EOS]])
        self.finds("p", kind="empty-document", file="p.bin", position=3, count=2)
        self.finds("p", "--eos", EOS, kind="empty-document", file="p.bin", position=3, count=3)
        self.ds("a.ds", [[], [1, EOS], []])
        self.finds("a.ds", "--eos", EOS, kind="empty-document", file="a.ds", position=0, count=2)

    def test_no_eos_at_the_end(self):
        self.write_tokens("d/a.bin", self.tokens(), "u16")
        self.write_tokens("d/b.bin", self.tokens() + [5, 6], "u16")
        size = (self.dir / "d/b.bin").stat().st_size // 2
        self.finds("d", "--dtype", "u16", "--eos", EOS, kind="no-eos", file="d/b.bin",
                   position=size - 1, count=1, says=["token 6", str(EOS)])

    def test_eos_wider_than_the_tokens(self):
        self.write_tokens("a.bin", [232, 232, 999 % 256], "u8")  # 999 modulo 256 is 231
        self.finds("a.bin", "--dtype", "u8", "--eos", 1000, kind="no-eos", file="a.bin",
                   position=2, count=1)

    def test_documents_without_eos(self):
        self.megatron("p", [[1, 2, EOS], [3, 4], [5, EOS], [6]])
        self.finds("p", "--eos", EOS, kind="no-eos", file="p.bin", position=4, count=2,
                   says="2 of 4 documents")

    def test_many_documents(self):
        """More documents than the command reads at once, over several pieces."""
        count, length = 2000, 701
        documents = [[7] * (length - 1) + [EOS] for _ in range(count)]
        for k in (1, count // 2, count - 1):
            documents[k] = [7] * length
        self.megatron("p", documents)
        self.finds("p", "--eos", EOS, kind="no-eos", file="p.bin", position=2 * length - 1,
                   count=3)


class Behaviour(LintTest):
    def test_everything_at_once_in_order(self):
        self.shards(["s_0.bin", "s_1.bin", "s_3.bin", "s_10.bin"])
        (self.dir / "d/s_1.bin").write_bytes(b"")
        self.write("d/z.bin", b"\1\2\3")
        found = self.findings("d", "--dtype", "u16", "--vocab", EOS, "--threads", 3)
        self.assertEqual([(f["kind"], f["file"]) for f in found],
                         [("ids", "d/s_0.bin"), ("empty-file", "d/s_1.bin"), ("ids", "d/s_3.bin"),
                          ("ids", "d/s_10.bin"), ("size", "d/z.bin"), ("order", "d/s_10.bin")])
        self.assertEqual(self.iron("lint", "d", "--dtype", "u16", "--vocab", EOS).message,
                         "iron: 6 findings in 5 files\n")

    def test_threads_do_not_matter(self):
        self.shards([f"{k:02}.bin" for k in range(40) if k != 17])
        (self.dir / "d/30.bin").write_bytes((self.dir / "d/12.bin").read_bytes())
        outputs = {self.iron("lint", "d", "--dtype", "u16", "--threads", t).text
                   for t in (1, 2, 7, 64)}
        self.assertEqual(len(outputs), 1)
        self.assertEqual(len(outputs.pop().splitlines()), 2)

    def test_names_with_line_breaks(self):
        tokens = self.tokens()
        self.write_tokens("d/a\nb.bin", tokens, "u16")
        self.write_tokens("d/c\nd.bin", tokens, "u16")
        result = self.iron("lint", "d", "--dtype", "u16")
        self.assertEqual((result.code, len(result.text.splitlines())), (1, 1), str(result))
        self.assertTrue(result.text.startswith("\\d/c\\nd.bin: repeated: "), result.text)

    def test_unreadable_file_is_an_error(self):
        """The other files are checked, and a pipe is not waited for."""
        self.shards(["a.bin", "b.bin"])
        (self.dir / "d/folder").mkdir()
        self.clean("d", "--dtype", "u16")
        os.mkfifo(self.dir / "d/c.bin")
        (self.dir / "d/b.bin").write_bytes(b"")
        result = self.iron("lint", "d", "--dtype", "u16")
        self.assertEqual((result.code, result.text), (1, "d/b.bin: empty-file: has 0 bytes\n"))
        self.assertEqual(result.message, "iron: warning: skipped 1 file that is not tokens: d/c.bin (not a regular "
                                         "file)\niron: 1 finding in 2 files\n")
        result = self.iron("lint", "d/a.bin", "d/b.bin", "d/c.bin", "--dtype", "u16")
        self.assertEqual((result.code, result.text), (2, "d/b.bin: empty-file: has 0 bytes\n"))
        self.assertEqual(result.message, "iron: d/c.bin is not a regular file; lint needs files\n"
                                         "iron: 1 finding in 3 files\n")
        self.refused("lint", "d/a.bin", "d/absent.bin", "--dtype", "u16", says="absent.bin")

    def test_misuse(self):
        self.shards(["a.bin"])
        self.refused("lint", says="no dataset")
        self.refused("lint", "absent", says="absent")
        self.refused("lint", "-", "--dtype", "u16", says="standard input")
        self.refused("lint", "d", says="--dtype")
        self.refused("lint", "d", "--dtype", "u16", "--vocab", 10, "--eos", 10, says="--eos")
        self.refused("lint", "d", "--dtype", "u16", "--backend", "cuda", says="CPU")
        self.refused("lint", "d", "--dtype", "u16", "--device", 1, says="device 1")
        self.refused("lint", "d", "--dtype", "u16", "--vocab", 0, says="--vocab")

    def test_few_descriptors(self):
        self.shards([f"{k:04}.bin" for k in range(200)])
        done = subprocess.run(["sh", "-c", 'ulimit -n 16; exec "$0" lint d --dtype u16', IRON],
                              cwd=self.dir, env=environment(), capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        self.assertIn(b"200 files", done.stdout)

    @unittest.skipIf(os.geteuid() == 0, "root can read every file")
    def test_permission(self):
        self.shards(["a.bin", "b.bin"])
        os.chmod(self.dir / "d/a.bin", 0)
        result = self.iron("lint", "d", "--dtype", "u16")
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("a.bin", result.message)


if __name__ == "__main__":
    unittest.main()
