// All runs: first what needs a person, then the table. It follows the journal instead of asking again and again.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, address, call, freshKey, route, sentenceOf } from "../api";
import { listen, onOpened } from "../stream";
import { FormDialog } from "../parts/dialog";
import { useKeys } from "../parts/keys";
import { Act, CopyCli, Empty, Loading, Trouble } from "../parts/shown";
import { textOf, Why } from "../parts/asks";
import { cli } from "../parts/copycli";
import { many } from "../parts/money";
import { ago, dollars, figure, firstLine, moment, now, span } from "../parts/said";
import { useNow } from "../parts/ticking";
import { say } from "../parts/toast";
import { BurnLine, Glyph, Pill } from "../parts/pill";
import { SECOND } from "../parts/time";
import { toneOf } from "../parts/tone";
import { go, place, setQuery } from "../router";
import type { Event, RunRow, TaskRow } from "../shapes";
import { MiniTree } from "./minitree";
import { NeedsYou } from "./needsyou";
import { follow, type Listed, listed, OVER } from "./runlist";
import "../styles/runs.css";

const PAGE = 50;
const AGAIN = [250, 1_000, 4_000]; // milliseconds until a list is read again if events came while it was read
const STATES = ["open", "running", "waiting", "pending", "completed", "failed", "cancelled", "dead"];
const PERIODS: [string, string, number][] = [
  ["hour", "last hour", 3_600],
  ["day", "last 24 hours", 86_400],
  ["week", "last 7 days", 604_800],
];

/** The filter of the address as the API takes it. */
function filter(query: URLSearchParams): Record<string, string> {
  const given: Record<string, string> = {};
  for (const name of ["state", "agent", "by", "session", "tag", "text"]) {
    const value = query.get(name);
    if (value) given[name] = value;
  }
  const period = PERIODS.find(([name]) => name === query.get("since"));
  if (period) given.since = String(now() - period[2] * SECOND);
  return given;
}

/** Whether a run that has just begun fits the filter, as far as its first event tells. */
function fits(run: Listed, query: URLSearchParams): boolean {
  const state = query.get("state");
  const word = query.get("text")?.toLowerCase();
  return (
    (!state || state === "open" || state === run.state) &&
    (!query.get("agent") || query.get("agent") === run.agent) &&
    (!query.get("by") || query.get("by") === run.by) &&
    (!query.get("session") || query.get("session") === run.session) &&
    !query.get("tag") &&
    (!word || run.task.toLowerCase().includes(word))
  );
}

interface Found {
  rows: Listed[] | undefined;
  next: string | null;
  problem: ApiError | undefined;
  more: () => void;
  reload: () => void;
}

function useRuns(query: URLSearchParams): Found {
  const [rows, setRows] = useState<Listed[]>();
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState<ApiError>();
  const asked = useRef(0);
  const meanwhile = useRef<Event[] | undefined>(undefined); // the events since the read under way began
  const text = query.toString();
  const takes = (run: Listed) => fits(run, new URLSearchParams(text));

  async function read(cursor: string | null, times = 0) {
    const mine = ++asked.current;
    meanwhile.current = [];
    try {
      const given = filter(new URLSearchParams(text));
      const [found, tasks, asking] = await Promise.all([
        call<{ runs: RunRow[]; next: string | null }>("GET", address("/v1/runs", { ...given, limit: PAGE, cursor })),
        call<{ tasks: TaskRow[] }>("GET", address("/v1/tasks", { limit: 1_000, cursor })),
        call<{ approvals: { task: string; run: string }[] }>("GET", "/v1/approvals?limit=1000"),
      ]);
      if (mine !== asked.current) return;
      const fresh = listed(found.runs, tasks.tasks, new Map(asking.approvals.map((one) => [one.task, one.run])));
      const events = meanwhile.current ?? [];
      meanwhile.current = undefined;
      setRows((old) => (cursor ? [...(old ?? []), ...follow(fresh, events, () => false)] : follow(fresh, events, takes)));
      // The answer may already contain some of these events, which are counted twice until the list is read again.
      const wait = cursor === null && events.length > 0 ? AGAIN[times] : undefined;
      if (wait !== undefined) setTimeout(() => mine === asked.current && void read(null, times + 1), wait);
      setNext(found.next);
      setProblem(undefined);
    } catch (error) {
      if (mine !== asked.current) return;
      meanwhile.current = undefined;
      if (error instanceof ApiError) setProblem(error);
    }
  }

  useEffect(() => {
    setRows(undefined);
    void read(null);
    const stops = [
      listen((events) => {
        meanwhile.current?.push(...events);
        setRows((old) => old && follow(old, events, takes));
      }),
      onOpened(() => void read(null)),
    ];
    return () => {
      for (const stop of stops) stop();
      asked.current++;
    };
  }, [text]);
  return { rows, next, problem, more: () => void read(next), reload: () => void read(null) };
}

