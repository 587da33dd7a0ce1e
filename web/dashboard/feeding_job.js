// SPDX-License-Identifier: MIT
//
// feeding_job.js: the view of one file being fed: its format, a choice where the token type is not
// certain, a progress bar, and a message about how it ended. The queue (feeding.js) and the sender
// (sender.js) do the work.

import {h, newId, setHidden, setText} from "./dom.js";
import {WIDTHS} from "./guess.js";
import {bytes, count, counted, duration, rate as rateText, short, tokens} from "./text.js";

const DTYPES = Object.keys(WIDTHS);

export class JobView {
  // does: {feed(dtype), cancel(), goOn(), remove()}
  constructor(name, size, engine, does) {
    Object.assign(this, {name, size, engine, does});
    this.kind = h("span", {class: "feed-kind"}, `${bytes(size)}, checking …`);
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

  // The pressed button is gone: the focus moves to what replaced it.
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
          "The page cannot read this format; use this command instead: ", h("code", {}, command)));
  }

  // A raw file: the user chooses the token type. `others` files with the same guess follow.
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
          "Token type"),
        select, told, start),
      h("p", {class: "feed-hint"}, guess ? `Guessed: ${reason}.` : `Unknown: ${reason}.`));
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
    this.put("waiting", forWhom && h("p", {class: "feed-hint"}, `Waiting for ${forWhom}.`));
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

  // Shows why it stopped early; `action` is the label of the button that continues, if any.
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
    const why = isWhole ? `equal to iron sum of the file` : "the engine's seal now";
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

// What the sender is waiting for, or nothing.
function noteText(sender, nowSeconds) {
  if (sender.state === "signed-out")
    return "The server requires a token; feeding continues after you sign in.";
  if (sender.state !== "retrying") return "";
  const {problem} = sender, wait = Math.max(0, Math.ceil(sender.retryAt - nowSeconds));
  const what = problem.kind === "unreachable" ? "The server does not answer; no data is lost." :
                                                problem.sentence;
  return `${what} ${wait ? `Retrying in ${wait} s.` : "Retrying …"}`;
}

// The message for a run that was stopped.
export function stoppedSentence(sender, name, engine) {
  const part = `${count(sender.fed)} of ${counted(sender.total, "token")} of ${name}`;
  if (sender.state === "conflict")
    return `Another client has fed ${engine}: it is at position ${
             count(sender.position)}, but this ` +
      `file was to continue at ${count(sender.base + sender.fed)}. ${part} were fed.`;
  if (sender.state === "cancelled")
    return `Cancelled. ${part} were fed; they remain in the engine.`;
  if (sender.problem.kind === "unreadable")
    return `${name} can no longer be read: it was changed or removed. ${part} were fed.`;
  if (sender.problem.kind === "bad-token-value") return badValue(sender) + ` ${part} were fed.`;
  return `${sender.problem.sentence || sender.problem.message} ${part} were fed.`;
}

// The server counts from the beginning of the piece.
function badValue({problem, piece}) {
  const where = piece && piece.from ? ` (counted from token ${count(piece.from)} of the file)` : "";
  return `${problem.title || "Invalid token value"}: ${problem.detail}${where}.`;
}
