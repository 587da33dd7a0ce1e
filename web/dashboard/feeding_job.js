// SPDX-License-Identifier: MIT
//
// feeding_job.js: one file on its way into an engine, as people see it: what it is, a choice where
// that is not certain, a bar, and a sentence for however it ends. What is done about it the queue
// decides (feeding.js) and the sender does (sender.js).

import {h, newId, setHidden, setText} from "./dom.js";
import {WIDTHS} from "./guess.js";
import {bytes, count, counted, duration, rate as rateText, short, tokens} from "./text.js";

const DTYPES = Object.keys(WIDTHS);

export class JobView {
  // does: {feed(dtype), cancel(), goOn(), remove()}
  constructor(name, size, engine, does) {
    Object.assign(this, {name, size, engine, does});
    this.kind = h("span", {class: "feed-kind"}, `${bytes(size)}, being looked at …`);
    this.remove =
      button("Remove", does.remove, {class: "feed-remove", "aria-label": `Remove ${name}`});
    this.body = h("div", {class: "feed-body"});
    this.element =
      h("li", {class: "feed-job"},
        h("div", {class: "feed-top"},
          h("p", {}, h("b", {class: "feed-name"}, name), " ", this.kind), this.remove),
        this.body);
  }

  // Shows `state` with these parts below the name.
  put(state, ...parts) {
    const hadFocus = this.body.contains(document.activeElement);
    this.element.dataset.state = state;
    this.body.replaceChildren(...parts.filter(Boolean));
    setHidden(this.remove, state === "active");
    this.bar = null;
    if (hadFocus) this.refocus();
  }

  // The button that was pressed has gone: the keyboard goes on at what took its place.
  refocus() {
    const next = this.body.querySelector("button, select") || this.remove;
    next.focus();
  }

  tellKind(text) {
    setText(this.kind, text);
  }

  showRefused(sentence, command) {
    this.tellKind(bytes(this.size));
    this.put(
      "refused", h("p", {class: "feed-problem", role: "alert", "data-testid": "problem"}, sentence),
      command &&
        h("p", {class: "feed-hint"},
          "The page does not read it; this does, from a terminal: ", h("code", {}, command)));
  }

  // A raw file: how wide its tokens are is for somebody to say. `others` files follow that look
  // alike.
  showGuess({guess, reason}, others) {
    const id = newId("dtype");
    const start = button(
      "Feed", () => this.does.feed(select.value), {class: "feed-start", "data-testid": "feed"});
    const told = h("span", {class: "feed-count"});
    const select = h("select", {id, "data-testid": "dtype"}, this.choices(guess));
    const tell = () => {
      start.disabled = select.value === "";
      setText(told, select.value && tokens(this.size / WIDTHS[select.value]));
      setText(start, others && select.value === guess ? `Feed it and ${others} more` : "Feed");
    };
    select.addEventListener("change", tell);
    tell();
    this.tellKind(`raw, ${bytes(this.size)}`);
    this.put(
      "guess",
      h("div", {class: "feed-choice"},
        h("label",
          {for: id
          },
          "Tokens are"),
        select, told, start),
      h("p", {class: "feed-hint"}, guess ? `A guess: ${reason}.` : `No guess: ${reason}.`));
  }

  choices(guess) {
    const fits = dtype => this.size % WIDTHS[dtype] === 0;
    const none = guess ? [] : [h("option", {value: ""}, "choose")];
    return none.concat(DTYPES.map(
      dtype =>
        h("option", {value: dtype, selected: dtype === guess, disabled: !fits(dtype)}, dtype)));
  }

  showWaiting(kind, forWhom) {
    this.tellKind(kindText(kind));
    this.put("waiting", forWhom && h("p", {class: "feed-hint"}, `Waits for ${forWhom}.`));
  }

  showActive(sender, nowSeconds) {
    if (!this.bar) this.buildActive();
    const done = sender.fed + sender.sent, share = sender.total ? done / sender.total : 0;
    const percent = Math.floor(share * 100);
    this.fillBar.style.transform = `scaleX(${share})`;
    this.bar.setAttribute("aria-valuenow", percent);
    setText(this.percent, `${percent} %`);
    setText(this.pace, paceText(sender, done));
    const note = noteText(sender, nowSeconds);
    setText(this.note, note);
    setHidden(this.note, !note);
    this.cancel.disabled = sender.isCancelled;
    this.element.classList.toggle("is-held", Boolean(note));
  }

