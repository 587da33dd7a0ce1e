// SPDX-License-Identifier: MIT
//
// sender.test.mjs: feeds one file into a simulated engine with injected failures. The engine
// handles keys as the server does, so its content shows whether every token was fed exactly once.
import "./made.mjs";

import assert from "node:assert/strict";
import {test} from "node:test";

import {Sender} from "../../web/dashboard/sender.js";

function problem(kind, status = 0, more = {}) {
  return Object.assign(new Error(kind), {kind, status, sentence: kind, ...more});
}

// An engine with batches of 10 tokens. Each request calls the next function of `mishaps`, which may
// return "lost" (the body is fed, the answer is lost) or throw.
function worldOf(mishaps = [], tokens = 0) {
  const keys = new Map();
  const world = {
    tokens,
    time: 0,
    posts: [],
    pauses: [],
    asked: 0,
    isThere: true,
    now: () => world.time += 0.01,
    pause: async (seconds, signal) => {
      world.pauses.push(seconds);
      if (world.onPause) await world.onPause(signal);
      if (signal.aborted) throw problem("stopped");
    },
    ask: async () => {
      world.asked += 1;
      return {tokens: world.tokens, batch: 10, seal: "seal"};
    },
    isReadable: async () => world.isThere,
    tokenIsNew: async () => world.pauses.push("token"),
    post: async request => {
      world.posts.push(request);
      const fate = await mishaps.shift()?.(request, world);
      if (request.signal.aborted) throw problem("stopped");
      if (!keys.has(request.key)) {
        if (request.at !== world.tokens)
          throw problem("position-mismatch", 409, {position: world.tokens});
        keys.set(request.key, request.count);
        world.tokens += request.count;
      }
      if (fate === "lost") throw problem("unreachable");
      request.onSent(request.count * 2);
      return {tokens: world.tokens, seal: "seal"};
    }
  };
  return world;
}

function senderOf(world, tokens = 35) {
  const sender = new Sender(world, {tokens, width: 2}, () => {});
  sender.batchesMax = 1;  // small pieces: 10, 10, 10, 5
  return sender;
}

const fail = (...parts) => () => {
  throw problem(...parts);
};

test("a file is sent in pieces of whole batches, one after the other", async () => {
  const world = worldOf([], 100), sender = senderOf(world);
  await sender.go();
  assert.equal(sender.state, "done");
  assert.deepEqual(
    world.posts.map(p => [p.at, p.from, p.count]),
    [[100, 0, 10], [110, 10, 10], [120, 20, 10], [130, 30, 5]]);
  assert.equal(new Set(world.posts.map(p => p.key)).size, 4);
  assert.equal(sender.answer.seal, "seal");
  assert.equal(world.tokens, 135);
});

test("lost answer: the piece is sent again with the same key and fed once", async () => {
  const world = worldOf([() => {}, () => "lost"]), sender = senderOf(world);
  await sender.go();
  assert.equal(sender.state, "done");
  assert.equal(world.tokens, 35);
  assert.equal(world.posts.length, 5);
  assert.equal(world.posts[1].key, world.posts[2].key);
  assert.deepEqual([world.posts[2].at, world.posts[2].count], [10, 10]);
});

test("unreachable server: retried with growing pauses", async () => {
  const away = fail("unreachable");
  const world = worldOf([away, away, away, away, away, away, away]), sender = senderOf(world);
  await sender.go();
  assert.equal(sender.state, "done");
  assert.deepEqual(world.pauses, [1, 2, 4, 8, 15, 15, 15]);
  assert.equal(new Set(world.posts.slice(0, 8).map(p => p.key)).size, 1);
});

test("busy: retried after the server's Retry-After", async () => {
  const world = worldOf([fail("busy", 503, {retryAfter: 3})]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, world.pauses], ["done", [3]]);
});

test("another client feeds: stops, and continues after those tokens on request", async () => {
  const world = worldOf([() => {}, (_, w) => void (w.tokens += 7)]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.position, sender.fed], ["conflict", 17, 10]);
  await sender.append();
  assert.equal(sender.state, "done");
  assert.equal(world.tokens, 42);
  assert.deepEqual(world.posts.slice(2).map(p => [p.at, p.from]), [[17, 10], [27, 20], [37, 30]]);
});

test(
  "a refusal that looks like a broken connection is detected by the engine's position",
  async () => {
    const world = worldOf([fail("unreachable"), fail("unreachable")]), sender = senderOf(world);
    world.onPause = () => void (world.tokens = 99);
    await sender.go();
    assert.deepEqual([sender.state, sender.position], ["conflict", 99]);
  });

test("401: waits for the token and sends the piece again", async () => {
  const world = worldOf([fail("unauthorized", 401)]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, world.pauses], ["done", ["token"]]);
  assert.equal(world.posts[0].key, world.posts[1].key);
});

test("413: single batches from then on, under a new key", async () => {
  const world = worldOf([fail("too-large", 413)]), sender = senderOf(world);
  sender.batchesMax = Infinity;
  await sender.go();
  assert.equal(sender.state, "done");
  assert.deepEqual(world.posts.map(p => p.count), [35, 10, 10, 10, 5]);
  assert.notEqual(world.posts[0].key, world.posts[1].key);
});

test("413 for a single batch: fails", async () => {
  const world = worldOf([fail("too-large", 413)]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.problem.kind, world.tokens], ["failed", "too-large", 0]);
});

test("invalid tokens: fails, and can be continued", async () => {
  const world = worldOf([() => {}, fail("bad-token-value", 400)]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.fed], ["failed", 10]);
  await sender.go();
  assert.deepEqual([sender.state, world.tokens], ["done", 35]);
  assert.equal(world.posts[1].key, world.posts[2].key);
});

test("500: tried five times", async () => {
  const inside = fail("internal", 500), world = worldOf(Array(9).fill(inside)),
        sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, world.posts.length], ["failed", 5]);
});

test("a missing file is not reported as a missing server", async () => {
  const world = worldOf([fail("unreachable")]), sender = senderOf(world);
  world.isThere = false;
  await sender.go();
  assert.deepEqual([sender.state, sender.problem.kind], ["failed", "unreadable"]);
});

test(
  "cancelled during the upload: committed pieces stay, the rest continues with the same key",
  async () => {
    const world = worldOf([() => {}, () => sender.cancel()]), sender = senderOf(world);
    await sender.go();
    assert.deepEqual([sender.state, sender.fed, world.tokens], ["cancelled", 10, 10]);
    await sender.go();
    assert.deepEqual([sender.state, world.tokens], ["done", 35]);
    assert.equal(world.posts[1].key, world.posts[2].key);
  });

test("cancelled after the body was sent: waits for the answer", async () => {
  const gone = request => {
    request.onSent(request.count * 2);
    sender.cancel();
  };
  const world = worldOf([gone]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.fed, world.tokens], ["cancelled", 10, 10]);
});

test("cancelled during a pause", async () => {
  const world = worldOf([fail("unreachable")]), sender = senderOf(world);
  world.onPause = () => sender.cancel();
  await sender.go();
  assert.deepEqual([sender.state, sender.fed], ["cancelled", 0]);
});

test("cancelled after the piece was fed: the engine's position decides", async () => {
  const world = worldOf([(_, w) => {
    w.tokens += 10;
    sender.cancel();
  }]);
  const sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.fed], ["cancelled", 10]);
});
