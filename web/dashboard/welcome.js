// SPDX-License-Identifier: MIT
//
// welcome.js: the start page: one click creates an engine named "first" and can feed it a sample,
// for users who have no token file yet.
import {announce, clearProblem, showProblem} from "./alerts.js";
import {createEngine} from "./create.js";
import {feedSample} from "./trial.js";

const FIRST_NAME = "first";

// Creates the engine, or uses the existing one: another tab may have been faster.
async function makeFirst(page) {
  clearProblem();
  try {
    page.created(await createEngine({name: FIRST_NAME}));
    announce(`Engine ${FIRST_NAME} created.`);
    return true;
  } catch (problem) {
    if (problem.kind === "engine-exists")
      page.look(FIRST_NAME);
    else
      showProblem(problem);
    return problem.kind === "engine-exists";
  }
}

// Feeds the sample; the engine's view shows the progress.
async function runSample(page, name) {
  const {model} = page, before = document.activeElement;
  if (model.sample) return;
  const tell = (done) => {
    model.sample = {name, done};
    page.draw();
  };
  tell(0);
  try {
    await feedSample(name, tell);
  } catch (problem) {
    if (problem.kind !== "unauthorized") showProblem(problem);
  }
  model.sample = null;
  page.draw();
  if (before && before.id === "feed-sample") page.focusMain();  // the button is hidden
}

export function setUpWelcome(page) {
  const listen = (id, act) => document.getElementById(id).addEventListener("click", act);
  listen("make-first", () => makeFirst(page));
  listen("feed-sample", () => runSample(page, page.model.chosen));
  listen("try-sample", async () => {
    if (await makeFirst(page)) runSample(page, FIRST_NAME);
  });
}
