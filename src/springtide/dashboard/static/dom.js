// Elements from JavaScript. Text is always set as text, never as markup: names come from a file that somebody else wrote.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

/** Put text there only if it is new, so that a screen reader is not told the same thing again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SHAPES = {
  pin: "M6 2h4l-.6 4.5L12 9v1H8.7v4L8 15.5 7.3 14v-4H4V9l2.6-2.5z",
  drain: "M3 2h10l-3.6 5.5V13L6.6 14.5v-7z",
  play: "M4 2.5v11l9-5.5z",
  stop: "M4 3h3v10H4zM9 3h3v10H9z",
};

export function icon(name) {
  return s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true", class: "icon" }, s("path", { d: SHAPES[name] }));
}
