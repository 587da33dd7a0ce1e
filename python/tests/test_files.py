# SPDX-License-Identifier: MIT
"""Files: statistics, differences, checks and manifests are what the tokens say; errors are Python's."""

import array
import collections
import copy
import os
import pickle
import signal
import tempfile
import threading
import unittest
import warnings
from pathlib import Path

from support import expected, needs_numpy, numpy, oracle

from iron_tokens import Digest, IronError, Manifest, check, diff, stat, sum_file

TOKENS = oracle.gen(8, 20000, 900)


class FilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.folder = Path(folder.name)
        os.chdir(self.folder)
        self.path = self.write("tokens.bin", TOKENS)

    def write(self, name, tokens):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(array.array("H", tokens))
        return path


class Sums(FilesTest):
    def test_lists_of_paths(self):
        parts = [self.write("b.bin", TOKENS[:7777]), self.write("a.bin", TOKENS[7777:])]
        whole = sum_file(self.path, dtype="u16")
        self.assertEqual(dict(whole), expected(TOKENS))
        for given in (parts, tuple(map(str, parts)), [os.fsencode(part) for part in parts]):
            self.assertEqual(sum_file(given, dtype="u16"), whole)
        self.assertEqual(sum_file(parts[0], [str(parts[1])], dtype="u16"), whole)
        self.assertEqual(sum_file(parts[0], parts[1], dtype="u16", sample=5), whole)

    def test_folders(self):
        self.write("in/1.bin", TOKENS[:10])
        self.write("in/2.bin", TOKENS[10:20])
        self.write("in/3.old", TOKENS[20:30])
        (self.folder / "in" / "more").mkdir()
        self.write("in/more/4.bin", TOKENS[30:40])

        def tokens(**how):
            return sum_file("in", dtype="u16", **how).tokens

        self.assertEqual(tokens(), 30)
        self.assertEqual(tokens(recursive=True), 40)
        self.assertEqual(tokens(include="*.bin"), 20)
        self.assertEqual(tokens(include=["1*", "3*"]), 20)
        self.assertEqual(tokens(recursive=True, exclude=["*.old", "2.bin"]), 20)

    def test_pipes(self):
        os.mkfifo("pipe")
        for action in (sum_file, lambda path, **how: Manifest.scan(path, **how).result):
            writer = threading.Thread(target=lambda: Path("pipe").write_bytes(self.path.read_bytes()))
            writer.start()
            seen = []
            found = action("pipe", dtype="u16", progress=lambda done, total: seen.append(total))
            writer.join()
            self.assertEqual(dict(found), expected(TOKENS))
            self.assertEqual(set(seen) - {20000}, {None})  # the total is not known before the end

    def test_widths(self):
        wanted = sum_file(self.path, dtype="u16")
        self.assertEqual(sum_file(self.path, dtype="uint16"), wanted)
        with self.assertRaisesRegex(IronError, "u17"):
            sum_file(self.path, dtype="u17")

    @needs_numpy
    def test_widths_of_numpy(self):
        wanted = sum_file(self.path, dtype="u16")
        self.assertEqual(sum_file(self.path, dtype=numpy.uint16), wanted)
        self.assertEqual(sum_file(self.path, dtype=numpy.dtype("<u2")), wanted)
        with self.assertRaisesRegex(IronError, "big-endian"):
            sum_file(self.path, dtype=numpy.dtype(">u2"))

    def test_errors_are_those_of_python(self):
        with self.assertRaises(FileNotFoundError) as caught:
            sum_file("missing.bin", dtype="u16")
        self.assertEqual(caught.exception.errno, 2)
        with self.assertRaises(NotADirectoryError):
            sum_file(self.path / "below", dtype="u16")
        with self.assertRaisesRegex(IronError, "name at least one"):
            sum_file([], dtype="u16")
        with self.assertRaises(TypeError):
            sum_file(5, dtype="u16")
        with self.assertRaisesRegex(IronError, "dtype"):
            sum_file(self.path)
        self.path.write_bytes(b"odd")
        with self.assertRaises(ValueError) as caught:
            sum_file(self.path, dtype="u16")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.status), (str(caught.exception), "IRON_E_FORMAT"))

    def test_warnings_name_the_caller(self):
        (self.folder / "in").mkdir()
        self.write("in/1.bin", TOKENS)
        (self.folder / "in" / "x.md").write_text("# text\n")
        for function in (sum_file, stat, Manifest.scan, lambda p, dtype: diff(p, p, dtype=dtype)):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                function("in", dtype="u16")
            self.assertIn("x.md is skipped: text, not tokens", str(found[0].message))
            if function in (sum_file, stat):
                self.assertEqual(found[0].filename, __file__)


