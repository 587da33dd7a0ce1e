// SPDX-License-Identifier: MIT
//
// map_cursor.js: the selected node of the map. The pointer shows the node below it; a tap, a click
// or the arrow keys select one permanently. A box on the map and a line of values show it; it is
// announced to screen readers only after the keys have been idle for a moment.

import {h, setText} from "./dom.js";
import {nodeAt} from "./nodes.js";
import {signed} from "./map_legend.js";
import {count} from "./text.js";

const REST_MS = 350;
const PAGE_ROWS = 8;
const CURSOR_MIN = 9;  // pixels; a cell of a large engine is smaller than one

const HINT = "Point at a square, or use the arrow keys, to see its node.";

function activationText(value) {
  return String(Number(value.toPrecision(6)));
}

export class Cursor {
  // board: the focusable element that the map fills; values: where the text goes.
  constructor(board, values) {
    Object.assign(this, {board, nodes: null, side: 1, chosen: null, hovered: null, timer: 0});
    this.box = h("div", {class: "map-cursor", hidden: true});
    this.spoken = h("p", {class: "map-spoken", "aria-live": "polite"});
    this.fields =
      ["Node", "Lattice point", "Potential", "Activation"].map(name => this.field(name));
    this.hint = h("p", {class: "map-hint"}, HINT);
    this.where = h("small", {});
    this.fields[0].value.after(this.where);
    this.list = h("dl", {class: "map-fields", hidden: true}, this.fields.map(f => f.element));
    values.append(this.hint, this.list);
    board.append(this.box, this.spoken);
    this.listen();
  }

  field(name) {
    const value = h("dd", {});
    return {value, element: h("div", {}, h("dt", {}, name), value)};
  }

  listen() {
    const on = (event, listener) => this.board.addEventListener(event, listener);
    on("pointermove", event => this.hover(this.cellAt(event)));
    on("pointerdown", event => this.choose(this.cellAt(event)));
    on("pointerleave", () => this.hover(null));
    on("keydown", event => this.key(event));
  }

  cellAt(event) {
    const area = this.board.getBoundingClientRect();
    const place = (at, size) => Math.floor((at / size) * this.side);
    const column = place(event.clientX - area.left - this.board.clientLeft, this.board.clientWidth);
    const row = place(event.clientY - area.top - this.board.clientTop, this.board.clientHeight);
    if (column < 0 || row < 0 || column >= this.side || row >= this.side) return null;
    const node = row * this.side + column;
    return this.nodes && node < this.nodes.count ? node : null;
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.draw();
  }

  choose(node) {
    this.chosen = node;
    this.draw();
  }

  key(event) {
    if (!this.nodes || event.altKey || event.metaKey) return;
    if (event.key === "Escape") return this.choose(null);
    const to = this.target(event.key, event.ctrlKey);
    if (to === null) return;
    event.preventDefault();
    this.hovered = null;
    this.choose(Math.max(0, Math.min(this.nodes.count - 1, to)));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => setText(this.spoken, this.sentence()), REST_MS);
  }

  // The node that a key leads to; the first key press selects node 0.
  target(key, isFar) {
    const {side} = this, last = this.nodes.count - 1, at = this.chosen;
    const row = Math.floor((at ?? 0) / side), column = (at ?? 0) % side;
    const within = to => to >= 0 && to <= last ? to : at ?? 0;
    const moves = {
      ArrowLeft: () => at - 1,
      ArrowRight: () => at + 1,
      ArrowUp: () => within(at - side),
      ArrowDown: () => within(at + side),
      PageUp: () => Math.max(row - PAGE_ROWS, 0) * side + column,
      PageDown: () => Math.min(row + PAGE_ROWS, Math.floor((last - column) / side)) * side + column,
      Home: () => isFar ? 0 : row * side,
      End: () => isFar ? last : row * side + side - 1
    };
    if (!Object.hasOwn(moves, key)) return null;
    return at === null ? 0 : moves[key]();
  }

  // New nodes of this or another engine; a node that no longer exists is deselected.
  show(nodes, side) {
    Object.assign(this, {nodes, side});
    if (this.chosen !== null && this.chosen >= nodes.count) this.chosen = null;
    if (this.hovered !== null && this.hovered >= nodes.count) this.hovered = null;
    this.draw();
  }

  clear() {
    clearTimeout(this.timer);
    Object.assign(this, {nodes: null, chosen: null, hovered: null});
    this.draw();
  }

  get node() {
    return this.hovered ?? this.chosen;
  }

  sentence() {
    if (!this.nodes || this.node === null) return "";
    const {point, potential, activation} = nodeAt(this.nodes, this.node);
    return `Node ${this.node}: point ${point}, potential ${signed(potential)}, ` +
      `activation ${activationText(activation)}`;
  }

  draw() {
    const isShown = this.nodes !== null && this.node !== null;
    this.box.hidden = !isShown;
    this.list.hidden = !isShown;
    this.hint.hidden = isShown;
    if (!isShown) return;
    const {node, side} = this, row = Math.floor(node / side), column = node % side;
    const {point, potential, activation} = nodeAt(this.nodes, node);
    const texts = [count(node), count(point), signed(potential), activationText(activation)];
    setText(this.where, `row ${row}, column ${column}`);
    this.fields.forEach((field, k) => setText(field.value, texts[k]));
    this.place(row, column);
  }

  place(row, column) {
    const cell = this.board.clientWidth / this.side, size = Math.max(CURSOR_MIN, cell);
    const at = index => index * cell + (cell - size) / 2;
    Object.assign(this.box.style, {
      width: `${size}px`,
      height: `${size}px`,
      transform: `translate(${at(column)}px, ${at(row)}px)`
    });
  }
}
