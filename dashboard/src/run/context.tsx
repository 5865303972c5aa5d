// What a task saw, why it saw it, and what was withheld from it.
import { holders, type Receipt, type Slice, type Task } from "../fold/state";
import { count, many } from "../parts/money";
import type { Tone } from "../parts/pill";
import { sinceStart } from "../parts/time";
import type { RunModel } from "./model";

const WHY: Readonly<Record<string, [Tone, string]>> = {
  task: ["live", "its task"],
  passed: ["pass", "passed on"],
  card: ["done", "its card reads it"],
  memory: ["done", "its own memory"],
  wrote: ["done", "wrote it itself"],
  dependency: ["cash", "a step it depends on"],
  message: ["pass", "a message"],
  approved: ["you", "a person approved it"],
  said: ["idle", "said before"],
  session: ["idle", "an earlier run of the session"],
};

const whyOf = (slice: Slice): [Tone, string] => WHY[slice.why] ?? ["idle", slice.why];

/** The receipt of the last turn, or of the last one that ended. */
export const receiptOf = (task: Task): Receipt | undefined =>
  task.receipt ?? task.sofar ?? task.trail.findLast((one) => one.receipt !== undefined)?.receipt;

export function ContextTab({ model, task }: { model: RunModel; task: Task }) {
  const receipt = receiptOf(task);
  return (
    <>
      {receipt === undefined ? <MaySee task={task} /> : <Saw model={model} task={task} receipt={receipt} />}
      <Wrote model={model} task={task} />
      <Turns model={model} task={task} />
    </>
  );
}

function MaySee({ task }: { task: Task }) {
  return (
    <>
      <p class="lead">
        May see <b>{task.sees.includes("*") ? "everything that it may read" : task.sees.length > 0 ? task.sees.join(", ") : "its task only"}</b>
      </p>
      <p class="none">What it saw is on record when its turn ends.</p>
    </>
  );
}

function Saw({ model, task, receipt }: { model: RunModel; task: Task; receipt: Receipt }) {
  const { withheld, saw, unlisted } = receipt;
  return (
    <>
      <p class="lead">
        Saw <b>{many(receipt.tokens, "token")}</b> in {many(saw.length + unlisted, "slice")}
        {withheld.length > 0 && (
          <>
            , <b>{count(withheld.length)}</b> withheld
          </>
        )}
      </p>
      <div class="bytone" aria-hidden="true">
        {saw.map((slice, at) => (
          <i key={at} class={`t-${whyOf(slice)[0]}`} style={{ flexGrow: Math.max(1, slice.tokens) }} />
        ))}
      </div>
      <ul class="seen">
        {saw.map((slice, at) => (
          <SliceRow key={at} model={model} slice={slice} />
        ))}
      </ul>
      {unlisted > 0 && <p class="none">and {count(unlisted)} more, not listed</p>}
      {withheld.length > 0 && (
        <>
          <h3 class="cap">Withheld</h3>
          <ul class="seen">
            {withheld.map(([what, why]) => (
              <li key={what} class="notpassed">
                <span class="k">{what}</span>
                <span>{why}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      <AskerSaw model={model} task={task} receipt={receipt} />
    </>
  );
}

function SliceRow({ model, slice }: { model: RunModel; slice: Slice }) {
  const [tone, why] = whyOf(slice);
  const versioned = slice.what.includes("/") && slice.why !== "task" && slice.why !== "message";
  const show = () => (model.hovered.value = slice.what);
  const hide = () => (model.hovered.value = "");
  return (
    <li class={`slice t-${tone}`} onMouseEnter={show} onMouseLeave={hide}>
      <span class="k">{slice.what}</span>
      <span class="n">{count(slice.tokens)}</span>
      <span class="w">
        <em>{why}</em>
        {versioned && ` · v${slice.version}`} · {slice.digest.slice(0, 8)}
        {slice.trust !== "trusted" && <b class="er"> · untrusted</b>}
      </span>
    </li>
  );
}

/** What the asker saw and this task did not: what was kept from it. */
function AskerSaw({ model, task, receipt }: { model: RunModel; task: Task; receipt: Receipt }) {
  const asker = model.state.value.tasks.get(task.parent);
  const above = asker === undefined ? undefined : (receiptOf(asker) ?? asker.trail[0]?.receipt);
  if (asker === undefined || above === undefined) return null;
  const mine = new Set(receipt.saw.map((slice) => slice.what));
  const more = above.saw.filter((slice) => slice.why !== "task" && !mine.has(slice.what));
  return (
    <>
      <h3 class="cap">Its asker, {holders(asker)[0]}, also saw</h3>
      {more.length === 0 ? (
        <p class="none">nothing more</p>
      ) : (
        <ul class="seen">
          {more.map((slice) => (
            <li key={slice.what} class="notpassed">
              <span class="k">{slice.what}</span>
              <span>{many(slice.tokens, "token")}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Wrote({ model, task }: { model: RunModel; task: Task }) {
  if (task.wrote.length === 0 && task.artifacts.length === 0) return null;
  return (
    <>
      <h3 class="cap">Wrote</h3>
      {task.wrote.map((one) => (
        <div class="row" key={`${one.what} ${one.version} ${one.at}`}>
          <span class="n">{sinceStart(one.at, model.whole.value.first)}</span>
          <span class="g mono">
            {one.what} v{one.version}
            {one.untrusted && <b class="er"> untrusted</b>}
          </span>
        </div>
      ))}
      {task.artifacts.map((one) => (
        <div class="row" key={`${one.digest} ${one.name}`}>
          <span class="n">file</span>
          <a class="g" href={`/v1/artifacts/${encodeURIComponent(one.digest)}`} download={one.name}>
            {one.name}
          </a>
          <span class="faint">{count(one.size)} B</span>
        </div>
      ))}
    </>
  );
}

/** Turns that ended with a handoff. */
function Turns({ model, task }: { model: RunModel; task: Task }) {
  if (task.trail.length === 0) return null;
  return (
    <>
      <h3 class="cap">Changed hands</h3>
      {task.trail.map((one) => (
        <div class="row" key={one.at}>
          <span class="n">{sinceStart(one.at, model.whole.value.first)}</span>
          <span class="g">
            {one.sentBack !== "" ? `${one.sentBack} sent it back to ${one.sender}` : `${one.sender} → ${one.to.join(", ")}`}
            {one.phase !== "" && `, phase ${one.phase}`}
          </span>
          {one.receipt !== undefined && <span class="faint">saw {many(one.receipt.tokens, "token")}</span>}
        </div>
      ))}
    </>
  );
}
