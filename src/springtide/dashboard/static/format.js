// Numbers as people read them: with a unit, thousands apart, and no more digits than mean something.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const big = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const UNKNOWN = "–";
const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

export function number(value) {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size >= 1e9) return `${big.format(value / 1e9)} G`;
  if (size >= 1e7) return `${big.format(value / 1e6)} M`;
  if (size >= 10 || Number.isInteger(value)) return whole.format(value);
  return size < 0.005 ? "0" : digits.format(value);
}

export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const rate = (value) => (known(value) ? `${number(value)} rows/s` : UNKNOWN);
export const rows = (value) => (known(value) ? `${number(Math.round(value))} rows` : UNKNOWN);
export const hours = (value) => (known(value) ? `${(Math.abs(value) < 1 ? digits : Math.abs(value) < 100 ? tenth : whole).format(value)} h` : UNKNOWN);
export const coreHours = (value) => (known(value) ? hours(value).replace(" h", " core-hours") : UNKNOWN);

/** Hosts and replicas are whole, but for the mean of a bucket. */
export const amount = (value) => (!known(value) ? UNKNOWN : Number.isInteger(value) ? whole.format(value) : tenth.format(value));

export function percent(share) {
  if (!known(share)) return UNKNOWN;
  const value = share * 100;
  const size = Math.abs(value);
  if (size > 0 && size < 0.05) return "below 0.1 %";
  return `${(size < 10 && !Number.isInteger(value) ? tenth : whole).format(value)} %`;
}

/** How much replicas or a host do; journals of older versions do not know for how long they were busy. */
export const describeUse = ({ utilisation, busy_share: busy }) => `utilisation ${percent(utilisation)}${known(busy) ? `, busy ${percent(busy)}` : ""}`;

/** A value with its standard error, in units of a size, and as precise as the error is: 318 ± 29, 1.17 ± 0.71. */
export function writeEstimate({ value, error }, size = 1) {
  if (!known(value)) return UNKNOWN;
  if (!known(error)) return number(value / size);
  const places = Math.min(3, Math.max(0, 1 - Math.floor(Math.log10(error / size))));
  const { format } = new Intl.NumberFormat("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  return `${format(value / size)} ± ${format(error / size)}`;
}

/** A length of time: 8 ms, 1.5 s, 4 min, 2.5 h. */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.9995) return `${digits.format(seconds * 1000)} ms`;
  if (size < 10) return `${digits.format(seconds)} s`;
  if (size < 120) return `${whole.format(seconds)} s`;
  if (size < 7200) return `${digits.format(seconds / 60)} min`;
  return `${digits.format(seconds / 3600)} h`;
}

/** A point of the run's clock: 02:10:30, or 3 d 02:10:30 in a long run. */
export function clock(seconds) {
  if (!known(seconds)) return "--:--:--";
  const all = Math.max(0, Math.round(seconds));
  const days = Math.floor(all / 86400);
  const parts = [Math.floor((all % 86400) / 3600), Math.floor((all % 3600) / 60), all % 60];
  return (days ? `${days} d ` : "") + parts.map((part) => String(part).padStart(2, "0")).join(":");
}

/** The same for an axis, without the seconds where every tick is on a minute. */
export function tick(seconds, step) {
  const text = clock(seconds);
  if (step >= 86400) return text.replace(/ 00:00:00$/, "");
  return step >= 60 ? text.slice(0, -3) : text;
}

export function list(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
