// One question with everything that a person needs to decide it, and the buttons.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, sentenceOf } from "../api";
import { Diff } from "../parts/diff";
import { useKeys } from "../parts/keys";
import { useLoad } from "../parts/load";
import { Act, CopyCli, lacks } from "../parts/shown";
import { cli } from "../parts/copycli";
import { many } from "../parts/money";
import { moment, shortVersion } from "../parts/said";
import { left } from "../parts/time";
import { useNow } from "../parts/ticking";
import { Glyph, Pill } from "../parts/pill";
import { toneOf } from "../parts/tone";
import { Field, Said, Value } from "../parts/value";
import type { Question, Receipt } from "../shapes";
import { changedValue, decide, headline, original, sending, title, type Verb } from "./questions";

const LONG = 200; // characters of a title
const excerpt = (text: string) => (text.length > LONG ? `${text.slice(0, LONG)}…` : text);
const OWN = new Set(["action", "arguments", "task", "result", "chain", "because", "misfit"]);

export function QuestionView({ question }: { question: Question }) {
  const isOpen = question.state === "open";
  return (
    <article class={isOpen ? "question" : "question over"} aria-label={headline(question)}>
      <Head question={question} />
      {!isOpen && <Decided question={question} />}
      <Matter question={question} />
      {isOpen && <Deciding key={question.id} question={question} />}
      <Around question={question} />
    </article>
  );
}

function Head({ question }: { question: Question }) {
  const time = useNow();
  return (
    <header class="question-head">
      <Glyph sign={question.state === "open" ? "you" : toneOf(question.state)} />
      <div class="grow">
        <h2>{excerpt(title(question))}</h2>
        <p class="faint">
          {question.kind === "ask" && `${question.agent} asks you · `}asked {moment(question.asked_at)} · run <a href={`/runs/${question.run}`}>{question.run}</a>
        </p>
      </div>
      {question.state === "open" && <span class="due">{left(question.until - time)}</span>}
    </header>
  );
}

function Decided({ question }: { question: Question }) {
  const by = question.by ? ` by ${question.by}` : "";
  const over = question.channel ? ` over ${question.channel}` : "";
  return (
    <div class="decided">
      <Pill tone={toneOf(question.state)}>{question.state}</Pill>
      <span>
        {question.state}
        {by}
        {over}, {moment(question.answered_at)}
      </span>
      {question.why && <Said text={question.why} />}
      {question.value !== null && (
        <div>
          <span class="cap">with</span>
          <Value value={question.value} />
        </div>
      )}
    </div>
  );
}

/** The thing itself: the exact call with its arguments, the task, the result, or the question. */
function Matter({ question }: { question: Question }) {
  const { kind, shows, text } = question;
  const misfit = typeof shows.misfit === "string" ? shows.misfit : "";
  return (
    <section class="matter">
      {kind === "money" || (kind === "ask" && text.length > LONG) ? <Said text={text} /> : null}
      {kind === "tool" && (
        <>
          <p class="call">
            <code>{String(shows.action)}</code>
          </p>
          <Value value={shows.arguments} />
        </>
      )}
      {kind === "review" && (
        <>
          <span class="cap">Result</span>
          <Value value={shows.result} />
          {misfit && <p class="wrong">{misfit}</p>}
        </>
      )}
      {shows.task !== undefined && (
        <>
          <span class="cap">Task</span>
          <Value value={shows.task} />
        </>
      )}
      {typeof shows.because === "string" && <p class="because">{shows.because}</p>}
    </section>
  );
}

