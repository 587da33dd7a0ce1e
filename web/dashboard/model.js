// SPDX-License-Identifier: MIT
//
// model.js: what the page knows, and how the events of the live stream change it. Nothing here
// touches the document; views read the model when a frame is drawn.
//
//   engines      Map of name -> {name, tokens, batches, feeds, incoming, rate, version, changed}
//   isComplete   the list was heard at least once since sign-in
//   chosen       name of the engine that is looked at, or null
//   isMissing    the server has no engine of the chosen name
//   plan         its configuration, as GET /v1/engines/{name} gave it, or null until it has come
//   stand        where it is: tokens batches feeds xor sum state seal, version
//   sample       {name, done} while made-up tokens are fed from here (trial.js), else null
//   connection   the stream's state

export function createModel() {
  return {
    engines: new Map(),
    isComplete: false,
    chosen: null,
    isMissing: false,
    plan: null,
    stand: null,
    sample: null,
    connection: "connecting"
  };
}

// Back to nothing, as at the beginning; what was shown must not be seen after signing out.
export function forgetAll(model) {
  Object.assign(model, createModel());
}

export function choose(model, name) {
  Object.assign(model, {chosen: name, isMissing: false, plan: null, stand: null});
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

// The server is away: what was on its way is not any more, as far as anybody knows.
export function calm(model) {
  for (const engine of model.engines.values()) Object.assign(engine, {rate: 0, incoming: 0});
}

// An engine that was made here: the stream tells of it a little later.
export function addEngine(model, {name, tokens, batches, feeds, changed}) {
  const live = {name, tokens, batches, feeds, changed, incoming: 0, rate: 0, version: 0};
  if (!model.engines.has(name)) model.engines.set(name, live);
}

// event: engine; false if it is of an engine that nobody looks at any more
export function takeStand(model, event) {
  if (event.name !== model.chosen) return false;
  model.stand = event;
  return true;
}

// Names in the order in which they are listed, those with `part` in them.
export function namesWith(model, part) {
  const wanted = part.trim().toLowerCase();
  const names = [...model.engines.keys()].filter((name) => name.toLowerCase().includes(wanted));
  return names.sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
}

// The engine that somebody would want to see first: the one that was changed last.
export function latestName(model) {
  let best = null;
  for (const engine of model.engines.values())
    if (!best || String(engine.changed) > String(best.changed)) best = engine;
  return best && best.name;
}
