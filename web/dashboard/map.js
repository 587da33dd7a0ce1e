// SPDX-License-Identifier: MIT
//
// map.js: draws an engine's nodes as squares, row by row, in the smallest square that holds them
// (64 by 64 for 4096). It is one ImageData with one pixel per node, which the browser scales; grid
// lines, the cursor and the flash of changed nodes are overlays, so that a new state of the engine
// costs only one pass over its nodes.

import {nextRange, pointPixels, potentialPixels} from "./colours.js";
import {fill, h, newId, oncePerFrame, setHidden, setText} from "./dom.js";
import {Cursor} from "./map_cursor.js";
import {PointLegend, pointSentence, PotentialLegend, potentialSentence} from "./map_legend.js";
import {paintPoints, paintPotentials, potentialSpan, rankTable, readNodes, sideOf} from "./nodes.js";
import {Puller} from "./pull.js";
import {onTheme, themeNow} from "./theme.js";

const LINES_FROM = 6;  // pixels of a cell from which on lines are drawn between cells
const SIDE_MAX = 640;  // pixels of the picture
const FLASH_MS = 700;
const FLASH_PAUSE_MS = 1500;  // so that a stream of updates flashes occasionally and never flickers
const FLASH_NODES_MAX = 65536;

class NodeMap {
  constructor(root, {fetchNodes}) {
    this.engine = null;
    this.nodes = null;
    this.by = "point";
    this.range = 1;
    this.flashed = 0;
    this.draw = oncePerFrame(() => this.paint());
    this.build(root);
    this.puller = new Puller(fetchNodes, b => this.take(b), p => this.tell(p));
    this.cursor = new Cursor(this.board, this.values);
    this.shape(1);
    this.sizer = new ResizeObserver(() => this.fit());
    this.sizer.observe(this.frame);
    this.endTheme = onTheme(() => this.retint());
    this.recolour();
  }

  build(root) {
    const id = newId("map-words");
    this.canvas = h("canvas", {class: "map-canvas", "aria-hidden": "true"});
    this.glow = h("canvas", {class: "map-glow", "aria-hidden": "true"});
    this.lines = h("div", {class: "map-lines"});
    this.board =
      h("div", {
        class: "map-board",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "map of nodes",
        "aria-label": "Nodes; use the arrow keys to move between nodes",
        "aria-describedby": id,
        "data-testid": "map"
      },
        this.canvas, this.glow, this.lines);
    this.frame = h("div", {class: "map-frame"}, this.board);
    this.values = h("div", {class: "map-values", "data-testid": "map-values"});
    this.legend = h("div", {class: "map-legend"});
    this.words = h("p", {class: "map-words", id});
    this.note = h("p", {class: "map-note", hidden: true});
    this.element =
      h("div", {class: "map"}, this.choice(), this.frame,
        h("div", {class: "map-side"}, this.values, this.legend, this.words, this.note));
    root.append(this.element);
  }

  choice() {
    const name = newId("map-by");
    const option = (by, text) =>
      h("label", {}, h("input", {
          type: "radio",
          name,
          value: by,
          checked: by === this.by,
          "data-testid": `map-by-${by}`,
          onchange: () => this.colourBy(by)
        }),
        h("span", {}, text));
    return h(
      "fieldset", {class: "map-choice"}, h("legend", {}, "Colour by"),
      option("point", "Lattice point"), option("potential", "Potential"));
  }

  show(engine) {
    this.clear();
    this.engine = engine;
    this.ranks = rankTable(engine.lattice);
    this.counts = new Uint32Array(engine.lattice.length);
    this.pointLegend = new PointLegend(engine.lattice);
    this.recolour();
    this.shape(engine.nodes);
    this.legends();
    this.puller.follow(engine.name, engine.nodes);
  }

  update(version) {
    if (this.engine) this.puller.tell(version);
  }

  clear() {
    this.puller.stop();
    Object.assign(this, {engine: null, nodes: null, range: 1, flashed: 0});
    this.cursor.clear();
    this.tell(null);
    fill(this.legend);
    setText(this.words, "");
    this.shape(1);
  }

  destroy() {
    this.puller.destroy();
    this.sizer.disconnect();
    this.endTheme();
    this.element.remove();
  }

