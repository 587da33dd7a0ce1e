// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {bytes, count, counted, duration, rate, short, tokens} from "../../web/dashboard/text.js";

const plain = (text) => text.replaceAll("\u00a0", " ");

test("three digits, whatever the size", () => {
  for (const [n, text] of [
         [0, "0"], [1, "1"], [999, "999"], [999.6, "1.00 k"], [1000, "1.00 k"], [2350000, "2.35 M"],
         [9999, "10.0 k"], [99949, "99.9 k"], [99960, "100 k"], [999499, "999 k"],
         [999600, "1.00 M"], [1e12, "1.00 T"], [2 ** 53, "9.01 P"]])
    assert.equal(plain(short(n)), text, String(n));
});

test("units", () => {
  assert.equal(plain(tokens(1)), "1 token");
  assert.equal(plain(tokens(0)), "0 tokens");
  assert.equal(plain(rate(2500000)), "2.50 M tokens/s");
  assert.equal(plain(bytes(512)), "512 B");
  assert.equal(plain(bytes(2350000)), "2.35 MB");
  assert.equal(count(1234567), "1,234,567");
  assert.equal(counted(1, "batch", "batches"), "1 batch");
  assert.equal(counted(2, "batch", "batches"), "2 batches");
});

test("times", () => {
  for (const [seconds, text] of [
         [0.2, "less than a second"], [1, "1 s"], [59.4, "59 s"], [59.6, "1 min"],
         [200, "3 min 20 s"], [3600, "1 h"], [7260, "2 h 1 min"], [Infinity, "unknown"]])
    assert.equal(duration(seconds), text, String(seconds));
});
