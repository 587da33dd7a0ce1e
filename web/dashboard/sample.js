// SPDX-License-Identifier: MIT
//
// sample.js: generates sample tokens in which common ids are frequent and rare ones rare, as in
// texts. It uses integer arithmetic only, so that every browser generates the same tokens and gets
// the same seal.

// A sequence of 32-bit numbers (xorshift, then a multiplication), from a fixed start.
function numbers() {
  let state = 0x1207;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return Math.imul(state, 0x9e3779b1) >>> 0;
  };
}

// `count` ids below `vocab` (at most 65536). Each octave, 1, 2 to 3, 4 to 7 ..., is as likely as
// any other, and an id is as likely as any other of its octave: Zipf's law, in steps.
export function sampleTokens(count, vocab) {
  const limit = Math.max(1, Math.min(65536, vocab)), octaves = 32 - Math.clz32(limit);
  const tokens = new Uint16Array(count), next = numbers();
  for (let k = 0; k < count;) {
    const octave = next() % octaves, place = next() >>> 8 & (1 << octave) - 1;
    const id = (1 << octave) + place - 1;
    if (id < limit) tokens[k++] = id;
  }
  return tokens;
}

// The same as a NumPy file, which states its own type.
export function sampleFile(count, vocab, name = "sample.npy") {
  const head = new Uint8Array(128).fill(0x20);
  const dict = `{'descr': '<u2', 'fortran_order': False, 'shape': (${count},), }`;
  head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 118, 0]);
  head.set(new TextEncoder().encode(dict), 10);
  head[127] = 0x0a;
  return new File([head, sampleTokens(count, vocab)], name);
}
