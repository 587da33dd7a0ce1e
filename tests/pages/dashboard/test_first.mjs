// SPDX-License-Identifier: MIT
//
// test_first.mjs: the start page of an empty server: creating the first engine, feeding the sample.
import assert from "node:assert/strict";

import {sampleTokens} from "../../../web/dashboard/sample.js";

import {sealOf, writeFile} from "./command.mjs";
import {scenario} from "./scenario.mjs";
import {until} from "./waiting.mjs";

// Waits until the sample is fed; engine and page must have the seal that the command computes.
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

const BODIES = 14;  // number of feeds of the sample

scenario("create an engine, then feed the sample", {}, async ({server, visit}) => {
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
  await until("one row per batch", async () => {
    return await visit.page.locator("#history-rows tr").count() === BODIES;
  });
});

scenario("engine and sample with one click", {}, async ({server, visit}) => {
  await visit.open();
  await visit.click("try-sample");
  await visit.engineIs("first");
  await sampleIsFed(server, visit, BODIES);
  await visit.page.reload();
  await visit.engineIs("first");
  await sampleIsFed(server, visit, BODIES);
});
