// An open question: what is asked, what an approval permits, and the answer.
import { useEffect, useState } from "preact/hooks";
import { call } from "../api";
import type { Question } from "../fold/state";
import { CopyAsCli } from "../parts/copycli";
import { Glyph } from "../parts/pill";
import { left } from "../parts/time";
import { say } from "../parts/toast";
import type { Json } from "../shapes";
import { Value } from "../parts/value";
import { may } from "../session";
import { decide, decideCommand, type Decision } from "./acts";
import { useFocus } from "./hooks";
import type { RunModel } from "./model";

const NEEDS_APPROVE = "This needs a key with the scope approve";

export const written = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

const isEmpty = (value: unknown): boolean => value === "" || value === null || (Array.isArray(value) && value.length === 0);

/** What a person may change: "task", "arguments", "result", "amount" or "". The server knows the rule. */
function useEditable(question: Question): string {
  const [editable, setEditable] = useState("");
  useEffect(() => {
    let here = true;
    call<{ editable?: string }>("GET", `/v1/approvals/${encodeURIComponent(question.id)}`)
      .then((look) => here && setEditable(look.editable ?? ""))
      .catch(() => here && setEditable("")); // without the look it can still be approved or rejected
    return () => {
      here = false;
    };
  }, [question.id]);
  return editable;
}

/** The part of a question that an edit changes, as text. */
export function editedPart(question: Question, editable: string): string {
  if (editable === "amount") return question.raises === undefined ? "" : `${(question.raises.adds / 1e6).toFixed(2)}USD`;
  const name = editable === "task" ? "task" : editable === "result" ? "result" : "arguments";
  const shown = question.shows[name] ?? question.shows.args ?? question.shows.with;
  return shown === undefined ? "" : written(shown);
}

/** The value of an edit: text for a task and an amount, JSON for arguments, and for a result if it is JSON. */
export function editedValue(text: string, editable: string): unknown {
  if (editable === "task" || editable === "amount") return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (editable === "result") return text;
    throw error;
  }
}

/** Whether a question that is shown as it was is still open now. */
function isOpenNow(model: RunModel, question: Question): boolean {
  if (model.moment.value === null) return true;
  const { asking, tasks } = model.whole.value;
  return asking.some((id) => tasks.get(id)?.questions.some((one) => one.id === question.id && one.state === "open"));
}

