// SPDX-License-Identifier: MIT
//
// create.js: creates engines, with the form or directly with the defaults. The server validates the
// values; its messages are shown in the form.
import {announce, clearProblem, showProblem} from "./alerts.js";
import {requestJson} from "./api.js";

// Digits become a number; other text is sent as it is, and the server reports the error.
function numberOf(text) {
  const plain = text.replace(/[\s,_]/g, "");
  return /^\d{1,15}$/.test(plain) ? Number(plain) : text.trim();
}

// The form's values as the body of POST /v1/engines; empty fields are omitted.
export function planOf(form) {
  const plan = {name: form.elements.name.value.trim()};
  for (const field of ["nodes", "vocab", "batch"])
    if (form.elements[field].value.trim()) plan[field] = numberOf(form.elements[field].value);
  for (const field of ["positions", "backend", "mode"])
    if (form.elements[field].value.trim()) plan[field] = form.elements[field].value.trim();
  const points = form.elements.lattice.value.split(/[\s,;]+/).filter((point) => point !== "");
  if (points.length) plan.lattice = points.map(numberOf);
  return plan;
}

export function createEngine(plan) {
  return requestJson("POST", "/v1/engines", {json: plan});
}

// The field that a problem is about: the one whose value its message quotes, otherwise the one
// that it names first.
export function fieldOf(form, problem) {
  const fields = [...form.elements].filter((field) => field.name);
  const quoted = fields.find((field) => field.value && problem.detail.includes(`'${field.value}'`));
  if (quoted) return quoted;
  const named =
    fields
      .map(
        (field) => ({field, at: ` ${problem.detail} `.search(new RegExp(`\\W${field.name}\\W`))}))
      .filter(({at}) => at >= 0)
      .sort((a, b) => a.at - b.at);
  return named.length ? named[0].field : form.elements.name;
}

// Marks and focuses the field; opens the section that hides it.
function pointAt(form, problem) {
  const field = fieldOf(form, problem), folded = field.closest("details");
  if (folded) folded.open = true;
  field.setAttribute("aria-invalid", "true");
  field.focus();
}

function unmark(form) {
  for (const field of form.elements) field.removeAttribute("aria-invalid");
}

// Disables the backends that this server lacks and shows the reason.
function offerBackends(select, backends) {
  for (const backend of backends || []) {
    const option = [...select.options].find((one) => one.value === backend.name);
    if (!option) continue;
    option.disabled = !backend.is_available;
    option.textContent = backend.is_available ? backend.name : `${backend.name} (not available)`;
    option.title = backend.reason || "";
  }
}

export function createCreation({onCreated}) {
  const dialog = document.getElementById("create-dialog");
  const form = document.getElementById("engine-form");
  let isBusy = false;

  async function submit(event) {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    clearProblem();
    unmark(form);
    try {
      const engine = await createEngine(planOf(form));
      dialog.close();
      announce(`Engine ${engine.name} created.`);
      onCreated(engine);
    } catch (problem) {
      if (problem.kind !== "unreachable") pointAt(form, problem);
      showProblem(problem, form);
    }
    isBusy = false;
  }

  form.addEventListener("submit", submit);
  dialog.addEventListener("close", clearProblem);
  document.getElementById("cancel-create").addEventListener("click", () => dialog.close());
  return {
    open(name = "") {
      form.reset();
      clearProblem();
      unmark(form);
      form.elements.name.value = name;
      document.getElementById("advanced").open = false;
      dialog.showModal();
      form.elements.name.focus();
    },
    offer(info) {
      offerBackends(form.elements.backend, info.backends);
    },
    close() {
      dialog.close();
    }
  };
}
