// Two runs in one sentence each: what they cost, how many rows were late, how often something was changed.

import { h } from "./dom.js";
import { coreHours, count, percent } from "./format.js";

/** What a run comes to so far: its own summary when it has ended, else what its series says. */
function totals(run) {
  const { summary } = run.meta;
  const { offered_per_s: offered, late_share: late, changed, core_h: paid } = run.whole;
  let [rows, lateRows] = [0, 0];
  offered.forEach((rate, at) => {
    if (rate === null || late?.[at] === null || late?.[at] === undefined) return;
    rows += rate;
    lateRows += rate * late[at];
  });
  return {
    paid: summary?.core_hours ?? paid.findLast((value) => value !== null) ?? 0,
    late: summary?.slo_violation_share ?? (rows > 0 ? lateRows / rows : null),
    changes: summary?.decisions_with_change ?? changed.reduce((sum, value) => sum + (value ? 1 : 0), 0),
  };
}

function against(one, other) {
  if (!(other > 0) || !(one > 0)) return "";
  const share = one / other - 1;
  if (Math.abs(share) < 0.005) return ", as much as the other";
  return `, ${percent(Math.round(Math.abs(share) * 100) / 100)} ${share < 0 ? "less" : "more"} than the other`;
}

export function comparison(element, runs) {
  const show = () => {
    const ready = runs.every((run) => run.begun);
    element.hidden = !ready;
    if (!ready) return;
    const all = runs.map(totals);
    const lines = runs.map((run, at) => {
      const { paid, late, changes } = all[at];
      const words = `${coreHours(paid)}${against(paid, all[1 - at].paid)}; ${percent(late)} of rows late; ${count(changes, "change")}`;
      return h("li", { dataset: { run: run.id } }, h("b", {}, `${run.meta.policy.name} on ${run.meta.application.name}`), ` ${words}`);
    });
    element.replaceChildren(h("h2", { id: "comparison-title" }, "Side by side"), h("ul", {}, lines));
  };
  for (const run of runs) for (const what of ["meta", "series"]) run.addEventListener(what, show);
}
