// Tasks: how they begin, move and end.

import type { Data, JournalEvent } from "./events";
import { isOver, TRANSITIONS, type TaskState } from "./lifecycle";
import { above, own, type Receipt, type RunState, type Slice, type Task } from "./state";
import { beginStep, endStep, endPlans } from "./plans";

const GONE = "its process was gone";

export function receiptOf(data: Data | undefined): Receipt | undefined {
  if (data === undefined || data === null || Object.keys(data).length === 0) return undefined;
  const saw: Slice[] = (data.saw ?? []).map(([what, why, tokens, version, digest, trust]: unknown[]) => ({
    what,
    why,
    tokens,
    version,
    digest,
    trust: trust ?? "trusted",
  }));
  return { saw, tokens: data.tokens ?? 0, unlisted: data.unlisted ?? 0, withheld: data.withheld ?? [] };
}

// The text of a task with its data, as the agent gets it.
function textOf(data: Data): string {
  if (!("data" in data)) return data.task;
  const written = JSON.stringify(data.data);
  return data.task === "" ? written : `${data.task}\n\n${written}`;
}

export function begin(state: RunState, event: JournalEvent): void {
  if (state.tasks.has(event.task)) return;
  const task = beginning(state, event);
  const parent = own(state, task.parent);
  state.tasks.set(task.id, task);
  if (parent === undefined && state.root !== "") return; // of another tree
  if (parent === undefined) state.root = task.id;
  else {
    task.turn = parent.trail.length;
    task.depth = parent.depth + 1;
    parent.children.push(task.id);
    beginStep(state, parent, task);
  }
  state.shape++;
  state.depth = Math.max(state.depth, task.depth);
  opened(state, task, 1);
}

function beginning(state: RunState, event: JournalEvent): Task {
  const data = event.data;
  const begun = event.kind === "task.started";
  const carved = (data.opens ?? []).find((one: unknown[]) => one[0] === "credits" && one[1] === "carve");
  return {
    gen: state.gen,
    id: event.task,
    parent: data.parent,
    agent: event.agent,
    text: textOf(data),
    chain: data.chain,
    sees: data.sees ?? [],
    step: data.step ?? "",
    title: "",
    how: data.asked_how ?? "delegate",
    by: data.by ?? "",
    origin: data.origin ?? "",
    forked: data.forked,
    bounds: data.bounds ?? {},
    state: begun ? "running" : "pending",
    askedAt: event.at,
    startedAt: event.at,
    endedAt: undefined,
    until: data.until || data.bounds?.deadline || 0,
    attempts: begun ? 1 : 0,
    worker: data.worker ?? "",
    turn: 0,
    depth: 0,
    untrusted: data.trust === "untrusted",
    granted: carved?.[2],
    credits: 0,
    tokens: 0,
    held: 0,
    total: 0,
    totalHeld: 0,
    below: 0,
    receipt: undefined,
    sofar: undefined,
    result: undefined,
    error: "",
    progress: "",
    cancelled: "",
    moreRefused: 0,
    children: [],
    refusals: [],
    trail: [],
    retries: [],
    questions: [],
    waits: [],
    spends: [],
    holds: [],
    models: [],
    calls: [],
    tools: [],
    sent: [],
    taken: [],
    wrote: [],
    artifacts: [],
    plans: [],
    leftOver: [],
    after: [],
  };
}

// Count a task that begins (1) or ends (-1), in the run and in the tasks above it.
function opened(state: RunState, task: Task, by: 1 | -1): void {
  state.open += by;
  for (const up of above(state, task)) (own(state, up.id) as Task).below += by;
}

export function move(state: RunState, task: Task, event: JournalEvent): void {
  const after = (TRANSITIONS[task.state] as Record<string, TaskState>)[event.kind];
  if (after === undefined) return; // a damaged journal: `remit doctor` reports it
  NOTES[event.kind]?.(state, task, event);
  task.state = after;
  if (after !== "waiting") endWait(task, event.at);
  if (isOver(after)) {
    end(task, event);
    opened(state, task, -1);
    endStep(state, task);
  }
}

