// Nodes of the tree: a task, a stack of equal tasks, a refused hop. They are pictures; the list beside the tree is what
// a keyboard and a screen reader use.
import { useComputed } from "@preact/signals";
import { holders, openQuestion, type Task } from "../fold/state";
import { money } from "../parts/money";
import { BurnLine, Glyph, type Tone } from "../parts/pill";
import { took } from "../parts/time";
import type { Box, ChipBox, NodeBox, StackBox } from "./layout";
import { elapsed, errorOf, isAlive, signOf, titleOf, toneOf } from "./look";
import type { RunModel } from "./model";

interface NodeOf<B extends Box> {
  model: RunModel;
  box: B;
}

const placed = ({ x, y, width, height }: Box) => ({
  left: `${x}px`,
  top: `${y}px`,
  width: `${width}px`,
  height: `${height}px`,
});

function Elapsed({ model, task }: { model: RunModel; task: Task }) {
  if (task.attempts === 0) return <span class="el">queued</span>;
  return <span class="el">{took(elapsed(task, isAlive(task) ? model.now.value : 0))}</span>;
}

function classes(model: RunModel, task: Task): string {
  const tone = toneOf(task);
  const on = model.shownId.value === task.id;
  const alive = task.state === "running" && !model.over.value && model.moment.value === null;
  const past = holders(task).length > 1;
  return `node t-${tone}${on ? " on" : ""}${alive ? " alive" : ""}${tone === "you" ? " asks" : ""}${
    task.state === "failed" || task.state === "dead" ? " failed" : ""
  }${past ? " handed" : ""}${task.state === "cancelled" ? " stopped" : ""}`;
}

export function NodeView({ model, box }: NodeOf<NodeBox>) {
  const task = useComputed(() => model.state.value.tasks.get(box.task)).value;
  if (task === undefined) return <NotYet model={model} box={box} />;
  const of = task.granted ?? model.granted.value;
  const paid = task.total > 0 || task.granted !== undefined || task.totalHeld > 0;
  return (
    <div class={classes(model, task)} style={placed(box)} data-key={box.key} data-task={task.id}>
      <span class="r1">
        <Glyph sign={signOf(task, model.workers.value)} />
        <Names task={task} />
        <Elapsed model={model} task={task} />
      </span>
      <span class="r2">
        <Line model={model} task={task} />
        {paid && <Amount task={task} />}
      </span>
      {paid && of !== undefined && <BurnLine of={of} spent={task.total} held={task.totalHeld} />}
    </div>
  );
}

/** What a task is about: what its model says while it speaks, why it failed, else the task itself. */
function Line({ model, task }: { model: RunModel; task: Task }) {
  const said = useComputed(() => model.saying(task.id)).value;
  if (said !== "" && isAlive(task)) return <Saying words={said} />;
  return <span class="tx">{task.state === "failed" ? <span class="er">{errorOf(task)}</span> : titleOf(task)}</span>;
}

const TAIL = 120; // characters, more than there is room for

/** The last words, in one line. */
export function Saying({ words }: { words: string }) {
  return (
    <span class="tx tail">
      <span>{words.slice(-TAIL).replace(/\s+/g, " ")}</span>
    </span>
  );
}

function Names({ task }: { task: Task }) {
  const all = holders(task);
  const tries = task.retries.length;
  return (
    <b class="nm">
      {all.length > 1 && <span class="was">{all.slice(0, -1).join(" → ")} → </span>}
      {task.agent}
      {tries > 0 && <span class="was"> try {task.attempts}</span>}
    </b>
  );
}

function Amount({ task }: { task: Task }) {
  return (
    <span class="am">
      {money(task.total)}
      {task.granted !== undefined && <span class="of"> / {money(task.granted)}</span>}
    </span>
  );
}

/** What is not yet at the moment that is shown. */
function NotYet({ model, box }: NodeOf<NodeBox>) {
  const task = model.whole.value.tasks.get(box.task);
  return (
    <div class="notyet" style={placed(box)}>
      {task === undefined ? "" : holders(task)[0]}
    </div>
  );
}

const ORDER: readonly [Tone, string][] = [
  ["done", "done"],
  ["live", "at work"],
  ["bad", "failed"],
  ["you", "wait for you"],
  ["idle", "queued"],
];

export interface Mix {
  readonly counts: ReadonlyMap<Tone, number>;
  readonly total: number;
  readonly spent: number;
}

export function mixOf(tasks: readonly Task[]): Mix {
  const counts = new Map<Tone, number>();
  let spent = 0;
  for (const task of tasks) {
    const tone = toneOf(task);
    counts.set(tone, (counts.get(tone) ?? 0) + 1);
    spent += task.total;
  }
  return { counts, total: tasks.length, spent };
}

export const mixText = ({ counts }: Mix): string =>
  ORDER.filter(([tone]) => counts.has(tone)).map(([tone, word]) => `${counts.get(tone)} ${word}`).join(", ");

const LOUDEST: readonly Tone[] = ["you", "live", "bad", "idle", "done"];
export const loudest = ({ counts }: Mix): Tone => LOUDEST.find((tone) => counts.has(tone)) ?? "idle";

/** More than eight of the same agent that asked nobody. */
export function StackView({ model, box }: NodeOf<StackBox>) {
  const state = model.state.value;
  const tasks = box.members.map((id) => state.tasks.get(id)).filter((task): task is Task => task !== undefined);
  if (tasks.length === 0) return <div class="notyet" style={placed(box)}>{box.agent} ×{box.members.length}</div>;
  const mix = mixOf(tasks);
  const on = model.chosen.value === box.key || box.members.includes(model.chosen.value);
  return (
    <div class={`node stacked t-${loudest(mix)}${on ? " on" : ""}`} style={placed(box)} data-key={box.key}>
      <span class="r1">
        <Glyph sign={loudest(mix)} />
        <b class="nm">
          {box.agent} <span class="was">×{mix.total}</span>
        </b>
        {mix.spent > 0 && <span class="am">{money(mix.spent)}</span>}
      </span>
      <span class="r2">
        <span class="tx">{mixText(mix)}</span>
      </span>
      <span class="mix">
        {ORDER.map(([tone]) => mix.counts.has(tone) && <i key={tone} class={`t-${tone}`} style={{ flexGrow: mix.counts.get(tone) }} />)}
      </span>
    </div>
  );
}

/** A refused hop stands where the node would be. Equal ones are counted. */
export function ChipView({ model, box }: NodeOf<ChipBox>) {
  const asker = useComputed(() => model.state.value.tasks.get(box.asker)).value;
  const same = asker?.refusals.filter((one) => one.to === box.to && one.rule === box.rule) ?? [];
  if (same.length === 0) return null;
  return (
    <div class="chip" style={placed(box)} data-key={box.key} title={same[0]?.sentence}>
      <Glyph sign="refused" />
      <b>
        <span class="cut">{box.to}</span>
        {same.length > 1 && ` ×${same.length}`}
      </b>
      <span class="rule">{box.rule}</span>
    </div>
  );
}

export const asks = (task: Task): boolean => openQuestion(task) !== undefined;
