// SPDX-License-Identifier: MIT
//
// pieces.js: how a file is cut for sending. A request's end ends its batch, so each piece but the
// last is a whole number of batches, counted from the file's beginning: the engine then sees the
// batches that `iron feed FILE` makes. The size of pieces follows the speed of the connection, so
// that a few are sent per second: each costs the server an fsync, and each may have to be resent.

export const PIECE_BYTES_MAX = 64 * 1024 * 1024;
const PIECE_SECONDS = 0.35;
const FIRST_BYTES = 4 * 1024 * 1024;  // before the speed is known

// Number of tokens in the piece that begins at token `from` of `total`. `rate` is in tokens per
// second, 0 while unknown; `batchesMax` is the most that the server accepts at once.
export function pieceLength({from, total, batch, width, rate = 0, batchesMax = Infinity}) {
  const wished = rate > 0 ? rate * PIECE_SECONDS : FIRST_BYTES / width;
  const tokens = Math.min(wished, PIECE_BYTES_MAX / width);
  const batches = Math.max(1, Math.min(batchesMax, Math.floor(tokens / batch)));
  return Math.min(total - from, batches * batch);
}

// Measures a rate over about the last two seconds, from repeated reports of the total so far.
export class Speed {
  constructor(seconds = 2) {
    this.span = seconds;
    this.seen = [];
  }

  tell(now, total) {
    const last = this.seen[this.seen.length - 1];
    if (last && total < last.total) this.seen = [];  // a piece that is sent again
    this.seen.push({now, total});
    while (this.seen.length > 2 && now - this.seen[1].now >= this.span) this.seen.shift();
  }

  // Per second; 0 while there is not enough data.
  get rate() {
    const first = this.seen[0], last = this.seen[this.seen.length - 1];
    const seconds = first ? last.now - first.now : 0;
    return seconds > 0.05 ? (last.total - first.total) / seconds : 0;
  }
}

// 1, 2, 4, 8 and then every 15 seconds; at least what the server asked for.
export function pauseSeconds(failures, retryAfter = 0) {
  return Math.max(Math.min(15, 2 ** Math.max(0, failures - 1)), retryAfter);
}

// A unique key for a request. (randomUUID is not available over plain http.)
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "page-" + Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");
}
