// Buttons that change a run: cancel, retry, fork.
import { useState } from "preact/hooks";
import { isOver } from "../fold/lifecycle";
import type { Task } from "../fold/state";
import { cli, CopyAsCli } from "../parts/copycli";
import { many } from "../parts/money";
import { say } from "../parts/toast";
import { may } from "../session";
import { cancel, fork, retry } from "./acts";
import { useFocus } from "./hooks";
import type { RunModel } from "./model";

const NEEDS_RUN = "This needs a key with the scope run";

/** Cancel a task and all below it; asks once, with the true number. */
export function CancelTree({ task }: { task: Task }) {
  const [asked, setAsked] = useState(false);
  const open = task.below + 1;
  if (isOver(task.state) && task.below === 0) return null;
  if (task.state === "cancelling" || (isOver(task.state) && task.below > 0))
    return (
      <span class="stopping" role="status">
        stopping, {many(task.below + (isOver(task.state) ? 0 : 1), "task")} left
      </span>
    );
  return (
    <span class="cancel">
      <button
        type="button"
        class="button no"
        disabled={!may("run")}
        title={may("run") ? undefined : NEEDS_RUN}
        aria-expanded={asked}
        onClick={() => setAsked(!asked)}
      >
        Cancel tree
      </button>
      {asked && <Confirm task={task} open={open} stop={() => setAsked(false)} />}
    </span>
  );
}

function Confirm({ task, open, stop }: { task: Task; open: number; stop: () => void }) {
  const [why, setWhy] = useState("");
  const focus = useFocus<HTMLInputElement>();
  const send = (event: Event) => {
    event.preventDefault();
    stop();
    void cancel(task, why);
  };
  return (
    <form class="confirm" onSubmit={send} onKeyDown={(event) => event.key === "Escape" && stop()}>
      <input class="field" aria-label="Reason, for the journal" placeholder="Reason (optional)" value={why} ref={focus} onInput={(event) => setWhy(event.currentTarget.value)} />
      <button class="button no full" type="submit">
        Cancel {many(open, "task")}
      </button>
      <button class="button" type="button" onClick={stop}>
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
  if (model.root.value === undefined) return null;
  if (asked) return <ForkForm model={model} stop={() => setAsked(false)} />;
  return (
    <button type="button" class="button small" disabled={!may("run")} title={may("run") ? undefined : NEEDS_RUN} onClick={() => setAsked(true)}>
      Fork from here
    </button>
  );
}

function ForkForm({ model, stop }: { model: RunModel; stop: () => void }) {
  const seq = model.state.value.seq;
  const [text, setText] = useState("");
  const focus = useFocus<HTMLInputElement>();
  const words = text === "" ? [] : ["--task", text];
  const send = (event: Event) => {
    event.preventDefault();
    stop();
    void fork(model, seq, text);
  };
  return (
    <form class="confirm" onSubmit={send} onKeyDown={(event) => event.key === "Escape" && stop()}>
      <input class="field" aria-label="Another task text" placeholder="The same task, or another text" value={text} ref={focus} onInput={(event) => setText(event.currentTarget.value)} />
      <button class="button small" type="submit">
        Fork at event {seq}
      </button>
      <button class="button small" type="button" onClick={stop}>
        No
      </button>
      <CopyAsCli command={cli("fork", model.id, "--at", String(seq), ...words)} say={say} />
    </form>
  );
}
