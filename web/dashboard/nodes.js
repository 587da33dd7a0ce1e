// SPDX-License-Identifier: MIT
//
// nodes.js: reads an engine's nodes as the server sends them (a NumPy file of records: accumulator,
// potential, activation) and turns them into pixels: one table lookup per node and no allocation,
// so that 4096 nodes take microseconds and a million a few milliseconds.

import {POTENTIAL_STEPS} from "./colours.js";
import {readNpyHeader} from "./npy.js";

const RECORD = [["xor_accumulators", "<u4"], ["potentials", "<f4"], ["activations", "<f4"]];
const WORDS = RECORD.length;

// The nodes in an ArrayBuffer: {count, words, reals}; see the accessors below. They are views, not
// copies, which NumPy's alignment of data allows.
export function readNodes(buffer) {
  const header = readNpyHeader(new Uint8Array(buffer));
  const count = header.shape.length === 1 ? header.shape[0] : -1;
  if (JSON.stringify(header.descr) !== JSON.stringify(RECORD) || count < 0)
    throw new Error("the server's answer is not an array of nodes");
  if (buffer.byteLength - header.offset !== count * WORDS * 4)
    throw new Error("the server's answer was cut off");
  const data = header.offset % 4 ? buffer.slice(header.offset) : buffer;
  const start = header.offset % 4 ? 0 : header.offset;
  return {
    count,
    words: new Uint32Array(data, start, count * WORDS),
    reals: new Float32Array(data, start, count * WORDS)
  };
}

export function nodeAt(nodes, j) {
  return {
    point: nodes.words[WORDS * j],
    potential: nodes.reals[WORDS * j + 1],
    activation: nodes.reals[WORDS * j + 2]
  };
}

// The side of the smallest square that holds them.
export function sideOf(count) {
  return Math.max(1, Math.ceil(Math.sqrt(count)));
}

const UNKNOWN = 255;  // for a value that is not a lattice point; there are at most 64 points

// For each 16-bit value its place in the lattice.
export function rankTable(lattice) {
  const table = new Uint8Array(65536).fill(UNKNOWN);
  lattice.forEach((point, rank) => table[point] = rank);
  return table;
}

// Fills pixels by lattice point; counts[rank] becomes the number of nodes on it. If `marks` is
// given, changed nodes are set in it.
export function paintPoints(nodes, ranks, colours, pixels, counts, marks) {
  const palette = new Uint32Array(256);
  palette.set(colours);
  counts.fill(0);
  for (let j = 0, w = 0; j < nodes.count; j++, w += WORDS) {
    const value = nodes.words[w], rank = value < 65536 ? ranks[value] : UNKNOWN;
    const pixel = palette[rank];
    if (rank < counts.length) counts[rank]++;
    if (marks) marks[j] = pixels[j] === pixel ? 0 : 0xffffffff;
    pixels[j] = pixel;
  }
}

// {lowest, highest} of all potentials.
export function potentialSpan(nodes) {
  let lowest = Infinity, highest = -Infinity;
  for (let w = 1; w < nodes.reals.length; w += WORDS) {
    const value = nodes.reals[w];
    if (value < lowest) lowest = value;
    if (value > highest) highest = value;
  }
  return nodes.count ? {lowest, highest} : {lowest: 0, highest: 0};
}

// Fills pixels by potential, from -range to range.
export function paintPotentials(nodes, range, colours, pixels, marks) {
  const scale = POTENTIAL_STEPS / range, zero = POTENTIAL_STEPS + 0.5, last = 2 * POTENTIAL_STEPS;
  for (let j = 0, w = 1; j < nodes.count; j++, w += WORDS) {
    const step = nodes.reals[w] * scale + zero;
    const pixel = colours[step < 0 ? 0 : step > last ? last : step | 0];
    if (marks) marks[j] = pixels[j] === pixel ? 0 : 0xffffffff;
    pixels[j] = pixel;
  }
}
