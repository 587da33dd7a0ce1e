# SPDX-License-Identifier: MIT
"""`iron-mpi` with 1 to 8 ranks prints the same as `iron`, or an error.

Ranks are started by Open MPI's mpirun, more of them than there are cores.  Results are compared with
those of the serial command, word for word but for times; saved states byte for byte.  The small
cases are also compared with the oracle.

There must be no result if one rank fails.  A rank that sees other files
is simulated by a script that gives rank 1 another folder; one that dies is killed while it reads a
sparse file of 256 GiB, which takes no disk and lasts long enough.

Environment: IRON_MPI, path of iron-mpi (default: beside iron); MPIRUN (default: mpirun).
"""

import os
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest
from pathlib import Path

from harness import (IRON, REDUCED, SANITIZED, SEED, TIMEOUT_S, IronTest, Result, environment, npy, oracle, pack,
                     parse_json)

IRON_MPI = os.path.abspath(os.environ.get("IRON_MPI") or Path(IRON).with_name("iron-mpi"))
MPIRUN = shutil.which(os.environ.get("MPIRUN") or "mpirun")
RANKS = (1, 3, 8) if REDUCED else (1, 2, 3, 4, 8)

# Open MPI needs options to run as root, on few cores and in containers without single-copy rights.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_btl": "self,vader",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
TIMES = ("seconds", "gb_per_s", "setup_seconds")
OTHER_FOLDER = '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" != 1 ] || cd other || exit 3\nexec "$@"\n'


def without_times(found):
    """JSON without what differs from run to run, and without the number of ranks."""
    if isinstance(found, list):
        return [without_times(item) for item in found]
    return {k: v for k, v in found.items() if k not in TIMES + ("ranks",)}


def lines_without_time(text: str) -> list:
    return [line for line in text.splitlines() if not line.startswith(("time", "ranks"))]


@unittest.skipUnless(os.access(IRON_MPI, os.X_OK), f"no iron-mpi at {IRON_MPI}")
@unittest.skipUnless(MPIRUN, "no mpirun here")
class MpiTest(IronTest):
    def command(self, ranks, *args, wrapper=()) -> list:
        return [MPIRUN, "--quiet", "-n", str(ranks), *wrapper, IRON_MPI, *map(str, args)]

    def mpi(self, ranks, *args, wrapper=(), stdin=subprocess.DEVNULL, env=()) -> Result:
        done = subprocess.run(self.command(ranks, *args, wrapper=wrapper), stdin=stdin,
                              capture_output=True, cwd=self.dir, timeout=TIMEOUT_S, check=False,
                              env=environment(MPI_ENVIRONMENT | dict(env)))
        return Result(args, done.returncode, done.stdout, done.stderr)

    def mpi_json(self, ranks, *args):
        result = self.mpi(ranks, *args, "--json")
        self.assertEqual((result.code, result.err), (0, b""), str(result))
        found = parse_json(result.out)
        for item in found if isinstance(found, list) else [found]:
            self.assertEqual(item["ranks"], ranks)
        return found

    def same(self, ranks, *args):
        """Both commands print the same JSON, with the same keys in the same order."""
        serial = self.json(args[0], *args[1:], "--backend", "cpu")
        found = self.mpi_json(ranks, *args)
        self.assertEqual(without_times(serial), without_times(found), f"{ranks} ranks: {args}")
        first = serial[0] if isinstance(serial, list) else serial
        keys = list((found[0] if isinstance(found, list) else found).keys())
        self.assertEqual(list(first.keys()), [k for k in keys if k != "ranks"])
        return found

    def same_state(self, ranks, *args):
        """Feeds, and the saved states are the same bytes."""
        serial = self.feed(*args, "--state", "serial.state")
        found = self.mpi_json(ranks, "feed", *args, "--state", "ranks.state")
        self.assertEqual(without_times(serial), without_times(found), f"{ranks} ranks: {args}")
        self.assertEqual((self.dir / "serial.state").read_bytes(),
                         (self.dir / "ranks.state").read_bytes(), f"{ranks} ranks: {args}")
        return found

    def failed(self, result: Result, says):
        """Exit 2, empty standard output, and one line with this text."""
        self.assertEqual((result.code, result.out), (2, b""), str(result))
        self.assertRegex(result.message, r"\Airon-mpi: [^\n]+\n\Z", str(result))
        self.assertRegex(result.message, says)


