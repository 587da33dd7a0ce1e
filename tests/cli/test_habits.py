# SPDX-License-Identifier: MIT
"""What users of checksum tools expect: `sum -c`, `--tag`, `-z`, lists that contain their options,
several lists, standard input by default, `50k` and `uint16`, suggestions for misspelt words, and
warnings about tokens outside the vocabulary.
"""

import os
import pty
import subprocess
import unittest

from harness import IRON, IronTest, environment, npy, oracle, pack


class HabitTest(IronTest):
    def setUp(self):
        super().setUp()
        self.streams = {"a.bin": oracle.gen(1, 5000, 50257), "b.bin": oracle.gen(2, 700, 50257)}
        for name, tokens in self.streams.items():
            self.write_tokens(name, tokens, "u16")

    def lines(self, *names):
        return "".join(f"{oracle.seal(self.streams[name])}  {name}\n" for name in names)

    def on_terminal(self, *args):
        """Runs the command with a terminal as standard input and output; its exit status and text."""
        main, child = pty.openpty()
        process = subprocess.Popen([IRON, *map(str, args)], stdin=child, stdout=child, cwd=self.dir,
                                   stderr=subprocess.PIPE, env=environment())
        os.close(child)
        message = process.communicate()[1].decode()
        os.close(main)
        return process.returncode, message


