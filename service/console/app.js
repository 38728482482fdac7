/* The console: routes, the state of the connection, and the focus after a change of the view. */

import { access, useKey } from "./access.js";
import { connection } from "./api.js";
import { h, notice, refresh } from "./dom.js";
import { time } from "./format.js";
import { showAlarm } from "./views/alarm.js";
import { showAlarms } from "./views/alarms.js";
import { showCondition } from "./views/condition.js";
import { showConditions } from "./views/conditions.js";
import { showOverview } from "./views/overview.js";
import { showSignIn } from "./views/sign_in.js";
import { showStream } from "./views/stream.js";
import { showStreams } from "./views/streams.js";
import { showValidation } from "./views/validate.js";

/* Views by the parts of their address; a name in braces is given to the view. */
const ROUTES = [
  ["", "Overview", showOverview],
  ["streams", "Streams", showStreams],
  ["streams/{name}", "Stream", showStream],
  ["conditions", "Conditions", showConditions],
  ["conditions/{name}", "Condition", showCondition],
  ["alarms", "Alarms", showAlarms],
  ["alarms/{topic}/{partition}/{offset}", "Alarm", showAlarm],
  ["validate", "Validate a condition", showValidation],
];

const main = document.getElementById("main");
let leaving = new AbortController();

function show(isFirst) {
  leaving.abort();
  leaving = new AbortController();
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parameters = new URLSearchParams(query);
  const [title, view, names] = access.isRefused ? ["Sign in", showSignIn, {}] : find(path);
  const shown = names.name ? `${title} ${names.name}` : title;
  document.title = `${shown} | Coincide`;
  const heading = h(
    "h1",
    { tabindex: "-1" },
    title,
    names.name ? [" ", h("bdi", {}, names.name)] : null,
  );
  const body = h("div", { class: "view" });
  main.replaceChildren(heading, body);
  mark(path.split("/")[0]);
  view({ body, names, parameters, signal: leaving.signal });
  // Readers of the screen hear the new title; the first view keeps the browser's own focus.
  if (!isFirst) {
    scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }
}

function find(path) {
  const parts = path === "" ? [""] : path.split("/");
  for (const [pattern, title, view] of ROUTES) {
    const names = match(pattern.split("/"), parts);
    if (names) return [title, view, names];
  }
  return ["Page not found", showMissing, {}];
}

function match(pattern, parts) {
  if (pattern.length !== parts.length) return null;
  const names = {};
  for (const [place, part] of pattern.entries()) {
    const name = /^\{(.+)\}$/.exec(part)?.[1];
    if (name === undefined ? part !== parts[place] : parts[place] === "") return null;
    try {
      if (name !== undefined) names[name] = decodeURIComponent(parts[place]);
    } catch {
      // A percent sign without a number: the address was written by hand.
      return null;
    }
  }
  return names;
}

function mark(section) {
  for (const item of document.querySelectorAll("nav a")) {
    const isCurrent = item.getAttribute("href") === `#/${section}`;
    if (isCurrent) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
}

function showMissing({ body }) {
  body.append(notice("warn", "The console has no page with this address. Choose a view above."));
}

function showConnection() {
  const place = document.getElementById("connection");
  const { problem, since } = connection;
  const at = time(Math.floor(since / 1000) * 1_000_000);
  refresh(place, problem === null ? null : `${problem} since ${at}. The console keeps trying.`);
}

const signOut = document.getElementById("sign-out");
signOut.addEventListener("click", () => useKey(null));
function showAccess() {
  signOut.hidden = access.key === null || access.isRefused;
}

document.querySelector(".skip").addEventListener("click", (event) => {
  // The address of the view must stay.
  event.preventDefault();
  main.focus();
});
connection.addEventListener("change", showConnection);
access.addEventListener("change", () => {
  showAccess();
  show(false);
});
addEventListener("hashchange", () => show(false));
showAccess();
show(true);
