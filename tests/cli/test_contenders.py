# SPDX-License-Identifier: MIT
"""Contenders from files: `iron arena --template`, `--contender`, `--define`, and the referee.

tests/cheats has contenders that cheat, one idea each.  None may get through, and no honest one may
be accused.  Nothing depends on how fast anything is: where a rate gives a cheat away, it is wrong
by orders of magnitude.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from arena_support import CPU_ONLY, ArenaTest
from harness import (FULL, IRON, LONG, REDUCED, REPO, SANITIZED, TIMEOUT_S, environment, iron,
                     parse_json)

CHEATS = REPO / "tests" / "cheats"
OWN_OPS = REPO / "tests" / "own_ops"
OPS = ("tokens", "seal", "atax", "layout", "histogram", "transpose", "fusion", "adaptive",
       "divergence", "barrier", "banks", "gather", "occupancy", "residency")
CAUGHT = ("wrong", "implausible", "failed")
# One value of each parameter: for races that take long.
ONE_CASE = {"histogram": "data=uniform", "banks": "stride=16", "layout": "fields=all",
            "fusion": "chain=long", "residency": "table=1", "adaptive": "density=0.25",
            "divergence": "keys=random", "barrier": "reach=grid", "gather": "order=random",
            "seal": "lanes=all", "new-op": "radius=8"}


def one_case(ops) -> list:
    return [word for op in ops if op in ONE_CASE for word in ("--param", ONE_CASE[op])]


def options(*files) -> list:
    return [word for file in files for word in ("--contender", file)]


def results(*args, env=None, timeout=20 * TIMEOUT_S, cwd=None) -> tuple[int, dict, bytes]:
    """Exit status, rows by contender's name, and standard error."""
    done = iron("arena", *args, "--json", "-", env=CPU_ONLY if env is None else env,
                timeout=timeout, cwd=cwd)
    if not done.out:
        raise AssertionError(str(done))
    rows = {}
    for row in parse_json(done.out)["results"]:
        rows.setdefault(row["contender"], []).append(row)
    return done.code, rows, done.err


class Contenders(ArenaTest):
    def template(self, name: str, to: str) -> Path:
        path = self.dir / to
        path.write_text(self.succeeds("arena", "--template", name).text)
        return path

    def broken(self, *args, word: str) -> None:
        result = self.arena(*args, env=CPU_ONLY)
        self.assertEqual(result.code, 2, str(result))
        self.assertIn(word, result.err.decode())
        self.assertEqual(result.err.count(b"\n"), 1)


class Choices(Contenders):
    def test_there_is_a_template_of_every_op_in_every_language(self):
        for op in (*OPS, "new-op"):
            for ending in ("c", "cl", "cu"):
                text = self.succeeds("arena", "--template", f"{op}.{ending}").text
                self.assertIn("iron: new op smooth" if op == "new-op" else f"iron: op {op}", text)
                self.assertNotIn("$", text)
                self.assertNotIn("@@", text)

    def test_what_cannot_be_a_contender_is_refused_by_name(self):
        mine = self.template("histogram.c", "mine.c")
        text = mine.read_text()
        (self.dir / "none.c").write_text("int main(void) { return 0; }\n")
        (self.dir / "other.c").write_text(text.replace("op histogram", "op sorting"))
        (self.dir / "bad name.c").write_text(text)
        (self.dir / "plain.c").write_text(text)
        (self.dir / "mine.txt").write_text(text)
        self.broken("--template", "sorting.c", word="sorting.c")
        self.broken("--template", "histogram.rs", word="histogram.rs")
        self.broken("--contender", "absent.c", word="absent.c")
        self.broken("--contender", "none.c", word="which op")
        self.broken("--contender", "other.c", word="'sorting'")
        self.broken("--contender", "bad name.c", word="letters")
        self.broken("--contender", "plain.c", word="rename")
        self.broken("--contender", "mine.txt", word=".cu")
        self.broken("--contender", "mine.c", "--contender", "mine.c", word="two contenders")
        self.broken("--contender", "mine.c", "-D", "BLOCK", word="BLOCK")
        self.broken("--contender", "mine.c", "-D", "A B=1", word="A B")
        self.broken("--contender", "mine.c", "-D", "A=1;2", word="1;2")
        self.broken("-D", "A=1", word="--contender")

    def test_without_globs_its_op_races(self):
        self.template("gather.c", "mine.c")
        names = self.names("--contender", "mine.c", "--size", 1000)
        self.assertIn("gather.cpu.mine", names)
        self.assertEqual({name.split(".")[0] for name in names}, {"gather"})

    def test_every_combination_of_definitions_is_a_row(self):
        self.template("occupancy.c", "mine.c")
        names = self.names("*.mine.*", "--contender", "mine.c", "-D", "A=1,2", "-D", "B=x,y")
        self.assertEqual(sorted(names), [f"occupancy.cpu.mine.A={a},B={b}"
                                         for a in "12" for b in "xy"])

    def test_the_contenders_process_is_no_command(self):
        self.assertEqual(self.iron("arena-contender").code, 2)


