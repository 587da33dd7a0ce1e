// SPDX-License-Identifier: MIT
//
// feeding.js: feeds files from the page. Files are dropped or chosen, examined, and sent one after
// the other in list order, each to the engine that was shown when it was added. A file that waits
// for the user (a guess to confirm, a conflict, Cancel) blocks the files after it, because order
// matters in a stream.

import {h, setHidden, setText} from "./dom.js";
import {JobView, stoppedSentence} from "./feeding_job.js";
import {asRaw, examineFile} from "./filekinds.js";
import {Sender} from "./sender.js";
import {post} from "./upload.js";

const TICK_MS = 250;  // updates the seconds left and the seconds until the next retry
const TOKEN_LOOK_MS = 400;

// Problems that sending the same data again cannot solve.
const HOPELESS = ["unreadable", "bad-token-value", "ragged-body", "no-such-engine"];

const byName = new Intl.Collator("en", {numeric: true});

function now() {
  return performance.now() / 1000;
}

// Resolves after that many seconds; rejects when it is aborted.
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject({kind: "stopped"});
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, {once: true});
  });
}

// One file in the list.
class Job {
  constructor(queue, file, engine) {
    Object.assign(this, {queue, file, engine, state: "looking", kind: null, sender: null});
    this.view = new JobView(file.name, file.size, engine, {
      feed: dtype => queue.confirm(this, dtype),
      cancel: () => this.sender.cancel(),
      goOn: () => this.goOn(),
      remove: () => queue.remove(this)
    });
  }

  async look(names) {
    const kind = await examineFile(this.file, names);
    this.kind = kind;
    if (kind.kind === "refused")
      this.refuse(kind);
    else
      this.state = kind.kind === "raw" ? "guess" : "ready";
  }

  refuse({sentence, wantsPush}) {
    const url = `${location.origin}/v1/engines/${encodeURIComponent(this.engine)}`;
    this.state = "refused";
    this.view.showRefused(sentence, wantsPush && `iron push ${this.file.name} ${url}`);
  }

  // The user has chosen its token type.
  settle(dtype) {
    this.kind = asRaw(this.file.name, this.file.size, dtype);
    if (this.kind.kind === "refused")
      this.refuse(this.kind);
    else
      this.state = "ready";
  }

  // Whether the files after it have to wait.
  get isOpen() {
    return !["refused", "done"].includes(this.state);
  }

  // The sender's interface to the page and the server.
  world() {
    const {api} = this.queue, {file, engine, kind} = this, path = api.enginePath(engine);
    const slice = (from, count) =>
      file.slice(kind.offset + from * kind.width, kind.offset + (from + count) * kind.width);
    return {
      now,
      pause,
      ask: async signal => (await api.request("GET", path, {signal})).json(),
      isReadable: () => slice(0, 1).arrayBuffer().then(() => true, () => false),
      tokenIsNew: signal => this.tokenIsNew(signal),
      post: async ({at, key, from, count, signal, onSent}) => {
        const answer = await post(
          api, `${path}/feed?dtype=${kind.dtype}&at=${at}`,
          {body: slice(from, count), headers: {"Idempotency-Key": key}, signal, onSent});
        this.queue.onFed(answer, engine);
        return answer;
      }
    };
  }

  // Resolves when there is a token other than the refused one; signin.js asks for it.
  async tokenIsNew(signal) {
    const text = () => this.queue.api.authorization().Authorization;
    const old = text();
    while (!text() || text() === old) await pause(TOKEN_LOOK_MS / 1000, signal);
  }

  begin() {
    this.sender = new Sender(this.world(), this.kind, () => this.queue.draw(this));
    return this.run(() => this.sender.go());
  }

  goOn() {
    return this.run(
      () => this.sender.state === "conflict" ? this.sender.append() : this.sender.go());
  }

  async run(send) {
    this.state = "active";
    this.queue.changed();
    await send();
    this.state = this.sender.state === "done" ? "done" : "stopped";
    this.showEnd();
    this.queue.changed();
  }

  showEnd() {
    const {sender, view} = this;
    if (sender.state === "done") return view.showDone(sender, sender.base === 0);
    const isLost = sender.state === "failed" && HOPELESS.includes(sender.problem.kind);
    const action = isLost ? null : sender.state === "conflict" ? "Append the rest" : "Continue";
    view.showStopped(
      stoppedSentence(sender, this.file.name, this.engine), action, sender.state !== "cancelled");
  }
}

class Feeding {
  constructor(root, {api, onFed}) {
    Object.assign(this, {root, api, onFed: onFed || (() => {}), engine: null, jobs: [], depth: 0});
    this.build();
    this.listen();
    this.setEngine(null);
  }

  build() {
    this.input = h("input", {
      type: "file",
      multiple: true,
      hidden: true,
      "data-testid": "file-input",
      onchange: () => this.chosen()
    });
    this.button =
      h("button", {
        type: "button",
        class: "drop-button",
        "data-testid": "choose-file",
        onclick: () => this.input.click()
      },
        "Choose files …");
    this.title = h("p", {class: "drop-title"});
    this.hint = h(
      "p", {class: "drop-hint"},
      "NumPy (.npy), llm.c (.bin), or raw u8, u16, u32, i32, i64. Several files are fed one after " +
        "the other; each ends with its own last batch.");
    this.zone =
      h("div", {class: "drop", "data-testid": "drop"}, this.title, this.button, this.hint,
        this.input);
    this.list = h("ol", {class: "feed-list", "aria-label": "Files", hidden: true});
    this.element = h("div", {class: "feeding"}, this.zone, this.list);
    this.root.append(this.element);
  }

