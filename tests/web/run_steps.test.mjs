// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {laggingRanks, linesOf, RunSteps} from "../../web/dashboard/run_steps.js";
import {comparisonText, lagText, newestFirst, rowText} from "../../web/dashboard/run_text.js";
import {grouped} from "../../web/dashboard/text.js";

const BEGIN = Date.parse("2026-03-01T12:00:00.000Z");

// The row of a rank whose newest record came so many milliseconds after BEGIN.
function row(rank, last_step, after, world = 4) {
  return {rank, world, last_step, last_time: new Date(BEGIN + after).toISOString()};
}

test("steps at moments: before the first, between two, and after the last", () => {
  const steps = new RunSteps();
  steps.load([{rank: 5, points: [[1000, 10], [2000, 20]]}]);
  assert.deepEqual(steps.span, [1000, 2000]);
  assert.deepEqual(steps.stepsAt(5, [900, 1000, 1250, 2000, 9000]), [null, 10, 12, 20, 20]);
});

test("live rows continue the server's points, and nothing goes back in time", () => {
  const steps = new RunSteps();
  steps.load([{rank: 0, points: [[BEGIN, 1]]}, {rank: 1, points: []}]);
  steps.update([row(0, 3, 500), row(1, 2, 400), row(2, null, 0)]);
  steps.update([row(0, 4, 300), row(1, 2, 400)]);
  assert.deepEqual(steps.ranks.get(0), {times: [BEGIN, BEGIN + 500], steps: [1, 4]});
  assert.deepEqual(steps.ranks.get(1), {times: [BEGIN + 400], steps: [2]});
  assert.deepEqual([...steps.ranks.keys()], [0, 1]);
  assert.equal(new RunSteps().span, null);
});

test("the number of points is bounded, and the first and the newest stay", () => {
  const steps = new RunSteps();
  for (let k = 0; k < 5000; k++) steps.push(0, k, 2 * k);
  const {times} = steps.ranks.get(0);
  assert.ok(times.length <= 400, `${times.length} points`);
  assert.deepEqual([times[0], times[times.length - 1]], [0, 4999]);
  assert.deepEqual(steps.stepsAt(0, [2000, 4999]), [4000, 9998]);
});

test("a rank lags if it is old and behind, or far behind", () => {
  const ranks = (...rows) => laggingRanks(rows).map(({rank, behind}) => [rank, behind]);
  assert.deepEqual(ranks(row(0, 50, 60000), row(1, 49, 59000), row(2, 50, 60000)), []);
  assert.deepEqual(
    ranks(row(0, 50, 60000), row(1, 40, 20000), row(2, 30, 1000)), [[2, 20], [1, 10]]);
  assert.deepEqual(ranks(row(0, 500, 60000), row(1, 400, 60000)), [[1, 100]]);
  assert.deepEqual(ranks(row(0, 50, 60000), row(1, 50, 1000)), []);
  assert.deepEqual(ranks(row(0, null, 0)), []);
});

test("ranks that the newest part of a run does not have do not lag", () => {
  const rows = [row(0, 90, 60000, 2), row(1, 90, 60000, 2), row(2, 40, 1000), row(3, 40, 1000)];
  assert.deepEqual(laggingRanks(rows), []);
});

test("lines: those that lag and the first ones in full, the rest thin", () => {
  const ranks = [...Array(1000).keys()], {lagging, full, thin} = linesOf(ranks, [7, 900, 3, 4]);
  assert.deepEqual([lagging, full], [[7, 900, 3], [0, 1]]);
  assert.ok(thin.length <= 200 && thin.length > 150, `${thin.length} thin lines`);
  assert.equal(new Set([...lagging, ...full, ...thin]).size, 5 + thin.length);
  assert.deepEqual(linesOf([1, 0], []), {lagging: [], full: [0, 1], thin: []});
});

test("sentences", () => {
  assert.equal(
    grouped("step 48213 on rank 7 repeats step 947: 1000000 samples"),
    "step 48,213 on rank 7 repeats step 947: 1,000,000 samples");
  const sentence = "B goes on with step 1200, where A has ended; all before is equal";
  assert.equal(
    comparisonText("run-2000", "old-A", {sentence}),
    "run-2000 compared with old-A: run-2000 goes on with step 1,200, where old-A has ended; " +
      "all before is equal.");
  assert.equal(rowText({steps: 1500, ranks: 1}), "1,500 steps, 1 rank");
  assert.equal(rowText({steps: null, ranks: 8}), "not checked yet, 8 ranks");
  assert.equal(lagText([]), "");
  const rows = [1, 2, 3, 4].map((rank) => ({...row(rank, 1, 0), behind: 1}));
  assert.match(lagText(rows), /^Rank 1 is 1 step behind; .* Rank 3 is .*\. 1 more rank lags\.$/);
});

test("findings, the newest first", () => {
  const findings = [{step: 2, rank: 1}, {step: 9, rank: 3}, {step: 9, rank: 0}];
  assert.deepEqual(
    newestFirst(findings).map(({step, rank}) => [step, rank]), [[9, 0], [9, 3], [2, 1]]);
});
