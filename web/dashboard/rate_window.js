// SPDX-License-Identifier: MIT
//
// rate_window.js: the reported rates of the last two minutes. Rates are reported only while tokens
// arrive, so the time between two reports has to be interpreted: after a 0 nothing arrived, and the
// line stays at 0 until the next report; after any other rate without a follow-up (the page was
// hidden, or the server unreachable) nothing is known, and the line has a gap.

export const WINDOW_SECONDS = 120;
const SILENCE = 5;  // seconds without a report after which a rate other than 0 is unknown
const RISE = 0.5;   // seconds that the line takes to rise from 0 to a first rate

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
    if (last !== undefined && seconds <= last) {  // two at the same time: the later one counts
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

  // Fills the time between the last rate and the one at `seconds`.
  bridge(seconds) {
    const k = this.times.length - 1, before = seconds - RISE;
    if (k < 0 || before <= this.times[k]) return;
    if (this.rates[k] === 0)
      this.add(before, 0);
    else if (seconds - this.times[k] > SILENCE)
      this.add(this.times[k] + RISE, null);
  }

  // Drops older rates, except the last one, where the line enters the window.
  forget(oldest) {
    let k = 0;
    while (k + 1 < this.times.length && this.times[k + 1] <= oldest) k++;
    this.times.splice(0, k);
    this.rates.splice(0, k);
  }

  // The rate at `now`; 0 if unknown.
  at(now) {
    const k = this.times.length - 1;
    if (k < 0 || !this.rates[k] || now - this.times[k] > SILENCE) return 0;
    return this.rates[k];
  }

  // Whether the window at `now` shows a value other than 0.
  isFlat(now) {
    this.forget(now - WINDOW_SECONDS);
    return this.rates.every(rate => !rate);
  }

  get peak() {
    return this.rates.reduce((most, rate) => Math.max(most, rate || 0), 0);
  }

  // [times, rates] for drawing at `now`: a rate of 0 continues to the right edge.
  points(now) {
    const k = this.times.length - 1;
    if (k < 0) return [[now - WINDOW_SECONDS, now], [0, 0]];
    if (this.rates[k] !== 0 || now <= this.times[k]) return [this.times, this.rates];
    return [[...this.times, now], [...this.rates, 0]];
  }
}
