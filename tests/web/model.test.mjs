// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import * as models from "../../web/dashboard/model.js";

function modelOf(...names) {
  const model = models.createModel();
  const engines =
    names.map((name, k) => ({name, tokens: k, rate: 5, incoming: 7, changed: `${k}`}));
  models.takeEngines(model, {complete: true, engines, removed: []});
  return model;
}

test("a complete list replaces the old one, other lists update it", () => {
  const model = modelOf("a", "b");
  models.takeEngines(model, {complete: false, engines: [{name: "c"}], removed: ["a"]});
  assert.deepEqual([...model.engines.keys()], ["b", "c"]);
  models.takeEngines(model, {complete: true, engines: [{name: "z"}], removed: []});
  assert.deepEqual([...model.engines.keys()], ["z"]);
});

test("the list is incomplete before the first complete one and after a reset", () => {
  const model = models.createModel();
  assert.equal(model.isComplete, false);
  models.takeEngines(model, {complete: true, engines: [], removed: []});
  assert.equal(model.isComplete, true);
  models.forgetAll(model);
  assert.equal(model.isComplete, false);
});

test("names are found by substring, ignoring case, in natural order", () => {
  const model = modelOf("run-10", "Run-2", "other");
  assert.deepEqual(models.namesWith(model, " RUN "), ["Run-2", "run-10"]);
  assert.deepEqual(models.namesWith(model, "").length, 3);
});

test("events of engines that are not selected are ignored", () => {
  const model = modelOf("a", "b");
  models.choose(model, "a");
  assert.equal(models.takeStand(model, {name: "b", tokens: 9}), false);
  assert.equal(model.stand, null);
  assert.equal(models.takeStand(model, {name: "a", tokens: 9}), true);
  assert.equal(model.stand.tokens, 9);
  models.choose(model, "b");
  assert.equal(model.stand, null);
});

test("the most recently changed engine is shown first", () => {
  assert.equal(models.latestName(modelOf("a", "b", "c")), "c");
  assert.equal(models.latestName(modelOf()), null);
});

test("incoming tokens and rates are reset while the server is unreachable", () => {
  const model = modelOf("a");
  models.calm(model);
  const {rate, incoming, tokens} = model.engines.get("a");
  assert.deepEqual([rate, incoming, tokens], [0, 0, 0]);
});

test("an engine created here does not replace data of the stream", () => {
  const model = modelOf("a", "b");
  models.addEngine(model, {name: "b", tokens: 0});
  models.addEngine(model, {name: "c", tokens: 0});
  assert.equal(model.engines.get("b").tokens, 1);
  assert.equal(model.engines.get("c").rate, 0);
});
