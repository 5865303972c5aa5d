// The tree as a nested list: what a screen reader and the keyboard use at every width, and what a phone shows.
import { useComputed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { holders, type RunState, type Task } from "../fold/state";
import { money } from "../parts/money";
import { Glyph } from "../parts/pill";
import { below, STACKED, stackKey } from "./layout";
import { errorOf, signOf, titleOf, toneOf, wordOf } from "./look";
import type { RunModel } from "./model";
import { loudest, mixOf, mixText } from "./node";
import { chooseKey } from "./tree";

export function Nested({ model }: { model: RunModel }) {
  const ref = useRef<HTMLUListElement>(null);
  const root = useComputed(() => model.state.value.root).value;
  const walk = (event: KeyboardEvent) => {
    const to = ref.current === null ? undefined : neighbour(ref.current, event.key);
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    chooseKey(model, to.dataset.item as string);
    to.focus();
  };
  return (
    <div class="list">
      <ul role="tree" aria-label="Delegation tree" ref={ref} onKeyDown={walk}>
        {root !== "" && <Item model={model} id={root} level={1} />}
      </ul>
    </div>
  );
}

/** The item that a key leads to, from the one that has the focus. */
function neighbour(list: HTMLElement, key: string): HTMLElement | undefined {
  const items = [...list.querySelectorAll<HTMLElement>("[data-item]")];
  const at = items.findIndex((item) => item === document.activeElement);
  const here = items[at];
  if (here === undefined) return undefined;
  if (key === "ArrowDown") return items[at + 1];
  if (key === "ArrowUp") return items[at - 1];
  if (key === "ArrowRight") return here.querySelector<HTMLElement>("[data-item]") ?? undefined;
  if (key === "ArrowLeft") return here.parentElement?.closest<HTMLElement>("[data-item]") ?? undefined;
  if (key === "Home") return items[0];
  return key === "End" ? items.at(-1) : undefined;
}

function Item({ model, id, level }: { model: RunModel; id: string; level: number }) {
  const task = useComputed(() => model.state.value.tasks.get(id)).value;
  const many = task !== undefined && task.children.length > STACKED;
  const shape = useComputed(() => model.state.value.shape);
  if (task === undefined) return null;
  const under = underNow(model, task, many ? shape.value : 1);
  const on = model.task.value?.id === id;
  const names = holders(task).join(" → ");
  const spent = task.total > 0 ? `, ${money(task.total)}` : "";
  return (
    <li
      role="treeitem"
      data-item={id}
      tabIndex={on ? 0 : -1}
      aria-level={level}
      aria-selected={on}
      aria-expanded={under.length > 0 ? true : undefined}
      aria-label={`${names}, ${wordOf(task)}${spent}: ${titleOf(task)}`}
      onClick={(event) => {
        event.stopPropagation();
        model.chosen.value = id;
      }}
    >
      <div class={`line t-${toneOf(task)}${on ? " on" : ""}`}>
        <Glyph sign={signOf(task, model.workers.value)} />
        <b>{names}</b>
        <span class="v">{task.total > 0 ? money(task.total) : ""}</span>
        <small class={task.state === "failed" ? "er" : ""}>{task.state === "failed" ? errorOf(task) : titleOf(task)}</small>
      </div>
      {under.length > 0 && (
        <ul role="group">
          {under.map((one) => (
            <Under key={one.key} model={model} one={one} level={level + 1} />
          ))}
        </ul>
      )}
    </li>
  );
}

interface UnderOne {
  readonly key: string;
  readonly task?: string;
  readonly members?: readonly string[];
  readonly refused?: readonly [to: string, rule: string, times: number, sentence: string];
}

/** What stands below a task at the moment that is shown. */
function underOf(state: RunState, task: Task): UnderOne[] {
  return below(state, task).map((one) => {
    if ("task" in one) return { key: one.task.id, task: one.task.id };
    if ("stack" in one) {
      const first = one.stack[0] as Task;
      return { key: stackKey(first.parent, first.agent), members: one.stack.map((member) => member.id) };
    }
    const { to, rule, sentence } = one.refusal;
    const times = task.refusals.filter((other) => other.to === to && other.rule === rule).length;
    return { key: `chip ${task.id} ${rule} ${to}`, refused: [to, rule, times, sentence] };
  });
}

/** Only a task with many children can have a stack, which depends on what its children do. */
function underNow(model: RunModel, task: Task, shape: number): UnderOne[] {
  if (task.children.length === 0 && task.refusals.length === 0) return [];
  return underOf(shape > 0 ? model.state.peek() : model.state.value, task);
}

function Under({ model, one, level }: { model: RunModel; one: UnderOne; level: number }) {
  if (one.task !== undefined) return <Item model={model} id={one.task} level={level} />;
  if (one.members !== undefined) return <StackItem model={model} item={one.key} members={one.members} level={level} />;
  const [to, rule, times, sentence] = one.refused as readonly [string, string, number, string];
  const text = `${to}${times > 1 ? ` ×${times}` : ""} refused: ${rule}`;
  return (
    <li role="treeitem" tabIndex={-1} data-item={one.key} aria-level={level} aria-selected={false} aria-label={`${text}. ${sentence}`}
      onClick={(event) => {
        event.stopPropagation();
        chooseKey(model, one.key);
      }}
    >
      <div class="line no">
        <Glyph sign="refused" />
        <span>{text}</span>
      </div>
    </li>
  );
}

interface StackOf {
  model: RunModel;
  item: string;
  members: readonly string[];
  level: number;
}

function StackItem({ model, item, members, level }: StackOf) {
  const { tasks } = model.state.value;
  const mix = mixOf(members.map((id) => tasks.get(id)).filter((task): task is Task => task !== undefined));
  const agent = tasks.get(members[0] as string)?.agent ?? "";
  const on = model.chosen.value === item;
  return (
    <li
      role="treeitem"
      data-item={item}
      tabIndex={on ? 0 : -1}
      aria-level={level}
      aria-selected={on}
      aria-label={`${agent} ×${mix.total}: ${mixText(mix)}`}
      onClick={(event) => {
        event.stopPropagation();
        model.chosen.value = item;
      }}
    >
      <div class={`line t-${loudest(mix)}${on ? " on" : ""}`}>
        <Glyph sign={loudest(mix)} />
        <b>
          {agent} ×{mix.total}
        </b>
        <span class="v">{mix.spent > 0 ? money(mix.spent) : ""}</span>
        <small>{mixText(mix)}</small>
      </div>
    </li>
  );
}
