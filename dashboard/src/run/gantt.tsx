// When each task worked, as bars on the axis of time.
import { useState } from "preact/hooks";
import { isOver } from "../fold/lifecycle";
import { holders, type Task, type Wait } from "../fold/state";
import type { Axis, Tick } from "./axis";
import type { RunModel } from "./model";
import { ownWork, type Row, waitsForPerson } from "./rows";

export const ROW_HEIGHT = 15;
const BAR = 10;
const MOST = 12; // rows in sight
const BESIDE = 6;

interface GanttOf {
  model: RunModel;
  axis: Axis;
  rows: readonly Row[];
  ticks: readonly Tick[];
  left: number;
  width: number;
  grab: (event: PointerEvent) => void;
}

export function Gantt({ model, axis, rows, ticks, left, width, grab }: GanttOf) {
  const [top, setTop] = useState(0);
  const height = rows.length * ROW_HEIGHT;
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - BESIDE);
  const shown = rows.slice(first, first + MOST + 3 * BESIDE);
  const x = (at: number) => left + axis.x(at);
  const now = x(model.now.value);
  return (
    <div class="rows" onScroll={(event) => rows.length > MOST && setTop((event.target as Element).scrollTop)} tabIndex={-1}>
      <svg height={height + 4} width={width} onPointerDown={grab} role="img" aria-label="When each agent worked">
        <Hatch />
        {ticks.map((tick) => (
          <path key={tick.at} class="rule" d={`M${x(tick.at)} 0V${height}`} />
        ))}
        {shown.map((row, at) =>
          row.kind === "task" ? (
            <Bars key={row.task.id} model={model} id={row.task.id} x={x} y={(first + at) * ROW_HEIGHT + 2} left={left} />
          ) : (
            <text key={row.text} class="rowmore" x={labelX(row.depth)} y={(first + at) * ROW_HEIGHT + 11}>
              {row.text}
            </text>
          ),
        )}
        {axis.stretches.map((one) => one.quiet && <Fold key={one.from} x={left + one.x + one.width / 2} height={height} />)}
        {model.moment.value !== null && <rect class="later" x={now} y="0" width={Math.max(0, width - now)} height={height} />}
        <path class="playhead" d={`M${now} 0V${height + 4}`} />
      </svg>
    </div>
  );
}

const labelX = (depth: number): number => 16 + Math.min(depth, 6) * 10;

function Hatch() {
  return (
    <defs>
      <pattern id="asked" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
        <rect width="5" height="5" fill="var(--you-w)" />
        <rect width="2" height="5" fill="var(--you-m)" />
      </pattern>
    </defs>
  );
}

function Fold({ x, height }: { x: number; height: number }) {
  return (
    <g>
      <path d={`M${x - 4} ${height}l8 -${height}`} stroke="var(--surface)" stroke-width="6" />
      <path d={`M${x - 7} ${height}l8 -${height}M${x - 1} ${height}l8 -${height}`} stroke="var(--line-strong)" />
    </g>
  );
}

const COLOURS: Readonly<Record<string, string>> = {
  failed: "var(--bad-m)",
  dead: "var(--bad-m)",
  cancelling: "var(--bad-m)",
  cancelled: "var(--idle-m)",
  completed: "var(--done-m)",
};

interface BarsOf {
  model: RunModel;
  id: string;
  x: (at: number) => number;
  y: number;
  left: number;
}

function Bars({ model, id, x, y, left }: BarsOf) {
  const state = model.whole.value;
  const task = state.tasks.get(id);
  if (task === undefined) return null;
  const end = task.endedAt ?? model.end.value;
  const colour = COLOURS[task.state] ?? "var(--live-m)";
  const begun = task.attempts > 0;
  const children = task.children.map((child) => state.tasks.get(child) as Task);
  const on = model.shownId.value === id;
  return (
    <g>
      <text class={on ? "rowname on" : "rowname"} x={labelX(task.depth)} y={y + 8.5}>
        {shortened(holders(task).join(" → "), left - labelX(task.depth) - 8)}
      </text>
      <Queued task={task} x={x} y={y} end={model.end.value} />
      {begun && <rect x={x(task.startedAt)} y={y} width={wide(x, task.startedAt, end, 3)} height={BAR} rx="3" fill={colour} opacity={children.length > 0 ? 0.28 : 0.9} />}
      {begun &&
        children.length > 0 &&
        ownWork(task, children, task.startedAt, end).map(([from, to]) => (
          <rect key={from} x={x(from)} y={y} width={wide(x, from, to, 1.5)} height={BAR} rx="2" fill={colour} opacity=".9" />
        ))}
      {task.waits.map((wait) => (
        <Waiting key={wait.from} task={task} wait={wait} x={x} y={y} end={end} />
      ))}
      <Marks task={task} x={x} y={y} />
    </g>
  );
}

function shortened(name: string, room: number): string {
  const most = Math.max(4, Math.floor(room / 6.2));
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

const wide = (x: (at: number) => number, from: number, to: number, least: number): number => Math.max(least, x(to) - x(from));

/** In the queue: a thin grey line. */
function Queued({ task, x, y, end }: { task: Task; x: (at: number) => number; y: number; end: number }) {
  const until = task.attempts > 0 ? task.startedAt : isOver(task.state) ? (task.endedAt ?? end) : end;
  if (until <= task.askedAt) return null;
  return <rect x={x(task.askedAt)} y={y + 3.5} width={wide(x, task.askedAt, until, 1)} height="3" rx="1.5" fill="var(--idle-m)" opacity=".6" />;
}

/** Waiting: hatched violet for a person, a thin line for anything else. */
function Waiting({ task, wait, x, y, end }: { task: Task; wait: Wait; x: (at: number) => number; y: number; end: number }) {
  const width = wide(x, wait.from, wait.to ?? end, 2);
  if (waitsForPerson(task, wait))
    return <rect x={x(wait.from)} y={y} width={width} height={BAR} rx="2" fill="url(#asked)" stroke="var(--you-m)" stroke-width=".75" />;
  return (
    <g>
      <rect x={x(wait.from)} y={y} width={width} height={BAR} fill="var(--surface)" />
      <rect x={x(wait.from)} y={y + 3.5} width={width} height="3" rx="1.5" fill="var(--idle-m)" opacity=".6" />
    </g>
  );
}

function Marks({ task, x, y }: { task: Task; x: (at: number) => number; y: number }) {
  return (
    <>
      {task.trail.map((one) => (
        <path key={one.at} d={`M${x(one.at)} ${y - 2}v${BAR + 4}`} stroke="var(--pass-t)" stroke-width="2" />
      ))}
      {task.retries.map((one) => (
        <path key={one.at} d={`M${x(one.at)} ${y - 1}v${BAR + 2}`} stroke="var(--bad-t)" stroke-width="2" />
      ))}
      {task.refusals.map((one, at) => (
        <circle key={at} cx={x(one.at)} cy={y + BAR / 2} r="3.2" fill="var(--surface)" stroke="var(--bad-m)" stroke-width="1.6" />
      ))}
    </>
  );
}
