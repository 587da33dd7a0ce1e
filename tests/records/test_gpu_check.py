#!/usr/bin/env python3
"""Tests of scripts/gpu-check without a GPU: the whole script runs with a fake command, compiler and tools.
The tests check its steps, the record, the archive and the exit status, also when a step fails, when the
time runs out, and when a tool reports an error."""
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

IRON = r'''#!/usr/bin/env python3
import json, os, sys
words, fail = sys.argv[1:], os.environ.get("STUB_FAILS", "")
with open(os.environ["STUB_LOG"], "a") as log:
    log.write(" ".join(words) + "\n")
if fail and fail in " ".join(words):
    sys.exit(1)
def option(name):
    return words[words.index(name) + 1] if name in words else None
def row(glob, size):
    op, backend, name = (glob.split(".") + ["x", "x"])[:3]
    scope = {"median_ms": 1.0, "gb_s": 4000.0, "percent_of_ceiling": 99.0, "samples": [1.0]}
    return {"op": op, "contender": name.replace("*", "champion"), "backend": backend, "memory": "pageable", "size": size,
            "dtype": option("--dtype") or "u32", "params": {}, "peer": "blas" in name, "useful_bytes": 4096, "status": "ok", "verified": True,
            "above_ceiling": False, "baseline": "", "speedup": 1.0, "kernels": [], "scopes": {"kernel": scope}}
if words[0] == "info" and "--json" in words:
    print(json.dumps({"backends": [{"name": "cuda", "devices": [{"is_gpu": True}]}]}))
elif words[0] == "selftest":
    print(json.dumps({"failures": [], "skips": [], "passed": 5, "failed": 0, "skipped": 0}))
elif words[0] == "arena":
    globs = [w for w in words[1:] if "." in w and not w.startswith("-") and "/" not in w] or ["tokens.cuda.champion"]
    sizes = ["1x1", "7x9"] if "random" in (option("--size") or "") else [option("--size") or "1"]
    document = {"schema": "iron.arena/1", "host": {"date": "2026-01-01T00:00:00Z", "cpu": "a processor", "threads": 2}, "devices": [], "ceilings": [], "results": [row(g, s) for s in sizes for g in globs]}
    json.dump(document, open(option("--json"), "w"))
    if option("--html"):
        open(option("--html"), "w").write("a page")
elif words[0] == "gen":
    open(option("-o"), "w").write("tokens")
elif words[0] in ("feed", "sum"):
    assert os.path.exists(words[1]), words[1]
    state = "ab" if words[0] == "feed" and option("--backend") != os.environ.get("STUB_DIFFERS") else "cd"
    document = {"state": state, "seal": "e", "backend": option("--backend"), "seconds": 0.1, "gb_per_s": 40.0}
    print(json.dumps([document] if words[0] == "sum" else document))
'''
BENCH = r'''#!/usr/bin/env python3
import json, sys
json.dump({"threads": 16, "vocab": 1, "nodes": 1, "resident_bytes": 1, "ceiling": "read: x", "ceiling_gb_s": 4000.0, "rows": []},
          open(sys.argv[sys.argv.index("--json") + 1], "w"))
'''
CMAKE = r'''#!/bin/sh
mkdir -p build-gpu && cp "$STUBS"/iron "$STUBS"/bench-gpu "$STUBS"/bench-tokens build-gpu/
touch build-gpu/libiron-peer-cublas.so build-gpu/libiron-peer-openblas.so
'''
SMI = r'''#!/bin/sh
case "$*" in *compute_cap*) echo 9.0 ;; *) echo "NVIDIA Stub, 1.0" ;; esac
'''
NCU = r'''#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in --log-file) log=$2; shift ;; */iron) break ;; esac
    shift
done
printf '"ID","Kernel Name","gpu__time_duration.sum"\n"","","usecond"\n"0","stub_kernel","12.5"\n' >"$log"
exec "$@"
'''
SANITIZER = r'''#!/bin/sh
case " $* " in *" ${STUB_FINDS:-nothing} "*) echo "ERROR SUMMARY: 3 errors"; exit 9 ;; esac
echo "ERROR SUMMARY: 0 errors"
'''


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.tree = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        os.makedirs(self.path("scripts"))
        os.makedirs(self.path("stubs"))
        for name in ("gpu-check", "record"):
            shutil.copy2(os.path.join(root, "scripts", name), self.path("scripts", name))
        shutil.copytree(os.path.join(root, "scripts", "records"), self.path("scripts", "records"),
                        ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in (("iron", IRON), ("bench-gpu", BENCH), ("bench-tokens", BENCH), ("cmake", CMAKE), ("nvidia-smi", SMI),
                           ("ncu", NCU), ("compute-sanitizer", SANITIZER), ("nvcc", "#!/bin/sh\necho stub\n")):
            with open(self.path("stubs", name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(self.path("stubs", name), 0o755)
        os.makedirs(self.path("tests", "cli"))
        with open(self.path("tests", "cli", "run.py"), "w", encoding="utf-8") as file:
            file.write("import os, sys\nsys.exit(print(os.environ['IRON'], *sys.argv[1:]))\n")

    def path(self, *names):
        return os.path.join(self.tree, *names)

    def check(self, *words, status=0, **variables):
        environment = {**os.environ, "PATH": self.path("stubs") + os.pathsep + os.environ["PATH"], "STUBS": self.path("stubs"),
                       "STUB_LOG": self.path("calls"), "IRON_CHECK_COMMIT": "0123456789", **variables}
        environment.pop("OUT", None)
        done = subprocess.run([self.path("scripts", "gpu-check"), *words], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def result(self, name):
        with open(self.path("build-gpu", "results", name), encoding="utf-8") as file:
            return json.load(file)

    def claim(self, start):
        return next(c for c in self.result("record.json")["claims"] if c["what"].startswith(start))

    def test_complete_run(self):
        self.check("--profile")
        record = self.result("record.json")
        self.assertEqual(record["machine"]["commit"], "0123456789")
        self.assertEqual({s["status"] for s in record["steps"]}, {0})
        self.assertEqual([t["passed"] for t in record["selftests"]], [5, 5])
        self.assertGreaterEqual(len(record["sanitizers"]), 10)
        self.assertEqual([len(record["feeds"][d]) for d in ("u32", "u16")], [6, 6])
        self.assertEqual(len(record["sums"]), 4)
        for race in ("tokens", "seal", "atax-f32", "atax-talk", "histogram-128256", "transpose", "layout", "residency", "cpu",
                     "sweep-cuda", "sweep-cpu", "whole-3"):
            self.assertIn(race, record["races"])
        self.assertGreaterEqual(len(record["profiles"]), 15)
        self.assertEqual({(p["kernel"], p["time_us"]) for p in record["profiles"]}, {("stub_kernel", 12.5)})
        self.assertEqual(self.claim("compute-sanitizer")["status"], "met")
        self.assertEqual(self.claim("three whole races")["status"], "met")
        with open(self.path("build-gpu", "results", "contenders.log"), encoding="utf-8") as file:
            self.assertIn("/build-gpu/iron test_contenders.OnCuda\n", file.read())
        self.assertEqual(self.claim("single-pass over OpenBLAS, 200 random")["figure"], 1.0)
        with tarfile.open(self.path("build-gpu", "results", "record.tar.gz")) as archive:
            names = {os.path.basename(n) for n in archive.getnames()}
        self.assertLessEqual({"record.json", "record.html", "arena-tokens.json", "sanitizer.log", "steps.jsonl"}, names)
        self.assertFalse(os.path.exists(self.path("build-gpu", "tokens.bin")))

    def test_record_contains_no_local_paths(self):
        self.check("selftest")
        self.assertNotIn(self.tree, json.dumps(self.result("record.json")))

    def test_selected_parts(self):
        self.check("cpu")
        with open(self.path("calls"), encoding="utf-8") as file:
            calls = file.read()
        self.assertIn("tokens.cpu", calls)
        self.assertNotIn("selftest", calls)
        self.assertNotIn("cuda", calls)
        self.check("selftest")
        self.assertFalse(os.path.exists(self.path("build-gpu", "results", "arena-cpu.json")))
        said = self.check("burn", status=2).stderr
        self.assertIn("'burn'", said)
        self.assertEqual(said.count("\n"), 1)

    def test_parts_are_added_to_a_record_of_the_same_commit(self):
        self.check("selftest")
        self.check("--add", "sweep")
        record = self.result("record.json")
        self.assertEqual([t["passed"] for t in record["selftests"]], [5, 5])
        self.assertIn("sweep-cuda", record["races"])
        said = self.check("--add", "cpu", status=2, IRON_CHECK_COMMIT="another").stderr
        self.assertIn("of another commit or machine", said)
        self.assertEqual(self.result("record.json")["machine"]["commit"], "0123456789")

    def test_without_profile_no_counters_are_read(self):
        self.check("cpu", "sanitize")
        self.assertEqual(self.result("record.json")["profiles"], [])

    def test_failure_stops_the_run_and_keeps_earlier_results(self):
        self.check(status=1, STUB_FAILS="atax.cuda.*")
        self.assertEqual(self.claim("selftest")["status"], "met")
        self.assertEqual(self.claim("single-pass over cuBLAS, f32 16384²")["status"], "not measured")
        self.assertEqual(self.result("record.json")["steps"][-1]["status"], 1)
        self.assertTrue(os.path.exists(self.path("build-gpu", "results", "record.tar.gz")))

    def test_different_states_are_reported(self):
        self.assertIn("states of one stream differ", self.check("engine", status=1, STUB_DIFFERS="cpu").stderr)

    def test_sanitizer_errors_fail_the_run(self):
        self.check("sanitize", status=1, STUB_FINDS="racecheck")
        found = {s["name"].split("-")[0]: s["status"] for s in self.result("record.json")["sanitizers"]}
        self.assertEqual(found, {"memcheck": 0, "synccheck": 0, "initcheck": 0, "racecheck": 9})
        self.assertEqual(self.claim("compute-sanitizer")["status"], "missed")

    def test_time_limit(self):
        self.check("cpu", status=124, IRON_CHECK_SECONDS="0")
        self.assertTrue(os.path.exists(self.path("build-gpu", "results", "record.json")))


if __name__ == "__main__":
    unittest.main()
