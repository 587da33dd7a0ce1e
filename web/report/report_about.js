// SPDX-License-Identifier: MIT
//
// report_about.js: explains the ops that were raced, with the text of `iron arena --explain`, in
// one collapsible section per op.
"use strict";

// Paragraphs are separated by an empty line; single line breaks are only there for terminals.
function paragraphs(title, text) {
  return text.split(/\n{2,}/).map(
    (part, k) => html("p", {}, k === 0 && title ? html("b", {}, title + ": ") : "", part));
}

function aboutOp(op) {
  const [contract, ...notes] = op.notes;
  return html(
    "details", {class: "group about", "data-op": op.op},
    html("summary", {}, html("b", {}, op.op), html("small", {}, contract ? contract.text : "")),
    html(
      "div", {}, html("div", {class: "words"}, ...notes.flatMap(n => paragraphs(n.title, n.text))),
      op.axes.length ? html("h3", {}, "Parameters") : null,
      op.axes.length ? facts(op.axes.map(a => [a.name, `${a.about}: ${a.values}`])) : null,
      html("h3", {}, "Contenders"),
      facts(op.contenders.map(
        c =>
          [`${c.name} (${c.backends})`, c.idea + (c.beats ? ` (improves on ${c.beats})` : "")]))));
}

function aboutSection(model) {
  if (!model.ops.length) return null;
  return section(
    "about", "About the ops",
    "What each computes, what its race shows, and when the technique does not pay.",
    ...model.ops.map(aboutOp));
}
