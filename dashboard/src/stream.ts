// The one stream of events of this browser. The first tab reads it and passes it on to the others; when that tab is
// closed, another one goes on after the last event it has.

import { signal } from "@preact/signals";
import type { JournalEvent } from "./fold/events";
import { lapse } from "./session";
import { addWords, answers, clearWords, dropAnswered, type Words } from "./speaking";
import { type Frame, frames } from "./sse";

export interface Gap {
  readonly first: number;
  readonly last: number;
}

export type { JournalEvent as RemitEvent } from "./fold/events";

/** How the live view is. `since` is when that began, in milliseconds since 1970. After an interruption, `paused` is how
 * long it was, in milliseconds, and `behind` how many events came at once; `catching` says that more may come. */
export interface Live {
  readonly state: "connecting" | "live" | "paused" | "gone" | "revoked";
  readonly since: number;
  readonly behind: number;
  readonly paused: number;
  readonly catching: boolean;
}

const began = (state: Live["state"], since = Date.now()): Live => ({ state, since, behind: 0, paused: 0, catching: false });

export const live = signal<Live>(began("connecting"));

interface Readers {
  events: (events: readonly JournalEvent[]) => void;
  gap: (first: number, last: number) => void;
  opened: () => void;
}
const readers: { [Name in keyof Readers]: Set<Readers[Name]> } = {
  events: new Set(),
  gap: new Set(),
  opened: new Set(),
};

function reading<Name extends keyof Readers>(name: Name, reader: Readers[Name]): () => void {
  const all: Set<Readers[Name]> = readers[name];
  all.add(reader);
  return () => all.delete(reader);
}

/** Hear every new event of the workspace, several at a time. Return a function that stops it. */
export const listen = (hear: Readers["events"]) => reading("events", hear);
/** Hear which events were removed before this browser read them. */
export const onGap = (reader: Readers["gap"]) => reading("gap", reader);
/** Hear that events may have been missed: read what is new from the API. */
export const onOpened = (reader: Readers["opened"]) => reading("opened", reader);

/** What the live view says to a person. */
export function liveText(now: Live, at = Date.now()): string {
  const seconds = (length: number) => `${Math.max(0, Math.round(length / 1_000))} s`;
  switch (now.state) {
    case "connecting":
      return "connecting";
    case "live":
      return now.catching ? `live view paused ${seconds(now.paused)}, catching up ${now.behind} events` : "live";
    case "paused":
      return `reconnecting, live view paused ${seconds(at - now.since)}`;
    case "gone":
      return `the server has not answered for ${seconds(at - now.since)}`;
    case "revoked":
      return "this key was revoked";
  }
}

// -- one tab reads --------------------------------------------------------------------------------------------------

type Told =
  | { readonly events: readonly JournalEvent[] }
  | { readonly words: Words }
  | { readonly gap: Gap }
  | { readonly live: Live }
  | { readonly opened: true }
  | { readonly hello: true };

const SILENCE = 40_000; // the server gives a sign of life every 15 seconds
const GONE = 10_000;
const DELAYS = [300, 1_000, 1_000, 2_000, 3_000, 5_000];
const QUIET = 400; // without events for so long, it has caught up

let last = 0; // the number of the last event that this tab has
let channel: BroadcastChannel | undefined;
let isLeader = false;
let isStarted = false;

/** Read events from now on. It goes on until the session ends. */
export function startStream(): void {
  if (isStarted) return;
  isStarted = true;
  live.value = began("connecting");
  if (!("locks" in navigator)) return void lead(); // not a secure context: every tab reads for itself
  channel ??= new BroadcastChannel("remit-events");
  channel.onmessage = ({ data }: MessageEvent<Told>) => {
    if ("hello" in data) {
      if (isLeader) welcome();
    } else hear(data);
  };
  channel.postMessage({ hello: true } satisfies Told);
  void navigator.locks.request("remit-events", lead);
}

/** Tell a new tab how the live view is, and what models have said so far. */
function welcome(): void {
  channel?.postMessage({ live: live.value } satisfies Told);
  for (const words of answers.peek().values()) channel?.postMessage({ words } satisfies Told);
}

