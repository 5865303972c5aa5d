// How a task looks: its tone, its sign, its words.
import { isOver } from "../fold/lifecycle";
import { openQuestion, type Task } from "../fold/state";
import type { Sign, Tone } from "../parts/pill";

const TONES: Readonly<Record<string, Tone>> = {
  running: "live",
  waiting: "idle",
  pending: "idle",
  cancelling: "bad",
  completed: "done",
  failed: "bad",
  dead: "bad",
  cancelled: "idle",
};

export const toneOf = (task: Task): Tone => (openQuestion(task) !== undefined ? "you" : (TONES[task.state] ?? "idle"));

/** A running task whose worker is gone is hollow. */
export function signOf(task: Task, workers: ReadonlySet<string> | null): Sign {
  const tone = toneOf(task);
  const lost = tone === "live" && workers !== null && task.worker !== "" && !workers.has(task.worker);
  return lost ? "gone" : tone;
}

const WAITS: Readonly<Record<string, string>> = {
  person: "waits for you",
  task: "waits for a task",
  slot: "waits for a slot",
  money: "waits for money",
  model: "waits for a model",
};

export function wordOf(task: Task): string {
  if (openQuestion(task) !== undefined) return "waits for you";
  if (task.state === "waiting") return WAITS[task.waits.at(-1)?.why ?? ""] ?? "waiting";
  if (task.state === "pending") return task.attempts > 0 ? "queued again" : "queued";
  if (task.state === "dead") return "given up";
  return task.state;
}

/** The first line of a task, without the marks of a heading. */
export const titleOf = (task: Task): string => {
  if (task.title !== "") return task.title;
  const line = task.text.split("\n", 1)[0] as string;
  return line.replace(/^# (Task: )?/, "").slice(0, 400);
};

/** Why a task failed, without its own name. */
export const errorOf = (task: Task): string => task.error.replace(/^'[^']{0,200}' (failed|was cancelled|died): /, "");

export function elapsed(task: Task, now: number): number {
  if (task.attempts === 0) return 0;
  return Math.max(0, (task.endedAt ?? now) - task.startedAt);
}

export const isAlive = (task: Task): boolean => !isOver(task.state);
