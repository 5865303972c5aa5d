// The other tabs of the drawer: money, refusals, plan, messages, tools, models, events.
import { useMemo } from "preact/hooks";
import type { JournalEvent } from "../fold/events";
import { holders, type ModelCall, type Sent, type Task, type ToolUse, walk } from "../fold/state";
import { isOver } from "../fold/lifecycle";
import { programTools, wordsOf } from "../fold/talk";
import { cli, CopyAsCli } from "../parts/copycli";
import { count, many, money } from "../parts/money";
import { Glyph, type Sign } from "../parts/pill";
import { sinceStart, took } from "../parts/time";
import { say } from "../parts/toast";
import type { RunModel } from "./model";

interface TabOf {
  model: RunModel;
  task: Task;
}

const since = (model: RunModel, at: number): string => sinceStart(at, model.whole.value.first);

export function MoneyTab({ model, task }: TabOf) {
  const state = model.state.value;
  const asker = state.tasks.get(task.parent);
  const below = task.children.map((id) => state.tasks.get(id) as Task).filter((child) => child.total !== 0);
  return (
    <>
      <p class="lead">
        {task.granted !== undefined ? (
          <>
            Set aside <b>{money(task.granted)}</b>, spent <b>{money(task.total)}</b>
          </>
        ) : (
          <>
            Shares the money of {asker === undefined ? "the account" : asker.agent}; spent <b>{money(task.total)}</b>
          </>
        )}
        {task.totalHeld > 0 && (
          <>
            , <b>{money(task.totalHeld)}</b> held
          </>
        )}
        {task.tokens > 0 && <>, {many(task.tokens, "token")}</>}
      </p>
      {task.holds.map((one) => (
        <div class="row" key={one.id}>
          <span class="n">held</span>
          <span class="g">
            {one.why}
            {one.model !== "" && ` · ${one.model}`}
          </span>
          <span class="v">{money(one.credits)}</span>
        </div>
      ))}
      {task.spends.map((one, at) => (
        <div class="row" key={at}>
          <span class="n">{since(model, one.at)}</span>
          <span class="g">
            {one.why || "a correction"}
            {one.model !== "" && ` · ${one.model}`}
            {one.uncertain && <b class="er"> uncertain</b>}
          </span>
          <span class="v">{money(one.credits)}</span>
        </div>
      ))}
      {below.map((child) => (
        <div class="row" key={child.id}>
          <span class="n">below</span>
          <button type="button" class="linkish g" onClick={() => (model.chosen.value = child.id)}>
            {holders(child)[0]}
          </button>
          <span class="v">{money(child.total)}</span>
        </div>
      ))}
      {task.spends.length === 0 && below.length === 0 && task.holds.length === 0 && <p class="none">Nothing was spent here.</p>}
    </>
  );
}

export function RefusedTab({ model, task }: TabOf) {
  if (task.refusals.length === 0) return <p class="none">Nothing was refused here.</p>;
  return (
    <>
      {task.refusals.map((one, at) => (
        <div class="row refusal" key={at}>
          <span class="n">{since(model, one.at)}</span>
          <span class="g">
            <span class="tagged">{one.rule}</span>
            <b>{one.to}</b> {one.handoff && "(handoff) "}
            {one.sentence}
            {one.task !== "" && <small>{one.task}</small>}
          </span>
          {one.credits > 0 && (
            <span class="v" title="It was to get this much">
              {money(one.credits)}
            </span>
          )}
        </div>
      ))}
      {task.moreRefused > 0 && <p class="none">and {count(task.moreRefused)} more, not listed</p>}
    </>
  );
}

const STEP_SIGNS: Readonly<Record<string, Sign>> = { completed: "done", failed: "bad", running: "live", skipped: "refused" };

export function PlanTab({ model, task }: TabOf) {
  return (
    <>
      {task.plans.flat().map((step) => (
        <div class="row" key={`${step.id} ${step.task}`}>
          <Glyph sign={STEP_SIGNS[step.state] ?? "idle"} />
          <span class="g">
            {step.task !== "" && model.state.value.tasks.has(step.task) ? (
              <button type="button" class="linkish" onClick={() => (model.chosen.value = step.task)}>
                {step.title}
              </button>
            ) : (
              step.title
            )}
            <small>
              {step.agent}
              {step.after.length > 0 && ` · after ${step.after.join(", ")}`}
              {step.tries > 1 && ` · try ${step.tries}`}
              {step.reason !== "" && ` · ${step.reason}`}
            </small>
          </span>
          <span class="faint">{step.state}</span>
        </div>
      ))}
    </>
  );
}

