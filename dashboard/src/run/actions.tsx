// Buttons that change a run: cancel, retry, fork.
import { useState } from "preact/hooks";
import { isOver } from "../fold/lifecycle";
import type { Task } from "../fold/state";
import { cli, CopyAsCli } from "../parts/copycli";
import { many } from "../parts/money";
import { say } from "../parts/toast";
import { may } from "../session";
import { cancel, fork, retry } from "./acts";
import type { RunModel } from "./model";

const NEEDS_RUN = "This needs a key with the scope run";

/** Cancel a task and all below it; asks once, with the true number. */
export function CancelTree({ task }: { task: Task }) {
  const [asked, setAsked] = useState(false);
  const [why, setWhy] = useState("");
  const open = task.below + 1;
  if (isOver(task.state) && task.below === 0) return null;
  if (task.state === "cancelling" || (isOver(task.state) && task.below > 0))
    return (
      <span class="stopping" role="status">
        stopping, {many(task.below + (isOver(task.state) ? 0 : 1), "task")} left
      </span>
    );
  if (!asked)
    return (
      <button type="button" class="button no" disabled={!may("run")} title={may("run") ? undefined : NEEDS_RUN} onClick={() => setAsked(true)}>
        Cancel tree
      </button>
    );
  const send = () => {
    setAsked(false);
    void cancel(task, why);
  };
  return (
    <form
      class="confirm"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onKeyDown={(event) => event.key === "Escape" && setAsked(false)}
    >
      <input class="field" aria-label="Reason, for the journal" placeholder="Reason (optional)" value={why} autofocus onInput={(event) => setWhy(event.currentTarget.value)} />
      <button class="button no full" type="submit">
        Cancel {many(open, "task")}
      </button>
      <button class="button" type="button" onClick={() => setAsked(false)}>
        Keep
      </button>
      <CopyAsCli command={cli("cancel", task.id, ...(why ? ["--why", why] : []))} say={say} />
    </form>
  );
}

/** Retry a task that did not complete. */
export function RetryTask({ task }: { task: Task }) {
  if (!["failed", "cancelled", "dead"].includes(task.state)) return null;
  return (
    <span class="act">
      <button type="button" class="button small" disabled={!may("run")} title={may("run") ? undefined : NEEDS_RUN} onClick={() => void retry(task)}>
        Retry
      </button>
      <CopyAsCli command={cli("retry", task.id)} say={say} />
    </span>
  );
}

/** Start a new run that has everything up to the moment that is shown. */
export function ForkHere({ model }: { model: RunModel }) {
  const [asked, setAsked] = useState(false);
  const root = model.root.value;
  const seq = model.state.value.seq;
  const [text, setText] = useState("");
  if (root === undefined) return null;
  const words = text === "" ? [] : ["--task", text];
  if (!asked)
    return (
      <button type="button" class="button small" disabled={!may("run")} title={may("run") ? undefined : NEEDS_RUN} onClick={() => setAsked(true)}>
        Fork from here
      </button>
    );
  return (
    <form
      class="confirm"
      onSubmit={(event) => {
        event.preventDefault();
        setAsked(false);
        void fork(model, seq, text);
      }}
      onKeyDown={(event) => event.key === "Escape" && setAsked(false)}
    >
      <input class="field" aria-label="Another task text" placeholder="The same task, or another text" value={text} autofocus onInput={(event) => setText(event.currentTarget.value)} />
      <button class="button small" type="submit">
        Fork at event {seq}
      </button>
      <button class="button small" type="button" onClick={() => setAsked(false)}>
        No
      </button>
      <CopyAsCli command={cli("fork", model.id, "--at", String(seq), ...words)} say={say} />
    </form>
  );
}
