// Keys of the keyboard. A page says which keys it has; the help lists those that work now.
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";

export interface Key {
  key: string; // as in KeyboardEvent.key; "g r" is g, then r
  does: string;
  run: () => void;
}

interface Group {
  name: string;
  keys: () => Key[];
}

/** The groups of keys that work now; the one of the page is the last. */
export const groups = signal<Group[]>([]);
const PAUSE = 1_200; // milliseconds between two keys of one command
let before = { key: "", at: 0 };

/** Keys that work while the component is shown. */
export function useKeys(name: string, keys: Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const group = { name, keys: () => latest.current };
    groups.value = [...groups.peek(), group];
    return () => {
      groups.value = groups.peek().filter((one) => one !== group);
    };
  }, [name]);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Return what a key does now: the page's own keys come before the frame's. */
export function meant(key: string, prefix: string): Key | undefined {
  const all = groups.peek().toReversed().flatMap((group) => group.keys());
  return all.find((one) => one.key === `${prefix} ${key}`) ?? all.find((one) => one.key === key);
}

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return;
  const prefix = event.timeStamp - before.at < PAUSE ? before.key : "";
  before = { key: event.key, at: event.timeStamp };
  const found = meant(event.key, prefix);
  if (!found) return;
  event.preventDefault();
  before = { key: "", at: 0 };
  found.run();
}

/** Listen to the keyboard, once. */
export function startKeys(): () => void {
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}
