// The tree as an indented list: what a screen reader and the keyboard use at every width, and what a phone shows.
import { useComputed } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { holders, type RunState, type Task } from "../fold/state";
import { money } from "../parts/money";
import { Glyph } from "../parts/pill";
import { below, stackKey } from "./layout";
import { narrow } from "./hooks";
import { errorOf, isAlive, signOf, titleOf, toneOf, wordOf } from "./look";
import type { RunModel } from "./model";
import { loudest, mixOf, mixText, Saying } from "./node";
import { chooseKey } from "./tree";

interface Row {
  readonly key: string;
  readonly level: number;
  readonly task?: string;
  readonly members?: readonly string[];
  readonly refused?: readonly [to: string, rule: string, times: number, sentence: string];
}

/** The tree in order, with the level of each item. */
function rowsOf(state: RunState): Row[] {
  const rows: Row[] = [];
  const add = (task: Task, level: number): void => {
    rows.push({ key: task.id, level, task: task.id });
    for (const one of below(state, task)) {
      if ("task" in one) add(one.task, level + 1);
      else if ("stack" in one) rows.push(stackRow(one.stack, level + 1));
      else {
        const { to, rule, sentence } = one.refusal;
        const times = task.refusals.filter((other) => other.to === to && other.rule === rule).length;
        rows.push({ key: `chip ${task.id} ${rule} ${to}`, level: level + 1, refused: [to, rule, times, sentence] });
      }
    }
  };
  const root = state.tasks.get(state.root);
  if (root !== undefined) add(root, 1);
  return rows;
}

function stackRow(stack: readonly Task[], level: number): Row {
  const { parent, agent } = stack[0] as Task;
  return { key: stackKey(parent, agent), level, members: stack.map((member) => member.id) };
}

export function Nested({ model }: { model: RunModel }) {
  const ref = useRef<HTMLUListElement>(null);
  const changes = useComputed(() => `${model.state.value.shape} ${model.state.value.refused}`);
  changes.value; // the list changes with the shape of the tree; each item follows its own task
  const walk = (event: KeyboardEvent) => {
    const to = ref.current === null ? undefined : neighbour(ref.current, event.key);
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    chooseKey(model, to.dataset.item as string);
    to.focus();
  };
  const rows = rowsOf(model.state.peek());
  const shown = useSlices(rows.length);
  return (
    <div class="list">
      <ul role="tree" aria-label="Delegation tree" ref={ref} onKeyDown={walk} aria-busy={shown < rows.length}>
        {rows.slice(0, shown).map((row) => (
          <Item key={row.key} model={model} row={row} />
        ))}
      </ul>
    </div>
  );
}

const SLICE = 40;

/** How many rows to draw: some at once and the others step by step, so that a long list does not hold up the page. */
function useSlices(all: number): number {
  const [shown, setShown] = useState(SLICE);
  const missing = shown < all;
  useEffect(() => {
    if (!missing) return undefined;
    const timer = setTimeout(() => setShown(shown + SLICE), 30);
    return () => clearTimeout(timer);
  }, [missing, shown]);
  return shown;
}

const levelOf = (item: HTMLElement | undefined): number => Number(item?.getAttribute("aria-level") ?? 0);

/** The item that a key leads to, from the one that has the focus. */
function neighbour(list: HTMLElement, key: string): HTMLElement | undefined {
  const items = [...list.querySelectorAll<HTMLElement>("[data-item]")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const level = levelOf(items[at]);
  if (at < 0) return undefined;
  if (key === "ArrowDown") return items[at + 1];
  if (key === "ArrowUp") return items[at - 1];
  if (key === "ArrowRight") return levelOf(items[at + 1]) > level ? items[at + 1] : undefined;
  if (key === "ArrowLeft") return items.slice(0, at).findLast((item) => levelOf(item) < level);
  if (key === "Home") return items[0];
  return key === "End" ? items.at(-1) : undefined;
}

function Item({ model, row }: { model: RunModel; row: Row }) {
  const on = useComputed(() => (row.task ?? "") === model.shownId.value || model.chosen.value === row.key).value;
  return (
    <li
      role="treeitem"
      data-item={row.key}
      tabIndex={on ? 0 : -1}
      aria-level={row.level}
      aria-selected={on}
      style={{ paddingLeft: `${(Math.min(row.level, 9) - 1) * 20}px` }}
      onClick={() => chooseKey(model, row.key)}
    >
      {row.task !== undefined ? (
        <TaskLine model={model} id={row.task} on={on} />
      ) : row.members !== undefined ? (
        <StackLine model={model} members={row.members} on={on} />
      ) : (
        <RefusedLine refused={row.refused as NonNullable<Row["refused"]>} />
      )}
    </li>
  );
}

function TaskLine({ model, id, on }: { model: RunModel; id: string; on: boolean }) {
  const task = useComputed(() => model.state.value.tasks.get(id)).value;
  if (task === undefined) return null;
  const failed = task.state === "failed" || task.state === "dead";
  const said = isAlive(task) && narrow.value ? model.saying(id) : ""; // on a phone this list is what is seen
  return (
    <div class={`line t-${toneOf(task)}${on ? " on" : ""}`}>
      {narrow.value && <Glyph sign={signOf(task, model.workers.value)} />}
      <b>
        {holders(task).join(" → ")} <span class="unseen">{wordOf(task)}</span>
      </b>
      <span class="v">{task.total > 0 ? money(task.total) : ""}</span>
      <small class={failed ? "er" : ""}>
        {failed ? errorOf(task).slice(0, 400) : said !== "" ? <Saying words={said} /> : titleOf(task)}
      </small>
    </div>
  );
}

function StackLine({ model, members, on }: { model: RunModel; members: readonly string[]; on: boolean }) {
  const { tasks } = model.state.value;
  const mix = mixOf(members.map((id) => tasks.get(id)).filter((task): task is Task => task !== undefined));
  return (
    <div class={`line t-${loudest(mix)}${on ? " on" : ""}`}>
      <Glyph sign={loudest(mix)} />
      <b>
        {tasks.get(members[0] as string)?.agent ?? ""} ×{mix.total}
      </b>
      <span class="v">{mix.spent > 0 ? money(mix.spent) : ""}</span>
      <small>{mixText(mix)}</small>
    </div>
  );
}

function RefusedLine({ refused: [to, rule, times, sentence] }: { refused: NonNullable<Row["refused"]> }) {
  return (
    <div class="line no">
      <Glyph sign="refused" />
      <span>
        {to}
        {times > 1 && ` ×${times}`} refused: {rule} <span class="unseen">{sentence}</span>
      </span>
    </div>
  );
}
