// SPDX-License-Identifier: MIT
//
// trial.js: a first look for somebody who has no file at hand: two million made-up tokens, fed in
// a few bodies with a breath between them, so that one sees the map move. The tokens are the same
// every time, and so is the seal that they come to. More bodies would leave one colour in the map:
// nodes that meet stay together.
import {enginePath, requestJson} from "./api.js";
import {newKey} from "./pieces.js";
import {sampleTokens} from "./sample.js";

const TOKENS = 2000000, BODIES = 14, BREATH_MS = 300;

const edge = (k) => Math.trunc(k * TOKENS / BODIES);
const breath = () => new Promise((go) => setTimeout(go, BREATH_MS));

// Feeds the sample behind what the engine holds; onProgress(0 ... 1).
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
