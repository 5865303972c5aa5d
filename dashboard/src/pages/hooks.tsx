// Hooks: addresses outside that get events, and how their deliveries go.
import { useState } from "preact/hooks";
import { ApiError, address, call, freshKey, route, sentenceOf } from "../api";
import { cli } from "../parts/copycli";
import { Dialog, FormDialog } from "../parts/dialog";
import { useLoad } from "../parts/load";
import { many } from "../parts/money";
import { Pill } from "../parts/pill";
import { Act, Command, CopyCli, Empty, Scroll, Shown } from "../parts/shown";
import { ago, ahead, moment } from "../parts/said";
import { useNow } from "../parts/ticking";
import { say } from "../parts/toast";
import { toneOf } from "../parts/tone";
import { Words } from "../parts/value";
import { place, setQuery } from "../router";
import type { DeliveryRow, HookRow } from "../shapes";

export function Hooks() {
  const loaded = useLoad<{ hooks: HookRow[] }>("/v1/hooks", (event) => event.kind.startsWith("hook."));
  const [asks, setAsks] = useState(false);
  const [secret, setSecret] = useState("");
  const chosen = place.value.query.get("hook") ?? "";
  return (
    <section>
      <div class="section-head">
        <h2>Hooks</h2>
        <span class="faint">each event is sent at least once, signed</span>
        <span class="grow" />
        <Act scope="admin" onClick={() => setAsks(true)}>
          Add a hook
        </Act>
      </div>
      <Shown of={loaded}>
        {({ hooks }) =>
          hooks.length ? (
            <>
              <Rows hooks={hooks} chosen={chosen} onSecret={setSecret} />
              {hooks.some((one) => one.id === chosen) && <Deliveries key={chosen} hook={chosen} />}
            </>
          ) : (
            <Empty title="No hook yet" command={cli("hooks", "add", "https://example.com/remit", "task.failed")}>
              A hook tells another system about events, such as a failed run.
            </Empty>
          )
        }
      </Shown>
      {asks && <AddDialog onClose={() => setAsks(false)} onSecret={(text) => (setSecret(text), loaded.reload())} />}
      {secret && (
        <Dialog title="The secret of the hook" onClose={() => setSecret("")}>
          <div class="once">
            <b>Copy it now: it is not shown again.</b>
            <Command text={secret} />
          </div>
          <p class="quiet">The receiver checks the signature of each delivery with it.</p>
          <div class="acts">
            <span class="grow" />
            <button class="button main" onClick={() => setSecret("")}>
              I have it
            </button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function Rows({ hooks, chosen, onSecret }: { hooks: HookRow[]; chosen: string; onSecret: (secret: string) => void }) {
  const [asks, setAsks] = useState<{ hook: HookRow; act: "rotate" | "remove" }>();
  return (
    <Scroll label="Hooks">
      <table class="table">
        <thead>
          <tr>
            <th>Address</th>
            <th>Events</th>
            <th>State</th>
            <th class="num">Waiting</th>
            <th>
                      <span class="unseen">What can be done</span>
                    </th>
          </tr>
        </thead>
        <tbody>
          {hooks.map((one) => (
            <tr key={one.id} class={one.id === chosen ? "at" : undefined}>
              <td class="set-name">
                <b class="one-line">{one.url}</b>
                <span class="sub">
                  <span class="mono">{one.id}</span> added by {one.added_by || "the owner"}, {moment(one.added_at)}
                </span>
              </td>
              <td>
                <Words words={one.kinds} />
                {one.run && <span class="sub">of run {one.run}</span>}
              </td>
              <td title={one.failing}>
                <Pill tone={one.failing ? "bad" : "done"}>{one.failing ? "failing" : "arrives"}</Pill>
                {one.failing && <span class="sub one-line">{one.failing}</span>}
              </td>
              <td class="num">{one.waiting}</td>
              <td>
                <div class="acts">
                  <button class="button small" aria-expanded={one.id === chosen} onClick={() => setQuery({ hook: one.id === chosen ? null : one.id })}>
                    Deliveries
                  </button>
                  <Act scope="admin" class="button small" onClick={() => setAsks({ hook: one, act: "rotate" })}>
                    New secret
                  </Act>
                  <Act scope="admin" class="button small no" label={`Remove ${one.url}`} onClick={() => setAsks({ hook: one, act: "remove" })}>
                    Remove
                  </Act>
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {asks?.act === "remove" && (
        <FormDialog
          title="Remove this hook?"
          verb="Remove"
          bad
          onClose={() => setAsks(undefined)}
          onSend={async () => {
            await call("DELETE", route("hooks", asks.hook.id));
            say("The hook is removed");
          }}
          aside={<CopyCli text={cli("hooks", "rm", asks.hook.id)} />}
        >
          <p class="quiet">Nothing more is sent to {asks.hook.url}.</p>
        </FormDialog>
      )}
      {asks?.act === "rotate" && (
        <FormDialog
          title="Give this hook a new secret?"
          verb="New secret"
          onClose={() => setAsks(undefined)}
          onSend={async () => {
            const { secret } = await call<{ secret: string }>("POST", route("hooks", asks.hook.id, "rotate"), undefined, freshKey());
            onSecret(secret);
          }}
          aside={<CopyCli text={cli("hooks", "rotate", asks.hook.id)} />}
        >
          <p class="quiet">For 24 hours, the secret before signs too, so that the receiver can change over.</p>
        </FormDialog>
      )}
    </Scroll>
  );
}

function AddDialog({ onClose, onSecret }: { onClose: () => void; onSecret: (secret: string) => void }) {
  async function add(form: FormData) {
    const kinds = String(form.get("kinds")).split(/[\s,]+/).filter(Boolean);
    const run = String(form.get("run") ?? "").trim();
    const body = { url: String(form.get("url")).trim(), kinds, ...(run ? { run } : {}) };
    const { secret } = await call<{ secret: string }>("POST", "/v1/hooks", body, freshKey());
    onSecret(secret);
  }
  return (
    <FormDialog title="Add a hook" verb="Add" onSend={add} onClose={onClose} aside={<CopyCli text={cli("hooks", "add", "https://…", "task.failed")} />}>
      <label>
        Address
        <input class="field" name="url" type="url" placeholder="https://example.com/remit" required autofocus />
      </label>
      <label>
        Kinds of events, such as task.failed or question.*
        <input class="field mono" name="kinds" value="task.failed" required />
      </label>
      <label>
        Run; empty for all runs
        <input class="field mono" name="run" />
      </label>
    </FormDialog>
  );
}

function Deliveries({ hook }: { hook: string }) {
  const time = useNow();
  const loaded = useLoad<{ deliveries: DeliveryRow[]; next: string | null }>(address(`${route("hooks", hook)}/deliveries`, { limit: 50 }));
  async function replay(one: DeliveryRow) {
    try {
      await call("POST", route("hooks", hook, "deliveries", one.id, "replay"), undefined, freshKey());
      say("It is sent again");
      loaded.reload();
    } catch (error) {
      say(error instanceof ApiError ? error.message : sentenceOf(error), { bad: true });
    }
  }
  return (
    <>
      <div class="section-head">
        <h3>Deliveries</h3>
        <button class="button small" onClick={loaded.reload}>
          Read again
        </button>
      </div>
      <Shown of={loaded}>
        {({ deliveries, next }) =>
          deliveries.length ? (
            <Scroll label="Deliveries">
              <table class="table">
                <thead>
                  <tr>
                    <th>Event</th>
                    <th>State</th>
                    <th class="num">Tries</th>
                    <th class="num">Asked</th>
                    <th class="num">Next try</th>
                    <th>
                      <span class="unseen">What can be done</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {deliveries.map((one) => (
                    <tr key={one.id}>
                      <td class="set-name">
                        <b>{one.kind || "gap"}</b> <span class="faint">{one.event || ""}</span>
                        {one.error && <span class="sub">{one.error}</span>}
                      </td>
                      <td>
                        <Pill tone={toneOf(one.state)}>{one.state}</Pill>
                      </td>
                      <td class="num">{one.attempt}</td>
                      <td class="num">{ago(one.asked_at, time)}</td>
                      <td class="num">{one.next_at ? ahead(one.next_at, time) : "–"}</td>
                      <td>
                        <div class="acts">
                          <Act scope="admin" class="button small" off={one.ended_at ? "" : "It is still tried."} onClick={() => void replay(one)}>
                            Send again
                          </Act>
                        </div>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {next && <p class="faint more-note">{many(deliveries.length, "delivery", "deliveries")}, the latest; the CLI lists earlier ones</p>}
            </Scroll>
          ) : (
            <p class="quiet">Nothing was sent yet.</p>
          )
        }
      </Shown>
    </>
  );
}
