// SPDX-License-Identifier: MIT
//
// report.js: the link to the arena's report, if the server has one. A link cannot send a token, so
// if one is needed, a ticket is fetched that opens the report once within a minute.
import {showProblem} from "./alerts.js";
import {hasToken, requestJson} from "./api.js";

async function openWithTicket(event) {
  if (!hasToken()) return;
  event.preventDefault();
  const tab = window.open("", "_blank");  // opened now, while the click still permits it
  try {
    const {ticket} = await requestJson("POST", "/v1/tickets");
    const address = `/report?ticket=${encodeURIComponent(ticket)}`;
    if (!tab) return location.assign(address);
    tab.opener = null;
    tab.location.replace(address);
  } catch (problem) {
    if (tab) tab.close();
    showProblem(problem);
  }
}

export function setUpReport(link) {
  link.addEventListener("click", openWithTicket);
  return {
    offer(info) {
      link.hidden = !info.report;
    }
  };
}
