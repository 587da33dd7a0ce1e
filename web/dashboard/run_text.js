// SPDX-License-Identifier: MIT
//
// run_text.js: what the page says about training runs.
import {count, counted, grouped, moment} from "./text.js";

const LAGGING_TOLD = 3;

// A run's line in the list.
export function rowText(run) {
  const steps = run.steps === null ? "not checked yet" : counted(run.steps, "step");
  return `${steps}, ${counted(run.ranks, "rank")}`;
}

// The comparison's sentence, in which the server calls the reference A and the run B.
export function comparisonText(run, reference, {sentence}) {
  const named = grouped(sentence).replace(/\b[AB]\b/g, (which) => which === "A" ? reference : run);
  return `${run} compared with ${reference}: ${named}.`;
}

// The findings, those of the highest steps first.
export function newestFirst(findings) {
  return [...findings].sort((a, b) => b.step - a.step || a.rank - b.rank);
}

export function lagText(lagging) {
  const told = lagging.slice(0, LAGGING_TOLD).map(({rank, behind, last_time}) => {
    return `Rank ${count(rank)} is ${counted(behind, "step")} behind; its newest record is from ${
      moment(last_time)}.`;
  });
  const rest = lagging.length - told.length;
  return [
    ...told, ...(rest ? [`${counted(rest, "more rank")} lag${rest === 1 ? "s" : ""}.`] : [])
  ].join(" ");
}
