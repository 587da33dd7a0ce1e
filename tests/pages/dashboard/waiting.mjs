// SPDX-License-Identifier: MIT
//
// waiting.mjs: waiting for conditions. The tests do not depend on timing: they wait for every
// expected change, with a limit that only a hung test reaches.

export const LIMIT_S = 120;
const LOOK_MS = 40;

export function pause(ms) {
  return new Promise((go) => setTimeout(go, ms));
}

// Polls claim() until it returns something other than false, null and undefined; returns that.
export async function until(what, claim, seconds = LIMIT_S) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    const found = await claim();
    if (found !== false && found !== null && found !== undefined) return found;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await pause(LOOK_MS);
  }
}

// Polls ask() until it returns the expected value; the error message contains the last value.
export async function untilEqual(what, ask, expected, seconds = LIMIT_S) {
  const wanted = JSON.stringify(expected);
  let last;
  await until(what, async () => (last = JSON.stringify(await ask())) === wanted, seconds)
    .catch((error) => {
      throw new Error(`${error.message}: it is ${last}, expected ${wanted}`);
    });
}
