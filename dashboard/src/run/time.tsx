// Time: the money that is left, the bars of the tasks, and the scrubber, on one axis.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Mark } from "../fold/history";
import { money } from "../parts/money";
import { Pill } from "../parts/pill";
import { sinceStart, took } from "../parts/time";
import { type Axis, axis, type Tick, ticks } from "./axis";
import { ForkHere } from "./actions";
import { Gantt } from "./gantt";
import type { RunModel } from "./model";
import { type Row, rowsOf } from "./rows";

const RIGHT = 16;
const MONEY = 40;

function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useLayoutEffect(() => {
    const el = ref.current;
    if (el === null) return;
    const watch = new ResizeObserver(() => setWidth(el.clientWidth));
    watch.observe(el);
    return () => watch.disconnect();
  }, []);
  return { ref, width };
}

const kept = new WeakMap<RunModel, { shape: number; rows: Row[] }>();

/** The rows change with the shape of the tree only. */
function rowsNow(model: RunModel): Row[] {
  const whole = model.whole.value;
  const before = kept.get(model);
  if (before?.shape === whole.shape) return before.rows;
  const rows = rowsOf(whole);
  kept.set(model, { shape: whole.shape, rows });
  return rows;
}

export function Time({ model }: { model: RunModel }) {
  const { ref, width } = useWidth();
  const left = width < 520 ? 96 : 136;
  const room = width - left - RIGHT;
  const start = model.whole.value.first;
  const line = axis(model.history.times, start, model.end.value, room);
  const marks = ticks(line, start, room);
  const grab = (event: PointerEvent) => drag(event, (x) => model.showAt(x >= room - 3 ? Infinity : line.t(x)), left);
  return (
    <section class="time" ref={ref} aria-label="Time">
      <Top model={model} />
      <BurnDown model={model} axis={line} left={left} width={width} grab={grab} />
      <Gantt model={model} axis={line} rows={rowsNow(model)} ticks={marks} left={left} width={width} grab={grab} />
      <Scrubber model={model} axis={line} ticks={marks} left={left} width={width} grab={grab} />
    </section>
  );
}

/** Follow the pointer until it is let go. */
function drag(event: PointerEvent, show: (x: number) => void, left: number): void {
  const from = (event.currentTarget as Element).getBoundingClientRect().left + left;
  let frame = 0;
  const move = ({ clientX }: PointerEvent) => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => show(Math.max(0, clientX - from)));
  };
  const up = () => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
  };
  move(event);
  addEventListener("pointermove", move);
  addEventListener("pointerup", up);
}

function Top({ model }: { model: RunModel }) {
  const moment = model.moment.value;
  return (
    <div class="top-line">
      <h2 class="cap">Time</h2>
      {moment === null ? (
        <Pill tone={model.over.value ? "idle" : "live"}>{model.over.value ? "whole run" : "live"}</Pill>
      ) : (
        <>
          <span class="pill then">as it was at {sinceStart(moment.time, model.whole.value.first)}</span>
          <button type="button" class="button small" onClick={() => model.backToNow()}>
            Back to now
          </button>
          <ForkHere model={model} />
        </>
      )}
      <span class="hint">
        drag, or <kbd>[</kbd> <kbd>]</kbd> from event to event
      </span>
    </div>
  );
}

interface PartOf {
  model: RunModel;
  axis: Axis;
  left: number;
  width: number;
  grab: (event: PointerEvent) => void;
}

