// SPDX-License-Identifier: MIT
//
// model.js: the page's data and how events of the live stream change it. Nothing here touches the
// document; views read the model when a frame is drawn.
//
//   engines      Map of name -> {name, tokens, batches, feeds, incoming, rate, version, changed}
//   isComplete   a complete list has arrived since sign-in
//   runs         Map of name -> training run, as GET /v1/runs lists it
//   chosen       name of the selected engine, or null
//   run          name of the selected run, or null; one of the two is null
//   isMissing    the server has no engine or run of the chosen name
//   plan         its configuration, from GET /v1/engines/{name}, or null until it arrives
//   stand        its current values: tokens batches feeds xor sum state seal, version
//   sample       {name, done} while this page feeds generated tokens (trial.js), else null
//   connection   the stream's state

export function createModel() {
  return {
    engines: new Map(),
    runs: new Map(),
    isComplete: false,
    chosen: null,
    run: null,
    isMissing: false,
    plan: null,
    stand: null,
    sample: null,
    connection: "connecting"
  };
}

// Resets the model: nothing shown before may remain visible after signing out.
export function forgetAll(model) {
  Object.assign(model, createModel());
}

export function choose(model, name) {
  Object.assign(model, {chosen: name, run: null, isMissing: false, plan: null, stand: null});
}

export function chooseRun(model, name) {
  choose(model, null);
  model.run = name;
}

// event: engines
export function takeEngines(model, event) {
  if (event.complete) {
    model.engines.clear();
    model.isComplete = true;
  }
  for (const engine of event.engines || []) model.engines.set(engine.name, engine);
  for (const name of event.removed || []) model.engines.delete(name);
}

// The server is unreachable: incoming tokens and rates are no longer known.
export function calm(model) {
  for (const engine of model.engines.values()) Object.assign(engine, {rate: 0, incoming: 0});
}

// An engine created by this page; the stream reports it a little later.
export function addEngine(model, {name, tokens, batches, feeds, changed}) {
  const live = {name, tokens, batches, feeds, changed, incoming: 0, rate: 0, version: 0};
  if (!model.engines.has(name)) model.engines.set(name, live);
}

// event: engine; false if the engine is no longer selected
export function takeStand(model, event) {
  if (event.name !== model.chosen) return false;
  model.stand = event;
  return true;
}

// The names that contain `part`, in list order.
export function namesWith(model, part) {
  const wanted = part.trim().toLowerCase();
  const names = [...model.engines.keys()].filter((name) => name.toLowerCase().includes(wanted));
  return names.sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
}

// The engine, or run, to show first: the most recently changed one.
export function latestName(model, all = model.engines) {
  let best = null;
  for (const one of all.values())
    if (!best || String(one.changed) > String(best.changed)) best = one;
  return best && best.name;
}
