// Money: what is set aside, held and spent. A task's total is its own spending and that of every task below it.

import type { JournalEvent } from "./events";
import { above, own, type RunState, type Task } from "./state";

function spend(state: RunState, task: Task, credits: number): void {
  task.credits += credits;
  task.total += credits;
  if (credits !== 0) for (const up of above(state, task)) (own(state, up.id) as Task).total += credits;
}

function hold(state: RunState, task: Task, credits: number): void {
  task.held += credits;
  task.totalHeld += credits;
  if (credits !== 0) for (const up of above(state, task)) (own(state, up.id) as Task).totalHeld += credits;
}

function unhold(state: RunState, task: Task, id: string): void {
  const at = task.holds.findIndex((one) => one.id === id);
  if (at < 0) return;
  hold(state, task, -(task.holds[at]?.credits ?? 0));
  task.holds.splice(at, 1);
}

export function place(state: RunState, task: Task, event: JournalEvent): void {
  const { hold: id, amounts, why, model = "" } = event.data;
  const credits = amounts.credits ?? 0;
  task.holds.push({ id, at: event.at, why, model, credits });
  hold(state, task, credits);
}

export function release(state: RunState, task: Task, event: JournalEvent): void {
  unhold(state, task, event.data.hold);
}

// A payment: with a hold, without one, or the correction of an earlier one.
export function pay(state: RunState, task: Task, event: JournalEvent): void {
  const { costs = {}, charged = {}, why = "", model = "", uncertain = false } = event.data;
  if (event.kind === "hold.settled") unhold(state, task, event.data.hold);
  const credits = (costs.credits ?? 0) - (charged.credits ?? 0);
  const tokens = (costs.tokens ?? 0) - (charged.tokens ?? 0);
  task.tokens += tokens;
  task.spends.push({ at: event.at, why, model, credits, tokens, uncertain });
  spend(state, task, credits);
}

export function useTokens(_state: RunState, task: Task, event: JournalEvent): void {
  task.tokens += event.data.tokens;
}

// A person gave a task more money. A lease has the id of the task that it was opened with.
export function raise(state: RunState, _task: Task, event: JournalEvent): void {
  if (event.data.unit !== "credits") return;
  for (const [lease, amount] of event.data.adds) {
    const task = own(state, lease);
    if (task?.granted !== undefined) task.granted += amount;
  }
}
