// SPDX-License-Identifier: MIT
//
// run_steps.js: the newest step of each rank of a run over time. The server gives up to 200 points
// of each rank at first (GET .../progress); later ones are those that the page has seen. Ranks
// record at different times, so for drawing all lines are read off at the same moments.

const POINTS_MAX = 400;  // of a rank; then every other one is dropped
const LAG_MS = 10000, LAG_STEPS = 100;
const FULL = 5, LAGGING_FULL = 3, THIN = 200;  // lines drawn

export class RunSteps {
  constructor() {
    this.ranks = new Map();  // rank -> {times, steps}, times in milliseconds
  }

  // Replaces everything by the server's points.
  load(byRank) {
    this.ranks.clear();
    for (const {rank, points} of byRank)
      for (const [time, step] of points) this.push(rank, time, step);
  }

  // The rows of a run, as of now.
  update(rows) {
    for (const row of rows)
      if (row.last_step !== null) this.push(row.rank, Date.parse(row.last_time), row.last_step);
  }

  // A time that is not after the one before replaces it: a line never goes back in time.
  push(rank, time, step) {
    if (!this.ranks.has(rank)) this.ranks.set(rank, {times: [], steps: []});
    const line = this.ranks.get(rank), last = line.times.length - 1;
    if (last >= 0 && time <= line.times[last]) {
      line.steps[last] = step;
      return;
    }
    line.times.push(time);
    line.steps.push(step);
    if (line.times.length > POINTS_MAX)
      for (const name of ["times", "steps"])
        line[name] = line[name].filter((_, k) => k % 2 === 0 || k > last);
  }

  // [first, last] moment of all; null without points.
  get span() {
    let first = Infinity, last = -Infinity;
    for (const {times} of this.ranks.values()) {
      first = Math.min(first, times[0]);
      last = Math.max(last, times[times.length - 1]);
    }
    return first <= last ? [first, last] : null;
  }

  // A rank's step at each of the moments, which ascend: null before its first point, on a straight
  // line between two points, and constant after the last, so that a rank that stopped stays behind.
  stepsAt(rank, moments) {
    const {times, steps} = this.ranks.get(rank);
    let k = -1;
    return moments.map((moment) => {
      while (k + 1 < times.length && times[k + 1] <= moment) k++;
      if (k < 0) return null;
      if (k + 1 === times.length) return steps[k];
      const part = (moment - times[k]) / (times[k + 1] - times[k]);
      return Math.floor(steps[k] + part * (steps[k + 1] - steps[k]));
    });
  }
}

// The ranks of the newest part of the run that lag, the slowest first, with `behind`, in steps. All
// ranks of a step record it at about the same time, but send at different ones: a rank lags if it
// is many steps behind, or its newest record is much older than the newest of all.
export function laggingRanks(rows) {
  const all = rows.filter((row) => row.last_step !== null)
                .map((row) => ({...row, time: Date.parse(row.last_time)}));
  const newest = all.reduce((best, row) => best && best.time >= row.time ? best : row, null);
  if (!newest) return [];
  const present = all.filter((row) => !newest.world || row.rank < newest.world);
  const step = present.reduce((most, row) => Math.max(most, row.last_step), 0);
  return present.map((row) => ({...row, behind: step - row.last_step}))
    .filter(({behind, time}) => behind >= LAG_STEPS || (behind > 0 && newest.time - time >= LAG_MS))
    .sort((a, b) => b.behind - a.behind || a.rank - b.rank);
}

// Which lines to draw: {lagging, full, thin}, lists of ranks. The rest of many ranks is left out
// evenly.
export function linesOf(ranks, lagging) {
  const slow = lagging.filter((rank) => ranks.includes(rank)).slice(0, LAGGING_FULL);
  const others = ranks.filter((rank) => !slow.includes(rank)).sort((a, b) => a - b);
  const full = others.splice(0, FULL - slow.length);
  const every = Math.max(1, Math.ceil(others.length / THIN));
  return {lagging: slow, full, thin: others.filter((_, k) => k % every === 0)};
}
