// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {asRaw, examineFile, kindOf} from "../../web/dashboard/filekinds.js";
import {dtypeOfName, guessDtype} from "../../web/dashboard/guess.js";

import {llmc, npy, npyOf, u16, u32} from "./made.mjs";

const look = (name, head, names) => kindOf({name, size: head.length, head, names});
const refusal = kind => {
  assert.equal(kind.kind, "refused");
  return kind.sentence;
};

test("NumPy files of every type of token", () => {
  for (const [descr, dtype, width] of [
         ["|u1", "u8", 1], ["<u2", "u16", 2], ["<u4", "u32", 4], ["<i4", "i32", 4],
         ["<i8", "i64", 8]]) {
    const kind = look("a.npy", npyOf(`'${descr}'`, "(3, 2)", Buffer.alloc(6 * width)));
    assert.deepEqual(
      kind, {kind: "npy", dtype, width, offset: 128, tokens: 6, reason: `NumPy, ${dtype}`});
  }
});

test("NumPy files without tokens", () => {
  for (const descr of ["'<f4'", "'>u2'", "'<u8'", "'<i2'", "'|b1'", "[('a', '<u2')]"])
    assert.match(
      refusal(look("a.npy", npyOf(descr, "(1,)", Buffer.alloc(8)))), /^a\.npy: its NumPy type/);
  assert.match(refusal(look("a.npy", npyOf("'<u2'", "()", u16(1)))), /0 dimensions/);
  assert.match(refusal(look("a.npy", npyOf("'<u2'", "(1, 1, 1)", u16(1)))), /3 dimensions/);
  assert.match(refusal(look("a.npy", npyOf("'<u2'", "(0,)"))), /contains no tokens/);
  assert.match(
    refusal(look("a.npy", npyOf("'<u2'", "(9000000000000000, 9000000000000000)"))),
    /implausibly large/);
  const turned = npy("{'descr': '<u2', 'fortran_order': True, 'shape': (2, 2), }", u16(1, 2, 3, 4));
  assert.match(refusal(look("a.npy", turned)), /Fortran order/);
  assert.match(
    refusal(look("a.npy", npyOf("'<u2'", "(3,)", u16(1, 2)))),
    /says 3 tokens of 2 bytes, but there are 4 bytes from byte 128 on\. Is it truncated\?/);
  assert.match(refusal(look("a.npy", npy("{'descr'"))), /^a\.npy: its NumPy header is not a dict/);
});

test("Fortran order is accepted for one dimension", () => {
  const turned = npy("{'descr': '<u2', 'fortran_order': True, 'shape': (2,), }", u16(1, 2));
  assert.equal(look("a.npy", turned).tokens, 2);
});

test("llm.c, both widths", () => {
  assert.deepEqual(
    look("a.bin", llmc(20240520, 1, 3, u16(1, 2, 3))),
    {kind: "llmc", dtype: "u16", width: 2, offset: 1024, tokens: 3, reason: "llm.c, u16"});
  assert.equal(look("a.bin", llmc(20240801, 7, 2, u32(1, 2))).dtype, "u32");
});

test("llm.c with wrong headers", () => {
  assert.match(refusal(look("a.bin", llmc(20240520, 2, 3, u16(1, 2, 3)))), /version 2, expected 1/);
  assert.match(refusal(look("a.bin", llmc(20240520, 1, 4, u16(1, 2, 3)))), /Is it truncated/);
  assert.match(refusal(look("a.bin", llmc(20240520, 1, -1, u16(1)))), /-1 tokens/);
  assert.match(refusal(look("a.bin", llmc(20240520, 1, 0, u16()))), /no tokens/);
  assert.match(refusal(look("a.bin", llmc(20240520, 1, 3, u16()).subarray(0, 100))), /truncated/);
});

