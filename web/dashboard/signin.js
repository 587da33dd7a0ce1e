// SPDX-License-Identifier: MIT
//
// signin.js: asks for the token when a request was refused because of a missing or wrong one. A
// token is tested before it is used.
import {clearProblem, showProblem} from "./alerts.js";
import {forgetToken, requestJson, setToken} from "./api.js";

const WRONG = "Wrong token. Use the line in the file given to --token-file.";
const ODD = "A token consists of visible ASCII characters without spaces.";

export function createSignIn({onSignedIn}) {
  const form = document.getElementById("sign-in-form");
  const field = form.elements.token;
  let isBusy = false;

  // The server's information, if it accepts the token.
  async function tryToken(token) {
    setToken(token);
    try {
      return await requestJson("GET", "/v1/info");
    } catch (problem) {
      forgetToken();
      throw problem;
    }
  }

  async function submit(event) {
    event.preventDefault();
    const token = field.value.trim();
    if (isBusy) return;
    clearProblem();
    if (!/^[\x21-\x7e]+$/.test(token)) return showProblem(ODD, form);
    isBusy = true;
    try {
      const info = await tryToken(token);
      form.reset();
      onSignedIn(info);
    } catch (problem) {
      showProblem(problem.kind === "unauthorized" ? WRONG : problem, form);
      field.select();
    }
    isBusy = false;
  }

  form.addEventListener("submit", submit);
  return {
    // Shows the form, with a message if the current token was refused.
    ask(wasRefused) {
      form.reset();
      if (wasRefused) showProblem(WRONG, form);
      field.focus();
    },
    get isTrying() {
      return isBusy;
    }
  };
}
