// SPDX-License-Identifier: MIT
//
// sample.js: made-up tokens for somebody who has none at hand: common ids often, rare ones seldom,
// as in texts. Whole numbers alone decide, so that every browser makes the same ones, and the seal
// that an engine comes to with them is the same everywhere.

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

// The same as a NumPy file, which says by itself what it holds.
export function sampleFile(count, vocab, name = "sample.npy") {
  const head = new Uint8Array(128).fill(0x20);
  const dict = `{'descr': '<u2', 'fortran_order': False, 'shape': (${count},), }`;
  head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 118, 0]);
  head.set(new TextEncoder().encode(dict), 10);
  head[127] = 0x0a;
  return new File([head, sampleTokens(count, vocab)], name);
}
