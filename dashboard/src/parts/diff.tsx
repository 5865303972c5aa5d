// Differences between two texts, line by line; and texts that are a diff already.
import { useState } from "preact/hooks";

export interface DiffLine {
  sign: " " | "+" | "-";
  text: string;
}

const MOST = 1_000_000; // comparisons; larger texts are shown as all removed and all added

/** Return how one text becomes another, as lines that stay, go or come. */
export function difference(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ sign: " ", text }));
  const middle = changed(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  return [...same(old.slice(0, head)), ...middle, ...same(old.slice(old.length - tail))];
}

function changed(old: string[], now: string[]): DiffLine[] {
  const gone = old.map((text): DiffLine => ({ sign: "-", text }));
  const come = now.map((text): DiffLine => ({ sign: "+", text }));
  if (!old.length || !now.length || old.length * now.length > MOST) return [...gone, ...come];
  // longest[i][j]: lines in common of old from i on and now from j on
  const width = now.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number) => longest[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      longest[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const found: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      found.push({ sign: " ", text: old[i] ?? "" });
      i++;
      j++;
    } else if (at(i + 1, j) >= at(i, j + 1)) found.push({ sign: "-", text: old[i++] ?? "" });
    else found.push({ sign: "+", text: now[j++] ?? "" });
  }
  return [...found, ...gone.slice(i), ...come.slice(j)];
}

/** Whether a text is a unified diff. */
export function isDiff(text: string): boolean {
  return /^@@ -\d+(,\d+)? \+\d+(,\d+)? @@/m.test(text) && /^--- /m.test(text) && /^\+\+\+ /m.test(text);
}

const SHOWN = 400; // lines at first

function Lines({ lines, label }: { lines: { look: string; text: string }[]; label: string }) {
  const [all, setAll] = useState(false);
  const shown = all ? lines : lines.slice(0, SHOWN);
  return (
    <div class="diff" role="group" aria-label={label} tabIndex={0}>
      {shown.map((one, at) => (
        <div key={at} class={one.look}>
          {one.text || " "}
        </div>
      ))}
      {shown.length < lines.length && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          Show all {lines.length.toLocaleString("en-US")} lines
        </button>
      )}
    </div>
  );
}

const LOOKS = { " ": "same", "+": "come", "-": "gone" } as const;

/** How one text becomes another. */
export function Diff({ before, after }: { before: string; after: string }) {
  const lines = difference(before, after).map(({ sign, text }) => ({ look: LOOKS[sign], text: `${sign} ${text}` }));
  return <Lines lines={lines} label="Differences" />;
}

/** A text that is a unified diff. */
export function DiffText({ text }: { text: string }) {
  const lines = text.split("\n").map((line) => {
    const isName = line.startsWith("+++") || line.startsWith("---") || line.startsWith("diff ") || line.startsWith("@@");
    const look = isName ? "name" : line.startsWith("+") ? "come" : line.startsWith("-") ? "gone" : "same";
    return { look, text: line };
  });
  return <Lines lines={lines} label="A diff" />;
}
