// SPDX-License-Identifier: MIT
//
// map_legend.js: explains the colours of the map, with values and a sentence. For lattice points
// the legend is also a small chart: the height of each bar is the share of nodes on that point, so
// it shows at once when a stream has made nodes converge.

import {cssOf, POTENTIAL_STEPS} from "./colours.js";
import {h, setText} from "./dom.js";
import {count, counted} from "./text.js";

const LABELS_MAX = 16;   // more do not fit side by side on a phone
const LABELS_DENSE = 7;  // labels shown then, since values may have five digits
const STOPS = 16;

export function pointSentence(lattice) {
  const first = lattice[0], last = lattice[lattice.length - 1];
  return "Each square is a node, row by row. Its colour is the lattice point in its XOR " +
    "accumulator: each batch XORs its own XOR into it, and the result is folded into " +
    `${count(first)} to ${count(last)} and rounded to the nearest of ${lattice.length} points. ` +
    "Nodes on the same point move together from then on, so colours become fewer. The bars show " +
    "how many nodes hold each point.";
}

export function potentialSentence() {
  return "Each square is a node, row by row. Its colour is its potential: it begins at 0, and each " +
    "batch adds the batch's potential times the node's activation, rounded to a lattice point " +
    "above or below 0.";
}

export class PointLegend {
  constructor(lattice) {
    const last = lattice.length - 1, isDense = lattice.length > LABELS_MAX;
    const every = isDense ? Math.ceil(last / LABELS_DENSE) : 1;
    this.bars = lattice.map(() => h("i", {}));
    this.columns = lattice.map((point, k) => {
      const isTold = k === last || (k % every === 0 && k <= last - every);
      const label = h("span", {class: "legend-value"}, isTold ? String(point) : "");
      return h("li", {}, h("span", {class: "legend-bar"}, this.bars[k]), label);
    });
    this.lattice = lattice;
    this.element = h("ol", {class: "legend-points", "aria-label": "Lattice points"}, this.columns);
    if (isDense) this.element.classList.add("is-dense");
  }

  paint(colours) {
    this.bars.forEach((bar, k) => bar.style.background = cssOf(colours[k]));
  }

  // counts[k] of `nodes` nodes hold point k.
  show(counts, nodes) {
    const most = Math.max(1, ...counts);
    this.columns.forEach((column, k) => {
      this.bars[k].style.transform = `scaleY(${Math.max(0.03, counts[k] / most)})`;
      this.bars[k].style.opacity = counts[k] ? 1 : 0.45;
      column.title = `${this.lattice[k]}: ${counted(counts[k], "node")} of ${count(nodes)}`;
    });
  }
}

export class PotentialLegend {
  constructor() {
    this.ramp = h("div", {class: "legend-ramp"});
    this.low = h("span", {});
    this.high = h("span", {});
    this.span = h("p", {class: "legend-span"});
    this.element =
      h("div", {class: "legend-potentials"}, this.ramp,
        h("div", {class: "legend-ends"}, this.low, h("span", {}, "0"), this.high), this.span);
  }

  paint(colours) {
    const stops = Array.from(
      {length: STOPS + 1}, (_, k) => cssOf(colours[Math.round(k * 2 * POTENTIAL_STEPS / STOPS)]));
    this.ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  }

  show(range, {lowest, highest}) {
    setText(this.low, signed(-range));
    setText(this.high, signed(range));
    setText(this.span, `now from ${signed(lowest)} to ${signed(highest)}`);
  }
}

// With a sign that is as wide as a digit; 0 has no sign.
export function signed(value) {
  const text = count(Math.abs(value));
  return value > 0 ? `+${text}` : value < 0 ? `−${text}` : text;
}
