// SPDX-License-Identifier: MIT
//
// create.js: making an engine: the form with its defaults, and the short way without it. What is
// right is the server's to judge; what it says stands in the form, in its words.
import {announce, clearProblem, showProblem} from "./alerts.js";
import {requestJson} from "./api.js";

// Digits become a number; whatever else was written goes to the server, which says what is wrong.
function numberOf(text) {
  const plain = text.replace(/[\s,_]/g, "");
  return /^\d{1,15}$/.test(plain) ? Number(plain) : text.trim();
}

// What the form says, as POST /v1/engines wants it; what is empty has its default.
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

// The field that a problem is about: the one that holds what its sentence quotes, else the one that
// it names first.
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

// Marks the field and brings the person there, unfolding what hides it.
function pointAt(form, problem) {
  const field = fieldOf(form, problem), folded = field.closest("details");
  if (folded) folded.open = true;
  field.setAttribute("aria-invalid", "true");
  field.focus();
}

function unmark(form) {
  for (const field of form.elements) field.removeAttribute("aria-invalid");
}

// Backends that this server lacks cannot be chosen, and say why.
function offerBackends(select, backends) {
  for (const backend of backends || []) {
    const option = [...select.options].find((one) => one.value === backend.name);
    if (!option) continue;
    option.disabled = !backend.is_available;
    option.textContent = backend.is_available ? backend.name : `${backend.name} (not here)`;
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
      announce(`The engine ${engine.name} was made.`);
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
