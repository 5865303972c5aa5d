// What models are saying: the text so far of each answer under way, also for a view that opens in the middle of one.
import { signal } from "@preact/signals";
import type { JournalEvent } from "./fold/events";
import { isOver, TRANSITIONS } from "./fold/lifecycle";

/** A piece of an answer; one that `begins` is all that was said so far. */
export interface Words {
  readonly task: string;
  readonly text: string;
  readonly begins: boolean;
  readonly began: number; // when its request started, in microseconds since 1970
}

const LONGEST = 20_000; // characters of an answer that are kept

/** The answers under way, by task. */
export const answers = signal<ReadonlyMap<string, Words>>(new Map());

/** Add a piece of an answer. An ellipsis stands for a beginning that did not arrive. */
export function addWords(piece: Words): void {
  const before = piece.begins ? "" : (answers.peek().get(piece.task)?.text ?? "… ");
  const answer = { ...piece, begins: true, text: (before + piece.text).slice(-LONGEST) };
  answers.value = new Map(answers.peek()).set(piece.task, answer);
}

/** Drop the answers that are whole by these events, or whose task has ended. */
export function dropAnswered(events: readonly JournalEvent[]): void {
  const left = new Map(answers.peek());
  for (const event of events) {
    const answer = left.get(event.task);
    if (answer !== undefined && ends(event, answer)) left.delete(event.task);
  }
  if (left.size < answers.peek().size) answers.value = left;
}

/** Whether an event of its task ends an answer. An earlier answer that was read late does not. */
function ends(event: JournalEvent, answer: Words): boolean {
  if (event.kind !== "model.answered") return isOver(TRANSITIONS.running[event.kind] ?? "");
  const { elapsed } = event.data;
  return answer.began <= event.at - (typeof elapsed === "number" ? elapsed : 0);
}

/** Forget everything, before the server tells it again. */
export function clearWords(): void {
  answers.value = new Map();
}
