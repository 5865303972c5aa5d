// What a person can do with a run. Each act is a request of the public API and a command of the CLI.
import { call, sentenceOf } from "../api";
import type { Question, Task } from "../fold/state";
import { cli } from "../parts/copycli";
import { say } from "../parts/toast";
import { go } from "../router";
import type { RunModel } from "./model";

async function attempt<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    say(sentenceOf(error), { bad: true });
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
  const done = await attempt(() => call("POST", path, body));
  if (done !== undefined) say(DONE[verdict]);
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

export async function cancel(task: Task, why: string): Promise<void> {
  const path = `/v1/tasks/${encodeURIComponent(task.id)}/cancel`;
  const done = await attempt(() => call<{ cancelled: number }>("POST", path, { why }));
  if (done !== undefined) say(`Stopping ${done.cancelled} ${done.cancelled === 1 ? "task" : "tasks"}`);
}

export async function retry(task: Task, fromStep = ""): Promise<void> {
  const body = fromStep === "" ? {} : { from_step: fromStep };
  const path = `/v1/tasks/${encodeURIComponent(task.id)}/retry`;
  await open(() => call<{ id: string }>("POST", path, body));
}

export async function fork(model: RunModel, at: number, text: string): Promise<void> {
  const body = text === "" ? { at } : { at, task: text };
  await open(() => call<{ id: string }>("POST", `/v1/runs/${encodeURIComponent(model.id)}/fork`, body));
}

/** Show the run of a new task. */
async function open(act: () => Promise<{ id: string }>): Promise<void> {
  const made = await attempt(act);
  if (made === undefined) return;
  const status = await attempt(() => call<{ run: string }>("GET", `/v1/tasks/${encodeURIComponent(made.id)}`));
  if (status !== undefined) go(`/runs/${encodeURIComponent(status.run)}`);
}
