// The session of this browser: a key becomes a cookie that no script can read. The page keeps the text for X-Remit-CSRF.
import { computed, signal } from "@preact/signals";

export interface Session {
  workspace: string;
  scopes: string[];
  agent: string; // "" for the owner
  by: string; // its name in the journal
  csrf: string;
  until: number; // microseconds
}

/** undefined: not known yet; null: nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
/** Why the last session ended, or why the sign-in failed. */
export const reason = signal("");

/** What the session may do: of read, run, approve and admin. */
export const permitted = computed(() => new Set(session.value?.scopes));

/** Whether this session may do what needs a scope: read, run, approve or admin. */
export function may(scope: string): boolean {
  return permitted.value.has(scope);
}

/** Forget the session: the server does not know it any more. */
export function lapse(why: string): void {
  if (session.value) reason.value = why;
  session.value = null;
}
