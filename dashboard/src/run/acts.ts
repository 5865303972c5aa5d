// What a person can do with a run. Each act is a request of the public API and a command of the CLI.
import { call } from "../api";
import type { Question, Task } from "../fold/state";
import { cli } from "../parts/copycli";
import { go } from "../router";
import type { RunModel } from "./model";

async function attempt<T>(model: RunModel, act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    model.say(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

export type Verdict = "approve" | "reject" | "answer";

export interface Decision {
  readonly verdict: Verdict;
  readonly why?: string;
  readonly value?: unknown;
}

const DONE: Readonly<Record<Verdict, string>> = { approve: "Approved", reject: "Rejected", answer: "Answered" };

/** Decide about exactly what the question showed: the digest goes along. */
export async function decide(model: RunModel, question: Question, { verdict, why, value }: Decision): Promise<void> {
  model.acting.value = { question: question.id, how: "sent" };
  const body: Record<string, unknown> = { digest: question.digest };
  if (why) body.why = why;
  if (value !== undefined) body.value = value;
  const path = `/v1/approvals/${encodeURIComponent(question.id)}/${verdict}`;
  const done = await attempt(model, () => call("POST", path, body));
  if (done !== undefined) model.say(DONE[verdict]);
  if (model.acting.value.question === question.id) model.acting.value = { question: "", how: "" };
}

export function decideCommand(question: Question, { verdict, why, value }: Decision): string {
  const words = [verdict, question.id];
  if (verdict === "answer") words.push(String(value));
  else if (typeof value === "string") words.push("--edit", value);
  else if (value !== undefined) words.push("--args", JSON.stringify(value));
  if (why) words.push("--why", why);
  return cli(...words);
}

export async function cancel(model: RunModel, task: Task, why: string): Promise<void> {
  const path = `/v1/tasks/${encodeURIComponent(task.id)}/cancel`;
  const done = await attempt(model, () => call<{ cancelled: number }>("POST", path, { why }));
  if (done !== undefined) model.say(`Stopping ${done.cancelled} ${done.cancelled === 1 ? "task" : "tasks"}`);
}

export async function retry(model: RunModel, task: Task, fromStep = ""): Promise<void> {
  const body = fromStep === "" ? {} : { from_step: fromStep };
  const path = `/v1/tasks/${encodeURIComponent(task.id)}/retry`;
  await open(model, () => call<{ id: string }>("POST", path, body));
}

export async function fork(model: RunModel, at: number, text: string): Promise<void> {
  const body = text === "" ? { at } : { at, task: text };
  await open(model, () => call<{ id: string }>("POST", `/v1/runs/${encodeURIComponent(model.id)}/fork`, body));
}

/** Show the run of a new task. */
async function open(model: RunModel, act: () => Promise<{ id: string }>): Promise<void> {
  const made = await attempt(model, act);
  if (made === undefined) return;
  const status = await attempt(model, () => call<{ run: string }>("GET", `/v1/tasks/${encodeURIComponent(made.id)}`));
  if (status !== undefined) go(`/runs/${encodeURIComponent(status.run)}`);
}
