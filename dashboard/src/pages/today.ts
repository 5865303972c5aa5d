// What was spent today, and the cap of the workspace for a day if there is one.
import { signal } from "@preact/signals";
import { address, call } from "../api";
import { listen, onOpened } from "../stream";
import type { LimitUse, Spending } from "../shapes";

/** Spent today, or in the 24 hours of the cap; undefined until it is known. */
export const today = signal<number | undefined>(undefined);
export const cap = signal<number | undefined>(undefined);
const PAYS = new Set(["credits.spent", "hold.settled", "hold.reconciled"]);

async function load(): Promise<void> {
  try {
    const { limits } = await call<{ limits: LimitUse[] }>("GET", "/v1/limits");
    const own = limits.find((one) => one.scope === "workspace" && one.per === "day" && one.unit === "credits");
    cap.value = own?.most;
    if (own) today.value = own.used;
    else {
      const midnight = new Date().setHours(0, 0, 0, 0) * 1_000;
      today.value = (await call<Spending>("GET", address("/v1/spend", { by: "day", since: midnight }))).total.credits;
    }
  } catch {
    // The page shows errors of its own reads; the bar shows no amount that it does not know.
  }
}

/** Keep the amount up to date: payments are added as they are written, and everything is read again each minute. */
export function startToday(): () => void {
  void load();
  const timer = setInterval(() => void load(), 60_000);
  const stops = [
    listen((events) => {
      for (const { kind, data } of events)
        if (PAYS.has(kind) && today.value !== undefined)
          today.value += Number(data.costs?.credits ?? 0) - Number(data.charged?.credits ?? 0);
    }),
    onOpened(() => void load()),
  ];
  return () => {
    clearInterval(timer);
    for (const stop of stops) stop();
  };
}
