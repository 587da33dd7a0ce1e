// SPDX-License-Identifier: MIT
//
// remove.js: deletes an engine or a run. This cannot be undone, so the user has to type its name.
import {announce, clearProblem, showProblem} from "./alerts.js";
import {enginePath, request, runPath} from "./api.js";
import {setText} from "./dom.js";

export function createRemoval({onRemoved}) {
  const [dialog, form, which, confirm] = [
    "delete-dialog", "delete-form", "delete-which", "confirm-delete"
  ].map((id) => document.getElementById(id));
  const written = form.elements.name;
  let name = "", what = "engine", isBusy = false;

  async function submit(event) {
    event.preventDefault();
    if (isBusy || written.value.trim() !== name) return;
    isBusy = true;
    clearProblem();
    try {
      await request("DELETE", what === "run" ? runPath(name) : enginePath(name));
      dialog.close();
      announce(`${what === "run" ? "Run" : "Engine"} ${name} deleted.`);
      onRemoved(name, what);
    } catch (problem) {
      showProblem(problem, form);
    }
    isBusy = false;
  }

  written.addEventListener("input", () => {
    confirm.disabled = written.value.trim() !== name;
  });
  form.addEventListener("submit", submit);
  dialog.addEventListener("close", clearProblem);
  document.getElementById("cancel-delete").addEventListener("click", () => dialog.close());
  return {
    // what: "engine" or "run"
    open(itsName, kind) {
      [name, what] = [itsName, kind];
      setText(document.getElementById("delete-title"), `Delete the ${what}?`);
      which.textContent = name;
      form.reset();
      confirm.disabled = true;
      dialog.showModal();
      written.focus();
    },
    close() {
      dialog.close();
    }
  };
}
