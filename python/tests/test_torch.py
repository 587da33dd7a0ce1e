# SPDX-License-Identifier: MIT
"""PyTorch's tensors, of every type and layout.  On a machine with a GPU, and a torch for it:

    IRON_CUDA_LIBRARY=libcuda.so.1 IRON_TEST_TORCH_DEVICE=cuda python3 -B python/tests/test_torch.py
"""

import importlib.util
import os
import tempfile
import unittest
from pathlib import Path

from support import DigestTest, oracle

from iron_tokens import Digest, IronError, Recorder, bag, seal

if importlib.util.find_spec("torch"):
    import torch
else:
    torch = None

DEVICE = os.environ.get("IRON_TEST_TORCH_DEVICE", "cpu")
TOKENS = oracle.gen(13, 8192, 120)


@unittest.skipUnless(torch, "PyTorch is not installed (scripts/deps long)")
class Tensors(DigestTest):
    def tensor(self, values, dtype=None):
        return torch.tensor(values, dtype=dtype, device=DEVICE)

    def test_types_and_layouts(self):
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            tensor = self.tensor(TOKENS, dtype)
            rows = tensor.reshape(64, 128)
            self.assert_taken(tensor, TOKENS)
            self.assert_taken(rows, TOKENS)
            self.assert_taken(tensor[3:], TOKENS[3:])
            self.assert_taken(tensor[:0], [])
            self.assert_taken(tensor[5], TOKENS[5:6])
            self.assert_taken(rows[:, :-1], rows[:, :-1].flatten().tolist())
            self.assert_taken(rows.T, rows.T.flatten().tolist())
            self.assert_taken(tensor.expand(3, -1), 3 * TOKENS)

    def test_refused(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.bool):
            self.assert_refused(self.tensor([1, 0], dtype), TypeError, "")
        for dtype, value in ((torch.int8, -3), (torch.int16, -300), (torch.int32, -1),
                             (torch.int64, -1), (torch.int64, 2**32)):
            for at in (1, 4000):
                values = [1] * 5000
                values[at] = value
                self.assert_refused(self.tensor(values, dtype), IronError,
                                    f"position {2 + at} is {value};")
        self.assert_refused(torch.ones(2, device=DEVICE, requires_grad=True), TypeError, "grad|require")

    def test_read_where_it_is(self):
        tensor = self.tensor(TOKENS, torch.int32)
        with Digest() as digest:
            digest.update(tensor)
            tensor[17] = 119
            digest.update(tensor)
            changed = TOKENS[:17] + [119] + TOKENS[18:]
            self.assert_digest(digest, TOKENS + changed)

    def test_bags_and_ledgers(self):
        rows = self.tensor(TOKENS, torch.int16).reshape(64, 128)
        self.assertEqual(bag(rows), oracle.bag(rows.tolist()))
        self.assertEqual(bag(iter(rows)), oracle.bag(rows.tolist()))
        with tempfile.TemporaryDirectory() as folder:
            ledgers = [Path(folder) / "a", Path(folder) / "b"]
            for path, batch in zip(ledgers, (rows, rows.tolist())):
                with Recorder(path) as recorder:
                    recorder.step(0, batch)
            sizes = [path.stat().st_size for path in ledgers]
        self.assertEqual(sizes[0], sizes[1])

    @unittest.skipUnless(DEVICE.startswith("cuda"), "IRON_TEST_TORCH_DEVICE is not a CUDA device")
    def test_work_of_the_current_stream_is_awaited(self):
        with torch.cuda.stream(torch.cuda.Stream(DEVICE)):
            tensor = self.tensor([0] * len(TOKENS), torch.int32)
            torch.cuda._sleep(100_000_000)
            tensor.copy_(self.tensor(TOKENS, torch.int32))
            self.assertEqual(seal(tensor), oracle.seal(TOKENS))


if __name__ == "__main__":
    unittest.main()
