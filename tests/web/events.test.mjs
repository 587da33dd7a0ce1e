// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {eventParser} from "../../web/dashboard/events.js";

function heard(...texts) {
  const events = [], take = eventParser((name, data) => events.push([name, data]));
  for (const text of texts) take(text);
  return events;
}

const TWO = "event: engines\ndata: {\"a\": 1}\n\n: still here\n\nevent: engine\nid: 7\ndata: x\n\n";
const BOTH = [["engines", "{\"a\": 1}"], ["engine", "x"]];

test("events and comments", () => {
  assert.deepEqual(heard(TWO), BOTH);
  assert.deepEqual(heard(TWO.replaceAll("\n", "\r\n")), BOTH);
});

test("text split at any position", () => {
  for (let at = 0; at <= TWO.length; at++)
    assert.deepEqual(heard(TWO.slice(0, at), TWO.slice(at)), BOTH, String(at));
  assert.deepEqual(heard(...TWO), BOTH);
});

test("an incomplete event is not delivered", () => {
  assert.deepEqual(heard("event: engine\ndata: x\n"), []);
});

test("several data lines are joined, and an event's name does not apply to the next", () => {
  assert.deepEqual(
    heard("event: a\ndata: 1\ndata:2\n\ndata: 3\n\n"), [["a", "1\n2"], ["message", "3"]]);
});
