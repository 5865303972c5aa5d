// Plans: their steps, the tasks that carry them out, and results that a fork took over.

import type { Data, JournalEvent } from "./events";
import { own, type RunState, type Step, type Task } from "./state";

const originOf = (event: JournalEvent): string => (event.op ?? "").split("/", 1)[0] as string;

function change(task: Task, plan: number, at: number, what: Partial<Step>): void {
  const steps = (task.plans[plan] as Step[]).slice();
  steps[at] = { ...(steps[at] as Step), ...what };
  task.plans[plan] = steps;
}

// The place of a step in the plans of a task; the latest plan that has it.
function placeOf(task: Task, step: string): [plan: number, at: number] | undefined {
  for (let plan = task.plans.length - 1; plan >= 0; plan--) {
    const at = (task.plans[plan] as Step[]).findIndex((one) => one.id === step);
    if (at >= 0) return [plan, at];
  }
  return undefined;
}

export function beginPlan(state: RunState, task: Task, event: JournalEvent): void {
  const origin = originOf(event);
  task.plans.push(
    event.data.steps.map((step: Data): Step => {
      const kept = state.kept.get(`${origin}/${step.id}`);
      return {
        id: step.id,
        title: step.title,
        agent: step.agent,
        after: step.after,
        state: kept === undefined ? "waiting" : kept[1] === "completed" ? "completed" : "failed",
        reason: "",
        task: kept === undefined ? "" : kept[0],
        tries: 0,
        planner: event.agent,
      };
    }),
  );
}

export function keepWork(state: RunState, event: JournalEvent): void {
  const { ended, data } = event.data;
  const step = data.step ?? "";
  if (ended !== undefined && step) state.kept.set(`${originOf(event)}/${step}`, [ended.task, ended.state]);
}

export function beginStep(state: RunState, parent: Task, task: Task): void {
  const place = task.step === "" ? undefined : placeOf(parent, task.step);
  if (place === undefined) return;
  const [plan, at] = place;
  const step = (parent.plans[plan] as Step[])[at] as Step;
  change(parent, plan, at, { state: "running", reason: "", task: task.id, tries: step.tries + 1 });
  task.title = step.title;
  state.steps.set(task.id, [parent.id, plan, at]);
}

export function endStep(state: RunState, task: Task): void {
  const place = state.steps.get(task.id);
  const parent = place === undefined ? undefined : own(state, place[0]);
  if (place === undefined || parent === undefined) return;
  const [, plan, at] = place;
  const step = (parent.plans[plan] as Step[])[at] as Step;
  if (step.task !== task.id || step.state !== "running") return;
  change(parent, plan, at, { state: task.state === "completed" ? "completed" : "failed", reason: task.error });
}

// A step that ended without a task: it was skipped, or a step that it depends on failed.
export function endUnstarted(_state: RunState, task: Task, event: JournalEvent): void {
  const { step, state, reason } = event.data;
  const place = placeOf(task, step);
  if (place !== undefined) change(task, place[0], place[1], { state, reason });
}

// The task that led the plans is over: no step can start any more.
export function endPlans(task: Task, told: Data[]): void {
  const outcomes = new Map(told.map((one) => [one.id as string, one]));
  const reason = `the task of '${task.agent}' was over before it could start`;
  task.plans = task.plans.map((steps) =>
    steps.map((step) => {
      if (step.state !== "waiting") return step;
      const done = outcomes.get(step.id);
      const after = done === undefined ? step : {
        ...step, state: done.state as string, task: (done.task ?? "") as string, reason: (done.reason ?? "") as string,
      };
      return after.state === "waiting" ? { ...after, state: "skipped", reason } : after;
    }),
  );
}
