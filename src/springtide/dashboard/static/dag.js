// The application as a graph: sources left, what they feed to the right of them, a line as thick as what flows along it.
//
// Where the layers do not fit side by side (a phone) the graph runs from top to bottom.

import { Costs } from "./costs.js";
import { h, icon, s, say } from "./dom.js";
import { amount, count, describeUse, number, rate, UNKNOWN } from "./format.js";

const NODE = { width: 152, narrow: 132, height: 84, source: 46 };
const MOST_DOWN = 5;
const PANEL = 28;
const GAP = { along: 24, across: 14, down: 30 };

/** Layer of each node: one more than the furthest of those that feed it. */
export function layers(application) {
  const depth = new Map(application.sources.map((name) => [name, 0]));
  const operators = application.operators.map((operator) => operator.name);
  // As often as there are operators: enough for any graph without a cycle, and an end for one with.
  for (let round = 0; round < operators.length; round += 1) {
    for (const name of operators) {
      const feeding = application.edges.filter((edge) => edge.downstream === name).map((edge) => depth.get(edge.upstream) ?? 0);
      depth.set(name, 1 + Math.max(0, ...feeding));
    }
  }
  const found = [];
  for (const [name, layer] of depth) (found[layer] ??= []).push(name);
  return found.filter(Boolean);
}

/** A layer of many is broken into several columns or rows. */
const chunks = (names, size) => Array.from({ length: Math.ceil(names.length / size) }, (_, at) => names.slice(at * size, (at + 1) * size));

/** What the graph takes at least from left to right, with its panel around it. */
function naturalWidth(found) {
  const columns = found.flatMap((layer) => chunks(layer, MOST_DOWN)).length;
  return columns * NODE.narrow + (columns - 1) * GAP.along + PANEL;
}

function placed(found, width, sources) {
  const tall = (name) => (sources.has(name) ? NODE.source : NODE.height);
  const columns = found.flatMap((layer) => chunks(layer, MOST_DOWN));
  const fits = (node) => columns.length * node + (columns.length - 1) * GAP.along <= width;
  if (fits(NODE.width)) return leftToRight(columns, width, { node: NODE.width, tall });
  if (fits(NODE.narrow)) return leftToRight(columns, width, { node: NODE.narrow, tall });
  return topToBottom(found, width, tall);
}

function leftToRight(columns, width, { node, tall }) {
  const places = new Map();
  const heights = columns.map((column) => column.reduce((sum, name) => sum + tall(name) + GAP.across, -GAP.across));
  const height = Math.max(...heights);
  const step = columns.length > 1 ? Math.min((width - node) / (columns.length - 1), node + 110) : 0;
  columns.forEach((column, at) => {
    let top = (height - heights[at]) / 2;
    for (const name of column) {
      places.set(name, { left: at * step, top, width: node, height: tall(name) });
      top += tall(name) + GAP.across;
    }
  });
  return { places, across: true, width: (columns.length - 1) * step + node, height };
}

function topToBottom(found, width, tall) {
  const places = new Map();
  const inRow = Math.max(1, Math.floor((width + GAP.across) / (NODE.narrow + GAP.across)));
  let top = 0;
  for (const layer of found) {
    const most = Math.min(inRow, layer.length);
    const each = Math.min(200, (width - (most - 1) * GAP.across) / most);
    for (const row of chunks(layer, inRow)) {
      const left = (width - row.length * each - (row.length - 1) * GAP.across) / 2;
      row.forEach((name, at) => places.set(name, { left: left + at * (each + GAP.across), top, width: each, height: tall(name) }));
      top += Math.max(...row.map(tall)) + GAP.across;
    }
    top += GAP.down - GAP.across;
  }
  return { places, across: false, width, height: top - GAP.down };
}

