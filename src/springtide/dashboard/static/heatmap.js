// Hosts x shards: a row per host, a column per shard, a shard in the row of the host that has it. One that moves is seen moving.
//
// Every shard is one element for good; a move changes only its row, and the style sheet makes that a journey.

import { h, icon, say } from "./dom.js";
import { count, describeUse, duration, list, number, percent, rate } from "./format.js";

const ROW = 22;
const LABEL = 184;
const BUSY = 70;
const GAP = 20;
const COUNTS = 64;
const DENSE_GAP = 4;
const MOST_NAMED = 6;
const NATURAL_CELL = 12;
const PANEL = 28;
const NARROW = 500;
const natural = new Intl.Collator("en", { numeric: true }).compare;

export class HeatMap {
  #shards = new Map(); // operator -> elements, by shard
  #frame = null;
  #mostRows = 1;
  #withBusy = false;

  constructor(run, steer) {
    Object.assign(this, { run, steer });
    this.keyed = run.meta.application.operators.filter((operator) => operator.shards > 0);
    this.others = run.meta.application.operators.filter((operator) => operator.shards === 0);
    this.scale = h("p", { class: "scale" });
    this.field = h("div", { class: "field" });
    this.table = h("table");
    this.moving = h("p", { class: "words" });
    this.element = h(
      "section",
      { class: "panel heat" },
      h("header", {}, h("h3", {}, "Hosts and shards"), this.scale),
      this.field,
      this.moving,
      h("div", { class: "visually-hidden" }, this.table),
    );
    this.#takeRoom();
    new ResizeObserver(() => this.#layout()).observe(this.field);
  }

  #takeRoom() {
    this.element.style.flexBasis = `${this.#label + this.#width(NATURAL_CELL) + PANEL}px`;
  }

