// The state of a run is a fold over its events. `apply` is one step; it changes the state it is given.

import type { JournalEvent } from "./events";
import { isOver, TRANSITIONS } from "./lifecycle";
import * as money from "./money";
import * as people from "./people";
import * as plans from "./plans";
import { own, type RunState, type Task } from "./state";
import * as tasks from "./tasks";
import * as work from "./work";

type Reader = (state: RunState, task: Task, event: JournalEvent) => void;

const MOVES = new Set(Object.values(TRANSITIONS).flatMap((moves) => Object.keys(moves)));

// Events that may follow a task's end: running calls are recorded and charged then, and questions withdrawn.
const AFTERWARDS: Readonly<Record<string, Reader>> = {
  "hold.settled": money.pay,
  "hold.reconciled": money.pay,
  "hold.released": money.release,
  "credits.spent": money.pay,
  "tokens.used": money.useTokens,
  "lease.raised": money.raise,
  "question.asked": people.ask,
  "question.answered": people.answer,
  "question.used": people.use,
  "model.answered": work.askModel,
  "model.failed": work.askModel,
  "tool.done": work.endTool,
  "message.sent": work.send,
  "messages.taken": work.take,
  "entry.set": work.write,
  "artifact.saved": work.save,
};

const WHILE_OPEN: Readonly<Record<string, Reader>> = {
  "hold.placed": money.place,
  "hop.refused": tasks.refuse,
  "plan.started": plans.beginPlan,
  "step.ended": plans.endUnstarted,
  "tool.begun": work.beginTool,
  "turn.began": work.beginTurn,
  "work.left": work.leave,
  "session.recalled": work.recall,
};

export function apply(state: RunState, event: JournalEvent): void {
  if (state.count === 0) state.first = event.at;
  state.count++;
  state.seq = event.seq;
  state.last = Math.max(state.last, event.at);
  if (event.kind in TRANSITIONS[""]) return tasks.begin(state, event);
  if (event.kind === "breaker.set") setBreaker(state, event);
  const task = reads(event.kind) ? own(state, event.task) : undefined;
  if (task === undefined) return;
  const afterwards = AFTERWARDS[event.kind];
  if (afterwards !== undefined) return afterwards(state, task, event);
  if (isOver(task.state)) return;
  if (MOVES.has(event.kind)) return tasks.move(state, task, event);
  if (event.kind === "work.kept") return plans.keepWork(state, event);
  WHILE_OPEN[event.kind]?.(state, task, event);
}

const reads = (kind: string): boolean =>
  kind in AFTERWARDS || kind in WHILE_OPEN || MOVES.has(kind) || kind === "work.kept";

function setBreaker(state: RunState, event: JournalEvent): void {
  const { name, state: now, why, until } = event.data;
  state.breakers.set(name, { name, state: now, why, until });
}

export function fold(events: readonly JournalEvent[], from: RunState): RunState {
  for (const event of events) apply(from, event);
  return from;
}
