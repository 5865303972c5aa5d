// Questions to people, as two panes: the list, and the one that is read. The decided ones are the audit log.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, route } from "../api";
import { useKeys } from "../parts/keys";
import { Empty, Loading, Trouble } from "../parts/shown";
import { many } from "../parts/money";
import { ago, moment } from "../parts/said";
import { left } from "../parts/time";
import { useNow } from "../parts/ticking";
import { Glyph } from "../parts/pill";
import { toneOf } from "../parts/tone";
import { go, place } from "../router";
import type { Question } from "../shapes";
import { QuestionView } from "./question";
import { load, open, sending, settled, subtitle, title, trouble } from "./questions";
import "../styles/approvals.css";

export function ApprovalsPage({ values }: { values: Record<string, string> }) {
  const isLog = place.value.query.get("tab") === "decided";
  const number = open.value?.length ?? 0;
  return (
    <div class={values.id ? "approvals reading" : "approvals"}>
      <div class="pane-list">
        <header class="pane-head">
          <h1>Approvals</h1>
          <nav class="tabs" aria-label="Which questions">
            <a href="/approvals" aria-current={isLog ? undefined : "true"}>
              Open <small>{number}</small>
            </a>
            <a href="/approvals?tab=decided" aria-current={isLog ? "true" : undefined}>
              Decided
            </a>
          </nav>
        </header>
        {isLog ? <DecidedPanes id={values.id ?? ""} /> : <OpenPanes id={values.id ?? ""} />}
      </div>
    </div>
  );
}

function OpenPanes({ id }: { id: string }) {
  const known = open.value;
  useEffect(() => {
    settled.value = [];
  }, []);
  if (!known) return trouble.value ? <Trouble problem={trouble.value} again={() => void load()} /> : <Loading />;
  // What was decided meanwhile stays where it was until the person leaves the page.
  const all = [...known, ...settled.value].sort((one, other) => one.until - other.until || one.seq - other.seq);
  return (
    <Panes
      all={all}
      id={id}
      tail=""
      empty={
        <Empty title="Nobody waits for you" command="remit demo --web">
          Agents that need an approval or an answer show up here at once. The demo has one.
        </Empty>
      }
    />
  );
}

function DecidedPanes({ id }: { id: string }) {
  const [all, setAll] = useState<Question[]>();
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState<ApiError>();
  async function read(cursor: string | null) {
    try {
      const path = `/v1/approvals?decided=true&limit=50${cursor ? `&cursor=${cursor}` : ""}`;
      const found = await call<{ approvals: Question[]; next: string | null }>("GET", path);
      setAll((old) => [...(cursor ? (old ?? []) : []), ...found.approvals]);
      setNext(found.next);
      setProblem(undefined);
    } catch (error) {
      if (error instanceof ApiError) setProblem(error);
    }
  }
  useEffect(() => void read(null), [settled.value.length]);
  if (!all) return problem ? <Trouble problem={problem} again={() => void read(null)} /> : <Loading />;
  return (
    <Panes
      all={all}
      id={id}
      tail="?tab=decided"
      more={next ? () => void read(next) : undefined}
      empty={<Empty title="Nothing was decided yet">Each decision stays here, with the person, the time and the reason.</Empty>}
    />
  );
}

interface PanesOf {
  all: Question[];
  id: string;
  tail: string;
  empty: preact.ComponentChildren;
  more?: (() => void) | undefined;
}

function Panes({ all, id, tail, empty, more }: PanesOf) {
  const [found, setFound] = useState<Question>();
  const list = useRef<HTMLUListElement>(null);
  const wide = useWide();
  const listed = all.find((one) => one.id === id);
  const shown = listed ?? (found?.id === id ? found : undefined) ?? (id || !wide ? undefined : all[0]);
  useEffect(() => {
    if (!id || listed) return;
    call<Question>("GET", route("approvals", id)).then(setFound, () => setFound(undefined));
  }, [id, listed]);
  useEffect(() => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }), [shown?.id]);

  function move(by: number) {
    const at = all.findIndex((one) => one.id === shown?.id);
    const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
    if (next) go(`/approvals/${next.id}${tail}`, { replace: true });
  }
  useKeys("Approvals", [
    { key: "j", does: "next question", run: () => move(1) },
    { key: "k", does: "question before", run: () => move(-1) },
    { key: "o", does: "open the run", run: () => shown && go(`/runs/${shown.run}`) },
  ]);
  useAdvance(all, shown, tail);

  if (!all.length && !shown) return <>{empty}</>;
  return (
    <>
      <ul class="questions" ref={list} aria-label="Questions">
        {all.map((one) => (
          <Item key={one.id} question={one} isShown={one.id === shown?.id} tail={tail} />
        ))}
        {more && (
          <li>
            <button class="button" onClick={more}>
              Show earlier ones
            </button>
          </li>
        )}
      </ul>
      <div class="pane-read" tabIndex={-1}>
        <a class="back" href={`/approvals${tail}`}>
          ← {many(all.length, "question")}
        </a>
        {shown ? <QuestionView key={shown.id} question={shown} /> : id ? <Empty title="There is no such question" /> : null}
      </div>
    </>
  );
}

/** After a decision, go on to the next open question. */
function useAdvance(all: Question[], shown: Question | undefined, tail: string): void {
  const before = useRef(new Set<string>());
  const busy = new Set(sending.value.keys());
  useEffect(() => {
    const begun = shown && busy.has(shown.id) && !before.current.has(shown.id);
    before.current = busy;
    if (!begun) return;
    const at = all.findIndex((one) => one.id === shown.id);
    const free = [...all.slice(at + 1), ...all.slice(0, at)].find((one) => one.state === "open" && !busy.has(one.id));
    if (free) go(`/approvals/${free.id}${tail}`, { replace: true });
  }, [sending.value]);
}

/** Whether there is room for two panes. */
function useWide(): boolean {
  const [query] = useState(() => matchMedia("(min-width: 900px)"));
  const [wide, setWide] = useState(query.matches);
  useEffect(() => {
    const changed = () => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [query]);
  return wide;
}

function Item({ question, isShown, tail }: { question: Question; isShown: boolean; tail: string }) {
  const time = useNow();
  const isOpen = question.state === "open";
  const busy = sending.value.get(question.id);
  return (
    <li class={isOpen && !busy ? "item" : "item over"}>
      <a href={`/approvals/${question.id}${tail}`} aria-current={isShown ? "true" : undefined}>
        <Glyph sign={isOpen ? "you" : toneOf(question.state)} />
        <span class="title">{title(question).slice(0, 300)}</span>
        <span class="when">{isOpen ? ago(question.asked_at, time) : ""}</span>
        <span class="sub">
          {busy
            ? `${busy}…`
            : isOpen
              ? subtitle(question).slice(0, 200)
              : `${question.state} by ${question.by || "nobody"}, ${moment(question.answered_at)}`}
        </span>
        {isOpen && <span class="due">{left(question.until - time)}</span>}
      </a>
    </li>
  );
}