function endWait(task: Task, at: number): void {
  const wait = task.waits.at(-1);
  if (wait !== undefined && wait.to === undefined) task.waits[task.waits.length - 1] = { ...wait, to: at };
}

function end(task: Task, event: JournalEvent): void {
  const data = event.data;
  task.endedAt = event.at;
  task.result = data.result;
  task.error = data.error ?? "";
  task.receipt = receiptOf(data.receipt);
  task.progress = data.progress === undefined ? "" : progressOf(data.progress);
  task.tools = task.tools.filter((one) => one.outcome !== "running");
  if (data.artifacts !== undefined) keep(task, data.artifacts);
  turnEnded(task, data);
  endPlans(task, data.steps ?? []);
}

function progressOf({ text, fraction }: { text: string; fraction: number | null }): string {
  return fraction === null ? text : `${text} (${Math.floor(fraction * 100 + 1e-9)} %)`;
}

export function keep(task: Task, artifacts: Data[]): void {
  for (const one of artifacts)
    if (!task.artifacts.some((kept) => kept.digest === one.digest && kept.name === one.name))
      task.artifacts.push({ digest: one.digest, size: one.size, name: one.name, media: one.media_type });
}

function turnEnded(task: Task, data: Data): void {
  task.moreRefused += data.more_refused ?? 0;
}

type Note = (state: RunState, task: Task, event: JournalEvent) => void;

const cutShort = (task: Task, event: JournalEvent) => ({
  at: event.at,
  attempt: task.attempts,
  agent: event.agent,
  error: GONE,
  receipt: undefined,
  turn: task.trail.length,
});

const NOTES: Readonly<Record<string, Note>> = {
  "task.claimed": (_state, task, event) => {
    if (task.attempts === 0) task.startedAt = event.at;
    else if (task.state !== "pending") task.retries.push(cutShort(task, event));
    task.attempts = event.data.attempt;
    task.worker = event.data.worker;
  },
  "task.lost": (_state, task, event) => {
    if (task.attempts > 0) task.retries.push(cutShort(task, event));
  },
  "task.retrying": (_state, task, event) => {
    const { error = "", receipt } = event.data;
    const seen = receiptOf(receipt);
    task.retries.push({ ...cutShort(task, event), error, receipt: seen });
    turnEnded(task, event.data);
  },
  "task.waiting": (_state, task, event) => {
    const { for: why = "", id = "" } = event.data;
    task.waits.push({ from: event.at, to: undefined, why, id });
  },
  "task.cancelling": (_state, task, event) => {
    task.cancelled = event.data.why ?? "";
  },
  "task.handed": (_state, task, event) => {
    const data = event.data;
    const parallel = typeof data.to !== "string";
    const to: string[] = parallel ? data.to : [data.to];
    const began = task.trail.at(-1)?.at ?? task.startedAt;
    task.trail.push({
      at: event.at,
      sender: event.agent,
      to,
      elapsed: event.at - began,
      phase: data.update?.phase ?? "",
      receipt: receiptOf(data.receipt),
      parallel,
      sentBack: data.sent_back === undefined ? "" : data.sent_back.by || "a person",
    });
    const opens = (data.opens ?? []).find((one: unknown[]) => one[0] === "credits" && one[1] === "carve");
    if (opens !== undefined && task.granted === undefined) task.granted = opens[2];
    if (data.artifacts !== undefined) keep(task, data.artifacts);
    turnEnded(task, data);
    if (!parallel) task.agent = to[0] as string;
    task.sofar = undefined;
  },
};

export function refuse(state: RunState, task: Task, event: JournalEvent): void {
  const { to, task: text, rule, sentence, handoff = false, credits = 0 } = event.data;
  const known = task.refusals.some((one) => one.to === to && one.rule === rule);
  task.refusals.push({
    at: event.at,
    to,
    task: text,
    rule,
    sentence,
    handoff,
    turn: task.trail.length,
    asker: event.agent,
    credits,
  });
  state.refused++;
  if (!known) state.shape++;
}
