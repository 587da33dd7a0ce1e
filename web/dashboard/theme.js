// SPDX-License-Identifier: MIT
//
// theme.js: whether the page is currently light or dark, for canvas drawings, which do not follow
// the style sheet.

export function themeNow() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// Calls listener when it changes; returns a function that removes the listener.
export function onTheme(listener) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
  system.addEventListener("change", listener);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", listener);
  };
}
