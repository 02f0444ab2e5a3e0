// What the charts of a run show.

import { Chart } from "./chart.js";
import { amount, coreHours, count, duration, hours, number, percent, rate, rows, UNKNOWN } from "./format.js";

const short = (value) => (value === null || value === undefined ? UNKNOWN : `${number(value)}/s`);
const missing = (values, length) => values ?? new Array(length).fill(null);
const known = (value) => value !== null && value !== undefined;

/** What was foreseen for each interval, then what is foreseen for those to come. */
function loadData(series) {
  const ahead = series.ahead ?? {};
  const last = series.time_s.at(-1) ?? -Infinity;
  const later = (ahead.time_s ?? []).map((time_s, at) => ({ time_s, at })).filter(({ time_s }) => time_s > last);
  const padded = (values) => [...values, ...later.map(() => null)];
  const joined = (values, key) => [...values, ...later.map(({ at }) => ahead[key][at])];
  return {
    x: joined(series.time_s, "time_s"),
    offered: padded(series.offered_per_s),
    capacity: padded(series.capacity_per_s),
    forecast: joined(series.forecast_per_s, "mean_per_s"),
    low: joined(series.forecast_low_per_s, "low_per_s"),
    high: joined(series.forecast_high_per_s, "high_per_s"),
  };
}

function loadWords(row, run) {
  const said = [`${rate(row.offered_per_s)} offered`];
  if (known(row.capacity_per_s)) {
    const use = row.capacity_per_s > 0 ? row.offered_per_s / row.capacity_per_s : null;
    said.push(`capacity for ${rate(row.capacity_per_s)}${known(use) ? ` (${percent(use)} used)` : ""}`);
  }
  if (known(row.forecast_per_s)) said.push(`${rate(row.forecast_per_s)} had been foreseen`);
  const ahead = run.whole.ahead;
  if (ahead?.mean_per_s?.length && row.time_s >= run.whole.time_s.at(-1)) {
    said.push(`up to ${rate(Math.max(...ahead.high_per_s))} foreseen within ${duration(ahead.time_s.at(-1) - row.time_s)}`);
  }
  return `${said.join("; ")}.`;
}

const load = {
  name: "load",
  title: "Load, forecast and capacity",
  columns: [
    { key: "capacity", label: "capacity", colour: "grey", look: "step", format: rate },
    { key: "high", label: "high", look: "line", quiet: true },
    { key: "low", label: "low", look: "line", quiet: true },
    { key: "forecast", label: "forecast", colour: "amber", look: "dashed", format: rate },
    { key: "offered", label: "offered", colour: "blue", look: "line", format: rate, width: 1.8 },
  ],
  band: ["high", "low"],
  scales: { y: { format: short } },
  data: loadData,
  words: loadWords,
};

const positive = (values) => values.map((value) => (value > 0 ? value : null));
const place = (slo) => `p${number(slo.percentile * 100)}`;

/** Where batches take longer than an interval, rows leave in some intervals only: the lines go on between those. */
function latency(meta) {
  const { slo } = meta.application;
  const inWords = (row, run) => {
    if (!known(row.latency_slo_s)) {
      const last = run.lastKnown("latency_slo_s", row.time_s);
      const before = last ? ` ${place(slo)} was ${duration(last.value)}, ${duration(row.time_s - last.time_s)} before.` : "";
      return `No row left the application in this interval.${before}`;
    }
    const kept = row.latency_slo_s <= slo.latency_s ? "within" : "beyond";
    const late = known(row.late_share) ? `; ${row.late_share === 0 ? "no rows" : `${percent(row.late_share)} of rows`} late` : "";
    return `${place(slo)} ${duration(row.latency_slo_s)}, ${kept} the ${duration(slo.latency_s)} allowed${late}.`;
  };
  const middle = { key: "slo", label: place(slo), colour: "blue", look: "line", format: duration, width: 1.8, spans: true };
  const same99 = place(slo) === "p99";
  return {
    name: "latency",
    title: "Latency against the SLO",
    note: "log scale",
    columns: [
      { key: "p99", label: "p99", colour: "purple", look: "line", format: duration, quiet: same99, width: 1, spans: true },
      { key: "p50", label: "p50", colour: "green", look: "line", format: duration, spans: true },
      middle,
      { key: "allowed", label: "SLO", colour: "red", look: "dashed", format: duration },
    ],
    scales: { y: { format: duration, log: true } },
    data: (series) => ({
      x: series.time_s,
      p50: positive(series.latency_p50_s),
      slo: positive(series.latency_slo_s),
      p99: positive(series.latency_p99_s),
      allowed: series.time_s.map(() => slo.latency_s),
    }),
    words: inWords,
  };
}

