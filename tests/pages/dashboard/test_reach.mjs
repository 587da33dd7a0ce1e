// SPDX-License-Identifier: MIT
//
// test_reach.mjs: the page can be used with the keyboard alone, and the focus is always visible.
import assert from "node:assert/strict";

import {focused} from "./audit.mjs";
import * as command from "./command.mjs";
import {scenario} from "./scenario.mjs";

const STOPS_MAX = 100;

// Presses Tab until the element is reached; the focus must be visible at every step.
async function tabTo(visit, id) {
  for (let k = 0; k < STOPS_MAX; k++) {
    await visit.page.keyboard.press("Tab");
    const stop = await visit.page.evaluate(focused);
    if (stop) assert.ok(stop.isVisible, `focus is not seen on ${stop.what}`);
    if (stop && stop.id === id) return;
  }
  assert.fail(`${id} is not reached with Tab`);
}

scenario("keyboard: create an engine, feed a file, use the map", {}, async ({server, visit}) => {
  const {keyboard} = visit.page;
  await visit.open();
  await visit.seen("try-sample");
  await keyboard.press("Tab");
  assert.equal((await visit.page.evaluate(focused)).id, "skip");
  await tabTo(visit, "new-engine");
  await keyboard.press("Enter");
  await visit.seen("engine-form");
  assert.equal((await visit.page.evaluate(focused)).id, "engine-name");
  await keyboard.type("typed");
  await tabTo(visit, "nodes");
  await keyboard.press("Control+A");
  await keyboard.type("64");
  await tabTo(visit, "create");
  await keyboard.press("Enter");
  await visit.engineIs("typed");
  assert.equal((await server.engine("typed")).nodes, 64);

  const path = command.writeFile("typed.bin", command.makeTokens(10001));
  await tabTo(visit, "choose-file");
  await keyboard.press("Enter");
  await (await visit.fileChooser()).setFiles(path);
  await visit.seen("dtype");
  await tabTo(visit, "dtype");
  await tabTo(visit, "feed");
  await keyboard.press("Enter");
  await visit.jobIs("typed.bin", "done");
  await visit.figuresAre(command.feedFiles([path], {nodes: 64, dtype: "u16"}));

  await visit.mapDrawn();
  await tabTo(visit, "map-by-point");
  const byPoint = await visit.pixels();
  await keyboard.press("ArrowRight");
  await visit.mapDrawn(byPoint);
  await tabTo(visit, "map");
  for (const [key, node] of [["ArrowDown", 0], ["ArrowDown", 8], ["ArrowRight", 9]]) {
    await keyboard.press(key);
    await visit.nodeIs("typed", node);
  }
});

scenario("keyboard: Escape closes dialogs", {}, async ({server, visit}) => {
  await server.make("stays", {nodes: 16});
  await visit.openEngine("stays");
  for (const [opener, form] of [["new-engine", "engine-form"], ["delete-engine", "delete-form"]]) {
    await tabTo(visit, opener);
    await visit.page.keyboard.press("Enter");
    await visit.seen(form);
    await visit.page.keyboard.press("Escape");
    await visit.gone(form);
    assert.equal((await visit.page.evaluate(focused)).id, opener);
  }
  assert.equal((await server.engine("stays")).tokens, 0);
});
