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

const LEAVES = 60_000; // characters; a browser finishes a request of this size after its page was left

/** Call the server. A body is sent as JSON; `key` is an Idempotency-Key, so that a repeated request acts once. */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  key = "",
  more: Record<string, string> = {},
): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json", ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && session.value) headers["X-Remit-CSRF"] = session.value.csrf;
  if (key) headers["Idempotency-Key"] = key;
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (body !== undefined) {
    const text = JSON.stringify(body);
    init.body = text;
    init.keepalive = text.length < LEAVES;
  }
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

type Query = Record<string, string | number | boolean | null | undefined>;

/** Return a path with those parameters that have a value. */
export function address(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** Return the path of a route; each part is encoded, so that a name with a slash stays one part. */
export function route(...parts: string[]): string {
  return `/v1/${parts.map(encodeURIComponent).join("/")}`;
}

/** Return a new Idempotency-Key. `crypto.randomUUID` is missing where the page came over plain http. */
export function freshKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
}

/** Return the sentence of an error. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
