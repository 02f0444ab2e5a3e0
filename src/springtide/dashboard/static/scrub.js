// The bar at the foot of the page: play, the slider over the whole run, what it shows, follow, and the charts' window.

import { h, icon, say } from "./dom.js";
import { clock, number } from "./format.js";

const WINDOWS = [["Whole run", ""], ["Last 6 h", "21600"], ["Last hour", "3600"], ["Last 10 min", "600"]];

export function scrubBar(element, timeline) {
  const play = h("button", { type: "button", class: "round", onclick: () => (timeline.playing ? timeline.pause() : timeline.play()) });
  const slider = h("input", { type: "range", min: 0, value: 0, step: 1, "aria-label": "Interval shown", id: "slider" });
  const time = h("output", { class: "time", for: "slider" });
  const follow = h("button", { type: "button", class: "toggle", id: "follow", onclick: () => timeline.follow(!timeline.following) });
  const windows = h("select", { "aria-label": "Charts show", id: "window" }, WINDOWS.map(([words, value]) => h("option", { value }, words)));
  const chosen = h("option", { value: "chosen", hidden: true }, "Chosen part");
  windows.append(chosen);

  slider.addEventListener("input", () => {
    timeline.pause();
    timeline.select(Number(slider.value));
  });
  windows.addEventListener("change", () => {
    const length = Number(windows.value);
    // The last hour goes on with the run: it has a length, and no end of its own.
    const from = (timeline.base.whole?.time_s.at(-1) ?? 0) - length;
    timeline.zoom(length ? { from, to: null, length } : null);
  });

  const show = () => {
    element.hidden = !timeline.begun;
    if (!timeline.begun) return;
    const { interval, last, time_s, following, playing } = timeline;
    slider.max = last;
    slider.value = interval;
    const [now, end] = [clock(time_s), clock(timeline.base.timeOf(last))];
    slider.setAttribute("aria-valuetext", `${now}, interval ${interval} of ${last}`);
    say(time, `${now} of ${end}, interval ${number(interval)} of ${number(last)}`);
    const live = timeline.runs.some((run) => ["running", "starting", "stale"].includes(run.meta?.status));
    say(follow, live ? "Follow live" : "At the end");
    follow.setAttribute("aria-pressed", String(following));
    play.replaceChildren(icon(playing ? "stop" : "play"));
    play.setAttribute("aria-label", playing ? "Stop playing" : "Play the run");
    windows.value = timeline.window ? (timeline.window.length ? String(timeline.window.length) : "chosen") : "";
    document.body.classList.toggle("scrubbed", !following);
  };
  for (const what of ["select", "grown", "zoom"]) timeline.addEventListener(what, show);
  element.append(play, slider, time, follow, windows);
  show();
}
