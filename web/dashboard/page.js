// SPDX-License-Identifier: MIT
//
// page.js: connects the parts. The live stream changes the model (model.js); before each frame the
// views write what changed. The address's hash names the selected engine, so that engines can be
// linked to and the browser's Back button works; the same holds for runs. One of the views sign-in,
// welcome, missing, engine and run is shown at a time.
import {announce, clearProblem, showProblem} from "./alerts.js";
import * as api from "./api.js";
import {createCreation} from "./create.js";
import {oncePerFrame, setHidden, setText} from "./dom.js";
import {createEngineView} from "./engine.js";
import {createHistory} from "./history.js";
import {createList, engineHash} from "./list.js";
import * as models from "./model.js";
import {createParts} from "./parts.js";
import {createRemoval} from "./remove.js";
import {setUpReport} from "./report.js";
import {createRunView} from "./run.js";
import {createRuns, runHash} from "./runs.js";
import {createSignIn} from "./signin.js";
import {createStream} from "./stream.js";

const VIEWS = ["sign-in", "welcome", "missing", "engine", "run"];
// Displayed names of the stream's states; other states are shown under their own name.
const SAID = {
  stopped: "signed out",
  "no-such-engine": "connected"
};
// Problems that are shown elsewhere: the header shows an unreachable server, and a missing token
// and a missing engine or run have their own views.
const SHOWN_ELSEWHERE = ["unreachable", "stopped", "unauthorized", "no-such-engine", "no-such-run"];

const at = (id) => document.getElementById(id);

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    return text;
  }
}

export class Page {
  constructor() {
    const tell = (problem) => this.tell(problem);
    this.model = models.createModel();
    this.isSignedOut = false;
    this.list = createList(this.model);
    this.engineView = createEngineView(this.model);
    this.parts = createParts();
    this.history = createHistory({onProblem: tell});
    this.report = setUpReport(at("report-link"));
    this.creation = createCreation({onCreated: (engine) => this.created(engine)});
    this.runs = createRuns(this.model, {onChange: () => this.hearRuns(), onProblem: tell});
    this.runView = createRunView(this.model, {
      onMissing: () => this.lose(),
      onGone: (name) => {
        announce(`Run ${name} deleted.`);
        this.leaveRun(name);
      },
      onProblem: tell
    });
    this.removal = createRemoval(
      {onRemoved: (name, what) => what === "run" ? this.leaveRun(name) : this.leave(name)});
    this.signIn = createSignIn({onSignedIn: () => this.enter()});
    this.stream = createStream({
      addressOf: (name) =>
        name === null ? "/v1/events" : `/v1/events?engine=${encodeURIComponent(name)}`,
      onEvent: (name, value) => this.hear(name, value),
      onState: (state) => this.setConnection(state)
    });
    this.draw = oncePerFrame(() => this.drawNow());
  }

  begin() {
    addEventListener("hashchange", () => this.follow());
    api.onUnauthorized(() => {
      if (!this.signIn.isTrying && !this.isSignedOut) this.askForToken(api.hasToken());
    });
    this.arrive();
  }

  // Without a token, the page asks for one before it sends a request that would be refused.
  async arrive() {
    if (!api.hasToken() && await api.wantsToken()) return this.askForToken(false);
    this.follow();
    this.stream.start();
  }

  tell(problem) {
    if (!(problem instanceof api.Problem)) throw problem;
    if (!SHOWN_ELSEWHERE.includes(problem.kind)) showProblem(problem);
  }

  // The current view; "" before the first.
  get view() {
    const {isComplete, isMissing, chosen, run, engines} = this.model;
    if (this.isSignedOut) return "sign-in";
    if (!isComplete) return "";
    if (isMissing) return "missing";
    if (run !== null) return "run";
    if (chosen !== null) return "engine";
    return engines.size === 0 ? "welcome" : "";
  }