class Equal(MpiTest):
    def setUp(self):
        super().setUp()
        dice = random.Random(SEED)
        self.tokens = [dice.randrange(50300) for _ in range(70001)]
        for name, first, end in (("a.bin", 0, 33333), ("b.bin", 33333, 33334),
                                 ("c.bin", 33334, 33334), ("d.bin", 33334, 70001)):
            self.write_tokens(name, self.tokens[first:end], "u16")
        self.files = ("a.bin", "b.bin", "c.bin", "d.bin", "--dtype", "u16")

    def test_sum_of_a_stream(self):
        for ranks in RANKS:
            found = self.same(ranks, "sum", *self.files, "--stream")
        self.assertEqual(found[0]["seal"], oracle.seal(self.tokens))

    def test_sum_of_files(self):
        for ranks in (1, 3, 8):
            self.same(ranks, "sum", *self.files, "--vocab", 40000)
        serial = self.succeeds("sum", *self.files)
        self.assertEqual(self.mpi(3, "sum", *self.files).out, serial.out)

    def test_sum_of_a_large_file(self):
        """Large enough for every rank to have a part; other files are dealt out."""
        self.succeeds("gen", "--seed", 3, "--count", 5000003, "--limit", 1000, "--dtype", "u16",
                      "-o", "large.bin")
        self.same(4, "sum", "large.bin", *self.files)

    def test_sum_of_a_folder_of_kinds(self):
        """Files of different formats and widths, which do not form one stream."""
        self.write("shards/x.npy", npy(range(500), "<u2", "H"))
        self.write("shards/y.npy", npy(range(70000, 70100), "<u4", "I"))
        self.same(2, "sum", "shards")

    def test_bags(self):
        """Ranks are cut at samples; those of --sample and --eos span files."""
        for option in (("--sample", 1000), ("--sample", 3), ("--eos", 7)):
            for ranks in (1, 3, 8):
                self.same(ranks, "sum", "--bag", *option, *self.files, "--stream")
            self.same(3, "sum", "--bag", *option, *self.files)
            serial = self.succeeds("sum", "--bag", *option, *self.files)
            self.assertEqual(self.mpi(3, "sum", "--bag", *option, *self.files).out, serial.out)
        self.failed(self.mpi(2, "sum", "--bag", *self.files), "--sample LENGTH or --eos E")

    def test_documents(self):
        """Of an index: empty ones, and files without tokens."""
        dice = random.Random(SEED)
        for name, lengths in (("x.ds", [dice.choice((0, 1, 9, 400)) for _ in range(300)]),
                              ("y.ds", [0, 0, 0]), ("z.ds", [2000])):
            ends = [sum(lengths[:k + 1]) for k in range(len(lengths))]
            self.write_tokens(name, [dice.randrange(9) for _ in range(ends[-1])], "u16")
            self.write(f"{name}.index", struct.pack(f"<{len(ends)}Q", *ends))
            self.write(f"{name}.metadata", f"gpt2|2\n{ends[-1]}\n".encode())
        files = ("x.ds", "y.ds", "z.ds")
        for ranks in (1, 3, 8):
            self.same(ranks, "sum", "--bag", "--stream", *files)
            self.same(ranks, "sum", "--bag", *files)
            self.same(ranks, "stat", "--vocab", 10, "--hist", *files)
            self.same(ranks, "sum", "--bag", "y.ds")

    def test_stat(self):
        options = ("--vocab", 50257, "--eos", 7, "--hist", "--top", 3)
        for ranks in RANKS:
            self.same(ranks, "stat", *self.files, *options)
        serial = self.iron("stat", *self.files, *options)
        found = self.mpi(3, "stat", *self.files, *options)
        self.assertEqual(lines_without_time(serial.text), lines_without_time(found.text))
        self.assertEqual(found.code, 0, str(found))

    def test_runs_and_documents_across_ranks(self):
        """One document and one run, each split over several ranks."""
        self.write_tokens("run.bin", [9] * 1000 + [5] * 3000 + [0], "u16")
        for ranks in (3, 8):
            found = self.same(ranks, "stat", "run.bin", "--dtype", "u16", "--vocab", 10, "--eos", 0)
            self.assertEqual(found["longest_run"], {"length": 3000, "position": 1000, "value": 5})
            self.assertEqual(found["documents"]["max"], 4001)

    def test_feed(self):
        for ranks in RANKS:
            found = self.same_state(ranks, *self.files, "--batch", 999, "--nodes", 300, "--seal")
        engine = oracle.Engine(oracle.Config(batch=999, nodes=300))
        self.assert_report(engine.feed(self.tokens).report(), found)

    def test_feed_in_order(self):
        """A lattice up to 65,535: 256 batches may pass 2^24, so they are transferred one by one."""
        for ranks in RANKS:
            self.same_state(ranks, *self.files, "--batch", 7, "--nodes", 40, "--seal",
                            "--lattice", "1,2,30,65535")

    def test_feed_in_rounds(self):
        """More batches than a block holds: several rounds, the last one not full."""
        self.succeeds("gen", "--seed", 4, "--count", 1700001, "--limit", 50257, "--dtype", "u16",
                      "-o", "many.bin")
        for ranks in (1, 2):
            self.same_state(ranks, "many.bin", "--dtype", "u16", "--batch", 1, "--nodes", 3,
                            "--positions", "batch", "--lattice", "3,65535")

    def test_feed_few_nodes(self):
        """Fewer nodes than points, so that the nodes do not show where every point goes."""
        self.same_state(3, *self.files, "--batch", 100, "--nodes", 1)
        self.same_state(2, *self.files, "--batch", 1000, "--nodes", 5, "--positions", "batch",
                        "--mode", "scalar")

    def test_resume(self):
        self.feed("a.bin", "--dtype", "u16", "--batch", 500, "--state", "half.state")
        self.same_state(3, "d.bin", "--dtype", "u16", "--resume", "half.state")
        # sealed up to a position inside a quad: ranks cannot continue, one process can
        self.feed("a.bin", "--dtype", "u16", "--batch", 500, "--seal", "--state", "odd.state")
        self.failed(self.mpi(2, "feed", "d.bin", "--dtype", "u16", "--resume", "odd.state"),
                    "33333.*iron feed")

    def test_fewer_tokens_than_ranks(self):
        for count in (0, 1, 5):
            self.write_tokens("few.bin", range(count), "u32")
            few = ("few.bin", "--dtype", "u32")
            self.same(8, "sum", *few)
            if count in (0, 5):
                self.same(8, "stat", *few, "--vocab", 4, "--eos", 1, "--hist")
                self.same_state(8, *few, "--batch", 1, "--seal")


