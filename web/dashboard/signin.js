// SPDX-License-Identifier: MIT
//
// signin.js: asking for the token, when a request was refused without the right one. A token is
// tried before it is believed.
import {clearProblem, showProblem} from "./alerts.js";
import {forgetToken, requestJson, setToken} from "./api.js";

const WRONG = "This is not the server’s token. It is the line in the file that --token-file names.";
const ODD = "A token is made of visible ASCII characters, without blanks.";

export function createSignIn({onSignedIn}) {
  const form = document.getElementById("sign-in-form");
  const field = form.elements.token;
  let isBusy = false;

  // The server's information, if it takes the token.
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
    // Asks; a token that was refused meanwhile is said to be.
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
