// Where the nodes of the tree stand: left to right, a parent in the middle of what is below it. Refused hops are leaves
// of their asker; many equal children that asked nobody are one stack.

import type { Refusal, RunState, Task } from "../fold/state";

export const WIDTH = 192;
export const HEIGHT = 52;
export const GAP = 118;
export const ROW = 12;
export const CHIP_WIDTH = 156;
export const CHIP_HEIGHT = 28;
export const STACKED = 8; // more of the same agent are one stack
const TALL = 700;
const RIM = 10; // the upper edge of a stack, and the tab of a node that changed hands

interface Place {
  x: number;
  y: number;
  readonly width: number;
  readonly height: number;
  readonly from: Box | undefined;
  readonly key: string;
}
export interface NodeBox extends Place {
  readonly kind: "node";
  readonly task: string;
  readonly depth: number;
}
export interface StackBox extends Place {
  readonly kind: "stack";
  readonly agent: string;
  readonly members: readonly string[];
  readonly depth: number;
}
export interface ChipBox extends Place {
  readonly kind: "chip";
  readonly asker: string;
  readonly to: string;
  readonly rule: string;
}
export type Box = NodeBox | StackBox | ChipBox;

export interface Layout {
  readonly boxes: readonly Box[];
  readonly width: number;
  readonly height: number;
}

type Below = { at: number } & ({ task: Task } | { stack: Task[] } | { refusal: Refusal });

// What stands below a task, in the order in which it was asked for.
export function below(state: RunState, task: Task): Below[] {
  const children = task.children.map((id) => state.tasks.get(id) as Task);
  const stacks = stacked(children);
  const inside = new Set(stacks.flat());
  const chips = new Map<string, Refusal>();
  for (const one of task.refusals) if (!chips.has(`${one.rule} ${one.to}`)) chips.set(`${one.rule} ${one.to}`, one);
  const found: Below[] = [
    ...children.filter((child) => !inside.has(child)).map((child) => ({ at: child.askedAt, task: child })),
    ...stacks.map((stack) => ({ at: (stack[0] as Task).askedAt, stack })),
    ...[...chips.values()].map((refusal) => ({ at: refusal.at, refusal })),
  ];
  return found.sort((one, other) => one.at - other.at);
}

function stacked(children: readonly Task[]): Task[][] {
  if (children.length <= STACKED) return [];
  const agents = new Map<string, Task[]>();
  for (const child of children) {
    if (child.children.length > 0 || child.refusals.length > 0 || child.trail.length > 0) continue;
    const same = agents.get(child.agent);
    if (same === undefined) agents.set(child.agent, [child]);
    else same.push(child);
  }
  return [...agents.values()].filter((same) => same.length > STACKED);
}

export const stackKey = (parent: string, agent: string): string => `stack ${parent} ${agent}`;

export function layout(state: RunState): Layout {
  const boxes: Box[] = [];
  let y = RIM;
  const leaf = (box: Box): Box => {
    boxes.push(box);
    y = box.y + box.height + ROW;
    return box;
  };
  const place = (task: Task, depth: number, from: Box | undefined): Box => {
    const x = depth * (WIDTH + GAP);
    const box: NodeBox = { kind: "node", key: task.id, task: task.id, depth, x, y, width: WIDTH, height: HEIGHT, from };
    const first = boxes.length;
    const start = y;
    boxes.push(box);
    const right = x + WIDTH + GAP;
    const under = below(state, task).map((one): Box => {
      if ("task" in one) return place(one.task, depth + 1, box);
      if ("refusal" in one) return leaf(chip(one.refusal, task.id, right, y, box));
      return leaf(stack(one.stack, depth + 1, right, y + RIM, box));
    });
    const moved = centre(box, under, boxes, first, start + (task.trail.length > 0 ? RIM / 2 : 0));
    y = Math.max(y + moved, box.y + HEIGHT + ROW);
    return box;
  };
  const root = state.tasks.get(state.root);
  if (root === undefined) return { boxes, width: 0, height: 0 };
  place(root, 0, undefined);
  let width = 0;
  let height = 0;
  for (const box of boxes) {
    width = Math.max(width, box.x + box.width);
    height = Math.max(height, box.y + box.height);
  }
  return { boxes, width, height };
}

// Put a box in the middle of what is below it (at the top, if that is higher than a screen, so that it is in sight), and move all of it down if it would stand too high. Return by how much.
function centre(box: NodeBox, under: readonly Box[], boxes: Box[], first: number, start: number): number {
  const top = under[0];
  const bottom = under.at(-1);
  if (top === undefined || bottom === undefined) box.y = start;
  else if (bottom.y - top.y > TALL) box.y = top.y;
  else box.y = (top.y + bottom.y + bottom.height) / 2 - HEIGHT / 2;
  const lacking = Math.max(0, start - box.y);
  if (lacking > 0) for (let at = first; at < boxes.length; at++) (boxes[at] as Box).y += lacking;
  return lacking;
}

function chip(refusal: Refusal, asker: string, x: number, y: number, from: Box): ChipBox {
  const { to, rule } = refusal;
  const key = `chip ${asker} ${rule} ${to}`;
  return { kind: "chip", key, asker, to, rule, x, y, width: CHIP_WIDTH, height: CHIP_HEIGHT, from };
}

function stack(tasks: readonly Task[], depth: number, x: number, y: number, from: Box): StackBox {
  const { parent, agent } = tasks[0] as Task;
  const members = tasks.map((one) => one.id);
  const key = stackKey(parent, agent);
  return { kind: "stack", key, agent, members, depth, x, y, width: WIDTH, height: HEIGHT, from };
}
