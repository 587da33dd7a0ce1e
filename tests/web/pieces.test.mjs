// SPDX-License-Identifier: MIT
import "./made.mjs";

import assert from "node:assert/strict";
import {test} from "node:test";

import {newKey, pauseSeconds, PIECE_BYTES_MAX, pieceLength, Speed} from "../../web/dashboard/pieces.js";

test("all pieces but the last are whole batches", () => {
  for (const batch of [1, 1000, 786432, 3e7])
    for (const rate of [0, 1, 1e5, 3e6, 1e9]) {
      const total = 5e7 + 123, width = 2;
      for (let from = 0; from < total;) {
        const count = pieceLength({from, total, batch, width, rate});
        assert.ok(count > 0 && from + count <= total);
        assert.ok(count % batch === 0 || from + count === total);
        assert.ok(count * width <= PIECE_BYTES_MAX || count <= batch);
        if (batch === 1 && count < 1000) break;  // too many iterations
        from += count;
      }
    }
});

test("the piece length follows the speed", () => {
  const piece = rate => pieceLength({from: 0, total: 1e12, batch: 1000, width: 4, rate});
  assert.equal(piece(1e6), 350000);
  assert.equal(piece(100), 1000);
  assert.equal(piece(1e12), 16777000);
  assert.equal(piece(0), 1048000);
});

test("single batches if the server accepts no more", () => {
  assert.equal(
    pieceLength({from: 0, total: 1e9, batch: 1000, width: 4, rate: 1e9, batchesMax: 1}), 1000);
});

test("positions beyond 2^32 are exact", () => {
  const total = 2 ** 40 + 1;
  assert.equal(pieceLength({from: 2 ** 40, total, batch: 786432, width: 2, rate: 1e9}), 1);
});

test("the speed over the last two seconds", () => {
  const speed = new Speed();
  assert.equal(speed.rate, 0);
  speed.tell(0, 0);
  assert.equal(speed.rate, 0);
  for (let t = 1; t <= 40; t++) speed.tell(t / 10, t * 100);
  assert.ok(Math.abs(speed.rate - 1000) < 1e-6);
  for (let t = 41; t <= 80; t++) speed.tell(t / 10, 4000 + (t - 40) * 500);
  assert.ok(Math.abs(speed.rate - 5000) < 1e-6);
  speed.tell(8.1, 100);  // sent again
  assert.equal(speed.rate, 0);
});

test("pauses grow, and Retry-After is honoured", () => {
  assert.deepEqual([1, 2, 3, 4, 5, 6, 60].map(n => pauseSeconds(n)), [1, 2, 4, 8, 15, 15, 15]);
  assert.equal(pauseSeconds(1, 30), 30);
});

test("keys differ and are visible ASCII", () => {
  const keys = new Set(Array.from({length: 1000}, newKey));
  assert.equal(keys.size, 1000);
  for (const key of keys) assert.match(key, /^page-[0-9a-f]{32}$/);
});
