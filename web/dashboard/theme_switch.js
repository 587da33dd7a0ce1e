// SPDX-License-Identifier: MIT
//
// theme_switch.js: the switch between light and dark. The system's setting applies until it is
// used; the choice is then stored as data-theme on <html> and in localStorage. It is applied while
// the page loads, before anything is drawn.
import {onTheme, themeNow} from "./theme.js";

const KEY = "iron.theme";

function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch (error) {
    return null;  // storage is disabled
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch (error) {
    // then the choice lasts until the page is left
  }
}

export function applyTheme() {
  const theme = kept();
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

export function setUpTheme(button) {
  const draw = () => button.setAttribute("aria-pressed", String(themeNow() === "dark"));
  button.addEventListener("click", () => {
    const theme = themeNow() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    keep(theme);
  });
  onTheme(draw);
  draw();
}
