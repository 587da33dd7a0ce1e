// SPDX-License-Identifier: MIT
//
// api.js: requests to the server. One function sends a request; every failure is thrown as a
// Problem, which has a message for the user. The token, if the server needs one, is kept in
// sessionStorage, so it is deleted with the tab and no other site can read it. A request refused
// with 401 calls the listeners (onUnauthorized), and the page then asks for the token.

const TOKEN_KEY = "iron.token";
const listeners = new Set();

// A failure reported by the server (problem+json) or the network. kind is the last word of the
// problem's type, "unreachable" if there was no answer, "stopped" if the caller aborted.
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

  // What happened and what to do, as a message for the user.
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

// The Problem for an answer's status and text, also for answers of XMLHttpRequest. A 401 calls the
// listeners.
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
    return {status, kind: "internal", detail: `the server answered ${status} without a reason`};
  }
}

// No answer: the server is unreachable, or the connection broke.
export function unreachable() {
  return new Problem({
    kind: "unreachable",
    title: "The server does not answer",
    detail: "the server does not answer",
    help: "Check that iron serve is running. The page retries automatically."
  });
}

function stopped() {
  return new Problem({kind: "stopped", title: "Stopped", detail: "the request was stopped"});
}

// Sends a request; returns an answer with status 2xx or throws a Problem.
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

// The answer's JSON; an answer that is cut off counts as an unreachable server.
export async function requestJson(method, path, options) {
  const answer = await request(method, path, options);
  try {
    return await answer.json();
  } catch (error) {
    throw unreachable();
  }
}

// The path of an engine, or of a resource below it.
export function enginePath(name, below = "") {
  return `/v1/engines/${encodeURIComponent(name)}${below}`;
}

export function runPath(name, below = "") {
  return `/v1/runs/${encodeURIComponent(name)}${below}`;
}

// The Authorization header; empty without a token.
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

// Whether the server requires a token, found out without a refused request. A server that does not
// answer is reported by the next request.
export async function wantsToken() {
  try {
    const answer = await request("GET", "/healthz");
    await answer.text();  // an unread answer would keep its connection open
    return answer.headers.has("WWW-Authenticate");
  } catch (error) {
    return false;
  }
}

// Calls listener(problem) whenever a request is refused because of a missing or wrong token.
export function onUnauthorized(listener) {
  listeners.add(listener);
}