class Documentation(Contenders):
    def test_the_examples_work_as_they_stand(self):
        blocks = re.findall(r"```sh\n(.*?)```", (REPO / "docs" / "contenders.md").read_text(), re.S)
        self.assertEqual(len(blocks), 3)
        opencl = parse_json(self.iron("info", "--backend", "opencl", "--json").out)["backends"][0]
        (self.dir / "bin").mkdir()
        (self.dir / "bin" / "iron").symlink_to(IRON)
        for block in blocks:
            if ".cl" in block and not opencl["devices"]:
                continue
            done = subprocess.run(["sh", "-e", "-c", block], cwd=self.dir, capture_output=True, check=False,
                                  env=environment({"PATH": f"{self.dir}/bin:{os.environ['PATH']}"}))
            self.assertEqual((done.returncode, done.stderr), (0, b""), done)
            self.assertRegex(done.stdout, rb"(?m)^ *\d+ .*\w+\.\w+\.(mine|smooth) ")

    def test_every_cheat_is_described(self):
        text = (REPO / "docs" / "referee.md").read_text()
        described = re.findall(r"(?m)^\| `(\w+)` \| (.*) \|$", text)
        files = {file.stem for file in CHEATS.glob("*.c*")} - {"prelude"}
        self.assertEqual({name for name, _ in described}, files)
        self.assertEqual({name for name, what in described if "OpenCL" in what},
                         {file.stem for file in CHEATS.glob("*.cl")})


class Races(Contenders):
    def test_definitions_and_flags_reach_the_compiler(self):
        mine = self.template("occupancy.c", "mine.c")
        mine.write_text(mine.read_text().replace("c->rows; k++", "c->rows - SKIP - MORE; k++")
                        .replace("/* A", "/* iron: flags -DMORE=0\n * A"))
        code, rows, _ = results("*.mine.*", *options(mine), "-D", "SKIP=0,1", "--size", 1000,
                                "--runs", 3)
        self.assertEqual(code, 1)
        self.assertEqual(rows["mine.SKIP=0"][0]["status"], "ok")
        self.assertEqual(rows["mine.SKIP=1"][0]["status"], "wrong")

    def test_compile_errors_are_the_compilers_and_the_others_race(self):
        (self.dir / "mine.c").write_text(
            'const char iron_contender[] = "iron: op occupancy";\nint iron_run(\n')
        good = self.template("occupancy.c", "good.c")
        code, rows, err = results("*.mine", "*.good", *options("mine.c", good), "--size", 1000,
                                  "--runs", 3, cwd=self.dir)
        self.assertEqual(code, 1)
        self.assertEqual((rows["mine"][0]["status"], rows["good"][0]["status"]), ("failed", "ok"))
        self.assertIn(b"mine.c:2", err)

    def test_a_shared_library_races(self):
        source = self.template("barrier.c", "mine.c")
        library = self.dir / "mine.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-DREACH=0", "-I", REPO / "include", "-o",
                        library, source], check=True)
        code, rows, err = results("*.mine", *options(library), "--param", "reach=block", "--size",
                                  5000, "--runs", 3)
        self.assertEqual((code, err), (0, b""))
        row = rows["mine"][0]
        self.assertEqual((row["status"], row["outside"], row["verified"]), ("ok", True, True))

    def test_an_answer_without_reading_is_implausible(self):
        code, rows, err = results("*.knows_the_data", "histogram.cpu.plain",
                                  *options(CHEATS / "knows_the_data.c"), "--size", 1 << 26,
                                  "--param", "data=sorted", "--threads", 1, "--runs", 3)
        self.assertEqual(code, 1)
        self.assertIn(b"implausible", err)
        self.assertEqual(rows["knows_the_data"][0]["status"], "implausible")
        self.assertEqual(rows["knows_the_data"][0]["scopes"], {})
        self.assertEqual((rows["plain"][0]["status"], rows["plain"][0]["outside"]), ("ok", False))


