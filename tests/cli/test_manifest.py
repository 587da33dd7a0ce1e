# SPDX-License-Identifier: MIT
"""Manifests as users keep them: `iron check` names exactly the files that differ, whatever happened
to them, also for ten thousand files, moved folders, merged parts and manifests of version 1.

The fields of a manifest and the positions that `check` prints are tested in test_sum.py.
"""

import json
import random
import resource
import shutil

from harness import DTYPE_MAX, DTYPES, REDUCED, REPO, SEED, IronTest, npy, oracle, pack, parse_json

CHUNK = 1024
OLD = REPO / "tests" / "golden" / "manifest-1"  # written by iron 0.1.0 for the files of make_old


class ManifestTest(IronTest):
    def check(self, *args, code=0, manifest="m", **kwargs):
        result = self.iron("check", manifest, *args, **kwargs)
        self.assertEqual(result.code, code, str(result))
        return result

    def statuses(self, *args, **kwargs):
        found = parse_json(self.check("--json", *args, **kwargs).out)
        return {f["file"]: f["status"] for f in found}


class Damage(ManifestTest):
    """Random files, random damage: the files whose tokens are others now, and no more, fail."""

    LENGTHS = {"tiny": lambda r: r.choice([0, 1, 2, 3, 4, 5, 7, 8, r.randrange(40)]),
               "mixed": lambda r: r.choice([0, 1, 2, 3, r.randrange(50), r.randrange(2000)]),
               "large": lambda r: r.randrange(6000)}

    def put(self, name, tokens):
        letter = DTYPES[self.dtype]
        descr = ("|" if letter == "B" else "<") + self.dtype[0] + str(int(self.dtype[1:]) // 8)
        self.write(name, npy(tokens, descr, letter) if name.endswith("npy")
                   else pack(tokens, self.dtype))

    def make_files(self, r):
        self.dtype = r.choice(list(DTYPES))
        lengths = self.LENGTHS[r.choice(list(self.LENGTHS))]
        suffix = r.choice(["bin", "npy"])
        limit = min(DTYPE_MAX[self.dtype], 60000)
        self.files = {f"data/{k}.{suffix}": [r.randint(0, limit) for _ in range(lengths(r))]
                      for k in range(r.choice([1, 2, 3, 8, 30]))}
        for name, tokens in self.files.items():
            self.put(name, tokens)
        return [] if suffix == "npy" else ["--dtype", self.dtype]

    def make_manifest(self, r, options):
        options = [*options, "--chunk", r.choice([1024, 1028, 2**20])]
        parts = r.choice([0, 0, 1, 2, 5])
        self.succeeds("sum", *self.files, *options, "--manifest", "m", "--threads",
                      r.choice([1, 2, 3]))
        for k in range(1, parts + 1):
            self.succeeds("sum", *self.files, *options, "--part", f"{k}/{parts}", "-o", f"p{k}")
        if parts:
            whole = (self.dir / "m").read_bytes()
            order = r.sample(range(1, parts + 1), parts)
            self.succeeds("merge", *(f"p{k}" for k in order), "-o", "m")
            self.assertEqual((self.dir / "m").read_bytes(), whole)
        for entry in json.loads((self.dir / "m").read_text())["files"]:
            self.assertEqual(entry["seal"], oracle.seal(self.files[entry["path"]]))

    def damage(self, r, now):
        """Does something to a file; now[name] becomes its tokens, or None if it has none."""
        name, other = r.choice(list(now)), r.choice(list(now))
        tokens = now[name]
        if tokens is None or now[other] is None:
            return
        kind = r.choice(["change", "cut", "extend", "replace", "exchange", "swap", "missing",
                         "directory", "loop"])
        path = self.dir / name
        if kind == "exchange":  # two files change places
            now[name], now[other] = now[other], tokens
            self.put(other, now[other])
        elif kind == "change" and tokens:
            place = r.randrange(len(tokens))
            now[name] = [*tokens[:place], tokens[place] ^ 1, *tokens[place + 1:]]
        elif kind == "cut" and tokens:
            now[name] = tokens[:r.randrange(len(tokens))]
        elif kind == "extend":
            now[name] = tokens + [0] * r.randint(1, 5)
        elif kind == "replace":
            now[name] = [r.randint(0, 255) for _ in tokens]
        elif kind == "swap" and tokens:
            a, b = r.randrange(len(tokens)), r.randrange(len(tokens))
            now[name] = list(tokens)
            now[name][a], now[name][b] = tokens[b], tokens[a]
        elif kind in ("missing", "directory", "loop"):
            path.unlink()
            now[name] = None
            if kind == "directory":
                path.mkdir()
                self.put(f"{name}/{path.name}", tokens)
            elif kind == "loop":
                path.symlink_to(path.name)
            return
        self.put(name, now[name])

    def test_exactly_the_files_that_differ(self):
        for seed in range(SEED, SEED + (20 if REDUCED else 100)):
            with self.subTest(seed=seed):
                r = random.Random(seed)
                self.make_manifest(r, self.make_files(r))
                now = dict(self.files)
                for _ in range(r.choice([0, 1, 1, 2, 5])):
                    self.damage(r, now)
                differ = {name for name in now if now[name] != self.files[name]}
                found = self.statuses(code=1 if differ else 0)
                self.assertEqual(list(found), list(self.files))
                self.assertEqual({name for name in found if found[name] != "ok"}, differ)
                lines = self.check(code=1 if differ else 0).text.splitlines()
                self.assertEqual({line.split(":")[0] for line in lines if line[-4:] != ": OK"},
                                 differ)
                shutil.rmtree(self.dir / "data")

    def test_unreadable_tokens(self):
        """A file that cannot be read to its end is the only one that fails."""
        for k in range(5):
            self.write_tokens(f"{k}", range(3000), "i32")
        self.succeeds("sum", *"01234", "--dtype", "i32", "--manifest", "m", "--chunk", CHUNK)
        self.write_tokens("3", [*range(2999), -1], "i32")
        self.assertEqual(self.statuses(code=1), {**dict.fromkeys("01234", "ok"), "3": "failed"})
        self.write_tokens("1", [*range(2998), 0, 0], "i32")
        (self.dir / "0").unlink()
        lines = self.check(code=1).text.splitlines()
        self.assertEqual(lines[:3] + lines[4:], ["0: FAILED open or read",
                                                 "1: FAILED (positions 5120 to 5999 differ)",
                                                 "2: OK", "4: OK"])
        self.assertRegex(lines[3], r"\A3: FAILED \(.*-1")


class ManyFiles(ManifestTest):
    def test_ten_thousand_files(self):
        """One changed token fails one file; few descriptors and one line are enough."""
        r = random.Random(SEED)
        count = 10000
        (self.dir / "data").mkdir()
        names = [f"data/{k:05d}.bin" for k in range(count)]
        for name in names:
            (self.dir / name).write_bytes(r.randbytes(2 * r.randrange(40)))
        few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))}
        changed = self.write_tokens(names[5000], [1] * 50, "u16")
        self.succeeds("sum", "data", "--dtype", "u16", "--manifest", "m", **few)
        self.assertEqual(self.check(**few).text, "10000 files of m: OK\n")
        changed.write_bytes(pack([1] * 49 + [2], "u16"))
        result = self.check(code=1, **few)
        self.assertEqual(result.text, f"{names[5000]}: FAILED\n9999 of 10000 files of m: OK\n")
        self.assertEqual(result.message, "iron: 1 file differs\n")
        (self.dir / names[7000]).unlink()
        found = self.statuses(code=1)
        self.assertEqual(len(found), count)
        self.assertEqual({name for name in names if found[name] != "ok"},
                         {names[5000], names[7000]})

    def test_up_to_twenty_files_have_lines(self):
        for count in (20, 21):
            names = [f"f{k}" for k in range(count)]
            for name in names:
                self.write_tokens(name, range(5), "u16")
            self.succeeds("sum", *names, "--dtype", "u16", "--manifest", "m")
            self.assertEqual(self.check().text, "21 files of m: OK\n" if count > 20 else
                             "".join(f"{name}: OK\n" for name in names))
            self.assertEqual(self.check("--quiet").text, "")
        for name in names:
            self.write_tokens(name, range(4), "u16")
        self.assertEqual(len(self.check(code=1).text.splitlines()), 21)


