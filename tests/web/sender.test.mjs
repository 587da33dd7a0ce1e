// SPDX-License-Identifier: MIT
//
// sender.test.mjs: one file's way into an engine, with a world that fails as the real one does. The
// engine here keeps keys as the server does, so what it holds at the end tells whether every token
// was fed once.
import "./made.mjs";

import assert from "node:assert/strict";
import {test} from "node:test";

import {Sender} from "../../web/dashboard/sender.js";

function problem(kind, status = 0, more = {}) {
  return Object.assign(new Error(kind), {kind, status, sentence: kind, ...more});
}

// An engine of batches of 10 tokens. `mishaps` are called with each request, in turn; one may
// return "lost" (taken, but the answer is not heard) or throw.
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

test("a file goes in pieces of whole batches, one after the other", async () => {
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

test("a lost answer: the same piece with the same key, and nothing twice", async () => {
  const world = worldOf([() => {}, () => "lost"]), sender = senderOf(world);
  await sender.go();
  assert.equal(sender.state, "done");
  assert.equal(world.tokens, 35);
  assert.equal(world.posts.length, 5);
  assert.equal(world.posts[1].key, world.posts[2].key);
  assert.deepEqual([world.posts[2].at, world.posts[2].count], [10, 10]);
});

test("a server that is away is waited for, longer and longer", async () => {
  const away = fail("unreachable");
  const world = worldOf([away, away, away, away, away, away, away]), sender = senderOf(world);
  await sender.go();
  assert.equal(sender.state, "done");
  assert.deepEqual(world.pauses, [1, 2, 4, 8, 15, 15, 15]);
  assert.equal(new Set(world.posts.slice(0, 8).map(p => p.key)).size, 1);
});

test("busy: after the pause the server asks for", async () => {
  const world = worldOf([fail("busy", 503, {retryAfter: 3})]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, world.pauses], ["done", [3]]);
});

test("somebody else feeds: it stops, and goes on behind them when told to", async () => {
  const world = worldOf([() => {}, (_, w) => void (w.tokens += 7)]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.position, sender.fed], ["conflict", 17, 10]);
  await sender.append();
  assert.equal(sender.state, "done");
  assert.equal(world.tokens, 42);
  assert.deepEqual(world.posts.slice(2).map(p => [p.at, p.from]), [[17, 10], [27, 20], [37, 30]]);
});

test("a refusal that looks like a broken connection is seen by the engine's position", async () => {
  const world = worldOf([fail("unreachable"), fail("unreachable")]), sender = senderOf(world);
  world.onPause = () => void (world.tokens = 99);
  await sender.go();
  assert.deepEqual([sender.state, sender.position], ["conflict", 99]);
});

test("401: it waits for the token and sends the same again", async () => {
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

test("413 of a single batch is the end", async () => {
  const world = worldOf([fail("too-large", 413)]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.problem.kind, world.tokens], ["failed", "too-large", 0]);
});

test("values that are no tokens are the end, and going on is possible", async () => {
  const world = worldOf([() => {}, fail("bad-token-value", 400)]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.fed], ["failed", 10]);
  await sender.go();
  assert.deepEqual([sender.state, world.tokens], ["done", 35]);
  assert.equal(world.posts[1].key, world.posts[2].key);
});

test("a server that fails inside is tried five times", async () => {
  const inside = fail("internal", 500), world = worldOf(Array(9).fill(inside)),
        sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, world.posts.length], ["failed", 5]);
});

test("a file that is gone is no server that is away", async () => {
  const world = worldOf([fail("unreachable")]), sender = senderOf(world);
  world.isThere = false;
  await sender.go();
  assert.deepEqual([sender.state, sender.problem.kind], ["failed", "unreadable"]);
});

test(
  "cancelled on its way: what was committed stays, the rest goes on under the same key",
  async () => {
    const world = worldOf([() => {}, () => sender.cancel()]), sender = senderOf(world);
    await sender.go();
    assert.deepEqual([sender.state, sender.fed, world.tokens], ["cancelled", 10, 10]);
    await sender.go();
    assert.deepEqual([sender.state, world.tokens], ["done", 35]);
    assert.equal(world.posts[1].key, world.posts[2].key);
  });

test("cancelled when the body had gone: its answer is waited for", async () => {
  const gone = request => {
    request.onSent(request.count * 2);
    sender.cancel();
  };
  const world = worldOf([gone]), sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.fed, world.tokens], ["cancelled", 10, 10]);
});

test("cancelled in a pause", async () => {
  const world = worldOf([fail("unreachable")]), sender = senderOf(world);
  world.onPause = () => sender.cancel();
  await sender.go();
  assert.deepEqual([sender.state, sender.fed], ["cancelled", 0]);
});

test("cancelled though the piece had arrived: the engine's position tells", async () => {
  const world = worldOf([(_, w) => {
    w.tokens += 10;
    sender.cancel();
  }]);
  const sender = senderOf(world);
  await sender.go();
  assert.deepEqual([sender.state, sender.fed], ["cancelled", 10]);
});
