// A folded run as `remit.report.wire.tree` writes it.

import type { Receipt, RunState, Task } from "../src/fold/state";

const receipt = (one: Receipt | undefined): unknown =>
  one === undefined
    ? {}
    : {
        saw: one.saw.map((slice) => [slice.what, slice.why, slice.tokens, slice.version, slice.digest, slice.trust]),
        tokens: one.tokens,
        unlisted: one.unlisted,
        withheld: one.withheld,
      };

export function wired(state: RunState, id = state.root): Record<string, unknown> | null {
  const task = state.tasks.get(id);
  if (task === undefined) return null;
  return { ...facts(task), ...work(task), children: task.children.map((child) => wired(state, child)) };
}

function facts(task: Task): Record<string, unknown> {
  return {
    id: task.id,
    agent: task.agent,
    first: task.trail[0]?.sender ?? task.agent,
    task: task.text,
    state: task.state,
    started_at: task.startedAt,
    ended_at: task.endedAt ?? null,
    result: task.result ?? null,
    error: task.error,
    sees: task.sees,
    receipt: receipt(task.receipt),
    more_refused: task.moreRefused,
    step: task.step,
    tokens: task.tokens,
    turn: task.turn,
    asked_at: task.askedAt,
    asked_how: task.how,
    attempts: task.attempts,
    credits: task.credits,
    left_over: task.leftOver,
    progress: task.progress,
    total: task.total,
  };
}

function work(task: Task): Record<string, unknown> {
  return {
    refusals: task.refusals.map(({ credits: _, ...rest }) => rest), // the report leaves the money out
    trail: task.trail.map(({ sentBack, ...one }) => ({ ...one, receipt: receipt(one.receipt), sent_back: sentBack })),
    plans: task.plans,
    retries: task.retries.map((one) => ({ ...one, receipt: receipt(one.receipt) })),
    questions: task.questions.map(({ at, answeredAt, digest: _digest, raises: _raises, ...one }) => ({
      ...one,
      asked_at: at,
      answered_at: answeredAt ?? null,
    })),
    models: task.models,
    tools: task.tools.filter((one) => one.outcome !== "running").map(({ call: _call, ...one }) => one),
  };
}
