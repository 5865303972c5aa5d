// What runs by the clock, which processes work, and how long the journal is kept.
import { useState } from "preact/hooks";
import { address, call, freshKey, route, sentenceOf } from "../api";
import { AskAct } from "../parts/asks";
import { isSilent } from "../parts/beats";
import { cli } from "../parts/copycli";
import { useLoad } from "../parts/load";
import { many } from "../parts/money";
import { Pill } from "../parts/pill";
import { Act, CopyCli, Empty, Shown, Table } from "../parts/shown";
import { ago, ahead, dollars } from "../parts/said";
import { useNow } from "../parts/ticking";
import { say } from "../parts/toast";
import type { ScheduleRow, Spending, WorkerRow } from "../shapes";

export function Workers() {
  const time = useNow();
  const loaded = useLoad<{ workers: WorkerRow[] }>("/v1/workers", (event) => event.kind === "task.claimed" || event.kind === "cards.published");
  return (
    <section>
      <div class="section-head">
        <h2>Workers</h2>
        <span class="faint">processes that run tasks of this workspace</span>
        <span class="grow" />
        <button class="button small" onClick={loaded.reload}>
          Read again
        </button>
      </div>
      <Shown of={loaded}>
        {({ workers }) =>
          workers.length ? (
            <Table label="Workers" heads={["Worker", ["Process", "num"], ["Tasks at once", "num"], ["Last beat", "num"]]}>
              {workers.map((one) => (
                <tr key={one.id}>
                  <td class="mono">{one.id}</td>
                  <td class="num">{one.process || "another machine"}</td>
                  <td class="num">{one.concurrency}</td>
                  <td class={isSilent(one.seen_at, time) ? "num bad-text" : "num"}>{one.seen_at ? ago(one.seen_at, time) : "–"}</td>
                </tr>
              ))}
            </Table>
          ) : (
            <Empty title="No worker" command="remit worker team.py:rt">
              Queued tasks wait until a worker starts. A server with a team has one inside.
            </Empty>
          )
        }
      </Shown>
    </section>
  );
}

export function Schedules() {
  const time = useNow();
  const loaded = useLoad<{ schedules: ScheduleRow[] }>("/v1/schedules", (event) => event.kind.startsWith("schedule."));
  async function toggle(one: ScheduleRow) {
    const verb = one.state === "paused" ? "resume" : "pause";
    try {
      await call("POST", route("schedules", one.name, verb));
      say(`${one.name} is ${verb === "pause" ? "paused" : "resumed"}`);
      loaded.reload();
    } catch (error) {
      say(sentenceOf(error), { bad: true });
    }
  }
  return (
    <section>
      <div class="section-head">
        <h2>Schedules</h2>
        <span class="faint">tasks that are submitted again and again</span>
      </div>
      <Shown of={loaded}>
        {({ schedules }) =>
          schedules.length ? (
            <Table label="Schedules" heads={["Schedule", "Task", "Times", "State", ["Next", "num"], ["Last", "num"], ["Runs", "num"]]} acts>
              {schedules.map((one) => (
                <tr key={one.name}>
                  <td class="set-name">
                    <b class="one-line">{one.name}</b>
                  </td>
                  <td class="set-name">
                    <span class="one-line">{one.task}</span>
                    <span class="sub">for {one.agent}</span>
                  </td>
                  <td>
                    <code>{one.cron}</code>
                    <span class="sub">{one.zone}</span>
                  </td>
                  <td>
                    <Pill tone={one.state === "paused" ? "idle" : "done"}>{one.state}</Pill>
                  </td>
                  <td class="num">{one.next ? ahead(one.next, time) : "–"}</td>
                  <td class="num">{ago(one.last, time)}</td>
                  <td class="num">{one.runs}</td>
                  <td>
                    <div class="acts">
                      <Act scope="admin" class="button small" onClick={() => void toggle(one)}>
                        {one.state === "paused" ? "Resume" : "Pause"}
                      </Act>
                      <AskAct
                        scope="admin"
                        verb="Remove"
                        bad
                        small
                        label={`Remove ${one.name}`}
                        title={`Remove the schedule ${one.name}?`}
                        command={cli("schedule", "rm", one.name)}
                        send={async () => {
                          await call("DELETE", route("schedules", one.name));
                          say(`${one.name} is removed`);
                        }}
                      >
                        <p class="quiet">No more runs of it start. Runs that it has started stay.</p>
                      </AskAct>
                    </div>
                  </td>
                </tr>
              ))}
            </Table>
          ) : (
            <Empty title="Nothing runs by the clock" command={cli("schedule", "add", "nightly", "0 3 * * *", "AGENT", "a task")}>
              A schedule submits a task at the times of a cron expression.
            </Empty>
          )
        }
      </Shown>
    </section>
  );
}

const DAYS = 90;

export function Keep() {
  const [days, setDays] = useState(DAYS);
  const old = useLoad<{ prunable: number }>(address("/v1/prune", { days }), (event) => event.kind === "runs.pruned");
  const spent = useLoad<Spending>("/v1/spend?by=day", (event) => event.kind === "runs.pruned");
  const pruned = spent.data?.pruned;
  const number = old.data?.prunable;
  return (
    <section>
      <div class="section-head">
        <h2>Retention</h2>
        <span class="faint">the journal keeps every run until it is pruned</span>
      </div>
      <p class="quiet set-text">
        A worker of a team with <code>keep_days</code> prunes ended runs by itself, every hour. Money that pruned runs have spent stays in the sums.
      </p>
      <div class="keep card">
        <label>
          Ended more than{" "}
          <input class="field small" type="number" min={1} max={36_500} value={days} onInput={(event) => setDays(Number(event.currentTarget.value) || DAYS)} /> days ago
        </label>
        <b role="status">{number === undefined ? "…" : many(number, "run")}</b>
        <span class="grow" />
        <CopyCli text={cli("prune", "--days", String(days), "--dry-run")} />
        <AskAct
          scope="admin"
          verb="Prune"
          does={`Delete ${many(number ?? 0, "run")}`}
          bad
          off={number ? "" : "No run is that old."}
          title={`Delete the runs that ended more than ${many(days, "day")} ago?`}
          command={cli("prune", "--days", String(days))}
          send={async () => {
            const done = await call<{ pruned: number }>("POST", "/v1/prune", { days }, freshKey());
            say(`${many(done.pruned, "run")} deleted`);
            old.reload();
          }}
        >
          <p class="quiet">Their events, contexts and answers are removed from the journal. This cannot be taken back.</p>
        </AskAct>
      </div>
      <p class="faint set-text">{pruned ? `Runs that were pruned so far have spent ${dollars(pruned.credits)}.` : "Nothing that cost money was pruned so far."}</p>
    </section>
  );
}
