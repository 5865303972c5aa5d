// Events of the journal, as `/v1/events` writes them.

// What a kind puts into `data` is described in the reference of events; the fold reads the fields it knows.
// biome-ignore lint: the fields differ from kind to kind
export type Data = Record<string, any>;

export interface JournalEvent {
  readonly seq: number;
  readonly at: number; // microseconds since 1970
  readonly kind: string;
  readonly run: string;
  readonly session: string;
  readonly task: string;
  readonly agent: string;
  readonly data: Data;
  readonly op?: string | null;
  readonly answer?: unknown; // the result of the operation, on its first event
}
