// SPDX-License-Identifier: MIT
//
// dom.js: creates elements in one call and writes to them only when something changes. The page
// uses no framework: it has few dynamic parts, and each keeps references to its elements.

// h("button", {class: "quiet", type: "button", onclick: go, hidden: true}, "Go", child, ...)
//   on...      a function: listens to that event
//   true       the attribute alone; false, null and undefined leave it out
// Children are nodes or texts; lists of them are flattened, null, undefined and false left out.
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) setProperty(element, name, value);
  element.append(...kept(children));
  return element;
}

function setProperty(element, name, value) {
  if (typeof value === "function")
    element.addEventListener(name.slice(2), value);
  else if (value === true)
    element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined)
    element.setAttribute(name, value);
}

function kept(children) {
  return children.flat(Infinity).filter(
    (child) => child !== null && child !== undefined && child !== false);
}

// Replaces the children of an element.
export function fill(element, ...children) {
  element.replaceChildren(...kept(children));
  return element;
}

// Sets a text only if it differs, to avoid needless layout.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

// A unique element id, for labels and descriptions.
let lastId = 0;
export function newId(word) {
  lastId += 1;
  return `${word}-${lastId}`;
}

// Returns a function that schedules `draw` for the next frame, once however often it is called.
export function oncePerFrame(draw) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      draw();
    });
  };
}
