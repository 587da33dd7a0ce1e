// SPDX-License-Identifier: MIT
//
// dom.js: elements in one call, and writing to them only when something changes. There is no
// framework: the page has few moving parts, and each keeps the elements that it changes.

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

// Puts new children into an element instead of the old ones.
export function fill(element, ...children) {
  element.replaceChildren(...kept(children));
  return element;
}

// Writes a text if it is another one: the browser need not lay out what did not change.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

// A number that no other element's id has, for labels and descriptions.
let lastId = 0;
export function newId(word) {
  lastId += 1;
  return `${word}-${lastId}`;
}

// A function that has `draw` called once before the next frame, however often it is called itself.
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