class Lists(HabitTest):
    def test_a_list_contains_its_options(self):
        printed = self.succeeds("sum", "a.bin", "b.bin", "--dtype", "uint16").text
        self.assertEqual(printed, self.lines("a.bin", "b.bin") + "# iron sum --dtype u16\n")
        raw = self.succeeds("sum", "a.bin", "--dtype", "u16", "--format", "raw").text
        self.assertEqual(raw, self.lines("a.bin") + "# iron sum --dtype u16 --format raw\n")
        self.write("list", printed.encode())
        self.write("raw", raw.encode())
        self.assertEqual(self.succeeds("check", "list").text, "a.bin: OK\nb.bin: OK\n")
        self.assertEqual(self.succeeds("check", "raw").text, "a.bin: OK\n")

    def test_a_directory_as_one_stream(self):
        (self.dir / "d").mkdir()
        self.write_tokens("d/1", [1, 2], "u16")
        self.write_tokens("d/2", [3], "u16")
        printed = self.succeeds("sum", "--stream", "d", "--dtype", "u16").text
        self.assertEqual(printed, f"{oracle.seal([1, 2, 3])}  d\n# iron sum --dtype u16\n")
        self.assertEqual(self.succeeds("check", stdin=printed.encode()).text, "d: OK\n")

    def test_chosen_files_as_one_stream(self):
        """The comment says how files were chosen: check must read the same ones."""
        (self.dir / "d" / "sub").mkdir(parents=True)
        for k, name in enumerate(("d/1.bin", "d/2.bin", "d/sub/3.bin", "d/ 5%.bin")):
            self.write_tokens(name, [k, k], "u16")
        cases = ((["-r"], " --recursive"), (["--exclude", "2*"], " --exclude 2*"),
                 (["--include", "?.bin", "--include", " *"], " --include ?.bin --include %20*"),
                 (["-r", "--exclude", " 5%*"], " --recursive --exclude %205%25*"))
        for options, words in cases:
            with self.subTest(options=options):
                printed = self.succeeds("sum", "--stream", "d", "--dtype", "u16", *options).text
                self.assertEqual(printed.splitlines()[1], f"# iron sum --dtype u16{words}")
                self.assertEqual(self.succeeds("check", stdin=printed.encode()).text, "d: OK\n")
        self.write_tokens("d/1.bin", [9, 9], "u16")
        self.assertEqual(self.iron("check", stdin=printed.encode()).text, "d: FAILED\n")

    def test_streams_and_pipes_have_no_options(self):
        for args, stdin in ((["a.bin", "b.bin", "--stream"], b""), (["-"], b"1234"), ([], b"1234")):
            with self.subTest(args=args):
                text = self.succeeds("sum", *args, "--dtype", "u16", stdin=stdin).text
                self.assertEqual(text.count("\n"), 1)

    def test_files_with_a_header_need_no_options(self):
        self.write("c.npy", npy([1, 2, 3], "<u2", "H"))
        self.assertEqual(self.succeeds("sum", "c.npy").text, f"{oracle.seal([1, 2, 3])}  c.npy\n")

    def test_joined_lists_keep_their_options(self):
        self.write_tokens("wide.bin", self.streams["b.bin"], "u32")
        printed = self.succeeds("sum", "a.bin", "--dtype", "u16").out
        printed += self.succeeds("sum", "wide.bin", "--dtype", "u32").out
        self.write("list", printed)
        self.assertEqual(self.succeeds("check", "list").text, "a.bin: OK\nwide.bin: OK\n")
        self.assertEqual(self.succeeds("check", "-", stdin=printed).text,
                         "a.bin: OK\nwide.bin: OK\n")

    def test_options_of_the_command_line_come_first(self):
        self.write("list", (self.lines("a.bin") + "# iron sum --dtype u32\n").encode())
        self.assertEqual(self.iron("check", "list").code, 1)
        self.assertEqual(self.succeeds("check", "list", "--dtype", "u16").text, "a.bin: OK\n")

    def test_an_unknown_dtype_in_a_list(self):
        self.write("list", (self.lines("a.bin") + "# iron sum --dtype u99\n").encode())
        self.refused("check", "list", says=["list", "u99", "--dtype"])

    def test_standard_input_is_the_default(self):
        tokens = oracle.gen(3, 100, 2**32)
        self.assertEqual(self.succeeds("sum", "--dtype", "u32", stdin=pack(tokens)).text,
                         f"{oracle.seal(tokens)}  -\n")
        printed = self.succeeds("sum", "a.bin", "--dtype", "u16").out
        self.assertEqual(self.succeeds("check", stdin=printed).text, "a.bin: OK\n")
        self.assertEqual(self.succeeds("sum", "-c", stdin=printed).text, "a.bin: OK\n")

    def test_a_terminal_is_no_input(self):
        for command in (["sum", "--dtype", "u16"], ["check"]):
            code, message = self.on_terminal(*command)
            self.assertEqual(code, 2)
            self.assertRegex(message, r"\Airon: no (input|list); [^\n]+\n\Z")

    def test_sum_c_is_check(self):
        self.write("list", self.succeeds("sum", "a.bin", "b.bin", "--dtype", "u16").out)
        for words in (["-c", "list"], ["list", "--check"], ["-c", "--quiet", "list"]):
            rest = [w for w in words if w not in ("-c", "--check")]
            self.assertEqual(self.succeeds("sum", *words).text, self.succeeds("check", *rest).text)
        (self.dir / "-c").write_bytes((self.dir / "list").read_bytes())
        self.assertEqual(self.succeeds("sum", "-c", "--", "-c").text, "a.bin: OK\nb.bin: OK\n")
        self.write_tokens("b.bin", [1, 2, 3], "u16")
        result = self.iron("sum", "-c", "list")
        self.assertEqual((result.code, result.text), (1, "a.bin: OK\nb.bin: FAILED\n"))

    def test_tags(self):
        names = ["a.bin", "new\nline", "back\\slash", "x) = y"]
        for name in names[1:]:
            (self.dir / name).write_bytes((self.dir / "a.bin").read_bytes())
        printed = self.succeeds("sum", *names, "--dtype", "u16", "--tag").text
        seal = oracle.seal(self.streams["a.bin"])
        self.assertEqual(printed, f"IRON (a.bin) = {seal}\n\\IRON (new\\nline) = {seal}\n"
                                  f"\\IRON (back\\\\slash) = {seal}\nIRON (x) = y) = {seal}\n"
                                  "# iron sum --dtype u16\n")
        self.assertEqual(self.succeeds("check", stdin=printed.encode()).text.count(": OK\n"), 4)
        self.refused("sum", "a.bin", "--dtype", "u16", "--tag", "--json", says="--tag")

    def test_zero_bytes_instead_of_newlines(self):
        (self.dir / "new\nline").write_bytes((self.dir / "a.bin").read_bytes())
        out = self.succeeds("sum", "a.bin", "new\nline", "--dtype", "u16", "-z").text
        seal = oracle.seal(self.streams["a.bin"])
        self.assertEqual(out, f"{seal}  a.bin\0{seal}  new\nline\0")

    def test_several_lists(self):
        self.write("one", self.succeeds("sum", "a.bin", "--dtype", "u16").out)
        self.succeeds("sum", "b.bin", "--dtype", "u16", "--manifest", "two")
        self.assertEqual(self.succeeds("check", "one", "two").text, "a.bin: OK\nb.bin: OK\n")
        self.assertEqual([f["file"] for f in self.json("check", "one", "two")], ["a.bin", "b.bin"])
        self.write_tokens("a.bin", [5], "u16")
        result = self.iron("check", "one", "two", "nothing")
        self.assertEqual((result.code, result.text), (2, "a.bin: FAILED\nb.bin: OK\n"))
        self.assertEqual(sorted(result.message.splitlines()),
                         ["iron: 1 file differs",
                          "iron: cannot open nothing: No such file or directory"])

    def test_warn_names_bad_lines(self):
        printed = self.succeeds("sum", "a.bin", "--dtype", "u16").text
        self.write("list", ("junk\n" + printed + "more junk\n").encode())
        result = self.iron("check", "list", "--warn", "--strict")
        self.assertEqual((result.code, result.text), (1, "a.bin: OK\n"))
        self.assertEqual(result.message.splitlines(),
                         ["iron: list: 1: improperly formatted line",
                          "iron: list: 4: improperly formatted line",
                          "iron: 2 lines are improperly formatted"])


