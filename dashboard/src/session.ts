// The session of this browser: a key becomes a cookie that no script can read. The page keeps the text for X-Remit-CSRF.
import { computed, signal } from "@preact/signals";
import { ApiError, call } from "./api";

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

/** Trade a key for a session. Throws the server's sentence for a wrong one. */
export async function signIn(key: string): Promise<void> {
  session.value = await call<Session>("POST", "/v1/session", { key });
  reason.value = "";
}

export async function signOut(): Promise<void> {
  await call("DELETE", "/v1/session");
  session.value = null;
  reason.value = "";
}

/** Forget the session: the server does not know it any more. */
export function lapse(why: string): void {
  if (session.value) reason.value = why;
  session.value = null;
}

/** Take the key out of the address, so that it is in no history and no screenshot. */
export function keyInAddress(): string {
  const found = new URLSearchParams(location.hash.slice(1)).get("key") ?? "";
  if (found) history.replaceState(null, "", location.pathname + location.search);
  return found;
}

/** Find out who is signed in: by the key in the address, else by the cookie. */
export async function startSession(): Promise<void> {
  const key = keyInAddress();
  try {
    if (key) await signIn(key);
    else session.value = await call<Session>("GET", "/v1/session");
  } catch (error) {
    session.value = null;
    if (key || !(error instanceof ApiError && error.status === 401)) reason.value = (error as Error).message;
  }
}