class OwnOps(Contenders):
    """Ops that files bring: the template new-op, and tests/own_ops; all in one race."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        home = Path(tempfile.mkdtemp(prefix="iron-contenders-"))
        cls.addClassCleanup(shutil.rmtree, home, ignore_errors=True)
        text = iron("arena", "--template", "new-op.c").text
        contender = text.partition("#else")[2].replace("#endif", "")

        def write(name: str, what: str, *changes: tuple[str, str]) -> str:
            for old, new in changes:
                assert old in what, old
                what = what.replace(old, new)
            (home / name).write_text(what)
            return name

        def op(name: str, *changes: tuple[str, str]) -> str:
            return write(f"{name}.c", text, ("new op smooth", f"new op {name}"), *changes)

        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", REPO / "include", "-o",
                        home / "library.so", OWN_OPS / "fold.c"], check=True)
        # contenders come before their op, too
        files = (OWN_OPS / "sliding.c", OWN_OPS / "reads_the_op.c",
                 write("half.c", "/* iron: op smooth */" + contender,
                       ("< c->rows; k", "< c->rows / 2; k")),
                 write("own.c", text),
                 write("nothing.c", "/* iron: op crash */" + contender, ("< c->rows; k", "< 0; k")),
                 op("crash", ("if (!(fabs", "if (y[k] != y[k])\n            *(volatile int *)8 = 1;\n"
                                            "        else if (!(fabs")),
                 "library.so",
                 write("wrong.c", "/* iron: op fold */\n#include <iron/iron_peer.h>\n"
                                  "#include <string.h>\nint iron_run(const iron_peer_case *c) {\n"
                                  "    memset(c->output, 0, c->output_bytes);\n    return 0;\n}\n"),
                 op("failing", ("return 0;\n}\n\nint iron_op_reference",
                                "return 3;\n}\n\nint iron_op_reference")),
                 op("lacking", ("int iron_op_reference", "int another_name")),
                 op("unchecked", ("int iron_op_check", "int another_name")))
        cls.code, cls.rows, _ = results(
            *options(*files), "--size", "100003,501x77", "--dtype", "f32,f64,u32", "--param",
            "radius=8", "--param", "skip=2", "--runs", 5, "--html", "r.html", "--csv", "r.csv", cwd=home)
        cls.page, cls.csv = ((home / name).read_text() for name in ("r.html", "r.csv"))

    def refused_op(self, *changes: tuple[str, str], word: str) -> None:
        text = self.template("new-op.c", "mine.c").read_text()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.dir / "mine.c").write_text(text)
        self.broken("--contender", "mine.c", word=word)

    def test_a_description_that_makes_no_sense_is_refused(self):
        for line, word in (("contract", "contract"), ("input", "input NAME BYTES"),
                           ("output", "output"), ("bytes", "bytes")):
            self.refused_op((f"iron: {line} ", "iron; "), word=f"iron: {word}")
        self.refused_op(("new op smooth", "new op gather"), word="'gather' already")
        self.refused_op(("new op smooth", "new op Smooth"), word="small letters")
        self.refused_op(("types f32 f64", "types f32 f16"), word="'f16'")
        self.refused_op(("radius 1,8", "radius 1,far"), word="only words or only numbers")
        self.refused_op(("radius 1,8", "element 1,8"), word="NAME VALUE")
        self.refused_op(("radius 1,8", "radius 1\n * iron: parameter b 1\n * iron: parameter c 1"),
                        word="parameters")
        self.refused_op(("x rows * element", "x rows * length"), word="'rows * length'")
        self.refused_op(("x rows * element", "x rows -"), word="'rows -'")
        self.refused_op(("output rows * element", "output rows * 9999999999999"), word="it must be 1 to")
        self.template("new-op.c", "mine.c")
        self.template("new-op.c", "other.c")
        self.broken("--contender", "mine.c", "--contender", "other.c", word="two files bring")
        self.broken("--contender", OWN_OPS / "sliding.c", word="brings an op of your own")
        text = (self.dir / "mine.c").read_text()
        (self.dir / "mine.c").write_text(text.partition("#else")[0] + "#endif\n")
        self.broken("--contender", "mine.c", word="no contender")
        names = self.names("--contender", OWN_OPS / "sliding.c", "--contender", "mine.c")
        self.assertEqual(set(names), {"smooth.cpu.sliding"})

    def test_sizes_and_parameters_are_those_of_any_op(self):
        self.template("new-op.c", "mine.c")
        plan = self.succeeds("arena", "--contender", "mine.c", "--dry-run", "--size", "1000",
                             "--dtype", "f64", "--param", "radius=2,3", env=CPU_ONLY).text
        self.assertEqual(re.findall(r"(?m)^smooth.cpu.mine .* 1000 +f64 +0.0 MB  radius (\d);", plan),
                         ["2", "3"])
        plan = self.succeeds("arena", "--contender", OWN_OPS / "fold.c", "--dry-run", env=CPU_ONLY).text
        self.assertEqual(re.findall(r"by (\w+), skip (\d);", plan),
                         [("sum", "1"), ("sum", "2"), ("xor", "1"), ("xor", "2")])
        self.assertRegex(plan, r"fold.cpu.fold +host +\d+x\d+ +u32 ")  # four times the caches
        self.broken("--contender", OWN_OPS / "fold.c", "--param", "by=and", word="sum or xor")

    def test_contenders_for_it_in_any_file_race_like_those_of_other_ops(self):
        self.assertEqual(self.code, 1)
        for name in ("own", "sliding", "crash"):
            self.assertEqual([row["dtype"] for row in self.rows[name]], ["f32", "f64"])
            for row in self.rows[name]:
                self.assertEqual((row["status"], row["verified"], row["outside"], row["params"]["radius"]),
                                 ("ok", True, True, 8), row)
                self.assertEqual(row["useful_bytes"], 2 * 100003 * int(row["dtype"][1:]) // 8)
                self.assertGreater(row["scopes"]["kernel"]["percent_of_ceiling"], 0)
        for name in ("half", "reads_the_op", "nothing"):
            for row in self.rows[name]:
                self.assertEqual(row["status"], "wrong", row)
        self.assertIn("y[50001] is ", self.rows["half"][0]["reason"])
        self.assertIn("the op's check", self.rows["nothing"][0]["reason"])
        self.assertEqual(self.rows["sliding"][0]["baseline"], "own")
        self.assertIn("y[i] is the mean of x[i - radius]", self.page)
        self.assertIn("smooth,sliding,cpu", self.csv.replace('"', ""))

    def test_a_library_may_bring_an_op(self):
        self.assertEqual([row["status"] for row in self.rows["library"]], ["ok", "ok"])
        self.assertEqual(self.rows["library"][0]["useful_bytes"], 501 * (77 * 4 + 8))
        self.assertEqual(self.rows["library"][0]["operations"], 501 * 77)
        for row in self.rows["wrong"]:
            self.assertEqual(row["status"], "wrong")
            self.assertIn("of the output is 0x00", row["reason"])

    def test_functions_that_are_missing_or_fail_fail_its_rows(self):
        for name, word in (("failing", "iron_op_generate returned 3"), ("lacking", "iron_op_reference"),
                           ("unchecked", "iron_op_check")):
            self.assertEqual(self.rows[name][0]["status"], "failed")
            self.assertIn(word, self.rows[name][0]["reason"])


class OnTheCpu(Contenders):
    """Templates and cheats in one race: all of them in the full run, otherwise a third."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = Path(tempfile.mkdtemp(prefix="iron-contenders-"))
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        cls.cheats = [file for file in sorted(CHEATS.glob("*.c")) if file.stem != "knows_the_data"]
        if SANITIZED:  # a sanitizer reserves terabytes, so memory is not limited there
            cls.cheats = [file for file in cls.cheats if file.stem != "takes_all_memory"]
        cls.cheats = cls.cheats[::3] if REDUCED else cls.cheats
        cls.ops = (*OPS[::3 if REDUCED else 1], "new-op")
        honest = []
        for op in cls.ops:
            honest.append(cls.home / f"honest_{op}.c")
            honest[-1].write_text(iron("arena", "--template", f"{op}.c").text)
        files = cls.cheats + honest
        params = [] if LONG else one_case(cls.ops)
        cls.code, cls.rows, cls.err = results(
            *(f"*.{file.stem}" for file in files), *options(*files),
            "--size", f"{8000003 if LONG else 1000003},1001x777",
            "--dtype", "u8,u32,f32,f64" if LONG else "u32,f32,f64", "--vocab", 1000, *params, "--runs", 5,
            env={**CPU_ONLY, "TMPDIR": str(cls.home)})

    def test_no_honest_contender_is_accused(self):
        for op in self.ops:
            for row in self.rows[f"honest_{op}"]:
                with self.subTest(op=op, dtype=row["dtype"], params=row["params"]):
                    self.assertEqual((row["status"], row["verified"], row["outside"]),
                                     ("ok", True, True), row["reason"])

    def test_no_cheat_gets_through(self):
        self.assertEqual(self.code, 1)
        self.assertGreaterEqual(len(self.cheats), 8 if REDUCED else 24)
        for file in self.cheats:
            rows = self.rows[file.stem]
            if file.stem == "lower_precision":  # floats are right where floats are asked for
                rows = [row for row in rows if row["dtype"] == "f64"]
            for row in rows:
                with self.subTest(cheat=file.stem, dtype=row["dtype"]):
                    self.assertIn(row["status"], CAUGHT)
                    self.assertTrue(row["reason"])

    @unittest.skipIf(SANITIZED, "a sanitizer ends a process in its own way")
    def test_each_row_says_what_was_detected(self):
        for name, word in (("crashes", "signal"), ("hangs", "seconds"), ("exits", "exited"),
                           ("leaks", "grows"), ("left_behind", "process"),
                           ("prints_a_report", "output"), ("clock_replaced", "clock"),
                           ("replies_itself", "reply")):
            if name in self.rows:
                self.assertIn(word, self.rows[name][0]["reason"], name)

    def test_no_process_remains(self):
        commands = (Path("/proc", number, "cmdline") for number in os.listdir("/proc")
                    if number.isdigit() and int(number) != os.getpid())
        mine = 0
        for command in commands:
            try:
                if b"arena-contender" in command.read_bytes():
                    mine += str(self.home) in Path(command.parent, "environ").read_bytes().decode(
                        errors="replace")
            except OSError:  # it has ended
                continue
        self.assertEqual(mine, 0)


