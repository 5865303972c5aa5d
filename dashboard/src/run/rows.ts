// The rows of the timeline, in the order of the tree: of a stack its first three, and one line for the rest.
import type { RunState, Task } from "../fold/state";
import { count } from "../parts/money";
import { below } from "./layout";

export type Row = { readonly kind: "task"; readonly task: Task } | { readonly kind: "more"; readonly depth: number; readonly text: string };
const SHOWN = 3;

export function rowsOf(state: RunState): Row[] {
  const rows: Row[] = [];
  const add = (task: Task): void => {
    rows.push({ kind: "task", task });
    for (const one of below(state, task)) {
      if ("task" in one) add(one.task);
      else if ("stack" in one) {
        for (const member of one.stack.slice(0, SHOWN)) rows.push({ kind: "task", task: member });
        const first = one.stack[0] as Task;
        const rest = one.stack.length - SHOWN;
        if (rest > 0) rows.push({ kind: "more", depth: first.depth, text: `and ${count(rest)} more ${first.agent}` });
      }
    }
  };
  const root = state.tasks.get(state.root);
  if (root !== undefined) add(root);
  return rows;
}

/** When a task worked itself: neither its children did, nor did it wait. */
export function ownWork(task: Task, children: readonly Task[], start: number, end: number): [number, number][] {
  const busy = [
    ...children.map((child): [number, number] => [child.startedAt, child.endedAt ?? end]),
    ...task.waits.map((wait): [number, number] => [wait.from, wait.to ?? end]),
  ].sort((one, other) => one[0] - other[0]);
  const found: [number, number][] = [];
  let at = start;
  for (const [from, to] of busy) {
    if (from > at) found.push([at, Math.min(from, end)]);
    at = Math.max(at, to);
  }
  if (at < end) found.push([at, end]);
  return found;
}

/** When a task waited for a person: the journal says so, or a question was open. */
export const waitsForPerson = (task: Task, wait: { from: number; why: string }): boolean =>
  wait.why === "person" || (wait.why === "" && task.questions.some((one) => one.at <= wait.from && (one.answeredAt ?? Infinity) >= wait.from));
