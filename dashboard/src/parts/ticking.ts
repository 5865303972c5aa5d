// The time now, for ages and countdowns. It moves once a second, and only while somebody looks.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { now } from "./said";

const time = signal(now());
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Return the time now, in microseconds; the component is drawn again each second. */
export function useNow(): number {
  useEffect(() => {
    if (watchers++ === 0) timer = setInterval(() => (time.value = now()), 1_000);
    time.value = now();
    return () => {
      if (--watchers === 0) clearInterval(timer);
    };
  }, []);
  return time.value;
}
