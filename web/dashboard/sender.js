// SPDX-License-Identifier: MIT
//
// sender.js: feeds one file into an engine, exactly once. It does not depend on the page: its
// environment is passed in (`world`), so that tests can replace it.
//
// Each piece has its own position (`at`) and key and keeps both until the server has accepted or
// refused it. So a piece whose answer was lost is sent again unchanged: if it had arrived, the
// server knows its key and repeats the first answer. Data whose outcome is unknown is never sent
// under a new key.
//
// States: waiting (not begun), sending, retrying (a pause before the next try), signed-out (the
// server wants a token), conflict (another client fed the engine), cancelled, failed, done.

import {newKey, pauseSeconds, pieceLength, Speed} from "./pieces.js";

const TRIES_OF_FAILURES = 5;  // for status 500; an unreachable server is retried without limit
const PATIENCE_MS = 3000;  // to wait for the answer to a body already sent when Cancel is pressed

// world: {ask() -> {tokens, batch}, post({at, key, from, count, signal, onSent}) -> answer,
// isReadable(), pause(seconds, signal), tokenIsNew(signal), now() in seconds}; each throws
// Problems.
export class Sender {
  constructor(world, {tokens, width}, onChange) {
    Object.assign(this, {world, width, onChange, total: tokens});
    Object.assign(this, {state: "waiting", problem: null, answer: null, piece: null});
    Object.assign(this, {base: null, batch: 0, fed: 0, sent: 0, seconds: 0, batchesMax: Infinity});
    Object.assign(this, {retryAt: 0, position: null, speed: new Speed()});
  }

  get isActive() {
    return ["sending", "retrying", "signed-out"].includes(this.state);
  }

  // Sends the remaining data; resolves when it is done or stops, and never throws.
  async go() {
    const begun = this.world.now();
    this.stopper = new AbortController();
    this.isCancelled = false;
    this.failures = 0;
    this.speed = new Speed();
    this.enter("sending");
    try {
      while (!this.isCancelled && (this.base === null || this.fed < this.total)) await this.step();
      this.enter(this.fed === this.total ? "done" : "cancelled");
    } catch (problem) {
      await this.end(problem);
    }
    this.sent = 0;
    this.seconds += this.world.now() - begun;
    this.onChange();
  }

  cancel() {
    if (!this.isActive || this.isCancelled) return;
    this.isCancelled = true;
    const {stopper} = this, hasGone = this.piece && this.sent === this.piece.count;
    if (hasGone && this.state === "sending")
      setTimeout(() => stopper.abort(), PATIENCE_MS);
    else
      stopper.abort();
  }

  // After a conflict: appends the rest at the engine's current position.
  append() {
    this.base = this.position - this.fed;
    this.piece = null;
    return this.go();
  }

  enter(state, problem = null) {
    Object.assign(this, {state, problem});
    this.onChange();
  }

  async step() {
    try {
      if (this.base === null)
        await this.locate();
      else
        await this.sendPiece();
      this.failures = 0;
      if (this.state !== "sending") this.enter("sending");
    } catch (problem) {
      await this.recover(problem);
    }
  }

  async locate() {
    const engine = await this.world.ask(this.stopper.signal);
    this.base = engine.tokens;
    this.batch = engine.batch;
  }

  nextPiece() {
    const count = pieceLength({
      from: this.fed,
      total: this.total,
      batch: this.batch,
      width: this.width,
      rate: this.speed.rate,
      batchesMax: this.batchesMax
    });
    return {from: this.fed, count, at: this.base + this.fed, key: newKey()};
  }

  async sendPiece() {
    this.piece ??= this.nextPiece();
    const {count} = this.piece;
    this.answer = await this.world.post({
      ...this.piece,
      signal: this.stopper.signal,
      onSent: bytes => this.tellSent(Math.min(count, Math.floor(bytes / this.width)))
    });
    this.accept(count);
  }

  tellSent(tokens) {
    this.sent = tokens;
    this.speed.tell(this.world.now(), this.fed + tokens);
    this.onChange();
  }

  accept(count) {
    this.fed += count;
    this.sent = 0;
    this.piece = null;
    this.speed.tell(this.world.now(), this.fed);
    this.onChange();
  }

  // Handles a problem: pauses and continues, or throws it to end().
  async recover(problem) {
    this.failures += 1;
    this.sent = 0;
    if (problem.kind === "stopped" || this.isCancelled) throw problem;
    if (problem.status === 401) return this.awaitToken(problem);
    if (problem.status === 413 && this.piece && this.piece.count > this.batch) return this.shrink();
    if (!this.isPassing(problem)) throw problem;
    if (problem.kind === "unreachable") await this.checkFile(problem);
    const seconds = pauseSeconds(this.failures, problem.retryAfter);
    this.retryAt = this.world.now() + seconds;
    this.enter("retrying", problem);
    await this.world.pause(seconds, this.stopper.signal);
    if (this.piece && problem.kind === "unreachable") await this.checkPosition();
  }

  isPassing({kind, status}) {
    if (kind === "internal" && status >= 500) return this.failures < TRIES_OF_FAILURES;
    return kind === "unreachable" || [408, 429, 502, 503, 504].includes(status);
  }

  async awaitToken(problem) {
    this.enter("signed-out", problem);
    await this.world.tokenIsNew(this.stopper.signal);
    this.enter("sending");
  }

  // The server accepts less at once: send single batches. A refused piece leaves its key unused.
  shrink() {
    this.batchesMax = 1;
    this.piece = null;
  }

  // A file that was changed or removed since it was chosen looks like an unreachable server.
  async checkFile(problem) {
    if (await this.world.isReadable()) return;
    problem.kind = "unreadable";
    throw problem;
  }

  // A refusal that arrives while the body is being sent may look like a broken connection. If that
  // happens again and the engine is at another position, it was a refusal.
  async checkPosition() {
    const engine = await this.world.ask(this.stopper.signal).catch(problem => {
      if (problem.kind === "unreachable" || problem.status >= 500 || problem.status === 401)
        return null;
      throw problem;
    });
    const {at, count} = this.piece;
    if (!engine || this.failures < 2 || [at, at + count].includes(engine.tokens)) return;
    throw Object.assign(
      new Error("elsewhere"), {kind: "position-mismatch", position: engine.tokens});
  }

  async end(problem) {
    if (problem.kind === "position-mismatch") {
      this.position = problem.position;
      this.enter("conflict", problem);
    } else if (problem.kind === "stopped" || this.isCancelled) {
      await this.settle();
      this.enter(this.fed === this.total ? "done" : "cancelled");
    } else {
      this.enter("failed", problem);
    }
  }

  // The last piece of a cancelled run may have arrived anyway: the engine's position shows it. If
  // it does not, continuing with the same key is safe.
  async settle() {
    if (!this.piece) return;
    const stopper = new AbortController();
    const timer = setTimeout(() => stopper.abort(), PATIENCE_MS);
    const engine = await this.world.ask(stopper.signal).catch(() => null);
    clearTimeout(timer);
    if (engine && engine.tokens === this.piece.at + this.piece.count) {
      this.answer = engine;
      this.accept(this.piece.count);
    }
  }
}
