// One run on the page: its header, its state in words, its figures, and the panels below them.

import { charts, saving } from "./charts.js";
import { Steer } from "./controls.js";
import { Dag } from "./dag.js";
import { Decisions } from "./decisions.js";
import { h, say } from "./dom.js";
import { amount, clock, coreHours, duration, number, percent, rate } from "./format.js";
import { HeatMap } from "./heatmap.js";

const FIGURES = [
  ["load", "Load", (row) => [rate(row.offered_per_s), row.capacity_per_s > 0 ? `${percent(row.offered_per_s / row.capacity_per_s)} of capacity` : ""]],
  ["latency", "Latency", latencyWords],
  ["backlog", "Backlog", (row) => [`${number(Math.round(row.backlog_rows ?? 0))} rows`, row.offered_per_s > 0 ? `${duration(row.backlog_rows / row.offered_per_s)} of load` : ""]],
  ["hosts", "Hosts", (row, { pool }) => [amount(row.hosts), pool ? `of ${number(pool.min_hosts)} to ${number(pool.max_hosts)}` : `utilisation ${percent(row.utilisation)}`]],
  ["replicas", "Replicas", (row) => [amount(row.replicas), row.utilisation === null ? "" : `utilisation ${percent(row.utilisation)}`]],
  ["cost", "Cost", (row) => [coreHours(row.core_h), row.static_core_h > 0 ? `${percent(Math.round((1 - row.core_h / row.static_core_h) * 100) / 100)} below static peak` : ""]],
];

/** Of the rows that left last: in an interval that is shorter than a batch there may be none. */
function latencyWords(row, { application: { slo } }, run) {
  const last = run.lastKnown("latency_slo_s", row.time_s);
  const ago_s = last ? row.time_s - last.time_s : 0;
  const when = row.latency_slo_s === null && ago_s > 0 ? `, ${duration(ago_s)} ago` : "";
  return [duration(row.latency_slo_s ?? last?.value), `p${number(slo.percentile * 100)}${when}; SLO ${duration(slo.latency_s)}`];
}

// What is not as usual is said at length, after the server's own sentence.
const NOTICES = {
  empty: ["Nothing in this journal yet", "This page goes on by itself as soon as it does."],
  starting: ["No numbers yet", "They come by themselves when it is."],
  stale: ["Nothing new for a while", "What you see is the last that was written."],
  failed: ["This journal cannot be read further", "What you see is what could be read before."],
};

export class RunView {
  #drawing = null;
  #wanted = null;
  #built = "";

  constructor(run, timeline, file) {
    Object.assign(this, { run, timeline, file });
    this.title = h("h2", { id: `run-${run.id}` }, file);
    this.badge = h("span", { class: "badge", dataset: { status: "connecting" } }, "reading");
    this.status = h("p", { class: "status" }, h("span", { role: "status" }, this.badge), h("span", { class: "status-text" }));
    this.policy = h("details", { class: "policy", hidden: true });
    this.time = h("p", { class: "clock" });
    this.pause = h("button", { type: "button", class: "pause", hidden: true, onclick: () => this.steer.pauseOrResume() }, "Pause");
    this.notice = h("div", { class: "notice", hidden: true });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.why = h("p", { class: "why-off", hidden: true });
    this.header = h("header", { class: "run-header" }, h("div", { class: "titles" }, this.title, this.policy), this.status, this.why, this.time, this.pause);
    this.body = h("div", { class: "run-body", hidden: true });
    this.element = h("article", { class: "run", "aria-labelledby": this.title.id, dataset: { run: run.id } }, this.header, this.problem, this.notice, this.body);
    this.steer = new Steer(run);
    this.problems = new Map();
    run.addEventListener("meta", () => this.#showMeta());
    run.addEventListener("problem", ({ detail }) => this.#showProblem(detail));
    timeline.addEventListener("select", () => this.showMoment());
  }

  #showMeta() {
    const { meta } = this.run;
    this.badge.dataset.status = meta.status;
    say(this.badge, meta.status);
    say(this.status.lastChild, meta.status_text ?? "");
    this.#showNotice(meta);
    if (!meta.application) return;
    this.#build(meta);
    this.pause.hidden = false;
    const paused = meta.steering?.paused ?? false;
    say(this.pause, paused ? "Resume" : "Pause");
    this.pause.title = meta.controls.available ? "" : meta.controls.why;
    this.pause.setAttribute("aria-disabled", String(!meta.controls.available));
    this.element.classList.toggle("paused", paused);
    this.why.hidden = meta.controls.available && !paused;
    say(this.why, paused ? "Paused by hand: nothing is changed." : `Controls are off: ${meta.controls.why}`);
    this.dag.showSteering();
    this.heat.showSteering();
  }

  #showNotice(meta) {
    const [title, more] = NOTICES[meta.status] ?? [];
    this.notice.hidden = title === undefined;
    this.notice.dataset.status = meta.status;
    this.status.lastChild.hidden = !this.notice.hidden;
    if (title) this.notice.replaceChildren(h("strong", {}, title), h("p", {}, [meta.status_text, more].filter(Boolean).join(" ")));
  }

