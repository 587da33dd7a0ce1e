// SPDX-License-Identifier: MIT
//
// rate_window.js: the rates of the last two minutes, as they were told. They are told while
// something arrives and not while nothing does, so what lies between two of them has to be known:
// after a 0 nothing came, and the line stays on the ground until the next one; after another rate
// that nobody followed up (the page was hidden, the server away) nothing is known, and the line has
// a gap.

export const WINDOW_SECONDS = 120;
const SILENCE = 5;  // seconds without a word after which a rate other than 0 is not believed
const RISE = 0.5;   // seconds that the line takes from the ground to a first rate

export class RateWindow {
  constructor() {
    this.clear();
  }

  clear() {
    this.times = [];
    this.rates = [];
  }

  push(seconds, rate) {
    const last = this.times[this.times.length - 1];
    if (last !== undefined && seconds <= last) {  // two in one moment: the later one counts
      this.rates[this.rates.length - 1] = rate;
      return;
    }
    this.bridge(seconds);
    this.add(seconds, rate);
    this.forget(seconds - WINDOW_SECONDS);
  }

  add(seconds, rate) {
    this.times.push(seconds);
    this.rates.push(rate);
  }

  // What was between the last rate and the one that comes at `seconds`.
  bridge(seconds) {
    const k = this.times.length - 1, before = seconds - RISE;
    if (k < 0 || before <= this.times[k]) return;
    if (this.rates[k] === 0)
      this.add(before, 0);
    else if (seconds - this.times[k] > SILENCE)
      this.add(this.times[k] + RISE, null);
  }

  // Drops what is older, but for the last one before it, from which the line comes in.
  forget(oldest) {
    let k = 0;
    while (k + 1 < this.times.length && this.times[k + 1] <= oldest) k++;
    this.times.splice(0, k);
    this.rates.splice(0, k);
  }

  // The rate that counts at `now`; 0 when nothing is known.
  at(now) {
    const k = this.times.length - 1;
    if (k < 0 || !this.rates[k] || now - this.times[k] > SILENCE) return 0;
    return this.rates[k];
  }

  // Is there anything but ground to see from `now` on?
  isFlat(now) {
    this.forget(now - WINDOW_SECONDS);
    return this.rates.every(rate => !rate);
  }

  get peak() {
    return this.rates.reduce((most, rate) => Math.max(most, rate || 0), 0);
  }

  // [times, rates] for drawing at `now`: the ground goes on to the right edge.
  points(now) {
    const k = this.times.length - 1;
    if (k < 0) return [[now - WINDOW_SECONDS, now], [0, 0]];
    if (this.rates[k] !== 0 || now <= this.times[k]) return [this.times, this.rates];
    return [[...this.times, now], [...this.rates, 0]];
  }
}
