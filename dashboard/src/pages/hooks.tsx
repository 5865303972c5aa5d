// Hooks: addresses outside that get events, and how their deliveries go.
import { useState } from "preact/hooks";
import { ApiError, address, call, freshKey, route, sentenceOf } from "../api";
import { AskAct, Once, TextField, textOf } from "../parts/asks";
import { cli } from "../parts/copycli";
import { useLoad } from "../parts/load";
import { many } from "../parts/money";
import { Pill } from "../parts/pill";
import { Act, Empty, Shown, Table } from "../parts/shown";
import { ago, ahead, moment } from "../parts/said";
import { useNow } from "../parts/ticking";
import { say } from "../parts/toast";
import { toneOf } from "../parts/tone";
import { Words } from "../parts/value";
import { place, setQuery } from "../router";
import type { DeliveryRow, HookRow } from "../shapes";

export function Hooks() {
  const loaded = useLoad<{ hooks: HookRow[] }>("/v1/hooks", (event) => event.kind.startsWith("hook."));
  const [secret, setSecret] = useState("");
  const chosen = place.value.query.get("hook") ?? "";
  return (
    <section>
      <div class="section-head">
        <h2>Hooks</h2>
        <span class="faint">each event is sent at least once, signed</span>
        <span class="grow" />
        <AddHook onSecret={(text) => (setSecret(text), loaded.reload())} />
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
      {secret && (
        <Once title="The secret of the hook" secret={secret} onClose={() => setSecret("")}>
          The receiver checks the signature of each delivery with it.
        </Once>
      )}
    </section>
  );
}

function Rows({ hooks, chosen, onSecret }: { hooks: HookRow[]; chosen: string; onSecret: (secret: string) => void }) {
  return (
    <Table label="Hooks" heads={["Address", "Events", "State", ["Waiting", "num"]]} acts>
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
              <AskAct
                scope="admin"
                verb="New secret"
                small
                title="Give this hook a new secret?"
                command={cli("hooks", "rotate", one.id)}
                send={async () => onSecret((await call<{ secret: string }>("POST", route("hooks", one.id, "rotate"), undefined, freshKey())).secret)}
              >
                <p class="quiet">For 24 hours, the secret before signs too, so that the receiver can change over.</p>
              </AskAct>
              <AskAct
                scope="admin"
                verb="Remove"
                bad
                small
                label={`Remove ${one.url}`}
                title="Remove this hook?"
                command={cli("hooks", "rm", one.id)}
                send={async () => {
                  await call("DELETE", route("hooks", one.id));
                  say("The hook is removed");
                }}
              >
                <p class="quiet">Nothing more is sent to {one.url}.</p>
              </AskAct>
            </div>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function AddHook({ onSecret }: { onSecret: (secret: string) => void }) {
  async function add(form: FormData) {
    const kinds = textOf(form, "kinds").split(/[\s,]+/).filter(Boolean);
    const run = textOf(form, "run");
    const body = { url: textOf(form, "url"), kinds, ...(run ? { run } : {}) };
    const { secret } = await call<{ secret: string }>("POST", "/v1/hooks", body, freshKey());
    onSecret(secret);
  }
  return (
    <AskAct scope="admin" title="Add a hook" verb="Add a hook" does="Add" send={add} command={cli("hooks", "add", "https://…", "task.failed")}>
      <label>
        Address
        <input class="field" name="url" type="url" placeholder="https://example.com/remit" required autofocus />
      </label>
      <TextField label="Kinds of events, such as task.failed or question.*" name="kinds" value="task.failed" mono required />
      <TextField label="Run; empty for all runs" name="run" mono />
    </AskAct>
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
            <>
              <Table label="Deliveries" heads={["Event", "State", ["Tries", "num"], ["Asked", "num"], ["Next try", "num"]]} acts>
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
              </Table>
              {next && <p class="faint more-note">{many(deliveries.length, "delivery", "deliveries")}, the latest; the CLI lists earlier ones</p>}
            </>
          ) : (
            <p class="quiet">Nothing was sent yet.</p>
          )
        }
      </Shown>
    </>
  );
}
