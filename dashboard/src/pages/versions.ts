// The versions of an entry, from the journal.
import { address, call } from "../api";
import type { Event, Json } from "../shapes";

export interface Version {
  version: number;
  value: Json;
  agent: string;
  by: string;
  at: number;
  run: string;
  removed: string; // why it was removed; "" for a version
}

const PAGES = 10;
const PAGE = 1_000;

/** Return the version that an event made of an entry, or null if it is about another one. */
export function versionOf({ kind, data, agent, at, run }: Event, namespace: string, key: string): Version | null {
  const by = typeof data.by === "string" ? data.by : "";
  if (kind === "entry.set" && data.namespace === namespace && data.key === key)
    return { version: Number(data.version), value: data.value as Json, agent, by, at, run, removed: "" };
  if (kind !== "entries.removed") return null;
  const gone = (data.keys as [string, string, number][]).find(([space, name]) => space === namespace && name === key);
  return gone ? { version: gone[2], value: null, agent, by, at, run, removed: String(data.why) || "removed" } : null;
}

/** Return the versions of an entry, the latest first, and whether the whole journal was read for them. */
export async function entryHistory(namespace: string, key: string): Promise<{ versions: Version[]; whole: boolean }> {
  const versions: Version[] = [];
  let after: string | null = "0";
  for (let page = 0; after !== null && page < PAGES; page++) {
    const path: string = address("/v1/events", { kind: "entry.set,entries.removed", limit: PAGE, after });
    const found: { events: Event[]; next: string | null } = await call("GET", path);
    for (const event of found.events) {
      const version = versionOf(event, namespace, key);
      if (version) versions.unshift(version);
    }
    after = found.next;
  }
  return { versions, whole: after === null };
}