export function Ask({ model, question }: { model: RunModel; question: Question }) {
  const editable = useEditable(question);
  const { question: id, how } = model.acting.value;
  const mine = id === question.id ? how : "";
  const send = (decision: Decision) => void decide(model, question, decision);
  const stop = () => (model.acting.value = { question: "", how: "" });
  const shown = Object.entries(question.shows).filter(([, value]) => !isEmpty(value));
  return (
    <section class="ask" aria-label="Question to you" data-question={question.id} data-editable={editable}>
      <div class="who">
        <Glyph sign="you" />
        <h2>{question.text.split("\n", 1)[0]}</h2>
        <span class="until">{left(question.until - model.now.value)}</span>
      </div>
      {shown.length > 0 && (
        <dl>
          {shown.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class={name === "because" ? "" : "mono"}>
                {typeof value === "string" ? value : <Value value={value as Json} />}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {!isOpenNow(model, question) ? (
        <p class="none">It was decided later.</p>
      ) : mine === "edit" ? (
        <Edit question={question} editable={editable} send={send} stop={stop} />
      ) : mine === "reject" ? (
        <Reject question={question} send={send} stop={stop} />
      ) : question.kind === "ask" ? (
        <Answer question={question} send={send} sent={mine === "sent"} />
      ) : (
        <Buttons model={model} question={question} editable={editable} send={send} sent={mine === "sent"} />
      )}
    </section>
  );
}

interface PartOf {
  question: Question;
  send: (decision: Decision) => void;
}

function Buttons({ model, question, editable, send, sent }: PartOf & { model: RunModel; editable: string; sent: boolean }) {
  const off = !may("approve") || sent;
  const title = may("approve") ? undefined : NEEDS_APPROVE;
  const begin = (how: "edit" | "reject") => (model.acting.value = { question: question.id, how });
  return (
    <div class="acts">
      <button type="button" class="button yes" disabled={off} title={title} onClick={() => send({ verdict: "approve" })}>
        {sent ? "Sending…" : "Approve"} <kbd>a</kbd>
      </button>
      {editable !== "" && (
        <button type="button" class="button" disabled={off} title={title} onClick={() => begin("edit")}>
          Edit <kbd>e</kbd>
        </button>
      )}
      <button type="button" class="button no" disabled={off} title={title} onClick={() => begin("reject")}>
        {question.kind === "review" ? "Send back" : "Reject"} <kbd>r</kbd>
      </button>
      <CopyAsCli command={decideCommand(question, { verdict: "approve" })} say={say} />
    </div>
  );
}

function Edit({ question, editable, send, stop }: PartOf & { editable: string; stop: () => void }) {
  const [text, setText] = useState(() => editedPart(question, editable));
  const [wrong, setWrong] = useState("");
  const focus = useFocus<HTMLTextAreaElement>();
  const approve = () => {
    try {
      send({ verdict: "approve", value: editedValue(text, editable) });
    } catch {
      setWrong("These arguments are not JSON: an object such as {\"path\": \"a.txt\"}.");
    }
  };
  return (
    <form class="change" onSubmit={(event) => (event.preventDefault(), approve())} onKeyDown={(event) => event.key === "Escape" && stop()}>
      <label>
        <span class="cap">The {editable}, as you approve it</span>
        <textarea class="field mono" rows={Math.min(10, Math.max(2, text.split("\n").length))} value={text} ref={focus} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {wrong !== "" && (
        <p class="er" role="alert">
          {wrong}
        </p>
      )}
      <div class="acts">
        <button type="submit" class="button yes">
          Approve the change
        </button>
        <button type="button" class="button" onClick={stop}>
          Back
        </button>
        <CopyAsCli command={decideCommand(question, { verdict: "approve", value: valueOr(text, editable) })} say={say} />
      </div>
    </form>
  );
}

function valueOr(text: string, editable: string): unknown {
  try {
    return editedValue(text, editable);
  } catch {
    return text;
  }
}

function Reject({ question, send, stop }: PartOf & { stop: () => void }) {
  const [why, setWhy] = useState("");
  const focus = useFocus<HTMLInputElement>();
  return (
    <form class="change" onSubmit={(event) => (event.preventDefault(), send({ verdict: "reject", why }))} onKeyDown={(event) => event.key === "Escape" && stop()}>
      <label>
        <span class="cap">Why not; the agent reads it</span>
        <input class="field" value={why} ref={focus} onInput={(event) => setWhy(event.currentTarget.value)} />
      </label>
      <div class="acts">
        <button type="submit" class="button no full">
          {question.kind === "review" ? "Send back" : "Reject"}
        </button>
        <button type="button" class="button" onClick={stop}>
          Back
        </button>
        <CopyAsCli command={decideCommand(question, { verdict: "reject", why })} say={say} />
      </div>
    </form>
  );
}

function Answer({ question, send, sent }: PartOf & { sent: boolean }) {
  const [text, setText] = useState("");
  const off = !may("approve") || sent;
  if (question.choices.length > 0)
    return (
      <div class="acts">
        {question.choices.map((choice) => (
          <button key={choice} type="button" class="button" disabled={off} onClick={() => send({ verdict: "answer", value: choice })}>
            {choice}
          </button>
        ))}
      </div>
    );
  return (
    <form class="change" onSubmit={(event) => (event.preventDefault(), text !== "" && send({ verdict: "answer", value: text }))}>
      <label>
        <span class="cap">Your answer</span>
        <input class="field" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="acts">
        <button type="submit" class="button yes" disabled={off || text === ""}>
          {sent ? "Sending…" : "Answer"}
        </button>
        <CopyAsCli command={decideCommand(question, { verdict: "answer", value: text })} say={say} />
      </div>
    </form>
  );
}
