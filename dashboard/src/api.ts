// Requests to the server. Every error becomes an ApiError whose message is a sentence for the person.
import { lapse, session } from "./session";

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: the server did not answer
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** Call the server. A body is sent as JSON; `key` is an Idempotency-Key, so that a repeated request acts once. */
export async function call<T>(method: string, path: string, body?: unknown, key = ""): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && session.value) headers["X-Remit-CSRF"] = session.value.csrf;
  if (key) headers["Idempotency-Key"] = key;
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (body !== undefined) init.body = JSON.stringify(body);
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new ApiError(0, "unreachable", "the server does not answer; is `remit serve` still running?");
  }
  const data = await json(response);
  if (response.ok) return data as T;
  const told = (data ?? {}) as { code?: string; detail?: string };
  if (response.status === 401) lapse("The session has ended. Sign in again.");
  throw new ApiError(response.status, told.code ?? "", told.detail ?? `the server answered ${response.status}`);
}

async function json(response: Response): Promise<unknown> {
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch {
    return null;
  }
}