  drawNow() {
    const {view, model} = this;
    for (const id of VIEWS) setHidden(at(id), id !== view);
    const isAlone = this.isSignedOut || !model.isComplete;
    setHidden(at("side"), isAlone);
    at("frame").classList.toggle("is-alone", isAlone);
    setHidden(at("sign-out"), this.isSignedOut || !api.hasToken());
    this.list.draw();
    this.runs.draw();
    if (view === "engine") this.engineView.draw();
    if (view === "run") this.runView.draw();
    if (view === "missing") this.drawMissing();
    const isNamed = view === "engine" || view === "run";
    const title = isNamed ? `${model.run ?? model.chosen} · iron` : "iron";
    if (document.title !== title) document.title = title;
  }

  drawMissing() {
    const {run, chosen} = this.model, what = run === null ? "engine" : "run";
    setText(at("missing-title"), `${what === "run" ? "Run" : "Engine"} not found`);
    setText(
      at("missing-text"),
      `This server has no ${what} named ${run ?? chosen}. It may have been deleted.`);
    setHidden(at("make-missing"), what === "run");
  }

  setConnection(state) {
    const said = SAID[state] || state, isNew = state !== this.model.connection;
    this.model.connection = state;
    at("connection").dataset.state = said;
    setText(at("connection"), said);
    if (state === "connected" && isNew) {
      this.learn();
      this.runs.start();
    }
    if (said !== "connected") this.runs.stop();
    if (state === "no-such-engine") this.lose();
    if (state === "reconnecting" && isNew) this.calm();
  }

  calm() {
    models.calm(this.model);
    this.parts.pushRate(0);
    this.draw();
  }

  // The server's information and features.
  async learn() {
    try {
      const info = await api.requestJson("GET", "/v1/info");
      this.report.offer(info);
      this.creation.offer(info);
    } catch (problem) {
      this.tell(problem);
    }
  }

  hear(name, value) {
    if (name === "engines") this.hearEngines(value);
    if (name === "engine") this.hearStand(value);
    if (name === "deleted") this.hearDeleted(value);
    this.draw();
  }

  hearEngines(event) {
    const {model} = this;
    models.takeEngines(model, event);
    const live = model.engines.get(model.chosen);
    if (live) this.parts.pushRate(live.rate);
    if (model.chosen === null && model.run === null && model.engines.size)
      this.look(models.latestName(model), true);
    else if (model.chosen !== null && model.isMissing && live)
      this.open(model.chosen);  // it exists now
    else if (event.complete && model.chosen !== null && !model.isMissing)
      this.loadPlan();
  }

  hearStand(stand) {
    if (!models.takeStand(this.model, stand)) return;
    this.parts.update(stand);
    this.history.update(stand.batches);
  }

  hearDeleted({name}) {
    this.model.engines.delete(name);
    if (name !== this.model.chosen) return;
    announce(`Engine ${name} deleted.`);
    this.leave(name);
  }

  // A new list of runs. Without any engine, a run is shown instead of the welcome view.
  hearRuns() {
    const {model} = this;
    if (this.view === "welcome" && model.runs.size)
      this.lookRun(models.latestName(model, model.runs));
    if (model.isMissing && model.runs.has(model.run)) this.openRun(model.run);  // it exists now
    this.draw();
  }

  // Selects an engine; with `isQuiet` the browser's history gets no entry.
  look(name, isQuiet) {
    this.go(engineHash(name), isQuiet);
  }

  lookRun(name) {
    this.go(runHash(name), true);
  }

  go(hash, isQuiet) {
    if (isQuiet) window.history.replaceState(null, "", hash);
    if (location.hash === hash)
      this.follow();
    else
      location.hash = hash;  // hashchange then follows it
  }

