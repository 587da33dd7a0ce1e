// SPDX-License-Identifier: MIT
//
// trial.js: feeds a sample to users who have no token file: two million generated tokens, in a few
// bodies with pauses between them, so that the changes of the map are visible. The tokens and
// their seal are the same every time. More bodies would leave only one colour in the map, because
// nodes that reach the same point stay together.
import {enginePath, requestJson} from "./api.js";
import {newKey} from "./pieces.js";
import {sampleTokens} from "./sample.js";

const TOKENS = 2000000, BODIES = 14, BREATH_MS = 300;

const edge = (k) => Math.trunc(k * TOKENS / BODIES);
const breath = () => new Promise((go) => setTimeout(go, BREATH_MS));

// Appends the sample to the engine's stream; onProgress(0 ... 1).
export async function feedSample(name, onProgress) {
  const engine = await requestJson("GET", enginePath(name));
  const tokens = sampleTokens(TOKENS, engine.vocab);
  for (let k = 0, at = engine.tokens; k < BODIES; k++) {
    const answer = await requestJson(
      "POST", enginePath(name, `/feed?dtype=u16&at=${at}`),
      {body: tokens.subarray(edge(k), edge(k + 1)), headers: {"Idempotency-Key": newKey()}});
    at = answer.tokens;
    onProgress((k + 1) / BODIES);
    await breath();
  }
}