  #showProblem({ what, message }) {
    if (message === null) this.problems.delete(what);
    else this.problems.set(what, message);
    this.problem.hidden = this.problems.size === 0;
    const again = h("button", { type: "button", class: "quiet", onclick: () => this.run.load() }, "Try again");
    const said = [...this.problems].map(([part, why]) => `Could not read ${part}: ${why}`).join(" ");
    if (this.problems.size) this.problem.replaceChildren(`${said} `, again);
  }

  /** The panels, once it is known what ran. */
  #build(meta) {
    const identity = JSON.stringify([meta.application, meta.policy, meta.created_at]);
    if (identity === this.#built) return;
    // Another run in the same file: the page begins anew with it.
    if (this.#built) location.reload();
    this.#built = identity;
    say(this.title, meta.application.name);
    document.title = `${meta.application.name}, Springtide`;
    this.#showPolicy(meta);
    this.dag = new Dag(this.run, this.steer);
    this.heat = new HeatMap(this.run, this.steer);
    this.decisions = new Decisions(this.run, this.timeline);
    this.charts = charts(this.run, this.timeline);
    this.figures = h("dl", { class: "figures" }, FIGURES.map(([key, title]) => h("div", { dataset: { figure: key } }, h("dt", {}, title), h("dd", {}, "–"), h("dd", { class: "more" }))));
    const every = duration(meta.interval_s);
    const waiting = h("p", { class: "loading" }, `Charts, hosts and decisions begin with the first interval, which takes ${every}.`);
    this.plots = h("div", { class: "charts" }, this.charts.map((chart) => chart.element));
    this.pictures = h("div", { class: "pictures" }, this.dag.element, this.heat.element);
    this.body.replaceChildren(this.figures, this.pictures, waiting, this.plots, this.decisions.element);
    this.body.hidden = false;
    this.waiting = waiting;
    this.#showPanels(this.run.begun);
    this.decisions.load();
  }

  /** Before the first interval there is nothing to draw but the graph. */
  #showPanels(on) {
    this.waiting.hidden = on;
    for (const panel of [this.figures, this.heat.element, this.plots, this.decisions.element]) panel.hidden = !on;
  }

  #showPolicy({ policy, file, interval_s, created_at, pool }) {
    const facts = [
      ...policy.parameters.map(({ name, value }) => [name, typeof value === "number" ? number(value) : String(value)]),
      ["decides every", duration(interval_s)],
      ["hosts", pool ? `${number(pool.min_hosts)} to ${number(pool.max_hosts)}, ${number(pool.cores)} cores each` : "not in the journal"],
      ["journal", file],
      ["begun", created_at ? new Date(created_at).toLocaleString() : "unknown"],
    ];
    const open = this.policy.open;
    this.policy.replaceChildren(
      h("summary", {}, "under ", h("b", {}, policy.name)),
      h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    );
    this.policy.open = open;
    this.policy.hidden = false;
  }

  /** One picture at a time: while one is fetched only the newest wish is remembered. */
  async showMoment() {
    if (!this.run.begun || !this.dag) return;
    this.#wanted = this.timeline.intervalOf(this.run);
    if (this.#drawing) return;
    while (this.#wanted !== null) {
      const wanted = this.#wanted;
      this.#wanted = null;
      this.#drawing = this.run.frame(wanted);
      const frame = await this.#drawing;
      if (frame) this.#showFrame(frame);
    }
    this.#drawing = null;
  }

  #showFrame(frame) {
    const changed = frame.interval !== this.shown;
    this.shown = frame.interval;
    this.element.dataset.interval = frame.interval;
    this.steer.replicas = new Map(frame.operators.map((operator) => [operator.name, operator.replicas]));
    if (this.plots.hidden) {
      this.#showPanels(true);
      this.charts.forEach((chart) => chart.draw());
    }
    this.dag.show(frame);
    this.heat.show(frame, changed ? "arrive" : "same");
    say(this.time, clock(frame.time_s));
    const row = this.run.rowAt(frame.time_s);
    if (row) this.#showFigures(row);
    this.charts.forEach((chart) => chart.mark());
  }

  #showFigures(row) {
    for (const [key, , words] of FIGURES) {
      const [value, more] = this.figures.querySelector(`[data-figure="${key}"]`).querySelectorAll("dd");
      const [main, side] = words(row, this.run.meta, this.run);
      say(value, main);
      say(more, side);
    }
    const latency_s = row.latency_slo_s ?? this.run.lastKnown("latency_slo_s", row.time_s)?.value;
    const late = latency_s > this.run.meta.application.slo.latency_s;
    this.figures.querySelector('[data-figure="latency"]').classList.toggle("bad", late);
    this.figures.querySelector('[data-figure="cost"]').title = saving(row, this.run);
  }
}
