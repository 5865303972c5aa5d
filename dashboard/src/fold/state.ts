// The state of a run at one moment. A state owns the tasks it has changed and shares all others with the state it was
// made from, so a checkpoint costs one map of references, and a task that did not change keeps its identity.

import type { TaskState } from "./lifecycle";

export interface Slice {
  readonly what: string;
  readonly why: string;
  readonly tokens: number;
  readonly version: number;
  readonly digest: string;
  readonly trust: string;
}

export interface Receipt {
  readonly saw: readonly Slice[];
  readonly tokens: number;
  readonly unlisted: number;
  readonly withheld: readonly (readonly [what: string, why: string])[];
}

export interface Refusal {
  readonly at: number;
  readonly to: string;
  readonly task: string;
  readonly rule: string;
  readonly sentence: string;
  readonly handoff: boolean;
  readonly turn: number;
  readonly asker: string;
  readonly credits: number; // what the task was to get
}

export interface Handoff {
  readonly at: number;
  readonly sender: string;
  readonly to: readonly string[];
  readonly elapsed: number;
  readonly phase: string;
  readonly receipt: Receipt | undefined;
  readonly parallel: boolean;
  readonly sentBack: string;
}

export interface Retry {
  readonly at: number;
  readonly attempt: number;
  readonly agent: string;
  readonly error: string;
  readonly receipt: Receipt | undefined;
  readonly turn: number;
}

export interface Question {
  readonly id: string;
  readonly kind: string;
  readonly text: string;
  readonly agent: string;
  readonly at: number;
  readonly until: number;
  readonly choices: readonly string[];
  readonly shows: Readonly<Record<string, unknown>>;
  readonly digest: string;
  readonly raises: { readonly unit: string; readonly adds: number } | undefined;
  readonly state: string;
  readonly by: string;
  readonly channel: string;
  readonly why: string;
  readonly value: unknown;
  readonly answeredAt: number | undefined;
  readonly used: boolean;
}

export interface Wait {
  readonly from: number;
  readonly to: number | undefined;
  readonly why: string; // "person", "task", "slot", "money", or "" if the journal does not say
  readonly id: string;
}

export interface Spend {
  readonly at: number;
  readonly why: string;
  readonly model: string;
  readonly credits: number;
  readonly tokens: number;
  readonly uncertain: boolean;
}

export interface Hold {
  readonly id: string;
  readonly at: number;
  readonly why: string;
  readonly model: string;
  readonly credits: number;
}

export interface ModelUse {
  readonly agent: string;
  readonly model: string;
  readonly calls: number;
  readonly failed: number;
  readonly tokens: number;
  readonly credits: number;
}

export interface ModelCall {
  readonly at: number;
  readonly agent: string;
  readonly model: string;
  readonly tokens: number;
  readonly cost: number | undefined;
  readonly elapsed: number;
  readonly answer: unknown; // in the format of its framework: `wordsOf` reads it; null if it is kept elsewhere
  readonly told: unknown; // what was new to the model, in the same format
  readonly passed: boolean; // a program asked, through the gateway: it runs its tools itself
  readonly tools: readonly string[];
  readonly error: string; // why it failed; "" if it answered
}

export interface ToolUse {
  readonly at: number;
  readonly agent: string;
  readonly tool: string;
  readonly call: string;
  readonly given: string;
  readonly outcome: string; // "running" until `tool.done`
  readonly result: string;
  readonly elapsed: number;
  readonly place: string;
  readonly turn: number;
}

export interface Sent {
  readonly at: number;
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly text: string;
  readonly about: string;
  readonly untrusted: boolean;
}

export interface Wrote {
  readonly at: number;
  readonly what: string;
  readonly version: number;
  readonly value: unknown;
  readonly untrusted: boolean;
}

export interface Artifact {
  readonly digest: string;
  readonly size: number;
  readonly name: string;
  readonly media: string;
}

export interface Step {
  readonly id: string;
  readonly title: string;
  readonly agent: string;
  readonly after: readonly string[];
  readonly state: string;
  readonly reason: string;
  readonly task: string;
  readonly tries: number;
  readonly planner: string;
}

