// SPDX-License-Identifier: MIT
//
// command.mjs: runs the `iron` command for expected results, and writes token files for the tests.
import {execFileSync} from "node:child_process";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";

import {ENVIRONMENT, IRON} from "./server.mjs";

let place = null;

// A temporary folder for the files of all tests, deleted by removeFiles().
function folder() {
  place ??= mkdtempSync(join(tmpdir(), "iron-page-files-"));
  return place;
}

export function removeFiles() {
  if (place) rmSync(place, {recursive: true, force: true});
  place = null;
}

function run(...words) {
  return execFileSync(IRON, words.map(String), {env: ENVIRONMENT, encoding: "utf8"});
}

export function writeFile(name, ...parts) {
  const path = join(folder(), name);
  writeFileSync(path, Buffer.concat(parts.map((part) => bytesOf(part))));
  return path;
}

export function bytesOf(array) {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

// Pseudo-random tokens below `limit`, as a typed array (Uint16Array ...).
export function makeTokens(count, {seed = 1, limit = 50257, Kind = Uint16Array} = {}) {
  let state = seed;
  return Kind.from({length: count}, () => {
    state = Math.imul(state, 1664525) + 1013904223 | 0;
    return (state >>> 8) % limit;
  });
}

// Writes a Uint16Array as a NumPy file.
export function npyFile(name, tokens) {
  const dict = `{'descr': '<u2', 'fortran_order': False, 'shape': (${tokens.length},), }`;
  const head = Buffer.alloc(128, " ");
  Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 118, 0]).copy(head);
  head.write(dict, 10, "latin1");
  head[127] = 0x0a;
  return writeFile(name, head, tokens);
}

// Writes a Uint16Array as an llm.c file.
export function llmcFile(name, tokens) {
  const head = new Int32Array(256);
  head.set([20240520, 1, tokens.length]);
  return writeFile(name, head, tokens);
}

// The result of `iron feed` for these files: {tokens, batches, xor, sum, state, seal}.
export function feedFiles(paths, {dtype, nodes, vocab, batch, positions, lattice} = {}) {
  const options = {dtype, nodes, vocab, batch, positions, lattice: lattice && lattice.join(",")};
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const words = given.flatMap(([name, value]) => [`--${name}`, value]);
  return figuresOf(
    JSON.parse(run("feed", ...paths, ...words, "--backend", "cpu", "--seal", "--json")));
}

export function sealOf(path, dtype) {
  return run("sum", path, ...(dtype ? ["--dtype", dtype] : [])).split(" ")[0];
}

export function figuresOf({tokens, batches, xor, sum, state, seal}) {
  return {tokens, batches, xor, sum, state, seal};
}