/** A tick on the axis wherever a decision changed something. */
function changeTicks(plot, context, series, colour) {
  const ratio = window.devicePixelRatio || 1;
  const { left, top, width, height } = plot.bbox;
  context.fillStyle = colour("red");
  series.time_s.forEach((time_s, at) => {
    if (!series.changed?.[at]) return;
    const x = plot.valToPos(time_s, "x", true);
    if (x < left || x > left + width) return;
    context.beginPath();
    context.moveTo(x, top + height - 6 * ratio);
    context.lineTo(x + 3.5 * ratio, top + height);
    context.lineTo(x - 3.5 * ratio, top + height);
    context.fill();
  });
}

const size = {
  name: "size",
  title: "Hosts and replicas",
  note: "▲ change decided",
  columns: [
    { key: "replicas", label: "replicas", colour: "green", look: "step", scale: "right", format: amount },
    { key: "hosts", label: "hosts", colour: "blue", look: "step", format: amount, width: 2 },
  ],
  scales: { y: { format: number, whole: true }, right: { format: number, whole: true, room: 1.4 } },
  data: (series) => ({ x: series.time_s, hosts: series.hosts, replicas: series.replicas }),
  words: (row) => {
    const use = known(row.utilisation) ? `, utilisation ${percent(row.utilisation)}` : "";
    return `${amount(row.hosts)} ${row.hosts === 1 ? "host" : "hosts"} with ${amount(row.replicas)} replicas${use}.`;
  },
  over: changeTicks,
};

const backlog = {
  name: "backlog",
  title: "Backlog",
  columns: [{ key: "backlog", label: "rows waiting", colour: "purple", look: "area", format: rows }],
  scales: { y: { format: number } },
  data: (series) => ({ x: series.time_s, backlog: series.backlog_rows }),
  words: (row) => (row.backlog_rows > 0 ? `${count(Math.round(row.backlog_rows), "row")} wait to be processed.` : "No row waits."),
};

/** The saving in words: "34 % less than 4 hosts all the time; 1.3 times the oracle". */
export function saving(row, run) {
  if (!known(row?.core_h)) return "Nothing has been paid for yet.";
  const said = [coreHours(row.core_h)];
  if (row.static_core_h > 0) {
    const share = 1 - row.core_h / row.static_core_h;
    const most = count(mostHosts(run), "host");
    const less = share >= 0 ? "less" : "more";
    said.push(Math.abs(share) < 0.005 ? `as much as ${most} all the time` : `${percent(Math.round(Math.abs(share) * 100) / 100)} ${less} than ${most} all the time`);
  }
  if (row.oracle_core_h > 0) {
    const ratio = row.core_h / row.oracle_core_h;
    said.push(`${ratio.toFixed(1)} times the oracle${ratio < 0.95 ? ", which pays to keep up" : ""}`);
  }
  return `${said.join("; ")}.`;
}

/** Of the whole run; a bucket's mean may be a little below what was there. */
const mostHosts = (run) => run.meta.summary?.max_hosts ?? Math.ceil(Math.max(0, ...run.whole.hosts));

const cost = {
  name: "cost",
  title: "Cost so far",
  note: "core-hours",
  columns: [
    { key: "fixed", label: "static peak", colour: "grey", look: "dashed", format: hours },
    { key: "oracle", label: "oracle", colour: "green", look: "dotted", format: hours },
    { key: "paid", label: "paid", colour: "blue", look: "line", format: hours, width: 2 },
  ],
  scales: { y: { format: (value) => `${number(value)} h` } },
  data: (series) => ({
    x: series.time_s,
    paid: series.core_h,
    fixed: series.static_core_h,
    oracle: missing(series.oracle_core_h, series.time_s.length),
  }),
  words: saving,
};

export function charts(run, timeline) {
  return [load, latency(run.meta), size, backlog, cost].map((spec) => new Chart(spec, run, timeline));
}
