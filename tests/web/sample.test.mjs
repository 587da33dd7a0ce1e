// SPDX-License-Identifier: MIT
import "./made.mjs";

import assert from "node:assert/strict";
import {test} from "node:test";

import {examineFile} from "../../web/dashboard/filekinds.js";
import {sampleFile, sampleTokens} from "../../web/dashboard/sample.js";

test("the same tokens every time, below the vocabulary", () => {
  const tokens = sampleTokens(100000, 50257);
  assert.deepEqual(tokens, sampleTokens(100000, 50257));
  assert.ok(tokens.every(t => t < 50257));
  assert.deepEqual(sampleTokens(10, 50257), tokens.subarray(0, 10));
});

test("small ids are frequent, large ids occur", () => {
  const counts = new Map();
  for (const t of sampleTokens(200000, 50257)) counts.set(t, (counts.get(t) || 0) + 1);
  const [first, tenth, thousandth] = [0, 9, 999].map(t => counts.get(t) || 0);
  assert.ok(first > 4 * tenth && tenth > 20 * thousandth, `${first} ${tenth} ${thousandth}`);
  assert.ok(Math.max(...counts.keys()) > 45000);
});

test("every vocabulary", () => {
  for (const vocab of [1, 2, 3, 65536, 2 ** 31]) {
    const tokens = sampleTokens(1000, vocab);
    assert.ok(tokens.every(t => t < vocab));
  }
});

test("as a NumPy file", async () => {
  const kind = await examineFile(sampleFile(1234, 50257));
  assert.deepEqual([kind.kind, kind.dtype, kind.tokens], ["npy", "u16", 1234]);
});
