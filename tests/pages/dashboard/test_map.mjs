// SPDX-License-Identifier: MIT
//
// test_map.mjs: the node map: its colours, and the values of nodes selected with the pointer or the
// arrow keys, which must equal the server's.
import assert from "node:assert/strict";

import {makeTokens} from "./command.mjs";
import {scenario} from "./scenario.mjs";
import {until} from "./waiting.mjs";

const NODES = 100, SIDE = 10;

async function fed(server, visit) {
  await server.make("mapped", {nodes: NODES, batch: 1000});
  await server.feed("mapped", makeTokens(7500));
  await visit.openEngine("mapped");
  await visit.mapDrawn();
}

// Moves the pointer to the middle of a node's square.
async function pointAt(visit, node) {
  const board = visit.at("map");
  await board.scrollIntoViewIfNeeded();
  const {x, y, width, height} = await board.boundingBox();
  const place = (from, size, at) => from + 1 + (size - 2) * (at + 0.5) / SIDE;
  await visit.page.mouse.move(
    place(x, width, node % SIDE), place(y, height, Math.floor(node / SIDE)));
}

scenario("points and potentials are coloured differently", {}, async ({server, visit}) => {
  await fed(server, visit);
  const byPoint = await visit.pixels(), words = visit.page.locator(".map-words");
  const sentence = await words.textContent();
  await visit.pick("map-by-potential");
  const byPotential = await visit.mapDrawn(byPoint);
  await until("other words", async () => await words.textContent() !== sentence);
  await visit.pick("map-by-point");
  await visit.mapDrawn(byPotential);
  assert.equal(await visit.pixels(), byPoint);
});

scenario("values of nodes, with pointer and keys", {}, async ({server, visit}) => {
  await fed(server, visit);
  for (const node of [0, 57, NODES - 1]) {
    await pointAt(visit, node);
    await visit.nodeIs("mapped", node);
  }
  await visit.page.mouse.move(0, 0);
  await until("no node is pointed at", async () => await visit.node() === null);
  await visit.at("map").focus();
  const keys = [
    ["ArrowRight", 0], ["ArrowRight", 1], ["ArrowDown", 1 + SIDE], ["ArrowLeft", SIDE],
    ["ArrowUp", 0], ["End", SIDE - 1], ["PageDown", 8 * SIDE + SIDE - 1],
    ["Control+End", NODES - 1], ["Control+Home", 0]
  ];
  for (const [key, node] of keys) {
    await visit.page.keyboard.press(key);
    await visit.nodeIs("mapped", node);
  }
  await until("it is said, too", async () => {
    return /^Node 0: point \d+/.test(await visit.page.locator(".map-spoken").textContent());
  });
});

scenario("the values of the selected node are updated", {}, async ({server, visit}) => {
  await fed(server, visit);
  const before = await visit.pixels();
  await visit.at("map").focus();
  await visit.page.keyboard.press("Home");
  await visit.nodeIs("mapped", 0);
  for (let k = 0; k < 3; k++) {
    await server.feed("mapped", makeTokens(1500, {seed: 20 + k}));
    await visit.nodeIs("mapped", 0);
  }
  await visit.mapDrawn(before);
});
