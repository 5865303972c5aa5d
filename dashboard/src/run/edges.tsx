// Edges of the tree. Each one is a grant: the pale band is what was set aside, the core what was spent.
import { useComputed } from "@preact/signals";
import type { Task } from "../fold/state";
import { money } from "../parts/money";
import { isAlive } from "./look";
import type { Box, ChipBox, NodeBox, StackBox } from "./layout";
import type { RunModel } from "./model";

const END = 6; // room for the ring

function pathOf(box: Box): string {
  const from = box.from as Box;
  const x1 = from.x + from.width;
  const y1 = from.y + from.height / 2;
  const x2 = box.x - END;
  const y2 = box.y + box.height / 2;
  if (Math.abs(y1 - y2) < 1) return `M${x1} ${y1}H${x2}`;
  return `M${x1} ${y1}C${x1 + 22} ${y1} ${x1 - 2} ${y2} ${x1 + 32} ${y2}H${x2}`;
}

interface EdgeOf<B extends Box> {
  model: RunModel;
  box: B;
}

interface Widths {
  readonly band: number; // 0: it shares its asker's money
  readonly core: number;
  readonly hot: boolean;
}

function widthsOf(task: Task, whole: number): Widths {
  const share = (amount: number, of: number) => Math.min(1, of > 0 ? amount / of : 0);
  const band = task.granted === undefined ? 0 : 3 + 15 * share(task.granted, whole);
  const most = band > 0 ? band - 2 : 14;
  const core = task.total > 0 ? Math.max(1.6, most * share(task.total, task.granted ?? whole)) : 0;
  return { band, core, hot: task.granted !== undefined && task.total > 0.8 * task.granted };
}

function colourOf(task: Task): string {
  if (task.state === "failed" || task.state === "dead") return "var(--bad-m)";
  return isAlive(task) ? "var(--live-m)" : "var(--line-strong)";
}

/** What an edge says: what the task may see, and when its turn is over, what it saw and what was withheld. */
export function labelOf(task: Task, shows: "context" | "money"): [text: string, less: string, cash: boolean] {
  if (shows === "money") return task.granted === undefined ? ["shared", "", false] : [money(task.granted), "", true];
  const receipt = task.receipt ?? task.sofar ?? task.trail.at(-1)?.receipt;
  if (receipt === undefined) return [task.sees.length > 0 ? task.sees.join(" ") : "task only", "", false];
  const slices = receipt.saw.length + receipt.unlisted;
  return [`${slices} ctx · ${receipt.tokens}`, receipt.withheld.length > 0 ? `−${receipt.withheld.length}` : "", false];
}

const LETTER = 6.35; // the width of a letter of the label
const LONGEST = 15;

/** The label of an edge. Labels are drawn after all edges, so that no edge crosses one. */
export function LabelView({ model, box }: EdgeOf<NodeBox | StackBox>) {
  const id = box.kind === "node" ? box.task : (box.members[0] as string);
  const task = useComputed(() => model.state.value.tasks.get(id)).value;
  if (task === undefined || box.from === undefined) return null;
  const { band, core } = widthsOf(task, model.measure.value);
  return <Label task={task} model={model} box={box} core={Math.max(core, band)} />;
}

function Label({ task, model, box, core }: { task: Task; model: RunModel; box: Box; core: number }) {
  const [whole, less, cash] = labelOf(task, model.labels.value);
  const text = whole.length > LONGEST ? `${whole.slice(0, LONGEST - 1)}…` : whole;
  const width = (text.length + (less === "" ? 0 : less.length + 0.8)) * LETTER + 10;
  const y = box.y + box.height / 2 - 21 - core / 2;
  return (
    <g class="tag" transform={`translate(${box.x - width - 10} ${y})`}>
      <rect width={width} height="16" rx="4" />
      <text x="5" y="11.5">
        <tspan class={cash ? "cash" : ""}>{text}</tspan>
        {less !== "" && (
          <tspan class="less" dx="5">
            {less}
          </tspan>
        )}
      </text>
    </g>
  );
}

function Grant({ model, box, task }: EdgeOf<NodeBox | StackBox> & { task: Task }) {
  const d = pathOf(box);
  const { band, core, hot } = widthsOf(task, model.measure.value);
  const colour = colourOf(task);
  const y = box.y + box.height / 2;
  const paid = hot ? "var(--bad-m)" : "var(--cash-m)";
  return (
    <g fill="none">
      {band > 0 && <path d={d} stroke="var(--cash-m)" stroke-width={band} opacity=".2" />}
      <path d={d} stroke={colour} stroke-width="1.5" />
      {core > 0 && <path class="core" d={d} stroke={paid} stroke-width={core} opacity=".85" />}
      <circle cx={box.x - 4} cy={y} r="3.5" fill="var(--surface)" stroke={core > 0 ? paid : colour} stroke-width="1.6" />
    </g>
  );
}

export function EdgeView({ model, box }: EdgeOf<NodeBox>) {
  const task = useComputed(() => model.state.value.tasks.get(box.task)).value;
  return task === undefined || box.from === undefined ? null : <Grant model={model} box={box} task={task} />;
}

export function StackEdge({ model, box }: EdgeOf<StackBox>) {
  const { tasks } = model.state.value;
  const members = box.members.map((id) => tasks.get(id)).filter((task): task is Task => task !== undefined);
  const first = members[0];
  if (first === undefined) return null;
  const sum = (what: (task: Task) => number) => members.reduce((total, task) => total + what(task), 0);
  const granted = first.granted === undefined ? undefined : sum((task) => task.granted ?? 0);
  const alive = members.find(isAlive);
  const all: Task = { ...first, state: alive?.state ?? first.state, total: sum((task) => task.total), granted };
  return <Grant model={model} box={box} task={all} />;
}

export function RefusedEdge({ model, box }: EdgeOf<ChipBox>) {
  const asker = useComputed(() => model.state.value.tasks.get(box.asker)).value;
  const known = asker?.refusals.some((one) => one.to === box.to && one.rule === box.rule) ?? false;
  return known ? <path class="refusededge" d={pathOf(box)} /> : null;
}

/** Arcs from every node that read a context key to the next one that did. */
export function Arcs({ model, boxes }: { model: RunModel; boxes: readonly Box[] }) {
  const key = model.hovered.value;
  if (key === "") return null;
  const { tasks } = model.state.value;
  const read = boxes.filter((box): box is NodeBox => box.kind === "node" && reads(tasks.get(box.task), key));
  return (
    <g class="arcs">
      {read.map((box) => (
        <rect key={box.key} x={box.x - 4} y={box.y - 4} width={box.width + 8} height={box.height + 8} rx="13" />
      ))}
      {read.slice(1).map((box, at) => (
        <path key={box.key} d={arc(read[at] as NodeBox, box)} />
      ))}
    </g>
  );
}

function reads(task: Task | undefined, key: string): boolean {
  if (task === undefined) return false;
  const receipts = [task.receipt, task.sofar, ...task.trail.map((one) => one.receipt)];
  return receipts.some((one) => one?.saw.some((slice) => slice.what === key));
}

function arc(one: Box, other: Box): string {
  const x1 = one.x + one.width / 2;
  const y1 = one.y + one.height;
  const x2 = other.x + other.width / 2;
  const y2 = other.y + other.height;
  const bow = Math.max(y1, y2) + 34;
  return `M${x1} ${y1}C${x1} ${bow} ${x2} ${bow} ${x2} ${y2}`;
}
