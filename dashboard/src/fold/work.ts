// Models and tools, messages, entries and files.

import type { JournalEvent } from "./events";
import type { ModelCall, ModelUse, RunState, Task, ToolUse } from "./state";
import { keep, receiptOf } from "./tasks";

const spelled = (namespace: string, key: string): string => `${namespace}/${key}`;

export function askModel(_state: RunState, task: Task, event: JournalEvent): void {
  const { model, usage = {}, cost, calls = [], elapsed = 0, why = "", said = "" } = event.data;
  const failed = event.kind === "model.failed";
  task.sofar = receiptOf(event.data.receipt) ?? task.sofar; // the first answer of a turn has one
  const tokens = (usage.input ?? 0) + (usage.output ?? 0);
  const at = task.models.findIndex((one) => one.agent === event.agent && one.model === model);
  const use = task.models[at] ?? { agent: event.agent, model, calls: 0, failed: 0, tokens: 0, credits: 0 };
  const after: ModelUse = {
    ...use,
    calls: use.calls + 1,
    failed: use.failed + (failed ? 1 : 0),
    tokens: use.tokens + (failed ? 0 : tokens),
    credits: use.credits + (failed ? 0 : (cost ?? 0)),
  };
  if (at < 0) task.models.push(after);
  else task.models[at] = after;
  const error = failed ? [why, said].filter((one) => one !== "").join(": ") : "";
  task.calls.push({ at: event.at, agent: event.agent, model, tokens, cost, elapsed, ...kept(event), tools: calls, error });
}

const GATEWAY = new Set(["messages", "chat", "responses", "gemini"]); // the formats in which programs ask

// The answer as its framework wrote it, which is the result of the operation; `null` if it is long and kept elsewhere.
function kept({ answer }: JournalEvent): Pick<ModelCall, "answer" | "told" | "passed"> {
  if (typeof answer === "string") return { answer: answer.startsWith("blob:") ? null : answer, told: null, passed: false };
  const { text = null, told = null, framework = "" } = (answer ?? {}) as { text?: unknown; told?: unknown; framework?: string };
  return { answer: text, told, passed: GATEWAY.has(framework) };
}

export function beginTool(_state: RunState, task: Task, event: JournalEvent): void {
  const { tool, call, given } = event.data;
  const running = { tool, call, given, outcome: "running", result: "", elapsed: 0, place: "" };
  task.tools.push({ ...running, at: event.at, agent: event.agent, turn: task.trail.length });
}

export function endTool(_state: RunState, task: Task, event: JournalEvent): void {
  const { tool, call, given, outcome, result = "", elapsed = 0, place = "" } = event.data;
  const begun = task.tools.findIndex((one) => one.outcome === "running" && one.call === call);
  if (begun >= 0) task.tools.splice(begun, 1);
  const use: ToolUse = { at: event.at, agent: event.agent, tool, call, given, outcome, result, elapsed, place, turn: task.trail.length };
  task.tools.push(use);
}

export function send(_state: RunState, task: Task, event: JournalEvent): void {
  const { id, text, to, about = "", trust } = event.data;
  task.sent.push({ at: event.at, id, from: event.agent, to, text, about, untrusted: trust === "untrusted" });
}

export function take(_state: RunState, task: Task, event: JournalEvent): void {
  task.taken.push(...event.data.ids);
}

export function write(_state: RunState, task: Task, event: JournalEvent): void {
  const { namespace, key, version, value, trust } = event.data;
  task.wrote.push({ at: event.at, what: spelled(namespace, key), version, value, untrusted: trust === "untrusted" });
}

export function save(_state: RunState, task: Task, event: JournalEvent): void {
  keep(task, event.data.artifacts);
}

export function leave(_state: RunState, task: Task, event: JournalEvent): void {
  task.leftOver.push(...event.data.left);
}

export function recall(_state: RunState, task: Task, event: JournalEvent): void {
  task.after = event.data.after.map((one: string[]) => one[0]);
}

// What a turn was given, while it runs.
export function beginTurn(_state: RunState, task: Task, event: JournalEvent): void {
  task.sofar = receiptOf(event.data.receipt ?? event.data) ?? task.sofar;
}
