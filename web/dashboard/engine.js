// SPDX-License-Identifier: MIT
//
// engine.js: the view of the selected engine: name, configuration, figures, seal and hashes. Texts
// are written at most once per frame, and only if they changed; map, chart, feeding and history are
// separate parts.
import {announce} from "./alerts.js";
import {setHidden, setText} from "./dom.js";
import {count, counted, moment, short, tokens} from "./text.js";

const EMPTY = "This engine has no tokens yet. Drop a token file below, or";
const SAMPLING = "Feeding two million generated tokens. Each batch changes the map.";
const WORDS = ["xor", "sum", "state", "seal"];

// The configuration as text.
export function planLine(plan) {
  const lattice = plan.lattice;
  return [
    counted(plan.nodes, "node"), `vocabulary of ${count(plan.vocab)}`,
    `batches of ${count(plan.batch)}`,
    plan.positions === "batch" ? "positions restart in each batch" :
                                 "positions count through the stream",
    `${lattice.length} lattice points from ${lattice[0]} to ${lattice[lattice.length - 1]}`,
    `${plan.mode} on ${plan.backend}${plan.device_name ? ` (${plan.device_name})` : ""}`
  ].join(" · ");
}

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // over plain http browsers offer no clipboard API, but execCommand still works
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  const isCopied = document.execCommand("copy");
  box.remove();
  if (!isCopied) throw new Error("not copied");
}

function setUpCopy(button, source) {
  let timer = 0;
  button.addEventListener("click", async () => {
    const said = await copyText(source.textContent).then(() => "Copied", () => "Not copied");
    setText(button, said);
    announce(said === "Copied" ? "The seal was copied." : "The seal could not be copied.");
    clearTimeout(timer);
    timer = setTimeout(() => setText(button, "Copy"), 2000);
  });
}

export function createEngineView(model) {
  const at = (id) => document.getElementById(id);
  setUpCopy(at("copy-seal"), at("seal"));

  function drawPlan(plan) {
    setText(at("plan"), plan ? planLine(plan) : "");
    setText(at("batch-size"), plan ? `of up to ${count(plan.batch)} tokens` : "");
  }

  function madeText() {
    return model.plan ? `created ${moment(model.plan.created)}` : "";
  }

  function drawFigures(stand, live) {
    for (const id of ["tokens", "batches", "feeds"])
      setText(at(id), stand && stand[id] !== undefined ? count(stand[id]) : "…");
    const incoming = live ? live.incoming : 0;
    setText(at("incoming"), incoming > 0 ? `+ ${tokens(incoming)} incoming` : madeText());
    setText(at("changed"), live && live.feeds > 0 ? `last ${moment(live.changed)}` : "none yet");
  }

  // The hint for an empty engine, and the progress of the sample that it is being fed.
  function drawHint(live) {
    const {stand, sample} = model, button = at("feed-sample");
    const isHere = sample !== null && sample.name === model.chosen;
    const isEmpty = stand !== null && stand.tokens === 0 && !(live && live.incoming > 0);
    setHidden(at("hint"), !isHere && !isEmpty);
    setHidden(button, sample !== null && !isHere);
    setText(at("hint-text"), isHere ? SAMPLING : EMPTY);
    setText(button, isHere ? `${Math.round(100 * sample.done)} % fed` : "Feed a generated sample");
    button.disabled = isHere;
  }

  function draw() {
    const {chosen, plan, stand} = model, live = model.engines.get(chosen);
    setText(at("engine-title"), chosen || "");
    drawPlan(plan);
    drawFigures(stand || live, live);
    setText(at("rate-figure"), short(live ? live.rate : 0));
    for (const id of WORDS) setText(at(id), stand ? stand[id] : "…");
    drawHint(live);
  }
  return {draw};
}
