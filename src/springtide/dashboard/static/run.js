// One run as the server tells it: what it is, its series, its frames, and the events that keep them new.
//
// Rules: a Run draws nothing. It says "meta", "series", "newest", "connection" or "problem" when that has changed.
// `whole` is the series of the whole run; `shown` is that of the chosen window, and the same object while there is none.

import * as api from "./api.js";

const POINTS = 800;
const FRAMES_KEPT = 120;
const AGAIN_MS = 2000;
const CLOSE_S = 0.001;
const WHOLE_MS = 30000; // what the oracle would have paid is worked out anew from time to time, for the past too
const SETTLE_MS = 250; // a decision is written a moment after the observation that it is about

export class Run extends EventTarget {
  meta = null;
  whole = null;
  shown = null;
  connection = "connecting";
  #source = null;
  #frames = new Map();
  #window = null;
  #soon = 0;
  #loadedAt = 0;
  #exact = null;
  #thinned = { buckets: 0, intervals: 0 };
  #loading = null;
  #wanted = false;

  constructor(id) {
    super();
    this.id = id;
  }

  get intervals() {
    return this.meta?.intervals ?? 0;
  }

  get begun() {
    return this.intervals > 0 && this.whole?.time_s.length > 0;
  }

  tell(what, detail) {
    this.dispatchEvent(new CustomEvent(what, { detail }));
  }

  /** Everything anew; what fails is told, and what was there stays. Asked for again while under way, it is done once more. */
  load() {
    this.#wanted = true;
    this.#loading ??= this.#loadWanted().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #loadWanted() {
    while (this.#wanted) {
      this.#wanted = false;
      await this.#trying("the run", () => this.#loadMeta());
      if (this.intervals > 0) await this.#trying("its numbers", () => this.#loadSeries());
    }
    this.tell("newest");
    if (this.meta?.status === "running") this.#settle();
  }

  async refreshMeta() {
    await this.#trying("the run", () => this.#loadMeta());
  }