  // Blank pixels for that many nodes.
  shape(count) {
    this.side = sideOf(count);
    for (const canvas of [this.canvas, this.glow]) canvas.width = canvas.height = this.side;
    this.pen = this.canvas.getContext("2d");
    this.image = this.pen.createImageData(this.side, this.side);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.glowImage = null;
    this.fit();
  }

  // If possible, a cell is a whole number of screen pixels wide, so that all have the same width.
  fit() {
    const ratio = devicePixelRatio || 1, room = Math.min(this.frame.clientWidth, SIDE_MAX) - 2;
    const cell = Math.floor(room * ratio / this.side);
    const size = Math.max(1, cell >= 1 ? cell * this.side / ratio : room);
    Object.assign(this.board.style, {width: `${size + 2}px`, height: `${size + 2}px`});
    this.canvas.style.imageRendering = cell >= 1 ? "" : "auto";
    this.lines.hidden = cell / ratio < LINES_FROM;
    this.lines.style.backgroundSize = `${size / this.side}px ${size / this.side}px`;
    if (this.nodes) this.cursor.draw();
  }

  take(buffer) {
    const nodes = readNodes(buffer);
    if (nodes.count !== this.engine.nodes) this.shape(nodes.count);
    this.isFirst = this.nodes === null;
    this.nodes = nodes;
    this.draw();
  }

  tell(problem) {
    setHidden(this.note, problem === null);
    if (problem)
      setText(this.note, `The nodes could not be fetched. ${problem.sentence || ""}`.trim());
  }

  colourBy(by) {
    this.by = by;
    this.legends();
    this.repaint();
  }

  // A new theme changes the colours but not the data, so nothing flashes.
  retint() {
    this.recolour();
    this.repaint();
  }

  recolour() {
    this.potentialLegend ??= new PotentialLegend();
    this.potentialColours = potentialPixels(themeNow());
    this.potentialLegend.paint(this.potentialColours);
    if (!this.engine) return;
    this.pointColours = pointPixels(this.engine.lattice.length, themeNow());
    this.pointLegend.paint(this.pointColours);
  }

  legends() {
    if (!this.engine) return;
    const isPoint = this.by === "point";
    fill(this.legend, isPoint ? this.pointLegend.element : this.potentialLegend.element);
    setText(this.words, isPoint ? pointSentence(this.engine.lattice) : potentialSentence());
  }

  repaint() {
    this.isFirst = true;
    if (this.nodes) this.paint();
  }

  paint() {
    if (!this.nodes) return;
    const marks = this.marks();
    if (this.by === "point")
      this.paintPoints(marks);
    else
      this.paintPotentials(marks);
    this.pen.putImageData(this.image, 0, 0);
    this.cursor.show(this.nodes, this.side);
    if (marks) this.flash(marks);
    this.isFirst = false;
  }

  paintPoints(marks) {
    paintPoints(this.nodes, this.ranks, this.pointColours, this.pixels, this.counts, marks);
    this.pointLegend.show(this.counts, this.nodes.count);
  }

  paintPotentials(marks) {
    const span = potentialSpan(this.nodes);
    this.range = nextRange(this.range, Math.max(Math.abs(span.lowest), Math.abs(span.highest)));
    paintPotentials(this.nodes, this.range, this.potentialColours, this.pixels, marks);
    this.potentialLegend.show(this.range, span);
  }

  // The buffer in which changed nodes are marked, or null for no flash.
  marks() {
    const isCalm = performance.now() - this.flashed < FLASH_PAUSE_MS ||
      matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.isFirst || isCalm || this.nodes.count > FLASH_NODES_MAX) return null;
    this.glowImage ??= this.pen.createImageData(this.side, this.side);
    return new Uint32Array(this.glowImage.data.buffer);
  }

  flash(marks) {
    if (!marks.some(mark => mark !== 0)) return;
    this.flashed = performance.now();
    this.glow.getContext("2d").putImageData(this.glowImage, 0, 0);
    this.glow.animate(
      [{opacity: 0.45}, {opacity: 0}], {duration: FLASH_MS, easing: "cubic-bezier(.2, .6, .3, 1)"});
  }
}

// Creates a map in `root`; fetchNodes(name, signal) resolves to the bytes of the state as NumPy.
// show(engine) takes {name, nodes, lattice}; update(version) announces a possibly newer state.
export function createMap(root, options) {
  const map = new NodeMap(root, options);
  return {
    show: engine => map.show(engine),
    update: version => map.update(version),
    clear: () => map.clear(),
    destroy: () => map.destroy()
  };
}
