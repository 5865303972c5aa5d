// The drawer: everything about one task. An open question comes first.
import type { ComponentChildren } from "preact";
import { isOver } from "../fold/lifecycle";
import { holders, openQuestion, type Task } from "../fold/state";
import { cli, CopyAsCli } from "../parts/copycli";
import { count, money } from "../parts/money";
import { Glyph, Pill } from "../parts/pill";
import { took } from "../parts/time";
import { say } from "../parts/toast";
import { CancelTree, RetryTask } from "./actions";
import { Ask, written } from "./ask";
import { ContextTab } from "./context";
import { narrow } from "./hooks";
import { elapsed, signOf, titleOf, toneOf, wordOf } from "./look";
import { mixOf, mixText } from "./node";
import type { RunModel } from "./model";
import { EventsTab, MessagesTab, MoneyTab, PlanTab, RefusedTab, TalkTab, toolsOf, ToolsTab } from "./tabs";

export function Drawer({ model }: { model: RunModel }) {
  const task = model.task.value;
  const chosen = model.chosen.value;
  if (chosen.startsWith("stack ")) return <StackDrawer model={model} chosen={chosen} />;
  if (task === undefined) return <aside class="drawer" aria-label="About a task" />;
  const others = narrow.value ? [] : model.questions.value.filter(([other]) => other.id !== task.id);
  return (
    <aside class="drawer" aria-label={`About ${task.agent}`}>
      {others.slice(0, 3).map(([other, question]) => (
        <div class="part" key={question.id}>
          <Ask model={model} question={question} />
          <p class="from">
            asked by{" "}
            <button type="button" class="linkish" onClick={() => (model.chosen.value = other.id)}>
              {other.agent}
            </button>
          </p>
        </div>
      ))}
      <About model={model} task={task} />
      <Tabs model={model} task={task} />
    </aside>
  );
}

function About({ model, task }: { model: RunModel; task: Task }) {
  const question = openQuestion(task);
  const said = model.saying(task.id);
  return (
    <div class="part about">
      <div class={`who t-${toneOf(task)}`}>
        <Glyph sign={signOf(task, model.workers.value)} />
        <h2>{task.agent}</h2>
        <Pill tone={toneOf(task)}>{wordOf(task)}</Pill>
      </div>
      <Chain model={model} task={task} />
      {question !== undefined && !narrow.value && <Ask model={model} question={question} />}
      <Quote label="Task">{task.text}</Quote>
      {said !== "" && (
        <Quote label="Is saying" live>
          {said}
        </Quote>
      )}
      <Outcome task={task} />
      <Retries task={task} />
      <div class="acts">
        <RetryTask task={task} />
        {task.parent !== "" && !isOver(task.state) && model.moment.value === null && <CancelTree task={task} />}
      </div>
    </div>
  );
}

function Chain({ model, task }: { model: RunModel; task: Task }) {
  const facts = [
    task.how === "delegate" || task.parent === "" ? "" : task.how,
    task.step === "" ? "" : `step ${task.step}`,
    task.attempts > 1 ? `attempt ${task.attempts}` : "",
    task.untrusted ? "untrusted input" : "",
    task.attempts === 0 ? "queued" : took(elapsed(task, model.now.value)),
  ].filter((one) => one !== "");
  return (
    <p class="askers">
      {task.chain.slice(0, -1).map((name, at) => (
        <span key={at}>{name} › </span>
      ))}
      <b>{holders(task).join(" → ")}</b>
      {` · ${facts.join(" · ")}`}
    </p>
  );
}

function Quote({ label, children, live = false, bad = false }: { label: string; children: ComponentChildren; live?: boolean; bad?: boolean }) {
  return (
    <div class="quoted">
      <h3 class="cap">{label}</h3>
      <pre class={`quote${live ? " saying" : ""}${bad ? " er" : ""}`} tabIndex={0} aria-label={label} role="region">
        {children}
      </pre>
    </div>
  );
}

function Outcome({ task }: { task: Task }) {
  if (task.error !== "")
    return (
      <Quote label={task.state === "cancelled" ? "Cancelled" : "Failed"} bad={task.state !== "cancelled"}>
        {task.error}
        {task.progress !== "" && `\nIt had come to: ${task.progress}`}
      </Quote>
    );
  if (task.state === "cancelling") return <Quote label="Being cancelled">{task.cancelled || "no reason was given"}</Quote>;
  if (task.result === undefined || task.result === null) return null;
  return <Quote label="Answered">{written(task.result)}</Quote>;
}

