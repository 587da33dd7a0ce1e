// SPDX-License-Identifier: MIT
//
// colours.js: the colours of the node map. Both scales are made in OKLab, where equal steps look
// equal: one for lattice points, from sand over teal to violet, and one for potentials, from blue
// over the background's grey to orange. The first is ordered by lightness alone, and no easily
// confused hues are paired, so both work with every kind of colour vision. Larger values are
// further from the background: darker in the light theme, lighter in the dark one.
//
// Pixels are words as ImageData holds them on little-endian machines: 0xAABBGGRR.

function linearToByte(c) {
  const s = c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, s)));
}

// OKLab to sRGB bytes; out-of-gamut values are clamped.
export function rgbOfLab([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s
  ].map(linearToByte);
}

function labOf(L, chroma, hue) {
  const turn = hue * Math.PI / 180;
  return [L, chroma * Math.cos(turn), chroma * Math.sin(turn)];
}

// Interpolates at t (0 to 1) along evenly spaced colours.
function along(stations, t) {
  const x = Math.min(1, Math.max(0, t)) * (stations.length - 1);
  const k = Math.min(stations.length - 2, Math.floor(x));
  return stations[k].map((v, i) => v + (x - k) * (stations[k + 1][i] - v));
}

const POINTS = {
  light: [
    labOf(0.945, 0.06, 100), labOf(0.84, 0.1, 140), labOf(0.735, 0.105, 185),
    labOf(0.63, 0.12, 235), labOf(0.525, 0.16, 275), labOf(0.42, 0.16, 320)
  ],
  dark: [
    labOf(0.33, 0.11, 300), labOf(0.45, 0.14, 275), labOf(0.57, 0.125, 245),
    labOf(0.69, 0.105, 200), labOf(0.81, 0.12, 150), labOf(0.93, 0.115, 102)
  ]
};

// Potential 0 has the background's grey, so that only nodes that have moved stand out.
const POTENTIALS = {
  light: [
    labOf(0.36, 0.125, 262), labOf(0.57, 0.115, 252), labOf(0.78, 0.06, 245), labOf(0.955, 0, 0),
    labOf(0.78, 0.09, 65), labOf(0.57, 0.125, 50), labOf(0.36, 0.095, 40)
  ],
  dark: [
    labOf(0.86, 0.075, 232), labOf(0.66, 0.115, 247), labOf(0.45, 0.1, 258), labOf(0.27, 0, 0),
    labOf(0.45, 0.09, 48), labOf(0.66, 0.125, 58), labOf(0.86, 0.09, 75)
  ]
};

export function pixelOf([r, g, b]) {
  return (0xff000000 | b << 16 | g << 8 | r) >>> 0;
}

export function cssOf(pixel) {
  return `rgb(${pixel & 255} ${pixel >>> 8 & 255} ${pixel >>> 16 & 255})`;
}

// One pixel for each of `count` lattice points, in their order: by rank, since their values rise
// by powers of two.
export function pointPixels(count, theme) {
  const path = POINTS[theme] || POINTS.light;
  return Uint32Array.from(
    {length: count}, (_, k) => pixelOf(rgbOfLab(along(path, count > 1 ? k / (count - 1) : 1))));
}

export const POTENTIAL_STEPS = 512;  // on either side of 0

// Entry POTENTIAL_STEPS is 0, the first is -range, the last +range.
export function potentialPixels(theme) {
  const path = POTENTIALS[theme] || POTENTIALS.light;
  return Uint32Array.from(
    {length: 2 * POTENTIAL_STEPS + 1},
    (_, k) => pixelOf(rgbOfLab(along(path, k / (2 * POTENTIAL_STEPS)))));
}

// Relative luminance (WCAG), 0 to 1.
export function luminance(pixel) {
  const [r, g, b] = [pixel & 255, pixel >>> 8 & 255, pixel >>> 16 & 255].map(byte => {
    const s = byte / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

// The smallest round number that is not below `value`, for the end of a scale.
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ROUND.map(f => f * power).find(v => v >= value * (1 - 1e-9)) ?? 10 * power;
}

// The range of the potential scale. It widens at once, because clamped colours would be wrong, and
// narrows only when less than a tenth of it is used, so that colours stay comparable over time.
export function nextRange(range, largest) {
  if (largest > range || largest * 10 < range) return roundUp(largest);
  return range;
}
