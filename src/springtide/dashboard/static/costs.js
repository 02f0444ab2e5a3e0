// What a batch costs, as far as batches have shown it: a column per operator, a row per cost, each with its standard error.
//
// What the journal does not have is not drawn: no table where rows are processed one by one, no cost per shard without shards.

import { h } from "./dom.js";
import { number, writeEstimate } from "./format.js";

const MILLI = { unit: "ms", size_s: 1e-3 };
const MICRO = { unit: "µs", size_s: 1e-6 };
const RATIO = { unit: "", size_s: 1 };

const ROWS = [
  { key: "driver_s", label: "driver", meaning: "time of a batch in which no task runs: planning, scheduling, committing", chooseScale: () => MILLI },
  { key: "batch_s", label: "per batch", meaning: "slot time of a batch of any size: tasks that read its input and feed the replicas", chooseScale: () => MILLI },
  { key: "task_s", label: "per task", meaning: "slot time of one more task", chooseScale: () => MILLI },
  { key: "shard_s", label: "per shard", meaning: "slot time of one more shard: its state is opened and committed", chooseScale: () => MILLI },
  { key: "row_s", label: "per row", meaning: "slot time of one more row", chooseScale: chooseScaleOfRows },
  { key: "skew", label: "skew", meaning: "time of the busiest slot over that of the mean slot: the batch waits for the busiest", chooseScale: () => RATIO },
];

/** Microseconds where every row takes less than a millisecond. */
function chooseScaleOfRows(estimates) {
  const most_s = Math.max(...estimates.map(({ value, error }) => Math.max(value ?? 0, error ?? 0)));
  return most_s < MILLI.size_s ? MICRO : MILLI;
}

export class Costs {
  constructor(application) {
    this.keyed = new Set(application.operators.filter((operator) => operator.shards > 0).map((operator) => operator.name));
    this.table = h("table");
    this.element = h("div", { class: "costs", hidden: true }, this.table);
  }

  show(frame) {
    const operators = (frame?.operators ?? []).filter((operator) => operator.costs);
    this.element.hidden = operators.length === 0;
    if (operators.length === 0) return;
    const head = h("tr", {}, h("td"), operators.map(({ name }) => h("th", { scope: "col", title: name }, name)));
    const rows = ROWS.map((row) => this.#buildRow(row, operators)).filter(Boolean);
    this.table.replaceChildren(
      h("caption", {}, "What a batch costs, ± standard error"),
      h("thead", {}, head),
      h("tbody", {}, rows, this.#buildCounts(operators), this.#buildTriggers(operators)),
    );
  }

  #buildRow({ key, label, meaning, chooseScale }, operators) {
    const having = operators.filter(({ name }) => key !== "shard_s" || this.keyed.has(name));
    if (having.length === 0) return null;
    const { unit, size_s } = chooseScale(having.map(({ costs }) => costs[key]));
    const cells = operators.map((operator) => {
      const cost = having.includes(operator) ? operator.costs[key] : null;
      return h("td", { dataset: { operator: operator.name } }, cost && writeEstimate(cost, size_s));
    });
    return h("tr", { dataset: { cost: key } }, h("th", { scope: "row", title: meaning }, unit ? `${label}, ${unit}` : label), cells);
  }

  #buildCounts(operators) {
    const meaning = "batches that the costs rest on, the older ones counting less; while it is 0, they are assumptions";
    const cells = operators.map(({ name, costs }) => h("td", { dataset: { operator: name } }, number(costs.batches)));
    return h("tr", { dataset: { cost: "batches" } }, h("th", { scope: "row", title: meaning }, "from batches"), cells);
  }

  #buildTriggers(operators) {
    const having = operators.filter((operator) => (operator.trigger_s ?? null) !== null);
    if (having.length === 0) return null;
    const meaning = "least time from the start of a batch to the start of the next";
    const write = ({ trigger_s: seconds }) => ((seconds ?? null) === null ? "" : seconds > 0 ? seconds.toFixed(2) : "at once");
    const cells = operators.map((operator) => h("td", { dataset: { operator: operator.name } }, write(operator)));
    return h("tr", { dataset: { cost: "trigger" } }, h("th", { scope: "row", title: meaning }, "a batch every, s"), cells);
  }
}
