// Short messages at the foot of the page, and acts that are sent after five seconds unless they are undone.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { useKeys } from "./keys";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

export interface Later {
  id: number;
  text: string;
  at: number; // when it is sent, by performance.now()
  send: () => void;
  undone: () => void;
}

const SHOWN = 6_000;
export const UNDO = 5_000;
let last = 0;
export const toasts = signal<Toast[]>([]);
export const waiting = signal<Later[]>([]);
const timers = new Map<number, ReturnType<typeof setTimeout>>();

/** Say something for a few seconds. */
export function say(text: string, { bad = false } = {}): void {
  const toast = { id: ++last, text, bad };
  toasts.value = [...toasts.value.slice(-2), toast];
  setTimeout(() => (toasts.value = toasts.value.filter((one) => one !== toast)), SHOWN);
}

/** Do something in five seconds, unless the person takes it back. */
export function later(text: string, send: () => void, undone: () => void): void {
  const one: Later = { id: ++last, text, at: performance.now() + UNDO, send, undone };
  waiting.value = [...waiting.value, one];
  timers.set(one.id, setTimeout(() => finish(one, true), UNDO));
}

function finish(one: Later, sends: boolean): void {
  if (!waiting.value.includes(one)) return;
  clearTimeout(timers.get(one.id));
  timers.delete(one.id);
  waiting.value = waiting.value.filter((other) => other !== one);
  if (sends) one.send();
  else one.undone();
}

/** Take back the latest act that was not sent. */
export function undo(): void {
  const one = waiting.value.at(-1);
  if (one) finish(one, false);
}

/** Send what waits: the person leaves the page after deciding, and decided is decided. */
export function flush(): void {
  for (const one of waiting.value) finish(one, true);
}

function Countdown({ one }: { one: Later }) {
  const left = () => Math.max(0, Math.ceil((one.at - performance.now()) / 1_000));
  const [seconds, setSeconds] = useState(left);
  useEffect(() => {
    const timer = setInterval(() => setSeconds(left()), 250);
    return () => clearInterval(timer);
  }, [one]);
  return <span class="mono">{seconds} s</span>;
}

export function Toasts() {
  useKeys("Undo", waiting.value.length ? [{ key: "u", does: "undo", run: undo }] : []);
  useEffect(() => {
    addEventListener("pagehide", flush);
    return () => removeEventListener("pagehide", flush);
  }, []);
  return (
    <div class="toasts">
      <div role="status" aria-live="polite">
        {toasts.value.map((one) => (
          <p key={one.id} class={one.bad ? "toast bad" : "toast"}>
            {one.text}
          </p>
        ))}
        {waiting.value.map((one) => (
          <p key={one.id} class="toast">
            <span class="one-line">{one.text}</span>
          </p>
        ))}
      </div>
      {waiting.value.length > 0 && (
        <div class="undo">
          {waiting.value.slice(-1).map((one) => (
            <span key={one.id}>
              sent in <Countdown one={one} />
            </span>
          ))}
          <button class="button" onClick={undo}>
            Undo <kbd>u</kbd>
          </button>
        </div>
      )}
    </div>
  );
}
