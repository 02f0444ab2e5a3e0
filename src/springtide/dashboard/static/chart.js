// One chart: uPlot with the page's colours, a legend that tells the numbers, the moment that is shown, and words for who cannot see it.
//
// Charts of one page share their time axis and their cursor. A click chooses the moment, a drag the part of the run.

import { h, say } from "./dom.js";
import { clock, tick } from "./format.js";

const { uPlot } = window;
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const RIGHT = 30;
const MOST_DOTS = 60;
const FONT = "11px system-ui, sans-serif";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const stepped = uPlot.paths.stepped({ align: -1 }); // a row's time is the end of its interval

export class Chart {
  #plot = null;
  #data = null;
  #row = null;

  /**
   * spec: title, note, columns [{key, label, colour, look, scale, format, quiet, spans}], band [high, low], scales {y: {format, log}},
   * data(series) -> {x, [key]: values}, words(row, run) -> a sentence, draw(plot, context, data).
   */
  constructor(spec, run, timeline) {
    Object.assign(this, { spec, run, timeline });
    this.area = h("div", { class: "plot", role: "img" });
    this.words = h("p", { class: "words" });
    this.values = new Map();
    this.element = h(
      "section",
      { class: `panel chart chart-${spec.name}`, dataset: { chart: spec.name } },
      h("header", {}, h("h3", {}, spec.title), spec.note && h("small", {}, spec.note), this.#legend()),
      this.area,
      this.words,
    );
    new ResizeObserver(() => this.#fit()).observe(this.area);
    document.addEventListener("theme", () => this.#plot?.redraw(false));
    run.addEventListener("series", () => this.draw());
    for (const what of ["zoom", "grown"]) timeline.addEventListener(what, () => this.#scale());
    timeline.addEventListener("select", () => this.mark());
  }

  #legend() {
    const items = this.spec.columns.map((column, at) => {
      if (column.quiet) return null;
      const value = h("b", { class: "value" });
      this.values.set(column.key, value);
      const toggle = () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        this.#plot?.setSeries(at + 1, { show: shown });
      };
      const swatch = h("i", { class: `swatch look-${column.look}`, dataset: { colour: column.colour } });
      const button = h("button", { type: "button", "aria-pressed": "true", onclick: toggle, title: "Show or hide" }, swatch, column.label, " ", value);
      return h("li", { dataset: { column: column.key } }, button);
    });
    return h("ul", { class: "legend" }, items);
  }

  draw() {
    if (!this.run.begun) return;
    const columns = this.spec.data(this.run.shown, this.run);
    this.#data = [columns.x, ...this.spec.columns.map((column) => columns[column.key])];
    if (this.#plot === null) this.#make();
    this.#plot.batch(() => {
      this.#plot.setData(this.#data, false);
      this.#scale();
    });
    this.mark();
  }

  /** The time axis is common to all charts: it may grow with another run. */
  #scale() {
    const [min, max] = this.timeline.range();
    this.#plot?.setScale("x", { min, max });
  }