  listen() {
    this.ears = new AbortController();
    const options = {signal: this.ears.signal};
    const on = (target, event, listener) => target.addEventListener(event, listener, options);
    on(this.root, "dragenter", event => this.drag(event, 1));
    on(this.root, "dragleave", event => this.drag(event, -1));
    on(this.root, "drop", event => this.dropped(event));
    // A file dropped outside the zone would replace the page.
    on(window, "dragover", event => this.over(event));
    on(window, "drop", event => event.preventDefault());
    on(window, "beforeunload", event => {
      if (!this.active) return;
      event.preventDefault();
      event.returnValue = "";  // for older browsers
    });
  }

  over(event) {
    if (!hasFiles(event)) return;
    event.preventDefault();
    const isHere = this.engine && this.root.contains(event.target);
    event.dataTransfer.dropEffect = isHere ? "copy" : "none";
  }

  drag(event, step) {
    if (!hasFiles(event)) return;
    this.depth = Math.max(0, this.depth + step);
    this.element.classList.toggle("is-over", this.depth > 0 && this.engine !== null);
  }

  dropped(event) {
    event.preventDefault();
    this.depth = 0;
    this.element.classList.remove("is-over");
    if (event.dataTransfer) this.add(event.dataTransfer.files);
  }

  chosen() {
    this.add(this.input.files);
    this.input.value = "";
  }

  setEngine(engine) {
    this.engine = engine;
    setText(
      this.title,
      engine ? `Drop token files here to feed ${engine.name}` : "Choose an engine to feed it");
    this.button.disabled = !engine;
    this.element.classList.toggle("is-off", !engine);
    this.nameOthers();
  }

  // Adds files for the engine that is shown now, in natural order: part-2 before part-10.
  async add(fileList) {
    if (!this.engine) return;
    const files = [...fileList].sort((a, b) => byName.compare(a.name, b.name));
    const jobs = files.map(file => new Job(this, file, this.engine.name));
    this.jobs.push(...jobs);
    this.list.append(...jobs.map(job => job.view.element));
    this.changed();
    for (const job of jobs) {
      await job.look(files.map(file => file.name));
      this.changed();
    }
  }

  // The user has chosen a raw file's token type; it also applies to the files right after it with
  // the same guess and engine.
  confirm(job, dtype) {
    const alike = dtype === job.kind.guess ? this.alike(job) : [];
    for (const each of [job, ...alike]) each.settle(dtype);
    this.changed();
  }

  alike(job) {
    const behind = this.jobs.slice(this.jobs.indexOf(job) + 1);
    return behind.filter(
      other => other.state === "guess" && other.engine === job.engine &&
        other.kind.guess === job.kind.guess);
  }

  remove(job) {
    if (job.state === "active") return;
    this.jobs = this.jobs.filter(other => other !== job);
    if (job.view.element.contains(document.activeElement)) this.button.focus();
    job.view.element.remove();
    this.changed();
  }

  get active() {
    return this.jobs.find(job => job.state === "active");
  }

  // After any change: starts the first open file and updates which file waits for which.
  changed() {
    const first = this.jobs.find(job => job.isOpen);
    setHidden(this.list, this.jobs.length === 0);
    if (first && first.state === "ready") return void first.begin();
    for (const job of this.jobs) this.showWaiting(job, first);
    this.nameOthers();
    this.tick();
  }

  showWaiting(job, first) {
    if (job.state === "guess" && job.view.element.dataset.state !== "guess")
      job.view.showGuess(job.kind, 0);
    if (job.state === "guess" && job === first && job.alikeShown !== this.alike(job).length) {
      job.alikeShown = this.alike(job).length;
      job.view.showGuess(job.kind, job.alikeShown);
    }
    if (job.state === "ready") job.view.showWaiting(job.kind, first.file.name);
  }

  // An engine is named if it is not the one shown.
  nameOthers() {
    const shown = this.engine ? this.engine.name : null;
    for (const job of this.jobs)
      job.view.kind.dataset.engine = job.engine === shown ? "" : `, for ${job.engine}`;
  }

  draw(job) {
    if (job.state === "active" && job.sender.isActive) {
      job.view.tellKind(`${job.kind.reason}`);
      job.view.showActive(job.sender, now());
    }
  }

  tick() {
    clearTimeout(this.timer);
    const job = this.active;
    if (!job) return;
    this.draw(job);
    this.timer = setTimeout(() => this.tick(), TICK_MS);
  }

  destroy() {
    clearTimeout(this.timer);
    if (this.active) this.active.sender.cancel();
    this.ears.abort();
    this.element.remove();
  }
}

function hasFiles(event) {
  return event.dataTransfer && [...event.dataTransfer.types].includes("Files");
}

// `root` is the region that takes dropped files. api is the module api.js; onFed(answer, name) is
// called after each piece that the engine of that name has accepted. add(files) does what a drop
// does.
export function createFeeding(root, options) {
  const feeding = new Feeding(root, options);
  return {
    setEngine: engine => feeding.setEngine(engine),
    add: files => feeding.add(files),
    destroy: () => feeding.destroy()
  };
}
