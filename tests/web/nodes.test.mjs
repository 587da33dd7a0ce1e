// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {pointPixels, POTENTIAL_STEPS, potentialPixels} from "../../web/dashboard/colours.js";
import {nodeAt, paintPoints, paintPotentials, potentialSpan, rankTable, readNodes, sideOf} from "../../web/dashboard/nodes.js";

import {nodesFile, npyOf} from "./made.mjs";

const LATTICE = [7, 15, 65535];
const ROWS = [[7, 0, 0.25], [65535, -14, 0.5], [15, 100, 0.75], [7, 1e6, 1]];

test("nodes as the server sends them", () => {
  const nodes = readNodes(nodesFile(ROWS));
  assert.equal(nodes.count, 4);
  assert.deepEqual(nodeAt(nodes, 1), {point: 65535, potential: -14, activation: 0.5});
  assert.deepEqual(nodeAt(nodes, 3), {point: 7, potential: 1e6, activation: 1});
});

test("unaligned data is copied", () => {
  const nodes = readNodes(nodesFile(ROWS, {align: 63}));
  assert.deepEqual(nodeAt(nodes, 2), {point: 15, potential: 100, activation: 0.75});
});

test("truncated and other answers are refused", () => {
  const file = nodesFile(ROWS);
  assert.throws(() => readNodes(file.slice(0, file.byteLength - 1)), /cut off/);
  const other = npyOf("'<f4'", "(3,)", Buffer.alloc(12));
  assert.throws(() => readNodes(new Uint8Array(other).buffer), /not an array of nodes/);
});

test("the smallest square", () => {
  for (const [count, side] of [
         [1, 1], [2, 2], [4, 2], [5, 3], [4096, 64], [4097, 65], [1 << 20, 1024]])
    assert.equal(sideOf(count), side);
});

test("pixels by lattice point, changed nodes, counts", () => {
  const nodes = readNodes(nodesFile([...ROWS, [8, 0, 1], [70000, 0, 1]]));
  const colours = pointPixels(3, "light"), pixels = new Uint32Array(9), marks = new Uint32Array(9);
  const counts = new Uint32Array(3);
  paintPoints(nodes, rankTable(LATTICE), colours, pixels, counts, marks);
  assert.deepEqual([...pixels], [colours[0], colours[2], colours[1], colours[0], 0, 0, 0, 0, 0]);
  assert.deepEqual([...counts], [2, 1, 1]);
  assert.deepEqual(
    [...marks].map(m => m !== 0), [true, true, true, true, false, false, false, false, false]);
  pixels[2] = 1;
  paintPoints(nodes, rankTable(LATTICE), colours, pixels, counts, marks);
  assert.deepEqual(
    [...marks].map(m => m !== 0), [false, false, true, false, false, false, false, false, false]);
  assert.deepEqual([...counts], [2, 1, 1]);
});

test("pixels by potential, clamped to the range", () => {
  const nodes = readNodes(nodesFile(ROWS)), colours = potentialPixels("light"),
        pixels = new Uint32Array(4);
  assert.deepEqual(potentialSpan(nodes), {lowest: -14, highest: 1e6});
  paintPotentials(nodes, 100, colours, pixels, null);
  assert.deepEqual([...pixels], [
    colours[POTENTIAL_STEPS], colours[POTENTIAL_STEPS + Math.round(-14 * POTENTIAL_STEPS / 100)],
    colours[2 * POTENTIAL_STEPS], colours[2 * POTENTIAL_STEPS]
  ]);
  assert.deepEqual(potentialSpan(readNodes(nodesFile([]))), {lowest: 0, highest: 0});
});