function Retries({ task }: { task: Task }) {
  if (task.retries.length === 0) return null;
  return (
    <ul class="retries">
      {task.retries.map((one) => (
        <li key={one.at}>
          Attempt {one.attempt}: {one.error}
        </li>
      ))}
    </ul>
  );
}

type TabRow = [name: string, number: number, draw: () => ComponentChildren];

function tabsOf(model: RunModel, task: Task): TabRow[] {
  const events = model.history.events.slice(0, model.state.value.count).filter((event) => event.task === task.id);
  const steps = task.plans.reduce((sum, plan) => sum + plan.length, 0);
  const rows: TabRow[] = [
    ["Context", 0, () => <ContextTab model={model} task={task} />],
    ["Money", task.spends.length, () => <MoneyTab model={model} task={task} />],
    ["Refused", task.refusals.length, () => <RefusedTab model={model} task={task} />],
    ["Plan", steps, () => <PlanTab model={model} task={task} />],
    ["Messages", task.sent.length + task.taken.length, () => <MessagesTab model={model} task={task} />],
    ["Tools", toolsOf(task).length, () => <ToolsTab model={model} task={task} />],
    ["Models", task.calls.length, () => <TalkTab model={model} task={task} />],
    ["Events", events.length, () => <EventsTab model={model} events={events} />],
  ];
  return rows.filter(([name, number]) => number > 0 || name === "Context" || name === "Money");
}

function Tabs({ model, task }: { model: RunModel; task: Task }) {
  const rows = tabsOf(model, task);
  const shown = rows.find(([name]) => name === model.tab.value) ?? (rows[0] as TabRow);
  const walk = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const at = (rows.indexOf(shown) + by + rows.length) % rows.length;
    model.tab.value = (rows[at] as TabRow)[0];
    const buttons = (event.currentTarget as Element).querySelectorAll<HTMLElement>("button");
    buttons[at]?.focus();
  };
  return (
    <>
      <div class="sheets" role="tablist" aria-label="About this task" onKeyDown={walk}>
        {rows.map((row) => (
          <button
            key={row[0]}
            type="button"
            role="tab"
            id={`tab-${row[0]}`}
            aria-controls="tab-panel"
            aria-selected={row === shown}
            tabIndex={row === shown ? 0 : -1}
            onClick={() => (model.tab.value = row[0])}
          >
            {row[0]} {row[1] > 0 && <small>{count(row[1])}</small>}
          </button>
        ))}
      </div>
      <div class="part panel" role="tabpanel" id="tab-panel" aria-labelledby={`tab-${shown[0]}`}>
        {shown[2]()}
      </div>
    </>
  );
}

const LISTED = 100;

/** The members of a stack, those first that need somebody. */
function StackDrawer({ model, chosen }: { model: RunModel; chosen: string }) {
  const box = model.layout.value.boxes.find((one) => one.key === chosen);
  const { tasks } = model.state.value;
  const ids = box?.kind === "stack" ? box.members : [];
  const members = ids.map((id) => tasks.get(id)).filter((task): task is Task => task !== undefined);
  const rank = (task: Task) => ["you", "bad", "live", "idle", "done"].indexOf(toneOf(task));
  const sorted = [...members].sort((one, other) => rank(one) - rank(other));
  const mix = mixOf(members);
  return (
    <aside class="drawer" aria-label="About these tasks">
      <div class="part">
        <div class="who">
          <h2>
            {members[0]?.agent ?? ""} ×{count(members.length)}
          </h2>
        </div>
        <p class="askers">
          {mixText(mix)}
          {mix.spent > 0 && `, ${money(mix.spent)} in all`}
        </p>
      </div>
      <ul class="members">
        {sorted.slice(0, LISTED).map((task) => (
          <li key={task.id}>
            <button type="button" class={`member t-${toneOf(task)}`} onClick={() => (model.chosen.value = task.id)}>
              <Glyph sign={toneOf(task)} />
              <span class="cut">{titleOf(task)}</span>
              <span class="n">{task.attempts === 0 ? "queued" : took(elapsed(task, model.now.value))}</span>
            </button>
          </li>
        ))}
      </ul>
      {members.length > LISTED && (
        <p class="part none">
          and {count(members.length - LISTED)} more: <CopyAsCli command={cli("show", model.id, "--all")} say={say} />
        </p>
      )}
    </aside>
  );
}
