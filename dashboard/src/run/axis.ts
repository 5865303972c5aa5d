// The axis of time: to scale, but long stretches in which nothing happens are folded to a fixed width.

export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly x: number;
  readonly width: number;
  readonly quiet: boolean;
}

export interface Axis {
  readonly stretches: readonly Stretch[];
  readonly active: number; // microseconds that are drawn to scale
  readonly x: (at: number) => number;
  readonly t: (x: number) => number;
}

const FOLDED = 76; // pixels
const SHORTEST = 3e6; // no shorter stretch is folded
const SHARE = 0.25; // of the whole
const MARGIN = 3e5; // stays to scale on both sides

// Return the stretches between events that are worth folding. A person thinks, a process is gone.
function quiet(times: ArrayLike<number>, from: number, to: number): [number, number][] {
  const least = Math.max(SHORTEST, (to - from) * SHARE);
  const found: [number, number][] = [];
  let before = from;
  for (let at = 0; at <= times.length; at++) {
    const last = at === times.length;
    const time = last ? to : (times[at] as number);
    if (time - before > least) found.push([before + MARGIN, last ? time : time - MARGIN]);
    before = Math.max(before, time);
  }
  return found;
}

export function axis(times: ArrayLike<number>, from: number, to: number, width: number): Axis {
  const end = Math.max(to, from + 1);
  const folded = quiet(times, from, end);
  const active = Math.max(1, folded.reduce((sum, [a, b]) => sum - (b - a), end - from));
  const room = Math.max(40, width - FOLDED * folded.length);
  const stretches: Stretch[] = [];
  let at = from;
  let x = 0;
  const scaled = (until: number): void => {
    const wide = (room * (until - at)) / active;
    stretches.push({ from: at, to: until, x, width: wide, quiet: false });
    x += wide;
  };
  for (const [a, b] of folded) {
    scaled(a);
    stretches.push({ from: a, to: b, x, width: FOLDED, quiet: true });
    x += FOLDED;
    at = b;
  }
  scaled(end);
  return { stretches, active, x: (time) => xOf(stretches, time), t: (place) => timeOf(stretches, place) };
}

function xOf(stretches: readonly Stretch[], time: number): number {
  const one = stretches.find((part) => time <= part.to) ?? (stretches.at(-1) as Stretch);
  const inside = Math.max(one.from, Math.min(one.to, time));
  return one.x + (one.width * (inside - one.from)) / Math.max(1, one.to - one.from);
}

function timeOf(stretches: readonly Stretch[], x: number): number {
  const one = stretches.find((part) => x <= part.x + part.width) ?? (stretches.at(-1) as Stretch);
  const inside = Math.max(0, Math.min(one.width, x - one.x));
  return one.from + ((one.to - one.from) * inside) / Math.max(1, one.width);
}

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400];
const APART = 56; // pixels between two labels

export interface Tick {
  readonly at: number;
  readonly label: string;
}

export function ticks(line: Axis, from: number, width: number): Tick[] {
  const step = (STEPS.find((one) => ((line.active / 1e6 / one) * APART) < width) ?? 86_400) * 1e6;
  const found: Tick[] = [];
  for (const one of line.stretches) {
    if (one.quiet) continue;
    const first = Math.ceil((one.from - from) / step);
    const last = Math.min(first + 60, Math.floor((one.to - from) / step));
    for (let number = first; number <= last; number++) {
      const at = from + number * step;
      const x = line.x(at);
      const free = found.length === 0 || x - line.x((found.at(-1) as Tick).at) > APART * 0.7;
      const clear = line.stretches.every((part) => !part.quiet || x < part.x - 22 || x > part.x + part.width + 14);
      if (free && clear) found.push({ at, label: label((number * step) / 1e6, step / 1e6) });
    }
  }
  return found;
}

function label(seconds: number, step: number): string {
  if (step < 1) return `${seconds.toFixed(1)} s`;
  if (seconds < 120 && step < 60) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, "0")}`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