function tell(told: Told): void {
  channel?.postMessage(told);
  hear(told);
}

function hear(told: Told): void {
  if ("events" in told) take(told.events);
  else if ("words" in told) addWords(told.words);
  else if ("live" in told) live.value = told.live;
  else if ("opened" in told) {
    clearWords();
    for (const reader of readers.opened) reader();
  } else if ("gap" in told) {
    last = Math.max(last, told.gap.last);
    for (const reader of readers.gap) reader(told.gap.first, told.gap.last);
  }
}

function take(events: readonly JournalEvent[]): void {
  const fresh = events.filter((event) => event.seq > last);
  const first = fresh[0];
  if (first === undefined) return;
  const missed = last > 0 && first.seq > last + 1; // this tab slept, or was opened in between
  last = (fresh.at(-1) as JournalEvent).seq;
  dropAnswered(fresh);
  for (const reader of readers.events) reader(fresh);
  if (missed) for (const reader of readers.opened) reader();
}

async function lead(): Promise<void> {
  isLeader = true;
  try {
    await keepReading();
  } finally {
    isLeader = isStarted = false; // the session is over; the next one starts again
  }
}

async function keepReading(): Promise<void> {
  let lost = 0; // when the connection was interrupted
  for (let tries = 0; !isRevoked(); tries++) {
    try {
      await once(lost, () => {
        tries = 0;
      });
    } catch (error) {
      if (error instanceof Ended) return;
    }
    if (isRevoked()) return;
    if (lost === 0 || live.value.state === "live" && !live.value.catching) lost = Date.now();
    tell({ live: began(Date.now() - lost > GONE ? "gone" : "paused", lost) });
    await new Promise((wake) => setTimeout(wake, DELAYS[Math.min(tries, DELAYS.length - 1)]));
  }
}

class Ended extends Error {}
const isRevoked = (): boolean => live.value.state === "revoked";

/** Read the stream until it breaks. */
async function once(lost: number, opened: () => void): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (last > 0) headers["Last-Event-ID"] = String(last);
  const response = await fetch("/v1/events?words=true", { headers, credentials: "same-origin", cache: "no-store" });
  if (response.status === 401) {
    lapse("The session has ended. Sign in again.");
    throw new Ended();
  }
  if (response.status === 409) last = 0; // the store was restored from a backup
  if (!response.ok || response.body === null) throw new Error(`the server answered ${response.status}`);
  opened();
  const catching = new CatchingUp(lost === 0 ? 0 : Date.now() - lost);
  if (lost === 0 || last === 0) tell({ opened: true });
  for await (const some of frames(response.body, SILENCE)) {
    deliver(some, catching);
    if (isRevoked()) return;
  }
}

/** Counts what comes after an interruption, until nothing more comes at once. */
class CatchingUp {
  private behind = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isOver = false;

  constructor(private readonly paused: number) {
    if (paused === 0) this.end();
    else this.count(0);
  }

  count(events: number): void {
    if (this.isOver) return;
    this.behind += events;
    this.tell(true);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(), QUIET);
  }

  private end(): void {
    this.isOver = true;
    this.tell(false);
  }

  private tell(catching: boolean): void {
    tell({ live: { ...began("live"), behind: this.behind, paused: this.paused, catching } });
  }
}

function deliver(some: readonly Frame[], catching: CatchingUp): void {
  let events: JournalEvent[] = [];
  const flush = (): void => {
    if (events.length === 0) return;
    catching.count(events.length);
    tell({ events });
    events = [];
  };
  for (const { kind, data } of some) {
    if (data === "" || kind === "cursor" || kind === "message") continue;
    if (kind === "revoked") {
      flush();
      tell({ live: began("revoked") });
      lapse("This key was revoked. Sign in with another one.");
    } else if (kind === "words") tell({ words: JSON.parse(data) as Words });
    else if (kind === "gap") {
      flush();
      tell({ gap: JSON.parse(data) as Gap });
    } else events.push(JSON.parse(data) as JournalEvent);
  }
  flush();
}