function Deciding({ question }: { question: Question }) {
  const [mode, setMode] = useState<"" | "edit" | "reject">("");
  const busy = sending.value.get(question.id);
  const edits = question.editable;
  const off = lacks("approve") || (busy ? `It is ${busy}.` : "");
  const asks = question.kind === "ask";
  const back = question.kind === "review" ? "Send back" : asks ? "Decline" : "Reject";
  useKeys("Question", off ? [] : keysOf());

  function keysOf() {
    const keys = [{ key: "r", does: back.toLowerCase(), run: () => setMode("reject") }];
    if (!asks) keys.unshift({ key: "a", does: "approve", run: () => decide(question, "approve") });
    if (edits) keys.push({ key: "e", does: `edit the ${edits}, then approve`, run: () => setMode("edit") });
    question.choices.slice(0, 9).forEach((choice, at) => {
      keys.push({ key: String(at + 1), does: choice.slice(0, 60), run: () => decide(question, "answer", { value: choice }) });
    });
    return keys;
  }

  if (busy) return <p class="sending">{busy}… it is sent after five seconds unless you undo it.</p>;
  if (mode === "edit") return <Editing question={question} onBack={() => setMode("")} />;
  if (mode === "reject") return <Rejecting question={question} verb={back} onBack={() => setMode("")} />;
  return (
    <div class="deciding">
      {asks && <Answering question={question} />}
      <div class="acts">
        {!asks && (
          <Act scope="approve" class="button yes" keys="a" onClick={() => decide(question, "approve")}>
            Approve <kbd>a</kbd>
          </Act>
        )}
        {edits && (
          <Act scope="approve" keys="e" onClick={() => setMode("edit")}>
            Edit <kbd>e</kbd>
          </Act>
        )}
        <Act scope="approve" class="button no" keys="r" onClick={() => setMode("reject")}>
          {back} <kbd>r</kbd>
        </Act>
        <CopyCli text={asks ? cli("answer", question.id, "…") : cli("approve", question.id)} />
      </div>
      {lacks("approve") && <p class="faint why-off">{lacks("approve")}</p>}
    </div>
  );
}

/** Words for a decision: a reason, a changed text, an answer. Control and Enter send it, Escape goes back. */
function Words(props: {
  label: string;
  verb: string;
  look: string;
  text?: string;
  mono?: boolean;
  rows?: number;
  needed?: boolean;
  onSend: (text: string) => void;
  onBack?: () => void;
  onText?: (text: string) => void;
  cli?: (text: string) => string;
}) {
  const [text, setText] = useState(props.text ?? "");
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const inside = props.onBack !== undefined;
  useEffect(() => (inside ? field.current?.focus() : undefined), []);
  function submit(event?: Event) {
    event?.preventDefault();
    const off = lacks("approve");
    if (off) return setProblem(off);
    if (props.needed && !text.trim()) return setProblem("Write something first.");
    try {
      props.onSend(text);
    } catch (error) {
      setProblem(sentenceOf(error));
    }
  }
  function pressed(event: KeyboardEvent) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
    if (event.key === "Escape") props.onBack?.();
  }
  return (
    <form class="form" onSubmit={submit}>
      <label>
        {props.label}
        <textarea
          ref={field}
          class={props.mono ? "field mono" : "field"}
          rows={props.rows ?? 3}
          value={text}
          spellcheck={!props.mono}
          onInput={(event) => (setText(event.currentTarget.value), setProblem(""), props.onText?.(event.currentTarget.value))}
          onKeyDown={pressed}
        />
      </label>
      {problem && (
        <p class="wrong" role="alert">
          {problem}
        </p>
      )}
      <div class="acts">
        <button type="submit" class={props.look} aria-disabled={lacks("approve") ? true : undefined}>
          {props.verb} <kbd>Ctrl ↵</kbd>
        </button>
        {props.onBack && (
          <button type="button" class="button" onClick={props.onBack}>
            Back <kbd>Esc</kbd>
          </button>
        )}
        {props.cli && <CopyCli text={props.cli(text)} />}
      </div>
    </form>
  );
}

function Answering({ question }: { question: Question }) {
  const send = (value: string) => decide(question, "answer", { value });
  if (question.choices.length)
    return (
      <div class="choices" role="group" aria-label="Answers">
        {question.choices.map((choice, at) => (
          <Act key={choice} scope="approve" onClick={() => send(choice)}>
            <span class="grow">{choice}</span>
            {question.default === choice && <span class="faint">if nobody answers</span>}
            {at < 9 && <kbd>{at + 1}</kbd>}
          </Act>
        ))}
      </div>
    );
  const given = typeof question.default === "string" ? question.default : "";
  return <Words label={given ? `Your answer (without one: ${given})` : "Your answer"} verb="Answer" look="button yes" needed onSend={send} />;
}

