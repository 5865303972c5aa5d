// Values of agents: text is shown as text, a diff as a diff, anything else with the names of its fields.
import { useState } from "preact/hooks";
import type { Json } from "../shapes";
import { DiffText, isDiff } from "./diff";
import { many } from "./money";

const LONG = 3_000; // characters at first
const DEEP = 4; // levels with names; what is deeper is shown as JSON

/** A text of an agent or a model, never as anything but text. */
export function Said({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  if (text === "") return <span class="faint">empty</span>;
  if (isDiff(text)) return <DiffText text={text} />;
  if (text.length <= LONG || all) return <div class="said">{text}</div>;
  return (
    <div class="said">
      {text.slice(0, LONG)}…{" "}
      <button type="button" class="link" onClick={() => setAll(true)}>
        Show all {many(text.length, "character")}
      </button>
    </div>
  );
}

/** JSON for a person. */
export function Value({ value, level = 0 }: { value: Json | undefined; level?: number }) {
  if (value === undefined || value === null) return <span class="faint">none</span>;
  if (typeof value === "string") return <Said text={value} />;
  if (typeof value !== "object") return <code>{String(value)}</code>;
  if (Array.isArray(value) && value.length === 0) return <span class="faint">none</span>;
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return <Words words={value.map(String)} />;
  if (level >= DEEP) return <Said text={JSON.stringify(value, null, 2)} />;
  const pairs: [string, Json][] = Array.isArray(value) ? value.map((one, at) => [String(at + 1), one]) : Object.entries(value);
  if (!pairs.length) return <span class="faint">none</span>;
  return (
    <dl class="fields">
      {pairs.map(([name, one]) => (
        <Field key={name} name={name}>
          <Value value={one} level={level + 1} />
        </Field>
      ))}
    </dl>
  );
}

/** A name and its value in a list of fields. */
export function Field({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** Short words side by side. */
export function Words({ words, none = "none" }: { words: string[]; none?: string }) {
  if (!words.length) return <span class="faint">{none}</span>;
  return (
    <span class="words">
      {words.map((word) => (
        <code key={word}>{word}</code>
      ))}
    </span>
  );
}
