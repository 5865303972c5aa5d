// The events of one run, its present state, and its state at any earlier moment.

import type { JournalEvent } from "./events";
import { apply } from "./fold";
import { branch, empty, type RunState } from "./state";

export const EVERY = 256; // events between two checkpoints

export interface Mark {
  readonly at: number;
  readonly kind: "refused" | "asked" | "handed" | "failed" | "raised";
}

const MARKS: Readonly<Record<string, Mark["kind"]>> = {
  "hop.refused": "refused",
  "question.asked": "asked",
  "task.handed": "handed",
  "task.failed": "failed",
  "task.died": "failed",
  "lease.raised": "raised",
};

export class History {
  readonly events: JournalEvent[] = [];
  readonly times: number[] = []; // of the events
  readonly marks: Mark[] = [];
  // The money of the run after each payment: [time, spent, granted].
  readonly burn: (readonly [at: number, spent: number, granted: number])[] = [];
  private readonly checkpoints: RunState[] = [empty()];
  private state: RunState = branch(this.checkpoints[0] as RunState);
  private scrubbed: RunState | undefined; // the last state that was asked for, for steps forward

  get now(): RunState {
    return this.state;
  }

  get seq(): number {
    return this.events.at(-1)?.seq ?? 0;
  }

  // Take events in order. Those that are there already are left out. Return how many were new.
  add(events: readonly JournalEvent[]): number {
    let added = 0;
    for (const event of events) {
      if (event.seq <= this.seq) continue;
      if (added === 0) this.state = branch(this.state); // what was drawn before keeps its state
      this.take(event);
      added++;
    }
    return added;
  }

  private take(event: JournalEvent): void {
    this.events.push(event);
    this.times.push(event.at);
    apply(this.state, event);
    const mark = MARKS[event.kind];
    if (mark !== undefined) this.marks.push({ at: event.at, kind: mark });
    this.follow(event);
    if (this.events.length % EVERY === 0) {
      this.checkpoints.push(this.state);
      this.state = branch(this.state);
    }
  }

  private follow(event: JournalEvent): void {
    const root = this.state.tasks.get(this.state.root);
    if (root?.granted === undefined) return;
    const last = this.burn.at(-1);
    if (last === undefined || last[1] !== root.total || last[2] !== root.granted)
      this.burn.push([event.at, root.total, root.granted]);
  }

  // The state after the first `count` events.
  at(count: number): RunState {
    if (count >= this.events.length) return this.state;
    const mark = Math.floor(count / EVERY);
    const base = this.nearest(count, mark);
    if (base.count === count) return base;
    const state = branch(base);
    for (let at = base.count; at < count; at++) apply(state, this.events[at] as JournalEvent);
    this.scrubbed = state;
    return state;
  }

  private nearest(count: number, mark: number): RunState {
    const found = this.checkpoints[mark] as RunState;
    const last = this.scrubbed;
    return last !== undefined && last.count <= count && last.count > found.count ? last : found;
  }

  // How many events had happened at this time.
  countAt(time: number): number {
    let low = 0;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.events[middle] as JournalEvent).at <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
