// Keys of the run page: [ and ] scrub, a, e and r decide about a question, Escape goes back to now.
import { type Key, useKeys } from "../parts/keys";
import { say } from "../parts/toast";
import type { Question } from "../fold/state";
import { may } from "../session";
import { decide } from "./acts";
import type { RunModel } from "./model";

/** The question that the keys are about: that of the chosen task, else the first. */
function questionOf(model: RunModel): Question | undefined {
  const mine = model.task.value;
  const all = model.questions.value;
  return (all.find(([task]) => task.id === mine?.id) ?? all[0])?.[1];
}

function change(model: RunModel, question: Question): void {
  const shown = document.querySelector(`[data-question="${CSS.escape(question.id)}"]`);
  if (shown?.getAttribute("data-editable")) model.acting.value = { question: question.id, how: "edit" };
  else say("A handoff or a step of a plan cannot be changed: approve it, or reject it and say why");
}

function deciding(model: RunModel): Key[] {
  const asked = questionOf(model);
  if (asked === undefined || asked.kind === "ask" || model.moment.value !== null) return [];
  if (model.acting.value.how !== "" || !may("approve")) return [];
  return [
    { key: "a", does: "approve", run: () => void decide(model, asked, { verdict: "approve" }) },
    { key: "e", does: "edit, then approve", run: () => change(model, asked) },
    { key: "r", does: "reject", run: () => (model.acting.value = { question: asked.id, how: "reject" }) },
  ];
}

export function useRunKeys(model: RunModel): void {
  useKeys("This run", [
    ...deciding(model),
    { key: "[", does: "one event back", run: () => model.step(-1) },
    { key: "]", does: "one event on", run: () => model.step(1) },
    ...(model.moment.value === null ? [] : [{ key: "Escape", does: "back to now", run: () => model.backToNow() }]),
  ]);
}
