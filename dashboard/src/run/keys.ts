// Keys of the run page: [ and ] scrub, a, e and r decide about the first question, Escape goes back to now.
import { useEffect } from "preact/hooks";
import { may } from "../session";
import { decide } from "./acts";
import type { RunModel } from "./model";

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function question(model: RunModel, key: string): boolean {
  const mine = model.task.value;
  const all = model.questions.value;
  const asked = (all.find(([task]) => task.id === mine?.id) ?? all[0])?.[1];
  if (asked === undefined || asked.kind === "ask" || model.acting.value.how !== "" || !may("approve")) return false;
  if (key === "a") void decide(model, asked, { verdict: "approve" });
  else if (key === "r") model.acting.value = { question: asked.id, how: "reject" };
  else if (document.querySelector(`[data-question="${CSS.escape(asked.id)}"][data-editable=""]`) === null)
    model.acting.value = { question: asked.id, how: "edit" };
  else model.say("A handoff or a step of a plan cannot be changed: approve it, or reject it and say why");
  return true;
}

function pressed(model: RunModel, event: KeyboardEvent): boolean {
  if (event.key === "[") model.step(-1);
  else if (event.key === "]") model.step(1);
  else if (event.key === "Escape" && model.moment.value !== null) model.backToNow();
  else return ["a", "e", "r"].includes(event.key) && question(model, event.key);
  return true;
}

export function useRunKeys(model: RunModel): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
      if (pressed(model, event)) event.preventDefault();
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, [model]);
}
