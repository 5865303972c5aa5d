// Questions to people, and their answers.

import type { JournalEvent } from "./events";
import { openQuestion, type Question, type RunState, type Task } from "./state";

export function ask(state: RunState, task: Task, event: JournalEvent): void {
  const data = event.data;
  task.questions.push({
    id: data.question,
    kind: data.kind,
    text: data.text,
    agent: event.agent,
    at: event.at,
    until: data.until,
    choices: data.choices,
    shows: data.shows ?? {},
    digest: data.digest,
    raises: data.raises,
    state: "open",
    by: "",
    channel: "",
    why: "",
    value: null,
    answeredAt: undefined,
    used: false,
  });
  if (!state.asking.includes(task.id)) state.asking = [...state.asking, task.id];
}

function change(task: Task, id: string, what: Partial<Question>): void {
  task.questions = task.questions.map((one) => (one.id === id ? { ...one, ...what } : one));
}

export function answer(state: RunState, task: Task, event: JournalEvent): void {
  const { question, state: ended, by, channel, why, value = null } = event.data;
  change(task, question, { state: ended, by, channel, why, value, answeredAt: event.at });
  if (openQuestion(task) === undefined) state.asking = state.asking.filter((id) => id !== task.id);
}

export function use(_state: RunState, task: Task, event: JournalEvent): void {
  change(task, event.data.question, { used: true });
}