class Places(ManifestTest):
    """A manifest beside its files is found to be, wherever both are."""

    def setUp(self):
        super().setUp()
        for name in ("data/a/0.bin", "data/b/0.bin", "data/b/1.bin"):
            self.write_tokens(name, [len(name), *name.encode()], "u16")
        self.names = ["a/0.bin", "b/0.bin", "b/1.bin"]

    def make(self, manifest, *names, cwd="."):
        self.succeeds("sum", *names, "--dtype", "u16", "--manifest", manifest,
                      cwd=self.dir / cwd)

    def test_made_in_the_folder_and_checked_from_elsewhere(self):
        self.make("m.json", *self.names, cwd="data")
        for cwd, manifest in ((".", "data/m.json"), ("data", "m.json"), ("data/b", "../m.json"),
                              ("/", self.dir / "data/m.json")):
            self.check(manifest=manifest, cwd=self.dir / cwd)
        self.write_tokens("data/b/1.bin", [1], "u16")
        self.assertEqual(self.statuses(manifest="data/m.json", code=1),
                         dict(zip(self.names, ("ok", "ok", "failed"))))

    def test_moved_beside_the_files(self):
        for given in ("data/", "./data/", f"{self.dir}/data/"):
            self.make("m", *(given + name for name in self.names))
            (self.dir / "m").rename(self.dir / "data/m")
            shutil.move(self.dir / "data", self.dir / "moved")
            for cwd, manifest in ((".", "moved/m"), ("moved", "m"), ("moved/a", "../m")):
                self.check(manifest=manifest, cwd=self.dir / cwd)
            self.write_tokens("moved/a/0.bin", [1], "u16")
            self.assertEqual(list(self.statuses(manifest="moved/m", code=1).values()),
                             ["failed", "ok", "ok"])
            (self.dir / "moved/a/0.bin").unlink()
            self.assertEqual(list(self.statuses(manifest="moved/m", code=1).values()),
                             ["missing", "ok", "ok"])
            self.write_tokens("moved/a/0.bin", [12, *b"data/a/0.bin"], "u16")
            shutil.move(self.dir / "moved", self.dir / "data")

    def test_only_the_last_name_beside_the_manifest(self):
        self.make("m", "data/b/0.bin", "data/b/1.bin")
        (self.dir / "m").rename(self.dir / "data/b/m")
        (self.dir / "data/b").rename(self.dir / "b")
        self.check(manifest="b/m")
        self.check(cwd=self.dir / "b")

    def test_a_file_of_another_folder_is_not_taken(self):
        """Both names end with 0.bin, and only one such file is left."""
        self.make("m", "data/a/0.bin", "data/b/0.bin")
        (self.dir / "m").rename(self.dir / "data/a/m")
        shutil.move(self.dir / "data/a", self.dir / "alone")
        shutil.rmtree(self.dir / "data")
        self.assertEqual(list(self.statuses(manifest="alone/m", code=1).values()),
                         ["missing", "missing"])

    def test_names_under_the_working_directory_come_first(self):
        self.make("m", "data/b/1.bin")
        (self.dir / "m").rename(self.dir / "data/b/m")
        self.check(manifest="data/b/m")
        self.write_tokens("other/data/b/1.bin", [1], "u16")
        self.check(manifest="../data/b/m", cwd=self.dir / "other", code=1)


