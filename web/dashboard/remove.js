// SPDX-License-Identifier: MIT
//
// remove.js: deletes an engine. This cannot be undone, so the user has to type its name.
import {announce, clearProblem, showProblem} from "./alerts.js";
import {enginePath, request} from "./api.js";

export function createRemoval({onRemoved}) {
  const [dialog, form, which, confirm] = [
    "delete-dialog", "delete-form", "delete-which", "confirm-delete"
  ].map((id) => document.getElementById(id));
  const written = form.elements.name;
  let name = "", isBusy = false;

  async function submit(event) {
    event.preventDefault();
    if (isBusy || written.value.trim() !== name) return;
    isBusy = true;
    clearProblem();
    try {
      await request("DELETE", enginePath(name));
      dialog.close();
      announce(`Engine ${name} deleted.`);
      onRemoved(name);
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
    open(engineName) {
      name = engineName;
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