export function RunsPage() {
  const query = place.value.query;
  const { rows, next, problem, more, reload } = useRuns(query);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState(-1);
  const [asks, setAsks] = useState(false);
  const body = useRef<HTMLDivElement>(null);
  const shown = rows ?? [];
  const cancels = shown.filter((row) => chosen.has(row.id) && !OVER.has(row.state));

  function toggle(id: string) {
    const changed = new Set(chosen);
    if (!changed.delete(id)) changed.add(id);
    setChosen(changed);
  }
  function move(by: number) {
    const to = Math.max(0, Math.min(shown.length - 1, at + by));
    setAt(to);
    body.current?.querySelectorAll("[role=row]")[to]?.scrollIntoView({ block: "nearest" });
  }
  const here = shown[at];
  useKeys("Runs", [
    { key: "j", does: "next run", run: () => move(1) },
    { key: "k", does: "run before", run: () => move(-1) },
    { key: "Enter", does: "open the run", run: () => here && go(`/runs/${here.id}`) },
    { key: "x", does: "choose the run", run: () => here && toggle(here.id) },
    { key: "/", does: "search", run: () => document.querySelector<HTMLInputElement>("#runs-text")?.focus() },
  ]);

  return (
    <div class="page runs">
      <NeedsYou rows={shown} />
      <header class="page-head">
        <h1>Runs</h1>
        <Filters />
      </header>
      {chosen.size > 0 && (
        <div class="bulk" role="region" aria-label="Chosen runs">
          <b>{many(chosen.size, "run")} chosen</b>
          <span class="faint">{cancels.length} of them still open</span>
          <span class="grow" />
          <button class="button" onClick={() => setChosen(new Set())}>
            Choose none
          </button>
          <Act scope="run" class="button no" off={cancels.length ? "" : "All of them have ended."} onClick={() => setAsks(true)}>
            Cancel {many(cancels.length, "run")}
          </Act>
        </div>
      )}
      {rows ? (
        <>
          {shown.length ? (
            <div class="table card" role="table" aria-label="Runs" aria-rowcount={next ? -1 : shown.length}>
              <Heads />
              <div role="rowgroup" ref={body}>
                {shown.map((row, index) => (
                  <Row key={row.id} row={row} isAt={index === at} isChosen={chosen.has(row.id)} onChoose={() => toggle(row.id)} />
                ))}
              </div>
            </div>
          ) : (
            <NoRuns filtered={query.size > 0} />
          )}
          {next && (
            <div class="more">
              <button class="button" onClick={more}>
                Show earlier runs
              </button>
            </div>
          )}
        </>
      ) : problem ? (
        <Trouble problem={problem} again={reload} />
      ) : (
        <Loading rows={6} />
      )}
      {asks && <CancelDialog runs={cancels} onClose={() => (setAsks(false), setChosen(new Set()))} />}
    </div>
  );
}

function NoRuns({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="No run fits this filter">
        <a href="/">Show all runs</a>
      </Empty>
    );
  return (
    <Empty title="No run yet" command={cli("submit", "AGENT", "a task")}>
      A run appears here as soon as a task is submitted or started.
    </Empty>
  );
}

function Filters() {
  const query = place.value.query;
  const field = (name: string, label: string) => (
    <input
      class="field small wide-only"
      aria-label={label}
      placeholder={label}
      value={query.get(name) ?? ""}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
    />
  );
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <select class="field small" aria-label="State" value={query.get("state") ?? ""} onChange={(event) => setQuery({ state: event.currentTarget.value })}>
        <option value="">any state</option>
        {STATES.map((state) => (
          <option key={state} value={state}>
            {state}
          </option>
        ))}
      </select>
      <select class="field small" aria-label="Period" value={query.get("since") ?? ""} onChange={(event) => setQuery({ since: event.currentTarget.value })}>
        <option value="">any time</option>
        {PERIODS.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
      {field("agent", "agent")}
      {field("by", "started by")}
      <input
        id="runs-text"
        class="field small"
        type="search"
        aria-label="Words of the task"
        placeholder="words of the task"
        value={query.get("text") ?? ""}
        onChange={(event) => setQuery({ text: event.currentTarget.value.trim() })}
      />
      {query.size > 0 && (
        <a class="link" href="/">
          Show all
        </a>
      )}
    </form>
  );
}

const HEADS = ["", "State", "Task", "Tree", "Money", "Tokens", "Agents", "Depth", "Refused", "Age", "Last sign"];

function Heads() {
  return (
    <div role="rowgroup" class="heads">
      <div role="row" class="tr">
        {HEADS.map((head) => (
          <span role="columnheader" key={head} class={`c-${head.toLowerCase().replace(" ", "-") || "box"}`}>
            {head || <span class="unseen">Chosen</span>}
          </span>
        ))}
      </div>
    </div>
  );
}

