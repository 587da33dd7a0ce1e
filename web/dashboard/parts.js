// SPDX-License-Identifier: MIT
//
// parts.js: the dynamic parts of the engine's view: map, rate chart, feeding. They are created once
// and notified which engine is selected and what has changed.
import * as api from "./api.js";
import {createFeeding} from "./feeding.js";
import {createMap} from "./map.js";
import {createRate} from "./rate.js";

const at = (id) => document.getElementById(id);

async function fetchNodes(name, signal) {
  const answer = await api.request("GET", api.enginePath(name, "/state?format=npy"), {signal});
  return answer.arrayBuffer();
}

export function createParts() {
  const map = createMap(at("map-root"), {fetchNodes});
  const chart = createRate(at("rate-root"));
  const feeding = createFeeding(at("feeding-root"), {api});
  return {
    // The selected engine with its configuration, or null.
    show(engine) {
      chart.clear();
      feeding.setEngine(engine);
      if (engine)
        map.show(engine);
      else
        map.clear();
    },
    update(stand) {
      map.update(stand.version);
    },
    pushRate(tokensPerSecond) {
      chart.push(Date.now() / 1000, tokensPerSecond);
    }
  };
}