class Statistics(FilesTest):
    def test_against_the_tokens(self):
        tokens = TOKENS[:3000] + [5] * 40 + TOKENS[3000:]
        self.write("more.bin", tokens)
        found = stat("more.bin", dtype="u16", vocab=800, eos=3, histogram=True)
        counts = collections.Counter(tokens)
        self.assertEqual((found.tokens, found.min, found.max, found.zeros),
                         (len(tokens), min(tokens), max(tokens), counts[0]))
        out = [(k, t) for k, t in enumerate(tokens) if t >= 800]
        self.assertEqual((found.out_of_vocab, found.first_out), (len(out), tuple(out[:8])))
        self.assertGreaterEqual(found.run_length, 40)
        self.assertEqual(found.run_value, 5)
        self.assertEqual(list(found.histogram), [counts[k] for k in range(800)])
        self.assertEqual(found.used_ids, sum(counts[k] > 0 for k in range(800)))
        documents = oracle.cut(tokens, "eos=3")
        self.assertEqual((found.documents, found.document_cut), (len(documents), "eos=3"))
        self.assertEqual(found.document_max, max(map(len, documents)))
        self.assertAlmostEqual(found.document_mean, len(tokens) / len(documents))

    def test_without_documents_and_histogram(self):
        found = stat(self.path, dtype="u16")
        for name in ("documents", "document_cut", "document_mean", "histogram", "entropy_bits"):
            self.assertIsNone(getattr(found, name), name)
        self.path.write_bytes(b"")
        self.assertEqual((stat(self.path, dtype="u16").tokens, stat(self.path, dtype="u16").min), (0, None))

    def test_refused(self):
        with self.assertRaises(IronError):
            stat(self.path, dtype="u16", vocab=0)
        with self.assertRaises(FileNotFoundError):
            stat("missing.bin", dtype="u16")


