// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {RateWindow} from "../../web/dashboard/rate_window.js";

function windowOf(...pairs) {
  const window = new RateWindow();
  for (const [seconds, rate] of pairs) window.push(seconds, rate);
  return window;
}

test("without reports the line is at 0", () => {
  const window = new RateWindow();
  assert.deepEqual(window.points(200), [[80, 200], [0, 0]]);
  assert.ok(window.isFlat(200));
  assert.equal(window.at(200), 0);
});

test("after a 0 the line stays at 0", () => {
  const window = windowOf([100, 5], [101, 0], [140, 7]);
  assert.deepEqual(window.points(140), [[100, 101, 139.5, 140], [5, 0, 0, 7]]);
  window.push(141, 0);
  assert.deepEqual(window.points(150)[0].slice(-2), [141, 150]);
  assert.deepEqual(window.points(150)[1].slice(-2), [0, 0]);
});

test("a rate without later samples leaves a gap", () => {
  const window = windowOf([100, 5], [140, 7]);
  assert.deepEqual(window.points(140), [[100, 100.5, 140], [5, null, 7]]);
  assert.equal(window.at(141), 7);
  assert.equal(window.at(150), 0);
});

test("of two reports at the same time the later one counts", () => {
  assert.deepEqual(windowOf([100, 5], [100, 6], [99, 7]).points(100), [[100], [7]]);
});

test("keeps two minutes, and the last report before them", () => {
  const window = new RateWindow();
  for (let t = 0; t <= 300; t++) window.push(t, 1);
  assert.equal(window.times[0], 180);
  assert.equal(window.peak, 1);
  window.push(301, 0);
  assert.ok(!window.isFlat(301));
  assert.ok(!window.isFlat(420));
  assert.ok(window.isFlat(421));
});
