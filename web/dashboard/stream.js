// SPDX-License-Identifier: MIT
//
// stream.js: a live stream: GET /v1/events, and that of the selected run. The page has at most one
// of each, and none while its tab is hidden: a browser allows six connections per host. A stream
// that ends, breaks or falls silent is reopened: after half a second, then twice as long each time,
// up to five seconds; at once when the tab becomes visible again or the network is back.
//
//   createStream({addressOf(name), onEvent(name, value), onState(state, problem)})
//     follow(name)     what addressOf is asked for, at first null; reopens the stream
//     start(), stop()
//
// addressOf returns the path, or null for no stream.
// States: "connecting", "connected", "reconnecting", "paused" (hidden), "stopped", and the kind of
// the problem if the address is not there: "no-such-engine", "no-such-run".
import {Problem, request, unreachable} from "./api.js";
import {eventParser} from "./events.js";

const FIRST_PAUSE_MS = 500, LAST_PAUSE_MS = 5000;
const SILENCE_MS = 45000;  // the server sends something every 15 seconds

export function createStream({addressOf, onEvent, onState}) {
  let name = null, isOn = false, open = null, timer = 0, failures = 0, wasConnected = false;

  const mayRun = () => isOn && !document.hidden && addressOf(name) !== null;

  function close() {
    clearTimeout(timer);
    timer = 0;
    if (open) open.abort();
    open = null;
  }

  function pauseThenConnect() {
    const pause = Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
    failures += 1;
    timer = setTimeout(connect, pause * (0.9 + 0.2 * Math.random()));
  }

  function failed(problem) {
    close();
    if (!mayRun()) return;
    if (problem.kind === "unauthorized") {
      isOn = false;
      onState("stopped", problem);
    } else if (problem.kind.startsWith("no-such-")) {
      onState(problem.kind, problem);
    } else {
      onState(wasConnected || failures ? "reconnecting" : "connecting", problem);
      pauseThenConnect();
    }
  }

  async function connect() {
    close();
    const mine = open = new AbortController();
    try {
      const answer = await request("GET", addressOf(name), {signal: mine.signal});
      if (open !== mine) return;
      failures = 0;
      wasConnected = true;
      onState("connected");
      await readAll(answer.body, mine, onEvent);
      throw unreachable();
    } catch (error) {
      if (open === mine) failed(error instanceof Problem ? error : unreachable());
    }
  }

  // Visibility or network has changed: connects at once, or closes the stream of a hidden tab.
  function settle() {
    if (mayRun()) {
      failures = 0;
      connect();
    } else {
      close();
      if (isOn) onState("paused");
    }
  }

  document.addEventListener("visibilitychange", () => isOn && settle());
  addEventListener("online", () => isOn && settle());
  return {
    follow(next) {
      name = next;
      if (addressOf(name) === null) close();
      if (mayRun() && !timer) connect();
    },
    start() {
      isOn = true;
      settle();
    },
    stop() {
      isOn = false;
      close();
      onState("stopped");
    }
  };
}

// Reads until the end. A peer that disappeared without closing is detected by its silence.
async function readAll(body, controller, onEvent) {
  const reader = body.getReader(), decoder = new TextDecoder();
  const parse = eventParser((name, data) => onEvent(name, JSON.parse(data)));
  let heard = performance.now();
  const watchdog = setInterval(() => {
    if (performance.now() - heard > SILENCE_MS) reader.cancel().catch(() => {});
  }, 5000);
  controller.signal.addEventListener("abort", () => clearInterval(watchdog));
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done || controller.signal.aborted) return;
      heard = performance.now();
      parse(decoder.decode(value, {stream: true}));
    }
  } finally {
    clearInterval(watchdog);
  }
}