  // Shows the engine or run named in the address.
  follow() {
    const found = /^#(engine|run)=(.+)$/.exec(location.hash), {model} = this;
    if (!found || this.isSignedOut) return;
    const isRun = found[1] === "run", name = decoded(found[2]);
    if (name === (isRun ? model.run : model.chosen) && !model.isMissing) return;
    if (isRun)
      this.openRun(name);
    else
      this.open(name);
  }

  openRun(name) {
    const {model} = this, hadEngine = model.chosen !== null;
    clearProblem();
    scrollTo(0, 0);
    models.chooseRun(model, name);
    if (hadEngine) {
      this.showNothing();
      this.stream.follow(null);
    }
    this.runView.show(name);
    this.draw();
  }

  // Shows an engine; if a complete list does not contain it, no request is needed.
  open(name) {
    const {model} = this;
    clearProblem();
    scrollTo(0, 0);
    models.choose(model, name);
    this.runView.show(null);
    if (model.isComplete && !model.engines.has(name)) return this.lose();
    this.parts.show(null);
    this.history.show(name);
    this.stream.follow(name);  // begins with a complete list, which triggers the other requests
    this.draw();
  }

  // Fetches the configuration of the chosen engine. It never changes, unless the engine was
  // replaced by another one of the same name.
  async loadPlan() {
    const {model} = this, name = model.chosen;
    try {
      const plan = await api.requestJson("GET", api.enginePath(name));
      if (model.chosen === name && !model.isMissing) this.takePlan(plan);
    } catch (problem) {
      if (problem.kind === "no-such-engine" && model.chosen === name) this.lose();
      this.tell(problem);
    }
    this.draw();
  }

  takePlan(plan) {
    const {model} = this, before = model.plan;
    const isSame = before !== null && before.created === plan.created;
    model.plan = plan;
    if (model.stand === null || (before !== null && !isSame)) model.stand = plan;
    if (!isSame) this.parts.show(plan);
    this.history.update(model.stand.batches);
  }

  created(engine) {
    models.addEngine(this.model, engine);
    this.look(engine.name);
    this.focusMain();
  }

  // The chosen engine or run does not exist.
  lose() {
    Object.assign(this.model, {isMissing: true, plan: null, stand: null});
    this.showNothing();
    this.stream.follow(null);
    this.draw();
  }

  // The selected engine is gone: shows another one or the welcome view.
  leave(name) {
    const {model} = this;
    model.engines.delete(name);
    if (model.chosen !== name) return;
    this.removal.close();
    models.choose(model, null);
    this.showNothing();
    window.history.replaceState(null, "", location.pathname);
    if (model.engines.size)
      this.look(models.latestName(model), true);
    else
      this.stream.follow(null);
    this.draw();
  }

  // The same for a run.
  leaveRun(name) {
    const {model} = this;
    model.runs.delete(name);
    if (model.run !== name) return;
    this.removal.close();
    models.choose(model, null);
    this.showNothing();
    window.history.replaceState(null, "", location.pathname);
    if (model.engines.size)
      this.look(models.latestName(model), true);
    else if (model.runs.size)
      this.lookRun(models.latestName(model, model.runs));
    this.draw();
  }

  showNothing() {
    this.runView.show(null);
    this.parts.show(null);
    this.history.show(null);
  }

  focusMain() {
    at("main").focus({preventScroll: true});
  }

  // Resets the page, so that nothing shown before remains visible.
  signOut() {
    api.forgetToken();
    location.reload();
  }

  // A request was refused because of a missing or wrong token.
  askForToken(wasRefused) {
    this.isSignedOut = true;
    api.forgetToken();
    this.stream.follow(null);
    this.stream.stop();
    this.creation.close();
    this.removal.close();
    clearProblem();
    this.showNothing();
    models.forgetAll(this.model);
    this.drawNow();
    this.signIn.ask(wasRefused);
  }

  enter() {
    this.isSignedOut = false;
    clearProblem();
    this.drawNow();
    this.follow();
    this.stream.start();
    this.focusMain();
  }
}