function curve(from, to, across) {
  if (across) {
    const [x1, y1, x2, y2] = [from.left + from.width, from.top + from.height / 2, to.left, to.top + to.height / 2];
    const bend = (x2 - x1) / 2;
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  }
  const [x1, y1, x2, y2] = [from.left + from.width / 2, from.top + from.height, to.left + to.width / 2, to.top];
  const bend = (y2 - y1) / 2;
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

export class Dag {
  #frame = null;

  constructor(run, steer) {
    Object.assign(this, { run, application: run.meta.application });
    this.sources = new Set(this.application.sources);
    this.lines = s("svg", { class: "edges", "aria-hidden": "true" });
    this.nodes = new Map();
    this.list = h("ul", { class: "nodes" });
    for (const name of this.application.sources) this.#source(name);
    for (const operator of this.application.operators) this.#operator(operator, steer);
    this.field = h("div", { class: "graph" }, this.lines, this.list);
    this.costs = new Costs(this.application);
    this.element = h("section", { class: "panel dag" }, h("header", {}, h("h3", {}, "Application")), this.field, this.costs.element);
    this.paths = this.application.edges.map((edge) => {
      const title = s("title");
      const path = s("path", { class: "edge", fill: "none" }, title);
      this.lines.append(path);
      return { edge, path, title };
    });
    this.element.style.flexBasis = `${naturalWidth(layers(this.application))}px`;
    new ResizeObserver(() => this.#layout()).observe(this.element);
  }

  #source(name) {
    const value = h("span", { class: "rate" }, UNKNOWN);
    const node = h("li", { class: "node source", dataset: { source: name } }, h("strong", {}, name), value);
    this.nodes.set(name, { node, rate: value });
    this.list.append(node);
  }

  #operator({ name }, steer) {
    const parts = { rate: h("span", { class: "rate" }, UNKNOWN), backlog: h("span", { class: "backlog" }, UNKNOWN), replicas: h("span", { class: "replicas" }) };
    const bar = h("div", { class: "use" }, h("i", {}));
    const pin = h("button", { type: "button", class: "small", "aria-label": `Pin ${name}`, title: `Pin the replicas of ${name}`, onclick: () => steer.pin(name) }, icon("pin"));
    const node = h(
      "li",
      { class: "node operator", dataset: { operator: name } },
      h("div", { class: "name" }, h("strong", { title: name }, name), pin),
      h("div", { class: "name" }, parts.rate, parts.replicas),
      parts.backlog,
      bar,
    );
    this.nodes.set(name, { node, bar, pin, ...parts });
    this.list.append(node);
  }

  #layout() {
    const style = getComputedStyle(this.field);
    const width = this.field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (width <= 0) return;
    const { places, across, width: full, height } = placed(layers(this.application), width, this.sources);
    this.lines.setAttribute("width", full);
    this.lines.setAttribute("height", height);
    Object.assign(this.list.style, { width: `${full}px`, height: `${height}px` });
    for (const [name, place] of places) {
      const { node } = this.nodes.get(name);
      Object.assign(node.style, { left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px` });
    }
    for (const { edge, path } of this.paths) {
      if (places.has(edge.upstream) && places.has(edge.downstream)) {
        path.setAttribute("d", curve(places.get(edge.upstream), places.get(edge.downstream), across));
      }
    }
  }

  show(frame) {
    this.#frame = frame;
    for (const source of frame?.sources ?? []) say(this.nodes.get(source.name)?.rate ?? h("i"), rate(source.rows_per_s));
    for (const operator of frame?.operators ?? []) this.#showOperator(operator);
    this.costs.show(frame);
    this.#showEdges();
    this.showSteering();
  }

  #showOperator(operator) {
    const parts = this.nodes.get(operator.name);
    if (!parts) return;
    const { utilisation: use, backlog_rows: waiting } = operator;
    say(parts.rate, rate(operator.processed_per_s));
    say(parts.backlog, waiting > 0 ? `${number(Math.round(waiting))} waiting` : "none waiting");
    parts.backlog.classList.toggle("some", waiting > (operator.processed_per_s ?? 0));
    say(parts.replicas, `× ${amount(operator.replicas)}`);
    parts.replicas.title = count(operator.replicas, "replica");
    parts.bar.style.setProperty("--use", Math.min(1, use ?? 0));
    parts.bar.dataset.level = use > 0.9 ? "full" : use > 0.7 ? "high" : "fine";
    parts.bar.title = describeUse(operator);
    parts.bar.setAttribute("role", "img");
    parts.bar.setAttribute("aria-label", `${count(operator.replicas, "replica")}, ${describeUse(operator)}`);
  }

  #showEdges() {
    const rates = new Map((this.#frame?.sources ?? []).map((source) => [source.name, source.rows_per_s]));
    for (const operator of this.#frame?.operators ?? []) rates.set(operator.name, operator.processed_per_s);
    const flows = this.paths.map(({ edge }) => (rates.get(edge.upstream) ?? 0) * edge.selectivity);
    const most = Math.max(1e-9, ...flows);
    this.paths.forEach(({ edge, path, title }, at) => {
      path.setAttribute("stroke-width", (1.5 + 6.5 * Math.sqrt(flows[at] / most) * (flows[at] > 0 ? 1 : 0)).toFixed(2));
      say(title, `${edge.upstream} to ${edge.downstream}: ${rate(flows[at])}`);
    });
  }

  /** Pins are of now, whatever interval is shown. */
  showSteering() {
    const { steering, controls } = this.run.meta;
    for (const operator of this.application.operators) {
      const { node, pin } = this.nodes.get(operator.name);
      const pinned = steering?.pins?.[operator.name];
      node.classList.toggle("pinned", pinned !== undefined);
      const words = pinned === undefined ? `Pin the replicas of ${operator.name}` : `${operator.name} is pinned to ${count(pinned, "replica")}: change or unpin`;
      pin.setAttribute("aria-label", words);
      pin.title = controls.available ? words : controls.why;
      pin.setAttribute("aria-disabled", String(!controls.available));
    }
  }
}
