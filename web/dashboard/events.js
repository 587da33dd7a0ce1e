// SPDX-License-Identifier: MIT
//
// events.js: parses server-sent events from text chunks, which may be split anywhere. The browser's
// EventSource cannot send a token, so the page reads the stream itself.

// Returns a function that takes text chunks; onEvent(name, data) is called for each complete event,
// with data as text. Comments, which only keep the connection alive, are ignored.
export function eventParser(onEvent) {
  let rest = "", name = "message", data = [];
  const end = () => {
    if (data.length) onEvent(name, data.join("\n"));
    name = "message";
    data = [];
  };
  const take = (line) => {
    if (line === "") return end();
    const colon = line.indexOf(":"), field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  };
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) take(line.endsWith("\r") ? line.slice(0, -1) : line);
  };
}
