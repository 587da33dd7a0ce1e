// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {isNpy, npyHeadBytes, readNpyHeader} from "../../web/dashboard/npy.js";

import {NODES, npy, npyOf, u16} from "./made.mjs";

test("a header as numpy.save writes it", () => {
  const file = npyOf("'<u2'", "(3,)", u16(1, 2, 3));
  assert.equal(file.length, 134);
  assert.ok(isNpy(file));
  assert.equal(npyHeadBytes(file), 128);
  assert.deepEqual(readNpyHeader(file), {descr: "<u2", isFortran: false, shape: [3], offset: 128});
});

test("versions 2 and 3 have a longer length", () => {
  for (const major of [2, 3]) {
    const file = npyOf("'<u4'", "(2, 5)", Buffer.alloc(40), {major});
    assert.deepEqual(readNpyHeader(file).shape, [2, 5]);
    assert.equal(readNpyHeader(file).offset + 40, file.length);
  }
});

test("keys in any order, other quotes, blanks", () => {
  const file = npy(`{ "shape":( 7 , ) ,'fortran_order' :True, "descr": '|u1' }`);
  assert.deepEqual(
    {...readNpyHeader(file), offset: 0}, {descr: "|u1", isFortran: true, shape: [7], offset: 0});
});

test("records, and no dimensions", () => {
  assert.deepEqual(
    readNpyHeader(npyOf(NODES, "(4,)")).descr,
    [["xor_accumulators", "<u4"], ["potentials", "<f4"], ["activations", "<f4"]]);
  assert.deepEqual(readNpyHeader(npyOf("'<u2'", "()")).shape, []);
});

test("invalid headers are refused", () => {
  const good = "{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }";
  for (const dict of
         ["", "{}", "[1]", good + "x", good.replace("'shape'", "'form'"), good.replace(", }", ""),
          good.replace("False", "0"), good.replace("False", "Maybe"), good.replace("(1,)", "(-1,)"),
          good.replace("(1,)", "(01,)"), good.replace("(1,)", "('1',)"),
          good.replace("(1,)", "(1 2)"), good.replace("(1,)", "(9007199254740993,)"),
          good.replace("}", "'shape': (1,)}"), good.replace("}", "'more': 1}"),
          good.replace("'<u2'", "None"), good.replace("'<u2'", "'<u2")])
    assert.throws(() => readNpyHeader(npy(dict)), /^Error: its NumPy header/, dict);
});

test("truncated headers, unknown versions, invalid lengths", () => {
  const file = npyOf("'<u2'", "(3,)", u16(1, 2, 3));
  assert.throws(() => readNpyHeader(file.subarray(0, 11)), /cut off/);
  assert.throws(() => readNpyHeader(file.subarray(0, 127)), /cut off/);
  for (const major of [0, 4])
    assert.throws(
      () =>
        readNpyHeader(Buffer.concat([file.subarray(0, 6), Buffer.from([major]), file.subarray(7)])),
      /version is [04]\.0, expected 1 to 3/);
  const long = npyOf("'<u2'", "(3,)", u16(1, 2, 3), {major: 2});
  long.writeUInt32LE(0xfffffff0, 8);
  assert.throws(() => npyHeadBytes(long), /length of 4294967292 bytes/);
});
