// SPDX-License-Identifier: MIT
//
// upload.js: one POST with a body, by XMLHttpRequest, because fetch does not report how much of a
// body has been sent. Failures are Problems of api.js.

// Resolves to the answer's JSON. onSent(bytes) is called while the body is being sent.
export function post(api, path, {body, headers, signal, onSent}) {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    const stop = () => xhr.abort();
    const fail = problem => {
      signal.removeEventListener("abort", stop);
      reject(problem);
    };
    xhr.open("POST", path);
    const all = {"Content-Type": "application/octet-stream", ...api.authorization(), ...headers};
    for (const [name, value] of Object.entries(all)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = event => onSent(event.loaded);
    xhr.upload.onload = () => onSent(body.size);
    xhr.onerror = () => fail(api.unreachable());
    xhr.onabort = () => fail(new api.Problem({kind: "stopped", title: "Stopped"}));
    xhr.onload = () => {
      const outcome = outcomeOf(api, xhr);
      if (outcome.problem) return fail(outcome.problem);
      signal.removeEventListener("abort", stop);
      resolve(outcome.answer);
    };
    if (signal.aborted) return xhr.onabort();
    signal.addEventListener("abort", stop);
    xhr.send(body);
  });
}

function outcomeOf(api, xhr) {
  if (xhr.status < 200 || xhr.status > 299) {
    const problem = api.problemFrom(xhr.status, xhr.responseText);
    problem.retryAfter = Number(xhr.getResponseHeader("Retry-After")) || 0;
    return {problem};
  }
  try {
    return {answer: JSON.parse(xhr.responseText)};
  } catch {
    return {problem: api.unreachable()};
  }
}
