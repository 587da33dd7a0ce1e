// SPDX-License-Identifier: MIT
//
// engine.js: the engine that is looked at: its name, its configuration in a line, its figures, seal
// and hashes. Texts are written once a frame at most, and only those that changed; map, chart,
// feeding and history are parts of their own, which main.js keeps up to date.
import {announce} from "./alerts.js";
import {setHidden, setText} from "./dom.js";
import {count, counted, moment, short, tokens} from "./text.js";

const EMPTY = "This engine has read nothing yet. Drop a file of tokens below, or";
const SAMPLING = "Two million made-up tokens are on their way. Watch the map: each batch moves it.";
const WORDS = ["xor", "sum", "state", "seal"];

// The configuration, for people.
export function planLine(plan) {
  const lattice = plan.lattice;
  return [
    counted(plan.nodes, "node"), `vocabulary of ${count(plan.vocab)}`,
    `batches of ${count(plan.batch)}`,
    plan.positions === "batch" ? "positions begin anew in each batch" :
                                 "positions count through the stream",
    `${lattice.length} lattice points from ${lattice[0]} to ${lattice[lattice.length - 1]}`,
    `${plan.mode} on ${plan.backend}${plan.device_name ? ` (${plan.device_name})` : ""}`
  ].join(" · ");
}

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // plain http on another machine: browsers offer no clipboard, but still know the old way
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
    return model.plan ? `engine made ${moment(model.plan.created)}` : "";
  }

  function drawFigures(stand, live) {
    for (const id of ["tokens", "batches", "feeds"])
      setText(at(id), stand && stand[id] !== undefined ? count(stand[id]) : "…");
    const incoming = live ? live.incoming : 0;
    setText(at("incoming"), incoming > 0 ? `+ ${tokens(incoming)} on their way` : madeText());
    setText(at("changed"), live && live.feeds > 0 ? `last ${moment(live.changed)}` : "none yet");
  }

  // What to do with an engine that has read nothing, and how far the sample is that it reads.
  function drawHint(live) {
    const {stand, sample} = model, button = at("feed-sample");
    const isHere = sample !== null && sample.name === model.chosen;
    const isEmpty = stand !== null && stand.tokens === 0 && !(live && live.incoming > 0);
    setHidden(at("hint"), !isHere && !isEmpty);
    setHidden(button, sample !== null && !isHere);
    setText(at("hint-text"), isHere ? SAMPLING : EMPTY);
    setText(button, isHere ? `${Math.round(100 * sample.done)} % fed` : "Feed a made-up sample");
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
