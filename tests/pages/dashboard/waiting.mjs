// SPDX-License-Identifier: MIT
//
// waiting.mjs: waiting for conditions. Timing decides nothing in these tests: everything that must
// come is waited for, with a limit that only a hang reaches.

export const LIMIT_S = 120;
const LOOK_MS = 40;

export function pause(ms) {
  return new Promise((go) => setTimeout(go, ms));
}

// Asks until claim() is neither false nor nothing, and gives what it was.
export async function until(what, claim, seconds = LIMIT_S) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    const found = await claim();
    if (found !== false && found !== null && found !== undefined) return found;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await pause(LOOK_MS);
  }
}

// Asks until ask() gives what is expected; what it gave last is told otherwise.
export async function untilEqual(what, ask, expected, seconds = LIMIT_S) {
  const wanted = JSON.stringify(expected);
  let last;
  await until(what, async () => (last = JSON.stringify(await ask())) === wanted, seconds)
    .catch((error) => {
      throw new Error(`${error.message}: it is ${last}, expected ${wanted}`);
    });
}
