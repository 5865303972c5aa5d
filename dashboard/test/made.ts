// Events of a run, made by hand.
import type { Data, JournalEvent } from "../src/fold/events";
import { History } from "../src/fold/history";

export const START = 1_700_000_000_000_000;

/** Makes a run event by event; each is a tenth of a second after the one before. */
export class Made {
  readonly events: JournalEvent[] = [];
  private readonly chains = new Map<string, string[]>();

  tell(kind: string, task: string, agent: string, data: Data = {}, after = 100_000): this {
    const at = (this.events.at(-1)?.at ?? START) + after;
    this.events.push({ seq: this.events.length + 1, at, kind, run: "t1", session: "s", task, agent, data });
    return this;
  }

  start(task: string, agent: string, parent = "", more: Data = {}): this {
    const chain = [...(this.chains.get(parent) ?? []), agent];
    this.chains.set(task, chain);
    const data = { parent, chain, task: `do ${task}`, sees: [], bounds: { depth: 3 }, ...more };
    return this.tell("task.started", task, agent, data);
  }

  complete(task: string, agent: string): this {
    return this.tell("task.completed", task, agent, { result: "done" });
  }

  get history(): History {
    const history = new History();
    history.add(this.events);
    return history;
  }
}
