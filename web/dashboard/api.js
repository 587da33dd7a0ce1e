// SPDX-License-Identifier: MIT
//
// api.js: how the page asks its server. One function sends a request; whatever goes wrong comes
// back as a Problem, which knows the sentence that people get to read. The token, where the server
// wants one, lives in sessionStorage: it ends with the tab, and no other site ever sees it. A
// request that meets 401 tells whoever listens (onUnauthorized), and the page then asks for the
// token.

const TOKEN_KEY = "iron.token";
const listeners = new Set();

// A failure, as the server (problem+json) or the network told it. kind is the last word of the
// problem's type, "unreachable" when no answer came, "stopped" when the caller gave up.
export class Problem extends Error {
  constructor(fields) {
    super(fields.detail || fields.title || "Something failed");
    this.name = "Problem";
    this.status = fields.status || 0;
    this.kind = fields.kind || "internal";
    this.title = fields.title || "";
    this.detail = fields.detail || "";
    this.help = fields.help || "";
    this.position = fields.position;
  }

  // What happened and what to do, for people.
  get sentence() {
    const what = asSentence(this.detail || this.title || "Something failed here");
    return this.help ? `${what} ${asSentence(this.help)}` : what;
  }
}

function asSentence(text) {
  const trimmed = text.trim();
  const begun = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(begun) ? begun : begun + ".";
}

// The Problem that an answer's status and text amount to, also for answers of XMLHttpRequest. 401
// is told to the listeners.
export function problemFrom(status, text) {
  const problem = new Problem(fieldsOf(status, text));
  if (status === 401)
    for (const listener of listeners) listener(problem);
  return problem;
}

function fieldsOf(status, text) {
  try {
    const found = JSON.parse(text);
    const kind = String(found.type || "").split(":").pop() || "internal";
    return {...found, kind, status};
  } catch (error) {
    return {status, kind: "internal", detail: `the server answered ${status} without saying why`};
  }
}

// No answer came: the server is away, or the connection broke.
export function unreachable() {
  return new Problem({
    kind: "unreachable",
    title: "The server does not answer",
    detail: "the server does not answer",
    help: "Is iron serve still running? The page tries again by itself."
  });
}

function stopped() {
  return new Problem({kind: "stopped", title: "Stopped", detail: "the request was stopped"});
}

// Asks; the answer has a status of 2xx, or a Problem is thrown.
//   json     becomes the body, as JSON
//   body     is sent as it is (application/octet-stream unless headers say otherwise)
//   signal   an AbortSignal
export async function request(method, path, {json, body, headers, signal} = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      body: json === undefined ? body : JSON.stringify(json),
      headers: {...typeOf(json, body), ...authorization(), ...headers},
      signal,
      cache: "no-store",
      credentials: "same-origin",
      referrerPolicy: "no-referrer"
    });
  } catch (error) {
    throw signal && signal.aborted ? stopped() : unreachable();
  }
  if (answer.ok) return answer;
  throw problemFrom(answer.status, await answer.text().catch(() => ""));
}

function typeOf(json, body) {
  if (json !== undefined) return {"Content-Type": "application/json"};
  return body === undefined ? {} : {"Content-Type": "application/octet-stream"};
}

// The answer's JSON; an answer that breaks off on its way is a server that is away.
export async function requestJson(method, path, options) {
  const answer = await request(method, path, options);
  try {
    return await answer.json();
  } catch (error) {
    throw unreachable();
  }
}

// The path of an engine, and of what is below it.
export function enginePath(name, below = "") {
  return `/v1/engines/${encodeURIComponent(name)}${below}`;
}

// The header that carries the token; none when there is no token.
export function authorization() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  return token ? {Authorization: `Bearer ${token}`} : {};
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN_KEY) !== null;
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN_KEY);
}

// Will the server want a token? Asked without one, and without being refused. A server that does
// not answer is found out by whoever asks next.
export async function wantsToken() {
  try {
    const answer = await request("GET", "/healthz");
    await answer.text();  // an answer that nobody reads keeps its connection
    return answer.headers.has("WWW-Authenticate");
  } catch (error) {
    return false;
  }
}

// Calls listener(problem) whenever a request was refused for want of the right token.
export function onUnauthorized(listener) {
  listeners.add(listener);
}
