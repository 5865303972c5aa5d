// One plain sentence about a run.

import { listed, many } from "../parts/money";
import { isOver } from "./lifecycle";
import { holders, rootOf, type RunState, type Task, walk } from "./state";

const NAMED = 4; // more agents than that are counted

function tally(names: readonly string[]): string[] {
  const times = new Map<string, number>();
  for (const name of names) times.set(name, (times.get(name) ?? 0) + 1);
  const words = [...times].map(([name, number]) => (number > 1 ? `${name} ×${number}` : name));
  return words.length > NAMED ? [...words.slice(0, NAMED - 1), `${words.length - NAMED + 1} others`] : words;
}

function begun(state: RunState, root: Task): string {
  const first = holders(root)[0] as string;
  const asked = root.children.map((id) => state.tasks.get(id) as Task).filter((child) => child.step === "");
  const steps = root.plans.reduce((sum, plan) => sum + plan.length, 0);
  const parts: string[] = [];
  if (steps > 0) parts.push(`${first} planned ${many(steps, "step")}`);
  const names = tally(asked.map((child) => holders(child)[0] as string));
  if (names.length > 0) parts.push(`${steps > 0 ? "then" : first} asked ${listed(names)}`);
  if (holders(root).length > 1) parts.push(`${parts.length > 0 ? "then" : first} handed over to ${root.agent}`);
  if (parts.length > 0) return parts.join(", ");
  if (root.state === "pending") return `${first} has not started yet`;
  if (isOver(root.state)) return `${first} worked alone`;
  return state.asking.length > 0 ? "" : `${first} is at work`;
}

function working(state: RunState, all: readonly Task[]): string {
  if (state.asking.length > 0) {
    const names = tally(state.asking.map((id) => state.tasks.get(id)?.agent ?? ""));
    return `${listed(names)} ${state.asking.length > 1 ? "wait" : "waits"} for you`;
  }
  const busy = all.filter((task) => task.state === "running" && task.below === 0).map((task) => task.agent);
  const names = tally(busy);
  return names.length > 0 ? `${listed(names)} ${busy.length > 1 ? "are" : "is"} at work` : "";
}

function rules(all: readonly Task[]): string {
  const times = new Map<string, number>();
  for (const task of all) for (const one of task.refusals) times.set(one.rule, (times.get(one.rule) ?? 0) + 1);
  return [...times].map(([rule, number]) => (number > 1 ? `${rule} ×${number}` : rule)).join(", ");
}

function outcome(root: Task): string {
  if (root.state === "cancelled") return "the run was cancelled";
  if (root.state === "failed" || root.state === "dead") return `the run failed`;
  return root.state === "cancelling" ? "the run is being cancelled" : "";
}

export function sentence(state: RunState): string {
  const root = rootOf(state);
  if (root === undefined) return "Nothing has happened yet.";
  const all = walk(state);
  const alone = root.state === "running" && root.children.length === 0 && root.trail.length === 0;
  const parts = [begun(state, root), alone && state.asking.length === 0 ? "" : working(state, all), outcome(root)];
  const failed = tally(all.filter((one) => one !== root && (one.state === "failed" || one.state === "dead")).map((one) => one.agent));
  if (failed.length > 0) parts.push(`${listed(failed)} failed`);
  if (state.refused > 0) parts.push(`${many(state.refused, "delegation")} refused (${rules(all)})`);
  return `${parts.filter((part) => part !== "").join("; ")}.`;
}
