// The breakers of agents, for the bar and the pages. An event says when one changes.
import { signal } from "@preact/signals";
import { call } from "../api";
import { listen, onOpened } from "../stream";
import type { Breaker, Event } from "../shapes";

/** Breakers of agents that failed recently or are out of service; undefined until they are known. */
export const breakers = signal<Breaker[] | undefined>(undefined);

async function load(): Promise<void> {
  try {
    breakers.value = (await call<{ breakers: Breaker[] }>("GET", "/v1/breakers")).breakers;
  } catch {
    // The pages show the error of their own reads; the bar shows no breaker that it does not know.
  }
}

function take(event: Event): void {
  const { name, state, failures, until, why } = event.data;
  const one: Breaker = { agent: String(name), state: String(state), failures: Number(failures), until: Number(until), why: String(why ?? "") };
  const others = (breakers.value ?? []).filter((other) => other.agent !== one.agent);
  breakers.value = [...others, one].toSorted((a, b) => a.agent.localeCompare(b.agent));
}

/** Keep the breakers up to date. */
export function startBreakers(): () => void {
  void load();
  const stops = [
    listen((events) => events.filter((event) => event.kind === "breaker.set").forEach(take)),
    onOpened(() => void load()),
  ];
  return () => stops.forEach((stop) => stop());
}