  /** The moment shown has changed: its line, its numbers, its words. */
  mark() {
    if (this.#plot === null) return;
    this.#plot.redraw(false, false);
    const row = this.run.rowAt(this.timeline.time_s ?? Infinity);
    this.#row = row;
    this.#tell(this.#plot.cursor.idx);
    const words = row ? this.spec.words(row, this.run) : "";
    say(this.words, words);
    this.area.setAttribute("aria-label", `${this.spec.title} at ${clock(row?.time_s)}: ${words}`);
  }

  /** The legend's numbers: those below the cursor, else those of the moment shown. */
  #tell(at) {
    const hovered = at !== null && at !== undefined;
    if (!hovered && !this.#row) return;
    const shown = hovered ? null : this.spec.data(Object.fromEntries(Object.entries(this.#row).map(([name, value]) => [name, [value]])));
    this.spec.columns.forEach((column, index) => {
      const value = this.values.get(column.key);
      if (value) say(value, column.format(hovered ? this.#data[index + 1][at] : shown[column.key][0]));
    });
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.area;
    if (this.#plot && width > 0 && height > 0) this.#plot.setSize({ width, height });
  }

  #make() {
    const { clientWidth: width, clientHeight: height } = this.area;
    const { spec } = this;
    const options = {
      width: width || 300,
      height: height || 150,
      padding: [6, spec.scales.right ? 0 : RIGHT, 0, 0], // so that all charts end below one another
      legend: { show: false },
      cursor: {
        sync: { key: "springtide", setSeries: false },
        drag: { x: true, y: false, setScale: false, dist: 6 },
        points: { size: 6, width: 0, fill: (plot, at) => plot.series[at].stroke(plot, at) },
        y: false,
        bind: { dblclick: () => null }, // it would show all data; the page has a window of its own
      },
      scales: { x: { time: false }, ...this.#scales() },
      axes: [timeAxis(), ...Object.entries(spec.scales).map(([name, scale], at) => valueAxis(name, scale, at))],
      series: [{}, ...spec.columns.map(line)],
      bands: spec.band ? [{ series: spec.band.map((key) => this.#place(key)), fill: () => colour("forecast-band") }] : [],
      hooks: {
        draw: [(plot) => this.#over(plot)],
        setCursor: [(plot) => this.#tell(plot.cursor.idx)],
        setSelect: [(plot) => this.#dragged(plot)],
      },
    };
    this.#plot = new uPlot(options, this.#data, this.area);
    this.#plot.over.addEventListener("click", () => this.#clicked());
    this.#plot.over.addEventListener("dblclick", () => this.timeline.window && this.timeline.zoom(null));
  }

  #place(key) {
    return this.spec.columns.findIndex((column) => column.key === key) + 1;
  }

  #scales() {
    const range = (name, scale) => (_, least, most) => {
      const [low, high] = this.timeline.extent(`${this.spec.name} ${name}`, this.run, [least, most]);
      if (scale.log) return uPlot.rangeLog(low, high, 10, true);
      return [0, high > 0 ? high * (scale.room ?? 1.08) : 1];
    };
    const made = Object.entries(this.spec.scales).map(([name, scale]) => [name, { ...(scale.log ? { distr: 3, log: 10 } : {}), range: range(name, scale) }]);
    return Object.fromEntries(made);
  }

  #dragged(plot) {
    const { left, width } = plot.select;
    if (width < 6) return;
    this.draggedAt = performance.now();
    const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.timeline.zoom({ from, to });
  }

  #clicked() {
    if (performance.now() - (this.draggedAt ?? -1000) < 300 || this.#plot.cursor.left < 0) return;
    this.timeline.selectTime(this.#plot.posToVal(this.#plot.cursor.left, "x"));
  }

  #over(plot) {
    const { ctx } = plot;
    ctx.save();
    this.spec.over?.(plot, ctx, this.run.shown, colour);
    const time_s = this.timeline.time_s;
    const at = plot.valToPos(time_s, "x", true);
    const { left, top, width, height } = plot.bbox;
    if (time_s !== null && !this.timeline.following && at >= left && at <= left + width) {
      const ratio = window.devicePixelRatio || 1;
      ctx.strokeStyle = colour("ink");
      ctx.fillStyle = colour("ink");
      ctx.lineWidth = ratio;
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.moveTo(at, top);
      ctx.lineTo(at, top + height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(at - 4 * ratio, top);
      ctx.lineTo(at + 4 * ratio, top);
      ctx.lineTo(at, top + 5 * ratio);
      ctx.fill();
    }
    ctx.restore();
  }
}

function line(column) {
  const looks = { dashed: { dash: [5, 4] }, dotted: { dash: [2, 3] }, step: { paths: stepped }, "step-dashed": { paths: stepped, dash: [5, 4] } };
  return {
    label: column.label,
    scale: column.scale ?? "y",
    stroke: () => (column.quiet ? "transparent" : colour(column.colour)),
    fill: column.look === "area" ? () => colour(`${column.colour}-fill`) : undefined,
    width: column.quiet ? 0 : (column.width ?? 1.5),
    points: column.spans ? { show: sparse, size: 4 } : { show: false },
    spanGaps: column.spans ?? false,
    ...looks[column.look],
  };
}

/** Points are shown where they are few: a line through two of them says less. */
const sparse = (plot, column, first, last) => plot.data[column].slice(first, last + 1).filter((value) => value !== null).length < MOST_DOTS;

const drawn = () => ({ stroke: () => colour("ink-quiet"), font: FONT, ticks: { show: false } });

function timeAxis() {
  return {
    ...drawn(),
    size: 24,
    gap: 4,
    space: 70,
    incrs: SECONDS,
    values: (_, splits) => splits.map((at) => tick(at, splits.length > 1 ? splits[1] - splits[0] : 1)),
    grid: { stroke: () => colour("grid"), width: 1 },
  };
}

function valueAxis(name, scale, at) {
  return {
    ...drawn(),
    scale: name,
    side: at === 0 ? 3 : 1,
    size: at === 0 ? 52 : RIGHT,
    gap: 4,
    space: 30,
    ...(scale.log ? { splits: (_, __, low, high) => decades(low, high), filter: (_, splits) => splits } : {}),
    ...(scale.whole ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] } : {}),
    values: (_, splits) => splits.map((value) => (value === null ? null : scale.format(value))),
    grid: at === 0 ? { stroke: () => colour("grid"), width: 1 } : { show: false },
  };
}

/** Lines at powers of ten only: those between them would be more ink than the data. */
function decades(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => 10 ** (first + at));
}
