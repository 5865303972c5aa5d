// The versions of an entry.
import { address, call, route } from "../api";
import type { Json } from "../shapes";

export interface Version {
  version: number;
  value: Json;
  agent: string;
  by: string;
  at: number;
  run: string;
  removed: string; // why it was removed; "" for a version
}

const PAGES = 5;

/** Return the versions of an entry, the latest first, and whether these are all. */
export async function entryHistory(namespace: string, key: string): Promise<{ versions: Version[]; whole: boolean }> {
  const versions: Version[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page++) {
    const path: string = address(`${route("context", namespace, key)}/versions`, { limit: 100, cursor });
    const found: { versions: Version[]; next: string | null } = await call("GET", path);
    versions.push(...found.versions);
    cursor = found.next;
    if (cursor === null) break;
  }
  return { versions, whole: cursor === null };
}
