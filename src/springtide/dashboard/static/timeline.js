// Which moment the page shows: the newest one, which it then follows, or one that was chosen. All runs show the same moment.
//
// The slider counts the intervals of the longest run; the others show what was newest in them at that time.

const STEP_MS = 350;
const STEPS_AT_MOST = 400; // a long run is played in larger steps

export class Timeline extends EventTarget {
  following = true;
  playing = false;
  window = null;
  #at = 0;
  #clock = 0;
  #extents = new Map();

  constructor(runs) {
    super();
    this.runs = runs;
    for (const run of runs) {
      run.addEventListener("newest", () => this.#grown());
      // When this run's charts are drawn, those of the other may have to make room.
      run.addEventListener("series", () => setTimeout(() => this.#tell("grown"), 0));
    }
  }

  get begun() {
    return this.runs.some((run) => run.begun);
  }

  get base() {
    return this.runs.reduce((most, run) => (run.intervals > most.intervals ? run : most), this.runs[0]);
  }

  get last() {
    return Math.max(0, this.base.intervals - 1);
  }

  get interval() {
    return this.following ? this.last : Math.min(this.#at, this.last);
  }

  get time_s() {
    return this.base.timeOf(this.interval);
  }

  /** The interval of one run that is shown, or "LAST". */
  intervalOf(run) {
    if (this.following) return "LAST";
    return run === this.base ? this.interval : run.intervalAt(this.time_s);
  }

  select(interval) {
    this.#at = Math.min(Math.max(0, interval), this.last);
    this.following = false;
    this.#tell("select");
  }

  /** Choose an interval of one run. */
  selectOf(run, { interval, time_s }) {
    this.pause();
    this.select(run === this.base ? interval : this.base.intervalAt(time_s));
  }

  /** Choose by time: a click on a chart. */
  selectTime(time_s) {
    this.pause();
    this.select(this.base.intervalAt(time_s));
  }

  follow(on) {
    if (!on) this.#at = this.last;
    else this.pause();
    this.following = on;
    this.#tell("select");
  }

  play() {
    if (this.following || this.#at >= this.last) this.#at = 0;
    this.following = false;
    this.playing = true;
    const step = Math.max(1, Math.round(this.last / STEPS_AT_MOST));
    clearInterval(this.#clock);
    this.#clock = setInterval(() => {
      if (this.#at >= this.last) this.pause();
      else this.select(this.#at + step);
    }, STEP_MS);
    this.#tell("select");
  }

  pause() {
    if (!this.playing) return;
    clearInterval(this.#clock);
    this.playing = false;
    this.#tell("select");
  }

  /** The part of the run that the charts show; null is all of it. */
  zoom(window) {
    this.window = window;
    for (const run of this.runs) run.zoom(window);
    this.#tell("zoom");
  }

  /** From where to where the charts' common axis goes, what is foreseen included. */
  range() {
    if (this.window?.to) return [this.window.from, this.window.to];
    const begun = this.runs.filter((run) => run.begun);
    const starts = begun.map((run) => run.whole.time_s[0]);
    const ends = begun.map((run) => Math.max(run.whole.time_s.at(-1), run.whole.ahead?.time_s?.at(-1) ?? 0));
    if (starts.length === 0) return [0, 60];
    const [from, to] = [Math.min(...starts), Math.max(...ends)];
    if (this.window) return [Math.max(from, Math.max(...begun.map((run) => run.whole.time_s.at(-1))) - this.window.length), to];
    return to > from ? [from, to] : [from - 30, from + 30];
  }

  /** The least and most of a kind of number in all runs, so that their charts can be compared; one run tells its own. */
  extent(kind, run, own) {
    const all = this.#extents.get(kind) ?? new Map();
    this.#extents.set(kind, all.set(run.id, own));
    const known = [...all.values()].filter(([least, most]) => least !== null && most !== null);
    return known.length ? [Math.min(...known.map(([least]) => least)), Math.max(...known.map(([, most]) => most))] : own;
  }

  #grown() {
    this.#tell("grown");
    if (this.following) this.#tell("select");
  }

  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}