export function MessagesTab({ model, task }: TabOf) {
  const taken = new Set(task.taken);
  const received = taken.size === 0 ? [] : walk(model.state.value).flatMap((other) => other.sent.filter((one) => taken.has(one.id)));
  return (
    <>
      {received.map((one) => (
        <Message key={`in ${one.id}`} model={model} one={one} received />
      ))}
      {task.sent.map((one) => (
        <Message key={`out ${one.id}`} model={model} one={one} received={false} />
      ))}
    </>
  );
}

function Message({ model, one, received }: { model: RunModel; one: Sent; received: boolean }) {
  return (
    <div class="row">
      <span class="n">{since(model, one.at)}</span>
      <span class="g">
        <small>{received ? `from ${one.from}` : `to ${one.to}`}{one.untrusted && " · untrusted"}</small>
        {one.text}
      </span>
    </div>
  );
}

const TOOL_SIGNS: Readonly<Record<string, Sign>> = { done: "done", failed: "bad", refused: "refused", running: "live" };

/** The tool calls of a task: those that remit made, and those that a program made itself. */
export const toolsOf = (task: Task): ToolUse[] =>
  task.calls.some((one) => one.passed) ? [...task.tools, ...programTools(task.calls)].sort((one, other) => one.at - other.at) : task.tools;

export function ToolsTab({ model, task }: TabOf) {
  return (
    <>
      {toolsOf(task).map((one, at) => (
        <div class="row" key={at}>
          <span class="n">{since(model, one.at)}</span>
          <Glyph sign={one.outcome === "running" && isOver(task.state) ? "idle" : (TOOL_SIGNS[one.outcome] ?? "idle")} />
          <span class="g">
            <code>
              {one.tool}({one.given === "{}" ? "" : one.given})
            </code>
            <small class={one.outcome === "failed" || one.outcome === "refused" ? "er" : ""}>
              {one.outcome !== "running" ? one.result : isOver(task.state) ? "no result" : "is running"}
              {one.place !== "" && ` (${one.place})`}
            </small>
          </span>
          {one.elapsed > 0 && <span class="faint">{took(one.elapsed)}</span>}
        </div>
      ))}
    </>
  );
}

/** The conversation with models: each answer, and what it cost. */
export function TalkTab({ model, task }: TabOf) {
  return (
    <>
      {task.models.map((use) => (
        <p class="lead" key={`${use.agent} ${use.model}`}>
          <b>{use.model}</b> {many(use.calls, "call")}
          {use.failed > 0 && `, ${use.failed} failed`}, {many(use.tokens, "token")}
          {use.credits > 0 && `, ${money(use.credits)}`}
        </p>
      ))}
      {task.calls.map((one, at) => (
        <div class="row" key={at}>
          <span class="n">{since(model, one.at)}</span>
          <span class="g">
            {one.error !== "" ? <span class="er">{one.error}</span> : <Said model={model} call={one} />}
            <small>
              {one.model}
              {one.tokens > 0 && ` · ${many(one.tokens, "token")}`}
              {one.cost !== undefined && ` · ${money(one.cost)}`}
              {one.elapsed > 0 && ` · ${took(one.elapsed)}`}
              {one.tools.length > 0 && ` · calls ${one.tools.join(", ")}`}
            </small>
          </span>
        </div>
      ))}
    </>
  );
}

/** The words of an answer; one that only calls tools names them. */
function Said({ model, call }: { model: RunModel; call: ModelCall }) {
  const words = useMemo(() => wordsOf(call.answer), [call.answer]);
  if (words !== "") return <>{words}</>;
  if (call.answer !== null || call.tools.length > 0) return <span class="faint">no words</span>;
  return (
    <span class="faint">
      a long answer <CopyAsCli command={cli("show", model.id, "--talk")} say={say} />
    </span>
  );
}

const EVENTS = 200;

export function EventsTab({ model, events }: { model: RunModel; events: readonly JournalEvent[] }) {
  return (
    <>
      {events.length > EVENTS && <p class="none">The last {EVENTS} of {count(events.length)}</p>}
      {events.slice(-EVENTS).map((event) => (
        <div class="row" key={event.seq}>
          <span class="n">{since(model, event.at)}</span>
          <button type="button" class="linkish g mono" title="Show the run as it was then" onClick={() => model.showAt(event.at)}>
            {event.kind}
          </button>
          <span class="faint">{event.seq}</span>
        </div>
      ))}
    </>
  );
}
