// The list of decisions, newest first: why, why not, what was expected, and what came of it. What was done by hand stands among them.

import { h, say } from "./dom.js";
import { clock, count, duration, number, rate } from "./format.js";

const PAGE = 50;
const AGAIN_MS = 2500;

export class Decisions {
  #all = [];
  #more = false;
  #top = true; // the list begins with the newest
  #changesOnly = true;
  #list = 0; // which one this is: another filter, or another place in the run, make another
  #turn = Promise.resolve();
  #waiting = new Set();
  #again = 0;
  #seeking = 0;

  constructor(run, timeline) {
    Object.assign(this, { run, timeline });
    const only = h("input", { type: "checkbox", checked: true });
    only.addEventListener("change", () => {
      this.#changesOnly = only.checked;
      this.load();
    });
    this.items = h("ol", { class: "decisions", tabindex: 0, "aria-label": "Decisions, newest first" });
    this.newest = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.load() }, "Back to the newest");
    this.older = h("button", { type: "button", class: "quiet older", hidden: true, onclick: () => this.#loadOlder() }, "Older decisions");
    this.none = h("p", { class: "none" });
    this.items.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.items;
      if (scrollTop > 0 && scrollTop + clientHeight > scrollHeight - 80) this.#loadOlder();
    });
    this.element = h(
      "section",
      { class: "panel decided" },
      h("header", {}, h("h3", {}, "Decisions"), h("label", { class: "check" }, only, "changes only")),
      this.newest,
      this.none,
      this.items,
      this.older,
    );
    run.addEventListener("newest", () => this.#refresh());
    timeline.addEventListener("select", () => this.mark(true));
  }

  #fetch(before) {
    return this.run.decisions({ before, limit: PAGE, changes: this.#changesOnly ? 1 : 0 });
  }

  /** The list anew, from the newest on or from those before an interval. */
  async load(before) {
    this.#list += 1;
    const list = this.#list;
    const found = await this.#fetch(before);
    if (found === null || list !== this.#list) return;
    this.#all = found;
    this.#more = found.length >= PAGE;
    this.#top = before === undefined;
    this.items.scrollTop = 0;
    this.#draw();
  }

  /** What adds to the list is done one after the other, and once for all that ask while it waits; not if the list is another by then. */
  #inTurn(name, work) {
    if (this.#waiting.has(name)) return;
    this.#waiting.add(name);
    this.#turn = this.#turn.then(async () => {
      this.#waiting.delete(name);
      const list = this.#list;
      await work(() => list === this.#list);
    }).catch(reportError);
  }

  /** New ones on top, and what came of the one before. */
  #refresh(again = true) {
    this.#inTurn("refresh", async (same) => {
      if (!this.#top || !this.run.begun) return;
      const found = await this.#fetch();
      if (found === null || !same() || !this.#top) return;
      const oldest = found.at(-1)?.interval ?? Infinity;
      if (this.#all.length === 0) this.#more = found.length >= PAGE;
      this.#all = [...found, ...this.#all.filter((one) => one.interval < oldest)];
      this.#draw();
      clearTimeout(this.#again);
      // A policy may think for a while: look once more.
      if (again && this.run.meta?.status === "running") this.#again = setTimeout(() => this.#refresh(false), AGAIN_MS);
    });
  }

  #loadOlder() {
    this.#inTurn("older", async (same) => {
      if (!this.#more || !this.#all.length) return;
      const found = await this.#fetch(this.#all.at(-1).interval);
      if (found === null || !same()) return;
      this.#all.push(...found);
      this.#more = found.length >= PAGE;
      this.#draw();
    });
  }

  #draw() {
    const focused = document.activeElement?.closest?.(".decision")?.dataset.key;
    const before = new Map([...this.items.children].map((item) => [item.dataset.key, item]));
    const items = this.#all.map((one) => {
      const key = JSON.stringify(one);
      return before.get(key) ?? this.#item(one, key);
    });
    this.items.replaceChildren(...items);
    if (focused) items.find((item) => item.dataset.key === focused)?.querySelector("button")?.focus({ preventScroll: true });
    this.newest.hidden = this.#top;
    this.older.hidden = !this.#more;
    this.none.hidden = this.#all.length > 0;
    say(this.none, this.#changesOnly && this.run.begun ? "Nothing was changed so far. Untick “changes only” to see why not." : "No decision yet.");
    this.mark();
  }

  #item(one, key) {
    const when = h("button", { type: "button", class: "when", title: "Show this interval" }, clock(one.time_s));
    const choose = () => {
      if (!String(getSelection())) this.timeline.selectOf(this.run, one);
    };
    const body = one.control ? byHand(one.control) : decided(one);
    const kind = one.control ? "control" : one.change ? "change" : "same";
    return h("li", { class: `decision ${kind}`, dataset: { key, interval: one.interval }, onclick: choose }, when, h("div", {}, body));
  }

  /** The decision in force at the moment that is shown; if that has just been chosen, the list goes there. */
  mark(chosenNow = false) {
    const time_s = this.timeline.time_s;
    if (time_s === null) return;
    const at = this.#all.findIndex((one) => one.time_s <= time_s + 1e-6);
    const chosen = this.timeline.following || at < 0 ? null : this.items.children[at];
    for (const item of this.items.children) {
      if (item === chosen) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
    }
    if (!chosenNow) return;
    if (chosen) this.#scrollTo(chosen);
    else if (!this.timeline.following && this.#all.length && this.#more) this.#around();
    else if (this.timeline.following && !this.#top) this.load();
  }

  /** What was chosen is older than what is here: begin the list there. */
  #around() {
    clearTimeout(this.#seeking);
    this.#seeking = setTimeout(() => this.load(this.run.intervalAt(this.timeline.time_s) + 1), 150);
  }

  #scrollTo(item) {
    const { scrollTop, clientHeight } = this.items;
    const top = item.offsetTop; // from the list, which is positioned
    if (top < scrollTop) this.items.scrollTop = top;
    else if (top + item.offsetHeight > scrollTop + clientHeight) this.items.scrollTop = top + item.offsetHeight - clientHeight;
  }
}