@unittest.skipIf(SANITIZED, "a sanitizer in MPI and OpenCL at once")
class Devices(MpiTest):
    """--device auto: the ranks of a machine take its devices in turn.  PoCL shows three."""

    # one kind of device, whose kernels other tests have compiled, and only those that are launched
    ENV = {"POCL_DEVICES": "pthread pthread pthread", "IRON_OPENCL_CACHE": "0"}

    def setUp(self):
        super().setUp()
        info = self.json("info", "--backend", "opencl", env=self.ENV)
        devices = next(b["devices"] for b in info["backends"] if b["name"] == "opencl")
        if len(devices) != 3 or any(device["is_gpu"] for device in devices):
            self.skipTest(f"needs PoCL alone, here are {[device['name'] for device in devices]}")
        self.succeeds("gen", "--seed", 8, "--count", 300007, "--limit", 60000, "--dtype", "u16",
                      "-o", "a.bin")

    def test_feed(self):
        options = ["a.bin", "--dtype", "u16", "--batch", 10000]
        expected = self.feed(*options, "--state", "serial")
        self.feed(*options, backend="opencl", env=self.ENV)  # compiles once, not in every rank
        for ranks, where, backend, devices in (
                (4, ["--backend", "opencl", "--device", "auto"], "opencl", [0, 1, 2, 0]),
                (2, ["--backend", "opencl", "--device", "auto"], "opencl", [0, 1]),
                (2, ["--backend", "opencl", "--device", "1"], "opencl", None),
                (3, ["--device", "auto"], "cpu", [0, 0, 0])):  # without a GPU
            with self.subTest(ranks=ranks, where=where):
                found = self.mpi(ranks, "feed", *options, "--threads", 1, "--state", "state",
                                 "--json", *where, env=self.ENV)
                self.assertEqual(found.code, 0, str(found))
                report = parse_json(found.out)
                self.assertEqual((report["state"], report["backend"], report.get("rank_devices")),
                                 (expected["state"], backend, devices))
                self.assertEqual((self.dir / "state").read_bytes(),
                                 (self.dir / "serial").read_bytes())

    def test_a_backend_without_devices_is_refused(self):
        self.failed(self.mpi(2, "feed", "a.bin", "--dtype", "u16", "--backend", "opencl", "--device",
                             "auto", env={"IRON_OPENCL_LIBRARY": "none"}), "backend opencl is absent")