  buildActive() {
    this.fillBar = h("i", {});
    const bar =
      h("div", {
        class: "feed-bar",
        role: "progressbar",
        "aria-label": `Feeding ${this.name}`,
        "aria-valuemin": 0,
        "aria-valuemax": 100,
        "data-testid": "progress"
      },
        this.fillBar);
    this.percent = h("span", {class: "feed-percent"});
    this.cancel = button("Cancel", this.does.cancel, {"data-testid": "cancel-feed"});
    this.pace = h("span", {class: "feed-pace"});
    this.note = h("p", {class: "feed-note", role: "status", hidden: true});
    this.put(
      "active", bar, h("div", {class: "feed-line"}, this.percent, this.pace, this.cancel),
      this.note);
    this.bar = bar;
  }

  // How it stopped, if not at its end; `action` names the button that goes on, if there is one.
  showStopped(sentence, action, isAlarm) {
    const look = isAlarm ? {role: "alert", "data-testid": "problem", class: "feed-problem"} :
                           {role: "status", "data-testid": "feed-result", class: "feed-result"};
    this.put(
      "stopped", h("p", look, sentence),
      action &&
        h("div", {class: "feed-actions"},
          button(action, this.does.goOn, {"data-testid": "go-on"})));
  }

  showDone(sender, isWhole) {
    const {total, seconds, answer} = sender;
    const pace = seconds >= 0.001 ? `, ${rateText(total / seconds)}` : "";
    const time = seconds < 10 ? `${Math.max(0.01, seconds).toFixed(2)} s` : duration(seconds);
    const why = isWhole ? `the seal that iron sum gives for the file` : "the engine's seal now";
    this.remove.textContent = "Dismiss";
    this.remove.setAttribute("aria-label", `Dismiss ${this.name}`);
    this.put(
      "done",
      h("p", {class: "feed-result", role: "status", "data-testid": "feed-result"},
        `${counted(total, "token")} fed in ${time}${pace}.`),
      answer && h("p", {class: "feed-seal"}, h("code", {}, answer.seal), ` ${why}`));
  }
}

function button(text, onclick, props) {
  return h("button", {type: "button", onclick, ...props}, text);
}

export function kindText(kind) {
  return `${kind.reason}, ${tokens(kind.tokens)}`;
}

function paceText(sender, done) {
  const {rate} = sender.speed;
  const part = `${short(done)} of ${tokens(sender.total)}`;
  if (!rate || sender.state !== "sending") return part;
  const left = (sender.total - done) / rate;
  return `${part} · ${rateText(rate)}${left >= 1 ? ` · ${duration(left)} left` : ""}`;
}

// What holds it up, or nothing.
function noteText(sender, nowSeconds) {
  if (sender.state === "signed-out")
    return "The server wants its token; this goes on when you have signed in.";
  if (sender.state !== "retrying") return "";
  const {problem} = sender, wait = Math.max(0, Math.ceil(sender.retryAt - nowSeconds));
  const what = problem.kind === "unreachable" ? "The server does not answer; nothing is lost." :
                                                problem.sentence;
  return `${what} ${wait ? `Trying again in ${wait} s.` : "Trying again …"}`;
}

// The sentence of a run that was stopped.
export function stoppedSentence(sender, name, engine) {
  const part = `${count(sender.fed)} of ${counted(sender.total, "token")} of ${name}`;
  if (sender.state === "conflict")
    return `Somebody else has fed ${engine} meanwhile: it is at ${
             count(sender.position)}, and this ` +
      `file was to go on at ${count(sender.base + sender.fed)}. ${part} were fed.`;
  if (sender.state === "cancelled") return `Cancelled. ${part} were fed, and stay.`;
  if (sender.problem.kind === "unreadable")
    return `${name} can no longer be read: it was changed or removed. ${part} were fed.`;
  if (sender.problem.kind === "bad-token-value") return badValue(sender) + ` ${part} were fed.`;
  return `${sender.problem.sentence || sender.problem.message} ${part} were fed.`;
}

// The server counts from where the piece begins that it was sent.
function badValue({problem, piece}) {
  const where = piece && piece.from ? ` (counted from token ${count(piece.from)} of the file)` : "";
  return `${problem.title || "A value is no token"}: ${problem.detail}${where}.`;
}
