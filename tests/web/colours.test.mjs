// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import {test} from "node:test";

import {cssOf, luminance, nextRange, pixelOf, pointPixels, POTENTIAL_STEPS, potentialPixels, rgbOfLab, roundUp} from "../../web/dashboard/colours.js";

function isRising(values) {
  return values.every((v, k) => k === 0 || v > values[k - 1]);
}

test("OKLab reference values", () => {
  assert.deepEqual(rgbOfLab([1, 0, 0]), [255, 255, 255]);
  assert.deepEqual(rgbOfLab([0, 0, 0]), [0, 0, 0]);
  assert.deepEqual(rgbOfLab([0.6279553606, 0.2248630684, 0.1258462959]), [255, 0, 0]);
  assert.deepEqual(rgbOfLab([0.4520137184, -0.0324569841, -0.3115281477]), [0, 0, 255]);
});

test("a pixel's bytes are red, green, blue and 255, lowest first", () => {
  assert.equal(pixelOf([1, 2, 3]), 0xff030201);
  assert.equal(cssOf(0xff030201), "rgb(1 2 3)");
  assert.equal(luminance(0xffffffff), 1);
});

test("lattice points are ordered by lightness in both themes", () => {
  for (const count of [2, 3, 12, 64]) {
    assert.ok(isRising([...pointPixels(count, "dark")].map(luminance)), `dark ${count}`);
    assert.ok(
      isRising([...pointPixels(count, "light")].map(luminance).reverse()), `light ${count}`);
  }
});

test("twelve points differ from their neighbours", () => {
  for (const theme of ["light", "dark"]) {
    const grey = [...pointPixels(12, theme)].map(p => Math.cbrt(luminance(p)));
    grey.slice(1).forEach((g, k) => assert.ok(Math.abs(g - grey[k]) > 0.03, `${theme} ${k}`));
  }
});

test("potentials: 0 is grey, and both sides diverge from it gradually", () => {
  for (const [theme, sign] of [["light", -1], ["dark", 1]]) {
    const pixels = [...potentialPixels(theme)], middle = pixels[POTENTIAL_STEPS];
    assert.equal(pixels.length, 2 * POTENTIAL_STEPS + 1);
    assert.equal(middle & 255, middle >>> 8 & 255);
    assert.equal(middle & 255, middle >>> 16 & 255);
    const every16 = pixels.filter((_, k) => k % 16 === 0).map(p => sign * luminance(p));
    const half = every16.length >> 1;
    assert.ok(isRising(every16.slice(half)), `${theme}, above`);
    assert.ok(isRising(every16.slice(0, half + 1).reverse()), `${theme}, below`);
  }
});

test("round numbers", () => {
  for (const [value, round] of [
         [1, 1], [1.01, 1.2], [532, 600], [999, 1000], [1000, 1000], [8.1e9, 1e10], [0, 1], [-3, 1],
         [NaN, 1]])
    assert.equal(roundUp(value), round);
});

test("the range widens at once and narrows late", () => {
  assert.equal(nextRange(1, 532), 600);
  assert.equal(nextRange(600, 601), 800);
  assert.equal(nextRange(600, 61), 600);
  assert.equal(nextRange(600, 59), 60);
  assert.equal(nextRange(1, 0), 1);
});