const line = (word, text, more = {}) => h("p", { class: "line", ...more }, h("span", { class: "word" }, `${word} `), text);

function promised(measures) {
  const said = [];
  if (known(measures?.utilisation)) said.push(`utilisation ${number(measures.utilisation)}`);
  if (known(measures?.processed_rows_per_s)) said.push(rate(measures.processed_rows_per_s));
  if (known(measures?.latency_s)) said.push(`latency ${duration(measures.latency_s)}`);
  return said.join(", ");
}

const known = (value) => value !== null && value !== undefined;

function decided(one) {
  const expected = promised(one.expected);
  const measured = promised(one.measured);
  const verdict = one.verdict ? `${one.verdict}${measured && expected && one.verdict !== "nothing was promised" ? ` (${measured})` : ""}` : "not known yet";
  const look = one.verdict === "as expected" ? "kept" : !one.verdict || one.verdict === "nothing was promised" ? "open" : "missed";
  const refused = (one.why_not ?? []).map(({ who, what, why }) => line("why not", `${what}: ${why} (${who})`));
  return [
    h("p", { class: "what" }, one.change?.replaceAll("->", "→") ?? "no change"),
    line("because", one.reason),
    refused,
    expected && line("expected", expected),
    one.change || expected ? line("came of it", verdict, { class: `line verdict ${look}` }) : null,
  ];
}

function byHand(control) {
  const { do: what, operator, host, replicas, who, note } = control;
  const words = {
    pause: "paused",
    resume: "resumed",
    pin: `pinned ${operator} to ${count(replicas, "replica")}`,
    unpin: `unpinned ${operator}`,
    drain: `began to drain ${host}`,
    undrain: `stopped draining ${host}`,
    reload: "read the configuration again",
    refused: "refused what was asked by hand",
  };
  return [h("p", { class: "what" }, h("span", { class: "hand" }, "by hand"), ` ${words[what] ?? what}`), who && line("who", who), note && line("note", note)];
}
