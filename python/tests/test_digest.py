# SPDX-License-Identifier: MIT
"""Digests: results match the oracle's; pieces in any order, errors, saved states."""

import array
import json
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from support import REPO, DigestTest, expected, iron_tokens, oracle, subprocess_environment

from iron_tokens import Digest, IronError

STREAM = oracle.gen(5, 3001, 51000)  # some are out of the vocabulary


def u32(tokens):
    return array.array("I", tokens)


class Results(DigestTest):
    def test_golden_seals(self):
        golden = json.loads((REPO / "tests" / "golden" / "engine.json").read_text())
        self.assertTrue(golden["seals"])
        for case in golden["seals"]:
            tokens = oracle.golden_tokens(case)
            self.assertEqual(iron_tokens.seal(u32(tokens)), case["seal"], case["name"])

    def test_one_piece(self):
        for count in (0, 1, 3, 4, 5, 1000):
            with Digest() as digest:
                digest.update(u32(STREAM[:count]))
                self.assert_digest(digest, STREAM[:count])
                self.assertEqual(digest.hexdigest(), oracle.seal(STREAM[:count]))

    def test_vocabulary_is_configurable(self):
        for vocab in (1, 100, 2**32):
            with Digest(vocab=vocab) as digest:
                digest.update(u32(STREAM))
                self.assert_digest(digest, STREAM, vocab)

    def test_pieces_in_any_order_in_any_number_of_digests(self):
        dice = random.Random(7)
        want = expected(STREAM)
        for _ in range(40):
            cuts = sorted(dice.sample(range(1, len(STREAM)), dice.randrange(1, 30)))
            pieces = list(zip([0, *cuts], [*cuts, len(STREAM)]))
            digests = [Digest(threads=1) for _ in range(dice.randrange(1, 6))]
            dice.shuffle(pieces)
            for first, end in pieces:
                dice.choice(digests).update(u32(STREAM[first:end]), first)
            dice.shuffle(digests)
            for other in digests[1:]:
                digests[0].merge(other)
            self.assertEqual(dict(digests[0].result()), want)

    def test_appending(self):
        with Digest() as digest:
            digest.update(u32(STREAM[:10]))
            self.assertEqual(digest.end, 10)
            digest.update(u32(STREAM[20:25]), position=20)
            self.assertEqual(digest.end, 25)
            digest.update(u32(STREAM[25:31]))
            self.assertEqual(digest.gap(), (10, 20))
            digest.update(u32(STREAM[10:20]), position=10)
            self.assertIsNone(digest.gap())
            self.assert_digest(digest, STREAM[:31])

    def test_many_tokens_use_all_threads(self):
        tokens = u32(k * 2654435761 % 60000 for k in range(300_003))
        with Digest(threads=1) as one, Digest(threads=4) as four:
            one.update(tokens)
            four.update(tokens[100_001:], 100_001)
            four.update(tokens[:100_001], 0)
            self.assertEqual(one.result(), four.result())

    def test_results_read_like_a_dict(self):
        with Digest() as digest:
            result = digest.final()
        self.assertEqual(result["tokens"], 0)
        self.assertIsNone(result["min"])
        with self.assertRaises(KeyError):
            result["nothing"]


class Refusals(DigestTest):
    def assert_fails(self, words, status, action):
        with self.assertRaisesRegex(IronError, words) as caught:
            action()
        self.assertEqual(caught.exception.status, status)
        self.assertIsInstance(caught.exception, ValueError)

    def test_repeated_positions_are_refused(self):
        with Digest() as digest:
            digest.update(u32(STREAM[:128]))
            before = digest.state_dict()
            self.assert_fails("positions 96 to 127 were seen before", "IRON_E_STATE",
                              lambda: digest.update(u32(STREAM[96:130]), 96))
            self.assert_fails("positions 0 to 127 were seen before", "IRON_E_STATE",
                              lambda: digest.merge(digest))
            self.assertEqual(digest.state_dict(), before)

    def test_gaps_are_reported(self):
        with Digest() as digest:
            digest.update(u32(STREAM[:4]))
            digest.update(u32(STREAM[8:9]), 8)
            self.assert_fails("positions 4 to 7 were not seen", "IRON_E_STATE", digest.result)

    def test_positions(self):
        with Digest() as digest:
            for position in (-1, 2**64, 2**64 - 1):
                with self.assertRaisesRegex(IronError, "position"):
                    digest.update(b"a", position)
            with self.assertRaises(TypeError):
                digest.update(b"a", 1.5)
            digest.update(b"a", 2**64 - 2)
            self.assertEqual(digest.end, 2**64 - 1)

    def test_options(self):
        for options, words in (({"vocab": 0}, "vocab is 0"), ({"vocab": 2**32 + 1}, "vocab is"),
                               ({"threads": 2000}, "threads is 2000"), ({"device": -1}, "device"),
                               ({"backend": "opencl"}, "CUDA addresses; use cuda"),
                               ({"backend": "abacus"}, "unknown backend 'abacus'")):
            with self.assertRaisesRegex(IronError, words):
                Digest(**options)

    def test_other_vocabularies_do_not_merge(self):
        with Digest() as one, Digest(vocab=100) as other:
            self.assert_fails("vocab 50257 and 100", "IRON_E_ARG", lambda: one.merge(other))

    def test_closed_digest(self):
        digest = Digest()
        digest.close()
        digest.close()
        self.assert_fails("closed", "IRON_E_STATE", digest.result)
        self.assert_fails("closed", "IRON_E_STATE", lambda: digest.update(b"a"))