class UnderLoad(Contenders):
    """Honest contenders on processors that are busy: 20 rounds of all templates in the long run, else
    one of a few, since every other test of this machine waits meanwhile."""

    def busy(self):
        """As many processes as processors, which do nothing but use them, until this one ends."""
        for _ in range(os.cpu_count() or 1):
            process = subprocess.Popen(["sh", "-c", "while kill -0 $PPID; do :; done"], stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def test_nobody_is_accused(self):
        info = parse_json(self.iron("info", "--backend", "opencl", "--json").out)
        has_opencl = FULL and bool(info["backends"][0]["devices"])
        ops = (*(OPS if LONG else ("histogram", "atax", "residency")), "new-op")
        files = [self.template(f"{op}.{ending}", f"honest_{op}.{ending}") for op in ops
                 for ending in ("c", "cl")[:1 + has_opencl]]
        for file in self.dir.glob("honest_new-op.cl"):  # the other file brings the op
            file.write_text(file.read_text().replace("new op", "op"))
        sizes = ("1000", "300007", "8000003")
        self.busy()
        for number in range(20 if LONG else 1):
            code, rows, err = results("*.honest_*", *options(*files), "--size",
                                      f"{sizes[number % 3]},301x777", *one_case(ops), "--runs", 5 if LONG else 3, cwd=self.dir,
                                      env={"IRON_CUDA_LIBRARY": "none"})
            with self.subTest(round=number):
                self.assertEqual(set(rows), {f"honest_{op}" for op in ops})
                for row in (row for some in rows.values() for row in some):
                    self.assertEqual((row["status"], row["verified"]), ("ok", True), row)
                self.assertEqual((code, err), (0, b""))


def run_on_a_gpu(case, backend: str, ending: str, prelude: str, size: int) -> None:
    """Races the templates and the cheats of tests/cheats/*.cl on the first device of a backend."""
    info = parse_json(iron("info", "--backend", backend, "--json").out)
    found = next((b for b in info["backends"] if b["name"] == backend), None)
    if not found or not found["devices"]:
        raise unittest.SkipTest(f"no {backend} device")
    case.home = Path(tempfile.mkdtemp(prefix="iron-contenders-"))
    case.addClassCleanup(shutil.rmtree, case.home, ignore_errors=True)
    case.cheats, case.honest = [], []
    for file in sorted(CHEATS.glob("*.cl"))[::3 if REDUCED else 1]:
        case.cheats.append(case.home / f"{file.stem}{ending}")
        case.cheats[-1].write_text(prelude + file.read_text())
    ops = (*(OPS if LONG else ("histogram",) if REDUCED else ("histogram", "atax", "banks")), "new-op")
    for op in ops:
        case.honest.append(case.home / f"honest_{op}{ending}")
        case.honest[-1].write_text(iron("arena", "--template", f"{op}{ending}").text)
    (case.home / f"broken{ending}").write_text("/* iron: op histogram */\nundeclared;\n")
    files = [*case.cheats, *case.honest, case.home / f"broken{ending}"]
    case.code, case.rows, case.err = results(
        *(f"*.{file.stem}" for file in files), *options(*files), "--size", f"{size},101x77",
        "--dtype", "u32,f64", "--vocab", 1000, *one_case(ops), "--runs", 5,
        env={"IRON_CEILING_MIB": "0"} if backend == "cuda" else {})  # of the memory, not the cache


class OnOpencl(ArenaTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run_on_a_gpu(cls, "opencl", ".cl", "", 2000003)

    def test_no_cheat_gets_through(self):
        for file in self.cheats:
            for row in self.rows[file.stem]:
                self.assertIn(row["status"], CAUGHT, file.stem)

    def test_no_honest_contender_is_accused(self):
        for file in self.honest:
            for row in self.rows[file.stem]:
                self.assertEqual((row["status"], row["verified"]), ("ok", True), row)


    def test_compile_errors_are_the_compilers(self):
        self.assertEqual(self.rows["broken"][0]["status"], "failed")
        self.assertRegex(self.err.decode(), r"broken\.\w+[:(]2")


class OnCuda(OnOpencl):
    """Needs an NVIDIA GPU and nvcc."""

    @classmethod
    def setUpClass(cls):
        ArenaTest.setUpClass.__func__(cls)
        run_on_a_gpu(cls, "cuda", ".cu", (CHEATS / "prelude.cu").read_text(), (1 << 28) + 3)


if __name__ == "__main__":
    unittest.main()
