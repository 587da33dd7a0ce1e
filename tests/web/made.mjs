// SPDX-License-Identifier: MIT
//
// made.mjs: makes files of other programs byte by byte, for the dashboard's tests.
import {File} from "node:buffer";
import {webcrypto} from "node:crypto";

// Browser globals that node 18 lacks.
globalThis.File ??= File;
globalThis.crypto ??= webcrypto;

function headOf(text, major, align) {
  const start = major === 1 ? 10 : 12;
  const total = Math.ceil((start + text.length + 1) / align) * align;
  const head = Buffer.alloc(total, " ");
  head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, major, 0]);
  if (major === 1)
    head.writeUInt16LE(total - start, 8);
  else
    head.writeUInt32LE(total - start, 8);
  head.write(text, start, "latin1");
  head[total - 1] = 0x0a;
  return head;
}

// The output of numpy.save: the dict, padding up to a multiple of 64, a line feed, the data.
export function npy(dict, data = Buffer.alloc(0), {major = 1, align = 64} = {}) {
  return Buffer.concat([headOf(dict, major, align), data]);
}

export function npyOf(descr, shape, data, more) {
  return npy(`{'descr': ${descr}, 'fortran_order': False, 'shape': ${shape}, }`, data, more);
}

export const NODES = "[('xor_accumulators', '<u4'), ('potentials', '<f4'), ('activations', '<f4')]";

// Nodes as the server sends them: rows of [point, potential, activation].
export function nodesFile(rows, more) {
  const data = Buffer.alloc(12 * rows.length);
  rows.forEach(([point, potential, activation], j) => {
    data.writeUInt32LE(point, 12 * j);
    data.writeFloatLE(potential, 12 * j + 4);
    data.writeFloatLE(activation, 12 * j + 8);
  });
  const file = npyOf(NODES, `(${rows.length},)`, data, more);
  return file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
}

// llm.c: a header of 256 words, three of them used, then tokens.
export function llmc(magic, version, count, data) {
  const head = Buffer.alloc(1024);
  head.writeInt32LE(magic, 0);
  head.writeInt32LE(version, 4);
  head.writeInt32LE(count, 8);
  return Buffer.concat([head, data]);
}

export function u16(...values) {
  return Buffer.from(Uint16Array.from(values).buffer);
}

export function u32(...values) {
  return Buffer.from(Uint32Array.from(values).buffer);
}
