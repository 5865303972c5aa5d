// The list of runs as the events of the journal change it. Pure: rows and an event in, rows out.
import { grouped } from "../parts/grouped";
import type { Event, Json, RunRow, TaskRow } from "../shapes";

/** A task of a run, as a dot. */
export interface Dot {
  id: string;
  parent: string;
  agent: string;
  state: string;
  asks: boolean; // a person is waited for
}

export interface Listed extends RunRow {
  dots: Dot[];
  asking: number; // open questions
}

const ENDS: Record<string, string> = {
  "task.completed": "completed",
  "task.failed": "failed",
  "task.cancelled": "cancelled",
  "task.died": "dead",
};
const STATES: Record<string, string> = {
  ...ENDS,
  "task.claimed": "running",
  "task.resumed": "running",
  "task.waiting": "waiting",
  "task.parked": "waiting",
  "task.cancelling": "cancelling",
  "task.queued": "pending",
  "task.released": "pending",
  "task.retrying": "pending",
  "task.lost": "pending",
};
const PAYS = new Set(["credits.spent", "hold.settled", "hold.reconciled"]);
const FREES = new Set(["hold.settled", "hold.released"]);
export const OVER = new Set(Object.values(ENDS));

/** Return rows of the server with the tasks that are known. */
export function listed(runs: RunRow[], tasks: TaskRow[], asking: ReadonlyMap<string, string>): Listed[] {
  const byRun = grouped(tasks, (task) => task.run);
  const waits = [...asking];
  return runs.map((run) => ({
    ...run,
    asking: waits.filter(([, of]) => of === run.id).length,
    dots: (byRun.get(run.id) ?? [])
      .toSorted((one, other) => one.began - other.began)
      .map(({ id, parent, agent, state }) => ({ id, parent, agent, state, asks: asking.has(id) })),
  }));
}

/** Return the row of a run that has just begun. */
function begun(event: Event): Listed {
  const { data } = event;
  const opens = (data.opens ?? []) as [string, string, number][];
  return {
    id: event.run,
    state: event.kind === "task.started" ? "running" : "pending",
    agent: event.agent,
    task: text(data.task),
    session: event.session,
    tasks: 0,
    handoffs: 0,
    tokens: 0,
    credits: 0,
    refused: 0,
    by: text(data.by),
    tags: [],
    asked_at: event.at,
    ended_at: null,
    granted: opens.find(([unit]) => unit === "credits")?.[2] ?? null,
    held: 0,
    seen_at: event.at,
    stalled: false,
    dots: [],
    asking: 0,
  };
}

const text = (value: Json | undefined): string => (typeof value === "string" ? value : "");
const amount = (value: Json | undefined): number =>
  value && typeof value === "object" && !Array.isArray(value) ? Number(value.credits ?? 0) : 0;

/** Return a run after an event of it. */
export function after(run: Listed, event: Event): Listed {
  const next: Listed = { ...run, seen_at: event.at, stalled: false };
  const isRoot = event.task === run.id;
  const { kind, data } = event;
  if (kind === "task.started" || kind === "task.submitted") {
    if (run.dots.some((one) => one.id === event.task)) return next;
    const state = kind === "task.started" ? "running" : "pending";
    next.tasks = run.tasks + 1;
    next.dots = [...run.dots, { id: event.task, parent: text(data.parent), agent: event.agent, state, asks: false }];
  } else if (STATES[kind] !== undefined) {
    const state = STATES[kind];
    next.dots = changed(run.dots, event.task, { state, ...(OVER.has(state) ? { asks: false } : {}) });
    if (isRoot) next.state = state;
    if (isRoot && OVER.has(state)) next.ended_at = event.at;
  } else if (kind === "task.handed") {
    next.handoffs = run.handoffs + 1;
    const to = text(data.to) || event.agent;
    next.dots = changed(run.dots, event.task, { agent: to });
    if (isRoot) next.agent = to;
  } else if (kind === "hop.refused") next.refused = run.refused + 1;
  else if (kind === "tokens.used") next.tokens = run.tokens + Number(data.tokens ?? 0);
  else if (kind === "question.asked" || kind === "question.answered") {
    const asks = kind === "question.asked";
    next.asking = Math.max(0, run.asking + (asks ? 1 : -1));
    next.dots = changed(run.dots, event.task, { asks });
  } else if (kind === "hold.placed") next.held = (run.held ?? 0) + amount(data.amounts);
  else if (FREES.has(kind)) next.held = Math.max(0, (run.held ?? 0) - amount(data.amounts));
  else if (kind === "lease.raised" && run.granted != null) {
    const adds = (data.adds ?? []) as [string, number][];
    if (data.unit === "credits") next.granted = run.granted + (adds.find(([lease]) => lease === run.id)?.[1] ?? 0);
  }
  if (PAYS.has(kind)) next.credits = run.credits + amount(data.costs) - amount(data.charged);
  return next;
}

function changed(dots: Dot[], id: string, change: Partial<Dot>): Dot[] {
  return dots.map((one) => (one.id === id ? { ...one, ...change } : one));
}

/** Return the rows after events. A run that begins goes to the top if `takes` wants it. */
export function follow(rows: Listed[], events: readonly Event[], takes: (run: Listed) => boolean): Listed[] {
  const byRun = new Map(rows.map((row) => [row.id, row]));
  const fresh: Listed[] = [];
  for (const event of events) {
    if (!event.run) continue;
    const begins = event.task === event.run && (event.kind === "task.submitted" || event.kind === "task.started");
    if (begins && !byRun.has(event.run)) {
      const run = begun(event);
      if (!takes(run)) continue;
      byRun.set(run.id, run);
      fresh.unshift(run);
    }
    const run = byRun.get(event.run);
    if (run) byRun.set(run.id, after(run, event));
  }
  return [...fresh, ...rows].map((row) => byRun.get(row.id) ?? row);
}
