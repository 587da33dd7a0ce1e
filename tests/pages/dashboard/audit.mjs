// SPDX-License-Identifier: MIT
//
// audit.mjs: checks of the page's current layout. Each returns a list of problems. The functions
// run in the page.

// Elements that are wider than the window or their dialog.
export function overflowing() {
  const wide = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth)
    wide.push(`the page: ${root.scrollWidth} in ${root.clientWidth} pixels`);
  for (const box of document.querySelectorAll("dialog[open], .card, .figures > div"))
    if (box.clientWidth > 0 && box.scrollWidth > box.clientWidth)
      wide.push(`${box.id || box.className}: ${box.scrollWidth} in ${box.clientWidth} pixels`);
  for (const element of document.querySelectorAll("body *")) {
    const {right, width, height} = element.getBoundingClientRect();
    const isClipped = element.closest(".aside, .uplot, .map-board, .skip, thead");
    if (width > 0 && height > 0 && !isClipped && right > root.clientWidth + 0.5)
      wide.push(`${element.tagName} ${element.id || element.className}: ends at ${right}`);
  }
  return wide;
}

// Touch targets that are less than `least` pixels high.
export function lowControls(least) {
  const all = "button, a.button, .engine-list a, input, select, summary";
  const isFree = (element) => !document.querySelector("dialog[open]") || element.closest("dialog");
  return [...document.querySelectorAll(all)]
    .filter((element) => isFree(element) && !element.matches(".aside, [type=file]"))
    .map((element) => element.type === "radio" ? element.closest("label") : element)
    .filter((element) => element.checkVisibility({visibilityProperty: true}))
    .map((element) => ({element, height: element.getBoundingClientRect().height}))
    .filter(({height}) => height < least - 0.01)
    .map(
      ({element, height}) => `${element.tagName} ${element.textContent || element.id}: ${height}`);
}

// Texts with a contrast of less than `least` to 1.
export function faintTexts(least) {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  // The colours painted over each other, blended by the browser, as bytes.
  const mixed = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) {
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (bytes) => {
    const [r, g, b] = bytes.map((byte) => byte / 255)
                        .map((s) => s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const colours = [];
    for (let at = element; at; at = at.parentElement)
      colours.unshift(getComputedStyle(at).backgroundColor);
    return ["white", ...colours];
  };
  const ratio = (element) => {
    const papers = behind(element), [a, b] = [
      luminance(mixed([...papers, getComputedStyle(element).color])), luminance(mixed(papers))
    ];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const ownText = (element) => [...element.childNodes]
                                 .filter((node) => node.nodeType === Node.TEXT_NODE)
                                 .map((node) => node.textContent.trim())
                                 .join("");
  return [...document.querySelectorAll("body *")]
    .filter((element) => ownText(element) && element.checkVisibility({visibilityProperty: true}))
    .filter((element) => !element.closest("script, option, :disabled, noscript, .aside"))
    .map((element) => ({text: ownText(element), ratio: ratio(element)}))
    .filter((one) => !(one.ratio >= least))
    .map((one) => `${one.text}: ${one.ratio.toFixed(2)}`);
}

// The focused element and whether the focus is visible.
export function focused() {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const shown = element.type === "radio" ? element.nextElementSibling : element;
  const {outlineStyle, outlineWidth} = getComputedStyle(shown);
  return {
    id: element.dataset.testid || element.id,
    isVisible: outlineStyle !== "none" && parseFloat(outlineWidth) >= 1,
    what: element.outerHTML.slice(0, 120)
  };
}
