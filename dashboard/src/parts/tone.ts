// The tone of a state: each state has one colour everywhere. Violet is only for a person that is waited for.
import type { Tone } from "./pill";

const TONES: Record<string, Tone> = {
  running: "live",
  cancelling: "bad",
  completed: "done",
  approved: "done",
  answered: "done",
  active: "done",
  closed: "done",
  failed: "bad",
  dead: "bad",
  rejected: "bad",
  revoked: "bad",
  lost: "bad",
  open: "bad",
  "half-open": "cash",
};

/** Return the tone of a state. `asks` says that a person is waited for. */
export function toneOf(state: string, asks = false): Tone {
  return asks ? "you" : (TONES[state] ?? "idle");
}
