// SPDX-License-Identifier: MIT
//
// main.js: the entry point. The theme is set while the page is still loading, so that it never
// appears in the wrong colours; everything else waits until the elements exist.
import {Page} from "./page.js";
import {applyTheme, setUpTheme} from "./theme_switch.js";
import {setUpWelcome} from "./welcome.js";

function begin() {
  const at = (id) => document.getElementById(id), page = new Page();
  const listen = (id, act) => at(id).addEventListener("click", act);
  listen("new-engine", () => page.creation.open());
  listen("make-own", () => page.creation.open());
  listen("make-missing", () => page.creation.open(page.model.chosen || ""));
  listen("delete-engine", () => page.removal.open(page.model.chosen, "engine"));
  listen("delete-run", () => page.removal.open(page.model.run, "run"));
  listen("sign-out", () => page.signOut());
  listen("skip", (event) => {
    event.preventDefault();  // the hash is the engine's
    page.focusMain();
  });
  setUpTheme(at("theme"));
  setUpWelcome(page);
  page.begin();
}

applyTheme();
document.addEventListener("DOMContentLoaded", begin);
