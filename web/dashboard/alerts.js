// SPDX-License-Identifier: MIT
//
// alerts.js: the page's one error message. Screen readers read it out at once (role=alert), and it
// stays until it is dismissed or the problem is solved. It is shown inside the form that caused it,
// because a modal dialog hides everything else from a screen reader. Successes are announced
// politely.
import {h} from "./dom.js";

const text = h("span");
const region =
  h("div", {class: "problem", role: "alert", "data-testid": "problem", hidden: true}, text,
    h("button", {class: "quiet small", type: "button", onclick: clearProblem}, "Dismiss"));

// Shows a Problem or a text in the form `near` (its .problem-slot), or at the top of the page.
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