class Differences(FilesTest):
    def test_kinds(self):
        blocks = [TOKENS[:5000], TOKENS[5000:9000], TOKENS[9000:]]
        changed = TOKENS[:]
        changed[1234] ^= 1
        for tokens, kind, position, length in (
                (TOKENS, "equal", None, None), (changed, "changed", 1234, 1),
                (TOKENS[:15000], "truncated", 15000, 5000),
                (blocks[0] + blocks[2], "deleted", 5000, 4000),
                (blocks[0] + blocks[1] + blocks[1] + blocks[2], "repeated", 9000, 4000)):
            found = diff(self.path, self.write("other.bin", tokens), dtype="u16")
            self.assertEqual((found.kind, found.position, found.length), (kind, position, length))
            self.assertEqual((bool(found), found.equal), (kind != "equal", kind == "equal"))
            self.assertEqual(found.tokens, (len(TOKENS), len(tokens)))
        self.assertEqual((found.source, found.edits, found.has_more_edits), (5000, 1, False))
        self.assertIn("repeats 4000 tokens", str(found))

    def test_first_difference(self):
        changed = TOKENS[:]
        changed[77] = 65535
        found = diff(self.path, self.write("other.bin", changed), dtype="u16")
        self.assertEqual((found.first, found.values), (77, (TOKENS[77], 65535)))

    def test_shuffled(self):
        self.write("other.bin", TOKENS[10000:] + TOKENS[5000:10000] + TOKENS[:5000])
        self.assertEqual(diff(self.path, "other.bin", dtype="u16", sample=5000).kind, "shuffled")

    def test_lists_and_manifests(self):
        parts = [self.write("1.bin", TOKENS[:9000]), self.write("2.bin", TOKENS[9000:])]
        manifest = Manifest.scan(parts, dtype="u16", chunk_tokens=1024)
        manifest.write("m.manifest")
        changed = TOKENS[:]
        changed[15001] ^= 1
        self.write("other.bin", changed)
        for side in (manifest, "m.manifest", self.folder / "m.manifest"):
            self.assertTrue(diff(side, self.path, dtype="u16").equal)
            self.assertTrue(diff(self.path, side, dtype="u16").equal)
            found = diff(side, "other.bin", dtype="u16")
            self.assertEqual((found.kind, found.position, found.length), ("changed", 15001, 1))
        for part in parts:
            part.unlink()
        found = diff("m.manifest", "other.bin", dtype="u16")  # only the chunk is known
        self.assertEqual((found.kind, found.first // 1024, found.values[0]), ("changed", 14, None))

    def test_a_manifest_that_moved(self):
        os.makedirs("here/data")
        self.write("here/data/x.bin", TOKENS)
        os.chdir("here")
        Manifest.scan("data/x.bin", dtype="u16").write("data/m.manifest")
        os.chdir(self.folder)
        os.rename("here", "there")
        changed = TOKENS[:]
        changed[4321] ^= 1
        self.write("other.bin", changed)
        self.assertEqual(diff("there/data/m.manifest", "other.bin", dtype="u16").first, 4321)


class Manifests(FilesTest):
    def test_description(self):
        parts = [self.write("1.bin", TOKENS[:9000]), self.write("2.bin", TOKENS[9000:])]
        manifest = Manifest.scan(parts, dtype="u16", vocab=700, chunk_tokens=2048, sample=100)
        self.assertEqual((manifest.tokens, manifest.stream_tokens, manifest.first, manifest.part),
                         (20000, 20000, 0, None))
        self.assertEqual((manifest.vocab, manifest.chunk_tokens), (700, 2048))
        self.assertEqual([(f.path, f.dtype, f.format, f.first, f.tokens, f.compression)
                          for f in manifest.files],
                         [(str(parts[0]), "u16", "raw", 0, 9000, None),
                          (str(parts[1]), "u16", "raw", 9000, 11000, None)])
        self.assertEqual(manifest.result, sum_file(self.path, dtype="u16", vocab=700))
        self.assertEqual((manifest.result.samples, manifest.result.bag_cut), (200, "sample=100"))
        self.assertEqual(manifest.result.bag, oracle.bag(oracle.cut(TOKENS, "sample=100")))
        self.assertIn(f"{oracle.seal(TOKENS)} of 20000 tokens, 2 files", repr(manifest))

    def test_files_and_comparison(self):
        manifest = Manifest.scan(self.path, dtype="u16")
        manifest.write("m.manifest")
        again = Manifest.read("m.manifest")
        self.assertEqual(again, manifest)
        self.assertEqual(hash(again), hash(manifest))
        self.assertNotEqual(manifest, Manifest.scan(self.path, dtype="u16", chunk_tokens=1024))
        self.assertNotEqual(manifest, manifest.result)
        with self.assertRaises(FileNotFoundError):
            Manifest.read("missing.manifest")
        with self.assertRaises(FileNotFoundError):
            manifest.write("missing/m.manifest")
        with self.assertRaises(ValueError):
            Manifest.read(self.path)

    def test_parts(self):
        whole = Manifest.scan(self.path, dtype="u16", chunk_tokens=1024)
        parts = [Manifest.scan(self.path, dtype="u16", chunk_tokens=1024, part=(k, 3))
                 for k in (2, 3, 1)]
        self.assertEqual([part.part for part in parts], [(2, 3), (3, 3), (1, 3)])
        self.assertEqual(sum(part.tokens for part in parts), 20000)
        self.assertEqual(Manifest.merge(parts), whole)
        with self.assertRaisesRegex(IronError, "part"):
            Manifest.merge(parts[:2])
        with self.assertRaises(IronError):
            Manifest.scan(self.path, dtype="u16", part=(4, 3))

    def test_they_are_not_copied_or_pickled(self):
        manifest = Manifest.scan(self.path, dtype="u16")
        for action in (pickle.dumps, copy.copy, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, "write"):
                action(manifest)

    def test_check(self):
        parts = [self.write(f"{k}.bin", TOKENS[5000 * k:5000 * k + 5000]) for k in range(4)]
        manifest = Manifest.scan(parts, dtype="u16")
        manifest.write("m.manifest")
        self.assertTrue(check(manifest))
        self.assertEqual(check("m.manifest").bad, ())
        parts[1].unlink()
        self.write("2.bin", TOKENS[:5000])
        self.write("3.bin", TOKENS[15000:19999])
        found = check("m.manifest")
        self.assertFalse(found)
        self.assertEqual([file.state for file in found], ["ok", "missing", "failed", "failed"])
        self.assertEqual((len(found), len(found.bad), found.bad[0].path), (4, 3, str(parts[1])))
        self.assertEqual((found.files[2].expected, found.files[2].found),
                         (oracle.seal(TOKENS[10000:15000]), oracle.seal(TOKENS[:5000])))
        with self.assertRaises(FileNotFoundError):
            check("missing.manifest")


class Interruptions(FilesTest):
    def actions(self):
        manifest = Manifest.scan(self.path, dtype="u16")
        return (lambda **how: sum_file(self.path, dtype="u16", **how),
                lambda **how: stat(self.path, dtype="u16", **how),
                lambda **how: diff(self.path, self.path, dtype="u16", **how),
                lambda **how: check(manifest, **how))

    def test_progress(self):
        for action in self.actions():
            calls = []
            action(progress=lambda done, total: calls.append((done, total)))
            self.assertGreater(len(calls), 0)
            self.assertLessEqual(calls[-1][0], calls[-1][1])

    def test_errors_in_progress_end_the_call(self):
        for action in self.actions():
            with self.assertRaises(ZeroDivisionError):
                action(progress=lambda done, total: done // 0)

    def test_control_c_ends_the_call(self):
        for action in self.actions():
            with self.assertRaises(KeyboardInterrupt):
                action(progress=lambda *_: signal.raise_signal(signal.SIGINT))
            self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_other_threads(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(sum_file(self.path, dtype="u16")))
        thread.start()
        thread.join()
        self.assertEqual(found[0].seal, oracle.seal(TOKENS))


class Many(FilesTest):
    def test_memory_is_freed(self):
        manifest = Manifest.scan(self.path, dtype="u16")
        manifest.write("m.manifest")

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def work():
            for _ in range(60):
                check("m.manifest")
                diff("m.manifest", self.path, dtype="u16")
                stat(self.path, dtype="u16", vocab=1 << 16, histogram=True)
                with Digest() as digest:
                    digest.update(array.array("b", [1] * 5000))

        work()
        before = resident()
        work()
        self.assertLess(resident() - before, 16 << 20)  # one histogram each would be 31 MiB


if __name__ == "__main__":
    unittest.main()