class Vocabulary(HabitTest):
    def test_tokens_outside_are_named(self):
        tokens = [5, 99, 100, 7, 65535]
        self.write_tokens("c.bin", tokens, "u16")
        result = self.iron("sum", "c.bin", "--dtype", "u16", "--vocab", 100)
        self.assertEqual((result.code, result.text),
                         (0, f"{oracle.seal(tokens)}  c.bin\n# iron sum --dtype u16\n"))
        self.assertEqual(result.message, "iron: warning: c.bin: 2 of 5 tokens are not below --vocab "
                                         "100; the first is 100 at position 2\n")
        strict = self.iron("sum", "c.bin", "--dtype", "u16", "--vocab", 100, "--strict")
        self.assertEqual((strict.code, strict.out, strict.message),
                         (1, result.out, result.message))

    def test_feed_says_the_same(self):
        warning = "iron: warning: {}: {} not below --vocab 100; the first is {} at position {}\n"
        tokens = [5, 99, 100, 7, 65535]
        for dtype in ("u16", "u32", "i32", "i64"):
            self.write_tokens("c.bin", tokens, dtype)
            options = ("--dtype", dtype, "--backend", "cpu", "--vocab", 100)
            result = self.iron("feed", "c.bin", *options)
            self.assertEqual((result.code, result.message),
                             (0, warning.format("c.bin", "2 of 5 tokens are", 100, 2)))
            for more in (("--mode", "node", "--nodes", 3), ("--positions", "batch", "--batch", 2)):
                self.assertEqual(self.iron("feed", "c.bin", *options, *more).err, result.err)
            twice = self.iron("feed", "c.bin", "c.bin", *options)
            self.assertEqual(twice.message, warning.format("c.bin c.bin", "4 of 10 tokens are", 100,
                                                           2))
        for dtype, inside in (("u8", 300), ("u16", 65536), ("u32", 65536)):
            self.write_tokens("c.bin", [255, 9], dtype)
            self.assertEqual(self.iron("feed", "c.bin", "--dtype", dtype, "--vocab", inside,
                                       "--backend", "cpu").err, b"")
        self.assertEqual(self.iron("feed", "a.bin", "--dtype", "u16", "--backend", "cpu").err, b"")

    def test_feed_counts_long_streams(self):
        """Over many pieces and threads, in files and in pipes: counts and the first position."""
        tokens = [7] * 3_000_000
        for k in (2_999_999, 1_234_567, 1_234_568):
            tokens[k] = 5000 + k % 10
        path = self.write_tokens("c.bin", tokens, "u16")
        options = ("--dtype", "u16", "--backend", "cpu", "--vocab", 100, "--threads", 3)
        for words, stdin in (("c.bin", b""), ("-", path.read_bytes())):
            self.assertEqual(self.iron("feed", words, *options, stdin=stdin).message,
                             f"iron: warning: {words}: 3 of 3000000 tokens are not below --vocab "
                             "100; the first is 5007 at position 1234567\n")

    def test_nothing_is_said_without_the_option(self):
        self.write_tokens("c.bin", [65535], "u16")
        self.succeeds("sum", "c.bin", "--dtype", "u16", "--strict")
        inside = self.iron("sum", "a.bin", "--dtype", "u16", "--strict", "--vocab", 50257)
        self.assertEqual((inside.code, inside.err), (0, b""))

    def test_an_error_counts_more_than_a_warning(self):
        self.write_tokens("c.bin", [65535], "u16")
        result = self.iron("sum", "nothing", "c.bin", "--dtype", "u16", "--vocab", 5, "--strict")
        self.assertEqual(result.code, 2, str(result))


