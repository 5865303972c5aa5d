// The questions that people are asked: which are open, what may be changed, and sending a decision.
import { batch, signal } from "@preact/signals";
import { ApiError, call, route, sentenceOf } from "../api";
import { listen, onOpened } from "../stream";
import { dollars, written } from "../parts/said";
import { later, say } from "../parts/toast";
import type { Event, Json, Question } from "../shapes";

/** The open questions; undefined until they are known. */
export const open = signal<Question[] | undefined>(undefined);
export const trouble = signal<ApiError | undefined>(undefined);
/** Questions that were decided while this page looked, by whomever, so that they do not just vanish. */
export const settled = signal<Question[]>([]);
/** What this person decided and was not sent yet, or is on its way: the id of the question and a word for it. */
export const sending = signal<ReadonlyMap<string, string>>(new Map());

const KEPT = 20;
const TOGETHER = 150; // milliseconds in which several events cause one read
let asked = 0;
let reads = 0; // under way
let answers: Event[] = []; // that came meanwhile

/** Read the open questions. */
export async function load(): Promise<void> {
  const mine = ++asked;
  reads++;
  try {
    const { approvals } = await call<{ approvals: Question[] }>("GET", "/v1/approvals?limit=200");
    const ids = new Set(approvals.map((one) => one.id));
    const gone = await Promise.all((open.value ?? []).filter((one) => !ids.has(one.id)).slice(0, KEPT).map(readAgain));
    if (mine !== asked) return;
    batch(() => {
      open.value = approvals;
      trouble.value = undefined;
      settled.value = settled.value.filter((one) => !ids.has(one.id));
      for (const one of gone) if (one !== undefined && one.state !== "open") moveToSettled(one);
      answers.forEach(settle); // the list may be older than these
    });
  } catch (error) {
    if (mine === asked && error instanceof ApiError) trouble.value = error;
  } finally {
    if (--reads === 0) answers = [];
  }
}

/** Return a question that is not among the open ones any more, before its event has come; undefined if it was removed. */
async function readAgain({ id }: Question): Promise<Question | undefined> {
  try {
    return await call<Question>("GET", route("approvals", id));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Keep the open questions up to date. */
export function startQuestions(): () => void {
  void load();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => (timer ??= setTimeout(() => ((timer = undefined), void load()), TOGETHER));
  const stops = [
    listen((events) => {
      const answered = events.filter((event) => event.kind === "question.answered");
      answered.forEach(settle);
      if (reads > 0) answers.push(...answered);
      if (events.some((event) => event.kind === "question.asked")) soon();
    }),
    onOpened(soon),
  ];
  return () => {
    clearTimeout(timer);
    for (const stop of stops) stop();
  };
}

function settle(event: Event): void {
  const { question, state, by, channel, why, value } = event.data;
  const found = open.value?.find((one) => one.id === question);
  if (!found) return;
  moveToSettled({
    ...found,
    state: String(state),
    by: String(by),
    channel: String(channel),
    why: String(why),
    value: value ?? null,
    answered_at: event.at,
  });
}

function moveToSettled(question: Question): void {
  open.value = open.value?.filter((one) => one.id !== question.id);
  settled.value = [question, ...settled.value.filter((one) => one.id !== question.id)].slice(0, KEPT);
}


/** The text that a person starts to change. */
export function original(question: Question): string {
  const what = question.editable;
  return what === "amount" ? String(question.shows.proposed ?? "") : what ? written(question.shows[what]) : "";
}

/** Return the value of a changed text. Throws a sentence if it has the wrong form. */
export function changedValue(question: Question, text: string): Json {
  const what = question.editable;
  if (what === "task" || what === "amount") {
    if (!text.trim()) throw new Error(what === "task" ? "A task needs a text." : "Give an amount, such as $0.50.");
    return text.trim();
  }
  if (what === "result" && typeof question.shows.result === "string") return text;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    throw new Error(`This is not JSON: ${sentenceOf(error)}`, { cause: error });
  }
  if (what === "arguments" && (value === null || typeof value !== "object" || Array.isArray(value)))
    throw new Error("The arguments are a JSON object, in braces.");
  return value;
}

export type Verb = "approve" | "reject" | "answer";
const DOING: Record<Verb, string> = { approve: "approving", reject: "rejecting", answer: "answering" };
const DONE: Record<Verb, string> = { approve: "Approved", reject: "Rejected", answer: "Answered" };

/** Decide a question. It is sent after five seconds, unless the person takes it back. */
export function decide(question: Question, verb: Verb, said: { why?: string; value?: Json } = {}): void {
  if (sending.value.has(question.id)) return;
  mark(question.id, DOING[verb]);
  const text = `${DONE[verb]}: ${headline(question)}`;
  later(text, () => void sendNow(question, verb, said), () => mark(question.id, ""));
}

async function sendNow(question: Question, verb: Verb, said: { why?: string; value?: Json }): Promise<void> {
  try {
    await call("POST", route("approvals", question.id, verb), { digest: question.digest, ...said });
    await refresh(question);
  } catch (error) {
    say(`${headline(question)}: ${sentenceOf(error)}`, { bad: true });
    if (error instanceof ApiError && error.status === 409) await refresh(question).catch(() => undefined);
  } finally {
    mark(question.id, "");
  }
}

/** Read a question again, and show how it was decided. */
async function refresh(question: Question): Promise<void> {
  const fresh = await call<Question>("GET", route("approvals", question.id));
  if (fresh.state === "open") await load();
  else moveToSettled(fresh);
}

function mark(id: string, word: string): void {
  const next = new Map(sending.value);
  if (word) next.set(id, word);
  else next.delete(id);
  sending.value = next;
}

/** What a question is about, in a few words: for messages, where nothing else says who asks. */
export function headline(question: Question): string {
  return question.kind === "ask" ? `${question.agent} asks: ${question.text}` : title(question);
}

/** What stands below the title in lists. */
export function subtitle({ kind, agent, shows, text }: Question): string {
  if (kind === "ask") return `${agent} asks you`;
  if (kind === "tool") return text.slice(text.indexOf(" wants to ") + 10);
  return typeof shows.task === "string" ? shows.task : text;
}

/** The title of a question in lists. */
export function title({ kind, agent, shows, text }: Question): string {
  const whom = typeof shows.agent === "string" ? shows.agent : "";
  if (kind === "hop" && shows.action === "handoff") return `${agent} wants to hand this over to ${whom}`;
  if (kind === "hop") return `${agent} wants to ask ${whom}`;
  if (kind === "tool") return `${agent} wants to ${String(shows.action ?? "act")}`;
  if (kind === "review") return `${agent} has a result for review`;
  if (kind === "money") return `${agent} wants ${String(shows.proposed ?? dollars(null))} more`;
  return text;
}
