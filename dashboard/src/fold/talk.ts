// What a model said. An answer is recorded in the format of its framework; this reads the same formats as
// `remit.report.talk`, and a test compares the two.

import type { ModelCall, ToolUse } from "./state";

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

function decoded(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Return the words of an answer. Its tool calls are events of their own. */
export function wordsOf(kept: unknown): string {
  const value = typeof kept === "string" ? decoded(kept) : kept;
  return partsOf(value, kept).filter((one) => one !== "").join("\n");
}

function partsOf(value: unknown, kept: unknown): string[] {
  if (isFields(value) && Array.isArray(value.output) && "usage" in value) return value.output.flatMap(ofItem);
  if (Array.isArray(value)) return value.flatMap(ofMessage);
  return isFields(value) ? ofMessage(value) : [textOf(kept)];
}

function ofMessage(message: unknown): string[] {
  if (!isFields(message)) return [textOf(message)];
  if (isFields(message.message)) return ofMessage(message.message);
  if (Array.isArray(message.parts)) return message.parts.filter(isFields).map(ofPart);
  if (typeof message.type === "string" && isFields(message.data)) return [textOf(message.data.content)]; // langchain
  return "type" in message || "role" in message ? ofItem(message) : [textOf(message)];
}

/** A part of pydantic-ai. */
const ofPart = (part: Fields): string => (String(part.part_kind ?? "").endsWith("tool-call") ? "" : textOf(part.content));

/** An item of openai-agents. */
function ofItem(item: unknown): string[] {
  if (!isFields(item)) return [textOf(item)];
  const kind = String(item.type ?? "");
  if (kind === "reasoning") return [textOf(item.summary)];
  if (kind.endsWith("_call_output")) return [textOf(item.output)];
  return kind.endsWith("_call") ? [] : [textOf(item.content)];
}

/** Return the readable text of a content: text, the texts of its parts, otherwise its kind. */
function textOf(content: unknown): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(textOf).filter((one) => one !== "").join("\n");
  if (!isFields(content)) return JSON.stringify(content);
  const text = [content.text, content.refusal, content.msg].find((one) => typeof one === "string");
  if (text !== undefined) return text as string;
  const kind = [content.type, content.kind].find((one) => typeof one === "string");
  return kind === undefined ? JSON.stringify(content) : `[${kind}]`;
}

// -- tools of programs ------------------------------------------------------------------------------------------------

const itemsOf = (kept: unknown): Fields[] => {
  const value = typeof kept === "string" ? decoded(kept) : kept;
  const inner = isFields(value) ? value.messages : value;
  return Array.isArray(inner) ? inner.filter(isFields) : [];
};

/** The tool calls of a program that asks models through the gateway. It runs its tools itself, so that they are in its
 * conversation only: the call in an answer, the result in a later request. */
export function programTools(calls: readonly ModelCall[]): ToolUse[] {
  const found: ToolUse[] = [];
  for (const one of calls.filter(({ passed }) => passed)) {
    for (const item of itemsOf(one.told)) if (item.type === "function_call_output") end(found, item, one.at - one.elapsed);
    for (const item of itemsOf(one.answer)) if (item.type === "function_call") found.push(begun(item, one));
  }
  return found;
}

function begun(item: Fields, { at, agent }: ModelCall): ToolUse {
  const given = typeof item.arguments === "string" ? item.arguments : JSON.stringify(item.arguments ?? {});
  const open = { outcome: "running", result: "", elapsed: 0, place: "", turn: 0 };
  return { at, agent, tool: String(item.name ?? ""), call: String(item.call_id ?? ""), given, ...open };
}

function end(found: ToolUse[], item: Fields, at: number): void {
  const place = found.findLastIndex((one) => one.call === String(item.call_id ?? "") && one.outcome === "running");
  const use = found[place];
  if (use !== undefined) found[place] = { ...use, outcome: "done", result: textOf(item.output), elapsed: Math.max(0, at - use.at) };
}
