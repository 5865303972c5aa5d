// The page of a run: a live delegation tree in which each edge is a grant.
import { useEffect, useMemo } from "preact/hooks";
import { listed } from "../parts/money";
import { setQuery } from "../router";
import { titleOf } from "./look";
import { Ask } from "./ask";
import { Drawer } from "./drawer";
import { Head } from "./head";
import { narrow, useSoon } from "./hooks";
import { useRunKeys } from "./keys";
import { RunModel } from "./model";
import { Nested } from "./nested";
import { Time } from "./time";
import { Tree } from "./tree";
import "./run.css";

export function RunPage({ values }: { values: Record<string, string> }) {
  const id = values.id ?? "";
  const model = useMemo(() => new RunModel(id), [id]);
  useEffect(() => {
    model.chosen.value = new URLSearchParams(location.search).get("task") ?? "";
    return model.start();
  }, [model]);
  useRunKeys(model);
  const title = model.root.value === undefined ? "" : titleOf(model.root.value);
  useEffect(() => {
    if (title !== "") document.title = `${title} · remit`;
  }, [title]);
  const chosen = model.chosen.value;
  useEffect(() => {
    if (chosen !== "" && !chosen.includes(" ")) setQuery({ task: chosen });
  }, [chosen]);
  return (
    <div class="run">
      <Removed model={model} />
      {model.root.value === undefined ? <Nothing model={model} /> : <Whole model={model} />}
    </div>
  );
}

function Whole({ model }: { model: RunModel }) {
  const first = model.questions.value[0]?.[1];
  const rest = useSoon(); // the tree comes first; all at once would hold up the page for longer
  return (
    <>
      <Head model={model} />
      {first !== undefined && narrow.value && (
        <div class="first">
          <Ask model={model} question={first} />
        </div>
      )}
      <div class="body">
        <div class="left">
          <Tree model={model} />
          {(rest > 2 || narrow.value) && <Nested model={model} />}
          {rest > 0 && <Time model={model} />}
        </div>
        {rest > 1 ? <Drawer model={model} /> : <aside class="drawer" aria-label="About a task" />}
      </div>
    </>
  );
}

/** Says which events were removed before this browser read them. */
function Removed({ model }: { model: RunModel }) {
  if (model.root.value === undefined || model.gaps.value.length === 0) return null;
  return (
    <div class="removed" role="status">
      {removedIn(model.gaps.value)}
    </div>
  );
}

/** "events 11-65 were removed"; of very many stretches the last ones. */
function removedIn(gaps: readonly { first: number; last: number }[]): string {
  const told = gaps.slice(-3).map(({ first, last }) => (first === last ? `event ${first}` : `events ${first}-${last}`));
  return `${gaps.length > 3 ? `${gaps.length - 3} earlier stretches, ` : ""}${listed(told)} were removed`;
}

/** There is nothing to show: not yet, not any more, or not for this key. */
function Nothing({ model }: { model: RunModel }) {
  const problem = model.problem.value;
  const gaps = model.gaps.value;
  if (!model.loaded.value) return <p class="empty-run quiet" role="status">Reading the run…</p>;
  if (problem !== null)
    return (
      <div class="empty-run" role="alert">
        <h1>{problem.status === 403 ? "This key may not see this run" : "The run could not be read"}</h1>
        <p class="quiet">{problem.message}</p>
        <button type="button" class="button" onClick={() => void model.catchUp()}>
          Try again
        </button>
      </div>
    );
  return (
    <div class="empty-run">
      <h1>This run is not here</h1>
      <p class="quiet">
        {gaps.length > 0
          ? `It may have been pruned: ${removedIn(gaps)}.`
          : "The journal has no events of it. Is the id right?"}
      </p>
      <p class="quiet">
        <code>{model.id}</code>
      </p>
      <a class="button" href="/">
        All runs
      </a>
    </div>
  );
}
