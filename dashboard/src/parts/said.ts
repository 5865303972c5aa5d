// Figures and times as people read them. Money is millionths of a dollar, times are microseconds since 1970.
import type { Json, Micros } from "../shapes";
import { count, money } from "./money";
import { SECOND } from "./time";

const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The time now, in microseconds. */
export function now(): Micros {
  return Date.now() * 1_000;
}

/** Return an amount of money, or a dash if there is none. */
export function dollars(amount: number | null | undefined): string {
  return amount === null || amount === undefined ? "–" : money(amount);
}

/** Return a whole number with separators; from ten thousand on, short. */
export function figure(number: number | null | undefined): string {
  if (number === null || number === undefined) return "–";
  if (number < 10_000) return count(number);
  return new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }).format(number);
}

/** Return a length of time: "340 ms", "2.4 s", "3 min", "5 h", "7 d". */
export function span(length: number | null | undefined): string {
  if (length === null || length === undefined) return "–";
  if (length < SECOND) return `${Math.max(0, Math.round(length / 1_000))} ms`;
  if (length < 10 * SECOND) return `${(length / SECOND).toFixed(1)} s`;
  if (length < 90 * SECOND) return `${Math.round(length / SECOND)} s`;
  if (length < 90 * MINUTE) return `${Math.round(length / MINUTE)} min`;
  if (length < 36 * HOUR) return `${Math.round(length / HOUR)} h`;
  return `${Math.round(length / DAY).toLocaleString("en-US")} d`;
}

/** Return how long ago something was: "now", "12 s ago". */
export function ago(at: Micros | null | undefined, when = now()): string {
  if (at === null || at === undefined) return "never";
  const length = when - at;
  return length < 2 * SECOND ? "now" : `${span(length)} ago`;
}

/** Return how long there is until a moment: "in 5 min", or "over". */
export function ahead(at: Micros | null | undefined, when = now()): string {
  if (at === null || at === undefined) return "never";
  return at <= when ? "over" : `in ${span(at - when)}`;
}

/** Return a moment as date and time of this browser. */
export function moment(at: Micros | null | undefined): string {
  if (at === null || at === undefined) return "–";
  const date = new Date(at / 1_000);
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const year = date.getFullYear() === new Date().getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${day}${year} ${date.toLocaleTimeString("en-GB")}`;
}

/** Return a share in percent. */
export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
}

/** Return JSON as a person reads it: a text as it is, anything else with line breaks. */
export function written(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Return the first line of a text, without a heading's marks. */
export function firstLine(text: string): string {
  const line = text.split("\n").find((one) => one.trim()) ?? "";
  return line.replace(/^#+ /, "").replace(/^Task: /, "").slice(0, 400);
}

/** Return a version of an entry: numbers of versions grow with time, so the last digits tell two apart. */
export function shortVersion(version: number): string {
  const text = String(version);
  return text.length > 6 ? `…${text.slice(-4)}` : text;
}
