// A run as a tiny tree: one dot a task, in the order in which they were asked, deeper ones lower.
import { grouped } from "../parts/grouped";
import { toneOf } from "../parts/tone";
import type { Dot } from "./runlist";

const STEP = 9;
const DROP = 7;
const MOST = 22;

export interface Spot extends Dot {
  x: number;
  y: number;
  from?: { x: number; y: number };
}

/** Return where each dot is: in tree order from left to right, a level lower than its asker. */
export function spots(dots: Dot[]): Spot[] {
  const below = grouped(dots, (dot) => dot.parent);
  const ids = new Set(dots.map((dot) => dot.id));
  const found: Spot[] = [];
  const stack: [Dot, number, { x: number; y: number } | undefined][] = dots
    .filter((dot) => !ids.has(dot.parent))
    .toReversed()
    .map((dot) => [dot, 0, undefined]);
  while (stack.length && found.length < MOST) {
    const [dot, depth, from] = stack.pop() as [Dot, number, { x: number; y: number } | undefined];
    const spot = { ...dot, x: 5 + found.length * STEP, y: 5 + Math.min(depth, 3) * DROP, ...(from ? { from } : {}) };
    found.push(spot);
    for (const child of (below.get(dot.id) ?? []).toReversed()) stack.push([child, depth + 1, { x: spot.x, y: spot.y }]);
  }
  return found;
}

const WORDS: Record<string, string> = { live: "working", done: "done", you: "waiting for you", bad: "failed", idle: "waiting" };

export function MiniTree({ dots, tasks }: { dots: Dot[]; tasks: number }) {
  const shown = spots(dots);
  const counts = new Map<string, number>();
  for (const dot of dots) {
    const word = WORDS[toneOf(dot.state, dot.asks)] ?? dot.state;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const label = dots.length ? [...counts].map(([word, number]) => `${number} ${word}`).join(", ") : `${tasks} tasks`;
  const height = Math.max(10, ...shown.map((spot) => spot.y + 5));
  const width = shown.length * STEP + 2;
  return (
    <span class="minitree" role="img" aria-label={label} title={label}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {shown.map(
          ({ id, x, y, from }) =>
            from && <path key={id} class="twig" d={`M${from.x} ${from.y}V${y - 3}Q${from.x} ${y} ${Math.min(from.x + 3, x)} ${y}H${x}`} />,
        )}
        {shown.map(({ id, x, y, state, asks, agent }) => (
          <circle key={id} class={`t-${toneOf(state, asks)} ${state}`} cx={x} cy={y} r={3}>
            <title>{agent}</title>
          </circle>
        ))}
      </svg>
      {tasks > shown.length && <small>+{tasks - shown.length}</small>}
    </span>
  );
}
