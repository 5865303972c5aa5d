// The head of the page: what the run is, how it goes, what it costs.
import type { Task } from "../fold/state";
import { cli, CopyAsCli } from "../parts/copycli";
import { count, money } from "../parts/money";
import { BurnLine, Pill } from "../parts/pill";
import { day, took } from "../parts/time";
import { say } from "../parts/toast";
import { CancelTree, RetryTask } from "./actions";
import { titleOf, toneOf, wordOf } from "./look";
import type { RunModel } from "./model";

export function Head({ model }: { model: RunModel }) {
  const root = model.root.value;
  if (root === undefined) return null;
  return (
    <header class="head">
      <div class="runwhat">
        <h1>
          <span class="runtitle" title={titleOf(root)}>
            {titleOf(root)}
          </span>
          {model.questions.value.length > 0 ? (
            <Pill tone="you">waits for you</Pill>
          ) : (
            <Pill tone={toneOf(root)}>{wordOf(root)}</Pill>
          )}
        </h1>
        <Meta model={model} root={root} />
      </div>
      <Facts model={model} root={root} />
      <p class="sentence">{model.sentence.value}</p>
    </header>
  );
}

function Meta({ model, root }: { model: RunModel; root: Task }) {
  const agents = model.agents.value;
  return (
    <p class="meta">
      <span class="mono">{root.id}</span>
      {root.by !== "" && <span>by {root.by}</span>}
      <span>{day(root.askedAt, model.clock.value)}</span>
      <span>{took((root.endedAt ?? model.now.value) - root.askedAt)}</span>
      <span>{agents === 1 ? "1 agent" : `${count(agents)} agents`}</span>
      {root.forked !== undefined && (
        <a href={`/runs/${encodeURIComponent(root.forked.run)}`}>
          {root.forked.step === undefined ? `fork at event ${root.forked.at} of ` : `again from step ${root.forked.step} of `}
          {root.forked.run}
        </a>
      )}
      {root.forked === undefined && root.origin !== "" && root.origin !== root.id && (
        <a href={`/runs/${encodeURIComponent(root.origin)}`}>retry of {root.origin}</a>
      )}
    </p>
  );
}

function Facts({ model, root }: { model: RunModel; root: Task }) {
  const state = model.state.value;
  const most = root.bounds.depth;
  return (
    <div class="facts">
      <div class={root.granted === undefined ? "fact money" : "fact money granted"}>
        <b>
          {money(root.total)}{" "}
          <small>
            {root.granted !== undefined && `of ${money(root.granted)}`}
            {root.totalHeld > 0 && `, ${money(root.totalHeld)} held`}
          </small>
        </b>
        {root.granted !== undefined ? <BurnLine of={root.granted} spent={root.total} held={root.totalHeld} /> : <span>spent</span>}
      </div>
      <Fact value={count(state.tasks.size)} label={state.tasks.size === 1 ? "task" : "tasks"} />
      <Fact value={String(state.depth)} of={typeof most === "number" ? String(most) : ""} label="depth" />
      <Fact value={count(state.refused)} label="refused" bad={state.refused > 0} />
      <div class="fact buttons">
        <CopyAsCli command={cli("show", root.id)} say={say} />
        <RetryTask task={root} />
        {model.moment.value === null && <CancelTree task={root} />}
      </div>
    </div>
  );
}

function Fact({ value, of = "", label, bad = false }: { value: string; of?: string; label: string; bad?: boolean }) {
  return (
    <div class="fact">
      <b class={bad ? "er" : ""}>
        {value} {of !== "" && <small>/ {of}</small>}
      </b>
      <span>{label}</span>
    </div>
  );
}