class VersionOne(ManifestTest):
    """Manifests that iron wrote before files had seals: their chunks decide."""

    def setUp(self):
        super().setUp()
        self.parts = [oracle.gen(1, 3000, 50257), oracle.gen(2, 1500, 60000), [],
                      oracle.gen(3, 2001, 50257)]
        self.names = [f"data/{k}.bin" for k in range(4)]
        for name, tokens in zip(self.names, self.parts):
            self.write_tokens(name, tokens, "u16")
        for source, name in (("whole", "m"), ("part-1", "p1"), ("part-2", "p2")):
            shutil.copy(OLD / f"{source}.json", self.dir / name)

    def assert_statuses(self, *statuses, **kwargs):
        self.assertEqual(self.statuses(**kwargs), dict(zip(self.names, statuses)))

    def test_unchanged(self):
        self.assertEqual(self.check().text, "".join(f"{name}: OK\n" for name in self.names))

    def test_a_changed_token_fails_the_files_of_its_chunk(self):
        self.parts[0][2999] ^= 1
        self.write_tokens(self.names[0], self.parts[0], "u16")
        self.assertEqual(self.check(code=1).text.splitlines(),
                         ["data/0.bin: FAILED (positions 2048 to 2999 differ)",
                          "data/1.bin: FAILED (positions 3000 to 3071 differ)",
                          "data/2.bin: OK", "data/3.bin: OK"])

    def test_missing(self):
        (self.dir / self.names[1]).unlink()
        self.assert_statuses("failed", "missing", "ok", "failed", code=1)
        self.assertRegex(self.check(code=1).text,
                         r"data/0.bin: FAILED \(it cannot be checked without data/1.bin, with")
        found = self.statuses("--ignore-missing")
        self.assertEqual(found, {self.names[0]: "partly", self.names[2]: "ok",
                                 self.names[3]: "partly"})
        lines = self.check("--ignore-missing", "--quiet").text.splitlines()
        self.assertEqual([line.split(" (")[0] for line in lines],
                         [f"{self.names[0]}: OK in part", f"{self.names[3]}: OK in part"])
        self.assertRegex(lines[0], r"1 of its 3 chunks not checked.*data/1.bin")

    def test_one_chunk(self):
        m = json.loads((self.dir / "m").read_text())
        m["chunk_tokens"], m["chunks"] = 8192, [
            "{:x} {:x} {:x} - -".format(*(int(w) for w in m["words"][1:]))]
        self.write("m", json.dumps(m).encode())
        for name in self.names[2:]:
            (self.dir / name).unlink()
        found = self.check("--ignore-missing", code=1)
        self.assertIn("data/0.bin: not checked (it shares a chunk with data/3.bin)\n", found.text)
        self.assertIn("no file was verified", found.message)

    def test_merge(self):
        self.succeeds("merge", "p2", "p1", "-o", "merged")
        self.assertEqual((self.dir / "merged").read_bytes(), (self.dir / "m").read_bytes())

    def test_merge_with_a_part_of_version_two(self):
        self.succeeds("sum", *self.names, "--dtype", "u16", "--chunk", CHUNK, "--part", "2/2", "-o",
                      "new")
        self.succeeds("merge", "p1", "new", "-o", "merged")
        self.assertEqual((self.dir / "merged").read_bytes(), (self.dir / "m").read_bytes())

    def test_diff(self):
        self.succeeds("sum", *self.names, "--dtype", "u16", "--chunk", CHUNK, "--manifest", "new")
        self.succeeds("diff", "m", "new")