class Comparisons(DigestTest):
    def test_digests_compare_by_what_they_have_seen(self):
        pieces = [(0, 5), (9, 30), (100, 101), (101, 333)]
        dice, digests = random.Random(3), []
        for _ in range(5):
            dice.shuffle(pieces)
            digests.append(Digest())
            for first, end in pieces:
                digests[-1].update(u32(STREAM[first:end]), first)
        for digest in digests:
            self.assertEqual(digest, digests[0])
        self.assertEqual(digests[0], digests[0].copy())
        digests[1].update([7], position=5)
        self.assertNotEqual(digests[1], digests[0])
        self.assertNotEqual(Digest(), Digest(vocab=100))
        self.assertNotEqual(Digest(), Digest().state_dict())
        with self.assertRaisesRegex(TypeError, "unhashable"):
            hash(digests[0])
        with self.assertRaisesRegex(TypeError, "cannot merge dict into a Digest"):
            digests[0].merge(digests[1].state_dict())

    def test_results_compare_and_hash(self):
        results = []
        for cut in (1, 700):
            with Digest() as digest:
                digest.update(u32(STREAM[cut:]), cut)
                digest.update(u32(STREAM[:cut]), 0)
                results.append(digest.result())
        self.assertEqual(len(set(results)), 1)
        self.assertEqual(str(results[0]), oracle.seal(STREAM))
        with Digest() as digest:
            digest.update(u32(STREAM[:-1]))
            self.assertNotEqual(digest.result(), results[0])

    def test_repr(self):
        digest = Digest(vocab=9)
        digest.update([1, 2, 3])
        self.assertEqual(repr(digest), f"<iron_tokens.Digest {oracle.seal([1, 2, 3])} of 3 tokens, "
                                       "vocab 9>")
        digest.update([1], position=7)
        self.assertIn("3 to 6 are missing", repr(digest))
        digest.close()
        self.assertIn("closed", repr(digest))


class States(DigestTest):
    def half(self):
        digest = Digest(vocab=1000)
        digest.update(u32(STREAM[:101]))
        digest.update(u32(STREAM[200:301]), 200)
        return digest

    def finish(self, digest):
        self.assertEqual((digest.end, digest.gap(), digest.vocab), (301, (101, 200), 1000))
        digest.update(u32(STREAM[101:200]), 101)
        self.assert_digest(digest, STREAM[:301], 1000)

    def test_through_json(self):
        saved = json.loads(json.dumps(self.half().state_dict()))
        self.finish(Digest.from_state_dict(saved))
        again = Digest(vocab=1000)
        again.update(b"forgotten")
        again.load_state_dict(saved)
        self.finish(again)

    def test_copies_and_pickles(self):
        digest = self.half()
        self.finish(digest.copy())
        self.finish(pickle.loads(pickle.dumps(digest)))
        self.finish(digest)

    def test_refused_states(self):
        good = self.half().state_dict()
        text = good["state"]
        bad = {"format": "something", "version": 2, "end": -1, "vocab": 0,
               "state": text[:40] + ("A" if text[40] != "A" else "B") + text[41:]}
        for key, value in bad.items():
            digest = Digest(vocab=1000)
            digest.update(b"abc")
            before = digest.state_dict()
            with self.assertRaises(IronError, msg=key):
                digest.load_state_dict({**good, key: value})
            self.assertEqual(digest.state_dict(), before)
        for broken in (None, {}, {**good, "state": "?"}, {**good, "state": ""},
                       {k: v for k, v in good.items() if k != "end"}):
            with self.assertRaises(IronError):
                Digest(vocab=1000).load_state_dict(broken)
        with self.assertRaisesRegex(IronError, "vocab 1000, not 50257"):
            Digest().load_state_dict(good)


class Surroundings(DigestTest):
    def test_threads_share_a_digest(self):
        digest = Digest(threads=2)

        def work(rank):
            for first in range(100 * rank, 3001, 400):
                digest.update(u32(STREAM[first:first + 100]), first)

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assert_digest(digest, STREAM)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = Path(folder) / "a.bin", Path(folder) / "b.bin"
            first.write_bytes(u32(STREAM[:1001]).tobytes())
            second.write_bytes(u32(STREAM[1001:]).tobytes())
            found = iron_tokens.sum_file(first, str(second), dtype="u32")
            self.assertEqual(dict(found), expected(STREAM))
            with self.assertRaises(IronError):
                iron_tokens.sum_file(first)
            self.assertEqual(iron_tokens.sum_file([first, str(second)], dtype="uint32"), found)
            with self.assertRaisesRegex(FileNotFoundError, "missing"):
                iron_tokens.sum_file(Path(folder) / "missing", dtype="u32")

    def test_files_that_are_not_what_they_seem(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.bin").write_bytes(u32(STREAM).tobytes())
            (Path(folder) / "readme.md").write_bytes(b"# tokens\n")
            with self.assertWarnsRegex(UserWarning, "readme.md is skipped: text, not tokens"):
                found = iron_tokens.sum_file(folder, dtype="u32")
            self.assertEqual(dict(found), expected(STREAM))
            with self.assertWarnsRegex(UserWarning, "a.bin: its values look like u32"):
                iron_tokens.sum_file(Path(folder) / "a.bin", dtype="u16")

    def test_missing_library_is_reported(self):
        def run(**environment):
            code = "import iron_tokens; print(iron_tokens.library_path(), iron_tokens.version())"
            return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                  env=subprocess_environment(**environment))

        used = iron_tokens.library_path()
        self.assertEqual(run(IRON_LIBRARY=used).stdout.split()[0], used)
        missed = run(IRON_LIBRARY="/nowhere/libiron.so.0")
        self.assertNotEqual(missed.returncode, 0)
        self.assertIn("set IRON_LIBRARY to its path", missed.stderr)
        self.assertIn("/nowhere/libiron.so.0", missed.stderr)


if __name__ == "__main__":
    unittest.main()
