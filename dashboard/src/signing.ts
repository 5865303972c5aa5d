// Signing in and out: a key becomes the session of this browser.
import { ApiError, call } from "./api";
import { reason, type Session, session } from "./session";

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
