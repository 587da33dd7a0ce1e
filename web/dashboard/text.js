// SPDX-License-Identifier: MIT
//
// text.js: formats numbers. Always English, with decimal points and commas between thousands,
// because the page's text is English too.
//
//   count(2350000)     "2,350,000"          exactly
//   short(2350000)     "2.35 M"             three digits
//   tokens(2350000)    "2.35 M tokens"
//   rate(2350000)      "2.35 M tokens/s"
//   bytes(2350000)     "2.35 MB"
//   grouped("step 48213 is")                "step 48,213 is"
//   duration(200)      "3 min 20 s"
//   moment("2026-11-15T19:00:00.000Z")      "19:00:00" today, "15 Nov 2026, 19:00" before

const exact = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const STEPS = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function count(n) {
  return exact.format(n);
}

// Three digits, a no-break space and the unit's letter; below a thousand a whole number.
export function short(n) {
  return scaled(n, " ").trim();
}

function scaled(n, gap) {
  const size = Math.abs(n);
  if (size < 999.5) return `${Math.round(n)}${gap}`;
  const [step, letter] = STEPS.find(([least]) => size >= least * 0.9995);
  return `${digits(n / step)}${gap}${letter}`;
}

function digits(x) {
  const size = Math.abs(x);
  return x.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function noun(n) {
  return n === 1 ? "token" : "tokens";
}

export function tokens(n) {
  return `${short(n)} ${noun(n)}`;
}

export function rate(n) {
  return `${short(n)} tokens/s`;
}

export function bytes(n) {
  return `${scaled(n, " ")}B`;
}

export function grouped(sentence) {
  return sentence.replace(/\d{4,}/g, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "unknown";
  if (seconds < 1) return "less than a second";
  const whole = Math.round(seconds);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (h) return m ? `${count(h)} h ${m} min` : `${count(h)} h`;
  if (m) return s ? `${m} min ${s} s` : `${m} min`;
  return `${s} s`;
}

// "1 batch", "2 batches", "1,000 feeds"
export function counted(n, one, many = one + "s") {
  return `${count(n)} ${n === 1 ? one : many}`;
}

const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});
const calendar = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "short"});

export function moment(time) {
  const at = new Date(time);
  const isToday = at.toDateString() === new Date().toDateString();
  return (isToday ? clock : calendar).format(at);
}
