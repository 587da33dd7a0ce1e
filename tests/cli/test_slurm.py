# SPDX-License-Identifier: MIT
"""The job array of docs/scale.md on a real Slurm: a controller, one node and munge, started by the
test on ports of its own and stopped at its end.  Part of `make test-long`.

The script is taken from the page; only paths and sizes are changed.  It needs root, and slurmctld,
slurmd and munged (`scripts/deps long`).
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from harness import IRON, SEED, TIMEOUT_S, IronTest, environment

REPO = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([str(Path(IRON).resolve().parent), os.environ.get("PATH", ""), "/usr/sbin"])
DAEMONS = ("munged", "slurmctld", "slurmd")
ABSENT = [name for name in (*DAEMONS, "sbatch") if not shutil.which(name, path=PATH)]
PARTS = 5

CONFIG = """\
ClusterName=test
SlurmctldHost={host}(localhost)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=1,sched_interval=1
NodeName={host} NodeAddr=localhost CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    """Ports that nobody listens on now."""
    listeners = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


@unittest.skipUnless(os.environ.get("IRON_TEST_LONG") == "1", "minutes: needs IRON_TEST_LONG=1")
@unittest.skipUnless(os.geteuid() == 0, "Slurm's daemons need root")
@unittest.skipIf(ABSENT, f"no {', '.join(ABSENT)}; scripts/deps long installs Slurm")
class Slurm(IronTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = Path(tempfile.mkdtemp(prefix="iron-slurm-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)  # munge refuses sockets that others could not reach
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)
        host = socket.gethostname().split(".")[0]
        config = folder / "slurm.conf"
        config.write_text(CONFIG.format(host=host, ports=free_ports(2), folder=folder))
        cls.folder, cls.env = folder, environment({"SLURM_CONF": str(config), "PATH": PATH})
        cls.daemon("munged", "--foreground", "--force", f"--socket={folder}/munge.socket",
                   f"--key-file={folder}/munge.key", f"--pid-file={folder}/munged.pid",
                   f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed")
        cls.wait(lambda: (folder / "munge.socket").exists(), "munge's socket")
        cls.daemon("slurmctld", "-D", "-i", "-f", config)
        cls.daemon("slurmd", "-D", "-f", config)
        cls.wait(lambda: "idle" in cls.slurm("sinfo", "--noheader", "-o", "%t"), "an idle node")

    @classmethod
    def daemon(cls, *command):
        log = open(cls.folder / f"{command[0]}.out", "wb")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env=cls.env)
        log.close()

        def stop():
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

        cls.addClassCleanup(stop)

    @classmethod
    def wait(cls, is_there, what):
        end = time.monotonic() + TIMEOUT_S
        while not is_there():
            if time.monotonic() > end:
                logs = {path.name: path.read_text(errors="replace")[-2000:]
                        for pattern in ("*.out", "*.log") for path in cls.folder.glob(pattern)}
                raise AssertionError(f"Slurm: no {what}: {logs}")
            time.sleep(.2)

    @classmethod
    def slurm(cls, *command, cwd=None):
        """Standard output; empty if the command failed."""
        done = subprocess.run(command, capture_output=True, text=True, env=cls.env, cwd=cwd,
                              timeout=TIMEOUT_S, check=False)
        return done.stdout if done.returncode == 0 else ""

    def ended(self, job):
        """Waits until no task of the job is left in the queue; returns the states of all tasks."""
        def is_over():
            left = self.slurm("squeue", "--noheader", "-t", "all", "-j", job, "-o", "%T").split()
            return left and not {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"} & set(left)

        self.wait(is_over, f"end of job {job}")
        return self.slurm("squeue", "--noheader", "-r", "-t", "all", "-j", job, "-o", "%T").split()

    def submit(self, *args):
        job = self.slurm("sbatch", "--parsable", *args, cwd=self.dir).strip()
        self.assertRegex(job, r"\A\d+\Z")
        return job

    def seal_script(self):
        """The script of docs/scale.md, for this folder, five parts and a small node."""
        page = (REPO / "docs" / "scale.md").read_text(encoding="utf-8")
        block = re.search(r"^    #!/bin/bash\n(?:(?:    .*)?\n)+?(?=\n    \$)", page, re.M).group()
        script = re.sub("^    ", "", block, flags=re.M)
        for old, new in (("--array=1-64", f"--array=1-{PARTS}"), ("/data/shards", "shards"),
                         ("--cpus-per-task=16", "--cpus-per-task=1"), ("--mem=2G", "--mem=100M"),
                         ("16777216", "65536")):
            self.assertEqual(script.count(old), 1, old)
            script = script.replace(old, new)
        self.write("seal.sbatch", script.encode())
        return "seal.sbatch"

    def test_array_and_merge(self):
        (self.dir / "shards").mkdir()
        (self.dir / "logs").mkdir()
        for k in range(3):
            self.succeeds("gen", "--seed", SEED + k, "--count", 400003, "--dtype", "u16", "-o",
                          f"shards/{k}.bin")
        self.succeeds("sum", "shards", "--dtype", "u16", "--chunk", 65536, "--manifest", "whole")
        whole, script = (self.dir / "whole").read_bytes(), self.seal_script()

        # The array, and a job that waits for it, as on the page.
        job = self.submit(script)
        merge = self.submit(f"--dependency=afterok:{job}", "-o", "logs/merge", "--wrap",
                            "iron merge parts/*.json -o corpus.manifest")
        self.assertEqual(self.ended(job), ["COMPLETED"] * PARTS)
        self.assertEqual(self.ended(merge), ["COMPLETED"])
        self.assertEqual((self.dir / "corpus.manifest").read_bytes(), whole)

        # A missing part is refused; the same array computes it again, and no other.
        lost = self.dir / "parts" / "3.json"
        lost.unlink()
        self.refused("merge", *sorted((self.dir / "parts").iterdir()), says="part 3")
        before = {path: path.stat().st_mtime_ns for path in (self.dir / "parts").iterdir()}
        self.assertEqual(self.ended(self.submit(script)), ["COMPLETED"] * PARTS)
        after = {path: path.stat().st_mtime_ns for path in (self.dir / "parts").iterdir()}
        self.assertEqual({path: time for path, time in after.items() if path != lost}, before)
        self.succeeds("merge", *after, "-o", "again")
        self.assertEqual((self.dir / "again").read_bytes(), whole)

    def test_a_failed_part_holds_the_merge(self):
        (self.dir / "shards").mkdir()
        (self.dir / "logs").mkdir()
        self.write("shards/a.bin", b"odd")  # three bytes are no u16
        job = self.submit(self.seal_script())
        merge = self.submit(f"--dependency=afterok:{job}", "--kill-on-invalid-dep=yes", "-o",
                            "logs/merge", "--wrap", "iron merge parts/*.json -o corpus.manifest")
        self.assertEqual(self.ended(job), ["FAILED"] * PARTS)
        self.assertEqual(self.ended(merge), ["CANCELLED"])
        self.assertEqual(list((self.dir / "parts").iterdir()), [])
        self.assertIn("a.bin", (self.dir / "logs" / f"{job}_1.log").read_text())


if __name__ == "__main__":
    unittest.main()