class Unequal(MpiTest):
    """If one rank fails, there is no result."""

    def setUp(self):
        super().setUp()
        self.write_tokens("a.bin", range(1000), "u16")
        self.write("elsewhere.sh", OTHER_FOLDER.encode())
        (self.dir / "elsewhere.sh").chmod(0o755)
        (self.dir / "other").mkdir()

    def elsewhere(self, *args):
        return self.mpi(3, *args, wrapper=["./elsewhere.sh"])

    def test_missing_file_on_one_rank(self):
        for command in (["sum"], ["stat", "--vocab", 9], ["feed"]):
            self.failed(self.elsewhere(*command, "a.bin", "--dtype", "u16"),
                        "rank 1: cannot open a.bin")

    def test_different_file_on_one_rank(self):
        self.write("other/a.bin", pack(range(998), "u16"))
        self.failed(self.elsewhere("sum", "a.bin", "--dtype", "u16"),
                    "rank 1: has other files .*998 tokens.*1000")
        self.failed(self.elsewhere("feed", "a.bin", "--dtype", "u16", "--state", "s"), "rank 1")
        self.assertFalse((self.dir / "s").exists())

    def test_common_errors_name_no_rank(self):
        self.failed(self.mpi(2, "sum", "nothing.bin", "--dtype", "u16"),
                    r"\Airon-mpi: cannot open nothing.bin")
        self.failed(self.mpi(2, "sum", "a.bin"), "dtype")
        self.failed(self.mpi(2, "sum", "a.bin", "--frobnicate"), "--frobnicate")
        self.failed(self.mpi(2, "frobnicate"), "frobnicate")
        self.failed(self.mpi(2, "sum"), "no input")

    def test_pipes_are_refused(self):
        os.mkfifo(self.dir / "pipe")
        self.failed(self.mpi(2, "sum", "pipe", "--dtype", "u16"), "pipe is not a regular file")
        self.failed(self.mpi(2, "feed", "-", "--dtype", "u16"), "standard input")

    def test_invalid_token_on_one_rank(self):
        self.write("bad.bin", pack(range(2000), "i32") + pack([-1] + [0] * 999, "i32"))
        for command in (["sum"], ["stat", "--vocab", 9], ["feed", "--batch", 100, "--state", "s"]):
            self.failed(self.mpi(4, *command, "bad.bin", "--dtype", "i32"), "rank [23]: .*-1")
        self.assertFalse((self.dir / "s").exists())

    def test_unwritable_state(self):
        self.failed(self.mpi(2, "feed", "a.bin", "--dtype", "u16", "--state", "no/such/folder"),
                    "rank 0: cannot write into no/such")
        self.failed(self.mpi(2, "feed", "a.bin", "--dtype", "u16", "--state", "a.bin"), "input")

    def rank_reading(self, rank, job, name) -> int:
        """The process of a rank, once it has the file open."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end and job.poll() is None:
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    variables = (process / "environ").read_bytes().split(b"\0")
                    if (b"OMPI_COMM_WORLD_RANK=%d" % rank not in variables
                            or f"IRON_TEST_JOB={self.dir}".encode() not in variables):
                        continue
                    if any(os.readlink(fd).endswith(name) for fd in (process / "fd").iterdir()):
                        return int(process.name)
                except OSError:
                    continue  # it has ended, or belongs to another user
            time.sleep(0.01)
        self.fail(f"rank {rank} did not come to read")

    def test_killed_rank_ends_all_ranks(self):
        with open(self.dir / "sparse.bin", "wb") as sparse:
            sparse.truncate(1 << 38)
        env = environment(MPI_ENVIRONMENT | {"IRON_TEST_JOB": str(self.dir)})
        for command in (["sum"], ["feed", "--state", "s"]):
            with subprocess.Popen(
                    self.command(3, *command, "sparse.bin", "--dtype", "u16", "--threads", 1),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    cwd=self.dir, env=env) as job:
                try:
                    os.kill(self.rank_reading(1, job, "sparse.bin"), signal.SIGKILL)
                    out, _ = job.communicate(timeout=TIMEOUT_S)
                finally:
                    job.kill()
            self.assertEqual(job.returncode, 128 + signal.SIGKILL)
            self.assertEqual(out, b"")
        self.assertFalse((self.dir / "s").exists())


class Help(MpiTest):
    def test_help_and_version_are_printed_once(self):
        self.assertEqual(self.mpi(3, "--version").text.count("iron-mpi "), 1)
        for args in (["--help"], ["sum", "--help"], ["stat", "--help"], ["feed", "--help"]):
            result = self.mpi(3, *args)
            self.assertEqual((result.code, result.text.count("usage:")), (0, 1), str(result))

    def test_iron_and_the_library_do_not_link_mpi(self):
        """The library and `iron` must not need MPI to start."""
        for name in ("iron", "libiron.so"):
            path = Path(IRON).with_name(name)
            if path.exists():
                needs = subprocess.run(["ldd", path], capture_output=True, check=False).stdout
                self.assertNotIn(b"libmpi", needs, name)


if __name__ == "__main__":
    unittest.main()
