// SPDX-License-Identifier: MIT
//
// events.js: server-sent events out of the texts in which they arrive, which are cut anywhere. The
// browser's own EventSource cannot send a token, so the page reads the stream itself.

// Gives a function that takes texts; onEvent(name, data) is called for each event that has become
// complete, with data as a text. Comments keep the connection alive and are passed over.
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
