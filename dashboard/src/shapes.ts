// What the API answers, as far as the pages read it. Times are whole microseconds since 1970, money is millionths of a
// dollar. A field with `?` is missing in answers of older servers.
import type { JournalEvent } from "./fold/events";

export type Event = JournalEvent;
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Micros = number;

export interface RunRow {
  id: string;
  state: string;
  agent: string;
  task: string;
  session: string;
  tasks: number;
  handoffs: number;
  tokens: number;
  credits: number;
  refused: number;
  by: string;
  tags: string[];
  asked_at: Micros;
  ended_at: Micros | null;
  granted?: number | null;
  held?: number;
  agents?: string[];
  depth?: number; // of the longest chain: 1 for a task that asked nobody
  questions?: number;
  seen_at?: Micros | null;
  stalled?: boolean;
}

export interface TaskRow {
  id: string;
  state: string;
  agent: string;
  run: string;
  parent: string;
  began: number;
}

export interface Question {
  id: string;
  kind: "ask" | "hop" | "tool" | "review" | "money";
  text: string;
  agent: string;
  task: string;
  run: string;
  session: string;
  asked_at: Micros;
  until: Micros;
  state: string;
  choices: string[];
  default: Json;
  shows: Record<string, Json>;
  digest: string;
  by: string;
  channel: string;
  why: string;
  value: Json;
  answered_at: Micros | null;
  used: boolean;
  seq: number;
  chain: string;
  editable: "task" | "arguments" | "result" | "amount" | "";
}

export interface AgentCard {
  name: string;
  role: string;
  can: string[];
  asks: string[] | string;
  reads: string[];
  writes: string[];
  tools: string[] | string;
  deny: string[] | string;
  concurrency: number | null;
  trusted_output: boolean;
  needs_approval: boolean;
  instructions: string;
  ask_person: boolean;
  review?: boolean;
  workers: number;
}

export interface Breaker {
  agent: string;
  state: string;
  failures: number;
  until: Micros;
  why: string;
}

export interface AgentFigures {
  turns: number;
  completed: number;
  failed: number;
  cancelled: number;
  handed: number;
  tokens: number;
  credits: number;
  time_mean: number;
  time_p50?: number;
  time_p95: number;
  refused?: number;
}

export interface Figures {
  runs: Record<string, number>;
  tasks: number;
  refusals: Record<string, number>;
  refused_credits?: number;
  agents: Record<string, AgentFigures>;
}

export interface AskEdge {
  asker: string;
  agent: string;
  asked: number;
  completed: number;
  failed: number;
  cancelled: number;
  dead: number;
  refused: number;
  credits: number;
}

export interface Entry {
  namespace: string;
  key: string;
  value: Json;
  agent: string;
  version: number;
  digest: string;
  created_at: Micros;
  updated_at: Micros;
  expires_at: Micros | null;
  trust: string;
  task: string;
  chain: string[];
}

export interface SpendLine {
  name: string;
  credits: number;
  tokens: number;
  calls: number;
  uncertain: number;
  own_key: number;
}

export interface Spending {
  by: string;
  lines: SpendLine[];
  total: SpendLine;
  pruned: SpendLine | null;
}

export interface LimitUse {
  per: string;
  scope: string;
  name: string;
  unit: string;
  most: number;
  used: number;
  held: number;
  left: number;
  room_at: Micros | null;
}

export interface UncertainCall {
  id: string;
  task: string;
  run: string;
  agent: string;
  credits: number | null;
  tokens: number | null;
  why: string;
  model: string;
  hour: number;
}

export interface AccessRow {
  id: string;
  name: string;
  state: string;
  scopes: string[];
  agent: string;
  bounds: Record<string, Json>;
  expires_at: Micros | null;
  made_at: Micros;
  made_by: string;
  revoked_at: Micros | null;
  revoked_by: string;
  used_at: Micros | null;
}

export interface HookRow {
  id: string;
  url: string;
  kinds: string[];
  run: string;
  added_by: string;
  added_at: Micros;
  rotated_at: Micros | null;
  waiting: number;
  failing: string;
  failing_since: Micros | null;
}

export interface DeliveryRow {
  id: string;
  event: number;
  kind: string;
  state: string;
  attempt: number;
  asked_at: Micros;
  ended_at: Micros | null;
  next_at: Micros | null;
  error: string;
}

export interface ScheduleRow {
  name: string;
  state: string;
  cron: string;
  zone: string;
  agent: string;
  task: string;
  next: Micros | null;
  last: Micros | null;
  runs: number;
  source?: string;
}

export interface WorkerRow {
  id: string;
  process: string;
  concurrency: number;
  seen_at?: Micros | null;
}

/** What a turn saw: key, why, tokens, version, digest, trust. */
export type Slice = [string, string, number, number, string, string];

export interface Receipt {
  saw: Slice[];
  tokens: number;
  unlisted: number;
  withheld: [string, string][];
}
