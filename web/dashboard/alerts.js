// SPDX-License-Identifier: MIT
//
// alerts.js: the one place where the page says that something went wrong: a sentence that is read
// out at once (role=alert) and stays until it is dismissed or the matter is settled. It moves to
// where the person is: into the form that was refused, since a modal dialog hides all else from a
// screen reader. What went well is announced quietly.
import {h} from "./dom.js";

const text = h("span");
const region =
  h("div", {class: "problem", role: "alert", "data-testid": "problem", hidden: true}, text,
    h("button", {class: "quiet small", type: "button", onclick: clearProblem}, "Dismiss"));

// A Problem or a sentence; `near` is a form with a .problem-slot, the top of the page without it.
export function showProblem(problem, near) {
  const slot = near && near.querySelector(".problem-slot");
  const place = slot || document.getElementById("problem-place");
  if (region.parentNode !== place) place.append(region);
  region.hidden = false;
  text.textContent = typeof problem === "string" ? problem : problem.sentence || String(problem);
  region.scrollIntoView({block: "nearest"});
}

export function clearProblem() {
  region.hidden = true;
  text.textContent = "";
}

export function announce(sentence) {
  document.getElementById("announcement").textContent = sentence;
}