  /** Of the hosts' names, and what is told beside them. */
  get #label() {
    return this.#withBusy ? LABEL + BUSY : LABEL;
  }

  /** Of everything right of the hosts' names, with cells of this width. */
  #width(cell) {
    const all = this.keyed.reduce((sum, operator) => sum + operator.shards, 0);
    return this.others.length * COUNTS + all * cell + this.#gap * this.keyed.length;
  }

  /** Where operators are many there is no room for their names: they are told when pointed at. */
  get #dense() {
    return this.keyed.length > MOST_NAMED;
  }

  get #gap() {
    return this.#dense ? DENSE_GAP : GAP;
  }

  #layout() {
    const width = this.field.clientWidth;
    if (width <= 0 || width === this.width) return;
    this.width = width;
    const shards = this.keyed.reduce((sum, operator) => sum + operator.shards, 0);
    const cell = Math.min(16, Math.floor((width - this.#label - this.#width(0)) / Math.max(1, shards)));
    this.stacked = cell < 7 || (width < NARROW && cell < 16);
    this.field.classList.toggle("dense", this.#dense && !this.stacked);
    this.#build(this.stacked ? (operator) => Math.max(4, Math.min(16, Math.floor((width - (width < NARROW ? 84 : this.#label)) / operator.shards))) : () => cell);
    if (this.#frame) this.show(this.#frame, "still");
  }

  #build(cellOf) {
    this.#shards.clear();
    this.hosts = h("ul", { class: "hosts" });
    this.counts = new Map(this.others.map(({ name }) => [name, h("div", { class: "counts", "aria-hidden": "true" })]));
    const groups = this.keyed.map((operator) => this.#group(operator, cellOf(operator)));
    const numbers = this.others.map(({ name }) => this.#numbers(name));
    this.field.classList.toggle("stacked", this.stacked);
    this.field.replaceChildren(h("div", { class: "group labels" }, h("h4", {}, "hosts"), this.hosts), ...numbers, ...groups);
  }

  #numbers(name) {
    const names = this.stacked ? h("div", { class: "rownames", "aria-hidden": "true" }) : null;
    return h("div", { class: "group" }, h("h4", { title: name }, name), h("div", { class: "gridrow" }, names, this.counts.get(name)));
  }

  #group(operator, cell) {
    const grid = h("div", { class: "grid", "aria-hidden": "true", dataset: { operator: operator.name } });
    grid.style.width = `${cell * operator.shards}px`;
    const shards = Array.from({ length: operator.shards }, (_, shard) => {
      const element = h("i", { class: "shard", dataset: { shard } });
      Object.assign(element.style, { left: `${shard * cell}px`, width: `${cell - (cell > 5 ? 2 : 1)}px` });
      return element;
    });
    grid.append(...shards);
    this.#shards.set(operator.name, { grid, shards, cell });
    const names = this.stacked ? h("div", { class: "rownames", "aria-hidden": "true" }) : null;
    return h("div", { class: "group" }, h("h4", {}, `${operator.name}, ${count(operator.shards, "shard")}`), h("div", { class: "gridrow" }, names, grid));
  }

  /** All hosts that something is on, comes from or goes to. */
  #rows(frame) {
    const names = new Set(frame.hosts.map((host) => host.name));
    for (const move of [...frame.moves, ...frame.pending]) names.add(move.from).add(move.to);
    for (const operator of frame.operators) operator.shard_hosts.forEach((host) => names.add(host));
    names.delete(null);
    names.delete(undefined);
    return [...names].sort(natural);
  }

  /** `how`: "arrive" at another interval, so that what moved in it begins where it was; the "same" again; or "still", without motion. */
  show(frame, how) {
    this.#frame = frame;
    if (!this.hosts || !frame) return;
    if (this.#addBusy(frame)) return;
    const rows = this.#rows(frame);
    // The panel does not shrink with the hosts, or the page would jump while a run is played.
    this.#mostRows = Math.max(this.#mostRows, rows.length);
    this.field.style.setProperty("--rows", this.#mostRows);
    this.field.style.setProperty("--row", `${ROW}px`);
    this.#showHosts(frame, rows);
    const most = Math.max(0, ...frame.operators.flatMap((operator) => operator.shard_rows_per_s ?? []).map((value) => value ?? 0));
    for (const operator of frame.operators) {
      if (operator.shard_hosts.length) this.#showShards(operator, frame, { rows, most, how });
      else this.#showCounts(operator, rows);
    }
    for (const names of this.field.querySelectorAll(".rownames")) names.replaceChildren(...rows.map((name) => h("span", { title: name }, name)));
    this.#showScale(frame, most);
    this.#showTable(frame, rows);
    this.showSteering();
  }

  /** Where rows are processed in batches, the busy share is another figure than utilisation: from then on it has room of its own. */
  #addBusy(frame) {
    const known = frame.hosts.some((host) => (host.busy_share ?? null) !== null);
    if (this.#withBusy || !known || !frame.operators.some((operator) => operator.costs)) return false;
    this.#withBusy = true;
    this.field.classList.add("with-busy");
    this.#takeRoom();
    this.width = 0;
    this.#layout();
    return true;
  }

  #showShards(operator, frame, { rows, most, how }) {
    const known = this.#shards.get(operator.name);
    if (!known) return;
    const moves = new Map(frame.moves.filter((move) => move.operator === operator.name).map((move) => [move.shard, move]));
    const pending = new Map(frame.pending.filter((move) => move.operator === operator.name).map((move) => [move.shard, move]));
    const row = (host) => Math.max(0, rows.indexOf(host));
    const put = (element, host) => element.style.setProperty("--at", row(host));
    if (how === "arrive" && moves.size) {
      // Even if this page did not show the interval before.
      known.grid.classList.add("still");
      for (const [shard, move] of moves) if (known.shards[shard]) put(known.shards[shard], move.from);
      void known.grid.offsetWidth;
    }
    known.grid.classList.toggle("still", how === "still");
    known.shards.forEach((element, shard) => {
      const host = operator.shard_hosts[shard];
      const value = operator.shard_rows_per_s?.[shard];
      put(element, host);
      element.dataset.host = host;
      element.classList.toggle("moved", moves.has(shard));
      element.classList.toggle("pending", pending.has(shard));
      element.classList.toggle("unknown", value === null || value === undefined);
      element.style.setProperty("--heat", most > 0 ? ((value ?? 0) / most).toFixed(3) : 0);
      element.title = describe(operator.name, shard, host, value, moves.get(shard), pending.get(shard));
    });
    this.#showGhosts(known, pending, row);
  }

  /** An empty place where a shard will be. */
  #showGhosts(known, pending, row) {
    known.grid.querySelectorAll(".ghost").forEach((ghost) => ghost.remove());
    for (const [shard, move] of pending) {
      const ghost = h("i", { class: "ghost" });
      Object.assign(ghost.style, { left: `${shard * known.cell}px`, width: `${known.cell - (known.cell > 5 ? 2 : 1)}px` });
      ghost.style.setProperty("--at", row(move.to));
      known.grid.append(ghost);
    }
  }

  #showCounts(operator, rows) {
    const on = (host) => operator.replica_hosts.filter((name) => name === host).length;
    this.counts.get(operator.name)?.replaceChildren(...rows.map((host) => h("span", { class: on(host) ? "" : "zero" }, on(host) ? `× ${on(host)}` : "·")));
  }

  #showHosts(frame, rows) {
    const hosts = new Map(frame.hosts.map((host) => [host.name, host]));
    const before = new Map([...this.hosts.children].map((item) => [item.dataset.host, item]));
    const items = rows.map((name) => before.get(name) ?? this.#host(name));
    if (items.some((item, at) => this.hosts.children[at] !== item) || this.hosts.children.length !== items.length) this.hosts.replaceChildren(...items);
    for (const item of items) {
      const host = hosts.get(item.dataset.host);
      item.dataset.state = host?.state ?? "gone";
      const state = host ? (host.state === "running" ? percent(host.utilisation) : host.state) : "gone";
      say(item.querySelector(".state"), state);
      const busy = host?.state === "running" ? (host.busy_share ?? null) : null;
      say(item.querySelector(".busy"), busy === null ? "" : `${percent(busy)} busy`);
      item.title = host ? `${host.name}: ${host.state}, ${count(host.cores, "core")}, ${count(host.replicas, "replica")}, ${describeUse(host)}` : `${item.dataset.host}: gone`;
      item.querySelector(".use").style.setProperty("--use", Math.min(1, host?.utilisation ?? 0));
    }
  }

  #host(name) {
    const drain = h("button", { type: "button", class: "small", onclick: () => this.steer.drain(name) }, icon("drain"));
    return h("li", { dataset: { host: name } }, h("span", { class: "hostname" }, name), h("span", { class: "use" }, h("i", {})), h("span", { class: "state" }), h("span", { class: "busy" }), drain);
  }

  #showScale(frame, most) {
    const known = frame.operators.some((operator) => operator.shard_rows_per_s);
    const steps = [0, 0.25, 0.5, 0.75, 1].map((heat) => {
      const step = h("i", { class: "step" });
      step.style.setProperty("--heat", heat);
      return step;
    });
    const words = known ? ["0 ", ...steps, ` ${rate(most)} over ${duration(frame.rates_over_s)}`] : [h("i", { class: "step unknown" }), " a shard is here (this journal has no rates per shard)"];
    this.scale.replaceChildren(...(this.keyed.length ? words : ["No operator is keyed: replicas per host."]));
    const said = [];
    if (frame.moves.length) said.push(`${count(frame.moves.length, "shard")} moved: ${moves(frame.moves)}`);
    if (frame.pending.length) said.push(`${count(frame.pending.length, "shard")} to move: ${moves(frame.pending)}`);
    said.push(...(frame.events ?? []));
    say(this.moving, said.length ? `${said.join("; ")}.` : "No shard moved in this interval.");
  }

  #showTable(frame, rows) {
    const operators = frame.operators;
    const head = h("tr", {}, h("th", { scope: "col" }, "Host"), operators.map((operator) => h("th", { scope: "col" }, operator.name)));
    const body = rows.map((host) => {
      const cells = operators.map((operator) => {
        const shards = operator.shard_hosts.filter((name) => name === host).length;
        const replicas = operator.replica_hosts.filter((name) => name === host).length;
        return h("td", {}, `${count(replicas, "replica")}${operator.shard_hosts.length ? `, ${count(shards, "shard")}` : ""}`);
      });
      return h("tr", {}, h("th", { scope: "row" }, host), cells);
    });
    this.table.replaceChildren(h("caption", {}, "Replicas and shards on each host"), h("thead", {}, head), h("tbody", {}, body));
  }

  showSteering() {
    const { steering, controls } = this.run.meta;
    for (const item of this.hosts?.children ?? []) {
      const name = item.dataset.host;
      const draining = steering?.draining?.includes(name) ?? false;
      const button = item.querySelector("button");
      item.classList.toggle("draining", draining);
      const words = draining ? `${name} is being drained: stop` : `Drain ${name}`;
      button.setAttribute("aria-label", words);
      button.title = controls.available ? words : controls.why;
      button.setAttribute("aria-disabled", String(!controls.available));
    }
  }
}

function describe(operator, shard, host, value, move, pending) {
  const said = [`${operator}, shard ${shard}, on ${host}`];
  if (value !== null && value !== undefined) said.push(rate(value));
  if (move) said.push(`moved here from ${move.from}`);
  if (pending) said.push(`to move to ${pending.to}`);
  return said.join("; ");
}

/** "12 of enrich and 3 of count". */
function moves(all) {
  const sums = new Map();
  for (const { operator } of all) sums.set(operator, (sums.get(operator) ?? 0) + 1);
  return list([...sums].map(([operator, sum]) => `${number(sum)} of ${operator}`));
}