function BurnDown({ model, axis: line, left, width, grab }: PartOf) {
  const burn = model.history.burn;
  const most = Math.max(0, ...burn.map(([, , granted]) => granted));
  model.whole.value;
  if (most === 0) return null;
  const y = (amount: number) => 6 + (MONEY - 14) * (1 - Math.max(0, amount) / most);
  const end = left + line.x(model.end.value);
  const path = burnPath(burn, (at) => left + line.x(at), y) + `H${end.toFixed(1)}`;
  const root = model.root.value;
  const rest = root?.granted === undefined ? 0 : root.granted - root.total;
  const now = left + line.x(model.now.value);
  return (
    <svg height={MONEY} width={width} onPointerDown={grab} role="img" aria-label={`Money left: ${money(rest)}`}>
      <text class="rowname" x="16" y="17">
        Money left
      </text>
      <text class="n" x="16" y="31">
        {money(rest)}
        {width >= 520 && root?.granted !== undefined ? ` of ${money(root.granted)}` : ""}
      </text>
      <path class="rule" d={`M${left} ${y(0)}H${width - RIGHT}`} />
      <path d={`${path}V${y(0)}H${left}Z`} fill="var(--cash-w)" />
      <path d={path} fill="none" stroke="var(--cash-m)" stroke-width="1.75" stroke-linejoin="round" />
      <path class="playhead" d={`M${now} 0V${MONEY}`} />
    </svg>
  );
}

/** A line of steps; payments that fall on one pixel are one step. */
function burnPath(burn: readonly (readonly [number, number, number])[], x: (at: number) => number, y: (amount: number) => number): string {
  const parts: string[] = [];
  let before = -10;
  for (const [index, [at, spent, granted]] of burn.entries()) {
    const place = x(at);
    if (index > 0 && index < burn.length - 1 && place - before < 0.5) continue;
    before = place;
    const height = y(granted - spent).toFixed(1);
    parts.push(index === 0 ? `M${place.toFixed(1)} ${height}` : `H${place.toFixed(1)}V${height}`);
  }
  return parts.join("");
}

const MARKS: Readonly<Record<Mark["kind"], string>> = {
  asked: "var(--you-m)",
  handed: "var(--pass-m)",
  refused: "var(--bad-m)",
  failed: "var(--bad-m)",
  raised: "var(--cash-m)",
};

function Scrubber({ model, axis: line, ticks: labels, left, width, grab }: PartOf & { ticks: readonly Tick[] }) {
  const start = model.whole.value.first;
  const x = (at: number) => left + line.x(at);
  const now = x(model.now.value);
  const keys = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key];
    if (by !== undefined) model.step(by);
    else if (event.key === "End") model.backToNow();
    else if (event.key === "Home") model.showAt(start);
    else return;
    event.preventDefault();
  };
  return (
    <div
      class="scrubber"
      onKeyDown={keys}
      role="slider"
      tabIndex={0}
      aria-label="Moment of the run"
      aria-valuemin={0}
      aria-valuemax={Math.round((model.end.value - start) / 1000)}
      aria-valuenow={Math.round((model.now.value - start) / 1000)}
      aria-valuetext={sinceStart(model.now.value, start)}
    >
    <svg height="28" width={width} onPointerDown={grab} aria-hidden="true">
      <path d={`M${left} 6H${width - RIGHT}`} stroke="var(--line-strong)" stroke-width="2" />
      <path d={`M${left} 6H${now}`} stroke="var(--ink)" stroke-width="2" />
      <ScrubMarks marks={model.history.marks} x={x} />
      {line.stretches.map(
        (one) =>
          one.quiet && (
            <text key={one.from} class="n" x={left + one.x + one.width / 2} y="23" text-anchor="middle">
              ⋯ {took(one.to - one.from)} ⋯
            </text>
          ),
      )}
      {labels.map((tick) => (
        <text key={tick.at} class="n" x={x(tick.at)} y="23" text-anchor="middle">
          {tick.label}
        </text>
      ))}
      <circle class="knob" cx={now} cy="6" r="5.5" />
    </svg>
    </div>
  );
}

function ScrubMarks({ marks, x }: { marks: readonly Mark[]; x: (at: number) => number }) {
  const drawn = new Map<string, Mark>();
  for (const mark of marks) drawn.set(`${mark.kind} ${Math.round(x(mark.at))}`, mark);
  return (
    <>
      {[...drawn].map(([key, mark]) => (
        <path key={key} d={`M${x(mark.at).toFixed(1)} 1v10`} stroke={MARKS[mark.kind]} stroke-width="2.5" />
      ))}
    </>
  );
}