/** How many levels are below the first task, as far as the dots say. */
function depthOf(row: Listed): number {
  const parents = new Map(row.dots.map((dot) => [dot.id, dot.parent]));
  const depths = new Map<string, number>();
  let most = 0;
  for (const dot of row.dots) {
    const depth = (depths.get(parents.get(dot.id) ?? "") ?? -1) + 1;
    depths.set(dot.id, depth);
    most = Math.max(most, depth);
  }
  return most;
}

function Row({ row, isAt, isChosen, onChoose }: { row: Listed; isAt: boolean; isChosen: boolean; onChoose: () => void }) {
  const time = useNow();
  const asks = row.asking > 0 && !OVER.has(row.state);
  const tone = toneOf(row.state, asks);
  const isOver = OVER.has(row.state);
  const seen = row.seen_at ?? (isOver ? row.ended_at : undefined);
  const agents = new Set([...(row.agents ?? []), ...row.dots.map((dot) => dot.agent)]).size;
  return (
    <div role="row" class={`tr${isAt ? " at" : ""}${isOver ? " ended" : ""}`} aria-selected={isChosen}>
      <span role="cell" class="c-box">
        <input type="checkbox" checked={isChosen} onChange={onChoose} aria-label={`Choose run ${row.id}`} />
      </span>
      <span role="cell" class="c-state">
        <Glyph sign={tone} />
        <Pill tone={row.stalled ? "bad" : tone}>{asks ? "waits for you" : row.stalled ? "stalled" : row.state}</Pill>
      </span>
      <span role="cell" class="c-task">
        <a href={`/runs/${row.id}`}>{firstLine(row.task) || "(no text)"}</a>
        <small>
          <span class="who">{row.agent}</span>
          {row.by && <span> · by {row.by}</span>} · <span class="mono">{row.id}</span>
        </small>
      </span>
      <span role="cell" class="c-tree">
        <MiniTree dots={row.dots} tasks={row.tasks} />
      </span>
      <span role="cell" class="c-money">
        <span>
          {row.credits || row.granted != null ? <b>{dollars(row.credits)}</b> : <span class="faint">–</span>}
          {row.granted != null && <small> of {dollars(row.granted)}</small>}
        </span>
        {row.granted != null && <BurnLine spent={row.credits} held={row.held ?? 0} of={row.granted} />}
      </span>
      <span role="cell" class="c-tokens">{row.tokens ? figure(row.tokens) : "–"}</span>
      <span role="cell" class="c-agents">{agents || "–"}</span>
      <span role="cell" class="c-depth">{Math.max((row.depth ?? 1) - 1, depthOf(row)) || "–"}</span>
      <span role="cell" class={row.refused ? "c-refused some" : "c-refused"}>
        {row.refused || "–"}
      </span>
      <span role="cell" class="c-age" title={moment(row.asked_at)}>
        {span(Math.max(0, time - row.asked_at))}
      </span>
      <span role="cell" class={row.stalled ? "c-last-sign bad" : "c-last-sign"} title={moment(seen)}>
        {isOver ? `took ${span((row.ended_at ?? now()) - row.asked_at)}` : seen ? ago(seen, time) : "–"}
      </span>
    </div>
  );
}

/** Cancel several runs: the number is that of the runs that are still open, and the answer says how many tasks ended. */
function CancelDialog({ runs, onClose }: { runs: Listed[]; onClose: () => void }) {
  const [whole] = useState(runs);
  async function cancel(form: FormData) {
    const why = textOf(form, "why");
    let tasks = 0;
    const failed: string[] = [];
    for (const run of whole) {
      try {
        const { cancelled } = await call<{ cancelled: number }>("POST", route("tasks", run.id, "cancel"), { why }, freshKey());
        tasks += cancelled;
      } catch (error) {
        failed.push(`${run.id}: ${sentenceOf(error)}`);
      }
    }
    say(`${many(tasks, "task")} of ${many(whole.length - failed.length, "run")} cancelled`);
    if (failed.length) throw new Error(`${many(failed.length, "run")} could not be cancelled. ${failed[0]}`);
  }
  return (
    <FormDialog
      title={`Cancel ${many(whole.length, "run")}?`}
      verb={`Cancel ${many(whole.length, "run")}`}
      bad
      onSend={cancel}
      onClose={onClose}
      aside={whole[0] && whole.length === 1 ? <CopyCli text={cli("cancel", whole[0].id)} /> : null}
    >
      <p class="quiet">All their unfinished tasks are cancelled. What was spent stays spent; a cancelled run can be retried.</p>
      <ul class="plain">
        {whole.slice(0, 8).map((run) => (
          <li key={run.id} class="one-line">
            <span class="mono">{run.id}</span> {firstLine(run.task)}
          </li>
        ))}
        {whole.length > 8 && <li>and {whole.length - 8} more</li>}
      </ul>
      <Why label="Why? Everyone who waits for them is told." autofocus />
    </FormDialog>
  );
}

