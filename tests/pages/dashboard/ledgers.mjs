// SPDX-License-Identifier: MIT
//
// ledgers.mjs: writes ledgers of training runs, as docs/ledger.md describes the file. Samples are
// numbers: equal numbers are equal samples.

const SAMPLE_TOKENS = 2048n;

const TABLE = Uint32Array.from({length: 256}, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ n >>> 1 : n >>> 1;
  return n;
});

function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255] ^ crc >>> 8;
  return ~crc >>> 0;
}

// Little-endian words: [bits, value] each.
function words(...all) {
  const bytes = Buffer.alloc(all.reduce((sum, [bits]) => sum + bits / 8, 0));
  let at = 0;
  for (const [bits, value] of all) {
    if (bits === 64)
      bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), at);
    else
      bytes.writeUInt32LE(value, at);
    at += bits / 8;
  }
  return bytes;
}

const nanoseconds = (time) => BigInt(time) * 1000000n;

export function header(rank, world, time) {
  const begin = Buffer.concat([
    Buffer.from("IRONLDGR"),
    words([32, 1], [32, 64], [32, rank], [32, world], [64, nanoseconds(time)], [32, 0]),
    Buffer.alloc(24)
  ]);
  return Buffer.concat([begin, words([32, crc32(begin)])]);
}

// The two words of a sample's seal.
function sealOf(sample) {
  return [BigInt(sample) * 0x9e3779b97f4a7c15n, BigInt(sample) * 0xc2b2ae3d27d4eb4fn + 1n];
}

// A step with these samples, recorded at a time in milliseconds since 1970.
export function step(number, samples, time) {
  const seals = samples.map(sealOf), count = BigInt(samples.length);
  const [high, low] = [0, 1].map((k) => seals.reduce((sum, seal) => sum + seal[k], 0n));
  const payload = words(
    [64, number], [32, 0], [32, 0], [64, count * SAMPLE_TOKENS], [64, high * 3n], [64, low * 5n],
    [64, high], [64, low], [64, count], [64, nanoseconds(time)],
    ...seals.flat().map((word) => [64, word]));
  const head = words([32, 1], [32, payload.length]);
  return Buffer.concat([head, words([32, (crc32(head) ^ crc32(payload)) >>> 0], [32, 0]), payload]);
}

// Sends records of a rank to a run.
export function send(server, run, head, ...frames) {
  return server.json("POST", `/v1/runs/${run}/steps`, {
    body: Buffer.concat([head, ...frames]),
    headers: {"Content-Type": "application/octet-stream"}
  });
}

// A run of `world` ranks with two samples in each step, all of them different; `edit(rank, step)`
// may return other samples, or null for none. Ends at the time `end`, with `pace` ms for each step.
export async function sendRun(
  server, name, {world = 2, first = 0, steps = 20, end = Date.now(), pace = 1000, edit} = {}) {
  for (let rank = 0; rank < world; rank++) {
    const begun = end - steps * pace, frames = [];
    for (let at = first; at < first + steps; at++) {
      const plain = [0, 1].map((k) => 1 + (at * world + rank) * 2 + k);
      const samples = edit ? edit(rank, at, plain) : plain;
      if (samples) frames.push(step(at, samples, begun + (at - first + 1) * pace));
    }
    await send(server, name, header(rank, world, begun), ...frames);
  }
}