test("unsupported formats are refused with the command that reads them", () => {
  for (const [name, head, names] of [
         ["a.bin", Buffer.from("LITPKDS\x01\0\0\0\0\0\0\0\x08")],
         ["a.idx", Buffer.from("MMIDIDX\0\0\x01\0\0\0\0\0\0\0\x08")],
         ["a.bin", u16(1, 2, 3), ["a.bin", "a.idx"]], ["a.ds", u16(1, 2, 3)],
         ["a.ds.index", u32(1, 0)], ["a.ds.metadata", Buffer.from("gpt2|2\n3")]]) {
    const kind = look(name, head, names);
    assert.match(refusal(kind), new RegExp(`^${name} `));
    assert.equal(kind.wantsPush, true);
  }
});

test("compressed and empty files", () => {
  for (const start of ["PK\x03\x04", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "PAR1"])
    refusal(look("a.bin", Buffer.from(start + "1234567890", "latin1")));
  assert.equal(refusal(look("a.bin", Buffer.alloc(0))), "a.bin is empty.");
});

test("token type in the file name", () => {
  for (const [name, dtype] of [
         ["a.u16", "u16"], ["train_uint32.bin", "u32"], ["I64-a", "i64"], ["a.u8.bin", "u8"],
         ["au16.bin", null], ["a.u160", null], ["tokens.bin", null]])
    assert.equal(dtypeOfName(name), dtype, name);
});

test("guesses equal those of iron sniff", () => {
  const ids = Array.from({length: 400}, (_, k) => k * 7919 % 50257);
  const i64 = Buffer.from(BigInt64Array.from(ids.map(BigInt)).buffer);
  const i32 = Buffer.from(Int32Array.from(ids.map((v, k) => k % 50 ? v : -1)).buffer);
  const guess = (bytes, name = "a.bin") => guessDtype(name, bytes.length, bytes).dtype;
  assert.equal(guess(i64), "i64");
  assert.equal(guess(u32(...ids)), "u32");
  assert.equal(guess(i32), "i32");
  assert.equal(guess(u16(...ids)), "u16");
  assert.equal(guess(u16(...ids).subarray(1)), "u8");
  assert.equal(guess(Buffer.alloc(64)), null);
  assert.equal(guess(Buffer.from("Some text, naïve and short.\n")), "u8");
  assert.equal(guess(u32(...ids), "a.u16"), "u16");
  assert.equal(guess(u16(...ids).subarray(1), "a.u16"), "u8");
});

test("a guess comes with its reason", () => {
  assert.match(
    look("a.bin", u32(5, 70000, 3, 900)).reason, /^as u32, 4 of 4 values are below 2\^20$/);
});

test("raw files with a given type", () => {
  assert.deepEqual(
    asRaw("a.bin", 12, "u32"),
    {kind: "raw", dtype: "u32", width: 4, offset: 0, tokens: 3, reason: "raw, u32"});
  assert.match(
    refusal(asRaw("a.bin", 13, "u32")), /13 bytes are not a whole number of u32 tokens of 4 bytes/);
});

test("a file is sampled at both ends", async () => {
  const ids = Uint32Array.from({length: 200000}, (_, k) => k % 50257);
  const file = new File([ids], "a.bin");
  assert.equal((await examineFile(file)).guess, "u32");
  ids.fill(0xabcdef01, 150000);
  assert.equal((await examineFile(new File([ids], "a.bin"))).guess, "u16");
});

test("a long NumPy header is read completely", async () => {
  const dict = `{'descr': '<u2', ${" ".repeat(5000)}'fortran_order': False, 'shape': (1,), }`;
  assert.equal((await examineFile(new File([npy(dict, u16(5))], "a.npy"))).tokens, 1);
  const cut = npyOf("'<u2'", "(1,)").subarray(0, 9);
  assert.match((await examineFile(new File([cut], "a.npy"))).sentence, /cut off/);
});

test("unreadable files", async () => {
  const folder = {
    name: "folder",
    size: 4096,
    slice: () => ({arrayBuffer: () => Promise.reject(new Error("gone"))})
  };
  assert.match((await examineFile(folder)).sentence, /^folder cannot be read/);
});
