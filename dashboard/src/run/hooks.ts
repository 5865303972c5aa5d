// Small hooks of the run page.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const small = matchMedia("(max-width: 720px)");

/** Whether the page is as narrow as a phone: then the question comes first, and the tree is a list. */
export const narrow = signal(small.matches);
small.addEventListener("change", () => (narrow.value = small.matches));

/** Give the focus to a field when it appears. */
export function useFocus<E extends HTMLElement>() {
  const ref = useRef<E>(null);
  useLayoutEffect(() => ref.current?.focus(), []);
  return ref;
}

const PARTS = 3;

/** Count to three, one after the other task of the browser: what is drawn first is seen first. */
export function useSoon(): number {
  const [at, setAt] = useState(0);
  useEffect(() => {
    if (at >= PARTS) return undefined;
    const timer = setTimeout(() => setAt(at + 1));
    return () => clearTimeout(timer);
  }, [at]);
  return at;
}
