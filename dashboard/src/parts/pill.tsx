// Signs and pills: each tone has a colour and a shape, so that colour is never the only difference.
import type { ComponentChildren } from "preact";
import { money } from "./money";

export type Tone = "live" | "done" | "you" | "bad" | "cash" | "pass" | "idle";
export type Sign = Tone | "refused" | "gone";

const LINES: Partial<Record<Sign, string>> = {
  done: "M2.5 7.4 5.8 10.6 11.6 3.8",
  bad: "M3.5 3.5 10.5 10.5M10.5 3.5 3.5 10.5",
  pass: "M2 7h9M8 3.800l3.2 3.200L8 10.2",
  cash: "M7 2.2 12 11.400H2z",
};

export function Glyph({ sign }: { sign: Sign }) {
  return (
    <svg class={`glyph s-${sign}`} viewBox="0 0 14 14" aria-hidden="true">
      {drawn(sign)}
    </svg>
  );
}

function drawn(sign: Sign) {
  const line = LINES[sign];
  if (line !== undefined)
    return <path d={line} fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" />;
  if (sign === "you")
    return <path d="M7 1.800a2.6 2.6 0 1 1 0 5.200a2.6 2.6 0 1 1 0-5.200M2 13c.3-3.2 2.3-5 5-5s4.7 1.8 5 5z" fill="currentColor" />;
  if (sign === "refused")
    return <path d="M12 7a5 5 0 1 1-10 0a5 5 0 1 1 10 0M3.6 10.4 10.4 3.6" fill="none" stroke="currentColor" stroke-width="1.6" />;
  if (sign === "idle")
    return <circle cx="7" cy="7" r="4" fill="none" stroke="currentColor" stroke-width="1.8" stroke-dasharray="2.2 2" />;
  if (sign === "gone") return <circle cx="7" cy="7" r="4" fill="none" stroke="currentColor" stroke-width="2" />;
  return (
    <g fill="currentColor">
      <circle class="halo" cx="7" cy="7" r="5.5" opacity=".35" />
      <circle cx="7" cy="7" r="3.6" />
    </g>
  );
}

export function Pill({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`pill t-${tone}`}>
      <i aria-hidden="true" />
      {children}
    </span>
  );
}

interface BurnOf {
  spent: number;
  of: number;
  held?: number;
}

/** How much of an amount is spent (full) and held (hatched). */
export function BurnLine({ spent, of, held = 0 }: BurnOf) {
  const share = (amount: number) => `${Math.max(0, Math.min(100, of > 0 ? (100 * amount) / of : 0))}%`;
  const says = `${money(spent)} of ${money(of)} spent${held > 0 ? `, ${money(held)} held` : ""}`;
  return (
    <span class={spent > 0.8 * of ? "burnline hot" : "burnline"} role="img" aria-label={says}>
      {held > 0 && <i class="holding" style={{ width: share(spent + held) }} />}
      <i style={{ width: share(spent) }} />
    </span>
  );
}