class DamagedManifests(ManifestTest):
    """Seals of files that do not belong to the rest of a manifest."""

    def setUp(self):
        super().setUp()
        self.parts = [oracle.gen(k, n, 50257) for k, n in enumerate((3001, 7, 2002))]
        for k, part in enumerate(self.parts):
            self.write_tokens(str(k), part, "u16")
        self.succeeds("sum", *"012", "--dtype", "u16", "--chunk", CHUNK, "--manifest", "m")
        self.manifest = json.loads((self.dir / "m").read_text())

    def put(self, index, words):
        self.manifest["files"][index]["words"] = [str(w) for w in words]
        self.manifest["files"][index]["seal"] = oracle.seal_text(words)
        self.write("m", json.dumps(self.manifest).encode())

    def test_sums_that_do_not_add_up(self):
        count, t, a, b = oracle.seal_words(self.parts[1])
        self.put(1, (count, t + 1, a, b))
        self.refused("check", "m", says="files' sums.*damaged")

    def test_a_seal_that_is_not_of_its_words(self):
        self.manifest["files"][1]["seal"] = oracle.seal(self.parts[0])
        self.write("m", json.dumps(self.manifest).encode())
        self.refused("check", "m", says="seal of 1 is .*damaged")

    def test_a_seal_that_contradicts_the_chunks(self):
        count, t, a, b = oracle.seal_words(self.parts[1])
        self.put(1, (count, t, a ^ 1, b))
        self.assertEqual(self.check(code=1).text.splitlines(), [
            "0: OK", "1: OK", "2: OK", "m: FAILED (the manifest is damaged: its seal of 1 does not "
            "match the file, its chunks do)"])

    def test_a_missing_seal(self):
        for key in ("seal", "words"):
            m = json.loads((self.dir / "m").read_text())
            del m["files"][2][key]
            self.refused("check", self.write("bad", json.dumps(m).encode()), says="seal")