class Words(HabitTest):
    def test_counts(self):
        for count, expected in (("2k", 2000), ("1e3", 1000), ("1.5k", 1500), ("2KiB", 2048),
                                ("1KB", 1000)):
            out = self.succeeds("gen", "--count", count, "--dtype", "uint16").out
            self.assertEqual(len(out), 2 * expected, count)
        self.refused("gen", "--count", "1.5", says=["--count", "1.5", "whole"])
        self.refused("gen", "--count", "5x", says=["--count", "5x", "50k"])

    def test_gen_needs_no_options(self):
        self.assertEqual(self.succeeds("gen").out, pack(oracle.gen(1, 10**6, 50257)))
        code, message = self.on_terminal("gen")
        self.assertEqual(code, 2)
        self.assertRegex(message, r"\Airon: [^\n]*terminal[^\n]*\n\Z")

    def test_numpy_names_of_dtypes(self):
        for ours, numpy in (("u8", "uint8"), ("u16", "uint16"), ("u32", "uint32"), ("i32", "int32"),
                            ("i64", "int64")):
            self.write_tokens("t", [1, 2, 3], ours)
            self.assertEqual(self.succeeds("sum", "t", "--dtype", numpy).text,
                             self.succeeds("sum", "t", "--dtype", ours).text)
        self.succeeds("diff", "a.bin", "a.bin", "--dtype", "uint16,uint16")

    def test_suggestions(self):
        for word, meant in (("smu", "sum"), ("chekc", "check"), ("difff", "diff"), ("sta", "stat"),
                            ("shecksum", None), ("xyzzy", None), ("", None)):
            result = self.refused(word, says="iron --help")
            self.assertEqual(f"did you mean iron {meant}?" in result.message, meant is not None, word)
        for word, meant in (("--dtpye", "dtype"), ("--d-type", "dtype"), ("--manifst=x", "manifest"),
                            ("--thread", "threads"), ("--zzz", None), ("-x", None)):
            result = self.refused("sum", "a.bin", word, says="--help")
            self.assertEqual(f"did you mean --{meant}?" in result.message, meant is not None, word)

    def test_version(self):
        self.assertEqual(self.succeeds("-V").text, self.succeeds("--version").text)


if __name__ == "__main__":
    unittest.main()
