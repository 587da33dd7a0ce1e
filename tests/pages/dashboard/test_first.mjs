// SPDX-License-Identifier: MIT
//
// test_first.mjs: the first minute of somebody who has neither an engine nor a file.
import assert from "node:assert/strict";

import {sampleTokens} from "../../../web/dashboard/sample.js";

import {sealOf, writeFile} from "./command.mjs";
import {scenario} from "./scenario.mjs";
import {until} from "./waiting.mjs";

// The sample has been fed: the engine has its seal, as the command computes it, and so does the
// page.
async function sampleIsFed(server, visit, bodies) {
  await until("the sample is fed", async () => (await server.engine("first")).feeds === bodies);
  const engine = await server.engine("first");
  const path = writeFile("sample.bin", sampleTokens(engine.tokens, engine.vocab));
  const seal = sealOf(path, "u16");
  assert.equal(engine.seal, seal);
  await visit.says("seal", seal);
  await visit.says("tokens", engine.tokens.toLocaleString("en"));
  await visit.says("batches", String(engine.batches));
}

const BODIES = 14;  // that the sample comes in, so that one sees the map move

scenario("three steps, an engine by its button, a sample", {}, async ({server, visit}) => {
  await visit.open();
  await visit.connectionIs("connected");
  await visit.seen("try-sample");
  assert.equal(await visit.page.locator(".steps li:visible").count(), 3);
  assert.equal(await visit.isSeen("report-link"), false);

  await visit.click("make-first");
  await visit.engineIs("first");
  await visit.says("tokens", "0");
  const before = await visit.mapDrawn();
  await visit.click("feed-sample");
  await sampleIsFed(server, visit, BODIES);
  await visit.mapDrawn(before);
  await visit.gone("feed-sample");
  await until("a line for each batch", async () => {
    return await visit.page.locator("#history-rows tr").count() === BODIES;
  });
});

scenario("an engine and a sample with one click", {}, async ({server, visit}) => {
  await visit.open();
  await visit.click("try-sample");
  await visit.engineIs("first");
  await sampleIsFed(server, visit, BODIES);
  await visit.page.reload();
  await visit.engineIs("first");
  await sampleIsFed(server, visit, BODIES);
});