function Rejecting({ question, verb, onBack }: { question: Question; verb: string; onBack: () => void }) {
  return (
    <Words
      label={`Why? ${question.agent} gets your reason.`}
      verb={verb}
      look="button no"
      onBack={onBack}
      onSend={(why) => decide(question, "reject" satisfies Verb, { why })}
      cli={(why) => cli("reject", question.id, "--why", why || "…")}
    />
  );
}

function Editing({ question, onBack }: { question: Question; onBack: () => void }) {
  const start = original(question);
  const what = question.editable;
  const [text, setText] = useState(start);
  return (
    <div>
      <Words
        label={`The ${what}, as you approve ${what === "arguments" ? "them" : "it"}`}
        verb="Approve the change"
        look="button yes"
        text={start}
        mono={what === "arguments" || typeof question.shows[what] === "object"}
        rows={Math.min(16, Math.max(3, start.split("\n").length + 1))}
        onBack={onBack}
        onText={setText}
        onSend={(given) => decide(question, "approve", given === start ? {} : { value: changedValue(question, given) })}
        cli={(given) => cli("approve", question.id, what === "arguments" ? "--args" : "--edit", given)}
      />
      {text !== start && <Diff before={start} after={text} />}
    </div>
  );
}

/** Who asked whom up to here, what the asking agent saw, and the limits that an approval gives. */
function Around({ question }: { question: Question }) {
  const chain = (question.chain || String(question.shows.chain ?? "")).split(" > ").filter(Boolean);
  const limits = Object.entries(question.shows).filter(([name]) => !OWN.has(name));
  return (
    <section class="around">
      {chain.length > 0 && (
        <>
          <span class="cap">How it came to this</span>
          <ol class="chain">
            {chain.map((name, at) => (
              <li key={at}>{name}</li>
            ))}
            {typeof question.shows.agent === "string" && question.kind === "hop" && <li class="next">{question.shows.agent}</li>}
          </ol>
        </>
      )}
      {limits.length > 0 && (
        <>
          <span class="cap">Envelope</span>
          <dl class="fields">
            {limits.map(([name, value]) => (
              <Field key={name} name={name}>
                <Value value={value} level={1} />
              </Field>
            ))}
          </dl>
        </>
      )}
      <Saw question={question} />
      <p class="faint digest">
        digest <code>{question.digest.slice(0, 16)}</code>: a decision is bound to exactly what is shown here
      </p>
    </section>
  );
}

interface Receipts {
  receipts: { task: string; agent: string; receipt: Receipt | null }[];
}

function Saw({ question }: { question: Question }) {
  const { data } = useLoad<Receipts>(address(`/v1/runs/${question.run}/receipts`, {}));
  const receipt = data?.receipts.find((one) => one.task === question.task)?.receipt;
  if (!data) return null;
  if (!receipt?.saw)
    return (
      <>
        <span class="cap">What {question.agent} saw</span>
        <p class="faint">Its receipt is written when its turn ends.</p>
      </>
    );
  return (
    <>
      <span class="cap">What {question.agent} saw</span>
      <p>
        <b>{many(receipt.tokens, "token")}</b> in {many(receipt.saw.length, "slice")}, {receipt.withheld.length} withheld
      </p>
      <ul class="slices">
        {receipt.saw.map(([key, why, tokens, version, digest, trust], at) => (
          <li key={at}>
            <code class="one-line">{key}</code>
            <span class="faint">
              {why} · v{shortVersion(version)} · {digest.slice(0, 8)}
              {trust === "trusted" ? "" : ` · ${trust}`}
            </span>
            <span class="mono">{tokens}</span>
          </li>
        ))}
        {receipt.withheld.map(([key, why], at) => (
          <li key={`w${at}`} class="withheld">
            <code class="one-line">{key}</code>
            <span class="faint">withheld: {why}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
