# SPDX-License-Identifier: MIT
"""Shared by the tests: sets the package's path and compares results with the oracle.

The library under test is IRON_LIBRARY, or the checkout's own build; with IRON_TEST_INSTALLED=1 it is
the package that is installed.  Tests that need NumPy are skipped without it.  GPUs are not searched for: the
tests with GPU tokens expect the errors of a machine without one.
"""

import os
import sys
import unittest
from pathlib import Path

try:
    import numpy
except ImportError:
    numpy = None

REPO = Path(__file__).resolve().parents[2]
os.environ.setdefault("IRON_CUDA_LIBRARY", "none")
os.environ.setdefault("IRON_OPENCL_LIBRARY", "none")
sys.path[:0] = [str(REPO / "tests" / "oracle")]
if not os.environ.get("IRON_TEST_INSTALLED"):
    sys.path[:0] = [str(REPO / "python")]

import oracle  # noqa: E402  (found through the path set above)
import iron_tokens  # noqa: E402

needs_numpy = unittest.skipUnless(numpy, "NumPy is not installed")


def subprocess_environment(**more):
    """The environment for another Python that imports the same package."""
    found = {**os.environ, "PYTHONPATH": str(Path(iron_tokens.__file__).parents[1]), **more}
    return {**found, "IRON_LIBRARY": found.get("IRON_LIBRARY", iron_tokens.library_path())}


def expected(tokens, vocab=50257):
    """The DigestResult that the oracle gives, as a dict."""
    words = oracle.seal_words(tokens)
    out = [(k, t) for k, t in enumerate(tokens) if t >= vocab]
    return {"seal": oracle.seal_text(words), "seal_version": 1, "words": words,
            "tokens": len(tokens), "vocab": vocab,
            "min": min(tokens, default=None), "max": max(tokens, default=None),
            "out_of_vocab": len(out), "first_out_position": out[0][0] if out else None,
            "first_out_value": out[0][1] if out else None}


class DigestTest(unittest.TestCase):
    def assert_digest(self, digest, tokens, vocab=50257):
        self.assertEqual(dict(digest.result()), expected([int(t) for t in tokens], vocab))

    def assert_taken(self, array, tokens):
        """The array is read as these tokens."""
        with iron_tokens.Digest() as digest:
            digest.update(array)
            self.assert_digest(digest, tokens)

    def assert_refused(self, array, error, words):
        """The array is refused with this message, and the digest is unchanged."""
        with iron_tokens.Digest() as digest:
            digest.update(b"ab")
            before = digest.state_dict()
            with self.assertRaisesRegex(error, words):
                digest.update(array)
            self.assertEqual(digest.state_dict(), before)
