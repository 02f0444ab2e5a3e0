// The page: which runs there are, and what they share (the moment shown, the connection, the theme).

import * as api from "./api.js";
import { comparison } from "./compare.js";
import { h, say } from "./dom.js";
import { Run } from "./run.js";
import { scrubBar } from "./scrub.js";
import { Timeline } from "./timeline.js";
import { RunView } from "./view.js";

const AGAIN_MS = 2000;
const SIDE_BY_SIDE = 2;
const CONNECTIONS = { connecting: "connecting", live: "live", reconnecting: "reconnecting …" };

function problem(message) {
  document.getElementById("problems").replaceChildren(...(message ? [h("p", {}, message)] : []));
}

/** Which runs there are; a server that does not answer yet is asked again. */
async function known() {
  for (;;) {
    try {
      const answer = await api.runs();
      problem(null);
      return answer.runs;
    } catch (error) {
      if (!(error instanceof api.Unreachable)) throw error;
      connection("reconnecting");
      problem(`${error.message} Trying again.`);
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  }
}

function connection(state) {
  const place = document.getElementById("connection");
  place.dataset.state = state;
  say(place, CONNECTIONS[state]);
}

function showConnection(runs) {
  const states = runs.map((run) => run.connection);
  const state = ["reconnecting", "connecting", "live"].find((one) => states.includes(one));
  connection(state);
  problem(state === "reconnecting" ? "The dashboard's server does not answer. What you see is the last it said; trying again." : null);
}

/** A page that nobody looks at holds no connection: a browser has few for each server. */
function restWhileHidden(runs) {
  document.addEventListener("visibilitychange", () => {
    for (const run of runs) {
      if (document.hidden) run.close();
      else {
        run.connect();
        run.load();
      }
    }
  });
}

async function start() {
  api.takeToken();
  window.addEventListener("hashchange", api.takeToken);
  const found = (await known()).slice(0, SIDE_BY_SIDE);
  const place = document.getElementById("runs");
  if (found.length === 0) {
    place.replaceChildren(h("p", { class: "loading" }, "No journal was given: start it as springtide dashboard FILE."));
    return;
  }
  const runs = found.map(({ id }) => new Run(id));
  const timeline = new Timeline(runs);
  const views = runs.map((run, at) => new RunView(run, timeline, found[at].file));
  document.body.dataset.runs = runs.length;
  place.replaceChildren(...views.map((view) => view.element));
  for (const run of runs) run.addEventListener("connection", () => showConnection(runs));
  if (runs.length === SIDE_BY_SIDE) comparison(document.getElementById("comparison"), runs);
  scrubBar(document.getElementById("scrub"), timeline);
  await Promise.all(runs.map((run) => run.load()));
  for (const run of runs) run.connect();
  restWhileHidden(runs);
}

start().catch((error) => {
  problem(`The dashboard could not start: ${error.message}`);
  if (!(error instanceof api.Refused)) throw error;
});
