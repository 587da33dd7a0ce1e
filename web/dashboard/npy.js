// SPDX-License-Identifier: MIT
//
// npy.js: the header of a NumPy file: a magic, a version, a length, and a Python dict with descr,
// fortran_order and shape. Headers with any other content are refused.

export const NPY_PREFIX_BYTES = 12;         // enough to tell how long the header is
export const NPY_HEADER_MAX = 1024 * 1024;  // longer ones are invalid

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

export function isNpy(bytes) {
  return bytes.length >= MAGIC.length && MAGIC.every((b, k) => bytes[k] === b);
}

// Bytes up to the data, from the first NPY_PREFIX_BYTES; throws an Error with a message.
export function npyHeadBytes(bytes) {
  if (bytes.length < NPY_PREFIX_BYTES) throw new Error("its NumPy header is cut off");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), major = bytes[6];
  if (major < 1 || major > 3)
    throw new Error(`its NumPy format version is ${major}.${bytes[7]}, expected 1 to 3`);
  const total = major === 1 ? 10 + view.getUint16(8, true) : 12 + view.getUint32(8, true);
  if (total > NPY_HEADER_MAX)
    throw new Error(`its NumPy header has an invalid length of ${total} bytes`);
  return total;
}

// Parses the Python literals in a header: strings, True, False, integers, tuples, lists and dicts.
// `at` is the reader's position.
class Literals {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  take(pattern) {
    const match = pattern.exec(this.text.slice(this.at));
    if (!match) return null;
    this.at += match[0].length;
    return match;
  }

  need(pattern) {
    const match = this.take(pattern);
    if (!match) throw new Error(`its NumPy header is not a dict of descr, fortran_order and shape`);
    return match;
  }

  value() {
    const flag = this.take(/^\s*(True|False)/);
    if (flag) return flag[1] === "True";
    const number = this.take(/^\s*(0|[1-9][0-9]*)/);
    if (number) return Number(number[1]);
    const string = this.take(/^\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)")/);
    if (string) return string[1] ?? string[2];
    if (this.take(/^\s*\(/)) return this.rest(/^\s*\)/);
    this.need(/^\s*\[/);
    return this.rest(/^\s*\]/);
  }

  rest(end) {
    const values = [];
    for (let hasComma = true; !this.take(end); hasComma = Boolean(this.take(/^\s*,/))) {
      if (!hasComma) this.need(/^\s*,/);
      values.push(this.value());
    }
    return values;
  }

  dict() {
    const entries = new Map();
    this.need(/^\s*\{/);
    for (let hasComma = true; !this.take(/^\s*\}/); hasComma = Boolean(this.take(/^\s*,/))) {
      if (!hasComma) this.need(/^\s*,/);
      const key = this.need(/^\s*(?:'(\w+)'|"(\w+)")\s*:/), name = key[1] ?? key[2];
      if (entries.has(name)) throw new Error(`its NumPy header has ${name} twice`);
      entries.set(name, this.value());
    }
    this.need(/^\s*$/);
    return entries;
  }
}

// Parses the header in the first bytes of a file: {descr, isFortran, shape, offset}. descr is a
// string, or for a structured array a list of [name, type].
export function readNpyHeader(bytes) {
  const offset = npyHeadBytes(bytes);
  if (bytes.length < offset) throw new Error("its NumPy header is cut off");
  const start = bytes[6] === 1 ? 10 : 12;
  const text = new TextDecoder("latin1").decode(bytes.subarray(start, offset));
  const dict = new Literals(text).dict();
  const descr = dict.get("descr"), isFortran = dict.get("fortran_order"), shape = dict.get("shape");
  const isWhole = dict.size === 3 && (typeof descr === "string" || Array.isArray(descr)) &&
    typeof isFortran === "boolean" && Array.isArray(shape) && shape.every(Number.isSafeInteger);
  if (!isWhole) throw new Error("its NumPy header is not a dict of descr, fortran_order and shape");
  return {descr, isFortran, shape, offset};
}
