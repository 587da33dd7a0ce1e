// SPDX-License-Identifier: MIT
//
// pull.js: decides when to fetch an engine's nodes. Up to sixty new versions per second are
// reported; one request is in flight at a time, only the newest version is fetched, a hidden page
// fetches nothing, and large engines get a pause of four times the duration of the last answer, so
// that viewing an engine never dominates the server's load.

const FRAME_MS = 16;
const LARGE_NODES = 16384;
const PAUSE_FACTOR = 4;
const RETRY_MS = [1000, 2000, 4000, 8000, 15000];

// fetchNodes(name, signal) -> Promise<ArrayBuffer>; onNodes(buffer) gets the data, onProblem a
// failure (and null when it is over).
export class Puller {
  constructor(fetchNodes, onNodes, onProblem) {
    Object.assign(this, {fetchNodes, onNodes, onProblem, name: null, timer: 0, failures: 0});
    this.listen = () => this.kick();
    document.addEventListener("visibilitychange", this.listen);
  }

  // Switches to this engine; a request for another one is aborted.
  follow(name, nodes) {
    this.stop();
    Object.assign(this, {name, nodes, failures: 0, wanted: 0, got: null, notBefore: 0});
    this.kick();
  }

  tell(version) {
    this.wanted = version;
    this.kick();
  }

  stop() {
    if (this.stopper) this.stopper.abort();
    clearTimeout(this.timer);
    Object.assign(this, {stopper: null, timer: 0, name: null});
  }

  destroy() {
    this.stop();
    document.removeEventListener("visibilitychange", this.listen);
  }

  kick() {
    if (this.name === null || this.stopper || this.timer || document.hidden) return;
    if (this.wanted === this.got) return;
    const wait = this.notBefore - performance.now();
    if (wait <= 0) return void this.ask();
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.kick();
    }, wait);
  }

  async ask() {
    const stopper = new AbortController(), version = this.wanted, begun = performance.now();
    this.stopper = stopper;
    try {
      const buffer = await this.fetchNodes(this.name, stopper.signal);
      if (this.stopper !== stopper) return;
      this.onNodes(buffer);
      this.got = version;
      if (this.failures) this.onProblem(null);
      this.failures = 0;
    } catch (problem) {
      if (this.stopper !== stopper) return;
      this.failures += 1;
      this.onProblem(problem);
    }
    this.stopper = null;
    this.rest(performance.now() - begun);
    this.kick();
  }

  rest(took) {
    const pause = this.nodes > LARGE_NODES ? PAUSE_FACTOR * took : FRAME_MS;
    const retry = RETRY_MS[Math.min(this.failures, RETRY_MS.length) - 1] || 0;
    this.notBefore = performance.now() + Math.max(FRAME_MS, pause, retry);
  }
}
