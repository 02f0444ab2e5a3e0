// Controls: each asks before it acts, is sent with the token, and tells what the server said. Nothing is taken as done that was not.

import * as api from "./api.js";
import { h } from "./dom.js";
import { count, duration } from "./format.js";

const SAID_MS = 12000;
let fading = 0;

/** What happened, for eyes and for screen readers. */
export function announce(text, kind = "fine") {
  const place = document.getElementById("said");
  const close = h("button", { type: "button", class: "quiet", onclick: () => place.replaceChildren() }, "Close");
  place.replaceChildren(h("div", { class: `note ${kind}` }, h("p", {}, text), close));
  clearTimeout(fading);
  fading = setTimeout(() => place.replaceChildren(), SAID_MS);
}

const NO_TOKEN = "Controls need the token: open the address that “springtide dashboard” printed when it started, with #token= at its end.";

function refusal(error) {
  if (error instanceof api.Unreachable) return `Not done: ${error.message}`;
  const hint = error.status === 401 || error.status === 403 ? ` ${NO_TOKEN}` : "";
  return `Refused: ${error.message}${hint}`;
}

/** Ask in the page's dialog. `choices` are [words, wish of the form's values]; the first is what Enter does. */
function ask({ title, text, fields = [], choices, send }) {
  const dialog = document.getElementById("ask");
  const answer = h("p", { class: "refused", role: "alert" });
  const form = h("form", { method: "dialog" });
  const cancel = h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel");
  const buttons = choices.map(([words], at) => h("button", { type: "submit", value: at, class: at === 0 ? "main" : "" }, words));
  form.append(h("h2", { id: "ask-title" }, title), ...text.map((words) => h("p", {}, words)), ...fields, answer, h("div", { class: "buttons" }, cancel, ...buttons.reverse()));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [, wish] = choices[Number(event.submitter?.value ?? 0)];
    answer.textContent = "";
    buttons.forEach((button) => (button.disabled = true));
    try {
      const { said } = await send(wish(new FormData(form)));
      dialog.close();
      announce(`Asked for: ${said}. It is carried out at the end of the interval and written in the journal.`);
    } catch (error) {
      if (!(error instanceof api.Refused || error instanceof api.Unreachable)) throw error;
      answer.textContent = refusal(error);
    } finally {
      buttons.forEach((button) => (button.disabled = false));
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}

export class Steer {
  constructor(run) {
    this.run = run;
  }

  #ask(question) {
    const { controls } = this.run.meta;
    if (!controls.available) {
      announce(`Controls are off: ${controls.why}`, "bad");
      return;
    }
    ask({ ...question, send: (wish) => api.control(this.run.id, wish) });
  }

  get #soon() {
    return `It takes effect within one interval (${duration(this.run.meta.interval_s)}) and is written in the journal.`;
  }

  pauseOrResume() {
    const { steering, application } = this.run.meta;
    const what = steering.paused ? "resume" : "pause";
    const text = steering.paused
      ? `Springtide decides again about ${application.name}.`
      : `${application.name} goes on running as it is: no host, replica or shard is changed until you resume.`;
    this.#ask({ title: `${steering.paused ? "Resume" : "Pause"} decisions?`, text: [text, this.#soon], choices: [[steering.paused ? "Resume" : "Pause", () => ({ do: what })]] });
  }

  pin(operator) {
    const { application, steering } = this.run.meta;
    const { max_replicas, shards } = application.operators.find(({ name }) => name === operator);
    const most = Math.min(max_replicas, shards || max_replicas); // a replica without a shard would have nothing to do
    const pinned = steering.pins[operator];
    const now = this.replicas?.get(operator) ?? 1;
    const input = h("input", { type: "number", name: "replicas", min: 1, max: most, step: 1, required: true, value: pinned ?? now, id: "pin-replicas" });
    const choices = [["Pin", (values) => ({ do: "pin", operator, replicas: Number(values.get("replicas")) })]];
    if (pinned !== undefined) choices.push(["Unpin", () => ({ do: "unpin", operator })]);
    this.#ask({
      title: `Pin ${operator}?`,
      text: [
        pinned === undefined ? `It has ${count(now, "replica")} now.` : `It is pinned to ${count(pinned, "replica")}.`,
        `${operator} will have exactly this many replicas, whatever the load, until it is unpinned. ${this.#soon}`,
      ],
      fields: [h("label", { class: "field", for: "pin-replicas" }, `Replicas (1 to ${most})`, input)],
      choices,
    });
  }

  drain(host) {
    const draining = this.run.meta.steering.draining.includes(host);
    const text = draining ? `${host} may be used again.` : `Everything on ${host} moves to other hosts, and ${host} is released as far as the smallest number of hosts allows.`;
    const wish = () => ({ do: draining ? "undrain" : "drain", host });
    this.#ask({ title: draining ? `Stop draining ${host}?` : `Drain ${host}?`, text: [text, this.#soon], choices: [[draining ? "Stop draining" : "Drain", wish]] });
  }
}