export interface Task {
  gen: number; // the generation of states that may change this object
  id: string;
  parent: string;
  agent: string;
  text: string;
  chain: readonly string[];
  sees: readonly string[];
  step: string;
  title: string;
  how: string;
  by: string;
  origin: string;
  forked: { run: string; at: number; step?: string } | undefined;
  bounds: Readonly<Record<string, unknown>>;
  state: TaskState;
  askedAt: number;
  startedAt: number;
  endedAt: number | undefined;
  until: number;
  attempts: number;
  worker: string;
  turn: number;
  depth: number;
  untrusted: boolean;
  granted: number | undefined; // set aside for it; without, it shares its asker's money
  credits: number;
  tokens: number;
  held: number;
  total: number; // credits of this task and of those below it
  totalHeld: number;
  below: number; // open tasks below it
  receipt: Receipt | undefined;
  sofar: Receipt | undefined; // what the turn that runs has seen
  result: unknown;
  error: string;
  progress: string;
  cancelled: string; // why it is being cancelled
  moreRefused: number;
  children: string[];
  refusals: Refusal[];
  trail: Handoff[];
  retries: Retry[];
  questions: Question[];
  waits: Wait[];
  spends: Spend[];
  holds: Hold[];
  models: ModelUse[];
  calls: ModelCall[];
  tools: ToolUse[];
  sent: Sent[];
  taken: string[];
  wrote: Wrote[];
  artifacts: Artifact[];
  plans: Step[][];
  leftOver: string[];
  after: string[]; // earlier runs of its session that its model was given
}

export interface Breaker {
  readonly name: string;
  readonly state: string;
  readonly why: string;
  readonly until: number;
}

export interface RunState {
  gen: number;
  root: string; // the id of the first task, "" before it
  tasks: Map<string, Task>;
  breakers: Map<string, Breaker>;
  steps: Map<string, readonly [task: string, plan: number, step: number]>; // by the task that carries it out
  kept: Map<string, readonly [task: string, state: string]>; // steps that a fork took over, by origin and id
  asking: readonly string[]; // tasks with an open question, the oldest first
  first: number; // the time of the first event
  last: number; // and of the last
  seq: number;
  count: number; // events so far
  shape: number; // changes whenever the tree gets another node or chip
  open: number; // tasks that are not over
  refused: number;
  depth: number;
}

const ARRAYS = [
  "children",
  "refusals",
  "trail",
  "retries",
  "questions",
  "waits",
  "spends",
  "holds",
  "models",
  "calls",
  "tools",
  "sent",
  "taken",
  "wrote",
  "artifacts",
  "plans",
  "leftOver",
  "after",
] as const satisfies readonly (keyof Task)[];

let generations = 0;

export function empty(): RunState {
  return {
    gen: ++generations,
    root: "",
    tasks: new Map(),
    breakers: new Map(),
    steps: new Map(),
    kept: new Map(),
    asking: [],
    first: 0,
    last: 0,
    seq: 0,
    count: 0,
    shape: 0,
    open: 0,
    refused: 0,
    depth: 0,
  };
}

// Return a state that can go on without changing this one.
export function branch(state: RunState): RunState {
  return {
    ...state,
    gen: ++generations,
    tasks: new Map(state.tasks),
    breakers: new Map(state.breakers),
    steps: new Map(state.steps),
    kept: new Map(state.kept),
  };
}

// Return the task as an object that this state may change.
export function own(state: RunState, id: string): Task | undefined {
  const task = state.tasks.get(id);
  if (task === undefined || task.gen === state.gen) return task;
  const copy: Task = { ...task, gen: state.gen };
  for (const name of ARRAYS) if (copy[name].length > 0) copy[name] = copy[name].slice() as never;
    else copy[name] = [] as never;
  state.tasks.set(id, copy);
  return copy;
}

export const rootOf = (state: RunState): Task | undefined => state.tasks.get(state.root);

// The tasks of a run in the order of the tree.
export function walk(state: RunState, from = state.root): Task[] {
  const found: Task[] = [];
  const todo = state.tasks.has(from) ? [from] : [];
  while (todo.length > 0) {
    const task = state.tasks.get(todo.pop() as string) as Task;
    found.push(task);
    for (let at = task.children.length - 1; at >= 0; at--) todo.push(task.children[at] as string);
  }
  return found;
}

// The tasks above this one, the nearest first.
export function above(state: RunState, task: Task): Task[] {
  const found: Task[] = [];
  for (let up = state.tasks.get(task.parent); up !== undefined && found.length < 10_000; up = state.tasks.get(up.parent))
    found.push(up);
  return found;
}

export const holders = (task: Task): string[] => {
  const names = task.trail.filter((one) => !one.parallel && one.sentBack === "").map((one) => one.sender);
  return [...names, task.agent];
};
export const openQuestion = (task: Task): Question | undefined => task.questions.find((one) => one.state === "open");