  async #trying(what, load) {
    try {
      await load();
      this.tell("problem", { what, message: null });
    } catch (error) {
      if (error instanceof api.Unreachable) this.#lost();
      else if (error instanceof api.Refused) this.tell("problem", { what, message: error.message });
      else throw error;
    }
  }

  async #loadMeta() {
    const meta = await api.run(this.id);
    // An event may have been quicker than this answer.
    this.meta = { ...meta, intervals: Math.max(meta.intervals, this.meta?.created_at === meta.created_at ? this.intervals : 0) };
    this.tell("meta");
  }

  async #loadSeries() {
    const window = this.#window;
    const whole = api.series(this.id, { points: POINTS });
    const part = window ? api.series(this.id, { from_s: window.from, to_s: window.to, points: POINTS }) : whole;
    [this.whole, this.shown] = await Promise.all([whole, part]);
    this.#loadedAt = performance.now();
    // An event may have come with the answer under way: what a full series has is every interval.
    const buckets = this.whole.time_s.length;
    this.#thinned = { buckets, intervals: buckets < POINTS ? buckets : Math.max(buckets, this.intervals) };
    this.tell("series");
  }

  /** Show only this part of the run, or all of it (null). */
  async zoom(window) {
    this.#window = window;
    if (this.intervals > 0) await this.#trying("its numbers", () => this.#loadSeries());
  }

  /** The picture of one interval, or of the newest ("LAST"); null while there is none. */
  async frame(interval) {
    if (!this.begun) return null;
    let frame = this.#frames.get(interval) ?? null;
    await this.#trying("the interval", async () => {
      frame ??= await api.frame(this.id, interval);
      await this.#loadRow(frame.time_s);
    });
    if (frame !== null && interval !== "LAST") this.#keep(interval, frame);
    return frame;
  }

  /** In a long run a row of the series is the mean of some intervals: what is said in words is of one. */
  async #loadRow(time_s) {
    this.#exact = null;
    if (this.#thinned.buckets >= this.#thinned.intervals) return;
    const found = await api.series(this.id, { from_s: time_s - CLOSE_S, to_s: time_s + CLOSE_S, points: 1 });
    if (found.time_s.length) this.#exact = rowOf(found, 0);
  }

  #keep(interval, frame) {
    // The newest is not final: a decision may still ask for moves in it.
    if (interval >= this.intervals - 1) return;
    this.#frames.set(interval, frame);
    if (this.#frames.size > FRAMES_KEPT) this.#frames.delete(this.#frames.keys().next().value);
  }

  async decisions(parameters) {
    let found = null;
    await this.#trying("the decisions", async () => {
      found = (await api.decisions(this.id, parameters)).decisions;
    });
    return found;
  }

  /** When interval `at` ended. Exact where the series has every interval, else between the ends of the two buckets around it. */
  timeOf(at) {
    const times = this.whole?.time_s ?? [];
    if (times.length === 0) return null;
    const { buckets, intervals } = this.#thinned;
    const place = at < intervals ? ((at + 1) * buckets) / intervals - 1 : buckets + at - intervals;
    if (place < 0) return times[0] + ((place * intervals) / buckets) * this.meta.interval_s;
    const low = Math.min(Math.floor(place), times.length - 1);
    const high = Math.min(low + 1, times.length - 1);
    const between = times[low] + (place - low) * (times[high] - times[low]);
    return buckets < intervals ? this.#onGrid(between) : between;
  }

  /** Between buckets, intervals are as long as they are said to be. */
  #onGrid(time_s) {
    const { interval_s } = this.meta;
    const last = this.whole.time_s.at(-1);
    return last - Math.round((last - time_s) / interval_s) * interval_s;
  }

  /** The interval that was the newest at a time. */
  intervalAt(time_s) {
    let [low, high] = [0, Math.max(0, this.intervals - 1)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.timeOf(middle) <= time_s + 1e-6) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** One row of the series: the very one that was fetched with a frame, else the last one at or before a time, as fine as it is here. */
  rowAt(time_s) {
    if (Math.abs((this.#exact?.time_s ?? Infinity) - time_s) < CLOSE_S) return this.#exact;
    const covers = this.shown !== this.whole && this.shown?.time_s.length && time_s >= this.shown.time_s[0];
    const series = covers && time_s <= this.shown.time_s.at(-1) ? this.shown : this.whole;
    if (!series?.time_s.length) return null;
    const at = lastUntil(series.time_s, time_s);
    return rowOf(series, at);
  }

  /** The last value of a column that is not unknown, at or before a time; null if there is none. */
  lastKnown(column, time_s) {
    const { time_s: times = [], [column]: values = [] } = this.whole ?? {};
    if (!times.length || times[0] > time_s + CLOSE_S) return null;
    for (let at = lastUntil(times, time_s); at >= 0; at -= 1) {
      if (values[at] !== null && values[at] !== undefined) return { value: values[at], time_s: times[at] };
    }
    return null;
  }

  connect() {
    this.close();
    const source = api.events(this.id);
    this.#source = source;
    source.addEventListener("open", () => this.#opened());
    source.addEventListener("error", () => {
      this.#lost();
      // A refused stream is closed for good; a broken one the browser opens again by itself.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.#source === source && this.connect(), AGAIN_MS);
    });
    source.addEventListener("frame", (event) => this.#arrived(JSON.parse(event.data)));
    source.addEventListener("status", () => this.#changed());
    source.addEventListener("control", () => this.#changed());
    // Of a run that goes on, what the oracle would have paid comes with the series from time to time.
    source.addEventListener("oracle", () => this.meta?.status !== "running" && this.load());
  }

  close() {
    this.#source?.close();
    this.#source = null;
  }

  #opened() {
    const lost = this.connection === "reconnecting";
    this.#connected("live");
    // The server may have been started again, perhaps on a file that has grown, or another one.
    if (lost) {
      this.#frames.clear();
      this.load();
    }
  }

  #lost() {
    this.#connected("reconnecting");
  }

  #connected(state) {
    if (state === this.connection) return;
    this.connection = state;
    this.tell("connection");
  }

  async #changed() {
    await this.refreshMeta();
    if (this.intervals > 0 && !this.begun) await this.load();
    else this.#settle();
  }

  #arrived(row) {
    if (!this.begun || this.#loading || row.interval < this.intervals - 1) {
      // The first row, one that the answer under way may not have, or a file that began again.
      this.load();
      return;
    }
    const skipped = row.interval > this.intervals;
    this.meta.intervals = row.interval + 1;
    this.meta.last_s = row.time_s;
    const old = skipped || this.whole.time_s.length > 1.5 * POINTS || performance.now() - this.#loadedAt > WHOLE_MS;
    // With more hosts than ever before, the static peak is another one, and always was.
    if (old || row.hosts > Math.max(...this.whole.hosts)) {
      this.load();
      return;
    }
    append(this.whole, row);
    if (this.shown !== this.whole && (this.#window.to ?? Infinity) >= row.time_s) append(this.shown, row);
    this.tell("series");
    this.tell("newest");
    this.#settle();
  }

  /** What is written just after a row: the decision on it, and the forecast in that. */
  #settle() {
    clearTimeout(this.#soon);
    this.#soon = setTimeout(async () => {
      if (!this.begun) return;
      await this.refreshMeta();
      await this.#trying("its numbers", async () => {
        const tail = await api.series(this.id, { from_s: this.whole.time_s.at(-1), points: 1 });
        this.whole.ahead = tail.ahead;
        this.shown.ahead = tail.ahead;
      });
      this.tell("series");
      this.tell("newest");
    }, SETTLE_MS);
  }
}

const rowOf = (series, at) => Object.fromEntries(columns(series).map((name) => [name, series[name][at]]));
export const columns = (series) => Object.keys(series).filter((name) => Array.isArray(series[name]));

function append(series, row) {
  const again = series.time_s.at(-1) >= row.time_s;
  for (const name of columns(series)) {
    const value = row[name] ?? null;
    if (again) series[name][series[name].length - 1] = value;
    else series[name].push(value);
  }
}

export function lastUntil(times, time_s) {
  let [low, high] = [0, times.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= time_s + 1e-6) low = middle;
    else high = middle - 1;
  }
  return low;
}
